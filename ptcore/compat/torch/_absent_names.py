"""The names of PyTorch that ptcore lacks, by module; `_absent` makes modules of them.

They are in ``absent.tsv``, which `tools/absent_names.py` writes: a line for each module, indented below its package and
followed by its names. A package that ptcore has, listed for the names it lacks, ends in ``/``. A class whose name has
no capital ends in ``=``.
"""
import os

# Part of PyTorch -> the explanation in its error. The first prefix of a path counts, so longer ones come first.
WHY = {
    "distributed": "ptcore has no distributed training",
    "onnx": "ptcore writes no ONNX files",
    "export": "ptcore has no exported programs",
    "_export": "ptcore has no exported programs",
    "sparse": "ptcore has no sparse tensors",
    "ao": "ptcore has no quantized layers",
    "quantization": "ptcore has no quantized layers",
    "nn.quantized": "ptcore has no quantized layers",
    "nn.quantizable": "ptcore has no quantized layers",
    "nn.intrinsic": "ptcore has no quantized layers",
    "nn.qat": "ptcore has no quantized layers",
    "jit.quantized": "ptcore has no quantized layers",
    "xpu": "ptcore has no backend for Intel GPUs",
    "mps": "ptcore has no backend for Apple's Metal",
    "mtia": "ptcore has no backend for MTIA",
    "nested": "ptcore has no nested tensors",
    "nn.attention.varlen": "ptcore has no attention over packed sequences",
    "utils.hipify": "PyTorch's C++ extensions do not fit ptcore; its guide says how kernels are added",
    "utils.data.datapipes": "ptcore has no data pipes; datasets and samplers are in utils.data",
    "utils.data.graph": "ptcore has no data pipes; datasets and samplers are in utils.data",
    "utils": "ptcore has no such tool",
    "optim": "ptcore has not this part of PyTorch's optimisers",
    "autograd.profiler_legacy": "ptcore has not this part of PyTorch's profiler",
    "autograd": "ptcore has not this part of PyTorch's automatic differentiation",
    "nn": "ptcore has not this part of PyTorch's layers",
    "_inductor": "ptcore compiles without Inductor",
    "_dynamo": "ptcore captures programs without Dynamo",
    "cuda": "ptcore has not this part of PyTorch's CUDA interface",
    "fx": "ptcore has not this part of PyTorch's graphs",
    "jit": "ptcore has not this part of PyTorch's scripts",
    "numa": "ptcore binds no processes to nodes",
    "nativert": "ptcore has no exported programs",
    "masked": "ptcore has not this part of PyTorch's masked tensors",
    "profiler": "ptcore has not this part of PyTorch's profiler",
    "contrib": "ptcore has not this part of PyTorch",
    "backends": "ptcore has no such backend",
    "accelerator": "ptcore has not this part of PyTorch's interface to devices",
    "multiprocessing": "ptcore has not this part of PyTorch's processes",
    "func": "ptcore has not this part of PyTorch's transformations",
    "compiler": "ptcore compiles without Inductor",
    "package": "ptcore has no packages of code and weights; save state dicts, and install the code",
    "testing._internal": "PyTorch's own test tools are not part of ptcore",
    "": "this is a private part of PyTorch, which ptcore has not",
}
# Questions about the machine and the process, answered by False. ``is_available`` is such a question in every module.
FALSE = {f"torch.{name}" for name in (
    "distributed.is_initialized", "distributed.is_torchelastic_launched", "distributed.is_nccl_available",
    "distributed.is_gloo_available", "distributed.is_mpi_available", "distributed.is_ucc_available",
    "distributed.is_xccl_available", "distributed.is_backend_available",
    "distributed.distributed_c10d.is_initialized", "distributed.distributed_c10d.is_nccl_available",
    "distributed.distributed_c10d.is_gloo_available", "distributed.distributed_c10d.is_mpi_available",
    "onnx.is_in_onnx_export", "xpu.is_initialized", "xpu.is_bf16_supported", "mtia.is_initialized",
    "mtia.is_bf16_supported", "_subclasses.fake_tensor.is_fake",
    "_dynamo.external_utils.is_compiling", "_dynamo.utils.is_compile_supported")}
# Numbers of devices.
ZERO = {"torch.xpu.device_count", "torch.mps.device_count", "torch.mtia.device_count"}
NONE = {"torch.testing._internal.common_cuda.TEST_CUDA"}
# Decorators without a meaning here.
MARKERS = {f"torch.{name}" for name in (
    "distributed.elastic.multiprocessing.errors.record", "distributed.rpc.functions.async_execution",
    "distributed.rpc.api._require_initialized",
    "export.register_dataclass", "onnx.symbolic_helper.parse_args", "onnx.register_custom_op_symbolic",
    "_compile._disable_dynamo", "_decomp.register_decomposition", "_inductor.lowering.register_lowering",
    "fx._compatibility.compatibility",
    "utils.data.datapipes._decorator.functional_datapipe", "utils.data.datapipes._decorator.non_deterministic",
    "utils.data.datapipes._decorator.argument_validation", "utils.data.datapipes._decorator.runtime_validation",
    "utils.flop_counter.register_flop_formula",
    "onnx.utils.register_custom_op_symbolic", "testing._internal.common_utils.instantiate_parametrized_tests")}
# Base classes of which programs use nothing.
BASES = {"torch.distributed.checkpoint.stateful.Stateful", "torch.distributed.algorithms.join.Joinable",
         "torch.distributed.algorithms.Joinable"}
# Class -> methods that programs call on the class itself.
METHODS = {"FullyShardedDataParallel": "fsdp_modules full_optim_state_dict optim_state_dict optim_state_dict_to_load "
                                       "state_dict_type summon_full_params",
           "DTensor": "from_local", "Shard": "local_shard_size_and_offset", "DeviceMesh": "from_group"}


class _Table:
    """Path below torch -> the names of that module, in one string. The file is read at the first look-up."""

    def __init__(self):
        self._read = None

    def _table(self):
        if self._read is None:
            self._read, above = {}, []
            with open(os.path.join(os.path.dirname(__file__), "absent.tsv"), encoding="utf-8") as f:
                lines = f.read().splitlines()
            for line in lines:
                word, _, names = line.lstrip(" ").partition(" ")
                del above[line.index(word):]
                above.append(word.rstrip("/"))
                if not word.endswith("/"):
                    self._read[".".join(above)] = names
        return self._read

    def __getitem__(self, path):
        return self._table()[path]

    def get(self, path, default=None):
        return self._table().get(path, default)

    def __iter__(self):
        return iter(self._table())

    def __len__(self):
        return len(self._table())

    def __contains__(self, path):
        return path in self._table()


ABSENT = _Table()
