/* The walk of running reductions along a dim. Rows are taken one by one if the dim is the output's
 * innermost, else blocks of neighbouring columns are carried along together. A Scan has
 *
 *    out_type, carry, carry start(), void step(carry &, T x, int64_t i, T &out, int64_t *index)
 */
#ifndef PTCORE_KERNELS_SCAN_HPP
#define PTCORE_KERNELS_SCAN_HPP
#include "common.hpp"

namespace {

constexpr int64_t COLUMNS = 256;

/* ROWS rows side by side, so that their dependent carries overlap in time */
template <class Scan, int ROWS, class T, class O>
inline void scan_rows(const T *const *from, O *const *to, int64_t *const *index, int64_t n,
                      int64_t step) {
    typename Scan::carry carry[ROWS];
    int64_t unused;
    for (int r = 0; r < ROWS; ++r) carry[r] = Scan::start();
    for (int64_t i = 0; i < n; ++i)
        for (int r = 0; r < ROWS; ++r)
            Scan::step(carry[r], convert<O>(from[r][i * step]), i, to[r][i],
                       index[r] ? index[r] + i : &unused);
}

/* A scan at one pair of dtypes, behind pointers. Strides are in elements. */
constexpr int ROWS = 4;
struct scan_op {
    int64_t in_item, out_item;
    void (*rows)(const void *const *from, void *const *to, int64_t *const *index, int64_t n,
                 int64_t step, int count);
    /* n rows of w <= COLUMNS columns; `step` (input) and `down` (output) lead from row to row,
     * `side` from column to column of the input */
    void (*columns)(const void *from, void *to, int64_t *index, int64_t n, int64_t step,
                    int64_t down, int64_t side, int64_t w);
};
template <class Scan, class T>
inline scan_op scan_of() {
    using O = typename Scan::out_type;
    scan_op op;
    op.in_item = sizeof(T);
    op.out_item = sizeof(O);
    op.rows = [](const void *const *from, void *const *to, int64_t *const *index, int64_t n,
                 int64_t step, int count) {
        const T *const *x = reinterpret_cast<const T *const *>(from);
        O *const *y = reinterpret_cast<O *const *>(to);
        if (count == ROWS) return scan_rows<Scan, ROWS>(x, y, index, n, step);
        for (int r = 0; r < count; ++r) scan_rows<Scan, 1>(x + r, y + r, index + r, n, step);
    };
    op.columns = [](const void *from, void *to, int64_t *index, int64_t n, int64_t step,
                    int64_t down, int64_t side, int64_t w) {
        typename Scan::carry carry[COLUMNS];
        int64_t unused;
        for (int64_t j = 0; j < w; ++j) carry[j] = Scan::start();
        for (int64_t i = 0; i < n; ++i) {
            const T *PT_RESTRICT x = static_cast<const T *>(from) + i * step;
            O *PT_RESTRICT y = static_cast<O *>(to) + i * down;
            int64_t *p = index ? index + i * down : nullptr;
            if (side == 1)
                for (int64_t j = 0; j < w; ++j)
                    Scan::step(carry[j], convert<O>(x[j]), i, y[j], p ? p + j : &unused);
            else
                for (int64_t j = 0; j < w; ++j)
                    Scan::step(carry[j], convert<O>(x[j * side]), i, y[j], p ? p + j : &unused);
        }
    };
    return op;
}

/* Runs the scan along params[0]. */
int scan(pt_call *call, const scan_op &op) {
    const pt_view &x = call->in[0];
    char *out = call->out[0].data;
    int64_t *index = call->nout > 1 ? output<int64_t>(call, 1) : nullptr;
    if (x.numel == 0) return PT_OK;
    const int64_t dim = x.ndim ? wrap_dim(call->params[0].i, x.ndim) : 0;
    int64_t n = 1, step = 0, inner = 1;
    space<2> kept;
    for (int64_t d = 0, s = x.numel; d < x.ndim; ++d) {
        s /= x.sizes[d];
        if (d == dim) {
            n = x.sizes[d];
            step = x.strides[d];
            inner = s;
        }
        else kept.push(x.sizes[d], {x.strides[d], s});
    }
    if (inner == 1) {
        parallel_for(kept.numel(), max64(ROWS, grain_rows(4 * n)), [&](int64_t begin, int64_t end) {
            cursor<2> at(kept, begin);
            for (int64_t u = begin; u < end;) {
                const void *from[ROWS];
                void *to[ROWS];
                int64_t *indices[ROWS];
                int count = 0;
                for (; count < ROWS && u < end; ++count, ++u, at.next()) {
                    from[count] = x.data + at.offset[0] * op.in_item;
                    to[count] = out + at.offset[1] * op.out_item;
                    indices[count] = index ? index + at.offset[1] : nullptr;
                }
                op.rows(from, to, indices, n, step, count);
            }
        });
        return PT_OK;
    }
    int64_t side[2];
    const int64_t width = kept.pop(side), blocks = ceil_div(width, COLUMNS);
    parallel_for(kept.numel() * blocks, grain_rows(2 * n * min64(width, COLUMNS)),
                 [&](int64_t begin, int64_t end) {
                     cursor<2> at(kept, begin / blocks);
                     for (int64_t u = begin; u < end; ++u) {
                         const int64_t b = u % blocks * COLUMNS, to = at.offset[1] + b;
                         op.columns(x.data + (at.offset[0] + b * side[0]) * op.in_item,
                                    out + to * op.out_item, index ? index + to : nullptr, n, step,
                                    inner, side[0], min64(COLUMNS, width - b));
                         if (u % blocks == blocks - 1) at.next();
                     }
                 });
    return PT_OK;
}

inline int check_dim(pt_call *call) {
    const int ndim = call->in[0].ndim ? call->in[0].ndim : 1;
    const int64_t dim = wrap_dim(call->params[0].i, ndim);
    if (dim >= 0 && dim < ndim) return PT_OK;
    return fail(call, PT_INDEX_ERROR, "dim must be in [%d, %d], got %lld", -ndim, ndim - 1,
                (long long)call->params[0].i);
}

} // namespace
#endif
