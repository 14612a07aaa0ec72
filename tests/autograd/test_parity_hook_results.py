"""What hooks of tensors, nodes, leaves and modules may return."""
import pytest
from _two_libraries import attempt, filled, same, values

import ptcore as pt

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.parity

RESULTS = {"double": lambda m, g: g.double(), "half": lambda m, g: g.half(), "fewer": lambda m, g: g[:0],
           "flat": lambda m, g: g.reshape(-1), "sum": lambda m, g: g.sum(), "int": lambda m, g: g.long(),
           "more": lambda m, g: g.expand(3, *g.shape), "number": lambda m, g: 3.0, "list": lambda m, g: [g],
           "complex": lambda m, g: g.to(m.complex64), "tuple": lambda m, g: (g,), "false": lambda m, g: False,
           "none": lambda m, g: None, "twice": lambda m, g: g * 2}


def of_tensor(m, result):
    x = m.ones(2, 2, requires_grad=True)
    y = x * 2
    y.register_hook(result)
    y.sum().backward()
    return x.grad


def of_leaf(m, result):
    x = m.ones(2, 2, requires_grad=True)
    x.register_hook(result)
    (x * 2).sum().backward()
    return x.grad


def of_node(m, result):
    x, y = m.ones(2, 2, requires_grad=True), m.ones(2, requires_grad=True)
    z = x * y
    z.grad_fn.register_hook(lambda grads, outs: (result(grads[0]), *grads[1:]))
    z.sum().backward()
    return x.grad, y.grad


def before_node(m, result):
    x = m.ones(2, 2, requires_grad=True)
    y = x * 2
    y.grad_fn.register_prehook(lambda outs: (result(outs[0]),))
    (y * 3).sum().backward()
    return x.grad


def before_accumulation(m, result):
    x = m.ones(2, 2, requires_grad=True)
    end = (x * 2).grad_fn.next_functions[0][0]
    end.register_prehook(lambda outs: (result(outs[0]),))
    (x * 2).sum().backward()
    return x.grad


def after_accumulation(m, result):
    x = m.ones(2, 2, requires_grad=True)
    x.register_post_accumulate_grad_hook(lambda leaf: result(leaf.grad))
    (x * 2).sum().backward()
    return x.grad


def of_module(m, result):
    net = filled(m, m.nn.Linear(2, 2))
    net.register_full_backward_hook(lambda module, grads, outs: (result(grads[0]),))
    x = values(m, 2, 2).requires_grad_()
    net(x * 2).sum().backward()
    return x.grad, net.weight.grad


def before_module(m, result):
    net = filled(m, m.nn.Linear(2, 2))
    net.register_full_backward_pre_hook(lambda module, outs: (result(outs[0]),))
    x = values(m, 2, 2).requires_grad_()
    net(x * 2).sum().backward()
    return x.grad, net.weight.grad


@pytest.mark.parametrize("place", [of_tensor, of_leaf, of_node, before_node, before_accumulation, after_accumulation,
                                   of_module, before_module], ids=lambda f: f.__name__)
@pytest.mark.parametrize("name", RESULTS)
def test_results(place, name):
    def program(m):
        return [attempt(place, m, lambda g: RESULTS[name](m, g))]
    same(program, pt, torch)


def tuples_of_other_lengths(m):
    found = []
    for result in (lambda g: (g[0],), lambda g: g[0], lambda g: (None, g[1]), lambda g: g + g, lambda g: [*g],
                   lambda g: (), lambda g: (g[0], None)):
        x, w = m.ones(2, requires_grad=True), m.ones(2, requires_grad=True)
        y = x * w
        y.grad_fn.register_hook(lambda grads, outs, result=result: result(grads))
        found.append((attempt(y.sum().backward), x.grad, w.grad))
    return found


def gradients_in_place_of_none(m):
    x, y = m.ones(2, requires_grad=True), m.ones(2)
    z = x * y
    z.grad_fn.register_hook(lambda grads, outs: (grads[0], m.ones(2)))
    first = attempt(z.sum().backward), x.grad
    net = m.nn.Identity()
    net.forward = lambda a, b: (a * 2, b * 3)
    net.register_full_backward_pre_hook(lambda module, outs: (outs[0], m.ones(2)))
    a, b = m.ones(2, requires_grad=True), m.ones(2, requires_grad=True)
    return first, attempt(net(a, b)[0].sum().backward), a.grad, b.grad


