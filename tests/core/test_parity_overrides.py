"""Which function a mode, and an object with ``__torch_function__``, sees first of a call, beside torch."""
import inspect

import pytest

import ptcore as pt
import ptcore.overrides
from ptcore._ops.call.offer import Overridable

torch = pytest.importorskip("torch")

pytestmark = [pytest.mark.parity, *[pytest.mark.filterwarnings(f"ignore::{kind}") for kind in (
    "UserWarning", "FutureWarning", "DeprecationWarning")]]

# What is called of a library m with x of shape (2, 3, 4): functions in Python as well as rows, methods, operators.
CALLS = {
    # -- nn.functional, in Python
    "batch_norm": lambda m, F, x: F.batch_norm(x, m.zeros(3), m.ones(3)),
    "batch_norm training": lambda m, F, x: F.batch_norm(x, None, None, training=True),
    "instance_norm": lambda m, F, x: F.instance_norm(x),
    "group_norm": lambda m, F, x: F.group_norm(x, 3),
    "layer_norm": lambda m, F, x: F.layer_norm(x, (4,)),
    "rms_norm": lambda m, F, x: F.rms_norm(x, (4,)),
    "local_response_norm": lambda m, F, x: F.local_response_norm(x, 2),
    "normalize": lambda m, F, x: F.normalize(x),
    "linear_cross_entropy": lambda m, F, x: F.linear_cross_entropy(x[0], m.ones(5, 4), m.tensor([0, 4, 2])),
    "multi_head_attention_forward": lambda m, F, x: F.multi_head_attention_forward(
        x, x, x, 4, 2, m.ones(12, 4), m.ones(12), None, None, False, 0.0, m.ones(4, 4), m.ones(4)),
    "max_pool1d_with_indices": lambda m, F, x: F.max_pool1d_with_indices(x, 2),
    "max_pool2d_with_indices": lambda m, F, x: F.max_pool2d_with_indices(x, 2),
    "adaptive_max_pool1d_with_indices": lambda m, F, x: F.adaptive_max_pool1d_with_indices(x, 2),
    "adaptive_max_pool2d_with_indices": lambda m, F, x: F.adaptive_max_pool2d_with_indices(x, 2),
    "max_pool1d": lambda m, F, x: F.max_pool1d(x, 2), "max_pool2d": lambda m, F, x: F.max_pool2d(x, 2),
    "adaptive_avg_pool2d": lambda m, F, x: F.adaptive_avg_pool2d(x, 2),
    "lp_pool1d": lambda m, F, x: F.lp_pool1d(x, 2, 2),
    "softmax": lambda m, F, x: F.softmax(x, 0), "log_softmax": lambda m, F, x: F.log_softmax(x, 0),
    "softmin": lambda m, F, x: F.softmin(x, 0), "gumbel_softmax": lambda m, F, x: F.gumbel_softmax(x),
    "dropout": lambda m, F, x: F.dropout(x), "alpha_dropout": lambda m, F, x: F.alpha_dropout(x),
    "dropout1d": lambda m, F, x: F.dropout1d(x), "feature_alpha_dropout": lambda m, F, x: F.feature_alpha_dropout(x),
    "relu": lambda m, F, x: F.relu(x), "relu6": lambda m, F, x: F.relu6(x), "elu": lambda m, F, x: F.elu(x),
    "hardtanh": lambda m, F, x: F.hardtanh(x), "hardtanh_": lambda m, F, x: F.hardtanh_(x),
    "leaky_relu": lambda m, F, x: F.leaky_relu(x), "rrelu": lambda m, F, x: F.rrelu(x),
    "rrelu_": lambda m, F, x: F.rrelu_(x), "glu": lambda m, F, x: F.glu(x), "silu": lambda m, F, x: F.silu(x),
    "gelu": lambda m, F, x: F.gelu(x), "prelu": lambda m, F, x: F.prelu(x, m.ones(1)),
    "tanhshrink": lambda m, F, x: F.tanhshrink(x), "softsign": lambda m, F, x: F.softsign(x),
    "linear": lambda m, F, x: F.linear(x, m.ones(2, 4)), "conv1d": lambda m, F, x: F.conv1d(x, m.ones(2, 3, 2)),
    "pad": lambda m, F, x: F.pad(x, (1, 1)), "interpolate": lambda m, F, x: F.interpolate(x, 8),
    "upsample": lambda m, F, x: F.upsample(x, 8), "unfold": lambda m, F, x: F.unfold(x, 2),
    "embedding": lambda m, F, x: F.embedding(m.tensor([0]), x[0]),
    "mse_loss": lambda m, F, x: F.mse_loss(x, m.zeros(2, 3, 4)), "l1_loss": lambda m, F, x: F.l1_loss(x, x),
    "cross_entropy": lambda m, F, x: F.cross_entropy(x[:, :, 0], m.tensor([0, 1])),
    "nll_loss": lambda m, F, x: F.nll_loss(x, m.zeros(2, 4, dtype=m.int64)),
    "kl_div": lambda m, F, x: F.kl_div(x, m.ones(2, 3, 4)),
    "huber_loss": lambda m, F, x: F.huber_loss(x, m.ones(2, 3, 4)),
    "triplet_margin_loss": lambda m, F, x: F.triplet_margin_loss(x, m.ones(2, 3, 4), m.zeros(2, 3, 4)),
    "cosine_similarity": lambda m, F, x: F.cosine_similarity(x, m.ones(2, 3, 4)),
    "scaled_dot_product_attention": lambda m, F, x: F.scaled_dot_product_attention(x, x, x),
    # -- the top level, in Python
    "einsum": lambda m, F, x: m.einsum("ijk->k", x), "split": lambda m, F, x: m.split(x, 2),
    "norm": lambda m, F, x: m.norm(x), "meshgrid": lambda m, F, x: m.meshgrid(x[0, 0], x[0, 1]),
    "cdist": lambda m, F, x: m.cdist(x, m.ones(2, 5, 4)), "stft": lambda m, F, x: m.stft(
        x[0], 4, return_complex=True), "tensordot": lambda m, F, x: m.tensordot(x, m.ones(4, 2), 1),
    "cartesian_prod": lambda m, F, x: m.cartesian_prod(x[0, 0], x[0, 1]),
    "block_diag": lambda m, F, x: m.block_diag(x[0]), "unique": lambda m, F, x: m.unique(x),
    "unique_consecutive": lambda m, F, x: m.unique_consecutive(x), "lu": lambda m, F, x: m.linalg.lu(x),
    "atleast_2d": lambda m, F, x: m.atleast_2d(x), "broadcast_tensors": lambda m, F, x: m.broadcast_tensors(x, x),
    "chain_matmul": lambda m, F, x: m.chain_matmul(x[0], m.ones(4, 2)), "pca": lambda m, F, x: m.pca_lowrank(x, 2),
    "svd_lowrank": lambda m, F, x: m.svd_lowrank(x, 2), "lobpcg": lambda m, F, x: m.lobpcg(x[:, :2, :2], 1),
    "constant_pad_nd": lambda m, F, x: m.constant_pad_nd(x, (1, 1)),
    "adaptive_max_pool1d": lambda m, F, x: m.adaptive_max_pool1d(x, 2),
    "layer_norm of the top": lambda m, F, x: m.layer_norm(x, (4,)),
    "group_norm of the top": lambda m, F, x: m.group_norm(x, 3),
    "batch_norm of the top": lambda m, F, x: m.batch_norm(
        x, None, None, m.zeros(3), m.ones(3), False, 0.1, 1e-5, False),
    "kl_div of the top": lambda m, F, x: m.kl_div(x, m.ones(2, 3, 4)),
    "margin_ranking_loss": lambda m, F, x: m.margin_ranking_loss(x, m.ones(2, 3, 4), m.ones(2, 3, 4)),
    "norm_except_dim": lambda m, F, x: m.norm_except_dim(x), "numel": lambda m, F, x: m.numel(x),
    "is_floating_point": lambda m, F, x: m.is_floating_point(x), "is_complex": lambda m, F, x: m.is_complex(x),
    "is_nonzero": lambda m, F, x: m.is_nonzero(x[0, 0, 0]), "detach": lambda m, F, x: m.detach(x),
    "conj": lambda m, F, x: m.conj(x), "adjoint": lambda m, F, x: m.adjoint(x),
    "nonzero": lambda m, F, x: m.nonzero(x), "masked_select": lambda m, F, x: m.masked_select(x, m.tensor(True)),
    "broadcast_to": lambda m, F, x: m.broadcast_to(x, (2, 3, 4)),
    "as_strided": lambda m, F, x: m.as_strided(x, (2,), (1,)),
    "index_put": lambda m, F, x: m.index_put(x, (m.tensor([0]),), m.tensor(1.0)),
    "lstm_cell": lambda m, F, x: m.lstm_cell(x[0], (m.ones(3, 2), m.ones(3, 2)), m.ones(8, 4), m.ones(8, 2)),
    "gru_cell": lambda m, F, x: m.gru_cell(x[0], m.ones(3, 2), m.ones(6, 4), m.ones(6, 2)),
    # -- rows that run as others
    "add alpha": lambda m, F, x: m.add(x, x, alpha=2), "sub alpha": lambda m, F, x: m.sub(x, x, alpha=2),
    "div floor": lambda m, F, x: m.div(x, x, rounding_mode="floor"),
    "div trunc": lambda m, F, x: m.div(x, x, rounding_mode="trunc"),
    "gelu tanh": lambda m, F, x: F.gelu(x, approximate="tanh"), "round decimals": lambda m, F, x: m.round(x, decimals=1),
    "where of one": lambda m, F, x: m.where(x), "relu in place": lambda m, F, x: F.relu(x, inplace=True),
    "elu in place": lambda m, F, x: F.elu(x, inplace=True), "silu in place": lambda m, F, x: F.silu(x, inplace=True),
    "dropout in place": lambda m, F, x: F.dropout(x, inplace=True), "clamp": lambda m, F, x: m.clamp(x, 0, 1),
    "prod": lambda m, F, x: m.prod(x, 0), "max": lambda m, F, x: m.max(x, 0), "std": lambda m, F, x: m.std(x),
    # -- rows
    "add": lambda m, F, x: m.add(x, 1), "cat": lambda m, F, x: m.cat([x, x]), "where": lambda m, F, x: m.where(
        m.tensor(True), x, 1.0), "matmul": lambda m, F, x: m.matmul(x, m.ones(4, 2)), "sum": lambda m, F, x: m.sum(x),
    "linalg.norm": lambda m, F, x: m.linalg.norm(x), "fft": lambda m, F, x: m.fft.fft(x),
    "special": lambda m, F, x: m.special.entr(x), "sort": lambda m, F, x: m.sort(x),
}
# Methods and operators, of tensors.
METHODS = {
    "x[0]": lambda m, x: x[0], "x[0:1, None]": lambda m, x: x[0:1, None], "x[mask]": lambda m, x: x[x.detach() > 3],
    "x[0] = 1": lambda m, x: x.__setitem__(0, 1.0), "x[t] = x": lambda m, x: x.__setitem__(m.tensor([0]), 2.0),
    "x + 1": lambda m, x: x + 1, "x @ x": lambda m, x: x @ m.ones(4, 2), "x > 1": lambda m, x: x > 1,
    "detach": lambda m, x: x.detach(), "item": lambda m, x: x.item(), "tolist": lambda m, x: x.tolist(),
    "numpy": lambda m, x: x.numpy(), "to": lambda m, x: x.to(m.float64), "float": lambda m, x: x.float(),
    "double": lambda m, x: x.double(), "long": lambda m, x: x.long(), "bool": lambda m, x: x.bool(),
    "type": lambda m, x: x.type(m.float64), "cpu": lambda m, x: x.cpu(), "contiguous": lambda m, x: x.contiguous(),
    "size": lambda m, x: x.size(), "view_as": lambda m, x: x.view_as(m.ones(2, 3, 4)),
    "reshape_as": lambda m, x: x.reshape_as(m.ones(24)), "expand_as": lambda m, x: x.expand_as(m.ones(5, 2, 3, 4)),
    "type_as": lambda m, x: x.type_as(m.ones(1)), "where": lambda m, x: x.where(m.tensor(True), 0.0),
    "copy_": lambda m, x: x.copy_(m.ones(4)), "fill_": lambda m, x: x.fill_(1.0), "zero_": lambda m, x: x.zero_(),
    "normal_": lambda m, x: x.normal_(), "uniform_": lambda m, x: x.uniform_(), "random_": lambda m, x: x.random_(),
    "bernoulli_": lambda m, x: x.bernoulli_(), "exponential_": lambda m, x: x.exponential_(),
    "unsqueeze_": lambda m, x: x.unsqueeze_(0), "squeeze_": lambda m, x: x.squeeze_(),
    "transpose_": lambda m, x: x.transpose_(0, 1), "requires_grad_": lambda m, x: x.requires_grad_(),
    "index_put_": lambda m, x: x.index_put_((m.tensor([0]),), m.tensor(1.0)),
    "new_zeros": lambda m, x: x.new_zeros(2), "new_ones": lambda m, x: x.new_ones(2),
    "new_empty": lambda m, x: x.new_empty(2), "new_full": lambda m, x: x.new_full((2,), 1.0),
    "new_tensor": lambda m, x: x.new_tensor([1.0]), "masked_select": lambda m, x: x.masked_select(m.tensor(True)),
    "nonzero": lambda m, x: x.nonzero(), "adjoint": lambda m, x: x.adjoint(), "conj": lambda m, x: x.conj(),
    "fill_diagonal_": lambda m, x: x[0, :3, :3].clone().fill_diagonal_(0.0), "data_ptr": lambda m, x: x.data_ptr(),
    "sum_to_size": lambda m, x: x.sum_to_size(3, 4), "polygamma": lambda m, x: x.polygamma(1),
    "float_power_": lambda m, x: x.double().float_power_(2), "bernoulli": lambda m, x: x.bernoulli(0.5),
    "add_ alpha": lambda m, x: x.add_(x, alpha=2), "sub_ alpha": lambda m, x: x.sub_(x, alpha=2),
    "div_ floor": lambda m, x: x.div_(x, rounding_mode="floor"), "round_ decimals": lambda m, x: x.round_(decimals=1),
    "x += x": lambda m, x: x.__iadd__(x), "max(axis)": lambda m, x: x.max(1), "clamp_": lambda m, x: x.clamp_(0, 1),
    "sum": lambda m, x: x.sum(), "view": lambda m, x: x.view(-1), "add_": lambda m, x: x.add_(1),
    "register_hook": lambda m, x: x.register_hook(print), "retain_grad": lambda m, x: x.retain_grad(),
    "is_same_size": lambda m, x: x.is_same_size(m.ones(1)), "get_device": lambda m, x: x.get_device(),
    "untyped_storage": lambda m, x: x.untyped_storage(), "share_memory_": lambda m, x: x.share_memory_(),
    "resize_": lambda m, x: x.resize_(2),
}


