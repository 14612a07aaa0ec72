// Attention's forward: up to one or two stages of columns of values at once, and for few queries.
#include "attention_base.cuh"

#define PT_ATTEND(name, rows, stages) \
    PT_KERNEL_SYNC(name, AttentionArgs, a, PT_ATTENTION_THREADS) { \
        PT_DYNAMIC_SHARED(C, memory); \
        attend<FORWARD, rows, stages>(a, memory); \
    }
PT_ATTEND(attention_narrow, ROWS, 1)
PT_ATTEND(attention_wide, ROWS, 2)
PT_ATTEND(attention_few, 1, 2)
