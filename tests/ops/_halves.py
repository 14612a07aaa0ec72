"""Rows in half types beside the same rows in float64: samples at several sizes and scales, and what is compared.

What a row has to give in a half type is what it gives in float64 for the same numbers, rounded once: within two units
of the half type at the result, or within 1e-6 of the terms that the result is the sum of. The terms are not known; how
the result in float64 moves when every number moves by 1e-6 of itself, up or down by chance, shows their size. What
the row loses in float32 itself, as digits or beyond its range, is none of the half type's: twice that is allowed.
"""
import numpy as np
from _cases import CASES, Sample, cases, function
from _specs import B, C, F, I, Of
from test_gradient import UNRECORDED

import ptcore as pt
from ptcore.func import jvp

HALVES = ("float16", "bfloat16")
SCALES = (1e-7, 1e-4, 1.0, 300.0, 6e4)
LARGE = 70_000
MOST = 300_000          # elements of a large sample, and of its results
# (bits of the fraction, exponent of the smallest normal number, the largest number)
FORMATS = {"float16": (10, -14, 65504.0), "bfloat16": (7, -126, 3.3895313892515355e38)}


def unit(values, dtype):
    """The distance of a half type's numbers at values."""
    digits, least, largest = FORMATS[dtype]
    size = np.clip(np.abs(values), 2.0**least, largest)
    return 2.0 ** (np.floor(np.log2(size)) - digits)


def is_near(got, want, dtype, slack=0.0):
    """Which elements of got, numbers of a half type, are want in that type, to two units or to ``slack``."""
    largest = FORMATS[dtype][2]
    room = np.maximum(2 * unit(want, dtype), slack)
    with np.errstate(invalid="ignore"):
        inside = np.abs(np.clip(got, -largest, largest) - np.clip(want, -largest, largest)) <= room
    return np.where(np.isnan(want), np.isnan(got), inside & ~np.isnan(got))


# -- samples -----------------------------------------------------------------------------------------------------------

def scaled(spec, row, scale):
    """The spec of data whose largest numbers are of the size ``scale``."""
    if isinstance(spec, (list, tuple)) and spec and isinstance(spec[0], F):
        return type(spec)([scaled(s, row, scale) for s in spec])
    if not isinstance(spec, F) or isinstance(spec, C) or scale == 1:
        return spec
    kind, low, high = spec.domain or row.sample or ("uniform", -3, 3)
    factor = scale / max(abs(low), abs(high))
    return type(spec)(*spec.shape, domain=(kind, low * factor, high * factor))


def enlarged(case):
    """The case with one of its sizes replaced by LARGE, for each size that occurs."""
    def sizes(spec):
        if isinstance(spec, F):
            return [n for n in spec.shape if n > 1]
        return [n for s in spec for n in sizes(s)] if isinstance(spec, (list, tuple)) else []

    def replaced(spec, n):
        if isinstance(spec, (F, B)):
            shape = [LARGE if m == n else m for m in spec.shape]
            return type(spec)(*shape, domain=spec.domain) if isinstance(spec, F) else B(*shape)
        if isinstance(spec, I):
            return I(np.resize(spec.values, [LARGE if m == n else m for m in spec.values.shape]))
        if isinstance(spec, (list, tuple)):
            return type(spec)([replaced(s, n) for s in spec])
        return spec

    def total(spec, n):
        if isinstance(spec, (list, tuple)):
            return sum(total(s, n) for s in spec)
        shape = spec.values.shape if isinstance(spec, I) else spec.shape if isinstance(spec, (F, B)) else ()
        return int(np.prod([LARGE if m == n else m for m in shape], dtype=float))

    found = [n for n in sorted(set(sizes(case))) if total(list(case), n) <= MOST]
    for n in found[-2:]:
        yield replaced(list(case), n)


def call_of(row, sample):
    """(a function of the tensors of floating-point numbers, these tensors)."""
    positional, keyword = sample.arguments()
    names = [a.name for a in sample.args if a.keyword_only]
    flat, tensors = [*positional, *keyword.values()], []

    def visit(value):
        if isinstance(value, tuple):
            return tuple([visit(v) for v in value])
        if isinstance(value, pt.Tensor) and value.dtype.kind == "f":
            tensors.append(value)
            return len(tensors) - 1, visit          # a place
        return value

    def put(value, given):
        if isinstance(value, tuple):
            return given[value[0]] if value[1:] == (visit,) else tuple([put(v, given) for v in value])
        return value

    flat = [visit(v) for v in flat]

    def call(*given):
        args = [put(v, given) for v in flat]
        n = len(positional)
        found = function(row)(*args[:n], **dict(zip(names, args[n:])))
        if row.name == "recurrent_layer":
            found = found[:2]
        elif (row.internal and row.fields and row.name.endswith("_stats")) or row.name in UNRECORDED:
            found = found[0]
        return tuple([y for y in (found if isinstance(found, (tuple, list)) else (found,))
                      if isinstance(y, pt.Tensor) and y.dtype.kind == "f"])
    return call, tensors, [k for k, x in enumerate(tensors) if is_data(sample, k)]


def is_data(sample, k):
    """Whether the k-th tensor of numbers of a sample is data that has a gradient."""
    found = []

    def visit(spec):
        if isinstance(spec, (list, tuple)):
            for s in spec:
                visit(s)
        elif isinstance(spec, (F, Of)):
            found.append(isinstance(spec, F) and not isinstance(spec, C))
    order = [s for s, a in zip(sample.case, sample.args) if not a.keyword_only]
    order += [s for s, a in zip(sample.case, sample.args) if a.keyword_only]
    visit(order)
    return k < len(found) and found[k]


