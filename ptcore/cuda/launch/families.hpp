// The tables of structured kernels, one for each file: by the rows' `kernel` column, as the CPU's.
#pragma once
#include "ptcore/kernel.h"

namespace pt_cuda {

extern const pt_kernel_entry index_kernels[], matmul_kernels[];
extern const pt_kernel_entry convolution_kernels[], pooling_kernels[];

}  // namespace pt_cuda
