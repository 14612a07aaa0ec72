"""Conversion of scripted functions and modules to the contents of a file, and back.

Each function and method is a graph as text. A class is described by its fields. A module is described by its tensors,
its attributes as text, its methods and its children. ``_Checker`` restricts the calls of a graph that is read: ops, the
closed table of functions, methods of tensors, and functions and classes that the file itself describes.
"""
import builtins
import collections
import dataclasses
import enum
import keyword

import ptcore
from ptcore._tensor import Tensor
from ptcore.fx.node import Node
from ptcore.jit import _files
from ptcore.jit._script import operations, types
from ptcore.jit._script.classes import SPECIAL
from ptcore.jit._script.decorators import modifier
from ptcore.jit._script.expressions import TENSOR_ATTRIBUTES
from ptcore.jit._script.functions import ScriptFunction, from_graph
from ptcore.jit._script.modules import RecursiveScriptModule, as_it_is_class, constant_names
from ptcore.jit._script.names import UNSAFE, name_of
from ptcore.jit._text import Names, TextError, parse, parse_type, parse_value, to_text, value_text
from ptcore.nn import Module
from ptcore.serialization import CorruptFileError

__all__ = ["KINDS", "contents_of", "program_of"]

KINDS = ("scripted function", "scripted module")


# -- writing ----------------------------------------------------------------------------------------------------------

class _Collector(Names):
    """The functions and classes that graphs name, each under a name of its own."""

    def __init__(self):
        self.functions, self.classes = {}, {}       # object -> name
        self.tensors, self.same = {}, {}            # name -> tensor; name of a shared tensor -> its first name
        self._names = {}                            # id of a tensor -> its first name
        self.of_kind = {}                           # name of a class -> its description
        self.graphs = {}                            # name -> graph, callees before callers

    def of_function(self, f):
        if f not in self.functions:
            if f._owner is not None:
                raise TextError(f"{f.qualified_name}, a method of a module, is called as a function")
            self.functions[f] = None                # script has no recursion
            self.visit(f.graph)
            name = self.functions[f] = f"function{len([n for n in self.functions.values() if n])}"
            self.graphs[name] = f.graph
        return self.functions[f]

    def of_class(self, cls):
        if cls not in self.classes:
            self.classes[cls] = name = f"class{len(self.classes)}"
            self.of_kind[name] = self.describe(cls)
        return self.classes[cls]

    def add_tensor(self, name, x):
        first = self._names.setdefault(id(x), name)
        if first == name:
            self.tensors[name] = x
        else:
            self.same[name] = first

    def add_methods(self):
        """Notes the methods of classes, which may name more functions and classes."""
        met = 0
        while met < len(self.classes):
            cls, name = list(self.classes.items())[met]
            met += 1
            info = types.known_class(cls)
            if info is not None and self.of_kind[name]["kind"] == "Class":
                self.of_kind[name]["methods"] = [[key, self.of_function(info.method(key))] for key in info.functions
                                                 if modifier(info.functions[key]) is None]

    def visit(self, graph):
        """Collects the functions and classes that a graph names."""
        to_text(graph, self)

    def describe(self, cls):
        made = {"name": cls.__qualname__.rpartition("<locals>.")[2], "module": cls.__module__}
        if issubclass(cls, enum.Enum):
            return {"kind": "Enum", **made, "members": [[m.name, self.text(m.value)] for m in cls]}
        if issubclass(cls, Exception):
            base = next(c for c in cls.__mro__ if c.__module__ == "builtins")
            return {"kind": "Exception", **made, "base": base.__name__}
        if hasattr(cls, "_fields"):
            fields = types.named_tuple(cls).args
            defaults = [[k, self.text(v)] for k, v in cls._field_defaults.items()]
            return {"kind": "NamedTuple", **made, "defaults": defaults,
                    "fields": [[k, self.text(t)] for k, t in zip(cls._fields, fields)]}
        info = types.known_class(cls)
        if info is None:
            raise TextError(f"the class {cls.__qualname__} cannot be written")
        defaults = {}
        for f in info.fields or ():
            if f.default is not dataclasses.MISSING:
                defaults[f.name] = self.text(f.default)
            elif f.default_factory is not dataclasses.MISSING:
                defaults[f.name] = self.text(f.default_factory())
        params = getattr(cls, "__dataclass_params__", None)
        made["dataclass"] = info.fields is not None and {k: getattr(params, k) for k in ("eq", "order", "frozen")}
        return {"kind": "Class", **made,
                "defaults": [[k, v] for k, v in defaults.items()],
                "fields": [[k, self.text(t)] for k, t in info.attributes.items()]}

    def text(self, a):
        return value_text(a, self)


