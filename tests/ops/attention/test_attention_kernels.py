"""Attention and sampling at positions against the loops of tests/ops/_references_attention.py."""
import importlib.util
import pathlib

import numpy as np
import pytest

from _kernel_arrays import EPS, FLOAT, make, wide
from _kernels import KernelError

import ptcore as pt
from ptcore._ops import function

_path = pathlib.Path(__file__).resolve().parents[2] / "ops" / "_references_attention.py"
_spec = importlib.util.spec_from_file_location("_references_attention", _path)
reference = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(reference)

# (N, heads, heads of keys, queries, keys, size, size of values): below, at and above a block and a vector
SIZES = [(1, 2, 1, 1, 1, 1, 1), (2, 2, 2, 5, 9, 3, 17), (1, 2, 1, 64, 128, 16, 8), (1, 1, 1, 67, 260, 40, 33), (1, 2, 2, 130, 20, 5, 70),
         (1, 1, 1, 3, 0, 2, 2)]


def near(got, want, dtype):
    scale = np.abs(want).max(initial=0, where=np.isfinite(want))
    np.testing.assert_allclose(wide(got), want, rtol=EPS[dtype] * 4, atol=EPS[dtype] * (4 + 8 * scale))


def layouts(x):
    """Rows apart, backwards, heads side by side."""
    yield x
    yield np.ascontiguousarray(x[:, :, ::-1, ::-1])[:, :, ::-1, ::-1].view(type(x))
    yield np.swapaxes(np.ascontiguousarray(np.swapaxes(x, 1, 2)), 1, 2).view(type(x))


def masks(rng, size, dtype):
    n, h, _, queries, keys = size[:5]
    keep = rng.random((n, h, queries, keys)) < 0.6
    if queries:
        keep[0, 0, 0] = False
    yield None, None, False
    yield None, None, True
    yield None, keep, False
    yield make(rng, (n, h, queries, keys), dtype), None, False
    yield np.broadcast_to(make(rng, (n, 1, 1, keys), dtype), (n, h, queries, keys)), keep, True


@pytest.mark.parametrize("dtype", FLOAT)
def test_attention(kernels, dtype):
    rng = np.random.default_rng(0)
    stat = "float64" if dtype == "float64" else "float32"
    for size in SIZES:
        n, h, held, queries, keys, e, v = size
        for mask, keep, causal in masks(rng, size, dtype):
            shapes = [(n, h, queries, e), (n, held, keys, e), (n, held, keys, v)]
            inputs = [make(rng, s, dtype) for s in shapes]
            g = make(rng, (n, h, queries, v), dtype)
            if mask is not None and dtype == "bfloat16":
                mask = mask.view(type(g))
            known = [wide(x) for x in inputs] + [None if mask is None else wide(mask), keep, causal, 0.25]
            out, lse = reference.attention(*known)
            for q, k, value in zip(*map(layouts, inputs)):
                got, sums = kernels("attention", [q, k, value, mask, keep, None], [(g.shape, dtype), (g.shape[:3], stat)],
                                    [causal, 0.25, 0.0])
                near(got, out, dtype)
                near(sums, lse, stat)
                for scores in (False, True):
                    want = reference.attention_backward(wide(g), *known, scores)
                    outputs = [(s, dtype) for s in (*shapes, (n, h, queries, keys) if scores else (0,))]
                    result = kernels("attention_backward", [g, q, k, value, mask, keep, None, out.astype(stat), lse.astype(stat)],
                                     outputs, [causal, 0.25, 0.0, scores])
                    for a, b in zip(result, want):
                        near(a, b, dtype)


