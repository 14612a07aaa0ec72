"""Modules for parts of PyTorch that ptcore lacks: they can be imported, and raise where they are used.

The form of a name decides its behaviour. A name with a capital is a class, and so is a name with ``=`` behind it in the
table: programs derive from it, annotate with it and test for instances, of which there are none. Its attributes in
capitals are members of an enumeration. Any other name is a function. Classes and functions raise NotImplementedError
when they are called. Exceptions are listed in tables of `_absent_names`.
"""
import abc
import types
from importlib import import_module

from ptcore.compat.torch._absent_names import BASES, FALSE, MARKERS, METHODS, NONE, WHY, ZERO
from ptcore.compat.torch._more import MORE
from ptcore.compat.torch._paths import ABSENT, TABLE


def why(path):
    """The sentence that names the missing part."""
    own = path[len("torch."):]
    return f"{path}: {next(text for part, text in WHY.items() if own == part or own.startswith(part and part + '.'))}"


class _Class(abc.ABCMeta):
    """The metaclass of classes without instances. Programs mix them with abstract classes and protocols."""

    def __call__(cls, *args, **kwargs):
        raise NotImplementedError(why(_place(cls)))

    def __getattr__(cls, name):
        place = _place(cls)
        if name.isupper() and not name.startswith("_"):
            return _Word(f"{place}.{name}")
        if name in METHODS.get(place.rpartition(".")[2], "").split():
            return _function(f"{place}.{name}")
        raise AttributeError(f"type object {cls.__name__!r} has no attribute {name!r}")

    def __repr__(cls):
        return f"<class '{_place(cls)}', which ptcore has not>"


def _place(cls):
    found = next(c for c in cls.__mro__ if "_absent_path" in vars(c))
    return found._absent_path


class _Word:
    """A member of an absent enumeration, which programs use as a default of functions."""

    def __init__(self, path):
        self._path = path

    def __repr__(self):
        return f"<{self._path}, which ptcore has not>"

    def __eq__(self, other):
        return isinstance(other, _Word) and other._path == self._path

    def __hash__(self):
        return hash(self._path)


def _function(path):
    def absent(*args, **kwargs):
        raise NotImplementedError(why(path))

    absent.__name__ = path.rpartition(".")[2]
    absent.__qualname__ = absent.__name__
    absent.__module__ = path.rpartition(".")[0]
    absent.__doc__ = f"Absent: raises NotImplementedError. {why(path)}"
    return absent


def _marker(function=None, *args, **kwargs):
    """A decorator without a meaning here: returns its argument."""
    if callable(function):
        return function
    return _marker


def _no(*args, **kwargs):
    """The answer to a question about the machine: False."""
    return False


def _logger(module_qname, artifact_name):
    """A logger of the standard library, since modules make loggers when they are imported."""
    import logging
    return logging.getLogger(f"{module_qname}.__{artifact_name}")


def _zero():
    """The number of devices: 0."""
    return 0


def _make(path, is_class=False):
    module, _, name = path.rpartition(".")
    if path in MARKERS:
        return _marker
    if path in FALSE or name == "is_available" or name.startswith("has_triton"):
        return _no
    if path in ZERO:
        return _zero
    if path in NONE:
        return None
    if path == "torch._logging.getArtifactLogger":
        return _logger
    if path in BASES:
        return type(name, (), {"__module__": module, "__doc__": why(path)})
    if is_class or name.lstrip("_")[:1].isupper():
        space = {"__module__": module, "__doc__": why(path), "_absent_path": path,
                 "__class_getitem__": classmethod(lambda cls, item: cls)}
        if name.endswith(("Error", "Exception")):
            del space["__class_getitem__"]
            return type(name, (RuntimeError,), space)
        return _Class(name, (), space)
    return _function(path)


_ones = {}


def one(path):
    """The object for an absent path, the same each time."""
    if path not in _ones:
        _ones[path] = _make(path)
    return _ones[path]


class Missing(types.ModuleType):
    """A module for a part of PyTorch that ptcore lacks."""

    def __init__(self, name):
        self.__dict__["_names"] = names = {}
        path = "torch." + name.partition(".")[2]
        for word in ABSENT[path[len("torch."):]].split():
            names[word.rstrip("=")] = word.endswith("=")
        super().__init__(name, f"Absent: {why(path)}")
        self.__path__ = []
        self._path = path

    def __getattr__(self, name):
        names = self.__dict__["_names"]
        for source, words in MORE.get(self._path[len("torch."):], {}).items():
            for word in words.split():
                own, _, other = word.partition("=")
                if own == name:
                    found = self.__dict__[name] = getattr(import_module(source), other or own)
                    return found
        if name == "__all__":
            return [n for n in names if not n.startswith("_")]
        if name not in names:
            below = f"{self._path[len('torch.'):]}.{name}"
            if (below in ABSENT or below in TABLE) and not name.startswith("__"):
                return import_module(f"torch.{below}")
            raise AttributeError(f"module {self._path!r} has no attribute {name!r}: {why(self._path)}")
        made = self.__dict__[name] = _make(f"{self._path}.{name}", names[name])
        return made

    def __dir__(self):
        return sorted({*self._names, "__name__", "__doc__", "__path__"})
