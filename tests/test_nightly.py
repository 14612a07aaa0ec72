"""tools/nightly.py: the record survives an interrupt, parts go round, and CI reads where they passed last."""
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PATH = ROOT / "tools" / "nightly.py"

pytestmark = [pytest.mark.core, pytest.mark.skipif(not PATH.exists(), reason="needs the source tree")]


@pytest.fixture
def nightly(tmp_path, monkeypatch):
    """The script with three parts, a commit and files of its own; ``ran`` lists what was run."""
    spec = importlib.util.spec_from_file_location("nightly", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.ran, module.stop_at, module.fail, module.at = [], None, set(), "abc"

    def run_part(name, command, additions):
        if name == module.stop_at:
            raise KeyboardInterrupt
        module.ran.append((name, command))
        return {"ok": name not in module.fail, "seconds": 60.0, "passed": 10, "failed": int(name in module.fail),
                "skipped": 2, **({"digits": 98.75} if name == "digits" else {})}

    monkeypatch.setattr(module, "WORK", tmp_path / "work")
    monkeypatch.setattr(module, "RECORD", tmp_path / "benchmarks" / "NIGHTLY.md")
    monkeypatch.setattr(module, "parts", lambda seed: {name: (seed, {}) for name in ("suite/a", "suite/b", "digits")})
    monkeypatch.setattr(module, "run_part", run_part)
    monkeypatch.setattr(module, "commit", lambda: module.at)
    return module


def names(nightly):
    return [name for name, _ in nightly.ran]


def lines(nightly):
    """{part: cells} of the record."""
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in nightly.RECORD.read_text().splitlines()]
    return {row[0]: row for row in cells if len(row) == 7 and row[1].startswith("2")}


def test_every_part_has_a_row(nightly, capsys):
    assert nightly.main(["--seed", "7"]) == 0
    assert nightly.ran == [("suite/a", 7), ("suite/b", 7), ("digits", 7)]
    assert "seed 7" in capsys.readouterr().out
    found = lines(nightly)
    assert list(found) == ["digits", "suite/a", "suite/b"]
    assert found["digits"][2:] == ["abc", "7", "ok, 10 passed, 2 skipped, 98.75 %", "1.0", "abc"]
    assert nightly.RECORD.read_text().count("# Nightly runs") == 1


def test_what_has_waited_longest_is_first(nightly):
    nightly.RECORD.parent.mkdir()
    row = "| {} | {} 03:00 | abc | 7 | ok | 1.0 | abc |\n"
    nightly.RECORD.write_text(nightly.HEADER + row.format("digits", "2026-01-02") + row.format("suite/a", "2026-01-03"))
    assert nightly.main([]) == 0
    assert names(nightly) == ["suite/b", "digits", "suite/a"]


def test_interrupted_run_goes_on(nightly):
    nightly.stop_at = "suite/b"
    assert nightly.main([]) == 130
    assert list(lines(nightly)) == ["suite/a"]
    nightly.stop_at = None
    assert nightly.main(["--minutes", "1e-9"]) == 0     # the time is over at once
    assert nightly.main([]) == 0
    assert names(nightly)[:3] == ["suite/a", "suite/b", "digits"]


def test_failed_part(nightly, capsys):
    assert nightly.main([]) == 0
    nightly.fail, nightly.at = {"suite/b"}, "def"
    assert nightly.main([]) == 1
    assert "suite/b: FAILED, 10 passed, 1 failed" in capsys.readouterr().out
    found = lines(nightly)
    assert (found["suite/b"][2], found["suite/b"][4], found["suite/b"][6]) == (
        "def", "FAILED, 10 passed, 1 failed, 2 skipped", "abc")
    assert found["suite/a"][6] == "def"


def test_only(nightly):
    assert nightly.main(["--only", "digits", "--minutes", "0"]) == 0
    assert nightly.main(["--only", "suite"]) == 0
    assert names(nightly) == ["digits", "suite/a", "suite/b"]
    with pytest.raises(SystemExit, match="no part 'suit'"):
        nightly.main(["--only", "suit"])


