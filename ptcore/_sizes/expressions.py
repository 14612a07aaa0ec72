"""Expressions of symbolic numbers, which ``_symbolic`` gives operators.

An int is a polynomial with integer coefficients over atoms: leaves, which a ``ShapeEnv`` makes, and what a floor
division, a remainder, a maximum or another function of such ints gave. Sums and products are multiplied out and
sorted, so that equal ones are one object wherever they came from. Expressions are immutable and made once.
A float or a bool is a tree of functions over them.
"""
import math
import operator
import re
import weakref
from itertools import count as _counter

from ptcore._node import user_at

# What a step is called in an expression -> what computes it, of symbolic numbers as of others; see _symbolic.
FUNCTIONS = {}

_made = weakref.WeakValueDictionary()
_serial = _counter()


def _key(x):
    return (type(x), x.hex()) if type(x) is float else (type(x), x)


class Expr:
    """An expression: made once, so that equal ones are identical."""

    __slots__ = ("__weakref__", "serial")

    def __deepcopy__(self, memo):
        return self

    def __copy__(self):
        return self

    def __reduce__(self):
        raise TypeError("a symbolic expression belongs to the ShapeEnv that made its leaves and cannot be pickled")

    def atoms(self):
        """The leaves in it, in the order of their making."""
        found, seen, todo = [], set(), [self]
        while todo:
            x = todo.pop()
            if id(x) in seen or not isinstance(x, Expr):
                continue
            seen.add(id(x))
            if type(x) is Leaf:
                found.append(x)
            todo.extend(x.parts())
        return sorted(found, key=lambda leaf: leaf.serial)

    def fold(self, leaf, apply, memo=None):
        """The expression built anew: ``leaf(atom)`` for each leaf, ``apply(function, arguments)`` for each step.

        The functions are those of ``operator`` and ``math`` and this module's ``sym_max``, ``sym_min``, ``sym_ite``,
        ``sym_float`` and ``sym_sqrt``. Numbers stand for themselves. Each part is built once.
        """
        memo = {} if memo is None else memo
        found = memo.get(self)
        if found is None:
            found = memo[self] = self._fold(leaf, apply, memo)
        return found


class Leaf(Expr):
    """A number that an environment gave a name, as the size of an input."""

    __slots__ = ("env", "hint", "is_input", "low", "name", "source")

    def __init__(self, env, name, hint, low, source, is_input):
        self.serial = next(_serial)
        self.env, self.name, self.hint, self.low, self.source, self.is_input = env, name, hint, low, source, is_input

    def parts(self):
        return ()

    def bounds(self):
        return self.low, None

    def _fold(self, leaf, apply, memo):
        return leaf(self)

    def __repr__(self):
        return self.name


class Op(Expr):
    """What a function of expressions and numbers gave."""

    __slots__ = ("args", "name")

    def parts(self):
        return self.args

    def bounds(self):
        """The least and the greatest value an int can have; None: not known."""
        rule = _BOUNDS.get(self.name)
        return rule(*self.args) if rule is not None else (None, None)

    def _fold(self, leaf, apply, memo):
        return apply(FUNCTIONS[self.name], tuple([a.fold(leaf, apply, memo) if isinstance(a, Expr) else a
                                                   for a in self.args]))

    def __repr__(self):
        args = [str(a) for a in self.args]
        sign = _SIGNS.get(self.name)
        if sign is None:
            return f"{self.name}({', '.join(args)})"
        if self.name not in ("eq", "ne", "lt", "le"):
            # Python would read "a // 2*b" as "(a // 2)*b", and "2*a ** b" as "2*(a**b)".
            bare = {"floordiv": 1, "mod": 1, "truediv": 1, "mul": 1, "pow": 0}.get(self.name, 2)
            args = [a if _ALONE.fullmatch(a) or (k < bare and " " not in a) else f"({a})" for k, a in enumerate(args)]
        return f" {sign} ".join(args) if len(args) == 2 else f"{sign}{args[0]}"


