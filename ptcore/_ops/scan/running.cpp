/* Running reductions along a dim that consist of comparisons and calls, which do not vectorise:
 * logcumsumexp, cummax, cummin (values and indices). Once a NaN is met, the results stay NaN.
 */
#include "scan.hpp"

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

/* Likewise for complex numbers, term by term. The imaginary part continues that of the term with
 * the larger real part, and is not brought back to [-pi, pi]. */
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
    {"cummax", extremum_kernel<true>},
    {"cummin", extremum_kernel<false>},
    {nullptr, nullptr},
};
