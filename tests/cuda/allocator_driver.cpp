// The allocators over a pretended driver, for allocator_library.py: addresses that are never
// touched, a limit of memory per device, events that are done when the test says so, and faults on
// demand. With -DHAMMER a program of its own, in which many threads use the allocators at once.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <iterator>
#include <map>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "block_allocator.hpp"

using namespace pt_cuda;

#ifndef HAMMER
static std::atomic<long> host_allocations{0};
void *operator new(size_t n) {
    ++host_allocations;
    if (void *p = std::malloc(n ? n : 1)) return p;
    throw std::bad_alloc();
}
void operator delete(void *p) noexcept { std::free(p); }
void operator delete(void *p, size_t) noexcept { std::free(p); }
#endif

namespace {

constexpr size_t STEP = size_t(2) << 20;
enum Function {
    ALLOCATE,
    RELEASE,
    INFO,
    CREATE,
    RECORD,
    QUERY,
    SYNCHRONIZE,
    DESTROY,
    DEVICE,
    HOST_ALLOCATE,
    HOST_RELEASE,
    FOREIGN_ALLOCATE,
    FOREIGN_RELEASE,
    GRANULARITY,
    RESERVE,
    UNRESERVE,
    MAP,
    UNMAP,
    FUNCTIONS
};

struct Event {
    int device;
    void *stream;
    long ticket;
};

struct Foreign {
    size_t size;
    void *stream;
    size_t function;
};

struct Pretended {
    std::mutex mutex;
    size_t limit = size_t(1) << 40, host_limit = size_t(1) << 40;
    std::map<int, size_t> used, next;
    std::map<std::pair<int, void *>, size_t> live;
    size_t host_used = 0, host_next = 0, foreign_used = 0, foreign_next = 0,
           foreign_limit = size_t(1) << 40;
    std::map<void *, size_t> host_live;
    std::map<void *, Foreign> foreign_live;
    std::map<size_t, size_t> ranges;                            // reserved addresses
    std::map<size_t, std::pair<size_t, uint64_t>> mapped;       // bytes and handle by address
    uint64_t handles = 0;
    bool threads = false;    // others may give the device work at any time
    std::map<std::pair<int, void *>, long> recorded, done;
    long calls[FUNCTIONS] = {}, events = 0, mistakes = 0;
    int fault[FUNCTIONS] = {}, fault_after[FUNCTIONS] = {}, fault_count[FUNCTIONS] = {};

