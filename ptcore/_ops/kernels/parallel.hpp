/* Splitting work over threads: the one thread pool of the package.
 *
 * [0, n) is cut into ranges whose ends are multiples of grain (and n). The ends depend on n and
 * grain only, even if one thread does all ranges: what a body computes per range does not depend on
 * the thread count. Any thread may take any range; each is done once.
 *
 * A caller never waits for the pool: if the pool is busy, or the caller itself runs in a range of a
 * parallel loop, the ranges run one after the other. Bodies must not throw.
 */
#ifndef PTCORE_PARALLEL_HPP
#define PTCORE_PARALLEL_HPP
#include <stdint.h>

extern "C" {

void pt_parallel_for(int64_t n, int64_t grain, void (*body)(void *ctx, int64_t begin, int64_t end),
                     void *ctx);
int pt_get_num_threads(void);
/* Clamped to [1, 1024]. */
void pt_set_num_threads(int n);
int pt_set_flush_denormal(int on);
/* 1 inside a range that runs on the pool. */
int pt_in_parallel(void);

}

namespace pt { namespace {

template<class F> inline void parallel_for(int64_t n, int64_t grain, F &&f) {
    struct call {
        static void body(void *ctx, int64_t begin, int64_t end) noexcept {
            (*static_cast<F *>(ctx))(begin, end);
        }
    };
    pt_parallel_for(n, grain, call::body, const_cast<void *>(static_cast<const void *>(&f)));
}

}}  /* namespace pt, unnamed */
#endif
