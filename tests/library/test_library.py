"""Libraries: what is defined and registered, in which order it is asked, and that it goes with its library."""

import gc

import pytest

import ptcore as pt
from ptcore import library
from ptcore.library import Library
from ptcore.library.tag import Tag

pytestmark = pytest.mark.core


@pytest.fixture
def lib():
    with library._scoped_library("libtest", "FRAGMENT") as made:
        yield made


def test_define_and_impl(lib):
    assert lib.define("scale(Tensor x, float by=2, *, bool flip=False) -> Tensor") == "scale"
    lib.impl("scale", lambda x, by, *, flip: -x * by if flip else x * by, "CPU")
    f = pt.ops.libtest.scale
    x = pt.ones(2)
    assert f(x).tolist() == [2, 2] and f(x, 3, flip=True).tolist() == [-3, -3]
    with pytest.raises(NotImplementedError, match="no fake impl registered for libtest::scale"):
        f(pt.empty(2, device="meta"))
    lib.impl("scale", lambda x, by, *, flip: x.new_empty(x.shape), "Meta")
    assert f(pt.empty(2, device="meta")).shape == (2,)
    with pytest.raises(RuntimeError, match="same name and overload name multiple times"):
        lib.define("scale(Tensor x) -> Tensor")


def test_overloads(lib):
    lib.define("f(Tensor x) -> Tensor")
    lib.define("f.two(Tensor x, Tensor y) -> Tensor")
    lib.define("f.number(Tensor x, int n) -> Tensor")
    lib.impl("f", lambda x: x, "CompositeImplicitAutograd")
    lib.impl("f.two", lambda x, y: x + y, "CompositeImplicitAutograd")
    lib.impl("libtest::f.number", lambda x, n: x * n, "CompositeImplicitAutograd")
    f, x = pt.ops.libtest.f, pt.ones(1)
    assert f.overloads() == ["default", "two", "number"]
    assert f(x).item() == 1 and f(x, x).item() == 2 and f(x, 5).item() == 5 and f(x, n=7).item() == 7
    assert f.two._schema.overload_name == "two" and f.two.name() == "libtest::f.two"
    with pytest.raises(RuntimeError, match=r"No matching overload of libtest::f(.|\n)*f.number\(Tensor x, int n\)"):
        f(x, "a")
    with pytest.raises(RuntimeError, match="opcheck can only test operators without overloads"):
        library.opcheck(f, (x,))
    assert pt.fx.experimental.proxy_tensor.make_fx(lambda x: f(x, 2))(x)(x).item() == 2


def test_implicit_and_explicit(lib):
    """An implicit function's parts are recorded and traced, an explicit one is a whole."""
    for name, key in (("a", "CompositeImplicitAutograd"), ("b", "CompositeExplicitAutograd"), ("c", "")):
        lib.define(f"{name}(Tensor x) -> Tensor")
        lib.impl(name, lambda x: x * 3, key)
    x = pt.ones(1, requires_grad=True)
    for name in "ac":
        f = getattr(pt.ops.libtest, name)
        assert "Mul" in f(x).grad_fn.name()
        assert pt.autograd.grad(f(x), x)[0].item() == 3
        code = pt.fx.experimental.proxy_tensor.make_fx(f)(x.detach()).code
        assert "mul" in code and "libtest" not in code
        assert pt.vmap(f)(pt.ones(3)).tolist() == [3, 3, 3] and f(pt.empty(2, device="meta")).shape == (2,)
    f = pt.ops.libtest.b
    assert "libtest" in pt.fx.experimental.proxy_tensor.make_fx(f)(x.detach()).code
    y = f(x)
    with pytest.warns(UserWarning, match="libtest::b: an autograd kernel was not registered"):
        y.backward()
    assert x.grad is None
    library.register_autograd("libtest::b", lambda ctx, g: g * 3, lib=lib)
    f(x).backward()
    assert x.grad.item() == 3


