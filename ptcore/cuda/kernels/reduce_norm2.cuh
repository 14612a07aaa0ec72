// The Euclidean norm, which is used most.
#define PT_REDUCE_NORM 2
#include "reduce_norm.cuh"
