// Tiles of attention, for the forward and the three gradients: no matrix of scores is made.
//
// A block owns a tile of queries (FORWARD, QUERY) or keys (KEY, VALUE) of one head, and up to two
// stages of columns of its result. It walks through tiles of the other rows (keys or queries).
// Products of owned and other rows are scores; the scores become weights; the sums of weights times
// other rows are kept in registers:
//      FORWARD  out = e^(scores - top) z values            VALUE  dv = (p z)^T g
//      QUERY    dq = ds keys                               KEY    dk = ds^T queries
// with p = e^(scores - lse) (times the query's share, see share_of), z the factors of dropout and
// ds = p (z (g v^T) - delta). The terms of a sum and their order depend on the shapes alone: there
// are no atomics, and the block that owns the keys of a group walks through all query heads of the
// group. Where queries are few, a block has a range of the keys (the ranges depend on the device's
// size as well), and the kernel attention_combine combines the results of the ranges.
//
// 16 lanes share a line of the owned tile, and a block works on 8 lines at once: thread (x, y) has
// the scores of lines y, y + 8, ... with other rows 4 x to 4 x + 3. Products are multiply-adds in
// the op-math type; a path by matrix instructions would replace `multiply` and `add_product` alone.
// Loops over a thread's lines are unrolled, because they index registers.
#pragma once
#include "pack.cuh"
#include "attention_args.h"
#include "ptcore/philox.h"

