"""``flex_attention`` beside PyTorch's, compiled and eager: ``python benchmarks/flex_attention.py [--write]``.

Each row is timed in both libraries in turn, one thread, the minimum of the rounds. PyTorch has no gradients of it on
the CPU: the step of forward and backward is over ptcore's own way by all scores. ``--write`` replaces FLEX.md.
"""
import argparse
import datetime
import subprocess
import time
import warnings
from pathlib import Path

import compare
import measuring

HERE = Path(__file__).parent
BATCH, HEADS, LENGTH, WIDTH = 1, 8, 2048, 64


def masks(lib, document):
    return {"none": None, "causal": lambda b, h, q, k: q >= k, "window": lambda b, h, q, k: (q >= k) & (q - k < 256),
            "documents": lambda b, h, q, k: (document[q] == document[k]) & (q >= k)}


def scores(lib, slopes, table):
    return {"none": None, "slopes": lambda s, b, h, q, k: s - slopes[h] * (q - k),
            "soft cap": lambda s, b, h, q, k: 20 * lib.tanh(s / 20),
            "relative": lambda s, b, h, q, k: s + table[h, q - k + LENGTH]}


ROWS = [("none", "none"), ("none", "slopes"), ("causal", "none"), ("causal", "slopes"), ("causal", "soft cap"),
        ("causal", "relative"), ("window", "none"), ("window", "slopes"), ("documents", "none")]


def made(lib, mask, score):
    """(q, k, v, score_mod, block_mask) of a library."""
    from importlib import import_module
    flex = import_module(f"{lib.__name__}.nn.attention.flex_attention")
    lib.manual_seed(0)
    q, k, v = lib.randn(3, BATCH, HEADS, LENGTH, WIDTH)
    mask_mod = masks(lib, lib.arange(LENGTH) // 300)[mask]
    block_mask = None
    if mask_mod is not None:
        block_mask = flex.create_block_mask(mask_mod, None, None, LENGTH, LENGTH, device="cpu")
    return q, k, v, scores(lib, lib.linspace(0.1, 1, HEADS), lib.randn(HEADS, 2 * LENGTH))[score], block_mask


def forward(lib, function, given):
    def call():
        with lib.no_grad():
            return function(*given)
    return call


def step(function, given):
    tensors = [t.clone().requires_grad_() for t in given[:3]]
    return lambda: function(*tensors, *given[3:]).sum().backward()


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    import torch
    from torch.nn.attention import flex_attention as theirs

    import ptcore
    from ptcore.nn.attention import flex_attention as ours
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    ptcore.set_num_threads(1)
    lines = ["| mask | score | ptcore, ms | torch compiled, ms | ratio | eager, ms | step, ms | by all scores, ms |",
             "|---|---|---|---|---|---|---|---|"]
    ratios = []
    for mask, score in ROWS:
        torch.compiler.reset()              # each row is compiled anew: no limit is met
        compiled = torch.compile(theirs.flex_attention)
        a, b = made(ptcore, mask, score), made(torch, mask, score)
        loops = [measuring.looped("f()", {"f": f}) for f in (
            forward(ptcore, ours.flex_attention, a), forward(torch, compiled, b),
            forward(torch, theirs.flex_attention, b), step(ours.flex_attention, a))]
        one, two, eager, whole = measuring.measure([loops], args.rounds, time.thread_time)[0]
        before, ours.SCORES = ours.SCORES, 1 << 60
        loop = measuring.looped("f()", {"f": step(ours.flex_attention, a)})
        (composed,) = measuring.measure([[loop]], args.rounds, time.thread_time)[0]
        ours.SCORES = before
        ratios.append(one / two)
        lines.append(f"| {mask} | {score} | {one * 1e3:.1f} | {two * 1e3:.1f} | {one / two:.2f} | {eager * 1e3:.0f} | "
                     f"{whole * 1e3:.0f} | {composed * 1e3:.0f} |")
        print(lines[-1], flush=True)
    print(f"geometric mean {measuring.geometric_mean(ratios):.2f}")
    if args.write:
        commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, cwd=HERE)
        head = (f"# flex_attention\n\n`python benchmarks/flex_attention.py --write`: "
                f"{BATCH} x {HEADS} x {LENGTH} x {WIDTH}, float32, "
                f"{compare.machine()}, one thread, {datetime.date.today()}, {commit.stdout.strip()}, torch "
                f"{torch.__version__}. Geometric mean of the ratios {measuring.geometric_mean(ratios):.2f}.\n\n")
        (HERE / "FLEX.md").write_text(head + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
