"""Signatures of earlier releases of PyTorch which programs still use: ``x.add_(2, y)`` for ``x.add_(y, alpha=2)``.

A call comes here after its arguments did not fit the signature that there is. Tensors stay in their order, numbers
become keywords. Beside these, ``x.view(dtype=...)``: the row takes a dtype among its sizes alone.
"""
from ptcore._tensor import Tensor

# By name: the kinds of positional arguments (T: a tensor, n: a number) and the keywords of the numbers.
_SCALED = {"TnT": ("alpha",)}
_WEIGHTED = {"TnTT": ("value",)}
_PRODUCT = {"nTTT": ("beta",), "TnTT": ("beta",), "nTnTT": ("beta", "alpha"), "TnnTT": ("beta", "alpha")}
_FORMS = {"add": _SCALED, "sub": _SCALED, "addcdiv": _WEIGHTED, "addcmul": _WEIGHTED,
          **dict.fromkeys(("addbmm", "addmm", "addmv", "addr", "baddbmm"), _PRODUCT)}


def rearranged(name, args, kwargs):
    """Positional and keyword arguments of the same call by the signature of today, or None.

    Parameters
    ----------
    name : str
        Of the function or method.
    args : tuple
    kwargs : dict
        As they were given; a method's tensor is the first of `args`.
    """
    if name == "view" and len(args) == 1 and set(kwargs) == {"dtype"}:
        return (*args, kwargs["dtype"]), {}
    forms = _FORMS.get(name.removesuffix("_"))
    if forms is None:
        return None
    kinds = ("T" if isinstance(a, Tensor) else "n" if isinstance(a, (int, float, complex)) else "?" for a in args)
    keywords = forms.get("".join(kinds))
    if keywords is None or not set(keywords).isdisjoint(kwargs):
        return None
    import warnings
    listed = ", ".join(f"{k}=..." for k in keywords)
    warnings.warn(f"{name}: a number before a tensor is of an old signature, write {name}(..., {listed})", UserWarning,
                  stacklevel=2)
    numbers = [a for a in args if not isinstance(a, Tensor)]
    return (tuple(a for a in args if isinstance(a, Tensor)),
            {**kwargs, **dict(zip(keywords, numbers, strict=True))})
