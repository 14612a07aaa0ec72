// The one table of BLAS and LAPACK pointers, which _blas.pyx fills, and the count of the regions that
// keep the BLAS on one thread. Compiled once, not per ISA level.
#include "ptcore/blas.h"

#include <atomic>

extern "C" {
pt_blas_table pt_blas = {};
}

namespace {
std::atomic_flag lock = ATOMIC_FLAG_INIT;   // guards the two numbers
int regions = 0, users_threads = 0;
}

extern "C" void pt_blas_one_thread(int by) {
    if (!pt_blas.get_threads || !pt_blas.set_threads) return;
    while (lock.test_and_set(std::memory_order_acquire)) {}
    regions += by;
    if (by > 0 && regions == 1) {
        users_threads = pt_blas.get_threads();
        if (users_threads != 1) pt_blas.set_threads(1);
    }
    if (by < 0 && regions == 0 && users_threads != 1) pt_blas.set_threads(users_threads);
    lock.clear(std::memory_order_release);
}

extern "C" void pt_blas_forked(void) {
    lock.clear();
    if (regions && users_threads != 1) pt_blas.set_threads(users_threads);
    regions = 0;
}
