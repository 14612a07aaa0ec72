// Sorting entries of a key and a position: short lines by a bitonic network in a block's shared
// memory (Batcher, 1968), long ones by their digits of 8 bits, the lowest first. If PT_T is int32,
// an entry is one word, a key of 32 bits above a position; if int64, a SortEntry.
//
// A digit takes three kernels: one counts each digit in each tile, one sums the counts of a digit
// over the tiles of a line, and one writes the entries of a tile after all entries that come before
// them. Within a tile, a warp has consecutive entries, so that equal digits keep their order. The
// tile is first ordered by digit in shared memory, so that neighbours there are written to
// neighbours.
#include "divide.cuh"
#include "sort_args.h"

namespace {

#if PT_TCODE == 6
typedef uint64_t Entry;
enum { TILE = PT_SORT_TILE };
PT_DEVICE bool before(Entry x, Entry y) { return x < y; }
PT_DEVICE Entry last() { return ~(uint64_t)0; }
PT_DEVICE unsigned digit_of(Entry e, int shift) { return (unsigned)(e >> (32 + shift)) & 255u; }
#else
typedef SortEntry Entry;
enum { TILE = PT_SORT_TILE / 2 };
PT_DEVICE bool before(const Entry &x, const Entry &y) {
    return x.key < y.key || (x.key == y.key && x.position < y.position);
}
PT_DEVICE Entry last() { return Entry{~(uint64_t)0, 0}; }
PT_DEVICE unsigned digit_of(const Entry &e, int shift) { return (unsigned)(e.key >> shift) & 255u; }
#endif

enum {
    THREADS = 256,
    WARPS = THREADS / 32,
    PER_WARP = TILE / WARPS,
    ROUNDS = PER_WARP / 32,
    DIGITS = 256
};

struct Tile {
    int64_t line, number;
    const Entry *entries;
    int n;
    PT_DEVICE_MEMBER Tile(const SortArgs &a, int64_t t)
        : line(t), number(take_rest(line, a.tiles)) {
        const int64_t begin = number * TILE, left = a.length - begin;
        entries = static_cast<const Entry *>(a.entries) + line * a.length + begin;
        n = left < TILE ? (int)left : TILE;
    }
    // The digit of entry i; DIGITS, which no entry has, beyond the last entry.
    PT_DEVICE_MEMBER unsigned digit(int i, int shift) const {
        return i < n ? digit_of(entries[i], shift) : DIGITS;
    }
};

// The lanes with the same digit as this lane, found bit by bit: the instruction for this takes time
// in proportion to the number of different digits.
PT_DEVICE unsigned lanes_of(unsigned digit) {
    unsigned peers = 0xffffffffu;
    PT_UNROLL for (int bit = 0; bit < 9; bit++) {       // DIGITS alone has the ninth
        const bool one = digit >> bit & 1;
        const unsigned ones = __ballot_sync(0xffffffffu, one);
        peers &= one ? ones : ~ones;
    }
    return peers;
}
PT_DEVICE bool leads(unsigned peers) { return (peers & ((1u << (threadIdx.x & 31)) - 1)) == 0; }

}  // namespace

// A block sorts PT_SORT_BLOCK consecutive entries, in lines of a.size.by, a power of two.
PT_KERNEL_SYNC(sort_block, SortArgs, a, 256) {
    __shared__ Entry e[PT_SORT_BLOCK];
    Entry *const entries = static_cast<Entry *>(a.entries);
    const int64_t total = a.lines * a.size.by, first = (int64_t)blockIdx.x * PT_SORT_BLOCK;
    for (int i = threadIdx.x; i < PT_SORT_BLOCK; i += THREADS)
        e[i] = first + i < total ? entries[first + i] : last();
    __syncthreads();
    for (int run = 2; run <= a.size.by; run *= 2)
        for (int step = run / 2; step > 0; step /= 2) {
            for (int pair = threadIdx.x; pair < PT_SORT_BLOCK / 2; pair += THREADS) {
                const int i = 2 * pair - (pair & (step - 1));
                const bool up = (i & ((int)a.size.by - 1) & run) == 0;
                if (before(e[i + step], e[i]) == up) {
                    const Entry t = e[i];
                    e[i] = e[i + step], e[i + step] = t;
                }
            }
            __syncthreads();
        }
    for (int i = threadIdx.x; i < PT_SORT_BLOCK; i += THREADS)
        if (first + i < total) entries[first + i] = e[i];
}

