// The caching CPU allocator that Storage uses, and the thread-local state.
//
// Every block is header + data in one 64-byte aligned allocation. Free blocks are kept by size
// class (four classes per power of two): at most 512 blocks of each small class (up to 64 KiB), and
// never more bytes than the cap in all. When a small block would exceed the cap, the cached large
// blocks are freed first. Large blocks are freed after some seconds without use. All of it runs
// under the GIL; only the state word is per thread.
#include "_storage.h"
#include "_state.h"
#include "watch.h"
#include "cgroup.hpp"
#include "ptcore/config.h"

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#if defined(_WIN32) || defined(PT_NO_CACHE)
#include <malloc.h>
#endif
#ifdef _WIN32
#define NOMINMAX
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#include <io.h>
#else
#include <sys/mman.h>
#include <unistd.h>
#endif

thread_local pt_state pt_tls = {0, 1};          /* grad mode is on; all else is 0 */
uint32_t pt_modes_seen = 0;
void (*pt_on_storage)(pt_storage *) = nullptr;

namespace {

constexpr int64_t HEADER = 64;
constexpr int64_t SMALL_LIMIT = 64 * 1024;
constexpr int CLASSES = 4 * 48;
constexpr int SMALL_KEEP = 512;
constexpr int64_t HUGE_PAGE = 4 << 20;
constexpr double IDLE_SECONDS = 10.0;
static_assert(sizeof(pt_storage) <= HEADER, "the header must fit in its 64 bytes");

struct FreeBlock {
    FreeBlock *next;
    int64_t bytes;      // of the whole allocation
    double since;       // seconds, for the idle trim; for large blocks only
};

struct Cache {
    FreeBlock *head[CLASSES];
    int count[CLASSES];
    int64_t cached, cached_large, allocated, peak, hits, misses, live, cap;
    double last_sweep;
    bool cap_ready;     // the cap is known, and no watcher is set
};
Cache cache = {};
bool cap_known = false;
void (*watcher)(int64_t bytes) = nullptr;

double now() {
    using namespace std::chrono;
    return duration<double>(steady_clock::now().time_since_epoch()).count();
}

// Bytes of class c: (4 + c % 4) << (c / 4 + 5), header included; class 0 is 128 bytes.
inline int64_t class_bytes(int c) { return int64_t(4 + (c & 3)) << ((c >> 2) + 5); }

inline int class_of(int64_t bytes) {
    if (bytes <= 128) return 0;
    uint64_t b = uint64_t(bytes - 1);
#if defined(__GNUC__) || defined(__clang__)
    int top = 63 - __builtin_clzll(b);
#else
    int top = 0;
    for (uint64_t v = b; v >>= 1;) top++;
#endif
    return int((top - 7) * 4 + int((b >> (top - 2)) & 3) + 1);
}

// 1 GiB, or a tenth of the memory that the machine or a cgroup of this process has, if that is
// less.
int64_t default_cap() {
    int64_t cap = int64_t(1) << 30;
    auto lower = [&](int64_t limit) {
        if (limit > 0 && limit / 10 < cap) cap = limit / 10;
    };
#ifndef _WIN32
    lower(int64_t(sysconf(_SC_PHYS_PAGES)) * int64_t(sysconf(_SC_PAGESIZE)));
#endif
#if defined(__linux__)
    each_cgroup("memory", [&](const char *folder) {
        const char *const files[] = {"memory.max", "memory.limit_in_bytes"};    // versions 2 and 1
        for (const char *file : files) {
            char line[64];
            if (read_cgroup(folder, file, line, sizeof line))
                lower(std::strtoll(line, nullptr, 10));
        }
    });
#endif
    return cap;
}

int64_t cap() {
    if (!cap_known) {
        cache.cap = default_cap();
        cap_known = true;
    }
    cache.cap_ready = watcher == nullptr;
    return cache.cap;
}

// Whether the bytes lie behind the storage's header: they are neither foreign nor moved, and there
// are some.
inline bool is_own(const pt_storage *s) { return !s->deleter && !(s->flags & PT_STORAGE_META); }

// A storage with memory of its own has got so many bytes more.
inline void tell_watcher(int64_t bytes) {
    if (watcher != nullptr && bytes != 0) watcher(bytes);
}

// Called before the first block is freed, and before every free while a watcher is set.
PT_NOINLINE void make_ready(const pt_storage *s) {
    cap();
    if (is_own(s)) tell_watcher(-s->nbytes);
}

void *system_alloc(int64_t bytes) {
#ifdef _WIN32
    return _aligned_malloc(size_t(bytes), 64);
#else
    void *p = nullptr;
    size_t align = bytes >= HUGE_PAGE ? size_t(2) << 20 : 64;
    if (posix_memalign(&p, align, size_t(bytes)) != 0) return nullptr;
#ifdef MADV_HUGEPAGE
    if (bytes >= HUGE_PAGE) madvise(p, size_t(bytes), MADV_HUGEPAGE);
#endif
    return p;
#endif
}

void system_free(void *p) {
#ifdef _WIN32
    _aligned_free(p);
#else
    std::free(p);
#endif
}

// Frees the cached blocks of class `from` and above that have been idle longer than `seconds`.
void sweep(double seconds, int from = 0) {
    double limit = now() - seconds;
    for (int c = from; c < CLASSES; c++) {
        FreeBlock **link = &cache.head[c];
        while (FreeBlock *b = *link) {
            if (b->since <= limit) {
                *link = b->next;
                cache.cached -= b->bytes;
                if (b->bytes > SMALL_LIMIT) cache.cached_large -= b->bytes;
                cache.count[c]--;
                system_free(b);
            } else {
                link = &b->next;
            }
        }
    }
}

// Without caches a block has exactly the needed size, so that a sanitizer sees its end.
inline int64_t asked_for(int64_t class_size, int64_t needed) {
#ifdef PT_NO_CACHE
    (void)class_size;
    return needed;
#else
    (void)needed;
    return class_size;
#endif
}

// The usable bytes of a block, header included.
inline int64_t usable_bytes(const pt_storage *s) {
#ifdef PT_NO_CACHE
    return int64_t(malloc_usable_size(const_cast<pt_storage *>(s)));
#else
    return class_bytes(s->size_class);
#endif
}

void *block_alloc(int c, int64_t bytes, int64_t needed) {
    FreeBlock *b = cache.head[c];
    if (b) {
        cache.head[c] = b->next;
        cache.count[c]--;
        cache.cached -= bytes;
        if (bytes > SMALL_LIMIT) cache.cached_large -= bytes;
        cache.hits++;
        return b;
    }
    cache.misses++;
    bytes = asked_for(bytes, needed);
    void *p = system_alloc(bytes);
    if (!p) {
        pt_memory_empty_cache();
        p = system_alloc(bytes);
    }
    return p;
}

void block_free(pt_storage *p, int c, int64_t bytes) {
    if (!cache.cap_ready) make_ready(p);
#ifndef PT_NO_CACHE
    bool small = bytes <= SMALL_LIMIT;
    if (small && cache.cached_large && cache.cached + bytes > cache.cap)
        sweep(-1.0, class_of(SMALL_LIMIT) + 1);
    if (cache.cached + bytes <= cache.cap && (!small || cache.count[c] < SMALL_KEEP)) {
        FreeBlock *b = reinterpret_cast<FreeBlock *>(p);
        b->bytes = bytes;
        b->since = 0;
        if (!small) {
            b->since = now();
            if (b->since - cache.last_sweep > IDLE_SECONDS) {
                cache.last_sweep = b->since;
                sweep(IDLE_SECONDS, class_of(SMALL_LIMIT) + 1);
            }
        }
        b->next = cache.head[c];
        cache.head[c] = b;
        cache.count[c]++;
        cache.cached += bytes;
        if (!small) cache.cached_large += bytes;
        return;
    }
#endif
    system_free(p);
}

inline void count_in(int64_t bytes) {
    cache.live++;
    cache.allocated += bytes;
    if (cache.allocated > cache.peak) cache.peak = cache.allocated;
}

}  // namespace

