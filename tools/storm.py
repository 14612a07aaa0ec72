#!/usr/bin/env python3
"""Random calls of public functions, with valid and nearly valid arguments, in a process that may die:

    python tools/storm.py [--calls N] [--seed N] [--first N] [--only REGEX] [--torch PYTHON] [--report FILE]

Calls are of rows, of indexing and of modules (each is made and called; its path ends in ``()``). A call of a row or of
a module begins as one of the cases of the tests and is changed in up to three places: dtypes, shapes, layouts, values,
settings, ``out=``, in place, with a gradient. It depends on the seed and its number alone, so that
``--first N --calls 1`` makes call N again. A call that ends the process, takes longer than LIMIT seconds or raises what
is no error of an argument is printed with its arguments, and the exit status is 1.

``--torch`` names a Python that has torch: every tenth call is made there as well, in a process of its own, and the
report lists what differs, one line for each function and kind of difference. The memory of the calls' process is
printed.
"""
import argparse
import collections
import inspect
import json
import multiprocessing
import os
import pickle
import re
import resource
import select
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "ops")]
LIMIT = 60                      # seconds of one call, which sanitizers make ten times as long
MEMORY = 8 << 30                # bytes of address space, unless sanitizers need all of it
EVERY = 10                      # the share of calls that are compared
DTYPES = ("bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float16", "bfloat16",
          "float32", "float64", "complex64", "complex128")
NUMBERS = (-1, 0, 1, 2, 3, -2, 5, 64, 65, 200, -100, 2**31 - 1, 2**31, -2**31, 2**63 - 1, -2**63, 2**64, 0.0, -0.0, 0.5,
           1.5, -1.5, 1e-300, 1e300, float("nan"), float("inf"), -float("inf"), 1j, 2 - 3j, True, False)
OTHERS = (None, "mean", "sum", "none", "x", "", (), (1,), (0, 1), (-1, 0), (2, 3, 4), (1.5,), ("a",), (None,), [[0]],
          {}, (2**40, 2**40), (-1,), (0,), (65,) * 3, (1,) * 65)
SIZES = (0, 1, 1, 2, 3, 4, 5, 7, 16, 17, 64, 65)
# Settings of the process, files, results that no reader is meant to compare.
LEFT_OUT = re.compile(r"^(_|set_|load|save|manual_seed|seed|initial_seed|compile|fork|get_|show_|autocast_|lobpcg$)")
# Their tensors are arguments of their own.
SPREAD = ("block_diag", "broadcast_tensors", "cartesian_prod", "chain_matmul")
RANDOM = re.compile(r"rand|normal|dropout|bernoulli|multinomial|poisson|binomial|exponential|cauchy|geometric|empty|"
                    r"rrelu|uniform|fractional|gumbel|resize|set_|lowrank|is_set_to|data_ptr|storage|Dropout|RReLU|"
                    r"Fractional|Transformer|Lazy")
WORDS = ("zeros", "reflect", "replicate", "circular", "same", "valid", "mean", "sum", "none", "nearest", "bilinear",
         "tanh", "relu", "x")                   # settings of modules


# -- arguments -----------------------------------------------------------------------------------

class T:
    """A tensor to be: the elements, the dtype, the way it lies in memory, whether it has a gradient."""

    def __init__(self, values, dtype, layout="contiguous", grad=False):
        self.values, self.dtype, self.layout, self.grad = values, dtype, layout, grad

    def __repr__(self):
        flat = np.asarray(self.values).ravel()
        grad = " grad" if self.grad else ""
        return f"T({self.dtype}{list(self.values.shape)} {self.layout}{grad}: {flat[:6].tolist()})"


LAYOUTS = ("contiguous", "transposed", "sliced", "reversed", "expanded", "offset")


def laid(t):
    """The elements of t as an array that lies as its layout says: what NumPy and both libraries share."""
    a = np.asarray(t.values)
    if t.layout == "transposed":
        return a.T.copy(order="C").T
    if t.layout == "sliced" and a.ndim:
        wide = np.zeros((*a.shape[:-1], 2 * a.shape[-1]), a.dtype)
        wide[..., ::2] = a
        return wide[..., ::2]
    if t.layout == "reversed":
        return np.ascontiguousarray(np.flip(a)).copy()[tuple(slice(None, None, -1) for _ in a.shape)]
    if t.layout == "expanded" and a.ndim and a.shape[0]:
        return np.broadcast_to(np.ascontiguousarray(a[:1]), a.shape)
    if t.layout == "offset":
        line = np.zeros(a.size + 3, a.dtype)
        line[3:] = a.ravel()
        return line[3:].reshape(a.shape)
    return a.copy()


