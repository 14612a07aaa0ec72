/* sin, cos, tan and the inverse functions. Part of scalar.h.
 *
 * x = q pi/2 + r, |r| <= pi/4 (a little more for float), with pi/2 in pieces whose products with q
 * are exact: q below 2^17 for float (pieces are doubles), 2^20 for double. Beyond the limit
 * an integer reduction with 2/pi to 1280 bits is called, which the vectoriser cannot take.
 *
 * fast::sin, fast::cos, fast::tan are the branch-free parts: they return NaN beyond the limit.
 * A loop may run a formula in namespace pt::fast over a block and repeat the block in
 * namespace pt when an output is NaN (not for a formula that compares their results).
 */
#ifndef PTCORE_SCALAR_TRIG_H
#define PTCORE_SCALAR_TRIG_H
#include "scalar.h"

namespace pt { namespace {

PT_INLINE float trig_limit(float) { return 65536.f; }
PT_INLINE double trig_limit(double) { return 1.0e6; }

#if defined(__CUDACC_RTC__)
#  define PT_LARGE PT_INLINE                    /* its caller is a function of its own */
#  define PT_UNROLLED _Pragma("unroll")
#else
#  define PT_LARGE PT_NOINLINE
#  define PT_UNROLLED
#endif

/* 2/pi, 32 bits an entry */
PT_TABLE uint32_t two_over_pi[40] = {
    0xA2F9836E, 0x4E441529, 0xFC2757D1, 0xF534DDC0, 0xDB629599, 0x3C439041, 0xFE5163AB, 0xDEBBC561,
    0xB7246E3A, 0x424DD2E0, 0x06492EEA, 0x09D1921C, 0xFE1DEB1C, 0xB129A73E, 0xE88235F5, 0x2EBB4484,
    0xE99C7026, 0xB45F7E41, 0x3991D639, 0x835339F4, 0x9C845F8B, 0xBDF9283B, 0x1FF897FF, 0xDE05980F,
    0xEF2F118B, 0x5A0A6D1F, 0x6D367ECF, 0x27CB09B7, 0x4F463F66, 0x9E5FEA2D, 0x7527BAC7, 0xEBE5F17B,
    0x3D0739F7, 0x8A5292EA, 0x6BFB5FB1, 0x1F8D5D08, 0x56033046, 0xFC7B6BAB, 0xF0CFBC20, 0x9AF4361D};

template<class T> struct reduced { T hi, lo; uint32_t q; };

/* For finite |x| >= 2^16: q mod 4, and r = hi + lo. All indices into p are compile-time constants,
 * so that a GPU keeps p in registers. */
PT_LARGE reduced<double> reduce_large(double x) {
    uint64_t b = to_bits(abs(x)), m = (b & 0xfffffffffffffu) | 0x10000000000000u;
    int e = (int)(b >> 52) - 1075;              /* |x| = m 2^e */
    /* Entry i has the weight 2^(-32(i+1)). Entries whose product with m 2^e is a multiple of 4 are
     * skipped. The seven entries used leave an error below 2^-136. */
    int first = e <= 2 ? 0 : (e - 2) / 32;
    uint32_t p[10] = {0};                       /* m times the seven entries, lowest word first */
    PT_UNROLLED for (int half = 0; half < 2; half++) {
        uint64_t carry = 0, f = half ? m >> 32 : m & 0xffffffffu;
        PT_UNROLLED for (int i = 0; i < 7; i++) {
            uint64_t t = f * two_over_pi[first + 6 - i] + p[i + half] + carry;
            p[i + half] = (uint32_t)t;
            carry = t >> 32;
        }
        p[7 + half] = (uint32_t)carry;
    }
    /* p has the unit 2^-fraction, fraction from 191 to 260; shift p left until the binary point
     * is just below the last word */
    int fraction = 32 * (first + 7) - e, words = (fraction + 31) / 32, up = 32 * words - fraction,
        more = 9 - words;
    PT_UNROLLED for (int step = 2; step; step--) {
        bool moves = (more & step) != 0;
        PT_UNROLLED for (int i = 9; i >= 0; i--) p[i] =
            moves ? (i >= step ? p[i - step] : 0) : p[i];
    }
    PT_UNROLLED for (int i = 9; i >= 0; i--)
        p[i] = (uint32_t)((((uint64_t)p[i] << 32 | (i ? p[i - 1] : 0)) << up) >> 32);
    bool negative = (p[8] >> 31) != 0;          /* the nearest integer is above */
    uint32_t q = p[9] + negative;
    double h = 0, l = 0, unit = 1;
    PT_UNROLLED for (int i = 8; i >= 0; i--) {
        unit *= 2.3283064365386963e-10;         /* 2^-32 */
        double t = (double)(negative ? ~p[i] : p[i]) * unit, s = h + t;
        l += t - (s - h);                       /* t is far below h, or h is 0 */
        h = s;
    }
    double s = h + l, a = high_half(s);
    l = (h - s) + l;
    double t = a * 1.5707960128784180;          /* exact */
    double rest =
        (s - a) * 1.5707960128784180 + s * 3.1391647865048132e-07 + l * 1.5707963267948966;
    h = t + rest;
    l = (t - h) + rest;
    bool flip = negative != (x < 0);
    return {flip ? -h : h, flip ? -l : l, x < 0 ? 0u - q : q};
}

/* sine and cosine of hi + lo in [-pi/4, pi/4] */
PT_INLINE float sin_kernel(float r, float) {
    float z = r * r;
    return r + r * z * poly(z, -0.166666552, 0.00833217613, -0.000195169836);
}
PT_INLINE float cos_kernel(float r, float) {
    float z = r * r;
    return (1.f - 0.5f * z) + z * z * poly(z, 0.041666653, -0.00138876052, 2.44618932e-05);
}
/* a b + c, fused where that is one instruction. For the plain expression a compiler may fuse in a
 * loop's vectors and not in its remainder, which then differ in the last bit. */
PT_INLINE double muladd(double a, double b, double c) {
#if PT_HAVE_FMA
    return PT_FMA(a, b, c);
#else
    return a * b + c;
#endif
}
PT_INLINE double sin_kernel(double r, double lo) {
    double z = r * r;
    double p = poly(z, 0.008333333333322373, -0.00019841269829774195, 2.7557313679651933e-06,
                    -2.5050756103837973e-08, 1.589667405131002e-10);
    double v = z * r;
    return r - muladd(v, 0.16666666666666632, muladd(z, muladd(-v, p, 0.5 * lo), -lo));
}
PT_INLINE double cos_kernel(double r, double lo) {
    double z = r * r, h = 0.5 * z, w = 1.0 - h;
    double p = poly(z, 0.04166666666666666, -0.0013888888888883, 2.4801587294421145e-05,
                    -2.755731564604673e-07, 2.0875884782920822e-09, -1.1367404212616772e-11);
    return w + (((1.0 - w) - h) + muladd(z * z, p, -r * lo));
}

PT_INLINE reduced<float> reduce(float x) {
    float t = x * 0.636619747f + fp<float>::magic;
    double q = t - fp<float>::magic, d = x;
    d = (d - q * 1.5707963267341256) - q * 6.077100506506192e-11;
    float h = (float)d;
    return {h, (float)(d - h), (uint32_t)to_bits(t)};
}
PT_INLINE reduced<double> reduce(double x) {
    double t = x * 0.6366197723675814 + fp<double>::magic, q = t - fp<double>::magic;
    double a = x - q * 1.5707963267341256;
    double b = q * 6.077100506303966e-11, s = a - b, v = s - a;
    double c = (a - (s - v)) - (b + v);         /* error of a - b */
    double d = q * 2.0222662487111665e-21, u = s - d, w = u - s;
    c += ((s - (u - w)) - (d + w)) - q * 8.4784276603689e-32;
    double h = u + c;
    return {h, (u - h) + c, (uint32_t)to_bits(t)};
}

PT_INLINE reduced<double> reduce_any(double x) { return reduce_large(x); }
PT_INLINE reduced<float> reduce_any(float x) {
    reduced<double> r = reduce_large((double)x);
    float h = (float)r.hi;
    return {h, (float)(r.hi - h), r.q};
}

template<class T> PT_INLINE T negate_if(T x, uint32_t bit1) {
    typedef typename fp<T>::bits U;
    return from_bits((U)(to_bits(x) ^ (U)(bit1 & 2u) << (8 * sizeof(T) - 2)));
}
template<class T> PT_INLINE T sin_of(reduced<T> r) {
    T s = sin_kernel(r.hi, r.lo), c = cos_kernel(r.hi, r.lo);
    return negate_if((r.q & 1u) ? c : s, r.q);
}
template<class T> PT_INLINE T cos_of(reduced<T> r) {
    r.q += 1u;
    return sin_of(r);
}
PT_INLINE double tan_of(reduced<double> r) {
    double s = sin_kernel(r.hi, r.lo), c = cos_kernel(r.hi, r.lo);
    bool odd = (r.q & 1u) != 0;
    return (odd ? -c : s) / (odd ? s : c);
}
PT_INLINE float tan_of(reduced<float> r) {
    double d = (double)r.hi + r.lo, z = d * d;
    double s = d + d * z * poly(z, -0.166666552, 0.00833217613, -0.000195169836);
    double c = (1.0 - 0.5 * z) + z * z * poly(z, 0.041666653, -0.00138876052, 2.44618932e-05);
    bool odd = (r.q & 1u) != 0;
    return (float)((odd ? -c : s) / (odd ? s : c));
}

namespace fast {
template<class T> PT_INLINE T inside(T x, T y) {
    return abs(x) <= trig_limit(x) ? y : not_a_number<T>();
}
template<class T> PT_INLINE T real_sin(T x) {
    return inside(x, abs(x) < fp<T>::tiny ? x : sin_of(reduce(x)));
}
template<class T> PT_INLINE T real_cos(T x) { return inside(x, cos_of(reduce(x))); }
template<class T> PT_INLINE T real_tan(T x) {
    return inside(x, abs(x) < fp<T>::tiny ? x : tan_of(reduce(x)));
}
PT_REAL_1(sin)
PT_REAL_1(cos)
PT_REAL_1(tan)
}  /* namespace fast */

template <class T> PT_NOINLINE T sin_large(T x) {
    return isfinite(x) ? sin_of(reduce_any(x)) : x - x;
}
template <class T> PT_NOINLINE T cos_large(T x) {
    return isfinite(x) ? cos_of(reduce_any(x)) : x - x;
}
template <class T> PT_NOINLINE T tan_large(T x) {
    return isfinite(x) ? tan_of(reduce_any(x)) : x - x;
}

template<class T> PT_INLINE T real_sin(T x) {
    return PT_UNLIKELY(!(abs(x) <= trig_limit(x))) ? sin_large(x) : fast::sin(x);
}
template<class T> PT_INLINE T real_cos(T x) {
    return PT_UNLIKELY(!(abs(x) <= trig_limit(x))) ? cos_large(x) : fast::cos(x);
}
template<class T> PT_INLINE T real_tan(T x) {
    return PT_UNLIKELY(!(abs(x) <= trig_limit(x))) ? tan_large(x) : fast::tan(x);
}
PT_REAL_1(sin)
PT_REAL_1(cos)
PT_REAL_1(tan)

/* ---- inverse functions ---- */

/* (atan(t) - t)/t^3 as a polynomial in z = t^2, |t| <= tan(pi/8) */
PT_INLINE float atan_poly(float z) {
    return poly(z, -0.333333164, 0.199984848, -0.142437413, 0.105951041, -0.0608098507);
}
PT_INLINE double atan_poly(double z) {
    return poly(z, -0.33333333333333287, 0.1999999999997262, -0.14285714281755935,
                0.11111110849765313, -0.09090899426355477, 0.07692086711880282,
                -0.06663376860712761, 0.058497073243073835, -0.05046872914603992,
                0.0382434701042133, -0.018090571383184716);
}

template<class T> struct pi {           /* multiples of pi in two parts */
    static constexpr T half_hi = sizeof(T) == 4 ? T(1.57079637050628662) : T(1.5707963267948966);
    static constexpr T half_lo = sizeof(T) == 4 ? T(-4.37113900e-08) : T(6.123233995736766e-17);
    static constexpr T hi = T(2) * half_hi, lo = T(2) * half_lo;
    static constexpr T quarter_hi = T(0.5) * half_hi, quarter_lo = T(0.5) * half_lo;
};

/* atan(u/v) for u, v >= 0, not both 0, as *hi + returned low part */
template<class T> PT_INLINE T atan_ratio(T u, T v, T *hi) {
    bool middle = u > v * T(0.4142135623730951), above = u > v * T(2.414213562373095);
    T num = above ? -v : middle ? u - v : u;
    T den = above ? u : middle ? u + v : v;
    T t = num / den, z = t * t, r = t * z * atan_poly(z);
    T h = above ? pi<T>::half_hi : middle ? pi<T>::quarter_hi : T(0);
    T l = above ? pi<T>::half_lo : middle ? pi<T>::quarter_lo : T(0);
    *hi = h + t;
    return ((h - *hi) + t) + (r + l);
}

template<class T> PT_INLINE T real_atan(T x) {
    T a = abs(x), hi, c = a < infinity<T>() ? a : T(1), lo = atan_ratio(c, T(1), &hi);
    T y = a < infinity<T>() ? hi + lo : a != a ? a : pi<T>::half_hi;
    return copysign(a < fp<T>::tiny ? a : y, x);
}
PT_REAL_1(atan)

template<class T> PT_INLINE T real_atan2(T y, T x) {
    T a = abs(y), b = abs(x), m = a > b ? a : b;
    /* scale large arguments down so that a + b cannot overflow, and others up from the denormals */
    T k = m > T(1e30) ? T(0.25) : T(4) * from_bits(fp<T>::two_to_mantissa);
    T u = a * k, v = b * k;
    u = minimum(a, b) == infinity<T>() ? T(1) : u;
    v = (a == b) & ((a == T(0)) | (a == infinity<T>())) ? T(1) : v;
    T hi, lo = atan_ratio(u, v, &hi);
    bool left = signbit(x);
    T base = left ? pi<T>::hi : T(0), rest = left ? pi<T>::lo : T(0);
    hi = left ? -hi : hi;
    lo = left ? -lo : lo;
    T r = copysign((base + hi) + (rest + lo), y);
    r = x == x ? r : x;
    return y == y ? r : y;
}
PT_REAL_2(atan2)

/* (asin(t) - t)/t as a polynomial in z = t^2 <= 1/4 */
PT_INLINE float asin_poly(float z) {
    return z * poly(z, 0.166666597, 0.0750051141, 0.0445154719, 0.0318203308, 0.0143906176,
                    0.0375838019);
}
PT_INLINE double asin_poly(double z) {
    return z * poly(z, 0.16666666666666108, 0.07500000000218283, 0.04464285690526215,
                    0.030381956517375373, 0.022371811647313382, 0.017358998992460593,
                    0.013891427848432102, 0.01213261438910971, 0.006671961946535046,
                    0.019166697127646112, -0.015699885143120942, 0.031578069653129294);
}

template<class T> PT_INLINE T real_asin(T x) {
    T a = abs(x);
    bool big = a > T(0.5);
    T z = big ? T(0.5) * (T(1) - a) : a * a, s = big ? sqrt(z) : a;
    T p = s * asin_poly(z);
    /* above 1/2: pi/2 - 2 asin(sqrt(z)) around pi/4, with the square root's error added */
    T h = high_half(s), c = big & (s > T(0)) ? (z - h * h) / (s + h) : T(0);
    T q = T(2) * (p + c) - pi<T>::half_lo;
    T above = pi<T>::quarter_hi - (q - (pi<T>::quarter_hi - T(2) * h));
    T y = big ? above : s + p;
    return copysign(a < fp<T>::tiny ? a : y, x);
}
PT_REAL_1(asin)

template<class T> PT_INLINE T real_acos(T x) {
    T a = abs(x);
    bool big = a > T(0.5);
    T z = big ? T(0.5) * (T(1) - a) : a * a, s = big ? sqrt(z) : x;
    T p = s * asin_poly(z);
    /* above 1/2: twice asin(sqrt(z)), corrected in the same way */
    T h = high_half(s), c = big & (s > T(0)) ? (z - h * h) / (s + h) : T(0);
    T above = T(2) * (h + (p + c));
    T below = pi<T>::hi - (T(2) * (s + p) - pi<T>::lo);
    T inner = pi<T>::half_hi - (x - (pi<T>::half_lo - p));
    return big ? (x > T(0) ? above : below) : inner;
}
PT_REAL_1(acos)

}}  /* namespace pt, unnamed */
#endif