def contents_of(m, extra):
    """The contents of a file for a ScriptFunction or a ScriptModule.

    Raises
    ------
    TypeError
        If the program refers to objects that cannot be written, such as Python functions it calls.
    """
    names = _Collector()
    try:
        if isinstance(m, ScriptFunction):
            if m._owner is not None:
                raise TextError(f"{m.qualified_name} is a method; save its module")
            data = {"name": m.name, "main": names.of_function(m)}
            kind = KINDS[0]
        else:
            modules = {}
            _describe(m, "", modules, names, {})
            kind, data = KINDS[1], {"modules": [[path, about] for path, about in modules.items()]}
        names.add_methods()
    except TextError as error:
        raise TypeError(f"save: {error}") from None
    data["classes"] = [[name, about] for name, about in names.of_kind.items()]
    data["functions"] = [[name, f.qualified_name] for f, name in names.functions.items()]
    data["same tensors"] = [[name, first] for name, first in names.same.items()]
    contents = _files.Contents(kind, names.graphs, names.tensors, data, extra, names)
    texts = {name: to_text(graph, names) for name, graph in names.graphs.items()}
    try:                                # ``load`` must accept the contents before they are written
        program_of(_files.Contents(kind, texts, names.tensors, data))
    except CorruptFileError as error:
        raise TypeError(f"save: {str(error).removeprefix('load: ')}") from None
    return contents


def _describe(m, path, modules, names, met):
    """Describes a module and its submodules."""
    if id(m) in met:
        modules[path] = {"same": met[id(m)]}
        return
    met[id(m)] = path
    original = m._jit_original
    about = modules[path] = {"name": m.original_name, "training": m.training}
    library = next((c for c in type(original).__mro__ if c.__module__.startswith("ptcore.nn.modules")), Module)
    about["class"] = library.__name__ if _class_of_library(library.__name__) is library else "Module"
    about["as it is"] = type(m) is not RecursiveScriptModule
    for kind, table in (("parameters", m._parameters), ("buffers", m._buffers)):
        about[kind] = [[name, x is not None] for name, x in table.items()]
        for name, x in table.items():
            if x is not None:
                names.add_tensor(f"{path}.{name}" if path else name, x)
    about["not persistent"] = [name for name in m._buffers if name in m._non_persistent_buffers_set]
    about["attributes"], about["tensors"] = [], []
    for name, x in {**_of_class(type(original)), **vars(m)}.items():
        if not _is_attribute(m, name, x):
            continue
        if isinstance(x, Tensor):
            about["tensors"].append(name)
            names.add_tensor(f"{path}.{name}" if path else name, x)
            continue
        try:
            about["attributes"].append([name, names.text(x),
                                        names.text(m._jit_types[name]) if name in m._jit_types else None])
        except TextError:               # the attribute is left out, and a graph that reads it is refused
            pass
    about["constants"] = sorted([name for name in constant_names(original) if type(name) is str])
    about["methods"], about["properties"] = [], []
    for name, method in m._jit_methods.items():
        key = f"method{len(names.graphs)}"
        names.visit(method.graph)
        names.graphs[key] = method.graph
        about["methods"].append([name, key])
        if isinstance(getattr(type(original), name, None), property):
            about["properties"].append(name)
    about["children"] = [[name, child is not None] for name, child in m._modules.items()]
    if vars(m).get("_jit_fixed"):
        about["fixed"] = sorted(vars(m)["_jit_fixed"])
    for name, child in m._modules.items():
        if child is not None:
            _describe(child, f"{path}.{name}" if path else name, modules, names, met)


def _of_class(cls):
    """The constants of a module's class and its bases."""
    bases = [c for c in cls.__mro__[::-1] if c is not Module and c is not object and not issubclass(Module, c)]
    return {name: x for c in bases for name, x in vars(c).items()
            if not name.startswith("__") and isinstance(x, (int, float, complex, str, tuple, list, dict, type(None)))}


_PLAIN = frozenset([*vars(Module()), "original_name", "forward"])
_OF_MODULES = frozenset(dir(RecursiveScriptModule))
# Attributes that may hide one of Module's: loading calls none of these.
_HARMLESS = frozenset(["name", "float", "half", "double", "type"])


def _is_attribute(m, name, x):
    """Whether a name is an attribute of the program."""
    return (_may_be_attribute(name) and name not in m._parameters and name not in m._buffers
            and name not in m._modules and not isinstance(x, (ScriptFunction, Module)))


def _may_be_attribute(name):
    return (name.isidentifier() and not keyword.iskeyword(name) and not name.startswith(("__", "_jit_"))
            and name not in _PLAIN and (name not in _OF_MODULES or name in _HARMLESS))


