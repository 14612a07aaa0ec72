"""``jit.save`` and ``jit.load``: the contents of a program's file, and the function or module made from it."""
import collections
import keyword
from typing import Any

import ptcore
from ptcore._tensor import Tensor
from ptcore._trees.tree import TreeSpec, tree_flatten, tree_structure
from ptcore.fx.graph_module import GraphModule, assign
from ptcore.fx.node import attribute_at
from ptcore.jit import _files
from ptcore.jit._script.functions import ScriptFunction
from ptcore.jit._script.modules import RecursiveScriptModule, unmarked
from ptcore.jit._trace import Traced, TracedFunction, TracedMethod
from ptcore.nn.modules.module import Module
from ptcore.serialization import CorruptFileError

__all__ = ["load", "save"]


def save(m, f, _extra_files=None):
    """Writes a traced or scripted function or module to a file.

    The file holds graphs as text and tensors. Loading runs no code from it. An existing file of that name stays as it
    is until the new one is complete.

    Parameters
    ----------
    m : ScriptFunction or ScriptModule
    f : str, os.PathLike or file
    _extra_files : dict of str to bytes or str, optional
        More files, which :func:`load` gives back.

    Raises
    ------
    TypeError
        If ``m`` is another object, or calls Python functions (``ignore``).

    Examples
    --------
    >>> import io, ptcore
    >>> traced = ptcore.jit.trace(ptcore.nn.Linear(2, 3), ptcore.ones(1, 2))
    >>> file = io.BytesIO()
    >>> ptcore.jit.save(traced, file)
    >>> again = ptcore.jit.load(io.BytesIO(file.getvalue()))
    >>> bool((again(ptcore.ones(4, 2)) == traced(ptcore.ones(4, 2))).all())
    True
    """
    extra = dict(_extra_files or {})
    for name, data in extra.items():
        if not isinstance(name, str) or not isinstance(data, (str, bytes, bytearray)):
            raise TypeError("save: _extra_files must be a dict of str to bytes or str")
    _files.write(_contents(m, extra), f)


def load(f, map_location=None, _extra_files=None, _restore_shapes=False, mmap=False) -> Any:
    """Reads a file written by :func:`save`.

    Parameters
    ----------
    f : str, os.PathLike or file
    map_location : device, str, dict or function, optional
        Where tensors are put, as for :func:`ptcore.load`.
    _extra_files : dict, optional
        Its keys are names of extra files, whose contents become its values, as bytes.
    _restore_shapes : bool
        Accepted for programs of PyTorch.
    mmap : bool, default: False
        For a path: whether tensors are mapped over the file and read when they are used. Writing to them does not
        change the file.

    Returns
    -------
    ScriptFunction or ScriptModule

    Raises
    ------
    CorruptFileError
        If the file is damaged, or of a later format, or calls ops that there are not.
    NotImplementedError
        If it is an archive of TorchScript.
    """
    wanted = () if _extra_files is None else tuple(_extra_files)
    contents = _files.read(f, map_location, mmap, wanted)
    try:
        made = _program(contents)
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError, RuntimeError) as error:
        if isinstance(error, CorruptFileError):
            raise
        raise CorruptFileError(f"load: the program is damaged: {error}") from error
    for name in wanted:
        if name not in contents.extra:
            raise RuntimeError(f"load: the file has no extra file {name!r}")
        _extra_files[name] = contents.extra[name]
    return made


# -- writing -------------------------------------------------------------------------------------------------

def _contents(m, extra):
    if isinstance(m, TracedFunction):
        method = m.method
        tensors = {node.target: attribute_at(method.root, node.target)
                   for node in method.graph.find_nodes(op="get_attr")}
        return _files.Contents("traced function", {"forward": method.graph}, tensors,
                               {"name": method.name, "methods": {"forward": _described(method)}}, extra)
    if isinstance(m, Traced):
        named = [*m.named_parameters(remove_duplicate=False), *m.named_buffers(remove_duplicate=False)]
        persistent = {*m.state_dict(keep_vars=True)}
        data = {"name": m.original_name, "training": m.training,
                "not persistent": [name for name, _ in named if name not in persistent],
                "methods": {name: _described(method) for name, method in m._traced.items()}}
        return _files.Contents("traced module", {name: method.graph for name, method in m._traced.items()}, dict(named),
                               data, extra)
    m = unmarked(m)
    if isinstance(m, (ScriptFunction, RecursiveScriptModule)):
        from ptcore.jit._script.stored import contents_of
        return contents_of(m, extra)
    raise TypeError(f"save: m must be what trace or script gave, got {type(m).__name__}")


def _described(method):
    return {"parameters": list(method.names), "in": _nested(method.in_spec), "out": _nested(method.out_spec)}


def _nested(spec):
    """How a tree is nested, as JSON."""
    if spec.is_leaf():
        return "*"
    children = [_nested(c) for c in spec.children()]
    if spec.type in (tuple, list):
        return {spec.type.__name__: children}
    if spec.type is dict and all([type(key) in (str, int) for key in spec.context]):
        return {"dict": [[key, child] for key, child in zip(spec.context, children)]}
    if getattr(ptcore.return_types, spec.type.__name__, None) is spec.type:
        return {"result": spec.type.__name__, "items": children}
    if hasattr(spec.type, "_fields"):
        return {"namedtuple": spec.type.__name__, "fields": list(spec.type._fields), "items": children}
    raise TypeError(f"save: arguments or results that are nested in {spec.type.__name__} cannot be written")


