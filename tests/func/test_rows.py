"""Every differentiable row under transformations: batched derivatives against a loop over the samples, forward mode
over reverse mode and the other way round against each other."""
import sys
from pathlib import Path

import numpy as np
import pytest

import ptcore as pt
from ptcore.func import grad, jvp, vjp, vmap

sys.path.insert(0, str(Path(__file__).parent.parent / "ops"))
from _cases import CASES, ROWS, array, case_id, dtypes
from _walk import walk
from test_batching import NEED_DATA
from test_gradient import NOT_REAL_RESULTS, differentiable_arguments, is_differentiable, small_cases

SIZE = 3
UNDER_TEST = [pytest.param(r, id=r.name) for r in ROWS.values()
              if is_differentiable(r) and r.name not in NOT_REAL_RESULTS and r.name not in NEED_DATA and not r.random
              and not str(r.batch).startswith("refused:") and (r.kind == "elementwise" or CASES.get(r.name))
              and {"float64", "complex128"} & set(dtypes(r))]


def tensors(result):
    """The results that have derivatives."""
    found = result if isinstance(result, (tuple, list)) else (result,)
    return tuple([y for y in found if y.dtype.kind in "fc"])


def drawn(rng, x):
    v = rng.normal(size=tuple(x.shape))
    if x.dtype.is_complex:
        v = v + 1j * rng.normal(size=tuple(x.shape))
    return pt.from_numpy(np.asarray(v)).to(x.dtype)


def functions(row):
    """(case, f, inputs, outputs) of the row's first small cases."""
    dtype = "float64" if "float64" in dtypes(row) else "complex128"
    for case in small_cases(row)[:3]:
        call, inputs = differentiable_arguments(row, case, dtype, "contiguous")
        inputs = [x.detach() for x in inputs]
        if not inputs:
            continue

        def f(*xs, call=call):
            return tensors(call(*xs))
        results = f(*[x.clone().requires_grad_() for x in inputs])
        if not results or not any(y.requires_grad for y in results):
            continue
        yield case, f, inputs, [y.detach() for y in results]


def samples_of(rng, inputs, outputs):
    """Inputs, cotangents and tangents of SIZE samples."""
    return [([x * (1 - 0.01 * k) for x in inputs], [drawn(rng, y) for y in outputs], [drawn(rng, x) for x in inputs])
            for k in range(SIZE)]


def stacked(parts):
    return [pt.stack(list(together)) for together in zip(*parts)]


def assert_equal(got, want, where):
    assert len(got) == len(want), where
    for g, w in zip(got, want):
        assert not g.requires_grad, where
        np.testing.assert_allclose(array(g), array(w), rtol=1e-8, atol=1e-10, err_msg=where)


@walk("row", UNDER_TEST)
def test_batched_derivatives(row):
    tried = 0
    for case, f, inputs, outputs in functions(row):
        made = samples_of(np.random.default_rng(3), inputs, outputs)
        xs, vs, us = (stacked([sample[k] for sample in made]) for k in range(3))
        n = len(xs)
        where = case_id(row, case)
        try:
            want = stacked([vjp(f, *x)[1](tuple(v)) for x, v, _ in made])
            assert_equal(vmap(lambda *a, f=f, n=n: vjp(f, *a[:n])[1](a[n:]))(*xs, *vs), want, f"{where} vmap(vjp)")
            assert_equal(vjp(vmap(f), *xs)[1](tuple(vs)), want, f"{where} vjp(vmap)")
            want = stacked([jvp(f, tuple(x), tuple(u))[1] for x, _, u in made])
            got = vmap(lambda *a, f=f, n=n: jvp(f, a[:n], a[n:])[1])(*xs, *us)
            assert_equal(got, want, f"{where} vmap(jvp)")
            assert_equal(jvp(vmap(f), tuple(xs), tuple(us))[1], want, f"{where} jvp(vmap)")
            # One function, many directions.
            x = made[0][0]
            back = vjp(f, *x)[1]
            assert_equal(vmap(lambda *v, back=back: back(v))(*vs), stacked([back(tuple(s[1])) for s in made]),
                         f"{where} many cotangents")
        except Exception as e:
            raise AssertionError(f"{where}: {type(e).__name__}: {e}") from e
        tried += 1
    assert tried or row.name == "argsort"       # positions have no derivative


@walk("row", UNDER_TEST)
def test_derivatives_by_what_samples_share(row):
    """Only the factors of the results differ between samples; the op itself sees no batched argument."""
    for case, f, inputs, outputs in functions(row):
        made = samples_of(np.random.default_rng(9), inputs, outputs)
        vs, n, where = stacked([v for _, v, _ in made]), len(inputs), case_id(row, case)

        def loss(*a, f=f, n=n):
            return sum([(y * w).real.sum() if y.dtype.is_complex else (y * w).sum() for y, w in zip(f(*a[:n]), a[n:])])
        places = tuple(range(n))
        try:
            got = vmap(grad(loss, places), (*[None] * n, *[0] * len(vs)))(*inputs, *vs)
            along = vmap(lambda *a, n=n, loss=loss: jvp(lambda *x: loss(*x, *a[2 * n:]), a[:n], a[n:2 * n])[1],
                         (*[None] * 2 * n, *[0] * len(vs)))(*inputs, *made[0][2], *vs)
            assert_equal(got, stacked([grad(loss, places)(*inputs, *v) for _, v, _ in made]), f"{where} vmap(grad)")
            want = stacked([[jvp(lambda *x, v=v: loss(*x, *v), tuple(inputs), tuple(made[0][2]))[1]]
                            for _, v, _ in made])
            assert_equal([along], want, f"{where} vmap(jvp)")
        except Exception as e:
            raise AssertionError(f"{where}: {type(e).__name__}: {e}") from e


SECOND = [p for p in UNDER_TEST if "float64" in dtypes(p.values[0])]


@walk("row", SECOND)
def test_second_derivatives(row):
    """H u by forward over reverse, reverse over forward and reverse over reverse."""
    for case, f, inputs, outputs in functions(row):
        if any(x.dtype.is_complex for x in (*inputs, *outputs)):
            continue
        (x, v, u), *_ = samples_of(np.random.default_rng(5), inputs, outputs)
        places = tuple(range(len(x)))

        def loss(*xs, f=f, v=v):
            return sum([(y * w).sum() for y, w in zip(f(*xs), v)])
        where = case_id(row, case)
        try:
            forward_reverse = jvp(grad(loss, places), tuple(x), tuple(u))[1]
            reverse_forward = grad(lambda *xs, loss=loss, u=u: jvp(loss, xs, tuple(u))[1], places)(*x)
            reverse_reverse = grad(lambda *xs, loss=loss, u=u, places=places: sum(
                [(g * w).sum() for g, w in zip(grad(loss, places)(*xs), u)]), places)(*x)
        except Exception as e:
            raise AssertionError(f"{where}: {type(e).__name__}: {e}") from e
        assert_equal(reverse_forward, reverse_reverse, f"{where} reverse over forward")
        assert_equal(forward_reverse, reverse_reverse, f"{where} forward over reverse")
