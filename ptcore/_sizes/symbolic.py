"""Symbolic ints: sizes that are known by a hint alone, and the guards under which what was computed from them holds.

A SymInt computes as an int does and stays an expression (see ``_expressions``). Where Python needs an int, it answers
by its hint, and its ``ShapeEnv`` records the condition under which that answer holds.
"""
import functools
import math
import operator
from numbers import Integral, Real

from ptcore._overrides import ask, flat, overriding
from ptcore._shape import keep_symbols
from ptcore._sizes.expressions import (
    FUNCTIONS,
    Expr,
    Guard,
    Leaf,
    Poly,
    add,
    as_poly,
    bounds_of,
    constant,
    extreme,
    floordiv,
    mod,
    mul,
    place,
    poly,
    raised,
    scaled,
    step,
)

__all__ = ["DataDependentError", "Guard", "ShapeEnv", "SymBool", "SymFloat", "SymInt", "sym_float", "sym_int",
           "sym_ite", "sym_max", "sym_min", "sym_not", "sym_sqrt", "sym_sum"]


class DataDependentError(RuntimeError):
    """A branch asks for a number that only the data of a tensor could tell."""


# -- what users hold --------------------------------------------------------------------------------------------------

def _is_int(x):
    return type(x) is SymInt or type(x) is int or isinstance(x, Integral)


def _expr(x):
    """The expression of an int, or the number or tree that stands in a float's."""
    if isinstance(x, (SymInt, SymFloat, SymBool)):
        return x.expr
    return constant(int(x)) if _is_int(x) else float(x)


def _hint(x):
    return x.hint if isinstance(x, (SymInt, SymFloat, SymBool)) else x


def _env_of(*xs):
    found = None
    for x in xs:
        env = getattr(x, "env", None)
        if env is not None and found is not None and env is not found:
            raise RuntimeError("symbolic numbers of two ShapeEnvs cannot be combined")
        found = found or env
    return found


def _known(hints):
    return None not in hints


def _int(env, expr, hint):
    return expr.number if expr.number is not None else SymInt(expr, env, hint)


def _make_float(name, *args):
    """A SymFloat: what a function of ints and floats gives, computed of the hints as Python computes it."""
    hints = [_hint(a) for a in args]
    hint = FUNCTIONS[name](*hints) if _known(hints) else None
    return SymFloat(step(name, *[_expr(a) for a in args]), _env_of(*args), hint)


def _make_int(name, *args):
    hints = [_hint(a) for a in args]
    hint = FUNCTIONS[name](*hints) if _known(hints) else None
    return SymInt(as_poly(step(name, *[_expr(a) for a in args])), _env_of(*args), hint)


def _relation(name, a, b):
    """a SymBool, or a bool where the answer holds for all leaves."""
    if name == "gt" or name == "ge":
        return _relation("lt" if name == "gt" else "le", b, a)
    env = _env_of(a, b)
    if _is_int(a) and _is_int(b):
        known = env.decide(name, _expr(a), _expr(b))
        if known is not None:
            return known
    elif (_is_int(a) and _is_endless(b)) or (_is_int(b) and _is_endless(a)):
        return FUNCTIONS[name](0 if _is_int(a) else a, 0 if _is_int(b) else b)
    elif _expr(a) is _expr(b) and isinstance(_expr(a), Expr) and name in ("eq", "ne"):
        hint = _hint(a)
        if hint is None or hint == hint:
            return name == "eq"
    hints = _hint(a), _hint(b)
    return SymBool(step(name, _expr(a), _expr(b)), env, FUNCTIONS[name](*hints) if _known(hints) else None)


def _is_endless(x):
    return isinstance(x, float) and not math.isfinite(x)


class _Number:
    """What the symbolic numbers share: an expression, its environment, and its value at the hints of the leaves."""

    __slots__ = ("_value", "env", "expr")

    def __init__(self, expr, env, hint):
        self.expr, self.env, self._value = expr, env, hint

    @property
    def hint(self):
        """The value at the hints of the leaves, without a guard; None where it depends on data."""
        return self._value

    def guard(self):
        """The value at the hints, which from now on is taken for granted: the environment gets a guard."""
        if self._value is None:
            raise DataDependentError(f"the value of {self.expr} depends on the data of a tensor and is not known here")
        return self.env.specialize(self)

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        raise TypeError(f"{type(self).__name__}: a symbolic number belongs to its ShapeEnv and cannot be pickled")

    def __repr__(self):
        return str(self.expr)

    def __format__(self, spec):
        return format(str(self.expr) if not spec else self.guard(), spec)

    def __hash__(self):
        return hash(self.guard())


