"""torch's database of optimizers (``python -m optim_db`` writes the table)."""
from importlib import import_module

import pytest

torch = pytest.importorskip("torch")
_walk = import_module("optim_db._walk")

pytestmark = [pytest.mark.parity, pytest.mark.slow]


@pytest.mark.parametrize("name", sorted(_walk.ENTRIES))
def test_entry(name):
    found = _walk.walk(_walk.ENTRIES[name])
    assert not {phase: wrong for phase, (_, wrong, _) in found.items() if wrong}
    assert {"build", "steps", "states", "resumed", "errors"} <= set(found)
