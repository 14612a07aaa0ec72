// The host halves of padding: with a number, with the tensor's own elements, and the transpose of
// the latter.
#include <algorithm>

#include "families.hpp"
#include "pad_args.h"
#include "view.hpp"

namespace pt_cuda {
namespace {

enum { THREADS = 256 };
const Kernel CONSTANT = {"pad", "pad_constant"}, CONSTANT_FAR = {"pad", "pad_constant_far"},
             EDGES = {"pad", "pad_edges"}, EDGES_FAR = {"pad", "pad_edges_far"},
             TRANSPOSED = {"pad", "pad_edges_transposed"},
             TRANSPOSED_FAR = {"pad", "pad_edges_transposed_far"};

// Whether either tensor has more elements than 32 bits count.
bool is_far(const pt_call *c) {
    return std::max(c->in[0].numel, c->out[0].numel) >= (int64_t)1 << 31;
}

int64_t before(const pt_param &pad, int ndim, int d) {
    return 2 * (ndim - 1 - d) < pad.count ? pad.list[2 * (ndim - 1 - d)] : 0;
}
int64_t after(const pt_param &pad, int ndim, int d) {
    return 2 * (ndim - 1 - d) + 1 < pad.count ? pad.list[2 * (ndim - 1 - d) + 1] : 0;
}

// Neighbouring dims without pads are merged where the strides of the input allow it. `cut`: pads
// may be negative, and the input may be empty.
int pad_args(pt_call *c, const pt_view &small, const pt_view &large, bool cut, PadArgs &a) {
    const pt_view &x = c->in[0];
    const pt_param &pad = c->params[0];
    if (small.ndim < 1 || small.ndim != large.ndim || pad.count % 2 || pad.count > 2 * small.ndim)
        return failed(c, PT_RUNTIME_ERROR,
                      "expected pairs for at most as many dimensions as there are");
    a.out = c->out[0].data, a.x = x.data, a.total = c->out[0].numel;
    bool plain = false;                                 // the last axis has no pad
    for (int d = 0; d < small.ndim; d++) {
        const int64_t first = before(pad, small.ndim, d), last = after(pad, small.ndim, d);
        if (large.sizes[d] != small.sizes[d] + first + last ||
            (!cut && (first < 0 || last < 0 || (small.sizes[d] == 0 && large.sizes[d] != 0))))
            return failed(c, PT_RUNTIME_ERROR, "pads and sizes do not fit");
        const PadAxis axis = {large.sizes[d], small.sizes[d], first, x.strides[d]};
        const bool none = first == 0 && last == 0;
        if (none && axis.large == 1 && (a.ndim || d + 1 < small.ndim)) continue;
        if (none && plain && a.axis[a.ndim - 1].stride == axis.stride * axis.large) {
            PadAxis &joined = a.axis[a.ndim - 1];
            joined = {joined.large * axis.large, joined.small * axis.small, 0, axis.stride};
        } else if (a.ndim == PT_PAD_DIMS)
            return failed(c, PT_RUNTIME_ERROR,
                          "expected at most 30 dimensions of more than one element");
        else
            a.axis[a.ndim++] = axis;
        plain = none;
    }
    return PT_OK;
}

// One element of a dtype from the number that a call gives.
int element_of(const pt_param &number, int dtype, unsigned char *to) {
    const bool whole = is_integral(dtype);
    int64_t i = number.kind == PT_PARAM_INT ? number.i : (int64_t)number.d;
    double z[2] = {number.d, number.kind == PT_PARAM_COMPLEX ? number.im : 0.0};
    pt_view from = {}, out = {};
    from.data = whole ? reinterpret_cast<char *>(&i) : reinterpret_cast<char *>(z);
    from.dtype = whole ? PT_INT64 : is_complex(dtype) ? PT_COMPLEX128 : PT_FLOAT64;
    out.data = reinterpret_cast<char *>(to), out.dtype = (uint8_t)dtype;
    from.numel = out.numel = from.contiguous = out.contiguous = 1;
    return driver.host_copy(&out, &from);
}

int constant(pt_call *c) {
    const pt_view &x = c->in[0], &out = c->out[0];
    if (x.ndim == 0) return copy(c, &out, &x);
    PadArgs a = {};
    int status = pad_args(c, x, out, true, a);
    if (!status) status = element_of(c->params[1], out.dtype, a.value);
    if (status || a.total == 0) return status;
    bool whole = true;
    for (int d = 0; d < a.ndim; d++)
        whole = whole && a.axis[d].before == 0 && a.axis[d].large == a.axis[d].small;
    if (whole) return copy(c, &out, &x);
    return launch(c, is_far(c) ? CONSTANT_FAR : CONSTANT, by_size(out.dtype),
                  blocks_for(c, (a.total + 3) / 4, THREADS, 32), THREADS, a);
}

int edges(pt_call *c) {
    PadArgs a = {};
    int status = pad_args(c, c->in[0], c->out[0], false, a);
    if (status || a.total == 0) return status;
    a.mode = (int32_t)c->params[1].i;
    return launch(c, is_far(c) ? EDGES_FAR : EDGES, by_size(c->out[0].dtype),
                  blocks_for(c, a.total, THREADS, 32), THREADS, a);
}
int edges_transposed(pt_call *c) {
    PadArgs a = {};
    int status = pad_args(c, c->out[0], c->in[0], false, a);
    if (status || a.total == 0) return status;
    a.mode = (int32_t)c->params[1].i;
    int padded = 0;
    for (int d = 0; d < a.ndim; d++) padded += a.axis[d].large != a.axis[d].small;
    if (padded > PT_PADDED_DIMS)
        return failed(c, PT_RUNTIME_ERROR, "expected pads of at most 8 dimensions");
    return launch(c, is_far(c) ? TRANSPOSED_FAR : TRANSPOSED, types(c->out[0].dtype),
                  blocks_for(c, a.total, THREADS, 32), THREADS, a);
}

}  // namespace

const pt_kernel_entry pad_kernels[] = {{"pad_constant", constant}, {"pad_edges", edges},
                                       {"pad_edges_transposed", edges_transposed},
                                       {nullptr, nullptr}};

}  // namespace pt_cuda
