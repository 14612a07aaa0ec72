"""Schedules, tables, names and counts beside PyTorch's profiler."""
import inspect
import itertools
import random
import threading

import pytest

import ptcore
import ptcore.autograd.profiler
import ptcore.autograd.profiler_util
import ptcore.profiler.profiler

torch = pytest.importorskip("torch")
pytest.importorskip("torch.autograd.profiler_util")

pytestmark = pytest.mark.core


@pytest.mark.parametrize("skip_first, skip_first_wait", list(itertools.product((0, 1, 5), (0, 1))))
def test_schedules(skip_first, skip_first_wait):
    for wait, warmup, active, repeat in itertools.product((0, 1, 3), (1, 2), (1, 3), (0, 1, 2)):
        settings = {"wait": wait, "warmup": warmup, "active": active, "repeat": repeat, "skip_first": skip_first,
                    "skip_first_wait": skip_first_wait}
        ours, theirs = (lib.profiler.schedule(**settings) for lib in (ptcore, torch))
        assert [ours(k).name for k in range(40)] == [theirs(k).name for k in range(40)], settings
    with pytest.raises(AssertionError):
        ours(-1)


def test_numbers_of_kinds():
    """They stand in files of traces, and programs compare them with numbers."""
    theirs = {name: int(value) for name, value in torch.autograd.DeviceType.__members__.items()}
    assert {name: int(value) for name, value in ptcore.autograd.DeviceType.__members__.items()} == theirs
    assert ptcore.profiler.DeviceType is ptcore.autograd.DeviceType and len(theirs) == 21


@pytest.mark.filterwarnings("ignore:Warning. Profiler clears events")
@pytest.mark.parametrize("settings", [
    {"wait": 1, "warmup": 1, "active": 2, "repeat": 1}, {"wait": 0, "warmup": 1, "active": 1},
    {"wait": 2, "warmup": 1, "active": 3, "repeat": 2, "skip_first": 1}], ids=str)
def test_steps(settings):
    """When traces are ready, and what steps are in them."""
    def run(lib):
        seen = []
        with lib.profiler.profile(activities=[lib.profiler.ProfilerActivity.CPU],
                                  schedule=lib.profiler.schedule(**settings), on_trace_ready=lambda p: seen.append(
                                      (p.step_num, sorted({e.trace_name for e in p.events()})))) as prof:
            for _ in range(9):
                lib.sin(x[lib])
                prof.step()
        return seen
    x = {ptcore: ptcore.ones(2), torch: torch.ones(2)}
    assert run(ptcore) == run(torch)


def made(util, seed):
    """Events drawn alike for both libraries."""
    draw = random.Random(seed)
    events = []
    at = 0.0
    for k in range(12):
        length = draw.choice((0.5, 12.25, 1500.0, 2e6)) * draw.uniform(0.5, 2)
        name = draw.choice(("aten::mm", "aten::add", "a_name_that_is_longer_than_the_column_for_names_is_" + "x" * 20))
        shapes = draw.choice(([[2, 3], []], [[4]], []))
        event = util.FunctionEvent(
            id=2 * k, name=name, trace_name=name, overload_name="", thread=k % 2, start_us=at, end_us=at + length,
            input_shapes=shapes,
            stack=draw.choice(([], ["f.py(1): inner", "some/longer/path.py(20): outer " + "y" * 60])),
            cpu_memory_usage=draw.choice((0, 12, -4096, 5 << 20, 3 << 30)), flops=draw.choice((0, 10, 123456)))
        inner = util.FunctionEvent(
            id=2 * k + 1, name="aten::inner", trace_name="aten::inner", overload_name="", thread=k % 2,
            start_us=at + length / 4, end_us=at + length / 2, input_shapes=[], stack=[], flops=0)
        events += [event, inner]
        at += length * 1.5
    found = util.EventList(events, profile_memory=bool(seed % 2), with_flops=seed % 3 == 0)
    found._build_tree()
    return found


def both(seed):
    return made(ptcore.autograd.profiler_util, seed), made(torch.autograd.profiler_util, seed)


@pytest.mark.parametrize("settings", [
    {}, {"sort_by": "self_cpu_time_total"}, {"sort_by": "cpu_time_total", "row_limit": 3},
    {"sort_by": "self_cpu_memory_usage", "row_limit": -1}, {"sort_by": "count"}, {"header": "A title"},
    {"top_level_events_only": True}, {"time_unit": "us"}, {"time_unit": "ms"}, {"time_unit": "s"},
    {"max_name_column_width": 20, "max_shapes_column_width": 8, "max_src_column_width": 15},
    {"max_name_column_width": None, "max_shapes_column_width": None, "max_src_column_width": None}], ids=str)
@pytest.mark.parametrize("seed", range(4))
def test_tables(seed, settings):
    """The same text, but for the places of two columns, whose titles PyTorch writes over one another's values."""
    ours, theirs = both(seed)
    for a, b in ((ours, theirs), (ours.key_averages(), theirs.key_averages()),
                 (ours.key_averages(True), theirs.key_averages(True))):
        if seed % 3 == 0 and any(event.stack for event in b):
            continue
        assert a.table(**settings) == b.table(**settings)


