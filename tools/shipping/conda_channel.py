"""Run by the part ``conda`` in the environment of rattler-build's bindings:

    python conda_channel.py FOLDER RECIPE WHEELS [CCACHE_DIR]

makes in FOLDER/channel a channel of the running interpreter, of the wheels in a folder, and of packages that stand for
conda-forge's compilers and lead to the system's; builds the recipe from it, runs its tests, and installs the package
into the empty FOLDER/prefix.
"""
import asyncio
import json
import platform
import shutil
import subprocess
import sys
import tempfile
import zipfile
from email.parser import Parser
from pathlib import Path

import rattler
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from rattler.index import index_fs
from rattler_build import Stage0Recipe, ToolConfiguration, VariantConfig, assemble_package, rattler_build_version
from rattler_build.progress import SimpleProgressCallback

SHORT = ".".join(platform.python_version_tuple()[:2])
TAG = "cp" + SHORT.replace(".", "")
RENAMED = {"matplotlib": "matplotlib-base"}     # PyPI's names that are others in conda-forge
GLIBC = platform.libc_ver()[1]
GCC = subprocess.run(["gcc", "-dumpfullversion"], capture_output=True, text=True, check=True).stdout.strip()
# A first line for the shell, which is text to Python.
BESIDE = b"""#!/bin/sh
'''exec' "$(dirname "$0")/python" "$0" "$@"
' '''"""
# What this machine has in place of the recipe's variants.
HERE = {"python": [f"{SHORT}.* *_cpython"], "c_compiler_version": [GCC], "cxx_compiler_version": [GCC],
        "c_stdlib_version": [GLIBC]}


def package(name, version, script=(), **build):
    """A recipe of format 1."""
    return {"package": {"name": name, "version": version}, "build": {"number": 0, "script": list(script), **build},
            "requirements": {}}


def interpreter(prefix):
    """The recipes of the running interpreter, which rattler-build makes relocatable, and of its ABI."""
    left_out = ("__pycache__", "site-packages", "test", "tests", "idlelib", "*.a", "config-*", "ensurepip")
    site = f"$PREFIX/lib/python{SHORT}/site-packages"
    copy = [f"mkdir -p $PREFIX/bin && cp -a {prefix}/bin/python3 {prefix}/bin/python{SHORT} $PREFIX/bin/",
            "ln -sf python3 $PREFIX/bin/python",
            f"tar -C {prefix} {' '.join(f'--exclude={e}' for e in left_out)} -c include/python{SHORT} "
            f"lib/python{SHORT} $(cd {prefix} && ls -d lib/libpython* | grep -v '[.]a$') | tar -C $PREFIX -x",
            f"mkdir -p {site} && touch {site}/README.txt",
            f"(grep -rIl {prefix} $PREFIX || true) | xargs -r sed -i \"s|{prefix}|$PREFIX|g\""]
    python = package("python", platform.python_version(), copy, string="0_cpython",
                     python={"skip_pyc_compilation": ["**/*.py"]})      # it would start an interpreter for each
    python["requirements"]["run_exports"] = {"weak": [f"python_abi {SHORT}.* *_{TAG}"], "noarch": ["python"]}
    yield package("python_abi", SHORT, string=f"0_{TAG}")
    yield python


def compilers(cache):
    """The recipes of packages that stand for conda-forge's compilers: they name the system's."""
    by = "ccache " if cache else ""
    for name, variable, program in (("gcc", "CC", "gcc"), ("gxx", "CXX", "g++")):
        lines = [f"export {variable}='{by}{shutil.which(program)}'"] + [f"export CCACHE_DIR={cache}"] * bool(cache)
        file = f"$PREFIX/etc/conda/activate.d/{name}.sh"
        yield package(f"{name}_linux-64", GCC, [f"mkdir -p $(dirname {file})"] + [
            f'echo "{line}" >> {file}' for line in lines])
    yield package("sysroot_linux-64", GLIBC)


def repack(file, channel):
    """Makes a package of a wheel: what pip unpacks, with scripts that take the Python beside them."""
    archive = zipfile.ZipFile(file)
    (entry,) = [n for n in archive.namelist() if n.count("/") == 1 and n.endswith(".dist-info/METADATA")]
    about = Parser().parsestr(archive.read(entry).decode())
    needed = map(Requirement, about.get_all("Requires-Dist", []))
    run = [conda_name(r.name) + (f" {r.specifier}" if str(r.specifier) else "") for r in needed
           if r.marker is None or r.marker.evaluate({"extra": ""})]
    with tempfile.TemporaryDirectory() as stage:
        subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index", "--no-compile",
                        "--ignore-installed", "--no-warn-script-location", "--prefix", stage, file], check=True)
        for script in Path(stage, "bin").glob("*"):
            text = script.read_bytes()
            if text.startswith(b"#!" + sys.executable.encode()):
                script.write_bytes(BESIDE + text[text.index(b"\n"):])
        assemble_package(conda_name(about["Name"]), about["Version"], "linux-64", f"{TAG}_0", channel / "linux-64",
                         files_dir=stage, depends=[f"python_abi {SHORT}.*", "python", *run], compression_level=1,
                         detect_prefix=False)


def conda_name(name):
    """The name of a package of PyPI."""
    name = canonicalize_name(name)
    return RENAMED.get(name, name)


def build(recipe, variants, channel, **options):
    """The packages of a recipe."""
    made = []
    for variant in recipe.render(variants):
        result = variant.run_build(ToolConfiguration(**options), channel, channels=[channel.as_uri()],
                                   progress_callback=SimpleProgressCallback(), no_build_id=True)
        made += result.packages
    return made


async def install(channel, prefix, *specs):
    """The names of packages that specs bring into an empty prefix."""
    records = await rattler.solve([channel.as_uri()], specs,
                                  virtual_packages=rattler.VirtualPackage.detect())
    await rattler.install(records, target_prefix=prefix)
    return [f"{r.name.normalized} {r.version}" for r in records]


def main(folder, recipe, wheel_folder, cache=None):
    """Prints a line of JSON at last: the tool, the package, what was installed."""
    folder, channel = Path(folder), Path(folder, "channel")
    local = VariantConfig(HERE)
    for made in (*interpreter(sys.base_prefix), *compilers(cache)):
        build(Stage0Recipe.from_dict(made), local, channel)
    for file in sorted(Path(wheel_folder).glob("*.whl")):
        repack(file, channel)
    asyncio.run(index_fs(channel))
    variants = VariantConfig.from_file(Path(recipe, "variants.yaml"))
    print("variants as committed:", len(Stage0Recipe.from_file(Path(recipe, "recipe.yaml")).render(variants)))
    (built,) = build(Stage0Recipe.from_file(Path(recipe, "recipe.yaml")), variants.merge(local), channel,
                     test_strategy="native")
    asyncio.run(index_fs(channel))
    installed = asyncio.run(install(channel, folder / "prefix", "ptcore", "scikit-learn", "tqdm", "matplotlib-base"))
    print(json.dumps({"tool": rattler_build_version(), "package": str(built), "installed": installed}))


if __name__ == "__main__":
    main(*sys.argv[1:])