class Poly(Expr):
    """A sum of products: ``terms`` maps products, sorted tuples of (atom, power), to their factors."""

    __slots__ = ("terms",)

    def parts(self):
        return [atom for product in self.terms for atom, _ in product]

    @property
    def number(self):
        """Its value if it is a number, else None."""
        if not self.terms:
            return 0
        return self.terms.get(()) if len(self.terms) == 1 else None

    def _fold(self, leaf, apply, memo):
        total = None
        for product, factor in sorted(self.terms.items(), key=lambda term: not term[0]):
            value = None
            for atom, power in product:
                one = atom.fold(leaf, apply, memo)
                one = one if power == 1 else apply(operator.pow, (one, power))
                value = one if value is None else apply(operator.mul, (value, one))
            below = total is not None and factor < 0
            factor = -factor if below else factor
            if value is None:
                value = factor
            elif factor == -1:
                value = apply(operator.neg, (value,))
            elif factor != 1:
                value = apply(operator.mul, (value, factor))
            total = value if total is None else apply(operator.sub if below else operator.add, (total, value))
        return 0 if total is None else total

    def __repr__(self):
        words = []
        for product, factor in sorted(self.terms.items(), key=lambda term: not term[0]):
            size, alone = abs(factor), len(self.terms) == len(product) == factor == 1 == product[0][1]
            parts = [f"({a})" if " " in a and not alone else a for a in [str(atom) for atom, _ in product]]
            text = "*".join([a if p == 1 else f"{a}**{p}" for a, (_, p) in zip(parts, product)])
            text = str(size) if not text else text if size == 1 else f"{size}*{text}"
            words.append((" - " if factor < 0 else " + ") + text if words else ("-" if factor < 0 else "") + text)
        return "".join(words) or "0"


def step(name, *args):
    key = (name, *[_key(a) for a in args])
    found = _made.get(key)
    if found is None:
        found = Op()
        found.serial, found.name, found.args = next(_serial), name, args
        found = _made.setdefault(key, found)
    return found


def poly(terms):
    terms = {product: factor for product, factor in terms.items() if factor}
    key = (Poly, *sorted(terms.items(), key=_order))
    found = _made.get(key)
    if found is None:
        found = Poly()
        found.serial, found.terms = next(_serial), dict(key[1:])
        found = _made.setdefault(key, found)
    return found


def _order(term):
    return [(atom.serial, power) for atom, power in term[0]]


def constant(n):
    return poly({(): n})


def as_poly(atom):
    return poly({((atom, 1),): 1})


def add(a, b, factor=1):
    terms = dict(a.terms)
    for product, k in b.terms.items():
        terms[product] = terms.get(product, 0) + factor * k
    return poly(terms)


def _times(p, q):
    powers = dict(p)
    for atom, power in q:
        powers[atom] = powers.get(atom, 0) + power
    return tuple(sorted(powers.items(), key=lambda item: item[0].serial))


def mul(a, b):
    terms = {}
    for p, j in a.terms.items():
        for q, k in b.terms.items():
            product = _times(p, q)
            terms[product] = terms.get(product, 0) + j * k
    return poly(terms)


def scaled(a, k):
    return poly({product: k * factor for product, factor in a.terms.items()})


def raised(a, n):
    result = constant(1)
    for _ in range(n):
        result = mul(result, a)
    return result


def _without(p, q):
    """The product p over the product q, or None."""
    powers = dict(p)
    for atom, power in q:
        left = powers.get(atom, 0) - power
        if left < 0:
            return None
        powers[atom] = left
    return tuple([(atom, powers[atom]) for atom, _ in p if powers[atom]])


