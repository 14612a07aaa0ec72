// The stages of a bitonic sort of entries (Batcher, 1968): within blocks in shared memory, beyond them in device memory.
#include "base.cuh"
#include "sort_args.h"

namespace {

enum { CHUNK = 512 };

PT_DEVICE bool before(const SortEntry &x, const SortEntry &y) {
    return x.key < y.key || (x.key == y.key && x.position < y.position);
}

// Compares the pair of a thread: i and its partner `step` behind, ascending where the bit `run` of i's place is not set.
PT_DEVICE void exchange(SortEntry *e, uint64_t pair, uint64_t place, uint64_t run, uint64_t step, uint64_t size) {
    const uint64_t i = 2 * pair - (pair & (step - 1)), at = (place + i) & (size - 1);
    const bool up = (at & run) == 0;
    if (before(e[i + step], e[i]) == up) {
        const SortEntry t = e[i];
        e[i] = e[i + step], e[i + step] = t;
    }
}

// Each block: `CHUNK` entries that follow each other, from runs of `from` to runs of `to`.
PT_DEVICE void chunk(const SortArgs &a, uint64_t from, uint64_t to) {
    __shared__ SortEntry e[CHUNK];
    const uint64_t total = (uint64_t)a.lines * a.size, first = (uint64_t)blockIdx.x * CHUNK;
    const SortEntry none = {~(uint64_t)0, 0};
    for (int i = threadIdx.x; i < CHUNK; i += blockDim.x) e[i] = first + i < total ? a.entries[first + i] : none;
    __syncthreads();
    for (uint64_t run = from; run <= to; run *= 2)
        for (uint64_t step = run / 2 < CHUNK / 2 ? run / 2 : CHUNK / 2; step > 0; step /= 2) {
            exchange(e, threadIdx.x, first, run, step, a.size);
            __syncthreads();
        }
    for (int i = threadIdx.x; i < CHUNK; i += blockDim.x)
        if (first + i < total) a.entries[first + i] = e[i];
}

}  // namespace

PT_KERNEL_SYNC(sort_chunks, SortArgs, a, 256) { chunk(a, 2, a.size < CHUNK ? a.size : CHUNK); }
PT_KERNEL_SYNC(sort_within, SortArgs, a, 256) { chunk(a, a.run, a.run); }
PT_KERNEL(sort_across, SortArgs, a, 256) {
    const uint64_t pairs = (uint64_t)a.lines * a.size / 2;
    for (uint64_t p = thread_index(); p < pairs; p += thread_count()) exchange(a.entries, p, 0, a.run, a.step, a.size);
}
