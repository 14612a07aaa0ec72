"""The reference: which pages it has and what stands on them.

They are written into ``reference/generated`` when a build begins: pages of ops from the rows, the others from what each
module's ``__all__`` names. Their text is the docstrings of the installed package.
"""
import functools
import importlib
import inspect
import operator
import pkgutil
import re
import sys
import types
import zlib
from pathlib import Path

import ptcore
import ptcore._ops

HERE = Path(__file__).resolve().parent
PACKAGE = HERE.parent.parent / "ptcore"

MODULES = {
    "autograd": ("ptcore.autograd", "ptcore.autograd.function", "ptcore.autograd.functional",
                 "ptcore.autograd.graph"),
    "nn": ("ptcore.nn", "ptcore.nn.functional", "ptcore.nn.parameter", "ptcore.nn.init", "ptcore.nn.grad",
           "ptcore.nn.modules.module", "ptcore.nn.modules.utils", "ptcore.nn.parallel",
           "ptcore.nn.parallel.comm", "ptcore.nn.utils",
           "ptcore.nn.utils.spectral_norm", "ptcore.nn.utils.weight_norm", "ptcore.nn.utils.rnn",
           "ptcore.nn.utils.parametrize", "ptcore.nn.utils.parametrizations", "ptcore.nn.utils.prune",
           "ptcore.nn.utils.stateless", "ptcore.nn.modules.lazy"),
    "amp": ("ptcore.amp", "ptcore.amp.autocast_mode", "ptcore.amp.grad_scaler", "ptcore.cpu.amp",
            "ptcore.cpu.amp.autocast_mode", "ptcore.cpu.amp.grad_scaler"),
    "compat": ("ptcore.compat.torch", "ptcore.compat.torch.torch_version", "ptcore.compat.torch.version"),
    "func": ("ptcore.func", "ptcore.autograd.forward_ad", "ptcore.utils._pytree"),
    "fx": ("ptcore.fx", "ptcore.fx.experimental.proxy_tensor", "ptcore.fx.passes.shape_prop",
           "ptcore.fx.passes.split_module", "ptcore.fx.node", "ptcore.fx.proxy", "ptcore.fx.immutable_collections",
           "ptcore.fx.subgraph_rewriter", "ptcore.overrides", "ptcore._sizes.symbolic"),
    "jit": ("ptcore.jit", "ptcore.compiler"),
    "optim": ("ptcore.optim", "ptcore.optim.lr_scheduler", "ptcore.optim.swa_utils", "ptcore.optim.optimizer"),
    "data": ("ptcore.utils.data",),
    "processes": ("ptcore.multiprocessing", "ptcore.multiprocessing.spawn", "ptcore.futures"),
    "files": ("ptcore.serialization", "ptcore.utils.restart", "ptcore.hub", "ptcore.utils.model_zoo"),
    "watching": ("ptcore.utils.tensorboard", "ptcore.utils.benchmark", "ptcore.monitor"),
    "backends": ("ptcore.backends", "ptcore.backends.cuda", "ptcore.nn.attention",
                 "ptcore.nn.attention.flex_attention", "ptcore.backends.cudnn",
                 "ptcore.backends.cpu", "ptcore.backends.mkl", "ptcore.backends.mkldnn", "ptcore.backends.openmp",
                 "ptcore.backends.mps", "ptcore.backends.mha", "ptcore.backends.nnpack", "ptcore.backends.opt_einsum",
                 "ptcore.backends.cusparselt", "ptcore.backends.kleidiai"),
    "misc": ("ptcore.linalg", "ptcore.special", "ptcore.fft", "ptcore.signal.windows", "ptcore.testing",
             "ptcore.cpu", "ptcore.cuda", "ptcore.cuda.streams", "ptcore.cuda.memory", "ptcore.cuda.random",
             "ptcore.cuda.comm", "ptcore.cuda.nvtx",
             "ptcore.cuda.profiler", "ptcore.utils.hooks", "ptcore.utils.dlpack",
             "ptcore.utils.checkpoint", "ptcore.accelerator", "ptcore.random", "ptcore.quasirandom",
             "ptcore.return_types", "ptcore.storage", "ptcore.types", "ptcore.version"),
    "library": ("ptcore.library", "ptcore.ops", "ptcore.utils.cpp_extension"),
    "profiler": ("ptcore.profiler", "ptcore.autograd.profiler", "ptcore.autograd.profiler_util", "ptcore.profiler.itt"),
    "masked": ("ptcore.masked",),
    "distributions": ("ptcore.distributions", "ptcore.distributions.constraints",
                      "ptcore.distributions.constraint_registry", "ptcore.distributions.utils",
                      "ptcore.distributions.relaxed_bernoulli", "ptcore.distributions.relaxed_categorical"),
}


