"""Rows: special functions."""
from ptcore._ops.table.schema import FLOATING, REAL, elementwise, made, spelling, uniform


# -- of one tensor ----------------------------------------------------------------------------
def _function(name, partial, low, high, text, example, *, formula=None, reference=None, alias=(), cost=16,
              autocast=None, special=False, types=REAL, exact=None):
    argument, result = example
    elementwise(
        f"{name}(input)", types=types, promote="float", formula=formula or f"{name}(x)", partial=[partial],
        exact=exact, cost=cost, sample=uniform(low, high), reference=reference or f"special.{name}(x)", alias=alias,
        autocast=autocast, public=[f"special.{name}"] if special else None, method=not special, inplace=not special,
        doc=f"""{text}

>>> import ptcore
>>> ptcore.{"special." if special else ""}{name}(ptcore.tensor([{argument}]))
tensor([{result}])
""")


_function("erfc", "-1.1283791670955126 * exp(-x * x)", -3, 3, "Complementary error function ``1 - erf(x)``.",
          ("0., 1.", "1.0000, 0.1573"))

_function("erfinv", "0.886226925452758 * exp(erfinv(x) * erfinv(x))", -0.95, 0.95,
          "Inverse of the error function on [-1, 1].", ("0., 0.5", "0.0000, 0.4769"),
          reference="copysign(special.erfinv(x), x)", autocast=(None, "high"))

_function("lgamma", "digamma(x)", 0.3, 6, "Logarithm of the absolute value of the gamma function.",
          ("1., 4.", "0.0000, 1.7918"), reference="special.gammaln(x)")

_function("digamma", "polygamma_of(x, 1.0)", 0.3, 6, "Logarithmic derivative of the gamma function.",
          ("1., 2.", "-0.5772,  0.4228"), reference="special.psi(x)")

_function("sinc", "where(x == 0, 0.0, (cos(3.141592653589793 * x)"
          " - sin(3.141592653589793 * x) / (3.141592653589793 * x)) / x)", -3, 3,
          "``sin(pi * x) / (pi * x)``, and 1 at 0.", ("0., 0.5", "1.0000, 0.6366"),
          formula="where(x == 0, 1.0, sin(3.141592653589793 * x) / (3.141592653589793 * x))", reference="sinc(x)",
          types=FLOATING, exact="-3.141592653589793 * spherical_bessel_j_of(3.141592653589793 * x, 1.0)")

_function("deg2rad", "0.017453292519943295", -180, 180, "Degrees as radians.", ("180., 90.", "3.1416, 1.5708"),
          formula="x * 0.017453292519943295", reference="deg2rad(x)", cost=1)

_function("rad2deg", "57.29577951308232", -3, 3, "Radians as degrees.", ("0., 1.", " 0.0000, 57.2958"),
          formula="x * 57.29577951308232", reference="rad2deg(x)", cost=1)

_function("i0", "i1(x)", -6, 6, "Modified Bessel function of the first kind, of order 0.",
          ("0., 1.", "1.0000, 1.2661"), cost=64)

# Beyond 1000 the difference of two nearly equal functions has lost digits. There these are the derivatives of Hankel's
# expansions (DLMF 10.40.1).
_FAR = "where(abs(x) > 1000, abs(x), 1000.0)"
_INVERSE = f"(1 / {_FAR})"


def _far(*coefficients):
    series = "0.0"
    for c in reversed(coefficients):
        series = f"({c!r} + {_INVERSE} * {series})"
    return f"0.3989422804014327 * {_INVERSE} / sqrt({_FAR}) * {series}"


_function("i0e", f"where(abs(x) > 1000, sign(x) * {_far(-0.5, -0.1875, -0.17578125, -0.25634765625, -0.50468444824)}, "
                 "i1e(x) - sign(x) * out)", -6, 6,
          "Modified Bessel function of order 0 times ``exp(-abs(x))``.",
          ("0., 1.", "1.0000, 0.4658"), cost=64, special=True)

# The quotients have another divisor at 0 and at numbers whose inverses are too large, where they are 1/2.
_function("i1", "where(abs(x) < 1e-30, 0.5, i0(x) - out / where(abs(x) < 1e-30, 1, x))", -6, 6,
          "Modified Bessel function of the first kind, of order 1.",
          ("0., 1.", "0.0000, 0.5652"), cost=64, special=True)

_function("i1e", f"where(abs(x) > 1000, {_far(-0.5, 0.5625, 0.29296875, 0.35888671875, 0.64888000488)}, "
                 "where(abs(x) < 1e-30, 0.5, i0e(x) - out * (sign(x) + 1 / where(abs(x) < 1e-30, 1, x))))", -6, 6,
          "Modified Bessel function of order 1 times ``exp(-abs(x))``.", ("0., 1.", "0.0000, 0.2079"), cost=64,
          special=True)

