// The kernel of outside_hypot: sqrt(x*x + y*y) of two float64 tensors of one shape.
#include <cmath>
#include <cstdio>

#include "ptcore/kernel.h"

extern "C" int hypot_kernel(pt_call *call) {
    const pt_view *x = &call->in[0], *y = &call->in[1];
    if (!x->contiguous || !y->contiguous) {
        std::snprintf(call->error, sizeof call->error, "both inputs must be contiguous");
        return PT_RUNTIME_ERROR;
    }
    double *out = (double *)call->out[0].data;
    for (int64_t i = 0; i < x->numel; i++)
        out[i] = std::hypot(((const double *)x->data)[i], ((const double *)y->data)[i]);
    return PT_OK;
}
