// The functions of CUDA's libraries that the backend calls: one list, from which the tables of
// pointers (`struct Blas` and the others) are made, and the names by which library_tables.pyx looks
// the functions up. It has no guard: each includer defines what an entry is. PT_BLAS(field, result,
// name, parameters) is one function; PT_BLAS4(field, names, parameters) are four, for float, double
// and their complex types, all of which return a status.
#ifndef PT_BLAS
#define PT_BLAS(...)
#endif
#ifndef PT_BLAS4
#define PT_BLAS4(...)
#endif
#ifndef PT_LT
#define PT_LT(...)
#endif
#ifndef PT_FFT
#define PT_FFT(...)
#endif
#ifndef PT_SOLVER
#define PT_SOLVER(...)
#endif
#ifndef PT_SOLVER4
#define PT_SOLVER4(...)
#endif
#ifndef PT_DNN
#define PT_DNN(...)
#endif

// cuBLAS. A triangle's pivots and infos lie on the device, the info of a solve on the host.
PT_BLAS(create, int, cublasCreate_v2, (void **handle))
PT_BLAS(set_stream, int, cublasSetStream_v2, (void *handle, void *stream))
PT_BLAS(set_workspace, int, cublasSetWorkspace_v2, (void *handle, void *workspace, size_t nbytes))
PT_BLAS(set_math_mode, int, cublasSetMathMode, (void *handle, int mode))
PT_BLAS4(triangular, cublasStrsm_v2, cublasDtrsm_v2, cublasCtrsm_v2, cublasZtrsm_v2, (void *handle,
    int side, int uplo, int op, int diagonal, int m, int n, const void *alpha, const void *a,
    int lda, void *b, int ldb))
PT_BLAS4(triangular_batched, cublasStrsmBatched, cublasDtrsmBatched, cublasCtrsmBatched,
    cublasZtrsmBatched, (void *handle, int side, int uplo, int op, int diagonal, int m, int n,
    const void *alpha, const void *const *a, int lda, void *const *b, int ldb, int batch))
PT_BLAS4(factor_batched, cublasSgetrfBatched, cublasDgetrfBatched, cublasCgetrfBatched,
    cublasZgetrfBatched, (void *handle, int n, void *const *a, int lda, int *pivots, int *infos,
    int batch))
PT_BLAS4(solve_batched, cublasSgetrsBatched, cublasDgetrsBatched, cublasCgetrsBatched,
    cublasZgetrsBatched, (void *handle, int op, int n, int k, const void *const *a, int lda,
    const int *pivots, void *const *b, int ldb, int *info, int batch))
PT_BLAS(gemm, int, cublasGemmEx, (void *handle, int op_a, int op_b, int m, int n, int k,
    const void *alpha, const void *a, int type_a, int lda, const void *b, int type_b, int ldb,
    const void *beta, void *c, int type_c, int ldc, int compute, int algorithm))
PT_BLAS(gemm_batched, int, cublasGemmStridedBatchedEx, (void *handle, int op_a, int op_b, int m,
    int n, int k, const void *alpha, const void *a, int type_a, int lda, long long stride_a,
    const void *b, int type_b, int ldb, long long stride_b, const void *beta, void *c, int type_c,
    int ldc, long long stride_c, int batch, int compute, int algorithm))

// cuBLASLt. Descriptors, layouts and preferences are opaque; attributes have the numbers of
// cublasLt.h.
PT_LT(operation_create, int, cublasLtMatmulDescCreate, (void **operation, int compute,
    int scale_type))
PT_LT(operation_destroy, int, cublasLtMatmulDescDestroy, (void *operation))
PT_LT(operation_set, int, cublasLtMatmulDescSetAttribute, (void *operation, int attribute,
    const void *value, size_t nbytes))
PT_LT(layout_create, int, cublasLtMatrixLayoutCreate, (void **layout, int type, uint64_t rows,
    uint64_t columns, int64_t leading))
PT_LT(layout_destroy, int, cublasLtMatrixLayoutDestroy, (void *layout))
PT_LT(preference_create, int, cublasLtMatmulPreferenceCreate, (void **preference))
PT_LT(preference_destroy, int, cublasLtMatmulPreferenceDestroy, (void *preference))
PT_LT(preference_set, int, cublasLtMatmulPreferenceSetAttribute, (void *preference, int attribute,
    const void *value, size_t nbytes))
