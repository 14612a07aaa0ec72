"""Attention, sampling at positions and bilinear maps against torch: values, dtypes, gradients, errors, dropout."""
import inspect

import numpy as np
import pytest

import ptcore as pt
from ptcore.autograd import gradcheck, gradgradcheck

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.parity

# (N, heads, heads of keys, queries, keys, size, size of values)
SIZES = [(1, 1, 1, 1, 1, 1, 1), (2, 3, 3, 5, 7, 4, 6), (2, 4, 2, 70, 150, 16, 8), (1, 2, 1, 130, 300, 33, 65),
         (1, 2, 2, 64, 128, 64, 64), (1, 1, 1, 3, 0, 4, 2), (2, 2, 1, 0, 3, 4, 2)]
MASKS = ["none", "causal", "bool", "added", "keys", "some rows"]


def drawn(size, mask, dtype):
    n, h, held, queries, keys, e, v = size
    rng = np.random.default_rng(sum(size))
    shapes = [(n, h, queries, e), (n, held, keys, e), (n, held, keys, v), (n, h, queries, v)]
    arrays = [rng.normal(size=s).astype(dtype) for s in shapes]
    given = None
    if mask in ("bool", "some rows"):
        given = rng.random((n, 1, queries, keys) if mask == "bool" else (queries, 1)) < 0.6
        if queries:
            given[..., 0, :] = False
    elif mask == "added":
        given = rng.normal(size=(h, queries, keys)).astype(dtype)
    elif mask == "keys":
        given = rng.normal(size=(n, 1, 1, keys)).astype(dtype)
    return arrays, given


def attend(lib, arrays, mask, causal, **options):
    *inputs, g = [lib.tensor(a) for a in arrays]
    inputs = [t.requires_grad_() for t in inputs]
    mask = None if mask is None else lib.tensor(mask)
    if mask is not None and mask.dtype != lib.bool:
        inputs.append(mask.requires_grad_())
    out = lib.nn.functional.scaled_dot_product_attention(*inputs[:3], mask, is_causal=causal, **options)
    out.backward(g)
    return [out.detach(), *[t.grad for t in inputs]]


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_attention(size, mask, dtype):
    arrays, given = drawn(size, mask, dtype)
    results = [attend(lib, arrays, given, mask == "causal", enable_gqa=True, scale=0.3) for lib in (pt, torch)]
    tolerance = 1e-12 if dtype == "float64" else 4e-6
    for ours, theirs in zip(*results, strict=True):
        if theirs is None:              # of the mask, where nothing is attended to
            assert 0 in size and not ours.any()
            continue
        assert ours.dtype.name == str(theirs.dtype).removeprefix("torch.")
        theirs = theirs.numpy()
        np.testing.assert_allclose(ours.numpy(), theirs, rtol=0, atol=tolerance * (1 + np.abs(theirs).max(initial=0)))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("mask", ["none", "causal", "bool", "keys"])
def test_attention_of_half_types(mask, dtype):
    arrays, given = drawn((2, 2, 2, 30, 40, 16, 8), mask, "float32")
    results = []
    for lib in (pt, torch):
        low = [lib.tensor(a).to(getattr(lib, dtype)) for a in arrays[:3]]
        m = None if given is None else lib.tensor(given)
        if m is not None and m.dtype != lib.bool:
            m = m.to(low[0].dtype)
        out = lib.nn.functional.scaled_dot_product_attention(*low, m, is_causal=mask == "causal")
        assert out.dtype == low[0].dtype
        results.append(out.to(lib.float32).numpy())
    np.testing.assert_allclose(*results, rtol=0, atol=2e-3 if dtype == "float16" else 2e-2)


@pytest.mark.parametrize("shapes", [
    ((3, 4), (5, 4), (5, 2)), ((2, 3, 4), (5, 4), (5, 4)), ((2, 3, 4), (1, 5, 4), (2, 5, 6)),
    ((2, 2, 2, 3, 4), (2, 1, 2, 5, 4), (2, 2, 5, 4)), ((2, 8, 3, 4), (2, 1, 5, 4), (2, 1, 5, 4))], ids=str)
@pytest.mark.parametrize("mask", [None, (3, 5), (1, 5), (5,), (3, 1)])
def test_other_numbers_of_dims(shapes, mask):
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=s) for s in shapes]
    given = None if mask is None else rng.normal(size=mask)
    shape = torch.nn.functional.scaled_dot_product_attention(*map(torch.tensor, arrays)).shape
    arrays.append(rng.normal(size=tuple(shape)))
    for ours, theirs in zip(*[attend(lib, arrays, given, False) for lib in (pt, torch)], strict=True):
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-10, atol=1e-12)


