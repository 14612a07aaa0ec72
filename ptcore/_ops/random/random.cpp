/* Random kernels on Philox (philox.h has the layout of the counter), one table per ISA level.
 *
 * call->seed is the key, call->offset the call offset; a call with a twister (call->stream) is
 * handed on to mersenne.cpp. Outputs are contiguous, and tensor inputs
 * are required to be. Results depend on neither thread count nor ISA level: this file is compiled
 * with -ffp-contract=off, and nothing in it calls a fused operation.
 *
 *   random_uniform(from, to), random_normal(mean, std), random_exponential(lambd): floating out
 *   random_bits(): integer or bool out, every bit random
 *   random_integers(low, high): any real out, low <= value < high
 *   random_bernoulli(p): any real out; p is a tensor if there is one input, else a number
 *   random_poisson(rates): floating out
 *   random_binomial(counts, probabilities): floating out, all of one shape and dtype
 *   randperm(): any real out, the stable argsort of 64-bit words
 *   dropout(input, p): out = input * keep / (1 - p), mask = keep
 */
#include "ptcore/config.h"
#undef PT_HAVE_FMA
#define PT_HAVE_FMA 0
#include "ptcore/draws.h"
#include "casts.h"
#include "ptcore/kernel.h"
#include "cephes_normal.h"
#include "mersenne.h"
#include "parallel.hpp"

#include <stdio.h>
#include <stdlib.h>

namespace pt { namespace {

enum { CHUNK_BLOCKS = 64, CHUNK_WORDS = 4 * CHUNK_BLOCKS };
constexpr int64_t GRAIN = 16384;                /* a multiple of CHUNK_WORDS */

template<class... A> int fail(pt_call *call, int status, const char *format, A... args) {
    snprintf(call->error, sizeof call->error, format, args...);
    return status;
}

int too_large(pt_call *call) {
    return fail(call, PT_RUNTIME_ERROR, "%s", "needs more than 2**40 random blocks in one call");
}

int wrong_dtype(pt_call *call, const char *expected) {
    static const char *const names[PT_NDTYPES] = {
        "bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float16",
        "bfloat16", "float32", "float64", "complex64", "complex128", "float8_e4m3fn", "float8_e5m2",
        "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu", "complex32"};
    return fail(call, PT_TYPE_ERROR, "dtype must be %s, got %s", expected,
                names[call->out[0].dtype]);
}

PT_NOINLINE void fill_words(uint32_t *w, uint64_t seed, uint64_t offset, uint64_t first,
                            int64_t blocks) {
    for (int64_t i = 0; i < blocks; i++) {
        philox_block b = philox(seed, offset, first + (uint64_t)i, 0);
        w[4 * i] = b.w[0];
        w[4 * i + 1] = b.w[1];
        w[4 * i + 2] = b.w[2];
        w[4 * i + 3] = b.w[3];
    }
}

/* Calls f(words, first element, count) for runs of elements, with `per_block` elements (a divisor
 * of 4) to a block. Runs start at whole chunks, so that an element always has the same words. */
template<class F> void for_words(const pt_call *call, int64_t n, int per_block, F f) {
    uint64_t seed = call->seed, offset = call->offset;
    int64_t run = CHUNK_BLOCKS * per_block;
    parallel_for(n, GRAIN, [=](int64_t begin, int64_t end) {
        uint32_t w[CHUNK_WORDS];
        for (int64_t k = begin; k < end; k += run) {
            int64_t m = end - k < run ? end - k : run;
            fill_words(w, seed, offset, (uint64_t)(k / per_block), (m + per_block - 1) / per_block);
            f(w, k, m);
        }
    });
}

PT_INLINE float widen(half x) { return to_float(x); }
PT_INLINE float widen(bfloat16 x) { return to_float(x); }
PT_INLINE float widen(float x) { return x; }
PT_INLINE double widen(double x) { return x; }
PT_INLINE void narrow(half *r, float v) { *r = to_half(v); }
PT_INLINE void narrow(bfloat16 *r, float v) { *r = to_bfloat16(v); }
PT_INLINE void narrow(float *r, float v) { *r = v; }
PT_INLINE void narrow(double *r, double v) { *r = v; }
/* Calls F<T>::run(call, args...) for out's dtype. */
template<template<class> class F, class... A> int for_floating(pt_call *call, A... args) {
    switch (call->out[0].dtype) {
    case PT_FLOAT16: return F<half>::run(call, args...);
    case PT_BFLOAT16: return F<bfloat16>::run(call, args...);
    case PT_FLOAT32: return F<float>::run(call, args...);
    case PT_FLOAT64: return F<double>::run(call, args...);
    default: return wrong_dtype(call, "floating point");
    }
}
/* Whole numbers are made as int64 or bytes and converted to out's dtype, run by run. */
struct converter {
    pt_loop loop;
    const void *params;
    char *out;
    int64_t size;

