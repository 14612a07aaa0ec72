// Products of matrices, for other host halves.
#pragma once
#include "launch.hpp"

namespace pt_cuda {

// Strides in elements.
struct Matrix {
    const char *data = nullptr;
    int64_t row = 0, column = 0, batch = 0;
};

// out (batch, n, m), row-major and of out_dtype, = alpha a (batch, n, k) b (batch, k, m) + beta c.
// c is a matrix that is broadcast or, without data, what out holds. For integers alpha and beta are
// whole_alpha and whole_beta. out_dtype is dtype, or float32 for half types.
struct Product {
    int64_t batch = 1, n = 1, m = 1, k = 1;
    Matrix a, b, c;
    double alpha[2] = {1, 0}, beta[2] = {0, 0};
    int64_t whole_alpha = 1, whole_beta = 0;
    void *out = nullptr;
    int dtype = PT_NONE, out_dtype = PT_NONE;
    bool tf32 = false;    // float32 may be rounded to TF32, whatever the setting for products
    bool adds() const { return beta[0] != 0 || beta[1] != 0 || whole_beta != 0; }
};

int multiply(pt_call *c, const Product &p);

}  // namespace pt_cuda
