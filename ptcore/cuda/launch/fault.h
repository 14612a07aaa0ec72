/* A fault that a kernel found in its data, such as an index out of bounds: the first fault since
 * the host last looked. It lies in host memory that the device can write; the kernel leaves the bad
 * element out and goes on. */
#ifndef PTCORE_CUDA_FAULT_H
#define PTCORE_CUDA_FAULT_H
#include "ptcore/config.h"

/* In place of a dim: `index` has the bits of a double that is no such number. */
enum { PT_FAULT_PROBABILITY = -1, PT_FAULT_RATE = -2 };

typedef struct Fault {
    int32_t found;          /* 0: none */
    int32_t op;             /* the op's number in the table */
    int64_t index, dim, size;
} Fault;

#endif
