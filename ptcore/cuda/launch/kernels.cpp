// All tables of structured kernels.
#include "backend.hpp"
#include "families.hpp"

namespace pt_cuda {

const pt_kernel_entry *const kernels[] = {index_kernels, matmul_kernels,
                                           convolution_kernels, pooling_kernels,
                                           nullptr};

}  // namespace pt_cuda
