"""Modules that programs write in unusual ways: what is overridden, what containers call, what a call replaces."""
import importlib

import pytest
from _two_libraries import Failed, attempt, filled, same, values

import ptcore as pt

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.parity


# -- methods that subclasses override ------------------------------------------------------------------

def check_of_norms(m):
    base, seen = m.nn.modules.batchnorm._BatchNorm, []

    class Any(base):
        def _check_input_dim(self, x):
            seen.append(x.dim())

    class Without(base):
        pass

    class Three(m.nn.BatchNorm2d):
        def _check_input_dim(self, x):
            super()._check_input_dim(x.unsqueeze(-1))

    class Instance(m.nn.InstanceNorm2d):
        def _check_input_dim(self, x):
            seen.append(x.dim())
    return (Any(2)(values(m, 3, 2, 2, 2)), attempt(Without(2), values(m, 3, 2)), Three(2)(values(m, 3, 2, 4)),
            attempt(Three(2), values(m, 3, 2)), Instance(2)(values(m, 1, 2, 3, 4)), Instance(2)(values(m, 2, 3, 4)),
            attempt(Instance(2, affine=True), values(m, 1, 3, 3, 4)), seen)


def weights_of_convolutions(m):
    class Doubled(m.nn.Conv1d):
        def _conv_forward(self, x, weight, bias):
            return super()._conv_forward(x, weight * 2, None if bias is None else bias * 0)
    layer = filled(m, Doubled(2, 2, 2, padding=1, padding_mode="circular"))
    return layer(values(m, 1, 2, 4)), layer._conv_forward(values(m, 1, 2, 4), layer.weight, None)


def derived_from_the_base_of_convolutions(m):
    conv = m.nn.modules.conv

    class Standardised(conv._ConvNd):
        def __init__(self, inputs, outputs, size, **options):
            super().__init__(inputs, outputs, (size,) * 2, (1, 1), (1, 0), (1, 1), False, (0, 0), 1, True, "zeros",
                             **options)

        def forward(self, x):
            weight = self.weight - self.weight.mean((1, 2, 3), keepdim=True)
            return m.nn.functional.conv2d(x, weight, self.bias, self.stride, self.padding, self.dilation, self.groups)

    class Spread(conv._ConvTransposeNd):
        def __init__(self, padding_mode="zeros"):
            super().__init__(2, 3, (2, 2), (1, 1), (0, 0), (1, 1), True, (0, 0), 1, True, padding_mode)

        def forward(self, x):
            return m.nn.functional.conv_transpose2d(x, self.weight, self.bias)
    one, two = filled(m, Standardised(2, 3, 2)), filled(m, Spread())
    return (one(values(m, 1, 2, 3, 3)), two(values(m, 1, 2, 3, 3)), repr(one), repr(two), attempt(Spread, "reflect"),
            one._reversed_padding_repeated_twice, Standardised(1, 1, 1, dtype=m.float64).weight.dtype,
            [isinstance(x, conv._ConvTransposeNd) for x in (m.nn.ConvTranspose1d(1, 1, 1), m.nn.Conv1d(1, 1, 1), two)])


def prefixes_of_metadata(m):
    state = m.nn.Sequential(m.nn.Linear(1, 1)).state_dict(prefix="module.")
    m.nn.modules.utils.consume_prefix_in_state_dict_if_present(state, "module.")
    return list(state), list(state._metadata)


def single_values(m):
    shapes = (((1, 1), 1), ((1, 2), 1), ((1, 4, 1, 1), 2), ((1, 4, 1, 1), 4), ((2, 2, 1), 2), ((0, 2), 2))
    return [attempt(m.nn.functional.group_norm, m.ones(shape), groups) for shape, groups in shapes]


def training_as_property(m):
    class Net(m.nn.Module):
        @property
        def training(self):
            return vars(self).get("mode", "none")

        @training.setter
        def training(self, value):
            vars(self)["mode"] = value
    net = Net()
    seen = [net.training, "training" in vars(net)]
    net.eval()
    return seen, net.training


def rates_within_step(m):
    """The idiom of schedulers that programs write."""
    seen = []

    class Rates(m.optim.lr_scheduler.LRScheduler):
        def get_lr(self):
            seen.append(self._get_lr_called_within_step)
            return [0.5 ** self.last_epoch for _ in self.base_lrs]
    optimizer = m.optim.SGD([m.nn.Parameter(m.ones(1))], lr=1.0)
    schedule = Rates(optimizer)
    optimizer.step()
    schedule.step()
    schedule.get_lr()
    return seen, optimizer.param_groups[0]["lr"]


