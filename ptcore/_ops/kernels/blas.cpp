// The one table of BLAS pointers; _blas.pyx fills it at the first large product.
#include "ptcore/blas.h"

extern "C" pt_blas_table pt_blas = {};
