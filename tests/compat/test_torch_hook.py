"""ptcore under the name torch: what the hook finds, and small programs that run under it as they stand."""
import json
import subprocess
import sys
import textwrap

import pytest

pytestmark = pytest.mark.core


def run(tmp_path, text, *arguments, before=(), check=True):
    """What a program prints that runs in a process of its own, by ``python -m ptcore.compat.torch``."""
    script = tmp_path / "program.py"
    script.write_text(textwrap.dedent(text))
    out = subprocess.run([sys.executable, *before, "-W", "error", "-m", "ptcore.compat.torch", str(script), *arguments],
                         capture_output=True, text=True, cwd=tmp_path, timeout=120)
    if check:
        assert out.returncode == 0, out.stderr
        return out.stdout
    return out


def plain(tmp_path, text):
    """What a program prints that installs the hook itself, or does without."""
    script = tmp_path / "plain.py"
    script.write_text(textwrap.dedent(text))
    out = subprocess.run([sys.executable, "-W", "error", str(script)], capture_output=True, text=True, cwd=tmp_path,
                         timeout=120)
    assert out.returncode == 0, out.stderr
    return out.stdout


def test_modules_are_the_same_objects(tmp_path):
    run(tmp_path, """
        import importlib, sys
        import torch, torch.nn.functional as F, torch.utils.data, torch.nn.modules.linear, torch.optim.adam
        from torch.nn.utils.weight_norm import weight_norm
        from torch.nn.modules.module import _IncompatibleKeys
        from torch import nn, autograd
        from torch.optim import lr_scheduler
        import ptcore
        for name in ("nn", "nn.functional", "optim", "utils.data", "autograd", "linalg", "fft", "special", "jit",
                     "cuda", "nn.utils", "nn.utils.rnn", "utils.data.dataloader", "autograd.function",
                     "optim.lr_scheduler"):
            module = importlib.import_module("torch." + name)
            assert module is importlib.import_module("ptcore." + name), name
            assert module.__spec__.name == module.__name__ == "ptcore." + name
        assert F is torch.nn.functional and nn is torch.nn
        for name in ("Tensor", "Size", "dtype", "float32", "relu", "no_grad", "vmap", "save", "device"):
            assert getattr(torch, name) is getattr(ptcore, name), name
        assert torch.nn.utils.weight_norm is weight_norm and callable(weight_norm)
        assert torch.torch is torch is sys.modules["torch"]
        assert not [m for n, m in sys.modules.items() if n.startswith("torch.") and
                    m.__name__.startswith("torch.nn")]
    """)


def test_a_copy_never_comes_into_being(tmp_path):
    run(tmp_path, """
        import importlib, importlib.util
        import torch
        for name in ("torch._core", "torch._shape", "torch.nn.modules._checks", "torch._build", "torch.nowhere"):
            try:
                importlib.import_module(name)
            except ModuleNotFoundError as error:
                assert error.name == name, error
            else:
                raise AssertionError(name)
        assert importlib.util.find_spec("torch.nowhere") is None
        assert not hasattr(torch, "nowhere") and not hasattr(torch, "_core") and not hasattr(torch, "_state")
    """)


def test_version_and_metadata(tmp_path):
    run(tmp_path, """
        import importlib.metadata, importlib.util
        spec = importlib.util.find_spec("torch")
        assert spec.name == "torch" and spec.origin and spec.submodule_search_locations
        assert importlib.util.find_spec("torch.nn") is not None
        assert importlib.metadata.version("torch") == "2.13.0"
        assert importlib.metadata.distribution("torch").metadata["Name"] == "torch"
        assert importlib.metadata.version("numpy") != "2.13.0"
        import torch
        assert torch.__version__ == "2.13.0" and isinstance(torch.__version__, str)
        assert torch.__version__ >= "2.4" and torch.__version__ >= (1, 10) and torch.__version__ < "2.14.0a0"
        assert torch.__version__.split(".") == ["2", "13", "0"]
        assert torch.version.__version__ == "2.13.0" and torch.version.cuda is None and torch.version.hip is None
        assert torch.__spec__.name == "torch" and torch.__file__ and torch.__path__
        import inspect
        assert "PyTorch" in inspect.getsource(torch)
        assert "class Linear" in inspect.getsource(torch.nn.Linear)
        assert "Tensor" in dir(torch) and "distributed" in dir(torch)
        namespace = {}
        exec("from torch import *", namespace)
        assert namespace["Tensor"] is torch.Tensor
    """)