    int enter(Function f) {
        ++calls[f];
        if (!fault_count[f] || fault_after[f]-- > 0) return DRIVER_OK;
        --fault_count[f];
        fault_after[f] = 0;
        return fault[f];
    }
} *fake = nullptr;

#define ENTER(f) \
    std::lock_guard<std::mutex> hold(fake->mutex); \
    if (int status = fake->enter(f)) return status

int fake_allocate(int device, size_t n, void **out) {
    ENTER(ALLOCATE);
    if (n > fake->limit - fake->used[device]) return DRIVER_OUT_OF_MEMORY;
    fake->used[device] += n;
    size_t &next = fake->next[device];
    *out = reinterpret_cast<void *>((size_t(device + 1) << 44) + next);
    next += (n + STEP - 1) / STEP * STEP + STEP;
    fake->live[{device, *out}] = n;
    return DRIVER_OK;
}
int fake_release(int device, void *p) {
    ENTER(RELEASE);
    auto it = fake->live.find({device, p});
    if (it == fake->live.end()) {
        ++fake->mistakes;
        return 1;
    }
    fake->used[device] -= it->second;
    fake->live.erase(it);
    return DRIVER_OK;
}
int fake_allocate_async(int device, size_t n, void *, void **out) {
    return fake_allocate(device, n, out);
}
int fake_release_async(int device, void *p, void *) { return fake_release(device, p); }
int fake_info(int device, size_t *free, size_t *total) {
    ENTER(INFO);
    *total = fake->limit;
    *free = fake->limit - fake->used[device];
    return DRIVER_OK;
}
int fake_create(int device, void **out) {
    ENTER(CREATE);
    ++fake->events;
    *out = new Event{device, nullptr, 0};
    return DRIVER_OK;
}
int fake_record(int device, void *event, void *stream) {
    ENTER(RECORD);
    Event *e = static_cast<Event *>(event);
    if (e->device != device) ++fake->mistakes;
    e->stream = stream;
    e->ticket = ++fake->recorded[{device, stream}];
    return DRIVER_OK;
}
int fake_query(int device, void *event) {
    ENTER(QUERY);
    Event *e = static_cast<Event *>(event);
    if (e->device != device) ++fake->mistakes;
    return e->ticket <= fake->done[{e->device, e->stream}] ? DRIVER_OK : DRIVER_NOT_READY;
}
int fake_synchronize(int device, void *event) {
    ENTER(SYNCHRONIZE);
    Event *e = static_cast<Event *>(event);
    if (e->device != device) ++fake->mistakes;
    long &done = fake->done[{e->device, e->stream}];
    if (done < e->ticket) done = e->ticket;
    return DRIVER_OK;
}
int fake_destroy(void *event) {
    ENTER(DESTROY);
    --fake->events;
    delete static_cast<Event *>(event);
    return DRIVER_OK;
}
int fake_device_synchronize(int device) {
    ENTER(DEVICE);
    for (auto &line : fake->recorded)
        if (line.first.first == device) fake->done[line.first] = line.second;
    return DRIVER_OK;
}
int fake_host_allocate(size_t n, void **out) {
    ENTER(HOST_ALLOCATE);
    if (n > fake->host_limit - fake->host_used) return DRIVER_OUT_OF_MEMORY;
    fake->host_used += n;
    *out = reinterpret_cast<void *>((size_t(1) << 40) + fake->host_next);
    fake->host_next += (n + 4095) / 4096 * 4096 + 4096;
    fake->host_live[*out] = n;
    return DRIVER_OK;
}
int fake_host_release(void *p) {
    ENTER(HOST_RELEASE);
    auto it = fake->host_live.find(p);
    if (it == fake->host_live.end()) {
        ++fake->mistakes;
        return 1;
    }
    fake->host_used -= it->second;
    fake->host_live.erase(it);
    return DRIVER_OK;
}
int fake_granularity(int, size_t *out) {
    ENTER(GRANULARITY);
    *out = STEP;
    return DRIVER_OK;
}
// The first addresses of a device that are free.
int fake_reserve(int device, size_t n, void **out) {
    ENTER(RESERVE);
    if (!n || n % STEP) return ++fake->mistakes, 1;
    size_t at = size_t(device + 9) << 52;
    for (auto &range : fake->ranges)
        if (range.first < at + n && at < range.first + range.second)
            at = range.first + range.second;
    fake->ranges[at] = n;
    *out = reinterpret_cast<void *>(at);
    return DRIVER_OK;
}
int fake_unreserve(int, void *p, size_t n) {
    ENTER(UNRESERVE);
    const size_t at = reinterpret_cast<size_t>(p);
    auto it = fake->ranges.find(at);
    auto inside = fake->mapped.lower_bound(at);
    if (it == fake->ranges.end() || it->second != n ||
        (inside != fake->mapped.end() && inside->first < at + n))
        return ++fake->mistakes, 1;
    fake->ranges.erase(it);
    return DRIVER_OK;
}
int fake_map(int device, void *p, size_t n, uint64_t *handle) {
    ENTER(MAP);
    const size_t at = reinterpret_cast<size_t>(p);
    auto after = fake->ranges.upper_bound(at);
    if (after == fake->ranges.begin() || n % STEP ||
        at + n > std::prev(after)->first + std::prev(after)->second || fake->mapped.count(at) ||
        at >> 52 != size_t(device + 9))
        return ++fake->mistakes, 1;
    if (n > fake->limit - fake->used[device]) return DRIVER_OUT_OF_MEMORY;
    fake->used[device] += n;
    *handle = ++fake->handles;
    fake->mapped[at] = {n, *handle};
    return DRIVER_OK;
}
// Nothing may be at work on the device: what it has been given would touch addresses without
// memory.
int fake_unmap(int device, void *p, size_t n, uint64_t handle) {
    ENTER(UNMAP);
    auto it = fake->mapped.find(reinterpret_cast<size_t>(p));
    if (it == fake->mapped.end() || it->second != std::make_pair(n, handle))
        return ++fake->mistakes, 1;
    for (auto &line : fake->recorded)
        if (!fake->threads && line.first.first == device && fake->done[line.first] < line.second)
            ++fake->mistakes;
    fake->used[device] -= n;
    fake->mapped.erase(it);
    return DRIVER_OK;
}

// A source of segments has two numbers in the place of its functions; its memory lies apart, and it
// alone takes it back.
int fake_foreign_allocate(void *function, int, size_t n, void *stream, void **out) {
    ENTER(FOREIGN_ALLOCATE);
    if (n > fake->foreign_limit - fake->foreign_used) return DRIVER_OUT_OF_MEMORY;
    fake->foreign_used += n;
    *out = reinterpret_cast<void *>((size_t(1) << 50) + fake->foreign_next);
    fake->foreign_next += (n + STEP - 1) / STEP * STEP + STEP;
    fake->foreign_live[*out] = {n, stream, reinterpret_cast<size_t>(function)};
    return DRIVER_OK;
}
int fake_foreign_release(void *function, int, void *p, size_t n, void *stream) {
    ENTER(FOREIGN_RELEASE);
    auto it = fake->foreign_live.find(p);
    if (it == fake->foreign_live.end() || it->second.size != n || it->second.stream != stream ||
        it->second.function + 1 != reinterpret_cast<size_t>(function)) {
        ++fake->mistakes;
        return 1;
    }
    fake->foreign_used -= n;
    fake->foreign_live.erase(it);
    return DRIVER_OK;
}

const DriverMemory functions = {fake_allocate,
                                fake_release,
                                fake_allocate_async,
                                fake_release_async,
                                fake_info,
                                fake_create,
                                fake_record,
                                fake_query,
                                fake_synchronize,
                                fake_destroy,
                                fake_device_synchronize,
                                fake_host_allocate,
                                fake_host_release,
                                fake_granularity,
                                fake_reserve,
                                fake_unreserve,
                                fake_map,
                                fake_unmap,
                                fake_foreign_allocate,
                                fake_foreign_release};
BlockAllocator *blocks = nullptr;
PinnedPool *pinned = nullptr;
AllocatorFailure why;
std::string text;

const char *joined(const std::vector<AllocatorStat> &stats) {
    text.clear();
    for (const AllocatorStat &s : stats) text += s.key + (" " + std::to_string(s.value)) + "\n";
    return text.c_str();
}

// The source whose functions are two numbers, of which this is the first; 0: the driver.
SegmentSource source_of(size_t number) {
    SegmentSource source;
    if (number) {
        source.allocate = reinterpret_cast<void *>(number);
        source.release = reinterpret_cast<void *>(number + 1);
    }
    return source;
}

}  // namespace

