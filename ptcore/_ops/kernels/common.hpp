/* What every structured CPU kernel needs: the dtype switch, errors, scratch memory, strided
 * iteration and the fetch that turns any layout and half type into a contiguous tile.
 *
 * Invariants
 *  - Everything is in an anonymous namespace: a kernel file is compiled once per ISA level and no
 *    function of one level may be linked into another. Hence no standard containers or algorithms,
 *    whose instantiations would be merged between levels.
 * Nothing throws; failed allocations give PT_MEMORY_ERROR.
 *  - Work is cut at boundaries that depend on shapes only, so results do not depend on the
 *    number of threads.
 */
#ifndef PTCORE_KERNELS_COMMON_HPP
#define PTCORE_KERNELS_COMMON_HPP
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <type_traits>
#include <utility>

#include "ptcore/complex.h"
#include "ptcore/config.h"
#include "ptcore/half.h"
#include "ptcore/kernel.h"
#include "ptcore/scalar.h"

#include "parallel.hpp"

namespace {

using pt::bfloat16;
using pt::half;
using pt::parallel_for;
using complex64 = pt::complex<float>;
using complex128 = pt::complex<double>;

/* ---- dtypes ------------------------------------------------------------------------------ */

template <class T>
struct type_tag {
    using type = T;
};
#define PT_TYPE(tag) typename decltype(tag)::type

template <class A, class B>
constexpr bool is_same = std::is_same<A, B>::value;

template <class T>
constexpr bool is_complex = is_same<T, complex64> || is_same<T, complex128>;
template <class T>
constexpr bool is_half = is_same<T, half> || is_same<T, bfloat16>;
template <class T>
constexpr bool is_float = is_same<T, float> || is_same<T, double> || is_half<T>;

template <class T> struct real_of { using type = T; };
template <> struct real_of<complex64> { using type = float; };
template <> struct real_of<complex128> { using type = double; };
template <class T> using real_type = typename real_of<T>::type;

/* sets of dtypes: bit i is dtype code i */
constexpr uint32_t bit(int dtype) { return PT_BIT(dtype); }
constexpr uint32_t BOOL = PT_KIND_BOOL;
constexpr uint32_t INTEGERS = PT_KIND_INTEGRAL;
constexpr uint32_t HALVES = bit(PT_FLOAT16) | bit(PT_BFLOAT16);
constexpr uint32_t FLOATS = PT_KIND_FLOATING & ~PT_KIND_STORED;
constexpr uint32_t COMPLEXES = PT_KIND_COMPLEX & ~PT_KIND_STORED;
constexpr uint32_t REALS = BOOL | INTEGERS | FLOATS;
constexpr uint32_t ALL = REALS | COMPLEXES;

const int ITEMSIZE[PT_NDTYPES] = {1, 1, 1, 2,  2, 4, 4, 8, 8, 2, 2,
                                  4, 8, 8, 16, 1, 1, 1, 1, 1, 4};
const char *const DTYPE_NAME[PT_NDTYPES] = {"bool",
                                            "uint8",
                                            "int8",
                                            "uint16",
                                            "int16",
                                            "uint32",
                                            "int32",
                                            "uint64",
                                            "int64",
                                            "float16",
                                            "bfloat16",
                                            "float32",
                                            "float64",
                                            "complex64",
                                            "complex128",
                                            "float8_e4m3fn",
                                            "float8_e5m2",
                                            "float8_e4m3fnuz",
                                            "float8_e5m2fnuz",
                                            "float8_e8m0fnu",
                                            "complex32"};

/* ---- errors ------------------------------------------------------------------------------ */

inline int fail(pt_call *call, int status, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(call->error, sizeof call->error, format, args);
    va_end(args);
    return status;
}
inline int no_memory(pt_call *call, int64_t bytes) {
    return fail(call, PT_MEMORY_ERROR, "could not allocate %lld bytes of scratch memory",
                (long long)bytes);
}
inline int bad_dtype(pt_call *call, int dtype) {
    return fail(call, PT_RUNTIME_ERROR, "not implemented for dtype %s",
                dtype < PT_NDTYPES ? DTYPE_NAME[dtype] : "none");
}

/* An element of bool memory as a number, 0 or 1: every byte that is not zero counts as true, as
 * foreign memory may hold any bytes. */
struct boolean {
    uint8_t value;
    int truth() const { return value != 0; }
    friend boolean operator+(boolean a, boolean b) { return {uint8_t((a.value | b.value) != 0)}; }
    friend boolean operator*(boolean a, boolean b) { return {uint8_t(a.truth() & b.truth())}; }
};

/* Calls f(type_tag<T>) for the C++ type of `dtype`, which must be in SET. bool is
 * passed as uint8, which suits moves and truth tests; code that counts or orders
 * bools reads them as `boolean`. */
template <uint32_t SET, class F>
inline int visit(pt_call *call, int dtype, F &&f) {
    switch (dtype) {
#define PT_CASE(code, T)                                   \
    case code:                                             \
        if constexpr ((SET >> code & 1) != 0)              \
            return f(type_tag<T>{});                       \
        else                                               \
            break;
        PT_CASE(PT_BOOL, uint8_t)
        PT_CASE(PT_UINT8, uint8_t)
        PT_CASE(PT_INT8, int8_t)
        PT_CASE(PT_UINT16, uint16_t)
        PT_CASE(PT_INT16, int16_t)
        PT_CASE(PT_UINT32, uint32_t)
        PT_CASE(PT_INT32, int32_t)
        PT_CASE(PT_UINT64, uint64_t)
        PT_CASE(PT_INT64, int64_t)
        PT_CASE(PT_FLOAT16, half)
        PT_CASE(PT_BFLOAT16, bfloat16)
        PT_CASE(PT_FLOAT32, float)
        PT_CASE(PT_FLOAT64, double)
        PT_CASE(PT_COMPLEX64, complex64)
        PT_CASE(PT_COMPLEX128, complex128)
#undef PT_CASE
    default: break;
    }
    return bad_dtype(call, dtype);
}

/* Calls f(type_tag<T>) with an unsigned type of the dtype's size, for code that only moves data. */
struct block16 { uint64_t word[2]; };
template <class F>
inline int visit_size(pt_call *call, int dtype, F &&f) {
    if (dtype >= PT_NDTYPES) return bad_dtype(call, dtype);
    switch (ITEMSIZE[dtype]) {
    case 1: return f(type_tag<uint8_t>{});
    case 2: return f(type_tag<uint16_t>{});
    case 4: return f(type_tag<uint32_t>{});
    case 8: return f(type_tag<uint64_t>{});
    default: return f(type_tag<block16>{});
    }
}

/* ---- numbers ----------------------------------------------------------------------------- */

inline int64_t min64(int64_t a, int64_t b) { return a < b ? a : b; }
inline int64_t max64(int64_t a, int64_t b) { return a > b ? a : b; }
inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

/* conversion between element types; complex to real takes the real part */
template <class To, class From>
inline To convert(From x) {
    if constexpr (is_same<To, From>) return x;
    else if constexpr (is_same<From, boolean>) return convert<To>(x.truth());
    else if constexpr (is_same<To, boolean>) return {uint8_t(x != From(0))};
    else if constexpr (is_complex<To>) {
        using R = real_type<To>;
        if constexpr (is_complex<From>) return To{R(x.re), R(x.im)};
        else return To{convert<R>(x), R(0)};
    }
    else if constexpr (is_complex<From>) return convert<To>(x.re);
    else if constexpr (is_half<From>) return convert<To>(pt::to_float(x));
    else if constexpr (is_same<To, half>) return pt::to_half(float(x));
    else if constexpr (is_same<To, bfloat16>) return pt::to_bfloat16(float(x));
    else return To(x);
}

/* a parameter as a value of T: an int parameter keeps all 64 bits */
template <class T>
inline T scalar(const pt_param &p) {
    using R = real_type<T>;
    if constexpr (is_complex<T>) return T{R(p.d), R(p.kind == PT_PARAM_COMPLEX ? p.im : 0.0)};
    else if constexpr (is_float<T>) return convert<T>(p.d);
    else return p.kind == PT_PARAM_INT ? T(p.i) : T(int64_t(p.d));
}

/* whether scalar<T> has a value: integers have none for NaN and for what 64 bits do not hold */
template <class T>
inline bool has_scalar(const pt_param &p) {
    if constexpr (is_complex<T> || is_float<T> || is_same<T, boolean>) return true;
    else return p.kind == PT_PARAM_INT || (p.d > -0x1p63 && p.d < 0x1p63);
}

inline int no_scalar(pt_call *call, const char *name, const pt_param &p) {
    return fail(call, PT_RUNTIME_ERROR,
                "%s: value %g cannot be converted to an integer without overflow", name, p.d);
}

/* type in which elements of T are computed */
template <class T> struct compute_type { using type = T; };
template <> struct compute_type<half> { using type = float; };
template <> struct compute_type<bfloat16> { using type = float; };
template <class T> using compute = typename compute_type<T>::type;

inline int64_t wrap_dim(int64_t dim, int64_t ndim) { return dim < 0 ? dim + ndim : dim; }

/* typed data pointers of the i-th input and output */
template <class T>
inline const T *input(const pt_call *call, int i = 0) {
    return reinterpret_cast<const T *>(call->in[i].data);
}
template <class T>
inline T *output(const pt_call *call, int i = 0) {
    return reinterpret_cast<T *>(call->out[i].data);
}

/* ---- memory ------------------------------------------------------------------------------ */

/* uninitialised scratch memory, 64-byte aligned; false if the allocation failed */
template <class T>
struct scratch {
    explicit scratch(int64_t count) : raw(nullptr), data(nullptr) {
        if (count == 0) {
            data = reinterpret_cast<T *>(this);         /* not null; never read */
            return;
        }
        if (count < 0 || uint64_t(count) > (SIZE_MAX / 2 - 64) / sizeof(T)) return;
        raw = static_cast<char *>(malloc(size_t(count) * sizeof(T) + 64));
        if (raw)
            data = reinterpret_cast<T *>((reinterpret_cast<uintptr_t>(raw) + 63) & ~uintptr_t(63));
    }
    ~scratch() { free(raw); }
    scratch(const scratch &) = delete;
    scratch &operator=(const scratch &) = delete;
    explicit operator bool() const { return data != nullptr; }
    T &operator[](int64_t i) const { return data[i]; }
    char *raw;
    T *data;
};

/* ---- strided iteration ------------------------------------------------------------------- */

/* Index space walked by K operands, outermost dim first. push() drops dims of size 1 and merges a
 * dim into the one before it wherever all operands allow that. */
template <int K>
struct space {
    int ndim = 0;
    int64_t size[PT_MAX_DIM];
    int64_t stride[K][PT_MAX_DIM];

