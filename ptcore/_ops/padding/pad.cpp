/* Padding with a number, or with the input's own elements.
 *
 *    pad_constant(input; pad, value) -> out         negative pads cut elements off
 *    pad_edges(input; pad, mode) -> out             mode 0 reflect, 1 replicate, 2 circular
 *    pad_edges_transposed(input; pad, mode) -> out  adds each element to the one that it copies
 * pad holds pairs (before, after) for the last dims, the last dim first. Dims are walked in their
 * order in memory, so that a row of a channels-last tensor is the channels of a position.
 */
#include "channels_last.hpp"
#include "copy_run.hpp"
#include "stored.hpp"

namespace {

int constant_kernel(pt_call *call) {
    const pt_view &x = call->in[0], &y = call->out[0];
    const pt_param &pad = call->params[0];
    if (pad.count > 2 * x.ndim)
        return fail(call, PT_RUNTIME_ERROR, "pad has more pairs than input has dimensions");
    if (y.numel == 0) return PT_OK;
    const pt_param &number = call->params[1];
    const memory_order order(x.ndim, runs_channels_last(x, y));
    const auto padded = [&](auto value) {
        using T = decltype(value);
        T *to = output<T>(call);
        /* the kept part of the input, and its offsets in the input and in the output */
        int64_t box[PT_MAX_DIM], skip = 0, start = 0;
        bool any = true, whole = true;
        for (int d = 0; d < x.ndim; ++d) {
            const int pair = x.ndim - 1 - d;
            const int64_t before = 2 * pair < pad.count ? pad.list[2 * pair] : 0,
                          after = 2 * pair + 1 < pad.count ? pad.list[2 * pair + 1] : 0;
            const int64_t from = before < 0 ? -before : 0,
                          end = x.sizes[d] - (after < 0 ? -after : 0);
            box[d] = end - from;
            any = any && box[d] > 0;
            whole = whole && box[d] == y.sizes[d];
            skip += from * x.strides[d];
            start += (before > 0 ? before : 0) * y.strides[d];
        }
        const auto fill = [value](T *from, const T *end) {
            for (; from < end; ++from) *from = value;
        };
        const int64_t total = y.numel;
        space<2> all;
        for (int k = 0; k < x.ndim && any; ++k) {
            const int d = order[k];
            all.push(box[d], {x.strides[d], y.strides[d]});
        }
        int64_t step[2] = {1, 1};
        const int64_t n = any ? all.pop(step) : 0, rows = any ? all.numel() : 0;
        const bool runs =
            any &&
            (n == 1 || step[1] == 1); /* each row fills the gap after the previous row */
        if (!runs && !whole)
            parallel_for(total, GRAIN,
                         [=](int64_t begin, int64_t end) { fill(to + begin, to + end); });
        parallel_for(rows, grain_rows(n), [&](int64_t begin, int64_t end) {
            cursor<2> at(all, begin);
            T *done = begin ? to + start + cursor<2>(all, begin - 1).offset[1] + n : to;
            for (int64_t r = begin; r < end; ++r, at.next()) {
                const T *from = input<T>(call) + skip + at.offset[0];
                T *row = to + start + at.offset[1];
                if (!runs) {
                    for (int64_t i = 0; i < n; ++i) row[i * step[1]] = from[i * step[0]];
                    continue;
                }
                fill(done, row);
                if (step[0] == 1) copy_run(row, from, size_t(n) * sizeof(T));
                else load(row, from, n == 1 ? 1 : step[0], n);
                done = row + n;
            }
            if (runs && end == rows) fill(done, to + total);
        });
        return int(PT_OK);
    };
    if (pt_is(x.dtype, PT_KIND_STORED))
        return with_stored(call, x.dtype, number.d, number.kind == PT_PARAM_COMPLEX ? number.im : 0,
                           padded);
    return visit<ALL>(call, x.dtype, [&](auto tag) {
        using T = PT_TYPE(tag);
        T value = scalar<T>(number);
        if constexpr (is_same<T, uint8_t>)
            if (x.dtype == PT_BOOL) value = number.d != 0;
        return padded(value);
    });
}

/* ---- from the input itself --------------------------------------------------------------- */

enum { REFLECT, REPLICATE, CIRCULAR };

/* The element, of n, that element i of a padded dim copies; pads longer than n
 * reflect or wrap repeatedly. */
inline int64_t source(int64_t i, int64_t n, int64_t mode) {
    if (i >= 0 && i < n) return i;
    if (mode == REPLICATE || n == 1) return i < 0 ? 0 : i < n ? i : n - 1;
    if (mode == CIRCULAR) return (i % n + n) % n;
    const int64_t turn = 2 * n - 2;
    i = (i % turn + turn) % turn;
    return i < n ? i : turn - i;
}

/* Rows of a padded dense tensor, and the rows of the inner tensor that they copy; dims are in their
 * order in memory. */
struct frame {
    int ndim;
    int unpadded = 0;           /* dims in front of the first padded one, but not the last dim */
    int64_t rows = 1, width, before, inside, mode;
    int64_t size[PT_MAX_DIM], begin[PT_MAX_DIM], inner[PT_MAX_DIM], stride[PT_MAX_DIM];

