// The blocks of one device: requests, splits, merges, and what goes back to the driver. Only for
// block_allocator.cpp; block_allocator.hpp has the rules, block_parts.hpp the parts.
#ifndef PT_CUDA_DEVICE_BLOCKS_HPP
#define PT_CUDA_DEVICE_BLOCKS_HPP

#include <algorithm>
#include <memory>
#include <mutex>
#include <new>

#include "block_allocator.hpp"
#include "block_parts.hpp"
#include "memory_history.hpp"

namespace pt_cuda {

using namespace blocks;

struct BlockAllocator::Device {
    const int index;
    const DriverMemory &driver;
    const AllocatorSettings &settings;
    std::mutex mutex;
    Counters counters;
    size_t reserved = 0, cap = SIZE_MAX;
    double fraction = 1;
    uint64_t searches = 0;    // for large blocks: the clock of the garbage collection
    AddressTable<Block> allocated;
    EventQueue<Block> pending;
    bool caching = true;
    History history;
    int captures = 0;                           // under way
    Block *until_captured = nullptr;            // a list by `later`
    std::vector<std::unique_ptr<Pool>> pools;   // the common one first
    Segment *segments = nullptr;
    Block *spare_blocks = nullptr;
    Segment *spare_segments = nullptr;

    Device(int index, const DriverMemory &driver, const AllocatorSettings &settings)
        : index(index), driver(driver), settings(settings), pending(driver) {
        pools.push_back(std::make_unique<Pool>(0));
        pools[0]->rules.source = settings.source;
    }
    ~Device() {
        while (segments) {
            Segment *s = segments;
            segments = s->after;
            while (s->first) {
                Block *b = s->first;
                s->first = b->next;
                delete b;
            }
            delete s->range;
            delete s;
        }
        while (spare_blocks) {
            Block *b = spare_blocks;
            spare_blocks = b->next;
            delete b;
        }
        while (spare_segments) {
            Segment *s = spare_segments;
            spare_segments = s->after;
            delete s;
        }
    }

    // ---- blocks and segments as objects

    // Makes all that one request may need at most, so that no request fails half way: one segment,
    // two blocks, room in the table.
    void stock_up() {
        allocated.make_room();
        if (!spare_segments) {
            spare_segments = new Segment;
        }
        for (int have = spare_blocks ? (spare_blocks->next ? 2 : 1) : 0; have < 2; ++have) {
            std::unique_ptr<Block> b(new Block);
            FreeSet set;
            set.insert(FreeKey{0, 0, nullptr, b.get()});
            b->node = set.extract(set.begin());
            b->next = spare_blocks;
            spare_blocks = b.release();
        }
    }
    Block *take_block(Segment *segment, char *data, size_t size) {
        Block *b = spare_blocks;
        spare_blocks = b->next;
        b->segment = segment;
        b->data = data;
        b->size = size;
        b->prev = b->next = nullptr;
        return b;
    }
    void drop_block(Block *b) {
        b->next = spare_blocks;
        spare_blocks = b;
    }

    void set_free(Block *b) {
        b->node.value() = FreeKey{uintptr_t(b->segment->stream), b->size, b->data, b};
        b->since = searches;
        b->place = b->segment->free_set().insert(std::move(b->node)).position;
    }
    void set_taken(Block *b) { b->node = b->segment->free_set().extract(b->place); }

    Pool *pool_of(uint64_t id) {
        for (auto &p : pools)
            if (p->id == id) {
                p->retired = false;
                return p.get();
            }
        pools.push_back(std::make_unique<Pool>(id));
        return pools.back().get();
    }

    // ---- sizes

