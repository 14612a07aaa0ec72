// The host halves of padding: with a number, with the tensor's own elements, and that one's transpose.
#include "families.hpp"
#include "pad_args.h"
#include "view.hpp"

namespace pt_cuda {
namespace {

enum { THREADS = 256 };
const Kernel FILL = {"pad", "pad_fill"}, EDGES = {"pad", "pad_edges"}, TRANSPOSED = {"pad", "pad_edges_transposed"};

int64_t before(const pt_param &pad, int ndim, int d) {
    return 2 * (ndim - 1 - d) < pad.count ? pad.list[2 * (ndim - 1 - d)] : 0;
}
int64_t after(const pt_param &pad, int ndim, int d) {
    return 2 * (ndim - 1 - d) + 1 < pad.count ? pad.list[2 * (ndim - 1 - d) + 1] : 0;
}

// The number everywhere, then the part of the input that is kept.
int constant(pt_call *c) {
    const pt_view &x = c->in[0], &out = c->out[0];
    const pt_param &pad = c->params[0], &value = c->params[1];
    if (pad.count > 2 * x.ndim || x.ndim != out.ndim)
        return failed(c, PT_RUNTIME_ERROR, "pad has more pairs than input has dimensions");
    if (out.numel == 0) return PT_OK;
    View from(x), to(out);
    bool any = true, whole = true;
    for (int d = 0; d < x.ndim; d++) {
        const int64_t first = before(pad, x.ndim, d), last = after(pad, x.ndim, d);
        if (out.sizes[d] != x.sizes[d] + first + last) return failed(c, PT_RUNTIME_ERROR, "pads and sizes do not fit");
        const int64_t begin = first < 0 ? -first : 0, box = x.sizes[d] - begin - (last < 0 ? -last : 0);
        any = any && box > 0;
        whole = whole && box == out.sizes[d];
        if (!any) break;
        from.sizes[d] = to.sizes[d] = box;
        from.v.data += begin * x.strides[d] * item_size(x.dtype);
        to.v.data += (first > 0 ? first : 0) * out.strides[d] * item_size(x.dtype);
    }
    if (!whole || !any) {
        const int64_t number = value.kind == PT_PARAM_INT ? value.i : out.dtype < PT_FLOAT16 ? (int64_t)value.d : 0;
        const PadFillArgs a = {out.data, out.numel, {value.d, value.kind == PT_PARAM_COMPLEX ? value.im : 0.0}, number};
        int status = launch(c, FILL, types(out.dtype), blocks_for(c, out.numel, 4 * THREADS, 32), THREADS, a);
        if (status) return status;
    }
    if (!any) return PT_OK;
    from.settle(), to.settle();
    return copy(c, &to.v, &from.v);
}

// Dims without pads are one where the tensor that is read allows it.
int edge_args(pt_call *c, const pt_view &small, const pt_view &large, PadArgs &a) {
    const pt_view &x = c->in[0];
    const pt_param &pad = c->params[0];
    if (small.ndim < 1 || small.ndim != large.ndim || pad.count % 2 || pad.count > 2 * small.ndim)
        return failed(c, PT_RUNTIME_ERROR, "expected pairs for at most as many dimensions as there are");
    a.out = c->out[0].data, a.x = x.data, a.total = c->out[0].numel;
    a.mode = (int32_t)c->params[1].i;
    bool plain = false;                                 // the last axis has no pad
    for (int d = 0; d < small.ndim; d++) {
        const int64_t first = before(pad, small.ndim, d), last = after(pad, small.ndim, d);
        if (first < 0 || last < 0 || large.sizes[d] != small.sizes[d] + first + last ||
            (small.sizes[d] == 0 && large.sizes[d] != 0))
            return failed(c, PT_RUNTIME_ERROR, "pads and sizes do not fit");
        const PadAxis axis = {large.sizes[d], small.sizes[d], first, x.strides[d]};
        const bool none = first == 0 && last == 0;
        if (none && plain && a.axis[a.ndim - 1].stride == axis.stride * axis.large) {
            PadAxis &joined = a.axis[a.ndim - 1];
            joined = {joined.large * axis.large, joined.small * axis.small, 0, axis.stride};
        } else
            a.axis[a.ndim++] = axis;
        plain = none;
    }
    return PT_OK;
}

int edges(pt_call *c) {
    PadArgs a = {};
    int status = edge_args(c, c->in[0], c->out[0], a);
    if (status || a.total == 0) return status;
    return launch(c, EDGES, by_size(c->out[0].dtype), blocks_for(c, a.total, THREADS, 32), THREADS, a);
}
int edges_transposed(pt_call *c) {
    PadArgs a = {};
    int status = edge_args(c, c->out[0], c->in[0], a);
    if (status || a.total == 0) return status;
    int padded = 0;
    for (int d = 0; d < a.ndim; d++) padded += a.axis[d].large != a.axis[d].small;
    if (padded > PT_PADDED_DIMS) return failed(c, PT_RUNTIME_ERROR, "expected pads of at most 8 dimensions");
    return launch(c, TRANSPOSED, types(c->out[0].dtype), blocks_for(c, a.total, THREADS, 32), THREADS, a);
}

}  // namespace

const pt_kernel_entry pad_kernels[] = {{"pad_constant", constant}, {"pad_edges", edges},
                                       {"pad_edges_transposed", edges_transposed},
                                       {nullptr, nullptr}};

}  // namespace pt_cuda
