/* pow and hypot. Part of scalar.h.
 *
 * pow: 2^(y log2|x|), with log2|x| in double for float and as a sum of two doubles (about 67
 * significant bits) for double; IEEE 754's table of special cases is applied at the end.
 */
#ifndef PTCORE_SCALAR_POW_H
#define PTCORE_SCALAR_POW_H
#include "scalar.h"

namespace pt { namespace {

/* log2|x| replaced at 0 and infinity, where the formula has no meaning; NaN passes. */
PT_INLINE double log2_special(double a, double l) {
    l = a == 0.0 ? -infinity<double>() : l;
    l = a < infinity<double>() ? l : a;
    return l;
}

/* y * log2|x|, but 0 for log2|x| = 0, so that 1^(+-inf) = 1 */
PT_INLINE double pow_exponent(double y, double l) { return l == 0.0 && y == y ? 0.0 : y * l; }

/* Sets the sign, the domain and the special cases, which hold for NaN too. r = |x|^y. */
template<class T> PT_INLINE T pow_special(T x, T y, T r) {
    T half = y * T(0.5);
    bool integer = trunc(y) == y, odd = integer & (trunc(half) != half);
    r = signbit(x) & odd ? -r : r;
    r = (x < T(0)) & !integer & (x > -infinity<T>()) ? not_a_number<T>() : r;
    return (y == T(0)) | (x == T(1)) ? T(1) : r;
}

/* Exponents for which products, a quotient or a root are exacter and shorter. Sets *r and returns
 * true for these. As IEEE 754 has it, pow(-0, 0.5) is +0 and pow(-inf, 0.5) +inf, unlike sqrt. */
template<class T> PT_INLINE bool pow_by_products(T x, T y, T *r) {
    typedef double wide;        /* of floats, cubes and fourth powers are rounded once */
    if (y == T(2)) return *r = x * x, true;
    if (y == T(3)) return *r = (T)((wide)x * x * x), true;
    if (y == T(4)) return *r = (T)(((wide)x * x) * ((wide)x * x)), true;
    if (y == T(-1)) return *r = T(1) / x, true;
    if (y == T(-2)) return *r = (T(1) / x) * (T(1) / x), true;
    if (y == T(0.5) || y == T(-0.5)) {
        const T root = x == -infinity<T>() ? infinity<T>() : sqrt(x) + T(0);
        return *r = y > T(0) ? root : T(1) / root, true;
    }
    if (y == T(1)) return *r = x, true;
    if (y == T(0)) return *r = T(1), true;
    return false;
}

PT_INLINE float pow(float x, float y) {
    float known;
    if (PT_KNOWN(y) && pow_by_products(x, y, &known)) return known;
    if (PT_KNOWN(x) && x == 2.f) return exp2(y);
    double a = abs(x), e, f = log_split(a, &e), s = f / (2.0 + f), z = s * s;
    double l = e + s * poly(z, 2.8853900817779268, 0.9617966940297387, 0.5770779565484514,
                            0.4122084851589495, 0.3199185012298715, 0.28290595729709733);
    double t = clamp_pass_nan(pow_exponent(y, log2_special(a, l)), -160.0, 130.0);
    double n = round(t), r = t - n;
    double p = poly(r, 0.9999999999203432, 0.6931472067340207, 0.24022651492805142,
                    0.05550327168451663, 0.009617996150395857, 0.0013400449467719866,
                    0.0001547749776680061);
    p = r == 0.0 ? 1.0 : p;
    return pow_special(x, y, (float)(p * two_to(n)));
}

PT_INLINE double pow(double x, double y) {
    double known;
    if (PT_KNOWN(y) && pow_by_products(x, y, &known)) return known;
    if (PT_KNOWN(x) && x == 2.0) return exp2(y);
    double a = abs(x), e, f = log_split(a, &e);
    /* s = f/(2 + f) = sh + sl */
    double v = 1.0 / (2.0 + f), s = f * v, sh = high_half(s);
    double th = high_half(2.0 + f), tl = f - (th - 2.0);
    double sl = v * ((f - sh * th) - sh * tl);
    /* 3 atanh(s)/s = 3 + s^2 + r = th + tl */
    double z = s * s;
    double r = z * z * poly(z, 0.6, 0.4285714285715134, 0.3333333332971573, 0.2727272793870842,
                            0.23076857571103618, 0.20003704606241768, 0.17526474183433954,
                            0.1787470279173622) + sl * (sh + s);
    double s2 = sh * sh;
    th = high_half(3.0 + s2 + r);
    tl = r - ((th - 3.0) - s2);
    /* s (th + tl) = ph + pl, times 2/(3 ln 2), plus e: log2|x| = lh + ll */
    double u = sh * th, w = sl * th + tl * s;
    double ph = high_half(u + w), pl = w - (ph - u);
    double zh = 0.9617962837219238 * ph, zl = 4.102040517767816e-07 * ph + pl * 0.9617966939259756;
    double lh = high_half(zh + zl + e), ll = zl - ((lh - e) - zh);
    /* times y */
    double yh = high_half(y), qh = yh * lh, ql = (y - yh) * lh + y * ll;
    double t = pow_exponent(y, log2_special(a, lh));
    double n = round(clamp_pass_nan(t, -1100.0, 1100.0));
    double d = (qh - n) + ql, g = d * 0.6931471805599453;
    double p = scale(1.0 + (g + g * g * exp_tail(g)), n);
    p = t > 1030.0 ? infinity<double>() : p;
    p = t < -1080.0 ? 0.0 : p;
    p = t == 0.0 && lh + ll == 0.0 ? 1.0 : p;
    return pow_special(x, y, t != t ? t : p);
}

PT_INLINE float hypot(float x, float y) {
    float r = (float)sqrt((double)x * x + (double)y * y);
    return isinf(x) | isinf(y) ? infinity<float>() : r;
}

PT_INLINE double hypot(double x, double y) {
    double a = abs(x), b = abs(y), m = a > b ? a : b;
    /* the power of two below m, kept where its inverse and the squares are normal */
    uint64_t k = to_bits(m) & fp<double>::exponent;
    k = k < ((uint64_t)23 << 52) ? (uint64_t)23 << 52 : k;
    k = k > ((uint64_t)2045 << 52) ? (uint64_t)2045 << 52 : k;
    double s = from_bits(k), inverse = from_bits(((uint64_t)2046 << 52) - k);
    a *= inverse; b *= inverse;
    double r = sqrt(a * a + b * b) * s;
    return isinf(x) | isinf(y) ? infinity<double>() : r;
}

}}  /* namespace pt, unnamed */
#endif
