// cuFFT as a table of pointers, and its plans. Statuses are cufftResult; data types have CUDA's
// numbers (cublas.hpp).
#pragma once
#include <cstddef>
#include <cstdint>

#include "launch.hpp"

namespace pt_cuda {

struct Fft {
#define PT_FFT(field, result, name, parameters) result (*field) parameters;
#include "functions.h"
};
extern Fft fft;

enum { FFT_FORWARD = -1, FFT_INVERSE = 1 };

// The number of plans that are kept for a device, its limit, and functions that set the limit and
// drop the plans. A plan takes milliseconds to make.
int64_t fft_plans(int device);
int64_t fft_plan_limit(int device);
void set_fft_plan_limit(int device, int64_t most);
void forget_fft_plans(int device);

}  // namespace pt_cuda
