"""Rows: arithmetic between tensors and numbers, powers, rounding, minima, maxima and limits."""
from ptcore._ops.table.schema import (
    ALL,
    FLOATING,
    INTEGRAL,
    NUMERIC,
    ORDERED,
    REAL,
    composite,
    elementwise,
    made,
    uniform,
)

elementwise(
    "add(input, other, *, alpha: Scalar = 1)",
    formula="x + y", partial=["1", "1"], scalar_loops=True,
    select={"alpha": "add_scaled"}, reference="x + y",
    doc="""Sum of two tensors, or of a tensor and a number: ``input + alpha * other``.

>>> import ptcore
>>> ptcore.add(ptcore.tensor([1., 2.]), 10, alpha=2)
tensor([21., 22.])
""")

elementwise(
    "add_scaled(input, other, *, alpha: Scalar = 1)",
    formula="x + alpha * y", partial=["1", "alpha"], internal=True, called="add", reference="x + alpha * y",
    doc="``input + alpha * other`` for an alpha other than 1.")

elementwise(
    "sub(input, other, *, alpha: Scalar = 1)", types=NUMERIC,
    formula="x - y", partial=["1", "-1"], scalar_loops=True,
    hint="use bitwise_xor or logical_xor, or `~` for negation", select={"alpha": "sub_scaled"},
    reference="x - y", alias=("subtract",),
    doc="""Difference ``input - alpha * other``.

>>> import ptcore
>>> ptcore.sub(ptcore.tensor([1., 2.]), 1)
tensor([0., 1.])
""")

elementwise(
    "sub_scaled(input, other, *, alpha: Scalar = 1)", types=NUMERIC,
    formula="x - alpha * y", partial=["1", "-alpha"], internal=True, called="sub", reference="x - alpha * y",
    doc="``input - alpha * other`` for an alpha other than 1.")

elementwise(
    "mul(input, other)",
    formula="x * y", partial=["y", "x"], scalar_loops=True, reference="x * y",
    alias=("multiply",),
    doc="""Product of two tensors, or of a tensor and a number.

>>> import ptcore
>>> ptcore.mul(ptcore.tensor([1., 2.]), ptcore.tensor([3., 4.]))
tensor([3., 8.])
""")

elementwise(
    'div(input, other, *, rounding_mode: "None|trunc|floor" = None)', types=FLOATING,
    promote="float", formula="x / y", partial=["1 / y", "-(x / y) / y"], scalar_loops=True,
    select={"rounding_mode": {"trunc": "trunc_divide", "floor": "floor_divide"}},
    sample=uniform(0.5, 3), reference="x / y", alias=("divide", "true_divide"),
    doc="""Quotient. Integers give the default float dtype unless ``rounding_mode`` is
``"trunc"`` (towards zero) or ``"floor"``.

>>> import ptcore
>>> ptcore.div(ptcore.tensor([7, -7]), 2, rounding_mode="floor")
tensor([ 3, -4])
""")

elementwise(
    "floor_divide(input, other)", types=INTEGRAL + REAL, integers="nonzero",
    formula="floor_divide(x, y)", partial=["0", "0"], sample=uniform(0.5, 9),
    reference="floor_divide(x, y)",
    doc="""Quotient rounded towards minus infinity. Integer division by zero raises
RuntimeError.

>>> import ptcore
>>> ptcore.floor_divide(ptcore.tensor([7., -7.]), 2)
tensor([ 3., -4.])
""")

elementwise(
    "trunc_divide(input, other)", types=INTEGRAL + REAL, integers="nonzero",
    internal=True, called="div",
    formula="trunc_divide(x, y)", partial=["0", "0"], sample=uniform(0.5, 9),
    reference="trunc(x / y)",
    doc="Quotient rounded towards zero.")

elementwise(
    "remainder(input, other)", types=INTEGRAL + REAL, integers="nonzero",
    formula="remainder(x, y)", partial=["1", "-floor_divide(x, y)"], sample=uniform(0.5, 9),
    reference="remainder(x, y)",
    doc="""Remainder with the sign of the divisor: ``input - floor(input / other) * other``.

>>> import ptcore
>>> ptcore.remainder(ptcore.tensor([-3., 3.]), 2)
tensor([1., 1.])
""")

elementwise(
    "fmod(input, other)", types=INTEGRAL + REAL, integers="nonzero",
    formula="fmod(x, y)", partial=["1", "-trunc(x / y)"], sample=uniform(0.5, 9),
    reference="fmod(x, y)",
    doc="""Remainder with the sign of the dividend, as C's fmod.

>>> import ptcore
>>> ptcore.fmod(ptcore.tensor([-3., 3.]), 2)
tensor([-1.,  1.])
""")