PT_KERNEL_SYNC(sort_count, SortArgs, a, 256) {
    __shared__ unsigned counts[DIGITS];
    for (int64_t t = blockIdx.x; t < a.lines * a.tiles.by; t += gridDim.x) {
        const Tile tile(a, t);
        counts[threadIdx.x] = 0;
        __syncthreads();
        for (int first = 0; first < TILE; first += THREADS) {
            const unsigned digit = tile.digit(first + threadIdx.x, a.shift);
            if (__all_sync(0xffffffffu,
                           digit == shuffle(digit, 0))) {      // frequent for high digits
                if (digit < DIGITS && (threadIdx.x & 31) == 0) atomicAdd(&counts[digit], 32u);
            } else if (digit < DIGITS) {
                atomicAdd(&counts[digit], 1u);
            }
        }
        __syncthreads();
        a.counts[(tile.line * DIGITS + threadIdx.x) * a.tiles.by + tile.number] =
            counts[threadIdx.x];
    }
}

// A warp for each digit of a line: each tile's count becomes the sum of the counts in the tiles
// before, and a.totals the sum of all counts.
PT_KERNEL_SYNC(sort_sum, SortArgs, a, 256) {
    const int lane = threadIdx.x & 31;
    const int64_t rows = a.lines * DIGITS, warps = (int64_t)gridDim.x * WARPS;
    for (int64_t r = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32; r < rows; r += warps) {
        int64_t *row = a.counts + r * a.tiles.by, sum = 0;
        for (int64_t first = 0; first < a.tiles.by; first += 32) {
            const int64_t own = first + lane < a.tiles.by ? row[first + lane] : 0,
                          until = running_sum(own);
            if (first + lane < a.tiles.by) row[first + lane] = sum + until - own;
            sum += shuffle(until, 31);
        }
        if (lane == 0) a.totals[r] = sum;
    }
}

PT_KERNEL_SYNC_BLOCKS(sort_place, SortArgs, a, 256, 3) {
    __shared__ Entry staged[TILE];
    __shared__ int starts[WARPS]
                         [DIGITS];    // start of a warp's entries of a digit, in the tile's order
    __shared__ int64_t places[DIGITS];    // by digit: an entry's place in the line, less its place
                                          // in the tile's order
    __shared__ int64_t sums[WARPS];
    __shared__ int sizes[WARPS];
    const int lane = threadIdx.x & 31, warp = threadIdx.x / 32;
    for (int64_t t = blockIdx.x; t < a.lines * a.tiles.by; t += gridDim.x) {
        const Tile tile(a, t);
        const int64_t row = tile.line * DIGITS + threadIdx.x, total = a.totals[row],
                      until = running_sum(total);
        for (int w = 0; w < WARPS; w++) starts[w][threadIdx.x] = 0;
        if (lane == 31) sums[warp] = until;
        __syncthreads();
        int64_t place = until - total + a.counts[row * a.tiles.by + tile.number];
        for (int w = 0; w < warp; w++) place += sums[w];
        Entry e[ROUNDS];
        PT_UNROLL for (int k = 0; k < ROUNDS; k++) {
            const int i = warp * PER_WARP + k * 32 + lane;
            if (i < tile.n) e[k] = tile.entries[i];
        }
        uint16_t ranks[ROUNDS];
        PT_UNROLL for (int k = 0; k < ROUNDS; k++) {
            const unsigned digit =
                warp * PER_WARP + k * 32 + lane < tile.n ? digit_of(e[k], a.shift) : DIGITS;
            const unsigned peers = lanes_of(digit);
            const int seen = digit < DIGITS ? starts[warp][digit] : 0;
            ranks[k] = (uint16_t)(seen + __popc(peers & ((1u << lane) - 1)));
            __syncwarp();
            if (digit < DIGITS && leads(peers)) starts[warp][digit] = seen + __popc(peers);
            __syncwarp();
        }
        __syncthreads();
        int many = 0;
        for (int w = 0; w < WARPS; w++) many += starts[w][threadIdx.x];
        int begin = running_sum(many);
        if (lane == 31) sizes[warp] = begin;
        __syncthreads();
        begin -= many;
        for (int w = 0; w < warp; w++) begin += sizes[w];
        places[threadIdx.x] = place - begin;
        for (int w = 0; w < WARPS; w++) {
            const int own = starts[w][threadIdx.x];
            starts[w][threadIdx.x] = begin;
            begin += own;
        }
        __syncthreads();
        PT_UNROLL for (int k = 0; k < ROUNDS; k++)
            if (warp * PER_WARP + k * 32 + lane < tile.n)
                staged[starts[warp][digit_of(e[k], a.shift)] + ranks[k]] = e[k];
        __syncthreads();
        Entry *out = static_cast<Entry *>(a.other) + tile.line * a.length;
        for (int i = threadIdx.x; i < tile.n; i += THREADS)
            out[places[digit_of(staged[i], a.shift)] + i] = staged[i];
        __syncthreads();                // waits for readers of this tile's arrays
    }
}
