// Random floats, and dropout: the CPU's bits, from the same text. Compiled without contraction.
#include "base.cuh"
#include "ptcore/draws.h"
#include "random_args.h"

namespace {

typedef PT_T T;
typedef opmath<T>::type C;
enum { WIDE = sizeof(C) == 8, EACH = WIDE ? 2 : 4 };


// Calls f(block, first element, count) for every block of words.
template <class F> PT_DEVICE void for_blocks(const RandomArgs &a, int each, F f) {
    const int64_t blocks = (a.n + each - 1) / each;
    for (int64_t k = thread_index(); k < blocks; k += thread_count())
        f(pt::philox(a.seed, a.offset, (uint64_t)k, 0), k * each, a.n - k * each < each ? (int)(a.n - k * each) : each);
}

// Element i of a block, by the type that is computed in.
PT_DEVICE double uniform_from(const pt::philox_block &b, int i, const RandomArgs &a, double) {
    const double v = pt::uniform_double(pt::word64(b.w, i)) * (a.b - a.a) + a.a;
    return v < a.b ? v : a.a;
}
template <class S> PT_DEVICE S uniform_from(const pt::philox_block &b, int i, const RandomArgs &a, S) {
    // Ends are of the dtype; the sum may round up to the upper one.
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
PT_DEVICE double exponential_from(const pt::philox_block &b, int i, double) { return pt::exponential_of(pt::word64(b.w, i)); }
PT_DEVICE float exponential_from(const pt::philox_block &b, int i, float) { return pt::exponential_of(b.w[i]); }

struct Uniform {
    const RandomArgs &a;
    PT_DEVICE_MEMBER void operator()(const pt::philox_block &b, int64_t first, int count) const {
        for (int i = 0; i < count; i++) reinterpret_cast<T *>(a.out)[first + i] = uniform_from(b, i, a, T());
    }
};

struct Normal {
    const RandomArgs &a;
    PT_DEVICE_MEMBER void operator()(const pt::philox_block &b, int64_t first, int count) const {
        T *out = reinterpret_cast<T *>(a.out) + first;
        const C mean = (C)a.a, std = (C)a.b;
        for (int i = 0; i < count; i += 2) {
            const pt::normal_pair<C> z = normals_from(b, i, C());
            out[i] = down<T>(z.a * std + mean);
            if (i + 1 < count) out[i + 1] = down<T>(z.b * std + mean);
        }
    }
};

struct Exponential {
    const RandomArgs &a;
    PT_DEVICE_MEMBER void operator()(const pt::philox_block &b, int64_t first, int count) const {
        const C scale = (C)(1.0 / a.a);
        for (int i = 0; i < count; i++)
            reinterpret_cast<T *>(a.out)[first + i] = down<T>(exponential_from(b, i, C()) * scale);
    }
};

struct Dropout {
    const RandomArgs &a;
    PT_DEVICE_MEMBER void operator()(const pt::philox_block &b, int64_t first, int count) const {
        const C scale = (C)(a.a == 1.0 ? 0.0 : 1.0 / (1.0 - a.a));
        for (int i = 0; i < count; i++) {
            const bool keep = b.w[i] >= a.threshold;
            a.mask[first + i] = keep;
            reinterpret_cast<T *>(a.out)[first + i] =
                down<T>(up(reinterpret_cast<const T *>(a.in)[first + i]) * (keep ? scale : C(0)));
        }
    }
};

PT_DEVICE void poisson(const RandomArgs &a) {
    for (int64_t i = thread_index(); i < a.n; i += thread_count()) {
        const double mean = up(reinterpret_cast<const T *>(a.in)[i]);
        reinterpret_cast<T *>(a.out)[i] = down<T>((C)pt::poisson_draw(mean, {a.seed, a.offset, (uint64_t)i, 0, 0, 0}));
    }
}

PT_DEVICE void binomial(const RandomArgs &a) {
    for (int64_t i = thread_index(); i < a.n; i += thread_count()) {
        const double n = up(reinterpret_cast<const T *>(a.in)[i]), p = up(reinterpret_cast<const T *>(a.probability)[i]);
        reinterpret_cast<T *>(a.out)[i] = down<T>((C)pt::binomial_draw(n, p, {a.seed, a.offset, (uint64_t)i, 0, 0, 0}));
    }
}

}  // namespace

PT_KERNEL(random_uniform, RandomArgs, a, 256) { for_blocks(a, EACH, Uniform{a}); }
PT_KERNEL(random_normal, RandomArgs, a, 256) { for_blocks(a, EACH, Normal{a}); }
PT_KERNEL(random_exponential, RandomArgs, a, 256) { for_blocks(a, EACH, Exponential{a}); }
PT_KERNEL(random_dropout, RandomArgs, a, 256) { for_blocks(a, 4, Dropout{a}); }
PT_KERNEL(random_poisson, RandomArgs, a, 256) { poisson(a); }
PT_KERNEL(random_binomial, RandomArgs, a, 256) { binomial(a); }
