"""Random formulas of scores and masks in ``flex_attention``: its two ways give the same, gradients too."""
import random

import numpy as np
import pytest

import ptcore as pt
from ptcore.nn.attention import _tiles
from ptcore.nn.attention import flex_attention as flex
from ptcore.nn.attention.flex_attention import AuxRequest, create_block_mask, flex_attention

LEAVES = ("s", "s", "s", "s", "(q - k)", "by_head[h]", "by_query[b, q]", "by_key[h, k]", "distance[h, q - k]",
          "(b + 1)", "pairs[q, k]", "pairs[q][k]", "h", "distance[h][(q - k).clamp(-5, 5)]", "k.float()", "bytes_[k]",
          "truths[q]")
TREES = ("({0} + {1})", "({0} - {1})", "({0} * {1})", "pt.tanh({0} * 0.1)", "pt.where({0} > {1}, {1}, {0})",
         "({0} / 3)", "({0} * 0.01 + 1).abs().sqrt()", "pt.nn.functional.gelu({0} * 1.0)", "({0} * 1.0).sigmoid()",
         "-({0} * 1.0)", "({0} * 1.0).clamp(-3, 3)", "({0} * 1.0).relu()")
MASKS = ("q >= k", "(q - k).abs() < 9", "document[q] == document[k]", "mask_of_key[b, k]", "k < lengths[b]",
         "(q + b) % (h + 2) != k % 3", "pairs[q, k] > 0")


def score_of(r, depth):
    if depth == 0:
        return r.choice(LEAVES)
    return r.choice(TREES).format(score_of(r, depth - 1), score_of(r, depth - 1))


def mask_of(r, depth):
    if depth == 0:
        return r.choice(MASKS)
    return f"~(({mask_of(r, depth - 1)}) {r.choice('&|')} ({mask_of(r, depth - 1)}))"


def program(seed):
    """(call of both ways, text) of a seed."""
    r = random.Random(seed)
    batch, heads = r.choice([(1, 2), (2, 4), (3, 2)])
    shared = r.choice([g for g in (1, 2, 4) if heads % g == 0])
    length, keys = r.choice([1, 5, 16, 64, 65, 100, 130]), r.choice([7, 64, 128, 129, 200])
    width, out = r.choice([1, 3, 8, 16]), r.choice([1, 4, 8])
    rng = np.random.default_rng(seed)

    def normal(*shape):
        return pt.from_numpy(rng.standard_normal(shape))

    held = {"pt": pt, "by_head": normal(heads), "by_query": normal(batch, length), "by_key": normal(heads, keys),
            "distance": normal(heads, length + keys), "pairs": normal(length, keys),
            "document": pt.arange(max(length, keys)) // 13, "mask_of_key": normal(batch, keys) > -0.5,
            "lengths": pt.full((batch,), keys // 2 + 1), "bytes_": (normal(keys) * 5).to(pt.int8),
            "truths": normal(length) > 0}
    score = f"{score_of(r, r.randrange(4))} + 0.0 * s" if r.random() < 0.85 else None
    mask = mask_of(r, r.randrange(3)) if r.random() < 0.7 else None
    score_mod = score and eval(f"lambda s, b, h, q, k: {score}", held)
    size = r.choice([16, 32, 64, 128, (16, 8), (48, 100)])
    blocks = mask and create_block_mask(eval(f"lambda b, h, q, k: {mask}", held), batch, heads, length, keys,
                                        device="cpu", BLOCK_SIZE=size)
    tensors = normal(batch, heads, length, width), normal(batch, shared, keys, width), normal(batch, shared, keys, out)

    def call():
        given = [t.clone().requires_grad_() for t in tensors]
        found, aux = flex_attention(*given, score_mod, blocks, enable_gqa=True, return_aux=AuxRequest(lse=True))
        loss = found.sin().sum() + aux.lse.masked_fill(aux.lse.isinf(), 0).cos().sum()
        return [found.detach(), aux.lse.detach(), *pt.autograd.grad(loss, given)]

    return call, f"{score} | {mask} | {batch, heads, shared, length, keys, width, out}"


def test_random_formulas(monkeypatch):
    taken = 0
    attend = _tiles.attend

    def counted(*args):
        nonlocal taken
        taken += 1
        return attend(*args)

    monkeypatch.setattr(_tiles, "attend", counted)
    for seed in range(150):
        call, text = program(seed)
        found = []
        for limit in (1, 1 << 60):
            monkeypatch.setattr(flex, "SCORES", limit)
            found.append(call())
        for a, b in zip(*found):
            np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-9, err_msg=f"seed {seed}: {text}")
    assert taken > 75, taken


@pytest.mark.parametrize("score", ["0.5", "(s, s)", "None"])
def test_what_is_no_tensor(score, monkeypatch):
    monkeypatch.setattr(flex, "SCORES", 1)
    with pytest.raises((ValueError, AttributeError)):
        flex_attention(*pt.randn(3, 1, 1, 4, 2), eval(f"lambda s, b, h, q, k: {score}"))
