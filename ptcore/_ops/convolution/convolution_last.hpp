/* Convolution in the channels-last format: the results of a row of positions are a matrix product.
 *
 *    out[position][filter] += source[position * step + offset][channel] *
 *                             weight[tap][channel][filter]
 *
 * for runs of taps that are neighbours in a row, whose channels are one run of memory. A unit of
 * work is some rows of results; its part of the source is laid out with its zeros around it, unless
 * it needs none. Each panel of filters goes through all rows of a unit, so that it stays in cache.
 * If each group is one channel with one filter (depthwise), vectors hold channels. */
#ifndef PTCORE_KERNELS_CONVOLUTION_LAST_HPP
#define PTCORE_KERNELS_CONVOLUTION_LAST_HPP
#include "channels_last.hpp"
#include "convolution.hpp"

namespace {

/* Neighbouring taps in a row of the source: places from the unit's first row, and the number of
 * the first in the panels. */
struct tap_run {
    int64_t depth, height, width, many, first;
};

/* The taps of a phase in the order of their places; i, j, k are their indices in the lists of the
 * axes. */
struct ordered_taps {
    const geometry &g;
    const phase &p;
    int64_t many[3];
    ordered_taps(const geometry &geo, const phase &ph) : g(geo), p(ph) {
        for (int d = 0; d < 3; ++d)
            many[d] = g.dim[d].begin[p.at[d] + 1] - g.dim[d].begin[p.at[d]];
    }
    int64_t at(int d, int64_t t) const {
        const int64_t begin = g.dim[d].begin[p.at[d]], end = begin + many[d];
        const bool rising = many[d] < 2 || g.dim[d].offset[begin] < g.dim[d].offset[begin + 1];
        return rising ? begin + t : end - 1 - t;
    }
    /* calls f(number, i, j, k) */
    template <class F>
    void each(F &&f) const {
        int64_t number = 0;
        for (int64_t i = 0; i < many[0]; ++i)
            for (int64_t j = 0; j < many[1]; ++j)
                for (int64_t k = 0; k < many[2]; ++k) f(number++, at(0, i), at(1, j), at(2, k));
    }
    /* writes the runs, of one tap each if `apart`; returns their number */
    int64_t runs(tap_run *to, bool apart) const {
        int64_t n = 0;
        each([&](int64_t number, int64_t i, int64_t j, int64_t k) {
            const tap_run run{g.dim[0].offset[i], g.dim[1].offset[j], g.dim[2].offset[k], 1,
                              number};
            if (n && !apart) {
                tap_run &last = to[n - 1];
                if (last.depth == run.depth && last.height == run.height &&
                    last.width + last.many == run.width) {
                    ++last.many;
                    return;
                }
            }
            to[n++] = run;
        });
        return n;
    }
};

template <class T>
struct convolution_last {
    static constexpr int W = simd<T>::width;
    static constexpr int64_t WIDTH = OUTER_VECTORS * W, POSITIONS = 256, NUMBERS = 96 * 1024;

    const geometry &g;
    batch_view source, weight;
    const pt_view &bias;
    T *out;
    bool transposed;
    bool direct = true;         /* the source is read where it lies */
    bool flat = false;          /* one tap: all positions are one row */
    int64_t all_channels, all_filters, panels;
    int64_t need[3], rows[3];   /* the source's places that results need, with zeros; results */
    int64_t together = 1, height, width;        /* of a unit: images, rows, positions of a row */

    convolution_last(const pt_call *call, const geometry &geo, bool t)
        : g(geo), source(call->in[0]), weight(call->in[1]), bias(call->in[2]),
          out(output<T>(call)), transposed(t), all_channels(g.groups * g.channels),
          all_filters(g.groups * g.filters), panels(ceil_div(g.filters, WIDTH)) {
        bool plain = true;
        for (int d = 0; d < 3; ++d) {
            const axis &a = g.dim[d];
            rows[d] = a.count(0);
            need[d] = (rows[d] - 1) * a.step + a.reach + 1;
            direct = direct && a.lead == 0 && need[d] <= a.source;
            plain = plain && a.step == 1 && a.source == a.result && a.phases == 1;
        }
        direct = direct && channels_last(call->in[0]);
        flat = direct && plain && g.taps() == 1;
        cut();
    }
    void cut() {
        const axis &b = g.dim[1];
        width = flat ? POSITIONS : rows[2];
        height = flat ? 1 : rows[1];
        if (flat) return;
        const auto numbers = [&](int64_t h) {
            return direct ? 0
                          : (g.dim[0].reach + 1) * ((h - 1) * b.step + b.reach + 1) * need[2] *
                                all_channels;
        };
        while (height > 1 && (height * width > 4 * POSITIONS || numbers(height) > NUMBERS))
            height = ceil_div(height, 2);
        if (height == rows[1] && rows[0] == 1)
            while (together * 8 <= g.n && together * height * width < POSITIONS &&
                   2 * together * numbers(height) <= NUMBERS)
                together *= 2;
    }
    int64_t positions() const { return g.n * g.results(); }
    int64_t units() const {
        return flat ? ceil_div(positions(), width)
                    : ceil_div(g.n, together) * rows[0] * ceil_div(rows[1], height);
    }

