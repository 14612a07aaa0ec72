"""Anomaly mode and gradcheck: a wrong rule is caught, and the user's own line is shown."""

import pytest

import ptcore as pt
from ptcore.autograd import Function, detect_anomaly, gradcheck, gradgradcheck, set_detect_anomaly
from ptcore.autograd._gradcheck import GradcheckError

pytestmark = pytest.mark.core


def leaf(*values):
    return pt.tensor(list(values), dtype=pt.float64, requires_grad=True)


class Broken(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, g):
        raise KeyError("broken rule")


class Wrong(Function):
    """A rule off by a per cent."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2.02 * x * g


class WrongSecond(Function):
    """A right first derivative whose own derivative is lost."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * x.detach() ** 2 * g


def make_nan(x):
    return (x - 1).sqrt() * 0  # this line made the NaN


def test_nan_names_the_op_and_the_forward_line():
    x = leaf(1.0)
    with detect_anomaly():
        y = make_nan(x).sum()
        with pytest.warns(UserWarning, match="this line made the NaN"), pytest.raises(
                RuntimeError, match=r"SqrtBackward0.* nan"):
            y.backward()


def test_nan_is_not_checked_unless_asked_for():
    x = leaf(1.0)
    make_nan(x).sum().backward()
    assert x.grad.isnan().all()
    x.grad = None
    with detect_anomaly(check_nan=False):
        make_nan(x).sum().backward()


def test_an_error_shows_the_forward_line():
    with detect_anomaly():
        y = Broken.apply(leaf(1.0))  # the call that made the node
        with pytest.warns(UserWarning, match=r"Error detected in BrokenBackward. Traceback of forward call"), \
                pytest.raises(KeyError) as caught:
            y.sum().backward()
    (note,) = caught.value.__notes__
    assert "BrokenBackward" in note
    assert "the call that made the node" in note


def test_an_error_outside_anomaly_mode_says_how_to_see_more():
    with pytest.raises(KeyError) as caught:
        Broken.apply(leaf(1.0)).sum().backward()
    (note,) = caught.value.__notes__
    assert "BrokenBackward" in note
    assert "detect_anomaly" in note


def test_mode_is_restored():
    from ptcore._state import is_anomaly_enabled

    def failing():
        with detect_anomaly():
            assert is_anomaly_enabled()
            raise KeyError

    with pytest.raises(KeyError):
        failing()
    assert not is_anomaly_enabled()
    with set_detect_anomaly(True):
        assert is_anomaly_enabled()
        with set_detect_anomaly(False):
            assert not is_anomaly_enabled()
        assert is_anomaly_enabled()
    assert not is_anomaly_enabled()


def test_gradcheck_catches_a_wrong_rule():
    x = leaf(0.5, 2.0)
    with pytest.raises(GradcheckError, match="numerical"):
        gradcheck(Wrong.apply, (x,))
    assert gradcheck(Wrong.apply, (x,), raise_exception=False) is False
    assert gradcheck(Wrong.apply, (x,), rtol=0.1)


@pytest.mark.parametrize("shape", [(2, 3), (3,), ()])
def test_cotangents_of_gradgradcheck_lie_apart(shape):
    """``gen_non_contig_grad_outputs``: of the result's shape, each element away from the next."""
    seen = []

    def cubed(x):
        y = x ** 3
        y.register_hook(lambda g: seen.append((tuple(g.shape), g.is_contiguous())))
        return y
    x = pt.rand(shape, dtype=pt.float64).add(0.5).requires_grad_()
    for apart in (True, False):
        seen.clear()
        assert gradgradcheck(cubed, (x,), gen_non_contig_grad_outputs=apart)
        assert {shape for shape, _ in seen} == {shape} and seen[0][1] is (not apart or not shape)


def test_gradgradcheck_catches_a_lost_second_derivative():
    x = leaf(0.5, 2.0)
    assert gradcheck(WrongSecond.apply, (x,))
    with pytest.raises(GradcheckError):
        gradgradcheck(WrongSecond.apply, (x,))


def test_gradcheck_catches_a_detached_output():
    with pytest.raises(GradcheckError, match="does not require grad"):
        gradcheck(lambda x: (x.detach() * 2, x * 1), (leaf(1.0),))


def test_gradcheck_catches_a_missing_gradient():
    class Drops(Function):
        @staticmethod
        def forward(ctx, x, y):
            return x * y

        @staticmethod
        def backward(ctx, g):
            return g, None

    with pytest.raises(GradcheckError):
        gradcheck(Drops.apply, (leaf(1.0), leaf(1.0)))


def test_gradcheck_needs_an_input():
    with pytest.raises(ValueError, match="require grad"):
        gradcheck(pt.exp, (pt.ones(2),))


def test_gradcheck_of_complex_functions():
    z = pt.tensor([1 + 2j, -0.5 + 0.1j], dtype=pt.complex128, requires_grad=True)
    assert gradcheck(lambda z: z * z.conj() + z, (z,))
    assert gradgradcheck(lambda z: z * z, (z,))
