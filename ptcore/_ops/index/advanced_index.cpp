/* Indexing by several tensors and by masks.
 *
 *    index_get(input, idx0, idx1...; dims) -> out
 *    index_put(input, values, idx0, idx1...; dims, accumulate) writes into the data of out[0]
 *    nonzero(input) -> (k, ndim) int64
 *
 * dims, ascending, are the dims of input that the int64 index tensors (already broadcast to one
 * shape) index. If dims are neighbours, the dims of the index take their place in the result, else
 * they come first. Indices may be negative; all are checked before anything is written. index_put
 * is the one kernel whose out[0] may have any strides. Its values broadcast to the indexed shape;
 * where an index occurs twice, the last write stays.
 */
#include "indexing.hpp"

namespace {

constexpr int64_t MASK_CHUNK = 32768;

/* The indexed tensor's dims as (before, index, after); `place` has the offset of each index. */
struct pick {
    space<2> before, after;      /* element offsets in the indexed tensor and in the other tensor */
    int64_t count = 1;              /* number of positions in the index */
    bool adjacent = true;
    int ndim = 0;                   /* of the result */
    int64_t sizes[2 * PT_MAX_DIM];
};

/* Fills place[count] with the indices' offsets. `first` is the input number of the first index. */
inline int fill_places(pt_call *call, const pt_view &x, int first, int64_t *place) {
    const pt_param &dims = call->params[0];
    for (int i = 0; i < dims.count; ++i) {
        const pt_view &index = call->in[first + i];
        const int64_t dim = dims.list[i], size = x.sizes[dim], stride = x.strides[dim];
        space<1> walk;
        for (int d = 0; d < index.ndim; ++d) walk.push(index.sizes[d], {index.strides[d]});
        int64_t step[1];
        const int64_t n = walk.pop(step);
        cursor<1> at(walk, 0);
        for (int64_t p = 0; p < index.numel; p += n, at.next()) {
            const int64_t *from = reinterpret_cast<const int64_t *>(index.data) + at.offset[0];
            for (int64_t j = 0; j < n; ++j) {
                const int64_t v = from[j * step[0]], offset = (v < 0 ? v + size : v) * stride;
                place[p + j] = i ? place[p + j] + offset : offset;
            }
        }
    }
    return PT_OK;
}

/* Checks the indices, and sets the shapes of index and result for x indexed at call->params[0]. */
inline int open_pick(pt_call *call, const pt_view &x, int first, pick &q) {
    const pt_param &dims = call->params[0];
    if (dims.kind != PT_PARAM_INTS || dims.count < 1 || dims.count != call->nin - first)
        return fail(call, PT_INDEX_ERROR, "expected one index tensor for each of the indexed dims");
    const pt_view &shape = call->in[first];
    for (int i = 0; i < dims.count; ++i) {
        const pt_view &index = call->in[first + i];
        const int64_t dim = dims.list[i];
        if (dim < 0 || dim >= x.ndim || (i && dim <= dims.list[i - 1]))
            return fail(call, PT_INDEX_ERROR, "too many indices: dim %lld of a tensor with %d",
                        (long long)dim, x.ndim);
        bool alike = index.ndim == shape.ndim;
        for (int d = 0; alike && d < shape.ndim; ++d) alike = index.sizes[d] == shape.sizes[d];
        if (!alike)
            return fail(call, PT_INDEX_ERROR, "index tensors could not be broadcast together");
        if (int status = check_index(call, index, -x.sizes[dim], x.sizes[dim], dim)) return status;
        q.adjacent = q.adjacent && (i == 0 || dim == dims.list[i - 1] + 1);
    }
    q.count = shape.numel;
    auto indexed = [&](int d) {
        for (int i = 0; i < dims.count; ++i)
            if (dims.list[i] == d) return true;
        return false;
    };
    const int at = q.adjacent ? int(dims.list[0]) : 0;
    for (int d = 0; d < at; ++d) q.sizes[q.ndim++] = x.sizes[d];
    for (int d = 0; d < shape.ndim; ++d) q.sizes[q.ndim++] = shape.sizes[d];
    for (int d = at; d < x.ndim; ++d)
        if (!indexed(d)) q.sizes[q.ndim++] = x.sizes[d];
    if (q.ndim > PT_MAX_DIM)
        return fail(call, PT_INDEX_ERROR, "expected a result of at most %d dimensions, got %d",
                    PT_MAX_DIM, q.ndim);
    return PT_OK;
}
/* Opens the walks over the dims that are not indexed. other[] has the strides of the other tensor,
 * which has the result's shape. */
inline void open_walks(pt_call *call, const pt_view &x, const int64_t *other, int index_ndim,
                       pick &q) {
    const pt_param &dims = call->params[0];
    const int at = q.adjacent ? int(dims.list[0]) : 0;
    int r = q.adjacent ? 0 : index_ndim;
    for (int d = 0, i = 0; d < x.ndim; ++d) {
        if (i < dims.count && dims.list[i] == d) {
            ++i;
            continue;
        }
        if (q.adjacent && d > at && r == at) r += index_ndim;
        (d < at ? q.before : q.after).push(x.sizes[d], {x.strides[d], other[r]});
        ++r;
    }
}

int index_get_kernel(pt_call *call) {
    const pt_view &x = call->in[0], &out = call->out[0];
    pick q;
    if (int status = open_pick(call, x, 1, q)) return status;
    int64_t numel = 1, strides[PT_MAX_DIM];
    for (int d = q.ndim - 1; d >= 0; --d) {
        strides[d] = numel;
        numel *= q.sizes[d];
    }
    if (numel != out.numel)
        return fail(call, PT_RUNTIME_ERROR, "expected an output of %lld elements",
                    (long long)numel);
    if (numel == 0) return PT_OK;
    open_walks(call, x, strides, call->in[1].ndim, q);
    scratch<int64_t> place(q.count);
    if (!place) return no_memory(call, 8 * q.count);
    fill_places(call, x, 1, place.data);
    space<2> rows = q.after;
    int64_t step[2];
    const int64_t width = rows.pop(step), lines = rows.numel();
    /* the index's strides in out: the index dims are contiguous, in front of the dims after them */
    const int64_t after = q.after.numel(), jump = after;
    return visit_size(call, x.dtype, [&](auto tag) {
        using T = PT_TYPE(tag);
        const T *in = input<T>(call);
        T *to = output<T>(call);
        parallel_for(
            q.before.numel() * q.count, grain_rows(after), [&](int64_t begin, int64_t end) {
                cursor<2> at(q.before, begin / q.count);
                for (int64_t u = begin; u < end; ++u) {
                    const int64_t p = u % q.count;
                    const T *from = in + at.offset[0] + place[p];
                    T *dst = to + at.offset[1] + p * jump;
                    if (after == 1)
                        *dst = *from;
                    else {
                        cursor<2> row(rows, 0);
                        for (int64_t r = 0; r < lines; ++r, row.next())
                            load(dst + row.offset[1], from + row.offset[0], step[0], width);
                    }
                    if (p == q.count - 1) at.next();
                }
            });
        return int(PT_OK);
    });
}

/* dst[0...n) op= src, both strided */
template <class E, class T, class Combine>
inline void combine_row(E *dst, int64_t to, const T *src, int64_t from, int64_t n,
                        Combine &&combine) {
    for (int64_t j = 0; j < n; ++j) dst[j * to] = combine(dst[j * to], src[j * from]);
}

/* puts values at the indexed places of dst (strides of x), in the order of the result */
template <class E, class T, class Combine>
inline void put_values(pt_call *call, const pick &q, const space<1> &index, const int64_t *place,
                       E *dst, Combine &&combine) {
    space<2> rows = q.after;
    int64_t step[2];
    const int64_t width = rows.pop(step), lines = rows.numel();
    const T *values = input<T>(call, 1);
    parallel_for(q.before.numel(), grain_rows(q.count * width * lines),
                 [&](int64_t begin, int64_t end) {
                     cursor<2> at(q.before, begin);
                     for (int64_t o = begin; o < end; ++o, at.next()) {
                         cursor<1> v(index, 0);
                         E *to = dst + at.offset[0];
                         const T *from = values + at.offset[1];
                         if (width * lines == 1 && index.ndim < 2) {
                             const int64_t apart = index.ndim ? index.stride[0][0] : 0;
                             for (int64_t p = 0; p < q.count; ++p)
                                 to[place[p]] = combine(to[place[p]], from[p * apart]);
                             continue;
                         }
                         for (int64_t p = 0; p < q.count; ++p, v.next()) {
                             cursor<2> row(rows, 0);
                             for (int64_t r = 0; r < lines; ++r, row.next())
                                 combine_row(to + place[p] + row.offset[0], step[0],
                                             from + v.offset[0] + row.offset[1], step[1], width,
                                             combine);
                         }
                     }
                 });
}

/* Adds values to the indexed places in a contiguous copy of the destination, in the type of the
 * sums, and writes it back. `strides` are those of the values. */
template <class T>
inline int add_in_copy(pt_call *call, pick &q, const space<1> &index, const int64_t *strides,
                       int64_t *place) {
    using E = typename sum_type<T>::type;
    const pt_view &x = call->out[0];
    scratch<E> wide(x.numel);
    scratch<T> narrow(x.numel);
    if (!wide || !narrow) return no_memory(call, x.numel * int64_t(sizeof(E) + sizeof(T)));
    copy_contiguous(narrow.data, x);
    load(wide.data, narrow.data, 1, x.numel);
    int64_t contiguous[PT_MAX_DIM];
    contiguous_strides(x, contiguous);
    space<1> all;
    for (int d = 0; d < x.ndim; ++d) all.push(x.sizes[d], {x.strides[d]});
    pt_view copy = x;
    copy.strides = contiguous;
    open_walks(call, copy, strides, call->in[2].ndim, q);
    fill_places(call, copy, 2, place);
    put_values<E, T>(call, q, index, place, wide.data,
                     [](E t, T v) { return E(t + convert<E>(v)); });
    cursor<1> to(all, 0);
    for (int64_t i = 0; i < x.numel; ++i, to.next())
        output<T>(call)[to.offset[0]] = convert<T>(wide[i]);
    return PT_OK;
}

int index_put_kernel(pt_call *call) {
    const pt_view &x = call->out[0], &values = call->in[1];
    const bool accumulate = call->params[1].i != 0;
    pick q;
    if (int status = open_pick(call, x, 2, q)) return status;
    if (values.dtype != x.dtype)
        return fail(call, PT_RUNTIME_ERROR, "expected values of the destination's dtype %s",
                    x.dtype < PT_NDTYPES ? DTYPE_NAME[x.dtype] : "none");
    /* values broadcast to the result's shape, aligned at the last dim */
    int64_t strides[PT_MAX_DIM], numel = 1;
    const int lead = values.ndim - q.ndim;
    bool fits = true;
    for (int d = 0; d < lead; ++d) fits = fits && values.sizes[d] == 1;
    for (int d = 0; d < q.ndim; ++d) {
        const int v = d + lead;
        strides[d] = v >= 0 && values.sizes[v] != 1 ? values.strides[v] : 0;
        fits = fits && (v < 0 || values.sizes[v] == 1 || values.sizes[v] == q.sizes[d]);
        numel *= q.sizes[d];
    }
    if (!fits)
        return fail(call, PT_RUNTIME_ERROR,
                    "shape mismatch: values cannot be broadcast to the indexed shape");
    if (numel == 0) return PT_OK;
    const int index_ndim = call->in[2].ndim, at = q.adjacent ? int(call->params[0].list[0]) : 0;
    space<1> index;
    for (int d = 0; d < index_ndim; ++d) index.push(q.sizes[at + d], {strides[at + d]});
    scratch<int64_t> place(q.count);
    if (!place) return no_memory(call, 8 * q.count);
    if (!accumulate) {
        open_walks(call, x, strides, index_ndim, q);
        fill_places(call, x, 2, place.data);
        return visit_size(call, x.dtype, [&](auto tag) {
            using T = PT_TYPE(tag);
            put_values<T, T>(call, q, index, place.data, output<T>(call),
                             [](const T &, const T &v) { return v; });
            return int(PT_OK);
        });
    }
    return visit_adding(call, x.dtype, [&](auto tag) {
        using T = PT_TYPE(tag);
        fill_places(call, x, 2, place.data);
        const int64_t one = 1;
        pt_view places = call->in[2];           /* the offsets as an index */
        places.data = reinterpret_cast<char *>(place.data);
        places.sizes = &q.count;
        places.strides = &one;
        places.ndim = 1;
        if (adds_wide<T>(numel, x.numel, places, q.count) &&
            !adds_apart<T>(places, 0, numel, x.numel))
            return add_in_copy<T>(call, q, index, strides, place.data);
        open_walks(call, x, strides, index_ndim, q);
        put_values<T, T>(call, q, index, place.data, output<T>(call),
                         [](T t, T v) { return added(t, v); });
        return int(PT_OK);
    });
}

/* ---- masks ------------------------------------------------------------------------------- */

using truth_of = void (*)(void *to, const void *from, int64_t stride, int64_t n);

/* Calls found(truth, first, last, k) on the pool for chunks of `mask`: truth[first...last) says
 * which elements are not zero; k such elements lie in earlier chunks. */
template <class Found>
inline int for_each_true(pt_call *call, const pt_view &mask, truth_of fetch, int64_t expected,
                         Found &&found) {
    space<1> walk;
    for (int d = 0; d < mask.ndim; ++d) walk.push(mask.sizes[d], {mask.strides[d]});
    int64_t step[1];
    space<1> outer = walk;
    const int64_t n = outer.pop(step), chunks = ceil_div(mask.numel, MASK_CHUNK);
    scratch<int64_t> start(chunks + 1);
    scratch<uint8_t> truth(mask.numel);
    if (!start || !truth) return no_memory(call, mask.numel + 8 * chunks);
    const int64_t item = ITEMSIZE[mask.dtype];
    parallel_for(chunks, 1, [&](int64_t begin, int64_t end) {
        for (int64_t c = begin; c < end; ++c) {
            const int64_t first = c * MASK_CHUNK, last = min64(mask.numel, first + MASK_CHUNK);
            cursor<1> at(outer, first / n);
            int64_t within = first % n, total = 0;
            for (int64_t i = first; i < last;) {
                const int64_t run = min64(n - within, last - i);
                fetch(truth.data + i, mask.data + (at.offset[0] + within * step[0]) * item,
                      n == 1 ? 1 : step[0], run);
                i += run;
                within = 0;
                at.next();
            }
            for (int64_t i = first; i < last; ++i) total += truth[i];
            start[c + 1] = total;
        }
    });
    start[0] = 0;
    for (int64_t c = 0; c < chunks; ++c) start[c + 1] += start[c];
    if (start[chunks] != expected)
        return fail(call, PT_RUNTIME_ERROR,
                    "expected an output for %lld elements, got one for %lld",
                    (long long)start[chunks], (long long)expected);
    parallel_for(chunks, 1, [&](int64_t begin, int64_t end) {
        for (int64_t c = begin; c < end; ++c)
            found(truth.data, c * MASK_CHUNK, min64(mask.numel, (c + 1) * MASK_CHUNK), start[c]);
    });
    return PT_OK;
}

/* Writes the positions of the true ones among n <= MASK_RUN elements, without a branch per
 * element; returns their number. */
constexpr int64_t MASK_RUN = 4096;
inline int64_t true_places(const uint8_t *truth, int64_t n, uint16_t *places) {
    int64_t many = 0;
    for (int64_t i = 0; i < n; ++i) {
        places[many] = uint16_t(i);
        many += truth[i];
    }
    return many;
}

/* Writes the coordinates of the elements that lie `hits` after one of a row. */
inline int64_t *write_places(int64_t *PT_RESTRICT to, const int64_t *PT_RESTRICT index, int ndim,
                             const uint16_t *PT_RESTRICT hits, int64_t many) {
    const int64_t start = index[ndim - 1];
    if (ndim == 1)
        for (int64_t h = 0; h < many; ++h) to[h] = start + hits[h];
    else if (ndim == 2)
        for (int64_t h = 0, row = index[0]; h < many; ++h) {
            to[2 * h] = row;
            to[2 * h + 1] = start + hits[h];
        }
    else
        for (int64_t h = 0; h < many; ++h) {
            for (int d = 0; d < ndim - 1; ++d) to[h * ndim + d] = index[d];
            to[h * ndim + ndim - 1] = start + hits[h];
        }
    return to + many * ndim;
}

int nonzero_kernel(pt_call *call) {
    const pt_view &x = call->in[0], &out = call->out[0];
    const int ndim = x.ndim;
    if (out.ndim != 2 || out.sizes[1] != ndim)
        return fail(call, PT_RUNTIME_ERROR, "expected an output of shape (k, %d)", ndim);
    truth_of fetch = nullptr;
    int status = visit<ALL>(call, x.dtype, [&](auto tag) {
        fetch = fetch_truth<PT_TYPE(tag)>;
        return int(PT_OK);
    });
    if (status) return status;
    return for_each_true(
        call, x, fetch, out.sizes[0],
        [&](const uint8_t *truth, int64_t first, int64_t last, int64_t k) {
            if (!ndim) return;
            int64_t index[PT_MAX_DIM], *to = output<int64_t>(call) + k * ndim;
            const int64_t size = x.sizes[ndim - 1];
            for (int64_t d = ndim - 1, rest = first; d >= 0; rest /= x.sizes[d--])
                index[d] = rest % x.sizes[d];
            uint16_t hits[MASK_RUN];
            for (int64_t from = first; from < last;) {      /* runs lie within a row */
                const int64_t start = index[ndim - 1],
                              run = min64(min64(MASK_RUN, last - from), size - start),
                              many = true_places(truth + from, run, hits);
                to = write_places(to, index, ndim, hits, many);
                from += run;
                index[ndim - 1] += run;
                for (int d = ndim - 1; d > 0 && index[d] == x.sizes[d]; --d) {
                    index[d] = 0;
                    ++index[d - 1];
                }
            }
        });
}

} // namespace

extern "C" const pt_kernel_entry PT_CAT(pt_kernels_advanced_index_, PT_ISA)[] = {
    {"index_get", index_get_kernel},
    {"index_put", index_put_kernel},
    {"nonzero", nonzero_kernel},
    {nullptr, nullptr},
};
