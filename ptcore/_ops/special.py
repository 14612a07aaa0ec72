"""Rows: special functions, and elementwise functions of two or three tensors beyond arithmetic."""
from ptcore._ops._schema import FLOATING, INTEGRAL, NUMERIC, ORDERED, REAL, elementwise, uniform

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

_function("ndtri", "2.5066282746310002 * exp(out * out / 2)", 0.02, 0.98,
          "The number below which a standard normal variable is with probability ``input``.",
          ("0.5, 0.975", "0.0000, 1.9600"), cost=200, special=True)

for _name, _partial, _low, _reference, _text, _example, _value in (
        ("entr", "-(log(x) + 1)", 0.1, "special.entr(x)", "``-x * log(x)``, 0 at 0, and -inf for negative x.",
         "[1., 0.]", "[-0., 0.]"),
        # below 0 by erfcx, which does not underflow; the other branch is kept finite for derivatives
        ("log_ndtr", "where(x < 0, 0.7978845608028654 / erfcx(minimum(x, 0.0) * -0.7071067811865476), "
                     "0.3989422804014327 * exp(maximum(x, 0.0)**2 * -0.5 - maximum(out, -0.7)))", -9,
         "special.log_ndtr(x)", "Logarithm of the area below the normal density from -inf to x.",
         "[0., -8.]", "[ -0.6931, -35.0134]")):
    elementwise(
        f"special_{_name}(input)", types=REAL, promote="float", formula=f"{_name}(x)", partial=[_partial], cost=32,
        sample=uniform(_low, 6), reference=_reference, public=[f"special.{_name}"], called=f"special.{_name}",
        method=False, inplace=False, autocast="high", doc=f"""{_text}

>>> import ptcore
>>> ptcore.special.{_name}(ptcore.tensor({_example}))
tensor({_value})
""")

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
    "frexp_mantissa(input)", types=REAL, formula="frexp_mantissa(x)", partial=["where(x == 0, 1.0, out / x)"],
    internal=True, called="frexp", reference="frexp(x)[0]", doc="The number in [0.5, 1) that ``frexp`` gives.")

elementwise(
    "frexp_exponent(input)", types=REAL, formula="frexp_exponent(x)", partial=["0"], internal=True, called="frexp",
    reference="frexp(x)[1] + 0.0", doc="The exponent that ``frexp`` gives, as a real number.")

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
    formula="nan_replaced(x, nan, posinf, neginf)",
    partial=["where(isfinite(x), 1.0, 0.0)"], reference="nan_to_num(x, True, nan, posinf, neginf)",
    doc="Numbers in the place of NaN and the infinities.")

# -- Bessel functions --------------------------------------------------------------------------

_function("bessel_j0", "-bessel_j1(x)", -20, 20, "Bessel function of the first kind, of order 0.",
          ("0., 1.", "1.0000, 0.7652"), cost=200, reference="special.j0(x)", special=True)
_function("bessel_j1", "(bessel_j0(x) - bessel_j_of(x, 2.0)) / 2", -20, 20,
          "Bessel function of the first kind, of order 1.", ("0., 1.", "0.0000, 0.4401"), cost=200,
          reference="special.j1(x)", special=True)
elementwise(
    "bessel_j_of(input, order: Float)", types=REAL, promote="float", formula="bessel_j_of(x, order)",
    partial=["(bessel_j_of(x, order - 1) - bessel_j_of(x, order + 1)) / 2"], cost=400, sample=uniform(-20, 20),
    internal=True, called="bessel_j1", reference="special.jv(order, x)",
    doc="Bessel functions of the first kind of any whole order, for derivatives.")
_function("bessel_y0", "-bessel_y1(x)", 0.3, 20,
          "Bessel function of the second kind, of order 0: -inf at 0, NaN below.", ("1., 2.", "0.0883, 0.5104"),
          cost=300, reference="special.y0(x)", special=True)
_function("bessel_y1", "bessel_y0(x) - out / x", 0.3, 20,
          "Bessel function of the second kind, of order 1: -inf at 0, NaN below.", ("1., 2.", "-0.7812, -0.1070"),
          cost=300, reference="special.y1(x)", special=True)
