"""Functions take attributes, as functions of Python do."""
import copy
import gc
import inspect
import pickle
import weakref

import pytest

import ptcore as pt
from ptcore.nn import functional as F

pytestmark = pytest.mark.core


KINDS = ("OpFunction", "Overridable", "cython_function_or_method", "function")


def functions():
    found = {}
    for space in (pt, F, pt.linalg, pt.special, pt.fft, pt.Tensor):
        for name in dir(space):
            f = inspect.getattr_static(space, name, None) or getattr(space, name)       # the latter: a lazy name
            if type(f).__name__ in KINDS:
                found[f"{space.__name__}.{name}"] = f
    return found


def test_every_function_takes_attributes():
    assert {type(f).__name__ for f in functions().values()} == set(KINDS)
    for name, f in functions().items():
        value = object()
        assert not hasattr(f, "__of_a_user__"), name
        f.__of_a_user__ = value
        assert f.__of_a_user__ is value and f.__dict__["__of_a_user__"] is value, name
        del f.__of_a_user__
        assert not hasattr(f, "__of_a_user__"), name


def test_attributes_change_nothing_else():
    F.relu.__default_init__ = len
    try:
        assert F.relu.__name__ == "relu" and copy.deepcopy(F.relu) is F.relu
        assert pickle.loads(pickle.dumps(F.relu)) is F.relu
        assert F.relu(pt.ones(1)).item() == 1 and "input" in inspect.signature(F.relu).parameters
    finally:
        del F.relu.__default_init__
    with pytest.raises(AttributeError):
        del F.relu.__default_init__


def test_a_cycle_through_an_attribute_is_found():
    class Kept:
        pass
    kept = Kept()
    kept.function, F.relu.kept = F.relu, kept
    alive = weakref.ref(kept)
    assert gc.is_tracked(F.relu)
    assert any(x is F.relu for x in gc.get_referrers(vars(F.relu)))
    del F.relu.kept, kept
    gc.collect()
    assert alive() is None