    size_t rounded(size_t n) const {
        if (n < QUANTUM) return QUANTUM;
        const int at = floor_log2(n) - 20;
        const size_t divisions = settings.roundup_divisions[at < 0 ? 0 : at > 15 ? 15 : at];
        if (divisions <= 1 || n <= QUANTUM * divisions) return round_up(n, QUANTUM);
        return round_up(n, (size_t(1) << floor_log2(n)) / divisions);
    }
    bool splits(const Block *b, size_t size) const {
        if (!b->segment->cached || b->segment->pool->rules.no_split) return false;
        const size_t rest = b->size - size;
        if (!b->segment->large || b->segment->range) return rest >= QUANTUM;
        return size < settings.max_split_size && rest > SMALL_REQUEST;
    }

    // ---- what is recorded

    // `stack` is the stack that allocated the memory, if memory is given back. The entry gets the
    // current stack in its place if this is recorded.
    void note(TraceEntry::Action action, const Segment *s, const char *data, size_t size,
              uint32_t stack = 0) {
        if (!history.on()) return;
        const uint32_t here =
            history.stack(action == TraceEntry::alloc || action == TraceEntry::segment_alloc ||
                                  action == TraceEntry::segment_map
                              ? 2
                              : 3);
        history.note(action, uintptr_t(data), size, s->stream, s->pool->id,
                     here ? here : history.keep(2, stack));
    }

    // ---- the driver's memory

    bool may_grow(size_t size) const { return size <= cap && reserved <= cap - size; }

    // A new segment as one block that is in no set, or NULL and the driver's status.
    Block *new_segment(Pool *pool, bool large, size_t size, void *stream, int *status,
                       bool cached) {
        *status = DRIVER_OUT_OF_MEMORY;
        if (!may_grow(size)) return nullptr;
        void *data = nullptr;
        if (void *function = pool->rules.source.allocate)
            *status = driver.foreign_allocate(function, index, size, stream, &data);
        else if (settings.backend == Backend::async)
            *status = driver.allocate_async(index, size, stream, &data);
        else
            *status = driver.allocate(index, size, &data);
        if (*status != DRIVER_OK) return nullptr;
        Segment *s = enter_segment(pool, large, static_cast<char *>(data), size, stream);
        s->cached = cached;
        if (size >= settings.max_split_size) counters.oversize_segments.add(1);
        ++counters.device_allocations;
        note(TraceEntry::segment_alloc, s, s->data, size);
        return s->first;
    }
    Segment *enter_segment(Pool *pool, bool large, char *data, size_t size, void *stream) {
        Segment *s = spare_segments;
        spare_segments = s->after;
        s->data = data;
        s->size = size;
        s->stream = stream;
        s->pool = pool;
        s->large = large;
        s->cached = true;
        s->stack = history.on() ? history.stack(1) : 0;
        s->before = nullptr;
        s->after = segments;
        if (segments) segments->before = s;
        segments = s;
        s->first = s->last = take_block(s, data, size);
        ++pool->segments;
        reserved += size;
        counters.add(SEGMENT, large, 1);
        counters.add(RESERVED_BYTES, large, size);
        return s;
    }

    // Gives a segment back to the driver. The segment has one block, which is in no set.
    int release_segment(Segment *s) {
        int status;
        counters.device_frees += s->range ? int64_t(s->range->count()) : 1;
        note(s->range ? TraceEntry::segment_unmap : TraceEntry::segment_free, s, s->data, s->size,
             s->stack);
        if (s->range) {
            status = s->range->close();
            delete s->range;
            s->range = nullptr;
        } else if (void *function = s->pool->rules.source.release) {
            status = driver.foreign_release(function, index, s->data, s->size, s->stream);
        } else if (settings.backend == Backend::async) {
            status = driver.release_async(index, s->data, s->stream);
        } else {
            status = driver.release(index, s->data);
        }
        reserved -= s->size;
        counters.subtract(SEGMENT, s->large, 1);
        counters.subtract(RESERVED_BYTES, s->large, s->size);
        if (s->size >= settings.max_split_size) counters.oversize_segments.subtract(1);
        if (s->before) s->before->after = s->after;
        else segments = s->after;
        if (s->after) s->after->before = s->before;
        --s->pool->segments;
        drop_block(s->first);
        s->first = s->last = nullptr;
        s->after = spare_segments;
        spare_segments = s;
        return status;
    }

