/* What the convolution kernels share: the shapes of a call, zero-padded planes, register tiles.
 *
 * A convolution is the sum result[j] += source[j * step - lead + offset] * weight[tap] over taps,
 * in up to three dims (missing dims have size 1). The source is copied into planes, in which a tap
 * lies at a constant distance from its position: rows of `width` positions that include the zeros
 * around the source, one plane for each residue of a position modulo step. If step is 1, the zeros
 * at the end of a row are also those at the start of the next row; the same holds for images.
 *
 * If there are enough filters to pay for it, there is a plane for each tap of a row instead
 * (`split`), with as many positions in a row as there are results.
 *
 * Position q of a plane belongs to a result if its row and column are in range. Other positions
 * are computed and dropped (or have a gradient of zero). So a whole row, or several small
 * images, is one run of vectors.
 *
 * half types are computed in float, integers in uint64: they wrap.
 */
#ifndef PTCORE_KERNELS_CONVOLUTION_HPP
#define PTCORE_KERNELS_CONVOLUTION_HPP
#include "channels_last.hpp"
#include "gemm.hpp"
#include "spatial.hpp"

#include <atomic>

namespace {

/* ---- types ------------------------------------------------------------------------------- */

/* four numbers of a type for which there are no vector registers */
template <class T>
struct plain_lanes {
    static constexpr int width = 4;
    struct vector {
        T lane[width];
        friend vector operator*(vector a, vector b) {
            for (int i = 0; i < width; ++i) a.lane[i] = a.lane[i] * b.lane[i];
            return a;
        }
        vector &operator+=(vector b) {
            for (int i = 0; i < width; ++i) lane[i] = lane[i] + b.lane[i];
            return *this;
        }
    };
    static vector load(const T *p) { return load_part(p, width); }
    static vector load_part(const T *p, int n) {
        vector v;
        for (int i = 0; i < width; ++i) v.lane[i] = i < n ? p[i] : T{};
        return v;
    }
    static void store(T *p, vector v) { memcpy(static_cast<void *>(p), &v, sizeof v); }
    static vector fill(T x) {
        vector v;
        for (int i = 0; i < width; ++i) v.lane[i] = x;
        return v;
    }
    static T sum(vector v) {
        T s = v.lane[0];
        for (int i = 1; i < width; ++i) s = s + v.lane[i];
        return s;
    }
};
template <class T>
using lanes_of = std::conditional_t<is_complex<T>, plain_lanes<T>, simd<T>>;

template <class T>
constexpr bool is_fast = is_same<T, float> || is_same<T, double>;
template <class T>
constexpr int TILE_ROWS = is_fast<T> ? OUTER_ROWS : 2;
template <class T>
constexpr int TILE_VECTORS = is_fast<T> ? OUTER_VECTORS : 1;

/* Runs f(call, type_tag<T>) on operands of T, the type in which the call's dtype is computed.
 * Operands stored in another type (half types; integers, whose sign does not matter as they wrap)
 * are converted before and after. */
template <class T, class S, class F>
inline int widened(pt_call *call, F &&f) {
    constexpr int MOST = 3, DIMS = 5;
    pt_view in[MOST], out = call->out[0];
    int64_t strides[MOST][DIMS], from[MOST + 1] = {0};
    for (int i = 0; i < call->nin; ++i)
        from[i + 1] = from[i] + (call->in[i].dtype == PT_NONE ? 0 : call->in[i].numel);
    scratch<T> wide(from[call->nin]), result(out.numel);
    if (!wide || !result)
        return no_memory(call, (from[call->nin] + out.numel) * int64_t(sizeof(T)));
    for (int i = 0; i < call->nin; ++i) {
        in[i] = call->in[i];
        if (in[i].dtype == PT_NONE) continue;
        const memory_order order(in[i].ndim, in[i].ndim > 3 && channels_last(in[i]));
        space<1> all;
        for (int k = 0; k < in[i].ndim; ++k)
            all.push(in[i].sizes[order[k]], {in[i].strides[order[k]]});
        int64_t step[1];
        const int64_t n = all.pop(step), rows = in[i].numel ? all.numel() : 0;
        const S *source = input<S>(call, i);
        T *to = wide.data + from[i];
        parallel_for(rows, grain_rows(n), [&](int64_t begin, int64_t end) {
            cursor<1> at(all, begin);
            for (int64_t r = begin; r < end; ++r, at.next())
                load(to + r * n, source + at.offset[0], n == 1 ? 1 : step[0], n);
        });
        int64_t stride = 1;
        for (int k = in[i].ndim - 1; k >= 0; --k) {
            strides[i][order[k]] = stride;
            stride *= in[i].sizes[order[k]];
        }
        in[i].data = reinterpret_cast<char *>(to);
        in[i].strides = strides[i];
    }
    out.data = reinterpret_cast<char *>(result.data);
    pt_call on = *call;
    on.in = in;
    on.out = &out;
    if (int status = f(&on, type_tag<T>{})) {
        memcpy(call->error, on.error, sizeof on.error);
        return status;
    }
    parallel_for(out.numel, GRAIN, [&](int64_t begin, int64_t end) {
        store(output<S>(call) + begin, result.data + begin, end - begin);
    });
    return PT_OK;
}
template <class F>
inline int visit_convolution(pt_call *call, F &&f) {
    return visit<INTEGERS | FLOATS | COMPLEXES>(call, call->out[0].dtype, [&](auto tag) {
        using S = PT_TYPE(tag);
        if constexpr (std::is_integral<S>::value)
            return widened<uint64_t, std::make_unsigned_t<S>>(call, f);
        else if constexpr (is_half<S>) return widened<float, S>(call, f);
        else return f(call, tag);
    });
}

/* ---- shapes ------------------------------------------------------------------------------ */

/* One spatial dim. Results of one phase are `phases` apart and use the same taps. */
struct axis {
    int64_t source = 1, result = 1, kernel = 1;
    int64_t step = 1, lead = 0, phases = 1;
    int64_t reach = 0;          /* largest offset of a tap */
    int64_t tail = 0;           /* zeros read after the end of the source */
    int64_t width = 1;        /* positions along this dim of a plane that holds all of the source */
    int64_t planes = 1;
    int64_t cut = 1; /* positions with equal remainders modulo cut share a plane; huge if split */
    int64_t *begin = nullptr;  /* phases + 1 entries: where a phase's taps begin in index, offset */
    int64_t *index = nullptr, *offset = nullptr;
    int64_t *residue = nullptr; /* the remainder modulo cut that each plane holds */

