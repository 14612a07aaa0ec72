"""Autocast on an accelerator: the rules of its own list, casts that are kept, and scaled steps."""
import pytest

import ptcore as pt
from ptcore.nn import functional as F


def test_rules():
    x, w = pt.randn(4, 4, device="cuda"), pt.randn(4, 4, device="cuda")
    with pt.autocast("cuda"):
        assert (x @ w).dtype is F.linear(x, w).dtype is pt.mm(x, w).dtype is pt.float16
        half = x.half()
        for f in (lambda t: t.softmax(1), lambda t: t.sum(), lambda t: t.exp(), lambda t: F.layer_norm(t, (4,)),
                  lambda t: F.mse_loss(t, t)):
            assert f(half).dtype is pt.float32
        assert (half + x).dtype is pt.float32 and half.relu().dtype is pt.float16
        assert (x.double() @ w.double()).dtype is pt.float64
        assert (x.cpu() @ w.cpu()).dtype is pt.float32
        with pt.autocast("cuda", dtype=pt.bfloat16):
            assert (x @ w).dtype is pt.bfloat16
        with pt.autocast("cuda", enabled=False):
            assert (x @ w).dtype is pt.float32
    with pt.autocast("cpu"):
        assert (x @ w).dtype is pt.float32


def test_a_loss_that_is_refused():
    p, y = pt.full((3,), 0.5, device="cuda"), pt.ones(3, device="cuda")
    with pt.autocast("cuda"):
        with pytest.raises(RuntimeError, match=r"binary_cross_entropy: it is unsafe to autocast.*entropy_with_logits"):
            F.binary_cross_entropy(p, y)
        with pytest.raises(RuntimeError, match="unsafe to autocast"):
            pt.nn.BCELoss()(p.half(), y)
        assert F.binary_cross_entropy_with_logits(p, y).dtype is pt.float32
        assert F.binary_cross_entropy(p.cpu(), y.cpu()).dtype is pt.float32
        with pt.autocast("cuda", enabled=False):
            F.binary_cross_entropy(p, y)
    F.binary_cross_entropy(p, y)


def test_scaled_steps():
    """Steps with a scaler are those without one; a gradient that is not finite leaves the parameters alone."""
    def parameters():
        pt.manual_seed(0)
        model = pt.nn.Sequential(pt.nn.Linear(4, 8), pt.nn.Tanh(), pt.nn.Linear(8, 1)).to("cuda")
        return model, pt.optim.SGD(model.parameters(), 0.1)
    x, y = pt.randn(16, 4, device="cuda"), pt.randn(16, 1, device="cuda")
    (scaled, a), (plain, b) = parameters(), parameters()
    scaler = pt.amp.GradScaler("cuda", init_scale=1024.0)
    for _ in range(3):
        with pt.autocast("cuda"):
            loss = F.mse_loss(scaled(x), y)
        scaler.scale(loss).backward()
        scaler.step(a)
        scaler.update()
        a.zero_grad()
        with pt.autocast("cuda"):
            loss = F.mse_loss(plain(x), y)
        loss.backward()
        b.step()
        b.zero_grad()
    for p, q in zip(scaled.parameters(), plain.parameters()):
        pt.testing.assert_close(p, q, rtol=2e-3, atol=1e-4)
    before = [p.detach().clone() for p in scaled.parameters()]
    scaler.scale(scaled(x).sum() * float("inf")).backward()
    scaler.step(a)
    scaler.update()
    assert all(p.equal(q) for p, q in zip(scaled.parameters(), before)) and scaler.get_scale() == 512.0
