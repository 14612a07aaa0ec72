"""Promotion: the lattice of dtypes, the weak kinds of 0-d tensors and Python numbers."""
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ptcore

pytestmark = pytest.mark.core
NAMES = ["bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64",
         "float16", "bfloat16", "float32", "float64", "complex64", "complex128"]
DTYPES = [getattr(ptcore, n) for n in NAMES]
any_dtype = st.sampled_from(DTYPES)


@given(any_dtype, any_dtype)
def test_commutative_and_idempotent(a, b):
    assert ptcore.promote_types(a, b) is ptcore.promote_types(b, a)
    assert ptcore.promote_types(a, a) is a


@given(any_dtype, any_dtype)
def test_result_absorbs_its_operands(a, b):
    c = ptcore.promote_types(a, b)
    assert ptcore.promote_types(c, a) is c
    assert ptcore.promote_types(c, b) is c


@pytest.mark.parametrize(("a", "b"), list(itertools.combinations(
    [n for n in NAMES if "float" not in n and "complex" not in n], 2)))
def test_integers_as_numpy(a, b):
    """Integers and bools promote as in NumPy, but for pairs that NumPy sends to float64."""
    want = np.promote_types(a, b).name
    got = ptcore.promote_types(getattr(ptcore, a), getattr(ptcore, b)).name
    if want != "float64":
        assert got == want


@pytest.mark.parametrize(("a", "b", "c"), [
    ("int64", "float16", "float16"), ("int64", "float32", "float32"),
    ("float16", "bfloat16", "float32"), ("bfloat16", "float32", "float32"),
    ("float32", "complex64", "complex64"), ("float64", "complex64", "complex128"),
    ("float16", "complex64", "complex64"), ("bool", "float16", "float16"),
    ("int64", "complex64", "complex64")])
def test_floats_as_torch(a, b, c):
    """Integers never widen a float; documented by PyTorch, unlike NumPy."""
    assert ptcore.promote_types(getattr(ptcore, a), getattr(ptcore, b)).name == c


@pytest.mark.parametrize("dtype", NAMES)
def test_python_numbers_are_weak(dtype):
    """A number changes the dtype of a tensor only if it is of a higher kind."""
    x = ptcore.ones(2, dtype=getattr(ptcore, dtype))
    kind = x.dtype.kind
    for number, rank in ((True, 0), (2, 1), (2.5, 2), (1j, 3)):
        own = {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}[kind]
        got = (x + number).dtype.name
        if rank <= own:
            assert got == dtype
        else:
            half = {"float64": "complex128", "float16": "complex32", "bfloat16": "complex64"}
            assert got == (half.get(dtype, "complex64") if rank == 3 else
                           "float32" if rank == 2 else "int64")


@pytest.mark.parametrize("dtype", NAMES)
def test_zero_dim_tensors_are_weak(dtype):
    zero = ptcore.ones((), dtype=getattr(ptcore, dtype))
    x = ptcore.ones(2, dtype=ptcore.float16)
    if zero.dtype.kind != "c":
        assert (x + zero).dtype is ptcore.float16
    assert (zero + zero).dtype is zero.dtype


def test_default_dtype_decides():
    i = ptcore.ones(2, dtype=ptcore.int32)
    assert (i / i).dtype is (i + 0.5).dtype is i.sin().dtype is ptcore.float32
    ptcore.set_default_dtype(ptcore.float64)
    assert (i / i).dtype is (i + 0.5).dtype is i.sin().dtype is ptcore.float64
    assert (i + 1j).dtype is ptcore.complex128


def test_values_survive_promotion():
    """int64 values beyond 2**53 do not pass through double on their way."""
    big = ptcore.tensor([2**62 + 1])
    assert (big + 1).item() == 2**62 + 2
    assert (big + ptcore.tensor(1, dtype=ptcore.int8)).item() == 2**62 + 2
    assert (big == 2**62 + 1).item()
    assert not (big == 2**62).item()
    top = ptcore.tensor([2**64 - 1], dtype=ptcore.uint64)
    assert (top == 2**64 - 1).item()
    assert (top - 1).item() == 2**64 - 2


