"""Memory and events of a device for other processes, over the driver: handles are 64 bytes, which a message carries."""
from cuda.bindings cimport cydriver as cu
from libc.stdint cimport uintptr_t
from libc.string cimport memcpy

from ptcore.cuda.allocator import allocators
from ptcore.cuda.driver.runtime cimport captures_any, check, driver, use_device

cdef list _unclosed = []        # arguments of close_memory for what ended while a graph was captured


def memory_handle(int device, uintptr_t address):
    """(handle of the segment of an address, offset of the address in the segment).

    Raises
    ------
    RuntimeError
        If no other process can be given that memory.
    """
    cdef cu.CUdeviceptr base = 0
    cdef cu.CUipcMemHandle handle
    cdef int result
    use_device(device)
    result = cu.cuMemGetAddressRange(&base, NULL, <cu.CUdeviceptr>address)
    if result == 0:
        result = cu.cuIpcGetMemHandle(&handle, base)
    if result:
        raise RuntimeError(f"multiprocessing: memory of cuda:{device} cannot be given to another process: "
                           f"{_why(result)}; send tensor.cpu()")
    return (<const char *>handle.reserved)[:64], address - base


def _why(int result):
    if allocators.settings()[2]:
        return "it lies in an expandable segment (PTCORE_CUDA_ALLOC_CONF=expandable_segments:True)"
    if allocators.backend() == "async":
        return "it comes from the allocator 'async' (PTCORE_CUDA_ALLOC)"
    return driver.text(result).decode()


def open_memory(int device, bytes handle not None):
    """The address at which this process has a segment of another process."""
    cdef cu.CUdeviceptr base = 0
    cdef cu.CUipcMemHandle h
    memcpy(h.reserved, <const char *>handle, 64)
    use_device(device)
    result = cu.cuIpcOpenMemHandle(&base, h, cu.CUipcMem_flags_enum.CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)
    if result:
        raise RuntimeError("multiprocessing: a tensor's memory on a device is gone, since the process that sent it has "
                           "ended or given the memory back before the message was read "
                           f"({driver.text(result).decode()})")
    return base


def close_memory(int device, uintptr_t base, then):
    """Waits for the device, unmaps the segment and calls ``then``, which tells the owner; failures are ignored.

    Both calls of the driver would end a capture. While there is one, all is left to ``close_left``.
    """
    if not captures_any() and driver.set_device(device) == 0:
        with nogil:
            cu.cuCtxSynchronize()
    if captures_any():          # another thread may have begun one while this thread waited
        _unclosed.append((device, base, then))
        return
    if driver.set_device(device) == 0:
        cu.cuIpcCloseMemHandle(<cu.CUdeviceptr>base)
    then()


def close_left():
    """Closes the segments that a capture kept open. Called at the end of each capture."""
    for _ in range(len(_unclosed)):         # those that another capture keeps open are put back
        close_memory(*_unclosed.pop(0))


def event_handle(int device, uintptr_t event):
    cdef cu.CUipcEventHandle handle
    use_device(device)
    check(cu.cuIpcGetEventHandle(&handle, <cu.CUevent>event), "Event.ipc_handle")
    return (<const char *>handle.reserved)[:64]


def open_event(int device, bytes handle not None):
    cdef cu.CUevent event = NULL
    cdef cu.CUipcEventHandle h
    memcpy(h.reserved, <const char *>handle, 64)
    use_device(device)
    check(cu.cuIpcOpenEventHandle(&event, h), "Event.from_ipc_handle")
    return <uintptr_t>event
