/* What the generated _select.cpp offers to Cython. */
#ifndef PTCORE_SELECT_H
#define PTCORE_SELECT_H
#include "ptcore/kernel.h"
#ifdef __cplusplus
extern "C" {
#endif
const pt_elementwise *pt_loops(int op);
int pt_select(const char *wanted);
const char *pt_chosen_level(void);
#ifdef __cplusplus
}
#endif
#endif
