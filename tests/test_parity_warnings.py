"""The same warnings, and errors of the same class, as PyTorch gives. The first words of a text are compared."""
import warnings

import pytest

import ptcore as pt

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.parity


def function(lib, forward, backward=lambda ctx, g: g):
    return type("F", (lib.autograd.Function,), {"forward": staticmethod(forward), "backward": staticmethod(backward)})


def leaf(lib):
    return lib.ones(2, requires_grad=True)


def hooked(lib, module, *args):
    module.register_backward_hook(lambda module, given, got: None)
    return module(*args)


def failing(ctx, g):
    raise KeyError("broken")


def in_anomaly_mode(lib, backward):
    y = function(lib, lambda ctx, x: x.clone(), backward).apply(leaf(lib)).sum()
    with lib.autograd.detect_anomaly():
        y.backward()


def infer(lib):
    with lib.inference_mode():
        return lib.ones(2)


CASES = {
    "out of add": lambda lib: lib.add(lib.ones(2), 1, out=lib.empty(3)),
    "out of mm": lambda lib: lib.mm(lib.ones(2, 2), lib.ones(2, 2), out=lib.empty(3)),
    "outs of max": lambda lib: lib.max(lib.ones(2, 2), 0, out=(lib.empty(3), lib.empty(4, dtype=lib.int64))),
    "out of sum": lambda lib: lib.sum(lib.ones(2, 2), 0, out=lib.empty(3)),
    "out of cat": lambda lib: lib.cat([lib.ones(2)], out=lib.empty(3)),
    "out of inv": lambda lib: lib.linalg.inv(lib.eye(2), out=lib.empty(3)),
    "out of gather": lambda lib: lib.gather(lib.ones(4), 0, lib.tensor([0]), out=lib.empty(3)),
    "out of zeros": lambda lib: lib.zeros(4, out=lib.empty(3)), "out of eye": lambda lib: lib.eye(2, out=lib.empty(3)),
    "out of randn": lambda lib: lib.randn(4, out=lib.empty(3)).shape,
    "out of full": lambda lib: lib.full((4,), 1.0, out=lib.empty(3)),
    "empty out": lambda lib: lib.add(lib.ones(2), 1, out=lib.empty(0)),
    "addcmul": lambda lib: lib.addcmul(lib.ones(2), 2, lib.ones(2), lib.ones(2)),
    "baddbmm_": lambda lib: lib.ones(2, 2, 2).baddbmm_(1, lib.ones(2, 2, 2), lib.ones(2, 2, 2)),
    "create_graph": lambda lib: (leaf(lib) ** 2).sum().backward(create_graph=True),
    "hook of Linear": lambda lib: hooked(lib, lib.nn.Linear(2, 2), leaf(lib)),
    "hook of ReLU": lambda lib: hooked(lib, lib.nn.ReLU(), leaf(lib).clone()),
    "hook of Sequential": lambda lib: hooked(lib, lib.nn.Sequential(lib.nn.ReLU(), lib.nn.ReLU()), leaf(lib).clone()),
    "hook of LSTM": lambda lib: hooked(lib, lib.nn.LSTM(2, 2), lib.ones(1, 1, 2)),
    "anomaly": lambda lib: in_anomaly_mode(lib, failing),
    "anomaly of nan": lambda lib: in_anomaly_mode(lib, lambda ctx, g: g * float("nan")),
    "no buffer": lambda lib: lib.frombuffer(3, dtype=lib.uint8),
    "a buffer's count": lambda lib: lib.frombuffer(bytearray(4), dtype=lib.float32, count=0),
    "an empty buffer": lambda lib: lib.frombuffer(bytearray(0), dtype=lib.uint8),
    "a buffer's bytes": lambda lib: lib.frombuffer(bytearray(3), dtype=lib.float32),
    "capsule": lambda lib: lib.asarray(lib.to_dlpack(lib.ones(2))),
    "capsule without a copy": lambda lib: lib.asarray(lib.to_dlpack(lib.ones(2)), dtype=lib.float64, copy=False),
    "dirty": lambda lib: function(lib, lambda ctx, x: (ctx.mark_dirty(x), x.clone())[1]).apply(leaf(lib).clone()),
    "dirty leaf": lambda lib: function(lib, lambda ctx, x: (ctx.mark_dirty(x), x.add_(1))[1]).apply(leaf(lib)),
    "dirty number": lambda lib: function(lib, lambda ctx, x: (ctx.mark_dirty(3), x.clone())[1]).apply(leaf(lib)),
    "no number has derivatives": lambda lib: function(
        lib, lambda ctx, x: (ctx.mark_non_differentiable(3), x.clone())[1]).apply(leaf(lib)),
    "saved number": lambda lib: function(
        lib, lambda ctx, x: (ctx.save_for_backward(3), x.clone())[1]).apply(leaf(lib)),
    "inference saved": lambda lib: infer(lib) * leaf(lib), "inference version": lambda lib: infer(lib)._version,
    "inference requires": lambda lib: infer(lib).requires_grad_(),
    "inference written": lambda lib: infer(lib).mul_(leaf(lib)),
    "no differentiable input": lambda lib: lib.autograd.gradcheck(lib.exp, (lib.ones(2),)),
    "wrong gradient": lambda lib: lib.autograd.gradcheck(
        lambda x: x.detach() + x, (lib.ones(2, dtype=lib.float64, requires_grad=True),), fast_mode=True),
}


def outcome(lib, case):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        try:
            CASES[case](lib)
        except Exception as error:
            kinds = [kind for kind in type(error).__mro__ if kind.__module__ == "builtins"]
            kind = kinds if lib is pt else next(kind for kind in kinds if kind is not Exception)
        else:
            kind = [] if lib is pt else None
    return kind, [(w.category, str(w.message)[:39]) for w in found]


@pytest.mark.parametrize("case", CASES)
def test_warnings(case):
    torch.set_warn_always(True)             # else some come once in a process
    try:
        kind, texts = outcome(torch, case)
    finally:
        torch.set_warn_always(False)
    kinds, found = outcome(pt, case)
    assert found == texts
    assert kind in kinds if kind is not None else not kinds
