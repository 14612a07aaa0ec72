"""Every elementwise row at the edges of its dtypes: NaN, infinities, signed zeros, denormals, the
largest and smallest numbers, integer extremes; all combinations of them over all operands.

Lengths are such that every value comes to lie in the body of a vector loop and in its tail.
Where PyTorch's documented value is not NumPy's, the reference below says so. What SciPy has no value for is in
test_special_ends.py.
"""
import numpy as np
import pytest
from _cases import ELEMENTWISE, PARAMETERS, ROWS, array, dtypes, function, run_args, tensor, widened
from _references import evaluate
from _special_oracle import COVERED
from _special_values import EPSILON, ORDINARY, assert_exact, special_values
from _tolerance import ACCUMULATED, TOLERANCE
from _walk import walk
from scipy import special

import ptcore

pytestmark = pytest.mark.core

INTEGER = ptcore._ops.table.schema.INTEGRAL
CHAINED = {"gelu_tanh_grad", "gelu_erf_grad", "pow", "tan", "gelu", "gelu_tanh", "silu", "igamma", "igammac"}


def floored(x, y):
    """The remainder of floats is fmod with y added where the signs differ; a zero has y's sign, as NumPy's has."""
    r = np.fmod(x, y)
    r = np.where(r == 0, np.copysign(0, y), r)
    return np.where((r != 0) & (r == r) & ((r < 0) != (y < 0)), np.where(np.isinf(y), y, np.remainder(x, y)), r)


def truncated(x, y):
    """C's quotient, wrapping at the lowest integer over -1; trunc(x / y) would go through float64."""
    if x.dtype.kind in "iu":
        q = x // y
        return np.where((x % y != 0) & ((x < 0) != (y < 0)), q + x.dtype.type(1), q)
    return np.trunc(x / y)


OWN = {
    "sign": lambda x: np.where(np.isnan(x), 0, np.sign(x)) if x.dtype.kind == "f" else
            x if x.dtype == bool else np.sign(x),       # torch.sign(nan) is 0
    "relu": lambda x: np.where(x < 0, x.dtype.type(0), x),              # torch.relu(-0.) is -0.
    "round": lambda x: x if x.dtype.kind in "iu" else np.round(x),
    "remainder": lambda x, y: np.remainder(x, y) if x.dtype.kind in "iu" else floored(x, y),
    "trunc_divide": truncated,
}
OWN["sgn"] = OWN["sign"]
OWN["lgamma"] = lambda x: np.where((np.floor(x) == x) & (x <= 0), np.inf, np.where(
    np.abs(x) < 1e-300, -np.log(np.abs(x)), special.gammaln(x)))
OWN["angle"] = lambda x: np.where(np.isnan(x), x, np.where(x < 0, np.pi, 0.0))      # of -0. it is 0, as in PyTorch
OWN["i0"] = lambda x: np.where(np.isinf(x), np.inf, special.i0(x))                     # SciPy and PyTorch: NaN
OWN["i1"] = lambda x: np.where(np.isinf(x), x, special.i1(x))
OWN["lerp"] = lambda x, y, w: np.where(np.abs(w) < 0.5, x + w * (y - x), y - (y - x) * (1 - w))
# Complex values that C leaves open (Annex G) or that differ between formulas: finite ones only.
FINITE = {"pow", "sigmoid", "sgn", "div", "reciprocal", "rsqrt", "tanh", "mul", "square", "sqrt", "exp", "sin", "cos",
          "tan", "log", "abs", "exp2", "expm1", "log2", "log10", "log1p", "asin", "acos", "atan", "sinh", "cosh",
          "asinh",
          "acosh", "atanh", "addcmul", "addcdiv", "angle"}
# The fused product-sum neither rounds nor overflows between its two steps.
FUSED = {"add_scaled", "sub_scaled", "addcmul", "addcdiv", "lerp", "cross_entropy_of_bits", "cross_entropy_of_logits"}


def permitted(row, divisor):
    """Which integers the row takes on the right."""
    return divisor != 0 if row.integers == "nonzero" else divisor >= (0 if row.integers == "nonnegative" else divisor)


