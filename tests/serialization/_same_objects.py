"""Whether what was read is what was written: values, not only types; an AssertionError names the first difference."""
import types

import numpy as np

import ptcore as pt
from ptcore.utils.hooks import RemovableHandle

PLAIN = (int, str, bytes, bytearray, bool, type(None), complex, range, slice)
COMPUTED = "computed"
NAMED = (type, types.FunctionType, types.BuiltinFunctionType, types.ModuleType, types.MethodDescriptorType)


def same(a, b, path="object", seen=None):
    """Compares by what pickles say of objects, so that nothing a class keeps is left out. Where the path begins with
    ``COMPUTED``, the last bits of floats may differ: products and roots depend on BLAS and on the ISA level."""
    seen = {} if seen is None else seen
    if a is b or (id(a), id(b)) in seen:
        return
    seen[id(a), id(b)] = a, b                       # kept: what pickles say is made for each question
    assert type(a) is type(b), f"{path}: {type(a)} became {type(b)}"
    if isinstance(a, pt.Tensor):
        same_tensors(a, b, path, seen)
    elif isinstance(a, np.ndarray):
        assert a.dtype == b.dtype, path
        np.testing.assert_array_equal(a, b, err_msg=path)
    elif isinstance(a, float):
        assert repr(a) == repr(b), f"{path}: {a} became {b}"
    elif isinstance(a, str) and "['where']" in path:
        assert a.rpartition("/")[2] == b.rpartition("/")[2], f"{path}: {a!r} became {b!r}"      # a file of the checkout
    elif isinstance(a, PLAIN):
        assert a == b, f"{path}: {a!r} became {b!r}"
    elif isinstance(a, NAMED):
        raise AssertionError(f"{path}: {a} became {b}")
    elif isinstance(a, RemovableHandle):
        pass                                        # a number of the process that made it
    elif isinstance(a, dict):
        if "_cache_size" in a:                          # a transform, which works these out when it is asked
            a, b = ({k: v for k, v in x.items() if k not in ("bijective", "sign")} for x in (a, b))
        if path.endswith("['_autowrap']"):              # addresses of the functions of this Python's ``math``
            return
        assert len(a) == len(b), f"{path}: {[*a]} became {[*b]}"
        for (key, x), (other, y) in zip(a.items(), b.items()):
            # Likewise, and addresses of what a graph names.
            if not (type(key) is int and ("hooks" in path or path.endswith("['_names']"))):
                same(key, other, f"{path} key", seen)
            same(x, y, f"{path}[{key!r}]", seen)
        same(getattr(a, "__dict__", None), getattr(b, "__dict__", None), f"{path}.__dict__", seen)
    elif isinstance(a, (list, tuple)):
        assert len(a) == len(b), path
        for k, (x, y) in enumerate(zip(a, b)):
            same(x, y, f"{path}[{k}]", seen)
        same(getattr(a, "__dict__", None), getattr(b, "__dict__", None), f"{path}.__dict__", seen)
    elif isinstance(a, (set, frozenset)):
        same(sorted(a, key=repr), sorted(b, key=repr), path, seen)
    elif isinstance(a, pt.storage.UntypedStorage):
        same(a.tolist(), b.tolist(), path, seen)
    elif isinstance(a, pt.Generator):
        same(a.device, b.device, path, seen)
        same_tensors(a.get_state(), b.get_state(), f"{path}.get_state()", seen)
    else:
        same(described(a), described(b), path, seen)


def same_tensors(a, b, path, seen):
    lazy = isinstance(a, (pt.nn.UninitializedParameter, pt.nn.UninitializedBuffer))
    for what in ("dtype", "device", "layout", "requires_grad", *(() if lazy else ("shape",))):
        same(getattr(a, what), getattr(b, what), f"{path}.{what}", seen)
    if not lazy:
        assert a.stride() == b.stride(), f"{path}: stride {a.stride()} became {b.stride()}"
        if isinstance(a, pt.masked.MaskedTensor):
            same_tensors(a.get_mask(), b.get_mask(), f"{path}.get_mask()", seen)
            a, b = a.get_data(), b.get_data()
        if path.startswith(COMPUTED) and a.is_floating_point():
            np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=4e-7, atol=4e-7, err_msg=path)
        elif not a.is_meta:
            assert raw(a) == raw(b), f"{path}: {a} became {b}"
    same(vars(a) if hasattr(a, "__dict__") else None, vars(b) if hasattr(b, "__dict__") else None,
         f"{path}.__dict__", seen)


def raw(tensor):
    """The bytes of the values: equal for nan and nan, not for 0.0 and -0.0."""
    flat = tensor.detach().as_subclass(pt.Tensor).contiguous().reshape(-1)
    return flat.view(pt.uint8).numpy().tobytes()


def described(x):
    """What a pickle would say of an object, as a tuple."""
    said = x.__reduce_ex__(4)
    if isinstance(said, str):
        return type(x).__module__, said
    function, args, state, items, pairs = (*said, None, None, None)[:5]
    if isinstance(x, BaseException):
        args = (*args, str(x))
    return function, args, state, None if items is None else [*items], None if pairs is None else [*pairs]
