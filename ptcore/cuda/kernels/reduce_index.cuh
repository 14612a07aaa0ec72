// The index of the largest or smallest element of PT_T, the first of equal elements, and the value
// if it is asked for (out: values, NULL for indices only; out2: indices). The first NaN wins over
// all numbers.
#include "reduce.cuh"

namespace {

template <class T, bool MAX> struct Index {
    typedef typename opmath<T>::type C;
    struct State {
        C value;
        int64_t index;          // -1: no element yet
    };
    static PT_DEVICE_MEMBER State identity(const ReduceArgs &, int64_t) { return State{C(), -1}; }
    static PT_DEVICE_MEMBER bool better(C x, C y) { return MAX ? x > y : x < y; }
    static PT_DEVICE_MEMBER State merge(State x, State y) {
        if (x.index < 0) return y;
        if (y.index < 0) return x;
        const bool nan_x = x.value != x.value, nan_y = y.value != y.value;
        if (nan_x != nan_y) return nan_x ? x : y;
        if (!nan_x && x.value != y.value) return better(x.value, y.value) ? x : y;
        return x.index < y.index ? x : y;
    }
    // A thread adds its elements in rising order: only a strictly better element replaces s.
    static PT_DEVICE_MEMBER void add(State &s, const T *x, int n, int64_t position, int64_t step,
                                     const ReduceArgs &) {
        for (int i = 0; i < n; i++) {
            const C v = up(x[i]);
            if (s.index < 0 || (s.value == s.value && (better(v, s.value) || v != v)))
                s = State{v, position + i * step};
        }
    }
    static PT_DEVICE_MEMBER void store(const ReduceArgs &a, int64_t output, State s) {
        if (a.out) static_cast<T *>(a.out)[output] = down<T>(s.value);
        static_cast<int64_t *>(a.out2)[output] = s.index;
    }
};

typedef Index<PT_T, true> OfLargest;
typedef Index<PT_T, false> OfSmallest;

}  // namespace

PT_REDUCTION(argmax, OneTensor<PT_T>, OfLargest)
PT_REDUCTION(argmin, OneTensor<PT_T>, OfSmallest)
