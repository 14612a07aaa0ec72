"""One object of each kind that can be written, by name: ``OBJECTS[name]()`` makes it, the same in every process.

    python tests/serialization/_old_objects.py FOLDER           writes them all

``written_at_e54336a5/`` was written at that commit, and is never written again: files of users are as old. An object
that comes to the table later goes into a folder of its own.
"""
import datetime
import importlib
import io
import pickle
import pickletools
import pkgutil
import random
import re
import sys
import tempfile
import types
import zipfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))    # of a run as a program

import _module_table
import numpy as np

import ptcore as pt
import ptcore.monitor
import ptcore.nn.utils.parametrizations
import ptcore.profiler
import ptcore.quasirandom
from ptcore import distributions as D
from ptcore import fx, nn, optim
from ptcore.autograd import _gradcheck, profiler_util
from ptcore.fx.experimental.proxy_tensor import make_fx
from ptcore.fx.immutable_collections import immutable_dict, immutable_list
from ptcore.fx.passes.shape_prop import ShapeProp, TensorMetadata
from ptcore.nn.attention import flex_attention as flex
from ptcore.utils import _pytree as pytree
from ptcore.utils import benchmark, checkpoint, data
from ptcore.utils.restart import Restart

FOLDER = Path(__file__).parent / "written_at_e54336a5"
# OBJECTS: name -> a function that makes the object, which is pickled
# SAVED: name with the suffix of a format -> a function that makes what ``ptcore.save`` writes
# PROGRAMS: name -> (a function that makes what ``jit.save`` writes, arguments of a call)


def ramp(*shape, dtype=pt.float32):
    n = 1
    for size in shape:
        n *= size
    return (pt.arange(n) * 7 % 11).to(dtype).reshape(shape)


def filled(module):
    """The module with weights that no generator draws."""
    with pt.no_grad():
        for x in [*module.parameters(), *module.buffers()]:
            if not isinstance(x, (nn.UninitializedParameter, nn.UninitializedBuffer)) and x.is_floating_point():
                x.copy_(ramp(*x.shape) / 11 + 0.1)
    return module


# -- tensors -------------------------------------------------------------------------------------

DTYPES = ("bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64", "float16", "bfloat16",
          "float32", "float64", "complex64", "complex128")


def attributed():
    x = ramp(2, 3)
    x.label, x.more = "a label", {"key": [1, 2.5]}
    return x


def parameter_attributed():
    p = nn.Parameter(ramp(2, 3))
    p.label = "a label"
    return p


def sharing():
    x = ramp(4, 3)
    return [x, x, x[1:], x.T]


def random_generator():
    g = pt.Generator()
    g.manual_seed(7)
    pt.rand(3, generator=g)
    return g


TENSORS = {
    **{f"tensor_{name}": lambda name=name: ramp(2, 3, dtype=getattr(pt, name)) for name in DTYPES},
    "tensor_0d": lambda: pt.tensor(2.5), "tensor_empty": lambda: pt.zeros(0, 3),
    "tensor_special": lambda: pt.tensor([float("nan"), float("inf"), -0.0]),
    "tensor_transposed": lambda: ramp(2, 3, 4).permute(2, 0, 1), "tensor_flipped": lambda: ramp(6)[::-2],
    "tensor_expanded": lambda: ramp(3).expand(2, 3), "tensor_offset": lambda: ramp(5, 2)[2:4],
    "tensor_channels_last": lambda: ramp(1, 2, 3, 4).contiguous(memory_format=pt.channels_last),
    "tensor_conj": lambda: pt.complex(ramp(3), ramp(3)).conj(), "tensor_meta": lambda: pt.zeros(2, 3, device="meta"),
    "tensor_requires_grad": lambda: ramp(2, 3).requires_grad_(), "tensor_attributed": attributed,
    "tensor_many_dims": lambda: ramp(*[1, 2] * 5), "tensors_sharing": sharing,
    "parameter": lambda: nn.Parameter(ramp(2, 3)), "parameter_frozen": lambda: nn.Parameter(ramp(3), False),
    "parameter_attributed": parameter_attributed, "buffer": lambda: nn.Buffer(ramp(3)),
    "buffer_not_persistent": lambda: nn.Buffer(ramp(3), persistent=False),
    "uninitialized_parameter": lambda: nn.UninitializedParameter(dtype=pt.float64),
    "uninitialized_buffer": lambda: nn.UninitializedBuffer(),
    "masked_tensor": lambda: pt.masked.masked_tensor(ramp(2, 3), ramp(2, 3) > 4),
}

