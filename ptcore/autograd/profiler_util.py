"""Events of a profile: single, as a tree, averaged by name, as a table, as a trace.

``EventList``, ``FunctionEvent`` and ``FunctionEventAvg`` have the names and columns of
``torch.autograd.profiler_util``. Times are microseconds.
"""
import bisect
import enum
import json
from collections import namedtuple
from itertools import count, groupby
from operator import attrgetter
from typing import NamedTuple

from ptcore._errors import warn
from ptcore.autograd._profiler_table import format_time, table_of

__all__ = ["EventList", "EventMetadata", "FormattedTimesMixin", "FunctionEvent", "FunctionEventAvg", "Interval",
           "Kernel", "MemRecordsAcc", "StringTable"]

MEMORY_EVENT_NAME = "[memory]"
OUT_OF_MEMORY_EVENT_NAME = "[OutOfMemory]"
_METRICS = ["self_cpu_time_total", "self_cuda_time_total", "self_xpu_time_total", "self_privateuse1_time_total"]

Kernel = namedtuple("Kernel", ["name", "device", "duration"])


class DeviceType(enum.IntEnum):
    """Kinds of devices, by the numbers that PyTorch gives them."""
    CPU = 0
    CUDA = 1
    MKLDNN = 2
    OPENGL = 3
    OPENCL = 4
    IDEEP = 5
    HIP = 6
    FPGA = 7
    MAIA = 8
    XLA = 9
    Vulkan = 10
    Metal = 11
    XPU = 12
    MPS = 13
    Meta = 14
    HPU = 15
    VE = 16
    Lazy = 17
    IPU = 18
    MTIA = 19
    PrivateUse1 = 20


class RecordScope(enum.IntEnum):
    """The scope of an event."""
    FUNCTION = 0
    BACKWARD_FUNCTION = 1
    TORCHSCRIPT_FUNCTION = 2
    KERNEL_FUNCTION_DTYPE = 3
    CUSTOM_CLASS = 4
    BUILD_FEATURE = 5
    LITE_INTERPRETER = 6
    USER_SCOPE = 7
    STATIC_RUNTIME_OP = 8
    STATIC_RUNTIME_MODEL = 9


def _device_name(metric):
    """The name of a metric, with "device" for the accelerator."""
    for name in ("cuda", "xpu", "privateuse1"):
        metric = metric.replace(name, "device")
    return metric


