// The libraries of CUDA, each a table of pointers, which library_tables.pyx fills from the
// libraries that cuda.pathfinder finds.
#pragma once

namespace pt_cuda {

enum { LIBRARY_BLAS, LIBRARY_BLAS_LT, LIBRARY_FFT, LIBRARY_SOLVER, LIBRARY_DNN, LIBRARIES };

struct Library {
    const char *name;                   // as cuda.pathfinder calls it
    void **table;                       // struct Blas and the others
    const char *const *functions;       // the library's names of the table's functions
    int count;
};
extern const Library libraries[LIBRARIES];
// Fills a table. It takes the GIL, so the caller must hold no lock. A pt_status with a text in
// error[256].
extern int (*load_library)(int library, char *error);

// This thread's handle of LIBRARY_BLAS or LIBRARY_SOLVER for a device, set to its current stream: a
// pt_status with a text in error[256].
int current_handle(int library, int device, void **handle, char *error);

}  // namespace pt_cuda
