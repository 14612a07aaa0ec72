/* Reductions of windows of the spatial dims: maximum with its position, mean, their transposes.
 *
 *    max_pool(input; kernel, stride, padding, dilation, size) -> values, indices
 *    max_pool_backward(g, indices; size) -> out
 *    fractional_max(input, samples; kernel, size) -> values, indices
 *    mean_pool(input; kernel, stride, padding, size, include_pad, divisor) -> out
 *    mean_pool_transposed(input; the same) -> out
 *
 * Without a kernel the windows are adaptive. Places outside the input belong to no window. The
 * first maximum counts, but a NaN comes before all numbers, as in PyTorch.
 *
 * In the channels-last format the channels of a position are a run of memory, and each tap of a
 * window is taken for all of them. Other tensors are walked plane by plane (pooling_planes.cpp). */
#include "channels_last.hpp"
#include "pooling.hpp"

namespace {

constexpr int64_t CHANNELS = 256;       /* of one position that are walked at once */
constexpr int TAPS = 4;                 /* of one window that are read in one pass */

/* A channels-last call: the windows of positions, blocks of channels. */
struct last_pool {
    const pool &p;
    const batch_view x;
    int64_t n, c;

    last_pool(const pool &of, const pt_view &input)
        : p(of), x(input), n(x.size[0]), c(x.size[1]) {}

