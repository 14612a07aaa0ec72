// Handles of libraries, for calls that a program makes itself.
#include "cublas.hpp"
#include "driver.hpp"
#include "libraries.hpp"
#include "solver.hpp"

namespace pt_cuda {

int current_handle(int library, int device, void **handle, char *error) {
    pt_view out = {};
    out.device_index = (uint8_t)device;
    pt_call c = {};
    c.out = &out, c.nout = 1;
    c.stream = driver.stream(device);
    SolverHandle solver_of;
    int status;
    if (library == LIBRARY_BLAS) {
        status = blas_handle(&c, 0, handle);
    } else {
        status = solver_handle(&c, &solver_of);
        *handle = solver_of.handle;
    }
    if (status) std::snprintf(error, sizeof(c.error), "%s", c.error);
    return status;
}

}  // namespace pt_cuda