# Where the exponent is 0 the inner power is 1 for all x, so that derivatives of the text are numbers at x = 0.
elementwise(
    "pow(input, exponent)", types=NUMERIC, integers="nonnegative",
    formula="pow(x, y)",
    partial=["where(y == 0, 0.0, y * pow(x, where(y == 0, 0.0, y - 1)))",
             "where(x == 0, where(isinf(out), -out, 0 * out), out * log(where(x == 0, 1.0, x)))"],
    cost=16, sample=uniform(0.3, 3), autocast=(None, "high"), reference="power(x, y)",
    doc="""Power. A negative integer exponent of an integer tensor raises RuntimeError.

>>> import ptcore
>>> ptcore.pow(ptcore.tensor([1., 2., 3.]), 2)
tensor([1., 4., 9.])
""")

elementwise(
    "neg(input)", types=NUMERIC, formula="-x", partial=["-1"], reference="-x",
    alias=("negative",), out_dtype="exact",
    doc="""Negation.

>>> import ptcore
>>> ptcore.neg(ptcore.tensor([1., -2.]))
tensor([-1.,  2.])
""")

elementwise(
    "abs(input)", types=INTEGRAL + FLOATING, out="real", formula="abs(x)", vjp=["g * sgn(x)"],
    jvp=["real(t * conj_of(sgn(x)))"],
    reference="abs(x)", alias=("absolute",), out_dtype="exact",
    doc="""Absolute value; of complex numbers the magnitude, with a real dtype.

>>> import ptcore
>>> ptcore.abs(ptcore.tensor([-1, 2]))
tensor([1, 2])
""")

elementwise(
    "sign(input)", types=ORDERED, formula="sign(x)", partial=["0"], reference="sign(x)", out_dtype="exact",
    doc="""-1, 0 or 1 by the sign of each element (0 for NaN).

>>> import ptcore
>>> ptcore.sign(ptcore.tensor([-3., 0., 2.]))
tensor([-1.,  0.,  1.])
""")

elementwise(
    "sgn(input)", types=ALL, formula="sgn(x)", vjp=["sgn_backward(g, x, out)"],
    jvp=["sgn_backward(t, x, out)"],
    reference="sign(x)", out_dtype="exact",
    doc="""The sign of real numbers; of complex ones ``x / abs(x)``, and 0 for 0.

>>> import ptcore
>>> ptcore.sgn(ptcore.tensor([3 + 4j]))
tensor([0.6000+0.8000j])
""")

elementwise(
    "square(input)", node="PowBackward0", types=NUMERIC, promote="whole",
    formula="x * x", partial=["2 * x"], reference="x * x",
    doc="""Each element times itself.

>>> import ptcore
>>> ptcore.square(ptcore.tensor([1., 3.]))
tensor([1., 9.])
""")

elementwise(
    "reciprocal(input)", types=FLOATING, promote="float", formula="1 / x",
    partial=["-out * out"], sample=uniform(0.5, 3), autocast=(None, "high"), reference="1 / x",
    doc="""One over each element.

>>> import ptcore
>>> ptcore.reciprocal(ptcore.tensor([2., 4.]))
tensor([0.5000, 0.2500])
""")

elementwise(
    "sqrt(input)", types=FLOATING, promote="float", formula="sqrt(x)",
    partial=["0.5 / out"], cost=4, sample=uniform(0.1, 9), reference="sqrt(x)",
    doc="""Square root; NaN for negative reals.

>>> import ptcore
>>> ptcore.sqrt(ptcore.tensor([4., 9.]))
tensor([2., 3.])
""")

elementwise(
    "root_of_variance(input)", types=REAL, internal=True, called="std",
    formula="sqrt(maximum(x, 0.0))", partial=["where(out == 0, 0.0, 0.5 / out)"], sample=uniform(0.1, 4),
    reference="sqrt(maximum(x, 0))",
    doc="""Square root whose derivative at 0 is 0: equal numbers have a deviation of 0 whose
gradient is 0, as in PyTorch. What rounding has made negative counts as 0.""")

elementwise(
    "rsqrt(input)", types=FLOATING, promote="float", formula="1 / sqrt(x)",
    partial=["-0.5 * out * out * out"], cost=6, sample=uniform(0.2, 9),
    autocast=(None, "high"), reference="1 / sqrt(x)",
    doc="""One over the square root.

>>> import ptcore
>>> ptcore.rsqrt(ptcore.tensor([4.]))
tensor([0.5000])
""")

