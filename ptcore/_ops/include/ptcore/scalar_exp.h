/* exp, log and functions made from them: exponentials, logarithms, hyperbolic functions and their
 * inverses, the logistic family. Part of scalar.h.
 *
 * exp: x = n ln 2 + r, |r| <= ln(2)/2, e^r = 1 + r + r^2 (1/2 + r P(r)); 2^n in two factors, so
 * that one rounding gives a right denormal. log: x = 2^e (1 + f), sqrt(1/2) <= 1 + f < sqrt(2),
 * log(1 + f) = f - f^2/2 + tail(f). The polynomials are weighted minimax fits, their error
 * (relative to the function) is below 2^-26 for float and 2^-57 for double.
 */
#ifndef PTCORE_SCALAR_EXP_H
#define PTCORE_SCALAR_EXP_H
#include "scalar.h"

namespace pt { namespace {

/* 2^n for an integer n with a normal result */
template<class T> PT_INLINE T two_to(T n) {
    return from_bits((typename fp<T>::bits)(to_bits(n + fp<T>::exp2_magic) << fp<T>::mantissa));
}

/* y * 2^n, n within twice the exponent range */
template<class T> PT_INLINE T scale(T y, T n) {
    T h = (n * T(0.5) + fp<T>::magic) - fp<T>::magic;
    return y * two_to(h) * two_to(n - h);
}

/* (e^r - 1 - r) / r^2 */
PT_INLINE float exp_tail(float r) {
    return poly(r, 0.5, 0.16666545, 0.0416664034, 0.00836642832, 0.00139405578);
}
PT_INLINE double exp_tail(double r) {
    return poly(r, 0.5, 0.16666666666666677, 0.04166666666666669, 0.008333333333321697,
                0.0013888888888870315, 0.00019841269885983724, 2.4801587355763312e-05,
                2.7557244338717114e-06, 2.7557245868842856e-07, 2.510899513673335e-08,
                2.092367438024447e-09);
}

PT_INLINE float exp_limit_low(float) { return -104.f; }
PT_INLINE double exp_limit_low(double) { return -745.2; }
PT_INLINE float exp_limit_high(float) { return 89.f; }
PT_INLINE double exp_limit_high(double) { return 709.8; }

/* n and r of x = n ln 2 + r; n * ln2_high is exact */
PT_INLINE float exp_reduce(float x, float *n) {
    *n = (x * 1.44269504f + fp<float>::magic) - fp<float>::magic;
    return (x - *n * 0.693145752f) - *n * 1.42860682e-6f;
}
PT_INLINE double exp_reduce(double x, double *n) {
    *n = (x * 1.4426950408889634 + fp<double>::magic) - fp<double>::magic;
    return (x - *n * 0.6931471803691238) - *n * 1.9082149292705877e-10;
}

/* min(|x|, limit) on the bits (of a NaN too): compilers turn a comparison of floats into masks
 * around the whole function, and this into one minimum. */
template<class T> PT_INLINE T clamp_bits(T x, T limit) {
    typedef typename fp<T>::bits U;
    U b = to_bits(x), m = b & ~fp<T>::sign, top = to_bits(limit);
    return from_bits((U)((m < top ? m : top) | (b & fp<T>::sign)));
}

template<class T> PT_INLINE T real_exp(T x) {
    T n, r = exp_reduce(clamp_bits(x, -exp_limit_low(x)), &n);
    T y = scale(T(1) + (r + r * r * exp_tail(r)), n);
    return x == x ? y : x;
}
PT_REAL_1(exp)

template<class T> PT_INLINE T real_exp2(T x) {
    T lo = sizeof(T) == 4 ? T(-151) : T(-1076), hi = sizeof(T) == 4 ? T(128) : T(1024);
    T c = clamp_pass_nan(x, lo, hi);
    T n = round(c), r = (c - n) * T(0.6931471805599453);
    return scale(T(1) + (r + r * r * exp_tail(r)), n);
}
PT_REAL_1(exp2)

/* Returns (e^x - 1) / 2, and e^x / 2 in *half_exp, from one reduction. x >= 0, or the caller clamps
 * x < 0 where e^x - 1 has become -1. n - 1 is at most the largest exponent. */
template<class T> PT_INLINE T half_expm1(T x, T *half_exp) {
    T c = clamp_pass_nan(x, sizeof(T) == 4 ? T(-18) : T(-39), exp_limit_high(x));
    T n, r = exp_reduce(c, &n);
    T p = r + r * r * exp_tail(r), s = two_to(n - T(1));
    *half_exp = p * s + s;
    return p * s + (s - T(0.5));
}

template<class T> PT_INLINE T real_expm1(T x) {
    T h, y = T(2) * half_expm1(x, &h);
    return abs(x) < fp<T>::tiny ? x : y;
}
PT_REAL_1(expm1)

/* ---- logarithms ---- */

/* e and f of x = 2^e (1 + f), for x > 0; undefined for other x */
template<class T, bool DENORMALS = true> PT_INLINE T log_split(T x, T *e) {
    typedef typename fp<T>::bits U;
    const int bias = sizeof(T) == 4 ? 127 : 1023, lift = fp<T>::mantissa + 2;
    const U mask = ((U)1 << fp<T>::mantissa) - 1;
    T up = T(4) * from_bits((U)fp<T>::two_to_mantissa);
    bool denormal = DENORMALS && x < fp<T>::min_normal;
    U u = to_bits(denormal ? x * up : x) + (fp<T>::one - fp<T>::sqrt_half);
    T shifted = from_bits((U)((u >> fp<T>::mantissa) | fp<T>::two_to_mantissa));
    T two_m = from_bits((U)fp<T>::two_to_mantissa);
    *e = shifted - (denormal ? two_m + T(bias + lift) : two_m + T(bias));
    return from_bits((U)((u & mask) + fp<T>::sqrt_half)) - T(1);
}

/* log(1 + f) - (f - f^2/2) */
PT_INLINE float log_tail(float f) {
    return f * f * f * poly(f, 0.333333164, -0.250008106, 0.200022876, -0.166245624, 0.141811505,
                            -0.131286338, 0.128818795, -0.0786020309);
}
PT_INLINE double log_tail(double f) {
    double s = f / (2.0 + f), z = s * s;
    double r = z * poly(z, 0.6666666666666679, 0.3999999999972528, 0.2857142868227565,
                        0.22222204088206143, 0.18183303374316925, 0.15320208349273748,
                        0.14738568793707155);
    return s * (0.5 * f * f + r);
}

template<class T> PT_INLINE T log_special(T x, T y) {
    y = x < infinity<T>() ? y : x;
    return x > T(0) ? y : (x == T(0) ? -infinity<T>() : not_a_number<T>());
}

/* e ln 2 + log(1 + f) + c; e * ln2_high is exact */
template<class T> PT_INLINE T log_join(T e, T f, T c) {
    const T high = sizeof(T) == 4 ? T(0.693145751953125) : T(0.6931471803691238);
    const T low = sizeof(T) == 4 ? T(1.4286068203094173e-06) : T(1.9082149292705877e-10);
    return e * high + (f - (T(0.5) * f * f - (log_tail(f) + (e * low + c))));
}

template<class T> PT_INLINE T real_log(T x) {
    T e, f = log_split(x, &e);
    return log_special(x, log_join(e, f, T(0)));
}
PT_REAL_1(log)

/* log(1 + f) = high + low with a short high part */
template<class T> PT_INLINE T log_high(T f, T *low) {
    T q = T(0.5) * f * f, high = high_half(f - q);
    *low = ((f - high) - q) + log_tail(f);
    return high;
}

template<class T> PT_INLINE T real_log2(T x) {
    const T ch = sizeof(T) == 4 ? T(1.4423828125) : T(1.4426946640014648);
    const T cl = sizeof(T) == 4 ? T(0.00031222838896340733) : T(3.768874985636099e-07);
    T e, f = log_split(x, &e), low, high = log_high(f, &low);
    T vh = high * ch, vl = (low + high) * cl + low * ch;
    T w = e + vh;
    return log_special(x, (vl + ((e - w) + vh)) + w);
}
PT_REAL_1(log2)

template<class T> PT_INLINE T real_log10(T x) {
    const T ch = sizeof(T) == 4 ? T(0.4342041015625) : T(0.4342944622039795);
    const T cl = sizeof(T) == 4 ? T(9.038034075182765e-05) : T(1.9699272335463627e-08);
    const T bh = sizeof(T) == 4 ? T(0.301025390625) : T(0.3010299955494702);
    const T bl = sizeof(T) == 4 ? T(4.605038981195214e-06) : T(1.1451100898021838e-10);
    T e, f = log_split(x, &e), low, high = log_high(f, &low);
    T y = e * bh, vh = high * ch, vl = e * bl + ((low + high) * cl + low * ch);
    T w = y + vh;
    return log_special(x, (vl + ((y - w) + vh)) + w);
}
PT_REAL_1(log10)

/* log(1 + x + low), |low| far below |x| */
template<class T> PT_INLINE T log1p_sum(T x, T low) {
    T u = T(1) + x;
    T c = abs(x) < T(1) ? x - (u - T(1)) : T(1) - (u - x);
    T e, f = log_split<T, false>(u, &e);
    T y = log_join(e, f, (c + low) / u);
    y = u < infinity<T>() ? y : u;
    return u > T(0) ? y : (u == T(0) ? -infinity<T>() : not_a_number<T>());
}

template<class T> PT_INLINE T real_log1p(T x) {
    T y = log1p_sum(x, T(0));
    return abs(x) < fp<T>::tiny ? x : y;
}
PT_REAL_1(log1p)

/* ---- hyperbolic ---- */

template<class T> PT_INLINE T real_sinh(T x) {
    T a = abs(x), big = sizeof(T) == 4 ? T(12) : T(22);
    /* m = (e^a - 1)/2, sinh = m + m/(2m + 1); above `big` sinh is e^a/2, with a scaling that keeps
     * it from overflowing too early */
    T h, m = half_expm1(a > big ? big : a, &h);
    T small = m + m / (T(2) * m + T(1));
    T limit = sizeof(T) == 4 ? T(90) : T(711);
    T n, r = exp_reduce(a > limit ? limit : a, &n);
    T large = scale(T(1) + (r + r * r * exp_tail(r)), n - T(1));
    T y = a > big ? large : small;
    return copysign(a < fp<T>::tiny ? a : y, x);
}
PT_REAL_1(sinh)

template<class T> PT_INLINE T real_cosh(T x) {
    T a = abs(x), limit = sizeof(T) == 4 ? T(90) : T(711);
    T n, r = exp_reduce(a > limit ? limit : a, &n);
    T h = scale(T(1) + (r + r * r * exp_tail(r)), n - T(1));
    return h + T(0.25) / h;
}
PT_REAL_1(cosh)

template<class T> PT_INLINE T real_tanh(T x) {
    T a = abs(x), limit = sizeof(T) == 4 ? T(10) : T(20), h;
    T m = half_expm1(T(2) * (a > limit ? limit : a), &h);
    /* (e^2a - 1)/(e^2a + 1), or 1 - 2/(e^2a + 1), which keeps more digits above 1/2 */
    bool big = m > T(1);
    T t = (big ? T(1) : m) / (big ? h + T(0.5) : m + T(1));
    T y = big ? T(1) - t : t;
    return copysign(a < fp<T>::tiny ? a : y, x);
}
PT_REAL_1(tanh)

template<class T> PT_INLINE T real_asinh(T x) {
    T a = abs(x), big = T(4) * from_bits(fp<T>::two_to_mantissa);
    T c = a < big ? a : big, t = c * c;
    T d = c + t / (T(1) + sqrt(T(1) + t));
    T y = log1p_sum(a < big ? d : a, T(0)) + (a < big ? T(0) : T(0.6931471805599453));
    y = a != a ? a : y;
    return copysign(a < fp<T>::tiny ? a : y, x);
}
PT_REAL_1(asinh)

template<class T> PT_INLINE T real_acosh(T x) {
    T big = T(4) * from_bits(fp<T>::two_to_mantissa);
    T t = (x < big ? x : big) - T(1);
    /* s + c is the square root of 2t + t^2 with its rounding error, s >= t */
    T s = sqrt(t * (t + T(2))), h = high_half(s);
    T c = (((T(2) * t - h * h) + t * t) - (s - h) * (s + h)) / (s + s);
    T d = s + t, low = ((s - d) + t) + c;
    T y = log1p_sum(x < big ? d : x, x < big ? low : T(0)) +
          (x < big ? T(0) : T(0.6931471805599453));
    y = x == T(1) ? T(0) : y;
    return x >= T(1) ? y : not_a_number<T>();
}
PT_REAL_1(acosh)

template<class T> PT_INLINE T real_atanh(T x) {
    T a = abs(x), t = T(2) * a, w = T(1) - a;
    T y = T(0.5) * log1p_sum(a < T(0.5) ? t + t * a / w : t / w, T(0));
    y = a == T(1) ? infinity<T>() : a < T(1) ? y : not_a_number<T>();
    return copysign(a < fp<T>::tiny ? a : y, x);
}
PT_REAL_1(atanh)

/* ---- logistic ---- */

/* e^-|x|: n <= 0 is not halved as in scale(), it only needs room for denormals */
template<class T> PT_INLINE T exp_minus_abs(T x) {
    const int room = fp<T>::mantissa + 2;
    T n, r = exp_reduce(-abs(clamp_bits(x, -exp_limit_low(x))), &n);
    T y = (T(1) + (r + r * r * exp_tail(r))) * two_to(n + T(room));
    return x == x ? y * two_to(T(-room)) : x;
}

template<class T> PT_INLINE T real_sigmoid(T x) {
    T e = exp_minus_abs(x);
    return (x < T(0) ? e : T(1)) / (T(1) + e);
}
PT_REAL_1(sigmoid)

/* the derivative of sigmoid, which sigmoid(x) (1 - sigmoid(x)) loses where sigmoid rounds to 1 */
template<class T> PT_INLINE T real_sigmoid_slope(T x) {
    T e = exp_minus_abs(x), d = T(1) + e;
    return e / (d * d);
}
PT_REAL_1(sigmoid_slope)

template<class T> PT_INLINE T real_log_sigmoid(T x) {
    return (x < T(0) ? x : T(0)) - log1p(exp_minus_abs(x));
}
PT_REAL_1(log_sigmoid)

/* log(e^x + e^y) */
template<class T> PT_INLINE T real_logaddexp(T x, T y) {
    T d = x - y, m = x > y ? x : y;
    d = x == y ? T(0) : d;                      /* equal infinities */
    return (d != d ? d : m) + log1p(exp_minus_abs(d));
}
PT_REAL_2(logaddexp)

/* log(1 + e^x) without overflow */
template<class T> PT_INLINE T softplus(T x) { return logaddexp(x, T(0)); }

}}  /* namespace pt, unnamed */
#endif
