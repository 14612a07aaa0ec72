"""An interrupt leaves no context's mode on.

Python looks for signals between instructions of Python code alone, and ``with`` has none between the return of
``__enter__`` and the block whose end calls ``__exit__``, nor between that end and the call. So nothing can be lost where
both are functions in C that run no code of Python between the change and their return: that they are, is tested for every
context of the table; and that it helps, by signals at random times.
"""
import gc
import random
import signal
import threading
import time
import types
import weakref

import pytest
from _reach import CONTEXTS, MODES, NOWHERE

import ptcore

pytestmark = [pytest.mark.counts, pytest.mark.filterwarnings("ignore:.*(is deprecated|CUDA is not available|Error detected)")]

# What only records, in Python, and changes nothing of what is computed.
RECORDERS = {"autograd.profiler.profile", "profiler.profile"}
# Contexts of contextlib, which run Python: what they change is a set of an op's that the same block puts back.
IN_PYTHON = {"library.CustomOpDef.set_kernel_enabled"}
NAMES = [name for name, entry in {**CONTEXTS, **MODES}.items()
         if entry.context is not None and entry.reach != NOWHERE and name not in RECORDERS | IN_PYTHON]


@pytest.mark.parametrize("name", NAMES)
def test_enter_and_exit_are_functions_in_c(name):
    context = {**CONTEXTS, **MODES}[name].context(ptcore)
    if hasattr(context, "_undo"):
        context._undo()
    if name == "set_grad_enabled":
        ptcore.set_grad_enabled(True)
    for method in ("__enter__", "__exit__"):
        assert not isinstance(getattr(type(context), method), types.FunctionType)


def test_interpreters_too():
    from ptcore._interpret import Interpreter
    from ptcore.autograd.batch import Batcher
    from ptcore.autograd.dual import Forward
    from ptcore.func._functionalize import Functionalizer
    from ptcore.fx.experimental.proxy_tensor import ProxyTracer
    from ptcore.utils._selective import _First, _Second
    for cls in (Batcher, Forward, Functionalizer, ProxyTracer, _First, _Second):
        assert cls.__enter__ is Interpreter.__enter__ and cls.__exit__ is Interpreter.__exit__


@pytest.fixture
def interrupts():
    """Interrupts at a random time; a function that starts the clock."""
    if not hasattr(signal, "setitimer"):
        pytest.skip("needs signal.setitimer")
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    yield lambda: signal.setitimer(signal.ITIMER_REAL, random.uniform(1e-6, 3e-4))
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def interrupted(start, loop, times):
    """Lets interrupts end the loop. One that comes while Python runs a finalizer is lost, so another follows it."""
    loop()                      # an interrupt of a first import leaves its file to the collector
    for _ in range(times):
        try:
            while True:
                start()
                late = time.monotonic() + 1
                while time.monotonic() < late:
                    loop()
        except KeyboardInterrupt:
            pass


# What sets its mode where it is made has an instant between that and the block, as in PyTorch.
AT_ONCE = {"set_grad_enabled", "autograd.set_detect_anomaly", "autograd.set_source_lines", "compiler.set_stance",
           "random.use", "serialization.set_default_mmap_options"}


@pytest.mark.parametrize("name", [name for name in NAMES if name not in AT_ONCE])
def test_random_interrupts(name, interrupts):
    entry = {**CONTEXTS, **MODES}[name]
    with entry.around(ptcore):
        base = entry.seen(ptcore)

        def loop():
            with entry.context(ptcore):
                pass
        for _ in range(60):
            interrupted(interrupts, loop, 1)
            assert entry.seen(ptcore) == base


def test_saved_tensors_hooks(interrupts):
    """The numbers of the review that found it: 1,500 interrupts."""
    x = ptcore.ones(2, requires_grad=True)
    hooks = ptcore.autograd.graph.saved_tensors_hooks

    def loop():
        with hooks(lambda t: t, lambda t: t):
            with hooks(lambda t: t.clone(), lambda t: t):
                (x * x).exp()
    left_on = 0
    for _ in range(1500):
        interrupted(interrupts, loop, 1)
        left_on += ptcore._state.innermost_saved_hooks() is not None
    assert left_on == 0


def test_functions_of_functions(interrupts):
    """Where ``grad``, ``vmap``, ``jvp`` and a mode are interrupted, in whatever function of theirs."""
    from ptcore.func import functionalize, grad, jvp, vmap
    from ptcore.overrides import BaseTorchFunctionMode
    from ptcore.utils.checkpoint import checkpoint
    x, ones = ptcore.arange(6.).reshape(3, 2), ptcore.ones(2)

    def loop():
        with ptcore.no_grad():
            vmap(grad(lambda t: t.sin().sum()))(x)
        jvp(lambda t: t * t, (ones,), (ones,))
        functionalize(lambda t: t.clone().mul_(2))(ones)
        with BaseTorchFunctionMode():
            ones * 2
        y = ones.clone().requires_grad_()
        checkpoint(lambda t: t.sin().exp(), y, use_reentrant=False).sum().backward()
    loop()
    for _ in range(400):
        interrupted(interrupts, loop, 1)
        assert ptcore.is_grad_enabled() and not ptcore.is_inference_mode_enabled()
        assert ptcore._interpret.entered() == () and ptcore._state.function_modes() == []
        assert ptcore._state.innermost_saved_hooks() is None
        assert ptcore._state.mode_word() == 0
    assert vmap(grad(lambda t: t.sin().sum()))(x).tolist() == x.cos().tolist()


def test_a_trace_puts_back_what_it_patches(interrupts):
    from ptcore.nn import Linear, Module
    layer = Linear(2, 2)
    call, lookup = Module.__call__, Module.__getattr__

    def loop():
        ptcore.fx.symbolic_trace(layer)
    loop()
    for _ in range(200):
        interrupted(interrupts, loop, 1)
        assert Module.__call__ is call and Module.__getattr__ is lookup
        assert not ptcore._state.stack("fx traces")


def test_a_thread_that_ends_leaves_nothing():
    """What a thread has entered goes with it, also where it was never left."""
    class Owner:
        pass
    owner, gone = Owner(), []
    weakref.finalize(owner, gone.append, 1)

    def enter(owner):
        ptcore.autograd.graph.saved_tensors_hooks(lambda t: (t, owner), lambda t: t[0]).__enter__()
        ptcore.autograd.forward_ad.enter_dual_level()
        ptcore.overrides.BaseTorchFunctionMode().__enter__()
        ptcore.serialization.set_crc32_options(False)
        seen.append(ptcore._state.mode_word())
    seen = []
    thread = threading.Thread(target=enter, args=(owner,))
    del owner
    thread.start()
    thread.join()
    del thread
    gc.collect()
    assert gone == [1] and seen[0] and not ptcore._state.mode_word()
