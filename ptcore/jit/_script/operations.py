"""Functions that nodes of scripted graphs call besides ops and Python's functions, each by its name in this module."""
import copy
import string
import sys

from ptcore import autograd
from ptcore.jit._script.errors import Error as JitError

__all__ = ["NAMES"]


def make_list(*items):
    return [*items]


def make_dict(*keys_and_values):
    return dict(zip(keys_and_values[::2], keys_and_values[1::2]))


def shape(x):
    """The sizes as a list, since script has no Size."""
    return list(x.shape)


def stride(x):
    return list(x.stride())


def as_list(items):
    return list(items)


def item_of_tuple(items, k):
    """An item of a tuple at an index known at run time only."""
    return items[k]


def int_pow(x, y):
    """``x ** y`` of ints. The result is a float, as its static type says."""
    return float(x ** y)


def round_float(x):
    """``round`` of a float, which stays a float."""
    return float(round(x))


def is_none(x):
    return x is None


def is_not_none(x):
    return x is not None


def is_same(x, y):
    return x is y


def negate(x):
    return not x


def is_type(x, t):
    """Whether a value is of a static type."""
    from ptcore.jit._script.types import holds
    return holds(t, x)


def narrow(x, t):
    """Checks that a value is of a type narrower than its static type, and returns it."""
    from ptcore.jit._script.types import holds
    if not holds(t, x):
        raise TypeError(f"expected a value of type {t}, got one of type {type(x).__name__}")
    return x


def number_as(x, t):
    """Checks that a number is of a type and returns it; an int becomes a float where a float is expected."""
    if t.kind == "float" and type(x) is int:
        return float(x)
    return narrow(x, t)


def unwrap(x):
    if x is None:
        raise ValueError("_unwrap_optional: the value is None")
    return x


def range_length(start, stop, step):
    return len(range(start, stop, step))


def range_item(start, step, k):
    return start + step * k


def min_length(*lengths):
    return min(lengths)


def after_loop(status):
    """The status behind a loop: 3 if the function returned, otherwise 0."""
    return status if status == 3 else 0


def long_enough(length, n):
    """Raises where ``zip`` would stop early, in a loop that is written out ``n`` times."""
    if length < n:
        raise ValueError(f"zip: expected {n} items or more, as many as there are modules or items of the tuple, got "
                         f"{length}")


def checked_length(items, n):
    """Returns the items; raises unless there are ``n``."""
    if len(items) > n:
        got = f", got {len(items)}" if sys.version_info >= (3, 14) else ""     # as Python says it
        raise ValueError(f"too many values to unpack (expected {n}{got})")
    if len(items) < n:
        raise ValueError(f"not enough values to unpack (expected {n}, got {len(items)})")
    return items


def keys(d):
    return list(d)


def values(d):
    return list(d.values())


def dict_items(d):
    return list(d.items())


def unchanged_length(d, keys):
    """The length of a dict in a loop; raises where the dict has changed its size."""
    if len(d) != len(keys):
        raise RuntimeError("dictionary changed size during iteration")
    return len(keys)


def sort_list(items, reverse=False):
    items.sort(reverse=reverse)


def sorted_list(items, reverse=False):
    return sorted(items, reverse=reverse)


def rows_of(x):
    """A tensor's parts along its first dim."""
    return list(x.unbind(0))


def characters(text):
    return list(text)


def new_object(cls):
    return cls.__new__(cls)


def set_attribute(owner, name, value):
    setattr(owner, name, value)


def copy_list(items):
    return copy.copy(items)


class _Formatter(string.Formatter):
    """The formatter of ``str.format``. It refuses attributes and items, which a text of a file must not reach."""

    def get_field(self, field_name, args, kwargs):
        if not field_name.isdigit():
            raise ValueError(f"format: only values by position can be printed in script, not {field_name!r}")
        return super().get_field(field_name, args, kwargs)


_format = _Formatter().vformat


def format_text(text, *args):
    """``str.format``, with numbers and tensors formatted as in Python."""
    return _format(text, args, {})


# -- exceptions ----------------------------------------------------------------------------------------

_made = {}


def raised_class(cls):
    """The class of a raised exception: derived from the named class and from ``jit.Error``."""
    found = _made.get(cls)
    if found is None:
        if issubclass(cls, JitError):
            return cls
        try:
            found = type(cls.__name__, (JitError, cls), {"__module__": cls.__module__,
                                                         "__qualname__": cls.__qualname__})
        except TypeError:
            found = cls
        _made[cls] = found
    return found


def grad(outputs, inputs, grad_outputs=None, retain_graph=None, create_graph=False, allow_unused=False):
    """``autograd.grad``, whose result is a list in script."""
    return list(autograd.grad(outputs, inputs, grad_outputs, retain_graph, create_graph, allow_unused=allow_unused))


def raise_error(cls, *args):
    raise raised_class(cls)(*args)


def fail_assertion(*args):
    raise raised_class(AssertionError)(*args)


def unused(name):
    """The call of a function marked ``unused``: raises."""
    raise JitError(f"{name} is marked @unused and was called; its code was not compiled")


NAMES = {name: f for name, f in globals().items()
         if callable(f) and getattr(f, "__module__", None) == __name__ and not name.startswith("_")}