#ifdef _MSC_VER
#  define API extern "C" __declspec(dllexport)
#else
#  define API extern "C" __attribute__((visibility("default")))
#endif

// NULL, or what is wrong with the settings
API const char *start(int devices, const char *settings, const char *backend, size_t limit,
                      size_t host_limit, size_t source) {
    AllocatorSettings s;
    s.source = source_of(source);
    static char error[256];
    if (!parse_settings(settings, &s, error, sizeof(error)) ||
        !parse_backend(backend, &s, error, sizeof(error)))
        return error;
    delete blocks;
    delete pinned;
    delete fake;
    fake = new Pretended;
    fake->limit = limit;
    fake->host_limit = host_limit;
    blocks = new BlockAllocator(functions, devices, s);
    pinned = new PinnedPool(functions);
    return nullptr;
}
API size_t allocate(int device, size_t n, void *stream, uint64_t pool) {
    return reinterpret_cast<size_t>(blocks->allocate(device, n, stream, &why, pool));
}
API int release(int device, void *p) { return blocks->release(device, p); }
API int record_stream(int device, void *p, void *stream) {
    return blocks->record_stream(device, p, stream);
}
API int empty_cache(int device) { return blocks->empty_cache(device); }
API int empty_retired(int device) { return blocks->empty_cache(device, true); }
API void make_pool(int device, uint64_t pool, int use_on_oom, int no_split, size_t source) {
    PoolRules rules;
    rules.use_on_oom = use_on_oom;
    rules.no_split = no_split;
    rules.source = source_of(source);
    blocks->make_pool(device, pool, rules);
}
API void set_caching(int device, int on) { blocks->set_caching(device, on); }
API void capture(int on) { on ? blocks->begin_capture() : blocks->end_capture(); }
API size_t foreign_used() { return fake->foreign_used; }
API void retire_pool(int device, uint64_t pool) { blocks->retire_pool(device, pool); }
API int set_fraction(int device, double x) { return blocks->set_memory_fraction(device, x); }
API double fraction(int device) { return blocks->memory_fraction(device); }
API void reset_peak(int device) { blocks->reset_peak(device); }
API void reset_accumulated(int device) { blocks->reset_accumulated(device); }
API const char *stats(int device) { return joined(blocks->stats(device)); }
API const char *snapshot(int device) {
    text.clear();
    for (const BlockRow &r : blocks->snapshot(device)) {
        char line[256];
        std::snprintf(line, sizeof(line), "%zu %zu %zu %zu %zu %zu %zu %d %d %d\n",
                      size_t(r.segment), r.segment_size, size_t(r.address), r.size, r.requested,
                      reinterpret_cast<size_t>(r.stream), size_t(r.pool), int(r.large),
                      int(r.state), int(r.expandable));
        text += line;
    }
    return text.c_str();
}
API void record_history(int device, int on, int trace, int stacks, unsigned skipped, size_t most,
                        int clear) {
    HistoryRules rules;
    rules.on = on;
    rules.trace = trace;
    rules.stacks = stacks;
    rules.skipped = skipped;
    rules.most = most;
    blocks->record_history(device, rules, clear);
}
API void set_stack(unsigned number) { stack_of_thread() = number; }
API const char *history(int device) {
    text.clear();
    for (const TraceEntry &e : blocks->history(device)) {
        char line[256];
        std::snprintf(line, sizeof(line), "%d %zu %zu %zu %zu %lld %u\n", int(e.action),
                      size_t(e.address), e.size, reinterpret_cast<size_t>(e.stream), size_t(e.pool),
                      (long long)e.time_us, e.stack);
        text += line;
    }
    return text.c_str();
}
API const char *stacks(int device) {
    text.clear();
    for (const BlockRow &r : blocks->snapshot(device))
        text += std::to_string(r.stack) + " " + std::to_string(r.segment_stack) + "\n";
    return text.c_str();
}
API const char *failure(size_t *numbers) {
    const size_t all[9] = {size_t(why.status), why.requested,    why.segment,
                           why.device_free,    why.device_total, why.allocated,
                           why.reserved,       why.cap,          why.largest_free};
    std::memcpy(numbers, all, sizeof(all));
    static char out[1024];
    failure_text(why, out, sizeof(out));
    return out;
}
API void fail(int f, int status, int after, int count) {
    fake->fault[f] = status;
    fake->fault_after[f] = after;
    fake->fault_count[f] = count;
}
API long calls(int f) { return fake->calls[f]; }
API void complete(int device, void *stream, long tickets) {
    long &done = fake->done[{device, stream}];
    done = std::min(done + tickets, fake->recorded[{device, stream}]);
}
API size_t used(int device) { return fake->used[device]; }
API long live_events() { return fake->events; }
API long mistakes() { return fake->mistakes; }

