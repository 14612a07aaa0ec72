"""Results that are written to in place before their backward: what runs in torch runs here, and what torch refuses is
refused, or has the gradients of results that were copied. Rows by their cases, and entries of torch's op database,
alone and in place. Gradients without torch: test_written_results.py."""
import itertools
from importlib import import_module
from operator import attrgetter

import pytest
from _draw import drawn
from _written import WRITES, Refused, outcome, wrong

import ptcore as pt

torch = pytest.importorskip("torch")
from _cases import case_id, dtypes  # noqa: E402
from test_gradient import NOT_REAL_RESULTS, is_differentiable, small_cases  # noqa: E402
from test_parity_ops import COMPARED, both, call_torch, counterpart, ours_of  # noqa: E402

_convert, _entries = [import_module(f"op_db.{name}") for name in ("_convert", "_entries")]
pytestmark = [pytest.mark.parity, pytest.mark.slow, pytest.mark.filterwarnings("ignore::UserWarning")]

# Runs here with the right gradients, where torch's rule keeps the result; or torch has no derivative at all.
ROWS_THAT_RUN = {
    "ldexp", "scatter_reduce", "index_reduce", "linalg_qr", "linalg_lu", "linalg_householder_product", "orgqr", "ormqr",
    "linalg_cond", "polar", "rnn_tanh_cell", "rnn_relu_cell", "floor_divide", "heaviside", "scatter_add", "vander"}
ENTRIES_THAT_RUN = {
    "acosh", "asinh", "atanh", "cumprod", "ldexp", "nn.functional.leaky_relu", "nn.functional.elu", "nn.functional.celu",
    "nn.functional.rrelu", "nn.functional.selu", "ormqr", "float_power", "qr", "polar", "logsumexp",
    "masked.logsumexp", "linalg.householder_product", "linalg.lstsq", "linalg.lstsq.grad_oriented", "linalg.qr",
    "linalg.lu", "linalg.lu_solve",
    *[f"index_reduce.{how}" for how in ("mean", "prod", "amin", "amax")],
    *[f"scatter_reduce.{how}" for how in ("sum", "mean", "prod", "amin", "amax")]}
SAMPLES, LARGEST = 3, 5000


def compare(ours, theirs, narrow=False):
    """Writes to each result of one call in both libraries; whether one ran here that torch refuses.

    ``ours`` and ``theirs`` are (call of values, values). ``narrow``: of half precision, where rules make results again.
    """
    more = False
    for number in range(4):
        for write, f in WRITES.items():
            want = outcome(torch, *theirs, number, f)
            if want is None or (isinstance(want, Refused) and want.where == "call"):
                return more
            got, text = wrong(pt, *ours, number, f, 1e-1 if narrow else 1e-9)
            where = f"result {number}, {write}"
            if got is None or (isinstance(got, Refused) and got.where == "call" and not got.is_of_autograd()):
                return more             # a result that has no derivative here, or a call that is compared elsewhere
            assert text is None, f"{where}: {text}"
            if isinstance(want, Refused):
                more |= not isinstance(got, Refused)
            elif isinstance(got, Refused):      # of views that overlap themselves torch's gradients are wrong
                assert "view overlap in memory" in str(got), f"{where}: {got}"
    return more


ROWS = [r for r in COMPARED if is_differentiable(r) and r.name not in NOT_REAL_RESULTS
        and {"float64", "complex128"} & set(dtypes(r))]


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


def forms_of(op):
    """(name, torch's, ours) of an entry's function, form in place and operator in place."""
    yield "function", _entries.theirs(op), _entries.ours(op)
    for variant in (op.inplace_variant, getattr(op, "inplace_operator_variant", None)):
        found = _entries.variant(variant)
        if found is not None:
            yield "in place", variant, found


def called(f, process):
    """The call of [arguments, keywords]."""
    return lambda given: process(f(*given[0], **given[1]))


ENTRIES = {name: op for name, op in _entries.entries().items() if op.supports_autograd}


@pytest.mark.parametrize("name", drawn(sorted(ENTRIES)))
def test_entry(name):
    op = ENTRIES[name]
    more = False
    for dtype in (torch.float64, torch.complex128, torch.bfloat16):
        if dtype not in op.supported_backward_dtypes("cpu"):
            continue
        for sample in itertools.islice(_entries.samples(op, dtype, True, 0), SAMPLES):
            process, given = sample.output_process_fn_grad, [[sample.input, *sample.args], sample.kwargs]
            if sum(x.numel() for x in _convert.leaves(given, torch.Tensor)) > LARGEST:
                continue
            try:
                mine = _convert.ours(given)
            except _convert.NotCarried:
                continue
            for form, theirs, ours in forms_of(op):
                try:
                    found = compare((called(ours, _convert.rebound(process)), mine), (called(theirs, process), given),
                                    dtype is torch.bfloat16)
                except AssertionError as e:
                    raise AssertionError(f"{form}, {dtype}, {sample.summary()[:100]}: {e}") from e
                more |= found and dtype is not torch.bfloat16
    assert not more or name in ENTRIES_THAT_RUN
