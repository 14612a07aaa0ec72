/* Arguments of elementwise kernels: operand 0 is the output, 1... are the inputs. */
#ifndef PTCORE_CUDA_ELEMENTWISE_ARGS_H
#define PTCORE_CUDA_ELEMENTWISE_ARGS_H
#include "walk_args.h"

typedef struct ElementwiseArgs {
    int64_t n;                                      /* below 2**31 where `walk` is used */
    char *data[PT_WALK_OPERANDS];                   /* NULL for an input that is one host number */
    uint32_t single;                                /* bit k: operand k has one element for all */
    uint32_t aligned;                               /* all others lie at multiples of 16 bytes */
    unsigned char dtypes[8];
    unsigned char values[PT_WALK_OPERANDS][16]; /* host numbers in the type of computation */
    double params[8];                               /* in the op-math type of the compute dtype */
    WalkArgs walk;
} ElementwiseArgs;

#endif
