"""Rows: exponential, logarithmic, trigonometric and hyperbolic functions."""
from ptcore._ops.table.schema import COMPLEX, FLOATING, REAL, elementwise, made, uniform


def _function(name, partial, low, high, text, example, *, types=FLOATING, formula=None,
              reference=None, alias=(), cost=8, autocast=None, exact=None):
    argument, result = example
    elementwise(
        f"{name}(input)", types=types, promote="float", formula=formula or f"{name}(x)",
        partial=[partial], exact=exact, cost=cost, sample=uniform(low, high),
        reference=reference or f"{name}(x)", alias=alias, autocast=autocast,
        doc=f"""{text}

>>> import ptcore
>>> ptcore.{name}(ptcore.tensor([{argument}]))
tensor([{result}])
""")


_function("exp", "out", -4, 4, "``e**x``.", ("0., 1.", "1.0000, 2.7183"), autocast=(None, "high"))

_function("exp2", "out * 0.6931471805599453", -4, 4, "``2**x``.", ("0., 3.", "1., 8."))

_function("expm1", "out + 1", -4, 4, "``e**x - 1``, exact near zero.", ("0., 1.", "0.0000, 1.7183"),
          autocast=(None, "high"), exact="exp(x)")

_function("log", "1 / x", 0.1, 9, "Natural logarithm.", ("1., 2.", "0.0000, 0.6931"), autocast=(None, "high"))

_function("log2", "1 / (x * 0.6931471805599453)", 0.1, 9, "Logarithm to base 2.", ("1., 8.", "0., 3."),
          autocast=(None, "high"))

_function("log10", "1 / (x * 2.302585092994046)", 0.1, 9, "Logarithm to base 10.",
          ("1., 100.", "0., 2."), autocast=(None, "high"))

_function("log1p", "1 / (x + 1)", -0.9, 9, "``log(1 + x)``, exact near zero.",
          ("0., 1.", "0.0000, 0.6931"), autocast=(None, "high"))

_function("sin", "cos(x)", -6, 6, "Sine.", ("0., 1.", "0.0000, 0.8415"))

_function("cos", "-sin(x)", -6, 6, "Cosine.", ("0., 1.", "1.0000, 0.5403"))

_function("tan", "1 + out * out", -1.4, 1.4, "Tangent.", ("0., 1.", "0.0000, 1.5574"), autocast=(None, "high"))

# the factors keep digits near 1; their derivatives would lose them near 0 and are no numbers at 1
_ONE_LESS_SQUARE = "with_values(1 - x * x, (1 - x) * (1 + x))"

_function("asin", "rsqrt(1 - x * x)", -0.95, 0.95, "Inverse sine.", ("0., 1.", "0.0000, 1.5708"),
          reference="arcsin(x)", alias=("arcsin",), autocast=(None, "high"),
          exact=f"rsqrt({_ONE_LESS_SQUARE})")

_function("acos", "-rsqrt(1 - x * x)", -0.95, 0.95, "Inverse cosine.", ("1., 0.", "0.0000, 1.5708"),
          reference="arccos(x)", alias=("arccos",), autocast=(None, "high"),
          exact=f"-rsqrt({_ONE_LESS_SQUARE})")

_function("atan", "1 / (1 + x * x)", -6, 6, "Inverse tangent.", ("0., 1.", "0.0000, 0.7854"),
          reference="arctan(x)", alias=("arctan",))

_function("sinh", "cosh(x)", -4, 4, "Hyperbolic sine.", ("0., 1.", "0.0000, 1.1752"), autocast=(None, "high"))

_function("cosh", "sinh(x)", -4, 4, "Hyperbolic cosine.", ("0., 1.", "1.0000, 1.5431"), autocast=(None, "high"))

_function("asinh", "rsqrt(x * x + 1)", -4, 4, "Inverse hyperbolic sine.", ("0., 1.", "0.0000, 0.8814"),
          reference="arcsinh(x)", alias=("arcsinh",), exact="1 / hypot(x, 1.0)")

_function("acosh", "rsqrt(x - 1) * rsqrt(x + 1)", 1.1, 6, "Inverse hyperbolic cosine.", ("1., 2.", "0.0000, 1.3170"),
          reference="arccosh(x)", alias=("arccosh",))

