"""``ScriptModule``: a module of nn whose methods are graphs."""
import ast
import copy
import inspect
import re
import types as python_types
import typing
import weakref

import ptcore
from ptcore._tensor import Tensor
from ptcore.fx.graph import Graph
from ptcore.jit._script.annotations import Attribute
from ptcore.jit._script.decorators import modifier
from ptcore.jit._script.functions import ScriptFunction, above, compiled
from ptcore.jit._script.source import ScriptError, Source
from ptcore.jit._script.types import (
    ANY,
    NONE,
    TENSOR,
    Optional,
    Tuple,
    from_annotation,
    given,
    of_value,
    own_annotations,
)
from ptcore.jit._script.values import Parameter
from ptcore.nn import Module
from ptcore.nn.modules.module import REGISTRIES

__all__ = ["RecursiveScriptModule", "ScriptModule", "as_it_is_class", "attribute_kind", "attribute_type",
           "constant_names", "empty_module", "script_module", "unmarked"]

_OWN = frozenset(vars(Module()))            # attributes that each module has
_in_init = weakref.WeakKeyDictionary()      # classes -> types of attributes as annotated in their __init__
_UNTOUCHED = (ptcore.nn.ModuleList, ptcore.nn.ModuleDict, ptcore.nn.ParameterList, ptcore.nn.ParameterDict)


def constant_names(original):
    """Attributes that are constants of the program: those in ``__constants__``, and those annotated as Final."""
    names = {*getattr(original, "__constants__", ())}
    for cls in type(original).__mro__:
        for name, a in own_annotations(cls).items():
            if typing.get_origin(a) is typing.Final or a is typing.Final or _is_final_text(a):
                names.add(name)
    return names


def _is_final_text(a):
    """Whether an annotation is text that says Final."""
    return isinstance(a, str) and re.search(r"\bFinal\b", a) is not None


def attribute_kind(module, name):
    """The kind of a scripted module's attribute: "module", "tensor", "attribute", "method", "property", or None."""
    original = getattr(module, "_jit_original", module)
    if name in module.__dict__.get("_jit_methods", ()):
        return "property" if isinstance(inspect.getattr_static(type(original), name, None), property) else "method"
    if name in module._modules:
        return "module"
    if name in module._parameters or name in module._buffers:
        return "tensor"
    if name in vars(module) and (name not in _OWN or name == "training"):
        return "attribute"
    found = inspect.getattr_static(type(original), name, None)
    if isinstance(found, property):
        return "property"
    if isinstance(found, (python_types.FunctionType, staticmethod)):
        return "method"
    if found is not None and not isinstance(found, classmethod):
        return "attribute"
    return None


def attribute_type(module, name, value):
    """The type of an attribute: that of its annotation, else that of its value."""
    known = module.__dict__.get("_jit_types", {})
    if name in known:
        return known[name]
    original = getattr(module, "_jit_original", module)
    for cls in type(original).__mro__:
        a = own_annotations(cls).get(name)
        if a is not None and a is not typing.Final:
            t = of_value(value) if _is_final_text(a) else from_annotation(a, _looked_up_in(cls))
            break
        if name in _annotated_in_init(cls):
            t = _annotated_in_init(cls)[name]
            break
    else:
        if value is None:
            t = NONE
        else:
            t = TENSOR if isinstance(value, Tensor) else of_value(value)
    if "_jit_types" in module.__dict__:
        module.__dict__["_jit_types"][name] = t
    return t


def _annotated_in_init(cls):
    """The types that ``__init__`` gives attributes, as in ``self.x: Optional[int] = None``."""
    init = vars(cls).get("__init__")
    if not isinstance(init, python_types.FunctionType) or cls.__module__.startswith("ptcore.nn."):
        return {}
    if cls not in _in_init:
        found = _in_init[cls] = {}
        try:
            source = Source(init)
        except ScriptError:
            return found
        own = source.node.args.args[0].arg
        for node in ast.walk(source.node):
            target = node.target if isinstance(node, ast.AnnAssign) else None
            if isinstance(target, ast.Attribute) and getattr(target.value, "id", None) == own:
                found[target.attr] = source.annotation(node.annotation)
    return _in_init[cls]


