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
    **{f"overlap of {name}": call for name, call in {
        "div_": lambda lib: (lambda x: x.div_(x[0]))(lib.ones(3)),
        "add_": lambda lib: (lambda x: x[1:].add_(x[:-1]))(lib.ones(3)),
        "its transpose": lambda lib: (lambda x: x.add_(x.t()))(lib.ones(3, 3)),
        "a row": lambda lib: (lambda x: x.add_(x[0]))(lib.ones(3, 3)),
        "a column": lambda lib: (lambda x: x.add_(x[:, 0:1]))(lib.ones(3, 3)),
        "a view of other dims": lambda lib: (lambda x: x.view(1, 3).add_(x))(lib.ones(3)),
        "itself": lambda lib: (lambda x: x.add_(x.view(3)))(lib.ones(3)),
        "strided windows": lambda lib: (lambda x: x[::2].add_(x[1::2]))(lib.ones(6)),
        "copy_": lambda lib: (lambda x: x[1:].copy_(x[:-1]))(lib.ones(3)),
        "copy_ apart": lambda lib: (lambda x: x[0].copy_(x[1]))(lib.ones(3, 2)),
        "a slice": lambda lib: (lambda x: x.__setitem__(slice(1, None), x[:-1]))(lib.ones(3)),
        "a slice and a row": lambda lib: (lambda x: x.__setitem__(slice(None), x[0]))(lib.ones(3, 3)),
        "fill_": lambda lib: (lambda x: x.fill_(x[0]))(lib.ones(3)),
        "lerp_": lambda lib: (lambda x: x[1:].lerp_(x[:-1], 0.5))(lib.ones(3)),
        "addcmul_": lambda lib: (lambda x: x[1:].addcmul_(x[:-1], x[1:]))(lib.ones(3)),
        "out": lambda lib: (lambda x: lib.exp(x[:-1], out=x[1:]))(lib.ones(3)),
        "out of a view": lambda lib: (lambda x: lib.add(x.view(1, 3), 1, out=x.view(1, 3)))(lib.ones(3)),
        "where": lambda lib: (lambda x: lib.where(x[1:] > 0, x[1:], x[:-1], out=x[1:]))(lib.ones(3)),
        **{f"{name}{which}": (lambda lib, call=call, part=part: (lambda x: call(
            lib, x, lib.tensor([0, 1, 2][:3 - part]), x[part:]))(lib.ones(3)))
           for which, part in ((" of itself", 0), (" of a part", 1)) for name, call in {
               "index_add_": lambda lib, x, i, y: x.index_add_(0, i, y),
               "index_copy_": lambda lib, x, i, y: x.index_copy_(0, i, y),
               "scatter_": lambda lib, x, i, y: x.scatter_(0, i, y),
               "scatter_add_": lambda lib, x, i, y: x.scatter_add_(0, i, y),
               "scatter_reduce_": lambda lib, x, i, y: x.scatter_reduce_(0, i, y, "amax"),
               "put_": lambda lib, x, i, y: x.put_(i, y), "index_put_": lambda lib, x, i, y: x.index_put_((i,), y),
               "index_fill_": lambda lib, x, i, y: x.index_fill_(0, i, y[0])}.items()},
        "places": lambda lib: (lambda x: x.scatter_(0, x, 1))(lib.zeros(3, dtype=lib.int64)),
        "masked_scatter_": lambda lib: (lambda x: x.masked_scatter_(x > 0, x))(lib.ones(3)),
        "addmm_": lambda lib: (lambda x: x.addmm_(x, x))(lib.ones(3, 3)),
        "foreach": lambda lib: (lambda x: lib._foreach_add_([x[1:]], [x[:-1]]))(lib.ones(3))}.items()},
    "bags": lambda lib: lib.nn.functional.embedding_bag(lib.tensor([0, 1]), lib.ones(3, 2), lib.tensor([1])),
    "bags too long": lambda lib: lib.nn.functional.embedding_bag(lib.tensor([0]), lib.ones(3, 2), lib.tensor([0, 4])),
    "bags of floats": lambda lib: lib.nn.functional.embedding_bag(lib.tensor([0]), lib.ones(3, 2), lib.tensor([0.])),
    "no bags": lambda lib: lib.nn.functional.embedding_bag(lib.tensor([0]), lib.ones(3, 2), lib.tensor([]).long()),
    "no last bag": lambda lib: lib.nn.functional.embedding_bag(
        lib.tensor([0]), lib.ones(3, 2), lib.tensor([]).long(), include_last_offset=True),
    "addr of bools": lambda lib: lib.addr(lib.ones(2, 2) > 0, lib.ones(2) > 0, lib.ones(2) > 0, alpha=0.5),
    "addr and complex": lambda lib: lib.addr(lib.ones(2, 2), lib.ones(2), lib.ones(2), beta=1j),
    "addr and a bool": lambda lib: lib.addr(lib.ones(2, 2), lib.ones(2), lib.ones(2), beta=True),
    "index_copy of a scalar": lambda lib: lib.ones(3).index_copy_(0, lib.tensor([1]), lib.tensor(5.0)),
    "index_copy to a scalar": lambda lib: lib.tensor(1.0).index_copy_(0, lib.tensor([0]), lib.tensor([5.0])),
    "index_copy of a row": lambda lib: lib.ones(3, 2).index_copy_(0, lib.tensor(1), lib.ones(2)),
    "sparse_grad": lambda lib: lib.gather(lib.ones(3), 0, lib.tensor([0]), sparse_grad=True),
    "rcond": lambda lib: lib.linalg.pinv(lib.eye(2), rcond=0.1),
    "no differentiable input": lambda lib: lib.autograd.gradcheck(lib.exp, (lib.ones(2),)),
    "only_inputs": lambda lib: (lambda x: lib.autograd.grad(x.sum(), x, only_inputs=False))(
        lib.ones(2, requires_grad=True)),
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
