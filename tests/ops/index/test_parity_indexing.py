"""Nested mixes of indices against torch, which has no negative steps: get, set, accumulate, gradients, errors."""
import re

import numpy as np
import pytest
from _examples import examples
from _keys import problems
from hypothesis import given
from hypothesis import strategies as st

import ptcore as pt

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.parity


def of(lib, key, as_tensors):
    if not as_tensors:      # torch takes a list of lists of bools for one dim where it looks for the Ellipsis
        return tuple(k if not isinstance(k, np.ndarray) else k.tolist()
                     if k.ndim and k.size and not (k.dtype == bool and k.ndim > 1) else lib.tensor(k) for k in key)
    return tuple(lib.tensor(k) if isinstance(k, np.ndarray) else k for k in key)


def data(lib, shape):
    return lib.arange(1.0, 1.0 + int(np.prod(shape)), dtype=lib.float64).reshape(shape)


@examples(400)
@given(problems(negative=False), st.booleans())
def test_get_and_its_gradient(problem, as_tensors):
    shape, key = problem
    results = []
    for lib in (pt, torch):
        x = data(lib, shape).requires_grad_()
        out = x[of(lib, key, as_tensors)]
        (out * lib.arange(1.0, 1.0 + out.numel(), dtype=lib.float64).reshape(out.shape)).sum().backward()
        results.append((out.detach().numpy(), x.grad.numpy(), out._base is not None))
    (mine, grad, view), (theirs, their_grad, their_view) = results
    assert mine.shape == theirs.shape
    np.testing.assert_array_equal(mine, theirs)
    np.testing.assert_array_equal(grad, their_grad)
    assert view == their_view           # memory is shared in the same cases


@examples(400)
@given(problems(negative=False), st.booleans(), st.booleans())
def test_set_and_its_gradient(problem, as_tensors, number):
    shape, key = problem
    results = []
    for lib in (pt, torch):
        x = data(lib, shape).requires_grad_()
        y = x * 1
        parts = of(lib, key, as_tensors)
        window = y[parts]
        value = lib.tensor(-2.0, dtype=lib.float64).requires_grad_()
        y[parts] = 5 if number else value.expand(window.shape)
        (y * y).sum().backward()
        grads = [x.grad.numpy()] + ([] if value.grad is None else [value.grad.numpy()])
        results.append([y.detach().numpy(), *grads])
    for mine, theirs in zip(*results, strict=True):
        np.testing.assert_array_equal(mine, theirs)


@examples(200)
@given(problems(negative=False))
def test_accumulate(problem):
    shape, key = problem
    key = tuple(np.asarray(k) for k in key if isinstance(k, (np.ndarray, list)) and np.asarray(k).ndim)
    if not key or 0 in shape:
        return                          # torch fails an assertion of its own, or takes every position in nothing
    results, errors = [], []
    for lib in (pt, torch):
        x = data(lib, shape)
        indices = tuple(lib.tensor(k) for k in key)
        try:
            x.index_put_(indices, lib.tensor(0.5, dtype=lib.float64), accumulate=True)
            errors.append(None)
        except Exception as e:
            errors.append(e)
        results.append(x.numpy())
    if errors[1] is None:
        assert errors[0] is None
        np.testing.assert_array_equal(*results)
    else:
        assert isinstance(errors[0], (IndexError, RuntimeError))


@pytest.mark.parametrize("key", [(range(2),), (range(3), [2, 1, 0]), (slice(None), range(3, 0, -2)), (range(0),)],
                         ids=str)
def test_ranges(key):
    x, y = pt.arange(12.0).reshape(3, 4), torch.arange(12.0).reshape(3, 4)
    assert x[key].tolist() == y[key].tolist()
    x[key], y[key] = -1, -1
    assert x.tolist() == y.tolist()


