"""Rows that keep the channels-last memory format: values, indices, derivatives and strides in it.

``test_forward.py`` compares these rows with NumPy in this format, too. Here are the derivatives, and larger sizes, whose
row-major results NumPy's references hold.
"""
import itertools

import numpy as np
import pytest
from _cases import ROWS, Sample, array, case_id, cases, dtypes, function
from _specs import F
from _walk import every_case
from test_gradient import differentiable_arguments, is_differentiable, small_cases

import ptcore
from ptcore._memory_format import channels_last, channels_last_3d, is_in
from ptcore.autograd import gradcheck, gradgradcheck

pytestmark = pytest.mark.core

Fn = ptcore.nn.functional
KEPT = [r for r in ROWS.values() if r.keeps == "channels_last"]


def has_format(case):
    return any(has_format(v) if isinstance(v, list) else isinstance(v, F) and len(v.shape) in (4, 5) for v in case)


def flat(arguments):
    """The tensors among arguments."""
    return [t for v in arguments
            for t in (flat(v) if isinstance(v, (list, tuple)) else [v] if isinstance(v, ptcore.Tensor) else [])]


def check_format(t):
    strides = t.shape, t.stride()
    assert is_in(t, channels_last if t.ndim == 4 else channels_last_3d), strides


def last(x):
    """A copy of x with dim 1 innermost, as a leaf."""
    y = x.detach().permute(0, *range(2, x.ndim), 1).contiguous().permute(0, x.ndim - 1, *range(1, x.ndim - 1))
    return y.requires_grad_(x.requires_grad)


@pytest.mark.parametrize("row", [pytest.param(r, id=r.name) for r in KEPT])
def test_results_are_in_the_format(row):
    """Each result of four or five dims, and the values are those of row-major inputs. (Sizes of 1 leave the format of an
    input open.)"""
    with every_case() as tried:
        for dtype, case in itertools.product(dtypes(row), filter(has_format, cases(row))):
            with tried(dtype, case_id(row, case)):
                results = []
                for layout in ("contiguous", "channels_last"):
                    positional, keyword = Sample(row, case, dtype, np.random.default_rng(5)).arguments(layout)
                    made = function(row)(*positional, **keyword)
                    results.append(made if isinstance(made, tuple) else (made,))
                given = [v for v in flat(positional) if not v.is_contiguous() and min(v.shape[1:]) > 1]
                for plain, kept in zip(*results):
                    if any(v.ndim == kept.ndim for v in given) and (row.name != "cat" or len(given) > 1):
                        check_format(kept)
                    close(kept, plain)


@pytest.mark.parametrize("row", [pytest.param(r, id=r.name) for r in KEPT if is_differentiable(r)])
def test_derivatives(row):
    with every_case() as tried:
        for case in filter(has_format, small_cases(row)):
            with tried(case_id(row, case)):
                call, inputs = differentiable_arguments(row, case, "float64", "channels_last")
                assert gradcheck(call, inputs)
                assert gradgradcheck(call, inputs)


def close(got, want, ulps=64):
    """Equal but for the order of sums."""
    assert got.dtype is want.dtype and got.shape == want.shape
    a, b = array(got), array(want)
    if got.dtype.kind not in "fc":
        np.testing.assert_array_equal(a, b)
        return
    eps = ptcore.finfo(got.dtype).eps if got.dtype.itemsize > 2 else ptcore.finfo(got.dtype).eps / 8
    scale = np.abs(b[np.isfinite(b)]).max(initial=0)
    np.testing.assert_allclose(a, b, rtol=ulps * eps, atol=ulps * eps * float(scale))


