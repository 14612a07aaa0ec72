// Shared by the kernels of convolution: the type of computation, indices as several digits, the
// taps of a result.
#pragma once
#include "convolution_args.h"
#include "divide.cuh"

namespace {

// Half types are computed in float, integers in 64 bits, where they wrap.
template <class T> struct summed { typedef typename opmath<T>::type type; };
template <> struct summed<uint8_t> { typedef uint64_t type; };
template <> struct summed<int8_t> { typedef uint64_t type; };
template <> struct summed<uint16_t> { typedef uint64_t type; };
template <> struct summed<int16_t> { typedef uint64_t type; };
template <> struct summed<uint32_t> { typedef uint64_t type; };
template <> struct summed<int32_t> { typedef uint64_t type; };
template <> struct summed<int64_t> { typedef uint64_t type; };

typedef PT_T T;
typedef summed<T>::type C;

PT_DEVICE C element(const T *p, int64_t i) { return (C)up(p[i]); }
PT_DEVICE C madd(C sum, C x, C y) { return sum + x * y; }

// An index as digits: the last digit runs fastest, the first has no limit.
template <class I> struct Digits {
    I first, at[3];
};
template <class I> PT_DEVICE Digits<I> digits_of(I i, const I (&size)[3]) {
    Digits<I> r;
    for (int d = 2; d >= 0; d--) {
        const I n = size[d] > 0 ? size[d] : I(1), q = i / n;
        r.at[d] = i - q * n;
        i = q;
    }
    r.first = i;
    return r;
}
PT_DEVICE Digits<int64_t> digits_of(int64_t i, const Divisor &first, const Divisor &second,
                                    const Divisor &third) {
    Digits<int64_t> r;
    r.at[2] = take_rest(i, third);
    r.at[1] = take_rest(i, second);
    r.at[0] = take_rest(i, first);
    r.first = i;
    return r;
}
template <class I> PT_DEVICE void advance(Digits<I> &p, const Digits<I> &by, const I (&size)[3]) {
    I carry = 0;
    for (int d = 2; d >= 0; d--) {
        p.at[d] += by.at[d] + carry;
        carry = p.at[d] >= size[d];
        if (carry) p.at[d] -= size[d];
    }
    p.first += by.first + carry;
}
template <class I> PT_DEVICE void advance(Digits<I> &p, const I (&size)[3]) {
    if (++p.at[2] < size[2]) return;
    p.at[2] = 0;
    if (++p.at[1] < size[1]) return;
    p.at[1] = 0;
    if (++p.at[0] < size[0]) return;
    p.at[0] = 0;
    p.first++;
}

// One dim of one phase: tap number j of result t reads position t * step + base + j * slope, and is
// tap first + j * period of the weight.
template <class I> struct Axis {
    I results, taps, step, base, slope;
    int64_t first;
};
template <class I> PT_DEVICE Axis<I> axis_of(const ConvolutionAxis &a, int64_t phase,
                                             bool transposed) {
    Axis<I> r = {};
    r.results = (I)(phase < a.result ? divided(a.result - 1 - phase, a.by_phases) + 1 : 0);
    if (!transposed) {
        r.taps = (I)a.kernel, r.step = (I)a.stride, r.base = (I)-a.padding, r.slope = (I)a.dilation;
        return r;
    }
    const I kernel = (I)a.kernel, period = (I)a.period, stride = (I)a.stride,
            dilation = (I)a.dilation;
    const I tried = kernel < period ? kernel : period;
    I first = 0, from = (I)(phase + a.padding);
    for (; first < tried && from % stride; first++) from -= dilation;
    r.first = first;
    r.taps = first < tried ? (kernel - 1 - first) / period + 1 : 0;
    r.step = 1;
    r.base = from / stride;
    r.slope = -(dilation / (stride / period));        // stride / period is gcd(stride, dilation)
    return r;
}

// Result number i of a phase, as an image and a place in the image.
PT_DEVICE Digits<int64_t> by_results(const ConvolutionArgs &a, int64_t i) {
    return digits_of(i, a.axis[0].by_most, a.axis[1].by_most, a.axis[2].by_most);
}

PT_DEVICE bool inside(int32_t p, int64_t size) { return (uint32_t)p < (uint32_t)size; }
PT_DEVICE bool inside(int64_t p, int64_t size) { return (uint64_t)p < (uint64_t)size; }

}  // namespace
