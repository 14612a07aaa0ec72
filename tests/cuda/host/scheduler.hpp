// Between run.cpp, which starts kernels and catches their faults, and scheduler.cpp, which runs
// blocks on fibers.
#pragma once
#include "run.hpp"

namespace standin {

void run_block(const Launch &launch, Random &random, Failure &out);
uint64_t meet_on_fiber(int what, unsigned mask, uint64_t value, int from, const char *file,
                       int line);
unsigned active_on_fiber();
[[noreturn]] void leave_fiber();            // gives the running fiber up; the failure is set

// How many barriers of the running block, or meetings of the thread's warp that order memory, have
// been completed.
extern unsigned block_interval, warp_intervals[32];

// races.cpp
void begin_races(const Launch &launch);
void end_races();

size_t stack_bytes();
std::string where(const Launch &launch);            // "kernel k, block (0, 0, 0): "
std::string site(const char *file, int line);       // "file.cuh:12"

}  // namespace standin
