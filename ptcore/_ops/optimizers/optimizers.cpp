// Fused steps of optimizers. Beyond plain arithmetic they need only sqrt and division, which
// vectorise at the base level; large parameters are limited by memory, so one ISA level is enough.
#include "optimizers.h"

#include <atomic>
#include <cstdlib>

#include "parallel.hpp"
#include "steps.h"

namespace {

constexpr int64_t GRAIN = 32768;

template <template <class> class S, class T> void run(char *const *operands, int64_t n,
                                                      const double *numbers) {
    constexpr int written = S<T>::written;
    struct Work {
        S<T> step;
        T *at[written + 1];
    } work;
    for (int k = 0; k < S<T>::shared + S<T>::own; k++) work.step.number[k] = T(numbers[k]);
    for (int k = 0; k <= written; k++) work.at[k] = reinterpret_cast<T *>(operands[k]);
    pt::parallel_for(n, GRAIN, [=](int64_t begin, int64_t end) {
        const Work w =
            work;    // in registers: `work` itself may alias an operand for the compiler
        PT_IVDEP
        for (int64_t i = begin; i < end; i++) {
            T x[written + 1];
            for (int k = 0; k <= written; k++) x[k] = w.at[k][i];
            w.step.apply(x);
            for (int k = 0; k < written; k++) w.at[k][i] = x[k];
        }
    });
}

template <template <class> class S> constexpr pt_step row(const char *name) {
    typedef S<double> D;
    static_assert(D::written < PT_STEP_ROOM && D::options <= PT_STEP_ROOM &&
                      D::counters <= PT_STEP_ROOM && D::shared + D::own <= PT_STEP_ROOM,
                  "what its caller has room for");
    return {name,   D::written,    D::options,    D::counters,   D::shared,
            D::own, D::numbers_of, run<S, float>, run<S, double>};
}

#define ROW(NAME) row<pt::NAME##_step>(#NAME),
const pt_step STEPS[] = {PT_STEPS(ROW)};

template <class T> int unscale(T *x, int64_t n, T factor) {
    std::atomic<int> finite{1};
    pt::parallel_for(n, GRAIN, [=, &finite](int64_t begin, int64_t end) {
        T bad = 0;                          /* x * 0 is 0 for finite x; bad becomes NaN otherwise */
        PT_IVDEP
        for (int64_t i = begin; i < end; i++) {
            bad += x[i] * 0;
            x[i] *= factor;
        }
        if (bad != 0) finite = 0;
    });
    return finite;
}

struct Range {
    uintptr_t begin, end;
};
int by_begin(const void *x, const void *y) {
    const uintptr_t a = static_cast<const Range *>(x)->begin,
                    b = static_cast<const Range *>(y)->begin;
    return a < b ? -1 : a > b;
}

}  // namespace

extern "C" const pt_step *pt_step_at(int k) {
    return k >= 0 && k < (int)(sizeof(STEPS) / sizeof(STEPS[0])) ? &STEPS[k] : nullptr;
}

extern "C" int pt_unscale_f32(float *x, int64_t n, float factor) { return unscale(x, n, factor); }
extern "C" int pt_unscale_f64(double *x, int64_t n, double factor) { return unscale(x, n, factor); }

extern "C" int pt_disjoint(const pt_view *views, int64_t n, int64_t item) {
    Range *ranges = static_cast<Range *>(malloc((size_t)n * sizeof(Range)));
    if (!ranges) return 0;
    for (int64_t i = 0; i < n; i++) {
        ranges[i].begin = (uintptr_t)views[i].data;
        ranges[i].end = ranges[i].begin + (uintptr_t)(views[i].numel * item);
    }
    qsort(ranges, (size_t)n, sizeof(Range), by_begin);
    int64_t i = 1;
    while (i < n && ranges[i].begin >= ranges[i - 1].end) i++;
    free(ranges);
    return i >= n;
}
