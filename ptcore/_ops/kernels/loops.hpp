// The contiguous loops around a generated formula. Input and output are the same array (in place)
// or disjoint, never partly overlapping: hence ivdep.
#pragma once
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "ptcore/config.h"
#include "ptcore/formula.h"
#include "loops.h"

// PT_FLOAT marks loops compiled at every ISA level, PT_BASE loops of the base level alone.
#define PT_FLOAT(...) (__VA_ARGS__)
#ifdef PT_ISA_IS_BASE
#define PT_BASE(...) (__VA_ARGS__)
#else
#define PT_BASE(...) nullptr
#endif

namespace {

// A byte of bool memory may have any value (foreign memory, memory not yet written), but a C++ bool
// may only be read if it is 0 or 1.
template <class T> PT_INLINE T at(const T *x, int64_t i) { return x[i]; }
PT_INLINE bool at(const bool *x, int64_t i) { return reinterpret_cast<const uint8_t *>(x)[i] != 0; }

// out[i] by the branch-free formula; a block with a NaN result is repeated with the exact one. The
// block has memory of its own, since the output may be an input.
template <class T, class Fast, class Exact> PT_INLINE void run_blocks(T *out, int64_t n, Fast fast,
                                                                      Exact exact) {
    T block[256];
    for (int64_t i = 0; i < n; i += 256) {
        const int64_t m = n - i < 256 ? n - i : 256;
        PT_IVDEP
        for (int64_t j = 0; j < m; j++) block[j] = fast(i + j);
        int bad = 0;
        for (int64_t j = 0; j < m; j++) bad |= block[j] != block[j];
        if (PT_UNLIKELY(bad)) for (int64_t j = 0; j < m; j++) block[j] = exact(i + j);
        std::memcpy(out + i, block, size_t(m) * sizeof(T));
    }
}

template <class Op, class T> void loop1(char *const *ptr, int64_t n, const void *params) {
    const Params<T> p(params, Op::nparams);
    using R = decltype(apply<Op, T>(p, T()));
    R *out = reinterpret_cast<R *>(ptr[0]);
    const T *x = reinterpret_cast<const T *>(ptr[1]);
    if constexpr (Op::in_blocks && std::is_floating_point_v<T>) {
        return run_blocks(out, n, [&](int64_t i) { return apply_fast<Op, T>(p, x[i]); },
                          [&](int64_t i) { return apply<Op, T>(p, x[i]); });
    }
    PT_IVDEP
    for (int64_t i = 0; i < n; i++) out[i] = apply<Op, T>(p, at(x, i));
}

template <class Op, class T> void loop2(char *const *ptr, int64_t n, const void *params) {
    const Params<T> p(params, Op::nparams);
    using R = decltype(apply<Op, T>(p, T(), T()));
    R *out = reinterpret_cast<R *>(ptr[0]);
    const T *x = reinterpret_cast<const T *>(ptr[1]);
    const T *y = reinterpret_cast<const T *>(ptr[2]);
    if constexpr (Op::in_blocks && std::is_floating_point_v<T>) {
        return run_blocks(out, n, [&](int64_t i) { return apply_fast<Op, T>(p, x[i], y[i]); },
                          [&](int64_t i) { return apply<Op, T>(p, x[i], y[i]); });
    }
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
    for (int64_t i = 0; i < n; i++)
        out[i] = apply<Op, T>(p, at(x, i), at(y, i), at(z, i), at(w, i));
}

// Calls run(y) with a literal for y where it is one of the numbers for which powers have shorter
// code.
template <class Op, class T, class Run> PT_INLINE void with_literal(T y, Run run) {
    if constexpr (Op::powers) {
        if (y == T(2)) return run(T(2));
        if (y == T(3)) return run(T(3));
        if constexpr (std::is_floating_point_v<T> || std::is_integral_v<T>) {
            if (y == T(4)) return run(T(4));
        }
        if constexpr (!std::is_integral_v<T>) {
            if (y == T(-1)) return run(T(-1));
            /* a derivative's power has the exponent less one */
            if (Op::ninputs == 2 && y == T(-2)) return run(T(-2));
        }
        if constexpr (std::is_floating_point_v<T>) {
            if (y == T(0.5)) return run(T(0.5));
            if (Op::ninputs == 2 && y == T(-0.5)) return run(T(-0.5));
            if (Op::ninputs == 3 && y == T(1.5)) return run(T(1.5));
            if (y == T(1)) return run(T(1));
        }
    }
    run(y);
}

template <class Op, class T> void loop_vs(char *const *ptr, int64_t n, const void *params) {
    const Params<T> p(params, Op::nparams);
    using R = decltype(apply<Op, T>(p, T(), T()));
    R *out = reinterpret_cast<R *>(ptr[0]);
    const T *x = reinterpret_cast<const T *>(ptr[1]);
    with_literal<Op>(at(reinterpret_cast<const T *>(ptr[2]), 0), [=](T y) PT_INLINED {
        PT_IVDEP
        for (int64_t i = 0; i < n; i++) out[i] = apply<Op, T>(p, at(x, i), y);
    });
}

// The derivative of a power by its base, for one exponent.
template <class Op, class T> void loop_vvs(char *const *ptr, int64_t n, const void *params) {
    const Params<T> p(params, Op::nparams);
    T *out = reinterpret_cast<T *>(ptr[0]);
    const T *x = reinterpret_cast<const T *>(ptr[1]);
    const T *y = reinterpret_cast<const T *>(ptr[2]);
    with_literal<Op>(*reinterpret_cast<const T *>(ptr[3]), [=](T z) PT_INLINED {
        PT_IVDEP
        for (int64_t i = 0; i < n; i++) out[i] = apply<Op, T>(p, x[i], y[i], z);
    });
}

template <class Op, class T> void loop_sv(char *const *ptr, int64_t n, const void *params) {
    const Params<T> p(params, Op::nparams);
    using R = decltype(apply<Op, T>(p, T(), T()));
    R *out = reinterpret_cast<R *>(ptr[0]);
    const T base = at(reinterpret_cast<const T *>(ptr[1]), 0);
    const T *y = reinterpret_cast<const T *>(ptr[2]);
    const auto run = [=](T x) PT_INLINED {
        PT_IVDEP
        for (int64_t i = 0; i < n; i++) out[i] = apply<Op, T>(p, x, at(y, i));
    };
    if constexpr (Op::powers) {
        if (base == T(2)) return run(T(2));
    }
    run(base);
}

}  // namespace
