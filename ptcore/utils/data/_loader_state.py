"""The state of a loader: its position in a pass, and the random states at the beginning of the pass.

Orders of indices are not stored. A resumed pass sets the random states of its beginning, draws the indices of earlier
batches from the sampler again, and then restores the states that it found. Samplers and streams with their own
``state_dict`` and ``load_state_dict`` use these instead.
"""

from itertools import chain, islice

import ptcore
from ptcore import _random
from ptcore.utils import _random_states
from ptcore.utils.data.dataset import IterableDataset
from ptcore.utils.data.sampler import device_of, drawn_seed, is_pytorch

__all__ = ["Position", "begin", "check_length", "load_state_dict", "said_length", "state_dict"]


def _samplers(loader):
    """The objects that determine the order of indices, outermost first."""
    found = []
    sampler = loader._index_sampler
    while sampler is not None and not any(sampler is s for s in found):
        found.append(sampler)
        sampler = getattr(sampler, "sampler", None)
    return found


def _stateful(loader):
    """{key: object} of samplers and streams with a ``state_dict`` of their own."""
    parts = {}
    candidates = [("sampler", s) for s in _samplers(loader)]
    if isinstance(loader.dataset, IterableDataset) and not loader.num_workers:
        candidates.append(("dataset", loader.dataset))
    for key, part in candidates:
        if hasattr(part, "state_dict") and hasattr(part, "load_state_dict"):
            parts.setdefault(key, part)
    return parts


def _generators(loader):
    """The distinct generators of the loader and its samplers, except the default one."""
    found = []
    for holder in (loader, *_samplers(loader)):
        g = getattr(holder, "generator", None)
        if isinstance(g, ptcore.Generator) and g is not ptcore.default_generator and not any(g is f for f in found):
            found.append(g)
    return found


def _get_random_states(generators):
    return {"all": _random_states.get_states(), "own": _get_own(generators)}


def _set_random_states(generators, states):
    _random_states.set_states(states["all"])
    _set_own(generators, states["own"])


def _get_own(generators):
    return [_random.as_plain(g._position()) for g in generators]


def _set_own(generators, states):
    for g, position in zip(generators, states, strict=True):
        g._go_to(_random.from_plain(position))


class Position:
    """The position in a pass. ``given`` counts the batches handed out, ``ended`` tells that there are no more, and
    ``done`` that the caller has been told so.

    The iterator that hands out batches updates the position. ``began`` holds the random states at the beginning of the
    pass. ``drew`` holds those before its first index, where most samplers draw their order. ``seed`` is the seed of the
    first worker; it is drawn without workers too, so that their number does not change the order. In a pass with
    workers, ``states`` are the random states with which they continue, and ``workers`` is a weak reference to a
    function that asks for the present ones. If batches come in any order, the first ``first`` batches were handed out,
    and then ``again[k]`` more of worker k, its next ones; for a stream, which is read again from its start, ``again``
    counts all of them. Otherwise ``again`` is None.
    """

    def __init__(self, began):
        self.given, self.ended, self.done = 0, False, False
        self.began, self.drew = began, None
        self.seed = self.states = self.workers = self.first = self.again = None

    @property
    def leading(self):
        """The number of batches handed out before the first missing one."""
        return self.given if self.again is None else self.first

    def __getstate__(self):
        return {**self.__dict__, "workers": None}


def begin(loader):
    """Begins a pass, or resumes the one that was loaded.

    Returns its position, an iterator over the sampler's indices, and one over the samples of a stream (None for other
    datasets).
    """
    generators, resumed = _generators(loader), loader._resume
    now = _get_random_states(generators)
    loader._pass = at = Position(now)
    loader._resume = None
    if resumed is None or resumed["batches"] is None:
        indices, samples = _open(loader)
        at.seed = _draw_seed(loader)
        return at, _noted(indices, at, generators), samples
    at.began, at.drew, at.given, at.ended = (resumed[key] for key in ("began", "drew", "batches", "ended"))
    at.seed, at.states, at.first, at.again = (resumed.get(key) for key in ("seed", "states", "first", "again"))
    at.again = _copied(at.again)
    if at.ended:                        # stateful parts may be at the start of the next pass by now
        return at, iter(()), None
    try:
        _set_random_states(generators, at.began)
        indices, samples = _open(loader)
        if at.drew is not None:
            _set_random_states(generators, at.drew)
            indices = chain(list(islice(indices, 1)), indices)
        _skip(loader, at.leading, indices, samples)
    finally:
        _set_random_states(generators, now)
    if at.seed is None:                 # the state is of a version that drew no seed without workers
        at.seed = _draw_seed(loader)
    return at, _noted(indices, at, generators), samples


