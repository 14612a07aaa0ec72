// cuSOLVER's handles, and what ops of linear algebra have in common; the ops are in elimination.cpp
// and decompose.cpp.
#include "solver.hpp"

#include <memory>
#include <new>

#include "../../_ops/linalg/infos.hpp"
#include "divisor.hpp"
#include "driver.hpp"
#include "handles.hpp"
#include "libraries.hpp"
#include "solver_args.h"

namespace pt_cuda {

Solver solver;

namespace {

enum { THREADS = 256 };
const Kernel ADDRESSES = {"solver", "solver_addresses"}, TRIANGLE = {"solver", "solver_triangle"},
             IDENTITY = {"solver", "solver_identity"}, MARK = {"solver", "solver_mark"},
             CONJUGATE = {"solver", "solver_conjugate"}, ZERO = {"solver", "solver_zero"};

thread_local Handles<SolverHandle> handles;

int on_matrices(pt_call *c, const Kernel &kernel, int dtype, const MatrixArgs &a) {
    return a.n ? launch(c, kernel, types(dtype), blocks_for(c, a.n, THREADS, 32), THREADS, a)
               : PT_OK;
}

}  // namespace

int solver_failed(pt_call *c, int status) {
    static const char *const names[] = {"success",
                                        "not initialized",
                                        "allocation failed",
                                        "invalid value",
                                        "architecture mismatch",
                                        "mapping error",
                                        "execution failed",
                                        "internal error",
                                        "matrix type not supported",
                                        "not supported",
                                        "zero pivot",
                                        "invalid license"};
    std::snprintf(c->error, sizeof(c->error), "cuSOLVER: %s (status %d)", status > 0 &&
                  status < 12 ? names[status] : "failed", status);
    return PT_RUNTIME_ERROR;
}

int solver_handle(pt_call *c, SolverHandle *found) {
    const int device = device_of(c);
    if (!solver.sytrf[3]) {                     // the last pointer of the table
        const int status = load_library(LIBRARY_SOLVER, c->error);
        if (status) return status;
    }
    const int result = driver.set_device(device);
    if (result) return status_of(result, "linalg", c->error);
    SolverHandle &h = handles.at(device);
    int status = 0;
    if (!h.handle) {
        Relaxed mode;
        SolverHandle made;
        status = solver.create_params(&made.params);
        if (!status) status = solver.create_jacobi(&made.jacobi);
        if (!status) status = solver.create(&made.handle);
        if (status) return solver_failed(c, status);
        h = made;
    }
    if (h.stream != c->stream) {
        status = solver.set_stream(h.handle, c->stream);
        h.stream = status ? nullptr : c->stream;
    }
    *found = h;
    return status ? solver_failed(c, status) : PT_OK;
}

int check_matrices(pt_call *c, bool square) {
    const pt_view &x = c->in[0];
    if (x.ndim < 2) return failed(c, PT_RUNTIME_ERROR, "expected a matrix or a batch of them");
    if (square && last_size(x) != last_size(x, 2))
        return failed(c, PT_RUNTIME_ERROR, "expected square matrices");
    const bool known = x.dtype == PT_FLOAT32 || x.dtype == PT_FLOAT64 || x.dtype == PT_COMPLEX64 ||
                       x.dtype == PT_COMPLEX128;
    if (!known)
        return failed(c, PT_RUNTIME_ERROR,
                      "expected matrices of float32, float64, complex64 or complex128");
    // Some routines have sizes and workspaces of 32 bits.
    if (last_size(x) > INT32_MAX / 16 || last_size(x, 2) > INT32_MAX / 16)
        return failed(c, PT_RUNTIME_ERROR, "a matrix is too large for cuSOLVER");
    return PT_OK;
}

int check_factors(pt_call *c) {
    const pt_view &x = c->in[0], &p = c->in[1], &b = c->in[2];
    if (int status = check_matrices(c, true)) return status;
    bool fits = p.ndim == x.ndim - 1 && b.ndim == x.ndim && last_size(b, 2) == last_size(x) &&
                p.dtype == PT_INT32 && b.dtype == x.dtype;
    for (int d = 0; fits && d < x.ndim - 1; d++)
        fits = p.sizes[d] == x.sizes[d] && (d == x.ndim - 2 || b.sizes[d] == x.sizes[d]);
    return fits
               ? PT_OK
               : failed(
                     c, PT_RUNTIME_ERROR,
                     "expected factors, int32 pivots and matrices of one batch and dtype that fit");
}

Addresses::Addresses(pt_call *c, const void *first, int64_t bytes, int64_t n)
    : scratch(c, n * (int64_t)sizeof(void *)) {
    const AddressArgs a = {static_cast<char **>(scratch.data),
                           static_cast<char *>(const_cast<void *>(first)), bytes, n};
    status = !scratch.data
                 ? PT_MEMORY_ERROR
                 : launch(c, ADDRESSES, types(PT_FLOAT32), blocks_for(c, n, THREADS), THREADS, a);
}

Infos::Infos(pt_call *c, int64_t batch, const pt_view *output)
    : batch(batch), scratch(c, output ? 0 : 8 * batch), at(static_cast<int *>(scratch.data)) {
    if (output) at = reinterpret_cast<int *>(output->data);
    status = batch && !at ? PT_MEMORY_ERROR : clear(c, at, (output ? 4 : 8) * batch);
}

int Infos::leave_out(pt_call *c, int dtype, char *matrices, int64_t per) {
    marked = true;
    MatrixArgs a = {};
    a.data = matrices, a.n = batch * per, a.per = divisor(per), a.infos = at + batch;
    const int status = on_matrices(c, MARK, dtype, a);
    return status ? status : on_matrices(c, ZERO, dtype, a);
}

int read_back(pt_call *c, void *to, const void *from, int64_t nbytes) {
    const char *const why = "what was found is looked at, which waits for the device and cannot "
                            "become part of a CUDA graph";
    if (int status = waits(c, why)) return status;
    int result = driver.set_device(device_of(c));
    if (!result) result = driver.copy(to, from, (size_t)nbytes, c->stream);
    if (!result) result = driver.synchronize(c->stream);
    const int status = status_of(result, "linalg", c->error);
    return status ? status : take_fault(device_of(c), c->error);
}

int Infos::report(pt_call *c, const char *what) const {
    const int64_t count = marked ? 2 * batch : batch;
    const std::unique_ptr<int[]> found(new (std::nothrow) int[(size_t)count]);
    if (!found)
        return failed(c, PT_MEMORY_ERROR, "no host memory for what was found of each matrix");
    int status = read_back(c, found.get(), at, 4 * count);
    for (int64_t b = 0; !status && b < batch; b++) {
        const int info = marked && found[(size_t)(batch + b)] ? (int)NOT_FINITE : found[(size_t)b];
        if (info) status = matrix_failed(c, b, info, what, "cuSOLVER");
    }
    return status;
}

int keep_triangle(pt_call *c, int dtype, void *data, int64_t batch, int64_t rows, int64_t columns,
                  bool lower, int *infos) {
    MatrixArgs a = {};
    a.data = static_cast<char *>(data), a.n = batch * rows * columns, a.rows = divisor(rows),
    a.columns = divisor(columns);
    a.lower = lower, a.infos = infos;
    return on_matrices(c, TRIANGLE, dtype, a);
}

int conjugate(pt_call *c, int dtype, void *data, int64_t n) {
    MatrixArgs a = {};
    a.data = static_cast<char *>(data), a.n = n;
    return real_dtype(dtype) == dtype ? PT_OK : on_matrices(c, CONJUGATE, dtype, a);
}

int fill_identity(pt_call *c, int dtype, void *data, int64_t batch, int64_t rows, int64_t columns) {
    MatrixArgs a = {};
    a.data = static_cast<char *>(data), a.n = batch * rows * columns, a.rows = divisor(rows),
    a.columns = divisor(columns);
    return on_matrices(c, IDENTITY, dtype, a);
}

}  // namespace pt_cuda
