// cuBLAS as a table of pointers, which library_tables.pyx fills from the library that
// cuda.pathfinder finds. Statuses are cublasStatus_t; data and compute types have CUDA's numbers.
#pragma once
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "launch.hpp"

namespace pt_cuda {

struct Blas {
#define PT_BLAS(field, result, name, parameters) result (*field) parameters;
#define PT_BLAS4(field, s, d, c, z, parameters) int (*field[4]) parameters;
#include "functions.h"
};
extern Blas blas;

// cuBLASLt, also as a table of pointers. Descriptors, layouts and preferences are opaque;
// attributes have the numbers of cublasLt.h.
struct BlasLt {
#define PT_LT(field, result, name, parameters) result (*field) parameters;
#include "functions.h"
};
extern BlasLt blas_lt;

// PyTorch's settings of torch.backends.cuda.matmul, torch.backends.cudnn.allow_tf32, and the bytes
// of a stream's workspace (-1: by the device).
struct BlasSettings {
    bool tf32 = false, reduced_half = true, reduced_bfloat16 = true, convolution_tf32 = true;
    int64_t workspace = -1;
};
extern BlasSettings blas_settings;

enum { R_32F = 0, R_64F = 1, R_16F = 2, C_32F = 4, C_64F = 5, R_16BF = 14 };
enum { COMPUTE_32F = 68, COMPUTE_64F = 70, COMPUTE_TF32 = 77, NO_REDUCED_PRECISION = 16 };

// A pt_status for a cublasStatus_t, with its text in c->error.
int blas_failed(pt_call *c, int status);

// This thread's handle of cuBLAS for the call's device, set to its stream and a workspace.
int blas_handle(pt_call *c, int math_mode, void **handle);

// The lock to hold while a call of cuBLAS enqueues its kernels: they leave data for each other in
// the stream's workspace, and no other thread's kernels may come between. The holder must not wait
// for the interpreter.
std::mutex &blas_turn(const pt_call *c);

// out = alpha op(a) op(b), by columns, plus the m elements of `bias`, added to each column.
// Scalars are on the host, of the type that `compute` names.
struct BiasProduct {
    int type, compute, turn_a, turn_b, m, n, k, lead_a, lead_b, lead_out;
    bool reduced;                       // whether partial sums may be added in `type`
    const void *alpha, *zero, *a, *b, *bias;
    void *out;
};
enum { BLAS_DECLINES = -1 };
// By cuBLASLt in one kernel; BLAS_DECLINES if cuBLASLt has no kernel for the product.
int product_with_bias(pt_call *c, const BiasProduct &p);

}  // namespace pt_cuda
