"""Arrays of every dtype and layout for the tests of kernels, and how near results must be."""

import numpy as np

from _kernels import Bfloat16, from_bfloat16, to_bfloat16

REAL = ["bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float16", "bfloat16", "float32", "float64"]
FLOAT = ["float16", "bfloat16", "float32", "float64"]
EPS = {"float16": 2e-3, "bfloat16": 1.6e-2, "float32": 3e-6, "float64": 1e-13, "complex64": 3e-6, "complex128": 1e-13}


def make(rng, shape, dtype):
    if dtype == "bool":
        return np.asarray(rng.random(shape) < 0.5)
    if dtype == "bfloat16":
        return to_bfloat16(rng.normal(size=shape))
    kind = np.dtype(dtype).kind
    if kind in "iu":
        return np.asarray(rng.integers(0 if kind == "u" else -50, 50, shape), dtype)
    if kind == "c":
        return np.asarray(rng.normal(size=shape) + 1j * rng.normal(size=shape), dtype)
    return np.asarray(rng.normal(size=shape), dtype)


def wide(x):
    if isinstance(x, Bfloat16):
        return from_bfloat16(x).astype(np.float64)
    return x.astype({"f": np.float64, "c": np.complex128}.get(x.dtype.kind, x.dtype))


def layouts(x):
    """The same kind of data in every layout a kernel may meet."""
    yield x
    yield x.transpose(tuple(range(x.ndim))[::-1])
    if x.ndim:
        yield x[..., ::2]
        yield x[::-1]
        yield x[..., ::-1]
        yield np.lib.stride_tricks.as_strided(x, x.shape, (0, *x.strides[1:])).view(type(x))
    if x.ndim > 2:
        yield np.swapaxes(x, 0, 1)
        yield x[:, 1:, ::-2]


ALL = ["bool", "uint8", "int16", "int32", "int64", "uint64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128"]


def same(got, want):
    """Equal bit for bit, whatever the dtype."""
    assert got.shape == want.shape
    assert np.ascontiguousarray(got).tobytes() == np.ascontiguousarray(want).tobytes()


def close(got, want, dtype):
    if dtype in EPS:
        np.testing.assert_allclose(wide(got), want, rtol=4 * EPS[dtype], atol=8 * EPS[dtype])
    else:
        np.testing.assert_array_equal(got, want.astype(got.dtype))


def nonempty(x):
    """Layouts with elements in them."""
    return (y for y in layouts(x) if y.size)


def near(got, want, dtype, factor=4.0):
    scale = 1 + np.abs(want).max(initial=0)
    np.testing.assert_allclose(wide(got).reshape(want.shape), want, rtol=factor * EPS[dtype], atol=factor * EPS[dtype] * scale)
