"""Operands whose neighbours are loaded together: broadcast, permuted and cut ones, beside such as are not aligned."""
import itertools

import numpy as np
import pytest

import ptcore

rng = np.random.default_rng(3)
DTYPES = ["float32", "float64", "float16", "int8", "uint8", "int64", "bool", "complex128"]


def numbers(dtype, *shape):
    return rng.integers(0, 2 if dtype == "bool" else 100, shape).astype(dtype)


def pairs(dtype):
    """Two arrays that broadcast to one shape, made on the device as they are here."""
    wide = numbers(dtype, 6, 5, 64)
    yield wide, numbers(dtype, 64)                                      # a row
    yield wide, numbers(dtype, 6, 1, 1)                                 # a number for each matrix
    yield wide, numbers(dtype, 5, 1)                                    # a column
    yield numbers(dtype, 5, 1), wide
    yield numbers(dtype, 1, 64), numbers(dtype, 33, 1)                  # both are
    yield wide[:, 1:4], wide[:, :3]                                     # parts: packs, but not one dim
    yield wide[:, :, 16:48], wide[:, :, 32:]
    yield wide[:, :, 1:49], wide[:, :, :48]                             # not aligned
    yield wide[:, :, :63], numbers(dtype, 63)                           # no whole packs
    yield wide.transpose(1, 0, 2), numbers(dtype, 5, 6, 64)             # permuted, the rows whole
    yield wide.transpose(0, 2, 1), numbers(dtype, 6, 64, 5)             # permuted, the rows in pieces
    yield wide[:, :, ::2], wide[:, :, 1::2]
    yield wide[:, ::-1], wide                                           # backwards along outer dims
    yield wide[:, :, ::-1], wide


def on_device(x):
    """A view of a copy of the whole array that ``x`` is cut from, with its strides."""
    whole = x
    while whole.base is not None:
        whole = whole.base
    flat = ptcore.from_numpy(whole.reshape(-1).copy()).cuda()
    start = (x.__array_interface__["data"][0] - whole.__array_interface__["data"][0]) // x.itemsize
    strides = [s // x.itemsize for s in x.strides]
    if min(strides, default=0) >= 0:
        return flat.as_strided(x.shape, strides, start)
    backwards = [d for d, s in enumerate(strides) if s < 0]
    low = start + sum(strides[d] * (x.shape[d] - 1) for d in backwards)
    return flat.as_strided(x.shape, [abs(s) for s in strides], low)[
        tuple(slice(None, None, -1) if d in backwards else slice(None) for d in range(x.ndim))]


@pytest.mark.parametrize("dtype", DTYPES)
def test_two_operands(dtype):
    for a, b in pairs(dtype):
        x, y = on_device(a), on_device(b)
        np.testing.assert_array_equal(x.cpu().numpy(), a)
        np.testing.assert_array_equal((x + y).cpu().numpy(), a + b)
        np.testing.assert_array_equal((x == y).cpu().numpy(), a == b)
        shape = np.broadcast_shapes(a.shape, b.shape)
        out = ptcore.zeros(shape[::-1], dtype=getattr(ptcore, dtype), device="cuda").permute(*range(len(shape))[::-1])
        ptcore.add(x, y, out=out)
        np.testing.assert_array_equal(out.cpu().numpy(), a + b)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "uint8"])
def test_three_operands(dtype):
    shape = (3, 4, 32)
    kinds = [(3, 4, 32), (32,), (4, 1), (3, 1, 1), ()]
    for one, two, three in itertools.product(kinds, repeat=3):
        c, x, y = (ptcore.from_numpy(rng.integers(0, 3, s)) for s in (one, two, three))
        c, x, y = c > 0, x.to(getattr(ptcore, dtype)), y.to(getattr(ptcore, dtype))
        want = np.where(c.numpy(), x.float().numpy(), y.float().numpy())
        got = ptcore.where(c.cuda(), x.cuda(), y.cuda()).float().cpu().numpy()
        np.testing.assert_array_equal(got, want)
        got = ptcore.where(c.cuda(), x.cuda().expand(shape), y.cuda()).float().cpu().numpy()
        np.testing.assert_array_equal(got, np.broadcast_to(want, shape))


@pytest.mark.parametrize(("source", "target"), [("float32", "float16"), ("int8", "float64"), ("float64", "int8"),
                                                ("bool", "int32"), ("int64", "complex64")])
def test_copies_that_convert(source, target):
    for a, b in pairs(source):
        for x in (a, b):
            got = on_device(x).to(getattr(ptcore, target))
            np.testing.assert_array_equal(got.cpu().numpy(), x.astype(target))
            got = ptcore.empty(7, *x.shape, dtype=getattr(ptcore, target), device="cuda")
            got.copy_(on_device(x).expand(7, *x.shape))
            np.testing.assert_array_equal(got.cpu().numpy(), np.broadcast_to(x.astype(target), (7, *x.shape)))


def test_a_number_of_the_host():
    x = ptcore.arange(96, dtype=ptcore.float32).reshape(2, 3, 16)
    half = x.cuda()[:, :2]
    np.testing.assert_array_equal((half * 3).cpu().numpy(), x[:, :2].numpy() * 3)
    np.testing.assert_array_equal((half - ptcore.tensor(2.0)).cpu().numpy(), x[:, :2].numpy() - 2)
    half += 1
    np.testing.assert_array_equal(half.cpu().numpy(), x[:, :2].numpy() + 1)


