// Races: two accesses to the same byte by different threads, one of them a write, that nothing
// orders.
//
// Within a block a barrier orders, within a warp __syncwarp too (shuffles and votes do not); blocks
// are ordered only where the first one called __threadfence afterwards. Atomics do not race with
// each other, and volatile accesses count as atomic ones. Unlike wrong results, which depend on the
// schedule, a race is found in whatever order the threads ran. Programs are compiled for it with
// host_compiler.compile(sanitize="races").
#include "scheduler.hpp"

#include <cstring>
#include <unordered_map>
#include <vector>

#include "standin.hpp"

namespace standin {

namespace {

struct Access {
    uint32_t block = 0, pc = 0;
    uint16_t interval = 0, warp_interval = 0, thread = 0;
    uint8_t kind = PT_READ;
    uint8_t some = 0;    // 0: none yet; reads of an interval: 2: by several lanes of a warp, 3: by
                         // several warps
};
struct Cell {
    Access write, read;
};
struct Cells {
    Cell of[8];
};

const size_t MOST = 1 << 20;        // of 8 bytes each; what a kernel touches beyond is not checked
auto &cells = *new std::unordered_map<uint64_t, Cells>;
auto &fenced = *new std::unordered_map<uint32_t, unsigned>;    // block: its interval at the last
                                                               // fence, and one more
const Launch *job;
const char *base;

bool in_shared(uint64_t p) {
    const pt_host_state &h = *host_state();
    return (p >= (uint64_t)job->statics && p < (uint64_t)job->statics + job->static_bytes) ||
           (p >= (uint64_t)h.dynamic && p < (uint64_t)h.dynamic + h.dynamic_bytes);
}

uint32_t block_number() {
    const pt_host_state &h = *host_state();
    return h.block.x + h.grid_dim.x * (h.block.y + h.grid_dim.y * h.block.z);
}

bool ordered(const Access &a, const Access &b, bool shared) {
    if (a.block != b.block) {
        if (shared) return true;    // another block's memory at the same place
        auto found = fenced.find(a.block);
        return found != fenced.end() && found->second > a.interval;
    }
    if (a.interval != b.interval) return true;
    if (a.some == 3) return false;
    if (a.thread >> 5 == b.thread >> 5 && a.warp_interval != b.warp_interval) return true;
    return a.some == 1 && a.thread == b.thread;
}

const char *const KINDS[] = {"read", "write", "atomic"};

std::string text_of(const Access &a) {
    return std::string(KINDS[a.kind]) + " by thread " + std::to_string(a.thread) + " of block " +
           std::to_string(a.block) + " at " + job->place(base + a.pc);
}

void check(const Access &earlier, const Access &now, bool shared) {
    if (!earlier.some || (earlier.kind == PT_READ && now.kind == PT_READ) ||
        (earlier.kind == PT_ATOMIC_ACCESS && now.kind == PT_ATOMIC_ACCESS) ||
        ordered(earlier, now, shared))
        return;
    host_state()->stop(719,
                       ("a race in " + std::string(shared ? "shared" : "device") +
                        " memory: " + text_of(earlier) + ", " + text_of(now))
                           .c_str(),
                       "", 0);
}

void access(const void *p, uint64_t bytes, int kind, const void *pc) {
    const uint64_t start = (uint64_t)p;
    const bool shared = in_shared(start);
    if (!shared && range_of(start).kind == PAGEABLE) return;        // the stack, constants
    const pt_host_state &h = *host_state();
    Access now;
    now.block = block_number();
    now.pc = (uint32_t)((const char *)pc - 1 - base);
    now.thread = (uint16_t)(h.thread.x + h.block_dim.x * (h.thread.y + h.block_dim.y * h.thread.z));
    now.interval = (uint16_t)block_interval;
    now.warp_interval = job->barriers ? (uint16_t)warp_intervals[now.thread >> 5] : 0;
    now.kind = (uint8_t)kind;
    now.some = 1;
    for (uint64_t at = start; at < start + bytes; at++) {
        auto found = cells.find(at >> 3);
        if (found == cells.end()) {
            if (cells.size() >= MOST) return;
            found = cells.emplace(at >> 3, Cells()).first;
        }
        Cell &c = found->second.of[at & 7];
        check(c.write, now, shared);
        if (kind != PT_READ) check(c.read, now, shared);
        if (kind != PT_READ) {
            c.write = now;
        } else if (c.read.some && c.read.block == now.block && c.read.interval == now.interval) {
            if (c.read.some == 3 || c.read.thread >> 5 != now.thread >> 5) c.read.some = 3;
            else if (c.read.warp_interval != now.warp_interval) c.read = now;
            else if (c.read.thread != now.thread) c.read.some = 2;
        } else {
            c.read = now;
        }
    }
}

void fence() { fenced[block_number()] = block_interval + 1; }

}  // namespace

void begin_races(const Launch &launch) {
    job = &launch;
    base = launch.base;
    cells.clear();
    fenced.clear();
    host_state()->access = access;
    host_state()->fence = fence;
}

void end_races() {
    cells.clear();
    fenced.clear();
}

}  // namespace standin
