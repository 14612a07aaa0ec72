"""float8 and complex32: values of casts against the formats' definitions, views, ops, errors.

A float8 format is decoded here from its definition, with Python's exact fractions; the nearest value is searched for.
"""
import bisect
import copy
import math
import pickle
import subprocess
import sys
import textwrap
from fractions import Fraction

import numpy as np
import pytest

import ptcore as pt
from ptcore.fx.experimental.proxy_tensor import make_fx

FLOAT8 = ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu")
SIGNED = FLOAT8[:4]
STORED = (*FLOAT8, "complex32")
OTHERS = ("bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float16", "bfloat16",
          "float32", "float64", "complex64", "complex128")
# exponent bits, mantissa bits, bias
SCALES = {"float8_e4m3fn": (4, 3, 7), "float8_e5m2": (5, 2, 15), "float8_e4m3fnuz": (4, 3, 8),
          "float8_e5m2fnuz": (5, 2, 16)}


def decoded(name, byte):
    """The value of a byte: a Fraction, or the float inf, -inf, nan, -0.0."""
    if name == "float8_e8m0fnu":
        return math.nan if byte == 255 else Fraction(2) ** (byte - 127)
    e_bits, m_bits, bias = SCALES[name]
    sign, e, m = byte >> 7, byte >> m_bits & ((1 << e_bits) - 1), byte & ((1 << m_bits) - 1)
    if name.endswith("fnuz"):
        if byte == 0x80:
            return math.nan
    elif name == "float8_e4m3fn":
        if byte & 0x7F == 0x7F:
            return math.nan
    elif e == 31:
        return math.nan if m else -math.inf if sign else math.inf
    value = (Fraction(m, 1 << m_bits) + (e > 0)) * Fraction(2) ** (max(e, 1) - bias)
    return -0.0 if sign and not value else -value if sign else value


# The finite numbers that are not negative, in rising order: their bytes are 0, 1, 2, ...
NUMBERS = {name: [v for byte in range(128 if name in SCALES else 255)
                  if isinstance(v := decoded(name, byte), Fraction)] for name in FLOAT8}


def nearest(name, x):
    """The byte of a float: to nearest, ties to even (of powers: up); what lies beyond the range differs, as in PyTorch."""
    numbers = NUMBERS[name]
    if name == "float8_e8m0fnu":
        if math.isnan(x) or math.isinf(x):
            return 255
        size = abs(Fraction(x))
        k = bisect.bisect_left(numbers, size)
        if k == 0:
            return 0
        if k == len(numbers):
            return 255 if size >= numbers[-1] * 3 / 2 else 254
        return k if size >= (numbers[k - 1] + numbers[k]) / 2 else k - 1
    negative = math.copysign(1, x) < 0
    nan = {"float8_e4m3fn": 0x7F, "float8_e5m2": 0x7F}.get(name)
    if math.isnan(x):
        return 0x80 if nan is None else nan | negative << 7
    largest = len(numbers) - 1
    step = numbers[largest] - numbers[largest - 1]
    size = Fraction(x) if math.isfinite(x) else None
    size = None if size is None else abs(size)
    if size is None or size >= numbers[largest] + step / 2:
        if name == "float8_e4m3fn":
            return largest | negative << 7
        return 0x7C | negative << 7 if name == "float8_e5m2" else 0x80
    k = bisect.bisect_left(numbers, size)
    if k > largest:
        k = largest
    elif k and numbers[k] != size:
        middle = (numbers[k - 1] + numbers[k]) / 2
        k = k if size > middle or (size == middle and k % 2 == 0) else k - 1
    if name.endswith("fnuz") and k == 0:
        return 0
    return k | negative << 7


def bytes_of(x):
    return x.contiguous().view(pt.uint8).tolist()


def of_bytes(name, values):
    return pt.tensor(values, dtype=pt.uint8).view(getattr(pt, name))


