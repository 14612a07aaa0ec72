"""The entries of torch's op database, and ptcore's function, method and in-place form of each."""
import functools
import operator
import types
import zlib

import torch
from torch.testing._internal.common_methods_invocations import op_db

import ptcore as pt

from ._convert import rebound

# The database comes with torch's test module, which freezes the backends' settings for the whole process.
torch.backends.flags_frozen.__globals__["__allow_nonbracketed_mutation_flag"] = True

# Layouts and systems that are not ptcore's (sparse tensors have an issue of their own), and names that torch keeps to
# itself. The last three are decompositions' and dispatch's, which torch does not document.
LEFT_OUT = ("sparse.", "to_sparse", "jiterator_", "torch.", "_", "hash_tensor", "max_pool2d_with_indices_backward", "chalf")
OF_DISPATCH = ("slice", "native_dropout_backward")          # functions of torch.ops.aten alone
PRIVATE_OF_PUBLIC = {"_segment_reduce": "segment_reduce"}


def left_out(name):
    if name in OF_DISPATCH:
        return True
    return name.startswith(LEFT_OUT) and not name.startswith("__") and name not in PRIVATE_OF_PUBLIC


def entries():
    """{full name: entry}; the full name has the variant behind the name."""
    return {op.full_name: op for op in op_db if not left_out(op.name)}


def found(path, root=None):
    """The attribute at a dotted path, or None."""
    thing = pt if root is None else root
    for part in path.split("."):
        thing = getattr(thing, part, None)
        if thing is None:
            return None
    return thing


def of_test(function):
    """Whether a function was written for the database: then its text calls torch by name."""
    return isinstance(function, types.FunctionType) and (
        function.__name__ == "<lambda>" or function.__module__.startswith("torch.testing"))


def ours(op):
    """ptcore's form of an entry's function, or None where there is none."""
    if of_test(op.op):
        return rebound(op.op)
    name = PRIVATE_OF_PUBLIC.get(op.name, op.name)
    public = found(name)
    return public if callable(public) and not isinstance(public, type(pt.float32)) else found(name, pt.Tensor)


def theirs(op):
    """torch's function of an entry, its random draws not fixed."""
    return rebound(op.op, torch) if of_test(op.op) else op.op


def variant(function):
    """ptcore's form of a method, an in-place form or an operator, or None."""
    if function is None:
        return None
    if of_test(function):
        return rebound(function)
    if isinstance(function, functools.partial):
        inner = variant(function.func)
        return None if inner is None else functools.partial(inner, *function.args, **function.keywords)
    name = function.__name__
    if getattr(function, "__module__", None) == "torch.nn.functional":
        return found("nn.functional." + name)
    if getattr(operator, name, None) is function:
        return function
    return found(name, pt.Tensor) or found(name)


def dtypes(op, few=False):
    """The dtypes that both have, in a fixed order; ``few``: float32, if it is one, and another that the name chooses."""
    from ._convert import DTYPES
    supported = op.supported_dtypes("cpu")
    found = [dtype for dtype in DTYPES if dtype in supported]
    if not few or len(found) < 3:
        return found
    first = torch.float32 if torch.float32 in found else found[-1]
    others = [dtype for dtype in found if dtype is not first]
    return [first, others[zlib.crc32(op.full_name.encode()) % len(others)]]


def samples(op, dtype, grad, seed, reference=False):
    """The entry's samples; the same for the same seed."""
    torch.manual_seed(seed)
    make = op.reference_inputs if reference else op.sample_inputs
    return (s for s in make("cpu", dtype, requires_grad=grad) if not s.kwargs.get("sparse"))
