"""SciPy's and scikit-learn's functions of the array API take and return tensors, in processes of their own."""
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent


def walked(script, *arguments):
    done = subprocess.run([sys.executable, "-P", str(HERE / script), *arguments], capture_output=True, text=True,
                          env={**os.environ, "SCIPY_ARRAY_API": "1", "PYTHONPATH": str(HERE)})
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_scipy():
    """All but one: what SciPy 1.17.1 marks and cannot do with PyTorch's tensors either, as it reshapes what
    np.zeros_like has made (1.18 does not). What takes no array needs the fft extension."""
    scipy = pytest.importorskip("scipy", minversion="1.17")     # the first whose table says what is marked
    before_1_18 = tuple(int(part) for part in scipy.__version__.split(".")[:2]) < (1, 18)
    results = json.loads(walked("_scipy_walk.py"))
    assert len(results) > (500 if before_1_18 else 470)         # 1.18.1 marks fewer: 476
    expected = {"interpolate.PchipInterpolator"} if before_1_18 else set()
    wrong = {name: why for name, (_, why) in results.items() if why}
    assert set(wrong) == expected, "\n".join(f"{name}: {why}" for name, why in wrong.items())


def test_scipys_own_tests():
    """Of these modules; the nightly run takes all."""
    pytest.importorskip("scipy", minversion="1.17")
    pytest.importorskip("scipy.special.tests")
    done = subprocess.run(
        [sys.executable, "-P", "-m", "pytest", "-q", "-c", os.devnull, "-p", "no:cacheprovider", "-p", "_scipy_backend",
         "--tb=line", "--pyargs", *[f"scipy.{name}" for name in ("special", "linalg", "cluster", "differentiate")]],
        capture_output=True, text=True, cwd=HERE, env={**os.environ, "PYTHONPATH": str(HERE)})
    assert done.returncode == 0, done.stdout
    assert int(re.search(r"(\d+) passed", done.stdout)[1]) > 2000


def test_scikit_learn():
    pytest.importorskip("sklearn", minversion="1.9")
    results = json.loads(walked("_sklearn_walk.py"))
    assert len(results) > 150
    wrong = {name: why for name, why in results.items() if why}
    assert not wrong, "\n".join(f"{name}: {why}" for name, why in wrong.items())
