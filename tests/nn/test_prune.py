"""Pruning where PyTorch's stops halfway or refuses: errors, layouts, scores."""
import pytest

import ptcore as pt
from ptcore.nn.utils import prune

pytestmark = pytest.mark.core


def state(m):
    return ({name: x.tolist() for name, x in m.state_dict().items()}, m.weight.tolist(), list(m._parameters),
            list(m._buffers), list(m._forward_pre_hooks.items()),
            [list(hook) for hook in m._forward_pre_hooks.values() if isinstance(hook, prune.PruningContainer)])


class Refuses(prune.L1Unstructured):
    def compute_mask(self, t, default_mask):
        raise KeyboardInterrupt


class Odd(prune.L1Unstructured):
    """Gives a mask of another shape, which fails after the buffer is there."""

    def compute_mask(self, t, default_mask):
        return default_mask.new_ones(7)


@pytest.mark.parametrize("before", [0, 1, 2])
@pytest.mark.parametrize("step", [
    lambda m: prune.l1_unstructured(m, "weight", 100), lambda m: Refuses.apply(m, "weight", 1),
    lambda m: Odd.apply(m, "weight", 1), lambda m: prune.ln_structured(m, "weight", 1, 2, 5),
    lambda m: prune.l1_unstructured(m, "weight", 1, importance_scores=pt.ones(2)),
    lambda m: prune.custom_from_mask(m, "weight", pt.ones(2))])
def test_an_error_leaves_a_module_as_it_was(before, step):
    m = pt.nn.Linear(4, 3)
    hook = m.register_forward_pre_hook(lambda module, inputs: None)
    for _ in range(before):
        prune.l1_unstructured(m, "weight", 2)
    later = m.register_forward_pre_hook(lambda module, inputs: None)
    expected = state(m)
    with pytest.raises((Exception, KeyboardInterrupt)):
        step(m)
    assert state(m) == expected
    if before:
        with pt.no_grad():
            m.weight_orig.mul_(2)
        m(pt.ones(4))
        assert m.weight.equal(m.weight_orig * m.weight_mask)            # it is still pruned
        prune.remove(m, "weight")
    assert list(m._forward_pre_hooks) == [hook.id, later.id] and not prune.is_pruned(m)


@pytest.mark.parametrize("step", [
    lambda m: prune.l1_unstructured(m, "weight", 5), lambda m: prune.random_unstructured(m, "weight", 5),
    lambda m: prune.global_unstructured([(m, "weight")], prune.L1Unstructured, amount=5)])
def test_a_weight_in_another_memory_format(step):
    m = pt.nn.Conv2d(3, 4, 2).to(memory_format=pt.channels_last)
    values = m.weight.detach().clone()
    step(m)
    assert int((m.weight_mask == 0).sum()) == 5 and m.weight.equal(values * m.weight_mask)
    transposed = pt.arange(6.0).reshape(2, 3).t()
    assert prune.L1Unstructured(3).prune(transposed).tolist() == [[0, 3], [0, 4], [0, 5]]


def test_scores_of_all_have_the_shapes_of_the_parameters():
    a, b = pt.nn.Linear(4, 3), pt.nn.Linear(2, 2)
    exchanged = {(a, "weight"): pt.ones(2, 2), (b, "weight"): pt.ones(3, 4)}
    with pytest.raises(AssertionError, match="importance_scores should have the same shape as parameter weight"):
        prune.global_unstructured([(a, "weight"), (b, "weight")], prune.L1Unstructured, importance_scores=exchanged,
                                  amount=3)
    assert not prune.is_pruned(a) and not prune.is_pruned(b)


@pytest.mark.parametrize("call", [
    lambda m: prune.l1_unstructured(m, "bias", amount=1), lambda m: prune.identity(m, "bias"),
    lambda m: prune.random_structured(m, "bias", amount=1, dim=0), lambda m: prune.ln_structured(m, "bias", 1, 2, 0),
    lambda m: prune.custom_from_mask(m, "bias", pt.ones(2)), lambda m: pt.nn.utils.weight_norm(m, "bias")])
@pytest.mark.filterwarnings("ignore:`weight_norm` is deprecated")
def test_a_parameter_that_is_none(call):
    m = pt.nn.Linear(2, 2, bias=False)
    with pytest.raises(TypeError, match="parameter 'bias' of Linear must be a tensor, got None"):
        call(m)
    assert list(m._parameters) == ["weight", "bias"] and not m._buffers
