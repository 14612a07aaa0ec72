"""``nn.attention.flex_attention`` against NumPy: scores, masks, shared heads, empty rows, gradients; blocks."""
import warnings

import numpy as np
import pytest

import ptcore as pt
from ptcore.nn.attention import _tiles
from ptcore.nn.attention import flex_attention as flex
from ptcore.nn.attention.flex_attention import (
    AuxRequest,
    BlockMask,
    and_masks,
    create_block_mask,
    create_mask,
    flex_attention,
    noop_mask,
    or_masks,
)

pytestmark = pytest.mark.core

TABLE = np.random.default_rng(3).standard_normal((4, 40))
DOCUMENT = np.sort(np.random.default_rng(4).integers(0, 3, 40))


def of(array):
    return pt.from_numpy(np.asarray(array))


# Each formula as ptcore calls it, of one position, and as NumPy evaluates it, of all.
SCORES = {
    "none": (None, lambda s, b, h, q, k: s),
    "slopes": (lambda s, b, h, q, k: s - 0.125 * (h + 1) * (q - k).abs(),
               lambda s, b, h, q, k: s - 0.125 * (h + 1) * np.abs(q - k)),
    "soft cap": (lambda s, b, h, q, k: 2 * (s / 2).tanh(), lambda s, b, h, q, k: 2 * np.tanh(s / 2)),
    "table": (lambda s, b, h, q, k: s + of(TABLE)[h, k], lambda s, b, h, q, k: s + TABLE[h, k]),
    "two tables": (lambda s, b, h, q, k: s * of(TABLE)[b, q] + of(TABLE)[h][k],
                   lambda s, b, h, q, k: s * TABLE[b, q] + TABLE[h, k]),
    "distances": (lambda s, b, h, q, k: s + of(TABLE)[h, q - k] * (q - k).abs().double().log1p(),
                  lambda s, b, h, q, k: s + TABLE[h, q - k] * np.log1p(np.abs(q - k))),
    "mixed": (lambda s, b, h, q, k: pt.where((q - k).abs() < 4, s.sigmoid() * of(TABLE)[h][q], 0.5 * s) * (b + 1)**2,
             lambda s, b, h, q, k: np.where(abs(q - k) < 4, 1 / (1 + np.exp(-s)) * TABLE[h, q], 0.5 * s) * (b + 1)**2),
    "where": (lambda s, b, h, q, k: pt.where(q >= k, s, -float("inf")),
              lambda s, b, h, q, k: np.where(q >= k, s, -np.inf)),
}
MASKS = {
    "none": (None, lambda b, h, q, k: q == q),
    "causal": (lambda b, h, q, k: q >= k, lambda b, h, q, k: q >= k),
    "window": (lambda b, h, q, k: (q >= k) & (q - k < 5), lambda b, h, q, k: (q >= k) & (q - k < 5)),
    "documents": (lambda b, h, q, k: of(DOCUMENT)[q] == of(DOCUMENT)[k],
                  lambda b, h, q, k: DOCUMENT[q] == DOCUMENT[k]),
    "by batch and head": (lambda b, h, q, k: (q + b) % (h + 2) != k % 2, lambda b, h, q, k: (q + b) % (h + 2) != k % 2),
    "empty rows": (lambda b, h, q, k: (q % 7 > 2) & (q >= k), lambda b, h, q, k: (q % 7 > 2) & (q >= k)),
}


@pytest.fixture(params=["scores", "tiles"])
def way(request, monkeypatch):
    """Both ways to attend; that of tiles must be taken where it is asked for."""
    monkeypatch.setattr(flex, "SCORES", 1 if request.param == "tiles" else 1 << 60)
    calls = []
    attend = _tiles.attend
    monkeypatch.setattr(_tiles, "attend", lambda *args: calls.append(args) or attend(*args))
    yield request.param
    assert bool(calls) == (request.param == "tiles")


def inputs(rng, batch=2, heads=4, shared=4, length=19, keys=23, width=6, out=5, dtype=np.float64, keys_batch=None):
    shapes = ((batch, heads, length, width), (keys_batch or batch, shared, keys, width),
              (keys_batch or batch, shared, keys, out))
    return [rng.standard_normal(shape).astype(dtype) for shape in shapes]


