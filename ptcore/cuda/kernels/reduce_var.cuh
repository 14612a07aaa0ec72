// The variance of PT_T, complex numbers as pairs, to a.out, or its root to a.out2, which the type
// may hold where it does not hold the variance: a.a is the correction, a.b the number of elements.
// The elements are added in small groups; the mean and squared deviations of each group are merged
// into the state (Chan, Golub and LeVeque, 1979). A set with an infinite or NaN element has a mean
// that is not finite, and the variance NaN. Finite elements have a finite mean; where their squared
// deviations are beyond the type of computation, the variance is infinite. That type is double for
// floats: the deviation of numbers near 1e30 is a float, and their sum of squares is not.
#include "reduce.cuh"

namespace {

template <class C> PT_DEVICE C squared(C x) { return x * x; }
template <class F> PT_DEVICE F squared(pt::complex<F> x) { return x.re * x.re + x.im * x.im; }
template <class C> struct real_of { typedef C type; };
template <class F> struct real_of<pt::complex<F>> { typedef F type; };
PT_DEVICE float wide(half x) { return up(x); }
PT_DEVICE double wide(bfloat16 x) { return up(x); }
PT_DEVICE double wide(double x) { return x; }
PT_DEVICE complex128 wide(complex64 x) { return complex128(x.re, x.im); }
PT_DEVICE complex128 wide(complex128 x) { return x; }

template <class T> struct Variance {
    typedef decltype(wide(T())) C;
    typedef typename real_of<C>::type R;
    struct State {
        C mean;
        R m2, n;
    };
    static PT_DEVICE_MEMBER State identity(const ReduceArgs &, int64_t) {
        return State{C(R(0)), R(0), R(0)};
    }
    static PT_DEVICE_MEMBER State merge(State x, State y) {
        if (y.n == R(0)) return x;
        if (x.n == R(0)) return y;
        const R n = x.n + y.n, share = y.n / n;
        const C d = y.mean - x.mean;
        if (!pt::isfinite(d))
            return far_apart(x.mean, nan_if_not_finite(x.mean) + nan_if_not_finite(y.mean), n);
        return State{x.mean + d * share, x.m2 + y.m2 + squared(d) * (x.n * share), n};
    }
    static PT_DEVICE_MEMBER void add(State &s, const T *x, int n, int64_t, int64_t,
                                     const ReduceArgs &) {
        // Sums distances from the first element, so that numbers far from 0 lose no digits.
        const C first = wide(x[0]);
        C sum = C(R(0));
        for (int i = 1; i < n; i++) sum = sum + (wide(x[i]) - first);
        const C shift = n == 1 ? C(R(0)) : sum / R(n), mean = first + shift;
        R m2 = R(0);
        if (!pt::isfinite(shift)) {
            R bad = R(0);
            for (int i = 0; i < n; i++) bad += nan_if_not_finite(wide(x[i]));
            s = merge(s, far_apart(first, bad, R(n)));
            return;
        }
        if (n > 1)
            for (int i = 0; i < n; i++) m2 += squared((wide(x[i]) - first) - shift);
        s = merge(s, State{mean, m2, R(n)});
    }
    static PT_DEVICE_MEMBER void store(const ReduceArgs &a, int64_t output, State s) {
        const double n = (double)a.b - a.a;
        typedef typename real_of<T>::type U;
        typedef typename opmath<U>::type Result;
        const R variance = s.m2 / R(n > 0 ? n : 0) + nan_if_not_finite(s.mean);
        if (a.out) static_cast<U *>(a.out)[output] = down<U>(Result(variance));
        else static_cast<U *>(a.out2)[output] = down<U>(Result(pt::sqrt(variance)));
    }

private:
    static PT_DEVICE_MEMBER R nan_if_not_finite(C x) {
        return pt::isfinite(x) ? R(0) : pt::not_a_number<R>();
    }
    // The state of n elements with a difference that is not finite: one of them is infinite or NaN
    // (`bad` is NaN), or they are finite and very far apart (`bad` is 0).
    static PT_DEVICE_MEMBER State far_apart(C mean, R bad, R n) {
        return State{mean + C(bad), pt::infinity<R>(), n};
    }
};

typedef Variance<PT_T> Var;

}  // namespace

PT_REDUCTION(variance, OneTensor<PT_T>, Var)
