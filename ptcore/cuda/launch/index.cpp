// Indexing: gather, scatter, index_select, index_add, embedding, and indexing by several tensors.
// All are one walk over (values or output, tensor, index) in which the index moves the tensor's
// address; several indices are first made one index of byte offsets. The kernel leaves a bad index
// out and reports it (fault.h): the host raises at its next synchronisation.
#include "dense.hpp"
#include "families.hpp"
#include "index_args.h"
#include "view.hpp"

namespace pt_cuda {
namespace {

enum { THREADS = 256, PER_THREAD = 4 };
const Kernel TAKE = {"index", "index_take"}, PUT = {"index", "index_put"},
             PLACES = {"index", "index_places"}, TAKE_WORDS = {"index", "index_take_words"},
             PUT_WORDS = {"index", "index_put_words"},
             ACCUMULATE = {"index_add", "index_accumulate"},
             PRODUCT = {"scatter_reduce", "scatter_prod"},
             LINES = {"scatter_reduce", "scatter_prod_lines"},
             AMAX = {"scatter_reduce", "scatter_amax"}, AMIN = {"scatter_reduce", "scatter_amin"};

// If an index stands for rows of whole words of 16 bytes, w becomes the walk over these words.
bool row_by_words(Walk &w, const IndexArgs &a, int item) {
    const int inner = w.ndim - 1;
    if (item == 16 || inner < 0 || w.strides[2][inner] || w.sizes[inner] * item % 16 ||
        a.stride % 16)
        return false;
    for (int k = 0; k < 2; k++) {
        if (w.strides[k][inner] != item || (uintptr_t)a.data[k] % 16) return false;
        for (int d = 0; d < inner; d++)
            if (w.strides[k][d] % 16) return false;
    }
    w.sizes[inner] = w.sizes[inner] * item / 16;
    w.strides[0][inner] = w.strides[1][inner] = 16;
    return true;
}

// Launches a kernel over the walk of three views of equal sizes (the first view's count). The
// caller sets a.size and the other fields of the index.
int over(pt_call *c, const Kernel &kernel, uint64_t kinds, IndexArgs a, const View &first,
         const View &moved, const View &index, const Kernel *by_words = nullptr) {
    const pt_view *views[3] = {&first.v, &moved.v, &index.v};
    int64_t n = 1;
    for (int d = 0; d < first.v.ndim; d++) n *= first.v.sizes[d];
    if (n == 0) return PT_OK;
    a.data[0] = first.v.data, a.data[1] = moved.v.data, a.data[2] = index.v.data;
    a.op = c->op;
    a.fault = fault_of(c);
    Walk walk = walk_of(views, 3);
    const bool words = by_words && row_by_words(walk, a, item_size(first.v.dtype));
    if (words) kinds = by_size(PT_COMPLEX128);
    return by_parts(walk, nullptr, [&](const Walk &part, const int64_t *at) {
        IndexArgs b = a;
        b.n = part.count();
        for (int k = 0; k < 3; k++) b.data[k] += at[k];
        pack(part, b.walk);
        const int each = words ? 1 : PER_THREAD;
        return launch(c, words ? *by_words : kernel, kinds,
                      blocks_for(c, ceil_div(b.n, each), THREADS, 32), THREADS, b);
    });
}


IndexArgs along(const View &tensor, int dim) {
    IndexArgs a = {};
    a.size = tensor.sizes[dim];
    a.stride = tensor.strides[dim] * item_size(tensor.v.dtype);
    a.dim = dim;
    a.skipped = -1;
    a.alpha[0] = 1;
    a.whole_alpha = 1;
    if (a.size == 0) a.size = -1;                       // no index fits
    return a;
}

// The tensor in the walk over `shape`: the indexed dim has stride 0, the other dims keep their
// strides.
View standing(const View &tensor, const View &shape, int dim) {
    View r(tensor);
    for (int d = 0; d < r.v.ndim; d++) r.sizes[d] = shape.sizes[d];
    r.strides[dim] = 0;
    return r;
}

// The first elements of v, with the sizes of `shape`.
View cut(const View &v, const View &shape) {
    View r(v);
    for (int d = 0; d < r.v.ndim; d++) r.sizes[d] = shape.sizes[d];
    return r;
}

int gather(pt_call *c) {
    if (c->in[1].numel == 0) return PT_OK;              // it may have any number of dims
    View x = at_least_1d(c->in[0]), index = at_least_1d(c->in[1]), out = at_least_1d(c->out[0]);
    int dim, status = dim_of(c, x.v.ndim, dim);
    if (status) return status;
    if (index.v.ndim != x.v.ndim || index.v.dtype != PT_INT64)
        return bad(c, "expected an int64 index with input's dims");
    return over(c, TAKE, by_size(x.v.dtype), along(x, dim), out, standing(x, out, dim), index,
                &TAKE_WORDS);
}

// out = input, unless it is input
int start(pt_call *c) {
    return c->out[0].data == c->in[0].data ? (int)PT_OK : copy(c, &c->out[0], &c->in[0]);
}

// The tensor in which values are added up: the output or, for half types, a float32 tensor, which
// is rounded once, as on the CPU.
class Sums {
    pt_call *const c;
    const pt_view &out;
    const bool wide;
    const Scratch room;
    const View dense;

