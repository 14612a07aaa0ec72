"""xarray keeps tensors as the data of its arrays; the same program on both kinds gives the same values and dims."""
import numpy as np
import pytest
from _same_program import DATA, evaluated

import ptcore as pt
from ptcore import array_api

xr = pytest.importorskip("xarray")
pytestmark = pytest.mark.core

COORDS = {"x": [10, 20, 30]}


def named(values, *dims):
    return xr.DataArray(values, dims=dims, coords={k: v for k, v in COORDS.items() if k in dims})


def written(array, key, value):
    array = array.copy(deep=True)
    array[key] = value
    return array


SCOPE = {"xr": xr, "named": named, "written": written,
         "two": lambda values: named(values, "x", "y"), "one": lambda values: named(values, "x")}
# Their results hold tensors.
KEPT = """
two(m) + 2
2 - two(m)
two(m) * one(x)
two(m) / two(m)
-two(m)
abs(-two(m))
~(two(m) > 2)
(two(m) > 1) & (two(m) < 5)
two(m) @ one(x)
two(m).sum()
two(m).sum("x")
one(nan).sum()
two(m).mean(skipna=False)
one(i).mean(skipna=False)
two(m).std("x", skipna=False)
two(m).var(skipna=False, ddof=1)
two(m).max("y", skipna=False)
two(m).median("x", skipna=False)
two(m).cumsum("x", skipna=False)
two(m).cumprod("x", skipna=False)
two(m).any("x")
two(m).all()
one(nan).count()
two(m).isel(x=1)
two(m).isel(x=slice(None, None, -1))
two(m).isel(x=A([0, 2]))
two(m).sel(x=20)
two(m).sel(x=[10, 30])
two(m).sel(x=19, method="nearest")
two(m).where(two(m) > 2, 0)
xr.where(two(m) > 2, two(m), 0.0)
one(nan).fillna(0.0)
one(nan).isnull()
one(nan).dropna("x")
two(m).clip(2, 4)
two(m).round()
two(m).astype("float32")
two(m).isin([1, 2])
two(m).T
one(x).expand_dims("t")
two(m).stack(z=("x", "y"))
xr.concat([two(m), two(m)], "x")
xr.concat([one(x), one(x)], "t")
xr.broadcast(one(x), two(m))[0]
two(m).roll(x=1)
two(m).diff("x")
two(m).sortby(one(x), ascending=False)
one(x).differentiate("x")
one(x).integrate("x")
xr.dot(two(m), one(x))
two(m).weighted(one(x)).sum("x")
np.sin(two(m))
np.add(two(m), 1)
np.maximum(f4, one(x))
np.hypot(one(x), f4)
xr.apply_ufunc(lambda a: a * 2, two(m))
xr.apply_ufunc(lambda a: a.sum(-1), two(m), input_core_dims=[["y"]])
written(two(m), dict(x=0), 9.0)
written(two(m), dict(x=0), A([7.0, 8.0]))
xr.Dataset({"a": two(m), "b": ("x", f4)}).isel(x=0).b
(xr.Dataset({"a": two(m), "b": ("x", f4)}) + 1).a
xr.Dataset({"a": two(m), "b": ("x", f4)}).sum("x").a
two(m).groupby(xr.DataArray(["a", "b", "a"], dims="x", name="g")).sum()
""".strip().splitlines()
OPERATORS = ["+", "-", "*", "/", "//", "%", "**", "==", "!=", "<", "<=", ">", ">="]
# These go through NumPy's functions of arrays with missing values, and give its arrays.
GIVE_NUMPY = ["mean()", 'std("x")', "var()", "min()", 'max("x")', "median()", "prod()", 'cumsum("x")', 'argmax("x")']


def check(program, kept=True):
    want, got = evaluated(program, SCOPE)
    assert got.dims == want.dims
    assert got.shape == want.shape
    assert type(got.data) is pt.Tensor or not kept
    a, b = np.asarray(want.data), np.asarray(got.data)
    np.testing.assert_allclose(b, a, rtol=1e-12)
    if "mean" not in program:           # of integers: the default floating-point dtype of each
        assert b.dtype == a.dtype


@pytest.mark.parametrize("program", KEPT)
def test_same(program):
    check(program)


@pytest.mark.parametrize("operator", OPERATORS)
def test_operators(operator):
    check(f"one(x) {operator} f4")
    check(f"f4 {operator} one(x)")


@pytest.mark.parametrize("method", GIVE_NUMPY)
def test_numpys_results(method):
    check(f"two(m).{method}", kept=False)


def test_conversions():
    array = named(pt.tensor(DATA["m"]), "x", "y")
    assert isinstance(array.values, np.ndarray)
    assert isinstance(array.as_numpy().data, np.ndarray)
    assert array.isel(x=0, y=0).item() == 1.0
    assert array.to_pandas().values.tolist() == DATA["m"].tolist()
    assert array.identical(array * 1)
    assert "tensor(" in repr(array)
    data = xr.Dataset({"a": array}).to_dict()["data_vars"]["a"]["data"]
    assert data == DATA["m"].tolist()


def test_gradient():
    weight = pt.tensor(DATA["m"], requires_grad=True)
    (named(weight, "x", "y") * 3).sum().data.backward()
    assert weight.grad.tolist() == np.full((3, 2), 3.0).tolist()


def test_names_of_numpys():
    """What xarray asks the namespace for beyond the standard, against NumPy."""
    rng = np.random.default_rng(0)
    a = rng.normal(size=(3, 4, 5))
    t = array_api.asarray(a)
    for axis in (None, 0, -1, (0, 2), (1,)):
        for keepdims in (False, True):
            want = np.median(a, axis=axis, keepdims=keepdims)
            got = array_api.median(t, axis=axis, keepdims=keepdims)
            assert tuple(got.shape) == np.shape(want)
            np.testing.assert_allclose(got.numpy(), want, rtol=1e-14)
    assert np.isnan(array_api.median(array_api.asarray([1.0, np.nan])).item())
    for name in ("cumsum", "cumprod"):
        for axis in (None, 0, -1):
            want = getattr(np, name)(a, axis)
            np.testing.assert_allclose(getattr(array_api, name)(t, axis).numpy(), want, rtol=1e-12)
    for axes in (None, (1, 2, 0), (-1, 0, 1)):
        np.testing.assert_array_equal(array_api.transpose(t, axes).numpy(), np.transpose(a, axes))
    places = np.asarray([0.0, 1.0, 3.0, 3.5])
    for spacing in (0.5, places, array_api.asarray(places), array_api.asarray(2.0)):
        want = np.gradient(a, np.asarray(spacing), axis=1)
        np.testing.assert_allclose(array_api.gradient(t, spacing, axis=1).numpy(), want, rtol=1e-12)
    for want, got in zip(np.gradient(a, edge_order=2), array_api.gradient(t, edge_order=2)):
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-12)
    np.testing.assert_allclose(array_api.logspace(-1, 2, 5, base=3.0, dtype=pt.float64).numpy(),
                               np.logspace(-1, 2, 5, base=3.0), rtol=1e-14)
    np.testing.assert_allclose(array_api.einsum("ijk,k->ij", t, t[0, 0]).numpy(), a @ a[0, 0], rtol=1e-13)
    with pytest.raises(TypeError, match="all numbers or all arrays"):
        array_api.gradient(t, 1.0, places, 1.0)
