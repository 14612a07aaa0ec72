// The one table of BLAS and LAPACK pointers, which blas.pyx fills, and the count of regions that
// keep the BLAS on one thread. Compiled once, not per ISA level.
#include "ptcore/blas.h"

#include <atomic>
#include <chrono>
#include <thread>
#ifndef _WIN32
#include <pthread.h>
#endif

extern "C" {
pt_blas_table pt_blas = {};
}

namespace {
std::atomic_flag lock = ATOMIC_FLAG_INIT;   // guards the next two numbers
int regions = 0, users_threads = 0;
std::atomic<bool> forking{false};           // during a fork, threads outside a region wait
thread_local int depth = 0;                 // nested regions of this thread

#ifndef _WIN32
/* The child inherits the BLAS's locks in their present state, and has no thread to release them: so
 * no thread may be inside the BLAS. The BLAS's own fork handler stops its threads before or after
 * this one; the end of a region must not start them in between. Every BLAS call lies in a region,
 * which a thread enters before it takes the pool; no region begins inside a parallel loop. */
void before_fork() {
    forking = true;
    const auto end = std::chrono::steady_clock::now() +
                     std::chrono::seconds(60);   // give up then: a child that may hang is better
    for (;;) {
        while (lock.test_and_set(std::memory_order_acquire)) std::this_thread::yield();
        if (regions <= depth || std::chrono::steady_clock::now() > end) return;    // keeps the lock
        lock.clear(std::memory_order_release);
        std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
}

void after_fork() {
    lock.clear(std::memory_order_release);
    forking = false;
}
#endif
}

extern "C" void pt_blas_set_threads(int (*get)(void), void (*set)(int)) {
    pt_blas.get_threads = get;
    pt_blas.set_threads = set;
#ifndef _WIN32
    pthread_atfork(before_fork, after_fork, after_fork);
#endif
}

extern "C" void pt_blas_one_thread(int by) {
    if (!pt_blas.get_threads || !pt_blas.set_threads) return;
    while (by > 0 && depth == 0 && forking) std::this_thread::yield();
    depth += by;
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
    if (regions && !depth && users_threads != 1) pt_blas.set_threads(users_threads);
    regions = depth;                    // the child has only the thread that forked
}
