// The contiguous loops that a generated formula is put into. Input and output may be the
// same array (in place) or disjoint, nothing between: hence ivdep.
#pragma once
#include <cstdint>
#include <utility>

#include "ptcore/config.h"
#include "ptcore/formula.h"
#include "ptcore/kernel.h"

// PT_FLOAT marks loops compiled at every ISA level, PT_BASE those of the base level alone.
#define PT_FLOAT(...) (__VA_ARGS__)
#ifdef PT_ISA_IS_BASE
#define PT_BASE(...) (__VA_ARGS__)
#else
#define PT_BASE(...) nullptr
#endif

namespace {

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
