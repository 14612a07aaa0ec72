"""Names that the op database does not try, one by one against torch: attributes, methods, creation, modes, generators.

What a case returns is compared whole: values, dtypes, shapes, strides, requires_grad, and the classes of errors.
tools/coverage_page.py takes a case here for the proof of the name that it has.
"""
import contextlib
import io

import numpy as np
import pytest

import ptcore as pt

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.parity, *[pytest.mark.filterwarnings(f"ignore:{text}:UserWarning") for text in (
    r"(Tensor\.m?[HT]|adjoint\(\)) is deprecated on 0-D", r"The use of `x\.T` on tensors of dimension other than 2",
    r"The \.grad attribute of a Tensor that is not a leaf", r"torch\.set_default_tensor_type\(\) is deprecated")],
    pytest.mark.filterwarnings("ignore:Use `(set|current)_device_index` instead:FutureWarning")]
ERRORS = (IndexError, NotImplementedError, TypeError, ValueError, OverflowError, RuntimeError, AttributeError)
NUMBERS = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64",
           "complex128")


def plain(value):
    """A value in words that both libraries share."""
    if isinstance(value, (pt.Tensor, torch.Tensor)):
        meta = value.device.type == "meta"
        numbers = None if meta else plain(value.detach().tolist())
        return plain(value.dtype), tuple(value.shape), strides(value), value.requires_grad, numbers
    if isinstance(value, dict):
        return [[k, plain(v)] for k, v in value.items()]
    if isinstance(value, (tuple, list)):
        return [plain(v) for v in value]
    if isinstance(value, np.ndarray):
        return value.dtype.name, value.shape, value.strides, plain(value.tolist())
    if isinstance(value, complex):
        return [plain(value.real), plain(value.imag)]
    if isinstance(value, Raised):
        return value
    if isinstance(value, str):
        return value.replace("torch.", "").replace("ptcore.", "")
    if isinstance(value, (bool, int, float, type(None))):
        return value
    return str(value).replace("torch.", "").replace("ptcore.", "")


def strides(x):
    """Those of dims with more than one element: the others carry no meaning."""
    return [s for n, s in zip(x.shape, x.stride()) if n > 1] if x.numel() else []


def same(a, b):
    """Equal, numbers up to rounding in float32; an error of ours may have more classes than torch's."""
    if isinstance(a, Raised) and isinstance(b, Raised):
        return set(b.split()) <= set(a.split())
    if isinstance(a, (tuple, list)) and isinstance(b, (tuple, list)):
        return len(a) == len(b) and all(map(same, a, b))
    if type(a) is type(b) is float:
        return np.isclose(a, b, rtol=2e-6, atol=1e-7, equal_nan=True)
    return type(a) is type(b) and a == b


class Raised(str):
    """The classes of an error."""


def outcome(f, lib):
    try:
        return plain(f(lib))
    except ERRORS as e:
        return Raised(" ".join(c.__name__ for c in ERRORS if isinstance(e, c)))


def samples(lib):
    """Tensors of several dtypes, layouts and places."""
    base = lib.arange(24.0).view(2, 3, 4)
    leaf = lib.ones(2, requires_grad=True)
    yield from (base, base.transpose(0, 2), base[:, 1:, ::2], lib.tensor(3.5), lib.zeros(0, 2),
                lib.tensor([True, False]), lib.tensor([1, -2, 3]), lib.tensor([[1 + 2j, 3 - 1j]]),
                lib.ones(2, 3, dtype=lib.float16),
                lib.ones(3, dtype=lib.uint8), leaf, leaf * 2, leaf.detach(), lib.ones(1).expand(3),
                lib.empty(2, 3, device="meta"), lib.nn.Parameter(lib.zeros(2)),
                lib.zeros(2, 3, 4, 5).contiguous(memory_format=lib.channels_last))


def each(f):
    return lambda lib: [outcome(lambda _, x=x: f(x), lib) for x in samples(lib)]


