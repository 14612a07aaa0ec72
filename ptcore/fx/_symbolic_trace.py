"""``symbolic_trace``: runs a module or function once on proxies, and gives its graph."""
import builtins
import functools
import inspect
import math
import sys
import threading
import types

import ptcore
from ptcore._contexts import Listed, Replaced
from ptcore._state import stack
from ptcore._tensor import Tensor
from ptcore._trees.tree import tree_flatten, tree_map, tree_unflatten
from ptcore.fx.graph import Graph
from ptcore.fx.graph_module import GraphModule
from ptcore.fx.node import free_name
from ptcore.fx.proxy import ParameterProxy, TracerBase, proxies_in
from ptcore.nn.modules.module import Module

__all__ = ["PH", "Tracer", "symbolic_trace", "wrap"]

_wrapped = []                   # (globals of a module, name) of functions whose calls are one node
_patching = threading.RLock()   # one thread traces at a time, so that patches are undone in order


class _Placeholder:
    """Marks a part of an argument in ``concrete_args`` that is traced."""

    def __repr__(self):
        return "PH"


PH = _Placeholder()


def wrap(fn_or_name):
    """Makes calls of a function of the calling module one node; the function is given by itself or its name.

    Call it at the top level of the module, or as a decorator.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.fx import symbolic_trace, wrap
    >>> wrap("len")
    'len'
    >>> def f(x):
    ...     return x * len(x)
    >>> [n.op for n in symbolic_trace(f).graph.nodes]
    ['placeholder', 'call_function', 'call_function', 'output']
    """
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError(f"wrap: fn_or_name must be callable or a name, got {type(fn_or_name).__name__}")
    frame = sys._getframe(1)
    if frame.f_code.co_name != "<module>":
        raise NotImplementedError("wrap is called at the top level of a module")
    name = fn_or_name if isinstance(fn_or_name, str) else fn_or_name.__name__
    _wrapped.append((frame.f_globals, name))
    return fn_or_name


class _TreesOfGraph:
    """The structure of the arguments and the result of a function whose graph has them flat."""

    def __init__(self, names, in_spec):
        self.names, self.in_spec, self.out_spec = names, in_spec, None

    def by_position(self, args, kwargs):
        """The arguments in the order of the function's parameters."""
        names = self.names[len(args):]
        if {*names} != {*kwargs}:
            raise TypeError(f"forward() takes the arguments {', '.join(self.names)}, got {len(args)} by position and "
                            f"{', '.join(kwargs)}")
        return (*args, *[kwargs[name] for name in names])

    def flat(self, args):
        leaves, spec = tree_flatten(tuple(args))
        if spec != self.in_spec:
            raise RuntimeError(f"a traced function was called with arguments of the structure {spec}, expected "
                               f"{self.in_spec}")
        return leaves

    def nested(self, out):
        if self.out_spec is None:
            return out
        return tree_unflatten(list(out) if isinstance(out, (tuple, list)) else [out], self.out_spec)


class _ForwardOfGraph:
    """The ``forward`` of a GraphModule, with the parameters that its graph has."""

    def __init__(self, function, graph):
        self.function = function
        parameters, kind = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)], None
        for node in graph.find_nodes(op="placeholder"):
            name = node.target.lstrip("*")
            default = node.args[0] if node.args else inspect.Parameter.empty
            if name != node.target:
                kind = (inspect.Parameter.VAR_POSITIONAL if node.target == f"*{name}"
                        else inspect.Parameter.VAR_KEYWORD)
            elif kind is not None or (not node.args and parameters[-1].default is not inspect.Parameter.empty):
                kind = inspect.Parameter.KEYWORD_ONLY
            parameters.append(inspect.Parameter(
                name, inspect.Parameter.POSITIONAL_OR_KEYWORD if kind is None else kind, default=default,
                annotation=inspect.Parameter.empty if node.type is None else node.type))
        self.__signature__ = inspect.Signature(parameters)

    def __call__(self, *args, **kwargs):
        return self.function(*args, **kwargs)

    def __repr__(self):
        return f"a graph{self.__signature__}"