def _class_of_library(name):
    """A class of ptcore.nn."""
    cls = getattr(ptcore.nn, name, None) if type(name) is str else None
    return cls if isinstance(cls, type) and issubclass(cls, Module) else None


# -- reading ----------------------------------------------------------------------------------------------------------

def program_of(contents):
    """The ScriptFunction or ScriptModule that a file describes.

    Raises
    ------
    CorruptFileError
        If something of it is not as a ScriptFunction or ScriptModule is.
    """
    reader = _Loader(contents)
    if contents.kind == KINDS[0]:
        return reader.function(contents.data["main"])
    return reader.modules()


def _refuse(what):
    raise CorruptFileError(f"load: {what}")


def _name(text, what):
    """A name of Python that hides nothing."""
    if type(text) is not str or not text.isidentifier() or keyword.iskeyword(text) or text.startswith("__"):
        _refuse(f"{str(text)[:100]!r} is no name of {what}")
    return text


class _Loader:
    """Makes the functions, classes and modules that a file describes."""

    def __init__(self, contents):
        self.contents, self.graphs = contents, {}
        self.classes, self.fields, self.functions = {}, {"name", "value"}, {}
        for name, about in contents.data["classes"]:
            self.classes[name] = self.make_class(about)
        self.names = dict(contents.data["functions"])
        for name in contents.graphs:
            if name in self.names:
                self.functions[name] = self.make_function(name, self.names[name])
        if self.names.keys() - self.functions.keys():
            _refuse("a function has no graph")
        for name, about in contents.data["classes"]:
            for key, function in about.get("methods", ()):
                made = self.function(function)
                setattr(self.classes[name], key if key in SPECIAL else _name(key, "a method"), made)

    def graph(self, name):
        return parse(self.contents.graphs[name], self.functions, self.classes)

    def function(self, name):
        found = self.functions.get(name)
        return _refuse(f"there is no function {str(name)[:100]!r}") if found is None else found

    def make_function(self, name, qualified):
        if type(qualified) is not str:
            _refuse("the name of a function is damaged")
        graph = self.graph(name)
        _Checker(self, None).check(graph)
        module, _, last = qualified.rpartition(".")
        made = from_graph(last, graph)
        made.__module__, made.qualified_name = module or made.__module__, qualified
        return made

    # -- classes ---------------------------------------------------------------------------------------------

    def make_class(self, about):
        kind, name, module = about["kind"], about["name"], about["module"]
        if type(name) is not str or type(module) is not str:
            _refuse("the name of a class is damaged")
        last = _name(name.rpartition(".")[2], "a class")
        if kind == "Enum":
            made = enum.Enum(last, [(_name(n, "a member"), parse_value(v, None, self.classes))
                                    for n, v in about["members"]])
        elif kind == "Exception":
            base = getattr(builtins, about["base"], None) if type(about["base"]) is str else None
            if not isinstance(base, type) or not issubclass(base, Exception):
                _refuse(f"{str(about['base'])[:100]} is no exception")
            made = type(last, (base,), {})
        elif kind in ("NamedTuple", "Class"):
            fields = [(_name(n, "a field"), parse_type(t, self.classes)) for n, t in about["fields"]]
            defaults = {n: parse_value(v, None, self.classes) for n, v in about["defaults"]}
            if defaults.keys() - {n for n, _ in fields}:
                _refuse("a field that has a default is none")
            made = self.make_record(last, fields, defaults, kind, about)
            self.fields.update([n for n, _ in fields])
        else:
            _refuse(f"there are no classes of kind {str(kind)[:100]!r}")
        made.__qualname__, made.__module__ = name, module
        return made

    def make_record(self, name, fields, defaults, kind, about):
        if kind == "NamedTuple":
            names = [n for n, _ in fields]
            optional = names[len(names) - len(defaults):] if defaults else []
            if set(optional) != set(defaults) or any([n.startswith("_") for n in names]):
                _refuse(f"the fields of {name} are damaged")
            made = collections.namedtuple(name, names, defaults=[defaults[n] for n in optional])
            made.__annotations__ = dict(fields)
            return made
        options = about["dataclass"]
        if options is False:
            made = type(name, (), {})
        else:
            made = dataclasses.make_dataclass(name, [
                (n, object, _field(defaults[n])) if n in defaults else (n, object) for n, _ in fields], kw_only=True,
                **{k: options[k] is True for k in ("eq", "order", "frozen")})
        info = types._classes[made] = _Described(made)
        info.attributes.update(fields)
        info.fields = None if options is False else dataclasses.fields(made)
        return made

    # -- modules ---------------------------------------------------------------------------------------------

    def modules(self):
        found, todo = {}, []
        for path, about in self.contents.data["modules"]:
            if type(path) is not str or path in found:
                _refuse("the name of a module is damaged")
            if about.keys() == {"same"}:
                found[path] = found[about["same"]]
            else:
                found[path] = self.make_module(about)
                todo.append((found[path], about))
            if path:
                parent, _, last = path.rpartition(".")
                if last not in found[parent]._modules or found[parent]._modules[last] is not None:
                    _refuse(f"{path[:100]} is no submodule")
                found[parent]._modules[last] = found[path]
        if "" not in found:
            _refuse("there is no module")
        self.place_tensors(found)
        for m, about in todo:
            if None in [m._modules[name] for name, there in about["children"] if there is True]:
                _refuse("a submodule is missing")
        for m, about in todo:           # graphs with calls of submodules' methods are checked against these
            for name, key in about["methods"]:
                m._jit_methods[name] = from_graph(name, self.graph(key), m)
        for m, about in todo:
            for method in m._jit_methods.values():
                _Checker(self, m).check(method.graph)
                m._jit_show(method.name, method)
            m.__dict__["training"] = about["training"] is True
        return found[""]

    def make_module(self, about):
        base = _class_of_library(about["class"])
        if base is None or type(about["name"]) is not str:
            _refuse(f"there is no module {str(about['class'])[:100]!r} in ptcore.nn")
        methods = [_method_name(name) for name, _ in about["methods"]]
        space = {"__constants__": [n for n in about["constants"] if type(n) is str]}
        for name in about["properties"]:
            if name not in methods:
                _refuse("a property is damaged")
            space[name] = property(lambda m, name=name: m._jit_methods[name]())
        same = about["name"] == base.__name__ and not about["properties"]
        cls = base if same else type(_name(about["name"], "a module"), (base,), space)
        original = Module.__new__(cls)
        Module.__init__(original)
        m = Module.__new__(as_it_is_class(base) if about["as it is"] is True else RecursiveScriptModule)
        RecursiveScriptModule.__init__(m, original)
        own = m.__dict__
        for kind in ("parameters", "buffers"):
            for name, _ in about[kind]:
                getattr(m, f"_{kind}")[_tensor_name(name)] = None
        m._non_persistent_buffers_set.update([name for name in about["not persistent"] if name in m._buffers])
        for name, text, of_type in about["attributes"]:
            own[_attribute_name(name)] = parse_value(text, self.functions, self.classes)
            if of_type is not None:
                m._jit_types[name] = parse_type(of_type, self.classes)
        for name, _ in about["children"]:
            m._modules[_child_name(name)] = None
        fixed = about.get("fixed", [])
        if any([type(name) is not str or name not in m._modules for name in fixed]):
            _refuse("the names of fixed submodules are damaged")
        own["_jit_fixed"] = {*fixed}
        return m

    def place_tensors(self, modules):
        found = dict(self.contents.tensors)
        for name, first in self.contents.data["same tensors"]:
            if name in found:
                _refuse(f"{str(name)[:100]} is twice there")
            found[name] = found[first]
        for path, about in self.contents.data["modules"]:
            if about.keys() == {"same"}:
                continue
            m = modules[path]
            places = [(table, name) for kind, table in (("parameters", m._parameters), ("buffers", m._buffers))
                      for name, there in about[kind] if there is True]
            for table, name in [*places, *[(m.__dict__, _attribute_name(name)) for name in about["tensors"]]]:
                x = table[name] = found.pop(f"{path}.{name}" if path else name)
                if table is m._parameters and not isinstance(x, ptcore.nn.Parameter):
                    _refuse(f"{name[:100]} is no parameter")
        if found:
            _refuse("it has tensors of no module")


