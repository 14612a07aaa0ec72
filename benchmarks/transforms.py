"""Transformations and traces beside PyTorch's, one thread: ``python benchmarks/transforms.py [--write]``.

Each row is timed in both libraries in turn, the minimum of the rounds; its bound is what it must not exceed.
``--write`` replaces TRANSFORMS.md.
"""
import argparse
import datetime
import subprocess
import time
from pathlib import Path

import compare
import measuring

HERE = Path(__file__).parent
N, BATCH, WIDTH = 1000, 64, 16


def six(x):
    return ((x * 2 + 1).sin() * x).exp().sum()



def vmap_six(lib):
    x = lib.ones(N, 8) * 0.1
    f = lib.vmap(six)
    return lambda: f(x)


def loop_six(lib):
    x = lib.ones(N, 8) * 0.1
    return lambda: lib.stack([six(row) for row in x])


def vmap_grad(lib):
    x = lib.ones(N, 8) * 0.1
    f = lib.vmap(lib.func.grad(six))
    return lambda: f(x)


def per_sample(lib):
    net = lib.nn.Sequential(lib.nn.Linear(16, 32), lib.nn.ReLU(), lib.nn.Linear(32, 4))
    params = {k: v.detach() for k, v in net.named_parameters()}
    x, y = lib.ones(BATCH, 16), lib.ones(BATCH, 4)

    def loss(p, a, b):
        return ((lib.func.functional_call(net, p, (a,)) - b) ** 2).mean()
    f = lib.vmap(lib.func.grad(loss), in_dims=(None, 0, 0))
    return lambda: f(params, x, y)


def jacobian(lib):
    w, x = lib.ones(WIDTH, WIDTH) * 0.1, lib.ones(WIDTH)
    f = lib.func.jacrev(lambda v: (w @ v).tanh())
    return lambda: f(x)


def hessian(lib):
    x = lib.ones(WIDTH)
    f = lib.func.hessian(lambda v: (v ** 3).sum())
    return lambda: f(x)


def hessian_of_layer(lib):
    w, x = lib.ones(WIDTH, WIDTH) * 0.1, lib.ones(WIDTH)
    f = lib.func.hessian(lambda v: (w @ v).tanh().sum())
    return lambda: f(x)


def vmap_grad_small(lib):
    x = lib.ones(8, 4)
    f = lib.vmap(lib.func.grad(lambda v: v.sin().sum()))
    return lambda: f(x)


def jvp_small(lib):
    x = lib.ones(8, 4)
    return lambda: lib.func.jvp(lambda v: (v * 2).sin(), (x,), (x,))


# name -> (what is timed, most of torch's time that it may take; None: said, not bound)
ROWS = {"vmap of six ops, 1000 samples": (vmap_six, 1.2), "vmap(grad) of them": (vmap_grad, 0.6),
        "per-sample gradients, two layers, batch 64": (per_sample, 0.6), "jacrev, 16 outputs": (jacobian, 0.8),
        "vmap(grad) of two ops": (vmap_grad_small, 0.15), "jvp of two ops": (jvp_small, 0.15),
        "hessian, 16 inputs, sum of cubes": (hessian, 0.25),
        "hessian, 16 inputs, sum of tanh(w @ v)": (hessian_of_layer, 0.25)}


def traced(make_fx, lib, mode, ops=100):
    """Seconds of an op of a trace of small ops."""
    x = lib.ones(8, 8)

    def f(x):
        for _ in range(ops // 2):
            x = (x + 1) * x
        return x
    trace = make_fx(f, tracing_mode=mode)
    return lambda: trace(x)


def timed(function, rounds):
    loop = measuring.looped("f()", {"f": function})
    return measuring.measure([(loop,)], rounds, time.thread_time)[0][0]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    import torch
    import torch.func

    import ptcore
    torch.set_num_threads(1)
    ptcore.set_num_threads(1)
    lines = ["| row | ptcore, us | torch, us | ratio | at most |", "|---|---|---|---|---|"]
    for name, (make, bound) in ROWS.items():
        loops = [measuring.looped("f()", {"f": make(lib)}) for lib in (ptcore, torch)]
        ours, theirs = measuring.measure([loops], args.rounds, time.thread_time)[0]
        lines.append(f"| {name} | {ours * 1e6:.1f} | {theirs * 1e6:.1f} | {ours / theirs:.3f} | {bound} |")
        print(lines[-1], flush=True)
    ours, loop = timed(vmap_six(ptcore), args.rounds), timed(loop_six(ptcore), 3)
    lines.append(f"| vmap of six ops, of ptcore's own loop | {ours * 1e6:.1f} | {loop * 1e6:.1f} | {ours / loop:.3f} | "
                 "0.1 |")
    x = ptcore.ones(8, 8)
    eager = timed(lambda: x + 1, args.rounds)
    from ptcore.fx.experimental.proxy_tensor import make_fx
    for mode in ("real", "fake", "symbolic"):
        one = timed(traced(make_fx, ptcore, mode), args.rounds) / 100
        bound = 60 if mode == "real" else ""
        lines.append(f"| make_fx, {mode}, an op, of an eager small op | {one * 1e6:.2f} | {eager * 1e6:.3f} | "
                     f"{one / eager:.1f} | {bound} |")
    print("\n".join(lines[-4:]))
    if args.write:
        commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, cwd=HERE)
        head = ("# Transformations and traces\n\n"
                f"`python benchmarks/transforms.py --write`: {compare.machine()}, one thread, {datetime.date.today()}, "
                f"{commit.stdout.strip()}, torch {torch.__version__}.\n\n")
        (HERE / "TRANSFORMS.md").write_text(head + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
