"""Times workloads on a CUDA device in ptcore and in the other libraries installed there, in turn in one process.

    python benchmarks/gpu.py [--against torch cupy] [--match REGEX] [--small] [--write] [--json FILE]

Kernels are timed between two events of a library's own stream around a run of calls (median of the rounds, after a
warm-up), bandwidth with the second-level cache flushed between runs; the overhead of a call is the processor's time for
many calls that the device has no trouble to follow. What a copy within the device reaches is measured first: bandwidths
are given as a part of it. ``--write`` puts the table into benchmarks/RESULTS-gpu.md; the exit status is 1 if a workload
misses its number. ``--small`` is for trying the script where speed means nothing.
"""
import argparse
import datetime
import importlib
import json
import platform
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent


class Library:
    """ptcore or torch: the same names; CuPy through a few lambdas of the workloads."""

    def __init__(self, name):
        self.name = name
        self.xp = importlib.import_module(name)
        self.cupy = name == "cupy"

    def synchronize(self):
        if self.cupy:
            self.xp.cuda.Device().synchronize()
        else:
            self.xp.cuda.synchronize()

    def milliseconds(self, run, calls):
        """The device's time of one call."""
        if self.cupy:
            start, end = self.xp.cuda.Event(), self.xp.cuda.Event()
        else:
            start, end = (self.xp.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for _ in range(calls):
            run()
        end.record()
        end.synchronize()
        return (self.xp.cuda.get_elapsed_time(start, end) if self.cupy else start.elapsed_time(end)) / calls

    def overhead(self, run, calls):
        """The processor's milliseconds of one call, the device left behind."""
        self.synchronize()
        start = time.perf_counter()
        for _ in range(calls):
            run()
        took = time.perf_counter() - start
        self.synchronize()
        return 1e3 * took / calls


WORKLOADS = []          # (name, kind, number, bytes or operations, make)


def workload(name, kind, number, amount):
    """``make(library, scale)`` returns what to call; kind is "bandwidth", "rate", "time" or "overhead"."""
    def enter(make):
        WORKLOADS.append((name, kind, number, amount, make))
        return make
    return enter


def filled(library, *shape, dtype="float32"):
    xp = library.xp
    if library.cupy:
        return xp.random.rand(*shape).astype(dtype)
    return xp.rand(*shape, device="cuda").to(getattr(xp, dtype))


def size_of(scale):
    return max(1 << 10, int((1 << 26) * scale))


for _op, _moved in (("add", 3), ("mul", 3)):
    for _dtype, _size in (("float32", 4), ("bfloat16", 2), ("float64", 8)):
        @workload(f"{_op} {_dtype}", "bandwidth", 0.85, lambda s, m=_moved, z=_size: m * z * size_of(s))
        def _elementwise(library, scale, op=_op, dtype=_dtype):
            if library.cupy and dtype == "bfloat16":
                return None
            a, b = (filled(library, size_of(scale), dtype=dtype) for _ in range(2))
            out = a + b
            f = getattr(library.xp, {"mul": "multiply"}.get(op, op) if library.cupy else op)
            return lambda: f(a, b, out=out)


@workload("gelu bfloat16", "bandwidth", 0.85, lambda s: 2 * 2 * size_of(s))
def _gelu(library, scale):
    if library.cupy:
        return None
    x = filled(library, size_of(scale), dtype="bfloat16")
    return lambda: library.xp.nn.functional.gelu(x)


@workload("float32 to bfloat16", "bandwidth", 0.85, lambda s: 6 * size_of(s))
def _cast(library, scale):
    if library.cupy:
        return None
    x = filled(library, size_of(scale))
    return lambda: x.to(library.xp.bfloat16)


@workload("a + row", "bandwidth", 0.75, lambda s: 2 * 4 * 4096 * max(1, size_of(s) // 4096))
def _row(library, scale):
    a, b = filled(library, max(1, size_of(scale) // 4096), 4096), filled(library, 4096)
    return lambda: a + b


@workload("transpose", "bandwidth", 0.75, lambda s: 2 * 4 * 4096 * max(1, size_of(s) // 4096))
def _transpose(library, scale):
    a = filled(library, max(1, size_of(scale) // 4096), 4096)
    return (lambda: library.xp.ascontiguousarray(a.T)) if library.cupy else (lambda: a.t().contiguous())


for _name, _dim in (("last dim", 1), ("first dim", 0)):
    for _f in ("sum", "amax"):
        @workload(f"{_f} {_name}", "bandwidth", 0.80, lambda s: 4 * 4096 * max(1, size_of(s) // 4096))
        def _reduce(library, scale, f=_f, dim=_dim):
            a = filled(library, max(1, size_of(scale) // 4096), 4096)
            return lambda: getattr(library.xp, f)(a, dim)

for _columns in (512, 4096, 32768):
    @workload(f"softmax rows of {_columns}", "bandwidth", 0.80, lambda s, c=_columns: 8 * c * max(1, size_of(s) // c))
    def _softmax(library, scale, columns=_columns):
        if library.cupy:
            return None
        a = filled(library, max(1, size_of(scale) // columns), columns)
        return lambda: library.xp.softmax(a, -1)

    @workload(f"layer_norm rows of {_columns}", "bandwidth", 0.80,
              lambda s, c=_columns: 8 * c * max(1, size_of(s) // c))
    def _norm(library, scale, columns=_columns):
        if library.cupy:
            return None
        a, w = filled(library, max(1, size_of(scale) // columns), columns), filled(library, columns)
        return lambda: library.xp.nn.functional.layer_norm(a, (columns,), w, w)


def side(scale):
    return max(64, int(8192 * scale ** 0.5))


for _dtype in ("float32", "bfloat16", "float64"):
    @workload(f"matmul {_dtype}", "rate", 0.98, lambda s: 2 * side(s) ** 3)
    def _matmul(library, scale, dtype=_dtype):
        if library.cupy and dtype == "bfloat16":
            return None
        a, b = (filled(library, side(scale), side(scale), dtype=dtype) for _ in range(2))
        return lambda: a @ b


@workload("conv2d 64 to 64 channels, 3x3 of 56x56, batch 32", "time", None, lambda s: 1)
def _convolution(library, scale):
    if library.cupy:
        return None
    n = 32 if scale == 1 else 1
    x, w = filled(library, n, 64, 56, 56), filled(library, 64, 64, 3, 3)
    return lambda: library.xp.nn.functional.conv2d(x, w, padding=1)


@workload("attention 8 heads of 64, 1024 positions, causal", "time", None, lambda s: 1)
def _attention(library, scale):
    if library.cupy:
        return None
    n = 1024 if scale == 1 else 32
    q = filled(library, 4, 8, n, 64)
    return lambda: library.xp.nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True)


@workload("one element: a + b", "overhead", 1.0, lambda s: 1)
def _call(library, scale):
    a = filled(library, 1)
    return lambda: a + a


@workload("one element: a + b recorded", "overhead", 1.0, lambda s: 1)
def _recorded(library, scale):
    if library.cupy:
        return None
    a = filled(library, 1).requires_grad_()
    return lambda: a + a


@workload("training step: 4 layers of 1024, batch 256, Adam", "time", 1.0, lambda s: 1)
def _step(library, scale):
    if library.cupy:
        return None
    xp, width = library.xp, 1024 if scale == 1 else 16
    layers = [m for _ in range(4) for m in (xp.nn.Linear(width, width), xp.nn.ReLU())]
    model = xp.nn.Sequential(*layers).cuda()
    optimizer = xp.optim.Adam(model.parameters(), 1e-4)
    x = filled(library, 256 if scale == 1 else 4, width)

    def run():
        optimizer.zero_grad()
        (model(x) ** 2).mean().backward()
        optimizer.step()
    return run


# -- measuring -----------------------------------------------------------------------------------------------------

def copy_rate(library, scale):
    """Bytes a second that a copy within the device reads and writes."""
    a, b = filled(library, size_of(scale)), filled(library, size_of(scale))
    for _ in range(3):
        a.copy_(b)
    ms = statistics.median([library.milliseconds(lambda: a.copy_(b), 5) for _ in range(7)])
    return 2 * 4 * size_of(scale) / (ms * 1e-3)


def measured(libraries, scale, rounds, match):
    flushed = [filled(lib, 1 << (26 if scale == 1 else 12)) for lib in libraries]
    for name, kind, number, amount, make in WORKLOADS:
        if not re.search(match, name):
            continue
        runs = [make(lib, scale) for lib in libraries]
        times = [[] for _ in libraries]
        for lib, run in zip(libraries, runs):
            for _ in range(3 if run else 0):
                run()
            lib.synchronize()
        for _ in range(rounds):
            for lib, run, taken, cache in zip(libraries, runs, times, flushed):
                if run is None:
                    continue
                if kind == "overhead":
                    taken.append(lib.overhead(run, 200 if scale == 1 else 5))
                else:
                    cache.fill(0) if lib.cupy else cache.zero_()
                    taken.append(lib.milliseconds(run, 1))
        yield name, kind, number, amount(scale), [statistics.median(t) if t else None for t in times]


def row_of(name, kind, number, amount, times, ceiling):
    mine, others = times[0], [t for t in times[1:] if t]
    if kind == "bandwidth":
        reached = amount / (mine * 1e-3) / ceiling
        missed = number is not None and reached < number
        text = f"{reached:.2f} of copy"
    elif kind == "rate":
        text = f"{amount / (mine * 1e-3) / 1e12:.1f} Tflop/s"
        missed = bool(others) and number is not None and min(others) / mine < number
    else:
        text = f"{1e3 * mine:.1f} us"
        missed = bool(others) and number is not None and mine > number * min(others)
    return {"name": name, "kind": kind, "number": number, "reached": text, "milliseconds": times, "missed": missed}


def table(rows, libraries, ceiling, device):
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, cwd=HERE)
    names = [lib.name for lib in libraries]
    text = ["# On a GPU", "", f"{device}; {datetime.date.today()}; commit {commit.stdout.strip()}; "
            + ", ".join(f"{lib.name} {lib.xp.__version__}" for lib in libraries)
            + f"; Python {platform.python_version()}. A copy within the device: {ceiling / 1e12:.2f} TB/s. "
            "Milliseconds, medians; numbers: parts of that copy for bandwidths, of the other library's speed else.", "",
            f"| workload | reached | number | {' | '.join(names)} |", f"|---|---|---|{'---|' * len(names)}"]
    for r in rows:
        cells = ["" if t is None else f"{t:.4f}" for t in r["milliseconds"]]
        mark = " **missed**" if r["missed"] else ""
        text.append(f"| {r['name']} | {r['reached']}{mark} | {r['number'] or ''} | {' | '.join(cells)} |")
    return "\n".join(text) + "\n"


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--against", nargs="*", default=["torch"], choices=["torch", "cupy"])
    parser.add_argument("--match", default="", help="only workloads that this expression is found in")
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--small", action="store_true", help="tiny sizes, to try the script")
    parser.add_argument("--write", action="store_true", help="into benchmarks/RESULTS-gpu.md")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)
    libraries = [Library(name) for name in ("ptcore", *options.against)]
    if not libraries[0].xp.cuda.is_available():
        raise SystemExit("gpu.py: there is no CUDA device here")
    scale = 2.0 ** -14 if options.small else 1
    ceiling = copy_rate(libraries[0], scale)
    device = libraries[0].xp.cuda.get_device_name(0)
    rows = []
    for result in measured(libraries, scale, 2 if options.small else options.rounds, options.match):
        rows.append(row_of(*result, ceiling))
        print(f"{rows[-1]['name']:55} {rows[-1]['reached']:16} {rows[-1]['milliseconds']}", flush=True)
    text = table(rows, libraries, ceiling, device)
    if options.write:
        (HERE / "RESULTS-gpu.md").write_text(text)
    else:
        print(text)
    if options.json:
        options.json.write_text(json.dumps({"device": device, "copy": ceiling, "rows": rows}, indent=1))
    return any(r["missed"] for r in rows) and not options.small


if __name__ == "__main__":
    sys.exit(main())
