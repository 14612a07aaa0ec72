"""What the parts of ``tools/ship.py`` share: their table, environments and commands.

A part is a function of the command's options that returns a text of numbers. It raises Broken if a promise does not
hold, and NotRun if it cannot be proved here.
"""
import functools
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WORK = ROOT / "build-ship"
WHEEL_BYTES, AARCH64_BYTES, PYODIDE_BYTES = 13_000_000, 9_000_000, 8_000_000
SDIST_BYTES, IMAGE_BYTES = 3_000_000, 650_000_000
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
    done = subprocess.run(list(map(str, command)), cwd=cwd, text=True, errors="replace", stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={**os.environ, **(env or {})},
                          check=False)
    if show:
        print(done.stdout, end="")
    if check and done.returncode:
        raise Broken(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stdout[-4000:]}")
    return done.stdout


@functools.cache
def environment(name, *packages):
    """The commands of an environment with packages, which is made once: a function from a name to a path."""
    folder = WORK / name
    bin_folder = folder / ("Scripts" if os.name == "nt" else "bin")
    if not bin_folder.exists():
        run(sys.executable, "-m", "venv", folder)
    if packages:
        try:
            run(bin_folder / "python", "-m", "pip", "install", "--quiet", *packages)
            # Of a version that is there already pip installs no other wheel.
            own = [p.partition("[")[0] for p in packages if p.partition("[")[0].endswith(".whl")]
            if own:
                run(bin_folder / "python", "-m", "pip", "install", "--quiet", "--no-deps", "--force-reinstall", *own)
        except Broken as e:
            raise NotRun(f"its tools cannot be installed: {e}") from None
        said = run(bin_folder / "python", "-m", "pip", "list", "--format=freeze")
        wanted = {re.split(r"[<>=\[]", p)[0].lower() for p in packages}
        print("\n".join(line for line in said.splitlines() if line.partition("==")[0].lower() in wanted))
    return bin_folder.joinpath


def accuracy(said):
    """What the example of digits reached, from what it said."""
    found = re.search(r"mean test accuracy [\d.]+% \(stated: [^;]*; reached\)", said)
    if not found:
        raise Broken(f"digits did not train:\n{said[-2000:]}")
    return found.group()


def wheel_of(options):
    """The wheel that is given, or one that is built for this Python, once in a process."""
    return Path(options.wheel).resolve() if options.wheel else _built()


@functools.cache
def _built():
    folder = WORK / "dist"
    shutil.rmtree(folder, ignore_errors=True)
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, ".")
    (found,) = folder.glob("*.whl")
    return found


def debian(*packages):
    """Installs packages of Debian, which takes root."""
    if not hasattr(os, "geteuid") or os.geteuid() or not shutil.which("apt-get"):
        raise NotRun(f"it installs {', '.join(packages)} by apt-get, as root")
    if all(shutil.which(p) for p in packages):
        return
    run("apt-get", "update", "-q")
    run("apt-get", "install", "-y", "-q", *packages)


def debian_root(suite, target, *packages, options=("--variant=minbase",)):
    """Makes a root file system of a suite, a folder or an archive by the target's name."""
    debian("mmdebstrap")
    # A mirror of unstable may lag behind the date to which its index is valid.
    options = [*options, '--aptopt=Acquire::Check-Valid-Until "false"', *(f"--include={p}" for p in packages)]
    try:
        run("mmdebstrap", *options, suite, target)
    except Broken as e:
        raise NotRun(f"the root file system cannot be made: {e}") from None


def needed(folder):
    """{library: names of shared objects in a folder that need it}."""
    found = {}
    for file in sorted(folder.rglob("*.so")):
        for name in re.findall(r"NEEDED.*\[(.*)\]", run("readelf", "-d", file)):
            found.setdefault(name, []).append(file.name)
    return found


def passed(said):
    """The last summary of pytest in a text."""
    return [line for line in said.splitlines() if " passed" in line][-1].strip("= ")


def ratios(ours, theirs):
    """What timed.py said, over what it said of another build."""
    ours, theirs = (dict(line.split("\t") for line in said.splitlines() if "\t" in line) for said in (ours, theirs))
    return ", ".join(f"{name} {float(ours[name]) / float(theirs[name]):.2f}" for name in ours)