PT_LT(heuristic, int, cublasLtMatmulAlgoGetHeuristic, (void *handle, void *operation, void *a,
    void *b, void *c, void *out, void *preference, int wanted, void *results, int *found))
PT_LT(matmul, int, cublasLtMatmul, (void *handle, void *operation, const void *alpha, const void *a,
    void *layout_a, const void *b, void *layout_b, const void *beta, const void *c, void *layout_c,
    void *out, void *layout_out, const void *algorithm, void *workspace, size_t workspace_nbytes,
    void *stream))

// cuFFT
PT_FFT(create, int, cufftCreate, (int *plan))
PT_FFT(set_auto_allocation, int, cufftSetAutoAllocation, (int plan, int on))
PT_FFT(make_plan, int, cufftXtMakePlanMany, (int plan, int rank, long long *n, long long *in_embed,
    long long in_stride, long long in_distance, int in_type, long long *out_embed,
    long long out_stride, long long out_distance, int out_type, long long batch,
    size_t *work_nbytes, int type))
PT_FFT(set_stream, int, cufftSetStream, (int plan, void *stream))
PT_FFT(set_work_area, int, cufftSetWorkArea, (int plan, void *work))
PT_FFT(execute, int, cufftXtExec, (int plan, void *in, void *out, int direction))
PT_FFT(destroy, int, cufftDestroy, (int plan))

// cuSOLVER. The function before a routine returns the size of the routine's workspace.
PT_SOLVER(create, int, cusolverDnCreate, (void **handle))
PT_SOLVER(set_stream, int, cusolverDnSetStream, (void *handle, void *stream))
PT_SOLVER(create_params, int, cusolverDnCreateParams, (void **params))
PT_SOLVER(create_jacobi, int, cusolverDnCreateGesvdjInfo, (void **jacobi))
PT_SOLVER(potrf_size, int, cusolverDnXpotrf_bufferSize, (void *handle, void *params, int uplo,
    int64_t n, int type, const void *a, int64_t lda, int compute, size_t *on_device,
    size_t *on_host))
PT_SOLVER(potrf, int, cusolverDnXpotrf, (void *handle, void *params, int uplo, int64_t n, int type,
    void *a, int64_t lda, int compute, void *device, size_t on_device, void *host, size_t on_host,
    int *info))
PT_SOLVER(getrf_size, int, cusolverDnXgetrf_bufferSize, (void *handle, void *params, int64_t m,
    int64_t n, int type, const void *a, int64_t lda, int compute, size_t *on_device,
    size_t *on_host))
PT_SOLVER(getrf, int, cusolverDnXgetrf, (void *handle, void *params, int64_t m, int64_t n, int type,
    void *a, int64_t lda, int64_t *pivots, int compute, void *device, size_t on_device, void *host,
    size_t on_host, int *info))
PT_SOLVER(getrs, int, cusolverDnXgetrs, (void *handle, void *params, int op, int64_t n, int64_t k,
    int type_a, const void *a, int64_t lda, const int64_t *pivots, int type_b, void *b, int64_t ldb,
    int *info))
PT_SOLVER(geqrf_size, int, cusolverDnXgeqrf_bufferSize, (void *handle, void *params, int64_t m,
    int64_t n, int type, const void *a, int64_t lda, int type_tau, const void *tau, int compute,
    size_t *on_device, size_t *on_host))
PT_SOLVER(geqrf, int, cusolverDnXgeqrf, (void *handle, void *params, int64_t m, int64_t n, int type,
    void *a, int64_t lda, int type_tau, void *tau, int compute, void *device, size_t on_device,
    void *host, size_t on_host, int *info))
PT_SOLVER(syevd_size, int, cusolverDnXsyevd_bufferSize, (void *handle, void *params, int vectors,
    int uplo, int64_t n, int type, const void *a, int64_t lda, int type_values, const void *values,
    int compute, size_t *on_device, size_t *on_host))
PT_SOLVER(syevd, int, cusolverDnXsyevd, (void *handle, void *params, int vectors, int uplo,
    int64_t n, int type, void *a, int64_t lda, int type_values, void *values, int compute,
    void *device, size_t on_device, void *host, size_t on_host, int *info))
PT_SOLVER(syev_batched_size, int, cusolverDnXsyevBatched_bufferSize, (void *handle, void *params,
    int vectors, int uplo, int64_t n, int type, const void *a, int64_t lda, int type_values,
    const void *values, int compute, size_t *on_device, size_t *on_host, int64_t batch))
