"""``trace``: the graph of the rows that one call of a function or module ran.

Sizes of the arguments stay symbols, so that the graph also runs on other sizes. Where the program depended on sizes,
the graph checks at each run that the condition still holds. Values that the program reads become constants of the
graph, with a warning.
"""
import copy
import inspect
import warnings
from typing import Any

import ptcore
from ptcore._node import user_at
from ptcore._random import get_rng_state, set_rng_state
from ptcore._sizes.symbolic import ShapeEnv
from ptcore._state import no_grad, stack
from ptcore._tensor import Tensor
from ptcore._trees.tree import tree_flatten, tree_map, tree_unflatten
from ptcore._watching import when_profiled
from ptcore.fx.experimental.proxy_tensor import ProxyTracer
from ptcore.fx.experimental.sizes import Sizes
from ptcore.fx.graph_module import GraphModule, assign
from ptcore.fx.node import Node, attribute_at
from ptcore.jit._backend import Compiled
from ptcore.jit._script.functions import ScriptFunction
from ptcore.jit._script.modules import ScriptModule
from ptcore.nn.modules.module import Module

__all__ = ["Traced", "TracedFunction", "TracedMethod", "TracerWarning", "TracingCheckError", "is_tracing", "trace",
           "trace_module"]

class TracerWarning(Warning):
    """Warns that a traced program reads a value, which becomes a constant of the graph."""

    @staticmethod
    def ignore_lib_warnings():
        """Does nothing: ptcore's own lines raise no such warnings."""


class TracingCheckError(Exception):
    """Raised where a traced program and its trace give different results."""


def is_tracing():
    """Whether a program is being traced in this thread."""
    return bool(stack("jit traces"))


class _RealSizes(Sizes):
    """Symbols of sizes in a tracer that computes values as well."""

    def stand_in(self, value, node, device, sizes, layout=None):
        return super().stand_in(value, node, value.device, sizes, layout)


class _Tracer(ProxyTracer):
    """Computes the values of the call, keeps sizes as symbols, and names tensors as the module does."""
    also = "jit traces"
    keeps_checks = True

    def __init__(self, root, names):
        super().__init__(root, "real")
        # Each dim is a symbol of its own, even where dims are equal, 0 or 1 in this call.
        self.env, self.names = _RealSizes(self, ShapeEnv(duck_shape=False, specialize_zero_one=False)), names

    def input(self, x, node):
        s = self.env.input(x.detach(), node, x.device)
        return s.requires_grad_() if x.requires_grad else s

    def constant(self, x):
        path = self.names.get(id(x))
        if path is None:
            return super().constant(x)
        known = self._constants.get(id(x))
        if known is None:
            word = path.replace(".", "_")
            word = f"_{word}" if word[0].isdigit() else word
            known = self._constants[id(x)] = x, x, self.node("get_attr", path, (), {}, word)
        return known[1:]

    def value_read(self, payload):
        """Gives the value of this call for a tensor that the program reads, and warns."""
        place = user_at()
        where = "" if place is None else f" at {place[0]}:{place[1]}"
        warnings.warn("Converting a tensor to a Python number might cause the trace to be incorrect: the value is read "
                      f"once, and is a constant of the graph{where}", TracerWarning, stacklevel=2)
        return payload.tensor


