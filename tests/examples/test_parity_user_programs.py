"""Programs as users write them, run under both libraries: training with groups and schedulers,
module hooks, index writes, data loaders, module surgery. What they print or return must be
torch's; where an error is raised, it must be of a class that torch's handlers catch.
"""
import copy
import importlib
import pickle

import numpy as np
import pytest

import ptcore

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.parity


def attempt(call):
    try:
        return call()
    except Exception as e:
        return e


def same(ours, theirs):
    """Equal up to rounding and the libraries' names; an error of ours is caught as torch's is."""
    if isinstance(theirs, Exception):
        known = next(c for c in type(theirs).__mro__ if c.__module__ == "builtins")
        return isinstance(ours, known)
    if isinstance(ours, (list, tuple)) and isinstance(theirs, (list, tuple)):
        return len(ours) == len(theirs) and all(map(same, ours, theirs))
    if isinstance(ours, float) and isinstance(theirs, float):
        return ours == theirs or ours != ours or abs(ours - theirs) < 1e-5 * max(1, abs(theirs))
    return str(ours).replace("ptcore", "torch") == str(theirs).replace("ptcore", "torch")


def both(program, *args):
    importlib.import_module("torch.utils.data")
    theirs, ours = attempt(lambda: program(torch, *args)), attempt(lambda: program(ptcore, *args))
    assert same(ours, theirs), f"ptcore: {ours!r}\ntorch: {theirs!r}"


def test_training_with_groups_and_schedule():
    def program(t):
        model = t.nn.Sequential(t.nn.Linear(4, 8), t.nn.Tanh(), t.nn.LayerNorm(8), t.nn.Linear(8, 3))
        with t.no_grad():
            for i, p in enumerate(model.parameters()):
                p.copy_(t.linspace(-1, 1, p.numel()).reshape(p.shape) * (i + 1) * 0.1)
        optimizer = t.optim.AdamW([{"params": model[0].parameters(), "lr": 0.01},
                                   {"params": model[2:].parameters(), "weight_decay": 0.1}], lr=0.02)
        schedule = t.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)
        x, y = t.linspace(-1, 1, 40).reshape(10, 4), t.arange(10) % 3
        losses = []
        for _ in range(12):
            optimizer.zero_grad()
            loss = t.nn.functional.cross_entropy(model(x), y)
            loss.backward()
            t.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()
            schedule.step()
            losses.append(loss.item())
        state = copy.deepcopy(optimizer.state_dict())
        return losses, schedule.get_last_lr(), state["param_groups"][1]["params"], sorted(state["state"][0])

    both(program)


def test_module_and_tensor_hooks():
    def program(t):
        log, model = [], t.nn.Linear(2, 2, bias=False)
        with t.no_grad():
            model.weight.copy_(t.eye(2))
        handle = model.register_forward_hook(lambda m, i, o: log.append(("forward", len(i), tuple(o.shape))))
        model.register_forward_pre_hook(lambda m, i: (i[0] * 2,))
        model.register_full_backward_hook(lambda m, gi, go: log.append(("backward", gi[0].tolist(), go[0].tolist())))
        x = t.ones(1, 2, requires_grad=True)
        x.register_hook(lambda g: g * 10)
        y = model(x)
        y.retain_grad()
        y.sum().backward()
        handle.remove()
        model(x)
        return log, x.grad.tolist(), y.grad.tolist(), model.weight.grad.tolist()

    both(program)


@pytest.mark.parametrize("line", [
    "x[0] = 1", "x[:, 1] = t.arange(3.)", "x[x > 5] = 0", "x[[0, 2]] = 7", "x[[0, 2], [1, 3]] = t.tensor([8., 9.])",
    "x[..., -1] = 2", "x[None] = 1", "x[1:, ::2] = t.ones(2, 2) * 4", "x[t.tensor([0, 0])] = t.ones(4)",
    "x[:, [True, False, True, False]] = 3", "x[1] += 5", "x[:, 0] *= 2", "x[x > 3] += 1",
    "x[t.tensor([[0], [1]]), t.tensor([1, 2])] = 6", "x[0, :2], x[1, :2] = x[1, :2].clone(), x[0, :2].clone()",
    "x[0:0] = 1", "x[t.zeros(3, dtype=t.bool)] = 9", "x[-1, -1] = 0.5", "x[1, None, 2] = 4",
    "x[np.array([0, 1])] = 2.5",
    "x[(0, 1)] = 3", "x[0] = t.tensor(1)", "x[0] = True", "x[0] = 1j", "x[5] = 1", "x[:, 9] = 1", "x[0, 0, 0] = 1",
    "x[[0, 5]] = 1", "x[0] = t.ones(5)", "x['a'] = 1", "x[1.5] = 1", "x[t.ones(2, dtype=t.bool)] = 1", "x[0] = None",
    "x.add_(x.t())", "x[1:] = x[:-1].clone()", "x.T[0] = 5", "x.view(-1)[::5] = -1", "x[0].fill_(2)",
    "x.diagonal().zero_()"])
