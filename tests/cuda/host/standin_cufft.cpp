// A stand-in for libcufft: transforms by their definition, in double, queued on the stand-in
// driver's streams.
//
// What cuFFT demands and would not say is asked for: a stream and a work area of the plan's size,
// addresses that are aligned to complex numbers. The work area is overwritten, and so is what a
// transform to real numbers reads.
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstring>
#include <dlfcn.h>
#include <map>
#include <mutex>
#include <vector>

#include "refused.hpp"

#define API extern "C" __attribute__((visibility("default")))

namespace {

enum {
    SUCCESS = 0,
    INVALID_PLAN = 1,
    ALLOCATION_FAILED = 2,
    INVALID_VALUE = 4,
    EXEC_FAILED = 6,
    SETUP_FAILED = 7,
    INVALID_SIZE = 8,
    UNALIGNED = 9,
    NO_WORKSPACE = 13,
    NOT_SUPPORTED = 16
};
enum { R_32F = 0, R_64F = 1, C_32F = 4, C_64F = 5 };
typedef std::complex<double> Z;
typedef int (*Enqueue)(void *stream, const char *name, void (*f)(void *), void *argument,
                       void (*release)(void *));

struct Plan {
    bool automatic = true, made = false;
    int in = 0, out = 0;
    std::vector<int64_t> n;
    int64_t batch = 0;
    size_t work = 0;
    void *stream = nullptr, *area = nullptr;
    bool complex_in() const { return in >= C_32F; }
    bool complex_out() const { return out >= C_32F; }
    bool wide() const { return in == R_64F || in == C_64F; }
    int64_t whole() const { int64_t t = 1; for (int64_t k : n) t *= k; return t; }
    int64_t half() const { return whole() / n.back() * (n.back() / 2 + 1); }
};
std::mutex lock;
std::map<int, Plan> &plans() {
    static std::map<int, Plan> &p = *new std::map<int, Plan>;
    return p;
}
int next_plan, made_plans;

Plan *plan_of(int handle) {
    auto found = plans().find(handle);
    return found == plans().end() ? nullptr : &found->second;
}

struct Queued {
    Plan plan;
    void *in, *out;
    int sign;
};

// Along one dim of `x`, whose sizes are `n`.
void along(std::vector<Z> &x, const std::vector<int64_t> &n, size_t dim, int sign) {
    const int64_t size = n[dim];
    int64_t inner = 1;
    for (size_t d = dim + 1; d < n.size(); d++) inner *= n[d];
    std::vector<Z> turns((size_t)size), line((size_t)size);
    for (int64_t k = 0; k < size; k++)
        turns[(size_t)k] =
            std::polar(1.0, sign * 2 * 3.14159265358979323846 * (double)k / (double)size);
    for (size_t at = 0; at < x.size(); at++) {
        if ((int64_t)at / inner % size) continue;
        for (int64_t k = 0; k < size; k++) {
            Z sum = 0;
            for (int64_t j = 0; j < size; j++)
                sum += x[at + (size_t)(j * inner)] * turns[(size_t)(j * k % size)];
            line[(size_t)k] = sum;
        }
        for (int64_t k = 0; k < size; k++) x[at + (size_t)(k * inner)] = line[(size_t)k];
    }
}

double real_at(const void *p, int64_t i, bool wide) {
    return wide ? ((const double *)p)[i] : (double)((const float *)p)[i];
}
Z complex_at(const void *p, int64_t i, bool wide) {
    return {real_at(p, 2 * i, wide), real_at(p, 2 * i + 1, wide)};
}
void put(void *p, int64_t i, double v, bool wide) {
    if (wide) ((double *)p)[i] = v;
    else ((float *)p)[i] = (float)v;
}

void run(const Queued &q) {
    const Plan &p = q.plan;
    const bool wide = p.wide();
    const int64_t whole = p.whole(), half = p.half(), last = p.n.back(), kept = last / 2 + 1;
    const int64_t from = p.complex_in() && !p.complex_out() ? half : whole;
    const int64_t to = p.complex_out() && !p.complex_in() ? half : whole;
    if (p.area) std::memset(p.area, 0xff, p.work);
    std::vector<Z> x((size_t)whole);
    for (int64_t b = 0; b < p.batch; b++) {
        for (int64_t i = 0; i < whole; i++) {
            if (!p.complex_in()) x[(size_t)i] = real_at(q.in, b * from + i, wide);
            else if (p.complex_out()) x[(size_t)i] = complex_at(q.in, b * from + i, wide);
            else {
                // what is not kept is the conjugate of the opposite place
                int64_t rest = i, place = 0, step = 1, opposite = 0;
                const bool there = i % last < kept;
                for (size_t d = p.n.size(); d-- > 0;) {
                    const int64_t size = p.n[d], k = rest % size, o = (size - k) % size;
                    rest /= size;
                    place += k * step, opposite += o * step;
                    step *= d == p.n.size() - 1 ? kept : size;
                }
                const Z kept_one = complex_at(q.in, b * from + (there ? place : opposite), wide);
                const bool real =
                    p.n.size() == 1 && (i == 0 || 2 * i == last);     // its own opposite
                x[(size_t)i] = real ? kept_one.real() : there ? kept_one : std::conj(kept_one);
            }
        }
        for (size_t d = 0; d < p.n.size(); d++) along(x, p.n, d, q.sign);
        int64_t at = b * to;
        for (int64_t i = 0; i < whole; i++) {
            if (!p.complex_out()) put(q.out, at++, x[(size_t)i].real(), wide);
            else if (p.complex_in() || i % last < kept) {
                put(q.out, 2 * at, x[(size_t)i].real(), wide);
                put(q.out, 2 * at++ + 1, x[(size_t)i].imag(), wide);
            }
        }
    }
    if (p.complex_in() && !p.complex_out())
        std::memset(q.in, 0xff, (size_t)(p.batch * half) * (wide ? 16 : 8));
}

Enqueue enqueue() {
    static const Enqueue f = [] {
        void *cuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
        return cuda ? (Enqueue)dlsym(cuda, "standin_enqueue") : nullptr;
    }();
    return f;
}

}  // namespace

