"""``opcheck`` finds what does not fit, each by the test that is meant for it."""

import pytest

import ptcore as pt
from ptcore import Tensor, library

pytestmark = pytest.mark.core
ALL = (
    "test_schema",
    "test_autograd_registration",
    "test_faketensor",
    "test_aot_dispatch_static",
    "test_aot_dispatch_dynamic",
)


def op_of(kernel, fake=lambda x: pt.empty_like(x), backward=lambda ctx, g: g, schema="(Tensor x) -> Tensor", writes=()):
    made = library.custom_op("opcheck::op", kernel, mutates_args=writes, schema=schema)
    made._definition.checks = None  # so that opcheck is what finds it
    if fake is not None:
        made.register_fake(fake)
    if backward is not None:
        made.register_autograd(backward)
    return made


def failing(op, *args):
    found = library.opcheck(op, args, test_utils="ALL", raise_exception=False)
    assert tuple(found) == ALL
    return {name: str(error) for name, error in found.items() if error != "SUCCESS"}


X = pt.ones(3)


def test_right_ones():
    for x in (X, pt.ones(2, 3, requires_grad=True), pt.ones(3, 2).T):
        assert failing(op_of(lambda x: x * 1), x) == {}
    assert set(library.opcheck(op_of(lambda x: x * 1), (X,)).values()) == {"SUCCESS"}
    writes = op_of(
        lambda x: x.add_(1) and None if False else (x.add_(1), None)[1], None, None, "(Tensor(a!) x) -> ()", {"x"}
    )
    assert failing(writes, X.clone()) == {}
    assert failing(pt.ops.aten.sin, pt.ones(2, requires_grad=True)) == {}


def test_wrong_ones():
    def writes(x):
        x.add_(1)
        return x.clone()

    assert failing(op_of(writes), X.clone())["test_schema"] == "Argument x is not defined as mutable but was mutated"
    assert "is not defined to alias output" in failing(op_of(lambda x: x.view(-1)), X.clone())["test_schema"]
    assert (
        "register_autograd"
        in failing(op_of(lambda x: x * 1, backward=None), X.clone().requires_grad_())["test_autograd_registration"]
    )
    found = failing(op_of(lambda x: x * 1, fake=None), X)
    assert "no fake impl" in found["test_faketensor"] and "no fake impl" in found["test_aot_dispatch_static"]
    for fake, message in (
        (lambda x: x.new_empty(2), r"shape of result 0: the fake says [2], the kernel gives [3]"),
        (lambda x: pt.empty_like(x, dtype=pt.float64), "dtype of result 0: the fake says ptcore.float64"),
        (lambda x: (x, x), "the fake gives 2 results, the kernel 1"),
    ):
        assert message in failing(op_of(lambda x: x * 1, fake), X)["test_faketensor"]
    transposed = failing(op_of(lambda x: (x * 1).T, lambda x: x.new_empty(x.shape[1], x.shape[0])), pt.ones(2, 3))
    assert "strides of result 0" in transposed["test_faketensor"]


def test_what_opcheck_refuses():
    op = op_of(lambda x: x * 1)
    for call, error, message in (
        (lambda: library.opcheck(op, (X,), atol=1.0), ValueError, "you must specify both"),
        (lambda: library.opcheck(op, (X,), test_utils=("test_all",)), ValueError, "expected test_utils to be subset"),
        (lambda: library.opcheck(print, (X,)), ValueError, "must be instance of torch._ops.OpOverload"),
        (
            lambda: library.opcheck(op_of(lambda x: x * 1, None), (X,)),
            library.OpCheckError,
            r"test_faketensor failed with .*\(scroll up for stack trace\)",
        ),
    ):
        with pytest.raises(error, match=message):
            call()


def test_the_arguments_stay_as_they_are():
    def kernel(x: Tensor, y: list[Tensor]) -> None:
        x.add_(1)
        y[0].add_(1)

    op = library.custom_op("opcheck::writes", kernel, mutates_args={"x", "y"})
    x, y = pt.zeros(2), [pt.zeros(2)]
    library.opcheck(op, (x, y))
    assert x.tolist() == [0, 0] and y[0].tolist() == [0, 0]