    // ---- expandable segments

    // The free end of a pool's expandable segment, grown to `size` or more, as a block that is in
    // no set; or NULL and the driver's status.
    Block *expand(Pool *pool, bool large, size_t size, void *stream, int *status) {
        Segment *s = segments;
        while (s && !(s->range && s->pool == pool && s->large == large && s->stream == stream))
            s = s->after;
        std::unique_ptr<Range, Range::Close> made;
        if (!s) {
            made.reset(new Range(driver, index, large ? LARGE_SEGMENT : SMALL_SEGMENT));
            if ((*status = made->reserve()) != DRIVER_OK) return nullptr;
        }
        Range *range = s ? s->range : made.get();
        Block *last = s ? s->last : nullptr;
        const bool grows =
            last && last->is_free();    // it is too small: the search has not found it
        const size_t more = round_up(size - (grows ? last->size : 0), range->piece());
        *status = may_grow(more) ? range->grow(more) : DRIVER_OUT_OF_MEMORY;
        if (*status != DRIVER_OK) return nullptr;
        counters.device_allocations += int64_t(more / range->piece());
        if (!s) {
            s = enter_segment(pool, large, range->begin(), more, stream);
            s->range = made.release();
            note(TraceEntry::segment_map, s, s->data, more);
            return s->first;
        }
        note(TraceEntry::segment_map, s, s->data + s->size, more);
        reserved += more;
        counters.add(RESERVED_BYTES, large, more);
        if (grows) {
            set_taken(last);
            last->size += more;
        } else {
            Block *b = take_block(s, s->data + s->size, more);
            b->prev = last;
            last = last->next = s->last = b;
            counters.add(INACTIVE_SPLIT, large, 1);
        }
        s->size += more;
        if (!last->whole()) counters.add(INACTIVE_SPLIT_BYTES, large, more);
        return last;
    }

    // Unmaps whole pieces at the free end of a segment that is partly in use.
    int trim(Segment *s) {
        Block *b = s->last;
        const size_t pieces = b->size / s->range->piece(), gone = pieces * s->range->piece();
        if (!b->is_free() || b->whole() || !pieces) return DRIVER_OK;
        int status = driver.device_synchronize(index);    // work on the stream may still use it
        if (status != DRIVER_OK) return status;
        set_taken(b);
        status = s->range->shrink(pieces);
        counters.device_frees += int64_t(pieces);
        s->size -= gone;
        reserved -= gone;
        counters.subtract(RESERVED_BYTES, s->large, gone);
        counters.subtract(INACTIVE_SPLIT_BYTES, s->large, gone);
        note(TraceEntry::segment_unmap, s, s->data + s->size, gone, s->stack);
        b->size -= gone;
        if (b->size) {
            set_free(b);
            return status;
        }
        counters.subtract(INACTIVE_SPLIT, s->large, 1);
        s->last = b->prev;
        s->last->next = nullptr;
        drop_block(b);
        return status;
    }

    // ---- what goes back

    int release_cached(Block *b) {
        set_taken(b);
        return release_segment(b->segment);
    }

