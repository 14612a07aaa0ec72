"""Programs run twice, with ptcore and with torch: values, history and errors.

A program takes the library and returns a structure of tensors, numbers and flags; it may
raise. Both libraries must return equal structures or raise errors of the same class.
"""


import numpy as np
import pytest

import ptcore

torch = pytest.importorskip("torch")


def leaf(T, values=(1.0, 2.0, 3.0, 4.0)):
    return T.tensor(list(values), dtype=T.float64, requires_grad=True)


def square(T):
    return leaf(T).reshape(2, 2)


def normal(value):
    """A structure without the library's types: arrays, numbers, text, None."""
    if isinstance(value, (ptcore.Tensor, torch.Tensor)):
        return value.detach().numpy()
    if isinstance(value, (tuple, list)):
        return [normal(v) for v in value]
    return value


def outcome(function, library):
    try:
        return "value", normal(function(library))
    except Exception as error:
        return "error", error


def equal(a, b):
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-12)
    elif isinstance(a, list) and isinstance(b, list):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            equal(x, y)
    else:
        assert type(a) is type(b)
        assert a == b


def compare(program):
    kind, ours = outcome(program, ptcore)
    other_kind, theirs = outcome(program, torch)
    assert kind == other_kind, (ours, theirs)
    if kind == "error":
        assert isinstance(ours, type(theirs)), (ours, theirs)
    else:
        equal(ours, theirs)