    converter(const pt_call *call, int from)
        : loop(pt_cast_loop(from, call->out[0].dtype)),
          params(pt_cast_params(from, call->out[0].dtype)), out(call->out[0].data),
          size(pt_itemsize(call->out[0].dtype)) {}
    void row(const void *values, int64_t k, int64_t m) const {
        char *ptr[2] = {out + k * size, (char *)const_cast<void *>(values)};
        loop(ptr, m, params);
    }
};

bool is_complex(const pt_call *call) { return pt_is(call->out[0].dtype, PT_KIND_COMPLEX); }

/* ---- continuous ---- */

template<class T> struct uniform {
    static int run(pt_call *call, double from, double to) {
        T *out = (T *)call->out[0].data;
        T end;
        narrow(&end, (float)from);
        float lo = widen(end);
        narrow(&end, (float)to);
        float hi = widen(end), span = hi - lo;
        for_words(call, call->out[0].numel, 4, [=](const uint32_t *w, int64_t k, int64_t m) {
            for (int64_t i = 0; i < m; i++) {
                /* the sum may be rounded up to `to` */
                T r;
                narrow(&r, uniform_of(T(), w[i]) * span + lo);
                narrow(&out[k + i], widen(r) < hi ? widen(r) : lo);
            }
        });
        return PT_OK;
    }
};
template<> struct uniform<double> {
    static int run(pt_call *call, double from, double to) {
        double *out = (double *)call->out[0].data, span = to - from;
        for_words(call, call->out[0].numel, 2, [=](const uint32_t *w, int64_t k, int64_t m) {
            for (int64_t i = 0; i < m; i++) {
                double v = uniform_double(word64(w, i)) * span + from;
                out[k + i] = v < to ? v : from;
            }
        });
        return PT_OK;
    }
};

template<class T> struct normal {
    static int run(pt_call *call, double mean, double std) {
        T *out = (T *)call->out[0].data;
        float mu = (float)mean, sigma = (float)std;
        for_words(call, call->out[0].numel, 4, [=](const uint32_t *w, int64_t k, int64_t m) {
            float z[CHUNK_WORDS];
            for (int64_t i = 0; i < (m + 1) / 2; i++) {
                normal_pair<float> p = box_muller(w[2 * i], w[2 * i + 1]);
                z[2 * i] = p.a;
                z[2 * i + 1] = p.b;
            }
            for (int64_t i = 0; i < m; i++) narrow(&out[k + i], z[i] * sigma + mu);
        });
        return PT_OK;
    }
};
template<> struct normal<double> {
    static int run(pt_call *call, double mean, double std) {
        double *out = (double *)call->out[0].data;
        for_words(call, call->out[0].numel, 2, [=](const uint32_t *w, int64_t k, int64_t m) {
            double z[CHUNK_WORDS / 2];
            for (int64_t i = 0; i < (m + 1) / 2; i++) {
                normal_pair<double> p = box_muller(word64(w, 2 * i), word64(w, 2 * i + 1));
                z[2 * i] = p.a;
                z[2 * i + 1] = p.b;
            }
            for (int64_t i = 0; i < m; i++) out[k + i] = z[i] * std + mean;
        });
        return PT_OK;
    }
};

template<class T> struct exponential {
    static int run(pt_call *call, double lambd) {
        T *out = (T *)call->out[0].data;
        float scale = (float)(1.0 / lambd);
        for_words(call, call->out[0].numel, 4, [=](const uint32_t *w, int64_t k, int64_t m) {
            for (int64_t i = 0; i < m; i++) narrow(&out[k + i], exponential_of(w[i]) * scale);
        });
        return PT_OK;
    }
};
template<> struct exponential<double> {
    static int run(pt_call *call, double lambd) {
        double *out = (double *)call->out[0].data, scale = 1.0 / lambd;
        for_words(call, call->out[0].numel, 2, [=](const uint32_t *w, int64_t k, int64_t m) {
            for (int64_t i = 0; i < m; i++) out[k + i] = exponential_of(word64(w, i)) * scale;
        });
        return PT_OK;
    }
};

bool fits(const pt_call *call, int per_block) {
    return (uint64_t)call->out[0].numel <= PHILOX_MAX_BLOCKS * (uint64_t)per_block;
}

int random_uniform(pt_call *call) {
    double from = call->params[0].d, to = call->params[1].d;
    if (!(from <= to))
        return fail(call, PT_RUNTIME_ERROR, "from must be at most to, got from=%g, to=%g", from,
                    to);
    if (call->stream) return pt_mersenne_uniform(call);
    return fits(call, 2) ? for_floating<uniform>(call, from, to) : too_large(call);
}
int random_normal(pt_call *call) {
    double mean = call->params[0].d, std = call->params[1].d;
    if (!(std >= 0)) return fail(call, PT_RUNTIME_ERROR, "std must be at least 0, got %g", std);
    if (call->stream) return pt_mersenne_normal(call, cephes_normals);
    return fits(call, 2) ? for_floating<normal>(call, mean, std) : too_large(call);
}
int random_exponential(pt_call *call) {
    double lambd = call->params[0].d;
    if (!(lambd > 0)) return fail(call, PT_RUNTIME_ERROR, "lambd must be above 0, got %g", lambd);
    if (call->stream) return pt_mersenne_exponential(call);
    return fits(call, 2) ? for_floating<exponential>(call, lambd) : too_large(call);
}

/* ---- whole numbers ---- */

template<class T> void bits32(pt_call *call) {
    T *out = (T *)call->out[0].data;
    for_words(call, call->out[0].numel, 4, [=](const uint32_t *w, int64_t k, int64_t m) {
        for (int64_t i = 0; i < m; i++) out[k + i] = (T)w[i];
    });
}

int random_bits(pt_call *call) {
    if (!fits(call, 2)) return too_large(call);
    uint64_t *wide = (uint64_t *)call->out[0].data;
    uint8_t *flags = (uint8_t *)call->out[0].data;
    switch (call->out[0].dtype) {
    case PT_BOOL:
        for_words(call, call->out[0].numel, 4, [=](const uint32_t *w, int64_t k, int64_t m) {
            for (int64_t i = 0; i < m; i++) flags[k + i] = w[i] & 1u;
        });
        return PT_OK;
    case PT_UINT8:
    case PT_INT8: bits32<uint8_t>(call); return PT_OK;
    case PT_UINT16:
    case PT_INT16: bits32<uint16_t>(call); return PT_OK;
    case PT_UINT32:
    case PT_INT32: bits32<uint32_t>(call); return PT_OK;
    case PT_UINT64:
    case PT_INT64:
        for_words(call, call->out[0].numel, 2, [=](const uint32_t *w, int64_t k, int64_t m) {
            for (int64_t i = 0; i < m; i++) wide[k + i] = word64(w, i);
        });
        return PT_OK;
    default: return wrong_dtype(call, "bool or an integer type");
    }
}

int random_integers(pt_call *call) {
    int64_t low = call->params[0].i, high = call->params[1].i;
    if (is_complex(call)) return wrong_dtype(call, "real");
    if (call->stream) return pt_mersenne_integers(call);
    /* -2^63 as `high` means 2^63, see mersenne.cpp */
    if (low >= high && (high != INT64_MIN || low == high))
        return fail(call, PT_RUNTIME_ERROR, "low must be below high, got low=%lld, high=%lld",
                    (long long)low, (long long)high);
    if (!fits(call, 1)) return too_large(call);
    uint64_t range = (uint64_t)high - (uint64_t)low, seed = call->seed, offset = call->offset;
    uint32_t small = range < (uint64_t)1 << 32 ? (uint32_t)range : 0;
    converter out(call, PT_INT64);
    for_words(call, call->out[0].numel, 1, [=](const uint32_t *w, int64_t k, int64_t m) {
        int64_t values[CHUNK_BLOCKS];
        for (int64_t i = 0; i < m; i++) {
            const uint32_t *u = w + 4 * i;
            uint64_t product = (uint64_t)u[0] * small, value = product >> 32;
            /* a low half >= `small` is surely accepted; below() has the exact test */
            if (PT_UNLIKELY(!small || (uint32_t)product < small))
                value = below(range, {{u[0], u[1], u[2], u[3]}}, seed, offset, (uint64_t)(k + i));
            values[i] = (int64_t)((uint64_t)low + value);
        }
        out.row(values, k, m);
    });
    return PT_OK;
}

template<class T> struct poisson {
    static int run(pt_call *call) {
        const T *rate = (const T *)call->in[0].data;
        for (int64_t i = 0; i < call->in[0].numel; i++)
            if (!(widen(rate[i]) >= 0))
                return fail(call, PT_RUNTIME_ERROR, "rates must not be negative, got %g",
                            (double)widen(rate[i]));
        T *out = (T *)call->out[0].data;
        uint64_t seed = call->seed, offset = call->offset;
        parallel_for(call->out[0].numel, 512, [=](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; i++) {
                const double mean = widen(rate[i]);
                const double k = poisson_draw(mean, {seed, offset, (uint64_t)i, 0, 0, 0});
                narrow(&out[i], k);
            }
        });
        return PT_OK;
    }
};

int random_poisson(pt_call *call) {
    if (call->stream) return pt_mersenne_poisson(call);
    if (!fits(call, 1)) return too_large(call);
    return for_floating<poisson>(call);
}

template<class T> struct binomial {
    static int run(pt_call *call) {
        const T *count = (const T *)call->in[0].data, *prob = (const T *)call->in[1].data;
        if (call->in[1].numel != call->in[0].numel)
            return fail(call, PT_RUNTIME_ERROR, "count and prob must have one shape");
        for (int64_t i = 0; i < call->in[0].numel; i++) {
            const double n = widen(count[i]), p = widen(prob[i]);
            if (!(n >= 0 && n == floor(n) && isfinite(n)))
                return fail(call, PT_RUNTIME_ERROR,
                            "count must hold whole numbers that are not negative, got %g", n);
            if (!(p >= 0 && p <= 1))
                return fail(call, PT_RUNTIME_ERROR, "prob must be in [0, 1], got %g", p);
        }
        T *out = (T *)call->out[0].data;
        uint64_t seed = call->seed, offset = call->offset;
        parallel_for(call->out[0].numel, 512, [=](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; i++)
                narrow(&out[i], binomial_draw(widen(count[i]), widen(prob[i]),
                                              {seed, offset, (uint64_t)i, 0, 0, 0}));
        });
        return PT_OK;
    }
};

