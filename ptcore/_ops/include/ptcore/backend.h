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

/* What a pt_kernel of a device may return beside a pt_status: nothing is written yet, dispatch
 * shall run the op's decomposition, which it must have, on the device. */
enum { PT_DECOMPOSE = 101 };

typedef struct pt_backend {
    uint32_t abi;                       /* PT_ABI */
    uint32_t size;                      /* sizeof(pt_backend); what lies behind counts as NULL */

    /* nbytes > 0 of memory on device `index`; NULL if there is none left. */
    void *(*allocate)(int64_t nbytes, int index);
    void (*release)(void *data, int64_t nbytes, int index);

    /* dst = src, of any strides and equal sizes, with conversion: float to integer truncates,
     * beyond int64 it gives the smallest int64, and integers wrap around; complex to real takes the
     * real part; anything to bool is != 0. At least one of the two is this backend's, the other one
     * may be host memory (view->device == 0). It returns when host memory may be used again. */
    int (*copy)(const pt_view *dst, const pt_view *src);

    /* out = op(in...): inputs are cast to compute_dtype, the result, of loop_out_dtype, to out's.
     * An input with device == 0 is one element in host memory. `op` is the op's number, small and
     * the same all through the process, as an index of what a backend keeps; the number of an op
     * differs from release to release, its `name` does not. PT_TYPE_ERROR: this backend has no such
     * op. */
    int (*elementwise)(int op, const char *name, int compute_dtype, int loop_out_dtype,
                       const pt_view *out, const pt_view *in, int nin, const void *params);

    /* The others may be NULL. */
    int (*synchronize)(int index);      /* waits; the status of what has failed meanwhile */
    void *(*stream)(int index);         /* this thread's stream: pt_call.stream of the kernels */
    const char *(*error)(void);         /* the text of this thread's last failure, valid until
                                         * its next call */

    /* As copy, but it may return while host memory of allocate_host is still read or written; then
     * that memory is not given to anybody else before the copy is done, even if it is released. */
    int (*copy_async)(const pt_view *dst, const pt_view *src);

    /* Host memory that the device reaches without the host's help; nbytes > 0, NULL if there is
     * none left. */
    void *(*allocate_host)(int64_t nbytes);
    void (*release_host)(void *data);
    int (*owns_host)(const void *data);         /* whether an address lies in such memory */

    /* Streams: NULL is the default one. */
    int (*set_stream)(int index, void *stream); /* makes it this thread's for device `index` */
    /* What `waiting` of device `index` is given from now on comes behind what `stream` of device
     * `other` has been given. */
    int (*wait)(int index, void *waiting, int other, void *stream);
    /* A block of allocate, by its address, is not given to anybody else before the work is done
     * that `stream` will have been given when it is released. */
    int (*record_stream)(void *data, int index, void *stream);

    /* The device whose memory an address is in, whoever allocated it; -1: none. */
    int (*device_of)(const void *data);

    /* What changes many dense tensors of one device and dtype at once, by name; NULL: there is no
     * such kernel. A call has n > 0 tensors, or n for each of several operands: all of the first
     * operand, all of the second, .... Views have one dim, outputs are read and written.
     *    step:NAME   in: gradients; out: the operands that the step of _ops/table/steps.py writes
     *                params: its shared numbers, then each tensor's own
     *    total_norm  in: tensors; out: one element, their Euclidean norm
     *    scale       in: one element; out: tensors
     *    zero        out: tensors */
    pt_kernel (*kernel)(const char *name);
} pt_backend;

#ifdef __cplusplus
}
#endif
#endif
