/* batch_norm, group_norm and their derivatives in the channels-last format: a tensor is a matrix of
 * rows, which are the positions of all samples, and columns, which are the channels. Rows are cut
 * into units of at most UNIT rows of one group of statistics (the batch, or a sample), so that sums
 * do not depend on the number of threads. */
#ifndef PTCORE_NORMALIZE_CHANNEL_NORM_LAST_HPP
#define PTCORE_NORMALIZE_CHANNEL_NORM_LAST_HPP
#include "channel_norm.hpp"
#include "channels_last.hpp"

namespace {

struct matrix {
    static constexpr int64_t UNIT = 512;
    int64_t parts, rows, c;     /* parts of `rows` rows have statistics of their own */
    int64_t units;              /* in each part */
    int64_t together;           /* rows that are walked as one, so that loops are not short */

    matrix(const pt_view &x, bool by_sample)
        : parts(by_sample ? x.sizes[0] : 1), rows(x.numel / x.sizes[1] / parts), c(x.sizes[1]),
          units(ceil_div(rows, UNIT)), together(max64(1, 256 / c)) {}
    int64_t width() const { return together * c; }

    /* calls body(unit, part, first row, end, scratch of 4 runs) for all units */
    template <class E, class Body>
    int each(pt_call *call, Body &&body) const {
        std::atomic<bool> starved{false};
        parallel_for(parts * units, grain_rows(4 * min64(UNIT, rows) * c),
                     [&](int64_t begin, int64_t end) {
                         scratch<E> space(4 * ROW_RUN);
                         if (!space) {
                             starved = true;
                             return;
                         }
                         for (int64_t u = begin; u < end; ++u) {
                             const int64_t part = u / units, at = u % units * UNIT;
                             body(u, part, part * rows + at, part * rows + min64(rows, at + UNIT),
                                  space.data);
                         }
                     });
        return starved ? no_memory(call, 4 * ROW_RUN * int64_t(sizeof(E))) : int(PT_OK);
    }
    /* total[k][part][channel] = the sum over the rows of a part of
     * map(a, b, part * c + channel, k) */
    template <int K, class P, class E, class Map>
    int sums(pt_call *call, const pt_view &a, const pt_view &b, double *total, Map &&map) const {
        const int64_t all = parts * units, pitch = all * c;
        scratch<double> made(units == 1 ? 0 : K * pitch);
        if (!made) return no_memory(call, K * pitch * 8);
        double *partial = units == 1 ? total : made.data;
        const int status = each<E>(
            call, [&](int64_t u, int64_t part, int64_t begin, int64_t end, E *space) {
                for (int64_t s = 0; s < c; s += COLUMNS)
                    column_sums<K, P>(a, b, end - begin, c, begin * c + s, min64(COLUMNS, c - s),
                                      partial + u * c + s, pitch, space,
                                      [&](P x, P y, int64_t j, auto k) {
                                          return map(x, y, part * c + s + j, k);
                                      });
            });
        if (status || units == 1) return status;
        for (int64_t i = 0; i < K * parts; ++i) {
            double *PT_RESTRICT to = total + i * c;
            for (int64_t j = 0; j < c; ++j) to[j] = 0;
            for (int64_t u = 0; u < units; ++u)
                for (int64_t j = 0; j < c; ++j) to[j] += partial[(i * units + u) * c + j];
        }
        return PT_OK;
    }
    /* out = map(a, b, part * width() + column) for all elements; columns count through the rows
     * that are walked as one */
    template <class E, class Map>
    int apply(pt_call *call, const pt_view &a, const pt_view &b, const pt_view &out,
              Map &&map) const {
        return each<E>(call, [&](int64_t, int64_t part, int64_t begin, int64_t end, E *space) {
            for (int64_t r = begin; r < end; r += together) {
                const int64_t n = min64(together, end - r) * c;
                runs(a, b, r * c, n, space, [&](const E *p, const E *q, int64_t i, int64_t m) {
                    const int64_t at = part * width() + i;
                    mapped(out, r * c + i, p, q, m, space + 2 * ROW_RUN,
                           [&](E u, E v, int64_t j) { return map(u, v, at + j); });
                });
            }
        });
    }
    /* to[part][column] = of(part, channel) for the columns of the rows that are walked as one */
    template <class E, class Of>
    void repeat(E *to, Of &&of) const {
        for (int64_t p = 0; p < parts; ++p)
            for (int64_t i = 0; i < c; ++i) {
                const E value = of(p, i);
                for (int64_t t = 0; t < together; ++t) to[(p * together + t) * c + i] = value;
            }
    }
};

/* Statistics of groups of channels, of which the whole batch or each sample has `groups`. */
struct statistics {
    scratch<double> sum, square;        /* of each channel of each part */
    scratch<double> mean, var;          /* of each group of each part */
    explicit operator bool() const { return sum && square && mean && var; }
    statistics(const matrix &m, int64_t groups)
        : sum(m.parts * m.c), square(m.parts * m.c), mean(m.parts * groups),
          var(m.parts * groups) {}

