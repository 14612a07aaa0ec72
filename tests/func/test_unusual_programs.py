"""Derivatives of programs of ``unusual_programs.py`` in all ways, against differences.

First order is compared with differences of the program, second order with differences of first-order reverse mode,
third order with those of double backward. Where the derivative is not that of the values by intention (``detach``),
first order is that of reverse mode, which ``test_parity_unusual_programs.py`` compares with PyTorch's. More programs
than the suite runs: ``PTCORE_TEST_PROGRAMS=5000`` (from the seed ``PTCORE_TEST_SEED`` on).
"""
import os
import random

import numpy as np
import pytest
from unusual_programs import BACKWARD_ALONE, NOT_ITS_DERIVATIVE, PARTS, N, argument, constant, program

import ptcore as pt
from ptcore.autograd import forward_ad, functional
from ptcore.func import functionalize, grad, hessian, jacfwd, jacrev, jvp, linearize, vjp, vmap
from ptcore.fx.experimental.proxy_tensor import make_fx
from ptcore.utils.checkpoint import checkpoint

pytestmark = pytest.mark.core

PROGRAMS = int(os.environ.get("PTCORE_TEST_PROGRAMS", "30"))
SEED = int(os.environ.get("PTCORE_TEST_SEED", "0"))
STEP = 1e-6
A, B = constant(pt, N, seed=5), constant(pt, N, seed=6)
REFUSED = (
    "modified by an inplace operation", "override the setup_context", "runs no custom autograd.Function",
    "has ended or does not see this call", "input is not batched, but a value that is", "Functionalizer runs",
    "derivative needs the")


def reverse(f, x):
    y = x.clone().requires_grad_()
    return pt.autograd.grad(f(y), y, materialize_grads=True)[0]


def twice(f, x, directions=(A,)):
    """The gradient, differentiated along the directions by reverse mode."""
    y = x.clone().requires_grad_()
    (g,) = pt.autograd.grad(f(y), y, create_graph=True, materialize_grads=True)
    for k, d in enumerate(directions):
        if not g.requires_grad:
            return pt.zeros_like(x)
        (g,) = pt.autograd.grad((g * d).sum(), y, create_graph=k + 1 < len(directions), materialize_grads=True)
    return g.detach()


def samples(f, x):
    return vmap(f)(pt.stack([x * 0.5, x]))[1]


def along(f, d=A):
    return lambda x: jvp(f, (x,), (d,))[1]


def dotted(f, d=A):
    return lambda x: (f(x) * d).sum()


def graph(f, x, **options):
    return make_fx(f, **options)(x * 0.9)


def trace(f, x):
    return pt.jit.trace(f, (x * 0.9,), check_trace=False)


def batched(f, x):
    y = x.clone().requires_grad_()
    seeds = pt.tensor([2., 1.], dtype=x.dtype)
    return pt.autograd.grad(f(y), y, seeds, is_grads_batched=True, materialize_grads=True)[0][1]


def dual_of_reverse(f, x):
    with forward_ad.dual_level():
        y = forward_ad.make_dual(x.clone().requires_grad_(), A)
        (g,) = pt.autograd.grad(f(y), y, create_graph=True, materialize_grads=True)
        t = forward_ad.unpack_dual(g).tangent
    return pt.zeros_like(x) if t is None else t.detach()


def columns(f, x):
    return pt.stack([f(e) for e in pt.eye(N, dtype=x.dtype)])


