"""The chi-squared distribution."""
from ptcore.distributions import constraints
from ptcore.distributions.gamma import Gamma

__all__ = ["Chi2"]


class Chi2(Gamma):
    r"""Chi-squared distribution: that of the sum of ``df`` squares of standard normals, :math:`\Gamma(df/2, 1/2)`.

    Parameters
    ----------
    df : Tensor or float
        Degrees of freedom.
    validate_args : bool, optional
        Whether parameters and values are checked.

    Examples
    --------
    >>> from ptcore.distributions import Chi2
    >>> Chi2(3.0).mean
    tensor(3.)
    """

    arg_constraints = {"df": constraints.positive}

    def __init__(self, df, validate_args=None):
        super().__init__(0.5 * df, 0.5, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return super().expand(batch_shape, self._get_checked_instance(Chi2, _instance))

    @property
    def df(self):
        """Degrees of freedom."""
        return self.concentration * 2
