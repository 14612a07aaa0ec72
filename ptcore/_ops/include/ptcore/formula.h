// How a generated formula is called: op_NAME::apply with its parameters, which have the op-math
// type of the compute dtype. The CPU's loops and CUDA compile the same text.
#pragma once
#include "ptcore/config.h"
#include "ptcore/scalar.h"
#include "ptcore/scalar_int.h"

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
    PT_HOST_DEVICE explicit Params(const void *raw, int n) : p{} {
        const auto *q = static_cast<const typename OpMath<T>::type *>(raw);
        for (int i = 0; i < n; i++) p[i] = static_cast<T>(q[i]);
    }
};

// The branch-free formula of an op that is in_blocks; it gives NaN where it is not valid.
template <class Op, class T, class... X>
PT_INLINE auto apply_fast(const Params<T> &p, X... x) {
    if constexpr (Op::nparams == 0) return Op::template fast<T>(x...);
    else if constexpr (Op::nparams == 1) return Op::template fast<T>(x..., p.p[0]);
    else return Op::template fast<T>(x..., p.p[0], p.p[1]);
}

template <class Op, class T, class... X>
PT_INLINE auto apply(const Params<T> &p, X... x) {
    if constexpr (Op::nparams == 0) return Op::template apply<T>(x...);
    else if constexpr (Op::nparams == 1) return Op::template apply<T>(x..., p.p[0]);
    else if constexpr (Op::nparams == 2) return Op::template apply<T>(x..., p.p[0], p.p[1]);
    else return Op::template apply<T>(x..., p.p[0], p.p[1], p.p[2]);
}

}  // namespace

// The namespace of the functions that formulas call; CUDA programs define another.
#ifndef PT_MATH
#  define PT_MATH pt
#endif
