// An op's formula as the elementwise kernels call it. The program defines PT_T and PT_OP (op_NAME;
// its text precedes this file).
#pragma once
#include "elementwise_args.h"
#include "walk.cuh"

namespace {

template <class T> struct unsigned_of { typedef T type; };
template <> struct unsigned_of<int8_t> { typedef uint8_t type; };
template <> struct unsigned_of<int16_t> { typedef uint16_t type; };
template <> struct unsigned_of<int32_t> { typedef uint32_t type; };
template <> struct unsigned_of<int64_t> { typedef uint64_t type; };
template <bool WRAPS, class T> struct computed { typedef typename opmath<T>::type type; };
template <class T> struct computed<true, T> {
    typedef typename unsigned_of<typename opmath<T>::type>::type type;
};

typedef PT_T T;                                             // elements
typedef computed<PT_OP::wraps, T>::type C;                  // the type of computation
enum { NIN = PT_OP::ninputs };

struct Inputs { C x[NIN]; };

// A template, so that only the branch of N inputs is compiled.
template <int N, class In> PT_DEVICE auto formula(const Params<C> &p, const In &in) {
    if constexpr (N == 1) return apply<PT_OP, C>(p, in.x[0]);
    else if constexpr (N == 2) return apply<PT_OP, C>(p, in.x[0], in.x[1]);
    else if constexpr (N == 3) return apply<PT_OP, C>(p, in.x[0], in.x[1], in.x[2]);
    else if constexpr (N == 4) return apply<PT_OP, C>(p, in.x[0], in.x[1], in.x[2], in.x[3]);
    else return apply<PT_OP, C>(p, in.x[0], in.x[1], in.x[2], in.x[3], in.x[4]);
}

typedef decltype(formula<NIN>(Params<C>(nullptr, 0), Inputs())) Result;

// The type in which a result is stored: a float result of half types in T, all else as it is.
template <class R, class S> struct stored { typedef R type; };
template <> struct stored<float, half> { typedef half type; };
template <> struct stored<float, bfloat16> { typedef bfloat16 type; };
typedef stored<Result, T>::type Out;

// A number that is passed by value: its bytes are the same in C as in the signed type.
PT_DEVICE C number(const ElementwiseArgs &a, int k) {
    return *reinterpret_cast<const C *>(a.values[k]);
}

}  // namespace
