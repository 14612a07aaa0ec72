"""MaskedTensor: what carries its mask along, what refuses, its gradients."""
import copy
import io
import math
import operator
import pickle

import numpy as np
import pytest

import ptcore as pt
from ptcore import masked
from ptcore.masked import MaskedTensor, _calls

MASK = pt.tensor([[True, False, True], [False, False, True]])


def make(requires_grad=False, dtype=pt.float64, mask=MASK):
    return masked.masked_tensor(pt.tensor([[0.5, 0.25, 0.75], [0.1, 0.2, 0.3]], dtype=dtype), mask, requires_grad)


def same(got, data, mask):
    assert type(got) is MaskedTensor
    pt.testing.assert_close(got.get_data(), data, rtol=0, atol=0, equal_nan=True)
    assert pt.equal(got.get_mask(), mask)


def test_construction():
    data = pt.ones(2)
    mask = pt.tensor([True, False])
    x = masked.masked_tensor(data, mask, requires_grad=True)
    data.zero_()
    assert x.get_data().tolist() == [1, 1] and x.is_leaf and x.requires_grad
    assert masked.is_masked_tensor(x) and not masked.is_masked_tensor(x.get_data())
    assert x.to_tensor(7).tolist() == [1, 7] and x.tolist() == [1, None]
    for bad, error in (((x, mask), TypeError), ((data, x), TypeError), ((data, data), TypeError),
                       (([1.0], mask), TypeError), ((pt.ones(3), mask), ValueError)):
        with pytest.raises(error, match="MaskedTensor: "):
            masked.masked_tensor(*bad)
        with pytest.raises(error, match="MaskedTensor: "):
            masked.as_masked_tensor(*bad)


@pytest.mark.parametrize("name", [n for n in _calls.UNARY if not n.startswith("bitwise")])
def test_unary(name):
    x = make()
    args = {"clamp": (0.2, 0.6), "clip": (0.2, 0.6), "pow": (2,)}.get(name, ())
    same(getattr(pt, name)(x, *args), getattr(pt, name)(x.get_data(), *args), MASK)
    if name not in ("angle", "positive", "signbit", "isnan"):
        expected = getattr(x.get_data().clone(), f"{name}_")(*args)
        y = x.clone()
        assert getattr(y, f"{name}_")(*args) is y
        same(y, expected, MASK)


@pytest.mark.parametrize("name", [n for n in _calls.BINARY if not n.startswith("bitwise")])
def test_binary(name):
    x, other = make(), make()
    data = x.get_data()
    function = getattr(pt, name)
    same(function(x, other), function(data, data), MASK)
    same(function(x, data + 1), function(data, data + 1), MASK)
    if name not in ("logaddexp", "logaddexp2", "fmin", "fmax", "minimum", "maximum", "nextafter", "atan2", "arctan2"):
        same(function(x, 2), function(data, 2), MASK)
    with pytest.raises(ValueError, match="the masks of the arguments must match"):
        function(x, make(mask=~MASK))


def test_operators():
    x = make()
    d = x.get_data()
    same(x + 1, d + 1, MASK)
    same(1 - x, 1 - d, MASK)
    same(x * x / 3, d * d / 3, MASK)
    same(-x, -d, MASK)
    same(x ** 2, d ** 2, MASK)
    same(x > 0.2, d > 0.2, MASK)
    same(x < make(mask=~MASK), d < d, MASK)             # as in PyTorch: its own mask
    x += 1
    same(x, d, MASK)
    bits = masked.masked_tensor(pt.tensor([1, 2, 3]), pt.tensor([True, False, True]))
    same(bits & 1, pt.tensor([1, 0, 1]), bits.get_mask())
    same(~bits, pt.tensor([-2, -3, -4]), bits.get_mask())
    with pytest.raises(TypeError, match="mm: there is no form of it for a MaskedTensor"):
        x @ x.t()
    with pytest.raises(TypeError, match="add_: a plain tensor cannot hold"):
        pt.ones(2, 3).add_(x)


