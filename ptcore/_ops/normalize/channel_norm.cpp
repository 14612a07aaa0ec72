/* batch_norm, group_norm and their derivatives, on contiguous tensors (N, C, S...); those in the
 * channels-last format are in channel_norm_last.hpp.
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
#include "channel_norm_last.hpp"

namespace {

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
        const auto value = [](auto a, auto, int64_t, auto) { return a; };
        const auto squared = [&](auto a, auto, int64_t j, auto) {
            return (a - mean[j]) * (a - mean[j]);
        };
        column_sums<1, E>(in, in, x.n, row, start, width, total, 0, space, value);
        if (any(total, width, sum_overflowed<E>))
            column_sums<1, double>(in, in, x.n, row, start, width, total, 0, space, value);
        spread(total, x.s, width, count, mean);
        column_sums<1, E>(in, in, x.n, row, start, width, total, 0, space, squared);
        if (any(total, width, [=](double sum) { return row_squares_lost<E>(sum, eps); }))
            column_sums<1, double>(in, in, x.n, row, start, width, total, 0, space, squared);
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
            const auto center = simd<E>::fill(mean);
            double var = get_real(call->in[3], c0), sum = 0, product = 0;
            for (int64_t n = 0; n < x.n; ++n)
                runs(grad, in, (n * x.c + c0) * x.s, x.s, space,
                     [&](const E *g, const E *p, int64_t, int64_t m) {
                         sum += row_sum(g, g, m, first_of);
                         product +=
                             row_sum(g, p, m, [=](auto a, auto b) { return a * (b - center); });
                     });
            if (sum_overflowed<E>(var) || sum_overflowed<E>(product))
                var = far_sums(call, 0, x.n, c0, double(mean), product);
            const double rstd = 1 / sqrt(var + eps);
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
        double product[COLUMNS];
        column_sums<1, E>(grad, grad, x.n, row, start, width, total, 0, space,
                          [](E u, E, int64_t, auto) { return u; });
        column_sums<1, E>(grad, in, x.n, row, start, width, product, 0, space,
                          [&](E u, E v, int64_t j, auto) { return u * (v - mean[j]); });
        for (int64_t j = 0; j < width; j += x.s) {
            const int64_t c = c0 + j / x.s;
            double var = get_real(call->in[3], c), sum = 0, of_channel = 0;
            for (int64_t k = j; k < j + x.s; ++k) {
                sum += total[k];
                of_channel += product[k];
            }
            if (sum_overflowed<E>(var) || sum_overflowed<E>(of_channel))
                var = far_sums(call, 0, x.n, c, double(mean[j]), of_channel);
            const double rstd = 1 / sqrt(var + eps);
            keep(c, sum, of_channel * rstd);
            for (int64_t k = j; k < j + x.s; ++k) {
                scale[k] = E(or_else(weight, c, 1) * rstd);
                a[k] = E(sum / count);
                b[k] = E(of_channel / count * rstd * rstd);
            }
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
            if (sum_overflowed<E>(product))
                far_sums(call, n, n + 1, c, double(mean), product);
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

/* whether the tensors of a call, of which the input is number `input`, are in the channels-last
 * format */
inline bool in_channels_last(const pt_call *call, int input) {
    const pt_view &x = call->in[input], &out = call->out[0];
    bool last = x.ndim >= 4 && x.ndim <= 5 && (!present(out) || channels_last(out));
    for (int i = 0; i <= input; i += max64(1, input))
        last = last && call->in[i].ndim == x.ndim && channels_last(call->in[i]);
    return last;
}

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
    for (int i = 0; i <= input && !in_channels_last(call, input); ++i)
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

int normalized_last(pt_call *call, bool by_sample, int64_t groups, double eps) {
    return call->in[0].dtype == PT_FLOAT64 ? normalize_last<double>(call, by_sample, groups, eps)
                                           : normalize_last<float>(call, by_sample, groups, eps);
}
int slopes_last(pt_call *call, bool by_sample, int64_t groups, double eps) {
    return call->in[1].dtype == PT_FLOAT64 ? backward_last<double>(call, by_sample, groups, eps)
                                           : backward_last<float>(call, by_sample, groups, eps);
}

int batch_norm_kernel(pt_call *call) {
    if (int status = check(call, 0, 1, 0)) return status;
    if (!call->in[0].numel) return of_nothing(call, NAN);
    const double eps = call->params[0].d;
    if (in_channels_last(call, 0))
        return normalized_last(call, false, call->in[0].sizes[1], eps);
    return call->in[0].dtype == PT_FLOAT64 ? batch_norm_as<double>(call, eps)
                                           : batch_norm_as<float>(call, eps);
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
    const double eps = call->params[0].d;
    if (in_channels_last(call, 1)) return slopes_last(call, false, call->in[1].sizes[1], eps);
    return call->in[1].dtype == PT_FLOAT64 ? batch_norm_backward_as<double>(call, eps)
                                           : batch_norm_backward_as<float>(call, eps);
}
int group_norm_kernel(pt_call *call) {
    const int64_t groups = call->params[0].i;
    if (int status = check(call, 0, groups, 0)) return status;
    if (!call->in[0].numel) return of_nothing(call, NAN);
    const double eps = call->params[1].d;
    if (in_channels_last(call, 0))
        return normalized_last(call, true, groups, eps);
    return call->in[0].dtype == PT_FLOAT64 ? group_norm_as<double>(call, groups, eps)
                                           : group_norm_as<float>(call, groups, eps);
}
int group_norm_backward_kernel(pt_call *call) {
    const int64_t groups = call->params[0].i;
    if (int status =
            check(call, 1, groups, call->in[1].ndim > 1 ? call->in[1].sizes[0] * groups : 0))
        return status;
    if (!call->in[1].numel) return of_nothing(call, 0);
    if (in_channels_last(call, 1)) return slopes_last(call, true, groups, 0);
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
