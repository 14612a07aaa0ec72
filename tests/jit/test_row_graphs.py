"""Every row in graphs: what each maker of graphs records, and what passes, plans and files make of it, gives bit for
bit what the row gives, on the data that it was recorded with and on other data.

A maker records a row's call once for each case; passes and plans start from the graph of ``make_fx``, files from that
of ``jit.trace``.
"""
import io
import re
import warnings

import numpy as np
import pytest
from _cases import case_id
from _row_graphs import (
    BACKWARD,
    BY_VALUES,
    FORWARD,
    REFUSED,
    assert_equal,
    backward_calls,
    flat,
    forward_calls,
    pulled,
    put,
    seeded,
)
from _walk import every_case

import ptcore as pt
from ptcore import jit
from ptcore._ops.calling import run
from ptcore.fx import Graph, GraphModule, verify
from ptcore.fx.experimental.proxy_tensor import make_fx
from ptcore.jit import compiled as _compile
from ptcore.jit._plan import Planned
from ptcore.jit.passes import copy_of, fold, merge_equal

MODES = ("real", "fake", "symbolic")
# What has a size, a range or numbers that are values, which a trace holds as constants.
READS = {"histogram", "argwhere", "nonzero", "ctc_loss", "repeat_interleave", "unique", "unique_consecutive",
         "bincount", "masked_select"}


def recorded(row, f, args, mode):
    """The graph of a call, or None where the row asks for values and says so."""
    try:
        traced = seeded(make_fx(lambda *tensors: f(*tensors), tracing_mode=mode), *args)
    except RuntimeError as error:
        if row.name not in BY_VALUES or not re.search(REFUSED, str(error)):
            raise
        return None
    assert verify(traced.graph) == "rows"
    return traced


def twice(traced):
    """The graph with every call two times, and the results of both."""
    graph, places = Graph(), {}
    for node in traced.graph.nodes:
        if node.op == "placeholder":
            places[node] = graph.node_copy(node)
    found = [graph.graph_copy(traced.graph, dict(places)) for _ in range(2)]
    graph.output(tuple([y for r in found for y in (r if isinstance(r, (tuple, list)) else (r,))]))
    return GraphModule(traced, graph)


def closed(traced, args):
    """The graph with constants in the place of its arguments."""
    graph, values, order = Graph(), {}, iter(args)
    root = copy_of(traced)
    for node in traced.graph.nodes:
        if node.op == "placeholder":
            root.register_buffer(f"_argument{len(values)}", next(order))
            values[node] = graph.get_attr(f"_argument{len(values)}")
    graph.output(graph.graph_copy(traced.graph, values))
    return GraphModule(root, graph)


def after_passes(module):
    made = copy_of(module)
    dialect = verify(made.graph)
    for change in (fold, merge_equal):
        change(made)
        assert verify(made.graph) == dialect
    return made


def calls(module):
    return sum([n.op == "call_function" for n in module.graph.nodes])


def check_planned(traced, runs):
    planned = Planned(traced)
    for args, want in runs:
        assert_equal(seeded(planned, *args), want, "plan")
    if any([getattr(n.target, "__name__", "") in ("as_strided", "as_strided_of") and n.args[0].op == "placeholder"
            for n in traced.graph.nodes]):
        assert "names places of its storage" in planned.refused and not planned.plans
    else:
        assert planned.refused is None and len(planned.plans) == 1, planned.refused


def check_passes(row, traced, args, want):
    doubled = twice(traced)
    results = seeded(doubled, *args)
    assert_equal(seeded(after_passes(doubled), *args), results, "passes")
    constant = closed(traced, args)
    assert_equal(seeded(constant), want, "constants")
    assert_equal(seeded(after_passes(constant)), want, "folded")


