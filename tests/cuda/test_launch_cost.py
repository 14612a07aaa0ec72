"""What a launch costs the host beside the driver: instructions of ptcore's own libraries, which valgrind counts."""
import importlib.util
import shutil
import sys
from pathlib import Path

import pytest
from _recorded import held
from _since import since

PATH = Path(__file__).parents[2] / "tools" / "instructions.py"

pytest.importorskip("cuda.bindings")
pytestmark = [
    pytest.mark.skipif(not importlib.util.find_spec("ptcore.cuda._backend"), reason="built without the CUDA backend"),
    pytest.mark.skipif(not PATH.exists(), reason="needs the source tree"),
    since("cuda/host", "ptcore/cuda", "ptcore/_ops/call", "ptcore/_ops/include", "ptcore/autograd", "tests/cuda/host",
          "tests/cuda/test_launch_cost.py", "tools/instructions.py"),
    pytest.mark.skipif(not shutil.which("valgrind"), reason="valgrind is not installed"),
]

# Of one call on 8 x 8 numbers, as GCC 12 makes them for CPython 3.11; others differ by a few per cent.
COST = {"add": 4198, "add number": 4649, "add transposed": 7035, "relu": 3693, "sum": 3740, "softmax": 3402,
        "layer_norm": 10400, "cat": 4081, "backward": 57114}


@pytest.mark.timeout(600)
def test_instructions_of_a_launch():
    spec = importlib.util.spec_from_file_location("instructions", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found = module.counts(sys.executable, ["nothing", *COST], cuda=True)
    spent = {name: found[name] - found["nothing"] for name in COST}
    for name, n in spent.items():
        assert n > COST[name] / 2, f"{name}: hardly any instruction was counted"
        held(f"instructions of a launch: {name}", n, COST[name])
