"""Training steps under compile: ``backward()``, ``.grad`` and steps of optimizers inside, beside eager steps."""
import copy

import pytest

import ptcore as pt
from ptcore import nn
from ptcore.jit import compiled as _compile

F = nn.functional


def classifier():
    pt.manual_seed(3)
    return nn.Sequential(nn.Linear(5, 7), nn.ReLU(), nn.Linear(7, 3))


def batches(n, sizes=(4,)):
    g = pt.Generator().manual_seed(1)
    return [(pt.randn(sizes[k % len(sizes)], 5, generator=g), pt.randint(0, 3, (sizes[k % len(sizes)],), generator=g))
            for k in range(n)]


class Run:
    """A program of a model, its optimizer and whatever else it keeps; two of them are compared."""

    def __init__(self, program, optimizer=None, model=classifier, backend="cpu", compiled=True, fullgraph=False):
        self.model = model()
        optimizer = optimizer or (lambda p: pt.optim.SGD(p, lr=0.1))
        self.opt = optimizer(self.model.parameters())
        made = program(self.model, self.opt)
        self.step, *self.kept = made if isinstance(made, tuple) else (made,)
        self.call = pt.compile(self.step, backend=backend, fullgraph=fullgraph) if compiled else self.step
        self.results = []

    def run(self, data):
        for x, y in data:
            self.results.append(self.call(x, y))
        return self

    def state(self):
        grads = [p.grad for p in self.model.parameters()]
        return self.results, [*self.model.parameters(), *self.model.buffers()], grads, self.opt.state_dict()

    @property
    def variants(self):
        return [v for variants in self.call._compiled.forms.values() for v in variants]


def same(a, b):
    if isinstance(a, pt.Tensor):
        assert isinstance(b, pt.Tensor) and a.requires_grad == b.requires_grad and a.dtype is b.dtype
        assert pt.equal(a.detach(), b.detach())
    elif isinstance(a, (list, tuple)):
        assert len(a) == len(b)
        for u, v in zip(a, b, strict=True):
            same(u, v)
    elif isinstance(a, dict):
        assert list(a) == list(b)
        same(list(a.values()), list(b.values()))
    else:
        assert a == b


def compare(program, optimizer=None, model=classifier, data=None, captured=True, backend="cpu", fullgraph=False):
    """Whether a compiled program does to its model what it does eagerly, bit for bit."""
    data = batches(6) if data is None else data
    pt.manual_seed(11)
    eager = Run(program, optimizer, model, compiled=False).run(data)
    eager_draw = pt.rand(())
    before = _compile.counts["captures"]
    pt.manual_seed(11)
    compiled = Run(program, optimizer, model, backend, fullgraph=fullgraph).run(data)
    assert pt.equal(eager_draw, pt.rand(()))
    same(eager.state(), compiled.state())
    for a, b in zip(eager.kept, compiled.kept, strict=True):
        same(a, b) if not callable(getattr(a, "state_dict", None)) else same(a.state_dict(), b.state_dict())
    kinds = [type(v) for v in compiled.variants]
    if captured:
        assert _compile.Eager not in kinds and kinds, [getattr(v, "reason", v) for v in compiled.variants]
    else:
        assert kinds == [_compile.Eager]
    compiled.captures = _compile.counts["captures"] - before
    return compiled


def plain(model, opt):
    def step(x, y):
        opt.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        opt.step()
        return loss
    return step


OPTIMIZERS = {
    "sgd": lambda p: pt.optim.SGD(p, lr=0.1),
    "momentum": lambda p: pt.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.01),
    "adam": lambda p: pt.optim.Adam(p, lr=0.01),
    "adamw": lambda p: pt.optim.AdamW(p, lr=0.01, amsgrad=True),
    "rmsprop": lambda p: pt.optim.RMSprop(p, lr=0.01),
    "adagrad": lambda p: pt.optim.Adagrad(p),
    "rprop": lambda p: pt.optim.Rprop(p),
    "asgd": lambda p: pt.optim.ASGD(p),
    "groups": lambda p: pt.optim.SGD([{"params": [q], "lr": 0.1 * k} for k, q in enumerate(p)], lr=0.2),
}


