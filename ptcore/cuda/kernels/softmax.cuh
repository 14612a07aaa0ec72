// softmax, log_softmax and their derivatives, by PT_SOFTMAX_LOG and PT_SOFTMAX_BACKWARD. Part of a
// warp or a block keeps a row in shared memory (rows, wide) or in registers (one, two, four). A
// block reads longer rows twice (columns); where the elements of a row are not neighbours, the
// threads of a warp take neighbouring rows. Rows too few to fill the device are cut into parts: one
// kernel stores the parts' states, and all blocks of the next one merge them (parts, split).
#include "divide.cuh"
#include "exp_sum.cuh"
#include "rows.cuh"
#include "softmax_args.h"

#if defined(PT_SOFTMAX_LOG) && defined(PT_SOFTMAX_BACKWARD)
#  define PT_SOFTMAX(kernel) log_softmax_backward_##kernel
#elif defined(PT_SOFTMAX_LOG)
#  define PT_SOFTMAX(kernel) log_softmax_##kernel
#elif defined(PT_SOFTMAX_BACKWARD)
#  define PT_SOFTMAX(kernel) softmax_backward_##kernel
#else
#  define PT_SOFTMAX(kernel) softmax_##kernel
#endif

namespace {

typedef typename opmath<PT_T>::type C;

#ifdef PT_SOFTMAX_BACKWARD
enum { INPUTS = 2 };
#else
enum { INPUTS = 1 };
#endif

// The inputs at row r; NULL if there is no row r.
struct Inputs {
    const PT_T *first, *second;
    PT_DEVICE_MEMBER Inputs(const SoftmaxArgs &a, int64_t r, bool here)
        : first(nullptr), second(nullptr) {
        if (!here) return;
        int64_t to[2] = {0, 0};
        each_coordinate<4>(a.dims, 0, a.ndim, r, [&](int64_t at, int d) {
            PT_UNROLL for (int k = 0; k < INPUTS; k++) to[k] += at * a.strides[k][d];
        });
        first = static_cast<const PT_T *>(a.in[0]) + to[0];
        if (INPUTS > 1) second = static_cast<const PT_T *>(a.in[1]) + to[1];
    }
};

#ifdef PT_SOFTMAX_BACKWARD
// in: gradient g, the forward's output y
#ifdef PT_SOFTMAX_LOG
PT_DEVICE C term(C g, C) { return g; }
PT_DEVICE C result(C g, C y, C sum) { return g - math::exp(y) * sum; }
#else
PT_DEVICE C term(C g, C y) { return g * y; }
PT_DEVICE C result(C g, C y, C sum) { return y * (g - sum); }
#endif

struct State { C sum; };
PT_DEVICE State nothing() { return State{C(0)}; }
PT_DEVICE State merge(State x, State y) { return State{x.sum + y.sum}; }
PT_DEVICE void add(State &s, C g, C y) { s.sum += term(g, y); }
PT_DEVICE State finished(State s) { return s; }
PT_DEVICE C value(C g, C y, State s) { return result(g, y, s.sum); }

template <class X> PT_DEVICE void kept_row(const SoftmaxArgs &a, int64_t r, bool here,
                                           const Row &row, X &g, X &y) {
    const int64_t n = here ? a.n : 0;
    const Inputs in(a, r, here);
    keep(g, row, in.first, a.step[0], n, a.packed, C(0));
    keep(y, row, in.second, a.step[1], n, a.packed, C(0));
    C sum = 0;
    PT_UNROLL_BY(X::UNROLL) for (int k = 0; k < g.count; k++) sum += term(g[k], y[k]);
    sum = row.sum(sum);
    PT_UNROLL_BY(X::UNROLL) for (int k = 0; k < g.count; k++) g[k] = result(g[k], y[k], sum);
    put_row(static_cast<PT_T *>(a.out) + r * a.n, row, g, n, a.packed);
}
#else
typedef ExpSum<C> State;
PT_DEVICE State nothing() { return no_exp_sum<C>(); }
PT_DEVICE State merge(State x, State y) { return merge_exp_sums(x, y); }
PT_DEVICE void add(State &s, C x, C) { add_exps<1>(s, &x); }
#ifdef PT_SOFTMAX_LOG
PT_DEVICE State finished(State s) { return State{s.top, pt::log(s.sum)}; }
PT_DEVICE C value(C x, C, State s) { return (x - s.top) - s.sum; }
#else
PT_DEVICE State finished(State s) { return State{s.top, C(1) / s.sum}; }
PT_DEVICE C value(C x, C, State s) { return math::exp(x - s.top) * s.sum; }
#endif

// Filling is -infinity: its exp is 0, or NaN where the whole row is -infinity.
template <class X> PT_DEVICE void kept_row(const SoftmaxArgs &a, int64_t r, bool here,
                                           const Row &row, X &x, X &) {
    const int64_t n = here ? a.n : 0;
    keep(x, row, Inputs(a, r, here).first, a.step[0], n, a.packed, -pt::infinity<C>());
    C top = -pt::infinity<C>(), sum = 0;
    PT_UNROLL_BY(X::UNROLL) for (int k = 0; k < x.count; k++) top = x[k] > top ? x[k] : top;
    top = row.largest(top);
#ifdef PT_SOFTMAX_LOG
    PT_UNROLL_BY(X::UNROLL) for (int k = 0; k < x.count; k++) sum += math::exp(x[k] - top);
    const C shift = pt::log(row.sum(sum));
    PT_UNROLL_BY(X::UNROLL) for (int k = 0; k < x.count; k++) x[k] = (x[k] - top) - shift;
#else
    PT_UNROLL_BY(X::UNROLL) for (int k = 0; k < x.count; k++) sum += x[k] = math::exp(x[k] - top);
    const C scale = C(1) / row.sum(sum);
    PT_UNROLL_BY(X::UNROLL) for (int k = 0; k < x.count; k++) x[k] *= scale;
#endif
    put_row(static_cast<PT_T *>(a.out) + r * a.n, row, x, n, a.packed);
}
#endif

struct Merge { PT_DEVICE_MEMBER State operator()(State x, State y) const { return merge(x, y); } };

PT_DEVICE C second(const PT_T *y, int64_t i) { return INPUTS > 1 ? up(y[i]) : C(0); }

template <class X> PT_DEVICE void each_row(const SoftmaxArgs &a, const Row &row, X &x, X &y) {
    for (int64_t base = (int64_t)blockIdx.x * row.slots; base < a.rows;
         base += (int64_t)gridDim.x * row.slots)
        kept_row(a, base + row.slot, base + row.slot < a.rows, row, x, y);
}

template <int P> PT_DEVICE void rows_in_registers(const SoftmaxArgs &a) {
    Registers<C, vector_of<PT_T>::size, P> x, y;
    each_row(a, Row(a.log2), x, y);
}

PT_DEVICE void kept_rows(const SoftmaxArgs &a, const Row &row, C *memory) {
    Kept<C> x = kept(memory, row, a.count, 0, INPUTS),
            y = kept(memory, row, a.count, INPUTS - 1, INPUTS);
    each_row(a, row, x, y);
}

}  // namespace