class EventList(list):
    """A list of events.

    Parameters
    ----------
    *args
        The items of the list: FunctionEvent or FunctionEventAvg.
    use_device : str, optional
        The device whose times are in the events beside the CPU's.
    profile_memory, with_flops : bool
        Whether memory and floating point operations were counted.
    """

    def __init__(self, *args, use_device=None, profile_memory=False, with_flops=False):
        super().__init__(*args)
        self._use_device = use_device
        self._profile_memory = profile_memory
        self._with_flops = with_flops
        self._tree_built = False

    def _like(self, events):
        return EventList(events, use_device=self._use_device, profile_memory=self._profile_memory,
                         with_flops=self._with_flops)

    def __str__(self):
        return self.table()

    # -- the tree ----------------------------------------------------------------------------------------------------

    def _build_tree(self):
        """Finds parents by time, for events that were not made by a recording."""
        self._populate_cpu_children()
        self._finish_tree()

    def _finish_tree(self):
        self._remove_dup_nodes()
        self._set_backward_stacktraces()
        self._tree_built = True

    def _populate_cpu_children(self):
        """On each thread the parent of an event is the shortest one that contains it."""
        events = sorted((e for e in self if not e.is_async and e.device_type == DeviceType.CPU),
                        key=attrgetter("thread", "node_id"))
        for _, of_thread in groupby(events, key=attrgetter("thread", "node_id")):
            around = []
            for event in sorted(of_thread, key=lambda e: (e.time_range.start, -e.time_range.end)):
                time = event.time_range
                while around and (time.start >= around[-1].time_range.end or time.end > around[-1].time_range.end):
                    around.pop()
                if around:
                    around[-1].append_cpu_child(event)
                    event.set_cpu_parent(around[-1])
                around.append(event)

    def _remove_dup_nodes(self):
        """Merges an event into its parent if both have one name and the parent has no other child."""
        gone = set()
        for event in self:                      # parents come before their children
            parent = event.cpu_parent
            if parent is not None and parent.name == event.name and len(parent.cpu_children) == 1:
                parent.cpu_children = event.cpu_children
                parent.kernels = event.kernels
                for child in event.cpu_children:
                    child.cpu_parent = parent
                gone.add(id(event))
        if gone:
            self[:] = [event for event in self if id(event) not in gone]

    def _set_backward_stacktraces(self):
        """Events of a backward get the stack of the call that made the node."""
        forward = {}
        behind = {}
        for event in self:
            parent = event.cpu_parent
            behind[id(event)] = event if event.scope == 1 else None if parent is None else behind.get(id(parent))
            if behind[id(event)] is None and event.stack:
                forward.setdefault((event.sequence_nr, event.thread), event.stack)
        for event in self:
            node = behind[id(event)]
            if node is not None:
                event.stack = forward.get((node.sequence_nr, node.fwd_thread), [])

    # -- sums --------------------------------------------------------------------------------------------------------

    @property
    def self_cpu_time_total(self):
        """The sum of all events' own times."""
        return sum(event.self_cpu_time_total for event in self)

    def key_averages(self, group_by_input_shapes=False, group_by_stack_n=0,
                     group_by_overload_name=False) -> "EventList":
        """One FunctionEventAvg for all events of a name.

        Parameters
        ----------
        group_by_input_shapes : bool
            One for each name and shapes of its inputs.
        group_by_stack_n : int
            One for each name and the innermost ``n`` entries of its stack.
        group_by_overload_name : bool
            One for each overload, of which ptcore's ops have one.

        Returns
        -------
        EventList
        """
        if not self._tree_built:
            raise AssertionError("key_averages: the events must be those of a profile that has ended")
        found = {}
        for event in self:
            key = [event.key, event.node_id, event.device_type, event.is_legacy, event.is_user_annotation]
            if group_by_overload_name:
                key.append(event.overload_name)
            if group_by_input_shapes:
                key.append(str(event.input_shapes))
            if group_by_stack_n > 0:
                key += (event.stack or [])[:group_by_stack_n]
            key = tuple(key)
            if key not in found:
                found[key] = FunctionEventAvg()
            found[key].add(event)
        averages = self._like(found.values())
        for average in averages:
            average.stack = (average.stack or [])[:group_by_stack_n]
            if not group_by_input_shapes:
                average.input_shapes = ""
            if not group_by_overload_name:
                average.overload_name = ""
        return averages

    def total_average(self):
        """All events as one FunctionEventAvg, ``"Total"``."""
        total = FunctionEventAvg()
        for event in self:
            total += event
            total.key = None
        total.key = "Total"
        return total

    # -- as text -----------------------------------------------------------------------------------------------------

    def table(self, sort_by=None, row_limit=100, max_src_column_width=75, max_name_column_width=55,
              max_shapes_column_width=80, header=None, top_level_events_only=False, time_unit=None):
        """The events as a table.

        Parameters
        ----------
        sort_by : str, optional
            The attribute to sort by, largest first: ``cpu_time_total``, ``self_cpu_time_total``, ``count``,
            ``self_cpu_memory_usage`` and the like; ``cuda`` in a name stands for the device.
        row_limit : int
            Rows at most; -1 for all.
        max_src_column_width, max_name_column_width, max_shapes_column_width : int, optional
            Characters of a column at most.
        header : str, optional
            A line above the table.
        top_level_events_only : bool
            Leave out what ran inside other events.
        time_unit : {"s", "ms", "us"}, optional
            One unit for all times; else each has its own.

        Returns
        -------
        str
        """
        if sort_by is None:
            events = self
        else:
            by = _device_name(sort_by)
            events = self._like(sorted(self, key=lambda event: getattr(event, by), reverse=True))
        return table_of(events, row_limit=row_limit, max_src_column_width=max_src_column_width,
                        max_name_column_width=max_name_column_width, max_shapes_column_width=max_shapes_column_width,
                        header=header, profile_memory=self._profile_memory, with_flops=self._with_flops,
                        top_level_events_only=top_level_events_only, time_unit=time_unit)

    def export_chrome_trace(self, path):
        """Writes the events as a trace that ``chrome://tracing`` and Perfetto show."""
        trace, flows = [], count()
        for event in self:
            if event.trace_name is None:
                continue
            where = {"name": event.trace_name, "ts": event.time_range.start, "pid": "CPU functions",
                     "tid": event.thread if not event.is_remote
                     else f" node_id:{event.node_id}, thread_id:{event.thread} "}
            trace.append({**where, "ph": "X", "dur": event.time_range.elapsed_us(), "args": {}})
            for _ in event.kernels:
                trace.append({**where, "ph": "s", "id": next(flows), "cat": f"cpu_to_{self._use_device or 'cuda'}",
                              "args": {}})
        with open(path, "w") as file:
            json.dump(trace, file)

    def supported_export_stacks_metrics(self):
        """The metrics that ``export_stacks`` takes."""
        return list(_METRICS)

    def export_stacks(self, path, metric):
        """Writes a line for each event with a stack, ``outer;inner value``, the input of flame graphs.

        Parameters
        ----------
        path : str
        metric : str
            ``self_cpu_time_total`` or the same of a device. Events of less than a microsecond have no line.
        """
        if metric not in _METRICS:
            raise ValueError("metric should be one of: " + str(_METRICS))
        plain = str.maketrans(" ;\t\n", "____")
        attribute = _device_name(metric)
        with open(path, "w") as file:
            for event in self:
                value = int(getattr(event, attribute))
                if event.stack and value > 0:
                    print(";".join(entry.translate(plain) for entry in reversed(event.stack)), value, file=file)


