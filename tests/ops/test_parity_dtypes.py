"""Result dtype and values of functions of two and three operands: all pairs and triples of dtypes, as tensors, as
tensors without dims and as numbers."""
import functools
import itertools
import operator
import re
import warnings

import numpy as np
import pytest

import ptcore as pt

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.parity

DTYPES = ["bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64",
          "float16", "bfloat16", "float32", "float64", "complex64", "complex128"]
FEW = ["bool", "uint8", "int64", "float16", "float32", "float64", "complex64"]
NUMBERS = {"True": True, "2": 2, "-3": -3, "300": 300, "2.5": 2.5, "-0.5": -0.5, "2.5+1j": 2.5 + 1j}
KINDS = ("tensor", "zero", "number")
# what the numbers of an operand are made of: by its position
VALUES = [([-5, 3, 0, 7, 1, 120], 0.5), ([3, -2, 2, 1, 5, 7], 0.25), ([1, 2, -1, 3, 1, 4], 0.5)]
TOLERANCE = {"float16": 2e-3, "complex32": 4e-3, "bfloat16": 1.6e-2, "float32": 1e-5, "complex64": 1e-5, "float64": 1e-9,
             "complex128": 1e-9}
MASK = [True, False, True, True, False, True]


def array(place, dtype):
    whole, part = VALUES[place]
    a = np.array(whole)
    if dtype == "bool":
        return a % 2 == 1
    if dtype.startswith("uint"):
        return np.abs(a).astype(dtype)
    if dtype.startswith("int"):
        return a.astype(dtype)
    if dtype.startswith("complex"):
        return (a + part + 1j * np.array([1, 0, -2, 0.5, 0, 1])).astype(dtype)
    return (a + part).astype("float32" if dtype == "bfloat16" else dtype)


@functools.cache
def operand(m, place, kind, dtype):
    if kind == "number":
        return NUMBERS[dtype]
    a = array(place, dtype)
    return m.tensor(a[:1].reshape(()) if kind == "zero" else a, dtype=getattr(m, dtype))


def called(*path, **keywords):
    return lambda m, *operands: functools.reduce(getattr, path, m)(*operands, **keywords)


def written(name):
    """The form in place, of a copy."""
    return lambda m, x, *operands: getattr(x.clone(), name)(*operands)


def filled(m, x, key, value):
    x = x.clone()
    x[key] = value
    return x


BINARY = {
    **{n: called(n) for n in (
        "add sub mul div floor_divide remainder fmod pow float_power maximum minimum fmax fmin atan2 hypot copysign "
        "nextafter heaviside gcd lcm logaddexp logaddexp2 xlogy ldexp lt le eq ne gt ge bitwise_and bitwise_or "
        "bitwise_xor bitwise_left_shift bitwise_right_shift logical_and logical_or logical_xor rsub isclose igamma "
        "igammac polar complex dist outer dot vdot inner kron allclose equal result_type bucketize isin").split()},
    **{n: lambda m, x, y, n=n: getattr(m, n)([x, y]) for n in ("cat", "stack", "hstack")},
    **{n: lambda m, x, y, n=n: getattr(operator, n)(x, y) for n in (
        "add sub mul truediv floordiv mod pow and_ or_ xor lshift rshift lt eq matmul").split()
       if n not in ("add", "sub", "mul", "pow", "lt", "eq")},
    **{n: lambda m, x, y, n=n: getattr(operator, n)(x.clone(), y) for n in (
        "iadd isub imul itruediv ifloordiv imod ipow iand ior ixor ilshift irshift").split()},
    **{n: written(n) for n in (
        "atan2_ copysign_ fmod_ remainder_ lt_ eq_ logical_and_ xlogy_ hypot_ nextafter_ heaviside_ gcd_ lcm_ "
        "float_power_ clamp_min_ ldexp_ igamma_ copy_").split()},
    "xlog1py": called("special", "xlog1py"), "zeta": called("special", "zeta"),
    "div by trunc": called("div", rounding_mode="trunc"), "div by floor": called("div", rounding_mode="floor"),
    **{f"{n} with alpha={a}": called(n, alpha=a) for n in ("add", "sub", "rsub") for a in (2, 2.5, 2j)},
    "add with alpha=True": called("add", alpha=True),
    "where": lambda m, x, y: m.where(m.tensor(MASK), x, y), "where, one": lambda m, x, y: m.where(m.tensor(True), x, y),
    "masked_fill": lambda m, x, y: x.masked_fill(m.tensor(MASK), y),
    "clamp to max": lambda m, x, y: m.clamp(x, max=y), "clamp to min": lambda m, x, y: m.clamp(x, min=y),
    "x[:]": lambda m, x, y: filled(m, x, slice(None), y) if x.ndim else x,
    "x[mask]": lambda m, x, y: filled(m, x, m.tensor(MASK), y[:4] if isinstance(y, m.Tensor) and y.ndim else y)
               if x.ndim else x,
    **{n: called("nn", "functional", n) for n in (
        "mse_loss l1_loss smooth_l1_loss huber_loss binary_cross_entropy_with_logits soft_margin_loss "
        "hinge_embedding_loss kl_div poisson_nll_loss").split()}}
