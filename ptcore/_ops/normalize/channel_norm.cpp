/* batch_norm, group_norm and their derivatives, on contiguous tensors (N, C, S...).
 *
 *    batch_norm(input, weight?, bias?; eps, momentum) -> out, mean, var      ((C,), biased)
 *    batch_norm_given(input, mean, var, weight?, bias?; eps) -> out          (in any layout)
 *    batch_norm_backward(g, input, mean, var, weight?; eps) -> gx, gw, gb
 *    group_norm(input, weight?, bias?; groups, eps) -> out, mean, rstd                ((N, groups))
 *    group_norm_backward(g, input, mean, rstd, weight?; groups) -> gx, gw, gb
 *
 * A plane is the S elements of one channel of one sample. Planes of at least WIDE elements are
 * walked one after another. Of narrower planes all channels of a sample are walked side by
 * side, with a channel's numbers repeated for each position. Sums are taken in E over four elements
 * and in float64 beyond; half types are computed in float32. An output without data is skipped.
 *
 * batch_norm has running statistics as outputs 3 and 4. They move towards the mean and the unbiased
 * variance by the share `momentum`.
 */
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

/* elements [first, first + n) of a contiguous tensor: in place, or converted into the buffer */
template <class E>
inline const E *fetch(const pt_view &v, int64_t first, int64_t n, E *buffer) {
    switch (v.dtype) {
    case PT_FLOAT16:
        load(buffer, reinterpret_cast<const half *>(v.data) + first, 1, n);
        return buffer;
    case PT_BFLOAT16:
        load(buffer, reinterpret_cast<const bfloat16 *>(v.data) + first, 1, n);
        return buffer;
    case PT_FLOAT32:
        if constexpr (is_same<E, float>) return reinterpret_cast<const float *>(v.data) + first;
        load(buffer, reinterpret_cast<const float *>(v.data) + first, 1, n);
        return buffer;
    default:
        if constexpr (is_same<E, double>) return reinterpret_cast<const double *>(v.data) + first;
        load(buffer, reinterpret_cast<const double *>(v.data) + first, 1, n);
        return buffer;
    }
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

/* total[j] = sum over the samples of map(a[n][j], b[n][j], j) for columns [start, start + width);
 * map takes numbers of type P, in which four are added */
template <class P, class E, class Map>
inline void column_sums(const pt_view &a, const pt_view &b, int64_t n, int64_t row, int64_t start,
                        int64_t width, double *total, E *buffer, Map &&map) {
    P part[COLUMNS];
    for (int64_t j = 0; j < width; ++j) total[j] = 0;
    for (int64_t r0 = 0; r0 < n; r0 += ROWS) {
        for (int64_t j = 0; j < width; ++j) part[j] = 0;
        for (int64_t r = r0; r < min64(n, r0 + ROWS); ++r) {
            const E *p = fetch(a, r * row + start, width, buffer);
            const E *q = &a == &b ? p : fetch(b, r * row + start, width, buffer + COLUMNS);
            for (int64_t j = 0; j < width; ++j) part[j] += map(P(p[j]), P(q[j]), j);
        }
        for (int64_t j = 0; j < width; ++j) total[j] += double(part[j]);
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

template <class E>
int batch_norm_as(pt_call *call, double eps) {
    const pt_view &in = call->in[0], &weight = call->in[1], &bias = call->in[2],
                  &out = call->out[0];
    const shape x(in);
    const double count = double(x.n * x.s);
    const running moved(call);
    return over_channels<E>(call, x, [&](int64_t c0, int64_t channels, E *space) {
        const auto keep = [&](int64_t c, double mean, double var) {
            put_real(call->out[1], c, mean);
            put_real(call->out[2], c, var);
            moved.move(c, double(E(mean)), double(E(var)), count);
        };
        if (x.s >= WIDE) {
            double sum = 0, square = 0;
            for (int64_t n = 0; n < x.n; ++n)
                runs(in, in, (n * x.c + c0) * x.s, x.s, space,
                     [&](const E *p, const E *, int64_t, int64_t m) { sum += row_total(p, m); });
            const E mean = E(sum / count);
            for (int64_t n = 0; n < x.n; ++n)
                runs(in, in, (n * x.c + c0) * x.s, x.s, space,
                     [&](const E *p, const E *, int64_t, int64_t m) {
                         square += row_squares(p, m, mean, eps);
                     });
            const double var = square / count;
            keep(c0, sum / count, var);
            const E scale = E(or_else(weight, c0, 1) / sqrt(var + eps)),
                    shift = E(or_else(bias, c0, 0));
            for (int64_t n = 0; n < x.n; ++n) {
                const int64_t first = (n * x.c + c0) * x.s;
                runs(in, in, first, x.s, space, [&](const E *p, const E *q, int64_t i, int64_t m) {
                    mapped(out, first + i, p, q, m, space + 2 * ROW_RUN,
                           [=](E a, E, int64_t) { return (a - mean) * scale + shift; });
                });
            }
            return;
        }
        const int64_t start = c0 * x.s, width = channels * x.s, row = x.c * x.s;
        double total[COLUMNS];
        double var[COLUMNS];
        E mean[COLUMNS], scale[COLUMNS], shift[COLUMNS];
        const auto value = [](auto a, auto, int64_t) { return a; };
        const auto squared = [&](auto a, auto, int64_t j) { return (a - mean[j]) * (a - mean[j]); };
        column_sums<E>(in, in, x.n, row, start, width, total, space, value);
        if (any(total, width, sum_overflowed<E>))
            column_sums<double>(in, in, x.n, row, start, width, total, space, value);
        spread(total, x.s, width, count, mean);
        column_sums<E>(in, in, x.n, row, start, width, total, space, squared);
        if (any(total, width, [=](double sum) { return row_squares_lost<E>(sum, eps); }))
            column_sums<double>(in, in, x.n, row, start, width, total, space, squared);
        spread(total, x.s, width, count, var);
        for (int64_t j = 0; j < width; ++j) {
            const int64_t c = c0 + j / x.s;
            if (j % x.s == 0) keep(c, double(mean[j]), var[j]);
            scale[j] = E(or_else(weight, c, 1) / sqrt(var[j] + eps));
            shift[j] = E(or_else(bias, c, 0));
        }
        for (int64_t n = 0; n < x.n; ++n) {
            const E *p = fetch(in, n * row + start, width, space);
            mapped(out, n * row + start, p, p, width, space + COLUMNS,
                   [&](E a, E, int64_t j) { return (a - mean[j]) * scale[j] + shift[j]; });
        }
    });
}

template <class E>
int batch_norm_backward_as(pt_call *call, double eps) {
    const pt_view &grad = call->in[0], &in = call->in[1], &weight = call->in[4], &gx = call->out[0];
    const shape x(in);
    const double count = double(x.n * x.s);
    return over_channels<E>(call, x, [&](int64_t c0, int64_t channels, E *space) {
        const auto keep = [&](int64_t c, double g, double gxhat) {
            if (call->nout > 1 && present(call->out[1])) put_real(call->out[1], c, gxhat);
            if (call->nout > 2 && present(call->out[2])) put_real(call->out[2], c, g);
        };
        /* gx = scale (g - mean(g) - (x - mean) rstd^2 mean(g (x - mean))) */
        if (x.s >= WIDE) {
            const E mean = E(get_real(call->in[2], c0));
            const double rstd = 1 / sqrt(get_real(call->in[3], c0) + eps);
            const auto center = simd<E>::fill(mean);
            double sum = 0, product = 0;
            for (int64_t n = 0; n < x.n; ++n)
                runs(grad, in, (n * x.c + c0) * x.s, x.s, space,
                     [&](const E *g, const E *p, int64_t, int64_t m) {
                         sum += row_sum(g, g, m, first_of);
                         product +=
                             row_sum(g, p, m, [=](auto a, auto b) { return a * (b - center); });
                     });
            keep(c0, sum, product * rstd);
            if (!present(gx)) return;
            const E scale = E(or_else(weight, c0, 1) * rstd), a = E(sum / count),
                    b = E(product / count * rstd * rstd);
            for (int64_t n = 0; n < x.n; ++n) {
                const int64_t first = (n * x.c + c0) * x.s;
                runs(
                    grad, in, first, x.s, space, [&](const E *g, const E *p, int64_t i, int64_t m) {
                        mapped(gx, first + i, g, p, m, space + 2 * ROW_RUN,
                               [=](E u, E v, int64_t) { return scale * (u - a - (v - mean) * b); });
                    });
            }
            return;
        }
        const int64_t start = c0 * x.s, width = channels * x.s, row = x.c * x.s;
        double total[COLUMNS];
        E mean[COLUMNS], scale[COLUMNS], a[COLUMNS], b[COLUMNS];
        for (int64_t j = 0; j < width; ++j) mean[j] = E(get_real(call->in[2], c0 + j / x.s));
        column_sums<E>(grad, in, x.n, row, start, width, total, space,
                       [](E u, E, int64_t) { return u; });
        spread(total, x.s, width, 1.0, a);
        column_sums<E>(grad, in, x.n, row, start, width, total, space,
                       [&](E u, E v, int64_t j) { return u * (v - mean[j]); });
        spread(total, x.s, width, 1.0, b);
        for (int64_t j = 0; j < width; ++j) {
            const int64_t c = c0 + j / x.s;
            const double rstd = 1 / sqrt(get_real(call->in[3], c) + eps);
            if (j % x.s == 0) keep(c, double(a[j]), double(b[j]) * rstd);
            scale[j] = E(or_else(weight, c, 1) * rstd);
            a[j] = E(double(a[j]) / count);
            b[j] = E(double(b[j]) / count * rstd * rstd);
        }
        if (!present(gx)) return;
        for (int64_t n = 0; n < x.n; ++n) {
            const E *g = fetch(grad, n * row + start, width, space),
                    *p = fetch(in, n * row + start, width, space + COLUMNS);
            mapped(gx, n * row + start, g, p, width, space + 2 * COLUMNS, [&](E u, E v, int64_t j) {
                return scale[j] * (u - a[j] - (v - mean[j]) * b[j]);
            });
        }
    });
}

/* -- groups of channels ------------------------------------------------------------------------ */

/* a channel's number, repeated for each of its s positions */
template <class E>
inline void repeat(const pt_view &v, int64_t channels, int64_t s, double other, E *out) {
    for (int64_t c = 0; c < channels; ++c)
        for (int64_t k = 0; k < s; ++k) out[c * s + k] = E(or_else(v, c, other));
}

/* calls body(sample, group, scratch of 4 runs) for all groups of all samples */
template <class E, class Body>
inline int over_groups(pt_call *call, int64_t samples, int64_t groups, int64_t size, Body &&body) {
    std::atomic<bool> starved{false};
    parallel_for(samples * groups, grain_rows(4 * size), [&](int64_t begin, int64_t end) {
        scratch<E> space(4 * ROW_RUN);
        if (!space) {
            starved = true;
            return;
        }
        for (int64_t i = begin; i < end; ++i) body(i / groups, i % groups, space.data);
    });
    return starved ? no_memory(call, 4 * ROW_RUN * int64_t(sizeof(E))) : int(PT_OK);
}

template <class E>
int group_norm_as(pt_call *call, int64_t groups, double eps) {
    const pt_view &in = call->in[0], &weight = call->in[1], &bias = call->in[2],
                  &out = call->out[0];
    const shape x(in);
    const int64_t channels = x.c / groups, size = channels * x.s;
    const bool wide = x.s >= WIDE;
    scratch<E> affine(wide ? 1 : 2 * x.c * x.s);
    if (!affine) return no_memory(call, 2 * x.c * x.s * int64_t(sizeof(E)));
    E *w = affine.data, *b = affine.data + x.c * x.s;
    if (!wide) {
        repeat(weight, x.c, x.s, 1, w);
        repeat(bias, x.c, x.s, 0, b);
    }
    return over_groups<E>(call, x.n, groups, size, [&](int64_t n, int64_t g, E *space) {
        const int64_t first = (n * groups + g) * size;
        double sum = 0, square = 0;
        runs(in, in, first, size, space,
             [&](const E *p, const E *, int64_t, int64_t m) { sum += row_total(p, m); });
        const E mean = E(sum / double(size));
        runs(in, in, first, size, space, [&](const E *p, const E *, int64_t, int64_t m) {
            square += row_squares(p, m, mean, eps);
        });
        const double rstd = 1 / sqrt(square / double(size) + eps);
        put_real(call->out[1], n * groups + g, sum / double(size));
        put_real(call->out[2], n * groups + g, rstd);
        if (!wide) {
            const E r = E(rstd);
            runs(in, in, first, size, space, [&](const E *p, const E *q, int64_t i, int64_t m) {
                const E *PT_RESTRICT wi = w + g * size + i, *PT_RESTRICT bi = b + g * size + i;
                mapped(out, first + i, p, q, m, space + 2 * ROW_RUN,
                       [=](E a, E, int64_t j) { return (a - mean) * r * wi[j] + bi[j]; });
            });
            return;
        }
        for (int64_t k = 0; k < channels; ++k) {
            const int64_t c = g * channels + k, plane = first + k * x.s;
            const E scale = E(or_else(weight, c, 1) * rstd), shift = E(or_else(bias, c, 0));
            runs(in, in, plane, x.s, space, [&](const E *p, const E *q, int64_t i, int64_t m) {
                mapped(out, plane + i, p, q, m, space + 2 * ROW_RUN,
                       [=](E a, E, int64_t) { return (a - mean) * scale + shift; });
            });
        }
    });
}

template <class E>
int group_norm_backward_as(pt_call *call, int64_t groups) {
    const pt_view &grad = call->in[0], &in = call->in[1], &weight = call->in[4], &gx = call->out[0];
    const shape x(in);
    const int64_t channels = x.c / groups, size = channels * x.s;
    const bool wide = x.s >= WIDE;
    /* for each plane of each sample: the sums of g and of g (x - mean) */
    scratch<double> sums(max64(1, 2 * x.n * x.c));
    scratch<E> affine(wide ? 1 : x.c * x.s);
    if (!sums || !affine) return no_memory(call, 2 * x.n * x.c * 8);
    if (!wide) repeat(weight, x.c, x.s, 1, affine.data);
    const int status = over_groups<E>(call, x.n, groups, size, [&](int64_t n, int64_t g, E *space) {
        const int64_t first = (n * groups + g) * size;
        const double rstd = get_real(call->in[3], n * groups + g);
        const E mean = E(get_real(call->in[2], n * groups + g));
        const auto center = simd<E>::fill(mean);
        double all = 0, products = 0;
        for (int64_t k = 0; k < channels; ++k) {
            const int64_t c = g * channels + k;
            double sum = 0, product = 0;
            runs(grad, in, first + k * x.s, x.s, space,
                 [&](const E *u, const E *v, int64_t, int64_t m) {
                     if (wide) {
                         sum += row_sum(u, u, m, first_of);
                         product +=
                             row_sum(u, v, m, [=](auto a, auto b) { return a * (b - center); });
                     } else
                         for (int64_t j = 0; j < m; ++j) {
                             sum += double(u[j]);
                             product += double(u[j]) * double(v[j] - mean);
                         }
                 });
            sums[2 * (n * x.c + c)] = sum;
            sums[2 * (n * x.c + c) + 1] = product * rstd;
            const double w = or_else(weight, c, 1);
            all += w * sum;
            products += w * product;
        }
        if (!present(gx)) return;
        /* gx = rstd (g w - mean(g w) - (x - mean) rstd^2 mean(g w (x - mean))) */
        const E r = E(rstd), a = E(all / double(size)),
                b = E(products / double(size) * rstd * rstd);
        if (!wide) {
            runs(grad, in, first, size, space, [&](const E *u, const E *v, int64_t i, int64_t m) {
                const E *PT_RESTRICT wi = affine.data + g * size + i;
                mapped(gx, first + i, u, v, m, space + 2 * ROW_RUN,
                       [=](E p, E q, int64_t j) { return r * (wi[j] * p - a - (q - mean) * b); });
            });
            return;
        }
        for (int64_t k = 0; k < channels; ++k) {
            const int64_t plane = first + k * x.s;
            const E scale = E(or_else(weight, g * channels + k, 1));
            runs(grad, in, plane, x.s, space, [&](const E *u, const E *v, int64_t i, int64_t m) {
                mapped(gx, plane + i, u, v, m, space + 2 * ROW_RUN,
                       [=](E p, E q, int64_t) { return r * (scale * p - a - (q - mean) * b); });
            });
        }
    });
    if (status) return status;
    for (int64_t c = 0; c < x.c; ++c) {
        double g = 0, gxhat = 0;
        for (int64_t n = 0; n < x.n; ++n) {
            g += sums[2 * (n * x.c + c)];
            gxhat += sums[2 * (n * x.c + c) + 1];
        }
        if (call->nout > 1 && present(call->out[1])) put_real(call->out[1], c, gxhat);
        if (call->nout > 2 && present(call->out[2])) put_real(call->out[2], c, g);
    }
    return PT_OK;
}

/* -- by statistics that are given -------------------------------------------------------------- */

/* element c of a vector in any layout; `other` if it is absent */
inline double of_channel(const pt_view &v, int64_t c, double other) {
    return present(v) ? get_real(v, c * v.strides[0]) : other;
}

/* Rounds like the ops that graphs have instead (batch_norm_given in decompositions.py), so
 * that both give the same bits. */
template <class E>
struct factors {
    E mean, scale, shift;
    factors(const pt_call *call, int64_t c, double eps)
        : mean(E(of_channel(call->in[1], c, 0))),
          scale(E(1) / E(sqrt(E(of_channel(call->in[2], c, 1)) + E(eps)))),
          shift(E(of_channel(call->in[4], c, 0))) {
        if (present(call->in[3])) scale *= E(of_channel(call->in[3], c, 1));
    }
};

/* (x - mean) scale + shift for a run; mean, scale and shift are functions of the position. In two
 * loops, so that the product is not fused into the sum. */
template <class E, class Mean, class Scale, class Shift>
inline void normalized(const pt_view &out, int64_t first, const E *PT_RESTRICT p, int64_t m,
                       E *buffer, Mean &&mean, Scale &&scale, Shift &&shift) {
    E *PT_RESTRICT to = in_place(out, first, buffer);
    PT_IVDEP
    for (int64_t j = 0; j < m; ++j) to[j] = (p[j] - mean(j)) * scale(j);
    PT_IVDEP
    for (int64_t j = 0; j < m; ++j) to[j] += shift(j);
    if (to == buffer) write(out, first, to, m);
}

/* whether the channels of a position are neighbours, and the positions in order */
inline bool channels_last(const pt_view &v) {
    int64_t step = v.sizes[1];
    if (v.strides[1] != 1) return false;
    for (int d = v.ndim - 1; d >= 0; --d) {
        if (d == 1) continue;
        if (v.sizes[d] != 1 && v.strides[d] != step) return false;
        step *= v.sizes[d];
    }
    return true;
}

/* one plane in any layout, to an output plane in any layout */
template <class E>
inline void plane_as_it_lies(const pt_view &in, const pt_view &out, int64_t n, int64_t c,
                             const factors<E> &f, E *buffer) {
    space<2> plane;
    int64_t step[2];
    for (int d = 2; d < in.ndim; ++d) plane.push(in.sizes[d], {in.strides[d], out.strides[d]});
    const int64_t length = plane.pop(step), rows = plane.numel();
    cursor<2> at(plane, 0);
    for (int64_t r = 0; r < rows; ++r, at.next()) {
        const int64_t from = at.offset[0] + n * in.strides[0] + c * in.strides[1];
        const int64_t to = at.offset[1] + n * out.strides[0] + c * out.strides[1];
        for (int64_t i = 0; i < length; i += ROW_RUN) {
            const int64_t m = min64(ROW_RUN, length - i);
            fetch(buffer, in, from + i * step[0], step[0], m);
            for (int64_t j = 0; j < m; ++j) {
                volatile E product = (buffer[j] - f.mean) * f.scale;
                put_real(out, to + (i + j) * step[1], double(E(product + f.shift)));
            }
        }
    }
}

template <class E>
int batch_norm_given_as(pt_call *call, double eps) {
    const pt_view &in = call->in[0], &out = call->out[0];
    shape x(in);
    const bool ordered = in.contiguous && out.contiguous;
    const bool last = !ordered && channels_last(in) && channels_last(out);
    if (last) {
        x.n *= x.s;
        x.s = 1;
    }
    if (!last && (!ordered || x.s >= WIDE))
        return over_groups<E>(call, x.n, x.c, x.s, [&](int64_t n, int64_t c, E *space) {
            const factors<E> f(call, c, eps);
            if (!ordered) return plane_as_it_lies(in, out, n, c, f, space);
            const int64_t first = (n * x.c + c) * x.s;
            runs(in, in, first, x.s, space, [&](const E *p, const E *, int64_t i, int64_t m) {
                normalized(
                    out, first + i, p, m, space + 2 * ROW_RUN, [=](int64_t) { return f.mean; },
                    [=](int64_t) { return f.scale; }, [=](int64_t) { return f.shift; });
            });
        });
    const int64_t row = x.c * x.s;
    scratch<E> repeated(3 * row);
    if (!repeated) return no_memory(call, 3 * row * int64_t(sizeof(E)));
    E *mean = repeated.data, *scale = mean + row, *shift = scale + row;
    for (int64_t c = 0; c < x.c; ++c) {
        const factors<E> f(call, c, eps);
        for (int64_t j = c * x.s; j < (c + 1) * x.s; ++j) {
            mean[j] = f.mean;
            scale[j] = f.scale;
            shift[j] = f.shift;
        }
    }
    return over_groups<E>(call, x.n, 1, row, [&](int64_t n, int64_t, E *space) {
        runs(in, in, n * row, row, space, [&](const E *p, const E *, int64_t i, int64_t m) {
            const E *PT_RESTRICT mi = mean + i, *PT_RESTRICT si = scale + i;
            const E *PT_RESTRICT bi = shift + i;
            normalized(
                out, n * row + i, p, m, space + 2 * ROW_RUN, [=](int64_t j) { return mi[j]; },
                [=](int64_t j) { return si[j]; }, [=](int64_t j) { return bi[j]; });
        });
    });
}

/* For an empty input: sets statistics to NaN, and the gradients of weight and bias to zero. */
inline int of_nothing(pt_call *call, double value) {
    for (int i = 1; i < min64(3, call->nout); ++i)            /* running statistics do not change */
        if (present(call->out[i]))
            for (int64_t j = 0; j < call->out[i].numel; ++j) put_real(call->out[i], j, value);
    return PT_OK;
}

/* -- entries ----------------------------------------------------------------------------------- */

/* `statistics`: how many numbers each kind of statistics has if
 * this is a derivative; else 0 */
inline int check(pt_call *call, int input, int64_t groups, int64_t statistics) {
    if (int status = check_floats(call)) return status;
    const pt_view &x = call->in[input];
    if (x.ndim < 2)
        return fail(call, PT_RUNTIME_ERROR, "expected at least 2 dimensions, got %d", x.ndim);
    if (groups < 1 || x.sizes[1] % groups)
        return fail(
            call, PT_RUNTIME_ERROR,
            "expected %lld channels to be divisible by the number of groups, got %lld groups",
            (long long)x.sizes[1], (long long)groups);
    for (int i = 0; i <= input; ++i)
        if (!call->in[i].contiguous && call->in[i].numel)
            return fail(call, PT_RUNTIME_ERROR, "expected contiguous tensors");
    bool fits = input == 0 || call->in[0].numel == x.numel;
    for (int i = input + 1; i < call->nin; ++i)         /* statistics, then per-channel numbers */
        fits = fits && (!present(call->in[i]) ||
                        call->in[i].numel == (input && i < 4 ? statistics : x.sizes[1]));
    return fits ? int(PT_OK)
                : fail(call, PT_RUNTIME_ERROR,
                       "gradient, statistics, weight and input do not fit together");
}

int batch_norm_kernel(pt_call *call) {
    if (int status = check(call, 0, 1, 0)) return status;
    if (!call->in[0].numel) return of_nothing(call, NAN);
    return call->in[0].dtype == PT_FLOAT64 ? batch_norm_as<double>(call, call->params[0].d)
                                           : batch_norm_as<float>(call, call->params[0].d);
}
int batch_norm_given_kernel(pt_call *call) {
    if (int status = check_floats(call)) return status;
    const pt_view &x = call->in[0];
    if (x.ndim < 2)
        return fail(call, PT_RUNTIME_ERROR, "expected at least 2 dimensions, got %d", x.ndim);
    for (int i = 1; i < call->nin; ++i)
        if (present(call->in[i]) && (call->in[i].ndim != 1 || call->in[i].numel != x.sizes[1]))
            return fail(call, PT_RUNTIME_ERROR, "statistics, weight and input do not fit together");
    if (!x.numel) return PT_OK;
    const double eps = call->params[0].d;
    return x.dtype == PT_FLOAT64 ? batch_norm_given_as<double>(call, eps)
                                 : batch_norm_given_as<float>(call, eps);
}
int batch_norm_backward_kernel(pt_call *call) {
    if (int status = check(call, 1, 1, call->in[1].ndim > 1 ? call->in[1].sizes[1] : 0))
        return status;
    if (!call->in[1].numel) return of_nothing(call, 0);
    return call->in[1].dtype == PT_FLOAT64 ? batch_norm_backward_as<double>(call, call->params[0].d)
                                           : batch_norm_backward_as<float>(call, call->params[0].d);
}
int group_norm_kernel(pt_call *call) {
    const int64_t groups = call->params[0].i;
    if (int status = check(call, 0, groups, 0)) return status;
    if (!call->in[0].numel) return of_nothing(call, NAN);
    return call->in[0].dtype == PT_FLOAT64 ? group_norm_as<double>(call, groups, call->params[1].d)
                                           : group_norm_as<float>(call, groups, call->params[1].d);
}
int group_norm_backward_kernel(pt_call *call) {
    const int64_t groups = call->params[0].i;
    if (int status =
            check(call, 1, groups, call->in[1].ndim > 1 ? call->in[1].sizes[0] * groups : 0))
        return status;
    if (!call->in[1].numel) return of_nothing(call, 0);
    return call->in[1].dtype == PT_FLOAT64 ? group_norm_backward_as<double>(call, groups)
                                           : group_norm_backward_as<float>(call, groups);
}

} // namespace

extern "C" const pt_kernel_entry PT_CAT(pt_kernels_channel_norm_, PT_ISA)[] = {
    {"batch_norm", batch_norm_kernel},
    {"batch_norm_given", batch_norm_given_kernel},
    {"batch_norm_backward", batch_norm_backward_kernel},
    {"group_norm", group_norm_kernel},
    {"group_norm_backward", group_norm_backward_kernel},
    {nullptr, nullptr},
};