for _name, _doc in (("floor", "Largest integer not above each element."),
                    ("ceil", "Smallest integer not below each element."),
                    ("trunc", "Each element rounded towards zero.")):
    elementwise(
        f"{_name}(input)", alias=("fix",) if _name == "trunc" else (),
        types=INTEGRAL + REAL, formula=f"{_name}(x)", partial=["0"],
        reference=f"{_name}(x)", out_dtype="exact",
        doc=f"""{_doc}

>>> import ptcore
>>> ptcore.{_name}(ptcore.tensor([2.]))
tensor([2.])
""")

elementwise(
    "round_to(input, times=1.0, over=2.0)", node="RoundBackward1", types=REAL, out_dtype="exact",
    internal=True, called="round", partial=["0"],
    formula="round(x * times / over) * over / times", reference="rint(x * times / over) * over / times",
    doc="The nearest multiple of ``over / times``, halves to the even one.")

elementwise(
    "round(input, *, decimals: Int = 0)", types=INTEGRAL + REAL, formula="round(x)", partial=["0"],
    select={"decimals": "methods.rounded"},
    reference="rint(x)", out_dtype="exact",
    doc="""Nearest integer, halves to the even one; of floating-point numbers the nearest with so
many ``decimals``, which may be negative.

>>> import ptcore
>>> ptcore.round(ptcore.tensor([0.5, 1.5]))
tensor([0., 2.])
>>> ptcore.round(ptcore.tensor([1.2345, 1234.5]), decimals=2)
tensor([1.2300e+00, 1.2345e+03])
>>> ptcore.round(ptcore.tensor([1250., 1350.]), decimals=-2)
tensor([1200., 1400.])
""")

elementwise(
    "maximum(input, other)", selects="one", types=ORDERED, formula="maximum(x, y)",
    partial=["where(x == y, 0.5, where(x < y, 0.0, 1.0))",
             "where(x == y, 0.5, where(x > y, 0.0, 1.0))"],
    reference="maximum(x, y)",
    doc="""The larger of two elements; NaN if either is. Equal ones share the gradient, beside
NaN both get it.

>>> import ptcore
>>> ptcore.maximum(ptcore.tensor([1., 5.]), ptcore.tensor([3., 2.]))
tensor([3., 5.])
""")

elementwise(
    "minimum(input, other)", selects="one", types=ORDERED, formula="minimum(x, y)",
    partial=["where(x == y, 0.5, where(x > y, 0.0, 1.0))",
             "where(x == y, 0.5, where(x < y, 0.0, 1.0))"],
    reference="minimum(x, y)",
    doc="""The smaller of two elements; NaN if either is. Equal ones share the gradient, beside
NaN both get it.

>>> import ptcore
>>> ptcore.minimum(ptcore.tensor([1., 5.]), ptcore.tensor([3., 2.]))
tensor([1., 2.])
""")

elementwise(
    "clamp_min(input, min)", selects="one", types=ORDERED, formula="maximum(x, y)",
    partial=["where(x >= y, 1.0, 0.0)", "where(x < y, 1.0, 0.0)"], reference="maximum(x, y)",
    doc="""Each element raised to at least ``min``.

>>> import ptcore
>>> ptcore.clamp_min(ptcore.tensor([-1., 2.]), 0)
tensor([0., 2.])
""")

elementwise(
    "clamp_max(input, max)", selects="one", types=ORDERED, formula="minimum(x, y)",
    partial=["where(x <= y, 1.0, 0.0)", "where(x > y, 1.0, 0.0)"], reference="minimum(x, y)",
    doc="""Each element lowered to at most ``max``.

>>> import ptcore
>>> ptcore.clamp_max(ptcore.tensor([-1., 2.]), 0)
tensor([-1.,  0.])
""")

elementwise(
    "clamp_between(input, min: Scalar = 0, max: Scalar = 1)", types=INTEGRAL + REAL,
    formula="clamp_pass_nan(x, min, max)", partial=["where((x >= min) and (x <= max), 1.0, 0.0)"],
    internal=True, called="clamp", node="ClampBackward1", reference="where(x < min, min, where(x > max, max, x))",
    doc="``clamp`` between two numbers of the input's kind, in one pass.")

