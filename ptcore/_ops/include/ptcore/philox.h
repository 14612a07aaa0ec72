/* Philox4x32-10 (Salmon et al., 2011) and how ptcore lays its counter out.
 *
 * key = seed. The 128-bit counter holds, from the lowest bit: block index (40), draw number (24),
 * call offset (64). A word depends on seed, offset, index and draw only, so a stream is the same
 * for every thread count, ISA level and device.
 *
 *   32-bit words (float32, half types, probabilities): element i is word i mod 4 of block i/4;
 *   64-bit words (float64, 64-bit integers): words 2(i mod 2), +1 (low, high) of block i/2;
 *   normals: the pair (2j, 2j+1) by Box-Muller, from words 2(j mod 2), +1 of block j/2 (float32)
 *   or from the two 64-bit words of block j (float64). All of these have draw 0.
 *   Rejection samplers: element i uses block i alone, draw = 0, 1, 2, ...
 *
 * Files that make normals are compiled with contraction off, so that all builds draw the same.
 */
#ifndef PTCORE_PHILOX_H
#define PTCORE_PHILOX_H
#include "scalar.h"

namespace pt { namespace {

struct philox_block { uint32_t w[4]; };

constexpr uint64_t PHILOX_MAX_BLOCKS = (uint64_t)1 << 40, PHILOX_MAX_DRAWS = (uint64_t)1 << 24;

template <int ROUNDS> PT_INLINE philox_block philox_rounds(philox_block c, uint32_t k0,
                                                           uint32_t k1) {
    uint64_t a = (uint64_t)0xD2511F53u * c.w[0], b = (uint64_t)0xCD9E8D57u * c.w[2];
    philox_block d = {{(uint32_t)(b >> 32) ^ c.w[1] ^ k0, (uint32_t)b,
                       (uint32_t)(a >> 32) ^ c.w[3] ^ k1, (uint32_t)a}};
    if constexpr (ROUNDS == 1) return d;
    else return philox_rounds<ROUNDS - 1>(d, k0 + 0x9E3779B9u, k1 + 0xBB67AE85u);
}

/* Ten rounds on the counter's words, lowest word first. Unrolled, so that a
 * loop over blocks vectorises. */
PT_INLINE philox_block philox_raw(philox_block counter, uint32_t k0, uint32_t k1) {
    return philox_rounds<10>(counter, k0, k1);
}

PT_INLINE philox_block philox(uint64_t seed, uint64_t offset, uint64_t block, uint32_t draw) {
    uint64_t low = block | (uint64_t)draw << 40;
    philox_block counter = {{(uint32_t)low, (uint32_t)(low >> 32), (uint32_t)offset,
                             (uint32_t)(offset >> 32)}};
    return philox_raw(counter, (uint32_t)seed, (uint32_t)(seed >> 32));
}

/* [0, 1) in steps of 2^-24 (float) and 2^-53 (double) */
PT_INLINE float uniform_float(uint32_t w) {
    return (float)(int32_t)(w >> 8) * 5.9604644775390625e-08f;
}
PT_INLINE double uniform_double(uint64_t w) {
    /* the top 52 bits make the significand of a number in [1, 2), then the next bit is added:
     * exact, and without a 64-bit conversion */
    double u = from_bits((w >> 12) | fp<double>::one) - 1.0;
    return u + (double)(int32_t)((w >> 11) & 1u) * 1.1102230246251565e-16;
}

/* Box-Muller: radius from (0, 1], angle from [0, 1) turns. */
template<class T> struct normal_pair { T a, b; };

PT_INLINE normal_pair<float> box_muller(uint32_t u, uint32_t v) {
    float r = sqrt(-2.f * log(1.f - uniform_float(u)));
    float t = uniform_float(v) * 6.28318531f;
    return {r * fast::cos(t), r * fast::sin(t)};
}
PT_INLINE normal_pair<double> box_muller(uint64_t u, uint64_t v) {
    double r = sqrt(-2.0 * log(1.0 - uniform_double(u)));
    double t = uniform_double(v) * 6.283185307179586;
    return {r * fast::cos(t), r * fast::sin(t)};
}

}}  /* namespace pt, unnamed */
#endif
