"""Rows: activation functions of neural networks."""
from ptcore._ops.table.schema import FLOATING, INTEGRAL, REAL, draw, elementwise, network, spelling, uniform

elementwise(
    "relu(input)", types=INTEGRAL + REAL, formula="relu(x)", partial=["where(out <= 0, 0.0, 1.0)"],
    public=["relu", "nn.functional.relu"], inplace_argument=True, sample=uniform(-3, 3), reference="maximum(x, 0)",
    doc="""``max(0, x)``; NaN stays NaN. The derivative at 0 is 0.

>>> import ptcore
>>> ptcore.relu(ptcore.tensor([-1., 2.]))
tensor([0., 2.])
""")

elementwise(
    'gelu(input, *, approximate: "none|tanh" = "none")', types=REAL, formula="gelu_erf(x)",
    partial=["gelu_erf_grad(x)"], select={"approximate": {"tanh": "gelu_tanh"}}, cost=12,
    public=["nn.functional.gelu"], method=False, inplace=False, sample=uniform(-4, 4),
    reference="x * 0.5 * (1 + special.erf(x / sqrt(2)))", out_dtype="exact",
    doc="""Gaussian error linear unit, ``x * Phi(x)`` with the normal distribution's Phi, or
its tanh approximation.

>>> import ptcore
>>> ptcore.nn.functional.gelu(ptcore.tensor([-1., 2.]))
tensor([-0.1587,  1.9545])
""")

elementwise(
    "gelu_tanh(input)", types=REAL, formula="gelu_tanh(x)", partial=["gelu_tanh_grad(x)"],
    cost=12, internal=True, called="gelu", sample=uniform(-4, 4), out_dtype="exact",
    reference="0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3)))",
    doc="The tanh approximation of gelu.")

elementwise(
    "gelu_erf_grad(input)", types=REAL, formula="gelu_erf_grad(x)",
    partial=["0.3989422804014327 * exp(-0.5 * x * x) * (2 - x * x)"], cost=16, internal=True, called="gelu",
    sample=uniform(-4, 4),
    reference="0.5 * (1 + special.erf(x / sqrt(2))) + clip(x, -100, 100) * exp(-x * x / 2) / sqrt(2 * pi)",
    doc="Derivative of gelu.")

elementwise(
    "gelu_tanh_grad(input)", types=REAL, formula="gelu_tanh_grad(x)",
    partial=[
        "4 * sigmoid(x * (1.5957691216057308 + 0.07135481627260025 * x * x))"
        " * sigmoid(-x * (1.5957691216057308 + 0.07135481627260025 * x * x))"
        " * (0.7978845608028654 + 0.10703222440890037 * x * x"
        " + x * x * 0.10703222440890037"
        " - x * tanh(x * (0.7978845608028654 + 0.035677408136300125 * x * x))"
        " * (0.7978845608028654 + 0.10703222440890037 * x * x)**2)"], cost=16,
        internal=True, called="gelu", sample=uniform(-4, 4),
    reference="_gelu_tanh_grad(x)",
    doc="Derivative of the tanh approximation of gelu.")

elementwise(
    "softplus(input, beta=1.0, threshold=20.0)", types=REAL,
    formula="x if beta * x > threshold else log1p(exp(beta * x)) / beta",
    partial=["1 if beta * x > threshold else sigmoid(beta * x)"], cost=16, autocast=(None, "high"),
    public=["nn.functional.softplus"], method=False, inplace=False, sample=uniform(-30, 30),
    reference="where(beta * x > threshold, x, logaddexp(0, beta * x) / beta)", out_dtype="exact",
    doc="""Smooth approximation of relu, ``log(1 + exp(beta * x)) / beta``; linear above
``beta * x > threshold``.

>>> import ptcore
>>> ptcore.nn.functional.softplus(ptcore.tensor([0.]))
tensor([0.6931])
""")

