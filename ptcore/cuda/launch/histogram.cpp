// Histograms and counts of integers; the calls are those of _ops/statistics/histogram.cpp.
#include <algorithm>

#include "families.hpp"
#include "histogram_args.h"
#include "view.hpp"

namespace pt_cuda {
namespace {

const Kernel COUNT = {"histogram", "histogram_count"}, WEIGH = {"histogram", "histogram_weigh"};
enum {
    WARPS = PT_HISTOGRAM_THREADS / 32,
    MOST_SHARED = 48 * 1024 - 4096
};    // so that a multiprocessor holds several blocks

// Computes the sums and stores them in the output's dtype. The caller has set the bins.
int tally(pt_call *c, HistogramArgs a, const pt_view &x, const pt_view &weights) {
    pt_view &out = c->out[0];
    const bool weighed = weights.dtype != PT_NONE;
    const int sums = weighed ? PT_FLOAT64 : PT_INT64;
    Scratch room(c, out.dtype == sums ? 0 : 8 * out.numel);
    if (out.dtype != sums && !room.data) return PT_MEMORY_ERROR;
    View summed(out);
    summed.v.dtype = sums;
    if (out.dtype != sums) summed.v.data = static_cast<char *>(room.data);
    int status = clear(c, summed.v.data, 8 * out.numel);
    if (!status && x.numel && out.numel) {
        const int64_t nbytes = a.total * (weighed ? 8 : 4);
        a.copies = (int32_t)std::min<int64_t>(WARPS, MOST_SHARED / nbytes);
        a.n = x.sizes[0], a.x = x.data, a.sums = summed.v.data;
        a.weights = weighed ? weights.data : nullptr;
        const int by = weighed                ? weights.dtype
                       : is_floating(x.dtype) ? (int)x.dtype
                                              : (int)PT_FLOAT64;
        status = launch(c, weighed ? WEIGH : COUNT, types(x.dtype, by),
                        blocks_for(c, a.n, PT_HISTOGRAM_THREADS * PT_HISTOGRAM_EACH),
                        PT_HISTOGRAM_THREADS, a, (unsigned)(a.copies * nbytes));
    }
    return status || out.dtype == sums ? status : copy(c, &out, &summed.v);
}

bool weights_fit(const pt_view &x, const pt_view &w) {
    return w.dtype == PT_NONE || (is_floating(w.dtype) && w.ndim == 1 && w.sizes[0] == x.sizes[0]);
}

int binned(pt_call *c) {
    const pt_view &e = c->in[1];
    const pt_param &bins = c->params[0];
    HistogramArgs a = {};
    a.coordinates = bins.count, a.places = (int32_t)c->params[1].i, a.total = c->out[0].numel;
    if (c->in[0].ndim != 2 || e.ndim != 1 || c->in[0].sizes[1] != bins.count ||
        !weights_fit(c->in[0], c->in[2]) ||
        (c->in[2].dtype != PT_NONE && c->in[2].dtype != c->in[0].dtype))
        return failed(c, PT_RUNTIME_ERROR,
                      "expected rows of coordinates, weights of their dtype, edges, and bins for "
                      "each coordinate");
    if (bins.count > PT_HISTOGRAM_COORDINATES)
        return failed(c, PT_RUNTIME_ERROR, "on this device a row may have at most 32 coordinates");
    int64_t needed = 0;
    for (int d = 0; d < bins.count; d++) {
        a.bins[d] = bins.list[d];
        needed += a.places == PT_COMPUTED ? 2 : a.bins[d] + 1;
        if (a.bins[d] < 1) needed = e.numel + 1;
    }
    if (needed > e.numel)
        return failed(c, PT_RUNTIME_ERROR, "expected the edges of each coordinate's bins");
    Contiguous x(c, c->in[0]), weights(c, c->in[2].dtype == PT_NONE ? c->in[0] : c->in[2]);
    if (!x.ok() || !weights.ok()) return PT_MEMORY_ERROR;
    View edges(e);                      // in the dtype of comparisons
    edges.v.dtype = c->in[0].dtype == PT_FLOAT64 ? PT_FLOAT64 : PT_FLOAT32;
    Scratch room(c, e.numel * item_size(edges.v.dtype));
    if (!room.data) return PT_MEMORY_ERROR;
    edges.v.data = static_cast<char *>(room.data);
    edges.strides[0] = 1;
    edges.settle();
    if (int status = copy(c, &edges.v, &e)) return status;
    a.edges = edges.v.data;
    return tally(c, a, x.view, c->in[2].dtype == PT_NONE ? c->in[2] : weights.view);
}

int counted(pt_call *c) {
    const pt_view &x = c->in[0];
    if (x.ndim != 1 || !is_integral(x.dtype) || !weights_fit(x, c->in[1])
        || c->in[1].dtype == PT_FLOAT16 || c->in[1].dtype == PT_BFLOAT16)
        return failed(
            c, PT_RUNTIME_ERROR,
            "expected a vector of integers, and weights of its shape in float32 or float64");
    HistogramArgs a = {};
    a.coordinates = 1, a.total = c->out[0].numel;
    Contiguous dense(c, x), weights(c, c->in[1].dtype == PT_NONE ? x : c->in[1]);
    if (!dense.ok() || !weights.ok()) return PT_MEMORY_ERROR;
    return tally(c, a, dense.view, c->in[1].dtype == PT_NONE ? c->in[1] : weights.view);
}

}  // namespace

const pt_kernel_entry histogram_kernels[] = {
    {"binned", binned}, {"counted", counted}, {nullptr, nullptr}};

}  // namespace pt_cuda
