"""Random programs about modules: a tree of layers, and a list of things that happen to it.

A program is drawn once and runs with any library that has PyTorch's names. It returns what it saw as plain data.
"""
import copy
import gc
import importlib
import math
import random

__all__ = ["draw", "outcome", "plain", "run"]

LAYERS = ("linear", "shared", "norm", "tanh", "group", "hooked", "scaled", "list")
HOOKS = ("forward_pre", "forward", "forward_kwargs", "backward", "backward_pre", "always", "changes", "scales gradient")


def outcome(f, *args):
    """The result of a call, or the class of its error."""
    try:
        return f(*args)
    except Exception as error:
        return next(c.__name__ for c in type(error).__mro__ if c.__module__ == "builtins")


def plain(m, x):
    """Values as data that can be compared, whatever library they are from."""
    if isinstance(x, m.Tensor):
        if x.is_meta:
            return "meta", tuple(x.shape), str(x.dtype).rpartition(".")[2]
        return tuple(x.shape), str(x.dtype).rpartition(".")[2], x.detach().double().flatten().tolist()
    if isinstance(x, dict):
        return [(k, plain(m, v)) for k, v in x.items()]
    if isinstance(x, (list, tuple)):
        return [plain(m, v) for v in x]
    return x


def values(m, *shape, shift=0.0, dtype=None):
    count = math.prod(shape)
    return (m.arange(count, dtype=m.float64).reshape(shape) * 0.73 + shift).cos().to(dtype or m.float32)


def draw(seed):
    """A program: the kinds of the layers, then actions with a number that says on what."""
    r = random.Random(seed)
    layers = [r.choice(LAYERS) for _ in range(r.randint(2, 5))]
    actions = [(r.choice(sorted(ACTIONS)), r.randrange(1000)) for _ in range(r.randint(8, 16))]
    return layers, actions


def _classes(m):
    class Scaled(m.nn.Module):
        """Finds its scale by __getattr__, counts in a buffer, has extra state."""

        def __init__(self):
            super().__init__()
            self.scale_ = m.nn.Parameter(m.full((3,), 1.5))
            self.register_buffer("calls", m.zeros(()))
            self.note = 0

        def __getattr__(self, name):
            return super().__getattr__("scale_") * 2 if name == "scale" else super().__getattr__(name)

        def forward(self, x):
            self.calls += 1
            return x * self.scale

        def get_extra_state(self):
            return {"note": self.note}

        def set_extra_state(self, state):
            self.note = state["note"] + 1

    class Pair(m.nn.ModuleList):
        def forward(self, x):
            return sum(layer(x) for layer in self)
    return Scaled, Pair


class World:
    """The model of one library, with its optimizer and what was seen."""

    def __init__(self, m, layers):
        self.m, self.log, self.handles, self.runs = m, [], [], 0
        self.Scaled, self.Pair = _classes(m)
        first = m.nn.Linear(3, 3)
        made = []
        for kind in layers:
            made.append({"linear": lambda: m.nn.Linear(3, 3), "shared": lambda: first, "tanh": m.nn.Tanh,
                         "norm": lambda: m.nn.BatchNorm1d(3), "scaled": self.Scaled,
                         "group": lambda: m.nn.Sequential(m.nn.Linear(3, 3), m.nn.Sigmoid()),
                         "hooked": lambda: m.nn.Linear(3, 3, bias=False),
                         "list": lambda: self.Pair([m.nn.Linear(3, 3), m.nn.Identity()])}[kind]())
        self.net = m.nn.Sequential(*made).double()
        self.fill()
        self.optimizer = None

    def fill(self):
        with self.m.no_grad():
            for i, p in enumerate(self.net.parameters()):
                if not p.is_meta:
                    p.copy_(values(self.m, *p.shape, shift=i, dtype=p.dtype) * 0.5)

    def pick(self, number, kind=None):
        found = [x for x in self.net.modules() if kind is None or isinstance(x, kind)]
        return found[number % len(found)] if found else None

    def parameter(self, number):
        found = [(x, name) for x in self.net.modules() for name, p in x._parameters.items() if p is not None]
        return found[number % len(found)] if found else (None, None)

    def dtype(self):
        return next((p.dtype for p in self.net.parameters()), self.m.float32)

    def input(self, number):
        return values(self.m, 4, 3, shift=number % 7, dtype=self.dtype())

    def seen(self, x):
        self.log.append(plain(self.m, x))

    def library(self, path):
        return importlib.import_module(f"{self.m.__name__}.{path}")


