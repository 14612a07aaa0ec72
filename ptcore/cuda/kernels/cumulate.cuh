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
template <class E> PT_DEVICE typename wide<E>::type as_wide(E x) {
    return (typename wide<E>::type)widened(x);
}
PT_DEVICE complex128 as_wide(complex64 x) { return complex128(x.re, x.im); }
PT_DEVICE void put_as(half *p, double x) { *p = pt::to_half((float)x); }
PT_DEVICE void put_as(bfloat16 *p, double x) { *p = pt::to_bfloat16((float)x); }
PT_DEVICE void put_as(complex64 *p, complex128 x) { *p = complex64((float)x.re, (float)x.im); }
template <class E, class C> PT_DEVICE void put_as(E *p, C x) { *p = (E)x; }

template <bool SUM> struct Running {
    typedef T Element;
    typedef wide<T>::type Carry;
    static PT_DEVICE_MEMBER Carry of(T x, int64_t) { return as_wide(x); }
    static PT_DEVICE_MEMBER Carry join(const ScanArgs &, Carry x, Carry y) {
        return SUM ? Carry(x + y) : Carry(x * y);
    }
    static PT_DEVICE_MEMBER void put(const ScanArgs &a, Carry x, int64_t at) {
        put_as(reinterpret_cast<T *>(a.out) + at, x);
    }
    template <int V> static PT_DEVICE_MEMBER void put_all(const ScanArgs &a, const Carry *x,
                                                          int64_t at) {
        PT_UNROLL for (int k = 0; k < PT_SCAN_EACH; k += V) {
            Pack<T, V> p;
            PT_UNROLL for (int v = 0; v < V; v++) put_as(&p.v[v], x[k + v]);
            *reinterpret_cast<Pack<T, V> *>(reinterpret_cast<T *>(a.out) + at + k) = p;
        }
    }
};
typedef Running<true> Sum;
typedef Running<false> Product;

}  // namespace

PT_SCAN(cumsum, Sum)
PT_SCAN(cumprod, Product)