for _name, _by, _text in (
        ("modified_bessel", "", "Modified Bessel function of the second kind, of order {}: inf at 0, NaN below."),
        ("scaled_modified_bessel", "out",
         "``exp(input)`` times the modified Bessel function of the second kind, of order {}.")):
    _scaled = _by and "e"
    _function(f"{_name}_k0", f"{_by} - {_name}_k1(x)".strip(), 0.3, 9, _text.format(0),
              ("1., 2.", "1.1445, 0.8416" if _scaled else "0.4210, 0.1139"), cost=300,
              reference=f"special.k0{_scaled}(x)", special=True)
    _function(f"{_name}_k1", f"{_by} - {_name}_k0(x) - out / x".strip(), 0.3, 9, _text.format(1),
              ("1., 2.", "1.6362, 1.0335" if _scaled else "0.6019, 0.1399"), cost=300,
              reference=f"special.k1{_scaled}(x)", special=True)
_function("spherical_bessel_j0", "-spherical_bessel_j_of(x, 1.0)", -9, 9,
          "Spherical Bessel function of the first kind, of order 0: ``sin(input) / input``, and 1 at 0.",
          ("0., 1.", "1.0000, 0.8415"), reference="special.spherical_jn(0, x)", special=True)
elementwise(
    "spherical_bessel_j_of(input, order: Float)", types=REAL, promote="float",
    formula="spherical_bessel_j_of(x, order)",
    partial=["(order * spherical_bessel_j_of(x, order - 1) - (order + 1) * spherical_bessel_j_of(x, order + 1)) "
             "/ (2 * order + 1)"], cost=400, sample=uniform(-9, 9), internal=True, called="spherical_bessel_j0",
    reference="special.spherical_jn(int(order), x)", doc="Spherical Bessel functions of any order, for derivatives.")
_function("airy_ai", "airy_ai_slope(x)", -6, 4, "Airy function Ai.", ("0., 1.", "0.3550, 0.1353"), cost=400,
          reference="special.airy(x)[0]", special=True)
elementwise(
    "airy_ai_slope(input)", types=REAL, promote="float", formula="airy_ai_slope(x)", partial=["x * airy_ai(x)"],
    cost=400, sample=uniform(-6, 4), internal=True, called="airy_ai", reference="special.airy(x)[1]",
    doc="The derivative of Ai.")

# -- orthogonal polynomials --------------------------------------------------------------------
#
# Those on an interval are Jacobi polynomials. Divided by their value at 1 they have a derivative of one form:
# n * (n + alpha + beta + 1) / (2 * (alpha + 1)) times that of degree n - 1 with both parameters one larger.

_SEE = "See :func:`ptcore.special.chebyshev_polynomial_t`."


def _polynomial(name, partial, low, high, text, values, reference, sign=""):
    elementwise(
        f"{name}(input, n)", types=REAL, promote="float", formula=f"{name}(x, y)", method=False, inplace=False,
        partial=[partial, f"not_implemented('{name}', 'n')"], cost=200, sample=uniform(low, high),
        public=[f"special.{name}"], reference=f"_polynomial({reference}, trunc(y), x{sign})", doc=f"""{text}

>>> import ptcore
>>> ptcore.special.{name}(ptcore.tensor([0.5, 2.]), 2)
tensor([{values}])
""")


elementwise(
    "jacobi_ratio(input, n, alpha: Float, beta: Float)", types=REAL, promote="float",
    formula="jacobi_ratio(x, y, alpha, beta)", internal=True, called="jacobi polynomials",
    partial=["trunc(y) * (trunc(y) + alpha + beta + 1) / (2 * (alpha + 1)) "
             "* jacobi_ratio(x, trunc(y) - 1, alpha + 1, beta + 1)", "not_implemented('jacobi_ratio', 'n')"],
    cost=400, sample=uniform(0, 6), reference="_jacobi_ratio(trunc(y), alpha, beta, x)",
    doc="Jacobi polynomials divided by their value at 1, for derivatives.")

