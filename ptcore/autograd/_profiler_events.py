"""Makes FunctionEvents of a recording: names, shapes, stacks, memory, counts of operations."""
import bisect
import gc
import os
import sys
from operator import attrgetter

from ptcore.autograd import recording as _recording
from ptcore.autograd._profiler_flops import flops_of
from ptcore.autograd.profiler_util import (
    MEMORY_EVENT_NAME,
    DeviceType,
    EventList,
    FunctionEvent,
    RecordScope,
)

# PyTorch's names for ptcore's internal functions. Other functions keep their own name.
_NAMES = {"assign": "copy_", "assign_": "copy_", "to_dtype": "_to_copy", "to_device": "_to_copy", "row_major": "clone",
          "cross_entropy": "cross_entropy_loss", "index_get": "index", "scaled_dot_product_attention_of":
          "_scaled_dot_product_attention_math"}
_NAMES.update(dict.fromkeys(("bfloat16", "bool", "byte", "cdouble", "cfloat", "chalf", "char", "cpu", "cuda", "double",
                             "float", "half", "int", "long", "short", "type", "type_as"), "to"))
# Functions that compute nothing make no event.
_HIDDEN = {"aten::" + name for name in (
    "backward", "const_data_ptr", "data_ptr", "dim_order", "get_device", "is_complex", "is_conj", "is_floating_point",
    "is_neg", "is_same_size", "is_set_to", "is_shared", "module_load", "numel", "numpy", "register_hook",
    "register_post_accumulate_grad_hook", "requires_grad_", "retain_grad", "tolist", "untyped_storage")}
_SCOPES = {_recording.NODE: RecordScope.BACKWARD_FUNCTION, _recording.USER: RecordScope.USER_SCOPE}
_CATEGORIES = {_recording.USER: "user_annotation", _recording.MODULE: "python_function"}
_TYPE_NAMES = {"float32": "float", "float64": "double", "float16": "c10::Half", "bfloat16": "c10::BFloat16",
               "int64": "long int", "int32": "int", "int16": "short int", "int8": "signed char",
               "uint8": "unsigned char", "bool": "bool", "complex64": "c10::complex<float>",
               "complex128": "c10::complex<double>"}


class _Names:
    """The names of events, by the recorded kind and name."""

    def __init__(self):
        self.found = {}

    def __call__(self, kind, what):
        if kind != _recording.OP:
            return what
        name = self.found.get(what)
        if name is None:
            name = what if isinstance(what, str) else what.__name__
            op, fused, _ = name.partition("__d")        # the derivative by one argument
            name = self.found[what] = "aten::" + (op + "_backward" if fused else _NAMES.get(name, name))
        return name


class _Frames:
    """Frames as text, ``file(line): function``; files are relative to their entry of the import path."""

    def __init__(self):
        self.found = {}
        package = os.path.abspath(__file__)
        for _ in range(3):
            package = os.path.dirname(package)
        self.roots = sorted({os.path.join(os.path.abspath(path), "") for path in (*sys.path, package)}, key=len,
                            reverse=True)

    def __call__(self, frames):
        return [entry for entry in map(self.entry, frames or ()) if entry is not None]

    def entry(self, frame):
        if frame not in self.found:
            code, line = frame
            name = self.path(code.co_filename)
            own = name.startswith(("ptcore/autograd/profiler", "ptcore/autograd/_profiler", "ptcore/profiler/"))
            self.found[frame] = None if own else f"{name}({line}): {code.co_name}"
        return self.found[frame]

    def path(self, file):
        for root in self.roots:
            if file.startswith(root):
                return file[len(root):].replace(os.sep, "/")
        return file


def _described(inputs):
    """(shapes, values, nested shapes, nested strides, types) of arguments."""
    shapes, values, nested, strides, types = [], [], [], [], []
    for tag, *value in inputs[1]:
        if tag == "tensor":
            dtype, sizes, steps = value
            shapes.append(sizes)
            values.append(None)
            nested.append(sizes)
            strides.append(steps)
            types.append(_TYPE_NAMES.get(dtype.name, dtype.name))
        elif tag == "tensors":
            shapes.append([])
            values.append(None)
            nested.append([item[2] for item in value[0]])
            strides.append([item[3] for item in value[0]])
            types.append("TensorList")
        else:
            value = value[0]
            shapes.append([])
            values.append(value)
            nested.append([])
            strides.append([])
            types.append("" if value is None else "ScalarList" if isinstance(value, list) else "Scalar")
    return shapes, values, nested, strides, types


