"""The profiler below :mod:`ptcore.profiler`, with the names of ``torch.autograd.profiler``.

Examples
--------
>>> import ptcore
>>> with ptcore.autograd.profiler.profile() as prof:
...     with ptcore.autograd.profiler.record_function("twice"):
...         y = ptcore.ones(2) * 2
>>> [event.name for event in prof.function_events]
['twice', 'aten::ones', 'aten::mul']
"""
import enum
import functools
import uuid
from collections import defaultdict
from dataclasses import dataclass
from time import perf_counter_ns
from typing import ClassVar

from ptcore._errors import warn
from ptcore.autograd.profiler_util import EventList, FunctionEvent, MemRecordsAcc
from ptcore.autograd.profiler_util import RecordScope as RecordScope  # for torch._C._profiler

__all__ = ["EnforceUnique", "EventList", "FunctionEvent", "KinetoStepTracker", "MemRecordsAcc", "emit_itt",
           "emit_nvtx", "load_nvprof", "parse_nvprof_trace", "profile", "record_function"]

_is_profiler_enabled = False


class ProfilerActivity(enum.Enum):
    """The activities of a profile: calls on the CPU, or work on a device."""
    CPU = 0
    XPU = 1
    MTIA = 2
    CUDA = 3
    HPU = 4
    PrivateUse1 = 5


def supported_activities():
    from ptcore.cuda import is_available
    return {ProfilerActivity.CPU, ProfilerActivity.CUDA} if is_available() else {ProfilerActivity.CPU}


def kineto_available():
    """Whether traces have metadata, steps and annotations as those of PyTorch's library Kineto: always."""
    return True


@dataclass
class _ExperimentalConfig:
    """Experimental settings of PyTorch's profiler. Two have an effect here: ``profile_all_threads`` records the calls
    of all threads, ``trace_only`` makes no events."""
    profiler_metrics: tuple = ()
    profiler_measure_per_kernel: bool = False
    verbose: bool = False
    performance_events: tuple = ()
    enable_cuda_sync_events: bool = False
    adjust_profiler_step: bool = False
    disable_external_correlation: bool = False
    profile_all_threads: bool = False
    capture_overload_names: bool = False
    record_python_gc_info: bool = False
    expose_kineto_event_metadata: bool = False
    custom_profiler_config: str = ""
    adjust_timestamps: bool = False
    trace_only: bool = False


@dataclass
class _ProfilerStats:
    profiling_window_duration_sec: float = 0
    number_of_events: int = 0
    profiler_prepare_call_duration_us: int = 0
    profiler_enable_call_duration_us: int = 0
    profiler_disable_call_duration_us: int = 0
    parse_kineto_call_duration_us: int = 0
    function_events_build_tree_call_duration_us: int = 0


