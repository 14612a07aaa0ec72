// sort, topk and randperm; the calls are those of _ops/kernels/sort.cpp and random.cpp.
#include "families.hpp"
#include "sort_args.h"
#include "view.hpp"

namespace pt_cuda {
namespace {

enum { THREADS = 256, CHUNK = 512 };
const Kernel OPEN = {"sort", "sort_open"}, CLOSE = {"sort", "sort_close"}, CHUNKS = {"sort_stages", "sort_chunks"},
             WITHIN = {"sort_stages", "sort_within"}, ACROSS = {"sort_stages", "sort_across"},
             SHUFFLE = {"permute", "permute_open"}, SHUFFLED = {"permute", "permute_close"};
const uint64_t ENTRIES = types(PT_INT64);

int64_t power_of_two(int64_t n) {
    int64_t size = 2;
    while (size < n) size *= 2;
    return size;
}

// Sorts the entries of every line.
int stages(pt_call *c, SortArgs a) {
    const uint64_t total = (uint64_t)a.lines * a.size;
    const Grid chunks{(unsigned)((total + CHUNK - 1) / CHUNK), 1, 1};
    int status = launch(c, CHUNKS, ENTRIES, chunks, THREADS, a);
    for (uint64_t run = 2 * CHUNK; !status && run <= (uint64_t)a.size; run *= 2) {
        a.run = run;
        for (a.step = run / 2; !status && a.step >= CHUNK; a.step /= 2)
            status = launch(c, ACROSS, ENTRIES, blocks_for(c, total / 2, THREADS, 32), THREADS, a);
        if (!status) status = launch(c, WITHIN, ENTRIES, chunks, THREADS, a);
    }
    return status;
}

// kept < 0: all
int order_along(pt_call *c, const pt_param &along, int64_t kept, bool descending) {
    const int ndim = c->in[0].ndim ? c->in[0].ndim : 1;
    const int64_t dim = along.i < 0 ? along.i + ndim : along.i;
    if (dim < 0 || dim >= ndim) return failed(c, PT_INDEX_ERROR, "dim is out of range");
    if (c->in[0].dtype >= PT_COMPLEX64) return failed(c, PT_TYPE_ERROR, "complex numbers have no order");
    SortArgs a = {};
    a.length = c->in[0].ndim ? c->in[0].sizes[dim] : 1;
    a.inner = 1;
    for (int d = (int)dim + 1; d < c->in[0].ndim; d++) a.inner *= c->in[0].sizes[d];
    a.kept = kept < 0 ? a.length : kept;
    if (a.kept > a.length) return failed(c, PT_RUNTIME_ERROR, "k is out of range for the size of the dim");
    if (c->out[0].numel == 0) return PT_OK;
    Contiguous x(c, c->in[0]);
    if (!x.ok()) return PT_MEMORY_ERROR;
    a.lines = x.view.numel / a.length;
    a.size = power_of_two(a.length);
    a.descending = descending;
    Scratch room(c, a.lines * a.size * (int64_t)sizeof(SortEntry));
    if (!room.data) return PT_MEMORY_ERROR;
    a.in = x.view.data, a.values = c->out[0].data, a.positions = c->out[1].data;
    a.entries = static_cast<SortEntry *>(room.data);
    const uint64_t kinds = types(x.view.dtype);
    int status = launch(c, OPEN, kinds, blocks_for(c, a.lines * a.size, THREADS, 32), THREADS, a);
    if (!status) status = stages(c, a);
    return status ? status : launch(c, CLOSE, kinds, blocks_for(c, a.lines * a.kept, THREADS, 32), THREADS, a);
}

int sort(pt_call *c) { return order_along(c, c->params[0], -1, c->params[1].i != 0); }

int topk(pt_call *c) {
    const int64_t k = c->params[0].i;
    if (k < 0) return failed(c, PT_RUNTIME_ERROR, "k must not be negative");
    return order_along(c, c->params[1], k, c->params[2].i != 0);
}

int randperm(pt_call *c) {
    const pt_view &out = c->out[0];
    if (out.dtype >= PT_COMPLEX64) return failed(c, PT_TYPE_ERROR, "dtype must be real");
    if (out.numel == 0) return PT_OK;
    SortArgs a = {};
    a.lines = a.inner = 1, a.length = out.numel, a.size = power_of_two(a.length);
    a.seed = c->seed, a.offset = c->offset;
    Scratch room(c, a.size * (int64_t)sizeof(SortEntry));
    if (!room.data) return PT_MEMORY_ERROR;
    a.entries = static_cast<SortEntry *>(room.data), a.positions = out.data;
    int status = launch(c, SHUFFLE, types(out.dtype), blocks_for(c, a.size, THREADS, 32), THREADS, a);
    if (!status) status = stages(c, a);
    return status ? status : launch(c, SHUFFLED, types(out.dtype), blocks_for(c, a.length, THREADS, 32), THREADS, a);
}

}  // namespace

const pt_kernel_entry sort_kernels[] = {{"sort", sort}, {"topk", topk}, {"randperm", randperm}, {nullptr, nullptr}};

}  // namespace pt_cuda
