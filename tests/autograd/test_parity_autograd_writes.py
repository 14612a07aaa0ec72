"""Writes, views and versions, with ptcore and with torch."""

import pytest
from autograd_programs import compare, leaf, square

pytestmark = [pytest.mark.parity, pytest.mark.core]

PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


# -- writes and views -----------------------------------------------------------------------


@program
def write_to_intermediate(T):
    x = leaf(T)
    y = x * 2
    y.mul_(x)
    y.sum().backward()
    return x.grad, y.is_leaf, y._version


@program
def write_to_leaf(T):
    leaf(T).add_(1)


@program
def write_to_view_of_leaf(T):
    leaf(T)[0].add_(1)


@program
def assign_to_leaf(T):
    leaf(T)[0] = 1.0


@program
def write_to_leaf_without_grad_mode(T):
    x = leaf(T)
    with T.no_grad():
        x.add_(1)
    return x.detach(), x.requires_grad, x.is_leaf


@program
def write_to_view_of_leaf_without_grad_mode(T):
    x = leaf(T)
    with T.no_grad():
        x[1:].zero_()
    (x * x).sum().backward()
    return x.detach(), x.grad


@program
def write_to_no_grad_view_in_grad_mode(T):
    x = leaf(T)
    with T.no_grad():
        v = x[0]
    v.add_(1)


@program
def write_to_no_grad_view_of_intermediate(T):
    y = leaf(T) * 1
    with T.no_grad():
        v = y[0]
    v.mul_(2)


@program
def write_to_no_grad_view_of_constant(T):
    x = T.zeros(3, dtype=T.float64)
    with T.no_grad():
        v = x[:2]
    v.copy_(leaf(T)[:2])
    return x.requires_grad


@program
def write_through_view(T):
    x = leaf(T)
    y = x * 1
    v = y[1:3]
    v.mul_(5)
    (y * y).sum().backward()
    return x.grad, y.detach(), v.detach()


@program
def write_through_view_of_view(T):
    x = leaf(T)
    y = (x * 1).reshape(2, 2)
    y.t()[0].mul_(3)
    (y * T.arange(4, dtype=T.float64).reshape(2, 2)).sum().backward()
    return x.grad


@program
def write_a_variable_through_a_view_of_a_constant(T):
    x = leaf(T)
    base = T.zeros(3, 4, dtype=T.float64)
    base[1] = x * 2
    base[2].copy_(x)
    (base * base).sum().backward()
    return x.grad, base.requires_grad, base.is_leaf


@program
def view_after_write_to_base(T):
    x = leaf(T)
    y = x * 1
    v = y[:2]
    y.mul_(3)
    v.sum().backward()
    return x.grad, v.detach(), v._version, y._version


@program
def view_before_and_base_overwritten(T):
    x = leaf(T)
    y = x * 1
    v = y[:2]
    y.zero_()
    return v.requires_grad, y.requires_grad


@program
def sibling_views(T):
    x = leaf(T)
    y = x * 1
    a, b = y[:3], y[1:]
    a.mul_(2)
    b.sum().backward()
    return x.grad


@program
def sibling_views_both_written(T):
    x = leaf(T)
    y = x * 1
    a, b = y[:3], y[1:]
    a.mul_(2)
    b.mul_(x[1:])
    (a.sum() + y.sum()).backward()
    return x.grad


@program
def requires_grad_reaches_views_of_constants(T):
    x = leaf(T)
    base = T.zeros(4, dtype=T.float64)
    v = base[:2]
    before = v.requires_grad
    base.add_(x)
    return before, v.requires_grad, v.is_leaf


@program
def transposed_write(T):
    x = square(T)
    y = x * 1
    y.t().mul_(T.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=T.float64))
    g = T.autograd.grad((y * y).sum(), x)
    return g


@program
def expanded_write(T):
    y = (leaf(T) * 1).reshape(1, 4).expand(2, 4)
    y.mul_(2)


@program
def diagonal_write(T):
    x = leaf(T)
    y = x.reshape(2, 2) * 1
    y.diagonal().mul_(x[:2])
    (y * y).sum().backward()
    return x.grad


@program
def fill_diagonal_zero(T):
    x = leaf(T)
    y = x.reshape(2, 2) * 2
    y.diagonal().zero_()
    y.sum().backward()
    return x.grad


@program
def fill_zero(T):
    x = leaf(T)
    y = x * 2
    y.zero_()
    (y + x).sum().backward()
    return x.grad, y.requires_grad


@program
def fill_part(T):
    x = leaf(T)
    y = x * 2
    y[:2] = 7.0
    y.sum().backward()
    return x.grad


@program
def copy_constant(T):
    x = leaf(T)
    y = x * 2
    y[1:].copy_(T.ones(3, dtype=T.float64))
    y.sum().backward()
    return x.grad


@program
def unbound_views_refuse_writes(T):
    y = leaf(T) * 1
    a, _b, _c, _d = y.unbind(0)
    a.mul_(2)


