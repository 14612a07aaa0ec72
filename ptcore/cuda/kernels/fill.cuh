// Values that follow from an element's place alone: arange, linspace, eye, full.
#include "divide.cuh"
#include "shape_args.h"

namespace {

typedef raw<PT_T>::type Out;
template <class E> PT_DEVICE Out as_out(E x) { return pt::element<E, Out>::cast(x); }

// start + i step: in 64-bit integers for integer outputs, else in float64.
PT_DEVICE void put_range(const FillArgs &a) {
    PT_GRID_STRIDE(i, a.n) {
        Out *to = reinterpret_cast<Out *>(a.out) + i;
        if (PT_TCODE < 9 && PT_TCODE > 0)
            *to = as_out((int64_t)((uint64_t)a.whole_first + (uint64_t)i * (uint64_t)a.whole_step));
        else *to = as_out(a.first[0] + (double)i * a.last[0]);
    }
}

// The second half is computed from the end, so that both ends are exact.
PT_DEVICE void put_pieces(const FillArgs &a) {
    const double pieces = (double)(a.n > 1 ? a.n - 1 : 1);
    PT_GRID_STRIDE(i, a.n) {
        double v[2];
        for (int k = 0; k < 2; k++) {
            const double by = (a.last[k] - a.first[k]) / pieces;
            v[k] = i < a.n / 2 || a.n == 1 ? a.first[k] + by * (double)i
                                           : a.last[k] - by * (double)(a.n - 1 - i);
        }
        Out *to = reinterpret_cast<Out *>(a.out) + i;
        if (PT_TCODE > 12) *to = as_out(complex128(v[0], v[1]));
        else if (PT_TCODE < 9 && PT_TCODE > 0) *to = as_out((int64_t)v[0]);
        else *to = as_out(v[0]);
    }
}

PT_DEVICE void put_unit(const FillArgs &a) {
    PT_GRID_STRIDE(i, a.n) {
        int64_t row = i;
        const int64_t column = take_rest(row, a.columns);
        reinterpret_cast<Out *>(a.out)[i] = as_out((uint8_t)(row == column));
    }
}

PT_DEVICE void put_value(const FillArgs &a) {
    const bool whole = PT_TCODE < 9 && PT_TCODE > 0;
    const Out value = PT_TCODE > 12 ? as_out(complex128(a.first[0], a.first[1]))
                      : whole       ? as_out(a.whole_first)
                                    : as_out(a.first[0]);
    PT_GRID_STRIDE(i, a.n) reinterpret_cast<Out *>(a.out)[i] = value;
}

}  // namespace

PT_KERNEL(arange, FillArgs, a, 256) { put_range(a); }
PT_KERNEL(linspace, FillArgs, a, 256) { put_pieces(a); }
PT_KERNEL(eye, FillArgs, a, 256) { put_unit(a); }
PT_KERNEL(full, FillArgs, a, 256) { put_value(a); }
