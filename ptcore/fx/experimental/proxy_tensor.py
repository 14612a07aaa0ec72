"""``make_fx``: runs a function once under an interpreter that writes nodes, and gives its graph of rows.

``ProxyTracer`` is the interpreter. Each tensor inside is a stand-in whose payload holds its value and the node that
gives it. Transformations and the backward end in rows as well, so the graph contains them.
"""
import operator
import types

import ptcore
import ptcore._ops as ops
from ptcore._errors import here
from ptcore._interpret import Interpreter, aside, entered
from ptcore._node import user_place
from ptcore._ops.calling import run
from ptcore._ops.table.ids import op_id
from ptcore._state import are_source_lines_kept, is_history_recorded, no_grad
from ptcore._subclass import carried_by, fills_storage, payload_of, stands_for, storage_places
from ptcore._tensor import Tensor
from ptcore._trees.tree import tree_flatten, tree_unflatten
from ptcore.fx._symbolic_trace import _TreesOfGraph
from ptcore.fx.experimental._custom import custom_call
from ptcore.fx.experimental._payloads import Sized, Traced  # noqa: F401
from ptcore.fx.graph import Graph
from ptcore.fx.graph_module import GraphModule
from ptcore.fx.node import Node, free_name
from ptcore.nn.modules.module import Module
from ptcore.nn.parameter import Parameter

__all__ = ["ProxyTracer", "get_proxy_mode", "make_fx"]

INPLACE = 1
MODES = ("real", "fake", "symbolic")


