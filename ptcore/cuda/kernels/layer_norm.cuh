// layer_norm and rms_norm of PT_T with weight and bias of PT_U. A row is kept in shared memory or
// registers, so that the variance is computed around the mean; longer rows are read three times
// (streamed).
#include "normalize_args.h"
#include "rows.cuh"

namespace {

typedef typename opmath<PT_T>::type C;

struct Affine {
    const PT_U *weight, *bias;
    C mean, rstd;
    PT_DEVICE_MEMBER C operator()(C x, int64_t i) const {
        C y = (x - mean) * rstd;
        if (weight) y = y * static_cast<C>(up(weight[i]));
        return bias ? y + static_cast<C>(up(bias[i])) : y;
    }
};

// What distances from the mean are multiplied by before they are squared: 1, or what brings the
// squares into the type's range, where their sum `m2` is not in it, as of numbers near 1e20 and
// 1e-25.
PT_DEVICE C factor_of(const LayerNormArgs &a, C m2) {
    constexpr C SMALL = sizeof(C) == 8 ? 1e-160 : 1e-22, LEAST = sizeof(C) == 8 ? 1e-280 : 1e-28;
    if (!pt::isfinite(m2)) return SMALL;
    return m2 > LEAST || C(a.eps) > LEAST ? C(1) : 1 / SMALL;
}
struct Either {
    PT_DEVICE_MEMBER int operator()(int x, int y) const { return x | y; }
};
// Whether a row of this thread's warp has such a factor: all of its threads go the same way.
PT_DEVICE bool rescales(const Row &row, C factor) {
    const int rescaled = factor != C(1);
    return row.lanes > 32 ? rescaled : warp_reduce(rescaled, Either());
}

// m2: the sum of the squares of distances times `factor`.
PT_DEVICE Affine affine(const LayerNormArgs &a, C mean, C m2, C factor) {
    return Affine{static_cast<const PT_U *>(a.weight), static_cast<const PT_U *>(a.bias), mean,
                  factor / pt::sqrt(m2 / C(a.n) + C(a.eps) * factor * factor)};
}
PT_DEVICE void put_moments(const LayerNormArgs &a, int64_t r, const Affine &f) {
    if (a.mean) static_cast<C *>(a.mean)[r] = f.mean;
    static_cast<C *>(a.rstd)[r] = f.rstd;
}

template <class X> PT_DEVICE void apply_to_kept(const LayerNormArgs &a, const Row &row, X &x,
                                                const Affine &f, int64_t n) {
    constexpr int V = vector_of<PT_T>::size;
    for (int k = 0; k < x.count; k++) {
        const int64_t i = place(row, k, a.packed ? V : 1);
        if (i < n) x[k] = f(x[k], i);
    }
}
template <int V, int P>
PT_DEVICE void apply_to_kept(const LayerNormArgs &, const Row &row, Registers<C, V, P> &x,
                             const Affine &f, int64_t n) {
    PT_UNROLL for (int u = 0; u < P; u++) {
        const int64_t i = ((int64_t)u * row.lanes + row.lane) * V;
        if (i >= n) continue;
        Elements<PT_U, V> w, b;
        if (f.weight) w = load_pack<V>(f.weight + i);
        if (f.bias) b = load_pack<V>(f.bias + i);
        PT_UNROLL for (int v = 0; v < V; v++) {
            C y = (x[u * V + v] - f.mean) * f.rstd;
            if (f.weight) y = y * static_cast<C>(up(w.v[v]));
            x[u * V + v] = f.bias ? y + static_cast<C>(up(b.v[v])) : y;
        }
    }
}

// Whether kept element k is inside the row. A pack is inside as a whole or not at all.
template <class X> PT_DEVICE bool within(const LayerNormArgs &a, const Row &row, const X &, int k,
                                         int64_t n) {
    return place(row, k, a.packed ? vector_of<PT_T>::size : 1) < n;
}
template <int V, int P>
PT_DEVICE bool within(const LayerNormArgs &, const Row &row, const Registers<C, V, P> &, int k,
                      int64_t n) {
    return (int64_t)(k / V * row.lanes + row.lane) * V < n;
}

template <class X> PT_DEVICE void each_row(const LayerNormArgs &a, const Row &row, X &x) {
    for (int64_t base = (int64_t)blockIdx.x * row.slots; base < a.rows;
         base += (int64_t)gridDim.x * row.slots) {
        const int64_t r = base + row.slot, n = r < a.rows ? a.n : 0;
        keep(x, row, static_cast<const PT_T *>(a.in) + r * a.n, 1, n, a.packed, C(0));
        C mean = 0, m2 = 0;
        if (a.mean) {
            C sum = 0;
            PT_UNROLL_BY(X::UNROLL) for (int k = 0; k < x.count; k++) sum += x[k];
            mean = row.sum(sum) / C(a.n);
        }
        PT_UNROLL_BY(X::UNROLL) for (int k = 0; k < x.count; k++)
            if (within(a, row, x, k, n)) m2 += (x[k] - mean) * (x[k] - mean);
        m2 = row.sum(m2);
        const C factor = factor_of(a, m2);
        if (rescales(row, factor)) {
            m2 = 0;
            PT_UNROLL_BY(X::UNROLL) for (int k = 0; k < x.count; k++) {
                const C far = (x[k] - mean) * factor;
                if (within(a, row, x, k, n)) m2 += far * far;
            }
            m2 = row.sum(m2);
        }
        const Affine f = affine(a, mean, m2, factor);
        apply_to_kept(a, row, x, f, n);
        put_row(static_cast<PT_T *>(a.out) + r * a.n, row, x, n, a.packed);
        if (n && row.lane == 0) put_moments(a, r, f);
    }
}

PT_DEVICE void kept_rows(const LayerNormArgs &a, C *memory) {
    const Row row(a.log2);
    Kept<C> x = kept(memory, row, a.count, 0, 1);
    each_row(a, row, x);
}

template <int P> PT_DEVICE void rows_in_registers(const LayerNormArgs &a) {
    Registers<C, vector_of<PT_T>::size, P> x;
    each_row(a, Row(a.log2), x);
}

}  // namespace

