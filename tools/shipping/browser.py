"""Pyodide: a wheel for Python in the browser, by Debian testing's Emscripten, in Node and on a page in Chromium."""
import json
import re
import shutil
from pathlib import Path

from . import PYODIDE_BYTES, ROOT, WORK, Broken, NotRun, debian, environment, part, run
from .pages import HTML, make
from .platforms import PROGRAM, build_details
from .pythons import cloned, inside, root

# The release of Pyodide, whose Python, platform and size of types these are.
PYODIDE, PYTHON, PLATFORM = "314.0.7", "3.14", "pyemscripten_2026_0_wasm32"
FOLDER = WORK / "pyodide"
# What 32 bits of WebAssembly change in the configuration of Debian's Python of 64.
SIZES = {"SIZEOF_LONG": 4, "SIZEOF_VOID_P": 4, "SIZEOF_SIZE_T": 4, "SIZEOF_UINTPTR_T": 4, "SIZEOF_WCHAR_T": 4,
         "SIZEOF_TIME_T": 8, "SIZEOF_OFF_T": 8, "SIZEOF_PTHREAD_T": 4, "SIZEOF_LONG_DOUBLE": 16, "ALIGNOF_LONG": 4,
         "ALIGNOF_SIZE_T": 4}
TYPES = {"LONG": "long", "VOID_P": "void *", "SIZE_T": "size_t", "UINTPTR_T": "uintptr_t", "WCHAR_T": "wchar_t",
         "TIME_T": "time_t", "OFF_T": "off_t", "LONG_DOUBLE": "long double"}
CROSS_FILE = """[binaries]
c = 'emcc'
cpp = 'em++'
ar = 'emar'
strip = 'emstrip'
[built-in options]
cpp_args = {flags}
c_args = {flags}
cpp_link_args = {flags} + ['-sSIDE_MODULE=1', '-sWASM_BIGINT']
[host_machine]
system = 'emscripten'
cpu_family = 'wasm32'
cpu = 'wasm32'
endian = 'little'
[properties]
needs_exe_wrapper = true
"""
# Pyodide unwinds by WebAssembly's exceptions of the older form, and has no threads.
FLAGS = ["-fwasm-exceptions", "-sSUPPORT_LONGJMP=wasm", "-sWASM_LEGACY_EXCEPTIONS=1", "-msimd128"]
BUILD = """set -e
cd /src
python{python} -m venv /env
. /env/bin/activate
pip install --quiet --upgrade pip
pip install --quiet meson-python 'cython>=3.3,<3.4' ninja
printf '%s\\n' {asserts} > /sizes.c
emcc {flags} -I/python -c /sizes.c -o /sizes.o
emcc --version | sed -n 's/^emcc //p'
_PYTHON_HOST_PLATFORM={platform} pip wheel --quiet --no-deps --no-build-isolation --wheel-dir /wheel \\
    -Cbuild-dir=/build -Csetup-args=--cross-file=/cross.ini -Csetup-args=-Dpython.build_config=/details.json \\
    -Csetup-args=-Dcuda=disabled .
"""
NODE = """import { readFileSync } from "node:fs";
import { loadPyodide } from "pyodide";
const [wheel, program] = process.argv.slice(2);
const pyodide = await loadPyodide();
await pyodide.loadPackage(wheel);
pyodide.globals.set("source", readFileSync(program, "utf8"));
pyodide.runPython(`import sys
sys.argv = ["program", "/home"]
exec(compile(source, "program", "exec"), {"__name__": "__main__"})`);
"""


def write_python(folder):
    """Headers of a Python for WebAssembly, and the files by which Meson finds them and the compiler."""
    shutil.rmtree(folder / "python", ignore_errors=True)
    shutil.copytree(folder / "usr" / "include" / f"python{PYTHON}", folder / "python")
    config = (folder / "usr/include/x86_64-linux-gnu" / f"python{PYTHON}" / "pyconfig.h").read_text()
    for name, size in SIZES.items():
        config = re.sub(rf"#define {name} \d+", f"#define {name} {size}", config)
    (folder / "python" / "pyconfig.h").write_text(config)
    (folder / "cross.ini").write_text(CROSS_FILE.format(flags=FLAGS))
    suffix = f".cpython-{PYTHON.replace('.', '')}-wasm32-emscripten.so"
    (folder / "details.json").write_text(build_details(PYTHON, "emscripten-wasm32", suffix, "/python"))


def browser_wheel():
    """The wheel for Pyodide, and the version of Emscripten."""
    folder = root("testing", "emscripten", f"python{PYTHON}", f"python{PYTHON}-venv", f"python{PYTHON}-dev", "git",
                  "gcc", "ca-certificates")
    write_python(folder)
    cloned(folder / "src")
    shutil.rmtree(folder / "wheel", ignore_errors=True)
    asserts = " ".join(["'#include <Python.h>'", *(f"'_Static_assert(sizeof({c}) == SIZEOF_{name}, \"{name}\");'"
                                                  for name, c in TYPES.items())])
    said = inside(folder, BUILD.format(python=PYTHON, platform=PLATFORM, flags=" ".join(FLAGS), asserts=asserts),
                  WORK / "pyodide.log")
    (wheel,) = (folder / "wheel").glob("*.whl")
    if not wheel.name.endswith(f"-cp314-cp314-{PLATFORM}.whl"):
        raise Broken(f"{wheel.name} is not of {PLATFORM}")
    FOLDER.mkdir(exist_ok=True)
    for old in FOLDER.glob("*.whl"):
        old.unlink()
    return Path(shutil.copy(wheel, FOLDER)), re.search(r"\d+\.\d+\.\d+", said).group()


def interpreter():
    """The folder of Pyodide, of the npm registry."""
    for tool in ("node", "npm"):
        if not shutil.which(tool):
            raise NotRun(f"{tool} is not installed")
    FOLDER.mkdir(exist_ok=True)
    found = FOLDER / "node_modules" / "pyodide"
    if not found.exists():
        (FOLDER / "package.json").write_text(json.dumps({"private": True, "dependencies": {"pyodide": PYODIDE}}))
        run("npm", "install", "--no-fund", "--no-audit", cwd=FOLDER)
    return found


def click(pyodide, wheel, options):
    """What the page of the guide prints when its program is run in Chromium."""
    debian("chromium")
    make("html", options)
    beside = HTML / "_static" / "pyodide"
    shutil.rmtree(beside, ignore_errors=True)
    shutil.copytree(pyodide, beside)
    shutil.copy(wheel, beside / "ptcore.whl")
    command = environment("screenshots", "playwright")
    said = run(command("python"), ROOT / "tools" / "screenshots.py", HTML, WORK / "screens", "--click",
               "guide/browser.html", show=True)
    return said.strip().splitlines()[-1]


@part("pyodide")
def pyodide(options):
    """A wheel for Pyodide by Debian testing's Emscripten: Node trains with it, and a page does in headless Chromium."""
    place = interpreter()
    wheel, emscripten = browser_wheel()
    size = wheel.stat().st_size
    if size > PYODIDE_BYTES:
        raise Broken(f"{wheel.name}: {size:,} bytes of {PYODIDE_BYTES:,}")
    (FOLDER / "program.mjs").write_text(NODE)
    said = run("node", "program.mjs", wheel, PROGRAM, cwd=FOLDER, show=True)
    if "done" not in said.split():
        raise Broken(said[-2000:])
    last = click(place, wheel, options)
    return (f"{size / 1e6:.2f} MB, Emscripten {emscripten}, Pyodide {PYODIDE}; Node: trained; Chromium: {last}; "
            "NumPy there: not run")