def shown(name, *args, **kwargs):
    """A method of each sample."""
    return each(lambda x: getattr(x, name)(*args, **kwargs))


def matrices(lib):
    return [lib.tensor([[2.0, 1.0], [1.0, 3.0]], dtype=dtype) for dtype in (lib.float32, lib.float64, lib.complex128)]


def of_matrices(name, *args):
    """Row-major, as PyTorch's results lie in the order of LAPACK."""
    return lambda lib: [[y.contiguous() for y in result] if isinstance(result, tuple) else result.contiguous()
                        for result in [getattr(m, name)(*args) for m in matrices(lib)]]


def in_place(name, *args, of="nn.functional"):
    """An in-place function: what it returns is what it was given."""
    def run(lib):
        x = lib.tensor([-2.0, -0.5, 0.0, 0.5, 2.0])
        found = lib
        for part in filter(None, of.split(".")):
            found = getattr(found, part)
        y = getattr(found, name)(x, *args)
        return [y is x, x, outcome(lambda lib: getattr(lib, name)(lib.tensor([1]), *args), lib)]
    return run


def restored(get, set_, value):
    """What a setting is after it was set, and that it goes back."""
    def run(lib):
        before = get(lib)
        try:
            set_(lib, value(lib))
            return [before, get(lib)]
        finally:
            set_(lib, before)
    return run


def window(name):
    return lambda lib: [getattr(lib, name)(n, **how) for n in (0, 1, 5, 8)
                        for how in ({}, {"periodic": False}, {"dtype": lib.float64})] + [
        outcome(lambda lib: getattr(lib, name)(-1), lib),
        outcome(lambda lib: getattr(lib, name)(4, dtype=lib.int64), lib)]


def recorded(lib, mode):
    """Whether a product is recorded inside a mode, and in a function that it decorates."""
    x = lib.ones(1, requires_grad=True)
    with mode:
        inside = (x * 2).requires_grad
    return [inside, lib.is_grad_enabled(), mode(lambda: (x * 2).requires_grad)(), (x * 2).requires_grad]


def generator_state(lib):
    before = lib.get_rng_state()
    a = lib.rand(3)
    lib.set_rng_state(before)
    b = lib.rand(3)
    lib.manual_seed(5)
    c = lib.rand(3)
    seed = lib.initial_seed()
    lib.random.manual_seed(5)
    return [bool((a == b).all()), bool((lib.rand(3) == c).all()), seed, before.dtype, before.ndim,
            isinstance(lib.seed(), int)]


def forked(lib):
    lib.manual_seed(1)
    with lib.random.fork_rng():
        a = lib.rand(2)
    b = lib.rand(2)
    with lib.random.fork_rng(enabled=False):
        lib.rand(1)
    return bool((a == b).all())


def hooks(lib):
    seen, x = [], lib.ones(2, requires_grad=True)
    handle = x.register_hook(lambda g: g * 3)
    x.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.tolist()))
    y = x * 2
    y.retain_grad()
    y.sum().backward()
    handle.remove()
    x.grad = None
    (x * 2).sum().backward()
    return [seen, y.grad, y.retains_grad, x.retains_grad, x.grad,
            outcome(lambda lib: lib.ones(1).register_hook(len), lib),
            outcome(lambda lib: lib.ones(1).retain_grad(), lib),
            outcome(lambda lib: (x * 1).register_post_accumulate_grad_hook(len), lib)]


def requiring(lib):
    x = lib.ones(2)
    return [x.requires_grad_() is x, x.requires_grad, x.requires_grad_(False).requires_grad,
            outcome(lambda lib: lib.tensor([1]).requires_grad_(), lib),
            outcome(lambda lib: setattr((lib.ones(1, requires_grad=True) * 2), "requires_grad", False), lib)]


