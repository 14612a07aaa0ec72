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

PT_DEVICE T uniform_from(const pt::philox_block &b, int i, const RandomArgs &a) {
    if constexpr (WIDE) {
        const double v = pt::uniform_double(pt::word64(b.w, i)) * (a.b - a.a) + a.a;
        return v < a.b ? v : a.a;
    } else {
        // Ends are of the dtype; the sum may round up to the upper one.
        const float lo = up(down<T>((float)a.a)), hi = up(down<T>((float)a.b));
        const float r = up(down<T>(pt::uniform_of(T(), b.w[i]) * (hi - lo) + lo));
        return down<T>(r < hi ? r : lo);
    }
}

struct Uniform {
    const RandomArgs &a;
    PT_DEVICE_MEMBER void operator()(const pt::philox_block &b, int64_t first, int count) const {
        for (int i = 0; i < count; i++) reinterpret_cast<T *>(a.out)[first + i] = uniform_from(b, i, a);
    }
};

struct Normal {
    const RandomArgs &a;
    PT_DEVICE_MEMBER void operator()(const pt::philox_block &b, int64_t first, int count) const {
        T *out = reinterpret_cast<T *>(a.out) + first;
        const C mean = (C)a.a, std = (C)a.b;
        for (int i = 0; i < count; i += 2) {
            pt::normal_pair<C> z;
            if constexpr (WIDE) z = pt::box_muller(pt::word64(b.w, 0), pt::word64(b.w, 1));
            else z = pt::box_muller(b.w[i], b.w[i + 1]);
            out[i] = down<T>(z.a * std + mean);
            if (i + 1 < count) out[i + 1] = down<T>(z.b * std + mean);
        }
    }
};

struct Exponential {
    const RandomArgs &a;
    PT_DEVICE_MEMBER void operator()(const pt::philox_block &b, int64_t first, int count) const {
        const C scale = (C)(1.0 / a.a);
        for (int i = 0; i < count; i++) {
            C e;
            if constexpr (WIDE) e = pt::exponential_of(pt::word64(b.w, i));
            else e = pt::exponential_of(b.w[i]);
            reinterpret_cast<T *>(a.out)[first + i] = down<T>(e * scale);
        }
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
        const pt::uniform_pairs d = {a.seed, a.offset, (uint64_t)i, 0, 0, 0};
        const double k = mean == 0 || !pt::isfinite(mean) ? mean : mean < 10 ? pt::poisson_small(mean, d) : pt::poisson_large(mean, d);
        reinterpret_cast<T *>(a.out)[i] = down<T>((C)k);
    }
}

}  // namespace

PT_KERNEL(random_uniform, RandomArgs, a, 256) { for_blocks(a, EACH, Uniform{a}); }
PT_KERNEL(random_normal, RandomArgs, a, 256) { for_blocks(a, EACH, Normal{a}); }
PT_KERNEL(random_exponential, RandomArgs, a, 256) { for_blocks(a, EACH, Exponential{a}); }
PT_KERNEL(random_dropout, RandomArgs, a, 256) { for_blocks(a, 4, Dropout{a}); }
PT_KERNEL(random_poisson, RandomArgs, a, 256) { poisson(a); }