class FormattedTimesMixin:
    """Times per call, and times as text, for objects with totals and a ``count``."""

    cpu_time_str = property(lambda self: format_time(self.cpu_time))
    device_time_str = property(lambda self: format_time(self.device_time))
    cpu_time_total_str = property(lambda self: format_time(self.cpu_time_total))
    device_time_total_str = property(lambda self: format_time(self.device_time_total))
    self_cpu_time_total_str = property(lambda self: format_time(self.self_cpu_time_total))
    self_device_time_total_str = property(lambda self: format_time(self.self_device_time_total))

    @property
    def cpu_time(self):
        """The CPU time per call."""
        return self.cpu_time_total / self.count if self.count else 0.0

    @property
    def device_time(self):
        """The device time per call."""
        return self.device_time_total / self.count if self.count else 0.0

    @property
    def cuda_time(self):
        """An older name of ``device_time``."""
        return _older("cuda_time", self.device_time)


def _older(name, value):
    warn(f"`{name}` is deprecated. Use `{name.replace('cuda', 'device')}` instead.", FutureWarning)
    return value


class Interval:
    """A span of time."""

    def __init__(self, start, end):
        self.start, self.end = start, end

    def elapsed_us(self):
        """Its length."""
        return self.end - self.start


class EventMetadata(NamedTuple):
    """A device profiler's data on a kernel or a copy; None for missing data."""
    registers_per_thread: "int | None" = None
    shared_memory: "int | None" = None
    grid: "list | None" = None
    block: "list | None" = None
    priority: "int | None" = None
    blocks_per_sm: "float | None" = None
    warps_per_sm: "float | None" = None
    occupancy: "dict | None" = None
    est_occupancy_pct: "float | None" = None
    queued: "int | None" = None
    graph_id: "int | None" = None
    graph_node_id: "int | None" = None
    stream: "int | None" = None
    context: "int | None" = None
    channel: "int | None" = None
    channel_type: "int | None" = None
    bytes: "int | None" = None
    bandwidth_gb_s: "float | None" = None
    collective_name: "str | None" = None
    dtype: "str | None" = None
    in_msg_nelems: "int | None" = None
    out_msg_nelems: "int | None" = None
    in_split_size: "str | None" = None
    out_split_size: "str | None" = None
    global_rank_start: "int | None" = None
    global_rank_stride: "int | None" = None
    group_size: "int | None" = None
    process_group_name: "str | None" = None
    process_group_desc: "str | None" = None
    group_ranks: "str | None" = None
    rank: "int | None" = None
    src_rank: "int | None" = None
    dst_rank: "int | None" = None
    seq: "int | None" = None
    is_async: "bool | None" = None


