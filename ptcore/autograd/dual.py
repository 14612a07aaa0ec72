"""Dual numbers: the interpreter of forward mode.

A tensor with a tangent is a stand-in with both as its payload, ``Dual(tensor, tangent)``. An op runs on the values, and
the ``jvp`` column of its row gives the tangent of its result (``_forward.py``).

Invariants: None stands for a tangent of zeros; a tangent has the shape and dtype of its value. A view has no tangent of
its own: it shows a window of its base's tangent. The base's tangent has the base's strides, so that all views of the
base see a write through any of them.
"""
import ptcore._ops as ops
from ptcore._errors import at_users_line
from ptcore._interpret import innermost, outside
from ptcore._ops import decompositions
from ptcore._ops.call.tangents import Dual, Pushing, is_copy, may_share, paired
from ptcore._ops.calling import run
from ptcore._ops.creation.creation import zeros_like
from ptcore._ops.functions import view_as_real
from ptcore._ops.halves import half_type, widened
from ptcore._ops.history import custom_node
from ptcore._ops.table.ids import op_id
from ptcore._state import is_history_recorded
from ptcore._subclass import become, carried_by, payload_of, stands_for, view_for
from ptcore._tensor import Tensor
from ptcore.autograd import _forward
from ptcore.autograd import function as _function
from ptcore.autograd._copy_slices import Window, zeros_laid
from ptcore.autograd.helpers import smaller_form
from ptcore.autograd.levels import has_history

INPLACE = 1
DETACH, WINDOW, VIEW, RESHAPE = [op_id(name) for name in ("detach", "as_strided_of", "view", "reshape")]