@pytest.mark.core
@pytest.mark.parametrize("name", FLOAT8)
def test_all_bytes_widen_to_their_values(name):
    x = of_bytes(name, list(range(256)))
    wide, listed = x.to(pt.float32).numpy(), x.tolist()
    for byte in range(256):
        want = decoded(name, byte)
        for got in (float(wide[byte]), listed[byte], x[byte].item()):
            if isinstance(want, Fraction):
                assert Fraction(got) == want, byte
            else:
                assert repr(got).lstrip("-") == repr(want).lstrip("-"), byte
                assert math.isnan(want) or math.copysign(1, got) == math.copysign(1, want), byte
    assert np.isnan(wide).sum() == {"float8_e4m3fn": 2, "float8_e5m2": 6}.get(name, 1)


def around_ties(name, rng):
    """float32 numbers: every number of the format, every tie, their neighbours, and numbers of all sizes."""
    numbers = np.array([float(v) for v in NUMBERS[name]])
    ties = (numbers[1:] + numbers[:-1]) / 2
    beyond = numbers[-1] + (numbers[-1] - numbers[-2]) * np.array([0.25, 0.5, 0.75, 1, 2])
    with np.errstate(over="ignore"):
        centres = np.concatenate([numbers, ties, beyond]).astype(np.float32)
        centres = centres[np.isfinite(centres)]
        near = [centres, np.nextafter(centres, np.float32(np.inf)), np.nextafter(centres, np.float32(-np.inf))]
    drawn = rng.integers(0, 1 << 32, 4000, dtype=np.uint32).view(np.float32)
    special = np.array([0, np.inf, np.nan, 1e-45, 1.1754944e-38, 3.4028235e38, 5.877e-39, 2.9e-39], np.float32)
    found = np.concatenate([*near, drawn, special])
    return np.concatenate([found, -found])


@pytest.mark.core
@pytest.mark.parametrize("name", FLOAT8)
def test_float32_narrows_to_the_nearest(name):
    values = around_ties(name, np.random.default_rng(3))
    got = bytes_of(pt.from_numpy(values).to(getattr(pt, name)))
    wrong = [(float(v), g, w) for v, g in zip(values, got) if g != (w := nearest(name, float(v)))]
    assert not wrong, wrong[:5]


@pytest.mark.parametrize("name", FLOAT8)
def test_float32_narrows_as_in_ml_dtypes(name):
    """But for what PyTorch does otherwise: e4m3fn saturates, e8m0fnu has no sign and makes 0 the least power."""
    ml_dtypes = pytest.importorskip("ml_dtypes")
    rng = np.random.default_rng(9)
    drawn = rng.integers(0, 1 << 32, 200_000, dtype=np.uint32).view(np.float32)
    values = np.concatenate([around_ties(name, rng), drawn, np.float32(rng.standard_normal(200_000) * 30)])
    values = values[~np.isnan(values)]
    if name == "float8_e4m3fn":
        values = values[np.abs(values) <= 464]
    if name == "float8_e8m0fnu":
        values = values[values >= 1.5 * 2.0 ** -127]            # ml_dtypes before 0.7 rounds what is less up
    with np.errstate(all="ignore"):
        want = values.astype(getattr(ml_dtypes, name)).view(np.uint8)
    got = pt.from_numpy(values).to(getattr(pt, name)).view(pt.uint8).numpy()
    assert len(values) > 150_000
    np.testing.assert_array_equal(got, want)
    wide = np.arange(256, dtype=np.uint8).view(getattr(ml_dtypes, name)).astype(np.float32)
    np.testing.assert_array_equal(of_bytes(name, list(range(256))).to(pt.float32).numpy(), wide)


@pytest.mark.parametrize("name", FLOAT8)
def test_every_float16_narrows_to_the_nearest(name):
    values = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    got = bytes_of(pt.from_numpy(values).to(getattr(pt, name)))
    known = {}
    for v, g in zip(values.tolist(), got):
        if not math.isnan(v):
            if (v, math.copysign(1, v)) not in known:
                known[v, math.copysign(1, v)] = nearest(name, v)
            assert g == known[v, math.copysign(1, v)], v
        else:
            assert math.isnan(decoded(name, g) if not isinstance(decoded(name, g), Fraction) else 0)


