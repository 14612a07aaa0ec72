/* float16 and bfloat16 as 16-bit storage: no arithmetic, only exact widening and
 * round-to-nearest-even narrowing. Kernels compute in float32.
 *
 * Invariants: a NaN stays a NaN of the same sign (made quiet); overflow gives infinity; denormals
 * of both formats round correctly. The scalar forms are branch-free and equal the F16C instructions
 * bit for bit, NaN payloads included.
 */
#ifndef PTCORE_HALF_H
#define PTCORE_HALF_H
#include "config.h"
#if defined(__F16C__) && !defined(__CUDACC_RTC__)
#include <immintrin.h>
#endif

namespace pt { namespace {

struct half { uint16_t bits; };
struct bfloat16 { uint16_t bits; };

PT_INLINE float to_float(half h) {
    uint32_t w = (uint32_t)h.bits << 16, sign = w & 0x80000000u, mag = (w & 0x7fffffffu) >> 3;
    /* a normal number: adjust the exponent's bias; inf and NaN: adjust it twice */
    uint32_t normal = mag + ((127u - 15u) << 23);
    normal += mag >= (31u << 23) ? ((127u - 15u) << 23) : 0u;
    normal |= mag > (31u << 23) ? 0x00400000u : 0u;
    /* a denormal: an exact subtraction renormalises it */
    float tiny = from_bits(mag + (113u << 23)) - from_bits(113u << 23);
    return from_bits(sign | (mag < (1u << 23) ? to_bits(tiny) : normal));
}

PT_INLINE half to_half(float f) {
    uint32_t b = to_bits(f), sign = b & 0x80000000u, mag = b & 0x7fffffffu;
    /* normal: add half an ulp minus 1, and 1 more when the kept part is odd */
    uint32_t normal = (mag - ((127u - 15u) << 23) + 0xfffu + ((mag >> 13) & 1u)) >> 13;
    /* denormal result: adding 0.5 leaves the rounded 24-bit multiple in the low bits */
    uint32_t tiny = to_bits(from_bits(mag) + 0.5f) - to_bits(0.5f);
    uint32_t r = mag < (113u << 23) ? tiny : normal;
    r = mag >= (143u << 23) ? 0x7c00u : r;
    r = mag > 0x7f800000u ? (0x7e00u | ((mag >> 13) & 0x3ffu)) : r;
    return half{(uint16_t)((sign >> 16) | r)};
}

PT_INLINE float to_float(bfloat16 h) { return from_bits((uint32_t)h.bits << 16); }

PT_INLINE bfloat16 to_bfloat16(float f) {
    uint32_t b = to_bits(f);
    uint32_t r = (b + 0x7fffu + ((b >> 16) & 1u)) >> 16;
    return bfloat16{(uint16_t)((b & 0x7fffffffu) > 0x7f800000u ? (b >> 16) | 0x40u : r)};
}

/* Conversions of whole rows, for the casting loops and the float32 tiles of half operands. */
PT_INLINE void half_row_to_float(const half *PT_RESTRICT a, float *PT_RESTRICT r, int64_t n) {
    int64_t i = 0;
#if defined(__F16C__) && !defined(__CUDACC_RTC__)
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(r + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(a + i))));
#endif
    for (; i < n; i++) r[i] = to_float(a[i]);
}

PT_INLINE void float_row_to_half(const float *PT_RESTRICT a, half *PT_RESTRICT r, int64_t n) {
    int64_t i = 0;
#if defined(__F16C__) && !defined(__CUDACC_RTC__)
    for (; i + 8 <= n; i += 8)
        _mm_storeu_si128((__m128i *)(r + i), _mm256_cvtps_ph(_mm256_loadu_ps(a + i), 0));
#endif
    for (; i < n; i++) r[i] = to_half(a[i]);
}

}}  /* namespace pt, unnamed */
#endif