def events_of(recording, begun, *, use_device=None, profile_memory=False, with_flops=False, timeout_s=None):
    """The events of a Recording, with times from ``begun`` on, as an EventList.

    Events that are not made within ``timeout_s`` seconds are dropped.
    """
    collects = gc.isenabled()
    gc.disable()                # no garbage is made here, and there may be many objects
    try:
        return _events_of(recording, begun, use_device, profile_memory, with_flops, timeout_s)
    finally:
        if collects:
            gc.enable()


def _events_of(recording, begun, use_device, profile_memory, with_flops, timeout_s):
    names, frames = _Names(), _Frames()
    found, calls, rules = [], [], []
    limit = None if timeout_s is None else _recording.clock() + timeout_s * 1e9
    for thread, (_, native, raw) in enumerate(recording.threads(), 1):
        memory = [event[6] for event in raw]
        for k in range(len(raw) - 1, -1, -1):           # the memory of an event includes that of its children
            if raw[k][4] >= 0:
                memory[raw[k][4]] += memory[k]
        made = [None] * len(raw)
        for k, (kind, what, start, end, parent, sequence, _, inputs, stack, device) in enumerate(raw):
            if limit is not None and k % 64 == 0 and _recording.clock() > limit:
                break
            if kind == _recording.MEMORY:
                if parent < 0:
                    found.append(_memory_event(len(found) + 1, thread, native, start - begun, memory[k], use_device))
                continue
            name = names(kind, what)
            if name in _HIDDEN:
                continue
            event = made[k] = FunctionEvent(
                id=len(found) + 1, name="ProfilerStep*" if name.startswith("ProfilerStep#") else name, thread=thread,
                start_us=(start - begun) / 1e3, end_us=(end - begun) / 1e3, overload_name="",
                fwd_thread=thread if kind in (_recording.NODE, _recording.ENGINE) else 0, stack=frames(stack),
                scope=int(_SCOPES.get(kind, RecordScope.FUNCTION)), use_device=use_device,
                cpu_memory_usage=memory[k], device_resource_id=native, trace_name=name,
                is_user_annotation=kind == _recording.USER, flops=0,
                is_python_function=kind == _recording.MODULE, activity_type=_CATEGORIES.get(kind, "cpu_op"),
                kwinputs={}, input_shapes=[], concrete_inputs=[], structured_input_shapes=[],
                structured_input_strides=[], input_dtypes=[])
            if inputs is not None:
                (event.input_shapes, event.concrete_inputs, event.structured_input_shapes,
                 event.structured_input_strides, event.input_dtypes) = _described(inputs)
                if with_flops and kind == _recording.OP:
                    event.flops = flops_of(name, event.structured_input_shapes, event.concrete_inputs, inputs[0])
            if device is not None:
                event.append_kernel(name, *device[:2])
                event.is_legacy, event.device_memory_usage = True, device[2]
            if kind == _recording.OP:
                calls.append((sequence, event))
            elif kind in (_recording.NODE, _recording.ENGINE):
                event.sequence_nr = sequence or -1
                if kind == _recording.NODE and sequence:
                    rules.append(event)
            while parent >= 0:                          # an event that ended earlier does not contain this one
                around = made[parent]
                if around is not None and around.time_range.end >= event.time_range.end:
                    around.append_cpu_child(event)
                    event.set_cpu_parent(around)
                    break
                parent = raw[parent][4]
            found.append(event)
    _join(calls, rules)
    events = EventList(sorted(found, key=lambda e: (e.time_range.start, -e.time_range.end)), use_device=use_device,
                       profile_memory=profile_memory, with_flops=with_flops)
    events._finish_tree()
    return events


def _memory_event(number, thread, native, time, nbytes, use_device):
    """The event of an allocation or a free outside of all other events."""
    return FunctionEvent(id=number, name=MEMORY_EVENT_NAME, trace_name=None, thread=thread, start_us=time / 1e3,
                         end_us=time / 1e3, overload_name="", fwd_thread=thread, input_shapes=[], stack=[],
                         use_device=use_device, cpu_memory_usage=nbytes, device_resource_id=native, flops=0,
                         device_type=DeviceType.CPU)


def _join(calls, rules):
    """Gives calls the numbers of their nodes: a node belongs to the last call that began before its number."""
    calls.sort(key=lambda call: call[0])
    begun = [number for number, _ in calls]
    for rule in sorted(rules, key=attrgetter("sequence_nr")):
        at = bisect.bisect_left(begun, rule.sequence_nr) - 1
        if at >= 0:
            call = calls[at][1]
            call.sequence_nr = rule.sequence_nr
            rule.fwd_thread = call.thread