def sample(name):
    if name == "bool":
        return pt.tensor([True, False, True])
    if name.startswith("complex"):
        return pt.tensor([1.5 - 2j, 0j, 300 + 0.1j], dtype=pt.complex128).to(getattr(pt, name))
    numbers = [3, 0, 100] if name[0] in "iu" else [2.7, -0.3, 300.25]
    return pt.tensor(numbers, dtype=getattr(pt, name))


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("name", FLOAT8)
def test_casts_of_pairs_go_through_float32(name, other):
    dtype, wide = getattr(pt, name), sample(other)
    real = wide.real if wide.is_complex() else wide
    assert bytes_of(wide.to(dtype)) == bytes_of(real.to(pt.float32).to(dtype))
    x = of_bytes(name, [0x38, 0x41, 0x30, 0x00])
    assert x.to(getattr(pt, other)).tolist() == x.to(pt.float32).to(getattr(pt, other)).tolist()


@pytest.mark.parametrize("other", [*OTHERS, *FLOAT8])
def test_casts_of_complex32_go_through_complex64(other):
    wide, dtype = (sample(other) if other in OTHERS else of_bytes(other, [0x38, 0x41, 0])), getattr(pt, other)
    assert wide.to(pt.complex32).tolist() == wide.to(pt.complex64).to(pt.complex32).tolist()
    x = pt.tensor([1.5 + 2j, 0j, 3j], dtype=pt.complex32)
    a, b = x.to(dtype), x.to(pt.complex64).to(dtype)
    assert a.dtype == dtype and bytes_of(a) == bytes_of(b)


@pytest.mark.parametrize("a", FLOAT8)
@pytest.mark.parametrize("b", FLOAT8)
def test_casts_between_float8_types(a, b):
    x = of_bytes(a, list(range(256)))
    got = bytes_of(x.to(getattr(pt, b)))
    if a == b:
        assert got == list(range(256))
        return
    for byte, g in enumerate(got):
        v = decoded(a, byte)
        assert g == nearest(b, float(v)) or (not isinstance(v, Fraction) and math.isnan(v)
                                             and math.isnan(float(decoded(b, g)))), byte


def test_complex32_is_pairs_of_float16():
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    pairs = np.stack([halves, halves[::-1]], -1)
    finite = np.isfinite(pairs.astype(np.float32)).all(-1)
    x = pt.view_as_complex(pt.from_numpy(np.ascontiguousarray(pairs)))
    assert x.dtype is pt.complex32 and x.element_size() == 4
    wide = x.to(pt.complex64).numpy()
    assert (wide.real[finite] == pairs[finite, 0]).all() and (wide.imag[finite] == pairs[finite, 1]).all()
    assert np.array_equal(np.isnan(wide.real), np.isnan(pairs[:, 0].astype(np.float32)))
    back = pt.view_as_real(x.to(pt.complex128).to(pt.complex32))
    assert np.array_equal(back.numpy()[finite].view(np.uint16), pairs[finite].view(np.uint16))
    assert pt.equal(x.real[3:9], pt.from_numpy(halves[3:9].copy())) and x.imag.dtype is pt.float16


LAYOUTS = {
    "contiguous": lambda x: x, "transposed": lambda x: x.t(), "sliced": lambda x: x[:, ::3], "rows": lambda x: x[5:, 7:],
    "expanded": lambda x: x[:1].expand(40, -1), "one": lambda x: x[3, 4], "empty": lambda x: x[:0],
    "three": lambda x: x.reshape(20, 2, 300)[:, :, ::2].permute(2, 0, 1)}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", STORED)
