"""CUDA graphs over the driver: the work that a stream is given between two calls, kept and launched again as a whole.

One capture at a time runs on a device. Meanwhile the streams that take part get memory of the graph's pool, and kernels
that draw random numbers read their place in the stream of numbers from memory (``launch/driver.hpp``).
"""
from cuda.bindings cimport cydriver as cu
from libc.stdint cimport uint64_t, uintptr_t

from ptcore.cuda.allocator import allocators
from ptcore.cuda.driver import ipc
from ptcore.cuda.driver.runtime cimport check, driver, handle_of, use_device

cdef extern from "backend.hpp" namespace "pt_cuda" nogil:
    void forget_workspaces(int device, uint64_t pool)

cdef uint64_t _pools = 0


def new_pool():
    """The number of a new pool, which no other graph has."""
    global _pools
    _pools += 1
    return _pools


def refuse_another(int device):
    use_device(device)
    if driver.devices[device].capture_pool:
        raise RuntimeError(f"CUDAGraph.capture_begin: another graph is being captured on cuda:{device}")


def begin(int device, uintptr_t stream, uint64_t pool, int mode, uintptr_t random_state, uint64_t random_base):
    """Begins a capture: ``mode`` is the driver's, 0 (global), 1 (thread_local) or 2 (relaxed)."""
    cdef int result
    refuse_another(device)
    allocators.begin_capture()
    result = cu.cuStreamBeginCapture(handle_of(<void *>stream), <cu.CUstreamCaptureMode>mode)
    if result:
        allocators.end_capture()
        check(result, "CUDAGraph.capture_begin")
    driver.devices[device].random_state = <const uint64_t *>random_state
    driver.devices[device].random_base = random_base
    driver.devices[device].capture_pool = pool


def end(int device, uintptr_t stream):
    """Ends a capture; returns the graph's handle and its number of nodes."""
    cdef cu.CUgraph graph = NULL
    cdef size_t nodes = 0
    cdef int result
    use_device(device)
    result = cu.cuStreamEndCapture(handle_of(<void *>stream), &graph)
    forget_workspaces(device, driver.devices[device].capture_pool)
    driver.devices[device].capture_pool = 0
    driver.devices[device].random_state = NULL
    allocators.end_capture()
    ipc.close_left()
    check(result, "CUDAGraph.capture_end")
    result = cu.cuGraphGetNodes(graph, NULL, &nodes)
    if result:
        cu.cuGraphDestroy(graph)
        check(result, "CUDAGraph.capture_end")
    return <uintptr_t>graph, nodes


def instantiate(int device, uintptr_t graph):
    cdef cu.CUgraphExec program = NULL
    use_device(device)
    check(cu.cuGraphInstantiate(&program, <cu.CUgraph>graph, 0), "CUDAGraph.instantiate")
    return <uintptr_t>program


def launch(int device, uintptr_t program, uintptr_t stream):
    use_device(device)
    check(cu.cuGraphLaunch(<cu.CUgraphExec>program, handle_of(<void *>stream)), "CUDAGraph.replay")


def write_state(int device, uintptr_t stream, uintptr_t state, uint64_t seed, uint64_t offset):
    """Writes seed and offset, in the order of a stream. A copy from the host's memory might wait for the stream."""
    cdef unsigned[4] words
    cdef int i
    words[0], words[1], words[2], words[3] = seed & 0xffffffff, seed >> 32, offset & 0xffffffff, offset >> 32
    use_device(device)
    for i in range(4):
        check(cu.cuMemsetD32Async(<cu.CUdeviceptr>(state + 4 * i), words[i], 1, handle_of(<void *>stream)),
              "CUDAGraph.replay")


def destroy(uintptr_t graph, uintptr_t program):
    if driver.forked:
        return
    if program:
        cu.cuGraphExecDestroy(<cu.CUgraphExec>program)
    if graph:
        cu.cuGraphDestroy(<cu.CUgraph>graph)


def draw(int device, uintptr_t graph, str path):
    use_device(device)
    check(cu.cuGraphDebugDotPrint(<cu.CUgraph>graph, path.encode(), 1), "CUDAGraph.debug_dump")


def is_capturing(int device, uintptr_t stream):
    use_device(device)
    return bool(driver.capturing(<void *>stream))