int random_binomial(pt_call *call) {
    if (call->stream) return pt_mersenne_binomial(call);
    if (!fits(call, 1)) return too_large(call);
    return for_floating<binomial>(call);
}

/* ---- probabilities: a word below p * 2^32 ---- */

constexpr double TWO_TO_32 = 4294967296.0;

template<class P> int bernoulli_of(pt_call *call) {
    const P *p = (const P *)call->in[0].data;
    for (int64_t i = 0; i < call->in[0].numel; i++) {
        double v = widen(p[i]);
        if (!(v >= 0.0 && v <= 1.0))
            return fail(call, PT_RUNTIME_ERROR, "probabilities must be in [0, 1], got %g", v);
    }
    converter out(call, PT_BOOL);
    for_words(call, call->out[0].numel, 4, [=](const uint32_t *w, int64_t k, int64_t m) {
        uint8_t keep[CHUNK_WORDS];
        for (int64_t i = 0; i < m; i++) keep[i] = (double)w[i] < widen(p[k + i]) * TWO_TO_32;
        out.row(keep, k, m);
    });
    return PT_OK;
}

int random_bernoulli(pt_call *call) {
    if (is_complex(call)) return wrong_dtype(call, "real");
    if (call->stream && call->nin == 1) return pt_mersenne_bernoulli(call);
    if (!fits(call, 4)) return too_large(call);
    if (call->nin == 1) switch (call->in[0].dtype) {
        case PT_FLOAT16: return bernoulli_of<half>(call);
        case PT_BFLOAT16: return bernoulli_of<bfloat16>(call);
        case PT_FLOAT32: return bernoulli_of<float>(call);
        case PT_FLOAT64: return bernoulli_of<double>(call);
        default: return fail(call, PT_TYPE_ERROR, "%s", "probabilities must be floating point");
    }
    double p = call->params[0].d;
    if (!(p >= 0.0 && p <= 1.0))
        return fail(call, PT_RUNTIME_ERROR, "p must be in [0, 1], got %g", p);
    uint64_t threshold = (uint64_t)ceil(p * TWO_TO_32);
    converter out(call, PT_BOOL);
    for_words(call, call->out[0].numel, 4, [=](const uint32_t *w, int64_t k, int64_t m) {
        uint8_t keep[CHUNK_WORDS];
        for (int64_t i = 0; i < m; i++) keep[i] = w[i] < threshold;
        out.row(keep, k, m);
    });
    return PT_OK;
}

