"""Marks on functions: ``ignore``, ``unused``, ``export``; and ``script_if_tracing``."""
import functools

__all__ = ["export", "ignore", "modifier", "script_if_tracing", "unused"]


def export(fn):
    """Marks a method of a module: ``script`` compiles it though ``forward`` does not call it.

    Examples
    --------
    >>> import ptcore
    >>> class Net(ptcore.nn.Module):
    ...     @ptcore.jit.export
    ...     def double(self, x):
    ...         return 2 * x
    """
    fn._jit_modifier = "export"
    return fn


def ignore(drop=False, **kwargs):
    """Marks a function or method that script calls as Python, without compiling it.

    Its result is of the type that its annotation says, a Tensor without one. What calls such a function cannot be
    saved; with ``drop=True`` it can, and a loaded program raises where it is called.
    """
    if callable(drop):
        drop._jit_modifier = "ignore"
        return drop
    if not isinstance(drop, bool):
        raise RuntimeError(f"ignore: drop must be a bool or a function, got {drop!r}")

    def decorator(fn):
        fn._jit_modifier = "unused" if drop else "ignore"
        return fn
    return decorator


def unused(fn):
    """Marks a function or method that is not compiled: a scripted program raises where it is called."""
    if isinstance(fn, property):
        fn.fget._jit_modifier = "unused"
        if fn.fset is not None:
            fn.fset._jit_modifier = "unused"
        return fn
    fn._jit_modifier = "unused"
    return fn


def modifier(f):
    """The mark of a function, or None."""
    return getattr(f, "_jit_modifier", None)


def script_if_tracing(fn):
    """A function that is scripted when it is first called while a program is traced, and called as it is otherwise."""
    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        from ptcore import jit
        tracing = getattr(jit, "is_tracing", None)
        if tracing is None or not tracing():
            return fn(*args, **kwargs)
        return jit.script(fn)(*args, **kwargs)
    wrapper.__script_if_tracing_wrapper__ = fn
    return wrapper


def _overload(func):
    """Marks a declaration that a definition follows, which is what scripts read; gives it back as it is."""
    return func
