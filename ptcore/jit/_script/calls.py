"""Calls in script: the callables, their arguments and their results."""
import ast
import builtins
import contextlib
import enum
import functools
import inspect
import types as python_types

import ptcore
from ptcore._dtype import finfo, iinfo
from ptcore._ops import row
from ptcore._ops.table.ids import op_name
from ptcore._tensor import Tensor
from ptcore.fx.node import OpFunction
from ptcore.jit._script import operations, results, schemas, types
from ptcore.jit._script.builtin import Builtins, special
from ptcore.jit._script.decorators import modifier
from ptcore.jit._script.names import name_of
from ptcore.jit._script.source import NotSupportedError, ScriptError
from ptcore.jit._script.types import ANY, BOOL, INT, NONE, NUMBER, STR, TENSOR, List, Type, is_subtype
from ptcore.jit._script.values import Iterable, Method, Mod, Py, Val

__all__ = ["Calls"]

# Methods of Tensor with results or arguments that have no static type.
_UNTYPED = ("tolist", "numpy", "to_numpy", "tobytes", "untyped_storage", "register_hook", "apply_", "map_", "map2_",
            "register_post_accumulate_grad_hook")
CONTEXT = Type("context")
_CONTEXTS = (ptcore.no_grad, ptcore.enable_grad, ptcore.set_grad_enabled, ptcore.inference_mode)


