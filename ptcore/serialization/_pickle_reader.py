"""A reader of pickles, protocols 2 to 5, that uses a name in a file only as a key of a fixed table.

It never imports, and it calls only functions of that table (``_constructors.py``) or the user's additions. The size of
a file bounds the memory that it can claim: opcodes that make objects from single bytes or copy earlier data call
:meth:`Reader.charge` first.
"""

from _compat_pickle import IMPORT_MAPPING, NAME_MAPPING
from collections import Counter, OrderedDict
from pickle import UnpicklingError
from struct import unpack

from ptcore import Size, device, dtype
from ptcore.serialization._constructors import CALLS, added, find, set_attributes, set_numpy_state, subclass
from ptcore.serialization.files import Collisions

_PIECE = 1 << 20
_MAX_NAME = 1024
_MAX_KEY = 64  # objects in a key of a dictionary: hashing a tuple recurses, and walks shared parts again
_PLAIN_KEYS = (str, bytes, bool, float, type(None), device, dtype)
_TUPLES = (tuple, frozenset, Size)


class Reader:
    """Reads one object.

    Parameters
    ----------
    file : file
        With ``read`` and ``readline``; it is left behind the pickle.
    persistent : function
        From a persistent id, a tuple that begins with "storage", to an object.
    size : int
        Bytes of the whole file.
    place : function
        From (tensor, saved device) to the tensor on the device that is wanted.
    encoding, errors : str
        Of texts that Python 2 wrote; "bytes" leaves them bytes.
    fix_imports : bool
        Whether names of modules of Python 2 mean those of Python 3.
    then : list, optional
        If storages are read after the pickle: the list of functions to call then.
    """

    def __init__(self, file, persistent=None, *, size, place=None, encoding="utf-8", errors="strict", fix_imports=True,
                 then=None):
        self._file_read, self._readline = file.read, file.readline
        self._persistent = persistent
        self._budget = 32 * size + (1 << 24)
        self.place, self.then = place, then
        self._encoding, self._errors, self._fix_imports = encoding, errors, fix_imports
        self._added = added()
        self._stack, self._marks, self._memo = [], [], {}
        self.collisions = Collisions()
        self._old_names = fix_imports

    def charge(self, n):
        """Raises if the objects made of parts of the file have become far larger than the file."""
        self._budget -= n
        if self._budget < 0:
            raise ValueError("the objects in it are far larger than the file")

    def load(self):
        """The object."""
        read, steps = self._read, _STEPS
        while True:
            code = read(1)[0]
            if code == 0x2E:  # STOP
                if len(self._stack) != 1 or self._marks:
                    raise ValueError("the pickle stops in the middle of an object")
                return self._stack[0]
            step = steps.get(code)
            if step is None:
                raise ValueError(f"opcode {code:#04x} is not used in these files")
            step(self)

    # -- bytes

    def _read(self, n):
        data = self._file_read(min(n, _PIECE))
        if len(data) < n:
            parts = [data]  # never asks for more than the file contains
            n -= len(data)
            while n:
                part = self._file_read(min(n, _PIECE))
                if not part:
                    raise ValueError("the pickle is cut off")
                parts.append(part)
                n -= len(part)
            data = b"".join(parts)
        return data

    def _number(self, n):
        return int.from_bytes(self._read(n), "little")

    def _counted(self, n):
        return self._read(self._number(n))

    def _line(self):
        line = self._readline(1024)
        if not line.endswith(b"\n"):
            raise ValueError("a name in the pickle is cut off")
        return line[:-1].decode()

    # -- the stack

    def _push(self, value):
        self._stack.append(value)

    def _pop(self):
        if not self._stack:
            raise ValueError("the pickle takes from an empty stack")
        return self._stack.pop()

    def _since_mark(self):
        items = self._stack
        self._stack = self._marks.pop()
        return items

    def _mark(self):
        self.charge(56)
        self._marks.append(self._stack)
        self._stack = []

    def _tuple(self, n):
        if len(self._stack) < n:
            raise ValueError("the pickle takes from an empty stack")
        self.charge(40 + 8 * n)
        self._stack[-n:] = [tuple(self._stack[-n:])]

    def _pop_any(self):
        if self._stack:
            self._stack.pop()
        else:
            self._stack = self._marks.pop()

    def _get(self, n):
        self._push(self._memo[self._number(n)])

    def _put(self, n):
        self._memo[self._number(n)] = self._stack[-1]

    def _new(self, value, n):
        self.charge(n)
        self._push(value)

    def _memoize(self):
        self.charge(32)
        self._memo[len(self._memo)] = self._stack[-1]

    # -- values

    def _text(self, n):
        self._push(str(self._counted(n), "utf-8", "surrogatepass"))

    def _old_text(self, n):
        data = self._counted(n)
        self._push(data if self._encoding == "bytes" else data.decode(self._encoding, self._errors))

    def _long(self, n):
        self._push(int.from_bytes(self._counted(n), "little", signed=True))

    def _old_int(self):
        """A number as Python 2 wrote it where it was too long for the other opcodes, or a bool."""
        text = self._line()
        self._push(text == "01" if text in ("00", "01") else int(text))

    def _protocol(self):
        protocol = self._number(1)
        if protocol > 5:
            raise NotImplementedError(f"the pickle has protocol {protocol}, the newest that is known is 5")
        self._old_names = self._fix_imports and protocol < 3

    # -- containers

    def _extend(self, items):
        target = self._stack[-1]
        if type(target) is list:
            target.extend(items)
        elif type(target) is set:
            target.update(self.key(k, id(target)) for k in items)
        elif self._is_added(type(target)) and hasattr(target, "append"):
            for item in items:
                target.append(item)
        else:
            raise ValueError(f"a {type(target).__name__} cannot be appended to")

    def _close_tuple(self):
        items = self._since_mark()
        self._push(tuple(items))

    def _close_frozenset(self):
        items = self._since_mark()
        self.charge(200)
        number = self.collisions.fresh()
        self._push(frozenset([self.key(k, number) for k in items]))

    def _set(self, items):
        target = self._stack[-1]
        if not isinstance(target, dict):
            raise ValueError(f"a {type(target).__name__} has no items")
        if len(items) % 2:
            raise ValueError("a key of a dictionary has no value")
        for k in range(0, len(items), 2):
            target[self.key(items[k], id(target))] = items[k + 1]

    def _set_one(self):
        value, key = self._pop(), self._pop()
        self._set((key, value))

    def key(self, key, container):
        """Checks a key: hashing it takes bounded time and stack, and few keys of its container share the hash."""
        left, stack = _MAX_KEY, [key]
        while stack:
            part = stack.pop()
            left -= 1
            cls = type(part)
            if left < 0:
                raise ValueError("a key of a dictionary is too large")
            if cls in _TUPLES:
                if len(part) > left:
                    raise ValueError("a key of a dictionary is too large")
                stack.extend(part)
            elif cls is int:
                if not -(1 << 63) <= part < 1 << 64:
                    raise ValueError("a key of a dictionary is too large a number")
            elif cls not in _PLAIN_KEYS and cls.__module__ != "numpy" and not self._is_added(cls):
                raise ValueError(f"a {cls.__name__} cannot be a key of a dictionary")
        if type(key) is not int and type(key) not in _PLAIN_KEYS:
            self.charge(100)
            self.collisions.add(container, key)
        return key

    # -- names

    def _global(self, module, name):
        if type(module) is not str or type(name) is not str:
            raise ValueError("a name in the pickle is no text")
        if len(module) + len(name) > _MAX_NAME:
            raise ValueError("a name in the pickle is too long")
        self._found_name(*self._today(module, name))

    def _today(self, module, name):
        """The name in Python 3 for a name in Python 2, which the older protocols use."""
        if self._old_names:
            if (module, name) in NAME_MAPPING:
                return NAME_MAPPING[module, name]
            module = IMPORT_MAPPING.get(module, module)
        return module, name

    def _found_name(self, module, name):
        self._push(find(module, name, self._added))

    def _stack_global(self):
        name, module = self._pop(), self._pop()
        self._global(module, name)

    def subclass(self, tensor, cls, state):
        """A tensor of another class that the file names."""
        return subclass(tensor, cls, state)

    def _is_added(self, thing):
        return any(thing is each for each in self._added.values())

    def _call(self, new=False):
        args, function = self._pop(), self._pop()
        if type(args) is not tuple:
            raise ValueError("the arguments in the pickle are no tuple")
        self.charge(200)  # for the object itself: a short call may make a large object
        call = CALLS.get(id(function))
        if call is not None:
            self._push(call(self, *args))
        elif self._is_added(function):
            self._push(function.__new__(function, *args) if new else function(*args))
        else:
            raise UnpicklingError(f"a {type(function).__name__} in the file is called, which is not allowed")

    def _build(self):
        state, target = self._pop(), self._stack[-1]
        cls = type(target)
        if self._is_added(cls):
            if hasattr(target, "__setstate__"):
                target.__setstate__(state)
                return
            slots = None
            if isinstance(state, tuple) and len(state) == 2:
                state, slots = state
            if state:
                target.__dict__.update(state)
            for key, value in (slots or {}).items():
                setattr(target, key, value)
        elif cls is OrderedDict or cls is Counter:
            set_attributes(target, state)
        elif not set_numpy_state(self, target, state):
            raise UnpicklingError(f"a {cls.__name__} in the file is given a state, which is not allowed")

    def _id(self):
        name = self._pop()
        if type(name) is not tuple or self._persistent is None:
            raise ValueError("a reference to a storage is damaged")
        self._push(self._persistent(name))


