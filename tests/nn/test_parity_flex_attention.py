"""``flex_attention`` and block masks beside PyTorch's."""
import importlib

import numpy as np
import pytest

import ptcore

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.parity
LIBS = (torch, ptcore)

SCORES = [
    None,
    lambda m: lambda s, b, h, q, k: s + (q - k) * 0.1,
    lambda m: lambda s, b, h, q, k: m.where(q >= k, s, -float("inf")),
    lambda m: (lambda t: lambda s, b, h, q, k: s * t[q] / 9 + b)(m.arange(40.0)),
    lambda m: lambda s, b, h, q, k: 3 * m.tanh(s / 3) - h.float() / 8,
]
MASKS = [
    lambda m: lambda b, h, q, k: q >= k,
    lambda m: lambda b, h, q, k: (q >= k) & (q - k <= 6),
    lambda m: (lambda t: lambda b, h, q, k: t[q] == t[k])(m.arange(40) // 7),
    lambda m: lambda b, h, q, k: (q + h + b) % 3 > k % 2,
    lambda m: lambda b, h, q, k: q % 5 == 9,
    lambda m: m.nn.attention.flex_attention.noop_mask,
    lambda m: flex(m).or_masks(lambda b, h, q, k: k < 3, lambda b, h, q, k: q >= k),
]


def flex(m):
    return importlib.import_module(f"{m.__name__}.nn.attention.flex_attention")


def plain(x):
    """What both libraries have: numbers, lists, text."""
    if isinstance(x, (tuple, list)):
        return [plain(e) for e in x]
    if hasattr(x, "detach"):
        return [str(x.dtype).rpartition(".")[2], *x.detach().tolist()]
    return x if isinstance(x, (int, float, str, bool, type(None))) else type(x).__name__


def data(m, *shapes):
    rng = np.random.default_rng(0)
    return [m.from_numpy(rng.standard_normal(shape).astype("float32")) for shape in shapes]


def blocks(m, mask, size=8, **options):
    return flex(m).create_block_mask(MASKS[mask](m), 2, 4, 30, 26, "cpu", BLOCK_SIZE=size, **options)


@pytest.mark.parametrize("score", range(len(SCORES)))
@pytest.mark.parametrize("mask", [None, *range(len(MASKS))])
@pytest.mark.parametrize("gqa", [False, True])
def test_attention(score, mask, gqa, monkeypatch):
    found = []
    monkeypatch.setattr(flex(torch), "_FLEX_ATTENTION_DISABLE_COMPILE_DEBUG", True)
    for m in LIBS:
        heads = 2 if gqa else 4
        q, k, v = data(m, (2, 4, 30, 8), (2, heads, 26, 8), (2, heads, 26, 5))
        mod = SCORES[score] and SCORES[score](m)
        out, aux = flex(m).flex_attention(q, k, v, mod, None if mask is None else blocks(m, mask), enable_gqa=gqa,
                                          return_aux=flex(m).AuxRequest(lse=True))
        assert type(aux).__name__ == "AuxOutput"
        assert aux.max_scores is None
        found.append((out.numpy(), aux.lse.numpy()))
    for a, b in zip(*found):
        np.testing.assert_allclose(b, a, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("mask", range(len(MASKS)))
@pytest.mark.parametrize("size", [8, (4, 16), 128])
@pytest.mark.parametrize("separate", [True, False])
def test_block_masks(mask, size, separate):
    found = []
    for m in LIBS:
        b = blocks(m, mask, size, separate_full_blocks=separate)
        part = b[1, :2, m.tensor([0])]
        found.append(plain([
            b.as_tuple()[:-1], b.as_tuple(flatten=False)[:-1], b.shape, b.numel(), b.sparsity(), str(b), b.to_dense(),
            repr(b).replace("torch.", ""), b.to_string(2), b.to_string(-1, limit=1), part.as_tuple()[:-1],
            b[-1].as_tuple()[:-1], *(b[i].shape for i in ((0, -2), 5, (-3, 1))),
            b[:, 1:].kv_indices, b[0:1, 1:2].as_tuple()[:-1], b.to("cpu").as_tuple()[:-1],
            flex(m).create_mask(MASKS[mask](m), 2, 4, 30, 26, "cpu")]))
    theirs, ours = found
    assert ours[7].replace("ptcore.", "") == theirs[7]
    assert ours[:7] + ours[8:] == theirs[:7] + theirs[8:]


@pytest.mark.parametrize("lengths", [(30, 26), (16, 16), (9, 8), (40, 40)])
def test_crops_of_a_causal_mask(lengths):
    found = []
    for m in LIBS:
        b = blocks(m, 0)._adjust(*lengths)
        found.append(plain([b.shape, b.to_dense(), b.kv_num_blocks, b.full_kv_num_blocks, b.q_num_blocks]))
    assert found[1] == found[0]


def test_names_and_signatures():
    import inspect
    assert set(flex(ptcore).__all__) == set(flex(torch).__all__)
    for name in ("flex_attention", "create_block_mask", "create_mask", "or_masks", "and_masks", "noop_mask"):
        ours, theirs = (list(inspect.signature(getattr(flex(m), name)).parameters.values()) for m in (ptcore, torch))
        theirs = [p for p in theirs if not p.name.startswith(("compute_dq", "dq_"))]
        assert [(p.name, p.kind, p.default) for p in ours] == [(p.name, p.kind, p.default) for p in theirs], name
    assert {n for n in dir(flex(torch).BlockMask) if not n.startswith("_") and "dq_" not in n} <= set(
        dir(flex(ptcore).BlockMask))
    assert set(flex(ptcore).FlexKernelOptions.__annotations__) == set(flex(torch).FlexKernelOptions.__annotations__)


@pytest.mark.parametrize("call", [
    lambda f, q, b: f.flex_attention(q, q[..., :2], q), lambda f, q, b: f.flex_attention(q[0], q[0], q[0]),
    lambda f, q, b: f.flex_attention(q, q[:, :1], q[:, :1]), lambda f, q, b: f.flex_attention(q, q[:1], q[:1]),
    lambda f, q, b: f.flex_attention(q[:, :3], q[:, :2], q[:, :2], enable_gqa=True),
    lambda f, q, b: f.flex_attention(q, q, q, block_mask=b), lambda f, q, b: f.flex_attention(q, q, q, block_mask=b[0]),
    lambda f, q, b: f.flex_attention(q, q, q, return_lse=True, return_aux=f.AuxRequest()),
    lambda f, q, b: f.flex_attention(q, q, q, kernel_options={"BACKEND": "x"}),
    lambda f, q, b: f.create_block_mask(lambda b, h, q, k: q - k, 1, 1, 2, 2, "cpu"),
    lambda f, q, b: f.create_block_mask(lambda b, h, q, k: True, 1, 1, 2, 2, "cpu"),
    lambda f, q, b: f.create_block_mask(lambda a, b, c: a, 1, 1, 2, 2), lambda f, q, b: f.or_masks(1),
    lambda f, q, b: f.and_masks(None), lambda f, q, b: f.BlockMask.from_kv_blocks(q[0, 0, 0], q[0, 0, 0])])
def test_errors(call):
    kinds = []
    for m in LIBS:
        try:
            call(flex(m), m.ones(2, 4, 6, 3), blocks(m, 0))
        except Exception as e:
            kinds.append(type(e).__name__)
    assert len(kinds) == 2 and kinds[0] == kinds[1]


@pytest.mark.parametrize("mask", range(len(MASKS)))
@pytest.mark.parametrize("gqa", [False, True])
def test_gradients(mask, gqa):
    """Beside PyTorch's composed form: its function itself has no gradients on the CPU."""
    found = []
    for m in LIBS:
        heads = 2 if gqa else 4
        tensors = data(m, (2, 4, 30, 8), (2, heads, 26, 8), (2, heads, 26, 5), (4, 40), (2, 4, 30, 5))
        q, k, v, table = (t.requires_grad_() for t in tensors[:4])

        def score(s, b, h, q, k, m=m, table=table):
            return m.tanh(s * table[h, q]) + table[h, k]

        b = blocks(m, mask)
        if m is torch:
            math_attention = importlib.import_module("torch._higher_order_ops.flex_attention").math_attention
            out, lse, _ = math_attention(q, k, v, score, b.as_tuple(), 8**-0.5, {})
            lse = lse * np.log(2)
        else:
            out, (lse, _) = flex(m).flex_attention(q, k, v, score, b, enable_gqa=gqa,
                                                   return_aux=flex(m).AuxRequest(lse=True))
        total = (out * tensors[4]).sum()
        if not m.isinf(lse).any():
            total = total + m.sin(lse).sum()
        total.backward()
        found.append([t.grad.numpy() for t in (q, k, v, table)])
    for a, b in zip(*found):
        assert np.isfinite(b).all()
        np.testing.assert_allclose(b, a, rtol=1e-3, atol=2e-5)
