"""Reductions of thin matrices, of dims of size 1 and of memory that repeats itself, around the sizes where rows are
joined. The oracle is NumPy, in float64."""
import numpy as np
import pytest

import ptcore

pytestmark = pytest.mark.core

OPS = {"sum": np.sum, "mean": np.mean, "prod": np.prod, "nansum": np.nansum, "amax": np.max, "amin": np.min,
       "any": np.any, "all": np.all, "count_nonzero": np.count_nonzero, "var": lambda x, axis: np.var(x, axis, ddof=1),
       "argmax": np.argmax, "argmin": np.argmin}
DTYPES = ["float32", "float64", "bfloat16", "int64", "uint8", "bool", "complex128"]
ROUNDING = {"float32": 1e-6, "float64": 1e-13, "bfloat16": 8e-3, "complex128": 1e-13}


def drawn(rng, shape, dtype):
    if dtype in ("int64", "uint8", "bool"):
        return rng.integers(0, 2 if dtype == "bool" else 5, shape).astype(dtype)
    x = rng.uniform(0.9, 1.1, shape)
    if dtype == "complex128":
        return x + 1j * rng.uniform(-0.1, 0.1, shape)
    return (x.astype("float32").view("uint32") & 0xFFFF0000).view("float32") if dtype == "bfloat16" else x.astype(dtype)


FLOATS = ["float32", "float64", "bfloat16"]
TAKES = {**{name: FLOATS for name in ("var", "nansum")}, "mean": [*FLOATS, "complex128"],
         **{name: [*FLOATS, "int64", "uint8"] for name in ("amax", "amin", "argmax", "argmin")}}


def compare(name, x, dims, t, dtype):
    if dtype not in TAKES.get(name, DTYPES):
        return
    wide = x.astype("float64") if dtype in FLOATS else x
    if dtype in ("int64", "uint8", "bool") and name in ("sum", "prod"):
        wide = x.astype("int64")
    want = np.asarray(OPS[name](wide, axis=dims))
    got = (getattr(ptcore, name)(t) if dims is None else getattr(ptcore, name)(t, dims))
    got = got.to(ptcore.complex128 if got.is_complex() else ptcore.float64).numpy()
    rounding = ROUNDING.get(dtype, 0) * (30 if name == "var" else 1)        # variances of numbers near 1
    if name == "prod" and dtype != "bool":                                  # each product is rounded
        rounding += x.size // max(want.size, 1) * rounding / 10
    least = ROUNDING.get(dtype, 0) ** 2 if name == "var" else 0             # deviations of equal numbers
    np.testing.assert_allclose(got, want.astype(got.dtype), rtol=rounding, atol=least, err_msg=f"{name} {dims}")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", [1, 2, 3, 4, 7, 8, 12, 31, 32, 33])
def test_thin(dtype, width):
    rng = np.random.default_rng(0)
    for rows in (4096 // width - 1, 4096 // width, 4096 // width + 1, 30_011 // width, 2000):
        x = drawn(rng, (rows, width), dtype)
        t = ptcore.from_numpy(x).to(getattr(ptcore, dtype))
        for name in OPS:
            if name != "prod" or rows <= 2000:
                compare(name, x, 0, t, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_thin_batches(dtype):
    x = drawn(np.random.default_rng(1), (3, 1601, 4), dtype)
    t = ptcore.from_numpy(x).to(getattr(ptcore, dtype))
    turned = ptcore.from_numpy(np.ascontiguousarray(x[:, ::-1])).to(getattr(ptcore, dtype)).flip(1)
    for name in OPS:
        compare(name, x, 1, t, dtype)
        compare(name, x, 1, turned, dtype)
        compare(name, x[:, 5:], 1, t[:, 5:], dtype)
        compare(name, x[:, ::2], 1, t[:, ::2], dtype)
        compare(name, x[:, :, 1:], 1, t[:, :, 1:], dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_dims_of_one(dtype):
    x = drawn(np.random.default_rng(2), (1, 5000), dtype)
    t = ptcore.from_numpy(x).to(getattr(ptcore, dtype))
    for name in OPS:
        if name != "var":
            compare(name, x, 0, t, dtype)
            compare(name, x[:, ::3], 0, t[:, ::3], dtype)
            compare(name, x.reshape(50, 1, 100).swapaxes(0, 2), 1, t.reshape(50, 1, 100).transpose(0, 2), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_repeated(dtype):
    """A dim of stride 0 at any place among reduced and kept dims."""
    rng = np.random.default_rng(3)
    shapes = [((1, 70), (50, 70)), ((70, 1), (70, 50)), ((1,), (3000,)), ((1, 1), (60, 60)), ((3, 1, 5), (3, 40, 5)),
              ((1, 4, 1, 6), (7, 4, 9, 6)), ((0, 1), (0, 5)), ((1, 3), (0, 3))]
    for shape, wide in shapes:
        x = drawn(rng, shape, dtype)
        t = ptcore.from_numpy(x).to(getattr(ptcore, dtype)).expand(wide)
        signs = np.where(x.real > 1, 1, -1 if x.dtype.kind in "fc" else 1)
        x = np.broadcast_to(x, wide)
        if 0 in wide:
            np.testing.assert_array_equal(ptcore.sum(t).numpy(), 0)
            np.testing.assert_array_equal(ptcore.any(t, 0).numpy(), np.any(x, 0))
            continue
        compare("prod", np.broadcast_to(signs, wide), None, ptcore.from_numpy(signs).to(t.dtype).expand(wide), dtype)
        for name in set(OPS) - {"prod"}:
            for dims in (None, *range(len(wide)), tuple(range(len(wide)))):
                if not isinstance(dims, tuple) or name in ("sum", "mean", "nansum", "amax", "amin", "any", "all", "var"):
                    compare(name, x, dims, t, dtype)


def test_repeated_sums_are_rounded_once():
    x = ptcore.tensor([[0.1]], dtype=ptcore.float32).expand(3, 1_000_003)
    exact = np.float64(np.float32(0.1)) * 3_000_009
    assert x.sum().item() == np.float32(exact) and x.mean().item() == np.float32(0.1)
    y = ptcore.tensor([[2 ** 62 + 1]]).expand(7, 3)
    assert y.sum().item() == np.array((2 ** 62 + 1) * 21 % 2 ** 64, "uint64").astype("int64").item()
    for special in (np.inf, -np.inf, np.nan):
        np.testing.assert_equal(ptcore.tensor([special]).expand(9).sum().item(), special)
