"""Methods that record ranges while a profile is on."""
import functools

from ptcore.autograd.recording import USER, Range

_exchanged = {}                 # (class, name) -> (original method, recording method)


def exchange(begins, cls, name, label, kind=USER):
    """Replaces ``cls.name`` by a method that records a range, or restores it.

    Parameters
    ----------
    begins : bool
    cls : type
    name : str
    label : callable
        The name of the range, of the object that the method is called on.
    kind : int
        Of the event.
    """
    if begins:
        method = cls.__dict__[name]
        function = method.__func__ if isinstance(method, classmethod) else method

        @functools.wraps(function)
        def recorded(self, *args, **kwargs):
            event = Range(kind, label(self))
            try:
                return function(self, *args, **kwargs)
            finally:
                event.end()
        instead = classmethod(recorded) if function is not method else recorded
        _exchanged[cls, name] = method, instead
        setattr(cls, name, instead)
    elif (cls, name) in _exchanged:
        method, instead = _exchanged.pop((cls, name))
        if cls.__dict__.get(name) is instead:           # unless the user has replaced the method since
            setattr(cls, name, method)
