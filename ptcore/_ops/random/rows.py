"""Rows: creation by kernel and random fills. Shape, dtype and device follow the kernel's own
parameters; the generator comes last."""
from ptcore._ops.table.schema import ALL, NUMERIC, REAL, nondifferentiable, structured

for _name, _params, _numbers in (
        ("arange", "start: Scalar, end: Scalar, step: Scalar", "start, end, step"),
        ("linspace", "start: Scalar, end: Scalar, steps: Int", "start, end, steps")):
    nondifferentiable(
        f"fill_{_name}({_params}, shape: Sizes, dtype: DType, device: Obj)", types=NUMERIC,
        kernel=_name, internal=True, called=_name, out="filled",
        reference=f"{_name}({_numbers})",
        doc=f"The values of {_name}.")

nondifferentiable(
    "fill_eye(shape: Sizes, dtype: DType, device: Obj)", types=ALL, kernel="eye", internal=True, called="eye",
    out="filled", reference="eye(*shape)", doc="Ones on the diagonal.")

for _name, _called, _params, _doc in (
        ("random_uniform", "rand", "low: Float, high: Float", "Uniform reals in [low, high)."),
        ("random_normal", "randn", "mean: Float, std: Float", "Normal reals."),
        ("random_exponential", "exponential", "lambd: Float", "Exponential reals."),
        ("random_integers", "randint", "low: Int, high: Int", "Uniform integers in [low, high)."),
        ("randperm_values", "randperm", "n: Int", "A random permutation.")):
    nondifferentiable(
        f"{_name}({_params}, shape: Sizes, dtype: DType, device: Obj, generator: Obj)",
        types=ALL, kernel="randperm" if _name.startswith("randperm") else _name, internal=True,
        called=_called, random=True, out="filled", reference=_name, doc=_doc)

nondifferentiable(
    "bernoulli_of(input, generator: Obj)", types=REAL, kernel="random_bernoulli", internal=True, called="bernoulli",
    random=True, layout="contiguous", out="like", reference="bernoulli",
    doc="1 with the probability that each element says, else 0.")

nondifferentiable(
    "poisson_of(input, generator: Obj)", types=REAL, kernel="random_poisson", internal=True, random=True,
    called="poisson",
    layout="contiguous", out="like", reference="poisson",
    doc="Counts with the Poisson rate that each element says.")

structured(
    "dropout_masked(input, p: Float, generator: Obj)", types=REAL, kernel="dropout",
    internal=True, called="dropout", random=True, layout="contiguous", fields=("out", "mask"),
    out="like_mask",
    jvp="rule", reference="dropout", doc="Elements zeroed with probability p, the rest scaled by 1 / (1 - p).")
