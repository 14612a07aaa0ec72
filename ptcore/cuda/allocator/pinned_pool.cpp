// The pool of page-locked host memory. Blocks have sizes of powers of two and are never split; free
// ones wait in a list per size, the last one freed first. Allocating page-locked memory costs the
// driver far more than a copy, so nothing goes back before empty_cache or a failure.
#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <new>

#include "allocator_parts.hpp"

namespace pt_cuda {
namespace {

constexpr int SMALLEST = 9;    // 512 bytes: at least a line of any cache, and aligned
constexpr int CLASSES = 60;

struct Use {
    int device;
    void *stream;
};

struct HostBlock {
    char *data;
    int log2;
    bool taken;
    int events;
    std::vector<Use> uses;
    size_t size() const { return size_t(1) << log2; }
};

struct Timer {                                  // microseconds in the driver
    int64_t total = 0, longest = 0, shortest = 0, count = 0;
    template <class F> int run(F &&call) {
        const auto start = std::chrono::steady_clock::now();
        const int status = call();
        const auto spent = std::chrono::steady_clock::now() - start;
        const int64_t us = std::chrono::duration_cast<std::chrono::microseconds>(spent).count();
        total += us;
        longest = std::max(longest, us);
        shortest = count ? std::min(shortest, us) : us;
        ++count;
        return status;
    }
};

}  // namespace

struct PinnedPool::State {
    const DriverMemory driver;
    mutable std::mutex mutex;
    std::map<uintptr_t, HostBlock> blocks;      // all, by address
    std::vector<HostBlock *> free[CLASSES];     // with room for all blocks of their size
    size_t made[CLASSES] = {};
    EventQueue<HostBlock> pending;
    int captures = 0;                           // under way: no event is asked of the driver
    std::vector<HostBlock *> until_captured;
    Counter blocks_owned, bytes_owned, requests, bytes_in_use;
    Timer allocating, releasing;

    explicit State(const DriverMemory &driver) : driver(driver), pending(this->driver) {}

