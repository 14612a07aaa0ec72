"""Extensions of C++, C and Cython, compiled at run time or by setuptools.

:func:`load_inline` makes a module of texts and :func:`load` of files. Functions of tensors, numbers, strings, lists and
tuples need no wrapper: ``ptcore/extension.h`` reads their types. :class:`CppExtension` and :class:`BuildExtension` are
for a ``setup.py``.
"""
import importlib.machinery
import importlib.util
import os
import sys
import types
from pathlib import Path

import ptcore
from ptcore._cache import cache_dir

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [  # noqa: F822 (setuptools is imported when BuildExtension is asked for)
           "BuildExtension", "CUDAExtension", "CppExtension", "SyclExtension", "check_compiler_is_gcc",
           "check_compiler_ok_for_platform", "get_compiler_abi_compatibility_and_version", "get_cxx_compiler",
           "get_default_build_root", "include_paths", "is_ninja_available", "library_paths", "load", "load_inline",
           "remove_extension_h_precompiler_headers", "verify_ninja_availability"]

IS_WINDOWS, IS_MACOS = sys.platform == "win32", sys.platform == "darwin"
IS_LINUX, IS_HIP_EXTENSION = sys.platform.startswith("linux"), False
CUDA_HOME = CUDNN_HOME = ROCM_HOME = ROCM_VERSION = SYCL_HOME = None

_KERNELS = ("CUDA C++ is compiled by NVRTC when it is needed: enter a kernel for the device by "
            "ptcore.ops.register_kernel(op, 'cuda', kernel)")


def get_default_build_root():
    """The folder of compiled extensions: ``$PTCORE_EXTENSIONS_DIR``, or one in ptcore's cache.

    Returns
    -------
    str
    """
    return os.environ.get("PTCORE_EXTENSIONS_DIR") or str(cache_dir("extensions"))


def include_paths(device_type="cpu", torch_include_dirs=True):
    """The folders of headers that extensions are compiled with.

    Parameters
    ----------
    device_type : str
        Has no effect: all devices have the same.
    torch_include_dirs : bool
        Whether ptcore's folder is included.

    Returns
    -------
    list of str

    Examples
    --------
    >>> from ptcore.utils.cpp_extension import include_paths
    >>> len(include_paths())
    1
    """
    return [ptcore.get_include()] if torch_include_dirs else []


def library_paths(device_type="cpu", torch_include_dirs=True, cross_target_platform=None):
    """The folders of libraries: an empty list, since extensions are not linked to ptcore."""
    return []


def _listed(function, name, value, kind=str):
    """A list made of one value, several or None."""
    if value is None:
        return []
    found = [value] if isinstance(value, (kind, os.PathLike)) else list(value)
    for k, x in enumerate(found):
        if not isinstance(x, (kind, os.PathLike)):
            raise TypeError(f"{function}: {name} must be a {kind.__name__} or a list of them, got {type(x).__name__} "
                            f"at {k}")
    return [os.fspath(x) for x in found]


def _folders(function, paths):
    return [os.path.abspath(p) for p in _listed(function, "extra_include_paths", paths)]


def _checked_name(function, name):
    if not isinstance(name, str):
        raise TypeError(f"{function}: name must be a str, got {type(name).__name__}")
    if not name.isidentifier() or not name.isascii():
        raise ValueError(f"{function}: name must be an identifier, got {name!r}")


def _refuse_devices(function, **given):
    for name, value in given.items():
        if value:
            raise RuntimeError(f"{function}: {name} is not supported: {_KERNELS}")


def _loaded(function, name, path, is_python_module):
    if not is_python_module:
        import ctypes
        ctypes.CDLL(str(path))
        return str(path)
    spec = importlib.util.spec_from_file_location(name, path)
    try:
        module = importlib.util.module_from_spec(spec)
    except ImportError as e:
        if f"PyInit_{name}" in str(e):
            raise ImportError(f"{function}: {name} exports no module: name its functions in functions=, or write "
                              f"PT_MODULE({name}, m) {{ m.def(...); }}") from None
        raise
    spec.loader.exec_module(module)
    return module


