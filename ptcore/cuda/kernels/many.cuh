// Kernels over many tensors at once: steps of optimisers, the norm of all, a factor for all, zeros. A block takes one
// chunk after another and looks up the tensor that it lies in.
#include "many_args.h"
#include "pack.cuh"
#include "ptcore/steps.h"

namespace {

typedef PT_T T;
typedef typename opmath<T>::type C;

// The record of the tensor that a chunk lies in: the last one whose first chunk is not behind it.
PT_DEVICE const uint64_t *record_of(const ManyArgs &a, int64_t chunk) {
    int low = 0, high = a.count;
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        if ((int64_t)a.records[middle * a.words] <= chunk) low = middle;
        else high = middle;
    }
    return a.records + low * a.words;
}

// For all elements of a chunk f(x): x[k] is that of operand k. The first WRITTEN operands are stored.
template <int OPERANDS, int WRITTEN, class F> PT_DEVICE void over_chunk(const uint64_t *record, int64_t chunk, F f) {
    constexpr int V = vector_of<T>::size;
    const int64_t begin = (chunk - (int64_t)record[0]) * PT_MANY_CHUNK, left = (int64_t)record[1] - begin;
    const int n = left < PT_MANY_CHUNK ? (int)left : PT_MANY_CHUNK;
    T *at[OPERANDS];
    uint64_t addresses = 0;
    for (int k = 0; k < OPERANDS; k++) {
        at[k] = reinterpret_cast<T *>(record[PT_MANY_HEAD + k]) + begin;
        addresses |= record[PT_MANY_HEAD + k];
    }
    int done = 0;
    if (addresses % 16 == 0) {
        done = n / V * V;
        for (int i = threadIdx.x * V; i < done; i += PT_MANY_THREADS * V) {
            Elements<T, V> e[OPERANDS];
            for (int k = 0; k < OPERANDS; k++) e[k] = load_pack<V>(at[k] + i);
            for (int v = 0; v < V; v++) {
                C x[OPERANDS];
                for (int k = 0; k < OPERANDS; k++) x[k] = up(e[k].v[v]);
                f(x);
                for (int k = 0; k < WRITTEN; k++) e[k].v[v] = down<T>(x[k]);
            }
            for (int k = 0; k < WRITTEN; k++) store_pack<V>(at[k] + i, e[k]);
        }
    }
    for (int i = done + threadIdx.x; i < n; i += PT_MANY_THREADS) {
        C x[OPERANDS];
        for (int k = 0; k < OPERANDS; k++) x[k] = up(at[k][i]);
        f(x);
        for (int k = 0; k < WRITTEN; k++) at[k][i] = down<T>(x[k]);
    }
}

// What a kernel does for a chunk: make(record) is its f.
template <int OPERANDS, int WRITTEN, class M> PT_DEVICE void over_chunks(const ManyArgs &a, M make) {
    for (int64_t chunk = blockIdx.x; chunk < a.chunks; chunk += gridDim.x) {
        const uint64_t *record = record_of(a, chunk);
        over_chunk<OPERANDS, WRITTEN>(record, chunk, make(record));
    }
}

template <int OPERANDS> struct Sgd;
template <> struct Sgd<2> {
    const pt::sgd_step<C> &s;
    PT_DEVICE_MEMBER void operator()(C *x) const { s.apply(x[0], x[1]); }
};
template <> struct Sgd<3> {
    const pt::sgd_step<C> &s;
    PT_DEVICE_MEMBER void operator()(C *x) const { s.apply(x[0], x[1], x[2]); }
};
template <int OPERANDS> struct MakeSgd {
    const ManyArgs &a;
    PT_DEVICE_MEMBER Sgd<OPERANDS> operator()(const uint64_t *) const {
        return Sgd<OPERANDS>{*reinterpret_cast<const pt::sgd_step<C> *>(a.formula)};
    }
};

template <int OPERANDS> struct Adam;
template <> struct Adam<4> {
    pt::adam_step<C> s;
    PT_DEVICE_MEMBER void operator()(C *x) const { s.apply(x[0], x[1], x[2], x[3]); }
};
template <> struct Adam<5> {
    pt::adam_step<C> s;
    PT_DEVICE_MEMBER void operator()(C *x) const { s.apply(x[0], x[1], x[2], x[3], x[4]); }
};
template <int OPERANDS> struct MakeAdam {
    const ManyArgs &a;
    PT_DEVICE_MEMBER Adam<OPERANDS> operator()(const uint64_t *record) const {
        Adam<OPERANDS> f = {*reinterpret_cast<const pt::adam_step<C> *>(a.formula)};
        const C *own = reinterpret_cast<const C *>(record + PT_MANY_HEAD + OPERANDS);
        f.s.rate = own[0], f.s.root = own[1];
        return f;
    }
};

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

PT_KERNEL(many_sgd, ManyArgs, a, PT_MANY_THREADS) { over_chunks<2, 1>(a, MakeSgd<2>{a}); }
PT_KERNEL(many_sgd_momentum, ManyArgs, a, PT_MANY_THREADS) { over_chunks<3, 2>(a, MakeSgd<3>{a}); }
PT_KERNEL(many_adam, ManyArgs, a, PT_MANY_THREADS) { over_chunks<4, 3>(a, MakeAdam<4>{a}); }
PT_KERNEL(many_amsgrad, ManyArgs, a, PT_MANY_THREADS) { over_chunks<5, 4>(a, MakeAdam<5>{a}); }
PT_KERNEL(many_scale, ManyArgs, a, PT_MANY_THREADS) {
    over_chunks<1, 1>(a, Scale{up(*static_cast<const T *>(a.number))});
}
PT_KERNEL(many_zero, ManyArgs, a, PT_MANY_THREADS) { over_chunks<1, 1>(a, Zero()); }

// Sums do not depend on the grid: one for each chunk.
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
