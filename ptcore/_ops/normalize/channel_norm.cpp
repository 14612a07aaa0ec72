/* batch_norm, group_norm and their derivatives, on contiguous tensors (N, C, S...).
 *
 *    batch_norm(input, weight?, bias?; eps) -> out, mean, var               (a channel's: (C,), biased)
 *    batch_norm_backward(g, input, mean, var, weight?; eps) -> gx, gw, gb
 *    group_norm(input, weight?, bias?; groups, eps) -> out, mean, rstd      (a group's: (N, groups))
 *    group_norm_backward(g, input, mean, rstd, weight?; groups) -> gx, gw, gb
 *
 * A plane is what one sample has of one channel, S elements in a row. Planes of WIDE elements and more are
 * walked one after another; of narrower ones all channels of a sample go side by side, with the channel's
 * numbers repeated for each position. Sums are taken in E over runs that depend on the shape only and in
 * float64 beyond; half types are computed in float32. An output without data is skipped.
 */
#include "rows.hpp"

#include <atomic>

namespace {

constexpr int64_t WIDE = 16, COLUMNS = 256, ROWS = 64;

struct shape {
    int64_t n, c, s;
    explicit shape(const pt_view &x) : n(x.sizes[0]), c(x.sizes[1]), s(1) {
        for (int d = 2; d < x.ndim; ++d) s *= x.sizes[d];
    }
};

/* elements [first, first + n) of a contiguous tensor: where they are, or converted in the buffer */
template <class E>
inline const E *fetch(const pt_view &v, int64_t first, int64_t n, E *buffer) {
    switch (v.dtype) {
    case PT_FLOAT16: load(buffer, reinterpret_cast<const half *>(v.data) + first, 1, n); return buffer;
    case PT_BFLOAT16: load(buffer, reinterpret_cast<const bfloat16 *>(v.data) + first, 1, n); return buffer;
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

/* f(p, q, i, m) for runs p[0..m) and q[0..m) of two tensors, i elements behind first */
template <class E, class F>
inline void runs(const pt_view &a, const pt_view &b, int64_t first, int64_t n, E *buffer, F &&f) {
    for (int64_t i = 0; i < n; i += ROW_RUN) {
        const int64_t m = min64(ROW_RUN, n - i);
        const E *p = fetch(a, first + i, m, buffer);
        f(p, &a == &b ? p : fetch(b, first + i, m, buffer + ROW_RUN), i, m);
    }
}

/* map(p, q, j) of each element of a run to the output */
template <class E, class Map>
inline void mapped(const pt_view &out, int64_t first, const E *PT_RESTRICT p, const E *PT_RESTRICT q, int64_t m, E *buffer, Map &&map) {
    E *PT_RESTRICT to = in_place(out, first, buffer);
    PT_IVDEP
    for (int64_t j = 0; j < m; ++j) to[j] = map(p[j], q[j], j);
    if (to == buffer) write(out, first, to, m);
}

inline double or_else(const pt_view &v, int64_t i, double other) { return present(v) ? get_real(v, i) : other; }

constexpr auto first_of = [](auto a, auto) { return a; };

/* -- statistics of one channel, or of columns of narrow ones -------------------------------------------- */

/* total[j] = sum over the samples of map(a[n][j], b[n][j], j) for columns [start, start + width) */
template <class E, class Map>
inline void column_sums(const pt_view &a, const pt_view &b, int64_t n, int64_t row, int64_t start, int64_t width, double *total, E *buffer,
                        Map &&map) {
    E part[COLUMNS];
    for (int64_t j = 0; j < width; ++j) total[j] = 0;
    for (int64_t r0 = 0; r0 < n; r0 += ROWS) {
        for (int64_t j = 0; j < width; ++j) part[j] = 0;
        for (int64_t r = r0; r < min64(n, r0 + ROWS); ++r) {
            const E *p = fetch(a, r * row + start, width, buffer);
            const E *q = &a == &b ? p : fetch(b, r * row + start, width, buffer + COLUMNS);
            for (int64_t j = 0; j < width; ++j) part[j] += map(p[j], q[j], j);
        }
        for (int64_t j = 0; j < width; ++j) total[j] += double(part[j]);
    }
}
/* each column's number: the sum over the s columns of its channel, divided */
template <class E>
inline void spread(const double *total, int64_t s, int64_t width, double divisor, E *out) {
    for (int64_t j = 0; j < width; j += s) {
        double sum = 0;
        for (int64_t k = 0; k < s; ++k) sum += total[j + k];
        for (int64_t k = 0; k < s; ++k) out[j + k] = E(sum / divisor);
    }
}

/* body(first channel, number of channels, scratch of 4 runs) over blocks of channels */
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
        for (int64_t i = begin; i < end; ++i) body(i * block, min64(block, x.c - i * block), space.data);
    });
    return starved ? no_memory(call, 4 * ROW_RUN * int64_t(sizeof(E))) : int(PT_OK);
}

