// All tables of structured kernels.
#include "backend.hpp"
#include "families.hpp"

namespace pt_cuda {

const pt_kernel_entry *const kernels[] = {
    attention_kernels,
    channel_norm_kernels,
    convolution_kernels,
    decompose_kernels,
    elimination_kernels,
    fft_kernels,
    grid_sample_kernels,
    histogram_kernels,
    index_kernels,
    loss_kernels,
    matmul_kernels,
    matrix_exp_kernels,
    nonzero_kernels,
    normalize_kernels,
    pad_kernels,
    pooling_kernels,
    random_kernels,
    recurrent_kernels,
    reduction_kernels,
    resample_kernels,
    scan_kernels,
    shape_kernels,
    softmax_kernels,
    sort_kernels,
    nullptr};

}  // namespace pt_cuda