class Calls(Builtins):
    """The part of the compiler that reads calls."""

    def on_Call(self, node, hint):
        function = self.super_call(node.func) or self.expression(node.func)
        if isinstance(function, Py):
            handler = special(function.obj)
            if handler is not None:
                return getattr(self, handler)(node, hint)
        args, kwargs = self.arguments(node)
        with self.at(node):
            return self.call(function, args, kwargs, hint)

    def arguments(self, node):
        """The arguments of a call, by position and by name. Objects known at script time may be among them."""
        args, kwargs = [], {}
        for a in node.args:
            if isinstance(a, ast.Starred):
                args += self.starred(a)
            else:
                args.append(self.expression(a))
        for k in node.keywords:
            if k.arg is None:
                raise self.error("** in a call is not supported. Supported instead: arguments by "
                                 "name", NotSupportedError)
            kwargs[k.arg] = self.expression(k.value)
        return args, kwargs

    def super_call(self, tree):
        """``super().method`` as a callable."""
        if not (isinstance(tree, ast.Attribute) and isinstance(tree.value, ast.Call)
                and isinstance(tree.value.func, ast.Name) and tree.value.func.id == "super"):
            return None
        owner = self.frame.lookup("self")
        if not isinstance(owner, Mod) or self.defined_in is None:
            raise self.error("super() is supported in methods of modules only", NotSupportedError)
        cls = type(self.module._jit_original)
        for base in cls.__mro__[cls.__mro__.index(self.defined_in) + 1:]:
            if tree.attr in vars(base):
                return Method(owner, tree.attr, (base, vars(base)[tree.attr]))
        raise self.error(f"super() has no method {tree.attr}")

    def call(self, function, args, kwargs, hint=None):
        """The value of a call."""
        if isinstance(function, Method):
            if function.name == "tolist" and hint is not None and isinstance(function.owner, Val):
                made = self.emit("tolist", (function.owner,), ANY, op="call_method")
                return self.emit(operations.narrow, (made, Val(hint, ANY)), hint)
            return self.call_method(function, args, kwargs)
        if isinstance(function, Mod):
            return self.call_module(function, args, kwargs)
        if isinstance(function, Py):
            return self.call_python(function.obj, args, kwargs)
        if isinstance(function, Val) and function.type.kind == "Class":
            return self.call_method_of_class(function, "__call__", args, kwargs)
        raise self.error("this is nothing that can be called in script")

    def call_python(self, f, args, kwargs):
        """A call of a function or class of Python."""
        from ptcore.jit._script.functions import ScriptFunction, script_function
        if isinstance(f, functools.partial):
            raise self.error("functools.partial is not supported; call the function itself", NotSupportedError)
        how = modifier(f)
        if how == "unused":
            return self.emit(operations.unused, (Val(getattr(f, "__qualname__", str(f)), STR),),
                             self.annotated_result(f))
        if how == "ignore":
            return self.call_ignored(f, args, kwargs)
        f = getattr(f, "_opoverload", f)        # for ops.namespace.name and library.custom_op
        wrapped = getattr(f, "__script_if_tracing_wrapper__", None)
        f = wrapped or f
        if isinstance(f, ScriptFunction):
            return self.call_scripted(self.scripted(f), args, kwargs)
        if f in schemas.function_schemas():
            return self.call_schema(schemas.function_schemas()[f], args, kwargs)
        if isinstance(f, type):
            return self.construct(f, args, kwargs)
        if isinstance(f, OpFunction) or name_of(f) is not None:
            return self.call_op(f, args, kwargs)
        own = [(getattr(x, "__module__", None) or "").startswith("ptcore.") for x in (f, self.source.function)]
        if hasattr(f, "__wrapped__"):
            script_function(f)                  # raises
        if isinstance(f, python_types.FunctionType) and (own[1] or not own[0] or ".examples" in f.__module__):
            with self.note_call():
                made = script_function(f)
            return self.call_scripted(made, args, kwargs)
        if isinstance(f, python_types.MethodType) and isinstance(f.__self__, type):
            raise self.error(f"class methods like {f.__qualname__} are not supported", NotSupportedError)
        known = "functions of ptcore, of math, builtins (" + ", ".join(sorted(self.SPECIAL_NAMES)) + \
            "), and functions of Python with source"
        raise self.error(f"{getattr(f, '__qualname__', f)!r} cannot be called in script. What can: "
                         f"{known}", NotSupportedError)

    @contextlib.contextmanager
    def note_call(self):
        """Adds the place of the call to errors in the compilation of the called function."""
        try:
            yield
        except RuntimeError as error:
            place = self.place
            if isinstance(error, ScriptError) and "\n  File " not in str(error):
                raise self.error(str(error), type(error)) from None
            error.add_note(f"which is called in\n  File \"{place.file}\", line {place.line}, in {place.function}\n"
                           f"    {place.text.strip()}")
            raise

    def has_effect(self, target):
        """Whether a call of a function may do more than give its result."""
        from ptcore.jit._script.functions import ScriptFunction
        return target in schemas.CHANGING or isinstance(target, ScriptFunction) or modifier(target) == "ignore"

    # -- scripted functions ------------------------------------------------------------------------

    def scripted(self, f):
        """A ScriptFunction itself, or the ScriptFunction of a traced function."""
        if not hasattr(f, "_jit_as_script"):
            return f
        try:
            return f._jit_as_script()
        except TypeError as error:
            raise self.error(str(error), NotSupportedError) from None

    def call_scripted(self, f, args, kwargs):
        values = self.bind_arguments(f.name, f.parameters, args, kwargs)
        return self.emit(f, values, f.returns)

    def bind_arguments(self, name, parameters, args, kwargs):
        """The values of a scripted function's parameters in order, defaults filled in."""
        if len(args) > len([p for p in parameters if not p.keyword_only]):
            raise self.error(f"{name} takes {len(parameters)} arguments, not {len(args)}: "
                             f"{signature(name, parameters)}")
        kwargs, values = dict(kwargs), []
        for k, p in enumerate(parameters):
            if k < len(args):
                if p.name in kwargs:
                    raise self.error(f"{name} gets the argument {p.name!r} twice")
                x = args[k]
            elif p.name in kwargs:
                x = kwargs.pop(p.name)
            elif p.has_default:
                x = self.default_value(p)
            else:
                raise self.error(f"{name} misses the argument {p.name!r}: {signature(name, parameters)}")
            x = self.as_value(x)
            values.append(self.convert(x, p.type, f"the argument {p.name!r} of {name}"))
        if kwargs:
            raise self.error(f"{name} has no argument {next(iter(kwargs))!r}: {signature(name, parameters)}")
        return values

    def default_value(self, p):
        if isinstance(p.default, list) and p.type.kind == "List":
            items = [self.frozen(x) for x in p.default]
            made = None if None in items else self.make_list(items, p.type.args[0])
        else:
            made = self.frozen(p.default)
        if made is None:
            raise self.error(f"the default of {p.name!r} is no constant of script")
        return made

    def call_ignored(self, f, args, kwargs):
        """A call that stays Python; its result has the annotated type."""
        args = [self.as_value(a) for a in args]
        kwargs = {k: self.as_value(a) for k, a in kwargs.items()}
        return self.emit(f, args, self.annotated_result(f), kwargs)

    def annotated_result(self, f):
        found = getattr(inspect.unwrap(f), "__annotations__", {}).get("return", Tensor)
        try:
            return types.from_annotation(found)
        except TypeError as error:
            raise self.error(f"the result of {f.__qualname__}: {error}") from None

    # -- functions with schemas --------------------------------------------------------------------

    def call_schema(self, overloads, args, kwargs, owner=None):
        """The first of several schemas that the arguments fit."""
        args = [self.as_value(a) for a in args]
        kwargs = {k: self.as_value(a) for k, a in kwargs.items()}
        for implicit in (False, True):
            for schema in overloads:
                values = self.fit(schema, args, kwargs, owner, implicit)
                if values is not None:
                    known = self.type_variables(owner)
                    values = values if owner is None else [owner, *values]
                    return self.emit(schema.function, values, schemas.substitute(schema.result, known))
        given = ", ".join([*[str(a.type) for a in args], *[f"{k}={a.type}" for k, a in kwargs.items()]])
        head = "" if owner is None else f"{owner.type}."
        raise self.error(f"{head}{overloads[0].name}({given}) is not supported; there is "
                         + "; ".join(map(str, overloads)))

    def type_variables(self, owner):
        if owner is None or owner.type.kind not in ("List", "Dict"):
            return {}
        return dict(zip("T" if owner.type.kind == "List" else "KV", owner.type.args))

    def fit(self, schema, args, kwargs, owner, implicit):
        if len(args) > len(schema.names) or not set(kwargs) <= set(schema.names[len(args):]):
            return None
        known, values = self.type_variables(owner), []
        last = len(args)
        for k, name in enumerate(schema.names):
            if name in kwargs:
                last = k + 1
        for k, (name, t) in enumerate(zip(schema.names, schema.types)):
            if k < len(args):
                x = args[k]
            elif name in kwargs:
                x = kwargs[name]
            elif name in schema.defaults:
                if k >= last:
                    break
                x = Val(schema.defaults[name], types.of_value(schema.defaults[name]))
            else:
                return None
            t = schemas.substitute(t, known)
            if not is_subtype(x.type, t) and not (implicit or x.type == NUMBER or x.type.is_tuple):
                return None
            x = self.converted(x, t, implicit)
            if x is None:
                return None
            values.append(x)
        return values

    # -- methods -----------------------------------------------------------------------------------

    def call_method(self, method, args, kwargs):
        owner, name = method.owner, method.name
        if isinstance(owner, Mod):
            return self.call_module_method(method, args, kwargs)
        t = owner.type
        if t == TENSOR:
            return self.call_tensor_method(owner, name, args, kwargs)
        if t.kind in ("List", "Dict", "str"):
            if t.kind == "str" and name == "format":
                args = [self.as_value(a) for a in args]
                if kwargs:
                    raise self.error("str.format takes arguments by position in script", NotSupportedError)
                return self.emit(operations.format_text, (owner, *args), STR)
            if t.kind == "str" and name == "join":
                args = [self.list_from(a) if isinstance(a, Iterable) else a for a in args]
            known = schemas.schemas_of(t.kind)
            if name not in known:
                raise self.error(f"{t.kind.lower()} has no method {name!r} in script; it has "
                                 f"{', '.join(sorted(known))}",
                                 NotSupportedError)
            return self.call_schema(known[name], args, kwargs, owner)
        if t.kind == "Class":
            return self.call_method_of_class(owner, name, args, kwargs)
        if t.kind == "Future" and name in ("wait", "value", "done"):
            return self.emit(name, (owner,), BOOL if name == "done" else t.args[0], op="call_method")
        if t.kind == "Generator" or t.kind == "context":
            values = [self.as_value(a) for a in args]
            return self.emit(name, (owner, *values), ANY if t.kind == "context" else t, op="call_method")
        if t.kind == "NamedTuple" and name == "_replace":
            raise self.error("NamedTuple._replace is not supported; make a new one", NotSupportedError)
        if t.is_number and name in ("bit_length", "is_integer", "conjugate") and not args:
            return self.emit(name, (owner,), {"bit_length": INT, "is_integer": BOOL}.get(name, t), op="call_method")
        raise self.error(f"a value of type {t} has no method {name!r} in script"
                         + ("; test it by `is not None` first" if t.is_optional else ""))

    def call_tensor_method(self, owner, name, args, kwargs):
        args, kwargs = self.op_arguments(args, kwargs)
        if name == "size":
            if not args and not kwargs:
                return self.emit(operations.shape, (owner,), List(INT))
            return self.emit("size", (owner, *args), INT, kwargs, op="call_method")
        if name == "stride":
            if not args and not kwargs:
                return self.emit(operations.stride, (owner,), List(INT))
            return self.emit("stride", (owner, *args), INT, kwargs, op="call_method")
        if name == "item":
            return self.emit("item", (owner,), NUMBER, op="call_method")
        if name in _UNTYPED:
            raise self.error(f"Tensor.{name} is not supported in script: it gives what has no type here. Supported "
                             "instead: item, functions of tensors, and `numbers: List[int] = x.tolist()`",
                             NotSupportedError)
        f = getattr(Tensor, name)
        self.check_op(f, name, [owner, *args], kwargs)
        return self.typed(self.result_type(f, name, [owner, *args], kwargs),
                          lambda t: self.emit(name, (owner, *args), t, kwargs, op="call_method"))

    # -- ops ---------------------------------------------------------------------------------------

    def op_arguments(self, args, kwargs):
        return [self.op_argument(a) for a in args], {k: self.op_argument(a) for k, a in kwargs.items()}

    def op_argument(self, a):
        if isinstance(a, Py) and isinstance(a.obj, type) and a.obj in (builtins.int, builtins.float, builtins.bool):
            return Val({int: ptcore.int64, float: ptcore.float64, bool: ptcore.bool}[a.obj], types.DTYPE)
        if isinstance(a, Val) and isinstance(a.arg, tuple) and hasattr(a.arg, "_fields"):
            return Val(tuple(a.arg), a.type)
        return self.as_value(a)

    def typed(self, t, emit):
        """A result of ``emit``; a tuple of any length from ptcore is a list in script."""
        if t.kind == "List":
            made = emit(TENSOR)
            return self.emit(operations.as_list, (made,), t)
        return emit(t)

    def call_op(self, f, args, kwargs):
        """A call of a function of ptcore."""
        name = getattr(f, "__name__", "")
        if name in ("tensor", "as_tensor", "scalar_tensor") and args and isinstance(args[0], list):
            raise self.error(f"{name} takes numbers and lists of numbers")
        args, kwargs = self.op_arguments(args, kwargs)
        self.check_op(f, name, args, kwargs)
        return self.typed(self.result_type(f, name, args, kwargs), lambda t: self.emit(f, args, t, kwargs))

    def result_type(self, f, name, args, kwargs):
        try:
            return results.of_call(f, name, args, kwargs)
        except TypeError as error:
            raise self.error(str(error)) from None

    def check_op(self, f, name, args, kwargs):
        """Checks arguments of an op against its signature: names and number, and types where the op has a row."""
        for a in [*args, *kwargs.values()]:
            if a.type.is_optional and self.must_be_there(f, a, args, kwargs):
                raise self.error(f"{name} gets a value of type {a.type}, which may be None; test it by `is not None` "
                                 "first")
            if a.type.kind in ("Class", "Dict", "Future", "context"):
                raise self.error(f"{name} takes no value of type {a.type}")
        try:
            bound = inspect.signature(f).bind(*args, **kwargs)
        except ValueError:
            return
        except TypeError as error:
            raise self.error(f"{name}: {error}; its arguments are {inspect.signature(f)}") from None
        if type(f) is not OpFunction:
            return
        own = {a.name: a for a in row(op_name(f.op)).args}
        varargs = row(op_name(f.op)).varargs
        for key, a in bound.arguments.items():
            arg = own.get(key)
            if arg is None or isinstance(a, (tuple, dict)) or key == varargs or not isinstance(a, Val):
                continue
            if not _fits(arg, a.type):
                raise self.error(f"{name}: the argument {key!r} cannot be of type {a.type}")

    def must_be_there(self, f, a, args, kwargs):
        """Whether an argument of an op cannot be None."""
        if type(f) is not OpFunction:
            return a.type.args[0] == TENSOR and bool(args) and a is args[0]
        try:
            bound = inspect.signature(f).bind(*args, **kwargs)
        except TypeError:
            return False
        name = next((key for key, x in bound.arguments.items() if x is a), None)
        own = {x.name: x for x in row(op_name(f.op)).args}.get(name)
        return own is not None and own.letter in "TILifbdn" and (own.required or own.default is not None)

    # -- classes -----------------------------------------------------------------------------------

    def construct(self, cls, args, kwargs):
        """An object of a class of Python."""
        if issubclass(cls, builtins.tuple) and hasattr(cls, "_fields"):
            return self.new_named_tuple(cls, args, kwargs)
        if issubclass(cls, enum.Enum):
            if len(args) != 1 or kwargs:
                raise self.error(f"{cls.__name__} takes one argument, the value of a member")
            value = self.as_value(args[0])
            return self.emit(cls, (value,), types.enum_type(cls))
        if cls in (finfo, iinfo):
            args, kwargs = self.op_arguments(args, kwargs)
            return self.emit(cls, args, Type("finfo" if cls is finfo else "iinfo"), kwargs)
        if cls is ptcore.device:
            return self.emit(cls, [self.as_value(a) for a in args], types.DEVICE,
                             {k: self.as_value(a) for k, a in kwargs.items()})
        if cls is ptcore.Size and not kwargs:
            return self.emit(operations.as_list, [self.as_value(a) for a in args], List(INT))
        if cls is ptcore.Generator:
            return self.emit(cls, [self.as_value(a) for a in args], types.GENERATOR,
                             {k: self.as_value(a) for k, a in kwargs.items()})
        if self.is_context(cls):
            return self.emit(cls, [self.as_value(a) for a in args], CONTEXT,
                             {k: self.as_value(a) for k, a in kwargs.items()})
        from ptcore.jit._script.classes import script_class
        if types.known_class(cls) is not None or not issubclass(cls, (ptcore.nn.Module, Exception)):
            with self.note_call():
                info = script_class(cls)
            return self.new_object(info, args, kwargs)
        if issubclass(cls, ptcore.nn.Module):
            raise self.error(f"modules are not made in script: {cls.__name__} belongs into __init__", NotSupportedError)
        raise self.error(f"{cls.__name__}(...) is not supported in script; exceptions are raised by `raise`",
                         NotSupportedError)

    def is_context(self, cls):
        from ptcore.autograd.profiler import record_function
        amp = getattr(ptcore, "autocast", None)
        return cls in _CONTEXTS or cls is record_function or (amp is not None and cls is amp)

    def new_named_tuple(self, cls, args, kwargs):
        t = types.named_tuple(cls, None)
        kwargs, items = dict(kwargs), []
        for k, (name, a) in enumerate(zip(cls._fields, t.args)):
            if k < len(args):
                x = args[k]
            elif name in kwargs:
                x = kwargs.pop(name)
            elif name in cls._field_defaults:
                x = self.frozen(cls._field_defaults[name])
            else:
                raise self.error(f"{cls.__name__} misses the field {name!r}")
            items.append(self.convert(self.as_value(x), a, f"the field {name!r}"))
        if kwargs or len(args) > len(cls._fields):
            raise self.error(f"{cls.__name__} has the fields {', '.join(cls._fields)}")
        return self.emit(cls, items, t)

    def entered_type(self, context):
        """The type of the value that ``with`` binds by ``as``."""
        t = context.type
        if t.kind == "Class":
            found = self.method_of_class(context, "__enter__")
            if found is None or self.method_of_class(context, "__exit__") is None:
                raise self.error(f"{t} has no __enter__ and __exit__")
            return found.returns
        if t != CONTEXT:
            raise self.error(f"with of a value of type {t} is not supported; no_grad, enable_grad, set_grad_enabled, "
                             "inference_mode, record_function and scripted classes are", NotSupportedError)
        return NONE


def _fits(arg, t):
    """Whether an argument of a row may be of a static type, judged by its letter."""
    if t.kind in ("Any", "number") or t.kind == "Union":
        return True
    letter = arg.letter
    if letter in "TOIJ":
        return t == TENSOR or t.is_number or t.is_tuple or t.kind == "List" or (
            t == NONE and (letter in "OJ" or not arg.required))
    if letter in "idn":
        return t in (INT, TENSOR) or t.is_tuple or t.kind == "List"
    if letter in "f":
        return t.is_number or t == TENSOR or t == NONE
    if letter in "DRzZ":
        return t in (INT, NONE, TENSOR) or (t.kind == "List" and t.args[0] in (INT, TENSOR, NUMBER, STR)) or t.is_tuple
    if letter == "L":
        return (t.kind == "List" and t.args[0] == TENSOR) or t.is_tuple or t == TENSOR
    return True


def signature(name, parameters):
    """A scripted function's signature for people."""
    parts = [f"{p.name}: {p.type}" + (f" = {p.default!r}" if p.has_default else "") for p in parameters]
    return f"{name}({', '.join(parts)})"