@pytest.mark.parametrize("move", [
    lambda x: x[0], lambda x: x[:, 1:], lambda x: x[..., None], lambda x: x.t(), lambda x: x.transpose(0, 1),
    lambda x: x.view(3, 2), lambda x: x.reshape(-1), lambda x: x.unsqueeze(0), lambda x: x.expand(4, 2, 3),
    lambda x: pt.cat([x, x]), lambda x: pt.stack([x, x], 1), lambda x: x.split(1), lambda x: x.unbind(1),
    lambda x: x.unfold(1, 2, 1), lambda x: x.select(0, 1), lambda x: x.clone(), lambda x: x.detach(),
    lambda x: x.contiguous(), lambda x: x.T, lambda x: x.permute(1, 0), lambda x: x.chunk(2), lambda x: x.flatten(),
    lambda x: x.narrow(1, 0, 2), lambda x: x.repeat(2, 1), lambda x: x[pt.tensor([1, 0])], lambda x: x.mT])
def test_moving(move):
    x = make()
    got, data, mask = move(x), move(x.get_data()), move(MASK)
    for a, b, c in zip(got, data, mask) if isinstance(got, tuple) else [(got, data, mask)]:
        same(a, b, c)


@pytest.mark.parametrize("name", ["sum", "mean", "amin", "amax", "argmin", "argmax", "prod", "var", "std", "norm"])
def test_reductions(name):
    x = make()
    for function in (getattr(pt, name), getattr(pt.Tensor, name)):
        whole = function(x)
        assert whole.get_mask().item() and whole.item() == getattr(masked, name)(x.get_data(), mask=MASK).item()
        args = (2, 0) if name == "norm" else (0,)
        part = function(x, *args)
        expected = getattr(masked, name)(x.get_data(), *args, mask=MASK)
        assert part.get_mask().tolist() == [True, False, True]
        np.testing.assert_array_equal(part.get_data()[[0, 2]].numpy(), expected[[0, 2]].numpy())
        assert function(x, *args, keepdim=True).shape == (1, 3)


def test_all_where_and_softmax():
    x = make()
    assert (x > 0.2).all().item() is True and (x > 0.4).all(1).tolist() == [True, False]
    same(pt.where(MASK, x, pt.zeros(2, 3).double()), x.get_data().where(MASK, 0.0), pt.ones(2, 3, dtype=pt.bool))
    same(pt.where(pt.tensor([True, False, False]), x, make(mask=~MASK)), x.get_data(),
         pt.tensor([[True, True, False], [False, True, False]]))
    soft = pt.nn.functional.softmax(x, 1)
    assert soft.tolist() == masked.masked_tensor(masked.softmax(x, 1), MASK).tolist()
    same(pt.ones_like(x), pt.ones(2, 3).double(), MASK)
    same(x.float(), x.get_data().float(), MASK)
    same(x.data, x.get_data(), MASK)
    with pt.device("meta"):             # no default device in helper tensors
        same(pt.where(MASK, x, pt.zeros(2, 3, device="cpu").double()), x.get_data().where(MASK, 0.0),
             pt.ones(2, 3, dtype=pt.bool, device="cpu"))
    with pytest.raises(TypeError, match="where: condition must be a plain Tensor"):
        pt.where(x > 0, x, x)


def test_gradients():
    x = make(requires_grad=True)
    (x.exp() * x).sum().backward()
    d = x.get_data().detach()
    same(x.grad, ((1 + d) * d.exp()).where(MASK, 0.0), MASK)
    x.grad = None
    assert x.grad is None
    plain = pt.tensor([1.0, -1.0], dtype=pt.float64, requires_grad=True)
    mask = pt.tensor([True, False])
    loss = masked.as_masked_tensor(plain.log(), mask).mean()
    assert loss.item() == 0
    loss.backward()
    assert plain.grad.tolist() == [1, 0]

    def function(x):
        return masked.as_masked_tensor(x, MASK)[:, ::2].sin().mul(2).amax(0).to_tensor(0)
    y = make().get_data().clone().requires_grad_()
    assert pt.autograd.gradcheck(function, (y,)) and pt.autograd.gradgradcheck(function, (y,))


