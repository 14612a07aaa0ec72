"""Conda packages."""
import json
import os
import re
import shutil
from pathlib import Path

from . import ROOT, WORK, Broken, accuracy, environment, needed, part, run

# What a package may link: the C and C++ libraries, and none of BLAS.
LINKED = re.compile(r"(libc|libm|libdl|libpthread|librt|libstdc\+\+|libgcc_s|libutil)\.so|ld-linux")


def linked(package, tools):
    """{library: names of shared objects that need it} of a conda package."""
    folder = WORK / "conda" / "package"
    code = "import sys; from rattler.package_streaming import extract; extract(*sys.argv[1:])"
    run(tools("python"), "-c", code, package, folder)
    return needed(folder)


@part("conda")
def conda(options):
    """rattler-build makes the recipe's package from a local channel and runs its tests; digits trains in a prefix."""
    tools = environment("conda-tools", "py-rattler-build==0.73.*", "py-rattler", "packaging")
    folder = WORK / "conda"
    shutil.rmtree(folder, ignore_errors=True)
    wheels = folder / "wheels"
    wheels.mkdir(parents=True)
    run(tools("python"), "-m", "pip", "download", "--quiet", "--only-binary", ":all:", "-d", wheels, "numpy>=2.0",
        "scipy>=1.11", "scikit-learn", "tqdm", "matplotlib", "pip", "cython>=3.3,<3.4", "meson-python>=0.16", "ninja")
    said = run(tools("python"), ROOT / "tools" / "shipping" / "conda_channel.py", folder, ROOT / "packaging" / "conda",
               wheels, *([os.environ["CCACHE_DIR"]] if shutil.which("ccache") and "CCACHE_DIR" in os.environ else []),
               env={"RATTLER_CACHE_DIR": str(folder / "cache")})
    done = json.loads(said.strip().splitlines()[-1])
    print(f"rattler-build {done['tool']}", *done["installed"], sep="\n")
    package = Path(done["package"])
    libraries = linked(package, tools)
    others = {name: files for name, files in libraries.items() if not LINKED.match(name)}
    if others or not libraries:
        raise Broken(f"the package links {others}")
    said = run(folder / "prefix" / "bin" / "ptcore-examples", "digits", "--quiet", cwd=folder, show=True,
               env={"PATH": f"{folder / 'prefix' / 'bin'}:/usr/bin:/bin"})
    return (f"rattler-build {done['tool']} (its bindings), {package.name} {package.stat().st_size / 1e6:.2f} MB links "
            f"{', '.join(sorted(libraries))}; {accuracy(said)}; conda-forge itself: not run")
