"""Drives the C++ kernels without the rest of the library.

Each family's ``.cpp`` is compiled once per session and ISA level into one shared library, which all
kernel tests use: ``kernels("sum")`` finds a kernel by walking the tables and calls it
through the plain C interface of ``ptcore/kernel.h`` with NumPy arrays as views of any stride.

The lowest level and the best that this CPU can run are always tested, the levels between them only
in the slow part: they are the same source with another number of lanes. Families without lanes are
the same source at every level, so that -O3 matters to them at the best one only; -O1 is compiled in
half the time and shows what only one of the optimisers forgives.

Invariant: the expected values come from NumPy or SciPy only.
"""

import ctypes as C
import os
import pathlib
import platform
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy.linalg import cython_blas

ROOT = pathlib.Path(__file__).resolve().parents[2]
OPS = ROOT / "ptcore" / "_ops"
SOURCES = {path.stem: path for path in OPS.glob("*/*.cpp")}
FLAGS = ("-O3 -std=c++17 -fPIC -fno-math-errno -fno-trapping-math -ffp-contract=fast "
         "-fvisibility=hidden -Wall -Wextra -Werror").split()
X86 = platform.machine() in ("x86_64", "AMD64")
LEVELS = {
    "base": (["-march=x86-64-v2"] if X86 else [], set()),
    "v3": (["-march=x86-64-v3"], {"avx2", "fma", "f16c", "bmi2"}),
    "v4": (["-march=x86-64-v4", "-mprefer-vector-width=512"],
           {"avx512f", "avx512vl", "avx512bw", "avx512dq", "avx512cd", "avx2", "fma", "f16c", "bmi2"}),
}
COMMON = ["parallel", "blas"]       # compiled once, at the lowest level
WITHOUT_LANES = {"index", "advanced_index", "shape", "sort", "svd", "running"}
FAMILIES = ("recurrent reduction extremum matmul softmax normalize loss index advanced_index shape scan running sort svd "
            "channel_norm convolution convolution_weight pooling resample pad attention grid_sample").split()

DTYPES = ["bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64",
          "float16", "bfloat16", "float32", "float64", "complex64", "complex128"]
CODE = {name: code for code, name in enumerate(DTYPES)}
NONE = 255
MESSAGES = {1: "runtime", 2: "value", 3: "index", 4: "type", 5: "memory", 6: "linalg", 100: "blas"}


# what dispatch provides in the library: the tables' addresses, the BLAS pointers, the thread count
DRIVER = """
#include "ptcore/blas.h"
#include "ptcore/kernel.h"
#define VISIBLE __attribute__((visibility("default")))
extern "C" {
void pt_set_num_threads(int);
DECLARE
VISIBLE const pt_kernel_entry *test_tables[] = {LIST};
VISIBLE void test_set_threads(int n) { pt_set_num_threads(n); }
VISIBLE pt_blas_table *test_blas(void) { return &pt_blas; }
VISIBLE size_t test_layouts[] = {sizeof(pt_view), sizeof(pt_param), sizeof(pt_call)};
}
"""


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


class Entry(C.Structure):
    _fields_ = [("name", C.c_char_p), ("kernel", C.CFUNCTYPE(C.c_int, C.POINTER(Call)))]


class Blas(C.Structure):
    _fields_ = [(name, C.c_void_p) for name in ("sgemm", "dgemm", "cgemm", "zgemm", "get_threads", "set_threads")]


