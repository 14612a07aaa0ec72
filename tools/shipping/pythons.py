"""Other Pythons: root file systems of Debian in which a wheel is built and the tests run."""
import os
import shutil
import subprocess
from pathlib import Path

from . import ROOT, WORK, Broken, NotRun, debian_root, environment, part, passed, ratios, run

SUITES = {"3.13": "trixie", "3.14": "testing", "3.15": "testing"}
# What is tried is the Python: kernels for one level of processors, with little optimisation, are compiled in a third of
# the time.
FAST = "-Csetup-args=-Dportable=true -Csetup-args=-Doptimization=1"
# In the root: a user's two commands, with the tests that need PyTorch left out.
COMMANDS = """set -e
cd /src
python{version} -m venv /env
. /env/bin/activate
pip install --quiet --upgrade pip
pip install --quiet "$(pip wheel --quiet --no-deps --wheel-dir /dist {fast} . && echo /dist/*.whl)[test]"
python -P -c 'import sys, sysconfig, ptcore; print(sys.version, sysconfig.get_platform()); print(ptcore.show_config())'
pytest tests -q -p no:cacheprovider -n 2 --dist worksteal -m "not alone and not parity"
pytest tests -q -p no:cacheprovider -m "alone and not parity"
"""
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


def prepared(version):
    """The root file system of a Python, with a fresh clone of this commit in /src."""
    name = f"python{version}"
    folder = root(SUITES[version], name, f"{name}-venv", f"{name}-dev", "gcc", "g++", "make", "git", "ccache",
                  "ca-certificates")
    cloned(folder / "src")
    return folder


def of_python(version):
    """The part of one Python."""
    @part(f"python-{version}")
    def tests(options):
        folder = prepared(version)
        for made in ("env", "dist"):
            shutil.rmtree(folder / made, ignore_errors=True)
        said = inside(folder, COMMANDS.format(version=version, fast=FAST), WORK / f"python-{version}.log")
        summaries = [line.strip("= ") for line in said.splitlines() if " passed" in line]
        return f"{said.splitlines()[0].split(' (')[0]}: {'; '.join(summaries)}"
    tests.__doc__ = f"All tests but parity pass on Debian {SUITES[version]}'s Python {version}."


for _version in SUITES:
    of_python(_version)


# -- one wheel for many Pythons ------------------------------------------------------------------

OLDEST = "3.12"
CORE = """set -e
cd /src
rm -rf /env-stable
python{version} -m venv /env-stable
. /env-stable/bin/activate
pip install --quiet "$(echo /stable/*.whl)[test]"
python -P -c 'import sys, ptcore; print(sys.version.split()[0], ptcore._core.__file__)'
pytest tests -q -p no:cacheprovider -n 2 -m "core and not parity and not alone"
"""


def oldest():
    """The oldest Python that the limited API is of: of this machine or of pyenv."""
    found = [shutil.which(f"python{OLDEST}"), *Path.home().glob(f".pyenv/versions/{OLDEST}.*/bin/python")]
    for python in filter(None, found):
        if run(python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])", check=False).strip() == OLDEST:
            return python
    raise NotRun(f"there is no Python {OLDEST}")


def wheel_of_oldest(folder, limited):
    """A wheel that OLDEST builds of this commit, in little time as those of other Pythons."""
    shutil.rmtree(folder / "dist", ignore_errors=True)
    cloned(folder / "clone")
    if limited:                         # meson-python reads it here alone
        project = folder / "clone" / "pyproject.toml"
        text, heading = project.read_text(), "[tool.meson-python.args]"
        project.write_text(text.replace(heading, f"[tool.meson-python]\nlimited-api = true\n\n{heading}"))
    run(oldest(), "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder / "dist", *FAST.split(),
        f"-Cbuild-dir={folder / 'build'}", f"-Csetup-args=-Dlimited_api={str(limited).lower()}", ".",
        cwd=folder / "clone")
    (wheel,) = (folder / "dist").glob("*.whl")
    return wheel


@part("abi3")
def abi3(options):
    """One wheel by the limited API: clean under ``abi3audit --strict``, core tests on Python 3.12 to 3.15."""
    forms = (WORK / "abi3" / "limited", WORK / "abi3" / "usual")
    wheels = [wheel_of_oldest(folder, folder.name == "limited") for folder in forms]
    stable = wheels[0]
    if "-cp312-abi3-" not in stable.name:
        raise Broken(f"{stable.name} is of one Python")
    run(environment("abi3-audit", "abi3audit")("abi3audit"), "--strict", "--report", stable, show=True)
    times = []
    for folder, wheel in zip(forms, wheels, strict=True):
        run(oldest(), "-m", "venv", "--clear", folder / "env")
        run(folder / "env" / "bin" / "pip", "install", "--quiet", f"{wheel}[test]")
        times.append(run(folder / "env" / "bin" / "python", "-P", ROOT / "tools" / "shipping" / "timed.py", cwd=WORK))
    tests = run(forms[0] / "env" / "bin" / "python", "-P", "-m", "pytest", "tests", "-q", "-p", "no:cacheprovider",
                "-n", "2", "-m", "core and not parity and not alone", cwd=forms[0] / "clone")
    said = [f"{OLDEST}: {passed(tests)}"]
    for version in SUITES:
        folder = prepared(version)
        shutil.rmtree(folder / "stable", ignore_errors=True)
        (folder / "stable").mkdir()
        shutil.copy(stable, folder / "stable")
        text = inside(folder, CORE.format(version=version), WORK / f"abi3-{version}.log")
        said.append(f"{version}: {passed(text)}")
    return f"{stable.stat().st_size / 1e6:.2f} MB; {'; '.join(said)}; time over the usual wheel's: {ratios(*times)}"
