"""What deterministic programs see, as in PyTorch."""
import pytest
import test_deterministic as own

import ptcore as pt

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.parity


@pytest.mark.parametrize("maker", own.MAKERS)
@pytest.mark.parametrize("name", [name for name in own.DTYPES if name != "uint64"])
def test_memory_is_filled(name, maker, monkeypatch):
    found = []
    for lib in (torch, pt):
        monkeypatch.setattr(own, "pt", lib)
        lib.use_deterministic_algorithms(True)
        try:
            found.append(repr(own.MAKERS[maker](getattr(lib, name)).tolist()))
        finally:
            lib.use_deterministic_algorithms(False)
    assert found[0] == found[1]
