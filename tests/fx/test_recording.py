"""Every public function, method and module under a recording interpreter: no tensor comes from elsewhere than an
offered op or a told origin, no value is read unseen, and what was recorded runs on other data."""
import inspect
import re
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import ptcore as pt
from ptcore import fx
from ptcore._trees.tree import tree_flatten, tree_unflatten
from ptcore.func import functional_call
from ptcore.fx.experimental import proxy_tensor

sys.path.insert(0, str(Path(__file__).parent.parent))
import _call_table
from _module_table import MODULES

OP = type(pt.add)
X, Y, Z = (3, 4), (4, 4), (4,)


class Recorder(proxy_tensor.ProxyTracer):
    """Notes tensors that nobody told of."""

    def __init__(self, *args):
        super().__init__(*args)
        self.told, self.strangers = [], []

    def created(self, kind, x):
        self.told.append(x)
        return super().created(kind, x)

    def constant(self, x):
        if not any(x is y for y in self.told):
            self.strangers.append(x)
        return super().constant(x)


def record(f, *tensors, known=()):
    """The graph of a call, as ``make_fx`` makes it; fails where a tensor comes from nowhere."""
    made = []

    class Noted(Recorder):
        def __init__(self, *args):
            super().__init__(*args)
            self.told += known
            made.append(self)
    before, proxy_tensor.ProxyTracer = proxy_tensor.ProxyTracer, Noted
    try:
        traced = proxy_tensor.make_fx(lambda *xs: f(*xs))(*tensors)
    finally:
        proxy_tensor.ProxyTracer = before
    (tracer,) = made
    assert not tracer.strangers, f"made by no offered op: {tracer.strangers}"
    assert fx.verify(traced.graph) == "rows"
    return traced


def other(x, k):
    """Other data of a tensor's kind: positions and masks stay what they are."""
    if x.dtype.kind in "fc":
        return (x.detach() * (1 - 0.03 * k)).requires_grad_(x.requires_grad)
    return x.clone()


def leaves(result):
    parts = [x.get_data() if isinstance(x, pt.masked.MaskedTensor) else x for x in tree_flatten(result)[0]]
    return [x.detach() if isinstance(x, pt.Tensor) else x for x in parts]


def check(f, *tensors, known=()):
    """Records a call and runs the recording on two other sets of data."""
    pt.manual_seed(0)
    traced = record(f, *[other(x, 0) for x in tensors], known=known)
    for k in (0, 1, 2):
        data = [other(x, k) for x in tensors]
        again = [other(x, k) for x in tensors]
        pt.manual_seed(7)
        want = leaves(f(*data))
        pt.manual_seed(7)
        got = leaves(traced(*again))
        assert len(got) == len(want)
        for g, w in zip([*got, *again], [*want, *data]):
            if isinstance(w, pt.Tensor):
                assert (g.shape, g.dtype) == (w.shape, w.dtype)
                dtype = pt.complex64 if w.dtype is pt.complex32 else w.dtype
                np.testing.assert_array_equal(*[t.detach().to(dtype).numpy() for t in (g, w)])
            elif isinstance(w, (int, float, str, bool)):
                assert g == w


def tensor(shape, dtype="float32", seed=0):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=shape) if dtype[0] in "fc" else rng.integers(0, 4, shape)
    return pt.from_numpy(np.asarray(values)).to(getattr(pt, dtype))


# -- methods -------------------------------------------------------------------------------------------------

TO = ("bfloat16", "bool", "byte", "cdouble", "cfloat", "chalf", "char", "double", "float", "half", "int",
      "long", "short")
