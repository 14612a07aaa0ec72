"""Functions of the top level that few programs call, in plain Python."""
from builtins import range as builtin_range

from ptcore import (
    Tensor,
    arange,
    empty,
    full,
    get_default_dtype,
    linspace,
    pow,
    promote_types,
    set_default_dtype,
)
from ptcore._dtype import as_dtype
from ptcore._errors import DTypeError, ShapeError
from ptcore._ops import _arguments


def _finished(result, out, requires_grad):
    if out is not None:
        return out.resize_(result.shape).copy_(result)
    return result.requires_grad_() if requires_grad else result


def logspace(start, end, steps, base=10.0, *, out=None, dtype=None, layout=None, device=None, pin_memory=False,
             requires_grad=False):
    """``steps`` numbers from ``base**start`` to ``base**end`` whose logarithms are evenly spaced.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.logspace(0, 2, 3)
    tensor([  1.,  10., 100.])
    """
    steps = _arguments.integer("logspace", "steps", steps)
    if steps < 0:
        raise RuntimeError(f"logspace: steps must be non-negative, got {steps}")
    numbers = (("start", start), ("end", end), ("base", base))
    start, end, base = [_arguments.number("logspace", n, x) for n, x in numbers]
    dtype = (get_default_dtype() if out is None else out.dtype) if dtype is None else dtype
    wide = promote_types(dtype, as_dtype("float64"))
    result = pow(base, linspace(start, end, steps, dtype=wide, layout=layout, device=device, pin_memory=pin_memory))
    return _finished(result.to(dtype), out, requires_grad)


def range(start, end=None, step=1, *, out=None, dtype=None, layout=None, device=None, pin_memory=False,
          requires_grad=False):
    """Numbers from ``start`` on, ``step`` apart, up to ``end``, which is among them; see :func:`ptcore.arange`.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.range(1, 3)
    tensor([1., 2., 3.])
    """
    if end is None:
        start, end = 0, start
    start, end, step = [_arguments.number("range", n, x) for n, x in (("start", start), ("end", end), ("step", step))]
    if step == 0 or (end - start) / step < 0:
        raise RuntimeError(f"range: the way from {start} to {end} must have the sign of step, which is not 0, "
                           f"got {step}")
    n = int((end - start) / step) + 1
    dtype = (get_default_dtype() if out is None else out.dtype) if dtype is None else dtype
    wide = as_dtype("int64" if all(isinstance(x, int) for x in (start, step)) else "float64")
    result = arange(n, dtype=wide, layout=layout, device=device, pin_memory=pin_memory) * step + start
    return _finished(result.to(dtype), out, requires_grad)


def scalar_tensor(s, *, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False):
    """A tensor without dimensions of the default dtype.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.scalar_tensor(2)
    tensor(2.)
    """
    dtype = get_default_dtype() if dtype is None else dtype
    return full((), _arguments.number("scalar_tensor", "s", s), dtype=dtype, layout=layout, device=device,
                pin_memory=pin_memory, requires_grad=requires_grad)


def empty_permuted(size, physical_layout, *, dtype=None, layout=None, device=None, pin_memory=False,
                   requires_grad=False):
    """Uninitialised memory without gaps whose dims lie in the order ``physical_layout``, the outermost first.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.empty_permuted((2, 3), (1, 0)).stride()
    (1, 2)
    """
    size = _arguments.integers("empty_permuted", "size", size)
    order = _arguments.integers("empty_permuted", "physical_layout", physical_layout)
    if sorted(order) != list(builtin_range(len(size))):
        raise RuntimeError(f"empty_permuted: physical_layout must have each dim of size once, got {order} for {size}")
    result = empty([size[d] for d in order], dtype=dtype, layout=layout, device=device, pin_memory=pin_memory)
    result = result.permute([order.index(d) for d in builtin_range(len(size))])
    return result.requires_grad_() if requires_grad else result


def set_default_tensor_type(t) -> None:
    """Sets the default dtype by the name of a tensor type, as "ptcore.DoubleTensor", or by the type itself.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.set_default_tensor_type(ptcore.FloatTensor)
    """
    if isinstance(t, str):
        import ptcore
        module, _, name = t.rpartition(".")
        found = getattr(ptcore, name, None) if module in ("torch", "ptcore") else None
        if not hasattr(found, "dtype"):
            raise TypeError(f"set_default_tensor_type: t must be a type such as 'ptcore.FloatTensor', got {t!r}")
        t = found
    if not hasattr(t, "dtype"):
        raise TypeError(f"set_default_tensor_type: t must be a tensor type or its name, got {type(t).__name__}")
    set_default_dtype(t.dtype)


def set_flush_denormal(mode) -> bool:
    """False: denormal numbers are kept on every processor.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.set_flush_denormal(True)
    False
    """
    return False


def get_num_interop_threads() -> int:
    """1: operations do not run beside each other.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.get_num_interop_threads()
    1
    """
    return 1


def set_num_interop_threads(n) -> None:
    """Takes a positive number and does nothing: operations do not run beside each other.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.set_num_interop_threads(1)
    """
    if _arguments.integer("set_num_interop_threads", "n", n) < 1:
        raise RuntimeError(f"set_num_interop_threads: n must be positive, got {n}")


