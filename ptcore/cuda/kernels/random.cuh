// Random floats and dropout: the same text and bits as on the CPU. Compiled without contraction.
#include "ptcore/config.h"
#undef PT_HAVE_FMA                       // no explicit fused operations either
#define PT_HAVE_FMA 0
#include "pack.cuh"
#include "random_args.h"
#include "report.cuh"
#include "stream_place.cuh"

namespace {

typedef PT_T T;
typedef opmath<T>::type C;
enum { WIDE = sizeof(C) == 8, EACH = WIDE ? 2 : 4 };

// For every block of words, stores the EACH numbers that f(block, values) makes.
template <int EACH, class F> PT_DEVICE void for_blocks(const RandomArgs &a, F f) {
    const StreamPlace at = stream_place(a);
    const int64_t blocks = (a.n + EACH - 1) / EACH;
    const bool aligned = (uint64_t)a.out % (EACH * sizeof(T)) == 0;
    PT_GRID_STRIDE(k, blocks) {
        Elements<T, EACH> x;
        f(pt::philox(at.seed, at.offset, (uint64_t)k, 0), x.v);
        T *out = reinterpret_cast<T *>(a.out) + k * EACH;
        if (aligned && (k + 1) * EACH <= a.n) store_pack<EACH>(out, x);
        else
            for (int i = 0; i < EACH; i++)
                if (k * EACH + i < a.n) out[i] = x.v[i];
    }
}

// Element i of a block, by the type of computation.
PT_DEVICE double uniform_from(const pt::philox_block &b, int i, const RandomArgs &a, double) {
    const double v = pt::uniform_double(pt::word64(b.w, i)) * (a.b - a.a) + a.a;
    return v < a.b ? v : a.a;
}
template <class S> PT_DEVICE S uniform_from(const pt::philox_block &b, int i, const RandomArgs &a,
                                            S) {
    // The ends are rounded to the dtype; the sum may round up to the upper end, which is excluded.
    const float lo = up(down<S>((float)a.a)), hi = up(down<S>((float)a.b));
    const float r = up(down<S>(pt::uniform_of(S(), b.w[i]) * (hi - lo) + lo));
    return down<S>(r < hi ? r : lo);
}
PT_DEVICE pt::normal_pair<double> normals_from(const pt::philox_block &b, int, double) {
    return pt::box_muller(pt::word64(b.w, 0), pt::word64(b.w, 1));
}
PT_DEVICE pt::normal_pair<float> normals_from(const pt::philox_block &b, int i, float) {
    return pt::box_muller(b.w[i], b.w[i + 1]);
}
PT_DEVICE double exponential_from(const pt::philox_block &b, int i, double) {
    return pt::exponential_of(pt::word64(b.w, i));
}
PT_DEVICE float exponential_from(const pt::philox_block &b, int i, float) {
    return pt::exponential_of(b.w[i]);
}

struct Uniform {
    const RandomArgs &a;
    PT_DEVICE_MEMBER void operator()(const pt::philox_block &b, T *out) const {
        PT_UNROLL for (int i = 0; i < EACH; i++) out[i] = uniform_from(b, i, a, T());
    }
};

struct Normal {
    const RandomArgs &a;
    PT_DEVICE_MEMBER void operator()(const pt::philox_block &b, T *out) const {
        const C mean = (C)a.a, std = (C)a.b;
        PT_UNROLL for (int i = 0; i < EACH; i += 2) {
            const pt::normal_pair<C> z = normals_from(b, i, C());
            out[i] = down<T>(z.a * std + mean);
            out[i + 1] = down<T>(z.b * std + mean);
        }
    }
};

struct Exponential {
    const RandomArgs &a;
    PT_DEVICE_MEMBER void operator()(const pt::philox_block &b, T *out) const {
        const C scale = (C)(1.0 / a.a);
        PT_UNROLL
        for (int i = 0; i < EACH; i++) out[i] = down<T>(exponential_from(b, i, C()) * scale);
    }
};

// Computes output and mask from N blocks of four words, which a thread has in flight together.
template <int N> PT_DEVICE void dropout(const RandomArgs &a) {
    enum { MANY = 4 * N };
    const StreamPlace at = stream_place(a);
    const C scale = (C)(a.a == 1.0 ? 0.0 : 1.0 / (1.0 - a.a));
    const int64_t pieces = (a.n + MANY - 1) / MANY;
    const bool aligned =
        (uint64_t)a.out % 16 == 0 && (uint64_t)a.in % 16 == 0 && (uint64_t)a.mask % MANY == 0;
    PT_GRID_STRIDE(k, pieces) {
        const T *in = reinterpret_cast<const T *>(a.in) + k * MANY;
        T *out = reinterpret_cast<T *>(a.out) + k * MANY;
        uint8_t *mask = a.mask + k * MANY;
        const bool whole = aligned && (k + 1) * MANY <= a.n;
        Elements<T, MANY> x = {};
        Elements<uint8_t, MANY> kept;
        if (whole) x = load_pack<MANY>(in);
        else
            for (int i = 0; i < MANY; i++)
                if (k * MANY + i < a.n) x.v[i] = in[i];
        PT_UNROLL for (int u = 0; u < N; u++) {
            const pt::philox_block b = pt::philox(at.seed, at.offset, (uint64_t)(k * N + u), 0);
            PT_UNROLL for (int i = 0; i < 4; i++) {
                const bool keep = b.w[i] >= a.threshold;
                kept.v[4 * u + i] = keep;
                x.v[4 * u + i] = down<T>(up(x.v[4 * u + i]) * (keep ? scale : C(0)));
            }
        }
        if (whole) {
            store_pack<MANY>(out, x);
            store_pack<MANY>(mask, kept);
        } else {
            for (int i = 0; i < MANY; i++)
                if (k * MANY + i < a.n) out[i] = x.v[i], mask[i] = kept.v[i];
        }
    }
}

PT_DEVICE void poisson(const RandomArgs &a) {
    const StreamPlace at = stream_place(a);
    PT_GRID_STRIDE(i, a.n) {
        const double mean = up(reinterpret_cast<const T *>(a.in)[i]);
        if (!(mean >= 0)) report_number(a.fault, a.op, mean, PT_FAULT_RATE);
        reinterpret_cast<T *>(a.out)[i] =
            down<T>((C)pt::poisson_draw(mean, {at.seed, at.offset, (uint64_t)i, 0, 0, 0}));
    }
}

PT_DEVICE void binomial(const RandomArgs &a) {
    const StreamPlace at = stream_place(a);
    PT_GRID_STRIDE(i, a.n) {
        const double n = up(reinterpret_cast<const T *>(a.in)[i]),
                     p = up(reinterpret_cast<const T *>(a.probability)[i]);
        reinterpret_cast<T *>(a.out)[i] =
            down<T>((C)pt::binomial_draw(n, p, {at.seed, at.offset, (uint64_t)i, 0, 0, 0}));
    }
}

}  // namespace

PT_KERNEL(random_uniform, RandomArgs, a, 256) { for_blocks<EACH>(a, Uniform{a}); }
PT_KERNEL(random_normal, RandomArgs, a, 256) { for_blocks<EACH>(a, Normal{a}); }
PT_KERNEL(random_exponential, RandomArgs, a, 256) { for_blocks<EACH>(a, Exponential{a}); }
PT_KERNEL(random_dropout, RandomArgs, a, 256) { dropout<2>(a); }
PT_KERNEL(random_poisson, RandomArgs, a, 256) { poisson(a); }
PT_KERNEL(random_binomial, RandomArgs, a, 256) { binomial(a); }
