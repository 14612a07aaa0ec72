"""Custom ops: values, gradients, batches, what they write to, kernels by device, and what is wrong with them."""

import gc
import threading

import numpy as np
import pytest

import ptcore as pt
from ptcore import Tensor, library

pytestmark = pytest.mark.core


@pytest.fixture
def sine():
    """y = sin(x) by NumPy."""

    @library.custom_op("tests::sine", mutates_args=())
    def sine(x: Tensor) -> Tensor:
        """The sine."""
        return pt.from_numpy(np.asarray(np.sin(x.numpy())))

    @sine.register_fake
    def _(x):
        return pt.empty_like(x)

    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * x.cos()

    sine.register_autograd(backward, setup_context=setup_context)
    return sine


@pytest.fixture
def weighted():
    """Lists of tensors and of numbers, an argument by keyword, and two results, one of them a list."""

    @library.custom_op("tests::weighted", mutates_args=())
    def weighted(tensors: list[Tensor], weights: list[float], *, scale: float = 1.0) -> tuple[Tensor, list[Tensor]]:
        total = sum(t * w for t, w in zip(tensors, weights)) * scale
        return total, [t * t for t in tensors]

    @weighted.register_fake
    def _(tensors, weights, *, scale=1.0):
        return pt.empty_like(tensors[0]), [pt.empty_like(t) for t in tensors]

    def setup_context(ctx, inputs, keyword_only_inputs, output):
        tensors, ctx.weights = inputs
        ctx.scale = keyword_only_inputs["scale"]
        ctx.save_for_backward(*tensors)
        ctx.needs = ctx.needs_input_grad

    def backward(ctx, g, squares):
        assert ctx.needs_input_grad == ctx.needs
        return [g * w * ctx.scale + 2 * t * s for w, t, s in zip(ctx.weights, ctx.saved_tensors, squares)], None

    weighted.register_autograd(backward, setup_context=setup_context)
    return weighted


# -- values and gradients ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "x",
    [
        pt.linspace(-3, 3, 24, dtype=pt.float64).reshape(4, 6),
        pt.zeros(0, 3),
        pt.tensor(1.5),
        pt.arange(12.0).reshape(3, 4).T,
        pt.arange(10.0)[::-2],
        pt.tensor([np.nan, np.inf]),
    ],
)
def test_values(sine, x):
    with np.errstate(invalid="ignore"):
        y = sine(x)
        np.testing.assert_array_equal(y.numpy(), np.sin(x.numpy()))
    assert y.dtype is x.dtype and not y.requires_grad


def test_gradients(sine):
    x = pt.randn(3, 4, dtype=pt.float64, requires_grad=True)
    assert pt.autograd.gradcheck(sine, (x,)) and pt.autograd.gradgradcheck(sine, (x,))
    y = sine(x)
    assert "tests_sine" in y.grad_fn.name()
    (g,) = pt.autograd.grad(y.sum(), x)
    np.testing.assert_allclose(g.numpy(), np.cos(x.detach().numpy()))
    with pt.no_grad():
        assert not sine(x).requires_grad


def test_names_of_the_op(sine):
    x = pt.ones(2)
    packet = pt.ops.tests.sine
    assert packet.overloads() == ["default"] and packet.default is sine._opoverload
    assert packet(x).equal(sine(x)) and packet.default(x=x).equal(sine(x))
    assert str(packet.default._schema) == "tests::sine(Tensor x) -> Tensor"
    assert packet.default.name() == "tests::sine" and packet.default.namespace == "tests"
    assert packet.default.overloadpacket is packet and pt.ops["tests::sine"].kind == "custom"
    assert sine.__name__ == "sine" and sine.__doc__ == "The sine." and repr(sine) == "<CustomOpDef(tests::sine)>"
    assert hasattr(pt.ops.tests, "sine") and not hasattr(pt.ops.tests, "cosine") and "sine" in dir(pt.ops.tests)
    assert not hasattr(packet.default, "cosine") and not hasattr(pt.add, "cosine")


