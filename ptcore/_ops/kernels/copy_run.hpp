/* Copies of runs whose positions within a page the caller does not choose: cat and padding. */
#ifndef PTCORE_KERNELS_COPY_RUN_HPP
#define PTCORE_KERNELS_COPY_RUN_HPP
#include "common.hpp"

namespace {

/* memcpy that goes from the end where dst is a few bytes ahead of src within a page: many processors take
 * the loads that follow for loads of what was just stored, and wait (ten times as long on Zen 3). */
inline void copy_run(void *dst, const void *src, size_t bytes) {
    const uintptr_t ahead = (reinterpret_cast<uintptr_t>(dst) - reinterpret_cast<uintptr_t>(src)) & 4095;
    if (ahead == 0 || ahead >= 32 || bytes < 1024) {
        memcpy(dst, src, bytes);
        return;
    }
    char *to = static_cast<char *>(dst);
    const char *from = static_cast<const char *>(src);
    for (; bytes >= 64; ) {
        bytes -= 64;
        char chunk[64];
        memcpy(chunk, from + bytes, 64);
        memcpy(to + bytes, chunk, 64);
    }
    memcpy(to, from, bytes);
}

} // namespace
#endif
