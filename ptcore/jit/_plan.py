"""Running a graph of rows as a plan: one C function over kernels that were looked up beforehand.

The first call with tensors of new sizes runs the graph op by op without its kernels, and records which kernels would
run on which memory (``ptcore._ops.plan``). Where a step reads values, the kernels run as well. The record runs then and
in later calls. A row whose work is written in Python or that reads values is no kernel: it stays a call from Python
between two parts of the plan.
"""
import threading

from ptcore._ops.plan.plan import Plan, SharedMemory, can_plan
from ptcore._random import get_states, set_states
from ptcore._state import no_grad
from ptcore._tensor import Tensor
from ptcore._trees.tree import tree_flatten, tree_leaves, tree_map
from ptcore.fx.node import Node, attribute_at, map_arg
from ptcore.jit.passes import Memory, argument_key, changes_dims, row_of

__all__ = ["Planned", "Program"]

MOST_PLANS = 16                     # limit for one graph, with different sizes


class Other:
    """A call from Python between two parts of a plan: the function, its tensors, and the memory that it allocates."""

    __slots__ = ("args", "function", "kwargs", "lent", "looks")

    def __init__(self, function, args, kwargs, lent, looks):
        self.function, self.args, self.kwargs, self.lent = function, args, kwargs, lent
        self.looks = looks              # of each result: the sizes, strides, dtype and device that later steps rely on

    @property
    def spots(self):
        return [x.spot for x in tree_leaves((self.args, self.kwargs)) if type(x) is Where]

    def run(self, plan):
        def value(x):
            return plan.tensor(x.spot) if type(x) is Where else x
        result = self.function(*tree_map(value, self.args), **tree_map(value, self.kwargs))
        results = results_of(result)
        if list(map(look_of, results)) != self.looks:
            raise RuntimeError(f"{getattr(self.function, '__name__', self.function)}: its results have other sizes, "
                               "strides, dtypes or devices than for such arguments before; sizes that depend on "
                               "values have no plan")
        for buffer, x in zip(self.lent, results):
            if buffer is not None:
                plan.bind_tensor(buffer, x)


def results_of(result):
    """The results of a call as a sequence; a custom op that only writes has none."""
    return () if result is None else result if isinstance(result, (tuple, list)) else (result,)


def look_of(x):
    return x.shape, x.stride(), x.dtype, x.device


def has_known_sizes(node, given, named):
    """Whether a custom op's sizes follow from the sizes of its arguments: then its fake runs on meta tensors."""
    own = row_of(node)
    if own is None or own.kind != "custom" or not own.definition.schema.returns:
        return True
    try:
        node.target(*tree_map(on_meta, given), **tree_map(on_meta, named))
    except NotImplementedError:
        return False
    return True


def is_window(node):
    """Whether a node shows named places of a storage."""
    own = row_of(node)
    return own is not None and own.name in ("as_strided", "as_strided_of")


def on_meta(x):
    return x.detach().to("meta") if isinstance(x, Tensor) else x


class Where:
    """The place of a tensor among the arguments of a call."""

    __slots__ = ("spot",)

    def __init__(self, spot):
        self.spot = spot


class Refused(Exception):
    """Raised for a graph of which no plan can be made."""


