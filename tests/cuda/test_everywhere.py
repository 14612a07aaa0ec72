"""The plugin that runs the CPU's tests with CUDA as the default device."""
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("cuda.bindings")

HERE = Path(__file__).resolve().parent
TESTS = '''
import numpy as np
import ptcore
import pytest

def test_tensors_are_on_the_device():
    a = np.arange(24.0).reshape(2, 3, 4)[:, ::-1, ::2]
    for x in (ptcore.ones(2), ptcore.tensor(a), ptcore.from_numpy(a), ptcore.nn.Linear(2, 3).weight):
        assert x.is_cuda
    assert ptcore.from_numpy(a).stride() == tuple(step // 8 for step in a.strides)
    np.testing.assert_array_equal(ptcore.from_numpy(a), a)
    np.testing.assert_array_equal(ptcore.from_numpy(a).numpy(), a)
    generator = ptcore.Generator()
    assert isinstance(generator, ptcore.Generator) and isinstance(ptcore.default_generator, ptcore.Generator)
    assert ptcore.rand(3, generator=generator).is_cuda

def test_bad_indices_are_raised_at_once():
    with pytest.raises(IndexError):
        ptcore.ones(3)[ptcore.tensor([7])]

@pytest.mark.parametrize("n", [1, 2])
def test_of_the_table(n):
    assert n == 1
'''


def run(folder, *entries):
    (folder / "of_plugin.py").write_text(TESTS)
    table = "".join(f"_everywhere.DIFFER[{entry!r}] = 'a reason'\n" for entry in entries)
    (folder / "conftest.py").write_text(f"import _everywhere\n{table}")
    done = subprocess.run([sys.executable, "-P", "-c", "import sys, pytest; sys.path.insert(0, sys.argv.pop(1)); "
                           "sys.exit(pytest.main(sys.argv[1:]))", str(HERE), "-q", "-p", "no:cacheprovider", "-p",
                           "_everywhere", "--rootdir", str(folder), str(folder / "of_plugin.py")],
                          capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.timeout(300)
def test_the_table_shrinks(tmp_path):
    code, text = run(tmp_path, "of_plugin.py::test_of_the_table")
    assert code == 0 and "3 passed, 1 xfailed" in text, text
    code, text = run(tmp_path, "of_plugin.py::test_of_the_table[1]", "of_plugin.py::test_of_the_table[2]")
    assert code == 1 and "has to go: of_plugin.py::test_of_the_table[1]" in text, text
    code, text = run(tmp_path)
    assert code == 1 and "1 failed, 3 passed" in text, text
