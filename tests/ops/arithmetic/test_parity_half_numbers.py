"""Products and quotients of half types and numbers: the number is float32, as in PyTorch."""
import numpy as np
import pytest

import ptcore as pt

torch = pytest.importorskip("torch")

NUMBERS = (100_000, 1e5, 1e-5, 0.1, 1 / 3, 3.3333, -7e4, 2**40, True, 1e-9)
CALLS = {
    "mul": lambda lib, x, n: x * n, "reversed": lambda lib, x, n: n * x, "div": lambda lib, x, n: x / n,
    "in place": lambda lib, x, n: x.clone().mul_(n), "div in place": lambda lib, x, n: x.clone().div_(n),
    "out": lambda lib, x, n: lib.mul(x, n, out=lib.empty_like(x)), "strided": lambda lib, x, n: x[::2] * n,
    "transposed": lambda lib, x, n: x.reshape(4, -1).t() / n,
    "of a list": lambda lib, x, n: lib._foreach_mul([x], n)[0],
    "0-d": lambda lib, x, n: x * lib.tensor(n), "0-d float64": lambda lib, x, n: x / lib.tensor(n, dtype=lib.float64),
    "lerp": lambda lib, x, n: lib.lerp(x, -x, float(n)),
}


def given(lib, dtype, n):
    return lib.tensor(np.linspace(-9, 9, n), dtype=getattr(lib, dtype)) * lib.tensor(2.0**-10)


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("n", [8, 5000])
def test_values(name, dtype, n):
    for number in NUMBERS:
        got, want = [CALLS[name](lib, given(lib, dtype, n), number) for lib in (pt, torch)]
        assert str(got.dtype).partition(".")[2] == str(want.dtype).partition(".")[2]
        np.testing.assert_array_max_ulp(got.double().numpy().astype("float32"), want.double().numpy().astype("float32"),
                                        maxulp=1 if name != "lerp" else 2**17)


@pytest.mark.parametrize("name", ["mul", "div", "strided", "in place"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_gradients_and_compiled_calls(name, dtype):
    for number in NUMBERS:
        found = []
        for lib in (pt, torch):
            x = given(lib, dtype, 8).requires_grad_()
            y = CALLS[name](lib, x, number)
            found.append(lib.autograd.grad(y, x, given(lib, dtype, len(y)))[0].double().numpy())
        np.testing.assert_allclose(*found, rtol=2.0**-7)
        x = given(pt, dtype, 5000)
        f = pt.compile(lambda x, number=number: CALLS[name](pt, x, number) + 1)
        assert bool((f(x) == CALLS[name](pt, x, number) + 1).all()) or bool(x.isnan().any())


def test_other_ops_take_numbers_of_the_dtype():
    x = pt.tensor([0.1], dtype="float16")
    assert (x == 0.1).item() and not (x < 0.1).item() and (x * 1 == 0.1).item()
