"""The build backend of pyproject.toml: meson-python, with what its requirements cannot say and its sdist cannot do.

The packages of CUDA whose headers the backend in ``ptcore/cuda`` is compiled with are asked for where they exist:
Linux with glibc. The floor of ``cuda-bindings`` is 13.0, and 13.4 from Python 3.15 on, for which there is no older one.
On musl there is none, so that wheels for it have no CUDA.

An sdist is made of the files that git knows, or in an unpacked sdist of all files, without running Meson: offline,
without git, and the same bytes for the same ``SOURCE_DATE_EPOCH``.
"""
import gzip
import io
import json
import os
import platform
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import mesonpy
from mesonpy import build_editable

__all__ = ["build_editable", "build_sdist", "build_wheel", "get_requires_for_build_editable",
           "get_requires_for_build_sdist", "get_requires_for_build_wheel"]

HEADERS = ("nvidia-cuda-runtime", "nvidia-cuda-nvrtc", "nvidia-cuda-crt", "nvidia-cuda-profiler-api")
LEFT_OUT = {".git", "build", "dist", "__pycache__"}


def cuda_packages():
    """The requirements of the CUDA backend here, or none."""
    if not sys.platform.startswith("linux") or platform.libc_ver()[0] != "glibc":
        return []
    release = "13.0.*" if sys.version_info < (3, 15) else "13.4.*"
    return [f"{name}=={release}" for name in ("cuda-bindings", *HEADERS)]


def _with_cuda(config_settings):
    """Settings of a build that fails where the CUDA backend could be built and its headers are not there."""
    given = dict(config_settings or {})
    said = given.get("setup-args", [])
    said = [said] if isinstance(said, str) else list(said)
    if cuda_packages() and not any(re.match(r"-D\s*(cuda|auto_features)=", argument) for argument in said):
        given["setup-args"] = [*said, "-Dcuda=enabled"]
    return given


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """Meson-python's, which never leaves CUDA out unless it is told to (``-Csetup-args=-Dcuda=disabled``)."""
    name = mesonpy.build_wheel(wheel_directory, _with_cuda(config_settings), metadata_directory)
    _pack_tightly(Path(wheel_directory) / name)
    return name


def _pack_tightly(path):
    """Packs a wheel again at zlib's highest level, which saves 45 kB of 12 MB."""
    temporary = path.with_suffix(".tmp")
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(temporary, "w") as new:
        for entry in old.infolist():
            new.writestr(entry, old.read(entry), zipfile.ZIP_DEFLATED, 9)
    os.replace(temporary, path)


def get_requires_for_build_wheel(config_settings=None):
    """What pip installs before it builds a wheel."""
    return [*mesonpy.get_requires_for_build_wheel(config_settings), *cuda_packages()]


def get_requires_for_build_editable(config_settings=None):
    """The same of an editable install."""
    return [*mesonpy.get_requires_for_build_editable(config_settings), *cuda_packages()]


def get_requires_for_build_sdist(config_settings=None):
    """Nothing: the sdist is not configured."""
    return []


def _git(*arguments):
    """What git says of this folder, or None where it is no clone."""
    if not Path(".git").exists():
        return None
    done = subprocess.run(["git", *arguments], capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else None


# Of the repository alone: benchmarks and tests that run beside PyTorch, records of development, hours of wrong calls,
# files that earlier commits wrote, proofs and recipes of what is shipped.
REPOSITORY = re.compile(
    r"benchmarks/|doc/source/dev/(decisions/|roadmap\.md$)|packaging/|tools/(ship|screenshots|storm)|"
    r"tests/test_(ship|packaging)\.py$|tests/(.+/)?test_parity_[^/]*$|"
    r"tests/serialization/(written_at_|_old_objects|test_old_)")


def _ordered(names):
    """Names in an order of their own; what is of one kind stands together, which packs better."""
    kept = [n for n in names if not REPOSITORY.match(n)]
    return sorted(kept, key=lambda name: (os.path.splitext(name)[1], name))


def _files():
    listed = _git("ls-files", "-z")
    if listed is not None:
        return _ordered(name for name in listed.split("\0") if name and Path(name).is_file())
    found = []
    for folder, folders, names in os.walk("."):
        folders[:] = [n for n in folders if n not in LEFT_OUT and not n.startswith(".mesonpy-")]
        found += [os.path.relpath(os.path.join(folder, n)).replace(os.sep, "/") for n in names]
    return _ordered(set(found) - {"PKG-INFO"})


def _time():
    """Seconds, of each file in the sdist: as the environment says, the last commit's, or the project file's."""
    said = os.environ.get("SOURCE_DATE_EPOCH") or _git("log", "-1", "--format=%ct")
    return int(said) if said else int(os.stat("pyproject.toml").st_mtime)


def metadata():
    """PKG-INFO: pyproject.toml, with the version of meson.build."""
    import packaging.version
    import pyproject_metadata
    with open("pyproject.toml", "rb") as f:
        found = pyproject_metadata.StandardMetadata.from_pyproject(tomllib.load(f), Path.cwd())
    said = subprocess.run([sys.executable, "-m", "mesonbuild.mesonmain", "introspect", "--projectinfo", "meson.build"],
                          capture_output=True, text=True, check=True).stdout
    found.version = packaging.version.Version(json.loads(said)["version"])
    found.dynamic.remove("version")
    return found


def build_sdist(sdist_directory, config_settings=None):
    """Writes the sdist; its name."""
    about = metadata()
    base = f"{about.name}-{about.version}"
    made, when = io.BytesIO(), _time()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.PAX_FORMAT) as tar:
        def add(name, data, mode):
            entry = tarfile.TarInfo(f"{base}/{name}")
            entry.size, entry.mtime, entry.mode = len(data), when, mode
            tar.addfile(entry, io.BytesIO(data))

        for name in _files():
            add(name, Path(name).read_bytes(), 0o755 if os.access(name, os.X_OK) else 0o644)
        add("PKG-INFO", bytes(about.as_rfc822()), 0o644)
    path = Path(sdist_directory, f"{base}.tar.gz")
    with open(path, "wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=when) as file:
        file.write(made.getvalue())
    return path.name


