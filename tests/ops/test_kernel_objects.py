"""What a kernel object may export, and that kernels compile where a compiler has no vector extensions."""
import re
import shutil
import subprocess

import _build
import pytest
from _kernels import NEEDS, OPS, SOURCES

# What one family lends to others, at each level its own.
SHARED = {"matmul": ["pt_outer_tile"], "cast": ["pt_cast_table"], "chain": ["pt_chains"]}


def exported(path):
    """The names that an object defines for others, but for the unwinder's reference, data that every level shares."""
    listing = subprocess.run(["nm", "--defined-only", "-g", str(path)], capture_output=True, text=True, check=True).stdout
    return {name for name in re.findall(r"^\S+ [A-Zu] (\S+)$", listing, re.M) if not name.startswith("DW.ref.")}


# Kernels of one level alone, which export functions to what is compiled once, and how their names begin.
ONCE = {"mersenne": "pt_mersenne_"}


def test_only_tables_are_exported():
    """Nothing that a linker could merge between ISA levels."""
    report = _build.size_report()
    if report is None or not _build.is_release():
        pytest.skip("needs the source tree and a release build folder")
    seen = 0
    for level, kind, family, path in report.kernel_objects(_build.BUILD):
        if level in NEEDS:
            names = [f"pt_{kind}_{family}", *SHARED.get(family, ())]
            found = exported(path)
            if family in ONCE:          # there is no other level to merge it with
                found = {name for name in found if not name.startswith(ONCE[family])}
            assert found and found <= {f"{name}_{level}" for name in names}, (level, family, found)
            seen += 1
    assert seen > 60


def test_every_kernel_file_has_a_table():
    """But for those that all kernels call."""
    without = {name for name, path in SOURCES.items() if f"pt_kernels_{name}_" not in path.read_text()}
    assert without == {"elementwise", "parallel", "blas", "optimizers", "plan", "fuse", "take", "rows", "cast", "stored",
                       "op_function", "overridable", "pooling_planes"}


@pytest.mark.slow
@pytest.mark.parametrize("family", ["reduction", "extremum", "softmax", "normalize", "matmul"])
def test_portable_vectors_compile(family):
    """The branch for compilers without vector extensions compiles."""
    compiler = shutil.which("c++")
    if not compiler:
        pytest.skip("no C++ compiler")
    subprocess.run([compiler, "-std=c++17", "-fsyntax-only", "-DPT_ISA=base", "-DPT_PORTABLE_SIMD",
                    f"-I{OPS / 'include'}", f"-I{OPS / 'kernels'}", str(SOURCES[family])], check=True)
