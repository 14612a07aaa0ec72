"""What ``import ptcore`` may cost, in counts: shared objects, modules, files opened."""
import ctypes
import json
import subprocess
import sys

import pytest
from _recorded import held

pytestmark = pytest.mark.core

SCRIPT = """
import sys, json
before = set(sys.modules)
opened = []
sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == "open" else None)
import ptcore
after = set(sys.modules) - before
objects = {getattr(m, "__file__", None) for m in list(sys.modules.values())}
print(json.dumps({"modules": sorted(after), "opened": opened,
                  "objects": sorted(f for f in objects if f and "ptcore" in f
                                    and f.endswith((".so", ".pyd")))}))
"""


@pytest.fixture(scope="module")
def cost():
    out = subprocess.run([sys.executable, "-P", "-c", SCRIPT], capture_output=True, text=True, check=True)
    return json.loads(out.stdout)


def test_shared_objects(cost):
    assert 1 <= len(cost["objects"]) <= 8


def test_no_row_file_is_parsed(cost):
    assert not {m for m in cost["modules"] if m.startswith("ptcore._ops.") and m.endswith(".rows")}


def test_nor_by_what_trains():
    """The functions that modules hold have their docstrings in the rows: nobody may ask for them at import."""
    script = "import sys, ptcore.nn, ptcore.optim, ptcore.utils.data; print(*sys.modules)"
    out = subprocess.run([sys.executable, "-P", "-c", script], capture_output=True, text=True, check=True)
    assert not {m for m in out.stdout.split() if m.startswith("ptcore._ops.") and m.endswith(".rows")}


@pytest.mark.parametrize("name", ["numpy", "scipy", "typing", "dataclasses", "inspect", "torch", "cuda"])
def test_heavy_modules_stay_out(cost, name):
    assert name not in cost["modules"]


def test_counts(cost):
    ours = [m for m in cost["modules"] if m.startswith("ptcore")]
    held("import ptcore: modules of ptcore", len(ours))
    if sys.version_info[:2] == (3, 11):         # a later one's own modules import others; the numbers are of this one
        held("import ptcore: other modules", len(cost["modules"]) - len(ours))
        held("import ptcore: files opened", len(cost["opened"]))


def test_no_module_is_exported():
    """A Python with its own ``_random`` in the program would have its PyInit__random called for ours."""
    from ptcore import _core
    library = ctypes.CDLL(_core.__file__)
    assert hasattr(library, "PyInit__core")
    assert not [name for name in _core.MODULES if hasattr(library, "PyInit_" + name.rpartition(".")[2])]
