"""Calls of the group ``table`` that neither torch's op database nor the rows' tests have, and names that are no ops."""
import numpy as np

from .calls import Call, Data, Named


def T(*shape, low=-1.0, high=1.0, grad=True):
    """Numbers of float32."""
    return Data(np.random.default_rng(len(shape)).uniform(low, high, shape).astype(np.float32), grad)


def I(*values):  # noqa: E743
    """Integers."""
    return Data(np.array(values))


def positive(*shape, grad=True):
    return T(*shape, low=0.1, high=0.9, grad=grad)


X = T(3, 5)
Z = Data((X.array + 1j * X.array[::-1]).astype(np.complex64), True)
FACTOR = Data((np.tril(np.ones((3, 3))) + np.eye(3)).astype(np.float32), True)
CELL = (T(2, 4), T(2, 3), T(3, 4), T(3, 3), T(3), T(3))
GATES = (T(2, 4), T(2, 3), T(9, 4), T(9, 3), T(9), T(9))
WRITTEN = T(3, 5, grad=False)
IMAGES, VOLUMES = T(2, 3, 8, 8), T(2, 3, 6, 6, 6)
FLOAT32 = Named("float32")

OWN = {
    # random: not in the op database by this name
    "poisson": [positive(3, 5)], "rrelu": [X], "nn.functional.gumbel_softmax": [X],
    "dropout": [X, 0.5, True], "feature_dropout": [IMAGES, 0.5, True], "alpha_dropout": [X, 0.5, True],
    "feature_alpha_dropout": [IMAGES, 0.5, True], "nn.functional.dropout1d": [T(2, 3, 4)],
    "nn.functional.alpha_dropout": [X, 0.5, True], "nn.functional.feature_alpha_dropout": [IMAGES, 0.5, True],
    "nn.functional.dropout2d": [IMAGES], "nn.functional.dropout3d": [VOLUMES], "nn.functional.dropout": [X],
    "binomial": [Data(np.full((3, 5), 7, np.float32)), positive(3, 5, grad=False)],
    "rand": [3, 5], "randperm": [5], "randn": [3, 5],
    "nn.functional.fractional_max_pool2d_with_indices": ([IMAGES, 2], {"output_size": (3, 3)}),
    "nn.functional.fractional_max_pool3d_with_indices": ([VOLUMES, 2], {"output_size": (3, 3, 3)}),
    **{f"Tensor.{name}": [WRITTEN] for name in (
        "bernoulli_", "cauchy_", "exponential_", "log_normal_", "normal_", "random_", "uniform_")},
    "Tensor.geometric_": [WRITTEN, 0.5], "Tensor.bernoulli": [positive(3, 5)],
    "polygamma": [2, positive(3, 5)],           # the op database calls it by a function of its own
    # factors
    "svd_lowrank": ([T(7, 5)], {"q": 3}), "pca_lowrank": ([T(7, 5)], {"q": 3}),
    "cholesky_inverse": [FACTOR], "cholesky_solve": [T(3, 2), FACTOR],
    # creation
    "tensor": [[1.0, 2.0, 3.0]], "as_tensor": [[1.0, 2.0, 3.0]], "asarray": [[1.0, 2.0, 3.0]], "range": [0, 5],
    "from_numpy": [np.ones((3, 5), np.float32)], "frombuffer": ([bytearray(64)], {"dtype": FLOAT32}),
    "from_dlpack": [X],
    **{f"{name}_window": [8] for name in ("bartlett", "blackman", "hamming", "hann", "kaiser")},
    "fft.fftfreq": [8], "fft.rfftfreq": [8],
    "Tensor.new": [X, 3, 5], "Tensor.new_tensor": [X, [1.0, 2.0]], "empty_permuted": [(3, 5), (1, 0)],
    # layers by their functions of torch
    "batch_norm": [IMAGES, T(3), T(3), T(3, grad=False), positive(3, grad=False), True, 0.1, 1e-5, False],
    "instance_norm": [IMAGES, T(3), T(3), None, None, True, 0.1, 1e-5, False],
    "gru_cell": [*GATES], "rnn_relu_cell": [*CELL], "rnn_tanh_cell": [*CELL],
    "lstm_cell": [T(2, 4), (T(2, 3), T(2, 3)), T(12, 4), T(12, 3), T(12), T(12)],
    "max_pool1d_with_indices": [T(2, 3, 8), 2], "nn.functional.max_pool1d_with_indices": [T(2, 3, 8), 2],
    "nn.functional.max_pool2d_with_indices": [IMAGES, 2], "nn.functional.max_pool3d_with_indices": [VOLUMES, 2],
    "nn.functional.adaptive_max_pool1d_with_indices": [T(2, 3, 8), 2],
    "nn.functional.adaptive_max_pool2d_with_indices": [IMAGES, 2],
    "nn.functional.adaptive_max_pool3d_with_indices": [VOLUMES, 2],
    "nn.functional.upsample": ([IMAGES], {"scale_factor": 2}),
    "norm_except_dim": [X, 2, 0], "segment_reduce": ([T(6), "sum"], {"lengths": I(2, 3, 1)}),
    "lobpcg": [Data((np.eye(9) * np.arange(1, 10) + 0.1).astype(np.float32)), 2],
    # written in place, without a form that is not
    "Tensor.fill_": [WRITTEN, 1.5], "fill_": [WRITTEN, 1.5], "Tensor.copy_": [WRITTEN, T(3, 5, grad=False)],
    "Tensor.fill_diagonal_": [WRITTEN, 1.5], "Tensor.zero_": [WRITTEN], "zero_": [WRITTEN],
    "Tensor.apply_": [WRITTEN, abs], "Tensor.map_": [WRITTEN, T(3, 5, grad=False), max],
    "Tensor.map2_": [WRITTEN, T(3, 5, grad=False), T(3, 5, grad=False), max],
    "Tensor.set_": [WRITTEN, T(3, 5, grad=False)], "Tensor.detach_": [WRITTEN], "detach_": [WRITTEN],
    "Tensor.__setitem__": [WRITTEN, 1, 2.5], "Tensor.requires_grad_": [WRITTEN, False],
    # views and copies, where the first sample of the op database asks for nothing
    "real": [Z], "conj": [Z], "conj_physical": [Z], "resolve_conj": [Z], "imag": [Z], "atleast_1d": [T()],
    "atleast_2d": [T(5)], "atleast_3d": [X], "cartesian_prod": [T(3), T(4)], "matrix_power": [T(3, 3), 3],
    "Tensor.contiguous": [Data(X.array.T, True)], "chain_matmul": [X, T(5, 4), T(4, 3)],
    "Tensor.detach": [X], "detach": [X], "Tensor.as_strided": [X, (2, 2), (1, 2)], "Tensor.type": [X, FLOAT32],
    "Tensor.type_as": [X, Data(np.ones(2))], "Tensor.to_dense": [X], "Tensor.mT": [X], "Tensor.T": [X],
    **{f"Tensor.{name}": [X] for name in ("double", "half", "int", "long", "short", "bool", "cpu", "numpy", "tolist")},
    "Tensor.numpy": [WRITTEN],
    # what a tensor says of itself
    **{f"Tensor.{name}": [WRITTEN] for name in (
        "data_ptr", "dim", "element_size", "is_contiguous", "is_pinned", "is_shared", "ndimension", "nelement", "size",
        "storage_offset", "stride", "untyped_storage", "storage_type", "get_device", "is_signed", "__len__")},
    **{name: [WRITTEN] for name in (
        "get_device", "is_complex", "is_conj", "is_floating_point", "is_inference", "is_neg", "is_signed", "is_tensor",
        "numel")},
    "is_nonzero": [T(grad=False)], "Tensor.is_set_to": [WRITTEN, WRITTEN], "is_same_size": [X, X],
    "Tensor.__bool__": [T(grad=False)], "Tensor.__float__": [T(grad=False)], "Tensor.__int__": [T(grad=False)],
    "result_type": [X, I(1, 2)], "can_cast": [FLOAT32, Named("int64")], "promote_types": [FLOAT32, Named("int64")],
}


