"""The CUDA driver through cuda.bindings: devices and their contexts, streams, events, kernels, and the backend's entry.

Imported at the first use of a CUDA device: importing it imports cuda-python. Contexts are the devices' primary ones,
shared with every other library of the process; the current context is checked before each call, as other libraries
may have changed it.
"""
import os
import threading
import warnings

from cpython.bytes cimport PyBytes_AS_STRING
from cuda.bindings cimport cydriver as cu
from libc.stdio cimport snprintf
from libc.string cimport memset

from ptcore._device cimport pt_backend
from ptcore._device import register_backend
from ptcore._errors import AcceleratorError
from ptcore._device import set_stream as choose_stream
from ptcore._ops.levels cimport copy_views as host_copy_views
from ptcore._ops.table.ids cimport MAX_OPS, info, register_kernels
from ptcore._ops.table.ids import op_id
from ptcore._types cimport *

cdef extern from "backend.hpp" namespace "pt_cuda" nogil:
    void hold_elementwise(int n) except +
    int elementwise(int op, const char *name, int compute, int loop_out, const pt_view *out, const pt_view *inputs,
                    int nin, const void *params) noexcept
    int copy_views(const pt_view *dst, const pt_view *src) noexcept
    int copy_views_async(const pt_view *dst, const pt_view *src) noexcept
    pt_kernel kernel_by_name(const char *name) noexcept
    const pt_kernel_entry *kernels[]

cdef extern from "sources.hpp" namespace "pt_cuda" nogil:
    cppclass Source:
        const char *name
        const char *text
    Source texts "pt_cuda::sources" []

cdef bint _initialised = False
cdef int _count = 0
cdef int _driver_version = 0
cdef cu.CUdevice[16] _devices
cdef cu.CUcontext[16] _contexts
_lock = threading.RLock()


class CudaError(AcceleratorError):
    """A call of the CUDA driver has failed; ``code`` is its number."""

    code = 0


cdef const char *FORKED = (b"CUDA cannot be used in a forked child of a process that has used it; start the child with "
                           b"the 'spawn' method (multiprocessing.set_start_method('spawn'))")


cdef const char *text_of(int result) noexcept nogil:
    cdef const char *text = NULL
    if driver.forked:
        return FORKED
    cu.cuGetErrorString(<cu.CUresult>result, &text)
    if text == NULL:
        text = b"unknown error"
    return text


cdef int check(int result, str what) except -1:
    cdef const char *name = NULL
    if result == 0:
        return 0
    cu.cuGetErrorName(<cu.CUresult>result, &name)
    if name == NULL:
        name = b"unknown"
    error = CudaError(f"{what}: CUDA error {result} ({name.decode()}): {text_of(result).decode()}"
                      f"{hint_of(result).decode()}")
    error.code = error.error_code = result
    raise error


# -- initialisation ------------------------------------------------------------------------------------------

def _after_fork():
    driver.forked = _initialised


os.register_at_fork(after_in_child=_after_fork)


def initialise():
    """Starts the driver; RuntimeError if there is none, it is too old, or the process was forked after its start."""
    global _initialised, _count, _driver_version
    if driver.forked:
        raise RuntimeError(f"cuda: {FORKED.decode()}")
    if _initialised:
        return
    with _lock:
        if _initialised:
            return
        try:
            result = cu.cuInit(0)
        except RuntimeError as e:
            raise RuntimeError(f"cuda: no NVIDIA driver was found on this machine ({e})") from None
        if result == 100:
            raise RuntimeError("cuda: no CUDA device is available on this machine")
        if result == 3:                 # from the driver, if the parent has asked for devices without using one
            raise RuntimeError(f"cuda: {FORKED.decode()}")
        check(result, "cuInit")
        check(cu.cuDriverGetVersion(&_driver_version), "cuDriverGetVersion")
        if _driver_version < 13000:
            raise RuntimeError(f"cuda: the NVIDIA driver is too old: it must support CUDA 13.0, got "
                               f"{_driver_version // 1000}.{_driver_version % 1000 // 10}; update it")
        check(cu.cuDeviceGetCount(&_count), "cuDeviceGetCount")
        _count = min(_count, MAX_DEVICES)
        for i in range(_count):
            check(cu.cuDeviceGet(&_devices[i], i), "cuDeviceGet")
        _initialised = True


