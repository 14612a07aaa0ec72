"""``autocast``: which precision ops run in, nesting, threads, caches, and transformations, checkpoints and compilers
in it."""
import contextlib
import threading
import warnings

import numpy as np
import pytest

import ptcore as pt
from ptcore import jit, nn
from ptcore.amp import autocast_mode
from ptcore.fx.experimental.proxy_tensor import make_fx
from ptcore.nn import functional as F
from ptcore.utils.checkpoint import checkpoint

LOW, FULL = pt.bfloat16, pt.float32


def net(width=16):
    pt.manual_seed(0)
    return nn.Sequential(nn.Linear(8, width), nn.ReLU(), nn.Linear(width, 3))


def step(model, x, y, **options):
    """Loss and gradients."""
    for p in model.parameters():
        p.grad = None
    with pt.autocast("cpu", **options):
        loss = F.cross_entropy(model(x), y)
    loss.backward()
    return [loss.detach(), *[p.grad for p in model.parameters()]]


def same(got, want):
    for g, w in zip(got, want, strict=True):
        assert g.dtype == w.dtype
        np.testing.assert_array_equal(g.detach().float().numpy(), w.detach().float().numpy())


X, Y = pt.randn(4, 8), pt.tensor([0, 2, 1, 0])


def test_lists_of_the_cpu():
    x, w = pt.randn(4, 8), pt.randn(8, 8)
    image = pt.randn(1, 2, 8, 8)
    with pt.autocast("cpu"):
        low = [x @ w, pt.mm(x, w), F.linear(x, w), pt.einsum("ij,jk", x, w), pt.baddbmm(x[None], x[None], w[None]),
               F.conv2d(image, pt.randn(3, 2, 3, 3)), F.prelu(x, pt.tensor([0.1])),
               F.scaled_dot_product_attention(x[None], x[None], x[None])]
        assert [y.dtype for y in low] == [LOW] * len(low)
        y = low[0]
        full = [F.mse_loss(y, x), F.cross_entropy(y, Y), F.kl_div(y, x, reduction="sum"),
                pt.linalg.inv((w @ w).float() + pt.eye(8)),
                pt.fft.fft(y).real, y.prod(), F.avg_pool3d(image.to(LOW)[None], 2), pt.cdist(y, y)]
        assert [t.dtype for t in full] == [FULL] * len(full)
        given = [y.softmax(1), y.exp(), y.sum(), F.layer_norm(y, (8,)), y + 1, y.relu(), y * y, y.norm(), F.gelu(y)]
        assert [t.dtype for t in given] == [LOW] * len(given)
        assert (y + x).dtype == (x + 1).dtype == x.softmax(1).dtype == FULL
        assert pt.cat([y, x]).dtype == pt.stack([x, y]).dtype == FULL and pt.cat([y, y]).dtype == LOW
        assert (x.double() @ w.double()).dtype == pt.float64
        assert (pt.ones(2, 2, dtype=pt.int64) @ pt.ones(2, 2, dtype=pt.int64)).dtype == pt.int64
        out = pt.empty(4, 8)
        assert pt.mm(x, w, out=out) is out and out.dtype == FULL
        assert F.linear(x, w, None).dtype == LOW


def test_products_are_those_of_rounded_operands():
    x, w = pt.randn(5, 40), pt.randn(40, 7)
    with pt.autocast("cpu"):
        got = x @ w
    want = x.to(LOW).double().numpy() @ w.to(LOW).double().numpy()
    np.testing.assert_allclose(got.double().numpy(), want, rtol=2**-8, atol=1e-2)
    with pt.autocast("cpu", pt.float16):
        half = x @ w
    assert half.dtype == pt.float16
    np.testing.assert_allclose(half.double().numpy(), x.half().double().numpy() @ w.half().double().numpy(),
    rtol=2**-10,
                               atol=1e-2)