def test_casts_of_layouts(name, layout):
    """Tiles and their ends: 40 x 300 elements, of which a tile takes 256."""
    rng = np.random.default_rng(1)
    values = rng.standard_normal((40, 300)).astype(np.float32)
    if name == "complex32":
        values = (values + 1j * rng.standard_normal((40, 300))).astype(np.complex64)
    wide, view, dtype = pt.from_numpy(values), LAYOUTS[layout], getattr(pt, name)
    whole = wide.to(dtype)
    narrow, again = view(wide).to(dtype), view(whole)
    assert narrow.tolist() == again.tolist() and narrow.shape == again.shape
    for other in (pt.float32, pt.complex64, pt.float64, pt.int32, pt.float16):
        if name == "complex32" and other in (pt.int32,):
            continue
        assert view(whole).to(other).tolist() == view(whole.to(other)).tolist()
    into = pt.zeros(view(wide).shape, dtype=dtype)
    assert into.copy_(view(wide)).tolist() == narrow.tolist()
    assert view(whole).clone().tolist() == view(whole).contiguous().tolist() == again.tolist()


# -- what a dtype says ------------------------------------------------------------------------------------------------

@pytest.mark.core
@pytest.mark.parametrize("name", STORED)
def test_attributes(name):
    dtype = getattr(pt, name)
    assert dtype.itemsize == (4 if name == "complex32" else 1) == pt.empty(0, dtype=dtype).element_size()
    assert dtype.is_floating_point is (name in FLOAT8) and dtype.is_complex is (name == "complex32")
    assert dtype.is_signed is (name != "float8_e8m0fnu")
    assert str(dtype) == f"ptcore.{name}" and pickle.loads(pickle.dumps(dtype)) is dtype is copy.deepcopy(dtype)
    x = pt.zeros(3, dtype=dtype)
    assert x.type() == f"ptcore.{'ComplexHalf' if name == 'complex32' else name.capitalize()}Tensor"
    assert x.type(pt.float32).dtype is pt.float32 and pt.ones(2).type(x.type()).dtype is dtype
    assert x.is_floating_point() is (name in FLOAT8) and x.is_complex() is (name == "complex32")


@pytest.mark.parametrize("name", FLOAT8)
def test_finfo(name):
    info, numbers = pt.finfo(getattr(pt, name)), NUMBERS[name]
    assert info.bits == 8 and info.max == numbers[-1] and info.resolution == 1.0
    assert info.dtype is getattr(pt, name)
    if name == "float8_e8m0fnu":
        assert info.min == info.tiny == info.smallest_normal == numbers[0] and info.eps == 1.0
        return
    _, m_bits, bias = SCALES[name]
    assert info.min == -numbers[-1] and info.tiny == info.smallest_normal == 2.0 ** (1 - bias)
    assert info.eps == (0.125 if name == "float8_e5m2fnuz" else 2.0 ** -m_bits)     # PyTorch has 0.125 there
    assert pt.finfo(pt.complex32).eps == pt.finfo(pt.float16).eps


def test_promotion():
    for name in FLOAT8:
        dtype = getattr(pt, name)
        assert pt.promote_types(dtype, dtype) is dtype
        assert pt.result_type(pt.ones(2, dtype=dtype), 1.5) is dtype and pt.result_type(
            pt.ones(2, dtype=dtype), pt.tensor(2.0)) is dtype
        for other in (*OTHERS, *STORED):
            if other != name:
                with pytest.raises(RuntimeError, match="Promotion for Float8 Types is not supported, attempted to"):
                    pt.promote_types(dtype, getattr(pt, other))
        with pytest.raises(RuntimeError, match=f"Unknown Complex ScalarType for {name.capitalize()}"):
            dtype.to_complex()
        with pytest.raises(RuntimeError, match="Unknown Complex ScalarType"):
            pt.result_type(pt.ones(2, dtype=dtype), 1j)
        with pytest.raises(TypeError, match="float8"):
            pt.set_default_dtype(dtype)
        assert pt.can_cast(pt.float64, dtype) and pt.can_cast(dtype, pt.complex32) and not pt.can_cast(dtype, pt.int64)
    with pytest.raises(TypeError, match="only floating-point types are supported as the default type"):
        pt.set_default_dtype(pt.complex32)
    want = {"complex32": "bool uint8 int8 uint16 int16 uint32 int32 uint64 int64 float16 complex32",
            "complex64": "bfloat16 float32 complex64", "complex128": "float64 complex128"}
    for result, names in want.items():
        for name in names.split():
            assert pt.promote_types(pt.complex32, getattr(pt, name)) is getattr(pt, result)
            assert pt.promote_types(getattr(pt, name), pt.complex32) is getattr(pt, result)
    assert pt.float16.to_complex() is pt.complex32 and pt.complex32.to_real() is pt.float16
    assert (pt.ones(2, dtype=pt.float16) * 1j).dtype is pt.complex32
    assert pt.complex(pt.ones(2).half(), pt.ones(2).half()).dtype is pt.complex32


