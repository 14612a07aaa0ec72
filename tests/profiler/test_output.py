"""What a profile says: tables, traces, stacks, shapes, memory, operations, steps."""
import gzip
import json
import re

import pytest

import ptcore
from ptcore import nn
from ptcore.autograd import profiler as autograd_profiler
from ptcore.autograd.profiler_util import EventList, FunctionEvent, FunctionEventAvg, Interval, MemRecordsAcc
from ptcore.profiler import ProfilerAction, ProfilerActivity, profile, record_function, schedule
from ptcore.profiler import _ExperimentalConfig as Config

pytestmark = [pytest.mark.core, pytest.mark.filterwarnings("ignore:Warning. Profiler clears events")]


def step_of_training(**settings):
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    with profile(**settings) as prof, record_function("step"):
        model(ptcore.ones(3, 4)).sum().backward()
    return prof


def parsed(table):
    """Rows of a table as dictionaries."""
    lines = table.splitlines()
    rules = [k for k, line in enumerate(lines) if line.startswith("---")]
    spans = [match.span() for match in re.finditer("-+", lines[rules[0]])]
    titles = [lines[rules[0] + 1][a:b].strip() for a, b in spans]
    return [{title: line[a:b].strip() for title, (a, b) in zip(titles, spans)}
            for line in lines[rules[1] + 1:rules[2]]]


def microseconds(text):
    for unit, scale in (("us", 1), ("ms", 1e3), ("s", 1e6)):
        if text.endswith(unit):
            return float(text.removesuffix(unit)) * scale
    raise AssertionError(text)


# -- tables --------------------------------------------------------------------------------------------------------

def test_table():
    prof = step_of_training()
    averages = prof.key_averages()
    text = averages.table(sort_by="self_cpu_time_total", row_limit=-1, time_unit="us")
    rows = parsed(text)
    assert list(rows[0]) == ["Name", "Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg", "# of Calls"]
    assert len(rows) == len(averages)
    own = [microseconds(row["Self CPU"]) for row in rows]
    assert own == sorted(own, reverse=True)
    total = microseconds(re.search("Self CPU time total: (.*)", text)[1])
    assert sum(own) == pytest.approx(total, abs=0.01 * len(rows))
    assert sum(float(row["Self CPU %"].rstrip("%")) for row in rows) == pytest.approx(100, abs=0.1 * len(rows))
    for row in rows:
        of_call = microseconds(row["CPU total"]) / int(row["# of Calls"])
        assert of_call == pytest.approx(microseconds(row["CPU time avg"]), abs=0.002)


def test_columns():
    prof = step_of_training(record_shapes=True, profile_memory=True, with_stack=True, with_flops=True)
    rows = parsed(prof.key_averages(group_by_input_shape=True, group_by_stack_n=2).table(row_limit=-1))
    assert list(rows[0])[6:] == ["CPU Mem", "Self CPU Mem", "# of Calls", "Input Shapes", "Source Location",
                                 "Total FLOPs"]
    linear = next(row for row in rows if row["Name"] == "aten::linear")
    assert linear["Input Shapes"] == "[[3, 4], [8, 4], [8]]" and linear["CPU Mem"] == "96 B"
    assert float(linear["Total FLOPs"]) == 2 * 3 * 4 * 8


def test_limits():
    prof = step_of_training()
    averages = prof.key_averages()
    assert len(parsed(averages.table(row_limit=2))) == 2
    assert len(parsed(averages.table(row_limit=0))) == 0
    assert [row["Name"] for row in parsed(averages.table(top_level_events_only=True))] == ["step"]
    text = averages.table(header="A title", max_name_column_width=20, time_unit="s")
    assert text.splitlines()[1] == "A title"
    assert all(len(row["Name"]) <= 20 and row["CPU total"].endswith("s") for row in parsed(text))
    assert EventList().table() == "" and str(averages) == averages.table()
    counts = [int(row["# of Calls"]) for row in parsed(averages.table(sort_by="count"))]
    assert counts == sorted(counts, reverse=True)
    with pytest.raises(AttributeError):
        averages.table(sort_by="nothing")


