#!/usr/bin/env python3
"""Makes a release in one folder, from a clean clone of this repository:

    python tools/release.py 1.2.0 --dry-run      checks, and says what would be done
    python tools/release.py 1.2.0                notes, sdist, wheel with its bill of materials, pages, checksums
    python tools/release.py 1.2.0 --pages https://docs.example.org/   pages that know where they are published

The pages are HTML, and a PDF where xelatex and latexmk are. The folder, dist-release/VERSION, is written under another
name and renamed when it is complete. The commit and the tag of the release are made in the clone beside it, from which
they are pushed by hand; RELEASE.md has the steps. Refused: a version that is none, a tag that is used, changes that are
not committed, changes of the package without a fragment in doc/changes, a wheel over its bound.
"""
import argparse
import base64
import hashlib
import importlib.util
import json
import os
import re
import shutil
import site
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WHEEL_BYTES = 13_000_000
VERSION = re.compile(r"(\d+)\.(\d+)\.(\d+)((a|b|rc)\d+)?")


class Refused(SystemExit):
    """The reason for which nothing is released."""

    def __init__(self, reason):
        super().__init__(f"release: {reason}")


def run(*command, cwd=ROOT, env=None):
    """What a command prints."""
    done = subprocess.run(list(map(str, command)), cwd=cwd, text=True, capture_output=True, check=False,
                          env={**os.environ, **(env or {})})
    if done.returncode:
        raise Refused(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def fragments(root):
    """The files of doc/changes that towncrier reads."""
    return sorted(p.name for p in (root / "doc" / "changes").glob("*.*.md"))


def check(version, root=ROOT):
    """Raises Refused unless this commit can become a version; the fragments of its notes."""
    if not VERSION.fullmatch(version):
        raise Refused(f"a version is as 1.2.0 or 1.2.0rc1, got {version!r}")
    if run("git", "status", "--porcelain", cwd=root).strip():
        raise Refused("there are changes that are not committed")
    tags = run("git", "tag", "--list", "v*", cwd=root).split()
    if f"v{version}" in tags:
        raise Refused(f"the tag v{version} is used")
    found = fragments(root)
    merged = run("git", "tag", "--list", "v*", "--merged", "HEAD", "--sort=-creatordate", cwd=root).split()
    changed = run("git", "diff", "--name-only", f"{merged[0]}..HEAD", "--", "ptcore", cwd=root) if merged else "ptcore"
    if changed.strip() and not found:
        since = f" since {merged[0]}" if merged else ""
        raise Refused(f"the package has changed{since}, and doc/changes has no fragment that says how")
    return found


def missing(platform=sys.platform):
    """What a release needs and this machine has not, before hours of building say so."""
    linux = platform.startswith("linux")
    modules = ["mesonpy", "towncrier", "sphinx", "numpydoc", *(["auditwheel"] if linux else [])]
    tools = ["make", *(["patchelf"] if linux else [])]
    return [m for m in modules if importlib.util.find_spec(m) is None] + [t for t in tools if shutil.which(t) is None]


def set_version(clone, version):
    """Writes the version where it stands: meson.build, the package and the recipes of other package managers."""
    (config,) = (clone / "packaging" / "easybuild").glob("ptcore-*.eb")     # EasyBuild asks for the version in the name
    config.rename(config.with_name(f"ptcore-{version}.eb"))
    for name, pattern in (("meson.build", r"(?m)^(  version: ')[^']+(')"),
                          ("ptcore/__init__.py", r'(?m)^(__version__ = ")[^"]+(")'),
                          ("packaging/conda/recipe.yaml", r'(?m)^(  version: ")[^"]+(")'),
                          (f"packaging/easybuild/ptcore-{version}.eb", r"(?m)^(version = ')[^']+(')"),
                          ("packaging/spack/package.py", r'(?m)^(    pypi = "ptcore/ptcore-)[^"]+(\.tar\.gz")'),
                          ("packaging/spack/package.py", r'(?m)^(    version\(")[^"]+(")')):
        path = clone / name
        text, count = re.subn(pattern, rf"\g<1>{version}\g<2>", path.read_text())
        if count != 1:
            raise Refused(f"{name} has the version {count} times")
        path.write_text(text)


def bill_of_materials(version, epoch):
    """What the wheel is made of and needs, as CycloneDX (PEP 770). Nothing of others is inside but generated code."""
    def component(name, kind, licence, scope):
        return {"type": kind, "name": name, "scope": scope, "licenses": [{"license": {"id": licence}}],
                "purl": f"pkg:pypi/{name}", "bom-ref": name}
    return {"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1,
            "metadata": {"component": {"type": "library", "name": "ptcore", "version": version, "bom-ref": "ptcore",
                                       "purl": f"pkg:pypi/ptcore@{version}",
                                       "licenses": [{"license": {"id": "BSD-3-Clause"}}]},
                         "properties": [{"name": "SOURCE_DATE_EPOCH", "value": epoch}]},
            "components": [component("numpy", "library", "BSD-3-Clause", "required"),
                           component("scipy", "library", "BSD-3-Clause", "required"),
                           component("cython", "application", "Apache-2.0", "excluded"),
                           component("meson-python", "application", "MIT", "excluded")],
            "dependencies": [{"ref": "ptcore", "dependsOn": ["numpy", "scipy"]}]}


def add_to_wheel(path, name, data):
    """Adds a file to the .dist-info folder of a wheel, and to its RECORD."""
    temporary = path.with_suffix(".tmp")
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as new:
        (record,) = [n for n in old.namelist() if n.endswith(".dist-info/RECORD")]
        added = f"{record.removesuffix('RECORD')}{name}"
        for info in old.infolist():
            content = old.read(info)
            if info.filename == record:
                digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
                content = f"{added},sha256={digest},{len(data)}\n".encode() + content
                entry = zipfile.ZipInfo(added, info.date_time)
                entry.external_attr, entry.compress_type = info.external_attr, zipfile.ZIP_DEFLATED
                new.writestr(entry, data)
            new.writestr(info, content)
    os.replace(temporary, path)


def weigh(wheel):
    """Raises Refused if a wheel is over its bound."""
    if wheel.stat().st_size > WHEEL_BYTES:
        raise Refused(f"{wheel.name} has {wheel.stat().st_size:,} bytes, at most {WHEEL_BYTES:,}")


def environment(folder, wheel):
    """The Python of an environment with a wheel and, behind it, what this Python has, be that an environment itself."""
    run(sys.executable, "-m", "venv", "--system-site-packages", folder)
    own = sysconfig.get_path("purelib", "venv", {"base": str(folder), "platbase": str(folder)})
    Path(own, "of_the_maker.pth").write_text("\n".join(site.getsitepackages()))
    python = Path(sysconfig.get_path("scripts", "venv", {"base": str(folder)})) / "python"
    run(python, "-m", "pip", "install", "--quiet", "--no-deps", "--force-reinstall", wheel)
    return python


def make(version, out, published):
    """Fills a folder; what is in it."""
    clone = out / "clone"
    run("git", "clone", "--quiet", ROOT, clone)
    epoch = run("git", "log", "-1", "--format=%ct", cwd=clone).strip()
    env = {"SOURCE_DATE_EPOCH": epoch}
    set_version(clone, version)
    notes = run(sys.executable, "-m", "towncrier", "build", "--draft", "--version", version, cwd=clone)
    (out / "NOTES.md").write_text(notes)
    run(sys.executable, "-m", "towncrier", "build", "--yes", "--version", version, cwd=clone)
    run("git", "add", "-A", cwd=clone)
    run("git", "commit", "--quiet", "-m", f"Release {version}", cwd=clone)
    run("git", "tag", "-a", f"v{version}", "-m", f"ptcore {version}", cwd=clone)
    build = "import sys; sys.path.insert(0, 'tools'); import build_backend; build_backend.build_sdist(sys.argv[1])"
    run(sys.executable, "-c", build, out, cwd=clone, env=env)
    (sdist,) = out.glob("*.tar.gz")
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", out / "built", sdist, env=env)
    (built,) = (out / "built").glob("*.whl")
    if sys.platform.startswith("linux"):
        run(sys.executable, "-m", "auditwheel", "repair", "-z", "9", "--wheel-dir", out, built, env=env)
    else:
        shutil.copy(built, out)
    shutil.rmtree(out / "built")
    (wheel,) = out.glob("*.whl")
    bill = json.dumps(bill_of_materials(version, epoch), indent=2, sort_keys=True).encode()
    add_to_wheel(wheel, "sboms/ptcore.cdx.json", bill)
    weigh(wheel)
    python = environment(out / "env", wheel)
    formats = ["html", *(["latexpdf"] if shutil.which("xelatex") and shutil.which("latexmk") else [])]
    address = {"PTCORE_PAGES": published} if published else {}
    run("make", "-C", "doc", f"PYTHON={python}", *formats, cwd=clone, env=address)
    with tarfile.open(out / f"ptcore-{version}-pages.tar.gz", "w:gz") as tar:
        tar.add(clone / "doc" / "build" / "html", f"ptcore-{version}-pages")
    if "latexpdf" in formats:
        shutil.copy(clone / "doc" / "build" / "latex" / "ptcore.pdf", out / f"ptcore-{version}.pdf")
    else:
        print("no PDF: that takes xelatex and latexmk")
    run("make", "-C", "doc", "clean", cwd=clone)
    shutil.rmtree(out / "env")
    files = sorted(p for p in out.iterdir() if p.is_file())
    lines = [f"{hashlib.sha256(p.read_bytes()).hexdigest()}  {p.name}\n" for p in files]
    (out / "SHA256SUMS").write_text("".join(lines))
    return [*files, out / "SHA256SUMS"]


def main(argv=None):
    """The exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("version")
    parser.add_argument("--dry-run", action="store_true", help="check, and say what would be done")
    parser.add_argument("--pages", metavar="ADDRESS", help="where the pages are published, for their switcher")
    options = parser.parse_args(argv)
    found = check(options.version)
    folder = ROOT / "dist-release" / options.version
    if folder.exists():
        raise Refused(f"{folder} exists")
    print(f"ptcore {options.version}: notes of {len(found)} fragments ({', '.join(found)}), an sdist, a wheel for this "
          f"Python, pages and checksums go to {folder}")
    absent = missing()
    if options.dry_run:
        print(f"to be installed first: {', '.join(absent)}" if absent else "all that it takes is here")
        return 0
    if absent:
        raise Refused(f"it takes {', '.join(absent)}: pip install '.[dev,doc]', make by the system")
    temporary = folder.with_name(f"{options.version}.tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    files = make(options.version, temporary, options.pages)
    os.replace(temporary, folder)
    print("\n".join(f"{p.stat().st_size:>12,} {p.name}" for p in (folder / p.name for p in files)))
    print(f"the commit and the tag are in {folder / 'clone'}: git push origin main v{options.version}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
