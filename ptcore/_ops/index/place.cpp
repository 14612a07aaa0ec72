/* Elements written to, or read from, the places that a window, a list or a mask names.
 *
 *    overwritten(input, src; stride, offset) -> out   input with src in a window of its elements
 *    picked(input; size, stride, offset) -> out       the elements of such a window
 *    take(input, index) -> out                        elements by their position in the flat input
 *    put(input, index, source; accumulate) -> out     input with source at such positions
 *    masked_write(input, mask, source) -> out         input with source's elements, in order, where
 *                                                     the mask holds
 *    masked_collect(input, mask; shape) -> out        the elements where it holds, then zeros
 *    triangle(input; rows, columns, offset, lower, shape) -> the places of a triangle's elements
 *    cross_of(input, other; dim) -> out               vector products along a dim of size 3
 */
#include "indexing.hpp"

namespace {

/* ---- windows ----------------------------------------------------------------------------- */

/* Whether all places of a window lie within n elements. */
inline bool inside(int ndim, const int64_t *size, const int64_t *stride, int64_t offset,
                   int64_t n) {
    const int64_t most = int64_t(1) << 56;
    int64_t low = offset, high = offset;
    for (int d = 0; d < ndim; ++d)
        if (size[d] == 0) return true;
    if (offset < 0 || offset >= n) return false;
    for (int d = 0; d < ndim; ++d) {
        if (size[d] == 1) continue;
        if (stride[d] > most / (size[d] - 1) || stride[d] < -most / (size[d] - 1)) return false;
        (stride[d] < 0 ? low : high) += stride[d] * (size[d] - 1);
        if (low < 0 || high >= n) return false;
    }
    return true;
}
inline int outside(pt_call *call, int64_t n) {
    return fail(call, PT_RUNTIME_ERROR, "the window does not lie within the %lld elements of input",
                (long long)n);
}

int overwritten_kernel(pt_call *call) {
    const pt_view &x = call->in[0], &src = call->in[1];
    const pt_param &stride = call->params[0];
    const int64_t offset = call->params[1].i;
    if (stride.count != src.ndim)
        return fail(call, PT_RUNTIME_ERROR, "stride must have %d numbers, got %d", src.ndim,
                    stride.count);
    if (!inside(src.ndim, src.sizes, stride.list, offset, x.numel)) return outside(call, x.numel);
    return visit_size(call, x.dtype, [&](auto tag) {
        using T = PT_TYPE(tag);
        copy_unless_same(output<T>(call), x);
        if (src.numel == 0) return int(PT_OK);
        space<2> rows;
        for (int d = 0; d < src.ndim; ++d)
            rows.push(src.sizes[d], {src.strides[d], stride.list[d]});
        int64_t step[2];
        const int64_t n = rows.pop(step), count = rows.numel();
        parallel_for(count, grain_rows(n), [&](int64_t begin, int64_t end) {
            cursor<2> at(rows, begin);
            for (int64_t r = begin; r < end; ++r, at.next()) {
                const T *from = input<T>(call, 1) + at.offset[0];
                T *to = output<T>(call) + offset + at.offset[1];
                if (step[0] == 1 && step[1] == 1) memcpy(to, from, size_t(n) * sizeof(T));
                else
                    for (int64_t j = 0; j < n; ++j) to[j * step[1]] = from[j * step[0]];
            }
        });
        return int(PT_OK);
    });
}

int picked_kernel(pt_call *call) {
    const pt_view &x = call->in[0];
    const pt_param &size = call->params[0], &stride = call->params[1];
    const int64_t offset = call->params[2].i;
    if (stride.count != size.count)
        return fail(call, PT_RUNTIME_ERROR, "stride must have %d numbers, got %d", size.count,
                    stride.count);
    if (!inside(size.count, size.list, stride.list, offset, x.numel)) return outside(call, x.numel);
    if (!call->out[0].numel) return PT_OK;      /* the offset of an empty window may be anything */
    pt_view window = call->out[0];
    window.strides = stride.list;
    window.data = x.data + offset * ITEMSIZE[x.dtype];
    return visit_size(call, x.dtype, [&](auto tag) {
        copy_contiguous(output<PT_TYPE(tag)>(call), window);
        return int(PT_OK);
    });
}

/* ---- positions in the flattened tensor ------------------------------------------------------ */

inline int check_flat(pt_call *call, const pt_view &index, int64_t n) {
    if (index.dtype != PT_INT64)
        return fail(call, PT_INDEX_ERROR, "index must be int64, got %s", DTYPE_NAME[index.dtype]);
    return check_index(call, index, -n, n, 0);
}

int take_kernel(pt_call *call) {
    const pt_view &x = call->in[0], &index = call->in[1];
    if (int status = check_flat(call, index, x.numel)) return status;
    if (index.numel == 0) return PT_OK;
    space<1> places, all;
    for (int d = 0; d < index.ndim; ++d) places.push(index.sizes[d], {index.strides[d]});
    for (int d = 0; d < x.ndim; ++d) all.push(x.sizes[d], {x.strides[d]});
    const bool line = all.ndim < 2;
    const int64_t step = all.ndim ? all.stride[0][0] : 0, n = x.numel;
    return visit_size(call, x.dtype, [&](auto tag) {
        using T = PT_TYPE(tag);
        parallel_for(index.numel, grain_rows(4), [&](int64_t begin, int64_t end) {
            cursor<1> at(places, begin), from(all, 0);
            for (int64_t i = begin; i < end; ++i, at.next()) {
                int64_t p = input<int64_t>(call, 1)[at.offset[0]];
                p = p < 0 ? p + n : p;
                if (line) p *= step;
                else {
                    from.seek(p);
                    p = from.offset[0];
                }
                output<T>(call)[i] = input<T>(call)[p];
            }
        });
        return int(PT_OK);
    });
}

/* Calls combine(place, element) in the order of the index, in one thread: places may repeat. */
template <class T, class E, class Combine>
inline void put_into(pt_call *call, E *out, Combine &&combine) {
    const pt_view &index = call->in[1], &src = call->in[2];
    space<1> places, all;
    for (int d = 0; d < index.ndim; ++d) places.push(index.sizes[d], {index.strides[d]});
    for (int d = 0; d < src.ndim; ++d) all.push(src.sizes[d], {src.strides[d]});
    cursor<1> at(places, 0), from(all, 0);
    const int64_t n = call->out[0].numel;
    for (int64_t i = 0; i < index.numel; ++i, at.next(), from.next()) {
        const int64_t p = input<int64_t>(call, 1)[at.offset[0]];
        combine(out[p < 0 ? p + n : p], input<T>(call, 2)[from.offset[0]]);
    }
}

int put_kernel(pt_call *call) {
    const pt_view &x = call->in[0], &index = call->in[1], &src = call->in[2];
    if (src.numel != index.numel)
        return fail(call, PT_INDEX_ERROR,
                    "source must have as many elements as index, got %lld and %lld",
                    (long long)src.numel, (long long)index.numel);
    if (int status = check_flat(call, index, x.numel)) return status;
    if (!call->params[0].i)
        return visit_size(call, x.dtype, [&](auto tag) {
            using T = PT_TYPE(tag);
            copy_unless_same(output<T>(call), x);
            put_into<T>(call, output<T>(call), [](T &to, T from) { to = from; });
            return int(PT_OK);
        });
    return visit_adding(call, x.dtype, [&](auto tag) {
        using T = PT_TYPE(tag);
        const bool apart = adds_apart<T>(index, x.numel, index.numel, x.numel);
        const int64_t terms = index.numel;
        return adding_to_copy<T>(call, &x, terms, terms, apart, [&](auto *out) {
            using S = std::remove_pointer_t<decltype(out)>;
            put_into<T>(call, out, [](S &to, T from) { to = added(to, from); });
        });
    });
}

/* ---- masks --------------------------------------------------------------------------------- */

/* Calls f(place in memory order, count of true mask elements before it) where the mask holds. */
template <class F>
inline int64_t each_held(const pt_view &mask, F &&f) {
    space<1> all;
    for (int d = 0; d < mask.ndim; ++d) all.push(mask.sizes[d], {mask.strides[d]});
    int64_t step[1], found = 0;
    const int64_t n = all.pop(step), rows = mask.numel ? all.numel() : 0;
    cursor<1> at(all, 0);
    for (int64_t r = 0; r < rows; ++r, at.next()) {
        const uint8_t *held = reinterpret_cast<const uint8_t *>(mask.data) + at.offset[0];
        for (int64_t j = 0; j < n; ++j)
            if (held[j * step[0]]) f(r * n + j, found++);
    }
    return found;
}

int masked_write_kernel(pt_call *call) {
    const pt_view &x = call->in[0], &mask = call->in[1], &src = call->in[2];
    bool same = mask.dtype == PT_BOOL && mask.ndim == x.ndim;
    for (int d = 0; same && d < x.ndim; ++d) same = mask.sizes[d] == x.sizes[d];
    if (!same) return fail(call, PT_RUNTIME_ERROR, "mask must be bool and have input's shape");
    if (each_held(mask, [](int64_t, int64_t) {}) > src.numel)
        return fail(call, PT_RUNTIME_ERROR,
                    "source must have an element for each of the %lld places of mask, got %lld",
                    (long long)each_held(mask, [](int64_t, int64_t) {}), (long long)src.numel);
    space<1> all;
    for (int d = 0; d < src.ndim; ++d) all.push(src.sizes[d], {src.strides[d]});
    return visit_size(call, x.dtype, [&](auto tag) {
        using T = PT_TYPE(tag);
        T *out = output<T>(call);
        copy_unless_same(out, x);
        cursor<1> from(all, 0);
        each_held(mask, [&](int64_t place, int64_t) {
            out[place] = input<T>(call, 2)[from.offset[0]];
            from.next();
        });
        return int(PT_OK);
    });
}

int masked_collect_kernel(pt_call *call) {
    const pt_view &x = call->in[0], &mask = call->in[1];
    if (mask.dtype != PT_BOOL || mask.numel != x.numel || mask.ndim != x.ndim)
        return fail(call, PT_RUNTIME_ERROR, "mask must be bool and have input's shape");
    const int64_t n = call->out[0].numel;
    return visit_size(call, x.dtype, [&](auto tag) {
        using T = PT_TYPE(tag);
        T *out = output<T>(call);
        const int64_t found = each_held(mask, [&](int64_t place, int64_t k) {
            if (k < n) out[k] = input<T>(call)[place];
        });
        if (found > n)
            return fail(call, PT_RUNTIME_ERROR,
                        "the mask holds at %lld places, expected at most %lld", (long long)found,
                        (long long)n);
        if (found < n) memset(static_cast<void *>(out + found), 0, size_t(n - found) * sizeof(T));
        return int(PT_OK);
    });
}

/* ---- triangles ------------------------------------------------------------------------------- */

/* the row numbers, then the column numbers, of a matrix triangle's elements in row-major order */
int triangle_kernel(pt_call *call) {
    const int64_t rows = call->params[0].i, columns = call->params[1].i, n = call->out[0].numel / 2;
    const int64_t offset = max64(call->params[2].i, -INT64_MAX);      /* so that -offset exists */
    const bool lower = call->params[3].i != 0;
    return visit<INTEGERS | FLOATS>(call, call->out[0].dtype, [&](auto tag) {
        using T = PT_TYPE(tag);
        T *out = output<T>(call);
        int64_t k = 0;
        /* From the first row with an element up to the last element: `rows` may be
         * as large as an int can be. */
        for (int64_t i = lower && offset < 0 ? -offset : 0; i < rows && k < n; ++i) {
            const int64_t at = offset < -i            ? 0
                               : offset > columns - i ? columns
                                                      : i + offset; /* the diagonal, clamped */
            const int64_t begin = lower ? 0 : at,
                          end = lower ? (offset < -i ? 0 : min64(at + 1, columns)) : columns;
            for (int64_t j = begin; j < end; ++j, ++k) {
                if (k == n)
                    return fail(call, PT_RUNTIME_ERROR, "the triangle has more than %lld elements",
                                (long long)n);
                out[k] = convert<T>(i);
                out[n + k] = convert<T>(j);
            }
        }
        return k == n ? int(PT_OK)
                      : fail(call, PT_RUNTIME_ERROR, "the triangle has fewer than %lld elements",
                             (long long)n);
    });
}

/* ---- vector products ------------------------------------------------------------------------- */

int cross_kernel(pt_call *call) {
    const pt_view &x = call->in[0], &y = call->in[1], &out = call->out[0];
    const int64_t dim = call->params[0].i;
    bool one_shape = x.ndim == out.ndim && y.ndim == out.ndim;
    for (int d = 0; one_shape && d < out.ndim; ++d)
        one_shape = x.sizes[d] == out.sizes[d] && y.sizes[d] == out.sizes[d];
    if (dim < 0 || dim >= out.ndim || out.sizes[dim] != 3 || !one_shape)
        return fail(call, PT_RUNTIME_ERROR,
                    "expected tensors of one shape with a dimension of size 3");
    if (out.numel == 0) return PT_OK;
    space<3> rows;
    int64_t contiguous[PT_MAX_DIM];
    contiguous_strides(out, contiguous);
    for (int d = 0; d < out.ndim; ++d)
        if (d != dim) rows.push(out.sizes[d], {x.strides[d], y.strides[d], contiguous[d]});
    int64_t step[3];
    const int64_t n = rows.pop(step), a = x.strides[dim], b = y.strides[dim], c = contiguous[dim];
    return visit_adding(call, out.dtype, [&](auto tag) {
        using T = PT_TYPE(tag);
        using E = wide_enough<T>;
        if constexpr (is_same<T, boolean>) return bad_dtype(call, out.dtype);
        else {
            parallel_for(rows.numel(), grain_rows(6 * n), [&](int64_t begin, int64_t end) {
                cursor<3> at(rows, begin);
                for (int64_t r = begin; r < end; ++r, at.next()) {
                    const T *u = input<T>(call) + at.offset[0],
                            *v = input<T>(call, 1) + at.offset[1];
                    T *to = output<T>(call) + at.offset[2];
                    for (int64_t j = 0; j < n; ++j, u += step[0], v += step[1], to += step[2]) {
                        const E u0 = convert<E>(u[0]), u1 = convert<E>(u[a]),
                                u2 = convert<E>(u[2 * a]);
                        const E v0 = convert<E>(v[0]), v1 = convert<E>(v[b]),
                                v2 = convert<E>(v[2 * b]);
                        to[0] = convert<T>(E(u1 * v2 - u2 * v1));
                        to[c] = convert<T>(E(u2 * v0 - u0 * v2));
                        to[2 * c] = convert<T>(E(u0 * v1 - u1 * v0));
                    }
                }
            });
            return int(PT_OK);
        }
    });
}

} // namespace

extern "C" const pt_kernel_entry PT_CAT(pt_kernels_place_, PT_ISA)[] = {
    {"overwritten", overwritten_kernel},
    {"picked", picked_kernel},
    {"take", take_kernel},
    {"put", put_kernel},
    {"masked_write", masked_write_kernel},
    {"masked_collect", masked_collect_kernel},
    {"triangle", triangle_kernel},
    {"cross_of", cross_kernel},
    {nullptr, nullptr},
};
