"""Numbers inside and outside a dtype's range at every place that takes one: torch's values or torch's
class of error."""
import math

import pytest

import ptcore as pt

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.parity

DTYPES = ("bool", "uint8", "int8", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64")
VALUES = (0, 1, -1, 300, -300, 2**40, True, 2.7, -0.0, 70000.0, 1e30, 1e39, -1e39, math.inf, -math.inf,
          math.nan, 1 + 0j, 1j, 1e39j)


def mask(m):
    return m.tensor([True, False, True])


def written(x, key, value):
    x[key] = value
    return x


PLACES = {
    "fill_": lambda m, x, v: x.fill_(v),
    "full": lambda m, x, v: m.full((3,), v, dtype=x.dtype),
    "full_like": lambda m, x, v: m.full_like(x, v),
    "new_full": lambda m, x, v: x.new_full((2,), v),
    "masked_fill": lambda m, x, v: x.masked_fill(mask(m), v),
    "masked_fill_": lambda m, x, v: x.masked_fill_(mask(m), v),
    "masked_fill of a tensor": lambda m, x, v: x.masked_fill(mask(m), m.tensor(v, dtype=wide(m, v))),
    "x[0]": lambda m, x, v: written(x, 0, v),
    "x[:2]": lambda m, x, v: written(x, slice(2), v),
    "x[...]": lambda m, x, v: written(x, ..., v),
    "x[mask]": lambda m, x, v: written(x, mask(m), v),
    "x[[0, 2]]": lambda m, x, v: written(x, [0, 2], v),
    "scatter": lambda m, x, v: x.scatter(0, m.tensor([0]), v),
    "where": lambda m, x, v: m.where(mask(m), x, v),
    "where, first": lambda m, x, v: m.where(mask(m), v, x),
    "clamp": lambda m, x, v: x.clamp(max=v),
    "alpha": lambda m, x, v: m.add(x, x, alpha=v),
    "**": lambda m, x, v: x ** v,
    "linspace": lambda m, x, v: m.linspace(v, 0, 3, dtype=x.dtype),
}


def wide(m, value):
    return {bool: m.bool, int: m.int64, float: m.float64, complex: m.complex128}[type(value)]


def differs(place, dtype, value):
    """What is not compared: absent here, or of no defined value in torch."""
    floating = dtype in ("float16", "bfloat16", "float32", "float64")
    if isinstance(value, complex) and place in ("clamp", "alpha", "**", "linspace"):
        return True                     # some refuse every complex number, torch those with imag
    if place == "clamp" and (dtype in ("bool", "complex64") or value == 0):
        return True                     # whether 0.0 or -0.0 is the larger
    if place == "alpha":                # torch adds bool with alpha; here there is no such loop
        return value is True or dtype in ("bool", "float16", "bfloat16")
    if place == "**":                   # a half base and a larger exponent: torch refuses it
        return (dtype in ("bool", "float16", "bfloat16", "complex64")
                or (dtype not in ("float32", "float64") and not isinstance(value, int)))
    if place == "linspace":
        return not floating or value == 0
    return place.startswith("where") and isinstance(value, complex) and dtype == "float16"


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_numbers(place, dtype):
    for value in VALUES:
        if differs(place, dtype, value):
            continue
        results = []
        for m in (torch, pt):
            try:
                x = PLACES[place](m, m.zeros(3, dtype=getattr(m, dtype)), value)
                results.append((str(x.dtype).rpartition(".")[2], [repr(v) for v in x.tolist()]))
            except Exception as e:
                results.append(e)
        expected, got = results
        if isinstance(expected, Exception) or isinstance(got, Exception):
            assert isinstance(got, type(expected)), (value, expected, got)
        else:
            assert got == expected, value
