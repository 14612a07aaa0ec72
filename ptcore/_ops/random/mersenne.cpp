/* Random kernels by PyTorch's ways from words to numbers, equal to it to the bit.
 *
 * Everything is drawn element by element in the order of the output's memory. What PyTorch's build
 * for AVX2 fuses is an explicit fma here, and nothing else may be fused: the file is compiled
 * without contraction, at one ISA level. Logarithms and circular functions of doubles are the C
 * library's, as in PyTorch; those of floats are Cephes's, whose text is in cephes_normal.h.
 *
 * The first kernels serve calls whose generator is a twister; random.cpp hands these on. The
 * kernels in the table at the end belong to rows of their own, which programs recorded with a
 * twister may also run with Philox: `source` then takes words from a counter.
 */
#include "ptcore/config.h"
#undef PT_HAVE_FMA
#define PT_HAVE_FMA 0
#include "mersenne.h"
#include "ptcore/half.h"
#include "ptcore/philox.h"
#include "casts.h"

#include <cmath>
#include <mutex>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifndef _WIN32
#include <pthread.h>
#endif

namespace pt { namespace {

enum { CHUNK = 256 };
constexpr double TAU = 2.0 * 3.141592653589793238462643383279502884;

std::mutex lock;

#ifndef _WIN32
void before_fork() { lock.lock(); }
void after_fork() { lock.unlock(); }
#endif

template<class... A> int fail(pt_call *call, int status, const char *format, A... args) {
    snprintf(call->error, sizeof call->error, format, args...);
    return status;
}

/* ---- the twister ---- */

PT_INLINE uint32_t mixed(uint32_t high, uint32_t low, uint32_t far) {
    const uint32_t y = (high & 0x80000000u) | (low & 0x7fffffffu);
    return far ^ (y >> 1) ^ ((0 - (y & 1u)) & 0x9908b0dfu);
}

PT_NOINLINE void next_block(pt_mersenne *m) {
    uint32_t *w = m->words;
    const int n = PT_MERSENNE_WORDS, far = 397;
    for (int i = 0; i < n - far; i++) w[i] = mixed(w[i], w[i + 1], w[i + far]);
    for (int i = n - far; i < n - 1; i++) w[i] = mixed(w[i], w[i + 1], w[i + far - n]);
    w[n - 1] = mixed(w[n - 1], w[0], w[far - 1]);
    m->left = n;
    m->next = 0;
}

PT_INLINE uint32_t word_of(pt_mersenne *m) {
    if (PT_UNLIKELY(--m->left == 0)) next_block(m);
    uint32_t y = m->words[m->next++];
    y ^= y >> 11;
    y ^= y << 7 & 0x9d2c5680u;
    y ^= y << 15 & 0xefc60000u;
    return y ^ y >> 18;
}

/* The words of a call, while it holds the lock. */
struct source {
    pt_mersenne *m;
    uint64_t seed, offset, block = 0;
    philox_block words;
    int at = 4;
    double normal = 0;
    uint8_t has_normal = 0;

