// cumsum, cumprod, cummax, cummin, logcumsumexp; the calls are those of _ops/scan/scan.cpp and
// running.cpp.
#include <algorithm>

#include "divisor.hpp"
#include "families.hpp"
#include "scan_args.h"
#include "view.hpp"

namespace pt_cuda {
namespace {

enum { SHORT = 64 };
struct Scan { Kernel lines, line_carries, carries, tiles, tile_carries, before; };
#define PT_SCAN(program, name) \
    {{program, name "_lines"}, {program, name "_line_carries"}, {program, name "_carries"}, \
     {program, name "_tiles"}, {program, name "_tile_carries"}, {program, name "_before"}}
const Scan SUM = PT_SCAN("cumulate", "cumsum"), PRODUCT = PT_SCAN("cumulate", "cumprod"),
           EXTREME = PT_SCAN("running", "extreme"), LOG_SUM = PT_SCAN("running", "logsum");
#undef PT_SCAN

// `first` combines each piece and `second` the pieces before each piece, if there are several
// pieces; `last` writes.
int carried(pt_call *c, const Kernel &first, const Kernel &second, const Kernel &last,
            uint64_t kinds, Grid grid, Grid lines, ScanArgs a) {
    Scratch carries(c, a.pieces.by > 1 ? a.lines.by * a.pieces.by * PT_SCAN_CARRY : 0);
    if (a.pieces.by > 1) {
        if (!carries.data) return PT_MEMORY_ERROR;
        a.carries = carries.data;
        int status = launch(c, first, kinds, grid, PT_SCAN_THREADS, a);
        if (!status) status = launch(c, second, kinds, lines, PT_SCAN_THREADS, a);
        if (status) return status;
    }
    return launch(c, last, kinds, grid, PT_SCAN_THREADS, a);
}

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
    int64_t inner = 1;
    for (int d = dim + 1; d < out.ndim; d++) inner *= out.sizes[d];
    const int64_t lines = out.numel / a.length;
    a.inner = divisor(inner), a.lines = divisor(lines);
    const uint64_t kinds = types(out.dtype);
    if (inner == 1 && a.length > SHORT) {
        const int item = item_size(out.dtype),
                  width = 16 / item < PT_SCAN_EACH ? 16 / item : PT_SCAN_EACH;
        a.packed = a.length % width == 0 && (uintptr_t)a.in % 16 == 0 && (uintptr_t)a.out % 16 == 0;
        // As many pieces, of whole tiles, as give the device enough blocks.
        const int64_t tiles = ceil_div(a.length, PT_SCAN_TILE),
                      blocks = (int64_t)multiprocessors(c) * 8;
        const int64_t each = std::max<int64_t>(1, tiles * lines / blocks);
        a.piece = each * PT_SCAN_TILE, a.pieces = divisor(ceil_div(tiles, each));
        return carried(c, kernels.tile_carries, kernels.before, kernels.tiles, kinds,
                       blocks_for(c, lines * a.pieces.by, 1, 32), blocks_for(c, lines, 1), a);
    }
    // Lines beside each other: as many pieces as give the device enough threads, of at least SHORT
    // elements.
    const int64_t many = (int64_t)multiprocessors(c) * 1024, longest = ceil_div(a.length, SHORT);
    a.piece = ceil_div(a.length, std::min(ceil_div(many, lines), longest));
    a.pieces = divisor(ceil_div(a.length, a.piece));
    return carried(c, kernels.line_carries, kernels.carries, kernels.lines, kinds,
                   blocks_for(c, lines * a.pieces.by, PT_SCAN_THREADS, 32),
                   blocks_for(c, lines, PT_SCAN_THREADS), a);
}

int cumsum(pt_call *c) { return scan(c, SUM, ScanArgs()); }
int cumprod(pt_call *c) { return scan(c, PRODUCT, ScanArgs()); }

int extremes(pt_call *c, bool largest) {
    if (is_complex(c->in[0].dtype))
        return failed(c, PT_TYPE_ERROR, "complex numbers have no order");
    ScanArgs a = {};
    a.positions = reinterpret_cast<int64_t *>(c->out[1].data);
    a.largest = largest;
    return scan(c, EXTREME, a);
}
int cummax(pt_call *c) { return extremes(c, true); }
int cummin(pt_call *c) { return extremes(c, false); }

int logcumsumexp(pt_call *c) {
    const int dtype = c->in[0].dtype;
    if (!is_floating(dtype))
        return failed(c, PT_TYPE_ERROR, "dtype must be floating point on this device");
    return scan(c, LOG_SUM, ScanArgs());
}

}  // namespace

const pt_kernel_entry scan_kernels[] = {
    {"cumsum", cumsum}, {"cumprod", cumprod},           {"cummax", cummax},
    {"cummin", cummin}, {"logcumsumexp", logcumsumexp}, {nullptr, nullptr}};

}  // namespace pt_cuda
