"""Cases of attention, sampling at positions and bilinear maps; see _cases.py."""
import numpy as np
from _references_attention import attention
from _specs import I

from ptcore._ops.table import schema

TYPES = {"scaled_dot_product_attention": schema.REAL, "keep_mask": ("int64",), "grid_sample": schema.REAL,
         **dict.fromkeys(("grid_sampler", "grid_sampler_2d", "grid_sampler_3d"), schema.REAL),
         "affine_grid": schema.REAL, "bilinear": schema.NUMERIC,
         "multi_head_attention_forward": ("float32", "float64")}


def keys(*shape):
    """A mask of which keys count; the last query of the first head sees none."""
    values = np.random.default_rng(3).random(shape) < 0.7
    values[(0,) * (len(shape) - 2)][-1] = False
    return I(values)


def cases(F, Of):
    def backward(query, key, value, mask, keep, causal, scale, scores):
        """Output and log-sum-exp are worked out of what was drawn."""
        n, h, length = query.shape[:3]

        def made(k):
            return Of(lambda *drawn: attention(*drawn[1:6], causal, scale)[k])
        return [F(n, h, length, value.shape[3]), query, key, value, mask, keep, None, made(0), made(1), causal, scale,
                0.0, scores]

    around = ("uniform", -1.4, 1.4)
    ways = [(mode, padding, corners) for mode in ("bilinear", "nearest", "bicubic")
            for padding in ("zeros", "border", "reflection") for corners in (False, True)]
    flat = [[F(1, 2, 3, 4), F(1, 3, 2, 2, domain=around), *way] for way in ways]
    deep = [[F(2, 1, 2, 3, 4), F(2, 1, 2, 2, 3, domain=around), *way] for way in ways[:12]]

    def heads(query, keys, bias, more, zero, *rest):
        """Of 2 heads, with dropout 0. Small numbers: softmax of large ones is all rounding in half precision."""
        def small(*shape):
            return F(*shape, domain=("uniform", -1, 1))
        n = query[-1]
        extra = small(1, 1, n) if more else None, small(1, 1, n) if more else None
        return [small(*query), small(*keys), small(*keys), n, 2, small(3 * n, n), small(3 * n) if bias else None,
                *extra, zero, 0.0, small(n, n), small(n) if bias else None, *rest]

    return {
        "multi_head_attention_forward": [
            heads((2, 2, 2), (3, 2, 2), True, False, False),
            heads((3, 2), (2, 2), False, False, True, True, None, True, F(3, 2), False, *[None] * 5, False),
            heads((2, 2, 2), (3, 2, 2), True, True, False, True, I([[False, True, False], [False, False, True]])),
            heads((3, 1, 4), (3, 1, 4), True, False, False, False, None, True, I(np.tri(3) == 0))],
        "grid_sampled": [*flat, *deep, [F(1, 2, 1, 1), F(1, 2, 2, 2, domain=around), "bilinear", "reflection", True],
                         [F(0, 2, 3, 3), F(0, 2, 2, 2), "bilinear", "zeros", False],
                         [F(1, 2, 3, 3), F(1, 0, 2, 2), "bilinear", "zeros", False]],
        "grid_sample_backward": [[F(*case[0].shape[:2], *case[1].shape[1:-1]), *case] for case in (*flat, *deep)],
        "grid_sample": [flat[0][:2], flat[3], deep[9]],
        "grid_sampler": [[*flat[0][:2], 0, 0, False], [*deep[0][:2], 1, 1, True]],
        "grid_sampler_2d": [[*flat[0][:2], 2, 2, True]],
        "grid_sampler_3d": [[F(1, 1, 2, 2, 3), F(1, 1, 1, 3, 3, domain=around), 0, 2, False]],
        "affine_grid": [[F(2, 2, 3), (2, 1, 3, 4)], [F(1, 2, 3), (1, 3, 1, 2), True], [F(2, 3, 4), (2, 1, 2, 3, 1)],
                        [F(1, 3, 4), (1, 1, 2, 2, 2), True]],
        "bilinear": [[F(5, 3), F(5, 4), F(2, 3, 4), F(2)], [F(3), F(2), F(2, 3, 2)],
                     [F(2, 3, 2), F(2, 3, 2), F(1, 2, 2), None]],
        "attention_stats": [
            [F(2, 2, 3, 4), F(2, 2, 5, 4), F(2, 2, 5, 3), None, None, None, False, 0.5, 0.0],
            [F(1, 2, 4, 3), F(1, 1, 4, 3), F(1, 1, 4, 3), None, None, None, True, 0.7, 0.0],
            [F(1, 2, 3, 4), F(1, 2, 2, 4), F(1, 2, 2, 4), F(1, 2, 3, 2), None, None, False, 0.5, 0.0],
            [F(2, 1, 3, 2), F(2, 1, 3, 2), F(2, 1, 3, 2), None, keys(2, 1, 3, 3), None, False, 1.0, 0.0],
            [F(1, 1, 70, 5), F(1, 1, 150, 5), F(1, 1, 150, 3), None, None, None, True, 0.4, 0.0],
            [F(1, 2, 0, 2), F(1, 1, 3, 2), F(1, 1, 3, 2), None, None, None, False, 1.0, 0.0]],
        "attention_backward": [
            backward(F(2, 2, 3, 4), F(2, 2, 5, 4), F(2, 2, 5, 3), None, None, False, 0.5, False),
            backward(F(1, 2, 4, 3), F(1, 1, 4, 3), F(1, 1, 4, 3), None, None, True, 0.7, True),
            backward(F(1, 2, 3, 4), F(1, 2, 2, 4), F(1, 2, 2, 4), F(1, 2, 3, 2), None, False, 0.5, True),
            backward(F(2, 1, 3, 2), F(2, 1, 3, 2), F(2, 1, 3, 2), None, keys(2, 1, 3, 3), False, 1.0, True),
            backward(F(1, 2, 70, 5), F(1, 1, 150, 5), F(1, 1, 150, 3), None, None, True, 0.4, True)],
        "keep_mask": [[I([1, 2]), 0.3, (3, 7)], [I([-5, 2**40]), 0.5, (2, 2, 130)], [I([0, 0]), 0.0, (5,)],
                      [I([0, 0]), 1.0, (0, 3)]],
        "scaled_dot_product_attention": [
            [F(2, 2, 3, 4), F(2, 2, 5, 4), F(2, 2, 5, 3)], [F(3, 4), F(2, 4), F(2, 1), None, 0.0, True],
            [F(2, 3, 4), F(1, 3, 4), F(2, 3, 4), F(3, 3)],
            [F(1, 2, 1, 3, 2), F(2, 2, 2), F(1, 2, 2), keys(2, 1, 2), 0.0, False, 0.3],
            [F(1, 4, 3, 2), F(1, 2, 3, 2), F(1, 1, 3, 2), None, 0.0, True, None, True]],
    }
