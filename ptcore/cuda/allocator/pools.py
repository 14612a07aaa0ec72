"""Private pools of device memory, who uses them, and allocators of other libraries.

A pool is a number that stands in ``BlockAllocator``'s tables. It is retired, so that its memory can go back to the
driver, when the last of its users has left: graphs, `MemPool` objects and ``use_mem_pool`` contexts.
"""
import contextlib
import ctypes
import threading
import weakref

from ptcore.cuda.allocator.snapshot import memory_snapshot
from ptcore.cuda.driver import loading
from ptcore.cuda.driver.loading import index_of, memory, runtime, started

__all__ = ["CUDAPluggableAllocator", "MemPool", "change_current_allocator", "use_mem_pool"]

_users = {}                             # (device, number) -> how many users
_lock = threading.RLock()               # a pool may be dropped by the garbage collection within another call here


def hold(index, number):
    """Adds a user of a pool on a device."""
    with _lock:
        _users[index, number] = _users.get((index, number), 0) + 1


def drop(index, number):
    """Removes a user; the pool is retired with its last user."""
    with _lock:
        left = _users[index, number] = _users[index, number] - 1
        if not left:
            del _users[index, number]
            memory().retire_pool(index, number)


def _leave(index, number):
    """Called when a MemPool ends: memory that nothing uses goes back at once."""
    drop(index, number)
    if (index, number) not in _users:
        memory().empty_retired(index)


def refuse_other_backends(what):
    """RuntimeError where the allocator in use has no private pools."""
    if memory().backend() != "native":
        raise RuntimeError(f"{what} the allocator 'native', PTCORE_CUDA_ALLOC is {memory().backend()!r}")


class CUDAPluggableAllocator:
    """Two functions of a shared library that memory is asked of in the driver's place.

    Parameters
    ----------
    path_to_so_file : str
    alloc_fn_name : str
        ``void *f(ssize_t size, int device, cudaStream_t stream)``; NULL means that there is no memory left.
    free_fn_name : str
        ``void f(void *data, ssize_t size, int device, cudaStream_t stream)``.

    Raises
    ------
    OSError
        If the library cannot be loaded.
    AttributeError
        If it has no such function.

    Notes
    -----
    They are given to ``change_current_allocator`` or to a `MemPool`, and are called with the device's context current,
    possibly by several threads at once.
    """

    def __init__(self, path_to_so_file, alloc_fn_name, free_fn_name):
        library = ctypes.CDLL(path_to_so_file)          # ctypes never closes it
        self._allocate, self._release = (ctypes.cast(getattr(library, name), ctypes.c_void_p).value
                                         for name in (alloc_fn_name, free_fn_name))

    def allocator(self):
        """What `MemPool` takes: the object itself."""
        return self


def _checked(allocator, op):
    if not isinstance(allocator, CUDAPluggableAllocator):
        raise TypeError(f"{op}: allocator must be a CUDAPluggableAllocator, got {type(allocator).__name__}")
    return allocator


def change_current_allocator(allocator):
    """Makes an allocator the one of all devices, without a cache before it: its functions are called for each tensor.

    Parameters
    ----------
    allocator : CUDAPluggableAllocator

    Raises
    ------
    RuntimeError
        If a device has been used already.
    """
    chosen = _checked(allocator, "change_current_allocator")
    if started() is not None:
        raise RuntimeError("change_current_allocator: a CUDA device has been used already; call it before that")
    loading.allocator = chosen


class MemPool:
    """A pool of device memory of its own, for what is allocated under ``use_mem_pool`` and for graphs
    (``graph(g, pool=pool.id)``).

    Its memory serves nobody else, and goes back to the driver once the object and all tensors there are gone.

    Parameters
    ----------
    allocator : CUDAPluggableAllocator, optional
        Where the pool's memory comes from; the driver if None.
    use_on_oom : bool
        Whether allocations outside of the pool may use its free memory rather than fail.
    no_split : bool
        Whether a free block is used as it is, however much larger than the request.

    Raises
    ------
    RuntimeError
        If the allocator in use has no pools (``PTCORE_CUDA_ALLOC``).

    Examples
    --------
    >>> import ptcore
    >>> if ptcore.cuda.is_available():
    ...     pool = ptcore.cuda.MemPool()
    ...     with ptcore.cuda.use_mem_pool(pool):
    ...         x = ptcore.ones(1000, device="cuda")
    """

    def __init__(self, allocator=None, use_on_oom=False, no_split=False):
        self._rules = (None if allocator is None else _checked(allocator, "MemPool"), bool(use_on_oom), bool(no_split))
        refuse_other_backends("MemPool: pools need")
        from ptcore.cuda.driver import graph
        self._index, self._number = runtime().check_device(-1), graph.new_pool()
        self._enter(self._index)
        hold(self._index, self._number)
        weakref.finalize(self, _leave, self._index, self._number).atexit = False

    def _enter(self, index):
        memory().make_pool(index, self._number, *self._rules)

    @property
    def id(self):
        """What a graph takes as ``pool``: a tuple of two numbers."""
        return 0, self._number

    @property
    def device(self):
        """The number of the device that was current when the pool was made."""
        return self._index

    @property
    def allocator(self):
        """What the pool was made with."""
        return self._rules[0]

    def use_count(self):
        """How many hold the pool on its device: the object, graphs, and contexts that are entered."""
        return _users.get((self._index, self._number), 0)

    def snapshot(self, include_traces=True):
        """The pool's segments on all devices, as of ``memory_snapshot``.

        Parameters
        ----------
        include_traces : bool
            Has no effect: segments have no traces.
        """
        return memory_snapshot(self.id, include_traces)


@contextlib.contextmanager
def use_mem_pool(pool, device=None):
    """``with use_mem_pool(pool):`` what this thread allocates on a device comes from a pool.

    Other threads are not affected, such as those of a backward pass that was begun within. Streams that capture a graph
    take their memory from the graph's pool.

    Parameters
    ----------
    pool : MemPool
    device : device, str or int, optional
        The current device if None.

    Examples
    --------
    >>> import ptcore
    >>> if ptcore.cuda.is_available():
    ...     pool = ptcore.cuda.MemPool()
    ...     with ptcore.cuda.use_mem_pool(pool):
    ...         x = ptcore.ones(1000, device="cuda")
    """
    if not isinstance(pool, MemPool):
        raise TypeError(f"use_mem_pool: pool must be a MemPool, got {type(pool).__name__}")
    index, blocks = runtime().check_device(index_of(device, "use_mem_pool")), memory()
    if index != pool._index:
        pool._enter(index)
    hold(index, pool._number)
    before = blocks.choose_pool(index, pool._number)
    try:
        yield
    finally:
        blocks.choose_pool(index, before)
        drop(index, pool._number)
