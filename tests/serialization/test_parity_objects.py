"""Whole modules, optimizers, schedules and datasets in files, from PyTorch and to it."""
import functools
import importlib
import io
import pickle
import warnings

import pytest

torch = pytest.importorskip("torch")

import ptcore as pt  # noqa: E402
from ptcore.nn.modules.module_hooks import TABLES  # noqa: E402
from ptcore.serialization import _torch_names  # noqa: E402

pytestmark = pytest.mark.parity

ARGUMENTS = ((), (2,), (2, 2), (2, 2, 2), (2, 2, 1), (8, 10, [2, 4]), (0, (1, 1)), ("GRU", 2, 2), (2, 2, True, 3))
MADE = {
    "MultiheadAttention": lambda nn: nn.MultiheadAttention(4, 2),
    "Transformer": lambda nn: nn.Transformer(8, 2, 1, 1, 16),
    "DataParallel": lambda nn: nn.DataParallel(nn.Linear(2, 2)),
    "TransformerEncoderLayer": lambda nn: nn.TransformerEncoderLayer(8, 2, 16, activation="gelu"),
    "TransformerDecoderLayer": lambda nn: nn.TransformerDecoderLayer(8, 2, 16),
    "TransformerEncoder": lambda nn: nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16), 2),
    "TransformerDecoder": lambda nn: nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 16), 2),
    "Sequential": lambda nn: nn.Sequential(nn.Linear(2, 3), nn.Sequential(nn.ReLU(), nn.BatchNorm1d(3))),
    "LSTM": lambda nn: nn.LSTM(2, 3, 2, bidirectional=True, proj_size=1),
    "Conv2d": lambda nn: nn.Conv2d(2, 4, (3, 2), padding=(1, 2), padding_mode="circular"),
    "ParameterList": lambda nn: nn.ParameterList([nn.Parameter(nn.Linear(1, 1).weight)]),
    "ModuleDict": lambda nn: nn.ModuleDict({"a": nn.Linear(1, 1)}),
}
CLASSES = sorted(name for module, names in _torch_names.CLASSES.items() if module.startswith(("torch.nn.modules",
                 "torch.nn.parallel")) for name in names.split() if hasattr(torch.nn, name) and hasattr(pt.nn, name))


def made(lib, name):
    if name in MADE:
        return MADE[name](lib.nn)
    for args in ARGUMENTS:
        try:
            return getattr(lib.nn, name)(*args)
        except (TypeError, ValueError, RuntimeError, IndexError):
            pass
    raise AssertionError(name)


def moved(obj, write, read):
    file = io.BytesIO()
    write(obj, file)
    file.seek(0)
    return read(file, weights_only=False)


def to_ptcore(obj):
    return moved(obj, torch.save, pt.load)


def to_torch(obj):
    return moved(obj, pt.save, torch.load)


