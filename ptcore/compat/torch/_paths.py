"""The meaning of PyTorch's paths: ``TABLE`` of modules, ``NAMES`` of single names, ``ABSENT`` of missing parts.

A path outside of these tables is ptcore's own.
"""
from ptcore.compat.torch._absent_names import ABSENT

__all__ = ["ABSENT", "NAMES", "TABLE", "is_package"]

_HERE = "ptcore.compat.torch"

# Path below torch -> module.
TABLE = {
    # torch's own
    "torch_version": f"{_HERE}.torch_version",
    "version": f"{_HERE}.version",
    "functional": f"{_HERE}.functional",
    "__config__": f"{_HERE}._config",
    "__future__": "ptcore.__future__",
    # private modules that programs import, with the names they use
    "_C": f"{_HERE}._C",
    "_C._functorch": f"{_HERE}._C",
    "_C._nn": f"{_HERE}._C",
    "_C._profiler": "ptcore.autograd.profiler",
    "_guards": f"{_HERE}._guards",
    "_jit_internal": f"{_HERE}._jit_internal",
    "_custom_ops": "ptcore.library",
    "_library": "ptcore.library",
    "_library.custom_ops": "ptcore.library",
    "_library.infer_schema": "ptcore.library",
    "_lowrank": "ptcore._ops.functions",
    "_ops": f"{_HERE}._ops",
    "_prims_common": f"{_HERE}._prims_common",
    "_tensor": "ptcore._tensor",
    "_tensor_str": f"{_HERE}._tensor_str",
    "_utils": f"{_HERE}._utils",
    "_dynamo": f"{_HERE}._dynamo",
    "_dynamo.config": f"{_HERE}._dynamo_config",
    "_dynamo.decorators": f"{_HERE}._dynamo",
    "_dynamo.eval_frame": f"{_HERE}._dynamo",
    "_inductor.config": f"{_HERE}._inductor_config",
    "_functorch.apis": "ptcore.func",
    "_functorch.config": f"{_HERE}._functorch_config",
    "_functorch.functional_call": "ptcore.func",
    "_functorch.vmap": "ptcore.func",
    "compiler.config": f"{_HERE}._dynamo_config",
    # files of PyTorch's packages with other names here
    "accelerator.memory": "ptcore.accelerator",
    "autograd.anomaly_mode": "ptcore.autograd._anomaly",
    "autograd.gradcheck": "ptcore.autograd._gradcheck",
    "fx._symbolic_trace": "ptcore.fx._symbolic_trace",
    "jit._script": "ptcore.jit",
    "jit._trace": "ptcore.jit",
    "jit.annotations": f"{_HERE}._jit_annotations",
    "masked._ops": "ptcore.masked",
    "masked.maskedtensor": "ptcore.masked",
    "masked.maskedtensor.core": "ptcore.masked",
    "masked.maskedtensor.creation": "ptcore.masked",
    "multiprocessing.pool": "multiprocessing.pool",
    "nn.modules.channelshuffle": "ptcore.nn.modules.resampling",
    "nn.modules.fold": "ptcore.nn.modules.resampling",
    "nn.modules.instancenorm": "ptcore.nn.modules.batchnorm",
    "nn.modules.linear_cross_entropy": "ptcore.nn.modules.loss",
    "nn.modules.pixelshuffle": "ptcore.nn.modules.resampling",
    "nn.modules.sparse": "ptcore.nn.modules.embedding",
    "nn.modules.upsampling": "ptcore.nn.modules.resampling",
    "nn._reduction": f"{_HERE}._reduction",
    "nn.common_types": f"{_HERE}.common_types",
    **{f"nn.parallel.{name}": "ptcore.nn.parallel" for name in (
        "comm", "data_parallel", "distributed", "parallel_apply", "replicate", "scatter_gather")},
    "optim._multi_tensor": "ptcore.optim",
    "signal.windows.windows": "ptcore.signal.windows",
    "testing._comparison": "ptcore.testing",
    "testing._creation": "ptcore.testing",
    "utils._contextlib": f"{_HERE}._contextlib",
    "utils._foreach_utils": f"{_HERE}._foreach_utils",
    "utils._ordered_set": f"{_HERE}._ordered_set",
    "utils._python_dispatch": f"{_HERE}._python_dispatch",
    "utils._pytree": "ptcore.utils._pytree",
    **{f"utils.benchmark.utils.{name}": "ptcore.utils.benchmark" for name in ("common", "compare", "timer")},
    "utils.data._utils": "ptcore.utils.data._utils",
    "utils.data._utils.collate": "ptcore.utils.data._utils.collate",
    "utils.data._utils.fetch": f"{_HERE}._fetch",
    "utils.data._utils.worker": "ptcore.utils.data._worker",
    "utils.tensorboard.summary": "ptcore.utils._summaries",
    "utils.tensorboard.writer": "ptcore.utils.tensorboard",
}

# Names at the top of torch that ptcore has in other modules, or only for PyTorch's sake.
NAMES = {
    "ScriptModule": "ptcore.jit",
    "Tag": "ptcore.library.tag",
    "Future": "ptcore.futures",
    "DispatchKey": f"{_HERE}._C",
    "DisableTorchFunctionSubclass": f"{_HERE}._C",
    "DisableTorchFunction": f"{_HERE}._C",
    "TensorType": f"{_HERE}._C",
    "PyTorchFileReader": f"{_HERE}._C",
    "ScriptFunction": "ptcore.jit",
    **{f"{kind}Storage": "ptcore.storage" for kind in (
        "Untyped", "Typed", "BFloat16", "Bool", "Byte", "Char", "ComplexDouble", "ComplexFloat", "Double", "Float",
        "Half", "Int", "Long", "Short")},
    "Storage": "ptcore.storage",
    "classes": f"{_HERE}._names",
    "fork": f"{_HERE}._names",
    "wait": f"{_HERE}._names",
    "_assert": f"{_HERE}._names",
    "_check": f"{_HERE}._names",
    "_check_index": f"{_HERE}._names",
    "_check_is_size": f"{_HERE}._names",
    "_check_not_implemented": f"{_HERE}._names",
    "_check_tensor_all": f"{_HERE}._names",
    "_check_type": f"{_HERE}._names",
    "_check_value": f"{_HERE}._names",
    **dict.fromkeys((
        "sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc", "jagged", "qint8", "quint8",
        "qint32", "quint4x2", "quint2x4", "float4_e2m1fn_x2"), f"{_HERE}._names"),
    "per_tensor_affine": f"{_HERE}._names",
    "per_channel_affine": f"{_HERE}._names",
    "_softmax_backward_data": f"{_HERE}._names",
    "_shape_as_tensor": f"{_HERE}._names",
    "_segment_reduce": f"{_HERE}._names",
    "layout": f"{_HERE}._names",
}


def is_package(path):
    """Whether the tables have modules below a path."""
    if not _packages:
        _packages.update(p.rpartition(".")[0] for table in (TABLE, ABSENT) for p in table)
    return path in _packages


_packages = set()
