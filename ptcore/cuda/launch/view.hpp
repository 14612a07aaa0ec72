// Views that host halves derive from others: with own strides, and dims added, moved or cut.
#pragma once
#include <cstring>

#include "driver.hpp"
#include "walk.hpp"

namespace pt_cuda {

// A view with sizes and strides of its own, which start as v's.
struct View {
    explicit View(const pt_view &v) : v(v) {
        for (int d = 0; d < v.ndim; d++) sizes[d] = v.sizes[d], strides[d] = v.strides[d];
        at();
    }
    View(const View &o) : v(o.v) {
        std::memcpy(sizes, o.sizes, sizeof(sizes));
        std::memcpy(strides, o.strides, sizeof(strides));
        at();
    }
    View &operator=(const View &) = delete;
    void push(int64_t size, int64_t stride) {
        sizes[v.ndim] = size, strides[v.ndim] = stride;
        v.ndim++;
    }
    // numel and contiguous, after sizes or strides have changed
    void settle() {
        v.numel = 1;
        for (int d = 0; d < v.ndim; d++) v.numel *= sizes[d];
        v.contiguous = 1;
        int64_t step = 1;
        for (int d = v.ndim - 1; d >= 0; d--) {
            if (sizes[d] != 1 && strides[d] != step) v.contiguous = v.numel == 0;
            step *= sizes[d];
        }
    }
    pt_view v;
    int64_t sizes[2 * PT_MAX_DIM], strides[2 * PT_MAX_DIM];
private:
    void at() { v.sizes = sizes, v.strides = strides; }
};

// A 0-d view as a view of one dim.
inline View at_least_1d(const pt_view &v) {
    View r(v);
    if (v.ndim == 0) r.push(1, 1);
    return r;
}

// The types of a kernel that moves elements by their size alone.
inline uint64_t by_size(int dtype) {
    static const unsigned char of[PT_NDTYPES] = {
        PT_UINT8, PT_UINT8, PT_UINT8, PT_INT16, PT_INT16, PT_INT32, PT_INT32,     PT_INT64,
        PT_INT64, PT_INT16, PT_INT16, PT_INT32, PT_INT64, PT_INT64, PT_COMPLEX128,
        PT_UINT8, PT_UINT8, PT_UINT8, PT_UINT8, PT_UINT8, PT_INT32};
    return types(of[dtype]);
}

// The dim in a call's parameter number `param`, counted from the front.
inline int dim_of(pt_call *c, int ndim, int &dim, int param = 0) {
    const int64_t given = c->params[param].i;
    dim = (int)(given < 0 ? given + ndim : given);
    return dim < 0 || dim >= ndim ? failed(c, PT_INDEX_ERROR, "dim is out of range") : PT_OK;
}

}  // namespace pt_cuda