# Classes that no __all__ names, but which docstrings give as types.
FURTHER = {
    "nn": ("ptcore.nn.modules.linear_cross_entropy_options.LinearCrossEntropyOptions",),
    "autograd": ("ptcore.autograd._gradcheck.GradcheckError",),
    "data": ("ptcore.utils.data._worker.WorkerInfo",),
    "fx": ("ptcore.fx.node.ArgsKwargsPair",),
    "jit": ("ptcore.compiler.ExplainOutput", "ptcore.jit.capture.explain.BreakReason"),
    "library": ("ptcore.library.tag.Tag",),
    "misc": ("ptcore._errors.ShapeError", "ptcore._errors.DeviceError", "ptcore.utils.swap_tensors"),
}


def described(path, thing):
    """The directive that shows one public name. What a class has of bases that are not public is shown as its own."""
    if isinstance(thing, type):
        public = {id(thing) for thing in public_names().values()}
        bases = thing.__mro__[1:]
        first = next(n for n, b in enumerate(bases) if id(b) in public or not b.__module__.startswith("ptcore"))
        others = ", ".join(base.__name__ for base in bases[first:])
        return f".. autoclass:: {path}\n   :members:\n" + (f"   :inherited-members: {others}\n" if first else "")
    return f".. autofunction:: {path}\n" if callable(thing) else f".. autodata:: {path}\n"


def is_function(thing):
    thing = inspect.unwrap(thing)       # Overridable
    return inspect.isfunction(thing) or type(thing).__name__ == "cython_function_or_method"


def names_of(module, seen):
    """(name, thing) of what a module offers itself: its __all__ without modules and what is shown elsewhere.

    A module without __all__ offers the functions of Python files, compiled or not, that it names without an underscore.
    """
    own = [n for n in dir(module) if not n.startswith("_") and is_function(getattr(module, n))]
    for name in sorted(getattr(module, "__all__", own)):
        thing = getattr(module, name)
        if (getattr(thing, "__module__", None) or "").partition(".")[0] == "multiprocessing":
            continue                    # the standard module's own
        shared = thing is None or isinstance(thing, (bool, int, str))
        if not isinstance(thing, types.ModuleType) and (shared or id(thing) not in seen):
            seen.add(id(thing))
            yield name, thing


def module_page(title, paths, seen):
    """The names of some modules, each under the package's front if that has it and the module is private."""
    text = [title, "=" * len(title), ""]
    for path in paths:
        module = importlib.import_module(path)
        text += [path, "-" * len(path), ""]
        package, _, last = path.rpartition(".")
        if getattr(sys.modules[package], last) is module:       # no function hides it
            text += [f".. py:module:: {path}", ""]
        text += [inspect.cleandoc(module.__doc__), ""]
        for name, thing in names_of(module, seen):
            front = "._" in path and getattr(ptcore, name, None) is thing
            text.append(described(f"ptcore.{name}" if front else f"{path}.{name}", thing))
    if title in FURTHER:
        heading = "Types of arguments and results"
        text += [heading, "-" * len(heading), ""]
        text += [described(path, pkgutil.resolve_name(path)) for path in FURTHER[title]]
    return "\n".join(text)


def constants(module):
    """The values of a module: dtypes, layouts, numbers."""
    kinds = {}
    for name, thing in sorted(vars(module).items(), key=lambda item: item[0].lower()):
        if not name.startswith("_") and not callable(thing) and not isinstance(thing, types.ModuleType):
            kinds.setdefault(type(thing).__name__, []).append(name)
    text = []
    for kind, names in kinds.items():
        told = f":class:`ptcore.{kind}`" if isinstance(getattr(ptcore, kind, None), type) else f"``{kind}``"
        text.append(f".. py:data:: {module.__name__}.{names[0]}")
        text += [f"             {module.__name__}.{name}" for name in names[1:]]
        text += ["", f"   Of type {told}.", ""]
    return text


def front_page(rows, seen):
    """Tensor's own methods and attributes, and the functions of the package that are no ops."""
    methods = {name + end for name in (row.method_name for row in rows if not row.internal) for end in ("", "_")}
    aliases = {name for row in rows for name in row.alias}
    text = ["Tensors", "=======", "", ".. autoclass:: ptcore.Tensor", ""]
    for name, thing in inspect.getmembers_static(ptcore.Tensor):
        if name.startswith("_") or name in methods | aliases or name.rstrip("_") in aliases:
            continue
        kind = "method" if callable(thing) or isinstance(thing, (staticmethod, classmethod)) else "attribute"
        text.append(f".. auto{kind}:: ptcore.Tensor.{name}\n")
    text += ["Functions and types", "-------------------", ""]
    for name in sorted(dir(ptcore), key=str.lower):
        thing = getattr(ptcore, name)
        if not name.startswith("_") and callable(thing) and id(thing) not in seen and name != "Tensor":
            text.append(described(f"ptcore.{name}", thing))
    text += ["Constants", "---------", "", *constants(ptcore)]
    return "\n".join(text)


def runs_by_smaller_ops(op):
    from ptcore._ops import decompositions
    try:
        decompositions.function(op)
    except KeyError:
        return False
    return True