def test_nesting_and_state():
    assert not pt.is_autocast_enabled("cpu") and not pt.is_autocast_cpu_enabled()
    context = pt.autocast("cpu")
    with context as entered:
        assert entered is context and pt.is_autocast_enabled("cpu") and not pt.is_autocast_enabled()
        assert (X @ X.t()).dtype == LOW
        with pt.autocast("cpu", enabled=False):
            assert (X @ X.t()).dtype == FULL and not pt.is_autocast_enabled("cpu")
            with pt.autocast("cpu", pt.float16, cache_enabled=False):
                assert (X @ X.t()).dtype == pt.get_autocast_dtype("cpu") == pt.float16
                assert not pt.is_autocast_cache_enabled()
        with context:                                   # may be entered again
            assert (X @ X.t()).dtype == LOW
        assert pt.get_autocast_dtype("cpu") == LOW and pt.is_autocast_cache_enabled()
        with contextlib.suppress(ZeroDivisionError), pt.autocast("cpu", enabled=False):
            raise ZeroDivisionError
        assert (X @ X.t()).dtype == LOW
    assert (X @ X.t()).dtype == FULL
    assert pt.autocast_increment_nesting() == 1 and pt.autocast_decrement_nesting() == 0
    assert pt.get_autocast_dtype("cuda") == pt.get_autocast_gpu_dtype() == pt.float16
    pt.set_autocast_dtype("cpu", pt.float16)
    try:
        with pt.autocast("cpu"):
            assert (X @ X.t()).dtype == pt.float16
        pt.set_autocast_enabled("cpu", True)
        assert (X @ X.t()).dtype == pt.float16
    finally:
        pt.set_autocast_enabled("cpu", False)
        pt.set_autocast_dtype("cpu", LOW)

    @pt.autocast("cpu")
    def product(x):
        """Its text."""
        return x @ x.t()
    assert product(X).dtype == LOW and product.__doc__ == "Its text."


def test_threads_have_states_of_their_own():
    found = []
    with pt.autocast("cpu"):
        thread = threading.Thread(target=lambda: found.append((X @ X.t()).dtype))
        thread.start()
        thread.join()
        state = autocast_mode.same_autocast()

        def other():
            with state:
                found.append((X @ X.t()).dtype)
            found.append((X @ X.t()).dtype)
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert found == [FULL, LOW, FULL]


def test_casts_of_parameters_are_kept():
    w = nn.Parameter(pt.randn(8, 8))

    def nodes(y):
        return y.grad_fn.next_functions[1][0]           # of the weight's cast
    for cache, is_one in ((True, True), (False, False)):
        with pt.autocast("cpu", cache_enabled=cache):
            a, b = pt.mm(X, w), pt.mm(X * 2, w)
            assert (nodes(a) is nodes(b)) == is_one
            with pt.no_grad():
                pt.mm(X, w)
            assert pt.mm(X, w).requires_grad            # what was cast without history is not kept for the others
            with pt.no_grad():
                w.mul_(2)
            same([pt.mm(X, w)], [pt.mm(X.to(LOW), w.to(LOW))])      # written to since
    (a.float().sum() + b.float().sum()).backward()
    assert w.grad.dtype == FULL


def test_a_step_is_that_of_explicit_casts():
    model = net()
    got = step(model, X, Y)

    def by_hand():
        for p in model.parameters():
            p.grad = None
        a, _, b = model
        h = F.linear(X.to(LOW), a.weight.to(LOW), a.bias.to(LOW)).relu()
        loss = F.cross_entropy(F.linear(h, b.weight.to(LOW), b.bias.to(LOW)).float(), Y)
        loss.backward()
        return [loss.detach(), *[p.grad for p in model.parameters()]]
    same(got, by_hand())


@pytest.mark.parametrize("reentrant", [True, False])
def test_checkpoints_run_again_as_they_ran(reentrant):
    model, want = net(), None
    x = X.clone().requires_grad_()
    for wrapped in (False, True):
        for p in model.parameters():
            p.grad = None
        with pt.autocast("cpu"):
            y = checkpoint(model, x, use_reentrant=reentrant) if wrapped else model(x)
        y.float().square().sum().backward()
        got = [y, *[p.grad for p in model.parameters()]]
        if wrapped:
            same(got, want)
        want = got
    assert not pt.is_autocast_enabled("cpu")