def _forward(w, k):
    w.runs += 1
    w.seen(w.net(w.input(k)))


def _backward(w, k):
    x = w.input(k).requires_grad_()
    w.net(x).pow(2).sum().backward()
    w.seen([x.grad, [p.grad for p in w.net.parameters()]])


def _hook(w, k):
    module, kind, log = w.pick(k), HOOKS[k % len(HOOKS)], w.log
    name = type(module).__name__

    def note(*args):
        log.append((kind, name, [len(a) if isinstance(a, (tuple, dict)) else 0 for a in args[1:]]))
    w.handles.append({
        "forward_pre": lambda: module.register_forward_pre_hook(note, prepend=k % 2 == 0),
        "forward": lambda: module.register_forward_hook(note, prepend=k % 2 == 0),
        "forward_kwargs": lambda: module.register_forward_hook(note, with_kwargs=True),
        "backward": lambda: module.register_full_backward_hook(note),
        "backward_pre": lambda: module.register_full_backward_pre_hook(note, prepend=k % 2 == 0),
        "always": lambda: module.register_forward_hook(note, always_call=True),
        "changes": lambda: module.register_forward_hook(lambda module, args, out: out * 1.25),
        "scales gradient": lambda: module.register_full_backward_hook(
            lambda module, grads, outs: tuple(None if g is None else g * 2 for g in grads)),
    }[kind]())


def _remove_hook(w, k):
    if w.handles:
        w.handles.pop(k % len(w.handles)).remove()


def _fails(w, k):
    """A hook that raises, once."""
    module = w.pick(k)

    def wrong(*args):
        raise ValueError("wrong")
    handle = (module.register_forward_pre_hook, module.register_forward_hook,
              module.register_full_backward_hook)[k % 3](wrong)
    w.seen(outcome(_backward, w, k))
    handle.remove()


def _state(w, k):
    other = {key: value.clone() * 2 if w.m.is_tensor(value) and value.is_floating_point() else value
             for key, value in w.net.state_dict(keep_vars=k % 2 == 0).items()}
    if k % 3 == 0 and other:
        other.pop(sorted(other)[k % len(other)])
    if k % 5 == 0:
        other["surplus"] = w.m.ones(1)
    result = outcome(lambda: w.net.load_state_dict(other, strict=k % 7 > 2, assign=k % 4 == 1))
    w.seen(result if isinstance(result, str) else [list(part) for part in result])


def _step(w, k):
    kinds = (w.m.optim.SGD, w.m.optim.Adam, w.m.optim.RMSprop)
    if w.optimizer is None:
        options = {"lr": 0.05, **({"momentum": 0.9} if k % 3 == 0 else {"eps": 1e-2})}     # noise stays noise
        w.optimizer = kinds[k % 3](list(w.net.parameters()) or [w.m.zeros(1)], **options)
    w.optimizer.zero_grad(set_to_none=k % 2 == 0)
    w.net(w.input(k)).pow(2).sum().backward()
    w.optimizer.step()


def _new_optimizer(w, k):
    w.optimizer = None


def _copy(w, k):
    w.net = copy.deepcopy(w.net)
    w.optimizer = None


def _cast(w, k):
    w.net.to((w.m.float64, w.m.float32)[k % 2])
    w.optimizer = None


def _through_meta(w, k):
    w.net.to("meta")
    w.seen(list(w.net.parameters()))
    w.net.to_empty(device="cpu")
    w.net.zero_grad()
    w.fill()
    with w.m.no_grad():
        for b in w.net.buffers():
            b.fill_(1)
    w.optimizer = None


def _freeze(w, k):
    module, name = w.parameter(k)
    if module is not None:
        getattr(module, name).requires_grad_(k % 2 == 0)


def _replace(w, k):
    module, name = w.parameter(k)
    if module is not None:
        old = module._parameters[name]
        setattr(module, name, w.m.nn.Parameter(values(w.m, *old.shape, shift=k % 5, dtype=old.dtype)))


def _lose(w, k):
    module, name = w.parameter(k)
    if module is not None and name == "bias":
        setattr(module, name, None)


def _delete(w, k):
    module, name = w.parameter(k)
    if module is not None and k % 4 == 0:
        delattr(module, name)
        w.seen(outcome(lambda: w.net(w.input(k)) is None))
        module.register_parameter(name, w.m.nn.Parameter(values(w.m, *((3, 3) if name == "weight" else (3,)),
                                                                dtype=w.dtype())))


