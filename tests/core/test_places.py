"""Places that later capabilities fill: a layout byte, sizes that are no ints, a column of rows."""
import pytest

import ptcore as pt
from ptcore import _ops as ops
from ptcore._node import meta_of_sizes
from ptcore._ops.table.schema import Row

pytestmark = pytest.mark.core

@pytest.mark.parametrize("call", [
    lambda x: x + 1, lambda x: x.add_(1), lambda x: x.sum(0), lambda x: x.t(), lambda x: pt.linalg.norm(x),
    lambda x: pt.mm(pt.ones(2, 2), x)])
def test_ops_refuse_a_layout_that_they_have_no_kernel_for(call):
    x = pt.ones(2, 2)._with_layout(1)
    with pytest.raises(NotImplementedError, match="no kernel for tensors that are not strided"):
        call(x)
    call(x._with_layout(0))


def test_a_row_names_the_kernel_of_other_layouts():
    assert Row("structured", "op(input)", out="like", sparse="sparse_op").sparse == "sparse_op"
    assert not any(row.sparse for row in ops.rows())


class Size:
    """A size that is no int, as a tracer has them."""

    def __init__(self, value):
        self.value = value

    def __mul__(self, other):
        return Size(("mul", self.value, getattr(other, "value", other)))

    __rmul__ = __mul__


def test_saved_metadata_holds_any_sizes():
    n = Size("n")
    meta = meta_of_sizes((n, 3), pt.float32, pt.device("cpu"))
    assert meta.shape == (n, 3)
    assert (meta.ndim, meta.dtype, meta.device) == (2, pt.float32, pt.device("cpu"))
    assert meta.numel().value == ("mul", ("mul", "n", 1), 3)