# -- what makes and moves elements ------------------------------------------------------------------------------------

@pytest.mark.parametrize("name", STORED)
def test_creation(name):
    dtype = getattr(pt, name)
    one = 1 + 0j if name == "complex32" else 1.0
    zero = 2.0 ** -127 if name == "float8_e8m0fnu" else 0.0
    assert pt.ones(3, dtype=dtype).tolist() == [one] * 3 == pt.full((3,), 1, dtype=dtype).tolist()
    assert pt.zeros(3, dtype=dtype).tolist() == [zero] * 3 == pt.ones(3, dtype=dtype).zero_().tolist()
    assert pt.ones(3, dtype=dtype).fill_(4.0).tolist() == [4 * one] * 3
    assert pt.ones(5000, dtype=dtype).fill_(4.0).tolist() == [4 * one] * 5000
    assert pt.zeros_like(pt.ones(2, dtype=dtype)).dtype is dtype is pt.empty(2, dtype=dtype).dtype
    assert pt.tensor([[1, 2], [4, 8.0]], dtype=dtype).tolist() == [[one, 2 * one], [4 * one, 8 * one]]
    assert pt.ones(2).new_ones(2, dtype=dtype).tolist() == [one] * 2
    if name != "complex32":
        assert pt.eye(2, 3, dtype=dtype).tolist() == [[1.0, zero, zero], [zero, 1.0, zero]]


@pytest.mark.parametrize("name", FLOAT8)
def test_fills_beyond_the_range(name):
    """Fills of several elements check the number, other ways to write it do not, as in PyTorch."""
    dtype = getattr(pt, name)
    largest = float(NUMBERS[name][-1])
    for value in (largest * 1.01, -largest * 1.01, math.inf):
        if name == "float8_e5m2" and value == math.inf:
            assert pt.full((2,), value, dtype=dtype).tolist() == [math.inf] * 2
            continue
        with pytest.raises(RuntimeError, match=f"value .* cannot be converted to {name} without overflow"):
            pt.full((2,), value, dtype=dtype)
        with pytest.raises(RuntimeError, match="without overflow"):
            pt.ones(2, dtype=dtype).fill_(value)
        assert bytes_of(pt.tensor([value], dtype=dtype)) == [nearest(name, value)]
        assert bytes_of(pt.ones(1, dtype=dtype).fill_(value)) == [nearest(name, value)]
        x = pt.ones(2, dtype=dtype)
        x[0] = value
        assert bytes_of(x)[0] == nearest(name, value)
    assert math.isnan(pt.full((2,), math.nan, dtype=dtype)[0].item())
    with pytest.raises((RuntimeError, TypeError)):
        pt.full((2,), 1j, dtype=dtype)
    with pytest.raises(TypeError):
        pt.tensor([1j], dtype=dtype)


