"""Calls that PyTorch's own unit tests make and programs seldom do, with ptcore and with torch."""
import pytest

import ptcore

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.parity, pytest.mark.core]


def seen(x):
    """What can be compared: the numbers, dtype and strides of a tensor, or a plain value."""
    if not hasattr(x, "stride"):
        return x
    return x.tolist(), str(x.dtype).rpartition(".")[2], x.stride()


def both(*calls):
    for call in calls:
        got, want = [seen(call(lib)) for lib in (ptcore, torch)]
        assert got == want or got == (pytest.approx(want[0], rel=1e-6), *want[1:])


def refused(error, *calls):
    for call in calls:
        for lib in (ptcore, torch):
            with pytest.raises(error):
                call(lib)


def test_ranges_between_complex_ends():
    both(lambda t: t.linspace(0, 1j, 3), lambda t: t.linspace(1 + 1j, 1j, 5, dtype=t.complex128),
         lambda t: t.linspace(t.tensor(1 + 1j), 1, 5), lambda t: t.linspace(1j, 2, 1),
         lambda t: t.logspace(1 + 1j, 1j, 3), lambda t: t.logspace(0, 1j, 4, dtype=t.complex128))
    refused(RuntimeError, lambda t: t.linspace(1j, 1, 3, dtype=t.float32),
            lambda t: t.linspace(1j, 1, 3, out=t.empty(3)), lambda t: t.logspace(1j, 1, 3, dtype=t.float32))


def test_functions_of_elements_broadcast():
    both(lambda t: t.zeros(2, 3).map_(t.arange(3.), lambda a, b: a + b),
         lambda t: t.zeros(2, 3).map2_(t.arange(3.), t.arange(2.).view(2, 1), lambda a, b, c: a + b - 2 * c),
         lambda t: t.zeros(2).map_(t.tensor(3.), lambda a, b: a + b))
    refused(RuntimeError, lambda t: t.zeros(2).map_(t.ones(3), max))
    refused(TypeError, lambda t: t.zeros(2).map_(t.arange(2), max))


def test_sizes_of_new_by_name():
    both(lambda t: t.ones(2).new(size=(3, 4)).shape == (3, 4), lambda t: t.arange(2).new(size=(0, 4)))
    refused(TypeError, lambda t: t.ones(2).new(3, size=(3, 4)), lambda t: t.ones(2).new(sizes=(3, 4)))


def test_strides_of_new_dims_of_one_element():
    for shape, size in (((1, 5), (4, 1, 5)), ((5, 1), (1, 5, 1)), ((), (1, 1)), ((3,), (1, 1, 3)), ((3,), (2, 1, 3)),
                        ((1,), (1, 4, -1)), ((0,), (1, 0)), ((2, 3), (1, 1, 1, 2, 3)), ((2, 3), (1, 2, 1, 2, 3))):
        both(lambda t, shape=shape, size=size: t.ones(shape).expand(size),
             lambda t, shape=shape, size=size: t.ones(shape[::-1]).mT.expand(size) if len(shape) == 2 else 0)


def test_the_gradient_by_its_other_name():
    def run(t):
        layer = t.nn.Linear(3, 2)
        layer.weight._grad = t.arange(6.).view(2, 3)
        found = [layer.weight.grad.tolist(), layer.weight._grad is layer.weight.grad]
        layer(t.ones(3)).sum().backward()
        layer.weight.grad, after = None, layer.weight._grad.tolist()
        return [*found, after, layer.weight._grad]
    both(run)
    refused(TypeError, lambda t: setattr(t.ones(3), "_grad", 3))
    refused(RuntimeError, lambda t: setattr(t.ones(3), "_grad", t.ones(2)))


