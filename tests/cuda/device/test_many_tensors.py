"""Optimisers, clipping and zeroing of many tensors on a device: the CPU's results in a few launches."""
import copy

import numpy as np
import pytest

import ptcore
from ptcore import nn

SIZES = [(3, 5), (1,), (4096,), (4097,), (2, 3, 4, 5), (0, 3), (), (9001,)]
KINDS = ["float32", "float64", "float16", "bfloat16"]
OPTIONS = {
    "sgd": (ptcore.optim.SGD, {"lr": 0.1}),
    "decay": (ptcore.optim.SGD, {"lr": 0.1, "weight_decay": 0.2, "maximize": True}),
    "momentum": (ptcore.optim.SGD, {"lr": 0.1, "momentum": 0.9, "dampening": 0.3, "weight_decay": 0.1}),
    "nesterov": (ptcore.optim.SGD, {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
    "adam": (ptcore.optim.Adam, {"lr": 0.05, "weight_decay": 0.1}),
    "amsgrad": (ptcore.optim.Adam, {"lr": 0.05, "betas": (0.5, 0.7), "amsgrad": True, "maximize": True}),
    "adamw": (ptcore.optim.AdamW, {"lr": 0.05, "weight_decay": 0.3}),
    "adadelta": (ptcore.optim.Adadelta, {"lr": 0.5, "weight_decay": 0.1}),
    "adagrad": (ptcore.optim.Adagrad, {"lr": 0.1, "lr_decay": 0.1, "initial_accumulator_value": 0.2}),
    "adamax": (ptcore.optim.Adamax, {"lr": 0.05, "betas": (0.5, 0.7), "maximize": True}),
    "asgd": (ptcore.optim.ASGD, {"lr": 0.1, "lambd": 0.1, "t0": 1}),
    "nadam": (ptcore.optim.NAdam, {"lr": 0.05, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    "radam": (ptcore.optim.RAdam, {"lr": 0.05, "betas": (0.5, 0.7)}),
    "rmsprop": (ptcore.optim.RMSprop, {"lr": 0.02}),
    "rmsprop_momentum": (ptcore.optim.RMSprop, {"lr": 0.02, "alpha": 0.8, "momentum": 0.9}),
    "rmsprop_centered": (ptcore.optim.RMSprop, {"lr": 0.02, "eps": 0.1, "centered": True}),
    "rmsprop_both": (ptcore.optim.RMSprop, {"lr": 0.02, "eps": 0.1, "momentum": 0.5, "centered": True}),
    "rprop": (ptcore.optim.Rprop, {"lr": 0.125, "etas": (0.5, 2.0), "step_sizes": (0.0625, 1.0)}),
}


def made(sizes, dtype, device, seed=0):
    rng = np.random.default_rng(seed)
    return [ptcore.from_numpy(rng.normal(size=s)).to(dtype).to(device) for s in sizes]


def parameters(sizes, dtype, device):
    return [nn.Parameter(p) for p in made(sizes, dtype, device)]


def run(optimizer, params, steps, dtype, device, skipped=()):
    for step in range(steps):
        for i, (p, g) in enumerate(zip(params, made([p.shape for p in params], dtype, device, step + 1))):
            p.grad = None if (i, step) in skipped else g
        optimizer.step()


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("name", OPTIONS)
def test_steps_are_the_cpus(name, dtype):
    """Of halves the CPU's in float32: a kernel rounds the state once a step."""
    make, options = OPTIONS[name]
    dtype = getattr(ptcore, dtype)
    half = dtype.itemsize == 2
    there, here = parameters(SIZES, dtype, "cuda"), parameters(SIZES, dtype, "cpu")
    if half:
        here = [nn.Parameter(p.detach().float()) for p in here]
    skipped = {(2, 0), (4, 1), (0, 2)}          # other step counts, buffers that begin later
    optimizers = [make(p, **options) for p in (there, here)]
    run(optimizers[0], there, 4, dtype, "cuda", skipped)
    for step in range(4):                       # the CPU's with the same (rounded) gradients
        for i, (p, g) in enumerate(zip(here, made(SIZES, dtype, "cpu", step + 1))):
            p.grad = None if (i, step) in skipped else g.to(p.dtype)
        optimizers[1].step()
    rtol = {"float16": 2e-2, "bfloat16": 1e-1, "float32": 2e-5, "float64": 1e-12}[dtype.name]
    for a, b in zip(there, here, strict=True):
        assert a.is_cuda
        ptcore.testing.assert_close(a.detach().cpu().to(b.dtype), b.detach(), rtol=rtol, atol=rtol)
        for key, value in optimizers[0].state[a].items():
            other = optimizers[1].state[b][key]
            counter = key in optimizers[0]._counters
            assert value.is_cuda == (not counter)
            assert value.dtype == (ptcore.float32 if counter else dtype)
            ptcore.testing.assert_close(value.cpu().to(other.dtype), other, rtol=rtol, atol=rtol)


@pytest.mark.parametrize(("name", "count", "most"), [
    ("sgd", 50, 1), ("nesterov", 50, 1), ("adam", 50, 1), ("adam", 68, 1), ("adam", 69, 2), ("amsgrad", 60, 1),
    ("amsgrad", 61, 2), ("sgd", 120, 1), ("sgd", 121, 2), ("momentum", 300, 4)])
def test_launches(name, count, most, launches):
    make, options = OPTIONS[name]
    there, here = (parameters([(3,)] * count, ptcore.float32, d) for d in ("cuda", "cpu"))
    optimizers = [make(p, **options) for p in (there, here)]
    for p, q, o in ((there, here, optimizers),):
        run(o[0], p, 1, ptcore.float32, "cuda")
        run(o[1], q, 2, ptcore.float32, "cpu")
        for x, g in zip(p, made([(3,)] * count, ptcore.float32, "cuda", 2)):
            x.grad = g
        assert launches(o[0].step) == most
        for a, b in zip(p, q, strict=True):
            ptcore.testing.assert_close(a.detach().cpu(), b.detach(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", OPTIONS)
def test_complex_parameters(name, dtype, launches):
    make, options = OPTIONS[name]
    rng = np.random.default_rng(0)
    values = [rng.normal(size=(*s, 2)) @ [1, 1j] for s in SIZES]
    there, here = ([nn.Parameter(ptcore.tensor(v, dtype=getattr(ptcore, dtype), device=d)) for v in values]
                   for d in ("cuda", "cpu"))
    for params in (there, here):
        o = make(params, **options)
        for step in range(3):
            for p, v in zip(params, values, strict=True):
                p.grad = ptcore.tensor(v * (0.5 + step) - 1 + 2j, dtype=p.dtype, device=p.device)
            if step == 2 and params is there:
                assert launches(o.step) == 1
            else:
                o.step()
    for a, b in zip(there, here, strict=True):
        ptcore.testing.assert_close(a.detach().cpu(), b.detach(), rtol=2e-5, atol=1e-6)


def test_groups():
    """Two dtypes and two devices (where there are) in a list, a tensor that is strided and one of another layout."""
    other = "cuda:1" if ptcore.cuda.device_count() > 1 else "cuda"
    base = made([(4, 6)], ptcore.float32, "cuda")[0]
    make = [lambda d: made([(5,)], ptcore.float32, d)[0], lambda d: made([(5,)], ptcore.float64, d)[0],
            lambda d: made([(5,)], ptcore.float32, other if d == "cuda" else d)[0],
            lambda d: base.to(d, copy=True)[:, ::2], lambda d: base.to(d, copy=True).t(),
            lambda d: base.to("cpu")[:, 1:4].clone()]
    for name in ("adam", "momentum", "adadelta", "asgd", "nadam"):
        optimizer, options = OPTIONS[name]
        results = []
        for device in ("cuda", "cpu"):
            params = [f(device).requires_grad_() for f in make]
            o = optimizer(params, **options)
            for step in range(3):
                for p in params:
                    p.grad = (p.detach() * (step + 1)).contiguous() if step else p.detach().clone() * 0.5
                versions = [p._version for p in params]
                o.step()
                assert all(p._version > v for p, v in zip(params, versions))
            results.append([p.detach().cpu() for p in params])
        for a, b in zip(*results, strict=True):
            ptcore.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)


def test_shared_memory_goes_in_order(launches):
    """Parameters that overlap are stepped one after another, as on the CPU; views of one buffer that do not are not."""
    for parts, most in ((((0, 8), (4, 12)), 2), (((0, 6), (6, 12)), 1)):
        results = []
        for device in ("cuda", "cpu"):
            flat = made([(12,)], ptcore.float32, device)[0]
            params = [flat[a:b].requires_grad_() for a, b in parts]
            o = ptcore.optim.SGD(params, lr=0.5)
            for p in params:
                p.grad = p.detach().clone()
            o.step()
            if device == "cuda":
                for p in params:
                    p.grad = p.detach().clone()
                assert launches(o.step) == most
            else:
                for p in params:
                    p.grad = p.detach().clone()
                o.step()
            results.append(flat.cpu())
        assert results[0].equal(results[1])


def test_read_only_parameters_are_refused():
    values = np.ones(3, np.float32)
    values.flags.writeable = False
    a = ptcore.from_numpy(values)
    b = nn.Parameter(ptcore.ones(3).cuda())
    a.requires_grad_()
    o = ptcore.optim.SGD([b, a], lr=1.0)
    a.grad, b.grad = ptcore.ones(3), ptcore.ones(3).cuda()
    with pytest.raises((RuntimeError, ValueError), match="read-only"):
        o.step()
    assert (values == 1).all()


@pytest.mark.parametrize("dtype", KINDS)
def test_clipping(dtype, launches):
    kind = getattr(ptcore, dtype)
    params = parameters(SIZES, kind, "cuda")
    for p, g in zip(params, made(SIZES, kind, "cuda", 3)):
        p.grad = g
    given = [p.grad.cpu().double().numpy() for p in params]
    for p in params:                            # compiled once
        p.grad.mul_(1.0)
    total = nn.utils.clip_grad_norm_(params, 1e9)
    want = np.sqrt(sum((g ** 2).sum() for g in given))
    rtol = {"float16": 1e-3, "bfloat16": 1e-2, "float32": 1e-6, "float64": 1e-13}[dtype]
    assert total.is_cuda
    assert total.dtype == kind
    assert total.item() == pytest.approx(want, rel=rtol)
    for p, g in zip(params, given):
        np.testing.assert_array_equal(p.grad.cpu().double().numpy(), g)
    # squares, their sum, coefficient (3), factor
    assert launches(lambda: nn.utils.clip_grad_norm_(params, 0.5)) <= 7
    for p, g in zip(params, given):
        np.testing.assert_allclose(p.grad.cpu().double().numpy(), g * (0.5 / want), rtol=4 * rtol, atol=1e-7)


@pytest.mark.parametrize("order", [1.0, 3.0, float("inf"), 0.0])
def test_other_norms(order):
    params = [parameters(SIZES[:4], ptcore.float64, d) for d in ("cuda", "cpu")]
    for of in params:
        for p in of:
            p.grad = p.detach() * 2
    a, b = (nn.utils.get_total_norm([p.grad for p in of], order) for of in params)
    ptcore.testing.assert_close(a.cpu(), b, rtol=1e-13, atol=0)


def test_norms_of_huge_and_nan_values():
    for values, want in (([1e30, 1e30], 2 ** 0.5 * 1e30), ([float("nan"), 1.0], float("nan")),
                         ([float("inf"), 1.0], float("inf")), ([1e-30, 0.0], 1e-30)):
        x = ptcore.tensor(values).cuda()
        assert nn.utils.get_total_norm([x, x[:0]]).item() == pytest.approx(want, rel=1e-6, nan_ok=True)
    assert nn.utils.get_total_norm([ptcore.ones(0).cuda()]).item() == 0


def test_zero_grad(launches):
    params = parameters(SIZES * 2, ptcore.float32, "cuda")
    for p in params:
        p.grad = p.detach().clone().fill_(float("nan"))
    o = ptcore.optim.SGD(params, lr=1.0)
    grads = [p.grad for p in params]
    versions = [g._version for g in grads]
    assert launches(lambda: o.zero_grad(set_to_none=False)) == 1
    assert all(g._version > v for g, v in zip(grads, versions))
    for p, g in zip(params, grads):
        assert p.grad is g
        assert (g.cpu().numpy() == 0).all()


def test_saved_state_is_the_same():
    """A state moved from the CPU goes on as there."""
    here = parameters(SIZES, ptcore.float64, "cpu")
    o = ptcore.optim.Adam(here, lr=0.1)
    run(o, here, 2, ptcore.float64, "cpu")
    there = [nn.Parameter(p.detach().cuda()) for p in here]
    moved = ptcore.optim.Adam(there, lr=0.1)
    moved.load_state_dict(copy.deepcopy(o.state_dict()))
    run(o, here, 2, ptcore.float64, "cpu")
    run(moved, there, 2, ptcore.float64, "cuda")
    for a, b in zip(there, here, strict=True):
        ptcore.testing.assert_close(a.detach().cpu(), b.detach(), rtol=1e-12, atol=1e-14)