def test_units_of_time_and_memory():
    event = FunctionEvent(1, "a", 1, 0, 1500, cpu_memory_usage=3 << 20)
    other = FunctionEvent(2, "b", 1, 2000, 3e6, cpu_memory_usage=-2048)
    events = EventList([event, other], profile_memory=True)
    events._build_tree()
    rows = parsed(events.table())
    assert [row["CPU total"] for row in rows] == ["1.500ms", "2.998s"]
    assert [row["CPU Mem"] for row in rows] == ["3.00 MB", "-2.00 KB"]


# -- events made by hand -------------------------------------------------------------------------------------------

def test_tree_by_time():
    spans = {"a": (0, 10), "b": (1, 5), "c": (2, 3), "d": (6, 12), "e": (11, 12)}
    events = EventList([FunctionEvent(k, name, 1, *span) for k, (name, span) in enumerate(spans.items())])
    other = FunctionEvent(9, "f", 2, 1, 2)
    events.append(other)
    events._build_tree()
    parents = {event.name: event.cpu_parent and event.cpu_parent.name for event in events}
    assert parents == {"a": None, "b": "a", "c": "b", "d": None, "e": "d", "f": None}
    assert {event.name: event.self_cpu_time_total for event in events} == {
        "a": 6, "b": 3, "c": 1, "d": 5, "e": 1, "f": 1}


def test_averages_by_hand():
    events = EventList([FunctionEvent(k, "a", 1, 10 * k, 10 * k + k + 1, input_shapes=[[k]], flops=2, stack=[])
                        for k in range(3)])
    events._build_tree()
    average, = events.key_averages()
    assert (average.count, average.cpu_time_total, average.cpu_time, average.flops) == (3, 6, 2.0, 6)
    assert average.input_shapes == "" and len(events.key_averages(group_by_input_shapes=True)) == 3
    assert average.cpu_time_str == "2.000us" and "key=a" in repr(average) and "name=a" in repr(events[0])
    with pytest.raises(AssertionError):
        EventList([FunctionEvent(0, "a", 1, 0, 1)]).key_averages()
    with pytest.raises(AssertionError):
        FunctionEventAvg().add(events[0]).add(FunctionEvent(0, "b", 1, 0, 1))
    assert Interval(1, 3).elapsed_us() == 2


def test_device_times_by_hand():
    outer = FunctionEvent(0, "a", 1, 0, 10, use_device="cuda")
    inner = FunctionEvent(1, "b", 1, 1, 5, use_device="cuda")
    inner.append_kernel("k", 0, 3)
    events = EventList([outer, inner], use_device="cuda")
    events._build_tree()
    assert (outer.device_time_total, outer.self_device_time_total, inner.self_device_time_total) == (3, 0, 3)
    rows = parsed(events.table(sort_by="self_cuda_time_total"))
    assert [row["Self CUDA"] for row in rows] == ["3.000us", "0.000us"]
    with pytest.warns(FutureWarning, match="device_time_total"):
        assert outer.cuda_time_total == 3


def test_flows_by_hand(tmp_path):
    """Each kernel of a trace has a flow of its own."""
    events = EventList([FunctionEvent(k, name, 0, k, 9 - k, trace_name=name) for k, name in enumerate("ab")],
                       use_device="cuda")
    for event, n in zip(events, (2, 1)):
        for k in range(n):
            event.append_kernel(f"kernel {k}", 0, 1)
    events._build_tree()
    path = tmp_path / "trace.json"
    events.export_chrome_trace(path)
    flows = [(x["name"], x["id"]) for x in json.loads(path.read_text()) if x["ph"] == "s"]
    assert [name for name, _ in flows] == ["a", "a", "b"]
    assert len({number for _, number in flows}) == 3