def norm_except_dim(v, pow=2, dim=0):
    """Norms over all dims but one, which are kept with size 1; all of them if ``dim`` is -1.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.norm_except_dim(ptcore.tensor([[3., 4.], [0., 1.]]))
    tensor([[5.],
            [1.]])
    """
    _arguments.need_tensors("norm_except_dim", v=v)
    if dim == -1:
        return v.norm(pow)
    dim = _arguments.integer("norm_except_dim", "dim", dim)
    if not 0 <= dim < v.ndim:
        raise IndexError(f"norm_except_dim: dim must be -1 or in [0, {v.ndim - 1}], got {dim}")
    others = [d for d in builtin_range(v.ndim) if d != dim]
    return v.norm(pow, others, keepdim=True) if others else v.abs()


def constant_pad_nd(input, pad, value=0):
    """``nn.functional.pad`` with a constant.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.constant_pad_nd(ptcore.tensor([1]), (1, 0), 5)
    tensor([5, 1])
    """
    from ptcore.nn.functional import pad as padded
    return padded(input, pad, "constant", value)


def svd_lowrank(A, q=6, niter=2, M=None) -> tuple[Tensor, Tensor, Tensor]:
    """U, S and V of a matrix of rank ``q`` near A (less M, if given), by products with random vectors.

    Parameters
    ----------
    A : Tensor
        Matrices ``(*, m, n)``.
    q : int
        The rank, somewhat above that of A.
    niter : int
        How often the vectors are multiplied with A and its adjoint in turn.
    M : Tensor, optional
        What is subtracted from A.

    Examples
    --------
    >>> import ptcore
    >>> U, S, V = ptcore.svd_lowrank(ptcore.ones(4, 3), 2)
    >>> S.shape
    ptcore.Size([2])
    """
    from ptcore import linalg, randn
    _arguments.need_tensors("svd_lowrank", A=A, **({} if M is None else {"M": M}))
    if A.ndim < 2:
        raise ShapeError(f"svd_lowrank: A must have at least 2 dimensions, got shape {list(A.shape)}")
    q, niter = _arguments.integer("svd_lowrank", "q", q), _arguments.integer("svd_lowrank", "niter", niter)
    m, n = A.shape[-2:]
    if not 0 <= q <= min(m, n):
        raise ValueError(f"svd_lowrank: q must be in [0, {min(m, n)}], got {q}")
    if niter < 0:
        raise ValueError(f"svd_lowrank: niter must be non-negative, got {niter}")
    if M is not None:
        A = A - M
    turned = m < n
    if turned:
        A = A.mH
    Q = linalg.qr(A @ randn(*A.shape[:-2], A.shape[-1], q, dtype=A.dtype, device=A.device)).Q
    for _ in builtin_range(niter):
        Q = linalg.qr(A.mH @ Q).Q
        Q = linalg.qr(A @ Q).Q
    U, S, Vh = linalg.svd(Q.mH @ A, full_matrices=False)
    U, V = Q @ U, Vh.mH
    return (V, S, U) if turned else (U, S, V)


def pca_lowrank(A, q=None, center=True, niter=2) -> tuple[Tensor, Tensor, Tensor]:
    """Principal components: :func:`ptcore.svd_lowrank` of a matrix whose columns are centred.

    Examples
    --------
    >>> import ptcore
    >>> U, S, V = ptcore.pca_lowrank(ptcore.eye(4, 3), 2)
    >>> V.shape
    ptcore.Size([3, 2])
    """
    _arguments.need_tensors("pca_lowrank", A=A)
    niter = _arguments.integer("pca_lowrank", "niter", niter)
    if A.ndim < 2:
        raise ShapeError(f"pca_lowrank: A must have at least 2 dimensions, got shape {list(A.shape)}")
    m, n = A.shape[-2:]
    q = min(6, m, n) if q is None else _arguments.integer("pca_lowrank", "q", q)
    if not 0 <= q <= min(m, n):
        raise ValueError(f"pca_lowrank: q must be in [0, {min(m, n)}], got {q}")
    if niter < 0:
        raise ValueError(f"pca_lowrank: niter must be non-negative, got {niter}")
    return svd_lowrank(A - A.mean(-2, keepdim=True) if center else A, q, niter)


def binomial(count, prob, generator=None):
    """Draws of how many of ``count`` trials succeed, each with probability ``prob``, element by element.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.binomial(ptcore.tensor([5.]), ptcore.tensor([1.]))
    tensor([5.])
    """
    from ptcore import broadcast_tensors, no_grad, rand
    _arguments.need_tensors("binomial", count=count, prob=prob)
    for x in (count, prob):
        if x.dtype.kind != "f" or x.dtype is not count.dtype:
            raise DTypeError(f"binomial: count and prob must have one floating-point dtype, got {count.dtype.name} and "
                             f"{prob.dtype.name}")
    count, prob = broadcast_tensors(count.detach(), prob.detach())
    if (count < 0).any() or (count != count.floor()).any():
        raise RuntimeError("binomial: count must hold whole numbers that are not negative")
    if not ((prob >= 0) & (prob <= 1)).all():
        raise RuntimeError("binomial: prob must be in [0, 1]")
    trials = int(count.max()) if count.numel() else 0
    result = count * 0
    with no_grad():
        for start in builtin_range(0, trials, 256):             # 256 trials at a time, for memory
            n = min(256, trials - start)
            numbers = arange(start, start + n, dtype=count.dtype, device=count.device)
            hit = rand(*count.shape, n, dtype=prob.dtype, device=prob.device, generator=generator) < prob.unsqueeze(-1)
            result = result + (hit & (numbers < count.unsqueeze(-1))).sum(-1).to(count.dtype)
    return result
