"""C functions of numbers (LowLevelCallable) as kernels."""
import ctypes

import numpy as np
import pytest
from scipy import LowLevelCallable, special
from scipy.special import cython_special

import ptcore as pt

pytestmark = pytest.mark.core
MATH = ctypes.CDLL(None)
_named = iter(range(1000))


def function(name, count, result=ctypes.c_double, kind=ctypes.c_double):
    f = ctypes.CFUNCTYPE(result, *[kind] * count)((name, MATH))
    return LowLevelCallable(f)


def registered(kernel, count):
    names = ["input", "other", "third"][:count]
    return pt.ops.register(f"scalar_kernel_{next(_named)}({', '.join(names)})", types=("float32", "float64"),
                           spec=lambda *args: (pt.broadcast_shapes(*[a.shape for a in args]), args[0].dtype),
                           kernels={"cpu": kernel})


def test_one_two_and_three_numbers(rng):
    x, y, z = (rng.random((3, 4)) for _ in range(3))
    for name, given in (("cbrt", (x,)), ("atan2", (x, y)), ("fma", (x, y, z))):
        f = registered(function(name, len(given)), len(given))
        wanted = {"cbrt": np.cbrt, "atan2": np.arctan2, "fma": lambda a, b, c: a * b + c}[name](*given)
        np.testing.assert_allclose(f(*map(pt.from_numpy, given)), wanted, rtol=1e-15)
    f = registered(LowLevelCallable.from_cython(cython_special, "gammaln"), 1)
    np.testing.assert_allclose(f(pt.from_numpy(x)), special.gammaln(x), rtol=1e-14)


def test_layouts_and_dtypes(rng):
    f, x = registered(function("atan2", 2), 2), pt.from_numpy(rng.random((4, 3)))
    for a, b in ((x.t(), x.t()[::-1]), (x, x[:1]), (x[:, :1], x[:1]), (x[:0], x[:0]), (x[0, 0], x[1, 1])):
        np.testing.assert_allclose(f(a, b), np.arctan2(a.numpy(), b.numpy()), rtol=1e-15)
    singles = x.float()
    found = f(singles, singles[:1])
    assert found.dtype == pt.float32
    np.testing.assert_allclose(found, np.arctan2(singles.numpy(), singles[:1].numpy()), rtol=1e-6)


@pytest.mark.parametrize("kernel", [
    lambda: function("cbrtf", 1, ctypes.c_float, ctypes.c_float), lambda: function("fma", 4),
    lambda: function("abs", 1, ctypes.c_int, ctypes.c_int)])
def test_functions_of_other_types_are_refused(kernel):
    with pytest.raises(TypeError, match=r"of one to three doubles, 'double \(double, ...\)'"):
        registered(kernel(), 1)


def test_as_many_numbers_as_tensors():
    f = registered(function("atan2", 2), 1)
    with pytest.raises(TypeError, match="the C function takes 2 numbers, and the op has 1 tensors"):
        f(pt.ones(2, dtype=pt.float64))


def test_complex_numbers_are_refused():
    f = pt.ops.register(f"scalar_kernel_{next(_named)}(input)", types=("complex128",),
                        spec=lambda x: (x.shape, x.dtype), kernels={"cpu": function("cbrt", 1)})
    with pytest.raises(TypeError, match="the C function takes real numbers, and a tensor has dtype complex128"):
        f(pt.ones(2, dtype=pt.complex128) * 1j)
