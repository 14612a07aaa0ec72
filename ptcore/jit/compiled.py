"""``compile``: calls of a function are answered by graphs captured from earlier calls."""
import functools
import inspect
import signal
import threading
import traceback
import types
import weakref

from ptcore._errors import warn
from ptcore._interpret import innermost
from ptcore._ops.checked import flag
from ptcore._overrides import modes as function_modes
from ptcore._random import get_states, set_states
from ptcore._state import is_grad_enabled, is_history_recorded
from ptcore._state import put_grad_enabled as set_mode
from ptcore._subclass import payload_of
from ptcore._tensor import Tensor
from ptcore._watching import when_profiled
from ptcore.jit._entry import (
    CompiledFunction,
    Entry,
    Part,
    is_left_to_python,
    leave_to_python,
    record_regions,
    stance,
)
from ptcore.jit._entry import told as told
from ptcore.jit.capture import calls
from ptcore.jit.capture.guards import RAISED, same_value
from ptcore.jit.capture.session import Capture, asked, key_of
from ptcore.jit.capture.shallow import calling, function_in
from ptcore.jit.capture.tracer import Sourceless, Stop, Unsupported
from ptcore.nn.modules.module import Module, note_path
from ptcore.nn.modules.module_hooks import has_hooks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LIMIT = 8                               # limit of variants of a function, and of successors of a read value
DEEP = 16                               # eager calls within each other beyond which none hands its calls on: frames
STANCES = ("default", "force_eager", "eager_on_recompile", "fail_on_recompile")


class CaptureError(RuntimeError):
    """Raised where a function under ``fullgraph=True`` is not captured as one graph, or a user's backend raises."""


class _BackendStop(Stop):
    """Ends a capture because the user's backend raised the error ``__cause__``."""

    def for_the_user(self, name):
        error = self.__cause__
        return CaptureError(f"compile: the backend of {name} raises {type(error).__name__}: {error}")


class _State(threading.local):
    """The thread's state: whether it captures, how many functions under ``disable`` it is in, and how many that run
    eagerly with their calls handed on."""

    capturing = False
    left_out = depth = 0

    def set(self, capturing, left_out):
        """Changes the thread's state."""
        self.capturing, self.left_out = capturing, left_out
        leave_to_python(capturing or left_out > 0)


def comes_from_signal(error):
    """Whether a handler of a signal raised an error: it belongs to the caller, at whatever line it came."""
    codes = set()
    for number in signal.valid_signals():
        handler = signal.getsignal(number)
        while isinstance(handler, functools.partial):
            handler = handler.func
        if callable(handler) and not hasattr(handler, "__code__"):
            handler = getattr(handler, "__func__", type(handler).__call__)
        codes.add(getattr(handler, "__code__", None))
    return any([frame.f_code in codes for frame, _ in traceback.walk_tb(error.__traceback__)])


def is_not_the_programs(error):
    """Whether an error, such as an interrupt, leaves a capture as it is: the eager call would not raise it again."""
    return not isinstance(error, Exception) or comes_from_signal(error)


state = _State()
default_backend = ["cpu"]
counts = {"captures": 0, "eager": 0, "raised": 0}
_all = weakref.WeakSet()


# -- backends ---------------------------------------------------------------------------------------------------------

# Options of PyTorch's backends mean nothing to these.

def _eager(module, inputs, **options):
    return module.forward


def _cpu(module, inputs, **options):
    from ptcore.jit._backend import compile_graph
    from ptcore.jit.passes import copy_of, fold
    module = copy_of(module)            # a copy owns its constants
    fold(module)
    compiled = compile_graph(module, inputs, fixed=True)
    return compiled.runner if compiled.is_simple else compiled


backends = {"cpu": _cpu, "eager": _eager}


def find_backend(backend):
    """The function of a backend's name.

    Raises
    ------
    CaptureError
        If no backend has that name.
    """
    if callable(backend):
        return backend
    if type(backend) is not str or backend not in backends:
        raise CaptureError(f"compile: there is no backend {backend!r}; there are {sorted(backends)}")
    return backends[backend]


