// The steps of an exponential of matrices, except products.
#include "divide.cuh"
#include "matrix_exp_args.h"
#include "parts.cuh"

namespace {

struct larger {
    PT_DEVICE_MEMBER double operator()(double x, double y) const { return x < y ? y : x; }
};

}  // namespace

PT_KERNEL(exp_sums, MatrixExpArgs, a, 256) {
    const T *const x = reinterpret_cast<const T *>(a.to);
    const int64_t order = a.order.by;
    PT_GRID_STRIDE(i, a.batch * order) {
        int64_t matrix = i;
        const int64_t j = take_rest(matrix, a.order);
        const T *const column = x + matrix * order * order + j;
        double sum = 0;
        for (int64_t row = 0; row < order; row++) sum += (double)pt::abs(column[row * order]);
        a.sums[i] = sum < pt::infinity<double>() ? sum : pt::infinity<double>();
    }
}

// A block for each matrix.
PT_KERNEL_SYNC(exp_squarings, MatrixExpArgs, a, 128) {
    double norm = 0;
    for (int64_t j = threadIdx.x; j < a.order.by; j += 128)
        norm = larger()(norm, a.sums[blockIdx.x * a.order.by + j]);
    norm = block_reduce(norm, larger(), 0.0);
    if (threadIdx.x) return;
    int squarings = norm < pt::infinity<double>() ? 0 : -1;
    for (; squarings >= 0 && norm > a.limit; norm *= 0.5) squarings++;
    a.squarings[blockIdx.x] = squarings;
}

PT_KERNEL(exp_scale, MatrixExpArgs, a, 256) {
    T *const x = reinterpret_cast<T *>(a.to);
    PT_GRID_STRIDE(i, a.n) {
        const int squarings = a.squarings[divided(divided(i, a.order), a.order)];
        double factor = 1;
        for (int k = 0; k < squarings; k++) factor *= 0.5;
        x[i] = squarings < 0 ? T(R(0)) : x[i] * (R)factor;
    }
}

PT_KERNEL(exp_combine, MatrixExpArgs, a, 256) {
    T *const to = reinterpret_cast<T *>(a.to);
    PT_GRID_STRIDE(i, a.n) {
        int64_t rest = i;
        const int64_t column = take_rest(rest, a.order), row = take_rest(rest, a.order);
        T sum = T(R(column == row ? a.c0 : 0));
        for (int k = 0; k < 4; k++)
            sum = sum + reinterpret_cast<const T *>(a.from[k])[i] * (R)a.c[k];
        to[i] = a.add ? to[i] + sum : sum;
    }
}

// Takes over the squares (a.other) of matrices that need more than a.round squarings. The last call
// (without a.other) sets matrices that are not finite to NaN.
PT_KERNEL(exp_square, MatrixExpArgs, a, 256) {
    T *const to = reinterpret_cast<T *>(a.to);
    PT_GRID_STRIDE(i, a.n) {
        const int squarings = a.squarings[divided(divided(i, a.order), a.order)];
        if (!a.other && squarings < 0) to[i] = T(pt::not_a_number<R>());
        if (a.other && a.round < squarings) to[i] = reinterpret_cast<const T *>(a.other)[i];
    }
}