class profile:
    """Context manager that records the ops this thread calls, and sums them up.

    Most programs want :class:`ptcore.profiler.profile`, which uses this one. A process has one profile at a time.

    Parameters
    ----------
    enabled : bool
        False does nothing at all.
    use_cuda : bool
        An older spelling of ``use_device="cuda"``.
    use_device : str, optional
        The device whose times are measured as well.
    record_shapes : bool
        Note the shapes, strides and values of arguments.
    with_flops : bool
        Count the operations of products, convolutions, additions and multiplications; notes shapes.
    profile_memory : bool
        Note what memory is allocated and freed.
    with_stack : bool
        Note the Python frames of each call.
    with_modules : bool
        Note calls of modules, as events around the calls inside.
    use_kineto, use_cpu : bool
        ``use_cpu=False`` needs ``use_kineto=True`` and a device.
    experimental_config : optional
    acc_events : bool
        Keep the events of earlier uses of the same object.
    custom_trace_id_callback : callable, optional
        Gives the trace its name; else it is a random one.
    post_processing_timeout_s : float, optional
        Seconds after which no more events are made.
    activity_filters : dict, optional
        For PyTorch's library; nothing is left out by it here.

    Examples
    --------
    >>> import ptcore
    >>> x = ptcore.ones(3, requires_grad=True)
    >>> with ptcore.autograd.profiler.profile() as prof:
    ...     (x * 2).sum().backward()
    >>> {"aten::mul", "aten::sum", "MulBackward0"} <= {event.name for event in prof.function_events}
    True
    """

    def __init__(self, enabled=True, *, use_cuda=False, use_device=None, record_shapes=False, with_flops=False,
                 profile_memory=False, with_stack=False, with_modules=False, use_kineto=False, use_cpu=True,
                 experimental_config=None, acc_events=False, custom_trace_id_callback=None,
                 post_processing_timeout_s=None, activity_filters=None):
        self.enabled = enabled
        if not enabled:
            return
        if use_cuda:
            warn("The attribute `use_cuda` will be deprecated soon, please use ``use_device = 'cuda'`` instead.",
                 FutureWarning)
            use_device = "cuda"
        self.use_cuda, self.use_device, self.use_cpu = use_cuda, use_device, use_cpu
        self.record_shapes = record_shapes or with_flops
        self.with_flops, self.profile_memory = with_flops, profile_memory
        self.with_stack, self.with_modules = with_stack, with_modules
        self.acc_events = acc_events
        config = _ExperimentalConfig() if experimental_config is None else experimental_config
        if config.trace_only and with_stack:
            warn("trace_only=True is incompatible with with_stack=True (stack traces require event post-processing). "
                 "Disabling trace_only.")
            config = _ExperimentalConfig(**{**vars(config), "trace_only": False})
        self.experimental_config = config
        self.custom_trace_id_callback = custom_trace_id_callback
        self.post_processing_timeout_s = post_processing_timeout_s
        self.activity_filters = activity_filters or {}
        self.entered = False
        self.trace_id = ""
        self.kineto_results = None          # the Recording
        self.profiling_start_time_ns = self.profiling_end_time_ns = 0
        self._begun = 0
        self._function_events = self._old_function_events = None
        self._stats = _ProfilerStats()
        if not use_cpu and not use_kineto:
            raise AssertionError("Device-only events supported only with Kineto (use_kineto=True)")
        self._choose_device()
        self.kineto_activities = {ProfilerActivity.CPU} if use_cpu else set()
        if self.use_device is not None:
            self.kineto_activities.add(ProfilerActivity.CUDA)
        if not self.kineto_activities:
            raise AssertionError("No activities specified for the profiler")
        if post_processing_timeout_s is not None and post_processing_timeout_s < 0:
            raise ValueError("post_processing_timeout_s must be non-negative")

    def _choose_device(self):
        """Drops a device that does not exist."""
        if self.use_device is None:
            return
        if self.use_device == "cuda":
            if ProfilerActivity.CUDA not in supported_activities():
                warn("CUDA is not available, disabling CUDA profiling")
                self.use_cuda, self.use_device = False, None
        else:
            if self.use_device in ("xpu", "hpu"):
                warn(f"{self.use_device.upper()} is not available, disabling {self.use_device.upper()} profiling")
            else:
                warn(f"The {self.use_device} is not a valid device option.")
            self.use_device = None

    def create_trace_id(self):
        """A name for a trace."""
        return self.custom_trace_id_callback() if self.custom_trace_id_callback else self.default_trace_id()

    def default_trace_id(self):
        """A random name."""
        return f"{uuid.uuid4().int:032X}"

    # -- recording ---------------------------------------------------------------------------------------------------

    def __enter__(self):
        if not self.enabled:
            return None
        if self.entered:
            raise RuntimeError("Profiler context manager is not reentrant")
        self._prepare_trace()
        self._start_trace()
        return self

    def _prepare_trace(self):
        self.entered = True
        self.trace_id = self.create_trace_id()

    def _start_trace(self):
        global _is_profiler_enabled
        from ptcore.autograd import recording as _recording
        self.entered = True
        begun = perf_counter_ns()
        try:
            _recording.start(all_threads=self.experimental_config.profile_all_threads, shapes=self.record_shapes,
                             stacks=self.with_stack, memory=self.profile_memory, modules=self.with_modules,
                             device_type=self.use_device)
        except BaseException:
            self.entered = False
            raise
        _is_profiler_enabled = True
        self._begun = _recording.clock()
        self.profiling_start_time_ns = perf_counter_ns()
        self._stats.profiler_enable_call_duration_us = (self.profiling_start_time_ns - begun) // 1000

    def __exit__(self, kind, value, trace):
        global _is_profiler_enabled
        if not self.enabled:
            return None
        from ptcore.autograd import recording as _recording
        try:
            if self.use_device is not None:
                from ptcore.cuda import synchronize
                synchronize()
        finally:                            # an error of the device ends the recording as well
            if self._function_events and self.acc_events:
                self._old_function_events = self._function_events
            self._function_events = None
            self.profiling_end_time_ns = perf_counter_ns()
            self.kineto_results = _recording.stop()
            _is_profiler_enabled = False
        self._stats.profiler_disable_call_duration_us = (perf_counter_ns() - self.profiling_end_time_ns) // 1000
        self._stats.profiling_window_duration_sec = (self.profiling_end_time_ns - self.profiling_start_time_ns) / 1e9
        if self.acc_events and not self.experimental_config.trace_only:
            self._ensure_function_events()
        return False

    # -- results -----------------------------------------------------------------------------------------------------

    def _ensure_function_events(self):
        """Makes the events at their first use."""
        from ptcore.autograd._profiler_events import events_of
        if self.experimental_config.trace_only:
            raise RuntimeError("events() is not available when trace_only=True in ExperimentalConfig. Use "
                               "export_chrome_trace() instead.")
        if self._function_events is not None:
            return
        begun = perf_counter_ns()
        if self.kineto_results is None:
            if not self.entered or _is_profiler_enabled:
                raise AssertionError("Expected profiling results")
            self._function_events = EventList(use_device=self.use_device)
            self._function_events._tree_built = True
        else:
            self._function_events = events_of(
                self.kineto_results, self._begun, use_device=self.use_device, profile_memory=self.profile_memory,
                with_flops=self.with_flops, timeout_s=self.post_processing_timeout_s)
        self._stats.parse_kineto_call_duration_us = (perf_counter_ns() - begun) // 1000
        self._stats.number_of_events = len(self._function_events)
        if self._old_function_events and self.acc_events:
            self._function_events.extend(self._old_function_events)
            self._old_function_events = None

    def _is_over(self):
        return self.enabled and (self._function_events is not None or self.kineto_results is not None)

    def __repr__(self):
        return repr(self.function_events) if self._is_over() else "<unfinished ptcore.autograd.profile>"

    def __str__(self):
        return str(self.function_events) if self._is_over() else "<unfinished ptcore.autograd.profile>"

    @property
    def function_events(self) -> EventList:
        """The events, an EventList of FunctionEvents."""
        self._ensure_function_events()
        return self._function_events

    def table(self, sort_by=None, row_limit=100, max_src_column_width=75, max_name_column_width=55,
              max_shapes_column_width=80, header=None, top_level_events_only=False):
        """The events as a table; see ``EventList.table``."""
        return self.function_events.table(
            sort_by=sort_by, row_limit=row_limit, max_src_column_width=max_src_column_width,
            max_name_column_width=max_name_column_width, max_shapes_column_width=max_shapes_column_width,
            header=header, top_level_events_only=top_level_events_only)

    def export_chrome_trace(self, path, metadata=None, use_python_export=False):
        """Writes the trace of the last use as JSON that ``chrome://tracing`` and Perfetto show.

        Parameters
        ----------
        path : str
        metadata : dict, optional
            Names and texts of JSON that the trace is given.
        use_python_export : bool
            There is one way to write it.
        """
        from ptcore.autograd._profiler_trace import write_trace
        if self.kineto_results is None:
            raise AssertionError("Expected profiling results")
        write_trace(self, path, metadata)

    def export_stacks(self, path, metric="self_cpu_time_total"):
        """Writes stacks and times for flame graphs; see ``EventList.export_stacks``."""
        self._ensure_function_events()
        if not self.with_stack:
            raise AssertionError("export_stacks() requires with_stack=True")
        return self._function_events.export_stacks(path, metric)

    def toggle_collection_dynamic(self, enabled, activities):
        """Pauses or resumes the recording of this thread's calls.

        Parameters
        ----------
        enabled : bool
        activities : iterable of ProfilerActivity
            If the CPU is among them, the recording of its calls is paused or resumed.
        """
        from ptcore.autograd import recording as _recording
        if ProfilerActivity.CPU in set(activities):
            _recording.pause(not enabled)

    def key_averages(self, group_by_input_shape=False, group_by_stack_n=0, group_by_overload_name=False) -> EventList:
        """The events summed by name; see ``EventList.key_averages``."""
        return self.function_events.key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)

    def total_average(self):
        """All events as one FunctionEventAvg."""
        return self.function_events.total_average()

    @property
    def self_cpu_time_total(self):
        """The sum of all events' own times, in microseconds."""
        return self.function_events.self_cpu_time_total


