"""Prints names and seconds of a few calls, small and large, on one thread: the least of 30 rounds."""
import time

import ptcore as pt

pt.set_num_threads(1)
a, b, c = pt.randn(8, 8), pt.randn(1000, 1000), pt.randn(256, 256)
image, kernel = pt.randn(8, 32, 28, 28), pt.randn(32, 32, 3, 3)
net = pt.nn.Sequential(pt.nn.Linear(8, 16), pt.nn.Tanh(), pt.nn.Linear(16, 1))
work = {
    "add 8x8": lambda: a + a, "exp 8x8": a.exp, "sum 8x8": a.sum, "a[1:]": lambda: a[1:], "matmul 8x8": lambda: a @ a,
    "step": lambda: net(a).sum().backward(), "add": lambda: b + b, "exp": b.exp, "sum": b.sum,
    "softmax": lambda: b.softmax(1), "sort": b.sort, "transpose": lambda: b.T.contiguous(),
    "matmul": lambda: c @ c, "conv2d": lambda: pt.nn.functional.conv2d(image, kernel)}


def once(f, n):
    start = time.perf_counter()
    for _ in range(n):
        f()
    return (time.perf_counter() - start) / n


for name, f in work.items():
    once(f, 3)
    n = max(1, int(2e-3 / once(f, 3)))
    print(name, min(once(f, n) for _ in range(30)), sep="\t")
