"""A plugin for pytest: tests that were written for the CPU, with CUDA as the default device, on the stand-in driver.

    PYTHONPATH=tests/cuda python -P -m pytest -p _everywhere tests/nn/test_norms.py
    python tools/nightly.py --only cuda/everywhere              # all folders of FOLDERS

What a test makes without naming a device, or of an array, is on the device; ``numpy()`` and ``__array__`` give copies,
so that a test compares as it stands. Each op waits, so that bad indices are raised where a test expects them, and
convolutions of float32 do not round to TF32.

Files of ELSEWHERE are about other things and are not collected. The tests of DIFFER (of all parameters, or of those in
brackets) must fail: the run fails where all tests of an entry pass, so that the table shrinks.
"""
import os
import sys
import tempfile
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE / "host"))

import load  # noqa: E402

os.environ["PTCORE_CUDA_LAUNCH_BLOCKING"] = "1"
DRIVER = load.load(os.environ.get("PTCORE_STANDIN_DIR") or Path(tempfile.gettempdir()) / "ptcore-standin")

import ptcore  # noqa: E402

FOLDERS = ("autograd", "distributions", "func", "nn", "ops", "optim")

KERNELS = "kernels of the CPU are called by their address"
NAMED = "tensors are on the CPU by name"
LONG = "every row in every dtype: test_device_ops.py draws of them"
ELSEWHERE = {
    "test_parity_*": "PyTorch's own tensors are on the CPU",
    "test_*_kernels.py": KERNELS, "test_blocks.py": KERNELS, "test_kernel_objects.py": KERNELS,
    "test_elementwise_runner.py": KERNELS, "test_scalar_*": KERNELS, "test_bool_memory.py": KERNELS,
    "test_pytorch_numbers.py": "PyTorch's random numbers are those of the CPU",
    "test_default_device.py": NAMED, "test_flex_attention.py": NAMED, "test_flex_random.py": NAMED,
    "test_stored_types.py": "casts of float8 and complex32 are refused (known limits)",
    "test_forward.py": LONG, "test_fuzz_calls.py": "the device's calls are drawn by test_device_ops.py",
}

TEXTS = "the error has other words on a device"
MEMORY = "the memory of a NumPy array is shared, which a device has not"
DEVICE = "the text or the place of a result names the CPU"
RESIZED = "resize_ of device memory is refused (known limits)"
PYTHON = "a Python function is called with elements, which are read on the CPU alone"
ORDER = "sums at an index are added in any order and precision (known limits)"
PARTS = "a graph of parts has the kernel's bits on the CPU alone"
HALVES = "a 0-d tensor on the device is of the half type first, as PyTorch's"
FAR = "float64 beyond 1e154 is not scaled, as in PyTorch"
LIBRARY = "cuBLAS and cuSOLVER add as they do"
DIFFER = {
}


# -- what tests make ----------------------------------------------------------------------------------

on_cpu, numpy_of, array_of = ptcore.from_numpy, ptcore.Tensor.numpy, ptcore.Tensor.__array__


def from_numpy(ndarray):
    """The array's values on the device, with its strides: a view of a copy of the memory that it lies in."""
    given = on_cpu(ndarray)
    if given.numel() == 0 or given.is_contiguous():
        return given.cuda()
    backwards = tuple(slice(None, None, -1 if step < 0 else 1) for step in given.stride())
    forwards = given[backwards]
    extent = 1 + sum((size - 1) * step for size, step in zip(forwards.shape, forwards.stride()))
    memory = forwards.as_strided((extent,), (1,)).cuda()
    return memory.as_strided(forwards.shape, forwards.stride(), 0)[backwards]


def numpy(self, *, force=False):
    return numpy_of(self.cpu() if self.is_cuda and not force else self, force=force)


def __array__(self, dtype=None, *, copy=None):
    return array_of(self.cpu() if self.is_cuda else self, dtype, copy=copy)


class OfAny(type):
    def __instancecheck__(cls, instance):
        return isinstance(instance, cls.__base__)


class Generator(ptcore.Generator, metaclass=OfAny):
    """Of the default device where none is given."""

    def __new__(cls, device=None):
        return cls.__base__("cuda" if device is None else device)


ptcore.Generator, ptcore.from_numpy = Generator, from_numpy
ptcore.Tensor.numpy, ptcore.Tensor.__array__ = numpy, __array__
ptcore.backends.cudnn.allow_tf32 = False
ptcore.set_default_device("cuda")


# -- which tests, and what becomes of them ------------------------------------------------------------

met, failed = set(), set()              # entries of DIFFER that had a test, and those that had one that failed


def entry_of(item):
    name = item.nodeid.removeprefix("tests/")
    return next((key for key in (name, name.partition("[")[0]) if key in DIFFER), None)


def pytest_ignore_collect(collection_path):
    return any(collection_path.match(pattern) for pattern in ELSEWHERE) or None


def pytest_collection_modifyitems(config, items):
    """Without what kills and counts, which is about processes and the CPU's memory."""
    left_out = [item for item in items if item.get_closest_marker("alone") or item.get_closest_marker("counts")]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in {*left_out}]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item):
    report = yield
    key = entry_of(item)
    if key is not None:
        met.add(key)
        if report.failed:
            failed.add(key)
            report.outcome, report.wasxfail = "skipped", f"reason: {DIFFER[key]}"
    return report


def pytest_sessionfinish(session, exitstatus):
    if met - failed and exitstatus == 0:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter):
    for key in sorted(met - failed):
        terminalreporter.write_line(f"every test of an entry of DIFFER passes, which has to go: {key}", red=True)
