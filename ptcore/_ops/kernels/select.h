/* The functions that the generated _select.cpp offers to Cython. */
#ifndef PTCORE_SELECT_H
#define PTCORE_SELECT_H
#include "loops.h"
#ifdef __cplusplus
extern "C" {
#endif
/* Enters a table of kernels into a device column; negative on failure. */
typedef int (*pt_enter_kernels)(const pt_kernel_entry *entries, int column);

const pt_elementwise *pt_loops(int op);
int pt_select(const char *wanted, pt_enter_kernels enter);
const pt_kernel_entry *const *pt_level_kernels(const char *name);   /* tables; NULL ends the list */
const char *pt_chosen_level(void);
int pt_built_levels(void);              /* number of levels in this build */
#ifdef __cplusplus
}
#endif
#endif
