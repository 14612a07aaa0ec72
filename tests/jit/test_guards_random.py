"""Programs of random reads over a tree of objects, containers, numbers, tensors and functions, part of which is changed
at random between calls: the compiled result is eager's."""
import copy
import os

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ptcore as pt
from ptcore import nn
from ptcore.jit.capture import guards

EXAMPLES = int(os.environ.get("PTCORE_GUARD_EXAMPLES", "1000"))
KEYS = ("a", "b", "c")


def add(x, k):
    return x + k


def scale(x, k):
    return x * (k + 1)


def shift(x, k=2):
    return x - k


FUNCTIONS = (add, scale, shift)


def closed(kind, held):
    """A function with a cell, one of few codes."""
    def call(x, k):
        return held(x, k) if callable(held) else x * held

    def default(x, k, inner=held):
        return x + (inner(x, k) if callable(inner) else inner)
    return (call, default, lambda x, k: x - call(x, k))[kind]


class Thing:
    kind = 1

    def __init__(self, a, b, c):
        self.a, self.b, self.c = a, b, c

    def apply(self, x):
        return x + self.kind

    @property
    def size(self):
        return 3 if self.kind > 1 else 2


class Other(Thing):
    def apply(self, x):
        return x * 2

    def __len__(self):
        return 5


class Layer(nn.Module):
    kind = 2

    def __init__(self, a, b, c):
        super().__init__()
        self.a, self.b, self.c = a, b, c

    def forward(self, x):
        return x * 3 if self.training else x + 1

    def apply(self, x):
        return self(x)


def leaf():
    return st.one_of(st.integers(-2, 3), st.booleans(), st.sampled_from([0.5, -0.0, 0.0, 2.5, "a", "xy", None]),
                     st.sampled_from(FUNCTIONS), st.builds(closed, st.integers(0, 2), st.sampled_from(
                         [1, 2, 3, 2.5, *FUNCTIONS])), st.builds(lambda n, d, g: tensor(n, d, g), st.integers(1, 3),
                                                           st.sampled_from(["float32", "float64", "int64"]),
                                                           st.booleans()))


def tensor(n, dtype, grad):
    made = pt.arange(n).to(getattr(pt, dtype)) + 1
    return made.requires_grad_() if grad and dtype.startswith("float") else made


def tree():
    return st.recursive(leaf(), lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.tuples(inner, inner), st.dictionaries(st.sampled_from(KEYS), inner, max_size=3),
        st.builds(lambda cls, a, b, c: cls(a, b, c), st.sampled_from([Thing, Other, Layer]), inner, inner, inner)),
        max_leaves=8)


# -- the program ------------------------------------------------------------------------------------------------------

def step(value, key, index):
    """One step down from a value, whatever it is."""
    if isinstance(value, (list, tuple)):
        return value[index % len(value)] if value else None
    if isinstance(value, dict):
        return value.get(key) if index % 2 else (value[key] if key in value else 7)
    if isinstance(value, Thing) or isinstance(value, Layer):
        return getattr(value, key) if hasattr(value, key) else None
    return value


def fold(x, value, depth=0):
    """Everything that is in a value, put into x."""
    if depth > 4:
        return x
    if isinstance(value, pt.Tensor):
        return x * value.sum() if value.dtype.is_floating_point and not value.requires_grad else x + value.sum()
    if value is None:
        return x * 2
    if isinstance(value, bool):
        return -x if value else x
    if isinstance(value, str):
        return x + len(value)
    if isinstance(value, (int, float)):
        return x / value if value else x + (1 if str(value) == "-0.0" else 0)
    if isinstance(value, dict):
        for name, item in value.items():
            x = fold(x + len(name), item, depth + 1)
        return x
    if isinstance(value, (list, tuple)):
        for item in value:
            x = fold(x, item, depth + 1)
        return x + len(value)
    if callable(value) and not isinstance(value, nn.Module):
        return value(x, 1)
    return value.apply(fold(x, value.a, depth + 1)) + value.kind


READS = ("fold", "len", "truth", "same", "contains", "call", "type", "sum", "items", "which")


