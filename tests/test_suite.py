"""The suite itself: tests that others would disturb, or that would disturb others, are marked ``alone``; no file that
compares with torch ignores all warnings, or needs torch to be collected; five draws are all rows; every case of
a walk is tried and told."""
import ast
import itertools
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from _alone import COUNTING, DISTURBED
from _draw import described, drawn
from _walk import every_case

pytestmark = pytest.mark.core

HERE = Path(__file__).resolve().parent
# A folder whose tests look at processes of their own.
OWN_PROCESSES = "cuda"


def test_marked():
    found = [path.relative_to(HERE) for path in sorted(HERE.rglob("test_*.py")) if DISTURBED.search(path.read_text())]
    assert len(found) > 25
    missing = {path.as_posix() for path in found if path.parts[0] not in (*COUNTING, OWN_PROCESSES, "test_suite.py")
               and not re.search(r"pytest\.mark\.(alone|counts)", (HERE / path).read_text())}
    assert not missing


def test_files_of_tests_that_are_named_exist():
    """As in a comment that says where else something is tested."""
    there = {path.name for path in HERE.rglob("*.py")}
    # These write files of their own, or name those of PyTorch.
    scripts = {"test_suite.py", "test_mutate.py", "test_nightly.py", "places.py", "torch_unit_tests.py"}
    places = [*HERE.rglob("*.py"), *[path for suffix in ("py", "pyx", "cpp", "hpp", "h", "cuh", "rst", "md")
                                     for folder in ("ptcore", "doc/source/dev", "benchmarks", "tools")
                                     for path in (HERE.parent / folder).rglob(f"*.{suffix}")]]
    named = [(path.name, name) for path in places if path.name not in scripts
             for name in re.findall(r"\btest_\w+\.py\b", path.read_text(errors="replace"))]
    assert len(named) > 50
    assert [pair for pair in named if pair[1] not in there] == []


@pytest.mark.parametrize("text", ["open('/proc/self/statm')", "os.kill(pid, 9)", "process.send_signal(signal.SIGKILL)",
                                  "cpu.memory_stats()"])
def test_what_is_recognised(text):
    assert DISTURBED.search(text)


EVERYTHING = re.compile(r"""filterwarnings\(["']ignore["']|(simplefilter|filterwarnings)\(["']ignore["']\)""")


def test_parity_does_not_ignore_all_warnings():
    files = [*HERE.rglob("test_parity_*.py")]
    assert len(files) > 40 or not (HERE.parent / "benchmarks").exists()     # an sdist has neither
    assert [path.name for path in files if EVERYTHING.search(path.read_text())] == []
    assert EVERYTHING.search('pytest.mark.filterwarnings("ignore")')
    assert not EVERYTHING.search('pytest.mark.filterwarnings("ignore:Creating a tensor:UserWarning")')


def imports_torch(text):
    """Whether a test file imports torch, or a helper of the tests that does, where it is collected without it."""
    body = ast.parse(text).body
    names = [(at, name) for at, node in enumerate(body) for name in (
        [alias.name for alias in node.names] if isinstance(node, ast.Import)
        else [node.module or ""] if isinstance(node, ast.ImportFrom) else [])]
    skips = [at for at, node in enumerate(body) if "importorskip" in ast.unparse(node) and "torch" in ast.unparse(node)]
    return any(name.partition(".")[0] == "torch" and not any(before < at for before in skips) for at, name in names)


@pytest.mark.outer
def test_the_suite_needs_no_torch():
    found = [path.name for path in sorted(HERE.rglob("test_*.py")) if path.parent.name != "compat"
             and imports_torch(path.read_text())]
    assert found == []
    assert imports_torch("import pytest\nimport torch.nn as nn\n") and imports_torch("from torch import nn")
    assert not imports_torch("import pytest\ntorch = pytest.importorskip('torch')\nfrom torch import nn\n")


def test_five_draws_are_all_rows():
    rows = [f"row {i}" for i in range(370)]
    assert drawn(rows, draw=None) == rows
    parts = [drawn(rows, draw=str(k)) for k in range(1234, 1239)]
    assert sorted([row for p in parts for row in p], key=rows.index) == rows
    assert all(50 < len(p) < 100 for p in parts)
    assert drawn(rows, draw="1234") == drawn(iter(rows), draw="1239")
    assert drawn(rows[::2], draw="3") == [row for row in drawn(rows, draw="3") if row in rows[::2]]
    pairs = [(i, row) for i, row in enumerate(rows)]
    assert [row for _, row in drawn(pairs, lambda pair: pair[1], draw="2")] == drawn(rows, draw="2")
    assert "part 4 of 5" in described("1234") and "all rows" in described(None)


