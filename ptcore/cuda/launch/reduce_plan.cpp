// Plans and launches of reductions.
#include "divisor.hpp"
#include "reduce_plan.hpp"

namespace pt_cuda {
namespace {

int64_t size_of_stride(int64_t s) { return s < 0 ? -s : s; }

// Merges neighbours among dims [first, first + n) that are one walk; returns how many remain.
int merged(ReduceArgs &a, int first, int n) {
    int last = first - 1;
    for (int d = first; d < first + n; d++) {
        if (last >= first && a.strides[last] == a.strides[d] * a.dims.sizes[d]) {
            a.dims.sizes[last] *= a.dims.sizes[d];
            a.strides[last] = a.strides[d];
        } else {
            ++last;
            a.dims.sizes[last] = a.dims.sizes[d];
            a.strides[last] = a.strides[d];
        }
    }
    return last - first + 1;
}

// Whether packs of n neighbours along dim `near` are aligned at every place that the other strides
// lead to.
bool fits(const ReduceArgs &a, int near, int n) {
    if (a.strides[near] != 1 || a.dims.sizes[near] % n) return false;
    for (int d = 0; d < a.kept + a.reduced; d++)
        if (d != near && a.strides[d] % n) return false;
    const auto aligned = [&](const void *p, int item) {
        return (uintptr_t)p % (uintptr_t)(n * item < 16 ? n * item : 16) == 0;
    };
    return aligned(a.in, a.item) && (!a.in2 || aligned(a.in2, a.item2));
}

}  // namespace

int reduced_dims(pt_call *c, int which, int ndim, bool (&mask)[PT_MAX_DIM]) {
    const pt_param &p = c->params[which];
    const int64_t *list = p.kind == PT_PARAM_INTS ? p.list : &p.i;
    const int count = p.kind == PT_PARAM_INTS ? p.count : p.kind == PT_PARAM_NONE ? 0 : 1;
    // An empty list names all dims, or no dim if the output has an element for each of the input.
    const bool each = ndim && c->out[0].numel == c->in[0].numel;
    for (int d = 0; d < ndim; d++) mask[d] = count == 0 && !each;
    for (int i = 0; i < count; i++) {
        const int64_t d = list[i] < 0 ? list[i] + ndim : list[i];
        if (ndim == 0 && (list[i] == 0 || list[i] == -1)) continue;
        if (d < 0 || d >= ndim) {
            std::snprintf(c->error, sizeof(c->error), "dim must be in [%d, %d], got %lld", -ndim,
                          ndim - 1, (long long)list[i]);
            return PT_INDEX_ERROR;
        }
        mask[d] = true;
    }
    return PT_OK;
}

int plan_reduction(pt_call *c, int which, bool ordered, ReduceArgs &a) {
    bool mask[PT_MAX_DIM];
    if (int status = reduced_dims(c, which, c->in[0].ndim, mask)) return status;
    return plan_reduction(c, c->in[0], mask, ordered, a);
}

int plan_reduction(pt_call *c, const pt_view &in, const bool *mask, bool ordered, ReduceArgs &a) {
    a.in2 = nullptr;
    a.out = a.out2 = a.partial = nullptr;
    a.a = a.b = 0;
    a.packed = a.item2 = 0;
    const auto skipped = [&](int d) {
        return in.sizes[d] == 1 || in.numel == 0;
    };     // without elements no place is needed
    int dims = 0;
    for (int d = 0; d < in.ndim; d++) dims += !skipped(d);
    if (dims > PT_REDUCE_DIMS)
        return failed(c, PT_RUNTIME_ERROR,
                      "expected at most 35 dimensions of more than one element");
    int64_t shift = 0;
    a.outputs = a.count = 1;
    int kept = 0;
    for (int d = 0; d < in.ndim; d++)
        if (!mask[d]) {
            a.outputs *= in.sizes[d];
            if (skipped(d)) continue;
            a.dims.sizes[kept] = in.sizes[d];
            a.strides[kept++] = in.strides[d];
        }
    a.kept = kept = merged(a, 0, kept);
    int reduced = 0;
    for (int d = 0; d < in.ndim; d++) {
        if (!mask[d]) continue;
        a.count *= in.sizes[d];
        if (skipped(d)) continue;
        int64_t s = in.strides[d];
        int at = kept + reduced++;
        if (!ordered) {
            if (s < 0 && in.sizes[d] > 0) {
                shift += s * (in.sizes[d] - 1);
                s = -s;
            }
            for (; at > kept && a.strides[at - 1] < s; at--) {
                a.dims.sizes[at] = a.dims.sizes[at - 1];
                a.strides[at] = a.strides[at - 1];
            }
        }
        a.dims.sizes[at] = in.sizes[d];
        a.strides[at] = s;
    }
    if (reduced == 0) {                 // there is always a reduced dim
        a.dims.sizes[kept] = 1;
        a.strides[kept] = 1;
        reduced = 1;
    }
    a.reduced = merged(a, kept, reduced);
    divide_by_sizes(a.dims, kept + a.reduced, kept);
    a.item = (uint8_t)item_size(in.dtype);
    a.in = in.data + shift * a.item;
    return PT_OK;
}

Spread spread_reduction(pt_call *c, const Reduction &op, int64_t most, ReduceArgs &a) {
    const int item = a.item > a.item2 ? a.item : a.item2, vector = item > 16 ? 1 : 16 / item;
    int64_t near = a.strides[a.kept];           // the smallest among reduced dims
    for (int d = a.kept; d < a.kept + a.reduced; d++)
        if (size_of_stride(a.strides[d]) < size_of_stride(near)) near = a.strides[d];
    const bool columns =
        a.kept > 0 && a.count > 1 && size_of_stride(a.strides[a.kept - 1]) < size_of_stride(near);
    const int64_t busy = (int64_t)multiprocessors(c) * 8;       // blocks that fill the device
    const Kernel *kernel = &op.rows;
    int64_t blocks, step;                       // step: reduced elements that a block takes at once
    if (columns) {
        const int side_by_side = vector > 4 ? 4 : vector,
                  v = fits(a, a.kept - 1, side_by_side) ? side_by_side : 1;
        const int64_t width = ceil_div(a.dims.sizes[a.kept - 1], v);
        a.log2 = width >= 32 ? 5 : ceil_log2(width);
        kernel = v > 1 ? &op.vectors : &op.columns;
        blocks = ceil_div(a.outputs, (int64_t)v << a.log2);
        step = (int64_t)(PT_REDUCE_THREADS >> a.log2) * 4;
    } else {
        a.packed = a.reduced > 1 && fits(a, a.kept + a.reduced - 1, vector);
        const int64_t loads =
            ceil_div(a.count, a.packed || (a.reduced == 1 && near == 1) ? vector : 1);
        int log2 = ceil_log2(ceil_div(loads, 4));
        const int whole = ceil_log2(loads);     // a load for each thread
        if (log2 < 3) log2 = whole < 3 ? whole : 3;
        while (log2 < 8 && log2 < whole && (a.outputs << log2) < busy * PT_REDUCE_THREADS) log2++;
        a.log2 = log2 > 8 ? 8 : log2;
        blocks = ceil_div(a.outputs, PT_REDUCE_THREADS >> a.log2);
        step = ((int64_t)vector << a.log2) * 4;
    }
    int64_t parts = 1;
    a.chunk = a.count;
    if (blocks < busy && a.count >= 2 * step) {
        parts = ceil_div(busy, blocks);
        if (parts > a.count / step) parts = a.count / step;
        if (parts > most) parts = most;
        a.chunk = ceil_div(ceil_div(a.count, parts), 16) * 16;
        parts = ceil_div(a.count, a.chunk);
    }
    return {kernel, Grid{(unsigned)(blocks < 4 * busy ? blocks : 4 * busy), (unsigned)parts, 1}};
}

int reduce(pt_call *c, const Reduction &op, uint64_t types, ReduceArgs &a) {
    if (a.outputs == 0) return PT_OK;
    const Spread s = spread_reduction(c, op, 4096, a);
    const int64_t parts = s.grid.y;
    if (parts == 1) return launch(c, *s.kernel, types, s.grid, PT_REDUCE_THREADS, a);
    Scratch states(c, parts * a.outputs * PT_REDUCE_STATE);
    if (!states.data) return PT_MEMORY_ERROR;
    a.partial = states.data;
    if (int status = launch(c, *s.kernel, types, s.grid, PT_REDUCE_THREADS, a)) return status;
    a.in = states.data;
    a.partial = nullptr;
    a.count = parts;
    a.log2 = a.outputs >= 4096 ? 0 : parts >= PT_REDUCE_THREADS ? 8 : ceil_log2(parts);
    const int64_t blocks = ceil_div(a.outputs, PT_REDUCE_THREADS >> a.log2),
                  most = (int64_t)multiprocessors(c) * 32;
    const Grid finish{(unsigned)(blocks < most ? blocks : most), 1, 1};
    return launch(c, op.finish, types, finish, PT_REDUCE_THREADS, a);
}

}  // namespace pt_cuda
