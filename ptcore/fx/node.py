"""``Node``: one operation of a graph; ``map_arg`` and ``map_aggregate`` go through its arguments."""
import builtins
import functools
import inspect
import operator
import traceback
import types
from typing import NamedTuple

from ptcore._dtype import dtype as _dtype
from ptcore._dtype import shown_as
from ptcore._ops import function as function_of_row
from ptcore._ops import row
from ptcore._ops.functions import add
from ptcore._ops.table.ids import op_name
from ptcore._ops.table.signature import parameters as signature_parameters
from ptcore._tensor import Tensor
from ptcore.fx.immutable_collections import immutable_dict, immutable_list

__all__ = ["Node", "has_side_effect", "map_aggregate", "map_arg"]

OpFunction = type(add)              # the type of functions of rows
OPS = ("placeholder", "call_method", "call_module", "call_function", "get_attr", "output", "root")
# Functions whose calls are kept although their results are unused.
_effects = {builtins.print}


def has_side_effect(fn):
    """Marks a function, also as a decorator: its calls are kept although their results are unused."""
    _effects.add(fn)
    return fn


def map_aggregate(a, fn):
    """Applies ``fn`` to each leaf of an argument, inside tuples, lists, dictionaries and slices."""
    if isinstance(a, tuple):
        items = [map_aggregate(x, fn) for x in a]
        return type(a)(*items) if hasattr(a, "_fields") else tuple(items)
    if isinstance(a, list):
        return immutable_list([map_aggregate(x, fn) for x in a])
    if isinstance(a, dict):
        return immutable_dict({key: map_aggregate(x, fn) for key, x in a.items()})
    if isinstance(a, slice):
        return slice(map_aggregate(a.start, fn), map_aggregate(a.stop, fn), map_aggregate(a.step, fn))
    return fn(a)


def map_arg(a, fn):
    """Applies ``fn`` to each Node in an argument; other leaves stay.

    Examples
    --------
    >>> from ptcore.fx import Graph
    >>> from ptcore.fx.node import map_arg
    >>> graph = Graph()
    >>> x = graph.placeholder("x")
    >>> map_arg((x, [x, 2]), lambda node: node.name)
    ('x', ['x', 2])
    """
    if not callable(fn):
        raise AssertionError("map_arg: fn must be callable")
    return map_aggregate(a, lambda x: fn(x) if isinstance(x, Node) else x)


def name_of_function(function):
    """An expression that names a function: of its module, or a builtin's own name."""
    if getattr(builtins, getattr(function, "__name__", ""), None) is function:
        return function.__name__
    if isinstance(function, (types.MethodDescriptorType, types.WrapperDescriptorType)):
        return f"{function.__objclass__.__module__}.{function.__objclass__.__name__}.{function.__name__}"
    module = getattr(function, "__module__", None) or "builtins"
    module = {"_operator": "operator", "ptcore._ops.functions": "ptcore"}.get(module, module)
    name = getattr(function, "__qualname__", function.__name__)
    return f"{module}.{name}"