elementwise(
    "silu(input)", types=FLOATING, formula="x * sigmoid(x)",
    partial=["sigmoid(x) * (1 + x * (1 - sigmoid(x)))"], exact="sigmoid(x) + x * sigmoid_slope(x)", cost=8,
    public=["nn.functional.silu"], method=False, inplace=False, inplace_argument=True, sample=uniform(-6, 6),
    reference="x / (1 + exp(-x))",
    doc="""Sigmoid linear unit, ``x * sigmoid(x)``.

>>> import ptcore
>>> ptcore.nn.functional.silu(ptcore.tensor([1.]))
tensor([0.7311])
""")

elementwise(
    "leaky_relu(input, negative_slope=0.01)", types=REAL,
    formula="x if x > 0 else x * negative_slope", partial=["where(x > 0, 1.0, negative_slope)"],
    public=["nn.functional.leaky_relu"], method=False, inplace_argument=True, sample=uniform(-3, 3),
    reference="where(x > 0, x, x * negative_slope)",
    doc="""``x`` above zero, ``negative_slope * x`` below.

>>> import ptcore
>>> ptcore.nn.functional.leaky_relu(ptcore.tensor([-1., 2.]))
tensor([-0.0100,  2.0000])
""")

_NEAR_ZERO = uniform(-4, 4)


def _guarded(signature, reference, text, example, **columns):
    """A function of nn.functional with a body that checks the arguments and calls the row named with ``_of`` added."""
    name = signature.partition("(")[0]
    columns.setdefault("out_argument", True)
    network(signature, reference, text, f"F.{name}({example[0]})", example[1], **columns)


def _activation(signature, formula, partial, reference, text, example, *, types=REAL, cost=1, public=(), method=False,
                inplace=False, inplace_argument=True, sample=_NEAR_ZERO, autocast=None, promote="default",
                out_dtype="cast"):
    """A row of nn.functional; ``public`` has further public names."""
    name = signature.partition("(")[0]
    argument, result = example
    elementwise(
        signature, types=types, formula=formula, partial=[partial], cost=cost,
        public=[*public, f"nn.functional.{name}"], method=method, inplace=inplace, inplace_argument=inplace_argument,
        sample=sample, reference=reference, autocast=autocast, promote=promote,
        out_dtype=out_dtype,
        doc=f"""{text}

>>> import ptcore
>>> ptcore.nn.functional.{name}({argument})
{result}
""")


_activation("elu(input, alpha=1.0)", "x if x > 0 else alpha * expm1(x)",
            "1.0 if x > 0 else alpha * exp(where(x >= 0, 0.0, x))",
            "where(x > 0, x, alpha * expm1(where(x > 0, 0, x)))",
            "``x`` above zero, ``alpha * (exp(x) - 1)`` below.",
            ("ptcore.tensor([-1., 2.])", "tensor([-0.6321,  2.0000])"), cost=8, inplace=True)

_activation("selu(input)", "1.0507009873554805 * x if x > 0 else 1.7580993408473766 * expm1(x)",
            "1.0507009873554805 if x > 0 else 1.7580993408473766 * exp(where(x >= 0, 0.0, x))",
            "1.0507009873554804934193349852946 * where(x > 0, x, 1.6732632423543772848170429916717"
            " * expm1(where(x > 0, 0, x)))",
            "Scaled elu, whose constants keep mean 0 and variance 1.",
            ("ptcore.tensor([-1., 2.])", "tensor([-1.1113,  2.1014])"), cost=8, inplace=True, public=["selu"])

_activation("celu(input, alpha=1.0)", "x if x > 0 else alpha * expm1(x / alpha)",
            "1.0 if x > 0 else exp(where(x >= 0, 0.0, x) / alpha)",
            "where(x > 0, x, alpha * expm1(where(x > 0, 0, x) / alpha))",
            "``x`` above zero, ``alpha * (exp(x / alpha) - 1)`` below.",
            ("ptcore.tensor([-1., 2.])", "tensor([-0.6321,  2.0000])"), cost=8, inplace=True, public=["celu"])

