// sort, topk, randperm and places_among; the calls are those of _ops/sort/sort.cpp, random.cpp and
// search.cpp.
#include <algorithm>
#include <climits>

#include "divisor.hpp"
#include "families.hpp"
#include "sort_args.h"
#include "view.hpp"

namespace pt_cuda {
namespace {

enum { THREADS = 256 };
const Kernel OPEN = {"sort", "sort_open"}, CLOSE = {"sort", "sort_close"},
             BLOCK = {"sort_stages", "sort_block"}, SELECT = {"topk", "topk_select"},
             COUNT = {"sort_stages", "sort_count"}, SUM = {"sort_stages", "sort_sum"},
             PLACE = {"sort_stages", "sort_place"}, SHUFFLE = {"permute", "permute_open"},
             SHUFFLED = {"permute", "permute_close"}, SEARCH = {"search", "search_places"};

// The least power of two that is above 1 and not below n.
int64_t power_of_two(int64_t n) {
    int64_t p = 2;
    while (p < n) p *= 2;
    return p;
}

// Sorts lines by keys of `bytes`: open(a) launches the kernel that fills a.entries, close(a) the
// kernel that reads them. Lines that a block can sort are padded to a power of two.
template <class Open, class Close> int sort_entries(pt_call *c, SortArgs &a, int bytes, Open open,
                                                    Close close) {
    const bool block = a.length <= PT_SORT_BLOCK;
    const int64_t size = block ? power_of_two(a.length) : a.length;
    const int64_t tiles = ceil_div(a.length, a.brief ? PT_SORT_TILE : PT_SORT_TILE / 2);
    a.size = divisor(size), a.tiles = divisor(tiles);
    const int64_t room = a.lines * size * (int64_t)(a.brief ? sizeof(uint64_t) : sizeof(SortEntry));
    const int64_t rows = a.lines * 256;
    Scratch entries(c, room), other(c, block ? 0 : room),
        counts(c, block ? 0 : 8 * rows * (tiles + 1));
    if (!entries.data || (!block && (!other.data || !counts.data))) return PT_MEMORY_ERROR;
    a.entries = entries.data, a.other = other.data;
    a.counts = static_cast<int64_t *>(counts.data), a.totals = a.counts + rows * tiles;
    const uint64_t kind = types(a.brief ? PT_INT32 : PT_INT64);
    const int64_t blocks = ceil_div(a.lines * size, PT_SORT_BLOCK);
    int status = open(a);
    if (!status && block) status = launch(c, BLOCK, kind, Grid{(unsigned)blocks, 1, 1}, THREADS, a);
    const Grid each = blocks_for(c, a.lines * tiles, 1, 32),
               warps = blocks_for(c, rows, THREADS / 32, 32);
    for (a.shift = 0; !block && !status && a.shift < 8 * bytes; a.shift += 8) {
        status = launch(c, COUNT, kind, each, THREADS, a);
        if (!status) status = launch(c, SUM, kind, warps, THREADS, a);
        if (!status) status = launch(c, PLACE, kind, each, THREADS, a);
        void *sorted = a.other;
        a.other = a.entries, a.entries = sorted;
    }
    return status ? status : close(a);
}

// The first entries of long lines: each part selects its first entries, and a block sorts them.
template <class Close> int select_entries(pt_call *c, SortArgs &a, uint64_t kinds, Close close) {
    const int64_t kept = a.kept.by,
                  most = std::min<int64_t>(PT_SORT_BLOCK / kept, a.length / PT_SORT_TILE);
    a.parts = std::max<int64_t>(1, std::min<int64_t>(most, 2 * multiprocessors(c) / a.lines));
    a.part = ceil_div(a.length, a.parts);
    a.parts = ceil_div(a.length, a.part);
    const int64_t size = power_of_two(a.parts * kept);
    a.size = divisor(size);
    const int64_t selected = a.lines * a.parts, blocks = ceil_div(a.lines * size, PT_SORT_BLOCK);
    Scratch entries(c, a.lines * size * (int64_t)(a.brief ? sizeof(uint64_t) : sizeof(SortEntry)));
    if (!entries.data) return PT_MEMORY_ERROR;
    a.entries = entries.data;
    int status = launch(c, SELECT, kinds, Grid{(unsigned)selected, 1, 1}, 2 * THREADS, a);
    if (!status)
        status = launch(c, BLOCK, types(a.brief ? PT_INT32 : PT_INT64),
                        Grid{(unsigned)blocks, 1, 1}, THREADS, a);
    return status ? status : close(a);
}

// kept < 0: all
int order_along(pt_call *c, const pt_param &along, int64_t kept, bool descending) {
    const int ndim = c->in[0].ndim ? c->in[0].ndim : 1;
    const int64_t dim = along.i < 0 ? along.i + ndim : along.i;
    if (dim < 0 || dim >= ndim) return failed(c, PT_INDEX_ERROR, "dim is out of range");
    if (is_complex(c->in[0].dtype))
        return failed(c, PT_TYPE_ERROR, "complex numbers have no order");
    SortArgs a = {};
    a.length = c->in[0].ndim ? c->in[0].sizes[dim] : 1;
    int64_t inner = 1;
    for (int d = (int)dim + 1; d < c->in[0].ndim; d++) inner *= c->in[0].sizes[d];
    if (kept < 0) kept = a.length;
    if (kept > a.length)
        return failed(c, PT_RUNTIME_ERROR, "k is out of range for the size of the dim");
    if (c->out[0].numel == 0) return PT_OK;
    Contiguous x(c, c->in[0]);
    if (!x.ok()) return PT_MEMORY_ERROR;
    a.lines = x.view.numel / a.length;
    a.kept = divisor(kept), a.inner = divisor(inner);
    a.descending = descending;
    a.in = x.view.data, a.values = c->out[0].data, a.positions = c->out[1].data;
    const uint64_t kinds = types(x.view.dtype);
    const int bytes = item_size(x.view.dtype);
    a.brief = bytes <= 4 && a.length < (int64_t)1 << 32;
    const auto close = [&](const SortArgs &b) {
        return launch(c, CLOSE, kinds, blocks_for(c, b.lines * b.kept.by, THREADS, 32), THREADS, b);
    };
    if (a.length > PT_SORT_BLOCK && kept <= PT_SORT_BLOCK && a.length <= INT_MAX &&
        a.lines <= INT_MAX / PT_SORT_BLOCK)
        return select_entries(c, a, kinds, close);
    return sort_entries(c, a, bytes, [&](const SortArgs &b) {
        return launch(c, OPEN, kinds, blocks_for(c, b.lines * b.size.by, THREADS, 32), THREADS, b);
    }, close);
}

int sort(pt_call *c) { return order_along(c, c->params[0], -1, c->params[1].i != 0); }

int topk(pt_call *c) {
    const int64_t k = c->params[0].i;
    if (k < 0) return failed(c, PT_RUNTIME_ERROR, "k must not be negative");
    return order_along(c, c->params[1], k, c->params[2].i != 0);
}

int randperm(pt_call *c) {
    const pt_view &out = c->out[0];
    if (is_complex(out.dtype)) return failed(c, PT_TYPE_ERROR, "dtype must be real");
    if (out.numel == 0) return PT_OK;
    SortArgs a = {};
    a.lines = 1, a.length = out.numel;
    draw_from(c, a.base, a.seed, a.offset);
    a.positions = out.data;
    return sort_entries(
        c, a, 8,
        [&](const SortArgs &b) {
            return launch(c, SHUFFLE, types(out.dtype), blocks_for(c, b.size.by, THREADS, 32),
                          THREADS, b);
        },
        [&](const SortArgs &b) {
            return launch(c, SHUFFLED, types(out.dtype), blocks_for(c, b.length, THREADS, 32),
                          THREADS, b);
        });
}

int places_among(pt_call *c) {
    const pt_view &sorted = c->in[0], &x = c->in[1];
    if (x.numel == 0) return PT_OK;
    if (sorted.ndim == 0)
        return failed(c, PT_RUNTIME_ERROR, "expected a sequence of at least 1 dimension");
    SearchArgs a = {};
    a.sorted = sorted.data, a.in = x.data, a.out = reinterpret_cast<int64_t *>(c->out[0].data);
    a.total = x.numel, a.n = sorted.sizes[sorted.ndim - 1];
    const int64_t width = x.ndim ? x.sizes[x.ndim - 1] : 1;
    a.single = sorted.ndim == 1, a.width = divisor(width);
    a.right = c->params[0].i != 0;
    if (!a.single && a.n && sorted.numel / a.n != x.numel / width)
        return failed(c, PT_RUNTIME_ERROR, "expected a sequence with the rows of input");
    return launch(c, SEARCH, types(x.dtype), blocks_for(c, a.total, THREADS, 32), THREADS, a);
}

}  // namespace

const pt_kernel_entry sort_kernels[] = {{"sort", sort}, {"topk", topk}, {"randperm", randperm},
                                        {"places_among", places_among}, {nullptr, nullptr}};

}  // namespace pt_cuda
