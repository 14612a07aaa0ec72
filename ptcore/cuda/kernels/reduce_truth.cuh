// any, all and count_nonzero of PT_T. NaN is true.
#include "reduce.cuh"

namespace {

template <class T> PT_DEVICE bool truth(T x) { return x != T(0); }
PT_DEVICE bool truth(half x) { return (x.bits & 0x7fff) != 0; }
PT_DEVICE bool truth(bfloat16 x) { return (x.bits & 0x7fff) != 0; }

enum { COUNT, ANY, ALL };

template <class T, int KIND> struct Truth {
    typedef int64_t State;      // how many are true; for all: how many are not
    static PT_DEVICE_MEMBER State identity() { return 0; }
    static PT_DEVICE_MEMBER State merge(State x, State y) { return x + y; }
    static PT_DEVICE_MEMBER void add(State &s, const T *x, int n, int64_t, int64_t, const ReduceArgs &) {
        for (int i = 0; i < n; i++) s += truth(x[i]) == (KIND != ALL);
    }
    static PT_DEVICE_MEMBER void store(const ReduceArgs &a, int64_t output, State s) {
        if (KIND == COUNT) static_cast<int64_t *>(a.out)[output] = s;
        else static_cast<bool *>(a.out)[output] = (s != 0) == (KIND == ANY);
    }
};

typedef Truth<PT_T, COUNT> Count;
typedef Truth<PT_T, ANY> Any;
typedef Truth<PT_T, ALL> All;

}  // namespace

PT_REDUCTION(count, PT_T, Count)
PT_REDUCTION(any, PT_T, Any)
PT_REDUCTION(all, PT_T, All)
