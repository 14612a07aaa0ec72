// Orthogonal factors, singular values, eigenvalues and LDL by cuSOLVER; the ops are those of
// _ops/linalg/lapack.cpp, svd.cpp and decompose.cpp.
//
// Where cuSOLVER has no routine for a whole batch, the matrices are factored one by one, in the
// stream's order.
#include "divisor.hpp"
#include "driver.hpp"
#include "families.hpp"
#include "solver.hpp"
#include "solver_args.h"

#include "../../_ops/linalg/infos.hpp"

namespace pt_cuda {

namespace {

enum { THREADS = 256 };
enum { COMPLETE = 1, ONLY_R = 2 };              // modes of qr
const Kernel VECTORS = {"solver", "solver_vectors"}, BLOCKS = {"solver", "solver_blocks"};

char *behind(void *data, int64_t n, int dtype) {
    return static_cast<char *>(data) + n * item_size(dtype);
}

// -- reflectors -----------------------------------------------------------------------------------

// In place: R on and above the diagonals of the first `columns` columns, reflectors below them;
// `tau` gets the scalar factors of the reflectors.
int reflectors(pt_call *c, const Columns &a, int64_t columns, void *tau) {
    const int64_t m = a.rows, k = m < columns ? m : columns;
    const int dtype = a.dtype, type = solver_type(dtype);
    const Infos infos(c, 1, nullptr);           // reports wrong arguments only
    if (infos.status) return infos.status;
    return with_solver(
        c,
        [&](const SolverHandle &s, size_t *on_device, size_t *on_host) {
            return solver.geqrf_size(s.handle, s.params, m, columns, type, a.data, m, type, tau,
                                     type, on_device, on_host);
        },
        [&](const SolverHandle &s, const Workspace &w) {
            int status = 0;
            for (int64_t b = 0; !status && b < a.batch; b++)
                status = solver.geqrf(s.handle, s.params, m, columns, type, a.at(b), m, type,
                                      behind(tau, b * k, dtype), type, w.device, w.on_device,
                                      w.host, w.on_host, infos.data());
            return status;
        });
}

// In place: the first `columns` columns of the product of k reflectors.
int product(pt_call *c, const Columns &a, int64_t columns, int64_t k, void *tau) {
    const int dtype = a.dtype, which = type_number(dtype), m = (int)a.rows;
    const Infos infos(c, 1, nullptr);
    if (infos.status) return infos.status;
    return with_elements(c, dtype, [&](const SolverHandle &s, int *size) {
        return solver.orgqr_size[which](s.handle, m, (int)columns, (int)k, a.data, m, tau, size);
    }, [&](const SolverHandle &s, void *work, int size) {
        int status = 0;
        for (int64_t b = 0; !status && b < a.batch; b++)
            status = solver.orgqr[which](s.handle, m, (int)columns, (int)k, a.at(b), m,
                                         behind(tau, b * k, dtype), work, size, infos.data());
        return status;
    });
}

int qr(pt_call *c) {
    const pt_view &x = c->in[0], &q = c->out[0], &r = c->out[1];
    if (int status = check_matrices(c, false)) return status;
    const int64_t m = last_size(x, 2), n = last_size(x), k = m < n ? m : n, batch = matrices_of(x),
                  mode = c->params[0].i;
    const int64_t wide = mode == COMPLETE ? m : k;
    if (batch * m == 0) return PT_OK;
    if (n == 0) return mode == COMPLETE ? fill_identity(c, x.dtype, q.data, batch, m, m) : PT_OK;
    Columns a(c, x.dtype, batch, m, n > wide ? n : wide);
    const Scratch tau(c, batch * k * item_size(x.dtype));
    if (!tau.data) return PT_MEMORY_ERROR;
    int status = a.load(c, x);
    if (!status) status = reflectors(c, a, n, tau.data);
    if (!status) status = a.store(c, r);
    if (!status) status = keep_triangle(c, x.dtype, r.data, batch, wide, n, false);
    if (status || mode == ONLY_R) return status;
    status = product(c, a, wide, k, tau.data);
    return status ? status : a.store(c, q);
}

int geqrf(pt_call *c) {
    const pt_view &x = c->in[0];
    if (int status = check_matrices(c, false)) return status;
    if (x.numel == 0) return PT_OK;
    Columns a(c, x.dtype, matrices_of(x), last_size(x, 2), last_size(x));
    int status = a.load(c, x);
    if (!status) status = reflectors(c, a, last_size(x), c->out[1].data);
    return status ? status : a.store(c, c->out[0]);
}

int householder(pt_call *c) {
    const pt_view &x = c->in[0], &t = c->in[1], &out = c->out[0];
    if (int status = check_matrices(c, false)) return status;
    const int64_t m = last_size(x, 2), n = last_size(x), batch = matrices_of(x);
    bool fits = t.ndim == x.ndim - 1 && t.dtype == x.dtype && last_size(t) <= n && n <= m;
    for (int d = 0; fits && d < x.ndim - 2; d++) fits = t.sizes[d] == x.sizes[d];
    if (!fits)
        return failed(c, PT_RUNTIME_ERROR,
                      "expected matrices and a vector for each of them, of one dtype");
    if (out.numel == 0) return PT_OK;
    const int64_t k = last_size(t);
    if (k == 0) return fill_identity(c, x.dtype, out.data, batch, m, n);
    Columns a(c, x.dtype, batch, m, n);
    const Contiguous tau(c, t);
    if (!tau.ok()) return PT_MEMORY_ERROR;
    int status = a.load(c, x);
    if (!status) status = product(c, a, n, k, tau.view.data);
    return status ? status : a.store(c, out);
}

// -- singular values ------------------------------------------------------------------------------

// All small matrices of a batch at once, A = U S V^H: cuSOLVER writes V by columns; read by rows,
// it is Vh but for the conjugate.
int small_svd(pt_call *c, int64_t m, int64_t n, int64_t batch, bool vectors) {
    const pt_view &x = c->in[0], &u = c->out[0], &vh = c->out[2];
    const int dtype = x.dtype, which = type_number(dtype), real = real_dtype(dtype), im = (int)m,
              in = (int)n;
    const int64_t k = m < n ? m : n, most = INT32_MAX / (m < n ? n * n : m * m),
                  each = batch < most ? batch : most;
    Columns a(c, dtype, batch, m, n), left(c, dtype, vectors ? batch : 0, m, m),
        right(c, dtype, vectors ? batch : 0, n, n);
    Infos infos(c, batch, nullptr);
    if (infos.status || !left.good || !right.good)
        return infos.status ? infos.status : PT_MEMORY_ERROR;
    char *const values = c->out[1].data;
    int status = a.load(c, x);
    if (!status) status = infos.leave_out(c, dtype, a.data, a.step);
    if (status) return status;
    // Each call takes matrices with fewer than 2**31 elements in all.
    status = with_elements(
        c, dtype,
        [&](const SolverHandle &s, int *size) {
            return solver.gesvdj_size[which](s.handle, vectors, im, in, a.data, im, values,
                                             left.data, im, right.data, in, size, s.jacobi,
                                             (int)each);
        },
        [&](const SolverHandle &s, void *work, int size) {
            int bad = 0;
            for (int64_t b = 0; !bad && b < batch; b += each)
                bad = solver.gesvdj[which](
                    s.handle, vectors, im, in, a.at(b), im, behind(values, b * k, real),
                    vectors ? left.at(b) : nullptr, im, vectors ? right.at(b) : nullptr, in, work,
                    size, infos.data() + b, s.jacobi, (int)(batch - b < each ? batch - b : each));
            return bad;
        });
    if (!status && vectors) status = left.store(c, u);
    if (!status && vectors) status = right.store(c, vh, true);
    if (!status && vectors) status = conjugate(c, dtype, vh.data, vh.numel);
    return status ? status : infos.report(c, NO_SINGULAR_VALUES);
}

// cuSOLVER takes no more columns than rows. A wide matrix is passed as it lies, which by columns is
// A^T = Vh^T S U^T; the factors that cuSOLVER writes by columns are Vh and U by rows.
int svd(pt_call *c) {
    const pt_view &x = c->in[0], &u = c->out[0], &vh = c->out[2];
    if (int status = check_matrices(c, false)) return status;
    const int64_t m = last_size(x, 2), n = last_size(x), k = m < n ? m : n, most = m < n ? n : m,
                  batch = matrices_of(x);
    const bool full = c->params[0].i != 0, vectors = c->params[1].i != 0, turned = n >= m;
    const int dtype = x.dtype, real = real_dtype(dtype), type = solver_type(dtype),
              type_s = solver_type(real);
    int status = PT_OK;
    if (k == 0 && vectors && full) {    // any unitary matrices are factors of an empty one
        status = fill_identity(c, dtype, u.data, batch, m, m);
        if (!status) status = fill_identity(c, dtype, vh.data, batch, n, n);
    }
    if (status || k * batch == 0) return status;
    if (batch > 1 && most <= JACOBI_ORDER) return small_svd(c, m, n, batch, vectors);
    const int64_t wide = full ? most : k;
    Columns a(c, dtype, batch, most, k), left(c, dtype, vectors && !turned ? batch : 0, most, wide),
        right(c, dtype, vectors && !turned ? batch : 0, k, k);
    Infos infos(c, batch, nullptr);
    if (infos.status || !left.good || !right.good)
        return infos.status ? infos.status : PT_MEMORY_ERROR;
    status = a.load(c, x, turned);
    if (!status) status = infos.leave_out(c, dtype, a.data, a.step);
    if (status) return status;
    const signed char job = !vectors ? 'N' : full ? 'A' : 'S';
    char *const first = !vectors ? nullptr : turned ? vh.data : left.data;
    char *const second = !vectors ? nullptr : turned ? u.data : right.data;
    status = with_solver(
        c,
        [&](const SolverHandle &s, size_t *on_device, size_t *on_host) {
            return solver.gesvd_size(s.handle, s.params, job, job, most, k, type, a.data, most,
                                     type_s, c->out[1].data, type, first, most, type, second, k,
                                     type, on_device, on_host);
        },
        [&](const SolverHandle &s, const Workspace &w) {
            int bad = 0;
            for (int64_t b = 0; !bad && b < batch; b++)
                bad =
                    solver.gesvd(s.handle, s.params, job, job, most, k, type, a.at(b), most, type_s,
                                 behind(c->out[1].data, b * k, real), type,
                                 vectors ? behind(first, b * most * wide, dtype) : nullptr, most,
                                 type, vectors ? behind(second, b * k * k, dtype) : nullptr, k,
                                 type, w.device, w.on_device, w.host, w.on_host, infos.data() + b);
            return bad;
        });
    if (!status && vectors && !turned) status = left.store(c, u);
    if (!status && vectors && !turned) status = right.store(c, vh);
    return status ? status : infos.report(c, NO_SINGULAR_VALUES);
}

// -- eigenvalues ----------------------------------------------------------------------------------

int eigh(pt_call *c) {
    const pt_view &x = c->in[0];
    if (int status = check_matrices(c, true)) return status;
    const int64_t n = last_size(x), batch = matrices_of(x);
    const int dtype = x.dtype, real = real_dtype(dtype), type = solver_type(dtype),
              type_l = solver_type(real);
    const int triangle = c->params[0].i ? UPLO_LOWER : UPLO_UPPER, vectors = c->params[1].i != 0;
    if (batch * n == 0) return PT_OK;
    Columns a(c, dtype, batch, n, n);
    Infos infos(c, batch, nullptr);
    char *const values = c->out[0].data;
    if (infos.status) return infos.status;
    int status = a.load(c, x);
    // The other triangle may hold anything; columns are rows of the transpose.
    if (!status) status = keep_triangle(c, dtype, a.data, batch, n, n, triangle != UPLO_LOWER);
    if (!status) status = infos.leave_out(c, dtype, a.data, a.step);
    if (status) return status;
    // Small matrices go many at once, with fewer than 2**31 elements in all.
    const int64_t most = batch > 1 && n <= BATCHED_ORDER ? INT32_MAX / (n * n) : 1,
                  each = batch < most ? batch : most;
    status = with_solver(
        c,
        [&](const SolverHandle &s, size_t *on_device, size_t *on_host) {
            return each > 1
                       ? solver.syev_batched_size(s.handle, s.params, vectors, triangle, n, type,
                                                  a.data, n, type_l, values, type, on_device,
                                                  on_host, each)
                       : solver.syevd_size(s.handle, s.params, vectors, triangle, n, type, a.data,
                                           n, type_l, values, type, on_device, on_host);
        },
        [&](const SolverHandle &s, const Workspace &w) {
            int bad = 0;
            for (int64_t b = 0; !bad && b < batch; b += each) {
                char *const l = behind(values, b * n, real);
                const int64_t count = batch - b < each ? batch - b : each;
                bad = each > 1
                          ? solver.syev_batched(s.handle, s.params, vectors, triangle, n, type,
                                                a.at(b), n, type_l, l, type, w.device, w.on_device,
                                                w.host, w.on_host, infos.data() + b, count)
                          : solver.syevd(s.handle, s.params, vectors, triangle, n, type, a.at(b), n,
                                         type_l, l, type, w.device, w.on_device, w.host, w.on_host,
                                         infos.data() + b);
            }
            return bad;
        });
    if (!status && vectors) status = a.store(c, c->out[1]);
    return status ? status : infos.report(c, NO_EIGENVALUES);
}

int eig(pt_call *c) {
    const pt_view &x = c->in[0], &values = c->out[0];
    if (int status = check_matrices(c, true)) return status;
    const int64_t n = last_size(x), batch = matrices_of(x);
    const int dtype = x.dtype, type = solver_type(dtype), type_l = solver_type(values.dtype),
              vectors = c->params[0].i != 0;
    if (batch * n == 0) return PT_OK;
    Columns a(c, dtype, batch, n, n), right(c, dtype, vectors ? batch : 0, n, n);
    Infos infos(c, batch, nullptr);
    if (infos.status || !right.good) return infos.status ? infos.status : PT_MEMORY_ERROR;
    int status = a.load(c, x);
    if (!status) status = infos.leave_out(c, dtype, a.data, a.step);
    if (status) return status;
    status = with_solver(
        c,
        [&](const SolverHandle &s, size_t *on_device, size_t *on_host) {
            return solver.geev_size(s.handle, s.params, 0, vectors, n, type, a.data, n, type_l,
                                    values.data, type, nullptr, n, type, right.data, n, type,
                                    on_device, on_host);
        },
        [&](const SolverHandle &s, const Workspace &w) {
            int bad = 0;
            for (int64_t b = 0; !bad && b < batch; b++)
                bad = solver.geev(s.handle, s.params, 0, vectors, n, type, a.at(b), n, type_l,
                                  behind(values.data, b * n, values.dtype), type, nullptr, n, type,
                                  vectors ? right.at(b) : nullptr, n, type, w.device, w.on_device,
                                  w.host, w.on_host, infos.data() + b);
            return bad;
        });
    if (!status && vectors && dtype == values.dtype) status = right.store(c, c->out[1]);
    else if (!status && vectors) {
        VectorArgs args = {};
        args.packed = right.data, args.values = values.data, args.out = c->out[1].data;
        args.n = batch * n * n, args.order = divisor(n);
        status =
            launch(c, VECTORS, types(dtype), blocks_for(c, args.n, THREADS, 32), THREADS, args);
    }
    return status ? status : infos.report(c, NO_EIGENVALUES);
}

// -- LDL ------------------------------------------------------------------------------------------

// cuSOLVER's LDL factors matrices that equal their transpose, not Hermitian ones.
int check_symmetric(pt_call *c, bool hermitian) {
    const int dtype = c->in[0].dtype;
    if (hermitian && (dtype == PT_COMPLEX64 || dtype == PT_COMPLEX128))
        return failed(c, PT_RUNTIME_ERROR,
                      "hermitian=True for complex matrices is not implemented on CUDA devices: "
                      "cuSOLVER factors "
                      "those that equal their transpose");
    return PT_OK;
}

int ldl(pt_call *c) {
    const pt_view &x = c->in[0], &out = c->out[0];
    if (int status = check_matrices(c, true)) return status;
    if (int status = check_symmetric(c, c->params[0].i != 0)) return status;
    const int64_t order = last_size(x), batch = matrices_of(x);
    const int dtype = x.dtype, which = type_number(dtype), n = (int)order;
    Infos infos(c, batch, &c->out[2]);
    if (infos.status || batch * n == 0) return infos.status;
    Columns a(c, dtype, batch, order, order);
    int status = a.load(c, x);
    if (status) return status;
    int *const pivots = reinterpret_cast<int *>(c->out[1].data);
    status = with_elements(c, dtype, [&](const SolverHandle &s, int *size) {
        return solver.sytrf_size[which](s.handle, n, a.data, n, size);
    }, [&](const SolverHandle &s, void *work, int size) {
        int bad = 0;
        for (int64_t b = 0; !bad && b < batch; b++)
            bad = solver.sytrf[which](s.handle, UPLO_LOWER, n, a.at(b), n, pivots + b * order, work,
                                      size, infos.data() + b);
        return bad;
    });
    if (!status) status = a.store(c, out);
    if (!status) status = keep_triangle(c, dtype, out.data, batch, order, order, true);
    return status || !c->params[1].i ? status : infos.report(c, SINGULAR_D);
}

int ldl_solve(pt_call *c) {
    const pt_view &x = c->in[0], &p = c->in[1], &right = c->in[2], &out = c->out[0];
    if (int status = check_factors(c)) return status;
    if (int status = check_symmetric(c, c->params[0].i != 0)) return status;
    const int64_t n = last_size(x), k = last_size(right), batch = matrices_of(x);
    const int dtype = x.dtype, type = solver_type(dtype);
    if (batch * n * k == 0) return PT_OK;
    Columns a(c, dtype, batch, n, n), b(c, dtype, batch, n, k);
    const Scratch pivots(c, 8 * batch * n);
    const Contiguous given(c, p);
    const Infos infos(c, 1, nullptr);           // reports wrong arguments only
    if (!pivots.data || !given.ok() || infos.status) return PT_MEMORY_ERROR;
    int64_t *const at = static_cast<int64_t *>(pivots.data);
    PivotArgs args = {};
    args.in = reinterpret_cast<const int32_t *>(given.view.data), args.out = at, args.n = batch,
    args.length = n, args.rows = divisor(n);
    args.fault = fault_of(c), args.op = c->op;
    int status = launch(c, BLOCKS, types(dtype), blocks_for(c, batch, THREADS, 32), THREADS, args);
    if (!status) status = a.load(c, x);
    if (!status) status = b.load(c, right);
    if (status) return status;
    status = with_solver(
        c,
        [&](const SolverHandle &s, size_t *on_device, size_t *on_host) {
            return solver.sytrs_size(s.handle, UPLO_LOWER, n, k, type, a.data, n, at, type, b.data,
                                     n, on_device, on_host);
        },
        [&](const SolverHandle &s, const Workspace &w) {
            int bad = 0;
            for (int64_t i = 0; !bad && i < batch; i++)
                bad = solver.sytrs(s.handle, UPLO_LOWER, n, k, type, a.at(i), n, at + i * n, type,
                                   b.at(i), n, w.device, w.on_device, w.host, w.on_host,
                                   infos.data());
            return bad;
        });
    return status ? status : b.store(c, out);
}

}  // namespace

const pt_kernel_entry decompose_kernels[] = {
    {"qr", qr},   {"geqrf", geqrf},         {"householder", householder},
    {"svd", svd}, {"eigh", eigh},           {"eig", eig},
    {"ldl", ldl}, {"ldl_solve", ldl_solve}, {nullptr, nullptr},
};

}  // namespace pt_cuda
