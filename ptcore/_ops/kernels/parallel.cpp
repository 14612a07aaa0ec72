/* The thread pool behind parallel.hpp, compiled once.
 *
 * One job at a time, owned by the caller that set `busy`. A worker enters a job by raising
 * `inside` and then checking `open`; the caller closes the job (open = 0) and waits for
 * inside = 0. Both sides use sequentially consistent atomics, so either the worker sees the job
 * closed or the caller sees the worker: job fields are stable while anybody reads them, and
 * a worker that sleeps or was preempted before entering delays nobody.
 *
 * fork: workers are joined before it and started again, on both sides, by the next parallel
 * loop. The pool is allocated at the first use and never freed, so that no destructor can
 * run while a thread still uses it; at exit the workers are joined.
 */
#include "parallel.hpp"
#include "cgroup.hpp"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <new>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <thread>
#include <vector>

#if defined(__unix__) || defined(__APPLE__)
#define PT_POSIX 1
#include <pthread.h>
#include <signal.h>
#else
#define PT_POSIX 0
#endif
#if defined(__linux__)
#include <sched.h>
#endif
#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>
#endif

namespace {

#if defined(__EMSCRIPTEN__) && !defined(__EMSCRIPTEN_PTHREADS__)
enum { MAX_THREADS = 1 };                   /* no more can be started */
#else
enum { MAX_THREADS = 1024 };
#endif
enum { MAX_RANGES = 512, SPINS = 2000 };

void pause_cpu() {
#if defined(__x86_64__) || defined(_M_X64)
    _mm_pause();
#elif defined(__aarch64__) && defined(__GNUC__)
    __asm__ volatile("yield");
#endif
}

thread_local int in_parallel = 0;

struct Job {
    void (*body)(void *, int64_t, int64_t);
    void *ctx;
    int64_t n, step, ranges;
    int threads;
    uint64_t control;                       /* the caller's float_control */
};

struct Pool {
    std::atomic<bool> busy{false};
    std::atomic<uint32_t> generation{0};    /* raised once per job, and to stop */
    std::atomic<int> open{0};               /* the job may be entered */
    std::atomic<int> inside{0};             /* workers in the job */
    std::atomic<int64_t> next{0};           /* the first range that is not taken yet */
    std::atomic<bool> stop{false};
    Job job{};
    std::atomic<int> sleepers{0};
    std::mutex mutex;
    std::condition_variable wake;
    std::vector<std::thread> workers;       /* touched by the owner of `busy` only */
};

std::atomic<Pool *> the_pool{nullptr};
std::atomic<int> thread_count{0};           /* 0: not determined yet */
std::atomic<bool> handlers_installed{false}, exiting{false};

Pool *get_pool() {
    Pool *p = the_pool.load();
    if (p) return p;
    Pool *fresh = new (std::nothrow) Pool;
    if (!fresh) return nullptr;
    if (the_pool.compare_exchange_strong(p, fresh)) return fresh;
    delete fresh;
    return p;
}

/* The thread's rounding mode and treatment of denormal numbers. Workers take them from the caller, so that results do
 * not depend on the number of threads. */
#if defined(__x86_64__) || defined(_M_X64)
typedef unsigned int float_control;
const float_control FLUSH = 0x8040;             /* results (FTZ) and operands (DAZ) */
float_control get_control() { return _mm_getcsr() & ~0x3fu; }
void set_control(float_control c) { _mm_setcsr(c); }
#elif defined(__aarch64__) && !defined(_MSC_VER)
typedef uint64_t float_control;
const float_control FLUSH = 1u << 24;
float_control get_control() {
    float_control c;
    __asm__ volatile("mrs %0, fpcr" : "=r"(c));
    return c;
}
void set_control(float_control c) { __asm__ volatile("msr fpcr, %0" : : "r"(c)); }
#else
typedef int float_control;
const float_control FLUSH = 0;
float_control get_control() { return 0; }
void set_control(float_control) {}
#endif

void run_ranges(Pool *p, const Job &job) {
    for (;;) {
        int64_t i = p->next.fetch_add(1);
        if (i >= job.ranges) return;
        int64_t begin = i * job.step;
        job.body(job.ctx, begin, i + 1 == job.ranges ? job.n : begin + job.step);
    }
}

void worker(Pool *p, int index) {
    uint32_t seen = 0;
    in_parallel = 1;
    for (;;) {
        for (int i = 0; i < SPINS && p->generation.load() == seen; i++) pause_cpu();
        if (p->generation.load() == seen) {
            std::unique_lock<std::mutex> lock(p->mutex);
            p->sleepers++;
            while (p->generation.load() == seen) p->wake.wait(lock);
            p->sleepers--;
        }
        seen = p->generation.load();
        if (p->stop) return;
        p->inside++;
        if (p->open && index < p->job.threads - 1) {
            set_control((float_control)p->job.control);
            run_ranges(p, p->job);
        }
        p->inside--;
    }
}

void announce(Pool *p) {
    p->generation++;
    if (p->sleepers) {
        { std::lock_guard<std::mutex> lock(p->mutex); }
        p->wake.notify_all();
    }
}

/* Callers of the next two functions hold `busy`. */
void stop_workers(Pool *p) {
    if (p->workers.empty()) return;
    p->stop = true;
    announce(p);
    for (std::thread &t : p->workers) t.join();
    p->workers.clear();
    p->stop = false;
    p->generation = 0;
}

void install_handlers();

/* Starts workers up to `wanted`; after a failure there are fewer. Signals stay with the caller. */
void start_workers(Pool *p, int wanted) {
    if ((int)p->workers.size() >= wanted || exiting) return;
    install_handlers();
#if PT_POSIX
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
#endif
    try {
        p->workers.reserve((size_t)wanted);
        /* a new worker starts at generation 0: at most it looks at a job that is closed */
        while ((int)p->workers.size() < wanted)
            p->workers.emplace_back(worker, p, (int)p->workers.size());
    } catch (...) {
    }
#if PT_POSIX
    pthread_sigmask(SIG_SETMASK, &old, nullptr);
#endif
}

bool acquire(Pool *p) {
    bool expected = false;
    return !p->busy.load(std::memory_order_relaxed) &&
           p->busy.compare_exchange_strong(expected, true);
}

/* At exit, a loop that still runs in another thread is not waited for. */
void at_exit() {
    exiting = true;
    Pool *p = the_pool.load();
    if (p && acquire(p)) {
        stop_workers(p);
        p->busy = false;
    }
}

#if PT_POSIX
thread_local bool held_by_fork = false;

/* A fork inside a parallel loop must not wait for that loop: its child gets a new pool. */
void before_fork() {
    Pool *p = the_pool.load();
    if (!p || in_parallel) return;
    while (!acquire(p)) std::this_thread::yield();
    stop_workers(p);
    held_by_fork = true;
}
void after_fork_parent() {
    if (held_by_fork) the_pool.load()->busy = false;
    held_by_fork = false;
}
void after_fork_child() {
    if (!held_by_fork) the_pool = nullptr;
    after_fork_parent();
}
#endif

void install_handlers() {
    if (handlers_installed.exchange(true)) return;
    atexit(at_exit);
#if PT_POSIX
    pthread_atfork(before_fork, after_fork_parent, after_fork_child);
#endif
}

/* ---- how many threads ---- */

/* The leading number of a text; 0 if there is none. */
int positive(const char *text) {
    long v = text ? strtol(text, nullptr, 10) : 0;
    return v > 0 ? (v < MAX_THREADS ? (int)v : (int)MAX_THREADS) : 0;
}

void lower(int *count, int limit) {
    if (limit > 0 && limit < *count) *count = limit;
}

#if defined(__linux__)
void lower_to_quota(int *count, double quota, double period) {
    if (quota > 0 && period > 0 && quota / period < MAX_THREADS) {
        double cpus = quota / period;
        int whole = (int)cpus;
        lower(count, whole + (cpus > whole));
    }
}

/* Lowers the count to the limits of one cgroup folder, version 2 or 1. */
void lower_to_folder(int *count, const char *folder) {
    char line[128];
    double quota, period;
    if (read_cgroup(folder, "cpu.max", line, sizeof line) &&
        sscanf(line, "%lf %lf", &quota, &period) == 2)
        lower_to_quota(count, quota, period);
    if (!read_cgroup(folder, "cpu.cfs_quota_us", line, sizeof line)) return;
    quota = atof(line);
    if (read_cgroup(folder, "cpu.cfs_period_us", line, sizeof line))
        lower_to_quota(count, quota, atof(line));
}
#endif

int default_thread_count() {
    int count = (int)std::thread::hardware_concurrency();
    if (count < 1) count = 1;
#if defined(__linux__)
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) lower(&count, CPU_COUNT(&set));
    each_cgroup("cpu", [&](const char *folder) { lower_to_folder(&count, folder); });
#endif
    lower(&count, positive(getenv("SLURM_CPUS_PER_TASK")));
    int own = positive(getenv("PTCORE_NUM_THREADS"));
    lower(&count, own ? own : positive(getenv("OMP_NUM_THREADS")));
    return count < MAX_THREADS ? count : (int)MAX_THREADS;
}

}  /* namespace */

