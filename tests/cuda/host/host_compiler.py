"""The host's compiler in the place of NVRTC, and the build of the stand-in driver and libraries.

``compile`` makes of a program's text the shared object that the stand-in's ``cuLibraryLoadData`` takes for a cubin.
Needs nothing but Python's standard library and a C++17 compiler: ``$CXX``, else ``c++``, ``g++`` or ``clang++``.
"""

import functools
import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
HEADERS = [HERE, ROOT / "ptcore/cuda/kernels", ROOT / "ptcore/cuda/launch", ROOT / "ptcore/_ops/include"]

# Contraction is off so that host and device formulas give the CPU's bits; kernels reinterpret memory as CUDA does.
# What a GPU refuses and this machine would do is a trap, the driver's error 716: an access that is not aligned to its
# type. So is an index outside of an array whose size is known.
TRAPS = ["-fsanitize=alignment,bounds,return,unreachable", "-fsanitize-undefined-trap-on-error"]
FLAGS = ["-O1", "-g0", "-std=c++17", "-fPIC", "-w", "-fvisibility=hidden", "-ffp-contract=off", "-fno-exceptions",
         "-fno-rtti", "-fno-strict-aliasing", "-fno-threadsafe-statics", *TRAPS]
# Products and sums fused as NVRTC fuses them: what rests on a product that is rounded shows then. GCC fuses in a pass
# that -O1 leaves out.
FUSED = ["-ffp-contract=fast", "-fexpensive-optimizations",
         *(["-mfma"] if platform.machine().lower() in ("x86_64", "amd64") else [])]
DRIVER = ["standin_cuda.cpp", "standin_memory.cpp", "standin_virtual.cpp", "standin_copies.cpp", "standin_streams.cpp",
          "standin_graphs.cpp", "standin_library.cpp", "run.cpp", "scheduler.cpp", "races.cpp", "fibers.cpp"]
CUBLAS = ["standin_cublas.cpp"]
CUBLASLT = ["standin_cublaslt.cpp"]
CUFFT = ["standin_cufft.cpp"]
CUDNN = ["standin_cudnn.cpp", "standin_cudnn_graph.cpp"]
CUSOLVER = ["standin_cusolver.cpp"]
NO_DRIVER = ["no_driver.cpp"]


class CompileError(RuntimeError):
    """What the compiler said."""


def compiler():
    """The compiler's command as a list."""
    if not sys.platform.startswith("linux"):
        raise CompileError("kernels run on the host under Linux only: the stand-in driver loads ELF shared objects")
    if os.environ.get("CXX"):
        return shlex.split(os.environ["CXX"])
    for name in ("c++", "g++", "clang++"):
        if shutil.which(name):
            return [name]
    raise CompileError("no C++ compiler found: set CXX")


