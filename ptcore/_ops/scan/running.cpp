/* Running reductions along a dim that consist of comparisons and calls, which do not vectorise:
 * logcumsumexp, cummax, cummin (values and indices). Once a NaN is met, the results stay NaN.
 *
 *    logcumsumexp_slope(g, input; dim) -> the gradient of a real input, contiguous like both
 */
#include "scan.hpp"

#include <atomic>

namespace {

/* log of the running sum of exp(x); the carry is (top, sum of exp(x - top)) */
template <class T>
struct logsumexp_scan {
    using out_type = T;
    struct carry { double top, sum; };
    static carry start() { return {-HUGE_VAL, 0}; }
    static void step(carry &c, T value, int64_t, T &out, int64_t *) {
        const double x = convert<double>(value);
        if (x != x || c.top != c.top) c.top = x != x ? x : c.top;
        else if (x > c.top) {
            c.sum = (c.top == -HUGE_VAL ? 0 : c.sum * exp(c.top - x)) + 1;
            c.top = x;
        }
        else if (c.top != -HUGE_VAL && c.top != HUGE_VAL) c.sum += exp(x - c.top);
        out = convert<T>(fabs(c.top) == HUGE_VAL || c.top != c.top ? c.top : c.top + log(c.sum));
    }
};

/* The gradient of the input is x[i]'s share of the terms of each result from i on:
 *
 *    exp(x[i] - top[i]) rest[i],    rest[i] = g[i] / sum[i] + exp(top[i] - top[i + 1]) rest[i + 1]
 *
 * with the largest term so far, top[i], and the sum of exp(x - top[i]) up to i. The results do not
 * occur: their logarithms of sums are rounded off where x is large. No exponent is positive.
 *
 * `width` neighbouring lines of n elements, `step` apart; `room` holds 2 n width numbers. */
template <class T>
void logsumexp_slope_lines(const T *g, const T *x, T *out, int64_t n, int64_t step, int64_t width,
                           double *room) {
    typedef typename logsumexp_scan<T>::carry carry;
    carry *sums = reinterpret_cast<carry *>(room);
    for (int64_t j = 0; j < width; ++j) {
        carry c = logsumexp_scan<T>::start();
        T unused;
        for (int64_t i = 0; i < n; ++i) {
            logsumexp_scan<T>::step(c, x[i * step + j], i, unused, nullptr);
            sums[i * width + j] = c;
        }
    }
    for (int64_t j = 0; j < width; ++j) {
        double rest = 0, next = sums[(n - 1) * width + j].top;
        for (int64_t i = n - 1; i >= 0; --i) {
            const carry c = sums[i * width + j];
            const double v = convert<double>(x[i * step + j]),
                         up = convert<double>(g[i * step + j]);
            const double kept = c.top == next ? 1.0 : exp(c.top - next);
            rest = (c.sum == 0 ? 0.0 : up / c.sum) + (kept == 0 ? 0.0 : kept * rest);
            const double part = v == -HUGE_VAL ? 0.0 : exp(v - c.top);
            out[i * step + j] = convert<T>(part == 0 ? 0.0 : part * rest);
            next = c.top;
        }
    }
}

int logcumsumexp_slope_kernel(pt_call *call) {
    const pt_view &g = call->in[0], &x = call->in[1];
    const int64_t ndim = x.ndim ? x.ndim : 1, dim = wrap_dim(call->params[0].i, ndim);
    if (g.numel != x.numel || g.dtype != x.dtype || dim < 0 || dim >= ndim)
        return fail(call, PT_RUNTIME_ERROR, "expected a gradient like input, and one of its dims");
    if (x.numel == 0) return PT_OK;
    const int64_t n = x.ndim ? x.sizes[dim] : 1;
    int64_t inner = 1;
    for (int64_t d = dim + 1; d < x.ndim; ++d) inner *= x.sizes[d];
    const int64_t width = min64(inner, max64(1, min64(16, 32768 / n))),
                  blocks = ceil_div(inner, width), outer = x.numel / n / inner;
    std::atomic<bool> starved{false};
    int status = visit<FLOATS>(call, x.dtype, [&](auto tag) {
        using T = PT_TYPE(tag);
        parallel_for(outer * blocks, grain_rows(16 * n * width), [&](int64_t begin, int64_t end) {
            scratch<double> room(2 * n * width);
            if (!room) {
                starved = true;
                return;
            }
            for (int64_t u = begin; u < end; ++u) {
                const int64_t b = u % blocks * width, at = u / blocks * n * inner + b;
                logsumexp_slope_lines(input<T>(call) + at, input<T>(call, 1) + at,
                                      output<T>(call) + at, n, inner, min64(width, inner - b),
                                      room.data);
            }
        });
        return int(PT_OK);
    });
    return starved ? no_memory(call, 16 * n * width) : status;
}

/* The running log-sum-exp of complex numbers, term by term. The imaginary part continues that of
 * the term with the larger real part, and is not brought back to [-pi, pi]. */
template <class T>
struct complex_logsumexp_scan {
    using out_type = T;
    struct carry { complex128 sum; bool some; };
    static carry start() { return {{0, 0}, false}; }
    static void step(carry &c, T value, int64_t, T &out, int64_t *) {
        const complex128 x = convert<complex128>(value);
        c.sum = c.some ? joined(c.sum, x) : x;
        c.some = true;
        out = convert<T>(c.sum);
    }
    static complex128 joined(complex128 a, complex128 b) {
        if (a.re != a.re || a.im != a.im || b.re != b.re || b.im != b.im) return {NAN, NAN};
        if (a.re < b.re) {
            const complex128 t = a;
            a = b;
            b = t;
        }
        if (a.re == b.re && fabs(a.re) == HUGE_VAL)
            return a.re < 0 ? b
                            : complex128{a.re, atan2(sin(a.im) + sin(b.im), cos(a.im) + cos(b.im))};
        const double size = exp(b.re - a.re), re = size * cos(b.im - a.im),
                     im = size == 0 ? 0 : size * sin(b.im - a.im);
        return {a.re + 0.5 * log1p(2 * re + size * size), a.im + atan2(im, 1 + re)};
    }
};

/* the last of equal values wins, as in torch; a NaN beats numbers */
template <class T, bool MAX>
struct extremum_scan {
    using out_type = T;
    struct carry { T value; int64_t index; };
    static carry start() { return {T{}, -1}; }
    static void step(carry &c, T x, int64_t i, T &out, int64_t *index) {
        const compute<T> a = convert<compute<T>>(x), v = convert<compute<T>>(c.value);
        if (c.index < 0 || a != a || (v == v && (MAX ? a >= v : a <= v))) c = {x, i};
        out = c.value;
        *index = c.index;
    }
};

int logcumsumexp_kernel(pt_call *call) {
    if (int status = check_dim(call)) return status;
    return visit<FLOATS | COMPLEXES>(call, call->in[0].dtype, [&](auto tag) {
        using T = PT_TYPE(tag);
        if constexpr (is_complex<T>) return scan(call, scan_of<complex_logsumexp_scan<T>, T>());
        else return scan(call, scan_of<logsumexp_scan<T>, T>());
    });
}
template <bool MAX>
int extremum_kernel(pt_call *call) {
    if (int status = check_dim(call)) return status;
    return visit<REALS>(call, call->in[0].dtype, [&](auto tag) {
        using T = PT_TYPE(tag);
        return scan(call, scan_of<extremum_scan<T, MAX>, T>());
    });
}

} // namespace

extern "C" const pt_kernel_entry PT_CAT(pt_kernels_running_, PT_ISA)[] = {
    {"logcumsumexp", logcumsumexp_kernel},
    {"logcumsumexp_slope", logcumsumexp_slope_kernel},
    {"cummax", extremum_kernel<true>},
    {"cummin", extremum_kernel<false>},
    {nullptr, nullptr},
};