    /* calls f(number of the position, n, i, j, o) for all positions of the result */
    template <class F>
    void each_position(int64_t cost, F &&f) const {
        const int64_t a = p.dim[0].out, b = p.dim[1].out, w = p.dim[2].out;
        parallel_for(n * a * b, grain_rows(w * c * cost), [&](int64_t begin, int64_t end) {
            for (int64_t r = begin; r < end; ++r)
                for (int64_t o = 0; o < w; ++o) f(r * w + o, r / b / a, r / b % a, r % b, o);
        });
    }
    /* calls f(place in the flattened input, offset in the input) for the taps of a window */
    template <class F>
    void each_tap(int64_t image, int64_t i, int64_t j, int64_t o, F &&f) const {
        const pool_axis &a = p.dim[0], &b = p.dim[1], &w = p.dim[2];
        for (int64_t u = a.start[i]; u < a.stop[i]; u += a.dilation)
            for (int64_t v = b.start[j]; v < b.stop[j]; v += b.dilation)
                for (int64_t q = w.start[o]; q < w.stop[o]; q += w.dilation)
                    f((u * b.in + v) * w.in + q, image * x.stride[0] + u * x.stride[2] +
                                                     v * x.stride[3] + q * x.stride[4]);
    }
    /* Calls f(x, places, first) for the taps of a window, TAPS at a time: x[t] are m channels of
     * tap t, from channel c0 on, where they lie, or as E in the buffers. The last taps are filled
     * up by the last one, or by `fill`. False if no tap lies inside the input. */
    template <class E, class S, class F>
    bool each_taps(int64_t image, int64_t i, int64_t j, int64_t o, int64_t c0, int64_t m,
                   E (*buffer)[CHANNELS], const S *fill, F &&f) const {
        constexpr bool direct = is_same<S, E> || is_same<S, bfloat16>;
        const S *from[TAPS];
        int64_t places[TAPS];
        int n = 0;
        bool first = true;
        const auto flush = [&] {
            for (int t = n; t < TAPS; ++t) {
                from[t] = fill ? fill : from[n - 1];
                places[t] = places[n - 1];
            }
            const bool before = !first;
            n = 0;
            first = false;
            if constexpr (direct)
                if (x.stride[1] == 1) return f(from, places, !before);
            const E *wide[TAPS];
            for (int t = 0; t < TAPS; ++t) {
                load_wide(buffer[t], from[t], from[t] == fill ? 1 : x.stride[1], m);
                wide[t] = buffer[t];
            }
            f(wide, places, !before);
        };
        each_tap(image, i, j, o, [&](int64_t at, int64_t offset) {
            from[n] = reinterpret_cast<const S *>(x.data) + offset + c0 * x.stride[1];
            places[n++] = at;
            if (n == TAPS) flush();
        });
        if (n) flush();
        return !first;
    }
};

/* The memory of a result, or the buffer if it is computed in another type. */
template <class E, class S>
inline E *in_place_or(S *result, E *buffer) {
    if constexpr (is_same<E, S>) return result;
    else return buffer;
}

/* ---- maximum ----------------------------------------------------------------------------- */

template <bool FIRST, class E, class S>
inline void max_taps(E *PT_RESTRICT best, place_type<E> *PT_RESTRICT place, const S *const *x,
                     const int64_t *at, int64_t n) {
    const S *PT_RESTRICT a = x[0], *PT_RESTRICT b = x[1], *PT_RESTRICT c = x[2],
            *PT_RESTRICT d = x[3];
    const auto where = [at](int t) { return place_type<E>(at[t]); };
    const place_type<E> p0 = where(0), p1 = where(1), p2 = where(2), p3 = where(3);
    PT_IVDEP
    for (int64_t i = 0; i < n; ++i) {
        E top = FIRST ? convert<E>(a[i]) : best[i];
        place_type<E> at_top = FIRST ? p0 : place[i];
        const auto look = [&](E v, place_type<E> p) {
            const bool better = (v > top) | (v != v);
            top = better ? v : top;
            at_top = better ? p : at_top;
        };
        if (!FIRST) look(convert<E>(a[i]), p0);
        look(convert<E>(b[i]), p1);
        look(convert<E>(c[i]), p2);
        look(convert<E>(d[i]), p3);
        best[i] = top;
        place[i] = at_top;
    }
}

template <class S>
void max_last(pt_call *call, const last_pool &w, S none) {
    /* integers are compared as 64-bit ones: two loops serve all types */
    using E = std::conditional_t<std::is_integral<S>::value,
                                 std::conditional_t<is_same<S, uint64_t>, uint64_t, int64_t>,
                                 compute<S>>;
    w.each_position(4, [&](int64_t r, int64_t n, int64_t i, int64_t j, int64_t o) {
        for (int64_t c0 = 0; c0 < w.c; c0 += CHANNELS) {
            const int64_t m = min64(CHANNELS, w.c - c0);
            E buffer[TAPS][CHANNELS], made[CHANNELS];
            place_type<E> place[CHANNELS];
            S *values = output<S>(call) + r * w.c + c0;
            int64_t *PT_RESTRICT indices = output<int64_t>(call, 1) + r * w.c + c0;
            E *best = in_place_or(values, made);
            const auto look = [&](auto x, const int64_t *at, bool first) {
                if (first) max_taps<true>(best, place, x, at, m);
                else max_taps<false>(best, place, x, at, m);
            };
            if (!w.each_taps<E, S>(n, i, j, o, c0, m, buffer, nullptr, look))
                for (int64_t c = 0; c < m; ++c) {
                    best[c] = convert<E>(none);
                    place[c] = 0;
                }
            for (int64_t c = 0; c < m; ++c) indices[c] = place[c];
            if constexpr (!is_same<E, S>) store_narrow(values, best, m);
        }
    });
}

int max_pool_kernel(pt_call *call) {
    const pt_view &in = call->in[0], &out = call->out[0];
    if (in.ndim != out.ndim || !runs_channels_last(in, out)) return pt_max_pool_planes(call);
    pool p(out);
    if (int status = read_pool(call, in, out, 3, false, p)) return status;
    if (p.inputs() == 0 || p.inputs() >= INT_MAX) return pt_max_pool_planes(call);
    const last_pool w(p, in);
    return visit<INTEGERS | FLOATS>(call, in.dtype, [&](auto tag) {
        using S = PT_TYPE(tag);
        if constexpr (std::is_integral<S>::value)
            max_last<S>(call, w, std::numeric_limits<S>::lowest());
        else max_last<S>(call, w, convert<S>(-compute<S>(HUGE_VAL)));
        return int(PT_OK);
    });
}

/* out[indices[o]] += g[o] in each plane; both inputs have the format of the output */
int max_pool_backward_kernel(pt_call *call) {
    const pt_view &g = call->in[0], &indices = call->in[1], &out = call->out[0];
    if (g.ndim < 3 || g.ndim != out.ndim || indices.ndim != g.ndim || indices.dtype != PT_INT64 ||
        indices.numel != g.numel || g.sizes[0] != out.sizes[0] || g.sizes[1] != out.sizes[1])
        return fail(call, PT_RUNTIME_ERROR, "gradient, indices and size do not fit together");
    if (out.numel == 0) return PT_OK;
    const bool last = runs_channels_last(g, out);
    /* images of interleaved channels, or planes of one */
    const int64_t channels = last ? out.sizes[1] : 1,
                  images = out.sizes[0] * (last ? 1 : out.sizes[1]),
                  size = out.numel / images, results = g.numel / images, places = size / channels;
    return visit<FLOATS>(call, g.dtype, [&](auto tag) {
        using S = PT_TYPE(tag);
        using E = compute<S>;
        std::atomic<bool> enough(true), inside(true);
        parallel_for(images, grain_rows(size + 4 * results), [&](int64_t begin, int64_t end) {
            scratch<E> made(is_same<E, S> ? 0 : size);
            if (!made) {
                enough = false;
                return;
            }
            for (int64_t n = begin; n < end; ++n) {
                E *PT_RESTRICT sum = in_place_or(output<S>(call) + n * size, made.data);
                const S *PT_RESTRICT from = input<S>(call) + n * results;
                const int64_t *PT_RESTRICT to = input<int64_t>(call, 1) + n * results;
                for (int64_t i = 0; i < size; ++i) sum[i] = E(0);
                for (int64_t o = 0; o < results; o += channels)
                    for (int64_t c = 0; c < channels; ++c) {
                        const int64_t at = to[o + c];
                        if (uint64_t(at) >= uint64_t(places)) inside = false;
                        else sum[at * channels + c] += convert<E>(from[o + c]);
                    }
                if constexpr (!is_same<E, S>) store_narrow(output<S>(call) + n * size, sum, size);
            }
        });
        if (!enough) return no_memory(call, size * int64_t(sizeof(E)));
        return inside ? int(PT_OK) : fail(call, PT_INDEX_ERROR, "an index lies outside the input");
    });
}

/* ---- mean -------------------------------------------------------------------------------- */

/* What the sum of a window is divided by. */
struct share_of {
    const pool &p;
    int64_t divisor;
    int64_t operator()(int64_t i, int64_t j, int64_t o) const {
        const int64_t number = p.dim[0].number[i] * p.dim[1].number[j] * p.dim[2].number[o];
        return divisor ? divisor : max64(1, number);
    }
};

template <class E, class S>
inline void add_channels(E *PT_RESTRICT sum, const S *PT_RESTRICT x, int64_t n) {
    PT_IVDEP
    for (int64_t c = 0; c < n; ++c) sum[c] = plus(sum[c], convert<E>(x[c]));
}

template <bool FIRST, class E, class S>
inline void add_taps(E *PT_RESTRICT sum, const S *const *x, int64_t n) {
    const S *PT_RESTRICT a = x[0], *PT_RESTRICT b = x[1], *PT_RESTRICT c = x[2],
            *PT_RESTRICT d = x[3];
    PT_IVDEP
    for (int64_t i = 0; i < n; ++i) {
        const E before = FIRST ? E(0) : sum[i];
        const E two = plus(plus(before, convert<E>(a[i])), convert<E>(b[i]));
        sum[i] = plus(plus(two, convert<E>(c[i])), convert<E>(d[i]));
    }
}

template <class E, class S>
void mean_last(pt_call *call, const last_pool &w, const share_of &share) {
    const S zeros[CHANNELS] = {};       /* beside the last taps of a window: no sum is -0 */
    w.each_position(4, [&](int64_t r, int64_t n, int64_t i, int64_t j, int64_t o) {
        const E by = E(share(i, j, o));
        for (int64_t c0 = 0; c0 < w.c; c0 += CHANNELS) {
            const int64_t m = min64(CHANNELS, w.c - c0);
            E buffer[TAPS][CHANNELS], made[CHANNELS];
            S *to = output<S>(call) + r * w.c + c0;
            E *PT_RESTRICT sum = in_place_or(to, made);
            const auto add = [&](auto x, const int64_t *, bool first) {
                if (first) add_taps<true>(sum, x, m);
                else add_taps<false>(sum, x, m);
            };
            if (!w.each_taps<E, S>(n, i, j, o, c0, m, buffer, zeros, add))
                for (int64_t c = 0; c < m; ++c) sum[c] = E(0);
            if constexpr (is_same<S, bfloat16>)
                for (int64_t c = 0; c < m; ++c) to[c] = convert<S>(divided(sum[c], by));
            else {
                for (int64_t c = 0; c < m; ++c) sum[c] = divided(sum[c], by);
                if constexpr (!is_same<E, S>) store_narrow(to, sum, m);
            }
        }
    });
}

/* The windows that hold each place along a dim: [first[q], behind[q]). */
struct covering {
    scratch<int64_t> first, behind;
    explicit covering(const pool_axis &a) : first(a.in), behind(a.in) {
        if (!first || !behind) return;
        int64_t lo = 0, hi = 0;
        for (int64_t q = 0; q < a.in; ++q) {
            while (lo < a.out && a.stop[lo] <= q) ++lo;
            while (hi < a.out && a.start[hi] <= q) ++hi;
            first[q] = lo;
            behind[q] = hi;
        }
    }
    explicit operator bool() const { return first && behind; }
};

/* Each image's gradient is divided first, then each place adds up its windows. */
template <class E, class S>
int mean_transposed_last(pt_call *call, const pool &p, const share_of &share) {
    const batch_view g(call->in[0]);
    const pool_axis &a = p.dim[0], &b = p.dim[1], &w = p.dim[2];
    const covering in_a(a), in_b(b), in_w(w);
    if (!in_a || !in_b || !in_w) return no_memory(call, 16 * (a.in + b.in + w.in));
    const int64_t c = g.size[1], small = p.outputs() * c;
    std::atomic<bool> enough(true);
    parallel_for(g.size[0], grain_rows((p.inputs() + 4 * p.outputs()) * c), [&](int64_t begin,
                                                                              int64_t end) {
        scratch<E> parts(small), made(is_same<E, S> ? 0 : c);
        if (!parts || !made) {
            enough = false;
            return;
        }
        for (int64_t n = begin; n < end; ++n) {
            E *PT_RESTRICT part = parts.data;
            for (int64_t i = 0; i < a.out; ++i)
                for (int64_t j = 0; j < b.out; ++j)
                    for (int64_t o = 0; o < w.out; ++o, part += c) {
                        load_wide(part,
                                  reinterpret_cast<const S *>(g.data) + n * g.stride[0] +
                                      i * g.stride[2] + j * g.stride[3] + o * g.stride[4],
                                  g.stride[1], c);
                        const E by = E(share(i, j, o));
                        for (int64_t k = 0; k < c; ++k) part[k] = divided(part[k], by);
                    }
            S *to = output<S>(call) + n * p.inputs() * c;
            for (int64_t u = 0; u < a.in; ++u)
                for (int64_t v = 0; v < b.in; ++v)
                    for (int64_t q = 0; q < w.in; ++q, to += c) {
                        E *PT_RESTRICT sum = in_place_or(to, made.data);
                        bool any = false;
                        for (int64_t i = in_a.first[u]; i < in_a.behind[u]; ++i)
                            for (int64_t j = in_b.first[v]; j < in_b.behind[v]; ++j)
                                for (int64_t o = in_w.first[q]; o < in_w.behind[q]; ++o) {
                                    const E *x = parts.data + ((i * b.out + j) * w.out + o) * c;
                                    if (any) add_channels(sum, x, c);
                                    else load(sum, x, 1, c);
                                    any = true;
                                }
                        if (!any)
                            for (int64_t k = 0; k < c; ++k) sum[k] = E(0);
                        if constexpr (!is_same<E, S>) store_narrow(to, sum, c);
                    }
        }
    });
    return enough ? int(PT_OK) : no_memory(call, (small + c) * int64_t(sizeof(E)));
}

template <bool TRANSPOSED>
int mean_kernel(pt_call *call) {
    const pt_view &in = call->in[0], &out = call->out[0];
    if (in.ndim != out.ndim || !runs_channels_last(in, out))
        return pt_mean_pool_planes(call, TRANSPOSED);
    const pt_view &large = TRANSPOSED ? out : in, &small = TRANSPOSED ? in : out;
    pool p(small);
    if (int status = read_pool(call, large, small, 0, call->params[4].i != 0, p)) return status;
    if (out.numel == 0) return PT_OK;
    const share_of share{p, call->params[5].kind == PT_PARAM_NONE ? 0 : call->params[5].i};
    return visit_means(call, p, [&](auto tag, auto sum) {
        using S = PT_TYPE(tag);
        using E = PT_TYPE(sum);
        if constexpr (TRANSPOSED) return mean_transposed_last<E, S>(call, p, share);
        else mean_last<E, S>(call, last_pool(p, in), share);
        return int(PT_OK);
    });
}

int fractional_kernel(pt_call *call) { return pt_fractional_max_planes(call); }

} // namespace

extern "C" const pt_kernel_entry PT_CAT(pt_kernels_pooling_, PT_ISA)[] = {
    {"max_pool", max_pool_kernel},
    {"max_pool_backward", max_pool_backward_kernel},
    {"fractional_max", fractional_kernel},
    {"mean_pool", mean_kernel<false>},
    {"mean_pool_transposed", mean_kernel<true>},
    {nullptr, nullptr},
};