elementwise(
    "where(condition, input, other)", selects="one", types=ALL, formula="y if x else z",
    promote="where", vjp=[None, "where(x, g, 0)", "where(x, 0, g)"], jvp=[None, "where(x, t, 0)", "where(x, 0, t)"],
    method=False, inplace=False, reference="where(x, y, z)",
    absent=(("input", "other"), "methods.positions"), out_dtype="exact",
    doc="""Elements of ``input`` where ``condition`` holds, of ``other`` elsewhere. With the
condition alone, ``nonzero(condition, as_tuple=True)``.

>>> import ptcore
>>> ptcore.where(ptcore.tensor([True, False]), 1., 2.)
tensor([1., 2.])
>>> ptcore.where(ptcore.tensor([[0, 3], [4, 0]]))
(tensor([0, 1]), tensor([1, 0]))
""")

elementwise(
    "masked_fill(input, mask: Index, value)", selects="one", types=ALL, formula="z if y else x",
    promote="first", vjp=["masked_fill(g, y, 0)", None, "where(y, g, 0)"],
    jvp=["masked_fill(t, y, 0)", None, "where(y, t, 0)"],
    reference="where(y, z, x)",
    doc="""``value`` where ``mask`` holds, ``input`` elsewhere.

>>> import ptcore
>>> ptcore.masked_fill(ptcore.tensor([1., 2.]), ptcore.tensor([True, False]), 0)
tensor([0., 2.])
""")

elementwise(
    "assign(input, other)", selects="second", node="CopyBackwards", types=ALL, formula="y", promote="first",
    partial=["0", "1"],
    internal=True, called="copy", reference="broadcast_to(y, x.shape)",
    doc="``other`` in the dtype of ``input``; its in-place form is ``copy_``.")

elementwise(
    "with_values(input, other)", types=FLOATING, formula="y", partial=["1", None], internal=True, called="copy",
    inplace=False, reference="broadcast_arrays(x, y)[1]",
    doc="The values of ``other`` with the history of ``input``: what a write that is not recorded makes of a tensor.")

elementwise(
    "nan_replaced(input, nan: Scalar, posinf: Scalar, neginf: Scalar)", types=REAL, internal=True, called="nan_to_num",
    out_dtype="exact", formula="nan_replaced(x, nan, posinf, neginf)",
    partial=["where(isfinite(x), 1.0, 0.0)"], reference="nan_to_num(x, True, nan, posinf, neginf)",
    doc="Numbers in the place of NaN and the infinities.")

# -- of two ------------------------------------------------------------------------------------
elementwise(
    "atan2(input, other)", types=REAL, promote="float", formula="atan2(x, y)",
    partial=["y / where((x == 0) and (y == 0), 1.0, hypot(x, y)) / where((x == 0) and (y == 0), 1.0, hypot(x, y))",
             "-x / where((x == 0) and (y == 0), 1.0, hypot(x, y)) / where((x == 0) and (y == 0), 1.0, hypot(x, y))"],
    cost=16, reference="arctan2(x, y)", alias=("arctan2",), autocast=(None, "widest"),
    doc="""Angle of the points ``(other, input)``, in (-pi, pi].

>>> import ptcore
>>> ptcore.atan2(ptcore.tensor([1., 1.]), ptcore.tensor([1., -1.]))
tensor([0.7854, 2.3562])
""")

elementwise(
    "hypot(input, other)", types=REAL, formula="hypot(x, y)", cost=8,
    partial=["where(out == 0, 0.0, x / where(out == 0, 1.0, out))",
             "where(out == 0, 0.0, y / where(out == 0, 1.0, out))"],
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
    "nextafter_of(input, other)", types=("float32", "float64"), formula="nextafter(x, y)", partial=["1", "0"],
    cost=8, reference="nextafter(x, y)", internal=True, called="nextafter", node="NextafterBackward0",
    doc="``nextafter`` of numbers that the processor computes with.")

made("nextafter(input, other)", "nextafter(x, y)", "The next number of the dtype from ``input`` towards ``other``.",
     "bool(ptcore.nextafter(ptcore.tensor(1.), ptcore.tensor(2.)) > 1)", "True", out_argument=True, out_dtype="cast",
     inplace=True)

elementwise(
    "heaviside(input, values)", types=ORDERED, formula="where(x == 0, y, where(x > 0, 1, 0))",
    partial=["0", "where(x == 0, 1.0, 0.0)"], reference="_heaviside(x, y)", out_dtype="exact",
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
    partial=["1", "value * z", "value * y"], reference="x + value * y * z", autocast=(None, "widest"),
    doc="""``input + value * tensor1 * tensor2``.

>>> import ptcore
>>> ptcore.addcmul(ptcore.tensor([1.]), ptcore.tensor([2.]), ptcore.tensor([3.]), value=10)
tensor([61.])
""")