_function("atanh", "1 / (1 - x * x)", -0.9, 0.9, "Inverse hyperbolic tangent.", ("0., 0.5", "0.0000, 0.5493"),
          reference="arctanh(x)", alias=("arctanh",),
          exact=f"1 / ({_ONE_LESS_SQUARE})")

_function("tanh", "1 - out * out", -4, 4, "Hyperbolic tangent.", ("0., 1.", "0.0000, 0.7616"),
          exact="4 * sigmoid_slope(2 * x)")

_function("erf", "1.1283791670955126 * exp(-x * x)", -3, 3, "Error function.",
          ("0., 1.", "0.0000, 0.8427"), types=REAL, reference="special.erf(x)")

_function("sigmoid", "out * (1 - out)", -9, 9, "Logistic function ``1 / (1 + exp(-x))``.",
          ("0., 2.", "0.5000, 0.8808"), reference="1 / (1 + exp(-x))", exact="sigmoid_slope(x)")

elementwise(
    "sigmoid_slope(input)", types=REAL, formula="sigmoid_slope(x)", partial=["-out * tanh(0.5 * x)"], cost=8,
    internal=True, called="sigmoid", inplace=False, sample=uniform(-9, 9), reference="1 / (exp(x) + 2 + exp(-x))",
    doc="Derivative of sigmoid, with its digits far out.")

elementwise(
    "conj_physical(input)", types=COMPLEX, formula="conj(x)", partial=None, internal=True, called="conj",
    vjp=["conj_physical(g)"], jvp=["conj_physical(t)"], reference="conj(x)", out_dtype="exact",
    doc="The complex conjugate.")

made("conj_physical_function(input)", "conj(x)", "Complex conjugates; real tensors are themselves.",
     "ptcore.conj_physical(ptcore.tensor([1 + 2j]))", "tensor([1.-2.j])", public=["conj_physical"],
     called="conj_physical", method="conj_physical", out_argument=True, inplace="inside")

elementwise(
    "angle(input)", types=FLOATING, promote="float", out="real", formula="angle(x)",
    vjp=["angle_backward(g, x)"], jvp=["angle_forward(t, x)"], inplace=False, reference="angle(x)", cost=16,
    doc="""Angle of complex numbers in radians; pi for negative reals, 0 for others.

>>> import ptcore
>>> ptcore.angle(ptcore.tensor([1j, -1 + 0j]))
tensor([1.5708, 3.1416])
""")

elementwise(
    "xlogy(input, other)", types=REAL, promote="float",
    formula="y if isnan(y) else where(x == 0, 0.0, x * log(y))",
    partial=["where((x == 0) and (y <= 0), 0.0, log(where((x == 0) and (y <= 0), 1.0, y)))",
             "x / where((x == 0) and (y == 0), 1.0, y)"], cost=8, sample=uniform(0.2, 3),
    reference="special.xlogy(x, y)",
    doc="""``input * log(other)``, and 0 where ``input`` is 0 (unless ``other`` is NaN).

>>> import ptcore
>>> ptcore.xlogy(ptcore.tensor([0., 2.]), ptcore.tensor([0., 1.]))
tensor([0., 0.])
""")

elementwise(
    "logaddexp(input, other)", types=FLOATING, formula="logaddexp(x, y)", partial=["sigmoid(x - y)", "sigmoid(y - x)"],
    cost=16, reference="_logaddexp(x, y)",
    doc="""``log(exp(input) + exp(other))`` without overflow.

>>> import ptcore
>>> ptcore.logaddexp(ptcore.tensor([0.]), ptcore.tensor([0.]))
tensor([0.6931])
""")

elementwise(
    "logaddexp2(input, other)", types=REAL,
    formula="x + 1 if x == y else maximum(x, y) + 1.4426950408889634 * log1p(exp2(-abs(x - y)))",
    partial=["sigmoid((x - y) * 0.6931471805599453)", "sigmoid((y - x) * 0.6931471805599453)"], cost=16,
    reference="logaddexp2(x, y)",
    doc="""``log2(2**input + 2**other)`` without overflow.

>>> import ptcore
>>> ptcore.logaddexp2(ptcore.tensor([1.]), ptcore.tensor([1.]))
tensor([2.])
""")
