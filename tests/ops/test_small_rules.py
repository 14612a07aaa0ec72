"""What functions do with rare arguments: no dims, positions from the end, out= of other dtypes and shapes, integers."""
import numpy as np
import pytest

import ptcore as pt

pytestmark = pytest.mark.core
F = pt.nn.functional
HALF = ("float16", "bfloat16")


def test_flip_of_no_dims():
    x = pt.arange(6).view(2, 3)
    assert pt.flip(x, ()).tolist() == x.tolist() and x.flip([]).tolist() == x.tolist()
    assert pt.flip(x, (0, 1)).tolist() == np.flip(x.numpy(), (0, 1)).tolist()
    y = pt.arange(6.0, dtype=pt.float64).view(2, 3).requires_grad_()
    assert pt.autograd.gradcheck(lambda y: pt.flip(y, ()), (y,)) and pt.flip(x.to("meta"), ()).shape == (2, 3)
    with pytest.raises(RuntimeError, match="flip: dim 0 appears twice"):
        pt.flip(x, (0, -2))


def test_positions_from_the_end():
    x = np.arange(12.0).reshape(3, 4)
    for index in ([[-1], [-4], [0]], [[3, -2], [1, -1], [0, 0]]):
        want = np.take_along_axis(x, np.array(index), 1)
        assert pt.take_along_dim(pt.tensor(x), pt.tensor(index), 1).tolist() == want.tolist()
    assert pt.take_along_dim(pt.zeros(0, 3), pt.zeros(0, 3, dtype=pt.int64), 0).shape == (0, 3)


def test_an_index_without_elements():
    for shape in ((0,), (2, 0), (0, 2, 3)):
        assert pt.gather(pt.ones(5), 0, pt.zeros(shape, dtype=pt.int64)).shape == shape


def test_unravelled_positions_are_int64():
    for dtype in ("uint8", "int8", "int32", "int64"):
        got = pt.unravel_index(pt.tensor([3, 5], dtype=getattr(pt, dtype)), (2, 3))
        assert [g.tolist() for g in got] == [g.tolist() for g in np.unravel_index([3, 5], (2, 3))]
        assert all(g.dtype is pt.int64 for g in got)


def test_short_integers_beside_a_size_of_1():
    a, b = np.ones((1, 2), np.int8), np.arange(3, dtype=np.int8)[:, None]
    got = pt.tensordot(pt.tensor(a), pt.tensor(b), ([0], [0]))
    assert got.dtype is pt.int8 and got.tolist() == np.tensordot(a.repeat(3, 0), b, ([0], [0])).tolist()


@pytest.mark.parametrize("dtype", HALF)
def test_nextafter_of_halves(dtype):
    """Every float16 and bfloat16, towards both ends, itself and NaN, by counting bits."""
    kind = getattr(pt, dtype)
    bits = pt.arange(-32768, 32768).to(pt.int16)
    x = bits.view(kind)
    wide = x.to(pt.float64).numpy()
    steps = np.sort(np.unique(wide[np.isfinite(wide)]))
    for end in (np.inf, -np.inf):
        got = pt.nextafter(x, pt.full((), end, dtype=kind)).to(pt.float64).numpy()
        finite = np.isfinite(wide)
        at = np.searchsorted(steps, wide[finite]) + (1 if end > 0 else -1)
        want = np.where((at >= 0) & (at < len(steps)), steps[np.clip(at, 0, len(steps) - 1)], end)
        np.testing.assert_array_equal(got[finite], want)
        assert np.isnan(got[np.isnan(wide)]).all()
        assert got[wide == -end].tolist() == [-np.sign(end) * steps[-1]]
    assert pt.equal(pt.nextafter(x, x).view(pt.int16)[wide == wide], bits[wide == wide])
    y = pt.ones(3, dtype=kind, requires_grad=True)
    (g,) = pt.autograd.grad(pt.nextafter(y, pt.zeros(3, dtype=kind)).sum(), y)
    assert g.tolist() == [1, 1, 1]


