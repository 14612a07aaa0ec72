// An element's number to its operands' byte offsets; see launch/walk_args.h.
#pragma once
#include "base.cuh"
#include "walk_args.h"

namespace {

template <int N> struct Offsets { int64_t at[N]; };

template <int N> PT_DEVICE Offsets<N> offsets_of(const WalkArgs &w, uint32_t i) {
    Offsets<N> r = {};
    for (int d = 0; d < w.ndim; d++) {
        const uint32_t q = (__umulhi(i, w.multiplier[d]) + i) >> w.shift[d], rest = i - q * w.sizes[d];
        for (int k = 0; k < N; k++) r.at[k] += rest * w.strides[k][d];
        i = q;
    }
    return r;
}

// 16 bytes of elements, moved by one instruction; outputs of other sizes get as many elements.
template <class T, int V> struct alignas(sizeof(T) * V < 16 ? sizeof(T) * V : 16) Pack { T v[V]; };

}  // namespace
