"""The caching allocators of device and pinned memory over the driver, and their statistics."""
import os
from sys import _getframe
from traceback import print_exc

from cpython.exc cimport PyErr_Fetch, PyErr_Restore
from cpython.object cimport PyObject
from cuda.bindings cimport cydriver as cu
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t, uintptr_t
from libc.stdio cimport snprintf
from libc.string cimport memset, strlen
from libcpp.vector cimport vector

from ptcore._device cimport pt_backend
from ptcore.cuda.driver.runtime cimport MAX_DEVICES, driver, exchange, handle_of, hint_of, last_error, thread_state

cdef extern from "block_allocator.hpp" namespace "pt_cuda" nogil:
    cppclass DriverMemory:
        int (*allocate)(int device, size_t nbytes, void **out) noexcept nogil
        int (*release)(int device, void *data) noexcept nogil
        int (*allocate_async)(int device, size_t nbytes, void *stream, void **out) noexcept nogil
        int (*release_async)(int device, void *data, void *stream) noexcept nogil
        int (*info)(int device, size_t *free, size_t *total) noexcept nogil
        int (*event_create)(int device, void **event) noexcept nogil
        int (*event_record)(int device, void *event, void *stream) noexcept nogil
        int (*event_query)(int device, void *event) noexcept nogil
        int (*event_synchronize)(int device, void *event) noexcept nogil
        int (*event_destroy)(void *event) noexcept nogil
        int (*device_synchronize)(int device) noexcept nogil
        int (*host_allocate)(size_t nbytes, void **out) noexcept nogil
        int (*host_release)(void *data) noexcept nogil
        int (*granularity)(int device, size_t *nbytes) noexcept nogil
        int (*reserve)(int device, size_t nbytes, void **out) noexcept nogil
        int (*unreserve)(int device, void *data, size_t nbytes) noexcept nogil
        int (*map)(int device, void *data, size_t nbytes, uint64_t *handle) noexcept nogil
        int (*unmap)(int device, void *data, size_t nbytes, uint64_t handle) noexcept nogil
        int (*foreign_allocate)(void *function, int device, size_t nbytes, void *stream, void **out) noexcept nogil
        int (*foreign_release)(void *function, int device, void *data, size_t nbytes, void *stream) noexcept nogil

    cppclass SegmentSource:
        void *allocate
        void *release

    cppclass PoolRules:
        bint use_on_oom
        bint no_split
        SegmentSource source

    cppclass Backend:
        pass

    cppclass AllocatorSettings:
        Backend backend
        bint expandable
        SegmentSource source
        size_t max_split_size
        double garbage_collection_threshold
        uint8_t *roundup_divisions

    bint parse_settings(const char *text, AllocatorSettings *settings, char *error, size_t room)
    bint parse_backend(const char *word, AllocatorSettings *settings, char *error, size_t room)

    cppclass AllocatorFailure:
        int status
        size_t segment, device_free, device_total, cap

    void failure_text(const AllocatorFailure &why, char *text, size_t room)

    cppclass AllocatorStat:
        const char *key
        int64_t value

    cppclass BlockRow:
        uintptr_t segment, address
        size_t segment_size, size, requested
        void *stream
        uint64_t pool
        bint large, expandable
        uint8_t state
        uint32_t stack, segment_stack

    cppclass HistoryRules:
        bint on, trace
        int stacks
        uint32_t skipped
        size_t most

    uint32_t &stack_of_thread()

    cppclass TraceEntry:
        uint8_t action
        uintptr_t address
        size_t size
        void *stream
        uint64_t pool
        int64_t time_us
        uint32_t stack

    cppclass BlockAllocator:
        BlockAllocator(const DriverMemory &driver, int devices, const AllocatorSettings &settings) except +
        void *allocate(int device, size_t nbytes, void *stream, AllocatorFailure *why, uint64_t pool)
        void begin_capture()
        void end_capture()
        void make_pool(int device, uint64_t pool, const PoolRules &rules) except +
        void retire_pool(int device, uint64_t pool)
        void set_caching(int device, bint on)
        bint release(int device, void *data)
        bint record_stream(int device, void *data, void *stream)
        int empty_cache(int device, bint retired_alone) except +
        int set_memory_fraction(int device, double fraction) except +
        double memory_fraction(int device)
        vector[AllocatorStat] stats(int device) except +
        void reset_peak(int device)
        void reset_accumulated(int device)
        vector[BlockRow] snapshot(int device) except +
        void record_history(int device, const HistoryRules &rules, bint clear) except +
        vector[TraceEntry] history(int device) except +
        void note_snapshot(int device)
        const AllocatorSettings &settings()
        int devices()

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


