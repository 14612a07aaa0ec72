"""The ``jvp`` column: forward derivatives of every differentiable row.

The toy interpreter of tests/interpreters.py pairs tensors with tangents. Its tangents are held
against two oracles: central differences of the op, and the backward by <v, J u> = <J^T v, u>.
"""
import importlib
import pkgutil

import numpy as np
import pytest
from _cases import CASES, CONSTANT, ROWS, case_id, cases, dtypes
from _walk import walk
from interpreters import Forward
from test_gradient import NOT_REAL_RESULTS, differentiable_arguments, is_differentiable, small_cases

import ptcore as pt
from ptcore._ops.table import schema
from ptcore.autograd import rules

pytestmark = pytest.mark.core

STEP = 1e-6
# no two-sided difference: see test_gradient.py, whose samples keep away from kinks
UNDER_TEST = [r for r in ROWS.values() if is_differentiable(r) and r.name not in NOT_REAL_RESULTS
              and (r.kind == "elementwise" or CASES.get(r.name))]


def outputs(result):
    """The results that can have a tangent."""
    found = list(result) if isinstance(result, (tuple, list)) else [result]
    return [r for r in found if r.dtype.kind in "fc"]


def direction(rng, x):
    v = rng.uniform(-1, 1, tuple(x.shape))
    if x.dtype.is_complex:
        v = v + 1j * rng.uniform(-1, 1, tuple(x.shape))
    return pt.from_numpy(np.asarray(v)).to(x.dtype)


def real_inner(a, b):
    return float(np.vdot(a.detach().numpy(), b.detach().numpy()).real)


def check(row, case, dtype, layout="contiguous"):
    call, inputs = differentiable_arguments(row, case, dtype, layout)
    rng = np.random.default_rng(5)
    data = [x.detach() for x in inputs]
    for moving in {(k,) for k in range(len(data))} | {tuple(range(len(data)))}:
        u = {k: direction(rng, data[k]) for k in moving}
        with Forward() as forward:
            args = [forward.pair(x.view(x.shape), u.get(k)) for k, x in enumerate(data)]
            results = outputs(call(*args))
            tangents = [forward.tangent(r) for r in results]
        ahead = outputs(call(*[x + STEP * u[k] if k in u else x for k, x in enumerate(data)]))
        behind = outputs(call(*[x - STEP * u[k] if k in u else x for k, x in enumerate(data)]))
        v = [direction(rng, r) for r in results]
        live = [(r, w) for r, w in zip(outputs(call(*inputs)), v) if r.requires_grad]
        back = pt.autograd.grad([r for r, _ in live], inputs, [w for _, w in live],
                                allow_unused=True) if live else [None] * len(inputs)
        transposed = sum(real_inner(g, u[k]) for k, g in enumerate(back) if g is not None and k in u)
        straight = sum(real_inner(w, t) for w, t in zip(v, tangents) if t is not None)
        assert straight == pytest.approx(transposed, rel=1e-11, abs=1e-12)
        for r, t, a, b in zip(results, tangents, ahead, behind):
            slope = (a.numpy() - b.numpy()) / (2 * STEP)
            if t is None:
                np.testing.assert_allclose(slope, 0, atol=1e-8)
                continue
            assert (t.shape, t.dtype) == (r.shape, r.dtype)
            np.testing.assert_allclose(t.numpy(), slope, rtol=1e-6, atol=1e-6)


def check_row(row, dtype):
    tried = 0
    for case in small_cases(row):
        if not differentiable_arguments(row, case, dtype, "contiguous")[1]:
            continue
        try:
            check(row, case, dtype)
        except Exception as e:
            raise AssertionError(f"{case_id(row, case)} {dtype}: {type(e).__name__}: {e}") from e
        tried += 1
    assert tried


@walk("row", [pytest.param(r, id=r.name) for r in UNDER_TEST if "float64" in dtypes(r)])
def test_real(row):
    check_row(row, "float64")


@walk("row", [pytest.param(r, id=r.name) for r in UNDER_TEST if "complex128" in dtypes(r)])
def test_complex(row):
    check_row(row, "complex128")


MIXED = [r for r in UNDER_TEST if r.kind == "elementwise" and "float64" in r.types and len(r.tensors) > 1
         and not {(r.name, a.name) for a in r.tensors} & CONSTANT         # differentiable by one operand
         and r.promote not in ("where", "first") and not any(a.letter == "I" for a in r.args)]     # those have a mask


def tangent_at(call, values, k, t):
    return forward_of(lambda v: call(*values[:k], v, *values[k + 1:]), (values[k], t))


@pytest.mark.parametrize("other", ["int64", "uint8", "float32"])
@pytest.mark.parametrize("row", [pytest.param(r, id=r.name) for r in MIXED])
def test_mixed_operands(row, other):
    """A tangent through operands of another dtype is that of the promoted operands, to the last digits."""
    tried = 0
    for moving in range(len(row.tensors)):
        for k in set(range(len(row.tensors))) - {moving}:
            call, inputs = differentiable_arguments(row, cases(row)[0], "float64", "contiguous")
            values = [x.detach() for x in inputs]
            values[k] = (values[k] * 3).abs().to(getattr(pt, other)) + 2
            same = [x.to(pt.float64) for x in values]
            t = direction(np.random.default_rng(2), same[moving])
            results = [tangent_at(call, given, moving, t) for given in (values, same)]
            tried += 1
            if results[1] is None:              # steps
                assert results[0] is None
                continue
            assert results[0].dtype is results[1].dtype is pt.float64
            np.testing.assert_allclose(results[0].numpy(), results[1].numpy(), rtol=1e-14)
    assert tried


