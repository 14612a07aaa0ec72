"""The ``autocast`` column of every row on accelerators: the dtypes of results under the toy interpreter of
tests/interpreters.py, and the column against PyTorch's own lists. That of the CPU: tests/amp."""
import re
from pathlib import Path

import numpy as np
import pytest
from _cases import CASES, ROWS, F, Sample, cases, dtypes, run_args
from _walk import walk
from interpreters import Autocast

import ptcore as pt
from ptcore._ops.calling import run
from ptcore._ops.table import schema

pytestmark = pytest.mark.core

LOW = pt.bfloat16
# Made of a product in the lower precision and of a loss or probabilities in float32, as in PyTorch; a sum, or the tensor
# itself.
OF_BOTH = {"linear_cross_entropy", "multi_head_attention_forward", "sum_to_size"}
UNDER_TEST = [r for r in ROWS.values() if not r.random and {"float32", "bfloat16"} <= set(dtypes(r))
              and r.name not in OF_BOTH
              and (r.kind == "elementwise" or CASES.get(r.name))]
EVERY = [pytest.param(r, id=r.name) for r in UNDER_TEST]


def arguments(row, case, dtype):
    sample = Sample(row, case, dtype, np.random.default_rng(2))
    positional, keyword = sample.arguments()
    order = iter(positional)
    return tuple([keyword[a.name] if a.keyword_only else next(order) for a in run_args(row)])


def dtypes_of(result):
    """Of a result's tensors; a Python value has its type."""
    if isinstance(result, (tuple, list)):
        return [d for r in result for d in dtypes_of(r)]
    return [result.dtype if isinstance(result, pt.Tensor) else type(result)]


def under(row, args):
    with Autocast(LOW):
        return dtypes_of(run(row.name, args))


@walk("row", EVERY)
def test_dtypes_are_what_the_column_says(row):
    for case in cases(row)[:4]:
        if not any(isinstance(s, F) or isinstance(s, list) for s in case):
            continue
        wide, low = (arguments(row, case, t) for t in ("float32", "bfloat16"))
        plain = {t: dtypes_of(run(row.name, a)) for t, a in (("wide", wide), ("low", low))}
        expected = {"low": (plain["low"], plain["low"]), "high": (plain["wide"], plain["wide"]),
                    "widest": (plain["wide"], plain["low"]), None: (plain["wide"], plain["low"])}
        rule = row.autocast_on("cuda")              # what is refused there runs in float32 on the CPU
        assert (under(row, wide), under(row, low)) == expected[row.autocast_on("cpu") if rule == "refused" else rule]


@pytest.mark.parametrize("row", [p for p in EVERY if p.values[0].autocast_on("cuda")])
def test_doubles_and_integers_are_left_alone(row):
    dtype = "float64" if "float64" in dtypes(row) else "int64"
    args = arguments(row, cases(row)[0], dtype)
    assert under(row, args) == dtypes_of(run(row.name, args))


def test_widest_of_a_mixture():
    x, y = pt.ones(2, 2), pt.ones(2, 2).to(LOW)
    index = pt.zeros(2, 2, dtype=pt.int64)
    with Autocast(LOW):
        assert pt.cat([x, y]).dtype is pt.stack([y, x]).dtype is pt.float32
        assert pt.cat([y, y]).dtype is LOW
        assert pt.scatter_add(x, 0, index, y).dtype is pt.float32
        assert pt.scatter_add(y, 0, index, y).dtype is LOW
        assert pt.dot(x[0], y[0]).dtype is pt.float32


def test_a_step_of_a_network():
    """Products in the lower precision, what follows in float32, gradients in the weights' dtype."""
    w = pt.ones(3, 4, requires_grad=True)
    x = pt.ones(2, 4)
    with Autocast(LOW):
        h = pt.nn.functional.linear(x, w)
        loss = pt.nn.functional.cross_entropy(h.relu(), pt.tensor([0, 1]))
        assert (h.dtype, (x @ w.t()).dtype, pt.matmul(x, x[0]).dtype) == (LOW, LOW, LOW)
        assert h.relu().dtype is LOW
        assert h.softmax(1).dtype is h.exp().dtype is h.sum().dtype is loss.dtype is pt.float32
        buffer = pt.zeros(2, 3)
        with pt.no_grad():
            pt.mm(x, w.t(), out=buffer)        # out= is left alone
        assert buffer.dtype is pt.float32
    loss.backward()
    assert w.grad.dtype is pt.float32


# -- PyTorch's lists --------------------------------------------------------------------------------

# ops of PyTorch's names whose work a row of another name does
OTHER_NAMES = {"prod_dims": "prod", "vector_norm": "linalg_vector_norm", "layer_norm_stats": "layer_norm",
               "rms_norm_stats": "rms_norm",
               "grid_sampled": "grid_sampler", "recurrent_layer": "lstm_cell",
               "attention_stats": "_scaled_dot_product_flash_attention",
               "nll_loss_stats": "nll_loss", "convolve": "conv2d", "convolve_transposed": "conv_transpose2d",
               "convolve_weight": "_convolution", "index_write": "index_put", "index_accumulate": "index_put",
               "prelu_of": "prelu", "squared_difference": "mse_loss", "absolute_difference": "l1_loss"}
# in the lists of the CPU's source alone (aten/src/ATen/autocast_mode.cpp), or composite in PyTorch of
# ops of the lists
BESIDE = {"cat": "widest", "stack": "widest", "cross_entropy_stats": "high", "ctc_loss_stats": "high", "_linalg_svd": "high",
          "svd": "high", "linalg_svd": "high", "linalg_svdvals": "high",
          **dict.fromkeys(["_fft_c2c", "_fft_r2c", "_fft_c2r", "stft", "istft",
                           *[f"fft_{n}{m}" for n in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
                             for m in ("", "2", "n")]], "high"),
          **dict.fromkeys(("_linalg_solve", "_linalg_solve_triangular", "_linalg_cholesky", "_linalg_qr",
                           "_linalg_eigh", "_linalg_det", "_linalg_slogdet", "_linalg_pinv_of",
                           "_linalg_solve_ex", "_linalg_eig", "_linalg_lu",
                           "_linalg_ldl", "_linalg_ldl_solve", "_geqrf", "_linalg_householder", "_linalg_matrix_exp",
                           "_linalg_inv", "_linalg_lu_solve"),
                          "high")}


def test_columns_are_pytorchs_lists():
    torch = pytest.importorskip("torch")
    text = (Path(torch.__file__).parent / "include" / "ATen" / "autocast_mode.h").read_text()
    lists = {}
    for macro, word in (("LOWER_PRECISION_FP", "low"), ("FP32", "high"), ("FP32_SET_OPT_DTYPE", "high"),
                        ("DIFFERENT_REDISPATCH_SIGNATURE", "high"), ("PROMOTE", "widest")):
        body = re.search(rf"#define AT_FORALL_{macro}\(_\)((?:.*\\\n)+.*)", text)[1]
        for name in re.findall(r"_\((?:ADD_NS\()?(\w+)", body):
            lists[name] = word
    assert len(lists) > 80
    for row in ROWS.values():
        name = OTHER_NAMES.get(row.name, row.name)
        if row.kind == "composite" and row.name not in BESIDE and name not in lists:
            continue                    # it is what the ops that it calls make of it, as the first test shows
        assert row.autocast_on("cuda") == (lists.get(name) or BESIDE.get(row.name)), row.name
    assert set(schema.AUTOCAST) == {*lists.values(), "off", "refused", None}
