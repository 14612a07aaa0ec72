"""Every row of the table on a CUDA device against its reference: the same cases and tolerances as on the CPU."""
import os
import re
import zlib

import numpy as np
import pytest
from _cases import CASES, ROWS, Sample, array, case_id, cases, dtypes, function, layouts, to_bits
from _tolerance import ACCUMULATED, assert_near

import ptcore
from ptcore.cuda import _load

pytestmark = pytest.mark.usefixtures("exact_convolution")

EVERY_DTYPE = os.environ.get("PTCORE_TEST_EXAMPLES", "1") != "1"        # at night
KERNELS = _load.runtime().kernel_names()
NO_KERNEL = re.compile(r"there is no kernel for device cuda")
LAYOUTS = ("contiguous", "transposed", "sliced", "reversed")


def on_device(values, dtype, layout="contiguous"):
    """A tensor on the device with these values, laid out there."""
    values = np.asarray(values)
    if dtype == "bfloat16":
        return on_device(to_bits(values), "uint16", layout).view(ptcore.bfloat16)
    if values.ndim == 0 or layout == "contiguous":
        return ptcore.from_numpy(np.array(values, order="C")).cuda()
    if layout == "transposed":
        return ptcore.from_numpy(values.T.copy()).cuda().permute(*range(values.ndim - 1, -1, -1))
    every = (slice(None, None, -1),) * values.ndim
    if layout == "reversed":
        return ptcore.from_numpy(values[every].copy()).cuda()[every]
    wide = np.zeros((*values.shape[:-1], 2 * values.shape[-1] + 1), values.dtype)
    wide[..., 1::2] = values
    return ptcore.from_numpy(wide).cuda()[..., 1::2]


def any_cuda(values):
    return any(any_cuda(v) if isinstance(v, (tuple, list)) else getattr(v, "is_cuda", False) for v in values)


def chosen(row):
    """float32 and one other dtype, another one for each row; at night all."""
    all_of_them = list(dtypes(row))
    if EVERY_DTYPE or len(all_of_them) < 3:
        return all_of_them
    others = [d for d in all_of_them if d != "float32"]
    other = others[zlib.crc32(row.name.encode()) % len(others)]
    return [other] if "float32" not in all_of_them else ["float32", other]


TRIED = [r for r in ROWS.values() if r.kind == "elementwise" or CASES.get(r.name)]


@pytest.mark.parametrize(("row", "dtype"), [pytest.param(r, d, id=f"{r.name}-{d}") for r in TRIED for d in chosen(r)])
def test_forward(row, dtype):
    for case in cases(row):
        for layout in [x for x in LAYOUTS if x in layouts(row)] if dtype == chosen(row)[0] else LAYOUTS[:1]:
            sample = Sample(row, case, dtype, np.random.default_rng(7))
            positional, keyword = sample.arguments(layout, make=on_device)
            try:
                result = function(row)(*positional, **keyword)
            except NotImplementedError as e:
                if row.kernel in KERNELS or not NO_KERNEL.search(str(e)):
                    raise
                return
            results = list(result) if isinstance(result, tuple) else [result]
            context = f"{case_id(row, case)} {dtype} {layout}"
            for got, want in zip(results, sample.expected(), strict=True):
                if not isinstance(got, ptcore.Tensor):
                    assert got == want, context
                    continue
                assert got.is_cuda == any_cuda([*positional, *keyword.values()]), context
                name = dtype if dtype in ACCUMULATED and got.dtype.kind in "fc" else got.dtype.name
                if got.dtype.kind in "fc" and dtype not in ACCUMULATED:
                    name = got.dtype.name
                assert_near(array(got.cpu()), want, name, context, ACCUMULATED)
