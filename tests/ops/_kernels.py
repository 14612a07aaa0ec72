"""Drives the C++ kernels without the rest of the library: those that the installed package has.

``kernels("sum")`` looks a kernel up in the package's own table of an ISA level and calls it through the plain C
interface of ``ptcore/kernel.h`` with NumPy arrays as views of any stride. Nothing is compiled here.

A kernel file that is compiled for lower levels only serves the levels above it. Its tests run once: a module says by
``kernels = kernels_of("max_pool2d", ...)`` which kernels it is about, and gets the levels that have one of them.

Invariant: the expected values come from NumPy or SciPy only.
"""

import contextlib
import ctypes as C
import pathlib
import platform

import numpy as np
import pytest

import ptcore
from ptcore._ops import levels
from ptcore._ops.product import blas

ROOT = pathlib.Path(__file__).resolve().parents[2]
OPS = ROOT / "ptcore" / "_ops"
SOURCES = {path.stem: path for path in OPS.glob("*/*.cpp")}
X86 = platform.machine() in ("x86_64", "AMD64")
NEEDS = {"base": set(), "v3": {"avx2", "fma", "f16c", "bmi2"},
         "v4": {"avx512f", "avx512vl", "avx512bw", "avx512dq", "avx512cd", "avx2", "fma", "f16c", "bmi2"}}

DTYPES = ["bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64",
          "float16", "bfloat16", "float32", "float64", "complex64", "complex128"]
CODE = {name: code for code, name in enumerate(DTYPES)}
NONE = 255
MESSAGES = {1: "runtime", 2: "value", 3: "index", 4: "type", 5: "memory", 6: "linalg", 100: "blas"}


class View(C.Structure):
    _fields_ = [("data", C.c_void_p), ("sizes", C.POINTER(C.c_int64)), ("strides", C.POINTER(C.c_int64)),
                ("numel", C.c_int64), ("ndim", C.c_int32), ("dtype", C.c_uint8), ("contiguous", C.c_uint8),
                ("device", C.c_uint8), ("device_index", C.c_int8),
                ("layout", C.c_uint8), ("reserved", C.c_uint8 * 7)]


class Param(C.Structure):
    _fields_ = [("kind", C.c_int32), ("count", C.c_int32), ("i", C.c_int64), ("d", C.c_double),
                ("im", C.c_double), ("list", C.POINTER(C.c_int64))]


class Call(C.Structure):
    _fields_ = [("op", C.c_int32), ("nin", C.c_int32), ("nout", C.c_int32), ("nparams", C.c_int32),
                ("in_", C.POINTER(View)), ("out", C.POINTER(View)), ("params", C.POINTER(Param)),
                ("seed", C.c_uint64), ("offset", C.c_uint64), ("stream", C.c_void_p), ("error", C.c_char * 256)]


KERNEL = C.CFUNCTYPE(C.c_int, C.POINTER(Call))


class Blas(C.Structure):
    """The start of ``pt_blas_table``."""
    _fields_ = [(name, C.c_void_p) for name in ("sgemm", "dgemm", "cgemm", "zgemm", "get_threads", "set_threads")]


class KernelError(Exception):
    """A kernel's status other than PT_OK, with its text."""

    def __init__(self, status, text):
        super().__init__(f"{MESSAGES.get(status, status)}: {text}")
        self.status, self.text = MESSAGES.get(status, status), text


class Bfloat16(np.ndarray):
    """uint16 storage that the harness passes as bfloat16."""


def to_bfloat16(x):
    """The nearest bfloat16 values of `x`, ties to even, as a `Bfloat16` array."""
    x = np.asarray(x, np.float32)
    bits = x.view(np.uint32).astype(np.uint64)
    bits = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return np.where(np.isnan(x), 0x7FC0, bits).astype(np.uint16).view(Bfloat16)


def from_bfloat16(x):
    """The float32 values of a `Bfloat16` array."""
    return (np.asarray(x).astype(np.uint32) << 16).view(np.float32)


def dtype_name(a):
    return "bfloat16" if isinstance(a, Bfloat16) else a.dtype.name


