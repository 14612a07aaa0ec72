"""A reader of pickles for ``weights_only=False``: objects of the program's own classes, made by their kind.

It takes what :class:`Reader` takes, and beside it objects of the kinds of ``_kinds.py``, a written list of values of
Python's library, and functions of ptcore by a list. No function is called that the file chooses.
"""

import datetime
import io
import pathlib
import types
from collections import OrderedDict, deque
from importlib import import_module
from pickle import UnpicklingError

import ptcore
from ptcore.nn.modules.lazy import LazyModuleMixin
from ptcore.nn.parameter import UninitializedBuffer, UninitializedParameter
from ptcore.serialization import _kinds, _torch_names
from ptcore.serialization._constructors import find
from ptcore.serialization._pickle_reader import Reader
from ptcore.utils.hooks import RemovableHandle

_MAX_TEXT = 4096
_MAX_BITS = 1 << 20         # of a fraction's parts, whose common divisor takes the square of it
SCALES = ("_triangular_scale_fn", "_triangular2_scale_fn", "_exp_range_scale_fn")     # functions of CyclicLR
_CYCLIC = ("torch.optim.lr_scheduler", "CyclicLR")
LAZY_HOOKS = ("_infer_parameters", "_lazy_load_hook")     # methods that a lazy module registers as hooks of its own


class _Getattr:
    """``builtins.getattr`` of a file, which is read for listed owners alone."""


_GETATTR, _LOAD_FROM_BYTES, _RECONSTRUCT, _NEWOBJ = _Getattr(), object(), object(), object()
_NAMES = {"builtins.getattr": _GETATTR, "torch.storage._load_from_bytes": _LOAD_FROM_BYTES,
          "copyreg._reconstructor": _RECONSTRUCT, "copyreg.__newobj__": _NEWOBJ, "builtins.object": object}


