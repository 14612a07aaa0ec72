"""Operands that are written to in place before the backward: what runs in torch runs here, and what torch refuses is
refused, or has the gradients of operands that were copied. Gradients without torch: test_written_operands.py."""
from operator import attrgetter

import numpy as np
import pytest
from _draw import drawn
from _written import WRITES_TO_OPERANDS, Refused, outcome, wrong

import ptcore as pt

torch = pytest.importorskip("torch")
from importlib import import_module  # noqa: E402

from _cases import case_id, dtypes  # noqa: E402
from test_gradient import small_cases  # noqa: E402
from test_parity_ops import both, call_torch, counterpart, ours_of  # noqa: E402
from test_parity_written_results import ROWS  # noqa: E402

_convert = import_module("op_db._convert")
pytestmark = [pytest.mark.parity, pytest.mark.slow, pytest.mark.filterwarnings("ignore::UserWarning")]

# Runs here with the right gradients, where torch's rule keeps an operand that it does not need, or has no derivative.
ROWS_THAT_RUN = {
    "floor_divide", "nextafter", "heaviside", "conv_tbc", "gather", "scatter_add", "index_add", "index_copy", "take",
    "put", "scatter_reduce", "index_fill", "index_reduce", "take_along_dim", "cholesky_solve", "triangular_solve",
    "linalg_householder_product", "orgqr", "ormqr", "nll_loss", "ctc_loss", "dist", "layer_norm", "native_layer_norm",
    "pad", "addbmm", "bilinear", "segment_reduce", "cummax", "cummin", "combinations", "complex_of", "mvlgamma",
    "special_xlog1py", "masked_select", "ldexp",
    *[f"{kind}_pool{n}d" for kind in ("max", "avg", "adaptive_max", "adaptive_avg") for n in (1, 2, 3)]}
# Raises here where torch runs: one op, whose rule needs its operand, where torch composes ops and keeps a result of
# theirs. To keep that would cost a tensor and a pass in every call.
ROWS_THAT_RAISE = {
    "tanhshrink": "x - tanh(x)", "frexp": "the exponents", "l1_loss": "input - target",
    "cross_entropy": "log_softmax", "gru_cell": "the gates", "polar": "the angle's sine and cosine",
    "scaled_dot_product_attention": "scaled copies in its general form", "conv1d": "a padded copy, of \"same\"",
    "linalg_qr": "the columns of wide matrices", "instance_norm": "repeated weights", "kron": "spread copies"}
# torch's gradient is another one where nothing is written, or its results do not know that they show the operand.
GRADIENTS_DIFFER = {"ldexp", "as_strided_scatter", "unsafe_split", "unsafe_split_with_sizes", "unsafe_chunk"}


def compare(ours, theirs, name):
    """Writes to each operand of one call in both libraries; whether one ran here that torch refuses, and whether one
    was refused that torch runs."""
    more = fewer = False
    for number in range(6):
        for write, f in WRITES_TO_OPERANDS.items():
            want = outcome(torch, *theirs, number, f, operand=True)
            if isinstance(want, Refused) and want.where == "call":
                return more, fewer
            got, text = wrong(pt, *ours, number, f, operand=True)
            where = f"operand {number}, {write}"
            if isinstance(got, Refused) and got.where == "call" and not got.is_of_autograd():
                return more, fewer
            assert text is None, f"{where}: {text}"
            if want is None or got is None:         # one of both has no derivative
                continue
            if isinstance(want, Refused):
                more |= not isinstance(got, Refused)
                continue
            if isinstance(got, Refused):
                assert name in ROWS_THAT_RAISE, f"{where}: {got}"
                fewer = True
                continue
            for g, w in zip(got, want) if name not in GRADIENTS_DIFFER else ():
                np.testing.assert_allclose(g, w, rtol=1e-6, atol=1e-9, err_msg=where)
    return more, fewer


@pytest.mark.parametrize("row", [pytest.param(r, id=r.name) for r in drawn(ROWS, attrgetter("name"))])
def test_row(row):
    dtype = "float64" if "float64" in dtypes(row) else "complex128"
    found = []
    for case in small_cases(row)[:3]:
        ours, forms = both(row, case, dtype, "contiguous")
        for args, kwargs in (ours, forms[0]):
            for x in _convert.leaves([args, kwargs], (pt.Tensor, torch.Tensor)):
                if x.is_floating_point() or x.is_complex():
                    x.requires_grad_()
        try:
            found.append(compare((lambda a: ours_of(row)(*a[0], **a[1]), ours),
                                 (lambda a: call_torch(counterpart(row), [a]), forms[0]), row.name))
        except AssertionError as e:
            raise AssertionError(f"{case_id(row, case)}: {e}") from e
    more, fewer = map(any, zip(*found))
    assert not more or row.name in ROWS_THAT_RUN
    assert fewer == (row.name in ROWS_THAT_RAISE)