class Node:
    """One operation of a graph.

    Attributes
    ----------
    op : str
        "placeholder" (an argument), "get_attr" (a parameter or another attribute of the root), "call_function",
        "call_method", "call_module", or "output".
    name : str
        Unique in the graph.
    target : str or callable
        The called or looked-up object, or its name.
    args, kwargs : tuple, dict
        Nodes, numbers, strings, tuples, lists, dictionaries of them; they are set, not written to.
    users : dict
        The nodes that use this one, in order.
    meta : dict
        Notes of tracers and passes about the node.
    type : object
        An annotation, or None.
    blocks : tuple of Graph
        Closed graphs that the target is called with, of the functions in ``blocks.py``; empty for all others.
    """

    def __init__(self, graph, name, op, target, args, kwargs, return_type=None):
        if op not in OPS:
            raise AssertionError(f"op must be one of {OPS}, got {op!r}")
        if op == "call_function":
            if not callable(target):
                raise ValueError(f"Node {name}: the target of a call_function must be callable, got "
                                 f"{type(target).__name__}")
        elif not isinstance(target, str):
            raise ValueError(f"Node {name}: the target of a {op} must be a str, got {type(target).__name__}")
        self.graph, self.name, self.op, self.target, self.type = graph, name, op, target, return_type
        self.blocks = ()
        self.users, self.meta = {}, {}
        self._input_nodes, self._args, self._kwargs = {}, (), {}
        self._prev = self._next = self
        self._erased = False
        self._set(args, kwargs)

    def _set(self, args, kwargs):
        """Sets other arguments, and updates the users of their nodes."""
        for old in self._input_nodes:
            old.users.pop(self, None)
        self._input_nodes = {}

        def use(node):
            self._input_nodes.setdefault(node)
            node.users.setdefault(self)
            return node
        self._args = tuple([map_arg(a, use) for a in args])
        self._kwargs = immutable_dict({key: map_arg(a, use) for key, a in kwargs.items()})

    @property
    def args(self):
        return self._args

    @args.setter
    def args(self, a):
        self._set(a, self._kwargs)

    @property
    def kwargs(self):
        return self._kwargs

    @kwargs.setter
    def kwargs(self, k):
        self._set(self._args, k)

    @property
    def all_input_nodes(self):
        """The distinct nodes among the arguments."""
        return list(self._input_nodes)

    @property
    def next(self):
        return self._next

    @property
    def prev(self):
        return self._prev

    def prepend(self, x):
        """Moves ``x``, a node of the same graph, to the place before this node."""
        if self.graph is not x.graph:
            raise AssertionError(f"prepend: {x} belongs to another graph")
        if self is x:
            return
        x._unlink()
        before = self._prev
        before._next, x._prev = x, before
        x._next, self._prev = self, x

    def append(self, x):
        """Moves ``x``, a node of the same graph, to the place behind this node."""
        self._next.prepend(x)

    def _unlink(self):
        self._prev._next, self._next._prev = self._next, self._prev

    def update_arg(self, idx, arg):
        """Sets one of the positional arguments."""
        args = list(self.args)
        args[idx] = arg
        self.args = tuple(args)

    def insert_arg(self, idx, arg):
        """Inserts a positional argument."""
        if not 0 <= idx <= len(self.args):
            raise AssertionError(f"insert_arg: idx must be in [0, {len(self.args)}], got {idx}")
        self.args = (*self.args[:idx], arg, *self.args[idx:])

    def update_kwarg(self, key, arg):
        """Sets one of the keyword arguments."""
        self.kwargs = {**self.kwargs, key: arg}

    @property
    def stack_trace(self):
        """Where in the user's program the node was made, or None."""
        trace = self.meta.get("stack_trace")
        if trace is None and "where" in self.meta:          # the text is made of (file, line, function) when it is read
            trace = "".join(traceback.format_list([traceback.FrameSummary(*self.meta["where"])]))
        return trace

    @stack_trace.setter
    def stack_trace(self, trace):
        self.meta["stack_trace"] = trace

    def replace_all_uses_with(self, replace_with, delete_user_cb=lambda user: True, *, propagate_meta=False):
        """Replaces this node by another one in all of its users, and returns them."""
        if propagate_meta:
            if replace_with.meta:
                raise AssertionError(f"replace_all_uses_with: {replace_with} has a meta of its own already")
            replace_with.meta.update(self.meta)
        changed = []
        for user in list(self.users):
            if not delete_user_cb(user):
                continue
            changed.append(user)
            user.replace_input_with(self, replace_with)
        return changed

    def replace_input_with(self, old_input, new_input):
        """Replaces a node by another one in the arguments, at any depth."""
        def other(node):
            return new_input if node is old_input else node
        self._set(map_arg(self.args, other), map_arg(self.kwargs, other))

    def is_impure(self, impure_random=True):
        """Whether the node stays without users: arguments, the output, and calls that write, print or draw.

        The row of an op says whether a call is in place and whether it draws; a method is judged as the method of
        Tensor with its name. Any other function counts as pure, unless it is marked by :func:`has_side_effect`.

        Parameters
        ----------
        impure_random : bool, default: True
            Whether ops that draw are kept.

        Returns
        -------
        bool
        """
        if self.op in ("placeholder", "output") or self.blocks or self.meta.get("effect"):
            return True
        if self.op == "call_function":
            return _is_impure(self.target, self.args, self.kwargs, impure_random)
        if self.op == "call_method":
            method = getattr(Tensor, self.target, None)
            return method is not None and _is_impure(method, self.args, self.kwargs, impure_random)
        if self.op == "call_module":
            module = self.graph.owning_module
            if module is None:
                return False
            return getattr(attribute_at(module, self.target), "_is_impure", False)
        return False

    def must_run(self):
        """Whether the node stays without users in a program of a user: it is impure, or it raises for some values."""
        return self.is_impure() or (self.op == "call_function" and "for_sizes" not in self.meta
                                    and refuses_values(self.target))

    def normalized_arguments(self, root, arg_types=None, kwarg_types=None, normalize_to_only_use_kwargs=False):
        """The arguments bound to the signature of the target, with all defaults.

        Parameters
        ----------
        root : Module
            The module in which submodules are looked up.
        arg_types, kwarg_types : optional
            Not used: a function has one signature.
        normalize_to_only_use_kwargs : bool, default: False
            Give all by name.

        Returns
        -------
        ArgsKwargsPair or None
            None where the call is one of a method, of a module that is not of ``nn``, or of what takes arguments by
            position only or any number of them, and where an op's arguments do not fit it. ``out`` is left out unless
            it is given; NumPy's ``axis`` and ``keepdims`` are called ``dim`` and ``keepdim``.

        Raises
        ------
        TypeError
            If the arguments do not fit a function that is no op, or one of ``nn.functional``.

        Examples
        --------
        >>> import ptcore
        >>> from ptcore.fx import symbolic_trace
        >>> traced = symbolic_trace(lambda x: ptcore.nn.functional.elu(x, 2.0))
        >>> traced.graph.find_nodes(op="call_function")[0].normalized_arguments(traced)
        ArgsKwargsPair(args=(x, 2.0), kwargs={'inplace': False})
        """
        if self.op == "call_function":
            function = self.target
            strict = type(function) is not OpFunction or function.__module__ == "ptcore.nn.functional"
        elif self.op == "call_module":
            try:
                module = root.get_submodule(self.target)
            except AttributeError:
                raise RuntimeError(f"normalized_arguments: root has no module {self.target}") from None
            from ptcore import nn
            if getattr(nn, type(module).__name__, None) is not type(module):
                return None
            function, strict = module.forward, True
        else:
            return None
        try:
            return _by_signature(function, self.args, self.kwargs, normalize_to_only_use_kwargs)
        except TypeError:
            if strict:
                raise
            return None

    def format_node(self, placeholder_names=None, maybe_return_typename=None):
        """A line that describes the node; None for a placeholder, whose name goes to ``placeholder_names``."""
        start = f"%{self.name} : {_arrow(self)}[num_users={len(self.users)}] = {self.op}"
        if self.op == "placeholder":
            text = self.target + (f": {_type_text(self.type)}" if self.type else "")
            if placeholder_names is not None:
                placeholder_names.append(text)
                return None
            default = f"(default={self.args[0]})" if self.args else ""
            return f"{start}[target={self.target}]{default}"
        if self.op == "get_attr":
            return f"{start}[target={self.target}]"
        if self.op == "output":
            return f"return {self.args[0]}"
        target = self.target if isinstance(self.target, str) else name_of_function(self.target)
        if target.startswith("ptcore.") and not isinstance(self.target, str):
            target = f"{shown_as()}.{target.partition('.')[2]}"
        kwargs = "{" + ", ".join([f"{key}: {text_of(x)}" for key, x in self.kwargs.items()]) + "}"
        blocks = "".join([f"\n        {line}" for block in self.blocks for line in str(block).split("\n")])
        return f"{start}[target={target}](args = {text_of(self.args)}, kwargs = {kwargs}){blocks}"

    def __repr__(self):
        return self.name