API int cufftCreate(int *handle) {
    if (!handle) return INVALID_VALUE;
    std::lock_guard<std::mutex> guard(lock);
    *handle = next_plan++;
    plans()[*handle] = Plan();
    return SUCCESS;
}
API int cufftDestroy(int handle) {
    std::lock_guard<std::mutex> guard(lock);
    return plans().erase(handle) ? SUCCESS : INVALID_PLAN;
}
API int cufftSetAutoAllocation(int handle, int on) {
    std::lock_guard<std::mutex> guard(lock);
    Plan *p = plan_of(handle);
    if (!p || p->made) return INVALID_PLAN;
    p->automatic = on != 0;
    return SUCCESS;
}
API int cufftXtMakePlanMany(int handle, int rank, long long *n, long long *in_embed, long long,
                            long long, int in, long long *out_embed, long long, long long, int out,
                            long long batch, size_t *work, int type) {
    if (refused(WAITS)) return ALLOCATION_FAILED;
    std::lock_guard<std::mutex> guard(lock);
    Plan *p = plan_of(handle);
    if (!p || p->made) return INVALID_PLAN;
    if (!n || !work || rank < 1 || rank > 3 || batch < 1) return INVALID_VALUE;
    if (in_embed || out_embed || p->automatic) return NOT_SUPPORTED;        // here
    const int kind = in >= C_32F ? in : out;
    const bool pairs =
        (in == R_32F && out == C_32F) || (in == C_32F && (out == C_32F || out == R_32F)) ||
        (in == R_64F && out == C_64F) || (in == C_64F && (out == C_64F || out == R_64F));
    if (!pairs || type != kind) return NOT_SUPPORTED;
    for (int d = 0; d < rank; d++)
        if (n[d] < 1) return INVALID_SIZE;
    p->n.assign(n, n + rank);
    p->in = in, p->out = out, p->batch = batch, p->made = true;
    // A power of two needs no room, as in cuFFT where it is short.
    *work = p->work = (p->whole() & (p->whole() - 1)) ? (size_t)(p->whole() * batch) * 16 : 0;
    made_plans++;
    return SUCCESS;
}
API int cufftSetStream(int handle, void *stream) {
    std::lock_guard<std::mutex> guard(lock);
    Plan *p = plan_of(handle);
    if (!p) return INVALID_PLAN;
    p->stream = stream;
    return SUCCESS;
}
API int cufftSetWorkArea(int handle, void *area) {
    std::lock_guard<std::mutex> guard(lock);
    Plan *p = plan_of(handle);
    if (!p || !p->made) return INVALID_PLAN;
    if ((uintptr_t)area % 256) return INVALID_VALUE;
    p->area = area;
    return SUCCESS;
}
API int cufftXtExec(int handle, void *in, void *out, int direction) {
    std::lock_guard<std::mutex> guard(lock);
    Plan *p = plan_of(handle);
    if (!p || !p->made) return INVALID_PLAN;
    if (!in || !out || (direction != 1 && direction != -1)) return INVALID_VALUE;
    const uintptr_t item = p->wide() ? 16 : 8;
    if ((uintptr_t)in % item || (uintptr_t)out % item) return UNALIGNED;
    if (p->work && !p->area) return NO_WORKSPACE;
    if (!enqueue()) return SETUP_FAILED;
    const int sign = !p->complex_in() ? -1 : !p->complex_out() ? 1 : direction;
    auto work = [](void *q) { run(*(Queued *)q); };
    auto release = [](void *q) { delete (Queued *)q; };
    Queued *q = new Queued{*p, in, out, sign};
    p->area = nullptr;                          // of one call: the next one has to give its own
    return enqueue()(q->plan.stream, "cufftXtExec", work, q, release) ? EXEC_FAILED : SUCCESS;
}
API int cufftGetVersion(int *version) {
    if (!version) return INVALID_VALUE;
    *version = 12000;
    return SUCCESS;
}
// Plans that were made and that are kept.
API void standin_plans(int *two) {
    std::lock_guard<std::mutex> guard(lock);
    two[0] = made_plans, two[1] = (int)plans().size();
}
