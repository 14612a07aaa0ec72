"""Exceptions of signal handlers leave a capture, which starts anew at the next call."""
import functools
import signal
import threading

import pytest

import ptcore as pt

pytestmark = [pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs timers of signals"),
              pytest.mark.timeout(60)]


def late(signum, frame):
    raise TimeoutError("too late")


class Late:
    def __call__(self, signum, frame):
        late(signum, frame)

    def method(self, signum, frame):
        raise TimeoutError("too late")


def long(x):
    for i in range(3000):
        x = (x * 2).tanh() + i
    return x


def long_within_try(x):
    try:
        return long(x)
    except ValueError:
        return x


HANDLERS = {"function": late, "object": Late(), "method": Late().method, "partial": functools.partial(late)}


@pytest.fixture
def handler(request):
    assert threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGALRM, HANDLERS[request.param])
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("handler", HANDLERS, indirect=True)
@pytest.mark.parametrize("program", [long, long_within_try], ids=lambda f: f.__name__)
def test_an_exception_of_a_handler(handler, program):
    compiled, x = pt.compile(program, fullgraph=program is long), pt.ones(3)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    with pytest.raises(TimeoutError, match="too late"):
        compiled(x)
    assert pt.is_grad_enabled()
    want = program(x)
    assert pt.equal(compiled(x), want) and pt.equal(compiled(x), want)
    assert pt.compiler.explain(program)(x).graph_count == 1


def test_an_interrupt_takes_back_what_a_capture_did():
    state, told = [pt.zeros(2)], []

    def program(x):
        state[0].add_(1)
        if x.sum() > 0:             # ends a segment, whose write is done
            told.append(1)
            if len(told) == 1:
                raise KeyboardInterrupt
        return x + state[0]

    compiled = pt.compile(program)
    before = pt.get_rng_state()
    with pytest.raises(KeyboardInterrupt):
        compiled(pt.ones(2))
    assert pt.equal(pt.get_rng_state(), before) and pt.is_grad_enabled()
    assert state[0].tolist() in ([0.0, 0.0], [1.0, 1.0])        # a write once, or not yet: never twice
    first = state[0].clone()
    assert compiled(pt.ones(2)).tolist() == (first + 2).tolist()
