"""Times named workloads in ptcore and in torch, in turn in one process, and prints ratios.

    python benchmarks/compare.py [--groups small,record,...] [--rounds 30] [--write]

Each workload is a statement over a namespace that is either library, compiled into the loop that
is timed: what remains besides the op is the loop itself, about 10 ns. All workloads of a group
take turns, ptcore and torch back to back, in windows of a few milliseconds; the minimum
of the rounds counts. Threads are set alike in both. The ratio is ptcore's time over torch's:
below 1 is faster. ``--write`` puts the table into benchmarks/RESULTS.md.
"""
import argparse
import datetime
import gc
import itertools
import os
import platform
import subprocess
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
WORKLOADS = []


def workload(group, target=None):
    """Registers ``make(xp) -> callable`` under the function's name."""
    def add(make):
        name = make.__name__.replace("_", " ")
        WORKLOADS.append((group, name, "run()", lambda xp: {"run": make(xp)}, target))
        return make
    return add


# -- small ops: 1/6; with a Python scalar 1/12; views, indexing, empty 1/5 ----------------------

def small(name, statement, target, group="small"):
    def operands(xp, grad):
        return {"xp": xp, "a": xp.randn(8, 8, requires_grad=grad), "b": xp.randn(8, 8, requires_grad=grad),
                "bias": xp.randn(8), "linear": xp.nn.functional.linear}
    WORKLOADS.append((group, name, statement, lambda xp: operands(xp, False), target))
    if group == "small":
        WORKLOADS.append(("record", name, statement, lambda xp: operands(xp, True), target))


small("add(a, b)", "xp.add(a, b)", 1 / 6)
small("a * b", "a * b", 1 / 6)
small("a * 2.0", "a * 2.0", 1 / 12)
small("a + bias", "a + bias", 1 / 6)
small("relu", "xp.relu(a)", 1 / 6)
small("exp", "xp.exp(a)", 1 / 6)
small("sum", "a.sum()", 1 / 6)
small("sum(1)", "a.sum(1)", 1 / 6)
small("mean", "a.mean()", 1 / 6)
small("softmax", "a.softmax(1)", 1 / 6)
small("a @ b", "a @ b", 1 / 6)
small("linear", "linear(a, b, bias)", 1 / 6)
small("a < b", "a < b", 1 / 6)
small("cat", "xp.cat([a, b])", 1 / 6)
small("a[1]", "a[1]", 1 / 5, "view")
small("a[1:3]", "a[1:3]", 1 / 5, "view")
small("view(-1)", "a.view(-1)", 1 / 5, "view")
small("t()", "a.t()", 1 / 5, "view")
small("unsqueeze", "a.unsqueeze(0)", 1 / 5, "view")
small("empty(8, 8)", "xp.empty(8, 8)", 1 / 5, "view")
small("zeros(8, 8)", "xp.zeros(8, 8)", 1 / 5, "view")
small("detach", "a.detach()", 1 / 5, "view")


# -- backward and small training steps: 1/8; module call 1/3 --------------------------------------

@workload("backward", 1 / 8)
def chain_of_100_mul(xp):
    x, b = xp.randn(4, requires_grad=True), xp.randn(4, requires_grad=True)
    one = xp.ones(4)

    def run():
        y = x
        for _ in range(100):
            y = y * b
        y.backward(one)
    return run


@workload("backward", 1 / 8)
def backward_of_one_node(xp):
    x = xp.randn(4, requires_grad=True)

    def run():
        x.sum().backward()
    return run