def view(a, keep):
    v = View()
    if a is None:
        v.dtype = NONE
        return v
    sizes = (C.c_int64 * max(1, a.ndim))(*a.shape)
    strides = (C.c_int64 * max(1, a.ndim))(*(s // a.itemsize for s in a.strides))
    keep += [a, sizes, strides]
    v.data, v.sizes, v.strides = a.ctypes.data, sizes, strides
    v.numel, v.ndim, v.dtype = a.size, a.ndim, CODE[dtype_name(a)]
    v.contiguous = a.flags.c_contiguous
    return v


def param(value, keep):
    p = Param()
    if value is None:
        return p
    if isinstance(value, (list, tuple)):
        p.kind, p.count, p.list = 4, len(value), (C.c_int64 * max(1, len(value)))(*value)
        keep.append(p.list)
    elif isinstance(value, (bool, int, np.integer)):
        p.kind, p.i, p.d = 1, int(value), float(value)
    elif isinstance(value, complex):
        p.kind, p.d, p.im = 3, value.real, value.imag
    else:
        p.kind, p.d = 2, float(value)
    return p


class Library:
    """The kernels of one ISA level, over those of the levels below it."""

    def __init__(self, level):
        self.level = level
        assert levels.layouts() == tuple(map(C.sizeof, (View, Param, Call))), "kernel.h has other structures"
        self.kernels = {}
        for lower in able_levels():
            self.kernels |= levels.level_kernels(lower)
            if lower == level:
                break

    @staticmethod
    def threads(n):
        ptcore.set_num_threads(n)

    def __call__(self, name, inputs, outputs, params=(), seed=0, offset=0):
        """Runs a kernel on arrays; `outputs` are (shape, dtype) or arrays. Returns the outputs."""
        keep, call = [], Call()
        out = [o if o is None or isinstance(o, np.ndarray) else self.empty(*o) for o in outputs]
        call.nin, call.nout, call.nparams = len(inputs), len(out), len(params)
        call.in_ = (View * max(1, len(inputs)))(*(view(a, keep) for a in inputs))
        call.out = (View * max(1, len(out)))(*(view(a, keep) for a in out))
        call.params = (Param * max(1, len(params)))(*(param(p, keep) for p in params))
        call.seed, call.offset = seed, offset
        code = KERNEL(self.kernels[name])(C.byref(call))
        if code:
            raise KernelError(code, call.error.decode())
        return out[0] if len(out) == 1 else out

    @staticmethod
    def empty(shape, dtype):
        """An output full of garbage, so that an element not written shows."""
        name = dtype if isinstance(dtype, str) else np.dtype(dtype).name
        a = np.empty(shape, np.uint16 if name == "bfloat16" else name)
        if a.size:
            a.reshape(-1).view(np.uint8)[:] = 1 if name == "bool" else 0xA5
        return a.view(Bfloat16) if name == "bfloat16" else a


def cpu_flags():
    try:
        text = pathlib.Path("/proc/cpuinfo").read_text()
    except OSError:
        return set()
    return set(text.split("flags", 1)[-1].split("\n", 1)[0].split())


@pytest.fixture(scope="session")
def one_blas_thread():
    """The products here are small: BLAS threads that wait for a busy core take most of the time."""
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:
        yield
        return
    with threadpool_limits(1, user_api="blas"):
        yield


def able_levels():
    """The levels of the build that this CPU can run, the best one last."""
    flags = cpu_flags() if X86 else set()
    return [level for level in list(NEEDS)[:levels.built_levels()] if NEEDS[level] <= flags]


@contextlib.contextmanager
def blas_table():
    """The package's table of BLAS routines, which is put back as it was."""
    table = Blas.from_address(blas.table_address())
    before = bytes(table)
    try:
        yield table
    finally:
        C.memmove(C.byref(table), before, len(before))


def kernels_of(*names):
    """A fixture like ``kernels``, of the levels at which one of these kernels is compiled."""
    able = able_levels()
    assert all(name in Library(able[-1]).kernels for name in names), names
    wanted = [level for level in able if not names or not levels.level_kernels(level).keys().isdisjoint(names)]

    @pytest.fixture(scope="module", params=wanted)
    def kernels(request, one_blas_thread):
        return Library(request.param)
    return kernels


kernels = kernels_of()
