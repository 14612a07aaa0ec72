/* The channels-last memory format of tensors (N, C, S...): the channels of a position are
 * neighbours.
 *
 * Dispatch runs a call of a row with keeps="channels_last" either in this format or row-major
 * (kernel.h, (b)). A kernel then walks the dims in their order in memory, in which the same tensor
 * is a row-major one (N, S..., C). */
#ifndef PTCORE_KERNELS_CHANNELS_LAST_HPP
#define PTCORE_KERNELS_CHANNELS_LAST_HPP
#include "common.hpp"

namespace {

/* whether the channels of a position are neighbours, and the positions in order */
inline bool channels_last(const pt_view &v) {
    int64_t step = v.sizes[1];
    if (v.strides[1] != 1) return false;
    for (int d = v.ndim - 1; d >= 0; --d) {
        if (d == 1) continue;
        if (v.sizes[d] != 1 && v.strides[d] != step) return false;
        step *= v.sizes[d];
    }
    return true;
}
/* Whether a call runs in the format: its output lies so. Where sizes of 1 leave that open, the
 * input decides. */
inline bool runs_channels_last(const pt_view &in, const pt_view &out) {
    return out.ndim >= 4 && out.ndim <= 5 && channels_last(out) &&
           (!out.contiguous || (in.ndim == out.ndim && !in.contiguous && channels_last(in)));
}

/* load and store, compiled once for each pair of types */
template <class E, class S>
PT_NOINLINE void load_wide(E *to, const S *from, int64_t stride, int64_t n) {
    load(to, from, stride, n);
}
template <class S, class E>
PT_NOINLINE void store_narrow(S *to, const E *from, int64_t n) {
    store(to, from, n);
}

/* The dims of a tensor, outermost first, as they lie in memory. */
struct memory_order {
    int dim[PT_MAX_DIM];
    memory_order(int ndim, bool last) {
        for (int k = 0; k < ndim; ++k)
            dim[k] = !last || k == 0 ? k : k < ndim - 1 ? k + 1 : 1;
    }
    int operator[](int k) const { return dim[k]; }
};

} // namespace
#endif
