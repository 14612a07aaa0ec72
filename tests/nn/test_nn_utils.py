"""Gradient clipping and conversion of parameters to a vector."""

import math

import numpy as np
import pytest

import ptcore as pt
from ptcore import nn
from ptcore.nn import utils

pytestmark = pytest.mark.core

GRADS = [np.array([3.0, -4.0]), np.array([[12.0]]), None]


def parameters():
    params = []
    for grad in GRADS:
        shape = () if grad is None else grad.shape
        params.append(nn.Parameter(pt.zeros(shape, dtype=pt.float64)))
        if grad is not None:
            params[-1].grad = pt.from_numpy(grad.copy())
    return params


FLAT = np.array([3.0, -4.0, 12.0])


@pytest.mark.parametrize("p", [0.5, 1, 2, 3, math.inf])
def test_clip_grad_norm(p):
    params = parameters()
    norm = np.linalg.norm(FLAT, p)
    total = utils.clip_grad_norm_(params, 2.0, norm_type=p)
    assert total.item() == pytest.approx(norm, rel=1e-12)
    got = np.concatenate([q.grad.numpy().ravel() for q in params[:2]])
    np.testing.assert_allclose(got, FLAT * 2 / (norm + 1e-6), rtol=1e-12)
    assert params[2].grad is None
    # A norm below the limit leaves everything as it is.
    params = parameters()
    utils.clip_grad_norm_(iter(params), 1e9, norm_type=p)
    assert np.array_equal(params[0].grad.numpy(), GRADS[0])


def test_norm_that_is_not_finite():
    param = nn.Parameter(pt.zeros(1))
    param.grad = pt.full((1,), math.inf)
    with pytest.raises(RuntimeError, match="non-finite"):
        utils.clip_grad_norm_(param, 1.0, error_if_nonfinite=True)
    assert param.grad.item() == math.inf
    assert utils.get_total_norm([]).item() == 0


@pytest.mark.parametrize("dtype", [pt.complex64, pt.complex128])
def test_norm_of_complex_gradients(dtype):
    given = [np.array([3 + 4j, 1j]), np.array([[2.0 - 1j]])]
    params = [pt.zeros(g.shape, dtype=dtype, requires_grad=True) for g in given]
    for p, g in zip(params, given, strict=True):
        p.grad = pt.tensor(g, dtype=dtype)
    total = utils.clip_grad_norm_([*params, pt.zeros(1, requires_grad=True)], 1.0)
    want = np.linalg.norm(np.concatenate([g.ravel() for g in given]))
    assert total.dtype is pt.zeros((), dtype=dtype).real.dtype and total.item() == pytest.approx(want)
    np.testing.assert_allclose(params[0].grad.numpy(), given[0] / want, rtol=1e-5)


def test_clip_grad_value():
    params = parameters()
    utils.clip_grad_value_(params, 3.5)
    assert params[0].grad.tolist() == [3.0, -3.5]
    assert params[1].grad.tolist() == [[3.5]]


def test_vector_round_trip():
    a, b = nn.Parameter(pt.ones(2, 2)), nn.Parameter(pt.zeros(3))
    vector = utils.parameters_to_vector([a, b])
    assert vector.tolist() == [1, 1, 1, 1, 0, 0, 0]
    utils.vector_to_parameters(pt.arange(7.0), [a, b])
    assert a.tolist() == [[0, 1], [2, 3]]
    assert b.tolist() == [4, 5, 6]
    assert a.requires_grad
    with pytest.raises(ValueError, match=r"must have shape \(7,\), got \(6,\)"):
        utils.vector_to_parameters(pt.zeros(6), [a, b])
    with pytest.raises(TypeError):
        utils.vector_to_parameters([1.0], [a])


@pytest.mark.parametrize("batch_first", [True, False])
def test_unpadded_sequences_are_copies(batch_first):
    batch = pt.ones(2, 2, 3)
    sequences = pt.nn.utils.rnn.unpad_sequence(batch, pt.tensor([2, 1]), batch_first=batch_first)
    for s in sequences:
        assert s.is_contiguous()
        s.zero_()
    assert (batch == 1).all()
