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
ROWS_THAT_RUN = set()


def compare(ours, theirs):
    """Writes to each operand of one call in both libraries; whether one ran here that torch refuses."""
    more = False
    for number in range(6):
        for write, f in WRITES_TO_OPERANDS.items():
            want = outcome(torch, *theirs, number, f, operand=True)
            if isinstance(want, Refused) and want.where == "call":
                return more
            got, text = wrong(pt, *ours, number, f, operand=True)
            where = f"operand {number}, {write}"
            if isinstance(got, Refused) and got.where == "call" and not got.is_of_autograd():
                return more
            if want is None or got is None:
                assert want is None and got is None or got is None, f"{where}: torch has no history here"
                continue
            assert text is None, f"{where}: {text}"
            if isinstance(want, Refused):
                more |= not isinstance(got, Refused)
                continue
            assert not isinstance(got, Refused), f"{where}: {got}"
            for g, w in zip(got, want):
                np.testing.assert_allclose(g, w, rtol=1e-6, atol=1e-9, err_msg=where)
    return more


@pytest.mark.parametrize("row", [pytest.param(r, id=r.name) for r in drawn(ROWS, attrgetter("name"))])
def test_row(row):
    dtype = "float64" if "float64" in dtypes(row) else "complex128"
    more = False
    for case in small_cases(row)[:3]:
        ours, forms = both(row, case, dtype, "contiguous")
        for args, kwargs in (ours, forms[0]):
            for x in _convert.leaves([args, kwargs], (pt.Tensor, torch.Tensor)):
                if x.is_floating_point() or x.is_complex():
                    x.requires_grad_()
        try:
            more |= compare((lambda a: ours_of(row)(*a[0], **a[1]), ours),
                            (lambda a: call_torch(counterpart(row), [a]), forms[0]))
        except AssertionError as e:
            raise AssertionError(f"{case_id(row, case)}: {e}") from e
    assert not more or row.name in ROWS_THAT_RUN
