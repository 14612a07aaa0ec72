"""Modes and classes see the in-place form of every row under its own name, once."""
import numpy as np
import pytest
from _cases import ROWS, Sample, array, cases, dtypes, inplace_function
from _names_seen import NamesSeen
from _walk import walk

import ptcore as pt

pytestmark = pytest.mark.core

INPLACE = [r for r in ROWS.values() if r.inplace and not r.internal and cases(r)]


def called(row):
    """(the first argument, the other positional and the keyword arguments) of each call of the in-place form that the
    dtypes and sizes of its first case allow."""
    f = inplace_function(row)
    for dtype in dtypes(row):
        positional, keyword = Sample(row, cases(row)[0], dtype, np.random.default_rng(5)).arguments()
        try:
            f(positional[0].clone(), *positional[1:], **keyword)
        except (RuntimeError, TypeError):           # a result of another dtype or size
            continue
        yield positional[0], positional[1:], keyword


@walk("row", INPLACE)
def test_modes_and_classes(row):
    f = inplace_function(row)

    class Sees(pt.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append(func.__name__)
            return super().__torch_function__(func, types, args, kwargs)
    for x, others, keyword in list(called(row))[:2]:
        plain, watched, of_class, seen = x.clone(), x.clone(), x.clone().as_subclass(Sees), []
        f(plain, *others, **keyword)
        with NamesSeen() as log:
            assert f(watched, *others, **keyword) is watched
        assert log.names == [f.__name__]
        assert watched._version == plain._version
        f(of_class, *others, **keyword)
        assert seen[:1] == [f.__name__]
        np.testing.assert_array_equal(array(watched), array(plain))


def test_how_many():
    assert len(INPLACE) >= 115 and sum(r.kind != "elementwise" for r in INPLACE) >= 25


def test_a_mode_that_leaves_a_call_sees_what_it_is_made_of():
    class Leaves(NamesSeen):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            self.names.append(func.__name__)
            return NotImplemented if func.__name__ == "cumsum_" else func(*args, **(kwargs or {}))
    x = pt.ones(3)
    with Leaves() as log:
        x.cumsum_(0)
    assert log.names[:2] == ["cumsum_", "cumsum"] and x.tolist() == [1, 2, 3]