def _arrow(node):
    return f"{_type_text(node.type)} " if node.type else ""


def _type_text(annotation):
    return getattr(annotation, "__name__", str(annotation)) if inspect.isclass(annotation) else str(annotation)


def text_of(a):
    """An argument for people: nodes with a percent sign."""
    if isinstance(a, Node):
        return f"%{a}"
    if isinstance(a, list):
        return f"[{', '.join(map(text_of, a))}]"
    if isinstance(a, tuple):
        inside = ", ".join(map(text_of, a))
        return f"({inside},)" if len(a) == 1 else f"({inside})"
    if isinstance(a, dict):
        return "{" + ", ".join([f"{key}: {text_of(x)}" for key, x in a.items()]) + "}"
    return repr(a) if isinstance(a, (str, Tensor, _dtype)) else str(a)


class ArgsKwargsPair(NamedTuple):
    """Arguments by position, and by name."""

    args: tuple
    kwargs: dict


def _by_signature(function, args, kwargs, all_by_name):
    signature = inspect.signature(inspect.unwrap(function))
    if any(p.kind not in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY) for p in signature.parameters.values()):
        return None
    without = set()
    if type(function) is OpFunction:                # replaces NumPy's names of arguments by PyTorch's
        second = {p.name: p.second for p in signature_parameters(row(op_name(function.op))) if p.second}
        kwargs = {second.get(name, name): x for name, x in kwargs.items()}
        without = {*second} | ({"out"} - {*kwargs})
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    by_position = 0 if all_by_name else len(args)
    values = [(name, x) for name, x in bound.arguments.items() if name not in without]
    return ArgsKwargsPair(tuple([x for _, x in values[:by_position]]), dict(values[by_position:]))


