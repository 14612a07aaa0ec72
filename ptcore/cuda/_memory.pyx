"""The caching allocators of device and pinned memory over the driver, and their statistics."""
import os

from cuda.bindings cimport cydriver as cu
from libc.stdint cimport int64_t, uint8_t, uint64_t, uintptr_t
from libc.stdio cimport snprintf
from libc.string cimport strlen
from libcpp.vector cimport vector

from ptcore._device cimport pt_backend
from ptcore.cuda._runtime cimport MAX_DEVICES, driver, handle_of, hint_of, last_error, thread_state

cdef extern from "block_allocator.hpp" namespace "pt_cuda" nogil:
    cppclass DriverMemory:
        int (*allocate)(int device, size_t nbytes, void **out) noexcept nogil
        int (*release)(int device, void *data) noexcept nogil
        int (*allocate_async)(int device, size_t nbytes, void *stream, void **out) noexcept nogil
        int (*release_async)(int device, void *data, void *stream) noexcept nogil
        int (*info)(int device, size_t *free, size_t *total) noexcept nogil
        int (*event_create)(int device, void **event) noexcept nogil
        int (*event_record)(int device, void *event, void *stream) noexcept nogil
        int (*event_query)(void *event) noexcept nogil
        int (*event_synchronize)(void *event) noexcept nogil
        int (*event_destroy)(void *event) noexcept nogil
        int (*device_synchronize)(int device) noexcept nogil
        int (*host_allocate)(size_t nbytes, void **out) noexcept nogil
        int (*host_release)(void *data) noexcept nogil

    cppclass Backend:
        pass

    cppclass AllocatorSettings:
        Backend backend

    bint parse_settings(const char *text, AllocatorSettings *settings, char *error, size_t room)
    bint parse_backend(const char *word, AllocatorSettings *settings, char *error, size_t room)

    cppclass AllocatorFailure:
        int status

    void failure_text(const AllocatorFailure &why, char *text, size_t room)

    cppclass AllocatorStat:
        const char *key
        int64_t value

    cppclass BlockRow:
        uintptr_t segment, address
        size_t segment_size, size, requested
        void *stream
        uint64_t pool
        bint large
        uint8_t state

    cppclass BlockAllocator:
        BlockAllocator(const DriverMemory &driver, int devices, const AllocatorSettings &settings) except +
        void *allocate(int device, size_t nbytes, void *stream, AllocatorFailure *why, uint64_t pool)
        void begin_capture(int device)
        void end_capture(int device)
        void retire_pool(int device, uint64_t pool)
        bint release(int device, void *data)
        bint record_stream(int device, void *data, void *stream)
        int empty_cache(int device) except +
        int set_memory_fraction(int device, double fraction) except +
        double memory_fraction(int device)
        vector[AllocatorStat] stats(int device) except +
        void reset_peak(int device)
        void reset_accumulated(int device)
        vector[BlockRow] snapshot(int device) except +
        const AllocatorSettings &settings()

    cppclass PinnedPool:
        PinnedPool(const DriverMemory &driver) except +
        void *allocate(size_t nbytes, AllocatorFailure *why)
        bint release(void *data)
        bint record_stream(void *data, int device, void *stream)
        bint owns(const void *data)
        void begin_capture()
        void end_capture()
        int empty_cache() except +
        vector[AllocatorStat] stats() except +
        void reset_peak()
        void reset_accumulated()

cdef DriverMemory memory
cdef BlockAllocator *allocator = NULL
cdef PinnedPool *pinned = NULL


# -- the driver's functions ----------------------------------------------------------------------------------

cdef int device_allocate(int device, size_t nbytes, void **out) noexcept nogil:
    cdef int result = driver.set_device(device)
    # The driver refuses it while a stream captures a graph, as such calls may wait for what the stream has not begun.
    cdef cu.CUstreamCaptureMode mode = cu.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
    if result:
        return result
    cu.cuThreadExchangeStreamCaptureMode(&mode)
    result = cu.cuMemAlloc(<cu.CUdeviceptr *>out, nbytes)
    cu.cuThreadExchangeStreamCaptureMode(&mode)
    return result


cdef int device_release(int device, void *data) noexcept nogil:
    cdef int result = driver.set_device(device)
    return result if result else cu.cuMemFree(<cu.CUdeviceptr>data)


cdef int allocate_async(int device, size_t nbytes, void *stream, void **out) noexcept nogil:
    cdef int result = driver.set_device(device)
    return result if result else cu.cuMemAllocAsync(<cu.CUdeviceptr *>out, nbytes, handle_of(stream))