def cuda_page(rows):
    """Which ops have a CUDA kernel, which run there by smaller ops, and which say that they have none."""
    sys.path.insert(0, str(PACKAGE.parent))
    tables = "".join(path.read_text() for path in sorted((PACKAGE / "cuda" / "launch").glob("*.cpp")))
    have = set(re.findall(r'\{"([\w:]+)", \w+\}', tables))
    kernels = {}
    for row in rows:
        if row.kernel and row.kernel not in have:
            kernels.setdefault(row.kernel, []).append(row)
    decomposed = {name for name, row_list in kernels.items() if all(runs_by_smaller_ops(r.name) for r in row_list)}
    title = "Kernels of CUDA devices"
    text = [title, "=" * len(title), "",
            "All elementwise ops, views and copies run on a CUDA device, and whatever consists of ops that do.", ""]
    for heading, names in (("Run by smaller ops", sorted(decomposed)),
                           ("Without a kernel", sorted(set(kernels) - decomposed))):
        text += [heading, "-" * len(heading), ""]
        text += [f"- ``{name}``: {', '.join(sorted({f'``{r.called or r.name}``' for r in kernels[name]}))}"
                 for name in names]
        text.append("")
    text += ["An op without a kernel raises NotImplementedError: move its argument to the CPU.", ""]
    return "\n".join(text)


def rows_of_ops():
    """The generator's module of tables, whose rows have the texts of the source."""
    sys.path.insert(0, str(PACKAGE / "_build"))
    ptcore._ops.rows()          # docstrings come from the package's own rows, which the generator's take the place of
    import tables
    return tables.read()


def pages():
    """The reference, file name -> text: ops from the rows, the rest from what the modules offer."""
    ops = rows_of_ops()
    import emit_docs
    found = {f"ops/{name}": text for name, text in emit_docs.pages(ops).items()}
    rows = [op.row for op in ops]
    seen = {id(operator.attrgetter(path)(ptcore)) for row in rows for path in row.public}
    for title, paths in MODULES.items():
        found[f"{title}.rst"] = module_page(title, paths, seen)
    return {**found, "tensor.rst": front_page(rows, seen), "cuda_kernels.rst": cuda_page(rows)}


@functools.cache
def public_names():
    """{path: object} of all that users may import: what modules list in __all__, the front's and Tensor's own names."""
    found = {f"ptcore.{n}": getattr(ptcore, n) for n in dir(ptcore) if not n.startswith("_")}
    found |= {f"ptcore.Tensor.{n}": getattr(ptcore.Tensor, n) for n in dir(ptcore.Tensor) if not n.startswith("_")}
    for entry in pkgutil.walk_packages(ptcore.__path__, "ptcore."):
        if any(part.startswith("_") for part in entry.name.split(".")) or entry.name.startswith("ptcore.examples"):
            continue
        module = importlib.import_module(entry.name)
        found |= {f"{entry.name}.{n}": getattr(module, n) for n in getattr(module, "__all__", ())}
    return {path: thing for path, thing in found.items() if not isinstance(thing, types.ModuleType)}


def thing_of(path):
    """What a path leads to, also through a module that a function of its name hides."""
    try:
        return operator.attrgetter(path.partition(".")[2])(ptcore)
    except AttributeError:
        return pkgutil.resolve_name(path)


def other_names(shown):
    """{path: path that is shown} of the public names that a page shows by another name; those of Python's own
    multiprocessing stand under the package's section."""
    standard = "ptcore.multiprocessing"
    by_id, by_name = {}, {}
    names = public_names()
    for path in shown:
        try:
            by_id.setdefault(id(thing_of(path)), path)
        except (AttributeError, ImportError):       # an attribute of instances
            continue
    for op in rows_of_ops():
        row = op.row
        where = f"ptcore.{row.public[0]}" if row.public else f"ptcore.Tensor.{row.method_name}"
        for name in (row.method_name, *row.alias):
            by_name.setdefault(name, where)
    found = {}
    for path, thing in names.items():
        if path in shown:
            continue
        name = path.rpartition(".")[2]
        where = by_id.get(id(thing)) or by_name.get(name) or by_name.get(name.rstrip("_"))
        if where not in shown and getattr(ptcore, name, by_id) is thing:
            where = f"ptcore.{name}"
        if where is None and (getattr(thing, "__module__", None) or "").partition(".")[0] == "multiprocessing":
            where = standard
        if where in shown:
            found[path] = where
    return found


def absent(inventory):
    """The public names that do not stand in a file objects.inv."""
    lines = zlib.decompress(Path(inventory).read_bytes().split(b"\n", 4)[4]).decode().splitlines()
    there = {line.split(" ")[0] for line in lines if line.split(" ")[1].startswith("py:")}
    return sorted(set(public_names()) - there)


def words_of_types():
    """{word: path} of the classes that docstrings name as types: Tensor is ptcore.Tensor."""
    return {path.rpartition(".")[2]: path for path in re.findall(r"autoclass:: (\S+)", "\n".join(pages().values()))}


if __name__ == "__main__":              # _reference.py objects.inv: fails with the names that are absent
    sys.exit(" ".join(absent(sys.argv[1])) or print(len(public_names()), "public names"))
