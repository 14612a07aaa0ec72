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

namespace {

enum { BILINEAR, NEAREST, BICUBIC };
enum { ZEROS, BORDER, REFLECTION };

struct settings {
    int mode, padding;
    bool corners;
};

constexpr int POINTS = 64;              /* points that are handled side by side */
constexpr int64_t NOWHERE = INT64_MIN;  /* no offset */

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
 * the weights' derivatives. */
template <class E>
struct neighbours {
    int count;
    int64_t at[4][POINTS];
    E weight[4][POINTS], slope[4][POINTS];
};

template <class E>
inline int64_t inside(E place, E size) {
    return place >= 0 && place <= size - 1 ? int64_t(place) : int64_t(-1);
}

template <class E>
PT_NOINLINE void find(neighbours<E> &to, const E *coordinate, int64_t length, const settings &s) {
    const E size = E(length);
    to.count = s.mode == NEAREST ? 1 : s.mode == BILINEAR ? 2 : 4;
    for (int p = 0; p < POINTS; ++p) {
        const E c = coordinate[p] + 1;
        dual<E> x = s.corners ? dual<E>{c / 2 * (size - 1), (size - 1) / 2}
                              : dual<E>{(c * size - 1) / 2, size / 2};
        if (s.mode != BICUBIC) x = padded(x, size, s);
        const E slope = x.slope;
        if (s.mode == NEAREST) {
            to.at[0][p] = inside(pt::round(x.value), size);
            to.weight[0][p] = 1;
            to.slope[0][p] = 0;
            continue;
        }
        const E first = pt::floor(x.value), t = x.value - first;
        if (s.mode == BILINEAR) {
            for (int k = 0; k < 2; ++k) {
                to.at[k][p] = inside(first + E(k), size);
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
            to.at[k][p] = inside(padded(dual<E>{first + E(k - 1), E(0)}, size, s).value, size);
            to.weight[k][p] = w[k];
            to.slope[k][p] = d[k] * slope;
        }
    }
}

/* All neighbours of the points: offsets in a channel (NOWHERE outside), weights, and the
 * derivatives of these by each grid coordinate. */
template <class E>
struct taps {
    int count;
    int64_t at[16][POINTS];
    E weight[16][POINTS], slope[3][16][POINTS];
};
template <class E>
PT_NOINLINE void find_taps(taps<E> &t, const E (*position)[POINTS], int dims, const int64_t *size,
                           const int64_t *stride, const settings &s) {
    neighbours<E> near[3];              /* depth, height, width */
    if (dims == 2) {
        near[0].count = 1;
        for (int p = 0; p < POINTS; ++p) {
            near[0].at[0][p] = 0;
            near[0].weight[0][p] = 1;
            near[0].slope[0][p] = 0;
        }
    }
    for (int d = 3 - dims; d < 3; ++d) find(near[d], position[2 - d], size[d], s);
    t.count = 0;
    for (int a = 0; a < near[0].count; ++a)
        for (int b = 0; b < near[1].count; ++b)
            for (int c = 0; c < near[2].count; ++c) {
                const int k = t.count++;
                const int64_t *i = near[0].at[a], *j = near[1].at[b], *l = near[2].at[c];
                const E *x = near[0].weight[a], *y = near[1].weight[b], *z = near[2].weight[c];
                for (int p = 0; p < POINTS; ++p) {
                    t.at[k][p] = (i[p] | j[p] | l[p]) < 0
                                     ? NOWHERE
                                     : i[p] * stride[0] + j[p] * stride[1] + l[p] * stride[2];
                    t.weight[k][p] = x[p] * y[p] * z[p];
                    t.slope[0][k][p] = x[p] * y[p] * near[2].slope[c][p];
                    t.slope[1][k][p] = x[p] * near[1].slope[b][p] * z[p];
                    t.slope[2][k][p] = near[0].slope[a][p] * y[p] * z[p];
                }
            }
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
        for (int p = 0; p < POINTS; ++p) {
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
        : x(v), data(reinterpret_cast<const E *>(v.data)), copy(is_half_type(v) ? v.numel : 0) {
        if (!is_half_type(v) || !copy) return;
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
    static bool is_half_type(const pt_view &v) { return ITEMSIZE[v.dtype] == 2; }
    explicit operator bool() const { return bool(copy); }
    const E *channel(int64_t n, int64_t c) const {
        return data + n * x.stride[0] + c * x.stride[1];
    }
};

template <class E>
int sample_as(pt_call *call) {
    const pt_view &out = call->out[0];
    const source<E> from(call->in[0]);
    if (!from) return no_memory(call, call->in[0].numel * int64_t(sizeof(E)));
    const batch_view &x = from.x;
    const points all(call->in[1]);
    const settings s = read(call);
    const int64_t channels = x.size[1], blocks = ceil_div(all.count, POINTS);
    parallel_for(x.size[0] * blocks, grain_rows(16 * channels * POINTS),
                 [&](int64_t begin, int64_t end) {
                     taps<E> near;
                     E position[3][POINTS];
                     for (int64_t u = begin; u < end; ++u) {
                         const int64_t n = u / blocks, first = u % blocks * POINTS;
                         const int m = int(min64(POINTS, all.count - first));
                         cursor<1> at(all.inner, first);
                         all.read(position, n, at, m);
                         find_taps<E>(near, position, all.dims, x.size + 2, x.stride + 2, s);
                         for (int64_t c = 0; c < channels; ++c) {
                             const E *plane = from.channel(n, c);
                             E sum[POINTS];
                             begin_sums(sum, near.weight[0], all.dims, m);
                             for (int k = 0; k < near.count; ++k)
                                 for (int p = 0; p < m; ++p) {
                                     const int64_t i = near.at[k][p];
                                     const E value = plane[i == NOWHERE ? 0 : i];
                                     sum[p] += i == NOWHERE ? E(0) : near.weight[k][p] * value;
                                 }
                             write(out, (n * channels + c) * all.count + first, sum, m);
                         }
                     }
                 });
    return PT_OK;
}

int grid_sample_kernel(pt_call *call) {
    if (call->out[0].numel == 0) return PT_OK;
    return call->out[0].dtype == PT_FLOAT64 ? sample_as<double>(call) : sample_as<float>(call);
}

template <class E>
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
    parallel_for(x.size[0], grain_rows(16 * channels * (all.count + plane)),
                 [&](int64_t begin, int64_t end) {
                     scratch<E> kept(own ? channels * plane : 0);
                     if (!kept) {
                         starved = true;
                         return;
                     }
                     taps<E> near;
                     E position[3][POINTS], gradient[POINTS], result[3 * POINTS];
                     for (int64_t n = begin; n < end; ++n) {
                         E *sums =
                             own ? kept.data
                                 : reinterpret_cast<E *>(call->out[0].data) + n * channels * plane;
                         memset(sums, 0, size_t(channels * plane) * sizeof(E));
                         cursor<1> at(all.inner, 0);
                         for (int64_t first = 0; first < all.count; first += POINTS) {
                             const int m = int(min64(POINTS, all.count - first));
                             all.read(position, n, at, m);
                             find_taps<E>(near, position, all.dims, x.size + 2, x.stride + 2, s);
                             E slope[3][POINTS];
                             for (int d = 0; d < all.dims; ++d)
                                 begin_sums(slope[d], near.slope[d][0], all.dims, m);
                             for (int64_t c = 0; c < channels; ++c) {
                                 const E *values = from.channel(n, c);
                                 fetch(gradient, g, (n * channels + c) * all.count + first, 1, m);
                                 for (int k = 0; k < near.count; ++k)
                                     for (int p = 0; p < m; ++p) {
                                         const int64_t i = near.at[k][p];
                                         if (i == NOWHERE) continue;
                                         const E value = gradient[p] * values[i];
                                         sums[c * plane + i] += gradient[p] * near.weight[k][p];
                                         for (int d = 0; d < all.dims; ++d)
                                             slope[d][p] += value * near.slope[d][k][p];
                                     }
                             }
                             for (int p = 0; p < m; ++p)
                                 for (int d = 0; d < all.dims; ++d)
                                     result[p * all.dims + d] = slope[d][p];
                             write(call->out[1], (n * all.count + first) * all.dims, result,
                                   m * all.dims);
                         }
                         if (own) write(call->out[0], n * channels * plane, sums, channels * plane);
                     }
                 });
    return starved ? no_memory(call, channels * plane * int64_t(sizeof(E))) : int(PT_OK);
}

int grid_sample_backward_kernel(pt_call *call) {
    return call->out[0].dtype == PT_FLOAT64 ? sample_backward_as<double>(call)
                                            : sample_backward_as<float>(call);
}

} // namespace

extern "C" const pt_kernel_entry PT_CAT(pt_kernels_grid_sample_, PT_ISA)[] = {
    {"grid_sample", grid_sample_kernel},
    {"grid_sample_backward", grid_sample_backward_kernel},
    {nullptr, nullptr},
};
