"""torch's database of modules, the first inputs of each (``python -m module_db`` walks all of them)."""
from importlib import import_module

import pytest

torch = pytest.importorskip("torch")
_walk = import_module("module_db._walk")

pytestmark = [pytest.mark.parity, pytest.mark.slow]


@pytest.mark.parametrize("name", sorted(_walk.ENTRIES))
def test_entry(name):
    found = _walk.walk(_walk.ENTRIES[name])
    assert not {phase: wrong for phase, (_, wrong, _) in found.items() if wrong}
    assert {"build", "train", "eval", "backward", "copies"} <= set(found)


def test_what_is_meant_to_differ_is_an_entry():
    assert set(_walk.DIFFERENCES) <= set(_walk.ENTRIES)
