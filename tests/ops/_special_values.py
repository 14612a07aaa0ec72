"""Numbers at the edges of each dtype, and the comparison in which they count.

``special_values(dtype)`` holds NaN, infinities, both zeros, denormals, the smallest normal and the
largest number, and the extremes of integers. ``assert_exact`` wants NaN, infinities and the signs
of zeros in the same places, and elsewhere a relative tolerance down to the denormals: no
absolute one, which would hide a lost tiny number.
"""
import numpy as np
from _cases import INTEGERS, rounded

DENORMAL = {"float16": 2.0**-24, "bfloat16": 2.0**-133, "float32": 2.0**-149, "float64": 2.0**-1074}
SMALLEST = {"float16": 2.0**-14, "bfloat16": 2.0**-126, "float32": 2.0**-126, "float64": 2.0**-1022}
LARGEST = {"float16": 65504.0, "bfloat16": (2 - 2.0**-7) * 2.0**127,
           "float32": float(np.finfo("f4").max), "float64": float(np.finfo("f8").max)}
EPSILON = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52}
REAL_OF = {"complex64": "float32", "complex128": "float64"}
ORDINARY = [1, -1, 0.5, -0.5, 2, -2, 3, -3, 1.5, -2.5, 100, -100, 1e4, -1e4]


def special_values(dtype, few=False):
    """An array of them in NumPy's dtype of that name (bfloat16: float32); ``few`` for crosses of three."""
    if dtype == "bool":
        return np.array([False, True])
    if dtype in INTEGERS:
        info = np.iinfo(dtype)
        values = [info.min, info.min + 1, 0, 1, 2, 3, 7, info.max // 2, info.max - 1, info.max]
        return np.array(values + ([-1, -2, -3] if info.min else []), dtype)
    if dtype in REAL_OF:
        parts = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.5]
        return np.array([complex(a, b) for a in parts for b in parts], dtype)
    values = [np.nan, np.inf, -np.inf, 0.0, -0.0, DENORMAL[dtype], -DENORMAL[dtype], SMALLEST[dtype],
              -SMALLEST[dtype], LARGEST[dtype], -LARGEST[dtype], 1.0, -1.0]
    if not few:
        values += [EPSILON[dtype], 1 + EPSILON[dtype], *ORDINARY]
    return rounded(np.array(values), dtype)


def assert_exact(got, want, dtype, rtol, context, zeros=True):
    """got, of a dtype, is the double-precision want rounded to it."""
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape, f"{context}: shape {got.shape}, expected {want.shape}"
    if dtype in REAL_OF:
        want = want.astype("complex128")
        assert_exact(got.real, want.real, REAL_OF[dtype], rtol, context + " real", zeros)
        assert_exact(got.imag, want.imag, REAL_OF[dtype], rtol, context + " imaginary", zeros)
        return
    with np.errstate(all="ignore"):
        if dtype not in DENORMAL:
            np.testing.assert_array_equal(got, want.astype(got.dtype), err_msg=context)
            return
        want, got = rounded(want, dtype).astype(float), got.astype(float)
        wrong = np.isnan(got) != np.isnan(want)
        wrong |= (np.isinf(got) | np.isinf(want)) & (got != want) & ~np.isnan(want)
        if zeros:
            wrong |= (got == 0) & (want == 0) & (np.signbit(got) != np.signbit(want))
        wrong |= (np.isfinite(got) & np.isfinite(want)
                  & (np.abs(got - want) > rtol * np.abs(want) + 2 * DENORMAL[dtype]))
    assert not wrong.any(), f"{context}: {wrong.sum()} wrong, first got {got[wrong][0]!r}, expected {want[wrong][0]!r}"