def _looked_up_in(cls):
    """A function that evaluates annotations written as text."""
    import sys

    def look_up(text):
        forward = next((f for f in vars(cls).values() if isinstance(f, python_types.FunctionType)), None)
        if forward is not None:
            return Source(forward).evaluate(ast.parse(text, mode="eval").body)
        return getattr(sys.modules[cls.__module__], text)
    return look_up


class ScriptModule(Module):
    """A module that runs its graphs. :func:`script` makes it of a module; a program may also inherit from it and mark
    methods by :func:`script_method`.

    It is a module as others are: parameters, buffers, submodules, ``state_dict``, ``train`` and ``eval``, ``to``.

    Attributes
    ----------
    graph : Graph
        Of ``forward``.
    code : str
        The same as text of Python, for people.

    Examples
    --------
    >>> import ptcore
    >>> net = ptcore.jit.script(ptcore.nn.Sequential(ptcore.nn.Linear(2, 2), ptcore.nn.ReLU()))
    >>> net(ptcore.ones(1, 2)).shape
    ptcore.Size([1, 2])
    >>> [*net.state_dict()]
    ['0.weight', '0.bias']
    """

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        marked = [name for name, f in vars(cls).items() if getattr(f, "_jit_script_method", False)]
        inherited = getattr(cls, "_jit_script_methods", ())
        cls._jit_script_methods = (*inherited, *[name for name in marked if name not in inherited])
        if marked:
            _compile_after(cls)

    @property
    def graph(self):
        return self._jit_method("forward").graph

    @property
    def code(self):
        return self._jit_method("forward").code

    @property
    def inlined_graph(self):
        return self._jit_method("forward").inlined_graph

    def _jit_method(self, name):
        scripted = self.__dict__.get("_jit_scripted")
        found = scripted._jit_method(name) if scripted is not None else None
        if found is None:
            raise AttributeError(f"{type(self).__name__} has no scripted method {name!r}")
        return found

    def save(self, f, **kwargs):
        """Writes the module to a file; see :func:`ptcore.jit.save`."""
        above["save"]()(self, f, **kwargs)


def _compile_after(cls):
    """Replaces marked methods by calls of the compiled ones at the end of ``__init__``."""
    init = cls.__init__

    def __init__(self, *args, **kwargs):
        init(self, *args, **kwargs)
        if type(self) is cls:
            for name in cls._jit_script_methods:
                self.__dict__.pop(name, None)
            made = RecursiveScriptModule(self, shared=True)
            object.__setattr__(self, "_jit_scripted", made)
            made._jit_compile_all(cls._jit_script_methods)
            for name in cls._jit_script_methods:
                self.__dict__[name] = made._jit_method(name)
    __init__.__wrapped__ = init
    cls.__init__ = __init__