class Forward(Pushing):
    """Runs ops on values and their tangents."""

    # -- values and tangents -----------------------------------------------------------------------

    def pair(self, x, tangent):
        """The stand-in of a value and its tangent."""
        return paired(x, tangent, self)

    def lift(self, x):
        return self.pair(x, None)

    def seen(self, x, dual):
        """Connects the stand-in of a value with a history to it, so that gradients go on to the value."""
        if is_history_recorded() and x.requires_grad:
            custom_node(_onward, [x], [dual], (), set())
        return dual

    def value(self, x):
        """The value of a stand-in, or of a view whose base became a stand-in; another tensor unchanged."""
        payload = self.payload(x)
        return x if payload is None else payload.tensor

    def payload(self, x):
        """What a stand-in carries; None for a tensor that is none. A view that is older than its base's tangent becomes
        a stand-in here."""
        payload = carried_by(x, self)
        if payload is None and x._base is not None and carried_by(x._base, self) is not None:
            self.adopt(x)
            payload = carried_by(x, self)
        return payload

    def tangent(self, x):
        """The tangent of a tensor, or None."""
        payload = self.payload(x)
        if payload is None:
            return None
        if payload.shows is None:
            return payload.tangent
        base = payload.shows[0]         # not x._base, which an alias of x does not have
        source = carried_by(base, self)
        if payload.shows[1] != WINDOW and (source is None or not source.moved):     # strides are of the value
            return self.shown(*payload.shows)
        base = base if base._base is None else base._base
        whole = carried_by(base, self)
        return None if whole.tangent is None else Window(x, base).of(laid(whole, base))

    def shown(self, x, op, rest, place):
        """The tangent of a view. A view is linear, so it is the same view of the present tangent of ``x``."""
        t = self.tangent(x)
        if t is None:
            return None
        t = run(RESHAPE if op == VIEW else op, (t, *rest))     # the tangent may have other strides
        return t if place is None else t[place]

    def adopt(self, x, written=None):
        """Makes a tensor that will be written to a stand-in, and its base too if it is a view. The histories of both
        then belong to this level. ``written``: nothing is done unless this tensor is a stand-in of this level."""
        if carried_by(x, self) is not None or (written is not None and carried_by(written, self) is None):
            return
        base = x._base
        if base is not None and is_window(x, base):
            if carried_by(base, self) is None:
                become(base, Dual(become(base), None, self))
            value = Window(x, base).of(carried_by(base, self).tensor)
            become(x, Dual(value, None, self, (base, WINDOW, (), None)))
        else:
            become(x, Dual(become(x), None, self))

    def becomes(self, x, view):
        """``x`` keeps its place: a view stays a window of its base, another tensor gets a tangent of its own."""
        base, payload = x._base, carried_by(view, self)
        if payload.shows is not None and payload.shows[1] == WINDOW:
            raise RuntimeError("as_strided: a tensor with a tangent cannot show other memory in place")
        if base is None:
            payload.tangent, payload.shows = self.tangent(view), None
        elif is_window(x, base):
            payload.shows = base, WINDOW, (), None
        else:
            raise RuntimeError("view: the dims of a view as another dtype cannot be changed in place in forward mode")
        payload.moved = True

    def overwrite(self, x, t):
        """Sets the tangent of a tensor that was written to. The tangent of a base is written to if nobody else sees it
        and it has no history; otherwise the base gets a new tangent."""
        base = x._base
        if base is None or not is_window(x, base):
            base = x
        self.adopt(x)
        whole = carried_by(base, self)
        if base is x:
            whole.tangent = t
            return
        sole, before = whole.is_sole(), whole.tangent
        if not (sole and before.stride() == base.stride() and owners(t) <= owners(before)) or has_history(before):
            pattern = [view_as_real(y) if y.is_complex() > base.is_complex() else y
                       for y in (t, before, whole.tensor) if y is not None]
            whole.tangent = zeros_laid(tuple(base.shape), base.stride(), sum([y.sum() for y in pattern]))
            if before is not None:
                whole.tangent.copy_(before)
        Window(x, base).of(whole.tangent).copy_(t)

    # -- ops ---------------------------------------------------------------------------------------

    def call(self, op, args, out, variant):
        row = ops.row(op)
        if row.kind in ("composite", "custom"):
            return NotImplemented
        primals, tangents, mine = [], [], False
        for x in args:
            p, t, m = self.parts(x)
            primals.append(p)
            tangents.append(t)
            mine = mine or m
        live = any(_forward._is_live(t) for t in tangents)
        if out is not None:
            return self.into(op, primals, live, out)
        if variant == INPLACE:
            return self.write(op, args, primals, tangents, live)
        result = run(op, tuple(primals))
        if not mine and not live:
            return result
        if result is primals[0]:
            return args[0]
        if row.kind == "view" and op != DETACH:
            if op == RESHAPE and is_copy(result, primals[0]):       # a tensor of its own, with a tangent of its own
                t = tangents[0]
                return self.pair(result, None if t is None else run(op, (t, *args[1:])))
            if isinstance(result, tuple):
                return tuple([stands_for(r, Dual(r, None, self, (args[0], op, args[1:], k)))
                              for k, r in enumerate(result)])
            if result.dtype is primals[0].dtype:
                return stands_for(result, Dual(result, None, self, (args[0], op, args[1:], None)))
            if is_window(result, primals[0]):
                base = args[0] if args[0]._base is None else args[0]._base
                return stands_for(result, Dual(result, None, self, (base, WINDOW, (), None)))
        found = self.pushed(op, args, tuple(primals), tuple(tangents), result) if live else None
        if isinstance(result, tuple):
            return tuple([self.pair(r, t) for r, t in zip(result, found or [None] * len(result))])
        return self.pair(result, found)

    def parts(self, x):
        """The value and the tangent of an argument, and whether it contains a stand-in of this interpreter."""
        if isinstance(x, Tensor):
            value = self.value(x)
            return value, self.tangent(x), value is not x
        if type(x) is tuple or type(x) is list:
            found = [self.parts(item) for item in x]
            tangents = tuple([t for _, t, _ in found])
            return (type(x)([p for p, _, _ in found]), tangents if any(t is not None for t in tangents) else None,
                    any(m for _, _, m in found))
        return x, None, False

    def pushed(self, op, args, primals, tangents, result):
        found = _forward.jvp(op, primals, tangents, result)
        if found is NotImplemented:
            with self:
                form = smaller_form(op) or decompositions.function(ops.row(op).name)
                made = form(*widened(args))
            found = mapped(self.tangent, made)
            if half_type(result) is not None:
                found = ([_forward._fitted(t, r) for t, r in zip(found, result)] if isinstance(found, tuple)
                         else _forward._fitted(found, result))
        return found

    def into(self, op, primals, live, out):
        """A call with ``out=``, which is allowed if no argument has a tangent."""
        function, row = ops.function(op), ops.row(op)
        outs = out if isinstance(out, (tuple, list)) else (out,)
        if live or any(isinstance(x, Tensor) and self.tangent(x) is not None for x in outs):
            raise RuntimeError(f"{row.name}: out= does not support automatic differentiation, but one of the arguments "
                               "has a tangent")
        names = [a.name for a in ops.arguments(row)]
        return function(**dict(zip(names, primals)), out=mapped(self.value, out))

    def write(self, op, args, primals, tangents, live):
        """An op in place: the value and the tangent are both written to."""
        x, given, values = args[0], list(args), list(primals)
        if live:
            if tangents[0] is not None:  # copied, since a recorded op may have saved it and the op writes to it
                tangents[0] = tangents[0].clone()
            for k, y in enumerate(primals):     # what is about to be written to, as it is now
                if isinstance(y, Tensor) and (not k or may_share(y, primals[0])):
                    values[k] = values[0] if k and y is primals[0] else y.clone()
                    given[k] = self.pair(values[k], tangents[k])
        run(op, tuple(primals), True)
        if live:
            found = self.pushed(op, tuple(given), tuple(values), tuple(tangents), primals[0])
            self.overwrite(x, zeros_like(primals[0]) if found is None else found)
        return x


    # -- custom functions --------------------------------------------------------------------------

    def shown_by(self, y, t, given):
        """The stand-in of an output whose memory is an argument's, if the same holds for their tangents: a view, so
        that a write to either is seen by both. None for other outputs."""
        for a, x, s in given:
            if s is not None and y.dtype is x.dtype and may_share(y, x) and may_share(t, s):
                base = a if a._base is None else a._base
                return view_for(y, Dual(y, None, self, (base, WINDOW, (), None)), base)
        return None

    def custom(self, cls, args):
        """Runs a custom function: its ``forward`` on the values, its ``jvp`` on the tangents."""
        return self.custom_with_context(cls, args, ())[0]

    def custom_with_context(self, cls, args, needs):
        """In the context, what ``forward`` saved of its arguments and outputs are the stand-ins, which a history that
        is recorded of them needs. ``needs`` is empty where none is recorded."""
        values, tangents, _ = zip(*map(self.parts, args))
        separate = cls.setup_context is not _function.Function.setup_context
        with outside():
            if separate:
                output, ctx = cls.apply(*values), cls._ctx_class()
                cls.setup_context(ctx, values, output)
            elif innermost() is not None:
                raise _function.without_setup_context(cls)
            else:
                output, ctx = cls._called(values, needs)
            saved, found = ctx._saved, None
            if any(t is not None for t in tangents):
                ctx._saved, ctx._node = getattr(ctx, "_saved_for_forward", ()), None
                if ctx._materialize:
                    tangents = [zeros_like(x) if t is None and isinstance(x, Tensor) and x.dtype.kind in "fc" else t
                                for x, t in zip(values, tangents)]
                found = cls.jvp(ctx, *tangents)
        outputs = tuple(output) if isinstance(output, (tuple, list)) else (output,)
        if isinstance(found, (tuple, list)):
            found = tuple(found)
        else:
            found = (found,) * (1 if found is not None else len(outputs))
        if len(found) != len(outputs):
            raise RuntimeError(f"{cls.__name__}: jvp must return as many tangents as forward has outputs, "
                               f"{len(outputs)}, got {len(found)}")
        stand_ins = {id(x): a for x, a in zip(values, args) if isinstance(x, Tensor)}
        dirty, pairs = {id(x) for x in ctx._dirty}, []
        for y, t in zip(outputs, found):
            t = tangent_of(cls, y, t) if isinstance(y, Tensor) else None
            seen = None if t is None or id(y) in dirty else self.shown_by(y, t, zip(args, values, tangents))
            if seen is not None:
                pairs.append(seen)
            elif id(y) in dirty:
                pairs.append(stand_ins[id(y)])
                if t is not None or self.tangent(pairs[-1]) is not None:
                    self.overwrite(pairs[-1], zeros_like(y) if t is None else t)
            else:
                pairs.append(self.pair(y, t) if isinstance(y, Tensor) else y)
        if needs:
            stand_ins.update((id(y), p) for y, p in zip(outputs, pairs) if isinstance(y, Tensor))
            ctx._saved, ctx._dirty, ctx._non_differentiable = [
                tuple([stand_ins.get(id(x), x) for x in kept])
                for kept in (saved, ctx._dirty, ctx._non_differentiable)]
        if isinstance(output, list):
            return pairs, ctx
        return tuple(pairs) if isinstance(output, tuple) else pairs[0], ctx