BAD = [(0, 0, 0, 0), (5,), (-5,), ("a",), (1.5,), ([0, 9],), ([0, 1], [0, 1, 2]),
       ([True, False],),
       (slice(None, None, 0),), ({},), (slice("a", None),), ([[0, 1], [2]],), (None, 7)]


# What each says: which op, which argument.
SAYS = [
    "index: too many indices for tensor of dimension 3, got 4",
    "index 5 is out of bounds for dimension 0 with size 3", "index -5 is out of bounds for dimension 0 with size 3",
    "index: only ints, slices (`:`), None, Ellipsis, tensors, ndarrays and",
    "index: only ints, slices (`:`), None, Ellipsis, tensors, ndarrays and",
    "index: index 9 is out of bounds for dimension 0 with size 3",
    "index: shapes must broadcast, got [2] and [3] for the index tensors (shape mismatch: indexing tensors could not be "
    "broadcast together)",
    "index: the mask's shape [2] does not match the shape [3, 4, 2] of the", "index: slice step must not be zero",
    "index: only ints, slices (`:`), None, Ellipsis, tensors, ndarrays and",
    "index: slice indices must be integers or None or have an __index__ method, got str",
    "tensor: expected sequence of length 2 at dim 1 (got 1)", "index 7 is out of bounds for dimension 0 with size 3"]


@pytest.mark.parametrize(("key", "says"), [*zip(BAD, SAYS, strict=True)], ids=range(len(BAD)))
def test_errors(key, says):
    with pytest.raises((IndexError, TypeError, ValueError)) as theirs:
        torch.zeros(3, 4, 2)[key]
    with pytest.raises(type(theirs.value), match="^" + re.escape(says)):
        pt.zeros(3, 4, 2)[key]


@pytest.mark.parametrize("key", [0, slice(1, None), [0, 1], None])
def test_leaf_is_not_written_to(key):
    for lib in (pt, torch):
        with pytest.raises(RuntimeError, match="leaf Variable that requires grad") as found:
            lib.ones(3, 4, requires_grad=True)[key] = 1
        assert lib is torch or str(found.value).startswith("index: ")


@pytest.mark.parametrize("key", [
    lambda lib, m: m, lambda lib, m: (m, 1), lambda lib, m: (slice(None), lib.tensor([1, 0, 1], dtype=lib.uint8)),
    lambda lib, m: lib.tensor([[1, 0, 3], [0, 0, 1]], dtype=lib.uint8), lambda lib, m: (None, m, ...),
    lambda lib, m: lib.tensor(1, dtype=lib.uint8), lambda lib, m: lib.tensor(0, dtype=lib.uint8),
    lambda lib, m: lib.tensor([0, 7], dtype=lib.uint8), lambda lib, m: lib.tensor([1, 0, 1], dtype=lib.uint8)])
@pytest.mark.filterwarnings("ignore:index. uint8 is taken for a mask:UserWarning",
                            "ignore:indexing with dtype torch.uint8 is now deprecated:UserWarning")
def test_bytes_are_a_mask(key):
    """As they were when comparisons gave them, for reading and writing."""
    results = []
    for lib in (pt, torch):
        x = data(lib, (2, 3)).requires_grad_()
        try:
            k = key(lib, lib.tensor([1, 0], dtype=lib.uint8))
            y = x * 1
            if x[k].numel() > 1:        # for one number torch takes masked_fill_, which wants a bool
                y[k] = -x[k].detach()
            (x[k].sum() + y.sum() * 2).backward()
            results.append([x[k].detach().numpy(), y.detach().numpy(), x.grad.numpy()])
        except IndexError:
            results.append(None)
    if results[1] is None:
        assert results[0] is None
        return
    for mine, theirs in zip(*results, strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_bytes_warn():
    with pytest.warns(UserWarning, match="uint8 is taken for a mask"):
        pt.ones(2)[pt.tensor([0, 1], dtype=pt.uint8)]
    assert pt.arange(3)[np.array([2, 0], np.uint8)].tolist() == [2, 0]      # NumPy's arrays are positions