PT_SOLVER(syev_batched, int, cusolverDnXsyevBatched, (void *handle, void *params, int vectors,
    int uplo, int64_t n, int type, void *a, int64_t lda, int type_values, void *values, int compute,
    void *device, size_t on_device, void *host, size_t on_host, int *infos, int64_t batch))
PT_SOLVER(gesvd_size, int, cusolverDnXgesvd_bufferSize, (void *handle, void *params,
    signed char job_u, signed char job_vh, int64_t m, int64_t n, int type, const void *a,
    int64_t lda, int type_s, const void *s, int type_u, const void *u, int64_t ldu, int type_vh,
    const void *vh, int64_t ldvh, int compute, size_t *on_device, size_t *on_host))
PT_SOLVER(gesvd, int, cusolverDnXgesvd, (void *handle, void *params, signed char job_u,
    signed char job_vh, int64_t m, int64_t n, int type, void *a, int64_t lda, int type_s, void *s,
    int type_u, void *u, int64_t ldu, int type_vh, void *vh, int64_t ldvh, int compute,
    void *device, size_t on_device, void *host, size_t on_host, int *info))
PT_SOLVER(geev_size, int, cusolverDnXgeev_bufferSize, (void *handle, void *params, int left,
    int right, int64_t n, int type, const void *a, int64_t lda, int type_values, const void *values,
    int type_left, const void *vl, int64_t ldvl, int type_right, const void *vr, int64_t ldvr,
    int compute, size_t *on_device, size_t *on_host))
PT_SOLVER(geev, int, cusolverDnXgeev, (void *handle, void *params, int left, int right, int64_t n,
    int type, void *a, int64_t lda, int type_values, void *values, int type_left, void *vl,
    int64_t ldvl, int type_right, void *vr, int64_t ldvr, int compute, void *device,
    size_t on_device, void *host, size_t on_host, int *info))
PT_SOLVER(sytrs_size, int, cusolverDnXsytrs_bufferSize, (void *handle, int uplo, int64_t n,
    int64_t k, int type, const void *a, int64_t lda, const int64_t *pivots, int type_b, void *b,
    int64_t ldb, size_t *on_device, size_t *on_host))
PT_SOLVER(sytrs, int, cusolverDnXsytrs, (void *handle, int uplo, int64_t n, int64_t k, int type,
    const void *a, int64_t lda, const int64_t *pivots, int type_b, void *b, int64_t ldb,
    void *device, size_t on_device, void *host, size_t on_host, int *info))
PT_SOLVER4(potrf_batched, cusolverDnSpotrfBatched, cusolverDnDpotrfBatched, cusolverDnCpotrfBatched,
    cusolverDnZpotrfBatched, (void *handle, int uplo, int n, void *const *a, int lda, int *infos,
    int batch))
PT_SOLVER4(gesvdj_size, cusolverDnSgesvdjBatched_bufferSize, cusolverDnDgesvdjBatched_bufferSize,
    cusolverDnCgesvdjBatched_bufferSize, cusolverDnZgesvdjBatched_bufferSize, (void *handle,
    int vectors, int m, int n, const void *a, int lda, const void *s, const void *u, int ldu,
    const void *v, int ldv, int *size, void *jacobi, int batch))
PT_SOLVER4(gesvdj, cusolverDnSgesvdjBatched, cusolverDnDgesvdjBatched, cusolverDnCgesvdjBatched,
    cusolverDnZgesvdjBatched, (void *handle, int vectors, int m, int n, void *a, int lda, void *s,
    void *u, int ldu, void *v, int ldv, void *work, int size, int *infos, void *jacobi, int batch))
PT_SOLVER4(orgqr_size, cusolverDnSorgqr_bufferSize, cusolverDnDorgqr_bufferSize,
    cusolverDnCungqr_bufferSize, cusolverDnZungqr_bufferSize, (void *handle, int m, int n, int k,
    const void *a, int lda, const void *tau, int *size))
PT_SOLVER4(orgqr, cusolverDnSorgqr, cusolverDnDorgqr, cusolverDnCungqr, cusolverDnZungqr,
    (void *handle, int m, int n, int k, void *a, int lda, const void *tau, void *work, int size,
    int *info))
PT_SOLVER4(sytrf_size, cusolverDnSsytrf_bufferSize, cusolverDnDsytrf_bufferSize,
    cusolverDnCsytrf_bufferSize, cusolverDnZsytrf_bufferSize, (void *handle, int n, void *a,
    int lda, int *size))
