// The step that all indexing kernels share: to check an index and find its place.
#pragma once
#include "index_args.h"
#include "report.cuh"
#include "walk.cuh"

namespace {

// `by` becomes the byte offset of an index. Returns false for an index out of bounds and reports it
// (once, where it is found).
PT_DEVICE bool moved(const IndexArgs &a, int64_t index, int64_t &by) {
    if (a.size == 0) {
        by = index;
        return index != PT_NOWHERE;
    }
    if (index >= a.size || index < (a.negative ? -a.size : 0)) {
        report(a.fault, a.op, index, a.dim, a.size);
        return false;
    }
    by = (index < 0 ? index + a.size : index) * a.stride;
    return true;
}

// Calls f(place in the tensor, value) for every element of the walk whose index is in bounds.
template <class T, class Value = T, class F> PT_DEVICE void each_place(const IndexArgs &a, F f) {
    const uint32_t step = gridDim.x * blockDim.x;
    for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < a.n; i += step) {
        const Offsets<3> o = offsets_of<3>(a.walk, i);
        const int64_t index = *reinterpret_cast<const int64_t *>(a.data[2] + o.at[2]);
        int64_t by;
        if (a.size != 0 && index == a.skipped && index >= 0) continue;
        if (moved(a, index, by))
            f(reinterpret_cast<T *>(a.data[1] + o.at[1] + by),
              reinterpret_cast<const Value *>(a.data[0] + o.at[0]));
    }
}

}  // namespace