class Settings:
    """The arguments of ``compile``, and the sizes and numbers known to vary."""

    __slots__ = ("backend", "dynamic", "fullgraph", "limit", "name", "options", "varying")

    def __init__(self, fullgraph, dynamic, backend, options):
        self.fullgraph, self.dynamic, self.options = fullgraph, dynamic, options
        self.backend, self.limit, self.name = find_backend(backend), LIMIT, None
        self.varying = {}               # text of a source -> dims, or "number"

    def copy(self):
        """A copy without the sizes and numbers found to vary."""
        made = Settings(self.fullgraph, self.dynamic, self.backend, self.options)
        made.limit, made.name = self.limit, self.name
        return made

    def make(self, module, inputs):
        if self.backend is _cpu or self.backend is _eager:
            return self.backend(module, inputs)
        try:
            made = self.backend(module, inputs, **self.options or {})
            if not callable(made):
                raise TypeError(f"the backend must return a callable, got {type(made).__name__}")
        except Exception as error:
            if comes_from_signal(error):
                raise
            raise _BackendStop from error
        return made


class Eager(Part):
    """A variant that runs eagerly: its guards, and the reason."""

    __slots__ = ("reason", "where")

    def __init__(self, program, reason, where):
        self.program, self.reason, self.where = program, reason, where


# -- compiled functions -----------------------------------------------------------------------------------------------

