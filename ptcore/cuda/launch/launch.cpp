// Finding and starting kernels, scratch memory, the texts of failures.
#include <atomic>
#include <cstring>
#include <mutex>

#include "driver.hpp"
#include "walk.hpp"

namespace pt_cuda {

Driver driver;
thread_local char last_error[1024];

namespace {

// Loaded kernels by identity, types and device. Entries are only added: readers take no lock.
struct Entry {
    const Kernel *kernel;
    uint64_t types;
    int device;
    void *function;
    Entry *next;
};
enum { BUCKETS = 4096 };
std::atomic<Entry *> buckets[BUCKETS];
std::mutex adding;

unsigned bucket_of(const Kernel *kernel, uint64_t types, int device) {
    uint64_t h =
        ((uint64_t)(uintptr_t)kernel ^ types * 0x9E3779B97F4A7C15u ^ (uint64_t)device << 56) *
        0xD6E8FEB86659FD93u;
    return (unsigned)(h >> 52);
}

void *loaded(const Kernel *kernel, uint64_t types, int device, unsigned bucket) {
    for (Entry *e = buckets[bucket].load(std::memory_order_acquire); e; e = e->next)
        if (e->kernel == kernel && e->types == types && e->device == device) return e->function;
    return nullptr;
}

void add(const Kernel *kernel, uint64_t types, int device, unsigned bucket, void *function) {
    std::lock_guard<std::mutex> lock(adding);
    if (loaded(kernel, types, device, bucket)) return;
    Entry *e =
        new Entry{kernel, types, device, function, buckets[bucket].load(std::memory_order_relaxed)};
    buckets[bucket].store(e, std::memory_order_release);
}

}  // namespace

int device_of(const pt_call *c) {
    int device = c->nout ? c->out[0].device_index : c->in[0].device_index;
    return device < 0 ? 0 : device;
}

bool runs_on(const pt_call *c, const Kernel &kernel) {
    return driver.devices[device_of(c)].capability >= kernel.since;
}

int take_fault(int device, char *error, bool own) {
    Fault *fault = driver.devices[device].fault;
    if (!fault || fault->found != 1) return PT_OK;         // 2: it is being written
    if (fault->dim < 0) {
        double number;
        std::memcpy(&number, &fault->index, sizeof number);
        std::snprintf(error, 256, "%s%s%s, got %g (found on cuda:%d%s)",
                      own ? "" : driver.op_name(fault->op), own ? "" : ": ",
                      fault->dim == PT_FAULT_RATE ? "rates must not be negative"
                                                  : "probabilities must be in [0, 1]",
                      number, device, own ? "" : " after the call");
        fault->found = 0;
        return PT_RUNTIME_ERROR;
    }
    std::snprintf(
        error, 256,
        "%s%sindex %lld is out of bounds for dimension %lld with size %lld (found on cuda:%d%s)",
        own ? "" : driver.op_name(fault->op), own ? "" : ": ", (long long)fault->index,
        (long long)fault->dim, (long long)(fault->size < 0 ? 0 : fault->size), device,
        own ? "" : " after the call");
    fault->found = 0;
    return PT_INDEX_ERROR;
}

const char *hint_of(int result) {
    const bool of_kernels =
        result == 700 || result == 702 || result == 710 || (result >= 714 && result <= 719);
    return of_kernels && !driver.blocking
               ? "; an earlier op may be the cause: CUDA_LAUNCH_BLOCKING=1 names it"
               : "";
}

int status_of(int result, const char *what, char *error) {
    if (!result) return PT_OK;
    std::snprintf(error, 256, "%s: %s%s", what, driver.text(result), hint_of(result));
    return result == 2 ? PT_MEMORY_ERROR : PT_RUNTIME_ERROR;
}

bool captures(const pt_call *c) {
    return driver.devices[device_of(c)].capture_pool && driver.capturing(c->stream);
}

int waits(pt_call *c, const char *text) {
    if (captures(c)) return failed(c, PT_RUNTIME_ERROR, text);
    return driver.sync_mode ? driver.found_wait(c->error) : PT_OK;
}

int wait_if_blocking(pt_call *c, const char *what) {
    if (!driver.blocking || captures(c)) return PT_OK;
    int status = status_of(driver.synchronize(c->stream), what, c->error);
    return status ? status : take_fault(device_of(c), c->error, true);
}

int launch(pt_call *c, const Kernel &kernel, uint64_t types, Grid grid, unsigned threads,
           unsigned shared, const void *args, size_t nargs) {
    (void)nargs;
    const int device = device_of(c);
    const unsigned bucket = bucket_of(&kernel, types, device);
    void *function = loaded(&kernel, types, device, bucket);
    if (!function) {
        int status = driver.find(&kernel, types, device, &function, c->error);
        if (status) return status;
        add(&kernel, types, device, bucket, function);
    }
    int result = driver.set_device(device);
    if (!result) result = driver.launch(function, grid, threads, shared, c->stream, args);
    int status = status_of(result, kernel.name, c->error);
    return status ? status : wait_if_blocking(c, kernel.name);
}

void draw_from(const pt_call *c, const uint64_t *&base, uint64_t &seed, uint64_t &offset) {
    const Device &d = driver.devices[device_of(c)];
    base = captures(c) ? d.random_state : nullptr, seed = c->seed, offset = c->offset;
    if (base) offset -= d.random_base;
}

Fault *fault_of(const pt_call *c) { return driver.devices[device_of(c)].fault; }
int multiprocessors(const pt_call *c) { return driver.devices[device_of(c)].multiprocessors; }
// 1 KiB is left for the kernels' own variables; row_plan.hpp leaves more.
int shared_limit(const pt_call *c) { return driver.devices[device_of(c)].shared_limit - (1 << 10); }

Scratch::Scratch(pt_call *c, int64_t n) : data(nullptr), nbytes(n), device(device_of(c)) {
    if (n == 0) return;
    data = driver.allocate(n, device);
    if (!data) std::snprintf(c->error, sizeof(c->error), "%s", last_error);     // the allocator's
}

Scratch::~Scratch() {
    if (data) driver.release(data, nbytes, device);
}

int clear(pt_call *c, void *data, int64_t nbytes) {
    if (nbytes == 0) return PT_OK;
    int result = driver.set_device(device_of(c));
    if (!result) result = driver.clear(data, (size_t)nbytes, c->stream);
    int status = status_of(result, "clear", c->error);
    return status ? status : wait_if_blocking(c, "clear");
}

static int64_t bytes_of(const pt_view &v) {
    return v.contiguous ? 0 : v.numel * item_size(v.dtype);
}

Contiguous::Contiguous(pt_call *c, const pt_view &src)
    : view(src), scratch(c, bytes_of(src)), good(true) {
    if (src.contiguous || src.numel == 0) return;
    int64_t step = 1;
    for (int d = src.ndim - 1; d >= 0; d--) {
        strides[d] = step;
        step *= src.sizes[d];
    }
    view.data = static_cast<char *>(scratch.data);
    view.strides = strides;
    view.contiguous = 1;
    good = scratch.data && copy(c, &view, &src) == PT_OK;
}

}  // namespace pt_cuda
