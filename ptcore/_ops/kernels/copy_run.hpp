/* Copies of runs whose positions within a page the caller does not choose (cat and padding), and of short rows. */
#ifndef PTCORE_KERNELS_COPY_RUN_HPP
#define PTCORE_KERNELS_COPY_RUN_HPP
#include "common.hpp"
#include "ptcore/simd.h"

namespace {

/* memcpy, but for a destination that is a few bytes ahead of the source within a page. There processors that
 * move memory by microcode take the loads that follow for loads of what was just stored, and wait (ten times as
 * long on Zen 3 and 4); vectors that end where the destination's lines end do not. */
inline void copy_run(void *dst, const void *src, size_t bytes) {
    const uintptr_t ahead = (reinterpret_cast<uintptr_t>(dst) - reinterpret_cast<uintptr_t>(src)) & 4095;
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

/* SIZE <= n <= 2 * SIZE bytes: two pieces that may overlap. */
template <size_t SIZE>
inline void copy_ends(char *PT_RESTRICT to, const char *PT_RESTRICT from, size_t n) {
    char head[SIZE], tail[SIZE];
    memcpy(head, from, SIZE);
    memcpy(tail, from + n - SIZE, SIZE);
    memcpy(to, head, SIZE);
    memcpy(to + n - SIZE, tail, SIZE);
}
/* memcpy of rows of at least 4 bytes that are so short that its call would show, as would masked stores. GCC makes of a
 * memcpy whose size it can bound an instruction (rep movs) that takes 30 cycles to begin. */
inline void copy_row(char *PT_RESTRICT to, const char *PT_RESTRICT from, size_t n) {
    constexpr size_t WHOLE = PT_VECTOR_BYTES;
    if (n >= WHOLE) {
        for (size_t i = 0; i + WHOLE <= n; i += WHOLE) memcpy(to + i, from + i, WHOLE);
        memcpy(to + n - WHOLE, from + n - WHOLE, WHOLE);
    }
    else if (WHOLE > 32 && n >= 32) copy_ends<32>(to, from, n);
    else if (WHOLE > 16 && n >= 16) copy_ends<16>(to, from, n);
    else if (n >= 8) copy_ends<8>(to, from, n);
    else if (n >= 4) copy_ends<4>(to, from, n);
}

} // namespace
#endif