extern "C" int pt_get_num_threads(void) {
    int n = thread_count.load();
    if (n == 0) {
        int expected = 0;
        n = default_thread_count();
        if (!thread_count.compare_exchange_strong(expected, n)) n = expected;
    }
    return n;
}

extern "C" void pt_set_num_threads(int n) {
    thread_count = n < 1 ? 1 : n > MAX_THREADS ? (int)MAX_THREADS : n;
}

/* Whether this thread now treats denormal numbers as zero, or no longer does; 0 where the processor cannot. */
extern "C" int pt_set_flush_denormal(int on) {
    if (FLUSH) set_control(on ? get_control() | FLUSH : get_control() & ~FLUSH);
    return FLUSH != 0;
}

extern "C" int pt_in_parallel(void) { return in_parallel; }

extern "C" void pt_parallel_for(int64_t n, int64_t grain, void (*body)(void *, int64_t, int64_t),
                                void *ctx) {
    if (n <= 0) return;
    if (grain < 1) grain = 1;
    if (n <= grain) { body(ctx, 0, n); return; }
    int64_t grains = n / grain + (n % grain != 0);
    int64_t step = grain * (grains / MAX_RANGES + (grains % MAX_RANGES != 0));
    int64_t ranges = n / step + (n % step != 0);
    int threads = in_parallel ? 1 : pt_get_num_threads();
    if (threads > ranges) threads = (int)ranges;
    Pool *p = threads > 1 ? get_pool() : nullptr;
    if (!p || !acquire(p)) {
        for (int64_t i = 0; i < ranges; i++)
            body(ctx, i * step, i + 1 == ranges ? n : (i + 1) * step);
        return;
    }
    start_workers(p, threads - 1);
    p->job = {body, ctx, n, step, ranges, threads, (uint64_t)get_control()};
    p->next = 0;
    p->open = 1;
    announce(p);
    in_parallel = 1;
    run_ranges(p, p->job);
    in_parallel = 0;
    p->open = 0;
    for (int i = 0; p->inside; i++) i < SPINS ? pause_cpu() : std::this_thread::yield();
    p->busy = false;
}
