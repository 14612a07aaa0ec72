"""Deep modules of what ptcore has not: programs import them and derive from their classes; they raise at use."""
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

import ptcore.compat.torch

pytestmark = pytest.mark.core


def run(text):
    """Runs a text under the hook."""
    out = subprocess.run([sys.executable, "-P", "-W", "error", "-m", "ptcore.compat.torch", "-c", text],
                         capture_output=True, text=True, timeout=120)
    assert out.returncode == 0, out.stderr
    return out.stdout


# How a program imports, what it calls, what the error says; None is for a name that PyTorch has not either.
CALLS = [
    ("from torch.ao.quantization.qconfig import QConfig", "QConfig(1, 2)", "quantized"),
    ("from torch.ao.quantization.fx.custom_config import PrepareCustomConfig", "PrepareCustomConfig()", "quantized"),
    ("from torch.ao.nn.quantized.modules.linear import LinearPackedParams", "LinearPackedParams()", "quantized"),
    ("from torch.ao.nn.qat.modules.conv import Conv2d", "Conv2d(1, 1, 1)", "quantized"),
    ("from torch.ao.pruning.sparsifier.base_sparsifier import BaseSparsifier", "BaseSparsifier()", "quantized"),
    ("from torch.quantization.fx.convert import convert", "convert(None)", "quantized"),
    ("from torch.onnx.symbolic_opset12 import dropout", "dropout()", "ONNX"),
    ("from torch.onnx._internal.exporter import _core", "_core.TorchTensor(1)", "ONNX"),
    ("from torch.distributed.elastic.rendezvous.dynamic_rendezvous import RendezvousBackend",
     "RendezvousBackend()", "distributed"),
    ("from torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook import PowerSGDState", "PowerSGDState(1)",
     "distributed"),
    ("from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageReader", "HuggingFaceStorageReader('x')",
     "distributed"),
    ("from torch._dynamo.backends.registry import lookup_backend", "lookup_backend('x')", "Dynamo"),
    ("from torch._dynamo.variables.base import VariableTracker", "VariableTracker()", "Dynamo"),
    ("from torch._inductor.utils import run_and_get_code", "run_and_get_code(None)", "Inductor"),
    ("from torch._inductor.codecache import FxGraphCache", "FxGraphCache()", "Inductor"),
    ("from torch.fx.experimental.unification import unify", "unify(1, 2)", "graphs"),
    ("from torch.fx.passes.utils.matcher_utils import SubgraphMatcher", "SubgraphMatcher(None)", "graphs"),
    ("from torch.utils.data.datapipes.iter.callable import MapperIterDataPipe", "MapperIterDataPipe([], int)",
     "data pipes"),
    ("from torch.utils.data.datapipes.datapipe import IterDataPipe", "IterDataPipe()", "data pipes"),
    ("from torch.utils.hipify import hipify_python", "hipify_python.hipify()", "extensions"),
    ("from torch.sparse.semi_structured import SparseSemiStructuredTensor", "SparseSemiStructuredTensor()", "sparse"),
    ("from torch.nn.intrinsic.qat.modules.conv_fused import ConvBn2d", "ConvBn2d()", "quantized"),
    ("import torch.export.custom_ops as c", "c.not_there", None),
    ("import torch._export.passes", "torch._export.passes.not_there", None)]


def test_names_come_and_raise_at_use():
    run(f"""
import torch
for line, call, says in {CALLS!r}:
    exec(line)
    try:
        eval(call)
    except (NotImplementedError if says else AttributeError) as e:
        assert (says or "") in str(e) and "ptcore" in str(e), (line, e)
    else:
        raise AssertionError(line)
""")


def test_ways_to_import():
    """By ``from`` of a package, as an attribute, and twice: one module each."""
    run("""
import sys
import torch
from torch.fx import experimental
from torch.fx.experimental import rewriter, unification
import torch.fx.experimental.unification as again
assert unification is again is torch.fx.experimental.unification is sys.modules["torch.fx.experimental.unification"]
from torch.fx.experimental.unification import multipledispatch
assert multipledispatch.conflict.AmbiguityWarning is not None
from torch._dynamo import variables, config
assert variables.functions is torch._dynamo.variables.functions and config.verbose is False
from torch.utils.benchmark.utils import timer
from torch.utils.benchmark.utils.timer import Timer
from torch.utils.benchmark.utils.common import Measurement
from torch.utils import benchmark
assert Timer is benchmark.Timer and Measurement is benchmark.Measurement and callable(benchmark.timer)
from torch.utils.benchmark.op_fuzzers import unary
import torch._inductor
torch._inductor.config.max_autotune = True
torch._functorch.config.activation_memory_budget = 0.5
with torch._functorch.config.patch(cse=False):
    assert not torch._functorch.config.cse
assert torch._functorch.config.cse
from torch.nn.quantized import functional, modules
assert not torch.distributed.rpc.is_available() and not torch.distributed.is_available()
from torch.utils._triton import has_triton, has_triton_package
assert has_triton() is has_triton_package() is False
log = torch._logging.getArtifactLogger("a", "b")
log.debug("x")
""")


