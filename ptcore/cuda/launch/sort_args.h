/* Arguments of sorting kernels. A line's elements become entries (key, position), padded to `size`, a power of two; their
 * order is total, so any network sorts them stably. Element j of line r lies at (r / inner * length + j) * inner + r % inner. */
#ifndef PTCORE_CUDA_SORT_ARGS_H
#define PTCORE_CUDA_SORT_ARGS_H
#include "ptcore/config.h"

typedef struct SortEntry {
    uint64_t key;
    int64_t position;
} SortEntry;

typedef struct SortArgs {
    const char *in;
    char *values, *positions;           /* positions: int64, or PT_T where it is the output */
    SortEntry *entries;
    int64_t lines, length, kept, inner, size;
    uint64_t run, step;                 /* of a stage: sorted runs of `run`, partners `step` apart */
    uint64_t seed, offset;
    int32_t descending;
} SortArgs;

#endif
