"""Functions that run eagerly while a dispatcher gets their calls, so that the called functions may be compiled."""
import ast
import sys
import types

from ptcore.jit._entry import Handed
from ptcore.jit._source import CALL as NAME
from ptcore.jit._source import NoSource, compiled_from, find, with_calls
from ptcore.nn.modules.module import Module

# Files of the package whose functions call modules of the user; other functions of the package run as they are.
FILES = ("ptcore.nn.modules.container", "ptcore.nn.modules.transformer", "ptcore.examples")
LEFT_OUT = {"ptcore", "numpy", "scipy", *sys.stdlib_module_names}      # packages whose functions are not compiled


def function_in(f):
    """The function or module of which calls by a function that runs eagerly may be compiled; None for other objects."""
    inner = f.__func__ if type(f) is types.MethodType else f
    if isinstance(inner, Module):
        return inner
    module = inner.__module__ or "" if type(inner) is types.FunctionType else "builtins"
    return None if module.partition(".")[0] in LEFT_OUT or hasattr(inner, "_captured_as") else inner


def lists_variables(found):
    """Whether a function lists its variables, of which the dispatcher would be one, or runs a text with them."""
    for node in ast.walk(found):
        if isinstance(node, ast.Name) and node.id in ("locals", "exec", "eval"):
            return True
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("vars", "dir") \
                and not node.args:
            return True
    return False


def calling(function, part_of):
    """``function`` with each ``f`` that its text calls replaced by ``Handed(part_of, f)``; None if it has no source.

    What is not compiled in any case is called as it is, since it may look at the frame that calls it: ``logging`` and
    ``namedtuple`` do. The new function has the globals, cells and defaults of ``function``.
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
    if isinstance(found, ast.Lambda) or lists_variables(found):
        return None
    try:
        inner = compiled_from(with_calls(found), code, more=(NAME,))
    except RecursionError:              # an expression of hundreds of parts
        return None
    if inner is None:
        return None
    cells = dict(zip(code.co_freevars, function.__closure__ or ()))

    def called(f):
        return f if function_in(f) is None else Handed(part_of, f)
    cells[NAME] = types.CellType(called)
    if not set(inner.co_freevars) <= set(cells):
        return None
    shallow = types.FunctionType(inner, function.__globals__, function.__name__, function.__defaults__,
                                 tuple([cells[n] for n in inner.co_freevars]))
    shallow.__kwdefaults__, shallow.__qualname__ = function.__kwdefaults__, function.__qualname__
    return shallow if owner is None else types.MethodType(shallow, owner)