def _root(name, build_directory):
    return Path(build_directory) if build_directory else Path(get_default_build_root()) / name


def _defines(name):
    return [f"-DPT_EXTENSION_NAME={name}", f"-DTORCH_EXTENSION_NAME={name}"]


def load(name, sources, extra_cflags=None, extra_cuda_cflags=None, extra_sycl_cflags=None, extra_ldflags=None,
         extra_include_paths=None, build_directory=None, verbose=False, with_cuda=None, with_sycl=None,
         is_python_module=True, is_standalone=False, keep_intermediates=True) -> "Any":
    """Compiles files and imports the module that they make.

    Parameters
    ----------
    name : str
        The module's name; the sources see it as ``PT_EXTENSION_NAME``.
    sources : str or list of str
        Files of C++ (``.cpp``, ``.cc``, ``.cxx``), C (``.c``) or Cython (``.pyx``).
    extra_cflags, extra_ldflags, extra_include_paths : list of str, optional
        For the compiler, for the linker, and folders of headers.
    extra_cuda_cflags, extra_sycl_cflags : list of str, optional
        Have no effect.
    build_directory : str, optional
        The folder for compiled extensions, in place of :func:`get_default_build_root`.
    verbose : bool
        Whether commands and their output are printed.
    with_cuda, with_sycl : bool, optional
        Refused.
    is_python_module : bool
        Whether the result is imported; else the shared object is opened, and its path returned.
    is_standalone : bool
        Refused: programs are made by a build system.
    keep_intermediates : bool
        Has no effect: sources are kept beside their results.

    Returns
    -------
    module

    Raises
    ------
    RuntimeError
        If there is no compiler, or the sources do not compile: with the compiler's message.
    FileNotFoundError
        If a source does not exist.

    Notes
    -----
    The cache knows a module by its sources, the headers that they include, flags, compiler, Python and ptcore's own
    headers. It is filled once, however many processes start together.
    """
    from ptcore.utils._extension_build import Build
    _checked_name("load", name)
    _refuse_devices("load", with_cuda=with_cuda, with_sycl=with_sycl)
    if is_standalone:
        raise RuntimeError("load: is_standalone=True is not supported: a program is made by a build system, with the "
                           "headers of include_paths()")
    found = []
    for path in _listed("load", "sources", sources):
        if path.endswith((".cu", ".cuh")):
            _refuse_devices("load", **{path: True})
        if not os.path.isfile(path):
            raise FileNotFoundError(f"load: there is no source {path}")
        path = os.path.abspath(path)
        found.append((path, Path(path).read_bytes()))
    if not found:
        raise ValueError("load: sources must not be empty")
    build = Build("load", name, found, {}, [*_defines(name), *_listed("load", "extra_cflags", extra_cflags)],
                  _listed("load", "extra_ldflags", extra_ldflags),
                  _folders("load", extra_include_paths), verbose)
    return _loaded("load", name, build.make(_root(name, build_directory)), is_python_module)


