"""Small programs run under both libraries: autograd with views and in-place writes, indexing.
A program's result, or the class of its error, must be torch's."""
import math

import pytest

import ptcore as pt

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.parity


def plain(value, m):
    """Results in a form that both libraries share."""
    if isinstance(value, m.Tensor):
        return ("tensor", str(value.dtype).rpartition(".")[2], list(value.shape),
                value.detach().tolist(), value.requires_grad)
    if isinstance(value, (list, tuple)):
        return [plain(v, m) for v in value]
    return value


def outcome(program, m):
    try:
        return plain(program(m), m)
    except Exception as e:
        return e


def leaf(m, *values):
    return m.tensor([float(v) for v in values] or [1.0, 2.0, 3.0], requires_grad=True)


PROGRAMS = {}


def program(f):
    PROGRAMS[f.__name__] = f
    return f


@program
def saved_input_changed(m):
    x = leaf(m)
    y = x * 2
    z = y * y
    y.add_(1)
    z.sum().backward()


@program
def saved_output_changed(m):
    x = leaf(m)
    y = x.exp()
    y.mul_(2)
    y.sum().backward()


@program
def unsaved_output_changed(m):
    x = leaf(m)
    y = x + 1
    y.mul_(2)
    y.sum().backward()
    return x.grad


@program
def changed_through_view(m):
    x = leaf(m)
    y = x * 2
    z = y.sin()
    y[0] = 5
    z.sum().backward()


@program
def changed_through_detach(m):
    x = leaf(m)
    y = x * 2
    z = y * y
    y.detach().zero_()
    z.sum().backward()


@program
def changed_through_data(m):
    x = leaf(m)
    y = x * 2
    z = y * y
    y.data.zero_()
    z.sum().backward()
    return x.grad


@program
def leaf_refused(m):
    leaf(m).add_(1)


@program
def view_of_leaf_refused(m):
    leaf(m)[0].add_(1)


@program
def setitem_of_leaf_refused(m):
    leaf(m)[0] = 1


@program
def leaf_without_grad_mode(m):
    x = leaf(m)
    with m.no_grad():
        x.add_(1)
    return x, x._version


@program
def write_through_view(m):
    x = leaf(m)
    y = x * 1
    v = y[1:]
    v.mul_(10)
    y.sum().backward()
    return x.grad, y, v


@program
def view_after_base_changed(m):
    x = leaf(m)
    y = x * 1
    v = y[1:]
    y.mul_(3)
    v.sum().backward()
    return x.grad, v


@program
def two_views(m):
    x = leaf(m)
    y = x * 1
    a, b = y[:2], y[1:]
    a.mul_(2)
    b.mul_(5)
    (y.sum() + a.sum()).backward()
    return x.grad


@program
def view_of_view(m):
    x = m.ones(2, 3, requires_grad=True)
    y = x * 1
    y.t()[1:].select(1, 0).mul_(4)
    y.sum().backward()
    return x.grad


@program
def constant_into_view(m):
    x = leaf(m)
    y = x * 2
    y[1] = 0
    y.sum().backward()
    return x.grad


@program
def leaf_into_constant(m):
    x = leaf(m)
    y = m.zeros(5)
    y[1:4] = x * 2
    (y * y).sum().backward()
    return x.grad, y


@program
def copy_records(m):
    x = leaf(m)
    y = m.zeros(3).copy_(x)
    y.sum().backward()
    return x.grad, y


@program
def zero_forgets(m):
    x = leaf(m)
    y = (x * 2).zero_()
    y.sum().backward()
    return x.grad


@program
def fill_forgets(m):
    x = leaf(m)
    y = (x * 2).fill_(3)
    return y, y.requires_grad


@program
def unbind_view_written(m):
    x = leaf(m)
    y = x * 1
    y.unbind()[0].add_(1)


@program
def split_view_written(m):
    x = leaf(m)
    y = x * 1
    y.split(2)[0].add_(1)


@program
def no_grad_view_written(m):
    x = leaf(m)
    y = x * 1
    with m.no_grad():
        v = y[:2]
    v.mul_(2)
    return v.requires_grad