def is_initialised():
    return _initialised and not driver.forked


def device_count():
    initialise()
    return _count


cdef int attribute_of(int device, int which) except? -1:
    cdef int value = 0
    check(cu.cuDeviceGetAttribute(&value, <cu.CUdevice_attribute>which, _devices[device]), "cuDeviceGetAttribute")
    return value


cdef int open_device(int device) except -1:
    """Makes the device's primary context, once."""
    cdef cu.CUcontext context
    cdef void *fault = NULL
    with _lock:
        if _contexts[device] != NULL:
            return 0
        driver.devices[device].multiprocessors = attribute_of(device, 16)
        driver.devices[device].shared_limit = attribute_of(device, 97)
        capability = 10 * attribute_of(device, 75) + attribute_of(device, 76)
        driver.devices[device].capability = capability
        if capability < 75:             # the oldest that CUDA 13 compiles for
            raise RuntimeError(f"cuda:{device}: the device has compute capability {capability // 10}."
                               f"{capability % 10}; CUDA 13, and with it ptcore, supports 7.5 and above")
        check(cu.cuDevicePrimaryCtxRetain(&context, _devices[device]), f"cuda:{device}")
        check(cu.cuCtxSetCurrent(context), f"cuda:{device}")
        check(cu.cuMemHostAlloc(&fault, sizeof(Fault), 3), "cuMemHostAlloc")       # portable to all contexts, mapped
        memset(fault, 0, sizeof(Fault))
        driver.devices[device].fault = <Fault *>fault
        _contexts[device] = context
    return 0


cdef int use_device(int device) except -1:
    """Makes a device ready and its context this thread's."""
    initialise()
    if not 0 <= device < _count:
        raise RuntimeError(f"cuda: device index must be in [0, {_count - 1}], got {device}")
    if _contexts[device] == NULL:
        open_device(device)
    return check(set_context(device), f"cuda:{device}")


def check_device(int index):
    """The device that an index (-1: the current one) means, ready for use."""
    if index < 0:
        index = thread_state().device
    use_device(index)
    return index


cdef int set_context(int device) noexcept nogil:
    cdef cu.CUcontext now = NULL
    cdef int result
    if driver.forked:
        return 3
    if _contexts[device] == NULL:       # a context of another library is not taken in its place
        return 201
    result = cu.cuCtxGetCurrent(&now)
    if result == 0 and now != _contexts[device]:
        result = cu.cuCtxSetCurrent(_contexts[device])
    return result


# -- the driver as the C++ half calls it ---------------------------------------------------------------------

cdef cu.CUstream handle_of(void *stream) noexcept nogil:
    """The default stream by its explicit handle: NULL means a stream of each thread's own where the environment asks
    cuda.bindings for that (CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM)."""
    return <cu.CUstream>(<void *>1 if stream == NULL else stream)


cdef int launch(void *function, Grid grid, unsigned threads, unsigned shared, void *stream,
                const void *args) noexcept nogil:
    cdef void *params = <void *>args
    return cu.cuLaunchKernel(<cu.CUfunction>function, grid.x, grid.y, grid.z, threads, 1, 1, shared,
                             handle_of(stream), &params, NULL)


cdef int copy(void *dst, const void *src, size_t nbytes, void *stream) noexcept nogil:
    return cu.cuMemcpyAsync(<cu.CUdeviceptr>dst, <cu.CUdeviceptr>src, nbytes, handle_of(stream))


cdef int copy_peer(void *dst, int to, const void *src, int origin, size_t nbytes, void *stream) noexcept nogil:
    return cu.cuMemcpyPeerAsync(<cu.CUdeviceptr>dst, _contexts[to], <cu.CUdeviceptr>src, _contexts[origin], nbytes,
                                handle_of(stream))


cdef int clear(void *dst, size_t nbytes, void *stream) noexcept nogil:
    return cu.cuMemsetD8Async(<cu.CUdeviceptr>dst, 0, nbytes, handle_of(stream))


cdef int synchronize_stream(void *stream) noexcept nogil:
    return cu.cuStreamSynchronize(handle_of(stream))


