"""Memory without content, and ops that PyTorch refuses, where deterministic algorithms are requested."""
import math

import pytest

import ptcore as pt

pytestmark = pytest.mark.core

MAKERS = {
    "empty": lambda dtype: pt.empty(3, dtype=dtype), "empty_like": lambda dtype: pt.empty_like(pt.ones(3, dtype=dtype)),
    "new_empty": lambda dtype: pt.ones(1, dtype=dtype).new_empty(3),
    "empty_strided": lambda dtype: pt.empty_strided((3,), (2,), dtype=dtype),
    "new_empty_strided": lambda dtype: pt.ones(1, dtype=dtype).new_empty_strided((3,), (1,)),
    "empty_permuted": lambda dtype: pt.empty_permuted((3,), (0,), dtype=dtype),
    "out": lambda dtype: pt.empty(3, out=pt.empty(0, dtype=dtype)),
    "resize_": lambda dtype: pt.ones(1, dtype=dtype).resize_(4)[1:],
    "resize_as_": lambda dtype: pt.ones(1, dtype=dtype).resize_as_(pt.ones(4))[1:],
}
DTYPES = {"bool": True, "uint8": 255, "int8": 127, "int16": 2**15 - 1, "int32": 2**31 - 1, "int64": 2**63 - 1,
          "uint64": 2**64 - 1, "float16": math.nan, "bfloat16": math.nan, "float32": math.nan, "float64": math.nan,
          "complex64": math.nan, "complex128": math.nan}


@pytest.fixture
def requested():
    pt.use_deterministic_algorithms(True)
    yield
    pt.utils.deterministic.fill_uninitialized_memory = True
    pt.use_deterministic_algorithms(False)


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("name", DTYPES)
def test_memory_is_filled(name, maker, requested):
    dtype, want = getattr(pt, name), DTYPES[name]
    found = MAKERS[maker](dtype)
    assert found.dtype is dtype and found.shape == (3,)
    values = [v.real if isinstance(v, complex) else v for v in found.tolist()]
    assert all(v == want or (v != v and want != want) for v in values), values
    assert pt.zeros(3, dtype=dtype).tolist() == [0, 0, 0]


def test_when_it_is_filled():
    assert pt.ones(1).resize_(3).tolist() == [1, 0, 0]
    pt.use_deterministic_algorithms(True)
    try:
        pt.utils.deterministic.fill_uninitialized_memory = False
        assert pt.ones(1).resize_(3).tolist() == [1, 0, 0]
        pt.utils.deterministic.fill_uninitialized_memory = True
        assert pt.ones(1).resize_(3).isnan().tolist() == [False, True, True]
        with pytest.raises(TypeError, match="bool"):
            pt.utils.deterministic.fill_uninitialized_memory = 1
        assert pt.empty(3, device="meta").shape == (3,) and pt.empty(0).shape == (0,)
        assert pt.ones(3).resize_(2).tolist() == [1, 1]
    finally:
        pt.use_deterministic_algorithms(False)
    assert pt.ones(1).resize_(3).tolist() == [1, 0, 0]


@pytest.mark.parametrize("n", [1, 2, 3])
def test_ops_that_are_refused(n, requested):
    unpool = getattr(pt.nn, f"MaxUnpool{n}d")(2)
    x, places = pt.ones((1, 1) + (2,) * n), pt.zeros((1, 1) + (2,) * n, dtype=pt.int64)
    with pytest.raises(RuntimeError, match=rf"max_unpooling{max(n, 2)}d_forward_out does not have a deterministic"):
        unpool(x, places)
    pt.use_deterministic_algorithms(True, warn_only=True)
    with pytest.warns(UserWarning, match="does not have a deterministic implementation"):
        unpool(x, places)
    pt.use_deterministic_algorithms(False)
    assert unpool(x, places).shape == (1, 1) + (4,) * n