    // Releases the whole free segments of a set, if wanted(their block) is true.
    template <class F> int release_whole(FreeSet &set, F &&wanted) {
        int failed = DRIVER_OK;
        for (auto it = set.begin(); it != set.end();) {
            Block *b = (it++)->block;
            if (!b->whole() || !wanted(b)) continue;
            int status = b->segment->range ? driver.device_synchronize(index) : DRIVER_OK;
            if (status == DRIVER_OK) status = release_cached(b);
            if (status != DRIVER_OK) failed = status;
        }
        return failed;
    }
    int release_all_cached(bool retired_alone = false) {
        if (captures) return DRIVER_OK;
        int failed = wait_for_events();
        for (auto &p : pools) {
            if (p->id ? !p->retired : retired_alone) continue;
            for (FreeSet *set : {&p->large, &p->small}) {
                const int status = release_whole(*set, [](Block *) { return true; });
                if (status != DRIVER_OK) failed = status;
            }
        }
        for (Segment *s = segments; s; s = s->after) {
            if (!s->range || (s->pool->id ? !s->pool->retired : retired_alone)) continue;
            const int status = trim(s);
            if (status != DRIVER_OK) failed = status;
        }
        return failed;
    }
    void drop_retired_pools() {
        pools.erase(std::remove_if(pools.begin(), pools.end(),
                                   [](const auto &p) { return p->retired && !p->segments; }),
                    pools.end());
    }

    // With max_split_size, large blocks serve only large requests of about their size: to give back
    // one block that is large enough, or several blocks, can be all that is needed.
    bool release_oversize(Pool *pool, size_t size, void *stream) {
        if (captures || settings.max_split_size == SIZE_MAX || (pool->id && !pool->retired))
            return false;
        FreeSet &set = pool->large;
        const size_t need = std::max(size, settings.max_split_size);
        auto it = set.lower_bound(FreeKey{uintptr_t(stream), need, nullptr, nullptr});
        if (it != set.end() && it->stream == uintptr_t(stream)) {
            if (!it->block->whole()) return false;
            release_cached(it->block);
            return true;
        }
        size_t released = 0;
        while (released < need && it != set.begin()) {
            --it;
            if (it->stream != uintptr_t(stream) || it->size < settings.max_split_size) break;
            Block *b = it->block;
            if (!b->whole()) continue;
            ++it;                       // stays valid when b is taken out
            released += b->size;
            release_cached(b);
        }
        return released >= need;
    }

    // Gives back the whole large blocks that have been unused for longest, down to the threshold.
    // PyTorch does so only where a cap is set; here the device's memory is the cap if there is
    // none.
    void collect_garbage() {
        if (captures) return;
        size_t limit = cap, unused;
        if (limit == SIZE_MAX && driver.info(index, &unused, &limit) != DRIVER_OK) return;
        const size_t threshold = size_t(settings.garbage_collection_threshold * double(limit));
        if (reserved <= threshold) return;
        const size_t target = reserved - threshold;
        FreeSet &set = pools[0]->large;
        uint64_t ages = 0, count = 0;
        for (const FreeKey &key : set)
            if (key.block->whole()) {
                ages += searches - key.block->since;
                ++count;
            }
        size_t gone = 0;
        for (bool any = true; any && gone < target && count;) {
            any = false;
            const double old = double(ages) / double(count);
            release_whole(set, [&](Block *b) {
                const uint64_t age = searches - b->since;
                if (gone >= target || double(age) < old) return false;
                any = true;
                gone += b->size;
                ages -= age;
                --count;
                return true;
            });
        }
    }

    // ---- events

    void poll_events() {
        if (!captures && !pending.empty()) pending.poll([this](Block *b) { set_cached(b); });
    }
    int wait_for_events() {
        ++counters.waits;
        return pending.wait([this](Block *b) { set_cached(b); });
    }

    void postpone(Block *b) {
        b->later = until_captured;
        until_captured = b;
    }
    // Records events on all streams that use the block; if this fails, waits for the whole device
    // instead.
    void defer(Block *b) {
        if (captures) {
            postpone(b);
            return;
        }
        bool done = true;
        for (void *stream : b->uses) {
            int status;
            try {
                status = pending.record(index, stream, b);
            } catch (const std::bad_alloc &) {
                status = -1;
            }
            done = done && status == DRIVER_OK;
        }
        if (!done && driver.device_synchronize(index) != DRIVER_OK)
            ++b->events;    // lost: nothing counts it down
        b->uses.clear();
        if (!b->events) set_cached(b);
    }

