"""The rules of doc/source/dev/views_and_inplace.rst, one test each, named by their number."""

import numpy as np
import pytest

import ptcore as pt
from ptcore.autograd import grad

pytestmark = pytest.mark.core


def leaf(*values):
    return pt.tensor(list(values), dtype=pt.float64, requires_grad=True)


def values(t):
    return t.detach().numpy().tolist()


def test_1_every_write_counts_once_for_all_who_share():
    x = pt.zeros(4)
    v, d = x[1:], x.detach()
    writes = [
        lambda: x.add_(1),
        lambda: v.mul_(2),
        lambda: d.zero_(),
        lambda: x.__setitem__(0, 5),
        lambda: x.copy_(pt.ones(4)),
        lambda: pt.add(pt.ones(4), 1, out=x),
        lambda: x.fill_(3),
    ]
    for k, write in enumerate(writes, 1):
        write()
        assert x._version == v._version == d._version == k
    x + 1
    assert x._version == len(writes)


@pytest.mark.parametrize(
    "write",
    [
        lambda y: y.add_(1),
        lambda y: y[1:].zero_(),
        lambda y: y.detach().mul_(2),
        lambda y: y.__setitem__(0, 1.0),
        lambda y: y.reshape(1, 2).t()[0].fill_(2),
    ],
)
@pytest.mark.parametrize("mode", [True, False])
def test_2_a_write_to_a_saved_tensor_is_caught(write, mode):
    x = leaf(1, 2)
    y = x * 1
    z = (y * y).sum()
    with pt.set_grad_enabled(mode):
        write(y)
    with pytest.raises(RuntimeError, match="inplace operation"):
        z.backward()
    assert x.grad is None


def test_2_a_write_to_what_only_gave_its_shape_does_no_harm():
    x = leaf(1, 2)
    y = x * 1
    z = y.sum() + y.reshape(2, 1).expand(2, 3).sum()
    y.add_(1)
    z.backward()
    assert values(x.grad) == [4, 4]


def test_3_a_write_to_a_saved_output_is_caught():
    for f in (pt.exp, pt.tanh, pt.sigmoid, pt.sqrt):
        y = f(leaf(1, 2))
        y.add_(1)
        with pytest.raises(RuntimeError, match="inplace operation"):
            y.sum().backward()


def test_3_relu_in_place_saves_what_it_wrote():
    x = leaf(-1, 2)
    y = x * 1
    y.relu_()
    y.sum().backward()
    assert values(x.grad) == [0, 1]


@pytest.mark.parametrize("write", [lambda d: d.add_(1), lambda d: d[0].add_(1)])
def test_4_writes_through_data_are_not_counted(write):
    x = leaf(1, 2)
    z = (x * x).sum()
    write(x.data)
    assert x._version == 0
    z.backward()


def test_4_backward_reads_the_new_data_of_a_leaf():
    x = leaf(1, 2)
    z = (x * x).sum()
    x.data = pt.tensor([5, 6], dtype=pt.float64)
    z.backward()
    assert values(x.grad) == [10, 12]
    assert values(x) == [5, 6]
    assert x.is_leaf
    assert x.requires_grad


def test_5_second_backward():
    x = leaf(1, 2)
    saves, saves_not = x.exp().sum(), (x + 1).sum()
    saves.backward()
    with pytest.raises(RuntimeError, match="freed"):
        saves.backward()
    saves_not.backward()
    x.grad = None
    saves_not.backward()
    assert values(x.grad) == [1, 1]


def test_6_base_of_a_view_of_a_view():
    x = pt.zeros(4, 4)
    v = x[1:].t()[0]
    assert v._base is x
    assert v._is_view()
    assert x._base is None
    assert not x._is_view()


def test_7_a_write_appends_to_a_history_or_starts_one():
    x = leaf(1, 2)
    y = x * 2
    before = y.grad_fn
    y.mul_(x)
    assert y.grad_fn is not before
    y.sum().backward()
    assert values(x.grad) == [4, 8]
    c = pt.zeros(2, dtype=pt.float64)
    c.add_(x)
    assert c.requires_grad
    assert not c.is_leaf
    assert values(grad(c.sum(), x)[0]) == [1, 1]


