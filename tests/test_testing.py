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


@pytest.mark.parametrize("longdouble", [np.longdouble, np.float64])
def test_integers_are_not_rounded(longdouble, monkeypatch):
    """With tolerances either, and where a longdouble holds no more than a float64."""
    monkeypatch.setattr(np, "longdouble", longdouble)
    for dtype, big in ((pt.int64, 2**62), (pt.uint64, 2**64 - 2), (pt.int64, -2**63)):
        one, other = (pt.tensor([big + k], dtype=dtype) for k in (0, 1))
        for a, b in ((one, other), (other, one)):
            with pytest.raises(AssertionError, match="not equal"):
                assert_close(a, b)
            with pytest.raises(AssertionError, match="not close"):
                assert_close(a, b, rtol=0, atol=0.5)
            assert_close(a, b, rtol=0, atol=1)
    ends = pt.tensor([-2**63, 2**63 - 1])
    with pytest.raises(AssertionError, match=r"Greatest absolute difference: 1\.8446744073709552e\+19"):
        assert_close(ends, ends.flip(0))


def test_python_integers_of_any_size():
    huge = 10**400
    assert_close(huge, huge)
    assert_close(huge, huge, rtol=1e-3, atol=0.0)
    assert_close(huge, huge + 10**396, rtol=1e-3, atol=0.0)
    for a, b, options in (
        (huge, huge + 10**398, {"rtol": 1e-3, "atol": 0.0}), (huge, 1, {"rtol": 1e-3, "atol": 0.0}),
        (2**60, 2**60 + 1, {"rtol": 0.0, "atol": 0.5}), (huge, 1.0, {"check_dtype": False}),
        (1, 2, {"rtol": math.nan, "atol": 0.0}),
    ):
        with pytest.raises(AssertionError, match="not close"):
            assert_close(a, b, **options)
    assert_close(1, huge, rtol=0.0, atol=math.inf)


def test_numpy_scalars_are_numbers():
    for value in (np.float64(1), np.float32(1)):
        assert_close(value, 1.0)
        assert_close(1.0, value)
        with pytest.raises(AssertionError, match=r"Expected 1\.5 but got 1\.0"):
            assert_close(value, 1.5)
    assert_close(np.bool_(True), True)
    assert_close([np.int8(3)], [3])
    assert_close(np.complex64(1j), 1j)
    with pytest.raises(AssertionError, match="types do not match"):
        assert_close(np.float64(1), 1)


def test_tensors_without_values():
    meta = pt.empty(2, 3, device="meta")
    assert_close(meta, meta.clone())
    with pytest.raises(AssertionError, match="'shape'"):
        assert_close(meta, meta.t())
    with pytest.raises(AssertionError, match="'device'"):
        assert_close(meta, pt.empty(2, 3))


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
    with pytest.raises(TypeError, match=r"one type, got Parameter and Tensor, for item \[0\]"):
        assert_close([pt.nn.Parameter(pt.ones(1))], (pt.ones(1),), allow_subclasses=False)
    assert_close(None, None)
    for a, b in ((None, 1), (1, None)):
        with pytest.raises(AssertionError, match=f"None mismatch: {a} is not {b}"):
            assert_close(a, b)
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
    with pytest.raises(ValueError, match=r"holds numbers in \[0, 256\), got low 256"):
        make_tensor(2, dtype=pt.uint8, low=256, high=300)
    with pytest.raises(ValueError, match=r"no integer lies in \[0\.2, 0\.8\)"):
        make_tensor(2, dtype=pt.int32, low=0.2, high=0.8)
    with pytest.raises(ValueError, match="low must be below high"):
        make_tensor(2, dtype=pt.float32, low=math.nan)


@pytest.mark.parametrize(("low", "high", "want"), [
    (0.5, 1.5, {1}), (-1.5, 0.5, {-1, 0}), (0.5, 2.5, {1, 2}), (1, 3, {1, 2})])
def test_whole_numbers_lie_between_the_bounds(low, high, want):
    found = make_tensor(300, dtype=pt.int16, low=low, high=high)
    assert set(found.tolist()) == want


@pytest.mark.parametrize("name", "bool uint8 int8 uint16 int16 uint32 int32 uint64 int64 float16 bfloat16 float32 "
                                 "float64 complex64 complex128".split())
@pytest.mark.parametrize(("low", "high"), [(-math.inf, math.inf), (-5, 3), (0, math.inf), (-1e300, 1)])
def test_values_stay_in_the_range_of_the_dtype(name, low, high):
    dtype = getattr(pt, name)
    values = make_tensor(500, dtype=dtype, low=low, high=high)
    if name == "bool":
        assert set(values.tolist()) == ({False, True} if high > 1 else {False})
        return
    parts = [values.real, values.imag] if dtype.is_complex else [values]
    limits = pt.finfo(dtype) if dtype.is_floating_point or dtype.is_complex else pt.iinfo(dtype)
    lowest, highest = max(low, limits.min), min(high, limits.max, 2**63 if name == "uint64" else math.inf)
    for part in parts:
        part = part.tolist()
        assert all(lowest <= x <= highest for x in part)
        # 500 draws come close to both ends: the chance of a miss is 0.9**500 for floats, less for few integers.
        assert min(part) <= lowest + 0.1 * (highest / 2 - lowest / 2) * 2
        assert max(part) >= highest - 0.1 * (highest / 2 - lowest / 2) * 2 - 1


def test_floats_lie_below_the_upper_bound():
    assert (make_tensor(200_000, dtype=pt.float16, low=0, high=1) < 1).all()
