// The p-norm of |x|, x of PT_T, to PT_U: a.a is p.
#include "reduce.cuh"

namespace {

// Not inlined: pow is long and would stand in a kernel many times.
template <class C> PT_NOINLINE C power(C x, double p) { return p == 1 ? x : p == 0 ? C(x != C(0)) : pt::pow(x, C(p)); }

enum { TWO, POWER, MOST, LEAST };       // of POWER, 0 and 1 are told apart where they run

template <class T, class U, int KIND> struct Norm {
    typedef typename opmath<U>::type State;
    static PT_DEVICE_MEMBER State identity() { return KIND == LEAST ? pt::infinity<State>() : State(0); }
    static PT_DEVICE_MEMBER State merge(State x, State y) {
        if (KIND == MOST) return x != x || x > y ? x : y;
        if (KIND == LEAST) return x != x || x < y ? x : y;
        return x + y;
    }
    static PT_DEVICE_MEMBER void add(State &s, const T *x, int n, int64_t, int64_t, const ReduceArgs &a) {
        for (int i = 0; i < n; i++) {
            const State v = static_cast<State>(pt::abs(up(x[i])));
            s = merge(s, KIND == TWO ? v * v : KIND == POWER ? power(v, a.a) : v);
        }
    }
    static PT_DEVICE_MEMBER void store(const ReduceArgs &a, int64_t output, State s) {
        if (KIND == TWO) s = pt::sqrt(s);
        if (KIND == POWER && a.a != 0) s = power(s, 1 / a.a);
        static_cast<U *>(a.out)[output] = down<U>(s);
    }
};

typedef Norm<PT_T, PT_U, TWO> Norm2;
typedef Norm<PT_T, PT_U, POWER> NormP;
typedef Norm<PT_T, PT_U, MOST> NormMax;
typedef Norm<PT_T, PT_U, LEAST> NormMin;

}  // namespace

#if PT_REDUCE_NORM == 2
PT_REDUCTION(norm2, PT_T, Norm2)
#else
PT_REDUCTION(norm_p, PT_T, NormP)
PT_REDUCTION(norm_max, PT_T, NormMax)
PT_REDUCTION(norm_min, PT_T, NormMin)
#endif