@program
def second_backward(m):
    x = leaf(m)
    y = (x * x).sum()
    y.backward()
    y.backward()


@program
def second_backward_retained(m):
    x = leaf(m)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    return x.grad


@program
def second_backward_without_saved(m):
    x = leaf(m)
    y = (x + 1).sum()
    y.backward()
    y.backward()


@program
def grad_of_grad(m):
    x = leaf(m)
    g, = m.autograd.grad((x**3).sum(), x, create_graph=True)
    h, = m.autograd.grad(g.sum(), x)
    return g, h


@program
def unused(m):
    x, y = leaf(m), leaf(m)
    return m.autograd.grad(x.sum(), [x, y])


@program
def unused_allowed(m):
    x, y = leaf(m), leaf(m)
    return m.autograd.grad(x.sum(), [x, y], allow_unused=True)


@program
def backward_inputs(m):
    x, y = leaf(m), leaf(m)
    (x * y).sum().backward(inputs=[x])
    return x.grad, y.grad


@program
def grad_of_intermediate(m):
    x = leaf(m)
    y = x * 2
    return m.autograd.grad((y * y).sum(), y)


@program
def wrong_seed(m):
    (leaf(m) * 2).backward(m.ones(2))


@program
def accumulates(m):
    x = leaf(m)
    for _ in range(3):
        (x * x).sum().backward()
    return x.grad


@program
def hooks_in_order(m):
    x = leaf(m)
    seen = []
    y = x * 2
    y.register_hook(lambda g: seen.append(("first", g.tolist())))
    y.register_hook(lambda g: g * 10)
    y.register_hook(lambda g: seen.append(("third", g.tolist())))
    y.sum().backward()
    return seen, x.grad


@program
def leaf_hook_on_sum(m):
    x = leaf(m)
    seen = []
    x.register_hook(lambda g: seen.append(g.tolist()))
    (x * x + 3 * x).sum().backward()
    return seen, x.grad


@program
def post_accumulate(m):
    x = leaf(m)
    seen = []
    x.register_post_accumulate_grad_hook(lambda t: seen.append(t.grad.tolist()))
    (x * x).sum().backward()
    return seen


@program
def removed_hook(m):
    x = leaf(m)
    handle = x.register_hook(lambda g: g * 0)
    handle.remove()
    x.sum().backward()
    return x.grad


@program
def hook_without_grad(m):
    m.ones(2).register_hook(lambda g: g)


@program
def retains(m):
    x = leaf(m)
    y = x * 2
    y.retain_grad()
    (y * y).sum().backward()
    return y.grad, x.grad, y.retains_grad, y.is_leaf


@program
def retained_before_inplace(m):
    x = leaf(m)
    y = x * 2
    y.retain_grad()
    y.mul_(3)
    y.sum().backward()
    return y.grad, x.grad


@program
def flags_of_results(m):
    x = leaf(m)
    y = x * 2
    with m.no_grad():
        z = x * 2
    return [(t.requires_grad, t.is_leaf, t.grad_fn is None)
            for t in (x, y, z, y.detach(), x > 1, x.argmax(), x[0], x.long())]


@program
def detach_shares(m):
    x = leaf(m)
    y = (x * 2).detach()
    y[0] = 9
    return y, y.requires_grad


@program
def detach_inplace(m):
    x = leaf(m)
    y = (x * 2).detach_()
    return y.requires_grad, y.is_leaf


@program
def requires_grad_of_nonleaf(m):
    (leaf(m) * 2).requires_grad_(False)


@program
def requires_grad_of_integers(m):
    m.tensor([1]).requires_grad_()


@program
def inference(m):
    x = leaf(m)
    with m.inference_mode():
        y = x * 2
    return y.requires_grad, (y + 1).requires_grad


@program
def inference_saved(m):
    x = leaf(m)
    with m.inference_mode():
        y = m.ones(3)
    (x * y).sum().backward()


@program
def max_shares(m):
    x = leaf(m, 2, 2, 1)
    x.max().backward()
    return x.grad


