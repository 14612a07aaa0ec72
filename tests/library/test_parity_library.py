"""``library`` beside torch: schemas, what a program of custom ops gives, and which errors are raised."""
# ruff: noqa: B008, UP006, UP045 - annotations of every form are what is tested

import typing
from collections.abc import Sequence

import pytest

import ptcore as pt
from ptcore._ops.table.function_schema import parse_schema

torch = pytest.importorskip("torch")

Number = typing.Union[int, float, bool]  # noqa: UP007


def functions(m):
    """Functions with annotations of a framework."""
    T = m.Tensor

    def a(x: T) -> T: ...
    def b(x: T, y: typing.Optional[T] = None, n: int = 3, f: float = 0.5, t: bool = True, s: str = "it") -> T: ...
    def c(xs: list[T], ys: Sequence[typing.Optional[T]], n: list[int], *, f: typing.List[float]) -> typing.List[T]: ...
    def d(x: T, dtype: m.dtype, device: m.device, dt: typing.Optional[m.dtype] = None) -> tuple[T, T, int]: ...
    def e(x: T, n: Number, k: typing.Optional[Number] = None, *, o: typing.Optional[list[int]] = None) -> None: ...
    def f(x: "T", y: T | None, n: int | None) -> float: ...
    def g(x: T, dtype: m.dtype = m.float32, device: m.device = m.device("cpu")) -> bool: ...
    def h(x: T, *, out: T) -> T: ...

    f.__globals__["T"] = T
    return [a, b, c, d, e, f, g, h]


@pytest.mark.parametrize("k", range(8))
@pytest.mark.parametrize("mutates", [(), ("x",), "unknown"])
def test_infer_schema(k, mutates):
    def inferred(m):
        try:
            return m.library.infer_schema(functions(m)[k], mutates_args=mutates, op_name="op")
        except ValueError as error:
            return str(error).partition(" Got func")[0].replace("torch.", "")

    assert inferred(pt) == inferred(torch)


def wrong(m):
    T = m.Tensor

    def a(x) -> T: ...
    def b(x: T): ...
    def c(x: dict) -> T: ...
    def d(x: tuple[int, int]) -> T: ...
    def e(x: T, *args: T) -> T: ...
    def f(x: T) -> dict: ...
    def g(x: T, n: int = m.ones(1)) -> T: ...
    def h(x: "Nothing") -> T: ...  # noqa: F821

    return [a, b, c, d, e, f, g, h]


@pytest.mark.parametrize("k", range(8))
def test_what_no_schema_has(k):
    for m in (torch, pt):
        with pytest.raises(ValueError, match="infer_schema"):
            m.library.infer_schema(wrong(m)[k], mutates_args=())


def test_schemas_of_torch():
    """All schemas of PyTorch's own ops, as it writes them."""
    texts = [str(s) for s in torch._C._jit_get_all_schemas() if "..." not in str(s)]
    texts = [text for text in texts if "RRef(" not in text and "clamp_nan_to_num" not in text]  # two of one name
    assert len(texts) > 3000
    differing = []
    for text in texts:
        try:
            found = str(parse_schema(text))
        except RuntimeError as error:
            found = str(error)
        if found != text:
            differing.append((text, found))
    assert differing == []


