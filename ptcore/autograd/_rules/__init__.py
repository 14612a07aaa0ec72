"""Derivative rules that do not fit in a row: functions of ops, one file for each family.

``@vjp(name)`` marks the rule of an op. Its parameters say what it needs: ``g`` (the incoming
gradient, ``gs`` a list of them where the op has several outputs), inputs and parameters by
their names in the row's signature, ``out`` or ``out0``, ``out1`` for outputs, ``needs`` for the
bits of the inputs that want a gradient. What a rule names is saved; what it uses only by
``.shape``, ``.dtype`` or ``.device`` is saved without data. It returns a gradient for each
tensor input, None where there is none.
"""


def vjp(*names):
    """Marks a rule; the build reads the mark."""
    def mark(function):
        function.vjp_of = names
        return function
    return mark