# -- values --------------------------------------------------------------------------------------

def scaler():
    p = nn.Parameter(ramp(2))
    optimizer, made = optim.SGD([p], lr=0.5), pt.amp.GradScaler("cpu", init_scale=4.0, growth_interval=1)
    made.scale(p.sum()).backward()
    made.step(optimizer)
    made.update()
    return made


VALUES = {
    "size": lambda: pt.Size([2, 3]), "dtypes": lambda: [getattr(pt, name) for name in DTYPES],
    "devices": lambda: [pt.device("cpu"), pt.device("cuda", 1), pt.device("meta")],
    "memory_formats": lambda: [pt.contiguous_format, pt.channels_last, pt.channels_last_3d, pt.preserve_format],
    "layouts": lambda: [pt.strided], "finfo": lambda: [pt.finfo(pt.float32), pt.finfo(pt.bfloat16)],
    "iinfo": lambda: pt.iinfo(pt.int16), "generator": random_generator,
    "named_results": lambda: [t(range(1, 1 + t.n_sequence_fields)) for t in result_types()],
    "max_result": lambda: pt.max(ramp(2, 3), 1), "sort_result": lambda: pt.sort(ramp(5)),
    "ops": lambda: [pt.ops.aten.add, pt.ops.aten.relu], "overload": lambda: pt.ops.aten.add.Tensor,
    "functions": lambda: [pt.relu, pt.add, nn.functional.relu, nn.functional.cross_entropy, pt.linalg.svd,
                          pt.special.erf, pt.fft.fft, pt.Tensor.add, pt.Tensor.relu_, pt.nn.init.kaiming_uniform_],
    "autocast": lambda: pt.autocast("cpu", pt.bfloat16), "grad_scaler": scaler,
}


# -- modules -------------------------------------------------------------------------------------

def module(name):
    pt.manual_seed(0)
    args, _ = _module_table.MODULES[name]
    return filled(getattr(nn, name)(*args))


def tied():
    net = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 3))
    net[2].weight = net[0].weight
    net.register_buffer("count", pt.tensor(3))
    net.register_buffer("scratch", pt.ones(2), persistent=False)
    net.register_forward_hook(pt.nn.functional.relu)
    net.note = {"plain": (1, "a")}
    return filled(net).eval()


def hooked(attach):
    def make():
        pt.manual_seed(0)
        return attach(filled(nn.Linear(4, 3)))
    return make


def encoder(kind):
    def make():
        pt.manual_seed(0)
        layer = getattr(nn, f"Transformer{kind}Layer")(4, 2, 8)
        return filled(getattr(nn, f"Transformer{kind}")(layer, 2))
    return make


def pruned(module):
    nn.utils.prune.l1_unstructured(module, "weight", 0.5)
    return nn.utils.prune.random_structured(module, "weight", 1, 0)


def packed():
    return nn.utils.rnn.pack_padded_sequence(ramp(4, 2, 3), pt.tensor([4, 2]))


MODULES = {
    **{f"nn_{name}": lambda name=name: module(name) for name in _module_table.MODULES},
    "nn_Module": nn.Module, "nn_Container": lambda: nn.Container(a=nn.ReLU()), "nn_tied": tied,
    "nn_ModuleList": lambda: nn.ModuleList([nn.ReLU(), nn.Tanh()]),
    "nn_ModuleDict": lambda: nn.ModuleDict({"a": nn.ReLU(), "b": nn.Tanh()}),
    "nn_ParameterList": lambda: nn.ParameterList([ramp(2), nn.Parameter(ramp(3))]),
    "nn_ParameterDict": lambda: nn.ParameterDict({"a": nn.Parameter(ramp(2)), "b": ramp(3)}),
    "nn_RNNBase": lambda: filled(nn.RNNBase("LSTM", 2, 3)),
    "nn_RNNCellBase": lambda: filled(nn.RNNCellBase(2, 3, True, 4)),
    "nn_TransformerEncoder": encoder("Encoder"), "nn_TransformerDecoder": encoder("Decoder"),
    "nn_weight_norm": hooked(nn.utils.weight_norm), "nn_spectral_norm": hooked(nn.utils.spectral_norm),
    "nn_pruned": hooked(pruned), "packed_sequence": packed,
    "nn_DataParallel": lambda: nn.DataParallel(filled(nn.Linear(2, 3)), device_ids=[]),
    "averaged_model": lambda: optim.swa_utils.AveragedModel(filled(nn.Linear(2, 3))),
    "nn_options": lambda: [getattr(nn, name)() for name in ("LinearCrossEntropyOptions",) if hasattr(nn, name)],
}

