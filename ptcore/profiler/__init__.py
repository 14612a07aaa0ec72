"""The profiler: the ops that a program calls, their time and their memory.

Examples
--------
>>> import ptcore
>>> from ptcore.profiler import profile, record_function
>>> x = ptcore.ones(4, 4)
>>> with profile() as prof:
...     with record_function("square"):
...         y = x @ x
>>> [event.name for event in prof.events()]
['square', 'aten::matmul', 'aten::mm']
>>> print(prof.key_averages().table(sort_by="count", row_limit=1).splitlines()[1].split()[0])
Name
"""
from ptcore.autograd.profiler import (
    KinetoStepTracker,
    ProfilerActivity,
    _ExperimentalConfig,
    kineto_available,
    record_function,
)
from ptcore.autograd.profiler_util import DeviceType, RecordScope
from ptcore.profiler import itt
from ptcore.profiler.profiler import (
    ExecutionTraceObserver,
    ProfilerAction,
    _KinetoProfile,
    profile,
    schedule,
    supported_activities,
    tensorboard_trace_handler,
)

__all__ = ["DeviceType", "ExecutionTraceObserver", "ProfilerAction", "ProfilerActivity", "kineto_available", "profile",
           "record_function", "schedule", "supported_activities", "tensorboard_trace_handler"]