_activation("mish(input)", "x * tanh(softplus(x))",
            "tanh(softplus(x)) + x * (4 * sigmoid(x) * sigmoid_slope(2 * softplus(x)))",
            "x * tanh(logaddexp(0, x))", "``x * tanh(softplus(x))``.",
            ("ptcore.tensor([1.])", "tensor([0.8651])"), cost=24)

elementwise("hardtanh_of(input, min_val: Scalar = -1, max_val: Scalar = 1)",
            types=(*[t for t in INTEGRAL if not t.startswith("u")], *REAL),
            formula="min_val if x < min_val else (max_val if x > max_val else x)",
            partial=["where((x > min_val) and (x < max_val), 1.0, 0.0)"], internal=True, called="hardtanh",
            sample=_NEAR_ZERO, reference="clip(x, min_val, max_val)", node="HardtanhBackward0",
            doc="``hardtanh`` between bounds that are in order, in one pass.")
_guarded("hardtanh(input, min_val: Scalar = -1.0, max_val: Scalar = 1.0, inplace=False)", "clip(x, min_val, max_val)",
         """Elements limited to ``[min_val, max_val]``; no gradient at and beyond the bounds. Bounds of integers are
taken without their fractions.""", ("ptcore.tensor([-2., 0.5])", "tensor([-1.0000,  0.5000])"), out_argument=False)

_activation("relu6(input)", "0 if x < 0 else (6 if x > 6 else x)", "where((x > 0) and (x < 6), 1.0, 0.0)",
            "clip(x, 0, 6)",
            "Elements limited to [0, 6].", ("ptcore.tensor([-2., 8.])", "tensor([0., 6.])"), types=INTEGRAL + REAL,
            sample=uniform(-3, 9))
_activation("hardsigmoid(input)", "clamp_to_one((x + 3) / 6)",
            "where((x > -3) and (x < 3), 0.16666666666666666, 0.0)", "clip(x + 3, 0, 6) / 6",
            "``(x + 3) / 6`` limited to [0, 1].", ("ptcore.tensor([0., 4.])", "tensor([0.5000, 1.0000])"))

_activation("hardswish(input)", "x * clamp_to_one((x + 3) / 6)",
            "where(x <= -3, 0.0, where(x >= 3, 1.0, x * 0.3333333333333333 + 0.5))", "x * (clip(x + 3, 0, 6) / 6)",
            "``x * hardsigmoid(x)``.", ("ptcore.tensor([1., 4.])", "tensor([0.6667, 4.0000])"))

_activation("hardshrink(input, lambd=0.5)", "where((x >= -lambd) and (x <= lambd), 0.0, x)",
            "where((x < -lambd) or (x > lambd), 1.0, 0.0)", "where((x >= -lambd) & (x <= lambd), 0, x)",
            "0 where ``abs(x) <= lambd``, ``x`` elsewhere.", ("ptcore.tensor([0.25, -2.])", "tensor([ 0., -2.])"),
            public=["hardshrink"], method=True, inplace_argument=False, out_dtype="exact")

elementwise("softshrink_of(input, lambd: Float = 0.5)", types=REAL,
            formula="x - lambd if x > lambd else (x + lambd if x < -lambd else x * 0)",
            partial=["where((x < -lambd) or (x > lambd), 1.0, 0.0)"], internal=True, called="softshrink",
            inplace=False, sample=_NEAR_ZERO, reference="where(abs(x) <= lambd, x * 0, x - sign(x) * lambd)",
            node="SoftshrinkBackward0", out_dtype="exact",
            doc="``softshrink`` of a width that is not negative, in one pass.")
_guarded("softshrink(input, lambd: Float = 0.5)", "where(abs(x) <= lambd, x * 0, x - sign(x) * lambd)",
         "``x`` moved by ``lambd`` towards 0, which nearer ones become.",
         ("ptcore.tensor([0.25, -2.])", "tensor([ 0.0000, -1.5000])"))

_activation("tanhshrink(input)", "x - tanh(x)", "tanh(x)**2", "x - tanh(x)", "``x - tanh(x)``.",
            ("ptcore.tensor([0., 1.])", "tensor([0.0000, 0.2384])"), cost=8, inplace_argument=False, promote="float",
            types=FLOATING)

