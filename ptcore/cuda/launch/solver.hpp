// cuSOLVER as a table of pointers, and what the ops of linear algebra share: handles, workspaces of
// routines, matrices by columns, reports of matrices that failed. Statuses are cusolverStatus_t;
// data types have CUDA's numbers (cublas.hpp).
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "cublas.hpp"
#include "view.hpp"

namespace pt_cuda {

// Sizes are in bytes, except those of type int: these are in elements, in the functions for float,
// double and their complex types.
struct Solver {
#define PT_SOLVER(field, result, name, parameters) result (*field) parameters;
#define PT_SOLVER4(field, s, d, c, z, parameters) int (*field[4]) parameters;
#include "functions.h"
};
extern Solver solver;

enum { UPLO_LOWER = 0, UPLO_UPPER = 1, OP_AS_IT_IS = 0, OP_TURNED = 1, SIDE_RIGHT = 1 };
// Batches of matrices up to this order go to one routine for the whole batch; for singular values
// it is cuSOLVER's limit.
enum { BATCHED_ORDER = 64, JACOBI_ORDER = 32 };

// Of one of the four dtypes: the place among typed functions, CUDA's number, and the dtype of the
// real numbers.
inline int type_number(int dtype) {
    return dtype == PT_FLOAT32 ? 0 : dtype == PT_FLOAT64 ? 1 : dtype == PT_COMPLEX64 ? 2 : 3;
}
inline int solver_type(int dtype) {
    static const int of[] = {R_32F, R_64F, C_32F, C_64F};
    return of[type_number(dtype)];
}
inline int real_dtype(int dtype) {
    return dtype == PT_COMPLEX64 ? PT_FLOAT32 : dtype == PT_COMPLEX128 ? PT_FLOAT64 : dtype;
}

inline int64_t last_size(const pt_view &v, int back = 1) { return v.sizes[v.ndim - back]; }
inline int64_t matrices_of(const pt_view &v) {
    int64_t n = 1;
    for (int d = 0; d < v.ndim - 2; d++) n *= v.sizes[d];
    return n;
}

// Whether the call's first input is made of matrices of one of the four dtypes, square ones if
// `square`.
int check_matrices(pt_call *c, bool square);
// Whether the inputs are square factors, int32 pivots and matrices to solve for, of one batch and
// dtype.
int check_factors(pt_call *c);

// The workspace of a routine, on the device and on the host (plain memory there).
class Workspace {
public:
    Workspace(pt_call *c, size_t on_device, size_t on_host)
        : on_device(on_device), on_host(on_host), scratch(c, (int64_t)on_device),
          device(scratch.data), host(on_host ? std::malloc(on_host) : nullptr),
          good((!on_device || device) && (!on_host || host)) {
        if (on_host && !host)
            failed(c, PT_MEMORY_ERROR, "no host memory for a routine of cuSOLVER");
    }
    ~Workspace() { std::free(host); }
    Workspace(const Workspace &) = delete;
    Workspace &operator=(const Workspace &) = delete;
    const size_t on_device, on_host;
private:
    Scratch scratch;
public:
    void *const device, *const host;
    const bool good;
};

// This thread's handle for the call's device, set to its stream. A pt_status with a text.
struct SolverHandle {
    void *handle = nullptr, *params = nullptr, *jacobi = nullptr, *stream = nullptr;
};
int solver_handle(pt_call *c, SolverHandle *s);
int solver_failed(pt_call *c, int status);

// Calls size(handle, &on_device, &on_host), then run(handle, workspace). Both return cuSOLVER's
// statuses.
template <class Size, class Run> int with_solver(pt_call *c, Size size, Run run) {
    SolverHandle s;
    int status = solver_handle(c, &s);
    if (status) return status;
    size_t on_device = 0, on_host = 0;
    status = size(s, &on_device, &on_host);
    if (status) return solver_failed(c, status);
    const Workspace w(c, on_device, on_host);
    if (!w.good) return PT_MEMORY_ERROR;
    status = run(s, w);
    return status ? solver_failed(c, status) : wait_if_blocking(c, "linalg");
}
inline int no_room(const SolverHandle &, size_t *, size_t *) { return 0; }
// The same for a function that counts its workspace in elements.
template <class Size, class Run> int with_elements(pt_call *c, int dtype, Size size, Run run) {
    int count = 0;
    return with_solver(c, [&](const SolverHandle &s, size_t *on_device, size_t *) {
        const int status = size(s, &count);
        *on_device = (size_t)count * (size_t)item_size(dtype);
        return status;
    }, [&](const SolverHandle &s, const Workspace &w) { return run(s, w.device, count); });
}

// A batch of matrices by columns, one after the other, in scratch memory.
class Columns {
public:
    Columns(pt_call *c, int dtype, int64_t batch, int64_t rows, int64_t columns)
        : rows(rows), step(rows * columns), batch(batch), dtype(dtype),
          scratch(c, batch * rows * columns * item_size(dtype)),
          data(static_cast<char *>(scratch.data)), good(batch * rows * columns == 0 || data) {}
    char *at(int64_t b) const { return data + b * step * item_size(dtype); }
    // A view of the first rows and columns, as many as `like` has; `turned`: of the transposes.
    View as(const pt_view &like, bool turned = false) const {
        View v(like);
        const int n = v.v.ndim;
        v.strides[n - 2] = turned ? rows : 1, v.strides[n - 1] = turned ? 1 : rows;
        int64_t next = step;
        for (int d = n - 3; d >= 0; d--) v.strides[d] = next, next *= v.sizes[d];
        v.v.data = data;
        v.settle();
        return v;
    }
    int load(pt_call *c, const pt_view &from, bool turned = false) {
        if (!good) return PT_MEMORY_ERROR;
        const View v = as(from, turned);
        return copy(c, &v.v, &from);
    }
    int store(pt_call *c, const pt_view &to, bool turned = false) const {
        const View v = as(to, turned);
        return copy(c, &to, &v.v);
    }
    const int64_t rows, step, batch;
    const int dtype;
private:
    Scratch scratch;
public:
    char *const data;
    const bool good;
};

// Addresses of equally distant matrices, in device memory.
class Addresses {
public:
    Addresses(pt_call *c, const void *first, int64_t bytes, int64_t n);
    void *const *data() const { return static_cast<void *const *>(scratch.data); }
    int status;
private:
    Scratch scratch;
};

// What went wrong with each matrix, zeros at first: in an output of the call, or in scratch memory.
class Infos {
public:
    Infos(pt_call *c, int64_t batch, const pt_view *output);
    // Waits for the device; returns the error of the first matrix that failed. `what` tells what a
    // positive number means.
    int report(pt_call *c, const char *what) const;
    // Marks matrices of `per` elements that are not finite, and fills them with zeros, because
    // routines might not end. Only without an output.
    int leave_out(pt_call *c, int dtype, char *matrices, int64_t per);
    int *data() const { return at; }
    int status;
private:
    int64_t batch;
    bool marked = false;
    Scratch scratch;
    int *at;
};

// Copies from the device to the host and waits.
int read_back(pt_call *c, void *to, const void *from, int64_t nbytes);

// In place: fills dense row-major matrices with zeros except one triangle. With infos, the number
// of the first NaN on a diagonal becomes the matrix's info.
int keep_triangle(pt_call *c, int dtype, void *data, int64_t batch, int64_t rows, int64_t columns,
                  bool lower, int *infos = nullptr);
// Conjugates dense complex numbers in place; does nothing with real numbers.
int conjugate(pt_call *c, int dtype, void *data, int64_t n);
// The first columns of identity matrices, dense.
int fill_identity(pt_call *c, int dtype, void *data, int64_t batch, int64_t rows, int64_t columns);

}  // namespace pt_cuda
