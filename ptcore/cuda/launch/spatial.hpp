// Tensors (N, C, ...) with 1 to 3 spatial dims, seen as (N, C, depth, height, width), and the
// settings of their windows.
#pragma once
#include "launch.hpp"

namespace pt_cuda {

// Sizes, and strides in elements; a dim that is not there has size 1 and stride 0.
struct BatchView {
    char *data;
    int64_t size[5], stride[5];

    explicit BatchView(const pt_view &v) : data(v.data) {
        for (int d = 0; d < 5; d++) {
            const int from = d < 2 ? d : d - 5 + v.ndim;
            const bool there = d < 2 || from >= 2;
            size[d] = there ? v.sizes[from] : 1;
            stride[d] = there ? v.strides[from] : 0;
        }
    }
};

// The number for spatial dim d of 3, in a parameter with a number for each dim that exists.
inline int64_t setting(const pt_call *c, int p, int d, int64_t absent) {
    const pt_param &of = c->params[p];
    return d - 3 + of.count < 0 ? absent : of.list[d - 3 + of.count];
}

}  // namespace pt_cuda