PT_KERNEL_SYNC(layer_norm_rows, LayerNormArgs, a, PT_NORM_THREADS) {
    PT_DYNAMIC_SHARED(C, memory);
    kept_rows(a, memory);
}
PT_KERNEL_SYNC_BLOCKS(layer_norm_one, LayerNormArgs, a, PT_NORM_THREADS, 5) {
    rows_in_registers<1>(a);
}
PT_KERNEL_SYNC_BLOCKS(layer_norm_two, LayerNormArgs, a, PT_NORM_THREADS, 3) {
    rows_in_registers<2>(a);
}
PT_KERNEL_SYNC_BLOCKS(layer_norm_four, LayerNormArgs, a, PT_NORM_THREADS, 2) {
    rows_in_registers<4>(a);
}

PT_KERNEL_SYNC(layer_norm_wide, LayerNormArgs, a, PT_NORM_STREAM_THREADS) {
    PT_DYNAMIC_SHARED(C, memory);
    kept_rows(a, memory);
}

PT_KERNEL_SYNC(layer_norm_streamed, LayerNormArgs, a, PT_NORM_STREAM_THREADS) {
    for (int64_t r = blockIdx.x; r < a.rows; r += gridDim.x) {
        const PT_T *x = static_cast<const PT_T *>(a.in) + r * a.n;
        C mean = 0, m2 = 0;
        if (a.mean) {
            double sum = 0;             // rows are so long that a sum of floats may be infinite
            for (int64_t i = threadIdx.x; i < a.n; i += PT_NORM_STREAM_THREADS) sum += up(x[i]);
            mean = C(block_reduce(sum, Add(), 0.0) / (double)a.n);
        }
        for (int64_t i = threadIdx.x; i < a.n; i += PT_NORM_STREAM_THREADS) {
            const C d = up(x[i]) - mean;
            m2 += d * d;
        }
        m2 = block_reduce(m2, Add(), C(0));
        const C factor = factor_of(a, m2);
        if (factor != C(1)) {
            m2 = 0;
            for (int64_t i = threadIdx.x; i < a.n; i += PT_NORM_STREAM_THREADS) {
                const C far = (up(x[i]) - mean) * factor;
                m2 += far * far;
            }
            m2 = block_reduce(m2, Add(), C(0));
        }
        const Affine f = affine(a, mean, m2, factor);
        PT_T *out = static_cast<PT_T *>(a.out) + r * a.n;
        for (int64_t i = threadIdx.x; i < a.n; i += PT_NORM_STREAM_THREADS)
            out[i] = down<PT_T>(f(up(x[i]), i));
        if (threadIdx.x == 0) put_moments(a, r, f);
    }
}
