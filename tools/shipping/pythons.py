"""Other Pythons: root file systems of Debian in which a wheel is built and the tests run."""
import os
import shutil
import subprocess
from pathlib import Path

from . import ROOT, WORK, Broken, debian_root, environment, part, passed, ratios, run

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
TIMES = """set -e
python3.13 -m venv --clear /env-small
/env-small/bin/pip install --quiet {wheel}
/env-small/bin/python -P /src/tools/shipping/timed.py
"""


@part("abi3")
def abi3(options):
    """One wheel by the limited API: clean under ``abi3audit --strict``, core tests on Python 3.13, 3.14 and 3.15."""
    audit = environment("abi3", "abi3audit")("abi3audit")
    built, said = None, []
    for version in SUITES:
        folder = prepared(version)
        shutil.rmtree(folder / "stable", ignore_errors=True)
        if built is None:
            inside(folder, BUILD_STABLE, WORK / "abi3-build.log")
            (built,) = (folder / "stable").glob("*-cp312-abi3-*.whl")
            run(audit, "--strict", "--report", built, show=True)
        else:
            (folder / "stable").mkdir()
            shutil.copy(built, folder / "stable")
        text = inside(folder, CORE.format(version=version), WORK / f"abi3-{version}.log")
        said.append(f"{version}: {passed(text)}")
    # The other wheel is that of the part python-3.13.
    times = [inside(WORK / "roots" / "trixie-python3.13", TIMES.format(wheel=wheel), WORK / "abi3-times.log")
             for wheel in ("/stable/*.whl", "/dist/*.whl")]
    return (f"{built.stat().st_size / 1e6:.2f} MB; {'; '.join(said)}; 3.12 is in no suite: not run; "
            f"time over the usual wheel's: {ratios(*times)}")
