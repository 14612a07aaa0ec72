"""Weights of losses: a gradient by them, or a refusal; never silence."""
import inspect

import numpy as np
import pytest

import ptcore
from ptcore.nn import functional as F

pytestmark = pytest.mark.core

BY_CLASS = {"cross_entropy", "linear_cross_entropy", "nll_loss", "multi_margin_loss"}       # with class indices: constant in PyTorch too
CALLS = {
    "binary_cross_entropy": lambda x, w: F.binary_cross_entropy(x, 1 - x, weight=w),
    "binary_cross_entropy_with_logits": lambda x, w: F.binary_cross_entropy_with_logits(x, 1 - x, weight=w),
    "cross_entropy": lambda x, w: F.cross_entropy(x, ptcore.tensor([0, 2]), weight=w),
    "huber_loss": lambda x, w: F.huber_loss(x, 1 - x, weight=w.expand(2, 3)),
    "l1_loss": lambda x, w: F.l1_loss(x, 1 - x, weight=w.expand(2, 3)),
    "linear_cross_entropy": lambda x, w: F.linear_cross_entropy(x, x.detach().mT @ x, ptcore.tensor([0, 2]), weight=w),
    "mse_loss": lambda x, w: F.mse_loss(x, 1 - x, weight=w.expand(2, 3)),
    "multi_margin_loss": lambda x, w: F.multi_margin_loss(x, ptcore.tensor([0, 2]), weight=w),
    "multilabel_soft_margin_loss": lambda x, w: F.multilabel_soft_margin_loss(x, 1 - x, weight=w),
    "nll_loss": lambda x, w: F.nll_loss(x, ptcore.tensor([0, 2]), weight=w),
}


def test_every_loss_with_weights_is_here():
    losses = [name for name in dir(F) if name.endswith("_loss") or "entropy" in name]
    names = {name for name in losses if "weight" in inspect.signature(getattr(F, name)).parameters}
    assert names == set(CALLS)


@pytest.mark.parametrize("name", CALLS)
def test_weights_that_require_grad(name):
    x = ptcore.tensor([[0.2, 0.5, 0.3], [0.7, 0.1, 0.4]], dtype=ptcore.float64)
    w = ptcore.tensor([1.0, 2.0, 0.5], dtype=ptcore.float64, requires_grad=True)
    if name in BY_CLASS:
        with pytest.raises(RuntimeError, match=f"^{name}: the loss is not differentiable by weight"):
            CALLS[name](x, w)
        with ptcore.no_grad():
            assert CALLS[name](x, w) == CALLS[name](x, w.detach())
        return
    CALLS[name](x, w).backward()
    step = 1e-6 * np.eye(3)
    for k in range(3):
        up, down = (CALLS[name](x, w.detach() + sign * ptcore.tensor(step[k])).item() for sign in (1, -1))
        assert w.grad[k].item() == pytest.approx((up - down) / 2e-6, rel=1e-6, abs=1e-9)
