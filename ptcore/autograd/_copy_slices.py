"""Writes through views: the node that stands for "the base, with one window replaced".

Before the write the base had a history B; the op wrote a window W of it by node N. After it,
the base's history is a CopySlices node with an edge to B and the edges of N: its gradient g
for the whole base splits into g with W zeroed, for B, and g's window, which N's rule takes.
"""

from ptcore._ops.functions import as_strided_of, clone, view_as_complex, view_as_real
from ptcore._ops.history import hang, node_after, window_of, written_as
from ptcore._state import is_grad_enabled
from ptcore._subclass import payload_of
from ptcore.autograd.accumulate import load_rule, rule_of
from ptcore.autograd.function import FunctionRule
from ptcore.autograd.helpers import reduce_to, zeros_for


class Window:
    """The place of a view in its base; parts of complex numbers, and complex numbers over pairs, among the views.

    Parameters
    ----------
    view, base : Tensor
    """

    def __init__(self, view, base):
        size, stride, first, origin = tuple(view.shape), view.stride(), view.storage_offset(), base.storage_offset()
        self.parts, self.pairs = base.is_complex() > view.is_complex(), base.is_complex() < view.is_complex()
        if self.parts:                  # the base is complex, and the window is a part of view_as_real of it
            origin *= 2
        elif self.pairs:                # the base is real, and the window is complex numbers of its pairs
            size, stride, first = (*size, 2), (*[2 * s for s in stride], 1), 2 * first
        self.size, self.stride, self.offset = size, stride, first - origin

    def of(self, whole):
        """The window of a tensor that has the sizes and the strides of the base."""
        window = window_of(view_as_real(whole) if self.parts else whole, self.size, self.stride, self.offset)
        return view_as_complex(window) if self.pairs else window


class CopySlices:
    """The rule of one write through a view."""

    __name__ = "CopySlices"

    def __init__(self, inner, base, view):
        self.inner, self.window = inner, Window(view, base)
        self.base_size, self.base_stride = tuple(base.shape), base.stride()

    def __call__(self, node, g, needs):
        inner = self.inner
        # g needs the base's strides, so that the window has the same place in it.
        whole = laid_out(g, self.base_size, self.base_stride)
        window = self.window.of(whole)
        part = clone(window)
        rule = inner.fn if inner.op < 0 else rule_of(inner.op) or load_rule(inner.op)
        inner_needs = 0
        for i in range(inner.nin):
            if inner.edge(i) is not None:
                inner_needs |= 1 << min(i, 15)
        if not is_grad_enabled():
            grads = rule(inner, part, inner_needs)
        elif isinstance(rule, FunctionRule):
            grads = rule.after_write(inner, part, inner_needs, node_after(node, whole, self.window.of))
        else:
            inner = written_as(inner, node, whole, self.window.of)
            grads = rule(inner, part, inner_needs)
        if not isinstance(grads, tuple):
            grads = (grads,)
        grads = list(grads)
        if inner.spec is not None:
            for i, spec in enumerate(inner.spec):
                if spec is not None and grads[i] is not None:
                    grads[i] = reduce_to(grads[i], spec)
        first = grads[0]
        if first is None:
            window.zero_()
        else:
            window.copy_(first)
        return (whole, *grads[1:])

    def release(self):
        self.inner.release()


def laid_out(g, size, stride):
    """A copy of g with the given strides (a dense layout)."""
    from ptcore._ops.creation.creation import empty_strided, zeros_like
    if payload_of(g) is not None:
        return zeros_laid(size, stride, g).copy_(g)
    if any(s < 0 for s in stride):
        raise RuntimeError("in-place: a write through a view of a base with negative strides "
                           "cannot be differentiated")
    if any(s == 0 and n > 1 for s, n in zip(stride, size)):
        return clone(g) if not size else zeros_like(g) + g
    whole = empty_strided(size, stride, dtype=g.dtype, device=g.device)
    whole.copy_(g)
    return whole


def zeros_laid(size, stride, g):
    """Zeros with these strides; for each sample of g, if g stands for several."""
    reach = [(n - 1) * s for n, s in zip(size, stride)]
    flat = zeros_for(g, (1 + sum(map(abs, reach)) if 0 not in size else 0,))
    return as_strided_of(flat, size, stride, flat.storage_offset() - sum([r for r in reach if r < 0]), (1,), 0)


def rebase(base, view, inner):
    """Gives base the history "base before, with view's window written by inner"."""
    if view.dtype.to_real() is not base.dtype.to_real():
        raise RuntimeError(f"in-place: a write through a view of dtype {view.dtype.name} into a "
                           f"{base.dtype.name} tensor that requires grad is not supported")
    rule = CopySlices(inner, base, view)
    hang(base, rule, inner)