C = 70
W3, W1 = (4, C // 2, 3, 3), (32, C, 1, 1)
CALLS = {
    "max_pool": lambda x: Fn.max_pool2d(x, 3, 2, 1),
    "max_pool, indices": lambda x: Fn.max_pool2d(x, (2, 3), (2, 1), (0, 1), (2, 1), True, True),
    "adaptive_max": lambda x: Fn.adaptive_max_pool2d(x, (3, 4), True),
    "adaptive_max of 1": lambda x: Fn.adaptive_max_pool2d(x, 1, True),
    "fractional_max": lambda x: Fn.fractional_max_pool2d(x, 2, 4, _random_samples=ptcore.full(
        (x.shape[0], x.shape[1], 2), 0.3, dtype=x.dtype)),
    "avg_pool": lambda x: Fn.avg_pool2d(x, 2),
    "avg_pool, overlaps": lambda x: Fn.avg_pool2d(x, 3, (1, 2), 1, True, False),
    "avg_pool, divisor": lambda x: Fn.avg_pool2d(x, (3, 2), 1, 0, divisor_override=5),
    "adaptive_avg": lambda x: Fn.adaptive_avg_pool2d(x, (3, 4)),
    "adaptive_avg of 1": lambda x: Fn.adaptive_avg_pool2d(x, 1),
    **{mode: lambda x, mode=mode: Fn.interpolate(x, scale_factor=1.7, mode=mode)
       for mode in ("nearest", "nearest-exact", "bilinear", "bicubic", "area")},
    "smaller": lambda x: Fn.interpolate(x, size=(5, 3), mode="bilinear", align_corners=True),
    "pad": lambda x: Fn.pad(x, (1, 2, 0, 1), value=2.5), "pad, cut": lambda x: Fn.pad(x, (-1, 2, 1, -2, 1, 0)),
    **{mode: lambda x, mode=mode: Fn.pad(x, (2, 1, 0, 3), mode) for mode in ("reflect", "replicate", "circular")},
    "batch_norm": lambda x: Fn.batch_norm(x, None, None, numbers(x, x.shape[1]), numbers(x, x.shape[1]), True),
    "batch_norm, evaluation": lambda x: Fn.batch_norm(x, numbers(x, x.shape[1]), numbers(x, x.shape[1])),
    "group_norm": lambda x: Fn.group_norm(x, 5 if x.shape[1] % 5 == 0 else 1, numbers(x, x.shape[1]),
                                          numbers(x, x.shape[1])),
    "pixel_shuffle": lambda x: Fn.pixel_shuffle(ptcore.cat([x, x, x, x], 1), 2),
    "conv": lambda x: Fn.conv2d(x, numbers(x, 24, x.shape[1], 3, 3), numbers(x, 24), padding=1),
    "conv, strides": lambda x: Fn.conv2d(x, numbers(x, 17, x.shape[1], 3, 2), None, (2, 1), (0, 2), (1, 2)),
    "conv of 1": lambda x: Fn.conv2d(x, numbers(x, 33, x.shape[1], 1, 1), numbers(x, 33)),
    "conv of 1, strides": lambda x: Fn.conv2d(x, numbers(x, 16, x.shape[1], 1, 1), None, 2),
    "conv, one filter": lambda x: Fn.conv2d(x, numbers(x, 1, x.shape[1], 3, 3), numbers(x, 1), padding=1),
    "conv, depthwise": lambda x: Fn.conv2d(x, numbers(x, x.shape[1], 1, 3, 3), numbers(x, x.shape[1]), 1, 1, 1,
                                           x.shape[1]),
    "conv, depthwise strides": lambda x: Fn.conv2d(x, numbers(x, x.shape[1], 1, 5, 3), None, 2, (2, 1), 1, x.shape[1]),
    "conv, multiplied": lambda x: Fn.conv2d(x, numbers(x, 2 * x.shape[1], 1, 3, 3), None, 1, 1, 1, x.shape[1]),
    "conv, groups": lambda x: Fn.conv2d(ptcore.cat([x, x], 1), numbers(x, 32, x.shape[1], 3, 3), None, 1, 1, 1, 2),
    "conv_transposed": lambda x: Fn.conv_transpose2d(x, numbers(x, x.shape[1], 18, 3, 3), numbers(x, 18), 2, 1, 1),
    "conv_transposed, gaps": lambda x: Fn.conv_transpose2d(x, numbers(x, x.shape[1], 16, 1, 2), None, (2, 3), 0, 0, 1,
                                                           2),
    "conv_transposed, depthwise": lambda x: Fn.conv_transpose2d(x, numbers(x, x.shape[1], 1, 3, 3), None, 2, 1, 1,
                                                                x.shape[1]),
}
DEEP = {
    "max_pool": lambda x: Fn.max_pool3d(x, 2, 2, 1, return_indices=True), "avg_pool": lambda x: Fn.avg_pool3d(x, 2, 1),
    "adaptive_avg": lambda x: Fn.adaptive_avg_pool3d(x, (2, 3, 1)),
    "trilinear": lambda x: Fn.interpolate(x, scale_factor=2, mode="trilinear"),
    "nearest": lambda x: Fn.interpolate(x, scale_factor=2),
    "pad": lambda x: Fn.pad(x, (1, 0, 2, 1, 0, 1)), "reflect": lambda x: Fn.pad(x, (1, 1, 0, 1, 1, 0), "reflect"),
    "batch_norm": CALLS["batch_norm"], "group_norm": CALLS["group_norm"],
    "conv": lambda x: Fn.conv3d(x, numbers(x, 16, x.shape[1], 2, 3, 2), None, (1, 2, 1), 1),
    "conv_transposed": lambda x: Fn.conv_transpose3d(x, numbers(x, x.shape[1], 16, 2, 2, 2), None, 2),
    "depthwise": lambda x: Fn.conv3d(x, numbers(x, x.shape[1], 1, 2, 3, 3), None, 1, 1, 1, x.shape[1]),
}
# Their gradient is that of a mean of an expanded tensor, and of permutations: its format is that of what comes in.
BY_VIEWS = ("adaptive_avg of 1", "pixel_shuffle")


def numbers(x, *shape):
    """Fixed numbers, positive and of x's dtype; those of four dims are weights, in x's format."""
    rng = np.random.default_rng(sum(shape))
    t = ptcore.from_numpy(rng.uniform(0.5, 1.5, shape)).to(x.dtype)
    return last(t) if t.ndim > 3 and not x.is_contiguous() else t


def walk_over(calls, shapes):
    with every_case() as tried:
        for (name, f), dtype, shape in itertools.product(calls.items(), ("float32", "float64", "bfloat16", "float16"),
                                                         shapes):
            with tried(name, dtype, shape):
                values = np.random.default_rng(3).integers(-9, 9, shape) / 4            # with ties
                plain = ptcore.from_numpy(values).to(getattr(ptcore, dtype)).requires_grad_()
                kept = last(plain)
                results = []
                for x in (plain, kept):
                    out = f(x)
                    first = out[0] if isinstance(out, tuple) else out
                    g = ptcore.arange(first.numel(), dtype=ptcore.float64).reshape(first.shape) % 7 - 2
                    g = g.to(first.dtype)
                    results.append([first, *(out[1:] if isinstance(out, tuple) else ()),
                                    *ptcore.autograd.grad(first, x, last(g) if x is kept else g, retain_graph=True),
                                    *ptcore.autograd.grad(first, x, g, retain_graph=True)])
                for a, b in zip(*results):
                    close(b, a, 512 if "norm" in name or "conv" in name else 64)
                if name != "fractional_max" and not kept.is_contiguous():
                    check_format(results[1][0])
                    if name not in BY_VIEWS:
                        check_format(results[1][-2])


def test_larger():
    walk_over(CALLS, [(2, C, 9, 11), (3, 1, 8, 7), (1, 300, 6, 6)])


def test_of_three_dims():
    walk_over(DEEP, [(2, 20, 3, 5, 6), (1, 3, 4, 4, 3)])


def test_ties_and_nan():
    """The first maximum counts, but the last NaN, as in rows; integers have no NaN."""
    for dtype in ("float32", "float64", "bfloat16", "float16", "int8", "uint8", "int32", "int64"):
        x = ptcore.from_numpy(np.random.default_rng(0).integers(0, 3, (2, 37, 9, 9)))
        x = x.to(getattr(ptcore, dtype))
        if x.dtype.kind == "f":
            x = x.clone()
            x[:, ::3, ::2, 1] = float("nan")
            x[:, 1::3] = -float("inf")
        for settings in ((3, 2, 1), (2, 2), (3, 1, 1, 2), (4, 3, 2, 1, True)):
            for a, b in zip(Fn.max_pool2d(x, *settings, return_indices=True),
                            Fn.max_pool2d(last(x), *settings, return_indices=True)):
                np.testing.assert_array_equal(array(a), array(b))
                check_format(b)


def test_parts_of_the_format():
    """Inputs whose channels are neighbours, but with gaps between positions, and channels with gaps."""
    whole = last(ptcore.arange(2.0 * 40 * 9 * 18).reshape(2, 40, 9, 18) % 23)
    for x in (whole[..., ::2], whole[:, ::2], whole[:, :20, 1:], whole[:1]):
        for f in CALLS.values():
            for a, b in zip(*[y if isinstance(y, tuple) else (y,) for y in (f(x), f(x.contiguous()))]):
                close(a, b, 512)


def test_sums_far_out():
    """Statistics whose float32 sums overflow, or whose squares lose their digits, as in rows."""
    for scale in (1e20, 5e36, 1e-20, 1e-25):
        x = (ptcore.arange(2.0 * 6 * 32 * 32).reshape(2, 6, 32, 32) % 97 - 40) * scale
        for f in (lambda x: Fn.batch_norm(x, None, None, training=True, eps=1e-60), lambda x: Fn.group_norm(x, 3, eps=1e-60)):
            got, want = f(last(x)), f(x)
            assert want.isfinite().all()
            close(got, want)


def test_threads_do_not_matter():
    x = last(ptcore.arange(4.0 * 64 * 33 * 31).reshape(4, 64, 33, 31) % 101)
    before = ptcore.get_num_threads()
    try:
        for name, f in CALLS.items():
            results = []
            for threads in (1, 2):
                ptcore.set_num_threads(threads)
                out = f(x)
                results.append(array(out[0] if isinstance(out, tuple) else out))
            np.testing.assert_array_equal(*results, err_msg=name)
    finally:
        ptcore.set_num_threads(before)
