// A running combination along lines. Each line is cut into pieces: one kernel combines the elements
// of each piece, one combines the pieces before each piece, and one writes. Where a line's elements
// are neighbours, a block takes a piece (in tiles of PT_SCAN_TILE elements); else a thread does,
// and neighbouring threads take neighbouring lines. Short or many lines are one piece each, and
// need the last kernel alone. A scan is a struct: Carry, `of(element, position)`, `join(a, earlier,
// later)`, `put(a, carry, place)`.
#pragma once
#include "base.cuh"
#include "scan_args.h"
#include "walk.cuh"

namespace {

template <class S> PT_DEVICE typename S::Carry *carries_of(const ScanArgs &a) {
    return static_cast<typename S::Carry *>(a.carries);
}

// A thread scans a piece of a line; neighbouring threads have neighbouring lines.
template <class S, bool WRITE> PT_DEVICE void scan_by_thread(const ScanArgs &a) {
    typedef typename S::Carry Carry;
    PT_GRID_STRIDE(i, a.lines.by * a.pieces.by) {
        int64_t piece = i;
        const int64_t line = take_rest(piece, a.lines);
        const int64_t begin = piece * a.piece,
                      end = begin + a.piece < a.length ? begin + a.piece : a.length;
        int64_t outer = line;
        const int64_t column = take_rest(outer, a.inner);
        int64_t at = (outer * a.length + begin) * a.inner.by + column;
        Carry carry;
        if (WRITE && piece) carry = carries_of<S>(a)[i];
        const typename S::Element *in = reinterpret_cast<const typename S::Element *>(a.in);
        for (int64_t j = begin; j < end; j += PT_SCAN_EACH, at += PT_SCAN_EACH * a.inner.by) {
            Carry x[PT_SCAN_EACH];
            PT_UNROLL
            for (int k = 0; k < PT_SCAN_EACH;
                 k++)    // all loads begin before the first is used
                if (j + k < end) x[k] = S::of(load(in, at + k * a.inner.by), j + k);
            PT_UNROLL for (int k = 0; k < PT_SCAN_EACH; k++)
                if (j + k < end) {
                    carry = j + k > begin || (WRITE && piece) ? S::join(a, carry, x[k]) : x[k];
                    if (WRITE) S::put(a, carry, at + k * a.inner.by);
                }
        }
        if (!WRITE) carries_of<S>(a)[i] = carry;
    }
}

// For a thread of a block in which the first `valid` threads have values: the combination of the
// values before its own (if there are any), and of all values.
template <class S> struct Before {
    typename S::Carry before, all;
    bool any;
};
template <class S> PT_DEVICE Before<S> scan_block(const ScanArgs &a, const typename S::Carry &mine,
                                                  int valid) {
    typedef typename S::Carry Carry;
    __shared__ Carry ends[PT_SCAN_THREADS / 32];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, me = threadIdx.x;
    Carry upto = mine;
    for (int step = 1; step < 32; step *= 2) {
        const Carry x = shuffle_up(upto, step);
        if (lane >= step && me < valid) upto = S::join(a, x, upto);
    }
    __syncthreads();                    // waits for readers of the last call's `ends`
    if (me < valid && (lane == 31 || me == valid - 1)) ends[warp] = upto;
    __syncthreads();
    Before<S> r;
    r.any = me > 0;
    r.before =
        shuffle_up(upto,
                   1);    // below, a warp's first lane gets the combination of the other warps
    const int warps = (valid + 31) >> 5;
    Carry sum = ends[0];
    for (int w = 0; w < warps; w++) {
        if (w) sum = S::join(a, sum, ends[w]);
        if (w == warp - 1) r.before = lane ? S::join(a, sum, r.before) : sum;
    }
    r.all = sum;
    return r;
}

// A block scans PT_SCAN_TILE elements of a line from `begin` on; a thread has PT_SCAN_EACH
// neighbours. `sofar` is the combination of what comes before the tile (if `any` is true), and
// becomes that of what comes before the next tile.
template <class S, bool WRITE> PT_DEVICE void scan_tile(const ScanArgs &a, int64_t line,
                                                        int64_t begin, int64_t here,
                                                        typename S::Carry &sofar, bool any) {
    typedef typename S::Carry Carry;
    typedef typename S::Element T;
    constexpr int V = 16 / sizeof(T) < PT_SCAN_EACH ? 16 / sizeof(T) : PT_SCAN_EACH;
    const int64_t position = begin + threadIdx.x * PT_SCAN_EACH, at = line * a.length + position;
    const int left = (int)here - (int)threadIdx.x * PT_SCAN_EACH,
              n = left < PT_SCAN_EACH ? left : PT_SCAN_EACH;
    const T *in = reinterpret_cast<const T *>(a.in) + at;
    Carry x[PT_SCAN_EACH];
    if (a.packed && n == PT_SCAN_EACH) {
        PT_UNROLL for (int k = 0; k < PT_SCAN_EACH; k += V) {
            const Pack<T, V> p = *reinterpret_cast<const Pack<T, V> *>(in + k);
            PT_UNROLL for (int v = 0; v < V; v++) x[k + v] = S::of(load(p.v, v), position + k + v);
        }
    } else {
        PT_UNROLL for (int k = 0; k < PT_SCAN_EACH; k++)
            if (k < n) x[k] = S::of(load(in, k), position + k);
    }
    PT_UNROLL for (int k = 1; k < PT_SCAN_EACH; k++)
        if (k < n) x[k] = S::join(a, x[k - 1], x[k]);
    Carry mine = x[0];
    PT_UNROLL for (int k = 1; k < PT_SCAN_EACH; k++)
        if (k < n) mine = x[k];
    const Before<S> b = scan_block<S>(a, mine, (int)((here + PT_SCAN_EACH - 1) / PT_SCAN_EACH));
    if (WRITE && n > 0) {
        if (b.any || any) {
            Carry before = b.before;
            if (any) before = b.any ? S::join(a, sofar, b.before) : sofar;
            PT_UNROLL for (int k = 0; k < PT_SCAN_EACH; k++)
                if (k < n) x[k] = S::join(a, before, x[k]);
        }
        if (a.packed && n == PT_SCAN_EACH) S::template put_all<V>(a, x, at);
        else
            PT_UNROLL for (int k = 0; k < PT_SCAN_EACH; k++)
                if (k < n) S::put(a, x[k], at + k);
    }
    sofar = any ? S::join(a, sofar, b.all) : b.all;
}

// A block scans a piece of a line, one tile after the other.
template <class S, bool WRITE> PT_DEVICE void scan_by_block(const ScanArgs &a) {
    for (int64_t i = blockIdx.x; i < a.lines.by * a.pieces.by; i += gridDim.x) {
        int64_t line = i;
        const int64_t piece = take_rest(line, a.pieces), first = piece * a.piece;
        const int64_t end = first + a.piece < a.length ? first + a.piece : a.length;
        typename S::Carry sofar;
        bool any = WRITE && piece;
        if (any) sofar = carries_of<S>(a)[i];
        for (int64_t begin = first; begin < end; begin += PT_SCAN_TILE, any = true)
            scan_tile<S, WRITE>(a, line, begin,
                                end - begin < PT_SCAN_TILE ? end - begin : PT_SCAN_TILE, sofar,
                                any);
        if (!WRITE && threadIdx.x == 0) carries_of<S>(a)[i] = sofar;
    }
}

// Replaces each piece's carry by the combination of the pieces before it; a block for each line.
template <class S> PT_DEVICE void scan_carries_by_block(const ScanArgs &a) {
    typedef typename S::Carry Carry;
    for (int64_t line = blockIdx.x; line < a.lines.by; line += gridDim.x) {
        Carry upto;
        for (int64_t first = 0; first < a.pieces.by; first += PT_SCAN_TILE) {
            const int64_t left = a.pieces.by - first,
                          here = left < PT_SCAN_TILE ? left : PT_SCAN_TILE;
            const int64_t mine = (int64_t)threadIdx.x * PT_SCAN_EACH;
            const int n = here - mine < PT_SCAN_EACH ? (int)(here - mine) : PT_SCAN_EACH;
            Carry *carries = carries_of<S>(a) + line * a.pieces.by + first + mine, x[PT_SCAN_EACH];
            PT_UNROLL for (int k = 0; k < PT_SCAN_EACH; k++)
                if (k < n) x[k] = carries[k];
            Carry all = x[0];
            PT_UNROLL for (int k = 1; k < PT_SCAN_EACH; k++)
                if (k < n) all = S::join(a, all, x[k]);
            const Before<S> b =
                scan_block<S>(a, all, (int)((here + PT_SCAN_EACH - 1) / PT_SCAN_EACH));
            Carry before = upto;
            if (b.any) before = first ? S::join(a, upto, b.before) : b.before;
            PT_UNROLL for (int k = 0; k < PT_SCAN_EACH; k++)
                if (k < n) {
                    if (b.any || first || k) carries[k] = before;
                    before = b.any || first || k ? S::join(a, before, x[k]) : x[k];
                }
            upto = first ? S::join(a, upto, b.all) : b.all;
        }
    }
}

// The same with a thread for each line.
template <class S> PT_DEVICE void scan_carries_by_thread(const ScanArgs &a) {
    typedef typename S::Carry Carry;
    PT_GRID_STRIDE(line, a.lines.by) {
        Carry *const carries = carries_of<S>(a) + line, upto = carries[0];
        for (int64_t piece = 1; piece < a.pieces.by; piece += PT_SCAN_EACH) {
            Carry x[PT_SCAN_EACH];
            PT_UNROLL for (int k = 0; k < PT_SCAN_EACH; k++)
                if (piece + k < a.pieces.by) x[k] = carries[(piece + k) * a.lines.by];
            PT_UNROLL for (int k = 0; k < PT_SCAN_EACH; k++)
                if (piece + k < a.pieces.by) {
                    carries[(piece + k) * a.lines.by] = upto;
                    upto = S::join(a, upto, x[k]);
                }
        }
    }
}

}  // namespace