cdef int wait(void *waiting, int waiting_device, void *stream, int device) noexcept nogil:
    cdef cu.CUevent event = NULL
    cdef int result
    if waiting == stream and waiting_device == device:
        return 0
    result = set_context(device)
    if result == 0:
        result = cu.cuEventCreate(&event, 2)
    if result == 0:
        result = cu.cuEventRecord(event, handle_of(stream))
    if result == 0:
        result = set_context(waiting_device)
    if result == 0:
        result = cu.cuStreamWaitEvent(handle_of(waiting), event, 0)
    if event != NULL:
        cu.cuEventDestroy(event)
    return result


cdef int find(const Kernel *kernel, uint64_t types, int device, void **function, char *error) noexcept nogil:
    with gil:
        try:
            found = _function(kernel.program.decode(), kernel.name.decode(), types, device)
            function[0] = <void *><uintptr_t>found
            return PT_OK
        except KeyError:
            return PT_TYPE_ERROR
        except BaseException as e:
            text = f"{kernel.program.decode()}: {e}".encode()
            snprintf(error, 256, "%s", <const char *>text)
            return PT_RUNTIME_ERROR


cdef void *stream_of(int device) noexcept nogil:
    return thread_state().streams[device if device >= 0 else 0]


cdef const char *op_name(int op) noexcept nogil:
    with gil:
        return info(op).name


cdef int check_faults(int device) except -1:
    """Raises what kernels of a device have reported; after a synchronisation."""
    cdef char[256] text
    cdef int status = take_fault(device, text)
    if status:
        raise (IndexError if status == PT_INDEX_ERROR else RuntimeError)(text.decode())
    return 0


cdef int device_of_address(const void *data) noexcept nogil:
    cdef int device = -1
    cu.cuPointerGetAttribute(&device, cu.CUpointer_attribute_enum.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                             <cu.CUdeviceptr>data)
    return device if device < _count else -1


cdef int choose_stream_of(int device, void *stream) noexcept nogil:
    thread_state().streams[device] = stream
    return 0


cdef int wait_for(int device, void *waiting, int other, void *stream) noexcept nogil:
    return wait(waiting, device, stream, other)


cdef int found_wait(char *error) noexcept nogil:
    """Does what ``set_sync_debug_mode`` asks for where a copy waits."""
    with gil:
        snprintf(error, 256, "called a synchronizing CUDA operation")
        if driver.sync_mode == 2:
            return PT_RUNTIME_ERROR
        try:
            warnings.warn("called a synchronizing CUDA operation", stacklevel=1)
        except Warning:                 # where warnings are errors
            return PT_RUNTIME_ERROR
        error[0] = 0
        return PT_OK


cdef int capturing(void *stream) noexcept nogil:
    cdef cu.CUstreamCaptureStatus status = cu.CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_NONE
    if stream == NULL:                  # the default stream cannot capture
        return 0
    return cu.cuStreamIsCapturing(<cu.CUstream>stream, &status) == 0 and <int>status == 1


cdef int exchange(int mode) noexcept nogil:
    """Sets the thread's capture mode (0 global, 1 thread_local, 2 relaxed); returns the mode before."""
    cdef cu.CUstreamCaptureMode now = <cu.CUstreamCaptureMode>mode
    cu.cuThreadExchangeStreamCaptureMode(&now)
    return <int>now


cdef bint captures_any() noexcept nogil:
    """Whether a graph is being captured on any device: a call that waits for a device would end the capture."""
    cdef int k
    for k in range(MAX_DEVICES):
        if driver.devices[k].capture_pool:
            return True
    return False


cdef int synchronize_device(int device) noexcept nogil:
    """Waits for a device, unless a graph is being captured."""
    cdef int result = set_context(device)
    return result if result or captures_any() else cu.cuCtxSynchronize()


cdef const char *error_text() noexcept nogil:
    return last_error if last_error[0] else NULL


driver.set_device = set_context
driver.launch = launch
driver.copy = copy
driver.copy_peer = copy_peer
driver.clear = clear
driver.synchronize = synchronize_stream
driver.synchronize_device = synchronize_device
driver.wait = wait
driver.find = find
driver.host_copy = host_copy_views
driver.stream = stream_of
driver.text = text_of
driver.op_name = op_name
driver.found_wait = found_wait
driver.capturing = capturing
driver.exchange = exchange