def test_an_autograd_function_of_its_own(lib):
    """A function for the key Autograd sees to gradients, and goes on below them."""
    lib.define("double(Tensor x) -> Tensor")
    lib.impl("double", lambda x: x * 2, "CPU")

    class Double(pt.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            with library._definition.below_autograd():
                return pt.ops.libtest.double(x)

        @staticmethod
        def backward(ctx, g):
            return g * 20

    lib.impl("double", Double.apply, "Autograd")
    x = pt.ones(1, requires_grad=True)
    y = pt.ops.libtest.double(x)
    y.backward()
    assert y.item() == 2 and x.grad.item() == 20

    lib.define("other(Tensor x) -> Tensor")
    lib.impl("other", lambda x: x * 2, "CPU")
    lib.impl(
        "other", lambda keys, x: pt.ops.libtest.other.default.redispatch(keys, x) + 1, "Autograd", with_keyset=True
    )
    assert pt.ops.libtest.other(pt.ones(1)).item() == 3
    lib.impl("other", library.fallthrough_kernel, "AutogradCPU")
    assert pt.ops.libtest.other(pt.ones(1)).item() == 3


def test_autocast_functions(lib):
    lib.define("kind(Tensor x) -> Tensor")
    lib.impl("kind", lambda x: x.clone(), "CPU")
    library.register_autocast("libtest::kind", "cpu", pt.float16, lib=lib)
    with pt.autocast("cpu"):
        assert pt.ops.libtest.kind(pt.ones(1)).dtype is pt.float16

    def cast(x):
        with pt.autocast("cpu", enabled=False):
            return pt.ops.libtest.kind(x.double())

    lib.impl("kind", cast, "AutocastCPU")
    with pt.autocast("cpu"):
        assert pt.ops.libtest.kind(pt.ones(1)).dtype is pt.float64
    with pytest.raises(ValueError, match="Unknown device type: tpu"):
        library.register_autocast("libtest::kind", "tpu", pt.float16)


def test_functions_before_the_definition(lib):
    library.register_fake("libtest::late", lambda x: x.new_empty(x.shape), lib=lib)
    library.register_autograd("libtest::late", lambda ctx, g: g * 2, lib=lib)
    library.register_vmap("libtest::late", lambda info, in_dims, x: (x * 2, in_dims[0]), lib=lib)
    library.impl("libtest::late", "cpu", lambda x: x * 2, lib=lib)
    assert not hasattr(pt.ops.libtest, "late")
    lib.define("late(Tensor x) -> Tensor")
    f, x = pt.ops.libtest.late, pt.ones(2, requires_grad=True)
    f(x).sum().backward()
    assert x.grad.tolist() == [2, 2] and f(pt.empty(3, device="meta")).shape == (3,)
    assert pt.vmap(f)(pt.ones(3)).tolist() == [2, 2, 2]


def test_what_a_library_did_goes_with_it():
    first, second = Library("libtest2", "DEF"), Library("libtest2", "FRAGMENT")
    with pytest.raises(RuntimeError, match="Only a single Library can be of kind DEF"):
        Library("libtest2", "DEF")
    first.define("f(Tensor x) -> Tensor")
    first.impl("f", lambda x: x + 1, "CPU")
    second.impl("f", lambda x: x + 2, "CPU")
    f = pt.ops.libtest2.f
    assert f(pt.zeros(1)).item() == 2
    second._destroy()
    with pytest.raises(NotImplementedError):  # the first one's was overridden, and is gone
        f(pt.zeros(1))
    with pytest.raises(AssertionError, match="has been destroyed"):
        second.define("g(Tensor x) -> Tensor")
    del first
    gc.collect()
    assert not hasattr(pt.ops.libtest2, "f") and "libtest2::f" not in pt.ops
    Library("libtest2", "DEF")._destroy()


def test_a_library_takes_back_only_what_is_still_its_own():
    """Each part of an op that two libraries register stays as the later one left it, whichever goes first."""
    first, second = Library("libtest3", "DEF"), Library("libtest3", "FRAGMENT")
    first.define("f(Tensor x) -> Tensor")
    first.impl("f", lambda x: x + 1, "CPU")
    f, x = pt.ops.libtest3.f, pt.zeros(2, requires_grad=True)
    second.impl("f", lambda x: x + 2, "CPU")
    undo = Library("libtest3", "FRAGMENT")
    for k, lib in enumerate((undo, second), 1):
        library.register_autocast("libtest3::f", "cpu", pt.float16 if lib is undo else pt.bfloat16, lib=lib)
        library.register_autograd("libtest3::f", lambda ctx, g, k=k: g * k, lib=lib)
        library.register_vmap("libtest3::f", lambda info, dims, x, k=k: (x + 10 * k, 0), lib=lib)
        library.register_fake("libtest3::f", lambda x, k=k: x.new_empty(k), lib=lib)
    undo._destroy()
    f(x).sum().backward()
    assert x.grad.tolist() == [2, 2]
    assert pt.vmap(f)(pt.zeros(2)).tolist() == [20, 20]
    assert f(pt.empty(5, device="meta")).shape == (2,)
    with pt.autocast("cpu", dtype=pt.float16):
        assert f(pt.zeros(2)).dtype == pt.bfloat16
    second._destroy()
    with pt.autocast("cpu", dtype=pt.float16), pytest.raises(NotImplementedError):
        f(pt.zeros(2))
    first._destroy()


@pytest.mark.parametrize(("op", "key", "error"), [
    ("libtest::f", 3, TypeError), (3, "CPU", ValueError), ("custom", "CPU", ValueError),
    ("libtest::f", "NoSuchKey", ValueError), ("libtest::nothing", "CPU", RuntimeError)])
def test_get_kernel_refuses(lib, op, key, error):
    lib.define("f(Tensor x) -> Tensor")
    lib.impl("f", lambda x: x + 1, "CPU")
    assert library.get_kernel("libtest::f", "CPU")(pt.zeros(1)).item() == 1
    if op == "custom":
        op = library.custom_op("libtest4::g", lambda x: x * 2, mutates_args=(), schema="(Tensor x) -> Tensor")
    with pytest.raises(error, match=r"get_kernel|dispatch key"):
        library.get_kernel(op, key)


def test_refusals(lib):
    lib.define("f(Tensor x) -> Tensor")
    for call, error, message in (
        (lambda: Library("x", "NEW"), ValueError, "Unsupported kind: NEW"),
        (lambda: Library("prim", "DEF"), ValueError, "prim is a reserved namespace"),
        (
            lambda: Library("libtest", "IMPL").define("g(Tensor x) -> Tensor"),
            RuntimeError,
            "kind IMPL, which defines no",
        ),
        (lambda: lib.define("(Tensor x) -> Tensor"), RuntimeError, "must begin with a name"),
        (lambda: lib.define("other::g(Tensor x) -> Tensor"), RuntimeError, "of another namespace than libtest"),
        (lambda: lib.define("g(Tensor x) -> Tensor", "PURE"), RuntimeError, "Invalid alias_analysis type PURE"),
        (lambda: lib.impl("f", 3), TypeError, "required to be a callable but found type <class 'int'>"),
        (
            lambda: lib.impl("f", print, "FuncTorchBatched"),
            NotImplementedError,
            "the dispatch key 'FuncTorchBatched' is",
        ),
        (lambda: lib.impl(3, print), RuntimeError, "either a name or an OpOverload object"),
        (lambda: Library("aten", "IMPL").impl("sin", print, "CPU"), NotImplementedError, "ops.register_kernel"),
        (lambda: lib.fallback(print, "CPU"), NotImplementedError, "TorchFunctionMode"),
        (lambda: library.define("libtest::g", "g(Tensor x) -> Tensor"), ValueError, "expected schema to look like"),
        (lambda: library.define(3, "(Tensor x) -> Tensor"), ValueError, "instance of str, got <class 'int'>"),
        (lambda: library.get_kernel("libtest::f", "CPU"), RuntimeError, "libtest::f has no kernel for CPU"),
        (lambda: library.get_kernel("libtest::g", "CPU"), RuntimeError, "could not find an operator libtest::g"),
        (lambda: library.get_kernel("libtest::f", "Nowhere"), ValueError, "Invalid dispatch key: Nowhere"),
    ):
        with pytest.raises(error, match=message):
            call()
    lib.impl("f", lambda x: x, "CPU")
    with pytest.raises(RuntimeError, match="already a kernel registered"):
        lib.impl("f", lambda x: x, "CPU", allow_override=False)
    assert library.get_kernel("libtest::f", "CPU").call_boxed(None, 3) == 3
    lib.define("h(Tensor x) -> Tensor")
    lib.impl("h", lambda x: x)
    with pytest.raises(RuntimeError, match="should not register a meta kernel"):
        lib.impl("h", lambda x: x, "Meta")


def test_tags(lib):
    lib.define("f(Tensor x) -> Tensor", tags=Tag.pointwise)
    assert pt.ops.libtest.f.default.tags == [Tag.pointwise]
    for schema, tag in (
        ("a(Tensor x) -> Tensor", Tag.inplace),
        ("a(Tensor(a!) x) -> Tensor", Tag.inplace),
        ("a(Tensor(a!) x, Tensor(b!) y) -> Tensor(a!)", Tag.inplace),
        ("a(Tensor x, *, Tensor out) -> Tensor", Tag.out),
        ("a(Tensor(a!) out) -> Tensor(a!)", Tag.out),
        ("a(Tensor x, *, Tensor(a!) out) -> Tensor(b!)", Tag.out),
    ):
        with pytest.raises(ValueError, match=r"Schema tagged with torch.Tag"):
            lib.define(schema, tags=tag)
    lib.define("a_(Tensor(a!) x) -> Tensor(a!)", tags=Tag.inplace)
    lib.define("a_out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)", tags=(Tag.out,))


def test_older_forms(lib):
    @library.define(lib, "plus(Tensor x, int n) -> Tensor")
    def plus(x, n):
        return x + n

    assert pt.ops.libtest.plus(pt.ones(1), 2).item() == 3
    lib.define("minus(Tensor x) -> Tensor")

    @library.impl(lib, "minus", "CPU")
    def minus(x):
        return -x

    assert pt.ops.libtest.minus(pt.ones(1)).item() == -1 and minus(1) == -1
    with pytest.warns(FutureWarning, match="renamed to `torch.library.register_fake`"):
        library.impl_abstract("libtest::minus", lambda x: x.new_empty(x.shape), lib=lib)


def test_aten():
    x = pt.tensor([[1.0, -2.0], [3.0, 4.0]])
    aten = pt.ops.aten
    assert aten.mm.default is pt.mm and aten.add.Tensor(x, 1).equal(x + 1) and aten.relu_(x.clone()).equal(x.relu())
    assert aten.index.Tensor(x, [None, pt.tensor([1])]).equal(x[:, [1]])
    assert aten._to_copy.default(x, dtype=pt.float64).dtype is pt.float64
    assert aten._softmax.default(x, 1, False).equal(x.softmax(1)) and aten.special_expm1(x).equal(x.expm1())
    assert aten.linalg_det(x).equal(pt.linalg.det(x)) and aten.sym_size.int(x, 0) == 2
    assert aten.convolution(pt.ones(1, 1, 3), pt.ones(1, 1, 2), None, [1], [0], [1], False, [0], 1).tolist() == [
        [[2, 2]]
    ]
    assert aten.zeros.default([2]).tolist() == [0, 0] and aten.view_as(x, x).shape == (2, 2)
    assert str(aten.mm.default._schema) == "aten::mm(Tensor self, Tensor mat2) -> Tensor"
    assert not hasattr(aten, "no_such_op") and "mm" in dir(aten)
    with pytest.raises(NotImplementedError, match=r"aten._grouped_mm: ptcore has no such op"):
        aten._grouped_mm(x, x)
    import copy
    import pickle

    assert pickle.loads(pickle.dumps(aten.mm)) is aten.mm and copy.deepcopy(aten.mm.default) is pt.mm


def test_aten_of_rows():
    """Each public function that a row has is one of ``aten`` by its name."""
    from ptcore._ops import aten, rows

    missing = [r.name for r in rows() if r.public and aten.function_of(r.public[0].rpartition(".")[2]) is None]
    assert missing == []
