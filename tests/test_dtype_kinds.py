"""What a dtype is stands in sets of codes (``PT_KIND_...`` in kernel.h): no source reads it from the codes' order."""
import re
from pathlib import Path

import numpy as np
import pytest

import ptcore as pt

ROOT = Path(__file__).resolve().parents[1]
SUFFIXES = {".c", ".cpp", ".cuh", ".h", ".hpp", ".pxd", ".py", ".pyx"}
CODE = r"PT_(?:BOOL|U?INT(?:8|16|32|64)|B?FLOAT(?:16|32|64)|FLOAT8_E\w+|COMPLEX(?:32|64|128))\b"
ORDER = re.compile(rf"(?:[^<]<|[^->]>|<=|>=) *{CODE}|{CODE} *(?:<=|>=|<[^<]|>[^>])|[-+] *{CODE}|{CODE} *[-+] *\w"
                   rf"|range\([^)]*{CODE}")
TEMPLATE = re.compile(rf"\w+<(?:{CODE}|, |\w+)+>")

pytestmark = pytest.mark.core


def compared(text):
    """Lines that compare a dtype's code with a constant, or count from one; templates' arguments are none."""
    return [line.strip() for line in text.splitlines() if "PT_" in line
            and ORDER.search(TEMPLATE.sub("", line)) and not line.lstrip().startswith(("#include", "//"))]


@pytest.mark.skipif(not (ROOT / "ptcore" / "_build").exists(), reason="needs the source tree")
def test_no_source_compares_codes():
    paths = [p for folder in ("ptcore", "tests") for p in sorted((ROOT / folder).rglob("*"))
             if p.suffix in SUFFIXES and p != Path(__file__).resolve()]
    assert len(paths) > 1000
    assert [(p.relative_to(ROOT).as_posix(), line) for p in paths for line in compared(p.read_text())] == []


@pytest.mark.parametrize("line", [
    "if (dtype >= PT_COMPLEX64) return 2;", "return PT_FLOAT16 <= t.dt <= PT_FLOAT64", "x < PT_FLOAT16 ? 1 : 2",
    "of[dtype - PT_FLOAT16]", "for d in range(PT_FLOAT16, PT_COMPLEX64):", "while (PT_INT64 > d) d++;"])
def test_what_is_found(line):
    assert compared(line) == [line]


@pytest.mark.parametrize("line", [
    "of<PT_FLOAT32>(x)", "p->dtype == PT_FLOAT32", "1 << PT_BOOL", "PT_BIT(PT_FLOAT16) | x"])
def test_what_is_no_comparison(line):
    assert compared(line) == []


DTYPES = ("bool uint8 int8 uint16 int16 uint32 int32 uint64 int64 float16 bfloat16 float32 float64 complex64 "
          "complex128 float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz float8_e8m0fnu complex32").split()
NOT_NUMPYS = {"bfloat16": "f", "complex32": "c", **dict.fromkeys([n for n in DTYPES if n.startswith("float8")], "f")}


@pytest.mark.parametrize("name", DTYPES)
def test_kinds_are_numpys(name):
    """``kind`` is ``pt_kind`` of kernel.h."""
    dtype, kind = getattr(pt, name), NOT_NUMPYS.get(name) or np.dtype(name).kind
    assert dtype.kind == kind
    assert dtype.is_floating_point == (kind == "f") and dtype.is_complex == (kind == "c")
    assert dtype.is_signed == (kind in "ifc" and name != "float8_e8m0fnu")


def test_no_public_layout_counts_dtypes():
    headers = Path(pt.get_include()) / "ptcore"
    texts = {name: (headers / name).read_text() for name in ("api.h", "backend.h", "extension.h", "kernel.h")}
    assert [name for name, text in texts.items() if "[PT_NDTYPES]" in text] == []
