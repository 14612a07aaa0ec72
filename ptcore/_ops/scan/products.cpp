/* The gradient of running products and of products of whole lines.
 *
 *    products_slope(g, input, out; dim) -> the gradient of the input
 *
 * of cumprod, or of prod if g and out have one element along the dim. All are contiguous.
 */
#include "scan.hpp"

#include <atomic>
#include <cfloat>

namespace {

/* `width` lines of n elements. `step` leads to the next element, `side` to the next line. */
struct lines {
    int64_t n, step, side, width;
};

template <class T> struct wide_of { using type = double; };
template <> struct wide_of<complex64> { using type = complex128; };
template <> struct wide_of<complex128> { using type = complex128; };

template <class T>
T conjugate(T x) {
    if constexpr (is_complex<T>) return pt::conj(x);
    else return x;
}
template <class T> struct limits_of { static constexpr T least = FLT_MIN, largest = FLT_MAX; };
template <> struct limits_of<double> {
    static constexpr double least = DBL_MIN, largest = DBL_MAX;
};
/* whether a quotient by a factor of it keeps its digits: 0, denormal numbers, inf and NaN do not */
template <class T>
bool is_normal(T x) {
    if constexpr (is_complex<T>) {
        const auto size = fabs(x.re) + fabs(x.im);
        return is_normal(size);
    }
    else return (fabs(x) >= limits_of<T>::least) & (fabs(x) <= limits_of<T>::largest);
}

/* With the product of the elements before i, before[i], the gradient of x[i] is
 *
 *    before[i] rest[i],    rest[i] = g[i] + x[i + 1] rest[i + 1]
 *
 * without a quotient, so that zeros are like other numbers. If the product of the whole line alone
 * counts, rest[n - 1] is its gradient and the other g are 0. The products before pieces of PIECE
 * elements are kept in `heads`, those inside a piece are computed again. */
constexpr int64_t PIECE = 1024;
template <class T, class W>
__attribute__((cold)) void by_products(const T *g, const T *x, T *to, lines l, bool whole,
                                       W *heads) {
    W carry(1), before[PIECE];
    for (int64_t i = 0; i < l.n; ++i) {
        if (i % PIECE == 0) heads[i / PIECE] = carry;
        carry = carry * convert<W>(conjugate(x[i * l.step]));
    }
    carry = whole ? convert<W>(g[0]) : W(0);
    for (int64_t first = (l.n - 1) / PIECE * PIECE; first >= 0; first -= PIECE) {
        const int64_t last = min64(l.n, first + PIECE);
        W product = heads[first / PIECE];
        for (int64_t i = first; i < last; ++i) {
            before[i - first] = product;
            product = product * convert<W>(conjugate(x[i * l.step]));
        }
        for (int64_t i = last - 1; i >= first; --i) {
            if (!whole) carry = carry + convert<W>(g[i * l.step]);
            to[i * l.step] = convert<T>(before[i - first] * carry);
            carry = carry * convert<W>(conjugate(x[i * l.step]));
        }
    }
}

/* Of whole products, which neighbouring lines have next to each other: g product / x. */
template <class T>
void whole_by_quotients(const T *g, const T *x, const T *out, T *to, lines l) {
    if (l.step == 1)
        for (int64_t j = 0; j < l.width; ++j)
            for (int64_t i = 0; i < l.n; ++i)
                to[j * l.side + i] = g[j] * conjugate(out[j] / x[j * l.side + i]);
    else
        for (int64_t i = 0; i < l.n; ++i)
            for (int64_t j = 0; j < l.width; ++j)
                to[i * l.step + j] = g[j] * conjugate(out[j] / x[i * l.step + j]);
}

/* Of running products: the sum of g product from the end to here, over x. */
constexpr int64_t WIDTH = 64;
template <class T>
void running_by_quotients(const T *g, const T *x, const T *out, T *to, lines l) {
    using W = typename wide_of<T>::type;
    W carry[WIDTH];
    for (int64_t j = 0; j < l.width; ++j) carry[j] = W(0);
    const auto step = [&](int64_t at, W &c) {
        c = c + convert<W>(g[at]) * convert<W>(conjugate(out[at]));
        to[at] = convert<T>(c) / conjugate(x[at]);
    };
    for (int64_t i = l.n - 1; i >= 0; --i)
        if (l.side == 1)
            for (int64_t j = 0; j < l.width; ++j) step(i * l.step + j, carry[j]);
        else
            for (int64_t j = 0; j < l.width; ++j) step(i + j * l.side, carry[j]);
}

template <class T>
bool all_normal(const T *out, lines l, bool whole) {
    bool normal = true;
    if (whole)
        for (int64_t j = 0; j < l.width; ++j) normal &= is_normal(out[j]);
    else if (l.side == 1)
        for (int64_t i = 0; i < l.n; ++i)
            for (int64_t j = 0; j < l.width; ++j) normal &= is_normal(out[i * l.step + j]);
    else
        for (int64_t j = 0; j < l.width; ++j)
            for (int64_t i = 0; i < l.n; ++i) normal &= is_normal(out[j * l.side + i]);
    return normal;
}

/* Each line by itself is computed in one of the two ways, so that it does not depend on others. */
template <class T>
bool slope_of_lines(const T *g, const T *x, const T *out, T *to, lines l, bool whole) {
    const auto quotients = whole ? whole_by_quotients<T> : running_by_quotients<T>;
    if (all_normal(out, l, whole)) {
        quotients(g, x, out, to, l);
        return true;
    }
    scratch<typename wide_of<T>::type> heads(ceil_div(l.n, PIECE));
    if (!heads) return false;
    const lines one{l.n, l.step, l.side, 1};
    const int64_t next = whole ? 1 : l.side;
    for (int64_t j = 0; j < l.width; ++j, g += next, out += next, x += l.side, to += l.side)
        if (all_normal(out, one, whole)) quotients(g, x, out, to, one);
        else by_products(g, x, to, one, whole, heads.data);
    return true;
}

int products_slope_kernel(pt_call *call) {
    const pt_view &g = call->in[0], &x = call->in[1], &out = call->in[2];
    const int64_t ndim = x.ndim ? x.ndim : 1, dim = wrap_dim(call->params[0].i, ndim);
    if (g.ndim != x.ndim || g.dtype != x.dtype || out.dtype != x.dtype || out.numel != g.numel ||
        dim < 0 || dim >= ndim)
        return fail(call, PT_RUNTIME_ERROR, "expected a gradient like input, and one of its dims");
    if (x.numel == 0) return PT_OK;
    const int64_t n = x.ndim ? x.sizes[dim] : 1;
    const bool whole = g.numel != x.numel;
    if (whole && g.numel != x.numel / n)
        return fail(call, PT_RUNTIME_ERROR, "expected a gradient like input, or of size 1 there");
    int64_t inner = 1;
    for (int64_t d = dim + 1; d < x.ndim; ++d) inner *= x.sizes[d];
    /* lines that are next to each other: those of all blocks before the dim if none are inside */
    const int64_t beside = inner == 1 ? x.numel / n : inner, side = inner == 1 ? n : 1,
                  width = min64(beside, side == 1 ? WIDTH : ROWS), blocks = ceil_div(beside, width);
    std::atomic<int> starved{0};
    const int status = visit<bit(PT_FLOAT32) | bit(PT_FLOAT64) | COMPLEXES>(
        call, x.dtype, [&](auto tag) {
            using T = PT_TYPE(tag);
            parallel_for(
                x.numel / n / beside * blocks, grain_rows(8 * n * width),
                [&](int64_t begin, int64_t end) {
                    for (int64_t u = begin; u < end; ++u) {
                        const int64_t b = u % blocks * width, o = u / blocks * beside,
                                      from = o * n + b * side, up = whole ? o + b : from;
                        if (!slope_of_lines(input<T>(call) + up, input<T>(call, 1) + from,
                                            input<T>(call, 2) + up, output<T>(call) + from,
                                            lines{n, inner, side, min64(width, beside - b)}, whole))
                            starved.store(1, std::memory_order_relaxed);
                    }
                });
            return int(PT_OK);
        });
    if (starved.load(std::memory_order_relaxed)) return no_memory(call, 16 * ceil_div(n, PIECE));
    return status;
}

} // namespace

extern "C" const pt_kernel_entry PT_CAT(pt_kernels_products_, PT_ISA)[] = {
    {"products_slope", products_slope_kernel},
    {nullptr, nullptr},
};
