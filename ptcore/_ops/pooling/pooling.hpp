/* Windows of the spatial dims, as the kernels of pooling read them from a call. */
#ifndef PTCORE_POOLING_POOLING_HPP
#define PTCORE_POOLING_POOLING_HPP
#include "spatial.hpp"

#include <atomic>
#include <limits>

/* Planes of row-major tensors, compiled once (pooling_planes.cpp). */
extern "C" int pt_max_pool_planes(pt_call *call);
extern "C" int pt_fractional_max_planes(pt_call *call);
extern "C" int pt_mean_pool_planes(pt_call *call, int transposed);

namespace {

struct pool_axis {
    int64_t in = 1, out = 1, kernel = 1, stride = 1, padding = 0, dilation = 1;
    bool adaptive = false;

    /* of window o: its first place inside the input, its end, the number of places in its mean */
    int64_t *start = nullptr, *stop = nullptr, *number = nullptr;

    void place(bool include_pad) {
        for (int64_t o = 0; o < out; ++o) {
            if (adaptive) {
                start[o] = o * in / out;
                stop[o] = ceil_div((o + 1) * in, out);
            }
            else {
                const int64_t first = o * stride - padding;
                start[o] = first < 0 ? first + ceil_div(-first, dilation) * dilation : first;
                stop[o] = min64(in, first + (kernel - 1) * dilation + 1);
                if (include_pad) number[o] = min64(first + kernel, in + padding) - first;
            }
            if (adaptive || !include_pad) number[o] = max64(0, stop[o] - start[o]);
        }
    }
    /* the columns [lo, hi) with tap k inside the input, for regular windows */
    void columns(int64_t k, int64_t &lo, int64_t &hi) const {
        const int64_t at = k * dilation - padding;
        lo = at < 0 ? ceil_div(-at, stride) : 0;
        hi = at >= in ? 0 : min64(out, (in - 1 - at) / stride + 1);
    }
};
struct pool {
    pool_axis dim[3];
    bool by_rows = false;       /* walk by taps, all columns at once */
    scratch<int64_t> tables;

    explicit pool(const pt_view &small) : tables(3 * windows(small)) {}
    static int64_t windows(const pt_view &small) {
        int64_t n = 3;
        for (int d = 0; d < small.ndim; ++d) n += small.sizes[d];
        return n;
    }
    int64_t inputs() const { return dim[0].in * dim[1].in * dim[2].in; }
    int64_t outputs() const { return dim[0].out * dim[1].out * dim[2].out; }
    /* the most numbers of the input in a window */
    double longest() const {
        double n = 1;
        for (const pool_axis &a : dim) {
            int64_t most = 0;
            for (int64_t o = 0; o < a.out; ++o) most = max64(most, a.stop[o] - a.start[o]);
            n *= double(most);
        }
        return n;
    }
};

/* reads the window settings from params 0 to 2, and dilation from param `dilated` if it is not 0 */
inline int read_pool(pt_call *call, const pt_view &large, const pt_view &small, int dilated,
                     bool include_pad, pool &p) {
    if (large.ndim < 3 || large.ndim > 5 || small.ndim != large.ndim)
        return fail(call, PT_RUNTIME_ERROR, "expected tensors of 3 to 5 dimensions, got %d",
                    large.ndim);
    const batch_view x(large), y(small);
    const bool adaptive = call->params[0].count == 0;
    if (!p.tables) return no_memory(call, 3 * 8 * pool::windows(small));
    int64_t *at = p.tables.data;
    for (int d = 0; d < 3; ++d) {
        pool_axis &a = p.dim[d];
        a.in = x.size[d + 2];
        a.out = y.size[d + 2];
        a.adaptive = adaptive;
        a.start = at;
        a.stop = at + a.out;
        a.number = at + 2 * a.out;
        at += 3 * a.out;
        if (!adaptive) {
            a.kernel = setting(call, 0, d, 1);
            a.stride = setting(call, 1, d, 1);
            a.padding = setting(call, 2, d, 0);
            if (dilated) a.dilation = setting(call, dilated, d, 1);
        }
        const int64_t most = int64_t(1) << 40;
        if (a.kernel < 1 || a.stride < 1 || a.padding < 0 || a.dilation < 1 || a.kernel > most ||
            a.stride > most || a.padding > most || a.dilation > most)
            return fail(
                call, PT_RUNTIME_ERROR,
                "kernel, stride and dilation must be positive, padding must not be negative");
        a.place(include_pad);
    }
    /* most taps of a kernel much longer than the row lie in the padding */
    p.by_rows = !adaptive && p.dim[2].out >= 8 && p.dim[2].kernel / 2 <= p.dim[2].in;
    return PT_OK;
}

/* Longer windows are summed in double: a float sum of ones ends at 2^24. */
constexpr double MOST_FLOATS = 4096;

/* integers wrap */
template <class E>
inline E plus(E a, E b) {
    if constexpr (std::is_same_v<E, int64_t>) return int64_t(uint64_t(a) + uint64_t(b));
    else return E(a + b);
}

template <class E>
inline E divided(E sum, E by) {
    if constexpr (std::is_same_v<E, int64_t>)
        if (by == -1) return int64_t(0 - uint64_t(sum));
    return sum / by;
}

template <class E>
using place_type = std::conditional_t<sizeof(E) <= 4, int32_t, int64_t>;

/* Runs f(type_tag<S>, type_tag<E>) for the dtype of the tensors of a mean and the type of its
 * sums. */
template <class F>
inline int visit_means(pt_call *call, const pool &p, F &&f) {
    return visit<bit(PT_INT64) | FLOATS>(call, call->in[0].dtype, [&](auto tag) {
        using S = PT_TYPE(tag);
        if constexpr (!is_same<S, int64_t> && !is_same<S, double>)
            if (p.longest() > MOST_FLOATS) return f(tag, type_tag<double>{});
        return f(tag, type_tag<compute<S>>{});
    });
}

} // namespace
#endif
