"""Dtypes of results under autocast on the CPU, of every entry of torch's op database in float32 and bfloat16."""
import itertools
import sys
from importlib import import_module
from pathlib import Path

import pytest

import ptcore as pt

torch = pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).parents[1] / "ops"))
_convert, _entries = [import_module(f"op_db.{name}") for name in ("_convert", "_entries")]

pytestmark = [pytest.mark.parity, pytest.mark.slow]
ENTRIES = _entries.entries()
# name -> why our result has another dtype
DIFFERENT = {
    **dict.fromkeys(["linalg.pinv", "linalg.pinv.hermitian"], "PyTorch multiplies the parts of the decomposition in "
                                                              "bfloat16"),
    "matrix_exp": "computed in float32: there is no kernel in half precision",
    "native_batch_norm": "without autocast it differs as well: nothing is given for statistics that nobody has",
    "nn.functional.max_pool3d": "with return_indices PyTorch calls a function that is in no list",
    **dict.fromkeys(["nn.functional.pad.reflect", "nn.functional.pad.replicate",
                     "nn.functional.pad.replicate_negative"],
                    "padding keeps the dtype in every mode"),
    "tensordot": "over dims of one element PyTorch multiplies without a product of matrices",
}


def dtypes(result, kind):
    return [str(x.dtype).rpartition(".")[2] for x in _convert.leaves(result, kind)]


@pytest.mark.parametrize("name", sorted(ENTRIES))
def test_dtypes_of_results(name):
    op = ENTRIES[name]
    ours, theirs = _entries.ours(op), _entries.theirs(op)
    wrong, seen = [], 0
    for dtype in (torch.float32, torch.bfloat16):
        if dtype not in op.supported_dtypes("cpu"):
            continue
        for sample in itertools.islice(_entries.samples(op, dtype, False, 0), 3):
            given = (sample.input, *sample.args)
            mine, named = _convert.ours(list(given)), _convert.ours(sample.kwargs)
            try:
                with torch.autocast("cpu"):
                    want = dtypes(theirs(*given, **sample.kwargs), torch.Tensor)
            except Exception:
                continue
            with pt.autocast("cpu"):
                got = dtypes(ours(*mine, **named), pt.Tensor)
            seen += 1
            if got != want:
                wrong.append((str(dtype), sample.summary(), got, want))
    assert (not wrong) != (name in DIFFERENT), wrong[:2]
