/* Scaled dot-product attention, forward and backward, in tiles: no (L, S) matrix of a head is made.
 *
 * A tile holds the scores of BLOCK_K keys and up to BLOCK_Q queries, queries side by side, so that
 * the maximum, the sum and the rescaling of the online softmax are vectors over queries, and both
 * products of a tile read keys and values where they lie:
 *      scores^T = K (scale Q)^T        out^T += V^T probabilities^T
 * The forward's tasks are blocks of queries, the backward's are heads of keys; what a task adds
 * up, and in which order, depends on the shapes only. A query whose keys are all masked has the
 * output 0 and the gradient 0.
 *
 * `flex_attention` passes tiles (tiles.h): programs that change the scores of each tile, and the
 * list of keys that each block of queries looks at.
 *
 * Dropout draws the words of `random_bernoulli` for the two numbers in `state`, key and offset; the
 * element at (n, h, l, s) of a contiguous (N, H, L, S) has the same word in the backward.
 */
#include "tiles.h"
#include "gemm.hpp"
#include "rows.hpp"
#include "ptcore/philox.h"

#include <atomic>
#include <limits>

namespace {

constexpr int64_t BLOCK_Q = PT_TILE_QUERIES, BLOCK_K = PT_TILE_KEYS;

/* e^x for x <= 0; results not above the smallest normal number are 0; NaN passes */
template <class E>
PT_INLINE E exp_negative(E x) {
    const E low = sizeof(E) == 4 ? E(-87) : E(-708);
    E n, r = pt::exp_reduce(x < low ? low : x, &n);
    const E y = (E(1) + (r + r * r * pt::exp_tail(r))) * pt::two_to(n);
    return x < low ? E(0) : y;
}

template <class E>
inline typename simd<E>::vector exp_negative_lanes(typename simd<E>::vector v) {
    alignas(64) E lane[simd<E>::width];
    simd<E>::store(lane, v);
    for (int l = 0; l < simd<E>::width; ++l) lane[l] = exp_negative(lane[l]);
    return simd<E>::load(lane);
}
template <class E>
inline int64_t whole(int64_t n) { return ceil_div(n, simd<E>::width) * simd<E>::width; }

/* Calls f(position in the tile, query) for the vectors of a tile of n keys. A tile of one query
 * is walked as one key of n queries (`repeated` has copied the query's numbers n times); its
 * last vector may end behind n. */
template <class E, class F>
inline void over_tile(int64_t n, int64_t ld, F &&f) {
    const int64_t rows = ld == 1 ? 1 : n, width = ld == 1 ? n : ld;
    for (int64_t k = 0; k < rows; ++k)
        for (int64_t i = 0; i < width; i += simd<E>::width) f(k * ld + i, i);
}
template <class E>
inline void repeated(E *x, int64_t n) {
    for (int64_t k = 1; k < whole<E>(n); ++k) x[k] = x[0];
}

/* ---- operands ---------------------------------------------------------------------------- */

/* the matrix (rows, columns) of one head */
struct head {
    const pt_view *v;
    int64_t offset, row, column;
    head(const pt_view &view, int64_t n, int64_t h)
        : v(&view), offset(n * view.strides[0] + h * view.strides[1]), row(view.strides[2]),
          column(view.strides[3]) {}
};
template <class E>
inline bool stored_as(const pt_view &v) {
    return v.dtype == (is_same<E, float> ? PT_FLOAT32 : PT_FLOAT64);
}

/* to[n][ld] = scale times rows [first, first + n), columns beyond `width` are 0 */
template <class E>
PT_NOINLINE void copy_block(E *to, const head &x, int64_t first, int64_t n, int64_t width,
                            int64_t ld, E scale) {
    for (int64_t i = 0; i < n; ++i) {
        E *PT_RESTRICT row = to + i * ld;
        fetch(row, *x.v, x.offset + (first + i) * x.row, x.column, width);
        if (scale != 1)
            for (int64_t j = 0; j < width; ++j) row[j] *= scale;
        for (int64_t j = width; j < ld; ++j) row[j] = 0;
    }
}
/* to[width][ld] = the transposed of `from` (n, ldf), columns beyond n are 0 */
template <class E>
PT_NOINLINE void transpose_block(E *PT_RESTRICT to, int64_t ld, const E *PT_RESTRICT from,
                                 int64_t ldf, int64_t n, int64_t width) {
    constexpr int64_t SIDE = 8;
    for (int64_t p = 0; p < width; p += SIDE)
        for (int64_t i = 0; i < ld; i += SIDE) {
            if (i + SIDE <= n && p + SIDE <= width) {
                E tile[SIDE][SIDE];
                for (int a = 0; a < SIDE; ++a)
                    for (int b = 0; b < SIDE; ++b) tile[b][a] = from[(i + a) * ldf + p + b];
                for (int b = 0; b < SIDE; ++b)
                    memcpy(to + (p + b) * ld + i, tile[b], sizeof tile[b]);
                continue;
            }
            for (int64_t b = p; b < min64(width, p + SIDE); ++b)
                for (int64_t a = i; a < min64(ld, i + SIDE); ++a)
                    to[b * ld + a] = a < n ? from[a * ldf + b] : E(0);
        }
}
/* rows of keys or values as a left operand: in place, or copied when their dtype differs from E
 * or the rows are far apart */
template <class E>
PT_NOINLINE matrix<const E> left_block(E *buffer, const head &x, int64_t first, int64_t n,
                                       int64_t width) {
    if (stored_as<E>(*x.v) && x.column == 1 && x.row >= 0 && x.row * int64_t(sizeof(E)) <= 512)
        return {reinterpret_cast<const E *>(x.v->data) + x.offset + first * x.row, x.row, 1};
    copy_block<E>(buffer, x, first, n, width, width, 1);
    return {buffer, width, 1};
}

/* c = [c +] A (n, k) b for one column: dot products of A's rows with b if the rows are contiguous,
 * else a sum of A's columns */
template <class E>
PT_NOINLINE void multiply_column(int64_t n, int64_t k, const matrix<const E> &a,
                                 const E *PT_RESTRICT b, E *PT_RESTRICT c, bool accumulate) {
    constexpr int W = simd<E>::width;
    if (!accumulate)
        for (int64_t i = 0; i < n; ++i) c[i] = 0;
    if (a.column == 1)
        for (int64_t i = 0; i < n; ++i) {
            const E *row = a.data + i * a.row;
            typename simd<E>::vector acc = simd<E>::fill(E(0));
            int64_t p = 0;
            for (; p + W <= k; p += W) acc += simd<E>::load(row + p) * simd<E>::load(b + p);
            E sum = simd<E>::sum(acc);
            for (; p < k; ++p) sum += row[p] * b[p];
            c[i] += sum;
        }
    else
        for (int64_t p = 0; p < k; ++p) {
            const E *PT_RESTRICT column = a.data + p * a.column;
            for (int64_t i = 0; i < n; ++i) c[i] += column[i * a.row] * b[p];
        }
}
/* C (n, m) = [C +] A (n, k) B (k, m); m is 1 or a multiple of the vector width */
template <class E>
PT_NOINLINE void multiply(int64_t n, int64_t m, int64_t k, const matrix<const E> &a, const E *b,
                          int64_t ldb, E *c, int64_t ldc, bool accumulate) {
    constexpr int W = simd<E>::width, PANEL = OUTER_VECTORS * W;
    if (m == 1) return multiply_column(n, k, a, b, c, accumulate);
    for (int64_t j = 0; j < m; j += PANEL) {
        const int vectors = int(min64(PANEL, m - j) / W);
        for (int64_t i = 0; i < n; i += OUTER_ROWS) {
            const int rows = int(min64(OUTER_ROWS, n - i));
            const outer_kernel<E> kernel = shared_outer<E>(rows, vectors);
            kernel(k, a.data + i * a.row, a.row, a.column, b + j, ldb, c + i * ldc + j, ldc, E(1),
                   accumulate);
        }
    }
}

/* ---- a call ------------------------------------------------------------------------------ */

struct attention {
    int64_t n, h, hk, l, s, e, ev, group;
    const pt_view *q, *k, *v, *mask, *keep;
    bool causal;
    double scale, p;
    uint64_t seed = 0, offset = 0, threshold = 0;
    double survivor = 1;
    const pt_attention_tiles *tiles = nullptr;

