"""Peak memory of a forward and a backward, ptcore's over torch's: elementwise and reducing ops, and others by name.

    python benchmarks/memory.py [--only REGEX] [--above 1.2] [--every K]

Each library measures in a process of its own, by the resident memory that Linux reports (``VmHWM``), with glibc's
allocator set to give large blocks back at once. The peak counts the inputs, the incoming gradient and whatever the call
and its backward add; a first run brings code, caches and thread pools into memory before. Ops that share the group
``table`` with compare.py are called on tensors of 1024 x 1024.
"""
import argparse
import ctypes
import gc
import os
import pickle
import re
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
from measuring import geometric_mean
from workloads import calls, table
from workloads.calls import Call, Data, Unfit

SIZE = 1024
PR_SET_THP_DISABLE = 41
SLACK = 1 << 20         # bytes: pages that differ from run to run


def T(*shape, grad=True, kind="float32", low=-1.0, high=1.0):
    rng = np.random.default_rng(0)
    if kind.startswith("int"):
        return Data(rng.integers(low, high, shape).astype(kind))
    if kind == "bool":
        return Data(rng.random(shape) < 0.5)
    return Data(rng.uniform(low, high, shape).astype(kind), grad)


def of(path, *args, **kwargs):
    return Call(path, args, kwargs)


