"""What the table's cases leave out of sort, topk, cumprod and embedding."""
import math

import numpy as np
import pytest

import ptcore
from ptcore.autograd import gradcheck, gradgradcheck

pytestmark = pytest.mark.core


@pytest.mark.parametrize("values", [[2.0, 0.0, 3.0, 4.0], [0.0, 0.0, 3.0], [2.0, 3.0, 0.0], [0.0, 2.0, 0.0, 1.0],
                                    [1.0, -2.0, 3.0], [0.0], [[0.0, 2.0], [3.0, 0.0], [5.0, 7.0]]])
def test_cumprod_of_zeros(values):
    """All derivatives of a product are finite, and right where a factor is zero."""
    x = ptcore.tensor(values, dtype=ptcore.float64, requires_grad=True)
    assert gradcheck(lambda x: ptcore.cumprod(x, 0), (x,))
    assert gradgradcheck(lambda x: ptcore.cumprod(x, 0), (x,))
    z = ptcore.tensor(np.array(values) * (1 + 2j), requires_grad=True)
    assert gradcheck(lambda x: ptcore.cumprod(x, 0), (z,))


def test_cumprod_forms():
    x = ptcore.tensor(3.0, requires_grad=True)
    y = ptcore.cumprod(x, 0)
    y.backward()
    assert (y.shape, y.item(), x.grad.item()) == ((), 3.0, 1.0)
    assert ptcore.cumprod(ptcore.zeros(0, 2), 0).shape == (0, 2)
    i = ptcore.tensor([1, 2, 3], dtype=ptcore.int8)
    assert i.cumprod(0).dtype is ptcore.int64
    assert i.cumprod(0, dtype=ptcore.float32).tolist() == [1.0, 2.0, 6.0]


def test_order_of_nan_and_equals():
    x = ptcore.tensor([math.nan, 1.0, -0.0, 0.0, math.inf, -math.inf, math.nan])
    assert x.sort().indices.tolist() == [5, 2, 3, 1, 4, 0, 6]
    assert x.sort(descending=True).indices.tolist() == [0, 6, 4, 1, 2, 3, 5]
    assert x.topk(3).indices.tolist() == [0, 6, 4]
    assert x.topk(2, largest=False).indices.tolist() == [5, 2]
    assert x.argsort().tolist() == x.sort().indices.tolist()
    same = ptcore.ones(3000, dtype=ptcore.int16)
    for descending in (False, True):
        assert same.sort(descending=descending).indices.tolist() == list(range(3000))


def test_sort_gradients_reach_their_sources():
    x = ptcore.tensor([[3.0, 1.0, 2.0], [4.0, 6.0, 5.0]], dtype=ptcore.float64, requires_grad=True)
    weight = ptcore.tensor([1.0, 10.0, 100.0], dtype=ptcore.float64)
    (x.sort(1).values * weight).sum().backward()
    assert x.grad.tolist() == [[100.0, 1.0, 10.0], [1.0, 100.0, 10.0]]
    assert not x.sort().indices.requires_grad
    for f in (lambda x: x.sort(0, descending=True)[0], lambda x: x.topk(2)[0]):
        assert gradcheck(f, (x,)) and gradgradcheck(f, (x,))


def test_sort_out():
    x = ptcore.tensor([3.0, 1.0])
    values, indices = ptcore.empty(2), ptcore.empty(2, dtype=ptcore.int64)
    result = ptcore.sort(x, out=(values, indices))
    assert result.values is values and result.indices is indices
    assert (values.tolist(), indices.tolist()) == ([1.0, 3.0], [1, 0])


def test_second_spelling_of_a_dim_with_a_default():
    x = ptcore.tensor([[2, 1], [0, 3]])
    assert x.sort(axis=0).values.tolist() == [[0, 1], [2, 3]]
    assert ptcore.stack([x, x], axis=2).shape == (2, 2, 2)
    with pytest.raises(TypeError, match="sort: dim and axis are two names of one argument"):
        x.sort(0, axis=1)


def test_result_types():
    import copy
    import pickle
    r = ptcore.tensor([3, 1]).sort()
    assert type(r) is ptcore.return_types.sort
    values, indices = r
    assert values is r.values is r[0] and indices is r.indices
    for again in (pickle.loads(pickle.dumps(r)), copy.deepcopy(r)):
        assert type(again) is type(r) and again.values.tolist() == [1, 3]
    with pytest.raises(TypeError, match=r"return_types.sort\(\) takes a 2-sequence \(1-sequence given\)"):
        ptcore.return_types.sort([1])
    with pytest.raises(AttributeError):
        r.values = 1


def test_embedding_padding():
    w = ptcore.arange(8.0).reshape(4, 2).requires_grad_()
    i = ptcore.tensor([[1, 3], [1, 0]])
    out = ptcore.embedding(w, i, padding_idx=1)
    np.testing.assert_array_equal(out.detach().numpy(), w.detach().numpy()[i.numpy()])
    out.sum().backward()
    assert w.grad.tolist() == [[1, 1], [0, 0], [0, 0], [1, 1]]
    w.grad = None
    ptcore.embedding(w, i).sum().backward()
    assert w.grad.tolist() == [[1, 1], [2, 2], [0, 0], [1, 1]]


@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda: ptcore.ones(3).topk(4), RuntimeError, r"topk: selected index k out of range: k must be in \[0, 3\], got 4"),
    (lambda: ptcore.ones(3).topk(-1), IndexError, r"topk: selected index k out of range: k must be in \[0, 3\], got -1"),
    (lambda: ptcore.ones(3).topk(2**70), OverflowError, "topk: k must be a 64-bit integer, got"),
    (lambda: ptcore.ones(3).sort(1), IndexError, r"sort: Dimension out of range \(expected to be in range of \[-1, 0\], but got 1\) for dim"),
    (lambda: ptcore.ones(3, dtype=ptcore.complex64).sort(), RuntimeError, "sort: dtype must be one of"),
    (lambda: ptcore.embedding(ptcore.ones(3), ptcore.tensor([0])), RuntimeError,
     r"embedding: weight must have 2 dimensions, got shape \[3\]"),
    (lambda: ptcore.embedding(ptcore.ones(3, 2), ptcore.ones(2)), RuntimeError,
     "embedding: indices must be an integer tensor, got float32"),
    (lambda: ptcore.embedding(ptcore.ones(3, 2), ptcore.tensor([3])), IndexError, "3"),
    (lambda: ptcore.embedding(ptcore.ones(3, 2), ptcore.tensor([-1])), IndexError, "-1"),
])
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()