    /* Panels [group][panel][tap][channel][filter] of a phase; filters that do not exist are 0. */
    void pack(T *to, const phase &p) const {
        const int64_t by_filter = weight.stride[transposed],
                      by_channel = weight.stride[!transposed],
                      by_group = weight.stride[0] * (transposed ? g.channels : g.filters);
        const ordered_taps taps(g, p);
        parallel_for(g.groups * panels, grain_rows(p.taps * g.channels * WIDTH),
                     [&](int64_t begin, int64_t end) {
            for (int64_t u = begin; u < end; ++u) {
                const int64_t first = u % panels * WIDTH, many = min64(WIDTH, g.filters - first);
                const T *from = reinterpret_cast<const T *>(weight.data) + u / panels * by_group +
                                first * by_filter;
                T *panel = to + u * p.taps * g.channels * WIDTH;
                if (many < WIDTH)
                    memset(static_cast<void *>(panel), 0,
                           size_t(p.taps * g.channels * WIDTH) * sizeof(T));
                taps.each([&](int64_t t, int64_t i, int64_t j, int64_t k) {
                    const T *at = from + g.dim[0].index[i] * weight.stride[2] +
                                  g.dim[1].index[j] * weight.stride[3] +
                                  g.dim[2].index[k] * weight.stride[4];
                    T *tap = panel + t * g.channels * WIDTH;
                    if (by_filter == 1)
                        for (int64_t c = 0; c < g.channels; ++c)
                            for (int64_t f = 0; f < many; ++f)
                                tap[c * WIDTH + f] = at[c * by_channel + f];
                    else
                        for (int64_t f = 0; f < many; ++f)
                            for (int64_t c = 0; c < g.channels; ++c)
                                tap[c * WIDTH + f] = at[c * by_channel + f * by_filter];
                });
            }
        });
    }

    /* The source's rows for results (i, [j0, j1)) of image n, with the zeros around them. */
    void lay(T *to, int64_t n, int64_t i, int64_t j0, int64_t j1) const {
        const axis &a = g.dim[0], &b = g.dim[1], &c = g.dim[2];
        const int64_t high = (j1 - j0 - 1) * b.step + b.reach + 1, row = need[2] * all_channels;
        const int64_t many = max64(0, min64(c.source, need[2] - c.lead));
        for (int64_t u = 0; u <= a.reach; ++u)
            for (int64_t v = 0; v < high; ++v, to += row) {
                const int64_t su = i * a.step + u - a.lead, sv = j0 * b.step + v - b.lead;
                if (su < 0 || su >= a.source || sv < 0 || sv >= b.source || many == 0) {
                    memset(static_cast<void *>(to), 0, size_t(row) * sizeof(T));
                    continue;
                }
                const T *from = reinterpret_cast<const T *>(source.data) + n * source.stride[0] +
                                su * source.stride[2] + sv * source.stride[3];
                T *at = to + c.lead * all_channels;
                memset(static_cast<void *>(to), 0, size_t(c.lead * all_channels) * sizeof(T));
                memset(static_cast<void *>(at + many * all_channels), 0,
                       size_t(row - (c.lead + many) * all_channels) * sizeof(T));
                if (source.stride[1] == 1 && source.stride[4] == all_channels)
                    memcpy(static_cast<void *>(at), from, size_t(many * all_channels) * sizeof(T));
                else if (source.stride[1] == 1)
                    for (int64_t q = 0; q < many; ++q)
                        memcpy(static_cast<void *>(at + q * all_channels),
                               from + q * source.stride[4], size_t(all_channels) * sizeof(T));
                else
                    for (int64_t k = 0; k < all_channels; ++k)
                        for (int64_t q = 0; q < many; ++q)
                            at[q * all_channels + k] =
                                from[k * source.stride[1] + q * source.stride[4]];
            }
    }

