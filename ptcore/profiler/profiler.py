"""``profile`` with its schedule, which decides the action of each step."""
import enum
import json
import os

from ptcore._errors import warn
from ptcore.autograd import profiler as prof
from ptcore.autograd.profiler import ProfilerActivity
from ptcore.autograd.profiler_util import EventList

__all__ = ["ExecutionTraceObserver", "ProfilerAction", "profile", "schedule", "supported_activities",
           "tensorboard_trace_handler"]

PROFILER_STEP_NAME = "ProfilerStep"
_warned = set()


def _warn_once(message):
    if message not in _warned:
        _warned.add(message)
        warn(message)


def supported_activities():
    """The activities that can be profiled here: a set of ProfilerActivity, of the CPU and, with a device, of CUDA."""
    return prof.supported_activities()


def _parse_activities(activities):
    """(the activities, the names selected for some of them) from a list that may hold dictionaries."""
    found, filters = set(), {}
    for item in activities:
        if not isinstance(item, (ProfilerActivity, dict)):
            raise TypeError(f"Expected ProfilerActivity or dict, got {type(item)}")
        for activity in item if isinstance(item, dict) else (item,):
            if activity in found:
                raise ValueError(f"Activity {activity} specified more than once")
            found.add(activity)
            if isinstance(item, dict):
                filters[activity] = set(item[activity])
    return found, filters


class _KinetoProfile:
    """A profile without a schedule; see :class:`profile` for the parameters."""

    def __init__(self, *, activities=None, record_shapes=False, profile_memory=False, with_stack=False,
                 with_flops=False, with_modules=False, experimental_config=None, execution_trace_observer=None,
                 acc_events=False, custom_trace_id_callback=None, post_processing_timeout_s=None):
        if activities is None:
            self.activities, self.activity_filters = supported_activities(), {}
        else:
            self.activities, self.activity_filters = _parse_activities(activities)
        self.record_shapes, self.profile_memory, self.with_stack = record_shapes, profile_memory, with_stack
        self.with_flops, self.with_modules = with_flops, with_modules
        self.experimental_config = experimental_config
        self.execution_trace_observer = execution_trace_observer
        self.acc_events = acc_events
        self.custom_trace_id_callback = custom_trace_id_callback
        self.post_processing_timeout_s = post_processing_timeout_s
        self.profiler = None
        self.use_device = next((activity.name.lower() for activity in (
            ProfilerActivity.CUDA, ProfilerActivity.XPU, ProfilerActivity.MTIA, ProfilerActivity.HPU,
            ProfilerActivity.PrivateUse1) if activity in self.activities), None)
        self.preset_metadata = {}
        self._trace_metadata = {}

    def start(self):
        """Begins to record."""
        self.prepare_trace()
        self.start_trace()

    def stop(self):
        """Ends the recording."""
        self.stop_trace()

    def prepare_trace(self):
        """Makes the recorder that ``start_trace`` starts."""
        if self.profiler is not None and not self.acc_events:
            _warn_once("Warning: Profiler clears events at the end of each cycle. Only events from the current cycle "
                       "will be reported. To keep events across cycles, set acc_events=True.")
        if self.profiler is None or not self.acc_events:
            self.profiler = prof.profile(
                use_cpu=ProfilerActivity.CPU in self.activities, use_device=self.use_device,
                record_shapes=self.record_shapes, with_flops=self.with_flops, profile_memory=self.profile_memory,
                with_stack=self.with_stack, with_modules=self.with_modules, use_kineto=True,
                experimental_config=self.experimental_config, acc_events=self.acc_events,
                custom_trace_id_callback=self.custom_trace_id_callback,
                post_processing_timeout_s=self.post_processing_timeout_s, activity_filters=self.activity_filters)
            if self.profiler.use_device is None:
                self.use_device = None
        self.profiler._prepare_trace()

    def start_trace(self):
        """Starts the recorder of ``prepare_trace``."""
        if self.execution_trace_observer:
            self.execution_trace_observer.start()
        self._of_profiler("start")._start_trace()
        for key, value in self.preset_metadata.items():
            self.add_metadata_json(key, value)

    def stop_trace(self):
        """Ends the recording."""
        if self.execution_trace_observer:
            self.execution_trace_observer.stop()
        self._of_profiler("stop").__exit__(None, None, None)

    def _of_profiler(self, method):
        if self.profiler is None:
            raise AssertionError(f"{method}: the profile has not begun")
        return self.profiler

    def export_chrome_trace(self, path, use_python_export=False):
        """Writes the trace of the last cycle as JSON that ``chrome://tracing`` and Perfetto show.

        Parameters
        ----------
        path : str
            A name that ends in ``.gz`` is packed.
        use_python_export : bool
            There is one way to write it.
        """
        self._of_profiler("export_chrome_trace").export_chrome_trace(path, self._trace_metadata)

    def export_stacks(self, path, metric="self_cpu_time_total"):
        """Writes ``outer;inner microseconds`` for each event, the input of flame graphs; needs ``with_stack``.

        Parameters
        ----------
        path : str
        metric : {"self_cpu_time_total", "self_cuda_time_total"}
        """
        return self._of_profiler("export_stacks").export_stacks(path, metric)

    def toggle_collection_dynamic(self, enable, activities):
        """Pauses or resumes the recording of this thread's calls.

        Parameters
        ----------
        enable : bool
        activities : iterable of ProfilerActivity
        """
        if self.profiler is not None:
            self.profiler.toggle_collection_dynamic(enable, activities)

    def key_averages(self, group_by_input_shape=False, group_by_stack_n=0, group_by_overload_name=False) -> EventList:
        """The events summed by name, an EventList.

        Parameters
        ----------
        group_by_input_shape : bool
            One entry for each name and shapes; needs ``record_shapes``.
        group_by_stack_n : int
            One entry for each name and the innermost frames; needs ``with_stack``.
        group_by_overload_name : bool
        """
        return self._of_profiler("key_averages").key_averages(group_by_input_shape, group_by_stack_n,
                                                              group_by_overload_name)

    def events(self) -> EventList:
        """All events, an EventList."""
        return self._of_profiler("events").function_events

    def add_metadata(self, key, value):
        """Adds a text to the trace.

        Parameters
        ----------
        key, value : str
        """
        self._trace_metadata[key] = json.dumps(value)

    def add_metadata_json(self, key, value):
        """Adds a value to the trace.

        Parameters
        ----------
        key : str
        value : str
            JSON.
        """
        self._trace_metadata[key] = _checked(key, value)

    def preset_metadata_json(self, key, value):
        """Adds a value to each trace that begins from now on.

        Parameters
        ----------
        key : str
        value : str
            JSON.
        """
        self.preset_metadata[key] = _checked(key, value)

    def export_memory_timeline(self, path, device=None):
        """Refused: the purpose of memory blocks is not recorded.

        ``export_chrome_trace`` of a profile with ``profile_memory=True`` has each block that was allocated or freed.
        """
        needed = [f"{name}=True" for name in ("record_shapes", "profile_memory", "with_stack")
                  if not getattr(self, name)]
        if needed:
            raise ValueError(f"{', '.join(needed)} required for memory profiling.")
        raise NotImplementedError("export_memory_timeline: ptcore does not sort memory by what it is for; "
                                  "export_chrome_trace has each block that was allocated or freed")