@pytest.mark.parametrize("seed", range(3))
def test_sums(seed, tmp_path):
    ours, theirs = both(seed)
    names = ("key", "count", "cpu_time_total", "self_cpu_time_total", "cpu_memory_usage", "self_cpu_memory_usage",
             "flops", "cpu_time_str", "input_shapes", "stack")
    for arguments in ((), (True,), (True, 1), (False, 2)):
        a, b = ([[getattr(event, name) for name in names] for event in events.key_averages(*arguments)]
                for events in (ours, theirs))
        assert a == b
    assert [getattr(ours.total_average(), name) for name in names[:7]] == [
        getattr(theirs.total_average(), name) for name in names[:7]]
    assert ours.self_cpu_time_total == theirs.self_cpu_time_total
    texts = []
    for events in (ours, theirs):
        events.export_stacks(str(tmp_path / "stacks.txt"), "self_cpu_time_total")
        texts.append((tmp_path / "stacks.txt").read_text())
    assert texts[0] == texts[1]


def profiled(lib, function, **settings):
    with lib.profiler.profile(activities=[lib.profiler.ProfilerActivity.CPU], **settings) as prof:
        function(lib)
    return prof.events()


def step_of_training(lib):
    lib.manual_seed(0)
    model = lib.nn.Sequential(lib.nn.Linear(4, 8), lib.nn.ReLU(), lib.nn.Linear(8, 2))
    optimizer = lib.optim.SGD(model.parameters(), lr=0.1)
    loss = lib.nn.functional.cross_entropy(model(lib.ones(3, 4)), lib.zeros(3, dtype=lib.int64))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


# What each of the two calls where the other has one op for several, or several for one.
THEIRS_ALONE = {
    "aten::addmm", "AddmmBackward0", "autograd::engine::evaluate_function: AddmmBackward0", "TBackward0",
    "autograd::engine::evaluate_function: TBackward0", "aten::t", "aten::as_strided", "aten::expand", "aten::copy_",
    "aten::resolve_conj", "aten::clamp_min", "aten::log_softmax", "aten::_log_softmax", "aten::nll_loss_nd",
    "aten::nll_loss", "aten::nll_loss_forward", "aten::nll_loss_backward", "aten::_log_softmax_backward_data",
    "LogSoftmaxBackward0", "autograd::engine::evaluate_function: LogSoftmaxBackward0", "aten::threshold_backward",
    "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", "aten::view", "aten::ones_like",
    "aten::empty_like", "aten::empty_strided", "aten::fill_", "aten::zero_", "aten::empty", "aten::add_",
    "aten::detach", "detach", "aten::to", "aten::uniform_", "aten::_to_copy"}
OURS_ALONE = {
    "LinearBackward0", "autograd::engine::evaluate_function: LinearBackward0", "aten::cross_entropy_stats",
    "aten::cross_entropy_backward", "aten::reshape", "aten::relu_backward", "aten::step_sgd"}


def test_names_of_a_step():
    ours, theirs = ({event.name for event in profiled(lib, step_of_training)} for lib in (ptcore, torch))
    assert ours - theirs <= OURS_ALONE
    assert theirs - ours <= THEIRS_ALONE
    assert {"aten::linear", "aten::relu", "aten::cross_entropy_loss", "aten::mm", "aten::transpose", "ReluBackward0",
            "NllLossBackward0", "Optimizer.step#SGD.step", "Optimizer.zero_grad#SGD.zero_grad",
            "torch::autograd::AccumulateGrad", "aten::ones", "aten::zeros"} <= ours & theirs


CALLS = [
    lambda lib: lib.mm(lib.ones(2, 3), lib.ones(3, 4)),
    lambda lib: lib.bmm(lib.ones(2, 3, 4), lib.ones(2, 4, 5)),
    lambda lib: lib.ones(2, 3) * 2,
    lambda lib: lib.ones(2, 3) + lib.ones(2, 3),
    lambda lib: lib.ones(2, 3) @ lib.ones(3),
    lambda lib: lib.addmm(lib.ones(2, 4), lib.ones(2, 3), lib.ones(3, 4)),
    lambda lib: lib.ones(3).exp(),
    lambda lib: lib.ones(3)[0],
    lambda lib: lib.ones(3)[1:],
    lambda lib: lib.ones(3)[None],
    lambda lib: lib.ones(2, 3).t(),
    lambda lib: lib.ones(3).sum(),
    lambda lib: lib.ones(3).double(),
    lambda lib: lib.zeros(3),
    lambda lib: lib.rand(3),
    lambda lib: lib.cat([lib.ones(2), lib.ones(2)]),
    lambda lib: lib.ones(2).clone(),
    lambda lib: lib.ones(2).sum().item(),
    lambda lib: lib.nn.functional.conv2d(lib.ones(2, 4, 8, 8), lib.ones(6, 2, 3, 3), stride=2, padding=1, groups=2),
    lambda lib: lib.nn.functional.softmax(lib.ones(3), 0),
    lambda lib: lib.nn.functional.relu(lib.ones(3)),
    lambda lib: lib.nn.functional.layer_norm(lib.ones(2, 3), (3,)),
    lambda lib: lib.ones(3).add_(1),
    lambda lib: -lib.ones(2),
    lambda lib: lib.nn.functional.max_pool2d(lib.ones(1, 1, 4, 4), 2),
    lambda lib: lib.ones(2) ** 2,
    lambda lib: lib.where(lib.ones(2) > 0, 1.0, 2.0),
    lambda lib: lib.nn.functional.batch_norm(lib.ones(2, 3), None, None, training=True),
    lambda lib: lib.arange(3),
    lambda lib: lib.matmul(lib.ones(2, 3), lib.ones(3, 4)),
    lambda lib: lib.ones(4).view(2, 2),
    lambda lib: lib.ones(2) == 1,
]