for _kind, _which, _slope, _at, _values, _shifted in (
        ("t", "first kind and degree ``n``: ``cos(n * t)`` at ``cos(t)``",
         "trunc(y) * trunc(y) * jacobi_ratio({x}, trunc(y) - 1, 0.5, 0.5)", "-0.5, -0.5", "-0.5000,  7.0000",
         "-1., 17."),
        ("u", "second kind and degree ``n``: ``sin((n + 1) * t) / sin(t)`` at ``cos(t)``",
         "(trunc(y) + 1) * trunc(y) * (trunc(y) + 2) / 3 * jacobi_ratio({x}, trunc(y) - 1, 1.5, 1.5)", "0.5, 0.5",
         " 0., 15.", "-1., 35."),
        ("v", "third kind and degree ``n``: ``cos((n + 1/2) * t) / cos(t / 2)`` at ``cos(t)``",
         "trunc(y) * (trunc(y) + 1) * jacobi_ratio({x}, trunc(y) - 1, 0.5, 1.5)", "-0.5, 0.5", "-1., 11.", "-1., 29."),
        ("w", "fourth kind and degree ``n``: ``sin((n + 1/2) * t) / sin(t / 2)`` at ``cos(t)``",
         "(2 * trunc(y) + 1) * trunc(y) * (trunc(y) + 1) / 3 * jacobi_ratio({x}, trunc(y) - 1, 1.5, 0.5)", "0.5, -0.5",
         " 1., 19.", "-1., 41.")):
    _text = f"Chebyshev polynomial of the {_which}.\n\n"
    _polynomial(f"chebyshev_polynomial_{_kind}", _slope.format(x="x"), 0, 6, _text + (
        "``n`` is a number or a tensor, taken without its fractional part; polynomials of negative degree are 0."
        if _kind == "t" else _SEE), _values, f"_jacobi({_at})")
    _polynomial(f"shifted_chebyshev_polynomial_{_kind}", "2 * " + _slope.format(x="2 * x - 1"), 0, 6,
                f":func:`ptcore.special.chebyshev_polynomial_{_kind}` at ``2 * input - 1``, for numbers in [0, 1].",
                _shifted, f"_shifted(_jacobi({_at}))")

for _name, _factor, _which, _values, _reference in (
        ("h", "2 * ", "Physicists' Hermite polynomial of degree ``n``, orthogonal under ``exp(-input**2)``.",
         "-1., 14.", "special.eval_hermite"),
        ("he", "", "Probabilists' Hermite polynomial of degree ``n``, orthogonal under ``exp(-input**2 / 2)``.",
         "-0.7500,  3.0000", "special.eval_hermitenorm")):
    _polynomial(f"hermite_polynomial_{_name}", f"{_factor}trunc(y) * hermite_polynomial_{_name}(x, trunc(y) - 1)", 0, 6,
                f"{_which}\n\n{_SEE}", _values, _reference)

elementwise(
    "laguerre_of(input, n, alpha: Float)", types=REAL, promote="float", formula="laguerre_of(x, y, alpha)",
    internal=True, called="laguerre_polynomial_l", cost=400, sample=uniform(0, 6),
    partial=["-laguerre_of(x, trunc(y) - 1, alpha + 1)", "not_implemented('laguerre_of', 'n')"],
    reference="_polynomial(lambda n, x: special.eval_genlaguerre(n, alpha, x), trunc(y), x, -1.0)",
    doc="Generalised Laguerre polynomials, for derivatives.")
_polynomial("laguerre_polynomial_l", "-laguerre_of(x, trunc(y) - 1, 1.0)", 0, 6,
            "Laguerre polynomial of degree ``n``, orthogonal under ``exp(-input)`` on the positive numbers."
            f"\n\n{_SEE}", " 0.1250, -1.0000", "special.eval_laguerre", ", -1.0")
_polynomial("legendre_polynomial_p", "trunc(y) * (trunc(y) + 1) / 2 * jacobi_ratio(x, trunc(y) - 1, 1.0, 1.0)", 0, 6,
            f"Legendre polynomial of degree ``n``, orthogonal on [-1, 1].\n\n{_SEE}", "-0.1250,  5.5000",
            "special.eval_legendre")

elementwise(
    "zeta(input, other)", types=REAL, promote="float", formula="zeta(x, y)", method=False, inplace=False, cost=400,
    partial=["not_implemented('zeta', 'input')", "-x * zeta(x + 1, y)"], sample=uniform(1.5, 6),
    public=["special.zeta"], reference="special.zeta(x, y)",
    doc="""Hurwitz zeta function: the sum of ``(k + other)**-input`` over k = 0, 1, ...

Either argument may be a number. There is no derivative by ``input``.

>>> import ptcore
>>> ptcore.special.zeta(ptcore.tensor([2., 4.]), 1)
tensor([1.6449, 1.0823])
""")

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
