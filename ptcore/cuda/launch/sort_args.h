/* Arguments of sorting kernels. A line's elements become entries (key, position), whose order is
 * total: every sort of them is stable. Element j of line r lies at (r / inner * length + j) * inner
 * + r % inner. */
#ifndef PTCORE_CUDA_SORT_ARGS_H
#define PTCORE_CUDA_SORT_ARGS_H
#include "divisor.h"

enum {
    PT_SORT_BLOCK = 2048,               /* entries that a block sorts */
    PT_SORT_TILE = 4096 /* entries of which a block counts digits; half as many if not brief */
};

typedef struct SortEntry {
    uint64_t key;
    int64_t position;
} SortEntry;

typedef struct SortArgs {
    const char *in;
    char *values, *positions;           /* positions: int64, or PT_T where it is the output */
    void *entries, *other; /* SortEntry; where brief, words: a key of 32 bits above a position */
    int64_t *counts, *totals;           /* of digits: lines x 256 x tiles, lines x 256 */
    int64_t lines, length;
    Divisor kept, inner;
    Divisor size; /* entries of a line: length, or more for a block's network */
    Divisor tiles;                      /* of a line */
    int64_t parts, part; /* parts of a line of which the first entries are selected */
    const uint64_t *base;               /* as of RandomArgs */
    uint64_t seed, offset;
    int32_t descending, brief, shift;
} SortArgs;

typedef struct SearchArgs {
    const void *sorted, *in;
    int64_t *out;
    int64_t total, n;                   /* elements to place, of a sorted sequence */
    Divisor width;                      /* elements for each sequence */
    int32_t single, right;              /* single: one sequence for all */
} SearchArgs;

#endif
