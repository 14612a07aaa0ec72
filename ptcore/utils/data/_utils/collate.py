"""Collation: a list of samples becomes one batch of the same structure.

``default_collate_fn_map`` maps a type to ``fn(batch, *, collate_fn_map)``; the
first entry that the first sample is an instance of is used.
"""

from collections.abc import Mapping, MutableMapping, MutableSequence, Sequence
from copy import copy

import ptcore
from ptcore import Tensor
from ptcore._libraries import library

__all__ = ["collate", "default_collate", "default_collate_fn_map", "default_convert"]



def __getattr__(name):
    if name == "np_str_obj_array_pattern":      # type codes of arrays that cannot become tensors
        import re
        return re.compile(r"[SaUO]")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


_numpy_types = {}           # type -> its kind; a look at the type's name is slow


def _is_numpy(value):
    """'array', 'scalar' or None; NumPy is not imported for the test."""
    cls = type(value)
    kind = _numpy_types.get(cls)
    if kind is None and cls.__module__ == "numpy" and hasattr(value, "dtype"):
        kind = _numpy_types[cls] = "array" if cls.__name__ in ("ndarray", "memmap") else "scalar"
    return kind


def _is_namedtuple(value):
    return isinstance(value, tuple) and hasattr(value, "_fields")


def like_mapping(original, values):
    """`values` in a mapping of the type of `original`."""
    try:
        if isinstance(original, MutableMapping):
            result = copy(original)
            result.update(values)
            return result
        return type(original)(values)
    except TypeError:
        return values


def like_sequence(original, values):
    """`values` in a sequence of the type of `original`, a list if that fails."""
    try:
        if isinstance(original, MutableSequence):
            result = copy(original)
            for i, value in enumerate(values):
                result[i] = value
            return result
        return type(original)(values)
    except TypeError:
        return values


def default_convert(data):
    """Turn the NumPy arrays inside `data` into tensors; leave the rest.

    Examples
    --------
    >>> import numpy as np
    >>> default_convert({"a": np.array([1, 2])})["a"].tolist()
    [1, 2]
    """
    if isinstance(data, Tensor):
        return data
    kind = _is_numpy(data)
    if kind is not None:
        if kind == "array" and data.dtype.kind in "SUO":
            return data
        return ptcore.as_tensor(data)
    if isinstance(data, Mapping):
        return like_mapping(data, {k: default_convert(data[k]) for k in data})
    if _is_namedtuple(data):
        return type(data)(*(default_convert(v) for v in data))
    if isinstance(data, tuple):
        return [default_convert(v) for v in data]
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return like_sequence(data, [default_convert(v) for v in data])
    return data


def _unsupported(what):
    return TypeError(
        "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or "
        f"lists; found {what}"
    )


def collate(batch, *, collate_fn_map=None):
    """Collate with a table of functions by type.

    Parameters
    ----------
    batch : list
        Samples of the same structure.
    collate_fn_map : dict, optional
        Type, or tuple of types, to ``fn(batch, *, collate_fn_map)``.

    Returns
    -------
    The batch; mappings and sequences keep their type, tuples become lists.

    Raises
    ------
    TypeError
        If a sample is of a type that nothing collates.
    RuntimeError
        If sequences differ in length.
    """
    if not hasattr(batch, "__getitem__") or isinstance(batch, Mapping):
        raise TypeError(f"collate: batch must be a list of samples, got {type(batch).__name__}")
    first = batch[0]
    table = collate_fn_map or {}
    fn = table.get(type(first))
    if fn is None:
        fn = next((f for t, f in table.items() if isinstance(first, t)), None)
    if fn is not None:
        return fn(batch, collate_fn_map=collate_fn_map)
    if _is_numpy(first):
        return collate_numpy(batch, collate_fn_map)

    def below(values):
        return collate(values, collate_fn_map=collate_fn_map)

    if isinstance(first, Mapping):
        return like_mapping(first, {k: below([d[k] for d in batch]) for k in first})
    if _is_namedtuple(first):
        return type(first)(*(below(column) for column in zip(*batch, strict=True)))
    if isinstance(first, Sequence):
        if any(len(sample) != len(first) for sample in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        columns = [below(column) for column in zip(*batch, strict=True)]
        return columns if isinstance(first, tuple) else like_sequence(first, columns)
    raise _unsupported(type(first))


# in a worker: a function that gives an empty tensor for the stack of a list, in memory that can be sent, or None
output_for = None


def _collate_tensors(batch, *, collate_fn_map=None):
    return ptcore.stack(batch, out=None if output_for is None else output_for(batch))


def collate_numpy(batch, collate_fn_map):
    first = batch[0]
    if _is_numpy(first) == "scalar":
        if first.dtype.kind in "SUO":
            raise _unsupported(first.dtype)
        np = library("numpy")

        return ptcore.as_tensor(np.asarray(batch))
    if first.dtype.kind in "SUO":
        raise _unsupported(first.dtype)
    return collate([ptcore.as_tensor(a) for a in batch], collate_fn_map=collate_fn_map)


def _collate_floats(batch, *, collate_fn_map=None):
    return ptcore.tensor(batch, dtype=ptcore.float64)


def _collate_ints(batch, *, collate_fn_map=None):
    return ptcore.tensor(batch)


def _collate_text(batch, *, collate_fn_map=None):
    return batch


default_collate_fn_map = {
    Tensor: _collate_tensors,
    float: _collate_floats,
    int: _collate_ints,
    str: _collate_text,
    bytes: _collate_text,
}


def default_collate(batch):
    """Collate tensors, NumPy values, numbers, text and nestings of them.

    Parameters
    ----------
    batch : list
        Samples of the same structure.

    Returns
    -------
    object
        The batch: tensors and arrays are stacked along a new first dimension, numbers become a tensor, text stays a
        list, mappings and sequences are collated entry by entry.

    Examples
    --------
    >>> batch = default_collate([{"x": 1, "name": "a"}, {"x": 2, "name": "b"}])
    >>> batch["x"].tolist(), batch["name"]
    ([1, 2], ['a', 'b'])
    """
    return collate(batch, collate_fn_map=default_collate_fn_map)