def test_lists_keywords_and_several_results(weighted):
    a, b = pt.tensor([1.0, 2.0], requires_grad=True), pt.tensor([3.0, 4.0], requires_grad=True)
    total, squares = weighted([a, b], (1, 2), scale=3.0)
    assert total.tolist() == [21, 30] and [s.tolist() for s in squares] == [[1, 4], [9, 16]]
    (total.sum() + squares[1].sum()).backward()
    assert a.grad.tolist() == [3, 3] and b.grad.tolist() == [12, 14]
    x = [pt.randn(3, dtype=pt.float64, requires_grad=True) for _ in range(3)]
    assert pt.autograd.gradcheck(lambda *x: weighted(list(x), [1.0, 2.0, 3.0], scale=0.5)[0], x)
    assert pt.autograd.gradgradcheck(lambda *x: weighted(list(x), [1.0, 2.0, 3.0])[1], x)
    assert weighted([a.detach()], [1.0])[0].tolist() == [1, 2]


def test_needs_and_parts_of_gradients(weighted):
    asked = []

    def backward(ctx, g, squares):
        asked.append(ctx.needs_input_grad)
        return [g, None], None

    weighted.register_autograd(backward)
    a, b = pt.ones(2, requires_grad=True), pt.ones(2)
    weighted([a, b], [1.0, 1.0])[0].sum().backward()
    assert asked == [([True, False], False)] and a.grad.tolist() == [1, 1]
    for wrong, message in (
        (lambda ctx, g, s: [g, None], "must return 2 gradients, one for each argument, got 1"),
        (lambda ctx, g, s: ([g], None), "argument 0 is a list of 2 tensors, got list"),
        (lambda ctx, g, s: (g, None), "argument 0 is a list of 2 tensors, got Tensor"),
    ):
        weighted.register_autograd(wrong)
        with pytest.raises(RuntimeError, match=message):
            weighted([a, b], [1.0, 1.0])[0].sum().backward()


def test_optional_arguments():
    @library.custom_op("tests::shifted", mutates_args=())
    def shifted(x: Tensor, by: Tensor | None = None, *, times: int | None = None) -> Tensor:
        y = x.clone() if by is None else x + by
        return y if times is None else y * times

    shifted.register_autograd(lambda ctx, g: (g, g if ctx.needs_input_grad[1] else None))
    x, by = pt.ones(2, requires_grad=True), pt.ones(2, requires_grad=True)
    assert (
        shifted(x).tolist() == [1, 1] and shifted(x, by).tolist() == [2, 2] and shifted(x, times=3).tolist() == [3, 3]
    )
    shifted(x).sum().backward()
    shifted(x, by).sum().backward()
    assert x.grad.tolist() == [2, 2] and by.grad.tolist() == [1, 1]


def test_without_a_formula():
    @library.custom_op("tests::doubled", mutates_args=())
    def doubled(x: Tensor) -> Tensor:
        return x * 2

    x = pt.ones(2, requires_grad=True)
    y = doubled(x)
    assert y.requires_grad
    with pytest.raises(
        RuntimeError, match="Trying to backward through tests::doubled but no autograd formula was registered"
    ):
        y.sum().backward()
    assert not doubled(x.detach()).requires_grad


def test_output_saved_by_setup_context():
    @library.custom_op("tests::exponential", mutates_args=())
    def exponential(x: Tensor) -> Tensor:
        return x.exp()

    exponential.register_autograd(
        lambda ctx, g: g * ctx.saved_tensors[0], setup_context=lambda ctx, inputs, output: ctx.save_for_backward(output)
    )
    x = pt.randn(3, dtype=pt.float64, requires_grad=True)
    assert pt.autograd.gradcheck(exponential, (x,)) and pt.autograd.gradgradcheck(exponential, (x,))


# -- transformations --------------------------------------------------------------------------------------------------


def test_batches_sample_by_sample(sine, weighted):
    x = pt.randn(5, 3)
    assert pt.vmap(sine)(x).equal(sine(x))
    assert pt.vmap(sine, in_dims=1, out_dims=1)(x).equal(sine(x))
    total, squares = pt.vmap(lambda a, b: weighted([a, b], [1.0, 2.0]), in_dims=(0, None))(x, pt.ones(3))
    pt.testing.assert_close(total, x + 2)
    pt.testing.assert_close(squares[0], x * x)
    assert squares[1].shape == (5, 3)
    assert pt.vmap(pt.vmap(sine))(x).equal(sine(x))
    with pytest.raises(RuntimeError, match="tests::sine has no rule for batches"):
        pt.vmap(sine)(pt.zeros(0, 2))


