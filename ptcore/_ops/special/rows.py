"""Rows: special functions, and elementwise functions of two or three tensors beyond arithmetic."""
from ptcore._ops.table.schema import FLOATING, INTEGRAL, NUMERIC, ORDERED, REAL, elementwise, uniform

# -- of one tensor ----------------------------------------------------------------------------


def _function(name, partial, low, high, text, example, *, formula=None, reference=None, alias=(), cost=16,
              autocast=None, special=False):
    argument, result = example
    elementwise(
        f"{name}(input)", types=REAL, promote="float", formula=formula or f"{name}(x)", partial=[partial],
        cost=cost, sample=uniform(low, high), reference=reference or f"special.{name}(x)", alias=alias,
        autocast=autocast, public=[f"special.{name}"] if special else None, method=not special, inplace=not special,
        doc=f"""{text}

>>> import ptcore
>>> ptcore.{"special." if special else ""}{name}(ptcore.tensor([{argument}]))
tensor([{result}])
""")


_function("erfc", "-1.1283791670955126 * exp(-x * x)", -3, 3, "Complementary error function ``1 - erf(x)``.",
          ("0., 1.", "1.0000, 0.1573"))
_function("erfinv", "0.886226925452758 * exp(out * out)", -0.95, 0.95, "Inverse of the error function on [-1, 1].",
          ("0., 0.5", "0.0000, 0.4769"), reference="copysign(special.erfinv(x), x)", autocast="high")
_function("lgamma", "digamma(x)", 0.3, 6, "Logarithm of the absolute value of the gamma function.",
          ("1., 4.", "0.0000, 1.7918"), reference="special.gammaln(x)")
_function("digamma", "polygamma_of(x, 1.0)", 0.3, 6, "Logarithmic derivative of the gamma function.",
          ("1., 2.", "-0.5772,  0.4228"), reference="special.psi(x)")
_function("sinc", "where(x == 0, 0.0, (cos(3.141592653589793 * x) - out) / x)", -3, 3,
          "``sin(pi * x) / (pi * x)``, and 1 at 0.", ("0., 0.5", "1.0000, 0.6366"),
          formula="where(x == 0, 1.0, sin(3.141592653589793 * x) / (3.141592653589793 * x))", reference="sinc(x)")
_function("deg2rad", "0.017453292519943295", -180, 180, "Degrees as radians.", ("180., 90.", "3.1416, 1.5708"),
          formula="x * 0.017453292519943295", reference="deg2rad(x)", cost=1)
_function("rad2deg", "57.29577951308232", -3, 3, "Radians as degrees.", ("0., 1.", " 0.0000, 57.2958"),
          formula="x * 57.29577951308232", reference="rad2deg(x)", cost=1)

_function("i0", "i1(x)", -6, 6, "Modified Bessel function of the first kind, of order 0.",
          ("0., 1.", "1.0000, 1.2661"), cost=64)
_function("i0e", "i1e(x) - sign(x) * out", -6, 6, "Modified Bessel function of order 0 times ``exp(-abs(x))``.",
          ("0., 1.", "1.0000, 0.4658"), cost=64, special=True)
_function("i1", "where(x == 0, 0.5, i0(x) - out / x)", -6, 6, "Modified Bessel function of the first kind, of order 1.",
          ("0., 1.", "0.0000, 0.5652"), cost=64, special=True)
_function("i1e", "where(x == 0, 0.5, i0e(x) - out * (sign(x) + 1 / x))", -6, 6,
          "Modified Bessel function of order 1 times ``exp(-abs(x))``.", ("0., 1.", "0.0000, 0.2079"), cost=64,
          special=True)
_function("erfcx", "2 * x * out - 1.1283791670955126", -3, 6, "``exp(x**2) * erfc(x)``.", ("0., 1.", "1.0000, 0.4276"),
          cost=64, special=True)

for _name, _other, _sign, _text in (("igamma", "gammainc", "", "Regularised lower"),
                                    ("igammac", "gammaincc", "-", "Regularised upper")):
    elementwise(
        f"{_name}(input, other)", types=REAL, promote="float", formula=f"{_name}(x, y)", cost=200,
        vjp=["no_gamma_derivative(g)", f"sum_to({_sign}g * exp((x - 1) * log(y) - y - lgamma(x)), y.shape)"],
        jvp=["no_gamma_derivative(t)", f"{_sign}t * exp((x - 1) * log(y) - y - lgamma(x))"], sample=uniform(0.3, 6),
        public=[_name, f"special.{_other}"], reference=f"special.{_other}(x, y)",
        doc=f"""{_text} incomplete gamma function of the exponent ``input`` at ``other``, both not negative. There is no
derivative by the exponent.

>>> import ptcore
>>> ptcore.{_name}(ptcore.tensor([1.]), ptcore.tensor([1.]))
tensor([{"0.6321" if _name == "igamma" else "0.3679"}])
""")

elementwise(
    "logit_of(input)", types=REAL, formula="log(x / (1 - x))", internal=True, called="logit", node="LogitBackward0",
    partial=["where((x >= 0) and (x <= 1), 1 / (x * (1 - x)), out * 0)"], cost=16, sample=uniform(0.05, 0.95),
    reference="log(x / (1 - x))", doc="``log(x / (1 - x))``.")

