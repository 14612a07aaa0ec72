"""Rows: creation by kernel, random fills, draws from distributions, dropout."""
from ptcore._ops.table.schema import ALL, NUMERIC, REAL, draw, nondifferentiable, structured

for _name, _params, _numbers in (
        ("arange", "start: Scalar, end: Scalar, step: Scalar", "start, end, step"),
        ("linspace", "start: Scalar, end: Scalar, steps: Int", "start, end, steps")):
    nondifferentiable(
        f"fill_{_name}({_params}, shape: Sizes, dtype: DType, device: Obj)", types=NUMERIC,
        kernel=_name, internal=True, called=_name, out="of_sizes",
        reference=f"{_name}({_numbers})",
        doc=f"The values of {_name}.")

nondifferentiable(
    "fill_full(value: Scalar, shape: Sizes, dtype: DType, device: Obj)", types=ALL, kernel="full", internal=True,
    called="full", out="of_sizes", reference="full(shape, value)",
    doc="One value everywhere: what interpreters are offered where memory is made, with 0 where its content is not "
        "asked for.")

nondifferentiable(
    "fill_eye(shape: Sizes, dtype: DType, device: Obj)", types=ALL, kernel="eye", internal=True, called="eye",
    out="of_sizes", reference="eye(*shape)", doc="Ones on the diagonal.")

for _name, _called, _params, _doc in (
        ("random_uniform", "rand", "low: Float, high: Float", "Uniform reals in [low, high)."),
        ("random_normal", "randn", "mean: Float, std: Float", "Normal reals."),
        ("random_exponential", "exponential", "lambd: Float", "Exponential reals."),
        ("random_integers", "randint", "low: Int, high: Int", "Uniform integers in [low, high)."),
        ("random_one_by_one", "normal_", "mean: Float, std: Float",
         "Normal reals as PyTorch draws them into memory that is not row-major."),
        ("random_log_normal", "log_normal_", "mean: Float, std: Float", "Reals of normal logarithms, as PyTorch's."),
        ("random_cauchy", "cauchy_", "median: Float, sigma: Float", "Reals of the Cauchy distribution, as PyTorch's."),
        ("random_geometric", "geometric_", "p: Float", "Trials up to the first success, as PyTorch's."),
        ("random_whole", "random_", "", "Uniform integers up to the dtype's largest, as PyTorch's."),
        ("random_bernoulli_number", "bernoulli_", "p: Float", "1 with one probability, else 0, as PyTorch's."),
        ("randperm_values", "randperm", "n: Int", "A random permutation.")):
    nondifferentiable(
        f"{_name}({_params}{', ' if _params else ''}shape: Sizes, dtype: DType, device: Obj, generator: Obj)",
        types=ALL, kernel="randperm" if _name.startswith("randperm") else _name, internal=True,
        called=_called, random=True, out="of_sizes", reference=_name, doc=_doc)

structured(
    "bernoulli_of(input, generator: Obj)", types=REAL, vjp=["zeros_for(g, x.shape)"], jvp=None,
    kernel="random_bernoulli", internal=True, called="bernoulli",
    random=True, layout="contiguous", out="as_input", reference="bernoulli", out_dtype="any",
    doc="1 with the probability that each element says, else 0.")

nondifferentiable(
    "rrelu_noise(input, lower: Float, upper: Float, generator: Obj)", types=REAL, kernel="rrelu_noise", internal=True,
    random=True, called="rrelu", layout="contiguous", out="as_input", reference="rrelu_noise",
    doc="1 for positive elements; a slope in [lower, upper) for the others, the only ones that PyTorch draws for.")

nondifferentiable(
    "random_gamma(input, generator: Obj)", types=REAL, kernel="random_gamma", internal=True, random=True,
    called="standard_gamma", layout="contiguous", out="as_input", reference="random_gamma",
    doc="Gamma variables of these concentrations and rate 1, as PyTorch's.")

nondifferentiable(
    "random_places(input, shares, single: Bool)", types=REAL, kernel="random_places", internal=True,
    called="multinomial", layout="contiguous", out="cast(shares, INT64)", reference="_random_places(x, y, single)",
    doc="Where shares lie among the running sums of weights, which are rounded to float32 if ``single``.")

