// any, all and count_nonzero of PT_T. NaN is true.
#include "reduce.cuh"

namespace {

template <class T> PT_DEVICE bool truth(T x) { return x != T(0); }
PT_DEVICE bool truth(half x) { return (x.bits & 0x7fff) != 0; }
PT_DEVICE bool truth(bfloat16 x) { return (x.bits & 0x7fff) != 0; }

enum { COUNT, ANY, ALL };               // values of a.a; a.b is the number of elements

template <class T> struct Truth {
    typedef int64_t State;              // the number of true elements
    static PT_DEVICE_MEMBER State identity(const ReduceArgs &, int64_t) { return 0; }
    static PT_DEVICE_MEMBER State merge(State x, State y) { return x + y; }
    static PT_DEVICE_MEMBER void add(State &s, const T *x, int n, int64_t, int64_t,
                                     const ReduceArgs &) {
        for (int i = 0; i < n; i++) s += truth(x[i]);
    }
    static PT_DEVICE_MEMBER void store(const ReduceArgs &a, int64_t output, State s) {
        if (a.a == COUNT) static_cast<int64_t *>(a.out)[output] = s;
        else static_cast<bool *>(a.out)[output] = a.a == ANY ? s != 0 : s == (int64_t)a.b;
    }
};

typedef Truth<PT_T> Truths;

}  // namespace

PT_REDUCTION(truth, OneTensor<PT_T>, Truths)