def program(m, space):
    """What is seen of ops in use."""
    seen = []
    lib = m.library

    @lib.custom_op(f"{space}::scale", mutates_args=())
    def scale(x: m.Tensor, by: float = 2.0) -> m.Tensor:
        return x * by

    scale.register_fake(lambda x, by=2.0: m.empty_like(x))
    scale.register_autograd(
        lambda ctx, g: (g * ctx.by, None), setup_context=lambda ctx, inputs, output: setattr(ctx, "by", inputs[1])
    )
    x = m.tensor([1.0, 2.0], requires_grad=True)
    y = scale(x, 3)
    y.sum().backward()
    seen += [
        y.tolist(),
        x.grad.tolist(),
        str(getattr(m.ops, space).scale.default._schema).partition("::")[2].replace("2.0", "2."),
    ]
    seen.append(m.vmap(scale)(m.ones(2, 2)).tolist())
    seen.append(getattr(m.ops, space).scale.overloads())
    seen.append(getattr(m.ops, space).scale.default.name().partition("::")[2])
    seen.append(scale(m.empty(3, device="meta")).shape == (3,))
    graph = m.fx.experimental.proxy_tensor.make_fx(lambda x: scale(x) + 1)(m.ones(2))
    seen.append([n.target == getattr(m.ops, space).scale.default for n in graph.graph.nodes].count(True))
    seen.append(lib.opcheck(scale, (m.ones(2),), test_utils=("test_schema", "test_faketensor")))

    @lib.custom_op(f"{space}::add_", mutates_args={"x"})
    def add_(x: m.Tensor, ys: list[m.Tensor]) -> None:
        x.add_(ys[0])

    z = m.zeros(2)
    v = z._version
    add_(z, [m.ones(2)])
    seen += [z.tolist(), z._version > v]
    library = lib.Library(space, "FRAGMENT")
    library.define("pair(Tensor x, *, int n=1) -> (Tensor, Tensor[])")
    library.impl("pair", lambda x, *, n=1: (x * n, [x, x + n]), "CompositeExplicitAutograd")
    first, rest = getattr(m.ops, space).pair(m.ones(1), n=4)
    seen += [first.tolist(), [r.tolist() for r in rest]]
    w = m.ones(1, requires_grad=True)
    library.define("implicit(Tensor x) -> Tensor")
    library.impl("implicit", lambda x: x * x * 3, "CompositeImplicitAutograd")
    getattr(m.ops, space).implicit(w).backward()
    seen.append(w.grad.tolist())
    seen.append([hasattr(getattr(m.ops, space), n) for n in ("pair", "nothing")])
    library._destroy()
    seen.append(hasattr(getattr(m.ops, space), "pair"))
    return seen


def test_program():
    assert program(pt, "paritya") == program(torch, "paritya")


def errors(m, space):
    """The classes of errors."""
    T, lib, seen = m.Tensor, m.library, []

    def attempt(call):
        try:
            call()
        except Exception as error:
            seen.append([c.__name__ for c in type(error).__mro__])
        else:
            seen.append(None)

    @lib.custom_op(f"{space}::f", mutates_args=())
    def f(x: T, n: int) -> T:
        return [x.clone(), x, x[:1], 3][n]

    own = getattr(m.ops, space)
    x = m.ones(2)
    for k in range(1, 4):
        attempt(lambda k=k: f(x, k))
    attempt(lambda: f(3, 0))
    attempt(lambda: f(x, "a"))
    attempt(lambda: f(x.to("meta"), 0))
    attempt(lambda: f(x.clone().requires_grad_(), 0).sum().backward())
    attempt(lambda: own.g)
    attempt(lambda: own.f.other)
    attempt(lambda: lib.custom_op("name", lambda: None, mutates_args=()))
    attempt(lambda: lib.custom_op(f"{space}::h", lambda x: x, mutates_args=()))
    attempt(lambda: lib.define(f"{space}::h", "h(Tensor x) -> Tensor"))
    attempt(lambda: lib.define(f"{space}::f", "(Tensor x) -> Tensor"))
    attempt(lambda: lib.Library(space, "OTHER"))
    attempt(lambda: lib.opcheck(f, (x, 0)))
    attempt(lambda: lib.opcheck(print, (x,)))
    attempt(lambda: lib.opcheck(f, (x, 0), rtol=1.0))
    return seen


def test_errors():
    for k, (ours, theirs) in enumerate(zip(errors(pt, "parityb"), errors(torch, "parityb"), strict=True)):
        assert (ours is None) == (theirs is None), (k, ours, theirs)
        if theirs is not None:
            assert theirs[0] in ours, (k, ours, theirs)
