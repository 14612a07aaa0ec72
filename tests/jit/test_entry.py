"""The entry of compiled functions: what runs between a call and the kernels, and what the function looks like."""
import copy
import functools
import gc
import inspect
import pickle
import sys
import threading
import types
import weakref

import pytest

import ptcore as pt
from ptcore.jit import compiled as _compile

pytestmark = pytest.mark.core
X, Y = pt.arange(6.0) - 2, pt.arange(6.0) / 4


def four(x, y):
    return (x + y).relu() * y - x


def pair_of(x, *, scale=2.0):
    return x * scale, x.exp()


@pt.compile
def known(x):
    """What it says of itself."""
    return x + 1


class Scaled:
    def __init__(self, k):
        self.k = k

    @pt.compile
    def times(self, x):
        return x * self.k

    @pt.compile
    def __add__(self, x):
        return x + self.k


def warm(f, *args, **kwargs):
    """Calls until the check of the guards is compiled and each plan is made."""
    for _ in range(8):
        f(*args, **kwargs)
    return f


def frames(f, *args, **kwargs):
    """The names of the Python functions that a call runs."""
    found = []
    sys.setprofile(lambda frame, event, arg: found.append(frame.f_code.co_qualname) if event == "call" else None)
    try:
        f(*args, **kwargs)
    finally:
        sys.setprofile(None)
    return found


# -- what runs --------------------------------------------------------------------------------------------------------

def test_no_frame_between_a_call_and_the_kernels():
    compiled = warm(pt.compile(four), X, Y)
    assert frames(four, X, Y) == ["four"]
    assert frames(compiled, X, Y) == []
    x = X.clone().requires_grad_()
    warm(compiled, x, Y)
    assert frames(compiled, x, Y) == []
    with pt.no_grad():
        warm(compiled, x, Y)
        assert frames(compiled, x, Y) == []


def test_no_frame_for_tuples_and_keywords():
    compiled = warm(pt.compile(pair_of), X, scale=3.0)
    assert frames(compiled, X, scale=3.0) == []
    a, b = compiled(X, scale=3.0)
    assert pt.equal(a, X * 3) and pt.equal(b, X.exp())
    assert pt.equal(compiled(X)[0], X * 2)
    assert pt.equal(compiled(x=X, scale=4.0)[0], X * 4)
    assert pt.equal(compiled(scale=5.0, x=X)[0], X * 5)


def test_no_frame_for_methods():
    scaled = Scaled(3.0)
    warm(scaled.times, X)
    assert frames(scaled.times, X) == []
    assert pt.equal(scaled.times(X), X * 3) and pt.equal(Scaled.times(scaled, X), X * 3)
    assert pt.equal(Scaled(4.0).times(X), X * 4)


def test_a_step_has_the_frames_of_the_optimizer_alone():
    model = pt.nn.Sequential(pt.nn.Linear(6, 4), pt.nn.ReLU(), pt.nn.Linear(4, 2))
    optimizer = pt.optim.SGD(model.parameters(), lr=0.125)

    @pt.compile
    def step(x):
        optimizer.zero_grad()
        loss = model(x).square().sum()
        loss.backward()
        optimizer.step()
        return loss
    warm(step, X)
    assert frames(step, X) == ["Optimizer.zero_grad", "_with_hooks.<locals>.wrapper", "ByGroup.step", "SGD._step_group",
                               "Optimizer._with_grad"]
    with pytest.raises(RuntimeError, match="freed"):
        step(X).backward()


def test_results_beside_a_history():
    """One result, several of which some have no history, and more than the stack has room for."""
    x = X.clone().requires_grad_()

    def many(x):
        return tuple([(x * k).sin() for k in range(20)])
    for f in (lambda x: x.exp(), lambda x: (x.exp(), x.argmax(), x.exp()[1]), lambda x: (x * 2,), many):
        compiled = warm(pt.compile(f), x)
        got, want = compiled(x), f(x)
        if not isinstance(want, tuple):
            got, want = (got,), (want,)
        assert type(got) is tuple and len(got) == len(want)
        for a, b in zip(got, want):
            assert pt.equal(a, b) and a.requires_grad == b.requires_grad
        graded = [k for k, b in enumerate(want) if b.requires_grad]
        grads = [pt.autograd.grad(sum([r[k].sum() for k in graded]), x)[0] for r in (got, want)]
        assert pt.equal(*grads)


def test_many_inputs_that_share_memory():
    """Inputs are compared through a table of their storages."""
    def f(*xs):
        return sum(xs)
    base = [pt.full((2,), float(k)) for k in range(40)]
    compiled = warm(pt.compile(f), *base)
    assert compiled(*base).tolist() == [780.0] * 2
    twice = [*base[:39], base[0]]
    for _ in range(3):
        assert compiled(*twice).tolist() == [741.0] * 2 and compiled(*base).tolist() == [780.0] * 2


def test_a_module_has_its_own_call_alone():
    module = pt.compile(pt.nn.Linear(6, 2))
    warm(module, X)
    assert frames(module, X) == ["OptimizedModule.__call__"]
    pt.nn.modules.module.register_module_forward_hook(lambda *args: None).remove()     # leaves an empty OrderedDict
    module = pt.compile(pt.nn.Linear(6, 2))
    warm(module, X)
    assert frames(module, X) == ["OptimizedModule.__call__"]


