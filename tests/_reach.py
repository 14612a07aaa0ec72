"""Public contexts and modes, each with its reach: whether other threads are in it too.

An entry runs a function of a library ``T``, ptcore or torch, in the mode, and says what a thread then sees of it.
"""
import importlib
import io
import mmap
import queue
import threading
from contextlib import nullcontext

from ptcore._node import HAS_FRAMES

THREAD, PROCESS, NOWHERE = "thread", "process", "nowhere"


class Entry:
    """``run(T, inside)`` calls ``inside()`` in the mode; ``seen(T)`` is another value where the mode holds.

    Attributes
    ----------
    reach : {"thread", "process", "nowhere"}
        The threads that are in the mode with the one that enters it; nowhere: it changes nothing.
    context : callable or None
        ``context(T)`` is a new context manager, where the mode has one.
    around : callable
        ``around(T)`` is a context in which each thread looks: a mode may show inside another alone.
    is_own : bool
        Whether ptcore alone has it.
    is_single : bool
        Whether one thread at a time may be in it.
    """

    def __init__(self, reach, seen, context=None, run=None, around=None, is_own=False, is_single=False):
        self.reach, self.seen, self.context = reach, seen, context
        self.run = run if context is None else self.run_context
        self.around = around or (lambda T: nullcontext())
        self.is_own, self.is_single = is_own, is_single

    def run_context(self, T, inside):
        with self.context(T):
            inside()


class Walker:
    """A thread that goes into a mode, looks and comes out, when it is told to; one of them runs at a time."""

    def __init__(self, T, entry):
        self.T, self.entry = T, entry
        self.orders, self.answers = queue.Queue(), queue.Queue()
        self.thread = threading.Thread(target=self.work, daemon=True)
        self.thread.start()

    def work(self):
        try:
            with self.entry.around(self.T):
                self.obey("end")
        except BaseException as error:
            self.answers.put(error)

    def obey(self, last):
        while (order := self.orders.get()) != last:
            if order == "look":
                self.answers.put(self.entry.seen(self.T))
            else:
                assert order == "enter"
                self.entry.run(self.T, self.inside)
                self.answers.put("out")

    def inside(self):
        self.answers.put("in")
        self.obey("leave")

    def tell(self, order):
        self.orders.put(order)
        found = self.answers.get(timeout=120)
        if isinstance(found, BaseException):
            raise found
        return found

    def end(self):
        self.orders.put("end")
        self.thread.join(120)


def looking(T, entry):
    """What a thread sees that begins now."""
    new = Walker(T, entry)
    try:
        return new.tell("look")
    finally:
        new.end()


def walked(T, entry):
    """What two threads see, A inside alone, both inside, and after: a list of (moment, what A sees, what B sees, what
    a thread sees that begins then)."""
    a, b = Walker(T, entry), Walker(T, entry)
    seen = []

    def look(moment):
        seen.append((moment, a.tell("look"), b.tell("look"), looking(T, entry)))
    try:
        look("before")
        a.tell("enter")
        look("A inside")
        if entry.is_single:
            a.tell("leave")
        else:
            b.tell("enter")
            look("both inside")
            # The first to enter leaves first where each has its own; else it is the other way round, as for one thread.
            first, last = (a, b) if entry.reach == THREAD else (b, a)
            first.tell("leave")
            look("one inside")
            last.tell("leave")
        look("after")
    finally:
        a.end()
        b.end()
    return seen


def reach_of(seen):
    """The reach that a walk shows."""
    (_, base, *_), (_, here, there, new) = seen[:2]
    if here == base:
        return NOWHERE
    if there == new == base:
        return THREAD
    if there == new == here:
        return PROCESS
    raise AssertionError(f"a thread that was there and one that begins see different things: {seen}")


# -- what a thread sees ---------------------------------------------------------------------------------------------

def is_torch(T):
    return T.__name__ == "torch"


def submodule(T, name):
    """A module of either, imported."""
    return importlib.import_module(f"{T.__name__}.{name}")