    frame(const pt_view &small, const pt_view &large, const pt_param &pad, int64_t m, bool last)
        : ndim(small.ndim), mode(m) {
        const memory_order order(ndim, last);
        for (int k = 0; k < ndim; ++k) {
            const int d = order[k], pair = ndim - 1 - d;
            begin[k] = 2 * pair < pad.count ? pad.list[2 * pair] : 0;
            size[k] = large.sizes[d];
            inner[k] = small.sizes[d];
            stride[k] = small.strides[d];
            if (unpadded == k && k < ndim - 1 && 2 * pair >= pad.count) ++unpadded;
            if (k < ndim - 1) rows *= size[k];
        }
        width = size[ndim - 1];
        before = begin[ndim - 1];
        inside = inner[ndim - 1];
    }
    /* the inner column that each column before or behind the inner ones copies */
    bool columns(scratch<int64_t> &of) const {
        if (!of) return false;
        for (int64_t j = 0; j < before; ++j) of[j] = column(j);
        for (int64_t j = before + inside; j < width; ++j) of[j - inside] = column(j);
        return true;
    }
    int64_t column(int64_t j) const { return source(j - before, inside, mode); }
};

/* The rows of a frame one after another: the offset of each in the inner tensor. */
struct frame_row {
    const frame &in;
    int64_t index[PT_MAX_DIM], part[PT_MAX_DIM], at = 0;