def _checked(key, value):
    try:
        json.loads(value)
    except ValueError as error:
        raise ValueError(f"metadata {key!r}: the value must be JSON, got {value!r}") from error
    return value


class ProfilerAction(enum.Enum):
    """The action in a step. A schedule returns one of the first four."""
    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3
    DEVICE_STOPPED = 4


def schedule(*, wait, warmup, active, repeat=0, skip_first=0, skip_first_wait=0):
    """A schedule of cycles: some steps are skipped, some warm up, some are recorded.

    Parameters
    ----------
    wait, warmup, active : int
        The steps of a cycle that do nothing, that warm up, and that are recorded.
    repeat : int
        Cycles; 0 for no end.
    skip_first : int
        Steps before the first cycle.
    skip_first_wait : int
        Not 0: the first cycle does not wait.

    Returns
    -------
    callable
        The ProfilerAction of a step's number.

    Examples
    --------
    >>> from ptcore.profiler import schedule
    >>> plan = schedule(wait=1, warmup=1, active=2)
    >>> [plan(step).name for step in range(5)]
    ['NONE', 'WARMUP', 'RECORD', 'RECORD_AND_SAVE', 'NONE']
    """
    if wait < 0 or warmup < 0 or active <= 0 or repeat < 0 or skip_first < 0:
        raise AssertionError(
            f"Invalid profiler schedule arguments. Got wait={wait} (need >= 0), warmup={warmup} (need >= 0), "
            f"active={active} (need > 0), repeat={repeat} (need >= 0), skip_first={skip_first} (need >= 0).")
    if warmup == 0:
        warn("Profiler won't be using warmup, this can skew profiler results")
    cycle = wait + warmup + active

    def action_of(step):
        if step < 0:
            raise AssertionError(f"Step must be non-negative. Got {step}.")
        if step < skip_first:
            return ProfilerAction.NONE
        step += (wait if skip_first_wait else 0) - skip_first
        if 0 < repeat <= step / cycle:
            return ProfilerAction.NONE
        step %= cycle
        if step < wait:
            return ProfilerAction.NONE
        if step < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if step < cycle - 1 else ProfilerAction.RECORD_AND_SAVE
    return action_of


