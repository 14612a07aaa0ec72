/* Copies of runs whose positions within a page the caller does not choose: cat and padding. */
#ifndef PTCORE_KERNELS_COPY_RUN_HPP
#define PTCORE_KERNELS_COPY_RUN_HPP
#include <cstdint>
#include <cstring>

namespace {

/* memcpy, except where the destination is a few bytes ahead of the source modulo the page size.
 * There processors that move memory by microcode mistake the loads that follow for loads of the
 * bytes just stored, and wait (ten times as long on Zen 3 and 4). Vectors that end where the
 * destination's cache lines end avoid that. */
inline void copy_run(void *dst, const void *src, size_t bytes) {
    const uintptr_t ahead =
        (reinterpret_cast<uintptr_t>(dst) - reinterpret_cast<uintptr_t>(src)) & 4095;
    if (ahead == 0 || ahead >= 64 || bytes < 1024) {
        memcpy(dst, src, bytes);
        return;
    }
    char *to = static_cast<char *>(dst);
    const char *from = static_cast<const char *>(src);
    constexpr size_t WHOLE = 32;
    memcpy(to, from, 64);
    size_t i = -reinterpret_cast<uintptr_t>(dst) & 63;
    for (; i + WHOLE <= bytes; i += WHOLE) memcpy(to + i, from + i, WHOLE);
    memcpy(to + bytes - WHOLE, from + bytes - WHOLE, WHOLE);
}

} // namespace
#endif
