"""Compiles programs to machine code with NVRTC, and keeps the results in files.

A cubin is kept as ``$PTCORE_CACHE_DIR/kernels/ab/abcd....cubin`` (by default below ``$XDG_CACHE_HOME/ptcore`` or
``~/.cache/ptcore``); the name is the hash of everything that it depends on. A file that cannot be read, or whose check
sum is wrong, is a miss. A folder that cannot be written to is no error: the next process compiles the program again.
"""
import hashlib
import os
import re
import tempfile
from pathlib import Path

from ptcore._cache import cache_dir
from ptcore.cuda import _programs
from ptcore.cuda.driver import libraries

_INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)


class NVRTC:
    """The compiler of CUDA C++ to cubins, from the package nvidia-cuda-nvrtc.

    ``identity`` is what a cubin depends on beside its text and architecture: the version, the build (by the name and
    size of the library's file, as the library itself does not tell) and the options. ``log`` is the compiler's output
    for the last program.
    """

    OPTIONS = ("-std=c++17", "-diag-suppress=186,177")
    EXACT = ("-fmad=false",)            # no contraction: the CPU's bits

    def __init__(self):
        try:
            from cuda.bindings import nvrtc
            error, major, minor = nvrtc.nvrtcVersion()
        except (ImportError, RuntimeError) as e:
            raise RuntimeError(f"CUDA kernels are compiled by NVRTC, which was not found ({e}): pip install "
                               "'ptcore[cuda13]'") from None
        if error:
            raise RuntimeError(f"NVRTC does not answer: {error}")
        self._nvrtc = nvrtc
        self.version = f"nvrtc {major}.{minor}"
        file = Path(libraries.library_path("nvrtc")).resolve()
        self.identity = " ".join([self.version, file.name, str(file.stat().st_size), *self.OPTIONS, *self.EXACT])

    def compile(self, text, headers, architecture):
        """The cubin of a program's text for an architecture such as 90; RuntimeError with NVRTC's log."""
        nvrtc = self._nvrtc
        names = [name.encode() for name in headers]
        error, program = nvrtc.nvrtcCreateProgram(text.encode(), b"program.cu", len(names),
                                                  [t.encode() for t in headers.values()], names)
        self._check(error, "nvrtcCreateProgram")
        try:
            options = [*self.OPTIONS, *(self.EXACT if "#define PT_EXACT" in text else ()), f"-arch=sm_{architecture}"]
            options = [o.encode() for o in options]
            error, = nvrtc.nvrtcCompileProgram(program, len(options), options)
            _, size = nvrtc.nvrtcGetProgramLogSize(program)
            # A buffer that NVRTC writes to is a bytearray: CPython shares all bytes objects of one byte, and an empty
            # log has one.
            log = bytearray(size)
            nvrtc.nvrtcGetProgramLog(program, log)
            self.log = log.rstrip(bytes(1)).decode(errors="replace")
            if error:
                _, known = nvrtc.nvrtcGetSupportedArchs()
                if architecture not in known:
                    raise RuntimeError(f"{self.version} compiles for sm_{min(known)} to sm_{max(known)}, not for sm_"
                                       f"{architecture}: pip install --upgrade nvidia-cuda-nvrtc")
                raise RuntimeError(f"NVRTC: {error.name}\n{self.log}")
            error, size = nvrtc.nvrtcGetCUBINSize(program)
            self._check(error, "nvrtcGetCUBINSize")
            cubin = bytearray(size)
            error, = nvrtc.nvrtcGetCUBIN(program, cubin)
            self._check(error, "nvrtcGetCUBIN")
            return bytes(cubin)
        finally:
            nvrtc.nvrtcDestroyProgram(program)

    @staticmethod
    def _check(error, what):
        if error:
            raise RuntimeError(f"{what}: {error.name}")


_compiler = None


def compiler():
    global _compiler
    if _compiler is None:
        _compiler = NVRTC()
    return _compiler


def set_compiler(other):
    """Sets a compiler with ``identity`` and ``compile(text, headers, architecture)`` in its place; None: NVRTC."""
    global _compiler
    _compiler = other


def included(text, headers):
    """The ``headers`` that a text includes, directly or through others."""
    found, queue = {}, [text]
    while queue:
        for name in _INCLUDE.findall(queue.pop()):
            if name in headers and name not in found:
                found[name] = headers[name]
                queue.append(headers[name])
    return found


def key_of(text, headers, architecture, identity):
    """The hash of everything that a cubin depends on."""
    h = hashlib.sha256(f"{identity}\0{architecture}\0{text}\0".encode())
    for name in sorted(headers):
        h.update(f"{name}\0{headers[name]}\0".encode())
    return h.hexdigest()


def kernels_dir():
    """The folder of compiled kernels, which need not exist."""
    return cache_dir("kernels")


def _read(path):
    try:
        data = path.read_bytes()
    except OSError:
        return None
    return data[32:] if hashlib.sha256(data[32:]).digest() == data[:32] else None


def write(path, data):
    """Writes bytes to a file of another name, and renames it to ``path``."""
    handle, name = tempfile.mkstemp(dir=Path(path).parent)
    try:
        with os.fdopen(handle, "wb") as f:
            f.write(data)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def _keep(path, cubin):
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write(path, hashlib.sha256(cubin).digest() + cubin)
    except OSError:                     # the next process compiles it again
        pass


def cubin(program, types, architecture):
    """The machine code of a program for dtypes (codes) and an architecture, from the cache or the compiler."""
    text = _programs.text_of(program, types)
    headers = included(text, _programs.headers())
    made_by = compiler()
    path = kernels_dir()
    key = key_of(text, headers, architecture, made_by.identity)
    path = path / key[:2] / f"{key}.cubin"
    found = _read(path)
    if found is None:
        found = made_by.compile(text, headers, architecture)
        _keep(path, found)
    return found
