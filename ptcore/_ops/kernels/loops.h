/* Running elementwise loops, copies and fills over views of any layout and dtype.
 *
 * The views of a call have equal sizes; an input is broadcast by strides of 0. The output's
 * elements are distinct; an input is either the output itself (same data, sizes and strides) or
 * does not overlap it. On such views nothing can fail: the result is PT_OK, or PT_TYPE_ERROR if the
 * op has no loop for the compute dtype (then nothing was written).
 */
#ifndef PTCORE_LOOPS_H
#define PTCORE_LOOPS_H
#include "ptcore/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Elementwise inner loop: ptr[0] is the output, ptr[1...] the inputs, all contiguous and
 * of the loop's dtypes; params are already in the op-math type of the compute dtype
 * (float for half types and float32, double, (u)int64, complex<float/double>). */
typedef void (*pt_loop)(char *const *ptr, int64_t n, const void *params);

/* The loops of one elementwise op at one ISA level, indexed by compute dtype. vs/sv: the
 * last/first input is a single element (binary arithmetic and powers, else NULL). Half types and
 * stored types have no loops of their own: the runner goes through tiles of float32 or
 * complex64. */
typedef struct pt_elementwise {
    const char *name;
    pt_loop loop[PT_NDTYPES];
    pt_loop vs[PT_NDTYPES];
    pt_loop sv[PT_NDTYPES];
    int32_t nin;
    int32_t cost;               /* about ns per 16 elements: decides when to use threads */
    int32_t powers;             /* vs and sv round otherwise than loop: they are for calls where
                                   that operand is one number in all rows */
} pt_elementwise;

/* out = loop(in...): every input is cast to compute_dtype, and the loop's result (of
 * loop_out_dtype: compute_dtype for arithmetic, bool for comparisons) to out's dtype. A half
 * or stored compute dtype runs the loop of pt_loop_dtype and rounds its result to the dtype. */
int pt_elementwise_run(const pt_elementwise *op, int compute_dtype, int loop_out_dtype,
                       const pt_view *out, const pt_view *in, int nin, const void *params);

/* dst = src with conversion: float to integer truncates, beyond int64 it gives the smallest int64,
 * and integers wrap around; complex to real takes the real part; anything to bool is != 0. */
int pt_copy(const pt_view *dst, const pt_view *src);

/* Every element of dst becomes *value, of dst's dtype. */
void pt_fill(const pt_view *dst, const void *value);

/* The contiguous conversion loop: ptr[0] of dtype `to`, ptr[1] of `from`; params: casts.h. */
pt_loop pt_cast_loop(int from, int to);

/* The conversion loops of the ISA level in use; an entry may be NULL above the base level. It
 * starts as the base table; the module that chooses kernels sets it at import. */
extern const pt_loop (*pt_casts)[PT_NDTYPES];

int pt_itemsize(int dtype);

/* The dtype in which loops compute for a compute dtype: float32 for half types and float8,
 * complex64 for complex32, else the dtype itself. */
int pt_loop_dtype(int dtype);

/* The conversion loop of a pair with a type of PT_KIND_STORED: through float32 or complex64. */
pt_loop pt_stored_cast_loop(int from, int to);

#ifdef __cplusplus
}
#endif
#endif
