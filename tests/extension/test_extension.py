"""Extensions of C++ (ptcore/extension.h) and C (ptcore/api.h): values, memory, errors, ops."""
import math
import sys
from pathlib import Path

import numpy as np
import pytest

import ptcore as pt
from ptcore.utils.cpp_extension import load

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def m(root, tmp_path_factory):
    headers = tmp_path_factory.mktemp("headers")
    (headers / "offset.h").write_text("const int OFFSET = 7;\n")
    flags = ["-include", "ptcore/extension.h", "-Wall", "-Wextra", "-Werror"]
    return load("program", str(HERE / "program.cpp"), extra_cflags=flags, extra_include_paths=[str(headers)],
                build_directory=str(root))


@pytest.fixture(scope="module")
def c(root):
    return load("plain", [HERE / "plain.c"], extra_cflags=["-Wall", "-Wextra", "-Werror"], build_directory=root)


def test_values(m):
    assert m.scalars(True, -2**63, 255, 1, "é\0x") == (True, -2**63, 255, 1.0, "é\0x")
    assert m.scalars(False, np.int32(3), True, np.float32(0.5), "") == (False, 3, 1, 0.5, "")
    assert m.optionals(None) == [None, None, None] == m.optionals() and m.optionals(2) == [2, None, None]
    assert m.optionals(1.5, "abc", pt.ones(4)) == [1.5, 3, 4] == m.named(1.5, c=pt.ones(4), b="abc")
    assert m.named(c=pt.ones(2)) == [None, None, 2]
    assert m.nested([("a", [1, 2]), ["b", ()]]) == [("a", [1, 2]), ("b", [])]
    assert m.conjugate(1 + 2j) == 1 - 2j and m.conjugate(3) == 3
    marker = object()
    assert m.itself(marker) is marker and m.itself(None) is None
    x = pt.ones(2)
    assert m.same(x) is x and m.none() is None and m.nothing(x) is None
    assert math.isnan(m.scalars(True, 0, 0, math.nan, "")[3])
    assert m.scalars.__doc__ == "All of them." and m.OFFSET == 7 and m.__name__ == "program"


@pytest.mark.parametrize("call, error, message", [
    (lambda m: m.scalars(1, 0, 0, 0, ""), TypeError, "scalars: argument 1 must be a bool, got int"),
    (lambda m: m.scalars(True, 0.5, 0, 0, ""), TypeError, "scalars: argument 2 must be an int, got float"),
    (lambda m: m.scalars(True, 2**63, 0, 0, ""), OverflowError, "scalars: argument 2 does not fit into 64 bits"),
    (lambda m: m.scalars(True, 0, 256, 0, ""), OverflowError, "argument 3 does not fit into 8 bits without a sign"),
    (lambda m: m.scalars(True, 0, -1, 0, ""), OverflowError, "argument 3 does not fit"),
    (lambda m: m.scalars(True, 0, 0, "1", ""), TypeError, "argument 4 must be a float, got str"),
    (lambda m: m.scalars(True, 0, 0, pt.ones(1), ""), TypeError, "argument 4 must be a float, got ptcore.*Tensor"),
    (lambda m: m.scalars(True, pt.tensor(1), 0, 0.5, ""), TypeError, "argument 2 must be an int, got ptcore.*Tensor"),
    (lambda m: m.scalars(True, 0, 0, 0, b""), TypeError, "argument 5 must be a str, got bytes"),
    (lambda m: m.scalars(True, 0, 0, 0), TypeError, "scalars: expected 5 arguments, got 4"),
    (lambda m: m.optionals(1, "", None, 2), TypeError, "optionals: expected at most 3 arguments, got 4"),
    (lambda m: m.optionals("x"), TypeError, "optionals: argument 1 must be a float or None, got str"),
    (lambda m: m.optionals(a=1), TypeError, "optionals: its parameters have no names, got the keyword 'a'"),
    (lambda m: m.named(x=1), TypeError, "named: there is no parameter 'x'"),
    (lambda m: m.named(1, a=1), TypeError, "named: 'a' is given twice"),
    (lambda m: m.nested([("a", [1, "x"])]), TypeError, r"nested: argument 1 must be a list .* \(0 is not\)"),
    (lambda m: m.nested([("a",)]), TypeError, "nested: argument 1"),
    (lambda m: m.nested("ab"), TypeError, "nested: argument 1 must be a list or a tuple, got str"),
    (lambda m: m.same(np.ones(2)), TypeError, "same: argument 1 must be a Tensor, got numpy.ndarray"),
    (lambda m: m.same(None), TypeError, "same: argument 1 must be a Tensor, got NoneType"),
    (lambda m: m.row_sums(pt.ones(2, 2)), TypeError, "expected a tensor of float64, got float32"),
    (lambda m: m.row_sums(pt.ones(2).double()), TypeError, "accessor: expected a tensor of 2 dims, got one of 1"),
    (lambda m: m.row_sums(pt.ones(2, 2, dtype=pt.float64, device="meta")), ValueError, "not on the CPU"),
    (lambda m: m.doubled(pt.ones(2).long()), TypeError, "doubled: expected float32 or float64, got int64"),
    (lambda m: m.last_size(pt.ones(2), 1), IndexError, r"dim must be in \[-1, 0\], got 1"),
    (lambda m: m.fail(0), ValueError, "invalid"), (lambda m: m.fail(1), IndexError, "range"),
    (lambda m: m.fail(2), MemoryError, None), (lambda m: m.fail(3), OverflowError, "overflow"),
    (lambda m: m.fail(4), RuntimeError, "no std::exception"), (lambda m: m.fail(5), RuntimeError, "kind is 5"),
    (lambda m: m.fail(6), RuntimeError, "reshape.*size 3"), (lambda m: m.fail(7), AttributeError, "no_such_op"),
    (lambda m: m.fail(8), RuntimeError, "holds no tensor"),
    (lambda m: m.called_back(lambda x: 1 / x, 0), ZeroDivisionError, "division"),
    (lambda m: m.called_back(lambda x: "s", 0), TypeError, "must be a float, got str")])
