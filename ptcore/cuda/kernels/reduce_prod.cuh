// prod.
#define PT_REDUCE_PRODUCT
#include "reduce_sum.cuh"
