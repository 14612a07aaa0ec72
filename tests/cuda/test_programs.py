"""The programs of structured kernels through NVRTC, for which no GPU is needed."""
import importlib.util

import pytest

from ptcore.cuda import _compile, _programs

if not importlib.util.find_spec("ptcore.cuda._backend"):
    pytest.skip("ptcore was built without the CUDA backend", allow_module_level=True)
if not importlib.util.find_spec("cuda") or not importlib.util.find_spec("cuda.bindings.nvrtc"):
    pytest.skip("NVRTC is not installed", allow_module_level=True)

CODES = {name: code for code, name in enumerate(_programs.CPP)}
INTEGERS = _programs.CPP[:9]
FLOATS = ("half", "bfloat16", "float", "double")
COMPLEX = ("complex64", "complex128")
REAL = INTEGERS + FLOATS
FOLDS = [(t, t) for t in _programs.CPP] + [(t, "int64_t") for t in INTEGERS] + [
    (t, u) for t in ("bool", "uint8_t", "int64_t") for u in FLOATS]
NORMS = [(t, t) for t in FLOATS] + [("complex64", "float"), ("complex128", "double")]
PROGRAMS = {
    "reduce_sum": FOLDS, "reduce_prod": FOLDS, "reduce_norm": NORMS, "reduce_norm2": NORMS,
    "reduce_extreme": [(t,) for t in REAL], "reduce_index": [(t,) for t in REAL],
    "reduce_truth": [(t,) for t in _programs.CPP], "reduce_var": [(t,) for t in FLOATS + COMPLEX],
    "reduce_logsumexp": [(t,) for t in FLOATS],
    "softmax": [(t,) for t in FLOATS], "log_softmax": [(t,) for t in FLOATS],
    "softmax_backward": [(t,) for t in FLOATS], "log_softmax_backward": [(t,) for t in FLOATS],
    "layer_norm": [(t, u) for t in FLOATS for u in FLOATS],
    "layer_norm_backward": [(t, u) for t in FLOATS for u in FLOATS],
    "convolution": [(t,) for t in REAL + COMPLEX if t != "bool"],
    "convolution_weight": [(t,) for t in REAL + COMPLEX if t != "bool"],
    "pooling": [(t,) for t in REAL if t != "bool"], "channel_norm": [(t, u) for t in FLOATS for u in FLOATS],
    "pad": [(t,) for t in _programs.CPP], "sliding": [(t,) for t in _programs.CPP],
    "resample": [(t,) for t in ("uint8_t", *FLOATS)], "grid_sample": [(t,) for t in FLOATS],
    "fill": [(t,) for t in _programs.CPP], "triangle": [(t,) for t in ("uint8_t", "int16_t", "half", "float")],
}


def compiled(program, types, architecture):
    text = _programs.text_of(program, [CODES[t] for t in types])
    cubin = _compile.NVRTC().compile(text, _compile.included(text, _programs.headers()), architecture)
    assert cubin[:4] == b"\x7fELF"


@pytest.mark.parametrize("program", PROGRAMS)
def test_one_dtype(program):
    types = next(t for t in PROGRAMS[program] if t[0] == "half")
    compiled(program, types, 90)


@pytest.mark.slow
@pytest.mark.parametrize("architecture", [80, 90])
@pytest.mark.parametrize("program", PROGRAMS)
def test_all_dtypes(program, architecture):
    for types in dict.fromkeys(PROGRAMS[program]):
        compiled(program, types, architecture)