class FunctionEvent(FormattedTimesMixin):
    """One call: its name, its time, and the calls inside it.

    Parameters
    ----------
    id : int
    name : str
    thread : int
        Threads are counted in the order in which they came into the profile.
    start_us, end_us : float
    input_shapes, structured_input_shapes, structured_input_strides, input_dtypes, concrete_inputs : list, optional
        With ``record_shapes``. Tensors have their sizes in ``input_shapes`` and None in ``concrete_inputs``, others
        ``[]`` and their value.
    stack : list of str, optional
        With ``with_stack``: ``file(line): function``, the innermost first. In a backward, the stack of the forward
        call.
    scope : int
        0 a function, 1 the rule of a node, 7 a range of the user's.
    sequence_nr : int
        The number of the node that a forward call made, or whose rule a backward ran; -1 if there is none.
    flops : int, optional
    """

    def __init__(self, id, name, thread, start_us, end_us, overload_name=None, fwd_thread=None, input_shapes=None,
                 stack=None, scope=0, use_device=None, cpu_memory_usage=0, device_memory_usage=0, is_async=False,
                 is_remote=False, sequence_nr=-1, node_id=-1, device_type=DeviceType.CPU, device_index=0,
                 device_resource_id=None, is_legacy=False, flops=None, trace_name=None, concrete_inputs=None,
                 kwinputs=None, is_user_annotation=False, is_python_function=False, activity_type=None,
                 metadata_json=None, flow_id=None, flow_type=None, flow_start=None, external_id=0,
                 linked_correlation_id=0, extra_meta=None, structured_input_shapes=None,
                 structured_input_strides=None, input_dtypes=None, python_id=-1, python_parent_id=-1,
                 python_module_id=-1):
        self.id, self.node_id = id, node_id
        self.name, self.overload_name, self.trace_name = name, overload_name, trace_name
        self.time_range = Interval(start_us, end_us)
        self.thread, self.fwd_thread = thread, fwd_thread
        self.kernels = []
        self.count = 1
        self.cpu_children, self.cpu_parent = [], None
        self.input_shapes, self.concrete_inputs, self.kwinputs = input_shapes, concrete_inputs, kwinputs
        self.stack, self.scope, self.use_device = stack, scope, use_device
        self.cpu_memory_usage, self.device_memory_usage = cpu_memory_usage, device_memory_usage
        self.is_async, self.is_remote, self.sequence_nr = is_async, is_remote, sequence_nr
        self.device_type, self.device_index = device_type, device_index
        self.device_resource_id = thread if device_resource_id is None else device_resource_id
        self.is_legacy, self.flops, self.is_user_annotation = is_legacy, flops, is_user_annotation
        self.is_python_function, self.activity_type = is_python_function, activity_type
        self.self_cpu_percent = self.total_cpu_percent = self.total_device_percent = -1
        self._metadata_json = metadata_json
        self.flow_id, self.flow_type, self.flow_start = flow_id, flow_type, flow_start
        self.external_id, self.linked_correlation_id = external_id, linked_correlation_id
        self.event_metadata = EventMetadata(**extra_meta) if extra_meta else None
        self.structured_input_shapes = structured_input_shapes
        self.structured_input_strides = structured_input_strides
        self.input_dtypes = input_dtypes
        self.python_id, self.python_parent_id, self.python_module_id = python_id, python_parent_id, python_module_id

    def append_kernel(self, name, device, duration):
        """Adds a kernel that ran on a device for this call."""
        if self.device_type != DeviceType.CPU:
            raise AssertionError("append_kernel: the event must be of the CPU")
        self.kernels.append(Kernel(name, device, duration))

    def append_cpu_child(self, child):
        """Adds an event that ran directly inside this one."""
        if not isinstance(child, FunctionEvent) or (self.device_type, child.device_type) != (DeviceType.CPU,) * 2:
            raise AssertionError("append_cpu_child: both must be FunctionEvents of the CPU")
        self.cpu_children.append(child)

    def set_cpu_parent(self, parent):
        """Sets the event that contains this one."""
        if not isinstance(parent, FunctionEvent) or (self.device_type, parent.device_type) != (DeviceType.CPU,) * 2:
            raise AssertionError("set_cpu_parent: both must be FunctionEvents of the CPU")
        self.cpu_parent = parent

    def _own(self, total, attribute):
        """A total minus that of the children."""
        if self.is_async or self.device_type != DeviceType.CPU:
            return 0
        return total - sum([getattr(child, attribute) for child in self.cpu_children])

    @property
    def key(self):
        """The key of averages: the name."""
        return self.name

    @property
    def cpu_time_total(self):
        """The event's CPU time, children included."""
        return self.time_range.elapsed_us() if self.device_type == DeviceType.CPU else 0

    @property
    def self_cpu_time_total(self):
        """The event's CPU time without children."""
        return self._own(self.cpu_time_total, "cpu_time_total")

    @property
    def device_time_total(self):
        """The event's device time, children included."""
        if self.is_async or not self.use_device:
            return 0
        if self.device_type != DeviceType.CPU:
            return self.time_range.elapsed_us()
        own = sum([kernel.duration for kernel in self.kernels])
        return own if self.is_legacy else own + sum([child.device_time_total for child in self.cpu_children])

    @property
    def self_device_time_total(self):
        """The event's device time without children."""
        if self.is_async or not self.use_device:
            return 0
        if self.device_type != DeviceType.CPU:
            return self.device_time_total
        return self._own(self.device_time_total, "device_time_total")

    @property
    def self_cpu_memory_usage(self):
        """Bytes that the event allocated and did not free, without children."""
        return self._own(self.cpu_memory_usage, "cpu_memory_usage")

    @property
    def self_device_memory_usage(self):
        """The same on a device."""
        return self._own(self.device_memory_usage, "device_memory_usage")

    @property
    def metadata_json(self):
        """The metadata of the event, as JSON."""
        warn("`metadata_json` is deprecated. Use `event_metadata` instead.", FutureWarning)
        return self._metadata_json

    cuda_time_total = property(lambda self: _older("cuda_time_total", self.device_time_total))
    self_cuda_time_total = property(lambda self: _older("self_cuda_time_total", self.self_device_time_total))
    self_cuda_memory_usage = property(lambda self: _older("self_cuda_memory_usage", self.self_device_memory_usage))

    def __repr__(self):
        device = self.use_device
        return (f"<FunctionEvent id={self.id} name={self.name} overload_name={self.overload_name} "
                f"device_type={self.device_type!r} node_id={self.node_id} cpu_time={self.cpu_time_str} "
                f"start_us={self.time_range.start} end_us={self.time_range.end} "
                f"cpu_children={[child.id for child in self.cpu_children]} {device}_time={self.device_time_str} "
                f"name={self.name} thread={self.thread} input_shapes={self.input_shapes} "
                f"cpu_memory_usage={self.cpu_memory_usage} {device}_memory_usage={self.device_memory_usage} "
                f"is_async={self.is_async} is_remote={self.is_remote} seq_nr={self.sequence_nr} "
                f"is_legacy={self.is_legacy}>")


