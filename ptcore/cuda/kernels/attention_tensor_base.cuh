// Attention of half types, and of floats rounded to TF32, by tensor cores: the tiles and the order
// of attention_base.cuh (FlashAttention-2, Dao, 2023), where both sizes of a head are at most HEAD
// and all rows begin at multiples of 16 bytes.
//
// A block owns WARPS * 16 * DOWN lines of one head, 16 * DOWN lines for each warp. The other rows
// come through shared memory in tiles of OTHERS lines; two tiles are there at once. FORWARD and
// QUERY own queries; KEY owns keys and computes the gradients of keys and values. Masks, dropout
// and scales not above 0 have programs of their own (PT_ATTENTION_MASKED), because their registers
// would slow the others down. mma.cuh describes the layout of tiles.
#pragma once
#include "attention_base.cuh"
#include "mma.cuh"

namespace {

#ifdef PT_ATTENTION_MASKED
constexpr bool MASKED = true;
#else
constexpr bool MASKED = false;
#endif

const float LOG2_E = 1.44269504f;
constexpr bool IS_FLOAT = sizeof(T) == 4;
constexpr int PER_WORD = 16 / sizeof(T);
// Bytes of a tile's line.
template <int HEAD> struct Line { enum { BYTES = HEAD * (int)sizeof(T) }; };

// The words of 16 bytes of a tile that a thread fetches: word c of line r and of every `DOWN`th
// line after r.
template <int HEAD, int MANY> struct Words {
    static constexpr int EACH = HEAD / PER_WORD, DOWN = MANY / EACH;
    const int r = threadIdx.x / EACH, c = threadIdx.x % EACH;
    PT_DEVICE_MEMBER Place place(Place tile, int i) const {
        const int turned = c ^ ((r + (DOWN % 8 ? i * DOWN : 0)) & 7);
        return tile + (r + i * DOWN) * Line<HEAD>::BYTES + (turned << 4);
    }
};

// Fetches ROWS lines of a tile from rows `stride` elements apart. The first `there` lines exist;
// further lines, and columns beyond `width`, are 0.
template <int HEAD, int ROWS, int MANY>
PT_DEVICE void fetch_words(Place tile, const T *from, int64_t stride, int there, int width) {
    const Words<HEAD, MANY> w;
    const bool inside = w.c * PER_WORD < width;
    const T *line = from + w.r * stride + w.c * PER_WORD;
    PT_UNROLL for (int i = 0; i < ROWS / w.DOWN; i++) {
        const bool here = inside && w.r + i * w.DOWN < there;
        copy_16(w.place(tile, i), here ? line : from, here);
        line += w.DOWN * stride;
    }
}

// Rounds a tile's floats to TF32 in place: each thread rounds the words that it has fetched.
template <int HEAD, int ROWS, int MANY> PT_DEVICE void round_words(Place tile) {
    const Words<HEAD, MANY> w;
    PT_UNROLL for (int i = 0; i < ROWS / w.DOWN; i++) round_16(w.place(tile, i));
}

// sum = lines of `own` (a left_place) times those of the tile `other`
template <int HEAD, int DOWN, int ACROSS>
PT_DEVICE void score_product(float (&sum)[DOWN][ACROSS][4], Place own, Place other) {
    constexpr int LINE = Line<HEAD>::BYTES;
    const Place rows = right_place<LINE / 2>(other);
    PT_UNROLL for (int d = 0; d < DOWN; d++)
        PT_UNROLL for (int j = 0; j < ACROSS; j++)
            PT_UNROLL for (int v = 0; v < 4; v++) sum[d][j][v] = 0;
    PT_UNROLL for (int k = 0; k < LINE / 32; k++) {
        uint32_t left[DOWN][4];
        PT_UNROLL for (int d = 0; d < DOWN; d++)
            load_matrices(left[d], (own ^ (k << 5)) + d * 16 * LINE);
        PT_UNROLL for (int j = 0; j < ACROSS; j += 2) {
            uint32_t right[4];
            load_matrices(right, (rows ^ (k << 5)) + j * 8 * LINE);
            PT_UNROLL for (int d = 0; d < DOWN; d++) {
                multiply_add(sum[d][j], left[d], right[0], right[1], T());
                multiply_add(sum[d][j + 1], left[d], right[2], right[3], T());
            }
        }
    }
}

template <class E, int HEAD, int DOWN, int ACROSS>
PT_DEVICE void add_weighted_halves(float (&sum)[DOWN][HEAD / 8][4],
                                   const float (&weights)[DOWN][ACROSS][4], Place other) {
    const Place rows = left_place<HEAD>(other);
    PT_UNROLL for (int k = 0; k < ACROSS / 2; k++) {
        uint32_t left[DOWN][4];
        PT_UNROLL for (int d = 0; d < DOWN; d++)
            PT_UNROLL for (int v = 0; v < 4; v++)
                left[d][v] = word_from(weights[d][2 * k + v / 2][v % 2 * 2],
                                       weights[d][2 * k + v / 2][v % 2 * 2 + 1], E());
        PT_UNROLL for (int j = 0; j < HEAD / 8; j += 2) {
            uint32_t right[4];
            load_turned_matrices(right, (rows ^ (j << 4)) + k * 16 * HEAD * 2);
            PT_UNROLL for (int d = 0; d < DOWN; d++) {
                multiply_add(sum[d][j], left[d], right[0], right[1], E());
                multiply_add(sum[d][j + 1], left[d], right[2], right[3], E());
            }
        }
    }
}

// Floats: a lane has columns 2 t and 2 t + 1 of a product, but columns t and t + 4 of a factor. The
// other factor's lines are therefore taken in the order 2 t, 2 t + 1. The words that eight lanes
// read from four such lines are in different banks.
template <int HEAD, int DOWN, int ACROSS>
PT_DEVICE void add_weighted_floats(float (&sum)[DOWN][HEAD / 8][4],
                                   const float (&weights)[DOWN][ACROSS][4], Place other) {
    constexpr int LINE = Line<HEAD>::BYTES;
    const int lane = threadIdx.x & 31, g = lane / 4, t = lane % 4;
    const Place even = other + 2 * t * LINE + (((g >> 2) ^ (2 * t)) << 4) + (g & 3) * 4;
    const Place odd = other + (2 * t + 1) * LINE + (((g >> 2) ^ (2 * t + 1)) << 4) + (g & 3) * 4;
    PT_UNROLL for (int k = 0; k < ACROSS; k++) {
        uint32_t left[DOWN][4];
        PT_UNROLL for (int d = 0; d < DOWN; d++)
            PT_UNROLL for (int v = 0; v < 4; v++)
                left[d][v] = round_word(pt::to_bits(weights[d][k][v % 2 * 2 + v / 2]));
        PT_UNROLL for (int j = 0; j < HEAD / 8; j++) {
            const uint32_t first = load_word((even ^ (j << 5)) + k * 8 * LINE);
            const uint32_t second = load_word((odd ^ (j << 5)) + k * 8 * LINE);
            PT_UNROLL for (int d = 0; d < DOWN; d++)
                multiply_add(sum[d][j], left[d], first, second, float());
        }
    }
}

// sum += weights times lines of the tile `other`; weights have the layout of a product.
template <int HEAD, int DOWN, int ACROSS, class E = T>
PT_DEVICE void add_weighted(float (&sum)[DOWN][HEAD / 8][4],
                            const float (&weights)[DOWN][ACROSS][4], Place other) {
    if constexpr (sizeof(E) == 4) add_weighted_floats<HEAD>(sum, weights, other);
    else add_weighted_halves<E, HEAD>(sum, weights, other);
}

typedef Elements<C, 2> Two;

template <class E> PT_DEVICE void put_two(E *to, float x, float y) {
    *reinterpret_cast<uint32_t *>(to) = word_from(x, y, E());
}
PT_DEVICE void put_two(float *to, float x, float y) {
    store_pack<2>(to, Elements<float, 2>{{x, y}});
}

template <int HEAD, int DOWN>
PT_DEVICE void put_lines(T *out, const float (&sum)[DOWN][HEAD / 8][4],
                         const float (&factor)[DOWN][2], int first, int64_t count, int width) {
    const int lane = threadIdx.x & 31;
    PT_UNROLL for (int d = 0; d < DOWN; d++)
        PT_UNROLL for (int h = 0; h < 2; h++) {
            const int64_t r = first + 16 * d + 8 * h + lane / 4;
            if (r >= count) continue;
            PT_UNROLL for (int j = 0; j < HEAD / 8; j++)    // a width of halves is a multiple of 8
                if (8 * j + (IS_FLOAT ? lane % 4 * 2 : 0) < width)
                    put_two(out + r * width + 8 * j + lane % 4 * 2, sum[d][j][2 * h] * factor[d][h],
                            sum[d][j][2 * h + 1] * factor[d][h]);
        }
}

template <Kind KIND, int HEAD, int WARPS_, int DOWN, int OTHERS> struct Attend {
    static constexpr bool BY_KEY = KIND == KEY, SLOPE = KIND != FORWARD;
    static constexpr int MANY = 32 * WARPS_, OWN = 16 * WARPS_ * DOWN, ACROSS = OTHERS / 8;

    static PT_DEVICE_MEMBER void run(const AttentionArgs &a, T *memory) {
        const int lane = threadIdx.x & 31, mine = (threadIdx.x >> 5) * 16 * DOWN, g = lane / 4,
            t = lane % 4;
        const int64_t count = BY_KEY ? a.s : a.l, number = blockIdx.x / (unsigned)a.blocks;
        const unsigned heads = (unsigned)(BY_KEY ? a.held : a.heads), n = (unsigned)number / heads,
            h = (unsigned)number - n * heads;
        int64_t block = blockIdx.x % (unsigned)a.blocks;
        // If causal, the queries with the most keys come first.
        if (!BY_KEY) block = a.blocks - 1 - block;
        const int64_t own = block * OWN;
        const int here = at_most(count - own, OWN);

        constexpr int LINE = Line<HEAD>::BYTES, OWNED = OWN * LINE, TILE_BYTES = OTHERS * LINE;
        const Place left = place_of(memory), right = left + OWNED,
            stages = right + (SLOPE ? OWNED : 0);
        const Place my_left = left_place<LINE / 2>(left) + mine * LINE, my_right = my_left + OWNED;
        // KEY: shifts, deltas and, if MASKED, logarithms of shares, of two stages
        constexpr int NUMBERS = MASKED ? 3 : 2;
        float *const shifts =
            reinterpret_cast<float *>(memory + OWN * HEAD * (SLOPE ? 2 : 1) + 4 * OTHERS * HEAD);
        const AttentionOperand &owned = BY_KEY ? a.key : a.query,
            &owned_values = BY_KEY ? a.value : a.g;
        const AttentionOperand &others = BY_KEY ? a.query : a.key, &values = BY_KEY ? a.g : a.value;
        fetch_words<HEAD, OWN, MANY>(left, head_of(owned, n, h) + own * owned.row, owned.row, here,
                                     a.e);
        if (SLOPE)
            fetch_words<HEAD, OWN, MANY>(right,
                                         head_of(owned_values, n, h) + own * owned_values.row,
                                         owned_values.row, here, a.v);

        float sum[DOWN][HEAD / 8][4] = {},
            other_sum[KIND == KEY ? DOWN : 1][KIND == KEY ? HEAD / 8 : 1][4] = {};
        // FORWARD: maximum and sum so far; QUERY: shift and delta.
        float top[DOWN][2], total[DOWN][2];
        PT_UNROLL for (int d = 0; d < DOWN; d++)
            PT_UNROLL for (int i = 0; i < 2; i++) {
                const int64_t q = own + mine + 16 * d + 8 * i + g;
                top[d][i] = KIND == QUERY ? shift_of(a, number * a.l, q) * (MASKED ? 1.f : LOG2_E)
                                          : -pt::infinity<float>();
                total[d][i] = KIND == QUERY ? delta_of(a, number * a.l, q) : 0;
            }
        // Earlier queries do not see the key.
        const int64_t from = BY_KEY && a.causal ? own / OTHERS * OTHERS : 0;
        const int64_t until = BY_KEY ? a.l : a.causal && own + here < a.s ? own + here : a.s;
        const int64_t tiles = until > from ? (until - from + OTHERS - 1) / OTHERS : 0,
            all = tiles * (BY_KEY ? a.group : 1);
        // A product times `unit` is the exponent of a power of 2. With masks, scores may be as
        // large as floats are: there only differences of scores are made exponents.
        const float scale = (float)a.scale, unit = scale * LOG2_E;
        const auto power = [&](float x, float base) {
            return exp2_fast(MASKED ? (x - base) * LOG2_E : x * unit - base * unit);
        };
        // The first query head, or the key head.
        const int64_t shared = BY_KEY ? h * a.group : h / (unsigned)a.group;
        // The query head of tile i, counted from the first. A tensor that fits into a device's
        // memory has fewer than 2**32 tiles.
        auto head_at = [&](int64_t i) {
            return BY_KEY ? (int64_t)((uint32_t)i / (uint32_t)tiles) : 0;
        };

        auto stage = [&](int64_t i) {    // starts the copies of tile i
            if (i < all) {
                const int64_t m = head_at(i), o = from + (i - m * tiles) * OTHERS,
                    other = shared + m;
                const int there = at_most(until - o, OTHERS);
                const Place to = stages + (i & 1) * 2 * TILE_BYTES;
                fetch_words<HEAD, OTHERS, MANY>(to, head_of(others, n, other) + o * others.row,
                                                others.row, there, a.e);
                fetch_words<HEAD, OTHERS, MANY>(to + TILE_BYTES,
                                                head_of(values, n, other) + o * values.row,
                                                values.row, there, a.v);
                if (KIND == KEY && threadIdx.x < OTHERS) {
                    const int64_t first = (n * a.heads + other) * a.l, q = o + threadIdx.x;
                    float *const numbers = shifts + (i & 1) * NUMBERS * OTHERS + threadIdx.x;
                    numbers[0] = shift_of(a, first, q) * (MASKED ? 1.f : LOG2_E);
                    numbers[OTHERS] = delta_of(a, first, q);
                    if (MASKED) numbers[2 * OTHERS] = pt::log2(share_at(a, first, q));
                }
            }
            close_copies();
        };
        stage(0);
        for (int64_t i = 0; i < all; i++) {
            wait_for_copies<0>();
            if constexpr (sizeof(T) == 4) {
                const Place tile = stages + (i & 1) * 2 * TILE_BYTES;
                round_words<HEAD, OTHERS, MANY>(tile);
                round_words<HEAD, OTHERS, MANY>(tile + TILE_BYTES);
                if (i == 0) round_words<HEAD, OWN, MANY>(left);
                if (SLOPE && i == 0) round_words<HEAD, OWN, MANY>(right);
            }
            __syncthreads();    // all threads see tile i, and none reads tile i - 1 any more
            stage(i + 1);
            const int64_t m = head_at(i), o = from + (i - m * tiles) * OTHERS;
            const int64_t hq = BY_KEY ? shared + m : h;
            const int there = at_most(until - o, OTHERS);
            const Place keys = stages + (i & 1) * 2 * TILE_BYTES, rows = keys + TILE_BYTES;
            const float *const numbers = shifts + (i & 1) * NUMBERS * OTHERS;
            const bool crossed = a.causal && (BY_KEY ? own + OWN > o + 1 : o + OTHERS > own + 1);
            float s[DOWN][ACROSS][4], slope[SLOPE ? DOWN : 1][SLOPE ? ACROSS : 1][4];
            score_product<HEAD, DOWN, ACROSS>(s, my_left, keys);
            if constexpr (SLOPE) score_product<HEAD, DOWN, ACROSS>(slope, my_right, rows);
            if constexpr (MASKED)
                PT_UNROLL for (int d = 0; d < DOWN; d++)
                    PT_UNROLL for (int j = 0; j < ACROSS; j++)
                        PT_UNROLL for (int v = 0; v < 4; v++) s[d][j][v] *= scale;
            if (MASKED && (a.mask || a.keep)) {
                const Head head = masks_of(a, n, hq);
                PT_UNROLL for (int d = 0; d < DOWN; d++)
                    PT_UNROLL for (int j = 0; j < ACROSS; j++)
                        PT_UNROLL for (int u = 0; u < 2; u++) {
                            const int64_t r = own + mine + 16 * d + 8 * u + g,
                                c = o + 8 * j + 2 * t;
                            float &x = s[d][j][2 * u], &y = s[d][j][2 * u + 1];
                            const Two two = masked<BY_KEY>(a, head, BY_KEY ? c : r, BY_KEY ? r : c,
                                                           Two{{x, y}});
                            x = two.v[0], y = two.v[1];
                        }
            } else if (crossed || (!BY_KEY && there < OTHERS)) {
                // Columns from `first` on (BY_KEY: before `first`) do not count. Queries beyond
                // the last have infinite shifts, and lines of the owned tile beyond the last
                // are not written.
                PT_UNROLL for (int d = 0; d < DOWN; d++)
                    PT_UNROLL for (int u = 0; u < 2; u++) {
                        const int line = at_most(own + mine + 16 * d + 8 * u + g - o, OTHERS);
                        const int first = (BY_KEY                         ? line
                                           : a.causal && line + 1 < there ? line + 1
                                                                          : there) - 2 * t;
                        PT_UNROLL for (int j = 0; j < ACROSS; j++)
                            PT_UNROLL for (int v = 0; v < 2; v++)
                                if (BY_KEY ? 8 * j + v < first : 8 * j + v >= first)
                                    s[d][j][2 * u + v] = -pt::infinity<float>();
                    }
            }
            if constexpr (KIND == FORWARD) {
                PT_UNROLL for (int d = 0; d < DOWN; d++)
                    PT_UNROLL for (int u = 0; u < 2; u++) {
                        float peak = top[d][u];
                        PT_UNROLL for (int j = 0; j < ACROSS; j++)
                            PT_UNROLL for (int v = 0; v < 2; v++)
                                peak = s[d][j][2 * u + v] > peak ? s[d][j][2 * u + v] : peak;
                        PT_UNROLL for (int step = 2; step; step >>= 1) {
                            const float theirs = shuffle_xor(peak, step);
                            peak = theirs > peak ? theirs : peak;
                        }
                        const float base = peak == -pt::infinity<float>() ? 0.f : peak,
                            fade = power(top[d][u], base);
                        top[d][u] = peak;
                        float part = 0;
                        PT_UNROLL for (int j = 0; j < ACROSS; j++)
                            PT_UNROLL for (int v = 0; v < 2; v++) {
                                float &x = s[d][j][2 * u + v];
                                x = power(x, base);
                                part += x;
                            }
                        total[d][u] = total[d][u] * fade + part;
                        PT_UNROLL for (int j = 0; j < HEAD / 8; j++)
                            PT_UNROLL for (int v = 0; v < 2; v++) sum[d][j][2 * u + v] *= fade;
                    }
            } else {
                PT_UNROLL for (int d = 0; d < DOWN; d++)
                    PT_UNROLL for (int j = 0; j < ACROSS; j++)
                        PT_UNROLL for (int v = 0; v < 4; v++) {
                            const int of = 8 * j + 2 * t + v % 2;
                            const float shift = BY_KEY ? numbers[of] : top[d][v / 2];
                            float &x = s[d][j][v];
                            if (!MASKED) x = exp2_fast(x * unit - shift);
                            else if (!BY_KEY) x = power(x, shift);      // the share at the end
                            else x = exp2_fast((x - shift) * LOG2_E + numbers[2 * OTHERS + of]);
                        }
            }
            // From here on s are probabilities. s times the factors of dropout multiplies values
            // (or g), and `slope` multiplies keys (or queries).
            if (MASKED && a.threshold) {
                const Head head = masks_of(a, n, hq);
                PT_UNROLL for (int d = 0; d < DOWN; d++)
                    PT_UNROLL for (int j = 0; j < ACROSS; j++)
                        PT_UNROLL for (int u = 0; u < 2; u++) {
                            const int64_t r = own + mine + 16 * d + 8 * u + g,
                                c = o + 8 * j + 2 * t;
                            const int64_t at = head.first + (BY_KEY ? c * a.s + r : r * a.s + c);
                            const Two z =
                                survivors<2>(a, head.seed, head.offset, at, BY_KEY ? a.s : 1);
                            PT_UNROLL for (int v = 0; v < 2; v++) {
                                float &p = s[d][j][2 * u + v];
                                if constexpr (SLOPE) {
                                    float &x = slope[d][j][2 * u + v];
                                    x = p * (x * z.v[v] -
                                             (BY_KEY ? numbers[OTHERS + 8 * j + 2 * t + v]
                                                     : total[d][u]));
                                }
                                p *= z.v[v];
                            }
                        }
            } else {
                if constexpr (SLOPE)
                    PT_UNROLL for (int d = 0; d < DOWN; d++)
                        PT_UNROLL for (int j = 0; j < ACROSS; j++)
                            PT_UNROLL for (int v = 0; v < 4; v++)
                                slope[d][j][v] =
                                    s[d][j][v] *
                                    (slope[d][j][v] -
                                     (BY_KEY ? numbers[OTHERS + 8 * j + 2 * t + v % 2]
                                             : total[d][v / 2]));
            }
            if constexpr (KIND == QUERY) {
                if (a.scores) {
                    T *const scores = static_cast<T *>(a.scores) + (n * a.heads + hq) * a.l * a.s;
                    PT_UNROLL for (int d = 0; d < DOWN; d++)
                        PT_UNROLL for (int j = 0; j < ACROSS; j++)
                            PT_UNROLL for (int v = 0; v < 4; v++) {
                                const int64_t r = own + mine + 16 * d + 8 * (v / 2) + g,
                                    c = o + 8 * j + 2 * t + v % 2;
                                if (r < a.l && c < a.s)
                                    scores[r * a.s + c] = down<T>(
                                        slope[d][j][v] *
                                        (MASKED ? share_at(a, number * a.l, r) : 1.f));
                            }
                }
                add_weighted<HEAD, DOWN, ACROSS>(sum, slope, keys);
            } else {
                if constexpr (KIND == KEY) add_weighted<HEAD, DOWN, ACROSS>(other_sum, slope, keys);
                add_weighted<HEAD, DOWN, ACROSS>(sum, s, rows);
            }
        }
        wait_for_copies<0>();

        float factor[DOWN][2];
        PT_UNROLL for (int d = 0; d < DOWN; d++)
            PT_UNROLL for (int u = 0; u < 2; u++) {
                const int64_t r = own + mine + 16 * d + 8 * u + g;
                factor[d][u] = KIND == QUERY ? scale : 1.f;
                if (KIND == QUERY && MASKED) factor[d][u] *= share_at(a, number * a.l, r);
                if (KIND != FORWARD) continue;
                float whole = total[d][u];
                PT_UNROLL for (int step = 2; step; step >>= 1) whole += shuffle_xor(whole, step);
                // A row without keys is 0; NaN stays NaN.
                factor[d][u] = whole == 0 ? 0.f : 1 / whole;
                if (t == 0 && r < count)
                    static_cast<float *>(a.lse)[number * a.l + r] =
                        whole == 0 ? -pt::infinity<float>()
                                   : top[d][u] * (MASKED ? 1.f : scale) + pt::log(whole);
            }
        const int width = KIND == QUERY ? a.e : a.v;
        T *const out = static_cast<T *>(a.out) + (number * count + own) * width;
        put_lines<HEAD, DOWN>(out, sum, factor, mine, count - own, width);
        if constexpr (KIND == KEY) {
            PT_UNROLL for (int d = 0; d < DOWN; d++) factor[d][0] = factor[d][1] = (float)a.scale;
            T *const key_out = static_cast<T *>(a.key_out) + (number * count + own) * a.e;
            put_lines<HEAD, DOWN>(key_out, other_sum, factor, mine, count - own, a.e);
        }
    }
};

}  // namespace

#ifdef PT_ATTENTION_MASKED
#  define PT_ATTENTION_TENSOR(name) name##_masked
#else
#  define PT_ATTENTION_TENSOR(name) name
#endif
#define PT_ATTEND_TENSOR(name, kind, head, warps, down, others, blocks) \
    PT_KERNEL_SYNC_BLOCKS(PT_ATTENTION_TENSOR(name), AttentionArgs, a, 32 * warps, blocks) { \
        PT_DYNAMIC_SHARED(T, memory); \
        Attend<kind, head, warps, down, others>::run(a, memory); \
    }