class ObjectReader(Reader):
    """Reads one object; parameters as for :class:`Reader`.

    Parameters
    ----------
    nested : function
        From the bytes of a file within the file to its object.
    """

    def __init__(self, *args, nested=None, **options):
        super().__init__(*args, **options)
        self._nested = nested
        self._kinds = {}        # id of a class -> (class, kind)

    # -- names

    def _found_name(self, module, name):
        full = f"{module}.{name}"
        if full in _NAMES:
            self._push(_NAMES[full])
            return
        try:
            self._push(find(module, name, self._added))
            return
        except UnpicklingError as error:
            refused = error
        found = _torch_names.found(module, name)
        if found is None:
            found = _listed(module, name)
        if found is None:
            if module.partition(".")[0] == "torch":
                raise refused
            if full == "argparse.Namespace":
                import_module("argparse")
            found = self._own_class(module, name)
        elif _kinds.is_class(found) and id(found) not in _VALUES:
            self._kind(found)
        self._push(found)

    def _own_class(self, module, name):
        try:
            found = _kinds.imported(module, name)
            if not _kinds.is_class(found):
                raise _kinds.Refused("no class; functions are taken if they are on the list of safe globals")
            self._kind(found)
        except _kinds.Refused as error:
            full = f"{module}.{name}"[:400]
            raise UnpicklingError(
                f"the file names {full}, which is not rebuilt: {error}. Import its module before, put it on the list "
                f"with ptcore.serialization.add_safe_globals([{full}]) if you trust it, or let Python's own unpickler "
                "run whatever the file names with ptcore.serialization.allow_pickle(True)") from None
        return found

    def _kind(self, cls):
        """The kind of a class whose objects are made; raises Refused for others."""
        known = self._kinds.get(id(cls))
        if known is None:
            known = self._kinds[id(cls)] = cls, _kinds.kind_of(cls)
        return known[1]

    def _kind_of_object(self, target):
        known = self._kinds.get(id(type(target)))
        return None if known is None else known[1]

    # -- objects

    def _call(self, new=False):
        args, function = self._stack[-1] if self._stack else None, self._stack[-2] if len(self._stack) > 1 else None
        if type(args) is not tuple or self._is_added(function):
            super()._call(new)
            return
        value = _VALUES.get(id(function))
        if value is not None:
            made = value(self, *args)
        elif function is _GETATTR:
            made = self._attribute(*args)
        elif function is _LOAD_FROM_BYTES:
            made = self._storage_of(*args)
        elif function is _RECONSTRUCT or function is _NEWOBJ:
            if function is _RECONSTRUCT and (len(args) != 3 or args[1] is not object):
                raise UnpicklingError("an object in the file is made of another one, which is not allowed")
            made = self._object(args[0], args[1:] if function is _NEWOBJ else ())
        elif self._is_kind(function):
            made = self._object(function, args, new)
        else:
            super()._call(new)
            return
        self.charge(200)
        del self._stack[-2:]
        self._push(made)

    def _is_kind(self, function):
        known = self._kinds.get(id(function))
        return known is not None and known[0] is function

    def _object(self, cls, args, new=True):
        if not self._is_kind(cls):
            raise UnpicklingError(f"an object of a {type(cls).__name__} in the file is made, which is not allowed")
        kind = self._kind(cls)
        if not new and kind is not _kinds.ENUM and not (kind is _kinds.CONTAINER and not args):
            raise UnpicklingError(f"the class {_kinds.name_of(cls)} is called by the file, which is not allowed")
        return _kinds.make(cls, kind, args)

    def subclass(self, tensor, cls, state):
        """A tensor of a class that was added, or of one of the kind that is made."""
        if self._is_added(cls) or not self._is_kind(cls) or self._kind(cls) is not _kinds.TENSOR:
            return super().subclass(tensor, cls, state)
        made = tensor.as_subclass(cls)
        if state is not None:
            _kinds.give(made, _kinds.TENSOR, state)
        return made

    def _attribute(self, owner, name):
        if type(name) is str:
            if isinstance(owner, _torch_names.Functions):
                return owner.named(name)
            if self._is_kind(owner) and self._kind(owner) is _kinds.ENUM:
                return _kinds.named(owner, name)
            if name in LAZY_HOOKS and LazyModuleMixin in _kinds.mro(type(owner)):
                return types.MethodType(vars(LazyModuleMixin)[name], owner)
            if name in SCALES and self._is_kind(owner) and _torch_names.name_of(owner) == _CYCLIC:
                return vars(owner)[name].__func__
        raise UnpicklingError("an attribute of an object in the file is read, which is not allowed")

    def _storage_of(self, data):
        if type(data) is not bytes or self._nested is None:
            raise ValueError("a storage in the pickle has no bytes")
        self.charge(2 * len(data))
        return self._nested(io.BytesIO(data))

    def _build(self):
        target = self._stack[-2] if len(self._stack) > 1 else None
        state = self._stack[-1] if self._stack else None
        kind = self._kind_of_object(target)
        if self._is_added(type(target)):
            super()._build()
        elif kind is not None:
            _kinds.give(target, kind, state)
            self._stack.pop()
        elif type(target) in _STATES:
            _STATES[type(target)](target, state)
            self._stack.pop()
        else:
            super()._build()

    def _extend(self, items):
        target = self._stack[-1] if self._stack else None
        if type(target) is deque:
            target.extend(items)
        elif self._kind_of_object(target) is _kinds.CONTAINER and isinstance(target, list):
            list.extend(target, items)
        else:
            super()._extend(items)

    def _set(self, items):
        target = self._stack[-1] if self._stack else None
        if self._kind_of_object(target) is not _kinds.CONTAINER:
            super()._set(items)
            return
        base = _kinds.container_of(type(target))
        if base is list:
            super()._set(items)
            return
        if len(items) % 2:
            raise ValueError("a key of a dictionary has no value")
        for k in range(0, len(items), 2):
            base.__setitem__(target, self.key(items[k], id(target)), items[k + 1])

    def key(self, key, container):
        # A tensor is hashed by its address; the members of an enum by their names, if the class leaves that alone.
        if isinstance(key, ptcore.Tensor) and type(key) in (ptcore.Tensor, ptcore.nn.Parameter):
            return key
        if self._kind_of_object(key) is _kinds.ENUM and _kinds.is_hashed_plainly(type(key)):
            self.charge(100)
            self.collisions.add(container, key)
            return key
        if type(key) in _HASHED:
            self.charge(100)
            self.collisions.add(container, key)
            return key
        return super().key(key, container)

    def _id(self):
        name = self._stack[-1] if self._stack else None
        if type(name) is tuple and len(name) == 4 and name[0] in ("module", b"module"):
            self._stack[-1] = name[1]       # a class, with its file and its source, which are not looked at
            return
        super()._id()


# -- values of Python's library ------------------------------------------------------------------------------

def _bytes_of(data, *lengths):
    if type(data) is str:       # Python 2 wrote them
        data = data.encode("latin1")
    if type(data) is not bytes or len(data) not in lengths:
        raise ValueError("a date in the pickle is damaged")
    return data


def _zone(zone):
    if zone and not (len(zone) == 1 and type(zone[0]) in (datetime.timezone, type(None))):
        raise ValueError("a time zone in the pickle is none")
    return zone


def _date(reader, data):
    return datetime.date(_bytes_of(data, 4))


def _time(reader, data, *zone):
    return datetime.time(_bytes_of(data, 6), *_zone(zone))


def _datetime(reader, data, *zone):
    return datetime.datetime(_bytes_of(data, 10), *_zone(zone))


def _timedelta(reader, *parts):
    return datetime.timedelta(*_ints(parts))


def _timezone(reader, offset, *name):
    if type(offset) is not datetime.timedelta or any(type(part) is not str for part in name):
        raise ValueError("a time zone in the pickle is none")
    return datetime.timezone(offset, *name)


def _ints(parts, bits=_MAX_TEXT):
    if any(type(part) is not int or part.bit_length() > bits for part in parts):
        raise ValueError("a number in the pickle is none, or too large")
    return parts


def _path(cls):
    def make(reader, *parts):
        if any(type(part) is not str for part in parts):
            raise ValueError("a path in the pickle is no text")
        reader.charge(sum(map(len, parts)))
        return cls(*parts)
    return make


