// log_softmax_backward.
#define PT_SOFTMAX_LOG
#define PT_SOFTMAX_BACKWARD
#include "softmax.cuh"
