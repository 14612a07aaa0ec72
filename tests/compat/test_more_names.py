"""Names that PyTorch's modules have and that stand elsewhere here, or are private there and programs import them."""
import subprocess
import sys

import pytest

pytestmark = pytest.mark.core


def run(text):
    """Runs a text under the hook."""
    out = subprocess.run([sys.executable, "-P", "-W", "error", "-m", "ptcore.compat.torch", "-c", text],
                         capture_output=True, text=True, timeout=120)
    assert out.returncode == 0, out.stderr


@pytest.mark.outer
def test_every_name_is_there():
    run("""
import importlib, sys
import ptcore.nn
from ptcore.compat import torch as hook
from ptcore.compat.torch import _more
import torch
assert torch.nn.modules.activation.PReLU is torch.nn.PReLU        # of modules that came with their package
for path, sources in _more.MORE.items():
    module = importlib.import_module(f"torch.{path}")
    for words in sources.values():
        for word in words.split():
            assert hasattr(module, word.partition("=")[0]), (path, word)
    assert not hasattr(module, "no_such_name")
from torch.nn.modules.activation import MultiheadAttention
from torch.nn.modules.instancenorm import LazyInstanceNorm1d
from torch.nn.modules.batchnorm import LazyBatchNorm1d
assert ptcore.nn.modules.module._addindent and ptcore.nn.utils.clip_grad_norm_
hook.uninstall()
assert not hasattr(ptcore.nn.modules.module, "_addindent") and not hasattr(ptcore.utils.data, "_DatasetKind")
assert ptcore.nn.functional.relu and ptcore.utils.data.DataLoader
try:
    ptcore.nn.functional.no_such_name
except AttributeError as error:
    assert "no_such_name" in str(error)
""")


def test_bases():
    run("""
import torch
from torch import nn
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.modules.conv import _ConvTransposeNd, _pair
from torch.nn.modules.dropout import _DropoutNd
from torch.nn.modules.padding import _ReflectionPadNd, _ConstantPadNd
from torch.nn.modules.pooling import _AdaptiveAvgPoolNd, _AvgPoolNd, _MaxPoolNd
assert isinstance(nn.BatchNorm2d(1), _NormBase) and isinstance(nn.InstanceNorm1d(1), _NormBase)
assert not isinstance(nn.LayerNorm(1), _NormBase) and isinstance(nn.ConvTranspose1d(1, 1, 1), _ConvTransposeNd)
assert isinstance(nn.ReflectionPad2d(1), _ReflectionPadNd) and not isinstance(nn.ReplicationPad2d(1), _ReflectionPadNd)
assert isinstance(nn.ConstantPad1d(1, 0.0), _ConstantPadNd) and issubclass(nn.AvgPool3d, _AvgPoolNd)
assert isinstance(nn.MaxPool1d(2), _MaxPoolNd) and isinstance(nn.AdaptiveAvgPool2d(1), _AdaptiveAvgPoolNd)
class Half(_DropoutNd):
    def forward(self, x):
        return x / 2 if self.training else x
half = Half(p=0.3)
assert half.p == 0.3 and half(torch.ones(1)).item() == 0.5 and half.eval()(torch.ones(1)).item() == 1
try:
    _AvgPoolNd()
except NotImplementedError as error:
    assert "_AvgPoolNd" in str(error)
else:
    raise AssertionError
""")


def test_wrapper_subclasses_are_tensors():
    run("""
import torch
from torch.utils._python_dispatch import is_traceable_wrapper_subclass, is_traceable_wrapper_subclass_type
class Flat:
    def __tensor_flatten__(self):
        return [], None
    @staticmethod
    def __tensor_unflatten__(inner, meta, size, stride):
        return None
class Wrapped(Flat, torch.Tensor):
    pass
wrapped = torch.ones(2).as_subclass(Wrapped)
assert is_traceable_wrapper_subclass(wrapped) and is_traceable_wrapper_subclass_type(Wrapped)
assert not is_traceable_wrapper_subclass(Flat()) and not is_traceable_wrapper_subclass_type(Flat)
assert not is_traceable_wrapper_subclass(torch.ones(2)) and not is_traceable_wrapper_subclass_type(torch.Tensor)
""")