def own(path):
    """The call of a path as a list; none where there are no arguments for it."""
    if path not in OWN:
        return []
    args, kwargs = OWN[path] if isinstance(OWN[path], tuple) else (OWN[path], {})
    return [Call(path, args, kwargs)]


# Public names that compute nothing: settings, files, the tape.
NO_OPS = frozenset("""
are_deterministic_algorithms_enabled compile get_default_device get_default_dtype
get_float32_matmul_precision
get_num_interop_threads get_num_threads get_rng_state initial_seed is_deterministic_algorithms_warn_only_enabled
is_grad_enabled is_inference_mode_enabled load manual_seed save seed set_default_device set_default_dtype
set_default_tensor_type set_float32_matmul_precision set_flush_denormal set_num_interop_threads set_num_threads
sym_float sym_int sym_ite sym_max sym_min sym_not sym_sqrt sym_sum
set_printoptions set_rng_state use_deterministic_algorithms
autocast autocast_decrement_nesting autocast_increment_nesting clear_autocast_cache get_autocast_cpu_dtype
get_autocast_dtype get_autocast_gpu_dtype is_autocast_cache_enabled is_autocast_cpu_enabled is_autocast_enabled
set_autocast_cache_enabled set_autocast_cpu_dtype set_autocast_cpu_enabled
set_autocast_dtype set_autocast_enabled set_autocast_gpu_dtype
from_file get_deterministic_debug_mode get_device_module is_storage is_warn_always_enabled set_deterministic_debug_mode
set_warn_always thread_safe_generator to_dlpack typename Tensor.const_data_ptr Tensor.dim_order Tensor.module_load
Tensor.backward Tensor.register_hook Tensor.register_post_accumulate_grad_hook Tensor.retain_grad Tensor.record_stream
Tensor.pin_memory Tensor.share_memory_ Tensor.as_subclass vmap
""".split())
# No two libraries, or two calls, give the same memory, vectors or positions of equals: shapes and dtypes are compared.
VALUES_DIFFER = frozenset("""
empty empty_like empty_permuted empty_strided Tensor.new Tensor.new_empty Tensor.new_empty_strided Tensor.resize_
resize_as_
Tensor.data_ptr Tensor.untyped_storage Tensor.storage_type
mode
svd linalg.svd linalg.eigh linalg.eig svd_lowrank pca_lowrank lobpcg geqrf
""".split())
# torch's gradient is another: that by what log_softmax is given, that of both triangles, one that no difference has
# (tests/ops/test_parity_ops.py).
GRADIENTS_DIFFER = ("nn.functional.ctc_loss", "cholesky_inverse", "cholesky_solve", "as_strided_scatter")
# Elementwise ops that are neither rows of that kind nor ufuncs of the op database.
ELEMENTWISE = ("clamp", "complex", "polar", "rrelu", "nn.functional.rrelu", "dropout", "nn.functional.dropout",
               "nn.functional.alpha_dropout", "poisson", "bernoulli", "polygamma")
# Ops that reduce and are no rows of the family reduction; what they are given besides the tensor.
REDUCING = {"max": [], "min": [], "prod": [], "var": [], "std": [], "var_mean": [], "std_mean": [], "aminmax": [],
            "median": [], "nanmedian": [], "mode": [], "kthvalue": [3], "quantile": [0.3], "nanquantile": [0.3],
            "norm": [], "linalg.vector_norm": [], "linalg.norm": [], "nansum": [], "nanmean": [], "sum": [], "mean": [],
            "amax": [], "amin": [], "argmax": [], "argmin": [], "any": [], "all": [], "count_nonzero": [],
            "logsumexp": []}
