"""The walk of benchmarks/cliffs.py: its cells make calls that both libraries take, and a file of them goes on."""
import sys
from pathlib import Path

import pytest

import ptcore as pt

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest")
FOLDER = Path(__file__).resolve().parents[1] / "benchmarks"
pytestmark = [pytest.mark.parity, pytest.mark.skipif(not FOLDER.exists(), reason="needs the source tree")]
NAMES = "mul sum cumsum nn.functional.max_pool2d nn.functional.softmax gather".split()


@pytest.fixture(scope="module")
def cliffs():
    sys.path.insert(0, str(FOLDER))
    try:
        import cliffs
        yield cliffs
    finally:
        sys.path.remove(str(FOLDER))


@pytest.fixture(scope="module")
def walk(cliffs):
    return cliffs.Cells((pt, torch))


@pytest.mark.parametrize("name", NAMES)
def test_cells_are_calls_of_both(cliffs, walk, name):
    labels = [label for label in walk.labels(f"^{name}$") if "size=1000000" not in label]
    assert len(labels) == len(set(labels)) > 20
    made = 0
    for label in labels[::7]:
        assert cliffs.cells.label(*cliffs.cells.parsed(label)) == label
        try:
            loops = walk.loops(label)
        except cliffs.Unfit:
            continue                # a dtype that torch refuses, a dim that is not there
        for loop in loops:
            loop(1)
        made += 1
    assert made > len(labels) // 14


def test_layouts(cliffs, walk):
    name = "nn.functional.max_pool2d"
    strides = {}
    for layout in cliffs.cells.LAYOUTS:
        cell = {**cliffs.cells.PLAIN, "dtype": "float32", "layout": layout}
        call = cliffs.cells.made(None, walk.call(name), cell, cliffs.np.random.default_rng(0))
        x, y = (call.args[0].realized(lib, [], False) for lib in (pt, torch))
        assert x.stride() == y.stride()
        assert x.numel() > 8000
        strides[layout] = x.stride()
    assert len(set(strides.values())) == 5
    assert x.is_contiguous(memory_format=pt.channels_last)


def test_a_file_goes_on(cliffs, walk, tmp_path, capsys):
    path = tmp_path / "cells.tsv"
    arguments = type("", (), {"save": path, "minutes": 1, "rounds": 1, "itself": False, "match": "mul"})
    labels = ["mul | size=100 dtype=float32 shape=even layout=contiguous second=number mode=forward",
              "mul | size=100 dtype=float32 shape=even layout=contiguous second=tensor mode=backward"]
    cliffs.run(walk, labels[:1], arguments)
    cliffs.run(walk, labels[1:], arguments)
    kept = cliffs.rows_of(path)
    assert list(kept) == labels
    assert all(ratio > 0 for ratio, *_ in kept.values())
    told_of = tmp_path / "told.tsv"         # times of our own: those of a machine at work say nothing
    for label, ours in zip(labels, (3e-6, 1e-6)):
        cliffs.append(told_of, label, (ours, 1e-6))
    cliffs.report(told_of, "")
    told = capsys.readouterr().out
    assert "2 cells; 1 above 1.2 (50.0 %), 1 above 2.0" in told
    assert "mul" in told.split("by op")[1]
