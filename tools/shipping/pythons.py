"""Other Pythons: root file systems of Debian in which a wheel is built and the tests run."""
import os
import shutil
import subprocess
from pathlib import Path

from . import ROOT, WORK, Broken, NotRun, debian, part, run

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


def of_python(version):
    """The part of one Python."""
    @part(f"python-{version}")
    def tests(options):
        name = f"python{version}"
        folder = root(SUITES[version], name, f"{name}-venv", f"{name}-dev", "gcc", "g++", "make", "git",
                      "ca-certificates")
        shutil.rmtree(folder / "src", ignore_errors=True)
        for made in ("env", "dist"):
            shutil.rmtree(folder / made, ignore_errors=True)
        run("git", "clone", "--quiet", ROOT, folder / "src")
        said = inside(folder, COMMANDS.format(version=version), WORK / f"python-{version}.log")
        summaries = [line.strip("= ") for line in said.splitlines() if " passed" in line]
        return f"{said.splitlines()[0].split(' (')[0]}: {'; '.join(summaries)}"
    tests.__doc__ = f"All tests but parity pass on Debian {SUITES[version]}'s Python {version}."


for _version in SUITES:
    of_python(_version)
