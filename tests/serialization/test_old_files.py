"""What was written at an earlier commit loads ever after, with the values it was written with; nothing that can be
written is missing; what pickles name stays where they name it.

``written_at_e54336a5/written.zip`` holds a pickle or a file for each entry of ``_old_objects.py``, and
``old_paths.tsv`` the names of modules, classes and functions in them: what moves leaves these behind.
"""
import importlib
import io
import pickle
import pickletools
import struct
import sys
import zipfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import _old_objects as old
from _same_objects import COMPUTED, same

import ptcore as pt
from ptcore._sizes.symbolic import ShapeEnv

pytestmark = [pytest.mark.core, pytest.mark.filterwarnings("ignore:.*deprecated:FutureWarning"),
              pytest.mark.filterwarnings("ignore:kl_div. reduction='mean' divides:UserWarning")]

ARCHIVE = zipfile.ZipFile(old.FOLDER / "written.zip")
PATHS = [line.split("\t") for line in (old.FOLDER / "old_paths.tsv").read_text().splitlines()[1:]]


def read(name):
    return ARCHIVE.read(old.file_of(name))


# -- what was written is read --------------------------------------------------------------------

COMPUTING = ("Adafactor", "Muon", "weight_norm", "spectral_norm", "orthogonal")     # names of such objects end so


@pytest.mark.parametrize("name", old.OBJECTS)
def test_pickles(name):
    found = pickle.loads(read(name))
    if name == "state_dict_CyclicLR":           # PyTorch's name for it; ``load_state_dict`` takes both
        schedule = old.made("schedule_CyclicLR")
        schedule.load_state_dict(found)
        found = schedule.state_dict()
    made = old.made(name)
    if name.endswith("ReduceLROnPlateau"):      # later schedules keep PyTorch's name for the worst number, too
        (made if isinstance(made, dict) else vars(made)).pop("mode_worse")
    same(made, found, COMPUTED if name.endswith(COMPUTING) else "object")


@pytest.mark.parametrize("name", [f"nn_{name}" for name in old._module_table.MODULES
                                  if not name.startswith(("Lazy", *old._module_table.RANDOM))])
def test_modules_compute_what_they_did(name):
    found, made = pickle.loads(read(name)), old.made(name)
    results = []
    for module in (made, found):
        results.append(module(*old._module_table.given(name[3:])))
    same(*results)


@pytest.mark.parametrize("name", [name for name in old.GRAPHS if name.startswith("graph_module")])
def test_graphs_compute_what_they_did(name):
    found, made = pickle.loads(read(name)), old.made(name)
    same(made(old.X), found(old.X))
    found.graph.lint()
    assert found.code == made.code


@pytest.mark.parametrize("name", old.SAVED)
def test_saved(name, tmp_path):
    (tmp_path / name).write_bytes(read(name))
    pt.manual_seed(0)
    same(old.SAVED[name](), pt.load(tmp_path / name))


@pytest.mark.parametrize("name", old.PROGRAMS)
def test_programs(name):
    make, arguments = old.PROGRAMS[name]
    found, made = pt.jit.load(io.BytesIO(read(name))), make()
    for _ in range(2):                                      # what a module counts goes on
        same(made(*arguments), found(*arguments))
    if isinstance(made, pt.nn.Module):
        same(dict(made.state_dict()), dict(found.state_dict()))


@pytest.mark.parametrize("name", ["optim_SGD", "optim_Adam", "optim_LBFGS", "schedule_OneCycleLR"])
def test_training_goes_on(name):
    """Two more steps of what was read and of what was made."""
    results = []
    for made in (old.made(name), pickle.loads(read(name))):
        optimizer = getattr(made, "optimizer", made)
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        for _ in range(2):
            for p in parameters:
                p.grad = p.detach() / 4
            optimizer.step(lambda: pt.tensor(1.0))
            if made is not optimizer:
                made.step()
        results.append((parameters, optimizer.state_dict()))
    same(*results)


def test_loaders_go_on():
    loader = pt.utils.data.DataLoader(old.dataset(), batch_size=2, shuffle=True)
    loader.load_state_dict(pickle.loads(read("loader_state_shuffled")))
    pt.manual_seed(3)
    again = pt.utils.data.DataLoader(old.dataset(), batch_size=2, shuffle=True)
    same([*again][1:], [*loader])


# -- names ---------------------------------------------------------------------------------------

def by_name(module, name):
    """The pickle of a class or a function."""
    texts = [b"X" + struct.pack("<I", len(text.encode())) + text.encode() for text in (module, name)]
    return b"\x80\x04" + b"".join(texts) + b"\x93."