def notices_writes(T):
    """Whether a backward raises where a tensor was written to that no hook has packed."""
    x = T.ones(2, requires_grad=True)
    y = x.exp()
    z = y * 1
    with T.no_grad():
        y.zero_()
    try:
        z.sum().backward()
    except RuntimeError:
        return True
    return False


def refuses_hooks(T):
    try:
        with T.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x):
            return False
    except RuntimeError:
        return True


def raises_at_nan(T):
    x = T.zeros(1, requires_grad=True)
    try:
        (x.sqrt() * 0).sum().backward()
    except RuntimeError:
        return True
    return False


def has_level(T):
    ad = submodule(T, "autograd.forward_ad")
    try:
        ad.make_dual(T.ones(1), T.ones(1))
    except Exception:                   # torch raises a plain one
        return False
    return True


def device_of_new(T):
    return T.ones(1).device.type


def counting_mode(T):
    class Mode(submodule(T, "overrides").TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            CALLS.append(func)
            return func(*args, **(kwargs or {}))
    return Mode()


CALLS = []


def calls_seen(T):
    before = len(CALLS)
    T.ones(2)
    return len(CALLS) > before


def parametrised(T):
    if T not in MODULES:
        MODULES[T] = submodule(T, "nn.utils.parametrizations").weight_norm(T.nn.Linear(2, 2))
    return MODULES[T]


MODULES = {}


def is_computed_once(T):
    layer = parametrised(T)
    return layer.weight is layer.weight


def runs_again(T, **options):
    """How often a checkpointed function comes to its end."""
    ends = []

    def function(x):
        y = x.exp()
        ends.append(1)
        return y
    x = T.ones(2, requires_grad=True)
    submodule(T, "utils.checkpoint").checkpoint(function, x, use_reentrant=False, **options).sum().backward()
    return len(ends)


def refuses_contexts(T):
    try:
        runs_again(T, context_fn=lambda: (nullcontext(), nullcontext()))
    except ValueError:
        return True
    return False


def writes_data(T):
    file = io.BytesIO()
    T.save(T.full((64,), 7.25), file)
    return file.getvalue().count(b"\x00\x00\xe8\x40") >= 64


def is_transformed(T):
    if is_torch(T):
        return T._C._functorch.maybe_get_level(T.ones(1)) != -1 or T._C._functorch.peek_interpreter_stack() is not None
    return bool(T._interpret.entered())


def is_fx_tracing(T):
    return submodule(T, "fx._symbolic_trace").is_fx_symbolic_tracing()


def stance(T):
    where = "_dynamo.eval_frame" if is_torch(T) else "jit._compile"
    found = submodule(T, where)
    return found._stance.stance if is_torch(T) else found.stance["now"]


def is_optimized(T):
    return T._C._get_graph_executor_optimize() if is_torch(T) else T._state.setting("optimized_execution", True)


def benchmark(T):
    return submodule(T, "utils.benchmark.utils.common" if is_torch(T) else "utils.benchmark")


def set_for(seen, setter, value, default=None):
    """The run of a mode that is set to a value, or what a function makes of the library, and back to what is seen
    before, or to a default."""
    def run(T, inside):
        before = seen(T) if default is None else default(T)
        setter(T, value(T) if callable(value) else value)
        try:
            inside()
        finally:
            setter(T, before)
    return run


def setting(reach, seen, setter, value, default=None):
    return Entry(reach, seen, run=set_for(seen, setter, value, default))


def in_function(transform):
    """A mode that a function runs in."""
    def run(T, inside):
        def function(x):
            inside()
            return (x * 1).sum()
        transform(T, function)
    return run


def sdp(T):
    return submodule(T, "nn.attention")


def serialization(T):
    return submodule(T, "serialization")


def cuda_backend(T):
    return submodule(T, "backends.cuda")


def kernel_enabled(T):
    """An op of which one device's function is switched off in a block."""
    library = submodule(T, "library")
    if ("op", T) not in MODULES:
        @library.custom_op(f"reach_{T.__name__}::one", mutates_args=())
        def one(x: T.Tensor) -> T.Tensor:
            return x + 1

        @one.register_kernel("cpu")
        def _(x):
            return x + 2
        MODULES["op", T] = one
    return MODULES["op", T]


# -- the table -------------------------------------------------------------------------------------------------------

def grads(T):
    return T.is_grad_enabled()


CONTEXTS = {
    "no_grad": Entry(THREAD, grads, lambda T: T.no_grad()),
    "enable_grad": Entry(THREAD, grads, lambda T: T.enable_grad(), around=lambda T: T.no_grad()),
    "set_grad_enabled": Entry(THREAD, grads, lambda T: T.set_grad_enabled(False)),
    "inference_mode": Entry(THREAD, lambda T: T.is_inference_mode_enabled(), lambda T: T.inference_mode()),
    "autocast": Entry(THREAD, lambda T: T.is_autocast_enabled("cpu"), lambda T: T.autocast("cpu")),
    "cpu.amp.autocast": Entry(THREAD, lambda T: T.is_autocast_enabled("cpu"), lambda T: T.cpu.amp.autocast()),
    "cuda.amp.autocast": Entry(THREAD, lambda T: T.is_autocast_cache_enabled(),
                               lambda T: T.cuda.amp.autocast(enabled=False, cache_enabled=False)),
    "autograd.graph.saved_tensors_hooks": Entry(THREAD, notices_writes, lambda T: T.autograd.graph.saved_tensors_hooks(
        lambda x: x.clone(), lambda x: x)),
    "autograd.graph.save_on_cpu": Entry(THREAD, notices_writes, lambda T: T.autograd.graph.save_on_cpu()),
    "autograd.graph.allow_mutation_on_saved_tensors": Entry(
        THREAD, notices_writes, lambda T: T.autograd.graph.allow_mutation_on_saved_tensors(), is_single=True),
    "autograd.graph.disable_saved_tensors_hooks": Entry(
        THREAD, refuses_hooks, lambda T: T.autograd.graph.disable_saved_tensors_hooks("no hooks here")),
    "autograd.detect_anomaly": Entry(PROCESS, raises_at_nan, lambda T: T.autograd.detect_anomaly()),
    "autograd.set_detect_anomaly": Entry(PROCESS, raises_at_nan, lambda T: T.autograd.set_detect_anomaly(True)),
    "autograd.set_multithreading_enabled": Entry(NOWHERE, notices_writes,
                                                 lambda T: T.autograd.grad_mode.set_multithreading_enabled(False)),
    "autograd.set_source_lines": Entry(         # without cheap frames nodes keep no line in any case
        THREAD if HAS_FRAMES else NOWHERE, lambda T: (T.ones(1, requires_grad=True) * 2).grad_fn.source_line is None,
        lambda T: T.autograd.set_source_lines(False), is_own=True),
    "autograd.forward_ad.dual_level": Entry(THREAD, has_level, lambda T: submodule(
        T, "autograd.forward_ad").dual_level()),
    "autograd.profiler.profile": Entry(PROCESS, lambda T: T.autograd.profiler._is_profiler_enabled,
                                       lambda T: T.autograd.profiler.profile(), is_single=True),
    "profiler.profile": Entry(PROCESS, lambda T: T.autograd.profiler._is_profiler_enabled,
                              lambda T: submodule(T, "profiler").profile(), is_single=True),
    "device": Entry(THREAD, device_of_new, lambda T: T.device("meta")),
    "overrides.TorchFunctionMode": Entry(THREAD, calls_seen, counting_mode),
    "nn.utils.parametrize.cached": Entry(PROCESS, is_computed_once, lambda T: submodule(
        T, "nn.utils.parametrize").cached()),
    "nn.attention.sdpa_kernel": Entry(PROCESS, lambda T: cuda_backend(T).flash_sdp_enabled(),
                                      lambda T: sdp(T).sdpa_kernel(sdp(T).SDPBackend.MATH)),
    "backends.cuda.sdp_kernel": Entry(PROCESS, lambda T: cuda_backend(T).flash_sdp_enabled(),
                                      lambda T: cuda_backend(T).sdp_kernel(enable_flash=False)),
    "backends.cudnn.flags": Entry(PROCESS, lambda T: submodule(T, "backends.cudnn").benchmark,
                                  lambda T: submodule(T, "backends.cudnn").flags(benchmark=True)),
    "backends.mkldnn.flags": Entry(NOWHERE, notices_writes, lambda T: submodule(T, "backends.mkldnn").flags(False)),
    "backends.nnpack.flags": Entry(NOWHERE, notices_writes, lambda T: submodule(T, "backends.nnpack").flags(False)),
    "jit.optimized_execution": Entry(THREAD, is_optimized, lambda T: T.jit.optimized_execution(False)),
    "compiler.set_stance": Entry(PROCESS, stance, lambda T: submodule(T, "compiler").set_stance("force_eager")),
    "random.use": Entry(PROCESS, lambda T: T.default_generator.kind, lambda T: T.random.use("pytorch"), is_own=True),
    "cpu.StreamContext": Entry(PROCESS, lambda T: id(T.cpu.current_stream()) in STREAMS,
                               lambda T: T.cpu.StreamContext(stream_of(T))),
    "serialization.safe_globals": Entry(
        PROCESS, lambda T: any(getattr(x, "is_of_reach", False) for x in serialization(T).get_safe_globals()),
        lambda T: serialization(T).safe_globals([type("Own", (), {"is_of_reach": True})])),
    "serialization.skip_data": Entry(THREAD, writes_data, lambda T: serialization(T).skip_data()),
    "serialization.set_default_mmap_options": Entry(
        THREAD, lambda T: serialization(T).get_default_mmap_options(),
        lambda T: serialization(T).set_default_mmap_options(mmap.MAP_SHARED)),
    "utils.benchmark.set_torch_threads": Entry(PROCESS, lambda T: T.get_num_threads(),
                                               lambda T: benchmark(T).set_torch_threads(3)),
}

# What is no class and no function of contextlib, and gives a context or holds until it is set back.
MODES = {
    "utils.checkpoint.set_checkpoint_early_stop": Entry(
        PROCESS, runs_again, lambda T: submodule(T, "utils.checkpoint").set_checkpoint_early_stop(False)),
    "utils.checkpoint.set_checkpoint_debug_enabled": Entry(
        PROCESS, refuses_contexts, lambda T: submodule(T, "utils.checkpoint").set_checkpoint_debug_enabled(True)),
    "library.CustomOpDef.set_kernel_enabled": Entry(
        PROCESS, lambda T: kernel_enabled(T)(T.zeros(1)).item(),
        lambda T: kernel_enabled(T).set_kernel_enabled("cpu", False)),
    "set_default_dtype": setting(PROCESS, lambda T: T.get_default_dtype(), lambda T, d: T.set_default_dtype(d),
                                 lambda T: T.float64),
    "set_default_device": setting(THREAD, device_of_new, lambda T, d: T.set_default_device(d), "meta", lambda T: None),
    "use_deterministic_algorithms": setting(PROCESS, lambda T: T.are_deterministic_algorithms_enabled(),
                                            lambda T, on: T.use_deterministic_algorithms(on), True),
    "set_deterministic_debug_mode": setting(PROCESS, lambda T: T.get_deterministic_debug_mode(),
                                            lambda T, on: T.set_deterministic_debug_mode(on), 1),
    "set_warn_always": setting(PROCESS, lambda T: T.is_warn_always_enabled(), lambda T, on: T.set_warn_always(on),
                               True),
    "set_float32_matmul_precision": setting(PROCESS, lambda T: T.get_float32_matmul_precision(),
                                            lambda T, word: T.set_float32_matmul_precision(word), "high"),
    "set_num_threads": setting(PROCESS, lambda T: T.get_num_threads(), lambda T, n: T.set_num_threads(n), 3),
    "set_autocast_enabled": setting(THREAD, lambda T: T.is_autocast_enabled("cpu"),
                                    lambda T, on: T.set_autocast_enabled("cpu", on), True),
    "set_autocast_dtype": setting(THREAD, lambda T: T.get_autocast_dtype("cpu"),
                                  lambda T, d: T.set_autocast_dtype("cpu", d), lambda T: T.float16),
    "set_autocast_cache_enabled": setting(THREAD, lambda T: T.is_autocast_cache_enabled(),
                                          lambda T, on: T.set_autocast_cache_enabled(on), False),
    "serialization.set_crc32_options": setting(THREAD, lambda T: serialization(T).get_crc32_options(),
                                               lambda T, on: serialization(T).set_crc32_options(on), False),
    "serialization.set_default_load_endianness": setting(
        THREAD, lambda T: str(serialization(T).get_default_load_endianness()),
        lambda T, e: serialization(T).set_default_load_endianness(e), lambda T: serialization(T).LoadEndianness.LITTLE,
        lambda T: None),
    "distributions.Distribution.set_default_validate_args": setting(
        PROCESS, lambda T: T.distributions.Distribution._validate_args,
        lambda T, on: T.distributions.Distribution.set_default_validate_args(on), False),
    "func.vmap": Entry(THREAD, is_transformed, run=in_function(lambda T, f: T.func.vmap(f)(T.ones(2, 2)))),
    "func.grad": Entry(THREAD, grads, run=in_function(
        lambda T, f: T.func.grad(f)(T.ones(2))), around=lambda T: T.no_grad()),
    "func.jvp": Entry(THREAD, is_transformed, run=in_function(
        lambda T, f: T.func.jvp(f, (T.ones(2),), (T.ones(2),)))),
    "func.functionalize": Entry(THREAD, is_transformed, run=in_function(
        lambda T, f: T.func.functionalize(f)(T.ones(2)))),
    "jit.trace": Entry(THREAD, lambda T: T.jit.is_tracing(), run=in_function(
        lambda T, f: T.jit.trace(f, (T.ones(2),), check_trace=False))),
    "fx.symbolic_trace": Entry(THREAD, is_fx_tracing, run=in_function(
        lambda T, f: submodule(T, "fx").symbolic_trace(f)), is_single=True),
}

STREAMS = {}


def stream_of(T):
    stream = T.cpu.Stream()
    STREAMS[id(stream)] = stream
    return stream


TABLE = {**CONTEXTS, **MODES}

# Where ptcore's reach is another one than PyTorch's, and why.
DIFFERENT = {
    "autograd.forward_ad.dual_level": "tangents belong to an interpreter of the thread; PyTorch has one level for all "
                                      "threads, so that a second thread cannot enter one",
    "fx.symbolic_trace": "the flag of PyTorch says to threads that trace nothing that they do",
}

# In torch threads that begin see it, and those that have asked before do not, as OpenMP has it; in ptcore all do.
LATER = {"set_num_threads", "utils.benchmark.set_torch_threads"}

# Public contexts that are no mode.
OTHERS = {
    "Stream": "on a CPU nothing; on a device as cuda.StreamContext",
    "autograd.profiler.record_function": "names a range of its own thread in a profile",
    "autograd.profiler.emit_itt": "raises where it is enabled",
    "autograd.profiler.emit_nvtx": "raises where it is enabled",
    "profiler.itt.range": "raises",
    "cuda.nvtx.range": "a range of the package nvtx, which keeps them by thread",
    "cuda.profiler.profile": "tells the tool that the program runs under",
    "cuda.StreamContext": "needs a device: tests/cuda/device/test_reach.py",
    "cuda.device": "needs a device: tests/cuda/device/test_reach.py",
    "cuda.device_of": "needs a device: tests/cuda/device/test_reach.py",
    "accelerator.device_index": "needs a device: tests/cuda/device/test_reach.py",
    "cuda.graph": "needs a device; what it captures is the stream's",
    "cuda.use_mem_pool": "needs a device; of the thread, see its docstring",
    "cuda.caching_allocator_disabled": "needs a device; of the process",
    "fx.experimental.proxy_tensor.ProxyTracer": "the interpreter of make_fx, on the stack that func.vmap shows",
    "overrides.BaseTorchFunctionMode": "a TorchFunctionMode",
    "fx.Graph": "the place of new nodes is the graph's",
    "utils.hooks.RemovableHandle": "the end of the block removes a hook",
    "utils.tensorboard.SummaryWriter": "the end of the block closes files",
    "utils.restart.checkpoint_on_signal": "signal handlers, which Python has for the main thread alone",
    "autograd.graph.register_multi_grad_hook": "the end of the block removes hooks",
}
