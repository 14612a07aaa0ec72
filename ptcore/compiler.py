"""The user's interface of the compiler: ``compile`` itself, functions to leave out, and reasons why a function is not
compiled. Names and meanings are those of ``torch.compiler``."""
import contextlib

from ptcore._contexts import Changed
from ptcore.jit import compiled as _compile
from ptcore.jit.capture import calls
from ptcore.jit.capture.explain import ExplainOutput as ExplainOutput
from ptcore.jit.capture.explain import explain as explain
from ptcore.jit.compiled import compile as compile
from ptcore.jit.compiled import disable as disable
from ptcore.jit.compiled import reset as reset

__all__ = [
    "allow_in_graph",
    "assume_constant_result",
    "compile",
    "cudagraph_mark_step_begin",
    "disable",
    "explain",
    "get_default_backend",
    "is_compiling",
    "is_dynamo_compiling",
    "is_exporting",
    "list_backends",
    "nested_compile_region",
    "register_backend",
    "reset",
    "set_default_backend",
    "set_stance",
    "substitute_in_graph",
]


def is_compiling():
    """Whether the calling program is being captured: True in a captured graph, False in eager code."""
    return False


def is_dynamo_compiling():
    """An older name of :func:`is_compiling`."""
    return False


def is_exporting():
    """Whether the calling program is being exported."""
    return False


calls.PYTHON[is_compiling] = calls.PYTHON[is_dynamo_compiling] = lambda r: True
calls.PYTHON[is_exporting] = lambda r: False


def list_backends(exclude_tags=("debug", "experimental")):
    """The names that ``compile(backend=...)`` takes.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.compiler.list_backends()
    ['cpu', 'eager']
    """
    return sorted(_compile.backends)


def register_backend(compiler_fn=None, name=None, tags=()):
    """Registers a backend under a name for ``compile(backend=name)``.

    Parameters
    ----------
    compiler_fn : callable, optional
        Takes a GraphModule and example inputs, returns a callable. Left out, a decorator is returned.
    name : str, optional
        Its ``__name__`` by default.
    tags : sequence of str
        Accepted for programs of PyTorch.

    Raises
    ------
    ValueError
        If the name is taken.
    TypeError
        If ``compiler_fn`` is not callable, or the name is no text.
    """
    if compiler_fn is None:
        return lambda f: register_backend(f, name, tags)
    if not callable(compiler_fn):
        raise TypeError(f"register_backend: expected a callable, got {type(compiler_fn).__name__}")
    name = getattr(compiler_fn, "__name__", None) if name is None else name
    if not isinstance(name, str):
        raise TypeError(f"register_backend: name must be a str, got {name!r}")
    if name in _compile.backends:
        raise ValueError(f"register_backend: there is a backend {name!r} already")
    _compile.backends[name] = compiler_fn
    return compiler_fn


def get_default_backend():
    """The backend of ``compile`` without the argument ``backend``."""
    return _compile.default_backend[0]


def set_default_backend(backend):
    """Sets the backend of ``compile`` without the argument ``backend``; None restores "cpu".

    Parameters
    ----------
    backend : str, callable or None

    Raises
    ------
    RuntimeError
        If no backend has that name.
    """
    if backend is not None:
        _compile.find_backend(backend)
    _compile.default_backend[0] = "cpu" if backend is None else backend


def nested_compile_region(fn=None):
    """Marks a function that is called several times in a graph. Here the mark has no effect."""
    return nested_compile_region if fn is None else fn


def substitute_in_graph(original_fn, *, can_constant_fold_through=False, skip_signature_check=False):
    """A decorator: where the program calls ``original_fn``, a capture uses the decorated Python function. It serves
    functions in C, which a capture cannot enter.

    Parameters
    ----------
    original_fn : callable
    can_constant_fold_through, skip_signature_check : bool
        Accepted for programs of PyTorch.
    """
    if not callable(original_fn):
        raise TypeError(f"substitute_in_graph: expected a callable, got {type(original_fn).__name__}")

    def decorate(function):
        calls.SUBSTITUTES[original_fn] = function
        return function
    return decorate


def allow_in_graph(fn):
    """Marks functions whose Python code is not captured. Their tensor operations become part of the graph, and values
    that they read outside of their arguments are constants.

    Parameters
    ----------
    fn : callable or sequence of callables
    """
    if isinstance(fn, (list, tuple)):
        return [allow_in_graph(f) for f in fn]
    if not callable(fn):
        raise TypeError(f"allow_in_graph: expected a callable, got {type(fn).__name__}")

    def call(r, args, kwargs):
        return fn(*[calls.native(r, a) for a in args], **{k: calls.native(r, v) for k, v in kwargs.items()})
    return _captured_as("allow_in_graph", fn, call)


def _captured_as(op, fn, capture):
    """Marks a function with the way in which it is captured."""
    try:
        fn._captured_as = capture
    except AttributeError:
        raise TypeError(f"{op}: expected a function written in Python, or an object that takes attributes, got "
                        f"{type(fn).__name__}") from None
    return fn


def assume_constant_result(fn):
    """Marks a function that is called once, at the capture; its result is a constant of the graph."""
    def constant(r, args, kwargs):
        from ptcore._interpret import aside
        from ptcore._tensor import Tensor
        if any(isinstance(a, Tensor) for a in (*args, *kwargs.values())):
            r.unsupported(f"{fn.__name__}, whose result is taken as constant, gets a tensor")
        with aside():
            made = fn(*args, **kwargs)
        r.kept.append(made)
        return r.track(made, r.object_source(made, f"{fn.__name__}()"))
    return _captured_as("assume_constant_result", fn, constant)


def cudagraph_mark_step_begin():
    """Has no effect: no memory of graphs outlives a step."""


class set_stance(Changed, contextlib.ContextDecorator):
    """Sets the behaviour of compiled functions, from now on or in a block.

    Parameters
    ----------
    stance : {"default", "force_eager", "eager_on_recompile", "fail_on_recompile"}
        Run as usual; run eagerly; run captured graphs and otherwise eagerly; run captured graphs and otherwise raise.
    skip_guard_eval_unsafe : bool, default: False
        Accepted for programs of PyTorch: guards are checked all the same.
    force_backend : optional
        Must be None.

    Raises
    ------
    RuntimeError
        If there is no such stance.
    """

    def __init__(self, stance="default", *, skip_guard_eval_unsafe=False, force_backend=None):
        if stance not in _compile.STANCES:
            raise RuntimeError(f"set_stance: stance must be one of {_compile.STANCES}, got {stance!r}")
        if force_backend is not None:
            raise NotImplementedError("set_stance: force_backend is not supported")
        self.stance = stance
        super().__init__((_compile.stance, {"now": stance}), told=(_compile, _compile.stance, ("now",)))
        self._switch()

    def __call__(self, func):
        self._undo()
        return super().__call__(func)