def test_an_optimiser_as_pytorch_writes_them():
    run("""
import torch
from torch.optim.optimizer import (Optimizer, ParamsT, _use_grad_for_differentiable, _get_value, _stack_if_compiling,
                                   _default_to_fused_or_foreach, _differentiable_doc, _foreach_doc, _view_as_real,
                                   _disable_dynamo_if_unsupported, _get_scalar_dtype)
class Plain(Optimizer):
    def __init__(self, params: ParamsT, lr=0.1, foreach=None, differentiable=False):
        super().__init__(params, dict(lr=lr, foreach=foreach, differentiable=differentiable))
    @_use_grad_for_differentiable
    def step(self, closure=None):
        assert not torch.is_grad_enabled()
        for group in self.param_groups:
            if group["foreach"] is None:
                _, group["foreach"] = _default_to_fused_or_foreach(group["params"], False)
            assert group["foreach"] is False
            for p in group["params"]:
                state = self.state[p]
                if not state:
                    state["step"] = torch.zeros((), dtype=_get_scalar_dtype())
                state["step"] += 1
                alone(p, p.grad, group["lr"] * _stack_if_compiling(_get_value(state["step"])))
@_disable_dynamo_if_unsupported(single_tensor_fn=None)
def alone(p, g, lr):
    p.add_(g, alpha=-lr)
Plain.__doc__ = "A step." + _differentiable_doc + _foreach_doc
w = torch.nn.Parameter(torch.ones(2))
w.grad = torch.ones(2)
o = Plain([w])
o.step()
o.step()
assert torch.allclose(w, torch.full((2,), 0.7)) and o.state[w]["step"].dtype is torch.float32
z = [torch.ones(1, dtype=torch.complex64), torch.ones(1)]
g = [torch.ones(1, dtype=torch.complex64), torch.ones(1)]
_view_as_real(z, g)
assert [x.shape for x in z + g] == [(1, 2), (1,)] * 2
""")


def test_numbers_of_devices_and_tracings():
    run("""
import contextlib
import torch
from torch._guards import TracingContext, tracing
from torch._utils import _get_device_index
def refused(kind, text, call):
    try:
        call()
    except kind as error:
        assert text in str(error), error
    else:
        raise AssertionError(text)
assert _get_device_index(3) == 3 and _get_device_index("cuda:2") == _get_device_index(torch.device("cuda:2")) == 2
assert _get_device_index("cpu", allow_cpu=True) == _get_device_index("cpu", True, True) == -1
refused(ValueError, "Expected a non cpu device, but got: cpu", lambda: _get_device_index("cpu"))
refused(ValueError, "Expected a non cpu device", lambda: _get_device_index("cpu", optional=True))
refused(ValueError, "Expected a device with an index", lambda: _get_device_index("cuda"))
refused(ValueError, "Expected a device with an index", lambda: _get_device_index(None))
assert TracingContext.try_get() is None
refused(RuntimeError, "TracingContext.get", TracingContext.get)
with tracing(None) as context:
    assert context is None
for check, kind in ((torch._check, RuntimeError), (torch._check_index, IndexError), (torch._check_value, ValueError),
                    (torch._check_type, TypeError)):
    check(True)
    check(True, lambda: 1 / 0)
    refused(kind, "Expected cond to be True", lambda: check(False))
    refused(kind, "what is wrong", lambda: check(False, lambda: "what is wrong"))
    refused(TypeError, "message must be a callable", lambda: check(False, "what is wrong"))
    refused(TypeError, "cond must be a bool", lambda: check(1))
    refused(TypeError, "cond must be a bool", lambda: check(torch.tensor(True)))
refused(NotImplementedError, "torch._guards.tracing", lambda: contextlib.ExitStack().enter_context(tracing(object())))
""")


