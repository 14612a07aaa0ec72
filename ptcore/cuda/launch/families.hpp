// The tables of structured kernels, one for each file, named as in the rows' column `kernel`.
#pragma once
#include "ptcore/kernel.h"

namespace pt_cuda {

extern const pt_kernel_entry attention_kernels[];
extern const pt_kernel_entry channel_norm_kernels[];
extern const pt_kernel_entry convolution_kernels[];
extern const pt_kernel_entry decompose_kernels[];
extern const pt_kernel_entry elimination_kernels[];
extern const pt_kernel_entry fft_kernels[];
extern const pt_kernel_entry grid_sample_kernels[];
extern const pt_kernel_entry histogram_kernels[];
extern const pt_kernel_entry index_kernels[];
extern const pt_kernel_entry loss_kernels[];
extern const pt_kernel_entry matmul_kernels[];
extern const pt_kernel_entry matrix_exp_kernels[];
extern const pt_kernel_entry nonzero_kernels[];
extern const pt_kernel_entry normalize_kernels[];
extern const pt_kernel_entry pad_kernels[];
extern const pt_kernel_entry pooling_kernels[];
extern const pt_kernel_entry random_kernels[];
extern const pt_kernel_entry recurrent_kernels[];
extern const pt_kernel_entry reduction_kernels[];
extern const pt_kernel_entry resample_kernels[];
extern const pt_kernel_entry scan_kernels[];
extern const pt_kernel_entry shape_kernels[];
extern const pt_kernel_entry softmax_kernels[];
extern const pt_kernel_entry sort_kernels[];

}  // namespace pt_cuda
