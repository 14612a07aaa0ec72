"""What containers find and compare by identity, by ``==`` and by hashes: the result is eager's whichever objects a call
gets, in any order of calls."""
import collections
import dataclasses
import enum
import itertools
import operator

import pytest
from test_guards import Watched, X

import ptcore as pt
from ptcore import nn


class Own:
    """Compared by what is in it."""

    def __init__(self, k):
        self.k = k

    def __eq__(self, other):
        return isinstance(other, Own) and self.k == other.k

    def __hash__(self):
        return hash(self.k)


@dataclasses.dataclass(frozen=True)
class Data:
    k: int


class Letter(enum.Enum):
    A, B, C = 1, 2, 3


def functions(n):
    return [lambda t: t * 2 for _ in range(n)]


Pair = collections.namedtuple("Pair", "a b")
F = functions(4)                        # of one code
M = [nn.Linear(4, 4) for _ in range(4)]
T = [pt.full((4,), float(k)) for k in range(4)]
OWN, DATA, LETTERS = [Own(k) for k in range(4)], [Data(k) for k in range(4)], [*Letter, Letter.A]
KINDS = {"functions": F, "modules": M, "tensors": T, "own": OWN, "data": DATA, "letters": LETTERS,
         "same": [Own(1), Own(2), Own(1), Own(1)], "tuples": [(f, Data(1)) for f in F],
         "pairs": [Pair(Own(1), f) for f in F[:3]] + [Pair(Own(1), F[0])]}
TABLES = {name: {v: k + 2.0 for k, v in enumerate(kind[:2])} for name, kind in KINDS.items()}
SETS, PAIRS = {name: set(table) for name, table in TABLES.items()}, {name: kind[:2] for name, kind in KINDS.items()}


def missing(x, y, kind):
    try:
        return x * TABLES[kind][y]
    except KeyError:
        return -x


def index(x, y, kind):
    try:
        return x * (PAIRS[kind].index(y) + 2) - [*PAIRS[kind], y].index(y, 1)
    except ValueError:
        return -x


def removed(x, y, kind):
    mine = [*PAIRS[kind], y]
    mine.remove(y)
    return x * sum([k for k, v in enumerate(mine) if v is PAIRS[kind][0]]) + len(mine)


def dropped(x, y, kind):
    first, second = dict(TABLES[kind]), set(PAIRS[kind])
    second.discard(y)
    return x * first.pop(y, 7.0) + len(first) + len(second)


def a_dict(x, y, kind):
    one, two = PAIRS[kind]
    return x * {one: 2.0, two: 3.0}.get(y, 5.0) + len({y: 1, one: 2}) + len(dict.fromkeys([one, y, two]))


def within(x, y, kind):
    one, two = PAIRS[kind]
    table = {1: one, 2: two}
    return x * ((y in table.values()) + 2 * ((2, y) in table.items()) + 4 * (y in TABLES[kind].keys())
                + 8 * (y in (one, two)) + 16 * (y in collections.deque([two])))


def one_of(x, y, kind):
    return x * ([y, 1] == [PAIRS[kind][0], 1]) + ((1, y) != (1, PAIRS[kind][1])) + ({"a": y} == {"a": PAIRS[kind][0]})


HASHED = [lambda x, y, kind: x * TABLES[kind].get(y, 7.0), lambda x, y, kind: x * (y in TABLES[kind]),
          lambda x, y, kind: x * (y in SETS[kind]), missing, dropped, a_dict,
          lambda x, y, kind: x * len({y, *PAIRS[kind]}) + len({y} & {PAIRS[kind][0]}),
          lambda x, y, kind: x * len({*PAIRS[kind]} | {y}),
          lambda x, y, kind: x * len(dict.fromkeys([PAIRS[kind][0], y]))]