class _Arithmetic(_Number):
    """Ints and floats: operators against each other and against Python's numbers; anything else answers itself."""

    __slots__ = ()

    def __float__(self):
        return float(self.guard())

    def __int__(self):
        return int(self.guard())

    def __bool__(self):
        return bool(self != 0)

    def __eq__(self, other):
        return _relation("eq", self, other) if _is_number(other) else NotImplemented

    def __ne__(self, other):
        return _relation("ne", self, other) if _is_number(other) else NotImplemented

    def __lt__(self, other):
        return _relation("lt", self, other) if _is_number(other) else NotImplemented

    def __le__(self, other):
        return _relation("le", self, other) if _is_number(other) else NotImplemented

    def __gt__(self, other):
        return _relation("gt", self, other) if _is_number(other) else NotImplemented

    def __ge__(self, other):
        return _relation("ge", self, other) if _is_number(other) else NotImplemented

    __hash__ = _Number.__hash__

    def __pos__(self):
        return self

    def __complex__(self):
        return complex(self.guard())

    def __truediv__(self, other):
        return _binary("truediv", self, other)

    def __rtruediv__(self, other):
        return _binary("truediv", other, self)

    def __add__(self, other):
        return _binary("add", self, other)

    def __radd__(self, other):
        return _binary("add", other, self)

    def __sub__(self, other):
        return _binary("sub", self, other)

    def __rsub__(self, other):
        return _binary("sub", other, self)

    def __mul__(self, other):
        return _binary("mul", self, other)

    def __rmul__(self, other):
        return _binary("mul", other, self)

    def __floordiv__(self, other):
        return _binary("floordiv", self, other)

    def __rfloordiv__(self, other):
        return _binary("floordiv", other, self)

    def __mod__(self, other):
        return _binary("mod", self, other)

    def __rmod__(self, other):
        return _binary("mod", other, self)

    def __divmod__(self, other):
        return (self // other, self % other) if _is_number(other) else NotImplemented

    def __rdivmod__(self, other):
        return (other // self, other % self) if _is_number(other) else NotImplemented

    def __pow__(self, other):
        return _binary("pow", self, other)

    def __rpow__(self, other):
        return _binary("pow", other, self)


def _power_of_two(count):
    """The factor of a shift; a negative count is an error, as it is for ints."""
    if count < 0:
        raise ValueError("negative shift count")
    return 2 ** count


class SymInt(_Arithmetic):
    """An int that is known by a hint: it computes as an int does and stays an expression.

    ``__index__``, ``int``, ``float``, ``hash`` and a branch on a comparison answer by the hint, and the environment
    records under which condition that answer holds.

    Examples
    --------
    >>> from ptcore._sizes.symbolic import ShapeEnv
    >>> env = ShapeEnv()
    >>> n = env.symbol(6)
    >>> (n + 2) * n - 2 * n, n * 2 // 2 == n
    (s0**2, True)
    >>> bool(n % 2 == 0), [guard.text for guard in env.guards]
    (True, ['s0 % 2 == 0'])
    """

    __slots__ = ()

    def __index__(self):
        return self.guard()

    def __neg__(self):
        return _int(self.env, scaled(self.expr, -1), None if self.hint is None else -self.hint)

    def __abs__(self):
        return sym_max(self, -self)

    def __round__(self, digits=None):
        return self if digits is None or digits >= 0 else round(self.guard(), digits)

    def __trunc__(self):
        return self

    __floor__ = __ceil__ = __trunc__

    def __invert__(self):
        return -self - 1

    def __lshift__(self, other):
        return self * _power_of_two(other) if _is_int(other) else NotImplemented

    def __rlshift__(self, other):
        return other * _power_of_two(self) if _is_int(other) else NotImplemented

    def __rshift__(self, other):
        return self // _power_of_two(other) if _is_int(other) else NotImplemented

    def __rrshift__(self, other):
        return other // _power_of_two(self) if _is_int(other) else NotImplemented

    def __and__(self, other):
        return _make_int("and_", self, other) if _is_int(other) else NotImplemented

    def __or__(self, other):
        return _make_int("or_", self, other) if _is_int(other) else NotImplemented

    def __xor__(self, other):
        return _make_int("xor", self, other) if _is_int(other) else NotImplemented

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__


class SymFloat(_Arithmetic):
    """A float that is computed from symbolic ints; ``float``, ``hash`` and comparisons record guards as SymInt's."""

    __slots__ = ()

    def __neg__(self):
        return _make_float("neg", self)

    def __abs__(self):
        return _make_float("abs", self)

    def __floor__(self):
        return _make_int("floor", self)

    def __ceil__(self):
        return _make_int("ceil", self)

    def __trunc__(self):
        return _make_int("trunc", self)

    def __round__(self, digits=None):
        return _make_int("round", self) if digits is None else round(self.guard(), digits)

    def is_integer(self):
        """Whether it is a whole number, as a SymBool."""
        return _relation("eq", _make_float("float_floor", self), self)


class SymBool(_Number):
    """A condition on symbolic numbers; a branch on it answers by the hint and records a guard."""

    __slots__ = ()

    def __bool__(self):
        return self.guard()

    def __int__(self):
        return int(self.guard())

    def __float__(self):
        return float(self.guard())

    __index__ = __int__

    def __and__(self, other):
        return _logic("and_", self, other)

    def __or__(self, other):
        return _logic("or_", self, other)

    __rand__, __ror__ = __and__, __or__

    def __invert__(self):
        return sym_not(self)

    def __xor__(self, other):
        return self != other if isinstance(other, (bool, SymBool)) else NotImplemented

    __rxor__ = __xor__

    def __eq__(self, other):
        if isinstance(other, bool):
            return self if other else sym_not(self)
        if isinstance(other, SymBool):
            return True if other.expr is self.expr else _relation("eq", self, other)
        if not _is_number(other):
            return NotImplemented
        return sym_ite(self, 1, 0) == other         # True is 1, as in Python

    def __ne__(self, other):
        return sym_not(self == other) if _is_number(other) or isinstance(other, SymBool) else NotImplemented

    __hash__ = _Number.__hash__


def _is_number(x):
    return isinstance(x, (int, float, SymInt, SymFloat, Real))


def _logic(name, a, b):
    if not isinstance(b, (bool, SymBool)):
        return NotImplemented
    if isinstance(b, bool):
        return a if b == (name == "and_") else b
    hints = a.hint, b.hint
    return SymBool(step(name, a.expr, b.expr), _env_of(a, b), FUNCTIONS[name](*hints) if _known(hints) else None)


def _binary(name, a, b):
    """An operator on a symbolic number and another number."""
    if not _is_number(a) or not _is_number(b):
        return NotImplemented
    env = _env_of(a, b)
    if not (_is_int(a) and _is_int(b)) or name == "truediv":
        return _make_float(name, a, b)
    x, y = _expr(a), _expr(b)
    hints = _hint(a), _hint(b)
    if name == "floordiv" or name == "mod":
        if not (b != 0):                # a branch: Python's ZeroDivisionError, or a guard that it is not 0
            raise ZeroDivisionError("integer division or modulo by zero")
    elif name == "pow":
        if type(b) is SymInt:
            if b < 0:
                return _make_float("pow", a, b)
            return _make_int("pow", a, b)
        if b < 0:
            return _make_float("pow", a, b)
        if b > 16:
            return _make_int("pow", a, b)
        y = int(b)
    return _int(env, _INT_RULES[name](x, y), FUNCTIONS[name](*hints) if _known(hints) else None)


_INT_RULES = {"add": add, "sub": lambda a, b: add(a, b, -1), "mul": mul, "floordiv": floordiv, "mod": mod,
              "pow": raised}


# -- functions --------------------------------------------------------------------------------------------------------

def _asks(function):
    """A function that gives way to ``__torch_function__`` of its arguments."""
    @functools.wraps(function)
    def asking(*args, **kwargs):
        if overriding(flat((*args, *kwargs.values()))):
            return ask(asking, args, kwargs)
        return function(*args, **kwargs)
    return asking


@_asks
def sym_max(a, b):
    """``max(a, b)`` that does not branch on symbolic numbers; a float if one of them is.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.sym_max(2, 3.5)
    3.5
    """
    return _sym_extreme("max", a, b)


@_asks
def sym_min(a, b):
    """``min(a, b)`` that does not branch on symbolic numbers; a float if one of them is.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.sym_min(2, 3)
    2
    """
    return _sym_extreme("min", a, b)


def _sym_extreme(name, a, b):
    if not _is_number(a) or not _is_number(b):
        raise TypeError(f"sym_{name}: arguments must be numbers, got {type(a).__name__} and {type(b).__name__}")
    plain = max if name == "max" else min
    if not isinstance(a, _Number) and not isinstance(b, _Number):
        return plain(a, b) if _is_int(a) and _is_int(b) else float(plain(a, b))
    if not (_is_int(a) and _is_int(b)):
        return _make_float("float_" + name, a, b)
    hints = _hint(a), _hint(b)
    return _int(_env_of(a, b), extreme(name, _expr(a), _expr(b)), plain(*hints) if _known(hints) else None)


@_asks
def sym_int(a):
    """``int(a)`` that keeps symbolic numbers: of a SymFloat the part before the point."""
    if isinstance(a, SymInt):
        return a
    return math.trunc(a) if isinstance(a, SymFloat) else int(a)


@_asks
def sym_float(a):
    """``float(a)`` that keeps symbolic numbers."""
    if isinstance(a, SymFloat):
        return a
    return _make_float("float", a) if isinstance(a, SymInt) else float(a)


@_asks
def sym_not(a):
    """``not a`` that keeps a SymBool."""
    if not isinstance(a, SymBool):
        return not a
    opposite = {"eq": "ne", "ne": "eq"}.get(a.expr.name)
    hint = None if a.hint is None else not a.hint
    if opposite:
        return SymBool(step(opposite, *a.expr.args), a.env, hint)
    if a.expr.name in ("lt", "le") and isinstance(a.expr.args[0], Poly) and isinstance(a.expr.args[1], Poly):
        return SymBool(step("le" if a.expr.name == "lt" else "lt", *reversed(a.expr.args)), a.env, hint)
    return SymBool(a.expr.args[0] if a.expr.name == "not_" else step("not_", a.expr), a.env, hint)


@_asks
def sym_ite(b, t, f):
    """``t if b else f`` that does not branch on a SymBool; t and f must be of one type."""
    if not isinstance(b, (bool, SymBool)) or (type(t) is not type(f) and not (_is_int(t) and _is_int(f))):
        raise TypeError(f"sym_ite: expected a bool and two values of one type, got {type(b).__name__}, "
                        f"{type(t).__name__} and {type(f).__name__}")
    if isinstance(b, bool):
        return t if b else f
    if _expr(t) is _expr(f) and isinstance(_expr(t), Expr):
        return t
    if not _is_number(t) or isinstance(t, bool):
        return t if b else f
    return _make_int("ite", b, t, f) if _is_int(t) else _make_float("ite", b, t, f)


@_asks
def sym_sqrt(a):
    """The square root that keeps symbolic numbers."""
    return _make_float("sqrt", a) if isinstance(a, (SymInt, SymFloat)) else math.sqrt(a)


@_asks
def sym_sum(args):
    """The sum of ints, some of them symbolic."""
    total = 0
    for a in args:
        total = total + a
    return total


def _ite(b, t, f):
    return t if b else f


# What a step is called in an expression -> what computes it, of symbolic numbers as of others.
FUNCTIONS.update({
    **{name: getattr(operator, name) for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "neg", "eq",
                                                  "ne", "lt", "le", "and_", "or_", "xor")},
    "max": sym_max, "min": sym_min, "float_max": sym_max, "float_min": sym_min, "ite": sym_ite, "float": sym_float,
    "sqrt": sym_sqrt, "floor": math.floor, "ceil": math.ceil, "trunc": math.trunc, "round": round, "abs": abs,
    "float_floor": lambda x: sym_float(math.floor(x)), "not_": sym_not,
})


# -- environments -----------------------------------------------------------------------------------------------------

class ShapeEnv:
    """Makes symbolic sizes, and keeps the guards under which answers about them hold.

    Parameters
    ----------
    duck_shape : bool
        Input sizes of equal hints share one symbol.
    specialize_zero_one : bool
        Input sizes of 0 and 1 are plain ints. A symbol then stands for 2 or more.

    Attributes
    ----------
    inputs : list of (source, int or SymInt)
        What ``symbol`` was asked for, in order.
    guards : list of Guard

    Examples
    --------
    >>> from ptcore._sizes.symbolic import ShapeEnv
    >>> env = ShapeEnv()
    >>> n, m = env.symbol(6, "x.shape[0]"), env.symbol(4, "x.shape[1]")
    >>> bool(n > m)
    True
    >>> env.check([9, 3]), env.check([3, 9]), env.evaluate(n * m + 1, [9, 3])
    (True, False, 28)
    """

    made = False                        # whether there may be symbols at all

    def __init__(self, duck_shape=True, specialize_zero_one=True):
        ShapeEnv.made = True
        self.duck_shape, self.specialize_zero_one = duck_shape, specialize_zero_one
        self.inputs, self.guards = [], []
        self._by_hint, self._leaves = {}, {}
        self._known, self._rewritten = {}, {}       # leaf -> what it was found equal to
        self._upper, self._unequal = {}, set()      # polynomial without number -> greatest value; polynomials not 0

    def __deepcopy__(self, memo):
        return self

    # -- leaves

    def symbol(self, hint, source=None):
        """A size of an input: an int where 0 or 1 is specialised, else a SymInt of that hint."""
        low = 2 if self.specialize_zero_one else 0
        value = self._by_hint.get(hint) if self.duck_shape else None
        if value is None:
            if hint < low:
                value = hint
            else:
                value = self._by_hint[hint] = self._leaf("s", hint, low, source)
        self.inputs.append((source, value))
        return value

    def fresh(self, hint=None, source=None, low=0):
        """A size that no expression of the inputs' gives, as that of a result; None: its value depends on data."""
        return self._leaf("u", hint, low, source)

    def _leaf(self, letter, hint, low, source):
        name = f"{letter}{len(self._leaves)}"
        leaf = self._leaves[name] = Leaf(self, name, hint, low, source, letter == "s")
        return SymInt(as_poly(leaf), self, hint)

    # -- answers

    def _rewrite(self, expr, without_mod=False):
        """expr with leaves that are known replaced by what they equal; remainders may be written as divisions."""
        if not self._known and not without_mod:
            return expr
        memo = self._rewritten.setdefault(without_mod, {})
        found = memo.get(expr)
        if found is None:
            found = constant(0)
            for product, factor in expr.terms.items():
                term = constant(factor)
                for atom, power in product:
                    term = mul(term, raised(self._rewrite_atom(atom, without_mod), power))
                found = add(found, term)
            memo[expr] = found
        return found

    def _rewrite_atom(self, atom, without_mod):
        if type(atom) is Leaf:
            known = self._known.get(atom)
            return as_poly(atom) if known is None else self._rewrite(known, without_mod)
        if atom.name in ("floordiv", "mod", "max", "min"):
            a, b = [self._rewrite(x, without_mod) for x in atom.args]
            if atom.name in ("max", "min"):
                return extreme(atom.name, a, b)
            if b.number != 0:
                if atom.name == "floordiv":
                    return floordiv(a, b)
                return add(a, mul(b, floordiv(a, b)), -1) if without_mod else mod(a, b)
        return as_poly(atom)

    def decide(self, name, a, b):
        """Whether a relation of two polynomials holds for all leaves, given what is known; None: that is open."""
        if name == "ne":
            found = self.decide("eq", a, b)
            return None if found is None else not found
        d = self._rewrite(add(a, b, -1))
        if name == "lt":
            d = add(d, constant(1))
        low, high = bounds_of(d)
        if name == "eq":
            if d.number is not None:
                return d.number == 0
            if (low is not None and low > 0) or (high is not None and high < 0):
                return False
            d = self._rewrite(d, True)
            if d.number is not None:
                return d.number == 0
            if d in self._unequal:
                return False
            if self._at_most(d) is True and self._at_most(scaled(d, -1)) is True:
                return True
            return False if self._at_most(add(d, constant(1))) or self._at_most(add(scaled(d, -1), constant(1))) \
                else None
        if high is not None and high <= 0:
            return True
        if low is not None and low > 0:
            return False
        return self._at_most(self._rewrite(d, True))

    def _at_most(self, d):
        """Whether d <= 0 follows from a guard."""
        number = d.terms.get((), 0)
        p = add(d, constant(-number))
        high, low = self._upper.get(p), self._upper.get(scaled(p, -1))
        if high is not None and high + number <= 0:
            return True
        return False if low is not None and number - low > 0 else None

    def specialize(self, x):
        """The value of a symbolic number at the hints, recorded as a guard."""
        if isinstance(x, SymBool):
            expr = x.expr if x.hint else sym_not(x).expr
        else:
            if isinstance(x, SymInt):
                known = self.decide("eq", x.expr, constant(x.hint))
                if known:
                    return x.hint
            expr = step("eq", x.expr, _expr(x.hint)) if x.hint == x.hint else step("ne", x.expr, x.expr)
        self._learn(expr)
        return x.hint

    def _learn(self, expr):
        if expr.name in ("eq", "ne", "lt", "le") and all(isinstance(a, Poly) for a in expr.args):
            if self.decide(expr.name, *expr.args):
                return
            self.guards.append(Guard(expr, *place()))
            d = self._rewrite(self._rewrite(add(expr.args[0], expr.args[1], -1)), True)
            if expr.name == "ne":
                self._unequal.update((d, scaled(d, -1)))
                return
            self._bound(add(d, constant(1)) if expr.name == "lt" else d)
            if expr.name == "eq":
                self._bound(scaled(d, -1))
                self._solve(self._rewrite(add(expr.args[0], expr.args[1], -1)))
        elif not any(guard.expr is expr for guard in self.guards):
            self.guards.append(Guard(expr, *place()))

    def _bound(self, d):
        number = d.terms.get((), 0)
        p = add(d, constant(-number))
        self._upper[p] = min(self._upper.get(p, -number), -number)

    def _solve(self, d):
        """Where d is 0 and a leaf stands in it alone, the newest such is replaced from now on."""
        found = None
        for product, factor in d.terms.items():
            if factor in (1, -1) and len(product) == 1 and product[0][1] == 1 and type(product[0][0]) is Leaf:
                leaf = product[0][0]
                rest = poly({p: -f * factor for p, f in d.terms.items() if p != product})
                if leaf not in rest.atoms() and (found is None or leaf.serial > found[0].serial):
                    found = leaf, rest
        if found is not None:
            self._known[found[0]] = found[1]
            self._rewritten = {}

    # -- other values

    def _values(self, values):
        if not hasattr(values, "items"):
            values = list(values)
            if len(values) != len(self.inputs):
                raise ValueError(f"expected a value for each of {len(self.inputs)} inputs, got {len(values)}")
            found = {}
            for (_, value), given in zip(self.inputs, values):
                if isinstance(value, SymInt):
                    found.setdefault(value.expr.atoms()[0], given)
            return found
        return {self._leaves[key] if isinstance(key, str) else key: given for key, given in values.items()}

    def failures(self, values):
        """The first conditions that other values of the inputs, in order or by leaf, do not fulfil, as texts."""
        found = []
        leaves = self._values(values)
        if not hasattr(values, "items"):
            for (source, value), given in zip(self.inputs, values):
                expected = leaves[value.expr.atoms()[0]] if isinstance(value, SymInt) else value
                if given != expected:
                    found.append(f"{source} == {value}")
        for leaf in {value.expr.atoms()[0]: None for _, value in self.inputs if isinstance(value, SymInt)}:
            if leaf in leaves and leaves[leaf] < leaf.low:
                found.append(f"{leaf} >= {leaf.low}")
        if found:
            return found
        for guard in self.guards:
            if all(leaf in leaves for leaf in guard.expr.atoms()) and not self.evaluate(guard.expr, leaves):
                return [repr(guard)]        # what later ones divide by may be 0 then
        return found

    def check(self, values):
        """Whether what was computed holds for other values of the inputs.

        Parameters
        ----------
        values : sequence of int or dict
            A value for each of ``inputs``, or values by the name of the leaf or by the leaf. A guard on a
            leaf without a value is not asked: see ``Guard.is_deferred``.
        """
        return not self.failures(values)

    def evaluate(self, x, values):
        """The value of a symbolic number, or of each in a tuple, at other values of the leaves."""
        if isinstance(x, (tuple, list)):
            return type(x)([self.evaluate(item, values) for item in x])
        if isinstance(x, _Number):
            x = x.expr
        if not isinstance(x, Expr):
            return x
        values = self._values(values)

        def value(leaf):
            if leaf not in values:
                raise KeyError(f"no value was given for {leaf}")
            return values[leaf]
        return x.fold(value, lambda function, args: function(*args))


keep_symbols(SymInt, SymFloat, SymBool)
