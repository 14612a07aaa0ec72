/* Indexing along one dim: gather, scatter, scatter_add, index_select, index_add, index_copy,
 * embedding and its derivative.
 *
 * Indices are int64 and not negative; all are checked before anything is written. Elements with
 * equal indices are combined in the order of the index; half types are added in float32, and where
 * many elements meet, float32 in float64 (adds_wide). Work is split along the dims that are not
 * indexed, so no two threads write to one element.
 */
#include "copy_row.hpp"
#include "indexing.hpp"

namespace {

int gather_kernel(pt_call *call) {
    const pt_view &x = call->in[0], &index = call->in[1];
    int64_t dim;
    if (int status = open_dim(call, x, index, nullptr, dim)) return status;
    if (index.numel == 0) return PT_OK;
    int64_t stride[PT_MAX_DIM], none[1] = {0};
    contiguous_strides(index, stride);
    const lines w = walk_lines(index, dim, x.ndim ? x.strides : none, stride);
    return visit_size(call, x.dtype, [&](auto tag) {
        using T = PT_TYPE(tag);
        const int64_t block = 16384, blocks = ceil_div(w.width, block), each = w.n * blocks;
        const auto rows = [&](int64_t begin, int64_t end) {
            cursor<3> at(w.outer, begin / each);
            for (int64_t r = begin; r < end; ++r) {
                const int64_t i = r % each / blocks, b = r % blocks * block,
                              e = min64(w.width, b + block);
                const T *from = input<T>(call) + at.offset[0];
                const int64_t *p = input<int64_t>(call, 1) + at.offset[1] + i * w.along[1];
                T *to = output<T>(call) + at.offset[2] + i * w.along[2];
                if (w.across[1] == 1 && w.across[0] == 0 && w.moved == 1)
                    for (int64_t j = b; j < e; ++j) to[j] = from[p[j]];
                else if (w.across[1] == 0 && w.across[0] == 1)      /* one number for a whole row */
                    memcpy(to + b, from + *p * w.moved + b, size_t(e - b) * sizeof(T));
                else
                    for (int64_t j = b; j < e; ++j)
                        to[j] = from[j * w.across[0] + p[j * w.across[1]] * w.moved];
                if (r % each == each - 1) at.next();
            }
        };
        parallel_for(w.outer.numel() * each, grain_rows(2 * min64(block, w.width)),
                     [&](int64_t begin, int64_t end) { rows(begin, end); });
        return int(PT_OK);
    });
}

int scatter_kernel(pt_call *call) {
    int64_t dim;
    if (int status = open_dim(call, call->in[0], call->in[1], &call->in[2], dim)) return status;
    return visit_size(call, call->out[0].dtype, [&](auto tag) {
        using T = PT_TYPE(tag);
        copy_unless_same(output<T>(call), call->in[0]);
        scatter_into<T, T>(call, output<T>(call), dim, [](T, T s) { return s; });
        return int(PT_OK);
    });
}

int scatter_add_kernel(pt_call *call) {
    const pt_view &index = call->in[1];
    int64_t dim;
    if (int status = open_dim(call, call->in[0], index, &call->in[2], dim)) return status;
    return visit_adding(call, call->out[0].dtype, [&](auto tag) {
        using T = PT_TYPE(tag);
        const int64_t along = index.ndim > dim ? index.sizes[dim] : 1;
        return adding_to_copy<T>(call, &call->in[0], index.numel, along, false, [&](auto *out) {
            using S = std::remove_pointer_t<decltype(out)>;
            if constexpr (!is_half<S>)
                scatter_into<S, T>(call, out, dim, [](S t, T s) { return added(t, s); });
        });
    });
}

/* ---- whole slices ------------------------------------------------------------------------ */

/* (outer, n, inner) around dim of a view; a 0-d view is (1, 1, 1) */
struct slices {
    space<1> outer, inner;
    int64_t n = 1, stride = 0;
    slices(const pt_view &v, int64_t dim) {
        for (int d = 0; d < v.ndim; ++d) {
            if (d == dim) {
                n = v.sizes[d];
                stride = v.strides[d];
            }
            else (d < dim ? outer : inner).push(v.sizes[d], {v.strides[d]});
        }
    }
};
inline int open_index(pt_call *call, const pt_view &x, int64_t &dim) {
    const int ndim = x.ndim ? x.ndim : 1;
    const pt_view &index = call->in[1];
    dim = wrap_dim(call->params[0].i, ndim);
    if (dim < 0 || dim >= ndim)
        return fail(call, PT_INDEX_ERROR, "dim must be in [%d, %d], got %lld", -ndim, ndim - 1,
                    (long long)call->params[0].i);
    if (index.ndim > 1)
        return fail(call, PT_INDEX_ERROR, "expected an index of at most 1 dimension, got %d",
                    index.ndim);
    return check_index(call, index, 0, x.ndim ? x.sizes[dim] : 1, dim);
}
inline int64_t index_step(const pt_view &index) {
    return index.ndim ? index.strides[index.ndim - 1] : 0;
}

int index_select_kernel(pt_call *call) {
    const pt_view &x = call->in[0], &index = call->in[1];
    int64_t dim;
    if (int status = open_index(call, x, dim)) return status;
    if (call->out[0].numel == 0) return PT_OK;
    const slices s(x, dim);
    space<1> rows = s.inner;
    int64_t step[1];
    const int64_t width = rows.pop(step), count = rows.numel(), chosen = index.numel,
                  jump = index_step(index);
    return visit_size(call, x.dtype, [&](auto tag) {
        using T = PT_TYPE(tag);
        const int64_t *p = input<int64_t>(call, 1);
        T *out = output<T>(call);
        if (width * count == 1) {
            parallel_for(s.outer.numel(), grain_rows(chosen), [&](int64_t begin, int64_t end) {
                cursor<1> at(s.outer, begin);
                for (int64_t o = begin; o < end; ++o, at.next()) {
                    const T *PT_RESTRICT from = input<T>(call) + at.offset[0];
                    T *PT_RESTRICT to = out + o * chosen;
                    if (s.stride == 1 && jump == 1)
                        for (int64_t k = 0; k < chosen; ++k) to[k] = from[p[k]];
                    else
                        for (int64_t k = 0; k < chosen; ++k) to[k] = from[p[k * jump] * s.stride];
                }
            });
            return int(PT_OK);
        }
        const size_t bytes = size_t(width) * sizeof(T);
        const bool short_rows = count == 1 && step[0] == 1 && bytes >= 4 && bytes <= 256;
        parallel_for(s.outer.numel() * chosen, grain_rows(width * count),
                     [&](int64_t begin, int64_t end) {
                         cursor<1> at(s.outer, begin / chosen);
                         if (short_rows) {
                             for (int64_t u = begin, k = begin % chosen; u < end;) {
                                 const T *from = input<T>(call) + at.offset[0];
                                 for (; k < chosen && u < end; ++k, ++u)
                                     copy_row(reinterpret_cast<char *>(out + u * width),
                                              reinterpret_cast<const char *>(
                                                  from + p[k * jump] * s.stride),
                                              bytes);
                                 k = 0;
                                 at.next();
                             }
                             return;
                         }
                         for (int64_t u = begin; u < end; ++u) {
                             const T *from =
                                 input<T>(call) + at.offset[0] + p[u % chosen * jump] * s.stride;
                             cursor<1> row(rows, 0);
                             for (int64_t r = 0; r < count; ++r, row.next())
                                 load(out + (u * count + r) * width, from + row.offset[0],
                                      width == 1 ? 1 : step[0], width);
                             if (u % chosen == chosen - 1) at.next();
                         }
                     });
        return int(PT_OK);
    });
}

template <class S, class T, class E>
PT_NOINLINE void add_scaled(S *PT_RESTRICT to, const T *PT_RESTRICT from, int64_t stride, int64_t n,
                       E alpha) {
    for (int64_t j = 0; j < n; ++j)
        to[j] = added(to[j], E(alpha * convert<E>(from[j * stride])));
}

int index_add_kernel(pt_call *call) {
    const pt_view &x = call->in[0], &index = call->in[1], &src = call->in[2];
    int64_t dim;
    if (int status = open_index(call, x, dim)) return status;
    const slices from(src, dim), into(x, dim);
    if ((src.ndim ? src.ndim : 1) != (x.ndim ? x.ndim : 1) || from.n != index.numel ||
        from.outer.numel() != into.outer.numel() || from.inner.numel() != into.inner.numel())
        return fail(call, PT_RUNTIME_ERROR, "expected src like input with %lld entries along dim",
                    (long long)index.numel);
    space<1> rows = from.inner;
    int64_t step[1];
    const int64_t width = rows.pop(step), count = rows.numel(), inner = width * count;
    const int64_t block = 1024, blocks = ceil_div(width, block), jump = index_step(index);
    return visit_adding(call, call->out[0].dtype, [&](auto tag) {
        using T = PT_TYPE(tag);
        if (!has_scalar<T>(call->params[1])) return no_scalar(call, "alpha", call->params[1]);
        const bool apart = adds_apart<T>(index, x.ndim ? x.sizes[dim] : 1, src.numel, x.numel);
        return adding_to_copy<T>(call, &x, src.numel, from.n, apart, [&](auto *out) {
            using E = wide_enough<std::remove_pointer_t<decltype(out)>>;
            if (src.numel == 0) return;
            E alpha;
            if constexpr (is_same<E, boolean>) alpha = {uint8_t(call->params[1].d != 0)};
            else alpha = convert<E>(scalar<compute<T>>(call->params[1]));
            const int64_t *p = input<int64_t>(call, 1);
            parallel_for(
                from.outer.numel() * blocks, grain_rows(from.n * count * min64(width, block)),
                [&](int64_t begin, int64_t end) {
                    for (int64_t u = begin; u < end; ++u) {
                        const int64_t o = u / blocks, b = u % blocks * block,
                                      w = min64(block, width - b);
                        cursor<1> at(from.outer, o);
                        const T *first = input<T>(call, 2) + at.offset[0];
                        for (int64_t k = 0; inner == 1 && k < from.n; ++k) {
                            auto &to = out[o * into.n + p[k * jump]];
                            to = added(to, E(alpha * convert<E>(first[k * from.stride])));
                        }
                        for (int64_t k = 0; inner > 1 && k < from.n; ++k) {
                            cursor<1> row(rows, 0);
                            for (int64_t r = 0; r < count; ++r, row.next())
                                add_scaled(out + (o * into.n + p[k * jump]) * inner + r * width + b,
                                           first + k * from.stride + row.offset[0] + b * step[0],
                                           step[0], w, alpha);
                        }
                    }
                });
        });
    });
}

/* out = in[0], with the slices at positions in[1] replaced by those of in[2], or by its single
 * element. For a repeated position the last slice stays. */
int index_copy_kernel(pt_call *call) {
    const pt_view &x = call->in[0], &index = call->in[1];
    pt_view src = call->in[2];
    int64_t dim, sizes[PT_MAX_DIM], still[PT_MAX_DIM] = {};
    if (int status = open_index(call, x, dim)) return status;
    const bool alone = src.ndim == 0;
    if (alone && x.ndim) {
        for (int d = 0; d < x.ndim; ++d) sizes[d] = d == dim ? index.numel : x.sizes[d];
        src.ndim = x.ndim;
        src.sizes = sizes;
        src.strides = still;
    }
    slices from(src, dim);
    const slices into(x, dim);
    if (alone && x.ndim == 0) from.n = index.numel;     /* written several times, or never */
    if ((src.ndim ? src.ndim : 1) != (x.ndim ? x.ndim : 1) || from.n != index.numel ||
        from.outer.numel() != into.outer.numel() || from.inner.numel() != into.inner.numel())
        return fail(call, PT_RUNTIME_ERROR,
                    "expected source like input with %lld entries along dim",
                    (long long)index.numel);
    space<1> rows = from.inner;
    int64_t step[1];
    const int64_t width = rows.pop(step), count = rows.numel(), inner = width * count,
                  jump = index_step(index);
    return visit_size(call, x.dtype, [&](auto tag) {
        using T = PT_TYPE(tag);
        T *out = output<T>(call);
        copy_unless_same(out, x);
        if (from.n == 0) return int(PT_OK);
        const int64_t *p = input<int64_t>(call, 1);
        parallel_for(
            from.outer.numel(), grain_rows(from.n * inner), [&](int64_t begin, int64_t end) {
                cursor<1> at(from.outer, begin);
                for (int64_t o = begin; o < end; ++o, at.next()) {
                    const T *first = input<T>(call, 2) + at.offset[0];
                    for (int64_t k = 0; inner == 1 && k < from.n; ++k)
                        out[o * into.n + p[k * jump]] = first[k * from.stride];
                    for (int64_t k = 0; inner > 1 && k < from.n; ++k) {
                        cursor<1> row(rows, 0);
                        for (int64_t r = 0; r < count; ++r, row.next())
                            load(out + (o * into.n + p[k * jump]) * inner + r * width,
                                 first + k * from.stride + row.offset[0], step[0], width);
                    }
                }
            });
        return int(PT_OK);
    });
}

/* ---- embedding --------------------------------------------------------------------------- */

int embedding_kernel(pt_call *call) {
    const pt_view &w = call->in[0], &index = call->in[1];
    if (w.ndim != 2)
        return fail(call, PT_RUNTIME_ERROR, "expected a weight of 2 dimensions, got %d", w.ndim);
    if (int status = check_index(call, index, 0, w.sizes[0], 0)) return status;
    space<1> walk;
    for (int d = 0; d < index.ndim; ++d) walk.push(index.sizes[d], {index.strides[d]});
    const int64_t n = w.sizes[1];
    return visit_size(call, w.dtype, [&](auto tag) {
        using T = PT_TYPE(tag);
        parallel_for(index.numel, grain_rows(n), [&](int64_t begin, int64_t end) {
            cursor<1> at(walk, begin);
            for (int64_t i = begin; i < end; ++i, at.next())
                load(output<T>(call) + i * n,
                     input<T>(call) + input<int64_t>(call, 1)[at.offset[0]] * w.strides[0],
                     n == 1 ? 1 : w.strides[1], n);
        });
        return int(PT_OK);
    });
}

int embedding_backward_kernel(pt_call *call) {
    const pt_view &g = call->in[0], &index = call->in[1], &out = call->out[0];
    const int64_t padding = call->params[1].kind == PT_PARAM_NONE ? -1 : call->params[1].i;
    if (out.ndim != 2 || g.ndim != index.ndim + 1 || g.sizes[g.ndim - 1] != out.sizes[1])
        return fail(call, PT_RUNTIME_ERROR,
                    "expected a gradient of the index's shape with one more dimension");
    if (int status = check_index(call, index, 0, out.sizes[0], 0)) return status;
    const int64_t n = out.sizes[1], step = g.strides[g.ndim - 1];
    space<2> walk;
    for (int d = 0; d < index.ndim; ++d)
        walk.push(index.sizes[d], {g.strides[d], index.strides[d]});
    return visit<FLOATS | COMPLEXES>(call, out.dtype, [&](auto tag) {
        using T = PT_TYPE(tag);
        return adding_to_copy<T>(call, nullptr, g.numel, index.numel, false, [&](auto *to) {
            using E = std::remove_pointer_t<decltype(to)>;
            /* threads split the columns; each adds the rows in order */
            const int64_t grain = max64(64, grain_rows(index.numel));
            if constexpr (!is_half<E>)                  /* halves are added as floats */
                parallel_for(n, grain, [&](int64_t begin, int64_t end) {
                    cursor<2> at(walk, 0);
                    for (int64_t i = 0; i < index.numel; ++i, at.next()) {
                        const int64_t r = input<int64_t>(call, 1)[at.offset[1]];
                        const T *from = input<T>(call) + at.offset[0] + begin * step;
                        if (r != padding)
                            add_scaled(to + r * n + begin, from, step, end - begin, E(1));
                    }
                });
        });
    });
}

} // namespace

extern "C" const pt_kernel_entry PT_CAT(pt_kernels_index_, PT_ISA)[] = {
    {"gather", gather_kernel},
    {"scatter", scatter_kernel},
    {"scatter_add", scatter_add_kernel},
    {"index_select", index_select_kernel},
    {"index_add", index_add_kernel},
    {"index_copy", index_copy_kernel},
    {"embedding", embedding_kernel},
    {"embedding_backward", embedding_backward_kernel},
    {nullptr, nullptr},
};
