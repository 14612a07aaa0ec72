// Divisors for kernels: for numbers below 2**31 in 32 bits, and for all that are not negative.
#pragma once
#include "divisor.h"

namespace pt_cuda {

inline void divide_by(uint32_t d, uint32_t &multiplier, uint32_t &shift) {
    for (shift = 0; shift < 32; shift++)
        if (((uint64_t)1 << shift) >= d) break;
    multiplier = (uint32_t)((((uint64_t)1 << 32) * (((uint64_t)1 << shift) - d)) / d + 1);
}

// 2**64 * high / d, for high below d.
inline uint64_t quotient_of_two_words(uint64_t high, uint64_t d) {
#if defined(__SIZEOF_INT128__)
    __extension__ typedef unsigned __int128 Wide;
    return (uint64_t)(((Wide)high << 64) / d);
#else
    uint64_t q = 0;
    for (int bit = 0; bit < 64; bit++) {
        high *= 2, q *= 2;
        if (high >= d) high -= d, q++;
    }
    return q;
#endif
}

// The divisor for a size; for a size of 0 it is 1, as nothing is divided then.
inline Divisor divisor(int64_t size) {
    Divisor r = {size > 0 ? size : 1, 0, 0};
    const uint64_t d = (uint64_t)r.by;
    while ((uint64_t)1 << r.shift < d) r.shift++;
    const uint64_t above = ((uint64_t)1 << r.shift) - d;
    r.multiplier = (above ? quotient_of_two_words(above, d) : 0) + 1;
    return r;
}

// Sets multipliers and shifts for n sizes, except those at 0 and at `other`: nothing is divided by
// these outermost sizes.
template <class Dims> void divide_by_sizes(Dims &dims, int n, int other = 0) {
    for (int d = 1; d < n; d++) {
        if (d == other) continue;
        const Divisor by = divisor(dims.sizes[d]);
        dims.multipliers[d] = by.multiplier, dims.shifts[d] = (uint8_t)by.shift;
    }
}

}  // namespace pt_cuda