# -- what has no cases in the table ------------------------------------------------------------------

def forward_of(f, *pairs):
    with Forward() as forward:
        return forward.tangent(f(*[forward.pair(x, t) for x, t in pairs]))


@pytest.mark.parametrize("shape", [(4, 3), (3, 4), (3, 3), (2, 4, 3)])
@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_svd(shape, dtype):
    """Of a function that does not depend on the gauge: U f(S) V^H, by differences."""
    rng = np.random.default_rng(1)
    a, t = (rng.normal(size=shape) + (1j * rng.normal(size=shape) if dtype is np.complex128 else 0)
            for _ in range(2))

    def f(x):
        u, s, vh = pt.linalg.svd(x, full_matrices=False)
        return pt.matmul(u * (s * s + s).unsqueeze(-2).to(u.dtype), vh)
    got = forward_of(f, (pt.from_numpy(a), pt.from_numpy(t)))
    ahead, behind = (f(pt.from_numpy(a + h * t)).numpy() for h in (STEP, -STEP))
    np.testing.assert_allclose(got.numpy(), (ahead - behind) / (2 * STEP), rtol=1e-6, atol=1e-6)


def test_products_with_zeros():
    x, t = (pt.tensor(v, dtype=pt.float64) for v in ([[2., 0., 3.], [0., 5., 0.]], [[1., 2., 3.], [4., 5., 6.]]))
    for f in (lambda v: pt.cumprod(v, 1), lambda v: pt.prod(v, 1)):
        got = forward_of(f, (x, t))
        slope = (f(x + STEP * t) - f(x - STEP * t)) / (2 * STEP)
        np.testing.assert_allclose(got.numpy(), slope.numpy(), rtol=1e-6, atol=1e-8)


def test_dropout():
    x = pt.ones(1000, dtype=pt.float64)
    with Forward() as forward:
        y = pt.nn.functional.dropout(forward.pair(x, x * 3), 0.25)
        np.testing.assert_allclose(forward.tangent(y).numpy(), 3 * forward.value(y).numpy())


def test_numbers_and_dtypes():
    x, t = pt.tensor([1.0, 2.0]), pt.tensor([0.5, -1.0])
    got = forward_of(lambda v: (2.0 ** v * 3 - v / 4) ** 2, (x, t))
    f = lambda v: (2.0 ** v * 3 - v / 4) ** 2
    want = 2 * (2 ** x.numpy() * 3 - x.numpy() / 4) * (3 * np.log(2) * 2 ** x.numpy() - 0.25) * t.numpy()
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-5)
    assert got.dtype is f(x).dtype is pt.float32
    assert forward_of(lambda v: v.to(pt.float64) * 2, (x, t)).dtype is pt.float64
    assert forward_of(lambda v: v.to(pt.int64) * 2, (x, t)) is None
    assert forward_of(lambda v: v > 1, (x, t)) is None


def test_tangents_have_gradients():
    """Reverse over forward: the second derivative."""
    x = pt.tensor([0.3, 0.7], dtype=pt.float64, requires_grad=True)
    t = pt.ones(2, dtype=pt.float64)
    tangent = forward_of(lambda v: (v.sin() * v).sum(), (x, t))
    tangent.backward()
    np.testing.assert_allclose(x.grad.numpy(), (2 * np.cos(x.detach().numpy())
                                                - x.detach().numpy() * np.sin(x.detach().numpy())), rtol=1e-12)


def test_registered_op():
    def spec(input):
        return input.shape, input.dtype

    def kernel(input, out):
        out.copy_(input * input)
    keywords = {"spec": spec, "kernels": {"cpu": kernel}, "types": ("float64",), "saves": ("input",),
                "vjp": lambda g, saved, params, needs: (g * 2 * saved["input"],)}
    texts = pt.ops.register("test_forward_texts(input)", jvp=["t * 2 * x"], **keywords)
    own = pt.ops.register("test_forward_own(input)",
                          jvp=lambda args, tangents, out: tangents[0] * 2 * args[0], **keywords)
    bare = pt.ops.register("test_forward_bare(input)", **keywords)
    x, t = pt.tensor([3.0], dtype=pt.float64), pt.tensor([0.5], dtype=pt.float64)
    assert forward_of(texts, (x, t)).tolist() == forward_of(own, (x, t)).tolist() == [3.0]
    with pytest.raises(NotImplementedError, match="test_forward_bare: there is no forward derivative"):
        forward_of(bare, (x, t))


def test_every_rule_is_used():
    """The marks of autograd/rules and the rows name the same ops."""
    for module in pkgutil.iter_modules(rules.__path__):
        importlib.import_module(f"ptcore.autograd.rules.{module.name}")
    assert set(rules.JVPS) == {r.name for r in ROWS.values() if r.jvp == "rule"}
    words = {r.jvp for r in ROWS.values() if isinstance(r.jvp, str)}
    assert words == set(schema.JVP) - {None}
