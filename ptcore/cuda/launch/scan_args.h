/* Arguments of scans along a dim: element j of line r lies at (r / inner * length + j) * inner + r % inner of dense memory. */
#ifndef PTCORE_CUDA_SCAN_ARGS_H
#define PTCORE_CUDA_SCAN_ARGS_H
#include "ptcore/config.h"

typedef struct ScanArgs {
    const char *in;
    char *out;
    int64_t *positions;                 /* of extremes */
    int64_t lines, length, inner;
    int32_t largest;
} ScanArgs;

#endif