def load_inline(name, cpp_sources=None, cuda_sources=None, sycl_sources=None, functions=None, extra_cflags=None,
                extra_cuda_cflags=None, extra_sycl_cflags=None, extra_ldflags=None, extra_include_paths=None,
                build_directory=None, verbose=False, with_cuda=None, with_sycl=None, is_python_module=True,
                with_pytorch_error_handling=True, keep_intermediates=True, use_pch=False, no_implicit_headers=False, *,
                cython_sources=None) -> "Any":
    r"""Compiles texts and imports the module that they make.

    Parameters
    ----------
    name : str
        The module's name; the sources see it as ``PT_EXTENSION_NAME``.
    cpp_sources : str or list of str, optional
        C++17. ``ptcore/extension.h`` is included before it.
    cuda_sources, sycl_sources : str or list of str, optional
        Refused.
    functions : str, list of str or dict, optional
        The functions of ``cpp_sources`` that the module has, or a dict of them to their docstrings. Their parameters
        and results may be tensors, numbers, bools, strings, ``std::optional``, ``std::vector``, ``std::tuple`` of
        these, and ``pt::object``. Without it the text exports its module by ``PT_MODULE``.
    extra_cflags, extra_ldflags, extra_include_paths, build_directory, verbose, is_python_module
        As of :func:`load`.
    extra_cuda_cflags, extra_sycl_cflags, with_pytorch_error_handling, keep_intermediates, use_pch
        Have no effect.
    with_cuda, with_sycl : bool, optional
        Refused.
    no_implicit_headers : bool
        Whether ``ptcore/extension.h`` is left out.
    cython_sources : str or list of str, optional
        Cython, of which the module is made; ``cpp_sources`` are then the header ``NAME.hpp``.

    Returns
    -------
    module

    Raises
    ------
    RuntimeError
        If there is no compiler, or the sources do not compile: with the compiler's message, which shows the line.
    ValueError
        If there are no sources.

    Examples
    --------
    A whole program, which takes about a second when it is run first:

    >>> import ptcore
    >>> from ptcore.utils.cpp_extension import load_inline
    >>> m = load_inline("scaled", "pt::Tensor f(pt::Tensor x, double a) { return x * a; }", functions=["f"])
    >>> m.f(ptcore.ones(2), 3.0)
    tensor([3., 3.])
    """
    from ptcore.utils._extension_build import Build
    _checked_name("load_inline", name)
    _refuse_devices("load_inline", cuda_sources=cuda_sources, sycl_sources=sycl_sources, with_cuda=with_cuda,
                    with_sycl=with_sycl)
    cpp = _listed("load_inline", "cpp_sources", cpp_sources)
    cython = _listed("load_inline", "cython_sources", cython_sources)
    if not cpp and not cython:
        raise ValueError("load_inline: cpp_sources or cython_sources must be given")
    if not isinstance(functions, dict):
        functions = dict.fromkeys(_listed("load_inline", "functions", functions), "")
    if functions and cython:
        raise ValueError("load_inline: functions are those of cpp_sources; cython_sources export theirs by themselves")
    header = "" if no_implicit_headers else "#include <ptcore/extension.h>\n"
    text = "\n".join(cpp) + "\n"
    if cython:
        written = {f"{name}.hpp": f"#pragma once\n{header}{text}"} if cpp else {}
        sources = [(f"{name}.pyx", ("\n".join(cython) + "\n").encode())]
    else:
        # The text is written to a file of its own, so that messages show the user's lines.
        written = {f"{name}.cpp": text}
        lines = [f'{header}#include "{name}.cpp"']
        if functions:
            lines.append(f"PT_MODULE({name}, pt_exports) {{")
            lines += [f"    pt_exports.def({_quoted(f)}, &{f}, {_quoted(doc)});" for f, doc in functions.items()]
            lines.append("}")
        sources = [(f"{name}_module.cpp", ("\n".join(lines) + "\n").encode())]
    build = Build("load_inline", name, sources, written,
                  [*_defines(name), *_listed("load_inline", "extra_cflags", extra_cflags)],
                  _listed("load_inline", "extra_ldflags", extra_ldflags),
                  _folders("load_inline", extra_include_paths), verbose)
    return _loaded("load_inline", name, build.make(_root(name, build_directory)), is_python_module)


def _quoted(text):
    """A text as a literal of C++."""
    if not isinstance(text, str):
        raise TypeError(f"load_inline: docstrings of functions must be str, got {type(text).__name__}")
    return '"' + "".join(c if (c.isascii() and c.isalnum()) or c in " _.,()[]{}:;+-*/=<>'" else
                         "".join(f"\\{b:03o}" for b in c.encode()) for c in text) + '"'


# -- setuptools ------------------------------------------------------------------------------------------

