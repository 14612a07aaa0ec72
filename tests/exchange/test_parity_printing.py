"""``repr`` of tensors, compared letter by letter with torch's."""
import math

import pytest
from _walk import walk

torch = pytest.importorskip("torch")

import ptcore as pt  # noqa: E402

pytestmark = pytest.mark.parity

PRINTED = {
    **{f"dtype_{d}": lambda m, d=d: m.tensor([0, 1, 100]).to(getattr(m, d))
       for d in ("uint8", "int8", "int16", "int32", "int64", "bool", "float16", "bfloat16",
                 "float32", "float64", "complex64", "complex128")},
    **{f"values_{i}": lambda m, v=v: m.tensor(v) for i, v in enumerate([
        1, 1.0, -1.5, True, 1 + 2j, [], [[]], [[], []], [1.0], [1.0, 2.5], [1e-5], [1e5], [1e9],
        [1.0, 1e-3], [1.0, 1e4], [0.1, 1000.0], [0.1, 10000.0], [1e-10, 1.0], [math.nan],
        [math.inf], [-math.inf, 1.0], [math.nan, 1.5], [0.0, -0.0], [0.0], [1e-45], [3e38],
        [1.0, math.nan, math.inf], [1.5, math.nan, -math.inf], [123456.0], [12345678.0],
        [123456789.0], [0.33333333], [[1, -20], [300, 4]], [True, False], [[1.5, -2], [3, 4]],
        [1 + 1j, -1.5 - 2.25j], [complex(math.nan, 1)], [-1, 10, -100], [[[1.0, 2.0]], [[3.0, 4.0]]],
        2**60, [-2**60, 1], 99999.5, 0.00001, [1e-5, 1e-4], [1e-30]])},
    "arange_20": lambda m: m.arange(20), "arange_100": lambda m: m.arange(100),
    "arange_1000": lambda m: m.arange(1000), "arange_1001": lambda m: m.arange(1001),
    "arange_float": lambda m: m.arange(30) / 7, "square": lambda m: m.arange(64).reshape(8, 8),
    "large": lambda m: m.arange(4000).reshape(40, 100),
    "large_3d": lambda m: m.arange(8000).reshape(20, 20, 20),
    "cube": lambda m: m.arange(24).reshape(2, 3, 4), "four": lambda m: m.ones(1, 2, 1, 2),
    "wide": lambda m: m.ones(3, 40), "wide_float": lambda m: m.arange(90).reshape(3, 30) / 9,
    "empty_2d": lambda m: m.zeros(2, 0), "empty_long": lambda m: m.zeros(0, 3, dtype=m.int64),
    "leaf": lambda m: m.ones(2, requires_grad=True),
    "mul": lambda m: m.ones(2, requires_grad=True) * 2,
    "sum": lambda m: m.ones(2, requires_grad=True).sum(),
    "long_suffix": lambda m: m.ones(20, dtype=m.float64, requires_grad=True),
    "meta": lambda m: m.ones(2, 3, device="meta"),
    "meta_int": lambda m: m.ones(2, device="meta", dtype=m.int32),
    "size": lambda m: m.ones(2, 3).shape, "dtype": lambda m: m.float32, "device": lambda m: m.device("cpu"),
    "transposed": lambda m: m.arange(6).reshape(2, 3).t(), "list": lambda m: [m.ones(1), m.tensor(2)],
    "named": lambda m: m.ones(2, 2).max(0), "finfo": lambda m: m.finfo(m.float32).eps,
    "parameter": lambda m: m.nn.Parameter(m.ones(2)),
    "derived_parameter": lambda m: type("P", (m.nn.Parameter,), {})(m.ones(2)),
    "subclass": lambda m: m.ones(2, 2).as_subclass(type("MyTensor", (m.Tensor,), {})),
    "uint16": lambda m: m.tensor([1, 2]).to(m.uint16), "uint64": lambda m: m.tensor([1]).to(m.uint64),
    "empty_3d": lambda m: m.zeros(2, 0, 3), "empty_bool": lambda m: m.zeros(0, dtype=m.bool),
    "empty_half": lambda m: m.zeros(0, dtype=m.float16), "default_double": lambda m: m.zeros(2, dtype=m.float64),
    "flipped": lambda m: m.arange(6).flip(0), "strided": lambda m: m.arange(20.0).reshape(4, 5)[1:, ::2],
    "only_nan": lambda m: m.full((3,), math.nan), "only_inf": lambda m: m.tensor([math.inf, -math.inf]),
    "nan_zero": lambda m: m.tensor([0.0, math.nan]), "nan_half": lambda m: m.tensor([0.5, math.nan, math.inf]),
    "inf_sci": lambda m: m.tensor([1e-9, math.inf, 0.0, -1.0]), "scalar_nan": lambda m: m.tensor(math.nan),
    "bool_2d": lambda m: m.arange(6).reshape(2, 3) > 2, "bool_wide": lambda m: m.arange(100) % 3 == 0,
    "bool_large": lambda m: m.arange(3000).reshape(3, 1000) > 5,
    "complex_2d": lambda m: m.tensor([[1 + 1j, 2.5 - 3j], [0j, -1e3 + 0j]]),
    "complex_wide": lambda m: m.arange(30.0) * (1 - 2j), "complex_large": lambda m: m.arange(2000.0) * 1j,
    "complex_sci": lambda m: m.tensor([1e-6 + 1j, 1e6 - 1j]), "complex_scalar": lambda m: m.tensor(1.5 - 2j),
    "complex_inf": lambda m: m.tensor([complex(math.inf, -math.inf), complex(1, math.nan)]),
    "large_4d": lambda m: m.arange(10000).reshape(10, 10, 10, 10),
    "large_row": lambda m: m.arange(2000.0).reshape(1, 2000) / 7,
    "large_mixed": lambda m: m.arange(2000.0).reshape(2, 1, 1000),
    "large_empty_end": lambda m: m.ones(1001, 1), "negative": lambda m: -m.arange(12.0) / 3,
    "grad_long": lambda m: m.ones(3, 5, requires_grad=True) * 1.25,
    "grad_scalar": lambda m: (m.ones(2, requires_grad=True) * 3).exp().sum(),
    "grad_view": lambda m: (m.ones(4, requires_grad=True) + 0)[1:3],
    "grad_double": lambda m: m.ones(12, dtype=m.float64, requires_grad=True) / 3,
    "meta_grad": lambda m: m.ones(2, device="meta", requires_grad=True),
    **{f"suffix_{n}": lambda m, n=n: m.arange(float(n), dtype=m.float64) for n in range(1, 14)},
    **{f"suffix_grad_{n}": lambda m, n=n: m.arange(n * 1.0).requires_grad_() for n in range(8, 15)},
    "min": lambda m: m.tensor([[1, 2], [0, 3]]).min(dim=1), "torch_size": lambda m: m.Size([]),
    "sort": lambda m: m.tensor([3.0, 1.0]).sort(), "topk": lambda m: m.tensor([3.0, 1.0]).topk(1),
}
TENSORS = {
    "float": lambda m: m.arange(12.0) / 7, "int": lambda m: m.arange(30).reshape(5, 6),
    "sci": lambda m: m.tensor([1e-8, 1.0]), "scalar": lambda m: m.tensor(1.0 / 3),
    "complex": lambda m: m.arange(5.0) * (1 / 3 - 1j), "bool": lambda m: m.arange(30) > 3,
    "zero": lambda m: m.zeros(3), "nan": lambda m: m.tensor([math.nan]), "int_mode": lambda m: m.tensor([1.0, 2e3]),
    "three": lambda m: m.arange(27.0).reshape(3, 3, 3), "large": lambda m: m.arange(1200).reshape(40, 30),
    "one": lambda m: m.ones(1, 1, requires_grad=True), "empty": lambda m: m.ones(0, 2),
}
OPTIONS = [{"precision": 2}, {"precision": 0}, {"precision": 10}, {"sci_mode": True}, {"sci_mode": False},
           {"threshold": 5}, {"threshold": 0}, {"threshold": math.inf}, {"edgeitems": 1, "threshold": 5},
           {"edgeitems": 10, "threshold": 5}, {"edgeitems": 0, "threshold": 5}, {"linewidth": 40},
           {"linewidth": 10}, {"linewidth": 200}, {"profile": "short"}, {"profile": "full"},
           {"profile": "Default"}, {"profile": "short", "precision": 6, "linewidth": 60}]