# -- containers --------------------------------------------------------------------------------------------

def sequence_in_another_order(m):
    class Reversed(m.nn.Sequential):
        def __iter__(self):
            return reversed(list(self._modules.values()))
    net = Reversed(filled(m, m.nn.Linear(1, 1)), m.nn.Tanh())
    return net(m.full((1, 1), 2.0))


def methods_that_containers_call(m):
    seen = []

    class List(m.nn.ModuleList):
        def append(self, module):
            seen.append("append")
            return super().append(module)

        def add_module(self, name, module):
            seen.append(name)
            super().add_module(name, module)

    class Line(m.nn.Sequential):
        def append(self, module):
            seen.append("append")
            return super().append(module)
    layers = List([m.nn.ReLU()])
    layers.extend([m.nn.ReLU()])
    layers += [m.nn.ReLU()]
    layers.append(m.nn.Tanh())
    line = Line(m.nn.ReLU())
    line.extend([m.nn.Tanh()])
    return seen, len(layers), len(line)


def sums_of_containers(m):
    class Made(m.nn.Sequential):
        def __init__(self, count):
            super().__init__(*[m.nn.ReLU() for _ in range(count)])

    class Layers(m.nn.ModuleList):
        def __init__(self, count):
            super().__init__([m.nn.ReLU() for _ in range(count)])

    class Named(m.nn.ParameterDict):
        def __init__(self, count):
            super().__init__({str(i): m.ones(1) for i in range(count)})
    one, two, three = Made(2), Layers(2), Named(2)
    return [(type(x).__name__, len(x)) for x in (one + one, one * 2, 2 * one, two + two, three.copy(), three | three,
                                                 three.fromkeys("ab"))]


# -- calls with other tensors -----------------------------------------------------------------------------

def names_for_a_call(m):
    class Net(m.nn.Module):
        def __init__(self):
            super().__init__()
            self.scale, self.count, self.none = m.full((1,), 2.0), 3, None
            self.register_buffer("nothing", None)
            self.inner = filled(m, m.nn.Linear(1, 1))
            self._kept = m.ones(1)

        @property
        def read(self):
            return m.ones(1)

        @property
        def kept(self):
            return self._kept

        @kept.setter
        def kept(self, value):
            self._kept = value * 2

        def forward(self, x):
            return self.inner(x * self.scale * self.count + self.kept)
    net, found = Net(), []
    for name in ("scale", "count", "none", "nothing", "read", "kept", "inner", "inner.weight", "inner.forward",
                 "training", "absent", "inner.absent", "absent.weight", "", "inner.", 3):
        result = attempt(m.func.functional_call, net, {name: m.full((1, 1), 5.0)}, m.ones(1))
        found.append((name, result, net.scale, net.count, net.kept, sorted(key for key in vars(net) if key[0] != "_")))
    return found


def sizes_of_nothing(m):
    asked = (lambda t: t.numel(), lambda t: t.nelement(), len, lambda t: t.dim(), lambda t: t.stride(),
             lambda t: t.shape)
    lazy = (m.nn.LazyLinear(2), m.nn.LazyBatchNorm1d())
    return [attempt(f, t) for net in lazy for t in (*net.parameters(), *net.buffers())
            if t.__class__.__name__.startswith("Uninit") for f in asked]


# -- writes between forward and backward ----------------------------------------------------------------------

def weights_written_before_backward(m):
    """A weight is kept for the gradient of the input alone."""
    found = []
    for sizes in ((3,), (4, 3)):
        for needs in (False, True):
            weight, x = values(m, *sizes).requires_grad_(), values(m, 2, 3, shift=1).requires_grad_(needs)
            loss = m.nn.functional.linear(x, weight).pow(2).sum()
            with m.no_grad():
                weight += 1
            found.append((attempt(loss.backward), weight.grad))
    return found


PROGRAMS = [check_of_norms, weights_of_convolutions, derived_from_the_base_of_convolutions, prefixes_of_metadata,
            single_values, training_as_property, rates_within_step, sequence_in_another_order,
            methods_that_containers_call, sums_of_containers, names_for_a_call, sizes_of_nothing,
            weights_written_before_backward]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_programs(program):
    same(program, pt, torch)


