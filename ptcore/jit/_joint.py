"""Gradients of a graph of rows: a graph of the values, and one of the gradients, each run as a plan.

The engine itself is walked on stand-ins while a tracer writes nodes. So the order of sums, the fused gradients and the
custom Functions are those of an eager backward. The joint graph is then cut in two. The first graph has all nodes that
lead to results, and returns beside the results the values that the second graph needs.
"""
import operator

from ptcore._dtype import get_default_dtype
from ptcore._ops.call.autocast import without
from ptcore._ops.plan.pair import Pair
from ptcore._random import get_states, set_states
from ptcore._state import SavedBy, enable_grad, is_grad_enabled
from ptcore._subclass import carried_by
from ptcore._tensor import Tensor
from ptcore.autograd import grad
from ptcore.fx.experimental.proxy_tensor import ProxyTracer
from ptcore.fx.graph import Graph
from ptcore.fx.graph_module import GraphModule
from ptcore.jit._plan import Planned, first_of, flatten, key_of_numbers
from ptcore.jit.passes import Memory, merge_equal
from ptcore.nn.modules.module import Module

__all__ = ["Joint", "OpByOp"]


PLACE = Tensor()                    # where an argument is a tensor


def looks_of_all(tensors):
    """The facts that a joint graph relies on: the look of each tensor, and the default dtype."""
    return [get_default_dtype(), *[(x.dtype, x.shape, x.stride(), x.requires_grad) for x in tensors]]


class OpByOp(Exception):
    """Raised for a program that cannot be cut in two graphs: a result shows an argument's memory, or the program writes
    to a tensor that requires grad."""