def test_strided_operands():
    """Heads side by side in memory, a transposed and a reversed operand, an expanded mask."""
    rng = np.random.default_rng(1)
    x, mask = rng.normal(size=(2, 9, 3, 2, 5)), rng.normal(size=(9, 9))
    results = []
    for lib in (pt, torch):
        t = lib.tensor(x, requires_grad=True)
        q, k, v = t.permute(2, 0, 3, 1, 4)
        k = k.transpose(-1, -2).contiguous().transpose(-1, -2)
        m = lib.tensor(mask).t()[None, None].expand(2, 2, 9, 9)
        out = lib.nn.functional.scaled_dot_product_attention(q, k, v.flip(2), m)
        (out * out).sum().backward()
        results.append((out.detach().numpy(), t.grad.numpy()))
    for ours, theirs in zip(*results, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("call", [
    lambda F, R: F.scaled_dot_product_attention(R(4), R(5, 4), R(5, 4)),
    lambda F, R: F.scaled_dot_product_attention(R(2, 3, 4), R(2, 5, 3), R(2, 5, 4)),
    lambda F, R: F.scaled_dot_product_attention(R(2, 3, 4), R(2, 5, 4), R(2, 6, 4)),
    lambda F, R: F.scaled_dot_product_attention(R(2, 3, 4), R(3, 5, 4), R(2, 5, 4)),
    lambda F, R: F.scaled_dot_product_attention(R(2, 3, 4), R(2, 5, 4).double(), R(2, 5, 4)),
    lambda F, R: F.scaled_dot_product_attention(R(2, 3, 4), R(2, 5, 4), R(2, 5, 4), R(3, 5), is_causal=True),
    lambda F, R: F.scaled_dot_product_attention(R(2, 3, 4), R(2, 5, 4), R(2, 5, 4), R(3, 5).half()),
    lambda F, R: F.scaled_dot_product_attention(R(2, 3, 4), R(2, 5, 4), R(2, 5, 4), R(3, 5).long()),
    lambda F, R: F.scaled_dot_product_attention(R(2, 3, 4), R(2, 5, 4), R(2, 5, 4), R(4, 5)),
    lambda F, R: F.scaled_dot_product_attention(R(2, 3, 4), R(2, 5, 4), R(2, 5, 4), R(7, 2, 3, 5)),
    lambda F, R: F.scaled_dot_product_attention(R(2, 3, 4), R(2, 5, 4), R(2, 5, 4), dropout_p=1.5),
    lambda F, R: F.scaled_dot_product_attention(R(2, 8, 3, 4), R(2, 2, 5, 4), R(2, 2, 5, 4)),
    lambda F, R: F.scaled_dot_product_attention(R(2, 8, 3, 4), R(2, 3, 5, 4), R(2, 3, 5, 4), enable_gqa=True),
    lambda F, R: F.scaled_dot_product_attention(R(3, 4), R(5, 4), R(5, 4), enable_gqa=True),
    lambda F, R: F.grid_sample(R(1, 2, 3, 4), R(2, 5, 6, 2)),
    lambda F, R: F.grid_sample(R(1, 2, 3, 4), R(1, 5, 6, 3)),
    lambda F, R: F.grid_sample(R(1, 2, 3, 4), R(1, 5, 2)),
    lambda F, R: F.grid_sample(R(1, 2, 3), R(1, 5, 2)),
    lambda F, R: F.grid_sample(R(1, 2, 3, 4), R(1, 5, 6, 2).double()),
    lambda F, R: F.grid_sample(R(1, 2, 3, 4), R(1, 5, 6, 2), mode="cubic"),
    lambda F, R: F.grid_sample(R(1, 2, 3, 4), R(1, 5, 6, 2), padding_mode="wrap"),
    lambda F, R: F.grid_sample(R(1, 2, 3, 4, 5), R(1, 5, 6, 2, 3), mode="bicubic"),
    lambda F, R: F.grid_sample(R(1, 2, 0, 4), R(1, 5, 6, 2)),
    lambda F, R: F.affine_grid(R(2, 3, 4), (2, 1, 3, 4)),
    lambda F, R: F.affine_grid(R(2, 2, 3), (1, 1, 3, 4)),
    lambda F, R: F.affine_grid(R(2, 2, 3), (2, 1, 0, 4)),
    lambda F, R: F.affine_grid(R(2, 2, 3), (2, 1, 3)),
    lambda F, R: F.affine_grid(R(2, 2, 3).long(), (2, 1, 3, 3)),
    lambda F, R: F.bilinear(R(5, 3), R(6, 4), R(2, 3, 4)),
    lambda F, R: F.bilinear(R(5, 2), R(5, 4), R(2, 3, 4)),
    lambda F, R: F.bilinear(R(5, 3), R(5, 4), R(2, 3, 4), R(3)),
    lambda F, R: F.bilinear(R(5, 3), R(5, 4).double(), R(2, 3, 4)),
    lambda F, R: F.bilinear(R(5, 3), R(1, 5, 4), R(2, 3, 4)),
])
def test_errors(call):
    with pytest.raises((RuntimeError, ValueError, IndexError, NotImplementedError)) as theirs:
        call(torch.nn.functional, torch.ones)
    with pytest.raises(theirs.type, match=r"^(scaled_dot_product_attention|grid_sample|affine_grid|bilinear): "):
        call(pt.nn.functional, pt.ones)


@pytest.mark.parametrize("name", ["grid_sample", "affine_grid", "multi_head_attention_forward"])
def test_signatures(name):
    ours, theirs = (inspect.signature(getattr(lib.nn.functional, name)) for lib in (pt, torch))
    assert [(p.name, p.default) for p in ours.parameters.values()] == [
        (p.name, p.default) for p in theirs.parameters.values()]


# -- derivatives of higher order ---------------------------------------------------------------------

@pytest.mark.parametrize("mask", MASKS)
def test_second_order(mask):
    arrays, given = drawn((1, 2, 1, 3, 4, 2, 3), mask, "float64")
    inputs = [pt.tensor(a).requires_grad_() for a in arrays[:3]]
    m = None if given is None else pt.tensor(given)
    if given is not None and given.dtype != bool:
        inputs.append(m.requires_grad_())

    def call(q, k, v, *added):
        return pt.nn.functional.scaled_dot_product_attention(
            q, k, v, added[0] if added else m, is_causal=mask == "causal", enable_gqa=True)

    assert gradcheck(call, inputs)
    assert gradgradcheck(call, inputs)


def test_second_order_with_dropout():
    """The same numbers are drawn in every call, forward, backward and its backward."""
    arrays, _ = drawn((1, 2, 2, 3, 4, 2, 3), "none", "float64")

    def call(q, k, v):
        pt.manual_seed(5)
        return pt.nn.functional.scaled_dot_product_attention(q, k, v, dropout_p=0.4)

    inputs = [pt.tensor(a).requires_grad_() for a in arrays[:3]]
    assert gradcheck(call, inputs)
    assert gradgradcheck(call, inputs)


# -- dropout -----------------------------------------------------------------------------------------

def test_dropout_is_of_probabilities():
    """With values that single out the keys the result is the probabilities, dropped or scaled."""
    pt.manual_seed(0)
    q, k = pt.randn(2, 3, 90, 8), pt.randn(2, 3, 150, 8)
    v = pt.eye(150).expand(2, 3, 150, 150)
    attention = pt.nn.functional.scaled_dot_product_attention
    p, dropped = attention(q, k, v), attention(q, k, v, dropout_p=0.3)
    kept = dropped != 0
    assert abs(kept.double().mean().item() - 0.7) < 0.01
    np.testing.assert_allclose(dropped[kept].numpy(), (p[kept] / 0.7).numpy(), rtol=1e-5)
    again = attention(q, k, v, dropout_p=0.3)
    assert abs(((again != 0) == kept).double().mean().item() - 0.58) < 0.01        # 0.7**2 + 0.3**2
    assert attention(q, k, v, dropout_p=1.0).abs().max().item() == 0
    pt.manual_seed(0)
    pt.randn(2, 3, 90, 8), pt.randn(2, 3, 150, 8)
    assert pt.equal(attention(q, k, v, dropout_p=0.3), dropped)


def test_dropout_gradients_are_those_of_the_mask_drawn():
    pt.manual_seed(1)
    q, k, v = [pt.randn(2, 2, n, 6, dtype=pt.float64, requires_grad=True) for n in (70, 140, 140)]
    eye = pt.eye(140, dtype=pt.float64).expand(2, 2, 140, 140)
    attention = pt.nn.functional.scaled_dot_product_attention
    pt.manual_seed(2)
    factors = (attention(q, k, eye, dropout_p=0.25) != 0).double() / 0.75
    pt.manual_seed(2)
    out = attention(q, k, v, dropout_p=0.25)
    plain = (pt.softmax(q @ k.transpose(-1, -2) / 6**0.5, -1) * factors) @ v
    np.testing.assert_allclose(out.detach().numpy(), plain.detach().numpy(), rtol=1e-11, atol=1e-12)
    g = pt.randn(*out.shape, dtype=pt.float64)
    for ours, theirs in zip(pt.autograd.grad(out, (q, k, v), g), pt.autograd.grad(plain, (q, k, v), g), strict=True):
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-10, atol=1e-11)


