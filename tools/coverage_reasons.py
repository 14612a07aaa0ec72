"""What coverage_page.py is told: what is left out, why names are absent, how they differ, which tests prove them."""
HEAD = """# Coverage of PyTorch's names

Which of the names that PyTorch documents there are here, of the modules below: those with a docstring of their own,
and the dtypes and memory formats. `python tools/coverage_page.py` writes this page.

- **Same**: every phase of the name's entries in PyTorch's own op database passes (forward in all dtypes, method,
  operator, in place, `out=`, memory layouts, `meta`, first and second derivatives, errors), or a test that is named
  holds it against PyTorch.
- **Same, and more**: so is this, and it takes calls that PyTorch refuses, as is said.
- **Differs**: it is known how. Wrong phases of the op database are given with the number of samples that were wrong,
  of those tried. They count what a program can hardly see as well, such as the class of an error, or strides.
- **Not proven**: it is there, and no such test has been written.
- **Absent**: with the reason.

The names of `accelerator` and `cuda`, and `cuda`, `pin_memory` and `record_stream` of a tensor, are compared where
there is no accelerator: parameters, defaults, and what they say there. What they do on a device is tested on its own
(tests/cuda/device). Differences that are intended are explained in {doc}`/guide/differences`.
"""
# Special methods that are written by users, without the underscores.
OPERATORS = ("__reversed__",)