def test_many_inputs_and_results():
    """More than there is room for on the stack."""
    def f(*xs):
        return tuple([x + k for k, x in enumerate(xs)])
    compiled, xs = pt.compile(f), [pt.full((2,), float(k)) for k in range(150)]
    warm(compiled, *xs)
    for k, y in enumerate(compiled(*xs)):
        assert y.tolist() == [2.0 * k] * 2


def test_recursion():
    @pt.compile
    def countdown(x, n):
        print(end="")                   # it runs eagerly, and calls itself
        return x if n == 0 else countdown(x + 1, n - 1)
    for n in (3, 3, 3, 3, 3, 3, 5):
        assert pt.equal(countdown(X, n), X + n)


def test_threads():
    compiled, wrong = warm(pt.compile(four), X, Y), []

    def work(k):
        x = X * k
        for _ in range(300):
            if not pt.equal(compiled(x, Y), four(x, Y)):
                wrong.append(k)
    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_stances_and_threads_that_are_left_to_python():
    compiled = warm(pt.compile(four), X, Y)
    with pt.compiler.set_stance("force_eager"):
        assert frames(compiled, X, Y)[-1] == "four"
    assert frames(compiled, X, Y) == []
    with pt.compiler.set_stance("".join(["force_", "eager"])), pt.compiler.set_stance("default"):
        assert frames(compiled, X, Y) == []

    @pt.compiler.disable
    def left_out(x):
        return frames(compiled, x, Y)
    assert left_out(X)[-1] == "four"
    assert frames(compiled, X, Y) == []
    ended = threading.Event()

    @pt.compiler.disable
    def elsewhere():
        ended.wait()
    thread = threading.Thread(target=elsewhere)
    thread.start()
    try:
        assert frames(compiled, X, Y) == []         # another thread is left to Python, this one is not
    finally:
        ended.set()
        thread.join()


def test_the_grad_mode_is_that_of_the_call_behind_an_error():
    def backend(module, inputs):
        calls = []

        def run(*args):
            calls.append(1)
            if len(calls) > 8:
                raise KeyError("ran")
            return module.forward(*args)
        return run

    def f(x):
        with pt.no_grad():
            return x * 2
    compiled = warm(pt.compile(f, backend=backend), X)
    with pytest.raises(KeyError, match="ran"):
        compiled(X)
    assert pt.is_grad_enabled()


def test_reset_and_the_limit():
    compiled = warm(pt.compile(four), X, Y)
    pt.compiler.reset()
    assert compiled._compiled.forms == {}
    before = _compile.counts["captures"]
    assert pt.equal(compiled(X, Y), four(X, Y)) and _compile.counts["captures"] == before + 1
    compiled._compiled.is_full = True
    assert "four" in frames(compiled, X, Y)


def test_an_error_names_the_users_line():
    compiled = pt.compile(lambda x, y: x @ y)
    with pytest.raises(RuntimeError) as info:
        compiled(pt.ones(2, 3), pt.ones(2, 3))
    assert any(str(entry.path) == __file__ for entry in info.traceback)


# -- what it looks like -----------------------------------------------------------------------------------------------

def test_names_and_signature():
    compiled = pt.compile(pair_of)
    assert compiled.__name__ == "pair_of" and compiled.__wrapped__ is pair_of
    assert compiled.__qualname__ == "pair_of" and compiled.__module__ == __name__
    assert inspect.signature(compiled) == inspect.signature(pair_of)
    assert known.__doc__ == "What it says of itself." and "known" in repr(known)
    assert callable(compiled) and pt.compile(compiled)._compiled.function is pair_of


def test_attributes_and_references():
    compiled = pt.compile(pair_of)
    compiled.note = "mine"
    assert compiled.note == "mine" and not hasattr(pair_of, "note")
    with pytest.raises(AttributeError):
        compiled.none  # noqa: B018
    ref = weakref.ref(compiled)
    compiled.me = compiled              # a circle, which the collector ends
    del compiled
    gc.collect()
    assert ref() is None


def test_pickles_and_copies_are_the_function():
    assert pickle.loads(pickle.dumps(known)) is known
    assert copy.deepcopy(known) is known and copy.copy(known) is known


def test_a_wrapper_is_not_taken_for_what_it_wraps():
    @functools.wraps(known)
    def wrapper(x):
        return known(x) * 10
    assert not hasattr(wrapper, "_compiled")
    assert pt.equal(pt.compile(wrapper)(X), (X + 1) * 10)
    assert pt.equal(pt.compile(lambda x: wrapper(x) - 1)(X), (X + 1) * 10 - 1)


def test_compiled_functions_inside_a_captured_program():
    """They are parts of its graph: functions, methods, special methods, and what a container holds."""
    scaled, table = Scaled(3.0), [known]

    def f(x):
        return known(scaled.times(x)) + table[0](x) + (scaled + x)
    found = pt.compile(f, fullgraph=True)
    for _ in range(7):
        assert pt.equal(found(X), X * 3 + 1 + X + 1 + X + 3)
    scaled.k = 5.0
    assert pt.equal(found(X), X * 5 + 1 + X + 1 + X + 5)
    assert isinstance(scaled.times, types.MethodType) and Scaled.times.__name__ == "times"


def test_a_profile_names_the_region():
    compiled = warm(pt.compile(four), X, Y)
    with pt.profiler.profile() as p:
        compiled(X, Y)
    assert [e.name for e in p.events() if e.name.startswith("Torch-Compiled")] == ["Torch-Compiled Region: four"]
    assert frames(compiled, X, Y) == []