class KernelError(Exception):
    """A kernel's status other than PT_OK, with its text."""

    def __init__(self, status, text):
        super().__init__(f"{MESSAGES.get(status, status)}: {text}")
        self.status = MESSAGES.get(status, status)


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
    """The kernels of one ISA level."""

    def __init__(self, path, level):
        self.level = level
        self.dll = C.CDLL(str(path))
        self.dll.test_blas.restype = C.POINTER(Blas)
        self.kernels = {}
        layouts = (C.c_size_t * 3).in_dll(self.dll, "test_layouts")
        assert list(layouts) == [C.sizeof(View), C.sizeof(Param), C.sizeof(Call)], "kernel.h has other structures"
        for table in (C.POINTER(Entry) * len(FAMILIES)).in_dll(self.dll, "test_tables"):
            i = 0
            while table[i].name:
                assert table[i].name.decode() not in self.kernels
                self.kernels[table[i].name.decode()] = table[i].kernel
                i += 1

    def threads(self, n):
        self.dll.test_set_threads(n)

    def load_blas(self):
        """Fills the BLAS pointers from SciPy's Cython BLAS, as dispatch does."""
        table = self.dll.test_blas().contents
        get_name = C.pythonapi.PyCapsule_GetName
        get_name.restype, get_name.argtypes = C.c_char_p, [C.py_object]
        get_pointer = C.pythonapi.PyCapsule_GetPointer
        get_pointer.restype, get_pointer.argtypes = C.c_void_p, [C.py_object, C.c_char_p]
        for field, _ in Blas._fields_[:4]:
            capsule = cython_blas.__pyx_capi__[field]
            setattr(table, field, get_pointer(capsule, get_name(capsule)))

    def count_blas_threads(self):
        """Stands in for a BLAS with a thread setting of 3; returns the list of settings made."""
        table, made, current = self.dll.test_blas().contents, [], [3]

        def set_threads(n):
            made.append(n)
            current[0] = n

        self.callbacks = C.CFUNCTYPE(C.c_int)(lambda: current[0]), C.CFUNCTYPE(None, C.c_int)(set_threads)
        table.get_threads, table.set_threads = (C.cast(f, C.c_void_p).value for f in self.callbacks)
        return made

    def unload_blas(self):
        C.memset(self.dll.test_blas(), 0, C.sizeof(Blas))

    def __call__(self, name, inputs, outputs, params=(), status=None):
        """Runs a kernel on arrays; `outputs` are (shape, dtype) or arrays. Returns the outputs."""
        keep, call = [], Call()
        out = [o if o is None or isinstance(o, np.ndarray) else self.empty(*o) for o in outputs]
        call.nin, call.nout, call.nparams = len(inputs), len(out), len(params)
        call.in_ = (View * max(1, len(inputs)))(*(view(a, keep) for a in inputs))
        call.out = (View * max(1, len(out)))(*(view(a, keep) for a in out))
        call.params = (Param * max(1, len(params)))(*(param(p, keep) for p in params))
        code = self.kernels[name](C.byref(call))
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


def build(folder, level, compiler):
    def compile(source, level, name, *more):
        target = folder / f"{name}_{level}.o"
        if not target.exists():
            subprocess.run([*compiler, *FLAGS, *LEVELS[level][0], *more, f"-DPT_ISA={level}",
                            f"-I{OPS / 'include'}", f"-I{OPS / 'kernels'}",
                            "-c", str(source), "-o", str(target)], check=True)
        return str(target)

    wanted = [(SOURCES[name], "base", name) for name in COMMON]
    for family in FAMILIES:
        plain = family in WITHOUT_LANES and level != able_levels()[-1]
        wanted.append((SOURCES[family], level, family, *["-O1"] * plain))
    driver = folder / f"driver_{level}.cpp"
    wanted.append((driver, level, "driver"))
    names = [f"pt_kernels_{family}_{level}" for family in FAMILIES]
    driver.write_text(DRIVER.replace("DECLARE", "\n".join(f"extern const pt_kernel_entry {n}[];" for n in names))
                      .replace("LIST", ", ".join(names)))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        objects = list(pool.map(lambda arguments: compile(*arguments), wanted))
    path = folder / f"kernels_{level}.so"
    subprocess.run([*compiler, "-shared", "-o", str(path), *objects, "-pthread"], check=True)
    return path


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
    """The levels that this CPU can run, the best one last."""
    flags = cpu_flags() if X86 else set()
    return [level for level, (_, needs) in LEVELS.items() if needs <= flags]


def levels():
    """The same as parameters; those between the lowest and the best are slow tests."""
    able = able_levels()
    return [pytest.param(level, marks=pytest.mark.slow if level in able[1:-1] else ()) for level in able]


@pytest.fixture(scope="session")
def objects(tmp_path_factory):
    """The folder of what is compiled in a session."""
    return tmp_path_factory.mktemp("kernels")


@pytest.fixture(scope="session", params=levels())
def kernels(request, objects, one_blas_thread):
    """The compiled kernels of one level."""
    compiler = [c for c in (shutil.which("ccache"), shutil.which("c++") or shutil.which("g++")) if c]
    if not compiler or compiler[-1].endswith("ccache"):
        pytest.skip("no C++ compiler")
    level = request.param
    return Library(build(objects, level, compiler), level)
