// Device memory: host memory of one reserved arena per device.
//
// Every allocation has pages of its own with an untouchable page behind them. It ends within 512
// bytes of that page, is aligned to 512 bytes and no more, and what is left of its pages holds a
// canary that is checked when it is freed. New memory is filled with junk: private mappings of one
// file of junk, so that only what is touched takes memory and time when pages are opened and
// closed. Addresses are not used again until the arena is exhausted, so that late accesses fault.
// What another process may open moves into a file in memory, which that maps.
// Outside of kernels and copies no page of an arena can be touched (unless
// PTCORE_STANDIN_PROTECT=0).
#include "standin.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace standin {

namespace {

const uint64_t PAGE = (uint64_t)sysconf(_SC_PAGESIZE), ALIGN = 512, ARENA = (uint64_t)1 << 38,
               JUNK = 4 << 20;
const unsigned char CANARY = 0xa7;
const size_t MOST_SINGLY = 64;          // with more allocations, pages are opened all in one

struct Allocation {
    uint64_t start, bytes, low, high;   // low, high: its pages
    uint64_t id;
    bool in_order = false;              // of cuMemAllocAsync
    int file = -1;                      // its pages, since another process may open them
    uint64_t origin = 0;    // of another process: process and id of what was opened `opens` times
    int opens = 0;
};

struct Arena {
    uint64_t base = 0, next = 0, size = ARENA;
    std::map<uint64_t, Allocation> live;        // by start
    bool open = false, all_opened = false;
};

Arena *const arenas = new Arena[MOST_DEVICES];
unsigned opened;
uint64_t last_id;

struct HostRange {
    uint64_t bytes, id;
    bool registered;
};
auto &host_ranges = *new std::map<uint64_t, HostRange>;

bool reserve(Arena &a) {
    if (a.base) return true;
    void *p = MAP_FAILED;
    for (uint64_t size = ARENA; p == MAP_FAILED && size >> 32;
         size /= 2)    // less where addresses are few (valgrind)
        p = mmap(nullptr, a.size = size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
                 0);
    if (p == MAP_FAILED) return false;
    a.base = ((uint64_t)p + PAGE - 1) & ~(PAGE - 1);
    a.next = a.base + PAGE;
    return true;
}

std::string describe(const void *address);

}  // namespace

