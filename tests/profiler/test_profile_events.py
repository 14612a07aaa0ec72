"""What a profile records: every call once, nested as called, on its thread, and nothing when it is off."""
import contextlib
import ctypes
import os
import sys
import threading

import pytest

import ptcore
from ptcore import nn
from ptcore.autograd import profiler as autograd_profiler
from ptcore.autograd import recording
from ptcore.profiler import _ExperimentalConfig, profile, record_function

pytestmark = pytest.mark.core


def names(prof):
    return [event.name for event in prof.events()]


def tree(prof):
    """The events as nested (name, children)."""
    def of(event):
        return event.name, [of(child) for child in event.cpu_children]
    return [of(event) for event in prof.events() if event.cpu_parent is None]


CALLS = [
    (lambda x, y: ptcore.add(x, y), "add"), (lambda x, y: x + y, "add"), (lambda x, y: x.add(y), "add"),
    (lambda x, y: x + 2, "add"), (lambda x, y: 2 - x, "sub"), (lambda x, y: x.add_(y), "add_"),
    (lambda x, y: -x, "neg"), (lambda x, y: x.exp(), "exp"), (lambda x, y: x == y, "eq"), (lambda x, y: x.sum(), "sum"),
    (lambda x, y: x.softmax(0), "softmax"), (lambda x, y: x.view(16), "view"), (lambda x, y: x.t(), "t"),
    (lambda x, y: x[0], "select"), (lambda x, y: x[1:], "slice"), (lambda x, y: x[x > 0], "index"),
    (lambda x, y: ptcore.cat([x, y]), "cat"), (lambda x, y: ptcore.mm(x, y), "mm"),
    (lambda x, y: x @ y, "matmul"), (lambda x, y: ptcore.zeros(3), "zeros"), (lambda x, y: ptcore.rand(3), "rand"),
    (lambda x, y: x.to(ptcore.float64), "to"), (lambda x, y: x.sum().item(), "item"),
    (lambda x, y: x.detach(), "detach"),
    (lambda x, y: x.t().contiguous(), "contiguous"), (lambda x, y: x.clone(), "clone"),
    (lambda x, y: nn.functional.relu(x), "relu"), (lambda x, y: nn.functional.linear(x, y), "linear"),
    (lambda x, y: x.normal_(), "normal_"), (lambda x, y: x.zero_(), "zero_"),
    (lambda x, y: ptcore.where(x > 0, x, y), "where"), (lambda x, y: x.max(0), "max"), (lambda x, y: x.mul_(2), "mul_"),
]


@pytest.mark.parametrize("call, name", CALLS, ids=[f"{k}-{name}" for k, (_, name) in enumerate(CALLS)])
def test_each_call_is_one_event(call, name):
    x, y = ptcore.ones(4, 4), ptcore.ones(4, 4)
    expected = call(x.clone(), y)
    with profile() as prof:
        found = call(x, y)
    outer = [event.name for event in prof.events() if event.cpu_parent is None]
    assert outer.count(f"aten::{name}") == 1, outer
    if isinstance(expected, ptcore.Tensor) and name not in ("rand", "normal_"):
        assert ptcore.equal(found, expected)
    before = len(names(prof))
    call(x, y)                                              # off afterwards
    assert len(names(prof)) == before and not recording.is_recording()


def test_operators_in_place():
    x = ptcore.ones(3)
    with profile() as prof:
        x += 1
        x *= x
        x[0] = 5
        x[ptcore.tensor([True, False, True])] = 2
    found = [event.name for event in prof.events() if event.cpu_parent is None]
    assert [n for n in found if n != "aten::tensor"] == ["aten::add_", "aten::mul_", "aten::copy_", "aten::index_put_"]