_SPARSE = "Sparse layouts have an issue of their own"
_QUANTIZED = "Quantised tensors"
_TRACED = "TorchScript, tracing and compilation"
_SMALL_NUMBERS = "Dtypes of quantisation and of fewer than 8 bits, and products with scales"
_INTERNAL = "Internals of PyTorch with a docstring"
_VENDORS = "Devices of other vendors, and layouts of oneDNN"
_REMOVED = "Legacy: PyTorch itself keeps them for old programs only"
# (pattern of dotted names, reason): no part of what the project sets out to have.
LEFT_OUT = (
    (r"(Tensor\.)?(sparse_\w+|hspmm|smm|sspaddmm|to_sparse\w*|coalesce|is_coalesced|dense_dim|values|indices|"
     r"c?col_indices|c?row_indices|crow_indices|\w*_indices_copy|values_copy|indices_copy|sparse_resize\w*)", _SPARSE),
    (r"Tensor\.(to_sparse\w*|sparse_\w+)", _SPARSE),
    (r"(Tensor\.)?(q_\w+|quantize\w*|dequantize|fake_quantize\w+|int_repr|qscheme|qu?int\d\w*)", _QUANTIZED),
    (r"bit|bits\w+|u?int[1-7]|float4_\w+|nn\.functional\.(ScalingType|SwizzleType|scaled_\w+)", _SMALL_NUMBERS),
    (r"compile|cond|while_loop", _TRACED),
    (r"(AVG|SUM|AggregationType|Script\w+|fork|wait|import_ir\w+|merge_type\w+|parse_\w+|unify_type_list)", _TRACED),
    (r"DispatchKey|Tag|init_num_threads|compiled_with_cxx11_abi|autograd\.(DeviceType|kineto_available)|"
     r"serialization\.(T|check_module_version_greater_or_equal|default_restore_location)|utils\.checkpoint\.GraphExecGroup|"
     r"legacy_contiguous_format|autograd\.enforce_grad_layout_policy", _INTERNAL),
    (r"Tensor\.(ipu|is_ipu|mtia|xpu|to_mkldnn)", _VENDORS),
    (r"autograd\.NestedIOFunction|cuda\.\w+Storage", _REMOVED),
    (r"cuda\.sparse\.\w+", _SPARSE),
    (r"cuda\.DeferredCudaCallError|cuda\.cudaStatus", _INTERNAL),
    (r"Tensor\.index", "First-class dimensions of functorch"),
    (r"Tensor\.to_padded_tensor", "Nested tensors"),
)
# (pattern, reason): wanted or thinkable, and not there.
ABSENT = (
    (r"vmap", "transformations have an issue of their own"),
    (r"nn\.functional\.grouped_mm", "not written yet: products of groups of rows, for experts"),
    (r"accelerator\.Graph", "`cuda.CUDAGraph` is there"),
    (r"cuda\.nccl\.\w+", "collectives have an issue of their own"),
    (r"cuda\.tunable\.\w+", "cuBLAS and cuBLASLt choose by their own heuristics"),
    (r"cuda\.gds\.\w+", "files are read through the host's memory"),
    (r"cuda\.(jiterator\.\w+)", "kernels from a text of C++"),
    (r"cuda\.(green_contexts\.)?GreenContext", "parts of a device"),
    (r"Tensor\.grad_dtype", "a gradient has the tensor's dtype"),
)
# name: what it takes beside.
MORE = {
    "promote_types": "`uint16`, `uint32` and `uint64` promote as in NumPy; PyTorch refuses them",
    "result_type": "`uint16`, `uint32` and `uint64` promote as in NumPy; PyTorch refuses them",
    "narrow_copy": "`out=` of any strides; PyTorch writes as if it were row-major",
}
# name: how. In place of what the op database says.
DIFFERS = {
    "cuda.graph": "annotations and the check of inputs are absent",
    "use_deterministic_algorithms": "reaches cuDNN alone: else only sums of floats at an index, on a device, differ",
    "set_deterministic_debug_mode": "reaches cuDNN alone: else only sums of floats at an index, on a device, differ",
    "set_warn_always": "changes nothing: warnings always go to `warnings`",
    "autograd.set_multithreading_enabled": "changes nothing: a backward runs on the caller's thread",
    "utils.checkpoint.create_selective_checkpoint_contexts": "a policy is asked about rows, and gets functions such as "
                                                             "`ptcore.mm`",
    "utils.checkpoint.set_checkpoint_debug_enabled": "changes nothing: errors say the same with and without it",
    "set_num_interop_threads": "changes nothing: ops run one after the other",
    "load": "runs no code of a file unless that was allowed by name: `serialization.allow_pickle`",
    "serialization.load": "runs no code of a file unless that was allowed by name: `serialization.allow_pickle`",
    "get_rng_state": "the state of Philox, of another length than that of PyTorch's generator",
    "random.get_rng_state": "the state of Philox, of another length than that of PyTorch's generator",
    **dict.fromkeys(("Tensor.inverse", "Tensor.orgqr"), "the result is row-major; PyTorch's is column-major"),
}
_SMALL, _OPTIONS = "tests/test_parity_small_names.py", "tests/serialization/test_parity_options.py"
_CUDA = "tests/cuda/test_parity_cuda_names.py"
_METHODS, _BACKENDS = "tests/ops/test_parity_small_methods.py", "tests/test_parity_backends.py"
# (pattern, test): what holds a name against PyTorch.
PROOFS = (
    (r"(random\.)?thread_safe_generator|from_file|to_dlpack|typename|is_storage|get_device_module|is_warn_always_enabled|get_deterministic_debug_mode|"
     r"is_deterministic_algorithms_warn_only_enabled|Tensor\.(dim_order|const_data_ptr|module_load|__reversed__)|"
     r"cpu\.(Stream|StreamContext|current_stream|get_capabilities|is_initialized|set_device|stream)|"
     r"accelerator\.device_index|Event|Stream|serialization\.register_package", _SMALL),
    (r"serialization\.(\w+_crc32_options|\w+_default_load_endianness|\w+_default_mmap_options|skip_data)", _OPTIONS),
    (r"utils\.checkpoint\.(checkpoint|checkpoint_sequential|set_checkpoint_early_stop|set_device_states|DefaultDeviceType|"
     r"CheckpointPolicy|SelectiveCheckpointContext)",
     "tests/utils/test_parity_checkpoint.py"),
    (r"rand|randperm|poisson|(random\.)?manual_seed|Tensor\.(bernoulli_?|random_|multinomial)|"
     r"nn\.functional\.(gumbel_softmax|dropout1d)", "tests/ops/random/test_parity_draws.py"),
    (r"Tensor\.fill_diagonal_|(Tensor\.)?hash_tensor|asarray|threshold_|nn\.functional\.threshold_?", _METHODS),
    (r"get_float32_matmul_precision", _BACKENDS),
    (r"lobpcg", "tests/ops/test_parity_rest.py"),
    (r"Sym\w+|sym_\w+", "tests/core/test_parity_symbolic.py"),
    (r"vmap", "tests/func/test_parity_func.py"),
    (r"float8_\w+|complex32|(Tensor\.)?chalf", "tests/ops/test_parity_stored.py"),
    (r"cuda\.(\w+\.)?\w+", _CUDA),
)
