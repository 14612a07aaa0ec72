"""A profile as a trace in Chrome's format, with the categories and arguments of PyTorch's."""
import gzip
import json
import os
import socket
import sys

from ptcore.autograd import recording as _recording
from ptcore.autograd._profiler_events import events_of


def write_trace(profile, path, metadata=None):
    """Writes the last recording of a ``ptcore.autograd.profiler.profile``, compressed if the path ends in ``.gz``.
    """
    recording, pid = profile.kineto_results, os.getpid()
    events = events_of(recording, profile._begun, use_device=profile.use_device, with_flops=profile.with_flops)
    base = profile._begun / 1e3
    trace = [{"ph": "M", "name": "process_name", "ts": base, "pid": pid, "tid": 0,
              "args": {"name": os.path.basename(sys.executable) or "python"}},
             {"ph": "M", "name": "process_labels", "ts": base, "pid": pid, "tid": 0, "args": {"labels": "CPU"}}]
    threads = recording.threads()
    for _, native, _ in threads:
        trace.append({"ph": "M", "name": "thread_name", "ts": base, "pid": pid, "tid": native,
                      "args": {"name": f"thread {native} (python)"}})
    trace += _calls(events, base, pid)
    trace += _arrows(events, base, pid)
    if profile.profile_memory:
        trace += _memory(threads, pid)
    length = (recording.ended - profile._begun) / 1e3
    trace.append({"ph": "X", "cat": "Trace", "name": "PyTorch Profiler (0)", "pid": "Spans", "tid": "PyTorch Profiler",
                  "ts": base, "dur": length, "args": {"Op count": len(events)}})
    trace.append({"ph": "i", "s": "g", "name": "Iteration Start: PyTorch Profiler", "pid": "Traces",
                  "tid": "Trace PyTorch Profiler", "ts": base})
    trace.append({"ph": "i", "s": "g", "name": "Record Window End", "pid": "", "tid": "", "ts": base + length})
    whole = {"schemaVersion": 1, "deviceProperties": [], "trace_id": profile.trace_id}
    for name in ("record_shapes", "profile_memory", "with_stack", "with_flops", "with_modules"):
        if getattr(profile, name):
            whole[name] = 1
    for key, text in (metadata or {}).items():
        whole[key] = json.loads(text)
    whole.update(host_name=socket.gethostname(), displayTimeUnit="ms", baseTimeNanoseconds=0, traceName=str(path),
                 traceEvents=trace)
    opened = gzip.open(path, "wt") if str(path).endswith(".gz") else open(path, "w")
    with opened as file:
        json.dump(whole, file)


def _calls(events, base, pid):
    for number, event in enumerate(events):
        if event.trace_name is None:
            continue
        args = {"External id": event.id, "Record function id": 0, "Ev Idx": number}
        if event.structured_input_shapes:
            args.update({"Concrete Inputs": ["" if value is None else str(value) for value in event.concrete_inputs],
                         "Input type": event.input_dtypes, "Input Strides": event.structured_input_strides,
                         "Input Dims": event.structured_input_shapes})
        if event.sequence_nr >= 0:
            args.update({"Sequence number": event.sequence_nr, "Fwd thread id": event.fwd_thread})
        if event.flops:
            args["flops"] = event.flops
        if event.stack:
            args["Call stack"] = ";".join(event.stack)
        if event.is_python_function:
            args["Python module id"] = event.trace_name
        yield {"ph": "X", "cat": event.activity_type, "name": event.trace_name, "pid": pid,
               "tid": event.device_resource_id, "ts": base + event.time_range.start,
               "dur": event.time_range.elapsed_us(), "args": args}


def _arrows(events, base, pid):
    """Arrows from the call that made a node to the rule that ran for it."""
    made = {event.sequence_nr: event for event in events if event.sequence_nr >= 0 and event.fwd_thread == 0}
    for event in events:
        call = made.get(event.sequence_nr) if event.scope == 1 else None
        if call is None:
            continue
        where = {"id": event.sequence_nr, "pid": pid, "cat": "fwdbwd", "name": "fwdbwd"}
        yield {"ph": "s", "tid": call.device_resource_id, "ts": base + call.time_range.start, **where}
        yield {"ph": "f", "tid": event.device_resource_id, "ts": base + event.time_range.start, "bp": "e", **where}


def _memory(threads, pid):
    """An entry for each block that was allocated or freed, with the total since the profile began."""
    changes = sorted((event[2], native, event[6]) for _, native, raw in threads for event in raw
                     if event[0] == _recording.MEMORY)
    held = 0
    for time, native, nbytes in changes:
        held += nbytes
        yield {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": pid, "tid": native,
               "ts": time / 1e3, "args": {"Total Reserved": 0, "Total Allocated": held, "Bytes": nbytes,
                                          "Device Id": -1, "Device Type": 0}}