# name -> a call: with a matrix, a second one and a vector, of which it takes what it needs.
METHODS = {
    **{name: lambda x, name=name: getattr(x, name)() for name in (
        *TO, "adjoint", "bernoulli_", "conj", "conj_physical", "contiguous", "cpu", "detach", "resolve_conj",
        "resolve_neg", "to_dense", "to_device", "zero_")},
    **{name: lambda x, name=name: getattr(x.clone(), name)() for name in (
        "cauchy_", "conj_physical_", "detach_", "exponential_", "geometric_", "log_normal_", "normal_", "random_",
        "uniform_")},
    "to_device": lambda x: x.to_device("cpu"), "bernoulli_": lambda x: x.bernoulli_(0.5),
    "geometric_": lambda x: x.geometric_(0.5), "bernoulli": lambda x: x.abs().clamp(max=1).bernoulli(),
    "as_subclass": lambda x: x.as_subclass(pt.Tensor) + 1,
    "astype": lambda x: x.astype(pt.float64), "broadcast_to": lambda x: x.broadcast_to((2, 3, 4)),
    "copy_": lambda x, y: x.copy_(y[0]), "expand_as": lambda x, y, z: z.expand_as(x),
    "fill_": lambda x, y, z: x.fill_(z.sum()), "fill_diagonal_": lambda x: x.fill_diagonal_(2.0),
    "float_power_": lambda x: x.double().abs().float_power_(2),
    "is_same_size": lambda x, y: x if x.is_same_size(y) else y,
    "index_put": lambda x, y: x.index_put((pt.tensor([0, 2]),), y[:2]),
    "index_put_": lambda x, y: x.index_put_((pt.tensor([0, 2]), pt.tensor([1, 1])), y[0, :2], accumulate=True),
    "masked_select": None, "new": lambda x: x.new(2, 3).zero_(), "new_empty": lambda x: x.new_empty(2, 3).fill_(1),
    "new_empty_strided": lambda x: x.new_empty_strided((2, 3), (1, 2)).fill_(1),
    "new_full": lambda x: x.new_full((2,), 3.0) + x[0, :2], "new_ones": lambda x: x.new_ones(4) + x,
    "new_tensor": lambda x: x.new_tensor([1.0, 2]) + x[0, :2], "new_zeros": lambda x: x.new_zeros((4,)) + x,
    "polygamma": lambda x: (x * x + 1).polygamma(1), "polygamma_": lambda x: (x * x + 1).polygamma_(1),
    "requires_grad_": lambda x: x.requires_grad_(False) * 2, "reshape_as": lambda x, y: y[:3].reshape_as(x),
    "sum_to_size": lambda x: x.sum_to_size(1, 4), "to": lambda x, y: (x.to(pt.float64), x.to("cpu"), x.to(y.double())),
    "type": lambda x: x.type(pt.float64), "type_as": lambda x, y: x.type_as(y.double()),
    "view_as": lambda x, y: y[:3].view_as(x), "where": lambda x, y, z: x.where(x > 0, z),
    "backward": lambda x: through_backward(x), "retain_grad": lambda x: through_backward(x, True),
    "register_hook": lambda x: through_hook(x), "register_post_accumulate_grad_hook": lambda x: through_hook(x, True),
    **{f"__{name}__": lambda x, y, z, name=name: [getattr(x, f"__{name}__")(other) for other in (z, 2)] for name in (
        "add", "sub", "mul", "truediv", "floordiv", "mod", "radd", "rsub", "rmul", "rtruediv", "rfloordiv",
        "rmod", "rdiv")},
    **{f"__{name}__": lambda x, y, z, name=name: getattr(x * x + 1, f"__{name}__")(z.abs()) for name in (
        "pow", "rpow", "ipow")},
    **{f"__{name}__": lambda x, y, z, name=name: getattr(x.clone(), f"__{name}__")(z) for name in (
        "iadd", "isub", "imul", "itruediv", "ifloordiv", "imod")},
    **{f"__{name}__": lambda x, y, z, n=name: getattr((x * 4).int(), f"__{n}__")((z * 4).int().abs()) for name in (
        "and", "or", "xor", "lshift", "rshift", "rand", "ror", "rxor", "rlshift", "rrshift", "iand", "ior", "ixor",
        "ilshift", "irshift")},
    **{f"__{name}__": lambda x, name=name: getattr(x, f"__{name}__")() for name in ("abs", "neg", "pos", "reversed",
                                                                                   "copy")},
    "__invert__": lambda x: ~(x > 0), "__deepcopy__": lambda x: x.__deepcopy__({}) * 2,
    "__matmul__": lambda x, y: x @ y, "__rmatmul__": lambda x, y: y.__rmatmul__(x),
    "__iter__": lambda x: [row * 2 for row in x], "__len__": lambda x: x * len(x),
    "__getitem__": lambda x: (x[0], x[1:, ::2], x[..., -1], x[None, 1], x[pt.tensor([0, 2])], x[[0, 1], [2, 3]],
                              x[:, [True, False, True, False]]),
    "__setitem__": lambda x, y, z: written(x, y, z),
    "__array_ufunc__": lambda x: np.exp(x),
}