    void end_capture() {
        if (--captures) return;
        while (Block *b = until_captured) {
            until_captured = b->later;
            defer(b);
        }
    }

    // ---- requests

    Block *search(Pool *pool, bool large, size_t size, void *stream) {
        FreeSet &set = large ? pool->large : pool->small;
        if (large) ++searches;
        auto it = set.lower_bound(FreeKey{uintptr_t(stream), size, nullptr, nullptr});
        if (it == set.end() || it->stream != uintptr_t(stream)) return nullptr;
        const size_t bound = settings.max_split_size;
        if (size < bound ? it->size >= bound : it->size - size >= LARGE_SEGMENT) return nullptr;
        Block *b = it->block;
        set_taken(b);
        return b;
    }

    void *allocate(size_t nbytes, void *stream, uint64_t pool_id, AllocatorFailure *why) {
        *why = AllocatorFailure{DRIVER_OUT_OF_MEMORY, index, nbytes, nbytes, 0, 0, 0, 0, cap, 0};
        Pool *pool = nullptr;
        size_t size = 0;
        if (nbytes <= MAX_REQUEST) {
            stock_up();
            poll_events();
            pool = pool_of(pool_id);
            size = rounded(nbytes);
            if (Block *b = find(pool, size, stream, why)) return hand_out(b, size, nbytes);
        }
        if (why->status == DRIVER_OUT_OF_MEMORY) ++counters.failures;
        driver.info(index, &why->device_free, &why->device_total);
        if (history.on() && why->status == DRIVER_OUT_OF_MEMORY)
            history.note(TraceEntry::oom, why->device_free, nbytes, stream, pool_id,
                         history.stack(2));
        why->allocated = size_t(counters.of[ALLOCATED_BYTES][0].current);
        why->reserved = reserved;
        if (pool)
            for (const FreeKey &key : size > SMALL_REQUEST ? pool->large : pool->small)
                if (key.stream == uintptr_t(stream))
                    why->largest_free = std::max(why->largest_free, key.size);
        return nullptr;
    }

    // A block of at least `size` that is in no set.
    Block *find(Pool *pool, size_t size, void *stream, AllocatorFailure *why) {
        const bool large = size > SMALL_REQUEST;
        const bool cached = settings.backend == Backend::native && (caching || pool->id);
        const bool expands =
            cached && settings.expandable && !pool->rules.no_split && !pool->rules.source.allocate;
        why->segment = cached ? segment_size(size) : size;
        int *status = &why->status;
        if (cached) {
            if (Block *b = search(pool, large, size, stream)) return b;
            if (settings.garbage_collection_threshold > 0) collect_garbage();
        }
        const auto obtain = [&] {
            return expands ? expand(pool, large, size, stream, status)
                           : new_segment(pool, large, why->segment, stream, status, cached);
        };
        Block *b = obtain();
        if (b || *status != DRIVER_OUT_OF_MEMORY) return b;
        if (cached && release_oversize(pool, size, stream)) {
            b = obtain();
            if (b || *status != DRIVER_OUT_OF_MEMORY) return b;
        }
        release_all_cached();
        if (settings.backend == Backend::async) driver.device_synchronize(index);
        ++counters.retries;
        b = cached ? search(pool, large, size, stream)
                   : nullptr;    // a block that waited may be part of a segment
        if (!b) b = obtain();
        if (b || *status != DRIVER_OUT_OF_MEMORY || pool->id) return b;
        for (auto &p : pools)
            if (p->rules.use_on_oom && (b = search(p.get(), large, size, stream))) break;
        return b;
    }