PT_KERNEL_SYNC(PT_SOFTMAX(rows), SoftmaxArgs, a, PT_ROW_THREADS) {
    PT_DYNAMIC_SHARED(C, memory);
    kept_rows(a, Row(a.log2), memory);
}
PT_KERNEL_SYNC_BLOCKS(PT_SOFTMAX(one), SoftmaxArgs, a, PT_ROW_THREADS, 5 - INPUTS) {
    rows_in_registers<1>(a);
}
PT_KERNEL_SYNC_BLOCKS(PT_SOFTMAX(two), SoftmaxArgs, a, PT_ROW_THREADS, 6 - 2 * INPUTS) {
    rows_in_registers<2>(a);
}
PT_KERNEL_SYNC_BLOCKS(PT_SOFTMAX(four), SoftmaxArgs, a, PT_ROW_THREADS, 4 - INPUTS) {
    rows_in_registers<4>(a);
}

PT_KERNEL_SYNC(PT_SOFTMAX(wide), SoftmaxArgs, a, PT_WIDE_THREADS) {
    PT_DYNAMIC_SHARED(C, memory);
    kept_rows(a, Row(PT_WIDE_LOG2), memory);
}

namespace {

// A thread's column, which `height` threads of the block share, and the range of its elements that
// they take.
struct Column {
    const SoftmaxArgs &a;
    int x, y, width, height;
    int64_t begin, end;
    PT_DEVICE_MEMBER Column(const SoftmaxArgs &a, int64_t begin, int64_t n)
        : a(a), x(threadIdx.x & ((1 << a.log2) - 1)), y(threadIdx.x >> a.log2), width(1 << a.log2),
          height(PT_ROW_THREADS >> a.log2), begin(begin), end(begin + n < a.n ? begin + n : a.n) {}

