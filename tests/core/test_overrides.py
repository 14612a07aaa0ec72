"""``__torch_function__`` of any object, and modes: every op hands its call over as it was made."""
import inspect
import pickle

import pytest
from _names_seen import NamesSeen
from _walk import walk

import ptcore as pt
from ptcore import overrides
from ptcore._ops.call.offer import Overridable
from ptcore.overrides import BaseTorchFunctionMode, handle_torch_function, has_torch_function

pytestmark = pytest.mark.core


class Foreign:
    """Answers every call with what it was told."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return "asked", func, types, args, kwargs


F, X = Foreign(), pt.ones(2, 3)
OP = (type(pt.add), Overridable)        # of rows, and of what is none
PUBLIC = {f"{space.__name__}.{name}": getattr(space, name)
          for space in (pt, pt.nn.functional, pt.linalg, pt.special, pt.fft) for name in dir(space)
          if isinstance(getattr(space, name), OP)}
FUNCTIONS = {name: f for name, f in PUBLIC.items() if not getattr(f, "modes_alone", False)}
METHODS = {name: getattr(pt.Tensor, name) for name in dir(pt.Tensor) if isinstance(getattr(pt.Tensor, name), OP)
           and name != "relu"}


def asked(result, func, args, kwargs, types=(Foreign,)):
    assert result == ("asked", func, types, args, kwargs)


@walk("name", FUNCTIONS)
def test_functions(name):
    f = FUNCTIONS[name]
    asked(f(F), f, (F,), {})
    asked(f([X, F]), f, ([X, F],), {})


@walk("name", METHODS)
def test_methods(name):
    f = METHODS[name]
    asked(f(F), f, (F,), {})
    if len(inspect.signature(f).parameters) > 1 and "*" not in str(list(inspect.signature(f).parameters.values())[1]):
        second = list(inspect.signature(f).parameters.values())[1]
        if second.kind is not second.KEYWORD_ONLY:
            asked(f(X, F), f, (X, F), {})
            for value in (X, 2, 2.0, True, None):       # the fast ways of two arguments as well
                asked(f(F, value), f, (F, value), {})
            asked(getattr(X, name)(F), f, (X, F), {})


def test_the_call_is_handed_over_as_it_was_made():
    asked(pt.sum(F, 1, keepdim=True), pt.sum, (F, 1), {"keepdim": True})
    asked(pt.sum(X, F), pt.sum, (X, F), {})
    asked(pt.add(X, F), pt.add, (X, F), {})
    asked(pt.add(X, other=F, alpha=2), pt.add, (X,), {"other": F, "alpha": 2})
    asked(pt.add(2.0, F), pt.add, (2.0, F), {})
    asked(pt.sin(F), pt.sin, (F,), {})
    asked(pt.cat((X, F), dim=0), pt.cat, ((X, F),), {"dim": 0})
    asked(X.view(F, 2), pt.Tensor.view, (X, F, 2), {})
    asked(X.add_(F), pt.Tensor.add_, (X, F), {})
    asked(pt.nn.functional.linear(X, F, None), pt.nn.functional.linear, (X, F, None), {})
    asked(X[F], pt.Tensor.__getitem__, (X, F), {})
    asked(X[0, F], pt.Tensor.__getitem__, (X, (0, F)), {})
    assert X.tolist() == [[1, 1, 1]] * 2


def test_order_and_refusal():
    calls = []

    def answers(name, answer, base=object):
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            calls.append(name)
            return answer
        return type(name, (base,), {"__torch_function__": classmethod(__torch_function__)})
    A = answers("A", NotImplemented)
    B = answers("B", NotImplemented, A)
    C = answers("C", 5)
    assert pt.stack([A(), B(), C()]) == 5
    assert calls == ["B", "A", "C"]         # a subclass before its base
    with pytest.raises(TypeError, match=r"no implementation found for 'ptcore.add' on types .*\['B', 'A'\]"):
        pt.add(A(), B())
    sub = answers("Sub", 7, pt.Tensor)
    calls.clear()
    assert pt.add(A(), X.as_subclass(sub)) == 7
    assert calls == ["A", "Sub"]


def test_errors_of_the_object_are_its_own():
    class Raises:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            raise ZeroDivisionError(func.__name__)
    for call in (lambda: pt.add(Raises(), 1), lambda: pt.stack([Raises()]), lambda: pt.softmax(Raises(), 0)):
        with pytest.raises(ZeroDivisionError):
            call()
    with pytest.raises(TypeError, match="sum: input must be a Tensor, got object"):     # nobody to ask
        pt.sum(object())


def test_modes():
    with NamesSeen() as outer, NamesSeen() as inner:
        y = (X.sin() + 1).sum(1)
        pt.nn.functional.relu(y, inplace=True)
        y.add_(1)
    assert y.tolist() == pytest.approx([3 * (float(pt.ones(1).sin()) + 1) + 1] * 2)
    assert inner.names == outer.names and inner.names[:3] == ["sin", "add", "sum"] and "add_" in inner.names
    n = len(inner.names)
    X.sin()
    assert len(inner.names) == n
    with NamesSeen() as log, pytest.raises(RuntimeError):
        pt.mm(X, X)
    assert log.names == ["mm"]
    X.sin()
    assert log.names == ["mm"]
    with BaseTorchFunctionMode():
        assert (X + 1).tolist() == [[2, 2, 2]] * 2
    with NamesSeen() as log:
        asked(pt.add(X, F), pt.add, (X, F), {})
    assert log.names == ["add"]


MAKERS = {
    "empty": (2, 3), "zeros": (2, 3), "ones": ((2,),), "full": ((2,), 7), "empty_strided": ((2,), (1,)),
    "arange": (3,), "linspace": (0, 1, 3), "logspace": (0, 1, 3), "eye": (2,), "range": (0, 3), "scalar_tensor": (1.0,),
    "empty_permuted": ((2, 3), (1, 0)), "rand": (2,), "randn": (2,), "randint": (3, (2,)), "randperm": (3,),
    "normal": (0.0, 1.0, (2,)), "hann_window": (4,), "hamming_window": (4,), "blackman_window": (4,),
    "bartlett_window": (4,), "kaiser_window": (4,), "fft.fftfreq": (3,), "fft.rfftfreq": (3,),
    "tensor": ([1.0, 2.0],), "as_tensor": ([1.0],), "asarray": ([1.0],), "empty_like": (X,), "zeros_like": (X,),
    "ones_like": (X,), "full_like": (X, 2), "rand_like": (X,), "randn_like": (X,), "randint_like": (X, 3),
    "bernoulli": (X,), "tril_indices": (2, 2),
}


@pytest.mark.parametrize("name", MAKERS)
def test_modes_see_what_makes_tensors(name):
    """As a whole, under its own name: a mode may send what is made to another device or give another dtype."""
    class OnMeta(NamesSeen):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            self.names.append(func.__name__)
            return func(*args, **{**(kwargs or {}), "device": "meta"})

    f = pt
    for part in name.split("."):
        f = getattr(f, part)
    with NamesSeen() as log:
        plain = f(*MAKERS[name])
    assert log.names == [f.__name__] and plain.device.type == "cpu"
    if name != "bernoulli":
        with OnMeta() as log:
            assert f(*MAKERS[name]).device.type == "meta"
        assert log.names == [f.__name__]
    assert f(*MAKERS[name]).shape == plain.shape and f is pickle.loads(pickle.dumps(f))


def test_every_maker_is_tried():
    seen = {name.removeprefix("ptcore.") for name, f in PUBLIC.items() if getattr(f, "modes_alone", False)}
    assert seen - {"from_file"} <= MAKERS.keys()
    assert not {f for f in PUBLIC.values() if getattr(f, "modes_alone", False)} & set(
        overrides.get_overridable_functions()[pt])


def test_functions_of_programs():
    def twice(a, b=None):
        if has_torch_function((a, b)):
            return handle_torch_function(twice, (a, b), a, b=b)
        return 2 * a
    assert twice(3) == 6
    asked(twice(X, F), twice, (X,), {"b": F}, (pt.Tensor, Foreign))

    @overrides.wrap_torch_function(lambda a: (a,))
    def other(a):
        return a
    assert other(3) == 3
    asked(other(F), other, (F,), {})
    assert [overrides.is_tensor_like(x) for x in (X, F, 3, None)] == [True, True, False, False]
    assert overrides.has_torch_function_unary(F) and not overrides.has_torch_function_variadic(X, 2)
    assert overrides.is_tensor_method_or_property(pt.Tensor.add)
    assert not overrides.is_tensor_method_or_property(pt.nn.functional.linear)
    assert overrides.resolve_name(pt.Tensor.view) == "ptcore.Tensor.view"
    assert pt.add in overrides.get_overridable_functions()[pt]
    assert len(overrides.get_overridable_functions()[pt.Tensor]) > 400


def test_lists_that_contain_themselves():
    endless = [1]
    endless.append(endless)
    for call in (pt.cat, pt.stack, pt.zeros, lambda s: X.reshape(s), lambda s: X[s,]):
        with pytest.raises((TypeError, ValueError, IndexError)):
            call(endless)
    asked(pt.add(F, endless), pt.add, (F, endless), {})
    assert has_torch_function((endless, F)) is True
    with BaseTorchFunctionMode(), pytest.raises((TypeError, ValueError)):
        pt.cat(endless)


def test_assignment_hands_over():
    seen = []

    class Sees:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append((func, types, args[1:], kwargs))
    s, x = Sees(), pt.zeros(2, 3)
    x[0] = s
    x[s] = 1.0
    x[:, s] = x
    assert [entry[:2] for entry in seen] == [(pt.Tensor.__setitem__, (Sees,))] * 3
    assert seen[0][2:] == ((0, s), {}) and seen[1][2:] == ((s, 1.0), {}) and seen[2][2][0] == (slice(None), s)
    assert x.sum() == 0


def test_methods_are_pickled_by_name():
    for f in (pt.Tensor.fill_, pt.Tensor.new_tensor, pt.Tensor.copy_, pt.Tensor.backward, pt.nn.functional.batch_norm):
        assert pickle.loads(pickle.dumps(f)) is f