class TracedMethod:
    """A traced function, or method of a module.

    Attributes
    ----------
    module : GraphModule
        Its graph, and a copy of the tensors at the time of the trace.
    names : list of str
        The parameters.
    in_spec, out_spec : TreeSpec
        How arguments and results are nested.
    root : Module
        Whose tensors the graph uses.
    """

    def __init__(self, name, module, names, in_spec, out_spec, root=None):
        self.name, self.module, self.names = name, module, names
        self.in_spec, self.out_spec = in_spec, out_spec
        self.root = module if root is None else root
        self._compiled = Compiled(module, root=self.root)
        self._is_flat = all([c.is_leaf() for c in in_spec.children()])      # whether each argument is a tensor
        self._is_one = out_spec.is_leaf()

    @property
    def graph(self):
        return self.module.graph

    @property
    def code(self):
        return self.module.code

    def __call__(self, *args, **kwargs):
        if kwargs or len(args) != len(self.names):
            args = self._complete(args, kwargs)
        leaves = args
        if not self._is_flat or not all([isinstance(x, Tensor) for x in args]):
            leaves = self._leaves(args)
        results = self._compiled(*leaves)
        return results[0] if self._is_one else tree_unflatten(list(results), self.out_spec)

    def _leaves(self, args):
        leaves, spec = tree_flatten(args)
        if spec != self.in_spec:
            raise RuntimeError(f"{self.name}: the arguments must be nested as those it was traced with: expected "
                               f"{self.in_spec}, got {spec}")
        for k, x in enumerate(leaves):
            if not isinstance(x, Tensor):
                raise RuntimeError(f"{self.name}: argument {k} must be a Tensor, got {type(x).__name__}: it was one "
                                   "when the program was traced")
        return leaves

    def _complete(self, args, kwargs):
        given = dict(zip(self.names, args))
        for name, x in kwargs.items():
            if name not in self.names or name in given:
                raise RuntimeError(f"{self.name}: there is no argument {name!r}, or it is given twice; the arguments "
                                   f"are {', '.join(self.names)}")
            given[name] = x
        if len(args) > len(self.names) or len(given) < len(self.names):
            raise RuntimeError(f"{self.name}: takes {len(self.names)} arguments ({', '.join(self.names)}), got "
                               f"{len(args) + len(kwargs)}")
        return tuple([given[name] for name in self.names])

    def bound(self, root):
        """The same method over the tensors of another module."""
        return TracedMethod(self.name, self.module, self.names, self.in_spec, self.out_spec, root)


class TracedFunction(ScriptFunction):
    """The result of :func:`trace` for a function."""

    def __init__(self, method, function=None):
        self.method, self.original_function, self._scripted = method, function, None
        self.name = self.__name__ = self.__qualname__ = method.name
        self.__module__ = getattr(function, "__module__", None) or __name__
        self.qualified_name = f"{self.__module__}.{method.name}"
        self.__doc__ = getattr(function, "__doc__", None)
        self.__signature__ = inspect.Signature([inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD)
                                                for n in method.names])

    @property
    def graph(self):
        return self.method.graph

    @property
    def code(self):
        return self.method.code

    @property
    def schema(self):
        return f"{self.name}({', '.join([f'Tensor {n}' for n in self.method.names])}) -> Tensor"

    def __call__(self, *args, **kwargs):
        return self.method(*args, **kwargs)

    def _jit_as_script(self):
        """The ScriptFunction by which scripted functions call this one."""
        if self._scripted is None:
            from ptcore.jit._script.traced import script_of_function
            self._scripted = script_of_function(self.method)
        return self._scripted

    def state_dict(self):
        """The tensors from outside that the graph uses, by their names in the graph."""
        return {node.target: attribute_at(self.method.root, node.target)
                for node in self.graph.find_nodes(op="get_attr")}


class Traced(ScriptModule):
    """The result of :func:`trace` and :func:`trace_module` for a module: its parameters and buffers, and graphs.

    The mode at the time of tracing is part of the graph: ``train`` and ``eval`` change nothing.
    """

    def __init__(self, original=None, name=None):
        super().__init__()
        object.__setattr__(self, "_traced", {})
        self.original_name = type(original).__name__ if name is None else name
        if original is not None:
            _copy_tensors(original, self)
            self.training = original.training

    def add(self, name, method):
        self._traced[name] = method.bound(self)
        for node in method.graph.find_nodes(op="get_attr"):     # tensors of the graph that are not the module's
            if not _has(self, node.target):
                assign(attribute_at(method.module, node.target), self, node.target)
                if node.target in self._buffers:                # a constant of the graph, which is no state
                    self._non_persistent_buffers_set.add(node.target)

    def _jit_method(self, name):
        return self._traced.get(name)

    def _jit_as_script(self):
        """The ScriptModule by which scripted modules call this one; it shares the tensors."""
        from ptcore.jit._script.traced import script_of_module
        return script_of_module(self, self._traced)

    def forward(self, *args, **kwargs):
        method = self._traced.get("forward")
        if method is None:
            raise NotImplementedError(f"forward of {self.original_name} was not traced")
        return method(*args, **kwargs)

    def __getattr__(self, name):
        found = self.__dict__.get("_traced", {}).get(name)
        return super().__getattr__(name) if found is None else found

    def __deepcopy__(self, memo):
        made = Traced(name=self.original_name)
        memo[id(self)] = made
        vars(made).update({key: copy.deepcopy(x, memo) for key, x in vars(self).items() if key != "_traced"})
        for name, method in self._traced.items():
            made._traced[name] = method.bound(made)
        return made

    def __reduce_ex__(self, protocol):
        raise TypeError("a ScriptModule is not pickled; jit.save writes it")

    def _get_name(self):
        return "TopLevelTracedModule"

    def extra_repr(self):
        return f"original_name={self.original_name}"


