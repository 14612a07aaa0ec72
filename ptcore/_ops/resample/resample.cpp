/* Sliding windows as columns, and resampling along a dim.
 *
 *    unfold_windows(input; kernel, dilation, padding, stride, blocks) -> out
 *    fold_windows(input; the same, size) -> out         the transpose: overlaps are added up
 *    resample(input; dim, size, mode, align_corners, scale) -> out
 *    resample_transposed(input; the same) -> out
 *
 * Resampling makes each result from one (nearest), two (linear) or four (cubic) numbers along the
 * dim. Positions are computed in the type of the computation, as in PyTorch, since rounding
 * decides which numbers are taken.
 */
#include "channels_last.hpp"
#include "copy_run.hpp"
#include "spatial.hpp"

#include <atomic>

namespace {

/* ---- sliding windows --------------------------------------------------------------------- */

/* large (N, C, H, W), small (N, C * kernel, blocks): both contiguous */
template <bool FOLD>
int sliding_kernel(pt_call *call) {
    const pt_view &large = FOLD ? call->out[0] : call->in[0],
                  &small = FOLD ? call->in[0] : call->out[0];
    if (large.ndim != 4 || small.ndim != 3)
        return fail(call, PT_RUNTIME_ERROR, "expected 4 and 3 dimensions, got %d and %d",
                    large.ndim, small.ndim);
    int64_t set[5][2];
    for (int p = 0; p < 5; ++p)
        for (int d = 0; d < 2; ++d)
            set[p][d] = call->params[p].count == 2 ? call->params[p].list[d] : -1;
    const int64_t *kernel = set[0], *dilation = set[1], *padding = set[2], *stride = set[3],
                  *blocks = set[4];
    const int64_t n = large.sizes[0], channels = large.sizes[1], *size = large.sizes + 2;
    for (int p = 0; p < 5; ++p)
        if (set[p][0] < 0 || set[p][1] < 0)
            return fail(call, PT_RUNTIME_ERROR,
                        "window settings must hold 2 numbers that are not negative");
    if (small.sizes[1] != channels * kernel[0] * kernel[1] ||
        small.sizes[2] != blocks[0] * blocks[1] || small.sizes[0] != n)
        return fail(call, PT_RUNTIME_ERROR, "sizes do not fit together");
    return visit<BOOL | FLOATS | COMPLEXES>(call, large.dtype, [&](auto tag) {
        using S = std::conditional_t<is_same<PT_TYPE(tag), uint8_t>, boolean, PT_TYPE(tag)>;
        using E = compute<S>;
        const int64_t plane = size[0] * size[1], taps = kernel[0] * kernel[1],
                      block = blocks[0] * blocks[1];
        if (large.numel == 0 && !FOLD) {
            for (int64_t i = 0; i < small.numel; ++i) output<S>(call)[i] = S{};
            return int(PT_OK);
        }
        scratch<E> sums(FOLD && !is_same<E, S> ? large.numel : 0);
        if (!sums) return no_memory(call, large.numel * int64_t(sizeof(E)));
        parallel_for(
            n * channels, grain_rows(taps * block + plane), [&](int64_t begin, int64_t end) {
                for (int64_t c = begin; c < end; ++c) {
                    E *sum = nullptr;
                    if constexpr (FOLD) {
                        if constexpr (is_same<E, S>)
                            sum = output<S>(call) + c * plane;
                        else
                            sum = sums.data + c * plane;
                        for (int64_t i = 0; i < plane; ++i) sum[i] = E{};
                    }
                    for (int64_t t = 0; t < taps; ++t)
                        for (int64_t i = 0; i < blocks[0]; ++i) {
                            const int64_t row = i * stride[0] - padding[0] +
                                                t / kernel[1] * dilation[0],
                                          at = t % kernel[1] * dilation[1] - padding[1];
                            const int64_t columns = ((c * taps + t) * blocks[0] + i) * blocks[1];
                            const bool inside = row >= 0 && row < size[0];
                            for (int64_t j = 0; j < blocks[1]; ++j) {
                                const int64_t column = at + j * stride[1];
                                const bool there = inside && column >= 0 && column < size[1];
                                if constexpr (FOLD) {
                                    if (there)
                                        sum[row * size[1] + column] =
                                            sum[row * size[1] + column] +
                                            convert<E>(input<S>(call)[columns + j]);
                                } else
                                    output<S>(call)[columns + j] =
                                        there ? input<S>(call)[c * plane + row * size[1] + column]
                                              : S{};
                            }
                        }
                    if constexpr (FOLD && !is_same<E, S>)
                        store(output<S>(call) + c * plane, sum, plane);
                }
            });
        return int(PT_OK);
    });
}

/* ---- resample ---------------------------------------------------------------------------- */

enum { NEAREST, NEAREST_EXACT, LINEAR, CUBIC };

template <class E>
struct samples {
    int taps;
    scratch<int64_t> index;
    scratch<E> weight;