def test_square_of_bool():
    got = pt.square(pt.tensor([True, False]))
    assert got.dtype is pt.int64 and got.tolist() == [1, 0]


def test_real_results_are_not_written_over_complex_numbers():
    z = pt.tensor([3 + 4j])
    with pytest.raises(RuntimeError, match="abs_: the result is real"):
        z.abs_()
    assert z.tolist() == [3 + 4j]
    assert pt.abs(z, out=pt.empty(1, dtype=pt.float64)).tolist() == [5] and pt.abs(z, out=z).tolist() == [5]
    with pytest.raises(RuntimeError, match="abs: out must have dtype float32"):
        pt.abs(pt.tensor([1.0]), out=pt.empty(1, dtype=pt.float64))
    with pytest.raises(RuntimeError, match="polygamma_: "):
        pt.tensor([1]).polygamma_(1)


def test_scans_compute_in_the_dtype_of_out():
    x = np.array([1.5, 1.75, -2.5])
    for name, scan in (("cumsum", np.cumsum), ("cumprod", np.cumprod)):
        f = getattr(pt, name)
        assert f(pt.tensor(x), 0, out=pt.empty(3, dtype=pt.int64)).tolist() == scan(x.astype(int)).tolist()
        assert f(pt.tensor(x), 0, out=pt.empty(3, dtype=pt.float32)).tolist() == scan(x).tolist()
        with pytest.raises(RuntimeError, match=f"{name}: out must have dtype float32, got float64"):
            f(pt.tensor(x), 0, dtype=pt.float32, out=pt.empty(3, dtype=pt.float64))


def test_draws_and_factors_are_written_to_any_dtype():
    p = pt.tensor([1.0, 0.0])
    assert pt.bernoulli(p, out=pt.empty(2, dtype=pt.bool)).tolist() == [True, False]
    outs = pt.empty(2, 2, dtype=pt.float64), pt.empty(2, dtype=pt.int64)
    pt.lu(pt.eye(2), out=outs)
    assert outs[0].tolist() == [[1, 0], [0, 1]] and outs[1].tolist() == [1, 2]


@pytest.mark.parametrize("name", ["linspace", "logspace"])
def test_ranges_keep_the_shape_of_out(name):
    f, out = getattr(pt, name), pt.empty(2, 2, dtype=pt.float64)
    assert f(0, 1, 4, out=out) is out and out.shape == (2, 2)
    np.testing.assert_allclose(out.ravel().numpy(), getattr(np, name)(0, 1, 4))
    with pytest.raises(RuntimeError, match=f"{name}: dtype must be that of out"):
        f(0, 1, 4, dtype=pt.float32, out=out)
    assert f(0, 1, 3, out=pt.empty(0)).shape == (3,)


def test_arange_of_whole_numbers():
    assert pt.arange(0, 5, 1.5, dtype=pt.int64).tolist() == [0, 1, 2, 3, 4]
    with pytest.raises(ValueError, match=r"arange: step must not be 0 as a number of dtype int64, got 0\.5"):
        pt.arange(0, 5, 0.5, dtype=pt.int64)
    for bounds in ((float("nan"), 5), (0, float("inf")), (0, 5, float("nan"))):
        with pytest.raises(RuntimeError, match="arange: start, end and step must be finite"):
            pt.arange(*bounds, dtype=pt.int64)