API size_t pinned_allocate(size_t n) { return reinterpret_cast<size_t>(pinned->allocate(n, &why)); }
API int pinned_release(void *p) { return pinned->release(p); }
API int pinned_record(void *p, int device, void *stream) {
    return pinned->record_stream(p, device, stream);
}
API int pinned_owns(void *p) { return pinned->owns(p); }
API int pinned_empty() { return pinned->empty_cache(); }
API const char *pinned_stats() { return joined(pinned->stats()); }
API void pinned_reset_peak() { pinned->reset_peak(); }
API void pinned_reset_accumulated() { pinned->reset_accumulated(); }
API size_t host_used() { return fake->host_used; }

// `rounds` times: take as many blocks as there are sizes, give them back in a mixed order. ns for
// one taken and given back; *made counts what operator new was asked meanwhile.
API double steady(const size_t *sizes, int n, int rounds, long *made) {
    std::vector<void *> held(n);
    auto once = [&] {
        for (int i = 0; i < n; ++i) held[i] = blocks->allocate(0, sizes[i], nullptr, &why);
        for (int i = 0; i < n; ++i)
            blocks->release(0, held[(size_t(i) * 7919 + 13) % n]);    // no multiple of 7919
    };
    once();
    once();
#ifndef HAMMER
    const long before = host_allocations;
#endif
    const std::clock_t start = std::clock();    // the processor's time: others use the machine too
    for (int r = 0; r < rounds; ++r) once();
    const double spent = double(std::clock() - start) / CLOCKS_PER_SEC * 1e9;
#ifndef HAMMER
    *made = host_allocations - before;
#else
    *made = 0;
#endif
    return spent / (double(rounds) * n);
}

