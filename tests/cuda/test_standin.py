"""The stand-in driver: memory, copies, streams, events and libraries as CUDA has them."""

import ctypes as c
import os
import signal
import sys
import threading
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent / "host"))

from child import Args, child, fails, fill, image, kernels, value

# ------------------------------------------------------------------------------------------------ memory

@child(dies=-signal.SIGSEGV)
def test_the_host_cannot_read_device_memory(cu):
    y = cu.upload(np.ones(4, np.float32))
    c.c_float.from_address(y).value  # noqa: B018


@child(dies=-signal.SIGSEGV)
def test_the_host_cannot_write_after_a_kernel(cu):
    y = cu.upload(np.ones(4, np.float32))
    cu.launch(kernels(cu, "plain", "add"), 1, 32, Args(0, y, 4, 1))
    cu.sync()
    c.c_float.from_address(y).value = 2


@child(protect=0)
def test_protection_can_be_off(cu):
    y = cu.upload(np.ones(4, np.float32))
    assert c.c_float.from_address(y).value == 1


@child
def test_allocations(cu):
    addresses = [cu.alloc(n) for n in (1, 4, 512, 513, 100000)]
    assert all(a % 512 == 0 for a in addresses) and len(set(addresses)) == 5
    assert cu.memory_used(0) == 512 * 3 + 1024 + 100352
    assert np.isnan(cu.download(addresses[4], np.empty(25000, np.float32))).all()
    fails(1, cu.alloc, 0)
    fails(1, cu.free, addresses[4] + 512)
    free, total = c.c_size_t(), c.c_size_t()
    cu.cuMemGetInfo(c.byref(free), c.byref(total))
    assert total.value - free.value == cu.memory_used(0)
    cu.set_memory_limit(0, cu.memory_used(0) + 2048)
    fails(2, cu.alloc, 2049)
    last = cu.alloc(2048)
    fails(2, cu.alloc, 1)
    for a in [*addresses, last]:
        cu.free(a)
    fails(1, cu.free, last)
    assert cu.memory_used(0) == 0
    cu.free(cu.alloc(1))
    cu.fail_next("cuMemAlloc", 2, skip=1)
    cu.alloc(1)
    fails(2, cu.alloc, 1)
    cu.alloc(1)
    counters = cu.counters()
    assert counters["allocations"] == 9 and counters["frees"] == 7


@child
def test_overruns_are_found(cu):
    store = kernels(cu, "plain", "store")
    for at in (1, -1):
        y = cu.alloc(4)
        cu.launch(store, 1, 1, Args(0, y, at, 1))
        cu.sync()
        assert cu.check() == 1
        fails(700, cu.free, y)
        assert "around an allocation of 4 bytes" in cu.failure()
        fails(700, cu.sync)
        cu.clear()
    y = cu.alloc(4)
    cu.free(y)
    cu.launch(store, 1, 1, Args(0, y, 0, 1))        # after it was freed
    fails(700, cu.sync)


@child
def test_other_devices_memory(cu):
    add = kernels(cu, "plain", "add")
    other = cu.handle("cuDevicePrimaryCtxRetain", 1)
    cu.cuCtxPushCurrent(other)
    y = cu.upload(np.ones(1, np.float32))
    cu.cuCtxPopCurrent(None)
    cu.launch(add, 1, 1, Args(0, y, 1, 2))
    fails(700, cu.sync)
    assert "may not touch" in cu.failure()
    cu.clear()
    cu.cuCtxEnablePeerAccess(other, 0)
    fails(704, cu.cuCtxEnablePeerAccess, other, 0)
    cu.launch(add, 1, 1, Args(0, y, 1, 2))
    cu.sync()
    mine = cu.alloc(4)
    cu.cuMemcpyPeer(c.c_uint64(mine), None, c.c_uint64(y), other, c.c_size_t(4))
    assert value(cu, mine) == 3
    cu.cuMemcpyPeerAsync(c.c_uint64(y), other, c.c_uint64(mine), None, c.c_size_t(4), None)
    assert cu.counters()["peer"] == 2