def _always(step):
    return ProfilerAction.RECORD


def tensorboard_trace_handler(dir_name, worker_name=None, use_gzip=False, use_python_export=False):
    """A function that writes each trace to a directory for TensorBoard's profile plugin.

    Parameters
    ----------
    dir_name : str
    worker_name : str, optional
        One for each process; host and process number if None.
    use_gzip : bool
    use_python_export : bool

    Returns
    -------
    callable
        For ``on_trace_ready``.
    """
    def write(profile):
        import socket
        import time
        try:
            os.makedirs(dir_name, exist_ok=True)
        except OSError as error:
            raise RuntimeError("Can't create directory: " + str(dir_name)) from error
        name = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        suffix = ".gz" if use_gzip else ""
        profile.export_chrome_trace(os.path.join(dir_name, f"{name}.{time.time_ns()}.pt.trace.json{suffix}"),
                                    use_python_export=use_python_export)
    return write


_NONE, _WARMUP, _RECORD, _SAVE = (ProfilerAction.NONE, ProfilerAction.WARMUP, ProfilerAction.RECORD,
                                  ProfilerAction.RECORD_AND_SAVE)
# (the action of a step, that of the next or None at the end) -> the calls between the two
_BETWEEN = {
    (_NONE, _WARMUP): ("prepare_trace",),
    (_NONE, _RECORD): ("prepare_trace", "start_trace"),
    (_NONE, _SAVE): ("prepare_trace", "start_trace"),
    (_WARMUP, _NONE): ("warn", "start_trace", "stop_trace"),
    (_WARMUP, _RECORD): ("start_trace",),
    (_WARMUP, _SAVE): ("start_trace",),
    (_RECORD, _NONE): ("warn", "stop_trace"),
    (_RECORD, _WARMUP): ("warn", "stop_trace"),
    (_SAVE, _NONE): ("stop_trace", "_trace_ready"),
    (_SAVE, _WARMUP): ("stop_trace", "_trace_ready", "prepare_trace"),
    (_SAVE, _RECORD): ("stop_trace", "_trace_ready", "prepare_trace", "start_trace"),
    (_SAVE, _SAVE): ("stop_trace", "_trace_ready", "prepare_trace", "start_trace"),
    (_WARMUP, None): ("start_trace", "stop_trace"),
    (_RECORD, None): ("stop_trace", "_trace_ready"),
    (_SAVE, None): ("stop_trace", "_trace_ready"),
}


