// amax and amin of PT_T. NaN wins.
#include "reduce.cuh"
#include "reduce_order.cuh"

namespace {

template <class T, bool MAX> struct Extreme {
    typedef typename opmath<T>::type State;
    static PT_DEVICE_MEMBER State identity() { return MAX ? least<State>() : greatest<State>(); }
    static PT_DEVICE_MEMBER State merge(State x, State y) { return x != x || (MAX ? x > y : x < y) ? x : y; }
    static PT_DEVICE_MEMBER void add(State &s, const T *x, int n, int64_t, int64_t, const ReduceArgs &) {
        for (int i = 0; i < n; i++) s = merge(s, up(x[i]));
    }
    static PT_DEVICE_MEMBER void store(const ReduceArgs &a, int64_t output, State s) {
        static_cast<T *>(a.out)[output] = down<T>(s);
    }
};

typedef Extreme<PT_T, true> Largest;
typedef Extreme<PT_T, false> Smallest;

}  // namespace

PT_REDUCTION(amax, PT_T, Largest)
PT_REDUCTION(amin, PT_T, Smallest)
