"""Tensors of PyTorch beside tensors of ptcore in one call: a TypeError that names the way from one to the other."""
import pytest

torch = pytest.importorskip("torch")

import ptcore as pt  # noqa: E402

pytestmark = [pytest.mark.parity]
OURS = {
    "add": lambda a, b: a + b, "radd": lambda a, b: b + a, "matmul": lambda a, b: a.reshape(1, 2) @ b.reshape(2, 1),
    "eq": lambda a, b: a == b, "reflected eq": lambda a, b: b == a, "in place": lambda a, b: a.add_(b),
    "cat": lambda a, b: pt.cat([a, b]), "stack": lambda a, b: pt.stack([b]), "relu": lambda a, b: pt.relu(b),
    "linear": lambda a, b: pt.nn.Linear(2, 2)(b), "loss": lambda a, b: pt.nn.functional.mse_loss(a, b),
    "copy": lambda a, b: a.copy_(b), "index": lambda a, b: a[b.long()], "setitem": lambda a, b: a.__setitem__(0, b),
    "contains": lambda a, b: b in a, "out": lambda a, b: pt.add(a, 1, out=b),
    "where": lambda a, b: pt.where(b > 0, a, a),
    "backward": lambda a, b: a.requires_grad_().backward(b), "Parameter": lambda a, b: pt.nn.Parameter(b),
    "grad": lambda a, b: setattr(a, "grad", b), "SGD": lambda a, b: pt.optim.SGD([torch.nn.Parameter(b)], lr=0.1)}
THEIRS = {
    "cat": lambda a, b: torch.cat([a, b]), "copy": lambda a, b: b.copy_(a), "relu": lambda a, b: torch.relu(a),
    "linear": lambda a, b: torch.nn.Linear(2, 2)(a), "index": lambda a, b: b[a.long()],
    "softmax": lambda a, b: torch.softmax(a, 0)}


@pytest.mark.parametrize("name", OURS)
def test_our_functions(name):
    with pytest.raises(TypeError, match=r"expected tensors of ptcore, got a torch\..*ptcore.from_dlpack"):
        OURS[name](pt.ones(2), torch.ones(2))


@pytest.mark.parametrize("name", THEIRS)
def test_their_functions(name):
    with pytest.raises(TypeError, match=r"ptcore.*from_dlpack"):
        THEIRS[name](pt.ones(2), torch.ones(2))


def test_a_function_that_asks_both():
    with pytest.raises(TypeError, match=r"no implementation found for 'torch\.nn.functional.mse_loss'"):
        torch.nn.functional.mse_loss(torch.ones(2), pt.ones(2))


def test_the_ways_that_are_named():
    ours, theirs = pt.arange(3.0), torch.arange(3.0)
    assert (ours + pt.from_dlpack(theirs)).tolist() == (torch.from_dlpack(ours) + theirs).tolist() == [0.0, 2.0, 4.0]
    assert pt.tensor(theirs).tolist() == pt.as_tensor(theirs).tolist() == [0.0, 1.0, 2.0]


def test_subclasses_of_ours_still_run_their_ops():
    class Own(pt.Tensor):
        pass
    x = pt.ones(2).as_subclass(Own)
    assert type(x + 1) is Own and type(pt.cat([x, x])) is Own
