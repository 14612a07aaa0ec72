// amax and amin of PT_T. NaN wins.
#include "reduce.cuh"
#include "reduce_order.cuh"

namespace {

// The larger or the smaller number; NaN wins.
template <bool MAX, class C> PT_DEVICE C of_two(C x, C y) {
    return x != x || (MAX ? x > y : x < y) ? x : y;
}
#if defined(__CUDACC_RTC__) && __CUDA_ARCH__ >= 800
template <bool MAX> PT_DEVICE float of_two(float x, float y) {
    float r;
    if (MAX) asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(x), "f"(y));
    else asm("min.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(x), "f"(y));
    return r;
}
#endif

template <class T, bool MAX> struct Extreme {
    typedef typename opmath<T>::type State;
    static PT_DEVICE_MEMBER State identity(const ReduceArgs &, int64_t) {
        return MAX ? least<State>() : greatest<State>();
    }
    static PT_DEVICE_MEMBER State merge(State x, State y) { return of_two<MAX>(x, y); }
    static PT_DEVICE_MEMBER void add(State &s, const T *x, int n, int64_t, int64_t,
                                     const ReduceArgs &) {
        for (int i = 0; i < n; i++) s = merge(s, up(x[i]));
    }
    static PT_DEVICE_MEMBER void store(const ReduceArgs &a, int64_t output, State s) {
        static_cast<T *>(a.out)[output] = down<T>(s);
    }
};

typedef Extreme<PT_T, true> Largest;
typedef Extreme<PT_T, false> Smallest;

}  // namespace

PT_REDUCTION(amax, OneTensor<PT_T>, Largest)
PT_REDUCTION(amin, OneTensor<PT_T>, Smallest)
