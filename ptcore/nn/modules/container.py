"""Containers of modules and parameters that behave as lists and dictionaries.

The registries hold the entries under their position ("0", "1", ...) or their key, so a container saves, moves and
prints like any other module.
"""

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from itertools import chain, islice
from operator import index as _as_index

from ptcore import Tensor
from ptcore._errors import NoEntryError
from ptcore.nn.modules.module import Module
from ptcore.nn.parameter import Parameter

__all__ = ["Container", "ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"]


def _position(idx, size):
    """`idx` as a position in a sequence of `size`, counted from its start."""
    idx = _as_index(idx)
    if not -size <= idx < size:
        raise IndexError(f"index {idx} is out of range")
    return idx % size


class _Numbered(Module):
    """Entries of ``_modules`` under the names "0", "1", ... in order."""

    def _renumber(self, modules):
        self._modules = {str(i): m for i, m in enumerate(modules)}

    def _name_at(self, idx):
        return next(islice(self._modules, _position(idx, len(self)), None))

    def __len__(self):
        return len(self._modules)

    def __iter__(self):
        return iter(self._modules.values())

    def __setitem__(self, idx, module):
        setattr(self, self._name_at(idx), module)

    def __delitem__(self, idx):
        if isinstance(idx, slice):
            dropped = set(list(self._modules)[idx])
        else:
            dropped = {self._name_at(idx)}
        self._renumber([m for k, m in self._modules.items() if k not in dropped])

    def __dir__(self):
        return [key for key in super().__dir__() if not key.isdigit()]

    def append(self, module):
        """Add `module` at the end and return the container."""
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules):
        """Add all `modules` at the end and return the container."""
        if not isinstance(modules, Iterable):
            raise TypeError(
                f"{type(self).__name__}.extend should be called with an iterable, "
                f"but got {type(modules).__name__}"
            )
        for i, module in enumerate(list(modules), len(self)):
            self.add_module(str(i), module)
        return self

    def insert(self, index, module):
        """Put `module` before the entry at `index`."""
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"module should be of type: {Module}")
        modules = list(self)
        index = _as_index(index)
        if not -len(modules) <= index <= len(modules):
            raise IndexError(f"Index out of range: {index}")
        modules.insert(index, module)
        self._renumber(modules)
        return self

    def pop(self, key):
        """Remove the entry at `key` and return it."""
        module = self[key]
        del self[key]
        return module

    def __iadd__(self, other):
        return self.extend(other)


class Sequential(_Numbered):
    """Modules applied one after the other.

    Parameters
    ----------
    *args : Module or OrderedDict
        The modules in order, or one ordered dictionary of names to modules.

    Examples
    --------
    >>> from ptcore import nn
    >>> nn.Sequential(nn.Linear(4, 2), nn.ReLU())
    Sequential(
      (0): Linear(in_features=4, out_features=2, bias=True)
      (1): ReLU()
    )
    """

    def __init__(self, *args):
        super().__init__()
        if len(args) == 1 and isinstance(args[0], OrderedDict):
            for name, module in args[0].items():
                self.add_module(name, module)
        else:
            for i, module in enumerate(args):
                self.add_module(str(i), module)

    def forward(self, input):
        """Apply all modules in order."""
        for module in self:
            input = module(input)
        return input

    def __getitem__(self, idx):
        if isinstance(idx, slice):
            return type(self)(OrderedDict(list(self._modules.items())[idx]))
        return self._modules[self._name_at(idx)]

    def extend(self, sequential):
        """Add all modules of `sequential` at the end and return the container."""
        for module in list(sequential):
            self.append(module)
        return self

    def __add__(self, other):
        if not isinstance(other, Sequential):
            raise ValueError(
                "add operator supports only objects of Sequential class, "
                f"but {type(other)} is given."
            )
        result = Sequential()
        for module in chain(self, other):
            result.append(module)
        return result

    def _repeated(self, times):
        if not isinstance(times, int):
            raise TypeError(
                f"unsupported operand type(s) for *: {type(self)} and {type(times)}"
            )
        if times <= 0:
            raise ValueError(
                f"Non-positive multiplication factor {times} for {type(self)}"
            )
        return list(self) * times

    def __mul__(self, other):
        return Sequential(*self._repeated(other))

    __rmul__ = __mul__

    def __imul__(self, other):
        return self.extend(self._repeated(other)[len(self) :])


