"""Chains of ops drawn at random, with views and broadcasting: values, gradients, and the gradients' own."""
import numpy as np
import pytest
from program_tools import assert_same, torch

import ptcore as pt

pytestmark = pytest.mark.parity

ONE = [
    lambda m, a: a.sin(), lambda m, a: a.exp().clamp(max=5), lambda m, a: a.transpose(0, -1), lambda m, a: a.flip(0),
    lambda m, a: a[..., ::2], lambda m, a: a.softmax(-1), lambda m, a: a.cumsum(0), lambda m, a: a.sort(-1).values,
    lambda m, a: a - a.mean(-1, keepdim=True), lambda m, a: a.abs().sqrt(), lambda m, a: m.where(a > 0, a, a * a),
    lambda m, a: a.unsqueeze(1).expand(a.shape[0], 2, *a.shape[1:]).sum(1), lambda m, a: a.roll(1, 0),
    lambda m, a: a.logsumexp(0, keepdim=True).expand_as(a), lambda m, a: a.reshape(-1).view(a.shape),
    lambda m, a: a.clone().mul_(1.5).add_(1), lambda m, a: a.masked_fill(a < -1, 0.3), lambda m, a: a.movedim(0, -1),
    lambda m, a: a.prod(-1, keepdim=True) + a, lambda m, a: a.amax(-1, keepdim=True) * a, lambda m, a: a.tril(),
    lambda m, a: a.norm(dim=-1, keepdim=True) + a, lambda m, a: a.var(0, unbiased=False, keepdim=True) + a,
    lambda m, a: a.index_select(0, m.tensor([0, a.shape[0] - 1, 0])), lambda m, a: m.cat([a, a * 2], -1),
    lambda m, a: a.narrow(-1, 0, a.shape[-1] - 1), lambda m, a: a.diagonal(0, -2, -1), lambda m, a: a.sigmoid().log(),
    lambda m, a: m.nn.functional.gelu(a), lambda m, a: m.nn.functional.layer_norm(a, a.shape[-1:]),
    lambda m, a: a.unfold(-1, 2, 1), lambda m, a: a.topk(1, -1).values, lambda m, a: a.cummax(-1).values,
    lambda m, a: a.median(-1, keepdim=True).values + a, lambda m, a: a.swapaxes(0, -1).flatten(0, 1)]
TWO = [
    lambda m, a, b: a + b, lambda m, a, b: a * b, lambda m, a, b: a / (b.abs() + 1), lambda m, a, b: m.maximum(a, b),
    lambda m, a, b: a @ b.transpose(-1, -2), lambda m, a, b: m.atan2(a, b + 3), lambda m, a, b: m.lerp(a, b, 0.3),
    lambda m, a, b: a.addcmul(a, b, value=0.2), lambda m, a, b: m.stack(m.broadcast_tensors(a, b)).sum(0),
    lambda m, a, b: m.hypot(a, b), lambda m, a, b: m.fmod(a, b.abs() + 0.5),
    lambda m, a, b: m.logaddexp(a, b), lambda m, a, b: m.outer(a.reshape(-1)[:5], b.reshape(-1)[:4]),
    lambda m, a, b: m.einsum("...i,...i->...", a, b)]


def chain(m, seed):
    """What seven ops drawn from a seed give, each of what came before; an op that does not take it is left out."""
    rng = np.random.default_rng(seed)
    x, y = (m.from_numpy(rng.normal(size=(2, 3, 4))).requires_grad_() for _ in range(2))
    pool, found = [x, y, m.from_numpy(rng.normal(size=4))], []
    for _ in range(7):
        ops = ONE if rng.random() < 0.6 else TWO
        f = ops[rng.integers(len(ops))]
        operands = [pool[rng.integers(len(pool))] for _ in range(1 if ops is ONE else 2)]
        try:
            z = f(m, *operands)
        except (RuntimeError, IndexError, ValueError):
            found.append("refused")
            continue
        if 0 < z.ndim <= 4 and 0 < z.numel() <= 300 and bool(z.isfinite().all()):
            pool.append(z)
            found.append(z)
    weights = [m.from_numpy(np.random.default_rng(1).normal(size=tuple(z.shape))) for z in pool[-3:]]
    total = sum([(z * w).sum() for z, w in zip(pool[-3:], weights)])
    if total.requires_grad:
        slopes = m.autograd.grad(total, [x, y], create_graph=True, allow_unused=True)
        size = sum([(g**2).sum() for g in slopes if g is not None])
        found += slopes
        if size.requires_grad:
            found += m.autograd.grad(size, [x, y], allow_unused=True)
    return found


@pytest.mark.parametrize("start", range(0, 150, 10))
def test_chain(start):
    for seed in range(start, start + 10):
        assert_same(chain(pt, seed), chain(torch, seed), f"seed {seed}", rtol=1e-7, atol=1e-8)