elementwise(
    "addcdiv(input, tensor1, tensor2, *, value: Scalar = 1)", types=FLOATING, formula="x + value * (y / z)",
    partial=["1", "value / z", "-value * (y / z) / z"], sample=uniform(0.5, 3), reference="x + value * (y / z)",
    autocast=(None, "widest"),
    doc="""``input + value * tensor1 / tensor2``.

>>> import ptcore
>>> ptcore.addcdiv(ptcore.tensor([1.]), ptcore.tensor([6.]), ptcore.tensor([3.]), value=10)
tensor([21.])
""")

elementwise(
    "lerp(input, end, weight)", types=FLOATING,
    formula="between(x, y, z)",
    partial=["1 - z", "z", "y - x"], reference="_lerp(x, y, z)",
    doc="""Linear interpolation ``input + weight * (end - input)``.

>>> import ptcore
>>> ptcore.lerp(ptcore.tensor([0., 10.]), ptcore.tensor([4., 20.]), 0.5)
tensor([ 2., 15.])
""")

composite(
    "clamp(input, min: Obj = None, max: Obj = None)", out_argument="inside",
    alias=("clip",), reference="clip(x, min, max)",
    inplace="inside", out_dtype="cast",
    doc="""Elements limited to ``[min, max]``; either bound may be absent, a number or a tensor.

>>> import ptcore
>>> ptcore.clamp(ptcore.tensor([-1., 0.5, 2.]), 0, 1)
tensor([0.0000, 0.5000, 1.0000])
""")

# -- numbers ----------------------------------------------------------------------------------------
made("nan_to_num(input, nan: Obj = None, posinf: Obj = None, neginf: Obj = None)",
     "nan_to_num(x, True, nan or 0.0, posinf, neginf)",
     "Numbers in the place of NaN (0) and the infinities (the dtype's largest and lowest).",
     "ptcore.nan_to_num(ptcore.tensor([float('nan'), 1.]))", "tensor([0., 1.])", out_argument="inside", inplace=True)

made("ldexp(input, other: Obj)", "ldexp(x, other)", "``input * 2**other``.",
     "ptcore.ldexp(ptcore.tensor([3.]), ptcore.tensor([2]))", "tensor([12.])", out_argument=True, inplace=True,
    out_dtype="cast")

elementwise(
    "frexp_mantissa(input)", types=REAL, formula="frexp_mantissa(x)",
    partial=["where((x != 0) and isfinite(x), frexp_mantissa(x) / x, 1.0)"],
    internal=True, called="frexp", reference="frexp(x)[0]", doc="The number in [0.5, 1) that ``frexp`` gives.")

elementwise(
    "frexp_exponent(input)", types=REAL, formula="frexp_exponent(x)", partial=["0"], internal=True, called="frexp",
    reference="frexp(x)[1] + 0.0", doc="The exponent that ``frexp`` gives, as a real number.")

made("frexp(input)", "_frexp(x)",
     "``mantissa`` in [0.5, 1) and int32 ``exponent`` with ``input = mantissa * 2**exponent``.",
     "ptcore.frexp(ptcore.tensor([3.])).exponent", "tensor([2], dtype=ptcore.int32)", out_argument=True,
     returns="tuple[Tensor, Tensor]")

made("float_power(input: Obj, exponent: Obj)", "power(input * 1.0, exponent)",
     "Power in float64 (complex128 for complex arguments); negative exponents of integers are fractions.",
     "ptcore.float_power(ptcore.tensor([2]), -1)", "tensor([0.5000], dtype=ptcore.float64)", out_argument=True,
     inplace="inside")

composite(
    "where_method(input, condition: Obj, other: Obj)", method="where", called="where", public=[],
    reference="where(condition, x, other)",
    doc="""The elements of the tensor where ``condition`` holds, of ``other`` elsewhere.

>>> import ptcore
>>> ptcore.tensor([1, 2]).where(ptcore.tensor([True, False]), 0)
tensor([1, 0])
""")

made("rsub(input, other: Obj, *, alpha: Scalar = 1)", "other - alpha * x", "``other - alpha * input``.",
     "ptcore.rsub(ptcore.tensor([1.]), 3)", "tensor([2.])")

made("positive(input)", "x", "The tensor itself, unless it is bool.", "ptcore.positive(ptcore.tensor([-1.]))",
     "tensor([-1.])")
