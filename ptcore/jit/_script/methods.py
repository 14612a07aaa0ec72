"""Modules (of nn) and objects of scripted classes in scripted functions: their attributes and methods."""
import ast
import dataclasses
import inspect
import types as python_types

import ptcore
from ptcore.jit._script import operations, types
from ptcore.jit._script.decorators import modifier
from ptcore.jit._script.source import NotSupportedError
from ptcore.jit._script.types import ANY, NONE, STR, TENSOR
from ptcore.jit._script.values import Method, Mod, Py, Val

__all__ = ["Methods"]

_LISTS = (ptcore.nn.ModuleList, ptcore.nn.Sequential)
_CONTAINERS = (*_LISTS, ptcore.nn.ModuleDict)


class Methods:
    """The part of the compiler that knows modules and classes."""

    # -- modules -----------------------------------------------------------------------------------

    def original(self, owner):
        return getattr(owner.module, "_jit_original", owner.module)

    def is_container(self, owner):
        return isinstance(self.original(owner), _CONTAINERS)

    def children_of(self, owner):
        return [Mod(owner.below(name), child) for name, child in owner.module._modules.items() if child is not None]

    def module_items(self, owner):
        """The Iterable of a module."""
        original = self.original(owner)
        if isinstance(original, ptcore.nn.ModuleDict):
            return [Val(name, STR) for name in owner.module._modules]
        if isinstance(original, _LISTS):
            return self.children_of(owner)
        if isinstance(original, ptcore.nn.ParameterList):
            return [self.emit(owner.below(name), (), TENSOR, op="get_attr") for name in self.parameter_names(original)]
        raise self.error(f"a module {type(original).__name__} cannot be looped over; ModuleList, ModuleDict, "
                         "Sequential and ParameterList can")

    def parameter_names(self, original):
        return [str(k) for k in range(len(original))]

    def module_item(self, owner, tree):
        """``modules[k]``, with an index known at script time."""
        original = self.original(owner)
        names = list(owner.module._modules)
        if isinstance(original, ptcore.nn.ParameterList):
            index = self.value(tree)
            if isinstance(index.arg, int):
                if not -len(original) <= index.arg < len(original):
                    raise self.error(f"index {index.arg} is out of the range of {len(original)} parameters")
                return self.emit(owner.below(str(index.arg % len(original))), (), TENSOR, op="get_attr")
        elif isinstance(tree, ast.Slice) and isinstance(original, _LISTS):
            s = self.slice_of(tree).arg
            return self.children_of(owner)[s]
        elif not isinstance(tree, ast.Slice):
            index = self.value(tree)
            if isinstance(original, ptcore.nn.ModuleDict) and isinstance(index.arg, str):
                if index.arg not in names:
                    raise self.error(f"the ModuleDict has no {index.arg!r}")
                return Mod(owner.below(index.arg), owner.module._modules[index.arg])
            if isinstance(original, _LISTS) and isinstance(index.arg, int):
                if not -len(names) <= index.arg < len(names):
                    raise self.error(f"index {index.arg} is out of the range of {len(names)} modules")
                name = names[index.arg]
                return Mod(owner.below(name), owner.module._modules[name])
        raise self.error("modules are taken from ModuleList, Sequential and ModuleDict by what is known at script "
                         "time, numbers or text; loop over them instead", NotSupportedError)

    def module_has(self, owner, name):
        from ptcore.jit._script.modules import attribute_kind
        return attribute_kind(owner.module, name) is not None

    def module_attribute(self, owner, name):
        """An attribute of a module."""
        from ptcore.jit._script.modules import attribute_kind, constant_names
        module = owner.module
        original = self.original(owner)
        if isinstance(original, _CONTAINERS) and name in ("keys", "values", "items", "children", "named_children",
                                                          "modules") and name not in module._modules:
            return Method(owner, name)
        if name == "_modules" and isinstance(original, _CONTAINERS):
            return owner
        kind = attribute_kind(module, name)
        if kind is None:
            raise self.error(f"module {type(original).__name__} has no attribute {name!r}")
        if kind == "module":
            child = module._modules[name]
            return Val(None, NONE) if child is None else Mod(owner.below(name), child)
        if kind == "tensor":
            absent = module._parameters.get(name, module._buffers.get(name)) is None
            return Val(None, NONE) if absent else self.emit(owner.below(name), (), TENSOR, op="get_attr")
        if kind == "method":
            return Method(owner, name)
        if kind == "property":
            return self.module_property(owner, name)
        value = vars(module).get(name, getattr(original, name, None))
        if name in constant_names(original):
            made = self.frozen(value)
            if made is not None:
                return made
        if isinstance(value, (python_types.FunctionType, python_types.BuiltinFunctionType, type)) or (
                callable(value) and types.known_class(type(value)) is None):
            return Py(value)
        t = self.attribute_type(module, name, value)
        return Val(None, NONE) if t == NONE else self.emit(owner.below(name), (), t, op="get_attr")

    def module_property(self, owner, name):
        getter = inspect.getattr_static(type(self.original(owner)), name).fget
        how = modifier(getter)
        if how == "unused":
            return self.emit(operations.unused, (Val(name, STR),), self.annotated_result(getter))
        if how == "ignore":
            t = self.annotated_result(getter)
        else:
            with self.note_call():
                t = owner.module._jit_compiled(name).returns
        return self.emit(owner.below(name), (), t, op="get_attr")

    def attribute_type(self, module, name, value):
        from ptcore.jit._script.modules import attribute_type
        try:
            return attribute_type(module, name, value)
        except TypeError as error:
            raise self.error(f"the attribute {name!r}: {error}") from None

    def type_of_target(self, target):
        """The type of an assigned attribute, where no node is needed to find it."""
        if not (isinstance(target.value, ast.Name)):
            return None
        owner = self.frame.lookup(target.value.id)
        if isinstance(owner, Mod):
            m, name = owner.module, target.attr
            for table in (vars(m), m._parameters, m._buffers):
                if name in table:
                    return self.attribute_type(m, name, table[name])
        if isinstance(owner, Val) and owner.type.kind == "Class":
            return self.class_info(owner).attributes.get(target.attr)
        return None

    def set_attribute(self, owner, name, value):
        if isinstance(owner, Mod):
            self.set_module_attribute(owner, name, value)
            return
        owner = self.as_value(owner)
        if owner.type.kind == "Class":
            self.set_class_attribute(owner, name, self.as_value(value))
            return
        value = self.as_value(value)
        if owner.type == TENSOR and name in ("grad", "data", "requires_grad"):
            self.emit(operations.set_attribute, (owner, Val(name, STR), value), NONE)
            return
        raise self.error(f"attributes of a value of type {owner.type} cannot be set")

    def set_module_attribute(self, owner, name, value):
        from ptcore.jit._script.modules import attribute_kind
        module = owner.module
        kind = attribute_kind(module, name)
        if kind == "property":
            cls = type(self.original(owner))
            setter = inspect.getattr_static(cls, name).fset
            if setter is None:
                raise self.error(f"the property {name!r} of the module has no setter")
            base = next(base for base in cls.__mro__ if name in vars(base))
            self.call_module_method(Method(owner, f"{name}__setter", (base, setter)), [value], {})
            return
        if kind not in ("tensor", "attribute"):
            raise self.error(f"the module has no attribute {name!r} that could be set; set it in __init__ first")
        value = self.as_value(value)
        if kind == "tensor":
            if name in module._parameters:
                raise self.error(f"the parameter {name!r} cannot be set; change it in place, under no_grad")
            t = TENSOR
        else:
            t = self.attribute_type(module, name, vars(module).get(name))
        value = self.convert(value, t, f"the attribute {name!r}")
        here = self.emit(owner.path, (), ANY, op="get_attr", name=owner.path.replace(".", "_") or "self")
        self.emit(operations.set_attribute, (here, Val(name, STR), value), NONE)

    def call_module(self, owner, args, kwargs):
        """A call of a module."""
        module = owner.module
        with self.note_call():
            made = module._jit_compiled("forward")
        if made is None:
            raise self.error(f"module {type(self.original(owner)).__name__} has no forward")
        values = self.bind_arguments(f"{type(self.original(owner)).__name__}.forward", made.parameters, args, kwargs)
        if not owner.path:
            here = self.emit("", (), ANY, op="get_attr", name="self")
            return self.emit("__call__", (here, *values), made.returns, op="call_method")
        return self.emit(owner.path, values, made.returns, op="call_module")

    def call_module_method(self, method, args, kwargs):
        owner, name = method.owner, method.name
        original = self.original(owner)
        if isinstance(original, _CONTAINERS) and method.function is None:
            made = self.container_method(owner, name, args)
            if made is not None:
                return made
        if name == "extra_repr" or name in ("train", "eval", "to", "parameters", "named_parameters"):
            raise self.error(f"{name} of a module is not supported in script; call it outside", NotSupportedError)
        module = owner.module
        if method.function is not None:
            base, function = method.function
            with self.note_call():
                made = module._jit_compiled_super(base, name, function)
            name = made.__name__
        else:
            function = getattr(type(original), name, None)
            function = function.fget if isinstance(function, property) else function
            how = modifier(getattr(function, "__func__", function))
            here = self.emit(owner.path, (), ANY, op="get_attr", name=owner.path.replace(".", "_") or "self")
            if how == "unused":
                return self.emit(operations.unused, (Val(name, STR),), self.annotated_result(function))
            if how == "ignore":
                args = [self.as_value(a) for a in args]
                return self.emit(name, (here, *args), self.annotated_result(function),
                                 {k: self.as_value(a) for k, a in kwargs.items()}, op="call_method")
            if isinstance(inspect.getattr_static(type(original), name, None), staticmethod):
                return self.call_python(function, args, kwargs)
            with self.note_call():
                made = module._jit_compiled(name)
        values = self.bind_arguments(name, made.parameters, args, kwargs)
        here = self.emit(owner.path, (), ANY, op="get_attr", name=owner.path.replace(".", "_") or "self")
        return self.emit(name, (here, *values), made.returns, op="call_method")

    def container_method(self, owner, name, args):
        """Methods of ModuleDict and similar containers that are evaluated at script time."""
        if args:
            return None
        names = [Val(n, STR) for n in owner.module._modules]
        if name == "keys":
            return names
        children = self.children_of(owner)
        if name in ("values", "children"):
            return children
        if name in ("items", "named_children"):
            kept = [Val(n, STR) for n, child in owner.module._modules.items() if child is not None]
            return [list(pair) for pair in zip(kept, children, strict=True)]
        return None

    # -- scripted classes --------------------------------------------------------------------------

    def class_info(self, owner):
        return types.known_class(owner.type.cls)

    def method_of_class(self, owner, name):
        """A method of an object's class, or None."""
        info = self.class_info(owner)
        return info.method(name) if info is not None and name in info.functions else None

    def class_attribute(self, owner, name):
        info = self.class_info(owner)
        if name in info.attributes:
            return self.emit(getattr, (owner, Val(name, STR)), info.attributes[name])
        if name in info.properties:
            return self.emit(info.method(name), (owner,), info.method(name).returns)
        if name in info.functions or name in info.statics:
            return Method(owner, name)
        if name in info.constants:
            return self.frozen(info.constants[name])
        known = ", ".join([*info.attributes, *info.functions]) or "none"
        raise self.error(f"class {owner.type} has no attribute {name!r}; it has {known}")

    def set_class_attribute(self, owner, name, value):
        info = self.class_info(owner)
        if name in info.setters:
            with self.note_call():
                made = info.setter(name)
            self.call_scripted(made, [owner, value], {})
            return
        if name in info.properties:
            raise self.error(f"the property {name!r} of class {owner.type} has no setter")
        known = info.attributes.get(name)
        if known is None:
            if not info.open or self.source.node.name != "__init__":
                raise self.error(f"class {owner.type} has no attribute {name!r}; set it in __init__ first")
            info.attributes[name] = known = value.type
        value = self.convert(value, known, f"the attribute {name!r}")
        self.emit(operations.set_attribute, (owner, Val(name, STR), value), NONE)

    def call_method_of_class(self, owner, name, args, kwargs):
        info = self.class_info(owner)
        if name in info.statics:
            return self.call_python(info.statics[name], args, kwargs)
        if name not in info.functions:
            raise self.error(f"class {owner.type} has no method {name!r}")
        with self.note_call():
            made = info.method(name)
        return self.call_scripted(made, [owner, *args], kwargs)

    def new_object(self, info, args, kwargs):
        if info.fields is not None and "__init__" not in info.functions:
            return self.new_dataclass(info, args, kwargs)
        made = self.emit(operations.new_object, (Val(info.cls, ANY),), info.type, name=info.cls.__name__.lower())
        if "__init__" in info.functions:
            init = info.method("__init__")
            self.call_scripted(init, [made, *args], kwargs)
        elif args or kwargs:
            raise self.error(f"{info.cls.__name__} takes no arguments")
        return made

    def new_dataclass(self, info, args, kwargs):
        """A call of the constructor that ``dataclass`` generated; Python runs it."""
        fields, kwargs, values = [f for f in info.fields if f.init], dict(kwargs), {}
        fields.sort(key=lambda f: f.kw_only)        # those that take no position come last
        positions = len([f for f in fields if not f.kw_only])
        if len(args) > positions:
            raise self.error(f"{info.cls.__name__} takes {positions} fields by position, not {len(args)}")
        for k, f in enumerate(fields):
            if k < len(args):
                x = args[k]
            elif f.name in kwargs:
                x = kwargs.pop(f.name)
            elif f.default is not dataclasses.MISSING or f.default_factory is not dataclasses.MISSING:
                continue
            else:
                raise self.error(f"{info.cls.__name__} misses the field {f.name!r}")
            values[f.name] = self.convert(self.as_value(x), info.attributes[f.name], f"the field {f.name!r}")
        if kwargs:
            raise self.error(f"{info.cls.__name__} has no field {next(iter(kwargs))!r}")
        return self.emit(info.cls, (), info.type, values)
