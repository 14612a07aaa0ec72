/* A device type's backend: the C functions by which its tensors get memory, are copied and
 * run elementwise ops. Its other kernels are pt_kernels entered op by op (kernel.h). A backend
 * is registered by ptcore.ops.register_backend(name, address of a pt_backend).
 *
 * Functions are called with or without the GIL, on any thread. The backend itself keeps, per
 * thread, the current device and the stream that work goes to. Work on a stream runs in order.
 */
#ifndef PTCORE_BACKEND_H
#define PTCORE_BACKEND_H
#include "kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a device's pt_kernel may return beside a pt_status: the kernel has written nothing, and
 * dispatch runs the op's decomposition on the device instead. The op must have one. */
enum { PT_DECOMPOSE = 101 };

typedef struct pt_backend {
    uint32_t abi;                       /* PT_ABI */
    uint32_t size;                      /* sizeof(pt_backend); missing fields count as NULL */

    /* nbytes > 0 of memory on device `index`; NULL if there is none left. */
    void *(*allocate)(int64_t nbytes, int index);
    void (*release)(void *data, int64_t nbytes, int index);

    /* dst = src, of any strides and equal sizes, with conversion: float to integer truncates,
     * beyond int64 it gives the smallest int64, and integers wrap around; complex to real takes the
     * real part; anything to bool is != 0. At least one view is on this backend's device, the other
     * view may be host memory (view->device == 0). Returns when host memory may be used again. */
    int (*copy)(const pt_view *dst, const pt_view *src);

    /* out = op(in...): inputs are cast to compute_dtype, and the result, which has loop_out_dtype,
     * to out's dtype. An input with device == 0 is one element in host memory. `op` is the op's
     * number: small and constant during the process, so that a backend may use it as an index. From
     * release to release an op's number may change, its `name` does not. PT_TYPE_ERROR: this
     * backend does not have the op. */
    int (*elementwise)(int op, const char *name, int compute_dtype, int loop_out_dtype,
                       const pt_view *out, const pt_view *in, int nin, const void *params);

    /* The functions below may be NULL. */
    int (*synchronize)(int index);      /* waits; the status of failures since the last call */
    void *(*stream)(int index);         /* this thread's stream: pt_call.stream of the kernels */
    const char *(*error)(void);         /* the text of this thread's last failure, valid until
                                         * its next call */

    /* Like copy, but it may return while memory of allocate_host is still read or written. Such
     * memory, even if released, is not handed out again before the copy is done. */
    int (*copy_async)(const pt_view *dst, const pt_view *src);

    /* Host memory that the device reaches without the host's help; nbytes > 0, NULL if there is
     * none left. */
    void *(*allocate_host)(int64_t nbytes);
    void (*release_host)(void *data);
    int (*owns_host)(const void *data);     /* whether an address lies in memory of allocate_host */

    /* Streams: NULL is the default stream. */
    int (*set_stream)(int index, void *stream); /* makes it this thread's for device `index` */
    /* Work given to `waiting` of device `index` from now on starts only after the work that
     * `stream` of device `other` has already been given. */
    int (*wait)(int index, void *waiting, int other, void *stream);
    /* `stream` uses the block of allocate at this address. After its release the block is not
     * handed out again before the work that `stream` has been given by then is done. */
    int (*record_stream)(void *data, int index, void *stream);

    /* The device that has the memory at an address, whoever allocated it; -1: none. */
    int (*device_of)(const void *data);

    /* Kernels that change many dense tensors of one device and dtype at once, by name; NULL: no
     * such kernel. A call has n > 0 tensors, or n for each of several operands: all of the first
     * operand, then all of the second, .... Views have one dim; outputs are read and written.
     *    step:NAME   in: gradients; out: the operands that the step of _ops/table/steps.py writes
     *                params: its shared numbers, then the own numbers of each tensor
     *    step_counted:NAME  a step whose counters lie on the device
     *                in: gradients, then options that are tensors; out: as above, then the counters
     *                params: the options, an int for one that is a tensor: its place among those
     *    total_norm  in: tensors; out: one element, their Euclidean norm
     *    scale       in: one element; out: tensors
     *    zero        out: tensors */
    pt_kernel (*kernel)(const char *name);
} pt_backend;

#ifdef __cplusplus
}
#endif
#endif
