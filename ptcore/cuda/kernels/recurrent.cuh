// One step of a recurrent layer, after the product of its state and the weight. A thread computes a
// cell. The formulas are those of _ops/recurrent/recurrent.cpp.
#include "base.cuh"
#include "recurrent_args.h"

namespace {

typedef PT_T T;
typedef opmath<T>::type C;

// of: element i of memory of T, 0 without memory. wide: element i of memory of C.
PT_DEVICE C of(const void *p, int64_t i) { return p ? (C)up(static_cast<const T *>(p)[i]) : C(0); }
PT_DEVICE void put(void *p, int64_t i, C x) { static_cast<T *>(p)[i] = down<T>(x); }
PT_DEVICE C &wide(void *p, int64_t i) { return static_cast<C *>(p)[i]; }

PT_DEVICE void keep(void *p, int64_t i, int64_t n, C x, C y, C z, C w) {
    put(p, i, x), put(p, i + n, y), put(p, i + 2 * n, z), put(p, i + 3 * n, w);
}

struct Step {
    uint32_t row, j;
    int64_t gates, kept;        // the place of this cell's first gate
    PT_DEVICE_MEMBER Step(const RecurrentArgs &a, uint32_t i) : row(i / a.n), j(i % a.n) {
        gates = (int64_t)row * (a.mode == PT_RNN_LSTM ? 4 : a.mode == PT_RNN_GRU ? 3 : 1) * a.n + j;
        kept = (int64_t)row * 4 * a.n + j;
    }
};

PT_DEVICE void forward(const RecurrentArgs &a, uint32_t i) {
    const Step s(a, i);
    const int64_t n = a.n;
    const C *const product = static_cast<const C *>(a.product);
    const auto hidden = [&](int k) { return product[s.gates + k * n] + of(a.bias, s.j + k * n); };
    const auto gate = [&](int k) { return of(a.gates, s.gates + k * n) + hidden(k); };
    C h;
    if (a.mode == PT_RNN_LSTM) {
        const C in = pt::sigmoid(gate(0)), forget = pt::sigmoid(gate(1)), o = pt::sigmoid(gate(3));
        const C g = pt::tanh(gate(2));
        keep(a.kept, s.kept, n, in, forget, g, o);
        const C cell = forget * wide(a.cell, i) + in * g;
        wide(a.cell, i) = cell;
        put(a.cells, i, cell);
        h = o * pt::tanh(cell);
    } else if (a.mode == PT_RNN_GRU) {
        const C r = pt::sigmoid(gate(0)), z = pt::sigmoid(gate(1)), p = hidden(2);
        const C q = pt::tanh(of(a.gates, s.gates + 2 * n) + r * p);
        keep(a.kept, s.kept, n, r, z, q, p);
        h = q + z * (of(a.state, i) - q);
    } else {
        const C x = gate(0);
        h = a.mode == PT_RNN_TANH ? pt::tanh(x) : x != x || x > C(0) ? x : C(0);
    }
    put(a.state, i, h);
    if (a.out) put(a.out, i, h);
}

PT_DEVICE void backward(const RecurrentArgs &a, uint32_t i) {
    const Step s(a, i);
    const int64_t n = a.n;
    const C d = wide(a.d, i) + of(a.g, i);
    const auto kept = [&](int k) { return of(a.kept, s.kept + k * n); };
    if (a.mode == PT_RNN_LSTM) {
        const C in = kept(0), forget = kept(1), g = kept(2), o = kept(3);
        const C t = pt::tanh(of(a.values, i)),
                before = of(s.row < a.before ? a.earlier : a.first, i);
        const C c = wide(a.cell, i) + of(a.g_cells, i) + d * o * (1 - t * t);
        keep(a.d_gates, s.gates, n, c * g * in * (1 - in), c * before * forget * (1 - forget),
             c * in * (1 - g * g), d * t * o * (1 - o));
        wide(a.cell, i) = c * forget;
    } else if (a.mode == PT_RNN_GRU) {
        const C r = kept(0), z = kept(1), q = kept(2), p = kept(3);
        const C dq = d * (1 - z) * (1 - q * q), dr = dq * p * r * (1 - r);
        const C dz = d * (of(a.previous, i) - q) * z * (1 - z);
        put(a.d_gates, s.gates, dr), put(a.d_gates, s.gates + n, dz),
            put(a.d_gates, s.gates + 2 * n, dq);
        put(a.hidden, s.gates, dr), put(a.hidden, s.gates + n, dz),
            put(a.hidden, s.gates + 2 * n, dq * r);
        wide(a.d, i) = d * z;
    } else {
        const C h = of(a.values, i);
        put(a.d_gates, i, a.mode == PT_RNN_TANH ? d * (1 - h * h) : h <= C(0) ? C(0) : d);
    }
}

}  // namespace

PT_KERNEL(recurrent_forward, RecurrentArgs, a, 256) {
    PT_GRID_STRIDE(i, a.count) forward(a, (uint32_t)i);
}
PT_KERNEL(recurrent_backward, RecurrentArgs, a, 256) {
    PT_GRID_STRIDE(i, a.count) backward(a, (uint32_t)i);
}
PT_KERNEL(recurrent_sum, RecurrentArgs, a, 256) {
    PT_GRID_STRIDE(i, a.count) put(a.sum, i, wide(a.d, i) + of(a.g, i));
}