def test_batches_by_a_rule(sine):
    seen = []

    @sine.register_vmap
    def rule(info, in_dims, x):
        seen.append((info.batch_size, in_dims, tuple(x.shape)))
        return sine(x), in_dims[0]

    x = pt.randn(5, 3)
    assert pt.vmap(sine)(x).equal(sine(x)) and seen == [(5, (0,), (5, 3))]
    sine.register_vmap(lambda info, in_dims, x: sine(x))
    with pytest.raises(RuntimeError, match=r"must return \(output, out_dims\)"):
        pt.vmap(sine)(x)


def test_rule_of_lists_and_keywords(weighted):
    @weighted.register_vmap
    def rule(info, in_dims, tensors, weights, *, scale):
        assert in_dims == ([0, None], None) and scale == 2.0
        total, squares = weighted([tensors[0], tensors[1].expand_as(tensors[0])], weights, scale=scale)
        return (total, squares), (0, [0, 0])

    x = pt.randn(4, 3)
    total, squares = pt.vmap(lambda a: weighted([a, pt.ones(3)], [1.0, 2.0], scale=2.0))(x)
    pt.testing.assert_close(total, 2 * x + 4)
    assert squares[1].shape == (4, 3)


def test_gradients_inside_transformations(sine):
    x = pt.randn(4, dtype=pt.float64)
    pt.testing.assert_close(pt.func.grad(lambda x: sine(x).sum())(x), x.cos())
    pt.testing.assert_close(pt.vmap(pt.func.grad(sine))(x), x.cos())
    pt.testing.assert_close(pt.func.jacrev(sine)(x), x.cos().diag())
    pt.testing.assert_close(pt.func.grad(lambda x: pt.func.grad(lambda x: sine(x).sum())(x).sum())(x), -x.sin())
    pt.testing.assert_close(pt.func.grad(lambda x: pt.vmap(sine)(x).sum())(x), x.cos())
    x.requires_grad_()
    (g,) = pt.autograd.grad(pt.vmap(sine)(x).sum(), x)
    pt.testing.assert_close(g, x.detach().cos())
    with pytest.raises(NotImplementedError, match="jvp"):
        pt.func.jvp(sine, (x.detach(),), (x.detach(),))


