"""``torch.utils._contextlib``: contexts that are decorators too, also of generators."""
import functools
import inspect

__all__ = []


def context_decorator(ctx, func):
    """Wraps a function so that each call runs in a context; `ctx` is a reusable context, or makes one."""
    if callable(ctx) and hasattr(ctx, "__enter__"):
        raise AssertionError(f"{ctx} is a context and can be called too; give a function that makes it")
    if inspect.isclass(func):
        raise RuntimeError("Cannot decorate classes; decorate their methods")
    enter = ctx if callable(ctx) else lambda: ctx
    if inspect.isgeneratorfunction(func):
        return _of_generator(enter, func)

    @functools.wraps(func)
    def inside(*args, **kwargs):
        with enter():
            return func(*args, **kwargs)
    return inside


def _of_generator(enter, func):
    """The context holds while the generator runs, not while its user does."""
    @functools.wraps(func)
    def inside(*args, **kwargs):
        generator = func(*args, **kwargs)
        step, value = generator.send, None
        while True:
            try:
                with enter():
                    found = step(value)
            except StopIteration as end:
                return end.value
            try:
                step, value = generator.send, (yield found)
            except GeneratorExit:
                with enter():
                    generator.close()
                raise
            except BaseException as error:
                step, value = generator.throw, error
    return inside


class _DecoratorContextManager:
    """Base of contexts that decorate functions; `clone` makes a new context for each call."""

    def __call__(self, orig_func):
        return context_decorator(self.clone, orig_func)

    def __enter__(self):
        raise NotImplementedError

    def __exit__(self, exc_type, exc_value, traceback):
        raise NotImplementedError

    def clone(self):
        """Another context like this one; classes whose ``__init__`` takes arguments say how."""
        return type(self)()


class _NoParamDecoratorContextManager(_DecoratorContextManager):
    """A base that also decorates without parentheses."""

    def __new__(cls, orig_func=None):
        made = super().__new__(cls)
        return made if orig_func is None else made(orig_func)
