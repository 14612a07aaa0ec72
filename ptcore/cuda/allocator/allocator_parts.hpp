// Parts that both allocators share: counters, the table from addresses to blocks, and the queue of
// blocks that wait for events. Private to block_allocator.cpp and pinned_pool.cpp; the mutexes of
// the allocators protect these parts.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "block_allocator.hpp"

namespace pt_cuda {

struct Counter {
    int64_t current = 0, peak = 0, allocated = 0, freed = 0;
    void add(int64_t n) {
        current += n;
        allocated += n;
        if (current > peak) peak = current;
    }
    void subtract(int64_t n) {
        current -= n;
        freed += n;
    }
    void reset_peak() { peak = current; }
    void reset_accumulated() { allocated = freed = 0; }
};

// Blocks by address: open addressing with linear probing, at most half full. Block has a field
// `data`.
template <class Block> class AddressTable {
public:
    AddressTable() : slots(64, nullptr), used(0) {}
    void make_room() {                  // for one more; the only function that takes memory
        if (2 * (used + 1) <= slots.size()) return;
        std::vector<Block *> old(2 * slots.size(), nullptr);
        old.swap(slots);
        used = 0;
        for (Block *b : old)
            if (b) insert(b);
    }
    void insert(Block *b) {
        size_t i = home(b->data);
        while (slots[i]) i = next(i);
        slots[i] = b;
        ++used;
    }
    Block *find(const void *data) const {
        const size_t i = place(data);
        return slots[i];
    }
    Block *remove(const void *data) {
        size_t hole = place(data);
        Block *found = slots[hole];
        if (!found) return nullptr;
        // a block moves into the hole if the hole is not before the block's home
        for (size_t i = next(hole); slots[i]; i = next(i))
            if (((i - home(slots[i]->data)) & mask()) >= ((i - hole) & mask())) {
                slots[hole] = slots[i];
                hole = i;
            }
        slots[hole] = nullptr;
        --used;
        return found;
    }
    template <class F> void each(F &&f) const {
        for (Block *b : slots)
            if (b) f(b);
    }

private:
    std::vector<Block *> slots;         // their number is a power of two
    size_t used;
    size_t mask() const { return slots.size() - 1; }
    size_t next(size_t i) const { return (i + 1) & mask(); }
    size_t home(const void *data)
        const {    // addresses are multiples of 512: the product's upper half mixes
        return size_t((uint64_t(reinterpret_cast<uintptr_t>(data)) >> 9) * 0x9e3779b97f4a7c15u >>
                      32) &
               mask();
    }
    size_t place(const void *data) const {
        size_t i = home(data);
        while (slots[i] && slots[i]->data != data) i = next(i);
        return i;
    }
};

// Blocks that wait for events, first come first served on each stream. Block has a count `events`.
template <class Block> class EventQueue {
public:
    explicit EventQueue(const DriverMemory &driver) : driver(driver), total(0) {}

    bool empty() const { return total == 0; }

    // Records an event for the block. Where that fails the caller has to wait for the device.
    int record(int device, void *stream, Block *block) {
        Line *line = line_of(device, stream);
        if (line->waiting.size() == line->waiting.capacity())
            line->waiting.reserve(2 * line->waiting.size() + 16);
        std::vector<void *> &spare = spare_of(device);
        void *event;
        int status = DRIVER_OK;
        if (spare.empty()) {
            spare.reserve(++made);          // so that putting it back takes no memory
            status = driver.event_create(device, &event);
        } else {
            event = spare.back();
            spare.pop_back();
        }
        if (status != DRIVER_OK) return status;
        status = driver.event_record(device, event, stream);
        if (status != DRIVER_OK) {
            driver.event_destroy(event);
            return status;
        }
        line->waiting.push_back({event, block});
        ++block->events;
        ++total;
        return DRIVER_OK;
    }

    // Calls free_block for each block whose last event is done. A stream with a failed event stays
    // as it is: its blocks never return, and the driver will tell every later call what is wrong.
    template <class F> void poll(F &&free_block) {
        for (size_t i = 0; i < lines.size();) {
            Line &line = lines[i];
            while (line.first < line.waiting.size() &&
                   driver.event_query(line.device, line.waiting[line.first].event) == DRIVER_OK)
                pop(line, free_block);
            if (line.waiting.empty() && lines.size() > KEEP) {
                lines[i] = std::move(lines.back());
                lines.pop_back();
            } else {
                ++i;
            }
        }
    }

    // The same after waiting for every event.
    template <class F> int wait(F &&free_block) {
        int failed = DRIVER_OK;
        for (Line &line : lines)
            while (line.first < line.waiting.size()) {
                const int status =
                    driver.event_synchronize(line.device, line.waiting[line.first].event);
                if (status != DRIVER_OK) {
                    failed = status;
                    break;
                }
                pop(line, free_block);
            }
        return failed;
    }

private:
    static constexpr size_t KEEP = 64;      // empty lines, for streams that come again
    struct Entry {
        void *event;
        Block *block;
    };
    struct Line {
        int device;
        void *stream;
        size_t first;
        std::vector<Entry> waiting;         // from `first` on
    };
    const DriverMemory &driver;
    std::vector<Line> lines;
    std::vector<std::vector<void *>> spares;    // events by device
    size_t total, made = 0;

    Line *line_of(int device, void *stream) {
        for (Line &line : lines)
            if (line.stream == stream && line.device == device) return &line;
        lines.push_back({device, stream, 0, {}});
        return &lines.back();
    }
    std::vector<void *> &spare_of(int device) {
        if (size_t(device) >= spares.size()) spares.resize(device + 1);
        return spares[device];
    }
    template <class F> void pop(Line &line, F &free_block) {
        const Entry done = line.waiting[line.first++];
        if (line.first == line.waiting.size()) {
            line.waiting.clear();
            line.first = 0;
        } else if (line.first >= 256 && 2 * line.first >= line.waiting.size()) {
            line.waiting.erase(line.waiting.begin(), line.waiting.begin() + line.first);
            line.first = 0;
        }
        spare_of(line.device).push_back(done.event);
        --total;
        if (--done.block->events == 0) free_block(done.block);
    }
};

}  // namespace pt_cuda
