// Rows that are read once. Several threads share a row; each keeps its elements in registers if
// these are 1, 2 or 4 packs, else in shared memory. No other thread reads these elements, so that
// no barrier is needed.
#pragma once
#include "pack.cuh"

namespace {

struct Add { template <class C> PT_DEVICE_MEMBER C operator()(C x, C y) const { return x + y; } };
struct Larger {
    template <class C> PT_DEVICE_MEMBER C operator()(C x, C y) const { return x > y ? x : y; }
};

// The threads that share a row: 2**log2 neighbours, part of a warp or the block.
struct Row {
    int lanes, lane, slot, slots;       // slot: number of the row among those of the block
    PT_DEVICE_MEMBER explicit Row(int log2)
        : lanes(1 << log2), lane(threadIdx.x & (lanes - 1)), slot(threadIdx.x >> log2),
          slots(blockDim.x >> log2) {}
    template <class C, class F> PT_DEVICE_MEMBER C all(C x, F combine, C identity) const {
        if (lanes > 32) return block_reduce(x, combine, identity);
        for (int step = lanes >> 1; step; step >>= 1) x = combine(x, shuffle_xor(x, step));
        return x;
    }
    template <class C> PT_DEVICE_MEMBER C sum(C x) const { return all(x, Add(), C(0)); }
    template <class C> PT_DEVICE_MEMBER C largest(C x) const {
        return all(x, Larger(), -pt::infinity<C>());
    }
};

// What one thread keeps of a row: `count` elements, the k-th at [k * lanes].
template <class C> struct Kept {
    C *at;
    int lanes, count;
    PT_DEVICE_MEMBER C &operator[](int k) const { return at[k * lanes]; }
    enum { UNROLL = 2 };
};

// The same in registers: P packs of V.
template <class C, int V, int P> struct Registers {
    C at[P * V];
    static constexpr int count = P * V;
    enum { UNROLL = count };
    PT_DEVICE_MEMBER C &operator[](int k) { return at[k]; }
};

// `which` is the number of an input. The elements of a pack are kept at k, k + 1, ...
template <class C> PT_DEVICE Kept<C> kept(C *memory, const Row &row, int count, int which,
                                          int inputs) {
    return Kept<C>{memory + ((row.slot * inputs + which) * count) * row.lanes + row.lane, row.lanes,
                   count};
}

// The place in the row of the k-th element that a thread keeps; n or more for filling.
PT_DEVICE int64_t place(const Row &row, int k, int v) {
    return ((int64_t)(k / v) * row.lanes + row.lane) * v + k % v;
}

template <int V, class T, class C>
PT_DEVICE void keep_packs(const Kept<C> &x, const Row &row, const T *from, int64_t n, C filling) {
    constexpr int AT_ONCE = 4;
    for (int k = 0; k < x.count; k += AT_ONCE * V) {
        Elements<T, V> p[AT_ONCE];
        for (int u = 0; u < AT_ONCE; u++) {
            const int64_t i = ((int64_t)(k / V + u) * row.lanes + row.lane) * V;
            if (i < n) p[u] = load_pack<V>(from + i);
        }
        for (int u = 0; u < AT_ONCE; u++) {
            const int64_t i = ((int64_t)(k / V + u) * row.lanes + row.lane) * V;
            if (k + u * V < x.count)
                for (int v = 0; v < V; v++)
                    x[k + u * V + v] = i < n ? static_cast<C>(up(p[u].v[v])) : filling;
        }
    }
}

// Keeps a row. `packed`: its elements are neighbours, and packs fit its address and length.
template <class T, class C>
PT_DEVICE void keep(const Kept<C> &x, const Row &row, const T *from, int64_t step, int64_t n,
                    bool packed, C filling) {
    if (packed) {
        keep_packs<vector_of<T>::size>(x, row, from, n, filling);
        return;
    }
    for (int k = 0; k < x.count; k++) {
        const int64_t i = (int64_t)k * row.lanes + row.lane;
        x[k] = i < n ? static_cast<C>(up(from[i * step])) : filling;
    }
}

template <class T, class C, int V, int P>
PT_DEVICE void keep(Registers<C, V, P> &x, const Row &row, const T *from, int64_t, int64_t n, bool,
                    C filling) {
    Elements<T, V> p[P];
    PT_UNROLL for (int u = 0; u < P; u++) {
        const int64_t i = ((int64_t)u * row.lanes + row.lane) * V;
        if (i < n) p[u] = load_pack<V>(from + i);
    }
    PT_UNROLL for (int u = 0; u < P; u++) {
        const bool here = ((int64_t)u * row.lanes + row.lane) * V < n;
        PT_UNROLL
        for (int v = 0; v < V; v++) x[u * V + v] = here ? static_cast<C>(up(p[u].v[v])) : filling;
    }
}

template <class T, class C, int V, int P>
PT_DEVICE void put_row(T *to, const Row &row, Registers<C, V, P> &x, int64_t n, bool) {
    PT_UNROLL for (int u = 0; u < P; u++) {
        const int64_t i = ((int64_t)u * row.lanes + row.lane) * V;
        if (i < n) {
            Elements<T, V> p;
            PT_UNROLL for (int v = 0; v < V; v++) p.v[v] = down<T>(x[u * V + v]);
            store_pack<V>(to + i, p);
        }
    }
}

template <class T, class C> PT_DEVICE void put_row(T *to, const Row &row, const Kept<C> &x,
                                                   int64_t n, bool packed) {
    constexpr int V = vector_of<T>::size;
    if (packed) {
        for (int k = 0; k < x.count; k += V) {
            const int64_t i = ((int64_t)(k / V) * row.lanes + row.lane) * V;
            if (i >= n) break;
            Elements<T, V> p;
            for (int v = 0; v < V; v++) p.v[v] = down<T>(x[k + v]);
            store_pack<V>(to + i, p);
        }
        return;
    }
    for (int k = 0; k < x.count; k++) {
        const int64_t i = (int64_t)k * row.lanes + row.lane;
        if (i < n) to[i] = down<T>(x[k]);
    }
}

}  // namespace