def _has(module, path):
    try:
        attribute_at(module, path)
    except AttributeError:
        return False
    return True


def traced(name, function, args, kwargs, root, names, strict):
    """Traces one call.

    Parameters
    ----------
    root : Module
        The module in which the graph looks up tensors.
    names : dict
        Ids of tensors of root and their names there.
    """
    given, parameters = _by_name(name, function, args, kwargs)
    leaves, in_spec = tree_flatten(given)
    for k, x in enumerate(leaves):
        if not isinstance(x, Tensor):
            raise RuntimeError(f"trace: the arguments must be tensors, in tuples, lists or dictionaries, got a "
                               f"{type(x).__name__} (leaf {k}); bind it by a lambda")
    tracer = _Tracer(root, names)
    labels = _labels(parameters, given)
    nodes = [tracer.graph._add("placeholder", label, (), {}, label) for label in labels]
    inside = [tracer.input(x, node) for x, node in zip(leaves, nodes)]
    values = tree_unflatten(inside, in_spec)
    positional, named = values[:len(args)], dict(zip(parameters[len(args):], values[len(args):]))
    with tracer:
        result = function(*positional, **named)
        found, out_spec = tree_flatten(result)
        for x in found:
            if not isinstance(x, Tensor):
                raise RuntimeError(f"trace: only tensors, and tuples, lists and dictionaries of them, can be "
                                   f"results of a traced program, got {type(x).__name__}")
        _check_nesting(result, strict)
        outs = [tracer.argument(x)[1] for x in found]
        tracer.move_arguments(inside, nodes)
        tracer.env.check_guards()
    tracer.graph.output(tuple(outs))
    tracer.graph.eliminate_dead_code(Node.must_run)
    return TracedMethod(name, GraphModule(root, tracer.graph), parameters, in_spec, out_spec)


def _check_nesting(result, strict):
    if strict and isinstance(result, dict):
        raise RuntimeError("Encountering a dict at the output of the tracer might cause the trace to be incorrect: its "
                           "keys are those of this call. Return a tuple or a NamedTuple, or pass strict=False to "
                           "trace()")