def _run(command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if done.returncode:
        raise CompileError(f"{shlex.join(str(c) for c in command)}\n{done.stderr}")


def flags(sanitize=""):
    """The options of a program.

    ``sanitize`` is as in ``-fsanitize=``: "address", "undefined", "address,undefined"; with "races" the driver checks
    each access to memory for races between threads.
    """
    if sanitize == "races":
        volatile = (["--param", "tsan-distinguish-volatile=1"] if _is_gcc() else
                    ["-mllvm", "-tsan-distinguish-volatile=1"])
        plain = [f for f in FLAGS if f not in ("-g0", *TRAPS)]
        return [*plain, "-g1", "-fsanitize=thread", "-DPT_HOST_RACES=1", *volatile]
    if not sanitize:
        return FLAGS
    return [f for f in FLAGS if f not in ("-g0", *TRAPS)] + ["-g1", f"-fsanitize={sanitize}", "-fno-omit-frame-pointer"]


def compile(text, headers_dirs=None, sanitize="", options=(), folder=None):
    """The bytes of the shared object that ``text``, a kernel program, is compiled to.

    ``headers_dirs`` takes the place of ``HEADERS``. A process that loads a program made with ``sanitize="address"`` has
    the sanitizer's library preloaded (``sanitizer_library``). ``folder`` is where a precompiled ``base.cuh`` is kept,
    which makes a program three times as fast to compile from the second one on.
    """
    headers_dirs = HEADERS if headers_dirs is None else headers_dirs
    command = [*compiler(), *flags(sanitize), *options, *[f"-I{d}" for d in headers_dirs]]
    with tempfile.TemporaryDirectory() as aside:
        source, out = Path(aside) / "program.cpp", Path(aside) / "program.so"
        source.write_text(text)
        first = ["-include", _precompiled(command, headers_dirs, Path(folder))] if folder and _is_gcc() else []
        if sanitize == "races":         # linked apart: the driver is in the place of the sanitizer's library
            _run([*command, *first, "-c", source, "-o", f"{out}.o"])
            _run([*compiler(), "-shared", f"{out}.o", "-o", out])
        else:
            _run([*command, *first, "-shared", source, "-o", out])
        return out.read_bytes()


def cached(text, folder, **options):
    """``compile``, whose results are kept in ``folder`` as long as no header changes."""
    digest = hashlib.sha256(repr([text, sorted(options.items()), compiler(), FLAGS]).encode() + _headers(HEADERS))
    path = Path(folder) / f"program-{digest.hexdigest()[:24]}.so"
    if not path.exists():
        made = compile(text, folder=folder, **options)
        aside = path.with_suffix(f".{os.getpid()}")
        aside.write_bytes(made)
        os.replace(aside, path)
    return path.read_bytes()


@functools.cache
def _is_gcc():
    text = subprocess.run([*compiler(), "--version"], capture_output=True, text=True).stdout
    return "clang" not in text


def identity(sanitize="", options=()):
    """What a program's result depends on beside its text and the kernels' headers, as a cache of programs needs it."""
    shim = hashlib.sha256(b"".join((HERE / name).read_bytes() for name in ("shim.h", "state.h"))).hexdigest()
    return f"host {shlex.join(compiler())} {shlex.join([*flags(sanitize), *options])} {shim[:16]}"


def _headers(directories):
    """A digest of everything that a program may include, taken once in a process."""
    return _headers_of(tuple(str(d) for d in directories))


@functools.cache
def _headers_of(directories):
    digest = hashlib.sha256()
    for directory in directories:
        for path in sorted(Path(directory).rglob("*")):
            if path.suffix in (".h", ".hpp", ".cuh"):
                digest.update(str(path).encode() + b"\0" + path.read_bytes())
    return digest.digest()


def _precompiled(command, headers_dirs, folder):
    # gcc takes base.cuh.gch for an included base.cuh that itself need not exist.
    digest = hashlib.sha256(repr(command).encode() + _headers(headers_dirs))
    home = folder / digest.hexdigest()[:16]
    if not (home / "base.cuh.gch").exists():
        home.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as aside:
            base = next(Path(d) / "base.cuh" for d in headers_dirs if (Path(d) / "base.cuh").exists())
            _run([*command, "-x", "c++-header", base, "-o", Path(aside) / "gch"])
            os.replace(Path(aside) / "gch", home / "base.cuh.gch")
    return home / "base.cuh"


def sanitizer_library(name="asan"):
    """The path of libasan or libubsan, for LD_PRELOAD."""
    command = [c for c in compiler() if Path(c).name != "ccache"]
    path = subprocess.run([*command, f"-print-file-name=lib{name}.so"], capture_output=True, text=True).stdout.strip()
    return str(Path(path).resolve())


def _build(folder, name, sources, link, optimise="-O1"):
    """Compiles ``sources`` to the shared library ``name`` in ``folder`` unless it is there, made of the same text."""
    folder = Path(folder)
    options = [optimise, "-g1", "-std=c++17", "-fPIC", "-fvisibility=hidden", "-Wall", "-Wextra"]
    digest = hashlib.sha256(repr([compiler(), options, link]).encode())
    for path in sorted([*HERE.glob("*.cpp"), *HERE.glob("*.h"), *HERE.glob("*.hpp")]):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    stamp, out = folder / f"{name}.hash", folder / name
    if out.exists() and stamp.exists() and stamp.read_text() == digest.hexdigest():
        return out
    folder.mkdir(parents=True, exist_ok=True)
    # Others may be at it: all is made aside and moved in at the end.
    with tempfile.TemporaryDirectory(dir=folder) as aside:
        objects = []
        for source in sources:
            objects.append(Path(aside) / (Path(source).stem + ".o"))
            _run([*compiler(), *options, "-I", HERE, "-I", HEADERS[-1], "-c", HERE / source, "-o", objects[-1]])
        made = Path(aside) / name
        _run([*compiler(), "-shared", *objects, "-o", made, *link])
        os.replace(made, out)
        (Path(aside) / "hash").write_text(digest.hexdigest())
        os.replace(Path(aside) / "hash", stamp)
    return out


def build_standin(folder):
    """Builds ``libcuda.so.1`` into ``folder``; the path of it."""
    return _build(folder, "libcuda.so.1", DRIVER,
                  ["-Wl,-soname,libcuda.so.1", "-Wl,--no-undefined", "-ldl", "-lpthread", "-lrt"])


def build_cublas(folder):
    """Builds the stand-in cuBLAS into ``folder``; the path of it."""
    return _build(folder, "libcublas_standin.so", CUBLAS, ["-ldl"], "-O3")


def build_cublaslt(folder):
    """Builds the stand-in cuBLASLt into ``folder``; the path of it."""
    return _build(folder, "libcublasLt_standin.so", CUBLASLT, ["-ldl"], "-O3")


def build_cufft(folder):
    """Builds the stand-in cuFFT into ``folder``; the path of it."""
    return _build(folder, "libcufft_standin.so", CUFFT, ["-ldl"], "-O2")


def build_cusolver(folder):
    """Builds the stand-in cuSOLVER into ``folder``; the path of it."""
    return _build(folder, "libcusolver_standin.so", CUSOLVER, ["-ldl"], "-O1")


def build_cudnn(folder):
    """Builds the stand-in cuDNN into ``folder``; the path of it."""
    return _build(folder, "libcudnn_standin.so", CUDNN, ["-ldl"], "-O2")


def build_no_driver(folder):
    """Builds a ``libcuda.so.1`` without a device into ``folder``; the path of it."""
    return _build(folder, "libcuda.so.1", NO_DRIVER, ["-Wl,-soname,libcuda.so.1"])


if __name__ == "__main__":
    for build in (build_standin, build_cublas, build_cublaslt, build_cufft, build_cusolver, build_cudnn):
        print(build(sys.argv[1] if len(sys.argv) > 1 else "."))
