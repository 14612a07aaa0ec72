/* Normal numbers of PyTorch's AVX2 build: Box-Muller by Cephes's logarithm, sine and cosine, with a
 * fused step where that build has one. Branch-free, so that the loop may run in lanes; the
 * including file is compiled without contraction, and all ISA levels give the same bits. */
#ifndef PTCORE_CEPHES_NORMAL_H
#define PTCORE_CEPHES_NORMAL_H
#include "ptcore/scalar.h"

#include <cmath>

namespace pt { namespace {

/* The logarithm of a positive normal float (Cephes). */
PT_INLINE float log_of(float x) {
    const uint32_t bits = to_bits(x);
    float e = (float)((int32_t)(bits >> 23) - 126);
    x = from_bits((bits & 0x7fffffu) | 0x3f000000u);
    const bool low = x < 0.707106781186547524f;
    e -= low ? 1.f : 0.f;
    x = (x - 1.f) + (low ? x : 0.f);
    const float z = x * x;
    float y = std::fma(7.0376836292e-2f, x, -1.1514610310e-1f);
    y = std::fma(y, x, 1.1676998740e-1f);
    y = std::fma(y, x, -1.2420140846e-1f);
    y = std::fma(y, x, 1.4249322787e-1f);
    y = std::fma(y, x, -1.6668057665e-1f);
    y = std::fma(y, x, 2.0000714765e-1f);
    y = std::fma(y, x, -2.4999993993e-1f);
    y = std::fma(y, x, 3.3333331174e-1f);
    y *= x;
    y = std::fma(y, z, e * -2.12194440e-4f);
    y -= z * 0.5f;
    return std::fma(e, 0.693359375f, x + y);
}

/* Cosine and sine of an angle from 0 to one turn (Cephes). */
PT_INLINE void circle(float x, float *cosine, float *sine) {
    const int32_t octant = ((int32_t)(x * 1.27323954473516f) + 1) & ~1;
    const float y = (float)octant;
    x = std::fma(y, -0.78515625f, x);
    x = std::fma(y, -2.4187564849853515625e-4f, x);
    x = std::fma(y, -3.77489497744594108e-8f, x);
    const float z = x * x;
    float c = std::fma(2.443315711809948e-5f, z, -1.388731625493765e-3f);
    c = std::fma(c, z, 4.166664568298827e-2f) * z;
    c = std::fma(c, z, -(z * 0.5f)) + 1.f;
    float s = std::fma(-1.9515295891e-4f, z, 8.3321608736e-3f);
    s = std::fma(s, z, -1.6666654611e-1f) * z;
    s = std::fma(s, x, x);
    const bool swapped = octant & 2;
    *sine = (octant & 4 ? -1.f : 1.f) * (swapped ? c : s);
    *cosine = ((octant - 2) & 4 ? 1.f : -1.f) * (swapped ? s : c);
}

/* Sixteen uniform numbers become normal ones. */
PT_NOINLINE void cephes_normals(float *d, float mean, float std) {
    for (int j = 0; j < 8; j++) {
        const float radius = std::sqrt(-2.f * log_of(1.f - d[j]));
        float c, s;
        circle(6.283185307179586f * d[j + 8], &c, &s);
        d[j] = std::fma(radius * c, std, mean);
        d[j + 8] = std::fma(radius * s, std, mean);
    }
}

}}  /* namespace pt, unnamed */
#endif
