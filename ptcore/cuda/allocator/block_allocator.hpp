// The caching allocator of device memory and the pool of pinned host memory, by PyTorch's rules.
//
// Plain C++17 without a CUDA header: the driver is a table of functions, so that tests run all of
// it over a fake driver. Status codes are the driver's (CUresult). A call may come from any thread,
// with or without the GIL; it holds one mutex per device, also during driver calls. In the steady
// state no memory is taken from the host's allocator; if a call needs some and there is none,
// allocate fails, release waits for the device, the others throw std::bad_alloc.
//
// Rules, for requests rounded up to 512 bytes (or to a division of a power of two, a setting):
// (a) Requests up to 1 MiB come from segments of 2 MiB (the small pool), requests below 10 MiB from
//     segments of 20 MiB. Larger requests get a segment of their own, rounded up to 2 MiB.
// (b) A request gets the smallest free block that fits, of the same pool and stream; of equal
//     blocks, the lowest. The remainder is split off if it is 512 bytes or more (small pool), or
//     more than 1 MiB (large pool).
// (c) A block that becomes free joins with free neighbours of its segment. Whole free segments
//     stay cached.
// (d) A block used on other streams (record_stream) becomes free when the events recorded there at
//     its release are done.
// (e) If the driver has no memory left, cached blocks that would be large enough go back, then all
//     whole free segments after waiting for the events of (d). Then the request fails, and
//     everything goes on as before.
//     Each pool, stream and kind (small or large requests) has one expandable segment, if these are
//     on. It grows at its end by pieces of 2 or 20 MiB. The remainder of a block is always split
//     off. Whole pieces of its free end go back where whole free segments go back without
//     expandable segments.
// (f) Blocks of a private pool serve that pool alone (but see PoolRules), and the segments of the
//     pool stay until it is retired.
// (g) Nothing goes back to the driver while a graph is captured: the driver would end the capture.
//
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace pt_cuda {

enum : int { DRIVER_OK = 0, DRIVER_OUT_OF_MEMORY = 2, DRIVER_NOT_READY = 600 };

// The functions of the driver that the allocators call. Every function makes `device` current
// itself if the driver needs that.
struct DriverMemory {
    int (*allocate)(int device, size_t nbytes, void **out);
    int (*release)(int device, void *data);    // waits for work on the device that may use it
    int (*allocate_async)(int device, size_t nbytes, void *stream,
                          void **out);    // these two only for backend async
    int (*release_async)(int device, void *data, void *stream);
    int (*info)(int device, size_t *free, size_t *total);
    int (*event_create)(int device, void **event);
    int (*event_record)(int device, void *event, void *stream);
    int (*event_query)(int device,
                       void *event);    // DRIVER_OK: done, DRIVER_NOT_READY, or an error
    int (*event_synchronize)(int device, void *event);
    int (*event_destroy)(void *event);
    int (*device_synchronize)(int device);
    int (*host_allocate)(size_t nbytes, void **out);            // page-locked, for every device
    int (*host_release)(void *data);
    // Address ranges, and memory that is mapped to them. Sizes are multiples of granularity's.
    int (*granularity)(int device, size_t *nbytes);
    int (*reserve)(int device, size_t nbytes, void **out);
    int (*unreserve)(int device, void *data, size_t nbytes);
    int (*map)(int device, void *data, size_t nbytes, uint64_t *handle);
    int (*unmap)(int device, void *data, size_t nbytes, uint64_t handle);   // does not wait
    // The same as allocate and release, by a function of another library (SegmentSource).
    int (*foreign_allocate)(void *function, int device, size_t nbytes, void *stream, void **out);
    int (*foreign_release)(void *function, int device, void *data, size_t nbytes, void *stream);
};

// Functions that give segments in the driver's place: void *allocate(size_t, int device, stream)
// and void release(void *, size_t, int device, stream). NULL: the driver.
struct SegmentSource {
    void *allocate = nullptr, *release = nullptr;
};

struct PoolRules {
    bool use_on_oom =
        false;    // its free blocks serve requests of the common pool that would fail otherwise
    bool no_split = false;
    SegmentSource source;
};

enum class Backend {
    native,
    async,
    none
};    // none: every request goes to the driver (for compute-sanitizer)

// PYTORCH_CUDA_ALLOC_CONF's settings.
struct AllocatorSettings {
    Backend backend = Backend::native;
    bool expandable = false;    // only for backend native; max_split_size then has no effect
    SegmentSource source;                       // of the common pool
    size_t max_split_size = SIZE_MAX;           // blocks of this size and above are not split
    double garbage_collection_threshold = 0;    // a fraction of the cap; 0: never
    uint8_t roundup_divisions[16] =
        {};    // of [1, 2) MiB, [2, 4) MiB, ... and the last for all above; 0: none
};
// Reads a text such as "max_split_size_mb:128,roundup_power2_divisions:[256:1,>:4],backend:native"
// over *settings. If it cannot be understood, returns false with a text in `error`, and *settings
// stays as it was. NULL is an empty text.
bool parse_settings(const char *text, AllocatorSettings *settings, char *error, size_t room);
// The same for the word of PTCORE_CUDA_ALLOC: native, async or none.
bool parse_backend(const char *word, AllocatorSettings *settings, char *error, size_t room);

// Why a request failed.
struct AllocatorFailure {
    int status;                 // the driver's; DRIVER_OUT_OF_MEMORY also where the cap forbids it
    int device;                 // -1: pinned host memory
    size_t requested, segment;  // bytes asked for, bytes that were asked of the driver
    size_t device_free, device_total;
    size_t allocated, reserved;
    size_t cap;                 // of set_memory_fraction; SIZE_MAX: none
    size_t largest_free;    // the largest cached block of the request's pool and stream; 0: none
};
// The text of an OutOfMemoryError, or of another failure, in PyTorch's wording.
void failure_text(const AllocatorFailure &why, char *text, size_t room);

// One line of the statistics: a key such as "allocated_bytes.small_pool.peak", a string that is
// never freed.
struct AllocatorStat {
    const char *key;
    int64_t value;
};

// One block of a snapshot. The blocks of a segment follow each other, in order of their
// addresses.
struct BlockRow {
    uintptr_t segment, address;
    size_t segment_size, size, requested;
    void *stream;
    uint64_t pool;
    bool large, expandable;
    enum : uint8_t { inactive, allocated, pending_free } state;
    uint32_t stack, segment_stack;              // where they were allocated: see HistoryRules
};

// What is recorded. A stack is a number that the caller stores for its thread (stack_of_thread)
// before it calls the allocator; 0: unknown.
struct HistoryRules {
    bool on = false;
    bool trace = false;         // whether entries are kept, beside the stacks of what is allocated
    int stacks =
        0;    // 1: of what is allocated now, 2: of entries for allocations too, 3: of all entries
    uint32_t skipped = 0;       // a bit for each TraceEntry::Action that is left out
    size_t most = SIZE_MAX;     // entries that are kept; the oldest are dropped
};
inline uint32_t &stack_of_thread() {
    static thread_local uint32_t stack = 0;
    return stack;
}

struct TraceEntry {
    enum Action : uint8_t {
        alloc,
        free_requested,
        free_completed,
        segment_alloc,
        segment_free,
        segment_map,
        segment_unmap,
        oom,
        snapshot
    } action;
    uintptr_t address;          // in oom: the bytes that the device had left
    size_t size;
    void *stream;
    uint64_t pool;
    int64_t time_us;            // since 1970
    uint32_t stack;
};

class BlockAllocator {
public:
    BlockAllocator(const DriverMemory &driver, int devices, const AllocatorSettings &settings = {});
    ~BlockAllocator();          // gives nothing back: at exit the driver may be gone before
    BlockAllocator(const BlockAllocator &) = delete;
    BlockAllocator &operator=(const BlockAllocator &) = delete;

    // Memory for work in the order of `stream`; NULL with *why filled if there is none. Blocks of
    // one pool never serve another: 0 is the common pool, others are private ones (of graphs).
    void *allocate(int device, size_t nbytes, void *stream, AllocatorFailure *why,
                   uint64_t pool = 0);
    // Returns false, and does nothing, if data is not an allocated address of the device.
    bool release(int device, void *data);
    // The memory is also used on `stream`: it must not be given away before the work that is
    // enqueued there at its release is done.
    bool record_stream(int device, void *data, void *stream);
    // Makes a private pool, or gives an existing pool these rules.
    void make_pool(int device, uint64_t pool, const PoolRules &rules);
    // Gives whole free segments back, after waiting for events. Those of private pools stay until
    // the pool is retired.
    int empty_cache(int device, bool retired_alone = false);
    void retire_pool(int device, uint64_t pool);
    // While caching is off, the common pool asks the driver for the memory of every request, and
    // gives it back at its release.
    void set_caching(int device, bool on);
    // Between these two calls, for any device, no event is asked of the driver and no memory given
    // back: while streams capture, the driver refuses such calls from every thread. Blocks that are
    // released meanwhile and that other streams use wait for the end.
    void begin_capture();
    void end_capture();

    // Limits the part of the device's memory that may be reserved; returns the driver's status.
    int set_memory_fraction(int device, double fraction);
    double memory_fraction(int device) const;

    std::vector<AllocatorStat> stats(int device) const;
    void reset_peak(int device);
    void reset_accumulated(int device);
    std::vector<BlockRow> snapshot(int device) const;
    // Begins or ends the recording; at its end the recorded entries are dropped.
    void record_history(int device, const HistoryRules &rules, bool clear);
    std::vector<TraceEntry> history(int device) const;
    void note_snapshot(int device);             // adds an entry
    int devices() const { return int(state.size()); }
    const AllocatorSettings &settings() const { return chosen; }

private:
    struct Device;
    DriverMemory driver;
    AllocatorSettings chosen;
    std::vector<std::unique_ptr<Device>> state;
    Device *at(int device) const {
        return device >= 0 && device < devices() ? state[device].get() : nullptr;
    }
};

// Page-locked host memory in powers of two. A block that streams still copy from or to when it is
// released is reused when the events recorded on these streams at its release are done.
class PinnedPool {
public:
    explicit PinnedPool(const DriverMemory &driver);
    ~PinnedPool();
    PinnedPool(const PinnedPool &) = delete;
    PinnedPool &operator=(const PinnedPool &) = delete;

    void *allocate(size_t nbytes, AllocatorFailure *why);
    bool release(void *data);
    bool record_stream(void *data, int device,
                       void *stream);    // `data` may lie anywhere in the block
    bool owns(const void *data) const;
    void begin_capture();                       // as for the device's allocator
    void end_capture();
    int empty_cache();    // of blocks that nothing uses, after their events
    std::vector<AllocatorStat> stats() const;
    void reset_peak();
    void reset_accumulated();

private:
    struct State;
    std::unique_ptr<State> state;
};

}  // namespace pt_cuda
