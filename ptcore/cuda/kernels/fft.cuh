// The steps after cuFFT: the factor of a normalisation and the conjugate, in place. Complex
// numbers are pairs of T.
#include "fft_args.h"
#include "pack.cuh"

namespace {

typedef PT_T T;

template <int V> PT_DEVICE void scale(const FftScaleArgs &a) {
    T *const x = reinterpret_cast<T *>(a.data);
    const T even = (T)a.factor, odd = a.conjugate ? -even : even;
    const int64_t packs = a.n / V;
    PT_GRID_STRIDE(p, packs) {
        Elements<T, V> e = load_pack<V>(x + p * V);
        PT_UNROLL
        for (int v = 0; v < V; v++) e.v[v] *= v & 1 ? odd : even;
        store_pack<V>(x + p * V, e);
    }
    PT_UNROLL_BY(1)
    for (int64_t i = packs * V + thread_index(); i < a.n; i += thread_count()) x[i] *=
        i & 1 ? odd : even;
}

}  // namespace

PT_KERNEL(fft_scale, FftScaleArgs, a, 256) {
    if (reinterpret_cast<uint64_t>(a.data) % 16 == 0) scale<16 / sizeof(T)>(a);
    else scale<2>(a);
}
