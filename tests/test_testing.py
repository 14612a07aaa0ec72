"""assert_close and make_tensor."""

import math

import numpy as np
import pytest

import ptcore as pt
from ptcore.testing import assert_close, make_tensor

pytestmark = pytest.mark.core

LIMITS = {
    "float16": (1e-3, 1e-5), "bfloat16": (1.6e-2, 1e-5), "float32": (1.3e-6, 1e-5),
    "float64": (1e-7, 1e-7), "complex64": (1.3e-6, 1e-5), "complex128": (1e-7, 1e-7),
}  # fmt: skip


@pytest.mark.parametrize("name", ["float32", "float64", "complex64", "complex128"])
def test_default_tolerances(name):
    rtol, atol = LIMITS[name]
    dtype = getattr(pt, name)
    for value in (0.0, 1.0, -1000.0):
        limit = atol + rtol * abs(value)
        expected = pt.tensor([value], dtype=dtype)
        assert_close(pt.tensor([value + 0.8 * limit], dtype=dtype), expected)
        with pytest.raises(AssertionError, match="not close"):
            assert_close(pt.tensor([value + 1.2 * limit], dtype=dtype), expected)


@pytest.mark.parametrize(
    ("name", "step"), [("float16", 2.0**-10), ("bfloat16", 2.0**-7)]
)
def test_half_tolerances(name, step):
    dtype = getattr(pt, name)
    one, near, far = (
        pt.tensor([v], dtype=dtype) for v in (1.0, 1 + step, 1 + 4 * step)
    )
    if step < LIMITS[name][0]:
        assert_close(near, one)
    with pytest.raises(AssertionError):
        assert_close(far, one)


def test_integers_are_compared_exactly():
    big = 2**62
    assert_close(pt.tensor([big]), pt.tensor([big]))
    with pytest.raises(AssertionError, match="not equal"):
        assert_close(pt.tensor([big]), pt.tensor([big + 1]))
    with pytest.raises(AssertionError, match="Scalars are not equal"):
        assert_close(big, big + 1)
    assert_close(pt.tensor([True]), pt.tensor([True]))


def test_message():
    with pytest.raises(AssertionError) as info:
        assert_close(pt.tensor([1.0, 3.0, 5.0]), pt.tensor([1.0, 2.0, 4.5]))
    assert str(info.value) == (
        "Tensor-likes are not close!\n\n"
        "Mismatched elements: 2 / 3 (66.7%)\n"
        "Greatest absolute difference: 1.0 at index (1,) (up to 1e-05 allowed)\n"
        "Greatest relative difference: 0.5 at index (1,) (up to 1.3e-06 allowed)"
    )
    with pytest.raises(AssertionError, match=r"Expected 2\.0 but got 1\.0"):
        assert_close(1.0, 2.0)
    with pytest.raises(AssertionError, match=r"^mine$"):
        assert_close(1.0, 2.0, msg="mine")
    with pytest.raises(AssertionError, match=r"^mine: Scalars"):
        assert_close(1.0, 2.0, msg=lambda text: f"mine: {text}")


def test_attributes():
    x = pt.ones(2, 3)
    for other, text in [
        (pt.ones(3, 2), "'shape' do not match"),
        (pt.ones(2, 3, dtype=pt.float64), "'dtype' do not match"),
    ]:
        with pytest.raises(AssertionError, match=text):
            assert_close(x, other)
    assert_close(x, x.double(), check_dtype=False)
    strided = pt.ones(3, 2).t()
    assert_close(x, strided)
    with pytest.raises(AssertionError, match="stride"):
        assert_close(x, strided, check_stride=True)


def test_nan_and_infinity():
    nan, inf = pt.tensor([math.nan]), pt.tensor([math.inf])
    for bad in (nan, -inf, pt.tensor([1.0])):
        with pytest.raises(AssertionError):
            assert_close(bad, inf)
    assert_close(inf, inf)
    with pytest.raises(AssertionError):
        assert_close(nan, nan)
    assert_close(nan, nan, equal_nan=True)
    assert_close(math.nan, math.nan, equal_nan=True)


def test_nesting_and_types():
    assert_close({"a": [pt.ones(1), 2]}, {"a": (pt.ones(1), 2)})
    with pytest.raises(AssertionError, match=r"occurred for item \['a'\]\[1\]"):
        assert_close({"a": [1, 2]}, {"a": [1, 3]})
    with pytest.raises(AssertionError, match=r"Missing keys.*'b'"):
        assert_close({"a": 1}, {"a": 1, "b": 2})
    with pytest.raises(
        AssertionError, match="length of the sequences mismatch: 1 != 2"
    ):
        assert_close([1], [1, 2])
    with pytest.raises(AssertionError, match="types do not match"):
        assert_close(1, 1.0)
    with pytest.raises(TypeError, match="No comparison pair"):
        assert_close("a", "a")
    with pytest.raises(TypeError, match="one type"):
        assert_close(pt.nn.Parameter(pt.ones(1)), pt.ones(1), allow_subclasses=False)
    with pytest.raises(ValueError, match="both be specified"):
        assert_close(1.0, 1.0, rtol=1)
    assert_close(np.ones(2), np.ones(2))


@pytest.mark.parametrize(
    "name", "bool uint8 int8 int64 float16 float32 complex64".split()
)
def test_make_tensor(name):
    dtype = getattr(pt, name)
    t = make_tensor(3, 40, dtype=dtype, noncontiguous=True)
    assert t.dtype == dtype
    assert t.shape == (3, 40)
    assert not t.is_contiguous()
    assert make_tensor(5, dtype=dtype, noncontiguous=True).stride() == (2,)
    for shape in ((0, 3), (3, 0), (0,), ()):
        assert make_tensor(shape, dtype=dtype, noncontiguous=True).shape == shape
    values = make_tensor((2000,), dtype=dtype).numpy()
    if name == "bool":
        assert set(values.tolist()) == {False, True}
        return
    parts = [values.real, values.imag] if name == "complex64" else [values]
    for part in parts:
        low = 0 if name == "uint8" else -9
        assert low <= part.min() < low + 1.5
        assert 7.5 < part.max() <= 9
    ones = make_tensor(100, dtype=dtype, low=0, high=2, exclude_zero=True).numpy()
    assert (ones != 0).all()


def test_make_tensor_arguments():
    assert make_tensor(2, dtype=pt.float64, requires_grad=True).requires_grad
    assert make_tensor((), dtype=pt.float32).shape == ()
    with pytest.raises(ValueError, match="low must be below high"):
        make_tensor(2, dtype=pt.float32, low=1, high=1)
    with pytest.raises(ValueError, match="requires_grad"):
        make_tensor(2, dtype=pt.int64, requires_grad=True)