# Beyond 26 likewise (DLMF 7.12.1).
_SMALL = "(0.5 * (1 / where(x > 26, x, 26.0))**2)"
_function("erfcx", f"where(x > 26, -1.1283791670955126 * {_SMALL} * (1 - {_SMALL} * (3 - {_SMALL} * (15 - {_SMALL} * "
                   f"(105 - {_SMALL} * (945 - {_SMALL} * 10395))))), "
                   "2 * where(x > 26, 0.0, x) * out - 1.1283791670955126)", -3, 6,
          "``exp(x**2) * erfc(x)``.", ("0., 1.", "1.0000, 0.4276"), cost=64, special=True)

_function("ndtri", "2.5066282746310002 * exp(out * out / 2)", 0.02, 0.98,
          "The number below which a standard normal variable is with probability ``input``.",
          ("0.5, 0.975", "0.0000, 1.9600"), cost=200, special=True)

for _name, _partial, _low, _reference, _text, _example, _value in (
        ("entr", "-(log(x) + 1)", 0.1, "special.entr(x)", "``-x * log(x)``, 0 at 0, and -inf for negative x.",
         "[1., 0.]", "[-0., 0.]"),
        # below 0 by erfcx, which does not underflow; the other branch is kept finite for derivatives
        ("log_ndtr", "where(x < 0, 0.7978845608028654 / erfcx(where(x < 0, x, 0.0) * -0.7071067811865476), "
                     "0.3989422804014327 * exp(where(x < 0, 0.0, x)**2 * -0.5 - where(x < 0, 0.0, out)))", -9,
         "special.log_ndtr(x)", "Logarithm of the area below the normal density from -inf to x.",
         "[0., -8.]", "[ -0.6931, -35.0134]")):
    elementwise(
        f"special_{_name}(input)", types=REAL, promote="float", formula=f"{_name}(x)", partial=[_partial], cost=32,
        sample=uniform(_low, 6), reference=_reference, public=[f"special.{_name}"], called=f"special.{_name}",
        method=False, inplace=False, doc=f"""{_text}

>>> import ptcore
>>> ptcore.special.{_name}(ptcore.tensor({_example}))
tensor({_value})
""")

for _name, _other, _sign, _text in (("igamma", "gammainc", "", "Regularised lower"),
                                    ("igammac", "gammaincc", "-", "Regularised upper")):
    elementwise(
        f"{_name}(input, other)", types=REAL, promote="float", formula=f"{_name}(x, y)", cost=200,
        vjp=["no_gamma_derivative(g)", f"gamma_slope({_sign}g, x, y)"],
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
    partial=["where((x >= 0) and (x <= 1), 1 / (x * (1 - x)), log(x / (1 - x)) * 0)"], cost=16,
    sample=uniform(0.05, 0.95), reference="log(x / (1 - x))", doc="``log(x / (1 - x))``.")

elementwise(
    "polygamma_of(input, n: Float)", types=REAL, promote="float", formula="polygamma(n, x)",
    partial=["polygamma_of(x, n + 1)"], cost=64, sample=uniform(0.3, 6), internal=True, called="polygamma",
    reference="special.polygamma(int(n), x)", doc="The n-th derivative of digamma.")

elementwise(
    "frac(input)", types=REAL, formula="x - trunc(x)", partial=["1"], reference="x - trunc(x)", out_dtype="exact",
    doc="""What is left of each element without its whole part, with its sign.

>>> import ptcore
>>> ptcore.frac(ptcore.tensor([1.25, -1.25]))
tensor([ 0.2500, -0.2500])
""")

made("logit(input, eps: Obj = None)", "special.logit(x if eps is None else clip(x, eps, 1 - eps))",
     "``log(input / (1 - input))``, of elements first limited to [eps, 1 - eps].",
     "ptcore.logit(ptcore.tensor([0.5]))", "tensor([0.])", out_argument=True, inplace=True, out_dtype="cast")

made("polygamma_function(n: Int, input)", "special.polygamma(n, input)", "The ``n``-th derivative of digamma.",
     "ptcore.polygamma(1, ptcore.tensor([1.]))", "tensor([1.6449])", public=["polygamma"],
     called="polygamma", method=False,
     out_argument=True, out_dtype="cast")

# -- special functions ------------------------------------------------------------------------------
made("mvlgamma(input, p: Int)", "special.multigammaln(x, p)",
     "Logarithm of the multivariate gamma function of dimension ``p``, element by element.",
     "ptcore.mvlgamma(ptcore.tensor([2.]), 1)", "tensor([0.])", public=["mvlgamma", "special.multigammaln"],
     out_argument=True, inplace=True, out_dtype="cast", wide=True)

made("special_ndtr(input)", "special.ndtr(x)", "The area below the normal density from -inf to x.",
     "ptcore.special.ndtr(ptcore.tensor([0., 1.]))", "tensor([0.5000, 0.8413])", public=["special.ndtr"],
     called="special.ndtr", method=False, out_argument=True, autocast=(None, "high"), out_dtype="cast", wide=True)