@pytest.mark.parametrize("other, order", [
    ("2.13", 0), ("2.13.0+cpu", 0), ("2.13.0.dev20260101", 1), ("2.13.0a0+git", 1), ("2.13.0rc1", 1), ("2.4", 1),
    ("2.13.1", -1), ("10", -1), ((2, 13), 0), ((2, 14), -1), ((1, 8, 1), 1), ("v2.12.9", 1)])
def test_versions_compare_as_versions(other, order):
    from ptcore.compat.torch.torch_version import TorchVersion
    version = TorchVersion("2.13.0")
    assert [version < other, version == other, version > other] == [order < 0, order == 0, order > 0]
    assert [version <= other, version != other, version >= other] == [order <= 0, order != 0, order >= 0]


def test_packaging_accepts_the_version():
    version = pytest.importorskip("packaging.version")
    from ptcore.compat.torch.torch_version import __version__
    assert version.parse(__version__) == version.Version("2.13.0")
    assert __version__ < version.Version("3")


def test_install_and_uninstall(tmp_path):
    plain(tmp_path, """
        import sys
        import ptcore
        assert not any("compat" in name for name in sys.modules)
        from ptcore.compat import torch as hook
        assert not hook.is_installed()
        hook.install()
        hook.install()
        assert hook.is_installed() and len(sys.meta_path) == len(set(map(id, sys.meta_path)))
        import torch, torch.nn.quantized
        import torch.distributed as dist
        before = torch
        hook.install()
        import torch
        assert torch is before
        hook.uninstall()
        hook.uninstall()
        assert "torch" not in sys.modules and not hook.is_installed() and not hasattr(ptcore.nn, "quantized")
        hook.install()
        import torch
        assert torch.nn is ptcore.nn
    """)


def test_pytorch_itself_is_not_replaced(tmp_path):
    plain(tmp_path, """
        import sys, types
        sys.modules["torch"] = types.ModuleType("torch")
        import ptcore.compat.torch
        try:
            ptcore.compat.torch.install()
        except RuntimeError as error:
            assert "imported already" in str(error)
        else:
            raise AssertionError
        assert not ptcore.compat.torch.is_installed()
    """)


@pytest.mark.outer
def test_ways_to_run(tmp_path):
    text = """
        import sys, os, inspect
        import torch
        assert __name__ == "__main__" and sys.modules["__main__"].__dict__ is globals() and __spec__ is None
        assert __file__ == sys.argv[0] and sys.path[0] == os.path.dirname(os.path.realpath(__file__))
        def f():
            return 1
        assert inspect.getsource(f).startswith("def f")
        print(sys.argv[1:])
    """
    assert run(tmp_path, text, "-x", "y") == "['-x', 'y']\n"
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("")
    (tmp_path / "package" / "__main__.py").write_text(
        "import sys, torch\nprint(__spec__.name, sys.argv[1:], __name__)\n")
    out = subprocess.run([sys.executable, "-m", "ptcore.compat.torch", "-m", "package", "-m", "b"], capture_output=True,
                         text=True, cwd=tmp_path)
    assert out.stdout == "package.__main__ ['-m', 'b'] __main__\n", out.stderr
    out = subprocess.run([sys.executable, "-m", "ptcore.compat.torch", "-c", "import sys, torch; print(sys.argv)",
                          "-c"], capture_output=True, text=True, cwd=tmp_path)
    assert out.stdout == "['-c', '-c']\n", out.stderr
    # As Python itself: the folder one is in is the first place of modules, where the path is not a safe one.
    for safe in ([], ["-P"]):
        shown = [subprocess.run([sys.executable, *safe, *hook, "-c", "import sys; print(sys.path[:2])"], cwd=tmp_path,
                                capture_output=True, text=True).stdout for hook in ([], ["-m", "ptcore.compat.torch"])]
        assert shown[0] == shown[1]
    for wrong in ((), ("-m",), ("nowhere.py",)):
        out = subprocess.run([sys.executable, "-m", "ptcore.compat.torch", *wrong], capture_output=True, text=True,
                             cwd=tmp_path)
        assert out.returncode in (1, 2) and "Traceback" not in out.stderr and out.stderr
    assert run(tmp_path, "import sys; sys.exit(5)", check=False).returncode == 5


