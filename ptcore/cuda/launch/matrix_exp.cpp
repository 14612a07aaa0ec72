// Exponentials of matrices, as in _ops/linalg/decompose.cpp: a matrix is scaled until Taylor's
// polynomial of degree 18 is exact to rounding, and the result is squared as often. The host waits
// to read the number of squarings.
#include <memory>
#include <new>

#include "divisor.hpp"
#include "elimination.hpp"
#include "families.hpp"
#include "matmul.hpp"
#include "matrix_exp_args.h"
#include "ptcore/exponential.h"

namespace pt_cuda {

namespace {

enum { THREADS = 256, NORM_THREADS = 128 };
const Kernel SUMS = {"matrix_exp", "exp_sums"}, SQUARINGS = {"matrix_exp", "exp_squarings"},
             SCALE = {"matrix_exp", "exp_scale"}, COMBINE = {"matrix_exp", "exp_combine"},
             SQUARE = {"matrix_exp", "exp_square"};

// The matrices of one call, and the first failure, after which nothing more is launched.
class Exponential {
public:
    Exponential(pt_call *c, int dtype, int64_t batch, int64_t order)
        : c(c), dtype(dtype), batch(batch), order(order), n(batch * order * order),
          room(c, 6 * n * item_size(dtype)), sums(c, 8 * batch * order), squarings(c, 4 * batch) {
        status = room.data && sums.data && squarings.data ? PT_OK : PT_MEMORY_ERROR;
    }
    char *part(int i) const { return static_cast<char *>(room.data) + i * n * item_size(dtype); }
    void multiply(char *to, const char *a, const char *b) {
        Product p;
        p.batch = batch, p.n = p.m = p.k = order, p.dtype = p.out_dtype = dtype, p.out = to;
        p.a = {a, order, 1, order * order}, p.b = {b, order, 1, order * order};
        if (!status) status = pt_cuda::multiply(c, p);
    }
    // to = c0 I + the sum of c[i] from[i], added to what is there if `add`
    void combine(char *to, bool add, double c0, const char *const (&from)[4],
                 const double (&c)[4]) {
        MatrixExpArgs a = arguments(to, nullptr);
        for (int i = 0; i < 4; i++) a.from[i] = from[i], a.c[i] = c[i];
        a.add = add, a.c0 = c0;
        run(COMBINE, a);
    }
    void each(const Kernel &kernel, char *to, char *other, int round = 0) {
        MatrixExpArgs a = arguments(to, other);
        a.round = round;
        run(kernel, a);
    }
    // Leaves the number of squarings of each matrix on the device; returns the largest.
    int most_squarings(char *x, double limit) {
        MatrixExpArgs a = arguments(x, nullptr);
        a.limit = limit;
        if (!status)
            status = launch(c, SUMS, types(dtype), blocks_for(c, batch * order, THREADS, 32),
                            THREADS, a);
        if (!status)
            status =
                launch(c, SQUARINGS, types(dtype), Grid{(unsigned)batch, 1, 1}, NORM_THREADS, a);
        const std::unique_ptr<int[]> found(new (std::nothrow) int[(size_t)batch]);
        if (!status && !found)
            status = failed(c, PT_MEMORY_ERROR, "no host memory for the norms of matrices");
        if (!status) status = read_back(c, found.get(), squarings.data, 4 * batch);
        int most = 0;
        for (int64_t b = 0; !status && b < batch; b++)
            most = found[(size_t)b] > most ? found[(size_t)b] : most;
        return most;
    }
    int status;

private:
    MatrixExpArgs arguments(char *to, char *other) const {
        MatrixExpArgs a = {};
        a.to = to, a.other = other, a.n = n, a.order = divisor(order), a.batch = batch;
        a.sums = static_cast<double *>(sums.data),
        a.squarings = static_cast<int32_t *>(squarings.data);
        return a;
    }
    void run(const Kernel &kernel, const MatrixExpArgs &a) {
        if (!status)
            status = launch(c, kernel, types(dtype), blocks_for(c, n, THREADS, 32), THREADS, a);
    }
    pt_call *const c;
    const int dtype;
    const int64_t batch, order, n;
    const Scratch room, sums, squarings;
};

int matrix_exp(pt_call *c) {
    const pt_view &x = c->in[0], &out = c->out[0];
    if (int status = check_matrices(c, true)) return status;
    if (x.numel == 0) return PT_OK;
    if (matrices_of(x) > INT32_MAX) return failed(c, PT_RUNTIME_ERROR, "too many matrices");
    const bool wide = real_dtype(x.dtype) == PT_FLOAT64;
    if (int status = copy(c, &out, &x)) return status;
    Exponential e(c, x.dtype, matrices_of(x), last_size(x));
    if (e.status) return e.status;
    char *const a = out.data, *const u = e.part(0), *const v = e.part(1), *const w = e.part(2);
    char *const a2 = e.part(3), *const a3 = e.part(4), *const a6 = e.part(5);
    const int most = e.most_squarings(a, wide ? 1.090863719290036 : 3.010066362817634);
    e.each(SCALE, a, nullptr);
    e.multiply(a2, a, a);
    e.multiply(a3, a2, a);
    e.multiply(a6, a3, a3);
    e.combine(w, false, 0, {a, a2, a3, a6}, {0, PT_EXP_5});
    e.combine(v, false, 0, {a, a2, a3, a6}, {PT_EXP_1, 0});
    e.multiply(u, v, w);
    e.combine(w, false, 0, {a, a2, a3, a6}, {PT_EXP_4});
    e.combine(w, true, 0, {u, u, u, u}, {1, 0, 0, 0});
    e.combine(v, false, 0, {a, a2, a3, a6}, {PT_EXP_3});
    e.combine(v, true, 0, {w, w, w, w}, {1, 0, 0, 0});
    e.combine(u, false, 0, {u, a2, a3, a6}, {PT_EXP_FACTOR, PT_EXP_2});
    e.multiply(a2, v, w);
    e.combine(w, false, 0, {u, a2, a2, a2}, {1, 1, 0, 0});
    e.combine(w, true, 1, {a, a, a, a}, {1, 0, 0, 0});
    for (int i = 0; i < most; i++) {
        e.multiply(v, w, w);
        e.each(SQUARE, w, v, i);
    }
    e.each(SQUARE, w, nullptr);
    View from(out);
    from.v.data = w;
    return e.status ? e.status : copy(c, &out, &from.v);
}

}  // namespace

const pt_kernel_entry matrix_exp_kernels[] = {{"matrix_exp", matrix_exp}, {nullptr, nullptr}};

}  // namespace pt_cuda
