/* How views are walked together. A plan orders the dimensions of several views of equal sizes by
 * the output's strides, drops and merges dimensions, and chooses a walk over the innermost one
 * (rows) or two (blocks). Strided data moves through small contiguous tiles.
 *
 * Strides here are in bytes. Operand 0 is the output; its strides are positive after planning
 * and its innermost one is the smallest. Elements are visited in no promised order. Outputs whose
 * elements may share memory are the exception: they are visited in row-major order, by one thread,
 * so that the last element counts, and their strides stay as they are.
 */
#ifndef PTCORE_ELEMENTWISE_HPP
#define PTCORE_ELEMENTWISE_HPP
#include "ptcore/config.h"
#include "copy_run.hpp"
#include "loops.h"
#include "parallel.hpp"
#if defined(__SSE2__)
#include <emmintrin.h>
#include <xmmintrin.h>
#endif

namespace pt { namespace {

enum { MAX_OPERANDS = PT_MAX_ELEMENTWISE_INPUTS + 1, BLOCK_SIDE = 32, TILE_BYTES = 4096 };

constexpr int64_t ITEMSIZE[PT_NDTYPES] = {1, 1, 1, 2,  2, 4, 4, 8, 8, 2, 2,
                                          4, 8, 8, 16, 1, 1, 1, 1, 1, 4};

struct plan {
    int operands, ndim;                         /* ndim >= 1 */
    int64_t numel;
    int64_t size[PT_MAX_DIM];                   /* dimension 0 is the innermost */
    int64_t stride[MAX_OPERANDS][PT_MAX_DIM];
    char *data[MAX_OPERANDS];
    int64_t tile;                               /* number of elements in a tile */
    bool ordered;                               /* in row-major order, by one thread */
    bool blocks;                                /* walk dimensions 0 and 1 together, in blocks */
    int64_t rows, columns;                      /* size of a block along dimensions 1 and 0 */
};

inline void swap_dims(plan *p, int a, int b) {
    int64_t t = p->size[a]; p->size[a] = p->size[b]; p->size[b] = t;
    for (int k = 0; k < p->operands; k++) {
        t = p->stride[k][a]; p->stride[k][a] = p->stride[k][b]; p->stride[k][b] = t;
    }
}

inline int64_t magnitude(int64_t x) { return x < 0 ? -x : x; }

/* Blocks are faster where an operand's smallest stride is along another dimension than the output's
 * (that dimension then becomes number 1), and where rows are short. */
inline void choose_walk(plan *p) {
    p->blocks = false;
    if (p->ndim < 2 || p->ordered) return;
    for (int k = 1; k < p->operands && !p->blocks; k++) {
        int64_t inner = magnitude(p->stride[k][0]);
        if (inner < 32 || p->size[0] < 4) continue;
        int best = 0;
        for (int d = 1; d < p->ndim; d++) {
            int64_t s = magnitude(p->stride[k][d]);
            if (s && s < magnitude(p->stride[k][best]) && p->size[d] >= 4) best = d;
        }
        if (!best || 2 * magnitude(p->stride[k][best]) > inner) continue;
        p->blocks = true;
        swap_dims(p, 1, best);
    }
    if (p->blocks) {
        p->columns = p->size[0] < BLOCK_SIDE ? p->size[0] : (int64_t)BLOCK_SIDE;
        p->rows = p->tile / p->columns < BLOCK_SIDE ? p->tile / p->columns : (int64_t)BLOCK_SIDE;
    } else if (p->size[0] < 2 * BLOCK_SIDE) {
        p->blocks = true;
        p->columns = p->size[0];
        p->rows = p->tile / p->columns;
    }
    if (p->blocks && p->rows > p->size[1]) p->rows = p->size[1];
}

/* Takes the dimensions of the views, sorted by the output's stride, each of which becomes positive;
 * in an ordered plan they stay as they are. */
inline void take_dims(plan *p, const pt_view *const *views, int operands, const int64_t *item) {
    const pt_view *out = views[0];
    p->ndim = 0;
    for (int k = 0; k < operands; k++) p->data[k] = views[k]->data;
    for (int d = out->ndim - 1; d >= 0; d--) {
        if (out->sizes[d] == 1) continue;
        int e = p->ndim++;
        p->size[e] = out->sizes[d];
        bool flip = out->strides[d] < 0 && !p->ordered;
        for (int k = 0; k < operands; k++) {
            int64_t s = views[k]->strides[d] * item[k];
            if (flip) { p->data[k] += s * (p->size[e] - 1); s = -s; }
            p->stride[k][e] = s;
        }
        /* insertion sort; equal strides keep their order */
        if (!p->ordered)
            for (; e > 0 && p->stride[0][e] < p->stride[0][e - 1]; e--) swap_dims(p, e, e - 1);
    }
}

/* Whether elements of the output may share memory: a sorted dimension begins within the others. */
inline bool may_overlap(const plan *p, int64_t item) {
    int64_t reach = item;
    for (int d = 0; d < p->ndim; d++) {
        if (p->stride[0][d] < reach) return true;
        reach += (p->size[d] - 1) * p->stride[0][d];
    }
    return false;
}

/* views[0] is the output; `widest` is the largest element size that a tile will hold. For empty
 * views the plan is empty (numel 0). */
inline void make_plan(plan *p, const pt_view *const *views, int operands, int64_t widest) {
    const pt_view *out = views[0];
    p->operands = operands;
    p->numel = out->numel;
    p->tile = TILE_BYTES / widest;
    p->ordered = false;
    int64_t item[MAX_OPERANDS];
    for (int k = 0; k < operands; k++) {
        item[k] = ITEMSIZE[views[k]->dtype];
        if (item[k] > widest) widest = item[k];
    }
    if (p->numel == 0) return;
    take_dims(p, views, operands, item);
    p->ordered = may_overlap(p, item[0]);
    if (p->ordered) take_dims(p, views, operands, item);
    int last = 0;
    for (int d = 1; d < p->ndim; d++) {
        bool merge = true;
        for (int k = 0; k < operands; k++)
            merge &= p->stride[k][d] == p->stride[k][last] * p->size[last];
        if (merge) { p->size[last] *= p->size[d]; continue; }
        last++;
        p->size[last] = p->size[d];
        for (int k = 0; k < operands; k++) p->stride[k][last] = p->stride[k][d];
    }
    if (p->ndim) p->ndim = last + 1;
    else {
        p->ndim = 1;
        p->size[0] = 1;
        for (int k = 0; k < operands; k++) p->stride[k][0] = item[k];
    }
    if (p->ndim == 1) {                         /* one row; workers may treat it as a block */
        for (int k = 0; k < operands; k++) p->stride[k][1] = 0;
    }
    choose_walk(p);
}

/* A position in the dimensions from `first` up: the pointers of all operands,
 * moved one step at a time. */
struct cursor {
    const plan *p;
    int first;
    int64_t index[PT_MAX_DIM];
    char *ptr[MAX_OPERANDS];

