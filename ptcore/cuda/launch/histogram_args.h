/* Arguments of histograms: rows of coordinates, the edges of each coordinate's bins, and where the
 * counts go. */
#ifndef PTCORE_CUDA_HISTOGRAM_ARGS_H
#define PTCORE_CUDA_HISTOGRAM_ARGS_H
#include "ptcore/config.h"

enum { PT_HISTOGRAM_THREADS = 256, PT_HISTOGRAM_EACH = 4, PT_HISTOGRAM_COORDINATES = 32 };
/* How a coordinate's bin is found: by a search among rising edges, by a guess that the edges
 * correct, or computed from the first and the last edge. */
enum { PT_SEARCHED = 0, PT_EVEN, PT_COMPUTED };

typedef struct HistogramArgs {
    const char *x, *edges, *weights;    /* dense; weights: NULL for counts */
    char *sums;                         /* zeros at first; int64 counts, or doubles */
    int64_t n, total;                   /* rows, bins of all coordinates */
    int32_t coordinates, places;
    int32_t copies; /* of the bins in a block's shared memory; 0: there is none */
    int64_t bins[PT_HISTOGRAM_COORDINATES];
} HistogramArgs;

#endif