@program
def split_views_refuse_writes(T):
    y = leaf(T) * 1
    a, _b = y.split(2)
    a.mul_(2)


@program
def chunk_views_refuse_writes(T):
    y = leaf(T) * 1
    a, _b = y.chunk(2)
    a.zero_()


@program
def chunk_views_of_constant_take_constants(T):
    y = T.zeros(4, dtype=T.float64)
    a, _b = y.chunk(2)
    a.fill_(3)
    return y


@program
def saved_then_written(T):
    x = leaf(T)
    y = x * 1
    z = y * y
    y.add_(1)
    z.sum().backward()


@program
def saved_constant_then_written(T):
    x = leaf(T)
    w = T.ones(4, dtype=T.float64)
    z = x * w
    w.add_(1)
    z.sum().backward()


@program
def saved_then_written_through_view(T):
    x = leaf(T)
    y = x * 1
    z = y.exp()
    z[0] = 0
    z.sum().backward()


@program
def saved_output_then_written(T):
    x = leaf(T)
    y = x.exp()
    y.mul_(2)
    y.sum().backward()


@program
def saved_shape_only(T):
    x = leaf(T)
    y = x * 1
    z = y.sum()
    y.zero_()
    z.backward()
    return x.grad


@program
def saved_then_written_without_grad_mode(T):
    x = leaf(T)
    z = x * x
    with T.no_grad():
        x.add_(1)
    z.sum().backward()


@program
def saved_then_written_by_data(T):
    x = leaf(T)
    z = x * x
    x.data.add_(1)
    z.sum().backward()
    return x.grad, x._version


@program
def saved_then_written_by_detach(T):
    x = leaf(T)
    z = x * x
    x.detach().add_(1)
    z.sum().backward()


@program
def saved_then_data_replaced(T):
    x = leaf(T)
    z = x * x
    x.data = T.zeros(4, dtype=T.float64)
    z.sum().backward()
    return x.grad


@program
def data_shares_memory(T):
    x = leaf(T)
    d = x.data
    d[0] = 7
    return x.detach(), d.requires_grad, d.is_leaf, x.data_ptr() == d.data_ptr()


@program
def versions(T):
    x = T.zeros(4)
    seen = [x._version]
    x.add_(1)
    seen.append(x._version)
    x[0] = 1
    seen.append(x._version)
    v = x[1:]
    v.mul_(2)
    seen += [x._version, v._version]
    x.detach().zero_()
    seen.append(x._version)
    x.data.zero_()
    seen.append(x._version)
    return seen


@program
def relu_in_place(T):
    x = leaf(T, (-1.0, 2.0, -3.0, 4.0))
    y = x * 1
    y.relu_()
    y.mul_(x)
    y.sum().backward()
    return x.grad


@program
def in_place_on_saved_input_of_itself(T):
    x = leaf(T)
    y = x * 1
    y.pow_(2)
    y.sum().backward()
    return x.grad


@program
def in_place_shape_change(T):
    (leaf(T) * 1).add_(T.ones(3, 4, dtype=T.float64))


@program
def in_place_dtype_change(T):
    T.zeros(3, dtype=T.int64).add_(1.5)


@program
def masked_assign(T):
    x = leaf(T)
    y = x * 2
    y[T.tensor([True, False, True, False])] = 0.0
    y.sum().backward()
    return x.grad


@program
def indexed_assign_of_variable(T):
    x = leaf(T)
    y = T.zeros(4, dtype=T.float64)
    y[T.tensor([2, 0])] = x[:2]
    (y * y).sum().backward()
    return x.grad


@program
def double_backward_through_view_write(T):
    x = leaf(T)
    y = x * x
    y[1:3].mul_(x[:2])
    (g,) = T.autograd.grad((y * y).sum(), x, create_graph=True)
    (gg,) = T.autograd.grad(g.sum(), x)
    return g, gg


@program
def detach_in_place(T):
    x = leaf(T)
    y = x * 2
    y.detach_()
    return y.requires_grad, y.is_leaf


@program
def detach_in_place_of_a_written_base(T):
    """A view that is older than the write to the base has no history when the base has none."""
    x = leaf(T)
    y = x * 1
    view, other = y[1:], y[2:]
    y.mul_(x)
    y.detach_()
    out = (view * view).sum() + (other * x[2:]).sum()
    out.backward()
    return view.requires_grad, view.is_leaf, x.grad


@program
def hooks_pack_operands_before_the_write(T):
    """What a hook copies of an operand in the memory that is written to is its value before."""
    result = []
    for write in (lambda y: y.mul_(y), lambda y: y.mul_(y.detach()), lambda y: y.mul_(y.reshape(-1)[:]),
                  lambda y: y[:2].div_(y[1:3] + 2), lambda y: y[:2].mul_(y[:2].view(2)),
                  lambda y: y.addcmul_(y, y), lambda y: y.atan2_(y.view_as(y))):
        x = leaf(T)
        y = x * 1
        with T.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
            write(y)
        (y * y).sum().backward()
        result.append(x.grad)
    return result


