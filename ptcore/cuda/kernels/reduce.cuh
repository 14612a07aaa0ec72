// The engine of reductions. An Op, at the input's element type T, has
//    State                                   trivially copyable, at most PT_REDUCE_STATE bytes
//    static State identity()
//    static void add(State &s, const T *x, int n, int64_t position, int64_t step, const ReduceArgs &a)
//                                            n elements, the i-th at position + i * step of the reduced ones
//    static State merge(State x, State y)    in any order
//    static void store(const ReduceArgs &a, int64_t output, State s)
// Each output is reduced by 2**log2 neighbouring threads (reduce_rows), where the reduced elements are the near ones in
// memory, or by a column of threads (reduce_columns), where neighbouring outputs are. Few outputs are cut into parts,
// whose states reduce_finish merges. Results depend on shapes and on the number of multiprocessors only.
#pragma once
#include "pack.cuh"
#include "reduce_args.h"

namespace {

// Of the number i, in row-major order over the dims [first, first + n), the offset in elements. One copy of it:
// divisions of 64 bits are long, and most launches reduce one dim, which needs none.
PT_NOINLINE int64_t offset_of(const ReduceArgs &a, int first, int n, int64_t i) {
    if (n == 0) return 0;
    int64_t offset = 0;
    if (a.small) {
        uint32_t rest = (uint32_t)i;
        for (int d = first + n - 1; d > first; d--) {
            const uint32_t size = (uint32_t)a.sizes[d], q = rest / size;
            offset += (int64_t)(rest - q * size) * a.strides[d];
            rest = q;
        }
        return offset + (int64_t)rest * a.strides[first];
    }
    for (int d = first + n - 1; d > first; d--) {
        const int64_t q = i / a.sizes[d];
        offset += (i - q * a.sizes[d]) * a.strides[d];
        i = q;
    }
    return offset + i * a.strides[first];
}
PT_DEVICE int64_t reduced_offset(const ReduceArgs &a, int64_t i) {
    return a.reduced == 1 ? i * a.strides[a.kept] : offset_of(a, a.kept, a.reduced, i);
}

// Merges the states of groups of 2**log2 threads, at most the block; all threads of the block call. The first thread of
// each group gets the result.
template <class Op> PT_DEVICE typename Op::State merge_group(typename Op::State s, int log2) {
    for (int step = log2 > 5 ? 16 : (1 << log2) >> 1; step; step >>= 1) s = Op::merge(s, shuffle_xor(s, step));
    if (log2 > 5) {
        __shared__ typename Op::State partial[PT_REDUCE_THREADS / 32];
        const int warp = threadIdx.x >> 5, warps = 1 << (log2 - 5);
        __syncthreads();                // who still reads the last call's results
        if ((threadIdx.x & 31) == 0) partial[warp] = s;
        __syncthreads();
        if ((threadIdx.x & ((1 << log2) - 1)) == 0)
            for (int i = 1; i < warps; i++) s = Op::merge(s, partial[warp + i]);
    }
    return s;
}

template <class Op> PT_DEVICE void put(const ReduceArgs &a, int64_t output, typename Op::State s) {
    if (a.partial) static_cast<typename Op::State *>(a.partial)[blockIdx.y * a.outputs + output] = s;
    else Op::store(a, output, s);
}

// Elements that lie side by side: vectors from the first address on that is a multiple of 16 bytes.
template <class Op, class T>
PT_DEVICE void add_dense(typename Op::State &s, const T *p, int64_t n, int64_t position, int lane, int lanes,
                         const ReduceArgs &a) {
    constexpr int V = vector_of<T>::size;
    int64_t head = 0;
    if (V > 1) {
        head = (int64_t)((16 - (uint64_t)p % 16) % 16 / sizeof(T));
        if (head > n) head = n;
        for (int64_t i = lane; i < head; i += lanes) {
            const T x = load(p, i);
            Op::add(s, &x, 1, position + i, 1, a);
        }
    }
    const T *body = p + head;
    const int64_t count = (n - head) / V;
    int64_t i = lane;
    for (; i + 3 * lanes < count; i += 4 * lanes) {
        Elements<T, V> x[4];
        for (int u = 0; u < 4; u++) x[u] = load_pack<V>(body + (i + u * lanes) * V);
        for (int u = 0; u < 4; u++) Op::add(s, x[u].v, V, position + head + (i + u * lanes) * V, 1, a);
    }
    for (; i < count; i += lanes) {
        const Elements<T, V> x = load_pack<V>(body + i * V);
        Op::add(s, x.v, V, position + head + i * V, 1, a);
    }
    for (i = head + count * V + lane; i < n; i += lanes) {
        const T x = load(p, i);
        Op::add(s, &x, 1, position + i, 1, a);
    }
}

template <class Op, class T> PT_DEVICE void reduce_rows(const ReduceArgs &a) {
    const int lanes = 1 << a.log2, lane = threadIdx.x & (lanes - 1), slot = threadIdx.x >> a.log2;
    const int slots = PT_REDUCE_THREADS >> a.log2;
    const int64_t begin = blockIdx.y * a.chunk, end = begin + a.chunk < a.count ? begin + a.chunk : a.count;
    for (int64_t base = (int64_t)blockIdx.x * slots; base < a.outputs; base += (int64_t)gridDim.x * slots) {
        const int64_t output = base + slot;
        typename Op::State s = Op::identity();
        if (output < a.outputs && begin < end) {
            const T *row = static_cast<const T *>(a.in) + offset_of(a, 0, a.kept, output);
            if (a.reduced == 1 && a.strides[a.kept] == 1) {
                add_dense<Op>(s, row + begin, end - begin, begin, lane, lanes, a);
            } else {
                int64_t i = begin + lane;
                for (; i + 3 * lanes < end; i += 4 * lanes) {
                    T x[4];
                    for (int u = 0; u < 4; u++) x[u] = load(row, reduced_offset(a, i + u * lanes));
                    Op::add(s, x, 4, i, lanes, a);
                }
                for (; i < end; i += lanes) {
                    const T x = load(row, reduced_offset(a, i));
                    Op::add(s, &x, 1, i, 1, a);
                }
            }
        }
        s = merge_group<Op>(s, a.log2);
        if (lane == 0 && output < a.outputs) put<Op>(a, output, s);
    }
}

// V outputs of a thread lie side by side: the innermost kept dim has stride 1 and a multiple of V elements, and all
// other strides and the address are multiples of V elements.
template <class Op, class T, int V> PT_DEVICE void reduce_columns(const ReduceArgs &a) {
    typedef typename Op::State State;
    __shared__ State partial[PT_REDUCE_THREADS * V];
    const int width = 1 << a.log2, x = threadIdx.x & (width - 1), y = threadIdx.x >> a.log2;
    const int height = PT_REDUCE_THREADS >> a.log2;
    const int64_t begin = blockIdx.y * a.chunk, end = begin + a.chunk < a.count ? begin + a.chunk : a.count;
    for (int64_t base = (int64_t)blockIdx.x * width * V; base < a.outputs; base += (int64_t)gridDim.x * width * V) {
        const int64_t output = base + x * V;
        State s[V];
        for (int v = 0; v < V; v++) s[v] = Op::identity();
        if (output < a.outputs) {
            const T *column = static_cast<const T *>(a.in) + offset_of(a, 0, a.kept, output);
            int64_t i = begin + y;
            for (; i + 3 * height < end; i += 4 * height) {
                Elements<T, V> q[4];
                for (int u = 0; u < 4; u++)
                    q[u] = load_pack<V>(column + reduced_offset(a, i + u * height));
                for (int v = 0; v < V; v++) {
                    const T four[4] = {q[0].v[v], q[1].v[v], q[2].v[v], q[3].v[v]};
                    Op::add(s[v], four, 4, i, height, a);
                }
            }
            for (; i < end; i += height) {
                const Elements<T, V> q = load_pack<V>(column + reduced_offset(a, i));
                for (int v = 0; v < V; v++) Op::add(s[v], &q.v[v], 1, i, 1, a);
            }
        }
        for (int step = height >> 1; step; step >>= 1) {
            __syncthreads();            // who still reads what the last step or round left
            if (y >= step && y < 2 * step)
                for (int v = 0; v < V; v++) partial[((y - step) * width + x) * V + v] = s[v];
            __syncthreads();
            if (y < step)
                for (int v = 0; v < V; v++) s[v] = Op::merge(s[v], partial[(y * width + x) * V + v]);
        }
        if (y == 0 && output < a.outputs)
            for (int v = 0; v < V; v++) put<Op>(a, output + v, s[v]);
    }
}

// Merges a.count parts of each output; a.in are their states.
template <class Op> PT_DEVICE void reduce_finish(const ReduceArgs &a) {
    typedef typename Op::State State;
    const int lanes = 1 << a.log2, lane = threadIdx.x & (lanes - 1), slot = threadIdx.x >> a.log2;
    const int slots = PT_REDUCE_THREADS >> a.log2;
    const State *states = static_cast<const State *>(a.in);
    for (int64_t base = (int64_t)blockIdx.x * slots; base < a.outputs; base += (int64_t)gridDim.x * slots) {
        const int64_t output = base + slot;
        State s = Op::identity();
        if (output < a.outputs)
            for (int64_t i = lane; i < a.count; i += lanes) s = Op::merge(s, states[i * a.outputs + output]);
        s = merge_group<Op>(s, a.log2);
        if (lane == 0 && output < a.outputs) Op::store(a, output, s);
    }
}

}  // namespace

// The kernels of an op: name_rows, name_columns (one output a thread), name_vectors (several), name_finish.
#define PT_REDUCTION(name, T, ...) \
    static_assert(sizeof(__VA_ARGS__::State) <= PT_REDUCE_STATE, "scratch memory is measured by this"); \
    PT_KERNEL_SYNC(name##_rows, ReduceArgs, a, PT_REDUCE_THREADS) { reduce_rows<__VA_ARGS__, T>(a); } \
    PT_KERNEL_SYNC(name##_columns, ReduceArgs, a, PT_REDUCE_THREADS) { reduce_columns<__VA_ARGS__, T, 1>(a); } \
    PT_KERNEL_SYNC(name##_vectors, ReduceArgs, a, PT_REDUCE_THREADS) { \
        reduce_columns<__VA_ARGS__, T, (vector_of<T>::size > 4 ? 4 : vector_of<T>::size)>(a); \
    } \
    PT_KERNEL_SYNC(name##_finish, ReduceArgs, a, PT_REDUCE_THREADS) { reduce_finish<__VA_ARGS__>(a); }