def test_nesting():
    x = ptcore.ones(4, 4)
    with profile() as prof, record_function("outer"):
        with record_function("first"):
            x @ x
        with record_function("second"):
            x + x
    assert tree(prof) == [("outer", [("first", [("aten::matmul", [("aten::mm", [])])]),
                                     ("second", [("aten::add", [])])])]
    for event in prof.events():
        for child in event.cpu_children:
            assert event.time_range.start <= child.time_range.start <= child.time_range.end <= event.time_range.end


def test_composites_have_what_they_call():
    x = ptcore.randn(8, 4)
    with profile() as prof:
        nn.functional.cross_entropy(x, ptcore.tensor([0] * 8))
        ptcore.einsum("ij,kj->ik", x, x)
    tops = [event for event in prof.events() if event.cpu_parent is None]
    assert [e.name for e in tops if e.name != "aten::tensor"] == ["aten::cross_entropy_loss", "aten::einsum"]
    assert tops[-1].cpu_children


def test_self_times_sum_to_the_total():
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    with profile() as prof:
        for _ in range(3):
            model(ptcore.randn(5, 4)).sum().backward()
    events = prof.events()
    outer = sum(event.cpu_time_total for event in events if event.cpu_parent is None)
    assert events.self_cpu_time_total == pytest.approx(outer)
    assert all(event.self_cpu_time_total >= 0 for event in events)
    averages = prof.key_averages()
    assert sum(a.self_cpu_time_total for a in averages) == pytest.approx(outer)
    assert sum(a.count for a in averages) == len(events)
    total = events.total_average()
    assert total.key == "Total" and total.count == len(events)
    assert total.self_cpu_time_total == pytest.approx(outer)


def test_backward():
    x = ptcore.ones(3, 3, requires_grad=True)
    with profile() as prof:
        y = (x * 2).exp()
        y.sum().backward()
    found = names(prof)
    for name in ("SumBackward0", "ExpBackward0", "MulBackward0"):
        assert found.count(name) == 1
        assert found.count(f"autograd::engine::evaluate_function: {name}") == 1
    assert found.count("torch::autograd::AccumulateGrad") == 1
    by_name = {event.name: event for event in prof.events()}
    rule, call = by_name["MulBackward0"], by_name["aten::mul"]
    assert rule.scope == 1 and rule.cpu_parent.name == "autograd::engine::evaluate_function: MulBackward0"
    first = min((e for e in prof.events() if e.name == "aten::mul"), key=lambda e: e.time_range.start)
    assert rule.sequence_nr == first.sequence_nr >= 0 and rule.fwd_thread == call.thread
    assert x.grad is not None and ptcore.allclose(x.grad, 2 * (2 * ptcore.ones(3, 3)).exp())


def test_rules_have_what_they_call():
    """Fused derivatives, which are called by id, and ops."""
    x = ptcore.rand(4, requires_grad=True)
    with profile(record_shapes=True) as prof:
        (x.relu() / (x + 1)).softmax(0).sin().sum().backward()
    assert not ptcore._state.mode_word()
    by_name = {event.name: event for event in prof.events()}
    for name, calls in (("DivBackward0", 2), ("ReluBackward0", 1), ("SinBackward0", 1), ("SoftmaxBackward0", 1)):
        children = by_name[name].cpu_children
        assert len(children) == calls and all(child.input_shapes[0] == [4] for child in children), name
        assert not any(child.cpu_children for child in children)
    assert by_name["ReluBackward0"].cpu_children[0].name == "aten::relu_backward"


def test_gradients_are_not_copied_for_it():
    """Who records holds no reference to a gradient, which then becomes ``.grad`` itself."""
    def run(on):
        x = ptcore.ones(1000, requires_grad=True)
        with profile(profile_memory=True) if on else record_function(""):
            (x * 2).sum().backward()
            return x.grad.untyped_storage().nbytes(), x.grad
    assert run(True)[0] == run(False)[0] and ptcore.equal(run(True)[1], run(False)[1])