@pytest.mark.parametrize("name", STORED)
def test_ops_that_move_elements(name):
    """Each is the op over the same bytes as integers."""
    dtype = getattr(pt, name)
    bits = pt.int32 if name == "complex32" else pt.uint8
    raw = (pt.arange(24) * 7 % 120).to(bits).reshape(4, 6)
    x = raw.view(dtype)
    index, mask = pt.tensor([2, 0, 2]), raw % 3 == 0
    for f in (
            lambda t: pt.cat([t, t[:1]]), lambda t: pt.stack([t, t], 1), lambda t: t[index], lambda t: t[1:, ::2],
            lambda t: t[mask], lambda t: t.index_select(1, index), lambda t: t.t().contiguous(), lambda t: t.clone(),
            lambda t: pt.where(mask, t, t.roll(1, 0)), lambda t: t.repeat(2, 1), lambda t: t.expand(2, 4, 6).clone(),
            lambda t: t.unbind(0)[2], lambda t: t.masked_select(mask), lambda t: t.reshape(3, 8).T.reshape(-1),
            lambda t: pt.nn.functional.embedding(index, t), lambda t: t.split(3, 1)[1], lambda t: copy.deepcopy(t),
            lambda t: pickle.loads(pickle.dumps(t)), lambda t: t.select_scatter(t[0], 0, 2),
            lambda t: t.roll(2, 1), lambda t: pt.from_dlpack(t), lambda t: pt.utils.dlpack.from_dlpack(t),
            lambda t: t.unfold(1, 2, 2).clone(), lambda t: t.diagonal().clone(), lambda t: t.squeeze().movedim(0, 1)):
        assert f(x).dtype is dtype
        assert f(x).contiguous().view(bits).tolist() == f(raw).tolist()
    for write in (
            lambda t: t.__setitem__((0, slice(1, 3)), t[2, 2:4]), lambda t: t.copy_(t.flip(0) if t.dtype is bits else
                                                                                  t.view(bits).flip(0).view(dtype)),
            lambda t: t.__setitem__(index, t[1].clone()), lambda t: t.__setitem__(mask, t[0, 0].clone()),
            lambda t: t.index_put_((index,), t[3].clone())):
        a, b = x.clone(), raw.clone()
        write(a)
        write(b)
        assert a.view(bits).tolist() == b.tolist()


@pytest.mark.parametrize("name", FLOAT8)
def test_ops_that_compare(name):
    x = of_bytes(name, list(range(256)))
    values = x.to(pt.float32)
    nan = values.isnan()
    assert pt.equal(x.isnan(), nan) and pt.equal(x == x, ~nan) and pt.equal(x != x, nan)
    assert pt.equal(x == x.view(pt.uint8).flip(0).view(x.dtype), values == values.flip(0))
    assert pt.equal(x == 1.0, values == 1.0) and pt.equal(x.any(), pt.tensor(True))
    assert x[:1].all().item() is (name == "float8_e8m0fnu") and x[1:].all().item() is bool(values[1:].all())
    if name != "float8_e8m0fnu":
        got = x.abs()
        assert got.dtype is x.dtype and pt.equal(got.float()[~nan], values.abs()[~nan]) and pt.equal(got.isnan(), nan)
    x2 = x[~nan][::5].clone()
    want = (x2.float() * x2.float()).to(x.dtype)
    assert bytes_of(x2 * x2) == bytes_of(want)


@pytest.mark.parametrize("name", SIGNED)
def test_products(name):
    """A product is one of float32, rounded once."""
    rng = np.random.default_rng(2)
    dtype = getattr(pt, name)
    a, b, c = (pt.from_numpy(rng.standard_normal(s).astype(np.float32)).to(dtype) for s in ((5, 40), (40, 7), (5, 7)))
    exact = a.to(pt.float64) @ b.to(pt.float64)
    assert bytes_of(a @ b) == bytes_of(exact.to(dtype)) == bytes_of(pt.mm(a, b)) == bytes_of(a.t().contiguous().t() @ b)
    assert bytes_of(pt.addmm(c, a, b)) == bytes_of((c.to(pt.float64) + exact).to(dtype))
    assert bytes_of(pt.nn.functional.linear(a, b.t())) == bytes_of(exact.to(dtype))


