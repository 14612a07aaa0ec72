// The history of a device's allocator, for the memory viewer: a ring of entries. Private to
// block_allocator.cpp except for what block_allocator.hpp declares; the device's mutex protects it.
// While recording is off, each step costs one branch.
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

#include "block_allocator.hpp"

namespace pt_cuda {

class History {
public:
    bool on() const { return rules.on; }
    // The current stack, and a given stack, if the stacks of such events are recorded
    // (HistoryRules::stacks); else 0.
    uint32_t stack(int least) const { return keep(least, stack_of_thread()); }
    uint32_t keep(int least, uint32_t stack) const { return rules.stacks >= least ? stack : 0; }

    void start(const HistoryRules &wanted, bool clear) {
        rules = wanted.on ? wanted : HistoryRules();
        if (!rules.most) rules.most = 1;
        std::vector<TraceEntry> kept;           // the latest of the entries so far
        if (rules.on && !clear) {
            kept = entries();
            if (kept.size() > rules.most)
                kept.erase(kept.begin(), kept.end() - std::ptrdiff_t(rules.most));
        }
        ring.swap(kept);
        next = 0;
    }

    void note(TraceEntry::Action action, uintptr_t address, size_t size, void *stream,
              uint64_t pool, uint32_t stack) {
        if (!rules.trace || (rules.skipped >> action & 1)) return;
        const auto now = std::chrono::system_clock::now().time_since_epoch();
        const TraceEntry entry = {
            action, address, size,
            stream, pool,    std::chrono::duration_cast<std::chrono::microseconds>(now).count(),
            stack};
        if (ring.size() >= rules.most) {
            ring[next] = entry;
            next = next + 1 == ring.size() ? 0 : next + 1;
            return;
        }
        try {
            ring.push_back(entry);
        } catch (const std::bad_alloc &) {      // the entry is lost, nothing else
        }
    }

    // The entries, the oldest first.
    std::vector<TraceEntry> entries() const {
        std::vector<TraceEntry> all(ring.begin() + std::ptrdiff_t(next), ring.end());
        all.insert(all.end(), ring.begin(), ring.begin() + std::ptrdiff_t(next));
        return all;
    }

private:
    HistoryRules rules;
    std::vector<TraceEntry> ring;       // the first entry is at `next`, which is 0 until it is full
    size_t next = 0;
};

}  // namespace pt_cuda