@pytest.mark.parametrize(("a", "b", "want"), [
    (1, 2, "int64"), (True, 1, "int64"), (1, 2.0, "float32"), (True, False, "bool"), (1, 2j, "complex64"),
    (("int8", 1), 3, "int8"), (("int8", 0), 3, "int8"), (("int8", 1), 1.5, "float32"), (("float16", 1), 1.5, "float16"),
    (("int64", 1), ("float64", 0), "float64"), (("float32", 1), ("float64", 0), "float32"),
    (("int64", 0), ("float64", 0), "float64"), (("uint8", 1), ("int8", 1), "int16"),
    (("float16", 1), ("bfloat16", 1), "float32"), (1j, ("float64", 1), "complex128"), (1j, ("int8", 1), "complex64"),
    (("bool", 1), 1, "int64"), (("uint8", 1), ("int64", 0), "uint8"), (np.float64(1), ("float32", 1), "float32")])
def test_result_type(a, b, want):
    """PyTorch's documented classes: tensors with dims, 0-d tensors, numbers."""
    def operand(x):
        return pt_ones(x[1], x[0]) if isinstance(x, tuple) else x

    def pt_ones(rank, dtype):
        return ptcore.ones((2,) * rank, dtype=getattr(ptcore, dtype))

    assert ptcore.result_type(operand(a), operand(b)).name == want
    assert ptcore.result_type(operand(b), operand(a)).name == want


def test_result_type_refusals():
    for wrong in ("a", None, ptcore.float32, [1]):
        with pytest.raises(TypeError, match="result_type: operands must be Tensors or numbers, got"):
            ptcore.result_type(wrong, 1)
    assert ptcore.get_default_dtype() is ptcore.float32


@pytest.mark.parametrize(("source", "target", "want"), [
    ("float64", "float16", True), ("float16", "int64", False), ("int64", "uint8", True), ("uint8", "bool", False),
    ("bool", "int8", True), ("complex64", "float64", False), ("int8", "complex64", True)])
def test_can_cast(source, target, want):
    assert ptcore.can_cast(getattr(ptcore, source), getattr(ptcore, target)) is want


def test_three_operands_promote_together():
    """Those with dims decide; two after the other would let the first of them decide."""
    flags, zero, x = ptcore.ones(2).bool(), ptcore.tensor(3), ptcore.tensor([1, 2], dtype=ptcore.uint8)
    assert flags.clamp(zero, x).dtype is ptcore.uint8
    assert x.clamp(-3, 1.5).tolist() == [1, 1.5] and ptcore.addr(x, x, x.double()).dtype is ptcore.float64
    low = ptcore.tensor([120], dtype=ptcore.int8)
    assert ptcore.rsub(low, ptcore.tensor([2], dtype=ptcore.int16), alpha=2).tolist() == [-238]
    assert ptcore.special.xlog1py(low.half(), ptcore.ones(1).double()).item() == 120 * np.log1p(1)
    assert ptcore.ldexp(low, ptcore.ones(1).double()).dtype is ptcore.float64


@pytest.mark.parametrize(("number", "right", "want"), [
    (-3, False, 0), (-3, True, 0), (300, False, 3), (255, False, 2), (255, True, 3), (2.5, False, 2), (0, True, 1)])
def test_numbers_among_unsigned(number, right, want):
    """A number that the dtype does not hold is before or behind all elements, or between two."""
    sequence = ptcore.tensor([0, 2, 255], dtype=ptcore.uint8)
    assert ptcore.searchsorted(sequence, number, right=right).item() == want
    assert ptcore.bucketize(number, sequence, right=right).item() == want
    tensor = ptcore.tensor([number])
    assert ptcore.searchsorted(sequence, tensor, right=right).tolist() == [want]