def test_complex32_computes_in_complex64():
    rng = np.random.default_rng(4)
    a, b = (pt.from_numpy((rng.standard_normal(50) + 1j * rng.standard_normal(50)).astype(np.complex64)).to(
        pt.complex32) for _ in range(2))
    x, y = a.to(pt.complex64), b.to(pt.complex64)
    for f in (lambda p, q: p + q, lambda p, q: p - q, lambda p, q: p * q, lambda p, q: p / q, lambda p, q: -p, lambda p, q: pt.conj(p),
              lambda p, q: pt.sgn(p), lambda p, q: pt.where(q == q, p, q), lambda p, q: p.reshape(5, 10).tril()):
        got = f(a, b)
        assert got.dtype is pt.complex32 and got.tolist() == f(x, y).to(pt.complex32).tolist()
    assert a.abs().dtype is pt.float16 and a.abs().tolist() == x.abs().half().tolist()
    assert pt.linalg.vector_norm(a).dtype is pt.float16
    assert pt.equal(a == b, x == y) and pt.equal(a.isfinite(), x.isfinite())
    assert a.real.tolist() == x.real.tolist() and a.chalf() is a and a.real.chalf().tolist() == x.real.tolist()


# -- what is refused --------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("name", STORED)
def test_ops_that_no_row_has(name):
    word = "ComplexHalf" if name == "complex32" else name.capitalize()
    x = pt.ones(4, dtype=getattr(pt, name))
    for f in (lambda: x.exp(), lambda: x.sqrt(), lambda: x < x, lambda: x.sort(), lambda: x.cumsum(0), lambda: x.sum(),
              lambda: x.flip(0), lambda: x.softmax(0), lambda: pt.arange(3, dtype=x.dtype), lambda: x.gather(
                  0, pt.tensor([0])), lambda: x.take(pt.tensor([0])), lambda: x.max()):
        with pytest.raises(NotImplementedError, match=f"not implemented for '{word}'"):
            f()
    if name != "complex32":
        for f in (lambda: x + x, lambda: x / x, lambda: x - 1, lambda: -x, lambda: x.nonzero(), lambda: x.masked_fill(x == x, 0)):
            with pytest.raises(NotImplementedError, match=f"not implemented for '{word}'"):
                f()
        with pytest.raises(RuntimeError, match="Promotion for Float8 Types is not supported"):
            x.eq(pt.ones(4))
        with pytest.raises(RuntimeError, match="Promotion for Float8 Types is not supported"):
            pt.cat([x, pt.ones(4)])
    for f in (x.numpy, x.__array__, lambda: np.asarray(x), lambda: np.dtype(x.dtype)):
        with pytest.raises(TypeError, match=f"unsupported ScalarType {word}"):
            f()
    with pytest.raises(BufferError):
        memoryview(x)
    bits = x.view(pt.int32 if name == "complex32" else pt.uint8)
    assert bits.numpy().base is not None and bits.numpy().dtype.itemsize == x.element_size()


def test_the_first_tensor_of_complex32_warns():
    program = """
        import warnings
        import ptcore as pt
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            pt.ones(2).half() + 1
            assert not seen
            x = pt.ones(2).half() * 1j
            y = x + x
        assert [str(w.message) for w in seen] == [
            "ComplexHalf support is experimental and many operators don't support it yet."], seen
        assert seen[0].category is UserWarning and y.dtype is pt.complex32
    """
    subprocess.run([sys.executable, "-P", "-c", textwrap.dedent(program)], check=True, timeout=120)


# -- gradients, modes, processes ----------------------------------------------------------------------------------------

@pytest.mark.parametrize("name", STORED)
def test_gradients_through_casts(name):
    x = pt.tensor([1.0, 2.0, 0.3], requires_grad=True)
    y = x.to(getattr(pt, name))
    assert y.requires_grad and y.grad_fn.name() == "ToCopyBackward0"
    z = y.to(pt.complex64 if name == "complex32" else pt.float32)
    (z.real * pt.tensor([1.0, 2.0, 4.0])).sum().backward()
    assert x.grad.dtype is pt.float32 and x.grad.tolist() == [1.0, 2.0, 4.0]
    leaf = pt.ones(2, dtype=y.dtype, requires_grad=True)
    assert leaf.requires_grad and leaf.detach().dtype is y.dtype


