// The entries of the backend (ptcore/backend.h) that are written in C++.
#pragma once
#include "ptcore/kernel.h"

namespace pt_cuda {

void hold_elementwise(int n);    // room for the kernels of n ops, before the first launch
int elementwise(int op, const char *name, int compute, int loop_out, const pt_view *out,
                const pt_view *in, int nin, const void *params);
int copy_views(const pt_view *dst, const pt_view *src);
int copy_views_async(const pt_view *dst, const pt_view *src);
pt_kernel kernel_by_name(const char *name);
void forget_workspaces(int device, uint64_t pool);  // cuBLAS workspaces of captures with this pool

extern const pt_kernel_entry *const
    kernels[];    // the tables of structured kernels; ends with NULL

}  // namespace pt_cuda