    explicit source(const pt_call *call)
        : m((pt_mersenne *)call->stream), seed(call->seed), offset(call->offset) {
        if (m) lock.lock();
    }
    ~source() {
        if (m) lock.unlock();
    }
    source(const source &) = delete;
    source &operator=(const source &) = delete;
};

PT_NOINLINE uint32_t counted_word(source &s) {
    if (s.at == 4) {
        s.words = philox(s.seed, s.offset, s.block++, 0);
        s.at = 0;
    }
    return s.words.w[s.at++];
}
PT_INLINE uint32_t word(source &s) {
    return PT_UNLIKELY(!s.m) ? counted_word(s) : word_of(s.m);
}

PT_NOINLINE uint64_t word64(source &s) {
    const uint64_t high = word(s);
    return high << 32 | word(s);
}

PT_INLINE float unit(source &s) {
    return (float)(int32_t)(word(s) & 0xffffffu) * 5.9604644775390625e-08f;
}
PT_INLINE double unit64(source &s) {
    return (double)(int64_t)(word64(s) & 0x1fffffffffffffu) * 1.1102230246251565e-16;
}

/* A normal number; every second one was kept. */
PT_NOINLINE double one_normal(source &s) {
    uint8_t &has = s.m ? s.m->has_normal : s.has_normal;
    double &kept = s.m ? s.m->normal : s.normal;
    has = !has;
    if (!has) return kept;
    const double u = unit64(s), v = unit64(s);
    const double r = std::sqrt(-2.0 * std::log1p(-v)), angle = TAU * u;
    kept = r * std::sin(angle);
    return r * std::cos(angle);
}

/* ---- results ---- */

PT_INLINE float widen(half x) { return to_float(x); }
PT_INLINE float widen(bfloat16 x) { return to_float(x); }
PT_INLINE float widen(float x) { return x; }
PT_INLINE double widen(double x) { return x; }
PT_INLINE void narrow(half *r, float v) { *r = to_half(v); }
PT_INLINE void narrow(bfloat16 *r, float v) { *r = to_bfloat16(v); }
PT_INLINE void narrow(float *r, float v) { *r = v; }
PT_INLINE void narrow(double *r, double v) { *r = v; }
template<class T> PT_INLINE T rounded(decltype(widen(T())) v) {
    T r;
    narrow(&r, v);
    return r;
}

int wrong_dtype(pt_call *call, const char *expected) {
    return fail(call, PT_TYPE_ERROR, "dtype must be %s, got another", expected);
}

template<template<class> class F, class... A> int for_floating(pt_call *call, A... args) {
    switch (call->out[0].dtype) {
    case PT_FLOAT16: return F<half>::run(call, args...);
    case PT_BFLOAT16: return F<bfloat16>::run(call, args...);
    case PT_FLOAT32: return F<float>::run(call, args...);
    case PT_FLOAT64: return F<double>::run(call, args...);
    default: return wrong_dtype(call, "floating point");
    }
}

PT_INLINE double param(const pt_call *call, int k) { return call->params[k].d; }

/* Element i of an input of a floating dtype, which is contiguous. */
PT_NOINLINE double element(const pt_view &x, int64_t i) {
    switch (x.dtype) {
    case PT_FLOAT16: return to_float(((const half *)x.data)[i]);
    case PT_BFLOAT16: return to_float(((const bfloat16 *)x.data)[i]);
    case PT_FLOAT32: return ((const float *)x.data)[i];
    default: return ((const double *)x.data)[i];
    }
}

/* out[i] = f(words, call, i), converted to out's dtype piece by piece. */
template<class V> PT_NOINLINE int fill(pt_call *call, int from,
                                       V (*f)(source &, const pt_call *, int64_t)) {
    source s(call);
    const int dtype = call->out[0].dtype;
    const int64_t size = pt_itemsize(dtype), n = call->out[0].numel;
    /* a double is rounded to float before it is to a half type */
    const bool twice = from == PT_FLOAT64 && (dtype == PT_FLOAT16 || dtype == PT_BFLOAT16);
    V values[CHUNK];
    float between[CHUNK];
    for (int64_t k = 0; k < n; k += CHUNK) {
        const int64_t m = n - k < CHUNK ? n - k : (int64_t)CHUNK;
        for (int64_t i = 0; i < m; i++) values[i] = f(s, call, k + i);
        for (int64_t i = 0; twice && i < m; i++) between[i] = (float)values[i];
        char *ptr[2] = {call->out[0].data + k * size, twice ? (char *)between : (char *)values};
        const int last = twice ? PT_FLOAT32 : from;
        pt_cast_loop(last, dtype)(ptr, m, pt_cast_params(last, dtype));
    }
    return PT_OK;
}

int fill_real(pt_call *call, double (*f)(source &, const pt_call *, int64_t)) {
    return fill(call, PT_FLOAT64, f);
}

/* ---- uniform and normal ---- */

PT_INLINE void draw_unit(source &s, float *r) { *r = unit(s); }
PT_INLINE void draw_unit(source &s, double *r) { *r = unit64(s); }

/* What is rounded up to the end becomes the start. */
template<class T> struct uniform {
    typedef decltype(widen(T())) real;
    static int run(pt_call *call) {
        source s(call);
        T *out = (T *)call->out[0].data;
        const real from = (real)param(call, 0), to = (real)param(call, 1), span = to - from;
        const real end = widen(rounded<T>(to)), start = widen(rounded<T>(from));
        const bool plain = from == 0 && to == 1;
        for (int64_t i = 0; i < call->out[0].numel; i++) {
            real u;
            draw_unit(s, &u);
            const real v = widen(rounded<T>(plain ? u : std::fma(u, span, from)));
            narrow(&out[i], v == end ? start : v);
        }
        return PT_OK;
    }
};

/* Sixteen uniform numbers become normal ones; random.cpp has the same for floats. */
PT_NOINLINE void transform(double *d, double mean, double std) {
    for (int j = 0; j < 8; j++) {
        const double radius = std::sqrt(-2.0 * std::log(1.0 - d[j])), angle = TAU * d[j + 8];
        d[j] = std::fma(radius * std::cos(angle), std, mean);
        d[j + 8] = std::fma(radius * std::sin(angle), std, mean);
    }
}

double next_normal(source &s, const pt_call *call, int64_t) {
    return std::fma(one_normal(s), param(call, 1), param(call, 0));
}

/* From 16 numbers on by blocks of 16 uniform ones, the last block anew if it is not whole. Half
 * types are rounded at the end. */
template<class T> struct normal {
    typedef decltype(widen(T())) real;
    static void transformed(float *d, const pt_call *call, pt_mersenne_transform f) {
        f(d, (float)param(call, 0), (float)param(call, 1));
    }
    static void transformed(double *d, const pt_call *call, pt_mersenne_transform) {
        transform(d, param(call, 0), param(call, 1));
    }
    static void block(source &s, T *out, const pt_call *call, pt_mersenne_transform f) {
        real d[16];
        for (real &x : d) draw_unit(s, &x);
        transformed(d, call, f);
        for (int j = 0; j < 16; j++) narrow(&out[j], d[j]);
    }
    static int run(pt_call *call, pt_mersenne_transform f) {
        const int64_t n = call->out[0].numel;
        if (n < 16) return fill_real(call, next_normal);
        source s(call);
        T *out = (T *)call->out[0].data;
        for (int64_t i = 0; i + 16 <= n; i += 16) block(s, out + i, call, f);
        /* PyTorch draws uniform numbers for all elements first, except of half types */
        real unused;
        for (int64_t i = n % 16; i > 0 && sizeof(T) == sizeof(real); i--) draw_unit(s, &unused);
        if (n % 16) block(s, out + n - 16, call, f);
        return PT_OK;
    }
};

/* ---- whole numbers ---- */

/* From low up to high, where -2^63 as `high` means 2^63. A range of 0 is one of 2^64. */
int64_t next_integer(source &s, const pt_call *call, int64_t) {
    const uint64_t low = (uint64_t)call->params[0].i, range = (uint64_t)call->params[1].i - low;
    if (!range) return (int64_t)word64(s);
    return (int64_t)(low + (range < (uint64_t)1 << 28 ? word(s) : word64(s)) % range);
}

/* Up to the dtype's largest, or up to where all integers are exact. */
int64_t next_whole(source &s, const pt_call *call, int64_t) {
    switch (call->out[0].dtype) {
    case PT_BOOL: return word(s) & 1u;
    case PT_INT8: return word(s) & 0x7fu;
    case PT_INT16: return word(s) & 0x7fffu;
    case PT_INT32: return word(s) & 0x7fffffffu;
    case PT_INT64: return (int64_t)(word64(s) & 0x7fffffffffffffffu);
    case PT_FLOAT16: return word(s) % ((1u << 11) + 1);
    case PT_BFLOAT16: return word(s) % ((1u << 8) + 1);
    case PT_FLOAT32: return word(s) % ((1u << 24) + 1);
    case PT_FLOAT64: return (int64_t)(word64(s) % (((uint64_t)1 << 53) + 1));
    case PT_UINT64: return (int64_t)word64(s);
    default: return word(s);            /* of a narrower unsigned dtype the low bits remain */
    }
}
int whole(pt_call *call) {
    if (pt_is(call->out[0].dtype, PT_KIND_COMPLEX)) return wrong_dtype(call, "real");
    return fill(call, PT_INT64, next_whole);
}

int not_probability(pt_call *call, const char *what, double p) {
    return fail(call, PT_RUNTIME_ERROR, "%s must be in [0, 1], got %g", what, p);
}

uint8_t next_flag(source &s, const pt_call *call, int64_t i) {
    const double p = element(call->in[0], i);
    return call->in[0].dtype == PT_FLOAT64 ? unit64(s) < p : unit(s) < (float)p;
}
uint8_t next_flag_of(source &s, const pt_call *call, int64_t) {
    return unit64(s) < param(call, 0);
}
int bernoulli_number(pt_call *call) {
    const double p = param(call, 0);
    return p >= 0 && p <= 1 ? fill(call, PT_BOOL, next_flag_of) : not_probability(call, "p", p);
}

template<class T> struct dropping {
    static int run(pt_call *call) {
        typedef decltype(widen(T())) real;
        source s(call);
        T *out = (T *)call->out[0].data;
        const T *x = (const T *)call->in[0].data;
        uint8_t *mask = (uint8_t *)call->out[1].data;
        const double kept = 1.0 - param(call, 0);
        const real scale = kept > 0 ? widen(rounded<T>((real)1 / (real)kept)) : 0;
        for (int64_t i = 0; i < call->out[0].numel; i++) {
            mask[i] = unit64(s) < kept;
            narrow(&out[i], widen(x[i]) * (mask[i] ? scale : 0));
        }
        return PT_OK;
    }
};

/* ---- counts ---- */

PT_NOINLINE double poisson_draw(source &s, double mean) {
    if (mean == 0 || !(mean < INFINITY)) return mean;
    if (mean < 10) {
        const double end = std::exp(-mean);
        double k = 0, product = 1;
        while ((product *= unit64(s)) > end) k += 1;
        return k;
    }
    const double root = std::sqrt(mean), log_mean = std::log(mean), b = 0.931 + 2.53 * root,
                 a = -0.059 + 0.02483 * b;
    const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4), v_r = 0.9277 - 3.6224 / (b - 2);
    for (;;) {
        const double u = unit64(s) - 0.5, v = unit64(s), us = 0.5 - std::fabs(u);
        const double k = std::floor((2 * a / us + b) * u + mean + 0.43);
        if (us >= 0.07 && v <= v_r) return k;
        if (k < 0 || (us < 0.013 && v > us)) continue;
        if (std::log(v) + std::log(inverse_alpha) - std::log(a / (us * us) + b) <=
            -mean + k * log_mean - std::lgamma(k + 1))
            return k;
    }
}

double next_poisson(source &s, const pt_call *call, int64_t i) {
    return poisson_draw(s, element(call->in[0], i));
}

PT_NOINLINE double stirling_tail(double k) {
    static const double small[] = {0.0810614667953272,  0.0413406959554092, 0.0276779256849983,
                                   0.02079067210376509, 0.0166446911898211, 0.0138761288230707,
                                   0.0118967099458917,  0.0104112652619720, 0.00925546218271273,
                                   0.00833056343336287};
    if (k <= 9) return small[(int)k];
    const double square = (k + 1) * (k + 1);
    return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1);
}

