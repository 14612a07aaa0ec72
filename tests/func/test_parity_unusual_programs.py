"""The derivatives of programs of ``unusual_programs.py`` beside PyTorch's, of first and second order."""
import random

import numpy as np
import pytest
from unusual_programs import PARTS, N, argument, constant, program

import ptcore as pt

torch = pytest.importorskip("torch")

pytestmark = [pytest.mark.parity, pytest.mark.core]


NAMES = [name for name in PARTS if name != "saved_and_written"]         # PyTorch's graph is used inside its context


def derivatives(T, names, seed):
    """The value and the derivatives; PyTorch lacks some of second order."""
    f, x = program(T, names), argument(T, seed).requires_grad_()
    value = f(x)
    (g,) = T.autograd.grad(value, x, create_graph=True, materialize_grads=True)
    found = [value, g]
    try:
        if g.requires_grad:
            found += T.autograd.grad((g * constant(T, N, seed=5)).sum(), x, materialize_grads=True)
    except RuntimeError as e:
        if T is pt or "is not implemented" not in str(e):
            raise
    return [np.asarray(t.detach().numpy()) for t in found]


@pytest.mark.parametrize("name", NAMES)
def test_parts(name):
    for got, want in zip(derivatives(pt, [name], 0), derivatives(torch, [name], 0)):
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-8 * max(1, np.abs(want).max()))


def test_programs():
    for seed in range(60):
        r = random.Random(seed)
        names = [r.choice(NAMES) for _ in range(2)]
        want = derivatives(torch, names, seed)
        if not all(np.isfinite(x).all() and np.abs(x).max() < 1e6 for x in want):
            continue
        for got, expected in zip(derivatives(pt, names, seed), want):
            np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6 * max(1, np.abs(expected).max()),
                                       err_msg=f"{names}, {seed}")
