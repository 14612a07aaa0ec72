"""How well-known libraries write modules: each idiom as a small program that runs with ptcore and with PyTorch."""
import copy
import functools
import inspect
import itertools
from collections import OrderedDict

import pytest
from _two_libraries import attempt, filled, same, values

import ptcore as pt

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.parity


def perceptron(m, *sizes):
    layers = [layer for pair in itertools.pairwise(sizes) for layer in (m.nn.Linear(*pair), m.nn.Tanh())]
    return filled(m, m.nn.Sequential(*layers[:-1]))


def metric(m):
    """torchmetrics: states beside the tables, wrapped methods that a copy makes again, a hash by the states."""
    class Metric(m.nn.Module):
        def __init__(self):
            super().__init__()
            self._defaults, self.updates = {}, 0
            self.update = self.counted(self.update)

        def add_state(self, name, default):
            setattr(self, name, default.clone())
            self._defaults[name] = default

        def counted(self, method):
            @functools.wraps(method)
            def wrapped(*args):
                self.updates += 1
                method(*args)
            return wrapped

        def __getstate__(self):
            return {key: value for key, value in self.__dict__.items() if key != "update"}

        def __setstate__(self, state):
            self.__dict__.update(state)
            self.update = self.counted(self.update)

        def _apply(self, fn, exclude_state=()):
            super()._apply(fn)
            for name in self._defaults:
                setattr(self, name, fn(getattr(self, name)))
            return self

        def state_dict(self, destination=None, prefix="", keep_vars=False):
            found = super().state_dict(destination=destination, prefix=prefix, keep_vars=keep_vars)
            found.update({prefix + name: getattr(self, name).detach() for name in self._defaults})
            return found

        def _load_from_state_dict(self, state, prefix, *args):
            for name in self._defaults:
                if prefix + name in state:
                    setattr(self, name, state.pop(prefix + name))
            super()._load_from_state_dict(state, prefix, *args)

        def __hash__(self):
            return hash((id(self), *[id(getattr(self, name)) for name in self._defaults]))

        def __eq__(self, other):
            return "equal", other

        def __iter__(self):
            raise NotImplementedError

        def forward(self, *args):
            self.update(*args)
            return self.compute()

    class Accuracy(Metric):
        def __init__(self):
            super().__init__()
            self.add_state("right", m.tensor(0.0))
            self.add_state("count", m.tensor(0))

        def update(self, found, wanted):
            self.right += (found == wanted).sum()
            self.count += wanted.numel()

        def compute(self):
            return self.right / self.count
    one = Accuracy()
    found = [one(m.tensor([1, 2]), m.tensor([1, 1])), one(m.tensor([1]), m.tensor([1]))]
    two = copy.deepcopy(one)
    two.update(m.tensor([0]), m.tensor([1]))
    both = m.nn.ModuleDict({"one": one, "two": two}).double()
    found += [two.compute(), one.compute(), one.updates, two.updates, both.state_dict(), one.count.dtype,
              len(list(both.modules()))]
    new = Accuracy()
    new.load_state_dict(two.state_dict())
    return found, new.compute(), str(inspect.signature(new.update))


def constraints(m):
    """GPyTorch: names that read a constrained value, hooks of states that change shapes, ``__getattr__`` twice."""
    class Base(m.nn.Module):
        def __init__(self):
            super().__init__()
            self._priors, self.strict = OrderedDict(), True
            self._register_load_state_dict_pre_hook(self.fit_shapes)

        def fit_shapes(self, state, prefix, *args):
            for name, t in itertools.chain(self.named_parameters(recurse=False), self.named_buffers(recurse=False)):
                if not self.strict and prefix + name in state:
                    t.data = t.data.expand(state[prefix + name].shape).contiguous()

        def register_prior(self, name, prior):
            self.add_module(name, prior)
            self._priors[name] = prior

        def __getattr__(self, name):
            try:
                return super().__getattr__(name)
            except AttributeError as error:
                try:
                    return super().__getattribute__(name)
                except AttributeError:
                    raise error from None

        def named_priors(self, prefix=""):
            yield from ((f"{prefix}{name}", prior) for name, prior in self._priors.items())
            for name, child in self.named_children():
                if hasattr(child, "named_priors"):
                    yield from child.named_priors(f"{prefix}{name}.")

    class Kernel(Base):
        def __init__(self):
            super().__init__()
            self.register_parameter("raw_scale", m.nn.Parameter(m.zeros(1, 1)))
            self.register_prior("prior", m.nn.Identity())

        @property
        def scale(self):
            return m.nn.functional.softplus(self.raw_scale)

        @scale.setter
        def scale(self, value):
            value = m.as_tensor(value).to(self.raw_scale)
            self.raw_scale.data.copy_((value + m.log(-m.expm1(-value))).expand_as(self.raw_scale))

        @property
        def broken(self):
            return self.absent

    class Top(Base):
        def __init__(self):
            super().__init__()
            self.kernel = Kernel()
    top = Top()
    top.kernel.scale = 1.5
    found = [top.kernel.scale, [name for name, _ in top.named_priors()], list(top.state_dict())]
    state = {key: t.expand(3, 1, 1).clone() for key, t in top.state_dict().items()}
    found.append(attempt(top.load_state_dict, state))
    top.kernel.strict = False
    found += [attempt(top.load_state_dict, state), top.kernel.raw_scale.shape, attempt(lambda: top.kernel.broken)]
    return found, copy.deepcopy(top).kernel.scale