@pytest.mark.parametrize("module", sorted({module for module, _, _ in PATHS}))
def test_names(module):
    """A pickle finds each name where it was, and what it finds is the public one."""
    for _, name, public in [row for row in PATHS if row[0] == module]:
        found = pickle.loads(by_name(module, name))
        if public:
            path, _, last = public.rpartition(".")
            assert found is getattr(importlib.import_module(path), last), (module, name)


def test_the_table_of_names_is_complete():
    named = set()
    for name in old.OBJECTS:
        reader = old.Reader(read(name))
        reader.load()
        named |= {pair for pair in reader.named if pair[0].partition(".")[0] == "ptcore"}
    table = {(module, name) for module, name, _ in PATHS}
    assert named <= table and len(table) == len(PATHS) > 2000
    assert {(module, name) for module, name, public in PATHS if not public} <= named
    # The other formats have PyTorch's names alone.
    for name in ("more.pt", "stream.pt"):
        with zipfile.ZipFile(io.BytesIO(read(name))) if name == "more.pt" else io.BytesIO(read(name)) as file:
            data = file.read("archive/data.pkl") if name == "more.pt" else file.read()
        for op, argument, _ in pickletools.genops(data):
            assert op.name != "GLOBAL" or argument.split(".")[0].split(" ")[0] in (
                "torch", "collections", "_codecs", "numpy", "__builtin__"), argument


# -- nothing is missing --------------------------------------------------------------------------

# Public classes of which no object is in the table, by the reason.
LEFT_OUT = {
    "their objects are tensors": """BFloat16Tensor BoolTensor ByteTensor CharTensor DoubleTensor FloatTensor HalfTensor
        IntTensor LongTensor ShortTensor autograd.Variable nn.Buffer cuda.BFloat16Tensor cuda.BoolTensor
        cuda.ByteTensor cuda.CharTensor cuda.DoubleTensor cuda.FloatTensor cuda.HalfTensor cuda.IntTensor
        cuda.LongTensor cuda.ShortTensor""",
    "their objects are dicts": "nn.attention.flex_attention.FlexKernelOptions",
    "places in a graph, whose nodes are not pickled": "autograd.graph.GradientEdge",
    "contexts, which say what holds in their block": """accelerator.device_index autograd.detect_anomaly
        autograd.forward_ad.dual_level autograd.graph.allow_mutation_on_saved_tensors
        autograd.graph.disable_saved_tensors_hooks autograd.graph.save_on_cpu autograd.graph.saved_tensors_hooks
        autograd.profiler.emit_itt autograd.profiler.emit_nvtx autograd.profiler.record_function
        autograd.set_detect_anomaly autograd.set_multithreading_enabled autograd.set_source_lines compiler.set_stance
        cpu.StreamContext cuda.StreamContext cuda.device cuda.device_of enable_grad inference_mode jit.strict_fusion
        jit.optimized_execution utils.benchmark.set_torch_threads
        nn.utils.parametrize.cached no_grad profiler.itt.range random.use serialization.safe_globals
        serialization.set_default_mmap_options serialization.skip_data set_grad_enabled
        utils.checkpoint.SelectiveCheckpointContext utils.restart.checkpoint_on_signal""",
    "bases, of which users make classes": """autograd.Function autograd.profiler_util.FormattedTimesMixin
        fx.proxy.TracerBase nn.modules.lazy.LazyModuleMixin nn.utils.prune.BasePruningMethod
        optim.lr_scheduler.LRScheduler""",
    "what a call needs while it runs": """autograd.function.FunctionCtx autograd.graph.Node
        autograd.profiler.EnforceUnique autograd.profiler.KinetoStepTracker autograd.profiler.MemRecordsAcc
        autograd.profiler_util.EventMetadata autograd.profiler_util.StringTable
        fx.experimental.proxy_tensor.ProxyTracer fx.Proxy fx.PythonCode fx.proxy.Attribute
        fx.proxy.GraphAppendingTracer futures.Future jit.Future profiler.ExecutionTraceObserver
        multiprocessing.ProcessContext multiprocessing.SpawnContext utils.checkpoint.CheckpointFunction
        utils.cpp_extension.BuildExtension utils.hooks.BackwardHook""",
    "of this process, which another one has not": """SymBool SymFloat SymInt cuda.CUDAGraph
        cuda.CUDAPluggableAllocator cuda.Event cuda.ExternalStream cuda.MemPool cuda.Stream cuda.graph
        backends.cuda.cuFFTPlanCache backends.cuda.cuFFTPlanCacheManager cpu.Event library.CustomOpDef library.Library
        monitor.EventHandlerHandle monitor.Stat monitor.TensorboardEventHandler nn.parallel.DistributedDataParallel
        utils.benchmark.Timer
        utils.tensorboard.SummaryWriter""",
    "a pickle of that commit could not be read": "cuda.CudaError",
    "jit.save writes them": "jit.CompilationUnit jit.RecursiveScriptModule jit.ScriptFunction",
    "tensors have them": """storage.UntypedStorage storage.TypedStorage BFloat16Storage BoolStorage
        ByteStorage CharStorage ComplexDoubleStorage ComplexFloatStorage
        DoubleStorage FloatStorage HalfStorage IntStorage LongStorage
        ShortStorage""",
    "their names are all they are": """cuda.cudaStatus distributions.constraints.dependent_property library.tag.Tag
        distributions.utils.lazy_property utils.checkpoint.DefaultDeviceType""",
}


