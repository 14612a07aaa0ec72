"""Nested mixes of everything an index may be: get, set, accumulate, gradients, errors, with NumPy as oracle."""
import numpy as np
import pytest
from _examples import examples
from _keys import problems, selected
from hypothesis import given
from hypothesis import strategies as st

import ptcore

pytestmark = pytest.mark.core

LAYOUTS = ("plain", "reversed", "transposed")


def both(shape, layout="plain"):
    """An array and a tensor with the same elements, each with memory of its own."""
    a = np.arange(int(np.prod(shape)), dtype=np.float64).reshape(shape) + 1
    x = ptcore.from_numpy(a.copy())
    if layout == "reversed":
        a = a[tuple([slice(None, None, -1)] * a.ndim)].copy()
        x = x[tuple([slice(None, None, -1)] * a.ndim)]
    elif layout == "transposed":
        turned = np.ascontiguousarray(a.T)
        x = ptcore.from_numpy(turned).permute(tuple(range(a.ndim - 1, -1, -1)))
    return a, x


def as_tensors(key):
    return tuple(ptcore.from_numpy(k.copy()) if isinstance(k, np.ndarray) else k for k in key)


def expected(a, key):
    view, rest = selected(a, key)
    return view[rest]


def assign(a, key, value):
    view, rest = selected(a, key)
    view[rest] = value


@examples(500)
@given(problems(), st.sampled_from(LAYOUTS))
def test_get(problem, layout):
    shape, key = problem
    a, x = both(shape, layout)
    want = expected(a, key)
    for form in (key, as_tensors(key)):
        got = x[form]
        assert got.shape == want.shape
        np.testing.assert_array_equal(got.numpy(), want)
    meta = ptcore.empty(shape, dtype=ptcore.float64, device="meta")
    if not any(isinstance(k, np.ndarray) and k.dtype == bool for k in key):
        assert meta[key].shape == want.shape
    single = [k for k in key if k is not Ellipsis]
    if len(single) == 1 == len(key):
        np.testing.assert_array_equal(x[single[0]].numpy(), want)


@examples(500)
@given(problems(), st.sampled_from(LAYOUTS), st.sampled_from(["number", "full", "row", "other dtype", "ones in front"]))
@pytest.mark.outer
def test_set(problem, layout, kind):
    """One value for repeated positions, so that their order does not matter."""
    shape, key = problem
    a, x = both(shape, layout)
    window = expected(a, key)
    before = x._version
    if kind == "number":
        value, given_ = -7.0, -7
    else:
        size = window.shape[-1:] if kind == "row" else window.shape
        value = np.full(size, -3.0)
        given_ = ptcore.from_numpy(value.astype(np.int32) if kind == "other dtype" else value)
        if kind == "ones in front":
            given_ = given_.reshape(1, 1, *size)
    assign(a, key, value)
    x[as_tensors(key)] = given_
    assert x._version > before
    np.testing.assert_array_equal(x.numpy(), a)


@examples(300)
@given(problems(), st.sampled_from(LAYOUTS))
@pytest.mark.outer
def test_set_of_distinct_values(problem, layout):
    shape, key = problem
    a, x = both(shape, layout)
    places = np.arange(a.size).reshape(shape)
    window = expected(places, key)
    if len(np.unique(window)) < window.size:
        return                          # a position twice: which value stays is not said
    value = -1.0 - np.arange(window.size).reshape(window.shape)
    assign(a, key, value)
    x[key] = value                      # an ndarray as the value, and as index
    np.testing.assert_array_equal(x.numpy(), a)


@examples(400)
@given(problems(), st.booleans())
@pytest.mark.outer
def test_accumulate(problem, broadcast):
    """index_put_ takes index tensors, with None for a whole dim."""
    shape, key = problem
    indices = [k for k in key if isinstance(k, (np.ndarray, list))]
    a, x = both(shape)
    if not indices or any(not isinstance(k, (np.ndarray, list)) and k != slice(None) for k in key):
        key = tuple(np.asarray(k) for k in indices)
        if not key or sum(k.ndim if k.dtype == bool else 1 for k in key) > len(shape):
            return
        for d, k in enumerate(key):
            if k.dtype == bool or (k.size and (k.max(initial=-9) >= shape[d] or k.min(initial=9) < -shape[d])):
                return
    window = a[key]
    value = np.random.default_rng(0).integers(1, 9, window.shape[-1:] if broadcast else window.shape).astype(float)
    np.add.at(a, key, np.broadcast_to(value, window.shape).copy())     # NumPy drops the repeats of what it broadcasts
    forms = tuple(None if isinstance(k, slice) else ptcore.from_numpy(np.array(k)) for k in key)
    result = ptcore.index_put(x, forms, ptcore.from_numpy(value), accumulate=True)
    np.testing.assert_array_equal(result.numpy(), a)
    assert x.index_put_(forms, ptcore.from_numpy(value), accumulate=True) is x
    np.testing.assert_array_equal(x.numpy(), a)


