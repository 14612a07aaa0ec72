/* Storage blocks and the allocator behind them (implemented in _memory/allocator.cpp).
 *
 * Invariants:
 *  (a) a block is one 64-byte aligned allocation: a 64-byte header, then the data, unless
 *      the memory is foreign (owner set) or has been moved (resize_, share_memory_);
 *  (b) refs and version change only while the GIL is held; free-threaded builds count refs
 *      atomically (their block cache has no lock yet: no module declares that it needs no GIL);
 *  (c) no code keeps `data` across a call that may run Python code: memory can move;
 *  (d) PT_STORAGE_EXPORTED stays set: an address that was given out (NumPy, buffer, DLPack) is
 *      valid until the storage dies, so such a storage is never resized. Nor is a storage with
 *      PT_STORAGE_SHARED, as other processes map its memory;
 *  (e) one Python object stands for a storage as long as that lives. It owns a reference to the
 *      storage, or, when nobody else refers to it, is owned by it (PT_STORAGE_OWNS_HANDLE).
 */
#ifndef PTCORE_STORAGE_H
#define PTCORE_STORAGE_H
#include <stdint.h>
#include <stddef.h>
#if defined(Py_GIL_DISABLED) && defined(__cplusplus)
#include <atomic>
typedef std::atomic<int64_t> pt_refs;
#else
typedef int64_t pt_refs;
#endif
#ifdef __cplusplus
extern "C" {
#endif

enum {
    PT_STORAGE_READONLY = 1,
    PT_STORAGE_EXPORTED = 2,
    PT_STORAGE_SHARED = 4,      /* in memory that other processes can map */
    PT_STORAGE_META = 8,        /* no memory at all */
    PT_STORAGE_OWNS_HANDLE = 16 /* `handle` is a strong reference */
};

typedef struct pt_storage {
    pt_refs refs;
    int64_t nbytes;
    char *data;
    uint64_t version;
    void *owner;                          /* the object that keeps foreign memory alive */
    void (*deleter)(struct pt_storage *); /* releases owner and data; NULL: own block */
    int32_t size_class;
    uint8_t device;                       /* column of the kernel table */
    int8_t device_index;
    uint16_t flags;
    void *handle;                         /* Python's UntypedStorage or NULL; see (e) */
} pt_storage;

typedef struct pt_memory_stats {
    int64_t allocated, peak_allocated, cached, hits, misses, live_blocks, cap;
} pt_memory_stats;

/* NULL if memory is exhausted, even after the cache was emptied and the allocation retried. */
pt_storage *pt_storage_new(int64_t nbytes);
pt_storage *pt_storage_new_meta(int64_t nbytes);
pt_storage *pt_storage_wrap(void *data, int64_t nbytes, void *owner,
                            void (*deleter)(pt_storage *), int flags);
void pt_storage_free(pt_storage *s);
/* Sets what is called if a storage that owns its object has lost its last reference: it gives the
 * object a reference to the storage, and drops the object. */
void pt_storage_set_release(void (*release)(pt_storage *));
/* Moves the data to a new block of nbytes (the common prefix is kept); 0 on success. While
 * kernels run without the GIL, which may be reading the old block, that block is kept
 * until the last of them ends. */
int pt_storage_move(pt_storage *s, int64_t nbytes);
/* Moves the data to memory that other processes can map, and that `owner` keeps alive; 0 on
 * success. fd >= 0 is the new file that is mapped there, with the data at `offset`: writing to the
 * file costs less than page faults of the mapping. */
int pt_storage_share(pt_storage *s, char *data, int fd, int64_t offset, void *owner,
                     void (*deleter)(pt_storage *));
/* Maps all of an open file; NULL with errno (Windows: GetLastError) set. */
char *pt_shared_map(int fd, int64_t nbytes);
void pt_shared_unmap(char *data, int64_t nbytes);
void pt_shared_close(int fd);
/* A decref for a tensor that stops showing s; deferred while a kernel that runs without
 * the GIL may be reading s. */
void pt_storage_retire(pt_storage *s);
/* Call around the release of the GIL for a kernel, with the GIL held. */
void pt_kernels_enter(void);
void pt_kernels_leave(void);
/* Called in a forked child: the kernels of other threads do not run there. */
void pt_kernels_forked(void);
void pt_memory_empty_cache(void);
void pt_memory_get_stats(pt_memory_stats *out);
void pt_memory_reset_peak(void);
void pt_memory_set_cap(int64_t bytes);

static inline void pt_storage_incref(pt_storage *s) { s->refs++; }
static inline void pt_storage_decref(pt_storage *s) {
    if (--s->refs == 0) pt_storage_free(s);
}

#ifdef __cplusplus
}
#endif
#endif