class ProxyTracer(Interpreter):
    """Writes a node for every row that is called while it is on the interpreter stack.

    Parameters
    ----------
    root : Module
        Gets what the graph refers to by name: tensors that the program takes from outside.
    mode : {"real", "fake", "symbolic"}
        Whether values are computed, or only their sizes.
    decompositions : dict
        Functions of rows, or names of rows, and the functions called in their place.
    record_stack_traces : bool
        Whether nodes get the user's line.
    """

    traces = for_later = True           # it changes no value, so rules may call fused rows
    keeps_checks = False                # whether checks of values become nodes of the graph

    def __init__(self, root, mode="real", decompositions=None, record_stack_traces=True):
        self.root, self.mode, self.record_stack_traces = root, mode, record_stack_traces
        self.graph = Graph(tracer_cls=type(self))
        self.decompositions = {op_id(key) if isinstance(key, str) else key.op: f
                               for key, f in (decompositions or {}).items()}
        self.reads = []                 # (kind, tensor) for each read of a value
        self._constants, self._calls = {}, {}
        self._outside, self._written = {}, {}  # modes without values: id -> tensor from outside; storages written to
        self.window = None              # the arguments of the as_strided that runs now
        self.env = None
        if mode == "symbolic":
            from ptcore.fx.experimental import sizes as _sizes
            self.env = _sizes.Sizes(self)

    # -- values and nodes --------------------------------------------------------------------------

    def pair(self, value, node, device=None):
        """Makes the stand-in of a value and the node that gives it."""
        return stands_for(value, Traced(value, node, self, value.device if device is None else device))

    def input(self, x, node):
        """The stand-in of an argument."""
        value = x.detach()
        if self.env is not None:
            s = self.env.input(without_data(value), node, x.device)
        else:
            s = self.pair(value if self.mode == "real" else without_data(value), node, x.device)
        return s.requires_grad_() if x.requires_grad else s

    def argument_of(self, x, node):
        """An argument as the traced function gets it."""
        if isinstance(x, Tensor):
            return self.input(x, node)
        return self.env.number(x, node) if self.env is not None and type(x) is int else x

    def is_traced(self, x):
        return isinstance(x, Tensor) or (self.env is not None and self.env.is_number(x))

    def value(self, x):
        """The value of a stand-in; another tensor is returned unchanged."""
        payload = carried_by(x, self)
        return x if payload is None else payload.tensor

    def detached(self, payload, base):
        """Gives the payload of a detached stand-in its node, and returns it."""
        payload.node = self.node("call_function", DETACH, (base.node,), {}, "detach")
        return payload

    def lift(self, x):
        """The stand-in of a tensor from outside of the program."""
        value, node = self.constant(x)
        return self.pair(value, node, x.device)

    def constant(self, x):
        """The value and the node of a tensor from outside of the program."""
        known = self._constants.get(id(x))
        if known is None:
            kind = "_param_constant" if isinstance(x, Parameter) else "_tensor_constant"
            name = free_name(self.root, kind)
            setattr(self.root, name, x)
            value = x if self.mode == "real" else without_data(x.detach())
            self._outside[id(value)] = x
            known = self._constants[id(x)] = x, value, self.node("get_attr", name, (), {}, name)
        return known[1:]

    def node(self, kind, target, args, kwargs, name):
        made = self.graph._add(kind, target, args, kwargs, name)
        if self.record_stack_traces and are_source_lines_kept():
            place = user_place()
            if place is not None:
                made.meta["where"] = place
        return made

    def argument(self, x):
        """The value, the node and the payload of an argument; a tensor from outside is its own payload."""
        if isinstance(x, Tensor):
            payload = carried_by(x, self)
            if payload is not None:
                return payload.tensor, payload.node, payload
            value, node = self.constant(x)
            return value, node, x
        if isinstance(x, (tuple, list)):
            found = [self.argument(item) for item in x]
            kind = list if isinstance(x, list) else tuple
            return kind([v for v, _, _ in found]), kind([n for _, n, _ in found]), [p for _, _, p in found]
        if self.mode != "real" and isinstance(x, ptcore.device):
            return META, x, x
        if self.env is not None and self.env.is_number(x):
            return x.hint, self.env.node(x), x
        if hasattr(x, "__array_interface__"):
            return self.argument(ptcore.as_tensor(x, device="cpu"))
        return x, x, None

    # -- calls -------------------------------------------------------------------------------------

    def call(self, op, args, out, variant):
        known = self._calls.get(op)
        if known is None:
            own = ops.row(op)
            name = (own.called or own.name).strip(".").replace(".", "_")
            name = f"{name}_backward" if "__d" in own.name else name        # the gradient by one of the operands
            known = self._calls[op] = own, ops.function(op), ops.function(op, True), name, _plain(own)
        own, function, in_place, name, plain = known
        if self.decompositions and op in self.decompositions and out is None and variant != INPLACE:
            with self:
                positional, keyword = ops.bound(own, args)
                return self.decompositions[op](*positional, **keyword)
        if plain and out is None and variant != INPLACE and self.env is None:
            result = self.plain_call(function, name, args)
            if result is not None:
                return result
        if op != WINDOW_OF:             # its node has the arguments that the program gives
            self.window = args[1:] if op == WINDOW else None
        if own.kind == "composite":
            return NotImplemented
        if own.kind == "custom":
            return custom_call(self, own, function, own.definition.schema.name.rpartition(":")[2], args)
        found = [self.argument(x) for x in args]
        values = tuple([v for v, _, _ in found])
        written = found[0][2] if variant == INPLACE else None
        before = written.known_value() if isinstance(written, Traced) else None
        positional, keyword = ops.bound(own, [n for _, n, _ in found])
        if is_history_recorded():
            with no_grad():
                result = self.run(op, own, values, out, variant, keyword)
        else:
            result = self.run(op, own, values, out, variant, keyword)
        if variant == INPLACE:
            if self.env is not None:
                self.env.check_write(own, args)
            self.note_write(values[0])
            node = self.node("call_function", in_place, tuple(positional), keyword, f"{name}_")
            if isinstance(written, Traced):
                written.node = node
                self.note_constant(written, own, op, found, variant, before)
            return args[0]
        if out is None and result is values[0] and isinstance(result, Tensor):
            return args[0]
        if op == WINDOW_OF and self.window is not None:
            function, positional = ops.function(WINDOW), [positional[0], *[self.argument(x)[1] for x in self.window]]
            self.window = None
        node = self.node("call_function", function, tuple(positional), keyword, name)
        if out is not None:
            return out
        device = self.device(found, args) if self.mode != "real" else None
        if isinstance(result, tuple):
            nodes = [self.node("call_function", operator.getitem, (node, k), {}, "getitem") for k in range(len(result))]
            if self.env is not None:
                return self.env.results(own, args, result, nodes, device)
            return tuple([self.result(r, n, device) for r, n in zip(result, nodes)])
        if self.env is not None:
            (s,) = self.env.results(own, args, (result,), [node], device)
        else:
            s = self.result(result, node, device)
        if isinstance(result, Tensor):
            self.note_constant(carried_by(s, self), own, op, found, variant)
        return s

    def plain_call(self, function, name, args):
        """Traces a call of numbers and traced tensors without history. Returns None, and does nothing, for other
        arguments."""
        values, nodes, device = [], [], None
        for x in args:
            if isinstance(x, Tensor):
                x = carried_by(x, self)
                if x is None:
                    return None
                if x.constant is not None:
                    return None
                values.append(x.tensor)
                nodes.append(x.node)
                if device is None or not values[0].ndim:
                    device = x.device
            elif x is None or type(x) is int or type(x) is float or type(x) is bool:
                values.append(x)
                nodes.append(x)
            else:
                return None
        result = function(*values)
        if not isinstance(result, Tensor) or result is values[0]:
            return None
        return self.pair(result, self.node("call_function", function, tuple(nodes), None, name), device)

    def run(self, op, own, values, out, variant, keyword):
        if out is None:
            return run(op, values, variant == INPLACE)
        outs = [self.argument(x) for x in (out if isinstance(out, (tuple, list)) else (out,))]
        positional, named = ops.bound(own, values)
        single = not isinstance(out, (tuple, list))
        for value, _, _ in outs:
            self.note_write(value)
        keyword["out"] = outs[0][1] if single else tuple([n for _, n, _ in outs])
        return ops.function(op)(*positional, **named, out=outs[0][0] if single else tuple([v for v, _, _ in outs]))

    def result(self, x, node, device):
        return self.pair(x, node, device) if isinstance(x, Tensor) else x

    def note_constant(self, payload, own, op, found, variant, before=None):
        """Keeps the value of a small result that depends neither on arguments nor on chance. ``before``: the known
        value of a tensor that is written to."""
        payload.constant = None
        if own.random or payload.tensor.numel() > CONSTANT_NUMEL:
            return
        values = [before] if variant == INPLACE else []
        if values == [None]:
            return
        for value, _, carried in found[len(values):]:
            several = isinstance(carried, list)
            known = [p.known_value() if isinstance(p, Traced) else v if p is None else self.held(p)
                     for p, v in (zip(carried, value) if several else [(carried, value)])]
            if any(p is not None and (k is None or not isinstance(p, (Traced, Tensor, ptcore.device)))
                   for k, p in zip(known, carried if several else [carried])):
                return                  # a symbolic number has no known value
            values.append(tuple(known) if several else known[0])
        self.know(payload, None if self.mode == "real" else values, op, variant)

    def note_write(self, value):
        """Notes a write to outside memory. Modes without values do not write, so its contents become unknown."""
        if self.mode != "real":
            x = self._outside.get(id(value if value._base is None else value._base))
            if x is not None:
                storage = x.untyped_storage()
                self._written[id(storage)] = storage

    def held(self, x):
        """A tensor from outside, or a device; None if a write has made its contents unknown."""
        written = self._written and isinstance(x, Tensor) and id(x.untyped_storage()) in self._written
        return None if written else x

    def know(self, payload, values, op, variant):
        """Sets a payload's constant: the op's result for ``values``, or without values the payload's tensor."""
        if values is None:
            payload.constant = payload.tensor
        elif variant == INPLACE:
            payload.constant = run(op, (values[0].clone(), *values[1:]), True)
        else:
            payload.constant = run(op, tuple([CPU if x is META else x for x in values]))
        payload.count = payload.tensor._version

    def device(self, found, args):
        """The device of a result: that of a device argument, otherwise that of the tensors."""
        tensors = []
        for (_, _, carried), x in zip(found, args):
            if isinstance(x, ptcore.device):
                return x
            tensors += [p for p in (carried if isinstance(carried, list) else [carried])
                        if isinstance(p, (Tensor, Traced))]
        for p in tensors:
            if (p.tensor if isinstance(p, Traced) else p).ndim:
                return p.device
        return tensors[0].device if tensors else ptcore.get_default_device()

    # -- events that are no ops ---------------------------------------------------------------------

    def created(self, kind, x):
        """Makes a stand-in for memory from outside. Where the program copied the memory, each run copies it."""
        value, node = self.constant(x)
        if kind in ("from_numpy", "frombuffer", "from_dlpack"):
            return self.pair(value, node, x.device)
        copied = value.clone()
        s = self.pair(copied, self.node("call_function", ops.function("clone"), (node,), {}, "clone"), x.device)
        if copied.numel() <= CONSTANT_NUMEL and x.device.type == "cpu":
            payload = carried_by(s, self)
            payload.constant, payload.count = copied if self.mode == "real" else x.clone(), copied._version
        return s

    def changed(self, kind, x):
        if kind == "dims":
            raise RuntimeError("make_fx: the program changes the dims of a tensor from outside in place, which a graph "
                               "does not hold; make it an argument" + here())

    def value_check(self, check, args):
        if self.keeps_checks:
            self.node("call_function", check, tuple([self.argument(x)[1] for x in args]), {}, check.__name__)

    def becomes(self, x, view):
        made = carried_by(view, self)
        made.moves = *carried_by(x, self).moves, made.node

    def move_arguments(self, stand_ins, nodes):
        """Changes the dims of arguments in place as the program has done. In the graph this comes last: other nodes of
        an argument see its first dims."""
        for s, node in zip(stand_ins, nodes):
            payload = carried_by(s, self)
            for move in () if payload is None else payload.moves:
                op = getattr(move.target, "op", None)
                function = None if op is None else ops.function(op, True)
                if function is None:
                    raise RuntimeError("make_fx: an op that is decomposed changes the dims of an argument in place")
                node = self.node("call_function", function, (node, *move.args[1:]), move.kwargs, f"{move.name}_")

    def value_read(self, payload):
        """The value of a tensor that the program reads; None refuses the read."""
        return None

    def read(self, kind, x):
        if self.held(x) is None and kind not in ("data_ptr", "format"):
            raise RuntimeError("make_fx: the program reads a tensor from outside that it has written to; without "
                               "values nothing was written. Make it an argument, or trace with real values" + here())
        self.reads.append((kind, x))