def test_dropout(kernels):
    """The mask of the forward, seen through values that are a basis, is that of the state and of the backward."""
    rng = np.random.default_rng(1)
    q, k = rng.normal(size=(1, 2, 70, 4)), rng.normal(size=(1, 1, 150, 4))
    basis, state = np.broadcast_to(np.eye(150), (1, 1, 150, 150)), np.array([-7, 2**35 + 1])
    shapes = [((1, 2, 70, 150), "float64"), ((1, 2, 70), "float64")]
    p, lse = kernels("attention", [q, k, basis, None, None, None], shapes, [False, 0.5, 0.0])
    dropped, same = kernels("attention", [q, k, basis, None, None, state], shapes, [False, 0.5, 0.3])
    kept = kernels("keep_mask", [state], [((1, 2, 70, 150), "bool")], [0.3, [1, 2, 70, 150]])
    np.testing.assert_array_equal(lse, same)
    np.testing.assert_allclose(dropped, np.where(kept, p / 0.7, 0), rtol=1e-12)
    np.testing.assert_array_equal(kept, reference.keep_mask(state, 0.3, kept.shape))
    g = rng.normal(size=p.shape)
    result = kernels("attention_backward", [g, q, k, basis, None, None, state, dropped, lse],
                     [(q.shape, "float64"), (k.shape, "float64"), (basis.shape, "float64"), (p.shape, "float64")],
                     [False, 0.5, 0.3, True])
    z = kept / 0.7
    ds = p * (g * z - (g * z * p).sum(-1, keepdims=True))
    for got, want in zip(result, (0.5 * ds @ k, 0.5 * np.einsum("nhls,nhle->nse", ds, q)[:, None],
                                  np.einsum("nhls,nhlv->nsv", p * z, g)[:, None], ds)):
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12)
    assert not kernels("attention", [q, k, basis, None, None, state], shapes, [False, 0.5, 1.0])[0].any()


def test_numbers_at_the_ends(kernels):
    """Scores that are infinite or large, rows that see nothing, no number."""
    inf, nan = np.inf, np.nan
    mask = np.array([[-inf, -inf, -inf], [0, -inf, -inf], [1000, 999, -1000], [nan, 0, 0], [-1e30, -1e30, -1e30]], np.float32)
    q, k, v = np.zeros((1, 1, 5, 2), np.float32), np.ones((1, 1, 3, 2), np.float32), np.eye(3, dtype=np.float32)[None, None]
    out, lse = kernels("attention", [q, k, v, mask[None, None], None, None], [((1, 1, 5, 3), "float32"), ((1, 1, 5), "float32")],
                       [False, 1.0, 0.0])
    third, large = 1 / 3, 1 / (1 + np.exp(-1))
    want = [[0, 0, 0], [1, 0, 0], [large, 1 - large, 0], [nan] * 3, [third] * 3]
    np.testing.assert_allclose(out[0, 0], want, rtol=1e-6)
    np.testing.assert_allclose(lse[0, 0], [-inf, 0, 1000 + np.log1p(np.exp(-1)), nan, -1e30], rtol=1e-6)
    grads = kernels("attention_backward", [out * 0 + 1, q, k, v, mask[None, None], None, None, out, lse],
                    [(q.shape, "float32"), (k.shape, "float32"), (v.shape, "float32"), ((1, 1, 5, 3), "float32")],
                    [False, 1.0, 0.0, True])
    assert not grads[0][0, 0, 0].any() and not grads[3][0, 0, 0].any()
    assert np.isnan(grads[0][0, 0, 3]).all()


def test_threads_do_not_change_bits(kernels):
    rng = np.random.default_rng(2)
    q, k, v, g = (rng.normal(size=(2, 3, 150, 24)).astype(np.float32) for _ in range(4))
    results = []
    for threads in (1, 2):
        kernels.threads(threads)
        out, lse = kernels("attention", [q, k, v, None, None, None], [(q.shape, "float32"), (q.shape[:3], "float32")], [True, 0.2, 0.0])
        back = kernels("attention_backward", [g, q, k, v, None, None, None, out, lse],
                       [(q.shape, "float32")] * 3 + [((0,), "float32")], [True, 0.2, 0.0, False])
        results.append([x.tobytes() for x in (out, lse, *back)])
    kernels.threads(1)
    assert results[0] == results[1]