class RecursiveScriptModule(ScriptModule):
    """The ScriptModule that :func:`script` makes of a module, with scripted submodules.

    Parameters and buffers are those of the module; other attributes are copied.
    """

    def __init__(self, original, shared=False):
        Module.__init__(self)
        own = self.__dict__
        own["_jit_original"] = original
        own["_jit_methods"], own["_jit_types"], own["_jit_shared"] = {}, {}, None
        own["training"] = original.training
        if shared:
            own["_parameters"], own["_buffers"] = original._parameters, original._buffers
        else:
            self._parameters.update(original._parameters)
            self._buffers.update(original._buffers)
        own["_non_persistent_buffers_set"] = set(original._non_persistent_buffers_set)
        elsewhere = {*original._parameters, *original._buffers, *original._modules,
                     *getattr(original, "_jit_script_methods", ())}
        for name, value in vars(original).items():
            if name in elsewhere:
                continue
            if name in _OWN or name.startswith("_jit_"):
                continue
            if isinstance(value, Attribute):
                own["_jit_types"][name] = from_annotation(value.type)
                value = value.value
                if shared:              # the original holds the value as well, and the graphs read it there
                    vars(original)[name] = value
            own[name] = _copied(value)
        if shared:
            own["_jit_shared"] = original
        made = {}
        for name, child in original._modules.items():
            self._modules[name] = None if child is None else _child(child, made)

    @property
    def original_name(self):
        """The name of the class that the module was scripted from."""
        return type(self._jit_original).__name__

    # -- methods -----------------------------------------------------------------------------------

    def _jit_compiled(self, name):
        """A method as a graph, compiled at its first use; None if there is none."""
        found = self._jit_methods.get(name)
        if found is None:
            function, defined_in = _function_of(type(self._jit_original), name)
            if function is None:
                return None
            found = self._jit_compile(name, function, defined_in)
        return found

    def _jit_compiled_super(self, base, name, function):
        """A base class's method, called by ``super()``, compiled under a name of its own."""
        own = f"__super_{base.__name__}_{name}"
        return self._jit_methods.get(own) or self._jit_compile(own, function, base)

    def _jit_compile(self, name, function, defined_in):
        owner = self._jit_shared or self
        found = self._jit_methods[name] = compiled(function, lambda: name, key=(id(self), name), owner=owner,
                                                   module=self, defined_in=defined_in)
        self._jit_show(name, found)
        return found

    def _jit_show(self, name, method):
        """Lets a compiled method hide a method of ScriptModule of the same name."""
        if hasattr(ScriptModule, name) and not isinstance(inspect.getattr_static(ScriptModule, name), property):
            self.__dict__[name] = method

    def _jit_compile_all(self, names):
        for name in names:
            self._jit_compiled(name)

    def _jit_method(self, name):
        return self._jit_methods.get(name)

    def __getattr__(self, name):
        own = self.__dict__
        for table in REGISTRIES:
            if name in own.get(table, ()):
                return own[table][name]
        found = own.get("_jit_methods", {}).get(name)
        original = own.get("_jit_original")
        static = None if original is None else inspect.getattr_static(type(original), name, None)
        if found is not None:
            return found() if isinstance(static, property) else found
        if original is not None and not name.startswith("__"):
            if isinstance(static, property):
                return static.fget(self)
            if modifier(static) == "ignore":
                return python_types.MethodType(static, self)
            if modifier(static) == "unused":
                raise AttributeError(f"{self.original_name}.{name} is marked @unused and was not compiled")
            if static is not None and not isinstance(static, (python_types.FunctionType, classmethod)) and name not in (
                    "forward",):
                return getattr(original, name)
        return super().__getattr__(name)

    def __setattr__(self, name, value):
        """Sets an attribute, converted to the type that the graphs assume; constants of the graphs cannot be set."""
        own = self.__dict__
        if "_jit_original" in own and not name.startswith("_"):
            if name in self._modules and not isinstance(value, ScriptModule):
                raise RuntimeError(f"the submodule {name!r} of a ScriptModule can become another ScriptModule only")
            kept = own["_parameters"] if name in own["_parameters"] else own["_buffers"]
            if name in kept and (kept[name] is None) != (value is None):
                what = "become None" if value is None else "be set"
                raise RuntimeError(f"{name!r} of a ScriptModule cannot {what}: its graphs are compiled for what it is")
            if name in constant_names(self._jit_original) and name not in kept:
                raise AttributeError(f"{name!r} is a constant of a ScriptModule")
            if name in self._jit_types:
                value = given(self._jit_types[name], value)
            elif name in own and name not in _OWN and not callable(value):
                value = given(attribute_type(self, name, own[name]), value)
        super().__setattr__(name, value)

    def forward(self, *args, **kwargs):
        method = self._jit_methods.get("forward")
        if method is None:
            raise NotImplementedError(f"{self.original_name} has no forward")
        return method(*args, **kwargs)

    def __len__(self):
        return len(self._modules)

    def __iter__(self):
        if isinstance(self._jit_original, ptcore.nn.ModuleDict):
            return iter(self._modules)
        if isinstance(self._jit_original, (ptcore.nn.ModuleList, ptcore.nn.Sequential)):
            return iter(self._modules.values())
        raise TypeError(f"{self.original_name} is not iterable")

    def __getitem__(self, index):
        if isinstance(self._jit_original, ptcore.nn.ModuleDict):
            return self._modules[index]
        return list(self._modules.values())[index]

    def __contains__(self, name):
        return name in self._modules

    def __bool__(self):
        return True

    def _get_name(self):
        return "RecursiveScriptModule"

    def extra_repr(self):
        return f"original_name={self.original_name}"

    # -- copies ------------------------------------------------------------------------------------

    def __deepcopy__(self, memo):
        made = memo[id(self)] = type(self).__new__(type(self))
        return self._jit_fill(made, lambda value: copy.deepcopy(value, memo))

    def __copy__(self):
        """Another module with the same tensors, submodules and values of attributes."""
        return self._jit_fill(type(self).__new__(type(self)), _tables_copied)

    def _jit_fill(self, made, copied):
        kept = ("_jit_original", "_jit_methods", "_jit_types", "_jit_shared")
        made.__dict__ = {name: value if name in kept else copied(value) for name, value in self.__dict__.items()}
        made.__dict__["_jit_methods"] = {name: f.bound(made) for name, f in self._jit_methods.items()}
        for name, method in made._jit_methods.items():
            made._jit_show(name, method)
        made.__dict__["_jit_types"] = dict(self._jit_types)
        made.__dict__["_jit_shared"] = None
        return made

    def __reduce_ex__(self, protocol):
        raise TypeError("a ScriptModule is not pickled; jit.save writes it")