def oracle(q, k, v, score, mask, scale=None):
    """(output, lse, max) by NumPy in float64."""
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    k, v = (np.repeat(np.broadcast_to(x, (len(q), *x.shape[1:])), q.shape[1] // k.shape[1], 1) for x in (k, v))
    scores = np.einsum("bhqe,bhke->bhqk", q, k) * (q.shape[-1]**-0.5 if scale is None else scale)
    positions = np.ogrid[tuple(map(slice, scores.shape))]
    scores = np.where(np.broadcast_to(mask(*positions), scores.shape), score(scores, *positions), -np.inf)
    most = scores.max(-1, keepdims=True)
    weights = np.exp(scores - np.where(np.isinf(most), 0, most))
    total = weights.sum(-1, keepdims=True)
    with np.errstate(divide="ignore"):
        lse = (np.log(total) + most)[..., 0]
    return weights / np.where(total == 0, 1, total) @ v, lse, most[..., 0]


def block_mask(name, batch=2, heads=4, length=19, keys=23, size=8, **options):
    if name == "none":
        return None
    return create_block_mask(MASKS[name][0], batch, heads, length, keys, device="cpu", BLOCK_SIZE=size, **options)


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("dtype, tolerance", [("float64", 1e-12), ("float32", 2e-5)])
def test_against_numpy(score, mask, dtype, tolerance, rng, way):
    arrays = inputs(rng, dtype=dtype)
    q, k, v = map(of, arrays)
    want = oracle(*arrays, SCORES[score][1], MASKS[mask][1])
    blocks = block_mask(mask, size=16)
    out, found = flex_attention(q, k, v, SCORES[score][0], blocks, return_aux=AuxRequest(True, True))
    assert out.dtype == q.dtype
    for a, b in zip((out, *found), want):
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)
    alone = flex_attention(q, k, v, SCORES[score][0], blocks)
    np.testing.assert_allclose(alone, want[0], rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("shared", [1, 2])
@pytest.mark.parametrize("score", ["none", "table"])
@pytest.mark.parametrize("mask", ["none", "by batch and head"])
def test_shared_heads_and_batches(shared, score, mask, rng, way):
    for keys_batch in (2, 1) if mask != "none" else (2,):
        arrays = inputs(rng, shared=shared, keys_batch=keys_batch)
        found = flex_attention(*map(of, arrays), SCORES[score][0], block_mask(mask, size=16), enable_gqa=True,
                               scale=0.3, return_aux=AuxRequest(lse=True))[0]
        np.testing.assert_allclose(found, oracle(*arrays, SCORES[score][1], MASKS[mask][1], 0.3)[0], rtol=1e-10)


@pytest.mark.parametrize("dtype", [pt.float16, pt.bfloat16])
def test_halves_are_computed_in_single_precision(dtype, rng, way):
    q, k, v = (of(a).to(dtype) for a in inputs(rng, dtype="float32"))
    out, found = flex_attention(q, k, v, SCORES["slopes"][0], return_aux=AuxRequest(lse=True))
    want, lse, _ = oracle(*(t.float().numpy() for t in (q, k, v)), SCORES["slopes"][1], MASKS["none"][1])
    assert (out.dtype, found.lse.dtype, found.max_scores) == (dtype, pt.float32, None)
    np.testing.assert_allclose(out.float(), want, atol=0.03)
    np.testing.assert_allclose(found.lse, lse, rtol=1e-5)


@pytest.mark.parametrize("mask", ["none", "window", "empty rows"])
@pytest.mark.parametrize("gqa", [False, True])
@pytest.mark.outer
def test_gradients(mask, gqa, rng, monkeypatch):
    """To q, k, v and what score_mod holds; rows without a key have none."""
    arrays = inputs(rng, heads=2, shared=1 if gqa else 2, length=8, keys=9, width=3, out=2)
    tensors = [of(a).requires_grad_() for a in arrays]
    table = of(TABLE[:2, :9].copy()).requires_grad_()
    blocks = block_mask(mask, 2, 2, 8, 9, 4)

    def f(q, k, v, table):
        out, aux = flex_attention(q, k, v, lambda s, b, h, q, k: s * table[h, k], blocks, enable_gqa=gqa,
                                  return_aux=AuxRequest(lse=True))
        return out, aux.lse.masked_fill(aux.lse.isinf(), 0)

    assert pt.autograd.gradcheck(f, (*tensors, table))
    plain = [t.detach().requires_grad_() for t in tensors]
    flex_attention(*plain, None, blocks, enable_gqa=gqa).square().sum().backward()
    assert all(bool(t.grad.isfinite().all()) for t in plain)
    assert pt.autograd.gradcheck(lambda *t: flex_attention(*t, None, blocks, enable_gqa=gqa), tensors)


def results_and_gradients(score, mask, batch=2, heads=4, shared=4, length=40, keys=37, **options):
    arrays = inputs(np.random.default_rng(5), batch, heads, shared, length, keys, 6, 5)
    tensors = [of(a).requires_grad_() for a in arrays]
    blocks = mask and create_block_mask(MASKS[mask][0], batch, heads, length, keys, device="cpu", **options)
    out, aux = flex_attention(*tensors, score, blocks, enable_gqa=True, return_aux=AuxRequest(lse=True))
    lse = aux.lse.masked_fill(aux.lse.isinf(), 0)
    grads = pt.autograd.grad(out.sin().sum() + (lse * lse.detach().cos()).sum(), tensors, allow_unused=True)
    return out, lse, *[pt.zeros_like(t) if g is None else g for g, t in zip(grads, tensors)]


@pytest.mark.parametrize("shared", [1, 4])
@pytest.mark.parametrize("mask", ["none", "causal", "by batch and head", "empty rows"])
@pytest.mark.parametrize("score", SCORES)
def test_gradients_of_tiles(score, mask, shared, monkeypatch):
    """Those of autograd by way of all scores, which gradcheck has found to be right."""
    found = []
    for limit in (1, 1 << 60):
        monkeypatch.setattr(flex, "SCORES", limit)
        found.append(results_and_gradients(SCORES[score][0], None if mask == "none" else mask, shared=shared,
                                           BLOCK_SIZE=16))
    for a, b in zip(*found):
        np.testing.assert_allclose(a.detach(), b.detach(), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("size", [16, 32, 64, (16, 8), (48, 128), (64, 200), 128, 1024])
@pytest.mark.parametrize("length, keys", [(1, 150), (150, 1), (70, 300), (150, 131), (129, 257)])
@pytest.mark.parametrize("mask", ["window", "documents", "by batch and head", "empty rows"])
def test_blocks_of_tiles(size, length, keys, mask, monkeypatch):
    formula, oracle_of = MASKS[mask]
    if mask == "documents":
        document = np.arange(400) // 37
        formula, oracle_of = (lambda b, h, q, k: of(document)[q] == of(document)[k],
                              lambda b, h, q, k: document[q] == document[k])
    monkeypatch.setattr(flex, "SCORES", 1)
    arrays = inputs(np.random.default_rng(6), 2, 2, 1, length, keys, 6, 5)
    blocks = create_block_mask(formula, 2, 2, length, keys, device="cpu", BLOCK_SIZE=size)
    out, aux = flex_attention(*map(of, arrays), SCORES["slopes"][0], blocks, enable_gqa=True,
                              return_aux=AuxRequest(True, True))
    for a, b in zip((out, *aux), oracle(*arrays, SCORES["slopes"][1], oracle_of)):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("score", [
    lambda s, b, h, q, k: s + of(TABLE)[h].sum(), lambda s, b, h, q, k: s.add_(1.0),
    lambda s, b, h, q, k: s.new_zeros(()), lambda s, b, h, q, k: s + s.new_tensor([1.0, 2.0]).max(),
    lambda s, b, h, q, k: s + of(TABLE).half()[h, k], lambda s, b, h, q, k: s + of(TABLE).half()[h, q - k],
    lambda s, b, h, q, k: pt.stack([s, -s])[0], lambda s, b, h, q, k: (q - k) * of(TABLE)[0, 0],
    lambda s, b, h, q, k: s * of(TABLE.astype(complex)).real[h, q - k]])
def test_functions_of_any_kind(score, monkeypatch):
    """What is no formula goes by way of all scores; what is one gives the same."""
    found = []
    for limit in (1, 1 << 60):
        monkeypatch.setattr(flex, "SCORES", limit)
        found.append(results_and_gradients(score, "causal"))
    for a, b in zip(*found):
        np.testing.assert_allclose(a.detach(), b.detach(), rtol=1e-9, atol=1e-11)


def test_tiles_and_what_a_function_holds(rng, monkeypatch):
    """A tensor that requires a gradient has one; without gradients it may be a table, read anew by each call."""
    tensors = [of(a) for a in inputs(rng)]
    table = of(TABLE.copy()).requires_grad_()
    calls = []
    attend = _tiles.attend
    monkeypatch.setattr(_tiles, "attend", lambda *args: calls.append(args) or attend(*args))
    monkeypatch.setattr(flex, "SCORES", 1)

    def call():
        return flex_attention(*tensors, lambda s, b, h, q, k: s + table[h, k])

    call().sum().backward()
    assert not calls and table.grad.abs().sum() > 0
    with pt.no_grad():
        for factor in (1, 2):
            want = oracle(*(t.numpy() for t in tensors), lambda s, b, h, q, k, factor=factor: s + factor * TABLE[h, k],
                          MASKS["none"][1])[0]
            np.testing.assert_allclose(call(), want, rtol=1e-11)
            table.mul_(2)
    assert len(calls) == 2


def test_wrong_positions_and_masks(rng, monkeypatch):
    monkeypatch.setattr(flex, "SCORES", 1)
    q, k, v = map(of, inputs(rng, 1, 4, 4, 50, 50))
    for index in (lambda h, q, k: (h, q - k + 40), lambda h, q, k: (h, q - k), lambda h, q, k: (h + 1, k - k)):
        with pytest.raises(IndexError, match=r"out of range of a tensor of shape \[4, 40\]|index .* is out of bounds"):
            flex_attention(q, k, v, lambda s, b, h, q, k, index=index: s + of(TABLE)[index(h, q, k)])
    ones, zeros = pt.ones(1, 1, 1).int(), pt.zeros(1, 1, 1, 1).int()
    for numbers, indices in ((ones, zeros), (ones.expand(1, 3, 1), zeros.expand(1, 3, 1, 1))):
        with pytest.raises(RuntimeError):               # of 16 queries and keys, or 3 heads
            flex_attention(q, k, v, None, BlockMask.from_kv_blocks(numbers, indices, BLOCK_SIZE=16,
                                                                     seq_lengths=(50, 50)))
    wrong = BlockMask.from_kv_blocks(ones * 4, zeros.expand(1, 1, 1, 4) + 9, BLOCK_SIZE=50, seq_lengths=(50, 50),
                                     compute_q_blocks=False)
    with pytest.raises(IndexError, match="9"):
        flex_attention(q, k, v, None, wrong)


@pytest.mark.counts
def test_memory_of_tiles():
    """Forward and backward keep no matrix of scores, which would be 16 MB here, and empty blocks cost nothing."""
    q, k, v = (t.requires_grad_() for t in pt.randn(3, 1, 4, 1024, 16).unbind())
    blocks = block_mask("window", 1, 1, 1024, 1024, 128)
    flex_attention(q, k, v, SCORES["soft cap"][0], blocks).sum().backward()
    pt.cpu.reset_peak_memory_stats()
    before = pt.cpu.memory_allocated()
    flex_attention(q, k, v, SCORES["soft cap"][0], blocks).sum().backward()
    assert pt.cpu.max_memory_allocated() - before < 3 << 20


def test_tiles_do_not_depend_on_threads(rng, monkeypatch):
    monkeypatch.setattr(flex, "SCORES", 1)
    before, found = pt.get_num_threads(), []
    try:
        for n in (1, 2):
            pt.set_num_threads(n)
            found.append(results_and_gradients(SCORES["soft cap"][0], "causal", length=300, keys=300, shared=2))
    finally:
        pt.set_num_threads(before)
    assert all(pt.equal(a, b) for a, b in zip(*found))


def test_second_derivatives_and_transformations(rng, monkeypatch):
    tensors = [of(a).requires_grad_() for a in inputs(rng, 1, 2, 2, 3, 4, 2, 2)]
    cap, _ = SCORES["soft cap"]
    assert pt.autograd.gradgradcheck(lambda *t: flex_attention(*t, cap), tensors)
    with monkeypatch.context() as m:
        m.setattr(flex, "SCORES", 1)
        assert pt.autograd.gradcheck(lambda *t: flex_attention(*t, cap), tensors)
        assert pt.autograd.gradgradcheck(lambda *t: flex_attention(*t, cap), tensors)
    stacked = [pt.stack([t.detach(), 2 * t.detach()]) for t in tensors]
    found = pt.vmap(lambda *t: flex_attention(*t, cap))(*stacked)
    for i in range(2):
        np.testing.assert_allclose(found[i], flex_attention(*(t[i] for t in stacked), cap), rtol=1e-10)


def test_compiled(rng):
    q, k, v = map(of, inputs(rng))
    blocks = block_mask("window")
    for name, (score, _) in SCORES.items():
        want = flex_attention(q, k, v, score, blocks)
        for whole in (False, True) if name in ("none", "slopes", "soft cap", "where") else (False,):
            found = pt.compile(lambda q, k, v, score=score: flex_attention(q, k, v, score, blocks), fullgraph=whole)
            np.testing.assert_allclose(found(q, k, v), want, rtol=1e-12)


def test_long_calls_are_left_out_of_graphs(rng, monkeypatch):
    """Unless one graph is asked for: then it goes by way of all scores."""
    monkeypatch.setattr(flex, "SCORES", 1)
    q, k, v = map(of, inputs(rng))
    calls = []
    attend = _tiles.attend
    monkeypatch.setattr(_tiles, "attend", lambda *args: calls.append(args) or attend(*args))
    blocks, score = block_mask("window", size=16), SCORES["slopes"][0]
    want = flex_attention(q, k, v, score, blocks)
    assert pt.equal(pt.compile(flex_attention)(q, k, v, score, blocks), want) and len(calls) == 2
    found = pt.compile(lambda q, k, v: flex_attention(q, k, v, score, blocks), fullgraph=True)(q, k, v)
    np.testing.assert_allclose(found, want, rtol=1e-11)
    assert len(calls) == 2


@pytest.mark.parametrize("mask", ["none", "window"])
def test_on_meta_and_without_positions(mask, rng):
    tensors = [of(a).to("meta") for a in inputs(rng)]
    blocks = block_mask(mask)
    out, aux = flex_attention(*tensors, SCORES["slopes"][0], blocks and blocks.to("meta"),
                              return_aux=AuxRequest(True, True))
    assert (out.device.type, out.shape, aux.lse.shape, aux.max_scores.shape) == (
        "meta", (2, 4, 19, 5), (2, 4, 19), (2, 4, 19))
    q, k, v = pt.randn(3, 1, 2, 3, 4)
    for score in (None, SCORES["slopes"][0]):
        assert flex_attention(q[:, :, :0], k, v, score).shape == (1, 2, 0, 4)
        out, aux = flex_attention(q, k[:, :, :0], v[:, :, :0], score, return_aux=AuxRequest(lse=True))
        assert (out == 0).all() and (aux.lse == -float("inf")).all()


def test_autocast(rng):
    q, k, v = map(of, inputs(rng, dtype="float32"))
    with pt.autocast("cpu", dtype=pt.bfloat16):
        found = flex_attention(q, k, v, SCORES["slopes"][0])
    halves = [t.bfloat16() for t in (q, k, v)]
    assert pt.equal(found, flex_attention(*halves, SCORES["slopes"][0]))


def test_blocks_count():
    """What no block holds is not looked at, whatever mask_mod says; full blocks are not asked."""
    q, k, v = pt.randn(3, 1, 1, 8, 4, dtype=pt.float64)
    numbers, indices = pt.tensor([[[1, 0]]]).int(), pt.tensor([[[[1, 0], [0, 1]]]]).int()
    only = BlockMask.from_kv_blocks(numbers, indices, BLOCK_SIZE=4)
    found = flex_attention(q, k, v, None, only)
    want = pt.nn.functional.scaled_dot_product_attention(q[..., :4, :], k[..., 4:, :], v[..., 4:, :])
    np.testing.assert_allclose(found[..., :4, :], want)
    assert (found[..., 4:, :] == 0).all()
    full = BlockMask.from_kv_blocks(0 * numbers, indices, numbers, indices, BLOCK_SIZE=4,
                                    mask_mod=lambda b, h, q, k: q < 0)
    np.testing.assert_allclose(flex_attention(q, k, v, None, full), found)


@pytest.mark.parametrize("mask", [name for name in MASKS if name != "none"])
@pytest.mark.parametrize("size", [8, (4, 16), 128])
@pytest.mark.parametrize("separate", [True, False])
def test_blocks_of_a_formula(mask, size, separate, monkeypatch):
    want = np.broadcast_to(MASKS[mask][1](*np.ogrid[:2, :4, :19, :23]), (2, 4, 19, 23))
    assert (create_mask(MASKS[mask][0], 2, 4, 19, 23, device="cpu").numpy() == want).all()
    blocks = block_mask(mask, size=size, separate_full_blocks=separate)
    monkeypatch.setattr("ptcore.nn.attention._block_mask.POSITIONS", 1)          # one row of blocks after the other
    assert pt.equal(block_mask(mask, size=size).to_dense(), blocks.to_dense())
    down, across = blocks.BLOCK_SIZE
    assert blocks.shape == (2, 4, 19, 23)
    rows, columns = -(-19 // down), -(-23 // across)
    padded = np.zeros((2, 4, rows * down, columns * across), bool)
    padded[..., :19, :23] = want
    padded = padded.reshape(2, 4, rows, down, columns, across)
    some, every = padded.any((3, 5)), padded.all((3, 5))
    assert (blocks.to_dense().numpy() == some).all()
    assert (blocks.full_kv_num_blocks is None) != separate
    if separate:
        assert (blocks.full_kv_num_blocks.numpy() == every.sum(-1)).all()
        assert (blocks.full_q_num_blocks.numpy() == every.sum(-2)).all()
    assert (blocks.q_num_blocks.numpy() == (some & ~every if separate else some).sum(-2)).all()
    for i in np.ndindex(2, 4, rows):
        listed = blocks.kv_indices[i][:blocks.kv_num_blocks[i]]
        assert listed.tolist() == np.flatnonzero((some & ~every if separate else some)[i]).tolist()
    assert blocks.sparsity() == pytest.approx(100 * (1 - some.sum() * down * across / want.size))
    assert blocks.numel() == want.size


def test_slices_and_crops():
    blocks = block_mask("by batch and head", size=4)
    part = blocks[1, 2:, pt.tensor([0, 3])]
    assert part.kv_num_blocks.shape == (1, 2, 2)
    assert pt.equal(part.to_dense(), blocks.to_dense()[1:, 2:, [0, 3]])
    assert pt.equal(blocks[-1].to_dense(), blocks.to_dense()[1:])
    assert pt.equal(blocks[np.int64(1), np.int32(2)].to_dense(), blocks.to_dense()[1:, 2:3])
    for wrong in (True, ..., None):
        with pytest.raises(TypeError, match="BlockMask: an index must be"):
            blocks[wrong]
    q, k, v = pt.randn(3, 1, 2, 19, 4)
    with pytest.raises(RuntimeError, match="sliced BlockMask"):
        flex_attention(q, k[..., :1, :].expand(1, 2, 23, 4), v[..., :1, :].expand(1, 2, 23, 4), None, blocks[0, :2])
    with pytest.raises(RuntimeError, match="positions begin elsewhere"):
        part.mask_mod(*pt.zeros(4))
    crop = blocks._adjust(10, 9)
    assert crop.shape == (2, 4, 10, 9)
    assert pt.equal(crop.to_dense(), blocks.to_dense()[..., :3, :3])
    tensors = [pt.randn(2, 4, n, 4) for n in (10, 9, 9)]
    want = oracle(*(t.numpy() for t in tensors), SCORES["none"][1], MASKS["by batch and head"][1])[0]
    np.testing.assert_allclose(flex_attention(*tensors, None, crop), want, atol=1e-5)
    with pytest.raises(ValueError, match=r"_adjust\(q_len, kv_len\)"):
        flex_attention(*tensors, None, blocks)
    with pytest.raises(ValueError, match="for a smaller length"):
        flex_attention(*[pt.randn(2, 4, 24, 4) for _ in range(3)], None, blocks)


def test_other_parts_of_a_block_mask():
    blocks = block_mask("causal", 1, 1, size=8)
    assert blocks.to("cpu").as_tuple()[-1] is blocks.mask_mod
    entries = blocks.as_tuple()
    assert (len(entries), entries[:2], entries[14:16]) == (17, (19, 23), (8, 8))
    assert (blocks.as_tuple(False)[0], len(blocks.as_tuple(False))) == ((19, 23), 15)
    assert "██" in str(blocks) and "░░" in blocks.to_string(2) and "mask_mod=<lambda>" in repr(blocks)
    leaves, tree = pt.utils._pytree.tree_flatten(blocks)
    again = pt.utils._pytree.tree_unflatten(leaves, tree)
    assert repr(again) == repr(blocks)
    without = BlockMask.from_kv_blocks(blocks.kv_num_blocks, blocks.kv_indices, compute_q_blocks=False)
    assert (without.q_indices, without.shape, without.mask_mod) == (None, (1, 1, 384, 384), noop_mask)


def test_formulas_of_formulas():
    causal, near = MASKS["causal"][0], lambda b, h, q, k: (q - k).abs() < 3
    both, either = (create_mask(f(causal, near), 1, 1, 9, 9, device="cpu")[0, 0].numpy() for f in (and_masks, or_masks))
    q, k = np.ogrid[:9, :9]
    assert (both == ((q >= k) & (abs(q - k) < 3))).all()
    assert (either == ((q >= k) | (abs(q - k) < 3))).all()
    assert create_mask(and_masks(), 1, 1, 2, 2, device="cpu").all() and not create_mask(or_masks(), 1, 1, 2, 2).any()
    assert create_mask(SCORES["where"][0], 1, 1, 9, 9)[0, 0].numpy().tolist() == (q >= k).tolist()
    for f in (and_masks, or_masks):
        with pytest.raises(RuntimeError, match="callable mask_mods"):
            f(causal, 3)


@pytest.mark.parametrize("call, error, message", [
    (lambda q: flex_attention(q, q[..., :2], q), ValueError, "same embedding dimension"),
    (lambda q: flex_attention(q[0], q[0], q[0]), NotImplementedError, "4D"),
    (lambda q: flex_attention(q, q[:, :1], q[:, :1]), ValueError, "enable_gqa=True"),
    (lambda q: flex_attention(q[:, :3], q[:, :2], q[:, :2], enable_gqa=True), ValueError, "multiple of kv heads"),
    (lambda q: flex_attention(q, q[:1], q[:1]), ValueError, "non-none block_mask"),
    (lambda q: flex_attention(q, q[:1], q[:1], None, block_mask("causal", 1, 1, 5, 5)), ValueError, "B_block_mask=1"),
    (lambda q: flex_attention(q, q.to("meta"), q), ValueError, "on one device"),
    (lambda q: flex_attention(q, q, q, return_lse=True, return_aux=AuxRequest()), ValueError, "Cannot specify both"),
    (lambda q: flex_attention(q, q, q, kernel_options={"BACKEND": "x"}), ValueError, "Invalid BACKEND"),
    (lambda q: flex_attention(q, q, q, None, BlockMask.from_kv_blocks(
        pt.ones(1, 1, 1), pt.zeros(1, 1, 1, 1).int(), BLOCK_SIZE=5, mask_mod=lambda b, h, q, k: q)),
     RuntimeError, "must return bool"),
    (lambda q: create_block_mask(lambda s, b, h, q, k: s, 1, 1, 4, 4), AssertionError, "requires a mask_mod"),
    (lambda q: create_block_mask(lambda b, h, q, k: q, 1, 1, 4, 4), AssertionError, "must return bool, got .*int64"),
    (lambda q: create_mask(lambda b, h: b, 1, 1, 4, 4), AssertionError, "4 or 5 positional args, got 2"),
    (lambda q: BlockMask.from_kv_blocks(pt.ones(1), pt.ones(1)), RuntimeError, "at least 2 dim"),
    (lambda q: BlockMask.from_kv_blocks(pt.ones(1), pt.ones(1, 1), pt.ones(1)), AssertionError, "both provided")])
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call(pt.randn(2, 4, 5, 3))


def test_return_lse_is_deprecated(monkeypatch):
    monkeypatch.setattr(flex, "_warned", set())
    q = pt.randn(1, 1, 3, 2)
    with pytest.warns(FutureWarning, match="return_aux"):
        out, lse = flex_attention(q, q, q, return_lse=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        flex_attention(q, q, q, return_lse=True, kernel_options={"BLOCK_M": 16})
    np.testing.assert_allclose(lse, oracle(*[q.numpy()] * 3, SCORES["none"][1], MASKS["none"][1])[1], rtol=1e-5)
    assert out.shape == (1, 1, 3, 2)
