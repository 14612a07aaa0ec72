/* The five float8 formats as 8-bit storage: exact widening to float32 and narrowing from it to the
 * nearest value, ties to even. Kernels compute in float32.
 *
 * Invariants: a NaN stays a NaN. Beyond its range e4m3fn gives its largest number, e5m2 infinity,
 * the others NaN. e8m0fnu is a power of two: the sign is dropped, and zero gives the least power.
 * All bits, those of NaNs included, are PyTorch's.
 */
#ifndef PTCORE_FLOAT8_H
#define PTCORE_FLOAT8_H
#include "half.h"

namespace pt { namespace {

/* Formats with a sign, E bits of exponent and M of mantissa. */
template<int M, uint32_t BIAS> struct float8_scale {
    /* The value of a magnitude whose exponent has no special meaning. */
    static PT_INLINE uint32_t widened(uint32_t mag) {
        const uint32_t shifted = mag << (23 - M);
        /* a denormal: an exact subtraction renormalises it */
        const uint32_t one = (128u - BIAS) << 23;
        const uint32_t tiny = to_bits(from_bits(shifted + one) - from_bits(one));
        return mag < (1u << M) ? tiny : shifted + ((127u - BIAS) << 23);
    }
    /* The rounded magnitude of a float32 magnitude that the format's exponent holds. */
    static PT_INLINE uint32_t narrowed(uint32_t mag) {
        const uint32_t half_ulp = (1u << (22 - M)) - 1u;
        const uint32_t normal =
            (mag - ((127u - BIAS) << 23) + half_ulp + ((mag >> (23 - M)) & 1u)) >> (23 - M);
        /* a denormal result: adding this leaves the rounded multiple in the low bits */
        const uint32_t magic = (128u - BIAS + 23u - M) << 23;
        const uint32_t tiny = to_bits(from_bits(mag) + from_bits(magic)) - magic;
        return mag < ((128u - BIAS) << 23) ? tiny : normal;
    }
};

struct float8_e4m3fn {
    using scale = float8_scale<3, 7>;
    static PT_INLINE float widen(uint8_t x) {
        const uint32_t mag = x & 0x7fu, sign = (uint32_t)(x & 0x80u) << 24;
        return from_bits(sign | (mag == 0x7fu ? 0x7ff00000u : scale::widened(mag)));
    }
    static PT_INLINE uint8_t narrow(float f) {
        const uint32_t b = to_bits(f), mag = b & 0x7fffffffu;
        uint32_t r = scale::narrowed(mag);
        r = mag >= (1087u << 20) || r > 0x7eu ? 0x7eu : r;      /* from 480 on */
        r = mag > 0x7f800000u ? 0x7fu : r;
        return (uint8_t)((b >> 24 & 0x80u) | r);
    }
};

struct float8_e5m2 {                            /* the upper byte of a float16 */
    using scale = float8_scale<2, 15>;
    static PT_INLINE float widen(uint8_t x) { return to_float(half{(uint16_t)(x << 8)}); }
    static PT_INLINE uint8_t narrow(float f) {
        const uint32_t b = to_bits(f), mag = b & 0x7fffffffu;
        uint32_t r = mag >= (143u << 23) ? 0x7cu : scale::narrowed(mag);
        r = mag > 0x7f800000u ? 0x7fu : r;
        return (uint8_t)((b >> 24 & 0x80u) | r);
    }
};

/* Without infinity and negative zero, whose byte is NaN. */
template<int M, uint32_t BIAS, uint32_t LIMIT> struct float8_fnuz {
    using scale = float8_scale<M, BIAS>;
    static PT_INLINE float widen(uint8_t x) {
        const uint32_t mag = x & 0x7fu, sign = (uint32_t)(x & 0x80u) << 24;
        return from_bits(x == 0x80u ? 0x7f800001u : sign | scale::widened(mag));
    }
    static PT_INLINE uint8_t narrow(float f) {
        const uint32_t b = to_bits(f), mag = b & 0x7fffffffu;
        const uint32_t r = scale::narrowed(mag);
        return (uint8_t)(mag >= LIMIT ? 0x80u : r ? (b >> 24 & 0x80u) | r : 0u);
    }
};
using float8_e4m3fnuz = float8_fnuz<3, 8, 0x87u << 23>;
using float8_e5m2fnuz = float8_fnuz<2, 16, 0x8fu << 23>;

struct float8_e8m0fnu {
    static PT_INLINE float widen(uint8_t x) {
        const uint32_t power = x ? (uint32_t)x << 23 : 0x00400000u;     /* 2**-127 is a denormal */
        return from_bits(x == 0xffu ? 0x7f800001u : power);
    }
    static PT_INLINE uint8_t narrow(float f) {
        const uint32_t mag = to_bits(f) & 0x7fffffffu, exponent = mag >> 23, rest = mag & 0x7fffffu;
        /* The nearest power, and up from halfway. 2**-127 is a denormal, whose leading bit is
         * 0x400000: halfway from there to 2**-126 is 0x600000. */
        const uint32_t up = rest >= (exponent ? 0x400000u : 0x600000u);
        return (uint8_t)(exponent == 0xffu ? exponent : exponent + up);
    }
};

}}  /* namespace pt, unnamed */
#endif
