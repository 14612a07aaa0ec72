// log(sum(exp(x))) of PT_T: the largest element so far (top), and the sum of exp(x - top).
#include "reduce.cuh"

namespace {

template <class T> struct LogSum {
    typedef typename opmath<T>::type C;
    struct State {
        C top, sum;    // sum is 0 where top is NaN or infinite; top is then the result
    };
    static PT_DEVICE_MEMBER bool special(C top) { return !pt::isfinite(top); }
    static PT_DEVICE_MEMBER State identity(const ReduceArgs &, int64_t) {
        return State{-pt::infinity<C>(), C(0)};
    }
    static PT_DEVICE_MEMBER State merge(State x, State y) {
        const bool first =
            x.top != x.top || x.top > y.top;    // copies: references would put both on the stack
        const C top = first ? x.top : y.top, sum = first ? x.sum : y.sum,
                less = first ? y.sum : x.sum;
        if (special(top)) return State{top, C(0)};
        return State{top,
                     sum + (less == C(0) ? C(0) : less * pt::exp((first ? y.top : x.top) - top))};
    }
    static PT_DEVICE_MEMBER void add(State &s, const T *x, int n, int64_t, int64_t,
                                     const ReduceArgs &) {
        C top = up(x[0]);
        PT_UNROLL for (int i = 1; i < n; i++) {
            const C v = up(x[i]);
            top = top != top || top > v ? top : v;
        }
        State part{top, C(0)};
        if (!special(top))
            PT_UNROLL for (int i = 0; i < n; i++) part.sum += pt::exp(up(x[i]) - top);
        s = merge(s, part);
    }
    static PT_DEVICE_MEMBER void store(const ReduceArgs &a, int64_t output, State s) {
        static_cast<T *>(a.out)[output] = down<T>(special(s.top) ? s.top : s.top + pt::log(s.sum));
    }
};

typedef LogSum<PT_T> LogSumExp;

}  // namespace

PT_REDUCTION(logsumexp, OneTensor<PT_T>, LogSumExp)
