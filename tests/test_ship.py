"""The command ``tools/ship.py``: its exit statuses and rows."""
import argparse
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parents[1] / "tools"


@pytest.fixture
def ship(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(TOOLS)
    module, shared = importlib.import_module("ship"), importlib.import_module("shipping")
    monkeypatch.setattr(module, "RECORD", tmp_path / "SHIP.md")
    monkeypatch.setattr(module, "WORK", tmp_path / "work")
    monkeypatch.setattr(shared, "WORK", tmp_path / "work")
    monkeypatch.setattr(module, "PARTS", {})
    monkeypatch.setattr(shared, "PARTS", module.PARTS)

    @shared.part("good", ci=True)
    def good(options):
        """It holds."""
        return "3 files"

    @shared.part("bad")
    def bad(options):
        """It does not hold."""
        raise module.Broken("a | b\nis 3")

    @shared.part("absent")
    def absent(options):
        """It cannot be run."""
        raise module.NotRun("there is no tool")

    return module


def test_statuses_and_rows(ship, capsys):
    assert [ship.main([name]) for name in ("good", "bad", "absent")] == [0, 1, 3]
    rows = [line.split(" | ") for line in ship.RECORD.read_text().splitlines()[6:]]
    assert [row[0] for row in rows] == ["| absent", "| bad", "| good"]
    assert [row[3] for row in rows] == ["not run", "broken", "holds"]
    assert [row[5] for row in rows] == ["there is no tool |", "a / b is 3 |", "3 files |"]
    ship.PARTS["good"] = (lambda options: "4 files", True)
    ship.PARTS["good"][0].__doc__ = "It holds."
    assert ship.main(["good"]) == 0
    text = ship.RECORD.read_text()
    assert text.count("| good |") == 1 and "4 files" in text and "3 files" not in text


def test_ci_writes_nothing(ship, capsys):
    assert ship.main(["--ci"]) == 0
    assert not ship.RECORD.exists()
    assert ship.main(["--list"]) == 0
    assert "good          (C) It holds." in capsys.readouterr().out
    for wrong in ([], ["nothing"]):
        with pytest.raises(SystemExit):
            ship.main(wrong)


def test_a_command_that_fails_breaks_a_promise(ship, monkeypatch):
    shared = importlib.import_module("shipping")
    with pytest.raises(ship.Broken, match=r"ended with 1:"):
        shared.run("false")

    def without_registry(*command, **options):
        if "install" in command:
            raise shared.Broken("no registry")
        return ""

    monkeypatch.setattr(shared, "run", without_registry)
    with pytest.raises(ship.NotRun, match="its tools cannot be installed: no registry"):
        shared.environment("none", "a-tool")


def test_what_digits_and_packages_may_say(ship):
    shared, conda = importlib.import_module("shipping"), importlib.import_module("shipping.conda")
    good = "mean test accuracy 99.72% (stated: at least 98.50%; reached)"
    assert shared.accuracy(f"seed 0\n{good}\n9 s") == good
    for bad in ("", good.replace("reached", "NOT reached"), good.replace("reached", "with the default settings")):
        with pytest.raises(shared.Broken):
            shared.accuracy(bad)
    names = ("libc.so.6", "libstdc++.so.6", "libcblas.so.3", "libblas.so.3", "libopenblas.so.0", "libmkl_rt.so.2")
    assert [bool(conda.LINKED.match(n)) for n in names] == [True, True, False, False, False, False]


def test_the_program_of_other_platforms(tmp_path):
    program = TOOLS / "shipping" / "whole_program.py"
    said = subprocess.run([sys.executable, "-P", program, tmp_path], capture_output=True, text=True, check=True).stdout
    assert said.split("\n")[-2:] == ["done", ""]
    assert "saved, loaded and mapped beyond ASCII\nthreads\nerror: add: shapes must broadcast" in said
    assert not list(tmp_path.iterdir())


def test_what_other_pythons_run(ship):
    """Of this machine's own Python, and of one that there is not; two workers where there are two jobs."""
    pythons = importlib.import_module("shipping.pythons")
    version = "{}.{}".format(*sys.version_info)
    assert pythons.of_this_machine("3.99") is None
    found = pythons.of_this_machine(version)
    assert found is None or Path(found).exists()
    options = argparse.Namespace(jobs=2, whole=False, wheel=None)
    lines = pythons.tests(options).splitlines()
    assert "-n 2" in lines[0] and "core and not alone" in lines[0] and "tests/utils" in lines[1]
    options.jobs, options.whole = 1, True
    lines = pythons.tests(options).splitlines()
    assert not any("-n " in line for line in lines) and all(line.endswith(" tests") for line in lines)
    known = {path for name in pythons.KNOWING for path in (TOOLS.parent / "tests").glob(name)}
    assert len(known) == len(pythons.KNOWING)
