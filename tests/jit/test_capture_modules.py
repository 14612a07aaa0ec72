"""Every module of ``nn`` under ``compile``: values, gradients, buffers and random numbers are eager's, bit for bit."""
import copy

import numpy as np
import pytest
from _module_table import MODULES, as_made, given

import ptcore as pt
from ptcore._trees.tree import tree_leaves
from ptcore.jit import compiled as _compile


def same(a, b):
    a, b = tree_leaves(a), tree_leaves(b)
    assert len(a) == len(b)
    for x, y in zip(a, b):
        if isinstance(x, pt.Tensor):
            assert x.dtype is y.dtype and x.requires_grad == y.requires_grad and x.stride() == y.stride()
            np.testing.assert_array_equal(x.detach().numpy(), y.detach().numpy())
        else:
            assert x == y


def run(f, module, args):
    """Results, gradients of inputs and parameters, and buffers, of two calls."""
    found = []
    for _ in range(2):
        pt.manual_seed(0)
        inputs = [a.detach().clone().requires_grad_() if a.dtype.is_floating_point else a for a in args]
        module.zero_grad()
        out = f(*inputs)
        leaves = [t for t in tree_leaves(out) if isinstance(t, pt.Tensor) and t.requires_grad]
        if leaves:
            sum([(t * t).sum() for t in leaves]).backward()
        found.append((out, [a.grad for a in inputs if a.requires_grad], [p.grad for p in module.parameters()],
                      [b.clone() for b in module.buffers()], pt.rand(1)))
    return found


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("name", sorted(MODULES))
@pytest.mark.filterwarnings("ignore")
def test_a_module_is_captured(name, training):
    module, args = as_made(name, training), given(name)
    twin = copy.deepcopy(module)
    compiled = pt.compile(module, backend="eager")
    before = dict(_compile.counts)
    found = run(compiled, module, args)
    for a, b in zip(run(twin, twin, args), found):
        same(a, b)
    happened = {k: n - before[k] for k, n in _compile.counts.items()}
    assert happened == {"captures": 1, "eager": 0, "raised": 0}, (
        happened, compiled._compiled.error, [getattr(v, "reason", None) for vs in compiled._compiled.forms.values()
                                             for v in vs])
