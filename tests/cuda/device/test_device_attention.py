"""Attention on a device: sizes around tiles, all masks and layouts, against loops in NumPy and against the CPU."""
import numpy as np
import pytest
from _references_attention import attention, attention_backward
from _tolerance import ACCUMULATED

import ptcore
from ptcore._ops.functions import attention_backward as backward_of
from ptcore._ops.functions import attention_stats, keep_mask
from ptcore.nn.attention import SDPBackend, sdpa_kernel

F = ptcore.nn.functional
DTYPES = ("float32", "float64", "float16", "bfloat16")

# (N, heads, heads of keys, queries, keys, size, size of values): below, at and above a tile, a stage and a pack
SIZES = [(1, 2, 1, 1, 1, 1, 1), (2, 2, 2, 5, 9, 3, 17), (1, 1, 1, 64, 64, 8, 8), (1, 2, 1, 67, 66, 40, 33),
         (1, 1, 1, 9, 65, 100, 100), (1, 4, 2, 3, 70, 64, 64), (1, 1, 1, 33, 3, 128, 128), (1, 1, 1, 12, 20, 5, 140),
         (1, 1, 1, 10, 4, 136, 1), (1, 1, 1, 9, 130, 0, 5), (1, 1, 1, 4, 0, 2, 2), (1, 2, 1, 0, 3, 2, 2),
         (2, 0, 1, 2, 3, 2, 2), (1, 4, 2, 130, 70, 64, 24), (1, 1, 1, 65, 129, 128, 104), (2, 1, 1, 17, 40, 16, 64)]
KERNELS = [b"attention_" + kernel for kernel in (
    b"few", b"narrow", b"wide", b"delta_narrow", b"delta_wide", b"query_narrow", b"query_wide", b"key_narrow",
    b"key_wide", b"value_narrow", b"value_wide")]
TENSOR_KERNELS = [b"attention_" + kernel for kernel in (
    b"tensor_64", b"tensor_128", b"query_tensor_64", b"query_tensor_128", b"key_tensor_64", b"key_tensor_128")]


def wide(t):
    return t.detach().cpu().to(ptcore.float64).numpy()


def near(got, want, dtype, what):
    tolerance = ACCUMULATED[dtype][0]
    finite = want[np.isfinite(want)]
    scale = max(1, np.abs(finite).max(initial=0))
    np.testing.assert_allclose(wide(got), want, rtol=tolerance, atol=tolerance * scale, err_msg=what)


def drawn(rng, shape, dtype, layout="contiguous"):
    """Values on the device, where they lie in one of several ways."""
    x = ptcore.from_numpy(rng.normal(size=shape)).to(getattr(ptcore, dtype))
    if layout == "heads":           # as MultiheadAttention makes them: heads side by side
        return x.transpose(1, 2).contiguous().cuda().transpose(1, 2)
    if layout == "sliced":          # rows that do not begin at a multiple of 16 bytes
        return ptcore.cat([x[..., :1], x], -1).cuda()[..., 1:]
    if layout == "turned":          # neighbours of a row lie apart
        return x.transpose(-1, -2).contiguous().cuda().transpose(-1, -2)
    return x.cuda()


def masks(rng, size, dtype):
    """(mask, keep, is_causal) of each kind; a query without a key, dims that are expanded."""
    n, h, _, queries, keys = size[:5]
    keep = rng.random((n, h, queries, keys)) < 0.6
    if n * h * queries:
        keep[0, 0, 0] = False
    keep = ptcore.from_numpy(keep).cuda()
    whole = drawn(rng, (n, h, queries, keys), dtype)
    yield None, None, False
    yield None, None, True
    yield None, keep, False
    yield whole, None, False
    yield drawn(rng, (n, 1, 1, keys), dtype).expand(n, h, queries, keys), keep, True


# Few queries of many keys: ranges of keys in blocks of their own, of which the last may be short.
FEW = [(1, 1, 1, 1, 1500, 8, 8), (2, 2, 1, 8, 700, 4, 20), (1, 1, 1, 3, 513, 2, 130)]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [*SIZES, *FEW], ids=lambda s: "x".join(map(str, s)))
def test_against_numpy(size, dtype):
    compare(size, dtype, dtype)


@pytest.mark.parametrize("size", [*SIZES, (1, 2, 1, 200, 150, 128, 128), (1, 2, 2, 140, 90, 60, 68)],
                         ids=lambda s: "x".join(map(str, s)))
