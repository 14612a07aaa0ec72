// Operands in row-major order and of one dtype: in place if they are so, else copied.
#pragma once
#include "launch.hpp"
#include "walk.hpp"

namespace pt_cuda {

inline bool present(const pt_view &v) { return v.dtype != PT_NONE && v.data; }
inline bool floating(const pt_view &v) { return is_floating(v.dtype); }
inline int moment_dtype(int dtype) { return dtype == PT_FLOAT64 ? PT_FLOAT64 : PT_FLOAT32; }

// A view's elements in row-major order and of a dtype; NULL for an absent view.
class Dense {
public:
    Dense(pt_call *c, const pt_view &src, int dtype)
        : data(present(src) ? src.data : nullptr),
          scratch(c, as_it_is(src, dtype) ? 0 : src.numel * item_size(dtype)), good(true) {
        if (as_it_is(src, dtype)) return;
        int64_t strides[PT_MAX_DIM], step = 1;
        for (int d = src.ndim - 1; d >= 0; d--) {
            strides[d] = step;
            step *= src.sizes[d];
        }
        pt_view to = src;
        to.data = static_cast<char *>(scratch.data);
        to.strides = strides;
        to.contiguous = 1;
        to.dtype = (uint8_t)dtype;
        good = scratch.data && copy(c, &to, &src) == PT_OK;
        data = scratch.data;
    }
    const void *data;
    bool ok() const { return good; }

private:
    Scratch scratch;
    bool good;
    static bool as_it_is(const pt_view &v, int dtype) {
        return !present(v) || v.numel == 0 || (v.contiguous && v.dtype == dtype);
    }
};

}  // namespace pt_cuda