def mlp(xp, width):
    nn = xp.nn
    model = nn.Sequential(nn.Linear(16, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(),
                          nn.Linear(width, 4))
    return model, xp.randn(8, 16), xp.randn(8, 4)


def training_step(optimizer, width):
    def make(xp):
        model, x, y = mlp(xp, width)
        opt = getattr(xp.optim, optimizer)(model.parameters(), lr=1e-3)
        loss_fn = xp.nn.MSELoss()

        def run():
            opt.zero_grad()
            loss_fn(model(x), y).backward()
            opt.step()
        return run
    WORKLOADS.append(("step", f"MLP {width}, batch 8, {optimizer}", "run()", lambda xp: {"run": make(xp)}, 1 / 8))


for _width in (16, 64):
    for _optimizer in ("SGD", "Adam"):
        training_step(_optimizer, _width)


WORKLOADS.append(("step", "Identity module", "m(x)",
                  lambda xp: {"m": xp.nn.Identity(), "x": xp.randn(4)}, 1 / 3))


# -- large kernels -----------------------------------------------------------------------------------

def large(name, call, shapes):
    def make(xp):
        tensors = [xp.randn(*s) for s in shapes]
        return lambda: call(xp, *tensors)
    WORKLOADS.append(("large", name, "run()", lambda xp: {"run": make(xp)}, 1.25))


M = (1024, 1024)
large("add 1M", lambda xp, a, b: a + b, [M, M])
large("exp 1M", lambda xp, a: a.exp(), [M])
large("tanh 1M", lambda xp, a: a.tanh(), [M])
large("gelu 1M", lambda xp, a: xp.nn.functional.gelu(a), [M])
large("a + b.T 1M", lambda xp, a, b: a + b.t(), [M, M])
large("where 1M", lambda xp, a, b: xp.where(a > 0, a, b), [M, M])
large("sum all 1M", lambda xp, a: a.sum(), [M])
large("sum last 1M", lambda xp, a: a.sum(1), [M])
large("sum first 1M", lambda xp, a: a.sum(0), [M])
large("amax last 1M", lambda xp, a: a.amax(1), [M])
large("softmax 1M", lambda xp, a: a.softmax(1), [M])
large("layer_norm 1M", lambda xp, a: xp.nn.functional.layer_norm(a, (1024,)), [M])
large("cumsum 1M", lambda xp, a: a.cumsum(1), [M])
large("mm 512", lambda xp, a, b: a @ b, [(512, 512), (512, 512)])
large("linear 4 x 1024", lambda xp, a, w: xp.nn.functional.linear(a, w), [(4, 1024), M])
large("transpose copy 1M", lambda xp, a: a.t().contiguous(), [M])


# -- measuring -----------------------------------------------------------------------------------------

def looped(statement, names):
    """``loop(n)`` that runs the statement n times with nothing else between, as timeit does."""
    code = f"def loop(n, {', '.join(names)}):\n    for _ in repeat(None, n):\n        {statement}\n"
    namespace = {"repeat": itertools.repeat}
    exec(code, namespace)
    return lambda n: namespace["loop"](n, **names)


def window(loop, repeats):
    start = time.perf_counter()
    loop(repeats)
    return (time.perf_counter() - start) / repeats


def measure(entries, libraries, rounds):
    prepared = []
    for group, name, statement, make, target in entries:
        loops = [looped(statement, make(xp)) for xp in libraries]
        repeats = []
        for loop in loops:
            loop(1)
            once = max(window(loop, 3), 1e-8)
            repeats.append(max(1, int(2e-3 / once)))
        prepared.append((group, name, target, loops, repeats, [[], []]))
    gc.collect()
    for _ in range(rounds):
        for _, _, _, loops, repeats, times in prepared:
            for k in (0, 1):
                times[k].append(window(loops[k], repeats[k]))
    return [(group, name, target, min(times[0]), min(times[1]))
            for group, name, target, _, _, times in prepared]


def machine():
    model = platform.processor() or platform.machine()
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                model = line.split(":")[1].strip()
                break
    except OSError:
        pass
    return f"{model}, {os.cpu_count()} cores"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--groups", default="small,record,view,backward,step,large")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    import torch

    import ptcore
    import ptcore.nn
    import ptcore.optim
    if "autograd: compiled" not in ptcore.show_config():
        raise SystemExit("compare: this ptcore was built with -Dcompile_python=false, to be read and debugged")
    torch.set_num_threads(args.threads)
    ptcore.set_num_threads(args.threads)
    groups = args.groups.split(",")
    rows = []
    for group in groups:
        rows += measure([w for w in WORKLOADS if w[0] == group], (ptcore, torch), args.rounds)
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True,
                            text=True, cwd=HERE).stdout.strip()
    lines = [f"{machine()}; {args.threads} thread(s); torch {torch.__version__}; commit {commit}; "
             f"{datetime.date.today()}; minimum of {args.rounds} rounds", "",
             "| group | workload | ptcore us | torch us | ratio | must | |",
             "|---|---|---|---|---|---|---|"]
    for group, name, target, ours, theirs in rows:
        ratio = ours / theirs
        mark = "" if target is None or ratio <= target else "over"
        lines.append(f"| {group} | {name} | {ours * 1e6:.3f} | {theirs * 1e6:.3f} | {ratio:.3f} | "
                     f"{target:.3f} | {mark} |")
    print("\n".join(lines))
    if args.write:
        results = HERE / "RESULTS.md"
        rest = results.read_text().partition("\n# Import\n") if results.exists() else ("", "", "")
        results.write_text(
            "# ptcore against torch\n\nRatios are ptcore's time over torch's, one process, in "
            "turn. Made by `python benchmarks/compare.py --write`.\n\n" + "\n".join(lines) + "\n"
            + "".join(rest[1:]))                # import_time.py writes that part


if __name__ == "__main__":
    main()
