"""Schemas of Python functions and methods that script supports."""
import ast
import functools
import math
import operator

from ptcore import autograd
from ptcore.jit._script import operations
from ptcore.jit._script.types import (
    BOOL,
    COMPLEX,
    FLOAT,
    INT,
    NONE,
    STR,
    TENSOR,
    Dict,
    List,
    Optional,
    Tuple,
    Type,
)

__all__ = ["MATH", "METHODS", "Schema", "schemas_of"]

# Type -> its methods, with the types of the arguments. T, K and V are the types of a container's items, keys and
# values. Where a function of operations.py is named, it replaces the method of Python.
METHODS = {
    "List": """
        append(x: T) -> None
        extend(x: List[T]) -> None
        insert(i: int, x: T) -> None
        pop(i: int = -1) -> T
        remove(x: T) -> None
        reverse() -> None
        clear() -> None
        copy() -> List[T]
        count(x: T) -> int
        index(x: T) -> int
        sort(reverse: bool = False) -> None = sort_list
    """,
    "Dict": """
        keys() -> List[K] = keys
        values() -> List[V] = values
        items() -> List[Tuple[K, V]] = dict_items
        get(key: K) -> Optional[V]
        get(key: K, default: V) -> V
        pop(key: K) -> V
        pop(key: K, default: V) -> V
        popitem() -> Tuple[K, V]
        setdefault(key: K, default: V) -> V
        update(other: Dict[K, V]) -> None
        clear() -> None
        copy() -> Dict[K, V]
    """,
    "str": """
        capitalize() -> str
        title() -> str
        upper() -> str
        lower() -> str
        swapcase() -> str
        casefold() -> str
        strip(chars: Optional[str] = None) -> str
        lstrip(chars: Optional[str] = None) -> str
        rstrip(chars: Optional[str] = None) -> str
        split(sep: Optional[str] = None, maxsplit: int = -1) -> List[str]
        rsplit(sep: Optional[str] = None, maxsplit: int = -1) -> List[str]
        splitlines(keepends: bool = False) -> List[str]
        partition(sep: str) -> Tuple[str, str, str]
        rpartition(sep: str) -> Tuple[str, str, str]
        join(x: List[str]) -> str
        replace(old: str, new: str, count: int = -1) -> str
        startswith(x: str, start: int = 0) -> bool
        endswith(x: str) -> bool
        find(x: str, start: int = 0) -> int
        find(x: str, start: int, end: int) -> int
        rfind(x: str, start: int = 0) -> int
        rfind(x: str, start: int, end: int) -> int
        index(x: str, start: int = 0) -> int
        index(x: str, start: int, end: int) -> int
        rindex(x: str, start: int = 0) -> int
        count(x: str, start: int = 0) -> int
        count(x: str, start: int, end: int) -> int
        center(width: int, fill: str = " ") -> str
        ljust(width: int, fill: str = " ") -> str
        rjust(width: int, fill: str = " ") -> str
        zfill(width: int) -> str
        expandtabs(tabsize: int = 8) -> str
        isdigit() -> bool
        isdecimal() -> bool
        isnumeric() -> bool
        isalpha() -> bool
        isalnum() -> bool
        isspace() -> bool
        isupper() -> bool
        islower() -> bool
        istitle() -> bool
        isidentifier() -> bool
        isprintable() -> bool
        isascii() -> bool
    """,
}
_CLASSES = {"List": list, "Dict": dict, "str": str}

# Functions of ``math``.
_MATH = """
    sqrt(x: float) -> float
    exp(x: float) -> float
    expm1(x: float) -> float
    log(x: float) -> float
    log(x: float, base: float) -> float
    log2(x: float) -> float
    log10(x: float) -> float
    log1p(x: float) -> float
    sin(x: float) -> float
    cos(x: float) -> float
    tan(x: float) -> float
    asin(x: float) -> float
    acos(x: float) -> float
    atan(x: float) -> float
    atan2(y: float, x: float) -> float
    sinh(x: float) -> float
    cosh(x: float) -> float
    tanh(x: float) -> float
    asinh(x: float) -> float
    acosh(x: float) -> float
    atanh(x: float) -> float
    pow(x: float, y: float) -> float
    fabs(x: float) -> float
    fmod(x: float, y: float) -> float
    remainder(x: float, y: float) -> float
    copysign(x: float, y: float) -> float
    hypot(x: float, y: float) -> float
    ldexp(x: float, i: int) -> float
    modf(x: float) -> Tuple[float, float]
    frexp(x: float) -> Tuple[float, int]
    degrees(x: float) -> float
    radians(x: float) -> float
    erf(x: float) -> float
    erfc(x: float) -> float
    gamma(x: float) -> float
    lgamma(x: float) -> float
    floor(x: float) -> int
    ceil(x: float) -> int
    trunc(x: float) -> int
    gcd(x: int, y: int) -> int
    lcm(x: int, y: int) -> int
    factorial(x: int) -> int
    isqrt(x: int) -> int
    isnan(x: float) -> bool
    isinf(x: float) -> bool
    isfinite(x: float) -> bool
    isclose(a: float, b: float) -> bool
"""
_GRAD = "\n".join([
    f"grad(outputs: List[Tensor], inputs: List[Tensor], grad_outputs: Optional[List[{t}]] = None, retain_graph: "
    "Optional[bool] = None, create_graph: bool = False, allow_unused: bool = False) -> List[Optional[Tensor]] = grad"
    for t in ("Optional[Tensor]", "Tensor")])
