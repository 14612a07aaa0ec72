// The step that all indexing kernels share: an index checked, its place found.
#pragma once
#include "index_args.h"
#include "walk.cuh"

namespace {

// The first fault since the host last looked is kept.
PT_DEVICE void report(const IndexArgs &a, int64_t index) {
    if (atomicCAS(reinterpret_cast<unsigned *>(&a.fault->found), 0u, 2u) != 0u) return;
    a.fault->op = a.op;
    a.fault->index = index;
    a.fault->dim = a.dim;
    a.fault->size = a.size;
    __threadfence_system();
    atomicExch(reinterpret_cast<unsigned *>(&a.fault->found), 1u);
}

// The bytes that an index moves its tensor by; false if it is out of bounds, which is reported.
PT_DEVICE bool moved(const IndexArgs &a, int64_t index, int64_t &by) {
    if (a.size == 0) {
        by = index;
        return true;
    }
    if (index >= a.size || index < (a.negative ? -a.size : 0)) {
        report(a, index);
        return false;
    }
    by = (index < 0 ? index + a.size : index) * a.stride;
    return true;
}

}  // namespace