def gradients_of_samples(m):
    """Opacus: hooks that keep activations, gradients of samples as attributes of parameters, delegated attributes."""
    class Samples(m.nn.Module):
        def __init__(self, module):
            super().__init__()
            self._module, self.handles = module, []
            for layer in module.modules():
                if isinstance(layer, m.nn.Linear):
                    self.handles += [layer.register_forward_hook(self.keep),
                                     layer.register_full_backward_hook(self.take)]

        def keep(self, layer, args, output):
            vars(layer).setdefault("activations", []).append(args[0].detach())

        def take(self, layer, grads, outs):
            back, a = outs[0].detach() * len(outs[0]), layer.activations.pop()
            layer.weight.grad_sample = m.einsum("ni,nj->nij", back, a)
            layer.bias.grad_sample = back

        def __getattr__(self, name):
            try:
                return super().__getattr__(name)
            except AttributeError:
                if name == "_module":
                    raise
                return getattr(self._module, name)

        def forward(self, *args):
            return self._module(*args)

        def state_dict(self, *args, **kwargs):
            return self._module.state_dict(*args, **kwargs)
    net = perceptron(m, 3, 4, 2)
    wrapped = Samples(net)
    wrapped(values(m, 5, 3)).pow(2).mean().backward()
    norms = m.stack([p.grad_sample.reshape(5, -1).norm(dim=-1) for p in net.parameters()]).norm(dim=0)
    found = [[p.grad_sample for p in net.parameters()], norms, list(wrapped.state_dict()),
             [name for name, _ in wrapped.named_parameters()], attempt(lambda: wrapped.absent)]
    for handle in wrapped.handles:
        handle.remove()
    for p in net.parameters():
        del p.grad_sample
    return found, hasattr(net[0].weight, "grad_sample"), [len(layer._forward_hooks) for layer in net]


def adapters(m):
    """peft: a wrapped layer with properties of the inner one; weights are merged in place and taken out again."""
    class Adapter:
        def __init__(self, inner):
            self.inner, self.a, self.b, self.merged = inner, m.nn.ModuleDict({}), m.nn.ModuleDict({}), []

        @property
        def weight(self):
            return self.inner.weight

    class Lora(m.nn.Module, Adapter):
        def __init__(self, inner, name):
            super().__init__()
            Adapter.__init__(self, inner)
            self.a.update(m.nn.ModuleDict({name: m.nn.Linear(inner.in_features, 2, bias=False)}))
            self.b[name] = m.nn.Linear(2, inner.out_features, bias=False)
            for key, p in self.named_parameters():
                p.requires_grad_(not key.startswith("inner"))

        def change(self, sign):
            for name in self.a:
                self.inner.weight.data += sign * self.b[name].weight @ self.a[name].weight

        def forward(self, x):
            found = self.inner(x)
            return found if self.merged else found + sum(self.b[name](self.a[name](x)) for name in self.a)
    net = m.nn.Sequential(m.nn.Linear(3, 3), m.nn.ReLU(), m.nn.Linear(3, 2))
    for name, layer in list(net.named_children()):
        if isinstance(layer, m.nn.Linear):
            setattr(net, name, Lora(layer, "first"))
    filled(m, net)
    net(values(m, 2, 3)).sum().backward()
    found = [[(name, p.requires_grad, p.grad) for name, p in net.named_parameters()], list(net.state_dict()), repr(net)]
    for sign in (1, -1):
        for layer in (net[0], net[2]):
            layer.change(sign)
            layer.merged = [1] * (sign > 0)
        found.append(net(values(m, 2, 3)))
    return found, net[0].weight is net[0].inner.weight, attempt(setattr, net[0], "weight", m.nn.Parameter(m.ones(1)))