def test_averages_of_events_without_a_stack():
    events = EventList([FunctionEvent(k, "a", 0, 2 * k, 2 * k + 1) for k in range(3)])
    events._build_tree()
    for n in (0, 2):
        (average,) = events.key_averages(group_by_stack_n=n)
        assert (average.count, average.stack) == (3, [])


def test_mem_records():
    class Record:
        def __init__(self, time):
            self.start_ns = lambda: time
    records = MemRecordsAcc([[Record(t)] for t in (5, 1, 3)])
    assert [record[0].start_ns() for record in records.in_interval(1, 3)] == [1, 3]


# -- shapes, memory, operations, stacks ------------------------------------------------------------------------------

def test_shapes():
    x = ptcore.ones(2, 3)
    with profile(record_shapes=True) as prof:
        ptcore.cat([x, x], dim=0)
        x.t().sum(1, keepdim=True)
        ptcore.add(x, 2.5, alpha=2)
    cat, t, total, add = prof.events()
    assert cat.input_shapes == [[], []] and cat.structured_input_shapes == [[[2, 3], [2, 3]], []]
    assert cat.concrete_inputs == [None, 0] and cat.input_dtypes == ["TensorList", "Scalar"]
    assert t.input_shapes == [[2, 3]] and t.structured_input_strides == [[3, 1]] and t.input_dtypes == ["float"]
    assert total.structured_input_strides[0] == [1, 3] and total.concrete_inputs[1:] == [1, True]
    assert add.concrete_inputs == [None, 2.5, 2]
    with profile() as prof:
        x + 1
    assert prof.events()[0].input_shapes == []


def test_memory():
    with profile(profile_memory=True) as prof:
        x = ptcore.empty(1000)
        y = x.double()
        z = x[10:]
        del x, z
        with record_function("more"):
            w = ptcore.ones(7, dtype=ptcore.int8)
            v = w + w
            del w
    by_name = {event.name: event for event in prof.events()}
    assert by_name["aten::empty"].cpu_memory_usage == 4000 and by_name["aten::to"].cpu_memory_usage == 8000
    assert by_name["aten::slice"].cpu_memory_usage == 0 and by_name["[memory]"].cpu_memory_usage == -4000
    more = by_name["more"]
    assert more.cpu_memory_usage == 7 and more.self_cpu_memory_usage == -7
    assert sum(event.self_cpu_memory_usage for event in prof.events()) == y.nbytes + v.nbytes
    before = len(prof.events())
    del y, v
    with profile() as prof:
        ptcore.ones(5)
    assert prof.events()[0].cpu_memory_usage == 0 and before


@pytest.mark.parametrize("change", [
    lambda x: x.resize_(100), lambda x: x.share_memory_(), lambda x: x.numpy(), lambda x: x.untyped_storage()])
def test_memory_that_moves(change):
    """What was given out comes back, though it moved in between."""
    with profile(profile_memory=True) as prof:
        x = ptcore.ones(10)
        change(x)
        del x
    assert sum(event.self_cpu_memory_usage for event in prof.events()) in (0, 40)


def test_flops():
    one = ptcore.ones
    f = nn.functional
    with profile(with_flops=True) as prof:
        ptcore.mm(one(2, 3), one(3, 4))
        ptcore.bmm(one(2, 3, 4), one(2, 4, 5))
        ptcore.addmm(one(4), one(2, 3), one(3, 4))
        one(2, 3) * 2
        one(2, 3).add(one(2, 3))
        f.conv2d(one(2, 4, 8, 8), one(6, 2, 3, 3), stride=2, padding=1, groups=2)
        f.conv2d(one(4, 8, 8), one(6, 4, 3, 3), None, (1, 2))
        f.conv1d(one(2, 4, 8), one(6, 4, 3))
        one(3).exp()
    counts = [(event.name, event.flops) for event in prof.events() if event.flops]
    assert counts == [("aten::mm", 48), ("aten::bmm", 240), ("aten::addmm", 48), ("aten::mul", 6), ("aten::add", 6),
                      ("aten::conv2d", 6912), ("aten::conv2d", 2 * 6 * 3 * 9 * 4 * 6),
                      ("aten::conv1d", 2 * 2 * 6 * 3 * 24)]


