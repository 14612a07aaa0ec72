// Running kernels: the grid as a loop, or each block's threads on fibers in a random order.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "state.h"

namespace standin {

// xorshift64*: one for the schedules of kernels, one for streams.
struct Random {
    uint64_t state = 0x9e3779b97f4a7c15u;
    void seed(uint64_t n) {
        state = (n + 1) * 0x9e3779b97f4a7c15u ^ 0x2545f4914f6cdd1du;
        if (!state) state = 1;
    }
    uint32_t next() {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        return (uint32_t)(state * 0x2545f4914f6cdd1du >> 32);
    }
    uint32_t below(uint32_t n) { return (uint32_t)((uint64_t)next() * n >> 32); }
};

struct Launch {
    const char *name;
    void (*entry)(const void *);
    const void *args;
    dim3 grid, block;
    unsigned dynamic_bytes;
    bool barriers;
    char *statics;              // the program's __shared__ variables: its whole .bss
    size_t static_bytes;
    bool races;    // compiled to be checked for races; `place` says which line an address is of
    const char *base;           // where the program is loaded
    std::function<std::string(const void *pc)> place;
};

struct Failure {
    int code = 0;               // a CUresult
    std::string text;
};

// While one lives, faults of this thread inside a kernel end the kernel, not the process. Nests.
class FaultScope {
public:
    FaultScope();
    ~FaultScope();
};

// On this thread, which holds the driver's lock.
Failure run_kernel(const Launch &launch);
pt_host_state *host_state();
void seed_schedules(uint64_t n);
// A kernel that runs longer than this in CPU time has failed; 0: no limit.
void set_time_limit(double seconds);
// What lies at an address, for the text of a fault: filled in by the memory's side.
extern std::string (*describe_address)(const void *);
extern unsigned char junk;

}  // namespace standin