# -- optimizers and schedules --------------------------------------------------------------------

OPTIMIZERS = [name for name in optim.__all__ if isinstance(getattr(optim, name), type) and name != "Optimizer"]


def stepped(name, **options):
    p, q = nn.Parameter(ramp(2, 3)), nn.Parameter(ramp(3, 2))
    groups = [{"params": [p]}, {"params": [q], "lr": 0.25}] if name != "LBFGS" else [p, q]
    made = getattr(optim, name)(groups, lr=0.125, **options)

    def loss():
        for x in (p, q):
            x.grad = x.detach() / 8
        return pt.tensor(1.0)
    if name == "SparseAdam":
        return made
    for _ in range(2):
        made.step(loss)
    return made


def schedule(name):
    s = optim.lr_scheduler
    optimizer = stepped("SGD", momentum=0.5)
    arguments = {"ConstantLR": (0.5, 2), "LinearLR": (0.5,), "ExponentialLR": (0.5,), "StepLR": (2,),
                 "MultiStepLR": ([1, 3],), "CosineAnnealingLR": (3,), "CosineAnnealingWarmRestarts": (2,),
                 "CyclicLR": (0.125, 0.5, 2), "OneCycleLR": (0.5, 6), "PolynomialLR": (3,), "ReduceLROnPlateau": (),
                 "LambdaLR": (abs,), "MultiplicativeLR": (abs,), "LRScheduler": ()}
    if name == "ChainedScheduler":
        made = s.ChainedScheduler([s.ConstantLR(optimizer, 0.5, 2), s.ExponentialLR(optimizer, 0.5)])
    elif name == "SequentialLR":
        made = s.SequentialLR(optimizer, [s.ConstantLR(optimizer, 0.5, 2), s.ExponentialLR(optimizer, 0.5)], [1])
    elif name == "SWALR":
        made = optim.swa_utils.SWALR(optimizer, 0.5, 2)
    else:
        made = getattr(s, name)(optimizer, *arguments[name])
    if name != "LRScheduler":
        optimizer.step()
        made.step(*((1.0,) if name == "ReduceLROnPlateau" else ()))
    return made


SCHEDULES = ("ConstantLR", "LinearLR", "ExponentialLR", "StepLR", "MultiStepLR", "CosineAnnealingLR",
             "CosineAnnealingWarmRestarts", "CyclicLR", "OneCycleLR", "PolynomialLR", "ReduceLROnPlateau", "LambdaLR",
             "MultiplicativeLR", "ChainedScheduler", "SequentialLR", "SWALR")
OPTIM = {
    **{f"optim_{name}": lambda name=name: stepped(name) for name in OPTIMIZERS},
    **{f"state_dict_{name}": lambda name=name: stepped(name).state_dict() for name in OPTIMIZERS},
    **{f"schedule_{name}": lambda name=name: schedule(name) for name in SCHEDULES},
    **{f"state_dict_{name}": lambda name=name: schedule(name).state_dict() for name in SCHEDULES
       if name not in ("LambdaLR", "MultiplicativeLR")},
}

# -- distributions -------------------------------------------------------------------------------

