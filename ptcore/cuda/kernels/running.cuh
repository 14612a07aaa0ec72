// Running extremes with their positions (the last of equals wins, a NaN beats numbers), and the running log-sum-exp.
#include "scan.cuh"

namespace {

typedef PT_T T;

struct Extreme {
    struct Carry { T value; int64_t position; };
    static PT_DEVICE_MEMBER Carry of(const ScanArgs &a, int64_t at, int64_t j) {
        return Carry{load(reinterpret_cast<const T *>(a.in), at), j};
    }
    static PT_DEVICE_MEMBER Carry join(const ScanArgs &a, const Carry &x, const Carry &y) {
        const auto v = up(x.value), w = up(y.value);
        return w != w || (v == v && (a.largest ? w >= v : w <= v)) ? y : x;
    }
    static PT_DEVICE_MEMBER void put(const ScanArgs &a, const Carry &x, int64_t at) {
        reinterpret_cast<T *>(a.out)[at] = x.value;
        a.positions[at] = x.position;
    }
};

}  // namespace

PT_KERNEL(extreme_lines, ScanArgs, a, 256) { scan_by_thread<Extreme>(a); }
PT_KERNEL_SYNC(extreme_blocks, ScanArgs, a, 256) { scan_by_block<Extreme>(a); }

#if PT_TCODE >= 9
namespace {

// top + log(sum), where sum adds exp(x - top); an infinite or NaN top is the result itself.
struct LogSum {
    struct Carry { double top, sum; };
    static PT_DEVICE_MEMBER Carry of(const ScanArgs &a, int64_t at, int64_t) {
        return Carry{(double)up(reinterpret_cast<const T *>(a.in)[at]), 1};
    }
    static PT_DEVICE_MEMBER Carry join(const ScanArgs &, const Carry &x, const Carry &y) {
        if (x.top != x.top || y.top != y.top) return x.top != x.top ? x : y;
        const Carry &big = x.top >= y.top ? x : y, &small = x.top >= y.top ? y : x;
        if (!pt::isfinite(big.top)) return big;
        return Carry{big.top, big.sum + small.sum * pt::exp(small.top - big.top)};
    }
    static PT_DEVICE_MEMBER void put(const ScanArgs &a, const Carry &x, int64_t at) {
        const double r = pt::isfinite(x.top) ? x.top + pt::log(x.sum) : x.top;
        reinterpret_cast<T *>(a.out)[at] = down<T>((opmath<T>::type)r);
    }
};

}  // namespace

PT_KERNEL(logsum_lines, ScanArgs, a, 256) { scan_by_thread<LogSum>(a); }
PT_KERNEL_SYNC(logsum_blocks, ScanArgs, a, 256) { scan_by_block<LogSum>(a); }
#endif