ctypedef void *(*ForeignAllocate)(Py_ssize_t size, int device, void *stream) noexcept nogil
ctypedef void (*ForeignRelease)(void *data, size_t size, int device, void *stream) noexcept nogil


# -- the driver's functions ----------------------------------------------------------------------------------

# Calls that allocate device memory are no part of a graph. The driver refuses them while a stream captures a graph,
# because they may wait for work that the stream has not begun, unless the thread's capture mode is relaxed.

cdef int relax() noexcept nogil:
    return exchange(cu.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED)


cdef int device_allocate(int device, size_t nbytes, void **out) noexcept nogil:
    cdef int result = driver.set_device(device)
    cdef int mode
    if result:
        return result
    mode = relax()
    result = cu.cuMemAlloc(<cu.CUdeviceptr *>out, nbytes)
    exchange(mode)
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


cdef int event_query(int device, void *event) noexcept nogil:
    cdef int result = driver.set_device(device)
    return result if result else cu.cuEventQuery(<cu.CUevent>event)


cdef int event_synchronize(int device, void *event) noexcept nogil:
    cdef int result = driver.set_device(device)
    return result if result else cu.cuEventSynchronize(<cu.CUevent>event)


cdef int event_destroy(void *event) noexcept nogil:
    return cu.cuEventDestroy(<cu.CUevent>event)


cdef int device_synchronize(int device) noexcept nogil:
    cdef int result = driver.set_device(device)
    return result if result else cu.cuCtxSynchronize()


cdef int any_context() noexcept nogil:
    """Makes a device's context this thread's: that of the current device, else of any other device in use."""
    cdef int device, result = driver.set_device(thread_state().device)
    for device in range(MAX_DEVICES):
        if result != 201:
            break
        result = driver.set_device(device)
    return result


cdef int host_allocate(size_t nbytes, void **out) noexcept nogil:
    cdef int result = any_context()
    cdef int mode
    if result:
        return result
    mode = relax()
    result = cu.cuMemHostAlloc(out, nbytes, 1)
    exchange(mode)
    return result


cdef int host_release(void *data) noexcept nogil:
    cdef int result = any_context()
    return result if result else cu.cuMemFreeHost(data)


cdef void describe(cu.CUmemAllocationProp *memory, int device) noexcept nogil:
    """Describes memory of a device that no other process gets."""
    memset(memory, 0, sizeof(memory[0]))
    memory.type = cu.CUmemAllocationType_enum.CU_MEM_ALLOCATION_TYPE_PINNED
    memory.location.type = cu.CUmemLocationType_enum.CU_MEM_LOCATION_TYPE_DEVICE
    memory.location.id = device


cdef int granularity(int device, size_t *nbytes) noexcept nogil:
    cdef cu.CUmemAllocationProp wanted
    cdef int result = driver.set_device(device)
    describe(&wanted, device)
    return result if result else cu.cuMemGetAllocationGranularity(
        nbytes, &wanted, cu.CUmemAllocationGranularity_flags_enum.CU_MEM_ALLOC_GRANULARITY_RECOMMENDED)


cdef int reserve(int device, size_t nbytes, void **out) noexcept nogil:
    cdef int result = driver.set_device(device)
    cdef int mode
    if result:
        return result
    mode = relax()
    result = cu.cuMemAddressReserve(<cu.CUdeviceptr *>out, nbytes, 0, 0, 0)
    exchange(mode)
    return result


cdef int unreserve(int device, void *data, size_t nbytes) noexcept nogil:
    cdef int result = driver.set_device(device)
    cdef int mode
    if result:
        return result
    mode = relax()
    result = cu.cuMemAddressFree(<cu.CUdeviceptr>data, nbytes)
    exchange(mode)
    return result