template <class E>
int batch_norm_as(pt_call *call, double eps) {
    const pt_view &in = call->in[0], &weight = call->in[1], &bias = call->in[2], &out = call->out[0];
    const shape x(in);
    const double count = double(x.n * x.s);
    return over_channels<E>(call, x, [&](int64_t c0, int64_t channels, E *space) {
        const auto keep = [&](int64_t c, double mean, double var) {
            put_real(call->out[1], c, mean);
            put_real(call->out[2], c, var);
        };
        if (x.s >= WIDE) {
            double sum = 0, square = 0;
            for (int64_t n = 0; n < x.n; ++n)
                runs(in, in, (n * x.c + c0) * x.s, x.s, space, [&](const E *p, const E *, int64_t, int64_t m) { sum += row_sum(p, p, m, first_of); });
            const E mean = E(sum / count);
            const auto center = simd<E>::fill(mean);
            for (int64_t n = 0; n < x.n; ++n)
                runs(in, in, (n * x.c + c0) * x.s, x.s, space, [&](const E *p, const E *, int64_t, int64_t m) {
                    square += row_sum(p, p, m, [=](auto a, auto) { return (a - center) * (a - center); });
                });
            const double var = square / count;
            keep(c0, sum / count, var);
            const E scale = E(or_else(weight, c0, 1) / sqrt(var + eps)), shift = E(or_else(bias, c0, 0));
            for (int64_t n = 0; n < x.n; ++n) {
                const int64_t first = (n * x.c + c0) * x.s;
                runs(in, in, first, x.s, space, [&](const E *p, const E *q, int64_t i, int64_t m) {
                    mapped(out, first + i, p, q, m, space + 2 * ROW_RUN, [=](E a, E, int64_t) { return (a - mean) * scale + shift; });
                });
            }
            return;
        }
        const int64_t start = c0 * x.s, width = channels * x.s, row = x.c * x.s;
        double total[COLUMNS];
        E mean[COLUMNS], scale[COLUMNS], shift[COLUMNS];
        column_sums(in, in, x.n, row, start, width, total, space, [](E a, E, int64_t) { return a; });
        spread(total, x.s, width, count, mean);
        column_sums(in, in, x.n, row, start, width, total, space, [&](E a, E, int64_t j) { return (a - mean[j]) * (a - mean[j]); });
        spread(total, x.s, width, count, scale);
        for (int64_t j = 0; j < width; ++j) {
            const int64_t c = c0 + j / x.s;
            if (j % x.s == 0) keep(c, double(mean[j]), double(scale[j]));
            scale[j] = E(or_else(weight, c, 1) / sqrt(double(scale[j]) + eps));
            shift[j] = E(or_else(bias, c, 0));
        }
        for (int64_t n = 0; n < x.n; ++n) {
            const E *p = fetch(in, n * row + start, width, space);
            mapped(out, n * row + start, p, p, width, space + COLUMNS, [&](E a, E, int64_t j) { return (a - mean[j]) * scale[j] + shift[j]; });
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
                runs(grad, in, (n * x.c + c0) * x.s, x.s, space, [&](const E *g, const E *p, int64_t, int64_t m) {
                    sum += row_sum(g, g, m, first_of);
                    product += row_sum(g, p, m, [=](auto a, auto b) { return a * (b - center); });
                });
            keep(c0, sum, product * rstd);
            if (!present(gx)) return;
            const E scale = E(or_else(weight, c0, 1) * rstd), a = E(sum / count), b = E(product / count * rstd * rstd);
            for (int64_t n = 0; n < x.n; ++n) {
                const int64_t first = (n * x.c + c0) * x.s;
                runs(grad, in, first, x.s, space, [&](const E *g, const E *p, int64_t i, int64_t m) {
                    mapped(gx, first + i, g, p, m, space + 2 * ROW_RUN, [=](E u, E v, int64_t) { return scale * (u - a - (v - mean) * b); });
                });
            }
            return;
        }
        const int64_t start = c0 * x.s, width = channels * x.s, row = x.c * x.s;
        double total[COLUMNS];
        E mean[COLUMNS], scale[COLUMNS], a[COLUMNS], b[COLUMNS];
        for (int64_t j = 0; j < width; ++j) mean[j] = E(get_real(call->in[2], c0 + j / x.s));
        column_sums(grad, in, x.n, row, start, width, total, space, [](E u, E, int64_t) { return u; });
        spread(total, x.s, width, 1.0, a);
        column_sums(grad, in, x.n, row, start, width, total, space, [&](E u, E v, int64_t j) { return u * (v - mean[j]); });
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
            const E *g = fetch(grad, n * row + start, width, space), *p = fetch(in, n * row + start, width, space + COLUMNS);
            mapped(gx, n * row + start, g, p, width, space + 2 * COLUMNS,
                   [&](E u, E v, int64_t j) { return scale[j] * (u - a[j] - (v - mean[j]) * b[j]); });
        }
    });
}

