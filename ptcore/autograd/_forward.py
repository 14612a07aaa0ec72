"""Forward mode: the tangent of an op's result from the tangents of its arguments.

``jvp`` reads the same columns as the backward: partials, kinds, texts. It evaluates them with ops, so a tangent can be
differentiated, traced or batched again. A tangent has the shape and dtype of its primal; None stands for zero. This
file does not know how tensors are paired with tangents.
"""
import functools
import importlib

import ptcore._ops as ops
from ptcore._ops.calling import run
from ptcore._ops.creation.creation import ones_like, zeros_like
from ptcore._ops.functions import sum as sum_of
from ptcore._ops.halves import half_type, widened
from ptcore._ops.table import expr
from ptcore._ops.table.evaluate import evaluated
from ptcore._tensor import Tensor
from ptcore.autograd import helpers, rules
from ptcore.autograd.helpers import conj_of, lift, smaller_form


def jvp(op, args, tangents, out):
    """The tangent of an op's result.

    Parameters
    ----------
    op : int or str
        Its id or its name.
    args, tangents : tuple
        The arguments in signature order, and in the same places their tangents: a tensor, a tuple for
        a sequence of tensors, or None.
    out : Tensor or tuple of Tensors
        The result of the op for ``args``.

    Returns
    -------
    tangent : Tensor, None, or a tuple of them
        NotImplemented where the row says to decompose, or where a fused gradient has a form of smaller ops.

    Raises
    ------
    NotImplementedError
        If the op has a gradient but no forward rule.
    """
    row = ops.row(op)
    rule = row.jvp
    several = isinstance(out, tuple)
    if rule == "decompose":
        return NotImplemented
    if rule is None and row.kind == "structured":
        raise NotImplementedError(f"{row.name}: there is no forward derivative")
    continuous = [o.dtype.kind in "fc" for o in (out if several else (out,))]
    if rule is None and any(map(_is_live, tangents)) and smaller_form(op) is not None:
        return NotImplemented
    if rule is None or not any(continuous) or not any(_is_live(t) for t in tangents):
        return (None,) * len(out) if several else None
    if callable(rule):
        return rule(args, tangents, out)
    result = _tangent(row, rule, args, tangents, out)
    if not several:
        return _fitted(result, out)
    if not isinstance(result, tuple):
        result = (result, *[None] * (len(out) - 1))
    return tuple([_fitted(t, o) if c else None for t, o, c in zip(result, out, continuous)])


def _tangent(row, rule, args, tangents, out):
    """The tangent before it is fitted. With half types it is computed in float32, and rounded once."""
    if rule != "linear" and half_type(out) is not None:
        args, tangents, out = widened(args), widened(tangents), widened(out)
        if isinstance(out, Tensor) and _reads_output(row):      # as it is, it was rounded
            out = run(row.name, args)
    return _RULES[rule if isinstance(rule, str) else "texts"](row, args, tangents, out)


@functools.cache
def _reads_output(row):
    """Whether the rule of a row computes with its output."""
    if row.jvp in ("reduced", "rule"):
        function = _rule(rules.VJPS if row.jvp == "reduced" else rules.JVPS, row)
        code = getattr(function, "__wrapped__", function).__code__
        return "out" in code.co_varnames[:code.co_argcount]
    texts = row.partial if row.jvp == "partial" else row.jvp
    return not isinstance(texts, str) and any(t is not None and "out" in expr.uses(t)[0] for t in texts)


def _is_live(tangent):
    if isinstance(tangent, tuple):
        return any(t is not None for t in tangent)
    return tangent is not None


def _fitted(t, out):
    """A tangent with the shape and dtype of its primal; products with broadcast operands may be smaller."""
    if t is None:
        return None
    if t.dtype is not out.dtype:
        t = t.to(out.dtype)
    return t if t.shape == out.shape else t.expand(out.shape)


# -- rules: (row, args, tangents, out) -------------------------------------------------------------

def _linear(row, args, tangents, out):
    """The op itself, applied to the tangents of the tensors in which it is linear."""
    moved = []
    for a, x, t in zip(ops.arguments(row), args, tangents):
        if a.letter == "L":
            moved.append(tuple([zeros_like(v) if d is None else d
                                for v, d in zip(x, t or [None] * len(x))]))
        elif a.letter in "TO" and isinstance(x, Tensor):
            moved.append(zeros_like(x) if t is None else t)
        else:
            moved.append(x)
    return run(row.name, tuple(moved))