U, A, R = pt.tensor([0.25, 0.5]), pt.tensor([0.5, 2.0]), pt.tensor([-1.0, 2.0])
EYE = pt.tensor([[2.0, 0.5], [0.5, 1.0]])
DISTRIBUTIONS = {
    **dict.fromkeys(("Bernoulli", "Categorical", "ContinuousBernoulli", "Geometric", "OneHotCategorical",
                     "OneHotCategoricalStraightThrough"), (U,)),
    **dict.fromkeys(("Chi2", "Dirichlet", "Exponential", "HalfCauchy", "HalfNormal", "Poisson"), (A,)),
    **dict.fromkeys(("Beta", "FisherSnedecor", "Gamma", "InverseGamma", "Kumaraswamy", "Pareto", "Weibull"),
                    (A, A + 1)),
    **dict.fromkeys(("Cauchy", "Gumbel", "Laplace", "LogNormal", "LogisticNormal", "Normal", "VonMises"), (R, A)),
    "Binomial": (5, U), "GeneralizedPareto": (R, A, U), "LKJCholesky": (3, 1.5),
    "LowRankMultivariateNormal": (R, A[:, None], A), "Multinomial": (4, U), "MultivariateNormal": (R, EYE),
    "NegativeBinomial": (A, U), "RelaxedBernoulli": (pt.tensor(0.5), U), "StudentT": (A, R, A), "Uniform": (R, R + 2),
    "RelaxedOneHotCategorical": (pt.tensor(0.5), U), "Wishart": (pt.tensor(3.5), EYE),
}


def transforms():
    return [D.ExpTransform(), D.PowerTransform(A), D.SigmoidTransform(), D.SoftplusTransform(), D.TanhTransform(),
            D.AbsTransform(), D.AffineTransform(1.0, -2.0), D.AffineTransform(R, A, 1), D.CorrCholeskyTransform(),
            D.CumulativeDistributionTransform(D.Normal(0.5, 2.0)), D.StickBreakingTransform(), D.SoftmaxTransform(),
            D.ReshapeTransform((3,), (3, 1)), D.identity_transform, D.LowerCholeskyTransform(),
            D.PositiveDefiniteTransform(), D.ComposeTransform([D.AffineTransform(1.0, 2.0), D.ExpTransform()]),
            D.IndependentTransform(D.ExpTransform(), 1), D.ExpTransform().inv, D.ExpTransform(cache_size=1),
            D.CatTransform([D.ExpTransform(), D.SigmoidTransform()], dim=-1, lengths=[1, 2]),
            D.StackTransform([D.ExpTransform(), D.TanhTransform()], dim=0)]


def constraints():
    c = D.constraints
    made = [getattr(c, name) for name in c.__all__ if not isinstance(getattr(c, name), type) and name != "dependent"
            and not callable(getattr(c, name))]
    made += [c.greater_than(1.0), c.greater_than_eq(1.0), c.less_than(2.0), c.interval(0.0, 1.0),
             c.half_open_interval(0.0, 1.0), c.integer_interval(0, 3), c.multinomial(4), c.independent(c.real, 1),
             c.cat([c.real, c.positive], -1, [1, 2]), c.stack([c.real, c.positive], 0)]
    return made


DISTRIBUTED = {
    **{f"distribution_{name}": lambda name=name: getattr(D, name)(*DISTRIBUTIONS[name]) for name in DISTRIBUTIONS},
    "distribution_Independent": lambda: D.Independent(D.Normal(R, A), 1),
    "distribution_MixtureSameFamily": lambda: D.MixtureSameFamily(D.Categorical(U), D.Normal(R, A)),
    "distribution_TransformedDistribution": lambda: D.TransformedDistribution(D.Normal(R, A), [D.ExpTransform()]),
    "transforms": transforms, "constraints": constraints,
}


# -- data ----------------------------------------------------------------------------------------

def dataset():
    return data.TensorDataset(ramp(6, 2), ramp(6))


def loader_state(**options):
    def make():
        pt.manual_seed(3)
        random.seed(3)
        np.random.seed(3)       # noqa: NPY002 - the generator of the process, whose state the loader keeps
        loader = data.DataLoader(dataset(), batch_size=2, **options)
        batches = iter(loader)
        next(batches)
        state = loader.state_dict()
        devices = state["began"]["all"]["devices"]
        state["began"]["all"]["devices"] = {"cpu": devices["cpu"]}      # not those of this machine
        return state
    return make