def through_backward(x, retain=False):
    y = x.detach().requires_grad_()
    z = y * y
    if retain:
        z.retain_grad()
    z.sum().backward()
    return (y.grad, z.grad) if retain else y.grad


def through_hook(x, post=False):
    y, seen = x.detach().requires_grad_(), []
    if post:
        y.register_post_accumulate_grad_hook(lambda t: seen.append(t.grad * 2))
    else:
        y.register_hook(lambda g: g * 3)
    (y * y).sum().backward()
    return [y.grad, *seen]


def written(x, y, z):
    x = x.clone()
    x[0] = z
    x[1:, 2] = 5.0
    x[pt.tensor([1]), pt.tensor([0])] = y[0, 0]
    x[:, [True, False, False, False]] += 1
    return x


# They tell what a tensor looks like, or change what has no value.
LOOKS = {"const_data_ptr", "dim", "dim_order", "element_size", "get_device", "is_complex", "is_conj", "is_contiguous",
         "is_floating_point", "is_inference", "is_neg", "is_pinned", "is_set_to", "is_shared", "is_signed",
         "ndimension", "nelement", "numel", "size", "storage_offset", "stride", "__array_namespace__",
         "__dlpack_device__", "module_load", "cuda", "pin_memory", "record_stream",
         "__torch_function__", "__array_function__", "__delitem__", "__release_buffer__"}
# They read values, or give out memory: refused.
READS = {"item": lambda x: x[0, 0].item(), "tolist": lambda x: x.tolist(), "numpy": lambda x: x.numpy(),
         "to_numpy": lambda x: x.to_numpy(), "tobytes": lambda x: x.tobytes(), "data_ptr": lambda x: x.data_ptr(),
         "__buffer__": memoryview,
         "untyped_storage": lambda x: x.untyped_storage(), "storage": lambda x: x.storage(),
         "storage_type": lambda x: x.storage_type(), "share_memory_": lambda x: x.share_memory_(),
         "is_nonzero": lambda x: x[0, 0].is_nonzero(), "nonzero": lambda x: x.nonzero(),
         "apply_": lambda x: x.apply_(abs), "map_": lambda x: x.map_(x, max), "map2_": lambda x: x.map2_(x, x, max),
         "resize_": lambda x: x.resize_(2), "resize_as_": lambda x: x.resize_as_(x), "set_": lambda x: x.set_(),
         "masked_select": lambda x: x.masked_select(x > 0),
         "__array__": lambda x: x.__array__(), "__dlpack__": lambda x: x.__dlpack__(),
         "__arrow_c_array__": lambda x: x.__arrow_c_array__(),
         **{f"__{kind.__name__}__": lambda x, kind=kind: kind(x[0, 0]) for kind in (bool, float, int, complex)},
         "__index__": lambda x: [1, 2][x[0, 0].int()], "__contains__": lambda x: 3 in x}


def methods():
    for name in dir(pt.Tensor):
        if type(inspect.getattr_static(pt.Tensor, name)) is OP or not callable(getattr(pt.Tensor, name)):
            continue
        if not name.startswith("_") or (name.startswith("__") and name not in dir(object)):
            yield name


