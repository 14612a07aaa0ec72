"""ptcore.signal.windows against scipy.signal.windows; dtypes, devices, the checks of arguments."""
import numpy as np
import pytest
import scipy.signal.windows

import ptcore
from ptcore.signal import windows

pytestmark = pytest.mark.core

PARAMETERS = {
    "bartlett": [{}], "blackman": [{}], "cosine": [{}], "hamming": [{}], "hann": [{}], "nuttall": [{}],
    "exponential": [{}, {"tau": 0.5}, {"tau": 7}], "gaussian": [{}, {"std": 0.5}, {"std": 9}],
    "general_cosine": [{"a": [0.46, 0.23, 0.31]}, {"a": (1,)}, {"a": [0.2, 0.8]}],
    "general_hamming": [{}, {"alpha": 0.3}], "kaiser": [{}, {"beta": 0}, {"beta": 3.5}, {"beta": 40}]}
DEFAULTS = {"gaussian": {"std": 1.0}, "general_hamming": {"alpha": 0.54}, "kaiser": {"beta": 12.0}}


def expected(name, M, sym, keywords):
    """What SciPy gives; a window of one element is 1 there as well."""
    return getattr(scipy.signal.windows, name)(M, sym=sym, **{**DEFAULTS.get(name, {}), **keywords})


def test_all_are_here():
    assert sorted(PARAMETERS) == sorted(windows.__all__)


@pytest.mark.parametrize("name", PARAMETERS)
def test_values(name):
    for keywords in PARAMETERS[name]:
        for M in (0, 1, 2, 3, 8, 51):
            for sym in (True, False):
                for dtype, eps in (("float32", 1e-6), ("float64", 1e-13)):
                    got = getattr(windows, name)(M, sym=sym, dtype=getattr(ptcore, dtype), **keywords).numpy()
                    assert got.dtype == dtype
                    assert got.shape == (M,)
                    np.testing.assert_allclose(got, expected(name, M, sym, keywords), rtol=eps * 3, atol=eps)


@pytest.mark.parametrize("name", PARAMETERS)
def test_where_and_of_what(name):
    f, keywords = getattr(windows, name), PARAMETERS[name][0]
    ptcore.set_default_dtype(ptcore.float64)
    assert f(4, **keywords).dtype is ptcore.float64
    w = f(4, dtype=ptcore.float32, requires_grad=True, **keywords)
    assert w.requires_grad
    assert w.is_leaf
    assert f(4, device="meta", **keywords).device.type == "meta"
    with pytest.raises(ValueError, match=f"{name}: M must not be negative, got -1"):
        f(-1, **keywords)
    with pytest.raises(TypeError, match=f"{name}: M must be int, got float"):
        f(3.0, **keywords)
    for dtype in (ptcore.float16, ptcore.int64, ptcore.complex64):
        with pytest.raises(ValueError, match=f"{name}: dtype must be float32 or float64, got {dtype.name}"):
            f(3, dtype=dtype, **keywords)
    with pytest.raises(TypeError):
        f(3, True)                      # all but M by name


def test_exponential_with_a_centre():
    got = windows.exponential(6, center=1, tau=2.0, sym=False, dtype=ptcore.float64)
    np.testing.assert_allclose(got.numpy(), scipy.signal.windows.exponential(6, 1, 2.0, False), rtol=1e-14)
    with pytest.raises(ValueError, match="center must be None for a symmetric window"):
        windows.exponential(6, center=1)


@pytest.mark.parametrize(("call", "error", "text"), [
    (lambda: windows.exponential(3, tau=0), ValueError, "exponential: tau must be positive, got 0"),
    (lambda: windows.exponential(3, tau=float("nan")), ValueError, "tau must be positive, got nan"),
    (lambda: windows.gaussian(3, std=-1), ValueError, "gaussian: std must be positive, got -1"),
    (lambda: windows.kaiser(3, beta=-1), ValueError, "kaiser: beta must not be negative, got -1"),
    (lambda: windows.general_cosine(3, a=2), TypeError, "general_cosine: a must be a sequence of numbers, got int"),
    (lambda: windows.general_cosine(3, a=[]), ValueError, "general_cosine: a must not be empty"),
    (lambda: windows.general_cosine(3), TypeError, "a"),
])
def test_errors(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_windows_of_the_package_are_the_same():
    for name in ("hann", "hamming", "blackman", "bartlett", "kaiser"):
        for periodic in (True, False):
            old = getattr(ptcore, f"{name}_window")(9, periodic, dtype=ptcore.float64)
            assert ptcore.equal(old, getattr(windows, name)(9, sym=not periodic, dtype=ptcore.float64))


@pytest.mark.parametrize(("call", "text"), [
    (lambda x: ptcore.hamming_window(4, True, x), "hamming_window: alpha must be float"),
    (lambda x: ptcore.hamming_window(4, True, 0.5, x), "hamming_window: beta must be float"),
    (lambda x: ptcore.kaiser_window(4, True, x), "kaiser_window: beta must be float")])
@pytest.mark.parametrize("wrong", ["a", None, 1j, [1.0]])
def test_parameters_of_the_packages_windows_are_numbers(call, text, wrong):
    with pytest.raises(TypeError, match=text):
        call(wrong)