def _tables_copied(value):
    """A copy of a dict or set, with the same contents; another value itself."""
    return copy.copy(value) if isinstance(value, (dict, set)) else value


def _copied(value):
    """A copy of nested lists and dicts, whose leaves are shared."""
    if type(value) is list:
        return [_copied(x) for x in value]
    if type(value) is dict:
        return {key: _copied(x) for key, x in value.items()}
    return copy.copy(value) if isinstance(value, (list, dict, set)) else value


def _function_of(cls, name):
    """The function that is a method of a class, and the class that defines it."""
    for base in cls.__mro__:
        if name in vars(base):
            found = vars(base)[name]
            if isinstance(found, property):
                found = found.fget
            if base is Module or base in _UNTOUCHED or not callable(found):
                return None, None
            return found, base
    return None, None


def _is_library(module):
    """Whether ``forward`` comes from ptcore.nn, or the module is a container of ptcore.nn."""
    base = _function_of(type(module), "forward")[1]
    return type(module) in _UNTOUCHED or (base is not None and base.__module__.startswith("ptcore.nn."))


def _child(child, made):
    """The ScriptModule of a submodule. ``made`` holds the existing ones, by the ids of the submodules."""
    found = made.get(id(child))
    if found is None:
        if isinstance(child, RecursiveScriptModule):
            found = child
        elif isinstance(child, ScriptModule) and child.__dict__.get("_jit_scripted") is not None:
            found = unmarked(child)
        elif hasattr(type(child), "_jit_as_script"):        # a traced one
            found = child._jit_as_script()
        elif _is_library(child):
            found = _library(child)
        else:
            found = RecursiveScriptModule(child)
            _compile_methods(found)
        made[id(child)] = found
    return found


def empty_module(name, like=None):
    """A ScriptModule without methods, with the given class name and the tensors and submodules of ``like``."""
    original = Module.__new__(type(name, (Module,), {}))
    Module.__init__(original)
    if like is not None:
        for table in (*REGISTRIES, "_non_persistent_buffers_set", "training"):
            original.__dict__[table] = getattr(like, table)
    return RecursiveScriptModule(original)


