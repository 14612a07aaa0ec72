// The p-norm of |x|, x of PT_T, to PT_U: a.a is p. Sums are float64 as on the CPU, so that powers
// of float32 do not overflow.
#include "reduce.cuh"

namespace {

// Not inlined: pow is long, and a kernel would contain it many times.
PT_NOINLINE double power(double x, double p) {
    return p == 1 ? x : p == 0 ? double(x != 0) : pt::pow(x, p);
}

PT_DEVICE double square(double x) { return x * x; }
PT_DEVICE double square(complex64 x) { return square((double)x.re) + square((double)x.im); }
PT_DEVICE double square(complex128 x) { return square(x.re) + square(x.im); }
PT_DEVICE double size_of(double x) { return pt::abs(x); }
PT_DEVICE double size_of(complex64 x) { return pt::abs(complex128(x.re, x.im)); }
PT_DEVICE double size_of(complex128 x) { return pt::abs(x); }

enum { TWO, POWER, MOST, LEAST };       // POWER: `power` handles p = 0 and p = 1

template <class T, class U, int KIND> struct Norm {
    typedef double State;
    static PT_DEVICE_MEMBER State identity(const ReduceArgs &, int64_t) {
        return KIND == LEAST ? pt::infinity<State>() : State(0);
    }
    static PT_DEVICE_MEMBER State merge(State x, State y) {
        if (KIND == MOST) return x != x || x > y ? x : y;
        if (KIND == LEAST) return x != x || x < y ? x : y;
        return x + y;
    }
    static PT_DEVICE_MEMBER void add(State &s, const T *x, int n, int64_t, int64_t,
                                     const ReduceArgs &a) {
        for (int i = 0; i < n; i++) {
            if (KIND == TWO) s += square(up(x[i]));
            else s = merge(s, KIND == POWER ? power(size_of(up(x[i])), a.a) : size_of(up(x[i])));
        }
    }
    static PT_DEVICE_MEMBER void store(const ReduceArgs &a, int64_t output, State s) {
        if (KIND == TWO) s = pt::sqrt(s);
        if (KIND == POWER && a.a != 0) s = power(s, 1 / a.a);
        static_cast<U *>(a.out)[output] = down<U>(static_cast<typename opmath<U>::type>(s));
    }
};

typedef Norm<PT_T, PT_U, TWO> Norm2;
typedef Norm<PT_T, PT_U, POWER> NormP;
typedef Norm<PT_T, PT_U, MOST> NormMax;
typedef Norm<PT_T, PT_U, LEAST> NormMin;

}  // namespace

#if PT_REDUCE_NORM == 2
PT_REDUCTION(norm2, OneTensor<PT_T>, Norm2)
#else
PT_REDUCTION(norm_p, OneTensor<PT_T>, NormP)
PT_REDUCTION(norm_max, OneTensor<PT_T>, NormMax)
PT_REDUCTION(norm_min, OneTensor<PT_T>, NormMin)
#endif
