"""tools/nightly.py: what is finished survives an interrupt, and nothing else does."""
import importlib.util
import json
import os
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
    return [text for text in nightly.RECORD.read_text().splitlines() if text.startswith("| 2")]


def test_complete_run(nightly, capsys):
    assert nightly.main(["--seed", "7"]) == 0
    assert nightly.ran == [("suite/a", 7), ("suite/b", 7), ("digits", 7)]
    assert "seed 7" in capsys.readouterr().out
    (line,) = lines(nightly)
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    assert cells[1:] == ["abc", "7", "3", "30", "0", "6", "98.75 %", "3", "-"]
    assert nightly.main([]) == 0                    # nothing is left of the first run
    assert len(nightly.ran) == 6
    assert len(lines(nightly)) == 2
    assert nightly.RECORD.read_text().count("# Nightly runs") == 1


def test_interrupted_run_goes_on(nightly):
    nightly.stop_at = "suite/b"
    assert nightly.main([]) == 130
    assert not nightly.RECORD.exists()
    seed = nightly.ran[0][1]
    nightly.stop_at = None
    assert nightly.main([]) == 0
    assert nightly.ran == [("suite/a", seed), ("suite/b", seed), ("digits", seed)]
    (line,) = lines(nightly)
    assert "| 30 |" in line


@pytest.mark.parametrize("change", ["commit", "seed", "fresh"])
def test_state_of_another_run_is_forgotten(nightly, change):
    nightly.stop_at = "digits"
    nightly.main(["--seed", "1"])
    nightly.stop_at = None
    nightly.at = "def" if change == "commit" else "abc"
    assert nightly.main({"commit": [], "seed": ["--seed", "2"], "fresh": ["--fresh"]}[change]) == 0
    assert names(nightly) == ["suite/a", "suite/b", "suite/a", "suite/b", "digits"]


def test_failed_part(nightly, capsys):
    nightly.fail = {"suite/b"}
    assert nightly.main([]) == 1
    assert lines(nightly)[0].endswith("| suite/b |")
    assert "suite/b: FAILED, 10 passed, 1 failed" in capsys.readouterr().out


def test_only(nightly):
    assert nightly.main(["--only", "digits"]) == 0
    assert nightly.main(["--only", "digits"]) == 0
    assert names(nightly) == ["digits", "digits"]   # asked for by name: run again
    assert nightly.main([]) == 0                    # but the whole run takes its result
    assert names(nightly)[2:] == ["suite/a", "suite/b"]
    assert len(lines(nightly)) == 3
    assert nightly.main(["--only", "suite"]) == 0
    assert names(nightly)[4:] == ["suite/a", "suite/b"]
    with pytest.raises(SystemExit, match="no part 'suit'"):
        nightly.main(["--only", "suit"])


def test_list(nightly, capsys):
    nightly.stop_at = "suite/b"
    nightly.main([])
    capsys.readouterr()
    assert nightly.main(["--list"]) == 0
    shown = dict(text.split(None, 1) for text in capsys.readouterr().out.splitlines())
    assert shown == {"suite/a": "ok, 10 passed, 2 skipped in 60 s", "suite/b": "-", "digits": "-"}
    assert names(nightly) == ["suite/a"]


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_cut_short_while_writing(nightly, monkeypatch, call):
    """Whatever moment a power cut chooses, the file holds a whole state."""
    nightly.stop_at = "suite/b"
    nightly.main([])
    nightly.stop_at = None

    def cut(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, call, cut)
        assert nightly.main([]) == 130
    assert list(json.loads((nightly.WORK / "state.json").read_text())["done"]) == ["suite/a"]
    assert nightly.main([]) == 0
    assert names(nightly) == ["suite/a", "suite/b", "suite/b", "digits"]


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"seed": 3}'])
def test_state_that_is_no_state(nightly, text):
    nightly.WORK.mkdir()
    (nightly.WORK / "state.json").write_text(text)
    assert nightly.main([]) == 0
    assert len(nightly.ran) == 3


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
