// Parts of the allocator of device memory: blocks, segments, pools, and the counters of
// memory_stats. Private to block_allocator.cpp.
//
// A Segment is memory that the driver gave; its Blocks tile it, linked in order of addresses. A
// block is allocated, pending (released, but events of other streams are still to come) or free;
// only free blocks are in a FreeSet, ordered by stream, size, address. A block owns one node of a
// FreeSet for its whole life: while the block is not free it keeps the node itself, so that neither
// a hit nor a release takes or gives memory of the host.
#pragma once
#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "allocator_parts.hpp"
#include "block_allocator.hpp"
#include "expandable.hpp"

namespace pt_cuda {
namespace blocks {

constexpr size_t MIB = size_t(1) << 20;
constexpr size_t QUANTUM = 512;                 // sizes and addresses are multiples of it
constexpr size_t SMALL_REQUEST = MIB;           // up to here from the small pool
constexpr size_t SMALL_SEGMENT = 2 * MIB;
constexpr size_t LARGE_SEGMENT = 20 * MIB;      // for requests below OWN_SEGMENT
constexpr size_t OWN_SEGMENT = 10 * MIB;
constexpr size_t ROUND_SEGMENT = 2 * MIB;
constexpr size_t MAX_REQUEST = size_t(1) << 60; // sums of sizes stay far from the end of size_t
constexpr int INVALID_DEVICE = 101;

struct Block;
struct Segment;

struct FreeKey {
    uintptr_t stream;
    size_t size;
    char *data;
    Block *block;
};
struct BestFit {
    bool operator()(const FreeKey &a, const FreeKey &b) const {
        if (a.stream != b.stream) return a.stream < b.stream;
        if (a.size != b.size) return a.size < b.size;
        return uintptr_t(a.data) < uintptr_t(b.data);
    }
};
typedef std::set<FreeKey, BestFit> FreeSet;

struct Block {
    char *data = nullptr;
    size_t size = 0, requested = 0;
    Block *prev = nullptr,
          *next = nullptr;    // neighbours in the segment; next of a spare block: the next spare
    Segment *segment = nullptr;
    bool allocated = false;
    uint32_t stack = 0;                         // where it was allocated
    int events = 0;                             // events recorded and not known to be done
    uint64_t since = 0;                         // value of `searches` when it became free
    std::vector<void *> uses;                   // other streams that use it
    Block *later = nullptr;
    FreeSet::node_type node;    // empty exactly while the block is in a set, at `place`
    FreeSet::iterator place;
    bool whole() const { return !prev && !next; }
    bool is_free() const { return !allocated && !events && uses.empty(); }
};

struct Pool {
    explicit Pool(uint64_t id) : id(id) {}
    const uint64_t id;
    size_t segments = 0;
    bool retired =
        false;    // private: its whole free segments may go back, and the pool with the last
    PoolRules rules;
    FreeSet small, large;
};

struct Segment {
    char *data = nullptr;
    size_t size = 0;
    void *stream = nullptr;
    Pool *pool = nullptr;
    bool large = false;
    uint32_t stack = 0;
    bool cached = true;         // false: it goes back as soon as nothing uses it
    Range *range =
        nullptr;    // of an expandable segment: its blocks tile the mapped part
    Block *first = nullptr, *last = nullptr;
    Segment *before = nullptr,
            *after = nullptr;    // all of the device; after of a spare segment: the next spare
    FreeSet &free_set() const { return large ? pool->large : pool->small; }
};

enum Kind {
    ALLOCATION, SEGMENT, ACTIVE, INACTIVE_SPLIT,
    ALLOCATED_BYTES, RESERVED_BYTES, ACTIVE_BYTES, INACTIVE_SPLIT_BYTES, REQUESTED_BYTES, KINDS
};
#define PT_COUNTER(name) name ".current", name ".peak", name ".allocated", name ".freed"
#define PT_COUNTERS(name) \
    PT_COUNTER(name ".all"), PT_COUNTER(name ".large_pool"), PT_COUNTER(name ".small_pool")
const char *const KIND_KEYS[KINDS * 12] = {
    // Kind's order, then all, large, small
    PT_COUNTERS("allocation"),      PT_COUNTERS("segment"),
    PT_COUNTERS("active"),          PT_COUNTERS("inactive_split"),
    PT_COUNTERS("allocated_bytes"), PT_COUNTERS("reserved_bytes"),
    PT_COUNTERS("active_bytes"),    PT_COUNTERS("inactive_split_bytes"),
    PT_COUNTERS("requested_bytes"),
};
const char *const OVERSIZE_KEYS[8] = {PT_COUNTER("oversize_allocations"),
                                      PT_COUNTER("oversize_segments")};
#undef PT_COUNTERS
#undef PT_COUNTER

struct Counters {
    Counter of[KINDS][3];
    Counter oversize_allocations, oversize_segments;
    int64_t retries = 0, failures = 0, waits = 0, device_allocations = 0, device_frees = 0;

    void add(Kind kind, bool large, size_t n) {
        of[kind][0].add(int64_t(n));
        of[kind][large ? 1 : 2].add(int64_t(n));
    }
    void subtract(Kind kind, bool large, size_t n) {
        of[kind][0].subtract(int64_t(n));
        of[kind][large ? 1 : 2].subtract(int64_t(n));
    }
    template <class F> void each(F &&f) {
        for (auto &kind : of)
            for (Counter &c : kind) f(c);
        f(oversize_allocations);
        f(oversize_segments);
    }
};

inline int floor_log2(size_t n) {
    int bits = 0;
    while (n >>= 1) ++bits;
    return bits;
}

inline size_t round_up(size_t n, size_t unit) { return (n + unit - 1) / unit * unit; }

inline size_t segment_size(size_t size) {
    if (size <= SMALL_REQUEST) return SMALL_SEGMENT;
    return size < OWN_SEGMENT ? LARGE_SEGMENT : round_up(size, ROUND_SEGMENT);
}

inline void push(std::vector<AllocatorStat> &out, const char *const *keys, const Counter &c) {
    out.push_back({keys[0], c.current});
    out.push_back({keys[1], c.peak});
    out.push_back({keys[2], c.allocated});
    out.push_back({keys[3], c.freed});
}

}  // namespace blocks
}  // namespace pt_cuda