    static View of(const pt_view &out, void *data) {
        View r(out);
        r.v.data = static_cast<char *>(data), r.v.dtype = PT_FLOAT32;
        int64_t step = 1;
        for (int d = r.v.ndim - 1; d >= 0; d--) r.strides[d] = step, step *= r.sizes[d];
        r.settle();
        return r;
    }

public:
    const pt_view &view;
    const uint64_t kinds;

    Sums(pt_call *c, const pt_view &out)
        : c(c), out(out), wide(floating(out) && item_size(out.dtype) == 2),
          room(c, wide ? out.numel * 4 : 0), dense(of(out, room.data)), view(wide ? dense.v : out),
          kinds(wide ? types(PT_FLOAT32, out.dtype) : types(out.dtype)) {}
    // Starts from the values of a tensor; NULL: from 0.
    int begin(const pt_view *from) {
        if (wide && out.numel && !room.data) return PT_MEMORY_ERROR;
        if (!from) return clear(c, view.data, view.numel * item_size(view.dtype));
        return from->data == view.data ? (int)PT_OK : copy(c, &view, from);
    }
    int end() { return wide ? copy(c, &out, &view) : (int)PT_OK; }
};

int scatter_by(pt_call *c, const Kernel &kernel, uint64_t kinds, const pt_view &result) {
    if (c->in[1].numel == 0) return PT_OK;              // it may have any number of dims
    View index = at_least_1d(c->in[1]), src = at_least_1d(c->in[2]), out = at_least_1d(result);
    int dim, status = dim_of(c, out.v.ndim, dim);
    if (status) return status;
    if (index.v.ndim != out.v.ndim || src.v.ndim != out.v.ndim || index.v.dtype != PT_INT64)
        return bad(c, "expected an int64 index and src with input's dims");
    IndexArgs a = along(out, dim);
    View to = standing(out, index, dim), values = cut(src, index);
    if (&kernel == &LINES) {
        a.line = index.sizes[dim];
        a.line_strides[0] = values.strides[dim] * item_size(values.v.dtype),
        a.line_strides[1] = index.strides[dim] * 8;
        if (a.line) to.sizes[dim] = values.sizes[dim] = index.sizes[dim] = 1;
    }
    return over(c, kernel, kinds, a, values, to, index);
}
int scatter_into(pt_call *c, const Kernel &kernel, bool sized) {
    const int status = start(c), dtype = c->out[0].dtype;
    return status ? status
                  : scatter_by(c, kernel, sized ? by_size(dtype) : types(dtype), c->out[0]);
}
int scatter(pt_call *c) { return scatter_into(c, PUT, true); }
int scatter_prod(pt_call *c) {
    return scatter_into(c, c->out[0].dtype == PT_COMPLEX128 ? LINES : PRODUCT, false);
}
int scatter_amax(pt_call *c) { return scatter_into(c, AMAX, false); }
int scatter_amin(pt_call *c) { return scatter_into(c, AMIN, false); }
int scatter_add(pt_call *c) {
    Sums sums(c, c->out[0]);
    int status = sums.begin(&c->in[0]);
    if (!status) status = scatter_by(c, ACCUMULATE, sums.kinds, sums.view);
    return status ? status : sums.end();
}

// A vector of indices seen along `dim` of a shape.
View spread(const pt_view &index, const View &shape, int dim) {
    View r(shape);
    r.v.data = index.data, r.v.dtype = index.dtype;
    for (int d = 0; d < r.v.ndim; d++) r.strides[d] = 0;
    r.strides[dim] = index.ndim ? index.strides[0] : 0;
    return r;
}

int index_select(pt_call *c) {
    View x = at_least_1d(c->in[0]), out = at_least_1d(c->out[0]);
    int dim, status = dim_of(c, x.v.ndim, dim);
    if (status) return status;
    if (c->in[1].ndim > 1 || c->in[1].dtype != PT_INT64)
        return bad(c, "expected an int64 index of at most one dim");
    return over(c, TAKE, by_size(x.v.dtype), along(x, dim), out, standing(x, out, dim),
                spread(c->in[1], out, dim), &TAKE_WORDS);
}

int index_add(pt_call *c) {
    Sums sums(c, c->out[0]);
    View src = at_least_1d(c->in[2]), out = at_least_1d(sums.view);
    int dim, status = dim_of(c, out.v.ndim, dim);
    if (!status) status = sums.begin(&c->in[0]);
    if (status) return status;
    bool fits = src.v.ndim == out.v.ndim && c->in[1].ndim <= 1 && c->in[1].dtype == PT_INT64 &&
                src.sizes[dim] == c->in[1].numel;
    for (int d = 0; fits && d < out.v.ndim; d++) fits = d == dim || src.sizes[d] == out.sizes[d];
    if (!fits) return bad(c, "expected src like input with an entry along dim for each index");
    IndexArgs a = along(out, dim);
    const pt_param &alpha = c->params[1];
    a.alpha[0] = alpha.d, a.alpha[1] = alpha.im, a.whole_alpha = alpha.i;
    if (is_integral(c->out[0].dtype)) {
        const int status = whole_factor(c, "alpha", alpha, a.whole_alpha);
        if (status) return status;
    }
    status = over(c, ACCUMULATE, sums.kinds, a, src, standing(out, src, dim),
                  spread(c->in[1], src, dim));
    return status ? status : sums.end();
}

// Rows (index's dims, n) of a weight (count, n); the index stands for the weight's first dim.
View rows_of(const pt_view &weight, const pt_view &index) {
    View r(index);
    r.v.data = weight.data, r.v.dtype = weight.dtype;
    for (int d = 0; d < r.v.ndim; d++) r.strides[d] = 0;
    r.push(weight.sizes[1], weight.strides[1]);
    return r;
}

int embedding(pt_call *c) {
    const pt_view &w = c->in[0];
    if (w.ndim != 2 || c->in[1].dtype != PT_INT64)
        return bad(c, "expected a weight of 2 dims and an int64 index");
    View index(c->in[1]);
    index.push(w.sizes[1], 0);
    return over(c, TAKE, by_size(w.dtype), along(View(w), 0), View(c->out[0]), rows_of(w, c->in[1]),
                index, &TAKE_WORDS);
}

int embedding_backward(pt_call *c) {
    Sums sums(c, c->out[0]);
    const pt_view &g = c->in[0], &out = sums.view;
    if (out.ndim != 2 || g.ndim != c->in[1].ndim + 1 || c->in[1].dtype != PT_INT64)
        return bad(c, "expected a gradient of the index's shape with one more dim");
    int status = sums.begin(nullptr);
    if (status) return status;
    View index(c->in[1]);
    index.push(out.sizes[1], 0);
    IndexArgs a = along(View(out), 0);
    if (c->params[1].kind != PT_PARAM_NONE) a.skipped = c->params[1].i;
    status = over(c, ACCUMULATE, sums.kinds, a, View(g), rows_of(out, c->in[1]), index);
    return status ? status : sums.end();
}

// -- several indices ------------------------------------------------------------------------------

bool stands_for(const pt_param &dims, int d) {
    for (int i = 0; i < dims.count; i++)
        if (dims.list[i] == d) return true;
    return false;
}

// Combines the index tensors into one index of byte offsets into x.
int fill_places(pt_call *c, const pt_view &x, int first, int64_t *place) {
    const pt_param &dims = c->params[0];
    for (int i = 0; i < dims.count; i++) {
        View index(c->in[first + i]), to(c->in[first + i]);
        to.v.data = reinterpret_cast<char *>(place);
        int64_t step = 1;
        for (int d = to.v.ndim - 1; d >= 0; d--) {
            to.strides[d] = step;
            step *= to.sizes[d];
        }
        IndexArgs a = along(View(x), (int)dims.list[i]);
        a.negative = 1;
        a.again = i > 0;
        int status = over(c, PLACES, types(PT_INT64), a, to, to, index);
        if (status) return status;
    }
    return PT_OK;
}

// x and the places in the walk over the indexed shape.
void spread_places(pt_call *c, const pt_view &x, int first, int64_t *place, View &tensor,
                   View &places) {
    const pt_param &dims = c->params[0];
    const pt_view &index = c->in[first];
    bool adjacent = true;
    for (int i = 1; i < dims.count; i++)
        adjacent = adjacent && dims.list[i] == dims.list[i - 1] + 1;
    const int at = adjacent ? (int)dims.list[0] : 0;
    tensor.v.ndim = places.v.ndim = 0;
    places.v.data = reinterpret_cast<char *>(place);
    places.v.dtype = PT_INT64;
    int64_t step = index.numel;
    for (int d = 0; d <= x.ndim; d++) {
        if (d == at)
            for (int i = 0; i < index.ndim; i++) {
                step /= index.sizes[i] ? index.sizes[i] : 1;
                tensor.push(index.sizes[i], 0);
                places.push(index.sizes[i], step);
            }
        if (d < x.ndim && !stands_for(dims, d)) {
            tensor.push(x.sizes[d], x.strides[d]);
            places.push(x.sizes[d], 0);
        }
    }
}

// The arguments for places of x. Each power of 2 that divides `stride` divides all places.
IndexArgs by_places(const pt_call *c, const pt_view &x) {
    const pt_param &dims = c->params[0];
    IndexArgs a = {};
    a.skipped = -1;
    a.alpha[0] = 1, a.whole_alpha = 1;
    for (int i = 0; i < dims.count; i++) a.stride |= x.strides[dims.list[i]] * item_size(x.dtype);
    return a;
}

int open_places(pt_call *c, const pt_view &x, int first) {
    const pt_param &dims = c->params[0];
    if (dims.kind != PT_PARAM_INTS || dims.count < 1 || dims.count != c->nin - first)
        return bad(c, "expected one index tensor for each of the indexed dims");
    for (int i = 0; i < dims.count; i++)
        if (dims.list[i] < 0 || dims.list[i] >= x.ndim || c->in[first + i].dtype != PT_INT64)
            return bad(c, "expected int64 indices of dims that are there");
    return PT_OK;
}

int index_get(pt_call *c) {
    const pt_view &x = c->in[0];
    int status = open_places(c, x, 1);
    if (status || c->out[0].numel == 0) return status;
    Scratch room(c, 8 * c->in[1].numel);
    if (!room.data) return PT_MEMORY_ERROR;
    int64_t *place = static_cast<int64_t *>(room.data);
    status = fill_places(c, x, 1, place);
    if (status) return status;
    View tensor(x), places(x);
    spread_places(c, x, 1, place, tensor, places);
    View out(c->out[0]);
    if (out.v.ndim != tensor.v.ndim) return bad(c, "expected an output of the indexed shape");
    return over(c, TAKE, by_size(x.dtype), by_places(c, x), out, tensor, places, &TAKE_WORDS);
}

int index_put_into(pt_call *c, const Kernel &kernel, uint64_t kinds, const Kernel *by_words,
                   const pt_view &x) {
    const pt_view &values = c->in[1];
    Scratch room(c, 8 * c->in[2].numel);
    if (c->in[2].numel == 0) return PT_OK;
    if (!room.data) return PT_MEMORY_ERROR;
    int64_t *place = static_cast<int64_t *>(room.data);
    int status = fill_places(c, x, 2, place);
    if (status) return status;
    View tensor(x), places(x);
    spread_places(c, x, 2, place, tensor, places);
    View given(tensor);                                 // values, broadcast to the indexed shape
    given.v.data = values.data, given.v.dtype = values.dtype;
    const int lead = values.ndim - tensor.v.ndim;
    for (int d = 0; d < tensor.v.ndim; d++) {
        const int v = d + lead;
        given.strides[d] = v >= 0 && values.sizes[v] != 1 ? values.strides[v] : 0;
        if (v >= 0 && values.sizes[v] != 1 && values.sizes[v] != tensor.sizes[d])
            return bad(c, "values cannot be broadcast to the indexed shape");
    }
    return over(c, kernel, kinds, by_places(c, x), given, tensor, places, by_words);
}
int index_put(pt_call *c) {
    const pt_view &x = c->out[0];
    int status = open_places(c, x, 2);
    if (status) return status;
    if (c->in[1].dtype != x.dtype) return bad(c, "expected values of the destination's dtype");
    if (!c->params[1].i) return index_put_into(c, PUT, by_size(x.dtype), &PUT_WORDS, x);
    Sums sums(c, x);
    status = sums.begin(&x);
    if (!status) status = index_put_into(c, ACCUMULATE, sums.kinds, nullptr, sums.view);
    return status ? status : sums.end();
}

}  // namespace

const pt_kernel_entry index_kernels[] = {
    {"gather", gather}, {"scatter", scatter}, {"scatter_add", scatter_add},
    {"scatter_prod", scatter_prod}, {"scatter_amax", scatter_amax}, {"scatter_amin", scatter_amin},
    {"index_select", index_select},
    {"index_add", index_add}, {"embedding", embedding}, {"embedding_backward", embedding_backward},
    {"index_get", index_get}, {"index_put", index_put}, {nullptr, nullptr}};

}  // namespace pt_cuda
