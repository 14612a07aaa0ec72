"""``python one_sample.py TESTS write FILE`` or ``check FILE``: each row on one sample, beside another machine.

The samples and the rows that have gradients are those of tests/ops. What a row gives for the first of its small cases,
in float64 or the first dtype that it has, and its gradients for ones, must be near what the other machine wrote.
Random numbers must be equal, bit for bit, but for those that are functions of uniform ones (CLOSE), which are near.
"""
import sys
from pathlib import Path

TESTS = Path(sys.argv[1])
sys.path[:0] = [str(TESTS), str(TESTS / "ops")]

import numpy as np  # noqa: E402
from _cases import ROWS, Sample, cases, dtypes, function  # noqa: E402
from test_gradient import ROWS_UNDER_TEST, differentiable_arguments, small_cases  # noqa: E402

import ptcore as pt  # noqa: E402

DRAWS = {
    "rand": lambda: pt.rand(1000), "rand of doubles": lambda: pt.rand(1000, dtype=pt.float64),
    "randint": lambda: pt.randint(-7, 1000, (1000,)), "randperm": lambda: pt.randperm(1000),
    "bernoulli": lambda: pt.bernoulli(pt.full((1000,), 0.3)), "randn": lambda: pt.randn(1000),
    "randn of doubles": lambda: pt.randn(1000, dtype=pt.float64), "random_": lambda: pt.empty(1000).random_(),
    "multinomial": lambda: pt.multinomial(pt.arange(1.0, 9.0), 1000, replacement=True),
    "exponential_": lambda: pt.empty(1000).exponential_(), "geometric_": lambda: pt.empty(1000).geometric_(0.2),
    "cauchy_": lambda: pt.empty(1000).cauchy_(), "log_normal_": lambda: pt.empty(1000).log_normal_(),
    "poisson": lambda: pt.poisson(pt.full((1000,), 4.0)),
    "dropout": lambda: pt.nn.functional.dropout(pt.ones(1000), 0.3),
}
CLOSE = ("randn", "randn of doubles", "exponential_", "cauchy_", "log_normal_")


def tensors_of(result):
    """The tensors of a result of a row, in order."""
    if isinstance(result, pt.Tensor):
        return [result]
    if isinstance(result, (tuple, list)):
        return [t for r in result for t in tensors_of(r)]
    return [pt.tensor(result)] if isinstance(result, (bool, int, float)) else []


def of_row(row, graded):
    """Results and gradients of a row's first case; None where it has no case."""
    if graded and "float64" in dtypes(row):
        for case in small_cases(row):
            call, inputs = differentiable_arguments(row, case, "float64", "contiguous")
            if inputs:
                results = tensors_of(call(*inputs))
                lossy = [r for r in results if r.requires_grad]
                ones = [pt.ones_like(r) for r in lossy]
                grads = pt.autograd.grad(lossy, inputs, ones, allow_unused=True) if lossy else ()
                return [*(r.detach() for r in results), *(g for g in grads if g is not None)]
    for case in cases(row)[:1]:
        dtype = "float64" if "float64" in dtypes(row) else dtypes(row)[0]
        positional, keyword = Sample(row, case, dtype, np.random.default_rng(7)).arguments("contiguous")
        return tensors_of(function(row)(*positional, **keyword))
    return None


def collect():
    """Name: tensors, of each row, and of each kind of random numbers."""
    graded = {row.name for row in ROWS_UNDER_TEST}
    found = {}
    for name, row in ROWS.items():
        results = of_row(row, name in graded)
        if results is not None:
            found[name] = [r.contiguous() for r in results]
    for name, draw in DRAWS.items():
        pt.manual_seed(20)
        found[f"random {name}"] = [draw()]
    return found


def differs(name, ours, theirs):
    """What differs, or None. Where a decomposition has a sign or a phase to choose, magnitudes count."""
    if len(ours) != len(theirs):
        return f"{len(ours)} tensors, {len(theirs)} there"
    for a, b in zip(ours, theirs):
        if (a.dtype, a.shape) != (b.dtype, b.shape):
            return f"{a.dtype} {tuple(a.shape)}, {b.dtype} {tuple(b.shape)} there"
        if name.startswith("random ") and name[7:] not in CLOSE:
            if not pt.equal(a, b):
                return f"{int((a != b).sum())} of {a.numel()} random numbers"
            continue
        if a.dtype.kind not in "fc":
            if not pt.equal(a, b):
                return "other whole numbers"
            continue
        limit = 1e-9 if a.dtype in (pt.float64, pt.complex128) else 1e-5
        if not pt.allclose(a, b, rtol=limit, atol=limit, equal_nan=True):
            return f"by {(a - b).abs().max().item():.2g}"
    return None


def main(action, path):
    """The exit status."""
    pt.set_num_threads(1)
    found = collect()
    if action == "write":
        pt.save(found, path)
        print(f"{len(found)} rows and kinds of random numbers written")
        return 0
    theirs = pt.load(path)
    wrong = [f"{name}: {text}" for name in sorted(found.keys() | theirs.keys())
             if (text := differs(name, found.get(name, []), theirs.get(name, [])))]
    exact = sum(all(pt.equal(a, b) for a, b in zip(found[n], theirs[n])) for n in found if n.startswith("random "))
    print("\n".join(wrong))
    print(f"{len(found) - len(DRAWS)} rows near, {exact} of {len(DRAWS)} kinds of random numbers equal bit for bit: "
          f"{len(wrong)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[2:4]))
