"""ptcore.cuda has PyTorch's names, with its parameters and defaults; without a device they say what PyTorch's say."""
import importlib
import inspect

import pytest

import ptcore

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(torch.cuda.is_available() or ptcore.cuda.is_available(), reason="there is a device")

MODULES = ("cuda", "cuda.amp", "cuda.comm", "cuda.graphs", "cuda.memory", "cuda.nvtx", "cuda.profiler", "cuda.random",
           "cuda.streams")
# Parameters that say more or less than PyTorch's: of PyTorch's, and why.
OTHERS = {
    "cuda.Stream": "PyTorch's takes any keyword and passes it on to its class in C++",
    "cuda.ExternalStream": "PyTorch's takes any keyword and passes it on to its class in C++",
    "cuda.graph": "annotations and the check of inputs are absent",
}


def named(module):
    theirs = importlib.import_module(f"torch.{module}")
    own = [n for n, v in vars(theirs).items() if not n.startswith("_") and callable(v)
           and getattr(v, "__module__", None) == theirs.__name__]
    return [n for n in sorted({*own, *getattr(theirs, "__all__", ())}) if callable(getattr(theirs, n))]


def parameters(f):
    """(name, default) of each; None where C++ says nothing of them."""
    try:
        signature = inspect.signature(f)
    except (TypeError, ValueError):
        return None
    return [(p.name, str(p.default).replace("torch.", "ptcore.")) for p in signature.parameters.values()]


def both(module, name):
    return [parameters(getattr(importlib.import_module(f"{package}.{module}"), name, None))
            for package in ("ptcore", "torch")]


CASES = [(module, name) for module in MODULES for name in named(module) if None not in both(module, name)]


def test_there_are_cases():
    assert len(CASES) > 120


@pytest.mark.parametrize(("module", "name"), CASES, ids=[f"{m}.{n}" for m, n in CASES])
def test_parameters(module, name):
    ours, theirs = both(module, name)
    assert (ours != theirs) == (f"{module}.{name}" in OTHERS or f"cuda.{name}" in OTHERS), (ours, theirs)


@pytest.mark.parametrize("call", [
    lambda c: c.is_available(), lambda c: c.device_count(), lambda c: c.is_initialized(), lambda c: c.get_arch_list(),
    lambda c: c.is_bf16_supported(), lambda c: c.get_gencode_flags(), lambda c: c.memory_stats(),
    lambda c: c.get_rng_state_all(), lambda c: c.manual_seed(3), lambda c: c.manual_seed_all(3), lambda c: c.seed(),
    lambda c: c.empty_cache(), lambda c: c.memory_allocated(), lambda c: c.max_memory_reserved(),
    lambda c: (c.cudaStatus.SUCCESS, c.cudaStatus.ERROR_NOT_READY),
    lambda c: issubclass(c.CudaError, RuntimeError)])
def test_without_a_device(call):
    assert call(ptcore.cuda) == call(torch.cuda)


@pytest.mark.parametrize("call", [
    lambda c: c.init(), lambda c: c.current_device(), lambda c: c.synchronize(),
    lambda c: c.cudart(), lambda c: c.get_device_name(), lambda c: c.get_device_properties(0),
    lambda c: c.mem_get_info(), lambda c: c.current_stream(), lambda c: c.FloatTensor(2)])
def test_what_needs_a_device(call):
    for cuda in (ptcore.cuda, torch.cuda):
        with pytest.raises((RuntimeError, AssertionError, TypeError)):
            call(cuda)