class _Described:
    """The ClassInfo of a class that was read: fields, but no methods."""

    def __init__(self, cls):
        self.cls, self.type = cls, types.Type("Class", (), cls)
        self.attributes, self.functions, self.statics, self.properties, self.constants = {}, {}, {}, {}, {}
        self.setters = {}
        self.open, self.fields = False, None


def _field(default):
    if isinstance(default, (list, dict)):
        return dataclasses.field(default_factory=lambda: type(default)(default))
    return dataclasses.field(default=default)


def _attribute_name(name):
    if type(name) is not str or not _may_be_attribute(name):
        _refuse(f"{str(name)[:100]!r} is no name of an attribute")
    return name


def _method_name(name):
    """Checks a method's name. ``__super_...`` and the names in ``_MAGIC`` may hide one of Module's."""
    if type(name) is str and name.isidentifier() and (name.startswith("__super_") or name in _MAGIC):
        return name
    return _name(name, "a method")


_MAGIC = ("__call__", "__len__", "__getitem__", "__contains__", "__iter__")


def _tensor_name(name):
    if type(name) is str and name.isdigit():
        return name
    if name in _OF_MODULES:
        _refuse(f"{name[:100]!r} is no name of a tensor")
    return _name(name, "a tensor")


def _child_name(name):
    if type(name) is str and name and "." not in name and (name in _OF_MODULES) is False and not name.startswith("__"):
        return name
    return _refuse(f"{str(name)[:100]!r} is no name of a module")