class profile(_KinetoProfile):
    """Context manager that records the ops this thread calls, their times and devices, and sums them up.

    There is no cost while no profile is on. A process has one profile at a time.

    Parameters
    ----------
    activities : iterable of ProfilerActivity, optional
        CPU, CUDA; all that there are if None. One that is not there is dropped with a warning.
    schedule : callable, optional
        The ProfilerAction of a step's number, see :func:`schedule`; everything is recorded if None.
    on_trace_ready : callable, optional
        Called with the profile at the end of each cycle.
    record_shapes : bool
        Note the shapes, strides and values of arguments.
    profile_memory : bool
        Note what memory is allocated and freed.
    with_stack : bool
        Note the Python frames of each call.
    with_flops : bool
        Count the operations of products, convolutions, additions and multiplications.
    with_modules : bool
        Note calls of modules, as events around the calls inside.
    experimental_config : optional
        ``_ExperimentalConfig(profile_all_threads=True)`` records the calls of all threads.
    execution_trace_observer : optional
        An object whose ``start``, ``stop`` and ``cleanup`` are called with the profile's.
    acc_events : bool
        Keep the events of earlier cycles.
    use_cuda : bool, optional
        An older spelling of ``activities``.
    custom_trace_id_callback : callable, optional
        Gives each trace its name; else it is a random one.
    post_processing_timeout_s : float, optional
        Seconds after which no more events are made.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.profiler import profile, schedule
    >>> seen = []
    >>> with profile(schedule=schedule(wait=1, warmup=1, active=2, repeat=1),
    ...              on_trace_ready=lambda p: seen.append(p.step_num)) as prof:
    ...     for step in range(6):
    ...         y = ptcore.ones(3) * step
    ...         prof.step()
    >>> seen
    [4]
    >>> [(event.key, event.count) for event in prof.key_averages()]
    [('ProfilerStep*', 2), ('aten::ones', 2), ('aten::mul', 2)]
    """

    def __init__(self, *, activities=None, schedule=None, on_trace_ready=None, record_shapes=False,
                 profile_memory=False, with_stack=False, with_flops=False, with_modules=False,
                 experimental_config=None, execution_trace_observer=None, acc_events=False, use_cuda=None,
                 custom_trace_id_callback=None, post_processing_timeout_s=None):
        activities = supported_activities() if activities is None else list(activities)
        if use_cuda is not None:
            warn("`use_cuda` is deprecated, use `activities` argument instead", FutureWarning)
            activities = [item for item in activities if item is not ProfilerActivity.CUDA]
            if use_cuda:
                activities.append(ProfilerActivity.CUDA)
        if not activities:
            raise AssertionError("No valid profiler activities found")
        super().__init__(
            activities=activities, record_shapes=record_shapes, profile_memory=profile_memory, with_stack=with_stack,
            with_flops=with_flops, with_modules=with_modules, experimental_config=experimental_config,
            execution_trace_observer=execution_trace_observer, acc_events=acc_events,
            custom_trace_id_callback=custom_trace_id_callback, post_processing_timeout_s=post_processing_timeout_s)
        self.schedule = schedule or _always
        self.record_steps = schedule is not None
        self.on_trace_ready = on_trace_ready
        self.step_num = 0
        self.step_rec_fn = None
        self.current_action = self._action_of(0)
        prof.KinetoStepTracker.init_step_count(PROFILER_STEP_NAME)

    def _action_of(self, step):
        action = self.schedule(step)
        if action is ProfilerAction.DEVICE_STOPPED:
            raise ValueError("ProfilerAction.DEVICE_STOPPED is set internally by the profiler and must not be returned "
                             "by a user-provided schedule")
        return action

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, kind, value, trace):
        self.stop()
        prof.KinetoStepTracker.erase_step_count(PROFILER_STEP_NAME)
        if self.execution_trace_observer:
            self.execution_trace_observer.cleanup()

    def start(self):
        """Starts with the first step."""
        self._transit_action(ProfilerAction.NONE, self.current_action)
        self._begin_step()

    def stop(self):
        """Ends at the present step."""
        self._end_step()
        self._transit_action(self.current_action, None)

    def step(self):
        """Begins the next step."""
        self._end_step()
        before, action = self.current_action, self._action_of(self.step_num + 1)
        self.step_num += 1
        self.current_action = action
        self._transit_action(before, action)
        self._begin_step()

    def _begin_step(self):
        if self.record_steps:
            self.step_rec_fn = prof.record_function(f"ProfilerStep#{self.step_num}")
            self.step_rec_fn.__enter__()

    def _end_step(self):
        if self.step_rec_fn is not None:
            self.step_rec_fn.__exit__(None, None, None)
            self.step_rec_fn = None

    def set_custom_trace_id_callback(self, callback):
        """Sets the function that names the traces of later cycles.

        Parameters
        ----------
        callback : callable
        """
        self.custom_trace_id_callback = callback

    def get_trace_id(self):
        """The name of the trace; None before the first."""
        return None if self.profiler is None else self.profiler.trace_id

    def _trace_ready(self):
        if self.on_trace_ready:
            self.on_trace_ready(self)

    def _transit_action(self, before, action):
        for name in _BETWEEN.get((before, action), ()):
            if name == "warn":
                warn(f"Incorrect schedule: {before.name} followed by {action.name}")
            else:
                getattr(self, name)()

    def _stats(self):
        return None if self.profiler is None else self.profiler._stats


class ExecutionTraceObserver:
    """PyTorch's writer of execution traces, which ptcore lacks: an instance can be made, and registers nothing."""

    @staticmethod
    def build_execution_trace_obs_from_env():
        """None."""
        return None

    def register_callback(self, output_file_path):
        """Refused.

        Parameters
        ----------
        output_file_path : str
        """
        raise NotImplementedError("ExecutionTraceObserver.register_callback: ptcore writes no execution traces; "
                                  "profile.export_chrome_trace writes what was called with which shapes")

    def unregister_callback(self):
        """Nothing."""

    @property
    def is_registered(self):
        """False."""
        return False

    def is_running(self):
        """False."""
        return False

    def start(self):
        """Nothing."""

    def stop(self):
        """Nothing."""

    def cleanup(self):
        """Nothing."""

    def get_output_file_path(self):
        """None."""
        return None