    frame_row(const frame &f, int64_t r) : in(f) {
        for (int d = f.ndim - 2; d >= 0; --d) {
            index[d] = r % f.size[d];
            r /= f.size[d];
            at += part[d] = place(d);
        }
    }
    int64_t place(int d) const {
        return source(index[d] - in.begin[d], in.inner[d], in.mode) * in.stride[d];
    }
    void next() {
        for (int d = in.ndim - 2; d >= 0; --d) {
            const bool again = ++index[d] == in.size[d];
            if (again) index[d] = 0;
            at -= part[d];
            at += part[d] = place(d);
            if (!again) return;
        }
    }
};

inline int check_edges(pt_call *call, const pt_view &small, const pt_view &large) {
    const pt_param &pad = call->params[0];
    if (small.ndim < 1 || small.ndim != large.ndim || pad.count % 2 || pad.count > 2 * small.ndim)
        return fail(call, PT_RUNTIME_ERROR,
                    "expected pairs for at most %d dimensions, got %d numbers", small.ndim,
                    pad.count);
    for (int d = 0; d < small.ndim; ++d) {
        const int pair = small.ndim - 1 - d;
        const int64_t before = 2 * pair < pad.count ? pad.list[2 * pair] : 0,
                      after = 2 * pair < pad.count ? pad.list[2 * pair + 1] : 0;
        if (before < 0 || after < 0 || large.sizes[d] != small.sizes[d] + before + after ||
            (small.sizes[d] == 0 && large.sizes[d] != 0))
            return fail(call, PT_RUNTIME_ERROR, "pads and sizes do not fit in dimension %d", d);
    }
    return PT_OK;
}

int edges_kernel(pt_call *call) {
    const pt_view &x = call->in[0], &y = call->out[0];
    if (int status = check_edges(call, x, y)) return status;
    if (y.numel == 0) return PT_OK;
    const frame f(x, y, call->params[0], call->params[1].i, runs_channels_last(x, y));
    const int64_t step = f.stride[x.ndim - 1], end_of_row = f.width - f.inside;
    scratch<int64_t> from_column(end_of_row);
    if (!f.columns(from_column)) return no_memory(call, 8 * end_of_row);
    return visit_size(call, x.dtype, [&](auto tag) {
        using T = PT_TYPE(tag);
        parallel_for(f.rows, grain_rows(f.width), [&](int64_t begin, int64_t end) {
            frame_row row(f, begin);
            for (int64_t r = begin; r < end; ++r, row.next()) {
                const T *from = input<T>(call) + row.at;
                T *to = output<T>(call) + r * f.width;
                for (int64_t j = 0; j < f.before; ++j) to[j] = from[from_column[j] * step];
                if (step == 1) copy_run(to + f.before, from, size_t(f.inside) * sizeof(T));
                else load(to + f.before, from, step, f.inside);
                for (int64_t j = f.before; j < end_of_row; ++j)
                    to[j + f.inside] = from[from_column[j] * step];
            }
        });
        return int(PT_OK);
    });
}

int edges_transposed_kernel(pt_call *call) {
    const pt_view &x = call->in[0], &y = call->out[0];
    if (int status = check_edges(call, y, x)) return status;
    if (y.numel == 0) return PT_OK;
    const frame f(y, x, call->params[0], call->params[1].i, runs_channels_last(x, y));
    const int64_t end_of_row = f.width - f.inside;
    scratch<int64_t> to_column(end_of_row);
    if (!f.columns(to_column)) return no_memory(call, 8 * end_of_row);
    /* threads split the dims in front of the padded ones, so that no two add to one element */
    int64_t parts = 1;
    for (int k = 0; k < f.unpadded; ++k) parts *= f.size[k];
    const int64_t part = y.numel / parts, each = f.rows / parts;
    return visit<FLOATS | COMPLEXES>(call, x.dtype, [&](auto tag) {
        using T = PT_TYPE(tag);
        using E = compute<T>;
        scratch<E> wide(is_same<E, T> ? 0 : y.numel);
        if (!wide) return no_memory(call, y.numel * int64_t(sizeof(E)));
        E *sums;
        if constexpr (is_same<E, T>) sums = output<T>(call);
        else sums = wide.data;
        parallel_for(parts, grain_rows(each * f.width), [&](int64_t begin, int64_t end) {
            for (int64_t i = begin * part; i < end * part; ++i) sums[i] = E{};
            frame_row row(f, begin * each);
            for (int64_t r = begin * each; r < end * each; ++r, row.next()) {
                const T *from = input<T>(call) + r * f.width;
                E *PT_RESTRICT to = sums + row.at;
                for (int64_t j = 0; j < f.before; ++j)
                    to[to_column[j]] = to[to_column[j]] + convert<E>(from[j]);
                for (int64_t j = 0; j < f.inside; ++j)
                    to[j] = to[j] + convert<E>(from[f.before + j]);
                for (int64_t j = f.before; j < end_of_row; ++j)
                    to[to_column[j]] = to[to_column[j]] + convert<E>(from[j + f.inside]);
            }
            if constexpr (!is_same<E, T>)
                store(output<T>(call) + begin * part, sums + begin * part, (end - begin) * part);
        });
        return int(PT_OK);
    });
}

} // namespace

extern "C" const pt_kernel_entry PT_CAT(pt_kernels_pad_, PT_ISA)[] = {
    {"pad_constant", constant_kernel},
    {"pad_edges", edges_kernel},
    {"pad_edges_transposed", edges_transposed_kernel},
    {nullptr, nullptr},
};