    int64_t count(int64_t phase) const {
        return phase < result ? (result - 1 - phase) / phases + 1 : 0;
    }
    int64_t slot(int64_t position) const {
        int64_t s = 0;
        while (residue[s] != position % cut) ++s;
        return s;
    }
    void divide(int64_t by) {
        cut = by;
        planes = 0;
        for (int64_t i = 0; i < begin[phases]; ++i) {
            int64_t s = 0;
            while (s < planes && residue[s] != offset[i] % cut) ++s;
            if (s == planes) residue[planes++] = offset[i] % cut;
        }
    }
    void finish() {
        divide(step);
        for (int64_t i = 0; i < begin[phases]; ++i) reach = max64(reach, offset[i]);
        tail = max64(0, (count(0) - 1) * step + reach - (lead + source - 1));
        width = step == 1 ? max64(source + max64(lead, tail), count(0))
                          : ceil_div(lead + source + tail, step);
    }
    void split() {
        divide(INT64_MAX);
        width = count(0);
    }
    /* result j reads source j * stride - padding + tap * dilation */
    void correlate(int64_t stride, int64_t padding, int64_t dilation) {
        step = stride;
        lead = padding;
        begin[0] = 0;
        begin[1] = kernel;
        for (int64_t k = 0; k < kernel; ++k) {
            index[k] = k;
            offset[k] = k * dilation;
        }
        finish();
    }
    /* transposed: result i gets source j where i = j * stride - padding + tap * dilation */
    void scatter(int64_t stride, int64_t padding, int64_t dilation) {
        phases = max64(1, min64(stride, result));
        int64_t n = 0;
        for (int64_t phase = 0; phase < phases; ++phase) {
            begin[phase] = n;
            for (int64_t k = 0; k < kernel; ++k) {
                const int64_t d = phase + padding - k * dilation;
                if (d % stride) continue;
                index[n] = k;
                offset[n++] = d / stride;
                lead = max64(lead, -(d / stride));
            }
        }
        begin[phases] = n;
        for (int64_t i = 0; i < n; ++i) offset[i] += lead;
        finish();
    }
};

/* Reads stride, padding and dilation of a call; `lists` holds the lists of all axes. */
struct axes {
    scratch<int64_t> lists;

