// Equations, triangles and determinants by cuSOLVER, and by cuBLAS where a batch has small
// matrices. The ops are those of _ops/linalg/elimination.cpp; the numbers that tell of singular
// matrices are those of the CPU.
//
// LU factors are computed by columns, and a matrix is copied for this. Cholesky's and triangles
// need no copy: a row-major matrix, read by columns, is its transpose, with an upper triangle in
// the place of a lower one.
#include "elimination.hpp"

#include "../../_ops/linalg/infos.hpp"
#include "divisor.hpp"
#include "driver.hpp"
#include "families.hpp"
#include "shape_args.h"
#include "solver_args.h"

namespace pt_cuda {

namespace {

enum { THREADS = 256, DETERMINANT_THREADS = 128 };
const Kernel DETERMINANT = {"solver", "solver_determinant"}, ORDER = {"solver", "solver_order"},
             PIVOTS = {"solver", "solver_pivots"}, ARANGE = {"fill", "arange"};

bool by_batch(int64_t batch, int64_t rows, int64_t columns) {
    return batch > 1 && batch <= INT32_MAX && rows == columns && rows <= BATCHED_ORDER;
}

// -- factors --------------------------------------------------------------------------------------

int cholesky(pt_call *c) {
    const pt_view &x = c->in[0], &out = c->out[0];
    if (int status = check_matrices(c, true)) return status;
    const int64_t n = last_size(x), batch = matrices_of(x);
    const int dtype = x.dtype, type = solver_type(dtype);
    const bool upper = c->params[0].i != 0, check = c->params[1].i != 0;
    Infos infos(c, batch, &c->out[1]);
    if (infos.status || batch * n == 0) return infos.status;
    int status = copy(c, &out, &x);
    if (status) return status;
    const int triangle = upper ? UPLO_LOWER : UPLO_UPPER;
    const auto matrix = [&](int64_t b) { return out.data + b * n * n * item_size(dtype); };
    if (by_batch(batch, n, n)) {
        const Addresses at(c, out.data, n * n * item_size(dtype), batch);
        if (at.status) return at.status;
        status = with_solver(c, no_room, [&](const SolverHandle &s, const Workspace &) {
            return solver.potrf_batched[type_number(dtype)](s.handle, triangle, (int)n, at.data(),
                                                            (int)n, infos.data(), (int)batch);
        });
    } else {
        status = with_solver(
            c,
            [&](const SolverHandle &s, size_t *on_device, size_t *on_host) {
                return solver.potrf_size(s.handle, s.params, triangle, n, type, out.data, n, type,
                                         on_device, on_host);
            },
            [&](const SolverHandle &s, const Workspace &w) {
                int failed = 0;
                for (int64_t b = 0; !failed && b < batch; b++)
                    failed =
                        solver.potrf(s.handle, s.params, triangle, n, type, matrix(b), n, type,
                                     w.device, w.on_device, w.host, w.on_host, infos.data() + b);
                return failed;
            });
    }
    // Not all of these routines report a NaN.
    if (!status) status = keep_triangle(c, dtype, out.data, batch, n, n, !upper, infos.data());
    return status || !check ? status : infos.report(c, NOT_POSITIVE);
}

int copy_pivots(pt_call *c, const Pivots &pivots) {
    pt_view found = c->out[1];
    found.data = static_cast<char *>(pivots.scratch.data),
    found.dtype = pivots.batched ? PT_INT32 : PT_INT64;
    return copy(c, &c->out[1], &found);
}
// The pivots 1, 2, ... of rows that stay in place; `room` has space for those of one matrix.
int unmoved(pt_call *c, void *room) {
    View found(c->out[1]);
    FillArgs a = {};
    a.n = last_size(found.v), a.out = static_cast<char *>(room), a.whole_first = a.whole_step = 1;
    if (int status = launch(c, ARANGE, types(PT_INT32), blocks_for(c, a.n, THREADS), THREADS, a))
        return status;
    for (int d = 0; d < found.v.ndim - 1; d++) found.strides[d] = 0;
    found.v.data = static_cast<char *>(room);
    found.settle();
    return copy(c, &c->out[1], &found.v);
}

int lu(pt_call *c) {
    const pt_view &x = c->in[0];
    if (int status = check_matrices(c, false)) return status;
    const int64_t m = last_size(x, 2), n = last_size(x), batch = matrices_of(x);
    Infos infos(c, batch, &c->out[2]);
    if (infos.status || batch * m * n == 0) return infos.status;
    Columns a(c, x.dtype, batch, m, n);
    const Pivots pivots(c, batch, m, n);
    if (!pivots.scratch.data) return PT_MEMORY_ERROR;
    int status = a.load(c, x);
    const bool swaps = c->params[1].i != 0;
    if (!status) status = factor(c, x.dtype, a.data, batch, m, n, pivots, infos.data(), swaps);
    if (!status) status = a.store(c, c->out[0]);
    if (!status) status = swaps ? copy_pivots(c, pivots) : unmoved(c, pivots.scratch.data);
    return status || !c->params[0].i ? status : infos.report(c, SINGULAR_U);
}

// -- equations ------------------------------------------------------------------------------------

int equations(pt_call *c, bool inverse, bool check) {
    const pt_view &x = c->in[0], &out = c->out[0];
    if (int status = check_matrices(c, true)) return status;
    const int64_t n = last_size(x), batch = matrices_of(x);
    Infos infos(c, batch, c->nout > 1 ? &c->out[1] : nullptr);
    if (infos.status || batch * n == 0) return infos.status;
    if (!inverse && (c->in[1].ndim != x.ndim || last_size(c->in[1], 2) != n ||
                     c->in[1].dtype != x.dtype || matrices_of(c->in[1]) != batch))
        return failed(c, PT_RUNTIME_ERROR,
                      "expected two batches of matrices of one dtype that fit");
    const int64_t k = last_size(out);
    Columns a(c, x.dtype, batch, n, n), b(c, x.dtype, batch, n, k);
    const Pivots pivots(c, batch, n, n);
    if (!pivots.scratch.data || !b.good) return PT_MEMORY_ERROR;
    int status = a.load(c, x);
    if (!status)
        status = inverse ? fill_identity(c, x.dtype, b.data, batch, n, n) : b.load(c, c->in[1]);
    if (!status) status = factor(c, x.dtype, a.data, batch, n, n, pivots, infos.data());
    if (!status) status = solve_factored(c, x.dtype, a.data, batch, n, pivots, false, b.data, k);
    if (!status) status = b.store(c, out);
    return status || !check ? status : infos.report(c, SINGULAR);
}
int solve(pt_call *c) { return equations(c, false, true); }
int solve_ex(pt_call *c) { return equations(c, false, c->params[0].i != 0); }
int inv(pt_call *c) { return equations(c, true, c->params[0].i != 0); }

int lu_solve(pt_call *c) {
    const pt_view &x = c->in[0], &p = c->in[1], &right = c->in[2], &out = c->out[0];
    if (int status = check_factors(c)) return status;
    const int64_t n = last_size(x), k = last_size(right), batch = matrices_of(x);
    if (batch * n * k == 0) return PT_OK;
    Columns a(c, x.dtype, batch, n, n), b(c, x.dtype, batch, n, k);
    const Pivots pivots(c, batch, n, n);
    const Contiguous given(c, p);
    if (!pivots.scratch.data || !given.ok()) return PT_MEMORY_ERROR;
    PivotArgs args = {};
    args.in = reinterpret_cast<const int32_t *>(given.view.data), args.n = batch, args.length = n,
    args.rows = divisor(n);
    args.out = pivots.wide(), args.narrow = pivots.batched ? pivots.narrow() : nullptr;
    args.fault = fault_of(c), args.op = c->op;
    int status =
        launch(c, PIVOTS, types(x.dtype), blocks_for(c, batch * n, THREADS, 32), THREADS, args);
    if (!status) status = a.load(c, x);
    if (!status) status = b.load(c, right);
    if (!status)
        status =
            solve_factored(c, x.dtype, a.data, batch, n, pivots, c->params[0].i != 0, b.data, k);
    return status ? status : b.store(c, out);
}

// X^T A^T = B^T: read by columns, the three row-major matrices are their transposes.
int solve_triangular(pt_call *c) {
    const pt_view &x = c->in[0], &out = c->out[0];
    if (int status = check_matrices(c, true)) return status;
    const int64_t n = last_size(x), batch = matrices_of(x);
    if (out.ndim != x.ndim || last_size(out, 2) != n || matrices_of(out) != batch ||
        c->in[1].dtype != x.dtype)
        return failed(c, PT_RUNTIME_ERROR,
                      "expected two batches of matrices of one dtype that fit");
    const int64_t k = last_size(out), item = item_size(x.dtype);
    if (out.numel == 0) return PT_OK;
    if (k > INT32_MAX) return failed(c, PT_RUNTIME_ERROR, "a matrix is too large for cuBLAS");
    const Contiguous a(c, x);
    if (!a.ok()) return PT_MEMORY_ERROR;
    int status = copy(c, &out, &c->in[1]);
    void *handle;
    if (!status) status = blas_handle(c, 0, &handle);
    if (status) return status;
    const int which = type_number(x.dtype), triangle = c->params[0].i ? UPLO_LOWER : UPLO_UPPER,
              unit = c->params[1].i != 0;
    const float one32[2] = {1, 0};
    const double one64[2] = {1, 0};
    const void *one =
        x.dtype == PT_FLOAT64 || x.dtype == PT_COMPLEX128 ? (const void *)one64 : one32;
    const char *const triangles = a.view.data;
    if (by_batch(batch, n, n)) {
        const Addresses of_a(c, triangles, n * n * item, batch),
            of_b(c, out.data, n * k * item, batch);
        if (of_a.status || of_b.status) return of_a.status ? of_a.status : of_b.status;
        std::lock_guard<std::mutex> turn(blas_turn(c));
        status = blas.triangular_batched[which](handle, SIDE_RIGHT, triangle, OP_AS_IT_IS, unit,
                                                (int)k, (int)n, one, of_a.data(), (int)n,
                                                of_b.data(), (int)k, (int)batch);
        return status ? blas_failed(c, status) : wait_if_blocking(c, "linalg");
    }
    std::lock_guard<std::mutex> turn(blas_turn(c));
    for (int64_t b = 0; !status && b < batch; b++)
        status = blas.triangular[which](handle, SIDE_RIGHT, triangle, OP_AS_IT_IS, unit, (int)k,
                                        (int)n, one, triangles + b * n * n * item, (int)n,
                                        out.data + b * n * k * item, (int)k);
    return status ? blas_failed(c, status) : wait_if_blocking(c, "linalg");
}

// -- determinants and pivots ----------------------------------------------------------------------

int determinant(pt_call *c, bool logarithm) {
    const pt_view &x = c->in[0];
    if (int status = check_matrices(c, true)) return status;
    const int64_t n = last_size(x), batch = matrices_of(x);
    if (batch == 0) return PT_OK;
    Columns a(c, x.dtype, batch, n, n);
    const Pivots pivots(c, batch, n, n);
    const Infos infos(c, batch, nullptr);
    if (infos.status) return infos.status;
    int status = a.load(c, x);
    if (!status && n) status = factor(c, x.dtype, a.data, batch, n, n, pivots, infos.data());
    DeterminantArgs args = {};
    args.order = n, args.product = c->out[0].data,
    args.logarithm = logarithm ? c->out[1].data : nullptr;
    // The first dim of a grid ends at 2**31 - 1.
    for (int64_t b = 0; !status && b < batch; b += INT32_MAX) {
        args.factors = a.at(b);
        args.wide = pivots.batched ? nullptr : pivots.wide() + b * n;
        args.narrow = pivots.batched ? pivots.narrow() + b * n : nullptr;
        const unsigned blocks = (unsigned)(batch - b < INT32_MAX ? batch - b : INT32_MAX);
        status =
            launch(c, DETERMINANT, types(x.dtype), Grid{blocks, 1, 1}, DETERMINANT_THREADS, args);
        args.product += (int64_t)INT32_MAX * item_size(x.dtype);
        if (logarithm) args.logarithm += (int64_t)INT32_MAX * item_size(real_dtype(x.dtype));
    }
    return status;
}
int det(pt_call *c) { return determinant(c, false); }
int slogdet(pt_call *c) { return determinant(c, true); }

int pivot_order(pt_call *c) {
    const pt_view &p = c->in[0], &out = c->out[0];
    const int64_t rows = c->params[0].i;
    if (p.ndim < 1 || p.dtype != PT_INT32 || rows < p.sizes[p.ndim - 1])
        return failed(c, PT_RUNTIME_ERROR, "expected int32 pivots, at most one a row");
    if (out.numel == 0) return PT_OK;
    const Contiguous given(c, p);
    if (!given.ok()) return PT_MEMORY_ERROR;
    PivotArgs a = {};
    a.in = reinterpret_cast<const int32_t *>(given.view.data),
    a.out = reinterpret_cast<int64_t *>(out.data);
    a.n = out.numel / rows, a.rows = divisor(rows), a.length = p.sizes[p.ndim - 1];
    a.fault = fault_of(c), a.op = c->op;
    return launch(c, ORDER, types(PT_FLOAT32), blocks_for(c, out.numel, THREADS, 32), THREADS, a);
}

}  // namespace

// -- for others -----------------------------------------------------------------------------------

Pivots::Pivots(pt_call *c, int64_t batch, int64_t rows, int64_t columns)
    : batched(by_batch(batch, rows, columns)),
      scratch(c, batch * (rows < columns ? rows : columns) * (batched ? 4 : 8)) {}

int factor(pt_call *c, int dtype, char *a, int64_t batch, int64_t rows, int64_t columns,
           const Pivots &pivots, int *infos, bool swaps) {
    const int64_t k = rows < columns ? rows : columns, step = rows * columns * item_size(dtype);
    const int type = solver_type(dtype);
    if (k && !pivots.scratch.data) return PT_MEMORY_ERROR;
    if (pivots.batched) {
        void *handle;
        int status = blas_handle(c, 0, &handle);
        if (status) return status;
        const Addresses at(c, a, step, batch);
        if (at.status) return at.status;
        std::lock_guard<std::mutex> turn(blas_turn(c));
        status = blas.factor_batched[type_number(dtype)](handle, (int)rows, at.data(), (int)rows,
                                                         swaps ? pivots.narrow() : nullptr, infos,
                                                         (int)batch);
        return status ? blas_failed(c, status) : wait_if_blocking(c, "linalg");
    }
    return with_solver(
        c,
        [&](const SolverHandle &s, size_t *on_device, size_t *on_host) {
            return solver.getrf_size(s.handle, s.params, rows, columns, type, a, rows, type,
                                     on_device, on_host);
        },
        [&](const SolverHandle &s, const Workspace &w) {
            int status = 0;
            for (int64_t b = 0; !status && b < batch; b++)
                status = solver.getrf(s.handle, s.params, rows, columns, type, a + b * step, rows,
                                      swaps ? pivots.wide() + b * k : nullptr, type, w.device,
                                      w.on_device, w.host, w.on_host, infos + b);
            return status;
        });
}

int solve_factored(pt_call *c, int dtype, const char *a, int64_t batch, int64_t order,
                   const Pivots &pivots, bool turned, char *b, int64_t columns) {
    const int64_t item = item_size(dtype), step_a = order * order * item,
                  step_b = order * columns * item;
    const int type = solver_type(dtype), op = turned ? OP_TURNED : OP_AS_IT_IS;
    if (batch * order * columns == 0) return PT_OK;
    if (columns > INT32_MAX)
        return failed(c, PT_RUNTIME_ERROR, "a matrix is too large for cuSOLVER");
    if (pivots.batched) {
        void *handle;
        int status = blas_handle(c, 0, &handle), refused = 0;
        if (status) return status;
        const Addresses of_a(c, a, step_a, batch), of_b(c, b, step_b, batch);
        if (of_a.status || of_b.status) return of_a.status ? of_a.status : of_b.status;
        std::lock_guard<std::mutex> turn(blas_turn(c));
        status =
            blas.solve_batched[type_number(dtype)](handle, op, (int)order, (int)columns,
                                                   of_a.data(), (int)order, pivots.narrow(),
                                                   of_b.data(), (int)order, &refused, (int)batch);
        return status ? blas_failed(c, status) : wait_if_blocking(c, "linalg");
    }
    Infos infos(c, 1, nullptr);                 // reports wrong arguments only
    if (infos.status) return infos.status;
    return with_solver(c, no_room, [&](const SolverHandle &s, const Workspace &) {
        int status = 0;
        for (int64_t i = 0; !status && i < batch; i++)
            status =
                solver.getrs(s.handle, s.params, op, order, columns, type, a + i * step_a, order,
                             pivots.wide() + i * order, type, b + i * step_b, order, infos.data());
        return status;
    });
}

const pt_kernel_entry elimination_kernels[] = {
    {"solve", solve},       {"solve_ex", solve_ex},
    {"inv", inv},           {"solve_triangular", solve_triangular},
    {"cholesky", cholesky}, {"lu", lu},
    {"lu_solve", lu_solve}, {"det", det},
    {"slogdet", slogdet},   {"pivot_order", pivot_order},
    {nullptr, nullptr},
};

}  // namespace pt_cuda