DATA = {
    "dataset_tensors": dataset, "dataset_subset": lambda: data.Subset(dataset(), [0, 2]),
    "dataset_concat": lambda: data.ConcatDataset([dataset(), dataset()]),
    "dataset_stack": lambda: data.StackDataset(a=ramp(3, 2), b=ramp(3)),
    "dataset_chain": lambda: data.ChainDataset([]), "datasets": lambda: [data.Dataset(), data.IterableDataset()],
    "dataset_split": lambda: data.random_split(dataset(), [4, 2], pt.Generator().manual_seed(0)),
    "sampler_sequential": lambda: data.SequentialSampler([1, 2]),
    "sampler_random": lambda: data.RandomSampler([1, 2], generator=random_generator()),
    "sampler_subset": lambda: data.SubsetRandomSampler([1, 2]),
    "sampler_weighted": lambda: data.WeightedRandomSampler([0.5, 0.25], 3),
    "sampler_batch": lambda: data.BatchSampler(data.SequentialSampler([1, 2]), 2, False),
    "sampler_distributed": lambda: data.DistributedSampler([1, 2, 3], 2, 1, seed=3),
    "sampler": lambda: data.Sampler(), "loader": lambda: data.DataLoader(dataset(), batch_size=2),
    "loader_state": loader_state(), "loader_state_shuffled": loader_state(shuffle=True),
}


# -- graphs --------------------------------------------------------------------------------------

class Net(nn.Module):
    """What is traced; a pickle of its graph knows no class of a test."""

    def __init__(self):
        super().__init__()
        self.linear, self.scale = nn.Linear(3, 3), nn.Parameter(pt.ones(3))
        self.register_buffer("shift", pt.ones(3))
        filled(self)

    def forward(self, x, alpha: float = 0.5):
        y = pt.relu(self.linear(x)) * self.scale + self.shift
        return y.sum(dim=-1, keepdim=True), pt.add(x, y, alpha=alpha), y[..., 1:]


class Nested(Net):
    """A result that is nested; steps whose arguments are."""

    def forward(self, x, alpha: float = 0.5):
        y, z, _ = super().forward(x, alpha)
        return {"y": pt.cat([y, y], dim=1).split([1, 1], dim=-1)[0], "more": (z, y[:, None])}


def graph_module():
    return fx.symbolic_trace(Nested())


def made_graph():
    return make_fx(lambda x: (x.sin() * 2 + pt.cat([x, x])[:2]).softmax(-1))(ramp(2, 3))


def split():
    from ptcore.fx.passes.split_module import split_module
    first = ("placeholder", "get_attr", "call_module")
    return split_module(graph_module(), None, lambda node: int(node.op not in first))


GRAPHS = {
    "graph": lambda: fx.Graph(), "graph_module": graph_module, "graph_module_make_fx": made_graph,
    "graph_module_split": split,
    "immutable_collections": lambda: [immutable_list([1, 2]), immutable_dict({"a": 1})],
    "compiled_module": lambda: pt.compile(filled(nn.Linear(2, 3))),
    "tree_spec": lambda: pytree.tree_flatten({"a": [1, (2, 3)], "b": None})[1],
}


# -- programs ------------------------------------------------------------------------------------

def step(x: pt.Tensor, n: int, more: list[float]) -> tuple[pt.Tensor, int]:
    total = x
    for k in range(n):
        if k % 2 == 0:
            total = total + x * more[k]
        else:
            total = pt.relu(total - 1)
    return total, n + len(more)


