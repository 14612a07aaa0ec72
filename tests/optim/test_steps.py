"""Steps however parameters lie, share memory or are watched: as of plain ones. Complex parameters as pairs of reals."""

import random

import numpy as np
import pytest
from interpreters import Tracer
from test_more_optimizers import CASES

import ptcore as pt
from ptcore import _ops as ops
from ptcore import optim
from ptcore._interpret import Interpreter
from ptcore._ops.calling import run
from ptcore._ops.table.steps import STEPS
from ptcore.overrides import TorchFunctionMode
from ptcore.profiler import profile

pytestmark = pytest.mark.core

OPTIMIZERS = [
    (optim.SGD, {"lr": 0.1}),
    (optim.SGD, {"lr": 0.1, "weight_decay": 0.2, "maximize": True}),
    (optim.SGD, {"lr": 0.1, "momentum": 0.9, "dampening": 0.3, "weight_decay": 0.1}),
    (optim.SGD, {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
    (optim.Adam, {"lr": 0.05, "weight_decay": 0.1}),
    (optim.Adam, {"lr": 0.05, "amsgrad": True, "maximize": True}),
    (optim.AdamW, {"lr": 0.05, "weight_decay": 0.3}),
    (optim.RMSprop, {"momentum": 0.5, "centered": True, "eps": 0.1}),
    *[(make, options) for make, _, options in CASES],
]
each_optimizer = pytest.mark.parametrize(("make", "options"), OPTIMIZERS)

LAYOUTS = {
    "transposed": lambda x: x.t().contiguous().t(),
    "sliced": lambda x: pt.stack([x, pt.full_like(x, float("nan"))], -1)[..., 0],
    "reversed": lambda x: pt.stack([x, x], 0)[1],
}


def arrays(shape, count, seed=0, kind=float):
    rng = np.random.default_rng(seed)
    return [(rng.normal(size=shape) + (1j * rng.normal(size=shape) if kind is complex else 0)) for _ in range(count)]


def walk(make, options, params, grads, steps=4):
    """Some steps; ``grads(step, i)`` is the gradient of a parameter as an array, or None."""
    optimizer = make(params, **options)
    for step in range(steps):
        for i, p in enumerate(params):
            g = grads(step, i)
            p.grad = None if g is None else pt.tensor(g, dtype=p.dtype).reshape(p.shape)
        optimizer.step()
    return optimizer


@each_optimizer
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(make, options, dtype, layout):
    dtype = getattr(pt, dtype)
    kind = complex if dtype.is_complex else float
    values, *grads = arrays((3, 4), 5, kind=kind)
    plain = pt.tensor(values, dtype=dtype).requires_grad_()
    other = LAYOUTS[layout](pt.tensor(values, dtype=dtype)).detach().requires_grad_()
    made = [walk(make, options, [p], lambda step, i: grads[step]) for p in (plain, other)]
    rtol = 1e-12 if dtype in (pt.float64, pt.complex128) else 1e-5
    np.testing.assert_allclose(other.tolist(), plain.tolist(), rtol=rtol)
    for key, value in made[0].state[plain].items():
        np.testing.assert_allclose(made[1].state[other][key].tolist(), value.tolist(), rtol=rtol)


@each_optimizer
@pytest.mark.parametrize("layout", ["plain", "sliced"])
def test_complex_parameters_are_pairs(make, options, layout):
    values, *grads = arrays((3, 4), 5, kind=complex)
    pairs = pt.view_as_real(pt.tensor(values)).clone().requires_grad_()
    p = LAYOUTS.get(layout, lambda x: x)(pt.tensor(values)).detach().requires_grad_()
    first = walk(make, options, [p], lambda step, i: grads[step])
    second = walk(make, options, [pairs], lambda step, i: np.stack([grads[step].real, grads[step].imag], -1))
    np.testing.assert_allclose(pt.view_as_real(p.detach()).numpy(), pairs.detach().numpy(), rtol=1e-12)
    for key, value in second.state[pairs].items():
        mine = first.state[p][key]
        np.testing.assert_allclose((pt.view_as_real(mine) if mine.is_complex() else mine).numpy(), value.numpy(),
                                   rtol=1e-12)


@each_optimizer
@pytest.mark.parametrize("dtype", [pt.float16, pt.bfloat16])
def test_half_types_round_once_a_step(make, options, dtype):
    """A step is computed in float32 from what the step before has stored."""
    values, *grads = arrays((5,), 5)
    half, single = (pt.tensor(values, dtype=dtype).to(t).requires_grad_() for t in (dtype, pt.float32))
    first, second = make([half], **options), make([single], **options)
    for g in grads:
        half.grad = pt.tensor(g, dtype=dtype)
        single.grad = half.grad.float()
        for o in (first, second):
            o.step()
        with pt.no_grad():
            single.copy_(single.to(dtype))
            for key, value in second.state[single].items():
                if key not in second._counters:
                    value.copy_(value.to(dtype))
        assert half.dtype == dtype
        np.testing.assert_allclose(half.float().tolist(), single.tolist(), rtol=1e-2 if dtype == pt.bfloat16 else 2e-3)


@each_optimizer
def test_many_parameters_of_all_shapes(make, options):
    shapes = [(), (0,), (1,), (3, 0, 2), (7,), (2, 3), (70000,)] * 3
    values = [arrays(s, 1, i)[0] for i, s in enumerate(shapes)]
    grads = [arrays(s, 4, 100 + i) for i, s in enumerate(shapes)]
    at = [(step, i) for step in range(4) for i in range(len(shapes))]
    grads = {(step, i): None if (step + i) % 4 == 0 else grads[i][step] for step, i in at}
    together = [pt.tensor(v).requires_grad_() for v in values]
    walk(make, options, together, lambda step, i: grads[step, i])
    for k, v in enumerate(values):
        alone = pt.tensor(v).requires_grad_()
        walk(make, options, [alone], lambda step, i, k=k: grads[step, k])
        assert alone.tolist() == together[k].tolist()


@each_optimizer
@pytest.mark.parametrize("layout", ["plain", "sliced"])
def test_versions_and_gradients(make, options, layout):
    values, *grads = arrays((3, 4), 3)
    p, q = (LAYOUTS.get(layout, lambda x: x)(pt.tensor(values)).detach().requires_grad_() for _ in range(2))
    optimizer = make([p, q], **options)
    p.grad = pt.tensor(grads[0])
    optimizer.step()
    before = {k: v._version for k, v in optimizer.state[p].items()}
    version = p._version
    optimizer.step()
    assert p._version == version + 1
    assert q._version == 0
    assert q.tolist() == values.tolist()
    assert p.grad.tolist() == grads[0].tolist()
    assert p.grad._version == 0
    for name in (*optimizer._buffers, *optimizer._counters):
        if name in before:
            assert optimizer.state[p][name]._version == before[name] + 1, name


def test_parameters_that_share_memory_are_stepped_in_order():
    base = pt.ones(6)
    a, b = base[:4].requires_grad_(), base[2:].requires_grad_()
    a.grad, b.grad = pt.ones(4), pt.full((4,), 2.0)
    optim.SGD([a, b], lr=0.25, weight_decay=1.0).step()
    # p - (g + p) / 4, for b of what a has left
    assert base.tolist() == [0.5, 0.5, -0.125, -0.125, 0.25, 0.25]


@each_optimizer
def test_infinite_parameters(make, options):
    """No decay is no multiplication by zero."""
    if options.get("weight_decay"):
        return
    p = pt.tensor([float("inf"), 1.0]).requires_grad_()
    p.grad = pt.ones(2)
    make([p], **options).step()
    assert p[0].item() == float("inf")


@each_optimizer
@pytest.mark.parametrize("dtype", [pt.float64, pt.complex128])
def test_an_interpreter_sees_a_step(make, options, dtype):
    values, *grads = arrays((3,), 5, kind=complex if dtype.is_complex else float)
    p, q = (pt.tensor(values).requires_grad_() for _ in range(2))
    walk(make, options, [p], lambda step, i: grads[step])
    with Tracer() as tracer:
        walk(make, options, [q], lambda step, i: grads[step])
    np.testing.assert_allclose(q.tolist(), p.tolist(), rtol=1e-12)
    assert {"mul", "sub"} <= {op for op, _, _ in tracer.tape}
    if dtype is pt.float64:
        assert sum(op == "assign" and args[0] is q for op, args, _ in tracer.tape) == 4


class Watching(Interpreter):
    """Runs steps as one op, or leaves them and all others to dispatch."""

    def __init__(self, answers):
        self.answers, self.seen, self.lists = answers, [], None

    def call(self, op, args, out, variant):
        row = ops.row(op)
        self.seen.append(row.name)
        if row.family == "optimizers":
            self.lists = {a.name: x for a, x in zip(row.args, args, strict=True) if a.letter == "L"}
            if self.answers:
                return run(op, args)
        return NotImplemented


class Log(TorchFunctionMode):
    def __init__(self, answers):
        self.answers, self.seen = answers, []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.seen.append(func.__name__)
        if func.__name__.startswith("step_") and not self.answers:
            return NotImplemented
        return func(*args, **(kwargs or {}))


def test_every_formula_is_a_row():
    assert {row.name for row in ops.rows() if row.family == "optimizers"} == {f"step_{name}" for name in STEPS}
    for name, step in STEPS.items():
        names = [a.name for a in ops.row(f"step_{name}").args]
        assert names == [*step.written, "g", *step.counters, *step.options]


@each_optimizer
@pytest.mark.parametrize("watch", [Watching, Log])
@pytest.mark.parametrize("answers", [True, False])
def test_a_step_is_offered_as_one_op(make, options, watch, answers):
    """By its id, with its tensors; who leaves it to dispatch sees the ops that it is made of."""
    values, *grads = arrays((3,), 5)
    plain, watched = ([pt.tensor(values).requires_grad_() for _ in range(2)] for _ in range(2))
    first, second = (make(params, **options) for params in (plain, watched))
    watching = watch(answers)
    for g in grads:
        for p in (*plain, *watched):
            p.grad = pt.tensor(g)
        first.step()
        watching.seen.clear()
        with watching:
            second.step()
        (place,) = [k for k, name in enumerate(watching.seen) if name.startswith("step_")]
        after = watching.seen[place + 1:]
        assert after == [] if answers else {"mul", "sub"} <= {name.removesuffix("_") for name in after}
        if watch is Watching:
            assert all(len(x) == 2 for x in watching.lists.values())
            assert all(x is y for x, y in zip(watching.lists["p"], watched, strict=True))
            assert all(x is y.grad for x, y in zip(watching.lists["g"], watched, strict=True))
    for p, q in zip(plain, watched, strict=True):
        np.testing.assert_allclose(q.tolist(), p.tolist(), rtol=1e-12)
        for key, value in first.state[p].items():
            np.testing.assert_allclose(second.state[q][key].tolist(), value.tolist(), rtol=1e-12)


def test_a_class_of_tensors_is_offered_a_step():
    class Sees(pt.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append(func.__name__)
            return super().__torch_function__(func, types, args, kwargs)
    seen = []
    p, q = pt.ones(3).requires_grad_(), pt.ones(3).as_subclass(Sees).requires_grad_()
    p.grad, q.grad = pt.ones(3), pt.ones(3)
    made = optim.SGD([p], lr=0.5), optim.SGD([q], lr=0.5)
    seen.clear()
    for optimizer in made:
        optimizer.step()
    assert seen == ["step_sgd"] and q.tolist() == p.tolist() == [0.5] * 3


def test_a_profile_has_a_step_as_one_event():
    p = pt.ones(3).requires_grad_()
    p.grad = pt.ones(3)
    optimizer = optim.Adam([p])
    optimizer.step()
    with profile() as prof:
        optimizer.step()
    assert [e.name for e in prof.events() if e.name.startswith("aten::")] == ["aten::step_adam"]


def test_calls_of_a_row():
    step = ops.function("step_sgd_momentum")
    p, m, g = pt.ones(2), pt.zeros(2), pt.ones(2)
    assert step([p], [m], [g], 0.5, 0.5, 0.0, 0.0, False, False) is None
    assert (p.tolist(), m.tolist(), g.tolist()) == ([0.5] * 2, [1.0] * 2, [1.0] * 2)
    numbers = (0.5, 0.5, 0.0, 0.0, False, False)
    with pytest.raises(ValueError, match="sgd: g must hold a tensor for each of 1 parameters, got 2"):
        step([p], [m], [g, g], *numbers)
    with pytest.raises(TypeError, match="sgd: m must hold Tensors, got int"):
        step([p], [0], [g], *numbers)
    with pytest.raises(TypeError, match="sgd: p must be a sequence of Tensors, got Tensor"):
        step(p, [m], [g], *numbers)
    with pytest.raises(TypeError, match="sgd: lr must be float, got str"):
        step([p], [m], [g], "fast", *numbers[1:])
    step([p], [m], [g], np.float32(0.5), *numbers[1:])
    step([], [], [], *numbers)
    for other in (pt.ones(3), pt.ones(2, dtype=pt.float64), pt.ones(2, 2), pt.ones(())):   # any sizes and dtypes
        try:
            step([p.clone()], [m.clone()], [other], *numbers)
        except (RuntimeError, TypeError, ValueError):
            pass


def test_no_call_of_a_row_crashes():
    """Any tensors, counters and options: a result or an error."""
    rng, whole = random.Random(3), pt.ones(8)
    fixed = np.ones(3, np.float32)
    fixed.flags.writeable = False
    tensors = [*[pt.ones(3)] * 9, pt.ones(2, 3), pt.ones(3, 2).t(), pt.ones(1).expand(3), pt.ones(3, dtype=pt.float64),
               pt.ones(3, dtype=pt.complex64), pt.ones(3, dtype=pt.float16), pt.ones(3, dtype=pt.int64),
               pt.ones(3, device="meta"), pt.empty(0), pt.ones(()), pt.from_numpy(fixed), whole[1:4], whole[:3],
               pt.ones((1,) * 64)]
    others = [-1, float("nan"), 2**70, "x", None, 1j, pt.tensor(0.5), pt.ones(2), (), [], object()]
    done = 0
    for _ in range(2000):
        row, n = ops.row(f"step_{rng.choice([*STEPS])}"), rng.randrange(3)
        args = []
        for a in row.args:
            given = rng.choice([0.1, 0.5, False, True])
            if a.letter == "L":
                given = [pt.tensor(1.0) if a.name in ("step", "eta", "mu", "mu_product") else rng.choice(tensors)
                         for _ in range(n if rng.random() < 0.97 else 1)]
            args.append(given if rng.random() < 0.98 else rng.choice(others))
        try:
            with pt.set_grad_enabled(rng.random() < 0.1):
                ops.function(row.name)(*args)
            done += 1
        except (TypeError, ValueError, RuntimeError, IndexError, OverflowError, NotImplementedError, ZeroDivisionError):
            pass
    assert 200 < done < 1900


def test_bad_calls():
    p = pt.zeros(2, dtype=pt.int64)
    p.grad = pt.zeros(2, dtype=pt.int64)
    with pytest.raises(RuntimeError, match=r"sgd: parameters must be floating or complex, got ptcore.int64"):
        optim.SGD([p]).step()
    values = np.ones(3)
    values.flags.writeable = False
    p = pt.from_numpy(values).requires_grad_()
    p.grad = pt.ones(3, dtype=pt.float64)
    with pytest.raises(RuntimeError, match="read-only"):
        optim.Adadelta([p]).step()
    assert (values == 1).all()