def drawn(row, dtype):
    """Flat arrays for the row's arguments, parameters as they are."""
    args = run_args(row)
    count = sum(a.is_tensor for a in args)
    values = special_values(dtype, few=count > 2)
    if dtype.startswith("complex") and row.name in FINITE:
        values = values[np.isfinite(values)]
    if dtype not in INTEGER and row.name in FUSED:
        values = values[~(np.abs(values) > 1e30)] if dtype.startswith("complex") else special_values(dtype, few=True)
        values = values[~(np.isfinite(values) & (np.abs(values) > 1))]
    if row.name == "lgamma":            # SciPy rounds beside its zeros
        values = values[(values == 1) | ~(np.abs(values - 1) < 1e-6)]
    if row.name == "addcdiv":           # the quotient overflows on the way
        values = values[~((np.abs(values) < 1e-30) & (values != 0))]
    if row.name == "tanhshrink":        # cancels near 0, as in PyTorch
        values = values[~(np.abs(values) < 0.5) | (values == 0)]
    if row.name in ("igamma", "igammac"):       # SciPy has 0 for the lower one of denormal exponents, which is 1
        size = np.abs(values.astype(float))
        values = values[~((size < 1e-300) & (values != 0) | (size > 1e300) & np.isfinite(values))]
    if row.name == "polygamma_of":      # SciPy has no value left of 0
        values = values[~(values <= 0)]
    if row.name in ("silu", "mish", "gated"):    # x times a denormal that has lost its digits
        values = values[values != -100]
    if row.name == "pow" and dtype.startswith("complex"):
        values = values[values != 0]
    if count > 3:
        values = values[:5]
    grid = [g.reshape(-1) for g in np.meshgrid(*[values] * count, indexing="ij")]
    if count == 1:                      # 131 is odd: body and tail of every vector width
        grid = [np.tile(values, 131 // len(values) + 1)[:131]]
    if dtype in INTEGER:
        keep = permitted(row, grid[-1])
        grid = [g[keep] for g in grid]
    grid, made = iter(grid), []
    for i, a in enumerate(args):
        if not a.is_tensor:
            made.append({"alpha": 2}.get(a.name, PARAMETERS.get((row.name, a.name), a.default)))
        else:
            data = next(grid)
            made.append(data != 0 if a.letter == "I" or (row.promote == "where" and i == 0) else data)
    return args, made


def reference(row, args, values, dtype):
    # the neighbours of float32 are not those of float64
    wide = [v if row.name == "nextafter_of" else widened(v, dtype) for v in values]
    if row.promote == "float":          # PyTorch computes integers in the default float dtype
        wide = [v.astype("float32").astype(float) if isinstance(v, np.ndarray) and v.dtype.kind in "biu" else v
                for v in wide]
    if row.name in OWN and not dtype.startswith("complex"):
        with np.errstate(all="ignore"):
            return OWN[row.name](*[w for w, a in zip(wide, args) if a.is_tensor])
    return evaluate(row.reference, "".join(a.letter for a in args), [a.name for a in args], wide)


def compare(row, got, want, dtype, context):
    name = got.dtype.name
    rtol = (ACCUMULATED if row.name in CHAINED else TOLERANCE).get(name, (0, 0))[0]
    if row.name in ("gelu", "silu", "gelu_tanh") and name != "float64":
        rtol = max(rtol, 1e-4)          # 1 + erf(x) cancels, PyTorch's formula too
    assert_exact(array(got), want, name, rtol, context, zeros=not dtype.startswith("complex") and row.name not in FUSED)


@walk(("row", "dtype"), [
    pytest.param(r, d, id=f"{r.name}-{d}") for r in ELEMENTWISE
    if r.name not in ("assign", "sinc") and r.name not in COVERED for d in dtypes(r)])
def test_elementwise(row, dtype):
    args, values = drawn(row, dtype)
    want = reference(row, args, values, dtype)
    for layout in ("contiguous", "sliced", "reversed"):
        made = [tensor(v, "bool" if v.dtype == bool else dtype, layout) if isinstance(v, np.ndarray) else v
                for v in values]
        positional = [v for v, a in zip(made, args) if not a.keyword_only]
        keyword = {a.name: v for v, a in zip(made, args) if a.keyword_only}
        compare(row, function(row)(*positional, **keyword), want, dtype, f"{row.name} {dtype} {layout}")


@walk(("row", "dtype"), [
    pytest.param(r, d, id=f"{r.name}-{d}") for r in ELEMENTWISE
    if len(r.tensors) == 2 and not r.internal and all(a.letter == "T" for a in r.tensors)
    and r.name not in FUSED and r.name not in COVERED
    and r.name not in ("igamma", "igammac")     # of what SciPy has no value for
    for d in r.types if d in INTEGER or d in ("float32", "float64", "float16")])
def test_python_scalars(row, dtype):
    """A Python number on either side, in the loops that take it as one."""
    args, (x, _) = drawn(row, dtype)
    x = np.unique(x)
    if dtype not in INTEGER:
        x = special_values(dtype)
    odd = np.tile(x, 67 // len(x) + 1)[:67]
    for number in special_values(dtype).tolist():
        if dtype in INTEGER and not permitted(row, number):
            continue
        full = np.full_like(odd, number)
        got = function(row)(tensor(odd, dtype), number)
        compare(row, got, reference(row, args, [odd, full], dtype), dtype, f"{row.name} {dtype} {number!r}")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_sinc(dtype):
    """The rounding of pi x leaves an absolute error: the result of a large whole number is no zero, in PyTorch too."""
    x = np.tile(special_values(dtype), 3)[:131]
    got = array(ptcore.sinc(tensor(x, dtype))).astype(float)
    x = x.astype(float)
    with np.errstate(all="ignore"):
        want = np.where(x == 0, 1, np.sin(np.pi * np.fmod(x, 2)) / np.pi / x)   # fmod is exact
        compute = np.float64 if dtype == "float64" else np.float32
        want[np.isinf(x.astype(compute) * compute(np.pi))] = np.nan             # as in PyTorch
    assert (np.isnan(got) == np.isnan(want)).all()
    finite = np.isfinite(want)
    within = TOLERANCE[dtype][0] * np.abs(want) + 4 * EPSILON["float64" if dtype == "float64" else "float32"]
    assert (np.abs(got - want)[finite] <= within[finite]).all()
    assert (got[x == 0] == 1).all()


@pytest.mark.parametrize("dtype", [d for d in INTEGER if not d.startswith("u")])
def test_lowest_integer(dtype):
    """It has no positive counterpart: PyTorch wraps, nothing traps (the processor's division would)."""
    info = np.iinfo(dtype)
    for n in (1, 3, 67):
        x = tensor(np.full(n, info.min, dtype), dtype)
        minus_one = tensor(np.full(n, -1, dtype), dtype)
        for divisor in (minus_one, -1, minus_one[:1]):
            assert (x // divisor == info.min).all()
            assert (ptcore.div(x, divisor, rounding_mode="trunc") == info.min).all()
            assert (x % divisor == 0).all()
            assert (ptcore.fmod(x, divisor) == 0).all()
        assert (abs(x) == info.min).all()
        assert (-x == info.min).all()
        assert (x * -1 == info.min).all()
        assert (x - 1 == info.max).all()
        assert (x.square() == 0).all()
        assert (x ** 2 == 0).all()
        assert (x.clone().abs_() == info.min).all()


@pytest.mark.parametrize("dtype", INTEGER)
def test_zero_divisor(dtype):
    """An error of both families, as one of the elements of a long divisor and as a number."""
    x = tensor(np.arange(1, 68).astype(dtype), dtype)
    y = x.clone()
    y[66] = 0
    calls = [lambda d: x // d, lambda d: x % d, lambda d: ptcore.fmod(x, d),
             lambda d: ptcore.div(x, d, rounding_mode="trunc"), lambda d: ptcore.div(x, d, rounding_mode="floor"),
             lambda d: x.clone().remainder_(d), lambda d: x.clone().floor_divide_(d), lambda d: 5 // d, lambda d: 5 % d]
    for divisor in (y, 0, y[66], y[::-1]):
        for call in calls[:-2] if isinstance(divisor, int) else calls:
            with pytest.raises(ZeroDivisionError, match="integer division by zero"):
                call(divisor)
            with pytest.raises(RuntimeError):
                call(divisor)
    assert (x[:0] // y[:0]).shape == (0,)


@pytest.mark.parametrize("dtype", INTEGER)
def test_shifts_beyond_the_width(dtype):
    """Everything is shifted out, or the sign is kept: never the processor's shift modulo the width."""
    info, bits = np.iinfo(dtype), np.dtype(dtype).itemsize * 8
    values = special_values(dtype)
    x = tensor(values, dtype)
    for n in (bits, bits + 1, info.max):
        assert (x << n == 0).all(), n
        np.testing.assert_array_equal((x >> n).numpy(), np.where(values < 0, -1, 0).astype(dtype), err_msg=str(n))
    np.testing.assert_array_equal((x << bits - 1).numpy(), np.left_shift(values, bits - 1, dtype=dtype))
    np.testing.assert_array_equal((x >> bits - 1).numpy(), np.right_shift(values, bits - 1, dtype=dtype))


def test_every_special_value_is_ordinary_somewhere():
    """The comparison tells zeros and NaN apart: it must fail on a wrong sign, a lost denormal, a NaN."""
    for got, want in ((0.0, -0.0), (0.0, 1e-40), (np.nan, 1.0), (np.inf, -np.inf), (1.0, np.nan)):
        with pytest.raises(AssertionError):
            assert_exact(np.float32([got]), np.array([want]), "float32", 1e-6, "")
    assert len(ORDINARY) > 3
    assert ROWS


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_nextafter(dtype):
    x = special_values(dtype)
    a, b = (g.reshape(-1) for g in np.meshgrid(x, x))
    with np.errstate(all="ignore"):
        want = np.nextafter(a, b)
    np.testing.assert_array_equal(ptcore.nextafter(tensor(a, dtype), tensor(b, dtype)).numpy(), want)