def _draw_seed(loader):
    if is_pytorch(loader.generator):
        return drawn_seed(loader.generator)
    return int(ptcore.randint(0, 2**62, (), dtype=ptcore.int64, generator=loader.generator,
                              device=device_of(loader.generator)))


def _open(loader):
    """The indices, and the samples of a stream if there are no workers."""
    reads = isinstance(loader.dataset, IterableDataset) and not loader.num_workers
    return iter(loader._index_sampler), iter(loader.dataset) if reads else None


def _noted(indices, at, generators):
    """The indices; notes the random states before the first one."""
    if at.drew is None:
        at.drew = _get_random_states(generators)
    yield from indices


def _skip(loader, number, indices, samples):
    """Skips the indices and samples of batches handed out before, except those of stateful parts."""
    stateful = _stateful(loader)
    if "sampler" in stateful:
        return
    for index in islice(indices, number):
        if samples is not None and "dataset" not in stateful:
            count = len(index) if loader._auto_collation else 1
            next(islice(samples, count, count), None)


def state_dict(loader):
    """See :meth:`DataLoader.state_dict`."""
    state = {"length": _length(loader), "batch_size": loader.batch_size, "batches": None,
             "generators": _get_own(_generators(loader))}
    at = loader._pass
    if at is not None and not at.done:
        state.update(batches=at.given, ended=at.ended or at.given == state["length"], began=at.began,
                     drew=at.drew, seed=at.seed, states=_ask(at))
        if at.again is not None and any(at.again):
            state.update(first=at.first, again=_copied(at.again))
    elif loader._resume is not None:            # a state was loaded, and no pass has begun since
        state = dict(loader._resume)
    for key, part in _stateful(loader).items():
        state[key] = part.state_dict()
    return state


def _copied(counts):
    """A copy of the counts, which the pass changes."""
    return None if counts is None else list(counts)


def _ask(at):
    """The random states of a pass's workers; None if there are no workers."""
    ask = at.workers and at.workers()
    return ask() if ask else None


def said_length(loader):
    """The number of batches that a stream announces, or None; ``__len__`` of some streams raises."""
    try:
        return len(loader)
    except Exception:
        return None


def check_length(size, name, given):
    """Warns of a stream that gives more batches than it announced."""
    if size is not None and given > size:
        import warnings

        warnings.warn(f"Length of IterableDataset {name} was reported to be {size}, but {given} batches have been "
                      "fetched.", stacklevel=3)


def load_state_dict(loader, state):
    """See :meth:`DataLoader.load_state_dict`."""
    if not isinstance(state, dict) or not {"batch_size", "length", "batches", "generators"} <= state.keys():
        raise ValueError(f"load_state_dict: the state must be one of a DataLoader, got a {type(state).__name__}"
                         + (f" of {', '.join(map(str, state)) or 'nothing'}" if isinstance(state, dict) else ""))
    counts, given, length = state.get("again"), state["batches"], state["length"]
    is_open = length is None or isinstance(loader.dataset, IterableDataset)     # a stream may give more than it says
    if given is not None and (type(given) is not int or not 0 <= given <= (given if is_open else length)
                              or not isinstance(state.get("began"), dict) or not {"drew", "ended"} <= state.keys()
                              or not isinstance(counts, (list, type(None)))):
        raise ValueError(f"load_state_dict: the state of a pass of {length} batches is damaged: batches is {given!r}")
    if counts is not None and len(counts) != loader.num_workers:
        raise ValueError(f"load_state_dict: batches came in any order (in_order=False) from {len(counts)} workers, the "
                         f"loader must have as many, got {loader.num_workers}")
    for name, present in (("batch_size", loader.batch_size), ("length", _length(loader))):
        if state[name] != present:
            raise ValueError(f"load_state_dict: the loader's {name} must be that of the saved one, {state[name]}, got "
                             f"{present}")
    parts, generators = _stateful(loader), _generators(loader)
    if (missing := parts.keys() - state.keys()) or len(state["generators"]) != len(generators):
        what = " and ".join(sorted(missing)) or "generators"
        raise ValueError(f"load_state_dict: the state does not fit the loader's {what}")
    for key, part in parts.items():
        part.load_state_dict(state[key])
    _set_own(generators, state["generators"])
    loader._pass = None
    loader._resume = state


def _length(loader):
    """Batches in a pass, or None if neither the sampler nor the stream says."""
    if isinstance(loader.dataset, IterableDataset):
        return said_length(loader)
    try:
        return len(loader)
    except TypeError:
        return None