@child
def test_pointer_attributes(cu):
    def attribute(kind, number, address):
        out = kind()
        cu.cuPointerGetAttribute(c.byref(out), number, c.c_uint64(address))
        return out.value

    context = cu.handle("cuCtxGetCurrent").value
    y, host = cu.alloc(1000), cu.handle("cuMemHostAlloc", c.c_size_t(100), 0).value
    assert attribute(c.c_uint, 2, y + 9) == 2 and attribute(c.c_uint, 2, host) == 1
    assert attribute(c.c_int, 9, y) == 0 and attribute(c.c_void_p, 1, y) == context
    assert attribute(c.c_uint64, 11, y + 9) == y and attribute(c.c_size_t, 12, y) == 1000
    pageable = np.zeros(4)
    fails(1, attribute, c.c_uint, 2, pageable.ctypes.data)
    kind = c.c_uint(7)
    cu.cuPointerGetAttributes(1, (c.c_int * 1)(2), (c.c_void_p * 1)(c.addressof(kind)), c.c_uint64(8))
    assert kind.value == 0
    array = np.zeros(100)
    cu.cuMemHostRegister(c.c_void_p(array.ctypes.data), c.c_size_t(array.nbytes), 0)
    fails(712, cu.cuMemHostRegister, c.c_void_p(array.ctypes.data + 8), c.c_size_t(8), 0)
    assert attribute(c.c_uint, 2, array.ctypes.data + 80) == 1
    cu.cuMemHostUnregister(c.c_void_p(array.ctypes.data))
    fails(713, cu.cuMemHostUnregister, c.c_void_p(array.ctypes.data))
    cu.cuMemFreeHost(c.c_void_p(host))


# ------------------------------------------------------------------------------------------------ copies and streams

@child
def test_copies_read_pageable_memory_at_the_call_and_pinned_memory_later(cu):
    stream, y = cu.stream(), cu.alloc(4)
    pageable = np.ones(1, np.float32)
    cu.cuMemcpyHtoDAsync(c.c_uint64(y), c.c_void_p(pageable.ctypes.data), c.c_size_t(4), stream)
    pageable[0] = 2
    cu.cuStreamSynchronize(stream)
    assert value(cu, y) == 1
    pinned = c.c_float.from_address(cu.handle("cuMemHostAlloc", c.c_size_t(4), 0).value)
    pinned.value = 1
    cu.cuMemcpyHtoDAsync(c.c_uint64(y), c.byref(pinned), c.c_size_t(4), stream)
    pinned.value = 2
    cu.cuStreamSynchronize(stream)
    assert value(cu, y) == 2
    # and what a copy to pinned memory brings is there later, to pageable memory at once
    fill(cu, y, 5, stream)
    cu.cuMemcpyDtoHAsync(c.byref(pinned), c.c_uint64(y), c.c_size_t(4), stream)
    assert pinned.value == 2
    cu.cuMemcpyDtoHAsync(c.c_void_p(pageable.ctypes.data), c.c_uint64(y), c.c_size_t(4), stream)
    assert pageable[0] == 5 and pinned.value == 5


@child
def test_copies_are_checked(cu):
    y, h = cu.alloc(100), np.zeros(30, np.float32)
    address, host = c.c_uint64(y), c.c_void_p(h.ctypes.data)
    fails(1, cu.cuMemcpyHtoD, address, host, c.c_size_t(101))
    fails(1, cu.cuMemcpyHtoD, host, host, c.c_size_t(4))
    fails(1, cu.cuMemcpyDtoD, address, c.c_uint64(y + 96), c.c_size_t(8))
    fails(1, cu.cuMemsetD32, c.c_uint64(y + 2), 0, c.c_size_t(1))
    fails(400, cu.cuMemcpyHtoDAsync, address, host, c.c_size_t(4), c.c_void_p(12345))
    cu.cuMemsetD8(address, 1, c.c_size_t(100))
    cu.cuMemsetD16(c.c_uint64(y + 4), 0x202, c.c_size_t(2))
    assert bytes(cu.download(y, np.empty(100, np.uint8))[:9]) == b"\1" * 4 + b"\2" * 4 + b"\1"

    class Copy2D(c.Structure):
        _fields_ = ([(n, c.c_size_t) for n in ("fx", "fy", "ft")] + [("fh", c.c_void_p), ("fd", c.c_uint64)] +
                    [(n, c.c_size_t) for n in ("fa", "fp", "tx", "ty", "tt")] +
                    [("th", c.c_void_p), ("td", c.c_uint64)] + [(n, c.c_size_t) for n in ("ta", "tp", "w", "h")])

    source = np.arange(12, dtype=np.float32).reshape(3, 4)
    copy = Copy2D(fx=4, ft=1, fh=source.ctypes.data, fp=16, tt=2, td=y, tp=8, w=8, h=3)
    cu.cuMemcpy2D(c.byref(copy))
    assert cu.download(y, np.empty(6, np.float32)).tolist() == [1, 2, 5, 6, 9, 10]
    counters = cu.counters()
    assert counters["fills"] == 2 and counters["host_to_device"] == 1 and counters["device_to_host"] == 2


