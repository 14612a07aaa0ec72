"""The statistics of the allocators, in PyTorch's forms.

The C++ allocators give flat pairs ``(key, number)`` and rows of blocks (``block_allocator.hpp``); here they become
the dictionaries, the table and the snapshot that `ptcore.cuda`'s functions return. Errors are already texts
(``failure_text``), because they can arise where there is no interpreter.
"""
from collections import OrderedDict

METRICS = (
    ("allocated_bytes", "Allocated memory", True),
    ("active_bytes", "Active memory", True),
    ("requested_bytes", "Requested memory", True),
    ("reserved_bytes", "GPU reserved memory", True),
    ("inactive_split_bytes", "Non-releasable memory", True),
    ("allocation", "Allocations", False),
    ("active", "Active allocs", False),
    ("segment", "GPU reserved segments", False),
    ("inactive_split", "Non-releasable allocs", False),
)
OVERSIZE = (("oversize_allocations", "Oversize allocations"), ("oversize_segments", "Oversize GPU segments"))
COLUMNS = ("current", "peak", "allocated", "freed")
STATES = ("inactive", "active_allocated", "active_pending_free")       # by BlockRow::state


def flat(pairs):
    """`memory_stats`: an OrderedDict in the order of its keys."""
    return OrderedDict(sorted(pairs))


def nested(pairs):
    """`memory_stats_as_nested_dict`: a dictionary for each part of a key."""
    out = {}
    for key, value in pairs:
        *folders, last = key.split(".")
        place = out
        for name in folders:
            place = place.setdefault(name, {})
        place[last] = value
    return out


def _scaled(value, leader, units, step, most, width):
    # All entries of a column have the unit of the first one, its leader.
    unit, *larger = units
    for name in larger:
        if leader < most:
            break
        unit, value, leader = name, value // step, leader / step
    return f"{value:{width}d} {unit}"


def size_cell(value, leader):
    """A number of bytes in ten characters."""
    return _scaled(value, leader, ("B  ", "KiB", "MiB", "GiB", "TiB", "PiB"), 1024, 768 * 1024, 6)


def count_cell(value, leader):
    """A count in ten characters."""
    return _scaled(value, leader, ("  ", "K ", "M "), 1000, 750 * 1000, 7)


def _row(stats, prefix, name, cell, leaders=None):
    values = [stats[f"{prefix}.{column}"] for column in COLUMNS]
    cells = (cell(*pair) for pair in zip(values, leaders or values))
    return f" {name:<21} | {' | '.join(cells)} ", values


def summary(stats, device, abbreviated=False):
    """`memory_summary`: the table of `flat` statistics."""
    double, single = "=" * 75, "-" * 75
    lines = [double, f" {'':16} ptcore CUDA memory summary, device ID {device:<17d}  ", single,
             f"  {'':9} CUDA OOMs: {stats['num_ooms']:<12d} | {'':6} cudaMalloc retries: "
             f"{stats['num_alloc_retries']:<8d}  ",
             double, "        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  "]
    for key, name, is_size in METRICS:
        cell = size_cell if is_size else count_cell
        line, leaders = _row(stats, key + ".all", name, cell)
        lines += [single, line]
        if not abbreviated:
            lines += [_row(stats, f"{key}.{pool}_pool", f"      from {pool} pool", cell, leaders)[0]
                      for pool in ("large", "small")]
    for key, name in OVERSIZE:
        lines += [single, _row(stats, key, name, count_cell)[0]]
    lines.append(double)
    return "".join(f"|{line}|\n" for line in lines)


def segments(rows, device, frames=lambda stack: []):
    """`memory_snapshot`: a dictionary for each segment, with its blocks.

    A row is ``(segment, segment_size, address, size, requested, stream, pool, large, state, stack, stack of the
    segment, expandable)``, the fields of a ``BlockRow``; rows come in order of addresses. ``frames`` turns a stack's
    number into the list of its calls.
    """
    out = {}
    for segment, segment_size, address, size, requested, stream, pool, large, state, *stacks, expandable in rows:
        stack, segment_stack = stacks
        place = out.get(segment)
        if place is None:
            place = out[segment] = {
                "device": device, "address": segment, "total_size": segment_size, "allocated_size": 0,
                "active_size": 0, "requested_size": 0, "stream": stream,
                "segment_type": "large" if large else "small", "segment_pool_id": (0, pool),
                "is_expandable": expandable, "frames": frames(segment_stack), "blocks": []}
        active = state != 0
        place["allocated_size"] += size * (state == 1)
        place["active_size"] += size * active
        place["requested_size"] += requested * active
        place["blocks"].append({"address": address, "size": size, "requested_size": requested if active else 0,
                                "state": STATES[state], "frames": frames(stack)})
    return list(out.values())