def plain(value, deep=True):
    """A value of either library in a form that can be compared."""
    if isinstance(value, (torch.Tensor, pt.Tensor)):
        lazy = "Uninitialized" in type(value).__name__
        return (type(value).__name__, value.requires_grad, None if lazy else value.detach().tolist())
    if isinstance(value, (torch.nn.Module, pt.nn.Module)):
        return type(value).__name__, described(value)
    if isinstance(value, dict):
        return {plain(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if callable(value):
        return getattr(value, "__name__", type(value).__name__)
    if type(value).__module__.startswith(("torch", "ptcore")):
        return type(value).__name__
    return value


def described(module):
    """What a module's dict holds, apart from tables of hooks."""
    name = type(module).__name__
    skipped = {*TABLES, "_is_full_backward_hook", "_hooks", "_flat_weight_refs", *_computed(name)}
    if name == "DataParallel":          # PyTorch keeps it where there are devices
        skipped.add("dim")
    return {key: plain(value) for key, value in vars(module).items() if key not in skipped}


def text(module):
    return repr(module).replace("ptcore.", "torch.")


def _computed(name):
    return getattr(getattr(pt.nn, name, None), "_torch_computed", ())


def quiet(test):
    @functools.wraps(test)
    def run(*args, **options):
        with warnings.catch_warnings(action="ignore"):
            test(*args, **options)
    return run


@pytest.mark.parametrize("name", CLASSES)
@quiet
def test_every_module(name):
    theirs = made(torch, name)
    read = to_ptcore(theirs)
    assert type(read) is type(made(pt, name))
    assert text(read) == text(theirs)
    assert described(read) == described(theirs)
    mine = made(pt, name)
    written = to_torch(mine)
    assert type(written) is type(theirs)
    assert text(written) == text(mine)
    assert described(written) == described(mine)
    kept = set(vars(written)) - {"dim"} if name == "DataParallel" else set(vars(written))
    assert kept == set(vars(theirs))


def test_no_class_is_left_out():
    """The table of names is PyTorch's own, and has what ptcore has."""
    for module, names in _torch_names.CLASSES.items():
        space = importlib.import_module(module)
        assert [getattr(space, n).__module__ for n in names.split()] == [module] * len(names.split())
    known = {name for names in _torch_names.CLASSES.values() for name in names.split()}
    for mine, theirs in ((pt.nn, torch.nn), (pt.optim, torch.optim), (pt.optim.lr_scheduler, torch.optim.lr_scheduler)):
        for name in mine.__all__:
            cls = getattr(theirs, name, None)
            if isinstance(cls, type) and isinstance(getattr(mine, name), type) and not issubclass(cls, torch.Tensor):
                assert name in known or name in ("Buffer", "Parameter"), name


@quiet
def test_values_of_a_model():
    theirs = torch.nn.Sequential(
        torch.nn.Conv2d(1, 4, 3, padding=1, padding_mode="reflect"), torch.nn.BatchNorm2d(4), torch.nn.GELU(),
        torch.nn.MaxPool2d(2), torch.nn.Flatten(), torch.nn.utils.weight_norm(torch.nn.Linear(16, 8)),
        torch.nn.utils.spectral_norm(torch.nn.Linear(8, 4)), torch.nn.Softmax(-1)).eval()
    x = torch.randn(2, 1, 4, 4)
    expected = theirs(x).detach()
    read = to_ptcore(theirs)
    assert torch.allclose(torch.tensor(read(pt.tensor(x.tolist())).tolist()), expected, atol=1e-6)
    assert torch.allclose(to_torch(read)(x), expected, atol=1e-6)
    recurrent = torch.nn.LSTM(2, 3, 2, bidirectional=True)
    x = torch.randn(4, 1, 2)
    read = to_ptcore(recurrent)
    assert torch.allclose(torch.tensor(read(pt.tensor(x.tolist()))[0].tolist()), recurrent(x)[0], atol=1e-6)
    assert torch.allclose(to_torch(read)(x)[0], recurrent(x)[0], atol=1e-6)


@quiet
def test_lazy_modules():
    read = to_ptcore(torch.nn.Sequential(torch.nn.LazyLinear(2), torch.nn.LazyBatchNorm1d()))
    read(pt.ones(3, 4))
    assert [type(m) for m in read] == [pt.nn.Linear, pt.nn.BatchNorm1d]
    written = to_torch(pt.nn.Sequential(pt.nn.LazyConv2d(3, 2)))
    written(torch.ones(1, 5, 4, 4))
    assert written[0].weight.shape == (3, 5, 2, 2)


OPTIMIZERS = sorted(name for name in pt.optim.__all__ if isinstance(getattr(torch.optim, name, None), type)
                    and name not in ("Optimizer", "SparseAdam"))


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_optimizer(name):
    def trained(lib):
        lib.manual_seed(0)
        weight = lib.nn.Parameter(lib.tensor([[1.0, 2.0], [3.0, 4.0]]))
        optimizer = getattr(lib.optim, name)([weight], lr=0.1)
        step(optimizer)
        return optimizer

    def step(optimizer):
        weight = optimizer.param_groups[0]["params"][0]

        def closure():
            optimizer.zero_grad()
            loss = (weight ** 2).sum()
            loss.backward()
            return loss
        closure()
        optimizer.step(closure)
        return weight.detach().tolist()
    theirs, mine = trained(torch), trained(pt)
    read, written = to_ptcore(theirs), to_torch(mine)
    assert type(read) is type(mine)
    assert type(written) is type(theirs)
    assert plain(read.state_dict()) == plain(theirs.state_dict())
    assert plain(written.state_dict()) == plain(mine.state_dict())
    expected = torch.tensor(step(theirs))
    if name == "LBFGS":         # PyTorch's own does not step after it was read
        written = mine
    for optimizer in (read, mine, *[written] * (written is not mine)):
        assert torch.allclose(torch.tensor(step(optimizer)), expected, rtol=1e-5)


SCHEDULES = {
    "ConstantLR": (), "CosineAnnealingLR": (5,), "CosineAnnealingWarmRestarts": (5,), "CyclicLR": (0.1, 0.2),
    "ExponentialLR": (0.9,), "LinearLR": (), "MultiStepLR": ([1, 3],), "OneCycleLR": (0.2, 10), "PolynomialLR": (),
    "StepLR": (2,), "ReduceLROnPlateau": (),
}


@pytest.mark.parametrize("name", sorted(SCHEDULES))
@quiet
def test_every_schedule(name):
    def begun(lib):
        optimizer = lib.optim.SGD([lib.nn.Parameter(lib.ones(1))], lr=0.1, momentum=0.9)
        schedule = getattr(lib.optim.lr_scheduler, name)(optimizer, *SCHEDULES[name])
        rates(schedule, optimizer, 2)
        return schedule, optimizer

    def rates(schedule, optimizer, n):
        found = []
        for _ in range(n):
            optimizer.step()
            schedule.step(*(1.0,) * (name == "ReduceLROnPlateau"))
            found.append(optimizer.param_groups[0]["lr"])
        return found
    theirs, mine = begun(torch), begun(pt)
    read, written = to_ptcore(theirs), to_torch(mine)
    assert read[0].optimizer is read[1]
    assert theirs[0].state_dict().keys() - mine[0].state_dict().keys() <= {"_get_lr_called_within_step"}
    fresh = begun(pt)
    fresh[0].load_state_dict(theirs[0].state_dict())
    expected = rates(*theirs, 5)
    assert rates(*fresh, 5) == pytest.approx(expected)
    assert rates(*read, 5) == pytest.approx(expected)
    assert rates(*written, 5) == pytest.approx(expected)


def test_datasets():
    t = torch.arange(6).reshape(3, 2)
    data = torch.utils.data
    theirs = [data.TensorDataset(t, t + 1), data.Subset([3, 4, 5], [0, 2]), data.ConcatDataset([[1, 2], [3]]),
              data.SequentialSampler(range(3)), data.BatchSampler(range(5), 2, False),
              data.StackDataset([1, 2], [3, 4])]
    read = to_ptcore(theirs)
    assert [list(map(plain, d)) for d in read] == [list(map(plain, d)) for d in theirs]
    assert [list(map(plain, d)) for d in to_torch(read)] == [list(map(plain, d)) for d in theirs]


def test_functions():
    names = [n for n in dir(torch.nn.functional) if not n.startswith("_") and n in dir(pt.nn.functional)
             and callable(getattr(torch.nn.functional, n)) and not isinstance(getattr(torch.nn.functional, n), type)]
    functions = {}
    for name in names:
        try:
            pickle.dumps(getattr(torch.nn.functional, name))
        except (pickle.PicklingError, TypeError, AttributeError):
            continue
        functions[name] = getattr(torch.nn.functional, name)
    for name, function in functions.items():
        expected = pt.rrelu_ if name == "rrelu_" else getattr(pt.nn.functional, name)
        assert to_ptcore([function]) == [expected], name
    assert len(functions) > 100
    for name in ("tanh", "relu", "sigmoid", "exp", "softmax"):
        assert to_ptcore(getattr(torch, name)) is getattr(pt, name)
        assert to_torch(getattr(pt, name)).__name__ == name
    for name in ("gelu", "relu", "silu"):
        assert to_torch(getattr(pt.nn.functional, name)) is getattr(torch.nn.functional, name)


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_plain_pickles_of_tensors(protocol):
    t = torch.arange(6.0).reshape(2, 3)
    objects = {"a": t, "b": [t[1], torch.ones(2, dtype=torch.bfloat16)], "p": torch.nn.Parameter(t)}
    data = pickle.dumps(objects, protocol)
    read = pt.load(io.BytesIO(data), weights_only=False)
    assert plain(read) == plain(objects)
    with pytest.raises(pickle.UnpicklingError, match="_load_from_bytes, which is not allowed by default"):
        pt.load(io.BytesIO(data))


class TheirTensor(torch.Tensor):
    pass


class OurTensor(pt.Tensor):
    pass


def test_tensors_of_other_classes(monkeypatch):
    """Each library reads the other's file of a tensor of a class, with attributes and the shared storage."""
    for lib, other, cls, theirs in ((torch, pt, TheirTensor, OurTensor), (pt, torch, OurTensor, TheirTensor)):
        monkeypatch.setitem(globals(), cls.__name__, cls)
        t = lib.arange(3.0).as_subclass(cls)
        t.note = [1]
        file = io.BytesIO()
        lib.save([t, t.as_subclass(lib.Tensor)], file)
        file.seek(0)
        with pytest.raises(pickle.UnpicklingError):
            other.load(file)
        file.seek(0)
        with monkeypatch.context() as patch:
            patch.setitem(globals(), cls.__name__, theirs)
            found, base = other.load(file, weights_only=False)
        assert type(found) is theirs and found.note == [1] and found.tolist() == [0, 1, 2]
        assert found.data_ptr() == base.data_ptr()