PT_INLINE void multiply(half *r, half x, float s) { *r = to_half(to_float(x) * s); }
PT_INLINE void multiply(bfloat16 *r, bfloat16 x, float s) { *r = to_bfloat16(to_float(x) * s); }
PT_INLINE void multiply(float *r, float x, float s) { *r = x * s; }
PT_INLINE void multiply(double *r, double x, double s) { *r = x * s; }

template<class T> struct dropping {
    static int run(pt_call *call, double p) {
        T *out = (T *)call->out[0].data;
        const T *x = (const T *)call->in[0].data;
        uint8_t *mask = (uint8_t *)call->out[1].data;
        uint64_t threshold = (uint64_t)ceil(p * TWO_TO_32);
        decltype(widen(T())) scale = (decltype(widen(T())))(p == 1.0 ? 0.0 : 1.0 / (1.0 - p));
        for_words(call, call->out[0].numel, 4, [=](const uint32_t *w, int64_t k, int64_t m) {
            for (int64_t i = 0; i < m; i++) mask[k + i] = w[i] >= threshold;
            for (int64_t i = 0; i < m; i++)
                multiply(&out[k + i], x[k + i], w[i] >= threshold ? scale : 0);
        });
        return PT_OK;
    }
};

int dropout(pt_call *call) {
    double p = call->params[0].d;
    if (!(p >= 0.0 && p <= 1.0))
        return fail(call, PT_VALUE_ERROR, "p must be in [0, 1], got %g", p);
    if (call->stream) return pt_mersenne_dropout(call);
    return fits(call, 4) ? for_floating<dropping>(call, p) : too_large(call);
}

