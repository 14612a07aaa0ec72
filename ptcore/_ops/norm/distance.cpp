/* Distances between rows: p-norms of the rows' differences, which are never stored.
 *
 *    pair_distances(x1 (*, m, d), x2 (*, n, d); p) -> (*, m, n)
 *    pair_distances_slope(g, x1, x2, dist; p) -> (*, m, d)           the gradient by x1
 *    row_distances(input (n, d); p) -> (n (n - 1) / 2,)               pairs i < j, row by row
 *    row_distances_slope(g, input, dist; p) -> (n, d)
 * All inputs are contiguous.
 *
 * A row of the gradient is computed by one thread, which adds up its pairs in order.
 */
#include "lanes.hpp"

#include <atomic>

namespace {

enum kind { ZERO, ONE, TWO, MOST, ANY_ORDER };

inline kind kind_of(double p) {
    return p == 0 ? ZERO : p == 1 ? ONE : p == 2 ? TWO : p == HUGE_VAL ? MOST : ANY_ORDER;
}

/* The distance where a sum of powers has left the range in which it keeps its digits: differences
 * divided by the largest one. */
template <class E>
PT_NOINLINE double scaled_distance(const E *x, const E *y, int64_t d, double p) {
    double top = 0, sum = 0;
    for (int64_t k = 0; k < d; ++k) top = select_max(top, std::fabs(double(x[k]) - double(y[k])));
    if (!(top > 0 && top < HUGE_VAL)) return top;
    for (int64_t k = 0; k < d; ++k) {
        const double v = std::fabs(double(x[k]) - double(y[k])) / top;
        sum += p == 2 ? v * v : std::pow(v, p);
    }
    return top * (p == 2 ? std::sqrt(sum) : std::pow(sum, 1 / p));
}

template <int KIND, class E>
inline E distance(const E *x, const E *y, int64_t d, double p) {
    E r = 0;
    double sum = 0;
    if (d == 0) return r;
    if constexpr (KIND == ONE) {
        sum_lanes<1>(x, y, d, &sum, [](auto a, auto b) {
            auto v = a - b;
            return select_max(v, -v);
        });
        return E(sum);
    }
    else if constexpr (KIND == TWO) {
        sum_lanes<1>(x, y, d, &sum, [](auto a, auto b) { return (a - b) * (a - b); });
        const bool kept = is_same<E, float> ? sum > 1e-30 && sum < 1e38 : sum > 1e-280;
        return E((kept && sum < HUGE_VAL) || sum != sum ? std::sqrt(sum)
                                                         : scaled_distance(x, y, d, p));
    }
    else if constexpr (KIND == MOST)
        fold_lanes<max_fold, 1>(x, y, d, E(0), &r, [](auto a, auto b) {
            auto v = a - b;
            return select_max(v, -v);
        });
    else {
        for (int64_t k = 0; k < d; ++k) {
            const double v = std::fabs(double(x[k]) - double(y[k]));
            sum += KIND == ZERO ? v != v ? v : double(v != 0) : std::pow(v, p);
        }
        if (KIND == ZERO) return E(sum);
        const bool kept = (sum > 1e-280 && sum < HUGE_VAL) || sum != sum;
        r = E(kept ? std::pow(sum, 1 / p) : scaled_distance(x, y, d, p));
    }
    return r;
}

template <class E> inline E sign_of(E v) { return E(v > 0) - E(v < 0); }

/* to[k] += g * d dist / d x[k] */
template <int KIND, class E>
inline void add_slope(E *PT_RESTRICT to, const E *PT_RESTRICT x, const E *PT_RESTRICT y, int64_t d,
                      double p, E g, E dist) {
    if constexpr (KIND == ZERO) return;
    if constexpr (KIND == ONE) {
        PT_IVDEP
        for (int64_t k = 0; k < d; ++k) to[k] += g * sign_of(x[k] - y[k]);
    }
    else if constexpr (KIND == TWO) {
        const E scale = dist == 0 ? E(0) : g / dist;
        if (std::isfinite(scale)) {
            PT_IVDEP
            for (int64_t k = 0; k < d; ++k) to[k] += scale * (x[k] - y[k]);
        }
        else
            for (int64_t k = 0; k < d; ++k) to[k] += g * ((x[k] - y[k]) / dist);
    }
    else if constexpr (KIND == MOST) {
        for (int64_t k = 0; k < d; ++k) {
            const E v = x[k] - y[k];
            to[k] += std::fabs(v) == dist ? g * sign_of(v) : E(0);
        }
    }
    else {
        if (dist == 0) return;
        for (int64_t k = 0; k < d; ++k) {
            const double v = double(x[k]) - double(y[k]);
            if (v != 0) to[k] += E(g * std::pow(std::fabs(v) / double(dist), p - 1) * sign_of(v));
        }
    }
}

/* The elements of a contiguous tensor as E: in place, or converted into `room`. */
template <class E, class T>
inline const E *rows_of(const pt_view &x, scratch<E> &room) {
    const T *from = reinterpret_cast<const T *>(x.data);
    if constexpr (is_same<E, T>) return from;
    else {
        load(room.data, from, 1, x.numel);
        return room.data;
    }
}
template <class E, class T>
inline int64_t room_for(const pt_view &x) { return is_same<E, T> ? 0 : x.numel; }

template <class F>
inline int by_kind(double p, F &&f) {
    switch (kind_of(p)) {
    case ZERO: return f(std::integral_constant<int, ZERO>());
    case ONE: return f(std::integral_constant<int, ONE>());
    case TWO: return f(std::integral_constant<int, TWO>());
    case MOST: return f(std::integral_constant<int, MOST>());
    default: return f(std::integral_constant<int, ANY_ORDER>());
    }
}

inline int check_pairs(pt_call *call, const pt_view &x, const pt_view &y) {
    bool fit = x.ndim == y.ndim && x.ndim >= 2 && x.contiguous && y.contiguous;
    for (int d = 0; fit && d < x.ndim; ++d) fit = d == x.ndim - 2 || x.sizes[d] == y.sizes[d];
    return fit ? int(PT_OK)
               : fail(call, PT_RUNTIME_ERROR, "expected rows (*, m, d) and (*, n, d) of one batch");
}
inline int check_distances(pt_call *call, const pt_view &g, const pt_view &dist, int64_t count) {
    return g.numel == count && dist.numel == count
               ? int(PT_OK)
               : fail(call, PT_RUNTIME_ERROR,
                      "expected a gradient and a distance for each of %lld pairs",
                      (long long)count);
}

int pair_distances_kernel(pt_call *call) {
    const pt_view &x1 = call->in[0], &x2 = call->in[1];
    if (int status = check_pairs(call, x1, x2)) return status;
    const double p = call->params[0].d;
    const int64_t d = x1.sizes[x1.ndim - 1], m = x1.sizes[x1.ndim - 2], n = x2.sizes[x2.ndim - 2];
    if (call->out[0].numel == 0) return PT_OK;
    const int64_t rows = call->out[0].numel / n;
    return visit<FLOATS>(call, x1.dtype, [&](auto tag) {
        using T = PT_TYPE(tag);
        using E = compute<T>;
        scratch<E> room1(room_for<E, T>(x1)), room2(room_for<E, T>(x2));
        if (!room1 || !room2) return no_memory(call, (x1.numel + x2.numel) * int64_t(sizeof(E)));
        const E *a = rows_of<E, T>(x1, room1), *b = rows_of<E, T>(x2, room2);
        return by_kind(p, [&](auto k) {
            parallel_for(rows, grain_rows(n * (d + 4)), [&](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i)
                    for (int64_t j = 0; j < n; ++j)
                        output<T>(call)[i * n + j] =
                            convert<T>(distance<k()>(a + i * d, b + (i / m * n + j) * d, d, p));
            });
            return int(PT_OK);
        });
    });
}

