/* Kernels that rearrange or make elements: cat, flip, tril, triu, arange, linspace, eye.
 *
 *    cat(in...; dim)         flip(input; dims)        complex_pair(real, imag)
 *    tril(input; diagonal)   triu(input; diagonal)    (last two dims; the dims in front are batch)
 *    arange(; start, end, step)    linspace(; start, end, steps)    eye(; n, m)    full(; value)
 * Shapes are those of out[0]. Elements are moved by size, whatever
 * their dtype.
 */
#include "channels_last.hpp"
#include "copy_run.hpp"
#include "stored.hpp"

#include <algorithm>

namespace {

/* Calls row(first element of an output row, element offset in the input, number of the row) for all
 * rows of the output's last dim. */
template <class Row>
inline void rows_of_output(const pt_view &out, const int64_t *strides, int64_t cost, Row &&row) {
    space<1> outer;
    for (int d = 0; d < out.ndim - 1; ++d) outer.push(out.sizes[d], {strides[d]});
    const int64_t n = out.ndim ? out.sizes[out.ndim - 1] : 1, rows = n ? out.numel / n : 0;
    parallel_for(rows, grain_rows(cost), [&](int64_t begin, int64_t end) {
        cursor<1> at(outer, begin);
        for (int64_t r = begin; r < end; ++r, at.next()) row(r * n, at.offset[0], r);
    });
}

/* Fills the output in order: row after row, and in each row the pieces of the inputs. */
/* to[r * row] = from[r] for short pieces of B bytes. */
template <int B>
inline void strew(char *PT_RESTRICT to, int64_t row, const char *PT_RESTRICT from, int64_t n) {
    for (int64_t r = 0; r < n; ++r) std::memcpy(to + r * row, from + r * B, B);
}
inline void strew(char *PT_RESTRICT to, int64_t row, const char *PT_RESTRICT from, int64_t n,
                  int64_t bytes) {
    switch (bytes) {
    case 1: return strew<1>(to, row, from, n);
    case 2: return strew<2>(to, row, from, n);
    case 4: return strew<4>(to, row, from, n);
    case 8: return strew<8>(to, row, from, n);
    case 12: return strew<12>(to, row, from, n);
    case 16: return strew<16>(to, row, from, n);
    case 24: return strew<24>(to, row, from, n);
    case 32: return strew<32>(to, row, from, n);
    }
    for (int64_t r = 0; r < n; ++r)
        for (int64_t k = 0; k < bytes; ++k) to[r * row + k] = from[r * bytes + k];
}
/* Elements of N inputs in turn. */
template <int N, class T>
inline void interleave(T *PT_RESTRICT to, const T *const *from, int64_t n) {
    const T *x[N];
    for (int k = 0; k < N; ++k) x[k] = from[k];
    PT_IVDEP
    for (int64_t r = 0; r < n; ++r)
        for (int k = 0; k < N; ++k) to[r * N + k] = x[k][r];
}

/* Rows of pieces of at most SHORT_PIECE bytes, by parts of the rows whose output stays in the
 * nearest cache while each input is written to it. */
constexpr int64_t SHORT_PIECE = 32, NEAR_BYTES = 8192;
inline void cat_short(pt_call *call, int64_t dim, int64_t row, int64_t after) {
    const pt_view &out = call->out[0];
    const int64_t item = ITEMSIZE[out.dtype], bytes = row * item;
    bool single = (call->nin == 2 || call->nin == 4) && row == call->nin;
    for (int i = 0; i < call->nin; ++i) single = single && call->in[i].numel;
    parallel_for(out.numel / row, grain_rows(row), [&](int64_t begin, int64_t end) {
        if (single)
            return visit_size(call, out.dtype, [&](auto tag) {
                using T = PT_TYPE(tag);
                const T *from[4];
                for (int i = 0; i < call->nin; ++i) from[i] = input<T>(call, i) + begin;
                T *to = output<T>(call) + begin * row;
                if (row == 2) interleave<2>(to, from, end - begin);
                else interleave<4>(to, from, end - begin);
                return int(PT_OK);
            });
        const int64_t part = bytes < NEAR_BYTES ? NEAR_BYTES / bytes : 1;
        for (int64_t r = begin; r < end; r += part) {
            const int64_t n = min64(part, end - r);
            char *to = out.data + r * bytes;
            for (int i = 0; i < call->nin; ++i) {
                const pt_view &x = call->in[i];
                const int64_t piece = x.numel ? x.sizes[dim] * after * item : 0;
                if (piece) strew(to, bytes, x.data + r * piece, n, piece);
                to += piece;
            }
        }
        return int(PT_OK);
    });
}

inline void cat_contiguous(pt_call *call, int64_t dim, int64_t row, int64_t after) {
    const pt_view &out = call->out[0];
    const int64_t item = ITEMSIZE[out.dtype];
    parallel_for(out.numel, GRAIN, [&](int64_t begin, int64_t end) {
        int64_t r = begin ? begin / row : 0,
                skip = begin - r * row;     /* small outputs begin at 0, without a division */
        char *to = out.data + begin * item, *stop = out.data + end * item;
        for (; to < stop; ++r)
            for (int i = 0; i < call->nin && to < stop; ++i) {
                const pt_view &x = call->in[i];
                const int64_t piece = x.numel ? x.sizes[dim] * after : 0;
                if (skip >= piece) {
                    skip -= piece;
                    continue;
                }
                const int64_t bytes = min64((piece - skip) * item, stop - to);
                copy_run(to, x.data + (r * piece + skip) * item, size_t(bytes));
                to += bytes;
                skip = 0;
            }
    });
}

int cat_along(pt_call *call, int64_t dim) {
    const pt_view &out = call->out[0];
    int64_t total = 0, after = 1;
    for (int i = 0; i < call->nin; ++i) {
        const pt_view &x = call->in[i];
        if (x.dtype != out.dtype)
            return fail(call, PT_RUNTIME_ERROR, "expected input %d of the output's dtype", i);
        if (x.ndim == 1 && x.sizes[0] == 0 && out.ndim != 1)
            continue;      /* torch's legacy empty tensor is ignored */
        bool fits = x.ndim == out.ndim;
        for (int d = 0; fits && d < out.ndim; ++d) fits = d == dim || x.sizes[d] == out.sizes[d];
        if (!fits)
            return fail(call, PT_RUNTIME_ERROR,
                        "sizes of tensors must match except in dimension %lld (input %d)",
                        (long long)dim, i);
        total += x.sizes[dim];
    }
    if (total != out.sizes[dim])
        return fail(call, PT_RUNTIME_ERROR,
                    "expected an output of size %lld in dimension %lld, got %lld", (long long)total,
                    (long long)dim, (long long)out.sizes[dim]);
    for (int64_t d = dim + 1; d < out.ndim; ++d) after *= out.sizes[d];
    bool contiguous = true;
    for (int i = 0; i < call->nin; ++i)
        contiguous = contiguous && (call->in[i].contiguous || call->in[i].numel == 0);
    if (contiguous && out.numel) {
        bool pieces_are_short = true;
        for (int i = 0; i < call->nin; ++i)
            pieces_are_short = pieces_are_short && (call->in[i].numel == 0 ||
                call->in[i].sizes[dim] * after * ITEMSIZE[out.dtype] <= SHORT_PIECE);
        if (pieces_are_short)
            cat_short(call, dim, out.sizes[dim] * after, after);
        else cat_contiguous(call, dim, out.sizes[dim] * after, after);
        return PT_OK;
    }
    return visit_size(call, out.dtype, [&](auto tag) {
        using T = PT_TYPE(tag);
        int64_t start = 0;
        for (int i = 0; i < call->nin; ++i) {
            const pt_view &x = call->in[i];
            if (x.numel == 0) continue;
            space<2> walk;
            for (int64_t d = 0, s = out.numel; d < out.ndim; ++d) {
                s /= out.sizes[d];
                walk.push(x.sizes[d], {x.strides[d], s});
            }
            int64_t step[2];
            const int64_t n = walk.pop(step);
            T *to = output<T>(call) + start * after;
            parallel_for(walk.numel(), grain_rows(n), [&](int64_t begin, int64_t end) {
                cursor<2> at(walk, begin);
                for (int64_t r = begin; r < end; ++r, at.next()) {
                    const T *from = input<T>(call, i) + at.offset[0];
                    T *dst = to + at.offset[1];
                    if (step[0] == 1 && step[1] == 1) copy_run(dst, from, size_t(n) * sizeof(T));
                    else if (n == 1 || step[1] == 1) load(dst, from, n == 1 ? 1 : step[0], n);
                    else
                        for (int64_t j = 0; j < n; ++j) dst[j * step[1]] = from[j * step[0]];
                }
            });
            start += x.sizes[dim];
        }
        return int(PT_OK);
    });
}

/* In the channels-last format tensors are joined as row-major ones of (N, S..., C). */
int cat_kernel(pt_call *call) {
    const pt_view &out = call->out[0];
    const int64_t dim = wrap_dim(call->params[0].i, out.ndim);
    if (dim < 0 || dim >= out.ndim)
        return fail(call, PT_INDEX_ERROR, "dim must be in [%d, %d], got %lld", -out.ndim,
                    out.ndim - 1, (long long)call->params[0].i);
    if (out.contiguous || out.ndim < 4 || out.ndim > 5) return cat_along(call, dim);
    const memory_order order(out.ndim, true);
    scratch<pt_view> views(call->nin + 1);
    scratch<int64_t> numbers(2 * 5 * (call->nin + 1));
    if (!views || !numbers) return no_memory(call, (call->nin + 1) * int64_t(sizeof(pt_view) + 80));
    int64_t *at = numbers.data;
    for (int i = 0; i <= call->nin; ++i) {
        const pt_view &v = i < call->nin ? call->in[i] : out;
        if (v.ndim != out.ndim)
            return fail(call, PT_RUNTIME_ERROR, "expected tensors of %d dimensions", out.ndim);
        views[i] = v;
        views[i].sizes = at;
        views[i].strides = at + v.ndim;
        for (int k = 0; k < v.ndim; ++k, ++at) {
            at[0] = v.sizes[order[k]];
            at[v.ndim] = v.strides[order[k]];
        }
        at += v.ndim;
        views[i].contiguous = channels_last(v);
    }
    int64_t along = 0;
    while (order[int(along)] != dim) ++along;
    pt_call on = *call;
    on.in = views.data;
    on.out = views.data + call->nin;
    const int status = cat_along(&on, along);
    if (status) memcpy(call->error, on.error, sizeof on.error);
    return status;
}

int flip_kernel(pt_call *call) {
    const pt_view &x = call->in[0];
    int64_t strides[PT_MAX_DIM], start = 0;
    bool flipped[PT_MAX_DIM] = {};
    for (int i = 0; i < call->params[0].count; ++i) {
        const int64_t d = wrap_dim(call->params[0].list[i], x.ndim ? x.ndim : 1);
        if (d < 0 || d >= (x.ndim ? x.ndim : 1))
            return fail(call, PT_INDEX_ERROR, "dim must be in [%d, %d], got %lld", -x.ndim,
                        x.ndim - 1, (long long)call->params[0].list[i]);
        if (flipped[d])
            return fail(call, PT_RUNTIME_ERROR,
                        "dim %lld appears multiple times in the list of dims", (long long)d);
        flipped[d] = true;
    }
    if (x.numel == 0) return PT_OK;
    for (int d = 0; d < x.ndim; ++d) {
        strides[d] = flipped[d] ? -x.strides[d] : x.strides[d];
        start += flipped[d] ? (x.sizes[d] - 1) * x.strides[d] : 0;
    }
    pt_view y = x;
    y.strides = strides;
    return visit_size(call, x.dtype, [&](auto tag) {
        using T = PT_TYPE(tag);
        y.data = x.data + start * int64_t(sizeof(T));
        copy_contiguous(output<T>(call), y);
        return int(PT_OK);
    });
}

/* LOWER keeps elements with column <= row + diagonal, else those with column >= row + diagonal */
template <bool LOWER>
int triangle_kernel(pt_call *call) {
    const pt_view &x = call->in[0], &out = call->out[0];
    if (x.ndim < 2)
        return fail(call, PT_RUNTIME_ERROR, "expected at least 2 dimensions, got %d", x.ndim);
    const int64_t n = x.sizes[x.ndim - 2], m = x.sizes[x.ndim - 1], step = x.strides[x.ndim - 1];
    const int64_t diagonal = max64(-n - 1, min64(m + 1, call->params[0].i));
    return visit_size(call, x.dtype, [&](auto tag) {
        using T = PT_TYPE(tag);
        rows_of_output(out, x.strides, m, [&](int64_t first, int64_t offset, int64_t row) {
            const int64_t edge = max64(0, min64(m, row % n + diagonal + (LOWER ? 1 : 0)));
            const int64_t begin = LOWER ? 0 : edge, end = LOWER ? edge : m;
            T *to = output<T>(call) + first;
            memset(static_cast<void *>(to), 0, size_t(m) * sizeof(T));
            load(to + begin, input<T>(call) + offset + begin * step, end - begin == 1 ? 1 : step,
                 end - begin);
        });
        return int(PT_OK);
    });
}

/* ---- made without an input --------------------------------------------------------------- */

/* start + i step: in 64-bit integers for integer outputs, else in float64 */
int arange_kernel(pt_call *call) {
    const pt_view &out = call->out[0];
    const pt_param &start = call->params[0], &step = call->params[2];
    return visit<ALL>(call, out.dtype, [&](auto tag) {
        using T = PT_TYPE(tag);
        T *to = output<T>(call);
        parallel_for(out.numel, GRAIN, [&](int64_t begin, int64_t end) {
            if constexpr (std::is_integral<T>::value) {
                const uint64_t first = uint64_t(scalar<int64_t>(start)),
                               by = uint64_t(scalar<int64_t>(step));
                for (int64_t i = begin; i < end; ++i) to[i] = T(first + uint64_t(i) * by);
            }
            else {
                const double first = start.d, by = step.d;
                for (int64_t i = begin; i < end; ++i) to[i] = convert<T>(first + double(i) * by);
            }
        });
        return int(PT_OK);
    });
}

/* the second half counts down from the end, as in torch: both ends are exact */
int linspace_kernel(pt_call *call) {
    const pt_view &out = call->out[0];
    const int64_t n = out.numel;
    return visit<ALL>(call, out.dtype, [&](auto tag) {
        using T = PT_TYPE(tag);
        using E = std::conditional_t<is_complex<T>, complex128, double>;
        const E first = scalar<E>(call->params[0]), last = scalar<E>(call->params[1]);
        const double pieces = double(n > 1 ? n - 1 : 1);
        T *to = output<T>(call);
        parallel_for(n, GRAIN, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) {
                const E span = last - first;
                E v;
                if constexpr (is_complex<T>) {
                    const E by{span.re / pieces, span.im / pieces};
                    v = i < n / 2 || n == 1 ? first + by * E(double(i))
                                            : last - by * E(double(n - 1 - i));
                }
                else
                    v = i < n / 2 || n == 1 ? first + span / pieces * double(i)
                                            : last - span / pieces * double(n - 1 - i);
                if constexpr (std::is_integral<T>::value) to[i] = T(int64_t(v));
                else to[i] = convert<T>(v);
            }
        });
        return int(PT_OK);
    });
}