@pytest.mark.parametrize(
    ("window", "index"),
    [
        (lambda y: y[1:3], np.s_[1:3]),
        (lambda y: y[::2], np.s_[::2]),
        (lambda y: y.reshape(2, 2)[:, 1], np.s_[1::2]),
        (lambda y: y.reshape(2, 2).t()[1], np.s_[1::2]),
        (lambda y: y.reshape(2, 2).diagonal(), np.s_[::3]),
        (lambda y: y[-1], np.s_[3:]),
        (lambda y: y.unsqueeze(0)[0, :1], np.s_[:1]),
    ],
)
def test_8_a_write_through_a_view_is_the_bases_history(window, index):
    x = leaf(1, 2, 3, 4)
    y = x * 1
    window(y).mul_(5)
    assert y.grad_fn.name() == "CopySlices"
    (y * y).sum().backward()
    factor = np.ones(4)
    factor[index] = 25
    assert values(x.grad) == (2 * factor * np.arange(1, 5)).tolist()


def test_8_the_written_values_get_their_gradient():
    x, w = leaf(1, 2, 3, 4), leaf(10, 20)
    y = x * 1
    y[1:3] = w * w
    (y * pt.arange(4, dtype=pt.float64)).sum().backward()
    assert values(x.grad) == [0, 0, 0, 3]
    assert values(w.grad) == [20, 80]


def test_8_derivatives_of_every_order_go_through_a_window():
    def f(x):
        y = x * x
        y[1:].mul_(x[:-1])
        y.reshape(2, 2).t()[0].exp_()
        return y

    from ptcore.autograd import gradcheck, gradgradcheck

    x = leaf(0.3, -0.2, 0.5, 0.7)
    assert gradcheck(f, (x,))
    assert gradgradcheck(f, (x,))


def test_9_views_follow_their_base():
    x = leaf(1, 2, 3, 4)
    y = x * 1
    a, b, c = y[:2], y[1:], y.reshape(2, 2)
    old = b.grad_fn
    a.mul_(3)
    assert b.grad_fn is not old
    assert values(grad(b.sum(), x, retain_graph=True)[0]) == [0, 3, 1, 1]
    assert values(grad(c.sum(), x, retain_graph=True)[0]) == [3, 3, 1, 1]
    y.mul_(2)
    assert values(grad(a.sum(), x)[0]) == [6, 6, 0, 0]


def test_9_views_of_a_constant_get_a_history_with_it():
    base = pt.zeros(4, dtype=pt.float64)
    v = base[:2]
    assert v.is_leaf
    x = leaf(1, 2, 3, 4)
    base.add_(x)
    assert v.requires_grad
    assert not v.is_leaf
    assert values(grad(v.sum(), x)[0]) == [1, 1, 0, 0]


@pytest.mark.parametrize(
    "write",
    [
        lambda y: y[:2].zero_(),
        lambda y: y[:2].fill_(3),
        lambda y: y.__setitem__(np.s_[:2], 7),
        lambda y: y[:2].copy_(pt.ones(2)),
    ],
)
def test_10_a_constant_ends_the_history_of_what_it_overwrites(write):
    x = leaf(1, 2, 3, 4)
    y = x * 2
    write(y)
    y.sum().backward()
    assert values(x.grad) == [0, 0, 2, 2]


@pytest.mark.parametrize(
    "write",
    [
        lambda x: x.add_(1),
        lambda x: x[0].add_(1),
        lambda x: x.__setitem__(0, 1),
        lambda x: x.zero_(),
        lambda x: x.reshape(2, 1).mul_(2),
    ],
)
def test_11_leaves(write):
    x = leaf(1, 2)
    with pytest.raises(RuntimeError, match="leaf"):
        write(x)
    assert values(x) == [1, 2]
    assert x._version == 0
    with pt.no_grad():
        write(x)
    assert x._version == 1
    assert x.is_leaf
    assert x.requires_grad


@pytest.mark.parametrize("mode", [pt.no_grad, pt.inference_mode])
def test_12_views_made_without_history(mode):
    y = leaf(1, 2) * 1
    with mode():
        v = y[0]
    with pytest.raises(RuntimeError, match="no_grad"):
        v.add_(1)


def test_12_views_and_writes_both_without_history():
    x = leaf(1, 2)
    y = x * 1
    with pt.no_grad():
        y[0].add_(1)
    assert values(y) == [2, 2]
    y.sum().backward()
    assert values(x.grad) == [1, 1]


@pytest.mark.parametrize("cut", [lambda y: y.split(1), lambda y: y.split([1, 1]), lambda y: y.chunk(2),
                                 lambda y: y.unbind(), list])
def test_13_several_views_of_one_call(cut):
    y = leaf(1, 2) * 1
    with pytest.raises(RuntimeError, match="multiple views"):
        cut(y)[0].mul_(2)


@pytest.mark.parametrize("cut", [lambda y: y.split(1), lambda y: y.chunk(2), lambda y: y.unbind()])
def test_13_constants_may_be_written_through_them(cut):
    y = pt.zeros(2)
    cut(y)[1].fill_(3)
    assert values(y) == [0, 3]


