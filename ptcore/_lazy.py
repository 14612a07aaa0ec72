"""The lazy table: public names whose files are imported at the first use by a user.

This is the only place where a name of a lower layer leads to a file of a higher one, and no code of the package reads
names through this table. ``TABLE`` is a literal, which stubs and tests read as well. ``MOVED`` has the old paths that
pickles and files may name.
"""
import os
import sys
from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

# Namespace -> file, relative to the package -> names.
TABLE = {
    "ptcore": {
        "_errors": ("AcceleratorError", "OutOfMemoryError"),
        "_overrides": ("typename",),
        "_exchange.arrays": ("asarray",),
        "_ops.foreach": ("_foreach_abs", "_foreach_abs_", "_foreach_acos", "_foreach_acos_", "_foreach_add",
                         "_foreach_add_", "_foreach_addcdiv", "_foreach_addcdiv_", "_foreach_addcmul",
                         "_foreach_addcmul_", "_foreach_asin", "_foreach_asin_", "_foreach_atan", "_foreach_atan_",
                         "_foreach_ceil", "_foreach_ceil_", "_foreach_clamp_max", "_foreach_clamp_max_",
                         "_foreach_clamp_min", "_foreach_clamp_min_", "_foreach_clone", "_foreach_copy_",
                         "_foreach_cos", "_foreach_cos_", "_foreach_cosh", "_foreach_cosh_", "_foreach_div",
                         "_foreach_div_", "_foreach_erf", "_foreach_erf_", "_foreach_erfc", "_foreach_erfc_",
                         "_foreach_exp", "_foreach_exp_", "_foreach_expm1", "_foreach_expm1_", "_foreach_floor",
                         "_foreach_floor_", "_foreach_frac", "_foreach_frac_", "_foreach_lerp", "_foreach_lerp_",
                         "_foreach_lgamma", "_foreach_lgamma_", "_foreach_log", "_foreach_log10", "_foreach_log10_",
                         "_foreach_log1p", "_foreach_log1p_", "_foreach_log2", "_foreach_log2_", "_foreach_log_",
                         "_foreach_max", "_foreach_maximum", "_foreach_maximum_", "_foreach_minimum",
                         "_foreach_minimum_", "_foreach_mm", "_foreach_mul", "_foreach_mul_", "_foreach_neg",
                         "_foreach_neg_", "_foreach_norm", "_foreach_pow", "_foreach_pow_", "_foreach_powsum",
                         "_foreach_reciprocal", "_foreach_reciprocal_", "_foreach_round", "_foreach_round_",
                         "_foreach_rsqrt", "_foreach_rsqrt_", "_foreach_sigmoid", "_foreach_sigmoid_", "_foreach_sign",
                         "_foreach_sign_", "_foreach_sin", "_foreach_sin_", "_foreach_sinh", "_foreach_sinh_",
                         "_foreach_sqrt", "_foreach_sqrt_", "_foreach_sub", "_foreach_sub_", "_foreach_tan",
                         "_foreach_tan_", "_foreach_tanh", "_foreach_tanh_", "_foreach_trunc", "_foreach_trunc_",
                         "_foreach_zero_"),
        "amp.autocast_mode": ("autocast", "autocast_decrement_nesting", "autocast_increment_nesting",
                              "clear_autocast_cache",
                              "get_autocast_cpu_dtype", "get_autocast_dtype", "get_autocast_gpu_dtype",
                              "is_autocast_cache_enabled", "is_autocast_cpu_enabled", "is_autocast_enabled",
                              "set_autocast_cache_enabled", "set_autocast_cpu_dtype", "set_autocast_cpu_enabled",
                              "set_autocast_dtype", "set_autocast_enabled", "set_autocast_gpu_dtype"),
        "amp.grad_scaler": ("GradScaler",),
        "_exchange.dlpack": ("from_dlpack", "to_dlpack"),
        "_exchange.printing": ("set_printoptions",),
        "_ops.creation.functions": ("empty_permuted", "from_file", "logspace", "range", "scalar_tensor"),
        "_ops.creation.tensor_types": ("BFloat16Tensor", "BoolTensor", "ByteTensor", "CharTensor", "DoubleTensor",
                                       "FloatTensor", "HalfTensor", "IntTensor", "LongTensor", "ShortTensor"),
        "_ops.window.functions": ("bartlett_window", "blackman_window", "hamming_window", "hann_window",
                                  "kaiser_window"),
        "cuda.generic": ("Event", "Stream"),
        "_sizes.symbolic": ("SymBool", "SymFloat", "SymInt", "sym_float", "sym_int", "sym_ite", "sym_max", "sym_min",
                      "sym_not", "sym_sqrt", "sym_sum"),
        "autograd.batch": ("vmap",),
        "jit.compiled": ("compile",),
        "random": ("thread_safe_generator",),
        "serialization": ("load", "save"),
        "storage": ("BFloat16Storage", "BoolStorage", "ByteStorage", "CharStorage", "ComplexDoubleStorage",
                    "ComplexFloatStorage", "DoubleStorage", "FloatStorage", "HalfStorage", "IntStorage", "LongStorage",
                    "ShortStorage", "Storage", "TypedStorage", "UntypedStorage"),
        "utils.settings": ("are_deterministic_algorithms_enabled", "get_float32_matmul_precision",
                            "get_deterministic_debug_mode", "get_device_module", "get_num_interop_threads",
                            "is_deterministic_algorithms_warn_only_enabled", "is_storage", "is_warn_always_enabled",
                            "set_default_tensor_type", "set_deterministic_debug_mode",
                            "set_float32_matmul_precision", "set_flush_denormal", "set_num_interop_threads",
                            "set_warn_always", "use_deterministic_algorithms"),
    },
    "ptcore.Tensor": {
        "_exchange.copying": ("__copy__", "__deepcopy__", "__reduce_ex__"),
        "_exchange.arrow": ("__arrow_c_array__",),
        "_exchange.dlpack": ("__dlpack__", "__dlpack_device__"),
        "_exchange.printing": ("__repr__",),
        "_memory.host": ("is_pinned", "pin_memory", "record_stream"),
        "_ops.arithmetic.functions": ("apply_", "map2_", "map_"),
        "_ops.compare.functions": ("is_nonzero",),
        "_ops.creation.functions": ("new_empty_strided",),
        "_ops.math.functions": ("is_conj", "is_neg"),
        "_ops.random.functions": ("bernoulli",),
        "_ops.view.functions": ("__reversed__", "const_data_ptr", "dim_order", "module_load"),
        "array_api._methods": ("__array_namespace__", "to_device"),
        "storage": ("_typed_storage", "storage", "storage_type"),
    },
    "ptcore.UntypedStorage": {
        "storage": ("__deepcopy__", "__reduce__", "_as_type", "_byteswap", "_to", "byteswap", "from_buffer",
                    "from_file"),
    },
    "ptcore.autograd": {
        "autograd._anomaly": ("detect_anomaly", "set_detect_anomaly", "set_source_lines"),
        "autograd._gradcheck": ("gradcheck", "gradgradcheck"),
        "autograd.function": ("Function",),
        "autograd.profiler": ("ProfilerActivity", "kineto_available"),
        "autograd.profiler_util": ("DeviceType",),
        "autograd.grad_mode": ("set_multithreading_enabled",),
        "autograd.variable": ("Variable",),
    },
    "ptcore.cuda": {
        "cuda._cudart": ("CudaError", "check_error", "cudaStatus", "cudart", "current_blas_handle",
                         "current_solver_handle"),
        "cuda._properties": ("get_device_properties",),
        "cuda.tensor_types": ("BFloat16Tensor", "BoolTensor", "ByteTensor", "CharTensor", "DoubleTensor",
                              "FloatTensor", "HalfTensor", "IntTensor", "LongTensor", "ShortTensor"),
        "cuda.graphs": ("CUDAGraph", "graph", "graph_pool_handle", "is_current_stream_capturing"),
        "nn._cuda_graphs": ("make_graphed_callables",),
        "cuda.allocator.pools": ("CUDAPluggableAllocator", "MemPool", "change_current_allocator", "use_mem_pool"),
        "cuda.memory": ("caching_allocator_alloc", "caching_allocator_delete", "caching_allocator_disabled",
                        "caching_allocator_enable", "empty_cache", "get_allocator_backend",
                        "get_per_process_memory_fraction", "host_memory_stats", "host_memory_stats_as_nested_dict",
                        "max_memory_allocated", "max_memory_cached", "max_memory_reserved", "mem_get_info",
                        "memory_allocated", "memory_cached", "memory_reserved", "memory_snapshot", "memory_stats",
                        "memory_stats_as_nested_dict",
                        "memory_summary", "reset_accumulated_host_memory_stats", "reset_accumulated_memory_stats",
                        "reset_max_memory_allocated", "reset_max_memory_cached", "reset_peak_host_memory_stats",
                        "reset_peak_memory_stats", "set_per_process_memory_fraction"),
        "cuda.random": ("default_generators", "get_rng_state", "get_rng_state_all", "initial_seed", "manual_seed",
                        "manual_seed_all", "seed", "seed_all", "set_rng_state", "set_rng_state_all"),
        "cuda._monitor": ("clock_rate", "device_memory_used", "list_gpu_processes", "memory_usage", "power_draw",
                          "temperature", "utilization"),
        "cuda.streams": ("Event", "ExternalStream", "Stream", "StreamContext", "current_stream", "default_stream",
                         "get_stream_from_external", "set_stream", "stream"),
    },
    "ptcore.cuda.amp": {
        "amp._of_cuda": ("GradScaler", "amp_definitely_not_available", "autocast", "custom_bwd", "custom_fwd"),
    },
    "ptcore.cuda.graphs": {
        "nn._cuda_graphs": ("make_graphed_callables",),
    },
    "ptcore.cuda.memory": {
        "cuda._monitor": ("list_gpu_processes",),
    },
    "ptcore.cuda.amp.autocast_mode": {
        "amp._of_cuda": ("autocast", "custom_bwd", "custom_fwd"),
    },
    "ptcore.cuda.amp.common": {
        "amp._of_cuda": ("amp_definitely_not_available",),
    },
    "ptcore.cuda.amp.grad_scaler": {
        "amp._of_cuda": ("GradScaler",),
        "amp.grad_scaler": ("OptState",),
    },
    "ptcore.fft": {
        "_ops.fft.functions": ("fftfreq", "rfftfreq"),
    },
    "ptcore.utils": {
        "_swapping": ("swap_tensors",),
    },
    "ptcore.nn": {
        "nn.modules.linear_cross_entropy_options": ("LinearCrossEntropyOptions",),
        "nn.parallel": ("DataParallel",),
    },
    "ptcore.nn.Module": {
        "jit._module": ("compile",),
    },
    "ptcore.nn.functional": {
        "_ops.resample.functions": ("upsample", "upsample_bilinear", "upsample_nearest"),
    },
}
# Package -> its modules that are imported at their first use.
MODULES = {
    "ptcore": ("__future__", "accelerator", "amp", "array_api", "autograd", "backends", "compat", "compiler", "cpu",
               "cuda", "distributions", "examples", "fft", "func", "futures", "fx", "hub", "jit", "library", "linalg",
               "masked", "monitor", "multiprocessing", "nn", "ops", "optim", "overrides", "profiler", "quasirandom",
               "random", "return_types", "serialization", "signal", "special", "storage", "testing", "types", "utils",
               "version"),
    "ptcore.autograd": ("forward_ad", "function", "functional", "grad_mode", "graph", "profiler", "profiler_util",
                        "variable"),
    "ptcore.backends": ("cpu", "cuda", "cudnn", "cusparselt", "kleidiai", "mha", "miopen", "mkl", "mkldnn", "mps",
                        "nnpack", "openmp", "opt_einsum", "quantized", "xnnpack"),
    "ptcore.cpu": ("amp",),
    "ptcore.cuda": ("amp", "comm", "graphs", "memory", "nvtx", "profiler", "random", "streams"),
    "ptcore.cuda.amp": ("autocast_mode", "common", "grad_scaler"),
    "ptcore.nn": ("attention", "grad", "parallel", "utils"),
    "ptcore.nn.parallel": ("comm",),
    "ptcore.optim": ("swa_utils",),
    "ptcore.nn.utils": ("parametrizations", "parametrize", "prune", "stateless"),
    "ptcore.utils": ("_pytree", "benchmark", "checkpoint", "data", "deterministic", "dlpack", "hooks", "model_zoo",
                     "restart", "tensorboard"),
}
# Methods that are functions of the top level as well.
METHODS = ("arccos_", "arccosh_", "arcsin_", "arcsinh_", "arctan_", "arctanh_", "clip_", "detach_", "fill_", "fix_",
           "get_device", "is_conj", "is_inference", "is_neg", "is_same_size", "is_signed", "negative_", "resize_as_",
           "zero_")