    HostBlock *containing(const void *data) {
        auto it = blocks.upper_bound(reinterpret_cast<uintptr_t>(data));
        if (it == blocks.begin()) return nullptr;
        HostBlock &b = (--it)->second;
        return static_cast<const char *>(data) < b.data + b.size() ? &b : nullptr;
    }
    void set_free(HostBlock *b) {
        requests.subtract(1);
        bytes_in_use.subtract(int64_t(b->size()));
        free[b->log2].push_back(b);
    }
    // A block after its release: it becomes free when the work that its streams have is done.
    void defer(HostBlock *b) {
        bool lost = false;
        for (const Use &use : b->uses) {
            int status;
            try {
                status = pending.record(use.device, use.stream, b);
            } catch (const std::bad_alloc &) {
                status = -1;
            }
            if (status != DRIVER_OK && driver.device_synchronize(use.device) != DRIVER_OK)
                lost = true;
        }
        b->uses.clear();
        if (lost) ++b->events;    // nothing counts it down: the block is never given away again
        if (!b->events) set_free(b);
    }
    void poll() {
        if (!captures && !pending.empty()) pending.poll([this](HostBlock *b) { set_free(b); });
    }
    int wait() {
        if (captures) return DRIVER_OK;
        return pending.wait([this](HostBlock *b) { set_free(b); });
    }
    int release_free() {
        if (captures) return DRIVER_OK;         // it would end the capture
        int failed = wait();
        for (auto &list : free) {
            size_t kept = 0;
            for (HostBlock *b : list) {
                const int status = releasing.run([&] { return driver.host_release(b->data); });
                if (status != DRIVER_OK) {
                    failed = status;
                    list[kept++] = b;           // the driver did not take it: it stays in the pool
                    continue;
                }
                blocks_owned.subtract(1);
                bytes_owned.subtract(int64_t(b->size()));
                --made[b->log2];
                blocks.erase(reinterpret_cast<uintptr_t>(b->data));
            }
            list.resize(kept);
        }
        return failed;
    }
    HostBlock *take(int log2) {
        if (free[log2].empty()) return nullptr;
        HostBlock *b = free[log2].back();
        free[log2].pop_back();
        return b;
    }
    HostBlock *make(int log2, int *status) {
        void *data = nullptr;
        if (free[log2].capacity() <= made[log2]) free[log2].reserve(2 * made[log2] + 8);
        *status = allocating.run([&] { return driver.host_allocate(size_t(1) << log2, &data); });
        if (*status != DRIVER_OK) return nullptr;
        HostBlock *b;
        try {
            b = &blocks[reinterpret_cast<uintptr_t>(data)];
        } catch (const std::bad_alloc &) {
            driver.host_release(data);
            throw;
        }
        *b = HostBlock{static_cast<char *>(data), log2, false, 0, {}};
        ++made[log2];
        blocks_owned.add(1);
        bytes_owned.add(int64_t(b->size()));
        return b;
    }
};

PinnedPool::PinnedPool(const DriverMemory &driver) : state(new State(driver)) {}
PinnedPool::~PinnedPool() = default;            // as for the device: the driver may be gone

void *PinnedPool::allocate(size_t nbytes, AllocatorFailure *why) {
    State &s = *state;
    std::lock_guard<std::mutex> hold(s.mutex);
    *why = AllocatorFailure{DRIVER_OUT_OF_MEMORY, -1, nbytes, nbytes, 0, 0, 0, 0, SIZE_MAX, 0};
    int log2 = SMALLEST;
    while (log2 < CLASSES && (size_t(1) << log2) < nbytes) ++log2;
    HostBlock *b = nullptr;
    if (log2 < CLASSES) {
        why->segment = size_t(1) << log2;
        try {
            s.poll();
            b = s.take(log2);
            if (!b) b = s.make(log2, &why->status);
            if (!b && why->status == DRIVER_OUT_OF_MEMORY) {
                s.wait();                       // a block of the size may come back
                b = s.take(log2);
                if (!b) {
                    s.release_free();
                    b = s.make(log2, &why->status);
                }
            }
        } catch (const std::bad_alloc &) {
            why->status = DRIVER_OUT_OF_MEMORY;
        }
    }
    if (!b) {
        why->allocated = size_t(s.bytes_in_use.current);
        why->reserved = size_t(s.bytes_owned.current);
        return nullptr;
    }
    b->taken = true;
    s.requests.add(1);
    s.bytes_in_use.add(int64_t(b->size()));
    return b->data;
}

bool PinnedPool::release(void *data) {
    State &s = *state;
    std::lock_guard<std::mutex> hold(s.mutex);
    auto it = s.blocks.find(reinterpret_cast<uintptr_t>(data));
    if (it == s.blocks.end() || !it->second.taken) return false;
    HostBlock *b = &it->second;
    b->taken = false;
    if (s.captures && !b->uses.empty()) s.until_captured.push_back(b);
    else s.defer(b);
    return true;
}

void PinnedPool::begin_capture() {
    std::lock_guard<std::mutex> hold(state->mutex);
    ++state->captures;
}

void PinnedPool::end_capture() {
    State &s = *state;
    std::lock_guard<std::mutex> hold(s.mutex);
    if (--s.captures) return;
    for (HostBlock *b : s.until_captured) s.defer(b);
    s.until_captured.clear();
}

bool PinnedPool::record_stream(void *data, int device, void *stream) {
    State &s = *state;
    std::lock_guard<std::mutex> hold(s.mutex);
    HostBlock *b = s.containing(data);
    if (!b || !b->taken) return false;
    for (const Use &use : b->uses)
        if (use.stream == stream && use.device == device) return true;
    b->uses.push_back({device, stream});
    return true;
}

bool PinnedPool::owns(const void *data) const {
    std::lock_guard<std::mutex> hold(state->mutex);
    const HostBlock *b = state->containing(data);
    return b && b->taken;
}

int PinnedPool::empty_cache() {
    std::lock_guard<std::mutex> hold(state->mutex);
    return state->release_free();
}

std::vector<AllocatorStat> PinnedPool::stats() const {
    const State &s = *state;
    std::vector<AllocatorStat> out;
    out.reserve(32);
    std::lock_guard<std::mutex> hold(s.mutex);
#define PT_COUNTER(name, c) \
    out.push_back({name ".current", c.current}); \
    out.push_back({name ".peak", c.peak}); \
    out.push_back({name ".allocated", c.allocated}); \
    out.push_back({name ".freed", c.freed})
    PT_COUNTER("allocations", s.blocks_owned);
    PT_COUNTER("allocated_bytes", s.bytes_owned);
    PT_COUNTER("active_requests", s.requests);
    PT_COUNTER("active_bytes", s.bytes_in_use);
#undef PT_COUNTER
    out.push_back({"num_host_alloc", s.blocks_owned.allocated});
    out.push_back({"num_host_free", s.blocks_owned.freed});
#define PT_TIMER(name, t) \
    out.push_back({name ".total", t.total}); \
    out.push_back({name ".max", t.longest}); \
    out.push_back({name ".min", t.shortest}); \
    out.push_back({name ".count", t.count}); \
    out.push_back({name ".avg", t.count ? t.total / t.count : 0})
    PT_TIMER("host_alloc_time", s.allocating);
    PT_TIMER("host_free_time", s.releasing);
#undef PT_TIMER
    return out;
}

void PinnedPool::reset_peak() {
    State &s = *state;
    std::lock_guard<std::mutex> hold(s.mutex);
    for (Counter *c : {&s.blocks_owned, &s.bytes_owned, &s.requests, &s.bytes_in_use})
        c->reset_peak();
}

void PinnedPool::reset_accumulated() {
    State &s = *state;
    std::lock_guard<std::mutex> hold(s.mutex);
    for (Counter *c : {&s.blocks_owned, &s.bytes_owned, &s.requests, &s.bytes_in_use})
        c->reset_accumulated();
    s.allocating = s.releasing = Timer{};
}

}  // namespace pt_cuda