def test_list(nightly, capsys):
    nightly.stop_at = "suite/b"
    nightly.main([])
    capsys.readouterr()
    assert nightly.main(["--list"]) == 0
    shown = dict(text.split(None, 1) for text in capsys.readouterr().out.splitlines())
    assert shown["suite/a"].endswith(", abc, ok, 10 passed, 2 skipped")
    assert shown["suite/b"] == shown["digits"] == "-"
    assert names(nightly) == ["suite/a"]


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_cut_short_while_writing(nightly, monkeypatch, call):
    """Whatever moment a power cut chooses, the record is whole."""
    nightly.stop_at = "suite/b"
    nightly.main([])
    nightly.stop_at = None

    def cut(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, call, cut)
        assert nightly.main([]) == 130
    assert list(lines(nightly)) == ["suite/a"]
    assert nightly.main([]) == 0
    assert list(lines(nightly)) == ["digits", "suite/a", "suite/b"]


def test_what_passed_last(nightly, monkeypatch):
    """A commit without local changes, which CI compares with."""
    import _since
    monkeypatch.setattr(_since, "RECORD", nightly.RECORD)
    monkeypatch.delenv("PTCORE_TEST_BUILDS", raising=False)
    assert _since.passed_last("digits") is None and _since.changed("digits", "x") == ["it has not passed yet"]
    nightly.at = "abc+12345678"
    nightly.main(["--only", "digits"])
    assert _since.passed_last("digits") is None
    nightly.at = "abc"
    nightly.main(["--only", "digits"])
    assert _since.passed_last("digits") == "abc"
    asked = []
    monkeypatch.setattr(_since, "git", lambda *arguments: asked.append(arguments) or "a/b\na/c")
    assert _since.changed("digits", "a", "d") == ["a/b", "a/c"]
    assert asked == [("diff", "--name-only", "abc", "--", "a", "d")]
    monkeypatch.setattr(_since, "git", lambda *arguments: "")
    assert _since.changed("digits", "a") == []


@pytest.fixture
def script(tmp_path, monkeypatch):
    spec = importlib.util.spec_from_file_location("nightly_script", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "WORK", tmp_path)
    return module


def test_parts(script):
    """Every folder of tests is in some part, and every path and script exists."""
    found = script.parts(3)
    assert found == script.parts(3) != script.parts(4)
    words = [word for command, _ in found.values() for word in command]
    for path in (ROOT / "tests").rglob("test_*.py"):
        path = path.relative_to(ROOT)
        assert {path.as_posix(), *[p.as_posix() for p in path.parents]} & set(words), path
    assert all((ROOT / word).exists() for word in words if word.startswith(("tests/", "tools/")))


@pytest.mark.outer
def test_scripts_of_parts_begin(script):
    """Each finds its neighbours, as it is called: ``-P`` takes its folder from the path."""
    commands = {tuple(command[:1 + i]) for command, _ in script.parts(3).values() for i, word in enumerate(command)
                if command[0] == sys.executable and word.startswith("tools/") and word.endswith(".py")}
    assert len(commands) >= 5
    for command in commands:
        done = subprocess.run([*command, "--help"], cwd=ROOT, capture_output=True, text=True, check=False)
        assert "Traceback" not in done.stderr, (command, done.stderr)


@pytest.mark.outer
def test_part_is_run_and_counted(script, tmp_path):
    test = tmp_path / "test_it.py"
    test.write_text("import os, pytest\ndef test_a(): assert os.environ['NIGHTLY_X'] == '5'\n"
                    "def test_b(): assert 0\ndef test_c(): pytest.skip()\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--junitxml={junit}", str(test)]
    result = script.run_part("suite/x", command, {"NIGHTLY_X": "5"})
    assert result.pop("seconds") > 0
    assert result == {"ok": False, "passed": 1, "failed": 1, "skipped": 1}
    assert "assert 0" in (tmp_path / "suite_x.log").read_text()


def test_part_that_hangs_or_crashes(script, monkeypatch):
    monkeypatch.setattr(script, "LIMIT", 0.2)
    hangs = script.run_part("suite/x", [sys.executable, "-c", "import time; time.sleep(60)"], {})
    assert not hangs["ok"]
    assert hangs["seconds"] < 30
    assert not script.run_part("suite/x", [sys.executable, "-c", "import os; os.abort()"], {})["ok"]


@pytest.mark.parametrize("score, ok", [("98.50", True), ("98.49", False), (None, False)])
def test_digits_are_held_to_their_accuracy(script, score, ok):
    text = "" if score is None else f"mean test accuracy {score}% (stated: at least 98.50%)"
    result = script.run_part("digits", [sys.executable, "-c", f"print({text!r})"], {})
    assert result["ok"] is ok
    assert result["digits"] == (None if score is None else float(score))
