"""Modules whose results are written to in place before the backward; see tests/_written.py."""
import itertools

import pytest
from _module_table import MODULES, as_made, given
from _written import WRITES, Refused, tensors_of, wrong

import ptcore as pt

pytestmark = [pytest.mark.core, pytest.mark.filterwarnings("ignore:kl_div:UserWarning", "ignore:.*NLLLoss2d")]
# Their rules keep the result, in PyTorch too.
KEPT = {"ReLU", "Sigmoid", "Tanh", "Softmax", "LogSoftmax", "Softmin", "Softmax2d", "PairwiseDistance"}


def prepared(name, training=True):
    """(call of a list of inputs, inputs, parameters) of a module in double precision."""
    pt.manual_seed(0)
    module = as_made(name, training).double()
    inputs = [x.double().requires_grad_() if x.is_floating_point() else x for x in given(name)]
    return lambda xs: module(*xs), inputs, [p for p in module.parameters() if p.requires_grad]


def hooked(call):
    """The call of a module with hooks before and after its backward, which put functions around it."""
    seen = []
    call.register_full_backward_hook(lambda *args: seen.append(1))
    call.register_full_backward_pre_hook(lambda *args: seen.append(1))
    return seen


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("name", MODULES)
def test_results(name, training):
    call, inputs, parameters = prepared(name, training)
    ran = 0
    for number, (write, f) in itertools.product(range(3), WRITES.items()):
        got, text = wrong(pt, call, inputs, number, f, parameters=parameters)
        assert text is None, f"result {number}, {write}: {text}"
        ran += got is not None and not isinstance(got, Refused)
    assert bool(ran) == (name not in KEPT)


@pytest.mark.parametrize("name", ["Linear", "Conv2d", "GRUCell", "LSTM", "MultiheadAttention"])
def test_results_within_hooks(name):
    """A module with full backward hooks gives views, which are not written to in place, as in PyTorch."""
    pt.manual_seed(0)
    module = as_made(name, True)
    seen = hooked(module)
    inputs = [x.requires_grad_() for x in given(name)]
    y = tensors_of(module(*inputs), pt)[0]
    with pytest.raises(RuntimeError, match=r"custom Function|multiple views"):
        y.relu_()
    (y.clone().relu_() + 1).sum().backward()
    assert seen
