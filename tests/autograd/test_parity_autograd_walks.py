"""Backward walks, hooks and modes, with ptcore and with torch."""

import pytest
from autograd_programs import compare, leaf

pytestmark = [pytest.mark.parity, pytest.mark.core]

PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


# -- walks ------------------------------------------------------------------------------------


@program
def accumulate_twice(T):
    x = leaf(T)
    (x * x).sum().backward()
    (x * 3).sum().backward()
    return x.grad


@program
def shared_subgraph(T):
    x = leaf(T)
    y = x.exp()
    z = y * y + y
    return T.autograd.grad(z.sum(), (x, y))


@program
def several_roots(T):
    x = leaf(T)
    T.autograd.backward([(x * 2).sum(), x * x], [None, T.ones(4, dtype=T.float64)])
    return x.grad


@program
def root_twice(T):
    x = leaf(T)
    y = (x * x).sum()
    T.autograd.backward([y, y])
    return x.grad


@program
def root_and_its_input(T):
    x = leaf(T)
    y = x * 2
    z = (y * y).sum()
    return T.autograd.grad([z, y.sum()], [y, x])


@program
def leaf_root(T):
    x = T.tensor(3.0, requires_grad=True)
    x.backward()
    return x.grad


@program
def leaf_root_with_gradient(T):
    x = leaf(T)
    x.backward(T.arange(4, dtype=T.float64))
    x.backward(T.arange(4, dtype=T.float64))
    return x.grad


@program
def grad_of_itself(T):
    x = leaf(T)
    return T.autograd.grad(x.sum() * 0 + 1, x), T.autograd.grad(x, x, T.ones(4).double())


@program
def second_backward(T):
    x = leaf(T)
    y = (x * x).sum()
    y.backward()
    y.backward()


@program
def second_backward_retained(T):
    x = leaf(T)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    return x.grad


@program
def second_backward_without_saved(T):
    x = leaf(T)
    y = (x + 1).sum()
    y.backward()
    y.backward()
    return x.grad


@program
def higher_orders(T):
    x = T.tensor(2.0, dtype=T.float64, requires_grad=True)
    y = x**5
    found = []
    for _ in range(5):
        (y,) = T.autograd.grad(y, x, create_graph=True)
        found.append(y.detach())
    return found


@program
def backward_create_graph(T):
    x = leaf(T)
    (x**3).sum().backward(create_graph=True)
    g = x.grad
    x.grad = None
    g.sum().backward()
    return g.detach(), x.grad


@program
def unused(T):
    x, y = leaf(T), leaf(T)
    T.autograd.grad(x.sum(), (x, y))


@program
def unused_allowed(T):
    x, y = leaf(T), leaf(T)
    return T.autograd.grad(x.sum(), (x, y), allow_unused=True)


@program
def unused_materialized(T):
    x, y = leaf(T), leaf(T)
    return T.autograd.grad(x.sum(), (x, y), materialize_grads=True)


@program
def unused_materialized_and_differentiated(T):
    x, y = leaf(T), T.arange(3.0).requires_grad_()
    f, found = (x ** 2).sum(), []
    for _ in range(5):
        g, h = T.autograd.grad(f, (x, y), create_graph=True, materialize_grads=True)
        found += [g, h, g.requires_grad, h.requires_grad, h.is_leaf]
        f = (g ** 3).sum()
    f = x.sum()
    for _ in range(3):
        g, = T.autograd.grad(f, x, create_graph=True, materialize_grads=True)
        f = g.sum()
    return found, g, T.autograd.grad((x * 2).sum(), y, materialize_grads=True)[0].requires_grad


@program
def inputs_by_name(T):
    x, y, z = leaf(T), leaf(T), leaf(T)
    found = T.autograd.grad((x * y).sum(), {"x": x, "y": y, 3: z}, allow_unused=True)
    assert type(found) is dict
    more = T.autograd.grad(x * y, {"b": y}, T.ones(2, 4, dtype=T.float64), is_grads_batched=True)
    return list(found), list(found.values()), more["b"]


@program
def no_inputs_by_name(T):
    T.autograd.grad(leaf(T).sum(), {})


@program
def unused_materialized_but_refused(T):
    x, y = leaf(T), leaf(T)
    T.autograd.grad(x.sum(), (x, y), materialize_grads=True, allow_unused=False)


@program
def not_scalar(T):
    (leaf(T) * 2).backward()


@program
def no_history(T):
    T.ones(1).backward()


@program
def wrong_gradient_shape(T):
    (leaf(T) * 2).backward(T.ones(3, dtype=T.float64))


@program
def wrong_number_of_gradients(T):
    x = leaf(T)
    T.autograd.backward([x.sum(), x.sum()], [T.ones((), dtype=T.float64)])


