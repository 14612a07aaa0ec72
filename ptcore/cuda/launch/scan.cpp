// cumsum, cumprod, cummax, cummin, logcumsumexp; the calls are those of _ops/scan/scan.cpp and running.cpp.
#include "families.hpp"
#include "scan_args.h"
#include "view.hpp"

namespace pt_cuda {
namespace {

enum { THREADS = 256, SHORT = 64 };
struct Scan { Kernel lines, blocks; };
const Scan SUM = {{"cumulate", "cumsum_lines"}, {"cumulate", "cumsum_blocks"}},
           PRODUCT = {{"cumulate", "cumprod_lines"}, {"cumulate", "cumprod_blocks"}},
           EXTREME = {{"running", "extreme_lines"}, {"running", "extreme_blocks"}},
           LOG_SUM = {{"running", "logsum_lines"}, {"running", "logsum_blocks"}};

int scan(pt_call *c, const Scan &kernels, ScanArgs a) {
    const pt_view &out = c->out[0];
    int dim, status = dim_of(c, out.ndim ? out.ndim : 1, dim);
    if (status || out.numel == 0) return status;
    // The input, dense and of the output's dtype.
    Scratch room(c, c->in[0].dtype == out.dtype ? 0 : out.numel * item_size(out.dtype));
    View converted(out);
    if (c->in[0].dtype != out.dtype) {
        if (!room.data) return PT_MEMORY_ERROR;
        converted.v.data = static_cast<char *>(room.data);
        status = copy(c, &converted.v, &c->in[0]);
        if (status) return status;
    }
    Contiguous x(c, c->in[0].dtype == out.dtype ? c->in[0] : converted.v);
    if (!x.ok()) return PT_MEMORY_ERROR;
    a.in = x.view.data, a.out = out.data;
    a.length = out.ndim ? out.sizes[dim] : 1;
    a.inner = 1;
    for (int d = dim + 1; d < out.ndim; d++) a.inner *= out.sizes[d];
    a.lines = out.numel / a.length;
    const int64_t many = (int64_t)multiprocessors(c) * THREADS;
    if (a.length <= SHORT || a.lines >= many) return launch(c, kernels.lines, types(out.dtype), blocks_for(c, a.lines, THREADS), THREADS, a);
    const int64_t most = (int64_t)multiprocessors(c) * 8;
    return launch(c, kernels.blocks, types(out.dtype), Grid{(unsigned)(a.lines < most ? a.lines : most), 1, 1}, THREADS, a);
}

int cumsum(pt_call *c) { return scan(c, SUM, ScanArgs()); }
int cumprod(pt_call *c) { return scan(c, PRODUCT, ScanArgs()); }

int extremes(pt_call *c, bool largest) {
    if (c->in[0].dtype >= PT_COMPLEX64) return failed(c, PT_TYPE_ERROR, "complex numbers have no order");
    ScanArgs a = {};
    a.positions = reinterpret_cast<int64_t *>(c->out[1].data);
    a.largest = largest;
    return scan(c, EXTREME, a);
}
int cummax(pt_call *c) { return extremes(c, true); }
int cummin(pt_call *c) { return extremes(c, false); }

int logcumsumexp(pt_call *c) {
    const int dtype = c->in[0].dtype;
    if (dtype < PT_FLOAT16 || dtype > PT_FLOAT64) return failed(c, PT_TYPE_ERROR, "dtype must be floating point on this device");
    return scan(c, LOG_SUM, ScanArgs());
}

}  // namespace

const pt_kernel_entry scan_kernels[] = {{"cumsum", cumsum}, {"cumprod", cumprod}, {"cummax", cummax}, {"cummin", cummin},
                                        {"logcumsumexp", logcumsumexp}, {nullptr, nullptr}};

}  // namespace pt_cuda
