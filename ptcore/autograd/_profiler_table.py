"""A list of events as a table of text, with PyTorch's columns."""
import math

_WIDTH = 12                     # width of a column of numbers
_GAP = "  "


def format_time(us):
    """Microseconds, in a suitable unit."""
    if us >= 1e6:
        return f"{us / 1e6:.3f}s"
    if us >= 1e3:
        return f"{us / 1e3:.3f}ms"
    return f"{us:.3f}us"


def _in_unit(us, unit):
    scale = {"s": 1e6, "ms": 1e3, "us": 1.0}.get(unit)
    return format_time(us) if scale is None else f"{us / scale:.3f}{unit}"


def _share(us, total):
    return f"{us * 100.0 / total:.2f}%" if total else "NaN"


def _memory(nbytes):
    for unit, size in (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)):
        if abs(nbytes) >= size:
            return f"{nbytes / size:.2f} {unit}"
    return f"{nbytes} B"


def _tail(path, width):
    """The end of a path that is too long."""
    if len(path) <= width:
        return path
    path = path[len(path) - width:]
    return "..." + path[3:] if len(path) > 3 else path


def _shortened(name, width):
    return name[:width - 3] + "..." if width is not None and len(name) >= width - 3 else name


class _Column:
    """A column: its title, its width, and the function that gives an event's entry."""

    def __init__(self, title, value, width=_WIDTH, left=False):
        self.title, self.value, self.width, self.left = title, value, width, left

    def cell(self, text):
        text = str(text)
        return text.ljust(self.width) if self.left else text.rjust(self.width)


def _width(texts, most):
    """The width of a column of texts."""
    widest = max([len(text) for text in texts]) + 4
    return widest if most is None else min(widest, most)


def _flops(events):
    """The column of floating point operations, in the unit of the smallest number; None if no event has any."""
    counts = [event.flops for event in events if event.flops and event.flops > 0]
    if not counts:
        return None
    units = ("FLOPs", "KFLOPs", "MFLOPs", "GFLOPs", "TFLOPs", "PFLOPs")
    power = int(max(0, min(math.log10(min(counts)) // 3, len(units) - 1)))
    return _Column(f"Total {units[power]}",
                   lambda event: f"{event.flops / 1000 ** power:8.3f}" if event.flops and event.flops > 0 else "--")


def _columns(events, total, device_total, device, limits, profile_memory, with_flops, unit):
    name_limit, shapes_limit, source_limit = limits

    def time(attribute):
        return lambda event: _in_unit(getattr(event, attribute), unit)

    def memory(attribute):
        return lambda event: _memory(getattr(event, attribute))
    name_width = _width([event.key for event in events], name_limit)
    columns = [_Column("Name", lambda event: _shortened(event.key, name_limit), name_width)]
    if any(event.overload_name for event in events):
        columns.append(_Column("Overload Name", lambda event: _shortened(event.overload_name, name_limit), name_width))
    columns += [_Column("Self CPU %", lambda event: event.self_cpu_percent),
                _Column("Self CPU", time("self_cpu_time_total")),
                _Column("CPU total %", lambda event: event.total_cpu_percent),
                _Column("CPU total", time("cpu_time_total")),
                _Column("CPU time avg", time("cpu_time"))]
    if device_total is not None:
        columns += [_Column(f"Self {device}", time("self_device_time_total")),
                    _Column(f"Self {device} %", lambda event: _share(event.self_device_time_total, device_total)),
                    _Column(f"{device} total", time("device_time_total")),
                    _Column(f"{device} time avg", time("device_time"))]
    if profile_memory:
        columns += [_Column("CPU Mem", memory("cpu_memory_usage")),
                    _Column("Self CPU Mem", memory("self_cpu_memory_usage"))]
        if device != "None" and any(event.self_device_memory_usage > 0 for event in events):
            columns += [_Column(f"{device} Mem", memory("device_memory_usage")),
                        _Column(f"Self {device} Mem", memory("self_device_memory_usage"))]
    columns.append(_Column("# of Calls", lambda event: event.count))
    if any(event.node_id != -1 for event in events):
        columns.append(_Column("Node ID", lambda event: event.node_id))
    if any(event.input_shapes for event in events):
        shapes_width = _width([str(event.input_shapes) for event in events], shapes_limit)
        columns.append(_Column("Input Shapes", lambda event: str(event.input_shapes)[:shapes_width], shapes_width))
    flops = _flops(events) if with_flops else None
    entries = [entry for event in events for entry in event.stack or ()]
    if entries:
        source_width = _width(entries, source_limit)
        columns.append(_Column("Source Location",
                               lambda event: _tail(event.stack[0], source_width) if event.stack else "", source_width,
                               left=True))
    if flops is not None:
        columns.append(flops)
    return columns


def table_of(events, row_limit, max_src_column_width, max_name_column_width, max_shapes_column_width, header,
             profile_memory, with_flops, top_level_events_only, time_unit):
    """See ``EventList.table``."""
    if not events:
        return ""
    device = events[0].use_device
    has_device_time = any(event.self_device_time_total > 0 for event in events)
    if has_device_time and not device:
        raise RuntimeError("table: the events have times of a device, but use_device is None")
    total = sum([event.self_cpu_time_total for event in events])
    device_total = None
    if has_device_time:
        device_total = sum([event.self_device_time_total for event in events
                            if (event.is_legacy if event.device_type == 0 else not event.is_user_annotation)])
    for event in events:
        event.self_cpu_percent = _share(event.self_cpu_time_total, total)
        event.total_cpu_percent = 0 if event.is_async else _share(event.cpu_time_total, total)
    name = device.upper() if device else "None"
    columns = _columns(events, total, device_total, name,
                       (max_name_column_width, max_shapes_column_width, max_src_column_width), profile_memory,
                       with_flops, time_unit)
    rule = "".join(["-" * column.width + _GAP for column in columns])
    double = "=" * (len(rule) - len(_GAP))
    source = next((column for column in columns if column.title == "Source Location"), None)

    def line(cells):
        return "".join([column.cell(text) + _GAP for column, text in zip(columns, cells)])
    lines = []
    if header is not None:
        lines += [double, header]
    if top_level_events_only:
        lines += [double, "This report only display top-level ops statistics"]
    lines += [rule, line([column.title for column in columns]), rule]
    shown = 0
    for event in events:
        if shown == row_limit:
            break
        if top_level_events_only and event.cpu_parent is not None:
            continue
        shown += 1
        lines.append(line([column.value(event) for column in columns]))
        if source is not None:          # the remaining frames, and an empty line
            for entry in [*(event.stack or ())[1:], ""]:
                lines.append(line([_tail(entry, source.width) if column is source else "" for column in columns]))
    lines += [rule, f"Self CPU time total: {_in_unit(total, time_unit)}"]
    if has_device_time:
        lines.append(f"Self {name} time total: {_in_unit(device_total, time_unit)}")
    return "\n".join(lines) + "\n"