class Joint:
    """A program with the gradients by some of its tensors.

    Parameters
    ----------
    program : Program
    args : tuple
        Arguments of the graph. The sizes, strides and dtypes of tensors are those of all later calls.
    tensors : list of Tensor
        Those among the arguments, then the attributes.

    Raises
    ------
    OpByOp
        If there is no such graph.
    """

    def __init__(self, program, args, tensors):
        self.program = program
        self.needs = [x.requires_grad for x in tensors]
        self.has_random = any([node.is_impure() and not node.is_impure(False)
                               and not hasattr(node.target, "only_checks") for node in program.calls])
        self._trace(args, tensors)
        self.looks = looks_of_all(tensors)
        self.numbers = key_of_numbers(args)
        self.args = [PLACE if isinstance(x, Tensor) else x for x in args]

    def _trace(self, args, tensors, mask=None):
        """Traces the program and its gradients, and cuts the graph in two.

        With ``mask`` the backward has gradients of some results. The return value is then the second graph of this
        choice, or None if it needs what the first graph does not save.
        """
        root = Module()
        tracer = ProxyTracer(root, "fake")
        tracer.keeps_checks = mask is None
        graph = tracer.graph
        primals = [graph._add("placeholder", f"primal_{k}", (), {}, f"primal_{k}") for k in range(len(tensors))]
        inside = [tracer.input(x.detach().requires_grad_(need), node)
                  for x, node, need in zip(tensors, primals, self.needs)]
        with tracer, enable_grad(), SavedBy(()):
            try:
                leaves, self.nested = flatten(self.program.run(*self.program.places(args, inside)))
            except RuntimeError as error:   # such as a write to a leaf
                raise OpByOp(str(error)) from error
            outs = [x for x in leaves if isinstance(x, Tensor)]
            if mask is None:
                self.pair = None
                self.tensor_leaves = [isinstance(x, Tensor) for x in leaves]
                self.constants = [None if isinstance(x, Tensor) else x for x in leaves]
                self.check_memory(tracer, inside, outs)
                self.is_graded = [x.requires_grad for x in outs]
                self.graded = [k for k, is_graded in enumerate(self.is_graded) if is_graded]
                self.simple = len(leaves) == len(outs) and self.nested is first_of
            n = len(graph.nodes)
            tangents, of_tangents = [], []
            graded = self.graded if mask is None else [k for k, is_given in zip(self.graded, mask) if is_given]
            for k in graded:
                tangents.append(graph._add("placeholder", f"tangent_{k}", (), {}, f"tangent_{k}"))
                carried = carried_by(outs[k], tracer)
                of_tangents.append(tracer.pair(carried.tensor.detach(), tangents[-1], carried.device))
            wanted = [x for x, need in zip(inside, self.needs) if need]
            grads = grad([outs[k] for k in graded], wanted, of_tangents, allow_unused=True) if tangents else []
            out_nodes = [tracer.argument(x)[1] for x in outs]
            grad_nodes = [None if g is None else tracer.argument(g)[1] for g in grads]
        nodes = list(graph.nodes)
        return self._cut(root, nodes, n, primals, tangents, out_nodes, grad_nodes, mask)

    def check_memory(self, tracer, inputs, outs):
        """Raises where a result shares memory with another tensor, or a tensor that needs a gradient is written to."""
        carried = [carried_by(x, tracer) for x in (*inputs, *outs)]
        memory = [p.tensor.untyped_storage() for p in carried if p is not None]
        if len({id(s) for s in memory}) < len(memory):
            raise OpByOp("a result shows the memory of an argument or of another one")
        if any([x.requires_grad and x.grad_fn is None for x in outs]):
            raise OpByOp("a result is a view without history of a tensor with one, and so a leaf")
        if any([p.tensor._version and need for p, need in zip(carried, self.needs)]):
            raise OpByOp("it writes to what asks for a gradient")

    def _cut(self, root, nodes, n_first, primals, tangents, outs, grads, mask):
        """Makes the two graphs. ``n_first``: how many nodes there were before the backward."""
        late = set(tangents)                    # nodes that depend on gradients of results, by value or by memory
        memory, late_memory = Memory(nodes), set()
        for node in nodes:
            if any([x in late or memory.group(x) in late_memory for x in node.all_input_nodes]):
                late.add(node)
                late_memory.update([memory.group(x) for x in memory.written_by(node)])
        writes = any([node.op == "call_function" and node.is_impure(False) for node in nodes[:n_first]])
        early = set()
        if writes:                              # a graph with writes keeps the order of its nodes
            early = {node for node in nodes[:n_first] if node not in late}
        wanted = [x for x in outs if x is not None]
        wanted += [node for node in nodes[:n_first] if node.op == "call_function" and node not in late
                   and node.must_run()]
        while wanted:
            node = wanted.pop()
            if node not in early:
                early.add(node)
                wanted += node.all_input_nodes
        early.update(primals)
        early.update([node for node in nodes if node.target is operator.getitem and node.args[0] in early])
        second, wanted = set(), [x for x in grads if x is not None]
        wanted += [node for node in nodes[n_first:] if node.op == "call_function" and node.is_impure()]
        wanted += [node for node in nodes[:n_first] if node in late and node.op == "call_function" and node.must_run()]
        while wanted:
            node = wanted.pop()
            if node not in second and node not in early and node not in tangents:
                second.add(node)
                wanted += node.all_input_nodes
        saved = dict.fromkeys([x for node in nodes if node in second for x in node.all_input_nodes
                               if x in early and x.op != "get_attr"])
        saved.update(dict.fromkeys([x for x in grads if x is not None and x in early]))
        places = {node: k for k, node in enumerate(nodes[:n_first])}
        places.update({node: (places[node.args[0]], node.args[1]) for node in nodes[n_first:]
                       if node.target is operator.getitem and node.args[0] in places})
        second = [x for x in nodes if x in second or (x.op == "get_attr" and x.users.keys() & second)]
        if mask is not None:
            if not all([places.get(x) in self.saved_places for x in saved]):
                return None
            known = {place: node for node, place in places.items()}
            inputs = [known.get(place) for place in self.saved_places]
            return Planned(_graph_of(root, [*inputs, *tangents], second, grads), is_inner=True)
        self.saved_places = [places.get(x) for x in saved]
        # The second graph has the primals already; the first graph returns the other saved values.
        place = {node: k for k, node in enumerate(primals)}
        extra = [node for node in saved if node not in place]
        self.n_outs = len(outs)
        self.saved = [place.get(node, len(primals) + k) for node, k in zip(saved, _counted(saved, place))]
        self.first = Planned(_graph_of(root, primals, [x for x in nodes if x in early and x.op != "placeholder"],
                                       [*outs, *extra]), is_inner=True)
        self.second = Planned(_graph_of(root, [*saved, *tangents], second, grads), is_inner=True)
        return self.second

    def fits(self, tensors):
        """Whether tensors have the look of the first call's."""
        return self.looks == looks_of_all(tensors)

    def __call__(self, tensors):
        """The results of the program for these tensors, with history."""
        state = get_states() if self.has_random else None
        outs = None if self.pair is None else self.pair.attempt(tensors, state)
        if outs is None:
            results = list(self.first.call(tensors, tensors))
            plans = self.first.simple_plans
            pair = Pair(plans[0] if plans else None, self.second, self.again, self.partly, self.saved,
                        self.is_graded, self.needs, self.first.program.written)
            # None where the first graph calls Python between kernels or has no plan
            self.pair = pair if plans else None
            outs = pair.record(tensors, results, state)
        if self.simple:
            return outs[0]
        order = iter(outs)
        return self.nested([next(order) if is_tensor else c
                            for is_tensor, c in zip(self.tensor_leaves, self.constants)])

    def partly(self, mask, primals):
        """The second graph for a backward that reaches some of the results: ``mask`` says which. None if the gradients
        need values that the first graph does not save."""
        try:
            return without(self._trace, self.args, primals, mask)
        except OpByOp:
            return None

    def again(self, primals, tangents, state):
        """The gradients as eager ops give them, with history if it is recorded now."""
        program, args = self.program, list(primals)
        written = self.first.program.written
        if written:
            args = [x.clone() if k in written else x for k, x in enumerate(args)]
        now = get_states() if self.has_random else None
        if now is not None:
            set_states(state)
        is_recorded = is_grad_enabled()
        try:
            with enable_grad():
                leaves, _ = flatten(program.run(*program.places(self.args, args)))
        finally:
            if now is not None:
                set_states(now)
        outs = [x for x in leaves if isinstance(x, Tensor)]
        reached = [(outs[k], g) for k, g in zip(self.graded, tangents) if g is not None]
        return grad([x for x, _ in reached], [x for x, need in zip(args, self.needs) if need], [g for _, g in reached],
                    create_graph=is_recorded, allow_unused=True)


def _counted(saved, place):
    k = -1
    for node in saved:
        k += node not in place
        yield k


def _graph_of(root, inputs, nodes, results):
    """A graph of some nodes of another one."""
    graph, copied = Graph(), {}
    for k, node in enumerate(inputs):           # None: an input that these nodes do not use
        made = graph.placeholder(f"unused_{k}" if node is None else node.name)
        if node is not None:
            copied[node] = made
    for node in nodes:
        copied[node] = graph.node_copy(node, copied.__getitem__)
    graph.output(tuple([None if x is None else copied[x] for x in results]))
    made = GraphModule(root, graph)
    merge_equal(made)
    return made
