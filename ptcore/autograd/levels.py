"""The values behind the stand-ins of transformations."""
from ptcore._subclass import payload_of


def has_history(x):
    """Whether a tensor, or a value behind it, requires grad."""
    while True:
        if x.requires_grad:
            return True
        payload = payload_of(x)
        if payload is None:
            return False
        if payload.tangent is not None and has_history(payload.tangent):
            return True
        x = payload.tensor


def debug_unwrap(tensor, *, recurse=True):
    """The tensor behind a stand-in, for debuggers: for a sample, the stack of all samples.

    The transformation does not see ops on it.

    Parameters
    ----------
    tensor : Tensor
    recurse : bool, default: True
        Whether what stands behind stands for another one in its turn.

    Returns
    -------
    Tensor
        The tensor itself if it stands for nothing.

    Examples
    --------
    >>> import ptcore
    >>> seen = []
    >>> _ = ptcore.vmap(lambda x: seen.append(ptcore.func.debug_unwrap(x)) or x)(ptcore.arange(3))
    >>> seen
    [tensor([0, 1, 2])]
    """
    while True:
        payload = payload_of(tensor)
        if payload is None:
            return tensor
        tensor = payload.tensor
        if not recurse:
            return tensor
