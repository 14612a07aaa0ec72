"""Calls of public functions and modules that are no rows, each with one argument that is wrong, in both libraries.

A call is a path and a function that makes its arguments for a library; ``wrong_for`` gives what an argument is replaced
by. ``difference`` says what the libraries make of it: both succeed alike, or ours raises what torch raises.
"""
import inspect
import os
import re
import zlib

import numpy as np
import torch
from _call_table import ramp
from op_db import _compare, _convert
from op_db._phases import same_class

import ptcore as pt

LIBRARIES = (pt, torch)


def found(lib, path):
    for part in path.split("."):
        lib = getattr(lib, part)
    return lib


# -- what is wrong -------------------------------------------------------------------------------

OBJECTS = {"None": None, "a str": "x", "object()": object(), "a list of str": ["a"], "1.5": 1.5, "nan": float("nan"),
           "2**63": 2**63, "2**70": 2**70, "-1": -1, "-100": -100, "100": 100, "0": 0, "True": True, "[]": [], "{}": {},
           "1j": 1j, "bytes": b"x", "a slice": slice(2)}
MADE = {
    "an array": lambda lib: np.ones((2, 3), np.float32), "a NumPy float": lambda lib: np.float64(0.5),
    "a NumPy int": lambda lib: np.int64(1),
    "a tensor": lambda lib: ramp(lib, (2, 3)), "a 0-d tensor": lambda lib: lib.tensor(1.0),
    "an int tensor": lambda lib: ramp(lib, (3,), "int64"), "a dtype": lambda lib: lib.float64,
    "meta": lambda lib: lib.ones(2, 3, device="meta"), "float": lambda lib: float,
    "a generator": lambda lib: lib.Generator(),
}


def of_tensor(x, lib):
    """Tensors that differ from x in one thing."""
    shape = tuple(x.shape)
    for dtype in ("bool", "int64", "float64", "complex64", "float16"):
        yield dtype, lambda dtype=dtype: ramp(lib, shape, dtype)
    yield "no elements", lambda: lib.ones((0, *shape[1:]) if shape else (0,), dtype=x.dtype)
    yield "a dim more", lambda: lib.ones((1, *shape), dtype=x.dtype)
    yield "a dim less", lambda: lib.ones(shape[1:], dtype=x.dtype)
    yield "longer", lambda: lib.ones((*shape[:-1], shape[-1] + 1) if shape else (2,), dtype=x.dtype)
    yield "on meta", lambda: lib.ones(shape, dtype=x.dtype, device="meta")


def wrong_for(x, lib):
    """(what, a function that makes it) of everything that takes the place of x."""
    for what, value in OBJECTS.items():             # a call may fill what it is given
        yield what, lambda value=value: value.copy() if isinstance(value, (list, dict)) else value
    for what, make in MADE.items():
        yield what, lambda make=make: make(lib)
    if isinstance(x, (pt.Tensor, torch.Tensor)):
        yield from of_tensor(x, lib)
    if isinstance(x, (list, tuple)) and x:
        yield "one less", lambda: type(x)(x[:-1])
        yield "one more", lambda: type(x)([*x, x[0]])
        yield "None in it", lambda: type(x)([None, *x[1:]])
        yield "a str in it", lambda: type(x)(["a", *x[1:]])


def wrong_calls(make):
    """(what, a function of the library that makes the arguments of a call with one thing wrong)."""
    args, kwargs = make(pt)
    yield "as it should be", make
    for k, x in enumerate(args):
        for what, _ in wrong_for(x, pt):
            yield f"argument {k}: {what}", lambda lib, k=k, what=what: replaced(make, lib, k, what)
        yield f"without argument {k}", lambda lib, k=k: without(make, lib, k)
    for name, x in kwargs.items():
        for what, _ in wrong_for(x, pt):
            yield f"{name}={what}", lambda lib, name=name, what=what: replaced(make, lib, name, what)
        yield f"without {name}", lambda lib, name=name: without(make, lib, name)
    yield "an unknown keyword", lambda lib: (make(lib)[0], {**make(lib)[1], "nonsense": 1})
    yield "30 more", lambda lib: ([*make(lib)[0], *[None] * 30], {})


def replaced(make, lib, place, what):
    args, kwargs = make(lib)
    args, kwargs = list(args), dict(kwargs)
    where = args if isinstance(place, int) else kwargs
    where[place] = dict(wrong_for(where[place], lib))[what]()
    return args, kwargs


def without(make, lib, place):
    args, kwargs = make(lib)
    if isinstance(place, int):
        return args[:place], kwargs
    return args, {key: value for key, value in kwargs.items() if key != place}


# -- comparison ----------------------------------------------------------------------------------

class Raised:
    def __init__(self, error):
        self.error = error

    def __repr__(self):
        return f"{type(self.error).__name__}: {str(self.error)[:200]}"


def outcome(call, lib, make):
    lib.manual_seed(1)
    try:
        args, kwargs = make(lib)
    except Exception as error:          # a dtype that one of them has not
        return error
    try:
        return readable(call(lib, *args, **kwargs), lib)
    except Exception as error:
        return Raised(error)


