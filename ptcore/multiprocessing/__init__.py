"""The standard ``multiprocessing``, whose queues and pipes send tensors as shared memory.

Every name of the standard module is here. A sent tensor is moved to shared memory once, in place, and never copied
again: all processes show the same bytes, and a write in one process is seen by the others.

Examples
--------
>>> import ptcore
>>> from ptcore.multiprocessing import Pipe
>>> here, there = Pipe()
>>> x = ptcore.zeros(3)
>>> here.send(x)
>>> y = there.recv()
>>> y[0] = 7
>>> x.is_shared(), x
(True, tensor([7., 0., 0.]))
"""
import importlib
import multiprocessing as _standard
from multiprocessing import *  # noqa: F403

from ptcore._memory import segments
from ptcore.multiprocessing import _context
from ptcore.multiprocessing.reductions import init_reductions
from ptcore.multiprocessing.spawn import (
    ProcessContext,
    ProcessExitedException,
    ProcessRaisedException,
    SpawnContext,
    spawn,
    start_processes,
)

__all__ = ["ProcessContext", "ProcessExitedException", "ProcessRaisedException", "SpawnContext",
           "get_all_sharing_strategies", "get_sharing_strategy", "set_sharing_strategy", "spawn", "start_processes"]
__all__ += _standard.__all__

globals().update({name: getattr(_context.default, name) for name in _standard.__all__})
init_reductions()


def __getattr__(name):
    """The standard module's other attributes, such as its submodules."""
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if not hasattr(_standard, name):
        try:
            return importlib.import_module(f"multiprocessing.{name}")
        except ModuleNotFoundError:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
    return getattr(_standard, name)


def get_all_sharing_strategies():
    """The ways of this system to share memory: ``file_descriptor`` (Linux) and ``file_system``."""
    return set(segments.STRATEGIES)


def get_sharing_strategy():
    """How memory becomes shared."""
    return segments.strategy


def set_sharing_strategy(new_strategy):
    """Sets how memory is shared from now on, in this process.

    Parameters
    ----------
    new_strategy : str
        ``file_descriptor``: memory without a name, which no process can leave behind; each hundred or so of tensors
        takes a descriptor. ``file_system``: files in ``/dev/shm`` (elsewhere in the folder of temporary files), whose
        names may travel by any way; the last process that needs one removes it, and what killed processes leave is
        removed by the next one.
    """
    if new_strategy not in segments.STRATEGIES:
        raise AssertionError(f"set_sharing_strategy: expected one of {list(segments.STRATEGIES)}, "
                             f"got {new_strategy!r}")
    segments.strategy = new_strategy
