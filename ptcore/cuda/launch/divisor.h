/* A divisor as kernels get it: a multiplication and a shift in place of the division (Granlund and
 * Montgomery, 1994). */
#ifndef PTCORE_CUDA_DIVISOR_H
#define PTCORE_CUDA_DIVISOR_H
#include "ptcore/config.h"

typedef struct Divisor {
    int64_t by;                     /* at least 1 */
    uint64_t multiplier;
    int64_t shift;
} Divisor;

/* The sizes of n dims, outermost first, with the multiplier and shift of each. */
#define PT_DIVISORS(n) \
    struct { \
        int64_t sizes[n]; \
        uint64_t multipliers[n]; \
        uint8_t shifts[n]; \
    }

#endif