TERNARY = {
    **{n: called(n) for n in ("addcmul", "addcdiv", "lerp", "clamp")},
    "addcmul with value": called("addcmul", value=2), "addcdiv with value": called("addcdiv", value=2.5),
    **{n: written(n) for n in ("addcmul_", "addcdiv_", "lerp_", "clamp_")},
    "where": lambda m, x, y, z: m.where(x > 1, y, z), "addr": lambda m, x, y, z: m.addr(x, y, z),
    "cat": lambda m, x, y, z: m.cat([x, y, z])}
TENSORS_FIRST = {*"copy_ masked_fill x[:] x[mask] where".split()}

# Why torch refuses what is a result here (guide/differences.rst): numbers and dtypes are converted as everywhere else.
TAKES_MORE = re.compile("|".join((
    "must be Tensor, not", "invalid combination of arguments", "did not match", "with (a|two) bool tensor",
    "not yet implemented for tensors with different dtypes", "expected scalar type", "could not infer output dtype",
    "result type .* can't be cast to the desired output type", "[Ee]xpected (both|object|all)", "same dtype",
    "[Ee]xpected .*dtype", "Promotion for", "ComplexHalf", "have the same type", "to have the same",
    "doesn't match the broadcast shape", "all input tensors", "Expected object of scalar type",
    "kl_div: (Integral|Complex) inputs", "Boolean alpha only", "Integer division with addcdiv", "Unsupported input type encountered for isin",
    "only supports .* masks", "masked_fill_? only supports", "Index put requires the source and destination")))
NEW_UNSIGNED = ("uint16", "uint32", "uint64")


# What differs: whether a combination does, and why. An entry that no longer differs fails.
DIFFERENT = {
    "bucketize": (lambda k, d: d[0] in ("-3", "300") and d[1] in ("uint8", "int8", "bool"),
                  "torch wraps a number around that is out of range: -3 among uint8 is 253"),
    "x[mask]": (lambda k, d: d[0] == "bool" and d[1][:7] == "complex",
                "torch has what is not 0 for a complex number as a bool"),
    "lerp": (lambda k, d: d[2] == "2.5+1j", "torch takes no complex weight of real numbers"),
    "clamp": (
        lambda k, d: "zero" in k and "number" in k, "beside a number torch reads a tensor without dims as a number"),
    **dict.fromkeys(("addcdiv", "addcdiv_", "addcdiv with value"), (
        lambda k, d: d[2] == "bool" and any(x.startswith("complex") for x in d), "a complex number by 0")),
    "copy_": (lambda k, d: k[1] == "number", "a number that the dtype does not hold: an error here, wrapped in torch"),
    "soft_margin_loss": (lambda k, d: d[0] == "float16" or d[0].startswith("complex"),
                         "exp overflows in torch; complex numbers have no margin"),
    "poisson_nll_loss": (lambda k, d: "complex64" in d or "complex128" in d, "NaN beside inf of complex numbers"),
    "binary_cross_entropy_with_logits": (lambda k, d: d[1].startswith("complex"), "no complex probabilities")}


