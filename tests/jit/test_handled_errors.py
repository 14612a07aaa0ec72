"""Errors of a captured program that the program handles: later calls give what the function gives."""
import contextlib
import warnings

import numpy as np
import pytest

import ptcore as pt
from ptcore.jit import compiled as _compile

with warnings.catch_warnings(action="ignore", category=SyntaxWarning):      # 3.14 warns of a return in a finally
    from _swallowing import Swallows

GOOD, BAD = pt.tensor([0, 1]), pt.tensor([0, 9])


def handled(x, i):
    try:
        return x[i] * 2
    except IndexError:
        return x * 0


def in_a_function(x, i):
    def inner():
        return x[i]
    try:
        y = inner()
    except Exception:
        y = x[:1]
    return y + 1


def suppressed(x, i):
    y = x * 0
    with contextlib.suppress(IndexError):
        y = x[i]
    return y


def written_before(x, i):
    x.add_(1)
    try:
        return x[i] * 1
    except IndexError:
        return x * 0


def drawn_before(x, i):
    noise = pt.rand(3)
    try:
        return x[i].sum() + noise
    except IndexError:
        return noise + pt.rand(3)


def read_before(x, i):
    if x.sum() > 0:
        x.mul_(2)
    try:
        return x[i]
    except IndexError:
        return x - 1


def finished(x, i):
    y = x * 0
    try:
        return x[i]
    except IndexError:
        return y
    finally:
        y.add_(5)


@pytest.mark.parametrize("f", [handled, in_a_function, suppressed, written_before, drawn_before, read_before, finished],
                         ids=lambda f: f.__name__)
@pytest.mark.parametrize("backend", ["cpu", "eager"])
def test_later_calls(f, backend):
    g = pt.compile(f, backend=backend)
    pt.manual_seed(0)
    xs, ys = pt.arange(1.0, 4.0), pt.arange(1.0, 4.0)
    order = (GOOD, GOOD, BAD, GOOD, BAD, BAD, GOOD)
    before, captures = pt.random.get_rng_state(), _compile.counts["captures"]
    got = [g(xs, i).clone() for i in order]
    assert _compile.counts["captures"] > captures
    pt.random.set_rng_state(before)
    for a, i in zip(got, order):
        np.testing.assert_array_equal(a.numpy(), f(ys, i).numpy())
    np.testing.assert_array_equal(xs.numpy(), ys.numpy())


def test_the_graph_is_used_while_nothing_raises():
    g = pt.compile(handled, fullgraph=True)
    seen = _compile.counts["captures"]
    for _ in range(8):
        g(pt.ones(3), GOOD)
    assert _compile.counts["captures"] == seen + 1


def test_an_error_that_is_raised_again_leaves_the_entry_in_c():
    def f(x, i):
        try:
            return x[i]
        except IndexError:
            raise
    g = pt.compile(f, fullgraph=True)
    g(pt.ones(3), GOOD)
    (segment,) = g._compiled.forms[2]
    assert not segment.watched
    with pytest.raises(IndexError):
        g(pt.ones(3), BAD)


def test_rows_that_cannot_raise_leave_the_entry_in_c():
    def f(x):
        try:
            return (x * 2 + 1).relu()
        except ValueError:
            return x
    g = pt.compile(f, fullgraph=True)
    g(pt.ones(3))
    (segment,) = g._compiled.forms[1]
    assert not segment.watched


def test_behind_a_step_the_error_says_so():
    w = pt.ones(3).requires_grad_()
    optimizer = pt.optim.SGD([w], 0.1)

    def f(x, i):
        try:
            (w * x).sum().backward()
            optimizer.step()
            return (w * 2)[i]
        except IndexError:
            return x
    g = pt.compile(f)
    for _ in range(3):
        g(pt.ones(3), GOOD)
    with pytest.raises(_compile.CaptureError, match="may handle this error, but cannot go back behind a step"):
        g(pt.ones(3), BAD)


@pytest.mark.parametrize("name", ["returns", "breaks", "continues", "raises", "names"])
def test_errors_that_a_final_clause_drops(name):
    program = getattr(Swallows, name)
    for note in (print, lambda k: None):
        compiled = pt.compile(program)
        for i in (0, 0, 7, 1, 8, 2):
            x = pt.arange(9.0).reshape(3, 3)
            np.testing.assert_array_equal(compiled(x, i, note).numpy(), program(x, i, note).numpy())


def test_indices_that_are_symbols():
    """No guard says which values of a symbol raise an error that the tracer meets."""
    def program(x, i):
        try:
            return x[int(i * 1.0)]
        except Exception:
            return -x
    for f in (program, lambda x, i: _suppressed(x, i)):
        compiled = pt.compile(f)
        for i in (0, 5, 1, 6, 1, 0, 2, 1):
            x = pt.arange(6.0).reshape(2, 3)
            np.testing.assert_array_equal(compiled(x, i).numpy(), f(x, i).numpy())


def _suppressed(x, i):
    with contextlib.suppress(IndexError):
        return x[i]
    return -x


def test_texts_of_errors():
    def program(x, i):
        try:
            return x[i]
        except IndexError as error:
            return str(error)
    compiled = pt.compile(program)
    for i in (7, 8, 7):
        assert compiled(pt.ones(2), i) == program(pt.ones(2), i)


def test_errors_before_a_step():
    """A segment whose rows raise has made none of its effects."""
    def run(wrap):
        w = pt.nn.Parameter(pt.ones(2, 2))
        optimizer = pt.optim.SGD([w], 0.5)

        @wrap
        def step(target):
            try:
                pt.nn.functional.cross_entropy(w, target).backward()
            except IndexError:
                return "skipped"
            optimizer.step()
            optimizer.zero_grad()
            return "done"
        found = [step(t) for t in (GOOD, GOOD, BAD, GOOD, BAD)]
        return found, w.tolist(), w.grad
    assert run(pt.compile) == run(lambda f: f)


def test_writes_before_an_error_are_there():
    def program(x, matrix):
        x.add_(1)
        y = pt.linalg.inv(matrix)
        x.add_(10)
        return y
    compiled = pt.compile(program)
    for matrix in (pt.eye(2), pt.eye(2), pt.zeros(2, 2), pt.eye(2)):
        x, y = pt.zeros(3), pt.zeros(3)
        for f, z in ((compiled, x), (program, y)):
            with contextlib.suppress(RuntimeError):
                f(z, matrix)
        assert x.tolist() == y.tolist()


def test_elements_that_are_there_later():
    values = [1.0]

    def program(x):
        try:
            return x * values[1]
        except IndexError:
            return -x
    compiled = pt.compile(program)
    for more in (2.0, 3.0):
        for _ in range(6):
            np.testing.assert_array_equal(compiled(pt.ones(2)).numpy(), program(pt.ones(2)).numpy())
        values.append(more)
    np.testing.assert_array_equal(compiled(pt.ones(2)).numpy(), [2, 2])
