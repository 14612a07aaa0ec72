/* The gradient of a convolution's weight, in 1 to 3 dims.
 *
 *    convolve_weight(input, grad; stride, padding, dilation, groups) -> out
 *
 * out[filter][channel][tap] is the dot product of the gradient with the input shifted by
 * the tap. The input lies in planes (convolution.hpp); the gradient lies in rows of the
 * same width, with zeros at positions without a result, so that both are one run for a
 * register tile of filters x taps. But 0 times infinity is NaN: if the result has a NaN, it
 * is computed again row by row.
 *
 * The windows are dealt to at most 16 sums, which are added up in order: results do not depend on
 * the number of threads.
 */
#include "convolution_columns.hpp"
#include "convolution_last.hpp"

namespace {

struct segment {
    int64_t begin, length;
};
template <class T>
using dot_kernel = void (*)(const segment *runs, int64_t many, const T *a, int64_t lda, const T *b,
                            const int64_t *distance, T *out, int64_t ldo);

/* out[i][j] += a[i] . b[distance[j]] */
template <class T, int MR, int NR>
void shift_dot(const segment *runs, int64_t many, const T *a, int64_t lda, const T *b,
               const int64_t *distance, T *out, int64_t ldo) {
    using V = lanes_of<T>;
    constexpr int W = V::width;
    typename V::vector acc[MR][NR];
    for (int i = 0; i < MR; ++i)
        for (int j = 0; j < NR; ++j) acc[i][j] = V::fill(T{});
    const T *at[NR];
    for (int j = 0; j < NR; ++j) at[j] = b + distance[j];
    for (int64_t s = 0; s < many; ++s) {
        int64_t p = runs[s].begin;
        const int64_t end = p + runs[s].length;
        typename V::vector right[NR];
        for (; p + W <= end; p += W) {
            for (int j = 0; j < NR; ++j) right[j] = V::load(at[j] + p);
            for (int i = 0; i < MR; ++i) {
                const typename V::vector left = V::load(a + i * lda + p);
                for (int j = 0; j < NR; ++j) acc[i][j] += left * right[j];
            }
        }
        if (p == end) continue;
        const int rest = int(end - p);
        for (int j = 0; j < NR; ++j) right[j] = V::load_part(at[j] + p, rest);
        for (int i = 0; i < MR; ++i) {
            const typename V::vector left = V::load_part(a + i * lda + p, rest);
            for (int j = 0; j < NR; ++j) acc[i][j] += left * right[j];
        }
    }
    for (int i = 0; i < MR; ++i)
        for (int j = 0; j < NR; ++j) out[i * ldo + j] = out[i * ldo + j] + V::sum(acc[i][j]);
}
template <class T, int NR, int... MR>
inline dot_kernel<T> dot_of_rows(int rows, std::integer_sequence<int, MR...>) {
    static constexpr dot_kernel<T> kernels[] = {shift_dot<T, MR + 1, NR>...};
    return kernels[rows - 1];
}
template <class T, int... NR>
inline dot_kernel<T> dot_of(int rows, int taps, std::integer_sequence<int, NR...>) {
    using choose = dot_kernel<T> (*)(int, std::make_integer_sequence<int, TILE_ROWS<T>>);
    static constexpr choose by_taps[] = {
        [](int r, std::make_integer_sequence<int, TILE_ROWS<T>> s) {
            return dot_of_rows<T, NR + 1>(r, s);
        }...};
    return by_taps[taps - 1](rows, {});
}

/* Copies the gradient of one filter into rows like those of the window's planes; `to` is 0 at
 * positions without a result. */
template <class T>
inline void pack_gradient(T *to, const window &w, const batch_view &y, int64_t filter) {
    for (int64_t n = w.n0; n < w.n1; ++n)
        for (int64_t i = w.from[0]; i < w.to[0]; ++i)
            for (int64_t j = w.from[1]; j < w.to[1]; ++j)
                load_row(to + (((n - w.n0) * w.extent[0] + i - w.from[0]) * w.extent[1] + j -
                               w.from[1]) *
                                  w.extent[2],
                         reinterpret_cast<const T *>(y.data) + n * y.stride[0] +
                             filter * y.stride[1] + i * y.stride[2] + j * y.stride[3],
                         y.stride[4], y.size[4]);
}

template <class T>
inline bool is_nan(T x) {
    if constexpr (is_complex<T>) return x.re != x.re || x.im != x.im;
    else return x != x;
}

constexpr int64_t SUMS = 16;
constexpr int64_t WEIGHT_GRAIN = 1 << 18, WEIGHT_NUMBERS = 1 << 19, RUN = 1024;

/* ---- columns ----------------------------------------------------------------------------- */

/* The left matrix has a row for each channel and tap; a panel of the right matrix is the
 * gradient of 64 filters (or as many as the registers of a tile hold). Positions are taken
 * 4096 at a time, in order: their gradient is packed once, then each block of rows and
 * filters adds its products.
 *
 * One function: its passes (pack, multiply, store) share the sizes of panels and chunks. */
template <class T>
int weight_columns(pt_call *call, const geometry &g, const batch_view &x, const batch_view &y) {
    constexpr int W = simd<T>::width;
    constexpr int64_t WIDTH = OUTER_VECTORS * W, CHUNK = 16 * GEMM_DEPTH, UNITS = 16;
    const phase p(g, 0);
    const positions all(g, p);
    const int64_t taps = p.taps, together = channels_together(g, taps),
                  panels = ceil_div(g.filters, WIDTH), row_blocks = ceil_div(g.channels, together);
    const int64_t blocks = max64(1, min64(panels, UNITS / (row_blocks * g.groups)));
    const int64_t chunk = min64(CHUNK, all.total), places = ceil_div(chunk, GEMM_DEPTH),
                  depth = min64(GEMM_DEPTH, chunk);
    scratch<T> right(g.groups * panels * chunk * WIDTH),
        sums(g.groups * panels * g.channels * taps * WIDTH);
    if (!right || !sums)
        return no_memory(call, g.groups * panels * (chunk + g.channels * taps) * WIDTH *
                                   int64_t(sizeof(T)));
    const double products = double(chunk) * double(g.filters / blocks) * double(together * taps);
    const int64_t grain = int64_t(double(WEIGHT_GRAIN) / (products + 1)) + 1;
    const bool patches = are_patches(g, x);
    T *out = output<T>(call);
    std::atomic<int64_t> missing(0);
    for (int64_t start = 0; start < all.total; start += chunk) {
        const int64_t stop = min64(all.total, start + chunk);
        /* the panel of positions [q0, q0 + deep): it has `deep` rows */
        auto panel_at = [&](int64_t group, int64_t panel, int64_t q0) {
            return right.data + ((group * panels + panel) * chunk + q0 - start) * WIDTH;
        };
        parallel_for(g.groups * panels * places, max64(1, GRAIN / (WIDTH * depth)),
                     [&](int64_t begin, int64_t end) {
                         for (int64_t u = begin; u < end; ++u) {
                             const int64_t q0 = start + u % places * GEMM_DEPTH,
                                           panel = u / places % panels, group = u / places / panels;
                             const int64_t f = panel * WIDTH, width = min64(WIDTH, g.filters - f);
                             T *to = panel_at(group, panel, q0);
                             all.rows(q0, min64(stop, q0 + GEMM_DEPTH), [&](const result_row &r) {
                                 const T *from =
                                     reinterpret_cast<const T *>(y.data) + r.n * y.stride[0] +
                                     (group * g.filters + f) * y.stride[1] + r.at[0] * y.stride[2] +
                                     r.at[1] * y.stride[3] + r.at[2] * y.stride[4];
                                 T *line = to + r.from * WIDTH;
                                 for (int64_t i0 = 0; i0 < r.length;
                                      i0 += W) /* one cache line of each filter at a time */
                                     for (int64_t j = 0; j < width; ++j)
                                         for (int64_t i = i0; i < min64(r.length, i0 + W); ++i)
                                             line[i * WIDTH + j] =
                                                 from[j * y.stride[1] + i * y.stride[4]];
                                 for (int64_t i = 0; width < WIDTH && i < r.length; ++i)
                                     for (int64_t j = width; j < WIDTH; ++j)
                                         line[i * WIDTH + j] = T(0);
                             });
                         }
                     });
        parallel_for(row_blocks * blocks * g.groups, grain, [&](int64_t begin, int64_t end) {
            scratch<T> columns(together * taps * depth);
            if (!columns) {
                missing = together * taps * depth * int64_t(sizeof(T));
                return;
            }
            for (int64_t u = begin; u < end; ++u) {
                const int64_t block = u % blocks, group = u / blocks % g.groups,
                              c0 = u / blocks / g.groups * together,
                              c1 = min64(g.channels, c0 + together);
                const int64_t rows = (c1 - c0) * taps, by_row = patches ? 1 : depth,
                              by_place = patches ? rows : 1;
                for (int64_t q0 = start; q0 < stop; q0 += depth) {
                    const int64_t deep = min64(depth, stop - q0);
                    memset(columns.data, 0, size_t(rows * depth) * sizeof(T));
                    (patches ? pack_patches<T>
                             : pack_columns<T>)(columns.data, patches ? rows : depth, all, q0,
                                                q0 + deep, x, group * g.channels + c0,
                                                group * g.channels + c1);
                    for (int64_t panel = panels * block / blocks;
                         panel < panels * (block + 1) / blocks; ++panel) {
                        const int vectors =
                            int(ceil_div(min64(WIDTH, g.filters - panel * WIDTH), W));
                        T *to =
                            sums.data + ((group * panels + panel) * g.channels + c0) * taps * WIDTH;
                        for (int64_t k = 0; k < rows; k += OUTER_ROWS) {
                            const int many = int(min64(OUTER_ROWS, rows - k));
                            shared_outer<T>(many, vectors)(deep, columns.data + k * by_row, by_row,
                                                           by_place, panel_at(group, panel, q0),
                                                           WIDTH, to + k * WIDTH, WIDTH, T(1),
                                                           q0 > 0);
                        }
                    }
                }
            }
        });
        if (missing) return no_memory(call, missing);
    }
    const int64_t terms = g.channels * taps;
    parallel_for(g.groups * g.filters, grain_rows(terms), [&](int64_t begin, int64_t end) {
        constexpr int64_t ROWS = 64; /* these rows' cache lines serve all filters of a panel */
        for (int64_t k0 = 0; k0 < terms; k0 += ROWS)
            for (int64_t m = begin; m < end; ++m) {
                const int64_t f = m % g.filters;
                const T *from =
                    sums.data + (m / g.filters * panels + f / WIDTH) * terms * WIDTH + f % WIDTH;
                for (int64_t k = k0; k < min64(terms, k0 + ROWS); ++k)
                    out[m * terms + k] = from[k * WIDTH];
            }
    });
    return PT_OK;
}

/* Whether columns are faster than dot products: they are for short rows, with enough
 * filters to pay for the packing. */
inline bool by_columns(const geometry &g) {
    return g.filters >= 48 && g.channels * g.taps() >= 48 && g.results() <= 256;
}

/* The gradient of a weight by dot products of runs. Each unit of work adds up some of
 * the windows for some of the filters. `sums` units share the same filters; their
 * results are added up at the end. */
template <class T>
struct weight_dots {
    const geometry &g;
    const batch_view &x, &y;
    const int64_t terms, total;
    const double products;
    const int64_t least;                /* the number of units to aim for */
    tiling tiles;
    const bool direct;                  /* the input is read in place */
    int64_t sums, panels, group_blocks, panel_blocks;

