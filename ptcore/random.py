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
           "set_rng_state", "thread_safe_generator", "use"]


def thread_safe_generator():
    """The generator of a DataLoader's worker that is a thread; None, the default generator, elsewhere.

    Workers are processes with a default generator each, so the result is None.

    >>> import ptcore
    >>> ptcore.randint(0, 10, (2,), generator=ptcore.random.thread_safe_generator()).shape
    ptcore.Size([2])
    """
    return None


class use(_random.Kind):
    """Chooses whose random numbers the CPU's generators draw: ptcore's own, or PyTorch's to the bit.

    The choice holds from the call on, for the whole process. As a context manager it ends with the block.

    Parameters
    ----------
    kind : {"ptcore", "pytorch"}
        ``"ptcore"``: streams that depend on the seed and the number of calls alone, the same on the CPU and on CUDA,
        drawn by several threads at once. ``"pytorch"``: the Mersenne twister of PyTorch's CPU generator, with PyTorch's
        ways from its words to numbers and the order in which ops, initialisers, loaders and samplers draw.

    Raises
    ------
    ValueError
        If ``kind`` is another word.

    Notes
    -----
    The default generator has a stream of each kind; ``manual_seed`` seeds both. Other generators keep the kind that
    was in use when they were made (``Generator.kind``), and refuse a state of the other kind. Those of CUDA devices
    stay as they are. A change of the kind forgets what ``compile`` has captured. Workers of loaders have the kind of
    the process that starts them; other processes that are spawned begin with ``"ptcore"``.

    Examples
    --------
    >>> import ptcore
    >>> with ptcore.random.use("pytorch"):
    ...     _ = ptcore.manual_seed(0)
    ...     ptcore.rand(3)
    tensor([0.4963, 0.7682, 0.0885])
    """

    def __init__(self, kind):
        super().__init__(kind)
        self._switch()


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
