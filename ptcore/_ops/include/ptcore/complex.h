/* complex<float> and complex<double> for formulas: arithmetic, and functions that follow C99's
 * Annex G in the treatment of infinities, NaN, signed zeros and branch cuts.
 *
 * complex<float> functions compute in double and round. Multiplication is the plain formula (as in
 * torch: no recovery of infinities), division scales by Smith's method. The inverse functions
 * are Kahan's ("Branch cuts for complex elementary functions", 1987). Complex numbers are
 * never ordered, so there is no operator<.
 */
#ifndef PTCORE_COMPLEX_H
#define PTCORE_COMPLEX_H
#include "scalar.h"

namespace pt { namespace {

template<class T> struct complex {
    T re, im;
    complex() = default;
    PT_INLINE constexpr complex(T r, T i = T(0)) : re(r), im(i) {}
    template<class U> PT_INLINE explicit complex(complex<U> z) : re((T)z.re), im((T)z.im) {}
};
typedef complex<float> complex64;
typedef complex<double> complex128;

#define PT_C template<class T> PT_INLINE

PT_C complex<T> operator+(complex<T> x) { return x; }
PT_C complex<T> operator-(complex<T> x) { return {-x.re, -x.im}; }
PT_C complex<T> operator+(complex<T> x, complex<T> y) { return {x.re + y.re, x.im + y.im}; }
PT_C complex<T> operator-(complex<T> x, complex<T> y) { return {x.re - y.re, x.im - y.im}; }
PT_C complex<T> operator*(complex<T> x, complex<T> y) {
    return {x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re};
}
PT_C complex<T> operator/(complex<T> x, complex<T> y) {
    if (y.re == T(0) && y.im == T(0)) return {x.re / abs(y.re), x.im / abs(y.re)};
    bool wide = abs(y.re) >= abs(y.im);
    T big = wide ? y.re : y.im, small = wide ? y.im : y.re;
    T r = small / big, d = big + small * r;
    T a = wide ? x.re + x.im * r : x.re * r + x.im, b = wide ? x.im - x.re * r : x.im * r - x.re;
    return {a / d, b / d};
}
PT_C bool operator==(complex<T> x, complex<T> y) { return (x.re == y.re) & (x.im == y.im); }
PT_C bool operator!=(complex<T> x, complex<T> y) { return !(x == y); }

/* With a real number: componentwise. (A formula's literal, T(1), is complex already.) */
PT_C complex<T> operator*(complex<T> x, T y) { return {x.re * y, x.im * y}; }
PT_C complex<T> operator/(complex<T> x, T y) { return {x.re / y, x.im / y}; }

PT_C complex<T> conj(complex<T> z) { return {z.re, -z.im}; }
PT_C T real(complex<T> z) { return z.re; }
PT_C T imag(complex<T> z) { return z.im; }
PT_C T abs(complex<T> z) { return hypot(z.re, z.im); }
PT_C T angle(complex<T> z) { return atan2(z.im, z.re); }
PT_C bool isnan(complex<T> z) { return isnan(z.re) | isnan(z.im); }
PT_C bool isinf(complex<T> z) { return isinf(z.re) | isinf(z.im); }
PT_C bool isfinite(complex<T> z) { return isfinite(z.re) & isfinite(z.im); }
PT_C complex<T> square(complex<T> z) { return z * z; }
PT_C complex<T> reciprocal(complex<T> z) { return complex<T>(T(1)) / z; }
/* torch's sgn: z/|z|, 0 at 0 */
PT_C complex<T> sgn(complex<T> z) {
    T a = abs(z);
    return a == T(0) ? complex<T>(T(0)) : complex<T>(z.re / a, z.im / a);
}
/* i z and -i z, without a product of infinity and 0, which would be NaN */
PT_C complex<T> times_i(complex<T> z) { return {-z.im, z.re}; }
PT_C complex<T> over_i(complex<T> z) { return {z.im, -z.re}; }
#undef PT_C

/* ---- exponential and logarithm ---- */

PT_NOINLINE complex128 exp(complex128 z) {
    if (z.im == 0) return {exp(z.re), z.im};
    if (!isfinite(z.im)) {
        if (z.re == -infinity<double>()) return {0.0, 0.0};
        if (z.re == infinity<double>()) return {z.re, z.im - z.im};
        double n = z.im - z.im;
        return {n, n};
    }
    double c = cos(z.im), s = sin(z.im);
    if (z.re == infinity<double>()) return {copysign(z.re, c), copysign(z.re, s)};
    if (z.re == -infinity<double>()) return {copysign(0.0, c), copysign(0.0, s)};
    /* e^re may overflow where its product with c or s does not */
    bool big = z.re > 709.0;
    double e = exp(big ? z.re - 100.0 : z.re), k = big ? 2.6881171418161356e43 : 1.0;
    return {e * c * k, e * s * k};
}

/* log|z|, accurate near |z| = 1 and at both ends of the range */
PT_NOINLINE double log_abs(complex128 z) {
    double a = abs(z.re), b = abs(z.im);
    if (isinf(z)) return infinity<double>();
    if (a < b) { double t = a; a = b; b = t; }
    if (a > 1e150 || b < 1e-150) {
        if (a > 1e150) return log(hypot(a * 0.25, b * 0.25)) + 1.3862943611198906;
        /* b*b underflows; scale both if a is small as well */
        if (a < 1e-150) return log(hypot(a * 1e160, b * 1e160)) - 368.41361487904733;
        return log(a);
    }
    if (a > 0.5 && a < 2.0) {
        /* log1p((a-1)(a+1) + b^2)/2, the argument with its rounding errors: (a-1)(a+1) + b^2 =
         * ah^2 + bh^2 - 1 + (a-ah)(a+ah) + (b-bh)(b+bh), the squares being exact */
        double ah = high_half(a), bh = high_half(b);
        double al = (a - ah) * (a + ah), bl = (b - bh) * (b + bh), b2 = bh * bh;
        double h = ah * ah - 1.0, s = h + b2, v = s - h;
        double low = ((h - (s - v)) + (b2 - v)) + (al + bl);
        double t = s + low;
        return 0.5 * log1p_sum(t, (s - t) + low);
    }
    return 0.5 * log(a * a + b * b);
}

PT_NOINLINE complex128 log(complex128 z) { return {log_abs(z), atan2(z.im, z.re)}; }

PT_NOINLINE complex128 log1p(complex128 z) {
    double u = 1.0 + z.re;
    if (abs(z.re) < 0.5 && abs(z.im) < 0.5) {
        /* log|1 + z|^2 = log1p(2 re + re^2 + im^2) */
        double t = z.re * (2.0 + z.re), m = z.im * z.im, s = t + m, v = s - t;
        double low = (t - (s - v)) + (m - v);
        return {0.5 * log1p_sum(s, low), atan2(z.im, u)};
    }
    return log(complex128(u, z.im));
}

PT_NOINLINE complex128 expm1(complex128 z) {
    if (!isfinite(z) || z.re > 700.0) return exp(z) - complex128(1.0);
    /* (e^re - 1) cos im - 2 sin^2(im/2); a zero result is positive, as in the array API standard */
    double e = expm1(z.re), s = sin(0.5 * z.im);
    return {e * cos(z.im) - 2.0 * s * s + 0.0, (e + 1.0) * sin(z.im)};
}

PT_NOINLINE complex128 sqrt(complex128 z) {
    double x = z.re, y = z.im;
    if (x == 0 && y == 0) return {0.0, y};
    if (isinf(y)) return {infinity<double>(), y};
    if (isnan(x)) return {x, x};
    if (isinf(x)) {
        if (x < 0) return {abs(y - y), copysign(x, y)};
        return {x, copysign(y - y, y)};
    }
    if (isnan(y)) return {y, y};
    /* scaled by 4^k into a range where neither the sum nor the square over- or underflows */
    double m = maximum(abs(x), abs(y)), k = 1.0, r = 1.0;
    if (m > 1e300) { k = 0.0625; r = 4.0; }
    if (m < 1e-290) { k = 3.2451855365842673e32; r = 5.5511151231257827e-17; }   /* 2^108, 2^-54 */
    x *= k; y *= k;
    double t = sqrt(0.5 * (abs(x) + hypot(x, y)));
    double u = t * r, v = abs(y) / (t + t) * r;
    return x >= 0 ? complex128(u, copysign(v, y)) : complex128(v, copysign(u, y));
}

/* ---- hyperbolic and trigonometric ---- */

PT_NOINLINE complex128 cosh(complex128 z) {
    double x = z.re, y = z.im;
    if (isfinite(y)) {
        double a = abs(x);
        if (a < 700.0) {
            if (y == 0) return {cosh(x), x * y};
            return {cosh(x) * cos(y), sinh(x) * sin(y)};
        }
        if (isnan(x)) return {x, y == 0 ? y : x};
        complex128 e = exp(complex128(a - 0.6931471805599453, y));
        if (isinf(a) && y == 0) e.im = y;
        return {e.re, x < 0 ? -e.im : e.im};
    }
    double n = y - y;
    if (x == 0) return {n, copysign(0.0, x)};
    if (isinf(x)) return {infinity<double>(), n};
    return {n, n};
}

PT_NOINLINE complex128 sinh(complex128 z) {
    double x = z.re, y = z.im;
    if (isfinite(y)) {
        double a = abs(x);
        if (a < 700.0) {
            if (y == 0) return {sinh(x), y};
            return {sinh(x) * cos(y), cosh(x) * sin(y)};
        }
        if (isnan(x)) return {x, y == 0 ? y : x};
        complex128 e = exp(complex128(a - 0.6931471805599453, y));
        if (isinf(a) && y == 0) e.im = y;
        return {x < 0 ? -e.re : e.re, e.im};
    }
    double n = y - y;
    if (x == 0) return {x, n};
    if (isinf(x)) return {x, n};
    return {n, n};
}

PT_NOINLINE complex128 tanh(complex128 z) {
    double x = z.re, y = z.im;
    if (isnan(x)) return {x, y == 0 ? y : x};
    if (isinf(x))
        return {copysign(1.0, x), copysign(0.0, y)}; /* as the array API standard has it */
    if (abs(x) > 22.0 && isfinite(y)) {
        double im = 4.0 * sin(y) * cos(y) * exp(-2.0 * abs(x));
        return {copysign(1.0, x), copysign(abs(im), sin(2.0 * y))};
    }
    if (!isfinite(y)) {
        double n = y - y;
        return {x == 0 ? x : n, n};
    }
    /* Kahan: t = tan y, b = 1 + t^2, s = sinh x, d = 1 + b s^2 */
    double t = tan(y), b = 1.0 + t * t, s = sinh(x), r = sqrt(1.0 + s * s), d = 1.0 + b * s * s;
    if (isinf(t)) return {r / s, 1.0 / t};
    return {b * r * s / d, t / d};
}

PT_INLINE complex128 cos(complex128 z) { return cosh(times_i(z)); }
PT_INLINE complex128 sin(complex128 z) { return over_i(sinh(times_i(z))); }
PT_INLINE complex128 tan(complex128 z) { return over_i(tanh(times_i(z))); }

/* ---- inverse functions ---- */

/* |z| so large that z^2 +- 1 is z^2 */
PT_INLINE bool huge(complex128 z) { return maximum(abs(z.re), abs(z.im)) > 1e15 || isnan(z); }

PT_NOINLINE complex128 asinh(complex128 z) {
    double x = z.re, y = z.im;
    if (isnan(z)) {
        if (isinf(x)) return {x, y};
        if (isnan(x) && isinf(y)) return {copysign(y, 1.0), x};
        if (isnan(x) && y == 0) return {x, y};
        return {x + y, x + y};
    }
    if (huge(z)) {
        double re = log_abs(z) + 0.6931471805599453;
        return {copysign(re, x), copysign(atan2(abs(y), abs(x)), y)};
    }
    /* asinh z = -i asin(iz): a = sqrt(1 - iz), b = sqrt(1 + iz) */
    complex128 a = sqrt(complex128(1.0 + y, -x)), b = sqrt(complex128(1.0 - y, x));
    double re = asinh(a.re * b.im - a.im * b.re);
    double im = atan2(y, a.re * b.re - a.im * b.im);
    return {copysign(re, x), im};
}
PT_INLINE complex128 asin(complex128 z) { return over_i(asinh(times_i(z))); }

PT_NOINLINE complex128 acos(complex128 z) {
    double x = z.re, y = z.im;
    if (isnan(z)) {
        if (isinf(x)) return {y, -infinity<double>()};
        if (isinf(y)) return {x, -y};
        if (x == 0) return {1.5707963267948966, y};
        return {x + y, x + y};
    }
    if (huge(z)) {
        double im = log_abs(z) + 0.6931471805599453;
        return {atan2(abs(y), x), copysign(im, -y)};
    }
    complex128 a = sqrt(complex128(1.0 - x, -y)), b = sqrt(complex128(1.0 + x, y));
    double im = asinh(b.re * a.im - b.im * a.re);
    return {2.0 * atan2(a.re, b.re), copysign(im, -y)};
}
PT_NOINLINE complex128 acosh(complex128 z) {
    complex128 w = acos(z);
    if (isnan(w.re) && isnan(w.im)) return w;
    if (isnan(w.re)) return {abs(w.im), w.re};
    if (isnan(w.im)) return {w.im, z.re == 0 ? w.re : w.im};
    return {abs(w.im), copysign(w.re, z.im)};
}

PT_NOINLINE complex128 atanh(complex128 z) {
    double x = z.re, y = z.im;
    if (isnan(z)) {
        if (isinf(x)) return {copysign(0.0, x), y};
        if (isinf(y)) return {copysign(0.0, x), copysign(1.5707963267948966, y)};
        if (x == 0) return z;
        return {x + y, x + y};
    }
    double a = abs(x), b = abs(y);
    if (huge(z)) {
        /* re = x/|z|^2 */
        double m = maximum(a, b),
               re = isinf(z) ? 0.0 : (a / m) / (m * ((a / m) * (a / m) + (b / m) * (b / m)));
        return {copysign(re, x), copysign(1.5707963267948966, y)};
    }
    /* re = log1p(4a/((1-a)^2 + b^2))/4, im = atan2(2b, (1-a)(1+a) - b^2)/2 */
    double w = 1.0 - a;
    double re = a == 1.0 && b < 1e-150
                    ? (b == 0 ? infinity<double>() : 0.34657359027997264 - 0.5 * log(b))
                    : 0.25 * log1p(4.0 * a / (w * w + b * b));
    double im = 0.5 * atan2(2.0 * b, w * (1.0 + a) - b * b);
    return {copysign(re, x), copysign(im, y)};
}
PT_INLINE complex128 atan(complex128 z) { return over_i(atanh(times_i(z))); }

/* ---- powers ---- */

/* Exponents for which products are as exact as the product of two numbers. */
template<class T> PT_INLINE bool pow_by_products(complex<T> x, complex<T> y, complex<T> *r) {
    if (!(PT_KNOWN(y.re) && PT_KNOWN(y.im)) || y.im != T(0)) return false;
    if (y.re == T(2)) return *r = x * x, true;
    if (y.re == T(3)) return *r = x * x * x, true;
    if (y.re == T(1)) return *r = x, true;
    if (y.re == T(-1) || y.re == T(-2)) {       /* quotients of complex<float> too are in double */
        const complex128 w = complex128(x);
        const complex128 q = complex128(1.0) / (y.re == T(-1) ? w : w * w);
        const bool zero = x == complex<T>(T(0));
        return *r = zero ? complex<T>(infinity<T>(), not_a_number<T>()) : complex<T>(q), true;
    }
    return false;
}

PT_NOINLINE complex128 pow_called(complex128 x, complex128 y) {
    if (y == complex128(0.0)) return {1.0, 0.0};
    if (y == complex128(0.5)) return sqrt(x);
    if (x == complex128(0.0)) {
        if (y.re > 0) return {0.0, 0.0};
        if (y.im == 0 && y.re < 0) return {infinity<double>(), not_a_number<double>()};
        return {not_a_number<double>(), not_a_number<double>()};
    }
    /* small whole exponents by squaring: exact where the products are */
    if (y.im == 0 && trunc(y.re) == y.re && abs(y.re) <= 64) {
        complex128 r(1.0), b = x;
        for (int n = (int)abs(y.re); n; n >>= 1, b = b * b)
            if (n & 1) r = r * b;
        return y.re < 0 ? complex128(1.0) / r : r;
    }
    return exp(y * log(x));
}

PT_INLINE complex128 exp2(complex128 z) {
    if (!isfinite(z) || z.im == 0 || abs(z.re) > 1000.0)
        return z.im == 0 ? complex128(exp2(z.re), z.im) : exp(z * 0.6931471805599453);
    double m = exp2(z.re), t = z.im * 0.6931471805599453;
    return {m * cos(t), m * sin(t)};
}
PT_INLINE complex128 log2(complex128 z) {
    complex128 w = log(z);
    return {w.re * 1.4426950408889634, w.im * 1.4426950408889634};
}
PT_INLINE complex128 log10(complex128 z) {
    complex128 w = log(z);
    return {w.re * 0.4342944819032518, w.im * 0.4342944819032518};
}
PT_INLINE complex128 rsqrt(complex128 z) { return complex128(1.0) / sqrt(z); }
PT_INLINE complex128 sigmoid(complex128 z) {
    /* the form whose exponential does not overflow */
    if (z.re >= 0) return complex128(1.0) / (complex128(1.0) + exp(-z));
    complex128 e = exp(z);
    return e / (complex128(1.0) + e);
}

template<class T> PT_INLINE complex<T> between(complex<T> x, complex<T> y, complex<T> z) {
    return z.re * z.re + z.im * z.im < T(0.25) ? x + z * (y - x)
                                               : y - (y - x) * (complex<T>(T(1)) - z);
}
/* log(e^x + e^y) = log1p(e^(low - high)) + high; high has the larger real part */
PT_INLINE complex128 logaddexp(complex128 x, complex128 y) {
    if (isnan(x.re) || isnan(x.im) || isnan(y.re) || isnan(y.im)) {
        const double nan = x.re + x.im + y.re + y.im;
        return {nan, nan};
    }
    const complex128 high = x.re < y.re ? y : x, low = x.re < y.re ? x : y;
    if (!isfinite(low.re) && low.re == high.re) return low.re < 0 ? low : log(exp(low) + exp(high));
    return log1p(exp(low - high)) + high;
}

#define PT_COMPLEX64_1(name) \
    PT_INLINE complex64 name(complex64 z) { return complex64(name(complex128(z))); }
PT_COMPLEX64_1(exp)
PT_COMPLEX64_1(exp2)
PT_COMPLEX64_1(expm1)
PT_COMPLEX64_1(log)
PT_COMPLEX64_1(log2)
PT_COMPLEX64_1(log10)
PT_COMPLEX64_1(log1p)
PT_COMPLEX64_1(sqrt)
PT_COMPLEX64_1(rsqrt)
PT_COMPLEX64_1(sin)
PT_COMPLEX64_1(cos)
PT_COMPLEX64_1(tan)
PT_COMPLEX64_1(asin)
PT_COMPLEX64_1(acos)
PT_COMPLEX64_1(atan)
PT_COMPLEX64_1(sinh)
PT_COMPLEX64_1(cosh)
PT_COMPLEX64_1(tanh)
PT_COMPLEX64_1(asinh)
PT_COMPLEX64_1(acosh)
PT_COMPLEX64_1(atanh)
PT_COMPLEX64_1(sigmoid)
#undef PT_COMPLEX64_1
PT_INLINE complex64 logaddexp(complex64 x, complex64 y) {
    return complex64(logaddexp(complex128(x), complex128(y)));
}
PT_INLINE complex128 pow(complex128 x, complex128 y) {
    complex128 known;
    return pow_by_products(x, y, &known) ? known : pow_called(x, y);
}
PT_INLINE complex64 pow(complex64 x, complex64 y) {
    complex64 known;
    if (pow_by_products(x, y, &known)) return known;
    return complex64(pow_called(complex128(x), complex128(y)));
}
}}  /* namespace pt, unnamed */
#endif
