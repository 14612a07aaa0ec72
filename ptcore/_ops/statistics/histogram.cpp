/* Histograms of rows of coordinates, and of integers: counts, or sums of weights.
 *
 *    binned(input, edges, weight; bins, places) -> counts
 *    counted(input, weight; bins) -> counts
 *
 * input is (n, k). edges holds the edges of each coordinate, one coordinate after the other:
 * bins[d] + 1 edges each, or only the lowest and the highest if places is "computed". A bin
 * includes its lower edge, the last bin both edges. Sums are in double, so that counts do
 * not stop at float's precision. The rows are cut into parts by their number alone. Compiled
 * for the base level alone. */
#include "common.hpp"

namespace {

enum : int { SEARCHED = 0, EVEN, COMPUTED };
constexpr int64_t TILE = 256;               /* elements that are read at once */

template <class C>
struct ruler {
    const C *edges;
    int64_t bins;
    C low, high, scale;
    int places;

    /* the bin of x, which lies between the lowest and the highest edge */
    int64_t operator()(C x) const {
        if (places == SEARCHED) {
            const C *first = edges;                 /* bisection without branches */
            int64_t n = bins + 1;
            for (; n > 1; n -= n / 2) first += n / 2 & -int64_t(first[n / 2 - 1] <= x);
            const int64_t below = first - edges + (*first <= x);
            return x == high ? bins - 1 : clamped(below - 1);
        }
        const C guess = places == EVEN ? (x - low) * scale : (x - low) * C(bins) / (high - low);
        int64_t at =
            guess >= 0 ? (guess < C(bins) ? min64(int64_t(guess), bins - 1) : bins - 1) : 0;
        if (places == EVEN) {                    /* the edges decide: the guess may be off by one */
            while (at > 0 && x < edges[at]) --at;
            while (at < bins - 1 && x >= edges[at + 1]) ++at;
        }
        return at;
    }
    int64_t clamped(int64_t at) const { return at < 0 ? 0 : at < bins ? at : bins - 1; }
};

/* Adds up the sums of all parts; tally(sums, part) computes those of one part. Compiled
 * once for each type of sums. */
template <class S>
PT_NOINLINE int add_parts(pt_call *call, int64_t parts, const void *of,
                          void (*tally)(const void *of, S *sums, int64_t part)) {
    const int64_t total = call->out[0].numel;
    scratch<S> sums(parts * total);
    if (!sums) return no_memory(call, parts * total * int64_t(sizeof(S)));
    memset(sums.data, 0, size_t(parts * total) * sizeof(S));
    parallel_for(parts, 1, [&](int64_t begin, int64_t end) {
        for (int64_t part = begin; part < end; ++part) tally(of, sums.data + part * total, part);
    });
    return visit<bit(PT_INT64) | FLOATS>(call, call->out[0].dtype, [&](auto tag) {
        using O = PT_TYPE(tag);
        for (int64_t i = 0; i < total; ++i) {
            S sum = 0;
            for (int64_t part = 0; part < parts; ++part) sum += sums[part * total + i];
            output<O>(call)[i] = convert<O>(sum);
        }
        return PT_OK;
    });
}
template <class S, class Tally>
int in_parts(pt_call *call, int64_t parts, const Tally &tally) {
    return add_parts<S>(call, parts, &tally, [](const void *of, S *sums, int64_t part) {
        (*static_cast<const Tally *>(of))(sums, part);
    });
}
/* Depends on the number of rows alone, so that the order of a sum does not depend on threads. */
int64_t parts_of(int64_t n, int64_t total) {
    return total <= 65536 ? max64(1, min64(16, n / 32768)) : 1;
}

/* Reads elements as the type in which they are computed. */
template <class T>
void read_row(const pt_view &v, int64_t at, int64_t stride, int64_t n, compute<T> *to) {
    load(to, reinterpret_cast<const T *>(v.data) + at, stride, n);
}

template <class C>
int binned(pt_call *call,
           void (*read)(const pt_view &v, int64_t at, int64_t stride, int64_t n, C *to)) {
    const pt_view &x = call->in[0], &e = call->in[1], &w = call->in[2];
    const pt_param &bins = call->params[0];
    const int places = int(call->params[1].i);
    const int64_t n = x.sizes[0], k = x.sizes[1], total = call->out[0].numel;
    const int64_t parts = parts_of(n, total);
    scratch<C> edges(e.numel);
    scratch<ruler<C>> rulers(k);
    if (!edges || !rulers) return no_memory(call, e.numel * 8);
    for (int64_t i = 0; i < e.numel; ++i) edges[i] = C(get_real(e, i * e.strides[0]));
    int64_t at = 0;
    for (int64_t d = 0; d < k; ++d) {
        const int64_t m = places == COMPUTED ? 2 : bins.list[d] + 1;
        if (bins.list[d] < 1 || at + m > e.numel)
            return fail(call, PT_RUNTIME_ERROR, "expected the edges of each coordinate's bins");
        const C *first = edges.data + at, low = first[0], high = first[m - 1];
        rulers[d] = {first, bins.list[d], low, high, C(bins.list[d]) / (high - low), places};
        at += m;
    }
    return in_parts<double>(call, parts, [&](double *sum, int64_t part) {
        const int64_t last = n * (part + 1) / parts;
        for (int64_t row = n * part / parts; row < last; row += TILE) {
            const int64_t m = min64(TILE, last - row);
            int64_t box[TILE];
            C tile[TILE];
            for (int64_t i = 0; i < m; ++i) box[i] = 0;
            for (int64_t d = 0; d < k; ++d) {
                read(x, row * x.strides[0] + d * x.strides[1], m == 1 ? 1 : x.strides[0], m, tile);
                const ruler<C> &ruled = rulers[d];
                for (int64_t i = 0; i < m; ++i)
                    box[i] = box[i] >= 0 && tile[i] >= ruled.low && tile[i] <= ruled.high
                                 ? box[i] * ruled.bins + ruled(tile[i])
                                 : -1;
            }
            if (present(w)) read(w, row * w.strides[0], m == 1 ? 1 : w.strides[0], m, tile);
            for (int64_t i = 0; i < m; ++i)
                if (box[i] >= 0) sum[box[i]] += present(w) ? double(tile[i]) : 1.0;
        }
    });
}

/* Reads the counted numbers, or the weights, as one type, so that loops are compiled once. */
template <class To, class From>
void read_tile(const pt_view &v, int64_t first, int64_t n, To *to) {
    const From *from = reinterpret_cast<const From *>(v.data) + first * v.strides[0];
    for (int64_t i = 0; i < n; ++i) to[i] = To(from[i * v.strides[0]]);
}
template <class To>
using reader = void (*)(const pt_view &, int64_t, int64_t, To *);

/* Calls add(number, weight) for numbers in bounds; one beyond int64 counts as negative. */
template <class Add>
void each_counted(const pt_call *call, reader<int64_t> numbers, reader<double> weights,
                  int64_t begin, int64_t end, const Add &add) {
    const int64_t total = call->out[0].numel;
    int64_t at[TILE];
    double weight[TILE] = {};
    for (int64_t first = begin; first < end; first += TILE) {
        const int64_t m = min64(TILE, end - first);
        numbers(call->in[0], first, m, at);
        if (weights) weights(call->in[1], first, m, weight);
        for (int64_t i = 0; i < m; ++i)
            if (at[i] >= 0 && at[i] < total) add(at[i], weight[i]);
    }
}

int counted_kernel(pt_call *call) {
    const pt_view &x = call->in[0], &w = call->in[1];
    if (x.ndim != 1 || (present(w) && (w.ndim != 1 || w.sizes[0] != x.sizes[0])))
        return fail(
            call, PT_RUNTIME_ERROR,
            "expected a vector of integers, and weights of its shape in float32 or float64");
    reader<int64_t> numbers = nullptr;
    reader<double> weights = nullptr;
    int status = visit<INTEGERS>(call, x.dtype, [&](auto tag) {
        numbers = read_tile<int64_t, PT_TYPE(tag)>;
        return PT_OK;
    });
    if (!status && present(w))
        status = visit<bit(PT_FLOAT32) | bit(PT_FLOAT64)>(call, w.dtype, [&](auto tag) {
            weights = read_tile<double, PT_TYPE(tag)>;
            return PT_OK;
        });
    if (status) return status;
    const int64_t n = x.numel, parts = parts_of(n, call->out[0].numel);
    const auto begin = [&](int64_t part) { return n * part / parts; };
    if (!weights)
        return in_parts<int64_t>(call, parts, [&](int64_t *sums, int64_t part) {
            each_counted(call, numbers, weights, begin(part), begin(part + 1),
                         [&](int64_t at, double) { ++sums[at]; });
        });
    return in_parts<double>(call, parts, [&](double *sums, int64_t part) {
        each_counted(call, numbers, weights, begin(part), begin(part + 1),
                     [&](int64_t at, double weight) { sums[at] += weight; });
    });
}

int binned_kernel(pt_call *call) {
    const pt_view &x = call->in[0], &e = call->in[1], &w = call->in[2];
    const bool weighed = present(w) || w.dtype == x.dtype;
    if (x.ndim != 2 || e.ndim != 1 || !pt_is(e.dtype, FLOATS) || call->params[0].count != x.sizes[1]
        || (weighed && (w.dtype != x.dtype || w.ndim != 1 || w.sizes[0] != x.sizes[0])))
        return fail(call, PT_RUNTIME_ERROR,
                    "expected rows of coordinates, weights of their dtype, edges, and bins for "
                    "each coordinate");
    return visit<FLOATS>(call, x.dtype, [&](auto tag) {
        using T = PT_TYPE(tag);
        return binned<compute<T>>(call, read_row<T>);
    });
}

} // namespace

extern "C" const pt_kernel_entry PT_CAT(pt_kernels_histogram_, PT_ISA)[] = {
    {"binned", binned_kernel},
    {"counted", counted_kernel},
    {nullptr, nullptr},
};
