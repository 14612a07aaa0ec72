"""Signatures of earlier PyTorch releases that programs still use: ``x.add_(2, y)`` for ``x.add_(y, alpha=2)``.

A call comes here if its arguments did not fit the present signature. Tensors stay in their order, numbers
become keywords. Also handled: ``x.view(dtype=...)``, as the row takes a dtype only in place of the sizes,
``sparse_grad`` of ``gather`` and ``rcond`` of ``linalg.pinv``.
"""
from ptcore._tensor import Tensor

# By name: the kinds of the positional arguments (T: a tensor, n: a number) -> the keywords of the numbers.
_SCALED = {"TnT": ("alpha",)}
_WEIGHTED = {"TnTT": ("value",)}
_PRODUCT = {"nTTT": ("beta",), "TnTT": ("beta",), "nTnTT": ("beta", "alpha"), "TnnTT": ("beta", "alpha")}
_FORMS = {"add": _SCALED, "sub": _SCALED, "addcdiv": _WEIGHTED, "addcmul": _WEIGHTED,
          **dict.fromkeys(("addbmm", "addmm", "addmv", "addr", "baddbmm"), _PRODUCT)}


def rearranged(name, args, kwargs):
    """Positional and keyword arguments of the same call by the present signature, or None.

    Parameters
    ----------
    name : str
        The name of the function or method.
    args : tuple
    kwargs : dict
        As given; for a method the first of `args` is its tensor.
    """
    if name == "view" and len(args) == 1 and set(kwargs) == {"dtype"}:
        return (*args, kwargs["dtype"]), {}
    if name == "gather" and isinstance(kwargs.get("sparse_grad"), bool):
        return args, {k: v for k, v in kwargs.items() if k != "sparse_grad"}    # gradients are dense
    if name in ("linalg_pinv", "pinv") and "rcond" in kwargs and "rtol" not in kwargs:
        return args, {("rtol" if k == "rcond" else k): v for k, v in kwargs.items()}
    forms = _FORMS.get(name.removesuffix("_"))
    if forms is None:
        return None
    kinds = ("T" if isinstance(a, Tensor) else "n" if isinstance(a, (int, float, complex)) else "?" for a in args)
    keywords = forms.get("".join(kinds))
    if keywords is None or not set(keywords).isdisjoint(kwargs):
        return None
    import warnings
    listed = ", ".join(f"{k}=..." for k in keywords)
    warnings.warn(f"This overload of {name} is deprecated: a number before a tensor. Write {name}(..., {listed})",
                  UserWarning, stacklevel=2)
    numbers = [a for a in args if not isinstance(a, Tensor)]
    return (tuple(a for a in args if isinstance(a, Tensor)),
            {**kwargs, **dict(zip(keywords, numbers, strict=True))})
