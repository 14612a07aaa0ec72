"""The benchmark group ``table``: it has every public op, compares before it times, and keeps what it measured."""
import sys
import types
from pathlib import Path

import pytest

import ptcore as pt
from ptcore._ops import rows

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest")
FOLDER = Path(__file__).resolve().parents[1] / "benchmarks"
pytestmark = [pytest.mark.parity, pytest.mark.skipif(not FOLDER.exists(), reason="needs the source tree")]


@pytest.fixture(scope="module")
def group():
    sys.path.insert(0, str(FOLDER))
    try:
        import table
        yield table
    finally:
        sys.path.remove(str(FOLDER))


@pytest.fixture(scope="module")
def entries(group):
    return group.table.entries(pt, torch)


def test_every_public_op_is_in_it(entries):
    made, left = entries
    paths = {e.path for e in made}
    missing = [r.name for r in rows() if not r.internal and r.family != "registered"
               and not paths & set(r.public or [f"Tensor.{r.method_name}"]) and not set(r.public) & set(left)]
    assert not missing
    assert {"zeros", "Tensor.copy_", "nn.functional.cross_entropy", "Tensor.__getitem__", "special.zeta"} <= paths
    assert not {name: why for name, why in left.items() if why not in ("torch has none", "computes nothing")}


def args(save=None, modes="plain,backward,512"):
    names = "^(add|sum|relu|linalg.inv|max.*)$"
    return types.SimpleNamespace(match=names, modes=modes, rounds=1, save=save, shared=False)


def test_saves_and_resumes(group, tmp_path, capsys):
    path = tmp_path / "table.tsv"
    first, _ = group.run((pt, torch), args(path, "plain,backward"), "here")
    assert all(r.times for r in first), [r.note for r in first]
    assert {r.name for r in first if r.hosted} == {"linalg.inv"}
    done = {(r.mode, r.name): r.times for r in first}
    again, left = group.run((pt, torch), args(path), "here")
    assert {(r.mode, r.name) for r in again if r.mode == "512"} >= {("512", "add"), ("512", "sum, dim=1")}
    for row in again:
        if row.mode != "512":
            assert row.times == pytest.approx(done[row.mode, row.name], rel=1e-3)
    with pytest.raises(SystemExit, match="measured otherwise"):
        group.run((pt, torch), args(path), "elsewhere")
    capsys.readouterr()
    group.report(again, left)
    group.changes(again, path)
    out = capsys.readouterr().out
    assert "geometric mean of new ratios over old ones 1.000" in out


def test_what_differs_is_not_timed(group, entries):
    def wrong(found):
        return types.SimpleNamespace(**{**vars(pt), "__name__": "ptcore", "exp": found})

    exp = next(e for e in entries[0] if e.path == "exp")
    for found, said in ((lambda x: pt.exp(x) * 1.01, "differs by"), (lambda x: pt.exp(x).double(), "float64"),
                        (lambda x: pt.exp(x)[:1], "shape"), (lambda x: (pt.exp(x), 1), "2 results")):
        for mode in ("plain", "backward", "512"):
            forms, row = group.prepared(mode, exp, (wrong(found), torch))
            assert not forms and row.note.startswith("differs: ") and said in row.note, (mode, row.note)


def test_bounds(group):
    row = group.Row
    assert row("plain", "a", False, (1e-6, 1e-6)).bound == 1 and row("plain", "a", True, (1e-6, 1e-6)).bound == 1.3
    assert row("backward", "a", False, (1e-6, 1e-6)).over and not row("backward", "a", True, (1e-6, 1e-6)).over
    assert row("512", "a", False, (1e-6, 59e-6)).bound == 1.25 and row("512", "a", False, (1e-6, 61e-6)).bound == 1.1
