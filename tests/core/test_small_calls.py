"""What calls that make tensors and settings take: default devices, histories, counts, and no filters of warnings."""
import ast
from pathlib import Path

import numpy as np
import pytest

import ptcore as pt

pytestmark = pytest.mark.core

DATA = {"list": [1.0, 2.0], "number": 3, "array": np.ones(2), "tensor": pt.ones(2)}


@pytest.mark.parametrize("make", [pt.as_tensor, pt.asarray])
@pytest.mark.parametrize("name", DATA)
def test_the_default_device_is_that_of_data(make, name):
    with pt.device("meta"):
        assert make(DATA[name]).is_meta and not make(DATA[name], device="cpu").is_meta
    assert not make(DATA[name]).is_meta
    assert (make(DATA[name]) is DATA[name]) == (name == "tensor")


@pytest.mark.parametrize("name", ["array", "tensor"])
def test_a_move_to_the_default_device_is_a_copy(name):
    with pt.device("meta"), pytest.raises(ValueError, match="a copy is needed"):
        pt.asarray(DATA[name], copy=False)


@pytest.mark.parametrize("kwargs", [{}, {"copy": True}, {"copy": True, "requires_grad": True}, {"dtype": pt.float64},
                                    {"requires_grad": True}])
def test_asarray_of_a_tensor_keeps_its_history(kwargs):
    x = pt.tensor([1.0, 2.0], requires_grad=True)
    for y in (x, x * 3):
        made = pt.asarray(y, **kwargs)
        (slope,) = pt.autograd.grad((made * made).sum(), x)
        assert slope.tolist() == ([2, 4] if y is x else [18, 36])
    assert not pt.tensor(np.ones(2)).requires_grad and not pt.asarray(pt.ones(2), copy=True).requires_grad


@pytest.mark.parametrize("name", ["hann", "hamming", "blackman", "bartlett", "kaiser"])
def test_the_length_of_a_window_is_no_bool(name):
    with pytest.raises(TypeError, match="window_length must be int, got bool"):
        getattr(pt, f"{name}_window")(True)


@pytest.mark.parametrize("mode", [1, 0, None, np.True_, "on"])
def test_a_mode_of_denormal_numbers_is_a_bool(mode):
    with pytest.raises(RuntimeError, match="mode must be bool"):
        pt.set_flush_denormal(mode)


def test_a_plateau_keeps_the_worst_value():
    for mode, worst in (("min", float("inf")), ("max", -float("inf"))):
        schedule = pt.optim.lr_scheduler.ReduceLROnPlateau(pt.optim.SGD([pt.ones(1, requires_grad=True)], 1.0), mode)
        schedule.step(0.5)
        assert schedule.state_dict()["mode_worse"] == worst and schedule.best == 0.5


def test_solutions_and_empty_residuals_of_lstsq_have_a_history():
    a, b = pt.randn(4, 2, dtype=pt.float64), pt.randn(4, 1, dtype=pt.float64)
    for left, right in ((a.requires_grad_(), b), (a.detach(), b.clone().requires_grad_())):
        for driver in (None, "gels", "gelsd"):
            found = pt.linalg.lstsq(left, right, driver=driver)
            assert [x.requires_grad for x in found] == [True, True, False, False]


def test_nothing_changes_the_filters_of_warnings():
    """They are the process's: other threads would lose their warnings."""
    package = Path(pt.__file__).parent
    found = [path.name for path in package.rglob("*.py") for node in ast.walk(ast.parse(path.read_text()))
             if isinstance(node, ast.Attribute) and node.attr in ("catch_warnings", "simplefilter", "filterwarnings")]
    assert found == []


def test_points_of_sobol_are_scipys():
    import warnings

    from scipy.stats import qmc
    for n in (0, 1, 3, 5, 8):
        engine, theirs = pt.quasirandom.SobolEngine(3), qmc.Sobol(3, scramble=False, bits=30)
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            got = [engine.draw(n, dtype=pt.float64), engine.draw(2, dtype=pt.float64)]
        assert not seen
        np.testing.assert_array_equal(pt.cat(got).numpy(), theirs.random(8 if n < 7 else 16)[:n + 2])
