"""Functions that run eagerly while a dispatcher gets their calls, so that the called functions may be compiled."""
import ast
import types

from ptcore.jit.capture.source import CALL as NAME
from ptcore.jit.capture.source import NoSource, _bare, _Calls, class_of, find

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
    body = [_Calls().visit(statement) for statement in found.body]
    inner = type(found)(name=found.name, args=_bare(found.args), body=body, decorator_list=[], returns=None,
                        type_params=[])
    ast.copy_location(inner, found)
    within = class_of(code)
    statements = [inner] if within is None else [ast.ClassDef(name=within, bases=[], keywords=[], body=[inner],
                                                              decorator_list=[], type_params=[])]
    outside = sorted({within or code.co_name} - set(code.co_freevars))
    if outside:
        statements.insert(0, ast.Global(outside))
    names = [n for n in code.co_freevars if n != "__class__"] + [NAME]
    outer = ast.FunctionDef(name="_outer", args=ast.arguments(
        posonlyargs=[], args=[ast.arg(n) for n in names], vararg=None, kwonlyargs=[], kw_defaults=[], kwarg=None,
        defaults=[]), body=statements, decorator_list=[], type_params=[])
    try:
        made = compile(ast.fix_missing_locations(ast.Module([outer], [])), code.co_filename, "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return None
    inner = _find(made, code.co_name, 2 if within is None else 3)
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


def _find(code, name, depth):
    for c in code.co_consts:
        if isinstance(c, types.CodeType):
            if depth == 1 and c.co_name == name:
                return c
            found = _find(c, name, depth - 1) if depth > 1 else None
            if found is not None:
                return found
    return None
