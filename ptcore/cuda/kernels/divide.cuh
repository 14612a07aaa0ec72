// Division by divisors that the host half prepared (launch/divisor.hpp), without the eighty
// instructions of a division of 64 bits.
#pragma once
#include "base.cuh"
#include "divisor.h"

namespace {

// i / d, for i below 2**31; multiplier and shift are those of divide_by for d.
PT_DEVICE uint32_t divided(uint32_t i, uint32_t multiplier, uint32_t shift) {
    return (__umulhi(i, multiplier) + i) >> shift;
}

// i / d.by, for i of at least 0.
PT_DEVICE int64_t divided(int64_t i, const Divisor &d) {
    return (int64_t)((__umul64hi((unsigned long long)i, d.multiplier) + (uint64_t)i) >> d.shift);
}

// Returns the remainder of i / d.by; i becomes the quotient.
PT_DEVICE int64_t take_rest(int64_t &i, const Divisor &d) {
    const int64_t whole = i;
    i = divided(whole, d);
    return whole - i * d.by;
}

// Calls f(coordinate, dim) for each of the n dims from `first` on, with the coordinates of element
// number i in row-major order.
template <int UNROLL, class Dims, class F>
PT_DEVICE void each_coordinate(const Dims &dims, int first, int n, int64_t i, F f) {
    PT_UNROLL_BY(UNROLL) for (int d = first + n - 1; d > first; d--) {
        const int64_t q =
            (int64_t)((__umul64hi((unsigned long long)i, dims.multipliers[d]) + (uint64_t)i) >>
                      dims.shifts[d]);
        f(i - q * dims.sizes[d], d);
        i = q;
    }
    if (n) f(i, first);
}

}  // namespace