PT_NOINLINE double binomial_large(source &s, double n, double p) {
    const double root = std::sqrt(n * p * (1 - p)), b = 1.15 + 2.53 * root;
    const double a = -0.0873 + 0.0248 * b + 0.01 * p, c = n * p + 0.5, v_r = 0.92 - 4.2 / b;
    const double r = p / (1 - p), alpha = (2.83 + 5.1 / b) * root, m = std::floor((n + 1) * p);
    for (;;) {
        const double u = unit64(s) - 0.5, v = unit64(s), us = 0.5 - std::fabs(u);
        const double k = std::floor((2 * a / us + b) * u + c);
        if (k < 0 || k > n) continue;
        if (us >= 0.07 && v <= v_r) return k;
        const double bound = (m + 0.5) * std::log((m + 1) / (r * (n - m + 1))) +
                             (n + 1) * std::log((n - m + 1) / (n - k + 1)) +
                             (k + 0.5) * std::log(r * (n - k + 1) / (k + 1)) + stirling_tail(m) +
                             stirling_tail(n - m) - stirling_tail(k) - stirling_tail(n - k);
        if (std::log(v * alpha / (a / (us * us) + b)) <= bound) return k;
    }
}

PT_NOINLINE double binomial_draw(source &s, double n, double p) {
    if (n <= 0 || p <= 0) return 0;
    if (p >= 1) return n;
    const double rare = p <= 0.5 ? p : 1 - p;
    double k = 0;
    if (n * rare >= 10) {
        k = binomial_large(s, n, rare);
    } else {
        const double scale = std::log1p(-rare);
        double passed = 0;
        while ((passed += std::ceil(std::log(unit64(s)) / scale)) <= n) k += 1;
    }
    return p <= 0.5 ? k : n - k;
}

