/* How the distributions other than the plain uniform make an element from its random words
 * (philox.h lays these out). The CPU's kernels and CUDA's compile the same text, so that
 * both draw the same numbers. */
#ifndef PTCORE_DRAWS_H
#define PTCORE_DRAWS_H
#include "half.h"
#include "philox.h"

namespace pt { namespace {

PT_INLINE uint64_t word64(const uint32_t *w, int64_t i) {
    return w[2 * i] | (uint64_t)w[2 * i + 1] << 32;
}

/* The uniform of a half type has only as many bits as the type holds, so that it stays below 1. */
PT_INLINE float uniform_of(half, uint32_t w) { return (float)(int32_t)(w >> 21) * 0.00048828125f; }
PT_INLINE float uniform_of(bfloat16, uint32_t w) { return (float)(int32_t)(w >> 24) * 0.00390625f; }
PT_INLINE float uniform_of(float, uint32_t w) { return uniform_float(w); }

/* -log(1 - u); u = 0 is taken as half a step, so that no result is 0 */
PT_INLINE float exponential_of(uint32_t w) {
    float u = uniform_float(w), e = -log(1.f - u);
    return u == 0.f ? 2.98023224e-08f : e;
}
PT_INLINE double exponential_of(uint64_t w) {
    double u = uniform_double(w), e = -log(1.0 - u);
    return u == 0.0 ? 5.551115123125783e-17 : e;
}

/* High half of a * b */
PT_INLINE uint64_t multiply_high(uint64_t a, uint64_t b) {
    uint64_t al = (uint32_t)a, ah = a >> 32, bl = (uint32_t)b, bh = b >> 32;
    uint64_t m = ah * bl + (al * bl >> 32), n = al * bh + (uint32_t)m;
    return ah * bh + (m >> 32) + (n >> 32);
}

/* Uniform below `range` (Lemire): tries the words of a block in order, then those of the
 * next draw. Ranges up to 2^32 use 32-bit words. Reaching the limit of 2^24 draws has
 * practically no probability. */
PT_NOINLINE uint64_t below(uint64_t range, philox_block b, uint64_t seed, uint64_t offset,
                           uint64_t element) {
    uint64_t reject64 = (0 - range) % range;
    uint32_t reject32 = (uint32_t)((((uint64_t)1 << 32) - range) % range);
    uint64_t value = 0;
    for (uint32_t draw = 0; draw < PHILOX_MAX_DRAWS; b = philox(seed, offset, element, ++draw)) {
        if (range <= (uint64_t)1 << 32) {
            for (int j = 0; j < 4; j++) {
                uint64_t product = b.w[j] * range;
                value = product >> 32;
                if ((uint32_t)product >= reject32) return value;
            }
        } else {
            for (int j = 0; j < 2; j++) {
                uint64_t w = word64(b.w, j);
                value = multiply_high(w, range);
                if (w * range >= reject64) return value;
            }
        }
    }
    return value;
}

/* ---- Poisson: products of uniforms for a mean below 10, else transformed rejection
 * (Hoermann's PTRS, 1993) ---- */

struct uniform_pairs {
    uint64_t seed, offset, block;
    uint32_t draw;
    double u, v;
    PT_HOST_DEVICE bool next() {
        if (draw >= PHILOX_MAX_DRAWS) return false;
        philox_block b = philox(seed, offset, block, draw++);
        u = uniform_double(b.w[0] | (uint64_t)b.w[1] << 32);
        v = uniform_double(b.w[2] | (uint64_t)b.w[3] << 32);
        return true;
    }
};

PT_NOINLINE double poisson_small(double mean, uniform_pairs d) {
    const double stop = exp(-mean);
    double k = 0, product = 1;
    while (d.next()) {
        product *= d.u;
        if (product <= stop) break;
        k += 1;
        product *= d.v;
        if (product <= stop) break;
        k += 1;
    }
    return k;
}

PT_NOINLINE double poisson_large(double mean, uniform_pairs d) {
    const double root = sqrt(mean), log_mean = log(mean), b = 0.931 + 2.53 * root,
                 a = -0.059 + 0.02483 * b;
    const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4), v_r = 0.9277 - 3.6224 / (b - 2);
    double k = floor(mean);
    while (d.next()) {
        const double u = d.u - 0.5, v = d.v, us = 0.5 - abs(u);
        k = floor((2 * a / us + b) * u + mean + 0.43);
        if (us >= 0.07 && v <= v_r) break;
        if (k < 0 || (us < 0.013 && v > us)) continue;
        if (log(v * inverse_alpha / (a / (us * us) + b)) <= -mean + k * log_mean - lgamma(k + 1))
            break;
    }
    return k < 0 ? 0 : k;
}

PT_INLINE double poisson_draw(double mean, uniform_pairs d) {
    return mean == 0 || !isfinite(mean) ? mean
           : mean < 10                  ? poisson_small(mean, d)
                                        : poisson_large(mean, d);
}

/* ---- binomial: sums of the gaps between successes for a mean below 10, else transformed rejection
 * (Hoermann's BTRS, 1993) ---- */

PT_INLINE double trials_to_success(double u, double log_q) { return floor(log(1 - u) / log_q) + 1; }

PT_NOINLINE double binomial_small(double n, double p, uniform_pairs d) {
    const double log_q = log1p(-p);
    double k = 0, passed = 0;
    while (d.next()) {
        passed += trials_to_success(d.u, log_q);
        if (passed > n) break;
        k += 1;
        passed += trials_to_success(d.v, log_q);
        if (passed > n) break;
        k += 1;
    }
    return k;
}

PT_NOINLINE double binomial_large(double n, double p, uniform_pairs d) {
    const double q = 1 - p, root = sqrt(n * p * q), b = 1.15 + 2.53 * root,
                 a = -0.0873 + 0.0248 * b + 0.01 * p;
    const double middle = n * p + 0.5, v_r = 0.92 - 4.2 / b, alpha = (2.83 + 5.1 / b) * root,
                 log_odds = log(p / q);
    const double mode = floor((n + 1) * p), at_mode = lgamma(mode + 1) + lgamma(n - mode + 1);
    double k = mode;
    while (d.next()) {
        const double u = d.u - 0.5, us = 0.5 - abs(u);
        k = floor((2 * a / us + b) * u + middle);
        if (!(k >= 0 && k <= n)) {
            k = mode;
            continue;
        }
        if (us >= 0.07 && d.v <= v_r) break;
        if (log(d.v * alpha / (a / (us * us) + b)) <=
            at_mode - lgamma(k + 1) - lgamma(n - k + 1) + (k - mode) * log_odds)
            break;
    }
    return k;
}

/* The successes in n trials, for whole n and p in [0, 1]; NaN for other n or p. */
PT_INLINE double binomial_draw(double n, double p, uniform_pairs d) {
    if (!(n >= 0 && n == floor(n) && isfinite(n) && p >= 0 && p <= 1)) return (n - n) / (n - n);
    const double rare = p <= 0.5 ? p : 1 - p;
    const double k = n == 0 || rare == 0 ? 0
                     : n * rare < 10     ? binomial_small(n, rare, d)
                                         : binomial_large(n, rare, d);
    return p <= 0.5 ? k : n - k;
}

}}  /* namespace pt, unnamed */
#endif
