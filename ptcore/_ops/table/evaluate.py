"""Texts of rows evaluated with ops, so that what comes out can be differentiated, traced or batched again."""
from ptcore import _ops as ops
from ptcore._ops.table import expr

_code = {}                              # (text, numbers) -> (compiled text, functions it calls)


def evaluated(text, numbers, scope, helpers=None):
    """A text's value, ``numbers`` being the parameters in scope that are numbers.

    ``helpers`` is the namespace of what texts call beside ops.
    """
    found = _code.get((text, numbers))
    if found is None:
        written = expr.to_python(text, "jvp", numbers, "t")
        functions = {n: getattr(helpers, n, None) or ops.function(n) for n in expr.called(written)}
        code = compile(written, f"<jvp: {text}>", "eval")
        found = _code[text, numbers] = code, {"__builtins__": {}, **functions}
    return eval(found[0], found[1], scope)