def test_tf32(size):
    """Where products of float32 may be rounded to TF32, which has float16's 11 bits."""
    before = ptcore.backends.cuda.matmul.allow_tf32
    ptcore.backends.cuda.matmul.allow_tf32 = True
    try:
        compare(size, "float32", "float16")
    finally:
        ptcore.backends.cuda.matmul.allow_tf32 = before


def compare(size, dtype, precision):
    rng = np.random.default_rng(0)
    n, h, held, queries, keys, e, v = size
    for i, (mask, keep, causal) in enumerate(masks(rng, size, dtype)):
        layout = ("contiguous", "heads", "sliced", "turned", "contiguous")[i]
        shapes = (n, h, queries, e), (n, held, keys, e), (n, held, keys, v), (n, h, queries, v)
        q, k, value, g = (drawn(rng, s, dtype, layout) for s in shapes)
        known = [*map(wide, (q, k, value)), None if mask is None else wide(mask),
                 None if keep is None else keep.cpu().numpy(), causal, 0.25]
        what = f"mask {i}, {layout}"
        out, lse = attention_stats(q, k, value, mask, keep, None, causal, 0.25, 0.0)
        want, sums = attention(*known)
        near(out, want, precision, what)
        near(lse, sums, precision if precision != dtype or dtype == "float64" else "float32", what)
        got = backward_of(g, q, k, value, mask, keep, None, out, lse, causal, 0.25, 0.0, i % 2 == 1)
        wanted = attention_backward(wide(g), *known, i % 2 == 1)
        for name, a, b in zip(("query", "key", "value", "scores"), got, wanted):
            near(a, b, precision, f"{what}, gradient by {name}")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("size", SIZES, ids=lambda s: "x".join(map(str, s)))
def test_where_cudnn_comes_first(size, dtype):
    """By cuDNN, where that is installed and has a plan."""
    with sdpa_kernel([SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION], set_priority=True):
        compare(size, dtype, dtype)


def counts(driver):
    return [driver.standin_launched(name) for name in KERNELS + TENSOR_KERNELS]


BY_TENSORS = [2, 0, 0, 2, 2, *[0] * 6, 1, 1, *[2] * 4]


@pytest.mark.parametrize(("dtype", "tf32", "want"), [("float32", False, [2, 1, 1, *[2] * 8, *[0] * 6]),
                                                     ("float32", True, BY_TENSORS), ("bfloat16", False, BY_TENSORS)])
def test_every_kernel_runs(driver, monkeypatch, dtype, tf32, want):
    """The sizes above are not left to the decomposition."""
    monkeypatch.setattr(ptcore.backends.cuda.matmul, "allow_tf32", tf32)
    before = counts(driver)
    for width in (8, 104):
        for queries in (3, 9):
            q = ptcore.ones(1, 1, queries, width, device="cuda", dtype=getattr(ptcore, dtype), requires_grad=True)
            F.scaled_dot_product_attention(q, q, q).sum().backward()
    assert [n - m for n, m in zip(counts(driver), before)] == want


@pytest.mark.parametrize(("size", "causal", "split"), [(FEW[0], False, 1), (FEW[1], False, 1), (FEW[0], True, 0),
                                                       ((1, 1, 1, 9, 1500, 8, 8), False, 0)])
def test_few_queries_are_split(driver, size, causal, split):
    """Not where they see few keys."""
    before = driver.standin_launched(b"attention_combine")
    n, h, held, queries, keys, e, v = size
    q, k, value = (ptcore.ones(*s, device="cuda") for s in ((n, h, queries, e), (n, held, keys, e), (n, held, keys, v)))
    attention_stats(q, k, value, None, None, None, causal, 0.25, 0.0)
    assert driver.standin_launched(b"attention_combine") - before == split


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("size", [(1, 4, 2, 70, 90, 64, 64), (1, 2, 1, 40, 70, 128, 72)],
                         ids=lambda s: "x".join(map(str, s)))
