"""Low-discrepancy points in a cube: ``SobolEngine``, with SciPy's direction numbers."""
from operator import index

__all__ = ["SobolEngine"]


def _count(method, n):
    """A number of points."""
    try:
        n = index(n)
    except TypeError:
        raise TypeError(f"SobolEngine.{method}: n must be int, got {type(n).__name__}") from None
    if n < 0:
        raise ValueError(f"SobolEngine.{method}: n must not be negative, got {n}")
    return n


class SobolEngine:
    """Points of a Sobol sequence in [0, 1).

    Parameters
    ----------
    dimension : int
        From 1 to 21201.
    scramble : bool, optional
        Whether the sequence is scrambled, so that every seed gives another one.
    seed : int, optional
        The seed of the scrambling; by default a random number.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.quasirandom.SobolEngine(2).draw(3)
    tensor([[0.0000, 0.0000],
            [0.5000, 0.5000],
            [0.7500, 0.2500]])
    """

    MAXBIT = 30
    MAXDIM = 21201

    def __init__(self, dimension, scramble=False, seed=None):
        if dimension > self.MAXDIM or dimension < 1:
            raise ValueError(f"Supported range of dimensionality for SobolEngine is [1, {self.MAXDIM}]")
        self.dimension, self.scramble, self.seed = dimension, scramble, seed
        self.num_generated = 0
        self._engine = self._make()

    def _make(self):
        from ptcore._libraries import library
        qmc = library("scipy.stats.qmc")
        seed = self.seed
        if self.scramble and seed is None:
            from ptcore import randint
            seed = self.seed = int(randint(2**31 - 1, (), device="cpu"))
        return qmc.Sobol(self.dimension, scramble=self.scramble, bits=self.MAXBIT, seed=seed)

    def draw(self, n=1, out=None, dtype=None):
        """The next points: a tensor of shape (n, dimension).

        Parameters
        ----------
        n : int, optional
        out : Tensor, optional
            Where they are written.
        dtype : dtype, optional
            By default the default dtype.
        """
        from numpy import concatenate

        from ptcore import finfo, from_numpy, get_default_dtype
        n = _count("draw", n)
        # SciPy warns if the first points are no power of 2, PyTorch does not: the first point is asked for alone.
        count = min(n, 1) if self._engine.num_generated == 0 else 0
        points = concatenate([self._engine.random(count), self._engine.random(n - count)])
        self.num_generated += n
        dtype = get_default_dtype() if dtype is None else dtype
        found = from_numpy(points).to(dtype)
        if dtype.is_floating_point:
            found.clamp_(max=1 - finfo(dtype).eps / 2)          # a point near 1 is not rounded to it
        if out is None:
            return found
        return out.resize_(found.shape).copy_(found)

    def draw_base2(self, m, out=None, dtype=None):
        """The next 2**m points; the number of all points drawn must stay a power of 2.

        Parameters
        ----------
        m : int
        out, dtype
            As of `draw`.
        """
        n = 2 ** m
        total = self.num_generated + n
        if total & (total - 1):
            raise ValueError("The balance properties of Sobol' points require n to be a power of 2. "
                             f"{self.num_generated} points have been previously generated, then: n={self.num_generated}"
                             f"+2**{m}={total}. If you still want to do this, please use 'SobolEngine.draw()' instead.")
        return self.draw(n, out=out, dtype=dtype)

    def reset(self):
        """Goes back to the first point."""
        self._engine.reset()
        self.num_generated = 0
        return self

    def fast_forward(self, n):
        """Skips the next ``n`` points."""
        n = _count("fast_forward", n)
        if n:
            self._engine.fast_forward(n)
            self.num_generated += n
        return self

    def __repr__(self):
        text = [f"dimension={self.dimension}"]
        if self.scramble:
            text.append("scramble=True")
        if self.seed is not None:
            text.append(f"seed={self.seed}")
        return f"{type(self).__name__}({', '.join(text)})"