class record_function:
    """Context manager and decorator that names a part of a program in a profile.

    Without a profile it does nothing.

    Parameters
    ----------
    name : str
    args : str, optional

    Examples
    --------
    >>> import ptcore
    >>> with ptcore.autograd.profiler.record_function("sum"):
    ...     ptcore.ones(2).sum()
    tensor(2.)
    """

    def __init__(self, name, args=None):
        self.name, self.args = name, args
        self.record = None
        self.run_callbacks_on_exit = True

    def __enter__(self):
        if _is_profiler_enabled:
            from ptcore.autograd.recording import USER, Range
            if not isinstance(self.name, str):
                raise TypeError(f"record_function: name must be a str, got {type(self.name).__name__}")
            self.record = Range(USER, str.__str__(self.name))
        return self

    def __exit__(self, kind, value, trace):
        if self.run_callbacks_on_exit:
            self._end()

    def _end(self):
        if self.record is not None:
            self.record.end()
            self.record = None

    def _call_end_callbacks_on_future(self, fut):
        """Ends the range when a future gets its value; returns a future of the same value."""
        if not self.run_callbacks_on_exit:
            raise RuntimeError("_call_end_callbacks_on_future can only be called once.")
        self.run_callbacks_on_exit = False

        def ended(future):
            self._end()
            return future.value()
        return fut.then(ended)

    def __call__(self, function):
        @functools.wraps(function)
        def named(*args, **kwargs):
            with type(self)(self.name, self.args):
                return function(*args, **kwargs)
        return named