cdef int map_memory(int device, void *data, size_t nbytes, uint64_t *handle) noexcept nogil:
    cdef int mode
    cdef cu.CUmemAllocationProp wanted
    cdef cu.CUmemAccessDesc access
    cdef int result = driver.set_device(device)
    if result:
        return result
    describe(&wanted, device)
    access.location = wanted.location
    access.flags = cu.CUmemAccess_flags_enum.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
    mode = relax()
    result = cu.cuMemCreate(<cu.CUmemGenericAllocationHandle *>handle, nbytes, &wanted, 0)
    if result == 0:
        result = cu.cuMemMap(<cu.CUdeviceptr>data, nbytes, 0, handle[0], 0)
        if result == 0:
            result = cu.cuMemSetAccess(<cu.CUdeviceptr>data, nbytes, &access, 1)
            if result:
                cu.cuMemUnmap(<cu.CUdeviceptr>data, nbytes)
        if result:
            cu.cuMemRelease(handle[0])
    exchange(mode)
    return result


cdef int unmap_memory(int device, void *data, size_t nbytes, uint64_t handle) noexcept nogil:
    """Unmaps memory, also under a capture: the part of a range that could not be mapped whole; nothing has used it."""
    cdef int result = driver.set_device(device), released
    cdef int mode
    if result:
        return result
    mode = relax()
    result = cu.cuMemUnmap(<cu.CUdeviceptr>data, nbytes)
    released = cu.cuMemRelease(handle)
    exchange(mode)
    return result if result else released


cdef int foreign_allocate(void *function, int device, size_t nbytes, void *stream, void **out) noexcept nogil:
    cdef int result = driver.set_device(device)
    cdef int mode
    if result:
        return result
    mode = relax()
    out[0] = (<ForeignAllocate>function)(nbytes, device, stream)
    exchange(mode)
    return 2 if out[0] == NULL else 0


cdef int foreign_release(void *function, int device, void *data, size_t nbytes, void *stream) noexcept nogil:
    cdef int result = driver.set_device(device)
    if result == 0:
        (<ForeignRelease>function)(data, nbytes, device, stream)
    return result


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
memory.granularity = granularity
memory.reserve = reserve
memory.unreserve = unreserve
memory.map = map_memory
memory.unmap = unmap_memory
memory.foreign_allocate = foreign_allocate
memory.foreign_release = foreign_release


# -- what tensors are made of --------------------------------------------------------------------------------

# In a forked child no allocator is called: a thread that does not exist in the child may have locked it.

cdef int recorded = 0                   # HistoryRules.stacks of what is recorded now
cdef dict _numbers = {}                 # (address of code, instruction, ...) -> a stack's number
cdef list _stacks = [()]                # number -> ((code, instruction), ...), the innermost call first
observers = []                          # called when memory runs out
reclaim = []                            # functions that release memory that nothing needs any more; whether they did


cdef uint32_t stack_here() except? 0:
    """The number of the running Python stack. Equal stacks share a number, and stay for the life of the process."""
    cdef list key = [], found = []
    frame = _getframe()
    while frame is not None:
        code, place = frame.f_code, frame.f_lasti
        key.append(<uintptr_t><void *>code)             # `_stacks` keeps the code alive
        key.append(place)
        found.append((code, place))
        frame = frame.f_back
    whole, calls = tuple(key), tuple(found)
    number = _numbers.get(whole)
    if number is None:
        number = len(_stacks)
        _stacks.append(calls)
        _numbers[whole] = number
    return number


cdef void enter_stack() noexcept nogil:
    """Tells the allocator the stack of its caller. Not for scratch memory of kernels: this is requested under locks
    with which a thread must not wait for the interpreter."""
    cdef PyObject *kind = NULL
    cdef PyObject *error = NULL
    cdef PyObject *trace = NULL
    with gil:
        PyErr_Fetch(&kind, &error, &trace)      # an error may be set while a tensor is released
        try:
            (&stack_of_thread())[0] = stack_here()
        except BaseException:           # recursion too deep, or no memory: the entry gets no stack
            pass
        PyErr_Restore(kind, error, trace)


cdef bint reclaimed() noexcept nogil:
    """Whether any function of ``reclaim`` has released memory."""
    with gil:
        return _reclaim()


cdef bint _reclaim() noexcept:
    try:
        return any([f() for f in reclaim])
    except BaseException:
        print_exc()
        return False


