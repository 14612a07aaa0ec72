// The gradients of layer_norm: g and input of PT_T, weight and its gradients of PT_U. With xhat =
// (x - mean) rstd and h = g weight the gradient of a row is rstd (h - mean(h) - xhat mean(h xhat)),
// without mean(h) for rms_norm.
// The gradients of weight and bias are the sums over all rows of g xhat and of g; they are computed
// in parts of rows, which are added in order.
#include "normalize_args.h"
#include "rows.cuh"

namespace {

typedef typename opmath<PT_T>::type C;

struct Two { C h, hx; };
struct AddTwo {
    PT_DEVICE_MEMBER Two operator()(Two x, Two y) const { return Two{x.h + y.h, x.hx + y.hx}; }
};

PT_DEVICE C weight_at(const LayerNormArgs &a, int64_t i) {
    return a.weight ? static_cast<C>(up(static_cast<const PT_U *>(a.weight)[i])) : C(1);
}
PT_DEVICE C mean_of(const LayerNormArgs &a, int64_t r) {
    return a.mean ? static_cast<const C *>(a.mean)[r] : C(0);
}
PT_DEVICE C rstd_of(const LayerNormArgs &a, int64_t r) { return static_cast<const C *>(a.rstd)[r]; }

PT_DEVICE void kept_rows(const LayerNormArgs &a, C *memory) {
    constexpr int V = vector_of<PT_T>::size;
    const Row row(a.log2);
    for (int64_t base = (int64_t)blockIdx.x * row.slots; base < a.rows;
         base += (int64_t)gridDim.x * row.slots) {
        const int64_t r = base + row.slot, n = r < a.rows ? a.n : 0;
        const Kept<C> h = kept(memory, row, a.count, 0, 2), x = kept(memory, row, a.count, 1, 2);
        keep(h, row, static_cast<const PT_T *>(a.g) + r * a.n, 1, n, a.packed, C(0));
        keep(x, row, static_cast<const PT_T *>(a.in) + r * a.n, 1, n, a.packed, C(0));
        const C mean = n ? mean_of(a, r) : C(0), rstd = n ? rstd_of(a, r) : C(0);
        Two s{C(0), C(0)};
        for (int k = 0; k < a.count; k++) {
            const int64_t i = place(row, k, a.packed ? V : 1);
            if (i >= n) continue;
            h[k] *= weight_at(a, i);
            x[k] = (x[k] - mean) * rstd;
            s.h += h[k];
            s.hx += h[k] * x[k];
        }
        s = row.all(s, AddTwo(), Two{C(0), C(0)});
        const C h_mean = a.mean ? s.h / C(a.n) : C(0), hx_mean = s.hx / C(a.n);
        for (int k = 0; k < a.count; k++) h[k] = rstd * (h[k] - h_mean - x[k] * hx_mean);
        put_row(static_cast<PT_T *>(a.out) + r * a.n, row, h, n, a.packed);
    }
}

}  // namespace

PT_KERNEL_SYNC(layer_norm_backward_rows, LayerNormArgs, a, PT_NORM_THREADS) {
    PT_DYNAMIC_SHARED(C, memory);
    kept_rows(a, memory);
}

PT_KERNEL_SYNC(layer_norm_backward_wide, LayerNormArgs, a, PT_NORM_STREAM_THREADS) {
    PT_DYNAMIC_SHARED(C, memory);
    kept_rows(a, memory);
}

PT_KERNEL_SYNC(layer_norm_backward_streamed, LayerNormArgs, a, PT_NORM_STREAM_THREADS) {
    for (int64_t r = blockIdx.x; r < a.rows; r += gridDim.x) {
        const PT_T *g = static_cast<const PT_T *>(a.g) + r * a.n,
                   *x = static_cast<const PT_T *>(a.in) + r * a.n;
        const C mean = mean_of(a, r), rstd = rstd_of(a, r);
        Two s{C(0), C(0)};
        for (int64_t i = threadIdx.x; i < a.n; i += PT_NORM_STREAM_THREADS) {
            const C h = up(g[i]) * weight_at(a, i);
            s.h += h;
            s.hx += h * ((up(x[i]) - mean) * rstd);
        }
        s = block_reduce(s, AddTwo(), Two{C(0), C(0)});
        const C h_mean = a.mean ? s.h / C(a.n) : C(0), hx_mean = s.hx / C(a.n);
        PT_T *out = static_cast<PT_T *>(a.out) + r * a.n;
        for (int64_t i = threadIdx.x; i < a.n; i += PT_NORM_STREAM_THREADS)
            out[i] = down<PT_T>(rstd * (up(g[i]) * weight_at(a, i) - h_mean -
                                        (up(x[i]) - mean) * rstd * hx_mean));
    }
}

// One part of the rows (blockIdx.y), for 32 neighbouring columns.
PT_KERNEL_SYNC(layer_norm_backward_sums, LayerNormArgs, a, PT_NORM_THREADS) {
    constexpr int HEIGHT = PT_NORM_THREADS / PT_NORM_COLUMNS;
    __shared__ Two partial[PT_NORM_THREADS];
    const int x = threadIdx.x % PT_NORM_COLUMNS, y = threadIdx.x / PT_NORM_COLUMNS;
    const int64_t column = (int64_t)blockIdx.x * PT_NORM_COLUMNS + x, begin = blockIdx.y * a.chunk;
    const int64_t end = begin + a.chunk < a.rows ? begin + a.chunk : a.rows;
    Two s{C(0), C(0)};
    if (column < a.n)
        for (int64_t r = begin + y; r < end; r += HEIGHT) {
            const C g = up(static_cast<const PT_T *>(a.g)[r * a.n + column]);
            s.h += g;
            s.hx += g * ((up(static_cast<const PT_T *>(a.in)[r * a.n + column]) - mean_of(a, r)) *
                         rstd_of(a, r));
        }
    partial[threadIdx.x] = s;
    __syncthreads();
    if (y || column >= a.n) return;
    for (int i = 1; i < HEIGHT; i++) s = AddTwo()(s, partial[i * PT_NORM_COLUMNS + x]);
    C *to = static_cast<C *>(a.partial) + blockIdx.y * 2 * a.n;
    to[column] = s.hx;
    to[a.n + column] = s.h;
}

PT_KERNEL(layer_norm_backward_finish, LayerNormArgs, a, PT_NORM_THREADS) {
    PT_GRID_STRIDE(i, a.n) {
        C gw = 0, gb = 0;
        for (int64_t p = 0; p < a.parts; p++) {
            gw += static_cast<const C *>(a.partial)[p * 2 * a.n + i];
            gb += static_cast<const C *>(a.partial)[(p * 2 + 1) * a.n + i];
        }
        if (a.weight_gradient) static_cast<PT_U *>(a.weight_gradient)[i] = down<PT_U>(gw);
        if (a.bias_gradient) static_cast<PT_U *>(a.bias_gradient)[i] = down<PT_U>(gb);
    }
}