elementwise(
    "polygamma_of(input, n: Float)", types=REAL, promote="float", formula="polygamma(n, x)",
    partial=["polygamma_of(x, n + 1)"], cost=64, sample=uniform(0.3, 6), internal=True, called="polygamma",
    reference="special.polygamma(int(n), x)", doc="The n-th derivative of digamma.")

elementwise(
    "frac(input)", types=REAL, formula="x - trunc(x)", partial=["1"], reference="x - trunc(x)",
    doc="""What is left of each element without its whole part, with its sign.

>>> import ptcore
>>> ptcore.frac(ptcore.tensor([1.25, -1.25]))
tensor([ 0.2500, -0.2500])
""")

elementwise(
    "angle(input)", types=FLOATING, promote="float", out="real", formula="angle(x)",
    vjp=["angle_backward(g, x)"], jvp=["angle_forward(t, x)"], inplace=False, reference="angle(x)", cost=16,
    doc="""Angle of complex numbers in radians; pi for negative reals, 0 for others.

>>> import ptcore
>>> ptcore.angle(ptcore.tensor([1j, -1 + 0j]))
tensor([1.5708, 3.1416])
""")

elementwise(
    "nan_replaced(input, nan: Scalar, posinf: Scalar, neginf: Scalar)", types=REAL, internal=True, called="nan_to_num",
    formula="nan if isnan(x) else ((posinf if x > 0 else neginf) if isinf(x) else x)",
    partial=["where(isfinite(x), 1.0, 0.0)"], reference="nan_to_num(x, True, nan, posinf, neginf)",
    doc="Numbers in the place of NaN and the infinities.")

# -- of two ------------------------------------------------------------------------------------

elementwise(
    "atan2(input, other)", types=REAL, promote="float", formula="atan2(x, y)",
    partial=["where((x == 0) and (y == 0), 0.0, y / (x * x + y * y))",
             "where((x == 0) and (y == 0), 0.0, -x / (x * x + y * y))"],
    cost=16, reference="arctan2(x, y)", alias=("arctan2",), autocast="widest",
    doc="""Angle of the points ``(other, input)``, in (-pi, pi].

>>> import ptcore
>>> ptcore.atan2(ptcore.tensor([1., 1.]), ptcore.tensor([1., -1.]))
tensor([0.7854, 2.3562])
""")

elementwise(
    "hypot(input, other)", types=REAL, formula="hypot(x, y)", partial=["x / out", "y / out"], cost=8,
    reference="hypot(x, y)",
    doc="""``sqrt(input**2 + other**2)`` without overflow on the way.

>>> import ptcore
>>> ptcore.hypot(ptcore.tensor([3.]), ptcore.tensor([4.]))
tensor([5.])
""")

elementwise(
    "copysign(input, other)", types=REAL, promote="float", formula="copysign(x, y)",
    partial=["where(x == 0, 0.0, out / x)", "0"], reference="copysign(x, y)",
    doc="""The magnitude of ``input`` with the sign of ``other``, that of zeros included.

>>> import ptcore
>>> ptcore.copysign(ptcore.tensor([1., -2.]), -0.)
tensor([-1., -2.])
""")

elementwise(
    "nextafter(input, other)", types=("float32", "float64"), formula="nextafter(x, y)", partial=["1", "0"],
    cost=8, reference="nextafter(x, y)",
    doc="""The next number of the dtype from ``input`` towards ``other``.

>>> import ptcore
>>> bool(ptcore.nextafter(ptcore.tensor(1.), ptcore.tensor(2.)) > 1)
True
""")

elementwise(
    "xlogy(input, other)", types=REAL, promote="float",
    formula="y if isnan(y) else where(x == 0, 0.0, x * log(y))",
    partial=["where((x == 0) and (y <= 0), 0.0, log(y))", "x / y"], cost=8, sample=uniform(0.2, 3),
    reference="special.xlogy(x, y)",
    doc="""``input * log(other)``, and 0 where ``input`` is 0 (unless ``other`` is NaN).

>>> import ptcore
>>> ptcore.xlogy(ptcore.tensor([0., 2.]), ptcore.tensor([0., 1.]))
tensor([0., 0.])
""")