def _record_function_with_args_enter(name, *args):
    """Begins a range of that name; returns the object that ends it."""
    return record_function(name).__enter__()


def _record_function_with_args_exit(handle):
    """Ends a range."""
    handle.__exit__(None, None, None)


class _Emitter:
    """A context that would tell another tool of each op; ptcore supports no such tool."""
    _tool = ""

    def __init__(self, enabled=True, record_shapes=False):
        self.enabled, self.entered, self.record_shapes = enabled, False, record_shapes

    def __enter__(self):
        if not self.enabled:
            return None
        if self.entered:
            raise RuntimeError(f"{self._tool} annotation context manager is not reentrant")
        self.entered = True
        raise NotImplementedError(f"{type(self).__name__}: ptcore is built without {self._tool}; "
                                  "ptcore.profiler.profile records the same ranges")

    def __exit__(self, kind, value, trace):
        return None if not self.enabled else False


class emit_itt(_Emitter):
    """Context manager that would mark ops for Intel's VTune: refused where it is enabled.

    Parameters
    ----------
    enabled, record_shapes : bool
    """
    _tool = "ITT"


class emit_nvtx(_Emitter):
    """Context manager that would mark ops for NVIDIA's profilers: refused where it is enabled.

    Parameters
    ----------
    enabled, record_shapes : bool
    """
    _tool = "NVTX"


class EnforceUnique:
    """Raises where a key is seen twice."""

    def __init__(self):
        self.seen = set()

    def see(self, *key):
        """Notes a key."""
        if key in self.seen:
            raise RuntimeError("duplicate key: " + str(key))
        self.seen.add(key)


def load_nvprof(path):
    """Refused: traces of nvprof, a tool that CUDA no longer has, are not read."""
    return EventList(parse_nvprof_trace(path))


def parse_nvprof_trace(path):
    """Refused: traces of nvprof, a tool that CUDA no longer has, are not read."""
    raise NotImplementedError("parse_nvprof_trace: ptcore does not read traces of nvprof")


class KinetoStepTracker:
    """Counts steps. Each part of a program counts its own; the program's count is the largest of them."""

    _current_step = 0
    _step_dict: ClassVar[dict] = defaultdict(int)

    @classmethod
    def init_step_count(cls, requester):
        """Begins the count of a part."""
        cls._step_dict[requester] = cls._current_step

    @classmethod
    def erase_step_count(cls, requester):
        """Removes a part; returns whether it was known."""
        return cls._step_dict.pop(requester, None) is not None

    @classmethod
    def increment_step(cls, requester):
        """Counts a step of a part; returns the program's count."""
        if requester not in cls._step_dict:
            cls.init_step_count(requester)
        cls._step_dict[requester] += 1
        cls._current_step = max(cls._current_step, *cls._step_dict.values())
        return cls._current_step

    @classmethod
    def current_step(cls):
        """The program's count."""
        return cls._current_step
