"""The runner of elementwise loops, copies and fills against NumPy: dtypes, layouts, threads."""

import ctypes

import numpy as np
import pytest
from _examples import examples
from hypothesis import given
from hypothesis import strategies as st
from native import address, build, isa_levels, needs_compiler

pytestmark = [needs_compiler, pytest.mark.filterwarnings("ignore::RuntimeWarning")]

CODES = ["bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float16", "bfloat16",
         "float32", "float64", "complex64", "complex128"]
NUMPY = [np.dtype("uint16" if c == "bfloat16" else c) for c in CODES]     # bfloat16 as raw bits
BF16 = CODES.index("bfloat16")

SOURCE = r"""
#include "elementwise.hpp"
#include "ptcore/complex.h"
#define EXPORT extern "C" __attribute__((visibility("default")))
using namespace pt;
extern "C" const pt_loop PT_CAT(pt_cast_table_, PT_ISA)[PT_NDTYPES][PT_NDTYPES];
namespace {
template<class T> void add(char *const *p, int64_t n, const void *) {
    for (int64_t i = 0; i < n; i++) ((T *)p[0])[i] = (T)(((T *)p[1])[i] + ((T *)p[2])[i]);
}
int scalar_calls = 0;
template<class T> void add_vs(char *const *p, int64_t n, const void *) {
    __atomic_add_fetch(&scalar_calls, 1, __ATOMIC_RELAXED);
    for (int64_t i = 0; i < n; i++) ((T *)p[0])[i] = (T)(((T *)p[1])[i] + *(T *)p[2]);
}
template<class T> void add_sv(char *const *p, int64_t n, const void *) {
    __atomic_add_fetch(&scalar_calls, 1, __ATOMIC_RELAXED);
    for (int64_t i = 0; i < n; i++) ((T *)p[0])[i] = (T)(*(T *)p[1] + ((T *)p[2])[i]);
}
template<class T> void less(char *const *p, int64_t n, const void *) {
    for (int64_t i = 0; i < n; i++) ((bool *)p[0])[i] = ((T *)p[1])[i] < ((T *)p[2])[i];
}
template<class T> void scaled(char *const *p, int64_t n, const void *params) {
    for (int64_t i = 0; i < n; i++) ((T *)p[0])[i] = (T)(*(const T *)params * ((T *)p[1])[i]);
}
template<class T> void muladd(char *const *p, int64_t n, const void *) {
    for (int64_t i = 0; i < n; i++) ((T *)p[0])[i] = (T)(((T *)p[1])[i] * ((T *)p[2])[i] + ((T *)p[3])[i]);
}
#define ROW(f) {nullptr, f<uint8_t>, f<int8_t>, f<uint16_t>, f<int16_t>, f<uint32_t>, f<int32_t>, f<uint64_t>, \
                f<int64_t>, nullptr, nullptr, f<float>, f<double>
const pt_elementwise ops[5] = {
    {"add", ROW(add), add<complex64>, add<complex128>}, {}, {}, 2, 1},
    {"less", ROW(less)}, {}, {}, 2, 1},
    {"scaled", ROW(scaled)}, {}, {}, 1, 16},
    {"muladd", ROW(muladd)}, {}, {}, 3, 4},
    {"add", ROW(add)}, ROW(add_vs)}, ROW(add_sv)}, 2, 1}};
struct flat_view { char *data; int64_t ndim, dtype, sizes[64], strides[64]; };
pt_view view(const flat_view &f) {
    int64_t numel = 1, expect = 1;
    bool contiguous = true;
    for (int d = 0; d < f.ndim; d++) numel *= f.sizes[d];
    for (int d = (int)f.ndim - 1; d >= 0; d--) {
        if (f.sizes[d] == 1) continue;
        contiguous &= f.strides[d] == expect;
        expect *= f.sizes[d];
    }
    return {f.data, f.sizes, f.strides, numel, (int32_t)f.ndim, (uint8_t)f.dtype, (uint8_t)(contiguous || !numel), 0, 0};
}
}
EXPORT void setup(int threads) { pt_casts = PT_CAT(pt_cast_table_, PT_ISA); pt_set_num_threads(threads); }
EXPORT int calls() { int c = scalar_calls; scalar_calls = 0; return c; }
EXPORT int run(int op, int compute, int result, const flat_view *views, int nin, const void *params) {
    pt_view out = view(views[0]), in[8];
    for (int k = 0; k < nin; k++) in[k] = view(views[k + 1]);
    return pt_elementwise_run(&ops[op], compute, result, &out, in, nin, params);
}
EXPORT int copy(const flat_view *views) { pt_view d = view(views[0]), s = view(views[1]); return pt_copy(&d, &s); }
EXPORT void fill(const flat_view *views, const void *value) { pt_view d = view(views[0]); pt_fill(&d, value); }
EXPORT void cast(int from, int to, char *src, char *dst, int64_t n) {
    char *p[2] = {dst, src};
    pt_cast_loop(from, to)(p, n, nullptr);
}
"""