def walk(ran):
    errors = {"float32": KeyError(1), "float64": AssertionError("of its own")}
    with every_case() as tried:
        for dtype, name in itertools.product(errors, ("one", "two")):
            with tried(dtype, name):
                ran.append((dtype, name))
                if name == "one":
                    raise errors[dtype]


def test_every_case_is_tried():
    ran = []
    with pytest.raises(AssertionError, match=r"(?s)2 of 4 cases failed\nfloat32 one: KeyError at test_suite.py:\d+: 1"
                                             r"\nfloat64 one: AssertionError at .*: of its own"):
        walk(ran)
    assert len(ran) == 4


def outcomes(ran):
    with every_case() as tried:
        for name in ("raises", "fail", "skip", "pass"):
            with tried(name):
                ran.append(name)
                if name == "raises":
                    with pytest.raises(KeyError):
                        pass
                elif name == "fail":
                    pytest.fail("no")
                elif name == "skip":
                    pytest.skip("not here")


def test_outcomes_of_pytest_are_those_of_their_case():
    ran = []
    with pytest.raises(AssertionError, match=r"(?s)3 of 4 cases failed\nraises: Failed at .*DID NOT RAISE.*\n"
                                             r"fail: Failed at .*: no\nskip: Skipped at .*: not here"):
        outcomes(ran)
    assert len(ran) == 4


def test_no_case_is_a_failure():
    with pytest.raises(AssertionError, match="no case was tried"), every_case():
        pass


@pytest.mark.outer
def test_the_running_case_is_told(pytester_script):
    """After a crash, and with a time limit."""
    said = pytester_script("""
        import os, time
        import pytest
        from _walk import every_case

        @pytest.mark.parametrize("how", ["crash", "limit"])
        @pytest.mark.timeout(1)
        def test_rows(how):
            with every_case() as tried:
                for name in ("softmax", "conv2d", "cat"):
                    with tried(name, "float32"):
                        if name == "conv2d":
                            os.abort() if how == "crash" else time.sleep(9)
    """)
    assert "test_rows[crash] (call) conv2d float32" in said
    assert "in the case conv2d float32" in said


@pytest.fixture
def pytester_script(tmp_path):
    """Runs a file of tests with two workers and this suite's conftest; gives what pytest says."""
    def run(text, workers=1):
        (tmp_path / "test_it.py").write_text(textwrap.dedent(text))
        clean = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
        said = subprocess.run([sys.executable, "-P", "-m", "pytest", "-q", "-n", str(workers), "--dist", "worksteal",
                               "-p", "no:cacheprovider", "--confcutdir", HERE, "-c", HERE.parent / "pyproject.toml",
                               "--rootdir", HERE.parent, "-p", "conftest", tmp_path / "test_it.py"],
                              capture_output=True, text=True, cwd=tmp_path,
                              env={**clean, "PYTHONPATH": str(HERE)}).stdout
        return said + ((tmp_path / "log").read_text() if (tmp_path / "log").exists() else "")
    return run


@pytest.mark.parametrize("counting", [20, 80])
@pytest.mark.outer
def test_what_runs_beside_what(pytester_script, counting):
    """A test alone has the machine; those that count run one after another, also where both workers have some."""
    said = pytester_script(f"""
        import os, time
        from pathlib import Path
        import pytest
        LOG = Path(__file__).with_name("log")

        def ran(name):
            with open(LOG, "a") as f:
                f.write(f"{{name}} begins {{os.getpid()}}\\n")
            time.sleep(0.01)
            with open(LOG, "a") as f:
                f.write(f"{{name}} ends {{os.getpid()}}\\n")

        @pytest.mark.parametrize("k", range(60))
        def test_others(k):
            ran("other")

        @pytest.mark.parametrize("k", range({counting}))
        @pytest.mark.counts
        def test_counts(k):
            ran("counts")

        @pytest.mark.parametrize("k", range(10))
        @pytest.mark.alone
        def test_alone(k):
            ran("alone")
    """, workers=2)
    lines = [line.split() for line in said.splitlines() if " begins " in line or " ends " in line]
    assert len(lines) == 2 * (70 + counting) and f"{70 + counting} passed" in said
    for k, (name, what, process) in enumerate(lines):
        if (name, what) == ("alone", "begins"):
            assert lines[k + 1] == ["alone", "ends", process]
    counted = [(what, process) for name, what, process in lines if name == "counts"]
    assert all(begin == ("begins", end[1]) for begin, end in zip(counted[::2], counted[1::2], strict=True))
    # Each worker begins with its own part of the order; who takes the last of the others depends on the machine.
    assert len({process for _, process in counted}) == (1 if counting == 20 else 2)
    assert len({process for _, _, process in lines}) == 2