def _onward(node, g, needs):
    return g


_onward.__name__ = "MakeDualBackward"


@at_users_line
def check_tangent(x, t):
    """Refuses a tangent whose shape, dtype or device does not fit its primal."""
    if x.dtype.kind not in "fc":
        raise ValueError(f"Expected primal to be floating point or complex, but got: {x.dtype.name}")
    if t.dtype.kind not in "fc":
        raise ValueError(f"Expected tangent to be floating point or complex, but got: {t.dtype.name}")
    if t.shape != x.shape:
        raise RuntimeError("Trying to set a forward gradient that has a different size than that of the original "
                           f"Tensor, this is not supported. Tensor is of size {list(x.shape)} while the given forward "
                           f"gradient is of size {list(t.shape)}.")
    if t.dtype is not x.dtype:
        raise RuntimeError(f"Expected tangent to have the dtype of the primal, {x.dtype.name}, but got {t.dtype.name}")
    if t.device != x.device:
        raise RuntimeError(f"Expected tangent to be on the device of the primal, {x.device}, but got {t.device}")


def tangent_of(cls, y, t):
    """The result of a custom ``jvp`` for one output, checked."""
    if t is None:
        return None
    if not isinstance(t, Tensor):
        raise RuntimeError(f"{cls.__name__}: jvp must return Tensors or None, got {type(t).__name__}")
    if t.shape != y.shape:
        raise RuntimeError(f"{cls.__name__}: the tangent that jvp returned must have the shape of its output, "
                           f"{list(y.shape)}, got {list(t.shape)}")
    return t if t.dtype is y.dtype else t.to(y.dtype)


def mapped(function, value):
    """function of a tensor, or of each in a tuple."""
    if isinstance(value, (tuple, list)):
        items = [mapped(function, v) for v in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return function(value) if isinstance(value, Tensor) else value


def is_window(x, base):
    """Whether a view of a base shows numbers of the base: elements, or parts or pairs of them."""
    return x.dtype.to_real() is base.dtype.to_real()


def laid(payload, base):
    """The tangent of a base, with the base's strides."""
    t = payload.tangent
    if t.stride() == base.stride():
        return t
    return zeros_laid(tuple(base.shape), base.stride(), t.sum() + payload.tensor.sum()).copy_(t)


def owners(x):
    """The interpreters inside of which a tensor's values differ."""
    found = set()
    payload = payload_of(x)
    while payload is not None:
        if not isinstance(payload, Dual):
            found.add(id(payload.owner))
        payload = payload_of(payload.tensor)
    return found
