"""Graphs of script without blocks as plans: the kernels of their calls are recorded once for each choice of sizes.

Such a graph calls functions of tensors and of their sizes. Its inputs are tensors and tensors of its module. The plan
calls the same functions, so results are the same bits. A call that needs gradients runs op by op.
"""
import inspect
import math
import operator

from ptcore._ops.plan.pair import Runner
from ptcore._ops.plan.plan import can_plan
from ptcore._state import is_history_recorded, setting
from ptcore._tensor import Tensor
from ptcore.fx.graph import Graph
from ptcore.fx.graph_module import GraphModule
from ptcore.fx.node import Node, OpFunction, attribute_at, map_arg
from ptcore.jit._backend import places_of
from ptcore.jit._plan import MOST_PLANS, Planned
from ptcore.jit._plan import Program as Rows
from ptcore.jit._script import operations
from ptcore.jit._script.types import TENSOR
from ptcore.nn import Module

__all__ = ["straight"]

LEAST_CALLS = 6                         # a plan of fewer calls costs more than it saves
LEAST_STEPS = 4                         # the same for a plan that runs modules of nn
MOST_VARIANTS = 4

_FIXED = (bool, str, type(None))        # types of arguments that a variant may fix

_SIZES = {"size", "dim", "ndimension", "numel", "nelement", "element_size", "stride", "is_contiguous",
          "is_floating_point", "is_complex"}
_FIELDS = {"shape", "dtype", "device", "ndim", "T", "mT", "H", "mH", "real", "imag"}
_CASTS = {"to", "contiguous", "float", "double", "half", "bfloat16", "int", "long", "bool", "type_as", "new_zeros",
          "new_ones", "new_full"}
_PLAIN = frozenset([f for m in (operator, math) for f in vars(m).values() if callable(f)]) | {
    len, min, max, sum, abs, int, float, round, list, tuple, operations.make_list, operations.shape, operations.stride,
    operations.as_list, operations.item_of_tuple, operations.int_pow, operations.is_none, operations.is_not_none,
    operations.negate, operations.unwrap, operations.number_as, operations.copy_list, operations.min_length}
_PLAIN -= {operator.setitem, operator.delitem}
_IN_PLACE = {f for name, f in vars(operator).items() if name.startswith("i") and hasattr(operator, name[1:])}


def straight(program, graph, owner):
    """A graph that may run as plans, or its ``program`` where it cannot."""
    return program if _Copy(owner).copy(graph) is None else Straight(program, graph, owner)


class Straight:
    """A graph that runs as plans; its program runs it op by op where no plan is possible.

    Attributes
    ----------
    program : Program
    variants : dict
        The variants, by the places and values of arguments that are no tensors.
    """

    def __init__(self, program, graph, owner):
        self.program, self.text, self.results = program, program.text, program.results
        self.graph, self.owner, self.variants = graph, owner, {}

    def __call__(self, *args):
        others = ()
        for k, x in enumerate(args):
            if not isinstance(x, Tensor):
                if type(x) not in _FIXED:               # numbers change too often for a variant each
                    return self.program(*args)
                others += ((k, x),)
        variant = self.variants.get(others)
        if variant is None:
            if len(self.variants) >= MOST_VARIANTS:
                return self.program(*args)
            variant = self.variants[others] = _Variant(self.program, self.graph, self.owner, dict(others))
        return variant(args) if setting("optimized_execution", True) else self.program(*args)


class _Variant:
    """Plans of a graph for fixed values of the arguments that are no tensors."""

    def __init__(self, program, graph, owner, fixed):
        copied = _Copy(owner)
        self.program, self.root, self.fixed = program, Module() if owner is None else owner, fixed
        result = graph.output_node().args[0]
        types = [getattr(x, "type", None) for x in (result if type(result) is tuple else (result,))]
        graph = copied.copy(graph, fixed)
        self.layers, self.is_short = copied.layers, False
        self.paths = [*copied.tensors]
        self.writes = any([_may_write(n) for n in graph.nodes])
        output = graph.output_node()
        self.is_one = types == [TENSOR] and isinstance(output.args[0], Node)
        if self.is_one:
            output.args = ((output.args[0],),)
        self.planned = Planned(Rows(GraphModule(self.root, graph), self.root))
        self.runner = Runner(self.slow)
        self.planned.quick = self.runner.plans
        self.planned.is_flat &= all([t == TENSOR for t in types])
        self.is_quick = self.planned.is_flat and not self.paths

    def __call__(self, args):
        if self.is_short or (self.layers and self.root.training):
            return self.program(*args)
        if self.fixed:
            args = [x for k, x in enumerate(args) if k not in self.fixed]
        try:
            results = self.runner(*args) if self.is_quick else self.slow(*args)
        except Exception:
            if self.writes:
                raise
            results = self.op_by_op(args)           # names the user's line in the error
        return results[0] if self.is_one else results

    def slow(self, *args):
        """A call without a fitting plan, or one that needs gradients."""
        planned = self.planned
        if self.paths and self.runner.sources is None:
            found = places_of(self.root, self.paths)
            self.is_quick = planned.is_flat and found is not None
            if found is not None:
                self.runner.watch(*found)
        tensors = planned.program.tensors(args)
        if (planned.refused is None and can_plan(tensors) and len(planned.plans) < MOST_PLANS
                and not (is_history_recorded() and any([x.requires_grad for x in tensors]))):
            results = planned.call(args, tensors)
            self.is_short = self.layers and all([len(plan) < LEAST_STEPS for plan in planned.plans])
            return results
        return self.op_by_op(args)

    def op_by_op(self, args):
        order = iter(args)
        result = self.program(*[self.fixed[k] if k in self.fixed else next(order)
                                for k in range(len(args) + len(self.fixed))])
        return (result,) if self.is_one else result


