"""Compiles small C++ shared libraries for the tests of the headers and kernels.

The sources under test are compiled with the flags of the build, once per ISA level that the
machine can run, and called through ctypes. A test that uses this module is skipped only
where no C++ compiler is found.
"""

import ctypes
import os
import pathlib
import platform
import shlex
import shutil
import subprocess
import tempfile

import numpy as np
import pytest

OPS = pathlib.Path(__file__).resolve().parents[1] / "ptcore" / "_ops"
COMPILER = (shlex.split(os.environ.get("CXX", ""))
            or [c for c in map(shutil.which, ("c++", "g++", "clang++")) if c][:1])
FLAGS = ["-std=c++17", "-O3", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=fast", "-fPIC",
         "-fvisibility=hidden", "-pthread", "-Wall", "-Wextra", f"-I{OPS / 'include'}",
         f"-I{OPS / 'kernels'}"]

needs_compiler = pytest.mark.skipif(not COMPILER, reason="no C++ compiler")


def isa_levels():
    """The levels of the build that this machine runs, with their flags."""
    if platform.machine() not in ("x86_64", "AMD64"):
        return {"base": []}
    levels = {"base": ["-march=x86-64-v2"]}
    try:
        flags = pathlib.Path("/proc/cpuinfo").read_text()
        flags = set(flags.split("flags", 1)[1].split("\n", 1)[0].split())
    except (OSError, IndexError):
        return levels
    if {"avx2", "fma", "f16c", "bmi2"} <= flags:
        levels["v3"] = ["-march=x86-64-v3"]
        if {"avx512f", "avx512vl", "avx512bw", "avx512dq", "avx512cd"} <= flags:
            levels["v4"] = ["-march=x86-64-v4", "-mprefer-vector-width=512"]
    return levels


_cache = {}


def build(source, *files, level="base", extra=(), per_level=()):
    """A ctypes library of the text `source` and of kernel files.

    `source` and `files` are compiled once, at the level; the files of `per_level` at base and, if
    that is another, at the level too, as the package is.
    """
    found, levels = {path.name: path for path in OPS.glob("*/*.cpp")}, isa_levels()
    units = [(None, level)] + [(found[f], level) for f in files]
    units += [(found[f], name) for f in per_level for name in dict.fromkeys(["base", level])]
    key = (source, level, tuple(units), tuple(extra))
    if key not in _cache:
        folder = pathlib.Path(tempfile.mkdtemp(prefix="ptcore-test-"))
        (folder / "main.cpp").write_text(source)
        objects = []
        for i, (path, name) in enumerate(units):
            objects.append(str(folder / f"{i}.o"))
            call([*COMPILER, *FLAGS, *levels[name], f"-DPT_ISA={name}", *extra, "-c",
                  str(path or folder / "main.cpp"), "-o", objects[-1]])
        out = folder / "lib.so"
        call([*COMPILER, "-shared", "-pthread", *objects, "-o", str(out)])
        _cache[key] = ctypes.CDLL(str(out))
        shutil.rmtree(folder)
    return _cache[key]


def call(command):
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def address(array):
    return ctypes.c_void_p(array.ctypes.data)


def ulp_error(got, exact, dtype):
    """Errors in units in the last place of `got` against a list of mpmath numbers."""
    import mpmath

    info = np.finfo(dtype)
    largest, bits, low = mpmath.mpf(float(info.max)), info.nmant, int(info.minexp)
    half_ulp = mpmath.mpf(2) ** (int(info.maxexp) - bits - 2)
    errors = np.empty(len(exact))
    for i, (g, r) in enumerate(zip(got, exact)):
        g = float(g)
        if r == 0:
            errors[i] = 0 if g == 0 else np.inf
        elif g != g:
            errors[i] = np.inf
        elif abs(g) == np.inf:              # right if the exact value is at the edge or over it
            errors[i] = 0 if abs(r) >= largest - 4 * half_ulp and g * r > 0 else np.inf
        else:
            e = max(mpmath.frexp(r)[1] - 1, low)
            errors[i] = float(abs(mpmath.mpf(g) - r) / mpmath.mpf(2) ** (e - bits))
    return errors
