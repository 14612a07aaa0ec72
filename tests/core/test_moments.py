"""Ctrl-C at any moment of ``save``, ``load``, steps, hooks and contexts: no mode stays on, and no half file.

Each program of ``_moments.py`` is interrupted in a process of its own. More interrupts than the suite's:
``PTCORE_TEST_MOMENTS=1500`` (of all programs together, from the seed ``PTCORE_TEST_SEED``).
"""
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

PATH = Path(__file__).with_name("_moments.py")
NAMES = ("save .pt", "save .safetensors", "save .npz", "load .pt", "load .safetensors", "steps of SGD", "steps of Adam",
         "steps of LBFGS", "steps with a scaler", "hooks", "contexts", "decorators", "checkpoints", "transformations",
         "modules")
NUMBER = int(os.environ.get("PTCORE_TEST_MOMENTS", "300")) // len(NAMES)
SEED = os.environ.get("PTCORE_TEST_SEED", "0")

pytestmark = [pytest.mark.counts, pytest.mark.timeout(600),
              pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs timers of signals")]


@pytest.mark.parametrize("name", NAMES)
def test_interrupts(name):
    done = subprocess.run([sys.executable, "-P", PATH, name, str(NUMBER), SEED], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(done.stdout.split()[0]) >= NUMBER // 4
