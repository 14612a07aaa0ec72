"""Arguments and results from torch to ptcore and back: dtypes, strides, storage offsets and requires_grad are kept."""
import dataclasses
import functools
import types

import numpy as np
import torch

import ptcore as pt

NAMES = ("bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32",
         "float64", "complex64", "complex128")
DTYPES = {getattr(torch, name): getattr(pt, name) for name in NAMES}
BACK = {ours: theirs for theirs, ours in DTYPES.items()}
FORMATS = {getattr(torch, name): getattr(pt, name)
           for name in ("contiguous_format", "channels_last", "channels_last_3d", "preserve_format")}
EXTENDED = {torch.bfloat16: torch.int16}        # NumPy has none of these


class NotCarried(Exception):
    """An argument that has no form in ptcore: another layout, another dtype."""


def plain(x):
    """A tensor with the elements, strides and offset of x, in memory that holds the elements as they are."""
    if not x.is_conj() and not x.is_neg():
        return x
    if x.is_neg():
        return torch.resolve_neg(x)
    stored = x.conj()                       # the same memory, without the mark
    memory = torch.as_strided(stored, (x.untyped_storage().nbytes() // x.element_size(),), (1,), 0)
    return torch.as_strided(memory.conj_physical(), x.shape, x.stride(), x.storage_offset())


def tensor(x, memo=None):
    """A tensor of ptcore with the elements, strides and dtype of a torch tensor, its memory its own; those that share
    memory in torch do so here if one ``memo`` is given for both."""
    memo = {} if memo is None else memo
    if x.layout != torch.strided or x.dtype not in DTYPES:
        raise NotCarried(f"{x.layout} of {x.dtype}")
    if x.device.type == "meta":
        whole = pt.empty(x.untyped_storage().nbytes() // x.element_size(), dtype=DTYPES[x.dtype], device="meta")
        return whole.as_strided(tuple(x.shape), tuple(x.stride()), x.storage_offset())
    grad, x = x.requires_grad, plain(x.detach())
    if x.dim() > 64:
        raise NotCarried("more than 64 dims")
    place = x.untyped_storage().data_ptr(), x.dtype
    if not place[0] or place not in memo:
        memory = torch.as_strided(x, (x.untyped_storage().nbytes() // x.element_size(),), (1,), 0)
        if x.dtype in EXTENDED:
            memory = memory.view(EXTENDED[x.dtype])
        made = pt.from_numpy(memory.clone().numpy())    # the clone's: memory that NumPy sees is not resized by torch
        memo[place] = (made.view(DTYPES[x.dtype]) if x.dtype in EXTENDED else made).clone(), x
    made = pt.as_strided(memo[place][0], tuple(x.shape), tuple(x.stride()), x.storage_offset()).detach()
    return made.requires_grad_() if grad else made


def array(x):
    """A torch tensor, dense, of a tensor of ptcore."""
    x = x.detach()
    theirs = BACK[x.dtype]
    if theirs in EXTENDED:
        return torch.from_numpy(np.array(x.contiguous().view(DTYPES[EXTENDED[theirs]]))).view(theirs)
    return torch.from_numpy(np.array(x))


def unseeded(op, *args, **kwargs):
    """In the place of the database's ``wrapper_set_seed``, which hides whether a function draws."""
    return op(*args, **kwargs)


def rebound(function, library=pt):
    """A Python function of an entry, which says ``torch``, for another library; without seeds of its own."""
    if isinstance(function, functools.partial):
        return functools.partial(rebound(function.func, library), *function.args, **function.keywords)
    if not isinstance(function, types.FunctionType) or function.__module__.startswith("torch.nn"):
        return function
    world = dict(function.__globals__)
    if "torch" in world:
        world["torch"] = library
    if "wrapper_set_seed" in world:
        world["wrapper_set_seed"] = unseeded
    for name in function.__code__.co_names:
        other = world.get(name)
        if isinstance(other, types.FunctionType) and other.__module__ == function.__module__:
            world[name] = rebound(other, library)
    cells = tuple(types.CellType(rebound(cell.cell_contents, library)) for cell in function.__closure__ or ())
    made = types.FunctionType(function.__code__, world, function.__name__, function.__defaults__, cells or None)
    made.__kwdefaults__ = function.__kwdefaults__
    return made


def ours(x, memo=None):
    """Arguments of a sample as ptcore takes them. A tensor that is met twice is one tensor."""
    memo = {} if memo is None else memo
    if isinstance(x, torch.Tensor):
        if id(x) not in memo:
            memo[id(x)] = (tensor(x, memo), x)
        return memo[id(x)][0]
    if isinstance(x, torch.Size):
        return pt.Size(x)
    if isinstance(x, (list, tuple)):
        parts = [ours(part, memo) for part in x]
        return type(x)(*parts) if hasattr(x, "_fields") else type(x)(parts)
    if isinstance(x, dict):
        return {key: ours(value, memo) for key, value in x.items()}
    if isinstance(x, slice):
        return slice(*(ours(part, memo) for part in (x.start, x.stop, x.step)))
    if isinstance(x, torch.dtype):
        if x not in DTYPES:
            raise NotCarried(str(x))
        return DTYPES[x]
    if isinstance(x, torch.device):
        return pt.device(str(x))
    if isinstance(x, torch.layout):
        if x != torch.strided:
            raise NotCarried(str(x))
        return pt.strided
    if isinstance(x, torch.memory_format):
        return FORMATS[x]
    if isinstance(x, torch.Generator):
        return pt.Generator().manual_seed(x.initial_seed())
    if isinstance(x, torch.nn.LinearCrossEntropyOptions):
        return pt.nn.LinearCrossEntropyOptions(**{f.name: ours(getattr(x, f.name)) for f in dataclasses.fields(x)})
    if isinstance(x, torch.nn.Module):
        return getattr(pt.nn, type(x).__name__)()
    if callable(x):
        return rebound(x)
    return x


def mapped(x, f):
    """The structure x with f of each of its torch tensors."""
    memo = {}

    def go(x):
        if isinstance(x, torch.Tensor):
            if id(x) not in memo:
                memo[id(x)] = (f(x), x)
            return memo[id(x)][0]
        if isinstance(x, torch.Size):
            return x
        if isinstance(x, (list, tuple)):
            parts = [go(part) for part in x]
            return type(x)(*parts) if hasattr(x, "_fields") else type(x)(parts)
        if isinstance(x, dict):
            return {key: go(value) for key, value in x.items()}
        return x
    return go(x)


def leaves(x, kind):
    """The tensors of a structure, each once, in order."""
    found = {}

    def go(x):
        if isinstance(x, kind):
            found.setdefault(id(x), x)
        elif isinstance(x, dict):
            for value in x.values():
                go(value)
        elif isinstance(x, (list, tuple)):
            for value in x:
                go(value)
    go(x)
    return list(found.values())
