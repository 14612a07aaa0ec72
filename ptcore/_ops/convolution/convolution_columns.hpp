/* Convolution as matrix products, for small images with many channels and filters: their rows are
 * too short for the planes of convolution.hpp.
 *
 * A row of the matrix (im2col) holds the numbers under one tap of one channel at a run of
 * positions. Only a block is in memory at a time: the rows of some channels at some positions.
 */
#ifndef PTCORE_KERNELS_CONVOLUTION_COLUMNS_HPP
#define PTCORE_KERNELS_CONVOLUTION_COLUMNS_HPP
#include "convolution.hpp"

namespace {

/* A run of positions in one row of the results. */
struct result_row {
    int64_t from, length, n, at[3];
};

/* The results of one phase, image by image, are numbered as positions 0, 1, ... */
struct positions {
    const geometry &g;
    const phase &p;
    int64_t count[3], total;

    positions(const geometry &geo, const phase &ph) : g(geo), p(ph), total(geo.n) {
        for (int d = 0; d < 3; ++d) {
            count[d] = g.dim[d].count(p.at[d]);
            total *= count[d];
        }
    }
    /* Calls f(row) for the rows of positions [begin, end); row.from counts from begin. */
    template <class F>
    void rows(int64_t begin, int64_t end, F &&f) const {
        for (int64_t q = begin; q < end; ) {
            const int64_t column = q % count[2], line = q / count[2],
                          length = min64(count[2] - column, end - q);
            f(result_row{q - begin,
                         length,
                         line / count[1] / count[0],
                         {line / count[1] % count[0], line % count[1], column}});
            q += length;
        }
    }
};

/* to[(c - c0) * taps + t][pitch] = the number under tap t of channel c at positions [begin,
 * end). Numbers outside the source are not written: the caller has zeroed their places, which
 * are the same for every channel. */
template <class T>
inline void pack_columns(T *to, int64_t pitch, const positions &all, int64_t begin, int64_t end,
                         const batch_view &source, int64_t c0, int64_t c1) {
    const geometry &g = all.g;
    const axis &a = g.dim[0], &b = g.dim[1], &c = g.dim[2];
    all.p.each(g, [&](int64_t t, int64_t i, int64_t j, int64_t k) {
        all.rows(begin, end, [&](const result_row &r) {
            const int64_t si = r.at[0] * a.step - a.lead + a.offset[i],
                          sj = r.at[1] * b.step - b.lead + b.offset[j];
            const int64_t sk = r.at[2] * c.step - c.lead + c.offset[k];
            const int64_t first = sk < 0 ? ceil_div(-sk, c.step) : 0,
                          last =
                              sk < c.source ? min64(r.length, (c.source - 1 - sk) / c.step + 1) : 0;
            if (si < 0 || si >= a.source || sj < 0 || sj >= b.source || first >= last) return;
            const T *from = reinterpret_cast<const T *>(source.data) + r.n * source.stride[0] +
                            si * source.stride[2] + sj * source.stride[3] +
                            (sk + first * c.step) * source.stride[4];
            T *at = to + t * pitch + r.from + first;
            for (int64_t channel = c0; channel < c1; ++channel, at += all.p.taps * pitch)
                load_row(at, from + channel * source.stride[1], c.step * source.stride[4],
                         last - first);
        });
    });
}

/* The same matrix transposed, to[position][(c - c0) * taps + t]: the taps of a row are a run of the
 * source. That is faster where positions lie far apart (patches). */
template <class T>
inline void pack_patches(T *to, int64_t pitch, const positions &all, int64_t begin, int64_t end,
                         const batch_view &source, int64_t c0, int64_t c1) {
    const geometry &g = all.g;
    const axis &a = g.dim[0], &b = g.dim[1], &c = g.dim[2];
    all.rows(begin, end, [&](const result_row &r) {
        for (int64_t x = 0; x < r.length; ++x) {
            const int64_t sk = (r.at[2] + x) * c.step - c.lead, first = max64(0, -sk),
                          last = min64(c.kernel, c.source - sk);
            if (first >= last) continue;
            T *at = to + (r.from + x) * pitch;
            for (int64_t channel = c0; channel < c1; ++channel)
                for (int64_t i = 0; i < a.kernel; ++i)
                    for (int64_t j = 0; j < b.kernel; ++j, at += c.kernel) {
                        const int64_t si = r.at[0] * a.step - a.lead + a.offset[i],
                                      sj = r.at[1] * b.step - b.lead + b.offset[j];
                        if (si < 0 || si >= a.source || sj < 0 || sj >= b.source) continue;
                        const T *from = reinterpret_cast<const T *>(source.data) +
                                        r.n * source.stride[0] + channel * source.stride[1] +
                                        si * source.stride[2] + sj * source.stride[3] + sk + first;
                        copy_row(reinterpret_cast<char *>(at + first),
                                 reinterpret_cast<const char *>(from),
                                 size_t(last - first) * sizeof(T));
                    }
        }
    });
}
inline bool are_patches(const geometry &g, const batch_view &source) {
    const axis &c = g.dim[2];
    return c.step > 2 && source.stride[4] == 1 && (c.kernel == 1 || c.offset[1] == c.offset[0] + 1);
}

/* How many channels make a block of about GEMM_DEPTH rows. */
inline int64_t channels_together(const geometry &g, int64_t taps) {
    return max64(1, min64(g.channels, GEMM_DEPTH / max64(1, taps)));
}

} // namespace
#endif
