"""Tensors of two devices in one call: scalars of the CPU beside tensors of a device, and who moves what."""
import copy

import numpy as np
import pytest

import ptcore
from ptcore import nn
from ptcore._errors import DeviceError


def test_a_write_to_the_cpu_brings_its_value():
    loss = ptcore.tensor(3.0, device="cuda")
    losses = ptcore.zeros(4)
    losses[1] = loss
    losses[2:] = ptcore.tensor([5.0, 6.0], device="cuda")
    assert losses.tolist() == [0, 3, 5, 6] and not losses.is_cuda
    assert ptcore.zeros(()).fill_(loss).item() == 3
    assert ptcore.zeros(2, device="cuda").fill_(loss.cpu()).tolist() == [3, 3]
    if ptcore.cuda.device_count() > 1:
        there = ptcore.zeros(2, device="cuda:1")
        there[0] = loss
        assert there.tolist() == [3, 0] and there.fill_(loss * 2).tolist() == [6, 6]
    x = ptcore.zeros(2, 3, device="cuda")
    x[0] = ptcore.ones(3)
    assert x.is_cuda and x.tolist() == [[1, 1, 1], [0, 0, 0]]
    v = ptcore.tensor(2.0, device="cuda", requires_grad=True)
    y = ptcore.zeros(3)
    y[1] = v * 2
    y.sum().backward()
    assert v.grad.is_cuda and v.grad.item() == 2


@pytest.mark.parametrize("write", [
    lambda t, x: t.add_(x), lambda t, x: t.mul_(x), lambda t, x: t.clamp_(min=x), lambda t, x: t.addcmul_(x, x),
    lambda t, x: t.lerp_(x, 0.5), lambda t, x: t.masked_fill_(x > 0, 1.0)])
def test_a_scalar_of_the_cpu_is_not_written_to_beside_a_device(write):
    total, x = ptcore.tensor(1.0), ptcore.tensor(2.0, device="cuda")
    with pytest.raises(DeviceError, match=r"cpu.*cuda|cuda.*cpu"):
        write(total, x)
    assert total.item() == 1
    ptcore.ones(3, device="cuda").add_(total)


def test_gradients_come_back_to_their_device():
    w = ptcore.ones(3, requires_grad=True)
    (w[0] * ptcore.full((4,), 2.0, device="cuda")).sum().backward()
    assert not w.grad.is_cuda and w.grad.tolist() == [8, 0, 0]
    a, x = ptcore.tensor(2.0, requires_grad=True), ptcore.tensor(3.0, device="cuda", requires_grad=True)
    for k in (1, 2):
        (a * x).backward()
        assert not a.grad.is_cuda and a.grad.item() == 3 * k
        assert x.grad.is_cuda and x.grad.item() == 2 * k
    a.data -= 0.5 * a.grad
    assert a.item() == -1
    g, = ptcore.autograd.grad((a * a * x).sum(), a, create_graph=True)
    h, = ptcore.autograd.grad(g, a)
    assert not g.is_cuda and not h.is_cuda and (g.item(), h.item()) == (-6, 6)
    b = ptcore.tensor(1.0, dtype=ptcore.float64, requires_grad=True)
    (b + ptcore.ones(5, device="cuda")).sum().backward()
    assert b.grad.dtype is ptcore.float64 and b.grad.item() == 5 and not b.grad.is_cuda
    ptcore.where(ptcore.tensor([True, False], device="cuda"), a, x).sum().backward()
    assert not a.grad.is_cuda


