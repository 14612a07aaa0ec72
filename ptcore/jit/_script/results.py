"""Static types of the results of ptcore's functions and methods: Tensor, unless this file or a row says otherwise."""
import functools
import inspect

import ptcore
from ptcore._ops import row
from ptcore._ops.table.ids import op_name
from ptcore.fx.node import OpFunction
from ptcore.jit._script.types import (
    BOOL,
    DEVICE,
    DTYPE,
    FLOAT,
    INT,
    NONE,
    NUMBER,
    STR,
    TENSOR,
    List,
    Optional,
    Tuple,
    Type,
)

__all__ = ["of_call"]

_TENSORS = List(TENSOR)
_PAIR, _TRIPLE = Tuple((TENSOR,) * 2), Tuple((TENSOR,) * 3)
_KNOWN = {
    BOOL: "allclose equal is_tensor is_floating_point is_complex is_nonzero is_contiguous is_same_size is_signed "
          "is_conj is_neg is_pinned is_shared is_set_to is_grad_enabled is_inference is_inference_mode_enabled "
          "is_storage are_deterministic_algorithms_enabled can_cast",
    INT: "dim ndimension numel nelement element_size get_device storage_offset data_ptr initial_seed seed "
         "get_num_threads const_data_ptr",
    List(INT): "dim_order",
    NONE: "backward record_stream manual_seed retain_grad set_num_threads set_grad_enabled set_default_dtype "
          "set_rng_state",
    DTYPE: "get_default_dtype promote_types result_type",
    DEVICE: "get_default_device",
    _TENSORS: "split chunk unbind tensor_split hsplit vsplit dsplit split_with_sizes unsafe_split unsafe_chunk "
              "meshgrid broadcast_tensors block_diag_parts unflatten_dense_tensors gradient align_tensors",
    _PAIR: "adaptive_max_pool1d_with_indices adaptive_max_pool2d_with_indices adaptive_max_pool3d_with_indices "
           "max_pool1d_with_indices max_pool2d_with_indices max_pool3d_with_indices lstm_cell lobpcg",
    _TRIPLE: "svd_lowrank pca_lowrank",
}
_TYPES = {name: t for t, names in _KNOWN.items() for name in names.split()}
# Functions that give values and indices if one argument is a dim.
_ALONG = ("max", "min", "median", "nanmedian")


@functools.cache
def _named(name):
    """The type of a result with named fields, if there is one."""
    cls = getattr(ptcore.return_types, name, None)
    return None if cls is None else Type("NamedTuple", (TENSOR,) * len(cls.__match_args__), cls)


def of_call(f, name, args, kwargs):
    """The type of a call's result, found by the types of its arguments."""
    own = row(op_name(f.op)) if type(f) is OpFunction else None
    if own is not None and own.kind == "custom":
        found = [_of_schema(r.type) for r in own.definition.schema.returns]
        return found[0] if len(found) == 1 else Tuple(found) if found else NONE
    name = name.rstrip("_") if name.endswith("_") and not name.startswith("__") else name
    if name in _ALONG:
        second = args[1] if len(args) > 1 else kwargs.get("dim", kwargs.get("axis"))
        along = second is not None and second.type == INT and "other" not in kwargs
        return _named(name) if along else TENSOR
    if name == "where" and len(args) + len(kwargs) == 1:
        return _TENSORS
    if name == "nonzero" and _is_set(f, "as_tuple", args, kwargs):
        return _TENSORS
    if name in ("unique", "unique_consecutive"):
        extra = [key for key in ("return_inverse", "return_counts") if _is_set(f, key, args, kwargs)]
        return Tuple((TENSOR,) * (1 + len(extra))) if extra else TENSOR
    if name in ("max_pool1d", "max_pool2d", "max_pool3d", "adaptive_max_pool1d", "adaptive_max_pool2d",
                "adaptive_max_pool3d") and _is_set(f, "return_indices", args, kwargs):
        return _PAIR
    if name in ("atleast_1d", "atleast_2d", "atleast_3d"):
        return TENSOR if len(args) == 1 and args[0].type == TENSOR else _TENSORS
    if name == "item":
        return NUMBER
    if name == "type" and len(args) == 1 and not kwargs:
        return STR
    of_linalg = getattr(ptcore.linalg, name, None) is f
    known = _named(f"linalg_{name}" if of_linalg else name)
    if known is None and type(f) is OpFunction:
        known = _by_text(row(op_name(f.op)).returns)
    return _TYPES.get(name, TENSOR) if known is None else known


def _is_set(f, name, args, kwargs):
    """Whether a call sets a flag that decides what it gives.

    Raises
    ------
    TypeError
        If this is not known at script time.
    """
    try:
        x = inspect.signature(f).bind(*args, **kwargs).arguments.get(name)
    except ValueError:
        x = kwargs.get(name)
    if x is None:
        return False
    if not isinstance(x.arg, bool):
        raise TypeError(f"the argument {name!r} decides how many results there are: it must be known at script time")
    return x.arg


def _of_schema(t):
    """The type that a schema of a custom op names."""
    if t.is_list:
        return List(_of_schema(t.items[0]))
    if t.is_optional:
        return Optional(_of_schema(t.items[0]))
    return {"Tensor": TENSOR, "int": INT, "SymInt": INT, "float": FLOAT, "bool": BOOL, "str": STR}.get(t.word, NUMBER)


@functools.cache
def _by_text(text):
    if text in (None, "Tensor | tuple[Tensor, ...]"):
        return None
    if text == "bool":
        return BOOL
    if text == "tuple[Tensor, ...]":
        return _TENSORS
    if text.startswith("tuple[Tensor") and "..." not in text:
        return Tuple([Optional(TENSOR) if "None" in part else TENSOR for part in text.split(",")])
    return None