extern "C" {

pt_storage *pt_storage_new(int64_t nbytes) {
    if (nbytes < 0 || nbytes > (int64_t(1) << 50)) return nullptr;
    int c = class_of(nbytes + HEADER);
    int64_t bytes = class_bytes(c);
    pt_storage *s = static_cast<pt_storage *>(block_alloc(c, bytes, nbytes + HEADER));
    if (!s) return nullptr;
    std::memset(s, 0, sizeof *s);
    s->refs = 1;
    s->nbytes = nbytes;
    s->data = reinterpret_cast<char *>(s) + HEADER;
    s->size_class = c;
    count_in(bytes);
    if (pt_modes_seen & (PT_MODE_PLANNING | PT_SEEN_WATCH)) {
        tell_watcher(nbytes);
        if (pt_tls.mode & PT_MODE_PLANNING) pt_on_storage(s);
    }
    return s;
}

pt_storage *pt_storage_wrap(void *data, int64_t nbytes, void *owner,
                            void (*deleter)(pt_storage *), int flags) {
    pt_storage *s = pt_storage_new(0);
    if (!s) return nullptr;
    s->data = static_cast<char *>(data);
    s->nbytes = nbytes;
    s->owner = owner;
    s->deleter = deleter;
    s->flags = uint16_t(flags);
    return s;
}

pt_storage *pt_storage_new_meta(int64_t nbytes) {
    pt_storage *s = pt_storage_wrap(nullptr, nbytes, nullptr, nullptr, PT_STORAGE_META);
    return s;
}

static void (*release_handle)(pt_storage *);

void pt_storage_set_release(void (*release)(pt_storage *)) { release_handle = release; }

void pt_storage_free(pt_storage *s) {
    if (s->flags & PT_STORAGE_OWNS_HANDLE) {
        release_handle(s);
        return;
    }
    if (s->deleter) s->deleter(s);
    int64_t bytes = class_bytes(s->size_class);
    cache.live--;
    cache.allocated -= bytes;
    block_free(s, s->size_class, bytes);
}

// A moved storage keeps its header (other objects point to it) and owns a second block; its `owner`
// field points to the header of that block.
static void free_moved(pt_storage *s) { pt_storage_decref(static_cast<pt_storage *>(s->owner)); }

// Bytes that the storage's own memory has room for; 0 where it is foreign.
static int64_t capacity_of(const pt_storage *s) {
    if (!s->deleter) return usable_bytes(s) - HEADER;
    if (s->deleter == free_moved) return usable_bytes(static_cast<pt_storage *>(s->owner)) - HEADER;
    return 0;
}

// Blocks given up by moved storages, and storages that tensors no longer show, chained by `handle`
// and freed when no kernel runs without the GIL.
static pt_storage *retired;
static int64_t kernels_running;

void pt_kernels_enter(void) { kernels_running++; }

void pt_kernels_leave(void) {
    if (--kernels_running > 0) return;
    kernels_running = 0;        // in a forked child the count may have been 0 already
    while (pt_storage *s = retired) {
        retired = static_cast<pt_storage *>(s->handle);
        pt_storage_free(s);
    }
}

void pt_kernels_forked(void) {
    kernels_running = 1;
    pt_kernels_leave();
}

void pt_storage_retire(pt_storage *s) {
    if (--s->refs) return;
    if (!kernels_running || s->flags & PT_STORAGE_OWNS_HANDLE) {
        pt_storage_free(s);
        return;
    }
    s->handle = retired;
    retired = s;
}

// Releases what s owns: at once, or after the last kernel that may read it; 0 on success.
static int give_up(pt_storage *s) {
    if (!s->deleter) return 0;
    if (!kernels_running) {
        s->deleter(s);
        return 0;
    }
    pt_storage *old = pt_storage_new(0);
    if (!old) return -1;
    old->data = s->data;
    old->owner = s->owner;
    old->deleter = s->deleter;
    old->handle = retired;
    retired = old;
    return 0;
}

int pt_storage_move(pt_storage *s, int64_t nbytes) {
    // A block is never exchanged for a smaller one: views may still show the whole block.
    if (nbytes <= capacity_of(s)) {
        if (nbytes > s->nbytes) std::memset(s->data + s->nbytes, 0, size_t(nbytes - s->nbytes));
        if (is_own(s)) tell_watcher(nbytes - s->nbytes);
        s->nbytes = nbytes;
        return 0;
    }
    pt_storage *block = pt_storage_new(nbytes);
    if (!block) return -1;
    int64_t keep = s->nbytes < nbytes ? s->nbytes : nbytes;
    if (keep > 0) std::memcpy(block->data, s->data, size_t(keep));
    if (nbytes > keep) std::memset(block->data + keep, 0, size_t(nbytes - keep));
    const bool own = is_own(s);
    if (give_up(s)) {
        pt_storage_free(block);
        return -1;
    }
    if (own) tell_watcher(-s->nbytes);
    s->data = block->data;
    s->nbytes = nbytes;
    s->owner = block;
    s->deleter = free_moved;
    s->flags &= uint16_t(~PT_STORAGE_READONLY);
    return 0;
}

#ifndef _WIN32
// Gives back the whole pages of a block whose data has moved elsewhere; the block itself stays, as
// the header lies at its start.
static void give_pages_back(pt_storage *s) {
    uintptr_t page = uintptr_t(sysconf(_SC_PAGESIZE));
    uintptr_t first = (uintptr_t(s->data) + page - 1) / page * page;
    uintptr_t end = (uintptr_t(s) + uintptr_t(usable_bytes(s))) / page * page;
    if (first < end) madvise(reinterpret_cast<void *>(first), end - first, MADV_DONTNEED);
}
#endif

int pt_storage_share(pt_storage *s, char *data, int fd, int64_t offset, void *owner,
                     void (*deleter)(pt_storage *)) {
    int64_t done = 0;
#ifndef _WIN32
    while (fd >= 0 && done < s->nbytes) {
        ssize_t n = pwrite(fd, s->data + done, size_t(s->nbytes - done), off_t(offset + done));
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return -1;
        done += n;
    }
#endif
    if (done < s->nbytes) std::memcpy(data + done, s->data + done, size_t(s->nbytes - done));
#ifndef _WIN32
    if (!s->deleter && !kernels_running) give_pages_back(s);
#else
    (void)fd, (void)offset;
#endif
    const bool own = is_own(s);
    if (give_up(s)) return -1;
    if (own) tell_watcher(-s->nbytes);
    s->data = data;
    s->owner = owner;
    s->deleter = deleter;
    s->flags |= PT_STORAGE_SHARED;
    return 0;
}

char *pt_shared_map(int fd, int64_t nbytes) {
#ifdef _WIN32
    HANDLE file = reinterpret_cast<HANDLE>(_get_osfhandle(fd));
    HANDLE section = CreateFileMappingW(file, nullptr, PAGE_READWRITE, 0, 0, nullptr);
    if (!section) return nullptr;
    void *p = MapViewOfFile(section, FILE_MAP_ALL_ACCESS, 0, 0, size_t(nbytes));
    CloseHandle(section);
    return static_cast<char *>(p);
#else
    void *p = mmap(nullptr, size_t(nbytes), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return p == MAP_FAILED ? nullptr : static_cast<char *>(p);
#endif
}

void pt_shared_unmap(char *data, int64_t nbytes) {
#ifdef _WIN32
    (void)nbytes;
    UnmapViewOfFile(data);
#else
    munmap(data, size_t(nbytes));
#endif
}

void pt_shared_close(int fd) {
#ifdef _WIN32
    _close(fd);
#else
    close(fd);
#endif
}

void pt_memory_empty_cache(void) { sweep(-1.0); }

void pt_memory_get_stats(pt_memory_stats *out) {
    *out = {cache.allocated, cache.peak, cache.cached, cache.hits, cache.misses, cache.live, cap()};
}

void pt_memory_reset_peak(void) { cache.peak = cache.allocated; }

void pt_memory_set_cap(int64_t bytes) {
    cache.cap = bytes;
    cap_known = true;
    if (cache.cached > cache.cap) pt_memory_empty_cache();
}

void pt_memory_watch(void (*told)(int64_t bytes)) {
    watcher = told;
    cap();
    if (told != nullptr)
        pt_modes_seen |= PT_SEEN_WATCH;
    else
        pt_modes_seen &= ~uint32_t(PT_SEEN_WATCH);
}

pt_state *pt_state_get(void) { return &pt_tls; }

}  // extern "C"