def order(cu, between, flags=1, last=None):
    """How often of 40 a fill on a second stream came after one on the first that was queued earlier."""
    right = 0
    first, second = cu.stream(flags), cu.stream(flags) if last is None else c.c_void_p(last)
    for seed in range(40):
        cu.seed(seed)
        y = cu.alloc(4)
        fill(cu, y, 0, first)
        fill(cu, y, 1, first)
        between(first, second)
        fill(cu, y, 2, second)
        for s in (first, second) if seed % 2 else (second, first):
            cu.cuStreamSynchronize(s)
        right += value(cu, y) == 2
    return right


@child
def test_streams_run_in_any_order_that_events_allow(cu):
    event = cu.event()

    def wait(first, second):
        cu.cuEventRecord(event, first)
        cu.cuStreamWaitEvent(second, event, 0)

    assert order(cu, wait) == 40
    assert order(cu, lambda first, second: cu.cuStreamSynchronize(first)) == 40
    assert 5 < order(cu, lambda first, second: None) < 35
    # an event that was recorded before the fill does not help
    assert 5 < order(cu, lambda first, second: cu.cuStreamWaitEvent(second, event, 0)) < 35


@child
def test_random_programs_that_wait_as_they_must(cu):
    """Fills and copies among buffers on four streams, each behind an event of who wrote or read before: as in order."""
    rng = np.random.default_rng(0)
    for seed in range(15):
        cu.seed(seed)
        streams = [cu.stream(i % 2) for i in range(3)] + [None]
        buffers, expected = [cu.alloc(4) for _ in range(5)], np.full(5, np.nan)
        touched = [[] for _ in buffers]                 # events of the last write and of the reads since then

        def touch(i, stream, writes, touched=touched):
            for event in touched[i] if writes else touched[i][:1]:
                cu.cuStreamWaitEvent(stream, event, 0)

        def mark(i, stream, writes, touched=touched):
            event = cu.event()
            cu.cuEventRecord(event, stream)
            touched[i] = [event] if writes or not touched[i] else [*touched[i], event]

        for step in range(60):
            stream, i, k = streams[rng.integers(4)], *rng.choice(5, 2, replace=False)
            touch(i, stream, True)
            if rng.integers(2) or np.isnan(expected[k]):
                fill(cu, buffers[i], step, stream)
                expected[i] = step
            else:
                touch(k, stream, False)
                cu.cuMemcpyDtoDAsync(c.c_uint64(buffers[i]), c.c_uint64(buffers[k]), c.c_size_t(4), stream)
                mark(k, stream, False)
                expected[i] = expected[k]
            mark(i, stream, True)
        cu.sync()
        np.testing.assert_array_equal([value(cu, b) for b in buffers], expected)


@child
def test_long_queues_run(cu):
    add, y, pageable = kernels(cu, "plain", "add"), cu.upload(np.zeros(1, np.float32)), np.zeros(1 << 20)
    stream, pinned = cu.stream(), cu.handle("cuMemHostAlloc", c.c_size_t(4), 0).value
    for _ in range(2000):
        cu.launch(add, 1, 1, Args(0, y, 1, 1), stream=stream)
        cu.cuMemcpyDtoHAsync(c.c_void_p(pinned), c.c_uint64(y), c.c_size_t(4), stream)
    assert 700 < c.c_float.from_address(pinned).value < 2000            # without anybody having waited
    room = cu.alloc(pageable.nbytes)
    for _ in range(30):                                                # 240 MB are not kept
        cu.cuMemcpyHtoDAsync(c.c_uint64(room), c.c_void_p(pageable.ctypes.data), c.c_size_t(pageable.nbytes), stream)
    cu.cuStreamSynchronize(stream)
    assert value(cu, y) == 2000