@pytest.mark.parametrize("name", STORED)
def test_meta_and_compiled(name):
    dtype = getattr(pt, name)
    m = pt.empty(2, 3, dtype=dtype, device="meta")
    assert (m == m).dtype is pt.bool and pt.cat([m, m]).shape == (4, 3) and m.to(pt.float32).dtype is pt.float32
    assert "meta" in repr(m)

    def through(x):
        return (x * 2).to(dtype).to(pt.complex64).real + 1

    x = pt.linspace(0.1, 3, 700)
    want = through(x)
    compiled = pt.compile(through)
    for _ in range(3):
        assert compiled(x).tolist() == want.tolist()
    assert pt.vmap(lambda t: t.to(dtype).to(pt.complex64).real)(x.reshape(7, 100)).tolist() == (
        x.to(dtype).to(pt.complex64).real.reshape(7, 100).tolist())


@pytest.mark.parametrize("name", STORED)
def test_captured(name):
    """A program of writes, comparisons and casts, traced and compiled in each way."""
    def program(a, b):
        c = a.clone()
        c.copy_(b)
        c[0] = a[1]
        with pt.no_grad():
            c.copy_(pt.where(a == b, a, c))
        return c.detach(), c == b, c.to(pt.complex64), pt.cat([c, a * b])

    a, b = (pt.tensor(v, dtype=getattr(pt, name)) for v in ([1.0, 2.0, 4.0], [8.0, 2.0, 16.0]))
    want = [t.tolist() for t in program(a, b)]
    assert want[2] == [2, 2, 16] and want[1] == [False, True, True]
    for function in make_fx(program)(a, b), pt.compile(program), pt.jit.trace(program, (a, b)):
        for _ in range(2):
            assert [t.tolist() for t in function(a, b)] == want


@pytest.mark.parametrize("foreach", [False, True])
@pytest.mark.parametrize("make", [lambda p, f: pt.optim.SGD(p, 0.5, momentum=0.5, foreach=f),
                                  lambda p, f: pt.optim.Adam(p, 0.5, foreach=f),
                                  lambda p, f: pt.optim.RMSprop(p, 0.25, foreach=f)])
def test_optimizers_of_complex32(make, foreach):
    """The fused loops know float32 and float64: the memory behind the parameter stays as it is."""
    for n in (1, 3, 1000):
        whole = pt.ones(n + 8, dtype=pt.complex32)
        p, wide = whole[:n].requires_grad_(), pt.ones(n, dtype=pt.complex64, requires_grad=True)
        optimizer, other = make([p], foreach), make([wide], foreach)
        for _ in range(3):
            p.grad = pt.full((n,), 0.5 + 0.25j, dtype=pt.complex32)
            wide.grad = p.grad.to(pt.complex64)
            optimizer.step()
            other.step()
        assert np.allclose(p.detach().to(pt.complex64).numpy(), wide.detach().numpy(), atol=4e-3)
        assert whole[n:].tolist() == [1] * 8


@pytest.mark.parametrize("name", STORED)
def test_autocast(name):
    dtype = getattr(pt, name)
    with pt.autocast("cpu"):
        if name in FLOAT8:
            assert (pt.ones(2, 2).to(dtype) @ pt.ones(2, 2).to(dtype)).dtype is pt.bfloat16
        assert (pt.ones(2).to(dtype) * pt.ones(2).to(dtype)).dtype is dtype


@pytest.mark.parametrize("name", STORED)
def test_assert_close(name):
    x = pt.tensor([1.0, 2.0], dtype=getattr(pt, name))
    pt.testing.assert_close(x, x.clone())
    with pytest.raises(AssertionError, match=r"not close|not equal"):
        pt.testing.assert_close(x, pt.tensor([1.0, 4.0], dtype=x.dtype))


@pytest.mark.parametrize("name", STORED)
def test_printing(name):
    x = pt.tensor([1.0, 2.0, 0.5], dtype=getattr(pt, name))
    shown = "1.0000+0.j, 2.0000+0.j, 0.5000+0.j" if name == "complex32" else "1.0000, 2.0000, 0.5000"
    assert repr(x) == f"tensor([{shown}], dtype=ptcore.{name})"
    assert repr(x[0]) == f"tensor({'1.+0.j' if name == 'complex32' else '1.'}, dtype=ptcore.{name})"