def outcome(f, m, kinds, dtypes):
    try:
        return f(m, *[operand(m, place, *each) for place, each in enumerate(zip(kinds, dtypes))])
    except Exception as e:
        return e


def plain(x):
    if isinstance(x, torch.Tensor):
        x = x.resolve_conj()
    if x.dtype in (torch.complex32, pt.complex32):
        return x.cfloat().numpy()
    return (x.float() if x.dtype in (torch.bfloat16, pt.bfloat16) else x).numpy()


def same(got, want, dtypes):
    """None, or what is wrong with a result."""
    if isinstance(want, Exception):
        text = str(want)
        if "not implemented for" in text or (any(d in NEW_UNSIGNED for d in dtypes) and "not supported" in text):
            return None                     # torch has no kernel
        if isinstance(got, Exception):
            return None if isinstance(got, (type(want), TypeError)) or isinstance(want, TypeError) else "class of error"
        return None if TAKES_MORE.search(text) else "taken here alone"
    if isinstance(got, Exception):
        return "refused here alone"
    if not isinstance(want, torch.Tensor):
        return None if str(got).rpartition(".")[2] == str(want).rpartition(".")[2] else "value"
    dtype = str(want.dtype).removeprefix("torch.")
    if got.dtype.name != dtype:
        return "dtype"
    a, b = plain(got), plain(want)
    if a.shape != b.shape:
        return "shape"
    tolerance = max([TOLERANCE[d] for d in (*dtypes, dtype) if d in TOLERANCE], default=0)
    if dtype not in TOLERANCE:
        return None if (a == b).all() else "value"
    largest = np.abs(b[np.isfinite(b)]).max(initial=1)
    return None if np.allclose(a, b, rtol=tolerance, atol=tolerance * largest, equal_nan=True) else "value"


def compared(name, f, combinations):
    different, reason = DIFFERENT.get(name, (lambda *_: False, None))
    wrong, left_out, equal = [], 0, 0
    with np.errstate(all="ignore"), warnings.catch_warnings(record=True):
        warnings.simplefilter("always")
        for kinds, dtypes in combinations:
            got, want = outcome(f, pt, kinds, dtypes), outcome(f, torch, kinds, dtypes)
            problem = same(got, want, dtypes)
            if problem and different(kinds, dtypes):
                left_out += 1
            elif problem:
                wrong.append(f"{kinds} {dtypes}: {problem}: {got!r}, torch {want!r}")
            else:
                equal += not isinstance(want, Exception)
    assert not wrong, f"{len(wrong)} differ:\n" + "\n".join(wrong[:: len(wrong) // 6 + 1])
    assert equal, "nothing was compared"
    assert left_out or reason is None, f"equal now: {reason}"


def choices(kinds, dtypes):
    return itertools.product(*[NUMBERS if kind == "number" else dtypes for kind in kinds])


@pytest.mark.parametrize("name", BINARY)
def test_two(name):
    kinds = [k for k in itertools.product(KINDS, KINDS) if k != ("number", "number")
             and not (k[0] == "number" and (name in TENSORS_FIRST or name[-1] == "_" or name[0] == "i"))]
    compared(name, BINARY[name], [(k, d) for k in kinds for d in choices(k, DTYPES)])


@pytest.mark.parametrize("name", TERNARY)
def test_three(name):
    """All triples of tensors; with tensors without dims and numbers those of few dtypes."""
    kinds = [k for k in itertools.product(KINDS, repeat=3) if k != ("tensor",) * 3 and k[0] == "tensor"]
    compared(name, TERNARY[name], [(k, d) for k, dtypes in ((("tensor",) * 3, DTYPES), *[(k, FEW) for k in kinds])
                                   for d in choices(k, dtypes)])