@pytest.mark.parametrize("optimizer", OPTIMIZERS.values(), ids=OPTIMIZERS)
@pytest.mark.parametrize("backend", ["cpu", "eager"])
def test_a_step_is_one_graph(optimizer, backend):
    compiled = compare(plain, optimizer, backend=backend, fullgraph=True)
    (segment,) = compiled.variants
    assert segment.asks is None and compiled.captures == 1


def detached(model, opt):
    def step(x, y):
        opt.zero_grad()
        out = model(x)
        loss = F.cross_entropy(out, y)
        loss.backward()
        opt.step()
        return loss.detach(), out.detach()
    return step


def detached_weight(model, opt):
    def step(x, y):
        found = plain(model, opt)(x, y)
        return model[0].weight.detach() * 2, found
    return step


def test_what_is_detached_behind_a_step():
    """An alias of a result stays in the segment; a weight is read after the step."""
    (segment,) = compare(detached, fullgraph=True).variants
    assert segment.asks is None
    (segment,) = compare(detached_weight).variants
    assert segment.asks == "nothing"


def test_a_callable_backend_gets_the_gradients_as_rows():
    met = []

    def backend(module, inputs):
        met.append([n.target.__name__ for n in module.graph.nodes if n.op == "call_function"])
        return module.forward
    compare(plain, backend=backend)
    assert len(met) == 1 and "cross_entropy_backward" in " ".join(met[0]) and "set_grad_enabled" not in met[0]


