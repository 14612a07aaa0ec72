"""The states of all global random sources as plain data for ``save``: ptcore's default generators, Python's ``random``
and NumPy's global generator. The latter two are included only if their modules are loaded."""

import sys

from ptcore import _random
from ptcore._device import column_of, device
from ptcore._libraries import library


def get_states():
    """{"seed", "devices": {name: position}} with "python" and "numpy" where these are loaded. A position is
    [seed, offset], or ["pytorch", the state's bytes as a text] of the kind "pytorch"."""
    return describe(snapshot())


def snapshot():
    """The present states, in the cheapest form."""
    loaded = sys.modules
    return (_random.get_states(), loaded["random"].getstate() if "random" in loaded else None,
            loaded["numpy.random"].get_state(legacy=False) if "numpy.random" in loaded else None)


def describe(states):
    """A snapshot in the form of ``get_states``."""
    (seed, known), python, numpy = states
    found = {"seed": seed, "devices": {str(g.device): _random.as_plain(position)
                                      for g, position in known.items()}}
    if python is not None:
        found["python"] = python
    if numpy is not None:
        found["numpy"] = _plain(numpy)
    return found


def set_states(states):
    """Restores the result of ``get_states()``. The state of a device that this machine lacks is left out; a device
    without a state begins at the start of the seed."""
    known = {}
    for name, position in states["devices"].items():
        place = device(name)
        try:
            known[_random.default_generator_of(column_of(place.type), place.index or 0)] = _random.from_plain(
                position)
        except RuntimeError:            # this machine lacks the device
            pass
    _random.set_states((states["seed"], known))
    if "python" in states:
        import random

        version, words, gauss = states["python"]
        random.setstate((version, tuple(words), gauss))
    if "numpy" in states:
        np = library("numpy")

        np.random.set_state(states["numpy"])


def _plain(value):
    """A state of NumPy without arrays and NumPy scalars."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return value.tolist() if hasattr(value, "tolist") else value
