"""Every row in float16 and bfloat16 is the row in float64, rounded once: values, gradients and tangents (_halves.py)."""
import warnings

import numpy as np
import pytest
from _cases import ROWS, dtypes
from _half_failures import FAILURES
from _halves import CASES, HALVES, compare, samples
from _walk import walk
from test_gradient import NOT_REAL_RESULTS, is_differentiable

pytestmark = pytest.mark.core

UNDER_TEST = [r for r in ROWS.values() if set(HALVES) & set(dtypes(r)) and not r.random
              and (r.kind == "elementwise" or CASES.get(r.name))]


def told(row, large):
    """{what: the failures of a row}, and how many comparisons there were."""
    failed, count = {}, 0
    differentiable = is_differentiable(row) and row.name not in NOT_REAL_RESULTS
    for dtype in HALVES:
        if dtype in dtypes(row):
            for words, specs in samples(row, dtype, large):
                with np.errstate(all="ignore"), warnings.catch_warnings():
                    warnings.simplefilter("ignore")         # numbers at the ends of the types, meant here
                    tried, found = compare(row, dtype, words, specs, large, differentiable)
                count += tried
                for what, *text in found:
                    failed.setdefault(what, []).append(" ".join(text))
    return failed, count


def check(row, large):
    failed, _ = told(row, large)
    expected = FAILURES.get((row.name, "large" if large else "small"), "").split()
    text = "\n".join(f"{what}: {len(lines)}, {lines[0]}" for what, lines in failed.items())
    assert sorted(failed) == sorted(expected), f"expected {expected}\n{text}"


@walk("row", [pytest.param(r, id=r.name) for r in UNDER_TEST])
@pytest.mark.outer
def test_small(row):
    check(row, False)


@pytest.mark.outer
@walk("row", [pytest.param(r, id=r.name) for r in UNDER_TEST if r.kind not in ("elementwise", "view")])
def test_large(row):
    check(row, True)
