"""Modules and containers against torch.nn: text, hooks, state, errors."""

import inspect
import re

import numpy as np
import pytest

import ptcore as pt
from ptcore import nn

torch = pytest.importorskip("torch")
import torch.nn.utils.prune  # noqa: E402, F811

pytestmark = pytest.mark.parity
LIBRARIES = ((pt, nn), (torch, torch.nn))

MODELS = {
    "mlp": lambda nn: nn.Sequential(
        nn.Linear(4, 3), nn.ReLU(), nn.Dropout(0.1), nn.LayerNorm(3, bias=False)
    ),
    "nested": lambda nn: nn.ModuleDict(
        {
            "a": nn.ModuleList([nn.Linear(2, 2, bias=False)] * 3 + [nn.Identity()]),
            "b": nn.Sequential(nn.Flatten(), nn.Unflatten(1, (2, 2)), nn.GELU("tanh")),
        }
    ),
    "losses": lambda nn: nn.ModuleList(
        [
            nn.CrossEntropyLoss(),
            nn.MSELoss(),
            nn.NLLLoss(),
            nn.Softmax(dim=1),
            nn.Tanh(),
        ]
    ),
    "empty": lambda nn: nn.ModuleList(
        [nn.Sequential(), nn.ModuleDict(), nn.ModuleList()]
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_text_names_and_metadata(name):
    ours, theirs = (MODELS[name](nn) for _, nn in LIBRARIES)
    assert repr(ours) == repr(theirs)
    for method in (
        "named_parameters",
        "named_buffers",
        "named_modules",
        "named_children",
    ):
        a, b = ([n for n, _ in getattr(m, method)()] for m in (ours, theirs))
        assert a == b, method
    assert list(ours.state_dict()) == list(theirs.state_dict())
    assert ours.state_dict()._metadata == theirs.state_dict()._metadata


def tensors_of(value):
    """Gradients of a hook as nested lists."""
    return None if value is None else [None if g is None else g.tolist() for g in value]


def record_hooks(pt, nn, *, unused_output, plain_input):
    class Two(nn.Module):
        def forward(self, a, text, b):
            return a * 3 + b, text, b * 5

    module, log = Two(), []
    module.register_full_backward_pre_hook(
        lambda m, go: log.append(("pre", tensors_of(go)))
    )
    module.register_full_backward_hook(
        lambda m, gi, go: log.append(("hook", tensors_of(gi), tensors_of(go)))
    )
    a = pt.tensor([1.0, 2.0], requires_grad=True)
    b = pt.tensor([3.0, 4.0], requires_grad=not plain_input)
    first, _, second = module(a, "x", b)
    loss = first.sum()
    if not unused_output:
        loss = loss + (second * 2).sum()
    loss.backward()
    log.append(a.grad.tolist())
    log.append(None if b.grad is None else b.grad.tolist())
    return log


@pytest.mark.parametrize("unused_output", [False, True])
@pytest.mark.parametrize("plain_input", [False, True])
def test_backward_hooks(unused_output, plain_input):
    ours, theirs = (
        record_hooks(*lib, unused_output=unused_output, plain_input=plain_input)
        for lib in LIBRARIES
    )
    assert ours == theirs


def test_load_state_dict_errors():
    messages = []
    for pt_, nn_ in LIBRARIES:
        net = nn_.Sequential(nn_.Linear(2, 3), nn_.LayerNorm(3))
        state = net.state_dict()
        del state["0.bias"], state["1.weight"]
        state["extra"] = state["1.more.deep"] = pt_.zeros(1)
        state["0.weight"] = pt_.zeros(7)
        with pytest.raises(RuntimeError) as info:
            net.load_state_dict(state)
        messages.append(str(info.value).replace("torch.Size", "ptcore.Size"))
    assert messages[0] == messages[1]


BAD = [
    lambda pt, nn: nn.Module().register_parameter("a.b", None),
    lambda pt, nn: nn.Module().register_buffer(3, None),
    lambda pt, nn: nn.Module().register_parameter("forward", None),
    lambda pt, nn: nn.Module().add_module("m", 3),
    lambda pt, nn: nn.Module().register_parameter("p", pt.ones(1)),
    lambda pt, nn: nn.Module()(1),
    lambda pt, nn: nn.Module().train(1),
    lambda pt, nn: nn.Module().absent,
    lambda pt, nn: nn.Module(3),
    lambda pt, nn: nn.Module().to(pt.int64),
    lambda pt, nn: nn.Sequential()[0],
    lambda pt, nn: nn.Sequential(3),
    lambda pt, nn: nn.Sequential() * 0,
    lambda pt, nn: nn.ModuleList([nn.ReLU()])["a"],
    lambda pt, nn: nn.ModuleDict()["a"],
    lambda pt, nn: nn.ModuleDict(3),
    lambda pt, nn: nn.ParameterDict({3: pt.ones(1)})[3.5],
    lambda pt, nn: nn.Dropout(2),
    lambda pt, nn: nn.Linear(2, 2).get_parameter("x"),
    lambda pt, nn: nn.Linear(2, 2).get_buffer("weight"),
    lambda pt, nn: nn.Linear(2, 2).get_submodule("weight"),
    lambda pt, nn: nn.Linear(2, 2).load_state_dict(3),
    lambda pt, nn: nn.init.xavier_normal_(pt.empty(3)),
    lambda pt, nn: nn.init.calculate_gain("swish"),
    lambda pt, nn: nn.utils.vector_to_parameters(3, []),
    lambda pt, nn: nn.FractionalMaxPool2d(2), lambda pt, nn: nn.FractionalMaxPool3d(2),
    lambda pt, nn: nn.FractionalMaxPool2d(2, output_size=3, output_ratio=0.5),
    lambda pt, nn: nn.FractionalMaxPool2d(2, output_ratio=1.5), lambda pt, nn: nn.TripletMarginLoss(margin=0),
    lambda pt, nn: nn.TripletMarginWithDistanceLoss(margin=-1),
]


# What each says.
SAYS = [
    "'parameter name can\\'t contain \".\", got: a.b'", "buffer name should be a string. Got int",
    "\"attribute 'forward' already exists\"", "int is not a Module subclass",
    "cannot assign 'ptcore.FloatTensor' object to parameter 'p'",
    'Module [Module] is missing the required "forward" function', "training mode is expected to be boolean",
    "'Module' object has no attribute 'absent'", "Module.__init__() takes 1 positional argument but 2 were given",
    "nn.Module.to only accepts floating point or complex dtypes, but got", "index 0 is out of range",
    "int is not a Module subclass", "Non-positive multiplication factor 0 for <class",
    "'str' object cannot be interpreted as an integer", "'a'",
    "ModuleDict.update should be called with an iterable of key/value",
    "Index given to ParameterDict cannot be used as a key as it is not a",
    "dropout probability has to be between 0 and 1, but got 2", "Linear has no attribute `x`",
    "`weight` is not a buffer", "`weight` is not an nn.Module",
    "Expected state_dict to be dict-like, got <class 'int'>.",
    "Fan in and fan out can not be computed for tensor with fewer than 2",
    "calculate_gain: Unsupported nonlinearity swish", "vector_to_parameters: vec must be a Tensor, got int",
    "FractionalMaxPool2d: requires specifying either an output size, or a pooling ratio, got None of both",
    "FractionalMaxPool3d: requires specifying either an output size, or a pooling ratio, got None of both",
    "FractionalMaxPool2d: only one of output_size and output_ratio may be specified, got 3 and 0.5",
    "FractionalMaxPool2d: output_ratio must be between 0 and 1 (got 1.5)",
    "TripletMarginLoss: expected margin to be greater than 0, got 0",
    "TripletMarginWithDistanceLoss: expected margin to be greater than 0, got -1"]


@pytest.mark.parametrize(("call", "says"), [*zip(BAD, SAYS, strict=True)], ids=range(len(BAD)))
def test_errors(call, says):
    ours, theirs = LIBRARIES
    with pytest.raises((KeyError, TypeError, ValueError, AttributeError, IndexError, NotImplementedError)) as info:
        call(*theirs)
    with pytest.raises(info.type, match=re.escape(says)):
        call(*ours)


def arguments(function):
    """Names, kinds and defaults of the arguments, functions by their names."""
    parameters = inspect.signature(function).parameters.values()
    return [(p.name, p.kind, p.default.__name__ if callable(p.default) else p.default) for p in parameters]


@pytest.mark.parametrize(
    "name",
    [n for n in nn.__all__ if isinstance(getattr(nn, n), type) and n != "Parameter"],
)
def test_signatures_of_classes(name):
    ours, theirs = getattr(nn, name), getattr(torch.nn, name)
    got, expected = arguments(ours.__init__), arguments(theirs.__init__)
    if name in ("RNN", "LSTM", "GRU"):  # torch's hand (*args, **kwargs) on to RNNBase
        expected = arguments(torch.nn.RNNBase.__init__)
        expected = [a for a in expected if a[0] not in ("mode", "proj_size")]
        places = {a[0]: i for i, a in enumerate(got)}
        assert places.get("nonlinearity") == {"RNN": 4}.get(name)
        assert places.get("proj_size") == {"LSTM": 8}.get(name)
        got = [a for a in got if a[0] not in ("nonlinearity", "proj_size", "kwargs")]
    assert got == expected
    for method, function in vars(theirs).items():
        if method.startswith("_") or not inspect.isfunction(function):
            continue
        if method in ("compile", "ipu", "xpu", "mtia", "extra_repr", "forward"):
            continue
        assert hasattr(ours, method), method
        if name == "Module" and method != "state_dict":
            assert arguments(getattr(ours, method)) == arguments(function), method


@pytest.mark.parametrize("name", nn.init.__all__)
def test_signatures_of_initialisers(name):
    theirs = getattr(torch.nn.init, name)           # of the older names: any arguments
    if not hasattr(torch.nn.init, name + "_"):
        assert arguments(getattr(nn.init, name)) == arguments(theirs)
        return
    assert arguments(getattr(nn.init, name)) == arguments(getattr(torch.nn.init, name + "_"))
    with pytest.warns(FutureWarning, match=f"nn.init.{name}_"):
        theirs(torch.empty(4, 4, 3) if name == "dirac" else torch.empty(4, 4),
               *{"constant": (1,), "sparse": (0.5,)}.get(name, ()))


@pytest.mark.parametrize("name", nn.utils.__all__)
def test_signatures_of_utils(name):
    ours, theirs = getattr(nn.utils, name), getattr(torch.nn.utils, name)
    if inspect.ismodule(ours):
        assert inspect.ismodule(theirs)
        for name in set(ours.__all__) - {"PackedSequence"}:
            assert arguments(getattr(ours, name)) == arguments(getattr(theirs, name))
        return
    assert arguments(ours) == arguments(theirs)


@pytest.mark.parametrize("norm_type", [1, 2.0, 3, float("inf")])
def test_clip_grad_norm(norm_type):
    results = []
    for pt_, nn_ in LIBRARIES:
        params = [nn_.Parameter(pt_.zeros(3)), nn_.Parameter(pt_.zeros(2, 2))]
        params[0].grad = pt_.tensor([1.0, -2.0, 3.0])
        params[1].grad = pt_.tensor([[1e-3, 40.0], [0.0, 5.0]])
        total = nn_.utils.clip_grad_norm_(params, 1.5, norm_type)
        results.append([total.tolist(), *(p.grad.tolist() for p in params)])
    for ours, theirs in zip(*results, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def test_training_steps_are_equal():
    curves = []
    start = [
        np.random.default_rng(0).normal(size=s) * 0.3
        for s in [(8, 4), (8,), (3, 8), (3,)]
    ]
    x = np.random.default_rng(1).normal(size=(20, 4))
    y = np.random.default_rng(2).integers(0, 3, 20)
    for pt_, nn_ in LIBRARIES:
        model = nn_.Sequential(nn_.Linear(4, 8), nn_.GELU(), nn_.Linear(8, 3)).to(
            pt_.float64
        )
        with pt_.no_grad():
            for p, value in zip(model.parameters(), start, strict=True):
                p.copy_(pt_.from_numpy(value))
        optimizer = pt_.optim.AdamW(model.parameters(), lr=0.05, weight_decay=0.1)
        schedule = pt_.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=30)
        losses = []
        for _ in range(30):
            optimizer.zero_grad()
            loss = nn_.CrossEntropyLoss(label_smoothing=0.1)(
                model(pt_.from_numpy(x)), pt_.from_numpy(y)
            )
            loss.backward()
            nn_.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()
            schedule.step()
            losses.append(loss.item())
        curves.append(losses)
    np.testing.assert_allclose(curves[0], curves[1], rtol=1e-9)
