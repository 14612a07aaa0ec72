/* Reductions that add up: sum, nansum, mean, prod, var, vector_norm, logsumexp, count_nonzero, any,
 * all.
 *
 * Precision: float32 data is added eight by eight in float32, and in float64 beyond (sum_lanes);
 * half types are read as float32; integers wrap in 64 bits. An empty reduction gives the identity.
 */
#include "lanes.hpp"
#include "reduce.hpp"

#include <atomic>

namespace {

/* Folds columns. Rows are taken four at a time, for fewer loads of the accumulators; not for
 * selections, which would become branches when nested this deep. */
template <class Fold, class T>
inline void fold_columns(T *PT_RESTRICT acc, const T *PT_RESTRICT x, int64_t stride, int64_t rows,
                         int64_t width) {
    constexpr bool arithmetic = is_same<Fold, add_fold> || is_same<Fold, multiply_fold>;
    int64_t r = 0;
    for (; arithmetic && r + 4 <= rows; r += 4) {
        const T *a = x + r * stride, *b = a + stride, *c = b + stride, *d = c + stride;
        PT_IVDEP
        for (int64_t j = 0; j < width; ++j)
            acc[j] =
                Fold::apply(acc[j], Fold::apply(Fold::apply(a[j], b[j]), Fold::apply(c[j], d[j])));
    }
    for (; r < rows; ++r) {
        const T *a = x + r * stride;
        PT_IVDEP
        for (int64_t j = 0; j < width; ++j) acc[j] = Fold::apply(acc[j], a[j]);
    }
}

/* ---- sum, prod --------------------------------------------------------------------------- */

template <class E> struct wide { using type = double; };
template <> struct wide<int64_t> { using type = int64_t; };
template <> struct wide<complex64> { using type = complex128; };
template <> struct wide<complex128> { using type = complex128; };

/* signed types are added as unsigned ones, so that they wrap */
template <class E> struct lane_type { using type = E; };
template <> struct lane_type<int64_t> { using type = uint64_t; };
template <> struct lane_type<complex64> { using type = float; };
template <> struct lane_type<complex128> { using type = double; };

template <class Fold, class W>
inline W combine(W a, W b) {
    if constexpr (is_same<W, int64_t>) return int64_t(Fold::apply(uint64_t(a), uint64_t(b)));
    else return Fold::apply(a, b);
}

template <class E, class Fold>
struct fold_op  {
    using elem = E;
    using state = typename wide<E>::type;
    static constexpr bool adds = is_same<Fold, add_fold>;

