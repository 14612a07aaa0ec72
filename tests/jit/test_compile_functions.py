"""Custom Functions and hooks of the program's own inside of compiled steps, beside eager steps."""
import sys
from pathlib import Path

import ptcore as pt

sys.path.insert(0, str(Path(__file__).parent))
from test_compile_steps import F, Run, batches, compare, same

# -- custom Functions -------------------------------------------------------------------------------------------------

class Rounded(pt.autograd.Function):
    """Rounding with the gradient of a straight line inside of [-1, 1]."""

    @staticmethod
    def forward(ctx, x, parts):
        ctx.parts = parts
        ctx.save_for_backward(x)
        return (x * parts).round() / parts

    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        return g * (x.abs() < 1) * ctx.parts / WEIGHT, None


class Two(pt.autograd.Function):
    @staticmethod
    def forward(x):
        return x.exp(), x * 2

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output[0])

    @staticmethod
    def backward(ctx, a, b):
        return a * ctx.saved_tensors[0] * 3 + b


WEIGHT = 4


def quantized(model, opt):
    def step(x, y):
        opt.zero_grad()
        a, b = Two.apply(Rounded.apply(model(x), 4) * 0.1)
        loss = F.cross_entropy(a + b, y)
        loss.backward()
        opt.step()
        return loss, a.detach()
    return step


def test_custom_functions(monkeypatch):
    assert compare(quantized, fullgraph=True).captures == 1
    runs = [Run(quantized, compiled=c) for c in (False, True)]
    for k, pair in enumerate(batches(4)):
        monkeypatch.setattr(f"{__name__}.WEIGHT", 4 + k)       # which the backward reads
        for run in runs:
            run.run([pair])
    same(runs[0].state(), runs[1].state())


def test_custom_functions_without_gradients():
    f = pt.compile(lambda x: Rounded.apply(x, 2) + 1, fullgraph=True)
    x = pt.randn(5)
    assert pt.equal(f(x), Rounded.apply(x, 2) + 1)


def test_the_backward_of_a_custom_function_outside():
    """The loss alone is compiled: the Function's own backward runs, so the call is eager."""
    f = pt.compile(lambda x: Rounded.apply(x, 2).sum())
    x = pt.tensor([0.3, 2.0], requires_grad=True)
    for _ in range(3):
        x.grad = None
        f(x).backward()
        assert x.grad.tolist() == [2 / WEIGHT, 0.0]
    (variant,) = f._compiled.forms[1]
    assert "backward is asked for outside" in variant.reason


# -- hooks that the program registers ---------------------------------------------------------------------------------

def hooked(model, opt):
    def step(x, y):
        opt.zero_grad()
        hidden = model[0](x)
        hidden.register_hook(lambda g: g * SCALE)
        out = model[2](hidden.relu())
        seen = []
        out.register_hook(seen.append)
        F.cross_entropy(out, y).backward()
        opt.step()
        return seen[0].detach()
    return step


SCALE = 2.0


def test_hooks_of_values(monkeypatch):
    assert compare(hooked, fullgraph=True).captures == 1
    runs = [Run(hooked, compiled=c) for c in (False, True)]
    for k, pair in enumerate(batches(4)):
        monkeypatch.setattr(f"{__name__}.SCALE", 2.0 + k)      # which a hook reads
        for run in runs:
            run.run([pair])
    same(runs[0].state(), runs[1].state())


def test_hooks_and_a_backward_outside():
    @pt.compile
    def f(x):
        y = x * 2
        y.register_hook(lambda g: g * 10)
        return y.sum()
    x = pt.ones(2, requires_grad=True)
    for _ in range(3):
        x.grad = None
        f(x).backward()
        assert x.grad.tolist() == [20.0, 20.0]
    (variant,) = f._compiled.forms[1]
    assert "hook" in variant.reason
