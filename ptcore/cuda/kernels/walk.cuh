// Converts an element's number to its operands' byte offsets; see launch/walk_args.h.
#pragma once
#include "divide.cuh"
#include "walk_args.h"

namespace {

template <int N> struct Offsets { int64_t at[N]; };

// For D dims, with offsets of 32 bits.
template <int N, int D> PT_DEVICE Offsets<N> small_offsets(const WalkArgs &w, uint32_t i) {
    int32_t at[N] = {};
    PT_UNROLL for (int d = 0; d < D; d++) {
        uint32_t q = 0, rest = i;
        if (d + 1 < D) {
            q = divided(i, w.multiplier[d], w.shift[d]);
            rest = i - q * w.sizes[d];
        }
        PT_UNROLL for (int k = 0; k < N; k++) at[k] += (int32_t)rest * (int32_t)w.strides[k][d];
        i = q;
    }
    Offsets<N> r;
    PT_UNROLL for (int k = 0; k < N; k++) r.at[k] = at[k];
    return r;
}

template <int N> PT_DEVICE Offsets<N> offsets_of(const WalkArgs &w, uint32_t i) {
    switch (w.small) {
    case 1: return small_offsets<N, 1>(w, i);
    case 2: return small_offsets<N, 2>(w, i);
    case 3: return small_offsets<N, 3>(w, i);
    case 4: return small_offsets<N, 4>(w, i);
    }
    Offsets<N> r = {};
    for (int d = 0; d < w.ndim; d++) {
        const uint32_t q = divided(i, w.multiplier[d], w.shift[d]), rest = i - q * w.sizes[d];
        for (int k = 0; k < N; k++) r.at[k] += rest * w.strides[k][d];
        i = q;
    }
    return r;
}

// 16 bytes of input elements, moved by one instruction; a pack of outputs has as many elements.
template <class T, int V> struct alignas(sizeof(T) * V < 16 ? sizeof(T) * V : 16) Pack { T v[V]; };

}  // namespace
