"""Custom Functions, hooks and modules beside writes in place, with ptcore and with torch."""
import itertools

import pytest
from autograd_programs import compare, leaf

pytestmark = [pytest.mark.parity, pytest.mark.core]


def in_place(T, saved, outputs=1):
    class Written(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            x.mul_(0.5).exp_()
            ctx.mark_dirty(x)
            ctx.save_for_backward(x if saved == "result" else x.clone())
            return x if outputs == 1 else (x, x * 2)

        @staticmethod
        def backward(ctx, *gs):
            (y,) = ctx.saved_tensors
            return gs[0] * y * 0.5
    return Written


VIEWS = {"whole": lambda y: y, "alias": lambda y: y[:], "part": lambda y: y[1:],
         "matrix": lambda y: y.view(2, 2).t()[0]}


@pytest.mark.parametrize(("view", "saved", "outputs"), list(itertools.product(VIEWS, ("result", "copy"), (1, 2))))
def test_functions_that_write(view, saved, outputs):
    """Three derivatives, each of which frees the graph."""
    def program(T):
        x = leaf(T)
        y = x * 0.1
        in_place(T, saved, outputs).apply(VIEWS[view](y))
        (g,) = T.autograd.grad((y * y).sum(), x, create_graph=True)
        (h,) = T.autograd.grad((g * g).sum(), x, create_graph=True)
        return g, h, T.autograd.grad(h.sum(), x)
    compare(program)


FORWARDS = {
    "the input": lambda T, x: x, "a view": lambda T, x: x[:], "a part": lambda T, x: x[1:],
    "a new tensor": lambda T, x: x * 2, "a view of a new tensor": lambda T, x: (x * 2)[:],
    "two new tensors": lambda T, x: (x * 2, x * 3), "two views": lambda T, x: (x[:], x[:]),
    "two views of a new tensor": lambda T, x: (x * 2).split(2)}
WRITES = {"mul_": lambda T, y: y.mul_(2), "zero_": lambda T, y: y.zero_(), "of a view": lambda T, y: y[:1].mul_(2),
          "without history": lambda T, y: y.detach().mul_(2), "of the input": None}


# torch refuses a backward through a view whose base, which no one else has, was written to without history.
RUNS_HERE = {("a view of a new tensor", "without history"), ("two views of a new tensor", "without history")}


@pytest.mark.parametrize(("forward", "write"), [pair for pair in itertools.product(FORWARDS, WRITES)
                                                if pair not in RUNS_HERE])
def test_results_of_functions(forward, write):
    def program(T):
        class Of(T.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return FORWARDS[forward](T, x)

            @staticmethod
            def backward(ctx, *gs):
                g = sum(g.sum() for g in gs if g is not None)
                return g.expand(4)
        x = leaf(T)
        a = x * 1
        y = Of.apply(a)
        first = y[0] if isinstance(y, tuple) else y
        if WRITES[write] is None:
            a.mul_(2)
        else:
            WRITES[write](T, first)
        first.sum().backward()
        return x.grad
    compare(program)


@pytest.mark.parametrize(("place", "kind", "write"), list(itertools.product(
    (0, 1, 2), ("forward", "backward", "both"), ("relu_", "add_", "none"))))
def test_modules_with_hooks(place, kind, write):
    """Full backward hooks put a function around a module: its results are views, which are not written to."""
    def program(T):
        model = T.nn.Sequential(T.nn.Linear(4, 4), T.nn.ReLU(inplace=True), T.nn.Linear(4, 4)).double()
        with T.no_grad():
            for p in model.parameters():
                p.fill_(0.5)
        seen = []
        if kind != "backward":
            model[place].register_full_backward_pre_hook(lambda module, g: seen.append("before"))
        if kind != "forward":
            model[place].register_full_backward_hook(lambda module, g, h: seen.append("after"))
        x = leaf(T)
        y = model(x * 1)
        y = y if write == "none" else y.relu_() if write == "relu_" else y.add_(1)
        y.sum().backward()
        return x.grad, seen
    compare(program)


PACKS = {"mul_": lambda T, t: t.mul_(2), "detach": lambda T, t: t.detach().mul_(2), "view": lambda T, t: t[:1].zero_(),
         "no grad": None, "data": lambda T, t: t.data.add_(0), "nothing": lambda T, t: t + 0}


@pytest.mark.parametrize(("pack", "f"), list(itertools.product(PACKS, ("exp", "square", "where", "function"))))
def test_pack_hooks_that_write(pack, f):
    def program(T):
        class Saves(T.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x * 2

            @staticmethod
            def backward(ctx, g):
                return g * ctx.saved_tensors[0]

        def written(t):
            if PACKS[pack] is not None:
                PACKS[pack](T, t)
            else:
                with T.no_grad():
                    t.add_(1)
            return t
        x = leaf(T)
        with T.autograd.graph.saved_tensors_hooks(written, lambda t: t):
            a = x * 1
            y = {"exp": lambda: a.exp(), "square": lambda: a * a, "where": lambda: a * T.ones(4, dtype=T.float64),
                 "function": lambda: Saves.apply(a)}[f]()
        y.sum().backward()
        return x.grad
    compare(program)


ITSELF = {
    **{name: lambda T, a, b, name=name: getattr(a, name)(a) for name in (
        "add_", "sub_", "mul_", "div_", "pow_", "atan2_", "hypot_", "copysign_", "fmod_", "remainder_", "xlogy_",
        "copy_", "float_power_")},
    **{f"{name} {k}": lambda T, a, b, name=name, k=k: getattr(a, name)(*((a, b), (b, a), (a, a))[k])
       for name in ("addcmul_", "addcdiv_") for k in range(3)},
    "lerp_": lambda T, a, b: a.lerp_(a, 0.3), "lerp_ by itself": lambda T, a, b: a.lerp_(b, a),
    "a view": lambda T, a, b: a.mul_(a[:]), "a part": lambda T, a, b: a[:2].mul_(a[2:]), "addmm_": lambda T, a, b: (
        a.view(2, 2).addmm_(a.view(2, 2), b.view(2, 2))), "detached": lambda T, a, b: a.mul_(a.detach()),
    "masked": lambda T, a, b: a.masked_fill_(a > 2, 1)}


@pytest.mark.parametrize("name", ITSELF)
def test_written_by_itself(name):
    """An operand in the memory that is written to: what its value is needed for, is refused."""
    def program(T):
        x = leaf(T)
        a, b = x * 1, x + 1
        ITSELF[name](T, a, b)
        a.sum().backward()
        return x.grad
    compare(program)


@pytest.mark.parametrize("times", [(1, 1, 1), (2, 1, 1), (1, 1, 1, 1), (1, 3, 2), (0, 1, 1)])
def test_strides_of_repeated(times):
    def program(T):
        x = T.arange(24.0).view(2, 3, 4)
        layouts = x.permute(2, 0, 1), x.transpose(0, 1)[::2], x[:1].expand(5, 3, 4), x[..., ::2]
        return [y.stride() for t in layouts for y in (t.repeat(*times), t.tile(*times), t.repeat_interleave(1, 1),
                                                      t.repeat_interleave(2, -1))]
    compare(program)