    static state identity() { return convert<state>(adds ? 0 : 1); }
    static void merge(state &a, const state &b) { a = combine<Fold>(a, b); }
    static bool settled(const state &) { return false; }
    void run(state &s, const E *x, int64_t n, int64_t) const {
        using L = typename lane_type<E>::type;
        const L *p = reinterpret_cast<const L *>(x);
        if constexpr (is_complex<E> && adds) {
            double re_im[2];
            sum_lanes<2>(p, p, 2 * n, re_im, identity_map{});
            s = s + state{re_im[0], re_im[1]};
        }
        else if constexpr (adds && is_same<state, double>)
            s += sum_of(p, n);
        else if constexpr (!is_complex<E>)
            s = combine<Fold>(s, state(fold<Fold>(p, n, L(adds ? 0 : 1))));
        else
            for (int64_t i = 0; i < n; ++i) s = s * convert<state>(x[i]);
    }
    void columns(state *s, const E *x, int64_t stride, int64_t rows, int64_t width, int64_t) const {
        if constexpr (adds && !is_same<state, int64_t>) {
            using L = typename lane_type<E>::type;      /* a complex state is two doubles */
            constexpr int64_t PARTS = is_complex<E> ? 2 : 1;
            sum_columns(reinterpret_cast<double *>(s), reinterpret_cast<const L *>(x),
                        PARTS * stride, rows, PARTS * width, [](L v, int64_t) { return v; });
        }
        else if constexpr (is_complex<E>)
            for (int64_t r = 0; r < rows; ++r)
                for (int64_t j = 0; j < width; ++j) s[j] = s[j] * convert<state>(x[r * stride + j]);
        else {
            using L = typename lane_type<E>::type;
            L acc[COLUMN_WIDTH];
            for (int64_t j = 0; j < width; ++j) acc[j] = L(adds ? 0 : 1);
            fold_columns<Fold>(acc, reinterpret_cast<const L *>(x), stride, rows, width);
            for (int64_t j = 0; j < width; ++j) s[j] = combine<Fold>(s[j], state(acc[j]));
        }
    }
};

/* The sum of the elements that are not NaN. */
template <class E>
struct known_sum_op {
    using elem = E;
    using state = double;
    static state identity() { return 0; }
    static void merge(state &a, const state &b) { a += b; }
    static bool settled(const state &) { return false; }
    void run(state &s, const E *x, int64_t n, int64_t) const {
        double sum;
        const auto zero = simd<E>::fill(E(0));
        /* for a number, one of the two is the number and the other 0; for NaN, both are 0 */
        sum_lanes<1>(x, x, n, &sum,
                     [=](auto v, auto) { return maximum(zero, v) + minimum(zero, v); });
        s += sum;
    }
    void columns(state *s, const E *x, int64_t stride, int64_t rows, int64_t width, int64_t) const {
        sum_columns(s, x, stride, rows, width, [](E v, int64_t) { return v == v ? v : E(0); });
    }
};

/* ---- var --------------------------------------------------------------------------------- */

/* Chan's merge of (count, mean, sum of squared deviations); two passes inside a run. A complex
 * variance is the sum of those of the real and the imaginary parts. */
template <class E>
struct var_op  {
    using elem = E;
    struct state { double n, mean, m2; };
    static state identity() { return {0, 0, 0}; }
    static bool settled(const state &) { return false; }
    static void merge(state &a, const state &b) {
        if (b.n == 0) return;
        double n = a.n + b.n, d = b.mean - a.mean;
        a.mean += d * (b.n / n);
        a.m2 += b.m2 + d * d * (a.n * (b.n / n));
        a.n = n;
    }
    void run(state &s, const E *x, int64_t n, int64_t) const {
        double total = sum_of(x, n), first, second;
        if (sum_overflowed<E>(total)) total = sum_in_double(x, 1, n, [](double v) { return v; });
        const E mean = E(total / double(n));
        const auto m = simd<E>::fill(mean);
        sum_lanes<1>(x, x, n, &first, [=](auto v, auto) { return v - m; });
        sum_lanes<1>(x, x, n, &second, [=](auto v, auto) { return (v - m) * (v - m); });
        if (squares_lost<E>(second)) add_in_double(x, 1, n, double(mean), first, second);
        finish(s, double(n), double(mean), first, second);
    }
    void columns(state *s, const E *x, int64_t stride, int64_t rows, int64_t width, int64_t) const {
        E mean[COLUMN_WIDTH];
        double first[COLUMN_WIDTH], second[COLUMN_WIDTH];
        for (int64_t j = 0; j < width; ++j) first[j] = second[j] = 0;
        sum_columns(first, x, stride, rows, width, [](E v, int64_t) { return v; });
        for (int64_t j = 0; j < width; ++j) {
            if (sum_overflowed<E>(first[j]))
                first[j] = sum_in_double(x + j, stride, rows, [](double v) { return v; });
            mean[j] = E(first[j] / double(rows));
            first[j] = 0;
        }
        sum_columns(first, x, stride, rows, width, [&](E v, int64_t j) { return v - mean[j]; });
        sum_columns(second, x, stride, rows, width,
                    [&](E v, int64_t j) { return (v - mean[j]) * (v - mean[j]); });
        for (int64_t j = 0; j < width; ++j)
            if (squares_lost<E>(second[j]))
                add_in_double(x + j, stride, rows, double(mean[j]), first[j], second[j]);
        for (int64_t j = 0; j < width; ++j)
            finish(s[j], double(rows), double(mean[j]), first[j], second[j]);
    }

