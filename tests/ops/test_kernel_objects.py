"""What a kernel object may export: its table, and nothing a linker could merge between ISA levels."""

import pathlib
import re
import shutil
import subprocess

import pytest

from _kernels import FAMILIES, OPS, SOURCES, WITHOUT_LANES

# What one family lends to others, at each level its own.
SHARED = {"matmul": ["pt_outer_tile"]}


def test_only_the_table_is_exported(kernels):
    if not shutil.which("nm"):
        pytest.skip("no nm")
    folder = pathlib.Path(kernels.dll._name).parent
    for family in FAMILIES:
        listing = subprocess.run(["nm", str(folder / f"{family}_{kernels.level}.o")], capture_output=True, text=True, check=True).stdout
        defined = {line.split()[-1]: line.split()[-2] for line in listing.splitlines() if line.split()[-2] in "TDBRVWu"}
        # the personality reference of the unwinder is data that every level shares
        expected = {f"{name}_{kernels.level}" for name in (f"pt_kernels_{family}", *SHARED.get(family, ()))}
        assert {name for name in defined if not name.startswith("DW.ref.")} == expected


def test_every_family_is_tested_here():
    tables = {name for name, path in SOURCES.items() if f"pt_kernels_{name}_" in path.read_text()}
    assert set(FAMILIES) <= tables


@pytest.mark.slow
def test_portable_vectors_compile(tmp_path):
    """The branch for compilers without vector extensions compiles."""
    compiler = shutil.which("c++")
    if not compiler:
        pytest.skip("no C++ compiler")
    for family in ("reduction", "extremum", "softmax", "normalize", "matmul"):
        subprocess.run([compiler, "-std=c++17", "-O0", "-DPT_ISA=base", "-DPT_PORTABLE_SIMD", f"-I{OPS / 'include'}",
                        f"-I{OPS / 'kernels'}",
                        "-c", str(SOURCES[family]), "-o", str(tmp_path / "portable.o")], check=True)


def test_families_without_lanes_do_not_ask_for_the_level():
    """What is compiled with -O1 below the best level includes nothing that depends on the level."""
    for family in WITHOUT_LANES:
        text, todo = "", [SOURCES[family]]
        seen = set(todo)
        while todo:
            source = todo.pop()
            text += source.read_text()
            for name in re.findall(r'#include "(.*)"', source.read_text()):
                found = [p for p in (source.parent / name, OPS / "kernels" / name, OPS / "include" / name) if p.exists()]
                assert found, name
                todo += {found[0]} - seen
                seen.add(found[0])
        names = {path.name for path in seen}
        assert not names & {"simd.h", "lanes.hpp", "loops.hpp", "rows.hpp", "reduce.hpp", "gemm.hpp"}, family
        assert "PT_ISA_IS_" not in text, family
