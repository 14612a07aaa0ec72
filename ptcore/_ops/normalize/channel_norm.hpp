/* What the norms of channels share: tensors (N, C, S...) read in runs, sums of columns, the running
 * statistics. Sums are taken in E over four elements and in float64 beyond; half types are computed
 * in float32. */
#ifndef PTCORE_NORMALIZE_CHANNEL_NORM_HPP
#define PTCORE_NORMALIZE_CHANNEL_NORM_HPP
#include "rows.hpp"

#include <atomic>

namespace {

constexpr int64_t WIDE = 16, COLUMNS = 256, ROWS = 4;

struct shape {
    int64_t n, c, s;
    explicit shape(const pt_view &x) : n(x.sizes[0]), c(x.sizes[1]), s(1) {
        for (int d = 2; d < x.ndim; ++d) s *= x.sizes[d];
    }
};

template <class E>
PT_NOINLINE const E *converted(const pt_view &v, int64_t first, int64_t n, E *buffer) {
    switch (v.dtype) {
    case PT_FLOAT16: load(buffer, reinterpret_cast<const half *>(v.data) + first, 1, n); break;
    case PT_BFLOAT16:
        load(buffer, reinterpret_cast<const bfloat16 *>(v.data) + first, 1, n);
        break;
    case PT_FLOAT32: load(buffer, reinterpret_cast<const float *>(v.data) + first, 1, n); break;
    default: load(buffer, reinterpret_cast<const double *>(v.data) + first, 1, n); break;
    }
    return buffer;
}
/* elements [first, first + n) of a contiguous tensor: in place, or converted into the buffer */
template <class E>
inline const E *fetch(const pt_view &v, int64_t first, int64_t n, E *buffer) {
    if (v.dtype == (is_same<E, float> ? PT_FLOAT32 : PT_FLOAT64))
        return reinterpret_cast<const E *>(v.data) + first;
    return converted(v, first, n, buffer);
}

/* calls f(p, q, i, m) for runs p[0..m) and q[0..m) of two tensors, i elements after `first` */
template <class E, class F>
inline void runs(const pt_view &a, const pt_view &b, int64_t first, int64_t n, E *buffer, F &&f) {
    for (int64_t i = 0; i < n; i += ROW_RUN) {
        const int64_t m = min64(ROW_RUN, n - i);
        const E *p = fetch(a, first + i, m, buffer);
        f(p, &a == &b ? p : fetch(b, first + i, m, buffer + ROW_RUN), i, m);
    }
}

/* writes map(p, q, j) of each element of a run to the output */
template <class E, class Map>
inline void mapped(const pt_view &out, int64_t first, const E *PT_RESTRICT p,
                   const E *PT_RESTRICT q, int64_t m, E *buffer, Map &&map) {
    E *PT_RESTRICT to = in_place(out, first, buffer);
    PT_IVDEP
    for (int64_t j = 0; j < m; ++j) to[j] = map(p[j], q[j], j);
    if (to == buffer) write(out, first, to, m);
}

inline double or_else(const pt_view &v, int64_t i, double other) {
    return present(v) ? get_real(v, i) : other;
}

constexpr auto first_of = [](auto a, auto) { return a; };

/* The running statistics, outputs 3 and 4 of a call, which may be absent. */
struct running {
    const pt_view *mean = nullptr, *var = nullptr;
    double momentum = 0;
    explicit running(const pt_call *call) {
        if (call->nout > 3 && present(call->out[3])) mean = &call->out[3];
        if (call->nout > 4 && present(call->out[4])) var = &call->out[4];
        if (*this) momentum = call->params[call->nparams - 1].d;
    }
    explicit operator bool() const { return mean || var; }
    /* Rounds like the ops that graphs have instead (batch_norm_writes in
     * decompositions.py), so that both give the same bits. The products are volatile,
     * because they must not be fused into the sum. */
    template <class T>
    void move_as(const pt_view &v, int64_t c, double to, double factor) const {
        T *const data = reinterpret_cast<T *>(v.data);
        volatile T kept = data[c] * T(1 - momentum), share = T(to) * T(factor);
        data[c] = kept + share;
    }
    void move_one(const pt_view *v, int64_t c, double to, double factor) const {
        if (!v) return;
        switch (v->dtype) {
        case PT_FLOAT32: return move_as<float>(*v, c, to, factor);
        case PT_FLOAT64: return move_as<double>(*v, c, to, factor);
        default: put_real(*v, c, get_real(*v, c) * (1 - momentum) + to * factor);
        }
    }
    /* moves towards the mean and the biased variance of `count` elements, corrected to the unbiased
     * one; for a single element that does not exist (NaN) */
    void move(int64_t c, double m, double biased, double count) const {
        move_one(mean, c, m, momentum);
        move_one(var, c, biased, count > 1 ? momentum * count / (count - 1) : NAN);
    }
};

/* -- statistics of one channel, or of columns of narrow ones ----------------------------------- */

/* total[k * pitch + j] = the sum over n rows, `row` elements apart, of map(a, b, j, k) for columns
 * [start, start + width) and K sums; map takes numbers of type P, in which four are added, and k as
 * an integral constant */
template <int K, class P, class E, class Map>
inline void column_sums(const pt_view &a, const pt_view &b, int64_t n, int64_t row, int64_t start,
                        int64_t width, double *total, int64_t pitch, E *buffer, Map &&map) {
    const auto each_sum = [&](auto &&sum) {
        sum(std::integral_constant<int, 0>{});
        if constexpr (K > 1) sum(std::integral_constant<int, 1>{});
    };
    for (int k = 0; k < K; ++k)
        for (int64_t j = 0; j < width; ++j) total[k * pitch + j] = 0;
    for (int64_t r0 = 0; r0 < n; r0 += ROWS) {
        const E *p[ROWS], *q[ROWS];
        const int64_t rows = min64(ROWS, n - r0);
        for (int64_t r = 0; r < ROWS; ++r) {
            const int64_t at = (r0 + min64(r, rows - 1)) * row + start;
            p[r] = fetch(a, at, width, buffer + 2 * r * COLUMNS);
            q[r] = &a == &b ? p[r] : fetch(b, at, width, buffer + (2 * r + 1) * COLUMNS);
        }
        each_sum([&](auto k) {
            double *PT_RESTRICT to = total + k * pitch;
            const E *PT_RESTRICT p0 = p[0], *PT_RESTRICT p1 = p[1], *PT_RESTRICT p2 = p[2],
                    *PT_RESTRICT p3 = p[3];
            const E *PT_RESTRICT q0 = q[0], *PT_RESTRICT q1 = q[1], *PT_RESTRICT q2 = q[2],
                    *PT_RESTRICT q3 = q[3];
            if (rows == ROWS) {
                PT_IVDEP
                for (int64_t j = 0; j < width; ++j) {
                    P part = map(P(p0[j]), P(q0[j]), j, k);
                    part += map(P(p1[j]), P(q1[j]), j, k);
                    part += map(P(p2[j]), P(q2[j]), j, k);
                    part += map(P(p3[j]), P(q3[j]), j, k);
                    to[j] += double(part);
                }
                return;
            }
            for (int64_t j = 0; j < width; ++j) {
                P part = map(P(p0[j]), P(q0[j]), j, k);
                if (rows > 1) part += map(P(p1[j]), P(q1[j]), j, k);
                if (rows > 2) part += map(P(p2[j]), P(q2[j]), j, k);
                to[j] += double(part);
            }
        });
    }
}
template <class Test>
inline bool any(const double *sums, int64_t n, Test &&test) {
    bool found = false;
    for (int64_t j = 0; j < n; ++j) found |= test(sums[j]);
    return found;
}
/* for each column: the sum over the s columns of its channel, divided by `divisor` */
template <class E>
inline void spread(const double *total, int64_t s, int64_t width, double divisor, E *out) {
    for (int64_t j = 0; j < width; j += s) {
        double sum = 0;
        for (int64_t k = 0; k < s; ++k) sum += total[j + k];
        for (int64_t k = 0; k < s; ++k) out[j + k] = E(sum / divisor);
    }
}

/* The variance of one channel of samples [begin, end), and the sum of g (x - mean), for derivatives
 * where these are beyond the numbers of float32. */
PT_NOINLINE double far_sums(const pt_call *call, int64_t begin, int64_t end, int64_t c, double mean,
                            double &product) {
    const pt_view &g = call->in[0], &in = call->in[1];
    const shape x(in);
    double squares = 0;
    product = 0;
    for (int64_t n = begin; n < end; ++n)
        for (int64_t i = 0; i < x.s; ++i) {
            const int64_t at = n * x.c * x.s + (in.contiguous ? c * x.s + i : i * x.c + c);
            const double v = get_real(in, at) - mean;
            squares += v * v;
            product += get_real(g, at) * v;
        }
    return squares / double((end - begin) * x.s);
}

/* calls body(first channel, number of channels, scratch of 4 runs) for blocks of channels */
template <class E, class Body>
inline int over_channels(pt_call *call, const shape &x, Body &&body) {
    const int64_t block = x.s >= WIDE ? 1 : COLUMNS / x.s, blocks = ceil_div(x.c, block);
    std::atomic<bool> starved{false};
    parallel_for(blocks, grain_rows(4 * block * x.n * x.s), [&](int64_t begin, int64_t end) {
        scratch<E> space(4 * ROW_RUN);
        if (!space) {
            starved = true;
            return;
        }
        for (int64_t i = begin; i < end; ++i)
            body(i * block, min64(block, x.c - i * block), space.data);
    });
    return starved ? no_memory(call, 4 * ROW_RUN * int64_t(sizeof(E))) : int(PT_OK);
}

} // namespace
#endif