    weight_dots(const geometry &g, const batch_view &x, const batch_view &y)
        : g(g), x(x), y(y), terms(g.channels * g.taps()), total(g.groups * g.filters * terms),
          products(double(total) * double(g.n) * double(g.results())),
          least(int64_t(products < double(SUMS * WEIGHT_GRAIN) ? products / double(WEIGHT_GRAIN) + 1
                                                               : SUMS)),
          tiles(g, min64(WEIGHT_NUMBERS, 2 * RUN * g.channels * g.planes()), 1, RUN),
          direct(in_place(g, x)) {
        if (direct) {
            tiles.images = 1;
            tiles.image_blocks = g.n;
        }
        sums = max64(1, min64(min64(tiles.count(), least), (int64_t(1) << 25) / total));
        panels = ceil_div(g.filters, TILE_ROWS<T>);
        group_blocks = max64(1, min64(g.groups, least / sums));
        panel_blocks = max64(1, min64(panels, least / 2 / sums / group_blocks));
    }

    int64_t units() const { return sums * group_blocks * panel_blocks; }
    int64_t grain() const {
        return max64(1, int64_t(double(WEIGHT_GRAIN) / (products / double(units()) + 1)));
    }

    /* The filters [f0, f1) of the groups [group0, group1); their sums go to `to`. */
    struct part {
        int64_t group0, group1, f0, f1;
        T *to;
    };

