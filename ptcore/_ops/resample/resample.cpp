/* Sliding windows as columns, and resampling along a dim.
 *
 *    unfold_windows(input; kernel, dilation, padding, stride, blocks) -> out
 *    fold_windows(input; the same, size) -> out         the transpose: overlaps are added up
 *    resample(input; dim, size, mode, align_corners, scale) -> out
 *    resample_transposed(input; the same) -> out
 *    filtered(input; dim, size, mode, align_corners, scale) -> out
 *    filtered_transposed(input; the same) -> out
 *
 * Resampling makes each result from one (nearest), two (linear) or four (cubic) numbers along the
 * dim, or from all numbers in a filter's window, which is wider for smaller results. Positions are
 * computed in the type of the computation, as in PyTorch, since rounding decides which numbers are
 * taken.
 */
#include "channels_last.hpp"
#include "copy_run.hpp"
#include "spatial.hpp"

#include <atomic>

namespace {

/* ---- sliding windows --------------------------------------------------------------------- */

/* large (N, C, H, W), small (N, C * kernel, blocks): both contiguous */
template <bool FOLD>
int sliding_kernel(pt_call *call) {
    const pt_view &large = FOLD ? call->out[0] : call->in[0],
                  &small = FOLD ? call->in[0] : call->out[0];
    if (large.ndim != 4 || small.ndim != 3)
        return fail(call, PT_RUNTIME_ERROR, "expected 4 and 3 dimensions, got %d and %d",
                    large.ndim, small.ndim);
    int64_t set[5][2];
    for (int p = 0; p < 5; ++p)
        for (int d = 0; d < 2; ++d)
            set[p][d] = call->params[p].count == 2 ? call->params[p].list[d] : -1;
    const int64_t *kernel = set[0], *dilation = set[1], *padding = set[2], *stride = set[3],
                  *blocks = set[4];
    const int64_t n = large.sizes[0], channels = large.sizes[1], *size = large.sizes + 2;
    for (int p = 0; p < 5; ++p)
        if (set[p][0] < 0 || set[p][1] < 0)
            return fail(call, PT_RUNTIME_ERROR,
                        "window settings must hold 2 numbers that are not negative");
    if (small.sizes[1] != channels * kernel[0] * kernel[1] ||
        small.sizes[2] != blocks[0] * blocks[1] || small.sizes[0] != n)
        return fail(call, PT_RUNTIME_ERROR, "sizes do not fit together");
    return visit<BOOL | FLOATS | COMPLEXES>(call, large.dtype, [&](auto tag) {
        using S = std::conditional_t<is_same<PT_TYPE(tag), uint8_t>, boolean, PT_TYPE(tag)>;
        using E = compute<S>;
        const int64_t plane = size[0] * size[1], taps = kernel[0] * kernel[1],
                      block = blocks[0] * blocks[1];
        if (large.numel == 0 && !FOLD) {
            for (int64_t i = 0; i < small.numel; ++i) output<S>(call)[i] = S{};
            return int(PT_OK);
        }
        scratch<E> sums(FOLD && !is_same<E, S> ? large.numel : 0);
        if (!sums) return no_memory(call, large.numel * int64_t(sizeof(E)));
        parallel_for(
            n * channels, grain_rows(taps * block + plane), [&](int64_t begin, int64_t end) {
                for (int64_t c = begin; c < end; ++c) {
                    E *sum = nullptr;
                    if constexpr (FOLD) {
                        if constexpr (is_same<E, S>)
                            sum = output<S>(call) + c * plane;
                        else
                            sum = sums.data + c * plane;
                        for (int64_t i = 0; i < plane; ++i) sum[i] = E{};
                    }
                    for (int64_t t = 0; t < taps; ++t)
                        for (int64_t i = 0; i < blocks[0]; ++i) {
                            const int64_t row = i * stride[0] - padding[0] +
                                                t / kernel[1] * dilation[0],
                                          at = t % kernel[1] * dilation[1] - padding[1];
                            const int64_t columns = ((c * taps + t) * blocks[0] + i) * blocks[1];
                            const bool inside = row >= 0 && row < size[0];
                            for (int64_t j = 0; j < blocks[1]; ++j) {
                                const int64_t column = at + j * stride[1];
                                const bool there = inside && column >= 0 && column < size[1];
                                if constexpr (FOLD) {
                                    if (there)
                                        sum[row * size[1] + column] =
                                            sum[row * size[1] + column] +
                                            convert<E>(input<S>(call)[columns + j]);
                                } else
                                    output<S>(call)[columns + j] =
                                        there ? input<S>(call)[c * plane + row * size[1] + column]
                                              : S{};
                            }
                        }
                    if constexpr (FOLD && !is_same<E, S>)
                        store(output<S>(call) + c * plane, sum, plane);
                }
            });
        return int(PT_OK);
    });
}

/* ---- resample ---------------------------------------------------------------------------- */

enum { NEAREST, NEAREST_EXACT, LINEAR, CUBIC, LINEAR_FILTER, CUBIC_FILTER };

/* The terms [begin[o], begin[o + 1]) of each of the `out` numbers on the larger side. */
template <class E>
struct samples {
    int64_t taps;                       /* at most so many */
    scratch<int64_t> begin, index;
    scratch<E> weight;

