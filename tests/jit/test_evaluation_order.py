"""Captured programs evaluate their parts in the order of the language, and as often."""
import itertools

import pytest

import ptcore as pt
from ptcore.jit import compiled

K = 100.0


class Manager:
    def __init__(self, value):
        self.value = value

    def __enter__(self):
        return self.value

    def __exit__(self, *error):
        return False


class Thing:
    def __init__(self, log):
        self.__dict__["log"] = log

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        self.log.append(name)
        return lambda *args: args

    def twice(self, v):
        return v * 2


class Key:
    def __init__(self, n, log):
        self.n, self.log = n, log

    def __hash__(self):
        self.log.append(("hash", self.n))
        return self.n % 2

    def __eq__(self, other):
        self.log.append(("eq", self.n, other.n))
        return self.n == other.n


class Base:
    def value(self):
        return 1


class Derived(Base):
    def value(self):
        try:
            return (lambda: super().value())()
        except RuntimeError as error:
            return str(error)


def keywords(a, b=2, /, c=3, *, e=4, **more):
    return a, b, c, e, more


# -- programs: ``t(name, value)`` notes the name and gives the value ---------------------------------------------------

def targets(x, log, t):
    found, i = [0, 0, 0, 0], 0
    found[i], i = 5, 1
    i, found[i] = 2, 7
    (found[i], i), *found[i + 1:] = (9, 0), 4, 5
    return x * found[0] + i, found


def targets_of_loops(x, log, t):
    found, i = [0, 0, 0, 0], 0
    for found[i], i in ((5, 1), (6, 2), (7, 3)):
        x = x + found[0] * i
    return x, found


def targets_of_contexts(x, log, t):
    found, pair = [0, 1], [1, 2]
    with Manager(3) as found[0], Manager(found[0] + 1) as found[1]:
        x = x * found[1]
    with Manager((5, 6)) as (pair[0], pair[1]), Manager(sum(pair)) as c:
        return x + c, found


def targets_before_an_error(x, log, t):
    found, a = [0], 7
    try:
        a, (found[0], found[1]) = 1, 5
    except TypeError:
        log.append(a)
    try:
        found[0], (a, found[0]) = 1, (1, 2, 3)
    except ValueError:
        log.append(found)
    return x, a


def unpacked_iterators(x, log, t):
    numbers = itertools.count()
    try:
        log[0], log[1] = numbers
    except ValueError:
        log.append(next(numbers))
    return x


def decorators(x, log, t):
    @t("first", lambda f: f)
    @t("second", lambda f: f)
    def h(v, k=t("default", 2.0), *, j=t("keyword", 3.0)):  # noqa: B008
        return v * k + j
    return h(x)


def annotations(x, log, t):
    def h(v: t("annotation", int)) -> t("result", int):
        "What it says."
        return v * 2
    log.append(h.__doc__)
    return h(x)


def annotated_targets(x, log, t):
    t("object", {})["k"]: t("annotation", int)
    t("object", {})[t("key", "k")]: int = t("value", 4)
    return x


def methods(x, log, t):
    o = Thing(log)
    o.absent(t("argument", 1))
    try:
        (1).absent(t("argument", 1))
    except AttributeError as error:
        log.append(str(error))

    def swapped():
        o.__dict__["twice"] = lambda v: v * 7
        return x
    return o.twice(swapped()), o.twice(x)


def global_beside_a_cell(x, log, t):
    K = 1.0

    def inner():
        def read():
            return K

        def other():
            global K
            return K
        return read(), other()
    return x * K, inner()


def keys(x, log, t):
    found = {Key(0, log): 1, Key(1, log): 2}
    found[Key(2, log)] = 3
    return x, found.get(Key(2, log)), Key(3, log) in found, len({Key(0, log), Key(2, log), Key(2, log)})


def super_of_a_lambda(x, log, t):
    return x, Derived().value()


def sorted_list(x, log, t):
    items = [3, 1, 2]
    items.sort(key=lambda v: log.append(len(items)) or v)
    try:
        items.sort(key=lambda v: items.append(1) or v)
    except ValueError as error:
        log.append(str(error))
    return x, items


def keywords_twice(x, log, t):
    for call in (lambda: keywords(1, c=2, **{"c": 3}), lambda: keywords(1, e=2, **{"e": 4}),
                 lambda: keywords(1, **{"z": 1}, **{"y": 2}, e=t("e", 1)), lambda: keywords(*[1], **{"c": 2})):
        try:
            log.append(call())
        except TypeError as error:
            log.append(str(error))
    return x


def spread_number(x, log, t):
    try:
        keywords(**1)
    except TypeError as error:
        log.append(str(error))
    return x


def names_of_functions(x, log, t):
    log.append((lambda: 0).__qualname__)
    return x


def depth_of_a_traceback(x, log, t):
    try:
        raise ValueError
    except ValueError as error:
        log.append(error.__traceback__.tb_next is None)
    return x


def repeated_list(x, log, t):
    return x, list(itertools.repeat([1, 2], 2)), list(itertools.repeat(x, x.shape[0]))


PROGRAMS = [targets, targets_of_loops, targets_of_contexts, targets_before_an_error, unpacked_iterators, decorators,
            annotations, annotated_targets, methods, global_beside_a_cell, keys, super_of_a_lambda, sorted_list,
            keywords_twice, spread_number, names_of_functions, depth_of_a_traceback, repeated_list]


def runs(program, x):
    log = []

    def t(name, value):
        log.append(name)
        return value
    return repr((program(x, log, t), log))


def noted(program):
    """The program as a function of its tensor, which returns its notes."""
    def noting(x):
        log = []

        def t(name, value):
            log.append(name)
            return value
        return program(x, log, t), log
    return noting


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
@pytest.mark.filterwarnings("ignore:compile")
def test_programs(program):
    f = pt.compile(noted(program))
    for n in (3, 3, 4, 2):
        x = pt.arange(1.0, n + 1)
        assert repr(f(x)) == runs(program, x)


@pytest.mark.parametrize("program", [targets, targets_of_loops, targets_of_contexts, decorators, methods])
def test_they_are_captured(program):
    before = compiled.counts["eager"]
    f = pt.compile(noted(program), fullgraph=True)
    assert repr(f(pt.ones(3))) == runs(program, pt.ones(3))
    assert compiled.counts["eager"] == before


@pytest.mark.parametrize("f", [lambda x: (x.shape[0], x * 2), lambda x: (x * 2, x.shape[0] + 1, x + 1),
                               lambda x: [x.shape, (x * x).sum()], lambda x: {"n": x.numel(), "y": x.exp()}])
@pytest.mark.parametrize("backend", ["cpu", "eager"])
def test_sizes_beside_results_with_gradients(f, backend):
    compiled_f = pt.compile(f, backend=backend)
    for n in (3, 4, 4, 5, 5, 3, 4):
        for grad in (True, False):
            x, y = (pt.arange(1.0, n + 1).requires_grad_(grad) for _ in range(2))
            found, expected = compiled_f(x), f(y)
            parts = [list(p.values()) if isinstance(p, dict) else list(p) for p in (found, expected)]
            for a, b in zip(*parts, strict=True):
                assert type(a) is type(b)
                if not isinstance(b, pt.Tensor):
                    assert a == b
                    continue
                assert a.tolist() == b.tolist() and a.requires_grad is b.requires_grad is grad
                if grad:
                    (a * a).sum().backward()
                    (b * b).sum().backward()
            if grad:
                assert x.grad.tolist() == y.grad.tolist()