def inner(x):
    return x * 2


def test_stacks(tmp_path):
    x = ptcore.ones(200, 200, requires_grad=True)
    with profile(with_stack=True) as prof:
        with record_function("range"):
            y = inner(x)
        y.sum().backward()
    event = next(event for event in prof.events() if event.name == "aten::mul")
    assert re.fullmatch(r".*test_output\.py\(\d+\): inner", event.stack[0])
    assert re.fullmatch(r".*test_output\.py\(\d+\): test_stacks", event.stack[1])
    rule = next(event for event in prof.events() if event.name == "MulBackward0")
    assert rule.stack == event.stack                # that of the forward call
    range_ = next(event for event in prof.events() if event.name == "range")
    assert "test_stacks" in range_.stack[0]
    prof.export_stacks(tmp_path / "stacks.txt")
    lines = (tmp_path / "stacks.txt").read_text().splitlines()
    assert lines and all(re.fullmatch(r"\S+ \d+", line) for line in lines)
    mine = next(line for line in lines if "inner" in line)
    assert mine.index("test_stacks") < mine.index("inner") and mine.rsplit(" ")[0].endswith("inner")
    with pytest.raises(ValueError, match="metric should be one of"):
        prof.export_stacks(tmp_path / "stacks.txt", "count")
    grouped = prof.key_averages(group_by_stack_n=1)
    assert all(len(average.stack) <= 1 for average in grouped)
    with profile() as prof:
        inner(x)
    with pytest.raises(AssertionError, match="with_stack"):
        prof.export_stacks(tmp_path / "stacks.txt")


# -- traces ----------------------------------------------------------------------------------------------------------

def test_trace(tmp_path):
    prof = step_of_training(record_shapes=True, profile_memory=True, with_stack=True)
    prof.add_metadata("who", 'a "name"')
    prof.add_metadata_json("numbers", "[1, 2]")
    with pytest.raises(ValueError, match="JSON"):
        prof.add_metadata_json("numbers", "[1, 2")
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    prof.export_chrome_trace(str(tmp_path / "trace.json.gz"))
    trace = json.loads((tmp_path / "trace.json").read_text())
    packed = json.loads(gzip.open(tmp_path / "trace.json.gz").read())
    assert packed["traceEvents"] == trace["traceEvents"]
    assert trace["who"] == 'a "name"' and trace["numbers"] == [1, 2] and trace["record_shapes"] == 1
    calls = [event for event in trace["traceEvents"] if event["ph"] == "X" and event["cat"] != "Trace"]
    events = [event for event in prof.events() if event.trace_name]
    assert [(call["name"], call["cat"]) for call in calls] == [
        (event.trace_name, "user_annotation" if event.name == "step" else "cpu_op") for event in events]
    linear = next(call for call in calls if call["name"] == "aten::linear")
    assert linear["args"]["Input Dims"] == [[3, 4], [8, 4], [8]] and "step_of_training" in linear["args"]["Call stack"]
    for call, event in zip(calls, events):
        assert call["dur"] == pytest.approx(event.cpu_time_total)
    changes = [event["args"] for event in trace["traceEvents"] if event.get("name") == "[memory]"]
    assert changes and changes[-1]["Total Allocated"] == sum(change["Bytes"] for change in changes)
    starts = {event["id"] for event in trace["traceEvents"] if event["ph"] == "s"}
    assert starts and starts == {event["id"] for event in trace["traceEvents"] if event["ph"] == "f"}
    prof.events().export_chrome_trace(tmp_path / "plain.json")
    assert len([e for e in json.loads((tmp_path / "plain.json").read_text()) if e["ph"] == "X"]) == len(events)