class ModuleList(_Numbered):
    """Modules in a list.

    Parameters
    ----------
    modules : iterable of Module, optional
        The entries.

    Examples
    --------
    >>> from ptcore import nn
    >>> layers = nn.ModuleList([nn.Linear(2, 2) for _ in range(3)])
    >>> len(layers), len(list(layers.parameters()))
    (3, 6)
    """

    def __init__(self, modules=None):
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def __getitem__(self, idx):
        if isinstance(idx, slice):
            return type(self)(list(self)[idx])
        return self._modules[str(_position(idx, len(self)))]

    def __add__(self, other):
        return ModuleList(chain(self, other))

    def __repr__(self):
        """Runs of entries that print alike are shown as one."""
        texts = [repr(module) for module in self]
        if not texts:
            return f"{self._get_name()}()"
        runs = []
        for i, text in enumerate(texts):
            if runs and runs[-1][2] == text:
                runs[-1][1] = i
            else:
                runs.append([i, i, text])
        lines = []
        for first, last, text in runs:
            label = f"({first})"
            if last > first:
                label = f"({first}-{last})"
                text = f"{last - first + 1} x {text}"
            lines.append(f"{label}: {text}".replace("\n", "\n  "))
        return f"{self._get_name()}(\n  " + "\n  ".join(lines) + "\n)"


class _Keyed:
    """Reading methods of a dictionary; as in PyTorch, they do not ask a ``keys`` that a subclass overrides."""

    def __len__(self):
        return len(self._table())

    def __iter__(self):
        return iter(self._table())

    def __contains__(self, key):
        return key in self._table()

    def pop(self, key):
        """Remove the entry `key` and return it."""
        value = self[key]
        del self[key]
        return value


def _pairs(name, values):
    """Entries of a mapping or of an iterable of pairs, checked."""
    if not isinstance(values, Iterable):
        raise TypeError(
            f"{name}.update should be called with an iterable of key/value pairs, "
            f"but got {type(values).__name__}"
        )
    if isinstance(values, Mapping) and not isinstance(values, OrderedDict) and name == "ParameterDict":
        return sorted(values.items())           # sorted as in PyTorch, since optimisers number parameters by this order
    if isinstance(values, (Mapping, ModuleDict, ParameterDict)):
        return list(values.items())
    pairs = []
    for i, pair in enumerate(values):
        if not isinstance(pair, Iterable):
            raise TypeError(
                f"{name} update sequence element #{i} should be Iterable; "
                f"is {type(pair).__name__}"
            )
        pair = tuple(pair)
        if len(pair) != 2:
            raise ValueError(
                f"{name} update sequence element #{i} has length {len(pair)}; "
                "2 is required"
            )
        pairs.append(pair)
    return pairs


class ModuleDict(_Keyed, Module):
    """Modules in a dictionary, in order of insertion.

    Parameters
    ----------
    modules : mapping or iterable of pairs, optional
        Names to modules.

    Examples
    --------
    >>> from ptcore import nn
    >>> heads = nn.ModuleDict({"a": nn.Linear(2, 1), "b": nn.Identity()})
    >>> list(heads.keys())
    ['a', 'b']
    """

    def __init__(self, modules=None):
        super().__init__()
        if modules is not None:
            self.update(modules)

    def _table(self):
        return self._modules

    def __getitem__(self, key):
        return self._modules[key]

    def __setitem__(self, key, module):
        self.add_module(key, module)

    def __delitem__(self, key):
        del self._modules[key]

    def keys(self):
        """View of the names."""
        return self._modules.keys()

    def values(self):
        """View of the modules."""
        return self._modules.values()

    def items(self):
        """View of (name, module)."""
        return self._modules.items()

    def clear(self):
        """Remove all entries."""
        self._modules.clear()

    def update(self, modules):
        """Add or replace entries from a mapping or an iterable of pairs."""
        for key, module in _pairs("ModuleDict", modules):
            self[key] = module


def _as_parameter(value):
    if isinstance(value, Tensor) and not isinstance(value, Parameter):
        return Parameter(value)
    return value


def _entry_repr(label, value, dtype):
    if isinstance(value, Tensor):
        kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
        size = "x".join(map(str, value.shape))
        where = "" if value.device.type == "cpu" else f" ({value.device})"
        return f"  ({label}): {kind} containing: [{dtype(value)} of size {size}{where}]"
    return f"  ({label}): Object of type: {type(value).__name__}"


