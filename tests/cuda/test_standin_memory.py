"""The stand-in driver: addresses that are reserved and memory behind them; handles for other processes."""

import ctypes as c
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent / "host"))

from child import Args, child, fails, kernels

UNIT, u64, size = 2 << 20, c.c_uint64, c.c_size_t


def memory(device=0):
    """A CUmemAllocationProp of a device's memory."""
    return (c.c_int * 12)(1, 0, 1, device)


def reserve(cu, nbytes):
    return cu.handle("cuMemAddressReserve", size(nbytes), size(0), u64(0), u64(0)).value


def create(cu, nbytes=UNIT):
    return cu.handle("cuMemCreate", size(nbytes), memory(), u64(0)).value


def put(cu, address, piece, nbytes=UNIT):
    cu.cuMemMap(u64(address), size(nbytes), size(0), u64(piece), u64(0))
    cu.cuMemSetAccess(u64(address), size(nbytes), (c.c_int * 3)(1, 0, 3), size(1))


@child
def test_memory_behind_addresses(cu):
    unit = size()
    cu.cuMemGetAllocationGranularity(c.byref(unit), memory(), 1)
    assert unit.value == UNIT
    at, pieces = reserve(cu, 4 * UNIT), [create(cu), create(cu, 2 * UNIT)]
    assert at % UNIT == 0 and cu.memory_used(0) == 3 * UNIT
    put(cu, at, pieces[0])
    put(cu, at + UNIT, pieces[1], 2 * UNIT)
    assert np.isnan(cu.download(at, np.empty(4, np.float32))).all()
    x = np.arange(UNIT // 2, dtype=np.float32)                      # over the border between the two
    cu.cuMemcpyHtoD(u64(at + UNIT // 2), c.c_void_p(x.ctypes.data), size(x.nbytes))
    np.testing.assert_array_equal(cu.download(at + UNIT // 2, np.empty_like(x)), x)
    fails(1, cu.download, at + 3 * UNIT - 4, np.empty(2, np.float32))
    fails(1, cu.free, at)
    cu.cuMemUnmap(u64(at), size(3 * UNIT))
    assert cu.memory_used(0) == 3 * UNIT
    put(cu, at + 3 * UNIT, pieces[0])
    for p in pieces:
        cu.cuMemRelease(u64(p))
        fails(1, cu.cuMemRelease, u64(p))
    assert cu.memory_used(0) == UNIT                                # one is mapped still
    cu.cuMemUnmap(u64(at + 3 * UNIT), size(UNIT))
    assert cu.memory_used(0) == 0
    cu.cuMemAddressFree(u64(at), size(4 * UNIT))
    assert cu.counters()["pieces"] == cu.counters()["pieces_released"] == 2


@child
def test_wrong_calls(cu):
    fails(1, reserve, cu, UNIT + 1)
    fails(1, create, cu, 100)
    cu.set_memory_limit(0, 3 * UNIT)
    fails(2, create, cu, 4 * UNIT)
    at, piece = reserve(cu, 2 * UNIT), create(cu)
    fails(1, put, cu, at + 1, piece)
    fails(1, put, cu, at + 2 * UNIT, piece)                         # behind the range
    fails(1, put, cu, at, piece, 2 * UNIT)
    fails(1, put, cu, at, piece + 1)
    put(cu, at, piece)
    fails(1, put, cu, at + UNIT, piece)                             # it lies elsewhere
    fails(1, put, cu, at, create(cu))                               # taken
    fails(1, cu.cuMemUnmap, u64(at), size(2 * UNIT))
    fails(1, cu.cuMemAddressFree, u64(at), size(2 * UNIT))
    cu.cuMemUnmap(u64(at), size(UNIT))
    fails(1, cu.cuMemAddressFree, u64(at), size(UNIT))
    cu.cuMemAddressFree(u64(at), size(2 * UNIT))


@child
def test_addresses_without_memory(cu):
    add = kernels(cu, "plain", "add")
    at, piece = reserve(cu, 2 * UNIT), create(cu)
    put(cu, at, piece)
    cu.launch(add, 1, 1, Args(0, at, 1, 2))
    cu.sync()
    cu.launch(add, 1, 1, Args(0, at + UNIT, 1, 2))
    fails(700, cu.sync)
    assert "a reserved address behind which no memory is mapped" in cu.failure()
    cu.clear()
    stream = cu.stream()
    cu.launch(add, 1, 1, Args(0, at, 1, 2), stream=stream)          # unmapping waits for nothing
    cu.cuMemUnmap(u64(at), size(UNIT))
    fails(700, cu.sync)
    cu.clear()
    cu.cuMemMap(u64(at), size(UNIT), size(0), u64(piece), u64(0))
    cu.launch(add, 1, 1, Args(0, at, 1, 2))
    fails(700, cu.sync)
    assert "nobody was given access" in cu.failure()


class Handle(c.Structure):
    _fields_ = [("bytes", c.c_char * 64)]


@child
def test_handles_for_other_processes(cu):
    y = cu.upload(np.arange(600, dtype=np.float32))
    handle, again, address = Handle(), Handle(), u64()
    cu.cuIpcGetMemHandle(c.byref(handle), u64(y))
    cu.cuIpcGetMemHandle(c.byref(again), u64(y))
    assert bytes(handle) == bytes(again)
    np.testing.assert_array_equal(cu.download(y, np.empty(600, np.float32)), np.arange(600))    # it has moved
    fails(1, cu.cuIpcGetMemHandle, c.byref(again), u64(y + 512))            # not the beginning
    fails(201, cu.cuIpcOpenMemHandle, c.byref(address), handle, 1)          # of this process
    fails(1, cu.cuIpcOpenMemHandle, c.byref(address), Handle(), 1)
    fails(1, cu.cuIpcCloseMemHandle, u64(y))                                # which was not opened
    assert cu.check() == 0
    cu.free(y)
    at, piece = reserve(cu, UNIT), create(cu)
    put(cu, at, piece)
    fails(1, cu.cuIpcGetMemHandle, c.byref(handle), u64(at))
    ordered = u64()
    cu.cuMemAllocAsync(c.byref(ordered), size(100), None)
    fails(1, cu.cuIpcGetMemHandle, c.byref(handle), ordered)


@child
def test_events_for_other_processes(cu):
    handle, event = Handle(), c.c_void_p()
    fails(1, cu.event, 4)                                                   # there is no time between processes
    fails(1, cu.cuIpcGetEventHandle, c.byref(handle), cu.event(2))
    cu.cuIpcGetEventHandle(c.byref(handle), cu.event(6))
    fails(201, cu.cuIpcOpenEventHandle, c.byref(event), handle)
    fails(1, cu.cuIpcOpenEventHandle, c.byref(event), Handle())
    y, own = cu.upload(np.zeros(1, np.float32)), cu.event(6)
    stream = cu.stream()
    cu.launch(kernels(cu, "plain", "add"), 1, 1, Args(0, y, 1, 2), stream=stream)
    cu.cuEventRecord(own, stream)                                           # waits, so that it is done for others
    cu.cuEventQuery(own)