def program(x, root, reads):
    for kind, path in reads:
        value = root
        for key, index in path:
            value = step(value, key, index)
        if kind == "fold":
            x = fold(x, value)
        elif kind == "len":
            x = x + (len(value) if isinstance(value, (list, tuple, dict, str, Other)) else 1)
        elif kind == "truth":
            x = x * 2 if not isinstance(value, pt.Tensor) and value else x + 1
        elif kind == "same":
            x = x + 1 if value is root[0] else x - 1
        elif kind == "contains":
            x = x + (2 in value if isinstance(value, (list, tuple)) and not any(isinstance(v, pt.Tensor) for v in value)
                     else "a" in value if isinstance(value, dict) else 0)
        elif kind == "call":
            x = value.apply(x) if isinstance(value, (Thing, Layer)) else x
        elif kind == "which":
            x = x + ({f: k for k, f in enumerate(FUNCTIONS)}.get(value, 5) if callable(value) else 7)
        elif kind == "type":
            x = x + len(type(value).__name__)
        elif kind == "sum":
            x = x + sum([v for v in value if type(v) is int]) if isinstance(value, (list, tuple)) else x
        elif isinstance(value, dict):
            x = x + len([k for k, v in sorted(value.items(), key=lambda kv: kv[0]) if v is None])
    return x


# -- changes ----------------------------------------------------------------------------------------------------------

def places(value, found, met):
    """All that can be written to in a tree."""
    if id(value) in met:
        return found
    met.add(id(value))
    if isinstance(value, (list, dict, Thing, Layer, pt.Tensor)):
        found.append(value)
    for item in (value if isinstance(value, (list, tuple)) else value.values() if isinstance(value, dict)
                 else [value.a, value.b, value.c] if isinstance(value, (Thing, Layer)) else ()):
        places(item, found, met)
    return found


def change(where, key, index, new, kind):
    if isinstance(where, list):
        if kind % 3 == 0:
            where.append(new)
        elif where and kind % 3 == 1:
            where[index % len(where)] = new
        elif where:
            where.pop()
    elif isinstance(where, dict):
        if kind % 2 == 0:
            where[key] = new
        else:
            where.pop(key, None)
    elif isinstance(where, pt.Tensor):
        if kind % 3 == 0:
            where.data = where.data + 1
        elif kind % 3 == 1 and where.dtype.is_floating_point:
            where.requires_grad_(not where.requires_grad)
        else:
            where.data = where.data.repeat(2)
    elif isinstance(where, Layer):
        if kind % 2:
            where.train(not where.training)
        elif not isinstance(new, pt.Tensor):
            object.__setattr__(where, key, new)
    elif kind % 3 == 0:
        where.__class__ = Other if type(where) is Thing else Thing
    elif kind % 3 == 1:
        where.kind = index + 1
    else:
        setattr(where, key, new)


def outcome(f, *args):
    try:
        return f(*args)
    except (RuntimeError, TypeError, ValueError, AttributeError, IndexError, ZeroDivisionError) as error:
        return type(error)


def agree(a, b):
    if isinstance(b, type):
        assert a is b
        return
    assert a.dtype is b.dtype and a.shape == b.shape and a.requires_grad == b.requires_grad
    np.testing.assert_array_equal(a.detach().numpy(), b.detach().numpy())


PATH = st.lists(st.tuples(st.sampled_from(KEYS), st.integers(0, 2)), max_size=3).map(tuple)


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(root=st.lists(tree(), min_size=1, max_size=3),
       reads=st.lists(st.tuples(st.sampled_from(READS), PATH), min_size=1, max_size=4).map(tuple),
       changes=st.lists(st.tuples(st.integers(0, 50), st.sampled_from(KEYS), st.integers(0, 2), tree(),
                                  st.integers(0, 5), st.booleans()), min_size=1, max_size=5),
       inside=st.booleans(), cls=st.integers(1, 3), slow=st.sampled_from([0, 4]))
@pytest.mark.filterwarnings("ignore:compile")
def test_random_programs(root, reads, changes, inside, cls, slow):
    kept, slow_before = Thing.kind, guards.SLOW_CHECKS
    guards.SLOW_CHECKS = slow
    x = pt.tensor([1.0, -2.0, 0.5])
    if inside:
        compiled = pt.compile(lambda x: program(x, root, reads), backend="eager")
    else:
        compiled = pt.compile(lambda x, root: program(x, root, reads), backend="eager")
    given_ = (x,) if inside else (x, root)
    try:
        agree(outcome(compiled, *given_), outcome(program, x, root, reads))
        for place, key, index, new, kind, whole in changes:
            found = places(root, [], set())
            if whole:
                Thing.kind = cls
            where = found[place % len(found)]
            if where is not new:
                change(where, key, index, copy.copy(new) if isinstance(new, list) else new, kind)
            agree(outcome(compiled, *given_), outcome(program, x, root, reads))
    finally:
        Thing.kind, guards.SLOW_CHECKS = kept, slow_before