def test_index_writes(line):
    def program(t):
        x = t.arange(12.0).reshape(3, 4)
        exec(line, {"x": x, "t": t, "np": np})
        return x.tolist()

    both(program)


@pytest.mark.parametrize("options", [
    {"batch_size": 3}, {"batch_size": 3, "drop_last": True}, {"batch_size": None}, {"batch_sampler": [[0, 1], [5]]},
    {"batch_size": 5, "collate_fn": len}, {"batch_size": 0}, {"batch_size": -1}, {"batch_size": "a"},
    {"num_workers": -1},
    {"batch_size": 2, "drop_last": True, "batch_sampler": [[0]]}], ids=str)
def test_loaders(options):
    def program(t):
        data = t.utils.data
        return [str(b) for b in data.DataLoader(data.TensorDataset(t.arange(10.0), t.arange(10)), **options)]

    both(program)


def test_loader_of_dictionaries():
    def program(t):
        class Items(t.utils.data.Dataset):
            def __len__(self):
                return 4

            def __getitem__(self, i):
                return {"a": np.float32(i), "b": [i, str(i)], "c": (t.ones(2), float(i))}

        return [str(b) for b in t.utils.data.DataLoader(Items(), 2)]

    both(program)


@pytest.mark.parametrize("sizes", ["t.ones(i + 1)", "None", "object()"])
def test_loader_of_what_does_not_stack(sizes):
    def program(t):
        class Items(t.utils.data.Dataset):
            def __len__(self):
                return 2

            def __getitem__(self, i):
                return eval(sizes, {"t": t, "i": i})

        return list(t.utils.data.DataLoader(Items(), 2))

    both(program)


SURGERY = {
    "module over parameter": lambda t, m: setattr(m, "l", 3),
    "tensor over parameter": lambda t, m: setattr(m, "p", t.ones(1)),
    "number over buffer": lambda t, m: setattr(m, "b", 3),
    "taken name": lambda t, m: m.register_buffer("l", t.ones(1)),
    "dot": lambda t, m: m.register_parameter("x.y", None),
    "no name": lambda t, m: m.add_module("", t.nn.ReLU()),
    "no module": lambda t, m: m.add_module("z", 1), "missing": lambda t, m: m.zz,
    "submodule": lambda t, m: m.get_submodule("ml.0"), "no submodule": lambda t, m: m.get_submodule("no"),
    "meta": lambda t, m: m.to("meta").l.weight.is_meta, "double": lambda t, m: m.double().l.weight.dtype,
    "to int": lambda t, m: m.to(t.int32), "frozen": lambda t, m: m.requires_grad_(False).p.requires_grad,
    "train": lambda t, m: m.train("a"), "wrong input": lambda t, m: m(1), "no input": lambda t, m: m(),
    "two inputs": lambda t, m: m(t.ones(2), 3), "out of range": lambda t, m: t.nn.Sequential(t.nn.ReLU())[5],
    "slice": lambda t, m: str(t.nn.Sequential(t.nn.ReLU(), t.nn.Tanh())[-1:]),
    "copy": lambda t, m: list(copy.deepcopy(m).state_dict()),
    "pickle": lambda t, m: str(pickle.loads(pickle.dumps(t.nn.Linear(1, 1)))),
    "no forward": lambda t, m: t.nn.Module()(1),
    "missing key": lambda t, m: t.nn.Linear(2, 2).load_state_dict({"weight": t.ones(2, 2)}),
    "repr": lambda t, m: repr(m),
    "names": lambda t, m: [k for k, _ in m.named_parameters()],
    "modules": lambda t, m: [k for k, _ in m.named_modules()]}


@pytest.mark.parametrize("name", SURGERY)
def test_module_surgery(name):
    def program(t):
        class Model(t.nn.Module):
            def __init__(self):
                super().__init__()
                self.l = t.nn.Linear(2, 2)
                self.register_buffer("b", t.ones(1))
                self.register_buffer("nb", t.ones(1), persistent=False)
                self.p = t.nn.Parameter(t.ones(2))
                self.ml = t.nn.ModuleList([t.nn.Linear(1, 1)])

            def forward(self, x):
                return self.l(x)

        return SURGERY[name](t, Model())

    both(program)