def _split(a, b):
    """(q, r) with a = q*b + r, as many terms as divide in q."""
    lead, k = next(iter(b.terms.items())) if len(b.terms) == 1 else max(b.terms.items(), key=_order)
    q, r, left = {}, {}, a
    for _ in range(64):
        found = None
        for product, factor in left.terms.items():
            rest = _without(product, lead)
            if rest is not None and factor // k:
                found = rest, factor // k
                break
        if found is None:
            break
        q[found[0]] = q.get(found[0], 0) + found[1]
        left = add(left, mul(poly(dict([found])), b), -1)
    r = left
    if len(b.terms) > 1 and r.terms:            # of a sum, only what divides without a rest is taken out
        return constant(0), a
    return poly(q), r


def _common(a, b):
    """The number and the product that divide every term of both."""
    number, product = 0, None
    for x in (a, b):
        for p, factor in x.terms.items():
            number = math.gcd(number, factor)
            if product is None:
                product = dict(p)
            else:
                p = dict(p)
                product = {atom: min(power, p[atom]) for atom, power in product.items() if atom in p}
    return number, tuple(sorted((product or {}).items(), key=lambda item: item[0].serial))


def _reduced(a, number, product):
    return poly({_without(p, product): factor // number for p, factor in a.terms.items()})


def floordiv(a, b):
    """a // b, of which the caller knows that b is not 0."""
    if a.number is not None and b.number is not None:
        return constant(a.number // b.number)
    q, r = _split(a, b)
    if not r.terms:
        return q
    r, b = (lambda number, product: (_reduced(r, number, product), _reduced(b, number, product)))(*_common(r, b))
    if b.number == 1:
        return add(q, r)
    if b.number == -1:
        return add(q, r, -1)
    if b.number is not None and b.number > 1:   # (x // m + k) // n is (x + k*m) // (m*n)
        inner = [(p, f) for p, f in r.terms.items() if p]
        if len(inner) == 1 and inner[0][1] == 1 and len(inner[0][0]) == 1 and inner[0][0][0][1] == 1:
            atom = inner[0][0][0][0]
            if type(atom) is Op and atom.name == "floordiv" and (atom.args[1].number or 0) > 0:
                m = atom.args[1].number
                return add(q, floordiv(add(atom.args[0], constant(r.terms.get((), 0) * m)), constant(m * b.number)))
        if len(b.terms) == 1 and () in r.terms:
            k = r.terms[()] // b.number
            q, r = add(q, constant(k)), add(r, constant(k * b.number), -1)
    if _least(b, 1):
        if _least(r, 0) and _least(add(b, r, -1), 1):
            return q
        if _least(scaled(r, -1), 1) and _least(add(b, r), 0):
            return add(q, constant(-1))
    return add(q, as_poly(step("floordiv", r, b)))


def mod(a, b):
    """a % b, of which the caller knows that b is not 0."""
    if a.number is not None and b.number is not None:
        return constant(a.number % b.number)
    _, r = _split(a, b)
    if not r.terms:
        return r
    number, product = _common(r, b)
    if product and not _least(poly({product: 1}), 1):
        product = ()
    r, b = _reduced(r, number, product), _reduced(b, number, product)
    scale = poly({product: number})
    if b.number in (1, -1):
        return constant(0)
    if b.number is not None:
        r = poly({p: factor % b.number for p, factor in r.terms.items()})
    if _least(b, 1) and _least(r, 0) and _least(add(b, r, -1), 1):
        return mul(r, scale)
    return mul(as_poly(step("mod", r, b)), scale)


def extreme(name, a, b):
    d = add(a, b, -1)
    if _least(d, 0):
        return a if name == "max" else b
    if _least(scaled(d, -1), 0):
        return b if name == "max" else a
    return as_poly(step(name, *sorted((a, b), key=lambda x: x.serial)))


def _least(a, bound):
    """Whether a is at least ``bound`` whatever its leaves are."""
    low = bounds_of(a)[0]
    return low is not None and low >= bound


def bounds_of(a):
    """(least, greatest) value of a polynomial; None where none is known."""
    low, high = _bounds_by_terms(a)
    if (low is None and high is None) or len(a.terms) == 1:
        return low, high
    if low is None or high is None:
        # Each atom is its least value and a rest of at least 0: no sign among the factors is one of the whole.
        moved = constant(0)
        for product, factor in a.terms.items():
            term = constant(factor)
            for atom, power in product:
                term = mul(term, raised(add(as_poly(atom), constant(atom.bounds()[0] or 0)), power))
            moved = add(moved, term)
        free = {atom for product in a.terms for atom, _ in product if atom.bounds()[0] is None}
        if not free:
            factors = [f for p, f in moved.terms.items() if p]
            if low is None and all(f > 0 for f in factors):
                low = moved.terms.get((), 0)
            if high is None and all(f < 0 for f in factors):
                high = moved.terms.get((), 0)
    return low, high


def _bounds_by_terms(a):
    low = high = 0
    for product, factor in a.terms.items():
        least, most = 1, 1
        for atom, power in product:
            at = atom.bounds()
            for _ in range(power):
                least, most = _span(least, most, *at)
            if power % 2 == 0 and (least is None or least < 0):
                least = None
        if factor < 0:
            least, most = most, least
        low = None if low is None or least is None else low + factor * least
        high = None if high is None or most is None else high + factor * most
    return low, high


def _span(a, b, c, d):
    """The bounds of a product of numbers in [a, b] and [c, d]."""
    if None not in (a, b, c, d):
        ends = (a * c, a * d, b * c, b * d)
        return min(ends), max(ends)
    if a is not None and c is not None and a >= 0 and c >= 0:
        return a * c, None
    return None, None


def _floordiv_bounds(a, b):
    (low, high), (least, most) = bounds_of(a), bounds_of(b)
    if least is None or least < 1:
        return None, None
    if low is not None:
        low = low // least if low < 0 else low // most if most is not None else 0
    if high is not None:
        high = high // least if high >= 0 else high // most if most is not None else -1
    return low, high


def _mod_bounds(a, b):
    least, most = bounds_of(b)
    if least is None or least < 1:
        return None, None
    return 0, None if most is None else most - 1


def _max_bounds(a, b):
    (a, b), (c, d) = bounds_of(a), bounds_of(b)
    return (c if a is None else a if c is None else max(a, c)), None if b is None or d is None else max(b, d)


def _min_bounds(a, b):
    (a, b), (c, d) = bounds_of(a), bounds_of(b)
    return None if a is None or c is None else min(a, c), (d if b is None else b if d is None else min(b, d))


_BOUNDS = {"floordiv": _floordiv_bounds, "mod": _mod_bounds, "max": _max_bounds, "min": _min_bounds}
_SIGNS = {"floordiv": "//", "mod": "%", "pow": "**", "and_": "&", "or_": "|", "xor": "^", "truediv": "/", "add": "+",
          "sub": "-", "mul": "*", "neg": "-", "eq": "==", "ne": "!=", "lt": "<", "le": "<="}


_ALONE = re.compile(r"[\w.]+(\([\w.]*\))?")          # a name, a number, or a call of one of these


# -- conditions -------------------------------------------------------------------------------------------------------

def place():
    """The file and the line of the user's that asks."""
    return user_at() or ("", 0)


class Guard:
    """A condition on the leaves under which what was computed holds, and the file and line that asked for it."""

    __slots__ = ("expr", "file", "line")

    def __init__(self, expr, file, line):
        self.expr, self.file, self.line = expr, file, line

    @property
    def text(self):
        """The condition as Python would write it."""
        return str(self.expr)

    @property
    def is_deferred(self):
        """Whether it is about a size that no input has: it can only be asked while the ops run."""
        return not all(leaf.is_input for leaf in self.expr.atoms())

    def __repr__(self):
        return f"{self.text} ({self.file}:{self.line})"