def test_14_other_refusals():
    with pytest.raises(RuntimeError, match="single memory location"):
        pt.zeros(1).expand(3).add_(1)
    with pytest.raises(RuntimeError, match="shape"):
        pt.zeros(3).add_(pt.ones(2, 3))
    with pytest.raises(RuntimeError, match="cast"):
        pt.zeros(3, dtype=pt.int64).add_(1.5)
    a = np.zeros(3)
    a.flags.writeable = False
    with pytest.raises(RuntimeError, match="read-only"):
        pt.from_numpy(a).add_(1)


def test_15_inference_tensors_keep_out_of_autograd():
    with pt.inference_mode():
        c = pt.ones(2, dtype=pt.float64)
    with pytest.raises(RuntimeError, match="inference"):
        c.requires_grad_()
    with pytest.raises(RuntimeError, match="inference"):
        _ = c._version
    x = leaf(1, 2)
    (x * c.clone() + c).sum().backward()
    assert values(x.grad) == [1, 1]


@pytest.mark.parametrize("use", [lambda c: c.add_(1), lambda c: leaf(1, 2) * c])
def test_15_inference_tensors_are_not_saved_or_written(use):
    with pt.inference_mode():
        c = pt.ones(2, dtype=pt.float64)
    with pytest.raises(RuntimeError, match="inference"):
        use(c)


def test_16_detach_in_place():
    y = leaf(1, 2) * 1
    with pytest.raises(RuntimeError, match="view"):
        y[0].detach_()
    y.detach_()
    assert y.is_leaf
    assert not y.requires_grad


@pytest.mark.parametrize("asked", [False, True])
def test_16_a_view_keeps_the_history_of_its_write(asked):
    """Its base is detached after the write, whether its own node was asked for before or not."""
    x = leaf(1, 2, 3)
    y = x * 1
    older, view = y[1:], y[:2]
    view.mul_(3)
    if asked:
        assert view.grad_fn is not None
    y.detach_()
    assert view.requires_grad and not y.requires_grad
    (view * leaf(5, 7).detach()).sum().backward()
    assert x.grad.tolist() == [15, 21, 0]
    y.mul_(2)                           # without a history
    assert older.tolist() == [12, 6]
    x.grad = None
    older.sum().backward()
    assert x.grad is None


def test_17_hooks_and_retained_grads():
    x = leaf(1, 2)
    y = x * 2
    seen = []
    y.register_hook(lambda g: seen.append(values(g)))
    y.retain_grad()
    y.mul_(3)
    (y * 5).sum().backward()
    assert seen == [[15, 15]]
    assert values(y.grad) == [5, 5]


def test_15_data_of_an_inference_tensor_may_be_written():
    with pt.inference_mode():
        c = pt.ones(3)
    c.data.add_(1)
    c.detach().add_(1)
    assert c.tolist() == [3, 3, 3]
    with pytest.raises(RuntimeError, match="inference"):
        c.add_(1)


@pytest.mark.parametrize("use", [
    lambda x, i: x[i], lambda x, i: x[:, i], lambda x, i: x[i, i], lambda x, i: pt.zeros(3, 3).index_put((i,), x[:2]),
    lambda x, i: pt.zeros(3, 3).index_put((i,), x[:2], accumulate=True), lambda x, i: x.clone().index_put((i,), x[1:])])
def test_indices_written_to_before_the_backward_are_noticed(use):
    x, i = pt.eye(3, requires_grad=True), pt.tensor([0, 1])
    y = use(x, i).sum()
    y.backward(retain_graph=True)
    i[0] = 2
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


def test_indices_written_to_without_use_in_the_backward():
    x, i = pt.ones(3), pt.tensor([0, 1])
    w = pt.tensor(2.0, requires_grad=True)
    y = x[i] * w
    i.zero_()
    y.sum().backward()
    assert w.grad.tolist() == 2


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("freeze", [lambda w: w.requires_grad_(False), lambda w: w.detach_()])
def test_a_leaf_that_is_frozen_before_the_backward_gets_no_gradient(freeze, compiled):
    v, w = leaf(1, 2), leaf(3, 4)
    seen = []
    w.register_post_accumulate_grad_hook(seen.append)

    def f():
        return (v * w * w).sum()
    y = (pt.compile(f) if compiled else f)()
    freeze(w)
    y.backward()
    assert v.grad.tolist() == [9, 16] and w.grad is None and len(seen) == 1     # the hook runs, as in PyTorch
    w.requires_grad_()
    f().backward()
    assert w.grad.tolist() == [6, 16]
