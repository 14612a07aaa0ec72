/* Convolution and its transpose, in 1 to 3 dims.
 *
 *    convolve(input, weight, bias?; stride, padding, dilation, groups) -> out
 *    convolve_transposed(input, weight, bias?; stride, padding, dilation, groups) -> out
 *
 * The output's sizes are given; anything read outside the input counts as 0. Each window of
 * the source is laid out once in planes (convolution.hpp) and multiplied by panels of filters
 * in registers: a tile of filters x vectors of positions goes through all taps of all
 * channels. The transpose is the same sum, with a separate set of taps for each residue of a
 * result's position modulo the stride.
 */
#include "convolution_columns.hpp"
#include "convolution_last.hpp"

namespace {

template <class T>
using tile_kernel = void (*)(int64_t channels, int64_t taps, const T *a, const T *b, int64_t pitch,
                             const int64_t *distance, const T *bias, T *out);

/* out[MR][NV * W] = bias + sum over channels and taps of a[.][MR] b[distance] */
template <class T, int MR, int NV>
void shift_tile(int64_t channels, int64_t taps, const T *a, const T *b, int64_t pitch,
                const int64_t *distance, const T *bias, T *out) {
    using V = lanes_of<T>;
    constexpr int W = V::width;
    typename V::vector acc[MR][NV];
    for (int i = 0; i < MR; ++i)
        for (int j = 0; j < NV; ++j) acc[i][j] = V::fill(bias[i]);
    for (int64_t c = 0; c < channels; ++c, b += pitch)
        for (int64_t t = 0; t < taps; ++t, a += MR) {
            const T *at = b + distance[t];
            typename V::vector right[NV];
            for (int j = 0; j < NV; ++j) right[j] = V::load(at + j * W);
            for (int i = 0; i < MR; ++i) {
                const typename V::vector left = V::fill(a[i]);
                for (int j = 0; j < NV; ++j) acc[i][j] += left * right[j];
            }
        }
    for (int i = 0; i < MR; ++i)
        for (int j = 0; j < NV; ++j) V::store(out + (i * NV + j) * W, acc[i][j]);
}
template <class T, int NV, int... MR>
inline tile_kernel<T> tile_of_rows(int rows, std::integer_sequence<int, MR...>) {
    static constexpr tile_kernel<T> kernels[] = {shift_tile<T, MR + 1, NV>...};
    return kernels[rows - 1];
}
template <class T, int... NV>
inline tile_kernel<T> tile_of(int rows, int vectors, std::integer_sequence<int, NV...>) {
    using choose = tile_kernel<T> (*)(int, std::make_integer_sequence<int, TILE_ROWS<T>>);
    static constexpr choose by_vectors[] = {
        [](int r, std::make_integer_sequence<int, TILE_ROWS<T>> s) {
            return tile_of_rows<T, NV + 1>(r, s);
        }...};
    return by_vectors[vectors - 1](rows, {});
}

/* ---- filters ----------------------------------------------------------------------------- */

/* Filters of all phases and groups as panels [channel][tap][row], after the biases of all. */
template <class T>
struct filter_bank {
    scratch<T> data;
    scratch<int64_t> start;     /* where the filters of each phase begin */
    const geometry &g;