cdef void tell_observers(int device, const AllocatorFailure &why) noexcept nogil:
    with gil:
        for observer in observers:
            try:
                observer(device, why.segment, min(why.cap, why.device_total), why.device_free)
            except BaseException:       # the request goes on as if there were no such observer
                print_exc()


cdef void *allocated(void *data, const AllocatorFailure &why) noexcept nogil:
    """Returns data; if it is NULL, last_error gets the reason."""
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
    """The pool that serves a stream: a graph's while it captures one, else the one that this thread has chosen."""
    cdef uint64_t pool = driver.devices[device].capture_pool
    return pool if pool and driver.capturing(stream) else thread_state().pools[device]


cdef void *take(int64_t nbytes, int device, AllocatorFailure *why) noexcept nogil:
    cdef void *stream = driver.stream(device)
    return allocator.allocate(device, nbytes, stream, why, pool_of(device, stream))


cdef void *allocate(int64_t nbytes, int device) noexcept nogil:
    """For tensors: with the GIL or where one may wait for it."""
    cdef AllocatorFailure why
    cdef void *data
    if in_child():
        return NULL
    if recorded:
        enter_stack()
    data = take(nbytes, device, &why)
    if data == NULL and why.status == 2 and reclaimed():
        data = take(nbytes, device, &why)
    (&stack_of_thread())[0] = 0
    if data == NULL and why.status == 2:
        tell_observers(device, why)
    return allocated(data, why)


cdef void release(void *data, int64_t nbytes, int device) noexcept nogil:
    if driver.forked:
        return
    if recorded == 3:
        enter_stack()
    allocator.release(device, data)
    (&stack_of_thread())[0] = 0


cdef void *allocate_scratch(int64_t nbytes, int device) noexcept nogil:
    cdef AllocatorFailure why
    return NULL if in_child() else allocated(take(nbytes, device, &why), why)


cdef void release_scratch(void *data, int64_t nbytes, int device) noexcept nogil:
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
    return 0 if driver.forked else pinned.record_stream(data, device, stream)


cdef int keep(void *data, int device, void *stream) noexcept nogil:
    return 1 if in_child() or not allocator.record_stream(device, data, stream) else 0


cdef void enter(pt_backend *backend) noexcept:
    backend.allocate, backend.release, backend.record_stream = allocate, release, keep
    backend.allocate_host, backend.release_host, backend.owns_host = allocate_host, release_host, owns_host


def start(int devices, uintptr_t backend, chosen):
    """Makes the allocators, by PTCORE_CUDA_ALLOC_CONF (PYTORCH_CUDA_ALLOC_CONF's words), PTCORE_CUDA_ALLOC and
    ``change_current_allocator``, and enters their functions into the backend."""
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
    if chosen is not None:              # it does its own caching, if any
        parse_backend(b"none", &settings, error, 512)
        settings.source = source_of(chosen)
    allocator = new BlockAllocator(memory, devices, settings)
    pinned = new PinnedPool(memory)
    driver.allocate = allocate_scratch
    driver.release = release_scratch
    driver.keep_host = keep_host
    enter(<pt_backend *>backend)


cdef SegmentSource source_of(chosen):
    cdef SegmentSource source
    if chosen is not None:
        source.allocate = <void *><uintptr_t>chosen._allocate
        source.release = <void *><uintptr_t>chosen._release
    return source


# -- for graphs ----------------------------------------------------------------------------------------------

def begin_capture():
    allocator.begin_capture()
    pinned.begin_capture()


def end_capture():
    allocator.end_capture()
    pinned.end_capture()


def make_pool(int device, uint64_t pool, chosen, bint use_on_oom, bint no_split):
    """Gives a pool its rules; ``chosen`` is a CUDAPluggableAllocator or None."""
    cdef PoolRules rules
    rules.source, rules.use_on_oom, rules.no_split = source_of(chosen), use_on_oom, no_split
    allocator.make_pool(device, pool, rules)


def choose_pool(int device, uint64_t pool):
    """Makes a pool the source of this thread's memory; returns the pool before."""
    before = thread_state().pools[device]
    thread_state().pools[device] = pool
    return before