cdef int release_async(int device, void *data, void *stream) noexcept nogil:
    cdef int result = driver.set_device(device)
    return result if result else cu.cuMemFreeAsync(<cu.CUdeviceptr>data, handle_of(stream))


cdef int memory_info(int device, size_t *free, size_t *total) noexcept nogil:
    cdef int result = driver.set_device(device)
    return result if result else cu.cuMemGetInfo(free, total)


cdef int event_create(int device, void **event) noexcept nogil:
    cdef int result = driver.set_device(device)
    return result if result else cu.cuEventCreate(<cu.CUevent *>event, 2)


cdef int event_record(int device, void *event, void *stream) noexcept nogil:
    cdef int result = driver.set_device(device)
    return result if result else cu.cuEventRecord(<cu.CUevent>event, handle_of(stream))


cdef int event_query(void *event) noexcept nogil:
    return cu.cuEventQuery(<cu.CUevent>event)


cdef int event_synchronize(void *event) noexcept nogil:
    return cu.cuEventSynchronize(<cu.CUevent>event)


cdef int event_destroy(void *event) noexcept nogil:
    return cu.cuEventDestroy(<cu.CUevent>event)


cdef int device_synchronize(int device) noexcept nogil:
    cdef int result = driver.set_device(device)
    return result if result else cu.cuCtxSynchronize()


cdef int any_context() noexcept nogil:
    """Makes a device's context this thread's: the current device's, else that of any other which is in use."""
    cdef int device, result = driver.set_device(thread_state().device)
    for device in range(MAX_DEVICES):
        if result != 201:
            break
        result = driver.set_device(device)
    return result


cdef int host_allocate(size_t nbytes, void **out) noexcept nogil:
    cdef int result = any_context()
    return result if result else cu.cuMemHostAlloc(out, nbytes, 1)


cdef int host_release(void *data) noexcept nogil:
    cdef int result = any_context()
    return result if result else cu.cuMemFreeHost(data)


memory.allocate = device_allocate
memory.release = device_release
memory.allocate_async = allocate_async
memory.release_async = release_async
memory.info = memory_info
memory.event_create = event_create
memory.event_record = event_record
memory.event_query = event_query
memory.event_synchronize = event_synchronize
memory.event_destroy = event_destroy
memory.device_synchronize = device_synchronize
memory.host_allocate = host_allocate
memory.host_release = host_release


# -- what tensors are made of --------------------------------------------------------------------------------

# In a forked child nothing is asked of the allocators: a thread that is not in it may have locked them.

cdef void *allocated(void *data, const AllocatorFailure &why) noexcept nogil:
    """data; where it is NULL, with the reason in last_error."""
    cdef size_t used
    last_error[0] = 0
    if data == NULL:
        failure_text(why, last_error, 1024)
        if why.status != 2:
            used = strlen(last_error)
            snprintf(last_error + used, 1024 - used, " %s%s", driver.text(why.status), hint_of(why.status))
    return data


cdef bint in_child() noexcept nogil:
    if driver.forked:
        snprintf(last_error, 1024, "%s", driver.text(3))
    return driver.forked


cdef uint64_t pool_of(int device, void *stream) noexcept nogil:
    """The pool that serves a stream: of a graph while it captures one."""
    cdef uint64_t pool = driver.devices[device].capture_pool
    return pool if pool and driver.capturing(stream) else 0


cdef void *allocate(int64_t nbytes, int device) noexcept nogil:
    cdef AllocatorFailure why
    cdef void *stream
    if in_child():
        return NULL
    stream = driver.stream(device)
    return allocated(allocator.allocate(device, nbytes, stream, &why, pool_of(device, stream)), why)


cdef void release(void *data, int64_t nbytes, int device) noexcept nogil:
    if not driver.forked:
        allocator.release(device, data)


cdef void *allocate_host(int64_t nbytes) noexcept nogil:
    cdef AllocatorFailure why
    if in_child():
        return NULL
    return allocated(pinned.allocate(nbytes, &why), why)


cdef void release_host(void *data) noexcept nogil:
    if not driver.forked:
        pinned.release(data)


cdef int owns_host(const void *data) noexcept nogil:
    return not driver.forked and pinned.owns(data)


cdef int keep_host(void *data, int device, void *stream) noexcept nogil:
    return pinned.record_stream(data, device, stream)