cdef pt_backend backend
backend.abi = PT_ABI
backend.size = sizeof(pt_backend)
backend.copy = copy_views
backend.elementwise = elementwise
backend.synchronize = synchronize_device
backend.stream = stream_of
backend.error = error_text
backend.copy_async = copy_views_async
backend.device_of = device_of_address
backend.set_stream = choose_stream_of
backend.wait = wait_for
backend.kernel = kernel_by_name


cdef object _cubin = None                   # (program, codes of dtypes, capability) -> machine code


def register(start_memory, cubin):
    """Registers the backend, and its kernels in the column of CUDA devices.

    ``start_memory`` gets the number of devices and the backend's address, and enters the allocators there.
    """
    global _cubin
    cdef int i = 0
    names = ("CUDA_LAUNCH_BLOCKING", "PTCORE_CUDA_LAUNCH_BLOCKING")
    driver.blocking = any([os.environ.get(name, "") not in ("", "0") for name in names])
    _cubin = cubin
    hold_elementwise(MAX_OPS)
    start_memory(device_count(), <uintptr_t>&backend)
    register_backend("cuda", <size_t>&backend, check_device)
    while kernels[i] != NULL:
        register_kernels(kernels[i], DEVICE_CUDA)
        i += 1


def op_dtypes(str name):
    """The codes of the dtypes that an op computes in on a device."""
    cdef uint32_t types = info(op_id(name)).types
    return [code for code in range(PT_NDTYPES) if types >> code & 1 and not pt_is(code, PT_KIND_STORED)]


def kernel_names():
    """The names in the rows' column ``kernel`` for which a kernel is here."""
    cdef int i = 0, k
    names = set()
    while kernels[i] != NULL:
        k = 0
        while kernels[i][k].name != NULL:
            names.add(kernels[i][k].name.decode())
            k += 1
        i += 1
    return names


# -- kernels -------------------------------------------------------------------------------------------------

cdef dict _libraries = {}                   # (program, types, capability) -> CUlibrary


def programs():
    """(program, codes of dtypes) of the programs that have been loaded."""
    return sorted({(program, codes) for program, codes, _ in _libraries})


def sources():
    """The texts of which programs are made, by the names in their include lines."""
    cdef int i = 0
    result = {}
    while texts[i].name != NULL:
        result[texts[i].name.decode()] = texts[i].text.decode()
        i += 1
    return result


def _function(str program, str name, uint64_t types, int device):
    """A kernel's CUfunction on a device; compiles and loads its program at the first call."""
    cdef cu.CUlibrary library = NULL
    cdef cu.CUkernel kernel = NULL
    cdef cu.CUfunction function = NULL
    cdef int shared = 0, result, mode
    codes = tuple([types >> 8 * i & 255 for i in range(8) if types >> 8 * i & 255 != 255])
    capability = driver.devices[device].capability
    key = (program, codes, capability)
    if key not in _libraries:
        image = _cubin(program, codes, capability)      # other threads may compile other programs meanwhile
    with _lock:
        use_device(device)
        if key not in _libraries:
            mode = exchange(cu.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED)  # loading is no part of a graph
            result = cu.cuLibraryLoadData(&library, PyBytes_AS_STRING(image), NULL, NULL, 0, NULL, NULL, 0)
            exchange(mode)
            check(result, f"loading the program {program}")
            _libraries[key] = <uintptr_t>library
        library = <cu.CUlibrary><uintptr_t>_libraries[key]
        check(cu.cuLibraryGetKernel(&kernel, library, name.encode()), f"the kernel {name}")
        check(cu.cuKernelGetFunction(&function, kernel), f"the kernel {name}")
        # A kernel may use all shared memory that the device has beside the kernel's variables, not 48 KiB alone.
        check(cu.cuFuncGetAttribute(&shared, <cu.CUfunction_attribute>1, function), f"the kernel {name}")
        check(cu.cuFuncSetAttribute(function, <cu.CUfunction_attribute>8, driver.devices[device].shared_limit - shared),
              f"the kernel {name}")
    return <uintptr_t>function


# -- what ptcore.cuda makes public: numbers in, numbers out --------------------------------------------------

def current_device():
    return thread_state().device


def set_device(int device):
    use_device(device)
    thread_state().device = device


def sync_debug_mode():
    return driver.sync_mode


def set_sync_debug_mode(int mode):
    driver.sync_mode = mode


def current_stream(int device):
    return <uintptr_t>thread_state().streams[device]