UNLISTED = {"autocast", "empty_like", "full_like", "ones_like", "zeros_like", "bernoulli", "is_inference", "is_signed",
            *(f"sym_{name}" for name in ("float", "int", "ite", "max", "min", "not", "sum"))}       # they take no tensor


def mode_of(m):
    """What a mode of a library sees: the names of functions."""
    class Log(m.overrides.TorchFunctionMode):
        def __init__(self):
            super().__init__()
            self.names = []

        def __torch_function__(self, func, types, args=(), kwargs=None):
            self.names.append(func.__name__)
            return func(*args, **(kwargs or {}))
    return Log()


def subclass_of(m, seen):
    class Sees(m.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append(func.__name__)
            return super().__torch_function__(func, types, args, kwargs)
    return Sees


def tensor(m):
    return m.arange(1.0, 25.0).reshape(2, 3, 4).clone()


def attempt(call):
    try:
        call()
    except (RuntimeError, ValueError, TypeError):
        return False
    return True


# Modes of torch see functions that make tensors of no other, as its arguments are made here.
MADE = {"ones", "zeros", "tensor"}
# torch hands these over for other classes alone; a mode sees what is asked of a plain tensor first.
BY_CLASS = {"pca", "svd_lowrank"}


def by_mode(m, call):
    x = tensor(m)
    with mode_of(m) as log:
        worked = attempt(lambda: call(m, x))
    return [name for name in log.names if name not in MADE][:1], worked


def by_subclass(m, call):
    seen = []
    x = tensor(m).as_subclass(subclass_of(m, seen))
    worked = attempt(lambda: call(m, x))
    return seen[:1], worked


def by_foreign(m, call):
    """What an object sees that is no tensor."""
    class Foreign:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append(func.__name__)
            return Foreign()

        def __getitem__(self, key):
            return self
    seen = []
    attempt(lambda: call(m, Foreign()))
    return seen[:1]


def function(call):
    return lambda m, x: call(m, m.nn.functional, x)


@pytest.mark.parametrize("name", CALLS)
def test_functions(name):
    call = function(CALLS[name])
    if name not in BY_CLASS:
        assert by_mode(pt, call) == by_mode(torch, call)
    assert by_subclass(pt, call) == by_subclass(torch, call)
    assert by_foreign(pt, call) == by_foreign(torch, call) != []


@pytest.mark.parametrize("name", METHODS)
def test_methods(name):
    assert by_mode(pt, METHODS[name]) == by_mode(torch, METHODS[name])
    assert by_subclass(pt, METHODS[name]) == by_subclass(torch, METHODS[name])


def test_how_many():
    assert len(CALLS) + len(METHODS) >= 160


def test_overridable_functions():
    """What torch lists of its public spaces is listed here if it is here, but for what reads fields of a tensor and what
    makes one like another."""
    ours, theirs = pt.overrides.get_overridable_functions(), torch.overrides.get_overridable_functions()
    for m, t in ((pt, torch), (pt, torch.functional), (pt.nn.functional, torch.nn.functional), (pt.linalg, torch.linalg),
                 (pt.fft, torch.fft), (pt.special, torch.special), (pt.Tensor, torch.Tensor)):
        listed, own = set(ours[m]), inspect.getmembers_static(pt.Tensor) if m is pt.Tensor else ()
        fields = {name for name, f in own if not isinstance(f, (type(pt.add), Overridable))}
        missing = {f.__name__ for f in theirs[t] if callable(getattr(m, f.__name__, None)) and not
                   f.__name__.startswith(("__", "sym_")) and getattr(m, f.__name__) not in listed}
        assert missing - fields <= UNLISTED, m