double next_binomial(source &s, const pt_call *call, int64_t i) {
    return binomial_draw(s, element(call->in[0], i), element(call->in[1], i));
}

/* The method of Marsaglia and Tsang (2000). Some of PyTorch's constants are floats. */
PT_NOINLINE double gamma_draw(source &s, double alpha) {
    double scale = 1;
    if (alpha < 1) {
        if (alpha == 0) return 0;
        scale = std::pow(1 - unit64(s), 1 / alpha);
        alpha += 1;
    }
    const double d = alpha - (double)(1.f / 3.f), c = 1 / std::sqrt(9 * d);
    for (;;) {
        double x, y;
        do {
            x = one_normal(s);
            y = 1 + c * x;
        } while (y <= 0);
        const double v = y * y * y, u = 1 - unit64(s), square = x * x;
        if (u < 1 - (double)0.0331f * square * square ||
            std::log(u) < 0.5 * square + d * (1 - v + std::log(v)))
            return scale * d * v;
    }
}

double next_gamma(source &s, const pt_call *call, int64_t i) {
    const double alpha = element(call->in[0], i);
    if (!(alpha >= 0 && alpha < INFINITY)) return alpha < 0 ? NAN : alpha;
    const double smallest = call->out[0].dtype == PT_FLOAT64 ? 2.2250738585072014e-308
                                                             : 1.1754943508222875e-38;
    const double v = gamma_draw(s, alpha);
    return v > smallest ? v : smallest;
}