def test_errors(m, call, error, message):
    with pytest.raises(error, match=message):
        call(m)


def test_what_a_tensor_tells(m):
    x = pt.ones(2, 3, dtype=pt.int16).t()
    assert m.described(x) == [2, 6, 4, 0, 0, 0, 2, 3, 2, 1, 3]
    assert m.described(pt.ones((), requires_grad=True)) == [0, 1, 11, 0, 1, 1, 4]
    assert m.described(pt.ones(0, device="meta"))[3:4] == [2] and m.last_size(x, -2) == 3


def test_memory(m):
    x = pt.arange(12, dtype=pt.float64).reshape(3, 4)
    for t in (x, x.t(), x[::-1, ::2], x[:0]):
        assert m.row_sums(t).tolist() == t.numpy().sum(1).tolist()
    assert m.doubled(x.t()).tolist() == (2 * x.t()).tolist() and m.doubled(x.float()).dtype == pt.float32
    version = x._version
    m.set_first(x, -1.0, False)
    assert x[0, 0] == -1 and x._version == version
    m.set_first(x, -2.0, True)
    assert x[0, 0] == -2 and x._version == version + 1
    frozen = np.zeros((2, 2))
    frozen.setflags(write=False)
    assert m.row_sums(pt.from_numpy(frozen)).tolist() == [0, 0]
    for counted in (False, True):
        with pytest.raises(RuntimeError, match="read-only"):
            m.set_first(pt.from_numpy(frozen), 1.0, counted)
    with pytest.raises(RuntimeError, match="leaf"):
        m.set_first(pt.zeros(3, dtype=pt.float64, requires_grad=True), 1.0, True)
    t = m.counted()
    assert t.tolist() == [1, 2, 3] and (t + 1).tolist() == [2, 3, 4]


def test_references(m):
    x, s = pt.ones(2), object()
    before = sys.getrefcount(x), sys.getrefcount(s)
    for _ in range(10):
        m.same(x), m.itself(s), m.nothing(x), m.optionals(None, None, x), m.largest(x.reshape(1, 2))
        with pytest.raises(TypeError):
            m.scalars(x, 0, 0, 0, "")
    assert (sys.getrefcount(x), sys.getrefcount(s)) == before