OPS = {"add": 0, "less": 1, "scaled": 2, "muladd": 3, "add_scalar": 4}


class FlatView(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("ndim", ctypes.c_int64), ("dtype", ctypes.c_int64),
                ("sizes", ctypes.c_int64 * 64), ("strides", ctypes.c_int64 * 64)]


def views(*arrays, codes=None):
    result = (FlatView * len(arrays))()
    for i, (v, a) in enumerate(zip(result, arrays)):
        v.data, v.ndim = a.ctypes.data, a.ndim
        v.dtype = codes[i] if codes and codes[i] is not None else CODES.index(a.dtype.name)
        for d in range(a.ndim):
            v.sizes[d], v.strides[d] = a.shape[d], a.strides[d] // a.itemsize
    return result


@pytest.fixture(scope="module", params=[(level, threads) for level in isa_levels() for threads in (1, 2)],
                ids=lambda p: f"{p[0]}-{p[1]}")
def lib(request):
    return runner(*request.param)


@pytest.fixture(scope="module", params=list(isa_levels()))
def casts(request):
    return runner(request.param, 1)


def runner(level, threads):
    lib = build(SOURCE, "elementwise.cpp", "stored.cpp", "parallel.cpp", level=level, per_level=["cast.cpp"])
    lib.setup(threads)
    return lib


def reference_cast(x, code):
    """NumPy's conversion with the rules of loops.h; x is never raw bfloat16."""
    name = CODES[code]
    if name == "bool":
        return x != 0
    if np.iscomplexobj(x) and not name.startswith("complex"):
        x = x.real
    with np.errstate(all="ignore"):
        if name == "bfloat16":
            return to_bf16(x.astype(np.float32))
        if name == "float16" and x.dtype != np.float16:
            return x.astype(np.float32).astype(np.float16)
        if x.dtype.kind == "f" and name[0] in "iu":
            wide = x.astype(np.float64)
            fits = (wide >= -(2.0**63)) & (wide < 2.0**63)
            whole = np.where(fits, wide, -(2.0**63)).astype(np.int64)
            if name == "uint64":
                high = (wide >= 2.0**63) & (wide < 2.0**64)
                return np.where(high, np.where(high, wide, 0).astype(np.uint64), whole.astype(np.uint64))
            return whole.astype(name)
        return x.astype(name)


def to_bf16(x):
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32).astype(np.uint64)
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    return np.where(np.isnan(x), ((bits >> 16) | 0x40).astype(np.uint16), rounded)


def from_bf16(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32)


def sample(code, n, rng):
    """Values of a dtype with its extremes among them (raw bits for bfloat16)."""
    dtype = NUMPY[code]
    if code == BF16:
        return rng.integers(0, 65536, n).astype(np.uint16)
    if dtype.kind == "b":
        return rng.integers(0, 2, n).astype(bool)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        x = rng.integers(info.min, info.max, n, dtype, endpoint=True)
        small = rng.integers(0, 100, n).astype(dtype)
        x = np.where(rng.random(n) < 0.5, x, small)
        x[:3] = info.min, info.max, 0
        return x
    real = np.float64 if dtype in (np.float64, np.complex128) else np.float32
    edges = [0.0, -0.0, np.nan, np.inf, -np.inf, 0.5, -0.5, 1.5, 255.9, 256, -1, 2147483520.0, 2.0**31, 3e9, -(2.0**31),
             2.0**32, 2.0**53, 2.0**63, -(2.0**63), 1.5 * 2.0**63, 2.0**64, 1e-9]

    def reals():
        with np.errstate(over="ignore"):
            x = (rng.normal(size=n) * 10.0 ** rng.integers(-3, 6, n)).astype(real)
            k = rng.permutation(n)[: len(edges)]
            x[k] = np.array(edges[: len(k)])
            return x

    with np.errstate(over="ignore"):
        return (reals() + 1j * reals() if dtype.kind == "c" else reals()).astype(dtype)