    int64_t height() const { return tiles ? tiles->height : BLOCK_Q; }
    bool dropping() const { return threshold != 0; }
    int64_t keys_until(int64_t q_end) const { return causal ? min64(s, q_end) : s; }
    int64_t cost() const { return (e + ev + 16) * s * 4; }
};

/* the width of a tile in queries: 1, or a multiple of the vector width */
template <class E>
inline int64_t width_of(const attention &t) {
    return t.tiles ? t.tiles->width : t.l == 1 ? 1 : min64(BLOCK_Q, whole<E>(t.l));
}

inline bool has_shape(const pt_view &v, int64_t a, int64_t b, int64_t c, int64_t d) {
    return v.ndim == 4 && v.sizes[0] == a && v.sizes[1] == b && v.sizes[2] == c && v.sizes[3] == d;
}

/* in: query, key, value, mask, keep, state from `first` on. A parameter behind the op's own ones
 * is the address of the tiles */
inline int read(pt_call *call, int first, int nparams, attention &t) {
    const pt_view *in = call->in + first;
    const pt_view &q = in[0], &k = in[1], &v = in[2], &state = in[5];
    if (q.ndim != 4 || k.ndim != 4 || v.ndim != 4)
        return fail(call, PT_RUNTIME_ERROR, "expected tensors of 4 dimensions");
    t = {q.sizes[0],
         q.sizes[1],
         k.sizes[1],
         q.sizes[2],
         k.sizes[2],
         q.sizes[3],
         v.sizes[3],
         1,
         &q,
         &k,
         &v,
         in[3].dtype == PT_NONE ? nullptr : &in[3],
         in[4].dtype == PT_NONE ? nullptr : &in[4],
         call->params[0].i != 0,
         call->params[1].d,
         call->params[2].d};
    if (!has_shape(k, t.n, t.hk, t.s, t.e) || !has_shape(v, t.n, t.hk, t.s, t.ev) ||
        (t.h && (!t.hk || t.h % t.hk)))
        return fail(call, PT_RUNTIME_ERROR, "shapes of query, key and value do not agree");
    t.group = t.hk ? t.h / t.hk : 1;
    if (call->nparams > nparams)
        t.tiles = reinterpret_cast<const pt_attention_tiles *>(uintptr_t(call->params[nparams].i));
    for (const pt_view *m : {t.mask, t.keep})
        if (m && !has_shape(*m, t.n, t.h, t.l, t.s))
            return fail(call, PT_RUNTIME_ERROR, "expected a mask of shape (N, H, L, S)");
    if (t.keep && t.keep->dtype != PT_BOOL)
        return fail(call, PT_TYPE_ERROR, "expected a mask of dtype bool");
    for (const pt_view *x : {t.q, t.k, t.v, t.mask})
        if (x && x->dtype != call->out[0].dtype)
            return fail(call, PT_RUNTIME_ERROR, "expected tensors of one dtype");
    if (!(t.p >= 0 && t.p <= 1))
        return fail(call, PT_VALUE_ERROR, "dropout_p must be in [0, 1], got %g", t.p);
    if (t.p > 0) {
        if (state.dtype != PT_INT64 || state.ndim != 1 || state.numel != 2)
            return fail(call, PT_RUNTIME_ERROR, "expected a random state of two int64");
        const int64_t *words = reinterpret_cast<const int64_t *>(state.data);
        t.seed = uint64_t(words[0]);
        t.offset = uint64_t(words[state.strides[0]]);
        t.threshold = uint64_t(ceil(t.p * 4294967296.0));
        t.survivor = t.p == 1 ? 0 : 1 / (1 - t.p);
    }
    return PT_OK;
}

/* to[0...n) = the random words of elements [first, first + n) */
PT_NOINLINE void random_words(uint32_t *to, uint64_t seed, uint64_t offset, int64_t first,
                              int64_t n) {
    constexpr int BLOCKS = BLOCK_K / 4 + 1;
    uint32_t words[4 * BLOCKS];
    const uint64_t block = uint64_t(first) / 4, count = (uint64_t(first + n) + 3) / 4 - block;
    PT_IVDEP
    for (uint64_t i = 0; i < count; ++i) {
        const pt::philox_block w = pt::philox(seed, offset, block + i, 0);
        for (int j = 0; j < 4; ++j) words[4 * i + j] = w.w[j];
    }
    memcpy(to, words + first % 4, size_t(n) * sizeof(uint32_t));
}

/* The position of a tile of scores (batch, head, queries, keys), and which tile program applies. */
struct place {
    int64_t b, h, q0, nq, k0, nk, program;
};

/* The keys that a block of queries looks at, tile by tile. */
class keys_of {
    int64_t k, until;
    const int64_t *span, *last;

public:
    keys_of(const attention &t, const place &at)
        : k(0), until(t.tiles ? 0 : t.keys_until(at.q0 + at.nq)), span(nullptr), last(nullptr) {
        if (!t.tiles) return;
        const pt_attention_tiles &f = *t.tiles;
        const int64_t row = at.b * f.by_batch + at.h * f.by_head + at.q0 / f.rows;
        span = f.spans + 3 * f.first[row];
        last = f.spans + 3 * f.first[row + 1];
    }
    bool next(place &at) {
        while (k >= until) {
            if (span == last) return false;
            k = span[0];
            until = k + span[1];
            at.program = span[2];
            span += 3;
        }
        at.k0 = k;
        at.nk = min64(BLOCK_K, until - k);
        k += at.nk;
        return true;
    }
};

/* runs a program on a tile; `result` gets its output */
template <class E>
PT_NOINLINE void run_program(const pt_score_program &f, const place &at, int64_t count, E *score,
                             E *grad, E *result) {
    char *memory[PT_TILE_BUFFERS];
    for (int k = 0; k < f.count; ++k) {
        const pt_score_operand &o = f.operands[k];
        memory[o.buffer] = const_cast<char *>(o.data) + at.b * o.step[0] + at.h * o.step[1] +
                           at.q0 * o.step[2] + at.k0 * o.step[3];
    }
    if (f.score >= 0) memory[f.score] = reinterpret_cast<char *>(score);
    if (f.grad >= 0) memory[f.grad] = reinterpret_cast<char *>(grad);
    memory[f.result] = reinterpret_cast<char *>(result);
    f.run(f.plan, memory, count);
}

/* z[k][q] = the factor that dropout applies to a probability of the tile */
template <class E>
PT_NOINLINE void dropout_tile(const attention &t, const place &at, E *z, int64_t ld) {
    uint32_t words[BLOCK_K];
    const E survivor = E(t.survivor);
    for (int64_t i = 0; i < at.nq; ++i) {
        random_words(words, t.seed, t.offset, ((at.b * t.h + at.h) * t.l + at.q0 + i) * t.s + at.k0,
                     at.nk);
        for (int64_t k = 0; k < at.nk; ++k)
            z[k * ld + i] = words[k] >= t.threshold ? survivor : E(0);
    }
    for (int64_t k = 0; k < at.nk; ++k)
        for (int64_t i = at.nq; i < ld; ++i) z[k * ld + i] = 0;
}

/* applies mask, keep and causality to the scores of a tile */
template <class E>
PT_NOINLINE void mask_tile(const attention &t, const place &at, E *s, int64_t ld, E *row) {
    const E out = -limits<E>::highest();
    if (t.mask) {
        const head m(*t.mask, at.b, at.h);
        const int64_t first = m.offset + at.q0 * m.row + at.k0 * m.column;
        for (int64_t i = 0; i < at.nq; ++i) {
            if (i == 0 || m.row) fetch(row, *m.v, first + i * m.row, m.column, at.nk);
            if (m.row == 0) break;
            for (int64_t k = 0; k < at.nk; ++k) s[k * ld + i] += row[k];
        }
        if (m.row == 0)
            for (int64_t k = 0; k < at.nk; ++k)
                for (int64_t i = 0; i < ld; ++i) s[k * ld + i] += row[k];
    }
    if (t.keep) {
        const head m(*t.keep, at.b, at.h);
        const uint8_t *keep = reinterpret_cast<const uint8_t *>(m.v->data) + m.offset +
                              at.q0 * m.row + at.k0 * m.column;
        if (m.row == 0) {
            for (int64_t k = 0; k < at.nk; ++k)
                if (!keep[k * m.column])
                    for (int64_t i = 0; i < ld; ++i) s[k * ld + i] = out;
        }
        else {
            uint8_t flags[BLOCK_K * BLOCK_Q] = {};    /* transposed as bytes, which stay in cache */
            for (int64_t i = 0; i < at.nq; ++i)
                for (int64_t k = 0; k < at.nk; ++k)
                    flags[k * ld + i] = keep[i * m.row + k * m.column];
            PT_IVDEP
            for (int64_t i = 0; i < at.nk * ld; ++i) s[i] = flags[i] ? s[i] : out;
        }
    }
    if (t.causal)
        for (int64_t k = max64(0, at.q0 + 1 - at.k0); k < at.nk; ++k)
            for (int64_t i = 0; i < min64(ld, at.k0 + k - at.q0); ++i) s[k * ld + i] = out;
}

/* the scores of a tile: in s[nk][ld], or in `changed` if a program changes them */
template <class E>
inline E *score_tile(const attention &t, const place &at, const matrix<const E> &keys, const E *qt,
                     E *s, int64_t ld, E *row, E *changed) {
    multiply<E>(at.nk, ld, t.e, keys, qt, ld, s, ld, false);
    if (t.tiles) {
        const pt_score_program &f = t.tiles->score[at.program];
        if (!f.plan) return s;
        run_program<E>(f, at, at.nk * ld, s, nullptr, changed);
        return changed;
    }
    if (t.mask || t.keep || (t.causal && at.k0 + at.nk > at.q0 + 1)) mask_tile(t, at, s, ld, row);
    return s;
}

/* s[k][i] = e^(s[k][i] - shift[i]), and the sums of these over k */
template <class E>
PT_NOINLINE void exp_tile(E *s, int64_t nk, int64_t ld, E *shift, E *sum) {
    using V = simd<E>;
    for (int64_t i = 0; i < BLOCK_K; ++i) sum[i] = 0;
    if (ld == 1) repeated(shift, nk);
    over_tile<E>(nk, ld, [=](int64_t k, int64_t i) {
        const typename V::vector e = exp_negative_lanes<E>(V::load(s + k) - V::load(shift + i));
        V::store(s + k, e);
        V::store(sum + i, V::load(sum + i) + e);
    });
    if (ld > 1) return;
    typename V::vector total = V::fill(E(0));
    for (int64_t i = nk; i < BLOCK_K; ++i) sum[i] = 0;
    for (int64_t i = 0; i < BLOCK_K; i += V::width) total += V::load(sum + i);
    sum[0] = V::sum(total);
}
/* delta[i] = the sum of s[k][i] * ds[k][i] over k */
template <class E>
PT_NOINLINE void delta_tile(const E *s, const E *ds, int64_t nk, int64_t ld, E *delta) {
    using V = simd<E>;
    for (int64_t i = 0; i < BLOCK_K; ++i) delta[i] = 0;
    over_tile<E>(nk, ld, [=](int64_t k, int64_t i) {
        V::store(delta + i, V::load(delta + i) + V::load(s + k) * V::load(ds + k));
    });
    if (ld > 1) return;
    E total = 0;
    for (int64_t i = 0; i < nk; ++i) total += delta[i];
    delta[0] = total;
    repeated(delta, nk);
}
template <class E>
PT_NOINLINE void multiply_tile(E *PT_RESTRICT s, const E *PT_RESTRICT z, int64_t count) {
    for (int64_t i = 0; i < count; ++i) s[i] *= z[i];
}

/* ---- forward ----------------------------------------------------------------------------- */

template <class E>
inline int forward(pt_call *call, const attention &t) {
    const int64_t ld = width_of<E>(t), height = t.height(), blocks = ceil_div(t.l, height);
    const int64_t nk = whole<E>(min64(BLOCK_K, t.s)), wide = max64(t.e, t.ev);
    const int64_t parts[] = {ld * t.e,        t.e * ld,
                             nk * ld,         t.ev * ld,
                             nk * wide,       t.dropping() ? nk * ld : 0,
                             max64(nk, wide), t.tiles ? nk * ld : 0};
    using V = simd<E>;
    int64_t total = 0;
    for (int64_t n : parts) total += ceil_div(n, 16) * 16;
    std::atomic<bool> starved{false};
    parallel_for(
        t.n * t.h * blocks, grain_rows(t.cost() * min64(t.l, height) / 64),
        [&](int64_t begin, int64_t end) {
            scratch<E> space(total);
            if (!space) {
                starved = true;
                return;
            }
            E *piece[8], *next = space.data;
            for (int i = 0; i < 8; next += ceil_div(parts[i++], 16) * 16) piece[i] = next;
            E *rows = piece[0], *qt = piece[1], *ot = piece[3], *buffer = piece[4], *z = piece[5],
              *line = piece[6];
            alignas(64) E top[BLOCK_Q], shift[BLOCK_K], sum[BLOCK_Q], part[BLOCK_K], fade[BLOCK_Q];
            for (int64_t u = begin; u < end; ++u) {
                place at{u / blocks / t.h, u / blocks % t.h, u % blocks * height, 0, 0, 0, 0};
                at.nq = min64(height, t.l - at.q0);
                const head key(*t.k, at.b, at.h / t.group), value(*t.v, at.b, at.h / t.group);
                copy_block<E>(rows, head(*t.q, at.b, at.h), at.q0, at.nq, t.e, t.e, E(t.scale));
                transpose_block<E>(qt, ld, rows, t.e, at.nq, t.e);
                for (int i = 0; i < BLOCK_Q; ++i) {
                    top[i] = limits<E>::lowest();
                    sum[i] = 0;
                }
                memset(ot, 0, size_t(t.ev * ld) * sizeof(E));
                keys_of keys(t, at);
                for (bool first = true; keys.next(at); first = false) {
                    E *s = score_tile<E>(t, at, left_block<E>(buffer, key, at.k0, at.nk, t.e), qt,
                                         piece[2], ld, line, piece[7]);
                    memcpy(shift, top, sizeof top);
                    if (ld == 1)
                        for (int64_t k = 0; k < at.nk; ++k) shift[0] = maximum(shift[0], s[k]);
                    else
                        over_tile<E>(at.nk, ld, [&](int64_t k, int64_t i) {
                            V::store(shift + i, maximum(V::load(shift + i), V::load(s + k)));
                        });
                    for (int i = 0; i < BLOCK_Q; ++i) {
                        const E now = shift[i], from = top[i];
                        top[i] = now;
                        shift[i] = now == limits<E>::lowest() ? E(0) : now;
                        fade[i] = exp_negative(from - shift[i]);
                    }
                    exp_tile<E>(s, at.nk, ld, shift, part);
                    for (int i = 0; i < BLOCK_Q; ++i) sum[i] = sum[i] * fade[i] + part[i];
                    if (t.dropping()) {
                        dropout_tile<E>(t, at, z, ld);
                        multiply_tile<E>(s, z, at.nk * ld);
                    }
                    if (!first)
                        for (int64_t p = 0; p < t.ev; ++p) multiply_tile<E>(ot + p * ld, fade, ld);
                    const matrix<const E> values = left_block<E>(buffer, value, at.k0, at.nk, t.ev);
                    multiply<E>(t.ev, ld, at.nk, values.transposed(), s, ld, ot, ld, !first);
                }
                /* a row with all keys masked stays 0; NaN stays NaN */
                for (int i = 0; i < BLOCK_Q; ++i) fade[i] = sum[i] == 0 ? E(0) : 1 / sum[i];
                for (int64_t p = 0; p < t.ev; ++p) multiply_tile<E>(ot + p * ld, fade, ld);
                const int64_t first = (at.b * t.h + at.h) * t.l + at.q0;
                for (int64_t i = 0; i < at.nq; ++i) {
                    for (int64_t p = 0; p < t.ev; ++p) line[p] = ot[p * ld + i];
                    write(call->out[0], (first + i) * t.ev, line, t.ev);
                    part[i] = sum[i] == 0 ? limits<E>::lowest() : top[i] + pt::log(sum[i]);
                }
                memcpy(reinterpret_cast<E *>(call->out[1].data) + first, part,
                       size_t(at.nq) * sizeof(E));
                if (call->nout > 2)
                    memcpy(reinterpret_cast<E *>(call->out[2].data) + first, top,
                           size_t(at.nq) * sizeof(E));
            }
        });
    return starved ? no_memory(call, total * int64_t(sizeof(E))) : int(PT_OK);
}

int attention_kernel(pt_call *call) {
    attention t;
    if (int status = read(call, 0, 3, t)) return status;
    if (!pt_is(call->out[0].dtype, FLOATS)) return bad_dtype(call, call->out[0].dtype);
    if (t.n * t.h * t.l == 0) return PT_OK;
    return call->out[0].dtype == PT_FLOAT64 ? forward<double>(call, t) : forward<float>(call, t);
}

/* ---- backward ---------------------------------------------------------------------------- */

/* in: gradient, query, key, value, mask, keep, state, out, lse[, gradient of lse]; out: gradients
 * of query, key, value, scores. p = e^(scores - lse), z the dropout factors, d = g . out of a
 * query: dv = (p z)^T g; ds = p (z (g v^T) - d); dq = scale ds k; dk = scale ds^T q. As the
 * derivative of lse by a score is p, the gradient of lse is subtracted from d. A tile program turns
 * ds into the gradient of its input. A half-precision output is too coarse for d: where one tile
 * holds all keys of a query, d is instead the sum over keys of p z (g v^T), the same number.
 *
 * One function: in parts, which get the tiles' matrices by address, it took 11 % more
 * instructions. */
template <class E>
inline int backward(pt_call *call, const attention &t) {
    using V = simd<E>;
    const int64_t ld = width_of<E>(t), height = t.height(), blocks = ceil_div(t.l, height),
                  nk = whole<E>(min64(BLOCK_K, t.s));
    const int64_t we = whole<E>(t.e), wv = whole<E>(t.ev), wide = max64(t.e, t.ev);
    const bool scores = call->out[3].numel > 0;
    const bool own_k = !stored_as<E>(call->out[1]) || we != t.e,
               own_v = !stored_as<E>(call->out[2]) || wv != t.ev;
    const int64_t parts[] = {ld * we,
                             t.e * ld,
                             ld * wv,
                             t.ev * ld,
                             nk * ld,
                             nk * ld,
                             nk * wide,
                             t.e * ld,
                             t.dropping() ? 2 * nk * ld : 0,
                             own_k ? t.s * we : 0,
                             own_v ? t.s * wv : 0,
                             max64(nk, max64(wide, ld)),
                             t.tiles ? 2 * nk * ld : 0};
    int64_t total = 0;
    for (int64_t n : parts) total += ceil_div(n, 16) * 16;
    std::atomic<bool> starved{false};
    parallel_for(
        t.n * t.hk, grain_rows(t.cost() * t.l * t.group / 16), [&](int64_t begin, int64_t end) {
            scratch<E> space(total);
            if (!space) {
                starved = true;
                return;
            }
            E *piece[13], *next = space.data;
            for (int i = 0; i < 13; next += ceil_div(parts[i++], 16) * 16) piece[i] = next;
            E *rows = piece[0], *qt = piece[1], *grad = piece[2], *gt = piece[3],
              *buffer = piece[6], *dqt = piece[7], *z = piece[8], *pz = z + nk * ld,
              *line = piece[11];
            alignas(64) E shift[BLOCK_K], delta[BLOCK_K], part[BLOCK_K], share[BLOCK_K];
            for (int64_t u = begin; u < end; ++u) {
                place at{u / t.hk, 0, 0, 0, 0, 0, 0};
                const int64_t hk = u % t.hk;
                const head key(*t.k, at.b, hk), value(*t.v, at.b, hk);
                E *dk = own_k ? piece[9] : reinterpret_cast<E *>(call->out[1].data) + u * t.s * t.e;
                E *dv =
                    own_v ? piece[10] : reinterpret_cast<E *>(call->out[2].data) + u * t.s * t.ev;
                memset(dk, 0, size_t(t.s * we) * sizeof(E));
                memset(dv, 0, size_t(t.s * wv) * sizeof(E));
                for (int64_t g = 0; g < t.group * blocks; ++g) {
                    at.h = hk * t.group + g / blocks;
                    at.q0 = g % blocks * height;
                    at.nq = min64(height, t.l - at.q0);
                    const head out(call->in[7], at.b, at.h);
                    const int64_t first = (at.b * t.h + at.h) * t.l + at.q0;
                    copy_block<E>(rows, head(*t.q, at.b, at.h), at.q0, at.nq, t.e, we, E(t.scale));
                    transpose_block<E>(qt, ld, rows, we, at.nq, t.e);
                    copy_block<E>(grad, head(call->in[0], at.b, at.h), at.q0, at.nq, t.ev, wv, 1);
                    transpose_block<E>(gt, ld, grad, wv, at.nq, t.ev);
                    const pt_view &lse = call->in[8],
                                  *more = call->nin > 9 && call->in[9].dtype != PT_NONE
                                              ? &call->in[9]
                                              : nullptr;
                    bool away = false;
                    for (int64_t i = 0; i < ld; ++i) {
                        delta[i] = share[i] = 0;
                        shift[i] = limits<E>::highest(); /* no keys, or no query: every
                                                           e^(s - shift) is 0 */
                        if (i >= at.nq) continue;
                        const E top = reinterpret_cast<const E *>(
                            lse.data)[at.b * lse.strides[0] + at.h * lse.strides[1] +
                                      (at.q0 + i) * lse.strides[2]];
                        if (top != limits<E>::lowest()) {
                            shift[i] = top;
                            const E size = std::fabs(top), most = std::numeric_limits<E>::epsilon();
                            away = away || (size > E(1e-5) / most && size < limits<E>::highest());
                        }
                        fetch(line, *out.v, out.offset + (at.q0 + i) * out.row, out.column, t.ev);
                        fold_lanes<add_fold, 1>(grad + i * wv, line, t.ev, E(0), &delta[i],
                                                [](auto a, auto b) { return a * b; });
                        if (more)
                            delta[i] -= reinterpret_cast<const E *>(
                                more->data)[at.b * more->strides[0] + at.h * more->strides[1] +
                                            (at.q0 + i) * more->strides[2]];
                    }
                    /* Of a large lse, rounding has left no digits for the sum of terms, which is
                     * 1 / share. */
                    if (away) {
                        keys_of tiles(t, at);
                        while (tiles.next(at)) {
                            const auto keys = left_block<E>(buffer, key, at.k0, at.nk, t.e);
                            E *s = score_tile<E>(t, at, keys, qt, piece[4], ld, line, piece[12]);
                            exp_tile<E>(s, at.nk, ld, shift, part);
                            for (int64_t i = 0; i < ld; ++i) share[i] += part[i];
                        }
                        for (int64_t i = 0; i < ld; ++i)
                            share[i] = share[i] > 0 ? 1 / share[i] : E(1);
                        if (ld == 1) repeated(share, BLOCK_K);
                    }
                    memset(dqt, 0, size_t(t.e * ld) * sizeof(E));
                    const int64_t until = t.keys_until(at.q0 + at.nq);
                    const bool whole_rows =
                        !t.tiles && until <= BLOCK_K && ITEMSIZE[out.v->dtype] == 2;
                    keys_of tiles(t, at);
                    while (tiles.next(at)) {
                        E *ds = piece[5];
                        multiply<E>(at.nk, ld, t.ev,
                                    left_block<E>(buffer, value, at.k0, at.nk, t.ev), gt, ld, ds,
                                    ld, false);
                        const matrix<const E> keys = left_block<E>(buffer, key, at.k0, at.nk, t.e);
                        E *s = score_tile<E>(t, at, keys, qt, piece[4], ld, line, piece[12]),
                          *p = s;
                        if (t.dropping()) {
                            dropout_tile<E>(t, at, z, ld);
                            multiply_tile<E>(ds, z, at.nk * ld);
                            p = pz;
                        }
                        if (ld == 1) {
                            repeated(shift, at.nk);
                            repeated(delta, at.nk);
                        }
                        over_tile<E>(at.nk, ld, [&](int64_t k, int64_t i) {
                            typename V::vector e =
                                exp_negative_lanes<E>(V::load(s + k) - V::load(shift + i));
                            if (away) e = e * V::load(share + i);
                            V::store(s + k, e);
                            if (!whole_rows)
                                V::store(ds + k, e * (V::load(ds + k) - V::load(delta + i)));
                        });
                        if (whole_rows) {
                            delta_tile<E>(s, ds, at.nk, ld, delta);
                            over_tile<E>(at.nk, ld, [&](int64_t k, int64_t i) {
                                V::store(ds + k,
                                         V::load(s + k) * (V::load(ds + k) - V::load(delta + i)));
                            });
                        }
                        if (p != s) {
                            memcpy(p, s, size_t(at.nk * ld) * sizeof(E));
                            multiply_tile<E>(p, z, at.nk * ld);
                        }
                        if (t.tiles && t.tiles->slope.plan) {
                            run_program<E>(t.tiles->slope, at, at.nk * ld, piece[4], ds,
                                           piece[12] + nk * ld);
                            ds = piece[12] + nk * ld;
                        }
                        if (scores)
                            for (int64_t i = 0; i < at.nq; ++i) {
                                for (int64_t k = 0; k < at.nk; ++k) line[k] = ds[k * ld + i];
                                write(call->out[3], (first + i) * t.s + at.k0, line, at.nk);
                            }
                        multiply<E>(at.nk, wv, at.nq, {p, ld, 1}, grad, wv, dv + at.k0 * wv, wv,
                                    true);
                        multiply<E>(at.nk, we, at.nq, {ds, ld, 1}, rows, we, dk + at.k0 * we, we,
                                    true);
                        multiply<E>(t.e, ld, at.nk, keys.transposed(), ds, ld, dqt, ld, true);
                    }
                    if (scores && until < t.s)
                        for (int64_t i = 0; i < at.nq; ++i) {
                            const int64_t item = ITEMSIZE[call->out[3].dtype];
                            memset(call->out[3].data + ((first + i) * t.s + until) * item, 0,
                                   size_t((t.s - until) * item));
                        }
                    for (int64_t i = 0; i < at.nq; ++i) {
                        for (int64_t p = 0; p < t.e; ++p) line[p] = E(t.scale) * dqt[p * ld + i];
                        write(call->out[0], (first + i) * t.e, line, t.e);
                    }
                }
                for (int64_t k = 0; own_k && k < t.s; ++k)
                    write(call->out[1], (u * t.s + k) * t.e, dk + k * we, t.e);
                for (int64_t k = 0; own_v && k < t.s; ++k)
                    write(call->out[2], (u * t.s + k) * t.ev, dv + k * wv, t.ev);
            }
        });
    return starved ? no_memory(call, total * int64_t(sizeof(E))) : int(PT_OK);
}

int attention_backward_kernel(pt_call *call) {
    attention t;
    if (int status = read(call, 1, 4, t)) return status;
    if (!pt_is(call->out[0].dtype, FLOATS)) return bad_dtype(call, call->out[0].dtype);
    const pt_view &g = call->in[0], &out = call->in[7], &lse = call->in[8];
    if (!has_shape(g, t.n, t.h, t.l, t.ev) || !has_shape(out, t.n, t.h, t.l, t.ev) ||
        lse.ndim != 3 || lse.numel != t.n * t.h * t.l)
        return fail(call, PT_RUNTIME_ERROR,
                    "shapes of gradient, output and log-sum-exp do not agree");
    const bool wide = g.dtype == PT_FLOAT64;
    if (g.dtype != call->out[0].dtype || !pt_is(out.dtype, FLOATS) ||
        (out.dtype == PT_FLOAT64) != wide || lse.dtype != (wide ? PT_FLOAT64 : PT_FLOAT32))
        return fail(call, PT_RUNTIME_ERROR,
                    "dtypes of gradient, output and log-sum-exp do not agree");
    if (t.n * t.hk == 0) return PT_OK;
    return g.dtype == PT_FLOAT64 ? backward<double>(call, t) : backward<float>(call, t);
}

/* ---- randomness -------------------------------------------------------------------------- */

/* true where dropout with probability p keeps an element; the input is the state */
int keep_mask_kernel(pt_call *call) {
    const pt_view &state = call->in[0];
    if (state.dtype != PT_INT64 || state.ndim != 1 || state.numel != 2)
        return fail(call, PT_RUNTIME_ERROR, "expected a random state of two int64");
    const int64_t *words = reinterpret_cast<const int64_t *>(state.data);
    const uint64_t seed = uint64_t(words[0]), offset = uint64_t(words[state.strides[0]]);
    const double p = call->params[0].d;
    if (!(p >= 0 && p <= 1)) return fail(call, PT_VALUE_ERROR, "p must be in [0, 1], got %g", p);
    const uint64_t threshold = uint64_t(ceil(p * 4294967296.0));
    uint8_t *out = output<uint8_t>(call);
    parallel_for(call->out[0].numel, GRAIN, [&](int64_t begin, int64_t end) {
        uint32_t w[BLOCK_K];
        for (int64_t i = begin; i < end; i += BLOCK_K) {
            const int64_t n = min64(BLOCK_K, end - i);
            random_words(w, seed, offset, i, n);
            for (int64_t j = 0; j < n; ++j) out[i + j] = w[j] >= threshold;
        }
    });
    return PT_OK;
}

} // namespace

extern "C" const pt_kernel_entry PT_CAT(pt_kernels_attention_, PT_ISA)[] = {
    {"attention", attention_kernel},
    {"attention_backward", attention_backward_kernel},
    {"keep_mask", keep_mask_kernel},
    {nullptr, nullptr},
};