    explicit filter_bank(const geometry &geo)
        : data((geo.groups * geo.filters) * (geo.channels * geo.taps() + 1)),
          start(phases(geo) + 1), g(geo) {}
    static int64_t phases(const geometry &geo) {
        return geo.dim[0].phases * geo.dim[1].phases * geo.dim[2].phases;
    }
    explicit operator bool() const { return data && start; }
    const T *bias(int64_t group) const { return data.data + group * g.filters; }
    T *filters(int64_t number, int64_t taps, int64_t group) const {
        return data.data + g.groups * g.filters + start[number] +
               group * g.filters * g.channels * taps;
    }
    void pack(const batch_view &weight, bool transposed, const pt_view &b) {
        const int64_t all = g.groups * g.filters;
        for (int64_t m = 0; m < all; ++m)
            data[m] =
                b.dtype == PT_NONE ? T{} : reinterpret_cast<const T *>(b.data)[m * b.strides[0]];
        start[0] = 0;
        for (int64_t number = 0; number < phases(g); ++number)
            start[number + 1] = start[number] + all * g.channels * phase(g, number).taps;
        const int64_t by_filter = weight.stride[transposed],
                      by_channel = weight.stride[!transposed];
        const int64_t by_group = weight.stride[0] * (transposed ? g.channels : g.filters);
        const int64_t panels = ceil_div(g.filters, TILE_ROWS<T>);
        parallel_for(g.groups * panels, grain_rows(g.channels * g.taps() * TILE_ROWS<T>),
                     [&](int64_t begin, int64_t end) {
                         for (int64_t number = 0; number < phases(g); ++number) {
                             const phase p(g, number);
                             for (int64_t u = begin; u < end; ++u) {
                                 const int64_t group = u / panels,
                                               first = u % panels * TILE_ROWS<T>,
                                               rows = min64(TILE_ROWS<T>, g.filters - first);
                                 T *to =
                                     filters(number, p.taps, group) + first * g.channels * p.taps;
                                 const T *from = reinterpret_cast<const T *>(weight.data) +
                                                 group * by_group + first * by_filter;
                                 for (int64_t c = 0; c < g.channels; ++c)
                                     p.each(g, [&](int64_t, int64_t i, int64_t j, int64_t k) {
                                         const T *at = from + c * by_channel +
                                                       g.dim[0].index[i] * weight.stride[2] +
                                                       g.dim[1].index[j] * weight.stride[3] +
                                                       g.dim[2].index[k] * weight.stride[4];
                                         for (int64_t r = 0; r < rows; ++r)
                                             *to++ = at[r * by_filter];
                                     });
                             }
                         }
                     });
    }
};

/* ---- positions --------------------------------------------------------------------------- */

/* A run of results: `length` from place `from` in a tile, to place `to` in the output. */
struct piece {
    int64_t from, length, to;
};

/* Walks the positions of a window that belong to results of one phase. */
struct walker {
    const window &w;
    const geometry &g;
    const phase &p;
    int64_t outputs;            /* elements of one image's output */
    int64_t count[3];
    int64_t q = 0, n = 0, at[3] = {0, 0, 0}, row = 0;

    walker(const window &w_, const geometry &g_, const phase &p_)
        : w(w_), g(g_), p(p_), outputs(g.groups * g.filters * g.results()) {
        for (int d = 0; d < 3; ++d) count[d] = min64(w.to[d], g.dim[d].count(p.at[d])) - w.from[d];
        if (count[0] <= 0 || count[1] <= 0 || count[2] <= 0) n = w.n1 - w.n0;
        row = row_target();
    }
    bool done() const { return n >= w.n1 - w.n0; }
    int64_t row_target() const {
        int64_t to = 0;
        for (int d = 0; d < 3; ++d)
            to = to * g.dim[d].result + p.at[d] + g.dim[d].phases * (w.from[d] + at[d]);
        return (w.n0 + n) * outputs + to;
    }
    void next_row() {
        q += w.extent[2] - at[2];
        at[2] = 0;
        if (++at[1] == count[1]) {
            q += (w.extent[1] - at[1]) * w.extent[2];
            at[1] = 0;
            if (++at[0] == count[0]) {
                q += (w.extent[0] - at[0]) * w.extent[1] * w.extent[2];
                at[0] = 0;
                ++n;
            }
        }
        row = row_target();
    }
    /* Collects the pieces within `width` positions from q. Returns their number; `first` is q,
     * `used` the number of positions up to the last result. */
    int collect(int64_t width, piece *pieces, int64_t &first, int64_t &used) {
        int many = 0;
        first = q;
        used = 0;
        while (!done() && q - first < width) {
            const int64_t length = min64(count[2] - at[2], width - (q - first));
            pieces[many++] = {q - first, length, row + at[2] * g.dim[2].phases};
            used = q - first + length;
            at[2] += length;
            q += length;
            if (at[2] == count[2]) next_row();
        }
        return many;
    }
};

/* ---- one filter -------------------------------------------------------------------------- */

/* A group with one filter (depthwise) cannot share a position's numbers between filters: rows of
 * results go straight to memory. Reads whole vectors, writes `width` numbers in each of R rows. */
template <class T, int R, int NV>
void row_tile(int64_t channels, int64_t taps, const T *a, const T *b, int64_t pitch,
              const int64_t *distance, T bias, int64_t row, T *out, int64_t next, int64_t width) {
    using V = simd<T>;
    constexpr int W = V::width;
    typename V::vector acc[R][NV];
    for (int r = 0; r < R; ++r)
        for (int j = 0; j < NV; ++j) acc[r][j] = V::fill(bias);
    for (int64_t c = 0; c < channels; ++c, b += pitch)
        for (int64_t t = 0; t < taps; ++t, ++a) {
            const typename V::vector left = V::fill(*a);
            for (int r = 0; r < R; ++r)
                for (int j = 0; j < NV; ++j)
                    acc[r][j] += left * V::load(b + distance[t] + r * row + j * W);
        }
    for (int r = 0; r < R; ++r)
        for (int j = 0; j < NV; ++j) {
            if (j + 1 < NV || width == NV * W) V::store(out + r * next + j * W, acc[r][j]);
            else V::store_part(out + r * next + j * W, acc[r][j], int(width - j * W));
        }
}
template <class T, int NV, int R>
inline void row_tiles(int64_t rows, int64_t channels, int64_t taps, const T *a, const T *b,
                      int64_t pitch, const int64_t *distance, T bias, int64_t row, T *out,
                      int64_t next, int64_t width) {
    for (; rows >= R; rows -= R, b += R * row, out += R * next)
        row_tile<T, R, NV>(channels, taps, a, b, pitch, distance, bias, row, out, next, width);
    for (; rows > 0; --rows, b += row, out += next)
        row_tile<T, 1, NV>(channels, taps, a, b, pitch, distance, bias, row, out, next, width);
}

/* ---- the whole --------------------------------------------------------------------------- */

template <class T>
inline void write_piece(T *to, const T *from, int64_t length, int64_t step) {
    if (step == 1) load_row(to, from, 1, length);
    else
        for (int64_t i = 0; i < length; ++i) to[i * step] = from[i];
}

template <class T>
struct convolution {
    const geometry &g;
    batch_view source;
    const filter_bank<T> &bank;
    T *out;
    bool direct;