def get_proxy_mode():
    """The innermost tracer that writes a graph in this thread, or None."""
    return next((top for top in reversed(entered()) if isinstance(top, ProxyTracer)), None)


def _plain(row):
    """Whether all arguments are given by position and there is one result."""
    return (row.kind in ("elementwise", "structured", "linear", "bilinear", "nondifferentiable") and not row.varargs
            and not row.random and not row.fields and not any([a.keyword_only for a in ops.arguments(row)]))


# as_strided names places of a storage. Its rows are told the strides and the offset of their argument; a graph keeps
# what the program gives.
WINDOW, WINDOW_OF = op_id("as_strided"), op_id("as_strided_of")
DETACH = ops.function("detach")
META, CPU = ptcore.device("meta"), ptcore.device("cpu")


def without_data(x):
    """A tensor of meta with the strides and the offset of x, in a storage of as many places."""
    if fills_storage(x) or payload_of(x) is not None:
        return x.to("meta")
    with aside():
        return ptcore.empty(storage_places(x), dtype=x.dtype, device="meta").as_strided(
            x.shape, x.stride(), x.storage_offset()).detach()


CONSTANT_NUMEL = 1024               # largest number of elements of a kept constant


def make_fx(f, decomposition_table=None, tracing_mode="real", _allow_non_fake_inputs=False, *, pre_dispatch=False,
            record_module_stack=False, _allow_fake_constant=False, _error_on_data_dependent_ops=True,
            record_stack_traces=True, proxy_module_inputs=False, _disable_torch_fn_metadata_mode=False):
    """Wraps ``f``: a call traces it with these arguments, and returns a graph of the rows that were called.

    Backward passes and transformations inside ``f`` are traced as well; the graph holds the rows that they call.

    Parameters
    ----------
    f : callable or Module
        Takes and returns trees (nested tuples, lists, dictionaries) of tensors.
    decomposition_table : dict, optional
        Functions of ops, or names of rows, and the functions that are traced in their place.
    tracing_mode : {"real", "fake", "symbolic"}, default: "real"
        "real" computes all values; "fake" only sizes, strides and dtypes; "symbolic" keeps sizes of arguments as
        symbols, so that the graph runs on other sizes.
    record_stack_traces : bool, default: True
        Whether nodes know the user's line (``node.stack_trace``).
    _allow_non_fake_inputs, pre_dispatch, record_module_stack, _allow_fake_constant, _error_on_data_dependent_ops, \
proxy_module_inputs, _disable_torch_fn_metadata_mode : bool
        Accepted for programs of PyTorch; tensors from outside are constants of the graph in every mode.

    Returns
    -------
    callable
        Takes the arguments of ``f`` and returns a :class:`ptcore.fx.GraphModule`.

    Raises
    ------
    ValueError
        If ``tracing_mode`` is another word.
    RuntimeError
        If the program reads a value that depends on the arguments, as a branch does.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.fx.experimental.proxy_tensor import make_fx
    >>> traced = make_fx(ptcore.func.grad(lambda x: (x * x).sum()))(ptcore.ones(2))
    >>> [node.target.__name__ for node in traced.graph.nodes if node.op == "call_function"]
    ['fill_full', 'expand', 'mul', 'mul', 'add']
    >>> traced(ptcore.tensor([1., 3.]))
    tensor([2., 6.])
    """
    if tracing_mode not in MODES:
        raise ValueError(f"make_fx: tracing_mode must be one of {MODES}, got {tracing_mode!r}")
    if not callable(f):
        raise TypeError(f"make_fx: f must be callable, got {type(f).__name__}")

    def wrapped(*args):
        return _trace(f, args, tracing_mode, decomposition_table, record_stack_traces)
    return wrapped


