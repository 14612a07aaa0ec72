/* The scalar functions in which op formulas are written, for float, double and (where it makes
 * sense) integers; complex.h adds complex<T>. CPU and CUDA compile the same text.
 *
 * Use: formula code stands in namespace pt and calls these by unqualified name; a literal is
 * cast, T(1). A simple loop over a function auto-vectorises (no branch, no call), except
 * fmod, remainder, floor_divide, the special functions in double, and sin, cos, tan, which leave
 * the vector path for |x| above a limit (see fast:: in scalar_trig.h).
 *
 * Invariants: at most 2.5 ulp (erfinv of doubles 2.6); NaN passes; infinities, signed zeros and
 * denormals are IEEE's. -ffast-math is not needed and -ffp-contract=fast is allowed: wherever a
 * rounding error is computed, its products are exact, so that contraction cannot change them.
 */
#ifndef PTCORE_SCALAR_H
#define PTCORE_SCALAR_H
#include "config.h"

namespace pt { namespace {

/* Format constants. `magic` is 1.5 * 2^mantissa: adding it to x rounds x to an integer, which is
 * then in the low bits. With the exponent's bias added, the low bits are a biased exponent. */
template<class T> struct fp;
template<> struct fp<float> {
    typedef uint32_t bits;
    static constexpr int mantissa = 23;
    static constexpr float magic = 12582912.f, exp2_magic = 12582912.f + 127.f;
    static constexpr bits sign = 0x80000000u, exponent = 0x7f800000u, one = 0x3f800000u;
    static constexpr bits sqrt_half = 0x3f3504f3u, two_to_mantissa = 0x4b000000u;
    static constexpr bits high_half = 0xfffff000u;      /* keeps 12 of 24 bits */
    static constexpr float min_normal = 1.17549435e-38f, tiny = 1.4901161e-08f;
};
template<> struct fp<double> {
    typedef uint64_t bits;
    static constexpr int mantissa = 52;
    static constexpr double magic = 6755399441055744.0, exp2_magic = 6755399441055744.0 + 1023.0;
    static constexpr bits sign = 0x8000000000000000u, exponent = 0x7ff0000000000000u,
                          one = 0x3ff0000000000000u;
    static constexpr bits sqrt_half = 0x3fe6a09e667f3bcdu, two_to_mantissa = 0x4330000000000000u;
    static constexpr bits high_half = 0xffffffff00000000u;      /* keeps 21 of 53 bits */
    static constexpr double min_normal = 2.2250738585072014e-308, tiny = 2.7755575615628914e-17;
};

template<class T> PT_INLINE T infinity() { return from_bits(fp<T>::exponent); }
template<class T> PT_INLINE T not_a_number() {
    return from_bits((typename fp<T>::bits)(
        fp<T>::exponent | (typename fp<T>::bits)1 << (fp<T>::mantissa - 1)));
}

/* c0 + x*(c1 + x*(c2 + ...)) */
template<class T> PT_INLINE T poly(T, double c) { return T(c); }
template<class T, class... C> PT_INLINE T poly(T x, double c, C... rest) {
    return T(c) + x * poly(x, rest...);
}

/* x with the low half of its significand cleared: products of two such values are exact. */
template<class T> PT_INLINE T high_half(T x) {
    return from_bits((typename fp<T>::bits)(to_bits(x) & fp<T>::high_half));
}

/* ---- sign and classification ---- */

PT_INLINE float abs(float x) { return from_bits(to_bits(x) & ~fp<float>::sign); }
PT_INLINE double abs(double x) { return from_bits(to_bits(x) & ~fp<double>::sign); }
PT_INLINE bool signbit(bool) { return false; }
template<class T> PT_INLINE bool signbit(T x) { return (to_bits(x) & fp<T>::sign) != 0; }
template<class T> PT_INLINE T copysign(T x, T y) {
    return from_bits((typename fp<T>::bits)((to_bits(x) & ~fp<T>::sign) |
                                            (to_bits(y) & fp<T>::sign)));
}
template<class T> PT_INLINE bool isnan(T x) { return x != x; }
PT_INLINE bool isinf(float x) { return abs(x) == infinity<float>(); }
PT_INLINE bool isinf(double x) { return abs(x) == infinity<double>(); }
PT_INLINE bool isfinite(float x) { return abs(x) < infinity<float>(); }
PT_INLINE bool isfinite(double x) { return abs(x) < infinity<double>(); }

/* torch's sign: 0 for NaN */
template<class T> PT_INLINE T sign(T x) { return T(x > T(0)) - T(x < T(0)); }

/* ---- roots, rounding ---- */

#if defined(__CUDACC_RTC__)
PT_INLINE float sqrt(float x) { return __fsqrt_rn(x); }
PT_INLINE double sqrt(double x) { return __dsqrt_rn(x); }
#else
PT_INLINE float sqrt(float x) { return ::sqrtf(x); }
PT_INLINE double sqrt(double x) { return ::sqrt(x); }
#endif
PT_INLINE float floor(float x) { return ::floorf(x); }
PT_INLINE double floor(double x) { return ::floor(x); }
PT_INLINE float ceil(float x) { return ::ceilf(x); }
PT_INLINE double ceil(double x) { return ::ceil(x); }
PT_INLINE float trunc(float x) { return ::truncf(x); }
PT_INLINE double trunc(double x) { return ::trunc(x); }
/* half to even */
PT_INLINE float round(float x) { return ::rintf(x); }
PT_INLINE double round(double x) { return ::rint(x); }

template<class T> PT_INLINE T frac(T x) { return x - trunc(x); }
template<class T> PT_INLINE T square(T x) { return x * x; }
template<class T> PT_INLINE T reciprocal(T x) { return T(1) / x; }
template<class T> PT_INLINE T rsqrt(T x) { return T(1) / sqrt(x); }
template<class T> PT_INLINE T relu(T x) { return x < T(0) ? T(0) : x; }

/* ---- order; minimum and maximum pass NaN on, fmin and fmax ignore it ---- */

template<class T> PT_INLINE T minimum(T x, T y) { return x < y || x != x ? x : y; }
template<class T> PT_INLINE T maximum(T x, T y) { return x > y || x != x ? x : y; }
template<class T> PT_INLINE T fmin(T x, T y) { return x < y || y != y ? x : y; }
template<class T> PT_INLINE T fmax(T x, T y) { return x > y || y != y ? x : y; }

/* In this order of operands each comparison is one machine instruction that passes NaN. */
template<class T> PT_INLINE T clamp_pass_nan(T x, T lo, T hi) {
    const T y = lo > x ? lo : x;
    return hi < y ? hi : y;
}
/* Clamps to [0, 1] through the bits: for constant limits, compilers would turn the
 * two comparisons into masks. */
PT_INLINE float clamp_to_one(float x) {
    const int32_t b = (int32_t)to_bits(x), low = b < 0 ? 0 : b, one = (int32_t)fp<float>::one;
    const float y = from_bits((uint32_t)(low > one ? one : low));
    return x == x ? y : x;
}
PT_INLINE double clamp_to_one(double x) {
    const int64_t b = (int64_t)to_bits(x), low = b < 0 ? 0 : b, one = (int64_t)fp<double>::one;
    const double y = from_bits((uint64_t)(low > one ? one : low));
    return x == x ? y : x;
}
template<class T> PT_INLINE T nan_replaced(T x, T nan, T posinf, T neginf) {
    T y = x == infinity<T>() ? posinf : x;
    y = x == -infinity<T>() ? neginf : y;
    return x != x ? nan : y;
}

/* x = mantissa * 2^exponent, mantissa in [1/2, 1); for 0, NaN and infinities x and 0 */
template<class T> PT_INLINE T frexp_bits(T x, bool *tiny) {
    *tiny = abs(x) < fp<T>::min_normal;
    return *tiny ? x * (T(4) * from_bits((typename fp<T>::bits)fp<T>::two_to_mantissa)) : x;
}
template<class T> PT_INLINE T frexp_mantissa(T x) {
    typedef typename fp<T>::bits U;
    bool tiny;
    const U half = fp<T>::one - ((U)1 << fp<T>::mantissa);
    const T y = from_bits((U)((to_bits(frexp_bits(x, &tiny)) & ~fp<T>::exponent) | half));
    return x == T(0) || !isfinite(x) ? x : y;
}
template<class T> PT_INLINE T frexp_exponent(T x) {
    typedef typename fp<T>::bits U;
    bool tiny;
    const U biased = (to_bits(frexp_bits(x, &tiny)) & fp<T>::exponent) >> fp<T>::mantissa;
    const T two_m = from_bits((U)fp<T>::two_to_mantissa),
            e = from_bits((U)(biased | fp<T>::two_to_mantissa)) - two_m;
    const T y = e - T(sizeof(T) == 4 ? 126 : 1022) - (tiny ? T(fp<T>::mantissa + 2) : T(0));
    return x == T(0) || !isfinite(x) ? T(0) : y;
}

/* x + z (y - x), computed from the nearer end. */
template<class T> PT_INLINE T between(T x, T y, T z) {
    return abs(z) < T(0.5) ? x + z * (y - x) : y - (y - x) * (T(1) - z);
}

/* The next number after x towards y: one step in the bits of the magnitude. */
template<class T> PT_INLINE T nextafter(T x, T y) {
    typedef typename fp<T>::bits U;
    const U b = to_bits(x), step = (x < y) == !signbit(x) ? b + 1 : b - 1;
    const T moved = from_bits((U)(x == T(0) ? (to_bits(y) & fp<T>::sign) | 1 : step));
    return x != x || y != y ? x + y : x == y ? y : moved;
}

/* ---- division with a remainder ----
 * Floats: fmod is exact. remainder takes the divisor's sign; floor_divide is torch's
 * (x - fmod(x, y)) / y adjusted and rounded, not floor(x / y). Integers: a zero divisor gives 0
 * (the caller raises), the smallest number by -1 wraps around; nothing traps. */

PT_INLINE float fmod(float x, float y) {
    double a = abs(x), b = abs(y);
    if (PT_UNLIKELY(!(a < b * 536870912.0))) return ::fmodf(x, y);
    double q = trunc(a / b);                    /* at most 29 bits: q * b is exact */
    double r = b < infinity<double>() ? a - q * b : a;
    r = r < 0 ? r + b : r;                      /* the rounded quotient was one too large */
    return copysign((float)r, x);
}
PT_INLINE double fmod(double x, double y) {
#if PT_HAVE_FMA
    double a = abs(x), b = abs(y);
    if (a < b * 4503599627370496.0 && b < infinity<double>()) {
        double q = trunc(a / b), r = PT_FMA(-q, b, a);       /* exact: |r| <= b */
        return copysign(r < 0 ? r + b : r, x);
    }
#endif
    return ::fmod(x, y);
}

/* `step` where the signs of m and y differ, else 0. Done on the bits, which compilers vectorise;
 * they do not vectorise two comparisons. */
template<class T> PT_INLINE T step_if_signs_differ(T m, T y, T step) {
    typedef typename fp<T>::bits U;
    const U differ = (to_bits(m) ^ to_bits(y)) & fp<T>::sign;
    return from_bits((U)(differ ? to_bits(step) : U(0)));
}
/* Python's remainder from fmod's m, which has the dividend's sign; a zero result also takes the
 * divisor's sign, as in NumPy and Python */
template<class T> PT_INLINE T remainder_of(T y, T m) {
    const T r = m + step_if_signs_differ(m, y, y);
    return m == T(0) ? copysign(T(0), y) : r;
}
PT_INLINE float remainder(float x, float y) { return remainder_of(y, fmod(x, y)); }
PT_INLINE double remainder(double x, double y) { return remainder_of(y, fmod(x, y)); }

template<class T> PT_INLINE T floor_quotient(T x, T y, T m) {
    T d = (x - m) / y;
    const T lower = d - step_if_signs_differ(m, y, T(1));
    d = m == T(0) ? d : lower;
    T f = floor(d);
    f = d - f > T(0.5) ? f + T(1) : f;
    f = d == T(0) ? copysign(T(0), x / y) : f;
    return y == T(0) ? x / y : f;
}
PT_INLINE float floor_divide(float x, float y) { return floor_quotient(x, y, fmod(x, y)); }
PT_INLINE double floor_divide(double x, double y) { return floor_quotient(x, y, fmod(x, y)); }

/* Branch-free versions: NaN where the quotient or an operand is too large for one step; a loop may
 * repeat the block with the functions above. The quotient is right or one too large; its product
 * with b is exact, in a fused multiply-add or in double. */
namespace fast {
PT_INLINE float fmod(float x, float y) {
    const float a = abs(x), b = abs(y);
#if PT_HAVE_FMA
    const float q = trunc(a / b), r = PT_FMAF(-q, b, a), limit = 4194304.f;
#else
    const double q = trunc((double)a / b), r = a - q * b, limit = 536870912.0;
#endif
    return a < b * limit ? copysign((float)(r < 0 ? r + b : r), x) : not_a_number<float>();
}
PT_INLINE double fmod(double x, double y) {
#if PT_HAVE_FMA
    const double a = abs(x), b = abs(y), q = trunc(a / b), r = PT_FMA(-q, b, a);
    return a < b * 2251799813685248.0 ? copysign(r < 0 ? r + b : r, x) : not_a_number<double>();
#else
    return pt::fmod(x, y);
#endif
}
template<class T> PT_INLINE T remainder(T x, T y) { return remainder_of(y, fmod(x, y)); }
template<class T> PT_INLINE T floor_divide(T x, T y) { return floor_quotient(x, y, fmod(x, y)); }
}

PT_INLINE float trunc_divide(float x, float y) { return trunc(x / y); }
PT_INLINE double trunc_divide(double x, double y) { return trunc(x / y); }

/* The unsigned type of T's width, at least 32 bits so that promotion cannot make it signed. */
template<class T> struct wrapping { typedef uint32_t type; };
template<> struct wrapping<int64_t> { typedef uint64_t type; };
template<> struct wrapping<uint64_t> { typedef uint64_t type; };

template<class T> PT_INLINE T int_abs(T x) {
    typedef typename wrapping<T>::type U;
    return x < T(0) ? (T)(U(0) - (U)x) : x;
}
template<class T> PT_INLINE T int_trunc_divide(T x, T y) {
    typedef typename wrapping<T>::type U;
    if (y == T(0)) return T(0);
    if (T(-1) < T(0) && y == T(-1)) return (T)(U(0) - (U)x);
    return (T)(x / y);
}
template<class T> PT_INLINE T int_fmod(T x, T y) {
    if (y == T(0) || (T(-1) < T(0) && y == T(-1))) return T(0);
    return (T)(x % y);
}
template<class T> PT_INLINE T int_remainder(T x, T y) {
    T m = int_fmod(x, y);
    return m != T(0) && (m < T(0)) != (y < T(0)) ? (T)(m + y) : m;
}
template<class T> PT_INLINE T int_floor_divide(T x, T y) {
    T q = int_trunc_divide(x, y), m = int_fmod(x, y);
    return m != T(0) && (m < T(0)) != (y < T(0)) ? (T)(q - 1) : q;
}
/* By squaring, modulo 2^bits. A negative exponent: 1 for 1, +-1 for -1, else 0, as in torch. */
template<class T> PT_INLINE T int_pow(T x, T y) {
    typedef typename wrapping<T>::type U;
    if (PT_KNOWN(y)) {
        if (y == T(2)) return (T)((U)x * (U)x);
        if (y == T(3)) return (T)((U)x * (U)x * (U)x);
        if (y == T(4)) return (T)(((U)x * (U)x) * ((U)x * (U)x));
    }
    if (PT_KNOWN(x) && x == T(2))
        return y < T(0) || y >= T(8 * sizeof(T)) ? T(0) : (T)(U(1) << y);
    if (y < T(0)) return x == T(1) ? T(1) : x == T(-1) ? ((y & 1) ? T(-1) : T(1)) : T(0);
    U r = 1, b = (U)x, e = (U)y;
    for (; e; e >>= 1, b *= b) r = (e & 1) ? r * b : r;
    return (T)r;
}

#define PT_INTEGER_FUNCTIONS(T) \
    PT_INLINE T abs(T x) { return int_abs(x); } \
    PT_INLINE T fmod(T x, T y) { return int_fmod(x, y); } \
    PT_INLINE T remainder(T x, T y) { return int_remainder(x, y); } \
    PT_INLINE T floor_divide(T x, T y) { return int_floor_divide(x, y); } \
    PT_INLINE T trunc_divide(T x, T y) { return int_trunc_divide(x, y); } \
    PT_INLINE T pow(T x, T y) { return int_pow(x, y); } \
    PT_INLINE T floor(T x) { return x; } \
    PT_INLINE T ceil(T x) { return x; } \
    PT_INLINE T trunc(T x) { return x; } \
    PT_INLINE T round(T x) { return x; } \
    PT_INLINE bool isinf(T) { return false; } \
    PT_INLINE bool isfinite(T) { return true; }
PT_INTEGER_FUNCTIONS(int8_t)
PT_INTEGER_FUNCTIONS(uint8_t)
PT_INTEGER_FUNCTIONS(int16_t)
PT_INTEGER_FUNCTIONS(uint16_t)
PT_INTEGER_FUNCTIONS(int32_t)
PT_INTEGER_FUNCTIONS(uint32_t)
PT_INTEGER_FUNCTIONS(int64_t)
PT_INTEGER_FUNCTIONS(uint64_t)
#undef PT_INTEGER_FUNCTIONS

template<> PT_INLINE bool signbit(int8_t x) { return x < 0; }
template<> PT_INLINE bool signbit(uint8_t) { return false; }
template<> PT_INLINE bool signbit(int16_t x) { return x < 0; }
template<> PT_INLINE bool signbit(uint16_t) { return false; }
template<> PT_INLINE bool signbit(int32_t x) { return x < 0; }
template<> PT_INLINE bool signbit(uint32_t) { return false; }
template<> PT_INLINE bool signbit(int64_t x) { return x < 0; }
template<> PT_INLINE bool signbit(uint64_t) { return false; }

/* Defines `name` for float and double from the template real_NAME. */
#define PT_REAL_1(name) \
    PT_INLINE float name(float x) { return real_##name(x); } \
    PT_INLINE double name(double x) { return real_##name(x); }
#define PT_REAL_2(name) \
    PT_INLINE float name(float x, float y) { return real_##name(x, y); } \
    PT_INLINE double name(double x, double y) { return real_##name(x, y); }

/* Defines `name` from a function of doubles alone, NAME_slow. */
#define PT_SLOW_1(name) \
    PT_INLINE float name(float x) { return (float)name##_slow((double)x); } \
    PT_INLINE double name(double x) { return name##_slow(x); }
#define PT_SLOW_2(name) \
    PT_INLINE float name(float x, float y) { return (float)name##_slow((double)x, (double)y); } \
    PT_INLINE double name(double x, double y) { return name##_slow(x, y); }

}}  /* namespace pt, unnamed */

#include "scalar_exp.h"
#include "scalar_pow.h"
#include "scalar_trig.h"
#include "scalar_erf.h"
#include "scalar_gamma.h"
#include "scalar_special.h"
#include "scalar_bessel.h"
#include "scalar_orthogonal.h"
#endif