def _by_name(name, function, args, kwargs):
    """The arguments in the order of the parameters, as a tuple, and the parameters' names."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        signature = None
    if kwargs and signature is None:
        raise RuntimeError(f"trace: {name} has no signature by which example_kwarg_inputs could be placed")
    if signature is None or any([p.kind == p.VAR_POSITIONAL for p in signature.parameters.values()]):
        return (*args, *kwargs.values()), [*[f"arg{k}" for k in range(len(args))], *kwargs]
    places = {name: k for k, name in enumerate(signature.parameters)}
    kwargs = dict(sorted(kwargs.items(), key=lambda item: places.get(item[0], len(places))))
    names = [p.name for p in signature.parameters.values() if p.kind != p.VAR_KEYWORD][:len(args)]
    if len(names) < len(args):
        raise RuntimeError(f"trace: {name} takes {len(names)} arguments, got {len(args)}")
    return (*args, *kwargs.values()), [*names, *kwargs]


def _labels(parameters, given):
    """A name for each tensor among the arguments."""
    labels = []
    for name, x in zip(parameters, given):
        n = len(tree_flatten(x)[0])
        labels += [name] if isinstance(x, Tensor) else [f"{name}_{k}" for k in range(n)]
    return labels


def _named_tensors(module):
    return {id(x): name for name, x in [*module.named_parameters(remove_duplicate=False),
                                        *module.named_buffers(remove_duplicate=False)]}


def trace(func, example_inputs=None, optimize=None, check_trace=True, check_inputs=None, check_tolerance=1e-5,
          strict=True, _force_outplace=False, _module_class=None, _compilation_unit=None, example_kwarg_inputs=None,
          _store_inputs=True) -> Any:
    """The graph of the rows that one call of a function or module runs, as a function or module.

    The graph also runs on arguments of other sizes. Branches, loops and values that the program reads are those of this
    call: reading a value warns, and conditions on sizes are checked at each run. The graph keeps ``detach()``, but no
    ``no_grad()`` block, as in PyTorch: gradients flow through what such a block computes.

    Parameters
    ----------
    func : callable or Module
        Takes and returns tensors, and tuples, lists and dictionaries of them.
    example_inputs : Tensor or tuple
        The arguments.
    example_kwarg_inputs : dict, optional
        Arguments by name.
    check_trace : bool, default: True
        Whether the traced program is run beside ``func``, and compared.
    check_inputs : list of tuple, optional
        More arguments to compare with.
    check_tolerance : float, default: 1e-5
        Relative and absolute.
    strict : bool, default: True
        Whether a dictionary as the result is refused.
    optimize, _force_outplace, _module_class, _compilation_unit, _store_inputs
        Accepted for programs of PyTorch; not used.

    Returns
    -------
    ScriptFunction or ScriptModule
        With ``graph``, ``code`` and ``save``.

    Raises
    ------
    RuntimeError
        If arguments or results are no tensors.
    TracingCheckError
        If the traced program gives other results than ``func``.

    Warns
    -----
    TracerWarning
        Where the program reads the value of a tensor.

    Examples
    --------
    >>> import ptcore
    >>> traced = ptcore.jit.trace(lambda x: (x * x).sum(0), ptcore.ones(2, 3))
    >>> traced(ptcore.ones(5, 1))
    tensor([5.])
    """
    if isinstance(func, Traced):
        return func
    args = _as_arguments("example_inputs", example_inputs, example_kwarg_inputs)
    kwargs = dict(example_kwarg_inputs or {})
    if isinstance(func, Module):
        made = trace_module(func, {"forward": args}, None, check_trace, None, check_tolerance, strict,
                            example_inputs_is_kwarg=False, _kwargs=kwargs)
        if check_trace:
            for more in check_inputs or ():
                _check(func, made, _as_arguments("check_inputs", more, None), {}, check_tolerance)
        return made
    if not callable(func):
        raise TypeError(f"trace: func must be callable, got {type(func).__name__}")
    owner, names = getattr(func, "__self__", None), {}
    root = Module()
    if isinstance(owner, Module):           # tensors of a method's module keep their names
        names = _named_tensors(owner)
        _copy_tensors(owner, root)
    name = getattr(func, "__name__", type(func).__name__)
    made = TracedFunction(traced(name, func, args, kwargs, root, names, strict), func)
    if check_trace:
        _check(func, made, args, kwargs, check_tolerance)
        for more in check_inputs or ():
            _check(func, made, _as_arguments("check_inputs", more, None), {}, check_tolerance)
    return made


def _as_arguments(what, inputs, kwargs):
    if inputs is None:
        if kwargs is None:
            raise RuntimeError("trace: example_inputs or example_kwarg_inputs must be given")
        return ()
    if isinstance(inputs, Tensor) or isinstance(inputs, dict):
        return (inputs,)
    if not isinstance(inputs, (tuple, list)):
        raise TypeError(f"trace: {what} must be a tuple of tensors, got {type(inputs).__name__}")
    return tuple(inputs)


def trace_module(mod, inputs, optimize=None, check_trace=True, check_inputs=None, check_tolerance=1e-5, strict=True,
                 _force_outplace=False, _module_class=None, _compilation_unit=None, example_inputs_is_kwarg=False,
                 _store_inputs=True, _kwargs=None) -> Any:
    """Traces methods of a module, each with arguments of its own.

    Parameters
    ----------
    mod : Module
    inputs : dict
        Names of methods and their arguments: a tensor or a tuple.
    example_inputs_is_kwarg : bool, default: False
        Whether the arguments are dictionaries of arguments by name.
    optimize, check_trace, check_inputs, check_tolerance, strict
        As for :func:`trace`; ``check_inputs`` is a list of dictionaries like ``inputs``.

    Returns
    -------
    ScriptModule

    Examples
    --------
    >>> import ptcore
    >>> layer = ptcore.nn.Linear(2, 3)
    >>> traced = ptcore.jit.trace_module(layer, {"forward": ptcore.ones(1, 2)})
    >>> traced(ptcore.ones(4, 2)).shape
    ptcore.Size([4, 3])
    """
    if not isinstance(mod, Module):
        raise AttributeError(f"trace_module: mod must be a Module, got {type(mod).__name__}")
    if not isinstance(inputs, dict):
        raise AttributeError(f"trace_module: inputs must be a dict of method names, got {type(inputs).__name__}")
    made = Traced(mod)
    names = _named_tensors(mod)
    for method, given in inputs.items():
        function = mod if method == "forward" else getattr(mod, method)
        if example_inputs_is_kwarg:
            args, kwargs = (), dict(given)
        else:
            args, kwargs = _as_arguments("inputs", given, None), dict(_kwargs or {})
        signature = mod.forward if method == "forward" else function

        def call(*a, _function=function, **k):
            return _function(*a, **k)
        call.__signature__ = inspect.signature(signature)
        root = Module()
        _copy_tensors(mod, root)
        with _kept_buffers(mod, check_trace):
            found = traced(method, call, args, kwargs, root, names, strict)
        made.add(method, found)
        if check_trace:
            _check(function, getattr(made, method), args, kwargs, check_tolerance, mod)
            for more in check_inputs or ():
                if method in more:
                    _check(function, getattr(made, method), _as_arguments("check_inputs", more[method], None), {},
                           check_tolerance, mod)
    return made


class _kept_buffers:
    """A block that restores a module's buffers at its end, unless ``keep`` is False."""

    def __init__(self, module, keep):
        self.module, self.keep = module, keep

    def __enter__(self):
        self.before = [(b, b.clone()) for b in self.module.buffers()] if self.keep else []

    def __exit__(self, *exc):
        with no_grad():
            for b, value in self.before:
                b.copy_(value)