FIRST = {
    "reverse": reverse, "grad": lambda f, x: grad(f)(x), "jacrev": lambda f, x: jacrev(f)(x),
    "jacfwd": lambda f, x: jacfwd(f)(x), "jvp": lambda f, x: columns(lambda e: jvp(f, (x,), (e,))[1], x),
    "vjp": lambda f, x: vjp(f, x)[1](pt.tensor(1., dtype=x.dtype))[0], "batched": batched,
    "linearize": lambda f, x: columns(linearize(f, x)[1], x),
    "jacobian": lambda f, x: functional.jacobian(f, x, strategy="forward-mode", vectorize=True),
    "vmap of grad": lambda f, x: samples(grad(f), x), "vmap of jacfwd": lambda f, x: samples(jacfwd(f), x),
    "grad of vmap": lambda f, x: grad(lambda y: samples(f, y))(x),
    "functionalize of grad": lambda f, x: functionalize(grad(f))(x),
    "functionalize without views": lambda f, x: functionalize(grad(f), remove="mutations_and_views")(x),
    "grad of functionalize": lambda f, x: grad(functionalize(f))(x),
    "jacfwd of functionalize": lambda f, x: jacfwd(functionalize(f))(x),
    "graph of grad": lambda f, x: graph(grad(f), x)(x), "fake graph": lambda f, x: graph(
        grad(f), x, tracing_mode="fake")(x),
    "reverse of graph": lambda f, x: reverse(graph(f, x), x), "jacfwd of graph": lambda f, x: jacfwd(graph(f, x))(x),
    "graph of functionalize": lambda f, x: grad(graph(functionalize(f), x))(x),
    "reverse of trace": lambda f, x: reverse(trace(f, x), x), "trace of grad": lambda f, x: trace(grad(f), x)(x),
    "compile of grad": lambda f, x: pt.compile(grad(f))(x), "reverse of compile": lambda f, x: reverse(
        pt.compile(f), x),
    "checkpoint": lambda f, x: reverse(lambda y: checkpoint(f, y, use_reentrant=False), x),
}
SECOND = {
    "twice": twice, "hessian": lambda f, x: A @ hessian(f)(x),
    "jacrev of jacfwd": lambda f, x: A @ jacrev(jacfwd(f))(x),
    "jacfwd of jacfwd": lambda f, x: A @ jacfwd(jacfwd(f))(x), "jvp of grad": lambda f, x: along(grad(f))(x),
    "jacrev of jacrev": lambda f, x: A @ jacrev(jacrev(f))(x), "grad of jvp": lambda f, x: grad(along(f))(x),
    "vmap of hessian": lambda f, x: A @ samples(hessian(f), x), "dual of reverse": dual_of_reverse,
    "reverse of jvp": lambda f, x: reverse(along(f), x), "hvp": lambda f, x: functional.hvp(f, x, A)[1],
    "grad of linearize": lambda f, x: grad(lambda y: linearize(f, y)[1](A))(x),
    "graph of hessian": lambda f, x: A @ graph(hessian(f), x)(x), "trace twice": lambda f, x: twice(trace(f, x), x),
    "compile of jvp of grad": lambda f, x: pt.compile(along(grad(f)))(x), "compile twice": lambda f, x: twice(
        pt.compile(f), x),
    "reverse of graph of grad": lambda f, x: reverse(dotted(graph(grad(f), x)), x),
    "reverse of trace of grad": lambda f, x: reverse(dotted(trace(grad(f), x)), x),
    "jvp of graph of grad": lambda f, x: along(graph(grad(f), x))(x),
    "jvp of functionalize of grad": lambda f, x: along(functionalize(grad(f)))(x),
    "checkpoint twice": lambda f, x: twice(lambda y: checkpoint(f, y, use_reentrant=False), x),
}
THIRD = {
    "thrice": lambda f, x: twice(f, x, (A, B)), "jvp of jvp of grad": lambda f, x: along(along(grad(f)), B)(x),
    "grad of jvp of jvp": lambda f, x: grad(along(along(f), B))(x),
    "jvp of grad of jvp": lambda f, x: along(grad(along(f)), B)(x),
    "jvp of grad of grad": lambda f, x: along(grad(dotted(grad(f))), B)(x),
    "grad of jvp of grad": lambda f, x: grad(dotted(along(grad(f)), B))(x),
    "vmap of jvp of jvp of grad": lambda f, x: samples(along(along(grad(f)), B), x),
}


def array(x):
    return np.asarray(x.detach().numpy())


def differences(f, x):
    rows = []
    for e in pt.eye(N, dtype=x.dtype):
        rows.append((array(f(x + STEP * e)) - array(f(x - STEP * e))) / (2 * STEP))
    return np.stack(rows, -1)


