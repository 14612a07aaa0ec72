"""Each row and each module of nn: traced, saved and loaded, with the results and gradients of eager calls."""
import io
import sys
import warnings
from pathlib import Path

import pytest

import ptcore as pt
from ptcore import jit
from ptcore._ops import run

sys.path.insert(0, str(Path(__file__).parent.parent / "ops"))
sys.path.insert(0, str(Path(__file__).parent.parent / "fx"))
from _cases import case_id, cases, dtypes
from _module_table import MODULES, as_made, given
from test_gradient import small_cases
from test_make_fx_rows import BY_VALUES, FORWARD, arguments, assert_equal, flat, put, seeded


def again(traced):
    file = io.BytesIO()
    jit.save(traced, file)
    return jit.load(io.BytesIO(file.getvalue()))


@pytest.mark.parametrize("row", [pytest.param(r, id=r.name) for r in FORWARD])
@pytest.mark.filterwarnings("ignore")
def test_rows(row):
    dtype = next((d for d in ("float32", "complex64", "int64") if d in dtypes(row)), dtypes(row)[0])
    for case in (small_cases(row)[:2] or cases(row)[:2]):
        where = case_id(row, case)
        first, second = arguments(row, case, dtype, 3), arguments(row, case, dtype, 4)
        if not flat(first):
            continue

        def f(*tensors, first=first):
            return run(row.name, put(first, tensors))
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            try:
                traced = jit.trace(f, tuple(flat(first)), check_trace=False)
            except (RuntimeError, TypeError):
                assert row.name in BY_VALUES, where
                continue
        reads = any([issubclass(w.category, jit.TracerWarning) for w in told])      # values, which are constants then
        assert not reads or row.name in READS, where
        loaded = again(traced)
        for args in (first,) if reads else (first, second):
            want = seeded(run, row.name, args)
            for call in (traced, loaded):
                assert_equal(seeded(call, *flat(args)), want, where)


# What has a size, a range or numbers that are values.
READS = {"histogram", "argwhere", "ctc_loss", "repeat_interleave", "unique", "unique_consecutive", "bincount"}


def leaves(x):
    return [x] if isinstance(x, pt.Tensor) else [leaf for y in x for leaf in leaves(y)]


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("name", sorted(MODULES))
@pytest.mark.filterwarnings("ignore")
def test_modules(name, training):
    module, args = as_made(name, training), given(name)
    traced = jit.trace(module, tuple(args), check_trace=False)
    found = []
    for m in (module, traced, again(traced)):
        m.load_state_dict(as_made_state(name, training))
        pt.manual_seed(5)
        xs = [x.clone().requires_grad_(x.is_floating_point()) for x in args]
        outs = leaves(m(*xs))
        graded = [y for y in outs if y.requires_grad]
        inputs = [x for x in [*xs, *m.parameters()] if x.requires_grad]
        grads = pt.autograd.grad([(y * y).sum() for y in graded], inputs, allow_unused=True) if graded else []
        found.append([*outs, *[g for g in grads if g is not None], *m.state_dict().values()])
    for other in found[1:]:
        assert len(other) == len(found[0])
        for a, b in zip(found[0], other, strict=True):
            assert a.dtype is b.dtype and bool(((a == b) | ((a != a) & (b != b))).all())


STATES = {}


def as_made_state(name, training):
    """One state of each module, for all of its forms."""
    if name not in STATES:
        pt.manual_seed(9)
        STATES[name] = {k: v.clone() for k, v in as_made(name, training).state_dict().items()}
    return STATES[name]