@pytest.mark.parametrize("name", PRINTED)
def test_repr(name):
    want, got = repr(PRINTED[name](torch)), repr(PRINTED[name](pt))
    assert got.replace("ptcore", "torch") == want


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@walk("name", TENSORS)
def test_print_options(options, name):
    make = TENSORS[name]
    try:
        for m in (torch, pt):
            m.set_printoptions(**options)
        want, got = repr(make(torch)), repr(make(pt))
    finally:
        for m in (torch, pt):
            m.set_printoptions(profile="default")
    assert got == want


def test_default_dtypes():
    """What is left out of the text follows the default dtype."""
    try:
        for m in (torch, pt):
            m.set_default_dtype(m.float64)
        for make in (lambda m: m.tensor([1.5, 2]), lambda m: m.tensor([1.5], dtype=m.float32),
                     lambda m: m.tensor([1j]), lambda m: m.tensor([1j], dtype=m.complex64)):
            assert repr(make(pt)).replace("ptcore", "torch") == repr(make(torch))
    finally:
        for m in (torch, pt):
            m.set_default_dtype(m.float32)


def test_str_and_format():
    for make in (lambda m: m.tensor(1.5), lambda m: m.ones(2), lambda m: m.tensor(7)):
        assert str(make(pt)) == str(make(torch))
        assert f"{make(pt)}" == f"{make(torch)}"
    assert f"{pt.tensor(1.23456):.2f}" == f"{torch.tensor(1.23456):.2f}"


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64"])
def test_finfo(name):
    assert repr(pt.finfo(getattr(pt, name))) == repr(torch.finfo(getattr(torch, name)))


def test_str_of_subclasses():
    """``print`` shows what ``repr`` of the class says."""
    for m in (pt, torch):
        class Named(m.Tensor):
            def __repr__(self):
                return "a name"

        assert str(m.ones(2).as_subclass(Named)) == "a name"
        assert str(m.nn.Parameter(m.ones(2))).startswith("Parameter containing:\ntensor(")


def test_bad_profile():
    with pytest.raises(ValueError, match="set_printoptions: profile must be one of"):
        pt.set_printoptions(profile="long")
