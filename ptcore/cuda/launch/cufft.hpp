// cuFFT as a table of pointers, and its plans. Statuses are cufftResult; data types have CUDA's numbers (cublas.hpp).
#pragma once
#include <cstddef>
#include <cstdint>

#include "launch.hpp"

namespace pt_cuda {

struct Fft {
    int (*create)(int *plan);
    int (*set_auto_allocation)(int plan, int on);
    int (*make_plan)(int plan, int rank, long long *n, long long *in_embed, long long in_stride, long long in_distance,
                     int in_type, long long *out_embed, long long out_stride, long long out_distance, int out_type,
                     long long batch, size_t *work_nbytes, int type);
    int (*set_stream)(int plan, void *stream);
    int (*set_work_area)(int plan, void *work);
    int (*execute)(int plan, void *in, void *out, int direction);
    int (*destroy)(int plan);
};
extern Fft fft;

enum { FFT_FORWARD = -1, FFT_INVERSE = 1 };

// The plans of a device that are kept, the most that may be, and what gives them up. They cost milliseconds to make.
int64_t fft_plans(int device);
int64_t fft_plan_limit(int device);
void set_fft_plan_limit(int device, int64_t most);
void forget_fft_plans(int device);

}  // namespace pt_cuda