@program
def input_without_grad(T):
    T.autograd.grad(leaf(T).sum(), T.ones(2))


@program
def backward_inputs(T):
    x, y = leaf(T), leaf(T)
    z = x * y
    (z * z).sum().backward(inputs=[x])
    return x.grad, y.grad


@program
def backward_inputs_intermediate(T):
    x = leaf(T)
    y = x * 2
    y.retain_grad()
    (y * y).sum().backward(inputs=[y])
    return x.grad, y.grad


@program
def backward_inputs_empty(T):
    leaf(T).sum().backward(inputs=[])


@program
def grad_outputs(T):
    x = leaf(T)
    g = T.arange(4, dtype=T.float64)
    return T.autograd.grad([x * x, x * 3], x, [g, g + 1])


@program
def grad_through_grad_outputs(T):
    x = leaf(T)
    v = leaf(T)
    (g,) = T.autograd.grad(x * x, x, v, create_graph=True)
    return T.autograd.grad(g.sum(), v)


@program
def duplicate_inputs(T):
    x = leaf(T)
    return T.autograd.grad((x * x).sum(), (x, x))


@program
def several_outputs(T):
    x = leaf(T)
    values, _ = (x * 2).reshape(2, 2).max(1)
    values.sum().backward()
    return x.grad


@program
def mixed_dtypes(T):
    x = leaf(T)
    w = T.ones(4, dtype=T.float32, requires_grad=True)
    (x * w).sum().backward()
    return x.grad, w.grad, w.grad.dtype == T.float32


@program
def broadcast(T):
    x = leaf(T)
    b = T.ones(3, 1, dtype=T.float64, requires_grad=True)
    (x * b).sum().backward()
    return x.grad, b.grad


@program
def complex_leaf_of_real_function(T):
    z = T.tensor([1 + 2j, 3 - 1j], dtype=T.complex128, requires_grad=True)
    (z * z.conj()).abs().sum().backward()
    return z.grad


@program
def retain_grad_and_hook(T):
    x = leaf(T)
    y = x * 2
    y.register_hook(lambda g: g * 10)
    y.retain_grad()
    y.sum().backward()
    return x.grad, y.grad, y.retains_grad, x.retains_grad


@program
def retain_grad_of_leaf(T):
    x = leaf(T)
    x.retain_grad()
    x.sum().backward()
    return x.grad, x.retains_grad


@program
def retain_grad_then_written(T):
    x = leaf(T)
    y = x * 2
    y.retain_grad()
    y.mul_(3)
    y.sum().backward()
    return x.grad, y.grad


@program
def hook_then_written(T):
    x = leaf(T)
    y = x * 2
    seen = []
    y.register_hook(lambda g: seen.append(g.clone()))
    y.mul_(3)
    y.sum().backward()
    return seen


@program
def leaf_hook_sums(T):
    x = leaf(T)
    seen = []
    x.register_hook(lambda g: seen.append(g.clone()))
    (x * 2 + x * x).sum().backward()
    return seen, x.grad


@program
def leaf_hook_in_grad(T):
    x = leaf(T)
    x.register_hook(lambda g: g * 2)
    return T.autograd.grad((x * x).sum(), x)


@program
def hook_order(T):
    x = leaf(T)
    seen = []
    y = x * 2
    for k in range(3):
        y.register_hook(lambda g, k=k: seen.append(k))
    handle = y.register_hook(lambda g: seen.append("gone"))
    handle.remove()
    handle.remove()
    y.sum().backward()
    return seen


@program
def hook_on_constant(T):
    T.ones(2).register_hook(print)


@program
def hook_returns_a_wrong_shape(T):
    x = leaf(T)
    y = x * 2
    y.register_hook(lambda g: T.ones(7, dtype=T.float64))
    (y * y).sum().backward()


@program
def post_accumulate_hook(T):
    x = leaf(T)
    seen = []

    def hook(t):
        seen.append(t.grad.clone())
        t.grad = None

    x.register_post_accumulate_grad_hook(hook)
    (x * 2 + x).sum().backward()
    return seen, x.grad


@program
def post_accumulate_hook_on_intermediate(T):
    (leaf(T) * 2).register_post_accumulate_grad_hook(print)


@program
def grad_setter_shape(T):
    leaf(T).grad = T.ones(3, dtype=T.float64)


@program
def grad_setter_type(T):
    leaf(T).grad = 3


@program
def grad_setter_dtype(T):
    leaf(T).grad = T.ones(4, dtype=T.float32)


@program
def prod_with_zeros(T):
    x = leaf(T, (0.0, 2.0, 3.0, 0.0))
    return T.autograd.grad(x.prod(), x), T.autograd.grad(x[:3].prod(), x)


