// Integer and bit functions of formulas, and the real type that belongs to a type.
#pragma once
#include "ptcore/config.h"
#include "ptcore/complex.h"
#include "ptcore/scalar.h"

namespace pt {
namespace {

template <class T> struct RealOf { using type = T; };
template <class T> struct RealOf<complex<T>> { using type = T; };
template <class T> using real_of = typename RealOf<T>::type;

PT_INLINE bool bitwise_not(bool x) { return !x; }
template <class T> PT_INLINE T bitwise_not(T x) { return T(~x); }

// sgn: complex.h has it for complex numbers; for real numbers it is the sign.
template <class T> PT_INLINE T sgn(T x) { return sign(x); }

// A shift by a negative number, or by at least the width, shifts all bits out.
// Branch-free, so that loops vectorise.
template <class T> PT_INLINE T left_shift(T x, T y) {
    typedef typename wrapping<T>::type U;
    const U last = U(sizeof(T) * 8 - 1), n = U(y);
    const T shifted = T(U(x) << (n & last));
    return n <= last ? shifted : T(0);
}
template <class T> PT_INLINE T right_shift(T x, T y) {
    typedef typename wrapping<T>::type U;
    const U last = U(sizeof(T) * 8 - 1), n = U(y);
    const T shifted = T(x >> (n <= last ? n : last));
    return T(-1) > T(0) && n > last ? T(0) : shifted;
}

// gcd of absolute values; the lowest integer counts as the positive number of its magnitude.
template <class U> PT_INLINE U unsigned_gcd(U x, U y) {
    while (y != U(0)) {
        U r = U(x % y);
        x = y;
        y = r;
    }
    return x;
}
template <class T> PT_INLINE typename wrapping<T>::type magnitude(T x) {
    typedef typename wrapping<T>::type U;
    return x < T(0) ? U(0) - U(x) : U(x);
}
template <class T> PT_INLINE T gcd(T x, T y) { return T(unsigned_gcd(magnitude(x), magnitude(y))); }
template <class T> PT_INLINE T lcm(T x, T y) {
    typedef typename wrapping<T>::type U;
    U a = magnitude(x), b = magnitude(y), g = unsigned_gcd(a, b);
    return g == U(0) ? T(0) : T(a / g * b);
}

// The angle of a real number: 0 or pi; complex.h has it for complex numbers.
PT_INLINE float angle(float x) { return x != x ? x : x < 0 ? 3.1415927410125732f : 0.f; }
PT_INLINE double angle(double x) { return x != x ? x : x < 0 ? 3.141592653589793 : 0.; }

}  // namespace
}  // namespace pt