/* Writes the rows of a gradient; add(row, first, last, sum) adds some of the `terms` contributions
 * to a row's sum: 32 in E, and these sums in double. */
template <class T, class E, class F>
int slopes(pt_call *call, int64_t rows, int64_t d, int64_t terms, F &&add) {
    std::atomic<bool> enough(true);
    parallel_for(rows, grain_rows(terms * (2 * d + 4)), [&](int64_t begin, int64_t end) {
        scratch<E> sum(d);
        scratch<double> total(d);
        if (!sum || !total) {
            enough = false;
            return;
        }
        for (int64_t i = begin; i < end; ++i) {
            for (int64_t c = 0; c < d; ++c) total[c] = 0;
            for (int64_t j = 0; j < terms; j += 32) {
                for (int64_t c = 0; c < d; ++c) sum[c] = 0;
                add(i, j, min64(terms, j + 32), sum.data);
                for (int64_t c = 0; c < d; ++c) total[c] += double(sum[c]);
            }
            for (int64_t c = 0; c < d; ++c) output<T>(call)[i * d + c] = convert<T>(total[c]);
        }
    });
    return enough ? int(PT_OK) : no_memory(call, d * int64_t(sizeof(E) + sizeof(double)));
}

int pair_distances_slope_kernel(pt_call *call) {
    const pt_view &g = call->in[0], &x1 = call->in[1], &x2 = call->in[2], &dist = call->in[3];
    if (int status = check_pairs(call, x1, x2)) return status;
    const double p = call->params[0].d;
    const int64_t d = x1.sizes[x1.ndim - 1], m = x1.sizes[x1.ndim - 2], n = x2.sizes[x2.ndim - 2];
    if (call->out[0].numel == 0) return PT_OK;
    const int64_t rows = x1.numel / d;
    if (int status = check_distances(call, g, dist, rows * n)) return status;
    return visit<FLOATS>(call, x1.dtype, [&](auto tag) {
        using T = PT_TYPE(tag);
        using E = compute<T>;
        scratch<E> room1(room_for<E, T>(x1)), room2(room_for<E, T>(x2));
        if (!room1 || !room2) return no_memory(call, (x1.numel + x2.numel) * int64_t(sizeof(E)));
        const E *a = rows_of<E, T>(x1, room1), *b = rows_of<E, T>(x2, room2);
        return by_kind(p, [&](auto k) {
            return slopes<T, E>(call, rows, d, n, [&](int64_t i, int64_t j, int64_t last, E *sum) {
                for (; j < last; ++j)
                    add_slope<k()>(sum, a + i * d, b + (i / m * n + j) * d, d, p,
                                   convert<E>(input<T>(call)[i * n + j]),
                                   convert<E>(input<T>(call, 3)[i * n + j]));
            });
        });
    });
}