# Old paths of modules, which pickles and files may name -> present paths.
MOVED = {
    "ptcore._expressions": "ptcore._sizes.expressions",
    "ptcore._pytree": "ptcore._trees.tree",
    "ptcore._symbolic": "ptcore._sizes.symbolic",
    "ptcore._ops._arguments": "ptcore._ops.checked",
    "ptcore._ops._batching": "ptcore._ops.batching",
    "ptcore._ops._methods": "ptcore._ops.methods",
    "ptcore._ops._record": "ptcore._ops.history",
    "ptcore._ops._decompositions": "ptcore._ops.decompositions",
    "ptcore._ops._results": "ptcore._ops.results",
    "ptcore._ops._select": "ptcore._ops.levels",
    "ptcore._ops._writing": "ptcore._ops.writing",
    "ptcore._ops.activation.functions": "ptcore.nn.functional",
    "ptcore._ops.attention.functions": "ptcore.nn.functional",
    "ptcore._ops.linalg.functions": "ptcore",
    "ptcore._ops.loss.functions": "ptcore.nn.functional",
    "ptcore._ops.loss.toplevel": "ptcore",
    "ptcore._ops.norm.functions": "ptcore",
    "ptcore._ops.normalize.functions": "ptcore.nn.functional",
    "ptcore._ops.normalize.toplevel": "ptcore",
    "ptcore._ops.padding.functions": "ptcore",
    "ptcore._ops.pooling.functions": "ptcore.nn.functional",
    "ptcore._ops.pooling.toplevel": "ptcore",
    "ptcore._ops.reduction.functions": "ptcore",
    "ptcore._ops.special.functions": "ptcore._ops.functions",
    "ptcore.autograd._accumulate": "ptcore.autograd.accumulate",
    "ptcore.autograd._helpers": "ptcore.autograd.helpers",
    "ptcore.autograd._backward": "ptcore.autograd.entry",
    "ptcore.autograd._batch": "ptcore.autograd.batch",
    "ptcore.autograd._dual": "ptcore.autograd.dual",
    "ptcore.autograd._engine": "ptcore.autograd.engine",
    "ptcore.autograd._levels": "ptcore.autograd.levels",
    "ptcore.autograd._ranges": "ptcore.autograd.ranges",
    "ptcore.autograd._recording": "ptcore.autograd.recording",
    "ptcore.autograd._tensor_methods": "ptcore.autograd.tensor_methods",
    "ptcore.cuda._graph": "ptcore.cuda.driver.graph",
    "ptcore.cuda._ipc": "ptcore.cuda.driver.ipc",
    "ptcore.cuda._libraries": "ptcore.cuda.driver.libraries",
    "ptcore.cuda._load": "ptcore.cuda.driver.loading",
    "ptcore.cuda._pools": "ptcore.cuda.allocator.pools",
    "ptcore.cuda._probe": "ptcore.cuda.driver.probe",
    "ptcore.cuda._runtime": "ptcore.cuda.driver.runtime",
    "ptcore.cuda._snapshot": "ptcore.cuda.allocator.snapshot",
    "ptcore.cuda._stats": "ptcore.cuda.allocator.stats",
    "ptcore.cuda.allocators": "ptcore.cuda.allocator.allocators",
    "ptcore.cuda.ipc": "ptcore.cuda.driver.ipc",
    "ptcore.cuda.libraries": "ptcore.cuda.driver.libraries",
    "ptcore.cuda.library_tables": "ptcore.cuda.driver.library_tables",
    "ptcore.cuda.loading": "ptcore.cuda.driver.loading",
    "ptcore.fx._blocks": "ptcore.fx.blocks",
    "ptcore.fx._verify": "ptcore.fx.verify",
    "ptcore.fx.experimental._sizes": "ptcore.fx.experimental.sizes",
    "ptcore.jit._capture": "ptcore.jit.capture",
    "ptcore.jit._compile": "ptcore.jit.compiled",
    "ptcore.jit._passes": "ptcore.jit.passes",
    "ptcore.library._tag": "ptcore.library.tag",
    "ptcore.multiprocessing._connection": "ptcore.multiprocessing.channels",
    "ptcore.multiprocessing._shared_memory": "ptcore._memory.segments",
    "ptcore.nn.modules._module_hooks": "ptcore.nn.modules.module_hooks",
    "ptcore.optim._scheduler": "ptcore.optim.scheduler",
    "ptcore.serialization._arrays": "ptcore.serialization.arrays",
    "ptcore.serialization._files": "ptcore.serialization.files",
    "ptcore.serialization._safetensors": "ptcore.serialization.safetensors_files",
    "ptcore.serialization._zip": "ptcore.serialization.zip_files",
    "ptcore.utils._settings": "ptcore.utils.settings",
}