def late(model, opt):
    def step(x, y):
        loss = F.cross_entropy(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        return loss.detach(), model(x)
    return step


def behind(model, opt):
    def step(x, y):
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        opt.step()
        opt.zero_grad()
        return loss.detach()
    return step


def zeros(model, opt):
    def step(x, y):
        opt.zero_grad(set_to_none=False)
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        opt.step()
        return loss
    return step


def accumulated(model, opt):
    def step(x, y):
        for part, target in zip(x.chunk(2), y.chunk(2)):
            (F.cross_entropy(model(part), target) / 2).backward()
        opt.step()
        model.zero_grad()
    return step


def summed(model, opt):
    """No gradient is dropped: they add up from call to call."""
    def step(x, y):
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        return loss
    return step


def clipped(model, opt):
    def step(x, y):
        opt.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        opt.step()
        return loss, norm
    return step


def clipped_values(model, opt):
    def step(x, y):
        opt.zero_grad()
        F.cross_entropy(model(x), y).backward()
        nn.utils.clip_grad_value_(model.parameters(), 0.01)
        opt.step()
    return step


def by_hand(model, opt):
    def step(x, y):
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        with pt.no_grad():
            for p in model.parameters():
                p -= 0.1 * p.grad
                p.grad = None
        return loss
    return step


def of_grads(model, opt):
    """autograd.grad and an update by hand."""
    def step(x, y):
        parameters = list(model.parameters())
        loss = F.cross_entropy(model(x), y)
        grads = pt.autograd.grad(loss, parameters)
        with pt.no_grad():
            for p, g in zip(parameters, grads):
                p.sub_(g, alpha=0.1)
        return loss.detach()
    return step


def averaged(model, opt):
    """An average of the weights, kept beside them."""
    average = copy.deepcopy(model).requires_grad_(False)

    def step(x, y):
        opt.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        opt.step()
        with pt.no_grad():
            for p, q in zip(model.parameters(), average.parameters()):
                q.lerp_(p, 0.1)
        return loss
    return step, average


def several(model, opt):
    def step(x, y):
        losses = []
        for _ in range(3):
            opt.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            opt.step()
            losses.append(loss)
        return losses
    return step


def penalized(model, opt):
    def step(x, y):
        opt.zero_grad()
        loss = F.cross_entropy(model(x), y) + 0.01 * sum(p.square().sum() for p in model.parameters())
        loss.backward()
        opt.step()
        return {"loss": loss, "right": (model(x).argmax(1) == y).sum()}
    return step


def two_losses(model, opt):
    other = pt.optim.SGD([model[2].bias], lr=0.3)

    def step(x, y):
        hidden = model[1](model[0](x))
        first = F.cross_entropy(model[2](hidden), y)
        second = hidden.square().mean()
        opt.zero_grad()
        first.backward(retain_graph=True)
        other.step()
        second.backward()
        opt.step()
        return first.detach(), second.detach()
    return step, other


def chosen(model, opt):
    """Only some leaves get a gradient."""
    def step(x, y):
        opt.zero_grad()
        F.cross_entropy(model(x), y).backward(inputs=[model[2].weight])
        opt.step()
    return step


def seeded(model, opt):
    def step(x, y):
        opt.zero_grad()
        out = model(x)
        out.backward(F.softmax(out.detach(), 1))
        opt.step()
        return out.detach()
    return step


def rooted(model, opt):
    def step(x, y):
        model.zero_grad()
        pt.autograd.backward([model(x).sum(), model(x * 2).square().sum()])
        opt.step()
        return model(x * pt.ones(5))
    return step


def read(model, opt):
    """A value is read before the step."""
    def step(x, y):
        opt.zero_grad()
        loss = F.cross_entropy(model(x), y)
        if loss > 100:
            return None
        loss.backward()
        opt.step()
        return loss.detach()
    return step


PROGRAMS = [late, behind, zeros, accumulated, summed, clipped, clipped_values, by_hand, of_grads, averaged, several,
            penalized, two_losses, chosen, seeded, rooted, read]


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_programs(program, optimizer):
    compare(program, OPTIMIZERS[optimizer])


@pytest.mark.parametrize("program", [plain, clipped, accumulated])
def test_other_sizes(program):
    compiled = compare(program, data=batches(9, (4, 6, 8)))
    assert compiled.captures <= 4


# -- state that changes from step to step -----------------------------------------------------------------------------

def scheduled(make):
    def program(model, opt):
        schedule = make(opt)

        def step(x, y):
            opt.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            opt.step()
            schedule.step()
            return loss.detach()
        return step, schedule
    return program


SCHEDULES = {
    "step": lambda o: pt.optim.lr_scheduler.StepLR(o, 2),
    "cosine": lambda o: pt.optim.lr_scheduler.CosineAnnealingLR(o, 5),
    "one cycle": lambda o: pt.optim.lr_scheduler.OneCycleLR(o, 0.1, total_steps=20),
    "sequence": lambda o: pt.optim.lr_scheduler.SequentialLR(o, [
        pt.optim.lr_scheduler.LinearLR(o), pt.optim.lr_scheduler.ExponentialLR(o, 0.9)], [3]),
}


@pytest.mark.parametrize("make", SCHEDULES.values(), ids=SCHEDULES)
def test_schedules_are_no_guards(make):
    compiled = compare(scheduled(make), data=batches(12))
    assert compiled.captures == 1


def test_a_learning_rate_that_changes_is_no_guard():
    runs = [Run(plain, OPTIMIZERS["adam"], compiled=c) for c in (False, True)]
    before = _compile.counts["captures"]
    for k, pair in enumerate(batches(12)):
        for run in runs:
            run.opt.param_groups[0]["lr"] = 0.01 * (k + 1)
            run.opt.param_groups[0]["weight_decay"] = 0.001 * k
            run.run([pair])
    same(runs[0].state(), runs[1].state())
    assert _compile.counts["captures"] - before == 1


def test_a_loss_steers_the_schedule():
    def program(model, opt):
        schedule = pt.optim.lr_scheduler.ReduceLROnPlateau(opt, patience=0, threshold=10.0)

        def step(x, y):
            opt.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            opt.step()
            schedule.step(loss.detach())
        return step, schedule
    assert compare(program).captures == 1


def test_gradients_that_are_there_already():
    """The state of .grad is no guard: it is looked at when the gradient is added."""
    runs = [Run(summed, compiled=c) for c in (False, True)]
    for k, pair in enumerate(batches(6)):
        for run in runs:
            if k == 2:
                run.model.zero_grad()
            if k == 4:
                for p in run.model.parameters():
                    p.grad = pt.ones_like(p)
            run.run([pair])
    same(runs[0].state(), runs[1].state())
    assert len(runs[1].variants) == 1


def test_nobody_elses_memory_becomes_a_gradient():
    model = classifier()

    @pt.compile
    def step(x, y):
        loss = F.cross_entropy(model(x), y) + model[0].bias.sum() + model[2].bias.sum()
        loss.backward()
        return loss
    for x, y in batches(3):
        step(x, y)
        for p in model.parameters():
            assert p.grad.is_contiguous() and p.grad.untyped_storage().nbytes() == p.numel() * 4
        assert len({p.grad.data_ptr() for p in model.parameters()}) == 4
        before = [p.grad.clone() for p in model.parameters()]
        model[0].bias.grad.fill_(7)
        for p, g in list(zip(model.parameters(), before))[2:]:
            assert pt.equal(p.grad, g)
        model.zero_grad()


def test_dropout_and_batch_norm():
    def model():
        pt.manual_seed(2)
        return nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8), nn.Dropout(0.3), nn.Linear(8, 3))
    compare(plain, OPTIMIZERS["momentum"], model)