def test_torch_function_sees_the_call(sine):
    calls = []

    class Seen(Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            calls.append(func)
            return super().__torch_function__(func, types, args, kwargs or {})

    x = pt.ones(2).as_subclass(Seen)
    assert type(sine(x)) is Seen and calls[0] is pt.ops.tests.sine.default

    class Mode(pt.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return "mode" if func is pt.ops.tests.sine.default else func(*args, **(kwargs or {}))

    with Mode():
        assert sine(pt.ones(2)) == "mode"


# -- what is written to -----------------------------------------------------------------------------------------------


def test_writes():
    @library.custom_op("tests::add_", mutates_args={"x"})
    def add_(x: Tensor, by: float) -> None:
        x.numpy()[...] += by

    x = pt.zeros(3)
    before = x._version
    assert add_(x, 2.0) is None and x.tolist() == [2, 2, 2] and x._version == before + 1
    y = x[1:]
    add_(y, 1.0)
    assert x.tolist() == [2, 3, 3]
    w = pt.ones(3, requires_grad=True)
    z = w * x
    add_(x, 1.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()
    with pytest.raises(RuntimeError, match=r"a leaf Variable that requires grad .* \(argument 'x'\)"):
        add_(w, 1.0)
    with pytest.raises(RuntimeError, match="non-functional operator"):
        add_.register_autograd(lambda ctx, g: None)
    batch = pt.zeros(3, 2)
    pt.vmap(lambda x: add_(x, 1.0) or x)(batch)
    assert batch.tolist() == [[1, 1]] * 3

    @library.custom_op("tests::both", mutates_args={"x"})
    def both(x: Tensor, y: Tensor) -> None:
        x.add_(y)

    with pytest.raises(RuntimeError, match="tests::both writes to 'x', which is not batched"):
        pt.vmap(lambda y: both(batch, y))(batch)
    assert add_(pt.zeros(2, device="meta"), 1.0) is None


def test_unknown_writes():
    @library.custom_op("tests::unknown", mutates_args="unknown")
    def unknown(x: Tensor, ys: list[Tensor], n: int) -> None:
        ys[1].add_(n)

    assert str(unknown._opoverload._schema) == "tests::unknown(Tensor(a0!) x, Tensor(a1!)[] ys, SymInt n) -> ()"
    ys = [pt.zeros(1), pt.zeros(1)]
    versions = [y._version for y in ys]
    unknown(pt.ones(1), ys, 3)
    assert ys[1].tolist() == [3] and all(y._version > v for y, v in zip(ys, versions))


def test_tags_of_writes():
    @library.custom_op("tests::negated_", mutates_args={"x"}, tags=library.tag.Tag.inplace)
    def negated_(x: Tensor) -> Tensor:
        return x.neg_()

    x = pt.ones(2)
    assert negated_(x) is x and x.tolist() == [-1, -1]

    @library.custom_op("tests::negated_out", mutates_args={"out"}, tags=library.tag.Tag.out)
    def negated_out(x: Tensor, *, out: Tensor) -> Tensor:
        return out.copy_(-x)

    out = pt.zeros(2)
    assert negated_out(x, out=out) is out and out.tolist() == [1, 1]

    @library.custom_op("tests::wrong_", mutates_args={"x"}, tags=library.tag.Tag.inplace)
    def wrong_(x: Tensor) -> Tensor:
        return x.neg_().clone()

    with pytest.raises(RuntimeError, match="must return its first argument"):
        wrong_(x)
    with pytest.raises(RuntimeError, match="Out variants do not support autograd"):
        negated_out.register_autograd(lambda ctx, g: g)


def test_results_that_show_arguments():
    @library.custom_op("tests::same", mutates_args=())
    def same(x: Tensor, how: str) -> Tensor:
        return {"same": x, "view": x[:1], "new": x.clone()}[how]

    x = pt.ones(3)
    assert same(x, "new").equal(x)
    for how in ("same", "view"):
        with pytest.raises(RuntimeError, match=r"may not alias any inputs.*return x.clone\(\)"):
            same(x, how)

    @library.custom_op("tests::twice", mutates_args=())
    def twice(x: Tensor) -> tuple[Tensor, Tensor]:
        y = x.clone()
        return y, y

    with pytest.raises(RuntimeError, match="other returns"):
        twice(x)


def test_results_of_other_types():
    @library.custom_op("tests::odd", mutates_args=())
    def odd(x: Tensor, how: int) -> tuple[Tensor, Tensor]:
        return [x.clone(), (x.clone(),), (x.clone(), 3)][how]

    for how, message in (
        (0, "must return 2 values, as the schema says, got Tensor"),
        (1, "got 1 values"),
        (2, "Unable to cast int to Tensor"),
    ):
        with pytest.raises(RuntimeError, match=message):
            odd(pt.ones(2), how)

    @library.custom_op("tests::nothing", mutates_args={"x"})
    def nothing(x: Tensor) -> None:
        return x

    with pytest.raises(RuntimeError, match="the kernel must return None, as the schema says, got Tensor"):
        nothing(pt.ones(2))


def test_numbers_as_results():
    @library.custom_op("tests::count", mutates_args=())
    def count(x: Tensor) -> int:
        return int((x > 0).sum())

    assert count(pt.tensor([1.0, -1.0, 2.0])) == 2


def test_numbers_of_batches():
    """One number stands for all samples only if it is the same for all."""
    @library.custom_op("tests::total", mutates_args=())
    def total(x: Tensor) -> float:
        return float(x.sum())

    x = pt.tensor([[0.0, 3.0], [1.0, 2.0], [float("nan"), 1.0]])
    assert pt.vmap(lambda x: x * total(x))(x[:2]).tolist() == [[0, 9], [3, 6]]
    assert np.isnan(pt.vmap(lambda x: x * total(x))(x[2:]).numpy()).all()
    with pytest.raises(RuntimeError, match=r"tests::total gives a number for each sample, and they differ: 3\.0"):
        pt.vmap(total)(x)


def test_numbers_of_other_types():
    @library.custom_op("tests::half", mutates_args=())
    def half(x: Tensor, result: float) -> int:
        return result if result % 1 else int(result)

    assert half(pt.ones(1), 4.0) == 4
    with pytest.raises(RuntimeError, match="tests::half: Unable to cast float to SymInt"):
        half(pt.ones(1), 2.5)
    half.register_kernel("cpu")(lambda x, result: "2")
    with pytest.raises(RuntimeError, match="tests::half: Unable to cast str to SymInt"):
        half(pt.ones(1), 2.5)


def test_a_tuple_for_a_list_of_results():
    @library.custom_op("tests::powers", mutates_args=())
    def powers(x: Tensor) -> tuple[Tensor, list[Tensor]]:
        return x * 2, (x**2, x**3)

    powers.register_autograd(lambda ctx, a, b: 2 * a + b[0] * 2 * ctx.x + b[1] * 3 * ctx.x**2,
                             setup_context=lambda ctx, inputs, output: setattr(ctx, "x", inputs[0].detach()))
    x = pt.tensor([2.0, 3.0], requires_grad=True)
    _, (square, cube) = powers(x)
    assert square.requires_grad and cube.requires_grad
    assert pt.autograd.grad((square + cube).sum(), x)[0].tolist() == [4 + 12, 6 + 27]
    square, cube = pt.vmap(powers)(x.detach())[1]
    assert (square.tolist(), cube.tolist()) == ([4, 9], [8, 27])


# -- devices and kernels ----------------------------------------------------------------------------------------------


def test_meta(sine, weighted):
    x = pt.empty(2, 3, device="meta")
    assert sine(x).shape == (2, 3) and sine(x).is_meta
    assert [s.shape for s in weighted([x, x], [1.0, 2.0])[1]] == [(2, 3)] * 2

    @library.custom_op("tests::faceless", mutates_args=())
    def faceless(x: Tensor) -> Tensor:
        return x * 2

    with pytest.raises(NotImplementedError, match="There was no fake impl registered for tests::faceless"):
        faceless(x)


def test_kernels_by_device():
    @library.custom_op("tests::where", mutates_args=())
    def where(x: Tensor) -> Tensor:
        return pt.zeros(1)

    @where.register_kernel("cpu")
    def _(x):
        return pt.ones(1)

    x = pt.ones(1)
    assert where(x).item() == 1
    with where.set_kernel_enabled("cpu", False):
        assert where(x).item() == 0
        with where.set_kernel_enabled("cpu", True):
            assert where(x).item() == 1
    assert where(x).item() == 1

    @library.custom_op("tests::elsewhere", mutates_args=(), device_types="cuda")
    def elsewhere(x: Tensor) -> Tensor:
        return x.clone()

    with pytest.raises(
        NotImplementedError,
        match=r"Could not run 'tests::elsewhere' with arguments from the 'cpu' backend: "
        r"no kernel is registered for it, there is: cuda",
    ):
        elsewhere(x)


def test_ops_without_tensors():
    @library.custom_op("tests::made", mutates_args=(), device_types="cpu")
    def made(n: int, device: pt.device, dtype: pt.dtype = pt.float32) -> Tensor:
        assert type(device) is pt.device
        return pt.ones(n, dtype=dtype)

    assert made(2, "cpu").tolist() == [1, 1] and made(2, "cpu", pt.int32).dtype is pt.int32
    with pytest.raises(NotImplementedError, match=r"'meta' backend|fake"):
        made(2, "meta")
    with pytest.raises(ValueError, match=r"are required to have a `device: torch.device` argument"):
        library.custom_op("tests::made2", lambda: None, mutates_args=(), schema="(int n) -> Tensor", device_types="cpu")


def test_autocast():
    @library.custom_op("tests::product", mutates_args=())
    def product(x: Tensor, ys: list[Tensor]) -> Tensor:
        return x @ ys[0]

    seen = []
    product.register_kernel(
        "cpu", lambda x, ys: (seen.append((x.dtype, ys[0].dtype, pt.is_autocast_enabled("cpu"))), x @ ys[0])[1]
    )
    product.register_autocast("cpu", pt.bfloat16)
    x = pt.ones(2, 2)
    with pt.autocast("cpu", dtype=pt.float16):
        assert product(x, [x]).dtype is pt.bfloat16 and product(x.double(), [x.double()]).dtype is pt.float64
    assert seen == [(pt.bfloat16, pt.bfloat16, False), (pt.float64, pt.float64, False)]
    assert product(x, [x]).dtype is pt.float32
    library.register_autocast(product, "cpu", pt.float16)
    with pt.autocast("cpu", dtype=pt.bfloat16):
        assert product(x, [x]).dtype is pt.float16
    with pytest.raises(ValueError, match="does not support autocast"):
        product.register_autocast("meta", pt.float16)
    with pytest.raises(ValueError, match="Expected `device_type` of type `str`"):
        product.register_autocast(3, pt.float16)


# -- the life of an op ------------------------------------------------------------------------------------------------


def test_an_op_is_replaced(sine):
    first = pt.ops.tests.sine.default

    @library.custom_op("tests::sine", mutates_args=())
    def other(x: Tensor, n: int = 2) -> Tensor:
        return x * n

    assert pt.ops.tests.sine(pt.ones(1), 3).item() == 3 and pt.ops.tests.sine.default is not first
    assert other(pt.ones(1)).item() == 2


def test_threads_do_not_see_each_other(sine):
    """The state of a call is the thread's: a call in a kernel, or beside one, is recorded as ever."""
    inside = threading.Barrier(2)

    @library.custom_op("tests::slow", mutates_args=())
    def slow(x: Tensor) -> Tensor:
        inside.wait(5)
        inside.wait(5)
        return x.clone()

    slow.register_autograd(lambda ctx, g: g)
    x = pt.ones(1, requires_grad=True)
    t = threading.Thread(target=lambda: slow(x).sum().backward())
    t.start()
    inside.wait(5)
    assert sine(x).requires_grad
    inside.wait(5)
    t.join()
    assert x.grad.item() == 1


def test_a_kernel_that_raises_leaves_nothing_behind():
    fails = [True]

    @library.custom_op("tests::failing", mutates_args=())
    def failing(x: Tensor) -> Tensor:
        if fails[0]:
            raise ZeroDivisionError("in the kernel")
        return x * 2

    failing.register_autograd(lambda ctx, g: g * 2)
    x = pt.ones(1, requires_grad=True)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError, match="in the kernel"):
            failing(x)
    fails[0] = False
    failing(x).backward()
    assert x.grad.item() == 2


def test_ops_in_ops(sine):
    """A kernel calls another op, and itself."""

    @library.custom_op("tests::nested", mutates_args=())
    def nested(x: Tensor, depth: int) -> Tensor:
        return sine(x) if depth == 0 else nested(x, depth - 1)

    nested.register_autograd(
        lambda ctx, g: (g * ctx.x.cos(), None), setup_context=lambda ctx, inputs, output: setattr(ctx, "x", inputs[0])
    )
    x = pt.tensor([0.5], requires_grad=True)
    nested(x, 2).backward()
    pt.testing.assert_close(x.grad, x.detach().cos())


def test_backward_by_another_op():
    @library.custom_op("tests::cube_backward", mutates_args=())
    def cube_backward(g: Tensor, x: Tensor) -> Tensor:
        return pt.from_numpy(g.numpy() * 3 * x.numpy() ** 2)

    cube_backward.register_autograd(
        lambda ctx, gg: (gg * 3 * ctx.saved_tensors[1] ** 2, gg * 6 * ctx.saved_tensors[1] * ctx.saved_tensors[0]),
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
    )

    @library.custom_op("tests::cube", mutates_args=())
    def cube(x: Tensor) -> Tensor:
        return pt.from_numpy(x.numpy() ** 3)

    cube.register_autograd(
        lambda ctx, g: cube_backward(g, *ctx.saved_tensors),
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
    )
    x = pt.randn(3, dtype=pt.float64, requires_grad=True)
    assert pt.autograd.gradcheck(cube, (x,)) and pt.autograd.gradgradcheck(cube, (x,))


def test_no_memory_is_kept(sine):
    import weakref

    x = pt.ones(3, requires_grad=True)
    held = weakref.ref(x)
    y = sine(x)
    y.sum().backward()
    del x, y
    gc.collect()
    assert held() is None


# -- what cannot be an op ---------------------------------------------------------------------------------------------


def test_wrong_definitions():
    def make(f, name="tests::wrong", **options):
        return library.custom_op(name, f, **{"mutates_args": (), **options})

    def plain(x: Tensor) -> Tensor:
        return x.clone()

    for name in ("noname", "a::b::c", "::x", "x::"):
        with pytest.raises(ValueError, match='of the form "namespace::name"'):
            make(plain, name)
    with pytest.raises(RuntimeError, match="is an op of ptcore itself"):
        make(plain, "aten::sin")
    with pytest.raises(ValueError, match=r"{'y'} in mutates_args were not found"):
        make(plain, mutates_args=("y",))
    with pytest.raises(ValueError, match=r"The schema suggests that the op mutates {'x'}"):
        make(plain, schema="(Tensor(a!) x) -> Tensor")
    assert not hasattr(pt.ops.tests, "wrong")

    def by_keyword(*, x: Tensor) -> Tensor:
        return x.clone()

    with pytest.raises(NotImplementedError, match="kwarg-only Tensor args"):
        make(by_keyword)
    with pytest.raises(RuntimeError, match="expected"):
        make(plain, schema="Tensor x -> Tensor")


@pytest.mark.parametrize("options, error", [
    ({"mutates_args": ("x",), "schema": "(Tensor x) -> Tensor"}, ValueError),
    ({"schema": "(Tensor x -> Tensor"}, RuntimeError), ({"schema": "(*, Tensor x) -> Tensor"}, NotImplementedError),
    ({"tags": (library.tag.Tag.out,), "schema": "(Tensor x) -> Tensor"}, ValueError),
    ({"schema": "(Tensor(a!) x) -> ()"}, ValueError)], ids=str)
def test_a_wrong_definition_leaves_the_op_of_before(sine, options, error):
    with pytest.raises(error):
        library.custom_op("tests::sine", lambda x: x.clone(), **{"mutates_args": (), **options})
    x = pt.ones(2, requires_grad=True)
    assert pt.ops.tests.sine(x).equal(sine(x)) and sine(x).detach().equal(x.detach().sin())
    sine(x).sum().backward()
    assert x.grad.equal(x.detach().cos())


def test_wrong_calls(sine, weighted):
    for call, error, message in (
        (
            lambda: sine(3),
            RuntimeError,
            "Expected a value of type 'Tensor' for argument 'x' but instead found type 'int'",
        ),
        (lambda: sine([pt.ones(1)]), TypeError, "instead found type 'list of Tensor'"),
        (lambda: sine(), TypeError, "missing required argument 'x'"),
        (lambda: sine(pt.ones(1), 2), TypeError, "takes exactly 1 positional argument"),
        (lambda: sine(y=1), TypeError, "unexpected keyword argument 'y'"),
        (lambda: weighted([pt.ones(1)], [1.0], 2.0), TypeError, "takes exactly 2 positional arguments"),
        (lambda: weighted(pt.ones(1), [1.0]), RuntimeError, r"List\[Tensor\]"),
        (lambda: pt.ops.tests.sine.other, AttributeError, "has no overload name 'other'; there are: default"),
        (lambda: pt.ops.tests.absent, AttributeError, "'_OpNamespace' 'tests' object has no attribute 'absent'"),
        (lambda: library.register_torch_dispatch(sine, object, None), NotImplementedError, "__torch_dispatch__"),
        (lambda: library.triton_op("a::b", mutates_args=()), NotImplementedError, "Triton"),
        (lambda: library.register_fake(3, None), ValueError, "unexpected type for op"),
    ):
        with pytest.raises(error, match=message):
            call()


def test_many_arguments():
    names = [f"a{k}" for k in range(40)]
    schema = f"({', '.join(f'Tensor {n}' for n in names)}) -> Tensor"
    op = library.custom_op("tests::many", lambda *xs: sum(xs), mutates_args=(), schema=schema)
    assert op(*[pt.full((), float(k)) for k in range(40)]).item() == sum(range(40))
    with pytest.raises(ValueError, match="at most 64 parameters, got 70"):
        library.custom_op(
            "tests::more",
            lambda *xs: xs[0],
            mutates_args=(),
            schema=f"({', '.join(f'Tensor a{k}' for k in range(70))}) -> Tensor",
        )
    assert not hasattr(pt.ops.tests, "more")