@pytest.mark.parametrize("to", range(15), ids=CODES)
@pytest.mark.parametrize("source", range(15), ids=CODES)
def test_cast_loops(casts, source, to):
    rng = np.random.default_rng(source * 15 + to)
    for n in (1000, 37, 1, 0):
        for wild in (True, False):
            x = sample(source, max(n, 30), rng)[:n]
            if not wild and x.dtype.kind == "f":
                x = np.where(abs(x) < 1e6, x, 0).astype(x.dtype)
            got = np.empty(n, NUMPY[to])
            casts.cast(source, to, address(x), address(got), ctypes.c_int64(n))
            if source == to:
                np.testing.assert_array_equal(got.view(np.uint8), x.view(np.uint8))
                continue
            want = reference_cast(from_bf16(x) if source == BF16 else x, to)
            if to == BF16:
                got, want = from_bf16(got), from_bf16(want)
            np.testing.assert_array_equal(got, want)


def random_layout(draw, shape, dtype, broadcast):
    """An array of the shape with a drawn layout: permuted, stepped, reversed, sliced, broadcast."""
    order = draw(st.permutations(range(len(shape))))
    steps = [draw(st.sampled_from([1, 1, 1, 2, 3, -1, -2])) for _ in shape]
    inner = [1 if broadcast and draw(st.integers(0, 3)) == 0 else n for n in shape]
    full = [inner[d] * abs(steps[d]) + (1 if abs(steps[d]) > 1 else 0) for d in order]
    base = np.zeros(full, dtype)
    array = base.transpose(np.argsort(order)) if shape else base
    array = array[(..., *[slice(None, None, s) for s in steps])]
    return array[(..., *[slice(0, n) for n in inner])]


@st.composite
def problem(draw, dtypes, operands):
    ndim = draw(st.integers(0, 6))
    side = {0: 1, 1: 3000, 2: 90, 3: 20, 4: 8, 5: 5, 6: 4}[ndim]
    shape = tuple(draw(st.integers(0 if draw(st.integers(0, 9)) == 0 else 1, side)) for _ in range(ndim))
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    arrays = []
    for k in range(operands):
        dtype = np.dtype(draw(st.sampled_from(dtypes)))
        array = random_layout(draw, shape, dtype, broadcast=k > 0)
        if dtype.kind == "b":
            array[...] = rng.integers(0, 2, array.shape)
        elif dtype.kind in "iu":
            array[...] = rng.integers(0, 60, array.shape)
        else:
            array[...] = rng.integers(-60, 60, array.shape)
            if dtype.kind == "c":
                array += (1j * rng.integers(-60, 60, array.shape)).astype(dtype)
        arrays.append(np.broadcast_to(array, shape) if k else array)
    return arrays


ALL = [c for c in CODES if c != "bfloat16"]
# bool's sums and the comparisons of complex numbers have no loop in this test
PAIRS = ["uint8", "int16", "int32", "int64", "float16", "float32", "float64"]


@examples(50)
@given(arrays=problem(PAIRS, 3), compute=st.sampled_from(["int32", "int64", "float16", "float32", "float64", "complex128"]),
       op=st.sampled_from(["add", "add_scalar"]))
def test_binary(lib, arrays, compute, op):
    out, x, y = arrays
    if compute == "complex128":
        op = "add"
    result = np.float32 if compute == "float16" else compute
    want = (x.astype(compute).astype(result) + y.astype(compute).astype(result)).astype(compute)
    want = reference_cast(want, CODES.index(out.dtype.name))
    code = CODES.index(compute)
    assert lib.run(OPS[op], code, code, views(out, x, y), 2, None) == 0
    np.testing.assert_array_equal(out, want)


@examples(50)
@given(arrays=problem(PAIRS, 3))
def test_comparison(lib, arrays):
    out, x, y = arrays
    want = (x.astype(np.float32) < y.astype(np.float32)).astype(out.dtype)
    assert lib.run(OPS["less"], CODES.index("float32"), 0, views(out, x, y), 2, None) == 0
    np.testing.assert_array_equal(out, want)


@examples(50)
@given(arrays=problem(["float32", "float64", "int8"], 4))
def test_three_inputs(lib, arrays):
    out, x, y, z = arrays
    want = reference_cast(x.astype(float) * y + z, CODES.index(out.dtype.name))
    code = CODES.index("float64")
    assert lib.run(OPS["muladd"], code, code, views(out, x, y, z), 3, None) == 0
    np.testing.assert_array_equal(out, want)


