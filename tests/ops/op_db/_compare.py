"""What differs between a result of ptcore and torch's: type, shape, dtype, strides, values within a tolerance."""
import numbers

import torch

import ptcore as pt

from . import _convert

DEFAULT = {torch.float16: (1e-3, 1e-5), torch.bfloat16: (1.6e-2, 1e-5), torch.float32: (1.3e-6, 1e-5),
           torch.float64: (1e-7, 1e-7), torch.complex64: (1.3e-6, 1e-5), torch.complex128: (1e-7, 1e-7)}


def tolerance(op, dtype):
    """(rtol, atol) of results of a dtype: the widest that the entry names for any of its tests on the CPU."""
    rtol, atol = DEFAULT.get(dtype, (0, 0))
    for decorator in getattr(op, "decorators", None) or ():
        if getattr(decorator, "device_type", None) not in (None, "cpu"):
            continue
        for inner in getattr(decorator, "decorators", (decorator,)):
            named = getattr(inner, "d", {}).get(dtype) if isinstance(getattr(inner, "d", None), dict) else None
            if named is not None:
                a, r = (named.atol, named.rtol) if hasattr(named, "atol") else (named, 0)
                rtol, atol = max(rtol, r), max(atol, a)
    return rtol, atol


def structure(ours, theirs):
    """None, or how the kinds of two results differ."""
    if isinstance(theirs, torch.Tensor):
        return None if isinstance(ours, pt.Tensor) else f"{type(ours).__name__}, expected a tensor"
    if isinstance(theirs, torch.dtype) or isinstance(theirs, torch.device):
        return None if str(ours).split(".")[-1] == str(theirs).split(".")[-1] else f"{ours}, expected {theirs}"
    if isinstance(theirs, (list, tuple)):
        if not isinstance(ours, (list, tuple)) or len(ours) != len(theirs):
            return f"{type(ours).__name__} of {len(ours) if hasattr(ours, '__len__') else '-'}, expected {len(theirs)}"
        if isinstance(theirs, list) != isinstance(ours, list):
            return f"{type(ours).__name__}, expected {type(theirs).__name__}"
        fields = [n for n in dir(theirs) if not n.startswith("_") and n not in ("count", "index", "n_fields", "numel",
                  "n_sequence_fields", "n_unnamed_fields")] if type(theirs) is not tuple else []
        absent = [n for n in fields if not hasattr(ours, n)]
        return f"no fields {absent}" if absent else None
    if isinstance(theirs, bool) or theirs is None or isinstance(theirs, str):
        return None if type(ours) is type(theirs) else f"{type(ours).__name__}, expected {type(theirs).__name__}"
    if isinstance(theirs, numbers.Number):
        return None if type(ours) is type(theirs) else f"{type(ours).__name__}, expected {type(theirs).__name__}"
    return None


def metadata(ours, theirs, strides):
    """None, or how shape, dtype or strides of two tensors differ."""
    if theirs.dtype not in _convert.DTYPES:
        raise _convert.NotCarried(str(theirs.dtype))
    if tuple(ours.shape) != tuple(theirs.shape):
        return f"shape {tuple(ours.shape)}, expected {tuple(theirs.shape)}"
    if _convert.BACK.get(ours.dtype) != theirs.dtype:
        return f"dtype {ours.dtype}, expected {theirs.dtype}"
    if strides and not same_strides(ours, theirs):
        return f"strides {ours.stride()}, expected {theirs.stride()} of shape {tuple(theirs.shape)}"
    return None


def same_strides(ours, theirs):
    """Whether strides of dims of more than one element agree; those of other dims address nothing."""
    if theirs.numel() == 0:
        return True
    return all(a == b for n, a, b in zip(theirs.shape, ours.stride(), theirs.stride()) if n > 1)


def close(ours, theirs, tol):
    """Whether values agree; both are torch tensors of one dtype."""
    theirs = theirs.detach().resolve_conj().resolve_neg()
    if not (theirs.is_floating_point() or theirs.is_complex()):
        return torch.equal(ours, theirs)
    return bool(torch.isclose(ours, theirs, rtol=tol[0], atol=tol[1], equal_nan=True).all())


def worst(ours, theirs):
    """Where two tensors differ the most, in words."""
    ours, theirs = ours.detach(), theirs.detach().resolve_conj().resolve_neg()
    if not theirs.numel():
        return "empty"
    if theirs.dtype == torch.bool:
        at = int((ours != theirs).flatten().int().argmax())
    else:
        wide = torch.complex128 if theirs.is_complex() else torch.float64
        gap = torch.nan_to_num((ours.to(wide) - theirs.to(wide)).abs(), nan=float("inf"), posinf=float("inf"))
        gap[(ours == theirs) | (ours.isnan() & theirs.isnan())] = 0
        at = int(gap.flatten().argmax())
    return f"{ours.flatten()[at].item()}, expected {theirs.flatten()[at].item()} (element {at} of {theirs.numel()})"


def differ(ours, theirs, tol, *, strides=False, values=True):
    """None, or in words what differs between two results."""
    text = structure(ours, theirs)
    if text:
        return text
    if isinstance(theirs, torch.Tensor):
        text = metadata(ours, theirs, strides)
        if text or not values or theirs.device.type == "meta":
            return text
        carried = _convert.array(ours)
        of = tol(theirs.dtype) if callable(tol) else tol
        return None if close(carried, theirs, of) else f"{theirs.dtype}: {worst(carried, theirs)}"
    if isinstance(theirs, (list, tuple)):
        for i, (a, b) in enumerate(zip(ours, theirs)):
            text = differ(a, b, tol, strides=strides, values=values)
            if text:
                return f"[{i}] {text}"
        return None
    if isinstance(theirs, numbers.Number) and not isinstance(theirs, bool) and values:
        of = tol(torch.float32)
        return None if close(torch.tensor(ours), torch.tensor(theirs), of) else f"{ours}, expected {theirs}"
    if isinstance(theirs, (bool, str)):
        return None if ours == theirs else f"{ours}, expected {theirs}"
    return None