/* ---- rows of their own ---- */

int one_by_one(pt_call *call) { return fill_real(call, next_normal); }

double next_exponential(source &s, const pt_call *call, int64_t) {
    return -1.0 / param(call, 0) * std::log1p(-unit64(s));
}

double next_log_normal(source &s, const pt_call *call, int64_t i) {
    return std::exp(next_normal(s, call, i));
}
int log_normal(pt_call *call) { return fill_real(call, next_log_normal); }

double next_cauchy(source &s, const pt_call *call, int64_t) {
    return std::fma(param(call, 1), std::tan(TAU / 2 * (unit64(s) - 0.5)), param(call, 0));
}
int cauchy(pt_call *call) { return fill_real(call, next_cauchy); }

double next_geometric(source &s, const pt_call *call, int64_t) {
    return std::ceil(std::log(unit64(s)) / std::log1p(-param(call, 0)));
}
int geometric(pt_call *call) { return fill_real(call, next_geometric); }

double next_slope(source &s, const pt_call *call, int64_t i) {
    double low = param(call, 0), high = param(call, 1);
    if (call->out[0].dtype != PT_FLOAT64) low = (float)low, high = (float)high;
    return element(call->in[0], i) <= 0 ? unit64(s) * (high - low) + low : 1;
}
int random_gamma(pt_call *call) {
    if (!pt_is(call->in[0].dtype, PT_KIND_FLOATING)) return wrong_dtype(call, "floating point");
    return fill_real(call, next_gamma);
}
int rrelu_noise(pt_call *call) {
    if (!pt_is(call->in[0].dtype, PT_KIND_FLOATING)) return wrong_dtype(call, "floating point");
    return fill_real(call, next_slope);
}

/* For each row of weights: the first running sum, as a share of the last one, that is not below. */
int places(pt_call *call) {
    const pt_view &weights = call->in[0], &shares = call->in[1];
    if (weights.dtype != PT_FLOAT64 || shares.dtype != PT_FLOAT64 || weights.ndim < 1)
        return fail(call, PT_TYPE_ERROR, "%s", "weights and shares must be float64");
    const bool single = call->params[0].i != 0;
    const int64_t n = weights.sizes[weights.ndim - 1], rows = n ? weights.numel / n : 0;
    const int64_t m = rows ? shares.numel / rows : 0;
    double *sums = (double *)malloc((size_t)n * sizeof(double) + 1);
    if (!sums)
        return fail(call, PT_MEMORY_ERROR, "could not allocate %lld bytes", (long long)n * 8);
    auto rounded_to = [=](double v) { return single ? (double)(float)v : v; };
    for (int64_t row = 0; row < rows; row++) {
        const double *w = (const double *)weights.data + row * n;
        double sum = 0;
        for (int64_t i = 0; i < n; i++) sums[i] = sum = rounded_to(sum + w[i]);
        for (int64_t i = 0; i < n; i++) sums[i] = rounded_to(sums[i] / sum);
        for (int64_t j = row * m; j < (row + 1) * m; j++) {
            int64_t first = 0, end = n - 1;         /* the last sum counts as 1 */
            while (first < end) {
                const int64_t middle = first + (end - first) / 2;
                if (sums[middle] < ((const double *)shares.data)[j]) first = middle + 1;
                else end = middle;
            }
            ((int64_t *)call->out[0].data)[j] = first;
        }
    }
    free(sums);
    return PT_OK;
}

}}  /* namespace pt, unnamed */

