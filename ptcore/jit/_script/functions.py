"""``ScriptFunction``: a function of Python as a graph that runs."""
import functools
import threading
import weakref

from ptcore._tensor import Tensor
from ptcore._watching import when_profiled
from ptcore.jit._script.run import Program
from ptcore.jit._script.source import ScriptError
from ptcore.jit._script.types import TENSOR, given
from ptcore.jit._script.values import Parameter

__all__ = ["ScriptFunction", "above", "from_graph", "script_function"]

# Functions that import higher files when they are first needed, by name. api.py fills in this table.
above = {}


class ScriptFunction:
    """A scripted function, called in the same way as the original.

    :func:`script` makes it.

    Attributes
    ----------
    graph : Graph
    code : str
        The graph as text of Python, for people.
    name, qualified_name : str
    schema : str
        Names and types of the arguments, and the type of the result.

    Examples
    --------
    >>> import ptcore
    >>> @ptcore.jit.script
    ... def fact(n: int) -> int:
    ...     made = 1
    ...     for k in range(2, n + 1):
    ...         made *= k
    ...     return made
    >>> fact(5)
    120
    >>> fact.schema
    'fact(int n) -> int'
    """

    def __init__(self, name, graph, parameters, returns, function=None, owner=None, own=None):
        self.name, self.graph, self.parameters, self.returns = name, graph, parameters, returns
        self._owner, self._own = owner, own
        self.__name__ = name.rpartition(".")[2]
        self.__module__ = getattr(function, "__module__", None) or __name__
        self.qualified_name = f"{self.__module__}.{name}"
        self.__qualname__ = name
        self.original_function = function
        if function is not None:
            self.__doc__ = function.__doc__
            self.__wrapped__ = function
        self._checks = [None if p.type == TENSOR else p.type for p in parameters]
        self._n = len(parameters)

    @functools.cached_property
    def _program(self):
        return above["straight"]()(Program(self.graph, self._owner), self.graph, self._owner)

    def bound(self, owner):
        """The same method of another module."""
        made = ScriptFunction(self.name, self.graph, self.parameters, self.returns, self.original_function, owner,
                              self._own)
        return made

    def __call__(self, *args, **kwargs):
        if kwargs or len(args) != self._n:
            args = self._complete(args, kwargs)
        k = 0
        for x, t in zip(args, self._checks):
            if t is None:
                if not isinstance(x, Tensor):
                    self._wrong(k, x)
            else:
                args = self._given(args)
                break
            k += 1
        return self._program(*args)

    def _given(self, args):
        made = []
        for k, (p, x) in enumerate(zip(self.parameters, args)):
            try:
                made.append(given(p.type, x))
            except TypeError:
                self._wrong(k, x)
        return made

    def _wrong(self, k, x):
        p = self.parameters[k]
        try:
            given(p.type, x)
        except TypeError as error:
            raise RuntimeError(f"{self.name}() argument {p.name!r} (position {k}): {error}. Declaration: {self.schema}"
                               ) from None

    def _complete(self, args, kwargs):
        positional = [p for p in self.parameters if not p.keyword_only]
        if len(args) > len(positional):
            raise RuntimeError(f"{self.name}() takes {len(positional)} arguments, got {len(args)}. Declaration: "
                               f"{self.schema}")
        made, kwargs = list(args), dict(kwargs)
        for p in self.parameters[len(args):]:
            if p.name in kwargs:
                made.append(kwargs.pop(p.name))
            elif p.has_default:
                made.append(_fresh(p.default))
            else:
                raise RuntimeError(f"{self.name}() misses the argument {p.name!r}. Declaration: {self.schema}")
        if kwargs:
            name = next(iter(kwargs))
            twice = name in [p.name for p in self.parameters]
            raise RuntimeError(f"{self.name}() got {'two values' if twice else 'an unknown argument,'} for {name!r}. "
                               f"Declaration: {self.schema}")
        return made

    @property
    def schema(self):
        parts = [f"{p.type} {p.name}" + (f"={p.default!r}" if p.has_default else "") for p in self.parameters]
        star = next((k for k, p in enumerate(self.parameters) if p.keyword_only), None)
        if star is not None:
            parts.insert(star, "*")
        return f"{self.name}({', '.join(parts)}) -> {self.returns}"

    @property
    def inlined_graph(self):
        """The graph, with the graphs of called functions, methods and submodules inlined."""
        return above["inlined_graph"]()(self)

    @property
    def code(self):
        from ptcore.jit._script.printing import code_of
        return code_of(self)

    def save(self, f, **kwargs):
        """Writes the function to a file; see :func:`ptcore.jit.save`."""
        above["save"]()(self, f, **kwargs)

    def __get__(self, instance, owner=None):
        if instance is None:
            return self
        return functools.partial(self, instance)

    def __reduce__(self):
        raise TypeError("a ScriptFunction is not pickled; jit.save writes it")

    def __deepcopy__(self, memo):
        return self

    def __repr__(self):
        return f"ScriptFunction({self.schema})"


def _fresh(default):
    """A default of its own for each call: lists and dicts in it are copied."""
    if isinstance(default, list):
        return [_fresh(x) for x in default]
    if isinstance(default, dict):
        return {key: _fresh(x) for key, x in default.items()}
    return default


def from_graph(name, graph, owner=None):
    """The ScriptFunction of a graph, with arguments, defaults and types of its placeholders."""
    parameters = []
    for node in graph.find_nodes(op="placeholder"):
        default = node.args[0] if node.args else None
        if isinstance(default, (list, dict)):
            default = (list if isinstance(default, list) else dict)(default)
        parameters.append(Parameter(node.target, node.type, bool(node.args), default,
                                    node.meta.get("keyword_only", False)))
    return ScriptFunction(name, graph, parameters, graph.output_node().type, None, owner)


_functions = weakref.WeakKeyDictionary()        # functions of Python -> their ScriptFunctions
_thread = threading.local()                     # the functions being compiled, by thread


def script_function(function, name=None):
    """The ScriptFunction of a Python function; the same object each time."""
    made = _functions.get(function)
    if made is None:
        made = compiled(function, lambda: name or function.__qualname__.rpartition("<locals>.")[2])
        _functions[function] = made
    return made


def compiled(function, name, key=None, owner=None, **options):
    """Compiles a function. A function that is being compiled already raises: script has no recursion."""
    key = key or function
    running = _thread.__dict__.setdefault("running", [])
    if key in running:
        raise ScriptError(f"{name()} calls itself: script has no recursion; write a loop")
    running.append(key)
    try:
        made = above["Compiler"]()(function, **options).compile()
    except RecursionError:
        raise ScriptError(f"{name()} is nested too deep to be compiled; write parts of it as functions") from None
    finally:
        running.pop()
    return ScriptFunction(name(), made.graph, made.parameters, made.result, function, owner)


@when_profiled
def _record_runs(begins):
    """Lets runs of scripted functions be recorded as ranges of a profile."""
    from ptcore.autograd.ranges import exchange
    exchange(begins, ScriptFunction, "__call__", lambda self: self.name)
