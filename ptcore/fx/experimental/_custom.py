"""Calls of custom ops (``ptcore.library``) in a graph: each is one node, whatever its kernel does."""
import operator

import ptcore._ops as ops
from ptcore._ops.namespaces import thread
from ptcore._state import is_grad_enabled, no_grad, set_grad_enabled
from ptcore._tensor import Tensor


def custom_call(tracer, own, function, name, args):
    """Writes the node of a call; NotImplemented if casts, a history or the parts of the op are to be traced instead."""
    definition = own.definition
    args = definition.converted(args)
    if definition.comes_first(args):
        return NotImplemented
    # A call with a history stays in the graph with the mode of the program.
    mode = thread.grad_enabled if thread.skips is definition else is_grad_enabled()
    found = [tracer.argument(x) for x in args]
    values = tuple([v for v, _, _ in found])
    positional, keyword = ops.bound(own, [n for _, n, _ in found])
    with no_grad():
        result = tracer.run(own.name, own, values, None, 0, keyword)
        if tracer.mode != "real":
            definition.promise(values, result)
        shown = definition.fake if tracer.env is not None else None
        sizes = None
        if shown is not None:           # the fake on symbols; its nodes are there for sizes alone
            before = set(tracer.graph.nodes)
            try:
                with tracer:
                    sizes = definition.call_kernel(shown, args)
            except NotImplementedError:     # the sizes depend on values and become new symbols
                if tracer.mode != "real":
                    raise
            for made in tracer.graph.nodes:
                if made not in before:
                    made.meta["for_sizes"] = True
    for k in own.mutates:
        for value in values[k] if isinstance(values[k], list) else [values[k]]:
            if isinstance(value, Tensor):
                tracer.note_write(value)
    with set_grad_enabled(mode):
        node = tracer.node("call_function", function, tuple(positional), keyword, name)
    device = tracer.device(found, args) if tracer.mode != "real" else None

    def stand_in(x, node, sized):
        if isinstance(x, (tuple, list)):
            parts = [tracer.node("call_function", operator.getitem, (node, k), {}, "getitem") for k in range(len(x))]
            return type(x)([stand_in(y, n, None if sized is None else sized[k])
                            for k, (y, n) in enumerate(zip(x, parts))])
        if not isinstance(x, Tensor):
            return x
        for a, value in zip(args, values):
            if value is x:
                return a
        if tracer.mode != "real" and x.device.type != "meta":
            x = x.to("meta")
        if tracer.env is None:
            return tracer.pair(x, node, device)
        known = sized.shape if sized is not None else [tracer.env.fresh(n, node, d) for d, n in enumerate(x.shape)]
        return tracer.env.stand_in(x, node, device, list(known))
    return stand_in(result, node, sizes)
