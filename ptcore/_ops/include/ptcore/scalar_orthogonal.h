/* Orthogonal polynomials by their recurrences, in double. Part of scalar.h.
 *
 * The degree n is a number whose fractional part is ignored. Degrees below 0 give 0; NaN and
 * infinite degrees give NaN. Recurrences that grow are scaled down on the way, so that an overflow
 * has the right sign. Degrees above 2^24, which only a loop could reach, give NaN.
 */
#ifndef PTCORE_SCALAR_ORTHOGONAL_H
#define PTCORE_SCALAR_ORTHOGONAL_H
#include "scalar.h"

namespace pt { namespace {

PT_INLINE bool is_odd(double n) { return n - 2.0 * floor(0.5 * n) != 0; }

/* Whether the result is known without a recurrence; it is then in *value. `sign` is the sign of the
 * leading coefficient of odd degrees. */
PT_INLINE bool polynomial_is_known(double x, double n, double sign, double *value) {
    if (n > 0 && isfinite(n) && isfinite(x)) return false;
    *value = !isfinite(n) ? not_a_number<double>()
             : n < 0      ? 0.0
             : n == 0     ? 1.0
             : is_odd(n)  ? sign * x
                          : abs(x);
    return true;
}
/* A sum that overflowed is NaN; there, beyond the zeros, the polynomial has the
 * sign of its leading term. */
PT_INLINE double polynomial_value(double y, double x, double n, double sign) {
    return y == y ? y : (is_odd(n) ? copysign(infinity<double>(), sign * x) : infinity<double>());
}

/* Keeps two terms of a recurrence below 2^512; *times counts the scalings. */
PT_INLINE void scale_down(double *a, double *b, int *times) {
    const double limit = 1.3407807929942597e+154;
    if (PT_UNLIKELY(abs(*a) > limit || abs(*b) > limit)) {
        *a /= limit;
        *b /= limit;
        *times += 1;
    }
}
PT_INLINE double scaled_up(double y, int times) {
    for (; times > 0 && y != 0 && isfinite(y); times--) y *= 1.3407807929942597e+154;
    return y;
}

/* ---- Chebyshev's of the four kinds: one recurrence; only the first degree differs ----
 * At x = cos(t): T is cos(n t), U sin((n + 1) t) / sin(t), V cos((n + 1/2) t) / cos(t / 2) and
 * W sin((n + 1/2) t) / sin(t / 2); at x = cosh(t) the same with cosh and sinh. At -x each is its
 * value at x times the sign of the degree, with V and W exchanged. */

enum chebyshev_kind { CHEBYSHEV_T, CHEBYSHEV_U, CHEBYSHEV_V, CHEBYSHEV_W };

PT_NOINLINE double chebyshev_polynomial(chebyshev_kind kind, double x, double n) {
    n = trunc(n);
    double value;
    if (polynomial_is_known(x, n, 1.0, &value)) return value;
    const double a = abs(x), two = x + x;
    if (a == 1.0 || n > 40.0) {
        if (x < 0)
            kind = kind == CHEBYSHEV_V ? CHEBYSHEV_W : kind == CHEBYSHEV_W ? CHEBYSHEV_V : kind;
        const double sign = x < 0 && is_odd(n) ? -1.0 : 1.0;
        if (a == 1.0)
            return sign * (kind == CHEBYSHEV_U ? n + 1.0 : kind == CHEBYSHEV_W ? n + n + 1.0 : 1.0);
        const bool outside = a > 1.0, odd = kind == CHEBYSHEV_U || kind == CHEBYSHEV_W;
        const double shift = kind == CHEBYSHEV_T ? 0.0 : kind == CHEBYSHEV_U ? 1.0 : 0.5;
        const double t = outside ? acosh(a) : acos(a);
        double y = 1.0;
        /* the function of (n + shift) t over that of shift t */
        for (int below = 0; below <= (shift != 0); below++) {
            const double m = below ? shift * t : (n + shift) * t;
            const double f = outside ? (odd ? sinh(m) : cosh(m)) : (odd ? sin(m) : cos(m));
            y = below ? y / f : f;
        }
        return sign * y;
    }
    const double first[4] = {x, two, two - 1.0, two + 1.0};
    double p = 1.0, q = first[kind];
    for (double k = 1; k < n; k++) {
        const double next = two * q - p;
        p = q;
        q = next;
    }
    return polynomial_value(q, x, n, 1.0);
}

/* ---- Hermite's: NaN above degree 128 for floats and 512 for doubles, as in torch ---- */

/* H has the steps 2 x and 2 k, He has x and k. */
PT_NOINLINE double hermite_polynomial(double step, double x, double n, double limit) {
    n = trunc(n);
    double value;
    if (polynomial_is_known(x, n, 1.0, &value)) return value;
    if (n > limit) return not_a_number<double>();
    double p = 1.0, q = step * x;
    const double first = q;
    int times = 0;
    for (double k = 1; k < n; k++) {
        const double next = first * q - step * k * p;
        p = q;
        q = next;
        scale_down(&p, &q, &times);
    }
    return polynomial_value(scaled_up(q, times), x, n, 1.0);
}

/* ---- Laguerre's and Jacobi's: sums of the differences between degrees, which
 * are exact near 0 and 1 ---- */

constexpr double highest_degree = 16777216.0;

PT_NOINLINE double laguerre(double x, double n, double alpha) {
    n = trunc(n);
    double value;
    if (polynomial_is_known(x, n, -1.0, &value)) return value;
    if (n > highest_degree) return not_a_number<double>();
    double difference = -x / (alpha + 1.0), p = difference + 1.0, at_zero = alpha + 1.0;
    int times = 0;
    for (double k = 1; k < n && p == p; k++) {
        const double over = 1.0 / (k + alpha + 1.0);
        difference = over * (k * difference - x * p);
        p += difference;
        scale_down(&difference, &p, &times);
        if (alpha != 0) at_zero *= (k + alpha + 1.0) / (k + 1.0);
    }
    return polynomial_value(at_zero * scaled_up(p, times), x, n, -1.0);
}

/* Jacobi's polynomial divided by its value at 1. For x < 0 it is that of the mirrored parameters at
 * -x, times the ratio of the two ends: near -1 the differences would cancel. */
PT_NOINLINE double jacobi_ratio(double x, double n, double alpha, double beta) {
    n = trunc(n);
    double value;
    if (polynomial_is_known(x, n, 1.0, &value)) return value;
    if (n > highest_degree) return not_a_number<double>();
    double ends = 1.0;
    if (x < 0) {
        for (double k = 1; k <= n; k++) ends *= (k + beta) / (k + alpha);
        if (is_odd(n)) ends = -ends;
        const double mirrored = alpha;
        alpha = beta;
        beta = mirrored;
    }
    const double sum = alpha + beta, y = abs(x) - 1.0;
    double difference = (sum + 2.0) * y / (2.0 * (alpha + 1.0)), p = difference + 1.0;
    for (double k = 1; k < n && p == p; k++) {
        const double t = 2.0 * k + sum;
        difference =
            (t * (t + 1.0) * (t + 2.0) * y * p + 2.0 * k * (k + beta) * (t + 2.0) * difference) /
            (2.0 * (k + alpha + 1.0) * (k + sum + 1.0) * t);
        p += difference;
    }
    return polynomial_value(ends * p, x, n, 1.0);
}
/* Jacobi's polynomial with both parameters 0 */
PT_NOINLINE double legendre(double x, double n) {
    n = trunc(n);
    double value;
    if (polynomial_is_known(x, n, 1.0, &value)) return value;
    if (abs(x) == 1.0) return is_odd(n) ? x : 1.0;
    if (n > highest_degree) return not_a_number<double>();
    double p = 1.0, q = x;
    for (double k = 1; k < n && q == q; k++) {
        const double part = k / (k + 1.0), next = (x + part * x) * q - part * p;
        p = q;
        q = next;
    }
    return polynomial_value(q, x, n, 1.0);
}

#define PT_POLYNOMIAL(name, ...) \
    template<class T> PT_INLINE T name(T x_, T n_) { \
        const double x = (double)x_, n = (double)n_; \
        return (T)(__VA_ARGS__); \
    }
PT_POLYNOMIAL(chebyshev_polynomial_t, chebyshev_polynomial(CHEBYSHEV_T, x, n))
PT_POLYNOMIAL(chebyshev_polynomial_u, chebyshev_polynomial(CHEBYSHEV_U, x, n))
PT_POLYNOMIAL(chebyshev_polynomial_v, chebyshev_polynomial(CHEBYSHEV_V, x, n))
PT_POLYNOMIAL(chebyshev_polynomial_w, chebyshev_polynomial(CHEBYSHEV_W, x, n))
PT_POLYNOMIAL(shifted_chebyshev_polynomial_t, chebyshev_polynomial(CHEBYSHEV_T, 2.0 * x - 1.0, n))
PT_POLYNOMIAL(shifted_chebyshev_polynomial_u, chebyshev_polynomial(CHEBYSHEV_U, 2.0 * x - 1.0, n))
PT_POLYNOMIAL(shifted_chebyshev_polynomial_v, chebyshev_polynomial(CHEBYSHEV_V, 2.0 * x - 1.0, n))
PT_POLYNOMIAL(shifted_chebyshev_polynomial_w, chebyshev_polynomial(CHEBYSHEV_W, 2.0 * x - 1.0, n))
PT_POLYNOMIAL(hermite_polynomial_h, hermite_polynomial(2.0, x, n, sizeof(T) == 4 ? 128.0 : 512.0))
PT_POLYNOMIAL(hermite_polynomial_he, hermite_polynomial(1.0, x, n, sizeof(T) == 4 ? 128.0 : 512.0))
PT_POLYNOMIAL(laguerre_polynomial_l, laguerre(x, n, 0.0))
PT_POLYNOMIAL(legendre_polynomial_p, legendre(x, n))
#undef PT_POLYNOMIAL
/* with the argument order of the texts of derivatives */
template<class T> PT_INLINE T laguerre_of(T x, T n, T alpha) {
    return (T)laguerre((double)x, (double)n, (double)alpha);
}
PT_INLINE float jacobi_ratio(float x, float n, float alpha, float beta) {
    return (float)jacobi_ratio((double)x, (double)n, (double)alpha, (double)beta);
}

}}  /* namespace pt, unnamed */
#endif