int eye_kernel(pt_call *call) {
    const pt_view &out = call->out[0];
    if (out.ndim != 2)
        return fail(call, PT_RUNTIME_ERROR, "expected an output of 2 dimensions, got %d", out.ndim);
    if (pt_is(out.dtype, PT_KIND_FLOAT8))
        return with_stored(call, out.dtype, 1, 0, [&](auto one) {
            memset(out.data, 0, size_t(out.numel) * sizeof one);
            for (int64_t i = 0; i < min64(out.sizes[0], out.sizes[1]); ++i)
                output<decltype(one)>(call)[i * (out.sizes[1] + 1)] = one;
        });
    return visit<ALL>(call, out.dtype, [&](auto tag) {
        using T = PT_TYPE(tag);
        memset(out.data, 0, size_t(out.numel) * sizeof(T));
        for (int64_t i = 0; i < min64(out.sizes[0], out.sizes[1]); ++i)
            output<T>(call)[i * (out.sizes[1] + 1)] = convert<T>(1);
        return int(PT_OK);
    });
}

int full_kernel(pt_call *call) {
    const pt_view &out = call->out[0];
    const pt_param &p = call->params[0];
    if (pt_is(out.dtype, PT_KIND_STORED))
        return with_stored(call, out.dtype, p.d, p.kind == PT_PARAM_COMPLEX ? p.im : 0,
                           [&](auto value) {
                               auto *to = output<decltype(value)>(call);
                               std::fill(to, to + out.numel, value);
                           });
    return visit<ALL>(call, out.dtype, [&](auto tag) {
        using T = PT_TYPE(tag);
        const bool truth = p.d != 0 || (p.kind == PT_PARAM_INT && p.i) || p.im != 0;
        const T value = out.dtype == PT_BOOL ? convert<T>(truth) : scalar<T>(p);
        T *to = output<T>(call);
        parallel_for(out.numel, GRAIN,
                     [&](int64_t begin, int64_t end) { std::fill(to + begin, to + end, value); });
        return int(PT_OK);
    });
}