def check_traced(row, f, runs):
    """``jit.trace``, and what its file gives."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            traced = jit.trace(f, tuple(runs[0][0]), check_trace=False)
        except (RuntimeError, TypeError):
            assert row.name in BY_VALUES
            return
    reads = any([issubclass(w.category, jit.TracerWarning) for w in told])
    assert not reads or row.name in READS
    file = io.BytesIO()
    jit.save(traced, file)
    loaded = jit.load(io.BytesIO(file.getvalue()))
    for args, want in runs[:1] if reads else runs[:2]:
        for call in (traced, loaded):
            assert_equal(seeded(call, *args), want, "trace")


def check_compiled(row, f, runs):
    compiled = pt.compile(f, backend="eager")
    before = _compile.counts["raised"]
    for args, want in runs:
        assert_equal(seeded(compiled, *args), want, "compile")
    # one_hot refuses what has no data, where it must count: it runs eagerly
    assert _compile.counts["raised"] == before or row.name == "one_hot", compiled._compiled.error


@pytest.mark.parametrize("row", [pytest.param(r, id=r.name) for r in FORWARD])
def test_forward(row):
    with every_case() as tried:
        for case, first, second in forward_calls(row):
            name = case_id(row, case)

            def f(*tensors, first=first):
                return run(row.name, put(first, tensors))
            runs = [(flat(args), seeded(run, row.name, args)) for args in (first, second, first)]
            graphs = {}
            for mode in MODES:
                with tried("make_fx", mode, name):
                    traced = graphs[mode] = recorded(row, f, runs[0][0], mode)
                    for args, want in runs[:2] if traced else ():
                        assert_equal(seeded(traced, *args), want, "graph")
            if graphs.get("real"):
                with tried("passes", name):
                    check_passes(row, graphs["real"], *runs[0])
                with tried("plan", name):
                    check_planned(graphs["real"], runs)
            if runs[0][0]:
                with tried("trace", name):
                    check_traced(row, f, runs)
            with tried("compile", name):
                check_compiled(row, f, runs)


@pytest.mark.parametrize("row", [pytest.param(r, id=r.name) for r in BACKWARD])
def test_backward(row):
    with every_case() as tried:
        for case, call, inputs in backward_calls(row):
            name = case_id(row, case)
            others = [x * 0.99 for x in inputs]
            f = pulled(call, inputs)
            if f is not None:
                runs = [(xs, f(*xs)) for xs in (inputs, others, inputs)]
                graphs = {}
                for mode in MODES:
                    with tried("make_fx", mode, name):
                        traced = make_fx(lambda *xs, f=f: f(*xs), tracing_mode=mode)(*inputs)
                        assert verify(traced.graph) == "rows"
                        graphs[mode] = traced
                        for xs, want in runs[:2]:
                            assert_equal(traced(*xs), want, "graph")
                if "real" in graphs:
                    with tried("plan", name):
                        check_planned(graphs["real"], runs)
            with tried("compile", name):
                check_compiled_backward(call, (inputs, others))


def gradients(f, inputs):
    """(results, gradients) of a call: its own leaves, and ones as the gradients of its results."""
    xs = [x.clone().requires_grad_() for x in inputs]
    found = f(*xs)
    found = [y for y in (found if isinstance(found, (tuple, list)) else (found,)) if isinstance(y, pt.Tensor)]
    wanted = [y for y in found if y.requires_grad]
    return found, pt.autograd.grad(wanted, xs, [pt.ones_like(y) for y in wanted], allow_unused=True) \
        if wanted and xs else ()


def check_compiled_backward(call, inputs):
    compiled = pt.compile(call, backend="eager")
    for xs in inputs:
        (a, ga), (b, gb) = gradients(compiled, xs), gradients(call, xs)
        assert_equal(a, b, "compile")
        assert [y.requires_grad for y in a] == [y.requires_grad for y in b]
        for x, y in zip(ga, gb, strict=True):
            assert (x is None) == (y is None)
            if x is not None:
                np.testing.assert_array_equal(x.numpy(), y.numpy())