def unmarked(module):
    """A compiled copy of a ScriptModule whose class marks methods; another module is returned unchanged."""
    if not isinstance(module, ScriptModule) or module.__dict__.get("_jit_scripted") is None:
        return module
    made = RecursiveScriptModule(module)
    made._jit_compile_all(module._jit_script_methods)
    return made


def _library(child):
    """A module of ptcore.nn, compiled where its source is in the subset; otherwise Python runs its ``forward``."""
    made = RecursiveScriptModule(child)
    if type(child) in (*_UNTOUCHED, ptcore.nn.Sequential):
        _compile_methods(made)          # an error in a submodule is an error of the program
        return made
    try:
        _compile_methods(made)
        return made
    except ScriptError:
        made = _as_it_is(child)
        _compile_methods(made)
        return made


def as_it_is_class(cls):
    """A class derived from both RecursiveScriptModule and a class of ptcore.nn."""
    return type(f"RecursiveScriptModule_{cls.__name__}", (RecursiveScriptModule, cls), {"__module__": __name__})


def _as_it_is(child):
    """A ScriptModule whose ``forward`` is run by Python. The class of the module is one of its bases."""
    cls = type(child)
    made = Module.__new__(as_it_is_class(cls))
    RecursiveScriptModule.__init__(made, child)
    function, _ = _function_of(cls, "forward")
    graph, parameters = Graph(), []
    for p in [*inspect.signature(function).parameters.values()][1:]:
        has_default = p.default is not p.empty
        parameters.append(Parameter(p.name, ANY if has_default else TENSOR, has_default,
                                    p.default if has_default else None, p.kind == p.KEYWORD_ONLY))
    nodes = [graph.placeholder(p.name, p.type, p.default if p.has_default else ...)
             for p in parameters]
    for node, p in zip(nodes, parameters):
        if p.keyword_only:
            node.meta["keyword_only"] = True
    here = graph.get_attr("")
    returns = _result_of(child)
    positional = [n for n, p in zip(nodes, parameters) if not p.keyword_only]
    result = graph.call_function(function, (here, *positional), {p.name: n for n, p in zip(nodes, parameters)
                                                                 if p.keyword_only}, returns)
    result.meta["effect"] = True
    graph.output(result, returns)
    made._jit_methods["forward"] = ScriptFunction("forward", graph, parameters, returns, function, made)
    made._jit_show("forward", made._jit_methods["forward"])
    return made


def _compile_methods(made):
    """Compiles forward, and the methods that are marked ``export``."""
    cls = type(made._jit_original)
    function, _ = _function_of(cls, "forward")
    if function is not None and modifier(function) not in ("ignore", "unused"):
        made._jit_compiled("forward")
    for name in dir(cls):
        static = inspect.getattr_static(cls, name, None)
        if modifier(static) == "export":
            made._jit_compiled(name)


def script_module(module):
    """The ScriptModule of a module."""
    if isinstance(module, RecursiveScriptModule) or hasattr(type(module), "_jit_as_script"):
        return module
    if isinstance(module, ScriptModule) and module.__dict__.get("_jit_scripted") is not None:
        return module
    return _child(module, {})


# -- results of modules that run unscripted -----------------------------------------------------------

_PAIR = Tuple((TENSOR, TENSOR))


def _result_of(module):
    """The static type of the result of a module of ptcore.nn."""
    nn = ptcore.nn
    if isinstance(module, nn.LSTM):
        return Tuple((TENSOR, _PAIR))
    if isinstance(module, (nn.RNN, nn.GRU, nn.LSTMCell)):
        return _PAIR
    if isinstance(module, nn.MultiheadAttention):
        return Tuple((TENSOR, Optional(TENSOR)))
    if isinstance(module, nn.AdaptiveLogSoftmaxWithLoss):
        return ANY
    return _PAIR if getattr(module, "return_indices", False) else TENSOR