def _mode(w, k):
    w.pick(k).train(k % 2 == 0)


def _insert(w, k):
    net = w.pick(k, w.m.nn.Sequential)
    net.insert(k % (len(net) + 1), w.m.nn.Linear(3, 3).to(w.dtype()))
    w.fill()


def _drop(w, k):
    net = w.pick(k, w.m.nn.Sequential)
    if len(net) > 1:
        w.seen(type(net.pop(k % len(net))).__name__)


def _tie(w, k):
    layers = [x for x in w.net.modules() if type(x) is w.m.nn.Linear and "weight" in x._parameters]
    if len(layers) > 1:
        layers[k % len(layers)].weight = layers[0].weight


def _parametrize(w, k):
    parametrize = w.library("nn.utils.parametrize")
    module = w.pick(k, w.m.nn.Linear)
    if module is None:
        return
    if parametrize.is_parametrized(module, "weight"):
        parametrize.remove_parametrizations(module, "weight", leave_parametrized=k % 2 == 0)
    elif "weight" not in module._parameters:
        return
    elif k % 3:
        parametrize.register_parametrization(module, "weight", w.m.nn.Tanh())
    else:
        w.library("nn.utils.parametrizations").weight_norm(module)


def _prune(w, k):
    prune = w.library("nn.utils.prune")
    module = w.pick(k, w.m.nn.Linear)
    if module is not None and "weight" in module._parameters:
        prune.l1_unstructured(module, "weight", 2)
        w.seen(module.weight)
        if k % 2:
            prune.remove(module, "weight")


def _with_others(w, k):
    # In a model that has a layer twice PyTorch leaves the given tensors in it.
    if len(list(w.net.named_modules(remove_duplicate=False))) > len(list(w.net.modules())):
        return
    given = {name: p.detach() * 1.5 for i, (name, p) in enumerate(w.net.named_parameters()) if (i + k) % 2}
    result = outcome(lambda: w.m.func.functional_call(w.net, given, (w.input(k),)))
    w.seen(result)


def _averaged(w, k):
    if not list(w.net.parameters()):        # PyTorch refuses empty lists
        return
    swa = w.library("optim.swa_utils")
    average = swa.AveragedModel(w.net, multi_avg_fn=swa.get_ema_multi_avg_fn(0.5))
    with w.m.no_grad():
        for p in w.net.parameters():
            p.add_(0.25)
    average.update_parameters(w.net)
    average.update_parameters(w.net)
    w.seen(average.state_dict())


def _swap(w, k):
    future = w.library("__future__")
    gc.collect()                            # PyTorch counts what garbage holds
    future.set_swap_module_params_on_conversion(True)
    try:
        before = list(w.net.parameters())
        result = outcome(lambda: w.net.to((w.m.float64, w.m.float32)[k % 2]) is None)
        w.seen([result, [a is b for a, b in zip(before, w.net.parameters())]])
    finally:
        future.set_swap_module_params_on_conversion(False)
    w.optimizer = None


def _clip(w, k):
    w.seen(w.library("nn.utils").clip_grad_norm_(list(w.net.parameters()), 0.5))


def _zero(w, k):
    w.net.zero_grad(set_to_none=k % 2 == 0)


ACTIONS = {f.__name__[1:]: f for f in (
    _forward, _backward, _hook, _remove_hook, _fails, _state, _step, _new_optimizer, _copy, _cast, _through_meta,
    _freeze, _replace, _lose, _delete, _mode, _insert, _drop, _tie, _parametrize, _prune, _with_others, _averaged,
    _swap, _clip, _zero)}


def run(m, program):
    """Everything that a program sees; an action that fails is seen as the class of its error."""
    layers, actions = program
    w = World(m, layers)
    for name, number in actions:
        w.log.append(name)
        failed = outcome(ACTIONS[name], w, number)
        if failed is not None:
            w.log.append(("failed", failed))
        w.seen([(key, list(value.shape) if w.m.is_tensor(value) else value)
                for key, value in w.net.state_dict().items()])
    w.seen(outcome(lambda: w.net(w.input(0))))
    w.seen({key: value for key, value in w.net.state_dict().items() if w.m.is_tensor(value)})
    w.seen([p.requires_grad for p in w.net.parameters()])
    w.log.append([(name, type(x).__name__, x.training) for name, x in w.net.named_modules()])
    return w.log