    static constexpr int W = lanes_of<T>::width;
    static constexpr int64_t WIDTH = TILE_VECTORS<T> * W;
    static constexpr int64_t ROW_PHASES = 4, ROWS = 4;

    static bool by_rows(const geometry &g) {
        return is_fast<T> && g.filters == 1 && g.dim[2].phases <= ROW_PHASES;
    }

    /* for a group with one filter: all phases of dim 2, of which `number` is the first */
    void rows_of(const window &w, int64_t number, int64_t group, const T *b, int64_t pitch,
                 const int64_t *distance) const {
        const phase p(g, number);
        const walker at(w, g, p);
        if (at.done()) return;
        const int64_t phases = g.dim[2].phases, next = g.dim[1].phases * g.dim[2].result;
        for (int64_t n = 0; n < w.n1 - w.n0; ++n)
            for (int64_t i = 0; i < at.count[0]; ++i) {
                const T *from = b + (n * w.extent[0] + i) * w.extent[1] * w.extent[2];
                T *to = out + ((w.n0 + n) * g.groups + group) * g.results() +
                        ((p.at[0] + g.dim[0].phases * (w.from[0] + i)) * g.dim[1].result + p.at[1] +
                         g.dim[1].phases * w.from[1]) *
                            g.dim[2].result;
                for (int64_t j = 0; j < at.count[2]; j += WIDTH) {
                    if (phases == 1) {
                        rows_at(w, p, group, at.count[1], from + j, pitch, distance, to + j, next,
                                min64(WIDTH, at.count[2] - j));
                        continue;
                    }
                    /* compute a few rows of each phase, then interleave the phases */
                    alignas(64) T tile[ROW_PHASES][ROWS * WIDTH];
                    for (int64_t r = 0; r < at.count[1]; r += ROWS) {
                        const int64_t rows = min64(ROWS, at.count[1] - r);
                        int64_t tap = 0, width[ROW_PHASES];
                        for (int64_t k = 0; k < phases; ++k) {
                            const phase part(g, number + k);
                            width[k] = min64(WIDTH, g.dim[2].count(k) - j);
                            if (width[k] > 0)
                                rows_at(w, part, group, rows, from + j + r * w.extent[2], pitch,
                                        distance + tap, tile[k], WIDTH, width[k]);
                            tap += part.taps;
                        }
                        for (int64_t y = 0; y < rows; ++y) {
                            T *row = to + (r + y) * next + j * phases;
                            int64_t x = 0;
                            if (phases == 2)
                                for (; x + W <= width[1]; x += W)
                                    simd<T>::store_zipped(row + 2 * x,
                                                          simd<T>::load(tile[0] + y * WIDTH + x),
                                                          simd<T>::load(tile[1] + y * WIDTH + x));
                            for (int64_t k = 0; k < phases; ++k)
                                for (int64_t z = x; z < width[k]; ++z)
                                    row[z * phases + k] = tile[k][y * WIDTH + z];
                        }
                    }
                }
            }
    }
    /* computes `width` results of one phase in each of `rows` rows */
    void rows_at(const window &w, const phase &p, int64_t group, int64_t rows, const T *from,
                 int64_t pitch, const int64_t *distance, T *to, int64_t next, int64_t width) const {
        const int64_t number = (p.at[0] * g.dim[1].phases + p.at[1]) * g.dim[2].phases + p.at[2];
        const T *a = bank.filters(number, p.taps, group), bias = *bank.bias(group);
        auto run = [&](auto vectors, auto together) {
            row_tiles<T, decltype(vectors)::value, decltype(together)::value>(
                rows, g.channels, p.taps, a, from, pitch, distance, bias, w.extent[2], to, next,
                width);
        };
        using std::integral_constant;
        switch (ceil_div(width, W)) {
        case 1: run(integral_constant<int, 1>{}, integral_constant<int, 4>{}); break;
        case 2: run(integral_constant<int, 2>{}, integral_constant<int, 2>{}); break;
        case 3: run(integral_constant<int, 3>{}, integral_constant<int, 1>{}); break;
        default: run(integral_constant<int, TILE_VECTORS<T>>{}, integral_constant<int, 1>{}); break;
        }
    }