@program
def broadcast_gradient(m):
    x, y = m.ones(3, 1, requires_grad=True), m.ones(2, requires_grad=True)
    (x * y * 2).sum().backward()
    return x.grad, y.grad


@program
def mixed_dtypes(m):
    x = m.ones(2, dtype=m.float64, requires_grad=True)
    y = m.ones(2, requires_grad=True)
    (x * y).sum().backward()
    return x.grad, y.grad


@program
def real_beside_complex(m):
    x = leaf(m, 1, 2)
    (x * m.tensor([1 + 2j, 3j])).abs().sum().backward()
    return x.grad


@program
def complex_loss(m):
    (leaf(m) * 1j).sum().backward()


@program
def assign_grad(m):
    x = leaf(m)
    x.grad = m.ones(3)
    x.sum().backward()
    return x.grad


@program
def assign_wrong_grad(m):
    leaf(m).grad = m.ones(2)


@program
def data_setter(m):
    x = leaf(m)
    x.data = m.zeros(2)
    return x


@program
def versions(m):
    x = m.zeros(3)
    v = x[1:]
    seen = [x._version]
    v.add_(1)
    seen.append(x._version)
    x.detach().mul_(2)
    seen.append(v._version)
    x.data.add_(1)
    seen.append(x._version)
    x.copy_(m.ones(3))
    x[0] = 2
    return seen, x._version


@program
def iterate(m):
    return [t for t in m.arange(6).reshape(3, 2)]


@program
def setitem_broadcast(m):
    x = m.zeros(2, 3)
    x[:, 1] = m.tensor([1.0, 2.0])
    x[0] = 7
    x[1, 1:] = m.tensor(5)
    return x


@program
def setitem_casts(m):
    x = m.zeros(3, dtype=m.int64)
    x[0] = 2.9
    x[1] = m.tensor(3.9)
    return x


@program
def mixed_index(m):
    x = m.arange(24).reshape(2, 3, 4)
    i = m.tensor([0, 1])
    return [x[i, :, i], x[:, i, i], x[i, 0], x[0, i], x[0, :, i], x[..., i], x[None, i, ..., 0],
            x[i[:, None], i], x[x > 20], x[m.tensor([True, False])], x[:, m.tensor([True, False, True])],
            x[True], x[False], x[[0, 1], [1, 2]], x[m.tensor(1)], x[1, m.tensor(2)]]


@program
def advanced_write(m):
    x = m.zeros(3, 3)
    x[m.tensor([0, 2]), m.tensor([1, 1])] = m.tensor([5.0, 6.0])
    x[m.tensor([1])] += 1
    x[x == 0] = -1
    return x


@program
def index_gradients(m):
    x = m.arange(6.0).reshape(2, 3).requires_grad_()
    (x[m.tensor([0, 0, 1]), m.tensor([1, 1, 2])] * m.tensor([1.0, 2.0, 3.0])).sum().backward()
    return x.grad


@program
def augmented_view(m):
    x = m.zeros(4)
    x[1:3] += m.tensor([1.0, 2.0])
    x[0] -= 1
    return x, x._version > 0


@program
def python_numbers(m):
    x = m.tensor([7])
    return [int(x), float(x), bool(x), x.item(), hash(x) == hash(x), f"{x.item():.1f}",
            5 - x, 2 / x, 2**x, 10 // x, 10 % x, x // 2, -x, abs(-x), ~x, x << 1, 3 & x, 1 | x]


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name):
    want, got = outcome(PROGRAMS[name], torch), outcome(PROGRAMS[name], pt)
    if isinstance(want, Exception):
        assert isinstance(got, type(want)), f"torch: {want!r}; here: {got!r}"
    else:
        assert not isinstance(got, Exception), f"raises {got!r}, torch gives {want}"
        assert close(got, want), f"{got}\n!= {want}"


def close(a, b):
    if isinstance(a, (list, tuple)):
        return isinstance(b, (list, tuple)) and len(a) == len(b) and all(map(close, a, b))
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=1e-5, abs_tol=1e-7) or (a != a and b != b)
    if isinstance(a, complex):
        return abs(a - b) < 1e-5
    return a == b