def test_transformations():
    w = pt.randn(3, 8)
    with pt.autocast("cpu"):
        want = F.linear(X, w)
        same([pt.func.vmap(lambda v: F.linear(v, w))(X)], [want])
        g = pt.func.grad(lambda w: F.linear(X, w).float().sum())(w)
        assert g.dtype == FULL
        same([pt.func.vjp(lambda w: F.linear(X, w), w)[1](pt.ones(4, 3, dtype=LOW))[0]], [g])
        assert pt.func.jvp(lambda w: F.linear(X, w), (w,), (w,))[1].dtype == LOW
        graph = make_fx(lambda x: pt.mm(x, x.t()).exp())(X)
    assert [n.target.__name__ for n in graph.graph.nodes if n.op == "call_function"].count("to_dtype") >= 1
    assert graph(X).dtype == LOW                # the casts are in the graph


def test_parameters_cast_under_a_transformation_are_not_shown_to_others():
    w = nn.Parameter(pt.randn(3, 8))
    with pt.autocast("cpu"):
        make_fx(lambda x: F.linear(x, w))(X)
        pt.func.vmap(lambda v: F.linear(v, w))(X)
        y = F.linear(X, w)
        assert type(y) is pt.Tensor and y.requires_grad
        y.float().sum().backward()
    assert w.grad is not None


def test_compiled():
    model = net()

    def loss(x, y):
        return F.cross_entropy(model(x) + model(2 * x), y)

    def inside(x, y):
        with pt.autocast("cpu"):
            a = model(x)
            if a.sum() > 0:
                a = a * 2
            with pt.autocast("cpu", enabled=False):
                b = model(x)
        return a, b, model(x)

    def whole(x, y):
        with pt.autocast("cpu", pt.float16):
            loss = F.cross_entropy(model(x), y)
        loss.backward()
        return loss

    def run(f, x):
        for p in model.parameters():
            p.grad = None
        result = f(x, Y)
        return [*(result if isinstance(result, tuple) else (result,)),
                *[p.grad for p in model.parameters() if p.grad is not None]]
    compiled = [pt.compile(f) for f in (loss, inside, whole)]
    for x in (X, -X, X, pt.randn(4, 8)):
        for f, c in zip((loss, inside, whole), compiled):
            same(run(c, x), run(f, x))
        for enabled, dtype in ((True, LOW), (True, pt.float16), (False, LOW)):
            with pt.autocast("cpu", dtype, enabled=enabled):
                same(run(compiled[0], x), run(loss, x))
                got, want = compiled[0](x, Y), loss(x, Y)
            same(pt.autograd.grad(got, model.parameters()), pt.autograd.grad(want, model.parameters()))
    assert "context of class" not in str(pt.compiler.explain(inside)(X, Y))


def test_scripted_traced_and_frozen():
    model = net().eval()

    @jit.script
    def f(x, w):
        with pt.autocast("cpu"):
            y = x @ w
        return y, x @ w
    for _ in range(2):
        y, z = f(X, X.t())
        assert (y.dtype, z.dtype) == (LOW, FULL)
    programs = [jit.script(model), jit.trace(model, X), jit.freeze(jit.script(model)), jit.freeze(jit.trace(model, X))]
    with pt.no_grad():
        for program in programs:
            full = program(X)
            same([full], [model(X)])
            with pt.autocast("cpu"):
                same([program(X)], [model(X)])
            same([program(X)], [full])


def test_custom_functions():
    seen = []

    class Product(pt.autograd.Function):
        @staticmethod
        @pt.amp.custom_fwd(device_type="cpu")
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            seen.append((a @ b).dtype)
            return a @ b

        @staticmethod
        @pt.amp.custom_bwd(device_type="cpu")
        def backward(ctx, g):
            a, b = ctx.saved_tensors
            seen.append((a @ b).dtype)
            return g.float() @ b.float().t(), a.float().t() @ g.float()

    class Full(Product):
        @staticmethod
        @pt.amp.custom_fwd(device_type="cpu", cast_inputs=FULL)
        def forward(ctx, a, b):
            assert not pt.is_autocast_enabled("cpu")
            ctx.save_for_backward(a, b)
            seen.append((a @ b).dtype)
            return a @ b
    a = pt.randn(2, 2, requires_grad=True)
    with pt.autocast("cpu"):
        y = Product.apply(a, a)
        z = Full.apply(a.to(LOW), a)
    y.float().sum().backward()
    assert seen == [LOW, FULL, LOW]
    z.sum().backward()
    assert seen[3:] == [FULL]