// Threads that allocate on streams of their own and on a common one and give each other blocks to
// release. The number of blocks that two had at once.
API long hammer(int threads, int steps) {
    std::atomic<long> overlaps{0};
    std::mutex mutex;
    std::map<size_t, size_t> taken;             // address to end
    std::vector<std::pair<void *, int>> shared;
    auto claim = [&](void *p, size_t n) {
        const size_t a = reinterpret_cast<size_t>(p);
        std::lock_guard<std::mutex> hold(mutex);
        auto after = taken.lower_bound(a);
        if ((after != taken.end() && after->first < a + n) ||
            (after != taken.begin() && std::prev(after)->second > a))
            ++overlaps;
        taken[a] = a + n;
    };
    auto drop = [&](void *p) {
        std::lock_guard<std::mutex> hold(mutex);
        taken.erase(reinterpret_cast<size_t>(p));
    };
    auto work = [&](int id) {
        uint64_t state = 88172645463325252u + uint64_t(id) * 7919;
        auto random = [&](uint64_t n) {
            state ^= state << 13, state ^= state >> 7, state ^= state << 17;
            return state % n;
        };
        std::vector<std::pair<void *, int>> own;
        AllocatorFailure f;
        for (int i = 0; i < steps; ++i) {
            void *stream = reinterpret_cast<void *>(random(2) ? size_t(1) : size_t(id + 2));
            const int device = int(random(2));
            switch (random(16)) {
            case 0: {                           // a block of another thread
                std::pair<void *, int> b{nullptr, 0};
                {
                    std::lock_guard<std::mutex> hold(mutex);
                    if (!shared.empty()) {
                        b = shared.back();
                        shared.pop_back();
                    }
                }
                if (b.first) {
                    drop(b.first);
                    if (!blocks->release(b.second, b.first)) ++overlaps;
                }
                break;
            }
            case 1:
                if (!own.empty()) {
                    std::lock_guard<std::mutex> hold(mutex);
                    shared.push_back(own.back());
                    own.pop_back();
                }
                break;
            case 2:
                if (!own.empty())
                    blocks->record_stream(own.back().second, own.back().first, stream);
                break;
            case 3:
                if (random(20) == 0) blocks->empty_cache(device);
                else blocks->stats(device);
                break;
            case 4: {
                std::lock_guard<std::mutex> hold(fake->mutex);
                for (auto &line : fake->recorded) fake->done[line.first] = line.second;
                break;
            }
            case 5:
                if (void *p = pinned->allocate(random(1 << 20), &f)) {
                    pinned->record_stream(p, device, stream);
                    pinned->release(p);
                }
                break;
            default:
                if (own.size() < 30 && random(2)) {
                    const size_t n = size_t(1) << random(24);
                    if (void *p = blocks->allocate(device, n, stream, &f)) {
                        claim(p, n);
                        own.push_back({p, device});
                    }
                } else if (!own.empty()) {
                    std::swap(own[random(own.size())], own.back());
                    drop(own.back().first);
                    if (!blocks->release(own.back().second, own.back().first)) ++overlaps;
                    own.pop_back();
                }
            }
        }
        for (auto &b : own) {
            drop(b.first);
            blocks->release(b.second, b.first);
        }
    };
    fake->threads = true;
    std::vector<std::thread> all;
    for (int i = 0; i < threads; ++i) all.emplace_back(work, i);
    for (auto &t : all) t.join();
    for (auto &b : shared) blocks->release(b.second, b.first);
    return overlaps;
}

#ifdef HAMMER
int main(int, char **settings) {
    start(2, settings[1], "", size_t(256) << 20, size_t(64) << 20, 0);
    const long wrong = hammer(6, 4000);
    for (int d = 0; d < 2; ++d) blocks->empty_cache(d);
    pinned->empty_cache();
    std::printf("%ld %zu %zu %zu %ld\n", wrong, fake->used[0], fake->used[1], fake->host_used,
                fake->mistakes);
    return wrong || fake->used[0] || fake->used[1] || fake->host_used || fake->mistakes;
}
#endif