def test_errors(kernels):
    x = np.ones((1, 1, 2, 3), np.float32)
    outputs = [(x.shape, "float32"), ((1, 1, 2), "float32")]

    def attend(q=x, k=x, v=x, mask=None, keep=None, state=None, p=0.0):
        kernels("attention", [q, k, v, mask, keep, state], outputs, [False, 1.0, p])

    for bad, text in (({"q": x[0]}, "4 dimensions"), ({"k": x[..., :2]}, "do not agree"), ({"v": x[:, :, :1]}, "do not agree"),
                      ({"mask": x}, "a mask of shape"), ({"keep": x[..., :2]}, "a mask of dtype bool"),
                      ({"k": x.astype(np.float64)}, "one dtype"), ({"p": 1.5}, "must be in"), ({"p": np.nan}, "must be in"),
                      ({"p": 0.5}, "random state"), ({"p": 0.5, "state": np.ones(3, np.int64)}, "random state")):
        with pytest.raises(KernelError, match=text):
            attend(**bad)
    with pytest.raises(KernelError, match="log-sum-exp do not agree"):
        kernels("attention_backward", [x, x, x, x, None, None, None, x, np.ones((1, 1, 3), np.float32)],
                [(x.shape, "float32")] * 3 + [((0,), "float32")], [False, 1.0, 0.0, False])


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_operands_of_grid_sample_are_checked_before_its_kernel(device):
    sample, slopes = function("grid_sampled"), function("grid_sample_backward")

    def made(*shape, dtype="float32"):
        return pt.zeros(shape, dtype=dtype, device=device)
    image, grid, volume, places = made(2, 3, 4, 5), made(2, 6, 7, 2), made(2, 3, 4, 5, 6), made(2, 7, 8, 9, 3)
    how = "bilinear", "zeros", False
    for args, text in (((image, image), "grid must have shape"), ((image, places), "4 or 5 dimensions"),
                       ((made(2, 3, 0, 5), grid), "must be positive"), ((image, grid[:1]), "grid must have shape"),
                       ((image, grid.double()), "dtype float32, got float64"),
                       ((image.long(), grid.long()), "dtype must be one of")):
        g = made(2, 3, 6, 7).to(args[0].dtype)
        for call in (lambda: sample(*args, *how), lambda: slopes(g, *args, *how)):
            with pytest.raises(RuntimeError, match=rf"^grid_sample: .*{text}"):
                call()
    for call in (lambda: sample(volume, places, "bicubic", *how[1:]),
                 lambda: slopes(made(2, 3, 7, 8, 9), volume, places, "bicubic", *how[1:])):
        with pytest.raises(RuntimeError, match=r"^grid_sample: mode 'bicubic' needs input of 4 dimensions, got shape"):
            call()
    for g in (made(2, 3, 6), made(2, 3, 7, 6), made(2, 1, 6, 7), made(1, 3, 6, 7)):
        with pytest.raises(RuntimeError, match=r"^grid_sample: g must have"):
            slopes(g, image, grid, *how)
    assert sample(volume, places, *how).shape == (2, 3, 7, 8, 9)
    assert [x.shape for x in slopes(made(2, 3, 6, 7), image, grid, *how)] == [image.shape, grid.shape]


MODES, PADDINGS = ["bilinear", "nearest", "bicubic"], ["zeros", "border", "reflection"]


@pytest.mark.parametrize("dtype", FLOAT)
def test_positions(kernels, dtype):
    rng = np.random.default_rng(3)
    for shape, points in (((2, 3, 5, 4), (2, 6, 3)), ((1, 2, 1, 7), (1, 2, 5)), ((2, 2, 3, 4, 2), (2, 2, 3, 2))):
        x, grid = make(rng, shape, dtype), make(rng, (*points, len(shape) - 2), dtype)
        g = make(rng, (*shape[:2], *points[1:]), dtype)
        for how in [(m, p, a) for m in range(3 if len(shape) == 4 else 2) for p in range(3) for a in (False, True)]:
            named = (MODES[how[0]], PADDINGS[how[1]], how[2])
            for moved in (x, np.asfortranarray(x).view(type(x))):
                near(kernels("grid_sample", [moved, grid], [(g.shape, dtype)], how), reference.grid_sample(wide(x), wide(grid), *named),
                     dtype)
            want = reference.grid_sample_backward(wide(g), wide(x), wide(grid), *named)
            for a, b in zip(kernels("grid_sample_backward", [g, x, grid], [(x.shape, dtype), (grid.shape, dtype)], how), want):
                near(a, b, dtype)


def test_positions_nowhere(kernels):
    """Positions far away, infinite or no numbers read nothing outside of the input."""
    x = np.ones((1, 1, 3, 3))
    for value in (np.nan, np.inf, -np.inf, 1e300, -1e300, 2.0**62, 1e9):
        grid = np.array([[[[value, 0.0], [0.0, value], [value, value]]]])
        for how in [(m, p, a) for m in range(3) for p in range(3) for a in (False, True)]:
            out = kernels("grid_sample", [x, grid], [((1, 1, 1, 3), "float64")], how)
            assert (out[np.isfinite(out)] <= 1 + 1e-12).all()
            kernels("grid_sample_backward", [out, x, grid], [(x.shape, "float64"), (grid.shape, "float64")], how)