def test_every_method_is_in_a_table():
    listed = {name for name, call in METHODS.items() if call is not None} | LOOKS | set(READS)
    assert set(methods()) <= listed, set(methods()) - listed


@pytest.mark.parametrize("name", [name for name, call in METHODS.items() if call is not None and name not in READS])
def test_method(name):
    call = METHODS[name]
    n = len([p for p in inspect.signature(call).parameters if p not in ("name", "n")])
    check(lambda x, y, z: call(*(x, y, z)[:n]), tensor(X), tensor(Y, seed=1), tensor(Z, seed=2))


@pytest.mark.parametrize("name", list(READS))
def test_read_is_refused(name):
    with pytest.raises((RuntimeError, BufferError, TypeError)) as error:
        proxy_tensor.make_fx(READS[name])(tensor(X))
    assert re.search("traced|tracing|transformation|stand-in", str(error.value)), str(error.value)


# -- functions that are no rows --------------------------------------------------------------------------------

# Why some calls of the table are not recorded.
NOT_RECORDED = {
    "random.": "they read or set the state of the generator",
    "nn.init.": "they write to parameters, which a graph has as constants",
    "nn.utils.prune.": "they exchange parameters of a module",
    "nn.utils.vector_to_parameters": "it gives parameters other memory",
    "autograd.grad": "its arguments have a history of their own",
    "autograd.backward": "its arguments have a history of their own",
}
# Lengths are values of an argument.
REFUSED = ("nn.utils.rnn.pad_packed_sequence", "nn.utils.rnn.unpad_sequence")


def functions():
    for path, make in sorted(_call_table.FUNCTIONS.items()):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            args, kwargs = make(pt)
        found = tree_flatten((args, kwargs))[0]
        if any(isinstance(x, pt.Tensor) for x in found) and not path.startswith(tuple(NOT_RECORDED)):
            yield path


@pytest.mark.parametrize("path", list(functions()))
def test_function(path):
    function = pt
    for part in path.split("."):
        function = getattr(function, part)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        given, spec = tree_flatten(_call_table.FUNCTIONS[path](pt))
    places = [k for k, x in enumerate(given) if isinstance(x, pt.Tensor)]
    known = [t for x in given if isinstance(x, pt.nn.Module) for t in (*x.parameters(), *x.buffers())]

    def call(*tensors):
        values = list(given)
        for k, x in zip(places, tensors):
            values[k] = x
        args, kwargs = tree_unflatten(values, spec)
        return function(*args, **kwargs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tensors = [given[k].detach() for k in places]
        if path in REFUSED:
            with pytest.raises(RuntimeError, match="traced"):
                proxy_tensor.make_fx(call)(*tensors)
            return
        check(call, *tensors, known=known)


# -- modules ---------------------------------------------------------------------------------------------------

# Sizes of what they compute with are values.
LENGTHS = {"CTCLoss": "lengths of targets", "AdaptiveLogSoftmaxWithLoss": "how many samples are in each cluster"}


@pytest.mark.parametrize("name", MODULES)
def test_module(name):
    """A module as a function of its parameters and its input."""
    pt.manual_seed(1)
    args, given = MODULES[name]
    given = [x if isinstance(x, pt.Tensor) else tensor(x, seed=k) for k, x in enumerate(given)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = getattr(pt.nn, name)(*args).eval()
        module(*given)                      # a lazy one gets its parameters
        state = {key: x.detach() for key, x in (*module.named_parameters(), *module.named_buffers())}

        def call(*tensors):
            values = dict(zip(state, tensors))
            return functional_call(module, values, tensors[len(state):])
        if name in LENGTHS:
            with pytest.raises(RuntimeError, match="trac"):
                proxy_tensor.make_fx(call)(*state.values(), *given)
            return
        check(call, *state.values(), *given)