# -- hooks ------------------------------------------------------------------------------------------------------------

def test_hooks_of_leaves():
    def program(model, opt):
        seen = []
        model[0].weight.register_hook(lambda g: g * 2)
        model[2].weight.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.sum().item()))
        return plain(model, opt), seen
    compare(program)


def test_hooks_that_come_later():
    runs = [Run(plain, compiled=c) for c in (False, True)]
    for k, pair in enumerate(batches(6)):
        for run in runs:
            if k == 3:
                run.handle = run.model[0].weight.register_hook(lambda g: g * 3)
            if k == 5:
                run.handle.remove()
            run.run([pair])
    same(runs[0].state(), runs[1].state())


def test_an_optimizer_in_the_backward():
    def program(model, opt):
        optimizers = {p: pt.optim.SGD([p], lr=0.1) for p in model.parameters()}

        def update(p):
            optimizers[p].step()
            optimizers[p].zero_grad()
        for p in model.parameters():
            p.register_post_accumulate_grad_hook(update)

        def step(x, y):
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            return loss.detach(), model(x).detach()
        return step
    compare(program)


def test_hooks_of_optimizers():
    def program(model, opt):
        seen = []
        opt.register_step_pre_hook(lambda o, args, kwargs: seen.append("before"))
        opt.register_step_post_hook(lambda o, args, kwargs: o.param_groups[0].update(lr=o.param_groups[0]["lr"] / 2))
        return plain(model, opt), seen
    assert compare(program).captures == 1


# -- leaves of the program's own --------------------------------------------------------------------------------------

def test_gradients_of_inputs():
    """An adversarial step: the gradient by a tensor that the program makes a leaf."""
    def program(model, opt):
        def step(x, y):
            moved = x.detach().clone().requires_grad_()
            F.cross_entropy(model(moved), y).backward()
            moved = (moved + 0.1 * moved.grad.sign()).detach()
            opt.zero_grad()
            F.cross_entropy(model(moved), y).backward()
            opt.step()
            return moved
        return step
    compare(program)


def test_a_leaf_that_is_an_argument():
    @pt.compile(fullgraph=True)
    def f(x):
        (x * x).sum().backward()
    x = pt.tensor([1.0, 2.0], requires_grad=True)
    for k in range(3):
        f(x)
        assert x.grad.tolist() == [2.0 * (k + 1), 4.0 * (k + 1)]


# -- what is not captured ---------------------------------------------------------------------------------------------

def test_what_fails_behind_a_step_is_taken_back():
    """The capture has made the step when it finds what it cannot do: the call then runs eagerly, once."""
    def program(model, opt):
        lines = []

        def step(x, y):
            opt.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            opt.step()
            right = (model(x).argmax(1) == y).sum()
            lines.append(int(right))
            return loss.detach()
        return step, lines
    for optimizer in OPTIMIZERS.values():
        compare(program, optimizer, captured=False)


def test_a_schedule_is_taken_back():
    def program(model, opt):
        schedule = pt.optim.lr_scheduler.SequentialLR(opt, [pt.optim.lr_scheduler.LinearLR(opt),
                                                            pt.optim.lr_scheduler.ExponentialLR(opt, 0.9)], [3])
        lines = []

        def step(x, y):
            opt.zero_grad(set_to_none=False)
            F.cross_entropy(model(x), y).backward()
            opt.step()
            schedule.step()
            lines.append(model(x).sum().item())
        return step, lines, schedule
    compare(program, OPTIMIZERS["adam"], captured=False)


