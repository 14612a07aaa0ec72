"""Rows: special functions."""
from ptcore._ops.table.schema import REAL, elementwise, made, uniform


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

made("logit(input, eps: Obj = None)", "special.logit(x if eps is None else clip(x, eps, 1 - eps))",
     "``log(input / (1 - input))``, of elements first limited to [eps, 1 - eps].",
     "ptcore.logit(ptcore.tensor([0.5]))", "tensor([0.])", out_argument=True, inplace=True)

made("polygamma_function(n: Int, input)", "special.polygamma(n, input)", "The ``n``-th derivative of digamma.",
     "ptcore.polygamma(1, ptcore.tensor([1.]))", "tensor([1.6449])", public=["polygamma"],
     called="polygamma", method=False,
     out_argument=True)

# -- special functions ------------------------------------------------------------------------------
made("mvlgamma(input, p: Int)", "special.multigammaln(x, p)",
     "Logarithm of the multivariate gamma function of dimension ``p``, element by element.",
     "ptcore.mvlgamma(ptcore.tensor([2.]), 1)", "tensor([0.])", public=["mvlgamma", "special.multigammaln"],
     out_argument=True, inplace=True)

for _name, _text, _reference, _example, _value in (
        ("entr", "``-x * log(x)``, 0 at 0, and -inf for negative x.", "special.entr(x)", "[1., 0.]", "[-0., 0.]"),
        ("ndtr", "The area below the normal density from -inf to x.", "special.ndtr(x)",
         "[0., 1.]", "[0.5000, 0.8413]"),
        ("log_ndtr", "Logarithm of the area below the normal density from -inf to x.", "special.log_ndtr(x)",
         "[0., -8.]", "[ -0.6931, -35.0134]")):
    made(f"special_{_name}(input)", _reference, _text, f"ptcore.special.{_name}(ptcore.tensor({_example}))",
         f"tensor({_value})", public=[f"special.{_name}"], called=f"special.{_name}", method=False, out_argument=True,
         autocast="high")

made("special_xlog1py(input, other)", "special.xlog1py(x, y)", "``input * log1p(other)``, and 0 where input is 0.",
     "ptcore.special.xlog1py(ptcore.tensor([0., 1.]), ptcore.tensor([-1., 0.]))", "tensor([0., 0.])",
     public=["special.xlog1py"], called="special.xlog1py", method=False, out_argument=True)
