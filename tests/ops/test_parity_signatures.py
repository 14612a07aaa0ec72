"""Names, order, kinds and defaults of parameters are PyTorch's: of modules, optimisers, schedules, data, initialisers,
and of the functions of nn.functional that are written in Python there."""
import importlib
import inspect

import pytest

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.parity

MODULES = ("nn", "nn.functional", "nn.utils", "nn.utils.rnn", "nn.utils.parametrize", "nn.utils.parametrizations",
           "nn.utils.prune", "nn.init", "optim", "optim.lr_scheduler", "utils.data", "autograd", "autograd.functional")
OPEN = "PyTorch's says only *args and **kwargs"
# Where they differ, and why.
DIFFERENT = {
    "nn.functional.normalize": "out is keyword-only, as everywhere",
    "autograd.enable_grad": "the name of a decorated function", "autograd.no_grad": "the same",
    "autograd.Function": OPEN,
    "utils.data.random_split": "the default generator is that of the moment",
    **{f"nn.{name}": "the default activation is ptcore's relu" for name in (
        "Transformer", "TransformerDecoderLayer", "TransformerEncoderLayer")},
    **{f"nn.functional.{kind}max_pool{n}d": OPEN for kind in ("", "adaptive_") for n in (1, 2, 3)},
    **{f"nn.functional.fractional_max_pool{n}d": OPEN for n in (2, 3)},
    **{f"nn.{name}": OPEN for name in ("Container", "GRU", "LSTM", "RNN", "NLLLoss2d")},
    **{f"nn.init.{name}": OPEN for name in (
        "constant", "dirac", "eye", "kaiming_normal", "kaiming_uniform", "normal", "orthogonal", "sparse", "uniform",
        "xavier_normal", "xavier_uniform")},
}
SPELLINGS = {"axis", "keepdims", "out"}             # ours beside PyTorch's


def parameters(thing):
    """[(name, kind, text of the default)]; None where nothing is known."""
    try:
        found = inspect.signature(thing).parameters.values()
    except ValueError:
        return None
    return [(p.name, p.kind.name.replace("POSITIONAL_ONLY", "POSITIONAL_OR_KEYWORD"),
             "" if p.default is p.empty else text(p.default)) for p in found]


def text(value):
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return repr(float(value))
    return repr(list(value) if isinstance(value, (tuple, list)) else value).replace("torch.", "").replace("ptcore.", "")


def differs(mine, theirs):
    mine, theirs = parameters(mine), parameters(theirs)
    if mine is None or theirs is None:
        return False
    names = {name for name, _, _ in theirs}
    return [p for p in mine if p[0] not in SPELLINGS - names] != theirs


def offered(path):
    """(name, ours, theirs) of what both modules have."""
    mine, theirs = importlib.import_module(f"ptcore.{path}"), importlib.import_module(f"torch.{path}")
    for name in sorted(dir(theirs)):
        a, b = getattr(mine, name, None), getattr(theirs, name)
        if name.startswith("_") or not callable(a) or not callable(b) or inspect.ismodule(a):
            continue
        if (getattr(b, "__module__", None) or "").startswith("torch") and "Tensor" not in name:
            yield name, a, b


@pytest.mark.parametrize("path", MODULES)
def test_functions_and_constructors(path):
    found = {f"{path}.{name}" for name, a, b in offered(path) if differs(a, b)}
    assert found == {name for name in DIFFERENT if name.rpartition(".")[0] == path}


# Of methods: what is inherited by modules of PyTorch's own machinery.
METHODS = {"nn.GRU.forward", "nn.LSTM.forward"}


@pytest.mark.parametrize("path", ["nn", "nn.utils.rnn", "optim", "optim.lr_scheduler", "utils.data"])
def test_methods(path):
    found, count = set(), 0
    for name, a, b in offered(path):
        if not isinstance(b, type) or not isinstance(a, type) or "Parameter" == name or "Buffer" in name:
            continue
        for key, method in vars(b).items():
            if key.startswith("_") or not inspect.isfunction(method) or not hasattr(a, key):
                continue
            count += 1
            if differs(getattr(a, key), method):
                found.add(f"{path}.{name}.{key}")
    assert count > 0
    assert found <= METHODS, found