elementwise("softsign_of(input)", types=REAL, promote="float", formula="x / (1 + abs(x))",
            partial=["1 / (1 + abs(x))**2"],
            internal=True, called="softsign", inplace=False, sample=_NEAR_ZERO, reference="x / (1 + abs(x))",
            doc="``softsign`` of real numbers, in one pass.")
_guarded("softsign(input)", "x / (1 + abs(x))", "``x / (1 + abs(x))``.",
         ("ptcore.tensor([-1., 3.])", "tensor([-0.5000,  0.7500])"))

_activation("logsigmoid(input)", "log_sigmoid(x)", "sigmoid(-x)", "minimum(x, 0) - log1p(exp(-abs(x)))",
            "``log(sigmoid(x))`` without overflow.", ("ptcore.tensor([0.])", "tensor([-0.6931])"), cost=16,
            inplace_argument=False, out_dtype="exact")

_activation("threshold(input, threshold: Scalar, value: Scalar)", "value if x <= threshold else x",
            "where(x <= threshold, 0.0, 1.0)", "where(x <= threshold, value, x)",
            "``x`` above ``threshold``, ``value`` elsewhere.",
            ("ptcore.tensor([-1., 2.]), 0, 5", "tensor([5., 2.])"), types=INTEGRAL + REAL, public=["threshold"],
            inplace=True)

elementwise(
    "prelu_of(input, weight)", types=REAL, internal=True, called="prelu", formula="x if x > 0 else x * y",
    partial=["where(x > 0, 1.0, y)", "where(x > 0, 0.0, x)"], reference="where(x > 0, x, x * y)",
    node="PreluKernelBackward0", autocast="low",
    doc="``x`` above zero, ``weight * x`` below.")

elementwise(
    "gated(input, gate)", types=REAL, internal=True, called="glu", node="GluBackward0", formula="x * sigmoid(y)",
    partial=["sigmoid(y)", "x * sigmoid_slope(y)"], cost=16, sample=uniform(-6, 6),
    reference="x / (1 + exp(-y))", doc="``x`` times the sigmoid of ``y``.")

# -- activations --------------------------------------------------------------------------------
network("glu(input, dim=-1)", "_glu(x, dim)", "The first half along ``dim`` times the sigmoid of the second.",
        "F.glu(ptcore.tensor([2., 0.]))", "tensor([1.])")

network("prelu(input, weight)", "_prelu(x, y)",
        "``x`` above zero, ``weight * x`` below; one weight, or one for each channel (dim 1).",
        "F.prelu(ptcore.tensor([-1., 2.]), ptcore.tensor([0.5]))", "tensor([-0.5000,  2.0000])", public=["prelu"],
        method=True, autocast="low")

draw("rrelu(input, lower: Float = 0.125, upper: Float = 0.3333333333333333, training=False, generator: Obj = None)",
     "``x`` above zero, below it times a random slope in [lower, upper]; its mean when not training.",
     "ptcore.rrelu(ptcore.tensor([-3., 2.]), 1, 1)", "tensor([-3.,  2.])", method=False, inplace=True)

draw("rrelu_function(input, lower: Float = 0.125, upper: Float = 0.3333333333333333, training=False, inplace=False)",
     "``x`` above zero, below it times a random slope in [lower, upper]; its mean when not training.",
     "ptcore.nn.functional.rrelu(ptcore.tensor([-3., 2.]), 1, 1)", "tensor([-3.,  2.])",
     public=["nn.functional.rrelu"], called="rrelu", method=False)

spelling("rrelu_function", "rrelu_(input, lower: Float = 0.125, upper: Float = 0.3333333333333333, training=False)",
         "nn.functional", {"mutates": ("input",)}, inplace="True")
spelling("hardtanh", "hardtanh_(input, min_val: Scalar = -1.0, max_val: Scalar = 1.0)", "nn.functional",
         {"mutates": ("input",)}, inplace="True")