# Methods that change their owner, or draw random numbers.
CHANGING = (list.append, list.extend, list.insert, list.pop, list.remove, list.reverse, list.clear, dict.pop,
            dict.popitem, dict.setdefault, dict.update, dict.clear, operations.sort_list, operations.raise_error,
            operations.fail_assertion, operations.unused, operations.set_attribute, operations.checked_length,
            operations.long_enough, operations.narrow, operations.number_as, operations.unwrap,
            operations.unchanged_length, operator.iadd)

_NAMES = {"int": INT, "float": FLOAT, "bool": BOOL, "str": STR, "None": NONE, "Tensor": TENSOR, "complex": COMPLEX}


class Schema:
    """A function with the names, types and defaults of its arguments, and the type of its result."""

    __slots__ = ("defaults", "function", "name", "names", "result", "types")

    def __init__(self, function, name, names, types, defaults, result):
        self.function, self.name, self.names, self.types = function, name, names, types
        self.defaults, self.result = defaults, result

    def __str__(self):
        parts = [f"{n}: {t}" + (f" = {self.defaults[n]!r}" if n in self.defaults else "")
                 for n, t in zip(self.names, self.types)]
        return f"{self.name}({', '.join(parts)}) -> {self.result}"


def read_type(node):
    """A type from the tree of its text; unknown names stand for any type."""
    if isinstance(node, ast.Constant):
        return NONE
    if isinstance(node, ast.Name):
        return _NAMES.get(node.id) or Type("var", (), node.id)
    head, items = node.value.id, node.slice
    items = [read_type(x) for x in (items.elts if isinstance(items, ast.Tuple) else [items])]
    return {"List": List, "Optional": Optional, "Dict": Dict}.get(head, lambda *a: Tuple(a))(*items)


def _read(text, find):
    made = {}
    for line in text.split("\n"):
        if not line.strip():
            continue
        head, _, tail = line.strip().rpartition("-> ")
        result, _, other = tail.partition(" = ")
        node = ast.parse(f"def {head}-> {result}: ...").body[0]
        names = [a.arg for a in node.args.args]
        types = [read_type(a.annotation) for a in node.args.args]
        defaults = {n: ast.literal_eval(d) for n, d in zip(names[len(names) - len(node.args.defaults):],
                                                           node.args.defaults)}
        function = getattr(operations, other) if other else find(node.name)
        made.setdefault(node.name, []).append(
            Schema(function, node.name, names, types, defaults, read_type(node.returns)))
    return made


@functools.cache
def schemas_of(kind):
    """The methods of a type: name to schemas."""
    return _read(METHODS[kind], lambda name: getattr(_CLASSES[kind], name))


@functools.cache
def math_schemas():
    """The functions of ``math``: function to schemas."""
    return {s[0].function: s for s in _read(_MATH, lambda name: getattr(math, name)).values()}


@functools.cache
def function_schemas():
    """Functions beside ops that script knows the types of: function to schemas."""
    return {**math_schemas(), autograd.grad: _read(_GRAD, None)["grad"]}


MATH = {name: getattr(math, name) for name in ("pi", "e", "tau", "inf", "nan")}


def substitute(t, known):
    """A type with its variables replaced."""
    if t.kind == "var":
        return known[t.cls]
    if not t.args:
        return t
    args = [substitute(a, known) for a in t.args]
    return Optional(args[0]) if t.is_optional and len(args) == 2 else Type(t.kind, args, t.cls)
