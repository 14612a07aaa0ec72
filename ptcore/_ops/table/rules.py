"""The shape rules of rows as Python runs them: on the sizes of a trace, and for the errors of ordinary calls."""
from functools import cache

from ptcore._ops import arguments, row
from ptcore._ops.table.ids import op_name, set_spec, spec_of
from ptcore._ops.table.schema import shape_rule
from ptcore._sizes import language, rules


@cache
def _parameters(function):
    """(name, annotation) of each argument of a rule, except the call."""
    code, kinds = function.__code__, function.__annotations__
    return [(name, kinds.get(name)) for name in code.co_varnames[1:code.co_argcount]]


def rule(op):
    """The rule of a structured op by its id, made at its first use."""
    found = spec_of(op)
    if found is None:
        found = rule_of(row(op_name(op)))
        set_spec(op, found)
    return found


def rule_of(row):
    """The rule of a structured row: a function of the op's arguments in their order.

    It returns (shape, dtype) of the output, or a list of them, and raises for arguments that do not fit. Sizes and
    ints may be symbolic. Dims are non-negative, as dispatch passes them to rules.
    """
    name, given = shape_rule(row.out)
    function = rules.find(name)
    parameters = _parameters(function)
    own = arguments(row)
    place = {a.name: k for k, a in enumerate(own)}
    # The arguments of the rule: the position of an op's argument and its annotation, or a dtype.
    wanted = [(place[value], kind) if value in place else (None, getattr(language, value))
              for value, (_, kind) in zip(given or [p for p, _ in parameters], parameters)]
    tensors = [k for k, a in enumerate(own) if a.is_tensor]

    def of_arguments(*args):
        inputs = []
        for k in tensors:
            inputs += args[k] if isinstance(args[k], (tuple, list)) else [args[k]]
        views = [None if x is None else language.View(x) for x in inputs]
        ndim = views[0].ndim if views and views[0] is not None else 0
        call = language.Call(row.called, views)
        function(call, *[kind if k is None else language.argument(kind, args[k], ndim) for k, kind in wanted])
        specs = call.specs()
        return specs[0] if len(specs) == 1 else specs
    return of_arguments