    /* `many` results of one row, which begin at `to`, `next` apart: their products with a panel of
     * `width` filters. The first run of taps begins with the biases. */
    void row_of(const T *from, int64_t step, int64_t k, const T *panel, T *to, int64_t next,
                int64_t many, int64_t filters, const T *start) const {
        const int vectors = int(ceil_div(filters, W));
        const bool whole = filters == vectors * W;
        alignas(64) T edge[OUTER_ROWS * WIDTH];
        for (int64_t q = 0; q < many; q += OUTER_ROWS) {
            const int n = int(min64(OUTER_ROWS, many - q));
            T *at = to + q * next;
            if (start)
                for (int r = 0; r < n; ++r)
                    for (int64_t f = 0; f < filters; ++f) at[r * next + f] = start[f];
            if (k == 0) continue;
            shared_outer<T>(n, vectors)(k, from + q * step, step, 1, panel, WIDTH,
                                        whole ? at : edge, whole ? next : WIDTH, T(1), whole);
            for (int r = 0; r < n && !whole; ++r)
                for (int64_t f = 0; f < filters; ++f) at[r * next + f] += edge[r * WIDTH + f];
        }
    }

    /* The results of a phase in one unit: images [n0, n1), depth i, rows [j0, j1). `at` holds their
     * source, image by image `image` numbers apart, rows `line` apart. */
    void multiply(const phase &p, const tap_run *taps, int64_t runs, const T *bank,
                  const T *biases, const T *at, int64_t image, int64_t slice, int64_t line,
                  int64_t n0, int64_t n1, int64_t i, int64_t j0, int64_t j1) const {
        const axis &a = g.dim[0], &b = g.dim[1], &c = g.dim[2];
        const int64_t size = p.taps * g.channels * WIDTH, many = c.count(p.at[2]);
        if (i >= a.count(p.at[0])) return;
        for (int64_t u = 0; u < g.groups * panels; ++u) {
            const int64_t group = u / panels, f = u % panels * WIDTH,
                          filters = min64(WIDTH, g.filters - f);
            for (int64_t t = 0; t < max64(1, runs); ++t) {
                const tap_run run = runs ? taps[t] : tap_run{0, 0, 0, 0, 0};
                const T *panel = bank + u * size + run.first * g.channels * WIDTH;
                for (int64_t n = n0; n < n1; ++n)
                    for (int64_t j = j0; j < min64(j1, b.count(p.at[1])); ++j) {
                        const T *from = at + (n - n0) * image + run.depth * slice +
                                        ((j - j0) * b.step + run.height) * line +
                                        run.width * all_channels + group * g.channels;
                        T *to = out + (((n * a.result + p.at[0] + a.phases * i) * b.result +
                                        p.at[1] + b.phases * j) *
                                           c.result +
                                       p.at[2]) *
                                          all_filters +
                                group * g.filters + f;
                        row_of(from, c.step * all_channels, run.many * g.channels, panel, to,
                               c.phases * all_filters, many, filters,
                               t ? nullptr : biases + group * g.filters + f);
                    }
            }
        }
    }

    int run(pt_call *call) const {
        const int64_t phases = g.dim[0].phases * g.dim[1].phases * g.dim[2].phases;
        scratch<T> bank(g.groups * panels * WIDTH * g.channels * g.taps()), biases(all_filters);
        scratch<tap_run> taps(g.taps());
        scratch<int64_t> begin_of(2 * (phases + 1));
        if (!bank || !biases || !taps || !begin_of)
            return no_memory(call, g.groups * panels * WIDTH * g.channels * g.taps() *
                                       int64_t(sizeof(T)));
        for (int64_t f = 0; f < all_filters; ++f)
            biases[f] = bias.dtype == PT_NONE
                            ? T(0)
                            : reinterpret_cast<const T *>(bias.data)[f * bias.strides[0]];
        /* where the panels and the runs of taps of each phase begin */
        int64_t *panel_at = begin_of.data, *runs_at = panel_at + phases + 1;
        panel_at[0] = runs_at[0] = 0;
        for (int64_t number = 0; number < phases; ++number) {
            const phase p(g, number);
            pack(bank.data + panel_at[number], p);
            runs_at[number + 1] =
                runs_at[number] +
                ordered_taps(g, p).runs(taps.data + runs_at[number], g.groups > 1);
            panel_at[number + 1] =
                panel_at[number] + g.groups * panels * WIDTH * g.channels * p.taps;
        }
        const double products = double(positions()) * double(all_filters) *
                                double(g.channels * g.taps()) / double(units());
        std::atomic<bool> enough(true);
        parallel_for(units(), max64(1, int64_t((1 << 18) / (products + 1))),
                     [&](int64_t begin, int64_t end) {
            for (int64_t u = begin; u < end && enough; ++u)
                if (!unit(u, phases, bank.data, panel_at, taps.data, runs_at, biases.data))
                    enough = false;
        });
        return enough ? int(PT_OK) : no_memory(call, NUMBERS * int64_t(sizeof(T)));
    }

