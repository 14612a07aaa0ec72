// The contiguous loops that a generated formula is put into. Input and output may be the
// same array (in place) or disjoint, nothing between: hence ivdep.
#pragma once
#include <cstdint>
#include <utility>

#include "ptcore/config.h"
#include "ptcore/kernel.h"
#include "ptcore/scalar.h"
#include "ptcore/scalar_int.h"

// PT_FLOAT marks loops compiled at every ISA level, PT_BASE those of the base level alone.
#define PT_FLOAT(...) (__VA_ARGS__)
#ifdef PT_ISA_IS_BASE
#define PT_BASE(...) (__VA_ARGS__)
#else
#define PT_BASE(...) nullptr
#endif

namespace {

template <class T> struct OpMath { using type = T; };
template <> struct OpMath<bool> { using type = uint64_t; };
template <> struct OpMath<uint8_t> { using type = uint64_t; };
template <> struct OpMath<uint16_t> { using type = uint64_t; };
template <> struct OpMath<uint32_t> { using type = uint64_t; };
template <> struct OpMath<int8_t> { using type = int64_t; };
template <> struct OpMath<int16_t> { using type = int64_t; };
template <> struct OpMath<int32_t> { using type = int64_t; };

template <class T> struct Params {
    T p[4];
    explicit Params(const void *raw, int n) : p{} {
        const auto *q = static_cast<const typename OpMath<T>::type *>(raw);
        for (int i = 0; i < n; i++) p[i] = static_cast<T>(q[i]);
    }
};

template <class Op, class T, class... X>
PT_INLINE auto apply(const Params<T> &p, X... x) {
    if constexpr (Op::nparams == 0) return Op::template apply<T>(x...);
    else if constexpr (Op::nparams == 1) return Op::template apply<T>(x..., p.p[0]);
    else if constexpr (Op::nparams == 2) return Op::template apply<T>(x..., p.p[0], p.p[1]);
    else return Op::template apply<T>(x..., p.p[0], p.p[1], p.p[2]);
}

// A byte of bool memory may have any value (memory of others, memory not yet written); as a C++
// bool only 0 and 1 may be read.
template <class T> PT_INLINE T at(const T *x, int64_t i) { return x[i]; }
PT_INLINE bool at(const bool *x, int64_t i) { return reinterpret_cast<const uint8_t *>(x)[i] != 0; }

template <class Op, class T> void loop1(char *const *ptr, int64_t n, const void *params) {
    const Params<T> p(params, Op::nparams);
    using R = decltype(apply<Op, T>(p, T()));
    R *out = reinterpret_cast<R *>(ptr[0]);
    const T *x = reinterpret_cast<const T *>(ptr[1]);
    PT_IVDEP
    for (int64_t i = 0; i < n; i++) out[i] = apply<Op, T>(p, at(x, i));
}

template <class Op, class T> void loop2(char *const *ptr, int64_t n, const void *params) {
    const Params<T> p(params, Op::nparams);
    using R = decltype(apply<Op, T>(p, T(), T()));
    R *out = reinterpret_cast<R *>(ptr[0]);
    const T *x = reinterpret_cast<const T *>(ptr[1]);
    const T *y = reinterpret_cast<const T *>(ptr[2]);
    PT_IVDEP
    for (int64_t i = 0; i < n; i++) out[i] = apply<Op, T>(p, at(x, i), at(y, i));
}

template <class Op, class T> void loop3(char *const *ptr, int64_t n, const void *params) {
    const Params<T> p(params, Op::nparams);
    using R = decltype(apply<Op, T>(p, T(), T(), T()));
    R *out = reinterpret_cast<R *>(ptr[0]);
    const T *x = reinterpret_cast<const T *>(ptr[1]);
    const T *y = reinterpret_cast<const T *>(ptr[2]);
    const T *z = reinterpret_cast<const T *>(ptr[3]);
    PT_IVDEP
    for (int64_t i = 0; i < n; i++) out[i] = apply<Op, T>(p, at(x, i), at(y, i), at(z, i));
}

template <class Op, class T> void loop4(char *const *ptr, int64_t n, const void *params) {
    const Params<T> p(params, Op::nparams);
    using R = decltype(apply<Op, T>(p, T(), T(), T(), T()));
    R *out = reinterpret_cast<R *>(ptr[0]);
    const T *x = reinterpret_cast<const T *>(ptr[1]);
    const T *y = reinterpret_cast<const T *>(ptr[2]);
    const T *z = reinterpret_cast<const T *>(ptr[3]);
    const T *w = reinterpret_cast<const T *>(ptr[4]);
    PT_IVDEP
    for (int64_t i = 0; i < n; i++) out[i] = apply<Op, T>(p, at(x, i), at(y, i), at(z, i), at(w, i));
}

template <class Op, class T> void loop_vs(char *const *ptr, int64_t n, const void *params) {
    const Params<T> p(params, Op::nparams);
    using R = decltype(apply<Op, T>(p, T(), T()));
    R *out = reinterpret_cast<R *>(ptr[0]);
    const T *x = reinterpret_cast<const T *>(ptr[1]);
    const T y = at(reinterpret_cast<const T *>(ptr[2]), 0);
    PT_IVDEP
    for (int64_t i = 0; i < n; i++) out[i] = apply<Op, T>(p, at(x, i), y);
}

template <class Op, class T> void loop_sv(char *const *ptr, int64_t n, const void *params) {
    const Params<T> p(params, Op::nparams);
    using R = decltype(apply<Op, T>(p, T(), T()));
    R *out = reinterpret_cast<R *>(ptr[0]);
    const T x = at(reinterpret_cast<const T *>(ptr[1]), 0);
    const T *y = reinterpret_cast<const T *>(ptr[2]);
    PT_IVDEP
    for (int64_t i = 0; i < n; i++) out[i] = apply<Op, T>(p, x, at(y, i));
}

}  // namespace
