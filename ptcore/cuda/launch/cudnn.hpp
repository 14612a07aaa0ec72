// cuDNN, where it is installed, as a table of pointers; convolution and attention by cuDNN.
// Statuses are cudnnStatus_t; descriptors are opaque.
#pragma once
#include <cstddef>
#include <cstdint>

#include "launch.hpp"

namespace pt_cuda {

// cudnnConvolutionFwdAlgoPerf_t and the structs of the two gradients.
struct DnnAlgorithm {
    int algorithm, status;
    float time;
    size_t memory;
    int determinism, math, reserved[3];
};

struct Dnn {
#define PT_DNN(field, result, name, parameters) result (*field) parameters;
#include "functions.h"
};
extern Dnn dnn;

struct DnnSettings {
    bool enabled = true, attention = false;
    bool deterministic = false,
         all_deterministic = false;      // of backends.cudnn, and of all algorithms
    bool repeats() const { return deterministic || all_deterministic; }
};
extern DnnSettings dnn_settings;

enum DnnKind { DNN_FORWARD, DNN_DATA, DNN_FILTER };
enum { DNN_DECLINES = -1 };
// Computes a call of convolve, convolve_transposed or convolve_weight; DNN_DECLINES where cuDNN is
// not installed or has no algorithm for the call.
int convolve_by_cudnn(pt_call *c, DnnKind kind);

// Everything that a plan of attention depends on, as int64_t, so that bytes compare. Strides are in
// elements.
struct DnnAttention {
    int64_t device, backward, type, causal, deterministic, n, heads, held, l, s, e, v;
    int64_t query_strides[4], key_strides[4], value_strides[4], gradient_strides[4];
};
// The forward of attention, or its gradients if `first` is 1: then the inputs begin with the
// result's gradient. No mask, no dropout. Query, key, value and gradient are 16-bit with 4 dims.
int attend_by_cudnn(pt_call *c, int first, float scale, bool causal);
// The workspace of a plan with dense operands, for the device that the text `device` (cuDNN's JSON)
// describes; below 0 if there is no plan. No device is needed.
int64_t attention_room(const DnnAttention &a, const char *device);

struct DnnHandle {
    void *handle = nullptr, *stream = nullptr;
    bool set = false;
};
// This thread's handle, on the call's device and stream; NULL where cuDNN is not installed or does
// not start.
DnnHandle *dnn_handle(pt_call *c);

}  // namespace pt_cuda