/* the index of the first pair of row i with a later row */
inline int64_t pairs_before(int64_t i, int64_t n) { return i * n - i * (i + 1) / 2; }

inline int check_matrix(pt_call *call, const pt_view &x) {
    return x.ndim == 2 && x.contiguous
               ? int(PT_OK)
               : fail(call, PT_RUNTIME_ERROR, "expected a contiguous matrix");
}

int row_distances_kernel(pt_call *call) {
    const pt_view &x = call->in[0];
    if (int status = check_matrix(call, x)) return status;
    const double p = call->params[0].d;
    const int64_t n = x.sizes[0], d = x.sizes[1];
    if (call->out[0].numel == 0) return PT_OK;
    return visit<FLOATS>(call, x.dtype, [&](auto tag) {
        using T = PT_TYPE(tag);
        using E = compute<T>;
        scratch<E> room(room_for<E, T>(x));
        if (!room) return no_memory(call, x.numel * int64_t(sizeof(E)));
        const E *a = rows_of<E, T>(x, room);
        return by_kind(p, [&](auto k) {
            parallel_for(n, grain_rows(n * (d + 4) / 2), [&](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) {
                    T *to = output<T>(call) + pairs_before(i, n);
                    for (int64_t j = i + 1; j < n; ++j)
                        *to++ = convert<T>(distance<k()>(a + i * d, a + j * d, d, p));
                }
            });
            return int(PT_OK);
        });
    });
}

int row_distances_slope_kernel(pt_call *call) {
    const pt_view &g = call->in[0], &x = call->in[1], &dist = call->in[2];
    if (int status = check_matrix(call, x)) return status;
    const double p = call->params[0].d;
    const int64_t n = x.sizes[0], d = x.sizes[1];
    if (g.ndim != 1 || dist.ndim != 1)
        return fail(call, PT_RUNTIME_ERROR, "expected vectors of gradients and distances");
    if (int status = check_distances(call, g, dist, n * (n - 1) / 2)) return status;
    if (call->out[0].numel == 0) return PT_OK;
    return visit<FLOATS>(call, x.dtype, [&](auto tag) {
        using T = PT_TYPE(tag);
        using E = compute<T>;
        scratch<E> room(room_for<E, T>(x));
        if (!room) return no_memory(call, x.numel * int64_t(sizeof(E)));
        const E *a = rows_of<E, T>(x, room);
        return by_kind(p, [&](auto k) {
            return slopes<T, E>(call, n, d, n, [&](int64_t i, int64_t j, int64_t last, E *sum) {
                for (; j < last; ++j) {
                    if (j == i) continue;
                    const int64_t pair =
                        j > i ? pairs_before(i, n) + j - i - 1 : pairs_before(j, n) + i - j - 1;
                    add_slope<k()>(sum, a + i * d, a + j * d, d, p,
                                   convert<E>(input<T>(call)[pair]),
                                   convert<E>(input<T>(call, 2)[pair]));
                }
            });
        });
    });
}

} // namespace

extern "C" const pt_kernel_entry PT_CAT(pt_kernels_distance_, PT_ISA)[] = {
    {"pair_distances", pair_distances_kernel},
    {"pair_distances_slope", pair_distances_slope_kernel},
    {"row_distances", row_distances_kernel},
    {"row_distances_slope", row_distances_slope_kernel},
    {nullptr, nullptr},
};
