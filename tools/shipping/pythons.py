"""Other Pythons: root file systems of Debian in which a wheel is built and the tests run."""
import os
import shutil
import subprocess
from pathlib import Path

from . import ROOT, WORK, Broken, NotRun, debian, environment, part, run

SUITES = {"3.13": "trixie", "3.14": "testing", "3.15": "testing"}
# In the root: a user's two commands, with the tests that need PyTorch left out.
COMMANDS = """set -e
cd /src
python{version} -m venv /env
. /env/bin/activate
pip install --quiet --upgrade pip
pip install --quiet "$(pip wheel --quiet --no-deps --wheel-dir /dist . && echo /dist/*.whl)[test]"
python -c 'import sys, sysconfig, ptcore; print(sys.version, sysconfig.get_platform()); print(ptcore.show_config())'
pytest tests -q -p no:cacheprovider -n 2 --dist worksteal -m "not alone and not parity"
pytest tests -q -p no:cacheprovider -m "alone and not parity"
"""
MOUNTS = (("proc", "-t", "proc", "proc"), ("dev", "--rbind", "/dev"), ("dev/shm", "-t", "tmpfs", "tmpfs"))


def root(suite, *packages):
    """A root file system of a suite, made once, with the certificates of this machine."""
    debian("mmdebstrap")
    folder = WORK / "roots" / f"{suite}-{'-'.join(packages[:1])}"
    if not (folder / "made").exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.parent.mkdir(exist_ok=True)
        try:
            run("mmdebstrap", "--variant=minbase", f"--include={','.join(packages)}", suite, folder)
        except Broken as e:
            raise NotRun(f"the root cannot be made: {e}") from None
        certificates = Path("/etc/ssl/certs/ca-certificates.crt")
        if certificates.exists():
            shutil.copy(certificates, folder / "etc/ssl/certs/ca-certificates.crt")
        (folder / "made").touch()
    return folder


def inside(folder, script, log):
    """Runs a script in a root file system with /proc, /dev and a /dev/shm of its own; what it said."""
    mounts = "\n".join(f"mount {' '.join(m[1:])} '{folder}/{m[0]}'" for m in MOUNTS)
    (folder / "script").write_text(script)
    env = {k: v for k, v in os.environ.items() if k == "PIP_INDEX_URL" or k.lower().endswith("_proxy")}
    env |= {"HOME": "/root", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8",
            "PIP_CERT": "/etc/ssl/certs/ca-certificates.crt"}
    command = ["unshare", "--mount", "--pid", "--fork", "bash", "-ec", f"{mounts}\nchroot '{folder}' bash /script"]
    with open(log, "w") as out:
        done = subprocess.run(command, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
                              check=False)
    said = Path(log).read_text(errors="replace")
    if done.returncode:
        raise Broken(f"in {folder.name}: {said[-4000:]}")
    return said


def prepared(version):
    """The root file system of a Python, with a fresh clone of this commit in /src."""
    name = f"python{version}"
    folder = root(SUITES[version], name, f"{name}-venv", f"{name}-dev", "gcc", "g++", "make", "git", "ca-certificates")
    shutil.rmtree(folder / "src", ignore_errors=True)
    run("git", "clone", "--quiet", ROOT, folder / "src")
    return folder


def of_python(version):
    """The part of one Python."""
    @part(f"python-{version}")
    def tests(options):
        folder = prepared(version)
        for made in ("env", "dist"):
            shutil.rmtree(folder / made, ignore_errors=True)
        said = inside(folder, COMMANDS.format(version=version), WORK / f"python-{version}.log")
        summaries = [line.strip("= ") for line in said.splitlines() if " passed" in line]
        return f"{said.splitlines()[0].split(' (')[0]}: {'; '.join(summaries)}"
    tests.__doc__ = f"All tests but parity pass on Debian {SUITES[version]}'s Python {version}."


for _version in SUITES:
    of_python(_version)


# -- one wheel for many Pythons ------------------------------------------------------------------

# In the root of the oldest Python that Debian has of those the wheel is for.
BUILD_STABLE = """set -e
cd /src
sed -i 's/^\\[tool.meson-python.args\\]/[tool.meson-python]\\nlimited-api = true\\n\\n&/' pyproject.toml
sed -i 's/^setup = \\[/&"-Dlimited_api=true", "-Dcuda=disabled", /' pyproject.toml
python3.13 -m venv /env-build
/env-build/bin/pip wheel --quiet --no-deps --wheel-dir /stable .
ls /stable
"""
CORE = """set -e
cd /src
rm -rf /env-stable
python{version} -m venv /env-stable
. /env-stable/bin/activate
pip install --quiet "$(echo /stable/*.whl)[test]"
python -c 'import sys, ptcore; print(sys.version.split()[0], ptcore._core.__file__)'
pytest tests -q -p no:cacheprovider -n 2 -m "core and not parity and not alone"
"""
SMALL = """
import time, ptcore as pt
a = pt.randn(8, 8)
names = {"a + a": lambda: a + a, "a.exp()": a.exp, "a.sum()": a.sum, "a[1:]": lambda: a[1:], "a @ a": lambda: a @ a}
for name, f in names.items():
    def once():
        start = time.perf_counter()
        for _ in range(1000):
            f()
        return time.perf_counter() - start
    print(name, min(once() for _ in range(50)) * 1e6, sep="\\t")
"""
SMALL_SCRIPT = """set -e
python3.13 -m venv --clear /env-small
/env-small/bin/pip install --quiet {wheel}
cd /
/env-small/bin/python -P - <<'PROGRAM'
{program}
PROGRAM
"""


@part("abi3")
def abi3(options):
    """One wheel by the limited API: clean under ``abi3audit --strict``, core tests on Python 3.13, 3.14 and 3.15."""
    audit = environment("abi3", "abi3audit")("abi3audit")
    built, said = None, []
    for version in SUITES:
        folder = prepared(version)
        if built is None:
            shutil.rmtree(folder / "stable", ignore_errors=True)
            inside(folder, BUILD_STABLE, WORK / "abi3-build.log")
            (built,) = (folder / "stable").glob("*-cp312-abi3-*.whl")
            run(audit, "--strict", "--report", built, show=True)
        else:
            shutil.rmtree(folder / "stable", ignore_errors=True)
            (folder / "stable").mkdir()
            shutil.copy(built, folder / "stable")
        text = inside(folder, CORE.format(version=version), WORK / f"abi3-{version}.log")
        said.append(f"{version}: {[line for line in text.splitlines() if ' passed' in line][-1].strip('= ')}")
    times = []
    for wheel in ("/stable/*.whl", "/dist/*.whl"):      # the other is that of the part python-3.13
        script = SMALL_SCRIPT.format(wheel=wheel, program=SMALL)
        text = inside(WORK / "roots" / "trixie-python3.13", script, WORK / "abi3-small.log")
        times.append(dict(line.split("\t") for line in text.splitlines() if "\t" in line))
    ratios = ", ".join(f"{k} {float(times[0][k]) / float(times[1][k]):.2f}" for k in times[0])
    return (f"{built.stat().st_size / 1e6:.2f} MB; {'; '.join(said)}; 3.12 is in no suite: not run; "
            f"time over the usual wheel's: {ratios}")
