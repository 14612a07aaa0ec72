// Functions of float for results that are rounded to 16 bits. They use the instructions for 2^x,
// log2(x) and 1/x of the device's special function units. Relative errors are below 2^-15, unless
// a comment says otherwise. Functions that are not defined here are those of pt. `math` is this
// namespace in programs whose elements have 16 bits, and pt in all others.
#pragma once
#include "base.cuh"

namespace {
namespace approximate {
using namespace pt;

#if defined(__CUDACC_RTC__)
// Relative errors: 2^-22 for exp2 and log2 (absolute between 0.5 and 2), 2^-23 for reciprocal.
// exp2_or_0 and reciprocal return 0 for denormal results, at no cost.
PT_DEVICE float exp2(float x) {
    float y;
    asm("ex2.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
PT_DEVICE float exp2_or_0(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
PT_DEVICE float log2(float x) {
    float y;
    asm("lg2.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
PT_DEVICE float reciprocal(float x) {
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
#else
PT_DEVICE float exp2(float x) { return pt::exp2(x); }
PT_DEVICE float exp2_or_0(float x) { return pt::exp2(x); }
PT_DEVICE float log2(float x) { return pt::log2(x); }
PT_DEVICE float reciprocal(float x) { return 1.f / x; }
#endif

PT_DEVICE double exp2(double) = delete;           // a double argument is an error, not narrowed
PT_DEVICE double log2(double) = delete;
PT_DEVICE double exp(double) = delete;
PT_DEVICE double sigmoid(double) = delete;
PT_DEVICE double tanh(double) = delete;

// The exponent is rounded by at most 2^-18 where e^x is finite.
PT_DEVICE float exp(float x) { return exp2(x * 1.44269504f); }

// Below 0 this is e / (1 + e) with e = e^-|x|: 1 / (1 + e^-x) would add 1 to a large number, and
// the 1 would be lost.
PT_DEVICE float sigmoid_by(float x, float e) {
    const float r = reciprocal(1.f + e);
    return x < 0.f ? e * r : r;
}
PT_DEVICE float sigmoid(float x) { return sigmoid_by(x, exp(-pt::abs(x))); }

// 1 - 2 / (e^2x + 1); near 0, where the difference has few digits, two terms of the series.
PT_DEVICE float tanh(float x) {
    const float y = 1.f - 2.f * reciprocal(exp2_or_0(x * 2.88539008f) + 1.f);
    return pt::abs(x) < 0.03125f ? x * (1.f - x * x * 0.33333333f) : y;
}

// Phi(x) = sigmoid(g(x)): g(x) / x is a polynomial in x^2 up to |x| = 6 (a minimax fit of
// log(Phi(x) / Phi(-x)), error of g 1.5e-4, which is the relative error where x is negative), and
// goes on as |x|, as the exponent of the tail does.
PT_DEVICE float normal_cdf(float x) {
    float u = x * x, m = pt::abs(x) * 0.16666667f;
    u = u > 36.f ? 36.f : u;
    m = m > 1.f ? m : 1.f;
    const float g = x * m *
                    poly(u, 1.59533169, 0.0732769087, -0.000307598823, -6.97020101e-05,
                         4.64569236e-06, -1.46200285e-07, 2.35318577e-09, -1.54625861e-11);
    return sigmoid_by(x, exp2_or_0(pt::abs(g) * -1.44269504f));
}
PT_DEVICE float gelu_erf(float x) { return x * normal_cdf(x); }
// The slopes are those of 30 beyond it, where a product of 0 and infinity would be NaN.
PT_DEVICE float within_30(float x) { return x > 30.f ? 30.f : x < -30.f ? -30.f : x; }
PT_DEVICE float gelu_erf_grad(float x) {
    x = within_30(x);
    return normal_cdf(x) + x * (exp(-0.5f * x * x) * 0.39894228f);
}
PT_DEVICE float gelu_tanh(float x) {
    return x * sigmoid(x * (1.59576912f + 0.0713548163f * x * x));
}
PT_DEVICE float gelu_tanh_grad(float x) {
    x = within_30(x);
    const float u = x * (1.59576912f + 0.0713548163f * x * x), s = sigmoid(u), e = sigmoid(-u);
    return s + x * (s * e) * (1.59576912f + 0.214064449f * x * x);
}

// As pt::pow. The relative error of log2|x| is at most 2^-18, which makes that of a bfloat16's
// result 2^-11 and that of a half's 2^-14. Near 1, log2|x| is a polynomial of |x| - 1, which is
// exact. The cases of negative x are separate.
PT_DEVICE float pow(float x, float y) {
    const float a = pt::abs(x), f = a - 1.f;
    const float l = pt::abs(f) < 0.0625f
                        ? f * poly(f, 1.44269454, -0.721346498, 0.482028395, -0.361804277)
                        : log2(a);
    float r =
        exp2(l == 0.f || y == 0.f ? 0.f : y * l);    // 1^y and x^0 are 1
    if (signbit(x)) {
        const float half = y * 0.5f;
        const bool integer = pt::trunc(y) == y;
        r = integer && pt::trunc(half) != half ? -r : r;
        r = x < 0.f && !integer && x > -infinity<float>() ? not_a_number<float>() : r;
    }
    return r;
}

}  // namespace approximate

#if PT_TCODE == 9 || PT_TCODE == 10
namespace math = approximate;
#else
namespace math = pt;
#endif
}  // namespace