def test_bags_of_nothing_have_a_history():
    def run(t, mode, index, offsets, padding):
        weight = t.rand(5, 3, requires_grad=True)
        found = t.nn.functional.embedding_bag(t.tensor(index, dtype=t.int64), weight, mode=mode, padding_idx=padding,
                                              offsets=t.tensor(offsets, dtype=t.int64))
        found.sum().backward()
        return [found.tolist(), weight.grad.tolist()]
    for mode in ("sum", "mean", "max"):
        for index, offsets, padding in (([], [0, 0], None), ([1, 1], [0], 1), ([], [], None)):
            both(lambda t, m=mode, i=index, o=offsets, p=padding: run(t, m, i, o, p))


def test_rows_that_are_shortened_are_constants_in_forward_mode():
    def run(t, function):
        ad = t.autograd.forward_ad
        weight = t.arange(16., dtype=t.float64).view(4, 4) - 6
        with ad.dual_level():
            found = ad.unpack_dual(function(t, ad.make_dual(weight, t.ones_like(weight))))
            return [[[round(v, 9) for v in row] for row in x.tolist()] for x in found]

    def rows(t, weight):
        return t.nn.functional.embedding(t.tensor([0, 1, 1]), weight, max_norm=1.)

    def bags(t, weight):
        return t.nn.functional.embedding_bag(t.tensor([[0, 1], [1, 1]]), weight, max_norm=1., mode="sum")
    both(lambda t: run(t, rows))
    assert run(ptcore, bags)[1] == [[2.] * 4] * 2           # PyTorch has no forward mode of it


@pytest.mark.filterwarnings("ignore:Using a non-full backward hook")
def test_a_hook_on_the_last_node_of_every_module():
    def run(t):
        found, layer = [], t.nn.Sigmoid()
        handle = t.nn.modules.module.register_module_backward_hook(
            lambda module, gi, go: found.append([type(module).__name__, go[0].tolist()]))
        try:
            layer(t.zeros(2, requires_grad=True)).sum().backward()
        finally:
            handle.remove()
        layer(t.zeros(2, requires_grad=True)).sum().backward()
        return found
    def forget():                       # the kind of hook that was registered first is kept
        ptcore.nn.modules.module_hooks.global_state.tables()._is_full_backward_hook = None
        torch.nn.modules.module._global_is_full_backward_hook = None

    forget()
    try:
        both(run)
    finally:
        forget()


def test_schedulers_keep_no_tensor_of_the_caller():
    def run(t, make):
        """Rates and momentums of two groups, while the caller's tensors are written to."""
        numbers = {k: t.tensor(v) for k, v in dict(high=0.5, low=0.25, more=0.75, less=0.125).items()}
        groups = [{"params": [t.nn.Parameter(t.ones(1))]} for _ in range(2)]
        opt = t.optim.SGD(groups, lr=0.5, momentum=0.5)
        schedule = make(t, opt, **numbers)
        found = []
        for _ in range(3):
            for x in numbers.values():
                x.mul_(0.5)
            opt.step()
            schedule.step()
            found.append([[round(float(g[k]), 6) for k in ("lr", "momentum", "max_momentum", "base_momentum", "swa_lr")
                           if k in g] for g in opt.param_groups])
        return found

    def cyclic(t, opt, high, low, more, less):
        return t.optim.lr_scheduler.CyclicLR(opt, low, high, step_size_up=2, base_momentum=less, max_momentum=more)

    def one_cycle(t, opt, high, low, more, less):
        return t.optim.lr_scheduler.OneCycleLR(opt, high, total_steps=6, base_momentum=less, max_momentum=more)

    def averaged(t, opt, high, low, more, less):
        return t.optim.swa_utils.SWALR(opt, swa_lr=low, anneal_epochs=2)
    both(*[lambda t, make=make: run(t, make) for make in (cyclic, one_cycle, averaged)])


def test_an_error_of_a_callback_stays_there():
    def run(t):
        found, future = [], t.futures.Future()
        for callback in (lambda f: 1 / 0, lambda: None, lambda f: found.append(f.value())):
            future.add_done_callback(callback)
        then = future.then(lambda f: f.value() + 1)
        future.set_result(5)
        future.add_done_callback(lambda f: 1 / 0)
        return [*found, then.wait()]
    both(run)
