"""Norms that few programs ask for."""
from ptcore._ops import checked
from ptcore._ops.call.offer import overridable


@overridable
def norm_except_dim(v, pow=2, dim=0):
    """Norms over all dims but one, which are kept with size 1; all of them if ``dim`` is -1.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.norm_except_dim(ptcore.tensor([[3., 4.], [0., 1.]]))
    tensor([[5.],
            [1.]])
    """
    checked.need_tensors("norm_except_dim", v=v)
    dim = checked.integer("norm_except_dim", "dim", dim)
    if dim == -1:
        return v.norm(pow)
    if not 0 <= dim < v.ndim:
        raise IndexError(f"norm_except_dim: dim must be -1 or in [0, {v.ndim - 1}], got {dim}")
    others = [d for d in range(v.ndim) if d != dim]
    return v.norm(pow, others, keepdim=True) if others else v.abs()