extern "C" {

/* ---- generators ---- */

pt_mersenne *pt_mersenne_new(uint64_t seed) {
#ifndef _WIN32
    static const int once = pthread_atfork(pt::before_fork, pt::after_fork, pt::after_fork);
    (void)once;
#endif
    pt_mersenne *m = (pt_mersenne *)calloc(1, sizeof(pt_mersenne));
    if (m) pt_mersenne_seed(m, seed);
    return m;
}

void pt_mersenne_free(pt_mersenne *m) { free(m); }

void pt_mersenne_seed(pt_mersenne *m, uint64_t seed) {
    std::lock_guard<std::mutex> held(pt::lock);
    m->seed = seed;
    m->words[0] = (uint32_t)seed;
    for (uint32_t i = 1; i < PT_MERSENNE_WORDS; i++) {
        const uint32_t w = m->words[i - 1];
        m->words[i] = 1812433253u * (w ^ w >> 30) + i;
    }
    m->left = 1;
    m->next = 0;
    m->has_normal = m->has_short_normal = 0;
    m->normal = m->short_normal = 0;
}

}

namespace {

/* PyTorch's CPUGeneratorImplState */
struct stored {
    uint64_t seed;
    int32_t left, seeded;
    uint64_t next, words[PT_MERSENNE_WORDS];
    double x, normal, rho;
    int32_t has_normal, pad;
    float short_normal;
    uint8_t has_short_normal, end[3];
};
static_assert(sizeof(stored) == PT_MERSENNE_BYTES, "the layout of a state");

}

