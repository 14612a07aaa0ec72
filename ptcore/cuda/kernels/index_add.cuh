// Values added at the places of an index, in any order. Halves (PT_U) are added to float32.
#include "atomic.cuh"
#include "index_base.cuh"

namespace {

#if defined(PT_UCODE)
typedef PT_U Value;
#else
typedef PT_T Value;
#endif

template <class T> PT_DEVICE T scaled(T x, const IndexArgs &a) { return (T)(x * (T)a.whole_alpha); }
PT_DEVICE bool scaled(bool x, const IndexArgs &a) { return x && a.alpha[0] != 0; }
PT_DEVICE float scaled(float x, const IndexArgs &a) { return x * (float)a.alpha[0]; }
PT_DEVICE double scaled(double x, const IndexArgs &a) { return x * a.alpha[0]; }
PT_DEVICE float scaled(half x, const IndexArgs &a) { return up(x) * (float)a.alpha[0]; }
PT_DEVICE float scaled(bfloat16 x, const IndexArgs &a) { return up(x) * (float)a.alpha[0]; }
// By a real number each part is multiplied: the product of an infinite part and 0 would be NaN.
template <class F> PT_DEVICE pt::complex<F> scaled(pt::complex<F> x, const IndexArgs &a) {
    const F re = (F)a.alpha[0], im = (F)a.alpha[1];
    return im == 0 ? pt::complex<F>(x.re * re, x.im * re) : x * pt::complex<F>(re, im);
}

struct Accumulate {
    const IndexArgs &a;
    PT_DEVICE_MEMBER void operator()(PT_T *to, const Value *from) const {
        atomic_add(to, scaled(load(from, 0), a));
    }
};

}  // namespace

PT_KERNEL(index_accumulate, IndexArgs, a, 256) { each_place<PT_T, Value>(a, Accumulate{a}); }
