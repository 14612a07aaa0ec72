"""``ops.aten.name``: PyTorch's names of built-in ops, and the functions they stand for here.

A name is that of a row, of a row's public function, of a method, or of a function at the top of ``ptcore``; the few
with a different name here are in ``_OWN``. Backward ops of PyTorch and ops of its libraries are missing.
"""
import sys

from ptcore import _ops
from ptcore._ops.table import ids as _table
from ptcore._tensor import Tensor


def _to_copy(self, *, dtype=None, layout=None, device=None, pin_memory=None, non_blocking=False, memory_format=None):
    return self.to(device=device, dtype=dtype, non_blocking=non_blocking, copy=True, memory_format=memory_format)


def _index(self, indices):
    return self[tuple([slice(None) if i is None else i for i in indices])]


def _softmax(self, dim, half_to_float=False):
    return _called("softmax")(self, dim)


def _log_softmax(self, dim, half_to_float=False):
    return _called("log_softmax")(self, dim)


def _convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    n = weight.ndim - 2
    if transposed:
        return _called(f"conv_transpose{n}d")(input, weight, bias, stride, padding, output_padding, groups, dilation)
    return _called(f"conv{n}d")(input, weight, bias, stride, padding, dilation, groups)


def _called(name):
    return _table.function_of(_table.op_id(name))


def _absent(name):
    """A name that programs mention at import; it raises when called."""
    def refused(*args, **kwargs):
        raise NotImplementedError(f"aten.{name}: ptcore has no such op")
    refused.__name__ = refused.__qualname__ = name
    return refused


_OWN = {
    **{name: _absent(name) for name in ("_grouped_mm", "_sparse_addmm", "_sparse_mm_reduce_impl",
                                        "sym_constrain_range_for_size", "_upsample_bilinear2d_aa", "_embedding_bag")},
    "convolution": _convolution, "_local_scalar_dense": lambda self: self.item(),
    "_is_all_true": lambda self: self.all(), "_is_any_true": lambda self: self.any(),
    "_to_copy": _to_copy, "alias": lambda self: self.view_as(self), "lift": lambda self: self,
    "lift_fresh": lambda self: self, "lift_fresh_copy": lambda self: self.clone(), "index": _index,
    "_softmax": _softmax, "_log_softmax": _log_softmax,
    "_unsafe_view": lambda self, size: self.reshape(size),
    "_reshape_alias": lambda self, size, stride: self.reshape(size),
    "_conj": lambda self: self.conj(), "_pin_memory": lambda self, device=None: self.pin_memory(device),
    "sym_size": lambda self, dim=None: self.size() if dim is None else self.size(dim),
    "sym_stride": lambda self, dim=None: self.stride() if dim is None else self.stride(dim),
    "sym_numel": lambda self: self.numel(), "sym_storage_offset": lambda self: self.storage_offset(),
}
_public = {}                        # the last part of a public name, such as matrix_exp, or linalg_matrix_exp -> row


def function_of(name):
    """The function that a name of ``aten`` stands for, or None."""
    if name in _OWN:
        return _OWN[name]
    for candidate, inplace in ((name, False), (name.removesuffix("_"), True)):
        try:
            found = _table.function_of(_table.op_id(candidate), inplace)
        except KeyError:
            continue
        if found is not None:
            return found
    if not _public:
        for row in _ops.rows():
            for public in row.public:
                space, _, last = public.rpartition(".")
                _public.setdefault(last, row.name)
                if space in ("linalg", "special", "fft"):
                    _public[f"{space}_{last}"] = row.name
    found = _public.get(name)
    if found is not None:
        return _ops.function(found)
    if name.startswith("special_"):
        return function_of(name.removeprefix("special_"))
    if name.startswith("_") and not name.startswith("_foreach_"):
        return None
    found = getattr(Tensor, name, None)
    if not callable(found):             # functions at the top of ptcore are made of ops
        found = getattr(sys.modules["ptcore"], name, None)
    return found if callable(found) and not isinstance(found, type) else None


def names():
    """The names that rows have, for ``dir``."""
    return sorted({public.rpartition(".")[2] for row in _ops.rows() for public in row.public})