def test_where_hides_nan():
    """The example of PyTorch's documentation: a branch that overflows is masked out."""
    x = pt.tensor([-10.0, -5, 0, 5, 100, 1000])
    mx = masked.masked_tensor(x, x < 0, requires_grad=True)
    my = masked.masked_tensor(pt.ones_like(x), x >= 0, requires_grad=True)
    pt.where(x < 0, pt.exp(mx), my).sum().backward()
    assert mx.grad.tolist() == [pytest.approx(math.exp(-10)), pytest.approx(math.exp(-5)), *[None] * 4]
    assert my.grad.tolist() == [None, None, 1, 1, 1, 1]


def test_printing():
    assert repr(make()) == """MaskedTensor(
  [
    [  0.5000,       --,   0.7500],
    [      --,       --,   0.3000]
  ]
)"""
    assert repr(make().sum()) == "MaskedTensor(  1.5500, True)"
    assert repr(make()[0, 1]) == "MaskedTensor(--, False)"
    assert repr(masked.masked_tensor(pt.tensor([1, 20]), pt.tensor([True, False]))) == (
        "MaskedTensor(\n  [1,       --]\n)")


def test_copies_and_items():
    x = make(requires_grad=True)
    for y in (pickle.loads(pickle.dumps(x)), copy.copy(x), copy.deepcopy(x)):
        same(y, x.get_data(), MASK)
        assert y.requires_grad
    assert x[0, 0].item() == 0.5
    with pytest.raises(ValueError, match="item: the element is masked out"):
        x[0, 1].item()
    y = make()
    y.copy_(x.detach() * 2)
    same(y, x.get_data().detach() * 2, MASK)
    with pytest.raises(ValueError, match="copy_: the masks"):
        y.copy_(make(mask=~MASK))
    with pytest.raises(TypeError, match="__setitem__: there is no form"):
        y[0] = 1


def test_a_comparison_broadcasts_the_mask():
    x = masked.masked_tensor(pt.tensor([[1.], [2.]]), pt.tensor([[True], [False]]))
    for found in (x < pt.tensor([0., 3.]), pt.tensor([0., 3.]) > x):
        assert found.tolist() == [[False, True], [None, None]]
        assert found.get_mask().shape == found.shape


def test_a_number_of_a_masked_out_element_is_refused():
    x = masked.masked_tensor(pt.tensor([1, 2]), pt.tensor([True, False]))
    for read in (float, int, complex, bool, operator.index):
        assert read(x[0]) == 1
        with pytest.raises(ValueError, match="masked out"):
            read(x[1])
    with pytest.raises(TypeError, match="numpy"):
        x.numpy()


def test_gradients_are_zero_where_the_slope_of_a_masked_out_element_is_not_finite():
    x = pt.tensor([4., -1., 0., 1.], requires_grad=True)
    mask = pt.tensor([True, False, False, True])
    masked.as_masked_tensor(x, mask).sqrt().sum().backward()
    assert x.grad.tolist() == [0.25, 0.0, 0.0, 0.5]


def test_is_no_plain_tensor_for_others():
    x = make()
    copied = pt.tensor(x)
    same(copied, x.get_data(), MASK)
    copied.get_data().zero_()
    assert x.get_data()[0, 0] == 0.5
    assert type(pt.tensor(x, dtype=pt.float32)) is MaskedTensor and pt.tensor(x, requires_grad=True).requires_grad
    advice = r"there is no form of it for a MaskedTensor; use get_data\(\) or to_tensor\(value\)"
    for function in (np.asarray, np.array, np.from_dlpack, pt.from_dlpack, memoryview, bytes, pt.Tensor,
                     lambda x: pt.save([x], io.BytesIO())):
        with pytest.raises(TypeError, match=advice):
            function(x)