class Compiled(Entry):
    """The captured variants of one function. ``Entry`` answers calls by them.

    Parameters
    ----------
    function : callable
        A function, or any callable that is no module.
    settings : Settings
    """

    def __init__(self, function, settings):
        self.function, self.settings = function, settings
        self.forms = {}                 # (number of arguments, keywords) -> variants
        self.parts = {}                 # functions that this one calls while it runs eagerly
        self.is_full = False            # whether all later calls run eagerly
        self.is_warned = False          # whether the limit of variants was reported
        self.is_quiet = False           # whether no warning tells of it: what an eager function calls, explain
        self.shallow, self.error = {}, None     # function -> its code, the function with its calls handed on
        _all.add(self)

    @property
    def name(self):
        return self.settings.name or _name(self.function)

    def reset(self):
        self.forms, self.parts, self.is_full, self.is_warned, self.direct = {}, {}, False, False, None
        self.settings.varying = {}

    def otherwise(self, args, kwargs):
        """Answers a call that no check of a variant takes."""
        if self.is_full or stance["now"] == "force_eager" or is_left_to_python():
            return self.eagerly(args, kwargs)
        if innermost() is not None or function_modes():
            return self.function(*args, **kwargs)
        flat = (*args, *kwargs.values())
        variants = self.forms.get(_form(args, kwargs))
        segment, inputs = _relaxed(variants, flat)
        if segment is None:
            return self.miss(variants, flat, args, kwargs)
        if type(segment) is Eager:
            return self.eagerly(args, kwargs)
        return self.run_segments(segment, inputs, flat, args, kwargs)

    # -- known paths --------------------------------------------------------------------------------------------

    def run_segments(self, segment, inputs, flat, args, kwargs):
        """Runs captured segments; the value read at the end of each selects the next."""
        start = segment.start_grad
        try:
            return self.run_from(segment, inputs, flat, args, kwargs)
        except BaseException:
            set_mode(start)                     # the mode that the guards require
            raise

    def run_from(self, segment, inputs, flat, args, kwargs):
        results, path, copies = (), None, None
        states = None
        while True:
            arguments = segment.arguments(inputs, results)
            if is_history_recorded() is not segment.entry_grad:
                set_mode(segment.entry_grad)
            if segment.asks is not None or segment.watched:
                if path is None:
                    path, copies, states = [], [], get_states()
                if segment.watched or not segment.effects:      # effects themselves are not taken back
                    copies += [(arguments[k], arguments[k].detach().clone()) for k in segment.written
                               if isinstance(arguments[k], Tensor)]
            done = [] if path is None else [s for s, _, _ in path]      # segments that have made their effects
            try:
                results = segment.run(*arguments)
                done.append(segment)
                for effect in segment.effects:
                    effect.perform(inputs, results)
            except Exception as error:
                if not segment.watched or comes_from_signal(error):
                    raise
                return self.handled(error, done, done[0] if done else segment, copies, states, args, kwargs)
            if segment.asks is None:
                if segment.exit_grad is not is_history_recorded():
                    set_mode(segment.exit_grad)
                return segment.template.build(results, flat)
            value = None if segment.asks == "nothing" else asked(results[0], segment.asks)
            key = key_of(value)
            path.append((segment, value, results))
            children = segment.children.get(key, ())
            for child in children:
                inputs = child.program.check(flat)
                if inputs is not None:
                    segment = child
                    break
            else:
                segment, inputs = _relaxed(children, flat)
                if segment is None:
                    return self.extend(path, key, copies, states, flat, args, kwargs)

    def handled(self, error, done, first, copies, states, args, kwargs):
        """Answers a call in which a segment raised an error that the program may handle: the function itself does.

        ``done``: the segments whose rows have run; ``first``: the first segment of the call.
        """
        if any([segment.effects for segment in done]):
            raise CaptureError(f"{self.name} may handle this error, but cannot go back behind a step that it has made: "
                               f"{type(error).__name__}: {error}") from error
        self.take_back(first, copies, states)
        return self.eagerly(args, kwargs)

    @staticmethod
    def take_back(first, copies, states):
        """Takes back what segments have done, of which ``first`` is the first."""
        for x, copy in reversed(copies):
            x.data.copy_(copy)
        set_states(states)
        set_mode(first.start_grad)

    def extend(self, path, key, copies, states, flat, args, kwargs):
        """Captures the continuation behind a new value."""
        last = path[-1][0]
        if sum(map(len, last.children.values())) >= self.settings.limit:
            self.warn_limit(f"the value read at {_place(last.where)}, now {key[1]}")
            self.is_full = True             # after this call, since its first part has run
        set_mode(path[0][0].start_grad)
        has_effects = any([segment.effects for segment, _, _ in path])
        capture, raised = self.capture(flat, kwargs, path), None
        try:
            result = self.run_capture(capture)
        except Unsupported as stop:
            self.refuse(stop)
            if has_effects:
                raise CaptureError(f"{self.name} cannot go on behind a step that it has made: "
                                   f"{stop.reason}{_at(stop.where)}") from None
        except _BackendStop as stop:
            if not has_effects:
                capture.undo()
                self.take_back(path[0][0], copies, states)
            raise stop.for_the_user(self.name) from stop.__cause__
        except BaseException as error:
            if has_effects:
                capture.write_out()
                raise
            if is_not_the_programs(error):
                capture.undo()
                raise
            counts["raised"] += 1
            raised = self.error = error.with_traceback(None)
        else:
            for k, segment in enumerate(capture.segments[len(path):], len(path)):
                last.children.setdefault(key_of(capture.values[k - 1]), []).append(segment)
                last = segment
            return result
        capture.undo()
        self.take_back(path[0][0], copies, states)
        self.is_full |= raised is None
        result = self.eagerly(args, kwargs)
        self.is_full = True                 # since only the tracer raised the error
        return result

    # -- unknown paths ------------------------------------------------------------------------------------------

    def capture(self, flat, kwargs, path=(), symbols=True):
        names = _names(self.function, len(flat) - len(kwargs), kwargs)
        return Capture(self.function, names, flat, tuple(kwargs), self.settings, path, symbols)

    def run_capture(self, capture):
        counts["captures"] += 1
        state.set(True, state.left_out)
        try:
            return capture.run()
        finally:
            state.set(False, state.left_out)

    def miss(self, variants, flat, args, kwargs):
        if any(isinstance(x, Tensor) and payload_of(x) is not None for x in flat):
            return self.function(*args, **kwargs)
        if variants:
            if stance["now"] == "eager_on_recompile":
                return self.eagerly(args, kwargs)
            if stance["now"] == "fail_on_recompile":
                raise CaptureError(f"{self.name} would be captured again under the stance "
                                   f"'fail_on_recompile': {variants[-1].program.failing(flat)!r} does not hold")
            if len(variants) >= self.settings.limit:
                if not self.is_warned or self.settings.fullgraph:
                    self.warn_limit(repr(variants[-1].program.failing(flat)))
                    self.is_warned = True
                return self.eagerly(args, kwargs)       # captured variants stay in use
            self.learn(variants, flat)
        grad, states = is_grad_enabled(), get_states()
        for symbols in (True, False):       # a capture that fails with symbols is tried without
            capture = self.capture(flat, kwargs, symbols=symbols)
            failed = raised = broken = None
            try:
                result = self.run_capture(capture)
            except Unsupported as stop:
                failed = stop
            except _BackendStop as stop:
                broken = stop
            except BaseException as error:  # the program's error or only the tracer's: the eager call shows which
                if is_not_the_programs(error):
                    capture.undo()
                    set_states(states)
                    set_mode(grad)
                    raise
                counts["raised"] += 1
                raised = self.error = error.with_traceback(None)
            else:
                self.store(capture, args, kwargs)
                return result
            capture.undo()
            set_states(states)
            set_mode(grad)
            if not capture.symbolic:
                break
        if broken is not None:
            raise broken.for_the_user(self.name) from broken.__cause__
        if failed is not None:
            self.refuse(failed)
            if isinstance(failed, Sourceless) and failed.code is _code_of(self.function):
                return self.leave(failed, capture, args, kwargs)
        result = self.eagerly(args, kwargs)     # raises if the error is the program's
        if failed is None:
            failed = Unsupported(f"the tracer raises {type(raised).__name__}: {raised}", (None, 0))
            failed.where = None
            self.refuse(failed)
        program = capture.program if not capture.segments else capture.segments[0].program
        program.inputs = []
        self.variants_of(args, kwargs).append(Eager(program, failed.reason, failed.where))
        return result

    def leave(self, stop, capture, args, kwargs):
        """Lets this and all later calls run the function, whose text is not known."""
        if not self.is_quiet:
            warn(f"compile: {stop.reason}; it is not captured and runs as it is. Python keeps the text of functions in "
                 "files and notebooks")
        self.variants_of(args, kwargs).append(Eager(capture.program, stop.reason, stop.where))
        self.direct = self.function
        return self.function(*args, **kwargs)

    def refuse(self, stop):
        if self.settings.fullgraph:
            raise CaptureError(f"{self.name} is not captured as one graph, as fullgraph=True asks: "
                               f"{stop.reason}{_at(stop.where)}") from None

    def variants_of(self, args, kwargs):
        return self.forms.setdefault(_form(args, kwargs), [])

    def store(self, capture, args, kwargs):
        first, *rest = capture.segments
        for value, segment in zip(capture.values, rest):
            first.children.setdefault(key_of(value), []).append(segment)
            first = segment
        self.variants_of(args, kwargs).append(capture.segments[0])

    def learn(self, variants, flat):
        """Compares a call with existing variants: sizes and numbers that vary become symbols."""
        if self.settings.dynamic is False:
            return
        for variant in variants:
            guard = variant.program.failing(flat)
            if guard is None:
                continue
            is_number = guard.kind == "value" and type(guard.expected) in (int, float)
            for g in variant.program.guards:
                try:
                    value = g.source.fetch(flat)
                except RAISED:
                    continue
                if g.kind == "tensor" and isinstance(value, Tensor) and value.ndim == len(g.expected.shape):
                    dims = [d for d, n in enumerate(g.expected.shape) if n != value.shape[d]]
                    if dims:
                        self.settings.varying.setdefault(g.source.text, set()).update(dims)
                elif (is_number and g.kind == "value" and type(value) is type(g.expected)
                      and type(value) in (int, float) and not same_value(value, g.expected)):
                    self.settings.varying.setdefault(g.source.text, set()).add("number")

    def warn_limit(self, text):
        met = f"{self.name} was captured {self.settings.limit} times"
        if self.settings.fullgraph:
            raise CaptureError(f"{met}, and is not again: {text} does not hold")
        warn(f"compile: {met}, and calls for which none of these holds run eagerly from now on; what did not hold "
             f"last: {text}")

    # -- without a graph -----------------------------------------------------------------------------------------

    def eagerly(self, args, kwargs):
        """Runs the function itself; functions that it calls are compiled where possible."""
        if is_left_to_python() or stance["now"] == "force_eager" or state.depth == DEEP:
            return self.function(*args, **kwargs)
        counts["eager"] += 1
        state.depth += 1
        try:
            return self.by_parts(args, kwargs)
        finally:
            state.depth -= 1

    def by_parts(self, args, kwargs):
        if self.function is call_module:
            return self.module_eagerly(args[0], args[1:], kwargs)
        if self.function is call_function:      # takes the function as an argument, so nothing keeps it alive
            return args[0](*args[1:], **kwargs)
        if isinstance(self.function, Module):
            return self.module_eagerly(self.function, args, kwargs)
        return (self.handing_on(self.function) or self.function)(*args, **kwargs)

    def handing_on(self, function):
        """The function with its calls handed to ``part_of``, or None."""
        key = getattr(function, "__func__", function)
        code, made = self.shallow.get(key, (self, None))
        if code is not getattr(key, "__code__", None):
            made = calling(key, self.part_of)
            self.shallow[key] = getattr(key, "__code__", None), made
        if made is not None:
            made.__defaults__, made.__kwdefaults__ = key.__defaults__, key.__kwdefaults__
        return made if made is None or key is function else types.MethodType(made, function.__self__)

    def module_eagerly(self, module, args, kwargs):
        """Runs a module; functions that its ``forward`` calls are compiled."""
        forward = module.forward
        made = None
        if type(module).__call__ is Module.__call__ and not has_hooks(module) and isinstance(
                forward, (types.MethodType, types.FunctionType)):
            made = self.handing_on(forward)
        if made is None:
            return module(*args, **kwargs)
        try:
            return made(*args, **kwargs)
        except Exception as error:
            note_path(error, module)
            raise

    def part_of(self, f, args):
        """The compiled form of what a function that runs eagerly calls, or None."""
        owner = f.__self__ if type(f) is types.MethodType else None
        f = function_in(f)
        if isinstance(f, Module):
            if type(f).__call__ is not Module.__call__ or getattr(f, "_captured_as", None) is not None:
                return None
            key, parts = id(f), self.parts
            known = parts.get(key)
            if known is None:               # the module is an argument, so nothing keeps it alive
                known = parts[key] = weakref.ref(f, lambda _: parts.pop(key, None)), self.inner(call_module,
                                                                                                type(f).__name__)
            return functools.partial(known[1], f)
        if inspect.isgeneratorfunction(f) or not (isinstance(owner, Module) or _has_tensor(args)):
            return None
        # the key has the name because all functions made by one decorator share one code
        key = f.__code__, f.__qualname__
        known = self.parts.get(key)
        if known is None and not f.__closure__:
            known = self.parts[key] = f, self.inner(f, f.__qualname__)
        elif known is None or known[0] not in (None, f):        # a function that is made anew in each call
            known = self.parts[key] = None, self.inner(call_function, f.__qualname__)
        made = known[1] if known[0] is f else functools.partial(known[1], f)
        return made if owner is None else functools.partial(made, owner)

    def inner(self, f, name):
        """The Compiled of a function that this one calls."""
        settings = Settings(False, self.settings.dynamic, self.settings.backend, self.settings.options)
        settings.name = name
        made = Compiled(f, settings)
        made.is_quiet = True
        return made


