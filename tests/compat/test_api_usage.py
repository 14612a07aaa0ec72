"""The names that programs use most exist under the hook, but for those that are listed here with their reasons.

``api_usage.tsv`` has the names that make up 99.5 % of the uses in 45 code bases, the most used first.
"""
import re
import subprocess
import sys
from pathlib import Path

TABLE = Path(__file__).with_name("api_usage.tsv")
# Pattern -> why a name need not exist. Parts that are absent as a whole have modules that raise at use.
MEANT = {
    r"torch\.(distributed|onnx|export|sparse|ao|_inductor|_dynamo|xpu)\..*": "import, and raise at use",
    r"torch\.(nn\.Module\.(training|_parameters|_modules|_buffers|_non_persistent_buffers_set)"
    r"|optim\.Optimizer\.param_groups|autograd\.Function\.ctx\..*)": "attributes of instances",
    r"torch\.nn\.Module\._reset_parameters": "a method of single modules",
    r"torch\.(spmm|sparse_coo|sparse_csr|sparse_csc|sparse_coo_tensor|Tensor\.(to_sparse|indices|coalesce))": "sparse",
    r"torch\.Tensor\.dequantize": "quantized tensors",
    r"torch\.cuda\.FloatTensor": "cuda",
    r"torch\.serialization\.(location_tag|normalize_storage_type)": "storages with a dtype",
    r"torch\.testing\.assert_allclose": "PyTorch has removed it",
    r"torch\.nn\.attention\.current_flash_attention_impl": "attention by other libraries",
    r"torch\.Node": "a private name",
}
SCRIPT = """
import importlib, sys, warnings
warnings.simplefilter("ignore")
import torch
def find(path):
    thing, parts = torch, path.split(".")[1:]
    for i, part in enumerate(parts):
        try:
            thing = getattr(thing, part)
        except AttributeError:
            thing = importlib.import_module("torch." + ".".join(parts[:i + 1]))
for line in open(sys.argv[1]).read().splitlines()[1:]:
    name = line.split("\\t")[0]
    try:
        find(name)
    except (AttributeError, ModuleNotFoundError):
        print(name)
"""


def test_names():
    out = subprocess.run([sys.executable, "-P", "-m", "ptcore.compat.torch", "-c", SCRIPT, str(TABLE)],
                         capture_output=True, text=True, timeout=300)
    assert out.returncode == 0, out.stderr
    missing = out.stdout.split()
    wrong = [name for name in missing if not any(re.fullmatch(pattern, name) for pattern in MEANT)]
    assert not wrong, wrong
    shares = [float(line.split("\t")[1]) for line in TABLE.read_text().splitlines()[1:]]
    assert len(shares) > 1000 and 0.994 < shares[-1] <= 0.995


# What programs import from where, in code bases for PyTorch: a module and its names a line.
IMPORTS = Path(__file__).with_name("imports.tsv")
# Names that are not there, with reasons.
NO_IMPORT = {
    "torch": {"ScriptObject": "a class of PyTorch's C++",
              "cond": "traced control flow",
              **dict.fromkeys(("_cast_Float", "_dim_arange", "_weight_norm"), "private functions")},
    "functorch.compile": dict.fromkeys(("aot_function", "memory_efficient_fusion"), "a package of its own"),
    "functorch.einops": {"rearrange": "a package of its own"},
    "functorch.experimental": {"functionalize": "a package of its own"},
    "torch._functorch.vmap": {"restore_vmap": "a private function of ptcore.func"},
    "torch._meta_registrations": {"register_meta": "kernels of PyTorch"},
    "torch._sources": {"get_source_lines_and_file": "the parser of scripts"},
    "torch.functional": {"_return_counts": "a private function"},
    "torch.fx.experimental._config": {"use_duck_shape": "a setting of Dynamo"}}


def test_what_programs_import():
    text = """
import sys
for line in open(sys.argv[1]).read().splitlines():
    module, names = line.split("\\t")
    for name in names.split():
        try:
            exec(f"from {module} import {name}", {})
        except ImportError:
            print(module, name)
"""
    out = subprocess.run([sys.executable, "-P", "-W", "ignore", "-m", "ptcore.compat.torch", "-c", text, str(IMPORTS)],
                         capture_output=True, text=True, timeout=300)
    assert out.returncode == 0, out.stderr
    missing = sorted(tuple(line.split()) for line in out.stdout.splitlines())
    assert missing == sorted((module, name) for module, names in NO_IMPORT.items() for name in names)


