// Sampling at given positions, and its gradients. A thread computes a point; all channels share the
// point's neighbours and weights. The gradient of x is added up in any order. What is NaN or
// infinite is treated as on the CPU (grid_sample.cpp): in two dims sums begin with 0 times a
// weight.
#include "atomic.cuh"
#include "divide.cuh"
#include "grid_sample_args.h"

namespace {

typedef PT_T T;
typedef opmath<T>::type E;

// A number and its derivative by the grid's coordinate.
struct Dual {
    E value, slope;
};
PT_DEVICE Dual clipped(Dual x, E last) {
    const E slope = x.value > 0 && x.value < last ? x.slope : E(0),
            low = x.value > 0 ? x.value : E(0);
    return {low < last ? low : last, slope};
}
// Mirrored at low / 2 and high / 2.
PT_DEVICE Dual reflected(Dual x, E low, E high) {
    const E least = low / 2, span = (high - low) / 2, from = x.value - least, away = pt::abs(from);
    const E turns = pt::floor(away / span), over = away - turns * span,
            odd = turns - 2 * pt::floor(turns / 2);
    const E slope = from < 0 ? -x.slope : x.slope;
    return {(odd != 0 ? span - over : over) + least, odd != 0 ? -slope : slope};
}
PT_DEVICE Dual padded(Dual x, E size, const GridSampleArgs &a) {
    if (a.padding == PT_GRID_REFLECTION) {
        if (a.corners && size == 1) return {E(0), E(0)};
        x = a.corners ? reflected(x, E(0), 2 * (size - 1)) : reflected(x, E(-1), 2 * size - 1);
    }
    return a.padding != PT_GRID_ZEROS ? clipped(x, size - 1) : x;
}
PT_DEVICE int64_t inside(E place, E size) {
    return place >= 0 && place <= size - 1 ? (int64_t)place : (int64_t)-1;
}

// The neighbours of a position along one dim: their indices (-1 if outside), weights and the
// weights' derivatives.
template <int N> struct Neighbours {
    int64_t at[N];
    E weight[N], slope[N];
};
template <int N> PT_DEVICE Neighbours<N> neighbours(const GridSampleArgs &a, E coordinate,
                                                    int64_t length) {
    Neighbours<N> r;
    const E size = E(length), c = coordinate + 1;
    Dual x =
        a.corners ? Dual{c / 2 * (size - 1), (size - 1) / 2} : Dual{(c * size - 1) / 2, size / 2};
    if (N != 4) x = padded(x, size, a);
    if constexpr (N == 1) {
        r.at[0] = inside(pt::round(x.value), size);
        r.weight[0] = 1, r.slope[0] = 0;
        return r;
    } else {
        const E first = pt::floor(x.value), t = x.value - first;
        if constexpr (N == 2) {
            for (int k = 0; k < 2; k++) {
                r.at[k] = inside(first + E(k), size);
                r.weight[k] = k ? t : 1 - t;
                r.slope[k] = k ? x.slope : -x.slope;
            }
        } else {
            const E A = E(-0.75);
            for (int k = 0; k < 4; k++) {
                // The distance of neighbour k, and the sign of its derivative by t.
                const E u = k == 0   ? t + 1
                            : k == 1 ? t
                            : k == 2 ? 1 - t
                                     : 2 - t,
                        way = k < 2 ? E(1) : E(-1);
                const bool near = k == 1 || k == 2;
                r.at[k] = inside(padded(Dual{first + E(k - 1), E(0)}, size, a).value, size);
                r.weight[k] = near ? ((A + 2) * u - (A + 3)) * u * u + 1
                                   : ((A * u - 5 * A) * u + 8 * A) * u - 4 * A;
                const E rise =
                    near ? (3 * (A + 2) * u - 2 * (A + 3)) * u : (3 * A * u - 10 * A) * u + 8 * A;
                r.slope[k] = way * rise * x.slope;
            }
        }
        return r;
    }
}

// All neighbours of point number p of image n; in two dims the depth is one plane.
template <int N, int DIMS> struct Point {
    Neighbours<DIMS == 3 ? N : 1> depth;
    Neighbours<N> height, width;

    PT_DEVICE_MEMBER Point(const GridSampleArgs &a, int64_t n, int64_t p) {
        const T *grid = reinterpret_cast<const T *>(a.grid) + n * a.grid_image;
        for (int d = 2; d >= 0; d--) grid += take_rest(p, a.grid_size[d]) * a.grid_stride[d];
        width = neighbours<N>(a, up(grid[0]), a.size[2]);
        height = neighbours<N>(a, up(grid[a.grid_number]), a.size[1]);
        if constexpr (DIMS == 3) depth = neighbours<N>(a, up(grid[2 * a.grid_number]), a.size[0]);
        else depth.at[0] = 0, depth.weight[0] = 1, depth.slope[0] = 0;
    }
    // calls f(depth, height, width, and their numbers i, j, k) for the neighbours that are inside
    template <class F> PT_DEVICE_MEMBER void each(F f) const {
        for (int i = 0; i < (DIMS == 3 ? N : 1); i++)
            for (int j = 0; j < N; j++)
                for (int k = 0; k < N; k++)
                    if ((depth.at[i] | height.at[j] | width.at[k]) >= 0)
                        f(depth.at[i], height.at[j], width.at[k], i, j, k);
    }
};

template <int N, int DIMS> PT_DEVICE void sample(const GridSampleArgs &a) {
    PT_GRID_STRIDE(u, a.n * a.blocks.by * a.points.by) {
        int64_t n = u;
        const int64_t p = take_rest(n, a.points), block = take_rest(n, a.blocks);
        const Point<N, DIMS> near(a, n, p);
        const int64_t end =
            (block + 1) * a.together < a.channels ? (block + 1) * a.together : a.channels;
        for (int64_t c = block * a.together; c < end; c++) {
            const T *x = reinterpret_cast<const T *>(a.x) + n * a.x_image + c * a.x_channel;
            E sum = DIMS == 2 ? 0 * (near.height.weight[0] * near.width.weight[0]) : E(0);
            near.each([&](int64_t d, int64_t h, int64_t w, int i, int j, int k) {
                sum += near.depth.weight[i] * near.height.weight[j] * near.width.weight[k] *
                       up(x[d * a.x_stride[0] + h * a.x_stride[1] + w * a.x_stride[2]]);
            });
            reinterpret_cast<T *>(a.out)[(n * a.channels + c) * a.points.by + p] = down<T>(sum);
        }
    }
}

template <int N, int DIMS> PT_DEVICE void gradients(const GridSampleArgs &a) {
    const int64_t plane = a.size[0] * a.size[1] * a.size[2];
    PT_GRID_STRIDE(u, a.n * a.points.by) {
        int64_t n = u;
        const int64_t p = take_rest(n, a.points);
        const Point<N, DIMS> near(a, n, p);
        E slope[3] = {0, 0, 0};
        if (DIMS == 2) {
            slope[0] = 0 * (near.height.weight[0] * near.width.slope[0]);
            slope[1] = 0 * (near.height.slope[0] * near.width.weight[0]);
        }
        for (int64_t c = 0; c < a.channels; c++) {
            const T *x = reinterpret_cast<const T *>(a.x) + n * a.x_image + c * a.x_channel;
            E *gx = reinterpret_cast<E *>(a.gx) + (n * a.channels + c) * plane;
            const E g =
                up(reinterpret_cast<const T *>(a.g)[(n * a.channels + c) * a.points.by + p]);
            near.each([&](int64_t d, int64_t h, int64_t w, int i, int j, int k) {
                const E wd = near.depth.weight[i], wh = near.height.weight[j],
                        ww = near.width.weight[k];
                const E value =
                    g * up(x[d * a.x_stride[0] + h * a.x_stride[1] + w * a.x_stride[2]]);
                atomic_add(gx + (d * a.size[1] + h) * a.size[2] + w, g * (wd * wh * ww));
                slope[0] += value * (wd * wh * near.width.slope[k]);
                slope[1] += value * (wd * near.height.slope[j] * ww);
                slope[2] += value * (near.depth.slope[i] * wh * ww);
            });
        }
        for (int k = 0; k < DIMS; k++)
            reinterpret_cast<T *>(a.out)[u * DIMS + k] = down<T>(slope[k]);
    }
}

}  // namespace

PT_KERNEL(grid_sample_2d, GridSampleArgs, a, 256) {
    if (a.mode == PT_GRID_NEAREST) sample<1, 2>(a);
    else if (a.mode == PT_GRID_BILINEAR) sample<2, 2>(a);
    else sample<4, 2>(a);
}
PT_KERNEL(grid_sample_3d, GridSampleArgs, a, 256) {
    if (a.mode == PT_GRID_NEAREST) sample<1, 3>(a);
    else sample<2, 3>(a);
}
PT_KERNEL(grid_sample_2d_backward, GridSampleArgs, a, 256) {
    if (a.mode == PT_GRID_NEAREST) gradients<1, 2>(a);
    else if (a.mode == PT_GRID_BILINEAR) gradients<2, 2>(a);
    else gradients<4, 2>(a);
}
PT_KERNEL(grid_sample_3d_backward, GridSampleArgs, a, 256) {
    if (a.mode == PT_GRID_NEAREST) gradients<1, 3>(a);
    else gradients<2, 3>(a);
}
