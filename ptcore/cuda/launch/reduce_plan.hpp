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

// mask[d]: whether the call's parameter `which` names dim d of `ndim`. It is a list (empty or
// absent: all) or one number.
int reduced_dims(pt_call *c, int which, int ndim, bool (&mask)[PT_MAX_DIM]);

// Sets sizes, strides and counts, for c->in[0] by the call's parameter `which`, or for a tensor by
// `mask` (reduced dims); there is no second tensor, and the fields for the caller are 0. `ordered`:
// reduced elements are counted in logical order; else in any order.
int plan_reduction(pt_call *c, int which, bool ordered, ReduceArgs &a);
int plan_reduction(pt_call *c, const pt_view &in, const bool *mask, bool ordered, ReduceArgs &a);

// The kernel for the inputs, and its grid; grid.y is the number of parts, at most `most`. The
// caller launches it, with room for parts x outputs states if there are several parts.
struct Spread {
    const Kernel *kernel;
    Grid grid;
};
Spread spread_reduction(pt_call *c, const Reduction &op, int64_t most, ReduceArgs &a);

// Launches a reduction. The caller sets a.out, a.out2, a.a and a.b and, for two tensors, a.in2 and
// a.item2. Without outputs nothing is launched.
int reduce(pt_call *c, const Reduction &op, uint64_t types, ReduceArgs &a);

inline int ceil_log2(int64_t n) {
    int bits = 0;
    while ((int64_t)1 << bits < n) bits++;
    return bits;
}

}  // namespace pt_cuda
