"""Budgets of what a build weighs: files and bytes installed, kernels by family and ISA level.

The object files are looked at where there is a build folder beside the tests (or in
PTCORE_BUILD); an installed package is held to its total size alone.
"""
import os
import zipfile
from pathlib import Path

import _build
import pytest
from _build import BUILD
from _recorded import held

import ptcore

pytestmark = pytest.mark.core

LEVELS = ("base", "v3", "v4")
# Bytes of one family's kernels at one level, and of one elementwise loop.
FAMILY, BIG_FAMILY, BIG = 260_000, 360_000, {"reduction", "matmul", "sort"}
LOOP, MEAN_LOOP = 8_200, 2_000
FLOATS, SHIFTS = {"float", "double"}, {"bitwise_left_shift", "bitwise_right_shift"}
SHIFTED = {"signed char", "unsigned char", "short", "unsigned short", "int", "unsigned int", "long",
           "unsigned long", "long long", "unsigned long long"}


@pytest.fixture(scope="module")
def report():
    return _build.size_report() or pytest.skip("needs the source tree")


@pytest.fixture(scope="module")
def objects(report):
    if not _build.is_release():
        pytest.skip("needs a release build folder, nm and size")
    rows = list(report.kernel_objects(BUILD))
    assert rows
    return rows


def test_installed(report):
    """The bytes are those that a wheel is held to. What files cost is counted by the budget of imports."""
    if "ASAN_OPTIONS" in os.environ or ("site-packages" not in ptcore.__file__ and not _build.is_release()):
        pytest.skip("the build is not a release build")
    files, size, packed = report.installed(Path(ptcore.__file__).parent)
    assert files > 50
    assert 1_000_000 < size <= report.UNPACKED
    assert packed <= report.WHEEL


def test_a_heavy_wheel_is_refused(report, tmp_path, monkeypatch, capsys):
    wheel = tmp_path / "a.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("a/b.so", bytes(5000))
        archive.writestr("a/c.py", "pass\n")
    assert report.weigh(wheel)
    out = capsys.readouterr().out
    assert ".so" in out and "5000" in out and str(wheel.stat().st_size) in out
    monkeypatch.setattr(report, "UNPACKED", 5000)
    assert not report.weigh(wheel)
    monkeypatch.setattr(report, "UNPACKED", 10**6)
    monkeypatch.setattr(report, "WHEEL", 5000)
    assert not report.weigh(wheel)


def test_families(report, objects):
    sizes = report.kernel_sizes(BUILD)
    assert {"matmul", "reduction", "softmax", "sort"} <= {family for kind, family in sizes if kind == "kernels"}
    for (kind, family), by_level in sizes.items():
        limit = BIG_FAMILY if family in BIG else FAMILY
        for level, n in by_level.items():
            assert n <= limit, f"{kind} {family} at level {level}: {n} bytes, at most {limit}"


def test_levels(report, objects):
    sizes = report.kernel_sizes(BUILD)
    names = {level: f"bytes of kernels at level {level}" for level in LEVELS}
    names["common"] = "bytes of what all levels call"
    for level, name in names.items():
        held(name, sum(by_level.get(level, 0) for by_level in sizes.values()))


def test_loops(report, objects):
    """One loop per op, dtype and level; bool and complex at the base level alone, integers but for shifts."""
    for level, kind, family, path in objects:
        if kind != "loops":
            continue
        found = report.loops(path)
        assert found, path
        names = [name for _, name in found]
        assert len(names) == len(set(names))
        for n, name in found:
            assert n <= LOOP, f"{level} {family}: {name}: {n} bytes, at most {LOOP}"
            op, dtype = name.split(maxsplit=2)[1:]
            if level != "base":
                dtypes = SHIFTED if op in SHIFTS else FLOATS
                assert dtype in dtypes, f"{level} {family}: {name} belongs to the base level"
        assert sum(n for n, _ in found) <= MEAN_LOOP * len(found), family


def test_wrappers_of_libraries_are_compiled_once(report, objects):
    assert set(report.kernel_sizes(BUILD)["kernels", "svd"]) == {"base"}
