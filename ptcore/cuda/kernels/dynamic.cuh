// Elements of a dtype (a code of ptcore/kernel.h) that is known only when the kernel runs.
#pragma once
#include "base.cuh"

namespace {

template <class T> PT_DEVICE T plain(T x) { return x; }
PT_DEVICE bool plain(pt::boolean x) { return x.v != 0; }

#define PT_EACH_DTYPE(X)                                                                   \
    X(0, pt::boolean)                                                                      \
    X(1, uint8_t) X(2, int8_t) X(3, uint16_t) X(4, int16_t) X(5, uint32_t) X(6, int32_t)   \
        X(7, uint64_t) X(8, int64_t) X(9, half) X(10, bfloat16) X(11, float) X(12, double) \
            X(13, complex64) X(14, complex128)

template <class T> PT_DEVICE T load_from(const char *p, int dtype) {
    switch (dtype) {
#define PT_CASE(code, F) \
    case code:           \
        return plain(pt::element<F, typename raw<T>::type>::cast(*reinterpret_cast<const F *>(p)));
        PT_EACH_DTYPE(PT_CASE)
#undef PT_CASE
    default: return T();
    }
}

template <class T> PT_DEVICE typename raw<T>::type as_raw(T x) { return x; }
PT_DEVICE pt::boolean as_raw(bool x) { return pt::boolean{(uint8_t)x}; }

template <class T> PT_DEVICE void store_to(char *p, int dtype, T x) {
    switch (dtype) {
#define PT_CASE(code, To)                                                                     \
    case code:                                                                                \
        *reinterpret_cast<To *>(p) = pt::element<typename raw<T>::type, To>::cast(as_raw(x)); \
        break;
        PT_EACH_DTYPE(PT_CASE)
#undef PT_CASE
    default: break;
    }
}

}  // namespace
