// Attention's forward by tensor cores, for heads of at most 64 and 128 elements.
#include "attention_tensor_base.cuh"

PT_ATTEND_TENSOR(attention_tensor_64, FORWARD, 64, 4, 2, 64, 3)
PT_ATTEND_TENSOR(attention_tensor_128, FORWARD, 128, 4, 1, 64, 3)