def test_what_makes_no_sense_is_refused():
    with pytest.raises(ValueError, match="Expected `device_type` of type `str`"):
        pt.autocast(1)
    with pytest.raises(RuntimeError, match="device_type must be one of cpu, cuda, got 'toaster'"):
        pt.autocast("toaster")
    with pytest.raises(RuntimeError, match="unsupported autocast device_type 'meta'"):
        pt.autocast("meta")
    with pytest.raises(TypeError, match="dtype must be a dtype or None, got 'half'"):
        pt.autocast("cpu", "half")
    with pytest.warns(UserWarning, match="CPU Autocast only supports dtypes of"):
        context = pt.autocast("cpu", pt.float32)
    with context:
        assert (X @ X.t()).dtype == FULL
    with pytest.raises(TypeError, match="dtype must be a dtype"):
        pt.set_autocast_dtype("cpu", "half")
    with pytest.raises(TypeError):
        pt.amp.custom_fwd(lambda ctx: None)


@pytest.mark.skipif(pt.cuda.is_available(), reason="of machines without CUDA")
def test_cuda_is_off_where_there_is_none():
    with pytest.warns(UserWarning, match="CUDA is not available"):
        context = pt.autocast("cuda")
    with context:
        assert not pt.is_autocast_enabled() and (X @ X.t()).dtype == FULL
    with pytest.warns(UserWarning, match="CUDA is not available"):
        assert not pt.amp.GradScaler().is_enabled()


def test_older_names():
    with pytest.warns(FutureWarning, match="deprecated"):
        context = pt.cpu.amp.autocast()
    with context:
        assert (X @ X.t()).dtype == LOW
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert isinstance(pt.cuda.amp.autocast(), pt.amp.autocast)
        assert isinstance(pt.cpu.amp.GradScaler(),
                          pt.amp.GradScaler) and pt.cuda.amp.amp_definitely_not_available() in (True, False)
    assert pt.amp.is_autocast_available("cpu") and not pt.amp.is_autocast_available("meta")


def test_contexts_are_copied():
    """Modules that hold one are copied and pickled; the copy is a context of its own."""
    import copy
    import inspect
    import pickle
    for context in (pt.autocast("cpu", pt.float16), pt.autocast("cpu", enabled=False, cache_enabled=False)):
        for made in (copy.deepcopy(context), pickle.loads(pickle.dumps(context))):
            assert type(made) is pt.autocast and made is not context
            with made, context:
                assert pt.is_autocast_enabled("cpu") is context._enabled
            assert (made.device, made.fast_dtype, made._cache_enabled) == ("cpu", context.fast_dtype,
                                                                           context._cache_enabled)
    assert str(inspect.signature(pt.autocast)) == "(device_type, dtype=None, enabled=True, cache_enabled=None)"
    assert not pt.is_autocast_enabled("cpu")


WRITES = {
    "data assigned": lambda w: setattr(w, "data", pt.full((1, 1), 2.0)),
    "through data": lambda w: w.data.fill_(2.0), "through a view of data": lambda w: w.data[0].mul_(2.0),
    "vector_to_parameters": lambda w: pt.nn.utils.vector_to_parameters(pt.full((1,), 2.0), [w]),
    "no_grad": lambda w: pt.no_grad()(w.fill_)(2.0), "through detach": lambda w: w.detach().fill_(2.0),
}


@pytest.mark.parametrize("write", WRITES)
def test_a_weight_that_changes_inside_a_region_is_cast_again(write):
    layer = pt.nn.Linear(1, 1, bias=False)
    with pt.no_grad():
        layer.weight.fill_(1.0)
    with pt.autocast("cpu", dtype=pt.bfloat16):
        before = layer(pt.ones(1, 1))
        WRITES[write](layer.weight)
        after = layer(pt.ones(1, 1))
    assert (before.item(), after.item()) == (1.0, 2.0)