def _form(args, kwargs):
    """The key of a call's variants."""
    return (len(args), tuple(kwargs)) if kwargs else len(args)


def _relaxed(segments, args):
    """The first segment whose guards hold if functions are not compared by identity, and its inputs; or None twice."""
    for segment in segments or ():
        inputs = segment.program.relaxed(args)
        if inputs is not None:
            return segment, inputs
    return None, None


def call_module(module, /, *args, **kwargs):
    """Calls a module. Compiled for modules that eager functions call, it takes the module as an argument."""
    return module(*args, **kwargs)


def call_function(function, /, *args, **kwargs):
    """Calls a function. Compiled for functions with cells or made anew in each call, which it takes as an argument."""
    return function(*args, **kwargs)


def _has_tensor(args):
    return any(isinstance(x, Tensor) or any(
        isinstance(x, base) and any(isinstance(y, Tensor) for y in base.__iter__(x)) for base in (list, tuple))
        for x in args)


def _name(f):
    return getattr(f, "__qualname__", None) or type(f).__name__


def _code_of(f):
    """The code that a call of ``f`` runs, or None."""
    f = f.forward if isinstance(f, Module) else f
    return getattr(getattr(f, "__func__", f), "__code__", None)


def _place(where):
    return "an unknown line" if where is None else f"{where[0]}:{where[1]}"