    /* Panels [p0, p1) of one group, on planes at b. If the planes are the source itself, they begin
     * `skip` positions before b. */
    void multiply(const window &w, int64_t group, int64_t p0, int64_t p1, const T *b, int64_t pitch,
                  int64_t skip, int64_t *distance) const {
        alignas(64) T tile[TILE_ROWS<T> * WIDTH];
        piece pieces[WIDTH];
        int64_t furthest = 0;
        const auto measure_taps = [&](const phase &p, int64_t *to) {
            p.each(g, [&](int64_t t, int64_t i, int64_t j, int64_t k) {
                to[t] =
                    tap_distance(w, g, g.dim[0].offset[i], g.dim[1].offset[j], g.dim[2].offset[k]);
                furthest = max64(furthest, to[t]);
            });
        };
        if constexpr (is_fast<T>)
            if (by_rows(g)) {
                for (int64_t number = 0; number < filter_bank<T>::phases(g);
                     number += g.dim[2].phases) {
                    int64_t tap = 0;
                    for (int64_t k = 0; k < g.dim[2].phases; ++k) {
                        const phase p(g, number + k);
                        measure_taps(p, distance + tap);
                        tap += p.taps;
                    }
                    rows_of(w, number, group, b, pitch, distance);
                }
                return;
            }
        for (int64_t number = 0; number < filter_bank<T>::phases(g); ++number) {
            const phase p(g, number);
            walker at(w, g, p);
            furthest = 0;
            measure_taps(p, distance);
            const T *filters = bank.filters(number, p.taps, group), *bias = bank.bias(group);
            const int64_t limit = w.image - furthest,
                          width = direct ? min64(WIDTH, limit / W * W) : WIDTH;
            while (!at.done()) {
                int64_t first, used;
                const int many = at.collect(width, pieces, first, used);
                const int vectors = int(ceil_div(used, W));
                int64_t back = 0; /* a tile that would read past the source's end starts earlier */
                if (direct) back = max64(0, skip + first + vectors * W - limit);
                for (int64_t panel = p0; panel < p1; ++panel) {
                    const int64_t m0 = panel * TILE_ROWS<T>;
                    const int rows = int(min64(TILE_ROWS<T>, g.filters - m0));
                    const tile_kernel<T> kernel =
                        tile_of<T>(rows, vectors,
                                   std::make_integer_sequence<int, TILE_VECTORS<T>>{});
                    kernel(g.channels, p.taps, filters + m0 * g.channels * p.taps, b + first - back,
                           pitch, distance, bias + m0, tile);
                    for (int r = 0; r < rows; ++r) {
                        T *to = out + (group * g.filters + m0 + r) * g.results();
                        const T *from = tile + r * vectors * W + back;
                        for (int i = 0; i < many; ++i)
                            write_piece(to + pieces[i].to, from + pieces[i].from, pieces[i].length,
                                        g.dim[2].phases);
                    }
                }
            }
        }
    }
};

/* ---- columns ----------------------------------------------------------------------------- */

/* The filters of a group are the left matrix; a panel of the right matrix is 64 positions (or as
 * many as the registers of a tile hold). */
template <class T>
int convolve_columns(pt_call *call, const geometry &g, const batch_view &source,
                     const filter_bank<T> &bank) {
    constexpr int W = simd<T>::width;
    constexpr int64_t WIDTH = OUTER_VECTORS * W, UNITS = 8, GRAIN_PRODUCTS = 1 << 18;
    T *out = output<T>(call);
    std::atomic<int64_t> missing(0);
    for (int64_t number = 0; number < filter_bank<T>::phases(g); ++number) {
        const phase p(g, number);
        const positions all(g, p);
        const int64_t places = ceil_div(all.total, WIDTH), together = channels_together(g, p.taps),
                      panels = ceil_div(g.filters, OUTER_ROWS);
        const int64_t blocks = max64(1, min64(panels, UNITS / max64(1, places * g.groups)));
        const double products =
            double(WIDTH) * double(g.filters / blocks) * double(g.channels * p.taps);
        parallel_for(
            places * blocks * g.groups, int64_t(GRAIN_PRODUCTS / (products + 1)) + 1,
            [&](int64_t begin, int64_t end) {
                const int64_t depth = together * p.taps,
                              most = ceil_div(panels, blocks) * OUTER_ROWS;
                scratch<T> columns(depth * WIDTH), tile(most * WIDTH);
                if (!columns || !tile) {
                    missing = (depth + most) * WIDTH * int64_t(sizeof(T));
                    return;
                }
                for (int64_t u = begin; u < end; ++u) {
                    const int64_t block = u % blocks, group = u / blocks % g.groups,
                                  q0 = u / blocks / g.groups * WIDTH,
                                  q1 = min64(all.total, q0 + WIDTH);
                    const int64_t m0 = panels * block / blocks * OUTER_ROWS,
                                  m1 = min64(g.filters, panels * (block + 1) / blocks * OUTER_ROWS);
                    const int vectors = int(ceil_div(q1 - q0, W));
                    const T *filters = bank.filters(number, p.taps, group),
                            *bias = bank.bias(group);
                    memset(columns.data, 0, size_t(depth * WIDTH) * sizeof(T));
                    for (int64_t c = 0; c < g.channels || c == 0; c += together) {
                        const int64_t many = min64(together, g.channels - c);
                        pack_columns<T>(columns.data, WIDTH, all, q0, q1, source,
                                        group * g.channels + c, group * g.channels + c + many);
                        for (int64_t m = m0; m < m1; m += OUTER_ROWS) {
                            const int rows = int(min64(OUTER_ROWS, m1 - m));
                            shared_outer<T>(rows, vectors)(
                                many * p.taps, filters + (m * g.channels + c * rows) * p.taps, 1,
                                rows, columns.data, WIDTH, tile.data + (m - m0) * WIDTH, WIDTH,
                                T(1), c > 0);
                        }
                    }
                    all.rows(q0, q1, [&](const result_row &r) {
                        int64_t to = 0;
                        for (int d = 0; d < 3; ++d)
                            to = to * g.dim[d].result + p.at[d] + g.dim[d].phases * r.at[d];
                        const int64_t step = g.dim[2].phases;
                        for (int64_t m = m0; m < m1; ++m) {
                            T *PT_RESTRICT at =
                                out + ((r.n * g.groups + group) * g.filters + m) * g.results() + to;
                            const T *PT_RESTRICT from = tile.data + (m - m0) * WIDTH + r.from;
                            for (int64_t i = 0; i < r.length; ++i) at[i * step] = from[i] + bias[m];
                        }
                    });
                }
            });
    }
    return missing ? no_memory(call, missing) : int(PT_OK);
}

/* Whether columns are faster than the planes of a window. Vectors on planes also cover positions
 * without results; building columns costs as much as the products with 24 filters. */
template <class T>
inline bool by_columns(const convolution<T> &work, const window &w) {
    const geometry &g = work.g;
    if (g.filters < OUTER_ROWS || g.results() > 1024) return false;
    int64_t planes = 0, columns = 0, results = 0;
    piece pieces[convolution<T>::WIDTH];
    for (int64_t number = 0; number < filter_bank<T>::phases(g); ++number) {
        const phase p(g, number);
        const int64_t total = positions(g, p).total;
        columns += ceil_div(total, work.W) * work.W;
        for (walker at(w, g, p); !at.done(); ) {
            int64_t first, used;
            const int many = at.collect(work.WIDTH, pieces, first, used);
            planes += ceil_div(used, work.W) * work.W;
            for (int i = 0; i < many; ++i) results += pieces[i].length;
        }
    }
    const double share = double(results) / double(max64(1, g.n * g.results()));
    return double(planes) > 1.05 * double(columns) * share * (1 + 24 / double(g.filters));
}

/* Work of fewer multiplications than this is not worth another thread. */
constexpr int64_t CONVOLUTION_GRAIN = 1 << 18;
constexpr int64_t PLANES_BYTES = 384 * 1024;

/* to a row-major output */
template <class T>
inline int convolve_planes(pt_call *call, const geometry &g, bool transposed) {
    const batch_view source(call->in[0]), weight(call->in[1]);
    filter_bank<T> bank(g);
    if (!bank)
        return no_memory(call, g.groups * g.filters * g.channels * g.taps() * int64_t(sizeof(T)));
    bank.pack(weight, transposed, call->in[2]);
    convolution<T> work{g, source, bank, output<T>(call), false};
    const int64_t plane = source.size[2] * source.size[3] * source.size[4], margin = work.WIDTH;
    int64_t furthest = 0;
    for (int d = 0; d < 3; ++d) furthest = furthest * g.dim[d].source + g.dim[d].reach;
    work.direct = in_place(g, source) && !work.by_rows(g) && plane - furthest >= work.W;
    const double products = double(g.n) * double(g.groups * g.filters) * double(g.results()) *
                            double(g.channels * g.taps());
    const int64_t least =
        int64_t(products < 8.0 * CONVOLUTION_GRAIN ? products / CONVOLUTION_GRAIN + 1 : 8);
    tiling tiles(g, PLANES_BYTES / int64_t(sizeof(T)), least, 512);
    if (work.direct) {
        tiles.images = 1;
        tiles.image_blocks = g.n;
    }
    auto window_at = [&](int64_t number) {
        window w = tiles.at(number, g, margin);
        if (work.direct) {
            for (int d = 0; d < 3; ++d) w.extent[d] = g.dim[d].width;
            w.image = plane;
        }
        return w;
    };
    if constexpr (is_fast<T>)
        if (by_columns(work, window_at(0))) return convolve_columns<T>(call, g, source, bank);
    const int64_t panels = ceil_div(g.filters, TILE_ROWS<T>);
    const double per_group = products / double(tiles.count()) / double(g.groups);
    const int64_t together =
        max64(1, min64(g.groups, int64_t(CONVOLUTION_GRAIN / 4 /
                                         max64(1, int64_t(min64(1 << 30, int64_t(per_group)))))));
    const int64_t group_blocks = ceil_div(g.groups, together);
    const int64_t panel_blocks =
        max64(1, min64(panels, least / max64(1, tiles.count() * group_blocks)));
    const int64_t units = tiles.count() * group_blocks * panel_blocks,
                  unit_products =
                      int64_t(min64(int64_t(1) << 40, int64_t(products / double(units))));
    std::atomic<int64_t> missing(0);
    parallel_for(
        units, max64(1, CONVOLUTION_GRAIN / max64(1, unit_products)),
        [&](int64_t begin, int64_t end) {
            for (int64_t u = begin; u < end; ++u) {
                const window w = window_at(u / panel_blocks / group_blocks);
                const int64_t panel_block = u % panel_blocks,
                              group_block = u / panel_blocks % group_blocks;
                const int64_t p0 = panels * panel_block / panel_blocks,
                              p1 = panels * (panel_block + 1) / panel_blocks;
                const int64_t pitch = work.direct ? source.stride[1] : w.plane * g.planes();
                int64_t skip = 0;
                const double numbers = double(g.channels) * double(pitch);
                scratch<T> planes(work.direct ? 0 : numbers < 1e11 ? g.channels * pitch : -1);
                scratch<int64_t> distance(g.taps());
                if (!planes || !distance) {
                    missing = int64_t(numbers * sizeof(T));
                    return;
                }
                if (!work.direct)
                    memset(static_cast<void *>(planes.data), 0,
                           size_t(g.channels * pitch) * sizeof(T));
                for (int64_t group = group_block * together;
                     group < min64(g.groups, (group_block + 1) * together); ++group) {
                    const T *b = planes.data;
                    if (work.direct) {
                        skip = (w.from[0] * source.size[3] + w.from[1]) * source.size[4];
                        b = reinterpret_cast<const T *>(source.data) + w.n0 * source.stride[0] +
                            group * g.channels * pitch + skip;
                    } else
                        for (int64_t c = 0; c < g.channels; ++c)
                            pack_channel<T>(planes.data + c * pitch, w, g, source,
                                            group * g.channels + c);
                    work.multiply(w, group, p0, p1, b, pitch, skip, distance.data);
                }
            }
        });
    return missing ? no_memory(call, missing) : int(PT_OK);
}

template <class T>
inline int convolve_as(pt_call *call, const geometry &g, bool transposed) {
    if (runs_channels_last(call->in[0], call->out[0])) {
        if constexpr (is_fast<T>) {
            if (g.channels == 1 && g.filters == 1 && g.groups > 1 && channels_last(call->in[0]))
                return depthwise_last<T>(call, g);
            if (2 * g.filters >= simd<T>::width && g.channels > 0)
                return convolution_last<T>(call, g, transposed).run(call);
        }
        return moved_to_last<T>(
            call, [&](pt_call *on) { return convolve_planes<T>(on, g, transposed); });
    }
    return convolve_planes<T>(call, g, transposed);
}

int convolve_any(pt_call *call, bool transposed) {
    if (int status = check_convolution(call, 2)) return status;
    const batch_view x(call->in[0]), out(call->out[0]);
    batch_view weight(call->in[1]);
    geometry g;
    g.groups = call->params[3].i;
    g.n = x.size[0];
    if (g.groups < 1 || x.size[1] % g.groups || out.size[1] % g.groups ||
        weight.size[0] != (transposed ? x : out).size[1] ||
        weight.size[1] != (transposed ? out : x).size[1] / g.groups || out.size[0] != g.n)
        return fail(call, PT_RUNTIME_ERROR, "channels, filters and groups do not fit together");
    if (call->in[2].dtype != PT_NONE &&
        (call->in[2].ndim != 1 || call->in[2].sizes[0] != out.size[1]))
        return fail(call, PT_RUNTIME_ERROR, "expected a bias of %lld numbers",
                    (long long)out.size[1]);
    g.channels = x.size[1] / g.groups;
    g.filters = out.size[1] / g.groups;
    if (call->out[0].numel == 0) return PT_OK;
    if (g.channels == 0)                        /* a kernel without elements may have any size */
        for (int d = 0; d < 3; ++d) weight.size[d + 2] = 1;
    if (!reachable(call, x.size + 2, out.size + 2, weight.size + 2))
        return fail(call, PT_RUNTIME_ERROR, "stride and dilation are too large for these sizes");
    const axes lists(g.dim, call, x.size + 2, out.size + 2, weight.size + 2, transposed);
    if (!lists.lists)
        return no_memory(call, axes::entries(call, out.size + 2, weight.size + 2) * 8);
    if (worth_splitting(g)) g.dim[2].split();
    return visit_convolution(call, [&](pt_call *on, auto tag) {
        return convolve_as<PT_TYPE(tag)>(on, g, transposed);
    });
}
int convolve_kernel(pt_call *call) { return convolve_any(call, false); }
int convolve_transposed_kernel(pt_call *call) { return convolve_any(call, true); }

} // namespace

extern "C" const pt_kernel_entry PT_CAT(pt_kernels_convolution_, PT_ISA)[] = {
    {"convolve", convolve_kernel},
    {"convolve_transposed", convolve_transposed_kernel},
    {nullptr, nullptr},
};