class Tracer(TracerBase):
    """Makes a graph of a module or function. Subclasses choose the calls that become one node.

    Parameters
    ----------
    autowrap_modules : tuple of module
        Their functions are recorded as a whole where the traced program looks them up by name.
    autowrap_functions : tuple of callable
        These as well.
    param_shapes_constant : bool
        Sizes of parameters are numbers.
    """

    def __init__(self, autowrap_modules=(math,), autowrap_functions=(), param_shapes_constant=False):
        self._autowrap = {id(value): value for module in autowrap_modules
                          for name, value in vars(module).items() if not name.startswith("_") and callable(value)}
        self._autowrap.update({id(f): f for f in autowrap_functions})
        self.param_shapes_constant = param_shapes_constant
        self.submodule_paths, self.root = {}, None
        self.tensor_attrs = {}

    # -- calls that become one node ------------------------------------------------------------------

    def is_leaf_module(self, m, module_qualified_name):
        """Whether a call of a module is one node: modules of ``ptcore.nn`` except Sequential."""
        return m.__module__.startswith("ptcore.nn") and not isinstance(m, ptcore.nn.Sequential)

    def path_of_module(self, mod):
        """The name of a module inside the root."""
        path = self.submodule_paths.get(id(mod))
        if path is None:
            raise NameError(f"{type(mod).__name__} is called but is no submodule of the root")
        return path

    def call_module(self, m, forward, args, kwargs):
        """Handles a call of a module; ``forward`` runs it."""
        path = self.path_of_module(m)
        if self.is_leaf_module(m, path):
            return self.create_proxy("call_module", path, args, kwargs)
        return forward(*args, **kwargs)

    def create_arg(self, a):
        if isinstance(a, Tensor) and self.root is not None:
            if isinstance(a, ptcore.nn.Parameter):
                for name, p in self.root.named_parameters():
                    if a is p:
                        return self.create_node("get_attr", name, (), {})
                raise NameError("a parameter is used that is not the root's")
            path = self.tensor_attrs.get(id(a))
            if path is None:
                for name, b in self.root.named_buffers():
                    if a is b:
                        path = name
            if path is None:
                path = free_name(self.root, "_tensor_constant")
                self.tensor_attrs[id(a)] = path
                self._kept.append(a)
                setattr(self.root, path, a)
            return self.create_node("get_attr", path, (), {})
        if isinstance(a, Module):
            return self.create_node("get_attr", self.path_of_module(a), (), {})
        return super().create_arg(a)

    # -- tracing -------------------------------------------------------------------------------------

    def trace(self, root, concrete_args=None):
        """The graph of a module or function.

        Parameters
        ----------
        root : Module or callable
        concrete_args : dict or tuple, optional
            Values of arguments that are not traced; in a tree, ``PH`` marks the parts that are traced.

        Returns
        -------
        Graph
        """
        if isinstance(root, Module):
            self.root, function = root, type(root).forward
            if isinstance(root, GraphModule):
                function = _ForwardOfGraph(function, root.graph)
            self.submodule_paths = {id(mod): name for name, mod in root.named_modules()}
        else:
            self.root, function = Module(), root
            self.submodule_paths = {}
        self.graph = Graph(tracer_cls=type(self))
        self.tensor_attrs, self._kept = {}, []
        self._collect(self.root, "")
        target, args = self.create_args_for_root(function, isinstance(root, Module), concrete_args)
        with _patching, Replaced(self._patches(function)), Listed("fx traces"):
            result = target(*args)
            self.create_node("output", "output", (self.create_arg(result),), {},
                             type_expr=getattr(function, "__annotations__", {}).get("return"))
        return self.graph

    def _collect(self, module, prefix):
        """The names of tensors that are plain attributes of modules."""
        for name, value in vars(module).items():
            if isinstance(value, Tensor):
                self.tensor_attrs[id(value)] = prefix + name
        for name, child in module.named_children():
            self._collect(child, f"{prefix}{name}.")

    def create_args_for_root(self, root_fn, is_module, concrete_args=None):
        """The function and the arguments that it is traced with."""
        parameters = list(inspect.signature(inspect.unwrap(root_fn)).parameters.values())
        args = []
        if is_module:
            if not parameters or parameters[0].kind is inspect.Parameter.VAR_POSITIONAL:
                raise RuntimeError("trace: forward must name its self")
            parameters = parameters[1:]
            args.append(self.root)
        plain = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
        if isinstance(concrete_args, tuple):
            if len(concrete_args) != len(plain):
                raise RuntimeError(f"trace: concrete_args must hold {len(plain)} values, got {len(concrete_args)}")
            concrete_args = {p.name: value for p, value in zip(plain, concrete_args)}
        nested = False
        for p in parameters:
            if p.kind is p.VAR_POSITIONAL:
                args.append(self.create_proxy("placeholder", f"*{p.name}", (), {}))
                continue
            if p.kind is p.VAR_KEYWORD:
                args.append(self.create_proxy("placeholder", f"**{p.name}", (), {}))
                continue
            value = self._argument(p, concrete_args)
            nested = nested or isinstance(value, (tuple, list, dict))
            args.append(value)
        target = root_fn
        named = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
        if len(plain) < len(parameters):
            target = _all_by_position(root_fn, len(args))
        elif named:
            def target(*given):
                return root_fn(*given[:-len(named)], **dict(zip(named, given[-len(named):])))
        if not nested:
            return target, args
        leaves, spec = tree_flatten(tuple(args[is_module:]))
        self.graph._trees = trees = _TreesOfGraph([p.name for p in plain], spec)

        def flattened(*given):
            result = target(*given[:is_module], *tree_unflatten(list(given[is_module:]), spec))
            flat, trees.out_spec = tree_flatten(result)
            return flat[0] if len(flat) == 1 else tuple(flat)
        return flattened, [*args[:is_module], *leaves]

    def _argument(self, p, concrete_args):
        default = ... if p.default is p.empty else p.default
        if concrete_args is not None and p.name in concrete_args:
            count = [0]

            def traced(x):
                count[0] += 1
                if x is PH:
                    return self.create_proxy("placeholder", f"{p.name}_{count[0]}", (), {})
                proxy = self.create_proxy("placeholder", f"{p.name}_{count[0]}", (), {})
                if isinstance(x, (int, bool, float, str, type(None))) and not isinstance(x, Tensor):
                    self.create_proxy("call_function", _check_constant, (proxy, x, p.name), {})
                    return x
                return x
            return tree_map(traced, concrete_args[p.name])
        annotation = None if p.annotation is p.empty else p.annotation
        return self.create_proxy("placeholder", p.name, () if default is ... else (default,), {}, type_expr=annotation)

    def getattr(self, attr, attr_val, parameter_proxy_cache):
        """Handles the lookup of a module's attribute: parameters become values of the graph."""
        if isinstance(attr_val, ptcore.nn.Parameter):
            for name, p in self.root.named_parameters():
                if attr_val is p:
                    if name not in parameter_proxy_cache:
                        def sized(node, p=p):
                            return ParameterProxy(node, self, p)
                        parameter_proxy_cache[name] = self.create_proxy(
                            "get_attr", name, (), {}, proxy_factory_fn=sized if self.param_shapes_constant else None)
                    return parameter_proxy_cache[name]
        if self.proxy_buffer_attributes and isinstance(attr_val, Tensor):
            for name, b in self.root.named_buffers():
                if attr_val is b:
                    if name not in parameter_proxy_cache:
                        parameter_proxy_cache[name] = self.create_proxy("get_attr", name, (), {})
                    return parameter_proxy_cache[name]
        return attr_val

    def _patches(self, function):
        """Patches (dict or class, name, value) that pass calls and attributes of modules to the tracer."""
        call, lookup = Module.__call__, Module.__getattr__
        cache, found = {}, {}
        thread = threading.get_ident()          # other threads run their modules unchanged

        @functools.wraps(call)
        def module_call(mod, *args, **kwargs):
            if threading.get_ident() != thread:
                return call(mod, *args, **kwargs)
            return self.call_module(mod, lambda *a, **k: call(mod, *a, **k), args, kwargs)

        def module_getattr(mod, name):
            value = lookup(mod, name)
            return self.getattr(name, value, cache) if threading.get_ident() == thread else value

        names = {id(table): table for table, _ in _wrapped}
        own = getattr(inspect.unwrap(function), "__globals__", {})
        names.setdefault(id(own), own)
        for table, name in _wrapped:
            value = table.get(name, getattr(builtins, name, None))
            if value is not None:
                found[id(table), name] = table, name, recorded(value)
        for table in names.values():
            for name, value in list(table.items()):
                if not name.startswith("_") and id(value) in self._autowrap and value is self._autowrap[id(value)]:
                    found.setdefault((id(table), name), (table, name, recorded(value)))
        return [(Module, "__call__", module_call), (Module, "__getattr__", module_getattr), *found.values()]


