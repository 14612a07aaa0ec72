"""NumPy's functions called on tensors: values as NumPy's, gradients where the result is a tensor."""
import numpy as np
import pytest
from _same_program import evaluated

import ptcore as pt

pytestmark = pytest.mark.core

REDUCTIONS = ("max", "min", "amax", "amin", "sum", "mean", "std", "var", "prod", "any", "all", "argmax", "argmin")


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("axis", [None, 0, 1, -1, (0, 1), (2, 0)])
@pytest.mark.parametrize("keepdims", [False, True])
def test_reductions(name, axis, keepdims):
    if name.startswith("arg") and isinstance(axis, tuple):
        return
    function = getattr(np, name)
    data = np.random.default_rng(0).normal(size=(2, 3, 4))
    want = function(data, axis=axis, keepdims=keepdims)
    got = function(pt.tensor(data, requires_grad=True), axis=axis, keepdims=keepdims)
    assert type(got) is pt.Tensor
    assert tuple(got.shape) == np.shape(want)
    np.testing.assert_allclose(got.detach().numpy(), want, rtol=1e-13)
    if got.requires_grad:
        got.sum().backward()


@pytest.mark.parametrize("name", ["max", "min"])
def test_pairs_are_as_in_torch_unless_numpy_asks(name):
    """``axis`` is another name of ``dim`` in PyTorch as well: only an out written out is NumPy's call."""
    data = np.random.default_rng(1).normal(size=(3, 4))
    x = pt.tensor(data)
    method, function = getattr(x, name), getattr(pt, name)
    values = getattr(np, name)(data, axis=1)
    for pair in (method(axis=1), method(1), method(dim=1), function(x, axis=1), function(x, axis=1, out=None),
                 method(dim=1, out=None)):
        assert type(pair) is getattr(pt.return_types, name)
        np.testing.assert_array_equal(pair.values.numpy(), values)
    out = pt.zeros(3, dtype=pt.float64)
    assert getattr(np, name)(x, axis=1, out=out) is out
    np.testing.assert_array_equal(out.numpy(), values)
    assert method().item() == getattr(data, name)()
    other = pt.zeros(3, 4, dtype=pt.float64)
    np.testing.assert_array_equal(method(other).numpy(), getattr(np, name + "imum")(data, 0))
    with pytest.raises(IndexError, match=f"a{name}: Dimension out of range"):
        getattr(np, name)(x, axis=5)
    with pytest.raises(TypeError, match="unexpected keyword"):
        getattr(np, name)(x, axis=0, initial=3)


def test_ufunc_arguments():
    x = pt.tensor([1.0, 2.0])
    with pytest.raises(ValueError, match=r"casting must be one of 'no', .* 'bad'"):
        np.add(x, 1, casting="bad")
    with pytest.raises(TypeError, match="Cannot cast"):
        np.add(x, 1, dtype=np.int8)
    with pytest.raises(TypeError, match="unexpected keyword"):
        np.add(x, 1, nothing=1)
    assert np.add(x, 1, casting="no").tolist() == [2, 3]
    assert np.add(x, 1, dtype="float64").dtype is pt.float64
    out = pt.zeros(2)
    assert np.add(x, 1, out=out) is out
    assert out.tolist() == [2, 3]


SAME = """
np.nonzero(b)
np.nonzero(m > 2)
np.argwhere(m > 2)
np.flatnonzero(b)
np.where(b)
np.size(m)
np.size(m, 1)
np.size(number)
np.shape(m)
np.ndim(m)
np.moveaxis(image, 0, -1)
np.moveaxis(image, (0, 1), (-1, 0))
np.unstack(m)
np.concatenate([x, np.ones(2), x])
np.stack([x, x], axis=1)
np.linalg.svd(m)[1]
np.fft.rfft(x)
np.add(x, 1, where=b, out=A([7.0, 8.0, 9.0]))
np.add(x, 1, where=A([True, False, True]), out=np.zeros(3))
np.multiply.reduce(m, axis=0, where=m > 1, initial=number)
np.add.reduce(m, axis=0, where=A([True, False]))
np.divide(1, zero, where=zero > 0, out=np.ones(3))
""".strip().splitlines()


@pytest.mark.parametrize("program", SAME)
def test_same(program):
    want, got = evaluated(program, {})
    assert isinstance(got, (type(want), pt.Tensor)) or isinstance(want, np.ndarray)
    for a, b in zip(want, got, strict=True) if isinstance(want, tuple) else [(want, got)]:
        np.testing.assert_array_equal(np.asarray(b), a)
        assert np.shape(b) == np.shape(a)


def test_what_needs_no_values_takes_what_requires_grad():
    x = pt.tensor([[0.0, 2.0], [3.0, 0.0]], requires_grad=True)
    assert np.size(x) == 4
    assert [i.tolist() for i in np.nonzero(x)] == [[0, 1], [1, 0]]
    np.moveaxis(x, 0, 1).sum().backward()
    assert x.grad.tolist() == [[1, 1], [1, 1]]


class Other:
    """An array of a package that knows no tensors, or one that does."""

    def __init__(self, result):
        self.result = result

    def __array_function__(self, func, types, args, kwargs):
        return self.result


def test_others_that_have_numpy_functions():
    for pair in ((pt.ones(2), Other(5)), (Other(5), pt.ones(2))):
        assert np.concatenate(pair) == 5
        with pytest.raises(TypeError, match="no implementation found"):
            np.concatenate([Other(NotImplemented) if isinstance(x, Other) else x for x in pair])
    with pytest.raises(TypeError, match="no implementation found"):
        np.asarray([1], like=pt.ones(2))


@pytest.mark.parametrize("n", [0, 2])
def test_truth_of_several(n):
    for error in (RuntimeError, ValueError):            # PyTorch's and NumPy's
        with pytest.raises(error, match="truth value"):
            bool(pt.ones(n))
