/* The gamma function's logarithm and its derivatives, and Hurwitz' zeta function, in double. Part
 * of scalar.h. */
#ifndef PTCORE_SCALAR_GAMMA_H
#define PTCORE_SCALAR_GAMMA_H
#include "scalar.h"

#ifdef __APPLE__
extern "C" double lgamma_r(double, int *);      /* math.h declares it only with _REENTRANT */
#endif

namespace pt { namespace {

#if defined(__CUDACC_RTC__) || defined(_WIN32)
PT_INLINE double lgamma(double x) { return ::lgamma(x); }
#else
PT_INLINE double lgamma(double x) {             /* lgamma writes a global; lgamma_r does not */
    int sign;
    return ::lgamma_r(x, &sign);
}
#endif

/* exp and log as function calls: functions of doubles alone are compiled for small size. */
PT_NOINLINE double exp_called(double x) { return exp(x); }
PT_NOINLINE double log_called(double x) { return log(x); }

/* sin(pi w) / pi for |w| <= 1/2 */
PT_INLINE double sine_of_turn(double w) {
    const double z = w * w;
    return w * poly(z, 0.9999999999999999, -1.6449340668481678, 0.8117424252784269,
                    -0.19075182396433998, 0.026147845336487233, -0.002346059829910968,
                    0.00014832827396380304, -6.7270425170826265e-06);
}

/* log of a positive number that is neither denormal nor infinite */
PT_INLINE double log_of_normal(double x) {
    double e, f = log_split<double, false>(x, &e);
    return log_join(e, f, 0.0);
}

/* For floats, without a branch: Stirling's series at x + 8, minus the log of x (x + 1) ...
 * (x + 7), or at x if x >= 8; below 1/2 by reflection. All in double, so that results near
 * the zeros have a float's digits. */
PT_INLINE float lgamma(float x_) {
    const double x = x_, w = x - round(x);
    const bool reflected = x < 0.5;
    const double a = reflected ? 1.0 - x : x;
    const bool shifted = a < 8.0;
    /* factors in pairs: with t = a (a + 7), (a + 1) (a + 6) is t + 6; then t + 10, t + 12 */
    const double b = shifted ? a + 8.0 : a, t = a * (a + 7.0);
    const double product = shifted ? t * (t + 6.0) * ((t + 10.0) * (t + 12.0)) : 1.0;
    const double i = 1.0 / b, q = i * i;
    const double series =
        i * poly(q, 0.08333333333333333, -0.002777777777777778, 0.0007936507936507937,
                 -0.0005952380952380953, 0.0008417508417508417, -0.0019175269175269176,
                 0.00641025641025641);
    const double stirling = (b - 0.5) * log_of_normal(b) - b + (0.9189385332046728 + series);
    const double rest = log_of_normal(reflected ? product / abs(sine_of_turn(w)) : product);
    const double y = reflected ? rest - stirling : stirling - rest;
    const float r = (x_ == 1.f) | (x_ == 2.f) ? 0.f : (float)y;
    return isinf(x_) | (reflected & (w == 0)) ? infinity<float>() : x_ == x_ ? r : x_;
}

/* psi(x): reflection below 1/2, recurrence up to 10, then the asymptotic series. Poles give NaN,
 * +-0 gives -+inf, as in torch. */
PT_NOINLINE double digamma_slow(double x) {
    if (x == 0) return copysign(infinity<double>(), -x);
    double r = 0;
    if (x < 0.5) {
        double w = x - round(x);                /* exact */
        if (w == 0 || !isfinite(x)) return not_a_number<double>();
        /* cotangent of pi w, by the tangent at the nearer of 0 and 1/2 */
        const bool near = abs(w) < 0.25;
        const double c = tan(3.141592653589793 * (near ? w : copysign(0.5, w) - w));
        r = -3.141592653589793 * (near ? 1.0 / c : c);
        x = 1.0 - x;
    }
    for (; x < 10.0; x += 1.0) r -= 1.0 / x;
    double z = 1.0 / (x * x);
    double s = z * poly(z, 0.08333333333333333, -0.008333333333333333, 0.003968253968253968,
                        -0.004166666666666667, 0.007575757575757576, -0.021092796092796094,
                        0.08333333333333333);
    return x < infinity<double>() ? r + (log_called(x) - 0.5 / x - s) : x;
}
/* pi cot(pi w) for |w| <= 1/2 */
PT_INLINE double cotangent_of_turn(double w) {
    const double z = w * w;
    return poly(z, 1.0, -4.934802200544676, 4.058712126416497, -1.335262768843447,
                0.23533063012953284, -0.025806888737002202, 0.0019295562724817132,
                -0.00010456655338748738, 4.149564353942586e-06) /
           sine_of_turn(w);
}
PT_INLINE double digamma(double x) { return digamma_slow(x); }
PT_INLINE float digamma(float x_) {
    const double x = x_, w = x - round(x);
    const bool reflected = x < 0.5;
    const double a = reflected ? 1.0 - x : x;
    const bool shifted = a < 8.0;
    const double b = shifted ? a + 8.0 : a, low = shifted ? a : 1.0, t = low * (low + 7.0);
    const double pairs = 1.0 / t + 1.0 / (t + 6.0) + (1.0 / (t + 10.0) + 1.0 / (t + 12.0));
    const double i = 1.0 / b, q = i * i;
    const double series =
        q * poly(q, 0.08333333333333333, -0.008333333333333333, 0.003968253968253968,
                 -0.004166666666666667, 0.007575757575757576, -0.021092796092796094);
    const double y =
        log_of_normal(b) - 0.5 * i - series - (shifted ? (low + low + 7.0) * pairs : 0.0);
    const double r = reflected ? y - cotangent_of_turn(w) : y;
    return isinf(x_)          ? (x_ > 0 ? x_ : not_a_number<float>())
           : x_ == 0          ? copysign(infinity<float>(), -x_)
           : x_ < 0 && w == 0 ? not_a_number<float>()
                              : (float)r;
}

/* a^-s: by products for small whole s; else by pow, or by exp and log if `rough` */
PT_NOINLINE double negative_power(double a, double s, bool rough) {
    if (s > 16.0 || s != floor(s))
        return rough && a > 0 && isfinite(s) ? exp_called(-s * log_called(a)) : pow(a, -s);
    const double i = 1.0 / a;
    double y = i;
    for (double k = 1; k < s; k++) y *= i;
    return y;
}
/* Hurwitz' zeta(s, q): adds terms while a = q + k is at most `terms`, then the
 * Euler-Maclaurin remainder (as Cephes' zeta). As in torch it is NaN for s < 1, and
 * for q < 0 with s not whole. */
PT_NOINLINE double zeta_slow(double s, double q, int terms) {
    const bool rough = terms < 8;
    const double precision = rough ? 1e-9 : 1e-17;
    if (s == 1.0) return infinity<double>();
    if (s < 1.0) return not_a_number<double>();
    if (q <= 0.0) {
        if (q == floor(q)) return infinity<double>();
        if (s != floor(s) || !isfinite(q)) return not_a_number<double>();
        if (!isfinite(s)) return infinity<double>();
        /* The terms with q + k < 0 have the magnitudes 1 - f, 2 - f, ..., -q, where
         * q = f - m and f is in (0, 1). */
        const double w = q - round(q), f = w > 0 ? w : 1.0 + w, g = w > 0 ? 1.0 - w : -w;
        const double behind = zeta_slow(s, 1.0 - q, terms);
        if (fmod(s, 2.0) == 0) return zeta_slow(s, f, terms) + (zeta_slow(s, g, terms) - behind);
        return f == g ? behind : zeta_slow(s, f, terms) - zeta_slow(s, g, terms) + behind;
    }
    if (q > 1e8) return (1.0 / (s - 1.0) + 0.5 / q) * negative_power(q, s - 1.0, false);
    double p = negative_power(q, s, rough), sum = p, a = q;
    for (int k = 0; k < terms || a <= terms; k++) {
        a += 1.0;
        p = negative_power(a, s, rough);
        sum += p;
        if (abs(p) <= precision * abs(sum)) return sum;
    }
    sum += p * a / (s - 1.0) - 0.5 * p;
    /* p is a^-s; term k is B_2k / (2k)! * s (s + 1) ... (s + 2k - 2) * a^(-s - 2k + 1) */
    const double b[10] = {0.08333333333333333,    -0.001388888888888889,   3.306878306878307e-05,
                          -8.267195767195767e-07, 2.08767569878681e-08,    -5.284190138687493e-10,
                          1.3382536530684679e-11, -3.3896802963225829e-13, 8.586062056277845e-15,
                          -2.174868698558062e-16};
    double t = s * p / a;
    for (int k = 0; k < 10; k++) {
        const double term = b[k] * t;
        sum += term;
        if (abs(term) <= precision * abs(sum)) break;
        t *= (s + 2 * k + 1) * (s + 2 * k + 2) / (a * a);
    }
    return sum;
}
PT_INLINE double zeta(double s, double q) { return zeta_slow(s, q, 10); }
PT_INLINE float zeta(float s, float q) { return (float)zeta_slow((double)s, (double)q, 4); }

/* The derivative of digamma for x > 0: terms 1 / x^2 up to `least`, then the asymptotic series. */
PT_NOINLINE double trigamma_above(double x, double least) {
    double sum = 0;
    for (; x < least; x += 1.0) sum += 1.0 / (x * x);
    const double i = 1.0 / x, q = i * i;
    return sum + i + 0.5 * q +
           i * q * poly(q, 0.16666666666666666, -0.03333333333333333, 0.023809523809523808,
                        -0.03333333333333333, 0.07575757575757576, -0.2531135531135531,
                        1.1666666666666667);
}

/* The n-th derivative of digamma: (-1)^(n + 1) n! zeta(n + 1, x); below 0 by reflection for n = 1.
 * Poles give inf. */
PT_NOINLINE double polygamma_slow(double n, double x, int terms) {
    if (n == 0) return digamma(x);
    if (x != x) return x;
    if (x <= 0) {
        double w = x - round(x);
        if (w == 0) return (int64_t)n % 2 ? infinity<double>() : -infinity<double>();
        if (!isfinite(x)) return not_a_number<double>();
        if (n == 1) {
            double sine = sin(3.141592653589793 * w);
            return 9.869604401089358 / (sine * sine) - polygamma_slow(1, 1.0 - x, terms);
        }
    }
    if (x == infinity<double>()) return 0;
    if (n == 1) return trigamma_above(x, terms < 8 ? 5.0 : 11.0);
    double factorial = 1;
    for (double k = 2; k <= n && factorial < infinity<double>(); k += 1.0) factorial *= k;
    double r = factorial * zeta_slow(n + 1.0, x, terms);
    return (int64_t)n % 2 ? r : -r;
}
PT_INLINE double polygamma(double n, double x) { return polygamma_slow(n, x, 10); }
PT_INLINE float polygamma(float n, float x) {
    return (float)polygamma_slow((double)n, (double)x, 4);
}
/* with the argument order of the texts of derivatives */
template<class T> PT_INLINE T polygamma_of(T x, T n) { return polygamma(n, x); }

}}  /* namespace pt, unnamed */
#endif