    bool unit(int64_t u, int64_t phases, const T *bank, const int64_t *panel_at,
              const tap_run *taps, const int64_t *runs_at, const T *biases) const {
        const axis &a = g.dim[0], &b = g.dim[1];
        if (flat) {
            const int64_t q0 = u * width, many = min64(width, positions() - q0);
            const T *from = reinterpret_cast<const T *>(source.data) + q0 * all_channels;
            for (int64_t k = 0; k < g.groups * panels; ++k) {
                const int64_t group = k / panels, f = k % panels * WIDTH,
                              at = group * g.filters + f;
                row_of(from + group * g.channels, all_channels, g.channels,
                       bank + k * g.channels * WIDTH, out + q0 * all_filters + at, all_filters,
                       many, min64(WIDTH, g.filters - f), biases + at);
            }
            return true;
        }
        const int64_t blocks = ceil_div(rows[1], height), j0 = u % blocks * height,
                      j1 = min64(rows[1], j0 + height), i = u / blocks % rows[0],
                      n0 = u / blocks / rows[0] * together, n1 = min64(g.n, n0 + together);
        const int64_t high = (j1 - j0 - 1) * b.step + b.reach + 1, line = need[2] * all_channels,
                      image = (a.reach + 1) * high * line;
        scratch<T> laid(direct ? 0 : (n1 - n0) * image);
        if (!laid) return false;
        const T *at = reinterpret_cast<const T *>(source.data) + n0 * source.stride[0] +
                      i * a.step * source.stride[2] + j0 * b.step * source.stride[3];
        for (int64_t n = n0; n < n1 && !direct; ++n)
            lay(laid.data + (n - n0) * image, n, i, j0, j1);
        for (int64_t number = 0; number < phases; ++number)
            multiply(phase(g, number), taps + runs_at[number],
                     runs_at[number + 1] - runs_at[number], bank + panel_at[number], biases,
                     direct ? at : laid.data,
                     direct ? source.stride[0] : image, direct ? source.stride[2] : high * line,
                     direct ? source.stride[3] : line, n0, n1, i, j0, j1);
        return true;
    }
};

/* ---- depthwise --------------------------------------------------------------------------- */

/* N vectors of channels at one position: the taps' rows of the source and of the weight */
template <class T, int N>
inline void depthwise_tile(const T *const *from, const T *weight, int64_t c, int64_t taps,
                           const T *bias, T *to) {
    using V = simd<T>;
    typename V::vector acc[N];
    for (int v = 0; v < N; ++v) acc[v] = V::load(bias + v * V::width);
    for (int64_t t = 0; t < taps; ++t, weight += c)
        for (int v = 0; v < N; ++v)
            acc[v] += V::load(from[t] + v * V::width) * V::load(weight + v * V::width);
    for (int v = 0; v < N; ++v) V::store(to + v * V::width, acc[v]);
}

/* Each group is one channel with one filter, which dim 0 of the weight counts either way. A tap
 * outside the source reads zeros. */
template <class T>
int depthwise_last(pt_call *call, const geometry &g) {
    constexpr int W = simd<T>::width;
    const batch_view x(call->in[0]), weight(call->in[1]);
    const pt_view &bias = call->in[2];
    const axis &a = g.dim[0], &b = g.dim[1], &w = g.dim[2];
    const int64_t c = g.groups, phases = a.phases * b.phases * w.phases;
    scratch<T> panel((g.taps() + 2) * c);
    scratch<int64_t> start(phases);
    if (!panel || !start) return no_memory(call, (g.taps() + 2) * c * int64_t(sizeof(T)));
    T *zeros = panel.data, *biases = zeros + c, *weights = biases + c;
    for (int64_t k = 0; k < c; ++k) {
        zeros[k] = T(0);
        biases[k] = bias.dtype == PT_NONE
                        ? T(0)
                        : reinterpret_cast<const T *>(bias.data)[k * bias.strides[0]];
    }
    int64_t taps = 0;
    for (int64_t number = 0; number < phases; ++number) {
        const phase p(g, number);
        start[number] = taps;
        p.each(g, [&](int64_t t, int64_t i, int64_t j, int64_t k) {
            const T *at = reinterpret_cast<const T *>(weight.data) +
                          a.index[i] * weight.stride[2] + b.index[j] * weight.stride[3] +
                          w.index[k] * weight.stride[4];
            for (int64_t n = 0; n < c; ++n) weights[(taps + t) * c + n] = at[n * weight.stride[0]];
        });
        taps += p.taps;
    }
    T *const out = output<T>(call);
    std::atomic<bool> enough(true);
    parallel_for(g.n * a.result * b.result, grain_rows(w.result * c * max64(1, g.taps())),
                 [&](int64_t begin, int64_t end) {
        scratch<const T *> from(g.taps());
        if (!from) {
            enough = false;
            return;
        }
        for (int64_t r = begin; r < end; ++r) {
            const int64_t n = r / b.result / a.result, i = r / b.result % a.result,
                          j = r % b.result;
            const T *image = reinterpret_cast<const T *>(x.data) + n * x.stride[0];
            for (int64_t o = 0; o < w.result; ++o) {
                const int64_t number =
                    (i % a.phases * b.phases + j % b.phases) * w.phases + o % w.phases;
                const phase p(g, number);
                p.each(g, [&](int64_t t, int64_t ti, int64_t tj, int64_t tk) {
                    const int64_t u = i / a.phases * a.step - a.lead + a.offset[ti],
                                  v = j / b.phases * b.step - b.lead + b.offset[tj],
                                  q = o / w.phases * w.step - w.lead + w.offset[tk];
                    const bool inside = u >= 0 && u < a.source && v >= 0 && v < b.source &&
                                        q >= 0 && q < w.source;
                    from[t] = inside ? image + u * x.stride[2] + v * x.stride[3] + q * x.stride[4]
                                     : zeros;
                });
                T *to = out + (r * w.result + o) * c;
                const T *with = weights + start[number] * c;
                int64_t k = 0;
                for (; k + 4 * W <= c; k += 4 * W) {
                    depthwise_tile<T, 4>(from.data, with + k, c, p.taps, biases + k, to + k);
                    for (int64_t t = 0; t < p.taps; ++t) from[t] += 4 * W;
                }
                for (; k + W <= c; k += W) {
                    depthwise_tile<T, 1>(from.data, with + k, c, p.taps, biases + k, to + k);
                    for (int64_t t = 0; t < p.taps; ++t) from[t] += W;
                }
                for (int64_t m = 0; k + m < c; ++m) {
                    T sum = biases[k + m];
                    for (int64_t t = 0; t < p.taps; ++t)
                        sum += from[t][m] * with[t * c + k + m];
                    to[k + m] = sum;
                }
            }
        }
    });
    return enough ? int(PT_OK) : no_memory(call, g.taps() * 8);
}

/* ---- by rows of planes ------------------------------------------------------------------- */

/* Runs f on a row-major output in scratch memory, and moves it to the call's, whose memory is
 * (outer, positions, inner) with `inner` = out.sizes[1]. */
template <class T, class F>
int moved_to_last(pt_call *call, F &&f) {
    const pt_view &out = call->out[0];
    scratch<T> made(out.numel);
    if (!made) return no_memory(call, out.numel * int64_t(sizeof(T)));
    int64_t strides[5], step = 1;
    for (int d = out.ndim - 1; d >= 0; --d) {
        strides[d] = step;
        step *= out.sizes[d];
    }
    pt_view plain = out;
    plain.data = reinterpret_cast<char *>(made.data);
    plain.strides = strides;
    plain.contiguous = 1;
    pt_call on = *call;
    on.out = &plain;
    if (int status = f(&on)) {
        memcpy(call->error, on.error, sizeof on.error);
        return status;
    }
    const int64_t n = out.sizes[0], c = out.sizes[1], size = out.numel / n / c;
    constexpr int64_t BLOCK = 32, LINE = 16;
    const int64_t blocks = ceil_div(size, BLOCK);
    T *to = output<T>(call);
    parallel_for(n * blocks, grain_rows(BLOCK * c), [&](int64_t begin, int64_t end) {
        for (int64_t u = begin; u < end; ++u) {
            const int64_t p0 = u % blocks * BLOCK, p1 = min64(size, p0 + BLOCK), image = u / blocks;
            for (int64_t k0 = 0; k0 < c; k0 += LINE)
                for (int64_t p = p0; p < p1; ++p)
                    for (int64_t k = k0; k < min64(c, k0 + LINE); ++k)
                        to[(image * size + p) * c + k] = made[(image * c + k) * size + p];
        }
    });
    return PT_OK;
}

} // namespace
#endif
