"""What the test_programs_*.py share: data and weights of a seed in both libraries, and training step by step.

A program is a function of the library, ``m``, that returns nested lists and dicts of results, in the order in which
they came about, so that the first difference is the place of the fault.
"""

import numpy as np
import pytest

import ptcore as pt

torch = pytest.importorskip("torch")
STEP = {"float16": 1e-3, "bfloat16": 1e-2, "float32": 1e-6, "complex64": 1e-6}


def data(m, *shape, seed=0):
    rng = np.random.default_rng([seed, *shape])
    return m.from_numpy(np.asarray(rng.normal(size=shape)))


def whole(m, high, *shape, seed=0):
    return m.from_numpy(np.asarray(np.random.default_rng([seed, *shape]).integers(0, high, shape)))


def weighted(m, module, seed=3):
    """The module in float64, its parameters drawn from a seed."""
    rng = np.random.default_rng(seed)
    module.double()
    with m.no_grad():
        for p in module.parameters():
            p.copy_(m.from_numpy(np.asarray(rng.normal(size=tuple(p.shape)) * 0.3)))
    return module


def trained(parameters, optimizer, loss, steps=3):
    """Losses and gradients of each step, and the parameters after the last."""
    parameters, found = list(parameters), []
    for step in range(steps):
        optimizer.zero_grad()
        value = loss(step)
        value.backward()
        found += [value.detach(), [None if p.grad is None else p.grad.clone() for p in parameters]]
        optimizer.step()
    return [*found, [p.detach().clone() for p in parameters]]


def assert_same(ours, theirs, path="result", rtol=1e-8, atol=1e-10):
    if isinstance(theirs, (list, tuple)):
        assert len(ours) == len(theirs), path
        for k, (a, b) in enumerate(zip(ours, theirs)):
            assert_same(a, b, f"{path}[{k}]", rtol, atol)
    elif isinstance(theirs, dict):
        assert list(ours) == list(theirs), path
        for k in theirs:
            assert_same(ours[k], theirs[k], f"{path}[{k!r}]", rtol, atol)
    elif isinstance(theirs, torch.Tensor):
        assert isinstance(ours, pt.Tensor), path
        assert (ours.dtype.name, tuple(ours.shape)) == (str(theirs.dtype)[6:], tuple(theirs.shape)), path
        assert ours.requires_grad == theirs.requires_grad, path
        a, b = [(t if t.dtype.is_complex else t.double()).detach().numpy() for t in (ours, theirs)]
        rtol, atol = max(rtol, STEP.get(ours.dtype.name, 0)), max(atol, STEP.get(ours.dtype.name, 0))
        np.testing.assert_allclose(a, b, rtol=rtol, atol=atol, err_msg=path)
    elif isinstance(theirs, np.ndarray):
        np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=atol, err_msg=path)
    elif isinstance(theirs, float):
        assert ours == pytest.approx(theirs, rel=rtol, abs=atol), path
    else:
        assert ours == theirs, path


def compare(program, *args, **tolerance):
    theirs = program(torch, *args)
    assert_same(program(pt, *args), theirs, **tolerance)
