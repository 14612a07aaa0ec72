"""Functions that mean something to script, and little to Python: ``annotate``, ``isinstance``, ``is_scripting``."""
import builtins
import typing

from ptcore.jit._script import types

__all__ = ["Attribute", "annotate", "is_scripting", "jit_isinstance", "unwrap_optional"]


def annotate(the_type, the_value):
    """Returns its second argument; to ``script`` it says that the value is of the type.

    Parameters
    ----------
    the_type : type
        As in an annotation.
    the_value : object

    Returns
    -------
    object

    Examples
    --------
    >>> import ptcore
    >>> from typing import Dict
    >>> @ptcore.jit.script
    ... def count(words: list[str]) -> Dict[str, int]:
    ...     found = ptcore.jit.annotate(Dict[str, int], {})
    ...     for word in words:
    ...         found[word] = found.get(word, 0) + 1
    ...     return found
    """
    return the_value


def is_scripting():
    """True in a scripted program, False in Python: it guards code that only one of the two can run.

    Returns
    -------
    bool
    """
    return False


def jit_isinstance(obj, target_type):
    """Whether a value is of a type, items of containers included; ``script`` narrows the value's type accordingly.

    Parameters
    ----------
    obj : object
    target_type : type or tuple of type
        As in annotations: ``List[int]``, ``Optional[Tensor]``.

    Returns
    -------
    bool

    Examples
    --------
    >>> import ptcore
    >>> from typing import List
    >>> ptcore.jit.isinstance([1, 2], List[int]), ptcore.jit.isinstance([1, "a"], List[int])
    (True, False)
    """
    for t in target_type if builtins.isinstance(target_type, tuple) else (target_type,):
        if types.needs_types(t):
            raise RuntimeError(f"isinstance: {t} needs the types of what it holds, as in List[int]")
        try:
            found = types.holds(types.from_annotation(t), obj)
        except types.AnnotationError:
            found = builtins.isinstance(obj, t)         # a class that script does not know
        if found:
            return True
    return False


jit_isinstance.__name__ = jit_isinstance.__qualname__ = "isinstance"


def unwrap_optional(x):
    """A value that must not be None."""
    assert x is not None, "Unwrapping null optional"
    return x


class Attribute(typing.NamedTuple):
    """A value and its type, for attributes that ``__init__`` of a ScriptModule sets.

    Examples
    --------
    >>> import ptcore
    >>> from typing import Dict
    >>> ptcore.jit.Attribute({}, Dict[str, int]).value
    {}
    """

    value: object
    type: object