def _at(where):
    return "" if where is None else f" ({_place(where)})"


def _names(function, n, kwargs):
    """The names of a call's arguments."""
    target = function
    if isinstance(function, Module):
        target = function.forward
    if isinstance(target, types.MethodType):
        first, code = 1, getattr(target.__func__, "__code__", None)
    else:
        first, code = 0, getattr(target, "__code__", None)
    names = list(code.co_varnames[first:code.co_argcount]) if code is not None else []
    names = names[:n] + [f"args[{k}]" for k in range(len(names), n)]
    return names + list(kwargs)


# -- the user's functions and modules ---------------------------------------------------------------------------------

def wrapped(function, compiled):
    """A function that calls ``compiled`` and looks like ``function``."""
    made = CompiledFunction(compiled, lambda r, args, kwargs: calls.call(r, r.constant(function), args, kwargs))
    return functools.update_wrapper(made, function, [n for n in functools.WRAPPER_ASSIGNMENTS if hasattr(function, n)],
                                    ())


class OptimizedModule(Module):
    """A compiled module: the original is ``_orig_mod``, and its attributes are those of this module as well."""

    def __init__(self, module, settings):
        super().__init__()
        self._orig_mod = module
        self.__dict__["_compiled"] = Compiled(module, settings)
        self.__dict__["_captured_as"] = lambda r, args, kwargs: calls.call(r, r.constant(module), args, kwargs)
        del self.__dict__["training"]

    def __call__(self, *args, **kwargs):
        if "_hooks" in self.__dict__:
            return super().__call__(*args, **kwargs)
        return self._compiled(*args, **kwargs)

    def forward(self, *args, **kwargs):
        """Runs the compiled module."""
        return self._compiled(*args, **kwargs)

    def __len__(self):
        return len(self._orig_mod)

    def train(self, mode=True):
        """Sets the mode of the original module."""
        self._orig_mod.train(mode)
        return self

    def __getattr__(self, name):
        if name == "_orig_mod":
            return super().__getattr__(name)
        return getattr(self._orig_mod, name)

    def __setattr__(self, name, value):
        if name == "_orig_mod":
            super().__setattr__(name, value)
        else:
            setattr(self._orig_mod, name, value)

    def __delattr__(self, name):
        delattr(self._orig_mod, name)

    def __dir__(self):
        return sorted({*super().__dir__(), *dir(self._orig_mod)})

    def __reduce__(self):
        settings = self._compiled.settings
        return _again, (self._orig_mod, settings.fullgraph, settings.dynamic, settings.backend, settings.options,
                        settings.limit, settings.name)

    def __deepcopy__(self, memo):
        import copy
        return OptimizedModule(copy.deepcopy(self._orig_mod, memo), self._compiled.settings.copy())

    def __repr__(self):
        return f"OptimizedModule(\n  (_orig_mod): {repr(self._orig_mod).replace(chr(10), chr(10) + '  ')}\n)"


