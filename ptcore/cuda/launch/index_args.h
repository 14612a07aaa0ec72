/* Arguments of kernels that follow an index. An element of the walk has a place in each operand:
 *   take: 0 the output, 1 the tensor taken from, 2 the index; put and accumulate: 0 the values, 1
 * the tensor put into, 2 the index; places: 0 the places (int64), 2 the index. The tensor's address
 * is moved by stride bytes for each step of the index. */
#ifndef PTCORE_CUDA_INDEX_ARGS_H
#define PTCORE_CUDA_INDEX_ARGS_H
#include "fault.h"
#include "walk_args.h"

/* In the place of a bad index: it stands for no element. */
#define PT_NOWHERE (-0x7fffffffffffffff - 1)

typedef struct IndexArgs {
    int64_t n;
    char *data[3];
    int64_t size, stride; /* size 0: the index is a byte offset that was checked, or PT_NOWHERE */
    int32_t negative;           /* whether -size... -1 are allowed */
    int32_t again;              /* places: add to the places that are there */
    int64_t skipped;            /* values for this index are left out; -1: none */
    double alpha[2];
    int64_t whole_alpha;
    int64_t line,
        line_strides[2]; /* scatter_prod_lines: elements along the dim, of values and index */
    int32_t op, dim;
    Fault *fault;
    WalkArgs walk;
} IndexArgs;

#endif