def function_of(lib):
    class Cube(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x ** 3

        @staticmethod
        def backward(ctx, g):
            return 3 * ctx.saved_tensors[0] ** 2 * g

    x = lib.tensor([2.0], requires_grad=True)
    (g,) = lib.autograd.grad(Cube.apply(x), x, create_graph=True)
    return [g, lib.autograd.grad(g, x)]


def walks(lib):
    x, y = lib.tensor([2.0, 3.0], requires_grad=True), lib.ones(2, requires_grad=True)
    z = (x * x).sum()
    g = lib.autograd.grad(z, (x, y), create_graph=True, allow_unused=True)
    lib.autograd.backward([g[0].sum(), (x * 3).sum()], inputs=[x])
    return [g, x.grad, y.grad, outcome(lambda lib: lib.autograd.grad(x * 2, x), lib),
            outcome(lambda lib: lib.autograd.grad((x * x).sum(), y), lib),
            outcome(lambda lib: lib.autograd.grad(x.detach().sum(), x), lib)]


def checks(lib, check):
    x = lib.tensor([0.3, 0.7], dtype=lib.float64, requires_grad=True)
    return [check(lib.sin, (x,)), outcome(lambda lib: check(lambda x: x.detach() * x, (x,)), lib),
            check(lambda x: x.detach() * x, (x,), raise_exception=False)]


def anomaly(lib):
    x = lib.tensor([0.0], requires_grad=True)
    said = pytest.warns(UserWarning, match="Error detected in|has been enabled")
    with said, lib.autograd.detect_anomaly(check_nan=True):
        first = outcome(lambda lib: (x.sqrt() * 0).sum().backward(), lib)
    with lib.autograd.set_detect_anomaly(False):
        (x.sqrt() * 0).sum().backward()
    return [first, x.grad]


def exchanged(lib):
    a = np.arange(6.0).reshape(2, 3)
    t = lib.from_numpy(a[:, ::2])
    a[0, 0] = 9
    back = lib.ones(2, requires_grad=True)
    return [t, lib.from_numpy(np.float32([1])), outcome(lambda lib: lib.from_numpy([1]), lib), t.numpy(),
            outcome(lambda _: back.numpy(), lib), back.detach().numpy(), back.numpy(force=True),
            lib.ones(2, dtype=lib.complex64).numpy()]


def printed(lib):
    text = []
    for options in ({"precision": 2}, {"sci_mode": True}, {"profile": "short"}, {"profile": "default"}):
        lib.set_printoptions(**options)
        text.append(str(lib.tensor([1.23456789, 1e-3])))
    return text


def subclass(lib):
    class Mine(lib.Tensor):
        pass
    x = lib.ones(2).as_subclass(Mine)
    return [type(x).__name__, type(x * 2).__name__, outcome(lambda lib: lib.ones(1).as_subclass(int), lib)]


def mapped(lib):
    x = lib.arange(3.0)
    y = x.clone().map_(lib.ones(3), lambda a, b: a + 2 * b)
    return [x.apply_(lambda v: v * 2) is x, x, y]


def inferred(lib):
    with lib.inference_mode():
        x = lib.ones(2)
        inside = [lib.is_inference_mode_enabled(), x.is_inference(), lib.is_inference(x)]
    return [*inside, lib.is_inference_mode_enabled(), lib.is_inference(lib.ones(1)), lib.ones(1).is_inference(),
            outcome(lambda lib: x.requires_grad_(), lib)]


def pooled(name, *args):
    x = np.random.default_rng(0).standard_normal((2, 3, 6, 6, 6))

    def run(lib):
        f = getattr(lib.nn.functional, name)
        sample = lib.tensor(x[:, :, :, 0, 0] if "1d" in name else x[..., 0] if "2d" in name else x)
        return f(sample, *args)
    return run


def without_accelerator(name):
    """What a function says where there is no accelerator: nothing to count, or the class of its error."""
    calls = ((), (0,), (None,), ("cpu",), ("x",), ("cuda",), (1.5,))
    return lambda lib: [outcome(lambda lib, a=a: getattr(lib.accelerator, name)(*a), lib) for a in calls]


def fractional(name, size):
    def run(lib):
        ndim = 2 if "2d" in name else 3
        samples = lib.full((2, 3, ndim), 0.3, dtype=lib.float64)
        x = lib.tensor(np.random.default_rng(0).standard_normal((2, 3, *[7] * ndim)))
        return getattr(lib.nn.functional, name)(x, 2, size, _random_samples=samples)
    return run


def safe(lib):
    s = lib.serialization
    before = s.get_safe_globals()
    s.add_safe_globals([np.ndarray])
    found = [np.ndarray in s.get_safe_globals()]
    s.clear_safe_globals()
    found.append(s.get_safe_globals())
    with s.safe_globals([np.dtype]):
        found.append(np.dtype in s.get_safe_globals())
    found.append(s.get_safe_globals())
    s.add_safe_globals(before)
    file = io.BytesIO()
    lib.save({"x": lib.ones(2)}, file)
    file.seek(0)
    return [*found, s.get_unsafe_globals_in_checkpoint(file)]


def stored(lib, module):
    file = io.BytesIO()
    module.save({"a": [lib.ones(2, 3).t(), 1], "b": lib.nn.Parameter(lib.zeros(1))}, file)
    file.seek(0)
    return module.load(file)


def drawn(f):
    """Shape, dtype, whether they differ from each other, and whether a seed repeats them."""
    def run(lib):
        lib.manual_seed(3)
        a = f(lib)
        lib.manual_seed(3)
        return [a.dtype, a.shape, bool((a == f(lib)).all()), bool((a == f(lib)).all())]
    return run


def set_to(lib):
    a, b = lib.arange(4.0), lib.zeros(2)
    b.set_(a)
    c = lib.zeros(0).set_(a.untyped_storage(), 1, (2,), (2,))
    return [b.is_set_to(a), a[:2].is_set_to(a), b, c, b.data_ptr() == a.data_ptr(), lib.zeros(1).set_()]


def copied(lib):
    x = lib.zeros(2, 3)
    return [x.copy_(lib.arange(3)) is x, x, lib.zeros(2, dtype=lib.int64).copy_(lib.tensor([1.7, -1.7])),
            outcome(lambda lib: lib.zeros(2).copy_(lib.zeros(3)), lib), x.fill_(2) is x, x,
            outcome(lambda lib: lib.zeros(2).fill_(lib.ones(2)), lib)]


def typed(lib):
    name = lib.__name__
    return [lib.ones(1).type(lib.float64), lib.ones(1).type(f"{name}.LongTensor"), lib.ones(1).type(lib.IntTensor),
            lib.tensor([1.5]).type_as(lib.tensor([1])), outcome(lambda lib: lib.ones(1).type("int"), lib)]


def detached(lib):
    x = lib.ones(2, requires_grad=True)
    y = x * 2
    z = y.detach()
    y.detach_()
    return [z, y, y.is_leaf, z.data_ptr() == y.data_ptr(), outcome(lambda _: (x * 1)[:1].detach_(), lib)]


def default_dtype(lib):
    before = lib.get_default_dtype()
    try:
        lib.set_default_dtype(lib.float64)
        found = [lib.get_default_dtype(), lib.tensor(1.5), lib.ones(1), lib.tensor([1j])]
        found.append(outcome(lambda lib: lib.set_default_dtype(lib.int64), lib))
        lib.set_default_tensor_type(lib.FloatTensor)
        return [*found, lib.get_default_dtype()]
    finally:
        lib.set_default_dtype(before)


def default_device(lib):
    before = lib.get_default_device()
    try:
        lib.set_default_device("meta")
        return [before, lib.get_default_device(), lib.ones(2).device, lib.tensor([1]).device]
    finally:
        lib.set_default_device(None)


def threads(lib):
    before = lib.get_num_threads()
    lib.set_num_threads(1)
    now = lib.get_num_threads()
    lib.set_num_threads(before)
    return [now, lib.get_num_threads() == before, outcome(lambda lib: lib.set_num_threads(0), lib),
            *(outcome(lambda lib, n=n: lib.set_num_threads(n), lib) in ("TypeError", "RuntimeError")
              for n in (1.5, True, "1")),
            lib.get_num_interop_threads() >= 1, outcome(lambda lib: lib.set_num_interop_threads(0), lib)]


def graded(lib):
    x = lib.ones(2, requires_grad=True)
    first = x.grad
    (x * 2).sum().backward()
    (x * 3).sum().backward()
    return [first, x.grad, outcome(lambda _: setattr(x, "grad", lib.ones(3)), lib),
            outcome(lambda _: (x * 2).backward(), lib)]


PAIRS = [("float32", "int64"), ("uint8", "int8"), ("bool", "float16"), ("float16", "bfloat16"),
         ("complex64", "float64"), ("int64", "int32"), ("bfloat16", "complex64"), ("bool", "bool"),
         ("uint16", "uint16"), ("float64", "complex64")]


def of_pairs(f):
    return lambda lib: [outcome(lambda lib, a=a, b=b: f(lib, getattr(lib, a), getattr(lib, b)), lib) for a, b in PAIRS]


def numbers_of(lib, d):
    return [d, d.itemsize, d.is_floating_point, d.is_complex, d.is_signed, lib.zeros(1, dtype=d)]


def laid_out(lib, memory_format):
    x = lib.zeros(2, 3, 4, 5).contiguous(memory_format=lib.channels_last)
    return [str(memory_format), strides(x.clone(memory_format=memory_format))]


CASES = {
    # attributes
    **{f"Tensor.{n}": each(lambda x, n=n: getattr(x, n)) for n in (
        "H T mH mT real imag device grad is_cpu is_cuda is_leaf is_meta is_mps is_quantized is_sparse is_sparse_csr "
        "is_xla is_xpu itemsize nbytes ndim requires_grad retains_grad shape").split()},
    # methods without arguments, of every kind of tensor
    **{f"Tensor.{n}": shown(n) for n in (
        "adjoint dim element_size get_device is_complex is_conj is_contiguous is_floating_point is_inference is_neg "
        "is_pinned is_shared is_signed item ndimension nelement numel size storage_offset stride tolist to_dense cpu "
        "type").split()},
    "Tensor.size": lambda lib: [shown("size", -1)(lib), shown("size", 1)(lib), shown("size")(lib)],
    "Tensor.stride": lambda lib: [shown("stride", -1)(lib), shown("stride", 5)(lib)],
    "Tensor.is_contiguous": lambda lib: [shown("is_contiguous")(lib),
                                         shown("is_contiguous", memory_format=lib.channels_last)(lib)],
    "Tensor.new_tensor": lambda lib: [lib.ones(1, dtype=lib.float16).new_tensor(v) for v in (
        [1, 2], 3, [[1.5]], True, np.float32([2]))] + [
        lib.ones(1).new_tensor([1], dtype=lib.int64, requires_grad=False)],
    "Tensor.det": of_matrices("det"), "Tensor.slogdet": of_matrices("slogdet"),
    "Tensor.inverse": of_matrices("inverse"),
    "Tensor.matrix_power": lambda lib: [of_matrices("matrix_power", n)(lib) for n in (-2, 0, 1, 3)],
    "Tensor.orgqr": lambda lib: (lambda q, tau: q.orgqr(tau))(*lib.geqrf(matrices(lib)[1])).contiguous(),
    "Tensor.hardshrink": lambda lib: [lib.tensor([-1.0, 0.2, 2.0]).hardshrink(*args) for args in ((), (1.5,))],
    "Tensor.fill_": copied, "Tensor.copy_": copied, "Tensor.set_": set_to, "Tensor.is_set_to": set_to,
    "Tensor.type_as": typed, "Tensor.detach": detached, "Tensor.detach_": detached, "Tensor.as_subclass": subclass,
    "Tensor.apply_": mapped, "Tensor.map_": mapped, "Tensor.numpy": exchanged, "from_numpy": exchanged,
    "Tensor.requires_grad_": requiring, "Tensor.register_hook": hooks, "Tensor.retain_grad": hooks,
    "Tensor.register_post_accumulate_grad_hook": hooks, "Tensor.backward": graded,
    "Tensor.share_memory_": lambda lib: [lib.ones(2).share_memory_(), lib.ones(2).share_memory_().is_shared()],
    "Tensor.untyped_storage": lambda lib: [x.untyped_storage().nbytes() for x in samples(lib)],
    "Tensor.data_ptr": lambda lib: (lambda x: [y.data_ptr() - x.data_ptr() for y in (x[1:], x.view(2, 2))])(
        lib.arange(4)),
    "Tensor.nonzero_static": lambda lib: lib.tensor([[0, 1], [2, 0]]).nonzero_static(size=3, fill_value=-2),
    "Tensor.unsafe_chunk": lambda lib: lib.arange(5).unsafe_chunk(2),
    "Tensor.unsafe_split": lambda lib: [lib.arange(5).unsafe_split(2), lib.ones(2, 3).unsafe_split(2, 1)],
    # random numbers: other ones, of the same kind
    "Tensor.bernoulli_": drawn(lambda lib: lib.zeros(200).bernoulli_(0.5)),
    "Tensor.bernoulli": drawn(lambda lib: lib.full((200,), 0.5).bernoulli()),
    "Tensor.random_": lambda lib: [drawn(lambda lib: lib.zeros(200).random_())(lib),
                                   drawn(lambda lib: lib.zeros(200, dtype=lib.int64).random_(3, 900))(lib)],
    "Tensor.multinomial": drawn(lambda lib: lib.ones(50).multinomial(20)),
    "poisson": drawn(lambda lib: lib.poisson(lib.full((200,), 4.0))),
    "rand": lambda lib: [drawn(lambda lib: lib.rand(3, 4))(lib),
                         drawn(lambda lib: lib.rand((5,), dtype=lib.float64))(lib)],
    "randperm": lambda lib: [drawn(lambda lib: lib.randperm(50))(lib), lib.randperm(20).sort()[0]],
    "rrelu_": lambda lib: lib.rrelu_(lib.tensor([-1.0, 2.0]), 0.25, 0.25),
    "nn.functional.gumbel_softmax": drawn(lambda lib: lib.nn.functional.gumbel_softmax(lib.zeros(3, 9))),
    "nn.functional.dropout1d": lambda lib: [drawn(lambda lib: lib.nn.functional.dropout1d(lib.ones(20, 30, 2)))(lib),
                                            lib.nn.functional.dropout1d(lib.ones(2, 3, 4), training=False)],
    **dict.fromkeys(("get_rng_state", "set_rng_state", "initial_seed", "manual_seed", "seed", "random.get_rng_state",
                     "random.set_rng_state", "random.initial_seed", "random.manual_seed", "random.seed"),
                    generator_state),
    "random.fork_rng": forked,
    # creation
    "tensor": lambda lib: [outcome(lambda lib, v=v: lib.tensor(v), lib) for v in (
        1, 1.5, True, 1j, [1, 2.5], [[1], [2]], [], [[]], np.arange(3), np.float16(1), [True, 2], "x", [[1], [2, 3]],
        None)],
    "as_tensor": lambda lib: [lib.as_tensor(v) for v in ([1, 2], np.ones(2), 3.5)] + [
        lib.as_tensor([1], dtype=lib.float64)],
    "asarray": lambda lib: [lib.asarray(v) for v in ([1, 2], np.ones(2), 3.5)] + [lib.asarray([1], dtype=lib.float64),
                            lib.asarray(lib.ones(2), copy=True)],
    "frombuffer": lambda lib: [lib.frombuffer(bytearray(8), dtype=lib.int16),
                               lib.frombuffer(bytearray(range(8)), dtype=lib.uint8, count=2, offset=3),
                               outcome(lambda lib: lib.frombuffer(bytearray(3), dtype=lib.int16), lib),
                               outcome(lambda lib: lib.frombuffer(bytearray(4), dtype=lib.int16, offset=9), lib)],
    "from_dlpack": lambda lib: lib.from_dlpack(np.arange(3.0)),
    "range": lambda lib: [lib.range(1, 3), lib.range(0, 1, 0.25), outcome(lambda lib: lib.range(3, 1), lib)],
    **{f"{n}_window": window(f"{n}_window") for n in ("bartlett", "blackman", "hamming", "hann", "kaiser")},
    # in place
    "relu_": in_place("relu_", of=""), "celu_": in_place("celu_", of=""), "selu_": in_place("selu_", of=""),
    "threshold_": in_place("threshold_", 0, 20, of=""),
    # predicates and dtypes
    **{n: (lambda lib, n=n: [getattr(lib, n)(x) for x in samples(lib)]) for n in (
        "is_complex", "is_floating_point", "is_tensor", "numel", "is_conj")},
    "is_nonzero": lambda lib: [outcome(lambda lib, v=v: lib.is_nonzero(lib.tensor(v)), lib) for v in (
        0, 1, 0.0, [2.5], [], [1, 2], 1j)],
    "can_cast": of_pairs(lambda lib, a, b: [lib.can_cast(a, b), lib.can_cast(b, a)]),
    "promote_types": of_pairs(lambda lib, a, b: lib.promote_types(a, b)),
    "result_type": of_pairs(lambda lib, a, b: [lib.result_type(lib.ones(1, dtype=a), lib.ones(1, dtype=b)),
                                               lib.result_type(lib.ones(1, dtype=a), lib.ones((), dtype=b)),
                                               lib.result_type(lib.ones(1, dtype=a), 1.5)]),
    **{n: (lambda lib, n=n: numbers_of(lib, getattr(lib, n))) for n in (*NUMBERS, "uint16", "uint32", "uint64")
       if n != "bool"},
    **{n: (lambda lib, n=n: laid_out(lib, getattr(lib, n))) for n in (
        "channels_last", "contiguous_format", "preserve_format")},
    "channels_last_3d": lambda lib: lib.zeros(2, 3, 2, 2, 2).contiguous(memory_format=lib.channels_last_3d),
    # modes and settings
    "no_grad": lambda lib: recorded(lib, lib.no_grad()),
    "autograd.no_grad": lambda lib: recorded(lib, lib.autograd.no_grad()),
    **{n: (lambda lib: [lib.no_grad()(lambda: recorded(lib, lib.enable_grad()))(), lib.is_grad_enabled()])
       for n in ("enable_grad", "autograd.enable_grad", "is_grad_enabled")},
    **{n: (lambda lib: [recorded(lib, lib.set_grad_enabled(v)) for v in (False, True)])
       for n in ("set_grad_enabled", "autograd.set_grad_enabled")},
    **dict.fromkeys(("inference_mode", "autograd.inference_mode", "is_inference", "is_inference_mode_enabled"),
                    inferred),
    **dict.fromkeys(("get_default_dtype", "set_default_dtype", "set_default_tensor_type"), default_dtype),
    **dict.fromkeys(("get_default_device", "set_default_device"), default_device),
    **dict.fromkeys(("get_num_threads", "set_num_threads", "get_num_interop_threads", "set_num_interop_threads"),
                    threads),
    **dict.fromkeys(("get_float32_matmul_precision", "set_float32_matmul_precision"),
                    restored(lambda lib: lib.get_float32_matmul_precision(),
                             lambda lib, v: lib.set_float32_matmul_precision(v), lambda lib: "high")),
    "set_flush_denormal": lambda lib: isinstance(lib.set_flush_denormal(False), bool),
    "set_printoptions": printed,
    **dict.fromkeys(("are_deterministic_algorithms_enabled", "use_deterministic_algorithms"),
                    restored(lambda lib: lib.are_deterministic_algorithms_enabled(),
                             lambda lib, v: lib.use_deterministic_algorithms(v), lambda lib: True)),
    # autograd
    "autograd.Function": function_of, "autograd.grad": walks, "autograd.backward": walks,
    "autograd.gradcheck": lambda lib: checks(lib, lib.autograd.gradcheck),
    "autograd.gradgradcheck": lambda lib: lib.autograd.gradgradcheck(
        lib.sin, (lib.tensor([0.3], dtype=lib.float64, requires_grad=True),)),
    "autograd.detect_anomaly": anomaly, "autograd.set_detect_anomaly": anomaly,
    # files
    "save": lambda lib: stored(lib, lib), "load": lambda lib: stored(lib, lib),
    **dict.fromkeys(("serialization.save", "serialization.load"), lambda lib: stored(lib, lib.serialization)),
    **dict.fromkeys([f"serialization.{n}" for n in (
        "add_safe_globals", "clear_safe_globals", "get_safe_globals", "safe_globals",
        "get_unsafe_globals_in_checkpoint")], safe),
    # pooling with places, transforms, devices
    **{f"nn.functional.max_pool{d}d_with_indices": pooled(f"max_pool{d}d_with_indices", 2) for d in (1, 2, 3)},
    **{f"nn.functional.adaptive_max_pool{d}d_with_indices": pooled(f"adaptive_max_pool{d}d_with_indices", 4)
       for d in (1, 2, 3)},
    **{f"nn.functional.fractional_max_pool{d}d_with_indices": fractional(f"fractional_max_pool{d}d_with_indices", 3)
       for d in (2, 3)},
    "nn.functional.upsample": lambda lib: lib.nn.functional.upsample(lib.arange(4.0).view(1, 1, 2, 2), scale_factor=2),
    "fft.fftfreq": lambda lib: [lib.fft.fftfreq(n, d) for n in (1, 4, 5) for d in (1.0, 0.5)],
    "fft.rfftfreq": lambda lib: [lib.fft.rfftfreq(n, d) for n in (1, 4, 5) for d in (1.0, 0.5)],
    **{f"cpu.{n}": (lambda lib, n=n: getattr(lib.cpu, n)()) for n in (
        "current_device", "device_count", "is_available", "synchronize")},
    **{f"accelerator.{n}": without_accelerator(n) for n in (
        "current_accelerator current_device_idx current_device_index current_stream device_count empty_cache "
        "empty_host_cache get_device_capability get_memory_info is_available max_memory_allocated max_memory_reserved "
        "memory_allocated memory_reserved memory_stats reset_accumulated_memory_stats reset_peak_memory_stats "
        "set_device_idx set_device_index set_stream synchronize").split()},
    "Tensor.cuda": lambda lib: [outcome(lambda lib, a=a: lib.ones(1).cuda(*a), lib) for a in (
        ("cpu",), ("x",), (1.5,), ([],))],
    "Tensor.pin_memory": lambda lib: [outcome(lambda lib, a=a: lib.ones(1).pin_memory(*a), lib) for a in (
        (), ("cpu",), (3,))],
    "Tensor.record_stream": lambda lib: [outcome(lambda lib, a=a: lib.ones(1).record_stream(*a), lib) for a in (
        (), (None,), (3,), (lib.cpu.current_stream(),))],
    **{name: (lambda lib, name=name: [c.__name__ for c in getattr(lib, name).__mro__ if c is not MemoryError])
       for name in ("AcceleratorError", "OutOfMemoryError")},
}


@pytest.mark.parametrize("name", CASES)
def test_name(name):
    with contextlib.redirect_stderr(io.StringIO()):
        got, want = outcome(CASES[name], pt), outcome(CASES[name], torch)
    assert same(got, want), f"\n{got}\n{want}"
    assert not isinstance(want, Raised), f"torch takes none of the calls: {want}"