    __attribute__((noinline)) samples(int64_t in, int64_t out, int mode, bool align, double factor)
        : taps(most_taps(in, out, mode, align, factor)), begin(out + 1), index(out * taps),
          weight(out * taps) {
        if (!begin || !index || !weight || in == 0) return;
        if (mode >= LINEAR_FILTER) {
            filter(in, out, mode, align, factor);
            return;
        }
        for (int64_t o = 0; o <= out; ++o) begin[o] = o * taps;
        const bool corners = align && mode >= LINEAR;
        const E scale = corners      ? (out > 1 ? E(in - 1) / E(out - 1) : E(0))
                        : factor > 0 ? E(1.0 / factor)
                                     : E(in) / E(out);
        for (int64_t o = 0; o < out; ++o) {
            int64_t *i = index.data + o * taps;
            E *w = weight.data + o * taps;
            if (mode == NEAREST || mode == NEAREST_EXACT) {
                const E at = mode == NEAREST ? E(o) * scale : (E(o) + E(0.5)) * scale;
                /* PyTorch rounds positions of float64, too, to float before it takes their floor */
                i[0] = min64(in - 1, max64(0, int64_t(at < E(1 << 23) ? E(float(at)) : at)));
                w[0] = E(1);
                continue;
            }
            E at = corners ? scale * E(o) : scale * (E(o) + E(0.5)) - E(0.5);
            if (mode == LINEAR) {
                at = at < E(0) ? E(0) : at;
                i[0] = min64(in - 1, int64_t(at));
                i[1] = min64(in - 1, i[0] + 1);
                const E t = at - E(i[0]);
                w[1] = t < E(0) ? E(0) : t > E(1) ? E(1) : t;
                w[0] = E(1) - w[1];
                continue;
            }
            const E below = E(floor(double(at))), t = at - below, A = E(-0.75);
            auto near = [&](E x) { return ((A + 2) * x - (A + 3)) * x * x + 1; };
            auto far = [&](E x) { return ((A * x - 5 * A) * x + 8 * A) * x - 4 * A; };
            w[0] = far(t + 1);
            w[1] = near(t);
            w[2] = near(1 - t);
            w[3] = far(2 - t);
            for (int k = 0; k < 4; ++k) i[k] = min64(in - 1, max64(0, int64_t(below) + k - 1));
        }
    }

