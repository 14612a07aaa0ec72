"""Grad modes as context managers and decorators, on functions and generators."""

import inspect

import pytest

import ptcore as pt

pytestmark = pytest.mark.core

ENTER = {
    "no_grad": (pt.no_grad, False),
    "enable_grad": (pt.enable_grad, True),
    "inference_mode": (pt.inference_mode, False),
}


@pytest.mark.parametrize("name", ENTER)
@pytest.mark.parametrize("outside", [True, False])
def test_block(name, outside):
    manager, inside = ENTER[name]
    with pt.set_grad_enabled(outside):
        with manager():
            assert pt.is_grad_enabled() is inside
        assert pt.is_grad_enabled() is outside
    assert pt.is_grad_enabled()


@pytest.mark.parametrize("name", ENTER)
@pytest.mark.parametrize("parentheses", [True, False])
def test_decorator(name, parentheses):
    manager, inside = ENTER[name]

    def f(a, *, b=2):
        """Text."""
        assert pt.is_grad_enabled() is inside
        return a + b

    decorated = manager()(f) if parentheses else manager(f)
    with pt.set_grad_enabled(not inside):
        assert decorated(1, b=5) == 6
        assert pt.is_grad_enabled() is not inside
    assert (decorated.__name__, decorated.__doc__) == ("f", "Text.")
    assert inspect.signature(decorated) == inspect.signature(f)


@pytest.mark.parametrize("name", ENTER)
def test_decorated_method_and_recursion(name):
    manager, inside = ENTER[name]

    class C:
        @manager()
        def f(self, n):
            assert pt.is_grad_enabled() is inside
            return 1 if n == 0 else n * self.f(n - 1)

    assert C().f(5) == 120
    assert pt.is_grad_enabled()


def test_an_exception_restores_the_mode():
    for manager, _ in ENTER.values():
        with pytest.raises(KeyError), manager():
            raise KeyError
        assert pt.is_grad_enabled()
        assert not pt.is_inference_mode_enabled()


def test_classes_are_not_decorated():
    for manager, _ in ENTER.values():
        with pytest.raises(TypeError, match="functions"):
            manager(int)


def test_set_grad_enabled_as_a_function_and_a_decorator():
    pt.set_grad_enabled(False)
    try:
        assert not pt.is_grad_enabled()
    finally:
        pt.set_grad_enabled(True)

    @pt.set_grad_enabled(False)
    def f():
        return pt.is_grad_enabled()

    assert pt.is_grad_enabled()
    assert f() is False


def test_generator_sees_its_mode_and_the_caller_its_own():
    log = []

    @pt.no_grad()
    def f():
        log.append(("start", pt.is_grad_enabled()))
        try:
            sent = yield pt.is_grad_enabled()
            log.append((sent, pt.is_grad_enabled()))
            yield 2
        except KeyError:
            log.append(("caught", pt.is_grad_enabled()))
            yield 3
        finally:
            log.append(("end", pt.is_grad_enabled()))
        return "result"

    g = f()
    assert pt.is_grad_enabled()
    assert next(g) is False
    assert pt.is_grad_enabled()
    assert g.send("hello") == 2
    assert g.throw(KeyError()) == 3
    with pytest.raises(StopIteration) as stop:
        next(g)
    assert stop.value.value == "result"
    assert pt.is_grad_enabled()
    assert log == [("start", False), ("hello", False), ("caught", False), ("end", False)]


def test_closing_a_generator_runs_its_end_in_its_mode():
    log = []

    @pt.no_grad()
    def f():
        try:
            yield 1
        finally:
            log.append(pt.is_grad_enabled())

    g = f()
    next(g)
    g.close()
    assert log == [False]


def test_one_manager_entered_twice_in_turn():
    manager = pt.no_grad()
    for _ in range(2):
        with manager:
            assert not pt.is_grad_enabled()
        assert pt.is_grad_enabled()


def test_inference_mode_false_records_again():
    x = pt.ones(2, requires_grad=True)
    with pt.inference_mode():
        assert pt.is_inference_mode_enabled()
        with pt.inference_mode(False):
            y = x * 2
            assert y.requires_grad
            assert not y.is_inference()
        assert not (x * 2).requires_grad


def switched_on(x, loss):
    pt.set_grad_enabled(True)
    return x * 2


@pytest.mark.parametrize("double", [
    pytest.param(pt.enable_grad(lambda x, loss: x * 2), id="enable_grad"),
    pytest.param(pt.set_grad_enabled(True)(lambda x, loss: x * 2), id="set_grad_enabled"),
    pytest.param(switched_on, id="at once"),
    pytest.param(lambda x, loss: pt.autograd.grad(loss, x, create_graph=True)[0], id="create_graph")])
def test_nothing_is_recorded_under_inference(double):
    x = pt.ones(2, requires_grad=True)
    loss = (x * x).sum()
    with pt.inference_mode():
        y = double(x, loss)
        assert y.tolist() == [2, 2] and y.is_inference() and not y.requires_grad and y.grad_fn is None
        assert pt.is_grad_enabled() is (double is switched_on)
    assert pt.is_grad_enabled()


def test_inference_tensor():
    with pt.inference_mode():
        c = pt.ones(3)
        assert c.is_inference()
        assert c[0].is_inference()
        c.add_(1)
    assert c.tolist() == [2, 2, 2]
    with pytest.raises(RuntimeError, match="inference"):
        _ = c._version
    with pytest.raises(RuntimeError, match="inference"):
        c.requires_grad = True
    assert not c.clone().is_inference()
    with pytest.raises(RuntimeError, match=r"in-place|leaf"):
        pt.ones(3, requires_grad=True)[0].add_(1)


def test_a_view_of_a_normal_tensor_is_normal():
    x = pt.ones(3)
    with pt.inference_mode():
        v = x[0]
        y = x + 1
    assert not v.is_inference()
    assert y.is_inference()


def test_grad_modes_inside_inference_mode():
    """They are asked and answered as outside, but nothing is recorded."""
    w = pt.ones(1, requires_grad=True)
    step = pt.optim.SGD([pt.ones(1)], lr=0.1).step
    with pt.inference_mode():
        assert not pt.is_grad_enabled()
        with pt.enable_grad():
            assert pt.is_grad_enabled() and not (w * 2).requires_grad
            step()
            assert pt.is_grad_enabled()
            with pt.no_grad():
                assert not pt.is_grad_enabled()
            assert pt.is_grad_enabled()
            with pt.inference_mode(False):
                assert pt.is_grad_enabled() and (w * 2).requires_grad
            assert pt.is_grad_enabled() and pt.is_inference_mode_enabled() and not (w * 2).requires_grad
            compiled = pt.compile(lambda x: x * 2 if pt.is_grad_enabled() else x * 3)
            assert compiled(w).item() == 2 and not compiled(w).requires_grad and pt.is_grad_enabled()
        assert not pt.is_grad_enabled() and compiled(w).item() == 3
        pt.set_grad_enabled(True)
        assert pt.is_grad_enabled() and not (w * 2).requires_grad
    assert pt.is_grad_enabled() and (w * 2).requires_grad
