// Attention's forward by tensor cores, for heads of at most 64 and 128 elements.
#include "attention_tensor_base.cuh"

#ifdef PT_ATTENTION_MASKED
enum { BLOCKS_64 = 2 };                 // with 3, a block has too few registers for masks
#else
enum { BLOCKS_64 = IS_FLOAT ? 2 : 3 };  // with 3, the tiles of floats are too large
#endif
PT_ATTEND_TENSOR(attention_tensor_64, FORWARD, 64, 4, 2, 64, BLOCKS_64)
PT_ATTEND_TENSOR(attention_tensor_128, FORWARD, 128, 4, 1, IS_FLOAT ? 32 : 64, IS_FLOAT ? 2 : 3)