def _bilinear(row, args, tangents, out):
    total = None
    for k, t in enumerate(tangents):
        if t is not None:
            total = _plus(total, run(row.name, (*args[:k], t, *args[k + 1:])))
    return total


def _reduced(row, args, tangents, out):
    """For ops whose results depend on separate elements: the gradient for ones, times t, summed."""
    t = tangents[0]
    first = out[0] if isinstance(out, tuple) else out
    args = ops.wrapped(row, args)
    names = {a.name: x for a, x in zip(ops.arguments(row), args)}
    weights = _called(_rule(rules.VJPS, row), row, args, out,
                      g=ones_like(first), gs=(ones_like(first), None))
    if isinstance(weights, tuple):
        weights = weights[0]
    if not t.ndim:
        return t * conj_of(weights)
    return sum_of(t * conj_of(weights), names["dim"], names["keepdim"])


def _by_rule(row, args, tangents, out):
    return _called(_rule(rules.JVPS, row), row, ops.wrapped(row, args), out, t=tangents[0])


def _rule(table, row):
    if row.name not in table:
        importlib.import_module(f"ptcore.autograd.rules.{row.family}")
    return table[row.name]


def _called(function, row, args, out, **more):
    """Calls a rule with the values that its parameters name."""
    scope = {a.name: x for a, x in zip(ops.arguments(row), args)}
    scope.update(_outputs(out), **more)
    code = getattr(function, "__wrapped__", function).__code__
    return function(*[scope[n] for n in code.co_varnames[:code.co_argcount]])


def _outputs(out):
    if not isinstance(out, tuple):
        return {"out": out}
    return {"out": out[0], **{f"out{k}": o for k, o in enumerate(out)}}


def _texts(row, args, tangents, out):
    return _sum_of_texts(row, row.jvp, args, tangents, out)


def _partial(row, args, tangents, out):
    exact = row.exact and isinstance(out, Tensor) and not out.dtype.is_complex
    texts = _times_tangent((row.exact,) if exact else tuple(row.partial))
    # Constants in a text are tensors of the default dtype: they must not narrow a 0-d tangent.
    return _sum_of_texts(row, texts, args, [_fitted(t, out) for t in tangents], out)


@functools.cache
def _times_tangent(partial):
    """The texts of partials, each times the tangent; None for a partial of 0."""
    return [None if text is None or text.strip() == "0" else expr.times("t", text) if text.strip() != "1"
            else "t" for text in partial]


def _promoted(x, dtype):
    """An operand in the dtype that the op computed in: ``1 / y`` of an integer would have another precision."""
    if x.dtype.kind == "c" or x.dtype is dtype:
        return x
    return x.to(dtype.to_real() if dtype.is_complex else dtype)


def _sum_of_texts(row, texts, args, tangents, out):
    spec = ops.arguments(row)
    scope = {}
    names = iter(expr.TENSOR_NAMES)
    like = next(t for t in tangents if t is not None)
    first = out[0] if isinstance(out, tuple) else out
    for a, x in zip(spec, ops.wrapped(row, args)):
        if a.is_tensor:
            if x is not None and not isinstance(x, (Tensor, tuple)):
                x = lift(x, like)           # a text calls ops on its names, so a number becomes a tensor
            elif a.letter in "TO" and isinstance(x, Tensor) and not (row.promote == "where" and x is args[0]):
                x = _promoted(x, first.dtype)
            scope[next(names, a.name)] = x
        scope[a.name] = x
    scope.update(_outputs(out))
    total = None
    for text, t in zip(texts, [t for a, t in zip(spec, tangents) if a.is_tensor]):
        if text is not None and t is not None:
            numbers = tuple([a.name for a in spec if a.letter in "fs"])
            total = _plus(total, evaluated(text, numbers, {**scope, "t": t}, helpers))
    return total


def _plus(total, term):
    return term if total is None else total + term


_RULES = {"linear": _linear, "bilinear": _bilinear, "reduced": _reduced, "rule": _by_rule,
          "texts": _texts, "partial": _partial}