    cursor(const plan *plan_, int first_, int64_t position) : p(plan_), first(first_) {
        for (int k = 0; k < p->operands; k++) ptr[k] = p->data[k];
        for (int d = first; d < p->ndim; d++) {
            index[d] = position % p->size[d];
            position /= p->size[d];
            for (int k = 0; k < p->operands; k++) ptr[k] += index[d] * p->stride[k][d];
        }
    }
    void step() {
        for (int d = first; d < p->ndim; d++) {
            if (++index[d] < p->size[d]) {
                for (int k = 0; k < p->operands; k++) ptr[k] += p->stride[k][d];
                return;
            }
            index[d] = 0;
            for (int k = 0; k < p->operands; k++) ptr[k] -= (p->size[d] - 1) * p->stride[k][d];
        }
    }
};

struct bytes16 { uint64_t a, b; };

/* Transposing loads, q[i] of column j to tile[i * c + j], in squares of SIDE elements: as many as
 * a vector or, of bytes, half a vector holds. They load only what squares fill of the block. */
template<class T> constexpr int64_t SIDE = sizeof(T) == 1 ? 8 : 16 / (int64_t)sizeof(T);

#if defined(__SSE2__)
/* Columns that are neighbours are paired, element by element, then pairs of pairs, until a vector
 * holds a row of the square; of bytes, two rows. */
inline void transpose_square(uint8_t *to, int64_t c, const char *q, int64_t stride) {
    const auto column = [&](int j) { return _mm_loadl_epi64((const __m128i *)(q + j * stride)); };
    const auto rows = [&](int i, __m128i v) {
        _mm_storel_epi64((__m128i *)(to + i * c), v);
        _mm_storel_epi64((__m128i *)(to + (i + 1) * c), _mm_unpackhi_epi64(v, v));
    };
    const __m128i a = _mm_unpacklo_epi8(column(0), column(1)),
                  b = _mm_unpacklo_epi8(column(2), column(3)),
                  d = _mm_unpacklo_epi8(column(4), column(5)),
                  e = _mm_unpacklo_epi8(column(6), column(7));
    const __m128i ab = _mm_unpacklo_epi16(a, b), de = _mm_unpacklo_epi16(d, e),
                  ab4 = _mm_unpackhi_epi16(a, b), de4 = _mm_unpackhi_epi16(d, e);
    rows(0, _mm_unpacklo_epi32(ab, de));
    rows(2, _mm_unpackhi_epi32(ab, de));
    rows(4, _mm_unpacklo_epi32(ab4, de4));
    rows(6, _mm_unpackhi_epi32(ab4, de4));
}
inline void transpose_square(uint16_t *to, int64_t c, const char *q, int64_t stride) {
    const auto column = [&](int j) { return _mm_loadu_si128((const __m128i *)(q + j * stride)); };
    const auto row = [&](int i, __m128i v) { _mm_storeu_si128((__m128i *)(to + i * c), v); };
    const __m128i a = column(0), b = column(1), d = column(2), e = column(3), f = column(4),
                  g = column(5), h = column(6), k = column(7);
    for (int half = 0; half < 2; half++) {      /* rows 0 to 3, and 4 to 7 */
        const __m128i ab = half ? _mm_unpackhi_epi16(a, b) : _mm_unpacklo_epi16(a, b),
                      de = half ? _mm_unpackhi_epi16(d, e) : _mm_unpacklo_epi16(d, e),
                      fg = half ? _mm_unpackhi_epi16(f, g) : _mm_unpacklo_epi16(f, g),
                      hk = half ? _mm_unpackhi_epi16(h, k) : _mm_unpacklo_epi16(h, k);
        const __m128i low = _mm_unpacklo_epi32(ab, de), high = _mm_unpacklo_epi32(fg, hk),
                      low2 = _mm_unpackhi_epi32(ab, de), high2 = _mm_unpackhi_epi32(fg, hk);
        row(4 * half, _mm_unpacklo_epi64(low, high));
        row(4 * half + 1, _mm_unpackhi_epi64(low, high));
        row(4 * half + 2, _mm_unpacklo_epi64(low2, high2));
        row(4 * half + 3, _mm_unpackhi_epi64(low2, high2));
    }
}
inline void transpose_square(uint32_t *to, int64_t c, const char *q, int64_t stride) {
    const auto column = [&](int j) { return _mm_loadu_ps((const float *)(q + j * stride)); };
    const auto row = [&](int i, __m128 v) { _mm_storeu_ps((float *)(to + i * c), v); };
    __m128 w = column(0), x = column(1), y = column(2), z = column(3);
    _MM_TRANSPOSE4_PS(w, x, y, z);
    row(0, w);
    row(1, x);
    row(2, y);
    row(3, z);
}
inline void transpose_square(uint64_t *to, int64_t c, const char *q, int64_t stride) {
    const __m128i a = _mm_loadu_si128((const __m128i *)q),
                  b = _mm_loadu_si128((const __m128i *)(q + stride));
    _mm_storeu_si128((__m128i *)to, _mm_unpacklo_epi64(a, b));
    _mm_storeu_si128((__m128i *)(to + c), _mm_unpackhi_epi64(a, b));
}
/* Four columns of eight elements as eight rows of four, which follow one another. */
inline void transpose_four(uint8_t *to, const char *q, int64_t stride) {
    const auto column = [&](int j) { return _mm_loadl_epi64((const __m128i *)(q + j * stride)); };
    const __m128i a = _mm_unpacklo_epi8(column(0), column(1)),
                  b = _mm_unpacklo_epi8(column(2), column(3));
    _mm_storeu_si128((__m128i *)to, _mm_unpacklo_epi16(a, b));
    _mm_storeu_si128((__m128i *)(to + 16), _mm_unpackhi_epi16(a, b));
}
inline void transpose_four(uint16_t *to, const char *q, int64_t stride) {
    const auto column = [&](int j) { return _mm_loadu_si128((const __m128i *)(q + j * stride)); };
    const __m128i a = column(0), b = column(1), d = column(2), e = column(3);
    const __m128i low = _mm_unpacklo_epi16(a, b), low2 = _mm_unpacklo_epi16(d, e),
                  high = _mm_unpackhi_epi16(a, b), high2 = _mm_unpackhi_epi16(d, e);
    _mm_storeu_si128((__m128i *)to, _mm_unpacklo_epi32(low, low2));
    _mm_storeu_si128((__m128i *)(to + 8), _mm_unpackhi_epi32(low, low2));
    _mm_storeu_si128((__m128i *)(to + 16), _mm_unpacklo_epi32(high, high2));
    _mm_storeu_si128((__m128i *)(to + 24), _mm_unpackhi_epi32(high, high2));
}
/* Returns the number of columns that are done, up to the last row that squares fill. */
template<class T>
inline int64_t transpose_squares(T *tile, const char *data, int64_t r, int64_t c, int64_t stride) {
    if constexpr (sizeof(T) <= 2)
        if (c == 4) {
            for (int64_t i = 0; i + 8 <= r; i += 8)
                transpose_four(tile + 4 * i, data + i * (int64_t)sizeof(T), stride);
            return 4;
        }
    for (int64_t j = 0; j + SIDE<T> <= c; j += SIDE<T>)
        for (int64_t i = 0; i + SIDE<T> <= r; i += SIDE<T>)
            transpose_square(tile + i * c + j, c, data + j * stride + i * (int64_t)sizeof(T),
                             stride);
    return c & ~(SIDE<T> - 1);
}
#endif

/* Prefetches the next `c` runs of memory, which the walk's next block reads if there is one: the
 * runs are too short and too far apart for the processor's own prefetch. */
inline void fetch_ahead(const char *data, int64_t bytes, int64_t c, int64_t stride) {
#if defined(__GNUC__)
    for (int64_t j = c; j < 2 * c; j++)
        for (int64_t k = 0; k < bytes; k += 64)
            __builtin_prefetch((const void *)((uintptr_t)data + (uintptr_t)(j * stride + k)), 0, 2);
#else
    (void)data, (void)bytes, (void)c, (void)stride;
#endif
}

/* Moves r rows of c elements between strided memory and a contiguous tile: column by column if the
 * strided side has the smaller stride in that direction, or rows are tiny. */
template<class T, bool LOAD>
void move_block(char *tile_, char *data, int64_t r, int64_t c, int64_t row_stride, int64_t stride) {
    T *tile = (T *)tile_;
    if (r > 1 && (magnitude(row_stride) < magnitude(stride) || c <= 4)) {
        int64_t rows_done = 0, columns_done = 0;
        if (LOAD && row_stride == (int64_t)sizeof(T)) fetch_ahead(data, r * row_stride, c, stride);
#if defined(__SSE2__)
        if constexpr (LOAD && sizeof(T) <= 8)
            if (row_stride == (int64_t)sizeof(T)) {
                columns_done = transpose_squares(tile, data, r, c, stride);
                rows_done = r & ~(SIDE<T> - 1);
            }
#endif
        for (int64_t j = 0; j < c; j++, data += stride) {
            int64_t i = j < columns_done ? rows_done : 0;
            char *q = data + i * row_stride;
            for (; i < r; i++, q += row_stride)
                if (LOAD) tile[i * c + j] = *(const T *)q;
                else *(T *)q = tile[i * c + j];
        }
        return;
    }
    for (int64_t i = 0; i < r; i++, data += row_stride, tile += c) {
        char *q = data;
        if (stride == (int64_t)sizeof(T)) {
            if (LOAD) copy_short((char *)tile, q, (size_t)c * sizeof(T));
            else copy_short(q, (const char *)tile, (size_t)c * sizeof(T));
        } else if (LOAD && stride == 0) {
            T value = *(const T *)q;
            for (int64_t j = 0; j < c; j++) tile[j] = value;
        } else if (LOAD && stride == 2 * (int64_t)sizeof(T)) { /* a constant stride vectorises */
            for (int64_t j = 0; j < c; j++) tile[j] = ((const T *)q)[2 * j];
        } else {
            for (int64_t j = 0; j < c; j++, q += stride)
                if (LOAD) tile[j] = *(const T *)q;
                else *(T *)q = tile[j];
        }
    }
}

template<bool LOAD>
void move_any(char *tile, char *data, int64_t r, int64_t c, int64_t row_stride, int64_t stride,
              int64_t itemsize) {
    switch (itemsize) {
    case 1: return move_block<uint8_t, LOAD>(tile, data, r, c, row_stride, stride);
    case 2: return move_block<uint16_t, LOAD>(tile, data, r, c, row_stride, stride);
    case 4: return move_block<uint32_t, LOAD>(tile, data, r, c, row_stride, stride);
    case 8: return move_block<uint64_t, LOAD>(tile, data, r, c, row_stride, stride);
    default: return move_block<bytes16, LOAD>(tile, data, r, c, row_stride, stride);
    }
}

inline void load_block(char *tile, const char *data, int64_t r, int64_t c, int64_t row_stride,
                       int64_t stride, int64_t itemsize) {
    move_any<true>(tile, const_cast<char *>(data), r, c, row_stride, stride, itemsize);
}
inline void store_block(char *data, const char *tile, int64_t r, int64_t c, int64_t row_stride,
                        int64_t stride, int64_t itemsize) {
    move_any<false>(const_cast<char *>(tile), data, r, c, row_stride, stride, itemsize);
}

/* The number of elements in about 10 us of work, at `cost` ns per 16 elements. */
inline int64_t grain_of(int64_t cost) {
    int64_t n = 160000 / (cost < 1 ? 1 : cost);
    return n < 1024 ? 1024 : n & ~(int64_t)1023;
}

/* Walks the plan, in parallel where that pays. Every range makes its own Worker from op. It calls
 * worker.row(ptr, column, stop) for the elements [column, stop) of the row that starts at ptr, or
 * worker.block(ptr, r, c) for r by c elements from ptr on. */
template<class Worker, class Op> void run_plan(const plan &p, const Op &op, int64_t cost) {
    if (p.numel == 0) return;
    if (!p.blocks) {
        const int64_t grain = p.ordered ? p.numel : grain_of(cost);
        parallel_for(p.numel, grain, [&](int64_t begin, int64_t end) {
            Worker worker(op);
            int64_t n0 = p.size[0], column = begin % n0;
            cursor at(&p, 1, begin / n0);
            for (int64_t left = end - begin; left > 0; at.step(), column = 0) {
                int64_t stop = n0 - column < left ? n0 : column + left;
                left -= stop - column;
                worker.row(at.ptr, column, stop);
            }
        });
        return;
    }
    int64_t across = (p.size[0] + p.columns - 1) / p.columns;
    int64_t down = (p.size[1] + p.rows - 1) / p.rows, plane = across * down;
    int64_t planes = p.numel / (p.size[0] * p.size[1]),
            grain = grain_of(cost) / (p.rows * p.columns);
    parallel_for(planes * plane, grain < 1 ? 1 : grain, [&](int64_t begin, int64_t end) {
        Worker worker(op);
        cursor at(&p, 2, begin / plane);
        for (int64_t b = begin, place = begin % plane; b < end; b++) {
            int64_t i = place / across * p.rows, j = place % across * p.columns;
            char *ptr[MAX_OPERANDS];
            for (int k = 0; k < p.operands; k++)
                ptr[k] = at.ptr[k] + i * p.stride[k][1] + j * p.stride[k][0];
            worker.block(ptr, p.size[1] - i < p.rows ? p.size[1] - i : p.rows,
                         p.size[0] - j < p.columns ? p.size[0] - j : p.columns);
            if (++place == plane) { place = 0; at.step(); }
        }
    });
}

}}  /* namespace pt, unnamed */
#endif
