/* Sampling at given positions.
 *
 *    grid_sample(input, grid; mode, padding_mode, align_corners) -> out
 *    grid_sample_backward(g, input, grid; the same) -> gradients of input and grid
 *
 * input is (N, C, [D,] H, W), grid (N, ..., 2 or 3) with positions in [-1, 1], the last dim's first. A point
 * takes one, two or four neighbours along each dim, with weights that depend on the position alone. Half
 * types are computed in float32. The backward, whose operands are contiguous, works on one sample at a time, in
 * the order of the points.
 */
#include "spatial.hpp"

#include <atomic>

namespace {

enum { BILINEAR, NEAREST, BICUBIC };
enum { ZEROS, BORDER, REFLECTION };

struct settings {
    int mode, padding;
    bool corners;
};

/* A number and its derivative by the coordinate of the grid. */
template <class E>
struct dual {
    E value, slope;
};

template <class E>
inline dual<E> clipped(dual<E> x, int64_t size) {
    if (x.value <= 0) return {E(0), E(0)};
    if (x.value >= E(size - 1)) return {E(size - 1), E(0)};
    return x;
}
/* mirrored at low / 2 and high / 2 */
template <class E>
inline dual<E> reflected(dual<E> x, int64_t low, int64_t high) {
    if (low == high) return {E(0), E(0)};
    const E least = E(low) / 2, span = E(high - low) / 2;
    E from = x.value - least, slope = x.slope;
    if (from < 0) {
        from = -from;
        slope = -slope;
    }
    const E over = E(fmod(double(from), double(span)));
    const bool even = fmod(floor(double(from / span)), 2.0) == 0;
    return even ? dual<E>{over + least, slope} : dual<E>{span - over + least, -slope};
}
template <class E>
inline dual<E> padded(dual<E> x, int64_t size, const settings &s) {
    if (s.padding == REFLECTION) x = s.corners ? reflected(x, 0, 2 * (size - 1)) : reflected(x, -1, 2 * size - 1);
    if (s.padding != ZEROS) x = clipped(x, size);
    return x;
}

/* The neighbours of a position along one dim; those outside are left out. */
template <class E>
struct neighbours {
    int count = 0;
    int64_t at[4];
    E weight[4], slope[4];