cdef int keep(void *data, int device, void *stream) noexcept nogil:
    return 1 if in_child() or not allocator.record_stream(device, data, stream) else 0


cdef void enter(pt_backend *backend) noexcept:
    backend.allocate, backend.release, backend.record_stream = allocate, release, keep
    backend.allocate_host, backend.release_host, backend.owns_host = allocate_host, release_host, owns_host


def start(int devices, uintptr_t backend):
    """Makes the allocators, by PTCORE_CUDA_ALLOC_CONF (PYTORCH_CUDA_ALLOC_CONF's words) and PTCORE_CUDA_ALLOC, and
    enters their functions into the backend."""
    global allocator, pinned
    cdef AllocatorSettings settings
    cdef char[512] error
    if allocator != NULL:
        return
    text = os.environ.get("PTCORE_CUDA_ALLOC_CONF", "").encode()
    word = os.environ.get("PTCORE_CUDA_ALLOC", "").encode()
    if text and not parse_settings(text, &settings, error, 512):
        raise RuntimeError(f"PTCORE_CUDA_ALLOC_CONF: {error.decode()}")
    if word and not parse_backend(word, &settings, error, 512):
        raise RuntimeError(f"PTCORE_CUDA_ALLOC: {error.decode()}")
    allocator = new BlockAllocator(memory, devices, settings)
    pinned = new PinnedPool(memory)
    driver.allocate = allocate
    driver.release = release
    driver.keep_host = keep_host
    enter(<pt_backend *>backend)


# -- for graphs ----------------------------------------------------------------------------------------------

def begin_capture(int device):
    allocator.begin_capture(device)
    pinned.begin_capture()


def end_capture(int device):
    allocator.end_capture(device)
    pinned.end_capture()


def retire_pool(int device, uint64_t pool):
    """Memory of a pool goes back to the driver once nothing lies there."""
    allocator.retire_pool(device, pool)


# -- for ptcore.cuda.memory ----------------------------------------------------------------------------------

cdef list pairs(const vector[AllocatorStat] &rows):
    cdef size_t i
    return [(rows[i].key.decode(), rows[i].value) for i in range(rows.size())]


def stats(int device):
    """[(key, value)] of a device's allocator."""
    return pairs(allocator.stats(device))


def host_stats():
    """[(key, value)] of the pool of pinned memory."""
    return pairs(pinned.stats())


def reset_peak(int device):
    allocator.reset_peak(device)


def reset_accumulated(int device):
    allocator.reset_accumulated(device)


def reset_host_peak():
    pinned.reset_peak()


def reset_host_accumulated():
    pinned.reset_accumulated()


def empty_cache(int device):
    cdef int result
    with nogil:
        result = allocator.empty_cache(device)
    if result:
        raise RuntimeError(f"empty_cache: {driver.text(result).decode()}")


def empty_host_cache():
    pinned.empty_cache()


def set_fraction(int device, double fraction):
    cdef int result = allocator.set_memory_fraction(device, fraction)
    if result:
        raise RuntimeError(f"set_per_process_memory_fraction: {driver.text(result).decode()}")


def fraction(int device):
    return allocator.memory_fraction(device)


def allocate_raw(int device, size_t nbytes, uintptr_t stream):
    """The address of memory that ``release_raw`` gives back; MemoryError's text if there is none."""
    cdef AllocatorFailure why
    cdef char[1024] text
    cdef void *data
    if driver.forked:
        raise RuntimeError(driver.text(3).decode())
    data = allocator.allocate(device, nbytes, <void *>stream, &why, pool_of(device, <void *>stream))
    if data == NULL:
        failure_text(why, text, 1024)
        from ptcore._errors import OutOfMemoryError
        raise OutOfMemoryError(text.decode())
    return <uintptr_t>data


def release_raw(int device, uintptr_t data):
    return driver.forked or allocator.release(device, <void *>data)


def snapshot(int device):
    """Blocks in the order of segments and addresses: (segment, segment_size, address, size, requested, stream, pool,
    large, state)."""
    cdef vector[BlockRow] rows = allocator.snapshot(device)
    cdef size_t i
    return [(rows[i].segment, rows[i].segment_size, rows[i].address, rows[i].size, rows[i].requested,
             <uintptr_t>rows[i].stream, rows[i].pool, bool(rows[i].large), rows[i].state) for i in range(rows.size())]


def backend():
    """The word of PTCORE_CUDA_ALLOC that is in force."""
    return ("native", "async", "none")[<int>allocator.settings().backend]