PT_SOLVER4(sytrf, cusolverDnSsytrf, cusolverDnDsytrf, cusolverDnCsytrf, cusolverDnZsytrf,
    (void *handle, int uplo, int n, void *a, int lda, int *pivots, void *work, int size, int *info))

// cuDNN: convolution, then graphs, which have descriptors of several kinds.
PT_DNN(create, int, cudnnCreate, (void **handle))
PT_DNN(set_stream, int, cudnnSetStream, (void *handle, void *stream))
PT_DNN(tensor_create, int, cudnnCreateTensorDescriptor, (void **tensor))
PT_DNN(tensor_set, int, cudnnSetTensorNdDescriptor, (void *tensor, int type, int ndim,
    const int *sizes, const int *strides))
PT_DNN(tensor_destroy, int, cudnnDestroyTensorDescriptor, (void *tensor))
PT_DNN(filter_create, int, cudnnCreateFilterDescriptor, (void **filter))
PT_DNN(filter_set, int, cudnnSetFilterNdDescriptor, (void *filter, int type, int format, int ndim,
    const int *sizes))
PT_DNN(filter_destroy, int, cudnnDestroyFilterDescriptor, (void *filter))
PT_DNN(convolution_create, int, cudnnCreateConvolutionDescriptor, (void **convolution))
PT_DNN(convolution_set, int, cudnnSetConvolutionNdDescriptor, (void *convolution, int ndim,
    const int *padding, const int *stride, const int *dilation, int mode, int compute))
PT_DNN(convolution_groups, int, cudnnSetConvolutionGroupCount, (void *convolution, int groups))
PT_DNN(convolution_math, int, cudnnSetConvolutionMathType, (void *convolution, int math))
PT_DNN(convolution_destroy, int, cudnnDestroyConvolutionDescriptor, (void *convolution))
PT_DNN(forward_choices, int, cudnnGetConvolutionForwardAlgorithm_v7, (void *handle, void *x,
    void *filter, void *convolution, void *y, int wanted, int *found, DnnAlgorithm *algorithms))
PT_DNN(forward, int, cudnnConvolutionForward, (void *handle, const void *alpha, void *x,
    const void *x_data, void *filter, const void *filter_data, void *convolution, int algorithm,
    void *room, size_t nbytes, const void *beta, void *y, void *y_data))
PT_DNN(data_choices, int, cudnnGetConvolutionBackwardDataAlgorithm_v7, (void *handle, void *filter,
    void *y, void *convolution, void *x, int wanted, int *found, DnnAlgorithm *algorithms))
PT_DNN(data, int, cudnnConvolutionBackwardData, (void *handle, const void *alpha, void *filter,
    const void *filter_data, void *y, const void *y_data, void *convolution, int algorithm,
    void *room, size_t nbytes, const void *beta, void *x, void *x_data))
PT_DNN(filter_choices, int, cudnnGetConvolutionBackwardFilterAlgorithm_v7, (void *handle, void *x,
    void *y, void *convolution, void *filter, int wanted, int *found, DnnAlgorithm *algorithms))
PT_DNN(filter, int, cudnnConvolutionBackwardFilter, (void *handle, const void *alpha, void *x,
    const void *x_data, void *y, const void *y_data, void *convolution, int algorithm, void *room,
    size_t nbytes, const void *beta, void *filter, void *filter_data))
PT_DNN(descriptor_create, int, cudnnBackendCreateDescriptor, (int kind, void **descriptor))
PT_DNN(descriptor_destroy, int, cudnnBackendDestroyDescriptor, (void *descriptor))
PT_DNN(attribute_set, int, cudnnBackendSetAttribute, (void *descriptor, int name, int type,
    int64_t count, const void *values))
PT_DNN(attribute_get, int, cudnnBackendGetAttribute, (void *descriptor, int name, int type,
    int64_t wanted, int64_t *count, void *values))
PT_DNN(finalize, int, cudnnBackendFinalize, (void *descriptor))
PT_DNN(execute, int, cudnnBackendExecute, (void *handle, void *plan, void *pack))
PT_DNN(version, size_t, cudnnGetVersion, ())

#undef PT_BLAS
#undef PT_BLAS4
#undef PT_LT
#undef PT_FFT
#undef PT_SOLVER
#undef PT_SOLVER4
#undef PT_DNN
