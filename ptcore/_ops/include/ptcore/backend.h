/* A device type's backend: the C functions by which its tensors get memory, are copied and
 * run elementwise ops. Its other kernels are pt_kernels entered op by op (kernel.h). A backend
 * is registered by ptcore.ops.register_backend(name, address of a pt_backend).
 *
 * Functions are called with or without the GIL, on any thread. Which device is current and
 * which stream work goes to is the backend's own, per thread; work is in order on a stream.
 */
#ifndef PTCORE_BACKEND_H
#define PTCORE_BACKEND_H
#include "kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pt_backend {
    uint32_t abi;                       /* PT_ABI */
    uint32_t size;                      /* sizeof(pt_backend); what lies behind counts as NULL */

    /* nbytes > 0 of memory on device `index`; NULL if there is none left. */
    void *(*allocate)(int64_t nbytes, int index);
    void (*release)(void *data, int64_t nbytes, int index);

    /* dst = src, with conversion as pt_copy (elementwise.h) defines it; any strides. Sizes are
     * equal. At least one of the two is this backend's, the other one may be host memory
     * (view->device == 0). It returns when host memory may be used again. */
    int (*copy)(const pt_view *dst, const pt_view *src);

    /* out = op(in...), as pt_elementwise_run. An input with device == 0 is one element in host
     * memory. `name` is the op's; its address stays the same. PT_TYPE_ERROR: this backend has
     * no such op. */
    int (*elementwise)(const char *name, int compute_dtype, int loop_out_dtype,
                       const pt_view *out, const pt_view *in, int nin, const void *params);

    /* The others may be NULL. */
    int (*synchronize)(int index);      /* waits; the status of what has failed meanwhile */
    void *(*stream)(int index);         /* this thread's stream: pt_call.stream of the kernels */
    const char *(*error)(void);         /* the text of this thread's last failure, valid until
                                         * its next call */
} pt_backend;

#ifdef __cplusplus
}
#endif
#endif
