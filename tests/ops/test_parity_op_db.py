"""A slice of torch's op database: drawn entries in two dtypes, their first samples (``python -m op_db`` walks all of it)."""
import re
from importlib import import_module
from pathlib import Path

import pytest
from _draw import drawn

import ptcore as pt

torch = pytest.importorskip("torch")
_differences, _entries, _phases = [import_module(f"op_db.{name}") for name in ("_differences", "_entries", "_phases")]

pytestmark = [pytest.mark.parity, pytest.mark.slow]
ENTRIES = _entries.entries()
NO_SAMPLES = ("nn.functional.batch_norm.without_cudnn",)     # of the CPU
DOC = Path(__file__).resolve().parents[2] / "doc" / "source" / "guide" / "differences.rst"


@pytest.fixture(autouse=True)
def one_thread():
    before, ours = torch.get_num_threads(), pt.get_num_threads()
    torch.set_num_threads(1)
    pt.set_num_threads(1)
    yield
    torch.set_num_threads(before)
    pt.set_num_threads(ours)


@pytest.mark.parametrize("name", drawn(sorted(ENTRIES)))
def test_entry(name):
    found, _ = _phases.walk(ENTRIES[name], few=True)
    wrong = {phase: texts for phase, (_, texts, _) in found.items() if texts}
    assert not wrong
    assert found or name in NO_SAMPLES


def test_what_is_meant_to_differ_is_on_the_page():
    """Each entry once, with its reason; 40 at most."""
    rows = re.findall(r"^   \* - (.*?)\n     - (.*?)$", DOC.read_text().split("By entry of PyTorch's op database")[1], re.M | re.S)
    page = {name: reason for names, reason in rows for name in re.findall("``([^`]+)``", names)}
    assert page == {name: reason for name, (_, _, reason) in _differences.DIFFERENCES.items()}
    assert set(page) <= set(ENTRIES) and len(page) <= 40