ABSENT_CALLS = [
    "torch.distributed.init_process_group('gloo')", "torch.distributed.ReduceOp()", "torch.onnx.export(None, (), 'x')",
    "torch.export.export(None, ())", "torch.sparse.mm(1, 2)", "torch.ao.quantization.QuantStub()",
    "torch.xpu.synchronize()", "torch.mps.synchronize()", "torch._inductor.compile(None)", "torch._dynamo.export(None)",
    "torch.nn.parallel.DistributedDataParallel(None)", "torch.nn.quantized.FloatFunctional()",
    "torch.package.PackageExporter('x')", "torch.hub.load('a/b', 'c')"]


def test_what_is_absent_raises_at_use():
    text = f"""
import torch, torch.onnx, torch.export, torch.nn.quantized, torch._inductor
for call in {ABSENT_CALLS!r}:
    try:
        eval(call)
    except NotImplementedError as error:
        if "ptcore" not in str(error) and "storages" not in str(error):
            print(call, "says", error)
    except BaseException as error:
        print(call, "raised", repr(error))
    else:
        print(call, "raised nothing")
"""
    out = subprocess.run([sys.executable, "-P", "-m", "ptcore.compat.torch", "-c", text], capture_output=True,
                         text=True)
    assert (out.returncode, out.stdout) == (0, ""), out.stdout + out.stderr


def test_questions_are_answered_with_no():
    text = """
import torch, torch.distributed as dist, torch._dynamo, torch._inductor.config
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP, StateDictType
from torch.nn.parallel import DistributedDataParallel
from torch.distributed.elastic.multiprocessing.errors import record
assert not (dist.is_available() or dist.is_initialized() or torch.cuda.is_available() or torch.xpu.is_available()
            or torch.backends.mps.is_available() or torch.mps.is_available() or torch.mtia.is_available()
            or torch.onnx.is_in_onnx_export() or torch.backends.mkldnn.is_available())
assert torch.xpu.device_count() == torch.cuda.device_count() == 0
net = torch.nn.Linear(1, 1)
assert not isinstance(net, (FSDP, DistributedDataParallel, torch.storage.TypedStorage))
def reduce(x: "torch.distributed.ProcessGroup | None", op=dist.ReduceOp.SUM, kind=StateDictType.FULL_STATE_DICT): pass
class Mine(FSDP): pass
@record
def main(): return 3
assert main() == 3
try:
    pass
except dist.DistBackendError:
    pass
assert not hasattr(dist, "nonsense") and not hasattr(torch, "npu")
torch._dynamo.config.suppress_errors = True
torch._inductor.config.triton.cudagraphs = True
torch._dynamo.reset()
torch.backends.cudnn.benchmark = True
assert torch.nn.DataParallel(net)(torch.ones(1, 1)).shape == (1, 1)
a = [torch.ones(2), torch.ones(3)]
torch._foreach_add_(a, 1)
assert [x.tolist() for x in torch._foreach_mul(a, a)] == [[4, 4], [4, 4, 4]]
flat = torch._utils._flatten_dense_tensors(a)
assert [x.shape for x in torch._utils._unflatten_dense_tensors(flat, a)] == [x.shape for x in a]
assert torch._C._get_tracing_state() is None
with torch._C._DisableFuncTorch():
    state = torch.get_rng_state()
assert torch._C._storage_address(a[0]) == torch._C._storage_address(a[0][1:]) != torch._C._storage_address(a[1])
assert torch.quasirandom.SobolEngine(2).draw(2).tolist() == [[0, 0], [0.5, 0.5]]
"""
    out = subprocess.run([sys.executable, "-P", "-m", "ptcore.compat.torch", "-c", text], capture_output=True,
                         text=True)
    assert out.returncode == 0, out.stderr


def test_every_path_of_the_tables_imports():
    text = """
import importlib, torch
from ptcore.compat.torch import _paths
for path in [*_paths.TABLE, *_paths.ABSENT]:
    module = importlib.import_module("torch." + path)
    if path in _paths.TABLE:
        assert module.__name__ == _paths.TABLE[path], (path, module)
        assert module.__spec__.name == module.__name__, (path, module.__spec__)
    else:
        assert [getattr(module, name) for name in module.__all__ if name not in ("CUDA_HOME", "ROCM_HOME")] is not None
for name in _paths.NAMES:
    assert getattr(torch, name) is not None, name
assert callable(torch.nn.parallel.data_parallel)
"""
    out = subprocess.run([sys.executable, "-P", "-m", "ptcore.compat.torch", "-c", text], capture_output=True,
                         text=True)
    assert out.returncode == 0, out.stderr