# -- restrictions of graphs -------------------------------------------------------------------------------------------

# Methods that graphs may call by name: those of tensors except UNSAFE, futures, numbers, generators and contexts.
METHODS = {n for n in dir(Tensor) if not n.startswith("_") and callable(getattr(Tensor, n))} - UNSAFE
METHODS |= {"wait", "value", "done", "bit_length", "is_integer", "conjugate", "manual_seed", "seed", "initial_seed",
            "get_state", "set_state", "clone_state"}
FIELDS = {*TENSOR_ATTRIBUTES, "type", "index", "is_floating_point", "is_complex", "is_signed", "itemsize", "bits",
          "eps", "max", "min", "tiny", "smallest_normal", "resolution", "dtype"}
SETTABLE = {"grad", "data", "requires_grad"}


class _Checker:
    """Checks that a graph calls nothing but functions and methods of script."""

    def __init__(self, loader, module):
        self.loader, self.module = loader, module

    def check(self, graph):
        for node in graph.nodes:
            self.node(node)
            for block in node.blocks:
                self.check(block)

    def node(self, node):
        if node.op == "get_attr":
            self.reach(node.target)
        elif node.op == "call_module":
            self.is_module(self.reach(node.target), node)
        elif node.op == "call_method":
            self.method(node)
        elif node.op == "call_function":
            if node.target is getattr:
                self.name_of_field(node, self.loader.fields | FIELDS)
            elif node.target is operations.set_attribute:
                self.name_of_field(node, self.loader.fields | SETTABLE)
            elif (name_of(node.target) or "").startswith("library."):
                owner = self.owner(node)
                if owner is None or type(owner._jit_original).forward is not node.target:
                    _refuse(f"{node.name} calls the method of a module that it has not")

    def reach(self, path):
        """The object of a dotted name: a module, a tensor, or an attribute. Only tables of modules are searched."""
        here = self.module
        if here is None:
            _refuse("a function reads attributes of a module")
        if not path:
            return here
        *parts, last = path.split(".")
        for part in parts:
            here = here._modules.get(part)
            if not isinstance(here, RecursiveScriptModule):
                _refuse(f"{path[:100]!r} leads nowhere")
        for table in (here._modules, here._parameters, here._buffers):
            if last in table:
                return table[last]
        if last == "training" or (last in here.__dict__ and last not in _PLAIN and not last.startswith("_jit_")):
            return here.__dict__[last]
        if last in here._jit_methods:
            return None
        return _refuse(f"{path[:100]!r} leads nowhere")

    def owner(self, node):
        """The module that is the first argument of a node, if a dotted name shows it."""
        first = node.args[0] if node.args else None
        if isinstance(first, Node) and first.op == "get_attr":
            found = self.reach(first.target)
            return found if isinstance(found, RecursiveScriptModule) else None
        return None

    def is_module(self, found, node):
        if not isinstance(found, RecursiveScriptModule) or "forward" not in found._jit_methods:
            _refuse(f"{node.name} calls no module")

    def method(self, node):
        owner = self.owner(node)
        if owner is not None:
            if node.target != "__call__" and node.target not in owner._jit_methods:
                _refuse(f"{node.name} calls the method {node.target[:100]}, which is no graph: functions of Python "
                        "that are called as they are (@ignore) are in no file")
        elif node.target not in METHODS:
            _refuse(f"{node.name} calls the method {node.target[:100]}, which no graph may call")

    def name_of_field(self, node, known):
        owner = self.owner(node)
        name = node.args[1] if len(node.args) > 1 else None
        if type(name) is not str or node.kwargs:
            _refuse(f"{node.name} reads an attribute whose name is not known")
        if owner is not None:
            known = {*owner._jit_methods} if node.target is getattr else {
                n for n in (*owner.__dict__, *owner._buffers) if n not in _PLAIN and not n.startswith("_jit_")}
        if name not in known:
            _refuse(f"{node.name} asks for the attribute {name[:100]}, which no graph may ask for")
