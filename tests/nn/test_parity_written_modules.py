"""Modules whose results are written to in place before the backward: what runs in torch runs here."""
import itertools

import numpy as np
import pytest
from _draw import drawn
from _module_table import MODULES, RANDOM, as_made, given
from _written import WRITES, Refused, outcome
from test_written_modules import hooked

import ptcore as pt

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.parity, pytest.mark.core]
# torch's own kernels keep what these give, and refuse a write to it.
RUNS_HERE = {"CrossMapLRN2d", "RNNCell"}
# Other gradients, whatever is written: a sixth in float32, the gradient by what log_softmax is given, and 0 in place of
# 0 * NaN.
OTHER_VALUES = {"Hardsigmoid", "CTCLoss", "KLDivLoss"}


def twins(name, training):
    """(module, inputs) of both libraries, with the same weights, in double precision."""
    pt.manual_seed(0)
    ours = as_made(name, training).double()
    theirs = getattr(torch.nn, name)(*MODULES[name][0])
    inputs = [[x.double().requires_grad_() if x.is_floating_point() else x for x in given(name)]]
    inputs.append([torch.from_numpy(np.array(x.detach())).requires_grad_(x.requires_grad) for x in inputs[0]])
    if name.startswith("Lazy"):
        theirs(*[x.detach().float() for x in inputs[1]])
    theirs = theirs.train(training).double()
    with torch.no_grad():
        for to, x in zip(theirs.state_dict().values(), ours.state_dict().values(), strict=True):
            to.copy_(torch.from_numpy(np.array(x.detach())))
    return (ours, inputs[0]), (theirs, inputs[1])


def became(library, module, inputs, number, f):
    return outcome(library, lambda xs: module(*xs), inputs, number, f, parameters=list(module.parameters()))


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("name", drawn(MODULES))
@pytest.mark.outer
def test_results(name, training):
    runs_here = set()
    for number, (write, f) in itertools.product(range(3), WRITES.items()):
        got, want = [became(library, *twin, number, f) for library, twin in zip((pt, torch), twins(name, training))]
        if isinstance(want, Refused) and want.where == "call":      # torch has no derivative by each input
            break
        assert (got is None) == (want is None), f"result {number}: not both have a history"
        if isinstance(want, Refused):
            if not isinstance(got, Refused):
                runs_here.add(want.where)
        elif want is not None:
            assert not isinstance(got, Refused), f"result {number}, {write}: {got}"
            if not (training and name.startswith(RANDOM)) and name not in OTHER_VALUES:
                for a, b in zip(got, want, strict=True):
                    np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-10, err_msg=f"result {number}, {write}")
    assert bool(runs_here) == (name in RUNS_HERE), runs_here


@pytest.mark.parametrize("name", drawn(MODULES))
@pytest.mark.outer
def test_results_within_hooks(name):
    for f in WRITES.values():
        outcomes = []
        for library, (module, inputs) in zip((pt, torch), twins(name, False)):
            hooked(module)
            outcomes.append(became(library, module, inputs, 0, f))
        got, want = outcomes
        assert isinstance(got, Refused) == isinstance(want, Refused), f"{got}, torch {want}"