def _again(module, fullgraph, dynamic, backend, options, limit=LIMIT, name=None):
    settings = Settings(fullgraph, dynamic, backend, options)
    settings.limit, settings.name = limit, name
    return OptimizedModule(module, settings)


def compile(model=None, *, fullgraph=False, dynamic=None, backend=None, mode=None, options=None, name=None,
            disable=False, recompile_limit=None) -> "Any":
    """A function or module that answers calls by graphs captured from earlier calls.

    At the first call the function runs under a tracer. Its rows become a graph, and everything it reads outside of the
    call (globals, attributes, elements, modes, sizes) becomes a guard. A later call for which the guards hold runs the
    graph; any other call is captured anew. A branch on a tensor's value ends a graph, and the value selects the next
    graph. Code that cannot be captured runs as it is, with the functions it calls compiled where possible:
    :func:`ptcore.compiler.explain` says where and why.

    Parameters
    ----------
    model : callable or Module, optional
        Left out, a decorator is returned.
    fullgraph : bool, default: False
        Whether to raise where the function is not captured as one graph.
    dynamic : bool, optional
        Whether sizes are symbols: True from the first call, False never. By default those sizes are that were met
        with a second value.
    backend : str or callable, optional
        The backend that runs graphs: a name of :func:`ptcore.compiler.list_backends`, or a function of a GraphModule
        and example inputs that returns a callable, which takes the inputs and returns a tuple. The default is that of
        :func:`ptcore.compiler.get_default_backend`, "cpu".
    mode : str, optional
        Accepted for programs of PyTorch: "default", "reduce-overhead", "max-autotune" or
        "max-autotune-no-cudagraphs"; all mean the same here.
    options : dict, optional
        Handed to a backend of one's own as keywords. "cpu" and "eager" have none, and leave those of PyTorch unread.
    name : str, optional
        The name of the function in warnings and errors.
    disable : bool, default: False
        Whether to return the function itself.
    recompile_limit : int, optional
        How often the function is captured before it runs eagerly; 8 by default.

    Returns
    -------
    callable

    Raises
    ------
    RuntimeError
        If ``mode`` and ``options`` are both given, or a name is unknown; at a call, if a backend of one's own raises an
        error.

    Examples
    --------
    >>> import ptcore
    >>> @ptcore.compile
    ... def f(x):
    ...     return x * 2 if x.shape[0] > 1 else x
    >>> f(ptcore.ones(2))
    tensor([2., 2.])
    """
    if mode is not None and options is not None:
        raise RuntimeError("compile: give either mode or options, not both")
    if mode not in (None, "default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs"):
        raise RuntimeError(f"compile: unknown mode {mode!r}")
    fullgraph, disable = flag("compile", "fullgraph", fullgraph), flag("compile", "disable", disable)
    dynamic = None if dynamic is None else flag("compile", "dynamic", dynamic)
    if recompile_limit is not None and (type(recompile_limit) is not int or recompile_limit < 1):
        raise ValueError(f"compile: recompile_limit must be a positive int, got {recompile_limit!r}")
    if options is not None and not isinstance(options, dict):
        raise TypeError(f"compile: options must be a dict, got {type(options).__name__}")
    if model is None:
        return functools.partial(compile, fullgraph=fullgraph, dynamic=dynamic, backend=backend, mode=mode,
                                 options=options, name=name, disable=disable, recompile_limit=recompile_limit)
    if not callable(model):
        raise TypeError(f"compile: expected a callable, got {type(model).__name__}")
    if disable:
        return model
    settings = Settings(fullgraph, dynamic, default_backend[0] if backend is None else backend, options)
    settings.name, settings.limit = name, LIMIT if recompile_limit is None else recompile_limit
    if isinstance(model, Module):
        return model if isinstance(model, OptimizedModule) else OptimizedModule(model, settings)
    if isinstance(model, type):
        raise TypeError(f"compile: {model.__name__} is a class; compile its instances or its methods")
    original = getattr(model, "_compiled", None)
    function = model if original is None else original.function
    return wrapped(function, Compiled(function, settings))