def _decimal(reader, text):
    from decimal import Decimal

    if type(text) is not str:
        raise ValueError("a decimal in the pickle is no text")
    reader.charge(len(text))
    return Decimal(text)


def _fraction(reader, *parts):
    from fractions import Fraction

    if len(parts) == 1 and type(parts[0]) is str:
        reader.charge(len(parts[0]))
        parts = tuple(map(int, parts[0].split("/")))            # Python bounds the digits of a text
    return Fraction(*_ints(parts, _MAX_BITS))


def _deque(reader, items=(), maxlen=None):
    if type(items) not in (tuple, list) or items or type(maxlen) not in (int, type(None)):
        raise ValueError("a deque in the pickle is damaged")
    return deque(items, maxlen)


def _partial(reader, function):
    from functools import partial

    return partial(function)


def _range(reader, *parts):
    return range(*_ints(parts))


def _slice(reader, *parts):
    if any(type(part) not in (int, float, str, type(None)) for part in parts):
        raise ValueError("a slice in the pickle is damaged")
    return slice(*parts)


def _namespace(reader):
    return types.SimpleNamespace()


def _uninitialized(cls):
    def make(reader, requires_grad, device="cpu", dtype=None):
        if type(requires_grad) is not bool or type(device) not in (str, ptcore.device):
            raise ValueError("a parameter that is not initialised is damaged")
        place = reader.place(ptcore.empty(0, device="cpu"), str(device)).device
        return cls(requires_grad, place, dtype)
    return make


def _give_namespace(target, state):
    if type(state) is not dict or any(type(name) is not str for name in state):
        raise ValueError("the state of a namespace is no dictionary")
    vars(target).update(state)


def _give_partial(target, state):
    if type(state) is not tuple or len(state) != 4 or type(state[1]) is not tuple or type(state[2]) not in (
            dict, type(None)) or type(state[3]) not in (dict, type(None)):
        raise ValueError("the state of a partial is damaged")
    target.__setstate__(state)


def _handle(reader):
    return object.__new__(RemovableHandle)


def _give_handle(target, state):
    if type(state) is not tuple or len(state) not in (2, 3) or type(state[1]) is not int or any(
            type(more) is not tuple for more in state[2:]):
        raise ValueError("a handle of a hook is damaged")
    tables = [state[0], *(table for more in state[2:] for table in more)]
    if any(type(table) not in (OrderedDict, type(None)) for table in tables):
        raise ValueError("a handle of a hook has no table")
    target.__setstate__((tables[0], state[1], tuple(tables[1:])))


def _give_uuid(target, state):
    if type(state) is not dict or type(state.get("int")) is not int or not 0 <= state["int"] < 1 << 128:
        raise ValueError("a UUID in the pickle is damaged")
    import uuid

    object.__setattr__(target, "int", state["int"])
    object.__setattr__(target, "is_safe", uuid.SafeUUID.unknown)


def _uuid(reader):
    import uuid

    return object.__new__(uuid.UUID)


# Classes of Python's library whose objects are made, with the functions (reader, *arguments) that make them.
_MAKERS = {
    "datetime.date": _date, "datetime.time": _time, "datetime.datetime": _datetime, "datetime.timedelta": _timedelta,
    "datetime.timezone": _timezone, "decimal.Decimal": _decimal, "fractions.Fraction": _fraction, "uuid.UUID": _uuid,
    "collections.deque": _deque, "functools.partial": _partial, "builtins.range": _range, "builtins.slice": _slice,
    "types.SimpleNamespace": _namespace,
    **{f"pathlib.{cls.__name__}": _path(cls) for cls in (
        pathlib.PurePath, pathlib.PurePosixPath, pathlib.PureWindowsPath, pathlib.Path, pathlib.PosixPath,
        pathlib.WindowsPath)},
}
_VALUES = {id(RemovableHandle): _handle, id(UninitializedParameter): _uninitialized(UninitializedParameter),
           id(UninitializedBuffer): _uninitialized(UninitializedBuffer)}
_STATES = {types.SimpleNamespace: _give_namespace, RemovableHandle: _give_handle}
_STATES_BY_NAME = {"functools.partial": _give_partial, "uuid.UUID": _give_uuid}
_HASHED = {datetime.date, datetime.time, datetime.datetime, datetime.timedelta, type(pathlib.PurePath()),
           type(pathlib.Path())}


def is_listed(module, name):
    """Whether objects of a class of Python's library are made."""
    return f"{'pathlib' if module == 'pathlib._local' else module}.{name}" in (*_MAKERS, "argparse.Namespace")


def _listed(module, name):
    """A class of Python's library that is on the list, or None. The list says which module is imported for it."""
    full = f"{'pathlib' if module == 'pathlib._local' else module}.{name}"
    if full == "builtins.Ellipsis":
        return Ellipsis
    maker = _MAKERS.get(full)
    if maker is None:
        return None
    cls = getattr(import_module(full.rpartition(".")[0]), name)
    _VALUES[id(cls)] = maker
    if full in _STATES_BY_NAME:
        _STATES[cls] = _STATES_BY_NAME[full]
    return cls
