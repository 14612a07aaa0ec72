/* Sampling at given positions.
 *
 *    grid_sample(input, grid; mode, padding_mode, align_corners) -> out
 *    grid_sample_backward(g, input, grid; the same) -> gradients of input and grid
 *
 * input is (N, C, [D,] H, W), grid (N, ..., 2 or 3) with positions in [-1, 1], that of the last dim
 * first. A point takes one, two or four neighbours along each dim, with weights that depend on the
 * position alone. Half types are computed in float32. The backward needs contiguous operands; it
 * handles one sample at a time, with the points in order. The row's rule of shapes and its dtypes
 * have checked the operands.
 *
 * As in PyTorch, a position that is NaN or infinite has weights of NaN where padding does not move
 * it inside. A neighbour outside counts as 0, and 0 times such a weight is NaN in two dims; in
 * three dims it is skipped.
 */
#include "rows.hpp"
#include "spatial.hpp"

#include <atomic>
#include <cstdlib>
#include <limits>

namespace {

enum { BILINEAR, NEAREST, BICUBIC };
enum { ZEROS, BORDER, REFLECTION };

struct settings {
    int mode, padding;
    bool corners;
};

constexpr int POINTS = 64;              /* points that are handled side by side */
constexpr int CHANNELS = 16;            /* channels that are, where they lie side by side */
template <class I>
constexpr I NOWHERE = std::numeric_limits<I>::min();    /* no offset; others may be negative */

/* Loops over m points run to the next multiple of a vector's width; places beyond m hold 0. */
inline int padded_count(int m) { return (m + 15) & ~15; }

/* A number and its derivative by the grid coordinate. */
template <class E>
struct dual {
    E value, slope;
};

template <class E>
inline dual<E> clipped(dual<E> x, E last) {
    const E slope = x.value > 0 && x.value < last ? x.slope : E(0),
            low = x.value > 0 ? x.value : E(0);
    return {low < last ? low : last, slope};
}
/* x mirrored at low / 2 and high / 2 */
template <class E>
inline dual<E> reflected(dual<E> x, E low, E high) {
    const E least = low / 2, span = (high - low) / 2, from = x.value - least, away = pt::abs(from);
    const E turns = pt::floor(away / span), over = away - turns * span,
            odd = turns - 2 * pt::floor(turns / 2);
    const E slope = from < 0 ? -x.slope : x.slope;
    return {(odd != 0 ? span - over : over) + least, odd != 0 ? -slope : slope};
}
template <class E>
inline dual<E> padded(dual<E> x, E size, const settings &s) {
    if (s.padding == REFLECTION) {
        if (s.corners && size == 1) return {E(0), E(0)};
        x = s.corners ? reflected(x, E(0), 2 * (size - 1)) : reflected(x, E(-1), 2 * size - 1);
    }
    return s.padding != ZEROS ? clipped(x, size - 1) : x;
}

/* The neighbours of positions along one dim: their indices (-1 outside), weights and
 * the weights' derivatives. Indices and offsets are of a type I, 32 bits where these suffice:
 * gathers are twice as wide then. */
template <class E, class I>
struct neighbours {
    int count;
    I at[4][POINTS];
    E weight[4][POINTS], slope[4][POINTS];
};

template <class I, class E>
inline I inside(E place, E size) {
    return place >= 0 && place <= size - 1 ? I(place) : I(-1);
}

template <class E, class I>
PT_NOINLINE void find(neighbours<E, I> &to, const E *coordinate, int64_t length, int width,
                      const settings &s) {
    const E size = E(length);
    to.count = s.mode == NEAREST ? 1 : s.mode == BILINEAR ? 2 : 4;
    for (int p = 0; p < width; ++p) {
        const E c = coordinate[p] + 1;
        dual<E> x = s.corners ? dual<E>{c / 2 * (size - 1), (size - 1) / 2}
                              : dual<E>{(c * size - 1) / 2, size / 2};
        if (s.mode != BICUBIC) x = padded(x, size, s);
        const E slope = x.slope;
        if (s.mode == NEAREST) {
            to.at[0][p] = inside<I>(pt::round(x.value), size);
            to.weight[0][p] = 1;
            to.slope[0][p] = 0;
            continue;
        }
        const E first = pt::floor(x.value), t = x.value - first;
        if (s.mode == BILINEAR) {
            for (int k = 0; k < 2; ++k) {
                to.at[k][p] = inside<I>(first + E(k), size);
                to.weight[k][p] = k ? t : 1 - t;
                to.slope[k][p] = k ? slope : -slope;
            }
            continue;
        }
        const E A = E(-0.75), u = 1 - t;
        const E w[4] = {((A * (t + 1) - 5 * A) * (t + 1) + 8 * A) * (t + 1) - 4 * A,
                        ((A + 2) * t - (A + 3)) * t * t + 1, ((A + 2) * u - (A + 3)) * u * u + 1,
                        ((A * (u + 1) - 5 * A) * (u + 1) + 8 * A) * (u + 1) - 4 * A};
        const E d[4] = {(3 * A * (t + 1) - 10 * A) * (t + 1) + 8 * A,
                        (3 * (A + 2) * t - 2 * (A + 3)) * t, -(3 * (A + 2) * u - 2 * (A + 3)) * u,
                        -((3 * A * (u + 1) - 10 * A) * (u + 1) + 8 * A)};
        for (int k = 0; k < 4; ++k) {
            to.at[k][p] = inside<I>(padded(dual<E>{first + E(k - 1), E(0)}, size, s).value, size);
            to.weight[k][p] = w[k];
            to.slope[k][p] = d[k] * slope;
        }
    }
}

/* All neighbours of the points: offsets in a channel (NOWHERE outside), weights, and the
 * derivatives of these by each grid coordinate. */
template <class E, class I>
struct taps {
    int count;
    bool inside;                        /* whether no neighbour is outside */
    I at[16][POINTS];
    E weight[16][POINTS], slope[3][16][POINTS];
};
template <bool SLOPES, class E, class I>
PT_NOINLINE void find_taps(taps<E, I> &t, const E (*position)[POINTS], int dims, int width,
                           const int64_t *size, const int64_t *stride, const settings &s) {
    neighbours<E, I> near[3];           /* depth, height, width */
    if (dims == 2) {
        near[0].count = 1;
        for (int p = 0; p < width; ++p) {
            near[0].at[0][p] = 0;
            near[0].weight[0][p] = 1;
            near[0].slope[0][p] = 0;
        }
    }
    for (int d = 3 - dims; d < 3; ++d) find(near[d], position[2 - d], size[d], width, s);
    const I step[3] = {I(stride[0]), I(stride[1]), I(stride[2])};
    t.count = 0;
    I outside = 0;
    for (int a = 0; a < near[0].count; ++a)
        for (int b = 0; b < near[1].count; ++b)
            for (int c = 0; c < near[2].count; ++c) {
                const int k = t.count++;
                const I *i = near[0].at[a], *j = near[1].at[b], *l = near[2].at[c];
                const E *x = near[0].weight[a], *y = near[1].weight[b], *z = near[2].weight[c];
                for (int p = 0; p < width; ++p) {
                    const I signs = i[p] | j[p] | l[p];
                    t.at[k][p] = signs < 0 ? NOWHERE<I>
                                           : I(i[p] * step[0] + j[p] * step[1] + l[p] * step[2]);
                    t.weight[k][p] = x[p] * y[p] * z[p];
                    outside |= signs;
                }
                for (int p = 0; SLOPES && p < width; ++p) {
                    t.slope[0][k][p] = x[p] * y[p] * near[2].slope[c][p];
                    t.slope[1][k][p] = x[p] * near[1].slope[b][p] * z[p];
                    t.slope[2][k][p] = near[0].slope[a][p] * y[p] * z[p];
                }
            }
    t.inside = outside >= 0;
}

/* What the neighbours outside contribute: 0, or NaN where their weights are NaN. */
template <class E>
inline void begin_sums(E *sum, const E *weight, int dims, int m) {
    for (int p = 0; p < m; ++p) sum[p] = dims == 2 ? 0 * weight[p] : E(0);
}

/* The points of one sample's grid, in row-major order. */
struct points {
    const pt_view &grid;
    space<1> inner;
    int dims;
    int64_t count;