namespace {

typedef PT_T T;
typedef opmath<T>::type C;

enum Kind { FORWARD, QUERY, KEY, VALUE };
enum {
    THREADS = PT_ATTENTION_THREADS,
    LANES = 16,
    LINES = THREADS / LANES,
    TILE = PT_ATTENTION_TILE
};
enum {
    PACK = 16 / sizeof(C),
    PITCH = PT_ATTENTION_ODD(TILE / PACK) * PACK,
    ACROSS = TILE / (LANES * PACK)
};
enum {
    ROWS = sizeof(C) == 8 ? 4 : 8
};    // lines of the owned tile for each thread, if there are many queries
typedef Elements<C, PACK> Pack;
typedef Elements<C, 4> Pack4;

PT_DEVICE int lane() { return threadIdx.x % LANES; }
PT_DEVICE int line() { return threadIdx.x / LANES; }
PT_DEVICE int at_most(int64_t n, int most) { return n < most ? (int)n : most; }

// Positions of lines in shared memory: `odd` elements lead from an even line to the next line,
// `pair` elements to the next even line.
struct Lines {
    int odd, pair;
    PT_DEVICE_MEMBER int of(int r) const { return (r >> 1) * pair + (r & 1) * odd; }
    PT_DEVICE_MEMBER int step() const {
        return LINES / 2 * pair;
    }    // from a thread's line to its next line
};
PT_DEVICE Lines owned_lines(int width) {
    const int packs = (width + PACK - 1) / PACK;
    return Lines{PT_ATTENTION_ODD(packs) * PACK, PT_ATTENTION_PAIR(packs) * PACK};
}

// ---- tiles in shared memory ---------------------------------------------------------------------

// Loads `rows` lines of `width` columns, times a factor, from rows `stride` elements apart. The
// first `there` lines exist; further lines, and columns that fill the last pack, become 0. BY_LANE:
// row 4 x + j becomes line 16 j + x, so that neighbouring lanes read neighbouring lines.
template <bool BY_LANE, int N>
PT_DEVICE void fetch_packs(C *to, Lines lines, const T *from, int64_t stride, int rows, int there,
                           int width, C factor) {
    constexpr int AT_ONCE = 4;
    const int packs = N == 1 ? (width + PACK - 1) / PACK * PACK : width / N;
    const int down = THREADS / packs, over = THREADS % packs;
    int r = threadIdx.x / packs, c = threadIdx.x % packs;
    while (r < rows) {
        Elements<T, N> x[AT_ONCE];
        C *place[AT_ONCE];
        for (int u = 0; u < AT_ONCE; u++) {
            if (r < there && c * N < width) x[u] = load_pack<N>(from + r * stride + c * N);
            else x[u] = Elements<T, N>{};
            place[u] = r < rows ? to + lines.of(BY_LANE ? (r & 3) * LANES + (r >> 2) : r) + c * N
                                : nullptr;
            r += down, c += over;
            if (c >= packs) c -= packs, r++;
        }
        for (int u = 0; u < AT_ONCE; u++) {
            if (!place[u]) continue;
            if constexpr (N == 1) {
                *place[u] = up(x[u].v[0]) * factor;
            } else {
                for (int k = 0; k < N; k += PACK) {
                    Pack p;
                    for (int v = 0; v < PACK; v++) p.v[v] = up(x[u].v[k + v]) * factor;
                    store_pack<PACK>(place[u] + k, p);
                }
            }
        }
    }
}
template <bool BY_LANE>
PT_NOINLINE void fetch(C *to, Lines lines, const T *from, int64_t stride, bool packed, int rows,
                       int there, int width, C factor) {
    if (width == 0) return;
    if (packed)
        fetch_packs<BY_LANE, vector_of<T>::size>(to, lines, from, stride, rows, there, width,
                                                 factor);
    else fetch_packs<BY_LANE, 1>(to, lines, from, stride, rows, there, width, factor);
}

// Loads TILE other rows over the previous ones.
template <bool BY_LANE>
PT_DEVICE void stage_rows(C *stage, const T *from, const AttentionOperand &o, int there,
                          int width) {
    __syncthreads();
    fetch<BY_LANE>(stage, Lines{PITCH, 2 * PITCH}, from, o.row, o.packed, TILE, there, width, C(1));
    __syncthreads();
}

PT_DEVICE const T *head_of(const AttentionOperand &o, int64_t n, int64_t h) {
    return reinterpret_cast<const T *>(o.data) + n * o.n + h * o.h;
}

// ---- products -----------------------------------------------------------------------------------

// sum[i][j] += line i of the owned tile times this thread's other row j, over the staged
// columns.
template <int R> PT_DEVICE void multiply(C (&sum)[R][4], const C *own, Lines lines, const C *stage,
                                         int width) {
    own += lines.of(line()), stage += lane() * PITCH;
#pragma unroll 1
    for (int e = 0; e < width; e += PACK) {
        Pack left[R];
        for (int i = 0; i < R; i++) left[i] = load_pack<PACK>(own + i * lines.step() + e);
        for (int j = 0; j < 4; j++) {
            const Pack right = load_pack<PACK>(stage + j * LANES * PITCH + e);
            for (int i = 0; i < R; i++)
                for (int v = 0; v < PACK; v++) sum[i][j] += left[i].v[v] * right.v[v];
        }
    }
}

// sum[p][i] += weights of line i times staged columns, a pack for each p.
template <int R> PT_DEVICE void add_product(C (&sum)[ACROSS][R][PACK], const C *weights,
                                            const C *stage, int there) {
    const Lines lines = owned_lines(TILE);
    weights += lines.of(line()), stage += lane() * PACK;
#pragma unroll 1
    for (int k = 0; k < there; k += PACK) {
        Pack left[R];
        for (int i = 0; i < R; i++) left[i] = load_pack<PACK>(weights + i * lines.step() + k);
        for (int o = 0; o < PACK; o++)
            for (int p = 0; p < ACROSS; p++) {
                const Pack right = load_pack<PACK>(stage + (k + o) * PITCH + p * LANES * PACK);
                for (int i = 0; i < R; i++)
                    for (int v = 0; v < PACK; v++) sum[p][i][v] += left[i].v[o] * right.v[v];
            }
    }
}

// sum = products of the owned tile and TILE other rows, over all columns.
template <int R>
PT_DEVICE void product(C (&sum)[R][4], const C *own, Lines lines, C *stage, const T *other,
                       const AttentionOperand &o, int there, int width) {
    for (int i = 0; i < R; i++)
        for (int j = 0; j < 4; j++) sum[i][j] = 0;
    for (int e = 0; e < width; e += TILE) {
        const int n = at_most(width - e, TILE);
        stage_rows<true>(stage, other + e, o, there, n);
        multiply<R>(sum, own + e, lines, stage, n);
    }
}

// ---- scores -------------------------------------------------------------------------------------

// A head of queries: its masks, the number of its first score, and the seed and offset of dropout.
struct Head {
    const T *mask;
    const uint8_t *keep;
    int64_t first;
    uint64_t seed, offset;
};
PT_DEVICE Head masks_of(const AttentionArgs &a, int64_t n, int64_t h) {
    Head r = {nullptr, nullptr, (n * a.heads + h) * a.l * a.s, 0, 0};
    if (a.mask) r.mask = static_cast<const T *>(a.mask) + n * a.mask_step[0] + h * a.mask_step[1];
    if (a.keep) r.keep = a.keep + n * a.keep_step[0] + h * a.keep_step[1];
    if (a.threshold) r.seed = (uint64_t)a.state[0], r.offset = (uint64_t)a.state[a.state_step];
    return r;
}

// Masks the scores of query q with key k and of N - 1 more: the next keys or, BY_KEY, queries.
template <bool BY_KEY, int N>
PT_NOINLINE Elements<C, N> masked(const AttentionArgs &a, const Head &head, int64_t q, int64_t k,
                                  Elements<C, N> score) {
    for (int j = 0; j < N; j++) {
        const bool there = q < a.l && k < a.s;
        if (there && head.mask)
            score.v[j] += up(head.mask[q * a.mask_step[2] + k * a.mask_step[3]]);
        if (!there || (a.causal && k > q) ||
            (head.keep && !head.keep[q * a.keep_step[2] + k * a.keep_step[3]]))
            score.v[j] = -pt::infinity<C>();
        if (BY_KEY) q++;
        else k++;
    }
    return score;
}

PT_DEVICE uint32_t word(const pt::philox_block &b, unsigned i) {
    return i == 0 ? b.w[0] : i == 1 ? b.w[1] : i == 2 ? b.w[2] : b.w[3];
}

// The factors by which dropout multiplies the probabilities of scores `at`, `at` + step, ... (N);
// step is 1 or large.
template <int N>
PT_NOINLINE Elements<C, N> survivors(const AttentionArgs &a, uint64_t seed, uint64_t offset,
                                     int64_t at, int64_t step) {
    Elements<C, N> z;
    const C survivor = (C)a.survivor;
    pt::philox_block b = {};
    for (int j = 0; j < N; j++) {
        const uint64_t i = (uint64_t)(at + j * step);
        if (j == 0 || step != 1 || i % 4 == 0) b = pt::philox(seed, offset, i / 4, 0);
        z.v[j] = word(b, (unsigned)(i % 4)) >= a.threshold ? survivor : C(0);
    }
    return z;
}

// The log-sum-exp that is subtracted from a query's scores. It is infinite for a query without
// keys, so that the query's probabilities are 0.
PT_DEVICE C shift_of(const AttentionArgs &a, int64_t first, int64_t q) {
    const C lse = q < a.l ? static_cast<const C *>(a.lse)[first + q] : -pt::infinity<C>();
    return lse == -pt::infinity<C>() ? pt::infinity<C>() : lse;
}
PT_DEVICE C delta_of(const AttentionArgs &a, int64_t first, int64_t q) {
    return q < a.l ? static_cast<const C *>(a.delta)[first + q] : C(0);
}

PT_DEVICE C share_at(const AttentionArgs &a, int64_t first, int64_t q) {
    return q < a.l ? static_cast<const C *>(a.share)[first + q] : C(1);
}

// ---- a block ------------------------------------------------------------------------------------

// One function: its stages share sums in registers and the places of tiles in shared memory.
template <Kind KIND, int R, int STAGES> PT_DEVICE void attend(const AttentionArgs &a, C *memory) {
    constexpr bool BY_KEY = KIND == KEY || KIND == VALUE, SLOPE = KIND == QUERY || KIND == KEY;
    constexpr bool OF_VALUES =
        KIND == FORWARD || KIND == VALUE;    // the rows that are added up are values or g
    constexpr bool SPLIT = KIND == FORWARD && R == 1;                   // few queries
    constexpr int OWN = LINES * R;
    const int x = lane(), y = line(), width = OF_VALUES ? a.v : a.e;
    const int64_t count = BY_KEY ? a.s : a.l;
    // A grid has fewer than 2**31 blocks, and each number below is smaller than that.
    const unsigned rest = blockIdx.x / (unsigned)a.blocks, piece = rest / (unsigned)a.parts,
                   part = rest - piece * (unsigned)a.parts;
    const unsigned split = SPLIT ? piece / (unsigned)a.all : 0,
                   number = piece - split * (unsigned)a.all;
    const unsigned heads = (unsigned)(BY_KEY ? a.held : a.heads), n = number / heads,
                   h = number - n * heads;
    int64_t block = blockIdx.x - rest * (unsigned)a.blocks;
    if (!BY_KEY)
        block = a.blocks - 1 - block;    // if causal, the queries with the most keys come first
    const int64_t own = block * OWN, column = part * STAGES * TILE;
    const int here = at_most(count - own, OWN);

    const Lines keyed = owned_lines(a.e), valued = owned_lines(a.v), weighted = owned_lines(TILE);
    C *const left = memory, *const right = left + OWN / 2 * keyed.pair;
    C *const stage = right + (SLOPE ? OWN / 2 * valued.pair : 0), *const weights =
                                                                      stage + TILE * PITCH;
    const AttentionOperand &mine = BY_KEY ? a.key : a.query, &my_values = BY_KEY ? a.value : a.g;
    const AttentionOperand &others = BY_KEY ? a.query : a.key,
                           &their_values = BY_KEY ? a.g : a.value;
    fetch<false>(left, keyed, head_of(mine, n, h) + own * mine.row, mine.row, mine.packed, OWN,
                 here, a.e, (C)a.scale);
    if (SLOPE)
        fetch<false>(right, valued, head_of(my_values, n, h) + own * my_values.row, my_values.row,
                     my_values.packed, OWN, here, a.v, C(1));

    C sum[STAGES][ACROSS][R][PACK] = {};
    C top[R], total[R];    // FORWARD: maximum and sum so far; QUERY: shift and delta
#pragma unroll
    for (int i = 0; i < R; i++) {
        top[i] = -pt::infinity<C>(), total[i] = 0;
        if (KIND != QUERY) continue;
        top[i] = shift_of(a, number * a.l, own + y + i * LINES);
        total[i] = delta_of(a, number * a.l, own + y + i * LINES);
    }
    for (int64_t m = 0; m < (BY_KEY ? a.group : 1); m++) {
        const int64_t hq = BY_KEY ? h * a.group + m : h, hk = BY_KEY ? h : h / (unsigned)a.group;
        const int64_t first = (n * a.heads + hq) * a.l;
        const Head head = masks_of(a, n, hq);
        const T *other = head_of(others, n, BY_KEY ? hq : hk),
                *values = head_of(their_values, n, BY_KEY ? hq : hk);
        const int64_t from =
            BY_KEY && a.causal ? own : split * a.chunk;    // earlier queries do not see the key
        int64_t until = BY_KEY ? a.l : a.causal && own + here < a.s ? own + here : a.s;
        if (SPLIT && from + a.chunk < until) until = from + a.chunk;
        for (int64_t o = from; o < until; o += TILE) {
            const int there = at_most(until - o, TILE);
            C s[R][4], d[R][4];
            product<R>(s, left, keyed, stage, other + o * others.row, others, there, a.e);
            if (SLOPE)
                product<R>(d, right, valued, stage, values + o * their_values.row, their_values,
                           there, a.v);
            const bool crossed = a.causal && (BY_KEY ? own + OWN > o + 1 : o + TILE > own + 1);
            const bool masks = a.mask || a.keep || crossed || there < TILE || here < OWN;
            __syncwarp();    // waits for readers of `weights`: at width 0 product() has no barrier
            C shift[4], delta[4], share[4];             // BY_KEY: of this thread's queries
            for (int j = 0; j < 4; j++) {
                if (BY_KEY) shift[j] = shift_of(a, first, o + 4 * x + j);
                if (BY_KEY) share[j] = share_at(a, first, o + 4 * x + j);
                if (KIND == KEY) delta[j] = delta_of(a, first, o + 4 * x + j);
            }
#pragma unroll
            for (int i = 0; i < R; i++) {
                const int64_t r = own + y + i * LINES, c = o + 4 * x;
                if (masks) {
                    Pack4 scores = {{s[i][0], s[i][1], s[i][2], s[i][3]}};
                    scores = masked<BY_KEY>(a, head, BY_KEY ? c : r, BY_KEY ? r : c, scores);
                    for (int j = 0; j < 4; j++) s[i][j] = scores.v[j];
                }
                Pack4 z = {{1, 1, 1, 1}};
                const int64_t at = head.first + (BY_KEY ? c * a.s + r : r * a.s + c);
                if (a.threshold) z = survivors<4>(a, head.seed, head.offset, at, BY_KEY ? a.s : 1);
                if (KIND == FORWARD) {
                    C peak = top[i];
                    for (int j = 0; j < 4; j++) peak = s[i][j] > peak ? s[i][j] : peak;
                    for (int step = LANES / 2; step; step >>= 1) {
                        const C theirs = shuffle_xor(peak, step);
                        peak = theirs > peak ? theirs : peak;
                    }
                    const C base = peak == -pt::infinity<C>() ? C(0) : peak,
                            fade = pt::exp(top[i] - base);
                    top[i] = peak;
                    total[i] *= fade;
                    for (int t = 0; t < STAGES; t++)
                        for (int p = 0; p < ACROSS; p++)
                            for (int v = 0; v < PACK; v++) sum[t][p][i][v] *= fade;
                    for (int j = 0; j < 4; j++) {
                        s[i][j] = pt::exp(s[i][j] - base);
                        total[i] += s[i][j];
                        s[i][j] *= z.v[j];
                    }
                } else {
                    for (int j = 0; j < 4; j++) {
                        C p = pt::exp(s[i][j] - (BY_KEY ? shift[j] : top[i]));
                        if (BY_KEY) p *= share[j];      // QUERY: at the end
                        s[i][j] = SLOPE ? p * (d[i][j] * z.v[j] - (BY_KEY ? delta[j] : total[i]))
                                        : p * z.v[j];
                        if (KIND == QUERY && a.scores && part == 0 && r < a.l && c + j < a.s)
                            static_cast<T *>(a.scores)[at + j] =
                                down<T>(s[i][j] * share_at(a, first, r));
                    }
                }
                for (int j = 0; j < 4; j += PACK) {     // read after the barriers of stage_rows
                    Pack w;
                    for (int v = 0; v < PACK; v++) w.v[v] = s[i][j + v];
                    store_pack<PACK>(weights + weighted.of(y) + i * weighted.step() + 4 * x + j, w);
                }
            }
#pragma unroll
            for (int t = 0; t < STAGES; t++) {
                const int64_t at = column + t * TILE;
                if (at >= width) continue;
                const AttentionOperand &added = OF_VALUES ? their_values : others;
                stage_rows<false>(stage, (OF_VALUES ? values : other) + o * added.row + at, added,
                                  there, at_most(width - at, TILE));
                add_product<R>(sum[t], weights, stage, there);
            }
        }
    }

#pragma unroll
    for (int i = 0; i < R; i++) {
        const int64_t r = own + y + i * LINES;
        C factor = KIND == VALUE ? C(1) : (C)a.scale;
        if (KIND == QUERY) factor *= share_at(a, number * a.l, r);
        if (KIND == FORWARD) {
            C all = total[i];
            for (int step = LANES / 2; step; step >>= 1) all += shuffle_xor(all, step);
            factor = all == C(0)
                         ? C(0)
                         : C(1) / all;    // a row without keys is 0; NaN stays NaN
            C *const lse = static_cast<C *>(SPLIT && a.splits > 1 ? a.split_lse : a.lse);
            if (x == 0 && part == 0 && r < count)
                lse[piece * a.l + r] = all == C(0) ? -pt::infinity<C>() : top[i] + pt::log(all);
        }
        if (r >= count) continue;
        if (SPLIT && a.splits > 1) {
            C *const out = static_cast<C *>(a.split_out) + (piece * count + r) * width;
            for (int t = 0; t < STAGES; t++)
                for (int p = 0; p < ACROSS; p++)
                    for (int v = 0; v < PACK; v++) {
                        const int64_t at = column + t * TILE + p * LANES * PACK + x * PACK + v;
                        if (at < width) out[at] = sum[t][p][i][v] * factor;
                    }
            continue;
        }
        T *const out = static_cast<T *>(a.out) + (number * count + r) * width;
        for (int t = 0; t < STAGES; t++)
            for (int p = 0; p < ACROSS; p++) {
                const int64_t at = column + t * TILE + p * LANES * PACK + x * PACK;
                Elements<T, PACK> w;
                for (int v = 0; v < PACK; v++) w.v[v] = down<T>(sum[t][p][i][v] * factor);
                if (at < width && width % PACK == 0) store_pack<PACK>(out + at, w);
                else
                    for (int v = 0; v < PACK; v++)
                        if (at + v < width) out[at + v] = w.v[v];
            }
    }
}

}  // namespace
