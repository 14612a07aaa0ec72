"""Functions that run eagerly while a dispatcher gets their calls, so that the called functions may be compiled."""
import ast
import types

from ptcore.jit._source import CALL as NAME
from ptcore.jit._source import NoSource, compiled_from, find, with_calls

# Files of the package whose functions call modules of the user; other functions of the package run as they are.
FILES = ("ptcore.nn.modules.container", "ptcore.nn.modules.transformer", "ptcore.examples")


def calling(function, dispatch):
    """``function`` with each call in its text replaced by ``dispatch(f, args, kwargs)``; None if it has no source.

    The new function has the globals, cells and defaults of ``function``.
    """
    owner = None
    if isinstance(function, types.MethodType):
        owner, function = function.__self__, function.__func__
    module = getattr(function, "__module__", None) or ""
    if type(function) is not types.FunctionType or (module.startswith("ptcore.") and not module.startswith(FILES)):
        return None
    code = function.__code__
    try:
        found = find(code)
    except NoSource:
        return None
    if isinstance(found, ast.Lambda) or {"locals", "exec", "eval"} & set(code.co_names):
        return None
    try:
        inner = compiled_from(with_calls(found), code, more=(NAME,))
    except RecursionError:              # an expression of hundreds of parts
        return None
    if inner is None:
        return None
    cells = dict(zip(code.co_freevars, function.__closure__ or ()))

    def call(f, *args, **kwargs):
        return dispatch(f, args, kwargs)
    cells[NAME] = types.CellType(call)
    if not set(inner.co_freevars) <= set(cells):
        return None
    shallow = types.FunctionType(inner, function.__globals__, function.__name__, function.__defaults__,
                                 tuple([cells[n] for n in inner.co_freevars]))
    shallow.__kwdefaults__, shallow.__qualname__ = function.__kwdefaults__, function.__qualname__
    return shallow if owner is None else types.MethodType(shallow, owner)