/* ---- permutations ---- */

struct keyed { uint64_t key; int64_t index; };

/* Sorts by (key, index): spreads the keys over about n/4 buckets by their leading
 * bits, then sorts by insertion. */
void sort_keys(const keyed *a, keyed *b, int64_t *start, int bits, int64_t n) {
    int64_t buckets = (int64_t)1 << bits;
    for (int64_t i = 0; i < n; i++) start[(a[i].key >> (64 - bits)) + 1]++;
    for (int64_t i = 0; i < buckets; i++) start[i + 1] += start[i];
    for (int64_t i = 0; i < n; i++) b[start[a[i].key >> (64 - bits)]++] = a[i];
    /* buckets keep the order of the index, and insertion does so for equal keys */
    for (int64_t i = 1; i < n; i++) {
        keyed x = b[i];
        int64_t j = i;
        for (; j > 0 && b[j - 1].key > x.key; j--) b[j] = b[j - 1];
        b[j] = x;
    }
}

int randperm(pt_call *call) {
    int64_t n = call->out[0].numel;
    if (is_complex(call)) return wrong_dtype(call, "real");
    if (n == 0) return PT_OK;
    if (call->stream) return pt_mersenne_randperm(call);
    if (!fits(call, 2)) return too_large(call);
    int bits = 1;
    while (bits < 24 && ((int64_t)4 << bits) < n) bits++;
    size_t bytes = 2 * (size_t)n * sizeof(keyed);
    keyed *a = (keyed *)malloc(bytes);
    int64_t *start = (int64_t *)calloc(((size_t)1 << bits) + 1, sizeof(int64_t));
    if (!a || !start) {
        free(a);
        free(start);
        return fail(call, PT_MEMORY_ERROR, "could not allocate %zu bytes", bytes);
    }
    for_words(call, n, 2, [=](const uint32_t *w, int64_t k, int64_t m) {
        for (int64_t i = 0; i < m; i++) a[k + i] = {word64(w, i), k + i};
    });
    sort_keys(a, a + n, start, bits, n);
    converter out(call, PT_INT64);
    for (int64_t k = 0; k < n; k += CHUNK_BLOCKS) {
        int64_t row[CHUNK_BLOCKS], m = n - k < CHUNK_BLOCKS ? n - k : (int64_t)CHUNK_BLOCKS;
        for (int64_t i = 0; i < m; i++) row[i] = a[n + k + i].index;
        out.row(row, k, m);
    }
    free(a);
    free(start);
    return PT_OK;
}

}}  /* namespace pt, unnamed */

extern "C" {
extern const pt_kernel_entry PT_CAT(pt_kernels_random_, PT_ISA)[];
const pt_kernel_entry PT_CAT(pt_kernels_random_, PT_ISA)[] = {
    {"random_uniform", pt::random_uniform},
    {"random_normal", pt::random_normal},
    {"random_exponential", pt::random_exponential},
    {"random_bits", pt::random_bits},
    {"random_integers", pt::random_integers},
    {"random_bernoulli", pt::random_bernoulli},
    {"dropout", pt::dropout},
    {"random_poisson", pt::random_poisson},
    {"random_binomial", pt::random_binomial},
    {"randperm", pt::randperm},
    {nullptr, nullptr},
};
}