def test_dropout_by_tensor_cores(size, dtype):
    """Forward and backward drop what the CPU drops, also where the heads of a group share keys."""
    rng = np.random.default_rng(8)
    n, h, held, queries, keys, e, v = size
    state = ptcore.tensor([3, 2**33 + 5])
    shapes = (n, h, queries, e), (n, held, keys, e), (n, held, keys, v), (n, h, queries, v)
    values = [drawn(rng, s, dtype).cpu() for s in shapes]
    for causal in (False, True):
        results = []
        for device in ("cuda", "cpu"):
            q, k, value, g, seed = (x.to(device) for x in (*values, state))
            out, lse = attention_stats(q, k, value, None, None, seed, causal, 0.2, 0.3)
            results.append([out, lse, *backward_of(g, q, k, value, None, None, seed, out, lse, causal, 0.2, 0.3, True)])
        for got, want in zip(*results):
            near(got, wide(want), dtype, f"causal {causal}")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_head_that_is_too_large(driver, dtype):
    """It runs by smaller ops: no tile of it fits shared memory."""
    rng = np.random.default_rng(1)
    values = [drawn(rng, (1, 1, 3, 8000), dtype) for _ in range(3)]
    before = counts(driver)
    results = []
    for device in ("cuda", "cpu"):
        q, k, v = (x.to(device).requires_grad_() for x in values)
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        results.append([out, *ptcore.autograd.grad(out.square().sum(), (q, k, v))])
    assert counts(driver) == before
    for got, want in zip(*results):
        near(got, wide(want), dtype, "large")


def test_numbers_at_the_ends():
    """Scores that are infinite or large, rows that see nothing, no number."""
    inf, nan = np.inf, np.nan
    mask = np.array([[-inf, -inf, -inf], [0, -inf, -inf], [1000, 999, -1000], [nan, 0, 0], [-1e30] * 3], np.float32)
    q, k, v = ptcore.zeros(1, 1, 5, 2), ptcore.ones(1, 1, 3, 2), ptcore.eye(3)[None, None]
    q, k, v, m = (x.cuda() for x in (q, k, v, ptcore.from_numpy(mask)[None, None]))
    out, lse = attention_stats(q, k, v, m, None, None, False, 1.0, 0.0)
    third, large = 1 / 3, 1 / (1 + np.exp(-1))
    want = [[0, 0, 0], [1, 0, 0], [large, 1 - large, 0], [nan] * 3, [third] * 3]
    np.testing.assert_allclose(out.cpu().numpy()[0, 0], want, rtol=1e-6)
    np.testing.assert_allclose(lse.cpu().numpy()[0, 0], [-inf, 0, 1000 + np.log1p(np.exp(-1)), nan, -1e30], rtol=1e-6)
    gq, _, _, scores = backward_of(ptcore.ones_like(out), q, k, v, m, None, None, out, lse, False, 1.0, 0.0, True)
    assert not gq[0, 0, 0].any() and not scores[0, 0, 0].any()
    assert gq[0, 0, 3].isnan().all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("p", [0.3, 1.0])
def test_dropout(dtype, p):
    """For one state the device drops what the CPU drops, forward and backward, whatever the length of a row is."""
    rng = np.random.default_rng(2)
    state = ptcore.tensor([-7, 2**35 + 1])
    for keys in (1, 8, 67):
        values = [drawn(rng, s, dtype).cpu() for s in ((1, 2, 10, 4), (1, 1, keys, 4), (1, 1, keys, 3), (1, 2, 10, 3))]
        results = []
        for device in ("cuda", "cpu"):
            q, k, v, g, drawn_from = (x.to(device) for x in (*values, state))
            out, lse = attention_stats(q, k, v, None, None, drawn_from, False, 0.5, p)
            back = backward_of(g, q, k, v, None, None, drawn_from, out, lse, False, 0.5, p, True)
            results.append([out, lse, *back])
        for got, want in zip(*results):
            near(got, wide(want), dtype, f"{keys} keys")
    q, k = (x.cuda() for x in values[:2])
    basis = ptcore.eye(67, dtype=q.dtype).cuda()[None, None]
    out, _ = attention_stats(q, k, basis, None, None, state.cuda(), False, 0.5, p)
    np.testing.assert_array_equal(out.cpu().to(ptcore.float32).numpy() != 0, keep_mask(state, p, out.shape).numpy())


def test_draws_of_a_seed_are_the_cpus():
    x = ptcore.from_numpy(np.random.default_rng(3).normal(size=(2, 2, 9, 6)))
    results = []
    for device in ("cuda", "cpu"):
        ptcore.manual_seed(11)
        results.append(F.scaled_dot_product_attention(x.to(device), x.to(device), x.to(device), dropout_p=0.4))
    near(results[0], wide(results[1]), "float64", "seeded")


