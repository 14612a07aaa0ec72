"""Other Pythons: each builds a wheel and tests it, on this machine or in a root file system of Debian."""
import os
import shutil
import subprocess
from pathlib import Path

from . import ROOT, WORK, Broken, debian_root, part, run

PYTHONS = ("3.12", "3.13", "3.14", "3.15")
SUITES = {"3.12": "trixie", "3.13": "trixie", "3.14": "testing", "3.15": "testing"}
# Tried is the Python: kernels for one level of processors, with little optimisation, are compiled in a third of the
# time. Relative paths are the same in each clone, so that compilers' caches know the kernels.
FAST = "-Csetup-args=-Dportable=true -Csetup-args=-Doptimization=1 -Cbuild-dir=build/ship"
BUILD = "pip wheel --quiet --no-deps --wheel-dir {at}/dist {fast} -Ccompile-args=-j{jobs} .\n"
# A user's two commands, with the tests that need PyTorch left out.
COMMANDS = """set -e
cd {at}/src
{python} -m venv --clear {at}/env
. {at}/env/bin/activate
pip install --quiet --upgrade pip
{build}
pip install --quiet "$(echo {at}/dist/*.whl)[test]"
python -P -c 'import sys, sysconfig, ptcore; print(sys.version, sysconfig.get_platform()); print(ptcore.show_config())'
"""
# What the inner loop leaves out of the places that know the interpreter: its processes, compilers, frames and modules.
KNOWING = ("autograd/test_source_lines.py", "compat", "extension", "multiprocessing", "utils")
PYTEST = "python -P -m pytest -q -p no:cacheprovider {workers} -m '{marks}' {files}\n"
MOUNTS = (("proc", "-t proc proc"), ("dev", "--rbind /dev"), ("dev/shm", "-t tmpfs tmpfs"))


def root(suite, *packages):
    """A root file system of a suite, made once, with the certificates of this machine."""
    folder = WORK / "roots" / f"{suite}-{'-'.join(packages[:1])}"
    if not (folder / "made").exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.parent.mkdir(exist_ok=True)
        debian_root(suite, folder, *packages)
        certificates = Path("/etc/ssl/certs/ca-certificates.crt")
        if certificates.exists():
            shutil.copy(certificates, folder / "etc/ssl/certs/ca-certificates.crt")
        (folder / "made").touch()
    return folder


def inside(folder, script, log):
    """Runs a script in a root file system with /proc, /dev and a /dev/shm of its own; what it said."""
    # Of compilers, which Pythons of one suite have in common; of kernels on the stand-in driver.
    caches = {"ccache": WORK / "ccache", "standin": WORK / f"standin-{folder.name.partition('-')[0]}"}
    for place, kept in caches.items():
        for made in (kept, folder / place):
            made.mkdir(exist_ok=True)
    mounts = "\n".join(f"mount {options} '{folder}/{place}'" for place, options in (
        *((place, f"--bind '{kept}'") for place, kept in caches.items()), *MOUNTS))
    (folder / "script").write_text(script)
    env = {k: v for k, v in os.environ.items() if k == "PIP_INDEX_URL" or k.lower().endswith("_proxy")}
    env |= {"HOME": "/root", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8", "CCACHE_DIR": "/ccache",
            "PTCORE_STANDIN_DIR": "/standin", "PIP_CERT": "/etc/ssl/certs/ca-certificates.crt"}
    command = ["unshare", "--mount", "--pid", "--fork", "bash", "-ec", f"{mounts}\nchroot '{folder}' bash /script"]
    with open(log, "w") as out:
        done = subprocess.run(command, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
                              check=False)
    said = Path(log).read_text(errors="replace")
    if done.returncode:
        raise Broken(f"in {folder.name}: {said[-4000:]}")
    return said


def cloned(folder):
    """This commit in a folder, whose files keep their times unless they change."""
    if (folder / ".git").exists():
        run("git", "fetch", "--quiet", "origin", cwd=folder)
        run("git", "reset", "--quiet", "--hard", run("git", "rev-parse", "HEAD").strip(), cwd=folder)
        run("git", "clean", "-fdxq", cwd=folder)
    else:
        shutil.rmtree(folder, ignore_errors=True)
        run("git", "clone", "--quiet", ROOT, folder)


def of_this_machine(version):
    """This machine's Python of a version, pyenv's among them, or None."""
    for python in filter(None, (shutil.which(f"python{version}"),
                                *Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))):
        said = run(python, "-c", "import sys; print('%d.%d' % sys.version_info[:2], sys.executable)", check=False)
        if said.startswith(f"{version} "):
            return said.split()[1]
    return None


def tests(options):
    """The commands that run the tests: of the inner loop and of what knows the interpreter, or all."""
    workers = f"-n {options.jobs} --dist worksteal" if options.jobs > 1 else ""
    if options.whole:
        sets = [("not alone and not parity", "tests", workers), ("alone and not parity", "tests", "")]
    else:
        sets = [("core and not alone and not parity", "tests", workers),
                ("not core and not parity", " ".join(f"tests/{name}" for name in KNOWING), "")]
    return "".join(PYTEST.format(marks=marks, files=files, workers=of) for marks, files, of in sets)


def on_this_machine(folder, script, log):
    """Runs a script here, as `inside` does in a root file system; what it said."""
    with open(log, "w") as out:
        done = subprocess.run(["bash", "-ec", script], stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
                              check=False)
    said = Path(log).read_text(errors="replace")
    if done.returncode:
        raise Broken(f"in {folder.name}: {said[-4000:]}")
    return said


def of_python(version):
    """The part of one Python."""
    @part(f"python-{version}")
    def python(options):
        command, folder, at, where = of_this_machine(version), WORK / "pythons" / version, "", on_this_machine
        if command:
            at = folder
        else:
            command = f"python{version}"
            folder, where = root(SUITES[version], command, f"{command}-venv", f"{command}-dev", "gcc", "g++", "make",
                                 "git", "ccache", "ca-certificates"), inside
        cloned(folder / "src")
        shutil.rmtree(folder / "dist", ignore_errors=True)
        (folder / "dist").mkdir()
        build = BUILD.format(at=at, fast=FAST, jobs=options.jobs)
        if options.wheel:
            build = ""
            shutil.copy(options.wheel, folder / "dist")
        script = COMMANDS.format(at=at, python=command, build=build) + tests(options)
        said = where(folder, script, WORK / f"python-{version}.log")
        summaries = [line.strip("= ") for line in said.splitlines() if " passed" in line]
        return f"{said.splitlines()[0].split(' (')[0]}: {'; '.join(summaries)}"
    python.__doc__ = f"A wheel that Python {version} builds passes the core tests (--whole: all but parity)."


for _version in PYTHONS:
    of_python(_version)