COMPARED = [lambda x, y, kind: x * (y in PAIRS[kind]), index, removed, within, one_of,
            lambda x, y, kind: x * PAIRS[kind].count(y) + [y, *PAIRS[kind]].count(y),
            lambda x, y, kind: x * len(list(itertools.groupby([PAIRS[kind][0], y]))),
            lambda x, y, kind: x * operator.eq(PAIRS[kind][0], y), lambda x, y, kind: (x, {y: 1}, {(y, 1): y})]


@pytest.mark.parametrize(("f", "kind"), [(f, kind) for kind in KINDS
                                         for f in (HASHED if kind == "tensors" else HASHED + COMPARED)])
@pytest.mark.parametrize("backwards", [False, True])
def test_one_of_several(f, kind, backwards):
    watched = Watched(f, recompile_limit=20)
    order = KINDS[kind][::-1] if backwards else KINDS[kind]
    for y in (*order, *order):
        watched(X, y, kind)
    seen = watched.captures
    for y in order:
        watched(X, y, kind)
    assert watched.captures == seen


def test_what_an_object_is_compared_by_changes():
    one, two = Own(1), Own(2)
    watched = Watched(lambda x, y: x * {one: 2.0}.get(y, 3.0) + len({one, y}) + (y in [one]) + [one].count(y))
    for k in (2, 1, 1, 2, 3, 1):
        two.k = k
        watched(X, two)
    assert watched.eager == 0


SAME = [[1, 2], [1, 3], (1, 2), (1, 2, 3), [], (), {"a": 1}, {"a": 2}, {"b": 1}, {}, {1, 2}, {2, 1}, {1}, None, "12",
        1.0, [1.0, 2], [True, 2], [[1], (2, [3])], [[1], (2, [4])], collections.OrderedDict(a=1),
        collections.deque([1, 2]), pt.Size([1, 2]), Pair(1, 2), range(1, 3)]


@pytest.mark.parametrize("outside", [False, True])
def test_containers_are_compared(outside):
    if outside:
        watched = Watched(lambda x, a, b: (x, a == b, a != b), recompile_limit=10**6)
        for a, b in itertools.product(SAME, SAME):
            watched(X, a, b)
    else:
        watched = Watched(lambda x, a: (x, [a == b for b in (
            [1, 2], (1, 2), [], (), {"a": 1}, {1, 2}, [[1], (2, [3])], collections.deque([1, 2]), None, "12")]),
            recompile_limit=10**6)
        for a in (*SAME, *SAME):
            watched(X, a)
    assert watched.eager == 0


def test_functions_in_containers_are_compared():
    watched = Watched(lambda x, a, b: (x, a == b, a != b), recompile_limit=20)
    f, g = functions(2)
    for a, b in (((f, 1), (g, 1)), ((f, 1), (f, 1)), ((g, 1), (g, 1)), ((f, 1), (f, 2)), ((f, 1), (g, 1))):
        watched(X, a, b)(X, list(a), list(b))(X, {"a": a}, {"a": b})
    assert watched.eager == 0


def test_elements_that_are_tensors_are_compared():
    """One of one number by its value, after its identity."""
    one, two = pt.ones(1), pt.ones(1) * 2
    watched = Watched(lambda x, y: x * 2 if [x] == [y] else -x)
    watched(one, one)(one, two)(two, two)(one, pt.ones(1))(two, one)
    assert watched.eager == 0


def test_keys_whose_methods_read_a_number_that_varies():
    """Native code calls these methods, and no guard says what they make of a symbol."""
    state, values = {"s": 1.0}, [1.0]

    class Key:
        def __hash__(self):
            return int(state["s"])

        def __eq__(self, other):
            return state["s"] == 1.0

    def program(x):
        return len(values), {1: "a", 3: "b"}.get(Key())
    compiled = pt.compile(program)
    for s in (1.0, 1.0, 2.0, 1.0, 3.0, 1.0):
        state["s"] = s
        if s == 2.0:
            values.append(1.0)              # the first capture does not hold any more
        assert compiled(pt.ones(2)) == program(pt.ones(2))
