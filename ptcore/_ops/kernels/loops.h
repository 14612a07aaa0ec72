/* Running elementwise loops, copies and fills over views of any layout and dtype.
 *
 * The views of a call have equal sizes; an input is broadcast by strides of 0. The output's
 * elements are distinct, and it either is an input (the same data, sizes and strides) or overlaps
 * none. Nothing here can fail on such views: PT_OK comes back, or PT_TYPE_ERROR where the op has
 * no loop for the compute dtype (then nothing was written).
 */
#ifndef PTCORE_ELEMENTWISE_H
#define PTCORE_ELEMENTWISE_H
#include "kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

/* out = loop(in...): every input is cast to compute_dtype, and the loop's result (of
 * loop_out_dtype: compute_dtype for arithmetic, bool for comparisons) to out's dtype. A half compute
 * dtype runs the float32 loop and rounds its result to the half type. */
int pt_elementwise_run(const pt_elementwise *op, int compute_dtype, int loop_out_dtype,
                       const pt_view *out, const pt_view *in, int nin, const void *params);

/* dst = src with conversion: float to integer truncates, beyond int64 it gives the smallest int64, and
 * integers wrap around; complex to real takes the real part; anything to bool is != 0. */
int pt_copy(const pt_view *dst, const pt_view *src);

/* Every element of dst becomes *value, of dst's dtype. */
void pt_fill(const pt_view *dst, const void *value);

/* The contiguous conversion loop: ptr[0] of dtype `to`, ptr[1] of dtype `from`. Never NULL. */
pt_loop pt_cast_loop(int from, int to);

/* The conversion loops of the ISA level in use; an entry may be NULL above the base level. The module
 * that chooses kernels sets it at import; it starts as the base table. */
extern const pt_loop (*pt_casts)[PT_NDTYPES];

int pt_itemsize(int dtype);

#ifdef __cplusplus
}
#endif
#endif