def test_attributes_without_an_import():
    """Modules of PyTorch are attributes of their packages, also where a package is ptcore's."""
    run("""
import torch
assert torch.utils.collect_env.__name__ == "torch.utils.collect_env" and torch.nn.quantized.FloatFunctional
assert torch.fx.experimental.unification.unify and torch.fx.experimental.proxy_tensor.make_fx
assert torch.nn.intrinsic.qat.ConvBn2d and torch.utils.data.datapipes.iter.callable.MapperIterDataPipe
for holder in (torch.utils, torch.nn, torch.fx, torch.utils.data):
    assert not hasattr(holder, "nothing") and not hasattr(holder, "_nothing")
try:
    torch.utils.nothing
except AttributeError as error:
    assert "nothing" in str(error)
import ptcore
assert ptcore.nn.quantized is torch.nn.quantized
from ptcore.compat.torch import uninstall
uninstall()
assert not hasattr(ptcore.nn, "quantized") and not hasattr(ptcore.utils, "collect_env")
with ptcore.backends.mkldnn.flags(enabled=False), ptcore.backends.nnpack.flags(enabled=False):
    pass
""")


def test_classes_are_classes():
    run("""
import abc, enum
from typing import Generic, Optional, Protocol, TypeVar
import torch
from torch import nn
from torch.ao.quantization.observer import ObserverBase, MinMaxObserver
from torch.ao.quantization.quantize import convert
from torch.ao.ns.fx.ns_types import NSSingleResultValuesType
from torch.distributed.elastic.agent.server.api import WorkerState
from torch.distributed.checkpoint.storage import StorageReader
from torch.distributed.tensor.parallel.style import ParallelStyle
from torch.distributed.elastic.rendezvous.api import RendezvousError
from torch.fx.passes.infra.pass_base import PassBase
from torch._dynamo.exc import Unsupported
from torch.utils.data.datapipes._decorator import functional_datapipe
from torch.utils.data.datapipes.datapipe import IterDataPipe
from torch.fx._compatibility import compatibility
from torch._compile import _disable_dynamo
T = TypeVar("T")

class Mine(ObserverBase):
    def __init__(self):
        super().__init__()
class Reader(StorageReader, abc.ABC):
    @abc.abstractmethod
    def read(self): ...
class Style(ParallelStyle, Generic[T]):
    pass
class Both(nn.Module, MinMaxObserver):
    pass
@functional_datapipe("mine")
class Pipe(IterDataPipe[int]):
    pass
@compatibility(is_backward_compatible=True)
def f(x: Optional[MinMaxObserver] = None, y: "ObserverBase | None" = None, s=WorkerState.HEALTHY) -> PassBase | None:
    return 3
@_disable_dynamo
def g():
    return 4
assert f() == 3 and g() == 4 and not isinstance(nn.Linear(1, 1), (ObserverBase, PassBase, Pipe))
assert issubclass(Mine, ObserverBase) and WorkerState.HEALTHY == WorkerState.HEALTHY != WorkerState.FAILED
try:
    pass
except (RendezvousError, Unsupported):
    pass
for cls in (Mine, Reader, Style, Both, Pipe):
    try:
        cls()
    except NotImplementedError as e:
        assert "ptcore" in str(e)
    else:
        raise AssertionError(cls)
""")


@pytest.mark.outer
def test_what_pytorch_has_not_stays_an_import_error():
    run("""
import importlib, importlib.util
import torch
from ptcore.compat.torch import _paths
for path in ("_six", "ao.quantization.pt2e", "ao.quantization.quantizer.xnnpack_quantizer", "distributed.nothing",
             "distributed.tensor.nothing.more", "_inductor.nothing", "onnx.symbolic_opset99", "nn.quantized.nothing",
             "utils.data.datapipes.nothing", "fx.experimental.nothing", "legacy.nn", "npu", "testing._internal.nothing",
             "_dynamo.nothing", "fx/experimental", "nn.backends.nothing", "jit._entry"):
    try:
        importlib.import_module("torch." + path)
    except ModuleNotFoundError as error:
        assert ("torch." + path).startswith(error.name), error
    else:
        raise AssertionError(path)
for line in ("from torch.ao.quantization.qconfig import Nothing", "from torch.distributed import nothing",
             "from torch._dynamo.utils import nothing", "from torch.fx.experimental import nothing",
             "from torch.utils.benchmark.utils import nothing"):
    try:
        exec(line)
    except ImportError:
        continue
    raise AssertionError(line)
assert importlib.util.find_spec("torch.distributed.tensor.parallel.style") is not None
assert importlib.util.find_spec("torch.distributed.nothing") is None
for path in list(_paths.ABSENT)[::40]:
    assert importlib.util.find_spec(f"torch.{path}_") is None, path
""")


