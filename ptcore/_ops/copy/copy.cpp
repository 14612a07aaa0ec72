// The copy kernel of structured ops: clone, casts, and ops that start from a copy.
#include "ptcore/config.h"
#include "loops.h"
#include "ptcore/kernel.h"

namespace {

int copy_kernel(pt_call *call) { return pt_copy(&call->out[0], &call->in[0]); }

}  // namespace

extern "C" const pt_kernel_entry PT_CAT(pt_kernels_copy_, PT_ISA)[] = {
    {"copy", copy_kernel},
    {nullptr, nullptr},
};