    /* Does one unit of work, by rows or by runs; returns 0, or the bytes it could not allocate. */
    int64_t run(int64_t u, T *partial, bool by_rows) const {
        const int64_t sum = u / panel_blocks / group_blocks,
                      group_block = u / panel_blocks % group_blocks;
        const int64_t p0 = panels * (u % panel_blocks) / panel_blocks,
                      p1 = panels * (u % panel_blocks + 1) / panel_blocks;
        const part p = {g.groups * group_block / group_blocks,
                        g.groups * (group_block + 1) / group_blocks, p0 * TILE_ROWS<T>,
                        min64(g.filters, p1 * TILE_ROWS<T>), partial + sum * total};
        for (int64_t group = p.group0; group < p.group1; ++group)
            for (int64_t i = (group * g.filters + p.f0) * terms;
                 i < (group * g.filters + p.f1) * terms; ++i)
                p.to[i] = T{};
        const int64_t tile0 = tiles.count() * sum / sums, tile1 = tiles.count() * (sum + 1) / sums;
        scratch<int64_t> distance(terms);
        if (!distance) return terms * int64_t(sizeof(int64_t));
        for (int64_t tile = tile0; tile < tile1; ++tile)
            if (const int64_t missing = window_of(tile, p, distance.data, by_rows)) return missing;
        return 0;
    }