class Counter(nn.Module):
    """A module with what a script keeps: a constant, a list, a dict, submodules in a list, an exported method."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(3, 3), nn.Linear(3, 3)])
        self.sizes, self.names = [1, 2], {"a": 3}
        self.register_buffer("count", pt.zeros((), dtype=pt.int64))
        filled(self)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x).relu()
        self.count += self.names["a"]
        return x, self.count, self.again(x)

    @pt.jit.export
    def again(self, x):
        return x * self.sizes[1]


X = ramp(2, 3)
PROGRAMS = {
    "script_function": (lambda: pt.jit.script(step), (X, 3, [0.5, 1.0, 2.0])),
    "script_module": (lambda: pt.jit.script(Counter()), (X,)),
    "script_frozen": (lambda: pt.jit.freeze(pt.jit.script(Net()).eval()), (X,)),
    "traced_function": (lambda: pt.jit.trace(lambda x: pt.sort(x.sin())[0].cumsum(-1), (X,)), (X,)),
    "traced_module": (lambda: pt.jit.trace(Net(), (X,)), (X,)),
    "script_of_traced": (lambda: pt.jit.script(nn.Sequential(pt.jit.trace(nn.ReLU(), (X,)), nn.Tanh())), (X,)),
}


# -- what ptcore.save writes ---------------------------------------------------------------------

def state_dict(module):
    """Without versions of modules: formats of arrays have no place for them."""
    state = module.state_dict()
    del state._metadata
    return state


def plain():
    """What each format takes."""
    return {"tensors": [ramp(2, 3, dtype=getattr(pt, name)) for name in DTYPES if not name.startswith("complex")],
            "numbers": [1, 2.5, True, None, "text", -2 ** 70], "tuple": (1, (2,), []), 3: "a number as a key",
            "model": state_dict(Net()), "optimizer": stepped("Adam").state_dict(),
            "schedule": schedule("OneCycleLR").state_dict(), "size": pt.Size([2]), "dtype": pt.bfloat16,
            "device": pt.device("cpu")}


def more():
    """What PyTorch's format takes as well."""
    import collections
    return {**plain(), "model": Net().state_dict(), "shared": sharing(),
            "parameter": nn.Parameter(ramp(2)), "attributed": attributed(),
            "parameter attributed": parameter_attributed(), "meta": pt.zeros(2, device="meta"),
            "complex": [complex(1, 2), ramp(2, dtype=pt.complex64)], "bytes": b"\x00\xff", "array": np.arange(3.0),
            "set": {1, 2}, "frozenset": frozenset({3}), "counter": collections.Counter("aab"),
            "default": collections.defaultdict(list, a=[1]), "storage": ramp(3).untyped_storage(),
            "transposed": ramp(2, 3).T, "bytearray": bytearray(b"ab")}


def typed():
    """What the layout of before PyTorch 1.6 takes: storages of one dtype."""
    return {"shared": sharing(), "model": Net().state_dict(), "half": ramp(2, dtype=pt.bfloat16)}


def restart():
    """The file of ``utils.restart``, as what it holds."""
    net = filled(nn.Linear(2, 3))
    optimizer = optim.SGD(net.parameters(), lr=0.5)
    return {"epoch": 3, "step": 7, "parts": {"net": state_dict(net), "optimizer": optimizer.state_dict()},
            "loader": loader_state(shuffle=True)()}


SAVED = {"plain.pt": plain, "more.pt": more, "stream.pt": typed, "plain.safetensors": plain, "plain.npz": plain,
         "restart.npz": restart}


# -- all else ------------------------------------------------------------------------------------

def errors():
    e, jit = pt._errors, pt.jit
    kinds = [e.ShapeError, e.SeveralElementsError, e.DTypeError, e.SchemaError, e.UnsupportedDTypeError,
             e.OutOfRangeError, e.IndexTypeError, e.AbsentPartError, e.DivisionByZeroError, e.ChoiceError,
             e.NoWordError, e.ConversionError, e.MemoryInUseError, e.DeviceError, pt.linalg.LinAlgError,
             pt.AcceleratorError, pt.OutOfMemoryError, jit.Error, jit.ScriptError, jit.NotSupportedError,
             jit.TracerWarning, jit.TracingCheckError, pt.serialization.CorruptFileError, _gradcheck.GradcheckError,
             fx.proxy.TraceError, checkpoint.CheckpointError, pt.library.OpCheckError]
    spawn = importlib.import_module("ptcore.multiprocessing.spawn")     # the package has a function of that name
    return [*[kind("what went wrong") for kind in kinds], spawn.ProcessException("a", 1, 2),
            spawn.ProcessRaisedException("a", 1, 2), spawn.ProcessExitedException("a", 1, 2, -9, "SIGKILL")]


def enums():
    return [nn.attention.SDPBackend.MATH, pt.profiler.ProfilerActivity.CPU, pt.profiler.ProfilerAction.RECORD,
            pt.profiler.DeviceType.CUDA, profiler_util.RecordScope.FUNCTION, pt.monitor.Aggregation.SUM,
            pt.serialization.LoadEndianness.LITTLE, benchmark.Language.PYTHON, checkpoint.CheckpointPolicy.MUST_SAVE,
            pt.amp.grad_scaler.OptState.READY, benchmark.Colorize.NONE]


