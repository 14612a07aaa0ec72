// sum, mean (PT_REDUCE_PRODUCT undefined) and prod, of PT_T to PT_U. Integers wrap in 64 bits,
// integers that become floats are added in double. Neighbouring floats are added in the type of
// computation, these sums in double: a float sum of equal numbers loses digits as it grows, and a
// mean may be a float where the sum is none.
#include "reduce.cuh"

namespace {

template <class T> struct is_integer { static constexpr bool value = true; };
template <> struct is_integer<half> { static constexpr bool value = false; };
template <> struct is_integer<bfloat16> { static constexpr bool value = false; };
template <> struct is_integer<float> { static constexpr bool value = false; };
template <> struct is_integer<double> { static constexpr bool value = false; };
template <> struct is_integer<complex64> { static constexpr bool value = false; };
template <> struct is_integer<complex128> { static constexpr bool value = false; };

template <bool CONDITION, class A, class B> struct choose { typedef A type; };
template <class A, class B> struct choose<false, A, B> { typedef B type; };

// Sums of floats.
template <class C> struct wide { typedef double type; };
template <> struct wide<complex64> { typedef complex128 type; };
template <> struct wide<complex128> { typedef complex128 type; };
PT_DEVICE bool finite(float x) { return pt::isfinite(x); }
PT_DEVICE bool finite(double) { return true; }      // there is nothing wider
PT_DEVICE bool finite(complex64 x) { return pt::isfinite(x.re) && pt::isfinite(x.im); }
PT_DEVICE bool finite(complex128) { return true; }

template <class T, class U, bool PRODUCT> struct Fold {
    typedef typename opmath<U>::type C;
    typedef typename choose<PRODUCT, C, typename wide<C>::type>::type OfFloats;
    typedef typename choose<is_integer<U>::value, uint64_t,
                            typename choose<is_integer<T>::value, double, OfFloats>::type>::type
        State;
    static constexpr bool PARTS = !PRODUCT && !is_integer<T>::value && !is_integer<U>::value;

    static PT_DEVICE_MEMBER State identity(const ReduceArgs &, int64_t) {
        return State(PRODUCT ? 1 : 0);
    }
    static PT_DEVICE_MEMBER State merge(State x, State y) { return PRODUCT ? x * y : x + y; }
    static PT_DEVICE_MEMBER void add(State &s, const T *x, int n, int64_t, int64_t,
                                     const ReduceArgs &) {
        if constexpr (PARTS) {
            typename opmath<T>::type part = up(x[0]);
            for (int i = 1; i < n; i++) part = part + up(x[i]);
            if (finite(part)) {
                s = s + State(part);
                return;
            }
        }
        for (int i = 0; i < n; i++) s = merge(s, State(up(x[i])));
    }
    static PT_DEVICE_MEMBER void store(const ReduceArgs &a, int64_t output, State s) {
        static_cast<U *>(a.out)[output] = rounded(divided(s, a.a));
    }

private:
    static PT_DEVICE_MEMBER uint64_t divided(uint64_t s, double) { return s; }
    template <class S> static PT_DEVICE_MEMBER S divided(S s, double by) {
        return by == 1 ? s : s / S(by);
    }
    static PT_DEVICE_MEMBER complex64 divided(complex64 s, double by) { return s / (float)by; }
    static PT_DEVICE_MEMBER complex128 divided(complex128 s, double by) { return s / by; }
    static PT_DEVICE_MEMBER U rounded(uint64_t s) { return down<U>(s); }
    template <class S> static PT_DEVICE_MEMBER U rounded(S s) { return down<U>(static_cast<C>(s)); }
};

typedef Fold<PT_T, PT_U, false> Sum;
typedef Fold<PT_T, PT_U, true> Product;

}  // namespace

#ifdef PT_REDUCE_PRODUCT
PT_REDUCTION(product, OneTensor<PT_T>, Product)
#else
PT_REDUCTION(sum, OneTensor<PT_T>, Sum)
#endif
