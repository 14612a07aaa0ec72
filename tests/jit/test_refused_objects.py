"""What a capture refuses: under ``fullgraph`` an error names the object, and the function itself runs otherwise."""
import array
import contextvars
import decimal
import itertools
import math
import random
import types
import weakref

import numpy as np
import pytest

import ptcore as pt
from ptcore.jit.compiled import CaptureError

X = pt.ones(2)


class Wide:
    def __index__(self):
        return 2

    def __float__(self):
        return 1.5


state = types.SimpleNamespace(
    amount=decimal.Decimal(2), steps=iter(range(99)), drawn=random.Random(3), array=np.array([1.0, 2.0]),
    proxy=types.MappingProxyType({"a": 1.0}), numbers=array.array("d", [1.0]), memory=bytearray(b"a"),
    made=(k for k in range(9)), variable=contextvars.ContextVar("variable", default=1.0),
    ref=weakref.ref(X), log=[], product=itertools.product([1, 2], [3]))
state.push, state.draw = state.log.append, state.drawn.random
PROGRAMS = {
    "Decimal": (lambda x: x * float(state.amount + 1), "Decimal"),
    "next": (lambda x: x * next(state.steps), "state.steps"),
    "bound next": (lambda x: x * state.steps.__next__(), "state.steps"),
    "generator": (lambda x: x * sum(state.made), "state.made"),
    "product": (lambda x: x * len(list(state.product)), "state.product"),
    "random": (lambda x: x * state.drawn.random(), "state.drawn"),
    "bound random": (lambda x: x * state.draw(), "state.draw"),
    "append": (lambda x: state.log.append(1) or x, "state.log"),
    "bound append": (lambda x: state.push(1) or x, "state.push"),
    "truth of an array": (lambda x: x if state.array[:1] is None or state.array else -x, "state.array"),
    "element of an array": (lambda x: x * float(state.array[0]), "state.array"),
    "proxy": (lambda x: x * state.proxy["a"], "state.proxy"),
    "truth of a proxy": (lambda x: x if state.proxy else -x, "state.proxy"),
    "array": (lambda x: x * state.numbers[0], "state.numbers"),
    "bytes": (lambda x: x if state.memory else -x, "state.memory"),
    "variable": (lambda x: x * state.variable.get(), "state.variable"),
    "weak reference": (lambda x: x if state.ref() is None else -x, "ReferenceType"),
    "float by C": (lambda x: x * np.sqrt(Wide()), "sqrt"),
    "floor by C": (lambda x: x * math.floor(Wide()), "Wide"),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_fullgraph_names_it(name):
    f, match = PROGRAMS[name]
    with pytest.raises(CaptureError, match=match):
        pt.compile(f, fullgraph=True)(X)
