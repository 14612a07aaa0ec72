"""A recorded step against PyTorch: gradients of rate, initial values, gradients and state.

One step: the backward of a second one (in ASGD of the first) raises in most of PyTorch's, which has written to what it
needs. Most of them take the rate as a number. SGD has a buffer from the start, as PyTorch's first one is cut off.
"""
import numpy as np
import pytest

import ptcore as pt

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.parity

CASES = {
    "sgd": ("SGD", {"weight_decay": 0.1}, ()),
    "sgd momentum": ("SGD", {"momentum": 0.9, "dampening": 0.1}, ("momentum_buffer",)),
    "sgd nesterov": ("SGD", {"momentum": 0.9, "nesterov": True}, ("momentum_buffer",)),
    "adam": ("Adam", {"weight_decay": 0.1}, ("exp_avg", "exp_avg_sq")),
    "amsgrad": ("Adam", {"amsgrad": True}, ("exp_avg", "exp_avg_sq", "max_exp_avg_sq")),
    "adamw": ("AdamW", {"weight_decay": 0.1, "maximize": True}, ("exp_avg", "exp_avg_sq")),
    "adamax": ("Adamax", {}, ("exp_avg", "exp_inf")),
    "nadam": ("NAdam", {"weight_decay": 0.1}, ("exp_avg", "exp_avg_sq")),
    "radam": ("RAdam", {}, ("exp_avg", "exp_avg_sq")),
    "rmsprop": ("RMSprop", {"momentum": 0.9, "centered": True}, ("square_avg", "momentum_buffer", "grad_avg")),
    "adagrad": ("Adagrad", {"lr_decay": 0.1}, ("sum",)),
    "adadelta": ("Adadelta", {}, ("square_avg", "acc_delta")),
    "rprop": ("Rprop", {}, ("prev", "step_size")),
}
RATES = ["sgd", "sgd momentum", "sgd nesterov", "adam", "amsgrad", "adamw"]
COUNTERS = {"step": 10.0, "mu_product": 0.5}


def gradients(lib, name, with_rate):
    cls, options, names = CASES[name]
    rng = np.random.default_rng(5)
    lr = lib.tensor(0.1, dtype=lib.float64, requires_grad=with_rate)
    start = lib.tensor(rng.normal(size=(4, 3)), requires_grad=True)
    g = lib.tensor(rng.normal(size=(4, 3)), requires_grad=True)
    # squares, of which one is larger than another one in the mean
    kept = [lib.tensor(rng.random(size=(4, 3)) + (1 if n == "grad_avg" else 2), requires_grad=True) for n in names]
    if "grad_avg" in names:
        kept[0] = lib.tensor(rng.random(size=(4, 3)) + 9, requires_grad=True)
    p = start.clone()
    made = getattr(lib.optim, cls)([p], lr=lr if with_rate else 0.1, differentiable=True, **options)
    counters = ["step"] * (cls != "SGD") + ["mu_product"] * (cls == "NAdam")
    made.state[p] = {**{n: lib.tensor(COUNTERS[n], dtype=lib.float64) for n in counters},
                     **{n: x.clone() for n, x in zip(names, kept, strict=True)}}
    p.grad = g
    made.step()
    results = [p, *[made.state[p][n] for n in names]]
    wanted = [start, g, *kept] + [lr] * with_rate
    found = lib.autograd.grad(sum((x * x * (k + 1)).sum() for k, x in enumerate(results)), wanted, allow_unused=True)
    return [x.detach().numpy() for x in results] + [None if x is None else x.numpy() for x in found]


@pytest.mark.parametrize(("name", "with_rate"), [(n, False) for n in CASES] + [(n, True) for n in RATES])
def test_gradients(name, with_rate):
    ours, theirs = (gradients(lib, name, with_rate) for lib in (pt, torch))
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(0 if a is None else a, 0 if b is None else b, rtol=1e-8, atol=1e-12)
