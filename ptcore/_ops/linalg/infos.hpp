/* Error messages for matrices on which a routine of linear algebra failed,
 * the same on every device. */
#ifndef PTCORE_LINALG_INFOS_HPP
#define PTCORE_LINALG_INFOS_HPP
#include <stdio.h>

#include "ptcore/kernel.h"

namespace {

enum : int { NOT_FINITE = -1000 };

/* Messages for a positive info. */
constexpr char SINGULAR[] = "is singular: pivot %d of its elimination is zero",
               SINGULAR_U[] = "is singular: element %d of U's diagonal is zero",
               SINGULAR_D[] = "is singular: block %d of D is zero",
               NOT_POSITIVE[] =
                   "is not positive-definite: its leading minor of order %d is not positive",
               NO_EIGENVALUES[] = "has eigenvalues that did not converge (error code %d)",
               NO_SINGULAR_VALUES[] = "has singular values that did not converge (error code %d)",
               OTHERWISE[] = "failed (%d)";

/* The error of matrix b, whose info is not 0; `what` is the message for a positive info. */
inline int matrix_failed(pt_call *call, int64_t b, int info, const char *what,
                         const char *library) {
    char which[48] = "the input", text[160];
    if (call->in[0].ndim > 2)
        snprintf(which, sizeof which, "matrix %lld of the batch", (long long)b);
    if (info < 0 && info != NOT_FINITE) {
        snprintf(call->error, sizeof call->error, "%s refused argument %d", library, -info);
        return PT_RUNTIME_ERROR;
    }
    if (info < 0) snprintf(text, sizeof text, "contains values that are not finite");
    else snprintf(text, sizeof text, what, info);
    snprintf(call->error, sizeof call->error, "%s %s", which, text);
    return PT_LINALG_ERROR;
}

} // namespace
#endif
