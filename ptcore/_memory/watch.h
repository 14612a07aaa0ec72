/* A profile that watches memory: told of each block that is given out and of each that comes back.
 */
#ifndef PTCORE_WATCH_H
#define PTCORE_WATCH_H
#include <stdint.h>

/* A bit of pt_modes_seen beside those of _state.h, which goes when the watch ends. */
enum { PT_SEEN_WATCH = 1 << 25 };

#ifdef __cplusplus
extern "C" {
#endif
/* From now on each change, the bytes of a storage or less than none, is told; NULL: no more. */
void pt_memory_watch(void (*told)(int64_t bytes));
#ifdef __cplusplus
}
#endif
#endif
