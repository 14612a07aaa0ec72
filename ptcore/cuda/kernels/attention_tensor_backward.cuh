// Attention's gradients by tensor cores, for heads of at most 64 and 128 elements.
#include "attention_tensor_base.cuh"

PT_ATTEND_TENSOR(attention_query_tensor_64, QUERY, 64, 4, 1, 64, IS_FLOAT ? 2 : 3)
PT_ATTEND_TENSOR(attention_query_tensor_128, QUERY, 128, 4, 1, IS_FLOAT ? 16 : 32, IS_FLOAT ? 2 : 3)
PT_ATTEND_TENSOR(attention_key_tensor_64, KEY, 64, 4, 1, 64, 2)
PT_ATTEND_TENSOR(attention_key_tensor_128, KEY, 128, 4, 1, IS_FLOAT ? 16 : 32, 2)
