// Exponentials of matrices, as in _ops/linalg/decompose.cpp: a matrix is scaled until a Pade
// approximant (by products and an elimination) is exact to rounding, and the result is squared as
// often. The host waits to read the number of squarings.
#include <memory>
#include <new>

#include "divisor.hpp"
#include "elimination.hpp"
#include "families.hpp"
#include "matmul.hpp"
#include "matrix_exp_args.h"

namespace pt_cuda {

namespace {

enum { THREADS = 256, NORM_THREADS = 128 };
const Kernel SUMS = {"matrix_exp", "exp_sums"}, SQUARINGS = {"matrix_exp", "exp_squarings"},
             SCALE = {"matrix_exp", "exp_scale"}, COMBINE = {"matrix_exp", "exp_combine"},
             PARTS = {"matrix_exp", "exp_parts"}, SQUARE = {"matrix_exp", "exp_square"};

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
    // to = c0 I + c2 a2 + c4 a4 + c6 a6, added to what is there if `add`
    void combine(char *to, char *const *powers, bool add, double c0, double c2, double c4,
                 double c6) {
        MatrixExpArgs a = arguments(to, nullptr);
        for (int i = 0; i < 3; i++) a.from[i] = powers[i];
        a.add = add, a.c0 = c0, a.c[0] = c2, a.c[1] = c4, a.c[2] = c6;
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
    // u becomes X of v X = u. Both are functions of one matrix and therefore commute: the solution
    // by columns, with the transposes of both, is X by rows.
    void solve(char *v, char *u) {
        const Pivots pivots(c, batch, order, order);
        const Infos infos(c, batch, nullptr);
        if (!status) status = infos.status;
        if (!status) status = factor(c, dtype, v, batch, order, order, pivots, infos.data());
        if (!status) status = solve_factored(c, dtype, v, batch, order, pivots, false, u, order);
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
    char *const powers[3] = {e.part(3), e.part(4), e.part(5)};
    const int most = e.most_squarings(a, wide ? 5.371920351148152 : 3.925724783138660);
    e.each(SCALE, a, nullptr);
    e.multiply(powers[0], a, a);
    e.multiply(powers[1], powers[0], powers[0]);
    e.multiply(powers[2], powers[1], powers[0]);
    if (wide) {
        constexpr double q = 64764752532480000.; /* as on the CPU: V - U is near the identity */
        e.combine(w, powers, false, 0, 40840800. / q, 16380. / q, 1. / q);
        e.multiply(v, powers[2], w);
        e.combine(v, powers, true, 32382376266240000. / q, 1187353796428800. / q,
                  10559470521600. / q, 33522128640. / q);
        e.multiply(u, a, v);
        e.combine(w, powers, false, 0, 1323241920. / q, 960960. / q, 182. / q);
        e.multiply(v, powers[2], w);
        e.combine(v, powers, true, 1., 7771770303897600. / q, 129060195264000. / q,
                  670442572800. / q);
    } else {
        e.combine(v, powers, false, 8648640., 277200., 1512., 1.);
        e.multiply(u, a, v);
        e.combine(v, powers, false, 17297280., 1995840., 25200., 56.);
    }
    e.each(PARTS, v, u);
    e.solve(v, u);
    for (int i = 0; i < most; i++) {
        e.multiply(w, u, u);
        e.each(SQUARE, u, w, i);
    }
    e.each(SQUARE, u, nullptr);
    View from(out);
    from.v.data = u;
    return e.status ? e.status : copy(c, &out, &from.v);
}

}  // namespace

const pt_kernel_entry matrix_exp_kernels[] = {{"matrix_exp", matrix_exp}, {nullptr, nullptr}};

}  // namespace pt_cuda