def test_training_loop(tmp_path):
    out = run(tmp_path, """
        import torch
        import torch.nn as nn
        import torch.nn.functional as F
        from torch.optim import Adam
        from torch.utils.data import DataLoader, TensorDataset
        torch.manual_seed(0)
        x = torch.randn(64, 3)
        y = x @ torch.tensor([[1.0], [2.0], [-1.0]])
        model = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1))
        optimizer = Adam(model.parameters(), lr=0.02)
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        for epoch in range(60):
            for a, b in DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True):
                loss = F.mse_loss(model(a.to(device)), b)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        print(loss.item())
    """)
    assert float(out) < 0.5


SPAWNED = """
    import multiprocessing, sys
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, Dataset

    class Squares(Dataset):
        def __len__(self):
            return 6

        def __getitem__(self, i):
            import torch
            return torch.tensor(i) ** 2, torch.__version__

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(2, 2)

    def work(queue, net):
        import torch
        queue.put((type(net).__module__, torch.__version__, net.a.weight.sum().item()))

    if __name__ == "__main__":
        method = sys.argv[1]
        loader = DataLoader(Squares(), batch_size=3, num_workers=2, multiprocessing_context=method)
        print([x[0].tolist() for x in loader])
        context = multiprocessing.get_context(method)
        queue = context.Queue()
        net = Net()
        process = context.Process(target=work, args=(queue, net))
        process.start()
        name, version, total = queue.get(timeout=60)
        process.join()
        assert version == "2.13.0" and total == net.a.weight.sum().item()
"""


@pytest.mark.parametrize("method", ["spawn", "forkserver", "fork"])
@pytest.mark.outer
def test_children_have_the_hook(tmp_path, method):
    out = run(tmp_path, SPAWNED, method)
    assert json.loads(out) == [[0, 1, 4], [9, 16, 25]]


@pytest.mark.outer
def test_pickles_are_ptcores(tmp_path):
    run(tmp_path, """
        import pickle, torch
        from torch import nn
        model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
        data = pickle.dumps((model, torch.ones(2), torch.float32, torch.Size([1, 2]), torch.optim.SGD))
        assert b"ptcore" in data
        with open("model.pickle", "wb") as f:
            f.write(data)
        torch.save(model.state_dict(), "model.pt")
        assert torch.load("model.pt").keys() == model.state_dict().keys()
    """)
    plain(tmp_path, """
        import pickle, sys
        with open("model.pickle", "rb") as f:
            model, x, dtype, size, sgd = pickle.load(f)
        import ptcore
        assert "torch" not in sys.modules and type(model) is ptcore.nn.Sequential and sgd is ptcore.optim.SGD
        with open("other.pickle", "wb") as f:
            pickle.dump(ptcore.nn.Linear(2, 2), f)
    """)
    run(tmp_path, """
        import pickle, torch
        with open("other.pickle", "rb") as f:
            assert type(pickle.load(f)) is torch.nn.Linear
    """)


def test_annotations_resolve(tmp_path):
    run(tmp_path, """
        import typing
        from typing import Optional
        import torch
        from torch import nn, Tensor
        class Net(nn.Module):
            size: int
            weight: "torch.Tensor"
            other: Optional[Tensor]
            def forward(self, x: torch.LongTensor, d: torch.device = None, dt: "torch.dtype" = torch.float32,
                        s: torch.Size | None = None, g: Optional[torch.FloatTensor] = None,
                        m: torch.memory_format = None, gen: torch.Generator | None = None,
                        n: torch.SymInt | int = 1) -> torch.Tensor | None:
                return x
        hints = typing.get_type_hints(Net)
        assert hints["weight"] is torch.Tensor, hints
        assert typing.get_type_hints(Net.forward)["dt"] is torch.dtype
        for name in ("Linear", "Conv2d", "LSTM", "Module", "Parameter", "MultiheadAttention", "BatchNorm2d"):
            typing.get_type_hints(getattr(nn, name))
        for cls in (torch.optim.Adam, torch.utils.data.Dataset, torch.autograd.Function, torch.Tensor):
            typing.get_type_hints(cls)
        for name in nn.modules.__all__:
            typing.get_type_hints(getattr(nn, name))
    """)


def test_notebooks(tmp_path):
    plain(tmp_path, """
        from ptcore.compat.torch import install
        install()
        import torch
        x = torch.ones(2, requires_grad=True)
        (x ** 2).sum().backward()
        assert x.grad.tolist() == [2, 2]
    """)


