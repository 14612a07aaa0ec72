"""Marks on functions: ``ignore``, ``unused``, ``export``."""

__all__ = ["export", "ignore", "modifier", "unused"]


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
    """Marks a function or method that script leaves to Python.

    Its result has the annotated type, or is a Tensor without an annotation. A program that calls it cannot be saved.
    With ``drop=True`` the program can be saved, and a loaded program raises at the call.
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


def _overload(func):
    """Marks the declaration of an overload, and returns it unchanged. Script reads the definition that follows it."""
    return func