def sobol():
    engine = pt.quasirandom.SobolEngine(2, scramble=True, seed=3)
    engine.draw(3)
    return engine


def parametrizations(kind):
    module = filled(nn.Linear(4, 3))
    getattr(nn.utils.parametrizations, kind)(module)
    return module.parametrizations.weight


def event():
    return profiler_util.FunctionEvent(id=1, name="add", thread=1, start_us=1, end_us=3)


def interpreters():
    module = graph_module()
    return [fx.Interpreter(module), fx.Transformer(module), ShapeProp(module)]


def matches():
    return fx.replace_pattern(graph_module(), lambda x: pt.relu(x), lambda x: pt.sigmoid(x))


MORE = {
    "errors": errors, "enums": enums, "sobol": sobol, "rng_state": pt.get_rng_state,
    **{f"parametrizations_{kind}": lambda kind=kind: parametrizations(kind)
       for kind in ("weight_norm", "spectral_norm", "orthogonal")},
    "prune_methods": lambda: [nn.utils.prune.Identity(), nn.utils.prune.CustomFromMask(ramp(2)),
                              nn.utils.prune.LnStructured(1, 2, 0), nn.utils.prune.RandomUnstructured(0.5)],
    "flex_options": lambda: [flex.AuxOutput(), flex.AuxRequest()],
    "block_mask": lambda: flex.create_block_mask(flex.noop_mask, 1, 1, 8, 8, device="cpu", BLOCK_SIZE=4),
    "measurement": lambda: benchmark.Measurement(1, [0.5, 0.25], benchmark.TaskSpec("a", "b", label="c")),
    "compare": lambda: benchmark.Compare([]), "streams": lambda: [pt.Event("cpu"), pt.Stream("cpu"), pt.cpu.Stream()],
    "profile": lambda: [pt.autograd.profiler.profile(),
                         pt.profiler.profile(activities=[pt.profiler.ProfilerActivity.CPU])],
    "events": lambda: [event(), profiler_util.FunctionEventAvg(), profiler_util.Interval(1, 2),
                       profiler_util.Kernel("a", 0, 1), profiler_util.EventList([event()])],
    "monitor_event": lambda: pt.monitor.Event("a", datetime.datetime(2020, 1, 1), {"a": 1}),
    "jit_attribute": lambda: pt.jit.Attribute(3, int), "script_base": lambda: pt.jit.ScriptModule(),
    "optimizer_base": lambda: optim.Optimizer([nn.Parameter(ramp(2))], {"lr": 0.5}),
    "distribution_bases": lambda: [D.Transform(), D.constraints.Constraint(), D.Distribution(validate_args=False),
                                   D.ExponentialFamily(validate_args=False),
                                   D.constraints.MixtureSameFamilyConstraint(D.constraints.real),
                                   D.constraints.dependent, D.constraint_registry.ConstraintRegistry()],
    "graph_plain": lambda: graph_module().graph, "graph_node": lambda: [*graph_module().graph.nodes][3],
    "tensor_metadata": lambda: TensorMetadata(pt.Size([2]), pt.float32, False, (1,), pt.contiguous_format, False, {}),
    "interpreters": interpreters, "tracer": lambda: fx.Tracer(), "matches": matches,
    "shared_list": lambda: data.SharedList([1, "a"]), "schema": lambda: pt.ops.aten.add.Tensor._schema,
    "older_amp": lambda: [pt.cuda.amp.GradScaler(enabled=False), pt.cuda.amp.autocast(enabled=False),
                          pt.cpu.amp.GradScaler(enabled=False), pt.cpu.amp.autocast()],
    "function_modes": lambda: [pt.overrides.TorchFunctionMode(), pt.overrides.BaseTorchFunctionMode()],
    "unpacked_dual": lambda: pt.autograd.forward_ad.unpack_dual(ramp(2)),
    "restart_object": lambda: Restart("a folder", keep=3, net=filled(nn.Linear(1, 1))),
    "remaining_functions": lambda: [pt.func.functional_call, pt.jit.trace, pt.compile, pt.autograd.grad, pt.save],
}

OBJECTS = {**TENSORS, **VALUES, **MODULES, **OPTIM, **DISTRIBUTED, **DATA, **GRAPHS, **MORE}