def test_threads_do_not_change_bits():
    pt.manual_seed(0)
    q, k, v, g = [pt.randn(2, 3, 200, 40, requires_grad=True) for _ in range(4)]
    before, results = pt.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            pt.set_num_threads(threads)
            pt.manual_seed(4)
            out = pt.nn.functional.scaled_dot_product_attention(q, k, v, dropout_p=0.1, is_causal=True)
            results.append([t.detach().numpy().tobytes() for t in (out, *pt.autograd.grad(out, (q, k, v), g))])
    finally:
        pt.set_num_threads(before)
    assert results[0] == results[1] == results[2]


# -- positions and bilinear maps -----------------------------------------------------------------------

@pytest.mark.parametrize("align_corners", [False, True, None])
@pytest.mark.parametrize("padding_mode", ["zeros", "border", "reflection"])
@pytest.mark.parametrize(("mode", "dims"), [("bilinear", 2), ("nearest", 2), ("bicubic", 2), ("bilinear", 3),
                                            ("nearest", 3)])
def test_grid_sample(mode, dims, padding_mode, align_corners):
    rng = np.random.default_rng(2)
    x, grid = rng.normal(size=(2, 3, 5, 4, 6)[:dims + 2]), rng.uniform(-2, 2, (2, 7, 3, 4)[:dims + 1] + (dims,))
    g = rng.normal(size=(*x.shape[:2], *grid.shape[1:-1]))
    results = []
    for lib in (pt, torch):
        a, b = lib.tensor(x, requires_grad=True), lib.tensor(grid, requires_grad=True)
        out = lib.nn.functional.grid_sample(a, b, mode, padding_mode, align_corners)
        out.backward(lib.tensor(g))
        results.append((out.detach().numpy(), a.grad.numpy(), b.grad.numpy()))
    for ours, theirs in zip(*results, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize(("mode", "dims", "padding_mode"), [
    ("bilinear", 2, "zeros"), ("bilinear", 2, "border"), ("bilinear", 2, "reflection"), ("nearest", 2, "zeros"),
    ("nearest", 2, "border"), ("nearest", 2, "reflection"), ("bicubic", 2, "zeros"), ("bicubic", 2, "border"),
    ("bicubic", 2, "reflection"), ("bilinear", 3, "zeros"), ("nearest", 3, "zeros")])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_grid_sample_at_infinite_positions(mode, dims, padding_mode, align_corners, dtype):
    rng = np.random.default_rng(2)
    x = rng.normal(size=(1, 2, 5, 4, 6)[:dims + 2]).astype(dtype)
    places = [[value if k == d else 0.3 for k in range(dims)] for d in range(dims)
              for value in (np.nan, np.inf, -np.inf, 1e12, -1e12)]
    grid = np.array([*places, [np.nan] * dims, [0.1] * dims], dtype).reshape(1, *[1] * (dims - 1), -1, dims)
    results = []
    for lib in (pt, torch):
        a, b = lib.tensor(x, requires_grad=True), lib.tensor(grid, requires_grad=True)
        out = lib.nn.functional.grid_sample(a, b, mode, padding_mode, align_corners)
        results.append([out.detach().numpy()])
        if padding_mode == "zeros" or mode == "bicubic":        # PyTorch's backward reads outside of the others
            out.sum().backward()
            results[-1] += [a.grad.numpy(), b.grad.numpy()]
    for ours, theirs in zip(*results, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)


def test_grid_sample_takes_any_strides_and_positions():
    rng = np.random.default_rng(3)
    x, grid = rng.normal(size=(4, 5, 3, 2)).astype(np.float32), rng.uniform(-1, 1, (2, 6, 4, 2)).astype(np.float32)
    grid[0, 0] = 1e30
    results = []
    for lib in (pt, torch):
        a, b = lib.tensor(x).permute(3, 2, 0, 1), lib.tensor(grid).transpose(1, 2)
        results.append(lib.nn.functional.grid_sample(a, b, padding_mode="border").numpy())
    np.testing.assert_allclose(*results, rtol=1e-5, atol=1e-6)
    odd = pt.tensor([[[[float("nan"), 0.0], [float("inf"), 0.0], [0.0, -float("inf")]]]])
    for mode in ("bilinear", "nearest", "bicubic"):
        for padding_mode in ("zeros", "border", "reflection"):
            pt.nn.functional.grid_sample(pt.ones(1, 1, 3, 3), odd, mode, padding_mode)        # no crash


@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("size", [(2, 1, 3, 4), (2, 3, 1, 5), (2, 1, 2, 3, 4), (2, 1, 1, 1, 2)])
def test_affine_grid(size, align_corners):
    rng = np.random.default_rng(4)
    theta, results = rng.normal(size=(2, len(size) - 2, len(size) - 1)), []
    for lib in (pt, torch):
        t = lib.tensor(theta, requires_grad=True)
        out = lib.nn.functional.affine_grid(t, size, align_corners)
        (out * out).sum().backward()
        results.append((out.detach().numpy(), t.grad.numpy()))
    for ours, theirs in zip(*results, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("lead", [(), (5,), (2, 3)])
def test_bilinear(lead):
    rng = np.random.default_rng(5)
    arrays, results = [rng.normal(size=s) for s in ((*lead, 3), (*lead, 4))], []
    for lib in (pt, torch):
        layer = lib.nn.Bilinear(3, 4, 2).double()
        for p, q in zip(layer.parameters(), (rng.normal(size=(2, 3, 4)), rng.normal(size=2)), strict=True):
            p.data.copy_(lib.tensor(q))
        rng = np.random.default_rng(5)
        [rng.normal(size=s) for s in ((*lead, 3), (*lead, 4))]
        inputs = [lib.tensor(a, requires_grad=True) for a in arrays]
        out = layer(*inputs)
        (out * out).sum().backward()
        results.append((repr(layer.float()), list(layer.state_dict()), out.detach().numpy(),
                        *[t.grad.double().numpy() for t in (*inputs, *layer.parameters())]))
    assert results[0][:2] == results[1][:2]
    for ours, theirs in zip(*[r[2:] for r in results], strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-6)


def test_bilinear_starts_as_torchs():
    layer = pt.nn.Bilinear(16, 30, 40)
    for p in layer.parameters():
        assert 0.2 < p.abs().max().item() <= 0.25
    assert abs(layer.weight.std().item() - 0.25 / 3**0.5) < 0.005
    with pytest.raises(ValueError, match="Bilinear: in1_features"):
        pt.nn.Bilinear(0, 3, 2)


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("size", [s for s in SIZES if s[4] <= 128], ids=str)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_is_rounded_once(size, mask, dtype):
    """Gradients of halves are those of the same numbers in double precision, rounded."""
    arrays, given = drawn(size, mask, "float32")
    halves = [torch.tensor(a).to(getattr(torch, dtype)).double().numpy() for a in arrays]
    added = given is not None and given.dtype != bool
    if added:
        given = torch.tensor(given).to(getattr(torch, dtype)).double().numpy()
    exact = attend(torch, halves, given, mask == "causal", enable_gqa=True, scale=0.3)
    inputs = [pt.tensor(a, dtype=getattr(pt, dtype)).requires_grad_(i < 3) for i, a in enumerate(halves)]
    other = None if given is None else pt.tensor(given, dtype=getattr(pt, dtype)) if added else pt.tensor(given)
    out = pt.nn.functional.scaled_dot_product_attention(*inputs[:3], other, is_causal=mask == "causal", enable_gqa=True,
                                                        scale=0.3)
    out.backward(inputs[3])
    for x, want in zip([out.detach(), *[t.grad for t in inputs[:3]]], exact):
        want = want.numpy()
        np.testing.assert_allclose(x.double().numpy(), want, rtol=1.01 * pt.finfo(getattr(pt, dtype)).eps / 2,
                                   atol=1e-6 + 1e-5 * abs(want).max(initial=0))