@pytest.mark.parametrize("change", [
    pytest.param(lambda x: x.resize_(100_000), id="grows"), pytest.param(lambda x: x.resize_(2), id="shrinks"),
    pytest.param(lambda x: x.resize_(100_000).resize_(200_000).resize_(7), id="moves twice"),
    pytest.param(lambda x: x.share_memory_(), id="shared"), pytest.param(lambda x: x.to("meta"), id="meta")])
def test_every_byte_that_is_allocated_is_freed(change):
    with profile(profile_memory=True) as prof:
        change(ptcore.empty(10))
    told = [e.cpu_memory_usage for e in prof.events() if e.cpu_parent is None]
    assert sum(told) == 0 and max(told) >= 40, told


def test_custom_function_and_hooks():
    class Twice(ptcore.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    x = ptcore.ones(2, requires_grad=True)
    x.register_hook(lambda g: g + 1)
    with profile() as prof:
        Twice.apply(x).sum().backward()
    assert {"Twice", "TwiceBackward"} <= set(names(prof))
    apply = next(event for event in prof.events() if event.name == "Twice")
    assert apply.cpu_children[0].name == "aten::mul"
    assert x.grad.tolist() == [3, 3]


def test_an_error_ends_its_events():
    x = ptcore.ones(2, 3)
    with profile() as prof:
        with pytest.raises(RuntimeError):
            ptcore.mm(x, x)
        with pytest.raises(RuntimeError):
            x @ x
        with pytest.raises(KeyError), record_function("failing"):
            raise KeyError
        with record_function("behind"):
            x + 1
    assert [t[0] for t in tree(prof)] == ["aten::mm", "aten::matmul", "failing", "behind"]
    assert not recording.is_recording()


def test_an_error_ends_the_profile():
    prof = profile()
    with pytest.raises(RuntimeError), prof:
        ptcore.ones(2) + ptcore.ones(3)
    assert not recording.is_recording() and "aten::add" in names(prof)
    with profile():
        pass


def test_one_profile_at_a_time():
    with profile() as outer:
        with pytest.raises(RuntimeError, match="another profile"), profile():
            pass
        ptcore.ones(2)
    assert names(outer) == ["aten::ones"]
    prof = autograd_profiler.profile()
    with prof:
        with pytest.raises(RuntimeError, match="not reentrant"), prof:
            pass
    with pytest.raises(RuntimeError, match="not reentrant"), prof:
        pass


def test_off_is_as_before():
    def now():
        return [ptcore.add, ptcore.zeros, ptcore.Tensor.to, ptcore.Tensor.sum, ptcore.optim.Optimizer.zero_grad]
    functions = now()
    mode = ptcore._state.mode_word()
    with profile():
        pass
    assert now() == functions
    assert ptcore._state.mode_word() == mode
    assert not ptcore.optim.optimizer._global_step_pre_hooks


def entry(function):
    """The address of what runs when a function of an op is called: the first field of its object."""
    return ctypes.c_void_p.from_address(id(function) + object.__basicsize__).value


@pytest.mark.skipif(sys.implementation.name != "cpython", reason="reads objects")
def test_entries_are_put_back():
    """Nothing is looked at while no profile is on: the entries that record are there only while one is."""
    functions = [ptcore.add, ptcore.sum, ptcore.relu_, ptcore.Tensor.view, nn.functional.cross_entropy, ptcore.zeros,
                 ptcore.where, ptcore._ops.functions.div__d0]
    before = [entry(function) for function in functions]
    with profile():
        assert not {entry(function) for function in functions} & set(before)
    assert [entry(function) for function in functions] == before


def test_disabled_does_nothing():
    with autograd_profiler.profile(enabled=False) as prof:
        ptcore.ones(2)
    assert prof is None and not recording.is_recording()


# -- threads -------------------------------------------------------------------------------------------------------

def in_thread(function):
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()


def test_threads():
    def work():
        with record_function("work"):
            ptcore.ones(2) * 3
    with profile() as prof:
        in_thread(work)
        ptcore.ones(2)
    assert names(prof) == ["aten::ones"]
    with profile(experimental_config=_ExperimentalConfig(profile_all_threads=True)) as prof:
        in_thread(work)
        in_thread(work)
        ptcore.ones(2)
    assert sorted(names(prof)) == sorted(["aten::ones"] * 3 + ["aten::mul", "work"] * 2)
    assert len({event.thread for event in prof.events()}) == 3
    for event in prof.events():
        if event.name == "work":
            assert [child.name for child in event.cpu_children] == ["aten::ones", "aten::mul"]
            assert {child.thread for child in event.cpu_children} == {event.thread}


def test_a_thread_that_was_there_before():
    begin, end = threading.Event(), threading.Event()

    def work():
        ptcore.ones(2)
        begin.wait()
        ptcore.ones(2) * 2
        end.set()
    thread = threading.Thread(target=work)
    thread.start()
    with profile(experimental_config=_ExperimentalConfig(profile_all_threads=True)) as prof:
        begin.set()
        end.wait()
    thread.join()
    assert names(prof) == ["aten::ones", "aten::mul"]


def test_a_call_that_outlives_the_profile():
    begin, end = threading.Event(), threading.Event()

    def work():
        with record_function("long"):
            begin.set()
            end.wait()
            ptcore.ones(2)
    with profile(experimental_config=_ExperimentalConfig(profile_all_threads=True)) as prof:
        thread = threading.Thread(target=work)
        thread.start()
        begin.wait()
    with profile() as second:
        end.set()
        thread.join()
        ptcore.zeros(1)
    assert names(prof) == ["long"] and names(second) == ["aten::zeros"]


# -- ranges --------------------------------------------------------------------------------------------------------

def test_names_of_ranges():
    class Name(str):
        def __str__(self):
            return "not asked"
    with profile() as prof:
        with record_function(Name("a")):
            pass
        with pytest.raises(TypeError, match="name must be a str, got int"), record_function(1):
            pass
    assert names(prof) == ["a"]


def test_record_function_decorates():
    @record_function("named")
    def add(x):
        """It adds."""
        return x + 1
    assert add.__doc__ == "It adds."
    with profile() as prof:
        add(ptcore.ones(1))
        add(ptcore.ones(1))
    assert names(prof).count("named") == 2


def test_generators():
    """A range in a generator may end after one that began behind it, and is over while others are on."""
    def numbers():
        with record_function("generator"):
            yield ptcore.ones(1)
            yield ptcore.ones(1)
    with profile() as prof:
        steps = numbers()
        next(steps)
        with record_function("loop"):
            list(steps)
            ptcore.zeros(1)
        ptcore.zeros(2)
    found = {event.name: event for event in prof.events()}
    assert set(found) == {"generator", "loop", "aten::ones", "aten::zeros"}
    last = [event for event in prof.events() if event.name == "aten::zeros"]
    assert last[0].cpu_parent is found["loop"] and last[1].cpu_parent is None
    assert all(event.self_cpu_time_total >= 0 for event in prof.events())


def test_optimizers_loaders_modules():
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    optimizer = ptcore.optim.SGD(model.parameters(), lr=0.1)
    data = ptcore.utils.data.TensorDataset(ptcore.randn(8, 4))
    with profile(with_modules=True) as prof:
        for x, in ptcore.utils.data.DataLoader(data, batch_size=4):
            optimizer.zero_grad()
            model(x).sum().backward()
            optimizer.step()
    found = names(prof)
    assert found.count("Optimizer.step#SGD.step") == found.count("Optimizer.zero_grad#SGD.zero_grad") == 2
    assert found.count("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__") == 3
    assert found.count("nn.Module: Linear_0") == found.count("nn.Module: Linear_1") == 2
    inner = next(event for event in prof.events() if event.name == "nn.Module: Linear_0")
    assert inner.cpu_parent.name == "nn.Module: Sequential_0"
    assert "aten::linear" in [child.name for child in inner.cpu_children]
    with profile() as prof:
        model(x)
    assert not [name for name in names(prof) if name.startswith("nn.Module")]


def test_a_step_that_fails():
    class Failing(ptcore.optim.Optimizer):
        def __init__(self, params):
            super().__init__(params, {})

        def step(self, closure=None):
            raise KeyError
    optimizer = Failing([ptcore.ones(1, requires_grad=True)])
    with profile() as prof:
        with pytest.raises(KeyError):
            optimizer.step()
        ptcore.ones(1)
    assert [t[0] for t in tree(prof)] == ["Optimizer.step#Failing.step", "aten::ones"]


def test_compiled_traced_scripted():
    def doubled(x):
        return x * 2 + 1

    def scripted(x: ptcore.Tensor) -> ptcore.Tensor:
        return x * 2 + 1
    compiled, traced = ptcore.compile(doubled), ptcore.jit.trace(doubled, ptcore.ones(3))
    script = ptcore.jit.script(scripted)
    x = ptcore.randn(3)
    for _ in range(3):
        compiled(x), traced(x), script(x)
    with profile() as prof:
        for function in (compiled, traced, script):
            assert ptcore.allclose(function(x), x * 2 + 1)
    found = [event.name for event in prof.events() if event.cpu_parent is None and event.is_user_annotation]
    assert found[0].startswith("Torch-Compiled Region: ") and found[0].endswith("doubled")
    assert found[1:] == ["doubled", "scripted"]


# -- with what else looks at calls ---------------------------------------------------------------------------------

def test_torch_function():
    seen = []

    class Mine(ptcore.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append(func)
            return super().__torch_function__(func, types, args, kwargs or {})
    x = ptcore.ones(2).as_subclass(Mine)
    with profile() as prof:
        y = x + 1
        x.detach()
        ptcore.add(x, 1)
    assert type(y) is Mine and seen == [ptcore.Tensor.add, ptcore.Tensor.detach, ptcore.add]
    assert names(prof).count("aten::add") == 2


def test_transformations():
    x = ptcore.randn(3, 4)
    expected = ptcore.vmap(ptcore.sin)(x), ptcore.func.grad(lambda t: (t * t).sum())(x)
    with profile() as prof:
        found = ptcore.vmap(ptcore.sin)(x), ptcore.func.grad(lambda t: (t * t).sum())(x)
    assert all(ptcore.equal(a, b) for a, b in zip(expected, found))
    assert {"aten::sin", "aten::mul", "aten::sum", "MulBackward0"} <= set(names(prof))


def test_autocast():
    x = ptcore.ones(4, 4)
    with profile() as prof, ptcore.autocast("cpu"):
        assert (x @ x).dtype is ptcore.bfloat16
    assert "aten::mm" in names(prof)


def test_ops_registered_meanwhile():
    """Functions made while a profile is on record as well, and are left alone behind it."""
    def kernel(x, out):
        out.copy_(x * 2)
    with profile() as prof:
        twice = ptcore.ops.register("test_profiler_twice(input)", spec=lambda x: (x.shape, x.dtype),
                                    kernels={"cpu": kernel})
        assert twice(ptcore.ones(2)).tolist() == [2, 2]
    event = next(event for event in prof.events() if event.name == "aten::test_profiler_twice")
    assert [child.name for child in event.cpu_children] == ["aten::mul", "aten::copy_"]
    assert twice(ptcore.ones(2)).tolist() == [2, 2] and not recording.is_recording()


def test_pausing():
    with profile() as prof:
        ptcore.ones(1)
        prof.toggle_collection_dynamic(False, [ptcore.profiler.ProfilerActivity.CPU])
        ptcore.zeros(1)
        prof.toggle_collection_dynamic(True, [ptcore.profiler.ProfilerActivity.CPU])
        ptcore.ones(1)
    assert names(prof) == ["aten::ones"] * 2


def test_many_events():
    """More than a chunk of them, with their arguments."""
    x = ptcore.ones(2)
    with profile(record_shapes=True) as prof:
        for _ in range(5000):
            x + 1
    events = prof.events()
    assert len(events) == 5000 and all(event.input_shapes == [[2], []] for event in events)
    assert [event.id for event in events] == sorted(event.id for event in events)


# -- what programs do to it ------------------------------------------------------------------------------------------

@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_records_nothing():
    with profile() as prof:
        child = os.fork()
        if child == 0:
            os._exit(int(recording.is_recording() or bool((ptcore.ones(2) + 1).sum() != 4)))
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        ptcore.ones(2)
    assert names(prof) == ["aten::ones"]


def test_loaders_with_workers():
    data = ptcore.utils.data.TensorDataset(ptcore.arange(8.))
    with profile() as prof:
        batches = [x.sum().item() for x, in ptcore.utils.data.DataLoader(data, batch_size=4, num_workers=1)]
    assert batches == [6, 22]
    assert names(prof).count("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__") == 3


def test_strange_arguments():
    class Items(list):
        def __iter__(self):
            raise RuntimeError("not to be asked")

        def __len__(self):
            raise RuntimeError("not to be asked")

    class Key:
        def __getattr__(self, name):
            raise RuntimeError("not to be asked")
    x = ptcore.ones(3)
    with profile(record_shapes=True) as prof:
        for call in (lambda: ptcore.zeros(Items([2])), lambda: x[Key()], lambda: ptcore.add(x, Key()),
                     lambda: ptcore.cat([]), lambda: ptcore.add(x, 1 << 80), lambda: x.sum([]),
                     lambda: ptcore.cat([x] * 500)):
            with contextlib.suppress(Exception):
                call()
        with pytest.raises(TypeError):
            record_function(3).__enter__()
    assert "aten::cat" in names(prof) and prof.key_averages(True).table()


def test_what_is_put_in_its_place_stays():
    before = ptcore.optim.Optimizer.zero_grad
    try:
        with profile():
            ptcore.optim.Optimizer.zero_grad = replaced = lambda self, set_to_none=True: None
        assert ptcore.optim.Optimizer.zero_grad is replaced
    finally:
        ptcore.optim.Optimizer.zero_grad = before


def test_threads_while_profiles_come_and_go():
    stop = threading.Event()

    def work():
        x = ptcore.ones(4)
        while not stop.is_set():
            with record_function("loop"):
                (x + 1).sum()
    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(30):
            with profile(with_stack=True, record_shapes=True, profile_memory=True,
                         experimental_config=_ExperimentalConfig(profile_all_threads=True)) as prof:
                for _ in range(20):
                    ptcore.ones(3).exp()
            del prof
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_lists_of_integers_beyond_64_bits():
    x = ptcore.ones(2)
    with autograd_profiler.profile(record_shapes=True) as prof:
        for sizes in ([2], [2**70], [2**70, 2], [-2**63 - 1], [1, 2**63 - 1, -2**63]):
            with contextlib.suppress(OverflowError, RuntimeError):
                x.view(sizes)
    found = [e.concrete_inputs[1] for e in prof.function_events if e.name.endswith("view")]
    assert found == [[2], None, None, None, [1, 2**63 - 1, -2**63]]


def test_an_error_of_the_device_ends_the_recording(monkeypatch):
    def broken():
        raise RuntimeError("the device is lost")
    prof = autograd_profiler.profile()
    prof.__enter__()
    prof.use_device = "cuda"
    monkeypatch.setattr(ptcore.cuda, "synchronize", broken)
    with pytest.raises(RuntimeError, match="the device is lost"):
        prof.__exit__(None, None, None)
    with autograd_profiler.profile() as later:
        ptcore.ones(2) + 1
    assert [e.name for e in later.function_events] == ["aten::ones", "aten::add"]