    void push(int64_t n, const int64_t (&s)[K]) {
        if (n == 1) return;
        if (ndim > 0) {
            bool merge = true;
            for (int k = 0; k < K; ++k) merge = merge && stride[k][ndim - 1] == n * s[k];
            if (merge) {
                size[ndim - 1] *= n;
                for (int k = 0; k < K; ++k) stride[k][ndim - 1] = s[k];
                return;
            }
        }
        size[ndim] = n;
        for (int k = 0; k < K; ++k) stride[k][ndim] = s[k];
        ++ndim;
    }
    int64_t numel() const {
        int64_t n = 1;
        for (int d = 0; d < ndim; ++d) n *= size[d];
        return n;
    }
    /* removes the innermost dim and returns its size (size 1, strides 0 if there is none) */
    int64_t pop(int64_t (&s)[K]) {
        for (int k = 0; k < K; ++k) s[k] = 0;
        if (ndim == 0) return 1;
        --ndim;
        for (int k = 0; k < K; ++k) s[k] = stride[k][ndim];
        return size[ndim];
    }
};

/* A position in a space: offsets of all operands, advanced without division. */
template <int K>
struct cursor {
    const space<K> &in;
    int64_t index[PT_MAX_DIM];
    int64_t offset[K];

    cursor(const space<K> &s, int64_t linear) : in(s) { seek(linear); }
    void seek(int64_t linear) {
        for (int k = 0; k < K; ++k) offset[k] = 0;
        for (int d = in.ndim - 1; d >= 0; --d) {
            index[d] = in.size[d] ? linear % in.size[d] : 0;
            linear = in.size[d] ? linear / in.size[d] : 0;
            for (int k = 0; k < K; ++k) offset[k] += index[d] * in.stride[k][d];
        }
    }
    void next() {
        for (int d = in.ndim - 1; d >= 0; --d) {
            for (int k = 0; k < K; ++k) offset[k] += in.stride[k][d];
            if (++index[d] < in.size[d]) return;
            for (int k = 0; k < K; ++k) offset[k] -= in.stride[k][d] * in.size[d];
            index[d] = 0;
        }
    }
};

/* dst[0...n) = converted elements of src, which are `stride` apart */
template <class A, class T>
inline void load(A *PT_RESTRICT dst, const T *PT_RESTRICT src, int64_t stride, int64_t n) {
    if (stride == 1) {
        if constexpr (is_same<A, T>) memcpy(dst, src, size_t(n) * sizeof(T));
        else if constexpr (is_same<T, half> && is_same<A, float>)
            pt::half_row_to_float(src, dst, n);
        else
            for (int64_t i = 0; i < n; ++i) dst[i] = convert<A>(src[i]);
    }
    else if (stride == -1)
        for (int64_t i = 0; i < n; ++i) dst[i] = convert<A>(src[-i]);
    else
        for (int64_t i = 0; i < n; ++i) dst[i] = convert<A>(src[i * stride]);
}
template <class T, class A>
inline void store(T *PT_RESTRICT dst, const A *PT_RESTRICT src, int64_t n) {
    if constexpr (is_same<T, half> && is_same<A, float>) pt::float_row_to_half(src, dst, n);
    else
        for (int64_t i = 0; i < n; ++i) dst[i] = convert<T>(src[i]);
}

/* dst[0...n) = 1 where an element is not zero (NaN counts), else 0 */
template <class T>
inline void fetch_truth(void *to, const void *from, int64_t stride, int64_t n) {
    uint8_t *PT_RESTRICT dst = static_cast<uint8_t *>(to);
    const T *PT_RESTRICT src = static_cast<const T *>(from);
    for (int64_t i = 0; i < n; ++i) {
        const T x = src[i * stride];
        if constexpr (is_complex<T>) dst[i] = uint8_t(x.re != 0) | uint8_t(x.im != 0);
        else if constexpr (is_half<T>) dst[i] = pt::to_float(x) != 0;
        else dst[i] = x != 0;
    }
}

/* one element of a floating tensor, `offset` elements from its first */
PT_NOINLINE double get_real(const pt_view &v, int64_t offset) {
    switch (v.dtype) {
    case PT_FLOAT16: return double(pt::to_float(reinterpret_cast<const half *>(v.data)[offset]));
    case PT_BFLOAT16:
        return double(pt::to_float(reinterpret_cast<const bfloat16 *>(v.data)[offset]));
    case PT_FLOAT32: return double(reinterpret_cast<const float *>(v.data)[offset]);
    default: return reinterpret_cast<const double *>(v.data)[offset];
    }
}
PT_NOINLINE void put_real(const pt_view &v, int64_t offset, double x) {
    switch (v.dtype) {
    case PT_FLOAT16: reinterpret_cast<half *>(v.data)[offset] = convert<half>(x); break;
    case PT_BFLOAT16: reinterpret_cast<bfloat16 *>(v.data)[offset] = convert<bfloat16>(x); break;
    case PT_FLOAT32: reinterpret_cast<float *>(v.data)[offset] = float(x); break;
    default: reinterpret_cast<double *>(v.data)[offset] = x; break;
    }
}
/* whether an optional tensor or output is present */
inline bool present(const pt_view &v) { return v.dtype != PT_NONE && v.data; }

/* Elements in one parallel chunk: about 10 us of a light loop. */
constexpr int64_t GRAIN = 32768;
inline int64_t grain_rows(int64_t row_cost) { return max64(1, GRAIN / max64(1, row_cost)); }

/* dst = the elements of v in row-major order */
template <class T>
inline void copy_contiguous(T *dst, const pt_view &v) {
    const T *src = reinterpret_cast<const T *>(v.data);
    space<1> outer;
    for (int d = 0; d < v.ndim; ++d) outer.push(v.sizes[d], {v.strides[d]});
    int64_t step[1];
    const int64_t n = outer.pop(step), rows = outer.numel();
    if (v.numel == 0) return;
    parallel_for(rows, grain_rows(n), [&](int64_t begin, int64_t end) {
        cursor<1> at(outer, begin);
        for (int64_t r = begin; r < end; ++r, at.next())
            load(dst + r * n, src + at.offset[0], n == 1 ? 1 : step[0], n);
    });
}

/* For kernels that start from a copy of the input: in a call in place the output is the input. */
template <class T>
inline void copy_unless_same(T *dst, const pt_view &v) {
    if (reinterpret_cast<const T *>(v.data) != dst) copy_contiguous(dst, v);
}

} // namespace
#endif