    /* the step between the centres of windows, in elements of the input */
    static double step_of(int64_t in, int64_t out, bool align, double factor) {
        if (align) return out > 1 ? double(in - 1) / double(out - 1) : 0;
        return factor > 0 ? 1 / factor : double(in) / double(out);
    }
    static int64_t most_taps(int64_t in, int64_t out, int mode, bool align, double factor) {
        if (mode < LINEAR_FILTER) return mode == CUBIC ? 4 : mode == LINEAR ? 2 : 1;
        const double stretch = fmax(1, step_of(in, out, align, factor));
        return int64_t(fmin(double(in), 2 * ceil((mode == LINEAR_FILTER ? 1 : 2) * stretch) + 1));
    }
    /* A filter's windows are as wide as the output's step; the cubic one is Keys' with a = -0.5. */
    static double triangle(double x) { return x < 1 ? 1 - x : 0; }
    static double bump(double x) {
        return x < 1   ? (1.5 * x - 2.5) * x * x + 1
               : x < 2 ? ((-0.5 * x + 2.5) * x - 4) * x + 2
                       : 0;
    }
    void filter(int64_t in, int64_t out, int mode, bool align, double factor) {
        const double step = step_of(in, out, align, factor), stretch = fmax(1, step),
                     half = (mode == LINEAR_FILTER ? 1 : 2) * stretch;
        int64_t at = 0;
        for (int64_t o = 0; o < out; ++o) {
            const double centre = step * (double(o) + 0.5);
            const int64_t first = max64(0, int64_t(centre - half + 0.5)),
                          last = min64(min64(in, first + taps), int64_t(centre + half + 0.5));
            const auto weigh = [&](int64_t i) {
                const double x = fabs((double(i) - centre + 0.5) / stretch);
                return mode == LINEAR_FILTER ? triangle(x) : bump(x);
            };
            double total = 0;
            for (int64_t i = first; i < last; ++i) total += weigh(i);
            begin[o] = at;
            for (int64_t i = first; i < last; ++i, ++at) {
                index[at] = i;
                weight[at] = E(total != 0 ? weigh(i) / total : weigh(i));
            }
        }
        begin[out] = at;
    }
};

/* What the rows of an output are sums of: entries [begin[o], begin[o + 1]). For the transpose each
 * row lists what it sent itself to, in order. */
template <class E>
struct sources {
    scratch<int64_t> begin, index;
    scratch<E> weight;
    bool complete;

