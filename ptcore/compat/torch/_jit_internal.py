"""``torch._jit_internal``: markers of definitions, which `ptcore.jit` has, and questions about annotations."""
import types
import typing
import weakref
from typing import Any, Dict, List, Optional, Tuple, Union  # noqa: F401, UP035

from ptcore.jit import Final, _overload, export, ignore, is_scripting, unused

__all__ = [
    "BroadcastingList1",
    "BroadcastingList2",
    "BroadcastingList3",
    "Final",
    "_copy_to_script_wrapper",
    "_overload",
    "_overload_method",
    "boolean_dispatch",
    "export",
    "ignore",
    "is_dict",
    "is_final",
    "is_list",
    "is_optional",
    "is_scripting",
    "is_tuple",
    "is_union",
    "unused",
]


class _BroadcastingList:
    def __getitem__(self, kind):
        return kind


BroadcastingList1 = BroadcastingList2 = BroadcastingList3 = _BroadcastingList()
BroadcastingList4 = BroadcastingList5 = BroadcastingList6 = BroadcastingList1
boolean_dispatched = weakref.WeakKeyDictionary()


def boolean_dispatch(arg_name, arg_index, default, if_true, if_false, module_name, func_name):
    """A function that calls one of two functions, depending on a bool argument."""
    def chosen(*args, **kwargs):
        flag = args[arg_index] if arg_index < len(args) else kwargs.get(arg_name, default)
        return (if_true if flag else if_false)(*args, **kwargs)

    chosen.__module__ = module_name or chosen.__module__
    chosen.__name__ = func_name or chosen.__name__
    chosen.__doc__ = if_false.__doc__ or if_true.__doc__
    boolean_dispatched[chosen] = {"if_true": if_true, "if_false": if_false, "index": arg_index, "default": default,
                                  "arg_name": arg_name}
    return chosen


_overload_method = _copy_to_script_wrapper = _overload


def is_final(ann):
    """Whether an annotation is ``Final[...]``."""
    return ann is typing.Final or typing.get_origin(ann) in (typing.Final, Final)


def is_list(ann):
    """Whether an annotation is a list with a type of items."""
    return typing.get_origin(ann) is list


def is_dict(ann):
    """Whether an annotation is a dict with types of items."""
    return typing.get_origin(ann) is dict


def is_tuple(ann):
    """Whether an annotation is a tuple with types of items."""
    return typing.get_origin(ann) is tuple


def is_union(ann):
    """Whether an annotation is a union."""
    return typing.get_origin(ann) in (typing.Union, types.UnionType)


def is_optional(ann):
    """Whether an annotation is an optional type."""
    return is_union(ann) and len(typing.get_args(ann)) == 2 and type(None) in typing.get_args(ann)
