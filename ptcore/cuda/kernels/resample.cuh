// Resampling along a dim: a result is made of one number (nearest), two (linear) or four (cubic).
// Positions are computed in type E, step by step as on the CPU, because rounding decides them: no
// product is contracted with the next operation.
#include "divide.cuh"
#include "resample_args.h"

namespace {

typedef PT_T T;
template <class N> struct position { typedef float type; };
template <> struct position<double> { typedef double type; };
typedef position<T>::type E;

PT_DEVICE float product(float x, float y) { return __fmul_rn(x, y); }
PT_DEVICE double product(double x, double y) { return __dmul_rn(x, y); }

PT_DEVICE E scale_of(const ResampleArgs &a) {
    if (a.corners && a.mode >= PT_LINEAR)
        return a.large.by > 1 ? E(a.small.by - 1) / E(a.large.by - 1) : E(0);
    return a.factor > 0 ? E(1.0 / a.factor) : E(a.small.by) / E(a.large.by);
}
PT_DEVICE int64_t clamped(const ResampleArgs &a, int64_t i) {
    return i < 0 ? 0 : i < a.small.by ? i : a.small.by - 1;
}

struct Samples {
    int taps;
    int64_t first;              // the nearest or lower neighbour; cubic begins one before it
    E offset;                   // from the lower neighbour
};
PT_DEVICE Samples samples_of(const ResampleArgs &a, E scale, int64_t o) {
    if (a.mode == PT_NEAREST || a.mode == PT_NEAREST_EXACT) {
        // rounded to float as on the CPU
        const E at = product(a.mode == PT_NEAREST ? E(o) : E(o) + E(0.5), scale);
        return {1, clamped(a, (int64_t)(at < E(1 << 23) ? E(float(at)) : at)), E(0)};
    }
    E at = a.corners ? product(scale, E(o)) : product(scale, E(o) + E(0.5)) - E(0.5);
    if (a.mode == PT_LINEAR) {
        at = at < E(0) ? E(0) : at;
        const int64_t i = clamped(a, (int64_t)at);
        const E t = at - E(i);
        return {2, i, t < E(0) ? E(0) : t > E(1) ? E(1) : t};
    }
    const E below = E(pt::floor((double)at));
    return {4, (int64_t)below, at - below};
}
PT_DEVICE int64_t index(const ResampleArgs &a, const Samples &s, int k) {
    return clamped(a, s.taps == 4 ? s.first + k - 1 : s.first + k);
}
PT_DEVICE E weight(const Samples &s, int k) {
    if (s.taps == 1) return E(1);
    if (s.taps == 2) return k ? s.offset : E(1) - s.offset;
    const E A = E(-0.75), x = k == 0   ? s.offset + 1
                              : k == 1 ? s.offset
                              : k == 2 ? 1 - s.offset
                                       : 2 - s.offset;
    if (k == 1 || k == 2) return ((A + 2) * x - (A + 3)) * x * x + 1;
    return ((A * x - 5 * A) * x + 8 * A) * x - 4 * A;
}

PT_DEVICE void forward(const ResampleArgs &a) {
    const T *x = reinterpret_cast<const T *>(a.x);
    const E scale = scale_of(a);
    const int64_t inner = a.inner.by;
    PT_GRID_STRIDE(i, a.total) {
        int64_t outer = i;
        const int64_t column = take_rest(outer, a.inner), o = take_rest(outer, a.large);
        const Samples s = samples_of(a, scale, o);
        const T *from = x + outer * a.small.by * inner + column;
        E sum = weight(s, 0) * E(up(from[index(a, s, 0) * inner]));
        for (int k = 1; k < s.taps; k++) sum += weight(s, k) * E(up(from[index(a, s, k) * inner]));
        reinterpret_cast<raw<T>::type *>(a.out)[i] = pt::element<E, raw<T>::type>::cast(sum);
    }
}

// Positions never decrease: the results that use a number follow each other, and bisection finds
// the first of these results.
PT_DEVICE void backward(const ResampleArgs &a) {
    const T *x = reinterpret_cast<const T *>(a.x);
    const E scale = scale_of(a);
    const int64_t inner = a.inner.by;
    PT_GRID_STRIDE(i, a.total) {
        int64_t outer = i, low = 0, high = a.large.by;
        const int64_t column = take_rest(outer, a.inner), place = take_rest(outer, a.small);
        while (low < high) {
            const int64_t o = (low + high) / 2;
            const Samples s = samples_of(a, scale, o);
            if (index(a, s, s.taps - 1) < place) low = o + 1;
            else high = o;
        }
        const T *from = x + outer * a.large.by * inner + column;
        E sum = E(0);
        for (int64_t o = low; o < a.large.by; o++) {
            const Samples s = samples_of(a, scale, o);
            if (index(a, s, 0) > place) break;
            for (int k = 0; k < s.taps; k++)
                if (index(a, s, k) == place) sum += weight(s, k) * E(up(from[o * inner]));
        }
        reinterpret_cast<raw<T>::type *>(a.out)[i] = pt::element<E, raw<T>::type>::cast(sum);
    }
}

}  // namespace

PT_KERNEL(resample, ResampleArgs, a, 256) { forward(a); }
PT_KERNEL(resample_transposed, ResampleArgs, a, 256) { backward(a); }