class Program:
    """The parts of a graph of rows: its inputs, the attributes that it reads, its calls and its output.

    Attributes
    ----------
    placeholders, attributes, calls : list of Node
    written : set of int
        The tensors, of ``tensors``, that the graph writes to; known after the first plan.
    refused : str or None
        Why it is no program of rows.
    writes_outside : bool
        Whether the graph may write to its arguments or to tensors of its module.
    """

    def __init__(self, module, root=None):
        self.module, self.refused, self.written = module, None, set()
        self.root = module if root is None else root            # the module in which attributes are looked up
        nodes = list(module.graph.nodes)
        self.placeholders = [n for n in nodes if n.op == "placeholder"]
        self.attributes = [n for n in nodes if n.op == "get_attr"]
        self.calls = [n for n in nodes if n.op == "call_function"]
        # These functions are no rows: they change what is recorded for gradients, and a plan has no history.
        self.sets_mode = any([getattr(n.target, "sets_mode", False) for n in self.calls])
        self.makes_leaves = any([getattr(n.target, "makes_leaves", False) for n in self.calls])
        output = module.graph.output_node()
        self.output = output.args[0]
        for node in nodes:
            if node.op not in ("placeholder", "get_attr", "call_function", "output"):
                self.refused = f"{node} calls a {node.op.partition('_')[2]}"
            elif changes_dims(node):
                self.refused = f"{node} changes the dims of a tensor in place"
        memory = Memory(nodes)
        outside = {memory.group(n) for n in (*self.placeholders, *self.attributes)}
        if not getattr(module, "meta", {}).get("placed") and any([
                is_window(n) and memory.group(n) in outside for n in self.calls]):
            self.refused = "as_strided of an argument names places of its storage, which a plan does not tell apart"
        self.writes_outside = any([memory.group(n) in memory.written for n in (*self.placeholders, *self.attributes)])
        self.last_use = {}
        for node in [*self.calls, output]:
            for x in node.all_input_nodes:
                self.last_use[x] = node

    def tensors(self, args):
        """The tensors among the arguments, then those that the graph reads of its module."""
        if len(args) != len(self.placeholders):
            raise TypeError(f"the graph takes {len(self.placeholders)} arguments, got {len(args)}")
        found = [x for x in args if isinstance(x, Tensor)]
        for node in self.attributes:
            x = attribute_at(self.root, node.target)
            if not isinstance(x, Tensor):
                raise TypeError(f"{node.target} of the module must be a Tensor, as it was when the graph was made, got "
                                f"{type(x).__name__}")
            found.append(x)
        return found

    def is_alone(self, args, tensors):
        """Whether all arguments are tensors."""
        return len(tensors) == len(args) + len(self.attributes)

    def places(self, args, tensors):
        """(arguments, attributes) with their tensors replaced by ``tensors``."""
        order = iter(tensors)
        return [next(order) if isinstance(x, Tensor) else x for x in args], list(order)

    def run(self, args, attributes, after=None):
        """Runs the nodes of the graph. ``after(node, args, kwargs, result)`` is called behind each call."""
        env = dict(zip(self.placeholders, args))
        env.update(zip(self.attributes, attributes))
        for node in self.calls:
            given = map_arg(node.args, env.__getitem__)
            named = {key: map_arg(x, env.__getitem__) for key, x in node.kwargs.items()}
            env[node] = result = node.target(*given, **named)
            if after is not None:
                after(node, given, named, result)
            for x in node.all_input_nodes:
                if self.last_use[x] is node:
                    del env[x]
        return map_arg(self.output, env.__getitem__) if self.output is not None else None


