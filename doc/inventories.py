"""``python inventories.py``: puts the inventories of Python, NumPy and SciPy, by which pages link to theirs, into
``inventories/``, out of Debian's packages of documentation or, where they cannot be had, from the projects' pages."""
import shutil
import subprocess
import sys
import tarfile
import tempfile
import urllib.request
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / "inventories"
SUITE = "trixie"
# Name: the package, the file in it, the address of the pages.
SOURCES = {
    "python": ("python3.13-doc", "usr/share/doc/python3.13/html/objects.inv", "https://docs.python.org/3/"),
    "numpy": ("python-numpy-doc", "usr/share/doc/python-numpy/html/objects.inv", "https://numpy.org/doc/stable/"),
    "scipy": ("python-scipy-doc", "usr/share/doc/python-scipy-doc/html/objects.inv",
              "https://docs.scipy.org/doc/scipy/"),
}


def from_debian(folder):
    """Fills ``folder`` with the packages' inventories, by lists of packages of its own."""
    work = folder / "apt"
    for name in ("lists/partial", "cache/archives/partial"):
        (work / name).mkdir(parents=True)
    keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"
    (work / "sources.list").write_text(f"deb [signed-by={keyring}] http://deb.debian.org/debian {SUITE} main\n")
    options = [f"-oDir::Etc::sourcelist={work}/sources.list", "-oDir::Etc::sourceparts=-",
               f"-oDir::State::lists={work}/lists", f"-oDir::Cache={work}/cache", "-oAPT::Sandbox::User="]
    for command in (["update"], ["download", *(package for package, _, _ in SOURCES.values())]):
        subprocess.run(["apt-get", "-q", *options, *command], cwd=work, check=True, stdout=subprocess.DEVNULL)
    for name, (package, inside, _) in SOURCES.items():
        (archive,) = work.glob(f"{package}_*.deb")
        with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", archive], stdout=subprocess.PIPE) as unpacked:
            with tarfile.open(fileobj=unpacked.stdout, mode="r|") as tar:
                for member in tar:
                    if member.name.removeprefix("./") == inside:
                        (folder / f"{name}.inv").write_bytes(tar.extractfile(member).read())
            unpacked.stdout.read()      # the rest, so that dpkg-deb ends well
        print(f"{name}.inv: {inside} of {archive.name}")


def from_pages(folder):
    """Fills ``folder`` with what stands beside the pages."""
    for name, (_, _, address) in SOURCES.items():
        with urllib.request.urlopen(f"{address}objects.inv", timeout=30) as answer:
            (folder / f"{name}.inv").write_bytes(answer.read())
        print(f"{name}.inv: {address}objects.inv")


def main():
    """The exit status. Nothing is fetched again."""
    if all((FOLDER / f"{name}.inv").exists() for name in SOURCES):
        return 0
    for source in (from_debian, from_pages):
        with tempfile.TemporaryDirectory() as work:
            try:
                source(Path(work))
            except (OSError, subprocess.CalledProcessError) as e:
                print(f"{source.__name__}: {e}", file=sys.stderr)
                continue
            FOLDER.mkdir(exist_ok=True)
            for name in SOURCES:
                shutil.move(Path(work) / f"{name}.inv", FOLDER / f"{name}.inv")
            return 0
    print("no inventories: links to other projects stay text", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
