// nonzero of a known count; the call is that of _ops/index/advanced_index.cpp.
#include "families.hpp"
#include "nonzero_args.h"
#include "view.hpp"

namespace pt_cuda {
namespace {

const Kernel COUNT = {"nonzero", "nonzero_count"}, SUM = {"nonzero", "nonzero_sum"}, WRITE = {"nonzero", "nonzero_write"};

int nonzero(pt_call *c) {
    const pt_view &out = c->out[0];
    if (out.ndim != 2 || out.sizes[1] != c->in[0].ndim) return failed(c, PT_RUNTIME_ERROR, "expected an output of shape (k, ndim)");
    if (out.numel == 0) return PT_OK;
    Contiguous x(c, c->in[0]);
    if (!x.ok()) return PT_MEMORY_ERROR;
    NonzeroArgs a = {};
    a.in = x.view.data, a.out = reinterpret_cast<int64_t *>(out.data);
    a.n = x.view.numel, a.expected = out.sizes[0], a.ndim = x.view.ndim;
    for (int d = 0; d < a.ndim; d++) a.sizes[d] = x.view.sizes[d];
    a.pieces = (a.n + PT_NONZERO_PIECE - 1) / PT_NONZERO_PIECE;
    Scratch counts(c, 8 * a.pieces);
    if (!counts.data) return PT_MEMORY_ERROR;
    a.counts = static_cast<int64_t *>(counts.data);
    const uint64_t kinds = types(x.view.dtype);
    const int64_t most = (int64_t)multiprocessors(c) * 8;
    const Grid grid{(unsigned)(a.pieces < most ? a.pieces : most), 1, 1};
    int status = launch(c, COUNT, kinds, grid, 256, a);
    if (!status) status = launch(c, SUM, kinds, Grid{1, 1, 1}, PT_NONZERO_SUM_THREADS, a);
    return status ? status : launch(c, WRITE, kinds, grid, 256, a);
}

}  // namespace

const pt_kernel_entry nonzero_kernels[] = {{"nonzero", nonzero}, {nullptr, nullptr}};

}  // namespace pt_cuda