class Planned:
    """A graph of rows that runs as plans. Its results have no history.

    Parameters
    ----------
    module : GraphModule
    fuse : bool, default: True
    is_inner : bool, default: False
        Whether no user gets the results.

    Attributes
    ----------
    refused : str or None
        Why no plan can be made: the graph is run op by op instead.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.fx.experimental.proxy_tensor import make_fx
    >>> from ptcore.jit._plan import Planned
    >>> f = Planned(make_fx(lambda x: (x + 1).relu().sum())(ptcore.ones(3)))
    >>> f(ptcore.tensor([-2., 1., 3.])), f(ptcore.tensor([-2., 0., 0.]))
    (tensor(6.), tensor(2.))
    """

    def __init__(self, module, fuse=True, is_inner=False):
        self.program = module if isinstance(module, Program) else Program(module)
        self.fuse, self.is_inner, self.refused = fuse, is_inner, self.program.refused
        self._plans, self.shows_inputs = [], False
        self._lock = threading.Lock()
        # Plans that can run at once when all arguments are tensors: results are a tuple of tensors, and no call from
        # Python lies between two parts.
        output = self.program.output
        self.is_flat = type(output) is tuple and all([isinstance(x, Node) for x in output])
        self.quick = []                 # plans for calls of tensors alone

    @property
    def plans(self):
        """The plans made so far, the one used last first."""
        return [plan for _, plan, _, _ in self._plans]

    @property
    def simple_plans(self):
        """The plans without a call from Python between two parts."""
        return [plan for _, plan, others, _ in self._plans if not others]

    def __call__(self, *args):
        return self.call(args, self.program.tensors(args))

    def call(self, args, tensors):
        """Runs the graph; ``tensors`` are those among the arguments, then those of the module."""
        numbers = key_of_numbers(args)
        plans = self._plans
        for k, (known, plan, others, nested) in enumerate(plans):
            results = self._run(plan, others, tensors) if known == numbers else None
            if results is not None:
                if k:                   # another list, since other threads may go through this one
                    self._plans = [plans[k], *plans[:k], *plans[k + 1:]]
                return nested(results)
        if (self.refused is not None or len(plans) >= MOST_PLANS or not can_plan(tensors)
                or (self.shows_inputs and any([x.requires_grad for x in tensors]))):
            return self._op_by_op(args, tensors)
        with self._lock, no_grad():
            return self._record(args, tensors, numbers)

    def _op_by_op(self, args, tensors):
        with no_grad():
            return self.program.run(*self.program.places(args, tensors))

    @staticmethod
    def _run(plan, others, tensors):
        """The results of a plan, or None if it cannot take the tensors now."""
        if not others:
            return plan.attempt(tensors)
        order = iter(others)

        def run_next():
            with no_grad():
                next(order).run(plan)
        return plan.attempt(tensors, run_next)

    def _record(self, args, tensors, numbers):
        """Makes a plan, and gives its first results."""
        plan, nested = self._recorded_dry(args, tensors)
        if plan is not None and plan.shows_inputs and any([x.requires_grad for x in tensors]):
            self.shows_inputs = True        # a result is a view of a leaf, which a plan does not make
            return self._op_by_op(args, tensors)
        if plan is not None:
            states = get_states()
            try:
                result = nested(plan(tensors))
            except Exception:           # the run node by node raises it again
                if self.program.writes_outside:
                    raise
                set_states(states)
            else:
                self._add(plan, [], nested, args, tensors, numbers)
                return result
        return self._recorded(args, tensors, numbers)

    def _recorded_dry(self, args, tensors):
        """A plan made without values, or None where a step reads a value."""
        plan, states = Plan(), get_states()

        def after(*_):
            if plan.spoilt is not None:
                raise Refused(plan.spoilt)
        try:
            plan.begin(tensors, True)
            flat, nested = flatten(self.program.run(*self.program.places(args, tensors), after))
            plan.end(flat, tensors, self.fuse, self.is_inner)
        except Exception:
            return None, None
        finally:
            plan.stop()
            set_states(states)
        return plan, nested

    def _add(self, plan, others, nested, args, tensors, numbers):
        self._plans = [(numbers, plan, others, nested), *self._plans]
        if self.is_flat and not others and self.program.is_alone(args, tensors):
            self.quick.append(plan)
        self.program.written.update(plan.writes)

    def _recorded(self, args, tensors, numbers):
        """Runs the graph node by node, makes a plan of this run, and returns its results."""
        plan, others = Plan(), []
        try:
            plan.begin(tensors)
        except SharedMemory:
            return self.program.run(*self.program.places(args, tensors))
        try:
            result = self._run_nodes(plan, others, args, tensors)
            flat, nested = flatten(result)
            plan.end(flat, tensors, self.fuse, self.is_inner)
            self._add(plan, others, nested, args, tensors, numbers)
        except Refused as e:
            self.refused = str(e)
            result = e.result
        finally:
            plan.stop()
        return result

    def _run_nodes(self, plan, others, args, tensors):
        length, refused = 0, None

        def after(node, given, named, result):
            nonlocal length, refused
            if refused is None and plan.spoilt is not None:
                known = has_known_sizes(node, given, named)
                plan.cut(length)
                if not known:
                    refused = Refused(f"{node} gives tensors whose sizes depend on values")
                    return
                try:
                    other = self._other(plan, node, given, named, result)
                    others.append(other)
                    plan.pause(other.spots)
                except Refused as e:
                    refused = e
            length = len(plan)
        result = self.program.run(*self.program.places(args, tensors), after)
        if refused is not None:
            refused.result = result
            raise refused
        return result

    @staticmethod
    def _other(plan, node, given, named, result):
        def place(x):
            return Where(plan.spot(x)) if isinstance(x, Tensor) else x
        results = results_of(result)
        if any([not isinstance(x, Tensor) for x in results]):
            raise Refused(f"{node} gives a value that is no tensor")
        args, kwargs = tree_map(place, given), tree_map(place, named)
        inside = {id(x) for x in tree_leaves((given, named)) if isinstance(x, Tensor)}
        return Other(node.target, args, kwargs, [None if id(x) in inside else plan.lend(x) for x in results],
                     list(map(look_of, results)))


def key_of_numbers(args):
    """The arguments of a graph that are no tensors, with their places, types and signs of zero, to be compared."""
    return tuple([None if isinstance(x, Tensor) else argument_key(x) for x in args])


def flatten(result):
    """The leaves of a result, and the function that builds the result of other leaves."""
    leaves, spec = tree_flatten(result)
    return leaves, first_of if spec.is_leaf() else spec.unflatten


def first_of(values):
    return values[0]