def named():
    """Calls of other ops, by the name under which they are printed."""
    x, y, image = T(1000, 1000), T(1000, 1000), T(8, 16, 64, 64)
    target, chances = T(1000, 1000, grad=False), T(1000, 1000, grad=False, low=0, high=1)
    mask, rows = T(1000, 1000, kind="bool"), T(1000, kind="int64", low=0, high=1000)
    index = T(1000, 1000, kind="int64", low=0, high=1000)
    classes = T(1000, kind="int64", low=0, high=1000)
    F = "nn.functional."
    losses = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "soft_margin_loss", "hinge_embedding_loss",
              "kl_div", "poisson_nll_loss")
    made = {
        "mm": of("mm", x, y), "bmm": of("bmm", T(8, 256, 256), T(8, 256, 256)),
        "matmul of 4 dims": of("matmul", T(4, 4, 128, 128), T(4, 4, 128, 128)),
        "linear": of(F + "linear", x, y, T(1000)), "addmm": of("addmm", x, y, y),
        "outer": of("outer", T(1000), T(1000)), "einsum": of("einsum", "ij,jk->ki", x, y),
        "cdist, p=1": of("cdist", T(1000, 64), T(1000, 64), p=1.0),
        "cdist, p=2": of("cdist", T(2000, 16), T(2000, 16)),
        "pdist": of(F + "pdist", T(1500, 16)),
        "cosine_similarity": of(F + "cosine_similarity", x, y, dim=1),
        "cat": of("cat", [T(500, 1000), T(500, 1000)]), "stack": of("stack", [T(1000, 500), T(1000, 500)]),
        "roll": of("roll", x, 3, 0), "flip": of("flip", x, [0]), "repeat": of("Tensor.repeat", T(500, 500), 2, 2),
        "tile": of("tile", T(500, 500), (2, 2)), "rot90": of("rot90", x), "tril": of("tril", x),
        "repeat_interleave": of("repeat_interleave", T(500, 1000), 2, 0), "kron": of("kron", T(30, 30), T(30, 30)),
        "where": of("where", mask, x, y), "masked_fill": of("masked_fill", x, mask, 0.5),
        "masked_select": of("masked_select", x, mask), "masked_scatter": of("masked_scatter", x, mask, y),
        "x[mask]": of("Tensor.__getitem__", x, mask), "x[rows]": of("Tensor.__getitem__", x, rows),
        "index_select": of("index_select", x, 0, rows), "gather": of("gather", x, 1, index),
        "scatter": of("scatter", x, 1, index, y), "take": of("take", x, index),
        "scatter_add": of("scatter_add", x, 1, index, y),
        "index_add": of("index_add", x, 0, rows, y),
        "index_copy": of("index_copy", x, 0, rows, y), "index_fill": of("index_fill", x, 0, rows, 0.5),
        "take_along_dim": of("take_along_dim", x, index, 1), "diagonal_scatter": of("diagonal_scatter", x, T(1000)),
        "embedding": of(F + "embedding", rows, y),
        "sort": of("sort", x, 1), "topk": of("topk", x, 10), "kthvalue": of("kthvalue", x, 10), "msort": of("msort", x),
        "cumsum": of("cumsum", x, 1), "cumprod": of("cumprod", x, 1), "cummax": of("cummax", x, 1),
        "logcumsumexp": of("logcumsumexp", x, 1), "diff": of("diff", x), "trapezoid": of("trapezoid", x),
        "renorm": of("renorm", x, 2, 0, 1.0), "softmax": of("softmax", x, 1),
        "log_softmax": of("log_softmax", x, 1), "normalize": of(F + "normalize", x),
        "layer_norm": of(F + "layer_norm", x, [1000], T(1000), T(1000)),
        "rms_norm": of(F + "rms_norm", x, [1000], T(1000)),
        "batch_norm": of(F + "batch_norm", image, None, None, T(16), T(16), True),
        "instance_norm": of(F + "instance_norm", image), "group_norm": of(F + "group_norm", image, 4, T(16), T(16)),
        "local_response_norm": of(F + "local_response_norm", image, 3), "dropout": of("dropout", x, 0.5, True),
        "glu": of(F + "glu", x), "prelu": of(F + "prelu", image, T(16)), "gumbel_softmax": of(F + "gumbel_softmax", x),
        "cross_entropy": of(F + "cross_entropy", x, classes), "nll_loss": of(F + "nll_loss", x, classes),
        "multi_margin_loss": of(F + "multi_margin_loss", x, classes),
        "binary_cross_entropy": of(F + "binary_cross_entropy", T(1000, 1000, low=0.1, high=0.9),
                                   chances),
        "binary_cross_entropy_with_logits": of(F + "binary_cross_entropy_with_logits", x, chances),
        **{name: of(F + name, x, target) for name in losses},
        "gaussian_nll_loss": of(F + "gaussian_nll_loss", x, target, T(1000, 1000, low=0.1)),
        "conv1d": of(F + "conv1d", T(8, 16, 4096), T(16, 16, 3), T(16), padding=1),
        "conv2d": of(F + "conv2d", image, T(16, 16, 3, 3), T(16), padding=1),
        "conv3d": of(F + "conv3d", T(2, 8, 16, 32, 32), T(8, 8, 3, 3, 3), T(8), padding=1),
        "conv_transpose2d": of(F + "conv_transpose2d", image, T(16, 16, 3, 3), T(16), padding=1),
        **{f"{kind}_pool2d": of(F + f"{kind}_pool2d", image, 2) for kind in ("max", "avg")},
        "adaptive_avg_pool2d": of(F + "adaptive_avg_pool2d", image, 8), "lp_pool2d": of(F + "lp_pool2d", image, 2.0, 2),
        "adaptive_max_pool2d": of(F + "adaptive_max_pool2d", image, 8),
        **{f"interpolate, {mode}": of(F + "interpolate", image, scale_factor=2, mode=mode)
           for mode in ("nearest", "bilinear", "bicubic")},
        "grid_sample": of(F + "grid_sample", image, T(8, 64, 64, 2), align_corners=False),
        "pad, constant": of(F + "pad", image, [1, 1, 1, 1]),
        "pad, reflect": of(F + "pad", image, [1, 1, 1, 1], mode="reflect"),
        "pad, circular": of(F + "pad", image, [1, 1, 1, 1], mode="circular"),
        "pixel_shuffle": of(F + "pixel_shuffle", image, 2), "unfold": of(F + "unfold", T(4, 4, 64, 64), 3),
        "fold": of(F + "fold", T(4, 36, 3844), [64, 64], 3),
        "scaled_dot_product_attention": of(F + "scaled_dot_product_attention", *[T(4, 4, 512, 64)] * 3),
        "fft": of("fft.fft", T(1000, 1024)), "rfft": of("fft.rfft", T(1000, 1024)),
        "linalg.inv": of("linalg.inv", Data((np.eye(500) * 30 + T(500, 500).array).astype(np.float32), True)),
        "exp of float64": of("exp", T(1000, 1000, kind="float64")),
        "lerp": of("lerp", x, y, 0.3), "addcmul": of("addcmul", x, y, y),
        "float64 beside float32": of("mul", x, T(1000, 1000, kind="float64")), "to float64": of("Tensor.double", x),
    }
    return made


def generated():
    """Elementwise and reducing ops of the group ``table``."""
    import torch

    import ptcore
    entries, _ = table.entries(ptcore, torch)
    for entry in entries:
        if entry.kind is None or entry.hosted:
            continue
        try:
            call = table.settled(entry, (ptcore, torch), True)[0]
        except Unfit:
            continue
        if not call.data():
            continue
        if entry.kind == "elementwise":
            yield entry.name, call, True
        else:
            data = Data(call.data()[0].array.astype(np.float32), True)
            x = Call(entry.path, [data, *table.REDUCING.get(entry.path, [])])
            for suffix, extra in (("", {}), (", dim=0", {"dim": 0}), (", dim=1", {"dim": 1})):
                form = Call(x.path, x.args, extra)
                try:
                    form.enlarged(np.random.default_rng(0)).run(torch)
                except Exception:       # torch takes no dim, or wants one
                    continue
                yield entry.name + suffix, form, True


