// Reduces windows to their maximum (with its position) or mean, and transposes the mean; windows
// for maxima may lie at random places. Places outside of the input belong to no window. One thread
// computes a result, in the order of the window's places.
#include "divide.cuh"
#include "pooling_args.h"

namespace {

typedef PT_T T;
typedef opmath<T>::type C;

PT_DEVICE int64_t ceil_div(int64_t x, const Divisor &y) { return divided(x + y.by - 1, y); }
PT_DEVICE int64_t smaller(int64_t x, int64_t y) { return x < y ? x : y; }
PT_DEVICE int64_t larger(int64_t x, int64_t y) { return x > y ? x : y; }

// A window in one dim: its first place inside, its end, the number of places that count for a mean.
struct Window {
    int64_t start, stop, number;
};
PT_DEVICE Window window_of(const PoolArgs &a, int d, int64_t o) {
    const PoolAxis &s = a.axis[d];
    Window w;
    if (a.adaptive)
        w.start = divided(o * s.in.by, s.out), w.stop = ceil_div((o + 1) * s.in.by, s.out);
    else {
        const int64_t first = o * s.stride.by - s.padding;
        w.start = first < 0 ? first + ceil_div(-first, s.dilation) * s.dilation.by : first;
        w.stop = smaller(s.in.by, first + (s.kernel - 1) * s.dilation.by + 1);
        if (a.include_pad) {
            w.number = smaller(first + s.kernel, s.in.by + s.padding) - first;
            return w;
        }
    }
    w.number = larger(0, w.stop - w.start);
    return w;
}

// The plane of an element, and its place in the plane by the sizes `in` (large) or `out`.
struct Place {
    int64_t plane, at[3];
};
PT_DEVICE Place place_of(const PoolArgs &a, int64_t i, bool large) {
    Place p;
    for (int d = 2; d >= 0; d--) p.at[d] = take_rest(i, large ? a.axis[d].in : a.axis[d].out);
    p.plane = i;
    return p;
}
PT_DEVICE const T *plane_of(const PoolArgs &a, int64_t plane) {
    const int64_t channel = take_rest(plane, a.channels);
    return reinterpret_cast<const T *>(a.x) + plane * a.x_image + channel * a.x_channel;
}

// A window at a random place, which the sample of its plane decides. Each result is rounded to T,
// so that the places are those of the CPU.
PT_DEVICE Window random_window(const PoolArgs &a, int d, int64_t plane, int64_t o) {
    const PoolAxis &s = a.axis[d];
    const int64_t most = s.in.by - s.kernel, channel = take_rest(plane, a.channels);
    const C sample = up(reinterpret_cast<const T *>(
        a.samples)[plane * a.sample_image + channel * a.sample_channel + s.sample]);
    const C step = up(down<T>((C)s.step)),
            far = C(1e15);    // a sample outside [0, 1) counts while positions are below 1e15
    const C end = up(down<T>(C(up(down<T>(C(sample + C(o)))) * step))),
            begin = up(down<T>(C(sample * step)));
    const bool known = end < far && end > -far && begin < far && begin > -far;
    const int64_t first = o == s.out.by - 1 ? most
                          : known ? smaller(larger((int64_t)end - (int64_t)begin, 0), most)
                                  : 0;
    return {first, first + s.kernel, s.kernel};
}

// The maximum of an empty window.
template <class N> PT_DEVICE N least(N) {
    return N(-1) < N(0) ? N((uint64_t)1 << (8 * sizeof(N) - 1)) : N(0);
}
PT_DEVICE half least(half) { return down<half>(-pt::infinity<float>()); }
PT_DEVICE bfloat16 least(bfloat16) { return down<bfloat16>(-pt::infinity<float>()); }
PT_DEVICE float least(float) { return -pt::infinity<float>(); }
PT_DEVICE double least(double) { return -pt::infinity<double>(); }

// The first maximum counts, except that a NaN comes before all numbers.
template <bool RANDOM> PT_DEVICE void largest(const PoolArgs &a) {
    PT_GRID_STRIDE(i, a.total) {
        const Place p = place_of(a, i, false);
        const T *x = plane_of(a, p.plane);
        Window w[3];
        for (int d = 0; d < 3; d++)
            w[d] = RANDOM ? random_window(a, d, p.plane, p.at[d]) : window_of(a, d, p.at[d]);
        T best = T();
        C most = C(0);
        int64_t place = -1;
        for (int64_t u = w[0].start; u < w[0].stop; u += a.axis[0].dilation.by)
            for (int64_t v = w[1].start; v < w[1].stop; v += a.axis[1].dilation.by)
                for (int64_t q = w[2].start; q < w[2].stop; q += a.axis[2].dilation.by) {
                    const T value = x[u * a.axis[0].x + v * a.axis[1].x + q * a.axis[2].x];
                    const C number = up(value);
                    if (place >= 0 && !(number > most) && number == number) continue;
                    best = value;
                    most = number;
                    place = (u * a.axis[1].in.by + v) * a.axis[2].in.by + q;
                }
        reinterpret_cast<T *>(a.out)[i] = place < 0 ? least(T()) : best;
        a.indices[i] = larger(0, place);
    }
}

PT_DEVICE C share(const PoolArgs &a, int64_t number) {
    return C(a.divisor ? a.divisor : larger(1, number));
}
template <class N> PT_DEVICE N quotient(N sum, N by) { return N(sum / by); }
PT_DEVICE int64_t quotient(int64_t sum, int64_t by) {      // wraps
    return by == -1 ? (int64_t)(0 - (uint64_t)sum) : sum / by;
}

// A sum; one of floats keeps what its additions lose (Kahan), as a float sum of ones ends at 2^24.
template <class N> struct LongSum {
    N total = N(0);
    PT_DEVICE_MEMBER void add(N x) { total = N(total + x); }
};
template <> struct LongSum<float> {
    float total = 0, lost = 0;
    PT_DEVICE_MEMBER void add(float x) {
        const float more = x - lost, sum = total + more;
        lost = (sum - total) - more;
        if (lost - lost != 0) lost = 0;         // beside an infinity
        total = sum;
    }
};

PT_DEVICE void mean(const PoolArgs &a) {
    PT_GRID_STRIDE(i, a.total) {
        const Place p = place_of(a, i, false);
        const T *x = plane_of(a, p.plane);
        Window w[3];
        for (int d = 0; d < 3; d++) w[d] = window_of(a, d, p.at[d]);
        LongSum<C> sum;
        for (int64_t u = w[0].start; u < w[0].stop; u++)
            for (int64_t v = w[1].start; v < w[1].stop; v++)
                PT_UNROLL_BY(1) for (int64_t q = w[2].start; q < w[2].stop; q++)
                    sum.add(up(x[u * a.axis[0].x + v * a.axis[1].x + q * a.axis[2].x]));
        const C by = share(a, w[0].number * w[1].number * w[2].number);
        reinterpret_cast<T *>(a.out)[i] = down<T>(C(quotient(sum.total, by)));
    }
}

// The windows [first, last] that contain place p of the large tensor.
struct Covering {
    int64_t first, last;
};
PT_DEVICE Covering covering(const PoolArgs &a, int d, int64_t p) {
    const PoolAxis &s = a.axis[d];
    if (a.adaptive) return {divided(p * s.out.by, s.in), ceil_div((p + 1) * s.out.by, s.in) - 1};
    const int64_t from = p + s.padding - s.kernel + 1;
    return {from > 0 ? ceil_div(from, s.stride) : 0,
            smaller(s.out.by - 1, divided(p + s.padding, s.stride))};
}

PT_DEVICE void mean_transposed(const PoolArgs &a) {
    PT_GRID_STRIDE(i, a.total) {
        const Place p = place_of(a, i, true);
        const T *x = plane_of(a, p.plane);
        Covering of[3];
        for (int d = 0; d < 3; d++) of[d] = covering(a, d, p.at[d]);
        LongSum<C> sum;
        for (int64_t u = of[0].first; u <= of[0].last; u++) {
            const int64_t rows = window_of(a, 0, u).number;
            for (int64_t v = of[1].first; v <= of[1].last; v++) {
                const int64_t lines = rows * window_of(a, 1, v).number;
                for (int64_t q = of[2].first; q <= of[2].last; q++) {
                    const C value = up(x[u * a.axis[0].x + v * a.axis[1].x + q * a.axis[2].x]);
                    sum.add(quotient(value, share(a, lines * window_of(a, 2, q).number)));
                }
            }
        }
        reinterpret_cast<T *>(a.out)[i] = down<T>(C(sum.total));
    }
}

}  // namespace

PT_KERNEL(pool_max, PoolArgs, a, 256) { largest<false>(a); }
#if PT_TCODE >= 9
PT_KERNEL(pool_fractional, PoolArgs, a, 256) { largest<true>(a); }
#endif
PT_KERNEL(pool_mean, PoolArgs, a, 256) { mean(a); }
PT_KERNEL(pool_mean_transposed, PoolArgs, a, 256) { mean_transposed(a); }
