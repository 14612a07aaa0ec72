// The caching allocator of device memory: each call under the lock of its device
// (device_blocks.hpp).
#include "block_allocator.hpp"

#include <algorithm>
#include <mutex>

#include "device_blocks.hpp"

namespace pt_cuda {

// ---- the interface: each call locks its device

BlockAllocator::BlockAllocator(const DriverMemory &driver, int devices,
                               const AllocatorSettings &settings)
    : driver(driver), chosen(settings) {
    if (chosen.expandable) chosen.max_split_size = SIZE_MAX;
    for (int i = 0; i < devices; ++i) state.emplace_back(new Device(i, this->driver, chosen));
}
BlockAllocator::~BlockAllocator() = default;

void *BlockAllocator::allocate(int device, size_t nbytes, void *stream, AllocatorFailure *why,
                               uint64_t pool) {
    Device *d = at(device);
    if (!d) {
        *why = AllocatorFailure{INVALID_DEVICE, device, nbytes, nbytes, 0, 0, 0, 0, SIZE_MAX, 0};
        return nullptr;
    }
    std::lock_guard<std::mutex> hold(d->mutex);
    try {
        return d->allocate(nbytes, stream, pool, why);
    } catch (const std::bad_alloc &) {    // of the host; stock_up, pool_of: nothing has changed yet
        why->status = DRIVER_OUT_OF_MEMORY;
        return nullptr;
    }
}

bool BlockAllocator::release(int device, void *data) {
    Device *d = at(device);
    if (!d) return false;
    std::lock_guard<std::mutex> hold(d->mutex);
    return d->release(data);
}

bool BlockAllocator::record_stream(int device, void *data, void *stream) {
    Device *d = at(device);
    if (!d) return false;
    std::lock_guard<std::mutex> hold(d->mutex);
    Block *b = d->allocated.find(data);
    if (!b) return false;
    if (stream != b->segment->stream &&
        std::find(b->uses.begin(), b->uses.end(), stream) == b->uses.end())
        b->uses.push_back(stream);
    return true;
}

int BlockAllocator::empty_cache(int device, bool retired_alone) {
    Device *d = at(device);
    if (!d) return INVALID_DEVICE;
    std::lock_guard<std::mutex> hold(d->mutex);
    const int status = d->release_all_cached(retired_alone);
    d->drop_retired_pools();
    return status;
}

void BlockAllocator::make_pool(int device, uint64_t pool, const PoolRules &rules) {
    Device *d = at(device);
    if (!d) return;
    std::lock_guard<std::mutex> hold(d->mutex);
    d->pool_of(pool)->rules = rules;
}

void BlockAllocator::set_caching(int device, bool on) {
    Device *d = at(device);
    if (!d) return;
    std::lock_guard<std::mutex> hold(d->mutex);
    d->caching = on;
}

void BlockAllocator::retire_pool(int device, uint64_t pool) {
    Device *d = at(device);
    if (!d) return;
    std::lock_guard<std::mutex> hold(d->mutex);
    for (auto &p : d->pools)
        if (p->id == pool && pool) p->retired = true;
}

void BlockAllocator::begin_capture() {
    for (auto &d : state) {
        std::lock_guard<std::mutex> hold(d->mutex);
        ++d->captures;
    }
}

void BlockAllocator::end_capture() {
    for (auto &d : state) {
        std::lock_guard<std::mutex> hold(d->mutex);
        d->end_capture();
    }
}

int BlockAllocator::set_memory_fraction(int device, double fraction) {
    Device *d = at(device);
    if (!d) return INVALID_DEVICE;
    std::lock_guard<std::mutex> hold(d->mutex);
    size_t unused, total;
    const int status = driver.info(device, &unused, &total);
    if (status != DRIVER_OK) return status;
    d->fraction = fraction;
    d->cap = size_t(fraction * double(total));
    return DRIVER_OK;
}

double BlockAllocator::memory_fraction(int device) const {
    Device *d = at(device);
    if (!d) return 1;
    std::lock_guard<std::mutex> hold(d->mutex);
    return d->fraction;
}

std::vector<AllocatorStat> BlockAllocator::stats(int device) const {
    std::vector<AllocatorStat> out;
    Device *d = at(device);
    if (!d) return out;
    out.reserve(KINDS * 12 + 16);
    std::lock_guard<std::mutex> hold(d->mutex);
    const Counters &c = d->counters;
    for (int i = 0; i < KINDS * 3; ++i) push(out, KIND_KEYS + 4 * i, c.of[i / 3][i % 3]);
    push(out, OVERSIZE_KEYS, c.oversize_allocations);
    push(out, OVERSIZE_KEYS + 4, c.oversize_segments);
    out.push_back({"max_split_size", chosen.max_split_size > size_t(INT64_MAX)
                                         ? -1
                                         : int64_t(chosen.max_split_size)});
    out.push_back({"num_alloc_retries", c.retries});
    out.push_back({"num_ooms", c.failures});
    out.push_back({"num_sync_all_streams", c.waits});
    out.push_back({"num_device_alloc", c.device_allocations});
    out.push_back({"num_device_free", c.device_frees});
    return out;
}

void BlockAllocator::reset_peak(int device) {
    Device *d = at(device);
    if (!d) return;
    std::lock_guard<std::mutex> hold(d->mutex);
    d->counters.each([](Counter &c) { c.reset_peak(); });
}

void BlockAllocator::reset_accumulated(int device) {
    Device *d = at(device);
    if (!d) return;
    std::lock_guard<std::mutex> hold(d->mutex);
    d->counters.each([](Counter &c) { c.reset_accumulated(); });
    d->counters.retries = d->counters.failures = 0;
}

std::vector<BlockRow> BlockAllocator::snapshot(int device) const {
    std::vector<BlockRow> rows;
    Device *d = at(device);
    if (!d) return rows;
    std::lock_guard<std::mutex> hold(d->mutex);
    for (const Segment *s = d->segments; s; s = s->after)
        for (const Block *b = s->first; b; b = b->next)
            rows.push_back({uintptr_t(s->data), uintptr_t(b->data), s->size, b->size, b->requested,
                            s->stream, s->pool->id, s->large, s->range != nullptr,
                            b->allocated   ? BlockRow::allocated
                            : b->is_free() ? BlockRow::inactive
                                           : BlockRow::pending_free,
                            b->stack, s->stack});
    std::sort(rows.begin(), rows.end(),
              [](const BlockRow &a, const BlockRow &b) { return a.address < b.address; });
    return rows;
}

void BlockAllocator::record_history(int device, const HistoryRules &rules, bool clear) {
    Device *d = at(device);
    if (!d) return;
    std::lock_guard<std::mutex> hold(d->mutex);
    d->history.start(rules, clear);
}

std::vector<TraceEntry> BlockAllocator::history(int device) const {
    Device *d = at(device);
    if (!d) return {};
    std::lock_guard<std::mutex> hold(d->mutex);
    return d->history.entries();
}

void BlockAllocator::note_snapshot(int device) {
    Device *d = at(device);
    if (!d) return;
    std::lock_guard<std::mutex> hold(d->mutex);
    if (d->history.on())
        d->history.note(TraceEntry::snapshot, 0, size_t(d->counters.of[ACTIVE_BYTES][0].current),
                        nullptr, 0, 0);
}

}  // namespace pt_cuda