/* -- groups of channels --------------------------------------------------------------------------------- */

/* the numbers of a channel, one for each of its s positions */
template <class E>
inline void repeat(const pt_view &v, int64_t channels, int64_t s, double other, E *out) {
    for (int64_t c = 0; c < channels; ++c)
        for (int64_t k = 0; k < s; ++k) out[c * s + k] = E(or_else(v, c, other));
}

/* body(sample, group, scratch of 4 runs) over all groups of all samples */
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
    const pt_view &in = call->in[0], &weight = call->in[1], &bias = call->in[2], &out = call->out[0];
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
        runs(in, in, first, size, space, [&](const E *p, const E *, int64_t, int64_t m) { sum += row_sum(p, p, m, first_of); });
        const E mean = E(sum / double(size));
        const auto center = simd<E>::fill(mean);
        runs(in, in, first, size, space, [&](const E *p, const E *, int64_t, int64_t m) {
            square += row_sum(p, p, m, [=](auto a, auto) { return (a - center) * (a - center); });
        });
        const double rstd = 1 / sqrt(square / double(size) + eps);
        put_real(call->out[1], n * groups + g, sum / double(size));
        put_real(call->out[2], n * groups + g, rstd);
        if (!wide) {
            const E r = E(rstd);
            runs(in, in, first, size, space, [&](const E *p, const E *q, int64_t i, int64_t m) {
                const E *PT_RESTRICT wi = w + g * size + i, *PT_RESTRICT bi = b + g * size + i;
                mapped(out, first + i, p, q, m, space + 2 * ROW_RUN, [=](E a, E, int64_t j) { return (a - mean) * r * wi[j] + bi[j]; });
            });
            return;
        }
        for (int64_t k = 0; k < channels; ++k) {
            const int64_t c = g * channels + k, plane = first + k * x.s;
            const E scale = E(or_else(weight, c, 1) * rstd), shift = E(or_else(bias, c, 0));
            runs(in, in, plane, x.s, space, [&](const E *p, const E *q, int64_t i, int64_t m) {
                mapped(out, plane + i, p, q, m, space + 2 * ROW_RUN, [=](E a, E, int64_t) { return (a - mean) * scale + shift; });
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
    /* of each sample's plane: the sums of g and of g (x - mean) */
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
            runs(grad, in, first + k * x.s, x.s, space, [&](const E *u, const E *v, int64_t, int64_t m) {
                if (wide) {
                    sum += row_sum(u, u, m, first_of);
                    product += row_sum(u, v, m, [=](auto a, auto b) { return a * (b - center); });
                }
                else
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
        const E r = E(rstd), a = E(all / double(size) * rstd), b = E(products / double(size) * rstd * rstd * rstd);
        if (!wide) {
            runs(grad, in, first, size, space, [&](const E *u, const E *v, int64_t i, int64_t m) {
                const E *PT_RESTRICT wi = affine.data + g * size + i;
                mapped(gx, first + i, u, v, m, space + 2 * ROW_RUN,
                       [=](E p, E q, int64_t j) { return r * wi[j] * p - a - (q - mean) * b; });
            });
            return;
        }
        for (int64_t k = 0; k < channels; ++k) {
            const int64_t plane = first + k * x.s;
            const E scale = E(or_else(weight, g * channels + k, 1) * rstd);
            runs(grad, in, plane, x.s, space, [&](const E *u, const E *v, int64_t i, int64_t m) {
                mapped(gx, plane + i, u, v, m, space + 2 * ROW_RUN, [=](E p, E q, int64_t) { return scale * p - a - (q - mean) * b; });
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

/* Without an element: statistics are NaN, the gradients of weight and bias are zero. */
inline int of_nothing(pt_call *call, double value) {
    for (int i = 1; i < call->nout; ++i)
        if (present(call->out[i]))
            for (int64_t j = 0; j < call->out[i].numel; ++j) put_real(call->out[i], j, value);
    return PT_OK;
}

/* -- entries ------------------------------------------------------------------------------------------------ */

/* `statistics`: how many numbers there are of each kind that a derivative is given, 0 if it is none */
inline int check(pt_call *call, int input, int64_t groups, int64_t statistics) {
    if (int status = check_floats(call)) return status;
    const pt_view &x = call->in[input];
    if (x.ndim < 2) return fail(call, PT_RUNTIME_ERROR, "expected at least 2 dimensions, got %d", x.ndim);
    if (groups < 1 || x.sizes[1] % groups)
        return fail(call, PT_RUNTIME_ERROR, "expected %lld channels to be divisible by the number of groups, got %lld groups", (long long)x.sizes[1],
                    (long long)groups);
    for (int i = 0; i <= input; ++i)
        if (!call->in[i].contiguous && call->in[i].numel) return fail(call, PT_RUNTIME_ERROR, "expected contiguous tensors");
    bool fits = input == 0 || call->in[0].numel == x.numel;
    for (int i = input + 1; i < call->nin; ++i)         /* statistics, then numbers of channels */
        fits = fits && (!present(call->in[i]) || call->in[i].numel == (input && i < 4 ? statistics : x.sizes[1]));
    return fits ? int(PT_OK) : fail(call, PT_RUNTIME_ERROR, "gradient, statistics, weight and input do not fit together");
}

int batch_norm_kernel(pt_call *call) {
    if (int status = check(call, 0, 1, 0)) return status;
    if (!call->in[0].numel) return of_nothing(call, NAN);
    return call->in[0].dtype == PT_FLOAT64 ? batch_norm_as<double>(call, call->params[0].d) : batch_norm_as<float>(call, call->params[0].d);
}
int batch_norm_backward_kernel(pt_call *call) {
    if (int status = check(call, 1, 1, call->in[1].ndim > 1 ? call->in[1].sizes[1] : 0)) return status;
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
    if (int status = check(call, 1, groups, call->in[1].ndim > 1 ? call->in[1].sizes[0] * groups : 0)) return status;
    if (!call->in[1].numel) return of_nothing(call, 0);
    return call->in[1].dtype == PT_FLOAT64 ? group_norm_backward_as<double>(call, groups) : group_norm_backward_as<float>(call, groups);
}

} // namespace

extern "C" const pt_kernel_entry PT_CAT(pt_kernels_channel_norm_, PT_ISA)[] = {
    {"batch_norm", batch_norm_kernel},
    {"batch_norm_backward", batch_norm_backward_kernel},
    {"group_norm", group_norm_kernel},
    {"group_norm_backward", group_norm_backward_kernel},
    {nullptr, nullptr},
};
