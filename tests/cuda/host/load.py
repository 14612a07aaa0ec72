"""Puts the stand-ins of the driver and the libraries, and the host's compiler, in the place of CUDA's."""
import ctypes
import hashlib
import os
from pathlib import Path

import host_compiler


class HostCompiler:
    """In NVRTC's place: programs as shared objects that the stand-in driver loads."""

    def __init__(self, folder, sanitize=""):
        self._home = Path(folder)
        self.sanitize = sanitize
        self.identity = host_compiler.identity(sanitize)
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
        return host_compiler.compile(text, [host_compiler.HERE, self._folder], self.sanitize, folder=self._home)


def load(folder, sanitize=""):
    """Loads the stand-in driver, built into ``folder`` if it is not there; returns it as a ctypes library."""
    os.environ.setdefault("PTCORE_CACHE_DIR", str(Path(folder) / "cache"))
    driver = ctypes.CDLL(str(host_compiler.build_standin(folder)), ctypes.RTLD_GLOBAL)
    from ptcore.cuda import _compile, _libraries
    _compile.set_compiler(HostCompiler(folder, sanitize))
    _libraries.set_library("cublas", str(host_compiler.build_cublas(folder)))
    _libraries.set_library("cublasLt", str(host_compiler.build_cublaslt(folder)))
    _libraries.set_library("cufft", str(host_compiler.build_cufft(folder)))
    return driver
