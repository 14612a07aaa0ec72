"""Sends memory of CUDA devices to another process as a handle of the driver, without a copy.

The sender keeps sent memory until the receiver has no tensor over it. Each message has a slip of shared memory. The
slip holds 0 while the message is on its way, then the number (and start time) of the process that has read it while
that process needs the memory, then -1. The sender checks its slips at each message, in ``cuda.ipc_collect`` and when
memory runs out. The slip of a dead process counts as returned.
"""
import itertools
import os
import warnings
import weakref
from functools import partial
from multiprocessing import util

from ptcore import Tensor
from ptcore._exchange.copying import rebuild
from ptcore._exchange.cuda_array import tensor_over
from ptcore._memory.segments import allocate, started
from ptcore.cuda.driver.loading import runtime
from ptcore.cuda.streams import Event, current_stream

ON_ITS_WAY, RETURNED = 0, -1

_token = os.urandom(16)
_numbers = itertools.count()
_sent = {}                              # number -> (storage, event, words of the slip)
_received = weakref.WeakSet()


def _driver():
    runtime()
    from ptcore.cuda import ipc
    return ipc


def _me():
    """Identifies this process, so that a message that returns to its sender is recognised."""
    return os.getpid(), _token


def _words(slip):
    """A slip's two numbers, as an array."""
    return rebuild(Tensor, "int64", (2,), (1,), 0, slip, False, None).numpy()


def collect():
    """Releases memory that receivers have returned; returns whether there was any."""
    found = False
    for number, (_, _, words) in list(_sent.items()):
        process, start = int(words[0]), int(words[1])
        if process == RETURNED or (process > 0 and started(process) != start):
            found = _sent.pop(number, None) is not None or found
    return found


def _end():
    """Runs after the children have been joined."""
    collect()
    if _sent:
        warnings.warn(f"multiprocessing: this process ends while others need {len(_sent)} of its CUDA storages, whose "
                      "memory they lose; wait for them before", RuntimeWarning, stacklevel=1)


util.Finalize(None, _end, exitpriority=-90)


class _Opened:
    """Memory of another process, opened in this one. The message's slip is returned at its end."""

    def __init__(self, index, base, offset, nbytes, words):
        self.index, self.address, self.nbytes = index, base + offset, nbytes
        self.__cuda_array_interface__ = {"shape": (nbytes,), "typestr": "|u1", "data": (base + offset, False),
                                         "strides": None, "version": 2}
        _received.add(self)
        weakref.finalize(self, _leave, os.getpid(), index, base, words).atexit = False


def _leave(process, index, base, words):
    if os.getpid() != process:          # in a forked child: the memory belongs to its parent
        return
    _driver().close_memory(index, base, partial(_return, words))


def _return(words):
    words[0] = RETURNED


def reduce_storage(storage):
    """A storage of a CUDA device as a handle of the segment that it lies in."""
    index, nbytes = storage.device.index, storage.nbytes()
    address = storage.data_ptr()
    if any(o.index == index and o.address <= address < o.address + o.nbytes for o in list(_received)):
        raise RuntimeError("multiprocessing: a CUDA tensor that came from another process cannot be sent on; send a "
                           "clone()")
    collect()
    handle, offset = _driver().memory_handle(index, address)
    event = Event(interprocess=True)
    event.record(current_stream(index))         # the receiver waits for the work on this stream
    segment, place = allocate(16)
    slip = segment.storage(place, 16)
    number = next(_numbers)
    _sent[number] = storage, event, _words(slip)
    from ptcore.cuda.allocator import allocators
    if collect not in allocators.reclaim:
        allocators.reclaim.append(collect)
    return rebuild_storage, (index, handle, offset, nbytes, event.ipc_handle(), slip, _me(), number)


def rebuild_storage(index, handle, offset, nbytes, event, slip, process, number):
    """The storage of a message. Its use waits for the sender's work on the stream that was current there."""
    words = _words(slip)
    if words[0] != ON_ITS_WAY:
        raise RuntimeError("multiprocessing: a message with CUDA tensors is read for the second time")
    if process == _me():
        storage, _, _ = _sent[number]
        words[0] = RETURNED
        return storage
    try:
        runtime().check_device(index)
        words[1] = started(os.getpid())
        words[0] = os.getpid()
        base = _driver().open_memory(index, handle)
    except BaseException:
        words[0] = RETURNED
        raise
    opened = _Opened(index, base, offset, nbytes, words)
    Event.from_ipc_handle(index, event).wait(current_stream(index))
    return tensor_over(opened).untyped_storage()


def reduce_event(event):
    """An event by its handle."""
    return rebuild_event, (event.ipc_handle(), event.device.index)


def rebuild_event(handle, index):
    """The event of a handle."""
    return Event.from_ipc_handle(index, handle)
