// cuBLAS as a table of pointers that library_tables.pyx fills from the library cuda.pathfinder finds. Statuses are cublasStatus_t;
// data and compute types have CUDA's numbers.
#pragma once
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "launch.hpp"

namespace pt_cuda {

struct Blas {
    int (*create)(void **handle);
    int (*set_stream)(void *handle, void *stream);
    int (*set_workspace)(void *handle, void *workspace, size_t nbytes);
    int (*set_math_mode)(void *handle, int mode);
    // Of float, double and their complex types. A triangle's pivots and infos lie on the device, the info of a solve on the host.
    int (*triangular[4])(void *handle, int side, int uplo, int op, int diagonal, int m, int n, const void *alpha, const void *a,
                         int lda, void *b, int ldb);
    int (*triangular_batched[4])(void *handle, int side, int uplo, int op, int diagonal, int m, int n, const void *alpha,
                                 const void *const *a, int lda, void *const *b, int ldb, int batch);
    int (*factor_batched[4])(void *handle, int n, void *const *a, int lda, int *pivots, int *infos, int batch);
    int (*solve_batched[4])(void *handle, int op, int n, int k, const void *const *a, int lda, const int *pivots, void *const *b,
                            int ldb, int *info, int batch);
    int (*gemm)(void *handle, int op_a, int op_b, int m, int n, int k, const void *alpha, const void *a, int type_a, int lda,
                const void *b, int type_b, int ldb, const void *beta, void *c, int type_c, int ldc, int compute, int algorithm);
    int (*gemm_batched)(void *handle, int op_a, int op_b, int m, int n, int k, const void *alpha, const void *a, int type_a,
                        int lda, long long stride_a, const void *b, int type_b, int ldb, long long stride_b,
                        const void *beta, void *c, int type_c, int ldc, long long stride_c, int batch, int compute,
                        int algorithm);
};
extern Blas blas;

// cuBLASLt, likewise. Descriptors, layouts and preferences are opaque; attributes have the numbers of cublasLt.h.
struct BlasLt {
    int (*operation_create)(void **operation, int compute, int scale_type);
    int (*operation_destroy)(void *operation);
    int (*operation_set)(void *operation, int attribute, const void *value, size_t nbytes);
    int (*layout_create)(void **layout, int type, uint64_t rows, uint64_t columns, int64_t leading);
    int (*layout_destroy)(void *layout);
    int (*preference_create)(void **preference);
    int (*preference_destroy)(void *preference);
    int (*preference_set)(void *preference, int attribute, const void *value, size_t nbytes);
    int (*heuristic)(void *handle, void *operation, void *a, void *b, void *c, void *out, void *preference, int wanted,
                     void *results, int *found);
    int (*matmul)(void *handle, void *operation, const void *alpha, const void *a, void *layout_a, const void *b,
                  void *layout_b, const void *beta, const void *c, void *layout_c, void *out, void *layout_out,
                  const void *algorithm, void *workspace, size_t workspace_nbytes, void *stream);
};
extern BlasLt blas_lt;

// PyTorch's settings of torch.backends.cuda.matmul, torch.backends.cudnn.allow_tf32, and the bytes of a stream's workspace (-1: by the device).
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

// To be held while a call of cuBLAS enqueues its kernels, which leave things for each other in the stream's workspace: another
// thread's must not come between. Who holds it must not wait for the interpreter.
std::mutex &blas_turn(const pt_call *c);

// out = alpha op(a) op(b), by columns, plus `bias`, whose m elements are added to each column. Scalars are on the host, of
// the type that `compute` names.
struct BiasProduct {
    int type, compute, turn_a, turn_b, m, n, k, lead_a, lead_b, lead_out;
    bool reduced;                       // whether partial sums may be added in `type`
    const void *alpha, *zero, *a, *b, *bias;
    void *out;
};
enum { BLAS_DECLINES = -1 };
// By cuBLASLt in one kernel; BLAS_DECLINES if it has none for such a product.
int product_with_bias(pt_call *c, const BiasProduct &p);

}  // namespace pt_cuda