    PT_DEVICE_MEMBER State state(int64_t r) const {
        const Inputs in(a, r, true);
        State s = nothing();
        for (int64_t i = begin + y; i < end; i += height)
            add(s, up(in.first[i * a.step[0]]), second(in.second, i * a.step[1]));
        return s;
    }
    // Merges the states of the column's threads; all threads of the block call.
    PT_DEVICE_MEMBER State joined(State s, State *partial) const {
        __syncthreads();                // waits for readers of the last round's `partial`
        partial[threadIdx.x] = s;
        __syncthreads();
        for (int step = height >> 1; step; step >>= 1) {
            if (y < step)
                partial[threadIdx.x] =
                    merge(partial[threadIdx.x], partial[threadIdx.x + step * width]);
            __syncthreads();
        }
        return partial[x];
    }
    PT_DEVICE_MEMBER void put(int64_t r, State s) const {
        const Inputs in(a, r, true);
        int64_t outer = r;
        const int64_t inner = a.inner.by, column = take_rest(outer, a.inner);
        PT_T *out = static_cast<PT_T *>(a.out) + outer * a.n * inner + column;
        s = finished(s);
        for (int64_t i = begin + y; i < end; i += height)
            out[i * inner] =
                down<PT_T>(value(up(in.first[i * a.step[0]]), second(in.second, i * a.step[1]), s));
    }
};

}  // namespace

PT_KERNEL_SYNC(PT_SOFTMAX(columns), SoftmaxArgs, a, PT_ROW_THREADS) {
    __shared__ State partial[PT_ROW_THREADS];
    const Column c(a, 0, a.n);
    for (int64_t base = (int64_t)blockIdx.x * c.width; base < a.rows;
         base += (int64_t)gridDim.x * c.width) {
        const int64_t r = base + c.x;
        const State s = c.joined(r < a.rows ? c.state(r) : nothing(), partial);
        if (r < a.rows) c.put(r, s);
    }
}

PT_KERNEL_SYNC(PT_SOFTMAX(parts), SoftmaxArgs, a, PT_ROW_THREADS) {
    __shared__ State partial[PT_ROW_THREADS];
    const Column c(a, blockIdx.y * a.chunk, a.chunk);
    const int64_t r = (int64_t)blockIdx.x * c.width + c.x;
    const State s = c.joined(r < a.rows ? c.state(r) : nothing(), partial);
    if (r < a.rows && c.y == 0) static_cast<State *>(a.partial)[blockIdx.y * a.rows + r] = s;
}

PT_KERNEL_SYNC(PT_SOFTMAX(split), SoftmaxArgs, a, PT_ROW_THREADS) {
    __shared__ State partial[PT_ROW_THREADS];
    const Column c(a, blockIdx.y * a.chunk, a.chunk);
    const int64_t r = (int64_t)blockIdx.x * c.width + c.x;
    State s = nothing();
    if (r < a.rows)
        for (int p = c.y; p < (int)gridDim.y; p += c.height)
            s = merge(s, static_cast<const State *>(a.partial)[p * a.rows + r]);
    s = c.joined(s, partial);
    if (r < a.rows) c.put(r, s);
}