@child
def test_the_legacy_stream_waits_for_blocking_ones(cu):
    def nothing(first, second):
        pass

    for legacy in (0, 1):
        assert order(cu, nothing, flags=0, last=legacy) == 40
        assert order(cu, nothing, flags=1, last=legacy) < 35
    assert order(cu, nothing, flags=0, last=2) < 35             # the thread's own stream: blocking, not legacy


@child
def test_eager_streams(cu):
    cu.eager()
    assert order(cu, lambda first, second: None) == 40


@child
def test_events(cu):
    a, b, quick, stream = cu.event(), cu.event(), cu.event(2), cu.stream()
    cu.cuEventQuery(a)                                  # never recorded: done
    ms = c.c_float()
    fails(400, cu.cuEventElapsedTime, c.byref(ms), a, b)
    cu.cuEventRecord(a, stream)
    cu.cuEventRecord(b, stream)
    fails(600, cu.cuEventElapsedTime, c.byref(ms), a, b)
    asked = 1
    while cu.call("cuEventQuery", b) == 600:            # asking goes on with the work
        asked += 1
    assert asked < 200
    cu.cuEventElapsedTime(c.byref(ms), a, b)
    assert ms.value >= 0
    cu.cuEventRecord(quick, stream)
    cu.cuEventSynchronize(quick)
    fails(400, cu.cuEventElapsedTime, c.byref(ms), a, quick)
    while cu.call("cuStreamQuery", stream) == 600:
        pass
    cu.cuEventDestroy(a)
    fails(400, cu.cuEventRecord, a, stream)
    cu.handle("cuDevicePrimaryCtxRetain", 1)
    cu.cuStreamDestroy(stream)
    fails(400, cu.cuStreamSynchronize, stream)


@child
def test_destroyed_streams_finish_their_work(cu):
    stream, event, y = cu.stream(), cu.event(), cu.alloc(4)
    fill(cu, y, 3, stream)
    cu.cuEventRecord(event, stream)
    cu.cuStreamDestroy(stream)
    cu.cuEventSynchronize(event)
    assert value(cu, y) == 3


@child
def test_host_functions(cu):
    stream, y, seen = cu.stream(), cu.alloc(4), []
    fill(cu, y, 1, stream)
    pinned = c.c_float.from_address(cu.handle("cuMemHostAlloc", c.c_size_t(4), 0).value)
    cu.cuMemcpyDtoHAsync(c.byref(pinned), c.c_uint64(y), c.c_size_t(4), stream)
    call = c.CFUNCTYPE(None, c.c_void_p)(lambda p: seen.append((p, pinned.value, cu.call("cuCtxSynchronize"))))
    cu.cuLaunchHostFunc(stream, call, c.c_void_p(77))
    assert not seen
    cu.cuStreamSynchronize(stream)
    assert seen == [(77, 1.0, 800)]


@child
def test_threads_with_streams_of_their_own(cu):
    """Launches, host functions that need the interpreter's lock, queries and frees from four threads at once."""
    scale, add = kernels(cu, "plain", "scale", "add")
    context, failed = cu.handle("cuCtxGetCurrent"), []

    def work(seed):
        try:
            cu.cuCtxSetCurrent(context)
            stream, event, seen = cu.stream(), cu.event(), []
            call = c.CFUNCTYPE(None, c.c_void_p)(lambda p: seen.append(p))
            for i in range(1, 16):
                x, y = cu.upload(np.full(40, seed, np.float32)), cu.alloc(160)
                cu.launch(scale, 2, 32, Args(x, y, 40, i), stream=stream)
                cu.cuLaunchHostFunc(stream, call, c.c_void_p(i))
                cu.launch(add, 1, 32, Args(0, y, 40, 1), stream=stream)
                cu.cuEventRecord(event, stream)
                while i % 3 == 0 and cu.call("cuEventQuery", event) == 600:
                    pass
                cu.cuEventSynchronize(event)
                assert seen[-1] == i and value(cu, y) == seed * i + 1
                cu.free(x)
                cu.free(y)
        except BaseException as e:
            failed.append(e)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(1, 5)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(30)
        assert not t.is_alive()
    assert not failed, failed
    assert cu.memory_used(0) == 0


