// Kernels over many tensors at once: the norm of all, a factor for all, zeros.
#include "many_chunks.cuh"

namespace {

struct Scale {
    C factor;
    PT_DEVICE_MEMBER void operator()(C *x) const { x[0] *= factor; }
    PT_DEVICE_MEMBER Scale operator()(const uint64_t *) const { return *this; }
};
struct Zero {
    PT_DEVICE_MEMBER void operator()(C *x) const { x[0] = C(0); }
    PT_DEVICE_MEMBER Zero operator()(const uint64_t *) const { return *this; }
};
struct Squares {
    double *sum;
    PT_DEVICE_MEMBER void operator()(C *x) const { *sum += (double)x[0] * (double)x[0]; }
};

}  // namespace

PT_KERNEL(many_scale, ManyArgs, a, PT_MANY_THREADS) {
    over_chunks<1, 1>(a, Scale{up(*static_cast<const T *>(a.number))});
}
PT_KERNEL(many_zero, ManyArgs, a, PT_MANY_THREADS) { over_chunks<1, 1>(a, Zero()); }

// There is one sum for each chunk, so that sums do not depend on the grid.
PT_KERNEL_SYNC(many_squares, ManyArgs, a, PT_MANY_THREADS) {
    for (int64_t chunk = blockIdx.x; chunk < a.chunks; chunk += gridDim.x) {
        double sum = 0;
        over_chunk<1, 0>(record_of(a, chunk), chunk, Squares{&sum});
        sum = block_reduce(sum, plus(), 0.0);
        if (threadIdx.x == 0) a.partial[chunk] = sum;
    }
}
PT_KERNEL_SYNC(many_norm, ManyNormArgs, a, 1024) {
    double sum = 0;
    for (int64_t i = threadIdx.x; i < a.n; i += 1024) sum += a.partial[i];
    sum = block_reduce(sum, plus(), 0.0);
    if (threadIdx.x == 0) *static_cast<T *>(a.out) = down<T>((C)pt::sqrt(sum));
}
