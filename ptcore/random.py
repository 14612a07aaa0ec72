"""The default generators: that of the CPU, and those of devices, which are seeded with it."""
import contextlib

from ptcore import _random
from ptcore._random import (
    Generator,
    default_generator,
    get_rng_state,
    initial_seed,
    manual_seed,
    seed,
    set_rng_state,
)

__all__ = ["Generator", "default_generator", "fork_rng", "get_rng_state", "initial_seed", "manual_seed", "seed",
           "set_rng_state", "thread_safe_generator"]


def thread_safe_generator():
    """The generator of a DataLoader's worker that is a thread; None, the default generator, elsewhere.

    Workers are processes with a default generator each, so the result is None.

    >>> import ptcore
    >>> ptcore.randint(0, 10, (2,), generator=ptcore.random.thread_safe_generator()).shape
    ptcore.Size([2])
    """
    return None


class _Forked(_random.States, contextlib.ContextDecorator):
    """The context returned by ``fork_rng``."""


def fork_rng(devices=None, enabled=True, _caller="fork_rng", _devices_kw="devices", device_type="cuda"):
    """A context that restores the states of the default generators at its end.

    Parameters
    ----------
    devices : iterable of device, optional
        Accepted for compatibility: the generators of all devices are kept, which costs two numbers each.
    enabled : bool, default: True
        Whether to do anything.
    device_type : str
        Accepted for compatibility.

    Examples
    --------
    >>> import ptcore
    >>> _ = ptcore.manual_seed(0)
    >>> with ptcore.random.fork_rng():
    ...     a = ptcore.rand(2)
    >>> bool((ptcore.rand(2) == a).all())
    True
    """
    return _Forked() if enabled else contextlib.nullcontext()
