"""Small modules of the package: what each function returns."""
import collections

import pytest

import ptcore
from ptcore.distributions import constraints
from ptcore.nn.utils import skip_init
from ptcore.utils import _pytree

pytestmark = pytest.mark.core


def test_metal_is_absent():
    assert ptcore.backends.mps.is_built() is False
    assert ptcore.backends.mps.is_available() is False


def test_skip_init_makes_memory_on_the_device():
    layer = skip_init(ptcore.nn.Linear, 3, 2)
    assert layer.weight.device.type == "cpu" and layer.weight.shape == (2, 3) and layer.weight.requires_grad
    assert layer(ptcore.ones(1, 3)).shape == (1, 2)
    assert skip_init(ptcore.nn.Linear, 3, 2, device="meta").weight.is_meta


def test_flattening_of_dicts_and_lists():
    values, context = _pytree._dict_flatten({"b": 1, "a": 2})
    assert (values, context) == ([1, 2], ["b", "a"])
    assert _pytree._dict_unflatten(values, context) == {"b": 1, "a": 2}
    pairs, context = _pytree._dict_flatten_with_keys({"b": 1, "a": 2})
    assert [(key.key, value) for key, value in pairs] == [("b", 1), ("a", 2)] and context == ["b", "a"]
    pairs, context = _pytree._list_flatten_with_keys([5, 6])
    assert [(key.idx, value) for key, value in pairs] == [(0, 5), (1, 6)] and context is None
    assert _pytree._get_node_type(collections.namedtuple("Pair", "a b")(1, 2)) is collections.namedtuple


@pytest.mark.parametrize(("name", "bounds", "inside"), [
    ("interval", (0, 2), "01110"), ("half_open_interval", (0, 2), "01100"), ("integer_interval", (0, 2), "01110"),
    ("greater_than", (0,), "00111"), ("greater_than_eq", (0,), "01111"), ("less_than", (2,), "11100")])
def test_ends_of_intervals(name, bounds, inside):
    found = getattr(constraints, name)(*bounds).check(ptcore.tensor([-1., 0., 1., 2., 3.]))
    assert "".join([str(int(x)) for x in found.tolist()]) == inside