def test_a_gradient_of_another_device_is_refused():
    class Wrong(ptcore.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g.cuda()

    with pytest.raises(RuntimeError, match=r"gradient is on cuda:0, its tensor on cpu"):
        Wrong.apply(ptcore.ones(3, requires_grad=True)).sum().backward()


def test_data_of_a_device_goes_where_it_is_wanted():
    x = ptcore.ones(3, device="cuda")
    made = [ptcore.as_tensor(x, device="cpu"), ptcore.asarray(x, device="cpu"), ptcore.zeros(1).new_tensor(x)]
    assert [t.device.type for t in made] == ["cpu"] * 3 and all(t.tolist() == [1, 1, 1] for t in made)
    assert ptcore.as_tensor(x) is x and ptcore.as_tensor(x, device="cuda") is x
    assert ptcore.as_tensor(np.ones(2), device="cuda").is_cuda

    class Foreign:
        __cuda_array_interface__ = x.__cuda_array_interface__

    assert ptcore.as_tensor(Foreign(), device="cpu").device.type == "cpu" and ptcore.as_tensor(Foreign()).is_cuda
    for source, device in ((np.ones(2), "cuda"), (x, "cpu"), (Foreign(), "cpu")):
        with pytest.raises(ValueError, match="a copy is needed"):
            ptcore.asarray(source, device=device, copy=False)
    assert ptcore.asarray(x, device="cuda", copy=False).data_ptr() == x.data_ptr()


def test_out_of_another_device_is_refused():
    a = ptcore.ones(3, device="cuda")
    for call in (lambda out: ptcore.add(a, a, out=out), lambda out: ptcore.cumsum(a, 0, out=out),
                 lambda out: ptcore.sum(a, 0, out=out), lambda out: ptcore.stack([a, a], out=out)):
        for out in (ptcore.zeros(3), ptcore.zeros(0)):
            with pytest.raises(DeviceError):
                call(out)


def test_deep_copies_keep_what_is_shared():
    p = ptcore.zeros(10, device="cuda")
    a, b = copy.deepcopy((p, p[2:5]))
    a.fill_(1)
    assert a.is_cuda and b.tolist() == [1, 1, 1] and p.sum().item() == 0
    m = nn.Module()
    m.register_buffer("table", ptcore.zeros(3, 2, device="cuda"))
    m.register_buffer("column", m.table[:, 1])
    c = copy.deepcopy(m)
    c.table.fill_(7)
    assert c.column.tolist() == [7, 7, 7] and (m.column != 7).all()


def test_the_first_gradient_of_a_leaf_is_taken_over(launches):
    """Not copied, where nobody else has it."""
    w, x = ptcore.ones(100, device="cuda", requires_grad=True), ptcore.ones(100, device="cuda")
    root = ptcore.ones(100, device="cuda")
    y = w * x
    assert launches(lambda: y.backward(root)) == 1
    w.grad += 1
    assert x.sum().item() == root.sum().item() == 100


def test_creation_follows_the_device_of_out():
    def where(dtype=ptcore.float32, shape=(4,)):
        return ptcore.zeros(shape, dtype=dtype, device="cuda")

    for make in (lambda out: ptcore.arange(4, out=out), lambda out: ptcore.linspace(0, 3, 4, out=out),
                 lambda out: ptcore.rand(4, out=out), lambda out: ptcore.randn(4, out=out),
                 lambda out: ptcore.randint(2, 9, (4,), out=out), lambda out: ptcore.randperm(4, out=out),
                 lambda out: ptcore.normal(0.0, 1.0, (4,), out=out), lambda out: ptcore.full((4,), 3.0, out=out)):
        ptcore.manual_seed(1)
        out, host = where(), ptcore.zeros(4)
        assert make(out) is out and out.is_cuda and out.count_nonzero().item() > 1
        ptcore.manual_seed(1)
        assert out.tolist() == make(host).tolist()
    assert ptcore.eye(3, out=where(shape=(3, 3))).tolist() == ptcore.eye(3).tolist()


def on_both(write):
    """The tensor that `write` has changed, on the CPU and on a device."""
    host = ptcore.arange(20.0).reshape(4, 5)
    there = host.cuda()
    write(host, lambda x: x), write(there, lambda x: x.cuda())
    assert there.is_cuda and there.tolist() == host.tolist() and host.sum().item() != 190
    for dtype in (ptcore.float16, ptcore.int64):
        there = ptcore.arange(20, dtype=dtype, device="cuda").reshape(4, 5)
        write(there, lambda x: x.cuda())
        assert there.tolist() == host.tolist()


@pytest.mark.parametrize("value", [8, 8.0, [1, 2, 3, 4, 5], np.arange(5), ptcore.tensor(8)], ids=str)
@pytest.mark.parametrize("place", [
    [0, 2], np.array([0, 2]), ptcore.tensor([0, 2]), ptcore.tensor([True, False, True, False]), 1, slice(2)],
    ids=("list", "array", "positions", "mask", "number", "slice"))
def test_values_that_are_no_tensors_of_a_device_are_written_to_places(place, value):
    def write(x, there):
        x[there(place) if isinstance(place, ptcore.Tensor) else place] = value

    def write_from_the_cpu(x, there):
        x[place] = value
    on_both(write)
    on_both(write_from_the_cpu)


def test_scalars_and_lengths_of_the_cpu_beside_a_device():
    def masked(x, there):
        x[x > 10] = 1

    def wide_mask(x, there):
        x[x.cpu() > 10] = ptcore.tensor(1)
    where, value = ptcore.tensor([0, 2]), ptcore.tensor(3)
    on_both(masked)
    on_both(wide_mask)
    on_both(lambda x, there: x.index_put_((there(where),), value.to(x.dtype)))
    on_both(lambda x, there: x.index_put_((where,), value.to(x.dtype), accumulate=True))
    on_both(lambda x, there: x.index_fill_(0, there(where), value))
    x = ptcore.zeros(3, device="cuda").bernoulli_(ptcore.tensor([1.0, 0.0, 1.0]))
    assert x.tolist() == [1, 0, 1]
    v = ptcore.tensor(2.0, requires_grad=True)
    y = ptcore.zeros(4, 5).cuda()
    y[where] = v * 2
    y.sum().backward()
    assert not v.grad.is_cuda and v.grad.item() == 20
    with pytest.raises(DeviceError):
        y[where] = ptcore.ones(2, 5)


@pytest.mark.parametrize("padded", [True, False])
def test_lengths_and_labels_of_ctc_loss_may_be_on_the_cpu(padded):
    log_probs = ptcore.randn(6, 2, 4, generator=ptcore.Generator().manual_seed(1)).log_softmax(2)
    labels = ptcore.tensor([[1, 2], [3, 1]])
    labels = labels if padded else labels.reshape(-1)
    lengths, sizes = ptcore.tensor([6, 5]), ptcore.tensor([2, 2])
    want = nn.functional.ctc_loss(log_probs, labels, lengths, sizes).item()
    x = log_probs.cuda().requires_grad_()
    for given in ((labels, lengths, sizes), (labels.cuda(), lengths, sizes), (labels, lengths.cuda(), [2, 2]),
                  (labels.cuda(), lengths.cuda(), sizes)):
        loss = nn.functional.ctc_loss(x, *given)
        assert loss.is_cuda and loss.item() == pytest.approx(want, rel=1e-6)
        loss.backward()