@child
def test_freeing_waits_and_free_async_is_in_order(cu):
    scale = kernels(cu, "plain", "scale")
    x, y, stream = cu.upload(np.ones(100, np.float32)), cu.alloc(400), cu.stream()
    cu.launch(scale, 1, 32, Args(x, y, 100, 3), stream=stream)
    cu.free(x)                                      # the kernel has run before
    assert value(cu, y) == 3
    out = c.c_uint64()
    cu.cuMemAllocAsync(c.byref(out), c.c_size_t(400), stream)
    cu.launch(scale, 1, 32, Args(y, out, 100, 2), stream=stream)
    cu.cuMemcpyDtoDAsync(c.c_uint64(y), out, c.c_size_t(400), stream)
    cu.cuMemFreeAsync(out, stream)
    cu.cuStreamSynchronize(stream)
    assert value(cu, y) == 6 and cu.memory_used(0) == 512


# ------------------------------------------------------------------------------------------------ the driver

@child
def test_failures_are_sticky(cu):
    scale, trap = kernels(cu, "plain", "scale", "trap")
    y = cu.alloc(4)
    event, stream = cu.event(), cu.stream()
    cu.launch(trap, 1, 32, Args(0, y, 0), stream=stream)
    cu.launch(scale, 1, 32, Args(0, 0, 10), stream=stream)        # would fault, but is dropped
    cu.cuEventRecord(event, stream)
    fails(719, cu.cuStreamSynchronize, stream)
    assert "__trap" in cu.failure()
    for function in (cu.sync, lambda: cu.alloc(4), lambda: value(cu, y), lambda: cu.cuEventQuery(event),
                     lambda: cu.launch(scale, 1, 32, Args(0, 0, 0)), cu.stream):
        fails(719, function)
    other = cu.handle("cuDevicePrimaryCtxRetain", 1)
    cu.cuCtxPushCurrent(other)
    cu.alloc(4)                                                     # the other device goes on
    cu.cuCtxPopCurrent(None)
    cu.cuDevicePrimaryCtxReset(0)
    assert cu.memory_used(0) == 0
    fill(cu, cu.alloc(4), 1)
    cu.sync()


@child
def test_devices(cu):
    n, number = c.c_int(), c.c_int()
    cu.cuDeviceGetCount(c.byref(n))
    assert n.value == 2
    for attribute, expected in {1: 1024, 8: 49152, 10: 32, 16: 132, 41: 1, 75: 9, 76: 0, 97: 232448}.items():
        cu.cuDeviceGetAttribute(c.byref(number), attribute, 1)
        assert number.value == expected
    fails(101, cu.cuDeviceGet, c.byref(number), 2)
    name = c.create_string_buffer(50)
    cu.cuDeviceGetName(name, 50, 1)
    assert name.value == b"Stand-in device 1"
    cu.cuDriverGetVersion(c.byref(number))
    assert number.value == 13000
    text = c.c_char_p()
    cu.cuGetErrorName(719, c.byref(text))
    assert text.value == b"CUDA_ERROR_LAUNCH_FAILED"
    f, found = c.c_void_p(), c.c_int()
    cu.call("cuGetProcAddress_v2", b"cuMemAlloc", c.byref(f), 13000, c.c_uint64(0), c.byref(found))
    assert f.value == c.cast(cu.library.cuMemAlloc_v2, c.c_void_p).value
    assert cu.call("cuGetProcAddress_v2", b"cuNothing", c.byref(f), 13000, c.c_uint64(0), c.byref(found)) == 500
    cu.cuCtxSetCurrent(None)
    fails(201, cu.alloc, 4)


@child(devices=1)
def test_number_of_devices(cu):
    n = c.c_int()
    cu.cuDeviceGetCount(c.byref(n))
    assert n.value == 1


