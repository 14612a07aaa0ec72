// Running extremes with their positions (the last of equals wins, a NaN beats numbers), and the
// running log-sum-exp.
#include "scan.cuh"

namespace {

typedef PT_T T;

struct Extreme {
    typedef T Element;
    struct Carry { T value; int64_t position; };
    static PT_DEVICE_MEMBER Carry of(T x, int64_t j) { return Carry{x, j}; }
    static PT_DEVICE_MEMBER Carry join(const ScanArgs &a, const Carry &x, const Carry &y) {
        const auto v = up(x.value), w = up(y.value);
        return w != w || (v == v && (a.largest ? w >= v : w <= v)) ? y : x;
    }
    static PT_DEVICE_MEMBER void put(const ScanArgs &a, const Carry &x, int64_t at) {
        reinterpret_cast<T *>(a.out)[at] = x.value;
        a.positions[at] = x.position;
    }
    template <int V> static PT_DEVICE_MEMBER void put_all(const ScanArgs &a, const Carry *x,
                                                          int64_t at) {
        PT_UNROLL for (int k = 0; k < PT_SCAN_EACH; k++) put(a, x[k], at + k);
    }
};

}  // namespace

PT_SCAN(extreme, Extreme)

#if PT_TCODE >= 9
namespace {

// top + log(sum), where sum adds exp(x - top); an infinite or NaN top is the result itself.
struct LogSum {
    typedef T Element;
    struct Carry { double top, sum; };
    static PT_DEVICE_MEMBER Carry of(T x, int64_t) { return Carry{(double)up(x), 1}; }
    static PT_DEVICE_MEMBER Carry join(const ScanArgs &, const Carry &x, const Carry &y) {
        if (x.top != x.top || y.top != y.top) return x.top != x.top ? x : y;
        const bool first = x.top >= y.top;    // copies: references would put both on the stack
        const double top = first ? x.top : y.top, sum = first ? x.sum : y.sum;
        if (!pt::isfinite(top)) return Carry{top, sum};
        return Carry{top, sum + (first ? y.sum : x.sum) * pt::exp((first ? y.top : x.top) - top)};
    }
    static PT_DEVICE_MEMBER void put(const ScanArgs &a, const Carry &x, int64_t at) {
        const double r = pt::isfinite(x.top) ? x.top + pt::log(x.sum) : x.top;
        reinterpret_cast<T *>(a.out)[at] = down<T>((opmath<T>::type)r);
    }
    template <int V> static PT_DEVICE_MEMBER void put_all(const ScanArgs &a, const Carry *x,
                                                          int64_t at) {
        PT_UNROLL for (int k = 0; k < PT_SCAN_EACH; k++) put(a, x[k], at + k);
    }
};

}  // namespace

PT_SCAN(logsum, LogSum)
#endif