def CppExtension(name, sources, *args, **kwargs):
    """A ``setuptools.Extension`` in C++17 with ptcore's headers.

    Parameters
    ----------
    name : str
    sources : list of str
    *args, **kwargs
        Of ``setuptools.Extension``.

    Returns
    -------
    setuptools.Extension
    """
    from setuptools import Extension
    kwargs["include_dirs"] = [*(kwargs.get("include_dirs") or []), *include_paths()]
    kwargs["language"] = "c++"
    return Extension(name, list(map(os.fspath, sources)), *args, **kwargs)


def CUDAExtension(name, sources, *args, **kwargs):
    """Refused: raises RuntimeError."""
    _refuse_devices("CUDAExtension", **{f"an extension of CUDA, {name},": True})


def SyclExtension(name, sources, *args, **kwargs):
    """Refused: raises RuntimeError."""
    raise RuntimeError("SyclExtension: SYCL is not supported: a device type of another package is a pt_backend, see "
                       "ptcore.ops.register_backend")


def _build_extension():
    from setuptools.command.build_ext import build_ext

    class BuildExtension(build_ext):
        """The command ``build_ext`` for extensions of :func:`CppExtension`: C++17, ``PT_EXTENSION_NAME``."""

        options_of_class = types.MappingProxyType({})

        @classmethod
        def with_options(cls, **options):
            """A command with options: ``use_ninja`` and ``no_python_abi_suffix`` are known."""
            return type(cls.__name__, (cls,), {"options_of_class": {**cls.options_of_class, **options}})

        def build_extension(self, ext):
            last = ext.name.rpartition(".")[2]
            names = ("PT_EXTENSION_NAME", "TORCH_EXTENSION_NAME")
            ext.define_macros = [*(ext.define_macros or []), *[(name, last) for name in names]]
            flags = ext.extra_compile_args
            if isinstance(flags, dict):         # flags by compiler, as PyTorch accepts them
                flags = flags.get("cxx", [])
            if ext.language == "c++" and not any(str(flag).startswith(("-std=", "/std:")) for flag in flags):
                flags = ["/std:c++17" if self.compiler.compiler_type == "msvc" else "-std=c++17", *flags]
            ext.extra_compile_args = flags
            super().build_extension(ext)

        def get_ext_filename(self, ext_name):
            name = super().get_ext_filename(ext_name)
            if self.options_of_class.get("no_python_abi_suffix"):
                parts = name.split(".")
                name = ".".join([*parts[:-2], parts[-1]])
            return name

    return BuildExtension


def __getattr__(name):
    if name == "BuildExtension":            # imports setuptools only where it is used
        globals()[name] = found = _build_extension()
        return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


# -- compilers -------------------------------------------------------------------------------------------

def get_cxx_compiler():
    """The program that compiles C++.

    Raises
    ------
    RuntimeError
        If there is none.
    """
    from ptcore.utils._extension_build import find_compiler
    return find_compiler().command[0]


def check_compiler_is_gcc(compiler):
    """Whether a program is GCC's compiler of C++."""
    return _says(compiler, "-v", "gcc version")


def check_compiler_ok_for_platform(compiler):
    """Whether a program exists: every C++17 compiler will do, since extensions share no types of C++ with ptcore."""
    import shutil
    return shutil.which(compiler) is not None


def get_compiler_abi_compatibility_and_version(compiler):
    """(True, the compiler's version): extensions share no types of C++ with ptcore."""
    import re
    import subprocess
    said = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"\d+(\.\d+)+", said)
    return True, found.group() if found else "0.0.0"


def _says(command, option, text):
    import subprocess
    try:
        done = subprocess.run([command, option], capture_output=True, text=True, check=False)
    except OSError:
        return False
    return text in done.stdout + done.stderr


def is_ninja_available():
    """Whether the program ninja is there; it is not needed."""
    import shutil
    return shutil.which("ninja") is not None


def verify_ninja_availability():
    """Raises RuntimeError if :func:`is_ninja_available` is False."""
    if not is_ninja_available():
        raise RuntimeError("Ninja is required to load C++ extensions (pip install ninja to get it)")


def remove_extension_h_precompiler_headers():
    """Does nothing: headers are not compiled ahead."""
