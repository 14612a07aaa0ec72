"""Builtins of Python, and functions of ``jit``, in scripted functions."""
import ast
import builtins
import operator

import ptcore
from ptcore._tensor import Tensor
from ptcore.jit._names import BUILTINS
from ptcore.jit._script import operations, operators, types
from ptcore.jit._script.annotations import annotate, is_scripting, jit_isinstance, unwrap_optional
from ptcore.jit._script.asynchronous import fork, wait
from ptcore.jit._script.source import NotSupportedError
from ptcore.jit._script.types import (
    ANY,
    BOOL,
    COMPLEX,
    FLOAT,
    INT,
    NONE,
    NUMBER,
    STR,
    TENSOR,
    Dict,
    Future,
    List,
    Tuple,
    is_subtype,
)
from ptcore.jit._script.values import Iterable, Method, Mod, Py, Val

__all__ = ["Builtins", "special"]

def special(f):
    """The name of the method that reads calls of a builtin, or None."""
    try:
        return _SPECIAL.get(f)
    except TypeError:
        return None


class Builtins:
    """The part of the compiler that reads calls of builtins."""

    def only_args(self, node, least, most=None):
        """The arguments of a builtin: ``least`` to ``most`` of them, none by name."""
        if node.keywords:
            raise self.error(f"{ast.unparse(node.func)} takes no argument {node.keywords[0].arg!r} in script",
                             NotSupportedError)
        args, _ = self.arguments(node)
        most = least if most is None else most
        if not least <= len(args) <= most:
            raise self.error(f"{ast.unparse(node.func)} takes {least}{f' to {most}' if most != least else ''} "
                             f"arguments, not {len(args)}")
        return args

    # -- iteration --------------------------------------------------------------------------------

    def call_range(self, node, hint):
        args = [self.integer(self.as_value(a)) for a in self.only_args(node, 1, 3)]
        start, stop, step = Val(0, INT), None, Val(1, INT)
        if len(args) == 1:
            (stop,) = args
        else:
            start, stop, *rest = args
            step = rest[0] if rest else step
        if len(args) == 1 or (start.arg == 0 and isinstance(start.arg, int) and step.arg == 1
                              and isinstance(step.arg, int)):
            if isinstance(stop.arg, int):
                length = lambda c: Val(max(0, stop.arg), INT)       # noqa: E731
            else:
                length = lambda c: c.emit(max, (stop, Val(0, INT)), INT)        # noqa: E731
            return Iterable(length, lambda c, k: k)
        return Iterable(lambda c: c.emit(operations.range_length, (start, stop, step), INT),
                        lambda c, k: c.emit(operations.range_item, (start, step, k), INT))

    def call_enumerate(self, node, hint):
        start = Val(0, INT)
        for k in node.keywords:
            if k.arg != "start":
                raise self.error(f"enumerate has no argument {k.arg!r}")
            start = self.integer(self.value(k.value))
        plain = ast.copy_location(ast.Call(node.func, node.args, []), node)
        first, *rest = self.only_args(plain, 1, 2)
        start = self.integer(self.as_value(rest[0])) if rest else start
        over = self.iterable(first)
        if over.items is not None:
            if isinstance(start.arg, int):
                return Iterable(items=[[Val(start.arg + k, INT), x] for k, x in enumerate(over.items)])
            raise self.error("enumerate of modules or a tuple has a start that is known at script time")

        def item(c, k):
            number = k if start.arg == 0 and isinstance(start.arg, int) else c.emit(operator.add, (start, k), INT)
            return [number, over.item(c, k)]
        return Iterable(over.length, item, over.fixed)

    def call_zip(self, node, hint):
        parts = [self.iterable(a) for a in self.only_args(node, 1, 64)]
        if all([p.items is not None for p in parts]):
            return Iterable(items=[list(items) for items in zip(*[p.items for p in parts])])
        parts = [self.iterable(self.list_from(p)) if p.items is not None and _are_alike(p.items) else p for p in parts]
        known = [len(p.items) for p in parts if p.items is not None]
        if known:
            n, rows = min(known), []
            for p in parts:
                if p.items is None:         # the loop is written out for each of the others
                    self.emit(operations.long_enough, (p.length(self), Val(n, INT)), NONE)
            for k in range(n):
                rows.append([p.items[k] if p.items is not None else p.item(self, Val(k, INT)) for p in parts])
            return Iterable(items=rows)
        return Iterable(lambda c: c.emit(operations.min_length, [p.length(c) for p in parts], INT) if len(parts) > 1
                        else parts[0].length(c),
                        lambda c, k: [p.item(c, k) for p in parts], all([p.fixed for p in parts]))

    def call_reversed(self, node, hint):
        (x,) = self.only_args(node, 1)
        over = self.iterable(x)
        if over.items is not None:
            return Iterable(items=over.items[::-1])
        length = over.length(self)
        last = self.emit(operator.sub, (length, Val(1, INT)), INT)
        return Iterable(lambda c: length, lambda c, k: over.item(c, c.emit(operator.sub, (last, k), INT)))

    def call_list(self, node, hint):
        args = self.only_args(node, 0, 1)
        inner = hint.args[0] if hint is not None and hint.kind == "List" else None
        if not args:
            return self.make_list([], inner)
        x = args[0]
        if isinstance(x, Val) and x.type.kind in ("List", "Dict", "str", "Tensor"):
            return self.emit(operations.copy_list if x.type.kind == "List" else operations.rows_of if x.type == TENSOR
                             else operations.as_list, (x,), List(x.type.args[0] if x.type.args else x.type))
        return self.list_from(self.iterable(x), inner)

    def call_tuple(self, node, hint):
        (x,) = self.only_args(node, 1)
        if isinstance(x, Val) and x.type.is_tuple:
            return x
        over = self.iterable(x)
        if over.items is None:
            raise self.error("tuple of what has any number of items is not supported: a tuple has a fixed number; use "
                             "a list", NotSupportedError)
        return over.items if any([not isinstance(i, Val) for i in over.items]) else self.as_value(over.items)

    def call_dict(self, node, hint):
        args, kwargs = self.arguments(node)
        if kwargs:
            raise self.error("dict(name=value) is not supported. Supported instead: {'name': value}", NotSupportedError)
        if len(args) > 1:
            raise self.error(f"dict takes 0 to 1 arguments, not {len(args)}")
        if not args:
            return self.on_Dict(ast.copy_location(ast.Dict([], []), node), hint)
        x = self.as_value(args[0])
        if x.type.kind == "Dict":
            return self.emit(operations.copy_list, (x,), x.type)
        if x.type.kind == "List" and x.type.args[0].is_tuple and len(x.type.args[0].args) == 2:
            return self.emit(dict, (x,), Dict(*x.type.args[0].args))
        raise self.error(f"dict of a value of type {x.type} is not supported")

    # -- containers and numbers --------------------------------------------------------------------

    def call_len(self, node, hint):
        (x,) = self.only_args(node, 1)
        if isinstance(x, Mod):
            original = self.original(x)
            if not hasattr(type(original), "__len__"):
                raise self.error(f"a module {type(original).__name__} has no length")
            return Val(len(original), INT)
        if isinstance(x, list):
            return Val(len(x), INT)
        if isinstance(x, Iterable):
            return Val(len(x.items), INT) if x.items is not None else x.length(self)
        x = self.as_value(x)
        if x.type.is_tuple:
            return Val(len(x.type.args), INT)
        if x.type.kind == "Class" and self.method_of_class(x, "__len__") is not None:
            return self.call_method_of_class(x, "__len__", [], {})
        if x.type.kind not in ("List", "Dict", "str", "Tensor"):
            raise self.error(f"len of a value of type {x.type} is not supported")
        return self.emit(len, (x,), INT)

    def extreme(self, node, function):
        args = self.only_args(node, 1, 64)
        args = [self.as_value(a) for a in args]
        name = function.__name__
        if len(args) == 1:
            t = args[0].type
            if t.is_tuple and t.args and all([a in (INT, FLOAT) for a in t.args]):
                made = FLOAT if FLOAT in t.args else INT
                return self.emit(function, args, made)
            if t.kind != "List" or t.args[0] not in (INT, FLOAT, BOOL, STR):
                raise self.error(f"{name} of a value of type {t} is not supported")
            return self.emit(function, args, t.args[0])
        if TENSOR in [a.type for a in args]:
            if len(args) != 2 or args[0].type != args[1].type:
                raise self.error(f"{name} of tensors takes two tensors")
            return self.emit(getattr(ptcore, name + "imum"), args, TENSOR)
        kinds = {a.type for a in args}
        if kinds == {STR}:
            return self.emit(function, args, STR)
        if not kinds <= {INT, FLOAT, BOOL}:
            raise self.error(f"{name} of {', '.join(map(str, kinds))} is not supported")
        if len(kinds) == 1:
            return self.emit(function, args, args[0].type)
        args = [self.convert(a, FLOAT, "the argument", True) if FLOAT in kinds else a for a in args]
        return self.emit(function, args, FLOAT if FLOAT in kinds else INT)

    def call_min(self, node, hint):
        return self.extreme(node, min)

    def call_max(self, node, hint):
        return self.extreme(node, max)

    def call_sum(self, node, hint):
        args = [self.as_value(a) for a in self.only_args(node, 1, 2)]
        t = args[0].type
        if t == TENSOR and len(args) == 1:
            return self.emit(sum, args, TENSOR)
        if t.is_tuple and t.args and all([a.is_number or a == TENSOR for a in t.args]):
            args[0] = self.emit(operations.as_list, (args[0],), List(types.unify_all(t.args) or NUMBER))
            t = args[0].type
        if t.kind != "List" or not (t.args[0].is_number or t.args[0] == TENSOR):
            raise self.error(f"sum of a value of type {t} is not supported")
        made = INT if t.args[0] == BOOL else t.args[0]
        if len(args) == 2:
            # Python's order of numbers is that of their types here: an int and a float make a float.
            order, both = (INT, FLOAT, COMPLEX, TENSOR), {made, INT if args[1].type == BOOL else args[1].type}
            if not both <= {*order, NUMBER}:
                raise self.error(f"sum does not begin with a value of type {args[1].type}")
            made = NUMBER if NUMBER in both and TENSOR not in both else max(both - {NUMBER}, key=order.index)
        return self.emit(sum, args, made)

    def truths(self, node, function):
        (x,) = self.only_args(node, 1)
        x = self.as_value(x)
        t = x.type
        if t == TENSOR:
            return self.emit(getattr(Tensor, function.__name__), (x,), TENSOR)
        if not (t.kind == "List" and (t.args[0].is_number or t.args[0] in (STR, TENSOR))) and not (
                t.is_tuple and all([a.is_number for a in t.args])):
            raise self.error(f"{function.__name__} of a value of type {t} is not supported")
        return self.emit(function, (x,), BOOL)

    def call_any(self, node, hint):
        return self.truths(node, any)

    def call_all(self, node, hint):
        return self.truths(node, all)

    def call_sorted(self, node, hint):
        reverse = Val(False, BOOL)
        for k in node.keywords:
            if k.arg != "reverse":
                raise self.error(f"sorted has no argument {k.arg!r} in script; it has reverse", NotSupportedError)
            reverse = self.value(k.value)
        (x,) = self.only_args(ast.copy_location(ast.Call(node.func, node.args, []), node), 1)
        x = self.as_value(x)
        if x.type.kind == "Dict":
            x = self.emit(operations.keys, (x,), List(x.type.args[0]))
        t = x.type
        ordered = t.kind == "List" and (t.args[0] in (INT, FLOAT, BOOL, STR) or (t.args[0].is_tuple and all(
            [a in (INT, FLOAT, BOOL, STR) for a in t.args[0].args])))
        if t.kind == "List" and t.args[0].kind == "Class":
            ordered = self.method_of_class(Val(None, t.args[0]), "__lt__") is not None
        if not ordered:
            raise self.error(f"sorted of a value of type {t} is not supported: its items have no order")
        return self.emit(operations.sorted_list, (x, reverse), t)

    def call_abs(self, node, hint):
        x = self.as_value(self.only_args(node, 1)[0])
        if x.type == TENSOR:
            return self.emit(Tensor.abs, (x,), TENSOR)
        if not x.type.is_number:
            raise self.error(f"abs of a value of type {x.type} is not supported")
        return self.emit(abs, (x,), {COMPLEX: FLOAT, BOOL: INT}.get(x.type, x.type))

    def call_round(self, node, hint):
        args = [self.as_value(a) for a in self.only_args(node, 1, 2)]
        t = args[0].type
        if len(args) == 2 and args[1].type == NONE:
            args = args[:1]
        if t == TENSOR:
            if len(args) == 2:
                raise self.error("round of a tensor takes no number of digits; ptcore.round(x, decimals=n) has it")
            return self.emit(Tensor.round, args, TENSOR)
        if t not in (INT, FLOAT, BOOL):
            raise self.error(f"round of a value of type {t} is not supported")
        if len(args) == 2:
            return self.emit(round, args, INT if t != FLOAT else FLOAT)
        return self.emit(operations.round_float, args, FLOAT) if t == FLOAT else self.emit(int, args, INT)

    def call_divmod(self, node, hint):
        args = [self.as_value(a) for a in self.only_args(node, 2)]
        kinds = {a.type for a in args}
        if not kinds <= {INT, FLOAT}:
            raise self.error("divmod takes ints and floats")
        return self.emit(divmod, args, Tuple((FLOAT if FLOAT in kinds else INT,) * 2))

    def call_pow(self, node, hint):
        a, b = [self.as_value(a) for a in self.only_args(node, 2)]
        return operators.binary(self, ast.Pow, a, b)

    # -- conversions -------------------------------------------------------------------------------

    def number_of(self, node, function, t):
        args = self.only_args(node, 0, 1)
        if not args:
            return Val(function(), t)
        x = self.as_value(args[0])
        good = (x.type.is_number and x.type != COMPLEX) or x.type in (TENSOR, STR)
        if t == BOOL:
            return self.from_test(self.truth(x))
        if x.type == t:
            return x
        if not good:
            raise self.error(f"{function.__name__} of a value of type {x.type} is not supported"
                             + ("; test it by `is not None` first" if x.type.is_optional else ""))
        return self.emit(function, (x,), t)

    def call_int(self, node, hint):
        return self.number_of(node, int, INT)

    def call_float(self, node, hint):
        return self.number_of(node, float, FLOAT)

    def call_bool(self, node, hint):
        return self.number_of(node, bool, BOOL)

    def call_complex(self, node, hint):
        args = [self.as_value(a) for a in self.only_args(node, 1, 2)]
        if not all([a.type.is_number or a.type == TENSOR for a in args]):
            raise self.error("complex takes numbers")
        return self.emit(complex, args, COMPLEX)

    def call_str(self, node, hint):
        args = self.only_args(node, 0, 1)
        if not args:
            return Val("", STR)
        x = self.as_value(args[0])
        return x if x.type == STR else self.emit(str, (x,), STR)

    def call_repr(self, node, hint):
        return self.emit(repr, (self.as_value(self.only_args(node, 1)[0]),), STR)

    def of_int(self, node, function, take, give):
        x = self.as_value(self.only_args(node, 1)[0])
        return self.emit(function, (self.convert(x, take, f"the argument of {function.__name__}"),), give)

    def call_ord(self, node, hint):
        return self.of_int(node, ord, STR, INT)

    def call_chr(self, node, hint):
        return self.of_int(node, chr, INT, STR)

    def call_hex(self, node, hint):
        return self.of_int(node, hex, INT, STR)

    def call_oct(self, node, hint):
        return self.of_int(node, oct, INT, STR)

    def call_bin(self, node, hint):
        return self.of_int(node, bin, INT, STR)

    def call_print(self, node, hint):
        args, kwargs = self.arguments(node)
        if not set(kwargs) <= {"sep", "end"}:
            raise self.error("print takes sep and end by name in script", NotSupportedError)
        return self.emit(print, [self.as_value(a) for a in args], NONE,
                         {k: self.as_value(a) for k, a in kwargs.items()})

    # -- types -------------------------------------------------------------------------------------

    def call_isinstance(self, node, hint):
        return self.from_test(self.type_test(node))

    def type_test(self, node):
        """A call of ``isinstance`` or ``hasattr`` as a condition, or None if it is another call."""
        if not isinstance(node.func, (ast.Name, ast.Attribute)):
            return None
        try:
            f = self.source.evaluate(node.func)
        except (NameError, AttributeError, TypeError):
            return None
        if isinstance(node.func, ast.Name) and self.frame.lookup(node.func.id) is not None:
            return None
        from ptcore.jit._script.expressions import Test
        if f is hasattr:
            return Test(None, self.has_attribute(node))
        if f is is_scripting:
            return Test(None, True)
        if f is not isinstance and f is not jit_isinstance:
            return None
        if len(node.args) != 2 or node.keywords:
            raise self.error("isinstance takes a value and a type")
        with self.at(node):
            x = self.expression(node.args[0])
            wanted = self.wanted_types(node.args[1])
            if isinstance(x, Mod):
                return Test(None, isinstance(x.module._jit_original, tuple([w for w in wanted if isinstance(w, type)])))
            x = self.as_value(x)
            return self.instance_test(node.args[0], x, wanted, Test)

    def wanted_types(self, tree):
        """The second argument of ``isinstance``: types, classes of modules, and ``list``, ``tuple`` or ``dict``."""
        trees = tree.elts if isinstance(tree, ast.Tuple) else [tree]
        found = []
        for t in trees:
            with self.at(t):
                try:
                    obj = self.source.evaluate(t)
                except (NameError, AttributeError, TypeError) as error:
                    raise self.error(str(error)) from None
                if isinstance(obj, tuple):
                    found += [o if o in (list, tuple, dict) else self.source_type(o) for o in obj]
                elif obj in (list, tuple, dict) or (isinstance(obj, type) and issubclass(obj, ptcore.nn.Module)):
                    found.append(obj)
                else:
                    found.append(self.source_type(obj))
        return found

    def source_type(self, obj):
        try:
            return types.from_annotation(obj)
        except TypeError as error:
            raise self.error(str(error)) from None

    def instance_test(self, tree, x, wanted, make):
        t = x.type

        def is_one(a):
            kinds = {list: "List", dict: "Dict"}
            return any([a.is_tuple if w is tuple else a.kind == kinds[w] if w in kinds else
                        isinstance(w, types.Type) and (is_subtype(a, w) or (a == BOOL and w == INT)) for w in wanted])
        name = tree.id if isinstance(tree, ast.Name) else None
        if t.kind not in ("Union", "Any", "number"):
            return make(None, is_one(t))
        if t.kind == "Union":
            yes, no = [a for a in t.args if is_one(a)], [a for a in t.args if not is_one(a)]
            if not yes or not no:
                return make(None, bool(yes))
            positive, negative = types.union(yes), types.union(no)
        else:
            listed = [w for w in wanted if isinstance(w, types.Type)]
            if len(listed) != len(wanted):
                raise self.error("isinstance of Any takes types with what they hold, as in List[int]")
            positive, negative = types.union(listed), t
        tested = types.union([positive, BOOL]) if is_subtype(INT, positive) else positive      # a bool is an int
        value = self.emit(operations.is_type, (x, Val(tested, ANY)), BOOL)
        return make(value, None, {name: positive} if name else {}, {name: negative} if name else {})

    def call_hasattr(self, node, hint):
        return Val(self.has_attribute(node), BOOL)

    def has_attribute(self, node):
        if len(node.args) != 2 or not isinstance(node.args[1], ast.Constant):
            raise self.error("hasattr takes a value and a name that is known at script time")
        x, name = self.expression(node.args[0]), node.args[1].value
        if isinstance(x, Mod):
            return self.module_has(x, name)
        if isinstance(x, Val) and x.type.kind == "Class":
            return name in self.class_info(x).attributes or self.method_of_class(x, name) is not None
        if isinstance(x, Val) and x.type == TENSOR:
            return hasattr(Tensor, name)
        if isinstance(x, Val) and x.type.kind == "NamedTuple":
            return name in types.fields(x.type)
        raise self.error("hasattr takes a module, an object of a scripted class, a NamedTuple or a tensor")

    def call_getattr(self, node, hint):
        if node.keywords or len(node.args) not in (2, 3) or not isinstance(node.args[1], ast.Constant):
            raise self.error("getattr takes a value and a name that is known at script time")
        x, name = self.expression(node.args[0]), node.args[1].value
        if len(node.args) == 3 and isinstance(x, Mod) and not self.module_has(x, name):
            return self.expression(node.args[2], hint)
        return self.attribute(x, name)

    def call_type(self, node, hint):
        """``type(x)``, for messages: the class of a module, or of a value whose type has a class."""
        (x,) = self.only_args(node, 1)
        if isinstance(x, Mod):
            return Py(type(getattr(x.module, "_jit_original", x.module)))
        x = self.as_value(x)
        found = x.type.cls or types.runtime_class(x.type)
        if found is None:
            raise self.error(f"type of a value of type {x.type} is not known at script time")
        return Py(found)

    # -- functions of jit --------------------------------------------------------------------------

    def call_annotate(self, node, hint):
        if len(node.args) != 2 or node.keywords:
            raise self.error("annotate takes a type and a value")
        t = self.source.annotation(node.args[0])
        x = self.convert(self.value(node.args[1], t), t, "the annotated value")
        return Val(x.arg, t)

    def call_is_scripting(self, node, hint):
        return Val(True, BOOL)

    def call_unwrap_optional(self, node, hint):
        x = self.as_value(self.only_args(node, 1)[0])
        return self.emit(operations.unwrap, (x,), types.without_none(x.type)) if x.type.is_optional else x

    def call_fork(self, node, hint):
        args, kwargs = self.arguments(node)
        if not args:
            raise self.error("fork takes a function, a method or a module, and its arguments")
        f, *args = args
        from ptcore.jit._script.functions import ScriptFunction, script_function
        if isinstance(f, Method) and isinstance(f.owner, Mod) and f.function is None:
            made = f.owner.module._jit_compiled(f.name)
            owner = self.emit(f.owner.path, (), ANY, op="get_attr", name=f.owner.path or "self")
            target = self.emit(getattr, (owner, Val(f.name, STR)), ANY)
        elif isinstance(f, Mod):
            made = f.module._jit_compiled("forward")
            target = self.emit(f.path, (), ANY, op="get_attr", name=f.path or "self")
        elif isinstance(f, Py):
            made = self.scripted(f.obj) if isinstance(f.obj, ScriptFunction) else script_function(f.obj)
            target = Val(made, ANY)
        else:
            raise self.error("fork takes a function, a method or a module, and its arguments")
        values = self.bind_arguments(made.name, made.parameters, args, kwargs)
        return self.emit(fork, (target, *values), Future(made.returns))

    def call_wait(self, node, hint):
        x = self.as_value(self.only_args(node, 1)[0])
        if x.type.kind != "Future":
            raise self.error(f"wait takes what fork gives, not a value of type {x.type}")
        return self.emit(wait, (x,), x.type.args[0])


def _are_alike(items):
    """Whether items that are known at script time may be those of a list."""
    return all([isinstance(x, Val) and x.type == items[0].type for x in items]) and len(items) > 0


# Function -> the name of the method above that reads its calls.
_SPECIAL = {getattr(builtins, name): f"call_{name}" for name in BUILTINS if hasattr(Builtins, f"call_{name}")}
Builtins.SPECIAL_NAMES = tuple([f.__name__ for f in _SPECIAL])
_SPECIAL |= {annotate: "call_annotate", jit_isinstance: "call_isinstance", is_scripting: "call_is_scripting",
             fork: "call_fork", wait: "call_wait", unwrap_optional: "call_unwrap_optional"}