extern "C" {

void pt_mersenne_store(const pt_mersenne *m, char *state) {
    stored s;
    memset(&s, 0, sizeof s);
    {
        std::lock_guard<std::mutex> held(pt::lock);
        s.seed = m->seed;
        s.left = m->left;
        s.seeded = 1;
        s.next = m->next;
        for (int i = 0; i < PT_MERSENNE_WORDS; i++) s.words[i] = m->words[i];
        s.has_normal = m->has_normal;
        s.normal = m->has_normal ? m->normal : 0;
        s.has_short_normal = m->has_short_normal;
        s.short_normal = m->has_short_normal ? m->short_normal : 0;
    }
    memcpy(state, &s, sizeof s);
}

int pt_mersenne_load(pt_mersenne *m, const char *state) {
    stored s;
    memcpy(&s, state, sizeof s);
    /* a word is read at `next` unless `left` says that a new block comes first */
    if (!s.seeded || s.left < 1 || s.left > PT_MERSENNE_WORDS ||
        s.next > (uint64_t)(PT_MERSENNE_WORDS) ||
        (s.left > 1 && s.next + (uint64_t)s.left - 1 > PT_MERSENNE_WORDS))
        return 0;
    std::lock_guard<std::mutex> held(pt::lock);
    m->seed = s.seed;
    m->left = s.left;
    m->next = (uint32_t)s.next;
    for (int i = 0; i < PT_MERSENNE_WORDS; i++) m->words[i] = (uint32_t)s.words[i];
    m->has_normal = s.has_normal != 0;
    m->normal = s.normal;
    m->has_short_normal = s.has_short_normal != 0;
    m->short_normal = s.short_normal;
    return 1;
}

/* ---- kernels ---- */

int pt_mersenne_uniform(pt_call *call) { return pt::for_floating<pt::uniform>(call); }
int pt_mersenne_normal(pt_call *call, pt_mersenne_transform f) {
    return pt::for_floating<pt::normal>(call, f);
}
int pt_mersenne_dropout(pt_call *call) { return pt::for_floating<pt::dropping>(call); }

int pt_mersenne_exponential(pt_call *call) {
    if (!pt_is(call->out[0].dtype, PT_KIND_FLOATING))
        return pt::wrong_dtype(call, "floating point");
    return pt::fill_real(call, pt::next_exponential);
}

int pt_mersenne_integers(pt_call *call) { return pt::fill(call, PT_INT64, pt::next_integer); }

int pt_mersenne_bernoulli(pt_call *call) {
    if (!pt_is(call->in[0].dtype, PT_KIND_FLOATING))
        return pt::fail(call, PT_TYPE_ERROR, "%s", "probabilities must be floating point");
    for (int64_t i = 0; i < call->in[0].numel; i++) {
        const double p = pt::element(call->in[0], i);
        if (!(p >= 0 && p <= 1)) return pt::not_probability(call, "probabilities", p);
    }
    return pt::fill(call, PT_BOOL, pt::next_flag);
}

int pt_mersenne_poisson(pt_call *call) {
    if (!pt_is(call->in[0].dtype, PT_KIND_FLOATING)) return pt::wrong_dtype(call, "floating point");
    for (int64_t i = 0; i < call->in[0].numel; i++) {
        const double rate = pt::element(call->in[0], i);
        if (!(rate >= 0))
            return pt::fail(call, PT_RUNTIME_ERROR, "rates must not be negative, got %g", rate);
    }
    return pt::fill_real(call, pt::next_poisson);
}

int pt_mersenne_binomial(pt_call *call) {
    if (!pt_is(call->in[0].dtype, PT_KIND_FLOATING)) return pt::wrong_dtype(call, "floating point");
    for (int64_t i = 0; i < call->in[0].numel; i++) {
        const double n = pt::element(call->in[0], i), p = pt::element(call->in[1], i);
        if (!(n >= 0 && n == std::floor(n) && n < INFINITY))
            return pt::fail(call, PT_RUNTIME_ERROR,
                            "count must hold whole numbers that are not negative, got %g", n);
        if (!(p >= 0 && p <= 1)) return pt::not_probability(call, "prob", p);
    }
    return pt::fill_real(call, pt::next_binomial);
}

int pt_mersenne_randperm(pt_call *call) {
    const int64_t n = call->out[0].numel;
    int64_t *order = (int64_t *)malloc((size_t)n * sizeof(int64_t) + 1);
    if (!order)
        return pt::fail(call, PT_MEMORY_ERROR, "could not allocate %lld bytes", (long long)n * 8);
    {
        pt::source s(call);
        /* from here on one word would prefer places: two, and the shuffle grows from the start */
        const bool wide = n >= (int64_t)(UINT32_MAX / 20);
        for (int64_t i = 0; i < n; i++) {
            const int64_t j = wide ? (int64_t)(pt::word64(s) % (uint64_t)(i + 1)) : i;
            order[i] = i;
            order[i] = order[j];
            order[j] = i;
        }
        for (int64_t i = 0; i < n - 1 && !wide; i++) {
            const int64_t j = i + (int64_t)(pt::word(s) % (uint64_t)(n - i)), first = order[i];
            order[i] = order[j];
            order[j] = first;
        }
    }
    char *ptr[2] = {call->out[0].data, (char *)order};
    const int dtype = call->out[0].dtype;
    pt_cast_loop(PT_INT64, dtype)(ptr, n, pt_cast_params(PT_INT64, dtype));
    free(order);
    return PT_OK;
}

extern const pt_kernel_entry PT_CAT(pt_kernels_mersenne_, PT_ISA)[];
const pt_kernel_entry PT_CAT(pt_kernels_mersenne_, PT_ISA)[] = {
    {"random_one_by_one", pt::one_by_one},
    {"random_log_normal", pt::log_normal},
    {"random_cauchy", pt::cauchy},
    {"random_geometric", pt::geometric},
    {"random_whole", pt::whole},
    {"random_bernoulli_number", pt::bernoulli_number},
    {"random_places", pt::places},
    {"rrelu_noise", pt::rrelu_noise},
    {"random_gamma", pt::random_gamma},
    {nullptr, nullptr},
};
}