def test_trace_only(tmp_path):
    with profile(experimental_config=Config(trace_only=True)) as prof:
        ptcore.ones(2)
    with pytest.raises(RuntimeError, match="trace_only"):
        prof.events()
    prof.export_chrome_trace(tmp_path / "trace.json")
    assert "aten::ones" in (tmp_path / "trace.json").read_text()


def test_tensorboard_handler(tmp_path):
    handler = ptcore.profiler.tensorboard_trace_handler(str(tmp_path / "runs"), worker_name="w", use_gzip=True)
    with profile(schedule=schedule(wait=0, warmup=1, active=1, repeat=2), on_trace_ready=handler) as prof:
        for _ in range(4):
            ptcore.ones(2)
            prof.step()
    files = sorted((tmp_path / "runs").iterdir())
    assert len(files) == 2 and all(re.fullmatch(r"w\.\d+\.pt\.trace\.json\.gz", file.name) for file in files)
    assert "ProfilerStep#1" in gzip.open(files[0]).read().decode()


def test_trace_ids():
    prof = profile(custom_trace_id_callback=lambda: "mine")
    assert prof.get_trace_id() is None
    with prof:
        pass
    assert prof.get_trace_id() == "mine"
    with profile() as prof:
        pass
    assert re.fullmatch("[0-9A-F]{32}", prof.get_trace_id())


# -- steps -----------------------------------------------------------------------------------------------------------

def test_steps():
    ready = []
    with profile(schedule=schedule(wait=1, warmup=1, active=2, repeat=2),
                 on_trace_ready=lambda p: ready.append((p.step_num, len(p.events())))) as prof:
        for _ in range(10):
            ptcore.ones(1)
            prof.step()
    assert ready == [(4, 4), (8, 4)]
    assert [event.trace_name for event in prof.events() if event.name == "ProfilerStep*"] == [
        "ProfilerStep#6", "ProfilerStep#7"]
    assert all(event.cpu_parent.name == "ProfilerStep*" for event in prof.events() if event.name == "aten::ones")


def test_accumulated_events():
    settings = {"schedule": schedule(wait=0, warmup=1, active=1)}
    with profile(acc_events=True, **settings) as prof:
        for _ in range(6):
            ptcore.ones(1)
            prof.step()
    assert {a.key: a.count for a in prof.key_averages()} == {"ProfilerStep*": 3, "aten::ones": 3}


def test_wrong_schedules():
    for wrong in ({"wait": -1}, {"active": 0}, {"repeat": -1}, {"skip_first": -1}):
        with pytest.raises(AssertionError, match="Invalid profiler schedule"):
            schedule(**{"wait": 1, "warmup": 1, "active": 1, **wrong})
    with pytest.warns(UserWarning, match="won't be using warmup"):
        schedule(wait=0, warmup=0, active=1)
    actions = [ProfilerAction.RECORD, ProfilerAction.NONE, ProfilerAction.NONE]
    with profile(schedule=lambda step: actions[step]) as prof:
        with pytest.warns(UserWarning, match="RECORD followed by NONE"):
            prof.step()
    with pytest.raises(ValueError, match="DEVICE_STOPPED"):
        profile(schedule=lambda step: ProfilerAction.DEVICE_STOPPED)


def test_start_and_stop():
    prof = profile()
    prof.start()
    ptcore.ones(1)
    prof.stop()
    assert [event.name for event in prof.events()] == ["aten::ones"]
    for method in ("events", "key_averages"):
        with pytest.raises(AssertionError):
            getattr(profile(), method)()


# -- what there is not -------------------------------------------------------------------------------------------------