class ParameterList(Module):
    """Parameters (and other values) in a list; tensors become parameters.

    Parameters
    ----------
    values : iterable, optional
        The entries.

    Examples
    --------
    >>> import ptcore
    >>> p = ptcore.nn.ParameterList([ptcore.ones(2), ptcore.zeros(3)])
    >>> [tuple(v.shape) for v in p]
    [(2,), (3,)]
    """

    def __init__(self, values=None):
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def __len__(self):
        return self._size

    def __iter__(self):
        return iter([self[i] for i in range(len(self))])

    def __getitem__(self, idx):
        if isinstance(idx, slice):
            start, stop, step = idx.indices(len(self))
            return type(self)([self[i] for i in range(start, stop, step)])
        return getattr(self, str(_position(idx, len(self))))

    def __setitem__(self, idx, param):
        setattr(self, str(_position(idx, len(self))), _as_parameter(param))

    def append(self, value):
        """Add `value` at the end and return the list."""
        self._size += 1
        self[self._size - 1] = value
        return self

    def extend(self, values):
        """Add all `values` at the end and return the list."""
        if not isinstance(values, Iterable) or isinstance(values, Tensor):
            raise TypeError(
                "ParameterList.extend should be called with an iterable, "
                f"but got {type(values).__name__}"
            )
        for value in list(values):
            self.append(value)
        return self

    def __iadd__(self, values):
        return self.extend(values)

    def extra_repr(self):
        """One line an entry."""
        return "\n".join(_entry_repr(i, v, lambda p: p.dtype) for i, v in enumerate(self))

    def __call__(self, *args, **kwargs):
        raise RuntimeError("ParameterList should not be called.")


class ParameterDict(_Keyed, Module):
    """Parameters (and other values) in a dictionary; tensors become parameters.

    Parameters
    ----------
    parameters : mapping or iterable of pairs, optional
        Names to values.

    Examples
    --------
    >>> import ptcore
    >>> p = ptcore.nn.ParameterDict({"w": ptcore.ones(2)})
    >>> p["w"].requires_grad
    True
    """

    def __init__(self, parameters=None):
        super().__init__()
        self._keys = {}
        if parameters is not None:
            self.update(parameters)

    def _table(self):
        return self._keys

    def _attribute(self, key):
        if not isinstance(key, str):
            raise TypeError(
                f"Index given to ParameterDict cannot be used as a key as it is not a "
                f"string (type is '{type(key).__name__}')."
            )
        return key

    def __getitem__(self, key):
        attribute = self._attribute(key)
        if key not in self._keys and not self._was_assigned(attribute):
            raise NoEntryError(key)
        return getattr(self, attribute)

    def _was_assigned(self, name):
        """Whether something was registered, or assigned as an attribute: as in PyTorch it is found, but is no key."""
        return name in self._parameters or name in self._buffers or name in self._modules

    def __setitem__(self, key, value):
        attribute = self._attribute(key)
        if key not in self._keys and hasattr(self, attribute) and not self._was_assigned(attribute):
            raise KeyError(f"attribute '{key}' already exists")
        setattr(self, attribute, _as_parameter(value))
        self._keys[key] = None

    def __delitem__(self, key):
        del self._keys[key]
        delattr(self, self._attribute(key))

    def __reversed__(self):
        return reversed(list(self._keys))

    def keys(self):
        """View of the names."""
        return self._keys.keys()

    def values(self):
        """Iterable of the values."""
        return [self[k] for k in self._keys]

    def items(self):
        """Iterable of (name, value)."""
        return [(k, self[k]) for k in self._keys]

    def get(self, key, default=None):
        """Value of `key`, or `default`."""
        return self[key] if key in self else default

    def setdefault(self, key, default=None):
        """Value of `key`, which is set to `default` first if it is not there."""
        if key not in self:
            self[key] = default
        return self[key]

    def popitem(self):
        """Remove the last entry and return (name, value)."""
        if not self._keys:
            raise KeyError("popitem: the ParameterDict is empty")
        key = next(reversed(self._keys))
        return key, self.pop(key)

    def clear(self):
        """Remove all entries."""
        for key in list(self._keys):
            del self[key]

    def copy(self):
        """Return a ParameterDict of the same parameters."""
        return ParameterDict(self.items())

    def fromkeys(self, keys, default=None):
        """Return a ParameterDict of `keys`, all with the value `default`."""
        return ParameterDict((k, default) for k in keys)

    def update(self, parameters):
        """Add or replace entries from a mapping or an iterable of pairs."""
        for key, value in _pairs("ParameterDict", parameters):
            self[key] = value

    def __or__(self, other):
        result = self.copy()
        result.update(other)
        return result

    def __ror__(self, other):
        result = other.copy()
        result.update(self)
        return result

    def __ior__(self, other):
        self.update(other)
        return self

    def extra_repr(self):
        """One line an entry."""
        return "\n".join(_entry_repr(k, v, Tensor.type) for k, v in self.items())

    def __call__(self, input):
        raise RuntimeError("ParameterDict should not be called.")


class Container(Module):
    """A module with the given modules as children; older than :class:`Module`'s own registration.

    Parameters
    ----------
    **kwargs : Module
        By their names.
    """

    def __init__(self, **kwargs):
        import warnings

        warnings.warn("`nn.Container` is deprecated in PyTorch; a Module registers its children.", FutureWarning,
                      stacklevel=2)
        super().__init__()
        for name, module in kwargs.items():
            self.add_module(name, module)
