"""Inputs that do not fit, generated for every module and every function of nn.functional: wrong number of
dimensions, wrong sizes, wrong dtype, no tensor at all, unknown keywords.

Where the call does not simply work, the error is a usual class whose message begins with the op's or module's name
and says what it got.
"""
import inspect
import re

import pytest
from _module_table import IMAGES, MODULES, OTHERS

import ptcore as pt
from ptcore import nn
from ptcore.nn import functional

pytestmark = pytest.mark.core

CLEAR = (TypeError, ValueError, RuntimeError, IndexError, AssertionError)      # the last: attention, as in PyTorch


def given(inputs):
    return [pt.randn(x) if isinstance(x, tuple) else x for x in inputs]


def wrong(x):
    """(what is wrong, in place of x) of each kind."""
    shape = tuple(x.shape)
    for ndim in sorted({0, 1, len(shape) - 1, len(shape) + 1, len(shape) + 2, 64} - {len(shape), -1}):
        new = shape[:ndim] if ndim <= len(shape) else (1,) * (ndim - len(shape)) + shape
        yield f"{ndim} dimensions", pt.ones(new, dtype=x.dtype)
    for dim, size in enumerate(shape):
        for other in (size + 1, size + 3, 0):
            yield f"size {other} at {dim}", pt.ones((*shape[:dim], other, *shape[dim + 1:]), dtype=x.dtype)
    for dtype in (pt.int64, pt.bool, pt.complex64, pt.float64, pt.float16, pt.uint16):
        yield str(dtype), pt.ones(shape, dtype=dtype)
    for value in (None, "x", 3, [1.0], object()):
        yield type(value).__name__, value


def complaints(names, call, args, keyword=True):
    """What is wrong with the errors of a call whose arguments do not fit."""
    found = []
    begins = re.compile(rf"({'|'.join(map(re.escape, names))})\b")

    def attempt(what, *values, **more):
        try:
            call(*values, **more)
        except CLEAR as error:
            text = str(error)
            if not begins.match(text) or not re.search(r"\bgot\b|but found|out of bounds for", text):
                found.append(f"{what}: {type(error).__name__}: {text[:150]}")
        except Exception as error:
            found.append(f"{what}: {type(error).__name__}: {str(error)[:150]}")

    for k, x in enumerate(args):
        if not isinstance(x, pt.Tensor):
            continue
        for what, value in wrong(x):
            attempt(f"argument {k} of {what}", *args[:k], value, *args[k + 1:])
    if keyword:
        with pytest.raises(TypeError, match="nonsense"):
            call(*args, nonsense=1)
    return found


@pytest.mark.parametrize("name", sorted(MODULES))
@pytest.mark.filterwarnings("ignore")
@pytest.mark.outer
def test_modules(name):
    settings, inputs = MODULES[name]
    cls = getattr(nn, name)
    args = given(inputs)
    cls(*settings)(*args)                       # as it should be

    def call(*values, **more):
        return cls(*settings)(*values, **more)

    found = complaints(names_of(name), call, args)
    assert not found, "\n".join(found)
    if name != "Identity":                      # takes and ignores anything
        with pytest.raises(TypeError, match="nonsense"):
            cls(*settings, nonsense=1)


def names_of(name):
    """What an error of a module may begin with: its own name, or that of an op that it calls."""
    return [name, "rnn", "MultiheadAttention", *sorted(OPS, key=len, reverse=True)]


OPS = {*pt.ops, *(name for name in dir(functional) if not name.startswith("_"))}


# The functions that are no rows: those go through tests/ops/test_errors.py.
FUNCTIONS = {name: [IMAGES[2], 4] for name in ("upsample", "upsample_bilinear", "upsample_nearest")}


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
@pytest.mark.filterwarnings("ignore")
def test_functions(name):
    function = getattr(functional, name)
    args = given(FUNCTIONS[name])
    function(*args)                             # as it should be
    found = complaints(names_of(name), function, args)
    assert not found, "\n".join(found)


def test_no_function_is_left_out():
    kind = type(functional.upsample)            # of functions of Python files that are compiled
    plain = {name for name in dir(functional)        # what is read late as well, whichever test has read it
             if not name.startswith("_") and isinstance(inspect.unwrap(getattr(functional, name)), kind)}
    assert plain == set(FUNCTIONS)


def test_no_module_is_left_out():
    classes = {name for name in nn.modules.__all__ if isinstance(getattr(nn, name), type)}
    assert classes == set(MODULES) | OTHERS
