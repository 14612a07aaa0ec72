"""The tolerances of all comparisons with an oracle, by dtype, in one place.

``TOLERANCE[name] = (rtol, atol)`` for one op on values of order one: a few units in the last
place. ``ACCUMULATED`` is for results that sum up many rounded terms (products of matrices,
reductions, chains of ops). Integer and bool results are compared exactly.
"""
import numpy as np

TOLERANCE = {
    "float16": (2e-3, 1e-4), "bfloat16": (1.6e-2, 1e-3), "float32": (2e-6, 1e-7),
    "float64": (1e-13, 1e-14), "complex64": (4e-6, 1e-6), "complex128": (2e-13, 1e-14)}
ACCUMULATED = {
    "float16": (4e-3, 4e-3), "bfloat16": (3e-2, 3e-2), "float32": (1e-5, 1e-5),
    "float64": (1e-11, 1e-12), "complex64": (2e-5, 2e-5), "complex128": (1e-11, 1e-12)}


def assert_near(actual, expected, dtype, context="", table=TOLERANCE):
    """NumPy arrays equal in shape and, within the dtype's tolerance, in value; NaN is NaN."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.shape == expected.shape, (
        f"{context}: shape {actual.shape}, expected {expected.shape}")
    if dtype not in table:
        np.testing.assert_array_equal(actual, expected.astype(actual.dtype), err_msg=context)
        return
    rtol, atol = table[dtype]
    np.testing.assert_allclose(actual, expected, rtol=rtol, atol=atol, equal_nan=True,
                               err_msg=context)