# -- reading -------------------------------------------------------------------------------------------------

def _program(contents):
    if contents.kind.startswith("scripted"):
        from ptcore.jit._script.stored import program_of
        return program_of(contents)
    data = contents.data
    methods = data["methods"]
    if type(methods) is not dict or methods.keys() != contents.graphs.keys() or type(data["name"]) is not str:
        raise CorruptFileError("load: the methods are not those that there are graphs of")
    if contents.kind == "traced function":
        root = Module()
        for name, x in contents.tensors.items():
            _put(x, root, name)
        return TracedFunction(_method(data["name"], contents.graphs["forward"], methods["forward"], root))
    if contents.kind == "traced module":
        made = Traced(name=data["name"])
        skipped = data["not persistent"]
        for name, x in contents.tensors.items():
            _put(x, made, name)
            if name in skipped:
                *path, last = name.split(".")
                made.get_submodule(".".join(path))._non_persistent_buffers_set.add(last)
        made.train(data["training"] is True)
        for name, about in methods.items():
            _identifier(name)
            made.add(name, _method(name, contents.graphs[name], about, made))
        return made
    raise CorruptFileError(f"load: it is a {contents.kind[:100]}, which this release does not know")


def _put(x, module, path):
    """Puts a tensor at a dotted name, if modules can have it there."""
    for part in path.split("."):
        if not part or (not part.isidentifier() and not part.isdigit()) or part.startswith("__"):
            raise CorruptFileError(f"load: {path[:100]!r} is no name of a tensor")
    at = module
    for part in path.split(".")[:-1]:
        at = getattr(at, part, None)
        if at is not None and not isinstance(at, Module):
            raise CorruptFileError(f"load: {path[:100]!r} is no name of a tensor")
    last = path.rpartition(".")[2]
    if hasattr(Module, last) or last in ("training", "original_name"):
        raise CorruptFileError(f"load: {path[:100]!r} is no name of a tensor")
    assign(x, module, path)


def _identifier(name):
    if type(name) is not str or not name.isidentifier() or keyword.iskeyword(name) or (
            name != "forward" and hasattr(Module, name)):
        raise CorruptFileError(f"load: {str(name)[:100]!r} is no name of a method")
    return name


def _method(name, graph, about, root):
    for node in graph.nodes:
        if node.op not in ("placeholder", "get_attr", "call_function", "output"):
            raise CorruptFileError(f"load: {node.name} is no call of an op")
        if node.op == "get_attr" and not isinstance(attribute_at(root, node.target), Tensor):
            raise CorruptFileError(f"load: {node.target[:100]} is no tensor")
    names = about["parameters"]
    if type(names) is not list or any([type(n) is not str for n in names]):
        raise CorruptFileError("load: the parameters are damaged")
    in_spec, out_spec = _spec(about["in"]), _spec(about["out"])
    if in_spec.type is not tuple or in_spec.num_children != len(names):
        raise CorruptFileError("load: the arguments are not those of the parameters")
    outs = graph.output_node().args[0]
    if (in_spec.num_leaves != len(graph.find_nodes(op="placeholder")) or type(outs) is not tuple
            or out_spec.num_leaves != len(outs)):
        raise CorruptFileError("load: the graph has other arguments or results than it is said to have")
    return TracedMethod(name, GraphModule(root, graph), names, in_spec, out_spec, root)


_LEAF = tree_structure(0)


def _spec(x, level=0):
    if level > 100:
        raise CorruptFileError("load: arguments are nested too deep")
    if x == "*":
        return _LEAF
    if type(x) is dict and len(x) == 1:
        ((kind, items),) = x.items()
        if kind in ("tuple", "list") and type(items) is list:
            return TreeSpec(tuple if kind == "tuple" else list, None, [_spec(c, level + 1) for c in items])
        if kind == "dict" and type(items) is list:
            keys = [key for key, _ in items]
            if any([type(key) not in (str, int) for key in keys]) or len({*keys}) < len(keys):
                raise CorruptFileError("load: the keys of arguments are damaged")
            return TreeSpec(dict, keys, [_spec(c, level + 1) for _, c in items])
    if type(x) is dict and x.keys() == {"result", "items"} and x["result"] in ptcore.return_types.__all__:
        cls = getattr(ptcore.return_types, x["result"])
        if type(x["items"]) is list and len(x["items"]) == cls.n_sequence_fields:
            return TreeSpec(cls, tree_flatten(cls([0] * len(x["items"])))[1].context,
                            [_spec(c, level + 1) for c in x["items"]])
    if type(x) is dict and x.keys() == {"namedtuple", "fields", "items"} and len(x["fields"]) == len(x["items"]):
        cls = collections.namedtuple(_identifier(x["namedtuple"]), [_identifier(n) for n in x["fields"]])
        return TreeSpec(cls, cls, [_spec(c, level + 1) for c in x["items"]])
    raise CorruptFileError("load: how arguments are nested is damaged")