class FunctionEventAvg(FormattedTimesMixin):
    """The sums of all events of one key; ``cpu_time`` is the time of one call."""

    _FROM_FIRST = ("key", "node_id", "is_async", "is_remote", "cpu_parent", "cpu_children", "overload_name",
                   "input_shapes", "stack", "scope", "device_type", "is_legacy", "use_device", "is_user_annotation")
    _SUMS = ("cpu_time_total", "device_time_total", "self_cpu_time_total", "self_device_time_total",
             "cpu_memory_usage", "device_memory_usage", "self_cpu_memory_usage", "self_device_memory_usage", "count")

    def __init__(self):
        for name in self._FROM_FIRST:
            setattr(self, name, None)
        for name in self._SUMS:
            setattr(self, name, 0)
        self.node_id = self.flops = 0
        self.is_async = self.is_remote = self.is_legacy = self.is_user_annotation = False
        self.device_type = DeviceType.CPU

    def add(self, other):
        """Adds an event, or the sums of other events, of the same key."""
        if not isinstance(other, (FunctionEvent, FunctionEventAvg)):
            raise AssertionError("add: other must be a FunctionEvent or a FunctionEventAvg, got "
                                 f"{type(other).__name__}")
        if self.key is None:
            for name in self._FROM_FIRST:
                setattr(self, name, getattr(other, name))
        if other.key != self.key:
            raise AssertionError(f"add: the keys must be one, got {other.key} beside {self.key}")
        for name in self._SUMS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        if self.flops is None:
            self.flops = other.flops
        elif other.flops is not None:
            self.flops += other.flops
        return self

    __iadd__ = add

    def __repr__(self):
        device = self.use_device or "cuda"
        return (f"<FunctionEventAvg key={self.key} self_cpu_time={self.self_cpu_time_total_str} "
                f"cpu_time={self.cpu_time_str}  self_{device}_time={self.self_device_time_total_str} "
                f"{device}_time={self.device_time_str} input_shapes={self.input_shapes} "
                f"cpu_memory_usage={self.cpu_memory_usage} {device}_memory_usage={self.device_memory_usage}>")


class StringTable(dict):
    """Names as they are. C++ names would be demangled here, but ptcore has none."""

    def __missing__(self, key):
        self[key] = key
        return key


class MemRecordsAcc:
    """Finds records of memory by time.

    Parameters
    ----------
    mem_records : list
        Each a sequence whose first item has a ``start_ns()``.
    """

    def __init__(self, mem_records):
        self._records = sorted(mem_records, key=lambda record: record[0].start_ns())
        self._starts = [record[0].start_ns() for record in self._records]

    def in_interval(self, start_ns, end_ns):
        """The records of a time, both ends included."""
        first, behind = bisect.bisect_left(self._starts, start_ns), bisect.bisect_right(self._starts, end_ns)
        return iter(self._records[first:behind])
