"""Views without history, overwritten history, inference tensors and ``.data``, with ptcore and with torch."""

import pytest
from autograd_programs import compare, leaf

pytestmark = [pytest.mark.parity, pytest.mark.core]

PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


# -- views whose history cannot follow ------------------------------------------------------


def no_grad_view(T, base):
    with T.no_grad():
        return base[:2]


@program
def no_grad_view_of_leaf_is_a_leaf(T):
    x = leaf(T)
    v = no_grad_view(T, x)
    (v * v).sum().backward()
    return v.requires_grad, v.is_leaf, v.grad, x.grad


@program
def no_grad_view_of_intermediate_is_a_leaf(T):
    v = no_grad_view(T, leaf(T) * 1)
    return v.requires_grad, v.is_leaf, v.grad_fn


@program
def no_grad_view_after_its_base_was_written(T):
    y = leaf(T) * 1
    v = no_grad_view(T, y)
    y.add_(1)
    return v.grad_fn


@program
def no_grad_view_after_its_leaf_was_written(T):
    x = leaf(T)
    v = no_grad_view(T, x)
    with T.no_grad():
        x.add_(1)
    return v * 2


@program
def no_grad_view_of_a_constant_stays_usable(T):
    x = T.zeros(4)
    v = no_grad_view(T, x)
    x.add_(1)
    v.mul_(3)
    return v.requires_grad, v.is_leaf, v, x


@program
def view_of_a_no_grad_view(T):
    y = leaf(T) * 1
    v = no_grad_view(T, y)[:1]
    return v.requires_grad, v.grad_fn is None


@program
def view_of_a_no_grad_view_written(T):
    y = leaf(T) * 1
    no_grad_view(T, y)[:1].add_(1)


@program
def view_made_before_its_base_asks_for_grad(T):
    x = T.zeros(3)
    v = x[:2]
    x.requires_grad_()
    (v * 2).sum().backward()
    return v.requires_grad, v.is_leaf, v.grad, x.grad


@program
def view_made_before_its_base_asks_for_grad_written(T):
    x = T.zeros(3)
    v = x[:2]
    x.requires_grad_()
    v.add_(1)


@program
def inference_view_of_intermediate(T):
    y = leaf(T) * 1
    with T.inference_mode():
        v = y[0]
    return v.is_inference(), v.requires_grad, v.detach().is_inference()


@program
def part_of_several_after_a_write_to_the_base(T):
    y = leaf(T) * 1
    a, _ = y.split([1, 3])
    y.add_(1)
    return a.grad_fn


@program
def part_of_several_after_an_unrecorded_write(T):
    y = leaf(T) * 1
    a = y.unbind()[0]
    with T.no_grad():
        a.add_(1)
    return a * 1


@program
def part_of_several_cut_again(T):
    (leaf(T) * 1).split(1)[0][:].add_(1)


@program
def part_of_several_made_without_grad_mode(T):
    y = leaf(T) * 1
    with T.no_grad():
        a = y.split(1)[0]
    a.add_(1)


@program
def iterated_part_written(T):
    for t in leaf(T) * 1:
        t.add_(1)


@program
def iterated_part_of_a_constant_written(T):
    x = T.zeros(3, 2)
    for i, t in enumerate(x):
        t.add_(i)
    return x


@program
def parts_read(T):
    x = leaf(T)
    a, b = (x * 1).chunk(2)
    (a * b).sum().backward()
    return x.grad


# -- constants that overwrite ---------------------------------------------------------------


def overwritten(write):
    def run(T):
        x = leaf(T)
        y = x * 2
        result = write(T, y)
        y.sum().backward()
        return x.grad, y.requires_grad, y.is_leaf, result

    return run


OVERWRITES = {
    "zero": lambda T, y: y.zero_(),
    "fill": lambda T, y: y.fill_(3),
    "copy": lambda T, y: y.copy_(T.ones(4)),
    "floor": lambda T, y: y.floor_(),
    "sign": lambda T, y: y.sign_(),
    "eq": lambda T, y: y.eq_(2),
    "part_eq": lambda T, y: y[:2].eq_(2),
    "part_floor": lambda T, y: y[1:].floor_(),
    "part_fill": lambda T, y: y[::2].fill_(2),
    "mask": lambda T, y: y.__setitem__(y > 4, 0.0),
    "index": lambda T, y: y.__setitem__([0, 2], 5.0),
    "masked_fill": lambda T, y: y.masked_fill_(y > 4, 0.0),
    "cumsum": lambda T, y: y.cumsum_(0),
    "twice": lambda T, y: y.zero_().add_(1),
}
for _name, _write in OVERWRITES.items():
    PROGRAMS[f"overwrite_{_name}"] = overwritten(_write)


