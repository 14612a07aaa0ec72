// The engine of reductions. For the elements of a Source, an Op has
//    State: trivially copyable, at most PT_REDUCE_STATE bytes
//    static State identity(const ReduceArgs &a, int64_t output): may depend on the output
//    static void add(State &s, const Element *x, int n, int64_t position, int64_t step,
//                    const ReduceArgs &a): adds n elements; the i-th is number position + i * step
//                    of the output's elements
//    static State merge(State x, State y): in any order
//    static void store(const ReduceArgs &a, int64_t output, State s): not needed if only parts are
//                    stored
// Where the elements of an output are neighbours in memory, 2**log2 neighbouring threads reduce the
// output (reduce_rows). Where neighbouring outputs are neighbours in memory, a column of threads
// does (reduce_columns). Few outputs are cut into parts, and reduce_finish merges the states of the
// parts. Results depend on shapes and on the number of multiprocessors only.
//
#pragma once
#include "divide.cuh"
#include "pack.cuh"
#include "reduce_args.h"

namespace {

// The source of an op that reads one tensor: its elements.
template <class T> struct OneTensor {
    typedef T Element;
    enum { WIDTH = vector_of<T>::size };            // elements of a pack
    const T *first;
    explicit PT_DEVICE_MEMBER OneTensor(const ReduceArgs &a)
        : first(static_cast<const T *>(a.in)) {}
    PT_DEVICE_MEMBER void move(int64_t by) { first += by; }
    PT_DEVICE_MEMBER T at(int64_t i) const { return load(first, i); }
    template <int V> PT_DEVICE_MEMBER Elements<T, V> pack(int64_t i) const {
        return load_pack<V>(first + i);
    }
    // The number of elements, of n neighbours, before the first address at which a pack may begin.
    PT_DEVICE_MEMBER int64_t before_packs(int64_t n) const {
        const int64_t head = (int64_t)((16 - (uint64_t)first % 16) % 16 / sizeof(T));
        return head < n ? head : n;
    }
};

// The source of an op that reads two tensors of one layout: pairs of their elements.
template <class T, class U> struct Pair {
    T first;
    U second;
};
template <class T, class U> struct TwoTensors {
    typedef Pair<T, U> Element;
    enum { WIDTH = 16 / (sizeof(T) > sizeof(U) ? sizeof(T) : sizeof(U)) };
    const T *first;
    const U *second;
    explicit PT_DEVICE_MEMBER TwoTensors(const ReduceArgs &a)
        : first(static_cast<const T *>(a.in)), second(static_cast<const U *>(a.in2)) {}
    PT_DEVICE_MEMBER void move(int64_t by) { first += by, second += by; }
    PT_DEVICE_MEMBER Element at(int64_t i) const {
        return Element{load(first, i), load(second, i)};
    }
    template <int V> PT_DEVICE_MEMBER Elements<Element, V> pack(int64_t i) const {
        const Elements<T, V> x = load_pack<V>(first + i);
        const Elements<U, V> y = load_pack<V>(second + i);
        Elements<Element, V> pairs;
        PT_UNROLL for (int v = 0; v < V; v++) pairs.v[v] = Element{x.v[v], y.v[v]};
        return pairs;
    }
    // n, if no element can begin a pack in both tensors.
    PT_DEVICE_MEMBER int64_t before_packs(int64_t n) const {
        const uint64_t x = (uint64_t)first / sizeof(T) % WIDTH,
                       y = (uint64_t)second / sizeof(U) % WIDTH;
        const int64_t head = x == y ? (int64_t)((WIDTH - x) % WIDTH) : n;
        return head < n ? head : n;
    }
};

// Offsets in elements: of output number i, and of element number i among an output's elements.
PT_DEVICE int64_t offset_among(const ReduceArgs &a, int first, int n, int64_t i) {
    int64_t offset = 0;
    each_coordinate<1>(a.dims, first, n, i,
                       [&](int64_t at, int d) { offset += at * a.strides[d]; });
    return offset;
}
PT_DEVICE int64_t kept_offset(const ReduceArgs &a, int64_t i) {
    return offset_among(a, 0, a.kept, i);
}
PT_DEVICE int64_t reduced_offset(const ReduceArgs &a, int64_t i) {
    return offset_among(a, a.kept, a.reduced, i);
}

// Merges the states of groups of 2**log2 threads, at most the block; all threads of the block call.
// The first thread of each group gets the result.
template <class Op> PT_DEVICE typename Op::State merge_group(typename Op::State s, int log2) {
    for (int step = log2 > 5 ? 16 : (1 << log2) >> 1; step; step >>= 1)
        s = Op::merge(s, shuffle_xor(s, step));
    if (log2 > 5) {
        __shared__ typename Op::State partial[PT_REDUCE_THREADS / 32];
        const int warp = threadIdx.x >> 5, warps = 1 << (log2 - 5);
        __syncthreads();                // waits for readers of the last call's `partial`
        if ((threadIdx.x & 31) == 0) partial[warp] = s;
        __syncthreads();
        if ((threadIdx.x & ((1 << log2) - 1)) == 0)
            for (int i = 1; i < warps; i++) s = Op::merge(s, partial[warp + i]);
    }
    return s;
}

template <class Op> PT_DEVICE void put(const ReduceArgs &a, int64_t output, typename Op::State s) {
    if (a.partial)
        static_cast<typename Op::State *>(a.partial)[blockIdx.y * a.outputs + output] = s;
    else Op::store(a, output, s);
}

// Adds n neighbouring elements of row: in packs from the first address on that is a multiple of 16
// bytes.
template <class Op, class Source>
PT_DEVICE void add_dense(typename Op::State &s, Source row, int64_t n, int64_t position, int lane,
                         int lanes, const ReduceArgs &a) {
    typedef typename Source::Element T;
    constexpr int V = Source::WIDTH;
    int64_t head = 0;
    if (V > 1) {
        head = row.before_packs(n);
        for (int64_t i = lane; i < head; i += lanes) {
            const T x = row.at(i);
            Op::add(s, &x, 1, position + i, 1, a);
        }
    }
    Source body = row;
    body.move(head);
    const int64_t count = (n - head) / V;
    int64_t i = lane;
    for (; i + 3 * lanes < count; i += 4 * lanes) {
        Elements<T, V> x[4];
        PT_UNROLL for (int u = 0; u < 4; u++) x[u] = body.template pack<V>((i + u * lanes) * V);
        PT_UNROLL
        for (int u = 0; u < 4; u++)
            Op::add(s, x[u].v, V, position + head + (i + u * lanes) * V, 1, a);
    }
    for (; i < count; i += lanes) {
        const Elements<T, V> x = body.template pack<V>(i * V);
        Op::add(s, x.v, V, position + head + i * V, 1, a);
    }
    for (i = head + count * V + lane; i < n; i += lanes) {
        const T x = row.at(i);
        Op::add(s, &x, 1, position + i, 1, a);
    }
}

// Adds elements [begin, end) of an output, V neighbours at a time: a single element, or a pack
// where runs of the innermost dim have whole packs (a.packed).
template <class Op, int V, class Source>
PT_DEVICE void add_strided(typename Op::State &s, const Source &row, int64_t begin, int64_t end,
                           int lane, int lanes, const ReduceArgs &a) {
    typedef typename Source::Element T;
    const int64_t step = (int64_t)lanes * V;
    int64_t i = begin + lane * V;
    for (; i + 3 * step < end; i += 4 * step) {
        Elements<T, V> x[4];
        PT_UNROLL
        for (int u = 0; u < 4; u++) x[u] = row.template pack<V>(reduced_offset(a, i + u * step));
        if (V > 1) {
            PT_UNROLL for (int u = 0; u < 4; u++) Op::add(s, x[u].v, V, i + u * step, 1, a);
        } else {
            const T four[4] = {x[0].v[0], x[1].v[0], x[2].v[0], x[3].v[0]};
            Op::add(s, four, 4, i, lanes, a);
        }
    }
    for (; i < end; i += step) {
        const Elements<T, V> x = row.template pack<V>(reduced_offset(a, i));
        Op::add(s, x.v, V, i, 1, a);
    }
}

template <class Op, class Source> PT_DEVICE void reduce_rows(const ReduceArgs &a) {
    const int lanes = 1 << a.log2, lane = threadIdx.x & (lanes - 1), slot = threadIdx.x >> a.log2;
    const int slots = PT_REDUCE_THREADS >> a.log2;
    const int64_t begin = blockIdx.y * a.chunk,
                  end = begin + a.chunk < a.count ? begin + a.chunk : a.count;
    for (int64_t base = (int64_t)blockIdx.x * slots; base < a.outputs;
         base += (int64_t)gridDim.x * slots) {
        const int64_t output = base + slot;
        typename Op::State s = typename Op::State();    // unused in a thread without an output
        if (output < a.outputs) {
            s = Op::identity(a, output);
            Source row(a);
            row.move(kept_offset(a, output));
            if (a.reduced == 1 && a.strides[a.kept] == 1) {
                row.move(begin);
                add_dense<Op>(s, row, end > begin ? end - begin : 0, begin, lane, lanes, a);
            } else if (Source::WIDTH > 1 && a.packed) {
                add_strided<Op, Source::WIDTH>(s, row, begin, end, lane, lanes, a);
            } else {
                add_strided<Op, 1>(s, row, begin, end, lane, lanes, a);
            }
        }
        s = merge_group<Op>(s, a.log2);
        if (lane == 0 && output < a.outputs) put<Op>(a, output, s);
    }
}

// A thread has V neighbouring outputs: the innermost kept dim has stride 1 and a multiple of V
// elements, and all other strides and the address are multiples of V elements.
template <class Op, class Source, int V> PT_DEVICE void reduce_columns(const ReduceArgs &a) {
    typedef typename Op::State State;
    typedef typename Source::Element T;
    __shared__ State partial[PT_REDUCE_THREADS * V];
    const int width = 1 << a.log2, x = threadIdx.x & (width - 1), y = threadIdx.x >> a.log2;
    const int height = PT_REDUCE_THREADS >> a.log2;
    const int64_t begin = blockIdx.y * a.chunk,
                  end = begin + a.chunk < a.count ? begin + a.chunk : a.count;
    for (int64_t base = (int64_t)blockIdx.x * width * V; base < a.outputs;
         base += (int64_t)gridDim.x * width * V) {
        const int64_t output = base + x * V;
        State s[V];
        if (output < a.outputs) {
            for (int v = 0; v < V; v++) s[v] = Op::identity(a, output + v);
            Source column(a);
            column.move(kept_offset(a, output));
            int64_t i = begin + y;
            for (; i + 3 * height < end; i += 4 * height) {
                Elements<T, V> q[4];
                PT_UNROLL for (int u = 0; u < 4; u++)
                    q[u] = column.template pack<V>(reduced_offset(a, i + u * height));
                for (int v = 0; v < V; v++) {
                    const T four[4] = {q[0].v[v], q[1].v[v], q[2].v[v], q[3].v[v]};
                    Op::add(s[v], four, 4, i, height, a);
                }
            }
            for (; i < end; i += height) {
                const Elements<T, V> q = column.template pack<V>(reduced_offset(a, i));
                for (int v = 0; v < V; v++) Op::add(s[v], &q.v[v], 1, i, 1, a);
            }
        } else {
            for (int v = 0; v < V; v++) s[v] = State();
        }
        for (int step = height >> 1; step; step >>= 1) {
            __syncthreads();            // waits for readers of the last step or round
            if (y >= step && y < 2 * step)
                for (int v = 0; v < V; v++) partial[((y - step) * width + x) * V + v] = s[v];
            __syncthreads();
            if (y < step)
                for (int v = 0; v < V; v++)
                    s[v] = Op::merge(s[v], partial[(y * width + x) * V + v]);
        }
        if (y == 0 && output < a.outputs)
            for (int v = 0; v < V; v++) put<Op>(a, output + v, s[v]);
    }
}

// Merges the a.count parts of each output; a.in are the states of the parts.
template <class Op> PT_DEVICE void reduce_finish(const ReduceArgs &a) {
    typedef typename Op::State State;
    const int lanes = 1 << a.log2, lane = threadIdx.x & (lanes - 1), slot = threadIdx.x >> a.log2;
    const int slots = PT_REDUCE_THREADS >> a.log2;
    const State *states = static_cast<const State *>(a.in);
    for (int64_t base = (int64_t)blockIdx.x * slots; base < a.outputs;
         base += (int64_t)gridDim.x * slots) {
        const int64_t output = base + slot;
        State s = State();
        if (output < a.outputs) {
            s = Op::identity(a, output);
            for (int i = lane; i < (int)a.count; i += lanes)
                s = Op::merge(s, states[i * a.outputs + output]);
        }
        s = merge_group<Op>(s, a.log2);
        if (lane == 0 && output < a.outputs) Op::store(a, output, s);
    }
}

}  // namespace

