// The tables of CUDA's libraries and the names of their functions, both from functions.h.
#include "cublas.hpp"
#include "cudnn.hpp"
#include "cufft.hpp"
#include "libraries.hpp"
#include "solver.hpp"

namespace pt_cuda {
namespace {

#define PT_BLAS(field, result, name, parameters) #name,
#define PT_BLAS4(field, s, d, c, z, parameters) #s, #d, #c, #z,
const char *const of_blas[] = {
#include "functions.h"
};
#define PT_LT(field, result, name, parameters) #name,
const char *const of_blas_lt[] = {
#include "functions.h"
};
#define PT_FFT(field, result, name, parameters) #name,
const char *const of_fft[] = {
#include "functions.h"
};
#define PT_SOLVER(field, result, name, parameters) #name,
#define PT_SOLVER4(field, s, d, c, z, parameters) #s, #d, #c, #z,
const char *const of_solver[] = {
#include "functions.h"
};
#define PT_DNN(field, result, name, parameters) #name,
const char *const of_dnn[] = {
#include "functions.h"
};

template <class Table, size_t N>
Library library(const char *name, Table &table, const char *const (&functions)[N]) {
    static_assert(sizeof(Table) == N * sizeof(void *), "a table has functions alone");
    return {name, reinterpret_cast<void **>(&table), functions, (int)N};
}

}  // namespace

const Library libraries[LIBRARIES] = {
    library("cublas", blas, of_blas), library("cublasLt", blas_lt, of_blas_lt),
    library("cufft", fft, of_fft), library("cusolver", solver, of_solver),
    library("cudnn", dnn, of_dnn)};

}  // namespace pt_cuda
