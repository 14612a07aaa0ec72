"""Expressions of script."""
import ast
import enum
import operator
from contextlib import contextmanager
from typing import NamedTuple

import ptcore
from ptcore._dtype import dtype as _dtype
from ptcore._tensor import Tensor
from ptcore.jit._script import operations, operators, types
from ptcore.jit._script.comprehensions import Comprehensions
from ptcore.jit._script.frames import Frame
from ptcore.jit._script.source import NotSupportedError
from ptcore.jit._script.types import (
    ANY,
    BOOL,
    DEVICE,
    FLOAT,
    INT,
    NONE,
    NUMBER,
    STR,
    TENSOR,
    Dict,
    List,
    Optional,
    Tuple,
    is_subtype,
    without_none,
)
from ptcore.jit._script.values import Iterable, Method, Missing, Mod, Py, Val

__all__ = ["Expressions"]

_INSTEAD = {
    ast.Lambda: "lambda: a function by def at the top of the file",
    ast.NamedExpr: "assignment in an expression: an assignment before it",
    ast.Set: "sets: lists, and dicts whose values are not used", ast.SetComp: "sets: lists",
    ast.Await: "await: jit.wait of what jit.fork gives", ast.Yield: "yield: a list that is returned",
    ast.YieldFrom: "yield: a list that is returned",
}
TENSOR_ATTRIBUTES = {
    "dtype": types.DTYPE, "device": DEVICE, "layout": STR, "grad": Optional(TENSOR), "data": TENSOR, "T": TENSOR,
    "mT": TENSOR, "H": TENSOR, "mH": TENSOR, "real": TENSOR, "imag": TENSOR, "requires_grad": BOOL, "is_cuda": BOOL,
    "is_cpu": BOOL, "is_meta": BOOL, "is_sparse": BOOL, "is_leaf": BOOL, "ndim": INT, "itemsize": INT, "nbytes": INT,
    "retains_grad": BOOL, "output_nr": INT, "is_quantized": BOOL, "is_mkldnn": BOOL, "is_nested": BOOL}


class Test(NamedTuple):
    """A condition: its value or its truth at script time, and types of variables where it holds and where not."""

    value: object
    static: object = None
    yes: dict = {}  # noqa: RUF012
    no: dict = {}   # noqa: RUF012


