// The caching allocator of device memory (block_allocator.hpp has the rules).
//
// A Segment is what the driver gave; its Blocks tile it, linked in order of addresses. A block is allocated, pending
// (released, but events of other streams are still to come) or free; only free blocks stand in a FreeSet, ordered by
// stream, size, address. A block owns one node of a FreeSet for its whole life: while the block is not free it keeps
// the node itself, so that neither a hit nor a release takes or gives memory of the host.
#include "block_allocator.hpp"

#include <algorithm>
#include <mutex>
#include <new>
#include <set>

#include "allocator_parts.hpp"

namespace pt_cuda {
namespace {

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
    Block *prev = nullptr, *next = nullptr;     // neighbours in the segment; of spare blocks: the next spare one
    Segment *segment = nullptr;
    bool allocated = false;
    int events = 0;                             // that are recorded and not known to be done
    uint64_t since = 0;                         // value of `searches` when it became free
    std::vector<void *> uses;                   // other streams that use it
    Block *later = nullptr;
    FreeSet::node_type node;                    // empty exactly while the block stands in a set, at `place`
    FreeSet::iterator place;
    bool whole() const { return !prev && !next; }
    bool is_free() const { return !allocated && !events && uses.empty(); }
};

struct Pool {
    explicit Pool(uint64_t id) : id(id) {}
    const uint64_t id;
    size_t segments = 0;
    bool retired = false;       // of a private pool: its whole free segments may go back, and it with the last
    FreeSet small, large;
};

struct Segment {
    char *data = nullptr;
    size_t size = 0;
    void *stream = nullptr;
    Pool *pool = nullptr;
    bool large = false;
    Block *first = nullptr;
    Segment *before = nullptr, *after = nullptr;        // all of the device; of spare ones: `after` is the next
    FreeSet &free_set() const { return large ? pool->large : pool->small; }
};

enum Kind {
    ALLOCATION, SEGMENT, ACTIVE, INACTIVE_SPLIT,
    ALLOCATED_BYTES, RESERVED_BYTES, ACTIVE_BYTES, INACTIVE_SPLIT_BYTES, REQUESTED_BYTES, KINDS
};
#define PT_COUNTER(name) name ".current", name ".peak", name ".allocated", name ".freed"
#define PT_COUNTERS(name) PT_COUNTER(name ".all"), PT_COUNTER(name ".large_pool"), PT_COUNTER(name ".small_pool")
const char *const KIND_KEYS[KINDS * 12] = {             // Kind's order, then all, large, small
    PT_COUNTERS("allocation"), PT_COUNTERS("segment"), PT_COUNTERS("active"), PT_COUNTERS("inactive_split"),
    PT_COUNTERS("allocated_bytes"), PT_COUNTERS("reserved_bytes"), PT_COUNTERS("active_bytes"),
    PT_COUNTERS("inactive_split_bytes"), PT_COUNTERS("requested_bytes"),
};
const char *const OVERSIZE_KEYS[8] = {PT_COUNTER("oversize_allocations"), PT_COUNTER("oversize_segments")};
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

int floor_log2(size_t n) {
    int bits = 0;
    while (n >>= 1) ++bits;
    return bits;
}

size_t round_up(size_t n, size_t unit) { return (n + unit - 1) / unit * unit; }

size_t segment_size(size_t size) {
    if (size <= SMALL_REQUEST) return SMALL_SEGMENT;
    return size < OWN_SEGMENT ? LARGE_SEGMENT : round_up(size, ROUND_SEGMENT);
}

void push(std::vector<AllocatorStat> &out, const char *const *keys, const Counter &c) {
    out.push_back({keys[0], c.current});
    out.push_back({keys[1], c.peak});
    out.push_back({keys[2], c.allocated});
    out.push_back({keys[3], c.freed});
}

}  // namespace

struct BlockAllocator::Device {
    const int index;
    const DriverMemory &driver;
    const AllocatorSettings &settings;
    std::mutex mutex;
    Counters counters;
    size_t reserved = 0, cap = SIZE_MAX;
    double fraction = 1;
    uint64_t searches = 0;                      // for large blocks: the clock of the garbage collection
    AddressTable<Block> allocated;
    EventQueue<Block> pending;
    int captures = 0;                           // under way
    Block *until_captured = nullptr;            // a list by `later`
    std::vector<std::unique_ptr<Pool>> pools;   // the common one first
    Segment *segments = nullptr;
    Block *spare_blocks = nullptr;
    Segment *spare_segments = nullptr;