@child
def test_libraries(cu):
    program, n = cu.program(image("plain")), c.c_uint()
    cu.cuLibraryGetKernelCount(c.byref(n), program)
    assert n.value == 12
    fails(500, cu.kernel, program, "nothing")
    fails(200, cu.program, b"garbage" * 100)
    cubin = bytearray(image("plain"))
    cubin[18:20] = (190).to_bytes(2, "little")
    fails(200, cu.program, bytes(cubin))
    scale = cu.kernel(program, "scale")
    for block, shared in ((257, 0), (0, 0), (1, 50000)):
        fails(1, cu.launch, scale, 1, block, Args(), None, shared)
    cu.cuFuncSetAttribute(scale, 8, 60000)
    fails(1, cu.cuFuncSetAttribute, scale, 8, 232449)
    cu.launch(scale, 1, 1, Args(), None, 50000)
    number = c.c_int()
    cu.cuFuncGetAttribute(c.byref(number), 0, scale)
    assert number.value == 256
    cu.cuOccupancyMaxActiveBlocksPerMultiprocessor(c.byref(number), scale, 256, c.c_size_t(0))
    assert number.value == 8
    assert cu.launched() == {"scale": 1} and cu.counters()["launches"] == 1
    cu.cuLibraryUnload(program)
    fails(400, cu.launch, scale, 1, 1, Args())
    other = cu.handle("cuModuleLoadData", image("plain"))
    cu.launch(cu.handle("cuModuleGetFunction", other, b"scale"), 1, 1, Args())
    cu.sync()


@child
def test_arguments_are_copied_at_the_launch(cu):
    scale, x, y = kernels(cu, "plain", "scale"), cu.upload(np.ones(1, np.float32)), cu.alloc(4)
    args = Args(x, y, 1, 5)
    cu.launch(scale, 1, 1, args)
    args.by = 6
    assert value(cu, y) == 5


@child
def test_idle(cu):
    scale, y = kernels(cu, "plain", "scale"), cu.upload(np.zeros(1, np.float32))
    cu.idle()
    cu.launch(scale, 1, 1, Args(y, y, 1, 5))
    cu.launch(scale, 1, 1, Args(0, 0, 1, 5))
    cu.idle(False)
    fails(1, cu.launch, scale, 1, 1000, Args())
    assert value(cu, y) == 0 and cu.counters()["launches"] == 2


@child
def test_a_forked_child_has_no_driver(cu):
    pid = os.fork()
    if not pid:
        os._exit(cu.call("cuCtxSynchronize"))
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 3


@child(needs="cuda.bindings")
def test_cuda_python(cu):
    """cuda.bindings finds the stand-in and calls it, unmodified."""
    from cuda.bindings import driver

    def ok(result):
        assert result[0] == driver.CUresult.CUDA_SUCCESS, result
        return result[1:] if len(result) != 2 else result[1]

    assert ok(driver.cuDeviceGetCount()) == 2
    assert ok(driver.cuDeviceGetName(30, ok(driver.cuDeviceGet(1)))).split(b"\0")[0] == b"Stand-in device 1"
    context = ok(driver.cuDevicePrimaryCtxRetain(0))
    ok(driver.cuCtxSetCurrent(context))
    library = ok(driver.cuLibraryLoadData(image("plain"), [], [], 0, [], [], 0))
    kernel = ok(driver.cuLibraryGetKernel(library, b"scale"))
    function = ok(driver.cuKernelGetFunction(kernel))
    x = np.arange(10, dtype=np.float32)
    p, q = ok(driver.cuMemAlloc(x.nbytes)), ok(driver.cuMemAlloc(x.nbytes))
    stream = ok(driver.cuStreamCreate(driver.CUstream_flags.CU_STREAM_NON_BLOCKING))
    event = ok(driver.cuEventCreate(0))
    ok(driver.cuMemcpyHtoDAsync(p, x.ctypes.data, x.nbytes, stream))
    args = Args(int(p), int(q), 10, 2)
    parameters = (c.c_void_p * 1)(c.addressof(args))
    ok(driver.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, stream, c.addressof(parameters), 0))
    ok(driver.cuEventRecord(event, stream))
    ok(driver.cuEventSynchronize(event))
    ok(driver.cuMemcpyDtoH(x.ctypes.data, q, x.nbytes))
    assert x.tolist() == list(range(0, 20, 2))
    assert ok(driver.cuPointerGetAttribute(driver.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, p)) == 0
    cu.set_memory_limit(0, 0)
    assert driver.cuMemAlloc(4)[0] == driver.CUresult.CUDA_ERROR_OUT_OF_MEMORY
    assert ok(driver.cuGetErrorName(driver.CUresult.CUDA_ERROR_OUT_OF_MEMORY)) == b"CUDA_ERROR_OUT_OF_MEMORY"