// Pages of junk from `low` on, readable and writable.
bool map_junk(uint64_t low, uint64_t pages) {
    static int file = -1;
    describe_address = describe;
    if (file < 0) {
        file = memfd_create("junk", MFD_CLOEXEC);
        if (file < 0 || ftruncate(file, JUNK)) return false;
        void *p = mmap(nullptr, JUNK, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        if (p == MAP_FAILED) return false;
        memset(p, junk, JUNK);
        munmap(p, JUNK);
    }
    for (uint64_t at = 0; at < pages; at += JUNK)
        if (mmap((void *)(low + at), std::min(JUNK, pages - at), PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_FIXED, file, 0) == MAP_FAILED)
            return false;
    return true;
}

void unmap_pages(uint64_t low, uint64_t pages) {
    mmap((void *)low, pages, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
         0);
}

namespace {

// The first gap that holds `bytes` and a page on each side; freed pages count as gap.
uint64_t find_gap(Arena &a, uint64_t bytes) {
    if (a.next + bytes + PAGE <= a.base + a.size) return a.next;
    uint64_t low = a.base + PAGE;
    for (auto &entry : a.live) {
        if (low + bytes + PAGE <= entry.second.low) return low;
        low = entry.second.high + PAGE;
    }
    return low + bytes + PAGE <= a.base + a.size ? low : 0;
}

void set_protection(Arena &a, bool open) {
    if (a.live.empty()) return;
    const int mode = open ? PROT_READ | PROT_WRITE : PROT_NONE;
    if (open) a.all_opened = a.live.size() > MOST_SINGLY;
    if (a.all_opened) {
        const uint64_t low = a.live.begin()->second.low;
        mprotect((void *)low, a.next - low, mode);
    } else {
        for (auto &entry : a.live)
            mprotect((void *)entry.second.low, entry.second.high - entry.second.low, mode);
    }
}

// Under AddressSanitizer what lies around an allocation is poisoned, so that a program compiled
// with it names the line.
void poison(const Allocation &m, bool on) {
    typedef void (*Region)(const void *, size_t);
    static const Region set = (Region)dlsym(RTLD_DEFAULT, "__asan_poison_memory_region");
    static const Region clear = (Region)dlsym(RTLD_DEFAULT, "__asan_unpoison_memory_region");
    if (!set || !clear) return;
    clear((void *)m.low, m.high - m.low);
    if (!on) return;
    set((void *)m.low, m.start - m.low);
    set((void *)(m.start + m.bytes), m.high - m.start - m.bytes);
}

bool intact(const Allocation &m) {
    const unsigned char *p = (const unsigned char *)m.low;
    for (uint64_t i = 0; i < m.start - m.low; i++)
        if (p[i] != CANARY) return false;
    p = (const unsigned char *)(m.start + m.bytes);
    for (uint64_t i = 0; i < m.high - m.start - m.bytes; i++)
        if (p[i] != CANARY) return false;
    return true;
}

std::string describe(const void *address) {
    const uint64_t at = (uint64_t)address;
    for (int i = 0; i < state->devices; i++) {
        Arena &a = arenas[i];
        if (!a.base || at < a.base || at >= a.base + a.size) continue;
        std::string text = ", memory of device " + std::to_string(i);
        if (state->protect && !(opened >> i & 1u))
            text += " which this kernel's device may not touch";
        auto after = a.live.upper_bound(at);
        if (after == a.live.begin()) return text + ", not allocated";
        const Allocation &m = std::prev(after)->second;
        if (at < m.start + m.bytes)
            return text + ", byte " + std::to_string(at - m.start) + " of " +
                   std::to_string(m.bytes);
        if (at - m.start - m.bytes < 1 << 20)
            return text + ", " + std::to_string(at - m.start - m.bytes) +
                   " bytes behind an allocation of " + std::to_string(m.bytes);
        return text + ", not allocated";
    }
    return describe_reserved(at);
}

int device_of(uint64_t address) {
    for (int i = 0; i < state->devices; i++)
        if (arenas[i].base && address >= arenas[i].base &&
            address < arenas[i].base + arenas[i].size)
            return i;
    return device_behind(address);
}

}  // namespace

// While some device's memory is open, what is allocated there is open too.
void open_memory(unsigned devices) {
    if (!state->protect || devices == opened) return;
    for (int i = 0; i < state->devices; i++)
        if ((devices ^ opened) >> i & 1u) {
            set_protection(arenas[i], devices >> i & 1u);
            protect_mapped(i, devices >> i & 1u);
        }
    opened = devices;
}
bool is_open(int device) { return !state->protect || (opened >> device & 1u); }

void open_for(const Work &work) {
    open_memory(1u << work.context->device | work.context->peers | work.devices);
}

int allocate(int device, uint64_t bytes, uint64_t *address) {
    Arena &a = arenas[device];
    Device &d = state->device[device];
    const uint64_t rounded = (bytes + ALIGN - 1) & ~(ALIGN - 1);
    if (!bytes) return INVALID_VALUE;
    if (rounded < bytes || rounded > ARENA || d.used + rounded > d.total || !reserve(a))
        return OUT_OF_MEMORY;
    const uint64_t pages = (rounded + PAGE - 1) & ~(PAGE - 1), low = find_gap(a, pages);
    if (!low) return OUT_OF_MEMORY;
    if (!map_junk(low, pages)) {
        unmap_pages(low, pages);
        return OUT_OF_MEMORY;
    }
    Allocation m;
    m.start = low + pages - rounded;
    m.bytes = bytes;
    m.low = low;
    m.high = low + pages;
    m.id = ++last_id;
    memset((void *)low, CANARY, m.start - low);
    memset((void *)(m.start + bytes), CANARY, m.high - m.start - bytes);
    poison(m, true);
    a.live[m.start] = m;
    a.next = std::max(a.next, m.high + PAGE);
    d.used += rounded;
    if (state->protect && !(opened >> device & 1u)) mprotect((void *)low, pages, PROT_NONE);
    *address = m.start;
    return OK;
}

int release(uint64_t address) {
    const int device = device_of(address);
    if (device < 0) return INVALID_VALUE;
    Arena &a = arenas[device];
    auto found = a.live.find(address);
    if (found == a.live.end() || found->second.opens) return INVALID_VALUE;
    const Allocation m = found->second;
    const uint64_t pages = m.high - m.low;
    poison(m, false);
    if (state->protect) mprotect((void *)m.low, pages, PROT_READ | PROT_WRITE);
    if (!intact(m))
        fail(&state->device[device].context,
             {ILLEGAL_ADDRESS, "the bytes around an allocation of " + std::to_string(m.bytes) +
                                   " bytes on device " + std::to_string(device) +
                                   " were written to"});
    if (m.file >= 0) {    // who has it open still sees that it is gone
        memset((void *)m.low, junk, pages);
        close(m.file);
    }
    unmap_pages(m.low, pages);
    a.live.erase(found);
    state->device[device].used -= (m.bytes + ALIGN - 1) & ~(ALIGN - 1);
    return OK;
}

int check_canaries(int device, std::string *text) {
    Arena &a = arenas[device];
    const unsigned before = opened;
    open_memory(opened | 1u << device);
    int n = 0;
    for (auto &entry : a.live)
        if (!intact(entry.second)) {
            n++;
            *text += "the bytes around an allocation of " + std::to_string(entry.second.bytes) +
                     " bytes on device " + std::to_string(device) + " were written to; ";
        }
    open_memory(before);
    return n;
}

void reset_memory(int device) {
    Arena &a = arenas[device];
    while (!a.live.empty()) {
        const Allocation m = a.live.begin()->second;
        poison(m, false);
        if (m.file >= 0) close(m.file);
        unmap_pages(m.low, m.high - m.low);
        a.live.erase(a.live.begin());
    }
    reset_mapped(device);
    state->device[device].used = 0;
}

Range range_of(uint64_t address) {
    if (device_behind(address) >= 0) return mapped_range(address);
    Range r;
    const int device = device_of(address);
    if (device >= 0) {
        r.kind = DEVICE;
        r.device = device;
        auto after = arenas[device].live.upper_bound(address);
        if (after != arenas[device].live.begin()) {
            const Allocation &m = std::prev(after)->second;
            if (address < m.start + m.bytes) {
                r.start = m.start;
                r.bytes = m.bytes;
                r.id = m.id;
            }
        }
        return r;
    }
    auto after = host_ranges.upper_bound(address);
    if (after != host_ranges.begin()) {
        auto found = std::prev(after);
        if (address < found->first + found->second.bytes) {
            r.kind = PINNED;
            r.device = 0;
            r.start = found->first;
            r.bytes = found->second.bytes;
            r.id = found->second.id;
            r.registered = found->second.registered;
        }
    }
    return r;
}

bool holds(const Range &r, uint64_t address, uint64_t bytes) {
    return r.bytes && address >= r.start && bytes <= r.bytes - (address - r.start);
}

void reset_host_memory() {
    for (auto &entry : host_ranges)
        if (!entry.second.registered)
            munmap((void *)entry.first, (entry.second.bytes + PAGE - 1) & ~(PAGE - 1));
    host_ranges.clear();
}

// -------------------------------------------------------------------------- the driver's functions

STANDIN_API int cuMemGetInfo_v2(size_t *free, size_t *total) {
    STANDIN_CALL("cuMemGetInfo", CONTEXT);
    const Device &d = state->device[call.context->device];
    if (free) *free = d.total > d.used ? d.total - d.used : 0;
    if (total) *total = d.total;
    return OK;
}

STANDIN_API int cuMemAlloc_v2(uint64_t *address, size_t bytes) {
    STANDIN_CALL("cuMemAlloc", CONTEXT);
    if (const int status = refused()) return status;
    if (!address) return INVALID_VALUE;
    const int status = allocate(call.context->device, bytes, address);
    if (!status) state->counters.allocations++;
    return status;
}

// Waits for all work of the device, as cuMemFree does: somebody may still use the memory.
STANDIN_API int cuMemFree_v2(uint64_t address) {
    STANDIN_CALL("cuMemFree", CONTEXT);
    if (const int status = refused()) return status;
    if (!address) return OK;
    const Range r = range_of(address);
    if (r.kind != DEVICE || r.start != address) return INVALID_VALUE;
    Context *owner = &state->device[r.device].context;
    finish(owner, call.lock);
    const int status = release(address);
    if (!status) state->counters.frees++;
    return status ? status : owner->failed;
}

STANDIN_API int cuMemAllocAsync(uint64_t *address, size_t bytes, void *handle) {
    STANDIN_CALL("cuMemAllocAsync", CONTEXT);
    StreamRef stream = stream_of(handle, call.context);
    if (!stream) return INVALID_HANDLE;
    if (!address) return INVALID_VALUE;
    int status = allocate(stream->context->device, bytes, address);
    if (!status) arenas[stream->context->device].live[*address].in_order = true;
    if (status == OUT_OF_MEMORY) {    // what frees on this stream have given back can be had
        finish(stream, call.lock);
        status = allocate(stream->context->device, bytes, address);
    }
    if (!status) state->counters.allocations++;
    return status;
}

STANDIN_API int cuMemFreeAsync(uint64_t address, void *handle) {
    STANDIN_CALL("cuMemFreeAsync", CONTEXT);
    if (!address) return OK;
    StreamRef stream = stream_of(handle, call.context);
    if (!stream) return INVALID_HANDLE;
    const Range r = range_of(address);
    if (r.kind != DEVICE || r.start != address) return INVALID_VALUE;
    Work work;
    work.context = stream->context;
    work.devices = 1u << r.device;
    work.always = true;
    work.run = [address] {
        release(address);
        return Failure();
    };
    enqueue(stream, std::move(work));
    state->counters.frees++;
    after_enqueue(call.lock);
    return OK;
}

STANDIN_API int cuMemGetAddressRange_v2(uint64_t *base, size_t *bytes, uint64_t address) {
    STANDIN_CALL("cuMemGetAddressRange", CONTEXT);
    const Range r = range_of(address);
    if (!r.bytes) return NOT_FOUND;
    if (base) *base = r.start;
    if (bytes) *bytes = r.bytes;
    return OK;
}

STANDIN_API int cuMemHostAlloc(void **p, size_t bytes, unsigned) {
    STANDIN_CALL("cuMemHostAlloc", CONTEXT);
    if (!p || !bytes) return INVALID_VALUE;
    const size_t pages = (bytes + PAGE - 1) & ~(PAGE - 1);
    void *m = mmap(nullptr, pages, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (m == MAP_FAILED) return OUT_OF_MEMORY;
    memset(m, junk, bytes);
    host_ranges[(uint64_t)m] = {bytes, ++last_id, false};
    state->counters.host_allocations++;
    *p = m;
    return OK;
}
STANDIN_API int cuMemAllocHost_v2(void **p, size_t bytes) { return cuMemHostAlloc(p, bytes, 0); }

// Pinned memory may be in use by queued work of any device.
STANDIN_API int cuMemFreeHost(void *p) {
    STANDIN_CALL("cuMemFreeHost", CONTEXT);
    auto found = host_ranges.find((uint64_t)p);
    if (found == host_ranges.end() || found->second.registered) return INVALID_VALUE;
    for (int i = 0; i < state->devices; i++) finish(&state->device[i].context, call.lock);
    found = host_ranges.find((uint64_t)p);
    if (found == host_ranges.end()) return INVALID_VALUE;
    munmap(p, (found->second.bytes + PAGE - 1) & ~(PAGE - 1));
    host_ranges.erase(found);
    state->counters.host_frees++;
    return OK;
}

STANDIN_API int cuMemHostRegister_v2(void *p, size_t bytes, unsigned) {
    STANDIN_CALL("cuMemHostRegister", CONTEXT);
    if (!p || !bytes) return INVALID_VALUE;
    auto after = host_ranges.upper_bound((uint64_t)p + bytes - 1);
    if (after != host_ranges.begin() &&
        std::prev(after)->first + std::prev(after)->second.bytes > (uint64_t)p)
        return ALREADY_REGISTERED;
    host_ranges[(uint64_t)p] = {bytes, ++last_id, true};
    return OK;
}

STANDIN_API int cuMemHostUnregister(void *p) {
    STANDIN_CALL("cuMemHostUnregister", CONTEXT);
    auto found = host_ranges.find((uint64_t)p);
    if (found == host_ranges.end() || !found->second.registered) return NOT_REGISTERED;
    for (int i = 0; i < state->devices; i++) finish(&state->device[i].context, call.lock);
    host_ranges.erase((uint64_t)p);
    return OK;
}

STANDIN_API int cuMemHostGetDevicePointer_v2(uint64_t *address, void *p, unsigned) {
    STANDIN_CALL("cuMemHostGetDevicePointer", CONTEXT);
    if (!address || range_of((uint64_t)p).kind != PINNED) return INVALID_VALUE;
    *address = (uint64_t)p;
    return OK;
}

STANDIN_API int cuMemHostGetFlags(unsigned *flags, void *p) {
    STANDIN_CALL("cuMemHostGetFlags", CONTEXT);
    if (!flags || range_of((uint64_t)p).kind != PINNED) return INVALID_VALUE;
    *flags = 0;
    return OK;
}

namespace {

int pointer_attribute(void *out, int attribute, uint64_t address, const Range &r) {
    if (!out) return INVALID_VALUE;
    switch (attribute) {
    case 1: *(void **)out = &state->device[r.device].context; return OK;
    case 2: *(unsigned *)out = r.kind == DEVICE ? 2 : 1; return OK;
    case 3: *(uint64_t *)out = address; return OK;
    case 4:
        if (r.kind == DEVICE) return INVALID_VALUE;
        *(void **)out = (void *)address;
        return OK;
    case 6: case 8: case 10: case 15: *(unsigned *)out = 0; return OK;
    case 7: *(unsigned long long *)out = r.id; return OK;
    case 9: *(int *)out = r.device; return OK;
    case 11: *(uint64_t *)out = r.start; return OK;
    case 12: *(size_t *)out = r.bytes; return OK;
    case 13: *(unsigned *)out = 1; return OK;
    default: return INVALID_VALUE;
    }
}

}  // namespace

STANDIN_API int cuPointerGetAttribute(void *out, int attribute, uint64_t address) {
    STANDIN_CALL("cuPointerGetAttribute", INITIALISED);
    const Range r = range_of(address);
    return r.bytes ? pointer_attribute(out, attribute, address, r) : (int)INVALID_VALUE;
}

// Unlike the single form, an unknown pointer is no error here: its attributes are zero.
STANDIN_API int cuPointerGetAttributes(unsigned n, int *attributes, void **out, uint64_t address) {
    STANDIN_CALL("cuPointerGetAttributes", INITIALISED);
    const Range r = range_of(address);
    for (unsigned i = 0; i < n; i++) {
        if (r.bytes && !pointer_attribute(out[i], attributes[i], address, r)) continue;
        const bool wide = attributes[i] == 1 || attributes[i] == 3 || attributes[i] == 4 ||
                          attributes[i] == 7 || attributes[i] == 11 || attributes[i] == 12;
        if (out[i]) memset(out[i], 0, wide ? 8 : 4);
        if (out[i] && attributes[i] == 9) *(int *)out[i] = -2;
    }
    return OK;
}

// --------------------------------------------------------------------------------- other processes

namespace {

// What a handle's 64 bytes hold: a file in memory of a process, by the name that it must have, and
// where in it what lies.
struct MemoryHandle {
    char magic[8];
    int32_t process, file, device, unused;
    uint64_t id, pages, offset, bytes;
    char rest[8];
};
static_assert(sizeof(MemoryHandle) == 64, "as CUipcMemHandle");
const char MAGIC[8] = {'s', 't', 'a', 'n', 'd', 'i', 'n', '1'};

std::string file_name(uint64_t id) { return "standin-memory-" + std::to_string(id); }

// Moves pages into a file in memory, where another process can show them.
bool share_pages(Allocation &m) {
    const uint64_t pages = m.high - m.low;
    const int file = memfd_create(file_name(m.id).c_str(), MFD_CLOEXEC);
    if (file < 0) return false;
    const unsigned before = opened;
    open_memory(~0u);
    poison(m, false);
    uint64_t done = 0;
    for (ssize_t n = 1; done < pages && n > 0; done += n > 0 ? (uint64_t)n : 0)
        n = write(file, (void *)(m.low + done), pages - done);
    if (done == pages)
        mmap((void *)m.low, pages, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0);
    poison(m, true);
    open_memory(before);
    if (done < pages) close(file);
    else m.file = file;
    return done == pages;
}

}  // namespace

STANDIN_API int cuIpcGetMemHandle(MemoryHandle *handle, uint64_t address) {
    STANDIN_CALL("cuIpcGetMemHandle", CONTEXT);
    const int device = device_of(address);
    if (!handle || device < 0) return INVALID_VALUE;
    auto found = arenas[device].live.find(address);    // not mapped memory, nor what lies within
    if (found == arenas[device].live.end() || found->second.in_order || found->second.opens)
        return INVALID_VALUE;
    Allocation &m = found->second;
    if (m.file < 0 && !share_pages(m)) return OUT_OF_MEMORY;
    MemoryHandle h = {};
    memcpy(h.magic, MAGIC, sizeof(MAGIC));
    h.process = getpid();
    h.file = m.file;
    h.device = device;
    h.id = m.id;
    h.pages = m.high - m.low;
    h.offset = m.start - m.low;
    h.bytes = m.bytes;
    *handle = h;
    return OK;
}

STANDIN_API int cuIpcOpenMemHandle_v2(uint64_t *address, MemoryHandle h, unsigned flags) {
    STANDIN_CALL("cuIpcOpenMemHandle", CONTEXT);
    if (!address || flags != 1 || memcmp(h.magic, MAGIC, sizeof(MAGIC)) ||
        h.device != call.context->device)
        return INVALID_VALUE;
    if (h.process == getpid()) return INVALID_CONTEXT;
    const uint64_t origin = (uint64_t)h.process << 32 | h.id;
    Arena &a = arenas[h.device];
    for (auto &entry : a.live)
        if (entry.second.opens && entry.second.origin == origin) {
            entry.second.opens++;
            *address = entry.first;
            return OK;
        }
    const std::string path = "/proc/" + std::to_string(h.process) + "/fd/" + std::to_string(h.file);
    char target[64] = {};
    if (readlink(path.c_str(), target, sizeof(target) - 1) < 0 ||
        std::string(target).rfind("/memfd:" + file_name(h.id) + " ", 0) != 0)
        return INVALID_VALUE;    // the process has ended, or has freed the memory
    const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (file < 0 || !reserve(a)) return INVALID_VALUE;
    const uint64_t low = find_gap(a, h.pages);
    void *p =
        low ? mmap((void *)low, h.pages, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0)
            : MAP_FAILED;
    close(file);
    if (p == MAP_FAILED) return OUT_OF_MEMORY;
    Allocation m;
    m.low = low;
    m.high = low + h.pages;
    m.start = low + h.offset;
    m.bytes = h.bytes;
    m.id = ++last_id;
    m.origin = origin;
    m.opens = 1;
    a.live[m.start] = m;
    a.next = std::max(a.next, m.high + PAGE);
    if (!is_open(h.device)) mprotect(p, h.pages, PROT_NONE);
    *address = m.start;
    return OK;
}

// Waits for nothing: work that comes later and touches the memory fails.
STANDIN_API int cuIpcCloseMemHandle(uint64_t address) {
    STANDIN_CALL("cuIpcCloseMemHandle", CONTEXT);
    if (const int status = refused()) return status;
    const int device = device_of(address);
    if (device < 0) return INVALID_VALUE;
    auto found = arenas[device].live.find(address);
    if (found == arenas[device].live.end() || !found->second.opens) return INVALID_VALUE;
    if (--found->second.opens) return OK;
    unmap_pages(found->second.low, found->second.high - found->second.low);
    arenas[device].live.erase(found);
    return OK;
}

STANDIN_API int cuMemAllocManaged(uint64_t *, size_t, unsigned) {
    STANDIN_CALL("cuMemAllocManaged", CONTEXT);
    return NOT_SUPPORTED;
}

}  // namespace standin