@pytest.mark.parametrize("key", [(slice(None), slice(None), 3), (1,), (1, 2, -1), (slice(None), -1), (1, slice(None), 2)])
@pytest.mark.parametrize("accumulate", [False, True])
def test_put_at_numbers(key, accumulate):
    """Tensors of one integer give the result no dim, where nothing else is indexed by a tensor."""
    a, x = both((2, 3, 4))
    value = -1.0 - np.arange(a[key].size).reshape(a[key].shape)
    forms = tuple(None if isinstance(k, slice) else ptcore.tensor(k) for k in key)
    weights = np.random.default_rng(2).standard_normal(a.shape)
    for form in (forms, tuple(f and f.to(ptcore.int32) for f in forms)):
        v = ptcore.from_numpy(value.copy()).requires_grad_()
        result = ptcore.index_put(x, form, v, accumulate)
        want = a.copy()
        want[key] = value + (a[key] if accumulate else 0)
        np.testing.assert_array_equal(result.detach().numpy(), want)
        (grad,) = ptcore.autograd.grad(result, v, ptcore.from_numpy(weights))
        np.testing.assert_array_equal(grad.numpy(), weights[key])


@examples(300)
@given(problems(), st.sampled_from(LAYOUTS))
@pytest.mark.outer
def test_gradient_of_get(problem, layout):
    shape, key = problem
    a, x = both(shape, layout)
    start = x.detach().clone().requires_grad_()
    x = start * 1 if layout == "plain" else start.flip(0).flip(0)
    out = x[as_tensors(key)]
    weights = np.random.default_rng(1).integers(1, 9, out.shape).astype(float)
    (grad,) = ptcore.autograd.grad(out, start, ptcore.from_numpy(np.array(weights)))
    want = np.zeros(shape)
    places = expected(np.arange(a.size).reshape(shape), key)
    np.add.at(want.reshape(-1), places.reshape(-1), weights.reshape(-1))
    np.testing.assert_array_equal(grad.numpy(), want)


@examples(300)
@given(problems(), st.booleans())
@pytest.mark.outer
def test_gradient_of_set(problem, as_row):
    """Nothing flows to what was overwritten, and to the values what comes from where they went."""
    shape, key = problem
    a, _ = both(shape)
    x = ptcore.from_numpy(a).requires_grad_()
    places = expected(np.arange(a.size).reshape(shape), key)
    size = places.shape[-1:] if as_row else places.shape
    value = ptcore.full(size, 2.0, dtype=ptcore.float64).requires_grad_()
    y = x * 1
    y[as_tensors(key)] = value
    weights = np.random.default_rng(1).integers(1, 9, shape).astype(float)
    gx, gv = ptcore.autograd.grad(y, (x, value), ptcore.from_numpy(weights.copy()))
    want = weights.copy()
    want.reshape(-1)[places.reshape(-1)] = 0
    np.testing.assert_array_equal(gx.numpy(), want)
    to_values = weights.reshape(-1)[places.reshape(-1)].reshape(places.shape)
    if as_row and places.ndim:
        to_values = to_values.sum(tuple(range(places.ndim - 1)))
    np.testing.assert_array_equal(gv.numpy(), to_values)


@examples(300)
@given(problems(), st.data())
def test_errors(problem, data):
    """A key with one item spoiled raises IndexError, for get and for set, and nothing was written."""
    shape, key = problem
    a, x = both(shape)
    kind = data.draw(st.sampled_from(["too many", "two Ellipses", "out of range", "float", "wrong mask", "list"]))
    place = data.draw(st.integers(0, len(key)))
    dims = sum(1 if not (isinstance(k, np.ndarray) and k.dtype == bool) else k.ndim for k in key if k is not None
               and k is not Ellipsis)
    if kind == "too many":
        bad = (*key, *[0] * (len(shape) - dims + 1))
    elif kind == "two Ellipses":
        bad = (*key[:place], Ellipsis, Ellipsis, *key[place:])
    elif dims == len(shape):
        return
    else:
        item = {"out of range": 9, "float": np.array([0.0]), "wrong mask": np.zeros(7, bool), "list": [9, 0]}[kind]
        bad = (*key[:place], item, *key[place:])
    for form in (bad, as_tensors(bad)):
        with pytest.raises(IndexError, match=r"^(index|select)"):
            x[form]
        with pytest.raises(IndexError, match=r"^(index|select)"):
            x[form] = -1
    np.testing.assert_array_equal(x.numpy(), a)


def test_an_index_of_no_dims_selects():
    """As an int does: a view, and before index arrays are looked at."""
    x = ptcore.arange(24.0).reshape(2, 3, 4)
    one = ptcore.tensor(1)
    x[one].fill_(-1.0)
    assert x[1].tolist() == [[-1.0] * 4] * 3
    assert x[one, :, [0, 1]].shape == x[1, :, [0, 1]].shape == (3, 2)
    assert x[ptcore.tensor(-1, dtype=ptcore.int32), one].shape == (4,)
    with pytest.raises(IndexError, match=r"^(index|select)"):
        x[ptcore.tensor(2)]
    y = x.clone().requires_grad_()
    y[one, one].sum().backward()
    assert float(y.grad.sum()) == 4