def samples(row, dtype, large):
    """(words, sample) of a row: its cases at all scales."""
    given = [c for c in cases(row) if 0 < size_of(c)]
    if large:
        given = [c for case in given[:1] for c in enlarged(case)]
    else:
        given = given[:3]
    for number, case in enumerate(given):
        for scale in (1e-4, 1.0, 300.0) if large else SCALES:
            specs = [scaled(s, row, scale) for s in case]
            yield f"{dtype} case {number} scale {scale:g}", specs
        data = [k for k, s in enumerate(case) if isinstance(s, F)]
        if len(data) > 1 and not large and row.kind == "elementwise":
            for k in data:
                for scale in (1e-4, 300.0, 6e4):
                    specs = [scaled(s, row, scale) if j == k else s for j, s in enumerate(case)]
                    yield f"{dtype} case {number} scale {scale:g} of argument {k}", specs


def size_of(case):
    if isinstance(case, (list, tuple)):
        return sum(size_of(s) for s in case)
    return int(np.prod(case.shape)) if isinstance(case, F) else 0


# -- what is compared --------------------------------------------------------------------------------------------------

def wide(x):
    return x.detach().to(pt.float64)


def differentiate(call, tensors, live, weights, tangents, what):
    """{"value" or the name of a derivative: arrays} of a call."""
    found = {}
    if "value" in what:
        with pt.no_grad():
            found["value"] = call(*tensors)
    for name in {"gradient", "recorded"} & set(what):
        leaves = [x.detach().clone().requires_grad_(k in live) for k, x in enumerate(tensors)]
        results = call(*leaves)
        pairs = [(y, g) for y, g in zip(results, weights) if y.requires_grad]
        if pairs and live:
            gs = pt.autograd.grad([y for y, _ in pairs], [leaves[k] for k in live],
                                  [g.to(y.dtype) for y, g in pairs], allow_unused=True,
                                  create_graph=name == "recorded")
            found[name] = tuple([pt.zeros(()) if g is None else g for g in gs])
    if "tangent" in what and live:
        def moving(*xs):
            given = list(tensors)
            for k, x in zip(live, xs):
                given[k] = x
            return call(*given)
        primals = tuple([tensors[k] for k in live])
        _, ts = jvp(moving, primals, tuple([t.to(x.dtype) for t, x in zip(tangents, primals)]))
        found["tangent"] = ts
    return {k: [wide(y).numpy() for y in v] for k, v in found.items()}


def rounded_to(x, dtype):
    return x.to(getattr(pt, dtype)).to(pt.float64)


def compare(row, dtype, words, specs, large=False, differentiable=True):
    """(number of comparisons, [(what, words, text)] of what is not near)."""
    rng = np.random.default_rng(7)
    try:
        sample = Sample(row, specs, dtype, rng)
        call, tensors, live = call_of(row, sample)
        if large and any(y.numel() > MOST for y in call(*[x.to("meta") for x in tensors])):
            return 0, []
        exact = [wide(x) for x in tensors]
        results = call(*exact)
    except Exception:
        if large or "scale 1 " not in f"{words} ":
            return 0, []            # the row does not take such a sample
        raise
    if not results or not tensors or len(results) > 100:         # so many are views of one tensor
        return 0, []
    half = getattr(pt, dtype)
    weights = [rounded_to(pt.from_numpy(np.asarray(rng.uniform(-1, 1, tuple(y.shape)))), dtype) for y in results]
    moves = [rounded_to(pt.from_numpy(np.asarray(rng.uniform(-1, 1, tuple(tensors[k].shape)))), dtype) for k in live]
    what = ("value", "gradient", *(() if large else ("recorded",)), "tangent") if differentiable else ("value",)
    want = differentiate(call, exact, live, weights, moves, what)
    got = differentiate(call, tensors, live, weights, moves, what)
    types = [y.dtype for y in call(*tensors)]
    failed, tried, moved, single = [], 0, None, None
    for name, values in want.items():
        for k, (w, g) in enumerate(zip(values, got.get(name, ()))):
            if name in ("value", "tangent") and types[k] is not half:
                continue                # statistics, which are float32
            if name in ("gradient", "recorded") and tensors[live[k]].dtype is not half:
                continue
            tried += 1
            good = is_near(g, w, dtype)
            if not good.all():
                if moved is None:
                    moved = perturbed(call, exact, live, weights, moves, what)
                    single = differentiate(call, [x.to(pt.float32) for x in exact], live, weights, moves, what)
                with np.errstate(invalid="ignore"):
                    slack = np.nan_to_num(np.abs(moved[name][k] - w))
                    # chance may leave one sum where it is: it takes its neighbours' word
                    slack = np.maximum(slack, np.median(slack))
                    slack = np.maximum(slack, 2 * np.nan_to_num(np.abs(single[name][k] - w), nan=np.inf))
                good = is_near(g, w, dtype, slack) | np.isnan(g) & np.isnan(single[name][k])
            if not good.all():
                at = np.argmin(good.reshape(-1))
                failed.append((name, words, f"{k}: {np.asarray(g).reshape(-1)[at]:.6g} for "
                                            f"{np.asarray(w).reshape(-1)[at]:.6g}, {(~good).sum()} of {good.size}"))
    return tried, failed


def perturbed(call, exact, live, weights, moves, what):
    rng = np.random.default_rng(9)

    def moved(x):
        return x * pt.from_numpy(np.asarray(1 + 1e-6 * rng.choice([-1.0, 1.0], tuple(x.shape))))
    return differentiate(call, [moved(x) for x in exact], live, [moved(x) for x in weights],
                         [moved(x) for x in moves], what)


__all__ = ["CASES", "HALVES", "compare", "samples"]