@pytest.mark.parametrize("k", range(len(CALLS)))
def test_calls(k):
    """The outer events of a call: names, shapes of the first argument, operations counted, memory kept."""
    def seen(lib):
        events = profiled(lib, CALLS[k], record_shapes=True, with_flops=True)
        return [(event.name, (event.input_shapes or [[]])[0]) for event in events if event.cpu_parent is None], sum(
            event.flops or 0 for event in events)
    assert seen(ptcore) == seen(torch)


def test_memory():
    """Bytes that calls keep, and that come back outside of them."""
    def work(lib):
        x = lib.ones(10, 3)
        y = (x * 2).exp()
        del x
        with lib.profiler.record_function("range"):
            z = lib.cat([y, y]).double()
            lib.mm(y, y.t())
            del y
        return z[1:].sum(0)

    def seen(lib):
        events = profiled(lib, work, profile_memory=True)
        return [(event.name, event.cpu_memory_usage) for event in events if event.cpu_parent is None]
    ours, theirs = seen(ptcore), seen(torch)
    assert [e for e in ours if e[0] != "[memory]"] == [e for e in theirs if e[0] != "[memory]"]
    assert sum(n for name, n in ours if name == "[memory]") == sum(n for name, n in theirs if name == "[memory]")


def test_threads():
    """A profile is the thread's that began it, unless it is asked for all."""
    from torch._C._profiler import _ExperimentalConfig

    def seen(lib, config):
        def work():
            thread = threading.Thread(target=lambda: lib.ones(2).exp())
            thread.start()
            thread.join()
            lib.ones(2).sin()
        events = profiled(lib, lambda lib: work(), experimental_config=config)
        return sorted(event.name for event in events if event.cpu_parent is None)
    assert seen(ptcore, None) == seen(torch, None) == ["aten::ones", "aten::sin"]
    assert seen(ptcore, ptcore.profiler._ExperimentalConfig(profile_all_threads=True)) == seen(
        torch, _ExperimentalConfig(profile_all_threads=True)) == ["aten::exp", "aten::ones", "aten::ones", "aten::sin"]


@pytest.mark.parametrize("module, name", [
    ("profiler", "profile"), ("profiler", "schedule"), ("profiler", "tensorboard_trace_handler"),
    ("autograd.profiler", "profile"), ("autograd.profiler", "record_function"), ("autograd.profiler", "emit_nvtx"),
    ("autograd.profiler_util", "FunctionEvent"), ("autograd.profiler_util", "EventList.table"),
    ("autograd.profiler_util", "EventList.key_averages"), ("autograd.profiler_util", "EventList.export_stacks"),
    ("profiler", "profile.key_averages"), ("profiler", "profile.export_chrome_trace"),
    ("profiler", "profile.export_stacks"), ("profiler", "profile.add_metadata_json")])
def test_signatures(module, name):
    def parameters(lib):
        found = lib
        for part in (*module.split("."), *name.split(".")):
            found = getattr(found, part)
        return [(p.name, p.default, p.kind) for p in inspect.signature(found).parameters.values() if p.name != "self"]
    ours, theirs = parameters(ptcore), parameters(torch)
    assert [p[0] for p in ours] == [p[0] for p in theirs]
    assert [p[1:] for p in ours if p[0] != "device_type"] == [p[1:] for p in theirs if p[0] != "device_type"]


@pytest.mark.parametrize("module", ["profiler", "autograd.profiler", "autograd.profiler_util", "profiler.profiler",
                                    "profiler.itt"])
def test_names(module):
    ours, theirs = ptcore, torch
    for part in module.split("."):
        ours, theirs = getattr(ours, part), getattr(theirs, part)
    missing = [name for name in theirs.__all__ if not hasattr(ours, name)]
    assert not missing


def test_attributes():
    """What an event, an average and a profile have."""
    def public(thing):
        return {name for name in dir(thing) if not name.startswith("_")}
    ours, theirs = (profiled(lib, lambda lib: lib.ones(2)) for lib in (ptcore, torch))
    assert public(theirs[0]) <= public(ours[0])
    assert public(theirs.key_averages()[0]) <= public(ours.key_averages()[0])
    assert public(theirs) <= public(ours)
    left_out = {"has_cudagraphs", "mem_tl", "action_map"}
    assert public(torch.profiler.profile()) - left_out <= public(ptcore.profiler.profile())