class Kinds(pickle.Pickler):
    """Python's pickler, which notes the classes of what it writes."""

    def __init__(self):
        super().__init__(io.BytesIO(), 4)
        self.found = set()

    def reducer_override(self, x):
        self.found.add(type(x))
        return NotImplemented


def test_nothing_is_missing():
    """Each public class has an object in the table, or a reason not to."""
    writer = Kinds()
    for name in old.OBJECTS:
        writer.dump(old.made(name))
    classes = {value: path.removeprefix("ptcore.") for path, value in reversed([*old.public()])
               if isinstance(value, type) and str(value.__module__).partition(".")[0] == "ptcore"}
    named = [path for text in LEFT_OUT.values() for path in text.split()]
    reasons = {value for path, value in old.public() if path.removeprefix("ptcore.") in named}
    missing = {path for value, path in classes.items() if value not in writer.found | reasons}
    assert not missing, "these need an object in _old_objects.py, of a folder of their own, or a reason"
    assert len(named) == len({*named}) and len(classes) > 400
    assert {path.removeprefix("ptcore.") for path, _ in old.public()} >= {*named}
    assert not reasons & writer.found


@pytest.mark.parametrize("make", [
    pt.no_grad, pt.inference_mode, pt.enable_grad, lambda: pt.futures.Future(),
    lambda: pt.jit.script(old.step), lambda: pt.jit.trace(pt.nn.ReLU(), pt.ones(2)),
    lambda: (old.ramp(2).requires_grad_() * 2).grad_fn, lambda: ShapeEnv().symbol(3)])
def test_what_is_not_pickled(make):
    with pytest.raises(TypeError, match=r"cannot (be )?pickle|is not pickled"):
        pickle.dumps(make())


def test_errors_of_the_device_go_to_other_processes():
    error = pickle.loads(pickle.dumps(pt.cuda.CudaError(2)))
    assert type(error) is pt.cuda.CudaError and str(error) == str(pt.cuda.CudaError(2)) and "(2)" in str(error)


def test_parametrized_modules_are_not_pickled():
    net = pt.nn.utils.parametrizations.weight_norm(pt.nn.Linear(2, 2))
    with pytest.raises(RuntimeError, match=r"only supported through state_dict\(\)"):
        pickle.dumps(net)


# -- the comparison sees differences -------------------------------------------------------------

@pytest.mark.parametrize(("a", "b"), [
    (1, 2), (1, 1.0), (1, True), (0.0, -0.0), ("a", "b"), ([1], [1, 2]), ([1], (1,)), ({"a": 1}, {"b": 1}), ({1}, {2}),
    ({"a": 1, "b": 2}, {"b": 2, "a": 1}), (pt.ones(2), pt.zeros(2)), (pt.ones(2), pt.ones(2).double()),
    (pt.ones(2, 1), pt.ones(1, 2)), (pt.ones(2, 2), pt.ones(2, 2).T), (pt.ones(2), pt.ones(2, requires_grad=True)),
    (pt.ones(2), pt.nn.Parameter(pt.ones(2), False)), (pt.tensor(0.0), pt.tensor(-0.0)), (pt.relu, pt.exp),
    (pt.Generator().manual_seed(1), pt.Generator().manual_seed(2)), (pt.nn.ReLU(), pt.nn.ReLU(inplace=True)),
    (pt.nn.Linear(1, 1), pt.nn.Linear(1, 1, bias=False)), (ValueError("a"), ValueError("b")), (pt.float32, pt.float64),
    (pt.device("cpu"), pt.device("meta")), (pt.nn.ReLU(), pt.nn.ReLU().eval()), (int, float)], ids=repr)
def test_differences_are_seen(a, b):
    with pytest.raises(AssertionError):
        same(a, b)
    same([a, {"a": b}], [a, {"a": b}])
