/* softmax, log_softmax and their derivatives along any dim, without a copy of the tensor.
 *
 * If the dim is the innermost one of the output, rows are taken one by one; else blocks of
 * neighbouring columns are taken together. Operands that are not contiguous elements of the compute
 * type (half types, odd strides) go through a scratch block of rows or columns.
 */
#include "rows.hpp"

#include <algorithm>
#include <atomic>

namespace {

constexpr int64_t COLUMN_BLOCK = 128;
constexpr int64_t SMALL = 4096;         /* inputs with fewer elements stay on one thread */

/* sum[j] over n rows; add(r, part) adds row r to part. In float64 beyond 4 rows */
template <class E, class Add>
inline void columns_sum(E *sum, int64_t n, int64_t width, Add &&add) {
    constexpr int64_t ROWS = 4;
    double total[COLUMN_BLOCK];
    for (int64_t r = 0; r < n || r == 0; r += ROWS) {
        for (int64_t j = 0; j < width; ++j) sum[j] = 0;
        for (int64_t i = r; i < min64(n, r + ROWS); ++i) add(i, sum);
        if (n > ROWS)
            for (int64_t j = 0; j < width; ++j) total[j] = double(sum[j]) + (r ? total[j] : 0);
    }
    if (n > ROWS)
        for (int64_t j = 0; j < width; ++j) sum[j] = E(total[j]);
}

/* Each op works on one row x[0][...n) or a block of columns. Inputs and out may share memory. */
template <class E, bool LOG>
struct softmax_op {
    static constexpr int inputs = 1;
    /* a row that fits one vector */
    static void short_row(const E *x, E *out, int n) {
        using V = simd<E>;
        const bool full = n == V::width;
        /* padded with an element of the row: exp of a far-away padding would take longer */
        const auto v = full ? V::load(x) : V::blend(V::load_part(x, n), V::fill(x[0]), n);
        E top;
        V::template fold<1>(v, &top, [](auto a, auto b) { return maximum(a, b); });
        const auto shifted = v - V::fill(top);
        auto e = vector_exp<E>(shifted);
        if (!full) e = V::blend(e, V::fill(E(0)), n);
        const E sum = V::sum(e);
        const auto y = LOG ? shifted - V::fill(pt::log(sum)) : e * V::fill(1 / sum);
        if (full) V::store(out, y);
        else V::store_part(out, y, n);
    }
    static void row(const E *const *in, E *out, int64_t n) {
        const E *x = in[0];
        if (n <= simd<E>::width) return short_row(x, out, int(n));
        const E top = row_max(x, n);
        if (LOG) {
            const auto log_sum = simd<E>::fill(pt::log(E(row_exp_sum<false>(x, out, n, top))));
            const auto shift = simd<E>::fill(top);
            map_row(x, x, out, n, [=](auto v, auto) { return (v - shift) - log_sum; });
        }
        else {
            const auto scale = simd<E>::fill(E(1 / row_exp_sum<true>(x, out, n, top)));
            map_row(out, out, out, n, [=](auto v, auto) { return v * scale; });
        }
    }
    static void columns(const E *const *in, const int64_t *stride, E *out, int64_t step, int64_t n,
                        int64_t width) {
        alignas(64) E top[COLUMN_BLOCK], sum[COLUMN_BLOCK];
        const E *x = in[0];
        columns_max(top, x, stride[0], n, width);
        columns_sum(sum, n, width, [&](int64_t r, E *PT_RESTRICT part) {
            const E *p = x + r * stride[0];
            E *q = out + r * step;
            PT_IVDEP
            for (int64_t j = 0; j < width; ++j) {
                const E e = pt::exp(p[j] - top[j]);
                if (!LOG) q[j] = e;
                part[j] += e;
            }
        });
        for (int64_t j = 0; j < width; ++j) sum[j] = LOG ? pt::log(sum[j]) : 1 / sum[j];
        for (int64_t r = 0; r < n; ++r) {
            const E *p = x + r * stride[0];
            E *q = out + r * step;
            PT_IVDEP
            for (int64_t j = 0; j < width; ++j)
                q[j] = LOG ? (p[j] - top[j]) - sum[j] : q[j] * sum[j];
        }
    }
};

/* in: gradient g and the forward's output y */
template <class E, bool LOG>
struct softmax_backward_op {
    static constexpr int inputs = 2;
    static E term(E g, E y, E sum) { return LOG ? g - pt::exp(y) * sum : y * (g - sum); }
    static void row(const E *const *in, E *out, int64_t n) {
        const E *g = in[0], *y = in[1];
        const double total = row_sum(g, y, n, [](auto a, auto b) {
            (void)b;
            if constexpr (LOG) return a;
            else return a * b;
        });
        const auto sum = simd<E>::fill(E(total));
        map_row(g, y, out, n, [=](auto a, auto b) {
            if constexpr (LOG) return a - vector_exp<E>(b) * sum;
            else return b * (a - sum);
        });
    }
    static void columns(const E *const *in, const int64_t *stride, E *out, int64_t step, int64_t n,
                        int64_t width) {
        alignas(64) E sum[COLUMN_BLOCK];
        columns_sum(sum, n, width, [&](int64_t r, E *PT_RESTRICT part) {
            const E *g = in[0] + r * stride[0], *y = in[1] + r * stride[1];
            PT_IVDEP
            for (int64_t j = 0; j < width; ++j) part[j] += LOG ? g[j] : g[j] * y[j];
        });
        for (int64_t r = 0; r < n; ++r) {
            const E *g = in[0] + r * stride[0], *y = in[1] + r * stride[1];
            E *q = out + r * step;
            PT_IVDEP
            for (int64_t j = 0; j < width; ++j) q[j] = term(g[j], y[j], sum[j]);
        }
    }
};

/* An op at one dtype, behind pointers: elements of `item` bytes, computed in `tile` bytes. */
struct along_op {
    int inputs;
    int64_t item, tile;
    bool same;                  /* the stored type is the computed type */
    void (*row)(const void *const *in, void *out, int64_t n);
    void (*columns)(const void *const *in, const int64_t *stride, void *out, int64_t step,
                    int64_t n, int64_t width);
    void (*fetch)(void *dst, const void *src, int64_t stride, int64_t n);
    void (*put)(void *dst, const void *src, int64_t n);
};
template <class Op, class T, class E>
inline along_op along_of() {
    along_op op{Op::inputs, sizeof(T), sizeof(E), is_same<T, E>,
                nullptr,    nullptr,   nullptr,   nullptr};
    op.row = [](const void *const *in, void *out, int64_t n) {
        Op::row(reinterpret_cast<const E *const *>(in), static_cast<E *>(out), n);
    };
    op.columns = [](const void *const *in, const int64_t *stride, void *out, int64_t step,
                    int64_t n, int64_t width) {
        Op::columns(reinterpret_cast<const E *const *>(in), stride, static_cast<E *>(out), step, n,
                    width);
    };
    op.fetch = [](void *dst, const void *src, int64_t stride, int64_t n) {
        load(static_cast<E *>(dst), static_cast<const T *>(src), stride, n);
    };
    op.put = [](void *dst, const void *src, int64_t n) {
        store(static_cast<T *>(dst), static_cast<const E *>(src), n);
    };
    return op;
}

/* Handles the rows of n elements from element `at` to `end`. */
PT_INLINE void along_rows(const along_op &op, const char *x, const char *y, char *out, int64_t n,
                          int64_t at, int64_t end) {
    for (at *= op.tile, end *= op.tile; at < end; at += n * op.tile) {
        const void *rows[2] = {x + at, y + at};
        op.row(rows, out + at, n);
    }
}

/* Contiguous tensors whose rows of n elements lie one behind the other. */
int along_last(pt_call *call, const along_op &op, int64_t n) {
    const int64_t numel = call->out[0].numel, rows = numel / n;
    const char *x = call->in[0].data, *y = call->in[op.inputs - 1].data;
    char *out = call->out[0].data;
    if (op.same && numel <= SMALL) {
        along_rows(op, x, y, out, n, 0, numel);
        return PT_OK;
    }
    /* Other types are converted by several rows. Results have their own place: a load of a short
     * row waits for the store before it, where both are in one line of the cache. */
    const int64_t several = max64(1, SMALL / n), room = op.same ? 0 : several * n * op.tile;
    std::atomic<bool> starved{false};
    parallel_for(rows, grain_rows(8 * n), [&](int64_t begin, int64_t end) {
        if (op.same) return along_rows(op, x, y, out, n, begin * n, end * n);
        scratch<char> space((op.inputs + 1) * room);
        if (!space) {
            starved = true;
            return;
        }
        char *copy[2] = {space.data, space.data + (op.inputs - 1) * room};
        char *result = space.data + op.inputs * room;
        for (int64_t r = begin; r < end; r += several) {
            const int64_t first = r * n * op.item, m = min64(several, end - r) * n;
            for (int k = 0; k < op.inputs; ++k)
                op.fetch(copy[k], call->in[k].data + first, 1, m);
            along_rows(op, copy[0], copy[1], result, n, 0, m);
            op.put(out + first, result, m);
        }
    });
    return starved ? no_memory(call, (op.inputs + 1) * room) : int(PT_OK);
}

int along(pt_call *call, const along_op &op, int64_t dim) {
    const int N = op.inputs;
    const pt_view &shape = call->out[0];
    if (shape.numel == 0) return PT_OK;
    if (dim == shape.ndim - 1 && shape.sizes[dim] > 1 && call->in[0].contiguous &&
        call->in[N - 1].contiguous)
        return along_last(call, op, shape.sizes[dim]);
    int64_t n = 1, step[3] = {}, contiguous[PT_MAX_DIM];
    space<3> kept;         /* strides of the other dims: both inputs (or the first twice), output */
    for (int64_t d = shape.ndim - 1, s = 1; d >= 0; s *= shape.sizes[d--]) contiguous[d] = s;
    for (int d = 0; d < shape.ndim; ++d) {
        const int64_t s[3] = {call->in[0].strides[d], call->in[N - 1].strides[d], contiguous[d]};
        if (d == dim) {
            n = shape.sizes[d];
            memcpy(step, s, sizeof s);
        }
        else kept.push(shape.sizes[d], s);
    }
    const bool by_rows = n > 1 && step[2] == 1;     /* rows of one element are one row of columns */
    int64_t side[3] = {};
    const int64_t width = by_rows ? 1 : kept.pop(side);
    bool direct = op.same;
    for (int k = 0; k < N; ++k)
        direct = direct && (by_rows ? step[k] : side[k]) == 1;
    /* a scratch block has at most about 256 KB if n allows */
    const int64_t block = by_rows  ? 1
                          : direct ? COLUMN_BLOCK
                                   : min64(width, min64(COLUMN_BLOCK, max64(16, 65536 / n)));
    const int64_t blocks = ceil_div(width, block), bytes = n * block * op.tile;
    std::atomic<bool> starved{false};
    parallel_for(kept.numel() * blocks, grain_rows(8 * n * min64(width, block)),
                 [&](int64_t begin, int64_t end) {
                     scratch<char> space(direct ? 0 : N * bytes);
                     if (!space) {
                         starved = true;
                         return;
                     }
                     cursor<3> at(kept, begin / blocks);
                     for (int64_t u = begin; u < end; ++u) {
                         const int64_t b = u % blocks * block, w = min64(block, width - b);
                         const void *tile[2];
                         int64_t apart[2];
                         for (int k = 0; k < N; ++k) {
                             const char *from =
                                 call->in[k].data + (at.offset[k] + b * side[k]) * op.item;
                             tile[k] = from;
                             apart[k] = step[k];
                             if (direct) continue;
                             char *copy = space.data + k * bytes;
                             if (by_rows)
                                 op.fetch(copy, from, step[k], n);
                             else
                                 for (int64_t r = 0; r < n; ++r)
                                     op.fetch(copy + r * w * op.tile, from + r * step[k] * op.item,
                                              side[k], w);
                             tile[k] = copy;
                             apart[k] = w;
                         }
                         char *to = call->out[0].data + (at.offset[2] + b) * op.item;
                         void *result = op.same ? to : space.data;
                         if (by_rows)
                             op.row(tile, result, n);
                         else
                             op.columns(tile, apart, result, op.same ? step[2] : w, n, w);
                         if (!op.same && by_rows)
                             op.put(to, result, n);
                         else if (!op.same)
                             for (int64_t r = 0; r < n; ++r)
                                 op.put(to + r * step[2] * op.item, space.data + r * w * op.tile,
                                        w);
                         if (u % blocks == blocks - 1) at.next();
                     }
                 });
    return starved ? no_memory(call, N * bytes) : int(PT_OK);
}

template <template <class, bool> class Op, bool LOG>
int softmax_kernel(pt_call *call) {
    const pt_view &out = call->out[0];
    int64_t dim = out.ndim ? wrap_dim(call->params[0].i, out.ndim) : 0;
    if (out.ndim && (dim < 0 || dim >= out.ndim))
        return fail(call, PT_INDEX_ERROR, "dim must be in [%d, %d], got %lld", -out.ndim,
                    out.ndim - 1, (long long)call->params[0].i);
    for (int k = 0; k < call->nin; ++k)
        if (call->in[k].dtype != out.dtype || call->in[k].ndim != out.ndim ||
            !std::equal(out.sizes, out.sizes + out.ndim, call->in[k].sizes))
            return fail(call, PT_RUNTIME_ERROR,
                        "expected input %d with the output's dtype and shape", k);
    return visit<FLOATS>(call, out.dtype, [&](auto tag) {
        using T = PT_TYPE(tag);
        return along(call, along_of<Op<compute<T>, LOG>, T, compute<T>>(), dim);
    });
}

} // namespace

extern "C" const pt_kernel_entry PT_CAT(pt_kernels_softmax_, PT_ISA)[] = {
    {"softmax", softmax_kernel<softmax_op, false>},
    {"log_softmax", softmax_kernel<softmax_op, true>},
    {"softmax_backward", softmax_kernel<softmax_backward_op, false>},
    {"log_softmax_backward", softmax_kernel<softmax_backward_op, true>},
    {nullptr, nullptr},
};
