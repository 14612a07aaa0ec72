"""Builds shared objects from sources: finds a compiler, calls it, and caches the results.

Each shared object lies in a folder of its own. The name of the folder is the hash of everything that the object depends
on: sources, flags, compiler, Python, ptcore's headers, and the user's headers, which a file beside it lists. The folder
is filled under another name while a file is locked, and renamed when it is complete, so processes that start together
compile once.
"""
import contextlib
import hashlib
import importlib.util
import io
import json
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

import ptcore
from ptcore._cache import hold

EXTRA = "pip install 'ptcore[compiler]'"
HEADERS = ("ptcore/api.h", "ptcore/extension.h", "ptcore/kernel.h", "ptcore/python_values.h", "torch/extension.h")
WINDOWS, MACOS = sys.platform == "win32", sys.platform == "darwin"
_CPP, _C, _CYTHON = (".cpp", ".cc", ".cxx"), (".c",), (".pyx",)


class Compiler:
    """A compiler of C++ and C.

    Attributes
    ----------
    command : list of str
    is_msvc : bool
        Whether it takes the options of Microsoft's compiler.
    """

    def __init__(self, command):
        self.command = command
        self.is_msvc = os.path.basename(command[0]).lower() in ("cl", "cl.exe", "clang-cl", "clang-cl.exe")

    def identity(self):
        """A text that changes with the compiler."""
        path = shutil.which(self.command[0]) or self.command[0]
        try:
            path = os.path.realpath(path)
            found = os.stat(path)
        except OSError:
            return [*self.command]
        version = ""
        if "ziglang" in self.command:
            from importlib.metadata import version as version_of
            version = version_of("ziglang")
        return [*self.command, path, found.st_size, found.st_mtime_ns, version]

    def compile_command(self, source, target, flags, include_paths, depends):
        """The command that makes an object file."""
        suffix = os.path.splitext(source)[1]
        own = [sysconfig.get_path("include"), ptcore.get_include()]
        if self.is_msvc:
            standard = [] if suffix in _C else ["/std:c++17", "/EHsc"]
            return [*self.command, "/nologo", "/O2", "/MD", *standard, *[f"/I{p}" for p in (*include_paths, *own)],
                    *flags, "/c", str(source), f"/Fo{target}"]
        standard = ["-x", "c", "-std=c11"] if suffix in _C else ["-std=c++17"]
        return [*self.command, *standard, "-O2", "-fPIC", "-fvisibility=hidden", *[f"-I{p}" for p in include_paths],
                *[part for p in own for part in ("-isystem", p)], "-MMD", "-MF", str(depends), *flags,
                "-c", str(source), "-o", str(target)]

    def link_command(self, objects, target, flags):
        """The command that makes a shared object."""
        objects = list(map(str, objects))
        if self.is_msvc:
            return [*self.command, "/nologo", "/LD", *objects, f"/Fe{target}", "/link",
                    f"/LIBPATH:{os.path.join(sys.base_prefix, 'libs')}", *flags]
        if MACOS:
            return [*self.command, "-bundle", "-undefined", "dynamic_lookup", *objects, "-o", str(target), *flags]
        python = f"-lpython{sys.version_info[0]}{sys.version_info[1]}"
        library = [f"-L{sys.base_prefix}/libs", python] if WINDOWS else []
        return [*self.command, "-shared", *objects, "-o", str(target), *library, *flags]


def find_compiler():
    """The compiler in ``CXX``, otherwise the system's, otherwise that of the package ``ziglang``.

    Raises
    ------
    RuntimeError
        If there is none.
    """
    named = os.environ.get("CXX")
    if named:
        command = shlex.split(named, posix=not WINDOWS)
        if shutil.which(command[0]) is None:
            raise RuntimeError(f"CXX names {named!r}, which is no program")
        return Compiler(command)
    for name in ("cl",) * WINDOWS + ("c++", "g++", "clang++"):
        if shutil.which(name):
            return Compiler([name])
    if importlib.util.find_spec("ziglang") is not None:
        return Compiler([sys.executable, "-m", "ziglang", "c++"])
    raise RuntimeError(f"there is no C++ compiler: set CXX, install one, or {EXTRA}")


def _digest(*parts):
    h = hashlib.sha256()
    for part in parts:
        data = part if isinstance(part, bytes) else json.dumps(part).encode()
        h.update(b"%d\0" % len(data) + data)
    return h.hexdigest()


def _headers():
    return [Path(ptcore.get_include(), name).read_bytes() for name in HEADERS]


def _with_headers(key, headers):
    """The name of the folder for the present contents of the headers."""
    return _digest(key, *[part for path in headers for part in (path, Path(path).read_bytes())])[:32]


