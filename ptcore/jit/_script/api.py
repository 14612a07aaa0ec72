"""``script`` and the related functions of ``jit``."""
import enum
import functools
import types as python_types
import typing

from ptcore.jit._script import decorators, types
from ptcore.jit._script.classes import compile_all, script_class
from ptcore.jit._script.functions import ScriptFunction, above, script_function
from ptcore.jit._script.modules import script_module
from ptcore.jit._trace import is_tracing
from ptcore.nn import Module

__all__ = ["CompilationUnit", "Final", "interface", "script", "script_if_tracing", "script_method"]

Final = typing.Final


def script(obj, optimize=None, _frames_up=0, _rcb=None, example_inputs=None) -> typing.Any:
    """Compiles a function, a module or a class from its source.

    The source is read, not run. Script compiles a subset of Python with static types, in which values without an
    annotation are tensors. A program outside of the subset raises an error that shows the line and the supported
    alternative.

    Parameters
    ----------
    obj : callable, Module, or type
        A function that is written by ``def``; a module, of which ``forward`` and the methods marked by :func:`export`
        are compiled, and its submodules in turn; a class without bases.

    Returns
    -------
    ScriptFunction, ScriptModule, or type
        The class itself, which scripted programs may use from then on.

    Raises
    ------
    ScriptError
        If the program is not one of the subset, or its types do not fit.

    Examples
    --------
    >>> import ptcore
    >>> @ptcore.jit.script
    ... def clip(x, low: float, high: float):
    ...     if low > high:
    ...         raise ValueError(f"{low} is above {high}")
    ...     return x.clamp(low, high)
    >>> clip(ptcore.tensor([1., 5.]), 2, 3)
    tensor([2., 3.])
    """
    if optimize is not None or example_inputs is not None:
        raise NotImplementedError("script: optimize and example_inputs are absent; types are those of annotations")
    if isinstance(obj, ScriptFunction):
        return obj
    if isinstance(obj, Module):
        return script_module(obj)
    if isinstance(obj, type):
        if issubclass(obj, Module):
            raise RuntimeError(f"script: {obj.__name__} is a class of modules; script takes one of its objects")
        if issubclass(obj, enum.Enum):
            types.enum_type(obj)
            return obj
        if issubclass(obj, tuple) and hasattr(obj, "_fields"):
            types.named_tuple(obj)
            return obj
        compile_all(script_class(obj))
        return obj
    if isinstance(obj, python_types.MethodType) and isinstance(obj.__self__, Module):
        raise RuntimeError(f"script: {obj.__name__} is a method of a module; script the module, and mark the method by "
                           "export")
    if isinstance(obj, (list, dict)):
        raise NotImplementedError("script of lists and dicts is absent: they are passed as they are")
    if not callable(obj):
        raise RuntimeError(f"script: {obj!r} is no function, module or class")
    wrapped = getattr(obj, "__script_if_tracing_wrapper__", None)
    made = script_function(wrapped or obj)
    return made


def script_method(fn):
    """Marks a method of a :class:`ScriptModule` subclass to be compiled when an object is made.

    Examples
    --------
    >>> import ptcore
    >>> class Double(ptcore.jit.ScriptModule):
    ...     @ptcore.jit.script_method
    ...     def forward(self, x):
    ...         return 2 * x
    >>> Double()(ptcore.ones(1))
    tensor([2.])
    """
    fn._jit_script_method = True
    return fn


def interface(obj):
    """Returns a class unchanged: script has no interfaces, whose methods are looked up at run time.

    Calls of modules are resolved at script time by the class of the module, so an annotation by an interface has no
    effect.

    Parameters
    ----------
    obj : type

    Raises
    ------
    RuntimeError
        If it is no class.
    """
    if not isinstance(obj, type):
        raise RuntimeError("interface must be applied to a class")
    return obj


class CompilationUnit:
    """Declined: functions are scripted from Python's source files, not from text.

    Raises
    ------
    NotImplementedError
    """

    def __init__(self, lang=None, _frames_up=0):
        raise NotImplementedError("CompilationUnit: declined; functions are defined in files and given to script")


def script_if_tracing(fn):
    """A function that is scripted when a traced program first calls it; elsewhere the function itself runs."""
    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        return script(fn)(*args, **kwargs) if is_tracing() else fn(*args, **kwargs)
    wrapper.__script_if_tracing_wrapper__ = fn
    return wrapper


decorators.script_if_tracing = script_if_tracing        # pickles of earlier commits name it there


# -- imports of higher files for functions.py and modules.py ---------------------------------------------------------

def _compiler():
    from ptcore.jit._script.compiler import Compiler
    return Compiler


def _straight():
    from ptcore.jit._script.straight import straight
    return straight


def _inlined_graph():
    from ptcore.jit._script.inline import inlined_graph
    return inlined_graph


def _save():
    from ptcore.jit._program import save
    return save


above.update(Compiler=_compiler, straight=_straight, inlined_graph=_inlined_graph, save=_save)
