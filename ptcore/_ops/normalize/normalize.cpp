/* layer_norm and rms_norm, and their derivatives.
 *
 *    layer_norm(input, weight?, bias?; normalized_ndim, eps) -> out, mean, rstd
 *    rms_norm(input, weight?; normalized_ndim, eps) -> out, rstd
 *    layer_norm_backward(g, input, mean, rstd, weight?) -> gx, gw, gb
 *    rms_norm_backward(g, input, rstd, weight?) -> gx, gw
 * An output without data is skipped. rms_norm is layer_norm about 0 in the place of the mean (not
 * `centred`).
 *
 * Rows are the trailing dims, in any layout; half types are computed in float32 and have float32
 * mean and rstd. The sums over rows of gw and gb are taken in chunks that depend on the shape only.
 */
#include "rows.hpp"

#include <atomic>

namespace {

/* A floating tensor read row by row as E: in place if its memory allows that. */
template <class E>
struct row_reader {
    const char *data;
    int dtype;
    bool direct;
    space<1> outer, inner;

    /* a row is the last `ndim` dims of v */
    void open(const pt_view &v, int ndim) {
        data = v.data;
        dtype = v.dtype;
        for (int d = 0; d < v.ndim - ndim; ++d) outer.push(v.sizes[d], {v.strides[d]});
        for (int d = v.ndim - ndim; d < v.ndim; ++d) inner.push(v.sizes[d], {v.strides[d]});
        direct = dtype == (is_same<E, float> ? PT_FLOAT32 : PT_FLOAT64) &&
                 (inner.ndim == 0 || (inner.ndim == 1 && inner.stride[0][0] == 1));
    }
    template <class T>
    void gather(int64_t offset, E *buffer) const {
        space<1> rows = inner;
        int64_t step[1];
        const int64_t length = rows.pop(step), count = rows.numel();
        cursor<1> at(rows, 0);
        for (int64_t r = 0; r < count; ++r, at.next())
            load(buffer + r * length, reinterpret_cast<const T *>(data) + offset + at.offset[0],
                 length == 1 ? 1 : step[0], length);
    }
    const E *row(int64_t offset, E *buffer) const {
        if (direct) return reinterpret_cast<const E *>(data) + offset;
        switch (dtype) {
        case PT_FLOAT16: gather<half>(offset, buffer); break;
        case PT_BFLOAT16: gather<bfloat16>(offset, buffer); break;
        case PT_FLOAT32: gather<float>(offset, buffer); break;
        default: gather<double>(offset, buffer); break;
        }
        return buffer;
    }
};

template <class E>
int norm_as(pt_call *call, int ndim, double eps, bool centred) {
    row_reader<E> x, w, b;
    x.open(call->in[0], ndim);
    const int64_t rows = x.outer.numel(), n = x.inner.numel();
    scratch<E> affine(2 * n);
    if (!affine) return no_memory(call, 2 * n * int64_t(sizeof(E)));
    const E *weight = nullptr, *bias = nullptr;
    if (present(call->in[1])) {
        w.open(call->in[1], call->in[1].ndim);
        weight = w.row(0, affine.data);
    }
    if (centred && present(call->in[2])) {
        b.open(call->in[2], call->in[2].ndim);
        bias = b.row(0, affine.data + n);
    }
    std::atomic<bool> starved{false};
    parallel_for(rows, grain_rows(4 * n), [&](int64_t begin, int64_t end) {
        scratch<E> space(2 * n);
        if (!space) {
            starved = true;
            return;
        }
        cursor<1> at(x.outer, begin);
        for (int64_t r = begin; r < end; ++r, at.next()) {
            const E *PT_RESTRICT p = x.row(at.offset[0], space.data);
            E *PT_RESTRICT q = in_place(call->out[0], r * n, space.data + n);
            const E mean = centred ? E(row_total(p, n) / double(n)) : E(0);
            const E rstd = E(1 / sqrt(row_squares(p, n, mean, eps) / double(n) + eps));
            if (weight && bias)
                for (int64_t j = 0; j < n; ++j) q[j] = (p[j] - mean) * rstd * weight[j] + bias[j];
            else if (weight)
                for (int64_t j = 0; j < n; ++j) q[j] = (p[j] - mean) * rstd * weight[j];
            else
                for (int64_t j = 0; j < n; ++j)
                    q[j] = (p[j] - mean) * rstd + (bias ? bias[j] : E(0));
            if (q == space.data + n) write(call->out[0], r * n, q, n);
            if (centred) put_real(call->out[1], r, double(mean));
            put_real(call->out[centred ? 2 : 1], r, double(rstd));
        }
    });
    return starved ? no_memory(call, 2 * n * int64_t(sizeof(E))) : int(PT_OK);
}

int norm(pt_call *call, bool centred) {
    if (int status = check_floats(call)) return status;
    const pt_view &x = call->in[0];
    const int64_t ndim = call->params[0].i;
    if (ndim < 1 || ndim > x.ndim)
        return fail(call, PT_RUNTIME_ERROR, "expected 1 to %d normalized dimensions, got %lld",
                    x.ndim, (long long)ndim);
    int64_t n = 1;
    for (int64_t d = x.ndim - ndim; d < x.ndim; ++d) n *= x.sizes[d];
    for (int i = 1; i <= (centred ? 2 : 1); ++i)
        if (present(call->in[i]) && call->in[i].numel != n)
            return fail(call, PT_RUNTIME_ERROR, "expected %s with %lld elements, got %lld",
                        i == 1 ? "weight" : "bias", (long long)n, (long long)call->in[i].numel);
    const double eps = call->params[1].d;
    if (x.dtype == PT_FLOAT64) return norm_as<double>(call, int(ndim), eps, centred);
    return norm_as<float>(call, int(ndim), eps, centred);
}
int layer_norm_kernel(pt_call *call) { return norm(call, true); }
int rms_norm_kernel(pt_call *call) { return norm(call, false); }

/* the sums of g w and of g w (x - mean): four by four in E, in float64 beyond */
template <class E>
inline void input_row_sums(const E *PT_RESTRICT g, const E *PT_RESTRICT x, const E *PT_RESTRICT w,
                           int64_t n, E mean, double &first, double &second) {
    constexpr int L = 32;
    double lane_a[L] = {}, lane_b[L] = {};
    E a[L], b[L];
    int64_t i = 0;
    for (; i + 4 * L <= n; i += 4 * L) {
        PT_IVDEP
        for (int l = 0; l < L; ++l) {
            const E *p = g + i + l, *q = x + i + l, *r = w + i + l;
            const E u = p[0] * r[0], v = p[L] * r[L], s = p[2 * L] * r[2 * L],
                    t = p[3 * L] * r[3 * L];
            a[l] = (u + v) + (s + t);
            b[l] = (u * (q[0] - mean) + v * (q[L] - mean)) +
                   (s * (q[2 * L] - mean) + t * (q[3 * L] - mean));
        }
        for (int l = 0; l < L; ++l) lane_a[l] += double(a[l]);
        for (int l = 0; l < L; ++l) lane_b[l] += double(b[l]);
    }
    for (int l = 0; i < n; ++i, l = (l + 1) % L) {
        lane_a[l] += double(g[i] * w[i]);
        lane_b[l] += double(g[i] * w[i] * (x[i] - mean));
    }
    first = fold<add_fold>(lane_a, L, 0.0);
    second = fold<add_fold>(lane_b, L, 0.0);
}
template <class E>
inline void input_row(E *PT_RESTRICT q, const E *PT_RESTRICT g, const E *PT_RESTRICT x,
                      const E *PT_RESTRICT w, int64_t n, E mean, E rstd, bool centred) {
    double first, second;
    input_row_sums(g, x, w, n, mean, first, second);
    if (sum_overflowed<E>(second)) {
        second = 0;
        for (int64_t j = 0; j < n; ++j)
            second += double(g[j]) * double(w[j]) * (double(x[j]) - double(mean));
    }
    /* gx = rstd (g w - mean(g w) - xhat mean(g w xhat)), xhat = (x - mean) rstd; about 0 without
     * the first mean */
    const E a = centred ? E(first / double(n)) : E(0),
            b = E(second / double(n) * double(rstd) * double(rstd));
    for (int64_t j = 0; j < n; ++j) q[j] = rstd * (g[j] * w[j] - a - (x[j] - mean) * b);
    if (n == 1 && centred)
        q[0] = E(0) * (rstd * g[0] * w[0]); /* it cancels: 0 without the rounding errors, or NaN */
}
template <int ROWS, class E>
inline void add_rows(double *PT_RESTRICT gw, double *PT_RESTRICT gb, const E *const *g,
                     const E *const *x, const E *mean, const E *rstd, int64_t n) {
    const E *PT_RESTRICT a[ROWS], *PT_RESTRICT b[ROWS];
    E m[ROWS], s[ROWS];
    for (int i = 0; i < ROWS; ++i) {
        a[i] = g[i];
        b[i] = x[i];
        m[i] = mean[i];
        s[i] = rstd[i];
    }
    PT_IVDEP
    for (int64_t j = 0; j < n; ++j) {
        E first = 0, second = 0;
        for (int i = 0; i < ROWS; ++i) {
            first += a[i][j] * ((b[i][j] - m[i]) * s[i]);
            second += a[i][j];
        }
        gw[j] += double(first);
        gb[j] += double(second);
    }
}

template <class E>
int norm_backward_as(pt_call *call, int ndim, bool centred) {
    const pt_view &means = call->in[2], &rstds = call->in[centred ? 3 : 2],
                  &weights = call->in[centred ? 4 : 3];
    constexpr int GROUP = 4;                    /* rows that one pass adds to gw and gb */
    row_reader<E> g, x, w;
    g.open(call->in[0], ndim);
    x.open(call->in[1], ndim);
    space<2> moments;                           /* mean and rstd */
    for (int d = 0; d < means.ndim; ++d)
        moments.push(means.sizes[d], {means.strides[d], rstds.strides[d]});
    const int64_t rows = x.outer.numel(), n = x.inner.numel();
    const bool want_x = present(call->out[0]), want_w = call->nout > 1 && present(call->out[1]),
               want_b = call->nout > 2 && present(call->out[2]);
    /* at most 64 chunks, of at least 16 rows and 64 Ki elements */
    int64_t chunk = max64(max64(16, 65536 / max64(1, n)), ceil_div(rows, 64));
    chunk = ceil_div(chunk, GROUP) * GROUP;
    const int64_t chunks = ceil_div(rows, chunk);
    scratch<E> affine(n);
    scratch<double> sums(max64(1, chunks) * 2 * n);
    if (!affine || !sums) return no_memory(call, (chunks * 2 + 1) * n * 8);
    const E *weight = nullptr;
    if (present(weights)) {
        w.open(weights, weights.ndim);
        weight = w.row(0, affine.data);
    }
    else {
        for (int64_t j = 0; j < n; ++j) affine[j] = 1;
        weight = affine.data;
    }
    std::atomic<bool> starved{false};
    parallel_for(chunks, 1, [&](int64_t first, int64_t last) {
        scratch<E> space((2 * GROUP + 1) * n);
        if (!space) {
            starved = true;
            return;
        }
        for (int64_t c = first; c < last; ++c) {
            double *PT_RESTRICT gw = sums.data + c * 2 * n, *PT_RESTRICT gb = gw + n;
            for (int64_t j = 0; j < 2 * n; ++j) gw[j] = 0;
            const int64_t begin = c * chunk, end = min64(rows, begin + chunk);
            cursor<1> at_g(g.outer, begin), at_x(x.outer, begin);
            cursor<2> at_moments(moments, begin);
            for (int64_t r0 = begin; r0 < end; r0 += GROUP) {
                const int count = int(min64(GROUP, end - r0));
                const E *rows_g[GROUP], *rows_x[GROUP];
                E mean[GROUP], rstd[GROUP];
                for (int i = 0; i < count; ++i) {
                    rows_g[i] = g.row(at_g.offset[0], space.data + 2 * i * n);
                    rows_x[i] = x.row(at_x.offset[0], space.data + (2 * i + 1) * n);
                    mean[i] = centred ? E(get_real(means, at_moments.offset[0])) : E(0);
                    rstd[i] = E(get_real(rstds, at_moments.offset[1]));
                    at_g.next();
                    at_x.next();
                    at_moments.next();
                    if (want_x) {
                        E *q = in_place(call->out[0], (r0 + i) * n, space.data + 2 * GROUP * n);
                        input_row(q, rows_g[i], rows_x[i], weight, n, mean[i], rstd[i], centred);
                        if (q == space.data + 2 * GROUP * n)
                            write(call->out[0], (r0 + i) * n, q, n);
                    }
                }
                if (!want_w && !want_b) continue;
                if (count == GROUP) add_rows<GROUP>(gw, gb, rows_g, rows_x, mean, rstd, n);
                else
                    for (int i = 0; i < count; ++i)
                        add_rows<1>(gw, gb, rows_g + i, rows_x + i, mean + i, rstd + i, n);
            }
        }
    });
    if (starved) return no_memory(call, (2 * GROUP + 1) * n * int64_t(sizeof(E)));
    for (int64_t j = 0; j < n; ++j) {
        double gw = 0, gb = 0;
        for (int64_t c = 0; c < chunks; ++c) {
            gw += sums[c * 2 * n + j];
            gb += sums[c * 2 * n + n + j];
        }
        if (want_w) put_real(call->out[1], j, gw);
        if (want_b) put_real(call->out[2], j, gb);
    }
    return PT_OK;
}

int norm_backward(pt_call *call, bool centred) {
    if (int status = check_floats(call)) return status;
    const pt_view &g = call->in[0], &x = call->in[1], &mean = call->in[2],
                  &rstd = call->in[centred ? 3 : 2], &w = call->in[centred ? 4 : 3];
    /* a row has the dims of weight, gw or gb, else the trailing dims where mean has one element */
    const pt_view *row = present(w) ? &w : nullptr;
    for (int i = 1; i < call->nout && !row; ++i)
        if (present(call->out[i])) row = &call->out[i];
    int ndim = 0;
    int64_t rows = x.numel, n = 1;
    while (ndim < x.ndim && (row ? ndim < row->ndim : rows > mean.numel)) {
        ++ndim;
        n *= x.sizes[x.ndim - ndim];
        rows = n ? x.numel / n : 0;
    }
    if (mean.numel != rstd.numel || mean.ndim != rstd.ndim || g.numel != x.numel ||
        g.ndim != x.ndim || (row && row->numel != n) ||
        (x.numel && (rows != mean.numel || mean.numel * n != x.numel)))
        return fail(call, PT_RUNTIME_ERROR,
                    "expected g and input of one shape and mean, rstd, weight that match it");
    if (x.dtype == PT_FLOAT64) return norm_backward_as<double>(call, ndim, centred);
    return norm_backward_as<float>(call, ndim, centred);
}
int layer_norm_backward_kernel(pt_call *call) { return norm_backward(call, true); }
int rms_norm_backward_kernel(pt_call *call) { return norm_backward(call, false); }

} // namespace

extern "C" const pt_kernel_entry PT_CAT(pt_kernels_normalize_, PT_ISA)[] = {
    {"layer_norm", layer_norm_kernel},
    {"layer_norm_backward", layer_norm_backward_kernel},
    {"rms_norm", rms_norm_kernel},
    {"rms_norm_backward", rms_norm_backward_kernel},
    {nullptr, nullptr},
};