def readable(x, lib):
    """A result as the comparison takes it: of modules and optimizers their states."""
    if isinstance(x, str):
        return x.replace(lib.__name__ + ".", "")
    if hasattr(x, "get_mask"):          # a MaskedTensor
        return [x.get_data(), x.get_mask()]
    if isinstance(x, lib.nn.Module):
        return list(x.state_dict().values())
    if isinstance(x, lib.optim.Optimizer):
        return [{key: value for key, value in group.items() if key != "params"} for group in x.param_groups]
    if isinstance(x, (list, tuple)):
        parts = [readable(part, lib) for part in x]
        return type(x)(*parts) if hasattr(x, "_fields") else parts
    if inspect.isgenerator(x) or type(x).__name__ in ("map", "zip", "filter"):
        return [readable(part, lib) for part in x]
    return x


def difference(call, make, values):
    """None, or what differs: "class", "refuses", "takes" or "result", with both outcomes."""
    ours, theirs = outcome(call, pt, make), outcome(call, torch, make)
    if isinstance(ours, Exception) or isinstance(theirs, Exception):
        return None
    if isinstance(theirs, Raised):
        if isinstance(ours, Raised):
            return None if alike(ours.error, theirs.error) else ("class", ours, theirs)
        return None if TAKEN.search(str(theirs.error)) else ("takes", ours, theirs)
    if isinstance(ours, Raised):
        return None if REFUSED.search(str(ours.error)) else ("refuses", ours, theirs)
    try:
        text = _compare.differ(ours, theirs, TOLERANCE, values=values)
    except Exception as error:          # NotCarried, and what a tensor without elements is asked for
        return None if "meta" in str(error) or isinstance(error, _convert.NotCarried) else ("result", error, theirs)
    return text and ("result", text, theirs)


# What a library meets deep inside, by an argument that it has not looked at.
SURPRISES = (AttributeError, AssertionError, UnboundLocalError, KeyError, ZeroDivisionError, NameError, SystemError)
SURPRISED = re.compile(r"object is not|not supported between|unsupported operand|object cannot be|Expected !nested|"
                       r"doesn't match the broadcast|invalid combination of arguments|too large|too big|"
                       r"Overflow when|object has no|must be tuple of ints|INTERNAL ASSERT|can only concatenate|"
                       r"unhashable type|[tT]ruth value of an? |Boolean value of Tensor")
# A TypeError that names the argument, where torch's class depends on the place at which it was met.
CLEAR = re.compile(r"(must be|must hold|must have|one of|expected|Expected) .*[gG]ot\b")
# More than torch takes: other dtypes side by side, numbers of NumPy and tensors of one element as numbers.
TAKEN = re.compile(r"mixed dtype|expected scalar type|not implemented for|Unsupported dtype|Found dtype|dtypes match|"
                   r"must be bool, not (int|Tensor)|"
                   r"must be (int|float|Number), not (bool|Tensor|numpy)|Python int too large|int too big|too large to|"
                   r"tuple of ints, not (int|bool)|same dtype|but found|numpy|unsigned byte|tuple index out of range")


# What torch meets only when it is used, or takes for the number that it converts to.
REFUSED = re.compile(r"must be (a )?(bool|int|an int|float|number|Tensor|Module)|only 'strong_wolfe'|"
                     r"must not be above|must be callable|option needs|"
                     r"must have dtype|64-bit integers? beside|"
                     # beside a tensor of meta torch reads memory that it has not
                     r"must be on one device")


def TOLERANCE(dtype):
    return (1e-2, 1e-3) if dtype in (torch.float16, torch.bfloat16) else (2e-5, 1e-5)


def alike(ours, theirs):
    """Whether ours is caught where torch's is. What torch meets by surprise deep inside may have a better class."""
    if isinstance(ours, AssertionError) and isinstance(theirs, AssertionError):
        return True                     # its class where sizes do not match
    if isinstance(ours, SURPRISES) and type(ours).__module__ != "ptcore._errors":
        return CLEAR.search(str(ours)) is not None and same_class(ours, theirs)     # torch's class, of a clear message
    if isinstance(ours, (TypeError, OverflowError)) and CLEAR.search(str(ours)):
        return True
    if isinstance(theirs, SURPRISES) or SURPRISED.search(str(theirs)):
        return isinstance(ours, (TypeError, ValueError, RuntimeError, IndexError))
    return same_class(ours, theirs)


ALL = os.environ.get("PTCORE_TEST_WRONG_CALLS") == "all"       # at night; else one call in PARTS
PARTS = 8


def tried(path, what):
    """Whether a run tries a call: by its name, so that it is the same ones each time."""
    if path.endswith(("Conv3d", "Transpose3d")) and what.endswith((": 100", "=100", "bytes")):
        return False                    # a million elements of a kernel: minutes
    if "**" in what and path.startswith(("nn.RNN", "nn.LSTM", "nn.GRU", "nn.Transformer")):
        return False                    # as many layers, one by one
    return ALL or what == "as it should be" or zlib.crc32(f"{path} {what}".encode()) % PARTS == 0


def walk(path, make, values=True, call=None):
    """(what is wrong, kind, ours, torch's) of every wrong call of a function that is tried and differs."""
    call = call or (lambda lib, *args, **kwargs: found(lib, path)(*args, **kwargs))
    for what, wrong in wrong_calls(make):
        text = difference(call, wrong, values) if tried(path, what) else None
        if text:
            yield what, *text
