"""The recorder's answers to writes of attributes and elements."""
import operator
import types

from ptcore._tensor import Tensor
from ptcore.jit.capture.effects import SetGrad
from ptcore.jit.capture.kinds import is_mapping
from ptcore.nn.modules.module import REGISTRIES


class Writes:
    """The part of the recorder that writes."""

    def set_attribute(self, value, x, name):
        if isinstance(x, Tensor) and name == "grad" and id(self.known_tensor(x)) in self.originals:
            source = self.stands[id(self.original(self.known_tensor(x)))][1]
            self.capture.add_effect(SetGrad(source, None if value is None else self.known_tensor(value)))
            return
        if isinstance(x, Tensor):
            if name == "requires_grad" and type(value) is bool:
                self.known_tensor(x).requires_grad = value
                return
            self.unsupported(f"it writes .{name} of a tensor")
        source = self.source_of(x)
        if source is not None or isinstance(x, (type, types.ModuleType, types.FunctionType)):
            own = getattr(x, "__dict__", {})
            now = next((t[name] for t in (own, *[own.get(n, {}) for n in REGISTRIES]) if name in t), None)
            if isinstance(value, Tensor) and now is not None and self.originals.get(id(value)) is now:
                return                  # ``self.x += 1`` of a tensor stores the same tensor
            self.unsupported(f"it writes the attribute {source or type(x).__name__}.{name} of an object from outside")
        setter = self.in_class(type(x), "__setattr__")
        if isinstance(setter, types.FunctionType):
            self.call(setter, x, name, value)
        else:
            self.set_plain(x, name, value)

    def set_plain(self, x, name, value):
        """``object.__setattr__`` for an object of the program."""
        self.changes()
        raw = self.in_class(type(x), name)
        if isinstance(raw, property):
            if raw.fset is None:
                raise AttributeError(f"property {name!r} of {type(x).__name__!r} object has no setter")
            self.call(raw.fset, x, value)
            return
        setter = self.in_class(type(raw), "__set__")
        if isinstance(setter, types.FunctionType):
            self.call(setter, self.constant(raw, f"{type(x).__name__}.{name}"), x, value)
        else:
            object.__setattr__(x, name, value)

    def delete_attribute(self, x, name):
        if self.source_of(x) is not None or isinstance(x, (Tensor, type, types.ModuleType, types.FunctionType)):
            self.unsupported(f"it deletes the attribute {name} of an object from outside")
        self.changes()
        deleter = self.in_class(type(x), "__delattr__")
        if isinstance(deleter, types.FunctionType):
            self.call(deleter, x, name)
            return
        raw = self.in_class(type(x), name)
        if isinstance(raw, property) and raw.fdel is not None:
            self.call(raw.fdel, x)
            return
        deleter = self.in_class(type(raw), "__delete__")
        if isinstance(deleter, types.FunctionType):
            self.call(deleter, self.constant(raw, f"{type(x).__name__}.{name}"), x)
        else:
            delattr(x, name)

    def changes(self):
        """Stands before each write to an object of the program."""
        if self.probing:
            self.unsupported("a method that compares or hashes a key changes something")

    def set_item(self, value, x, index):
        if isinstance(x, Tensor) and self.replaced(x, "__setitem__") is None:
            self.known_tensor(x)[self.native(self.index(index))] = self.native(value)
            return
        source = self.source_of(x)
        found = self.in_class(type(x), "__setitem__")
        if isinstance(found, types.FunctionType):
            self.call(found, x, index, value)
        elif source is not None:
            self.unsupported(f"it writes to {source}, a {type(x).__name__} from outside")
        else:
            self.changes()
            if isinstance(x, list) and isinstance(index, slice):
                value = self.elements(value)
            operator.setitem(x, self.key(index) if is_mapping(x) else self.index(index), value)

    def delete_item(self, x, index):
        found = self.in_class(type(x), "__delitem__")
        if isinstance(found, types.FunctionType):
            self.call(found, x, index)
        elif self.source_of(x) is not None:
            self.unsupported(f"it deletes from {self.source_of(x)}, a {type(x).__name__} from outside")
        else:
            self.changes()
            operator.delitem(x, self.key(index) if is_mapping(x) else self.index(index))