class Build:
    """A shared object of sources.

    Parameters
    ----------
    function, name : str
        The name of the calling function in messages, and the name of the module.
    sources : list of (str, bytes)
        Names of files and their contents. The files are written to one folder; an absolute path is compiled in its
        place.
    written : dict
        Other files beside them.
    """

    def __init__(self, function, name, sources, written, cflags, ldflags, include_paths, verbose):
        self.function, self.name, self.sources, self.written = function, name, sources, written
        self.cflags, self.ldflags, self.include_paths = cflags, ldflags, include_paths
        self.verbose = verbose
        try:
            self.compiler = find_compiler()
        except RuntimeError as e:
            raise RuntimeError(f"{function}: {e}") from None
        if any([path.endswith(_CYTHON) for path, _ in sources]) and importlib.util.find_spec("Cython") is None:
            raise RuntimeError(f"{function}: {name} is written in Cython, which is not installed: {EXTRA}")

    def make(self, root):
        """The path of the shared object; compiles it unless the cache has it."""
        root.mkdir(parents=True, exist_ok=True)
        suffix = sysconfig.get_config_var("EXT_SUFFIX")
        key = _digest(self.name, sys.version, suffix, self.compiler.identity(), self.cflags, self.ldflags,
                      self.include_paths, sorted(self.written.items()),
                      *[part for path, text in self.sources for part in (str(path), text)], *_headers())[:32]
        found = self._found(root, key, suffix)
        if found is None:
            with open(root / f"{key}.lock", "ab") as file:
                hold(file.fileno(), True)           # released when the file is closed
                found = self._found(root, key, suffix) or self._compiled(root, key, suffix)
        return found

    def _found(self, root, key, suffix):
        """The shared object in the cache, or None."""
        try:
            headers = json.loads((root / f"{key}.json").read_text())
            target = root / _with_headers(key, headers) / (self.name + suffix)
        except (OSError, ValueError):
            return None
        return target if target.exists() else None

    def _compiled(self, root, key, suffix):
        made = Path(tempfile.mkdtemp(prefix=f"{key}.", suffix=".tmp", dir=root))
        try:
            headers = self._fill(made, made / (self.name + suffix))
            folder = root / _with_headers(key, headers)
            listed = made / "headers.json"
            listed.write_text(json.dumps(headers))
            shutil.rmtree(folder, ignore_errors=True)       # a folder left without its shared object
            os.replace(made, folder)
            os.replace(folder / listed.name, root / f"{key}.json")
        except BaseException:
            shutil.rmtree(made, ignore_errors=True)
            raise
        return folder / (self.name + suffix)

    def _fill(self, folder, target):
        """Compiles into a folder; returns the user's headers that the sources include."""
        for name, text in self.written.items():
            (folder / name).write_text(text)
        objects, headers = [], set()
        for k, (path, text) in enumerate(self.sources):
            if not os.path.isabs(path):
                (folder / path).write_bytes(text)
                path = str(folder / path)
            if path.endswith(_CYTHON):
                path = self._cythonized(path, folder / f"{self.name}_{k}.cpp", folder)
            if not path.endswith((*_CPP, *_C)):
                raise ValueError(f"{self.function}: sources must be C, C++ or Cython, got {path}")
            objects.append(folder / f"{k}.o")
            depends = folder / f"{k}.d"
            self._run(self.compiler.compile_command(path, objects[-1], self.cflags, [folder, *self.include_paths],
                                                    depends), folder)
            headers.update(self._headers_of(depends, folder))
        self._run(self.compiler.link_command(objects, target, self.ldflags), folder)
        for k, path in enumerate(objects):
            path.unlink(missing_ok=True)
            (folder / f"{k}.d").unlink(missing_ok=True)
        return sorted(headers)

    @staticmethod
    def _headers_of(depends, folder):
        """The user's headers that a source includes, according to the compiler."""
        if not depends.exists():
            return []
        words = shlex.split(depends.read_text().replace("\\\n", " ").partition(": ")[2])
        paths = [os.path.abspath(word) for word in words[1:]]
        return [path for path in paths if not path.startswith(str(folder))]

    def _cythonized(self, path, target, folder):
        from Cython.Compiler.Errors import CompileError
        from Cython.Compiler.Main import compile_single
        from Cython.Compiler.Options import CompilationOptions

        # The folder above the package: its .pxd files are those of the Cython interface.
        options = CompilationOptions(cplus=True, output_file=str(target), compiler_directives={"language_level": 3},
                                     include_path=[str(Path(ptcore.get_include()).parents[2])])
        heard = io.StringIO()
        with contextlib.redirect_stderr(heard), contextlib.suppress(CompileError):
            if not compile_single(path, options, full_module_name=self.name).num_errors:
                return str(target)
        raise self._failed(heard.getvalue(), folder)

    def _failed(self, said, folder):
        return RuntimeError(f"{self.function}: {self.name} does not compile:\n{said.replace(str(folder) + os.sep, '')}")

    def _run(self, command, folder):
        command = list(map(str, command))
        if self.verbose:
            print(shlex.join(command))
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
        if done.returncode:
            raise self._failed(done.stdout + done.stderr, folder)
        if self.verbose and done.stderr:
            print(done.stderr)