    /* the mean and the biased variance of each group; sums that overflow and squares that lose
     * their digits are taken again in float64 */
    template <class E>
    int measure(pt_call *call, const matrix &m, const pt_view &in, int64_t groups, double eps) {
        const int64_t channels = m.c / groups;
        const double count = double(m.rows * channels);
        scratch<E> center(m.parts * m.c);
        if (!center) return no_memory(call, m.parts * m.c * int64_t(sizeof(E)));
        const auto fold = [&](const double *of, double *to, auto &&lost) {
            bool again = false;
            for (int64_t i = 0; i < m.parts * groups; ++i) {
                double total = 0;
                for (int64_t k = 0; k < channels; ++k) total += of[i * channels + k];
                again |= lost(total);
                to[i] = total / count;
            }
            return again;
        };
        const auto value = [](auto a, auto, int64_t, auto) { return a; };
        if (int status = m.sums<1, E, E>(call, in, in, sum.data, value)) return status;
        if (fold(sum.data, mean.data, sum_overflowed<E>)) {
            if (int status = m.sums<1, double, E>(call, in, in, sum.data, value)) return status;
            fold(sum.data, mean.data, sum_overflowed<E>);
        }
        for (int64_t i = 0; i < m.parts * m.c; ++i) center[i] = E(mean[i / channels]);
        const E *PT_RESTRICT at = center.data;
        const auto squared = [=](auto a, auto, int64_t j, auto) {
            return (a - at[j]) * (a - at[j]);
        };
        const auto lost = [=](double total) { return row_squares_lost<E>(total, eps); };
        if (int status = m.sums<1, E, E>(call, in, in, square.data, squared)) return status;
        if (fold(square.data, var.data, lost)) {
            if (int status = m.sums<1, double, E>(call, in, in, square.data, squared))
                return status;
            fold(square.data, var.data, lost);
        }
        return PT_OK;
    }
};

/* out = (x - mean) rstd weight + bias for the groups of a batch, or of each sample */
template <class E>
int normalize_last(pt_call *call, bool by_sample, int64_t groups, double eps) {
    const pt_view &in = call->in[0], &weight = call->in[1], &bias = call->in[2];
    const matrix m(in, by_sample);
    const int64_t channels = m.c / groups, all = m.parts * m.width();
    statistics of(m, groups);
    scratch<E> factors(3 * all);
    if (!of || !factors)
        return no_memory(call, 4 * m.parts * m.c * 8 + 3 * all * int64_t(sizeof(E)));
    if (int status = of.measure<E>(call, m, in, groups, eps)) return status;
    const running moved(call);
    const auto rstd = [&](int64_t i) { return 1 / sqrt(of.var[i] + eps); };
    for (int64_t i = 0; i < m.parts * groups; ++i) {
        put_real(call->out[1], i, of.mean[i]);
        put_real(call->out[2], i, by_sample ? rstd(i) : of.var[i]);
        if (!by_sample)
            moved.move(i, double(E(of.mean[i])), double(E(of.var[i])), double(m.rows));
    }
    E *mean = factors.data, *scale = mean + all, *shift = scale + all;
    m.repeat(mean, [&](int64_t p, int64_t i) { return E(of.mean[p * groups + i / channels]); });
    m.repeat(scale, [&](int64_t p, int64_t i) {
        return E(or_else(weight, i, 1) * rstd(p * groups + i / channels));
    });
    m.repeat(shift, [&](int64_t, int64_t i) { return E(or_else(bias, i, 0)); });
    return m.apply<E>(call, in, in, call->out[0], [=](E a, E, int64_t j) {
        return (a - mean[j]) * scale[j] + shift[j];
    });
}

/* The gradients of both norms. Input 3 holds the variances of a batch, or samples' rstd.
 * gx = outer (g inner - mean(g inner) - (x - mean) rstd^2 mean(g inner (x - mean))), where inner is
 * the weight and outer rstd. If each channel is a group, the weight is part of outer, so that what
 * cancels is not rounded before. */
template <class E>
int backward_last(pt_call *call, bool by_sample, int64_t groups, double eps) {
    const pt_view &grad = call->in[0], &in = call->in[1], &weight = call->in[4],
                  &gx = call->out[0];
    const matrix m(in, by_sample);
    const int64_t channels = m.c / groups, all = m.parts * m.width(), sums = m.parts * m.c;
    const double count = double(m.rows * channels);
    scratch<double> total(2 * sums), of_group(2 * m.parts * groups), inverse(m.parts * groups);
    scratch<E> center(sums), factors(present(gx) ? 5 * all : 0);
    if (!total || !of_group || !inverse || !center || !factors)
        return no_memory(call, (4 * sums + 5 * all) * 8);
    const auto group = [=](int64_t p, int64_t i) { return p * groups + i / channels; };
    for (int64_t i = 0; i < sums; ++i) center[i] = E(get_real(call->in[2], i / channels));
    const E *PT_RESTRICT at = center.data;
    const int status = m.sums<2, E, E>(call, grad, in, total.data,
                                       [=](E u, E v, int64_t j, auto k) {
                                           if constexpr (decltype(k)::value == 0) return u;
                                           else return u * (v - at[j]);
                                       });
    if (status) return status;
    const int64_t samples = in.sizes[0] / m.parts;
    for (int64_t j = 0; j < sums; ++j) {
        const int64_t p = j / m.c, i = group(p, j % m.c);
        double v = get_real(call->in[3], i), &product = total[sums + j];
        if ((!by_sample && sum_overflowed<E>(v)) || sum_overflowed<E>(product)) {
            const double var = far_sums(call, p * samples, (p + 1) * samples, j % m.c,
                                        double(at[j]), product);
            if (!by_sample) v = var;
        }
        inverse[i] = by_sample ? v : 1 / sqrt(v + eps);
    }
    const auto rstd = [&](int64_t i) { return inverse[i]; };
    for (int64_t i = 0; i < m.c; ++i) {
        double g = 0, gxhat = 0;
        for (int64_t p = 0; p < m.parts; ++p) {
            g += total[p * m.c + i];
            gxhat += total[sums + p * m.c + i] * rstd(group(p, i));
        }
        if (call->nout > 1 && present(call->out[1])) put_real(call->out[1], i, gxhat);
        if (call->nout > 2 && present(call->out[2])) put_real(call->out[2], i, g);
    }
    if (!present(gx)) return PT_OK;
    double *means = of_group.data, *slopes = means + m.parts * groups;
    for (int64_t p = 0; p < m.parts; ++p)
        for (int64_t i = 0; i < m.c; ++i) {
            const double w = by_sample ? or_else(weight, i, 1) : 1;
            if (i % channels == 0) means[group(p, i)] = slopes[group(p, i)] = 0;
            means[group(p, i)] += w * total[p * m.c + i];
            slopes[group(p, i)] += w * total[sums + p * m.c + i];
        }
    E *mean = factors.data, *outer = mean + all, *inner = outer + all, *a = inner + all,
      *b = a + all;
    m.repeat(mean, [&](int64_t p, int64_t i) { return at[p * m.c + i]; });
    m.repeat(outer, [&](int64_t p, int64_t i) {
        return E(rstd(group(p, i)) * (by_sample ? 1 : or_else(weight, i, 1)));
    });
    m.repeat(inner, [&](int64_t, int64_t i) {
        return E(by_sample ? or_else(weight, i, 1) : 1);
    });
    m.repeat(a, [&](int64_t p, int64_t i) { return E(means[group(p, i)] / count); });
    m.repeat(b, [&](int64_t p, int64_t i) {
        const double r = rstd(group(p, i));
        return E(slopes[group(p, i)] / count * r * r);
    });
    return m.apply<E>(call, grad, in, gx, [=](E u, E v, int64_t j) {
        return outer[j] * (inner[j] * u - a[j] - (v - mean[j]) * b[j]);
    });
}

} // namespace
#endif
