"""Derivative rules that do not fit in a row: functions of ops, one file for each family.

``@vjp(name)`` marks the rule of an op. The rule's parameters name its inputs: ``g`` (the incoming gradient; ``gs``, a
list of them, if the op has several outputs), inputs and parameters by their names in the row's signature, ``out`` or
``out0``, ``out1`` for outputs, ``needs`` for the bits of the inputs that need a gradient. Tensors that a rule names are
saved; those used only by ``.shape``, ``.dtype`` or ``.device`` are saved without data. The rule returns a gradient for
each tensor input, or None where there is none. With ``remade=True`` an output that was written to since is None, and
the rule computes it again; other rules raise then.

``@jvp(name)`` marks the forward rule of a row whose ``jvp`` column says "rule". Its parameters are ``t`` (the tangent
of the first tensor), and inputs, parameters and outputs by the same names. It returns the tangent of each output, or
None for zero.

``SMALLER`` holds forms of fused gradients, by the names of their rows, as ops that have derivatives. A rule calls a
fused row where its backward is not differentiated; in a graph of such a backward the row stands as it is, and where the
graph is differentiated later, the row is run in this form, which has its arguments. Statistics that a forward has left
have no history in a graph, so they are computed again. ``VJPS`` and ``JVPS`` hold the rules of the modules imported so
far, by name.
"""

VJPS, JVPS, SMALLER = {}, {}, {}


def vjp(*names, remade=False):
    """Marks a rule; the build reads the mark."""
    def mark(function):
        function.vjp_of = names
        VJPS.update(dict.fromkeys(names, function))
        return function
    return mark


def jvp(*names):
    """Marks a forward rule."""
    def mark(function):
        JVPS.update(dict.fromkeys(names, function))
        return function
    return mark
