"""NumPy's functions called on tensors: values as NumPy's, gradients where the result is a tensor."""
import numpy as np
import pytest

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
    with pytest.raises(IndexError, match=f"a{name}: dim must be in"):
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