    explicit points(const pt_view &g) : grid(g), dims(int(g.sizes[g.ndim - 1])), count(1) {
        for (int d = 1; d < g.ndim - 1; ++d) {
            inner.push(g.sizes[d], {g.strides[d]});
            count *= g.sizes[d];
        }
    }
    /* reads m positions from `at` on, and moves it behind them; places beyond m get 0 */
    template <class E>
    void read(E (*to)[POINTS], int64_t sample, cursor<1> &at, int m) const {
        for (int p = 0; p < padded_count(m); ++p) {
            E position[3] = {};
            if (p < m) {
                fetch(position, grid, sample * grid.strides[0] + at.offset[0],
                      grid.strides[grid.ndim - 1], dims);
                at.next();
            }
            for (int k = 0; k < dims; ++k) to[k][p] = position[k];
        }
    }
};

inline settings read(const pt_call *call) {
    return {int(call->params[0].i), int(call->params[1].i), call->params[2].i != 0};
}

/* The input's elements as E: in place, or converted to a contiguous copy. */
template <class E>
struct source {
    batch_view x;
    const E *data;
    scratch<E> copy;

    explicit source(const pt_view &v)
        : x(v), data(reinterpret_cast<const E *>(v.data)), copy(is_other(v) ? v.numel : 0) {
        if (!is_other(v) || !copy) return;
        space<1> outer;
        for (int d = 0; d < v.ndim; ++d) outer.push(v.sizes[d], {v.strides[d]});
        int64_t step[1];
        const int64_t n = outer.pop(step), rows = v.numel ? outer.numel() : 0;
        cursor<1> at(outer, 0);
        for (int64_t r = 0; r < rows; ++r, at.next())
            fetch(copy.data + r * n, v, at.offset[0], n == 1 ? 1 : step[0], n);
        data = copy.data;
        for (int64_t d = 4, stride = 1; d >= 0; stride *= x.size[d--]) x.stride[d] = stride;
    }
    static bool is_other(const pt_view &v) { return ITEMSIZE[v.dtype] != sizeof(E); }
    explicit operator bool() const { return bool(copy); }
    const E *channel(int64_t n, int64_t c) const {
        return data + n * x.stride[0] + c * x.stride[1];
    }
};

/* Adds N taps of the points in one channel, from tap k on. */
template <int N, bool INSIDE, class E, class I>
PT_INLINE void add_taps(E *sum, const E *plane, const taps<E, I> &near, int k, int m) {
    for (int p = 0; p < m; ++p) {
        E total = sum[p];
        for (int t = k; t < k + N; ++t) {
            const I i = near.at[t][p];
            if (INSIDE || i != NOWHERE<I>) total += near.weight[t][p] * plane[i];
        }
        sum[p] = total;
    }
}
template <bool INSIDE, class E, class I>
PT_INLINE void add_all_taps(E *sum, const E *plane, const taps<E, I> &near, int m) {
    int k = 0;
    for (; k + 4 <= near.count; k += 4) add_taps<4, INSIDE>(sum, plane, near, k, m);
    for (; k < near.count; ++k) add_taps<1, INSIDE>(sum, plane, near, k, m);
}

/* Whether elements are computed as doubles, with offsets of 64 bits: where they are doubles, or a
 * channel reaches too far for 32. */
inline bool is_wide(const pt_view &v) {
    const batch_view x(v);
    int64_t last = 0;
    for (int d = 2; d < 5; ++d) last += (x.size[d] - 1) * std::abs(x.stride[d]);
    const int64_t plane = x.size[2] * x.size[3] * x.size[4];
    return v.dtype == PT_FLOAT64 || last >= INT32_MAX || plane >= INT32_MAX;
}

template <class E, class I>
int sample_as(pt_call *call) {
    const pt_view &out = call->out[0];
    const source<E> from(call->in[0]);
    if (!from) return no_memory(call, call->in[0].numel * int64_t(sizeof(E)));
    const batch_view &x = from.x;
    const points all(call->in[1]);
    const settings s = read(call);
    const int64_t channels = x.size[1], blocks = ceil_div(all.count, POINTS);
    const bool last = x.stride[1] == 1 && channels >= CHANNELS / 2;
    parallel_for(
        x.size[0] * blocks, grain_rows(16 * channels * POINTS), [&](int64_t begin, int64_t end) {
            taps<E, I> near;
            E position[3][POINTS];
            for (int64_t u = begin; u < end; ++u) {
                const int64_t n = u / blocks, first = u % blocks * POINTS;
                const int m = int(min64(POINTS, all.count - first)), width = padded_count(m);
                cursor<1> at(all.inner, first);
                all.read(position, n, at, m);
                find_taps<false>(near, position, all.dims, width, x.size + 2, x.stride + 2, s);
                E sum[POINTS];
                for (int64_t c = 0; c < channels && !last; ++c) {
                    const E *plane = from.channel(n, c);
                    begin_sums(sum, near.weight[0], all.dims, width);
                    if (near.inside)
                        add_all_taps<true>(sum, plane, near, m);
                    else
                        add_all_taps<false>(sum, plane, near, m);
                    write(out, (n * channels + c) * all.count + first, sum, m);
                }
                for (int64_t c = 0; c < channels && last; c += CHANNELS) {
                    const int several = int(min64(CHANNELS, channels - c));
                    E sums[POINTS][CHANNELS];
                    begin_sums(sum, near.weight[0], all.dims, m);
                    for (int p = 0; p < m; ++p) {
                        for (int e = 0; e < CHANNELS; ++e) sums[p][e] = sum[p];
                        for (int k = 0; k < near.count; ++k) {
                            const I i = near.at[k][p];
                            if (i == NOWHERE<I>) continue;
                            const E *values = from.channel(n, c) + i, weight = near.weight[k][p];
                            if (several == CHANNELS)    /* the compiler vectorises this loop */
                                for (int e = 0; e < CHANNELS; ++e) sums[p][e] += weight * values[e];
                            else
                                for (int e = 0; e < several; ++e) sums[p][e] += weight * values[e];
                        }
                    }
                    for (int e = 0; e < several; ++e) {
                        for (int p = 0; p < m; ++p) sum[p] = sums[p][e];
                        write(out, (n * channels + c + e) * all.count + first, sum, m);
                    }
                }
            }
        });
    return PT_OK;
}

int grid_sample_kernel(pt_call *call) {
    if (call->out[0].numel == 0) return PT_OK;
    return is_wide(call->in[0]) ? sample_as<double, int64_t>(call)
                                : sample_as<float, int32_t>(call);
}

template <class E, class I>
int sample_backward_as(pt_call *call) {
    const pt_view &g = call->in[0];
    const source<E> from(call->in[1]);
    if (!from) return no_memory(call, call->in[1].numel * int64_t(sizeof(E)));
    const batch_view &x = from.x;
    const points all(call->in[2]);
    const settings s = read(call);
    const int64_t channels = x.size[1], plane = x.size[2] * x.size[3] * x.size[4];
    const bool own = ITEMSIZE[call->out[0].dtype] != sizeof(E);
    std::atomic<bool> starved{false};
    parallel_for(
        x.size[0], grain_rows(16 * channels * (all.count + plane)),
        [&](int64_t begin, int64_t end) {
            scratch<E> kept(own ? channels * plane : 0);
            if (!kept) {
                starved = true;
                return;
            }
            taps<E, I> near;
            /* for each tap, gradients times values, summed over the channels */
            E position[3][POINTS], gradient[POINTS], products[16][POINTS], result[3 * POINTS];
            for (int p = 0; p < POINTS; ++p) gradient[p] = 0;
            for (int64_t n = begin; n < end; ++n) {
                E *sums = own ? kept.data
                              : reinterpret_cast<E *>(call->out[0].data) + n * channels * plane;
                memset(sums, 0, size_t(channels * plane) * sizeof(E));
                cursor<1> at(all.inner, 0);
                for (int64_t first = 0; first < all.count; first += POINTS) {
                    const int m = int(min64(POINTS, all.count - first)), width = padded_count(m);
                    all.read(position, n, at, m);
                    find_taps<true>(near, position, all.dims, width, x.size + 2, x.stride + 2, s);
                    memset(products, 0, sizeof(products[0]) * size_t(near.count));
                    for (int64_t c = 0; c < channels; ++c) {
                        const E *values = from.channel(n, c);
                        fetch(gradient, g, (n * channels + c) * all.count + first, 1, m);
                        for (int k = 0; k < near.count; ++k) {
                            for (int p = 0; p < width; ++p) {
                                const I i = near.at[k][p];
                                const E value = values[i == NOWHERE<I> ? I(0) : i];
                                products[k][p] += i == NOWHERE<I> ? E(0) : gradient[p] * value;
                            }
                            for (int p = 0; p < m; ++p) {
                                const I i = near.at[k][p];
                                if (i == NOWHERE<I>) continue;
                                sums[c * plane + i] += gradient[p] * near.weight[k][p];
                            }
                        }
                    }
                    for (int d = 0; d < all.dims; ++d) {
                        E slope[POINTS];
                        begin_sums(slope, near.slope[d][0], all.dims, m);
                        for (int k = 0; k < near.count; ++k)
                            for (int p = 0; p < m; ++p)
                                slope[p] += near.at[k][p] == NOWHERE<I>
                                                ? E(0)
                                                : products[k][p] * near.slope[d][k][p];
                        for (int p = 0; p < m; ++p) result[p * all.dims + d] = slope[p];
                    }
                    write(call->out[1], (n * all.count + first) * all.dims, result, m * all.dims);
                }
                if (own) write(call->out[0], n * channels * plane, sums, channels * plane);
            }
        });
    return starved ? no_memory(call, channels * plane * int64_t(sizeof(E))) : int(PT_OK);
}

int grid_sample_backward_kernel(pt_call *call) {
    return is_wide(call->in[1]) ? sample_backward_as<double, int64_t>(call)
                                : sample_backward_as<float, int32_t>(call);
}

} // namespace

extern "C" const pt_kernel_entry PT_CAT(pt_kernels_grid_sample_, PT_ISA)[] = {
    {"grid_sample", grid_sample_kernel},
    {"grid_sample_backward", grid_sample_backward_kernel},
    {nullptr, nullptr},
};
