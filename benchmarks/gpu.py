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


def bf16(*shape):
    return "bfloat16", shape


def f32(*shape):
    return "float32", shape


def below(n, *shape):
    return n, shape


def made(library, kind, shape, scale):
    """Normal numbers of a dtype, or whole ones below a number. Sizes are small where speed means nothing."""
    xp = library.xp
    if scale < 1:
        most = 64 if len(shape) < 3 else 16
        shape = tuple(min(n, most) for n in shape)
        kind = kind if isinstance(kind, str) else min(kind, most)
    if isinstance(kind, str):
        return xp.randn(*shape, device="cuda").to(getattr(xp, kind))
    return xp.randint(0, kind, shape, device="cuda")


# What tensors of both libraries can do: the name, the part of a copy's bandwidth (with the bytes to be moved) or of the
# other's speed, the operands, the function of the library and them. With "backward" the gradients, too.
MORE = (
    ("cumsum 16M", 0.85, 8 << 24, [f32(1 << 24)], lambda xp, x: x.cumsum(0)),
    ("cumsum 4096x4096, first dim", 0.85, 8 << 24, [f32(4096, 4096)], lambda xp, x: x.cumsum(0)),
    ("x[x > 0] of 16M", 1, None, [f32(1 << 24)], lambda xp, x: x[x > 0]),
    ("sort 16M", 1, None, [f32(1 << 24)], lambda xp, x: x.sort()),
    ("topk 50 of 64x50257", 1, None, [f32(64, 50257)], lambda xp, x: x.topk(50)),
    ("cross_entropy 8192x50257 bf16", 1, None, [bf16(8192, 50257), below(50257, 8192)],
     lambda xp, x, t: xp.nn.functional.cross_entropy(x, t)),
    ("cross_entropy 8192x50257 bf16, backward", 1, None, [bf16(8192, 50257), below(50257, 8192)],
     lambda xp, x, t: xp.nn.functional.cross_entropy(x, t)),
    ("cross_entropy 8x21x512x512, backward", 1, None, [f32(8, 21, 512, 512), below(21, 8, 512, 512)],
     lambda xp, x, t: xp.nn.functional.cross_entropy(x, t)),
    ("softmax 16384x4096 bf16", 0.85, 4 << 26, [bf16(16384, 4096)], lambda xp, x: xp.softmax(x, -1)),
    ("softmax 16384x1024 bf16, backward", 1, None, [bf16(16384, 1024)], lambda xp, x: xp.softmax(x, -1)),
    ("layer_norm 16384x4096 bf16", 0.85, 4 << 26, [bf16(16384, 4096), bf16(4096)],
     lambda xp, x, w: xp.nn.functional.layer_norm(x, w.shape, w, w)),
    ("layer_norm 16384x1024 bf16, backward", 1, None, [bf16(16384, 1024), bf16(1024)],
     lambda xp, x, w: xp.nn.functional.layer_norm(x, w.shape, w, w)),
    ("a + row bf16", 0.8, 4 << 26, [bf16(16384, 4096), bf16(4096)], lambda xp, x, y: x + y),
    ("a + column bf16", 0.8, 4 << 26, [bf16(16384, 4096), bf16(16384, 1)], lambda xp, x, y: x + y),
    ("a + a.T", 0.8, 12 << 24, [f32(4096, 4096)], lambda xp, x: x + x.t()),
    ("tanh 64M bf16", 0.9, 4 << 26, [bf16(1 << 26)], lambda xp, x: x.tanh()),
    ("exp 64M", 0.9, 8 << 26, [f32(1 << 26)], lambda xp, x: x.exp()),
    ("pow 64M bf16", 0.9, 6 << 26, [bf16(1 << 26), bf16(1 << 26)], lambda xp, x, y: x.pow(y)),
    ("equal bytes 64M", 0.9, 3 << 26, [below(9, 1 << 26), below(9, 1 << 26)], None),
    ("heads permuted 16x2048x16x64 bf16", 0.8, 4 << 25, [bf16(16, 2048, 16, 64)],
     lambda xp, x: x.transpose(1, 2).contiguous()),
    ("transpose 8192x8192 bf16", 0.8, 4 << 26, [bf16(8192, 8192)], lambda xp, x: x.t().contiguous()),
    ("embedding 64K of 50257x1024 bf16", 0.8, 4 << 26, [bf16(50257, 1024), below(50257, 1 << 16)],
     lambda xp, w, i: xp.nn.functional.embedding(i, w)),
    ("embedding 16K of 50257x1024 bf16, backward", 1, None, [bf16(50257, 1024), below(50257, 1 << 14)],
     lambda xp, w, i: xp.nn.functional.embedding(i, w)),
    ("batch_norm 64x256x56x56 bf16", 1, None, [bf16(64, 256, 56, 56), f32(256, 1, 1)],
     lambda xp, x, w: xp.nn.functional.batch_norm(x, None, None, w.flatten(), w.flatten(), True)),
    ("batch_norm 64x256x56x56 bf16, backward", 1, None, [bf16(64, 256, 56, 56), f32(256, 1, 1)],
     lambda xp, x, w: xp.nn.functional.batch_norm(x, None, None, w.flatten(), w.flatten(), True)),
    ("dropout 64M bf16", 0.8, 4 << 26, [bf16(1 << 26)], lambda xp, x: xp.nn.functional.dropout(x, 0.1)),
    ("randn_like 64M", 1, None, [f32(1 << 26)], lambda xp, x: xp.randn_like(x)),
    ("max_pool2d 64x64x112x112, backward", 1, None, [f32(64, 64, 112, 112)],
     lambda xp, x: xp.nn.functional.max_pool2d(x, 3, 2, 1)),
    ("conv2d 256 to 256 channels, 3x3 of 28x28, batch 64, bf16", 1, None, [bf16(64, 256, 28, 28), bf16(256, 256, 3, 3)],
     lambda xp, x, w: xp.nn.functional.conv2d(x, w, padding=1)),
    ("attention 4x16x2048x64 causal bf16", 1, None, [bf16(4, 16, 2048, 64)],
     lambda xp, x: xp.nn.functional.scaled_dot_product_attention(x, x, x, is_causal=True)),
    ("attention 4x16x2048x64 causal bf16, backward", 1, None, [bf16(4, 16, 2048, 64)],
     lambda xp, x: xp.nn.functional.scaled_dot_product_attention(x, x, x, is_causal=True)),
    ("linear with bias 8192x4096x4096 bf16", 0.98, None, [bf16(8192, 4096), bf16(4096, 4096), bf16(4096)],
     lambda xp, x, w, b: xp.nn.functional.linear(x, w, b)),
    ("rfft of 4096x4096", 1, None, [f32(4096, 4096)], lambda xp, x: xp.fft.rfft(x)),
    ("fft2 of 64x512x512", 1, None, [f32(64, 512, 512)], lambda xp, x: xp.fft.fft2(x)),
    ("irfft2 of rfft2 of 64x512x512, backward", 1, None, [f32(64, 512, 512)],
     lambda xp, x: xp.fft.irfft2(xp.fft.rfft2(x))),
    ("linalg: solve 2048x2048", 1, None, [f32(2048, 2048), f32(2048, 16)], lambda xp, x, y: xp.linalg.solve(x, y)),
    ("linalg: inv of 16K of 16x16", 1, None, [f32(1 << 14, 16, 16)], lambda xp, x: xp.linalg.inv(x)),
    ("linalg: cholesky 4096x4096", 1, None, [f32(4096, 4096)],
     lambda xp, x: xp.linalg.cholesky_ex(x @ x.mT + 4096 * xp.eye(x.shape[0], device="cuda"))[0]),
    ("linalg: solve_triangular of 64 of 256x256", 1, None, [f32(64, 256, 256)],
     lambda xp, x: xp.linalg.solve_triangular(x, x, upper=True)),
    ("linalg: qr 4096x256", 1, None, [f32(4096, 256)], lambda xp, x: xp.linalg.qr(x)[0]),
    ("linalg: svd 512x512", 1, None, [f32(512, 512)], lambda xp, x: xp.linalg.svd(x)[1]),
    ("linalg: svd of 16K of 3x3", 1, None, [f32(1 << 14, 3, 3)], lambda xp, x: xp.linalg.svd(x)[1]),
    ("linalg: eigh 1024x1024", 1, None, [f32(1024, 1024)], lambda xp, x: xp.linalg.eigh(x)[0]),
    ("linalg: eigh of 4K of 16x16", 1, None, [f32(1 << 12, 16, 16)], lambda xp, x: xp.linalg.eigh(x)[0]),
    ("linalg: det of 16K of 16x16", 1, None, [f32(1 << 14, 16, 16)], lambda xp, x: xp.linalg.det(x)),
    ("linalg: matrix_exp of 256 of 64x64", 1, None, [f32(256, 64, 64)], lambda xp, x: xp.linalg.matrix_exp(x)),
    ("dot 16M", 1, None, [f32(1 << 24), f32(1 << 24)], lambda xp, x, y: x.dot(y)),
)

for _name, _number, _bytes, _operands, _f in MORE:
    @workload(_name, "bandwidth" if _bytes else "time", _number if _bytes else 1 / _number, lambda s, b=_bytes: b)
    def _more(library, scale, name=_name, operands=_operands, f=_f):
        if library.cupy:
            return None
        xp, tensors = library.xp, [made(library, *o, scale) for o in operands]
        if f is None:
            x, y = (t.to(xp.uint8) for t in tensors)
            return lambda: x == y
        if not name.endswith("backward"):
            return lambda: f(xp, *tensors)
        leaves = [t.requires_grad_() for t in tensors if t.dtype.is_floating_point]
        gradient = xp.ones_like(f(xp, *tensors))

        def run():
            for leaf in leaves:
                leaf.grad = None
            f(xp, *tensors).backward(gradient)
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
        path = HERE / "RESULTS-gpu.md"
        _, heading, others = path.read_text().partition("\n## ")        # the other sections stay
        path.write_text(text + heading + others)
    else:
        print(text)
    if options.json:
        options.json.write_text(json.dumps({"device": device, "copy": ceiling, "rows": rows}, indent=1))
    return any(r["missed"] for r in rows) and not options.small


if __name__ == "__main__":
    sys.exit(main())
