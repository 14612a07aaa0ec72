"""What the rules of shapes are written in (``rules/``), as Python runs it.

A rule is a function of the arguments of an op. It describes the outputs by ``output`` and ``like`` and raises for
arguments that do not fit. There is one text of it and two ways to run that text:

- ``_build/emit_shapes.py`` writes it as C functions of the same names, which ordinary calls run. There ``raise`` ends
  the function, and the rule is run again as it stands here, to say what does not fit.
- Python runs it over the sizes of a trace, which may be symbolic, and for the errors of ordinary calls.

Annotations are the types of C; ``_ops/call/rule.pxd`` has what this file has. A rule may use

- ``if``, ``for`` over a ``range``, assignments to names and to ``out.sizes[i]``, comparisons, ``and``, ``or``, ``not``,
  arithmetic of ints with ``//`` and ``%`` of numbers that are not negative,
- ``x.ndim``, ``x.sizes[i]``, ``x.numel``, ``x.dtype`` of a tensor, ``values.count``, ``values.list[i]`` of several
  ints, ``i in dims``, and ``word == "text"``,
- functions of ``rules/``: one that returns a value has the annotation of it, any other one checks or describes.

What stands in a ``raise`` is of Python alone and may use anything.
"""
from ptcore._dtype import ALL as _DTYPES
from ptcore._dtype import as_dtype
from ptcore._shape import laid_strides
from ptcore._sizes.symbolic import sym_min

# dtypes are known by their codes, as in kernel.h
_CODES = {dtype: code for code, dtype in enumerate(_DTYPES)}
BOOL, INT32, INT64, FLOAT32 = [_CODES[as_dtype(name)] for name in ("bool", "int32", "int64", "float32")]
ITEMSIZE = [dtype.itemsize for dtype in _DTYPES]
CATEGORY = [{"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}[dtype.kind] for dtype in _DTYPES]
REAL_OF = [_CODES[dtype.to_real()] for dtype in _DTYPES]
COMPLEX_OF = [None if dtype.name.startswith("float8") else _CODES[dtype.to_complex()] for dtype in _DTYPES]

# -- types, for annotations -------------------------------------------------------------------------------------------

Int = int                       # a size, a dim counted from 0, a number
Bool = bool
Text = str                      # a part of a message


class DType(int):
    """The code of a dtype; -1: none is given."""


class Words:
    """One of some words, in the order of the row: ``Words("none|mean|sum")``."""

    def __init__(self, words):
        self.words = words.split("|")


class View:
    """A tensor argument."""

    __slots__ = ("ndim", "sizes", "tensor")

    def __init__(self, tensor):
        self.tensor, self.sizes, self.ndim = tensor, tensor.shape, tensor.ndim

    @property
    def numel(self):
        return self.tensor.numel()

    @property
    def dtype(self):
        return _CODES[self.tensor.dtype]

    @property
    def shape(self):
        """The sizes as messages have them."""
        return list(self.sizes)


class Positions(View):
    """A tensor of positions along a dim: int32 ones are taken as int64."""


class Ints:
    """Several ints, as the sizes of a window."""

    __slots__ = ("count", "list")

    def __init__(self, values):
        self.list = list(values)
        self.count = len(self.list)


class Dims(tuple):
    """The dims that a reduction reduces."""


class Device:
    """The device that the output goes to."""


class Out:
    """An output: ``sizes`` is filled by the rule."""

    __slots__ = ("dtype", "ndim", "sizes", "strides")

    def __init__(self, ndim, dtype):
        self.ndim, self.dtype, self.sizes, self.strides = ndim, dtype, [None] * ndim, None


class Call:
    """A call of an op: its tensors in order, and the outputs that the rule describes."""

    __slots__ = ("device", "inputs", "name", "outs")

    def __init__(self, name, inputs):
        self.name, self.inputs, self.outs, self.device = name, inputs, {}, None

    @property
    def nin(self):
        return len(self.inputs)

    def specs(self):
        """The outputs in order: (shape, dtype), and behind it the device or the strides if the rule says them."""
        found = []
        for k in range(len(self.outs)):
            out = self.outs[k]
            spec = (tuple(out.sizes[:out.ndim]), _DTYPES[out.dtype])
            if out.strides is not None:
                spec += (None, out.strides)
            elif self.device is not None:
                spec += (self.device,)
            found.append(spec)
        return found


# -- what rules call --------------------------------------------------------------------------------------------------

def tensor(call, k):
    """The tensor at place k among those of the call."""
    return call.inputs[k]


def given(x):
    """Whether an optional tensor is there."""
    return x is not None


def output(call, k, ndim, dtype):
    """Output k, whose sizes are to be filled."""
    out = call.outs[k] = Out(ndim, dtype)
    return out


def like(call, k, x, dtype):
    """Output k has the sizes of x."""
    out = output(call, k, x.ndim, dtype)
    out.sizes[:] = x.sizes
    return out


def keep_strides(call, x):
    """The first output keeps the strides of x if its elements fill their memory, else their order."""
    if not x.tensor.is_contiguous():
        call.outs[0].strides = laid_strides(x.sizes, x.tensor.stride())


def place(call, device):
    """The outputs are on another device than the inputs."""
    call.device = device


def least(a, b):
    """The smaller of two sizes."""
    return sym_min(a, b)


def fits(n, bits):
    """In C, where ints have 64 bits: a number beyond ``2**bits`` is left to Python."""


# -- running a rule ---------------------------------------------------------------------------------------------------

def argument(kind, value, ndim):
    """An argument of an op as a rule of this annotation gets it; ``ndim`` is that of the first tensor."""
    if kind is View or kind is Positions:
        return None if value is None else View(value)
    if kind is Ints:
        return Ints(value)
    if kind is Dims:
        return Dims(range(ndim) if value is None else value if isinstance(value, tuple) else (value,))
    if kind is DType:
        return -1 if value is None else _CODES[value]
    return value


def dtype_name(code):
    """What messages call a dtype."""
    return _DTYPES[code].name