# -- in a process of one library -------------------------------------------------------------------

def status(key):
    return int(re.search(rf"{key}:\s+(\d+)", Path("/proc/self/status").read_text())[1]) * 1024


def tensors(value, kind):
    if isinstance(value, (list, tuple)):
        return [x for part in value for x in tensors(part, kind)]
    return [value] if isinstance(value, kind) else []


def peak(xp, call):
    """(bytes of inputs and incoming gradients, bytes that the forward and the backward add at their highest)."""
    text, names, leaves = call.prepared(xp, True)
    code = compile(text, "<call>", "eval")

    def outputs():
        found = [t for t in tensors(eval(code, names), xp.Tensor) if t.requires_grad and t.grad_fn is not None]
        return found[:1]

    gradients = [xp.ones_like(t.detach()) for t in outputs()] if leaves else []

    def run():
        if not leaves:
            return eval(code, names)
        out = outputs()
        if out:
            xp.autograd.backward(out, gradients)
        return None

    run()
    for leaf in leaves:
        leaf.grad = None
    gc.collect()
    if hasattr(xp.cpu, "empty_cache"):
        xp.cpu.empty_cache()
    held = {id(t): t for t in [*tensors(list(names.values()), xp.Tensor), *gradients]}.values()
    given = sum(t.numel() * t.element_size() for t in held)
    Path("/proc/self/clear_refs").write_text("5")
    before = status("VmRSS")
    result = run()
    after = status("VmHWM")
    del result
    return given, after - before


def child(library, source, target):
    warnings.simplefilter("ignore")
    ctypes.CDLL(None).prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0)     # pages of 2 MB would be counted whole
    xp = __import__(library)
    for name in ("fft", "linalg", "nn", "nn.functional", "special"):
        __import__(f"{library}.{name}")
    xp.set_num_threads(1)
    rng = np.random.default_rng(0)
    calls.SIZE = SIZE
    found = {}
    for name, call, enlarge in pickle.loads(Path(source).read_bytes()):
        try:
            found[name] = peak(xp, call.enlarged(rng) if enlarge else call)
        except Exception as e:
            found[name] = f"{type(e).__name__}: {e}"
    Path(target).write_bytes(pickle.dumps(found))


# -- both ------------------------------------------------------------------------------------------

def measured(pattern="", every=1, always=()):
    """{name: ((given, added) of ptcore, of torch)}, or a text where a call was refused.

    Of the calls that match only each ``every``-th is made, beside those that ``always`` names.
    """
    work = [(name, call, False) for name, call in named().items()] + list(generated())
    work = [w for w in work if re.search(pattern, w[0])]
    work = [w for i, w in enumerate(work) if i % every == 0 or w[0] in always]
    targets = []
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "calls")
        source.write_bytes(pickle.dumps(work))
        environment = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536",
                       "PYTHONPATH": str(Path(__file__).parent)}
        children = []
        for library in ("ptcore", "torch"):             # side by side: a process's memory is its own
            targets.append(Path(folder, library))
            command = [sys.executable, "-P", __file__, "--child", library, str(source), str(targets[-1])]
            children.append(subprocess.Popen(command, env=environment))
        if failed := [c.args for c in children if c.wait()]:
            raise RuntimeError(f"{failed[0]} failed")
        found = [pickle.loads(target.read_bytes()) for target in targets]
    return {name: (found[0][name], found[1][name]) for name, *_ in work}


def ratio(pair):
    """Ours over torch's, of inputs, gradients and what is added; a text if one of them refused the call."""
    for side in pair:
        if isinstance(side, str):
            return side
    (given, ours), (_, theirs) = pair
    return max(given + ours - SLACK, given) / (given + theirs)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", metavar="REGEX")
    parser.add_argument("--above", type=float, default=0.0)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        return child(*args.child)
    found = measured(args.only, args.every)
    rows = {name: (ratio(pair), pair) for name, pair in found.items()}
    for name, (value, pair) in sorted(rows.items(), key=lambda r: r[1][0] if isinstance(r[1][0], float) else 0):
        if isinstance(value, str):
            print(f"{name:44}{value[:100]}")
        elif value >= args.above:
            (given, ours), (_, theirs) = pair
            print(f"{name:44}{value:6.2f}   given {given / 1e6:6.1f} MB, added {ours / 1e6:7.1f}, "
                  f"torch {theirs / 1e6:7.1f}")
    values = [v for v, _ in rows.values() if isinstance(v, float)]
    print(f"{len(values)} calls, geometric mean {geometric_mean(values):.3f}, {sum(v > 1.2 for v in values)} above 1.2")


if __name__ == "__main__":
    main()
