// How a reduction is spread over the device: which dims are kept, how many threads share an output,
// in how many parts.
#pragma once
#include "launch.hpp"
#include "reduce_args.h"
#include "walk.hpp"

namespace pt_cuda {

// The kernels of an op (kernels/reduce.cuh); vectors load four elements at once, fewer where they
// are large.
struct Reduction {
    Kernel rows, columns, vectors, finish;
};
#define PT_REDUCTION_OF(program, name) \
    {{program, name "_rows"},          \
     {program, name "_columns"},       \
     {program, name "_vectors"},       \
     {program, name "_finish"}}

// Whether dim d of `ndim` is among those of the call's parameter `which`: a list (empty or absent:
// all) or one number.
int reduced_dims(pt_call *c, int which, int ndim, bool (&mask)[PT_MAX_DIM]);

// sizes, strides and counts: of c->in[0] by the call's parameter `which`, or of a tensor whose dims
// with `mask` are reduced; there is no second tensor, and what the caller sets is 0. `ordered`:
// reduced elements are counted in logical order; else any order will do.
int plan_reduction(pt_call *c, int which, bool ordered, ReduceArgs &a);
int plan_reduction(pt_call *c, const pt_view &in, const bool *mask, bool ordered, ReduceArgs &a);

// The kernel for the inputs, and its grid, of which y is the number of parts, at most `most`. The
// caller launches it, with room for parts x outputs states if there are several.
struct Spread {
    const Kernel *kernel;
    Grid grid;
};
Spread spread_reduction(pt_call *c, const Reduction &op, int64_t most, ReduceArgs &a);

// Launches; a.out, a.out2, a.a and a.b are the caller's, and of two tensors a.in2 and a.item2.
// Nothing happens where there is no output.
int reduce(pt_call *c, const Reduction &op, uint64_t types, ReduceArgs &a);

inline int ceil_log2(int64_t n) {
    int bits = 0;
    while ((int64_t)1 << bits < n) bits++;
    return bits;
}

}  // namespace pt_cuda
