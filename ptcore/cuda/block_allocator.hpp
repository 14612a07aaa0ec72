// The caching allocator of device memory and the pool of pinned host memory, by PyTorch's rules.
//
// Plain C++17 without a CUDA header: the driver is a table of functions, so that the tests run all of it over a
// pretended one. Status codes are the driver's (CUresult). A call may come from any thread, with or without the GIL;
// one mutex per device is held meanwhile, driver calls included. Steady state takes no memory from the host's
// allocator; where a call needs some and there is none, allocate fails, release waits for the device, the others throw
// std::bad_alloc.
//
// Rules, for requests rounded up to 512 bytes (or to a division of a power of two, a setting):
//  (a) up to 1 MiB from segments of 2 MiB (the small pool); below 10 MiB from segments of 20 MiB; larger requests get a
//      segment of their own, rounded up to 2 MiB;
//  (b) the smallest free block that fits, of the same pool and stream, the lowest of equal ones; what remains is split
//      off if it is 512 bytes or more (small pool), more than 1 MiB (large pool);
//  (c) a block that becomes free joins with free neighbours of its segment; whole free segments stay cached;
//  (d) a block used on other streams (record_stream) becomes free when the events recorded there at its release are
//      done;
//  (e) where the driver has no memory left: cached blocks that would be large enough go back, then all whole free
//      segments after waiting for the events of (d), then the request fails, and everything goes on as before.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace pt_cuda {

enum : int { DRIVER_OK = 0, DRIVER_OUT_OF_MEMORY = 2, DRIVER_NOT_READY = 600 };

// What the allocators ask of the driver. Every function makes `device` current itself if the driver needs that.
struct DriverMemory {
    int (*allocate)(int device, size_t nbytes, void **out);
    int (*release)(int device, void *data);                     // waits for work on the device that may use it
    int (*allocate_async)(int device, size_t nbytes, void *stream, void **out);     // these two only for backend async
    int (*release_async)(int device, void *data, void *stream);
    int (*info)(int device, size_t *free, size_t *total);
    int (*event_create)(int device, void **event);
    int (*event_record)(int device, void *event, void *stream);
    int (*event_query)(void *event);                            // DRIVER_OK: done, DRIVER_NOT_READY, or an error
    int (*event_synchronize)(void *event);
    int (*event_destroy)(void *event);
    int (*device_synchronize)(int device);
    int (*host_allocate)(size_t nbytes, void **out);            // page-locked, for every device
    int (*host_release)(void *data);
};

enum class Backend { native, async, none };     // none: every request goes to the driver (for compute-sanitizer)

// PYTORCH_CUDA_ALLOC_CONF's settings.
struct AllocatorSettings {
    Backend backend = Backend::native;
    size_t max_split_size = SIZE_MAX;           // blocks of this size and above are not split
    double garbage_collection_threshold = 0;    // of the cap; 0: never
    uint8_t roundup_divisions[16] = {};         // of [1, 2) MiB, [2, 4) MiB, ... and the last for all above; 0: none
};
// Reads a text such as "max_split_size_mb:128,roundup_power2_divisions:[256:1,>:4],backend:native" over *settings.
// false with a text in `error`, and *settings as it was, if it cannot be understood. NULL is an empty text.
bool parse_settings(const char *text, AllocatorSettings *settings, char *error, size_t room);
// The same for the word of PTCORE_CUDA_ALLOC: native, async or none.
bool parse_backend(const char *word, AllocatorSettings *settings, char *error, size_t room);

// Why a request failed.
struct AllocatorFailure {
    int status;                 // the driver's; DRIVER_OUT_OF_MEMORY also for what the cap forbids
    int device;                 // -1: pinned host memory
    size_t requested, segment;  // bytes asked for, bytes that were asked of the driver
    size_t device_free, device_total;
    size_t allocated, reserved;
    size_t cap;                 // of set_memory_fraction; SIZE_MAX: none
    size_t largest_free;        // the largest cached block of the request's pool and stream; 0: none
};
// The text of an OutOfMemoryError, or of another failure, in PyTorch's manner.
void failure_text(const AllocatorFailure &why, char *text, size_t room);

// One line of the statistics: a key such as "allocated_bytes.small_pool.peak", which lives for ever.
struct AllocatorStat {
    const char *key;
    int64_t value;
};

// One block of a snapshot. Blocks of a segment stand one behind the other, in order of their addresses.
struct BlockRow {
    uintptr_t segment, address;
    size_t segment_size, size, requested;
    void *stream;
    uint64_t pool;
    bool large;
    enum : uint8_t { inactive, allocated, pending_free } state;
};

class BlockAllocator {
public:
    BlockAllocator(const DriverMemory &driver, int devices, const AllocatorSettings &settings = {});
    ~BlockAllocator();          // gives nothing back: at exit the driver may be gone before
    BlockAllocator(const BlockAllocator &) = delete;
    BlockAllocator &operator=(const BlockAllocator &) = delete;

    // Memory for work in the order of `stream`; NULL with *why filled if there is none. Blocks of one pool never serve
    // another: 0 is the common pool, others are private ones (of graphs).
    void *allocate(int device, size_t nbytes, void *stream, AllocatorFailure *why, uint64_t pool = 0);
    // What is not an allocated address of the device is left alone, and false returned.
    bool release(int device, void *data);
    // The memory is also used on `stream`: it must not be given away before what is enqueued there at its release is
    // done.
    bool record_stream(int device, void *data, void *stream);
    // Gives whole free segments back, after waiting for events. Those of private pools stay until the pool is retired.
    int empty_cache(int device);
    void retire_pool(int device, uint64_t pool);
    // Between the two the driver is asked for no event: while streams capture it refuses such calls of every thread. Blocks
    // that become free meanwhile and that other streams use wait for the end.
    void begin_capture(int device);
    void end_capture(int device);

    // At most this part of the device's memory may be reserved; the driver's status.
    int set_memory_fraction(int device, double fraction);
    double memory_fraction(int device) const;

    std::vector<AllocatorStat> stats(int device) const;
    void reset_peak(int device);
    void reset_accumulated(int device);
    std::vector<BlockRow> snapshot(int device) const;
    int devices() const { return int(state.size()); }
    const AllocatorSettings &settings() const { return chosen; }

private:
    struct Device;
    DriverMemory driver;
    AllocatorSettings chosen;
    std::vector<std::unique_ptr<Device>> state;
    Device *at(int device) const { return device >= 0 && device < devices() ? state[device].get() : nullptr; }
};

// Page-locked host memory in powers of two. A block that streams still copy from or to when it is released is given
// away again when the events recorded on them at its release are done.
class PinnedPool {
public:
    explicit PinnedPool(const DriverMemory &driver);
    ~PinnedPool();
    PinnedPool(const PinnedPool &) = delete;
    PinnedPool &operator=(const PinnedPool &) = delete;

    void *allocate(size_t nbytes, AllocatorFailure *why);
    bool release(void *data);
    bool record_stream(void *data, int device, void *stream);   // `data` may lie anywhere in the block
    bool owns(const void *data) const;
    void begin_capture();                       // as of the device's
    void end_capture();
    int empty_cache();                                          // of the blocks that nothing uses, after their events
    std::vector<AllocatorStat> stats() const;
    void reset_peak();
    void reset_accumulated();

private:
    struct State;
    std::unique_ptr<State> state;
};

}  // namespace pt_cuda
