// Views of equal sizes as one walk: dims of size 1 dropped, the others ordered by the first
// operand's strides and merged where all operands allow it.
#pragma once
#include <cstdint>

#include "divisor.hpp"
#include "ptcore/kernel.h"
#include "walk_args.h"

namespace pt_cuda {

struct Walk {
    int ndim = 0, operands = 0;
    int64_t sizes[PT_MAX_DIM];                          // outermost first
    int64_t strides[PT_WALK_OPERANDS][PT_MAX_DIM];      // in bytes
    int64_t count() const {
        int64_t n = 1;
        for (int d = 0; d < ndim; d++) n *= sizes[d];
        return n;
    }
};

// Bytes of an element; 0 for an absent tensor.
inline int item_size(int dtype) {
    static const unsigned char sizes[256] = {1, 1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8, 8, 16};
    return sizes[dtype & 255];
}

inline int64_t magnitude(int64_t x) { return x < 0 ? -x : x; }

inline void order(Walk &w) {
    for (int i = 1; i < w.ndim; i++)
        for (int d = i; d > 0 && magnitude(w.strides[0][d - 1]) < magnitude(w.strides[0][d]); d--) {
            int64_t t = w.sizes[d];
            w.sizes[d] = w.sizes[d - 1], w.sizes[d - 1] = t;
            for (int k = 0; k < w.operands; k++)
                t = w.strides[k][d], w.strides[k][d] = w.strides[k][d - 1], w.strides[k][d - 1] = t;
        }
}

inline void merge(Walk &w) {
    int n = 0;
    for (int d = 0; d < w.ndim; d++) {
        bool joins = n > 0;
        for (int k = 0; joins && k < w.operands; k++)
            joins = w.strides[k][n - 1] == w.strides[k][d] * w.sizes[d];
        if (!joins) n++;
        w.sizes[n - 1] = joins ? w.sizes[n - 1] * w.sizes[d] : w.sizes[d];
        for (int k = 0; k < w.operands; k++) w.strides[k][n - 1] = w.strides[k][d];
    }
    w.ndim = n;
}

// views[0] is the output; all have its sizes.
inline Walk walk_of(const pt_view *const *views, int operands) {
    Walk w;
    w.operands = operands;
    for (int d = 0; d < views[0]->ndim; d++) {
        if (views[0]->sizes[d] == 1) continue;
        w.sizes[w.ndim] = views[0]->sizes[d];
        for (int k = 0; k < operands; k++)
            w.strides[k][w.ndim] = views[k]->strides[d] * item_size(views[k]->dtype);
        w.ndim++;
    }
    order(w);
    merge(w);
    return w;
}

// Writes a walk with at most PT_WALK_DIMS dims and fewer than 2**31 elements into `a`.
inline void pack(const Walk &w, WalkArgs &a) {
    a.ndim = w.ndim;
    a.small = w.ndim <= 4 ? w.ndim : 0;
    for (int k = 0; k < w.operands; k++) {
        int64_t reach = 0;
        for (int d = 0; d < w.ndim; d++) reach += magnitude(w.strides[k][d]) * (w.sizes[d] - 1);
        if (reach >= INT32_MAX) a.small = 0;
    }
    for (int i = 0; i < w.ndim; i++) {
        int d = w.ndim - 1 - i;
        a.sizes[i] = (uint32_t)w.sizes[d];
        divide_by(a.sizes[i], a.multiplier[i], a.shift[i]);
        for (int k = 0; k < w.operands; k++) a.strides[k][i] = w.strides[k][d];
    }
}

// Whether `width` neighbours along the innermost dim are one pack of each operand (data[k],
// items[k] bytes an element), or are one element for all of them (inputs only; data[k] may then be
// NULL).
inline bool has_packs(const Walk &w, int width, char *const *data, const int *items) {
    if (w.ndim == 0 || w.sizes[w.ndim - 1] % width) return false;
    for (int k = 0; k < w.operands; k++) {
        const int64_t inner = w.strides[k][w.ndim - 1];
        if (k && inner == 0) continue;
        const int64_t bytes = width * items[k] < 16 ? width * items[k] : 16;
        if (inner != items[k] || (uintptr_t)data[k] % bytes) return false;
        for (int d = 0; d < w.ndim - 1; d++)
            if (w.strides[k][d] % bytes) return false;
    }
    return true;
}

// The walk over packs of `width` elements.
inline Walk by_packs(Walk w, int width) {
    w.sizes[w.ndim - 1] /= width;
    for (int k = 0; k < w.operands; k++) w.strides[k][w.ndim - 1] *= width;
    return w;
}

// Calls f(walk, byte offsets of the operands) for parts that pack() takes: outer dims are taken one
// index at a time, a large inner dim in pieces. Stops at the first status that is not PT_OK.
template <class F> int by_parts(const Walk &w, const int64_t *offsets, F f) {
    int64_t at[PT_WALK_OPERANDS];
    for (int k = 0; k < w.operands; k++) at[k] = offsets ? offsets[k] : 0;
    const int64_t most = (int64_t)1 << 30;
    if (w.ndim <= PT_WALK_DIMS && w.count() <= most) return f(w, at);
    Walk part = w;
    int64_t inner = w.count() / w.sizes[0], step = 1;
    if (w.ndim <= PT_WALK_DIMS && inner < most) step = most / inner;
    for (int64_t i = 0; i < w.sizes[0]; i += step) {
        part.sizes[0] = w.sizes[0] - i < step ? w.sizes[0] - i : step;
        if (w.ndim > PT_WALK_DIMS || part.sizes[0] == 1) {
            part = w;
            part.ndim--;
            for (int d = 1; d < w.ndim; d++) {
                part.sizes[d - 1] = w.sizes[d];
                for (int k = 0; k < w.operands; k++) part.strides[k][d - 1] = w.strides[k][d];
            }
        }
        for (int k = 0; k < w.operands; k++)
            at[k] = (offsets ? offsets[k] : 0) + i * w.strides[k][0];
        int status = by_parts(part, at, f);
        if (status) return status;
        part = w;
    }
    return PT_OK;
}

}  // namespace pt_cuda