structured(
    "poisson_of(input, generator: Obj)", types=REAL, vjp=["zeros_for(g, x.shape)"], jvp=None,
    kernel="random_poisson", internal=True, random=True,
    called="poisson",
    layout="contiguous", out="as_input", reference="poisson",
    doc="Counts with the Poisson rate that each element says.")

nondifferentiable(
    "binomial_of(count, prob, generator: Obj)", types=REAL, kernel="random_binomial", internal=True, random=True,
    called="binomial", layout="contiguous", out="as_input(count)", reference="binomial",
    doc="Successes of that many trials, each with that probability; one shape and dtype.")

structured(
    "dropout_masked(input, p: Float, generator: Obj)", types=REAL, kernel="dropout",
    internal=True, called="dropout", random=True, layout="contiguous", fields=("out", "mask"),
    out="with_mask", keeps="layout",
    jvp="rule", reference="dropout", doc="Elements zeroed with probability p, the rest scaled by 1 / (1 - p).")

draw("multinomial(input, num_samples: Int, replacement=False, *, generator: Obj = None)",
     "Positions drawn with the probabilities, up to a factor, that each row of ``input`` holds.",
     "ptcore.multinomial(ptcore.tensor([0., 1.]), 1)", "tensor([1])", out_argument=True)

draw("poisson(input, generator: Obj = None)", "Counts with the Poisson rate that each element says.",
     "ptcore.poisson(ptcore.zeros(2))", "tensor([0., 0.])", method=False)

draw("binomial(count, prob, generator: Obj = None)",
     "How many of ``count`` trials succeed, each with probability ``prob``; the two broadcast.",
     "ptcore.binomial(ptcore.tensor([5.]), ptcore.tensor([1.]))", "tensor([5.])", method=False)

for _name, _text in (("dropout", "Elements"), ("feature_dropout", "Whole channels (dim 1)")):
    draw(f"{_name}(input, p: Float, train: Bool)",
         f"{_text} zeroed with probability ``p`` and the others scaled by ``1 / (1 - p)`` when ``train``.",
         f"ptcore.{_name}(ptcore.ones(1, 2), 0.5, False)", "tensor([[1., 1.]])", method=False, inplace=True)

draw("native_dropout(input, p: Float, train: Obj)",
     """``dropout`` and the mask of what it kept; ``train`` is a bool or None, which means True.""",
     "ptcore.native_dropout(ptcore.ones(2), 0.5, False)", "(tensor([1., 1.]), tensor([True, True]))", method=False,
     out_argument=True, returns="tuple[Tensor, Tensor]")

draw("dropout_function(input, p: Float = 0.5, training=True, inplace=False)",
     "Elements zeroed with probability ``p`` and the others scaled by ``1 / (1 - p)`` when ``training``.",
     "ptcore.nn.functional.dropout(ptcore.ones(3), training=False)", "tensor([1., 1., 1.])",
     public=["nn.functional.dropout"], called="dropout", method=False)

for _name, _text in (("alpha_dropout", "Elements"), ("feature_alpha_dropout", "Whole channels (dim 1)")):
    draw(f"{_name}(input, p: Float, train: Bool)",
         f"{_text} set to selu's lower limit with probability ``p`` when ``train``; mean and variance are kept.",
         f"ptcore.{_name}(ptcore.ones(1, 2), 0.5, False)", "tensor([[1., 1.]])", method=False, inplace=True)
    draw(f"{_name}_function(input, p: Float = 0.5, training=False, inplace=False)",
         f"{_text} set to selu's lower limit with probability ``p`` when ``training``; mean and variance are kept.",
         f"ptcore.nn.functional.{_name}(ptcore.ones(1, 2))", "tensor([[1., 1.]])",
         public=[f"nn.functional.{_name}"], called=_name, method=False)

for _k in (1, 2, 3):
    draw(f"dropout{_k}d(input, p: Float = 0.5, training=True, inplace=False)",
         f"Whole channels zeroed with probability ``p`` and the others scaled by ``1 / (1 - p)``; {_k} spatial dims.",
         f"ptcore.nn.functional.dropout{_k}d(ptcore.ones(1, 2, {', '.join('1' * _k)}), training=False).numel()", "2",
         public=[f"nn.functional.dropout{_k}d"], method=False)