    __attribute__((noinline)) sources(const samples<E> &of, int64_t small, int64_t large,
                                      bool transposed)
        : begin((transposed ? small : large) + 1), index(large * of.taps), weight(large * of.taps),
          complete(begin && index && weight) {
        if (!complete) return;
        const int64_t rows = transposed ? small : large, all = of.begin[large];
        if (!transposed) {
            for (int64_t o = 0; o <= rows; ++o) begin[o] = of.begin[o];
            for (int64_t i = 0; i < all; ++i) {
                index[i] = of.index[i];
                weight[i] = of.weight[i];
            }
            return;
        }
        for (int64_t o = 0; o <= rows; ++o) begin[o] = 0;
        for (int64_t i = 0; i < all; ++i) ++begin[of.index[i]];
        for (int64_t o = 0; o < rows; ++o) begin[o + 1] += begin[o];
        /* from behind, so that `begin` ends where rows begin */
        for (int64_t o = large - 1; o >= 0; --o)
            for (int64_t i = of.begin[o + 1] - 1; i >= of.begin[o]; --i) {
                const int64_t at = --begin[of.index[i]];
                index[at] = o;
                weight[at] = of.weight[i];
            }
    }
};

/* to[i] = the sum over N rows of weight * x[i], after sums[i] unless FIRST; sums may be `to` */
template <int N, bool FIRST, class To, class E, class X>
inline void add_rows(To *to, const E *sums, const X *const *x, const E *weight,
                     int64_t n) {
    const X *PT_RESTRICT a = x[0], *PT_RESTRICT b = x[N > 1 ? 1 : 0],
            *PT_RESTRICT c = x[N > 2 ? 2 : 0], *PT_RESTRICT d = x[N > 3 ? 3 : 0];
    const E u = weight[0], v = weight[N > 1 ? 1 : 0], w = weight[N > 2 ? 2 : 0],
            z = weight[N > 3 ? 3 : 0];
    PT_IVDEP
    for (int64_t i = 0; i < n; ++i) {
        E sum = u * convert<E>(a[i]);
        if (!FIRST) sum = sums[i] + sum;
        if (N > 1) sum += v * convert<E>(b[i]);
        if (N > 2) sum += w * convert<E>(c[i]);
        if (N > 3) sum += z * convert<E>(d[i]);
        to[i] = convert<To>(sum);
    }
}
template <bool FIRST, class To, class E, class X>
inline void add_rows(To *to, const E *sums, const X *const *x, const E *weight, int64_t many,
                     int64_t n) {
    switch (many) {
    case 1: return add_rows<1, FIRST>(to, sums, x, weight, n);
    case 2: return add_rows<2, FIRST>(to, sums, x, weight, n);
    case 3: return add_rows<3, FIRST>(to, sums, x, weight, n);
    default: return add_rows<4, FIRST>(to, sums, x, weight, n);
    }
}

constexpr int64_t PIECE = 1024;         /* elements of a row whose sums stay in cache */

/* Room of a thread: sums, and rows of float16 and of bytes as E. */
template <class E>
struct resample_room {
    E sums[PIECE], wide[4][PIECE];
};

/* n elements of an output row: the sum of `many` rows, rounded once; one of weight 1 is copied */
template <class E, class S>
inline void weighted(S *to, const S *from, int64_t inner, const int64_t *index, const E *weight,
                     int64_t many, resample_room<E> &room, int64_t n) {
    if (many == 1 && weight[0] == E(1)) {
        const S *row = from + index[0] * inner;
        const size_t bytes = size_t(n) * sizeof(S);
        if (bytes < 4 || bytes >= 1024) return copy_run(to, row, bytes);
        return copy_row(reinterpret_cast<char *>(to), reinterpret_cast<const char *>(row), bytes);
    }
    if (many == 0)
        for (int64_t i = 0; i < n; ++i) to[i] = S{};
    for (int64_t k = 0; k < many; k += 4) {
        const int64_t together = min64(4, many - k);
        const auto add = [&](const auto *const *x) {
            if (k + 4 < many) {
                if (k) add_rows<4, false>(room.sums, room.sums, x, weight + k, n);
                else add_rows<4, true>(room.sums, room.sums, x, weight, n);
            }
            else if (k) add_rows<false>(to, room.sums, x, weight + k, together, n);
            else add_rows<true>(to, room.sums, x, weight, together, n);
        };
        const S *rows[4];
        for (int64_t t = 0; t < together; ++t) rows[t] = from + index[k + t] * inner;
        if constexpr (is_same<S, half> || is_same<S, uint8_t>) {
            const E *wide[4];
            for (int64_t t = 0; t < together; ++t) {
                load_wide(room.wide[t], rows[t], 1, n);
                wide[t] = room.wide[t];
            }
            add(wide);
        } else add(rows);
    }
}

/* ---- bytes ------------------------------------------------------------------------------- */

/* As in PyTorch: weights are integers of 16 bits with one number of binary places for all, sums are
 * exact, and the result is rounded once. The exact sum of a window is less than 2^31. */
struct byte_weights {
    scratch<int32_t> weight;
    int places = 0;
    /* Terms at the rim that are one element become one term. */
    byte_weights(samples<double> &of, int64_t out) : weight(of.begin[out]) {
        if (!weight) return;
        int64_t count = 0, next = 0;
        for (int64_t o = 0; o < out; ++o) {
            const int64_t first = next;
            next = of.begin[o + 1];
            const int64_t start = of.begin[o] = count;
            for (int64_t k = first; k < next; ++k)
                if (count > start && of.index[count - 1] == of.index[k])
                    of.weight[count - 1] += of.weight[k];
                else {
                    of.index[count] = of.index[k];
                    of.weight[count++] = of.weight[k];
                }
        }
        of.begin[out] = count;
        double largest = 0;
        for (int64_t i = 0; i < count; ++i) largest = fmax(largest, of.weight[i]);
        while (places < 22 && int(0.5 + ldexp(largest, places + 1)) < 1 << 15) ++places;
        for (int64_t i = 0; i < count; ++i) {
            const double w = ldexp(of.weight[i], places);
            weight[i] = int32_t(w + (w < 0 ? -0.5 : 0.5));
        }
    }
    int32_t half() const { return 1 << (places > 0 ? places - 1 : 0); }
    uint8_t rounded(int32_t sum) const {
        sum >>= places;
        return uint8_t(sum < 0 ? 0 : sum > 255 ? 255 : sum);
    }
};

/* Neighbours are next to each other: each window is N numbers from `start` on, some of weight 0.
 * False, with nothing written, if a window is wider. */
template <int N>
bool resample_lines(pt_call *call, const samples<double> &of, const byte_weights &bytes, int64_t in,
                    int64_t out, int64_t outer) {
    scratch<int32_t> weight(out * N);
    scratch<int64_t> start(out);
    if (in < N || !weight || !start) return false;
    for (int64_t o = 0; o < out; ++o) {
        const int64_t first = of.begin[o], last = of.begin[o + 1];
        int32_t sums[N] = {};
        start[o] = first == last ? 0 : min64(of.index[first], in - N);
        for (int64_t k = first; k < last; ++k) {
            const int64_t place = of.index[k] - start[o];
            if (place >= N) return false;
            sums[place] += bytes.weight[k];
        }
        for (int k = 0; k < N; ++k) weight[o * N + k] = sums[k];
    }
    const int32_t half = bytes.half();
    parallel_for(outer, grain_rows(out * N / 2), [&](int64_t begin, int64_t end) {
        for (int64_t u = begin; u < end; ++u) {
            const uint8_t *from = input<uint8_t>(call) + u * in;
            uint8_t *to = output<uint8_t>(call) + u * out;
            for (int64_t o = 0; o < out; ++o) {
                const uint8_t *x = from + start[o];
                int32_t sum = half;
                for (int k = 0; k < N; ++k) sum += weight[o * N + k] * x[k];
                to[o] = bytes.rounded(sum);
            }
        }
    });
    return true;
}

/* `inner` is the number of elements between neighbours along the dim */
int resample_bytes(pt_call *call, samples<double> &of, int64_t in, int64_t out, int64_t outer,
                   int64_t inner) {
    const byte_weights bytes(of, out);
    if (!bytes.weight) return no_memory(call, of.begin[out] * 4);
    if (inner == 1 && (resample_lines<2>(call, of, bytes, in, out, outer) ||
                       resample_lines<4>(call, of, bytes, in, out, outer) ||
                       resample_lines<8>(call, of, bytes, in, out, outer)))
        return PT_OK;
    const int32_t half = bytes.half();
    const int64_t *const begin_of = of.begin.data, *const index = of.index.data;
    const int32_t *const weight = bytes.weight.data;
    parallel_for(outer * out, grain_rows(inner * of.taps), [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) {
            const int64_t o = r % out, first = begin_of[o], last = begin_of[o + 1];
            const uint8_t *from = input<uint8_t>(call) + r / out * in * inner;
            uint8_t *to = output<uint8_t>(call) + r * inner;
            if (inner < 8) {
                for (int64_t i = 0; i < inner; ++i) {
                    int32_t sum = half;
                    for (int64_t k = first; k < last; ++k)
                        sum += weight[k] * from[index[k] * inner + i];
                    to[i] = bytes.rounded(sum);
                }
                continue;
            }
            int32_t sums[256];
            for (int64_t start = 0; start < inner; start += 256) {
                const int64_t n = min64(256, inner - start);
                for (int64_t i = 0; i < n; ++i) sums[i] = half;
                for (int64_t k = first; k < last; ++k) {
                    const uint8_t *row = from + index[k] * inner + start;
                    const int32_t w = weight[k];
                    for (int64_t i = 0; i < n; ++i) sums[i] += w * row[i];
                }
                for (int64_t i = 0; i < n; ++i) to[start + i] = bytes.rounded(sums[i]);
            }
        }
    });
    return PT_OK;
}