def test_ops_are_recorded(m, rng):
    x, y = (pt.from_numpy(rng.random((2, 3))).requires_grad_() for _ in range(2))

    def wanted(x, y):
        z = (pt.softmax(x * 2 - y / 3 + 1, -1) + y) * -x
        return pt.where(x > 0.5, z, pt.nn.functional.gelu(y)).sum(1)

    np.testing.assert_allclose(m.formula(x, y).detach(), wanted(x, y).detach(), rtol=1e-14)
    assert pt.autograd.gradcheck(m.formula, (x, y)) and pt.autograd.gradgradcheck(m.formula, (x, y))
    values, places = m.largest(x)
    assert values.tolist() == x.max(1).values.tolist() and places.tolist() == x.max(1).indices.tolist()
    assert m.seen().startswith("RuntimeError: reshape")
    assert m.called_back(math.sqrt, 4.0) == 2 and m.without_gil() == 7


def test_c(c):
    x = pt.arange(10, dtype=pt.float64)
    assert c.total(x[::-2]) == 25 and c.ramp(3).tolist() == [0, 1, 2] and c.ramp(3).dtype == pt.int32
    y = x.clone().requires_grad_()
    assert pt.equal(c.softmax(y), pt.softmax(x, 0)) and c.softmax(y).grad_fn.name() == "SoftmaxBackward0"
    memory = np.arange(3.0).tobytes()
    assert c.over(memory).tolist() == [0, 1, 2]
    with pytest.raises(RuntimeError, match="read-only"):
        c.over(memory).add_(1)
    assert [c.dtype(k) for k in (0, 9, 14)] == [pt.bool, pt.float16, pt.complex128]
    for call, error, message in (
            (lambda: c.total(3), TypeError, "expected a Tensor, got int"),
            (lambda: c.total(pt.ones(1, dtype=pt.float64, device="meta")), ValueError, "data_ptr"),
            (lambda: c.ramp(-1), ValueError, "negative"), (lambda: c.dtype(99), ValueError, "got 99"),
            (lambda: c.dtype(-1), ValueError, "got -1"), (lambda: c.enter("no_such_op"), KeyError, "no_such_op")):
        with pytest.raises(error, match=message):
            call()
    op = pt.ops.register("extension_ten(input)", spec=lambda x: (x.shape, x.dtype), kernels={}, types=("float64",))
    c.enter("extension_ten")
    assert op(x).tolist() == [10] * 10


def test_an_extension_written_for_pytorch(root, rng):
    """A cell whose forward and backward are C++ functions over ops, against the same in Python."""
    m = load("lltm", [HERE / "lltm.cpp"], build_directory=root)

    class Cell(pt.autograd.Function):
        @staticmethod
        def forward(ctx, input, weights, bias, old_h, old_cell):
            outputs = m.forward(input, weights, bias, old_h, old_cell)
            ctx.save_for_backward(*outputs[1:], weights)
            return tuple(outputs[:2])

        @staticmethod
        def backward(ctx, grad_h, grad_cell):
            d_old_h, d_input, d_weights, d_bias, d_old_cell = m.backward(grad_h, grad_cell, *ctx.saved_tensors)
            return d_input, d_weights, d_bias, d_old_h, d_old_cell

    shapes = (3, 4), (6, 6), (1, 6), (3, 2), (3, 2)
    given = [pt.from_numpy(rng.standard_normal(shape)).requires_grad_() for shape in shapes]

    def wanted(input, weights, bias, old_h, old_cell):
        a, b, c = pt.addmm(bias, pt.cat([old_h, input], 1), weights.t()).chunk(3, 1)
        cell = old_cell + pt.nn.functional.elu(c) * a.sigmoid()
        return cell.tanh() * b.sigmoid(), cell

    for found, want in zip(Cell.apply(*given), wanted(*given)):
        np.testing.assert_allclose(found.detach(), want.detach(), rtol=1e-12)
    assert pt.autograd.gradcheck(Cell.apply, given)
    x = pt.from_numpy(rng.random((3, 4)))
    assert pt.equal(m.doubled(x.t()), 2 * x.t()) and m.doubled(x.float()).dtype == pt.float32
    with pytest.raises(RuntimeError, match="input must have 2 dims, got 1"):
        m.forward(x[0], *given[1:])