def built(x, lib):
    """A value for a library, ptcore or torch."""
    if isinstance(x, T):
        a = laid(x)
        if lib.__name__ == "torch" and any(s < 0 for s in a.strides):
            a = a.copy()
        if x.dtype == "bfloat16":
            made = lib.from_numpy(a.view(np.int16)).view(lib.bfloat16) if a.flags.writeable else lib.from_numpy(
                a.copy()).view(lib.bfloat16)
        elif not a.flags.writeable:             # expanded
            made = lib.from_numpy(np.ascontiguousarray(a[:1])).expand(*a.shape)
        else:
            made = lib.from_numpy(a)
        if x.grad and (made.is_floating_point() or made.is_complex()):
            made.requires_grad_()
        return made
    if isinstance(x, D):
        return getattr(lib, x.name)
    if isinstance(x, (tuple, list)):
        return type(x)([built(item, lib) for item in x])
    return x


class D:
    """A dtype."""

    def __init__(self, name):
        self.name = name

    def __repr__(self):
        return self.name


def values_of(rng, shape, dtype):
    """Random elements, some of them at an end of the dtype's range."""
    n = int(np.prod(shape, dtype=object))
    if dtype == "bool":
        return rng.random(shape) < 0.5
    if dtype == "bfloat16":
        bits = (rng.standard_normal(n).astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
        if n and rng.random() < 0.2:
            bits[rng.integers(n)] = rng.choice([0x7F80, 0xFF80, 0x7FC0, 0x0001, 0x8000, 0x7F7F])
        return bits.astype(np.uint16).view(np.int16).reshape(shape)
    kind = np.dtype(dtype)
    if kind.kind in "iu":
        a = rng.integers(-3 if kind.kind == "i" else 0, 6, n).astype(kind)
        if n and rng.random() < 0.2:
            a[rng.integers(n)] = rng.choice([np.iinfo(kind).min, np.iinfo(kind).max])
        return a.reshape(shape)
    a = rng.standard_normal(n) * rng.choice([0.3, 1, 1, 10])
    if kind.kind == "c":
        a = a + 1j * rng.standard_normal(n)
    a = a.astype(kind)
    if n and rng.random() < 0.2:
        real = a.real.dtype
        a[rng.integers(n)] = rng.choice([np.nan, np.inf, -np.inf, 0, -0.0, np.finfo(real).tiny / 4, np.finfo(real).max])
    return a.reshape(shape)


def shape_of(rng, near):
    """Another shape, often one that is almost that of ``near``."""
    shape = list(near)
    how = rng.integers(7)
    if how == 0 and shape:
        del shape[rng.integers(len(shape))]
    elif how == 1 and len(shape) < 64:
        shape.insert(rng.integers(len(shape) + 1), int(rng.choice(SIZES)))
    elif how == 2 and shape:
        shape[rng.integers(len(shape))] = 1
    elif how == 3 and shape:
        shape[rng.integers(len(shape))] = 0
    elif how == 4 and shape:
        shape[rng.integers(len(shape))] = int(rng.choice(SIZES))
    elif how == 5 and len(shape) > 1:
        shape = [shape[k] for k in rng.permutation(len(shape))]
    else:
        shape = [int(rng.choice(SIZES)) for _ in range(rng.integers(6))]
        if rng.random() < 0.02:
            shape = [1] * int(rng.choice([63, 64]))
    return tuple(shape) if int(np.prod(shape, dtype=object)) < 1 << 18 else tuple(near)


# -- calls ---------------------------------------------------------------------------------------

class Source:
    """The functions and the cases that calls begin with."""

    def __init__(self, only=""):
        import _cases

        import ptcore
        self.lib, self.sample = ptcore, _cases.Sample
        self.of, self.dtypes = [], {}
        for row in _cases.ROWS.values():
            paths = [p for p in (row.public or ([] if row.internal else [row.name]))]
            if row.method and not row.internal:
                paths.append(f"Tensor.{row.name}")
            if row.inplace and not row.internal:
                paths.append(f"Tensor.{row.name}_")
            paths = [p for p in paths if found(ptcore, p) is not None and not LEFT_OUT.match(p.rpartition(".")[2])
                     and re.search(only, p)]
            cases = _cases.cases(row)
            if paths and cases:
                self.of.append((row, paths, cases, _cases.dtypes(row)))
        from _module_table import MODULES
        self.modules = [(f"nn.{name}()", *case) for name, case in MODULES.items() if re.search(only, f"nn.{name}()")]
        self.keys = [p for p in ("Tensor.__getitem__", "Tensor.__setitem__") if re.search(only, p)]
        self.kinds = ([self.of_row] * 6 * bool(self.of) + [self.of_module] * 2 * bool(self.modules)
                      + [self.of_key] * bool(self.keys))

    def call(self, seed, number):
        """(path, args, kwargs, whether a gradient is taken) of call ``number``."""
        rng = np.random.default_rng([seed, number])
        return self.kinds[rng.integers(len(self.kinds))](rng)

    def of_key(self, rng):
        """Reading or writing at a key of ints, slices, masks, positions, None and Ellipsis."""
        path = self.keys[rng.integers(len(self.keys))]
        own = str(rng.choice(DTYPES))
        shape = tuple(int(n) for n in rng.choice(SIZES[:9], rng.integers(5)))
        x = T(values_of(rng, shape, own), own, str(rng.choice(LAYOUTS)))
        parts = [part_of_key(rng, shape[k] if k < len(shape) else 1) for k in range(rng.integers(len(shape) + 2))]
        args = [x, parts[0] if len(parts) == 1 and rng.random() < 0.7 else tuple(parts)]
        if path.endswith("setitem__"):
            value = T(values_of(rng, shape_of(rng, shape[1:]), own), own, str(rng.choice(LAYOUTS)))
            args.append(value if rng.random() < 0.5 else NUMBERS[rng.integers(len(NUMBERS))])
            if rng.random() < 0.2:
                args[-1] = changed(rng, value)
        return path, args, {}, bool(rng.random() < 0.4)

    def of_module(self, rng):
        """A module's settings as one tuple, its inputs, other settings by their names."""
        path, settings, inputs = self.modules[rng.integers(len(self.modules))]
        args = [tuple(settings)]
        for x in inputs:
            if isinstance(x, tuple):
                args.append(T(values_of(rng, x, "float32"), "float32"))
            else:
                args.append(T(np.array(x), str(x.dtype).rpartition(".")[2]))
        parameters = list(inspect.signature(found(self.lib, path[:-2])).parameters.values())[len(settings):]
        options = [p for p in parameters if p.default is not p.empty and p.name not in (
            "device", "dtype", "num_layers")]   # the last: 2**64 layers are made one by one
        kwargs = {}
        for p in (rng.choice(options, min(len(options), rng.integers(3)), replace=False) if options else ()):
            pick = NUMBERS if rng.random() < 0.4 else OTHERS if rng.random() < 0.3 else WORDS
            kwargs[p.name] = (not p.default if isinstance(p.default, bool) else p.default if rng.random() < 0.2
                              else pick[rng.integers(len(pick))])
        for _ in range(rng.choice([0, 1, 1, 2])):
            self.change(rng, args, {})
        if not isinstance(args[0], tuple):
            args[0] = (args[0],)
        if path.endswith("3d()"):               # a kernel of 200 cubed is computed for minutes
            args[0] = tuple([3 if isinstance(x, int) and 16 < x < 1 << 20 else x for x in args[0]])
        return path, args, kwargs, bool(rng.random() < 0.4)

    def of_row(self, rng):
        row, paths, cases, dtypes = self.of[rng.integers(len(self.of))]
        path = paths[rng.integers(len(paths))]
        dtype = dtypes[rng.integers(len(dtypes))]
        try:
            sample = self.sample(row, cases[rng.integers(len(cases))], dtype, rng)
        except Exception:                       # no values of that dtype in the row's domain
            sample = self.sample(row, cases[0], "float32", rng)

        def carried(x, spec):
            if isinstance(x, np.ndarray):
                own = dtype if not hasattr(spec, "values") and x.dtype != bool else x.dtype.name
                return T(bits(x) if own == "bfloat16" else x.astype(own), own)
            if isinstance(x, tuple) and x and isinstance(x[0], np.ndarray):
                return tuple([carried(a, s) for a, s in zip(x, spec)])
            return D(x.name) if isinstance(x, self.lib.dtype) else x
        with np.errstate(all="ignore"):
            made = [carried(x, s) for x, s in zip(sample.data, sample.case)]
        args = [x for x, a in zip(made, sample.args) if not a.keyword_only]
        kwargs = {a.name: x for x, a in zip(made, sample.args) if a.keyword_only}
        names = [a.name for a in sample.args if not a.keyword_only]
        for _ in range(rng.choice([0, 1, 1, 2, 3])):
            self.change(rng, args, kwargs)
        if path.startswith("Tensor.") and not (args and isinstance(args[0], T)):
            path = path.removeprefix("Tensor.").removesuffix("_")
        if len(args) > 1 and rng.random() < 0.1:            # one by its name
            k = int(rng.integers(1, len(args)))
            kwargs.update(zip(names[k:], args[k:]))
            del args[k:]
        if row.out_argument and not path.startswith("Tensor.") and rng.random() < 0.1:
            shape = shape_of(rng, args[0].values.shape if args and isinstance(args[0], T) else ())
            own = str(rng.choice(DTYPES))
            kwargs["out"] = T(values_of(rng, shape, own), own, str(rng.choice(LAYOUTS[:4])))
        if row.name in SPREAD and args and isinstance(args[0], tuple):
            args = list(args[0])
        return path, args, kwargs, bool(rng.random() < 0.4)

    def change(self, rng, args, kwargs):
        """One change of a place."""
        places = [(args, k) for k in range(len(args))] + [(kwargs, k) for k in kwargs]
        if not places:
            return
        where, k = places[rng.integers(len(places))]
        x = where[k]
        if isinstance(x, tuple) and x and isinstance(x[0], T) and rng.random() < 0.8:
            parts = list(x)
            i = int(rng.integers(len(parts)))
            parts[i] = changed(rng, parts[i])
            where[k] = tuple(parts)
        elif isinstance(x, T) and rng.random() < 0.93:
            where[k] = changed(rng, x)
        elif isinstance(x, tuple) and x and rng.random() < 0.5:
            parts = list(x)
            i = int(rng.integers(len(parts)))
            if rng.random() < 0.3:
                del parts[i]
            elif rng.random() < 0.3:
                parts.append(parts[i])
            else:
                parts[i] = NUMBERS[rng.integers(len(NUMBERS))]
            where[k] = tuple(parts)
        elif isinstance(x, bool) and rng.random() < 0.7:
            where[k] = not x
        elif isinstance(x, (int, float)) and rng.random() < 0.4:
            where[k] = x + int(rng.integers(-2, 3))
        else:
            pick = rng.random()
            if pick < 0.6:
                where[k] = NUMBERS[rng.integers(len(NUMBERS))]
            elif pick < 0.8:
                where[k] = OTHERS[rng.integers(len(OTHERS))]
            elif pick < 0.9:
                where[k] = D(str(rng.choice(DTYPES)))
            else:
                own = str(rng.choice(DTYPES))
                where[k] = T(values_of(rng, shape_of(rng, (2, 3)), own), own)


def part_of_key(rng, n):
    """What stands for a dim of size n in a key."""
    pick = rng.integers(9)
    if pick == 0:
        return None
    if pick == 1:
        return Ellipsis
    if pick == 2:
        return bool(rng.random() < 0.5)
    if pick < 5:
        bounds = [None if rng.random() < 0.3 else int(rng.integers(-n - 2, n + 3)) for _ in range(2)]
        return slice(*bounds, None if rng.random() < 0.5 else int(rng.choice([-2, -1, 1, 2, 3, 0, 2**62])))
    if pick == 5:
        own = str(rng.choice(("bool", "bool", "bool", "uint8")))
        shape = (n,) if rng.random() < 0.8 else shape_of(rng, (n,))
        return T(values_of(rng, shape, "bool").astype(own), own)
    size = () if rng.random() < 0.2 else (int(rng.integers(4)),) if rng.random() < 0.8 else (2, 1)
    where = rng.integers(-n, n, size) if n else np.zeros(size, np.int64)
    where = np.asarray(where)
    if where.size and rng.random() < 0.1:
        where.flat[0] = rng.choice([n, -n - 1, 2**40, -2**63, 2**63 - 1])
    if pick == 6:
        return where.tolist()
    own = str(rng.choice(("int64", "int64", "int32", "int16", "float32")))
    return T(where.astype(own), own, str(rng.choice(LAYOUTS)))


def bits(x):
    """The nearest bfloat16 of an array, as int16."""
    import ptcore
    return np.asarray(ptcore.from_numpy(np.array(x, np.float32)).to(ptcore.bfloat16).view(ptcore.int16))


def changed(rng, t):
    """A tensor that differs in dtype, shape, layout or elements."""
    if not isinstance(t, T):
        return t
    pick = rng.random()
    if pick < 0.3:
        return T(t.values, t.dtype, str(rng.choice(LAYOUTS)), t.grad)
    if pick < 0.5:
        own = str(rng.choice(DTYPES))
        return T(values_of(rng, t.values.shape, own), own, t.layout, t.grad)
    if pick < 0.8:
        return T(values_of(rng, shape_of(rng, t.values.shape), t.dtype), t.dtype, t.layout, t.grad)
    return T(values_of(rng, t.values.shape, t.dtype), t.dtype, t.layout, t.grad)


def module_call(lib, name):
    """A function that makes a module, gives it parameters that both libraries have, and calls it."""
    def function(settings, *inputs, **options):
        module = found(lib, name)(*settings, **options)
        with lib.no_grad():
            for p in module.parameters():
                if not isinstance(p, lib.nn.parameter.UninitializedParameter):
                    p.copy_(lib.linspace(-1, 1, p.numel()).reshape(p.shape))
        return module(*inputs)
    return function


def written(x, key, value):
    x = x.clone()
    x[key] = value
    return x


def found(lib, path):
    if path == "Tensor.__setitem__":
        return written
    if path.endswith("()"):
        return module_call(lib, path[:-2]) if found(lib, path[:-2]) else None
    thing = lib
    for part in path.split("."):
        thing = getattr(thing, part, None)
    return thing


def tensors(x):
    if isinstance(x, T):
        return [x]
    if isinstance(x, (tuple, list)):
        return [t for item in x for t in tensors(item)]
    return [t for item in x.values() for t in tensors(item)] if isinstance(x, dict) else []


def result_of(lib, path, args, kwargs, grad):
    """("raised", names of the classes, text), or ("gave", plain values of the results and of the gradients)."""
    inplace = path.endswith("_") and path.startswith("Tensor.")
    if grad and not inplace and "out" not in kwargs:
        for t in tensors([args, kwargs]):
            t.grad = True
    function = found(lib, path)
    if function is None:
        return "absent", (), path
    try:
        made, named = built(list(args), lib), {k: built(x, lib) for k, x in kwargs.items()}
    except Exception as e:
        return "built", (type(e).__name__,), str(e)
    try:
        given = function(*made, **named)
        results = leaves(given, lib.Tensor)
        slopes = []
        wanted = [x for x in leaves([made, named], lib.Tensor) if x.requires_grad]
        outputs = [x for x in results if x.requires_grad]
        if grad and wanted and outputs:
            slopes = lib.autograd.grad(outputs, wanted, [lib.ones_like(x) for x in outputs], allow_unused=True)
    except Exception as e:
        return "raised", tuple(c.__name__ for c in type(e).__mro__), str(e)[:300]
    return "gave", [plain(x, lib) for x in results], [None if x is None else plain(x, lib) for x in slopes]


def leaves(x, kind):
    if isinstance(x, kind):
        return [x]
    if isinstance(x, (tuple, list)):
        return [t for item in x for t in leaves(item, kind)]
    return [t for item in x.values() for t in leaves(item, kind)] if isinstance(x, dict) else []


def plain(x, lib):
    """(dtype, array) of a tensor."""
    dtype = str(x.dtype).rpartition(".")[2]
    if x.numel() > 1 << 20 or max(x.shape, default=0) > 1 << 40:
        return dtype, np.array(x.shape)     # elements that would take longer to carry than to compute, or a size that
                                            # NumPy refuses
    x = x.detach()
    if lib.__name__ == "torch":
        x = x.resolve_conj().resolve_neg()
    if dtype == "bfloat16":
        x = x.to(lib.float32)
    return dtype, np.array(x.numpy() if hasattr(x, "numpy") else x)


# -- comparison ----------------------------------------------------------------------------------

CLOSE = {"float16": 2e-2, "bfloat16": 1e-1, "float32": 1e-3, "complex64": 1e-3, "float64": 1e-6, "complex128": 1e-6}


def difference(ours, theirs):
    """What differs between two answers, or None."""
    if "built" in (ours[0], theirs[0]) or theirs[0] == "absent":
        return None
    if theirs[0] == "raised" and re.search("not implemented for|Unsupported dtype|not support", theirs[2]):
        return None
    if "MemoryError" in ours[1] or "alloc" in str(theirs[2])[:400]:
        return None
    if ours[0] == "raised" and theirs[0] == "raised":
        if theirs[1][0] == "AttributeError":    # by an argument that is no tensor
            return None
        names = {"_LinAlgError": "LinAlgError"}.get(theirs[1][0], theirs[1][0])
        return None if names in ours[1] else f"raises {ours[1][0]}, torch {theirs[1][0]}"
    if ours[0] != theirs[0]:
        return f"{ours[0]}, torch {theirs[0]}"
    for word, a, b in (("result", ours[1], theirs[1]), ("gradient", ours[2], theirs[2])):
        if len(a) != len(b):
            return f"{word}: {len(a)} tensors, torch {len(b)}"
        for x, y in zip(a, b):
            text = unlike(x, y)
            if text:
                return f"{word}: {text}"
    return None


def unlike(x, y):
    if x is None or y is None:
        return None if x is y or not np.any((x or y)[1]) else "None on one side"
    if x[0] != y[0]:
        return f"dtype {x[0]}, torch {y[0]}"
    if x[1].shape != y[1].shape:
        return "shape"
    if not x[1].size:
        return None
    if x[0] not in CLOSE:
        return None if np.array_equal(x[1], y[1]) else "values"
    a, b = (v.astype(np.complex128 if "complex" in x[0] else np.float64) for v in (x[1], y[1]))
    with np.errstate(all="ignore"):
        finite = np.isfinite(b)
        scale = max(1.0, float(np.abs(b[finite]).max())) if finite.any() else 1.0
        if scale > 1e6 * (1e3 if "64" in x[0] else 1):
            return None                 # what cancels is beyond the bound of the sum
        if (np.isnan(a) != np.isnan(b)).any():
            return "NaN"
        if (np.isinf(a) != np.isinf(b)).any():
            return "inf"
        near = np.abs(a - b)[finite & np.isfinite(a)] <= CLOSE[x[0]] * scale
    return None if near.all() else "values"


# -- processes -----------------------------------------------------------------------------------

def calls_process(pipe, seed, only, memory):
    import warnings
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    if memory:
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    source = Source(only)
    import ptcore
    ptcore.set_num_threads(1)
    pipe.send(len(source.of) + len(source.modules) + len(source.keys))
    while True:
        number = pipe.recv()
        if number is None:
            return
        path, args, kwargs, grad = source.call(seed, number)
        answer = result_of(ptcore, path, args, kwargs, grad)
        pipe.send((path, answer if number % EVERY == 0 else answer[:2] if answer[0] != "gave" else ("gave",),
                   pickle.dumps((path, args, kwargs, grad)) if number % EVERY == 0 else None,
                   int(open("/proc/self/statm").read().split()[1]) * 4 if number % 1000 == 0 else 0))


# A library that reports these of an argument has met them by surprise.
SURPRISES = {"SystemError", "AssertionError", "AttributeError", "UnboundLocalError", "NameError", "ZeroDivisionError",
             "RecursionError", "KeyError", "BufferError"}
ATTENTION = re.compile(r"nn\.(functional\.multi_head|MultiheadAttention|Transformer)")   # asserts, as in PyTorch


def told(source, seed, number):
    path, args, kwargs, grad = source.call(seed, number)
    named = "".join(f", {k}={v!r}" for k, v in kwargs.items())
    return f"call {number}: {path}({', '.join(repr(a) for a in args)}{named}){' and its gradient' if grad else ''}"


class Child:
    """A process that makes calls, started again after each one that ended it."""

    def __init__(self, *settings):
        self.settings = settings
        self.start()

    def start(self):
        self.pipe, theirs = multiprocessing.Pipe()
        self.process = multiprocessing.get_context("spawn").Process(target=calls_process, args=(theirs, *self.settings),
                                                                    daemon=True)
        self.process.start()
        theirs.close()
        self.functions = self.pipe.recv()

    def ask(self, number):
        """The answer, or a text that says how the process ended."""
        self.pipe.send(number)
        if not self.pipe.poll(LIMIT):
            self.process.kill()
            self.process.join()
            self.start()
            return f"did not end in {LIMIT} s"
        try:
            return self.pipe.recv()
        except (EOFError, ConnectionError):
            self.process.join()
            code = self.process.exitcode
            self.start()
            return f"the process ended by {signal.Signals(-code).name if code < 0 else code}"


TORCH = """
import sys, pickle, struct, warnings
sys.path[:0] = [{tools!r}]
warnings.simplefilter("ignore")
import torch, storm, resource
resource.setrlimit(resource.RLIMIT_AS, (storm.MEMORY, storm.MEMORY))
torch.set_num_threads(1)
while True:
    head = sys.stdin.buffer.read(8)
    if len(head) < 8: break
    case = pickle.loads(sys.stdin.buffer.read(struct.unpack("q", head)[0]))
    try: answer = pickle.dumps(storm.result_of(torch, *case))
    except Exception as e: answer = pickle.dumps(("built", (type(e).__name__,), str(e)))
    sys.stdout.buffer.write(struct.pack("q", len(answer)) + answer)
    sys.stdout.buffer.flush()
"""


class Torch:
    """A process with torch, which may die too."""

    def __init__(self, python):
        self.python, self.process = python, None

    def ask(self, case):
        if self.process is None:
            # A pickle names this module as it was run.
            env = {k: v for k, v in os.environ.items() if k not in ("LD_PRELOAD", "PYTHONMALLOC", "PYTHONPATH")}
            self.process = subprocess.Popen([self.python, "-P", "-c", TORCH.format(tools=str(ROOT / "tools"))],
                                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env,
                                            stderr=subprocess.DEVNULL)
        try:
            self.process.stdin.write(struct.pack("q", len(case)) + case)
            self.process.stdin.flush()
            if not select.select([self.process.stdout], [], [], LIMIT)[0]:
                self.process.kill()
            head = self.process.stdout.read(8)
            if len(head) == 8:
                return pickle.loads(self.process.stdout.read(struct.unpack("q", head)[0]))
        except (BrokenPipeError, ConnectionError):
            pass
        self.process.wait()
        self.process = None
        return "built", ("died",), ""


def main():
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--calls", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--only", default="")
    parser.add_argument("--torch")
    parser.add_argument("--report")
    args = parser.parse_args()
    sanitized = "asan" in os.environ.get("LD_PRELOAD", "")
    child, source = Child(args.seed, args.only, 0 if sanitized else MEMORY), Source(args.only)
    torch = Torch(args.torch) if args.torch else None
    counts, bad, differences = collections.Counter(), [], collections.defaultdict(list)
    memory, start = [], time.monotonic()
    for number in range(args.first, args.first + args.calls):
        answer = child.ask(number)
        if isinstance(answer, str):
            bad.append(f"{answer}: {told(source, args.seed, number)}")
            print(bad[-1], flush=True)
            continue
        path, result, case, pages = answer
        counts[result[0]] += 1
        if pages:
            memory.append(pages)
        if result[0] == "raised" and result[1][0] in SURPRISES and not (
                result[1][0] == "AssertionError" and ATTENTION.match(path)):
            bad.append(f"{result[1][0]}: {told(source, args.seed, number)}")
            print(bad[-1], flush=True)
        if torch and case and not RANDOM.search(path):
            text = difference(result, torch.ask(case))
            if text:
                differences[f"{path}: {text}"].append(number)
        if (number + 1 - args.first) % 10_000 == 0:
            print(f"{number + 1 - args.first} calls, {time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)
    half = memory[len(memory) // 2:]
    print(f"{args.calls} calls of {child.functions} rows in {time.monotonic() - start:.0f} s: {dict(counts)}; "
          f"{len(bad)} bad; {sum(map(len, differences.values()))} differ in {len(differences)} ways; memory over "
          f"the last half {half[0] if half else 0} to {half[-1] if half else 0} KiB")
    if args.report:
        with open(args.report, "w") as f:
            json.dump({"bad": bad, "differences": {k: [told(source, args.seed, n) for n in v[:3]] + [len(v)]
                                                   for k, v in sorted(differences.items())}}, f, indent=1)
    return 1 if bad else 0


# A pickle names this module, whichever process wrote it.
sys.modules.setdefault("storm", sys.modules[__name__])
T.__module__ = D.__module__ = "storm"

if __name__ == "__main__":
    sys.exit(main())