def retire_pool(int device, uint64_t pool):
    """The memory of a pool goes back to the driver once no block of it is in use."""
    if not driver.forked:
        allocator.retire_pool(device, pool)


def set_caching(int device, bint on):
    allocator.set_caching(device, on)


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
    if recorded == 3:
        enter_stack()
    with nogil:
        result = allocator.empty_cache(device, False)
    (&stack_of_thread())[0] = 0
    if result:
        raise RuntimeError(f"empty_cache: {driver.text(result).decode()}")


def empty_retired(int device):
    """The same for pools that nobody holds, unless a graph is being captured; failures are left for later."""
    if not driver.forked:
        with nogil:
            allocator.empty_cache(device, True)


def empty_host_cache():
    pinned.empty_cache()


def set_fraction(int device, double fraction):
    cdef int result = allocator.set_memory_fraction(device, fraction)
    if result:
        raise RuntimeError(f"set_per_process_memory_fraction: {driver.text(result).decode()}")


def fraction(int device):
    return allocator.memory_fraction(device)


def allocate_raw(int device, size_t nbytes, uintptr_t stream):
    """The address of memory that ``release_raw`` gives back; OutOfMemoryError if there is none."""
    cdef AllocatorFailure why
    cdef char[1024] text
    cdef void *data
    if driver.forked:
        raise RuntimeError(driver.text(3).decode())
    if recorded:
        enter_stack()
    data = allocator.allocate(device, nbytes, <void *>stream, &why, pool_of(device, <void *>stream))
    (&stack_of_thread())[0] = 0
    if data == NULL:
        failure_text(why, text, 1024)
        from ptcore._errors import OutOfMemoryError
        raise OutOfMemoryError(text.decode())
    return <uintptr_t>data


def release_raw(int device, uintptr_t data):
    cdef bint found
    if driver.forked:
        return True
    if recorded == 3:
        enter_stack()
    found = allocator.release(device, <void *>data)
    (&stack_of_thread())[0] = 0
    return found


def snapshot(int device):
    """Blocks in the order of segments and addresses: (segment, segment_size, address, size, requested, stream, pool,
    large, state, stack, stack of the segment, expandable)."""
    cdef vector[BlockRow] rows = allocator.snapshot(device)
    cdef size_t i
    return [(rows[i].segment, rows[i].segment_size, rows[i].address, rows[i].size, rows[i].requested,
             <uintptr_t>rows[i].stream, rows[i].pool, bool(rows[i].large), rows[i].state, rows[i].stack,
             rows[i].segment_stack, bool(rows[i].expandable)) for i in range(rows.size())]


def record_history(bint on, bint trace, int stacks, uint32_t skipped, size_t most, bint clear):
    """Begins or ends to record what the allocators of all devices do; see HistoryRules in block_allocator.hpp."""
    global recorded
    cdef HistoryRules rules
    rules.on, rules.trace, rules.stacks, rules.skipped, rules.most = on, trace, stacks, skipped, most
    for device in range(allocator.devices()):
        allocator.record_history(device, rules, clear)
    recorded = stacks if on else 0


def history(int device):
    """(action, address, size, stream, pool, time_us, stack) of what was recorded, the oldest first."""
    cdef vector[TraceEntry] rows = allocator.history(device)
    cdef size_t i
    return [(rows[i].action, rows[i].address, rows[i].size, <uintptr_t>rows[i].stream, rows[i].pool, rows[i].time_us,
             rows[i].stack) for i in range(rows.size())]


def note_snapshot(int device):
    allocator.note_snapshot(device)


def stack(uint32_t number):
    """((code, instruction), ...) of a stack's number, the innermost call first."""
    return _stacks[number]


def settings():
    """(max_split_size or -1, garbage_collection_threshold, expandable, divisions by powers of two)."""
    cdef const AllocatorSettings *s = &allocator.settings()
    return (-1 if s.max_split_size == <size_t>-1 else s.max_split_size, s.garbage_collection_threshold,
            bool(s.expandable), [s.roundup_divisions[i] for i in range(16)])


def backend():
    """The word of PTCORE_CUDA_ALLOC that is in force, or "pluggable"."""
    if allocator.settings().source.allocate:
        return "pluggable"
    return ("native", "async", "none")[<int>allocator.settings().backend]
