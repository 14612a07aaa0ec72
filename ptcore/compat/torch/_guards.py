"""``torch._guards``: questions about tracing by Dynamo, which never happens here."""
import contextlib

__all__ = ["TracingContext", "tracing"]


class TracingContext:
    """The context of a tracing by Dynamo; there is never one."""

    @staticmethod
    def try_get():
        """None: no tracing by Dynamo is going on."""
        return None

    @staticmethod
    def get():
        raise RuntimeError("torch._guards.TracingContext.get: ptcore captures programs without Dynamo, "
                           "so there is no such context")


@contextlib.contextmanager
def tracing(context):
    """A context that accepts only None and changes nothing."""
    if context is not None:
        raise NotImplementedError("torch._guards.tracing: ptcore captures programs without Dynamo")
    yield context
