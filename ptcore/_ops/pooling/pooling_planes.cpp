/* Pooling of row-major tensors, and of any that are not in the channels-last format.
 *
 * A plane (one channel of one image) is walked row by row: if windows are regular and rows long
 * enough, each tap is taken for all columns at once, else window by window. Compiled at the base
 * level alone: above it the compiler gathers, which is slower. */
#include "pooling.hpp"

namespace {

/* calls f(plane number, input plane, output plane) for all planes, contiguous and as type E */
template <class E, class S, class Out, class F>
inline int each_plane(pt_call *call, int64_t cost, F &&f) {
    const pt_view &in = call->in[0];
    const batch_view x(in);
    const int64_t planes = x.size[0] * x.size[1], size = x.size[2] * x.size[3] * x.size[4];
    const int64_t results = planes ? call->out[0].numel / planes : 0;
    constexpr bool same_out = is_same<E, Out>;
    const bool direct = is_same<E, S> && x.dense();
    std::atomic<bool> enough(true);
    parallel_for(planes, grain_rows(cost), [&](int64_t begin, int64_t end) {
        scratch<E> wide(direct ? 0 : size), made(same_out ? 0 : results);
        if (!wide || !made) {
            enough = false;
            return;
        }
        for (int64_t p = begin; p < end; ++p) {
            const S *from = reinterpret_cast<const S *>(x.data) + p / x.size[1] * x.stride[0] +
                            p % x.size[1] * x.stride[1];
            if (!direct)
                for (int64_t i = 0; i < x.size[2]; ++i)
                    for (int64_t j = 0; j < x.size[3]; ++j)
                        load_row(wide.data + (i * x.size[3] + j) * x.size[4],
                                 from + i * x.stride[2] + j * x.stride[3], x.stride[4], x.size[4]);
            Out *to = output<Out>(call) + p * results;
            if constexpr (same_out)
                f(p, direct ? reinterpret_cast<const E *>(from) : wide.data, to);
            else {
                f(p, direct ? reinterpret_cast<const E *>(from) : wide.data, made.data);
                store(to, made.data, results);
            }
        }
    });
    return enough ? int(PT_OK) : no_memory(call, (size + results) * int64_t(sizeof(E)));
}

/* ---- maximum ----------------------------------------------------------------------------- */

template <class E, int STRIDE>
inline void max_tap(E *PT_RESTRICT best, place_type<E> *PT_RESTRICT place, const E *PT_RESTRICT row,
                    int64_t stride, int64_t at, int64_t lo, int64_t hi) {
    const int64_t step = STRIDE ? STRIDE : stride;
    PT_IVDEP
    for (int64_t o = lo; o < hi; ++o) {
        const E v = row[o * step];
        const bool better = (v > best[o]) | (v != v);
        best[o] = better ? v : best[o];
        place[o] = better ? place_type<E>(at + o * step) : place[o];
    }
}

template <class E>
inline void max_rows(const pool &p, const E *x, E *values, int64_t *indices, place_type<E> *place) {
    const pool_axis &a = p.dim[0], &b = p.dim[1], &c = p.dim[2];
    for (int64_t i = 0; i < a.out; ++i)
        for (int64_t j = 0; j < b.out; ++j, values += c.out, indices += c.out) {
            for (int64_t o = 0; o < c.out; ++o) {
                values[o] = -E(HUGE_VAL);
                place[o] = -1;
            }
            for (int64_t u = a.start[i]; u < a.stop[i]; u += a.dilation)
                for (int64_t v = b.start[j]; v < b.stop[j]; v += b.dilation)
                    for (int64_t k = 0; k < c.kernel; ++k) {
                        int64_t lo, hi;
                        c.columns(k, lo, hi);
                        const int64_t first = (u * b.in + v) * c.in + k * c.dilation - c.padding;
                        if (c.stride == 1)
                            max_tap<E, 1>(values, place, x + first, 1, first, lo, hi);
                        else if (c.stride == 2)
                            max_tap<E, 2>(values, place, x + first, 2, first, lo, hi);
                        else max_tap<E, 0>(values, place, x + first, c.stride, first, lo, hi);
                    }
            for (int64_t o = 0; o < c.out; ++o)
                indices[o] =
                    place[o] >= 0 ? int64_t(place[o])
                    : a.start[i] < a.stop[i] && b.start[j] < b.stop[j] && c.start[o] < c.stop[o]
                        ? (a.start[i] * b.in + b.start[j]) * c.in + c.start[o]
                        : 0;
        }
}
/* `none` is the maximum of no elements */
template <class E>
inline void max_windows(const pool &p, const E *x, E none, E *values, int64_t *indices) {
    const pool_axis &a = p.dim[0], &b = p.dim[1], &c = p.dim[2];
    for (int64_t i = 0; i < a.out; ++i)
        for (int64_t j = 0; j < b.out; ++j)
            for (int64_t o = 0; o < c.out; ++o) {
                E best = none;
                int64_t place = -1;
                for (int64_t u = a.start[i]; u < a.stop[i]; u += a.dilation)
                    for (int64_t v = b.start[j]; v < b.stop[j]; v += b.dilation)
                        for (int64_t q = c.start[o]; q < c.stop[o]; q += c.dilation) {
                            const int64_t at = (u * b.in + v) * c.in + q;
                            if (place < 0 || x[at] > best || x[at] != x[at]) {
                                best = x[at];
                                place = at;
                            }
                        }
                *values++ = best;
                *indices++ = max64(0, place);
            }
}

int max_pool_kernel(pt_call *call) {
    pool p(call->out[0]);
    if (int status = read_pool(call, call->in[0], call->out[0], 3, false, p)) return status;
    if (call->out[0].numel == 0) return PT_OK;
    if (p.inputs() == 0)
        return fail(call, PT_RUNTIME_ERROR, "windows of an empty input have no maximum");
    const bool by_rows = p.by_rows && p.inputs() < INT_MAX;
    return visit<INTEGERS | FLOATS>(call, call->in[0].dtype, [&](auto tag) {
        using S = PT_TYPE(tag);
        /* integers are compared as 64-bit integers, window by window:
         * two loops serve all types */
        using E = std::conditional_t<std::is_integral<S>::value,
                                     std::conditional_t<is_same<S, uint64_t>, uint64_t, int64_t>,
                                     compute<S>>;
        std::atomic<bool> enough(true);
        const int64_t cost = p.inputs() + 4 * p.outputs();
        const int status =
            each_plane<E, S, S>(call, cost, [&](int64_t plane, const E *x, E *values) {
                int64_t *indices = output<int64_t>(call, 1) + plane * p.outputs();
                if constexpr (std::is_integral<E>::value)
                    max_windows(p, x, E(std::numeric_limits<S>::lowest()), values, indices);
                else {
                    if (!by_rows) return max_windows(p, x, -E(HUGE_VAL), values, indices);
                    scratch<place_type<E>> place(p.dim[2].out);
                    if (place)
                        max_rows(p, x, values, indices, place.data);
                    else
                        enough = false;
                }
            });
        return enough ? status : no_memory(call, p.dim[2].out * 8);
    });
}

/* ---- maximum at random places ---------------------------------------------------------------- */

/* Where window o of `out` begins: a multiple of the step, moved by the sample, with each step
 * rounded to T. The last window ends where the input ends. */
template <class T>
inline int64_t fractional_start(T sample, int64_t o, int64_t out, int64_t in, int64_t kernel) {
    using E = compute<T>;
    if (o == out - 1) return in - kernel;
    const E step = convert<E>(convert<T>(double(in - kernel) / double(out - 1))),
            u = convert<E>(sample);
    const E end = convert<E>(convert<T>(convert<E>(convert<T>(E(u + E(o)))) * step)),
            begin = convert<E>(convert<T>(u * step));
    constexpr E FAR =
        E(1e15); /* samples beyond [0, 1) are accepted while steps can still be told apart */
    if (!(std::abs(end) < FAR && std::abs(begin) < FAR)) return 0;
    return min64(max64(int64_t(end) - int64_t(begin), 0), in - kernel);
}

int fractional_kernel(pt_call *call) {
    const pt_view &input = call->in[0], &samples = call->in[1];
    const int n = input.ndim - 2;
    if (n < 1 || n > 3 || samples.ndim != 3 || samples.sizes[2] != n ||
        samples.sizes[0] != input.sizes[0] || samples.sizes[1] != input.sizes[1])
        return fail(call, PT_RUNTIME_ERROR, "expected (N, C, ...) and samples (N, C, %d)", n);
    const batch_view x(input), y(call->out[0]);
    int64_t kernel[3];
    for (int d = 0; d < 3; ++d) {
        kernel[d] = setting(call, 0, d, 1);
        if (kernel[d] < 1 || kernel[d] + y.size[d + 2] - 1 > x.size[d + 2])
            return fail(call, PT_RUNTIME_ERROR, "windows do not fit in the input");
    }
    const int64_t *out = y.size + 2, *in = x.size + 2, windows = out[0] + out[1] + out[2],
                  channels = x.size[1], results = out[0] * out[1] * out[2];
    if (call->out[0].numel == 0) return PT_OK;
    return visit<FLOATS>(call, input.dtype, [&](auto tag) {
        using T = PT_TYPE(tag);
        using E = compute<T>;
        std::atomic<bool> enough(true);
        const int64_t taps = kernel[0] * kernel[1] * kernel[2];
        const int status = each_plane<E, T, T>(
            call, in[0] * in[1] * in[2] + results * taps,
            [&](int64_t plane, const E *from, E *values) {
                scratch<int64_t> starts(windows);
                if (!starts) {
                    enough = false;
                    return;
                }
                const T *sample = reinterpret_cast<const T *>(samples.data) +
                                  plane / channels * samples.strides[0] +
                                  plane % channels * samples.strides[1];
                int64_t *start[3] = {starts.data, starts.data + out[0],
                                     starts.data + out[0] + out[1]};
                for (int d = 0; d < 3; ++d)
                    for (int64_t o = 0; o < out[d]; ++o) {
                        const int k =
                            d - 3 +
                            n; /* the dim among the tensor's; two dims have reversed samples */
                        start[d][o] = k < 0 ? 0
                                            : fractional_start(
                                                  sample[(n == 2 ? 1 - k : k) * samples.strides[2]],
                                                  o, out[d], in[d], kernel[d]);
                    }
                int64_t *indices = output<int64_t>(call, 1) + plane * results;
                for (int64_t i = 0; i < out[0]; ++i)
                    for (int64_t j = 0; j < out[1]; ++j)
                        for (int64_t o = 0; o < out[2]; ++o) {
                            int64_t place = -1;
                            for (int64_t u = start[0][i]; u < start[0][i] + kernel[0]; ++u)
                                for (int64_t v = start[1][j]; v < start[1][j] + kernel[1]; ++v)
                                    for (int64_t w = start[2][o]; w < start[2][o] + kernel[2];
                                         ++w) {
                                        const int64_t at = (u * in[1] + v) * in[2] + w;
                                        if (place < 0 || from[at] > from[place] ||
                                            from[at] != from[at])
                                            place = at;
                                    }
                            *values++ = from[place];
                            *indices++ = place;
                        }
            });
        return enough ? status : no_memory(call, windows * 8);
    });
}

/* ---- mean -------------------------------------------------------------------------------- */

template <class E, bool TRANSPOSED>
inline void mean_plane(const pool &p, const E *x, E *to, E *row, int64_t divisor) {
    const pool_axis &a = p.dim[0], &b = p.dim[1], &c = p.dim[2];
    if (TRANSPOSED)
        for (int64_t i = 0; i < p.inputs(); ++i) to[i] = E(0);
    for (int64_t i = 0; i < a.out; ++i)
        for (int64_t j = 0; j < b.out; ++j) {
            const int64_t first = (i * b.out + j) * c.out, shared = a.number[i] * b.number[j];
            auto share = [&](int64_t o) {
                return E(divisor ? divisor : max64(1, shared * c.number[o]));
            };
            const E *from = x + first;
            for (int64_t o = 0; o < c.out; ++o)
                row[o] = TRANSPOSED ? divided(from[o], share(o)) : E(0);
            for (int64_t u = a.start[i]; u < a.stop[i]; ++u)
                for (int64_t v = b.start[j]; v < b.stop[j]; ++v) {
                    const int64_t at = (u * b.in + v) * c.in;
                    if (!p.by_rows) {
                        for (int64_t o = 0; o < c.out; ++o) {
                            E sum = row[o];
                            for (int64_t q = at + c.start[o]; q < at + c.stop[o]; ++q) {
                                if (TRANSPOSED) to[q] = plus(to[q], sum);
                                else sum = plus(sum, x[q]);
                            }
                            row[o] = sum;
                        }
                        continue;
                    }
                    for (int64_t k = 0; k < c.kernel; ++k) {
                        int64_t lo, hi;
                        c.columns(k, lo, hi);
                        const int64_t start = at + k - c.padding;
                        if (TRANSPOSED)
                            for (int64_t o = lo; o < hi; ++o)
                                to[start + o * c.stride] = plus(to[start + o * c.stride], row[o]);
                        else if (c.stride == 1)
                            for (int64_t o = lo; o < hi; ++o) row[o] = plus(row[o], x[start + o]);
                        else
                            for (int64_t o = lo; o < hi; ++o)
                                row[o] = plus(row[o], x[start + o * c.stride]);
                    }
                }
            for (int64_t o = 0; !TRANSPOSED && o < c.out; ++o)
                to[first + o] = divided(row[o], share(o));
        }
}

template <bool TRANSPOSED>
int mean_kernel(pt_call *call) {
    const pt_view &large = TRANSPOSED ? call->out[0] : call->in[0],
                  &small = TRANSPOSED ? call->in[0] : call->out[0];
    pool p(small);
    if (int status = read_pool(call, large, small, 0, call->params[4].i != 0, p)) return status;
    if (call->out[0].numel == 0) return PT_OK;
    const int64_t divisor = call->params[5].kind == PT_PARAM_NONE ? 0 : call->params[5].i;
    const auto pooled = [&](auto tag, auto sum) {
        using S = PT_TYPE(tag);
        using E = PT_TYPE(sum);
        std::atomic<bool> enough(true);
        const int status =
            each_plane<E, S, S>(call, p.inputs() + 2 * p.outputs(),
                                [&](int64_t, const E *x, E *to) {
                                    scratch<E> row(p.dim[2].out);
                                    if (row)
                                        mean_plane<E, TRANSPOSED>(p, x, to, row.data, divisor);
                                    else
                                        enough = false;
                                });
        return enough ? status : no_memory(call, p.dim[2].out * 8);
    };
    return visit_means(call, p, pooled);
}

} // namespace

extern "C" int pt_max_pool_planes(pt_call *call) { return max_pool_kernel(call); }
extern "C" int pt_fractional_max_planes(pt_call *call) { return fractional_kernel(call); }
extern "C" int pt_mean_pool_planes(pt_call *call, int transposed) {
    return transposed ? mean_kernel<true>(call) : mean_kernel<false>(call);
}