def test_an_error_behind_a_step_is_raised_once():
    runs = [Run(lambda model, opt: (bad(model, opt),), compiled=c) for c in (False, True)]
    for pair in batches(3):
        for run in runs:
            with pytest.raises(ValueError, match="no more"):
                run.run([pair])
    same(runs[0].state(), runs[1].state())


def bad(model, opt):
    def step(x, y):
        opt.zero_grad()
        F.cross_entropy(model(x), y).backward()
        opt.step()
        if model(x).sum() < 1e9:
            raise ValueError("no more")
    return step


def test_an_error_of_the_optimizer():
    def program(model, opt):
        def fails(o, args, kwargs):
            raise ValueError("no step")
        opt.register_step_pre_hook(fails)
        return summed_and_stepped(model, opt)
    runs = [Run(program, compiled=c) for c in (False, True)]
    for pair in batches(3):
        for run in runs:
            with pytest.raises(ValueError, match="no step"):
                run.run([pair])
    same(runs[0].state(), runs[1].state())


def summed_and_stepped(model, opt):
    def step(x, y):
        F.cross_entropy(model(x), y).backward()
        opt.step()
    return step


def test_a_step_with_a_closure():
    def program(model, opt):
        def step(x, y):
            def closure():
                opt.zero_grad()
                loss = F.cross_entropy(model(x), y)
                loss.backward()
                return loss
            return opt.step(closure).detach()
        return step
    compare(program, lambda p: pt.optim.LBFGS(p, max_iter=3), captured=False)


def test_create_graph():
    def program(model, opt):
        def step(x, y):
            F.cross_entropy(model(x), y).backward(create_graph=True)
            opt.step()
            opt.zero_grad()
        return step
    compare(program, captured=False)


def test_a_history_that_is_kept():
    """A result whose history can still be walked: the call runs eagerly."""
    def program(model, opt):
        def step(x, y):
            loss = F.cross_entropy(model(x), y)
            loss.backward(retain_graph=True)
            return loss
        return step
    run = compare(program, captured=False)
    run.results[-1].backward()


def test_a_second_backward_raises():
    run = Run(plain).run(batches(4))
    assert run.results[-1].requires_grad and not run.results[-1].is_leaf
    for loss in run.results:
        with pytest.raises(RuntimeError, match="retain_graph"):
            loss.backward()

    def twice(model, opt):
        def step(x, y):
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            loss.backward()
        return step
    runs = [Run(twice, compiled=c) for c in (False, True)]
    for run in runs:
        for pair in batches(2):
            with pytest.raises(RuntimeError, match="retain_graph"):
                run.run([pair])
    same(runs[0].state(), runs[1].state())


def test_a_gradient_that_leads_outside():
    w = pt.ones(3, requires_grad=True)
    f = pt.compile(lambda x: (x * 2).sum().backward())
    for k in range(3):
        f(w * 3)
        assert w.grad.tolist() == [6.0 * (k + 1)] * 3


def test_grad_of_what_is_no_leaf():
    @pt.compile
    def f(x):
        y = x * 2
        y.sum().backward()
        return y.grad
    x = pt.ones(2, requires_grad=True)
    assert f(x) is None and x.grad.tolist() == [2.0, 2.0]


def test_several_gradients_of_one_leaf():
    """What one backward has for a leaf is one sum in the graph; eagerly each part is added to what is there."""
    @pt.compile
    def f(w, x):
        w = w * 1
        (w * x[0]).sum().backward()
        (w.detach() * leaf * x[1] + leaf * x[2]).sum().backward()
    leaf = pt.ones(3, requires_grad=True)
    x = pt.randn(3, 3)
    for k in range(3):
        f(leaf, x)
        assert pt.allclose(leaf.grad, (k + 1) * x.sum(0))


def test_explain_says_why():
    model = classifier()
    opt = pt.optim.SGD(model.parameters(), lr=0.1)

    def step(x, y):
        F.cross_entropy(model(x), y).backward(create_graph=True)
        opt.step()
    out = pt.compiler.explain(step)(*batches(1)[0])
    assert any("create_graph" in r.reason for r in out.break_reasons)
    found = pt.compiler.explain(plain(model, opt))(*batches(1)[0])
    assert found.graph_count == 1 and not found.break_reasons
