// softmax_backward.
#define PT_SOFTMAX_BACKWARD
#include "softmax.cuh"