class Moved:
    """Finds the modules of ``MOVED`` by their old paths, and modules in a package that has moved."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name not in MOVED and name.rpartition(".")[0] not in MOVED:
            return None
        return type(__spec__)(name, Moved)

    @staticmethod
    def create_module(spec):
        return None

    @staticmethod
    def exec_module(module):
        """Replaces the module made for an old path by the present one."""
        old = module.__name__
        package, _, last = old.rpartition(".")
        sys.modules[old] = import_module(MOVED.get(old) or f"{MOVED[package]}.{last}")


sys.meta_path.insert(0, Moved)


def names(package, methods=()) -> "tuple[Callable[[str], Any], Callable[[], list[str]]]":
    """``__getattr__`` and ``__dir__`` of a module that has names in the table."""
    table, modules = TABLE.get(package, {}), MODULES.get(package, ())

    def __getattr__(name):
        if name in modules:
            return import_module(f"{package}.{name}")
        if name in methods:
            from ptcore._tensor import Tensor
            found = getattr(Tensor, name)
        else:
            file = next((file for file, its in table.items() if name in its), None)
            if file is None:
                raise AttributeError(f"module {package!r} has no attribute {name!r}")
            found = getattr(import_module(f"ptcore.{file}"), name)
        setattr(sys.modules[package], name, found)
        return found

    def __dir__():
        return sorted({*vars(sys.modules[package]), *modules, *methods, *[n for its in table.values() for n in its]})

    return __getattr__, __dir__


def namespace(name):
    """A module of the package by its name, for files that name classes of any room."""
    return import_module(f"ptcore.{name}")


class Later:
    """A method of a class whose file is imported at its first use; the function then replaces this object."""

    def __init__(self, owner, name, file):
        self._place = owner, name, file
        setattr(owner, name, self)

    def __get__(self, instance, owner):
        cls, name, file = self._place
        function = getattr(import_module(f"ptcore.{file}"), name)
        setattr(cls, name, function)
        return function.__get__(instance, owner)


def attach(owner, name="ptcore.Tensor"):
    """Gives a class the methods of the table."""
    for file, its in TABLE[name].items():
        for name in its:
            Later(owner, name, file)


def _before_fork():
    from ptcore._forking import before_fork
    before_fork()


def _in_child():
    from ptcore._forking import forget_unfinished
    forget_unfinished()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_child=_in_child)
