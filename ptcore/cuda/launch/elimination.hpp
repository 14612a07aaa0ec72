// Elimination by rows, for other host halves.
#pragma once
#include "solver.hpp"

namespace pt_cuda {

// The pivots of elimination: the rows that were swapped.
struct Pivots {
    Pivots(pt_call *c, int64_t batch, int64_t rows, int64_t columns);
    // Small square matrices go to cuBLAS, all of a batch at once; its pivots have 32 bits.
    const bool batched;
    Scratch scratch;
    int64_t *wide() const { return static_cast<int64_t *>(scratch.data); }
    int *narrow() const { return static_cast<int *>(scratch.data); }
};

// Factors dense matrices by columns in place: A = P L U. If not `swaps`, A = L U, and the pivots
// are left as they are.
int factor(pt_call *c, int dtype, char *a, int64_t batch, int64_t rows, int64_t columns,
           const Pivots &pivots, int *infos, bool swaps = true);
// B becomes X of A X = B, or of A^T X = B if turned; the matrices are by columns.
int solve_factored(pt_call *c, int dtype, const char *a, int64_t batch, int64_t order,
                   const Pivots &pivots, bool turned, char *b, int64_t columns);

}  // namespace pt_cuda
