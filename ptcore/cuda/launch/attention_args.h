/* What the kernels of attention get (kernels/attention_base.cuh). Sizes and strides are in
 * elements; the last dim of query, key, value and the gradient g is dense. A block owns a tile of
 * queries or of keys of one head and one part of the result's columns; `blocks` tiles of a head
 * come first, then the parts, then the heads. */
#ifndef PTCORE_CUDA_ATTENTION_ARGS_H
#define PTCORE_CUDA_ATTENTION_ARGS_H
#include "divisor.h"

/* TILE: keys (of a block of queries) or queries (of a block of keys) that are walked through at
 * once, and columns that are staged at once */
enum { PT_ATTENTION_THREADS = 128, PT_ATTENTION_TILE = 64, PT_ATTENTION_FEW = 8 };

/* Lines of a tile in shared memory, in packs of 16 bytes. Neighbouring lanes of a warp read
 * different lines of the other rows, which begin an odd number of packs apart: the packs of eight
 * neighbours are in different banks. Of owned lines and weights a warp reads an even line and the
 * next: only such two are an odd number of packs apart, which leaves the backward of heads of 128
 * floats within the 99 KiB of smaller devices. */
#define PT_ATTENTION_ODD(packs) ((packs) | 1)
#define PT_ATTENTION_PAIR(packs) ((packs) + PT_ATTENTION_ODD(packs))

typedef struct AttentionOperand {
    const char *data;
    int64_t n, h, row;
    int32_t packed;             /* every row begins at a multiple of 16 bytes and has whole packs */
} AttentionOperand;

typedef struct AttentionArgs {
    AttentionOperand query, key, value, g;
    const void *mask;           /* NULL: none; the same for keep and state */
    const uint8_t *keep;
    const int64_t *state;
    const void *result;         /* of the forward, row-major, for `delta` */
    void *out, *key_out, *lse, *delta,
        *scores; /* key_out: gradient of keys, if one kernel makes it and that of values */
    void *share; /* of each query 1 / the sum of e^(score - lse), where rounding has left no digits
                    of that sum in lse; else 1 */
    int64_t mask_step[4], keep_step[4], state_step;
    int64_t heads, held, group, l, s;
    int64_t blocks, parts;
    int32_t e, v;
    uint64_t threshold;         /* random words below it are dropped; 0: no dropout */
    double scale, survivor;
    int32_t causal, wide_result;        /* wide_result: `result` is of the op-math type */
    /* For few queries, in ranges of `chunk` keys: split_out and split_lse of each range,
     * [splits][all][l], in the op-math type; all: heads of all batches. */
    int64_t splits, chunk, all;
    Divisor by_l, by_heads, by_group;   /* for the kernel `delta` */
    void *split_out, *split_lse;
} AttentionArgs;

#endif
