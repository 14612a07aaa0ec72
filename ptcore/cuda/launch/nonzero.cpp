// nonzero with a known count, and elements chosen by a mask; the calls are those of
// _ops/index/advanced_index.cpp and place.cpp.
#include <algorithm>

#include "divisor.hpp"
#include "families.hpp"
#include "nonzero_args.h"
#include "view.hpp"

namespace pt_cuda {
namespace {

const Kernel COUNT = {"nonzero", "nonzero_count"}, SUM = {"nonzero", "nonzero_sum"},
             WRITE = {"nonzero", "nonzero_write"}, COLLECT = {"mask", "mask_collect"},
             SCATTER = {"mask", "mask_scatter"};

// Counts the nonzero elements of a dense tensor; run(grid) then launches what uses the counts.
template <class Run> int through(pt_call *c, const pt_view &in, NonzeroArgs &a, Run run) {
    a.in = in.data, a.n = in.numel;
    a.packed = (uintptr_t)a.in % 16 == 0;
    a.pieces = ceil_div(a.n, PT_NONZERO_PIECE);
    Scratch counts(c, 8 * (a.pieces + 1));
    if (!counts.data) return PT_MEMORY_ERROR;
    a.counts = static_cast<int64_t *>(counts.data);
    const uint64_t types_in = types(in.dtype);
    const Grid grid = blocks_for(c, a.pieces, 1, 8);
    int status = launch(c, COUNT, types_in, grid, PT_NONZERO_THREADS, a);
    if (!status) status = launch(c, SUM, types_in, Grid{1, 1, 1}, PT_NONZERO_SUM_THREADS, a);
    return status ? status : run(grid);
}

int nonzero(pt_call *c) {
    const pt_view &out = c->out[0];
    if (out.ndim != 2 || out.sizes[1] != c->in[0].ndim)
        return failed(c, PT_RUNTIME_ERROR, "expected an output of shape (k, ndim)");
    if (out.numel == 0) return PT_OK;
    Contiguous x(c, c->in[0]);
    if (!x.ok()) return PT_MEMORY_ERROR;
    NonzeroArgs a = {};
    a.out = reinterpret_cast<int64_t *>(out.data), a.expected = out.sizes[0], a.ndim = x.view.ndim;
    return through(c, x.view, a, [&](const Grid &grid) {
        int64_t behind = 1;
        int status = PT_OK;
        for (int end = a.ndim; end > 0 && !status; end = a.first) {
            a.first = std::max(0, end - PT_NONZERO_DIMS), a.dims = end - a.first,
            a.behind = divisor(behind);
            for (int d = 0; d < a.dims; d++) {
                a.sizes[d] = divisor(x.view.sizes[a.first + d]);
                behind *= x.view.sizes[a.first + d];
            }
            status = launch(c, WRITE, types(x.view.dtype), grid, PT_NONZERO_THREADS, a);
        }
        return status;
    });
}

// in[0] and in[1]: elements and a mask of their shape
int fits(pt_call *c) {
    const pt_view &x = c->in[0], &mask = c->in[1];
    bool same = mask.dtype == PT_BOOL && mask.ndim == x.ndim;
    for (int d = 0; same && d < x.ndim; d++) same = mask.sizes[d] == x.sizes[d];
    return same ? PT_OK : failed(c, PT_RUNTIME_ERROR, "mask must be bool and have input's shape");
}

int masked_collect(pt_call *c) {
    const pt_view &out = c->out[0];
    if (int status = fits(c)) return status;
    if (out.numel == 0) return PT_OK;
    Contiguous x(c, c->in[0]), mask(c, c->in[1]);
    if (!x.ok() || !mask.ok()) return PT_MEMORY_ERROR;
    NonzeroArgs a = {};
    a.x = x.view.data, a.y = out.data, a.expected = out.numel;
    return through(c, mask.view, a, [&](const Grid &grid) {
        return launch(c, COLLECT, by_size(out.dtype), grid, PT_NONZERO_THREADS, a);
    });
}

int masked_write(pt_call *c) {
    const pt_view &out = c->out[0];
    if (int status = fits(c)) return status;
    if (out.numel == 0) return PT_OK;
    Contiguous x(c, c->in[0]), mask(c, c->in[1]), source(c, c->in[2]);
    if (!x.ok() || !mask.ok() || !source.ok()) return PT_MEMORY_ERROR;
    NonzeroArgs a = {};
    a.x = x.view.data, a.source = source.view.data, a.y = out.data, a.expected = source.view.numel;
    a.fault = fault_of(c), a.op = c->op;
    return through(c, mask.view, a, [&](const Grid &grid) {
        return launch(c, SCATTER, by_size(out.dtype), grid, PT_NONZERO_THREADS, a);
    });
}

}  // namespace

const pt_kernel_entry nonzero_kernels[] = {{"nonzero", nonzero}, {"masked_collect", masked_collect},
                                           {"masked_write", masked_write}, {nullptr, nullptr}};

}  // namespace pt_cuda
