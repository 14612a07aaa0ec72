/* A profile that watches memory: it is told of each block that is allocated
 * and of each that is freed. */
#ifndef PTCORE_WATCH_H
#define PTCORE_WATCH_H
#include <stdint.h>

/* A bit of pt_modes_seen beside those of _state.h, cleared when the watch ends. */
enum { PT_SEEN_WATCH = 1 << 25 };

#ifdef __cplusplus
extern "C" {
#endif
/* From now on `told` gets the bytes of each new storage, negative for a freed one. NULL: stop. */
void pt_memory_watch(void (*told)(int64_t bytes));
#ifdef __cplusplus
}
#endif
#endif
