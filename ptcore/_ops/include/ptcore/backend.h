/* A device type's backend: the C functions by which its tensors get memory, are copied and
 * run elementwise ops. Its other kernels are pt_kernels entered op by op (kernel.h). A backend
 * is registered by ptcore.ops.register_backend(name, address of a pt_backend).
 */
#ifndef PTCORE_BACKEND_H
#define PTCORE_BACKEND_H
#include "kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pt_backend {
    /* nbytes > 0 of memory on device `index`; NULL if there is none left. */
    void *(*allocate)(int64_t nbytes, int index);
    void (*release)(void *data, int64_t nbytes, int index);

    /* dst = src, with conversion as pt_copy (elementwise.h) defines it; any strides. Sizes are
     * equal. At least one of the two is this backend's, the other one may be host memory
     * (view->device == 0). It returns when host memory may be used again. */
    int (*copy)(const pt_view *dst, const pt_view *src);

    /* out = op(in...), as pt_elementwise_run. An input with device == 0 is one element in host
     * memory. `op->name` says which op it is; its loops are for the host. PT_TYPE_ERROR: this
     * backend has no such op. */
    int (*elementwise)(const pt_elementwise *op, int compute_dtype, int loop_out_dtype,
                       const pt_view *out, const pt_view *in, int nin, const void *params);

    void (*synchronize)(int index);     /* may be NULL */
} pt_backend;

#ifdef __cplusplus
}
#endif
#endif