@program
def overwrite_by_random_numbers(T):
    x = leaf(T)
    y = x * 2
    y.uniform_()
    y[1:].normal_()
    y.sum().backward()
    return x.grad, y.requires_grad


@program
def overwritten_history_sees_no_infinity(T):
    x = leaf(T)
    (x * 2).floor_().backward(T.full((4,), float("inf"), dtype=T.float64))
    return x.grad


@program
def out_that_requires_grad(T):
    T.add(T.ones(4), 1, out=leaf(T))


@program
def out_with_history(T):
    T.exp(T.ones(4, dtype=T.float64), out=leaf(T) * 1)


# -- inference tensors ------------------------------------------------------------------------


def inference_ones(T):
    with T.inference_mode():
        return T.ones(4, dtype=T.float64)


@program
def inference_tensor_saved_in_place(T):
    y = leaf(T) * 1
    try:
        y.mul_(inference_ones(T))
    except RuntimeError:
        return y, y._version
    return None


@program
def inference_tensor_saved_by_a_reduction(T):
    return (leaf(T) + 1).dot(inference_ones(T))


@program
def inference_tensor_in_a_sum(T):
    x = leaf(T)
    (x + inference_ones(T)).sum().backward()
    return x.grad


@program
def inference_tensor_written_under_no_grad(T):
    c = inference_ones(T)
    with T.no_grad():
        c.add_(1)


@program
def inference_tensor_assigned_to(T):
    inference_ones(T)[0] = 1.0


@program
def inference_tensor_as_out(T):
    T.add(T.ones(4, dtype=T.float64), 1, out=inference_ones(T))


@program
def inference_tensor_written_inside(T):
    c = inference_ones(T)
    with T.inference_mode():
        c.add_(1)[0] = 5.0
    return c


@program
def inference_parts_are_inference(T):
    c = inference_ones(T)
    return c[1:].is_inference(), c.detach().is_inference(), c.clone().is_inference()


@program
def real_part_in_inference_mode(T):
    z = T.ones(2, dtype=T.complex128)
    with T.inference_mode():
        return T.real(z).is_inference(), z.real.is_inference(), z.view(T.float64).is_inference()


# -- what .data counts --------------------------------------------------------------------------


@program
def data_counts_apart(T):
    x = T.ones(3)
    x.add_(1)
    d = x.data
    d.add_(1)
    e = d.detach()
    e.add_(1)
    v = d[1:]
    v.add_(1)
    return x._version, d._version, e._version, v._version, d.data._version


@program
def data_saved_then_written(T):
    w, d = leaf(T), T.ones(4, dtype=T.float64).data
    z = w * d
    d.add_(1)
    z.sum().backward()


@program
def data_saved_then_written_through_its_view(T):
    w, d = leaf(T), T.ones(4, dtype=T.float64).data
    z = w * d
    d[1:].zero_()
    z.sum().backward()


@program
def data_saved_then_the_tensor_written(T):
    w, x = leaf(T), T.ones(4, dtype=T.float64)
    z = w * x.data
    x.add_(1)
    z.sum().backward()
    return w.grad


@program
def data_of_parameter_written_by_an_op_with_out(T):
    x = leaf(T)
    z = (x * x).sum()
    T.add(x.detach(), 1, out=x.data)
    z.backward()
    return x._version, x.grad


@program
def new_data_keeps_the_version(T):
    x, y = T.ones(3), T.ones(3)
    x.add_(1)
    y.add_(1).add_(1)
    x.data = y
    before = x._version
    y.add_(1)
    x.mul_(2)
    return before, x._version, y._version, x, y


@program
def saved_leaf_with_new_data_of_another_version(T):
    x = leaf(T)
    z = (x * x).sum()
    y = T.zeros(4, dtype=T.float64)
    y.add_(7).add_(1)
    x.data = y
    z.backward()
    return x.grad


@program
def view_through_data_follows_its_own_history(T):
    d = T.zeros(4, dtype=T.float64).data
    v = d[:2]
    d.add_(leaf(T))
    return v.requires_grad, v.is_leaf, d._version, v._version


@program
def set_counts_a_write(T):
    x, y = T.ones(3), T.ones(2)
    x.resize_(5)
    y.set_(x)
    return x._version, y._version


@program
def reshape_that_copies_is_no_view(T):
    x = leaf(T)
    with T.no_grad():
        w = (x * 1).view(2, 2).t().reshape(-1)
    w.mul_(x)
    y = (x * 1).view(2, 2)
    z = y.t().reshape(-1)
    kept = z[:2]
    z.mul_(x)
    y.mul_(2)
    (w.sum() + (z * z).sum() + kept.sum() + y.sum()).backward()
    z.detach_()
    return z._base is None, z.requires_grad, kept._base is z, x.grad


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name):
    compare(PROGRAMS[name])
