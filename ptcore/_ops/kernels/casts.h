/* How the loop of pt_cast_loop is called: with its pair of dtypes as params. Most loops know their
 * types and do not look; that of the stored types serves all of their pairs.
 */
#ifndef PTCORE_CASTS_H
#define PTCORE_CASTS_H
#include "loops.h"

static inline const void *pt_cast_params(int from, int to) {
    return (const void *)(uintptr_t)(from << 8 | to);
}

#endif