def redirected_steps(m):
    """Fabric: a wrapper through which methods of the inner module call ``forward`` of the outer one."""
    class Wrapper(m.nn.Module):
        def __init__(self, module):
            super().__init__()
            self._inner = module

        def forward(self, *args):
            return self._inner(*args) * 2

        def __getattr__(self, name):
            if name == "training_step":
                return self.redirected(getattr(self._inner, name))
            try:
                return super().__getattr__(name)
            except AttributeError:
                return getattr(super().__getattr__("_inner"), name)

        def redirected(self, method):
            forward = self._inner.forward

            def once(*args):
                self._inner.forward = forward
                return method(*args)

            def call(*args):
                self._inner.forward = once
                return self.forward(*args)
            return call

        def __setattr__(self, name, value):
            if name != "_inner" and "_modules" in vars(self) and hasattr(self._inner, name):
                setattr(self._inner, name, value)
            super().__setattr__(name, value)

    class Net(m.nn.Linear):
        def training_step(self, x):
            return self.forward(x) + 1
    net = filled(m, Net(2, 1))
    outer = Wrapper(net)
    return (outer(values(m, 1, 2)), outer.training_step(values(m, 1, 2)), outer.weight, outer.in_features,
            outer.eval().training, net.training, list(outer.state_dict()),
            [name for name, _ in outer.named_parameters()])


def one_flat_parameter(m):
    """FSDP: parameters become views of one, which a hook puts in place before each call."""
    net = perceptron(m, 2, 3, 1)
    places = [(layer, name, p.shape, p.numel()) for layer in net.modules()
              for name, p in list(layer.named_parameters(recurse=False))]
    flat = m.nn.Parameter(m.cat([p.detach().reshape(-1) for p in net.parameters()]))
    for layer, name, _, _ in places:
        delattr(layer, name)
    net.register_parameter("flat", flat)

    def view(*args):
        for (layer, name, shape, _), part in zip(places, m.split(net.flat, [count for *_, count in places])):
            setattr(layer, name, part.view(shape))
    net.register_forward_pre_hook(view)
    optimizer = m.optim.SGD(net.parameters(), lr=0.1)
    found = []
    for _ in range(2):
        optimizer.zero_grad()
        found.append(net(values(m, 3, 2)))
        found[-1].sum().backward()
        optimizer.step()
    return found, flat.grad, list(net.state_dict()), [name for name, _ in net.named_parameters()]


def views_of_one_buffer(m):
    """DeepSpeed, apex: ``data`` and ``grad`` of parameters are views of two buffers."""
    net = perceptron(m, 2, 3, 1)
    ps, at = list(net.parameters()), 0
    data = m.cat([p.data.reshape(-1) for p in ps])
    grads = m.zeros_like(data)
    for p in ps:
        count = p.numel()
        p.data, p.grad = data[at:at + count].view_as(p), grads[at:at + count].view_as(p)
        at += count
    for _ in range(2):
        net(values(m, 3, 2)).sum().backward()
    found = [grads.clone(), ps[1].storage_offset(), ps[0].is_leaf]
    data.sub_(grads, alpha=0.1)
    grads.zero_()
    return found, net(values(m, 3, 2)), ps[0].grad