def gradients_are_reduced(m):
    """A hook of a node sees gradients of the sizes and dtypes of its inputs."""
    found = []
    for f, one, two in ((m.mul, (1,), (3,)), (m.add, (2, 1), (3,)), (m.div, (1,), (2, 2)), (m.sub, (3,), (2, 3))):
        a, b = m.ones(one, requires_grad=True), m.ones(two, dtype=m.float64, requires_grad=True)
        y = f(a, b)

        def hook(grads, outs):
            found.append([(tuple(g.shape), g.dtype) for g in grads])
            return tuple(g * 2 for g in grads)
        y.grad_fn.register_hook(hook)
        y.sum().backward()
        found.append((a.grad, b.grad))
    return found


def unused_outputs(m):
    seen, net = [], m.nn.Identity()
    net.forward = lambda a, b: (a * 2, b * 3)
    net.register_full_backward_hook(lambda module, grads, outs: seen.append((grads, outs)))
    net.register_full_backward_pre_hook(lambda module, outs: seen.append(outs))
    a, b = m.ones(2, requires_grad=True), m.ones(2, requires_grad=True)
    net(a, b)[0].sum().backward()
    return seen, a.grad, b.grad


@pytest.mark.parametrize("program", [tuples_of_other_lengths, gradients_in_place_of_none, gradients_are_reduced,
                                     unused_outputs], ids=lambda f: f.__name__)
def test_programs(program):
    same(program, pt, torch)


# -- how many gradients the hooks of a node see ---------------------------------------------------------------

def custom(m, x):
    class Two(m.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            indices = x.argsort()
            ctx.mark_non_differentiable(indices)
            return x * 2, indices

        @staticmethod
        def backward(ctx, g, unused):
            return g * 2
    return Two.apply(x)[0]


def functional(name, *args, **options):
    return lambda m, x: getattr(m.nn.functional, name)(x, *args, **options)


NODES = {
    "layer_norm": functional("layer_norm", (4,)), "max_pool": functional("max_pool1d", 2),
    "dropout": functional("dropout", 0.5), "adaptive_max_pool": functional("adaptive_max_pool1d", 2),
    "batch_norm": lambda m, x: m.nn.BatchNorm1d(4)(x), "evaluated": lambda m, x: m.nn.BatchNorm1d(4).eval()(x),
    "cross_entropy": lambda m, x: m.nn.functional.cross_entropy(x, m.tensor([0, 1, 2])),
    "nll_loss": lambda m, x: m.nn.functional.nll_loss(x, m.tensor([0, 1, 2])),
    "max": lambda m, x: x.max(1).values, "sort": lambda m, x: x.sort(1)[0], "topk": lambda m, x: x.topk(2)[0],
    "median": lambda m, x: x.median(1)[0], "mode": lambda m, x: x.mode(1)[0], "split": lambda m, x: x.split(2, 1)[1],
    "kthvalue": lambda m, x: x.kthvalue(1)[0], "cummax": lambda m, x: x.cummax(1)[0],
    "lu_factor": lambda m, x: m.linalg.lu_factor(x[:, :3])[0], "svd": lambda m, x: m.linalg.svd(x, False)[1],
    "linear": lambda m, x: m.nn.Linear(4, 2)(x), "custom": custom}


@pytest.mark.parametrize("name", NODES)
def test_numbers_of_gradients(name):
    def program(m):
        x = values(m, 3, 4).requires_grad_()
        seen = []

        def before(outs):
            seen.append([g is not None for g in outs])
            return tuple(None if g is None else g * 2 for g in outs)
        y = NODES[name](m, x)
        y.grad_fn.register_prehook(before)
        y.grad_fn.register_hook(lambda grads, outs: seen.append([g is not None for g in outs]))
        y.sum().backward()
        return seen, x.grad if name in ("max", "sort", "topk", "layer_norm", "batch_norm", "custom", "nll_loss") else 0
    same(program, pt, torch)
