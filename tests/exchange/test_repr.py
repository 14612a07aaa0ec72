"""``repr`` and ``set_printoptions`` without torch: what torch 2.13 printed, written down.

tests/exchange/test_parity_printing.py compares far more of it with torch itself.
"""
import math

import pytest

import ptcore

pytestmark = pytest.mark.core

PRINTED = [
    ('tensor([1., 2.5])',
     'tensor([1.0000, 2.5000])'),
    ('tensor([1, -20, 300])',
     'tensor([  1, -20, 300])'),
    ('tensor([0.1, 1000.])',
     'tensor([1.0000e-01, 1.0000e+03])'),
    ('tensor([0.1, 100000.])',
     'tensor([1.0000e-01, 1.0000e+05])'),
    ('tensor([1e-10, 1.])',
     'tensor([1.0000e-10, 1.0000e+00])'),
    ('tensor([1., math.nan, math.inf])',
     'tensor([1., nan, inf])'),
    ('tensor([True, False])',
     'tensor([ True, False])'),
    ('tensor(1.5)',
     'tensor(1.5000)'),
    ('tensor(7)',
     'tensor(7)'),
    ('tensor(1 + 2j)',
     'tensor(1.+2.j)'),
    ('tensor([1 + 1j, -1.5 - 2.25j])',
     'tensor([ 1.0000+1.0000j, -1.5000-2.2500j])'),
    ('tensor([])',
     'tensor([])'),
    ('zeros(2, 0)',
     'tensor([], size=(2, 0))'),
    ('zeros(0, 3, dtype=int64)',
     'tensor([], size=(0, 3), dtype=ptcore.int64)'),
    ('tensor([1., 2.], dtype=float64)',
     'tensor([1., 2.], dtype=ptcore.float64)'),
    ('tensor([1.5], dtype=float16)',
     'tensor([1.5000], dtype=ptcore.float16)'),
    ('tensor([1, 2], dtype=int8)',
     'tensor([1, 2], dtype=ptcore.int8)'),
    ('arange(1001)',
     'tensor([   0,    1,    2,  ...,  998,  999, 1000])'),
    ('arange(24).reshape(2, 3, 4)',
     'tensor([[[ 0,  1,  2,  3],\n         [ 4,  5,  6,  7],\n         [ 8,  9, 10, 11]],\n\n        [[12, 13, 14, 15],\n         [16, 17, 18, 19],\n         [20, 21, 22, 23]]])'),
    ('arange(4000).reshape(40, 100)',
     'tensor([[   0,    1,    2,  ...,   97,   98,   99],\n        [ 100,  101,  102,  ...,  197,  198,  199],\n        [ 200,  201,  202,  ...,  297,  298,  299],\n        ...,\n        [3700, 3701, 3702,  ..., 3797, 3798, 3799],\n        [3800, 3801, 3802,  ..., 3897, 3898, 3899],\n        [3900, 3901, 3902,  ..., 3997, 3998, 3999]])'),
    ('ones(3, 25)',
     'tensor([[1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1.,\n         1., 1., 1., 1., 1., 1., 1.],\n        [1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1.,\n         1., 1., 1., 1., 1., 1., 1.],\n        [1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1.,\n         1., 1., 1., 1., 1., 1., 1.]])'),
    ('ones(2, requires_grad=True)',
     'tensor([1., 1.], requires_grad=True)'),
    ('ones(2, requires_grad=True) * 2',
     'tensor([2., 2.], grad_fn=<MulBackward0>)'),
    ("ones(2, 3, device='meta')",
     "tensor(..., device='meta', size=(2, 3))"),
    ('tensor([[1.5, -2], [3, 4]])',
     'tensor([[ 1.5000, -2.0000],\n        [ 3.0000,  4.0000]])'),
    ('arange(6).reshape(2, 3).t()',
     'tensor([[0, 3],\n        [1, 4],\n        [2, 5]])'),
    ('tensor([0., -0.])',
     'tensor([0., -0.])'),
    ('tensor([123456789.])',
     'tensor([1.2346e+08])'),
    ('-arange(4.) / 3',
     'tensor([-0.0000, -0.3333, -0.6667, -1.0000])'),
    ('arange(12., dtype=float64)',
     'tensor([ 0.,  1.,  2.,  3.,  4.,  5.,  6.,  7.,  8.,  9., 10., 11.],\n       dtype=ptcore.float64)'),
]
OPTIONS = [
    ({"precision": 2}, "tensor([0.3333, 1.0000]) / 1", "tensor([0.33, 1.00])"),
    ({"sci_mode": True}, "tensor([1., 2.5])", "tensor([1.0000e+00, 2.5000e+00])"),
    ({"threshold": 4, "edgeitems": 1}, "arange(9)", "tensor([0,  ..., 8])"),
    ({"linewidth": 30}, "arange(12)", "tensor([ 0,  1,  2,  3,  4,\n         5,  6,  7,  8,  9,\n        10, 11])"),
    ({"profile": "short"}, "tensor([0.33333, 1.])", "tensor([0.33, 1.00])"),
]


def value(text):
    return eval(text, {**{n: getattr(ptcore, n) for n in dir(ptcore)}, "math": math})


@pytest.mark.parametrize(("text", "printed"), PRINTED)
def test_repr(text, printed):
    x = value(text)
    assert repr(x) == printed
    assert str(x) == printed


@pytest.mark.parametrize(("options", "text", "printed"), OPTIONS)
def test_options(options, text, printed):
    x = value(text)
    before = repr(x)
    try:
        ptcore.set_printoptions(**options)
        assert repr(x) == printed
    finally:
        ptcore.set_printoptions(profile="default")
    assert repr(x) == before


def test_wrong_options_name_themselves():
    for options in ({"profile": "loud"}, {"precision": -1}, {"precision": "2"}, {"linewidth": None, "edgeitems": "x"}):
        with pytest.raises((TypeError, ValueError), match="set_printoptions"):
            ptcore.set_printoptions(**options)
    assert repr(ptcore.tensor(1.5)) == "tensor(1.5000)"