def set_stream(int device, uintptr_t stream):
    use_device(device)
    choose_stream(DEVICE_CUDA, device, stream)


def driver_version():
    initialise()
    return _driver_version


def attribute(int device, int which):
    use_device(device)
    return attribute_of(device, which)


def device_name(int device):
    cdef char[256] name
    use_device(device)
    check(cu.cuDeviceGetName(name, 256, _devices[device]), "cuDeviceGetName")
    return name.decode()


def memory_info(int device):
    """(free, total) bytes."""
    cdef size_t free = 0, total = 0
    use_device(device)
    check(cu.cuMemGetInfo(&free, &total), "cuMemGetInfo")
    return free, total


def uuid(int device):
    cdef cu.CUuuid value
    use_device(device)
    check(cu.cuDeviceGetUuid(&value, _devices[device]), "cuDeviceGetUuid")
    return (<const char *>value.bytes)[:16]


def can_access_peer(int device, int peer):
    cdef int value = 0
    use_device(device)
    use_device(peer)
    check(cu.cuDeviceCanAccessPeer(&value, _devices[device], _devices[peer]), "cuDeviceCanAccessPeer")
    return bool(value)


def profiler(bint on):
    """Tells the tool under which the process runs to record, or to stop."""
    use_device(thread_state().device)
    check(cu.cuProfilerStart() if on else cu.cuProfilerStop(), "cuda.profiler")


def synchronize(int device):
    cdef int result
    use_device(device)
    with nogil:
        result = cu.cuCtxSynchronize()
    check(result, f"cuda:{device}")
    check_faults(device)


def stream_create(int device, int priority):
    cdef cu.CUstream stream = NULL
    use_device(device)
    check(cu.cuStreamCreateWithPriority(&stream, 1, priority), "Stream")      # does not wait for the default stream
    return <uintptr_t>stream


def stream_priority_range(int device):
    cdef int least = 0, greatest = 0
    use_device(device)
    check(cu.cuCtxGetStreamPriorityRange(&least, &greatest), "priority_range")
    return least, greatest


def stream_synchronize(int device, uintptr_t stream):
    cdef int result
    use_device(device)
    with nogil:
        result = cu.cuStreamSynchronize(handle_of(<void *>stream))
    check(result, "Stream.synchronize")
    check_faults(device)


def stream_query(int device, uintptr_t stream):
    use_device(device)
    result = cu.cuStreamQuery(handle_of(<void *>stream))
    if result == 600:
        return False
    check(result, "Stream.query")
    return True


def stream_wait_event(int device, uintptr_t stream, uintptr_t event, bint external=False):
    """Returns whether the wait became part of a graph: each launch then waits for the event's newest record."""
    cdef unsigned int flags
    use_device(device)
    flags = external and capturing(<void *>stream)
    check(cu.cuStreamWaitEvent(handle_of(<void *>stream), <cu.CUevent>event, flags), "Stream.wait_event")
    return bool(flags)


def event_create(int device, unsigned flags):
    cdef cu.CUevent event = NULL
    use_device(device)
    check(cu.cuEventCreate(&event, flags), "Event")
    return <uintptr_t>event


def event_destroy(uintptr_t event):
    if not driver.forked:
        cu.cuEventDestroy(<cu.CUevent>event)


def event_record(int device, uintptr_t event, uintptr_t stream, bint external=False):
    """Returns whether the record became part of a graph, which repeats it at each launch."""
    cdef unsigned int flags
    use_device(device)
    flags = external and capturing(<void *>stream)
    check(cu.cuEventRecordWithFlags(<cu.CUevent>event, handle_of(<void *>stream), flags), "Event.record")
    return bool(flags)


def event_query(int device, uintptr_t event):
    use_device(device)
    result = cu.cuEventQuery(<cu.CUevent>event)
    if result == 600:
        return False
    check(result, "Event.query")
    return True


def event_synchronize(int device, uintptr_t event):
    cdef int result
    use_device(device)
    with nogil:
        result = cu.cuEventSynchronize(<cu.CUevent>event)
    check(result, "Event.synchronize")
    check_faults(device)


def event_elapsed(int device, uintptr_t start, uintptr_t end):
    cdef float ms = 0
    use_device(device)
    check(cu.cuEventElapsedTime(&ms, <cu.CUevent>start, <cu.CUevent>end), "Event.elapsed_time")
    return ms
