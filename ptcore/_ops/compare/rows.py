"""Rows: comparisons, logic, bits and tests of floating-point class."""
from ptcore._ops.table.schema import ALL, BOOL, FLOATING, INTEGRAL, ORDERED, REAL, composite, elementwise, made

for _name, _sign, _types, _alias in (
        ("lt", "<", ORDERED, "less"), ("le", "<=", ORDERED, "less_equal"),
        ("eq", "==", ALL, None), ("ne", "!=", ALL, "not_equal"),
        ("gt", ">", ORDERED, "greater"), ("ge", ">=", ORDERED, "greater_equal")):
    elementwise(
        f"{_name}(input, other)", types=_types, out="bool", formula=f"x {_sign} y",
        partial=None, scalar_loops=True, reference=f"x {_sign} y",
        alias=(_alias,) if _alias else (),
        doc=f"""Whether ``input {_sign} other``, element by element.

>>> import ptcore
>>> ptcore.{_name}(ptcore.tensor([1, 1]), ptcore.tensor([1, 1])).shape
ptcore.Size([2])
""")

for _name, _sign, _text in (("bitwise_and", "&", "Bitwise and; logical and of bools."),
                            ("bitwise_or", "|", "Bitwise or; logical or of bools."),
                            ("bitwise_xor", "^", "Bitwise exclusive or.")):
    elementwise(
        f"{_name}(input, other)", types=BOOL + INTEGRAL, formula=f"x {_sign} y", partial=None,
        reference=f"x {_sign} y",
        doc=f"""{_text}

>>> import ptcore
>>> ptcore.{_name}(ptcore.tensor([6]), 6).dtype
ptcore.int64
""")

elementwise(
    "bitwise_not(input)", types=BOOL + INTEGRAL, formula="bitwise_not(x)", partial=None,
    reference="invert(x)", out_dtype="exact",
    doc="""Bitwise complement; logical not of bools.

>>> import ptcore
>>> ptcore.bitwise_not(ptcore.tensor([0, 5]))
tensor([-1, -6])
""")

elementwise(
    "bitwise_left_shift(input, other)", types=INTEGRAL, formula="left_shift(x, y)", partial=None,
    reference="left_shift(x, y)", sample=("integers", 0, 7),
    doc="""Bits shifted left; 0 where the shift is negative or not below the width.

>>> import ptcore
>>> ptcore.bitwise_left_shift(ptcore.tensor([1, 3]), 2)
tensor([ 4, 12])
""")

elementwise(
    "bitwise_right_shift(input, other)", types=INTEGRAL, formula="right_shift(x, y)",
    partial=None, reference="right_shift(x, y)", sample=("integers", 0, 7),
    doc="""Bits shifted right, keeping the sign.

>>> import ptcore
>>> ptcore.bitwise_right_shift(ptcore.tensor([8, -8]), 2)
tensor([ 2, -2])
""")

for _name, _formula, _text in (
        ("logical_and", "(x != 0) and (y != 0)", "Whether both are nonzero."),
        ("logical_or", "(x != 0) or (y != 0)", "Whether either is nonzero."),
        ("logical_xor", "(x != 0) != (y != 0)", "Whether exactly one is nonzero.")):
    elementwise(
        f"{_name}(input, other)", out="bool", formula=_formula, partial=None,
        reference=f"{_name}(x, y)",
        doc=f"""{_text}

>>> import ptcore
>>> ptcore.{_name}(ptcore.tensor([True]), ptcore.tensor([False])).dtype
ptcore.bool
""")

elementwise(
    "logical_not(input)", out="bool", formula="x == 0", partial=None,
    reference="logical_not(x)",
    doc="""Whether each element is zero.

>>> import ptcore
>>> ptcore.logical_not(ptcore.tensor([0., 2.]))
tensor([ True, False])
""")

for _name, _text in (("isnan", "Whether each element is NaN."),
                     ("isinf", "Whether each element is infinite."),
                     ("isfinite", "Whether each element is neither NaN nor infinite.")):
    elementwise(
        f"{_name}(input)", types=BOOL + INTEGRAL + FLOATING, out="bool", formula=f"{_name}(x)",
        partial=None, inplace=False, reference=f"{_name}(x)",
        doc=f"""{_text}

>>> import ptcore
>>> ptcore.{_name}(ptcore.tensor([1.])).shape
ptcore.Size([1])
""")

for _name, _sign, _text in (("isposinf", ">", "positive"), ("isneginf", "<", "negative")):
    elementwise(
        f"{_name}(input)", types=BOOL + INTEGRAL + REAL, out="bool", formula=f"isinf(x) and x {_sign} 0", partial=None,
        inplace=False, reference=f"{_name}(x)", out_dtype="exact",
        doc=f"""Whether each element is {_text} infinity.

>>> import ptcore
>>> ptcore.{_name}(ptcore.tensor([1.]))
tensor([False])
""")

elementwise(
    "signbit(input)", types=BOOL + INTEGRAL + REAL, out="bool", formula="signbit(x)",
    partial=None, inplace=False, reference="signbit(x)", out_dtype="exact",
    doc="""Whether the sign bit is set (true of -0.0).

>>> import ptcore
>>> ptcore.signbit(ptcore.tensor([-0., 0.]))
tensor([ True, False])
""")

composite(
    "allclose(input, other, rtol=1e-5, atol=1e-8, equal_nan=False)", returns="bool",
    reference="allclose(x, y, rtol, atol)",
    doc="""Whether all elements agree within ``atol + rtol * abs(other)``.

>>> import ptcore
>>> ptcore.allclose(ptcore.tensor([1.]), ptcore.tensor([1. + 1e-7]))
True
""")

composite(
    "isclose(input, other, rtol=1e-5, atol=1e-8, equal_nan=False)",
    reference="isclose(x, y, rtol, atol)",
    doc="""Which elements agree within ``atol + rtol * abs(other)``.

>>> import ptcore
>>> ptcore.isclose(ptcore.tensor([1., 2.]), ptcore.tensor([1., 3.]))
tensor([ True, False])
""")

composite(
    "equal(input, other)", reference="array_equal(x, y)", returns="bool",
    doc="""Whether two tensors have the same shape and elements, as a Python bool.

>>> import ptcore
>>> ptcore.equal(ptcore.tensor([1]), ptcore.tensor([1]))
True
""")

made("isreal(input)", "isreal(x)", "Whether each element has no imaginary part.",
     "ptcore.isreal(ptcore.tensor([1.]))", "tensor([True])")
