// Attention's forward by tensor cores with masks, dropout or a scale that is not above 0.
#define PT_ATTENTION_MASKED
#include "attention_tensor.cuh"