template <bool TRANSPOSED>
int resample_as(pt_call *call, int mode, bool of_bytes) {
    const pt_view &x = call->in[0], &y = call->out[0];
    if (x.ndim == 0) return fail(call, PT_RUNTIME_ERROR, "expected at least one dimension");
    const int64_t dim = call->params[0].i;
    const bool align = call->params[3].i != 0;
    const double factor = call->params[4].d;
    const int64_t in = x.sizes[dim], out = y.sizes[dim], small = TRANSPOSED ? out : in,
                  large = TRANSPOSED ? in : out;
    const memory_order order(x.ndim, runs_channels_last(x, y));
    int64_t outer = 1, inner = 1;
    for (int k = 0, behind = 0; k < x.ndim; ++k) {
        if (order[k] == dim) behind = 1;
        else (behind ? inner : outer) *= x.sizes[order[k]];
    }
    if (y.numel == 0) return PT_OK;
    if (small == 0) return fail(call, PT_RUNTIME_ERROR, "a dim of size 0 cannot be resampled");
    if (!TRANSPOSED && of_bytes && x.dtype == PT_UINT8) {
        samples<double> of(in, out, mode, align, factor);
        if (!of.begin || !of.index || !of.weight) return no_memory(call, out * of.taps * 16);
        return resample_bytes(call, of, in, out, outer, inner);
    }
    return visit<bit(PT_UINT8) | FLOATS>(call, x.dtype, [&](auto tag) {
        using S = PT_TYPE(tag);
        using E = std::conditional_t<is_same<S, double>, double, float>;
        const samples<E> of(small, large, mode, align, factor);
        if (!of.begin || !of.index || !of.weight) return no_memory(call, large * of.taps * 16);
        const sources<E> rows(of, small, large, TRANSPOSED);
        if (!rows.complete) return no_memory(call, large * of.taps * 16);
        const auto entries = [&](int64_t o) { return rows.begin[o + 1] - rows.begin[o]; };
        if (inner == 1) {
            parallel_for(outer, grain_rows(in + out), [&](int64_t begin, int64_t end) {
                for (int64_t u = begin; u < end; ++u) {
                    const S *from = input<S>(call) + u * in;
                    S *to = output<S>(call) + u * out;
                    for (int64_t o = 0; o < out; ++o) {
                        const int64_t *at = rows.index.data + rows.begin[o];
                        const E *weight = rows.weight.data + rows.begin[o];
                        E sum = entries(o) ? weight[0] * convert<E>(from[at[0]]) : E(0);
                        for (int64_t k = 1; k < entries(o); ++k)
                            sum += weight[k] * convert<E>(from[at[k]]);
                        to[o] = convert<S>(sum);
                    }
                }
            });
            return int(PT_OK);
        }
        std::atomic<bool> enough(true);
        parallel_for(
            outer * out, grain_rows(inner * (1 + in / out)), [&](int64_t begin, int64_t end) {
                scratch<resample_room<E>> room(1);
                if (!room) {
                    enough = false;
                    return;
                }
                int64_t o = begin % out;
                const S *from = input<S>(call) + begin / out * in * inner;
                S *to = output<S>(call) + begin * inner;
                for (int64_t r = begin; r < end; ++r, ++o, to += inner) {
                    if (o == out) {
                        o = 0;
                        from += in * inner;
                    }
                    const int64_t first = rows.begin[o];
                    for (int64_t start = 0; start < inner; start += PIECE)
                        weighted(to + start, from + start, inner, rows.index.data + first,
                                 rows.weight.data + first, entries(o), room[0],
                                 min64(PIECE, inner - start));
                }
            });
        return enough ? int(PT_OK) : no_memory(call, int64_t(sizeof(resample_room<E>)));
    });
}

template <bool TRANSPOSED>
int resample_kernel(pt_call *call) {
    return resample_as<TRANSPOSED>(call, int(call->params[2].i), false);
}
template <bool TRANSPOSED>
int filter_kernel(pt_call *call) {
    const int modes[] = {LINEAR_FILTER, CUBIC_FILTER, LINEAR, CUBIC};
    return resample_as<TRANSPOSED>(call, modes[call->params[2].i & 3], true);
}

} // namespace

extern "C" const pt_kernel_entry PT_CAT(pt_kernels_resample_, PT_ISA)[] = {
    {"unfold_windows", sliding_kernel<false>},
    {"fold_windows", sliding_kernel<true>},
    {"resample", resample_kernel<false>},
    {"resample_transposed", resample_kernel<true>},
    {"filtered", filter_kernel<false>},
    {"filtered_transposed", filter_kernel<true>},
    {nullptr, nullptr},
};
