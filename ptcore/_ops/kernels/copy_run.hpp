/* Copies of runs: of short ones, and of ones whose positions within a page the caller does not
 * choose (cat and padding). */
#ifndef PTCORE_KERNELS_COPY_RUN_HPP
#define PTCORE_KERNELS_COPY_RUN_HPP
#include <cstdint>
#include <cstring>

namespace {

/* memcpy of at most 128 bytes without a call: the last vector of a run may cover part of the one
 * before. The runs may not overlap. */
inline void copy_short(char *to, const char *from, size_t bytes) {
    if (bytes > 128) {
        memcpy(to, from, bytes);
        return;
    }
    auto ends = [&](auto word) {                /* two words, which meet or overlap */
        decltype(word) first, last;
        memcpy(&first, from, sizeof word);
        memcpy(&last, from + bytes - sizeof word, sizeof word);
        memcpy(to, &first, sizeof word);
        memcpy(to + bytes - sizeof word, &last, sizeof word);
    };
    struct vector { uint64_t a, b; };
    if (bytes >= sizeof(vector)) {
        for (size_t i = 0; i + sizeof(vector) < bytes; i += sizeof(vector))
            memcpy(to + i, from + i, sizeof(vector));
        memcpy(to + bytes - sizeof(vector), from + bytes - sizeof(vector), sizeof(vector));
        return;
    }
    if (bytes >= 8) return ends(uint64_t());
    if (bytes >= 4) return ends(uint32_t());
    if (bytes >= 2) return ends(uint16_t());
    if (bytes) *to = *from;
}

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
