"""Kullback-Leibler divergences: the table of pairs of classes, and the search for a pair.

The formulas are in ``_kl_same`` (both of one family), ``_kl_across`` and ``_kl_vectors``.
"""
import warnings

__all__ = ["kl_divergence", "register_kl"]

_KL_REGISTRY = {}       # (class of p, class of q) -> function
_KL_MEMOIZE = {}        # the same for pairs looked up before


def register_kl(type_p, type_q):
    """A decorator that registers a function for the divergence of two classes and of their subclasses.

    Parameters
    ----------
    type_p, type_q : type
        Subclasses of Distribution.

    Notes
    -----
    A pair of classes is looked up by the most specific match. If one match is closer in the first class and another in
    the second, the first class decides, with a RuntimeWarning; register the pair itself to settle it.

    Examples
    --------
    >>> from ptcore.distributions import Normal, kl_divergence, register_kl
    >>> class Mine(Normal):
    ...     pass
    >>> @register_kl(Mine, Normal)
    ... def of_mine(p, q):
    ...     return 7
    >>> kl_divergence(Mine(0.0, 1.0), Normal(0.0, 1.0))
    7
    """
    for name, its in (("type_p", type_p), ("type_q", type_q)):
        if not isinstance(its, type) or not hasattr(its, "log_prob"):   # other bases need not be distributions
            raise TypeError(f"Expected {name} to be a Distribution subclass but got {its}")

    def decorator(fun):
        _KL_REGISTRY[type_p, type_q] = fun
        _KL_MEMOIZE.clear()
        return fun

    return decorator


def _closest(matches, type_first, order):
    """The nearest match of classes; those that ``order`` puts first decide."""
    def distance(match):
        return tuple(types.__mro__.index(its) for types, its in order(type_first, match))
    return min(matches, key=distance)


def _dispatch_kl(type_p, type_q):
    """The function of the most specific pair of base classes, or NotImplemented."""
    matches = [(p, q) for p, q in _KL_REGISTRY if issubclass(type_p, p) and issubclass(type_q, q)]
    if not matches:
        return NotImplemented
    pair = type_p, type_q
    left = _closest(matches, pair, lambda its, match: list(zip(its, match)))
    right = _closest(matches, pair, lambda its, match: list(zip(its, match))[::-1])
    if _KL_REGISTRY[left] is not _KL_REGISTRY[right]:
        warnings.warn(f"Ambiguous kl_divergence({type_p.__name__}, {type_q.__name__}). Please register_kl("
                      f"{left[0].__name__}, {right[1].__name__})", RuntimeWarning, stacklevel=3)
    return _KL_REGISTRY[left]


def kl_divergence(p, q):
    r"""Kullback-Leibler divergence :math:`\int p(x) \log \frac{p(x)}{q(x)}\, dx` of two distributions.

    Parameters
    ----------
    p, q : Distribution
        Their batch shapes broadcast.

    Returns
    -------
    Tensor
        Of the batch shape; infinite where `q` lacks a part of the support of `p`.

    Raises
    ------
    NotImplementedError
        If no formula is registered for the two classes; see :func:`register_kl`.

    Examples
    --------
    >>> from ptcore.distributions import Normal, kl_divergence
    >>> kl_divergence(Normal(0.0, 1.0), Normal(1.0, 1.0))
    tensor(0.5000)
    """
    pair = type(p), type(q)
    fun = _KL_MEMOIZE.get(pair)
    if fun is None:
        fun = _KL_MEMOIZE[pair] = _dispatch_kl(*pair)
    if fun is NotImplemented:
        raise NotImplementedError(f"No KL(p || q) is implemented for p type {pair[0].__name__} and q type "
                                  f"{pair[1].__name__}")
    return fun(p, q)
