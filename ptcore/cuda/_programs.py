"""The programs: which kernel files are compiled, for which dtypes, and the text that NVRTC gets.

A program is named as the host half names it, ``"softmax"``, ``"elementwise:add"`` or ``"step:adam"``, and compiled for
a tuple of dtypes that its text sees as ``PT_T``, ``PT_U``, ``PT_V``, ``PT_W``.
"""
import re

from ptcore._ops.table.steps import STEPS
from ptcore.cuda.driver.compiled import compiled

# By dtype code.
CPP = ("bool", "uint8_t", "int8_t", "uint16_t", "int16_t", "uint32_t", "int32_t", "uint64_t", "int64_t", "half",
       "bfloat16", "float", "double", "complex64", "complex128")

_WHOLE = CPP[:9]
_FLOATS = ("half", "bfloat16", "float", "double")
_COMPLEX = ("complex64", "complex128")
_REAL = _WHOLE + _FLOATS
_NUMBERS = _REAL[1:] + _COMPLEX
_BY_SIZE = ("uint8_t", "int16_t", "int32_t", "int64_t", "complex128")
_FOLDS = ([(t, t) for t in CPP] + [(t, "int64_t") for t in _WHOLE if t != "int64_t"]
          + [(t, u) for t in ("bool", "uint8_t", "int64_t") for u in _FLOATS]
          + [(t, "double") for t in _FLOATS if t != "double"])
_NORMS = [(t, t) for t in _FLOATS] + [("complex64", "float"), ("complex128", "double")]
_ADDED = [(t,) for t in CPP if t not in _FLOATS[:2]] + [("float", t) for t in _FLOATS[:2]]       # halves into float
_PAIRS = [(t, u) for t in _FLOATS for u in _FLOATS]


def _one(types):
    return [(t,) for t in types]


# The files of structured kernels and the dtypes that their host halves ask for.
STRUCTURED = {
    "attention": _one(_FLOATS), "attention_backward": _one(_FLOATS),
    "attention_backward_wide": _one(_FLOATS), "attention_tensor": _one(_FLOATS[:3]),
    "attention_tensor_masked": _one(_FLOATS[:3]), "attention_tensor_backward": _one(_FLOATS[:3]),
    "attention_tensor_backward_masked": _one(_FLOATS[:3]),
    "channel_norm": _PAIRS, "convolution": _one(_NUMBERS), "convolution_weight": _one(_NUMBERS),
    "convolution_tensor": _one(_FLOATS[:3]), "convolution_weight_tensor": _one(_FLOATS[:3]), "cumulate": _one(CPP),
    "copy": [(t, u) for t in CPP for u in CPP if t != u] + [(t, t) for t in _BY_SIZE],
    "fft": _one(_FLOATS[2:]), "fill": _one(CPP),
    "grid_sample": _one(_FLOATS),
    "histogram": [(t, t) for t in _FLOATS] + [(t, u) for t in _WHOLE[1:] for u in _FLOATS[2:]],
    "index": _one(_BY_SIZE), "index_add": _ADDED, "layer_norm": _PAIRS,
    "layer_norm_backward": _PAIRS, "log_softmax": _one(_FLOATS), "log_softmax_backward": _one(_FLOATS),
    "loss": _one(_FLOATS), "many": _one(_FLOATS),
    "mask": _one(_BY_SIZE), "matmul": _one(_WHOLE[1:]),
    "matrix_exp": _one(("float", "double", *_COMPLEX)), "nonzero": _one(CPP),
    "pad": _one(dict.fromkeys(_BY_SIZE + _FLOATS + _COMPLEX)), "permute": _one(_REAL),
    "pooling": _one(_REAL[1:]), "random": _one(_FLOATS),
    "random_whole": _one(_REAL) + [(t, u) for t in _REAL for u in _FLOATS], "recurrent": _one(_FLOATS),
    "reduce_extreme": _one(_REAL),
    "reduce_index": _one(_REAL), "reduce_logsumexp": _one(_FLOATS), "reduce_norm": _NORMS, "reduce_norm2": _NORMS,
    "reduce_prod": _FOLDS, "reduce_sum": _FOLDS, "reduce_truth": _one(CPP), "reduce_var": _one(_FLOATS + _COMPLEX),
    "running": _one(_REAL), "resample": _one(("uint8_t", *_FLOATS)), "scatter_reduce": _one(CPP),
    "search": _one(_REAL), "sliding": _one(CPP),
    "softmax": _one(_FLOATS), "softmax_backward": _one(_FLOATS), "solver": _one(("float", "double", *_COMPLEX)),
    "sort": _one(_REAL), "sort_stages": _one(("int32_t", "int64_t")), "topk": _one(_REAL), "transpose": _one(_BY_SIZE),
    "triangle": _one(_BY_SIZE), **{f"step:{name}": _one(_FLOATS) for name in STEPS},
}

# Files with results that must equal the CPU's bit for bit: compiled without contraction.
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
    if f"{file}.cuh" not in headers() or (file == "step" and op not in STEPS):
        raise KeyError(program)
    lines = [f"// {program} {' '.join(CPP[t] for t in types)}"]
    if file == "step":
        lines += ['#include "steps.h"', f"#define PT_STEP pt::{op}_step"]
    elif op:
        lines += ['#include "approximate.cuh"', "#define PT_MATH math", '#include "ptcore/formula.h"',
                  f"namespace {{\n{formulas()[op]}}}", f"#define PT_OP op_{op}"]
    if file in EXACT:
        lines.append("#define PT_EXACT")
    lines[1:1] = [line for letter, t in zip("TUVW", types)
                  for line in (f"#define PT_{letter} {CPP[t]}", f"#define PT_{letter}CODE {t}")]
    return "\n".join([*lines, f'#include "{file}.cuh"', ""])


def every(pattern=""):
    """(program, types) of all programs whose name has ``pattern`` in it: the structured, then the elementwise ones."""
    codes = {name: code for code, name in enumerate(CPP)}
    for program, rows in STRUCTURED.items():
        if pattern in program:
            for types in rows:
                yield program, tuple([codes[t] for t in types])
    for op in formulas():
        for kind in ("elementwise", "elementwise_cast"):
            if pattern in f"{kind}:{op}":
                for code in compiled().op_dtypes(op):
                    yield f"{kind}:{op}", (code,)