# -- which methods a module's methods call ------------------------------------------------------------------

METHODS = ("append", "extend", "insert", "pop", "add_module", "register_parameter", "register_buffer", "__getitem__",
           "__setitem__", "__delitem__", "update", "clear", "train", "eval", "_apply", "children", "named_children",
           "parameters", "named_parameters", "named_buffers", "named_modules", "state_dict", "_save_to_state_dict",
           "_load_from_state_dict", "to", "double", "apply", "requires_grad_", "zero_grad", "forward", "extra_repr",
           "reset_parameters", "reset_running_stats", "_check_input_dim", "_conv_forward", "_sa_block", "_ff_block",
           "_mha_block", "_reset_parameters", "check_forward_args")
MADE = {"ModuleList": lambda m, cls: cls([m.nn.Identity(), m.nn.Identity()]),
        "Sequential": lambda m, cls: cls(m.nn.Identity(), m.nn.Identity()),
        "ModuleDict": lambda m, cls: cls({"a": m.nn.Identity()}), "ParameterList": lambda m, cls: cls([m.ones(1)]),
        "ParameterDict": lambda m, cls: cls({"a": m.ones(1)}), "Linear": lambda m, cls: cls(1, 1),
        "BatchNorm1d": lambda m, cls: cls(2), "Conv1d": lambda m, cls: cls(2, 2, 1), "LSTM": lambda m, cls: cls(2, 2),
        "Embedding": lambda m, cls: cls(3, 1, padding_idx=0), "LayerNorm": lambda m, cls: cls(2),
        "MultiheadAttention": lambda m, cls: cls(2, 1), "TransformerEncoderLayer": lambda m, cls: cls(2, 1, 2),
        "Bilinear": lambda m, cls: cls(1, 1, 1)}
USES = (lambda m, x: x.train(), lambda m, x: x.eval(), lambda m, x: list(x.parameters()),
        lambda m, x: list(x.buffers()), lambda m, x: list(x.modules()), lambda m, x: x.state_dict(),
        lambda m, x: x.load_state_dict(m.nn.Module.state_dict(x)), lambda m, x: x.double(),
        lambda m, x: x.to(m.float32),
        lambda m, x: x.apply(lambda child: None), lambda m, x: x.requires_grad_(False), lambda m, x: x.zero_grad(),
        lambda m, x: repr(x), lambda m, x: x.to_empty(device="cpu"), lambda m, x: x(m.ones(2, 2)),
        lambda m, x: x(m.ones(1, 2, 2)), lambda m, x: x.append(m.nn.Identity()),
        lambda m, x: x.extend([m.nn.Identity()]), lambda m, x: x[0], lambda m, x: x.update({"b": m.nn.Identity()}),
        lambda m, x: x.pop("a"))


def called(m, name):
    """The names of the methods that each use of a class calls, when a subclass overrides them."""
    base, seen = getattr(m.nn, name), []

    def noting(method):
        def noted(self, *args, **kwargs):
            seen.append(method)
            return getattr(super(cls, self), method)(*args, **kwargs)
        return noted
    methods = [method for method in METHODS if hasattr(getattr(torch.nn, name), method)]
    cls = type("Noting", (base,), {method: noting(method) for method in methods})
    module = MADE[name](m, cls)
    found = [sorted(set(seen))]
    for use in USES:
        seen.clear()
        result = attempt(use, m, module)
        found.append("failed" if isinstance(result, Failed) else sorted(set(seen)))
    return found


@pytest.mark.parametrize("name", MADE)
def test_the_same_methods_are_called(name):
    assert called(pt, name) == called(torch, name)


def test_conversions_that_make_new_parameters():
    def program(m):
        future = importlib.import_module(f"{m.__name__}.__future__")
        net = filled(m, m.nn.Linear(2, 2))
        net(values(m, 1, 2)).sum().backward()
        weight, grad = net.weight, net.weight.grad
        future.set_overwrite_module_params_on_conversion(True)
        try:
            net.double()
        finally:
            future.set_overwrite_module_params_on_conversion(False)
        return weight is net.weight, grad is net.weight.grad, weight, net.weight, net.weight.grad
    same(program, pt, torch)
