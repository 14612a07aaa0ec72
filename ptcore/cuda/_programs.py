"""The programs: which kernel files are compiled, for which dtypes, and the text that NVRTC gets.

A program is named as the host half names it, ``"softmax"`` or ``"elementwise:add"``, and compiled for a tuple of dtypes
that its text sees as ``PT_T``, ``PT_U``, ``PT_V``, ``PT_W``.
"""
import re

from ptcore.cuda._load import compiled

# By dtype code.
CPP = ("bool", "uint8_t", "int8_t", "uint16_t", "int16_t", "uint32_t", "int32_t", "uint64_t", "int64_t", "half",
       "bfloat16", "float", "double", "complex64", "complex128")

# Files whose results must be the CPU's to the bit: compiled without contraction.
EXACT = ("random", "random_whole")

_headers = None
_formulas = None


def headers():
    """Name in ``#include`` to text, of every file that a program may include."""
    global _headers
    if _headers is None:
        _headers = compiled().sources()
        # Headers of one folder include each other by their bare names.
        for name in [n for n in _headers if n.startswith("ptcore/")]:
            _headers.setdefault(name.removeprefix("ptcore/"), _headers[name])
    return _headers


def formulas():
    """Elementwise op to the text of its ``struct op_NAME``."""
    global _formulas
    if _formulas is None:
        _formulas = {}
        for name, text in headers().items():
            if name.startswith("formulas_"):
                for found in re.finditer(r"^struct op_(\w+) \{.*?^\};\n", text, re.M | re.S):
                    _formulas[found[1]] = found[0]
    return _formulas


def text_of(program, types):
    """The text of a program; KeyError if there is no such kernel file or op."""
    file, _, op = program.partition(":")
    if f"{file}.cuh" not in headers():
        raise KeyError(program)
    lines = [f"// {program} {' '.join(CPP[t] for t in types)}"]
    if op:
        lines += ['#include "ptcore/formula.h"', f"namespace {{\n{formulas()[op]}}}", f"#define PT_OP op_{op}"]
    if file in EXACT:
        lines.append("#define PT_EXACT")
    for letter, t in zip("TUVW", types):
        lines += [f"#define PT_{letter} {CPP[t]}", f"#define PT_{letter}CODE {t}"]
    return "\n".join([*lines, f'#include "{file}.cuh"', ""])