    void add(E place, E w, E d, int64_t size) {
        if (!(place >= 0 && place <= E(size - 1))) return;
        at[count] = int64_t(place);
        weight[count] = w;
        slope[count++] = d;
    }
};

template <class E>
inline neighbours<E> find(E coordinate, int64_t size, const settings &s) {
    neighbours<E> found;
    dual<E> x = s.corners ? dual<E>{(coordinate + 1) / 2 * E(size - 1), E(size - 1) / 2}
                          : dual<E>{((coordinate + 1) * E(size) - 1) / 2, E(size) / 2};
    if (s.mode != BICUBIC) x = padded(x, size, s);
    if (!(fabs(double(x.value)) < 1e9)) x = {E(-100), E(0)};        /* infinite or no number: nothing is there */
    if (s.mode == NEAREST) {
        found.add(E(nearbyint(double(x.value))), E(1), E(0), size);
        return found;
    }
    const E first = floor(x.value), t = x.value - first, slope = x.slope;
    if (s.mode == BILINEAR) {
        found.add(first, 1 - t, -slope, size);
        found.add(first + 1, t, slope, size);
        return found;
    }
    const E A = E(-0.75), u = 1 - t;
    const E w[4] = {((A * (t + 1) - 5 * A) * (t + 1) + 8 * A) * (t + 1) - 4 * A, ((A + 2) * t - (A + 3)) * t * t + 1,
                    ((A + 2) * u - (A + 3)) * u * u + 1, ((A * (u + 1) - 5 * A) * (u + 1) + 8 * A) * (u + 1) - 4 * A};
    const E d[4] = {(3 * A * (t + 1) - 10 * A) * (t + 1) + 8 * A, (3 * (A + 2) * t - 2 * (A + 3)) * t,
                    -(3 * (A + 2) * u - 2 * (A + 3)) * u, -((3 * A * (u + 1) - 10 * A) * (u + 1) + 8 * A)};
    for (int k = 0; k < 4; ++k) found.add(padded(dual<E>{first + E(k - 1), E(0)}, size, s).value, w[k], d[k] * slope, size);
    return found;
}

/* All neighbours of a point: offsets in a channel, weights, derivatives by each coordinate of the grid. */
template <class E>
struct taps {
    int count;
    int64_t at[16];
    E weight[16], slope[3][16];
};
template <class E>
PT_NOINLINE void find_taps(taps<E> &t, const E *position, int dims, const int64_t *size, const int64_t *stride, const settings &s) {
    neighbours<E> near[3];          /* depth, height, width */
    for (int d = 0; d < 3; ++d) {
        if (d < 3 - dims) near[d].add(E(0), E(1), E(0), 1);
        else near[d] = find(position[2 - d], size[d], s);
    }
    t.count = 0;
    for (int a = 0; a < near[0].count; ++a)
        for (int b = 0; b < near[1].count; ++b)
            for (int c = 0; c < near[2].count; ++c) {
                const E x = near[0].weight[a], y = near[1].weight[b], z = near[2].weight[c];
                const int k = t.count++;
                t.at[k] = near[0].at[a] * stride[0] + near[1].at[b] * stride[1] + near[2].at[c] * stride[2];
                t.weight[k] = x * y * z;
                t.slope[0][k] = x * y * near[2].slope[c];
                t.slope[1][k] = x * near[1].slope[b] * z;
                t.slope[2][k] = near[0].slope[a] * y * z;
            }
}

/* The points of one sample's grid, in logical order. */
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
    template <class E, class T>
    void position(E *to, int64_t sample, int64_t offset) const {
        const T *from = reinterpret_cast<const T *>(grid.data) + sample * grid.strides[0] + offset;
        for (int k = 0; k < dims; ++k) to[k] = convert<E>(from[k * grid.strides[grid.ndim - 1]]);
    }
};

inline int check(pt_call *call, const pt_view &x, const pt_view &grid) {
    if ((x.ndim != 4 && x.ndim != 5) || grid.ndim != x.ndim || grid.sizes[grid.ndim - 1] != x.ndim - 2 || grid.sizes[0] != x.sizes[0])
        return fail(call, PT_RUNTIME_ERROR, "shapes of input and grid do not agree");
    if (grid.dtype != x.dtype) return fail(call, PT_RUNTIME_ERROR, "expected a grid of dtype %s", DTYPE_NAME[x.dtype]);
    if (x.ndim == 5 && call->params[0].i == BICUBIC) return fail(call, PT_RUNTIME_ERROR, "mode 'bicubic' needs an input of 4 dimensions");
    return PT_OK;
}
inline settings read(const pt_call *call) { return {int(call->params[0].i), int(call->params[1].i), call->params[2].i != 0}; }

int grid_sample_kernel(pt_call *call) {
    const pt_view &view = call->in[0], &grid = call->in[1];
    if (int status = check(call, view, grid)) return status;
    if (call->out[0].numel == 0) return PT_OK;
    return visit<FLOATS>(call, view.dtype, [&](auto tag) {
        using T = PT_TYPE(tag);
        using E = compute<T>;
        const batch_view x(view);
        const points all(grid);
        const settings s = read(call);
        const int64_t channels = x.size[1];
        T *out = output<T>(call);
        parallel_for(x.size[0] * all.count, grain_rows(16 * channels), [&](int64_t begin, int64_t end) {
            cursor<1> at(all.inner, begin % all.count);
            for (int64_t u = begin; u < end; ++u, at.next()) {
                const int64_t n = u / all.count, p = u % all.count;
                E position[3];
                all.position<E, T>(position, n, at.offset[0]);
                taps<E> near;
                find_taps<E>(near, position, all.dims, x.size + 2, x.stride + 2, s);
                const T *from = reinterpret_cast<const T *>(x.data) + n * x.stride[0];
                T *to = out + n * channels * all.count + p;
                for (int64_t c = 0; c < channels; ++c) {
                    E sum = 0;
                    for (int k = 0; k < near.count; ++k) sum += near.weight[k] * convert<E>(from[c * x.stride[1] + near.at[k]]);
                    to[c * all.count] = convert<T>(sum);
                }
            }
        });
        return int(PT_OK);
    });
}

