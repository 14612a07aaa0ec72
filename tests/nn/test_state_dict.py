"""state_dict and load_state_dict of modules."""

import numpy as np
import pytest

import ptcore as pt
from ptcore import nn

pytestmark = pytest.mark.core


def make():
    net = nn.Sequential(nn.Linear(2, 3), nn.LayerNorm(3))
    net.register_buffer("count", pt.zeros(1))
    return net


def test_round_trip_copies_values():
    a, b = make(), make()
    state = a.state_dict()
    assert state._metadata == {
        "": {"version": 1}, "0": {"version": 1}, "1": {"version": 1},
    }  # fmt: skip
    keys = b.load_state_dict(state)
    assert str(keys) == "<All keys matched successfully>"
    for (name, p), q in zip(
        a.state_dict().items(), b.state_dict().values(), strict=True
    ):
        assert np.array_equal(p.numpy(), q.numpy()), name
        assert not p.requires_grad
    with pt.no_grad():
        b[0].weight.zero_()
    assert a[0].weight.abs().sum().item() > 0
    assert a.state_dict(keep_vars=True)["0.weight"] is a[0].weight
    assert next(iter(a.state_dict(prefix="net."))) == "net.count"


def test_error_lists_every_key():
    net = make()
    state = net.state_dict()
    del state["0.bias"], state["count"]
    state["0.weight"] = pt.zeros(5)
    state["1.bias"] = 3
    state["2.weight"] = state["1.extra"] = pt.zeros(1)
    with pytest.raises(RuntimeError) as info:
        net.load_state_dict(state)
    text = str(info.value)
    assert 'Missing key(s) in state_dict: "count", "0.bias".' in text
    assert 'Unexpected key(s) in state_dict: "2.weight", "1.extra".' in text
    assert "size mismatch for 0.weight: copying a param with shape" in text
    assert 'While copying the parameter named "1.bias"' in text
    state["0.weight"], state["1.bias"] = pt.zeros(3, 2), pt.ones(3)
    keys = net.load_state_dict(state, strict=False)
    assert keys.missing_keys == ["count", "0.bias"]
    assert keys.unexpected_keys == ["2.weight", "1.extra"]
    assert net[1].bias.tolist() == [1, 1, 1]
    with pytest.raises(TypeError, match="dict-like"):
        net.load_state_dict([1])


def test_assign_takes_the_tensors():
    net = nn.Linear(2, 1)
    weight = pt.ones(1, 2, dtype=pt.float64)
    net.load_state_dict({"weight": weight, "bias": pt.zeros(1)}, assign=True)
    assert net.weight.dtype == pt.float64
    assert isinstance(net.weight, nn.Parameter)
    assert net.weight.requires_grad
    with pt.no_grad():
        net.weight.add_(1)
    assert weight.tolist() == [[2, 2]]


def test_loading_into_meta():
    net = nn.Linear(2, 1, device="meta")
    state = {"weight": pt.ones(1, 2), "bias": pt.zeros(1)}
    with pytest.warns(UserWarning, match="no-op"):
        net.load_state_dict(state)
    net.load_state_dict(state, assign=True)
    assert net.weight.tolist() == [[1, 1]]


def test_scalar_loads_from_one_element():
    net = nn.Module()
    net.register_buffer("s", pt.tensor(0.0))
    net.load_state_dict({"s": pt.ones(1)})
    assert net.s.item() == 1


def test_extra_state():
    class Counter(nn.Linear):
        calls = 0

        def get_extra_state(self):
            return {"calls": self.calls}

        def set_extra_state(self, state):
            self.calls = state["calls"]

    a, b = Counter(1, 1), Counter(1, 1)
    a.calls = 7
    state = a.state_dict()
    assert state["_extra_state"] == {"calls": 7}
    b.load_state_dict(state)
    assert b.calls == 7
    with pytest.raises(RuntimeError, match=r"Unexpected key.*_extra_state"):
        nn.Linear(1, 1).load_state_dict(state)
    del state["_extra_state"]
    with pytest.raises(RuntimeError, match=r"Missing key.*_extra_state"):
        b.load_state_dict(state)


def test_state_dict_hooks():
    net, log = nn.Linear(1, 1), []
    net.register_state_dict_pre_hook(lambda m, prefix, keep: log.append("pre"))

    def post(module, state, prefix, metadata):
        state["added"] = 1

    net.register_state_dict_post_hook(post)
    assert net.state_dict()["added"] == 1
    assert log == ["pre"]

    def rename(module, state, prefix, metadata, strict, missing, unexpected, errors):
        state[prefix + "weight"] = state.pop(prefix + "w")
        state.pop("added", None)

    handle = net.register_load_state_dict_pre_hook(rename)

    def forgive(module, keys):
        keys.missing_keys.clear()

    net.register_load_state_dict_post_hook(forgive)
    net.load_state_dict({"w": pt.full((1, 1), 4.0)})
    assert net.weight.item() == 4
    handle.remove()
    with pytest.raises(RuntimeError, match="Unexpected"):
        net.load_state_dict({"w": pt.ones(1, 1)})


def test_old_underscore_hook_may_replace_the_dictionary():
    net = nn.Linear(1, 1)
    net._register_state_dict_hook(lambda m, state, prefix, meta: {"only": 1})
    assert net.state_dict() == {"only": 1}