def test_data_and_checkpoints():
    run("""
import numpy as np
import torch
from torch.utils.data import IterDataPipe, MapDataPipe, functional_datapipe, DataLoader
from torch.utils.data._utils.collate import (collate, collate_float_fn, collate_int_fn, collate_numpy_array_fn,
                                             collate_str_fn, collate_tensor_fn, default_collate_fn_map)
from torch.utils.data.dataloader import _DatasetKind
assert collate_tensor_fn([torch.ones(2)] * 3).shape == (3, 2) and collate_float_fn([1.0, 2.0]).dtype is torch.float64
assert collate_numpy_array_fn([np.ones(2)] * 2, collate_fn_map=default_collate_fn_map).shape == (2, 2)
assert collate_int_fn([1, 2]).tolist() == [1, 2] and collate_str_fn(["a"]) == ["a"]
def padded(batch, *, collate_fn_map=None):
    n = max(map(len, batch))
    return collate_tensor_fn([torch.nn.functional.pad(x, (0, n - len(x))) for x in batch])
table = {**default_collate_fn_map, torch.Tensor: padded}
items = [{"x": torch.ones(k)} for k in (1, 3)]
found = next(iter(DataLoader(items, 2, collate_fn=lambda batch: collate(batch, collate_fn_map=table))))
assert found["x"].tolist() == [[1, 0, 0], [1, 1, 1]]
fetch = _DatasetKind.create_fetcher(_DatasetKind.Map, [1, 2, 3], True, list, False)
assert fetch.fetch([0, 2]) == [1, 3] and not isinstance([], (IterDataPipe, MapDataPipe))

from torch.utils.checkpoint import detach_variable
x = torch.ones(1, requires_grad=True)
y, n = detach_variable((x * 2, 3))
assert y.is_leaf and y.requires_grad and n == 3
from torch.autograd.function import InplaceFunction
class Double(InplaceFunction):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)
    @staticmethod
    def backward(ctx, g):
        return 2 * g
z = x.clone()
Double.apply(z).sum().backward()
assert x.grad.item() == 2 and z.item() == 2
from torch.autograd.grad_mode import _DecoratorContextManager
class Seen(_DecoratorContextManager):
    count = 0
    def __enter__(self):
        Seen.count += 1
    def __exit__(self, *error):
        pass
@Seen()
def f():
    return Seen.count
assert [f(), f()] == [1, 2]
""")


def test_what_was_asked_of_the_machine():
    run("""
import warnings
import torch
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    assert torch.has_mps is False and torch.has_cuda is torch.backends.cuda.is_built() and torch.has_cudnn in (0, 1)
assert "torch.backends.mps.is_built()" in str(seen[0].message) and seen[0].filename == "<string>"
""")


def test_functorch():
    """The package that was before ``torch.func``."""
    run("""
import functorch, sys
import torch
from functorch import combine_state_for_ensemble, make_functional, make_functional_with_buffers, vmap, grad
from torch._functorch.make_functional import make_functional as other
assert other is make_functional and sys.modules["functorch"] is functorch and functorch.vmap is torch.vmap
net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4)).eval()
f, parameters, buffers = make_functional_with_buffers(net)
x = torch.randn(2, 3)
assert torch.equal(f(parameters, buffers, x), net(x)) and len(parameters) == 4 and len(buffers) == 3
g, weights = make_functional(net[0])
slopes = grad(lambda p: g(p, x).sum())(weights)
net[0](x).sum().backward()
assert all(torch.allclose(s, p.grad) for s, p in zip(slopes, net[0].parameters()))
assert torch.equal(g([torch.zeros_like(p) for p in weights], x), torch.zeros(2, 4))
try:
    make_functional(net)
except RuntimeError as error:
    assert "buffers" in str(error)
nets = [torch.nn.Linear(3, 2) for _ in range(4)]
h, stacked, none = combine_state_for_ensemble(nets)
assert none == () and torch.allclose(vmap(h, (0, 0, None))(stacked, none, x), torch.stack([n(x) for n in nets]))

from torch.func import replace_all_batch_norm_modules_
assert replace_all_batch_norm_modules_(net) is net and net[1].running_mean is None
y = net(x)
assert torch.allclose(y.mean(0) - net[1].bias, torch.zeros(4), atol=1e-5)
slope = torch._softmax_backward_data(torch.ones(2, 3), x.softmax(1), 1, x.dtype)
half = torch.tensor([[0.5, 0.25, 0.25]], dtype=torch.bfloat16)
slopes = torch.tensor([[1, 1 + 2**-7, 1 - 2**-8]], dtype=torch.bfloat16)
assert abs(torch._softmax_backward_data(slopes, half, 1, half.dtype)[0, 0].item() + 2**-11) < 1e-5
assert torch.allclose(slope, torch.zeros(2, 3), atol=1e-6)
from torch._dynamo.utils import counters
counters["frames"]["ok"] += 1
assert counters["frames"]["ok"] == 1 and torch.per_tensor_affine != torch.per_channel_affine
from torch.optim import SparseAdam
try:
    SparseAdam([])
except NotImplementedError as error:
    assert "ptcore" in str(error)
else:
    raise AssertionError
""")


def test_whether_calls_look_for_torch_function():
    run("""
import torch
assert torch._C._is_torch_function_enabled() is True
with torch._C.DisableTorchFunctionSubclass():
    assert torch._C._is_torch_function_enabled() is False
assert torch._C._is_torch_function_enabled() is True and torch._C._cuda_isCurrentStreamCapturing() is False
""")