def check(names, seed, counts):
    """Compares derivatives of a program, some of each order; how many were compared."""
    f, x, r = program(pt, names), argument(pt, seed), random.Random(f"{seed} {names}")
    if not np.isfinite(array(f(x.clone()))):
        return 0
    constant_parts, alone = bool(NOT_ITS_DERIVATIVE & set(names)), bool(BACKWARD_ALONE & set(names))
    wanted = [array(reverse(f, x)) if constant_parts else differences(f, x),
              array(twice(f, x)) if constant_parts else differences(lambda y: (reverse(f, y) * A).sum(), x),
              array(twice(f, x, (A, B))) if constant_parts else differences(lambda y: (twice(f, y) * B).sum(), x)]
    if np.abs(wanted[0]).max() > 1e3:   # differences lose their digits
        return 0
    compared = 0
    for table, want, count in zip((FIRST, SECOND, THIRD), wanted, counts):
        for name in r.sample(list(table), min(count, len(table))):
            if alone and any(word in name for word in ("jvp", "jac", "hess", "linearize", "dual")):
                continue
            try:
                got = array(table[name](f, x))
            except RuntimeError as e:
                if any(text in str(e) for text in REFUSED):
                    continue
                raise RuntimeError(f"{names}, {seed}, {name}: {e}") from e
            size = max(1, np.abs(want).max())
            np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5 * size, err_msg=f"{names}, {seed}, {name}")
            compared += 1
    return compared


@pytest.mark.parametrize("name", PARTS)
def test_parts(name):
    assert check([name], 0, (6, 4, 2)) > 3


FOUND = [                               # pairs that were wrong without an error
    ("detached", "jacfwd of functionalize"), ("padding_row", "jacfwd of functionalize"),
    ("detached_statistics", "jacfwd of functionalize"), ("ctc", "linearize"), ("ctc", "hvp"),
    ("ctc_impossible", "twice"), ("ctc_impossible", "grad of jvp"), ("checkpointed", "jvp of grad"),
    ("saved_and_written", "jvp of grad"), ("householder", "grad of functionalize"),
    ("householder", "reverse of graph"), ("largest_of_bags", "grad of functionalize"),
    ("lu_solve", "reverse of graph"), ("lu_solve", "reverse of trace"),
    ("function_of_the_input", "reverse of graph"), ("function_of_the_input", "reverse of trace"),
    ("function_in_place", "grad of jvp of grad"), ("function_in_place", "graph of functionalize"),
    ("function_on_a_view", "reverse of compile"), ("function_on_a_view", "graph of functionalize"),
    ("jacobian_inside", "jvp"), ("jacobian_inside", "grad of jvp"), ("hvp_inside", "reverse of graph"),
    ("parts_written", "functionalize without views"), ("pairs_written", "grad of functionalize"),
    *[(name, kind) for name in ("softmax", "layer_norm", "batch_norm", "group_norm", "attention", "cross_entropy",
                                "max_pool", "sampled", "ctc", "distances", "pairs", "margin", "logcumsumexp_real")
      for kind in ("reverse of graph of grad", "jvp of graph of grad", "reverse of trace of grad")]]


@pytest.mark.parametrize("name, kind", FOUND, ids=lambda x: x.replace(" ", "-"))
def test_found(name, kind):
    f, x = program(pt, [name]), argument(pt)
    for table, want in ((FIRST, lambda: reverse(f, x)), (SECOND, lambda: twice(f, x)), (THIRD, lambda: twice(
            f, x, (A, B)))):
        if kind in table:
            np.testing.assert_allclose(array(table[kind](f, x)), array(want()), rtol=1e-9, atol=1e-10)


@pytest.mark.outer
def test_programs():
    compared = 0
    for seed in range(SEED, SEED + PROGRAMS):
        r = random.Random(seed)
        names = [r.choice(list(PARTS)) for _ in range(r.choice([2, 2, 3]))]
        with np.errstate(all="ignore"):
            compared += check(names, seed, (5, 4, 1))
    assert compared > 4 * PROGRAMS


def test_traced_gradient_of_complex_logcumsumexp():
    """Its gradient is 0 where that of the result is, and a graph of it has derivatives there."""
    def f(x):
        return pt.view_as_real(pt.logcumsumexp(x, 0)[:2]).sum()
    x = pt.complex(A[:4], B[:4])
    d = pt.complex(B[:4], A[:4])
    graph = make_fx(grad(f))(x)
    want = (grad(f)(x + STEP * d) - grad(f)(x - STEP * d)) / (2 * STEP)
    np.testing.assert_allclose(jvp(graph, (x,), (d,))[1].numpy(), want.numpy(), atol=1e-7)
    assert graph(x)[2:].tolist() == [0, 0]
