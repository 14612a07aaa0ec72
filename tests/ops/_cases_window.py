"""Cases of convolution, pooling, padding and resampling; see _cases.py."""
from ptcore._ops.table import schema

POOLABLE = (*schema.INTEGRAL, *schema.REAL)
MEANS = ("int64", *schema.REAL)
TYPES = {
    "conv_tbc": schema.NUMERIC,
    **{f"conv{t}{n}d": schema.NUMERIC for n in (1, 2, 3) for t in ("", "_transpose")},
    **{f"max_pool{n}d": POOLABLE for n in (1, 2, 3)}, **{f"adaptive_max_pool{n}d": POOLABLE for n in (1, 2, 3)},
    **{f"avg_pool{n}d": MEANS for n in (1, 2, 3)}, **{f"adaptive_avg_pool{n}d": MEANS for n in (1, 2, 3)},
    **{f"lp_pool{n}d": ("float32", "float64") for n in (1, 2, 3)},
    "im2col": (*schema.BOOL, *schema.REAL, *schema.COMPLEX),
    "col2im": (*schema.BOOL, *schema.REAL, *schema.COMPLEX),
    "interpolate": schema.REAL,
}


def cases(F, I):  # noqa: E741
    positive = ("uniform", 0.5, 3)
    one, two, three = (1,), (1, 1), (1, 1, 1)
    convolve = [
        [F(2, 2, 5), F(3, 2, 2), F(3), one, (0,), one, 1, (4,)],
        [F(1, 2, 5), F(2, 1, 3), None, (2,), (1,), one, 2, (3,)],
        [F(1, 2, 4, 3), F(2, 1, 2, 2), None, (2, 1), (1, 0), (1, 2), 2, (2, 1)],
        [F(1, 1, 4, 4), F(2, 1, 2, 2), F(2), two, two, two, 1, (4, 4)],
        [F(2, 3, 9, 8), F(4, 3, 3, 3), F(4), two, two, two, 1, (9, 8)],
        [F(1, 1, 2, 3, 2), F(2, 1, 2, 2, 1), F(2), three, (0, 1, 0), three, 1, (1, 4, 2)],
        [F(0, 2, 3), F(3, 2, 2), None, one, (0,), one, 1, (2,)]]
    transposed = [
        [F(2, 3, 4), F(3, 2, 2), F(2), one, (0,), one, 1, (5,)],
        [F(1, 2, 3), F(2, 1, 3), None, (2,), (1,), one, 2, (6,)],
        [F(1, 2, 2, 1), F(2, 1, 2, 2), None, (2, 1), (1, 0), (1, 2), 2, (3, 3)],
        [F(2, 4, 5, 4), F(4, 3, 3, 3), F(3), (2, 2), two, two, 1, (10, 8)],
        [F(1, 1, 2, 2, 1), F(1, 2, 2, 1, 2), None, three, (0, 0, 0), three, 1, (3, 2, 2)]]
    weight = [
        [F(2, 2, 5), F(2, 3, 4), one, (0,), one, 1, (2,)], [F(1, 2, 5), F(1, 2, 3), (2,), (1,), one, 2, (3,)],
        [F(1, 2, 4, 3), F(1, 2, 2, 1), (2, 1), (1, 0), (1, 2), 2, (2, 2)],
        [F(2, 3, 9, 8), F(2, 4, 9, 8), two, two, two, 1, (3, 3)], [F(0, 2, 3), F(0, 3, 2), one, (0,), one, 1, (2,)]]
    table = {
        "convolve": convolve, "convolve_transposed": transposed, "convolve_weight": weight,
        "conv_tbc": [[F(5, 2, 3), F(2, 3, 4), F(4)], [F(2, 1, 2), F(3, 2, 1), F(1), 1]],
        "conv1d": [[F(2, 2, 5), F(3, 2, 2), F(3)], [F(2, 5), F(2, 1, 3), None, 2, 1, 1, 2],
                   [F(1, 2, 5), F(1, 2, 2), None, 1, "same"]],
        "conv2d": [[F(1, 2, 4, 3), F(2, 2, 2, 2), F(2)], [F(2, 4, 4), F(2, 1, 3, 2), None, (2, 1), (1, 0), 1, 2],
                   [F(1, 1, 4, 5), F(2, 1, 3, 3), None, 1, "same", 2]],
        "conv3d": [[F(1, 1, 2, 3, 3), F(2, 1, 2, 2, 1), F(2)],
                   [F(2, 2, 2, 2), F(2, 1, 1, 2, 1), None, 1, (0, 1, 0), 1, 2]],
        "conv_transpose1d": [[F(2, 3, 4), F(3, 2, 2), F(2)], [F(2, 3), F(2, 1, 3), None, 2, 1, 1, 2]],
        "conv_transpose2d": [[F(1, 2, 3, 2), F(2, 2, 2, 2), F(2)],
                             [F(2, 2, 3), F(2, 1, 2, 2), None, 2, (1, 0), (1, 0), 2],
                             [F(1, 1, 2, 2), F(1, 2, 2, 2), None, 1, 0, 1, 1, 2]],
        "conv_transpose3d": [[F(1, 1, 2, 2, 2), F(1, 2, 2, 1, 2), F(2)],
                             [F(2, 1, 2, 2), F(2, 1, 1, 2, 1), None, (1, 2, 1), 0, 0, 2]],
        "max_pool_windows": [
            [F(2, 2, 7), (3,), (2,), (1,), one, (4,)], [F(1, 2, 4, 5), (2, 3), (2, 1), (0, 1), (1, 2), (2, 3)],
            [F(2, 2, 9, 20), (3, 3), (1, 1), (1, 1), two, (9, 20)],
            [F(1, 2, 5, 20), (2, 2), (2, 2), (0, 0), two, (2, 10)],
            [F(1, 1, 3, 4, 4), (2, 2, 2), (1, 2, 2), (0, 0, 0), three, (2, 2, 2)],
            [F(1, 2, 5, 4), (), (), (), (), (3, 2)],
            [F(1, 1, 4, 30), (2, 2), (1, 3), (0, 0), two, (3, 10)]],
        "max_pool_backward": [
            [F(2, 2, 4), I([[[0, 1, 3, 6], [1, 1, 4, 6]], [[0, 2, 2, 2], [5, 4, 3, 0]]]), (7,)],
            [F(1, 2, 2, 2), I([[[[0, 5], [5, 8]], [[11, 1], [7, 7]]]]), (3, 4)],
            [F(1, 1, 1, 2, 2), I([[[[[0, 3], [3, 7]]]]]), (2, 2, 2)]],
        "max_pool1d": [[F(2, 2, 7), 3], [F(2, 7), 3, 2, 1, 1, True], [F(1, 2, 7), 2, 1, 0, 2, False, True]],
        "max_pool2d": [[F(1, 2, 5, 4), 2], [F(2, 5, 5), (3, 2), (2, 1), (1, 0)],
                       [F(1, 2, 5, 5), 2, None, 0, 1, True, True]],
        "max_pool3d": [[F(1, 1, 3, 4, 4), 2], [F(1, 2, 4, 4), (1, 2, 2), 1, 0, 1, False, True]],
        "adaptive_max_pool1d": [[F(2, 2, 7), 3], [F(2, 6), 2, True]],
        "adaptive_max_pool2d": [[F(1, 2, 5, 4), (3, 2)], [F(2, 5, 4), (None, 2)], [F(1, 1, 6, 4), 2, True]],
        "adaptive_max_pool3d": [[F(1, 1, 3, 4, 2), (2, 3, None)], [F(1, 4, 2, 2), 1, True]],
        "mean_pool": [
            [F(2, 2, 7), (3,), (2,), (1,), (4,), True, None],
            [F(1, 2, 4, 5), (2, 3), (2, 1), (0, 1), (2, 5), False, None],
            [F(2, 1, 9, 20), (3, 3), (1, 1), (1, 1), (9, 20), False, None],
            [F(1, 1, 4, 20), (2, 2), (2, 2), (0, 0), (2, 10), True, 3],
            [F(1, 1, 3, 4, 4), (2, 2, 2), (1, 2, 2), (0, 0, 0), (2, 2, 2), True, None],
            [F(1, 2, 5, 4), (), (), (), (3, 3), True, None]],
        "mean_pool_transposed": [
            [F(2, 2, 4), (3,), (2,), (1,), (7,), True, None],
            [F(1, 2, 2, 5), (2, 3), (2, 1), (0, 1), (4, 5), False, None],
            [F(2, 1, 9, 20), (3, 3), (1, 1), (1, 1), (9, 20), False, None],
            [F(1, 1, 2, 2, 2), (2, 2, 2), (1, 2, 2), (0, 0, 0), (3, 4, 4), True, 5],
            [F(1, 2, 3, 3), (), (), (), (5, 4), True, None]],
        "avg_pool1d": [[F(2, 2, 7), 3], [F(2, 7), 3, 2, 1, True, False]],
        "avg_pool2d": [[F(1, 2, 5, 4), 2], [F(2, 5, 5), (3, 2), (2, 1), (1, 0), False, False],
                       [F(1, 2, 5, 5), 2, None, 1, True, True, 3]],
        "avg_pool3d": [[F(1, 1, 3, 4, 4), 2], [F(1, 3, 3, 3), (3, 2, 2), 2, 1, True, False]],
        "adaptive_avg_pool1d": [[F(2, 2, 7), 3], [F(2, 6), 2]],
        "adaptive_avg_pool2d": [[F(1, 2, 5, 4), (3, 2)], [F(2, 5, 4), (None, 2)]],
        "adaptive_avg_pool3d": [[F(1, 1, 3, 4, 2), (2, 3, None)], [F(1, 4, 2, 2), 2]],
        "lp_pool1d": [[F(2, 2, 7, domain=positive), 2.0, 3], [F(2, 7, domain=positive), 3.0, 2, 1, True]],
        "lp_pool2d": [[F(1, 2, 5, 4, domain=positive), 2.0, 2], [F(2, 4, 4, domain=positive), 1.5, (3, 2), 1]],
        "lp_pool3d": [[F(1, 1, 2, 4, 4, domain=positive), 2.0, 2]],
        "max_unpool1d": [[F(1, 2, 2), I([[[1, 2], [0, 3]]]), 2], [F(1, 2), I([[0, 4]]), 2, 2, 0, (5,)]],
        "max_unpool2d": [[F(1, 1, 2, 2), I([[[[0, 2], [9, 15]]]]), 2], [F(1, 1, 2), I([[[3, 5]]]), 2, 2, 0, (3, 4)]],
        "max_unpool3d": [[F(1, 1, 1, 1, 2), I([[[[[3, 9]]]]]), 2]],
        "pad_constant": [[F(2, 3), (1, 2), 1], [F(2, 3), (1, 0, -1, 2), 0], [F(3, 4), (-1, -1), 0], [F(), (), 1],
                         [F(2, 2, 3), (0, 1, 1, 0, 2, 0), 2], [F(2, 3, 2, 3), (1, 0, -1, 2, 0, 1), 3],
                         [F(1, 2, 2, 3, 2), (0, 1, 1, -1, 2, 0), 0]],
        "pad_edges": [[F(2, 4), (2, 1), "reflect"], [F(1, 3, 4), (2, 1, 1, 2), "replicate"],
                      [F(2, 3), (3, 2), "circular"],
                      [F(1, 2, 3, 2), (1, 0, 2, 1, 0, 1), "reflect"], [F(3), (0, 2), "replicate"],
                      [F(1, 2, 2, 3, 2), (1, 0, 2, 1, 0, 1), "circular"]],
        "pad_edges_transposed": [[F(2, 7), (2, 1), "reflect"], [F(1, 6, 7), (2, 1, 1, 2), "replicate"],
                                 [F(2, 8), (3, 2), "circular"], [F(4, 5, 3), (1, 0, 2, 0, 0, 1), "reflect"],
                                 [F(2, 2, 3, 4), (1, 1, 0, 1), "reflect"],
                                 [F(1, 3, 3, 2, 3), (1, 0, 1, 0, 0, 2, 0, 1), "replicate"]],
        "pad": [[F(2, 3), (1, 2)], [F(2, 4), (2, -1), "reflect"], [F(1, 3, 4), (2, 1, 1, 2), "reflect"],
                [F(2, 3), (3, 2), "replicate"], [F(1, 2, 3, 4), (1, 4, 2, 0), "circular"],
                [F(1, 2, 3, 2), (1, 1, -1, 2), "replicate"],
                [F(2, 3), (1, 0, 2, -1), "constant", 3]],
        "unfold_windows": [[F(1, 2, 4, 5), (2, 3), (1, 1), (0, 0), (1, 1), (3, 3)],
                           [F(2, 1, 4, 4), (2, 2), (2, 1), (1, 0), (2, 3), (2, 1)]],
        "fold_windows": [[F(1, 8, 6), (2, 2), (1, 1), (0, 0), (1, 1), (2, 3), (3, 4)],
                         [F(2, 4, 2), (2, 2), (2, 1), (1, 0), (2, 3), (2, 1), (4, 4)]],
        "im2col": [[F(1, 2, 4, 4), 2], [F(2, 4, 4), (2, 1), 1, (1, 0), 2]],
        "col2im": [[F(1, 8, 6), (3, 4), 2], [F(4, 12), (4, 3), (2, 2), 2, (1, 1), 1]],
        "pixel_shuffle": [[F(1, 8, 2, 3), 2], [F(4, 2, 2), 2]],
        "pixel_unshuffle": [[F(1, 2, 4, 2), 2], [F(1, 4, 6), 2]],
        "channel_shuffle": [[F(2, 6, 3), 2], [F(1, 4, 2, 2), 4]],
        "interpolate": [[F(1, 2, 3), 5], [F(1, 2, 3), None, 2.0, "linear"],
                        [F(1, 1, 3, 4), (5, 3), None, "bilinear", True],
                        [F(1, 1, 4, 4), None, (1.5, 0.7), "bicubic"], [F(1, 1, 3, 4), 6, None, "nearest-exact"],
                        [F(1, 1, 2, 3, 2), 3, None, "trilinear"], [F(1, 1, 4, 5), (2, 3), None, "area"],
                        [F(1, 2, 3), 3]],
    }
    for name, modes in (("resample", (("nearest", False), ("nearest-exact", False))),
                        ("resample_transposed", (("nearest", False),))):
        small, large = (3, 7) if name == "resample" else (7, 3)
        table[name] = [[F(2, small, 2), 1, large, mode, align, 0.0] for mode, align in modes]
    for name in ("resample", "resample_transposed"):
        table[name] += [[F(2, 2, 3, 4), 3, 5, "linear", False, 0.0], [F(1, 3, 3, 2), 2, 4, "cubic", True, 0.0],
                        [F(1, 2, 2, 3, 2), 3, 2, "linear", True, 0.0], [F(1, 2, 2, 3, 2), 2, 4, "nearest", False, 0.0],
                        [F(1, 3, 2, 2), 1, 2, "linear", False, 0.0]]
    for name in ("filtered", "filtered_transposed"):
        table[name] = [[F(2, 7), 1, 3, "linear", False, 0.0], [F(1, 2, 9, 3), 2, 4, "cubic", False, 0.0],
                       [F(2, 3), 1, 8, "cubic", False, 0.0], [F(1, 5, 2, 2), 1, 2, "linear", True, 0.0],
                       [F(1, 2, 3, 7), 3, 4, "cubic-taps", False, 0.0]]
    table["filtered"] += [[F(1, 1, 12, 20), 2, 3, "linear", False, 0.25]]
    table["resample"] += [[F(2, 7), -1, 3, "nearest", False, 0.0], [F(5), 0, 6, "nearest", False, 1.3]]
    return table