template <class T>
void interleave(const pt_call *call) {
    const T *real = reinterpret_cast<const T *>(call->in[0].data),
            *imag = reinterpret_cast<const T *>(call->in[1].data);
    T *to = reinterpret_cast<T *>(call->out[0].data);
    const pt_view &x = call->in[0], &y = call->in[1], &out = call->out[0];
    space<3> all;
    bool alike = true;
    for (int d = 0; d < out.ndim; ++d) {
        all.push(out.sizes[d], {x.strides[d], y.strides[d], out.strides[d]});
        alike = alike && (out.sizes[d] == 1 ||
                          (x.strides[d] == out.strides[d] && y.strides[d] == out.strides[d]));
    }
    parallel_for(out.numel, GRAIN, [&](int64_t begin, int64_t end) {
        if (alike) {            /* and thus out has no gaps */
            for (int64_t i = begin; i < end; ++i) to[2 * i] = real[i], to[2 * i + 1] = imag[i];
            return;
        }
        cursor<3> at(all, begin);
        for (int64_t i = begin; i < end; ++i, at.next()) {
            T *pair = to + 2 * at.offset[2];
            pair[0] = real[at.offset[0]], pair[1] = imag[at.offset[1]];
        }
    });
}

int complex_pair_kernel(pt_call *call) {
    const int dtype = call->in[0].dtype;
    if (dtype != call->in[1].dtype || (dtype != PT_FLOAT32 && dtype != PT_FLOAT64))
        return fail(call, PT_TYPE_ERROR, "expected parts of one dtype, float32 or float64");
    dtype == PT_FLOAT32 ? interleave<float>(call) : interleave<double>(call);
    return PT_OK;
}

} // namespace

extern "C" const pt_kernel_entry PT_CAT(pt_kernels_shape_, PT_ISA)[] = {
    {"cat", cat_kernel},
    {"flip", flip_kernel},
    {"tril", triangle_kernel<true>},
    {"triu", triangle_kernel<false>},
    {"arange", arange_kernel},
    {"linspace", linspace_kernel},
    {"eye", eye_kernel},
    {"full", full_kernel},
    {"complex_pair", complex_pair_kernel},
    {nullptr, nullptr},
};
