/* Counts, or sums of weights, of rows of coordinates in boxes.
 *
 *    binned(input, edges, weight; bins, places) -> counts
 *
 * input is (n, k); edges holds those of each coordinate one after the other, bins[d] + 1 of them, or the lowest and the
 * highest alone where places is "computed". Bins have their lower edge, the last one both. Sums are in double: no count
 * stops at what a float holds. The rows are cut into parts by their number alone. Compiled for the base level alone.
 */
#include "common.hpp"

namespace {

enum : int { SEARCHED = 0, EVEN, COMPUTED };

template <class C>
struct ruler {
    const C *edges;
    int64_t bins;
    C low, high, scale;
    int places;

    /* the bin of x, which lies between the edges */
    int64_t operator()(C x) const {
        if (places == SEARCHED) {
            const C *first = edges;                 /* by halves, without branches */
            int64_t n = bins + 1;
            for (; n > 1; n -= n / 2) first += n / 2 & -int64_t(first[n / 2 - 1] <= x);
            const int64_t below = first - edges + (*first <= x);
            return x == high ? bins - 1 : clamped(below - 1);
        }
        const C guess = places == EVEN ? (x - low) * scale : (x - low) * C(bins) / (high - low);
        int64_t at = guess >= 0 ? (guess < C(bins) ? min64(int64_t(guess), bins - 1) : bins - 1) : 0;
        if (places == EVEN) {                       /* the edges decide, the guess may be one off */
            while (at > 0 && x < edges[at]) --at;
            while (at < bins - 1 && x >= edges[at + 1]) ++at;
        }
        return at;
    }
    int64_t clamped(int64_t at) const { return at < 0 ? 0 : at < bins ? at : bins - 1; }
};

template <class T>
int binned(pt_call *call) {
    using C = compute<T>;
    constexpr int64_t TILE = 256;
    const pt_view &x = call->in[0], &e = call->in[1], &w = call->in[2];
    const pt_param &bins = call->params[0];
    const int places = int(call->params[1].i);
    const int64_t n = x.sizes[0], k = x.sizes[1], total = call->out[0].numel;
    const int64_t parts = total <= 65536 ? max64(1, min64(16, n / 32768)) : 1;
    scratch<double> sums(parts * total);
    scratch<C> edges(e.numel);
    scratch<ruler<C>> rulers(k);
    if (!sums || !edges || !rulers) return no_memory(call, parts * total * 8);
    for (int64_t i = 0; i < e.numel; ++i) edges[i] = C(get_real(e, i * e.strides[0]));
    int64_t at = 0;
    for (int64_t d = 0; d < k; ++d) {
        const int64_t m = places == COMPUTED ? 2 : bins.list[d] + 1;
        if (bins.list[d] < 1 || at + m > e.numel) return fail(call, PT_RUNTIME_ERROR, "expected the edges of each coordinate's bins");
        const C *first = edges.data + at, low = first[0], high = first[m - 1];
        rulers[d] = {first, bins.list[d], low, high, C(bins.list[d]) / (high - low), places};
        at += m;
    }
    memset(sums.data, 0, size_t(parts * total) * sizeof(double));
    parallel_for(parts, 1, [&](int64_t begin, int64_t end) {
        for (int64_t part = begin; part < end; ++part) {
            double *sum = sums.data + part * total;
            const int64_t last = n * (part + 1) / parts;
            for (int64_t row = n * part / parts; row < last; row += TILE) {
                const int64_t m = min64(TILE, last - row);
                int64_t box[TILE];
                C tile[TILE];
                for (int64_t i = 0; i < m; ++i) box[i] = 0;
                for (int64_t d = 0; d < k; ++d) {
                    load(tile, input<T>(call) + row * x.strides[0] + d * x.strides[1], m == 1 ? 1 : x.strides[0], m);
                    const ruler<C> &ruled = rulers[d];
                    for (int64_t i = 0; i < m; ++i)
                        box[i] = box[i] >= 0 && tile[i] >= ruled.low && tile[i] <= ruled.high ? box[i] * ruled.bins + ruled(tile[i]) : -1;
                }
                if (present(w)) load(tile, input<T>(call, 2) + row * w.strides[0], m == 1 ? 1 : w.strides[0], m);
                for (int64_t i = 0; i < m; ++i)
                    if (box[i] >= 0) sum[box[i]] += present(w) ? double(tile[i]) : 1.0;
            }
        }
    });
    for (int64_t i = 0; i < total; ++i) {
        double sum = 0;
        for (int64_t part = 0; part < parts; ++part) sum += sums[part * total + i];
        output<T>(call)[i] = convert<T>(sum);
    }
    return PT_OK;
}

int binned_kernel(pt_call *call) {
    const pt_view &x = call->in[0], &e = call->in[1], &w = call->in[2];
    const bool weighed = present(w) || w.dtype == x.dtype;
    if (x.ndim != 2 || e.ndim != 1 || !in_set(FLOATS, e.dtype) || call->params[0].count != x.sizes[1]
        || (weighed && (w.dtype != x.dtype || w.ndim != 1 || w.sizes[0] != x.sizes[0])))
        return fail(call, PT_RUNTIME_ERROR, "expected rows of coordinates, weights of their dtype, edges, and bins for each coordinate");
    return visit<FLOATS>(call, x.dtype, [&](auto tag) { return binned<PT_TYPE(tag)>(call); });
}

} // namespace

extern "C" const pt_kernel_entry PT_CAT(pt_kernels_histogram_, PT_ISA)[] = {
    {"binned", binned_kernel},
    {nullptr, nullptr},
};
