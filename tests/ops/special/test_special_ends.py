"""Special functions over all of special_values: NaN, infinities, denormals, the smallest and largest numbers of every
dtype, in every layout, as tensors and as Python numbers. SciPy loses digits or has no value there, unlike
_special_oracle.py."""
import functools

import numpy as np
import pytest
from _cases import INTEGERS, ROWS, array, function, tensor
from _draw import drawn
from _special_oracle import COVERED, ONE, POLYNOMIALS, inf, mp, nan, number, polynomial, zeta
from _special_values import DENORMAL, special_values
from _tolerance import TOLERANCE

import ptcore as pt

FLOATS = ["float16", "bfloat16", "float32", "float64"]
DTYPES = [*FLOATS, "bool", *INTEGERS]
WHOLE = ["float32", "float64"]
LAYOUTS = ["contiguous", "sliced", "reversed"]


def values_of(dtype):
    """The special values and what they are as numbers of the dtype that is computed in."""
    values = special_values(dtype)
    return values, (values if dtype in FLOATS else values.astype("float32")).astype(float).tolist()


def compare(got, want, lost, dtype, context):
    got = array(got).astype(float)
    with np.errstate(all="ignore"):
        want = array(pt.from_numpy(want).to(getattr(pt, dtype))).astype(float)
        near = np.abs(got - want) <= TOLERANCE[dtype][0] * np.abs(want) + lost + 2 * DENORMAL[dtype]
    wrong = ~(near & np.isfinite(got) | (got == want) | np.isnan(got) & np.isnan(want))
    assert not wrong.any(), f"{context}: {[(int(k), got[k], want[k]) for k in np.flatnonzero(wrong)][:8]}"


@functools.cache
def of_one(name, dtype):
    """Values, and what they may be off beside their own rounding."""
    value, size, low, high, *more = ONE[name]
    computed = dtype if dtype in FLOATS else "float32"
    want, lost = [], []
    for x in values_of(dtype)[1]:
        if not np.isfinite(x):
            want.append(low if x == -inf else high if x == inf else nan)
            lost.append(0)
            continue
        with mp.workdps(600 if abs(x) > 1000 else 50):
            x = mp.mpf(x)
            want.append(number(value(x)))
            lost.append(TOLERANCE[computed][0] * number(size(x)) + sum(number(f(x)) for f in more))
    return np.array(want, float), np.array(lost, float)


def of(names):
    """Each name in float32 and float64, and drawn ones in the other dtypes."""
    further = drawn([(name, dtype) for name in names for dtype in DTYPES if dtype not in WHOLE], "-".join)
    return [(name, dtype) for name in names for dtype in WHOLE] + further


@pytest.mark.parametrize(("name", "dtype"), of(ONE))
def test_of_one(name, dtype):
    x, more = values_of(dtype)[0], [2.0] if name.endswith("_of") else []
    times = 131 // len(x) + 1                   # 131 is odd: body and tail of every vector width
    want, lost = (np.tile(v, times)[:131] for v in of_one(name, dtype))
    for layout in LAYOUTS:
        got = function(ROWS[name])(tensor(np.tile(x, times)[:131], dtype, layout), *more)
        compare(got, want, lost, got.dtype.name, f"{name} {dtype} {layout}")


@functools.cache
def of_two(name, dtype):
    """The same for all pairs, in the order of meshgrid."""
    values = values_of(dtype)[1]
    if name == "zeta":
        with mp.workdps(50):
            found = [(number(zeta(mp.mpf(a), mp.mpf(b))), 0) for b in values for a in values]
    else:
        pairs = polynomial(name, values, dtype == "float64")
        found = [pairs[b, a] for b in values for a in values]
    return [np.array(v, float) for v in zip(*found)]


@pytest.mark.parametrize(("name", "dtype"), of(["zeta", *POLYNOMIALS]))
def test_of_two(name, dtype):
    values = values_of(dtype)[0]
    x, y = (g.reshape(-1) for g in np.meshgrid(values, values))
    f, more = function(ROWS[name]), POLYNOMIALS[name][3:] if name in POLYNOMIALS else ()
    for layout in LAYOUTS:
        got = f(tensor(x, dtype, layout), tensor(y, dtype, layout), *more)
        compare(got, *of_two(name, dtype), got.dtype.name, f"{name} {dtype} {layout}")
    if not more:                                # a number in the place of a tensor, on either side
        square = array(got).reshape(len(values), len(values))
        for k, number_ in enumerate(values.tolist()):
            np.testing.assert_array_equal(array(f(tensor(values, dtype), number_)), square[k])
            np.testing.assert_array_equal(array(f(number_, tensor(values, dtype))), square[:, k])


def test_every_function_of_doubles_is_here():
    assert COVERED >= {n for n in ROWS if "polynomial_" in n or "bessel" in n or n.startswith("airy")}


FAR = [1.0, 20.0, 26.0, 26.5, 100.0, 999.0, 1001.0, 5e4]


@pytest.mark.parametrize("name, function", [
    ("i0e", lambda t: mp.besseli(0, t) * mp.exp(-abs(t))), ("i1e", lambda t: mp.besseli(1, t) * mp.exp(-abs(t))),
    ("erfcx", lambda t: mp.exp(t * t) * mp.erfc(t)),
])
def test_derivatives_far_out(name, function):
    """Where they are differences of nearly equal numbers, another formula gives them."""
    signs = (1,) if name == "erfcx" else (1, -1)
    points = [sign * x for sign in signs for x in FAR]
    ends = [sign * inf for sign in signs]
    x = pt.tensor(points + ends, dtype=pt.float64, requires_grad=True)
    first, = pt.autograd.grad(getattr(pt.special, name)(x).sum(), x, create_graph=True)
    second, = pt.autograd.grad(first.sum(), x)
    first, second = first.tolist(), second.tolist()
    with mp.workdps(60):
        for k, point in enumerate(points):
            at = mp.mpf(point)
            for n, got, rtol in ((1, first[k], 1e-11), (2, second[k], 1e-7)):
                want = mp.diff(function, at, n, h=abs(at) * mp.mpf(10) ** -12)
                assert abs(got - want) <= rtol * abs(want), (name, n, point, got, want)
    assert first[len(points):] == second[len(points):] == [0.0] * len(ends)
