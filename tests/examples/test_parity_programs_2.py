"""Programs of derivatives under both libraries: gradients of gradients, flows, writes into views, own functions."""
import math

import pytest
from program_tools import compare, data, trained, weighted, whole

pytestmark = pytest.mark.parity


def meta_learning(m):
    """The loss after three steps of gradient descent, differentiated through the steps."""
    F = m.nn.functional
    net = weighted(m, m.nn.Sequential(m.nn.Linear(3, 6), m.nn.Tanh(), m.nn.Linear(6, 1)))
    near, far = (data(m, 5, 3), data(m, 5, 1)), (data(m, 4, 3), data(m, 4, 1))

    def forward(weights, x):
        return F.linear(m.tanh(F.linear(x, *weights[:2])), *weights[2:])

    def loss(step):
        weights = list(net.parameters())
        for _ in range(3):
            error = F.mse_loss(forward(weights, near[0]), near[1])
            slopes = m.autograd.grad(error, weights, create_graph=True)
            weights = [w - 0.1 * g for w, g in zip(weights, slopes)]
        return F.smooth_l1_loss(forward(weights, far[0]), far[1], beta=0.3) + 0.01 * sum((g**2).sum() for g in slopes)
    return trained(net.parameters(), m.optim.SGD(net.parameters(), lr=0.1), loss)


def flow(m):
    """The likelihood of a normalising flow: a matrix, a scale, and a coupling of halves."""
    nn = m.nn
    mix, scale = weighted(m, nn.Linear(4, 4)), nn.Parameter(data(m, 4) * 0.1)
    net = weighted(m, nn.Sequential(nn.Linear(2, 6), nn.Tanh(), nn.Linear(6, 4)))
    parameters, x = [*mix.parameters(), scale, *net.parameters()], data(m, 9, 4)

    def loss(step):
        z, volume = mix(x) * scale.exp(), m.linalg.slogdet(mix.weight).logabsdet + scale.sum()
        a, b = z.chunk(2, -1)
        s, t = net(a).split(2, dim=-1)
        z, volume = m.cat([a, b * s.tanh().exp() + t], -1), volume + s.tanh().sum(-1)
        likelihood = -0.5 * (z**2).sum(-1) - 2 * math.log(2 * math.pi)
        spread = m.logdet(mix.weight @ mix.weight.T + m.eye(4, dtype=m.float64))
        return 0.1 * spread - (likelihood + volume).mean()
    return trained(parameters, m.optim.Adam(parameters, lr=0.01), loss)


def functions_and_hooks(m):
    """A reversed gradient, a rounding with a straight-through one, hooks that change and collect."""
    nn, F, found = m.nn, m.nn.functional, []

    class Reversed(m.autograd.Function):
        @staticmethod
        def forward(ctx, x, factor):
            ctx.factor = factor
            return x.view_as(x)

        @staticmethod
        def backward(ctx, g):
            return g.neg() * ctx.factor, None

    class Rounded(m.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.round()

        @staticmethod
        def backward(ctx, g):
            x, = ctx.saved_tensors
            return g * (x.abs() < 1)

    body, head = weighted(m, nn.Linear(3, 4)), weighted(m, nn.Sequential(nn.Linear(4, 3), nn.LogSoftmax(-1)))
    body.register_full_backward_hook(lambda module, inner, outer: found.append(outer[0]))
    handle = head[0].register_forward_pre_hook(lambda module, args: (args[0] * 2,))
    body.weight.register_hook(lambda g: g * 10)
    body.bias.register_post_accumulate_grad_hook(lambda p: found.append(p.grad.clone()))
    x, y = data(m, 5, 3).requires_grad_(), whole(m, 3, 5)
    for _ in range(2):
        h = body(x)
        h.retain_grad()
        loss = F.nll_loss(head(Reversed.apply(h, 0.5)), y) + Rounded.apply(h * 2).pow(2).mean()
        loss.backward()
        found += [loss.detach(), h.grad, x.grad.clone()]
        found += [p.grad.clone() for p in [*body.parameters(), *head.parameters()]]
        handle.remove()
    return found


WRITES = {
    "rows and columns": lambda m, x, y: [y[:, 0].add_(y[:, 1] * 2), y[1:3].mul_(x[0]), y[..., -1].fill_(0)],
    "masks and positions": lambda m, x, y: [y.__setitem__(y > 0, y[y > 0]**2),
                                            y.index_put_((m.tensor([1]),), x[3:] * 2, accumulate=True)],
    "diagonal of a transpose": lambda m, x, y: [y.t()[0].fill_(3), y.t().diagonal().add_(1)],
    "windows": lambda m, x, y: [y.view(-1)[::3].zero_(), y.unfold(1, 2, 2).mul_(2)],
    "sums and scatters": lambda m, x, y: [y.index_add_(1, m.tensor([0, 0]), x[:, :2], alpha=-1),
                                          y.scatter_(1, m.tensor([[0], [1], [2], [3]]), x[:, 4:])]}


def writes(m, name):
    x = data(m, 4, 5).requires_grad_()
    y = x * 1.5
    WRITES[name](m, x, y)
    return [y, *m.autograd.grad((y * y.detach().cos()).sum(), x)]


def overlapping(m, f):
    """Views of views whose elements share memory: each element has the gradient of its own."""
    x = data(m, 2, 3, 4).requires_grad_()
    y = f(x)
    g, = m.autograd.grad((y * y * data(m, *y.shape)).sum(), x, create_graph=True)
    return [y, g, *m.autograd.grad((g * g).sum(), x)]


@pytest.mark.parametrize("program", [meta_learning, flow, functions_and_hooks])
def test_program(program):
    compare(program)


@pytest.mark.parametrize("name", WRITES)
def test_writes_into_views(name):
    compare(writes, name)


@pytest.mark.parametrize("f", [
    lambda x: x[:1].expand(2, 3, 4).unfold(-1, 2, 1), lambda x: x[:1].expand(2, 3, 4).unfold(0, 2, 1),
    lambda x: x.unfold(1, 2, 1).unfold(1, 2, 1), lambda x: x.expand(3, 2, 3, 4).unfold(-1, 3, 2),
    lambda x: x[:1].expand(5, 3, 4).as_strided((2, 3), (4, 1)), lambda x: x.unfold(2, 3, 1).as_strided((3, 2), (1, 1)),
    lambda x: x[..., 1:].unfold(-1, 2, 1), lambda x: x.transpose(0, 2).unfold(0, 2, 2), lambda x: x.unfold(0, 0, 1)])
def test_overlapping(f):
    compare(overlapping, f)
