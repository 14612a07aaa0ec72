// batch_norm, group_norm and their derivatives: sums over sets of elements in parts, one kernel that adds the parts up
// in order and makes factors for each channel or plane, and one that applies them. Sums are taken in float64: of
// products of numbers of fewer bits they are exact but for the last bits, so that one pass gives the variance. PT_T is
// x, PT_U the gradient.
#include "base.cuh"
#include "channel_norm_args.h"

namespace {

typedef PT_T T;
typedef PT_U U;
typedef opmath<T>::type C;

enum { CHUNK = 1024 };

PT_DEVICE double get(const RealArgs &v, int64_t i) {
    switch (v.dtype) {
    case 9: return (double)up(reinterpret_cast<const half *>(v.data)[i]);
    case 10: return (double)up(reinterpret_cast<const bfloat16 *>(v.data)[i]);
    case 11: return (double)reinterpret_cast<const float *>(v.data)[i];
    default: return reinterpret_cast<const double *>(v.data)[i];
    }
}
PT_DEVICE double get_or(const RealArgs &v, int64_t i, double other) { return v.data ? get(v, i) : other; }
PT_DEVICE void put(const RealArgs &v, int64_t i, double x) {
    if (!v.data) return;
    switch (v.dtype) {
    case 9: reinterpret_cast<half *>(v.data)[i] = down<half>((float)x); break;
    case 10: reinterpret_cast<bfloat16 *>(v.data)[i] = down<bfloat16>((float)x); break;
    case 11: reinterpret_cast<float *>(v.data)[i] = (float)x; break;
    default: reinterpret_cast<double *>(v.data)[i] = x; break;
    }
}

struct Pair {
    double first, second;
};
struct Plus {
    PT_DEVICE_MEMBER Pair operator()(Pair x, Pair y) const { return {x.first + y.first, x.second + y.second}; }
};

// -- sums -------------------------------------------------------------------------------------------------------------

// What is taken from each element before it is squared: one of the set's, or 0 where that is not finite.
PT_DEVICE double pivot(const ChannelNormArgs &a, int64_t set) {
    const double x = (double)up(reinterpret_cast<const T *>(a.x)[set * a.set_stride]);
    return pt::isfinite(x) ? x : 0.0;
}

// Forward: of x - pivot and its square; backward: of g and of g (x - mean). Every `step`th element of [begin, end).
PT_DEVICE Pair sums_of(const ChannelNormArgs &a, int64_t set, int64_t begin, int64_t end, int64_t step) {
    const T *x = reinterpret_cast<const T *>(a.x) + set * a.set_stride;
    const U *g = reinterpret_cast<const U *>(a.g) + set * a.set_stride;
    const double center = a.g ? get(a.mean, set / a.means) : pivot(a, set);
    const int64_t runs = step / a.length, rest = step - runs * a.length;
    int64_t run = begin / a.length, at = begin - run * a.length;
    Pair sum = {0, 0};
    for (int64_t i = begin; i < end; i += step) {
        const int64_t p = run * a.run_stride + at;
        const double from = (double)up(x[p]) - center;
        const double by = a.g ? (double)up(g[p]) : from;
        sum.first += by;
        sum.second += by * from;
        run += runs, at += rest;
        if (at >= a.length) at -= a.length, run++;
    }
    return sum;
}

PT_DEVICE void keep(const ChannelNormArgs &a, int64_t set, int64_t part, Pair sum) {
    a.partial[2 * (set * a.parts + part)] = sum.first;
    a.partial[2 * (set * a.parts + part) + 1] = sum.second;
}
PT_DEVICE Pair added_up(const ChannelNormArgs &a, int64_t set) {
    Pair sum = {0, 0};
    for (int64_t p = 0; p < a.parts; p++) {
        sum.first += a.partial[2 * (set * a.parts + p)];
        sum.second += a.partial[2 * (set * a.parts + p) + 1];
    }
    return sum;
}
PT_DEVICE int64_t end_of(const ChannelNormArgs &a, int64_t part) {
    const int64_t all = a.runs * a.length, end = (part + 1) * a.part;
    return end < all ? end : all;
}

// A block for each part of a set.
PT_DEVICE void sums(const ChannelNormArgs &a) {
    for (int64_t i = blockIdx.x; i < a.sets * a.parts; i += gridDim.x) {
        const int64_t set = i / a.parts, part = i % a.parts;
        const Pair sum = sums_of(a, set, part * a.part + threadIdx.x, end_of(a, part), blockDim.x);
        const Pair all = block_reduce(sum, Plus(), Pair{0, 0});
        if (threadIdx.x == 0) keep(a, set, part, all);
    }
}

// A thread for each part of a set, where its elements are few or far apart: neighbours read neighbouring sets.
PT_DEVICE void sums_narrow(const ChannelNormArgs &a) {
    for (int64_t i = thread_index(); i < a.sets * a.parts; i += thread_count()) {
        const int64_t set = i % a.sets, part = i / a.sets;
        keep(a, set, part, sums_of(a, set, part * a.part, end_of(a, part), 1));
    }
}

// -- factors ----------------------------------------------------------------------------------------------------------

struct Factors {
    C mean, scale, shift, slope;
};
PT_DEVICE Factors *factors(const ChannelNormArgs &a) { return reinterpret_cast<Factors *>(a.factors); }

struct Moments {
    double mean, var;
};
PT_DEVICE Moments moments(const ChannelNormArgs &a, int64_t set) {
    const double count = (double)(a.runs * a.length);
    const Pair sum = added_up(a, set);
    const double off = sum.first / count, var = sum.second / count - off * off;
    return {pivot(a, set) + off, var < 0 ? 0.0 : var};
}

PT_DEVICE void batch_forward(const ChannelNormArgs &a) {
    for (int64_t c = thread_index(); c < a.c; c += thread_count()) {
        const Moments m = moments(a, c);
        put(a.mean, c, m.mean);
        put(a.spread, c, m.var);
        const double scale = get_or(a.weight, c, 1) / pt::sqrt(m.var + a.eps);
        factors(a)[c] = {(C)m.mean, (C)scale, (C)get_or(a.bias, c, 0), C(0)};
    }
}

PT_DEVICE void group_forward(const ChannelNormArgs &a) {
    const int64_t channels = a.c / a.groups;
    for (int64_t plane = thread_index(); plane < a.n * a.c; plane += thread_count()) {
        const int64_t set = plane / channels, c = plane % a.c;
        const Moments m = moments(a, set);
        const double rstd = 1 / pt::sqrt(m.var + a.eps);
        if (plane % channels == 0) {
            put(a.mean, set, m.mean);
            put(a.spread, set, rstd);
        }
        factors(a)[plane] = {(C)m.mean, (C)(get_or(a.weight, c, 1) * rstd), (C)get_or(a.bias, c, 0), C(0)};
    }
}

// gx = scale g - shift - (x - mean) slope
PT_DEVICE void batch_backward(const ChannelNormArgs &a) {
    const double count = (double)(a.runs * a.length);
    for (int64_t c = thread_index(); c < a.c; c += thread_count()) {
        const Pair sum = added_up(a, c);
        const double rstd = 1 / pt::sqrt(get(a.spread, c) + a.eps), scale = get_or(a.weight, c, 1) * rstd;
        put(a.gw, c, sum.second * rstd);
        put(a.gb, c, sum.first);
        factors(a)[c] = {(C)get(a.mean, c), (C)scale, (C)(scale * sum.first / count),
                         (C)(scale * sum.second / count * rstd * rstd)};
    }
}

// A warp for each group of an image.
PT_DEVICE void group_backward(const ChannelNormArgs &a) {
    const int64_t channels = a.c / a.groups, warps = thread_count() / 32, lane = threadIdx.x % 32;
    const double size = (double)(channels * a.s);
    for (int64_t set = thread_index() / 32; set < a.n * a.groups; set += warps) {
        const int64_t first = set % a.groups * channels;
        Pair all = {0, 0};
        for (int64_t k = lane; k < channels; k += 32) {
            const Pair sum = added_up(a, set * channels + k);
            const double w = get_or(a.weight, first + k, 1);
            all.first += w * sum.first;
            all.second += w * sum.second;
        }
        all = warp_reduce(all, Plus());
        const double rstd = get(a.spread, set);
        for (int64_t k = lane; k < channels; k += 32)
            factors(a)[set * channels + k] = {(C)get(a.mean, set), (C)(get_or(a.weight, first + k, 1) * rstd),
                                              (C)(all.first / size * rstd),
                                              (C)(all.second / size * rstd * rstd * rstd)};
    }
}

// The gradients of group_norm's weight and bias.
PT_DEVICE void group_backward_affine(const ChannelNormArgs &a) {
    const int64_t channels = a.c / a.groups;
    for (int64_t c = thread_index(); c < a.c; c += thread_count()) {
        double g = 0, gxhat = 0;
        for (int64_t n = 0; n < a.n; n++) {
            const Pair sum = added_up(a, n * a.c + c);
            g += sum.first;
            gxhat += sum.second * get(a.spread, n * a.groups + c / channels);
        }
        put(a.gw, c, gxhat);
        put(a.gb, c, g);
    }
}

// -- results ----------------------------------------------------------------------------------------------------------

PT_DEVICE C result(const ChannelNormArgs &a, int64_t i, const Factors &f) {
    const C x = up(reinterpret_cast<const T *>(a.x)[i]) - f.mean;
    return a.g ? f.scale * (C)up(reinterpret_cast<const U *>(a.g)[i]) - f.shift - x * f.slope : x * f.scale + f.shift;
}

PT_DEVICE void apply(const ChannelNormArgs &a) {
    T *out = reinterpret_cast<T *>(a.out);
    if (a.s < CHUNK / 8) {
        for (int64_t i = thread_index(); i < a.n * a.c * a.s; i += thread_count())
            out[i] = down<T>(result(a, i, factors(a)[i / a.s % a.period]));
        return;
    }
    // A block works on a chunk of one plane; a thread reads all of its elements before it writes one.
    const int64_t chunks = (a.s + CHUNK - 1) / CHUNK;
    for (int64_t k = blockIdx.x; k < a.n * a.c * chunks; k += gridDim.x) {
        const int64_t plane = k / chunks, begin = (k - plane * chunks) * CHUNK + threadIdx.x;
        const Factors f = factors(a)[plane % a.period];
        C y[CHUNK / 256];
        for (int j = 0; j < CHUNK / 256; j++)
            if (begin + j * 256 < a.s) y[j] = result(a, plane * a.s + begin + j * 256, f);
        for (int j = 0; j < CHUNK / 256; j++)
            if (begin + j * 256 < a.s) out[plane * a.s + begin + j * 256] = down<T>(y[j]);
    }
}

}  // namespace

PT_KERNEL_SYNC(channel_sums, ChannelNormArgs, a, 256) { sums(a); }
PT_KERNEL(channel_sums_narrow, ChannelNormArgs, a, 256) { sums_narrow(a); }
PT_KERNEL(batch_norm_factors, ChannelNormArgs, a, 256) { batch_forward(a); }
PT_KERNEL(group_norm_factors, ChannelNormArgs, a, 256) { group_forward(a); }
PT_KERNEL(batch_norm_gradients, ChannelNormArgs, a, 256) { batch_backward(a); }
PT_KERNEL_SYNC(group_norm_gradients, ChannelNormArgs, a, 256) { group_backward(a); }
PT_KERNEL(group_norm_affine_gradients, ChannelNormArgs, a, 256) { group_backward_affine(a); }
PT_KERNEL(channel_apply, ChannelNormArgs, a, 256) { apply(a); }
PT_KERNEL(channel_fill, ChannelFillArgs, a, 256) {
    for (int64_t i = thread_index(); i < a.n; i += thread_count()) put(a.to, i, a.value);
}
