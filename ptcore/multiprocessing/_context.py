"""The standard contexts, with the pipes and queues of this package."""
from multiprocessing import context

from ptcore._memory import segments as _shared_memory

if _shared_memory.STRATEGIES[0] == "file_descriptor":
    from ptcore.multiprocessing import channels

    class _Carrying:
        """Pipes and queues whose messages carry descriptors."""

        def Pipe(self, duplex=True):
            """Two connections, each at one end of a pipe."""
            return channels.Pipe(duplex)

        def Queue(self, maxsize=0):
            """A queue between processes."""
            return channels.Queue(maxsize, ctx=self.get_context())

        def JoinableQueue(self, maxsize=0):
            """A queue whose items are counted until they are done."""
            return channels.JoinableQueue(maxsize, ctx=self.get_context())

        def SimpleQueue(self):
            """A pipe with locks at both ends."""
            return channels.SimpleQueue(ctx=self.get_context())
else:
    class _Carrying:
        """On this system a message names its segments, so the standard pipes and queues suffice."""


class _Concrete(_Carrying):
    def get_context(self, method=None):
        return self if method is None else get_context(method)


def _derive(standard):
    base = type(standard)
    return type(base.__name__, (_Concrete, base), {"__module__": __name__, "__doc__": base.__doc__})()


contexts = {name: _derive(standard) for name, standard in context._concrete_contexts.items()}


def get_context(method=None):
    """A context whose processes are started by ``method``, by default the standard module's setting."""
    return contexts[context._default_context.get_context(method).get_start_method()]


class Default(_Carrying, context.BaseContext):
    """The context of the package's own functions. Its start method is the standard module's."""

    Process = context.Process

    def get_context(self, method=None):
        """A context whose processes are started by ``method``."""
        return get_context(method)

    def set_start_method(self, method, force=False):
        """Sets how processes are started; may be called once."""
        context._default_context.set_start_method(method, force)

    def get_start_method(self, allow_none=False):
        """How processes are started."""
        return context._default_context.get_start_method(allow_none)

    def get_all_start_methods(self):
        """The start methods of this system, the default first."""
        return context._default_context.get_all_start_methods()


default = Default()
