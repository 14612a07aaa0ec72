/* Arguments of scans along a dim: element j of line r lies at (r / inner * length + j) * inner + r
 * % inner of dense memory. */
#ifndef PTCORE_CUDA_SCAN_ARGS_H
#define PTCORE_CUDA_SCAN_ARGS_H
#include "divisor.h"

enum {
    PT_SCAN_THREADS = 256,
    PT_SCAN_EACH = 8,
    PT_SCAN_TILE = PT_SCAN_THREADS * PT_SCAN_EACH,
    PT_SCAN_CARRY = 16
};

typedef struct ScanArgs {
    const char *in;
    char *out;
    int64_t *positions;                 /* of extremes */
    void *carries; /* [lines][pieces] for blocks, [pieces][lines] for threads; unused if pieces is 1
                    */
    int64_t length;
    Divisor lines, inner, pieces;       /* pieces: of a line */
    int64_t piece; /* elements of a piece; for blocks, whole tiles of PT_SCAN_TILE */
    int32_t largest, packed;            /* packed: in, out and the length are multiples of a pack */
} ScanArgs;

#endif