def is_fx_tracing():
    """Whether this thread runs a program on proxies."""
    return bool(stack("fx traces"))


is_fx_symbolic_tracing = is_fx_tracing


def recorded(function):
    """Wraps a function so that a call with a proxy becomes a node."""
    @functools.wraps(function)
    def wrapped(*args, **kwargs):
        found = proxies_in((args, kwargs))
        if not found:
            return function(*args, **kwargs)
        return found[0].tracer.create_proxy("call_function", function, args, kwargs)
    return wrapped


def _check_constant(value, expected, name):
    """Raises if an argument differs from the value that was traced."""
    if value != expected:
        raise AssertionError(f"{name} was {expected!r} when the program was traced, got {value!r}")


def _all_by_position(function, n):
    """Wraps a function so that its n parameters are given by position. Then ``*args`` and ``**kwargs`` are one value
    each, for which a proxy can stand."""
    code = getattr(function, "__code__", None)
    if (code is None or hasattr(function, "__wrapped__")
            or (code.co_flags & inspect.CO_VARARGS and code.co_kwonlyargcount)):
        raise NotImplementedError(f"symbolic_trace: *args and **kwargs of {function!r} are not traced: it is decorated "
                                  "or no Python function, or has both *args and a keyword-only argument")
    code = code.replace(co_argcount=n, co_posonlyargcount=0, co_kwonlyargcount=0,
                        co_flags=code.co_flags & ~(inspect.CO_VARARGS | inspect.CO_VARKEYWORDS))
    return types.FunctionType(code, function.__globals__, function.__name__, None, function.__closure__)


def symbolic_trace(root, concrete_args=None):
    """The graph of a module or function, as a ``GraphModule``.

    Parameters
    ----------
    root : Module or callable
    concrete_args : dict, optional
        Values of arguments that are not traced.

    Returns
    -------
    GraphModule

    Raises
    ------
    TraceError
        If the program branches on a traced value or loops over one.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.fx import symbolic_trace
    >>> traced = symbolic_trace(lambda x: ptcore.relu(x + 1) * 2)
    >>> print(traced.code.strip())
    def forward(self, x):
        add = x + 1;  x = None
        relu = ptcore.relu(add);  add = None
        mul = relu * 2;  relu = None
        return mul
    >>> traced(ptcore.tensor([-2., 1.]))
    tensor([0., 4.])
    """
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if isinstance(root, Module) else root.__name__
    return GraphModule(tracer.root, graph, name)