    samples(int64_t in, int64_t out, int mode, bool align, double factor)
        : taps(mode == CUBIC ? 4 : mode == LINEAR ? 2 : 1), index(out * taps), weight(out * taps) {
        if (!index || !weight || in == 0) return;
        const bool corners = align && mode >= LINEAR;
        const E scale = corners      ? (out > 1 ? E(in - 1) / E(out - 1) : E(0))
                        : factor > 0 ? E(1.0 / factor)
                                     : E(in) / E(out);
        for (int64_t o = 0; o < out; ++o) {
            int64_t *i = index.data + o * taps;
            E *w = weight.data + o * taps;
            if (mode == NEAREST || mode == NEAREST_EXACT) {
                const E at = mode == NEAREST ? E(o) * scale : (E(o) + E(0.5)) * scale;
                /* PyTorch rounds positions of float64, too, to float before it takes their floor */
                i[0] = min64(in - 1, max64(0, int64_t(at < E(1 << 23) ? E(float(at)) : at)));
                w[0] = E(1);
                continue;
            }
            E at = corners ? scale * E(o) : scale * (E(o) + E(0.5)) - E(0.5);
            if (mode == LINEAR) {
                at = at < E(0) ? E(0) : at;
                i[0] = min64(in - 1, int64_t(at));
                i[1] = min64(in - 1, i[0] + 1);
                const E t = at - E(i[0]);
                w[1] = t < E(0) ? E(0) : t > E(1) ? E(1) : t;
                w[0] = E(1) - w[1];
                continue;
            }
            const E below = E(floor(double(at))), t = at - below, A = E(-0.75);
            auto near = [&](E x) { return ((A + 2) * x - (A + 3)) * x * x + 1; };
            auto far = [&](E x) { return ((A * x - 5 * A) * x + 8 * A) * x - 4 * A; };
            w[0] = far(t + 1);
            w[1] = near(t);
            w[2] = near(1 - t);
            w[3] = far(2 - t);
            for (int k = 0; k < 4; ++k) i[k] = min64(in - 1, max64(0, int64_t(below) + k - 1));
        }
    }
};

/* to[0...n) = weight * from if `first`, else to += weight * from */
template <class E, class S>
inline void add_run(E *PT_RESTRICT to, const S *PT_RESTRICT from, E weight, int64_t n, bool first) {
    if (first)
        for (int64_t i = 0; i < n; ++i) to[i] = weight * convert<E>(from[i]);
    else
        for (int64_t i = 0; i < n; ++i) to[i] += weight * convert<E>(from[i]);
}

/* to[i] = the sum over taps of weight[k] * from[index[k] * inner + i], rounded once; a single tap is
 * a copy */
template <class E, class S>
inline void weighted(S *PT_RESTRICT to, const S *from, int64_t inner, const int64_t *index,
                     const E *weight, int taps, E *sums, int64_t n) {
    const S *PT_RESTRICT first = from + index[0] * inner;
    if (taps == 1) return copy_run(to, first, size_t(n) * sizeof(S));
    if (taps == 2) {
        const S *PT_RESTRICT second = from + index[1] * inner;
        const E u = weight[0], v = weight[1];
        if constexpr (is_same<S, half>) {
            add_run(sums, first, u, n, true);
            add_run(sums, second, v, n, false);
            store(to, sums, n);
        } else
            for (int64_t i = 0; i < n; ++i)
                to[i] = convert<S>(u * convert<E>(first[i]) + v * convert<E>(second[i]));
        return;
    }
    E *total;
    if constexpr (is_same<E, S>) total = to;
    else total = sums;
    for (int k = 0; k < taps; ++k) add_run(total, from + index[k] * inner, weight[k], n, k == 0);
    if constexpr (!is_same<E, S>) store(to, sums, n);
}

template <bool TRANSPOSED>
int resample_kernel(pt_call *call) {
    const pt_view &x = call->in[0], &y = call->out[0];
    if (x.ndim == 0) return fail(call, PT_RUNTIME_ERROR, "expected at least one dimension");
    const int64_t dim = call->params[0].i;
    const int mode = int(call->params[2].i);
    const bool align = call->params[3].i != 0;
    const double factor = call->params[4].d;
    const int64_t in = x.sizes[dim], out = y.sizes[dim], small = TRANSPOSED ? out : in,
                  large = TRANSPOSED ? in : out;
    const memory_order order(x.ndim, runs_channels_last(x, y));
    int64_t outer = 1, inner = 1;
    for (int k = 0, behind = 0; k < x.ndim; ++k) {
        if (order[k] == dim) behind = 1;
        else (behind ? inner : outer) *= x.sizes[order[k]];
    }
    if (y.numel == 0) return PT_OK;
    if (small == 0) return fail(call, PT_RUNTIME_ERROR, "a dim of size 0 cannot be resampled");
    return visit<bit(PT_UINT8) | FLOATS>(call, x.dtype, [&](auto tag) {
        using S = PT_TYPE(tag);
        using E = std::conditional_t<is_same<S, double>, double, float>;
        const samples<E> of(small, large, mode, align, factor);
        if (!of.index || !of.weight) return no_memory(call, large * of.taps * 16);
        /* the inner dims are cut into pieces whose sums stay in cache */
        const int64_t piece = min64(inner, 1024), pieces = ceil_div(inner, piece);
        std::atomic<bool> enough(true);
        parallel_for(
            outer * pieces, grain_rows(piece * (in + out)), [&](int64_t begin, int64_t end) {
                scratch<E> sums(TRANSPOSED ? out * piece : piece);
                if (!sums) {
                    enough = false;
                    return;
                }
                for (int64_t u = begin; u < end; ++u) {
                    const int64_t start = u % pieces * piece, n = min64(piece, inner - start);
                    const S *from = input<S>(call) + u / pieces * in * inner + start;
                    S *to = output<S>(call) + u / pieces * out * inner + start;
                    if constexpr (TRANSPOSED) {
                        for (int64_t i = 0; i < out * n; ++i) sums[i] = E(0);
                        for (int64_t o = 0; o < in; ++o)
                            for (int k = 0; k < of.taps; ++k)
                                add_run(sums.data + of.index[o * of.taps + k] * n, from + o * inner,
                                        of.weight[o * of.taps + k], n, false);
                        for (int64_t o = 0; o < out; ++o)
                            store(to + o * inner, sums.data + o * n, n);
                    } else if (inner == 1)
                        for (int64_t o = 0; o < out; ++o) {
                            E sum =
                                of.weight[o * of.taps] * convert<E>(from[of.index[o * of.taps]]);
                            for (int k = 1; k < of.taps; ++k)
                                sum += of.weight[o * of.taps + k] *
                                       convert<E>(from[of.index[o * of.taps + k]]);
                            to[o] = convert<S>(sum);
                        }
                    else
                        for (int64_t o = 0; o < out; ++o)
                            weighted(to + o * inner, from, inner, of.index.data + o * of.taps,
                                     of.weight.data + o * of.taps, of.taps, sums.data, n);
                }
            });
        return enough ? int(PT_OK) : no_memory(call, out * piece * int64_t(sizeof(E)));
    });
}

} // namespace

extern "C" const pt_kernel_entry PT_CAT(pt_kernels_resample_, PT_ISA)[] = {
    {"unfold_windows", sliding_kernel<false>},
    {"fold_windows", sliding_kernel<true>},
    {"resample", resample_kernel<false>},
    {"resample_transposed", resample_kernel<true>},
    {nullptr, nullptr},
};