@examples(100)
@given(arrays=problem(ALL, 2))
def test_copy(lib, arrays):
    dst, src = arrays
    assert lib.copy(views(dst, src)) == 0
    np.testing.assert_array_equal(dst, reference_cast(src, CODES.index(dst.dtype.name)))


@examples(30)
@given(arrays=problem(ALL, 1))
def test_fill(lib, arrays):
    (dst,) = arrays
    value = np.array([3], dst.dtype)
    lib.fill(views(dst), address(value))
    np.testing.assert_array_equal(dst, np.full(dst.shape, value[0]))


@examples(30)
@given(arrays=problem(["float32", "int64"], 1))
def test_in_place(lib, arrays):
    (x,) = arrays
    want = (x.astype(np.float32) * np.float32(3)).astype(x.dtype)
    code = CODES.index("float32")
    assert lib.run(OPS["scaled"], code, code, views(x, x), 1, address(np.array([3], np.float32))) == 0
    np.testing.assert_array_equal(x, want)


@pytest.mark.parametrize("shape", [(700, 900), (3, 50000), (50000, 3), (64, 40, 50), (1, 200000)])
def test_large(lib, shape):
    """Sizes that are split over threads, in the layouts that take different walks."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=shape)
    y = rng.normal(size=shape[::-1]).T
    row, column = rng.normal(size=shape[-1:]), rng.normal(size=shape[:-1] + (1,))
    code = CODES.index("float64")
    for a, b in ((x, x), (x, y), (y, x), (x, np.broadcast_to(row, shape)), (x, np.broadcast_to(column, shape)),
                 (x[..., ::-1], y), (x.astype(np.float32), y)):
        out = np.zeros(shape)
        assert lib.run(OPS["add"], code, code, views(out, a, b), 2, None) == 0
        np.testing.assert_array_equal(out, a + b)
        twin = np.zeros(shape, np.float32)
        lib.copy(views(twin, b))
        np.testing.assert_array_equal(twin, b.astype(np.float32))
        flipped = np.zeros(shape[::-1]).T
        lib.copy(views(flipped, b))
        np.testing.assert_array_equal(flipped, b)


def test_scalar_variants(lib):
    x, s, out = np.arange(5000.0), np.array([2.5]), np.zeros(5000)
    code = CODES.index("float64")
    scalar = np.broadcast_to(s, (5000,))
    for operands, want in (((x, scalar), 1), ((scalar, x), 1), ((scalar, scalar), 1), ((x, x), 0)):
        lib.calls()
        assert lib.run(OPS["add_scalar"], code, code, views(out, *operands), 2, None) == 0
        np.testing.assert_array_equal(out, operands[0] + operands[1])
        assert (lib.calls() > 0) == bool(want)


def test_bfloat16_arithmetic(lib):
    rng = np.random.default_rng(2)
    x = to_bf16(rng.normal(size=(40, 50)).astype(np.float32))
    y = to_bf16(rng.normal(size=(50, 40)).astype(np.float32)).T
    out = np.zeros((40, 50), np.uint16)
    assert lib.run(OPS["add"], BF16, BF16, views(out, x, y, codes=[BF16] * 3), 2, None) == 0
    y = np.ascontiguousarray(y)
    np.testing.assert_array_equal(out, to_bf16(from_bf16(x) + from_bf16(y)))
    wide = np.zeros((40, 50), np.float64)       # the half's rounding happens before widening
    assert lib.run(OPS["add"], BF16, BF16, views(wide, x, y, codes=[None, BF16, BF16]), 2, None) == 0
    np.testing.assert_array_equal(wide, from_bf16(out).astype(np.float64))


def test_many_dimensions(lib):
    x = np.arange(64.0).reshape((1,) * 20 + (2,) * 6 + (1,) * 38)
    out = np.zeros(x.shape)
    lib.copy(views(out, x))
    np.testing.assert_array_equal(out, x)
    swapped = x.swapaxes(20, 25).swapaxes(0, 22)
    out = np.zeros(swapped.shape)
    code = CODES.index("float64")
    assert lib.run(OPS["add"], code, code, views(out, swapped, swapped), 2, None) == 0
    np.testing.assert_array_equal(out, 2 * swapped)


def test_no_loop(lib):
    x = np.zeros(3, bool)
    assert lib.run(OPS["add"], 0, 0, views(x, x, x), 2, None) == 4