    /* Adds the products of one window. */
    int64_t window_of(int64_t tile, const part &p, int64_t *distance, bool by_rows) const {
        window w = tiles.at(tile, g, 0);
        int64_t pitch = w.plane * g.planes(), skip = 0;
        if (direct) {
            for (int d = 0; d < 3; ++d) w.extent[d] = g.dim[d].width;
            w.image = x.size[2] * x.size[3] * x.size[4];
            pitch = x.stride[1];
            skip = (w.from[0] * x.size[3] + w.from[1]) * x.size[4];
        }
        const int64_t depth = w.to[0] - w.from[0], height = w.to[1] - w.from[1];
        const int64_t length = (w.n1 - w.n0 - 1) * w.image +
                               ((depth - 1) * w.extent[1] + height - 1) * w.extent[2] + y.size[4];
        const double numbers = double(g.channels) * double(pitch);
        scratch<T> planes(direct           ? 0
                          : numbers < 1e11 ? g.channels * pitch
                                           : -1),
            rows((p.f1 - p.f0) * length);
        const int64_t row_count = by_rows ? (w.n1 - w.n0) * depth * height : 1;
        scratch<segment> runs(row_count);
        if (!planes || !rows || !runs) return int64_t(numbers * sizeof(T));
        if (!direct)
            memset(static_cast<void *>(planes.data), 0, size_t(g.channels * pitch) * sizeof(T));
        memset(static_cast<void *>(rows.data), 0, size_t((p.f1 - p.f0) * length) * sizeof(T));
        runs[0] = {0, length};
        for (int64_t r = 0; by_rows && r < row_count; ++r)
            runs[r] = {((r / height / depth * w.extent[0] + r / height % depth) * w.extent[1] +
                        r % height) *
                           w.extent[2],
                       y.size[4]};
        measure_taps(w, pitch, distance);
        for (int64_t group = p.group0; group < p.group1; ++group) {
            const T *b = planes.data;
            if (direct)
                b = reinterpret_cast<const T *>(x.data) + w.n0 * x.stride[0] +
                    group * g.channels * pitch + skip;
            else
                for (int64_t c = 0; c < g.channels; ++c)
                    pack_channel<T>(planes.data + c * pitch, w, g, x, group * g.channels + c);
            for (int64_t f = p.f0; f < p.f1; ++f)
                pack_gradient<T>(rows.data + (f - p.f0) * length, w, y, group * g.filters + f);
            multiply(p, group, {runs.data, row_count}, rows.data, length, b, distance);
        }
        return 0;
    }

    /* The distance from the start of a plane to what each tap of each channel reads. */
    void measure_taps(const window &w, int64_t pitch, int64_t *distance) const {
        for (int64_t c = 0; c < g.channels; ++c)
            for (int64_t i = 0; i < g.dim[0].kernel; ++i)
                for (int64_t j = 0; j < g.dim[1].kernel; ++j)
                    for (int64_t l = 0; l < g.dim[2].kernel; ++l)
                        *distance++ =
                            c * pitch + tap_distance(w, g, g.dim[0].offset[i], g.dim[1].offset[j],
                                                     g.dim[2].offset[l]);
    }