    Device(int index, const DriverMemory &driver, const AllocatorSettings &settings)
        : index(index), driver(driver), settings(settings), pending(driver) {
        pools.push_back(std::make_unique<Pool>(0));
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

    // What one request may need at most, so that nothing fails half way: one segment, two blocks, room in the table.
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
        if (settings.backend != Backend::native) return false;
        const size_t rest = b->size - size;
        if (!b->segment->large) return rest >= QUANTUM;
        return size < settings.max_split_size && rest > SMALL_REQUEST;
    }

    // ---- the driver's memory

    // A new segment as one block that stands in no set, or NULL and the driver's status.
    Block *new_segment(Pool *pool, bool large, size_t size, void *stream, int *status) {
        if (size > cap || reserved > cap - size) {
            *status = DRIVER_OUT_OF_MEMORY;
            return nullptr;
        }
        void *data = nullptr;
        *status = settings.backend == Backend::async ? driver.allocate_async(index, size, stream, &data)
                                                     : driver.allocate(index, size, &data);
        if (*status != DRIVER_OK) return nullptr;
        Segment *s = spare_segments;
        spare_segments = s->after;
        s->data = static_cast<char *>(data);
        s->size = size;
        s->stream = stream;
        s->pool = pool;
        s->large = large;
        s->before = nullptr;
        s->after = segments;
        if (segments) segments->before = s;
        segments = s;
        s->first = take_block(s, s->data, size);
        ++pool->segments;
        reserved += size;
        counters.add(SEGMENT, large, 1);
        counters.add(RESERVED_BYTES, large, size);
        if (size >= settings.max_split_size) counters.oversize_segments.add(1);
        ++counters.device_allocations;
        return s->first;
    }

    // A segment whose one block stands in no set goes back to the driver.
    int release_segment(Segment *s) {
        const int status = settings.backend == Backend::async ? driver.release_async(index, s->data, s->stream)
                                                              : driver.release(index, s->data);
        reserved -= s->size;
        counters.subtract(SEGMENT, s->large, 1);
        counters.subtract(RESERVED_BYTES, s->large, s->size);
        if (s->size >= settings.max_split_size) counters.oversize_segments.subtract(1);
        ++counters.device_frees;
        if (s->before) s->before->after = s->after;
        else segments = s->after;
        if (s->after) s->after->before = s->before;
        --s->pool->segments;
        drop_block(s->first);
        s->first = nullptr;
        s->after = spare_segments;
        spare_segments = s;
        return status;
    }
    int release_cached(Block *b) {
        set_taken(b);
        return release_segment(b->segment);
    }

    // The whole free blocks of a set, all or those that `wanted` names.
    template <class F> int release_whole(FreeSet &set, F &&wanted) {
        int failed = DRIVER_OK;
        for (auto it = set.begin(); it != set.end();) {
            Block *b = (it++)->block;
            if (!b->whole() || !wanted(b)) continue;
            const int status = release_cached(b);
            if (status != DRIVER_OK) failed = status;
        }
        return failed;
    }
    int release_all_cached() {
        int failed = wait_for_events();
        for (size_t i = 0; i < pools.size(); ++i) {
            Pool &p = *pools[i];
            if (p.id && !p.retired) continue;
            for (FreeSet *set : {&p.large, &p.small}) {
                const int status = release_whole(*set, [](Block *) { return true; });
                if (status != DRIVER_OK) failed = status;
            }
        }
        return failed;
    }
    void drop_retired_pools() {
        pools.erase(std::remove_if(pools.begin(), pools.end(),
                                   [](const auto &p) { return p->retired && !p->segments; }), pools.end());
    }