def test_attributes_of_classes_go_by_their_names():
    """Capitals are members of an enumeration; other attributes are there if they are listed."""
    run("""
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP, ShardingStrategy
from torch.distributed.tensor import DTensor
assert ShardingStrategy.FULL_SHARD == ShardingStrategy.FULL_SHARD != ShardingStrategy.NO_SHARD
assert "ShardingStrategy.FULL_SHARD" in repr(ShardingStrategy.FULL_SHARD)
class Mine(FSDP):
    pass
for cls, name in ((FSDP, "state_dict_type"), (Mine, "state_dict_type"), (DTensor, "from_local")):
    try:
        getattr(cls, name)(None)
    except NotImplementedError as error:
        assert "distributed" in str(error)
    else:
        raise AssertionError(name)
for name in ("nothing", "from_local", "_PRIVATE", "__len__"):
    assert not hasattr(FSDP, name), name
""")


def test_the_table_is_small():
    """As it lies in a wheel, which is compressed."""
    file = Path(ptcore.compat.torch.__file__).with_name("absent.tsv")
    assert len(zlib.compress(file.read_bytes())) < 30_000


def test_nothing_of_ptcore_is_replaced():
    """The import of a module sets it in its package; where that is ptcore's, the name must be free there."""
    run("""
import importlib
import torch
from ptcore.compat.torch import _paths
taken = []
for path in _paths.ABSENT:
    package, _, child = path.rpartition(".")
    holder = importlib.import_module(f"torch.{package}") if package else torch
    if holder.__name__.startswith("ptcore") and child in vars(holder):
        taken.append(path)
assert not taken, taken
""")


def test_small_modules():
    run("""
import contextlib, warnings
import torch
from torch.nn import _reduction
assert [_reduction.get_enum(x) for x in ("none", "mean", "sum")] == [0, 1, 2]
flags = [(a, b) for a in (None, True, False) for b in (None, True, False)]
names = [_reduction.legacy_get_string(a, b, emit_warning=False) for a, b in flags]
assert names == ["mean", "mean", "none", "mean", "mean", "none", "sum", "sum", "none"], names
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    assert _reduction.legacy_get_enum(False, None) == 2
assert "reduction='sum'" in str(seen[0].message)

assert not torch.__future__.get_swap_module_params_on_conversion()
torch.__future__.set_swap_module_params_on_conversion(True)
layer = torch.nn.Linear(1, 1)
weight = layer.weight
layer.to("meta")
assert layer.weight is weight and weight.is_meta
torch.__future__.set_swap_module_params_on_conversion(False)
torch.__future__.set_overwrite_module_params_on_conversion(True)
layer.to(torch.float64)
assert layer.weight is not weight and torch.__future__.get_overwrite_module_params_on_conversion()

from torch.utils._contextlib import _DecoratorContextManager, _NoParamDecoratorContextManager, context_decorator
depth = 0
class Deep(_NoParamDecoratorContextManager):
    def __enter__(self):
        global depth
        depth += 1
    def __exit__(self, *error):
        global depth
        depth -= 1
@Deep()
def f():
    return depth
@Deep
def g(n):
    got = depth
    for i in range(n):
        got = yield got, depth
    return "end"
assert f() == 1 and depth == 0
it = g(2)
assert next(it) == (1, 1) and depth == 0 and it.send("a") == ("a", 1) and depth == 0
try:
    it.send(None)
except StopIteration as e:
    assert e.value == "end"
def caught():
    try:
        yield 1
    except KeyError:
        yield depth
it = context_decorator(lambda: Deep(), caught)()
next(it)
assert it.throw(KeyError()) == 1 and depth == 0
it.close()

from torch.fx._symbolic_trace import is_fx_tracing
seen = []
def h(x):
    seen.append(is_fx_tracing())
    return x + 1
torch.fx.symbolic_trace(h)
h(1)
assert seen == [True, False]
""")
