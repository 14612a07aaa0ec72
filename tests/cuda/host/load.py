"""Puts the stand-ins of the driver and the libraries, and the host's compiler, in the place of CUDA's."""
import ctypes
import hashlib
import os
from pathlib import Path

import host_compiler


class HostCompiler:
    """In NVRTC's place: programs as shared objects that the stand-in driver loads.

    ``fused``: with products fused into sums, but where NVRTC does not either (``_programs.EXACT``), or where a program
    uses CUDA's ``_rn`` forms, which here are the operators.
    """

    def __init__(self, folder, sanitize="", fused=False):
        self._home = Path(folder)
        self.sanitize = sanitize
        self.options = host_compiler.FUSED if fused else []
        self.identity = host_compiler.identity(sanitize, self.options)
        self._folder = None

    def compile(self, text, headers, architecture):
        if self._folder is None:
            from ptcore.cuda import _programs
            known = _programs.headers()
            digest = hashlib.sha256(repr(sorted(known.items())).encode()).hexdigest()[:16]
            self._folder = self._home / f"headers-{digest}"
            for name, content in known.items():
                path = self._folder / name
                path.parent.mkdir(parents=True, exist_ok=True)
                if not path.exists():
                    path.with_suffix(f".{os.getpid()}").write_text(content)
                    path.with_suffix(f".{os.getpid()}").replace(path)
        exact = "#define PT_EXACT" in text or any("_rn(" in content for content in headers.values())
        options = [] if exact else self.options
        return host_compiler.compile(text, [host_compiler.HERE, self._folder], self.sanitize, options, self._home)


def load_cusolver(folder):
    """Builds the stand-in cuSOLVER and gives it SciPy's LAPACK; the path of it."""
    from scipy.linalg.cython_lapack import __pyx_capi__ as routines
    path = str(host_compiler.build_cusolver(folder))
    library = ctypes.CDLL(path)
    name_of, address_of = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
    address_of.restype, address_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    for name, capsule in routines.items():
        library.standin_routine(name.encode(), ctypes.c_void_p(address_of(capsule, name_of(capsule))))
    return path


def load(folder, sanitize="", fused=False):
    """Loads the stand-in driver, built into ``folder`` if it is not there; returns it as a ctypes library."""
    os.environ.setdefault("PTCORE_CACHE_DIR", str(Path(folder) / "cache"))
    driver = ctypes.CDLL(str(host_compiler.build_standin(folder)), ctypes.RTLD_GLOBAL)
    from ptcore.cuda import _compile
    from ptcore.cuda.driver import libraries as _libraries
    _compile.set_compiler(HostCompiler(folder, sanitize, fused))
    _libraries.set_library("cublas", str(host_compiler.build_cublas(folder)))
    _libraries.set_library("cublasLt", str(host_compiler.build_cublaslt(folder)))
    _libraries.set_library("cufft", str(host_compiler.build_cufft(folder)))
    _libraries.set_library("cusolver", load_cusolver(folder))
    _libraries.set_library("cudnn", "")         # test_cudnn.py has a stand-in: all else tests ptcore's own kernels
    return driver
