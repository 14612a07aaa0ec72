"""Packages that were written for PyTorch run under the hook, where they are installed, and give PyTorch's losses.

Each program runs twice, with PyTorch and with ptcore, from the same weights on the same numbers.
"""
import importlib.util
import json
import os
import subprocess
import sys

import numpy as np
import pytest
from _more_programs import MORE
from _package_programs import LARGE, PREAMBLE, SMALL


def run(package, text, folder, *how):
    done = subprocess.run([sys.executable, "-P", *how, "-c", PREAMBLE + text], capture_output=True, text=True,
                          timeout=600, env={**os.environ, "PROGRAM_FOLDER": str(folder), "PYTHONWARNINGS": "ignore",
                                            "CUDA_VISIBLE_DEVICES": ""})
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("package", [*SMALL, *LARGE, *MORE])
def test_package(package, tmp_path):
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"needs {package}")
    pytest.importorskip("torch")
    text = {**SMALL, **LARGE, **MORE}[package]
    theirs = run(package, text, tmp_path)
    ours = run(package, text, tmp_path, "-m", "ptcore.compat.torch")
    assert len(ours) >= 10
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)
