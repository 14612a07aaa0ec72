// The steps around cuSOLVER's: triangles, identities, addresses of a batch, pivots, determinants,
// complex eigenvectors.
#include "divide.cuh"
#include "parts.cuh"
#include "report.cuh"
#include "solver_args.h"

namespace {

struct times { template <class X> PT_DEVICE_MEMBER X operator()(X x, X y) const { return x * y; } };

template <class X> PT_DEVICE X mirrored(X x) { return x; }
template <class X> PT_DEVICE pt::complex<X> mirrored(pt::complex<X> x) { return pt::conj(x); }

// x / size, which is the direction of x; 0 if size is 0.
template <class X> PT_DEVICE X over(X x, double size) {
    return size == 0                       ? X(0)
           : size == pt::infinity<double>() ? pt::copysign(X(1), x)
                                            : X((double)x / size);
}
template <class X> PT_DEVICE pt::complex<X> over(pt::complex<X> x, double size) {
    return size == 0 ? pt::complex<X>(X(0))
                     : pt::complex<X>(X((double)x.re / size), X((double)x.im / size));
}

// Pivot i; 1, with a report, if it is not the number of a row.
PT_DEVICE int64_t pivot_at(const PivotArgs &a, int64_t i) {
    const int64_t p = a.in[i];
    if (p >= 1 && p <= a.rows.by) return p;
    report(a.fault, a.op, p, 0, a.rows.by);
    return 1;
}

}  // namespace

PT_KERNEL(solver_addresses, AddressArgs, a, 256) {
    PT_GRID_STRIDE(i, a.n) a.out[i] = a.first + i * a.bytes;
}

PT_KERNEL(solver_triangle, MatrixArgs, a, 256) {
    T *const data = reinterpret_cast<T *>(a.data);
    PT_GRID_STRIDE(i, a.n) {
        int64_t matrix = i;
        const int64_t column = take_rest(matrix, a.columns), row = take_rest(matrix, a.rows);
        if (a.lower ? column > row : column < row) data[i] = T(R(0));
        if (column != row || !a.infos || !pt::isnan(data[i])) continue;
        // info becomes the number of the first such row, unless it is a lower number already.
        unsigned *const info = reinterpret_cast<unsigned *>(a.infos + matrix);
        unsigned seen = atomicCAS(info, 0u, (unsigned)row + 1);
        while (seen != 0 && seen > (unsigned)row + 1) {
            const unsigned now = atomicCAS(info, seen, (unsigned)row + 1);
            if (now == seen) break;
            seen = now;
        }
    }
}

PT_KERNEL(solver_identity, MatrixArgs, a, 256) {
    T *const data = reinterpret_cast<T *>(a.data);
    PT_GRID_STRIDE(i, a.n) {
        int64_t rest = i;
        const int64_t column = take_rest(rest, a.columns), row = take_rest(rest, a.rows);
        data[i] = T(R(column == row ? 1 : 0));
    }
}

PT_KERNEL(solver_conjugate, MatrixArgs, a, 256) {
    T *const data = reinterpret_cast<T *>(a.data);
    PT_GRID_STRIDE(i, a.n) data[i] = mirrored(data[i]);
}

PT_KERNEL(solver_mark, MatrixArgs, a, 256) {
    const T *const data = reinterpret_cast<const T *>(a.data);
    PT_GRID_STRIDE(i, a.n)
    if (!pt::isfinite(data[i]))
        atomicExch(reinterpret_cast<unsigned *>(a.infos + divided(i, a.per)), 1u);
}

PT_KERNEL(solver_zero, MatrixArgs, a, 256) {
    T *const data = reinterpret_cast<T *>(a.data);
    PT_GRID_STRIDE(i, a.n)
        if (a.infos[divided(i, a.per)]) data[i] = T(R(0));
}

// A block for each matrix.
PT_KERNEL_SYNC(solver_determinant, DeterminantArgs, a, 128) {
    const int64_t b = blockIdx.x, n = a.order;
    const T *const factors = reinterpret_cast<const T *>(a.factors) + b * n * n;
    T product = T(R(1));
    double sum = 0;
    for (int64_t i = threadIdx.x; i < n; i += 128) {
        T d = factors[i * (n + 1)];
        const int64_t pivot = a.wide ? a.wide[b * n + i] : a.narrow[b * n + i];
        if (pivot != i + 1) d = T(R(0)) - d;
        if (a.logarithm) {
            const double size = (double)pt::abs(d);
            sum += pt::log(size);
            d = over(d, size);
        }
        product = product * d;
    }
    product = block_reduce(product, times(), T(R(1)));
    sum = block_reduce(sum, plus(), 0.0);
    if (threadIdx.x) return;
    reinterpret_cast<T *>(a.product)[b] = product;
    if (a.logarithm) reinterpret_cast<R *>(a.logarithm)[b] = (R)sum;
}

// Follows each row through all swaps.
PT_KERNEL(solver_order, PivotArgs, a, 256) {
    PT_GRID_STRIDE(i, a.n * a.rows.by) {
        int64_t b = i;
        const int64_t row = take_rest(b, a.rows);
        int64_t place = row;
        for (int64_t k = 0; k < a.length; k++) {
            const int64_t with = pivot_at(a, b * a.length + k) - 1;
            place = place == k ? with : place == with ? k : place;
        }
        a.out[b * a.rows.by + place] = row;
    }
}

PT_KERNEL(solver_pivots, PivotArgs, a, 256) {
    PT_GRID_STRIDE(i, a.n * a.length) {
        const int64_t p = pivot_at(a, i);
        if (a.narrow) a.narrow[i] = (int32_t)p;
        else a.out[i] = p;
    }
}

// LDL: one thread for each matrix, because the pivots before two negative pivots decide which of
// the two is the first of a block.
PT_KERNEL(solver_blocks, PivotArgs, a, 256) {
    PT_GRID_STRIDE(b, a.n)
        for (int64_t i = 0; i < a.length; i++) {
            const int64_t at = b * a.length + i, p = a.in[at];
            const int64_t next = i + 1 < a.length ? a.in[at + 1] : 0;
            if (p >= 1 && p <= a.rows.by) a.out[at] = p;
            else if (p < 0 && p >= -a.rows.by && next < 0 && next >= -a.rows.by) {
                a.out[at] = p, a.out[at + 1] = next;
                i++;
            } else {
                report(a.fault, a.op, p, 0, a.rows.by);
                a.out[at] = i + 1;
            }
        }
}

// For real matrices only; T is the type of their elements.
PT_KERNEL(solver_vectors, VectorArgs, a, 256) {
    typedef pt::complex<R> C;
    const R *const packed = reinterpret_cast<const R *>(a.packed);
    PT_GRID_STRIDE(i, a.n) {
        int64_t b = i;
        const int64_t order = a.order.by, j = take_rest(b, a.order), row = take_rest(b, a.order);
        const R side = reinterpret_cast<const C *>(a.values)[b * order + j].im;
        const int64_t first =
            side < 0 && j > 0 ? j - 1 : j;            // the second of a pair is the conjugate
        const R *const column = packed + b * order * order + first * order + row;
        const R im = side == 0 || first + 1 == order ? R(0) : column[order];
        reinterpret_cast<C *>(a.out)[i] = C(*column, side < 0 ? -im : im);
    }
}