// The kernels of a scan.
#define PT_SCAN(name, ...)                                              \
    static_assert(sizeof(__VA_ARGS__::Carry) <= PT_SCAN_CARRY,          \
                  "scratch memory is measured by this");                \
    PT_KERNEL(name##_lines, ScanArgs, a, PT_SCAN_THREADS) {             \
        scan_by_thread<__VA_ARGS__, true>(a);                           \
    }                                                                   \
    PT_KERNEL(name##_line_carries, ScanArgs, a, PT_SCAN_THREADS) {      \
        scan_by_thread<__VA_ARGS__, false>(a);                          \
    }                                                                   \
    PT_KERNEL(name##_carries, ScanArgs, a, PT_SCAN_THREADS) {           \
        scan_carries_by_thread<__VA_ARGS__>(a);                         \
    }                                                                   \
    PT_KERNEL_SYNC(name##_tiles, ScanArgs, a, PT_SCAN_THREADS) {        \
        scan_by_block<__VA_ARGS__, true>(a);                            \
    }                                                                   \
    PT_KERNEL_SYNC(name##_tile_carries, ScanArgs, a, PT_SCAN_THREADS) { \
        scan_by_block<__VA_ARGS__, false>(a);                           \
    }                                                                   \
    PT_KERNEL_SYNC(name##_before, ScanArgs, a, PT_SCAN_THREADS) {       \
        scan_carries_by_block<__VA_ARGS__>(a);                          \
    }
