// cuBLAS as a table of pointers that _cublas.pyx fills from the library cuda.pathfinder finds. Statuses are cublasStatus_t;
// data and compute types have CUDA's numbers.
#pragma once
#include <cstddef>

namespace pt_cuda {

struct Blas {
    int (*create)(void **handle);
    int (*destroy)(void *handle);
    int (*set_stream)(void *handle, void *stream);
    int (*set_workspace)(void *handle, void *workspace, size_t nbytes);
    int (*set_math_mode)(void *handle, int mode);
    int (*get_version)(void *handle, int *version);
    int (*gemm)(void *handle, int op_a, int op_b, int m, int n, int k, const void *alpha, const void *a, int type_a, int lda,
                const void *b, int type_b, int ldb, const void *beta, void *c, int type_c, int ldc, int compute, int algorithm);
    int (*gemm_batched)(void *handle, int op_a, int op_b, int m, int n, int k, const void *alpha, const void *a, int type_a,
                        int lda, long long stride_a, const void *b, int type_b, int ldb, long long stride_b,
                        const void *beta, void *c, int type_c, int ldc, long long stride_c, int batch, int compute,
                        int algorithm);
};
extern Blas blas;

// PyTorch's settings of torch.backends.cuda.matmul.
struct BlasSettings {
    bool tf32 = false, reduced_half = true, reduced_bfloat16 = true;
};
extern BlasSettings blas_settings;

// Fills the table; a pt_status with a text in error[256].
extern int (*load_blas)(char *error);

}  // namespace pt_cuda
