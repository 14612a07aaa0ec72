"""Small functions and setters under both libraries: torch's result or torch's class of error."""
import pytest

import ptcore as pt

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.parity

PROGRAMS = """
m.Size([1.5])
m.Size(['a'])
m.Size([True])
m.Size(3)
m.Size(m.tensor([1, 2]))
m.Size([m.tensor(1)])
m.Size([m.tensor(1.5)])
m.Size((1, 2), (3,))
m.Size('12')
m.Size(x for x in [1, 2])
m.Size() + (3,)
(3,) + m.Size([1, 2])
m.Size([1, 2]) + [3]
m.Size([1, 2]) * 2
setattr(m.zeros(2), 'requires_grad', 1)
setattr(m.zeros(2), 'requires_grad', None)
setattr(m.zeros(2), 'requires_grad', m.tensor(True))
m.zeros(2).requires_grad_(1)
m.zeros(2).requires_grad_(False)
m.where(m.tensor([1, 0]), m.zeros(2), m.ones(2))
m.where(m.tensor([1., 0]), m.zeros(2), m.ones(2))
m.where(m.tensor([1, 0]), 1, 2)
m.where(m.tensor([True, False]), 1, 2)
m.where(m.tensor([True, False]), 1., 2)
m.where(m.tensor(True))
m.where(m.tensor(0))
m.where(m.tensor([1., 0., 2.]))
m.where(m.tensor([[True, False], [True, True]]))
m.where(m.zeros(0, 3))
m.where(m.tensor([True]), m.tensor([1.]))
m.where(m.tensor([True]), other=m.tensor([1.]))
m.tensor([1., 2.]).where(m.tensor([True, False]), 0)
m.tensor([1, 2]).masked_fill(m.tensor([1, 0]), 5)
m.masked_select(m.zeros(2), m.tensor([1, 0]))
m.round(m.tensor([1.2345, -2.5, 1234.56]), decimals=2)
m.round(m.tensor([1.2345, -2.5, 1234.56]), decimals=-2)
m.tensor([1.2345, -2.5, 1234.56]).round_(decimals=1)
m.round(m.tensor([1.2345, -2.5], dtype=m.float64), decimals=12)
m.round(m.tensor([1.2345, -2.5], dtype=m.float16), decimals=2)
m.round(m.tensor([1.2345, -2.5], dtype=m.bfloat16), decimals=2)
m.round(m.tensor([12, 15]), decimals=-1)
m.round(m.tensor([1.5]), 1)
m.round(m.tensor([1.5]), decimals=1.5)
m.round(m.tensor([1.5, m.nan, m.inf]), decimals=3)
m.round(m.tensor([1.25], requires_grad=True), decimals=1).grad_fn.name()
m.result_type(m.tensor([1]), 1.)
m.result_type(m.tensor([1]), m.tensor(1., dtype=m.float64))
m.result_type(m.tensor(1), m.tensor(1., dtype=m.float64))
m.result_type(m.tensor([1], dtype=m.uint8), m.tensor([1], dtype=m.int8))
m.result_type(True, 1)
m.result_type(1, 2.)
m.result_type(1j, m.tensor([1.], dtype=m.float64))
m.result_type(1j, m.tensor([1], dtype=m.int8))
m.result_type(m.float32, 1)
m.result_type(m.tensor([1]))
m.can_cast(m.float32, m.int32)
m.can_cast(m.int64, m.uint8)
m.can_cast(m.uint8, m.bool)
m.can_cast(from_=m.float64, to=m.complex64)
m.promote_types(type1=m.float16, type2=m.bfloat16)
m.autograd.grad(m.ones(1, requires_grad=True).sum(), [])
"""


@pytest.mark.parametrize("program", PROGRAMS.strip().split("\n"))
def test_program(program):
    results = []
    for m in (torch, pt):
        try:
            results.append(repr(eval(program, {"m": m})).replace(m.__name__, "m"))
        except Exception as e:
            results.append(e)
    expected, got = results
    if isinstance(expected, Exception):
        assert isinstance(got, type(expected)), (expected, got)
    else:
        assert got == expected
