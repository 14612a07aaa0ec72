// log_softmax.
#define PT_SOFTMAX_LOG
#include "softmax.cuh"