  private:
    /* the sums of deviations and of their squares, in double */
    static void add_in_double(const E *x, int64_t stride, int64_t n, double mean, double &first,
                              double &second) {
        first = sum_in_double(x, stride, n, [=](double v) { return v - mean; });
        second = sum_in_double(x, stride, n, [=](double v) { return (v - mean) * (v - mean); });
    }
    /* adds a run; its deviations are from a rounded mean, and are corrected here */
    void finish(state &s, double n, double mean, double first, double second) const {
        merge(s, {n, mean + first / n, second - first * (first / n)});
    }
};

/* ---- vector_norm ------------------------------------------------------------------------- */

enum norm_kind { NORM_0, NORM_1, NORM_2, NORM_P, NORM_MAX, NORM_MIN };

/* All is computed in float64 from |x|, so that squares of float32 cannot overflow. */
template <class T>
inline void fetch_magnitude(void *to, const void *from, int64_t stride, int64_t n) {
    double *PT_RESTRICT dst = static_cast<double *>(to);
    const T *PT_RESTRICT src = static_cast<const T *>(from);
    if constexpr (is_complex<T>)
        for (int64_t i = 0; i < n; ++i)
            dst[i] = hypot(double(src[i * stride].re), double(src[i * stride].im));
    else {
        load(dst, src, stride, n);
        for (int64_t i = 0; i < n; ++i) dst[i] = fabs(dst[i]);
    }
}
/* Beside a power that may have become 0, this says that a number is not: it is too small to change
 * a sum that keeps its digits. */
inline double some(double x) { return x != 0 ? 1e-300 : 0.0; }

constexpr int64_t POWERS = 128;
/* The powers of at most POWERS numbers. Common orders are products, roots and quotients. */
PT_NOINLINE void powers(double *PT_RESTRICT to, const double *PT_RESTRICT x, int64_t n, double p) {
    auto each = [=](auto &&f) {
        for (int64_t i = 0; i < n; ++i) to[i] = f(x[i]) + some(x[i]);
    };
    if (p == 3) return each([](double v) { return v * v * v; });
    if (p == 4) return each([](double v) { return (v * v) * (v * v); });
    if (p == 1.5) return each([](double v) { return v * sqrt(v); });
    if (p == 0.5) return each([](double v) { return sqrt(v); });
    if (p == -1) return each([](double v) { return 1 / v; });
    each([p](double v) { return pow(v, p); });
}

template <int KIND>
struct norm_op {
    using elem = double;
    using state = double;
    using fold_type = std::conditional_t<KIND == NORM_MAX, max_fold,
                                         std::conditional_t<KIND == NORM_MIN, min_fold, add_fold>>;
    double p;

    static state identity() { return KIND == NORM_MIN ? HUGE_VAL : 0.0; }
    static bool settled(const state &) { return false; }
    static void merge(state &a, const state &b) { a = fold_type::apply(a, b); }
    static double power(double x) { return KIND == NORM_0 ? x != 0 : x * x + some(x); }
    void run(state &s, const double *x, int64_t n, int64_t) const {
        if constexpr (KIND == NORM_2) {
            double r;
            fold_lanes<add_fold, 1>(x, x, n, 0.0, &r, [](auto v, auto) { return v * v; });
            for (int64_t i = 0; r < 1e-280 && i < n; ++i) s += some(x[i]);
            s += r;
        }
        else if constexpr (KIND == NORM_0)
            for (int64_t i = 0; i < n; ++i) s += power(x[i]);
        else if constexpr (KIND == NORM_P)
            for (int64_t i = 0; i < n; i += POWERS) {
                double block[POWERS];
                const int64_t m = min64(POWERS, n - i);
                powers(block, x + i, m, p);
                s += fold<add_fold>(block, m, 0.0);
            }
        else
            merge(s, fold<fold_type>(x, n, identity()));
    }
    void columns(state *PT_RESTRICT s, const double *PT_RESTRICT x, int64_t stride, int64_t rows,
                 int64_t width, int64_t) const {
        if constexpr (KIND == NORM_1 || KIND == NORM_MAX || KIND == NORM_MIN)
            fold_columns<fold_type>(s, x, stride, rows, width);
        else if constexpr (KIND != NORM_P)
            for (int64_t r = 0; r < rows; ++r)
                for (int64_t j = 0; j < width; ++j) s[j] += power(x[r * stride + j]);
        else
            for (int64_t r = 0; r < rows; ++r)
                for (int64_t i = 0; i < width; i += POWERS) {
                    double block[POWERS];
                    const int64_t m = min64(POWERS, width - i);
                    powers(block, x + r * stride + i, m, p);
                    for (int64_t j = 0; j < m; ++j) s[i + j] += block[j];
                }
    }
};

/* sum of squares of contiguous float32 elements, widened in the lanes without a tile */
struct norm2_float {
    using elem = float;
    using state = double;
    static state identity() { return 0; }
    static bool settled(const state &) { return false; }
    static void merge(state &a, const state &b) { a += b; }
    void run(state &s, const float *PT_RESTRICT x, int64_t n, int64_t) const {
        constexpr int L = 32;
        double lane[L] = {};
        int64_t i = 0;
        for (; i + L <= n; i += L)
            for (int l = 0; l < L; ++l) lane[l] += double(x[i + l]) * double(x[i + l]);
        for (int l = 0; i < n; ++i, ++l) lane[l] += double(x[i]) * double(x[i]);
        s += fold<add_fold>(lane, L, 0.0);
    }
    void columns(state *PT_RESTRICT s, const float *PT_RESTRICT x, int64_t stride, int64_t rows,
                 int64_t width, int64_t) const {
        for (int64_t r = 0; r < rows; ++r)
            for (int64_t j = 0; j < width; ++j)
                s[j] += double(x[r * stride + j]) * double(x[r * stride + j]);
    }
};

/* The same where the sum of powers has left the range in which it keeps its digits: magnitudes are
 * divided by the largest one, or by the smallest one for a negative order. */
template <bool SMALLEST>
struct scaled_norm_op {
    using elem = double;
    struct state { double end, sum, p; };       /* the sum of (x / end)^p */
    using fold_type = std::conditional_t<SMALLEST, min_fold, max_fold>;
    double p;