def test_what_it_costs(tmp_path):
    """Modules, but Python's own, that ``import torch`` loads beside those of ``import ptcore``."""
    out = plain(tmp_path, """
        import sys
        import ptcore
        before = set(sys.modules)
        from ptcore.compat.torch import install
        install()
        import torch
        new = [m for m in set(sys.modules) - before if m.partition(".")[0] not in sys.stdlib_module_names]
        print(len(new), "multiprocessing.spawn" in sys.modules)
    """)
    count, spawn = out.split()
    assert int(count) <= 8 and spawn == "False", out


@pytest.mark.outer
def test_what_packages_ask_at_import(tmp_path):
    """Names that stand in annotations, tables and guards of packages; they raise where they are used."""
    run(tmp_path, """
        import torch
        from torch.serialization import FILE_LIKE, MAP_LOCATION
        from torch.utils import _pytree
        from torch.utils.data.dataloader import _BaseDataLoaderIter, _MultiProcessingDataLoaderIter
        from torch.fx.experimental.proxy_tensor import get_proxy_mode, make_fx
        from torch._subclasses.fake_tensor import is_fake
        from torch.hub import _get_torch_home

        assert str(torch.float8_e4m3fn) == "torch.float8_e4m3fn" and torch.sparse_coo != torch.strided
        assert torch.ones(1).layout not in (torch.sparse_coo, torch.jagged) and torch.ones(1).dtype != torch.float8_e5m2
        assert torch.finfo(torch.float8_e4m3fn).max == 448.0 and torch.finfo(torch.float8_e5m2).min == -57344.0
        assert torch.finfo(torch.float32).bits == 32 and torch.finfo().max > 1e38
        assert isinstance(torch.ones(1), torch._C._TensorMeta) is False and type(torch.Tensor) is torch._C._TensorMeta
        assert "threads" in torch.__config__.parallel_info() and torch.__config__.show()
        assert not is_fake(torch.ones(1)) and get_proxy_mode() is None
        seen = []
        make_fx(lambda x: seen.append(get_proxy_mode() is not None) or x + 1)(torch.ones(1))
        assert seen == [True]
        assert type(iter(torch.utils.data.DataLoader([1, 2]))) is _BaseDataLoaderIter
        assert _pytree._dict_flatten_with_keys({"a": 1}) == ([(_pytree.MappingKey("a"), 1)], ["a"])
        assert _pytree._get_node_type([]) is list
        for call, error in ((lambda: torch.ops.load_library("x.so"), OSError),
                            (torch.cuda.CUDAGraph, RuntimeError),
                            (lambda: torch.ones(1).to(torch.float4_e2m1fn_x2), TypeError),
                            (lambda: torch._C.PyTorchFileReader("x"), NotImplementedError)):
            try:
                call()
            except error:
                continue
            raise AssertionError(call)
    """)


def test_names_that_are_printed(tmp_path):
    """dtypes, sizes and memory formats are torch's where programs say torch, and graphs with them run on."""
    run(tmp_path, """
        import torch
        from torch.fx.experimental.proxy_tensor import make_fx
        assert str(torch.float32) == "torch.float32" and getattr(torch, str(torch.int8).split(".")[1]) is torch.int8
        assert repr(torch.ones(2, 3).shape) == "torch.Size([2, 3])"
        assert str(torch.channels_last) == "torch.channels_last"
        assert "dtype=torch.float64" in repr(torch.ones(1, dtype=torch.float64))
        def f(x):
            return x.to(torch.float64) + torch.zeros(2, dtype=torch.int32)
        g = make_fx(f)(torch.ones(2))
        assert g(torch.ones(2)).dtype is torch.float64 and torch.fx.symbolic_trace(f)(torch.ones(2)).tolist() == [1, 1]
        assert "call_function[target=torch.neg]" in str(torch.fx.symbolic_trace(lambda x: torch.neg(x)).graph)
    """)
    plain(tmp_path, """
        import ptcore
        from ptcore.compat.torch import install, uninstall
        install()
        assert str(ptcore.float32) == "torch.float32"
        uninstall()
        assert str(ptcore.float32) == "ptcore.float32" and repr(ptcore.ones(1).shape) == "ptcore.Size([1])"
    """)