    struct run_list {
        const segment *data;
        int64_t count;
    };
    void multiply(const part &p, int64_t group, run_list runs, const T *rows, int64_t length,
                  const T *b, const int64_t *distance) const {
        for (int64_t f = p.f0; f < p.f1; f += TILE_ROWS<T>) {
            const int many = int(min64(TILE_ROWS<T>, p.f1 - f));
            for (int64_t t = 0; t < terms; t += TILE_VECTORS<T>)
                dot_of<T>(many, int(min64(TILE_VECTORS<T>, terms - t)),
                          std::make_integer_sequence<int, TILE_VECTORS<T>>{})(
                    runs.data, runs.count, rows + (f - p.f0) * length, length, b, distance + t,
                    p.to + (group * g.filters + f) * terms + t, terms);
        }
    }

    /* Adds up the partial sums in order; returns whether a result is NaN. */
    bool add_up(const T *partial, T *out) const {
        std::atomic<bool> nan(false);
        parallel_for(total, GRAIN, [&](int64_t begin, int64_t end) {
            bool found = false;
            for (int64_t i = begin; i < end; ++i) {
                T v = partial[i];
                for (int64_t s = 1; s < sums; ++s) v = v + partial[s * total + i];
                found = found || is_nan(v);
                out[i] = v;
            }
            if (found) nan = true;
        });
        return nan;
    }
};

template <class T>
inline int weight_as(pt_call *call, const geometry &g) {
    const batch_view x(call->in[0]), y(call->in[1]);
    const int64_t total = g.groups * g.filters * g.channels * g.taps();
    T *out = output<T>(call);
    if (total == 0) return PT_OK;
    if (y.size[0] * y.size[2] * y.size[3] * y.size[4] == 0) {
        for (int64_t i = 0; i < total; ++i) out[i] = T{};
        return PT_OK;
    }
    if constexpr (is_fast<T>)
        if (by_columns(g)) return weight_columns<T>(call, g, x, y);
    const weight_dots<T> work(g, x, y);
    scratch<T> partial(work.sums * total);
    if (!partial) return no_memory(call, work.sums * total * int64_t(sizeof(T)));
    for (bool by_rows : {false, true}) {
        std::atomic<int64_t> missing(0);
        parallel_for(work.units(), work.grain(), [&](int64_t begin, int64_t end) {
            for (int64_t u = begin; u < end && !missing; ++u)
                if (const int64_t bytes = work.run(u, partial.data, by_rows)) missing = bytes;
        });
        if (missing) return no_memory(call, missing);
        if (!work.add_up(partial.data, out)) break;
    }
    return PT_OK;
}

int convolve_weight_kernel(pt_call *call) {
    if (int status = check_convolution(call, 2)) return status;
    const batch_view x(call->in[0]), y(call->in[1]), out(call->out[0]);
    geometry g;
    g.groups = call->params[3].i;
    g.n = x.size[0];
    if (g.groups < 1 || y.size[0] != g.n || x.size[1] % g.groups || y.size[1] % g.groups ||
        out.size[0] != y.size[1] || out.size[1] != x.size[1] / g.groups)
        return fail(call, PT_RUNTIME_ERROR, "channels, filters and groups do not fit together");
    g.channels = x.size[1] / g.groups;
    g.filters = y.size[1] / g.groups;
    if (call->out[0].numel == 0) return PT_OK;
    if (!reachable(call, x.size + 2, y.size + 2, out.size + 2))
        return fail(call, PT_RUNTIME_ERROR, "stride and dilation are too large for these sizes");
    const axes lists(g.dim, call, x.size + 2, y.size + 2, out.size + 2, false);
    if (!lists.lists) return no_memory(call, axes::entries(call, y.size + 2, out.size + 2) * 8);
    if (worth_splitting(g)) g.dim[2].split();
    return visit_convolution(call, [&](pt_call *on, auto tag) {
        using T = PT_TYPE(tag);
        if (on->out[0].contiguous) return weight_as<T>(on, g);
        return moved_to_last<T>(on, [&](pt_call *plain) { return weight_as<T>(plain, g); });
    });
}

} // namespace

extern "C" const pt_kernel_entry PT_CAT(pt_kernels_convolution_weight_, PT_ISA)[] = {
    {"convolve_weight", convolve_weight_kernel},
    {nullptr, nullptr},
};