# -- modes ----------------------------------------------------------------------------------


@program
def bare_decorators(T):
    @T.no_grad
    def f(x):
        return x * 2

    @T.no_grad()
    def g(x):
        return x * 2

    @T.enable_grad()
    def h(x):
        return x * 2

    x = leaf(T)
    with T.no_grad():
        inner = h(x).requires_grad
    return f(x).requires_grad, g(x).requires_grad, inner, T.is_grad_enabled()


@program
def set_grad_enabled_now(T):
    x = leaf(T)
    before = T.is_grad_enabled()
    T.set_grad_enabled(False)
    a = (x * 2).requires_grad
    T.set_grad_enabled(True)
    with T.set_grad_enabled(False):
        b = (x * 2).requires_grad
    return before, a, b, (x * 2).requires_grad


@program
def generator_under_no_grad(T):
    @T.no_grad()
    def steps(x):
        for _ in range(2):
            sent = yield (x * 2).requires_grad
            yield sent

    g = steps(leaf(T))
    first = next(g)
    outside = T.is_grad_enabled()
    return first, outside, g.send(5), next(g)


@program
def inference_tensor_saved(T):
    with T.inference_mode():
        c = T.ones(4, dtype=T.float64)
    return (leaf(T) * c).sum()


@program
def inference_tensor_added(T):
    with T.inference_mode():
        c = T.ones(4, dtype=T.float64)
    x = leaf(T)
    (x + c).sum().backward()
    return x.grad


@program
def inference_tensor_written(T):
    with T.inference_mode():
        c = T.ones(4, dtype=T.float64)
    c.add_(1)


@program
def inference_tensor_written_inside(T):
    with T.inference_mode():
        c = T.ones(4, dtype=T.float64)
    with T.inference_mode():
        c.add_(1)
    return c.clone(), c.is_inference(), c.clone().is_inference()


@program
def inference_tensor_requires_grad(T):
    with T.inference_mode():
        c = T.ones(4, dtype=T.float64)
    c.requires_grad_()
    return c.requires_grad


@program
def inference_tensor_version(T):
    with T.inference_mode():
        c = T.ones(4)
    return c._version


@program
def inference_of_leaf(T):
    x = leaf(T)
    with T.inference_mode():
        y = x * 2
        v = x[0]
    return (
        y.requires_grad, y.is_inference(), v.is_inference(), x.is_inference(),
        T.is_inference_mode_enabled(),
    )


@program
def inference_normal_tensor_written(T):
    x = T.ones(3)
    with T.inference_mode():
        x.add_(1)
    return x, x._version


@program
def inference_decorators(T):
    @T.inference_mode
    def f(x):
        return (x * 2).is_inference()

    @T.inference_mode()
    def g(x):
        return (x * 2).is_inference()

    @T.inference_mode(False)
    def h(x):
        return (x * 2).is_inference()

    x = leaf(T)
    return f(x), g(x), h(x)


@program
def inference_of_grad_modes(T):
    x = leaf(T)
    loss = (x * x).sum()
    with T.inference_mode():
        with T.enable_grad():
            a = x * 2
        with T.set_grad_enabled(True):
            b = x * 2
        c = T.autograd.grad(loss, x, create_graph=True)[0]
        T.set_grad_enabled(True)
        d = x * 2
    return [(y.requires_grad, y.is_inference()) for y in (a, b, c, d)], T.is_grad_enabled(), (x * 2).requires_grad


@program
def inference_false_inside(T):
    with T.inference_mode():
        with T.inference_mode(False):
            y = leaf(T) * 2
            return y.requires_grad, y.is_inference()


@program
def inference_view_of_intermediate_written_outside(T):
    y = leaf(T) * 1
    with T.inference_mode():
        v = y[0]
    v.add_(1)


# -- saved-tensor hooks -----------------------------------------------------------------------


@program
def saved_hooks(T):
    x = leaf(T)
    packed = []

    def pack(t):
        packed.append(tuple(t.shape))
        return t.detach() * 2

    with T.autograd.graph.saved_tensors_hooks(pack, lambda t: t / 2):
        y = (x * x).exp()
    y.sum().backward()
    return x.grad, sorted(packed)


@program
def saved_hooks_unpack_returns_nonsense(T):
    x = leaf(T)
    with T.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: 3):
        y = x * x
    y.sum().backward()


@program
def saved_hooks_nested(T):
    x = leaf(T)
    seen = []
    hooks = T.autograd.graph.saved_tensors_hooks
    with hooks(lambda t: seen.append(1) or t, lambda t: t):
        with hooks(lambda t: seen.append(2) or t, lambda t: t):
            y = x.exp()
        z = y.exp()
    z.sum().backward()
    return seen, x.grad


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name):
    compare(PROGRAMS[name])
