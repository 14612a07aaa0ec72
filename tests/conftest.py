"""What every test starts from: fixed seeds and the library's default state."""
import os
import random
import sys
from pathlib import Path

import numpy as np
import pytest

import ptcore


def pytest_collection_modifyitems(items):
    """A module that says ``core_unless_slow = True`` is in the inner loop but for its slow part."""
    for item in items:
        if getattr(getattr(item, "module", None), "core_unless_slow", False) and (
                not item.get_closest_marker("slow")):
            item.add_marker(pytest.mark.core)


@pytest.fixture(autouse=True)
def fixed_state():
    """Same numbers in every run and order; whatever a test sets is put back."""
    random.seed(0)
    np.random.seed(0)
    ptcore.manual_seed(0)
    dtype = ptcore.get_default_dtype()
    yield
    ptcore.set_default_dtype(dtype)
    assert ptcore.is_grad_enabled(), "a test left grad mode switched off"


@pytest.fixture(autouse=True)
def no_source_tree(monkeypatch):
    """Spawned processes get this one's path: the folder of the tests' checkout must not hide the installed package."""
    hides = {"", os.getcwd(), str(Path(__file__).parents[1])} - {str(Path(ptcore.__file__).parents[1])}
    if not hides.isdisjoint(sys.path):
        monkeypatch.setattr(sys, "path", [p for p in sys.path if p not in hides])


@pytest.fixture
def rng():
    return np.random.default_rng(0)