def test_out_of_a_few_more():
    z = pt.tensor([1 + 2j])
    assert pt.conj_physical(z, out=pt.empty(1, dtype=pt.complex64)).tolist() == [1 - 2j]
    assert pt.conj_physical(pt.tensor([3]), out=pt.empty(1, dtype=pt.int64)).tolist() == [3]
    assert pt.slice_scatter(pt.zeros(3), pt.ones(2), 0, 1, out=pt.empty(3)).tolist() == [0, 1, 1]
    assert F.avg_pool2d(pt.ones(1, 2, 2), 2, out=pt.empty(1, 1, 1)).tolist() == [[[1]]]
    assert pt.inner(pt.tensor(2.0), pt.ones(2), out=pt.empty(2, dtype=pt.float64)).tolist() == [2, 2]
    with pytest.raises(RuntimeError, match="inner: out must have dtype float32, got float64"):
        pt.inner(pt.ones(2), pt.ones(2), out=pt.empty((), dtype=pt.float64))


def test_memory_that_cannot_be_moved():
    held = pt.from_numpy(np.zeros(3, np.float32))
    with pytest.warns(UserWarning, match="An output with one or more elements was resized"), pytest.raises(
            RuntimeError, match=r"exp: out must have shape \[5\], as its memory can't be moved, got \[3\]"):
        pt.exp(pt.zeros(5), out=held)
    assert held.shape == (3,)


@pytest.mark.parametrize("shape", [(1, 2), (1, 1, 4), (3, 1), (1, 1)])
def test_layer_norm_of_a_batch_of_one(shape):
    rng = np.random.default_rng(0)
    x, w, b = [pt.tensor(rng.normal(size=s), requires_grad=True) for s in (shape, shape[-1:], shape[-1:])]
    g = rng.normal(size=shape)
    gw, gb = pt.autograd.grad(F.layer_norm(x, shape[-1:], w, b), (w, b), pt.tensor(g))
    v = x.detach().numpy()
    hat = (v - v.mean(-1, keepdims=True)) / np.sqrt(v.var(-1, keepdims=True) + 1e-5)
    assert gw.shape == w.shape and gb.shape == b.shape
    np.testing.assert_allclose(gw.numpy(), (g * hat).reshape(-1, shape[-1]).sum(0), atol=1e-12)
    np.testing.assert_allclose(gb.numpy(), g.reshape(-1, shape[-1]).sum(0), atol=1e-12)
    assert pt.autograd.gradcheck(lambda x, w, b: F.layer_norm(x, shape[-1:], w, b), (x, w, b))
    assert pt.autograd.gradgradcheck(lambda x, w, b: F.layer_norm(x, shape[-1:], w, b), (x, w, b))


def test_layer_norm_of_one_element_has_no_slope():
    x = pt.tensor([[3.0], [-5.5]], requires_grad=True)
    (g,) = pt.autograd.grad(F.layer_norm(x, (1,), pt.tensor([0.7])), x, pt.tensor([[0.3], [1.1]]))
    assert g.tolist() == [[0], [0]]


def test_derivatives_of_dropout_and_bessel_functions():
    x = pt.ones(50, dtype=pt.float64, requires_grad=True)
    (g,) = pt.autograd.grad(F.dropout(x, 0.5), x, pt.ones(50, dtype=pt.float64).requires_grad_(), create_graph=True)
    (h,) = pt.autograd.grad(g.sum(), x, allow_unused=True)
    assert h is None or not h.any()
    z = pt.tensor([0.0], dtype=pt.float64, requires_grad=True)
    for name in ("i1", "i1e"):
        (g,) = pt.autograd.grad(getattr(pt.special, name)(z), z, create_graph=True)
        assert g.tolist() == [0.5] and pt.autograd.grad(g, z)[0].tolist() == [0]


def test_names_of_functions():
    """Those that the program called, in messages too."""
    for f, name in ((F.dropout, "dropout"), (pt.polygamma, "polygamma"), (F.unfold, "unfold"), (pt.complex, "complex"),
                    (F.softmax, "softmax"), (pt.linalg.solve, "linalg_solve")):
        assert f.__name__ == name
        with pytest.raises(TypeError, match=rf"^{name}\(\) missing required argument"):
            f()


