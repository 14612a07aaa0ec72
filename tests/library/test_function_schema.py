"""Texts of schemas: what is read of them, that they are written as they were, and where a wrong one is wrong."""

import numpy as np
import pytest

import ptcore as pt
from ptcore._ops.table.function_schema import parse_schema

pytestmark = pytest.mark.core

# As PyTorch writes them.
TEXTS = (
    "foo(Tensor x) -> Tensor",
    "ns::foo.bar(Tensor x, Tensor? y=None, *, Tensor[] z) -> (Tensor, Tensor)",
    "foo(Tensor(a!) self, Scalar other, *, Scalar alpha=1) -> Tensor(a!)",
    "foo(Tensor(a) self, int[] size) -> Tensor(a)",
    "foo(Tensor(a -> *) self, int dim=0) -> Tensor(a)[]",
    "foo(Tensor self, int[2] kernel, int[2] stride=[], bool ceil=False, float? p=None) -> Tensor",
    'foo(Tensor?[] x, SymInt n, float f=0.5, str s="a b") -> Tensor[]',
    "foo() -> ()",
    "foo(Tensor x, ScalarType? dtype=None, Device? device=None) -> Tensor",
    "foo(Tensor x) -> (Tensor out, int n)",
    "foo(Tensor x, int reduction=1, int ignore=-100) -> Tensor",
    "foo(Dict(str, Tensor) x, (int, Tensor) y) -> Tensor",
)


@pytest.mark.parametrize("text", TEXTS)
def test_round_trip(text):
    schema = parse_schema(text)
    assert str(schema) == text
    assert parse_schema(str(schema)) == schema


def test_parts():
    s = parse_schema(
        "ns::foo.bar(Tensor(a!) x, int[2] k=3, *, float f=1, str s='it', Device d=\"meta\") -> (Tensor, int[])"
    )
    assert (s.name, s.overload_name) == ("ns::foo", "bar")
    x, k, f, text, d = s.arguments
    assert x.is_write and x.alias_info.before_set == {"a"} and s.is_mutable and s.mutates == (0,)
    assert not x.has_default_value() and not x.kwarg_only
    assert k.type.is_list and k.type.size == 2 and k.default_value == 3
    assert f.kwarg_only and type(f.default_value) is float and f.default_value == 1.0
    assert text.default_value == "it" and d.default_value == pt.device("meta")
    assert [str(r.type) for r in s.returns] == ["Tensor", "int[]"]
    assert s.returns[1].type.getElementType().word == "int"
    assert parse_schema("f(Tensor x, ScalarType t=float64) -> Tensor").arguments[1].default_value is pt.float64
    assert parse_schema("f(int n=Mean) -> ()").arguments[0].default_value == 1


@pytest.mark.parametrize(
    "text, place, expected",
    [
        ("foo(Tensor x -> Tensor", 14, "')'"),
        ("foo(Tensor) -> Tensor", 11, "the name of an argument of type Tensor"),
        ("foo(Tensor x)", 14, "'->'"),
        ("foo(Tensor x) -> ", 18, "a type"),
        ("foo(Tensor x) -> Tensor Tensor x", 32, "the end"),
        ("foo(Tensor x=) -> Tensor", 14, "a default"),
        ("foo(Tensor(a! x) -> Tensor", 15, "')'"),
        ("", 1, "a name or '('"),
        ("foo(Tensor[x) -> Tensor", 12, "']'"),
        ("foo(Tensor x, $) -> Tensor", 15, "a type"),
    ],
)
def test_errors_point_to_the_place(text, place, expected):
    with pytest.raises(RuntimeError) as e:
        parse_schema(text)
    assert f"expected {expected}" in str(e.value) and f"at column {place} " in str(e.value)


def test_other_errors():
    with pytest.raises(RuntimeError, match="two arguments are called 'x'"):
        parse_schema("foo(Tensor x, int x) -> Tensor")
    with pytest.raises(TypeError, match="must be a str, got int"):
        parse_schema(3)


WRONG = object()
X = pt.ones(2)


@pytest.mark.parametrize(
    "type_, value, converted",
    [
        ("Tensor", X, X),
        ("Tensor", 1.0, WRONG),
        ("Tensor", None, WRONG),
        ("Tensor?", None, None),
        ("Tensor?", X, X),
        ("Tensor[]", (X, X), [X, X]),
        ("Tensor[]", [X, None], WRONG),
        ("Tensor?[]", [X, None], [X, None]),
        ("Tensor[]", X, WRONG),
        ("int", 3, 3),
        ("int", True, True),
        ("int", 2.0, WRONG),
        ("int", X, WRONG),
        ("int[2]", 3, [3, 3]),
        ("int[]", 3, WRONG),
        ("int[]", (1, 2), [1, 2]),
        ("int[]", [1, 2.5], WRONG),
        ("int[]?", None, None),
        ("SymInt[]", pt.Size([1, 2]), [1, 2]),
        ("float", 1, 1.0),
        ("float", 2.5, 2.5),
        ("float", True, WRONG),
        ("float", "1", WRONG),
        ("float", 1 + 2j, WRONG),
        ("float", np.complex64(1 + 2j), WRONG),
        ("float", np.float32(1.5), 1.5),
        ("float[]", [1, 2], [1.0, 2.0]),
        ("bool", False, False),
        ("bool", 1, WRONG),
        ("str", "a", "a"),
        ("str", b"a", WRONG),
        ("Scalar", 2, 2),
        ("Scalar", 1j, 1j),
        ("Scalar", pt.tensor(3.0), 3.0),
        ("Scalar", "a", WRONG),
        ("ScalarType", pt.int8, pt.int8),
        ("ScalarType", "int8", WRONG),
        ("Device", "cpu", pt.device("cpu")),
        ("Device", pt.device("meta"), pt.device("meta")),
        ("Device", 1.5, WRONG),
    ],
)
def test_conversions(type_, value, converted):
    argument = parse_schema(f"foo({type_} a) -> ()").arguments[0]
    if converted is WRONG:
        with pytest.raises(
            RuntimeError, match=r"ns::foo\(\) Expected a value of type '.*' for argument 'a' but instead found"
        ):
            argument.convert("ns::foo", value)
        with pytest.raises(TypeError):
            argument.convert("ns::foo", value)
        return
    found = argument.convert("ns::foo", value)
    assert type(found) is type(converted)
    if converted is not X and not (isinstance(converted, list) and any(x is X for x in converted)):
        assert found == converted
    else:
        assert all(
            a is b
            for a, b in zip(
                found if isinstance(found, list) else [found],
                converted if isinstance(converted, list) else [converted],
                strict=True,
            )
        )