def test_more_dims_than_four():
    x = rng.random((2, 3, 2, 3, 2, 8)).astype("float32")
    a = ptcore.from_numpy(x).cuda()
    for order in ((4, 0, 2, 1, 3, 5), (5, 4, 3, 2, 1, 0), (3, 2, 1, 0, 5, 4)):
        np.testing.assert_array_equal(a.permute(order).contiguous().cpu().numpy(), x.transpose(order))
        np.testing.assert_array_equal((a.permute(order) + a.permute(order)[..., :1]).cpu().numpy(),
                                      x.transpose(order) + x.transpose(order)[..., :1])


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64"])
@pytest.mark.parametrize("n", [8, 64, 128, 256, 260, 512, 1000, 1024, 2048, 4096, 8192, 9000])
def test_rows(n, dtype):
    """Rows of a register, of several, and of shared memory; float64 by NumPy is the measure."""
    x = rng.standard_normal((5, n)).astype(dtype)
    w, b, g = (rng.standard_normal(s).astype(dtype) for s in ((n,), (n,), (5, n)))
    near = {"float16": 4e-3, "float32": 2e-6, "float64": 1e-14}[dtype]
    wide = x.astype("float64")
    e = np.exp(wide - wide.max(1, keepdims=True))
    soft = e / e.sum(1, keepdims=True)
    t = ptcore.from_numpy(x).cuda().requires_grad_()
    y = t.softmax(-1)
    np.testing.assert_allclose(y.detach().cpu().numpy(), soft, atol=near)
    y.backward(ptcore.from_numpy(g).cuda())
    inner = (soft * g.astype("float64")).sum(1, keepdims=True)
    np.testing.assert_allclose(t.grad.cpu().numpy(), soft * (g.astype("float64") - inner), atol=near)
    centred = wide - wide.mean(1, keepdims=True)
    want = centred / np.sqrt((centred ** 2).mean(1, keepdims=True) + 1e-5) * w.astype("float64") + b.astype("float64")
    for weight, bias in ((w, b), (w, None), (None, None)):
        factors = [None if v is None else ptcore.from_numpy(v).cuda() for v in (weight, bias)]
        got = ptcore.nn.functional.layer_norm(ptcore.from_numpy(x).cuda(), (n,), *factors)
        plain = (want - b.astype("float64")) if bias is None else want
        if weight is None:
            plain = centred / np.sqrt((centred ** 2).mean(1, keepdims=True) + 1e-5)
        np.testing.assert_allclose(got.cpu().numpy(), plain, atol=5 * near)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int64", "bool", "complex128"])
@pytest.mark.parametrize("width", [8, 16, 24, 3, 20])
def test_rows_that_indices_stand_for(width, dtype):
    """Of whole words of 16 bytes and not; along the first dim, the second, both, of a part that is not aligned."""
    table = numbers(dtype, 11, 5, width)
    t = ptcore.from_numpy(table).cuda()
    i, j = rng.integers(0, 11, (4, 3)), rng.integers(0, 5, (4, 3))
    x, y = ptcore.from_numpy(i).cuda(), ptcore.from_numpy(j).cuda()
    np.testing.assert_array_equal(t[x].cpu().numpy(), table[i])
    np.testing.assert_array_equal(t[:, y].cpu().numpy(), table[:, j])
    np.testing.assert_array_equal(t[x, y].cpu().numpy(), table[i, j])
    np.testing.assert_array_equal(t[x - 11].cpu().numpy(), table[i])
    np.testing.assert_array_equal(t[..., 1:][x].cpu().numpy(), table[..., 1:][i])
    np.testing.assert_array_equal(t.index_select(0, x.flatten()).cpu().numpy(), table[i.ravel()])
    np.testing.assert_array_equal(t.index_select(1, y.flatten()).cpu().numpy(), table[:, j.ravel()])
    if dtype in ("float32", "float16"):
        np.testing.assert_array_equal(ptcore.nn.functional.embedding(x, t[:, 0]).cpu().numpy(), table[:, 0][i])
    values = numbers(dtype, 3, 5, width)
    want, rows = table.copy(), rng.permutation(11)[:3]
    want[rows] = values
    t[ptcore.from_numpy(rows).cuda()] = ptcore.from_numpy(values).cuda()
    np.testing.assert_array_equal(t.cpu().numpy(), want)
    want[rows, 2] = values[:, 1]
    t[ptcore.from_numpy(rows).cuda(), 2] = ptcore.from_numpy(values).cuda()[:, 1]
    np.testing.assert_array_equal(t.cpu().numpy(), want)


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "float64", "complex128"])
@pytest.mark.parametrize("shape", [(8, 8), (63, 65), (64, 128), (66, 130), (3, 70, 34), (2, 129, 9)])
def test_turned_matrices(shape, dtype):
    x = numbers(dtype, *shape)
    t = ptcore.from_numpy(x).cuda()
    turned = np.moveaxis(x, -1, -2)
    np.testing.assert_array_equal(t.transpose(-1, -2).contiguous().cpu().numpy(), turned)
    wide = ptcore.zeros(*turned.shape[:-1], turned.shape[-1] + 3, dtype=t.dtype, device="cuda")
    for part in (wide[..., 2:-1], wide[..., 1:-2], wide[..., :-3]):
        part.zero_()
        part.copy_(t.transpose(-1, -2))
        np.testing.assert_array_equal(part.cpu().numpy(), turned)
    cut = ptcore.cat([t, t], -1)[..., 1:x.shape[-1]]
    np.testing.assert_array_equal(cut.transpose(-1, -2).contiguous().cpu().numpy(), turned[..., 1:, :])