# -- writing -------------------------------------------------------------------------------------

def made(name):
    """The object of an entry."""
    pt.manual_seed(0)
    return OBJECTS[name]()


class Reader(pickle.Unpickler):
    """Python's unpickler, which notes the pairs of a module and a name that a pickle names."""

    def __init__(self, data):
        super().__init__(io.BytesIO(data))
        self.named = set()

    def find_class(self, module, name):
        self.named.add((module, name))
        return super().find_class(module, name)


def written(name):
    """The bytes of an entry of any table."""
    file = io.BytesIO()
    pt.manual_seed(0)
    if name in OBJECTS:
        return pickle.dumps(OBJECTS[name](), 4)
    if name in PROGRAMS:
        pt.jit.save(PROGRAMS[name][0](), file)
    elif name.startswith("stream"):
        pt.save(SAVED[name](), file, _use_new_zipfile_serialization=False)
    elif name.endswith(".pt"):
        pt.save(SAVED[name](), file)
    else:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / name
            pt.save(SAVED[name](), path)
            return path.read_bytes()
    return file.getvalue()


def file_of(name):
    """An entry's name in the archive."""
    return name + (".pickle" if name in OBJECTS else ".program" if name in PROGRAMS else "")


def public_names():
    """{(module, name): the public path} of the classes and functions of ptcore that pickles hold by name."""
    found = {}
    for path, value in sorted(public(), key=lambda pair: (pair[0].count("."), len(pair[0]), pair[0])):
        try:
            reader = Reader(data := pickle.dumps(value, 4))
            again = reader.load()
        except Exception:       # whatever an object says that cannot be pickled
            continue
        operations = {op.name for op, _, _ in pickletools.genops(data)}
        if again is value and not operations & {"REDUCE", "NEWOBJ", "BUILD"}:
            (pair,) = reader.named
            if pair[0].partition(".")[0] == "ptcore":
                found.setdefault(pair, path)
    return found


def public():
    """(path, value) of each name in each module of ptcore whose path has no underscore in front."""
    names = ["ptcore", *[m.name for m in pkgutil.walk_packages(pt.__path__, "ptcore.") if not re.search(
        r"\._|\.(compat|examples)\b", m.name)]]
    for name in names:
        try:
            module = importlib.import_module(name)
        except ImportError:     # of a package that is not installed
            continue
        # A module of the package alone has no __all__ today.
        for each in getattr(module, "__all__", dir(module) if name == "ptcore" else ()):
            try:
                value = getattr(module, each)
            except Exception:       # a name that needs a device
                continue
            if not each.startswith("_") and callable(value) and not isinstance(value, types.ModuleType):
                yield f"{name}.{each}", value


def main(folder):
    folder.mkdir()
    pairs = public_names()
    with zipfile.ZipFile(folder / "written.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name in [*OBJECTS, *SAVED, *PROGRAMS]:
            archive.writestr(zipfile.ZipInfo(file_of(name), (1980, 1, 1, 0, 0, 0)), written(name),
                             zipfile.ZIP_DEFLATED, 9)
            if name in OBJECTS:
                reader = Reader(archive.read(file_of(name)))
                reader.load()
                for pair in reader.named:
                    if pair[0].partition(".")[0] == "ptcore":
                        pairs.setdefault(pair, "")
    lines = ["module\tname\tpublic path", *["\t".join([*pair, pairs[pair]]) for pair in sorted(pairs)]]
    (folder / "old_paths.tsv").write_text("\n".join(lines) + "\n")


# Objects hold lines of this file, so what is new stands at its end.

def result_types():
    """The result types of that commit, in the order of the file."""
    return [getattr(pt.return_types, name) for name in """
        max min sort topk svd linalg_svd linalg_slogdet slogdet linalg_cholesky_ex linalg_qr qr linalg_eigh linalg_lstsq
        cummax cummin median nanmedian mode kthvalue aminmax frexp linalg_lu_factor linalg_lu_factor_ex linalg_lu
        lu_unpack linalg_solve_ex linalg_inv_ex linalg_ldl_factor linalg_ldl_factor_ex linalg_eig geqrf
        triangular_solve histogram histogramdd""".split()]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
