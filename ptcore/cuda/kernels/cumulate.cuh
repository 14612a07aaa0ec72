// Running sums and products: floats in float64, integers wrap in their own width.
#include "scan.cuh"

namespace {

typedef PT_T T;
template <class E> struct wide { typedef uint64_t type; };
template <> struct wide<bool> { typedef bool type; };
template <> struct wide<half> { typedef double type; };
template <> struct wide<bfloat16> { typedef double type; };
template <> struct wide<float> { typedef double type; };
template <> struct wide<double> { typedef double type; };
template <> struct wide<complex64> { typedef complex128 type; };
template <> struct wide<complex128> { typedef complex128 type; };

template <class C> PT_DEVICE C widened(C x) { return x; }
PT_DEVICE double widened(half x) { return pt::to_float(x); }
PT_DEVICE double widened(bfloat16 x) { return pt::to_float(x); }
template <class E> PT_DEVICE typename wide<E>::type as_wide(E x) { return (typename wide<E>::type)widened(x); }
PT_DEVICE complex128 as_wide(complex64 x) { return complex128(x.re, x.im); }
PT_DEVICE void put_as(half *p, double x) { *p = pt::to_half((float)x); }
PT_DEVICE void put_as(bfloat16 *p, double x) { *p = pt::to_bfloat16((float)x); }
PT_DEVICE void put_as(complex64 *p, complex128 x) { *p = complex64((float)x.re, (float)x.im); }
template <class E, class C> PT_DEVICE void put_as(E *p, C x) { *p = (E)x; }

template <bool SUM> struct Running {
    typedef wide<T>::type Carry;
    static PT_DEVICE_MEMBER Carry of(const ScanArgs &a, int64_t at, int64_t) { return as_wide(load(reinterpret_cast<const T *>(a.in), at)); }
    static PT_DEVICE_MEMBER Carry join(const ScanArgs &, Carry x, Carry y) { return SUM ? Carry(x + y) : Carry(x * y); }
    static PT_DEVICE_MEMBER void put(const ScanArgs &a, Carry x, int64_t at) { put_as(reinterpret_cast<T *>(a.out) + at, x); }
};

}  // namespace

PT_KERNEL(cumsum_lines, ScanArgs, a, 256) { scan_by_thread<Running<true>>(a); }
PT_KERNEL_SYNC(cumsum_blocks, ScanArgs, a, 256) { scan_by_block<Running<true>>(a); }
PT_KERNEL(cumprod_lines, ScanArgs, a, 256) { scan_by_thread<Running<false>>(a); }
PT_KERNEL_SYNC(cumprod_blocks, ScanArgs, a, 256) { scan_by_block<Running<false>>(a); }
