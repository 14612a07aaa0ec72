"""Rules of transforms between real numbers and spectra.

A half spectrum represents a full one. Each entry also stands for its conjugate, except the first, and the last if the
number of points is even. So the transpose of the real-to-half transform is the inverse transform of the entries with
weight 1/2 for those that stand for two. The transpose of the inverse transform is the forward transform with weight 2
for those entries. The inverse transform does not read the imaginary parts of entries that stand for themselves alone.
"""
from ptcore._ops.creation.creation import full, ones
from ptcore._ops.functions import _fft_c2c, _fft_c2r, _fft_r2c, cat, mul, real, reshape
from ptcore.autograd.rules import vjp


def weighted(x, dim, n, weight):
    """The half spectrum x of n points, with entries that stand for two multiplied by ``weight``."""
    inner = (n - 1) // 2
    if not inner:
        return x
    one = ones(1, dtype=x.dtype, device=x.device)
    parts = [one, full((inner,), weight, dtype=x.dtype, device=x.device)]
    if n % 2 == 0:
        parts.append(one)
    return mul(x, reshape(cat(parts), (-1, *[1] * (len(x.shape) - 1 - dim))))


@vjp("_fft_r2c")
def r2c(g, input, dim, normalization, onesided, forward):
    if not onesided:
        return real(_fft_c2c(g, dim, normalization, not forward))
    n = input.shape[dim[-1]]
    return _fft_c2r(weighted(g, dim[-1], n, 0.5), dim, normalization, n, not forward)


@vjp("_fft_c2r")
def c2r(g, dim, normalization, last_dim_size, forward):
    return weighted(_fft_r2c(g, dim, normalization, True, not forward), dim[-1], last_dim_size, 2.0)
