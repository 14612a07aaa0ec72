/* What the kernels over LAPACK share: the layout of the matrices of a batch, their order in memory,
 * and the walk over the batch.
 *
 * Each matrix is copied into LAPACK's column-major order, as LAPACK destroys its input; results are
 * written row-major. LAPACK runs on one BLAS thread, and the pool splits the batch. The first
 * failing matrix of the batch is reported, whichever thread met it.
 */
#ifndef PTCORE_KERNELS_LAPACK_HPP
#define PTCORE_KERNELS_LAPACK_HPP
#include "blas.hpp"
#include "common.hpp"
#include "infos.hpp"

#include <utility>

namespace {

enum : int { NO_MEMORY = -1001 };
template <class T>
constexpr int TYPE = is_same<T, float> ? 0 : is_same<T, double> ? 1 : is_same<T, complex64> ? 2 : 3;

template <class T, class... Args>
inline void routine(int which, Args... args) {
    reinterpret_cast<void (*)(Args...)>(pt_blas.routine[which][TYPE<T>])(args...);
}

/* the layout of the matrices of an input */
struct stack {
    int64_t rows, columns, down, across;
    explicit stack(const pt_view &x)
        : rows(x.sizes[x.ndim - 2]), columns(x.sizes[x.ndim - 1]), down(x.strides[x.ndim - 2]),
          across(x.strides[x.ndim - 1]) {}
};
PT_NOINLINE int64_t batch_of(const pt_view &v) {
    int64_t n = 1;
    for (int d = 0; d < v.ndim - 2; ++d) n *= v.sizes[d];
    return n;
}

template <class T>
PT_NOINLINE void load_columns(T *to, const pt_view &v, const stack &s, int64_t offset) {
    const T *from = reinterpret_cast<const T *>(v.data) + offset;
    for (int64_t j = 0; j < s.columns; ++j)
        load(to + j * s.rows, from + j * s.across, s.rows == 1 ? 1 : s.down, s.rows);
}
/* writes a column-major matrix with `ld` rows row by row */
template <class T>
PT_NOINLINE void store_rows(T *to, const T *from, int64_t rows, int64_t columns, int64_t ld) {
    for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columns; ++j) to[i * columns + j] = from[j * ld + i];
}
template <class T>
PT_NOINLINE bool all_finite(const T *x, int64_t n) {
    real_type<T> sum = 0;               /* x - x is 0, or NaN for a value that is not finite */
    for (int64_t i = 0; i < n; ++i) {
        if constexpr (is_complex<T>) sum += (x[i].re - x[i].re) + (x[i].im - x[i].im);
        else sum += x[i] - x[i];
    }
    return sum == 0;
}
inline bool too_large(int64_t n) { return n > INT_MAX / 16; }
PT_NOINLINE int too_large_for_lapack(pt_call *call) {
    const pt_view &x = call->in[0];
    return fail(call, PT_RUNTIME_ERROR, "a %lldx%lld matrix is too large for LAPACK",
                (long long)x.sizes[x.ndim - 2], (long long)x.sizes[x.ndim - 1]);
}

template <class T>
inline int64_t workspace(T best) {      /* a float cannot hold every size: LAPACK rounds it down */
    const double wanted = double(convert<real_type<T>>(best)) * (1 + 1e-6) + 16;
    return wanted < INT_MAX ? int64_t(wanted) : -1;
}

/* Calls range(make, outer, infos, begin, end) for parts of the batch. The first `inputs` inputs
 * have the batch dims of input 0. */
PT_NOINLINE int walk_batch(pt_call *call, int inputs, int64_t cost, const scratch<int> &infos,
                           const void *make,
                           void (*range)(const void *, const space<3> &, int *, int64_t, int64_t)) {
    const pt_view &x = call->in[0];
    const int64_t batch = batch_of(x);
    space<3> outer;
    for (int d = 0; d < x.ndim - 2; ++d)
        outer.push(x.sizes[d], {x.strides[d], inputs > 1 ? call->in[1].strides[d] : 0,
                                inputs > 2 ? call->in[2].strides[d] : 0});
    if (!infos) return no_memory(call, batch * int64_t(sizeof(int)));
    one_blas_thread guard;
    if (pt_blas.set_threads)
        parallel_for(batch, max64(1, 16384 / max64(1, cost)), [&](int64_t begin, int64_t end) {
            range(make, outer, infos.data, begin, end);
        });
    else range(make, outer, infos.data, 0, batch);
    return PT_OK;
}

/* Calls run() of make()'s result, which holds one thread's workspaces, on every matrix and keeps
 * the info. The first K inputs have the batch dims of input 0. */
template <int K, class Make>
inline int each_matrix(pt_call *call, int64_t cost, const scratch<int> &infos, const Make &make) {
    return walk_batch(call, K, cost, infos, &make,
                      [](const void *maker, const space<3> &outer, int *found, int64_t begin,
                         int64_t end) {
                          auto one = (*static_cast<const Make *>(maker))();
                          cursor<3> at(outer, begin);
                          for (int64_t b = begin; b < end; ++b, at.next())
                              found[b] = one ? one.run(b, at.offset) : int(NO_MEMORY);
                      });
}

/* PT_OK, or the error of the first matrix that failed; `what` is the message for a positive info */
PT_NOINLINE int report(pt_call *call, const scratch<int> &infos, int64_t batch, const char *what) {
    for (int64_t b = 0; b < batch; ++b) {
        if (infos[b] == 0) continue;
        if (infos[b] == NO_MEMORY)
            return no_memory(call, call->in[0].numel * ITEMSIZE[call->in[0].dtype]);
        return matrix_failed(call, b, infos[b], what, "LAPACK");
    }
    return PT_OK;
}

/* Writes the positive infos to output `which`, instead of reporting them as errors. */
PT_NOINLINE void keep_infos(pt_call *call, const scratch<int> &infos, int64_t batch, int which) {
    for (int64_t b = 0; b < batch; ++b) {
        if (infos[b] < 0) continue;
        output<int32_t>(call, which)[b] = infos[b];
        infos[b] = 0;
    }
}

/* calls f(type_tag<T>) for a type that LAPACK supports, once the library is loaded */
template <class F>
int with_lapack(pt_call *call, F &&f) {
    const pt_view &x = call->in[0];
    if (x.ndim < 2)
        return fail(call, PT_RUNTIME_ERROR,
                    "expected a matrix or a batch of them, got %d dimensions", x.ndim);
    if (too_large(x.sizes[x.ndim - 1]) || too_large(x.sizes[x.ndim - 2]))
        return fail(call, PT_RUNTIME_ERROR, "sizes must be below %d", INT_MAX / 16);
    if (!pt_blas.routine[PT_GESV][0]) return PT_NEED_BLAS;
    switch (x.dtype) {
    case PT_FLOAT32: return f(type_tag<float>{});
    case PT_FLOAT64: return f(type_tag<double>{});
    case PT_COMPLEX64: return f(type_tag<complex64>{});
    case PT_COMPLEX128: return f(type_tag<complex128>{});
    default: return bad_dtype(call, x.dtype);
    }
}

template <class F>
int with_squares(pt_call *call, F &&f) {
    const pt_view &x = call->in[0];
    if (x.ndim > 1 && x.sizes[x.ndim - 1] != x.sizes[x.ndim - 2])
        return fail(call, PT_RUNTIME_ERROR, "expected square matrices");
    return with_lapack(call, f);
}

} // namespace
#endif