    void *hand_out(Block *b, size_t size, size_t nbytes) {
        const bool large = b->segment->large, was_split = !b->whole();
        if (splits(b, size)) {
            Block *rest = b;
            b = take_block(rest->segment, rest->data, size);
            b->prev = rest->prev;
            b->next = rest;
            if (b->prev) b->prev->next = b;
            else b->segment->first = b;
            rest->prev = b;
            rest->data += size;
            rest->size -= size;
            set_free(rest);
            if (was_split) {
                counters.subtract(INACTIVE_SPLIT_BYTES, large, size);
            } else {
                counters.add(INACTIVE_SPLIT, large, 1);
                counters.add(INACTIVE_SPLIT_BYTES, large, rest->size);
            }
        } else if (was_split) {
            counters.subtract(INACTIVE_SPLIT, large, 1);
            counters.subtract(INACTIVE_SPLIT_BYTES, large, b->size);
        }
        b->allocated = true;
        b->requested = nbytes;
        allocated.insert(b);
        if (history.on()) {
            b->stack = history.stack(1);
            note(TraceEntry::alloc, b->segment, b->data, b->size);
        }
        counters.add(ALLOCATION, large, 1);
        counters.add(ALLOCATED_BYTES, large, b->size);
        counters.add(ACTIVE, large, 1);
        counters.add(ACTIVE_BYTES, large, b->size);
        counters.add(REQUESTED_BYTES, large, nbytes);
        if (b->size >= settings.max_split_size) counters.oversize_allocations.add(1);
        return b->data;
    }

    bool release(void *data) {
        Block *b = allocated.remove(data);
        if (!b) return false;
        const bool large = b->segment->large;
        b->allocated = false;
        counters.subtract(ALLOCATION, large, 1);
        counters.subtract(ALLOCATED_BYTES, large, b->size);
        if (b->size >= settings.max_split_size) counters.oversize_allocations.subtract(1);
        note(TraceEntry::free_requested, b->segment, b->data, b->size, b->stack);
        if (b->uses.empty()) set_cached(b);
        else defer(b);
        return true;
    }

    // Joins b with its neighbour if the neighbour is free; returns the neighbour's bytes, or 0.
    size_t join(Block *b, Block *neighbour) {
        if (!neighbour || !neighbour->is_free()) return 0;
        const size_t size = neighbour->size;
        set_taken(neighbour);
        if (neighbour == b->prev) {
            b->data = neighbour->data;
            b->prev = neighbour->prev;
            if (b->prev) b->prev->next = b;
            else b->segment->first = b;
        } else {
            b->next = neighbour->next;
            if (b->next) b->next->prev = b;
            else b->segment->last = b;
        }
        b->size += size;
        drop_block(neighbour);
        return size;
    }

    // A block that nothing uses any more becomes free.
    void set_cached(Block *b) {
        Segment *s = b->segment;
        if (captures && !s->cached) {
            postpone(b);
            return;
        }
        const bool large = s->large;
        const size_t size = b->size, requested = b->requested;
        note(TraceEntry::free_completed, s, b->data, size, b->stack);
        b->stack = 0;
        counters.subtract(ACTIVE, large, 1);
        counters.subtract(ACTIVE_BYTES, large, size);
        counters.subtract(REQUESTED_BYTES, large, requested);
        if (!s->cached) {
            release_segment(s);
            return;
        }
        int64_t blocks = 0, bytes = 0;          // change of the inactive parts of split segments
        for (Block *neighbour : {b->prev, b->next})
            if (const size_t joined = join(b, neighbour)) {
                --blocks;
                bytes -= int64_t(joined);
            }
        if (!b->whole()) {
            ++blocks;
            bytes += int64_t(b->size);
        }
        set_free(b);
        if (blocks > 0) counters.add(INACTIVE_SPLIT, large, size_t(blocks));
        else if (blocks < 0) counters.subtract(INACTIVE_SPLIT, large, size_t(-blocks));
        if (bytes > 0) counters.add(INACTIVE_SPLIT_BYTES, large, size_t(bytes));
        else if (bytes < 0) counters.subtract(INACTIVE_SPLIT_BYTES, large, size_t(-bytes));
    }
};

}  // namespace pt_cuda
#endif