class _Copy:
    """Copies a graph for plans, if it may run as one."""

    def __init__(self, owner):
        self.owner, self.layers, self.tensors = owner, False, {}

    def copy(self, source, fixed=None):
        """The copy, with the arguments in ``fixed`` as constants; None where a plan would not pay."""
        graph, env, calls, k = Graph(), {}, 0, 0
        for node in source.nodes:
            if node.op == "placeholder":
                is_fixed = fixed is not None and k in fixed
                env[node] = fixed[k] if is_fixed else graph.placeholder(node.target)
                k += 1
            elif node.op == "get_attr":
                x = attribute_at(self.owner, node.target)
                if isinstance(x, Tensor):
                    env[node] = self.tensor(graph, node.target)
                elif not isinstance(x, Module):
                    return None
            elif node.op == "output":
                if any([n not in env for n in node._input_nodes]):
                    return None
                graph.output(map_arg(node.args[0], env.__getitem__))
            else:
                made = self.call(graph, node, env)
                if made is None:
                    return None
                env[node], n = made
                calls += n
        return graph if calls >= LEAST_CALLS or self.layers else None

    def tensor(self, graph, path):
        if path not in self.tensors:
            self.tensors[path] = graph.get_attr(path)
        return self.tensors[path]

    def call(self, graph, node, env):
        """The copy of a call and the number of steps it counts for; None where a plan cannot contain the call."""
        target, args, n = node.target, node.args, 1
        if self.is_layer(node):
            path = args[0].target
            target, args = _Layer(attribute_at(self.owner, path)), args[1:]
            for name, _ in [*target.module.named_parameters(), *target.module.named_buffers()]:
                self.tensor(graph, f"{path}.{name}")        # so that the plan knows the memory of these tensors
            self.layers = True
        elif node.meta.get("effect") or node.blocks:
            return None
        elif node.op == "call_method" and _is_pure_method(node):
            target, n = getattr(Tensor, target), target not in _SIZES
        elif node.op == "call_function" and _is_pure(node):
            n = _is_tensor(node.type)
        else:
            return None
        try:
            made = graph.call_function(target, map_arg(args, env.__getitem__),
                                       {k: map_arg(a, env.__getitem__) for k, a in node.kwargs.items()})
        except KeyError:                # an argument is a module
            return None
        return made, int(n)

    def is_layer(self, node):
        """Whether a node calls a module of nn that no other module shares."""
        first = node.args[0] if node.op == "call_function" and node.args else None
        return (isinstance(first, Node) and first.op == "get_attr"
                and first.target.partition(".")[0] in vars(self.owner).get("_jit_fixed", ())
                and getattr(node.target, "__module__", "").startswith("ptcore.nn."))


class _Layer:
    """A callable that runs a module as it is."""

    def __init__(self, module):
        self.module = module
        self.__name__ = type(module).__name__

    def __call__(self, *args, **kwargs):
        return self.module.forward(*args, **kwargs)


def _is_tensor(t):
    """Whether a type is a tensor, or a tuple or list of tensors."""
    if t is None or t == TENSOR:
        return t is not None
    return t.kind in ("Tuple", "List", "NamedTuple") and len(t.args) > 0 and all([_is_tensor(x) for x in t.args])


def _is_own(function):
    """Whether a function is an OpFunction, or a Python function of nn.functional."""
    module = getattr(function, "__module__", None) or ""
    return isinstance(function, OpFunction) or (module.startswith("ptcore._ops.") and module.endswith(".functions"))


def _is_pure(node):
    """Whether a call of a function depends on values and sizes of tensors alone."""
    target, args = node.target, node.args
    if target is getattr:
        return len(args) == 2 and args[1] in _FIELDS and _is_tensor(args[0].type)
    if target in _PLAIN:
        return True
    return _is_own(target) and _is_tensor(node.type) and any([_is_tensor(a.type) for a in node._input_nodes])


def _is_pure_method(node):
    first, name = node.args[0] if node.args else None, node.target
    if not isinstance(first, Node) or first.type != TENSOR:
        return False
    if name in _SIZES:
        return True
    return _is_tensor(node.type) and (name in _CASTS or isinstance(getattr(Tensor, name, None), OpFunction))


def _may_write(node):
    """Whether a call may write to one of its arguments."""
    if node.op != "call_function" or isinstance(node.target, _Layer):
        return False
    if node.target in _IN_PLACE or getattr(node.target, "__name__", "").endswith("_") or "out" in node.kwargs:
        return True
    if not _is_own(node.target):
        return False
    return bool(inspect.signature(node.target).bind(*node.args, **node.kwargs).arguments.get("inplace"))