    axes(axis (&dim)[3], const pt_call *call, const int64_t *source, const int64_t *result,
         const int64_t *kernel, bool transposed)
        : lists(entries(call, result, kernel)) {
        int64_t *at = lists.data;
        for (int d = 0; d < 3 && at; ++d) {
            axis &a = dim[d];
            a.source = source[d];
            a.result = result[d];
            a.kernel = kernel[d];
            const int64_t stride = setting(call, 0, d, 1), padding = setting(call, 1, d, 0),
                          dilation = setting(call, 2, d, 1);
            a.begin = at;
            a.index = at + 2 + min64(stride, result[d] + 1);
            a.offset = a.index + kernel[d];
            a.residue = a.offset + kernel[d];
            at = a.residue + kernel[d];
            if (transposed) a.scatter(stride, padding, dilation);
            else a.correlate(stride, padding, dilation);
        }
    }
    static int64_t entries(const pt_call *call, const int64_t *result, const int64_t *kernel) {
        int64_t n = 0;
        for (int d = 0; d < 3; ++d)
            n += 2 + min64(setting(call, 0, d, 1), result[d] + 1) + 3 * kernel[d];
        return n;
    }
};

/* source (n, groups * channels, ...), result (n, groups * filters, ...), dims depth, height, width
 */
struct geometry {
    int64_t n = 1, groups = 1, channels = 1, filters = 1;
    axis dim[3];

    int64_t taps() const { return dim[0].kernel * dim[1].kernel * dim[2].kernel; }
    int64_t results() const { return dim[0].result * dim[1].result * dim[2].result; }
    int64_t planes() const { return dim[0].planes * dim[1].planes * dim[2].planes; }
};

/* The results with one residue in each dim, and the taps that they use. */
struct phase {
    int64_t at[3], taps;
    phase(const geometry &g, int64_t number) {
        at[2] = number % g.dim[2].phases;
        at[1] = number / g.dim[2].phases % g.dim[1].phases;
        at[0] = number / g.dim[2].phases / g.dim[1].phases;
        taps = 1;
        for (int d = 0; d < 3; ++d) taps *= g.dim[d].begin[at[d] + 1] - g.dim[d].begin[at[d]];
    }
    /* calls f(number of the tap, its indices in the lists of the three dims) */
    template <class F>
    void each(const geometry &g, F &&f) const {
        const axis &a = g.dim[0], &b = g.dim[1], &c = g.dim[2];
        int64_t t = 0;
        for (int64_t i = a.begin[at[0]]; i < a.begin[at[0] + 1]; ++i)
            for (int64_t j = b.begin[at[1]]; j < b.begin[at[1] + 1]; ++j)
                for (int64_t k = c.begin[at[2]]; k < c.begin[at[2] + 1]; ++k) f(t++, i, j, k);
    }
};

inline int check_convolution(pt_call *call, int tensors) {
    for (int i = 0; i < call->nin; ++i) {
        const pt_view &v = call->in[i];
        if (v.dtype == PT_NONE) continue;
        if (v.dtype != call->out[0].dtype)
            return fail(call, PT_RUNTIME_ERROR, "expected operands of one dtype, got %s and %s",
                        DTYPE_NAME[call->out[0].dtype],
                        v.dtype < PT_NDTYPES ? DTYPE_NAME[v.dtype] : "?");
        if (i < tensors && (v.ndim < 3 || v.ndim > 5 || v.ndim != call->out[0].ndim))
            return fail(call, PT_RUNTIME_ERROR, "expected tensors of 3 to 5 dimensions, got %d",
                        v.ndim);
    }
    for (int p = 0; p < 3; ++p)
        for (int i = 0; i < call->out[0].ndim - 2; ++i) {
            const int64_t value = call->params[p].kind == PT_PARAM_INTS &&
                                          call->params[p].count == call->out[0].ndim - 2
                                      ? call->params[p].list[i]
                                      : -1;
            if (value < (p == 1 ? 0 : 1) || value > (int64_t(1) << 40))
                return fail(call, PT_RUNTIME_ERROR, "%s must hold %d numbers of at least %d",
                            p == 0   ? "stride"
                            : p == 1 ? "padding"
                                     : "dilation",
                            call->out[0].ndim - 2, p == 1 ? 0 : 1);
        }
    return PT_OK;
}

/* Whether all positions stay far below the limit of 64-bit integers. */
inline bool reachable(const pt_call *call, const int64_t *source, const int64_t *result,
                      const int64_t *kernel) {
    for (int d = 0; d < 3; ++d) {
        const double most = double(source[d]) + double(result[d]),
                     taps = double(kernel[d]) * double(setting(call, 2, d, 1));
        if (most * double(setting(call, 0, d, 1)) + taps + double(setting(call, 1, d, 0)) > 1e15)
            return false;
    }
    return true;
}

/* ---- planes ------------------------------------------------------------------------------ */

/* The part of the work for one buffer of planes: images [n0, n1) and
 * results [from, to) in each dim. */
struct window {
    int64_t n0, n1;
    int64_t from[3], to[3];
    int64_t extent[3];          /* positions of a plane */
    int64_t image;              /* positions from one image to the next */
    int64_t plane; /* positions of a plane: all images, and the margin that the last tile reads */
};

inline void measure(window &w, const geometry &g, int64_t margin) {
    for (int d = 0; d < 3; ++d) {
        const axis &a = g.dim[d];
        w.extent[d] = d == 2 || w.n1 - w.n0 > 1
                          ? a.width
                          : ((w.to[d] - w.from[d] - 1) * a.step + a.reach) / a.step + 1;
    }
    w.image = w.extent[0] * w.extent[1] * w.extent[2];
    int64_t reach = 0;
    for (int d = 0; d < 3; ++d) reach = reach * w.extent[d] + g.dim[d].reach / g.dim[d].cut;
    w.plane = w.image * (w.n1 - w.n0) + reach + margin;
}

/* Cuts the results into windows whose planes have at most `budget`
 * elements, if that is possible. */
struct tiling {
    int64_t images, rows[3];            /* in one window */
    int64_t blocks[3], image_blocks;    /* number of windows in each dim, and along the batch */

