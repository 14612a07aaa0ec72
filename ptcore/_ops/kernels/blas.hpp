/* The region in which the BLAS runs on one thread, for kernels that split their own work. */
#ifndef PTCORE_KERNELS_BLAS_HPP
#define PTCORE_KERNELS_BLAS_HPP
#include "ptcore/blas.h"

namespace {

struct one_blas_thread {
    one_blas_thread() { pt_blas_one_thread(1); }
    ~one_blas_thread() { pt_blas_one_thread(-1); }
    one_blas_thread(const one_blas_thread &) = delete;
    one_blas_thread &operator=(const one_blas_thread &) = delete;
};

} // namespace
#endif
