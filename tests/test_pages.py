"""What the pages say of other versions, and that the reference has a place for each public name."""
import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parent.parent / "doc" / "source" / "_versions.py"


@pytest.fixture
def versions(tmp_path, monkeypatch):
    """The module in a repository of its own, whose package has the version 0.2.0."""
    monkeypatch.delenv("PTCORE_PAGES", raising=False)
    spec = importlib.util.spec_from_file_location("_versions", SOURCE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "HERE", tmp_path / "doc" / "source")
    monkeypatch.setattr(module.ptcore, "__version__", "0.2.0")
    module.HERE.mkdir(parents=True)
    return module


def tag(root, *names):
    """Puts tags on a commit of a repository, whose pyproject.toml asks for a newer Python with each name."""
    git = ["git", "-c", "user.name=n", "-c", "user.email=e@x", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", "init", "-q", root], check=True)
    for minor, name in enumerate(names):
        (root / "pyproject.toml").write_text(f'requires-python = ">=3.{11 + minor}"\n')
        for command in (["add", "-A"], ["commit", "-qm", name], ["tag", "-a", name, "-m", name]):
            subprocess.run([*git, *command], cwd=root, check=True)


def test_without_tags(versions, tmp_path):
    versions.write(tmp_path / "versions.txt")
    versions.write_switcher(tmp_path / "switcher.json")
    assert versions.shown() == "dev"
    assert (tmp_path / "versions.txt").read_text() == "There is no release yet.\n"
    assert [e["version"] for e in json.loads((tmp_path / "switcher.json").read_text())] == ["dev"]


def test_tags(versions, tmp_path):
    tag(tmp_path, "v0.9.0", "v0.10.0", "v0.11.0rc1", "other", "v0.2.0", "v0.10.0rc2")
    assert [(version, pythons) for version, _, pythons in versions.tagged()] == [
        ("0.11.0rc1", ">=3.13"), ("0.10.0", ">=3.12"), ("0.10.0rc2", ">=3.16"), ("0.9.0", ">=3.11"),
        ("0.2.0", ">=3.15")]
    assert versions.shown() == "0.2.0"
    versions.write_switcher(tmp_path / "switcher.json")
    entries = {e["version"]: e for e in json.loads((tmp_path / "switcher.json").read_text())}
    assert list(entries) == ["dev", "0.11.0rc1", "0.10.0", "0.10.0rc2", "0.9.0", "0.2.0"]
    assert [v for v, e in entries.items() if e.get("preferred")] == ["0.10.0"]
    assert entries["0.9.0"]["url"] == "/0.9.0/"
    versions.write(tmp_path / "versions.txt")
    text = (tmp_path / "versions.txt").read_text()
    assert "   $ pip install ptcore==0.10.0\n" in text and text.index("0.10.0") < text.index("0.9.0")


def test_each_public_name_has_its_place():
    """Without Sphinx: the directives of the generated pages name all that modules list in __all__. The page of
    ``array_api`` is written by hand, and shows modules as wholes; the build of the pages asks for its names."""
    program = """if True:
        import re, sys
        sys.path.insert(0, sys.argv[1])
        import _reference
        text = "\\n".join(_reference.pages().values())
        shown = set(re.findall(r"^(?:\\.\\. (?:auto|py:)\\w+:: | {13})(ptcore[.][\\w.]+)$", text, re.M))
        names = set(_reference.public_names()) - shown - set(_reference.other_names(shown))
        print(*sorted(name for name in names if not name.startswith("ptcore.array_api.")))
    """
    run = subprocess.run([sys.executable, "-P", "-c", program, str(SOURCE.parent)], capture_output=True, text=True,
                         check=True)
    assert run.stdout.split() == []
