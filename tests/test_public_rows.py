"""Every public callable of ptcore, of Tensor and of nn.functional is a row of the op table, or stands here with the
reason why it is none."""
import types

import pytest
from _names_seen import NamesSeen

import ptcore as pt
from ptcore._ops.call.offer import Overridable
from ptcore.fx.experimental.proxy_tensor import make_fx

pytestmark = pytest.mark.core

OpFunction = type(pt.add)
SPACES = {"ptcore": pt, "nn.functional": pt.nn.functional, "Tensor": pt.Tensor}

NO_ROWS = {
    "It makes tensors of what is none, or draws them.": {
        "ptcore": """arange as_tensor asarray bartlett_window bernoulli blackman_window empty empty_like empty_permuted
            empty_strided eye from_dlpack from_file from_numpy frombuffer full full_like hamming_window hann_window
            kaiser_window linspace logspace normal ones ones_like rand rand_like randint randint_like randn randn_like
            randperm range scalar_tensor tensor zeros zeros_like""",
        "Tensor": """bernoulli new new_empty new_empty_strided new_full new_ones new_tensor new_zeros""",
    },
    "It asks for a fact and gives a Python object.": {
        "ptcore": """broadcast_shapes can_cast get_device is_complex is_conj is_floating_point is_inference is_neg
            is_nonzero is_same_size is_signed is_storage is_tensor numel promote_types result_type typename""",
        "Tensor": """const_data_ptr data_ptr dim dim_order element_size get_device is_complex is_conj is_contiguous
            is_floating_point is_inference is_neg is_nonzero is_pinned is_same_size is_set_to is_shared is_signed item
            ndimension nelement numel numpy size storage
            storage_offset storage_type stride to_numpy tobytes tolist untyped_storage""",
    },
    "It changes the tensor's own memory, sizes or history, which no graph holds.": {
        "ptcore": "detach_ resize_as_",
        "Tensor": """backward detach_ module_load record_stream register_hook register_post_accumulate_grad_hook
            requires_grad_ resize_ resize_as_ retain_grad set_ share_memory_""",
    },
    "It writes to all of the tensor: the ground fills and draws, below all ops.": {
        "ptcore": "fill_ zero_",
        "Tensor": """bernoulli_ cauchy_ copy_ exponential_ fill_ geometric_ log_normal_ normal_ random_ uniform_
            zero_""",
    },
    "Its arguments say which row is called (to_dtype, to_device, clone, row_major), or it gives the tensor itself.": {
        "Tensor": """astype as_subclass bfloat16 bool byte cdouble cfloat chalf char contiguous cpu cuda double float
            half int long pin_memory short to to_device type""",
    },
    "It gives the tensor itself or an alias without history, which no graph holds (an interpreter is asked for it).": {
        "ptcore": "detach",
        "Tensor": "detach",
    },
    "It warns and calls ``interpolate``, which modes see, as in PyTorch.": {
        "nn.functional": "upsample upsample_bilinear upsample_nearest",
    },
    "It calls a function of Python.": {"ptcore": "compile vmap", "Tensor": "apply_ map2_ map_"},
    "It reads or sets what is the thread's, the process's or a file's.": {
        "ptcore": """are_deterministic_algorithms_enabled autocast_decrement_nesting autocast_increment_nesting
            clear_autocast_cache get_autocast_cpu_dtype get_autocast_dtype get_autocast_gpu_dtype get_default_device
            get_default_dtype get_deterministic_debug_mode get_device_module get_float32_matmul_precision get_include
            get_num_interop_threads get_num_threads get_rng_state initial_seed is_autocast_cache_enabled
            is_autocast_cpu_enabled is_autocast_enabled is_deterministic_algorithms_warn_only_enabled is_grad_enabled
            is_inference_mode_enabled is_warn_always_enabled load manual_seed save seed set_autocast_cache_enabled
            set_autocast_cpu_dtype set_autocast_cpu_enabled set_autocast_dtype set_autocast_enabled
            set_autocast_gpu_dtype set_default_device set_default_dtype set_default_tensor_type
            set_deterministic_debug_mode set_float32_matmul_precision set_flush_denormal set_num_interop_threads
            set_num_threads set_printoptions set_rng_state set_warn_always show_config thread_safe_generator
            use_deterministic_algorithms""",
    },
    "It is about symbolic sizes, or hands a tensor's memory to others.": {
        "ptcore": "sym_float sym_int sym_ite sym_max sym_min sym_not sym_sqrt sym_sum to_dlpack",
    },
}


def callables(space):
    """Public names of what is called, classes and modules apart."""
    for name in dir(space):
        f = None if name.startswith("_") else getattr(space, name, None)
        if callable(f) and not isinstance(f, (type, types.ModuleType)):
            yield name, f


def named(space):
    return [name for reason in NO_ROWS.values() for name in reason.get(space, "").split()]


@pytest.mark.parametrize("space", SPACES)
def test_a_row_or_a_reason(space):
    found = {name for name, f in callables(SPACES[space]) if type(f) is not OpFunction}
    assert len(named(space)) == len(set(named(space))), "a name has two reasons"
    assert found - set(named(space)) == set(), "neither a row nor in the table"
    assert set(named(space)) - found == set(), "a row, or not there"


def test_most_are_rows():
    rows = {space: sum(type(f) is OpFunction for _, f in callables(at)) for space, at in SPACES.items()}
    assert rows["ptcore"] > 500 and rows["nn.functional"] > 120 and rows["Tensor"] > 400, rows


# Casts and moves: the call, and the rows that it calls.
CASTS = {
    **{name: (lambda x, name=name: getattr(x, name)(), ["to_dtype"]) for name in (
        "bfloat16 bool byte cdouble cfloat chalf char double half int long short").split()},
    "float": (lambda x: x.double().float(), ["to_dtype", "to_dtype"]),
    "astype": (lambda x: x.astype("int32"), ["to_dtype"]), "type": (lambda x: x.type(pt.float64), ["to_dtype"]),
    "to": (lambda x: x.to(pt.float64), ["to_dtype"]), "copy": (lambda x: x.to(pt.float32, copy=True), ["clone"]),
    "move": (lambda x: x.to("meta"), ["to_device"]), "to_device": (lambda x: x.to_device("meta"), ["to_device"]),
    "contiguous": (lambda x: x.t().contiguous(), ["t", "row_major"]), "itself": (lambda x: x.to(pt.float32), []),
}


@pytest.mark.parametrize("name", CASTS)
def test_casts_and_moves_are_seen_as_rows(name):
    """By a graph and by a batch; a mode sees the function."""
    cast, rows = CASTS[name]
    x = pt.arange(6.0).reshape(2, 3)
    graph = make_fx(cast)(x).graph
    assert [n.target.__name__ for n in graph.nodes if n.op == "call_function"] == rows
    stack = pt.stack([x, x + 1])
    found = pt.vmap(cast)(stack)
    assert (found.dtype, found.shape[1:], found.device) == (cast(x).dtype, cast(x).shape, cast(x).device)
    if found.device.type == "cpu":
        assert found[1].tolist() == cast(x + 1).tolist()
    with NamesSeen() as mode:
        cast(x)
    assert {name, "to"} & set(mode.names)


def test_what_is_no_row_and_takes_tensors_is_offered():
    """All of it that ``__torch_function__`` may be asked about: see tests/core/test_overrides.py."""
    kinds = {name: type(f) for name, f in callables(pt.Tensor)}
    assert {name for name in named("Tensor") if kinds[name] is Overridable} >= {
        "copy_", "resize_as_", "float", "is_conj"}
