// The Euclidean norm, which is asked for most.
#define PT_REDUCE_NORM 2
#include "reduce_norm.cuh"