elementwise(
    "logaddexp(input, other)", types=REAL, formula="logaddexp(x, y)", partial=["sigmoid(x - y)", "sigmoid(y - x)"],
    cost=16, reference="logaddexp(x, y)",
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

elementwise(
    "heaviside(input, values)", types=ORDERED, formula="where(x == 0, y, where(x > 0, 1, 0))",
    partial=["0", "where(x == 0, 1.0, 0.0)"], reference="_heaviside(x, y)",
    doc="""The step function: 0 below zero, 1 above, ``values`` at it.

>>> import ptcore
>>> ptcore.heaviside(ptcore.tensor([-1., 0., 2.]), ptcore.tensor([0.5]))
tensor([0.0000, 0.5000, 1.0000])
""")

for _name, _sign, _text in (("fmax", ">=", "larger"), ("fmin", "<=", "smaller")):
    elementwise(
        f"{_name}(input, other)", types=ORDERED, formula=f"{_name}(x, y)",
        partial=[f"where((x {_sign} y) or (y != y), 1.0, 0.0)", f"where((x {_sign} y) or (y != y), 0.0, 1.0)"],
        reference=f"{_name}(x, y)",
        doc=f"""The {_text} of two elements; where one is NaN, the other.

>>> import ptcore
>>> ptcore.{_name}(ptcore.tensor([1., float("nan")]), ptcore.tensor([1., 2.]))
tensor([1., 2.])
""")

for _name, _text in (("gcd", "Greatest common divisor"), ("lcm", "Least common multiple")):
    elementwise(
        f"{_name}(input, other)", types=INTEGRAL, formula=f"{_name}(x, y)", partial=None, cost=32,
        reference=f"{_name}(x, y)",
        doc=f"""{_text} of the absolute values of integers.

>>> import ptcore
>>> ptcore.{_name}(ptcore.tensor([6]), ptcore.tensor([6]))
tensor([6])
""")

# -- of three ----------------------------------------------------------------------------------

elementwise(
    "addcmul(input, tensor1, tensor2, *, value: Scalar = 1)", types=NUMERIC, formula="x + value * y * z",
    partial=["1", "value * z", "value * y"], reference="x + value * y * z", autocast="widest",
    doc="""``input + value * tensor1 * tensor2``.

>>> import ptcore
>>> ptcore.addcmul(ptcore.tensor([1.]), ptcore.tensor([2.]), ptcore.tensor([3.]), value=10)
tensor([61.])
""")

elementwise(
    "addcdiv(input, tensor1, tensor2, *, value: Scalar = 1)", types=FLOATING, formula="x + value * (y / z)",
    partial=["1", "value / z", "-value * (y / z) / z"], sample=uniform(0.5, 3), reference="x + value * (y / z)",
    autocast="widest",
    doc="""``input + value * tensor1 / tensor2``.

>>> import ptcore
>>> ptcore.addcdiv(ptcore.tensor([1.]), ptcore.tensor([6.]), ptcore.tensor([3.]), value=10)
tensor([21.])
""")

elementwise(
    "lerp(input, end, weight)", types=REAL,
    formula="x + z * (y - x) if abs(z) < 0.5 else y - (y - x) * (1 - z)",
    partial=["1 - z", "z", "y - x"], reference="_lerp(x, y, z)",
    doc="""Linear interpolation ``input + weight * (end - input)``.

>>> import ptcore
>>> ptcore.lerp(ptcore.tensor([0., 10.]), ptcore.tensor([4., 20.]), 0.5)
tensor([ 2., 15.])
""")

# -- of losses ---------------------------------------------------------------------------------

elementwise(
    "cross_entropy_of_bits(input, target)", types=REAL, internal=True, called="binary_cross_entropy",
    node="BinaryCrossEntropyBackward0",
    formula="-(y * maximum(log(x), -100.0) + (1 - y) * maximum(log1p(-x), -100.0))",
    partial=["(x - y) / maximum((1 - x) * x, 1e-12)", "maximum(log1p(-x), -100.0) - maximum(log(x), -100.0)"],
    cost=16, sample=uniform(0.1, 0.9), reference="-(y * maximum(log(x), -100) + (1 - y) * maximum(log1p(-x), -100))",
    doc="Binary cross entropy of probabilities, its logarithms at least -100.")

elementwise(
    "cross_entropy_of_logits(input, target)", types=REAL, internal=True, called="binary_cross_entropy_with_logits",
    node="BinaryCrossEntropyWithLogitsBackward0", formula="(1 - y) * x - log_sigmoid(x)",
    partial=["sigmoid(x) - y", "-x"], cost=16, sample=uniform(-4, 4),
    reference="(1 - y) * x + logaddexp(0, -x)", doc="Binary cross entropy of logits.")

elementwise(
    "squared_difference(input, target)", types=FLOATING, internal=True, called="mse_loss", node="MseLossBackward0",
    formula="(x - y) * (x - y)", partial=["2 * (x - y)", "-2 * (x - y)"], autocast="high",
    reference="(x - y)**2", doc="``(input - target)**2``.")

elementwise(
    "absolute_difference(input, target)", types=REAL, internal=True, called="l1_loss", node="L1LossBackward0",
    formula="abs(x - y)", partial=["sign(x - y)", "-sign(x - y)"], autocast="high",
    reference="abs(x - y)", doc="``abs(input - target)``.")

elementwise(
    "huber_of(input, delta: Float)", types=REAL, internal=True, called="huber_loss", node="HuberLossBackward0",
    formula="0.5 * x * x if abs(x) < delta else delta * (abs(x) - 0.5 * delta)",
    partial=["x if abs(x) < delta else delta * sign(x)"],
    reference="where(abs(x) < delta, 0.5 * x * x, delta * (abs(x) - 0.5 * delta))",
    doc="Half the square near 0, straight lines beyond ``delta``.")
