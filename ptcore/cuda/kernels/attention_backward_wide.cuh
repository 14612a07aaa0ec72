// Attention's gradients for results of more than one stage of columns.
#define PT_ATTENTION_WIDE
#include "attention_backward.cuh"