    // With max_split_size, large blocks serve only large requests of about their size, so that giving back one that is
    // large enough, or several, can be all that is needed.
    bool release_oversize(Pool *pool, size_t size, void *stream) {
        if (settings.max_split_size == SIZE_MAX) return false;
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
            ++it;                       // stays good when b goes
            released += b->size;
            release_cached(b);
        }
        return released >= need;
    }

    // Gives back those whole large blocks that have been unused for longest, down to the threshold. PyTorch does so
    // only where a cap is set; here the device's memory is the cap if there is none.
    void collect_garbage() {
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
        if (captures) return DRIVER_OK;
        ++counters.waits;
        return pending.wait([this](Block *b) { set_cached(b); });
    }

    // Events on all streams that use the block; where that fails, all of the device is waited for instead.
    void defer(Block *b) {
        if (captures) {
            b->later = until_captured;
            until_captured = b;
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
        if (!done && driver.device_synchronize(index) != DRIVER_OK) ++b->events;    // lost: nothing counts it down
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
        why->allocated = size_t(counters.of[ALLOCATED_BYTES][0].current);
        why->reserved = reserved;
        if (pool)
            for (const FreeKey &key : size > SMALL_REQUEST ? pool->large : pool->small)
                if (key.stream == uintptr_t(stream)) why->largest_free = std::max(why->largest_free, key.size);
        return nullptr;
    }

    // A block of at least `size` that stands in no set.
    Block *find(Pool *pool, size_t size, void *stream, AllocatorFailure *why) {
        const bool large = size > SMALL_REQUEST, native = settings.backend == Backend::native;
        why->segment = native ? segment_size(size) : size;
        int *status = &why->status;
        if (native) {
            if (Block *b = search(pool, large, size, stream)) return b;
            if (settings.garbage_collection_threshold > 0) collect_garbage();
        }
        Block *b = new_segment(pool, large, why->segment, stream, status);
        if (b || *status != DRIVER_OUT_OF_MEMORY) return b;
        if (native && release_oversize(pool, size, stream)) {
            b = new_segment(pool, large, why->segment, stream, status);
            if (b || *status != DRIVER_OUT_OF_MEMORY) return b;
        }
        release_all_cached();
        if (settings.backend == Backend::async) driver.device_synchronize(index);
        ++counters.retries;
        b = native ? search(pool, large, size, stream) : nullptr;       // what waited may be part of a segment
        return b ? b : new_segment(pool, large, why->segment, stream, status);
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
        if (b->uses.empty()) set_cached(b);
        else defer(b);
        return true;
    }

    // Joins b with its neighbour if that is free; the number of bytes that it had.
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
        }
        b->size += size;
        drop_block(neighbour);
        return size;
    }

    // A block that nothing uses any more becomes free.
    void set_cached(Block *b) {
        Segment *s = b->segment;
        const bool large = s->large;
        const size_t size = b->size, requested = b->requested;
        counters.subtract(ACTIVE, large, 1);
        counters.subtract(ACTIVE_BYTES, large, size);
        counters.subtract(REQUESTED_BYTES, large, requested);
        if (settings.backend != Backend::native) {
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

// ---- the interface: each call locks its device

BlockAllocator::BlockAllocator(const DriverMemory &driver, int devices, const AllocatorSettings &settings)
    : driver(driver), chosen(settings) {
    for (int i = 0; i < devices; ++i) state.emplace_back(new Device(i, this->driver, chosen));
}
BlockAllocator::~BlockAllocator() = default;

void *BlockAllocator::allocate(int device, size_t nbytes, void *stream, AllocatorFailure *why, uint64_t pool) {
    Device *d = at(device);
    if (!d) {
        *why = AllocatorFailure{INVALID_DEVICE, device, nbytes, nbytes, 0, 0, 0, 0, SIZE_MAX, 0};
        return nullptr;
    }
    std::lock_guard<std::mutex> hold(d->mutex);
    try {
        return d->allocate(nbytes, stream, pool, why);
    } catch (const std::bad_alloc &) {          // of the host; stock_up, pool_of: nothing has changed yet
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
    if (stream != b->segment->stream && std::find(b->uses.begin(), b->uses.end(), stream) == b->uses.end())
        b->uses.push_back(stream);
    return true;
}

int BlockAllocator::empty_cache(int device) {
    Device *d = at(device);
    if (!d) return INVALID_DEVICE;
    std::lock_guard<std::mutex> hold(d->mutex);
    const int status = d->release_all_cached();
    d->drop_retired_pools();
    return status;
}

void BlockAllocator::retire_pool(int device, uint64_t pool) {
    Device *d = at(device);
    if (!d) return;
    std::lock_guard<std::mutex> hold(d->mutex);
    for (auto &p : d->pools)
        if (p->id == pool && pool) p->retired = true;
}

void BlockAllocator::begin_capture(int device) {
    Device *d = at(device);
    if (!d) return;
    std::lock_guard<std::mutex> hold(d->mutex);
    ++d->captures;
}

void BlockAllocator::end_capture(int device) {
    Device *d = at(device);
    if (!d) return;
    std::lock_guard<std::mutex> hold(d->mutex);
    d->end_capture();
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
    out.push_back({"max_split_size", chosen.max_split_size > size_t(INT64_MAX) ? -1 : int64_t(chosen.max_split_size)});
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
            rows.push_back({uintptr_t(s->data), uintptr_t(b->data), s->size, b->size, b->requested, s->stream,
                            s->pool->id, s->large,
                            b->allocated ? BlockRow::allocated : b->is_free() ? BlockRow::inactive
                                                                              : BlockRow::pending_free});
    std::sort(rows.begin(), rows.end(), [](const BlockRow &a, const BlockRow &b) { return a.address < b.address; });
    return rows;
}

}  // namespace pt_cuda
