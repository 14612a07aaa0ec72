// Starts kernels: the grid's blocks in a random order, plain loops for kernels without meetings,
// and faults caught.
//
// All of a kernel runs on a fiber, a plain loop too: a fault's handler gives the fiber up and the
// kernel has failed.
#include "scheduler.hpp"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <pthread.h>
#include <unistd.h>

#include "fibers.hpp"

#ifndef sigev_notify_thread_id
#  define sigev_notify_thread_id _sigev_un._tid
#endif

namespace standin {

std::string (*describe_address)(const void *);
unsigned char junk = 0xff;              // NaN as a float, -1 as an integer

namespace {

pt_host_state host;
Random random_state;
const Launch *job;
Failure *failure;
Fiber &plain =
    *new Fiber;    // like all state here never destroyed: kernels may run while a process ends
bool plain_dirty = true;
bool on_plain, running;                 // inside a kernel; on which kind of fiber
double time_limit = 60;

// ------------------------------------------------------------------------------------------- stops

[[noreturn]] void leave() {
    if (!on_plain) leave_fiber();
    for (;;) plain.wait();
}

[[noreturn]] void stop(int code, const char *text, const char *file, int line) {
    failure->code = code;
    failure->text = where(*job) + "thread (" + std::to_string(host.thread.x) + ", " +
                    std::to_string(host.thread.y) + ", " + std::to_string(host.thread.z) +
                    "): " + text + (line ? " (" + site(file, line) + ")" : "");
    leave();
}

uint64_t meet_nobody(int, unsigned, uint64_t, int, const char *file, int line) {
    stop(719, "meets other threads, but PT_KERNEL declares that none do: PT_KERNEL_SYNC", file,
         line);
}

unsigned active() { return on_plain ? 1u << host.lane : active_on_fiber(); }

// ------------------------------------------------------------------------------------------ faults

const int SIGNALS[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
struct sigaction before[4];
stack_t stack_before;
thread_local char *signal_stack;
pthread_t runner;
int depth;
timer_t timer;
pid_t timer_process, timer_thread;      // a timer belongs to one thread of one process

void on_fault(int signal, siginfo_t *info, void *) {
    if (!running || !pthread_equal(runner, pthread_self())) {
        for (int i = 0; i < 4; i++)
            if (SIGNALS[i] == signal) sigaction(signal, &before[i], nullptr);
        return;    // the instruction faults again, now for whoever was there before
    }
    running = false;
    if (info->si_code == SI_TIMER) {
        stop(702, "runs longer than the time limit", "", 0);
    } else if (signal == SIGFPE) {
        stop(719, "divides an integer by zero, or the lowest one by -1", "", 0);
    } else if (signal == SIGILL) {
        stop(716, "a misaligned access, or an index outside of an array", "",
             0);    // host_compiler.TRAPS
    } else if (info->si_code == SI_KERNEL) {
        stop(700, "an access to an address that is none, or one that is not aligned", "", 0);
    } else {
        char text[64];
        snprintf(text, sizeof text, "an illegal access to %p", info->si_addr);
        stop(700,
             (text + (describe_address ? describe_address(info->si_addr) : std::string())).c_str(),
             "", 0);
    }
}

void arm(double seconds) {
    itimerspec t = {};
    t.it_value.tv_sec = (time_t)seconds;
    t.it_value.tv_nsec = (long)((seconds - (double)t.it_value.tv_sec) * 1e9);
    timer_settime(timer, 0, &t, nullptr);
}

}  // namespace

FaultScope::FaultScope() {
    if (depth++) return;
    runner = pthread_self();
    const size_t bytes = 64 << 10;
    if (!signal_stack)
        signal_stack = (char *)mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    stack_t stack = {};
    stack.ss_sp = signal_stack;
    stack.ss_size = bytes;
    sigaltstack(&stack, &stack_before);
    struct sigaction action = {};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    for (int i = 0; i < 4; i++) sigaction(SIGNALS[i], &action, &before[i]);
}

FaultScope::~FaultScope() {
    if (--depth) return;
    for (int i = 0; i < 4; i++) sigaction(SIGNALS[i], &before[i], nullptr);
    sigaltstack(&stack_before, nullptr);
}

// ---------------------------------------------------------------------------------------- the grid

std::string site(const char *file, int line) {
    const char *slash = strrchr(file, '/');
    return std::string(slash ? slash + 1 : file) + ":" + std::to_string(line);
}

std::string where(const Launch &launch) {
    return std::string("kernel ") + launch.name + ", block (" + std::to_string(host.block.x) +
           ", " + std::to_string(host.block.y) + ", " + std::to_string(host.block.z) + "): ";
}

size_t stack_bytes() {
    static const size_t bytes = dlsym(RTLD_DEFAULT, "__asan_init") ? 256 << 10 : 64 << 10;
    return bytes;
}

namespace {

// The order of n things: start + i * stride modulo n, with a stride that has no factor in common
// with n.
struct Order {
    uint64_t n, at, stride;
    Order(uint64_t n_, Random &r) : n(n_), at(0), stride(1) {
        if (n < 2) return;
        at = r.next() % n;
        const uint32_t kind = r.below(3);
        if (kind == 0) return;                          // rising
        if (kind == 1) { stride = n - 1; return; }      // falling
        do stride = 1 + (r.next() % (n < 0x7fffffff ? n : 0x7fffffff)) % n;
        while (gcd(stride, n) != 1);
    }
    static uint64_t gcd(uint64_t a, uint64_t b) { return b ? gcd(b, a % b) : a; }
    uint64_t next() {
        const uint64_t now = at;
        at = (at + stride) % n;
        return now;
    }
};

void plain_block() {
    const dim3 n = job->block;
    const bool falling = random_state.next() & 1u;
    const unsigned all = n.x * n.y * n.z;
    for (unsigned i = 0; i < all; i++) {
        const unsigned k = falling ? all - 1 - i : i;
        host.thread =
            n.y == 1 && n.z == 1 ? uint3{k, 0, 0} : uint3{k % n.x, k / n.x % n.y, k / (n.x * n.y)};
        host.lane = k & 31u;
        job->entry(job->args);
    }
}

void plain_main(void *) {
    for (;;) {
        plain_block();
        plain.wait();
    }
}

char *dynamic_memory(unsigned bytes) {
    static char *low;
    static const size_t most = 256 << 10;
    if (!low) {
        const size_t page = (size_t)sysconf(_SC_PAGESIZE);
        low = (char *)mmap(nullptr, most + page, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        mprotect(low + most, page, PROT_NONE);
    }
    return low + most - ((bytes + 15u) & ~15u);
}

}  // namespace

pt_host_state *host_state() {
    if (!host.stop) {
        host.meet = meet_nobody;
        host.active = active;
        host.stop = stop;
    }
    return &host;
}
void seed_schedules(uint64_t n) { random_state.seed(n); }
void set_time_limit(double seconds) { time_limit = seconds; }

Failure run_kernel(const Launch &launch) {
    FaultScope scope;
    Failure result;
    job = &launch;
    failure = &result;
    host_state();
    host.block_dim = launch.block;
    host.grid_dim = launch.grid;
    host.dynamic_bytes = launch.dynamic_bytes;
    host.dynamic = dynamic_memory(launch.dynamic_bytes);
    const pid_t thread = (pid_t)syscall(SYS_gettid);
    if (time_limit > 0 && (timer_process != getpid() || timer_thread != thread)) {
        if (timer_process == getpid()) timer_delete(timer);
        sigevent event = {};
        event.sigev_notify = SIGEV_THREAD_ID;
        event.sigev_signo = SIGSEGV;
        event.sigev_notify_thread_id = thread;
        timer_process = timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer) ? 0 : getpid();
        timer_thread = thread;
    }
    if (launch.races) begin_races(launch);
    const bool limited = time_limit > 0 && timer_process;
    if (limited) arm(time_limit);
    const dim3 g = launch.grid;
    Order order((uint64_t)g.x * g.y * g.z, random_state);
    for (uint64_t i = 0; i < order.n && !result.code; i++) {
        const uint64_t k = order.next();
        host.block =
            uint3{(unsigned)(k % g.x), (unsigned)(k / g.x % g.y), (unsigned)(k / g.x / g.y)};
        if (launch.static_bytes) memset(launch.statics, junk, launch.static_bytes);
        if (launch.dynamic_bytes) memset(host.dynamic, junk, launch.dynamic_bytes);
        on_plain = !launch.barriers;
        host.meet = on_plain ? meet_nobody : meet_on_fiber;
        running = true;
        if (!launch.barriers) block_interval = 0;
        if (launch.barriers) {
            run_block(launch, random_state, result);
        } else {
            // A library's work runs here too: the parallel getrf of OpenBLAS takes more than 1 MiB.
            // Pages come when touched.
            if (plain_dirty) plain.start(plain_main, nullptr, 8 << 20);
            plain.resume();
            plain_dirty = result.code != 0;
        }
        running = false;
    }
    if (limited) arm(0);
    if (launch.races) end_races();
    return result;
}

}  // namespace standin
