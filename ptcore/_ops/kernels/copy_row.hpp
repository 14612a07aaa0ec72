/* Copies of rows of a few vectors at most. */
#ifndef PTCORE_KERNELS_COPY_ROW_HPP
#define PTCORE_KERNELS_COPY_ROW_HPP
#include "common.hpp"
#include "ptcore/simd.h"

namespace {

/* Copies SIZE <= n <= 2 * SIZE bytes as two pieces, which may overlap. */
template <size_t SIZE>
inline void copy_ends(char *PT_RESTRICT to, const char *PT_RESTRICT from, size_t n) {
    char head[SIZE], tail[SIZE];
    memcpy(head, from, SIZE);
    memcpy(tail, from + n - SIZE, SIZE);
    memcpy(to, head, SIZE);
    memcpy(to + n - SIZE, tail, SIZE);
}
/* memcpy for rows of at least 4 bytes, so short that the cost of a call or of masked stores
 * would matter. (If GCC can bound a memcpy's size, it may emit an instruction, rep movs, that
 * takes 30 cycles to start.) */
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