def disable(fn=None, recursive=True, *, reason=None):
    """A function that is never captured: a captured caller runs it eagerly.

    Parameters
    ----------
    fn : callable, optional
        Left out, a decorator is returned.
    recursive : bool, default: True
        Whether nothing that it calls is compiled either. False: the function itself alone is left out.
    reason : str, optional
        The text that :func:`explain` shows.
    """
    if fn is None:
        return functools.partial(disable, recursive=recursive, reason=reason)
    text = f"it calls {_name(fn)}, which compiler.disable leaves out{'' if reason is None else f': {reason}'}"

    def refused(r, args, kwargs):
        r.unsupported(text)

    def call(*args, **kwargs):
        if not recursive:
            return fn(*args, **kwargs)
        state.set(state.capturing, state.left_out + 1)
        try:
            return fn(*args, **kwargs)
        finally:
            state.set(state.capturing, state.left_out - 1)
    functools.update_wrapper(call, fn, [n for n in functools.WRAPPER_ASSIGNMENTS if hasattr(fn, n)], ())
    call._captured_as = refused
    return call


def reset():
    """Forgets all captured graphs."""
    for compiled in list(_all):
        compiled.reset()


@when_profiled
def _record_regions(begins):
    """Lets runs of compiled functions be recorded as ranges of a profile."""
    from ptcore.autograd.recording import USER, Range
    record_regions((lambda entry: Range(USER, f"Torch-Compiled Region: {entry.name}")) if begins else None)
