// The step that all indexing kernels share: an index checked, its place found.
#pragma once
#include "index_args.h"
#include "report.cuh"
#include "walk.cuh"

namespace {

// The bytes that an index moves its tensor by; false if it is out of bounds, which is reported.
PT_DEVICE bool moved(const IndexArgs &a, int64_t index, int64_t &by) {
    if (a.size == 0) {
        by = index;
        return true;
    }
    if (index >= a.size || index < (a.negative ? -a.size : 0)) {
        report(a.fault, a.op, index, a.dim, a.size);
        return false;
    }
    by = (index < 0 ? index + a.size : index) * a.stride;
    return true;
}

}  // namespace