int grid_sample_backward_kernel(pt_call *call) {
    const pt_view &view = call->in[1], &grid = call->in[2];
    if (int status = check(call, view, grid)) return status;
    return visit<FLOATS>(call, view.dtype, [&](auto tag) {
        using T = PT_TYPE(tag);
        using E = compute<T>;
        const batch_view x(view), g(call->in[0]);
        const points all(grid);
        const settings s = read(call);
        const int64_t channels = x.size[1], plane = x.size[2] * x.size[3] * x.size[4];
        if (call->in[0].ndim != view.ndim || g.size[0] != x.size[0] || g.size[1] != channels || g.size[2] * g.size[3] * g.size[4] != all.count)
            return fail(call, PT_RUNTIME_ERROR, "shapes of gradient and grid do not agree");
        constexpr bool own = !is_same<T, E>;
        space<1> inner;                 /* of the gradient */
        for (int d = 2; d < 5; ++d) inner.push(g.size[d], {g.stride[d]});
        std::atomic<bool> starved{false};
        parallel_for(x.size[0], grain_rows(16 * channels * (all.count + plane)), [&](int64_t begin, int64_t end) {
            scratch<E> kept(own ? channels * plane : 0);
            if (!kept) {
                starved = true;
                return;
            }
            for (int64_t n = begin; n < end; ++n) {
                T *result = output<T>(call, 0) + n * channels * plane, *to = output<T>(call, 1) + n * all.count * all.dims;
                E *sums = own ? kept.data : reinterpret_cast<E *>(result);
                for (int64_t i = 0; i < channels * plane; ++i) sums[i] = 0;
                const T *from = reinterpret_cast<const T *>(x.data) + n * x.stride[0];
                const T *grad = reinterpret_cast<const T *>(g.data) + n * g.stride[0];
                cursor<1> at(all.inner, 0), from_g(inner, 0);
                for (int64_t p = 0; p < all.count; ++p, at.next(), from_g.next()) {
                    E position[3], slope[3] = {};
                    all.position<E, T>(position, n, at.offset[0]);
                    taps<E> near;
                    find_taps<E>(near, position, all.dims, x.size + 2, x.stride + 2, s);
                    for (int64_t c = 0; c < channels; ++c) {
                        const E gradient = convert<E>(grad[c * g.stride[1] + from_g.offset[0]]);
                        for (int k = 0; k < near.count; ++k) {
                            const E value = gradient * convert<E>(from[c * x.stride[1] + near.at[k]]);
                            sums[c * plane + near.at[k]] += gradient * near.weight[k];
                            for (int d = 0; d < all.dims; ++d) slope[d] += value * near.slope[d][k];
                        }
                    }
                    for (int d = 0; d < all.dims; ++d) to[p * all.dims + d] = convert<T>(slope[d]);
                }
                if (own) store(result, sums, channels * plane);
            }
        });
        return starved ? no_memory(call, channels * plane * int64_t(sizeof(E))) : int(PT_OK);
    });
}

} // namespace

extern "C" const pt_kernel_entry PT_CAT(pt_kernels_grid_sample_, PT_ISA)[] = {
    {"grid_sample", grid_sample_kernel},
    {"grid_sample_backward", grid_sample_backward_kernel},
    {nullptr, nullptr},
};