    static state identity() { return {SMALLEST ? HUGE_VAL : 0.0, 0, 0}; }
    static bool settled(const state &) { return false; }
    static bool usable(double end) { return end > 0 && end < HUGE_VAL; }
    static void merge(state &a, const state &b) {
        const double end = fold_type::apply(a.end, b.end), p = b.p != 0 ? b.p : a.p;
        auto part = [=](const state &s) {
            return usable(end) && usable(s.end) ? s.sum * pow(s.end / end, p) : 0.0;
        };
        a = {end, part(a) + part(b), p};
    }
    void add(state &s, double x) const { merge(s, {x, 1, p}); }
    void run(state &s, const double *x, int64_t n, int64_t) const {
        for (int64_t i = 0; i < n; ++i) add(s, x[i]);
    }
    void columns(state *s, const double *x, int64_t stride, int64_t rows, int64_t width,
                 int64_t) const {
        for (int64_t r = 0; r < rows; ++r)
            for (int64_t j = 0; j < width; ++j) add(s[j], x[r * stride + j]);
    }
};

/* ---- logsumexp --------------------------------------------------------------------------- */

/* running maximum and the sum of exp(x - maximum) */
template <class E>
struct logsumexp_op  {
    using elem = E;
    struct state { double top, sum; };
    static state identity() { return {-HUGE_VAL, 0}; }
    static bool settled(const state &) { return false; }
    static void merge(state &a, const state &b) {
        double top = select_max(a.top, b.top);
        if (fabs(top) == HUGE_VAL || top != top) a.sum += b.sum;
        else
            a.sum = (a.top == top ? a.sum : a.sum * exp(a.top - top)) +
                    (b.top == top ? b.sum : b.sum * exp(b.top - top));
        a.top = top;
    }
    void run(state &s, const E *x, int64_t n, int64_t) const {
        constexpr int L = 32;
        const E top = fold<max_fold>(x, n, limits<E>::lowest());
        if (fabs(double(top)) == HUGE_VAL || top != top) return merge(s, {double(top), 0});
        /* exp in loops of a fixed trip count, which become vectors; the sums of four in double */
        double lane[L] = {};
        E four[L];
        int64_t i = 0;
        for (; i + 4 * L <= n; i += 4 * L) {
            for (int l = 0; l < L; ++l) four[l] = pt::exp(x[i + l] - top);
            for (int64_t k = i + L; k < i + 4 * L; k += L)
                for (int l = 0; l < L; ++l) four[l] += pt::exp(x[k + l] - top);
            for (int l = 0; l < L; ++l) lane[l] += double(four[l]);
        }
        for (; i + L <= n; i += L)
            for (int l = 0; l < L; ++l) lane[l] += double(pt::exp(x[i + l] - top));
        for (int l = 0; i < n; ++i, ++l) lane[l] += double(pt::exp(x[i] - top));
        merge(s, {double(top), fold<add_fold>(lane, L, 0.0)});
    }
    void columns(state *s, const E *x, int64_t stride, int64_t rows, int64_t width, int64_t) const {
        E top[COLUMN_WIDTH];
        double sum[COLUMN_WIDTH];
        for (int64_t j = 0; j < width; ++j) {
            top[j] = limits<E>::lowest();
            sum[j] = 0;
        }
        fold_columns<max_fold>(top, x, stride, rows, width);
        sum_columns(sum, x, stride, rows, width,
                    [&](E v, int64_t j) { return pt::exp(v - top[j]); });
        /* where all is -inf, or something is inf, the sum is NaN and does not count */
        for (int64_t j = 0; j < width; ++j)
            merge(s[j], {double(top[j]), fabs(double(top[j])) == HUGE_VAL ? 0 : sum[j]});
    }
};

/* ---- count_nonzero, any, all ------------------------------------------------------------- */

enum truth_kind { COUNT, ANY, EVERY };

template <int KIND>
struct truth_op {
    using elem = uint8_t;
    struct state { int64_t truths, seen; };
    static state identity() { return {0, 0}; }
    static bool settled(const state &s) {
        return KIND == ANY ? s.truths > 0 : KIND == EVERY ? s.truths < s.seen : false;
    }
    static void merge(state &a, const state &b) {
        a.truths += b.truths;
        a.seen += b.seen;
    }
    void run(state &s, const uint8_t *x, int64_t n, int64_t) const {
        static_assert(RUN / 64 <= 255, "lanes of 8 bits must not overflow");
        uint8_t lane[64] = {};
        int64_t i = 0, total = 0;
        for (; i + 64 <= n; i += 64)
            for (int l = 0; l < 64; ++l) lane[l] = uint8_t(lane[l] + x[i + l]);
        for (; i < n; ++i) total += x[i];
        for (int l = 0; l < 64; ++l) total += lane[l];
        merge(s, {total, n});
    }
    void columns(state *s, const uint8_t *x, int64_t stride, int64_t rows, int64_t width,
                 int64_t) const {
        static_assert(COLUMN_ROWS <= 255, "columns of 8 bits must not overflow");
        uint8_t acc[COLUMN_WIDTH] = {};
        fold_columns_u8(acc, x, stride, rows, width);
        for (int64_t j = 0; j < width; ++j) merge(s[j], {acc[j], rows});
    }
    static void fold_columns_u8(uint8_t *PT_RESTRICT acc, const uint8_t *PT_RESTRICT x,
                                int64_t stride, int64_t rows, int64_t width) {
        for (int64_t r = 0; r < rows; ++r)
            for (int64_t j = 0; j < width; ++j) acc[j] = uint8_t(acc[j] + x[r * stride + j]);
    }
};

/* ---- the kernels ------------------------------------------------------------------------- */

/* The source of in[0] for tiles of E: unchanged, or widened from any integer type. */
template <class E, class O>
inline int integer_source(pt_call *call, source &from) {
    const pt_view &in = call->in[0];
    if (in.dtype == call->out[0].dtype) {
        from = source_of<E, std::conditional_t<is_same<O, boolean>, uint8_t, O>>(in);
        return PT_OK;
    }
    if constexpr (is_complex<E>) return bad_dtype(call, in.dtype);
    else
        return visit<BOOL | INTEGERS>(call, in.dtype, [&](auto tag) {
            from = source_of<E, PT_TYPE(tag)>(in);
            return int(PT_OK);
        });
}

/* to.a: the divisor of a floating result */
struct fold_write {
    template <class O, class S>
    static void apply(O &out, const S &s, const sink &to, int64_t) {
        if constexpr (is_same<S, double>) out = convert<O>(s / to.a);
        else if constexpr (is_complex<S>) out = convert<O>(S{s.re / to.a, s.im / to.a});
        else out = convert<O>(s);
    }
};

/* A sink for sums of terms that are repeated to.a times; to.out2 is the sink of their products. */
template <class S>
PT_NOINLINE void write_repeated(const sink &to, int64_t first, const void *states, int64_t n) {
    const sink &inner = *reinterpret_cast<const sink *>(to.out2);
    for (int64_t i = 0; i < n; ++i) {
        S s = static_cast<const S *>(states)[i];
        if constexpr (is_same<S, int64_t>) s = int64_t(uint64_t(s) * uint64_t(to.a));
        else if constexpr (is_complex<S>) s = S{s.re * to.a, s.im * to.a};
        else s = s * to.a;
        inner.write(inner, first + i, &s, 1);
    }
}
template <class S>
PT_NOINLINE sink repeated(sink &inner, int64_t times) {
    if (times == 1) return inner;
    return {write_repeated<S>, nullptr, reinterpret_cast<char *>(&inner), double(times), 0};
}

template <class E, class O, class Fold>
inline int fold_as(pt_call *call, const reduction_plan &plan, double count, int64_t times) {
    using op = fold_op<E, Fold>;
    using S = typename op::state;
    const op o;
    source from;
    if (int status = integer_source<E, O>(call, from)) return status;
    sink to = sink_of<O, S, fold_write>(call, count);
    return reduce(call, reducer_of(&o), from, plan, repeated<S>(to, times));
}
template <class Fold>
inline int fold_kernel(pt_call *call, bool mean) {
    reduction_plan plan;
    if (int status = plan_dims(call, 0, plan)) return status;
    int64_t times = is_same<Fold, add_fold> ? without_repeats(plan) : 1;
    const double count = mean ? double(plan.count) : 1;
    if (mean) times = 1;
    const bool widen = call->in[0].dtype != call->out[0].dtype;
    if (call->out[0].dtype == PT_BOOL)
        return fold_as<int64_t, boolean, Fold>(call, plan, count, times);
    return visit<INTEGERS | FLOATS | COMPLEXES>(call, call->out[0].dtype, [&](auto tag) {
        using O = PT_TYPE(tag);
        if constexpr (is_complex<O>) return fold_as<O, O, Fold>(call, plan, count, times);
        else if constexpr (!is_float<O>) return fold_as<int64_t, O, Fold>(call, plan, count, times);
        else
            return widen ? fold_as<double, O, Fold>(call, plan, count, times)
                         : fold_as<compute<O>, O, Fold>(call, plan, count, times);
    });
}
int sum_kernel(pt_call *call) { return fold_kernel<add_fold>(call, false); }
int mean_kernel(pt_call *call) { return fold_kernel<add_fold>(call, true); }
int prod_kernel(pt_call *call) { return fold_kernel<multiply_fold>(call, false); }

int nansum_kernel(pt_call *call) {
    if (!pt_is(call->in[0].dtype, FLOATS)) return sum_kernel(call);
    reduction_plan plan;
    if (int status = plan_dims(call, 0, plan)) return status;
    return visit<FLOATS>(call, call->in[0].dtype, [&](auto tag) {
        using T = PT_TYPE(tag);
        const known_sum_op<compute<T>> o;
        const int64_t times = without_repeats(plan);
        sink to = sink_of<T, double, fold_write>(call, 1);
        return reduce(call, reducer_of(&o), source_of<compute<T>, T>(call->in[0]), plan,
                      repeated<double>(to, times));
    });
}

/* doubles all strides: complex data is read as interleaved reals */
inline void as_reals(reduction_plan &plan) {
    for (int d = 0; d < plan.kept.ndim; ++d) plan.kept.stride[0][d] *= 2;
    for (int d = 0; d < plan.reduced.ndim; ++d) plan.reduced.stride[0][d] *= 2;
    plan.shift *= 2;
    plan.rows = false;          /* elements of a row are now 2 apart */
}

/* to.a: the correction; to.b: 1 if the result is added to out (imaginary parts) */
struct var_write {
    template <class O, class S>
    static void apply(O &out, const S &s, const sink &to, int64_t) {
        const double v = s.m2 / (s.n > to.a ? s.n - to.a : 0.0);
        out = convert<O>(to.b ? convert<double>(out) + v : v);
    }
};

/* The root of a variance of real numbers, which the output's type need not hold. */
struct std_write {
    template <class O, class S>
    static void apply(O &out, const S &s, const sink &to, int64_t) {
        out = convert<O>(sqrt(s.m2 / (s.n > to.a ? s.n - to.a : 0.0)));
    }
};

int std_kernel(pt_call *call) {
    reduction_plan plan;
    if (int status = plan_dims(call, 0, plan)) return status;
    return visit<FLOATS>(call, call->in[0].dtype, [&](auto tag) {
        using T = PT_TYPE(tag);
        using op = var_op<compute<T>>;
        const op o;
        return reduce(call, reducer_of(&o), source_of<compute<T>, T>(call->in[0]), plan,
                      sink_of<T, typename op::state, std_write>(call, call->params[1].d));
    });
}

int var_kernel(pt_call *call) {
    reduction_plan plan;
    if (int status = plan_dims(call, 0, plan)) return status;
    return visit<FLOATS | COMPLEXES>(call, call->in[0].dtype, [&](auto tag) {
        using T = PT_TYPE(tag);
        using R = real_type<T>;
        using op = var_op<compute<R>>;
        const op o;
        sink to = sink_of<R, typename op::state, var_write>(call, call->params[1].d);
        source from = source_of<compute<R>, R>(call->in[0]);
        if constexpr (is_complex<T>) {
            as_reals(plan);
            if (int status = reduce(call, reducer_of(&o), from, plan, to)) return status;
            from.data += from.itemsize;
            to.b = 1;
        }
        return reduce(call, reducer_of(&o), from, plan, to);
    });
}

/* to.a: the order of the norm; to.out2: an atomic that says whether a sum of powers is not in the
 * range in which it keeps its digits */
struct norm_write {
    template <class O>
    static void apply(O &out, const double &s, const sink &to, int64_t) {
        const double p = to.a;
        if (p == 0 || p == 1 || fabs(p) == HUGE_VAL) {
            out = convert<O>(s);
            return;
        }
        out = convert<O>(p == 2 ? sqrt(s) : pow(s, 1 / p));
        if ((s < 1e-280 && s > 0) || s == HUGE_VAL)         /* 0: all numbers are 0 */
            reinterpret_cast<std::atomic<bool> *>(to.out2)->store(true, std::memory_order_relaxed);
    }
};
struct scaled_norm_write {
    template <class O, class S>
    static void apply(O &out, const S &s, const sink &, int64_t) {
        out = convert<O>(s.end > 0 && s.end < HUGE_VAL ? s.end * pow(s.sum, 1 / s.p) : s.end);
    }
};
template <bool SMALLEST>
inline int scaled_norm(pt_call *call, const source &from, const reduction_plan &plan, double p) {
    const scaled_norm_op<SMALLEST> op{p};
    return visit<FLOATS>(call, call->out[0].dtype, [&](auto tag) {
        using S = typename scaled_norm_op<SMALLEST>::state;
        return reduce(call, reducer_of(&op), from, plan,
                      sink_of<PT_TYPE(tag), S, scaled_norm_write>(call));
    });
}
int vector_norm_kernel(pt_call *call) {
    reduction_plan plan;
    if (int status = plan_dims(call, 1, plan)) return status;
    /* of one element, every norm is its magnitude */
    const double order = call->params[0].d, p = plan.count == 1 && fabs(order) > 0 ? 1 : order;
    const pt_view &in = call->in[0];
    sink to;
    int status = visit<FLOATS>(call, call->out[0].dtype, [&](auto tag) {
        to = sink_of<PT_TYPE(tag), double, norm_write>(call, p);
        return int(PT_OK);
    });
    if (status) return status;
    std::atomic<bool> lost{false};
    to.out2 = reinterpret_cast<char *>(&lost);
    if (p == 2 && pt_is(in.dtype, HALVES | bit(PT_FLOAT32))) {
        const norm2_float o;
        return reduce(call, reducer_of(&o),
                      in.dtype == PT_FLOAT32   ? source_of<float, float>(in)
                      : in.dtype == PT_FLOAT16 ? source_of<float, half>(in)
                                               : source_of<float, bfloat16>(in),
                      plan, to);
    }
    source from;
    status = visit<FLOATS | COMPLEXES>(call, in.dtype, [&](auto tag) {
        using T = PT_TYPE(tag);
        from = {in.data, int64_t(sizeof(T)), fetch_magnitude<T>, false};
        return int(PT_OK);
    });
    if (status) return status;
    auto go = [&](const auto &op) { return reduce(call, reducer_of(&op), from, plan, to); };
    if (p == 1) return go(norm_op<NORM_1>{p});
    if (p == 0) return go(norm_op<NORM_0>{p});
    if (p == HUGE_VAL) return go(norm_op<NORM_MAX>{p});
    if (p == -HUGE_VAL) return go(norm_op<NORM_MIN>{p});
    status = p == 2 ? go(norm_op<NORM_2>{p}) : go(norm_op<NORM_P>{p});
    if (status || !lost.load(std::memory_order_relaxed) || p != p) return status;
    return p < 0 ? scaled_norm<true>(call, from, plan, p) : scaled_norm<false>(call, from, plan, p);
}

struct logsumexp_write {
    template <class O, class S>
    static void apply(O &out, const S &s, const sink &, int64_t) {
        const bool special = fabs(s.top) == HUGE_VAL || s.top != s.top;
        out = convert<O>(special ? s.top : s.top + log(s.sum));
    }
};

int logsumexp_kernel(pt_call *call) {
    reduction_plan plan;
    if (int status = plan_dims(call, 0, plan)) return status;
    return visit<FLOATS>(call, call->in[0].dtype, [&](auto tag) {
        using T = PT_TYPE(tag);
        using op = logsumexp_op<compute<T>>;
        const op o;
        return reduce(call, reducer_of(&o), source_of<compute<T>, T>(call->in[0]), plan,
                      sink_of<T, typename op::state, logsumexp_write>(call));
    });
}

/* to.a: how often each element was repeated */
template <int KIND>
struct truth_write {
    template <class O, class S>
    static void apply(O &out, const S &s, const sink &to, int64_t) {
        out = O(KIND == COUNT ? s.truths * int64_t(to.a)
                : KIND == ANY ? s.truths > 0
                              : s.truths == s.seen);
    }
};

PT_NOINLINE int truth_source(pt_call *call, source &from) {
    return visit<ALL>(call, call->in[0].dtype, [&](auto tag) {
        using T = PT_TYPE(tag);
        from = {call->in[0].data, int64_t(sizeof(T)), fetch_truth<T>, false};
        return int(PT_OK);
    });
}
/* any and all over dims of size 1 */
PT_NOINLINE void copy_truths(pt_call *call, const reduction_plan &plan, const source &from) {
    const lines at(plan);
    parallel_for(plan.outputs, GRAIN, [&](int64_t begin, int64_t end) {
        cursor<1> line(at.kept, begin / at.width);
        for (int64_t o = begin, n; o < end; o += n, line.next()) {
            const int64_t within = o % at.width;
            n = min64(at.width - within, end - o);
            const int64_t first = plan.shift + line.offset[0] + within * at.across;
            from.fetch(output<uint8_t>(call) + o, from.data + first * from.itemsize,
                       at.width == 1 ? 1 : at.across, n);
        }
    });
}

template <int KIND>
int truth_kernel(pt_call *call) {
    reduction_plan plan;
    source from;
    if (int status = plan_dims(call, 0, plan)) return status;
    if (int status = truth_source(call, from)) return status;
    using op = truth_op<KIND>;
    using O = std::conditional_t<KIND == COUNT, int64_t, uint8_t>;
    const op o;
    const double times = double(without_repeats(plan));
    if (KIND != COUNT && plan.count == 1) {
        copy_truths(call, plan, from);
        return PT_OK;
    }
    return reduce(call, reducer_of(&o), from, plan,
                  sink_of<O, typename op::state, truth_write<KIND>>(call, times));
}

} // namespace

extern "C" const pt_kernel_entry PT_CAT(pt_kernels_reduction_, PT_ISA)[] = {
    {"sum", sum_kernel},
    {"mean", mean_kernel},
    {"nansum", nansum_kernel},
    {"prod", prod_kernel},
    {"var", var_kernel},
    {"std", std_kernel},
    {"vector_norm", vector_norm_kernel},
    {"logsumexp", logsumexp_kernel},
    {"count_nonzero", truth_kernel<COUNT>},
    {"any", truth_kernel<ANY>},
    {"all", truth_kernel<EVERY>},
    {nullptr, nullptr},
};