# -- calls that are kept although they have no users ----------------------------------------------------

_DRAWS = ("bernoulli", "normal", "rand", "rand_like", "randint", "randint_like", "randn", "randn_like", "randperm")
# Methods of Tensor that are called for their effect on the tensor or on a history.
_CALLED_FOR = ("__setitem__", "backward", "module_load", "record_stream", "register_hook",
               "register_post_accumulate_grad_hook", "retain_grad")
_IN_PLACE = frozenset([getattr(operator, name) for name in (
    "delitem", "setitem", "iadd", "iand", "iconcat", "ifloordiv", "ilshift", "imatmul", "imod", "imul", "ior", "ipow",
    "irshift", "isub", "itruediv", "ixor")])


@functools.cache
def _without_rows():
    """Functions of the package that write or draw and are no rows. A trailing "_" marks the in-place ones."""
    import ptcore
    found = [getattr(Tensor, name) for name in _CALLED_FOR] + [getattr(ptcore, name) for name in _DRAWS]
    for space in (Tensor, ptcore.nn.functional):
        found += [getattr(space, name) for name in dir(space) if name.endswith("_") and not name.endswith("__")]
    return frozenset([f for f in found if type(f) is not OpFunction])


def _is_impure(function, args, kwargs, impure_random):
    """Whether a call of a function writes, prints or draws."""
    if getattr(function, "only_checks", False):         # it is kept, and changes nothing
        return bool(impure_random)
    if function in _effects or function in _IN_PLACE or kwargs.get("out") is not None:
        return True
    if type(function) is not OpFunction:
        return function in _without_rows()
    name = op_name(function.op)
    own = row(name)
    if own.mutates:
        return True
    if own.inplace and function is function_of_row(name, True):
        return True
    if own.inplace_argument:
        try:
            if inspect.signature(function).bind(*args, **kwargs).arguments.get("inplace", False) is not False:
                return True
        except TypeError:               # the call itself will raise
            pass
    return bool(impure_random and own.random)


# Rows that refuse some values of their arguments, beside those of the families "index" and "linalg".
_REFUSES = frozenset("cross_entropy_stats nll_loss_stats ctc_loss_stats multi_margin multilabel_margin binned counted "
                     "segments".split())


def refuses_values(function):
    """Whether a function is an op that raises an error for some values of its arguments."""
    if type(function) is not OpFunction:
        return False
    own = row(op_name(function.op))
    return own.family in ("index", "linalg") or own.integers != "any" or own.kind == "custom" or own.name in _REFUSES


def attribute_at(root, path):
    """The attribute of a module at a dotted name; the module itself for an empty name."""
    for name in path.split(".") if path else ():
        root = getattr(root, name)
    return root


def free_name(holder, prefix):
    """The name of a new attribute: ``prefix`` and a number. It is found by few questions, so that many attributes are
    named in little time."""
    used, free = -1, 0
    while hasattr(holder, f"{prefix}{free}"):
        used, free = free, 2 * free + 1
    while free - used > 1:
        middle = (used + free) // 2
        if hasattr(holder, f"{prefix}{middle}"):
            used = middle
        else:
            free = middle
    return f"{prefix}{free}"
