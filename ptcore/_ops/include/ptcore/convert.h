/* Conversion of one element between any two dtypes: element<From, To>::cast(x). The CPU's loops
 * and CUDA compile the same text.
 *
 * Floats become integers by truncation; beyond int64, and for NaN, the smallest int64 results.
 * Integers wrap. Complex to real takes the real part; to bool is != 0. `boolean` is a byte of bool
 * memory: read as 0 or 1 whatever its bits are.
 */
#ifndef PTCORE_CONVERT_H
#define PTCORE_CONVERT_H
#include "complex.h"
#include "half.h"

namespace pt { namespace {

struct boolean { uint8_t v; };

/* As x86 converts: the smallest int64 for NaN and for values beyond int64. */
PT_INLINE int64_t to_int64(double x) {
    return x >= -9223372036854775808.0 && x < 9223372036854775808.0 ? (int64_t)x
                                                                    : (int64_t)((uint64_t)1 << 63);
}
PT_INLINE uint64_t to_uint64(double x) {
    return x >= 9223372036854775808.0 && x < 18446744073709551616.0
               ? (uint64_t)(int64_t)(x - 9223372036854775808.0) ^ ((uint64_t)1 << 63)
               : (uint64_t)to_int64(x);
}

/* Widens a value to the type from which it is converted. */
PT_INLINE float value(half x) { return to_float(x); }
PT_INLINE float value(bfloat16 x) { return to_float(x); }
PT_INLINE uint8_t value(boolean x) { return x.v != 0; }
template<class T> PT_INLINE T value(T x) { return x; }
template<class T> PT_INLINE T value(complex<T> x) { return x.re; }

template<class To> struct convert {                     /* integers */
    template<class F> static PT_INLINE To from(F x) { return (To)x; }
    static PT_INLINE To from(float x) { return (To)to_int64(x); }
    static PT_INLINE To from(double x) { return (To)to_int64(x); }
};
template<> struct convert<uint64_t> {
    template<class F> static PT_INLINE uint64_t from(F x) { return (uint64_t)x; }
    static PT_INLINE uint64_t from(float x) { return to_uint64(x); }
    static PT_INLINE uint64_t from(double x) { return to_uint64(x); }
};
template<> struct convert<boolean> {
    template<class F> static PT_INLINE boolean from(F x) { return {(uint8_t)(x != F(0))}; }
};
template<> struct convert<float> {
    template<class F> static PT_INLINE float from(F x) { return (float)x; }
};
template<> struct convert<double> {
    template<class F> static PT_INLINE double from(F x) { return (double)x; }
};
template<> struct convert<half> {
    template<class F> static PT_INLINE half from(F x) { return to_half((float)x); }
};
template<> struct convert<bfloat16> {
    template<class F> static PT_INLINE bfloat16 from(F x) { return to_bfloat16((float)x); }
};

template<class F, class To> struct element {
    static PT_INLINE To cast(F x) { return convert<To>::from(value(x)); }
};
template<class F, class T> struct element<F, complex<T>> {
    static PT_INLINE complex<T> cast(F x) { return complex<T>(convert<T>::from(value(x))); }
};
template<class F, class T> struct element<complex<F>, complex<T>> {
    static PT_INLINE complex<T> cast(complex<F> x) { return complex<T>((T)x.re, (T)x.im); }
};
template<class F> struct element<complex<F>, boolean> {
    static PT_INLINE boolean cast(complex<F> x) { return {(uint8_t)((x.re != 0) | (x.im != 0))}; }
};

}}  /* namespace pt, unnamed */
#endif