@pytest.mark.outer
def test_what_more_packages_ask(tmp_path):
    """Names and habits that packages beside those of ``test_packages.py`` rest on."""
    run(tmp_path, """
        import sys
        import torch
        from torch.serialization import DEFAULT_PROTOCOL
        from torch.utils._foreach_utils import _group_tensors_by_device_and_dtype
        from torch.utils.data._utils.collate import np_str_obj_array_pattern
        from torch.jit.annotations import BroadcastingList2, List
        from torch.utils.model_zoo import tqdm
        from torch._ops import OpOverload, OpOverloadPacket
        import torch._custom_ops, torch._library.custom_ops, torch._tensor_str

        x, y = torch.ones(2), torch.ones(3, dtype=torch.float64)
        found = _group_tensors_by_device_and_dtype([[x, y, x], [y, y, y]], with_indices=True)
        assert found[x.device, torch.float32] == ([[x, x], [y, y]], [0, 2])
        assert DEFAULT_PROTOCOL == 2 and np_str_obj_array_pattern.search("U") and issubclass(torch.Future, object)
        assert BroadcastingList2[int] == list[int] and sys.getsizeof(x.untyped_storage()) >= 64 + 8
        assert torch._tensor_str._add_suffixes("f([1]", ["a=1"], 2, False) == "f([1], a=1)"
        assert not torch.is_autocast_enabled("mps") and not torch.amp.is_autocast_available("xpu")
        assert isinstance(torch.ops.aten.mm.default, OpOverload) and isinstance(torch.ops.aten.mm, OpOverloadPacket)
        assert torch.complex32 != torch.complex64 and isinstance(torch.strided, torch.layout)

        class Wrapper(torch.optim.Optimizer):       # which never calls __init__ of its base
            def __init__(self, inner):
                self.inner = inner
            def step(self):
                return self.inner.step()
        w = torch.nn.Parameter(torch.ones(1))
        w.grad = torch.ones(1)
        Wrapper(torch.optim.SGD([w], 0.5)).step()
        assert w.item() == 0.5

        keys = torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastCPU) | torch._C.DispatchKeySet(
            torch._C.DispatchKey.AutocastXPU)
        with torch.autocast("cpu"):
            with torch._C._ExcludeDispatchKeyGuard(keys):
                assert not torch.is_autocast_enabled("cpu")
            assert torch.is_autocast_enabled("cpu")
        with torch._C._AutoDispatchBelowAutograd():
            pass
        assert str(torch._C.parse_schema("a::b(Tensor x) -> Tensor").arguments[0].type) == "Tensor"
    """)


def test_random_numbers_are_pytorch_s(tmp_path):
    """Values of PyTorch 2.13; without the hook the numbers are ptcore's again."""
    run(tmp_path, """
        import torch
        torch.manual_seed(0)
        assert torch.rand(3).tolist() == [0.49625658988952637, 0.7682217955589294, 0.08847743272781372]
        assert torch.get_rng_state().shape == (5056,) and torch.default_generator.kind == "pytorch"
        assert torch.initial_seed() == 0 and torch.Generator().initial_seed() == 67280421310721
        torch.manual_seed(0)
        weight = torch.nn.Linear(3, 1).weight
        assert weight.tolist() == [[-0.004322517663240433, 0.3097158372402191, -0.4751853346824646]]
        state = torch.random.get_rng_state()
        first = torch.randn(20)
        torch.random.set_rng_state(state)
        assert torch.equal(torch.randn(20), first)

        import ptcore
        from ptcore.compat.torch import install, uninstall
        uninstall()
        assert ptcore.default_generator.kind == "ptcore"
        install()
        assert ptcore.default_generator.kind == "pytorch"
        ptcore.random.use("ptcore")
        install()                       # a second call changes nothing
        assert ptcore.default_generator.kind == "ptcore"
    """)


def test_safetensors(tmp_path):
    """Its own reader and writer, which ask for storages of files."""
    run(tmp_path, """
        import torch
        from safetensors.torch import load, load_file, load_model, safe_open, save, save_file, save_model
        tensors = {"a": torch.arange(6.0).reshape(2, 3), "b": torch.ones(2, dtype=torch.bfloat16),
                   "c": torch.tensor([True, False]), "d": torch.tensor(3), "e": torch.zeros(0, 2)}
        save_file(tensors, "t.safetensors", metadata={"x": "y"})
        for found in (load_file("t.safetensors"), load(save(tensors))):
            assert found.keys() == tensors.keys()
            for name, x in found.items():
                assert type(x) is torch.Tensor and x.dtype is tensors[name].dtype and torch.equal(x, tensors[name])
        with safe_open("t.safetensors", "pt") as f:
            assert f.metadata() == {"x": "y"} and f.get_tensor("d").item() == 3
            assert f.get_slice("a")[1:, :2].tolist() == [[3, 4]]
        net, other = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
        save_model(net, "m.safetensors")
        load_model(other, "m.safetensors")
        assert torch.equal(net.weight, other.weight)
    """)