def test_gradcheck():
    rng = np.random.default_rng(5)
    shapes = (1, 2, 2, 2), (1, 1, 3, 2), (1, 1, 3, 1), (2, 3)
    q, k, v, mask = (drawn(rng, s, "float64").requires_grad_() for s in shapes)

    def attend(q, k, v, mask):
        return F.scaled_dot_product_attention(q, k, v, mask, enable_gqa=True)

    assert ptcore.autograd.gradcheck(attend, (q, k, v, mask))
    assert ptcore.autograd.gradgradcheck(attend, (q, k, v, mask))


@pytest.mark.skipif(ptcore.cuda.device_count() < 2, reason="needs two devices")
def test_another_device():
    """Not the current one."""
    x = ptcore.from_numpy(np.random.default_rng(6).normal(size=(1, 2, 9, 4))).to("cuda:1").requires_grad_()
    F.scaled_dot_product_attention(x, x, x).square().sum().backward()
    y = x.detach().cpu().requires_grad_()
    F.scaled_dot_product_attention(y, y, y).square().sum().backward()
    assert x.grad.device == x.device
    near(x.grad, wide(y.grad), "float64", "cuda:1")


def test_the_same_bits_again():
    """Nothing is added by atomics."""
    q, k, v, g = (drawn(np.random.default_rng(i), (1, 2, 70, 8), "float32") for i in range(4))

    def run():
        out, lse = attention_stats(q, k, v, None, None, None, True, 0.2, 0.0)
        back = backward_of(g, q, k, v, None, None, None, out, lse, True, 0.2, 0.0, False)
        return [wide(x).tobytes() for x in (out, lse, *back)]

    assert run() == run()


@pytest.mark.parametrize("causal", [False, True])
def test_multihead_attention(causal):
    """The layer's output, its weights and all gradients are the CPU's."""
    results = []
    for device in ("cpu", "cuda"):
        ptcore.manual_seed(0)
        layer = ptcore.nn.MultiheadAttention(12, 3, batch_first=True).to(device)
        x = drawn(np.random.default_rng(4), (2, 5, 12), "float32").to(device).requires_grad_()
        padding = ptcore.tensor([[False] * 5, [False] * 3 + [True] * 2]).to(device)
        mask = ptcore.ones(5, 5, dtype=ptcore.bool).triu(1).to(device) if causal else None
        out, _ = layer(x, x, x, key_padding_mask=padding, attn_mask=mask, need_weights=False)
        out.square().sum().backward()
        results.append([out, x.grad, *(p.grad for p in layer.parameters())])
    for want, got in zip(*results):
        near(got, wide(want), "float32", "MultiheadAttention")


def gradients_of_equal_scores(dtype, size, queries, **options):
    """Result and gradients of attention where all scores of a row agree."""
    keys = 150
    key = ptcore.zeros(1, 1, keys, size, dtype=dtype).cuda().requires_grad_()
    query = ptcore.ones(1, 2, queries, size, dtype=dtype).cuda().requires_grad_()
    values = ptcore.arange(float(size * keys)).reshape(1, 1, keys, size) / (size * keys)
    values = values.to(dtype).cuda().requires_grad_()
    out = F.scaled_dot_product_attention(query, key, values, enable_gqa=True, **options)
    out.backward(ptcore.ones_like(out))
    return out.detach(), query.grad, key.grad, values.grad


@pytest.mark.parametrize("size", [3, 64, 96])           # one thread per sum, and matrix units of both widths
@pytest.mark.parametrize("queries", [1, 5, 70])         # few queries have their own kernel
@pytest.mark.parametrize("value", ["lowest", -1e9, 3e4])
@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_at_large_scores(dtype, value, queries, size):
    """Where a mask adds one large number to a row, e^(score - lse) has no digits of the sum: as without the mask."""
    if dtype == "float16" and value == -1e9:
        value = -6e4
    dtype_ = getattr(ptcore, dtype)
    mask = ptcore.zeros(queries, 150, dtype=dtype_)
    mask[0] = ptcore.finfo(dtype_).min if value == "lowest" else value
    got = gradients_of_equal_scores(dtype_, size, queries, attn_mask=mask.cuda())
    want = gradients_of_equal_scores(dtype_, size, queries)
    for name, one, other in zip(("result", "query", "key", "value"), got, want):
        near(one, wide(other), dtype, name)