class Expressions(Comprehensions):
    """The part of the compiler that reads expressions."""

    # -- emitting ----------------------------------------------------------------------------------

    @contextmanager
    def at(self, node):
        """Makes a node of the tree the place of errors and of new nodes while the block runs."""
        before = self.place
        if getattr(node, "lineno", None) is not None:
            self.place = self.source.place(node)
        try:
            yield
        finally:
            self.place = before

    def place_of(self, node):
        return self.source.place(node)

    def error(self, message, kind=None):
        return self.place.error(message) if kind is None else self.place.error(message, kind)

    def emit(self, target, args, type, kwargs=None, op="call_function", name=None):
        """Writes a node, and returns its value; arguments are values."""
        frame = self.frame
        args = tuple([frame.local(a.arg) for a in args])
        kwargs = {key: frame.local(a.arg) for key, a in kwargs.items()} if kwargs else {}
        node = frame.graph.create_node(op, target, args, kwargs, name, type)
        node.meta["where"] = self.place.where
        if op == "call_module" or (op == "call_method" and getattr(node.args[0], "type", None) != TENSOR) or (
                op == "call_function" and self.has_effect(target)):
            node.meta["effect"] = True          # kept, though its result may not be used
        return Val(node, type)

    # -- values ------------------------------------------------------------------------------------

    def value(self, node, hint=None):
        """The value of an expression; raises if it exists at script time alone."""
        with self.at(node):
            return self.as_value(self.expression(node, hint), hint)

    def as_value(self, x, hint=None):
        """An expression's meaning ``x`` as a value of the program."""
        if isinstance(x, Val):
            return x
        if isinstance(x, list):
            items = [self.as_value(i) for i in x]
            return Val(tuple([i.arg for i in items]), Tuple([i.type for i in items]))
        if isinstance(x, Iterable):
            return self.list_from(x)
        if isinstance(x, Py):
            made = self.constant(x.obj)
            if made is not None:
                return made
            obj = x.obj
            if isinstance(obj, (int, float, str, list, tuple, dict, Tensor)):
                raise self.error(f"a global variable of type {type(obj).__name__} is not a value of script: its value "
                                 "could change; pass it as an argument, or read it as an attribute of a module of "
                                 "Python")
            raise self.error(f"{getattr(obj, '__qualname__', obj)!r} of Python is not a value of script; it can be "
                             "called")
        if isinstance(x, Missing):
            raise self.error(x.why)
        if isinstance(x, Method):
            raise self.error(f"the method {x.name} is not a value of script; it can be called")
        if isinstance(x, Mod):
            raise self.error(f"the module {x.path or 'self'} is not a value of script; it can be called, and its "
                             "attributes can be read")
        raise self.error(f"{type(x).__name__} is not a value of script")

    def constant(self, obj):
        """An object of Python that never changes, as a value; else None."""
        if obj is None:
            return Val(None, NONE)
        if isinstance(obj, enum.Enum):
            return Val(obj, types.enum_type(type(obj)))
        if isinstance(obj, (_dtype, ptcore.device, ptcore.memory_format)):
            return Val(obj, types.of_value(obj))
        return None

    def frozen(self, obj):
        """A constant of a class or module as a value, or None: numbers, text, and tuples and lists of constants."""
        if isinstance(obj, (bool, int, float, complex, str)):
            return Val(obj, types.of_value(obj))
        if isinstance(obj, tuple) and not hasattr(obj, "_fields"):
            items = [self.frozen(x) for x in obj]
            if None in items:
                return None
            return Val(tuple([x.arg for x in items]), Tuple([x.type for x in items]))
        if isinstance(obj, list):
            items = [self.frozen(x) for x in obj]
            return None if None in items or not items else self.make_list(items, None)
        return self.constant(obj)

    # -- names and attributes ----------------------------------------------------------------------

    def expression(self, node, hint=None):
        """The meaning of an expression: a value of the program, or an object known at script time."""
        with self.at(node):
            method = getattr(self, f"on_{type(node).__name__}", None)
            if method is None or isinstance(node, ast.stmt):
                what = _INSTEAD.get(type(node), f"{type(node).__name__} expressions: operators, calls, subscripts, "
                                    "attributes, literals and comprehensions")
                name, _, instead = what.partition(": ")
                raise self.error(f"{name} is not supported in script. Supported instead: {instead}", NotSupportedError)
            return method(node, hint)

    def on_Constant(self, node, hint):
        x = node.value
        if x is Ellipsis:
            return Py(Ellipsis)
        if isinstance(x, bytes):
            raise self.error("bytes are not supported in script. Supported instead: str", NotSupportedError)
        return Val(x, types.of_value(x))

    def on_Name(self, node, hint):
        found = self.frame.lookup(node.id)
        if isinstance(found, Missing):
            raise self.error(found.why)
        if found is not None:
            return found
        try:
            return Py(self.source.outside(node.id))
        except NameError as error:
            raise self.error(str(error)) from None

    def on_Attribute(self, node, hint):
        owner = self.expression(node.value)
        return self.attribute(owner, node.attr)

    def attribute(self, owner, name):
        if isinstance(owner, Mod):
            return self.module_attribute(owner, name)
        if isinstance(owner, Py):
            return self.python_attribute(owner.obj, name)
        owner = self.as_value(owner)
        t = owner.type
        if t == TENSOR:
            if name == "shape":
                return self.emit(operations.shape, (owner,), List(INT))
            if name in TENSOR_ATTRIBUTES:
                return self.emit(getattr, (owner, Val(name, STR)), TENSOR_ATTRIBUTES[name])
            if hasattr(Tensor, name):
                return Method(owner, name)
            raise self.error(f"Tensor has no attribute {name!r} in script")
        if t.kind == "NamedTuple" and name in types.fields(t):
            return self.tuple_item(owner, types.fields(t).index(name))
        if t.kind == "Enum" and name in ("name", "value"):
            if isinstance(owner.arg, enum.Enum):
                return Val(getattr(owner.arg, name), types.of_value(getattr(owner.arg, name)))
            kind = STR if name == "name" else types.of_value(next(iter(t.cls)).value)
            return self.emit(getattr, (owner, Val(name, STR)), kind)
        if t == DEVICE and name in ("type", "index"):
            return self.emit(getattr, (owner, Val(name, STR)), STR if name == "type" else Optional(INT))
        if t == types.DTYPE and name in ("is_floating_point", "is_complex", "is_signed", "itemsize"):
            return self.emit(getattr, (owner, Val(name, STR)), INT if name == "itemsize" else BOOL)
        if (t.kind == "complex" and name in ("real", "imag")) or t.kind in ("finfo", "iinfo"):
            return self.emit(getattr, (owner, Val(name, STR)), INT if t.kind == "iinfo" else FLOAT)
        if t.kind == "Class":
            return self.class_attribute(owner, name)
        if t.is_optional:
            raise self.error(f"a value of type {t} may be None: test it by `is not None` before .{name}; attributes "
                             "are tested after `x = self.attribute`")
        return Method(owner, name)

    def python_attribute(self, obj, name):
        """An attribute of a module or class of Python."""
        if isinstance(obj, type) and issubclass(obj, enum.Enum):
            if name in obj.__members__:
                return Val(obj[name], types.enum_type(obj))
        try:
            found = getattr(obj, name)
        except AttributeError as error:
            raise self.error(str(error)) from None
        frozen = self.frozen(found)
        return Py(found) if frozen is None else frozen

    # -- operators ---------------------------------------------------------------------------------

    def on_BinOp(self, node, hint):
        hint = hint if hint is not None and hint.kind == "List" else None
        a, b = self.value(node.left, hint), self.value(node.right, hint)
        return operators.binary(self, type(node.op), a, b)

    def on_UnaryOp(self, node, hint):
        if isinstance(node.op, ast.Not):
            return self.from_test(self.condition(node))
        return operators.unary(self, type(node.op), self.value(node.operand))

    def on_BoolOp(self, node, hint):
        return self.from_test(self.condition(node, strict=True))

    def on_Compare(self, node, hint):
        if len(node.ops) == 1:
            return self.compared(node)[0]
        return self.from_test(self.condition(node))

    def from_test(self, test):
        return Val(test.static, BOOL) if test.static is not None else test.value

    def compared(self, node):
        """A comparison of two expressions: its value, and the two operands."""
        a, b = self.expression(node.left), self.expression(node.comparators[0])
        return self.compared_values(node.ops[0], a, b), a, b

    def compared_values(self, op, a, b):
        if isinstance(op, (ast.In, ast.NotIn)):
            if isinstance(b, Mod):
                known = isinstance(a, Val) and isinstance(a.arg, str)
                if not known:
                    raise self.error("in of a ModuleDict takes text that is known at script time")
                original = self.original(b)
                if not hasattr(type(original), "__contains__"):
                    raise self.error(f"in of a module {type(original).__name__} is not supported")
                return Val((a.arg in original) == isinstance(op, ast.In), BOOL)
            made = operators.contains(self, self.as_value(a), self.as_value(b))
            return made if isinstance(op, ast.In) else self.emit(operations.negate, (made,), BOOL)
        same = isinstance(op, ast.Is)
        if (same or isinstance(op, ast.IsNot)) and isinstance(a, Mod):
            if isinstance(b, Mod):
                return Val((a.module is b.module) == same, BOOL)
            if self.as_value(b).type == NONE:
                return Val(not same, BOOL)
        a, b = self.as_value(a), self.as_value(b)
        if isinstance(op, (ast.Is, ast.IsNot)):
            made = operators.identity(self, isinstance(op, ast.Is), a, b)
            return made if isinstance(made, Val) else Val(made, BOOL)
        return operators.compare(self, type(op), a, b)

    def on_IfExp(self, node, hint):
        test = self.condition(node.test)
        if test.static is not None:
            self.frame = Frame(self.frame.graph, self.frame)
            self.refine(test.yes if test.static else test.no)
            made = self.expression(node.body if test.static else node.orelse, hint)
            self.frame = self.frame.parent
            return made

        def part(tree, refined):
            def write():
                self.refine(refined)
                made = self.value(tree, hint)
                good = hint is not None and is_subtype(made.type, hint)
                return self.convert(made, hint, "the value") if good else made
            return write
        return self.choose(node, test.value, part(node.body, test.yes), part(node.orelse, test.no))

    # -- conditions --------------------------------------------------------------------------------

    def refine(self, known):
        """Narrows the types of variables from here on, in this frame."""
        for name, t in known.items():
            here = self.frame.lookup(name)
            if isinstance(here, Val):
                self.frame.vars[name] = Val(here.arg, t)

    def condition(self, node, strict=False):
        """An expression as a condition. With ``strict`` its own value is used: operands of and, or must be bools."""
        with self.at(node):
            if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
                test = self.condition(node.operand)
                if test.static is not None:
                    return Test(None, not test.static, test.no, test.yes)
                return Test(self.emit(operations.negate, (test.value,), BOOL), None, test.no, test.yes)
            if isinstance(node, ast.BoolOp):
                return self.all_or_any(node, list(node.values), strict)
            if isinstance(node, ast.Compare):
                if len(node.ops) > 1:
                    return self.chain(node)
                return self.comparison(node)
            if isinstance(node, ast.Call):
                test = self.type_test(node)
                if test is not None:
                    return test
            x = self.expression(node)
            if isinstance(x, Mod):
                return Test(None, len(x.module._modules) > 0 if self.is_container(x) else True)
            x = self.as_value(x)
            if strict and x.type != BOOL:
                raise self.error(f"and, or as a value take bools, not {x.type}: in Python they give one of their "
                                 "operands; write bool(...) around them, or use `if`")
            return self.truth(x)

    def truth(self, x):
        t = x.type
        if t == NONE:
            return Test(None, False)
        if isinstance(x.arg, bool):
            return Test(None, x.arg)
        if t == BOOL:
            return Test(x)
        if t == TENSOR or t.is_number or t.kind in ("List", "Dict", "str"):
            return Test(self.emit(bool, (x,), BOOL))
        if t.kind == "Class":
            for magic in ("__bool__", "__len__"):
                if self.method_of_class(x, magic) is not None:
                    return Test(self.emit(bool, (self.call_method_of_class(x, magic, [], {}),), BOOL))
        raise self.error(f"a value of type {t} is no condition" + ("; write `is not None`" if t.is_optional else ""))

    def comparison(self, node):
        op = node.ops[0]
        made, a, b = self.compared(node)
        if isinstance(op, (ast.Is, ast.IsNot)) and isinstance(made.arg, bool):
            return Test(None, made.arg)
        yes, no = {}, {}
        if isinstance(op, (ast.Is, ast.IsNot)):
            for tree, x, other in ((node.left, a, b), (node.comparators[0], b, a)):
                if isinstance(tree, ast.Name) and isinstance(other, Val) and other.type == NONE and x.type.is_optional:
                    (yes if isinstance(op, ast.Is) else no)[tree.id] = NONE
                    (no if isinstance(op, ast.Is) else yes)[tree.id] = without_none(x.type)
        if isinstance(made.arg, bool):
            return Test(None, made.arg, yes, no)
        if made.type != BOOL:
            return self.truth(made)._replace(yes=yes, no=no)
        return Test(made, None, yes, no)

    def chain(self, node):
        """``a < b < c``, which evaluates each operand once."""
        a = self.value(node.left)

        def rest(a, k):
            b = self.value(node.comparators[k])
            made = self.from_test(self.truth(self.compared_values(node.ops[k], a, b)))
            if k == len(node.ops) - 1:
                return made
            return self.choose(node, made, lambda: rest(b, k + 1), lambda: Val(False, BOOL))
        return self.truth(rest(a, 0))

    def all_or_any(self, node, parts, strict):
        """``and`` and ``or``, which evaluate operands only as far as they are needed."""
        first, *rest = parts
        test = self.condition(first, strict)
        if not rest:
            return test
        every = isinstance(node.op, ast.And)
        if test.static is not None:
            if test.static != every:
                return test
            return self.all_or_any(node, rest, strict)
        known, held = ({}, {}), {}

        def more():
            self.refine(test.yes if every else test.no)
            found = self.all_or_any(node, rest, strict)
            held["test"] = found
            return self.from_test(found)
        value = self.choose(node, test.value, *((more, lambda: Val(False, BOOL)) if every
                                                else (lambda: Val(True, BOOL), more)))
        other = held["test"]
        if every:
            known = {**test.yes, **other.yes}, {}
        else:
            known = {}, {**test.no, **other.no}
        return Test(value, None, *known)

    # -- literals ----------------------------------------------------------------------------------

    def on_Tuple(self, node, hint):
        hints = hint.args if hint is not None and hint.is_tuple and len(hint.args) == len(node.elts) else [None] * len(
            node.elts)
        items = []
        for tree, h in zip(node.elts, hints):
            if isinstance(tree, ast.Starred):
                items += self.starred(tree)
            else:
                items.append(self.expression(tree, h))
        if any([isinstance(x, (Mod, Py, Method)) and self.is_only_static(x) for x in items]):
            return items
        items = [self.as_value(x) for x in items]
        return Val(tuple([x.arg for x in items]), Tuple([x.type for x in items]))

    def is_only_static(self, x):
        return not isinstance(x, Py) or self.constant(x.obj) is None

    def starred(self, tree):
        x = self.as_value(self.expression(tree.value))
        if not x.type.is_tuple:
            raise self.error("* takes a tuple, whose length is known at script time", NotSupportedError)
        return [self.tuple_item(x, k) for k in range(len(x.type.args))]

    def on_List(self, node, hint):
        hint = without_none(hint) if hint is not None else None
        inner = hint.args[0] if hint is not None and hint.kind == "List" else None
        if any([isinstance(x, ast.Starred) for x in node.elts]):
            raise self.error("* in a list is not supported. Supported instead: +", NotSupportedError)
        return self.make_list([self.value(x, inner) for x in node.elts], inner)

    def make_list(self, items, inner):
        """A new list; ``inner``: the type of its items, if that is known."""
        if inner is None:
            inner = types.unify_all([x.type for x in items]) if items else TENSOR
            if inner is None:
                inner = types.union([x.type for x in items])
        items = [self.convert(x, inner, "an item of the list") for x in items]
        return self.emit(operations.make_list, items, List(inner), name="list")

    def on_Dict(self, node, hint):
        if None in node.keys:
            raise self.error("** in a dict is not supported. Supported instead: update", NotSupportedError)
        hint = without_none(hint) if hint is not None else None
        key, val = hint.args if hint is not None and hint.kind == "Dict" else (None, None)
        keys, values = [], []
        for k, v in zip(node.keys, node.values):
            keys.append(self.value(k, key))
            values.append(self.value(v, val))
        key = key or (self.one_type(keys, "keys of the dict") if keys else STR)
        val = val or (self.one_type(values, "values of the dict") if values else TENSOR)
        items = []
        for k, v in zip(keys, values):
            items += [self.convert(k, key, "a key"), self.convert(v, val, "a value")]
        return self.emit(operations.make_dict, items, Dict(key, val), name="dict")

    def one_type(self, values, what):
        t = types.unify_all([x.type for x in values])
        return types.union([x.type for x in values]) if t is None else t

    def on_JoinedStr(self, node, hint):
        text, args = "", []
        for part in node.values:
            if isinstance(part, ast.Constant):
                text += part.value.replace("{", "{{").replace("}", "}}")
                continue
            args.append(self.value(part.value))
            text += "{" + (f"!{chr(part.conversion)}" if part.conversion != -1 else "")
            if part.format_spec is not None:
                if not all([isinstance(x, ast.Constant) for x in part.format_spec.values]):
                    raise self.error("a format that is computed is not supported", NotSupportedError)
                text += ":" + "".join([x.value for x in part.format_spec.values])
            text += "}"
        if not args:
            return Val(text.replace("{{", "{").replace("}}", "}"), STR)
        return self.emit(operations.format_text, (Val(text, STR), *args), STR)

    # -- subscripts --------------------------------------------------------------------------------

    def on_Subscript(self, node, hint):
        owner = self.expression(node.value)
        if isinstance(owner, Mod):
            return self.module_item(owner, node.slice)
        if isinstance(owner, list):
            index = self.value(node.slice)
            if not isinstance(index.arg, int):
                raise self.error("a tuple of modules or functions takes a number that is known at script time")
            if not -len(owner) <= index.arg < len(owner):
                raise self.error(f"index {index.arg} is out of the range of {len(owner)} modules or functions")
            return owner[index.arg]
        owner = self.as_value(owner)
        if isinstance(node.slice, ast.Slice) and owner.type != TENSOR:
            return self.take_slice(owner, node.slice)
        return self.get_item(owner, self.index_of(owner, node.slice))

    def slice_of(self, tree):
        parts = [Val(None, NONE) if x is None else self.integer(self.value(x))
                 for x in (tree.lower, tree.upper, tree.step)]
        return Val(slice(*[p.arg for p in parts]), ANY)

    def integer(self, x):
        if x.type == INT or x.type == Optional(INT) or x.type == NONE:
            return x
        if x.type == TENSOR or x.type == NUMBER:
            return self.emit(operator.index, (x,), INT)
        raise self.error(f"an index must be an int, not {x.type}")

    def take_slice(self, owner, tree):
        t = owner.type
        index = self.slice_of(tree)
        if t.is_tuple:
            s = index.arg
            if not all([x is None or isinstance(x, int) for x in (s.start, s.stop, s.step)]):
                raise self.error("slices of tuples have bounds that are known at script time")
            items = [self.tuple_item(owner, k) for k in range(len(t.args))[s]]
            return Val(tuple([x.arg for x in items]), Tuple([x.type for x in items]))
        if t.kind not in ("List", "str"):
            raise self.error(f"a value of type {t} has no slices")
        return self.emit(operator.getitem, (owner, index), t)

    def index_of(self, owner, tree):
        """The meaning of the index in the brackets behind a value."""
        t = owner.type
        if t == TENSOR:
            if isinstance(tree, ast.Tuple):
                return Val(tuple([self.tensor_index(x).arg for x in tree.elts]), ANY)
            return self.tensor_index(tree)
        if isinstance(tree, ast.Slice):
            return self.slice_of(tree)
        if isinstance(tree, ast.Tuple) and t.kind != "Dict":
            raise self.error(f"a value of type {t} takes one index")
        index = self.value(tree)
        if t.kind == "Dict":
            return self.convert(index, t.args[0], "the key")
        if t.kind == "Class":
            return index
        return self.integer(index)

    def tensor_index(self, tree):
        if isinstance(tree, ast.Slice):
            return self.slice_of(tree)
        x = self.expression(tree)
        if isinstance(x, Py) and x.obj in (Ellipsis, None):
            return Val(x.obj, ANY)
        x = self.as_value(x)
        good = x.type in (INT, BOOL, TENSOR, NONE) or x.type.kind == "List" or x.type.is_optional
        if x.type.is_tuple and len(x.type.args) and all([t in (INT, TENSOR, NONE) for t in x.type.args]):
            good = True
        if not good:
            raise self.error(f"a tensor takes no index of type {x.type}")
        return x

    def get_item(self, owner, index):
        t = owner.type
        if t == TENSOR:
            return self.emit(operator.getitem, (owner, index), TENSOR)
        if t.kind == "List":
            return self.emit(operator.getitem, (owner, index), t.args[0])
        if t.kind == "Dict":
            return self.emit(operator.getitem, (owner, index), t.args[1])
        if t == STR:
            return self.emit(operator.getitem, (owner, index), STR)
        if t.is_tuple:
            if isinstance(index.arg, int):
                return self.tuple_item(owner, index.arg)
            made = types.unify_all(t.args) if t.args else None
            if made is None:
                raise self.error(f"items of {t} have several types: the index must be known at script time")
            return self.emit(operations.item_of_tuple, (owner, index), made)
        if t.kind == "Class" and self.method_of_class(owner, "__getitem__") is not None:
            return self.call_method_of_class(owner, "__getitem__", [index], {})
        raise self.error(f"a value of type {t} has no items" + ("; test it by `is not None`" if t.is_optional else ""))

    def tuple_item(self, owner, k):
        t = owner.type
        if not -len(t.args) <= k < len(t.args):
            raise self.error(f"index {k} is out of the range of {t}")
        k %= len(t.args)
        if isinstance(owner.arg, tuple):
            return Val(owner.arg[k], t.args[k])
        return self.emit(operator.getitem, (owner, Val(k, INT)), t.args[k])

    def set_item(self, owner, tree, value):
        if owner.type.kind == "List" and isinstance(tree, ast.Slice):
            value = self.convert(value, owner.type, "the value")
            self.emit(operator.setitem, (owner, self.slice_of(tree), value), NONE)
            return
        self.put_item(owner, self.index_of(owner, tree), value)

    def put_item(self, owner, index, value):
        t = owner.type
        if t == TENSOR:
            if value.type != TENSOR and not value.type.is_number:
                raise self.error(f"parts of a tensor are set to tensors and numbers, not {value.type}")
        elif t.kind in ("List", "Dict"):
            value = self.convert(value, t.args[-1], "the value")
        elif t.kind == "Class" and self.method_of_class(owner, "__setitem__") is not None:
            self.call_method_of_class(owner, "__setitem__", [index, value], {})
            return
        else:
            raise self.error(f"items of a value of type {t} cannot be set")
        self.emit(operator.setitem, (owner, index, value), NONE)

    # -- types -------------------------------------------------------------------------------------

    def converted(self, x, t, implicit=False):
        """A value converted to a type, or None where it cannot be converted."""
        self.last_type = x.type
        if is_subtype(x.type, t):
            return x
        if x.type.is_tuple and t.kind == "List" and all([is_subtype(a, t.args[0]) for a in x.type.args]):
            return self.emit(operations.as_list, (x,), t)
        if x.type.is_tuple and t.is_tuple and len(x.type.args) == len(t.args):
            items = [self.converted(self.tuple_item(x, k), a, implicit) for k, a in enumerate(t.args)]
            if None not in items and not t.kind == "NamedTuple":
                return Val(tuple([i.arg for i in items]), t)
            self.last_type = x.type
            return None
        if t.is_optional and x.type.kind in ("Tuple", "Tensor"):
            return self.converted(x, without_none(t), implicit) if without_none(t).kind != "Union" else None
        if x.type == NUMBER and t in (INT, FLOAT, BOOL):
            return self.emit(operations.number_as, (x, Val(t, ANY)), t)
        if implicit:
            if t == FLOAT and x.type in (INT, BOOL):
                if isinstance(x.arg, int):
                    return Val(float(x.arg), FLOAT)
                return self.emit(float, (x,), FLOAT)
            if t == INT and x.type == BOOL:
                return self.emit(int, (x,), INT)
            if t in (INT, FLOAT, BOOL) and x.type == TENSOR:
                return self.emit({"int": operator.index, "float": float, "bool": bool}[t.kind], (x,), t)
        return None

    def convert(self, x, t, what, implicit=False):
        """``converted``; raises an error that names the expected type."""
        made = self.converted(x, t, implicit)
        if made is None:
            hint = "; a value that may be None is tested by `is not None` first" if x.type.is_optional else ""
            raise self.error(f"{what} must be of type {t}, not {x.type}{hint}")
        return made