@program
def detach_in_place_of_view(T):
    y = leaf(T) * 2
    y[0].detach_()


@program
def requires_grad_of_intermediate(T):
    (leaf(T) * 2).requires_grad = False


@program
def requires_grad_of_integers(T):
    T.ones(2, dtype=T.int64).requires_grad_()


@program
def view_of_leaf_made_leaf(T):
    x = T.ones(4, dtype=T.float64)
    v = x[:2]
    v.requires_grad_()
    (v * v).sum().backward()
    return v.grad, v.is_leaf, x.requires_grad


@program
def written_base_of_a_leaf_view(T):
    x = T.ones(4, dtype=T.float64)
    v = x[:2]
    v.requires_grad_()
    v.add_(1)


@program
def write_through_a_view_of_a_leaf_view(T):
    x = T.ones(4, dtype=T.float64).view(2, 2)
    x.requires_grad_()
    x[0].mul_(2)


@program
def diagonal_of_a_leaf_view(T):
    x = T.ones(4, dtype=T.float64).view(2, 2)
    x.requires_grad_()
    x.fill_diagonal_(3)


@program
def variables_into_integers(T):
    x = leaf(T) * 2
    number, mask, part = T.zeros(4, dtype=T.int64), T.zeros(4, dtype=T.bool), T.zeros(4, dtype=T.int32)
    number.copy_(x)
    mask.view(2, 2).copy_(x.view(2, 2))
    part[1:] = x[1:]
    part[0] = x[0]
    return [(t.requires_grad, t.grad_fn is None, t.numpy().tolist()) for t in (number, mask, part)]


@program
def copy_between_dtypes(T):
    x = leaf(T)
    y = T.zeros(4, dtype=T.float32)
    y.copy_(x * x)
    y.sum().backward()
    return x.grad, x.grad.dtype == T.float64


@program
def write_with_out(T):
    T.add(leaf(T), 1, out=T.zeros(4, dtype=T.float64))


@program
def grad_mode_of_swap(T):
    x = leaf(T)
    y = x * 2
    with T.no_grad():
        y.mul_(3)
    y.sum().backward()
    return x.grad


# -- complex numbers through their parts, and pairs of reals as complex numbers ---------------


def plane(T):
    return T.tensor([[1 + 2j, 3 - 1j], [0.5j, -2 + 1j]], dtype=T.complex128, requires_grad=True)


def two_orders(T, written, *leaves):
    first = T.autograd.grad((written * written.conj()).real.pow(2).sum(), leaves, create_graph=True)
    return first, T.autograd.grad(sum((g * g.conj()).real.sum() for g in first), leaves)


@program
def write_to_real_parts(T):
    z, x = plane(T), square(T)
    y = z * 1
    y.real.mul_(x)
    y.imag[0] = x[1]
    return y, two_orders(T, y, z, x)


@program
def write_to_real_parts_of_transposed(T):
    z, x = plane(T), square(T)
    y = z.t() * (1 + 1j)
    y[:, 1].imag.copy_(x[0])
    y.t()[1:].real += x[0] * y.imag[:, 0]
    return y, two_orders(T, y, z, x)


@program
def write_to_pairs(T):
    z, x = plane(T), square(T)
    y = z * 1
    T.view_as_real(y)[..., 1].mul_(x.sin())
    T.view_as_real(y[1])[0] = x[1]
    return y, two_orders(T, y, z, x)


@program
def write_of_complex_numbers_to_pairs(T):
    z, x = plane(T), square(T)
    y = x * 1
    T.view_as_complex(y).mul_(z[0])
    T.view_as_complex(y)[0] += z[1, 1]
    return y, two_orders(T, y, z, x)


@program
def constants_become_parts(T):
    x = square(T)
    y = T.zeros(2, 2, dtype=T.complex128)
    y.real = x
    y.imag = x * x
    return y, two_orders(T, y, x)


@program
def views_follow_writes_to_parts(T):
    z, x = plane(T), square(T)
    y = z * 1
    parts, row, pairs = y.imag, y[1], T.view_as_real(y)[0, :, 0]
    y.real.mul_(x)
    y.mul_(2j)
    parts.add_(x[0])
    return parts, row, pairs, [two_orders(T, v, z, x) for v in (parts, row, pairs)]


@program
def complex_views_follow_writes(T):
    x = square(T)
    y = x * 1
    numbers, late = T.view_as_complex(y), T.view_as_complex(y)[1:]
    y[0].mul_(x[1])
    numbers.mul_(1j)
    return y, two_orders(T, numbers, x), two_orders(T, late, x)


@program
def write_to_parts_of_leaf(T):
    plane(T).real.mul_(2)


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name):
    compare(PROGRAMS[name])
