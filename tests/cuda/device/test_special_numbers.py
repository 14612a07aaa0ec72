"""Infinities, NaN and zeros with a sign where an op of the CPU is made of others on a device."""
import itertools

import numpy as np
import pytest

import ptcore

INF, NAN = float("inf"), float("nan")
PARTS = [1.0, INF, NAN, 2.0, -0.0, 0.0, -INF], [INF, 1.0, 2.0, NAN, -0.0, -0.0, -0.0]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_parts_of_complex_numbers_stay(dtype):
    real, imag = [np.array(part, dtype) for part in PARTS]
    one, other = ptcore.from_numpy(real).cuda(), ptcore.from_numpy(imag).cuda()
    for got in (ptcore.complex(one, other), ptcore.func.vmap(ptcore.complex)(one, other)):
        got = got.cpu().numpy()
        for part, want in ((got.real, real), (got.imag, imag)):
            np.testing.assert_array_equal(part, want)
            np.testing.assert_array_equal(np.signbit(part), np.signbit(want))
    np.testing.assert_array_equal(ptcore.complex(one[:, None], other).real[:, 2].cpu().numpy(), real)
    x = np.random.default_rng(0).standard_normal((3, 70, 40)).astype(dtype)
    turned = ptcore.from_numpy(x).cuda().transpose(0, 2)
    np.testing.assert_array_equal(ptcore.complex(turned, 2 * turned).cpu().numpy(), x.T * (1 + 2j))
    out = ptcore.zeros(7, 2, dtype=one.dtype.to_complex(), device="cuda")
    ptcore.complex(one, other, out=out[:, 1])
    np.testing.assert_array_equal(out.imag.cpu().numpy(), np.stack([np.zeros_like(imag), imag], 1))


def test_derivatives_of_products_of_segments():
    """The derivative by an element is the product of the others, also where that element is 0 or NaN."""
    for numbers in itertools.product([2.0, 0.0, NAN, 3.0], repeat=3):
        x = ptcore.tensor([1.5, *numbers], device="cuda", requires_grad=True)
        ptcore.segment_reduce(x, "prod", lengths=ptcore.tensor([1, 3], device="cuda"), initial=1.0).sum().backward()
        want = [1.0] + [np.prod([b for j, b in enumerate(numbers) if j != i]) for i in range(3)]
        np.testing.assert_array_equal(x.grad.cpu().numpy(), np.array(want, "float32"))


@pytest.mark.parametrize("dtype", [ptcore.complex64, ptcore.complex128])
def test_infinite_complex_numbers_at_an_index(dtype):
    x = ptcore.zeros(3, 2, dtype=dtype, device="cuda")
    given = ptcore.tensor([[complex(INF, 1), complex(2, -INF)]], dtype=dtype, device="cuda")
    at = ptcore.tensor([1], device="cuda")
    rows = at.reshape(1, 1).expand(1, 2)
    for got in (x.index_add(0, at, given), x.scatter_add(0, rows, given), x.index_put((at,), given, accumulate=True)):
        assert got[1].tolist() == [complex(INF, 1), complex(2, -INF)] and got[0].tolist() == [0, 0]
    assert x.index_add(0, at, given, alpha=2)[1].tolist() == [complex(INF, 2), complex(4, -INF)]
    exact = ptcore.tensor([[1 + 2j, 3j]], dtype=dtype, device="cuda")
    assert x.index_add(0, at, exact, alpha=2j)[1].tolist() == [-4 + 2j, -6]
