"""Every module under autocast: eager calls beside compiled, scripted and traced ones, and gradients."""
import sys
from pathlib import Path

import pytest

import ptcore as pt
from ptcore import jit

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "jit")]
from _module_table import MODULES, as_made, given  # noqa: E402
from test_script_files import same  # noqa: E402


def tensors_of(x):
    if isinstance(x, pt.Tensor):
        return [x]
    if isinstance(x, dict):
        x = list(x.values())
    return [t for item in x for t in tensors_of(item)] if isinstance(x, (tuple, list)) else []


@pytest.mark.parametrize("name", sorted(MODULES))
@pytest.mark.filterwarnings("ignore")
def test_programs_under_autocast(name):
    net = as_made(name, False)
    scripted, compiled, found = jit.script(net), pt.compile(net), []
    for program in (net, scripted, compiled, compiled):
        pt.manual_seed(4)
        with pt.no_grad(), pt.autocast("cpu"):
            found.append(program(*given(name)))
    for x in found[1:]:
        same(found[0], x)


@pytest.mark.parametrize("name", sorted(MODULES))
@pytest.mark.filterwarnings("ignore")
def test_gradients_under_autocast(name):
    net = as_made(name, False)
    parameters = [p for p in net.parameters() if p.requires_grad and p.is_floating_point()]
    found = []
    for program in (net, pt.compile(net)):
        pt.manual_seed(4)
        with pt.autocast("cpu"):
            results = [t for t in tensors_of(program(*given(name))) if t.requires_grad]
        if not results or not parameters:
            return
        loss = sum([t.float().square().sum() if not t.is_complex() else t.abs().square().sum() for t in results])
        found.append(pt.autograd.grad(loss, parameters, allow_unused=True))
    for p, a, b in zip(parameters, *found, strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            assert a.dtype == p.dtype
            same(a, b)
