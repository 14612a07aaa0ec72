// For kernels over many tensors at once: a block takes one chunk after another and looks up the
// tensor of each chunk.
#pragma once
#include "many_args.h"
#include "pack.cuh"

namespace {

typedef PT_T T;
typedef typename opmath<T>::type C;

// The record of a chunk's tensor: the last record whose first chunk is not after the chunk.
PT_DEVICE const uint64_t *record_of(const ManyArgs &a, int64_t chunk) {
    int low = 0, high = a.count;
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        if ((int64_t)a.records[middle * a.words] <= chunk) low = middle;
        else high = middle;
    }
    return a.records + low * a.words;
}

// Calls f(x) for all elements of a chunk; x[k] is the element of operand k. The first WRITTEN
// operands are stored.
template <int OPERANDS, int WRITTEN, class F> PT_DEVICE void over_chunk(const uint64_t *record,
                                                                        int64_t chunk, F f) {
    constexpr int V = vector_of<T>::size;
    const int64_t begin = (chunk - (int64_t)record[0]) * PT_MANY_CHUNK,
                  left = (int64_t)record[1] - begin;
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

// Calls over_chunk for the grid's chunks; f is make(record).
template <int OPERANDS, int WRITTEN, class M> PT_DEVICE void over_chunks(const ManyArgs &a,
                                                                         M make) {
    for (int64_t chunk = blockIdx.x; chunk < a.chunks; chunk += gridDim.x) {
        const uint64_t *record = record_of(a, chunk);
        over_chunk<OPERANDS, WRITTEN>(record, chunk, make(record));
    }
}

}  // namespace