def _copy_tensors(module, root):
    """Lets a module have the parameters and buffers of another one, under the same names."""
    persistent = {*module.state_dict(keep_vars=True)}
    for name, x in [*module.named_parameters(remove_duplicate=False), *module.named_buffers(remove_duplicate=False)]:
        assign(x, root, name)
        if not isinstance(x, ptcore.nn.Parameter) and name not in persistent:
            *path, last = name.split(".")
            root.get_submodule(".".join(path))._non_persistent_buffers_set.add(last)


def _check(function, made, args, kwargs, tolerance, module=None):
    """Runs the program and its trace, and compares the results."""
    state = get_rng_state()

    def run(f):
        set_rng_state(state)
        with no_grad(), _kept_buffers(module or Module(), module is not None):
            return tree_flatten(f(*tree_map(lambda x: x.detach().clone(), args),
                                  **tree_map(lambda x: x.detach().clone(), kwargs)))[0]
    try:
        want, got = run(function), run(made)       # their warnings are shown: filters belong to all threads
    finally:
        set_rng_state(state)
    if len(want) != len(got):
        raise TracingCheckError(f"trace: the traced program gives {len(got)} results, the program {len(want)}")
    for k, (w, g) in enumerate(zip(want, got)):
        if w.shape != g.shape or w.dtype != g.dtype:
            raise TracingCheckError(f"trace: result {k} of the traced program has shape {list(g.shape)} and dtype "
                                    f"{g.dtype}, the program's {list(w.shape)} and {w.dtype}")
        if w.dtype.name.startswith("float8"):           # which has no differences
            w, g = w.float(), g.float()
        if w.dtype.kind in "fc":
            if not ptcore.allclose(g, w, rtol=tolerance, atol=tolerance, equal_nan=True):
                raise TracingCheckError(f"trace: result {k} of the traced program differs from the program's by up to "
                                        f"{float((g - w).abs().nan_to_num().max())}; it depends on values that were "
                                        "read, or on a state outside of it")
        elif not ptcore.equal(g, w):
            raise TracingCheckError(f"trace: result {k} of the traced program differs from the program's")


@when_profiled
def _record_runs(begins):
    """Lets runs of traced functions be recorded as ranges of a profile."""
    from ptcore.autograd.ranges import exchange
    exchange(begins, TracedMethod, "__call__", lambda self: self.name)