def test_activities():
    assert ProfilerActivity.CPU in ptcore.profiler.supported_activities() and ptcore.profiler.kineto_available()
    with pytest.raises(AssertionError, match="No valid profiler activities"):
        profile(activities=[])
    with pytest.raises(ValueError, match="more than once"):
        profile(activities=[ProfilerActivity.CPU, {ProfilerActivity.CPU: []}])
    with pytest.raises(TypeError, match="Expected ProfilerActivity"):
        profile(activities=["CPU"])
    if not ptcore.cuda.is_available():
        with pytest.warns(UserWarning, match="CUDA is not available"), \
                profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as prof:
            ptcore.ones(1)
        assert [event.name for event in prof.events()] == ["aten::ones"] and prof.use_device is None
        with pytest.warns(UserWarning, match="CUDA"), pytest.raises(AssertionError, match="No activities"):
            profile(activities=[ProfilerActivity.CUDA]).start()


def test_refused(tmp_path):
    with pytest.raises(NotImplementedError, match="NVTX"), autograd_profiler.emit_nvtx():
        pass
    with pytest.raises(NotImplementedError, match="ITT"), autograd_profiler.emit_itt():
        pass
    with autograd_profiler.emit_nvtx(enabled=False), autograd_profiler.emit_itt(enabled=False):
        pass
    assert not ptcore.profiler.itt.is_available()
    with pytest.raises(RuntimeError, match="ITT functions not installed"), ptcore.profiler.itt.range("a"):
        pass
    with pytest.raises(NotImplementedError, match="nvprof"):
        autograd_profiler.load_nvprof("file")
    with pytest.raises(NotImplementedError, match="execution traces"):
        ptcore.profiler.ExecutionTraceObserver().register_callback("file")
    with pytest.raises(ValueError, match="with_stack=True required"):
        step_of_training(record_shapes=True, profile_memory=True).export_memory_timeline(str(tmp_path / "a.html"))
    with pytest.raises(NotImplementedError, match="export_chrome_trace"):
        step_of_training(record_shapes=True, profile_memory=True, with_stack=True).export_memory_timeline("a.html")


def test_observers():
    class Observer:
        def __init__(self):
            self.calls = []

        def start(self):
            self.calls.append("start")

        def stop(self):
            self.calls.append("stop")

        def cleanup(self):
            self.calls.append("cleanup")
    observer = Observer()
    with profile(execution_trace_observer=observer):
        pass
    assert observer.calls == ["start", "stop", "cleanup"]


def test_autograd_profiler():
    prof = autograd_profiler.profile()
    assert "unfinished" in str(prof)
    with prof:
        ptcore.ones(2)
    assert "aten::ones" in str(prof) and "aten::ones" in repr(prof) and "aten::ones" in prof.table()
    assert prof.total_average().count == 1 and prof.self_cpu_time_total == prof.function_events.self_cpu_time_total
    with pytest.raises(AssertionError, match="use_kineto"):
        autograd_profiler.profile(use_cpu=False)
    with pytest.raises(ValueError, match="non-negative"):
        autograd_profiler.profile(post_processing_timeout_s=-1)
    handle = autograd_profiler._record_function_with_args_enter("a", 1)
    autograd_profiler._record_function_with_args_exit(handle)


def test_little_time_to_make_events():
    with profile(post_processing_timeout_s=0) as prof:
        for _ in range(100):
            ptcore.ones(1)
    assert len(prof.events()) < 100


def test_step_tracker():
    tracker = autograd_profiler.KinetoStepTracker
    before = tracker.current_step()
    tracker.init_step_count("here")
    assert tracker.increment_step("here") == before + 1 == tracker.current_step()
    assert tracker.erase_step_count("here") and not tracker.erase_step_count("here")


def test_futures():
    with profile() as prof:
        future = ptcore.futures.Future()
        with record_function("async") as range_:
            done = range_._call_end_callbacks_on_future(future)
        ptcore.ones(1)
        future.set_result(3)
        ptcore.zeros(1)
    assert done.wait() == 3
    found = {event.name: event for event in prof.events()}
    assert found["aten::ones"].cpu_parent is found["async"] and found["aten::zeros"].cpu_parent is None