def _trace(f, args, mode, decompositions, record_stack_traces):
    leaves, spec = tree_flatten(args)
    names = _argument_names(f, len(args))
    root = Module()
    tracer = ProxyTracer(root, mode, decompositions, record_stack_traces)
    graph, given = tracer.graph, []
    counts = [len(tree_flatten(a)[0]) for a in args]
    labels = [f"{name}_{k + 1}" for name, n in zip(names, counts) for k in range(n)]
    for x, label in zip(leaves, labels):
        node = graph._add("placeholder", label, (), {}, label)
        given.append((x, node))
    inside = [tracer.argument_of(x, node) for x, node in given]
    with tracer:
        result = f(*tree_unflatten(inside, spec))
        found, out_spec = tree_flatten(result)
        found = [tracer.argument(x)[1] if tracer.is_traced(x) else x for x in found]
        tracer.move_arguments(inside, [node for _, node in given])
        if tracer.env is not None:
            tracer.env.check_guards()
    nested = any([n != 1 or isinstance(a, (tuple, list, dict)) for n, a in zip(counts, args)])
    if nested:
        graph._trees = trees = _TreesOfGraph(names, spec)
        trees.out_spec = out_spec
        graph.output(found[0] if len(found) == 1 else tuple(found))
    else:
        graph.output(tree_unflatten(found, out_spec))
    graph.eliminate_dead_code(Node.must_run)
    made = GraphModule(root, graph, getattr(f, "__name__", type(f).__name__))
    if tracer.env is not None:
        made.shape_env = tracer.env.env
    return made


def _argument_names(f, n):
    """The names of a function's parameters, or ``arg0``, ``arg1``, ..."""
    code = getattr(f, "__code__", None) if isinstance(f, types.FunctionType) else None
    if code is None or code.co_flags & 0x04 or hasattr(f, "__wrapped__"):
        return [f"arg{k}" for k in range(n)]
    return list(code.co_varnames[:n])