// The kernels of an op for the elements of a source: name_rows, name_columns (a thread has one
// output) and name_vectors (several outputs), which may store parts, and name_finish.
#define PT_REDUCTION_ROWS(name, Source, Op) \
    static_assert(sizeof(Op::State) <= PT_REDUCE_STATE, "scratch memory is measured by this"); \
    PT_KERNEL_SYNC(name##_rows, ReduceArgs, a, PT_REDUCE_THREADS) { reduce_rows<Op, Source>(a); }
#define PT_REDUCTION_COLUMNS(name, Source, Op)                                       \
    PT_KERNEL_SYNC(name##_columns, ReduceArgs, a, PT_REDUCE_THREADS) {               \
        reduce_columns<Op, Source, 1>(a);                                            \
    }                                                                                \
    PT_KERNEL_SYNC(name##_vectors, ReduceArgs, a, PT_REDUCE_THREADS) {               \
        reduce_columns<Op, Source, (Source::WIDTH > 4 ? 4 : (int)Source::WIDTH)>(a); \
    }
#define PT_REDUCTION_FINISH(name, Op) \
    PT_KERNEL_SYNC(name##_finish, ReduceArgs, a, PT_REDUCE_THREADS) { reduce_finish<Op>(a); }
#define PT_REDUCTION(name, Source, Op)  \
    PT_REDUCTION_ROWS(name, Source, Op) \
    PT_REDUCTION_COLUMNS(name, Source, Op) PT_REDUCTION_FINISH(name, Op)