def _constant(value):
    return lambda r: r._push(value)


# The functions by opcode, in the order of the protocols.
_STEPS = {
    0x80: Reader._protocol,
    0x28: Reader._mark,  # MARK
    0x30: Reader._pop_any,  # POP
    0x31: Reader._since_mark,  # POP_MARK
    0x32: lambda r: r._push(r._stack[-1]),  # DUP
    0x4E: _constant(None),
    0x88: _constant(True),
    0x89: _constant(False),
    0x29: _constant(()),
    0x5D: lambda r: r._new([], 56),
    0x7D: lambda r: r._new({}, 64),
    0x8F: lambda r: r._new(set(), 200),
    0x49: Reader._old_int,  # INT
    0x4A: lambda r: r._push(unpack("<i", r._read(4))[0]),  # BININT, BININT1, BININT2, LONG1, LONG4
    0x4B: lambda r: r._push(r._number(1)),
    0x4D: lambda r: r._push(r._number(2)),
    0x8A: lambda r: r._long(1),
    0x8B: lambda r: r._long(4),
    0x47: lambda r: r._push(unpack(">d", r._read(8))[0]),
    0x58: lambda r: r._text(4),  # BINUNICODE, SHORT_BINUNICODE, BINUNICODE8
    0x8C: lambda r: r._text(1),
    0x8D: lambda r: r._text(8),
    0x54: lambda r: r._old_text(4),  # BINSTRING, SHORT_BINSTRING
    0x55: lambda r: r._old_text(1),
    0x42: lambda r: r._push(r._counted(4)),  # BINBYTES, SHORT_BINBYTES, BINBYTES8, BYTEARRAY8
    0x43: lambda r: r._push(r._counted(1)),
    0x8E: lambda r: r._push(r._counted(8)),
    0x96: lambda r: r._push(bytearray(r._counted(8))),
    0x74: Reader._close_tuple,
    0x85: lambda r: r._tuple(1),
    0x86: lambda r: r._tuple(2),
    0x87: lambda r: r._tuple(3),
    0x61: lambda r: r._extend((r._pop(),)),  # APPEND, APPENDS, ADDITEMS
    0x65: lambda r: r._extend(r._since_mark()),
    0x90: lambda r: r._extend(r._since_mark()),
    0x73: Reader._set_one,  # SETITEM, SETITEMS
    0x75: lambda r: r._set(r._since_mark()),
    0x91: Reader._close_frozenset,
    0x63: lambda r: r._global(r._line(), r._line()),
    0x93: Reader._stack_global,
    0x52: lambda r: r._call(),  # REDUCE, NEWOBJ
    0x81: lambda r: r._call(new=True),
    0x62: lambda r: r._build(),
    0x51: lambda r: r._id(),  # BINPERSID
    0x68: lambda r: r._get(1),  # BINGET, LONG_BINGET
    0x6A: lambda r: r._get(4),
    0x71: lambda r: r._put(1),  # BINPUT, LONG_BINPUT, MEMOIZE
    0x72: lambda r: r._put(4),
    0x94: Reader._memoize,
    0x95: lambda r: r._read(8),  # FRAME
}


class Names(Reader):
    """Reads a pickle without making its objects; ``load`` returns the names that are not allowed."""

    def load(self):
        """A list of ``module.name``."""
        self._found = {}
        super().load()
        return list(self._found)

    def _found_name(self, module, name):
        try:
            super()._found_name(module, name)
        except UnpicklingError:
            self._found[f"{module}.{name}"] = None
            self._push(None)
        except NotImplementedError:
            self._push(None)

    def key(self, key, container):
        return None

    def _extend(self, items):
        pass

    def _set(self, items):
        pass

    def _call(self, new=False):
        self._pop()
        self._pop()
        self._push(None)

    def _build(self):
        self._pop()

    def _id(self):
        self._pop()
        self._push(None)
