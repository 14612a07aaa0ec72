"""A plugin for pytest: tests that were written for the CPU, with CUDA as the default device, on the stand-in driver.

    PYTHONPATH=tests/cuda python -P -m pytest -p _everywhere tests/nn/test_norms.py
    python tools/nightly.py --only cuda/everywhere              # all of them

What a test makes without naming a device, or of an array, is on the device; ``numpy()`` and ``__array__`` give copies,
so that a test compares as it stands. Each op waits, so that bad indices are raised where a test expects them, and
convolutions of float32 do not round to TF32.

Files of ELSEWHERE are about other things and are not collected, and tests of LEFT_OUT are not run. The tests of DIFFER
(of all parameters, or of those in brackets) fail: the run fails where all tests of an entry pass, so that the table
shrinks.
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

KERNELS = "kernels of the CPU are called by their address"
NAMED = "tensors are on the CPU by name"
ELSEWHERE = {
    "test_parity_*": "PyTorch's own tensors are on the CPU",
    "test_*_kernels.py": KERNELS, "test_blocks.py": KERNELS, "test_kernel_objects.py": KERNELS,
    "test_elementwise_runner.py": KERNELS, "test_scalar_*": KERNELS, "test_bool_memory.py": KERNELS,
    "test_pytorch_numbers.py": "PyTorch's random numbers are those of the CPU",
    "test_default_device.py": NAMED, "test_flex_attention.py": NAMED, "test_flex_random.py": NAMED,
    "test_stored_types.py": "casts of float8 and complex32 are refused (known limits)",
}

TEXTS = "the error has other words on a device, or there is none"
MEMORY = "the memory of a NumPy array is read or shared, which a device's is not"
PLACES = "the text or the place of a result names the CPU"
PYTHON = "a Python function gets single elements, which are those of the CPU"
ORDER = "what meets at one place is added in any order, or any of it stays (known limits)"
SUMS = "float32 sums on a device have an error of some 1e-7"
PARTS = "a graph of parts has the kernel's bits on the CPU alone"
HALVES = "a 0-d tensor of the device is of the half type first, as PyTorch's"
FAR = "norms of float64 beyond 1e154 are not scaled, as PyTorch's"
SLOPES = "the gradient of logcumsumexp is made of logarithms, which lose digits far from 0"
COMPLEX = "logcumsumexp of complex numbers is refused"
LDL = "ldl_factor of complex Hermitian matrices is refused (known limits)"
ZERO = "integers over 0 do not raise on a device, as PyTorch's"
INDICES = "the indices and targets of other integer types are refused by the kernel's words"
LIBRARY = "the stand-in of cuBLAS adds products in one chain"
SLOW = "it takes minutes on the stand-in, and is left out by its length"
DIFFER = {
    "autograd/test_inplace.py::test_14_other_refusals": MEMORY,
    "func/test_module_functions.py::test_ensembles": ORDER,
    "func/test_module_functions.py::test_gradients": ORDER,
    "func/test_module_functions.py::test_gradients_of_each_sample": ORDER,
    "func/test_module_functions.py::test_stacks_of_inputs": ORDER,
    "func/test_users_line.py::test_calls[leaked numpy]": "this plugin stands between",
    "func/test_vmap.py::test_memory_is_not_shown": TEXTS,
    "func/test_vmap.py::test_printing_shows_what_stands_behind": PLACES,
    "nn/test_bad_arguments.py::test_lengths_of_any_integer_dtype": "lengths lie on the CPU, as PyTorch's",
    "nn/test_bad_arguments.py::test_wrong_arguments[<lambda>-RuntimeError-targets must be on the device of log_probs, "
    "cpu, got meta]": PLACES,
    "nn/test_bad_inputs.py::test_modules": INDICES,
    "nn/test_running_statistics.py::test_a_graph_gives_the_same_bits": PARTS,
    "nn/test_running_statistics.py::test_a_graph_of_evaluation_gives_the_same_bits": PARTS,
    "nn/test_running_statistics.py::test_what_cannot_be_written": MEMORY,
    "ops/arithmetic/test_half_numbers.py::test_are_used_as_they_are": HALVES,
    "ops/arithmetic/test_half_numbers.py::test_gradients_beside_scalar_tensors": HALVES,
    "ops/arithmetic/test_half_numbers.py::test_the_roadmap_s_gradients": HALVES,
    "ops/creation/test_creation.py::test_a_call_that_is_bound_at_once_gives_what_the_others_do": PLACES,
    "ops/creation/test_creation.py::test_keywords_that_mean_nothing_here": TEXTS,
    "ops/fft/test_transforms.py::test_memory_is_not_exported": MEMORY,
    "ops/fft/test_transforms.py::test_nan_and_infinities": "the stand-in of cuFFT multiplies infinities by 0",
    "ops/index/test_indexing_mixes.py::test_errors": "a bad index of an empty result (known limits)",
    "ops/linalg/test_decompositions.py::test_errors_of_lu": "LU without pivots, which is on devices alone",
    "ops/linalg/test_decompositions.py::test_ldl": LDL,
    "ops/linalg/test_decompositions.py::test_pivots_of_strangers": TEXTS,
    "ops/linalg/test_small.py::test_bad_pivots_are_told": TEXTS,
    "ops/linalg/test_small.py::test_pivots_of_a_user": TEXTS,
    "ops/linalg/test_svd.py::test_bad_input": "drivers, which are on devices alone",
    "ops/norm/test_distances.py::test_every_order": ORDER,
    "ops/norm/test_distances.py::test_shapes_of_gradients": TEXTS,
    "ops/norm/test_far_norms.py::test_far_from_one[float64]": FAR,
    "ops/norm/test_far_norms.py::test_lines_of_zeros_beside_tiny_and_huge_ones": FAR,
    "ops/norm/test_far_norms.py::test_second_order": FAR,
    "ops/random/test_sampling.py::test_binomial_edges": TEXTS,
    "ops/reduction/test_sums_of_floats.py::test_gradients_of_weights_are_sums": SUMS,
    "ops/reduction/test_sums_of_floats.py::test_long_products": LIBRARY,
    "ops/reduction/test_sums_of_floats.py::test_sums_at_an_index": ORDER,
    "ops/reduction/test_sums_of_floats.py::test_sums_of_very_many": SUMS,
    "ops/scan/test_scan_gradients.py::test_logcumsumexp": SLOPES,
    "ops/statistics/test_sets_and_counts.py::test_errors": PYTHON,
    "ops/statistics/test_sets_and_counts.py::test_python_functions_of_elements": PYTHON,
    "ops/test_bad_numbers.py::test_divisors_that_become_zero": ZERO,
    "ops/test_batching.py::test_equals_a_loop[attention]": "the logarithm of a sum is kept in float32",
    "ops/test_batching.py::test_registered_op": PYTHON,
    "ops/test_errors.py::test_wrong_shapes_and_dtypes": INDICES,
    "ops/test_extremes.py::test_zero_divisor": ZERO,
    "ops/test_messages.py::test_messages[multilabel_margin]": "targets below -1 end the list, as on PyTorch's devices",
    "ops/test_forward.py::test_structured[logcumsumexp]": COMPLEX,
    "ops/test_forward_mode.py::test_complex[scan]": COMPLEX,
    "ops/test_forward_mode.py::test_registered_op": "a registered op has a kernel of the CPU",
    "ops/test_meta.py::test_metadata[scan]": COMPLEX,
    "ops/test_meta.py::test_mixed_devices": PLACES,
    "ops/test_promotion.py::test_python_numbers_are_weak[float16]": "casts of complex32 are refused (known limits)",
    "optim/test_steps.py::test_bad_calls": MEMORY,
    "optim/test_swa_utils.py::test_batch_statistics_are_means_over_batches": PLACES,
}
# Not run.
LEFT_OUT = {
    "ops/sort/test_order.py::test_quantiles_of_more_elements_than_float32_counts": SLOW,
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


def entry_of(item, table):
    name = item.nodeid.removeprefix("tests/")
    return next((key for key in (name, name.partition("[")[0]) if key in table), None)


def pytest_ignore_collect(collection_path):
    return any(collection_path.match(pattern) for pattern in ELSEWHERE) or None


def pytest_collection_modifyitems(config, items):
    """Without what kills and counts, which is about processes and the CPU's memory."""
    left_out = [item for item in items if item.get_closest_marker("alone") or item.get_closest_marker("counts") or
                entry_of(item, LEFT_OUT)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in {*left_out}]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item):
    report = yield
    key = entry_of(item, DIFFER)
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
