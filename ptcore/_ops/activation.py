"""Rows: activation functions of neural networks."""
from ptcore._ops._schema import INTEGRAL, REAL, elementwise, uniform

elementwise(
    "relu(input)", types=INTEGRAL + REAL, formula="relu(x)", partial=["where(out <= 0, 0.0, 1.0)"],
    public=["relu", "nn.functional.relu"], sample=uniform(-3, 3), reference="maximum(x, 0)",
    doc="""``max(0, x)``; NaN stays NaN. The derivative at 0 is 0.

>>> import ptcore
>>> ptcore.relu(ptcore.tensor([-1., 2.]))
tensor([0., 2.])
""")

elementwise(
    'gelu(input, *, approximate: "none|tanh" = "none")', types=REAL, formula="gelu_erf(x)",
    partial=["gelu_erf_grad(x)"], select={"approximate": {"tanh": "gelu_tanh"}}, cost=12,
    public=["nn.functional.gelu"], method=False, inplace=False, sample=uniform(-4, 4),
    reference="x * 0.5 * (1 + special.erf(x / sqrt(2)))",
    doc="""Gaussian error linear unit, ``x * Phi(x)`` with the normal distribution's Phi, or
its tanh approximation.

>>> import ptcore
>>> ptcore.nn.functional.gelu(ptcore.tensor([-1., 2.]))
tensor([-0.1587,  1.9545])
""")

elementwise(
    "gelu_tanh(input)", types=REAL, formula="gelu_tanh(x)", partial=["gelu_tanh_grad(x)"],
    cost=12, internal=True, called="gelu", sample=uniform(-4, 4),
    reference="0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3)))",
    doc="The tanh approximation of gelu.")

elementwise(
    "gelu_erf_grad(input)", types=REAL, formula="gelu_erf_grad(x)",
    partial=["0.3989422804014327 * exp(-0.5 * x * x) * (2 - x * x)"], cost=16, internal=True, called="gelu",
    sample=uniform(-4, 4),
    reference="0.5 * (1 + special.erf(x / sqrt(2))) + x * exp(-x * x / 2) / sqrt(2 * pi)",
    doc="Derivative of gelu.")

elementwise(
    "gelu_tanh_grad(input)", types=REAL, formula="gelu_tanh_grad(x)",
    partial=[
        "(1 - tanh(x * (0.7978845608028654 + 0.035677408136300125 * x * x))**2)"
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
    partial=["1 if beta * x > threshold else sigmoid(beta * x)"], cost=16, autocast="high",
    public=["nn.functional.softplus"], method=False, inplace=False, sample=uniform(-30, 30),
    reference="where(beta * x > threshold, x, logaddexp(0, beta * x) / beta)",
    doc="""Smooth approximation of relu, ``log(1 + exp(beta * x)) / beta``; linear above
``beta * x > threshold``.

>>> import ptcore
>>> ptcore.nn.functional.softplus(ptcore.tensor([0.]))
tensor([0.6931])
""")

elementwise(
    "silu(input)", types=REAL, formula="x * sigmoid(x)",
    partial=["sigmoid(x) * (1 + x * (1 - sigmoid(x)))"], cost=8,
    public=["nn.functional.silu"], method=False, inplace=False, sample=uniform(-6, 6),
    reference="x / (1 + exp(-x))",
    doc="""Sigmoid linear unit, ``x * sigmoid(x)``.

>>> import ptcore
>>> ptcore.nn.functional.silu(ptcore.tensor([1.]))
tensor([0.7311])
""")

elementwise(
    "leaky_relu(input, negative_slope=0.01)", types=REAL,
    formula="x if x > 0 else x * negative_slope", partial=["where(x > 0, 1.0, negative_slope)"],
    public=["nn.functional.leaky_relu"], method=False, inplace=False, sample=uniform(-3, 3),
    reference="where(x > 0, x, x * negative_slope)",
    doc="""``x`` above zero, ``negative_slope * x`` below.

>>> import ptcore
>>> ptcore.nn.functional.leaky_relu(ptcore.tensor([-1., 2.]))
tensor([-0.0100,  2.0000])
""")
