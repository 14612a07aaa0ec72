"""The method of modules that compiles them."""
from ptcore.jit.compiled import compile as compiled

__all__ = ["compile"]


def compile(self, *args, **kwargs):
    """Compile ``forward`` in place; hooks are not compiled.

    The arguments are those of :func:`ptcore.compile`. A copy or a pickle of the module is not compiled.
    """
    self.__dict__.pop("forward", None)
    self.__dict__["forward"] = compiled(self.forward, *args, **kwargs)
