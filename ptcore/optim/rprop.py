"""Rprop. State of a parameter: ``step``, ``prev`` (the last gradient) and ``step_size``."""

from ptcore import Tensor
from ptcore.optim._by_group import ByList
from ptcore.optim.optimizer import check_nonnegative

__all__ = ["Rprop"]


class Rprop(ByList):
    """Resilient propagation: only the signs of the gradients count.

    Parameters
    ----------
    params : iterable of Tensor or dict
        Parameters or groups of them.
    lr : float, default: 1e-2
        The first size of each element's step.
    etas : tuple of two float, default: (0.5, 1.2)
        Factors of an element's step size after a change of sign and after none.
    step_sizes : tuple of two float, default: (1e-6, 50)
        The smallest and the largest step size.
    maximize : bool, default: False
        Whether to go uphill.
    capturable, foreach : bool, optional
        Accepted for compatibility.
    differentiable : bool, default: False
        Whether the step is recorded by autograd, for parameters that are no leaves; slower.

    Notes
    -----
    An element whose gradient has changed its sign does not move for one step. M. Riedmiller, H. Braun, IEEE ICNN 1993.

    Examples
    --------
    >>> import ptcore
    >>> w = ptcore.nn.Parameter(ptcore.tensor([1.0]))
    >>> (w * w).sum().backward()
    >>> ptcore.optim.Rprop([w], lr=0.25).step()
    >>> w.tolist()
    [0.75]
    """

    _buffers = ("step", "prev", "step_size")
    _later = (*ByList._later, ("capturable", False))

    def __init__(
        self,
        params,
        lr: "float | Tensor" = 1e-2,
        etas=(0.5, 1.2),
        step_sizes=(1e-6, 50),
        *,
        capturable=False,
        foreach=None,
        maximize=False,
        differentiable=False,
    ):
        check_nonnegative(**{"learning rate": lr})
        if not isinstance(etas, (tuple, list)) or len(etas) != 2:
            raise TypeError(f"Rprop: etas must be two numbers, got {etas!r}")
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        super().__init__(
            params,
            {
                "lr": lr,
                "etas": etas,
                "step_sizes": step_sizes,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
                "capturable": capturable,
            },
        )

    def _beginnings(self, group):
        return {"step_size": group["lr"]}

    def _formula(self, group):
        options = (*group["etas"], *group["step_sizes"], group["maximize"])
        return "rprop", ("prev", "step_size"), options