    /* Images share a window until it has `run` positions; rows are cut until there
     * are `least_blocks` windows. */
    tiling(const geometry &g, int64_t budget, int64_t least_blocks, double run) {
        const int64_t per_position = g.channels * g.planes();
        images = 1;
        for (int d = 0; d < 3; ++d) rows[d] = max64(1, g.dim[d].count(0));
        auto size = [&](int64_t depth, int64_t height) {
            const axis &a = g.dim[0], &b = g.dim[1];
            return double(((depth - 1) * a.step + a.reach) / a.step + 1) *
                   double(((height - 1) * b.step + b.reach) / b.step + 1) * double(g.dim[2].width) *
                   double(per_position);
        };
        while (rows[0] > 1 && size(rows[0], rows[1]) > double(budget))
            rows[0] = ceil_div(rows[0], 2);
        while (rows[1] > 1 && size(rows[0], rows[1]) > double(budget))
            rows[1] = ceil_div(rows[1], 2);
        while (rows[1] > 4 && g.n * ceil_div(max64(1, g.dim[1].count(0)), rows[1]) *
                                      ceil_div(max64(1, g.dim[0].count(0)), rows[0]) <
                                  least_blocks)
            rows[1] = ceil_div(rows[1], 2);
        for (int d = 0; d < 3; ++d) blocks[d] = ceil_div(max64(1, g.dim[d].count(0)), rows[d]);
        if (blocks[0] * blocks[1] == 1) {
            const double image =
                double(g.dim[0].width) * double(g.dim[1].width) * double(g.dim[2].width);
            while (images * 2 <= g.n && image * double(images) < run &&
                   image * double(2 * images * per_position) <= double(budget) &&
                   ceil_div(g.n, 2 * images) >= min64(least_blocks, g.n))
                images *= 2;
        }
        image_blocks = ceil_div(g.n, images);
    }
    int64_t count() const { return image_blocks * blocks[0] * blocks[1]; }
    window at(int64_t u, const geometry &g, int64_t margin) const {
        window w;
        const int64_t h = u % blocks[1], d = u / blocks[1] % blocks[0],
                      i = u / blocks[1] / blocks[0];
        w.n0 = i * images;
        w.n1 = min64(g.n, w.n0 + images);
        const int64_t block[3] = {d, h, 0};
        for (int k = 0; k < 3; ++k) {
            w.from[k] = block[k] * rows[k];
            w.to[k] = min64(max64(1, g.dim[k].count(0)), w.from[k] + rows[k]);
        }
        measure(w, g, margin);
        return w;
    }
};

/* Copies one channel of the window's images into its planes, which hold 0 already. Each source row
 * is read once for all planes that it goes to. */
template <class T>
inline void pack_channel(T *to, const window &w, const geometry &g, const batch_view &v,
                         int64_t channel) {
    constexpr int64_t TOGETHER = 8;
    const axis &a = g.dim[0], &b = g.dim[1], &c = g.dim[2];
    const T *source = reinterpret_cast<const T *>(v.data) + channel * v.stride[1];
    const int64_t e1 = w.extent[1], e2 = w.extent[2], step = c.step * v.stride[4];
    /* columns first, first + 1, ... of a plane are source columns left, left + step, ... */
    struct columns {
        int64_t first, left, many;
    } of[TOGETHER];
    for (int64_t pc = 0; pc < c.planes; pc += TOGETHER) {
        const int64_t planes = min64(TOGETHER, c.planes - pc);
        for (int64_t k = 0; k < planes; ++k) {
            const int64_t rc = c.residue[pc + k], first = max64(0, ceil_div(c.lead - rc, c.step)),
                          left = first * c.step + rc - c.lead;
            of[k] = {first, left * v.stride[4],
                     left < c.source ? min64(e2 - first, (c.source - 1 - left) / c.step + 1) : 0};
        }
        for (int64_t n = w.n0; n < w.n1; ++n)
            for (int64_t i = 0; i < w.extent[0]; ++i)
                for (int64_t pa = 0; pa < a.planes; ++pa) {
                    const int64_t si = (w.from[0] + i) * a.step + a.residue[pa] - a.lead;
                    if (si < 0 || si >= a.source) continue;
                    const T *image = source + n * v.stride[0] + si * v.stride[2];
                    T *at = to + (pa * b.planes * c.planes + pc) * w.plane +
                            ((n - w.n0) * w.extent[0] + i) * e1 * e2;
                    if (b.planes * c.planes == 1) {
                        const int64_t s0 = w.from[1] * b.step + b.residue[0] - b.lead,
                                      j0 = s0 < 0 ? ceil_div(-s0, b.step) : 0;
                        const int64_t j1 =
                            s0 < b.source ? min64(e1, (b.source - 1 - s0) / b.step + 1) : 0;
                        const T *from = image + (s0 + j0 * b.step) * v.stride[3] + of[0].left;
                        at += j0 * e2 + of[0].first;
                        for (int64_t j = j0; j < j1 && of[0].many > 0;
                             ++j, at += e2, from += b.step * v.stride[3])
                            load_row(at, from, step, of[0].many);
                        continue;
                    }
                    for (int64_t j = 0; j < e1; ++j, at += e2)
                        for (int64_t pb = 0; pb < b.planes; ++pb) {
                            const int64_t sj = (w.from[1] + j) * b.step + b.residue[pb] - b.lead;
                            if (sj < 0 || sj >= b.source) continue;
                            const T *from = image + sj * v.stride[3];
                            T *row = at + pb * c.planes * w.plane;
                            for (int64_t k = 0; k < planes; ++k, row += w.plane)
                                if (of[k].many > 0)
                                    load_row(row + of[k].first, from + of[k].left, step,
                                             of[k].many);
                        }
                }
    }
}

/* distance of a tap from its position, within the planes of this window */
inline int64_t tap_distance(const window &w, const geometry &g, int64_t da, int64_t db,
                            int64_t dc) {
    const axis &a = g.dim[0], &b = g.dim[1], &c = g.dim[2];
    const int64_t plane = (a.slot(da) * b.planes + b.slot(db)) * c.planes + c.slot(dc);
    return plane * w.plane + ((da / a.cut) * w.extent[1] + db / b.cut) * w.extent[2] + dc / c.cut;
}

/* Whether the source itself can serve as planes: it is dense and needs no padding. Parts of it that
 * no result needs are not read. */
inline bool in_place(const geometry &g, const batch_view &v) {
    if (!v.dense()) return false;
    for (int d = 0; d < 3; ++d)
        if (g.dim[d].cut != 1 || g.dim[d].width != g.dim[d].source || g.dim[d].lead ||
            g.dim[d].tail)
            return false;
    return true;
}

/* Whether the unused positions of a row cost more, in vectors, than a
 * separate plane for each tap. */
inline bool worth_splitting(const geometry &g) {
    const axis &a = g.dim[2];
    const double unused =
        double(a.width - a.count(0)) * double(g.filters) * double(g.taps()) / double(a.phases) / 16;
    return a.count(0) > 0 && unused > 2.0 * double(a.kernel) * (double(a.count(0)) / 8 + 6);
}

} // namespace
#endif