made("special_xlog1py(input: Obj, other: Obj)", "special.xlog1py(input, other)",
     "``input * log1p(other)``, and 0 where input is 0.",
     "ptcore.special.xlog1py(ptcore.tensor([0., 1.]), ptcore.tensor([-1., 0.]))", "tensor([0., 0.])",
     public=["special.xlog1py"], called="special.xlog1py", method=False, out_argument=True, out_dtype="cast", wide=True)

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
_function("airy_ai", "airy_ai_slope(x)", -6, 4, """Airy function Ai.

Left of 0 it swings by the angle ``2 / 3 * (-input)**1.5``, which is rounded to a float64: of large angles as many
digits are lost as they have before the point. Without any angle, below -1e205, it is NaN.""",
          ("0., 1.", "0.3550, 0.1353"), cost=400, reference="special.airy(x)[0]", special=True)
elementwise(
    "airy_ai_slope(input)", types=REAL, promote="float", formula="airy_ai_slope(x)", partial=["x * airy_ai(x)"],
    cost=400, sample=uniform(-6, 4), internal=True, called="airy_ai", reference="special.airy(x)[1]",
    doc="The derivative of Ai.")

# -- orthogonal polynomials --------------------------------------------------------------------
#
# Those on an interval are Jacobi polynomials. Divided by its value at 1, each has a derivative of the same form:
# n * (n + alpha + beta + 1) / (2 * (alpha + 1)) times the polynomial of degree n - 1 with both parameters plus 1.

_HIGHEST = " Above degree 128 (float64: 512) it is NaN."
_SEE = "See :func:`ptcore.special.chebyshev_polynomial_t`."


def _polynomial(name, partial, text, values, reference, sign=""):
    elementwise(
        f"{name}(input, n)", types=REAL, promote="float", formula=f"{name}(x, y)", method=False, inplace=False,
        partial=[partial, f"not_implemented('{name}', 'n')"], cost=200, sample=uniform(0, 3.9),
        public=[f"special.{name}"], reference=f"_polynomial({reference}, trunc(y), x{sign})", doc=f"""{text}

>>> import ptcore
>>> ptcore.special.{name}(ptcore.tensor([0.5, 2.]), 2)
tensor([{values}])
""")


elementwise(
    "jacobi_ratio(input, n, alpha: Float, beta: Float)", types=REAL, promote="float",
    formula="jacobi_ratio(x, y, alpha, beta)", internal=True, inplace=False, called="legendre_polynomial_p",
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
    _polynomial(f"chebyshev_polynomial_{_kind}", _slope.format(x="x"), _text + (
        "``n`` is a number or a tensor, taken without its fractional part; polynomials of negative degree are 0. "
        "Above degree 40 they are computed by the cosine of ``n * t``, which is rounded to a float64."
        if _kind == "t" else _SEE), _values, f"_jacobi({_at})")
    _polynomial(f"shifted_chebyshev_polynomial_{_kind}", "2 * " + _slope.format(x="2 * x - 1"),
                f":func:`ptcore.special.chebyshev_polynomial_{_kind}` at ``2 * input - 1``, for numbers in [0, 1].",
                _shifted, f"_shifted(_jacobi({_at}))")

for _name, _factor, _which, _values, _reference in (
        ("h", "2 * ", "Physicists' Hermite polynomial of degree ``n``, orthogonal under ``exp(-input**2)``.{}",
         "-1., 14.", "special.eval_hermite"),
        ("he", "", "Probabilists' Hermite polynomial of degree ``n``, orthogonal under ``exp(-input**2 / 2)``.{}",
         "-0.7500,  3.0000", "special.eval_hermitenorm")):
    _polynomial(f"hermite_polynomial_{_name}", f"{_factor}trunc(y) * hermite_polynomial_{_name}(x, trunc(y) - 1)",
                f"{_which.format(_HIGHEST)}\n\n{_SEE}", _values, _reference)

elementwise(
    "laguerre_of(input, n, alpha: Float)", types=REAL, promote="float", formula="laguerre_of(x, y, alpha)",
    internal=True, inplace=False, called="laguerre_polynomial_l", cost=400, sample=uniform(0, 6),
    partial=["-laguerre_of(x, trunc(y) - 1, alpha + 1)", "not_implemented('laguerre_of', 'n')"],
    reference="_polynomial(lambda n, x: special.eval_genlaguerre(n, alpha, x), trunc(y), x, -1.0)",
    doc="Generalised Laguerre polynomials, for derivatives.")
_polynomial("laguerre_polynomial_l", "-laguerre_of(x, trunc(y) - 1, 1.0)",
            "Laguerre polynomial of degree ``n``, orthogonal under ``exp(-input)`` on the positive numbers. "
            "Above degree 2**24 it is NaN."
            f"\n\n{_SEE}", " 0.1250, -1.0000", "special.eval_laguerre", ", -1.0")
_polynomial("legendre_polynomial_p", "trunc(y) * (trunc(y) + 1) / 2 * jacobi_ratio(x, trunc(y) - 1, 1.0, 1.0)",
            f"Legendre polynomial of degree ``n``, orthogonal on [-1, 1]. Above degree 2**24 it is NaN.\n\n{_SEE}",
            "-0.1250,  5.5000", "special.eval_legendre")

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

spelling("polygamma_function", "polygamma(input, n: Int)", columns={"method": True, "inplace": True})