def clones_of_modules(m):
    """learn2learn: modules whose parameters are results of ops; second-order steps through them."""
    def clone(module):
        made = module.__new__(type(module))
        made.__dict__ = module.__dict__.copy()
        made._parameters = {key: p if p is None else p.clone() for key, p in module._parameters.items()}
        made._buffers = {key: b if b is None else b.clone() for key, b in module._buffers.items()}
        made._modules = {key: clone(child) for key, child in module._modules.items()}
        return made
    net = filled(m, m.nn.Sequential(m.nn.Linear(3, 4), m.nn.BatchNorm1d(4), m.nn.Tanh(), m.nn.Linear(4, 1)))
    calls = []
    net[2].register_forward_hook(lambda *args: calls.append(1))
    made = clone(net)
    grads = m.autograd.grad(made(values(m, 5, 3)).pow(2).mean(), list(made.parameters()), create_graph=True)
    steps = iter(grads)
    for layer in made.modules():
        for key in layer._parameters:
            layer._parameters[key] = layer._parameters[key] - 0.1 * next(steps)
    made(values(m, 5, 3, shift=1)).pow(2).mean().backward()
    return [p.grad for p in net.parameters()], net[1].running_mean, made[1].running_mean, len(calls)


def equilibrium(m):
    """Deep equilibrium models: the gradient of a fixed point by a hook that iterates ``autograd.grad``."""
    f, x = perceptron(m, 2, 2), values(m, 1, 2)
    with m.no_grad():
        z = m.zeros(1, 2)
        for _ in range(30):
            z = f(z) * 0.3 + x
    z = f(z) * 0.3 + x
    z0 = z.clone().detach().requires_grad_()
    f0 = f(z0) * 0.3 + x

    def solved(g):
        y = g
        for _ in range(30):
            y = m.autograd.grad(f0, z0, y, retain_graph=True)[0] + g
        return y
    z.register_hook(solved)
    z.sum().backward()
    return z, [p.grad for p in f.parameters()]


def two_steps_of_an_optimizer(m):
    """SAM: an optimizer that shares its groups with another, steps twice and restores ``data``."""
    class Sharp(m.optim.Optimizer):
        def __init__(self, params, base, rho=0.05, **options):
            super().__init__(params, {"rho": rho, **options})
            self.base = base(self.param_groups, **options)
            self.param_groups = self.base.param_groups
            self.defaults.update(self.base.defaults)

        @m.no_grad()
        def step(self, closure=None):
            closure = m.enable_grad()(closure)
            ps = [p for group in self.param_groups for p in group["params"]]
            norm = m.stack([p.grad.norm() for p in ps]).norm()
            for p in ps:
                self.state[p]["old"] = p.data.clone()
                p.add_(p.grad * (0.05 / norm))
            self.zero_grad()
            closure()
            for p in ps:
                p.data = self.state[p]["old"]
            self.base.step()
    net = perceptron(m, 2, 3, 1)
    optimizer = Sharp(net.parameters(), m.optim.SGD, lr=0.1, momentum=0.9)
    schedule = m.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)

    def closure():
        loss = net(values(m, 3, 2)).pow(2).sum()
        loss.backward()
        return loss
    for _ in range(3):
        closure()
        optimizer.step(closure)
        optimizer.zero_grad()
        schedule.step()
    return list(net.parameters()), optimizer.base.param_groups[0]["lr"], sorted(optimizer.state_dict()["state"][0])


def keys_of_several_words(m):
    """PyTorch Geometric: a dictionary whose keys are tuples, kept under one word."""
    class Typed(m.nn.ModuleDict):
        @staticmethod
        def inner(key):
            return f"<{'___'.join(key)}>" if isinstance(key, tuple) else key

        @staticmethod
        def outer(key):
            return tuple(key[1:-1].split("___")) if key[0] == "<" else key

        def __getitem__(self, key):
            return super().__getitem__(self.inner(key))

        def __setitem__(self, key, value):
            super().__setitem__(self.inner(key), value)

        def __contains__(self, key):
            return super().__contains__(self.inner(key))

        def keys(self):
            return [self.outer(key) for key in super().keys()]

        def items(self):
            return [(self.outer(key), value) for key, value in super().items()]
    net = Typed({"a": m.nn.ReLU()})
    net["a", "to", "b"] = m.nn.Linear(1, 1)
    net.update({("x", "y"): m.nn.Tanh()})
    return (list(net.keys()), [("a", "to", "b") in net, "b" in net], [key for key, _ in net.items()],
            list(net._modules), list(net), list(net.state_dict()), type(net["x", "y"]).__name__, len(net))


PROGRAMS = [metric, constraints, gradients_of_samples, adapters, redirected_steps, one_flat_parameter,
            views_of_one_buffer, clones_of_modules, equilibrium, two_steps_of_an_optimizer, keys_of_several_words]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_programs(program):
    same(program, pt, torch)