def test_shapes_on_meta():
    meta = lambda *shape, dtype=pt.float32: pt.empty(shape, dtype=dtype, device="meta")
    assert pt.segment_reduce(meta(5), "sum", lengths=meta(3, dtype=pt.int64)).shape == (3,)
    assert F.embedding_bag(meta(4, dtype=pt.int64), meta(7, 3), meta(2, dtype=pt.int64), padding_idx=1).shape == (2, 3)
    loss = F.ctc_loss(meta(6, 2, 5), meta(2, 3, dtype=pt.int64), (6, 5), (3, 2), reduction="none")
    assert loss.shape == (2,) and loss.device.type == "meta"


def test_bytes_between_others():
    """By whole weights, as PyTorch: halves are rounded up, what overshoots is cut."""
    x = pt.tensor([[[[0, 255, 0, 255]]]], dtype=pt.uint8)
    assert F.interpolate(x, (1, 2), mode="bilinear").tolist() == [[[[128, 128]]]]
    assert F.interpolate(x, (1, 8), mode="bicubic").dtype is pt.uint8
    assert F.interpolate(x, (1, 4), mode="bicubic").tolist() == x.tolist()
    with pytest.raises(RuntimeError, match="interpolate: mode 'linear' needs a floating-point input, got uint8"):
        F.interpolate(x[0], 2, mode="linear")


def test_norms_of_rare_inputs():
    assert F.batch_norm(pt.ones(0), pt.ones(0), pt.ones(0)).shape == (0,)
    x = np.arange(6).reshape(1, 3, 2)
    square = x * x
    padded = np.concatenate([np.zeros((1, 1, 2), int), square, np.zeros((1, 0, 2), int)], 1)
    mean = (padded[:, :3] + padded[:, 1:]) // 2
    want = x / (mean * 1e-2 + 1.0) ** 0.75
    np.testing.assert_allclose(F.local_response_norm(pt.tensor(x), 2, 1e-2).numpy(), want, rtol=1e-6)


def test_a_power_of_zero_in_a_mean():
    with pytest.raises(ZeroDivisionError, match="lp_pool1d: norm_type must not be 0"):
        F.lp_pool1d(pt.ones(1, 1, 4), 0.0, 2)


@pytest.mark.parametrize("dtype", [pt.float64, pt.complex128])
@pytest.mark.parametrize("n", [1, 2, 3, 8, 13])
def test_logcumsumexp_of_third_order(n, dtype):
    """Derivatives of every order are numbers, also by the incoming gradient where that is 0."""
    x = pt.randn(2, n, 2, dtype=dtype, generator=pt.Generator().manual_seed(0)).requires_grad_()
    weights = pt.randn(2, n, 2, dtype=dtype, generator=pt.Generator().manual_seed(1))
    weights[0, ::2] = 0
    found = []
    for f in (lambda x: pt.logcumsumexp(x, 1), lambda x: x.exp().cumsum(1).log()):
        y, orders = f(x), []
        for _ in range(3):
            y, = pt.autograd.grad(y, x, weights.requires_grad_(), create_graph=True)
            orders.append(y)
        orders += pt.autograd.grad((y * y.conj()).real.sum(), [x, weights])
        found.append(orders)
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-9, atol=1e-9)
    _, tangent = pt.autograd.functional.jvp(lambda x: pt.logcumsumexp(x, 1), x.detach(), pt.ones_like(x))
    np.testing.assert_allclose(tangent.numpy(), 1, rtol=1e-12)


def test_logcumsumexp_behind_infinity():
    x = pt.tensor([-np.inf, -np.inf, 0.0, -1000.0, 800.0, -np.inf], dtype=pt.float64, requires_grad=True)
    g, = pt.autograd.grad(pt.logcumsumexp(x, 0), x, pt.ones(6, dtype=pt.float64), create_graph=True)
    np.testing.assert_allclose(g.detach().numpy(), [0, 0, 2, 0, 2, 0])
    h, = pt.autograd.grad(g[2], x)
    np.testing.assert_allclose(h.numpy(), np.zeros(6))
