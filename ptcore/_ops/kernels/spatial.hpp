/* Tensors (N, C, ...) with 1 to 3 spatial dims, seen as (N, C, depth, height, width). */
#ifndef PTCORE_KERNELS_SPATIAL_HPP
#define PTCORE_KERNELS_SPATIAL_HPP
#include "common.hpp"
#include "copy_row.hpp"
#include "ptcore/simd.h"

namespace {

/* Sizes and strides of a tensor of 3 to 5 dims as (n, channels, depth, height, width). */
struct batch_view {
    const char *data;
    int64_t size[5], stride[5];

    explicit batch_view(const pt_view &v) : data(v.data) {
        for (int d = 0; d < 5; ++d) {
            const int from = d < 2 ? d : d - 5 + v.ndim;
            const bool there = d < 2 || from >= 2;
            size[d] = there ? v.sizes[from] : 1;
            stride[d] = there ? v.strides[from] : 0;
        }
    }
    /* rows follow each other without gaps, so that a channel is one run of memory */
    bool dense() const {
        int64_t expected = 1;
        for (int d = 4; d >= 2; --d) {
            if (size[d] != 1 && stride[d] != expected) return false;
            expected *= size[d];
        }
        return true;
    }
};

/* to[i] = from[i * stride] */
template <class T, class S>
inline void load_row(T *PT_RESTRICT to, const S *PT_RESTRICT from, int64_t stride, int64_t n) {
    if constexpr (is_same<T, S> && (is_same<T, float> || is_same<T, double>)) {
        if (stride == 1) {
            copy_row(reinterpret_cast<char *>(to), reinterpret_cast<const char *>(from),
                     size_t(n) * sizeof(T));
            return;
        }
        if (stride == 2) {
            using V = simd<T>;
            constexpr int64_t W = V::width;
            const auto chunk = [&](int64_t i) {
                V::store(to + i,
                         V::every_other(V::load(from + 2 * i), V::load(from + 2 * i + W - 1)));
            };
            if (n < W)
                for (int64_t i = 0; i < n; ++i) to[i] = from[2 * i];
            else {
                for (int64_t i = 0; i < n - W; i += W) chunk(i);
                chunk(n - W);
            }
            return;
        }
    }
    load(to, from, n == 1 ? 1 : stride, n);
}

/* The entry for spatial dim d of 3 of a parameter with one entry for each dim of the tensor. */
inline int64_t setting(const pt_call *call, int p, int d, int64_t absent) {
    const pt_param &of = call->params[p];
    return d - 3 + of.count < 0 ? absent : of.list[d - 3 + of.count];
}

} // namespace
#endif
